"""Folders, sources and an engine of the tests' own, for whoever builds."""

from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from fake_sources import FakeSources, private_cache
from ortrim.build.declarations import LIST
from workshop import Workshop


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own."""
    return private_cache(tmp_path, monkeypatch)


@pytest.fixture
def fake(cache: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSources:
    """Give the test small sources whose archives are in the cache already, and which declare nothing to CMake."""
    monkeypatch.setattr("ortrim.build.sources.packages_folder", lambda *_: cache)
    monkeypatch.setattr("ortrim.build.sources.arrange_dependencies", lambda folder, *_: (folder / LIST).touch())
    return FakeSources(cache / "downloads")


@pytest.fixture
def docker(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine and a cache."""
    return fake_engine(tmp_path, monkeypatch)


@pytest.fixture
def workshop(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Make the folders, with a cache and pins of the test's own."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return Workshop(tmp_path)
