from pathlib import Path

import pytest

from fake_sources import private_cache
from workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Make the folders, with a cache and pins of the test's own."""
    private_cache(tmp_path, monkeypatch)
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return Workshop(tmp_path)
