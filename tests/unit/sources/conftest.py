"""What the tests of sources share."""

from pathlib import Path

import pytest

from fake_sources import FakeSources, private_cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own."""
    return private_cache(tmp_path, monkeypatch)


@pytest.fixture
def fake(cache: Path) -> FakeSources:
    """Give the test small sources whose archives are in the cache already."""
    return FakeSources(cache / "downloads")
