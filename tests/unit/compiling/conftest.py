"""Folders of the tests' own, for whoever builds."""

from pathlib import Path

import pytest

from fake_sources import private_cache
from workshop import Workshop


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return private_cache(tmp_path, monkeypatch)


@pytest.fixture
def workshop(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return Workshop(tmp_path)
