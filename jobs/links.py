"""A satellite row's way to its job: a one-to-one link over (job_id, due_at) without a column or a constraint.

PostgreSQL carries an equality through a join, never a range: a join over this link prunes only when both sides get
their own `due_at` bounds (`with_state(window)` does), else fetch the jobs in a second step by `Job.objects.in_bulk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import DO_NOTHING
from django.db.models.fields.related import ForeignObject, ForeignObjectRel
from django.db.models.fields.related_descriptors import ForwardOneToOneDescriptor, ReverseOneToOneDescriptor


class JobRel(ForeignObjectRel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.multiple = False


if TYPE_CHECKING:
    _Base = ForeignObject[Any, Any]
else:
    _Base = ForeignObject


class JobLink(_Base):
    many_to_many = many_to_one = one_to_many = False
    one_to_one = True
    related_accessor_class = ReverseOneToOneDescriptor  # type: ignore[assignment]
    forward_related_accessor_class = ForwardOneToOneDescriptor
    rel_class = JobRel

    def __init__(
        self,
        to: Any = "jobs.Job",
        on_delete: Any = DO_NOTHING,
        from_fields: Any = ("job_id", "due_at"),
        to_fields: Any = ("id", "due_at"),
        **kwargs: Any,
    ) -> None:
        kwargs["unique"] = True  # select_related of the reverse side asks for it; no column, so no constraint
        kwargs["serialize"] = False  # else dumpdata writes what loaddata refuses
        super().__init__(to, on_delete, from_fields=list(from_fields), to_fields=list(to_fields), **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("unique", None)
        kwargs.pop("serialize", None)
        return name, path, args, kwargs
