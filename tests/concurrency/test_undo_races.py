"""A change of limits is taken back while somebody makes another: whoever is second sees what the first left."""

from __future__ import annotations

import pytest

from jobs import operator, undoing
from jobs.errors import ChangedSince
from jobs.models import OperatorAction, Tenant
from jobs.operator import Shell
from tests.factories import Connection
from tests.racing import beside, wait_for_waiter

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db]


@pytest.fixture
def action(connection: Connection) -> OperatorAction:
    Tenant.objects.get_or_create(slug="acme")
    return operator.limit(Shell(), {"max_running": 20}, tenant="acme")[1]


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_undo_waits_for_who_changes_it_and_obeys_what_came_of_that(
    connection: Connection, action: OperatorAction, is_kept: bool
) -> None:
    with connection.transaction(force_rollback=not is_kept):
        connection.execute("UPDATE jobs_tenant SET max_running = 30 WHERE slug = 'acme'")
        undone = beside(lambda: undoing.undo(Shell(), action.pk))
        wait_for_waiter(connection)
    if is_kept:
        with pytest.raises(ChangedSince, match="max running is 30, not 20"):
            undone.result(60)
    else:
        undone.result(60)
    assert Tenant.objects.get(slug="acme").max_running == (30 if is_kept else None)
    assert OperatorAction.objects.filter(verb="undo limit").exists() != is_kept


def test_of_two_who_undo_the_same_one_is_told(connection: Connection, action: OperatorAction) -> None:
    with connection.transaction():
        connection.execute("SELECT FROM jobs_tenant WHERE slug = 'acme' FOR UPDATE")
        both = [beside(lambda: undoing.undo(Shell(), action.pk)) for _ in range(2)]
        wait_for_waiter(connection, 2)
    errors = [each.exception(60) for each in both]
    assert sorted(type(error).__name__ for error in errors) == ["ChangedSince", "NoneType"]
    assert OperatorAction.objects.filter(verb="undo limit").count() == 1
