"""Invoke's entry point in a checkout; the installed program `ortrim` has the same tasks."""

from ortrim.tasks import namespace

__all__ = ["namespace"]
