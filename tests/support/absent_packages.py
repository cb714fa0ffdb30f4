"""An environment that lacks a Python package, as one that was installed without an extra."""

import importlib.metadata

import pytest


def without_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Have no distribution of this name; modules that are imported stay."""
    version = importlib.metadata.version

    def absent(name: str) -> str:
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
