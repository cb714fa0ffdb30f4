"""Invoke's entry point in a checkout; the installed program `ortrim` has the same tasks."""

from ortrim.cli.tasks import namespace

__all__ = ["namespace"]
