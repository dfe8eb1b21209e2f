"""What is emptied after a test with real commits."""

from __future__ import annotations

from django.apps import apps

from tests.emptying import TABLES


def test_every_table_of_ours_is_emptied() -> None:
    ours = {model._meta.db_table for model in apps.get_app_config("jobs").get_models() if model._meta.managed}
    assert ours == set(TABLES)
