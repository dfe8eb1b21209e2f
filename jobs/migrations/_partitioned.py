"""`CreateModel` for a table PARTITION BY RANGE, whose key in the database is (partition column, id)."""

from __future__ import annotations

from typing import Any

from django.db.migrations.operations import CreateModel
from django.db.models import CompositePrimaryKey


class CreatePartitionedModel(CreateModel):
    """Django knows the id alone as the primary key; the database needs the partition column in it."""

    serialization_expand_args = ["fields", "options", "managers"]

    def __init__(self, name: str, fields: Any, partition_by: str, options: Any = None) -> None:
        self.partition_by = partition_by
        super().__init__(name, fields, options)

    def deconstruct(self) -> Any:
        name, args, kwargs = super().deconstruct()
        return name, args, {**kwargs, "partition_by": self.partition_by}

    def reduce(self, operation: Any, app_label: str) -> Any:
        return False  # never merged into another operation by the optimizer

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        sql, params = schema_editor.table_sql(model)
        quote, pk = schema_editor.quote_name, model._meta.pk
        # A composite key comes as a constraint of its own, a simple one behind its column.
        before, _, after = sql.partition(
            ", PRIMARY KEY" if isinstance(pk, CompositePrimaryKey) else " PRIMARY KEY"
        )
        if isinstance(pk, CompositePrimaryKey):
            after = after.partition(")")[2]
        if not after or " PRIMARY KEY" in after:
            raise ValueError(f"{self.name}: expected one PRIMARY KEY in {sql}")
        part = model._meta.get_field(self.partition_by).column
        key = ", ".join(quote(column) for column in [part, *(f.column for f in model._meta.pk_fields)])
        body = (before + after).rstrip()[:-1]
        schema_editor.execute(
            f"{body}, PRIMARY KEY ({key})) PARTITION BY RANGE ({quote(part)})", params or None
        )
        schema_editor.deferred_sql.extend(schema_editor._model_indexes_sql(model))
