from pathlib import Path

import pytest
from fake_sources import FakeSources


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fake(cache: Path) -> FakeSources:
    """Give the test small sources whose archives are in the cache already."""
    return FakeSources(cache / "downloads")
