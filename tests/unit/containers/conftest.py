"""Folders and an engine of the tests' own, for whoever runs containers."""

from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine


@pytest.fixture
def docker(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    return fake_engine(tmp_path, monkeypatch)
