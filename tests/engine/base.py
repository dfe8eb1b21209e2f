"""A database engine of another name, as PostGIS has."""

from __future__ import annotations

from django.db.backends.postgresql.base import DatabaseWrapper

__all__ = ["DatabaseWrapper"]
