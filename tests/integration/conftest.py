"""What integration tests share: programs that stand in for runtimes, and a service that stands in for GitHub."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_runtime import Programs, programs_below
from github_fetching import Apps, running_apps


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Compile the runner and the stand-in for a library for a target, once each."""
    return programs_below(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Apps]:
    """Run the stand-in for GitHub; an app has an empty folder."""
    with running_apps(monkeypatch, tmp_path) as running:
        yield running
