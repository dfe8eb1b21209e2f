from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests.emptying import empty_tables


@pytest.fixture
def transactional_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Real commits, as pytest-django's fixture of this name, and quicker to clean up after."""
    with django_db_blocker.unblock():
        yield
        connections["default"].close()
        empty_tables()
        connections["default"].close()
