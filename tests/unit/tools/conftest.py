"""What the tests of tools share."""

from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from fake_sources import private_cache


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine and a cache."""
    private_cache(tmp_path, monkeypatch)
    return fake_engine(tmp_path, monkeypatch)
