"""Small sources in a cache of the test's own."""

from pathlib import Path

import pytest

from fake_sources import FakeSources
from ortrim.sources.sources import LIST


@pytest.fixture
def fake(cache: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSources:
    """Give the test small sources whose archives are in the cache already, and which declare nothing to CMake."""
    monkeypatch.setattr("ortrim.sources.sources.packages_folder", lambda *_: cache)
    monkeypatch.setattr("ortrim.sources.sources.arrange_dependencies", lambda folder, *_: (folder / LIST).touch())
    return FakeSources(cache / "downloads")
