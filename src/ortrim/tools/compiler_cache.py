"""sccache: keeps compiled objects across builds, models, profiles and checkouts."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompilerCacheUse
from ortrim.errors import ToolError
from ortrim.tools.command import Completed, run

SIZE_LIMIT: Final = "5G"
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class CompilerCache:
    """A running cache server: the launcher that goes before the compiler, and the environment that it needs."""

    launcher: Path
    environment: Mapping[str, str]

    def use(self) -> CompilerCacheUse | None:
        """Return how far the cache has helped since it was started; None when it does not answer."""
        done = _asked(self.launcher, self.environment, "--show-stats", "--stats-format=json")
        if done is None:
            return None
        try:
            stats = json.loads(done.stdout)["stats"]
            hits, requests = sum(stats["cache_hits"]["counts"].values()), int(stats["requests_executed"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return CompilerCacheUse(hits=hits, requests=requests)


@contextmanager
def compiler_cache(launcher: Path, folder: Path, base_folders: tuple[Path, ...]) -> Iterator[CompilerCache | None]:
    """Run a cache server over `folder` for the time of one build; None when it cannot start.

    Each build has a server of its own on a private socket, so that builds side by side do not see each other's
    settings; they share the objects. `base_folders` are left out of the keys, so that a hit does not depend on
    where sources and build lie. A build without a cache is slow, not wrong: that is why a failure of the cache, or
    its absence, is not an error.
    """
    with tempfile.TemporaryDirectory(prefix="ortrim-") as sockets:  # short: a socket's path has at most 107 bytes
        environment = {
            "PATH": os.defpath,
            "SCCACHE_DIR": str(folder),
            "SCCACHE_CACHE_SIZE": SIZE_LIMIT,
            "SCCACHE_SERVER_UDS": str(Path(sockets) / "s"),
            "SCCACHE_IDLE_TIMEOUT": "600",
            "SCCACHE_BASEDIRS": os.pathsep.join(map(str, base_folders)),
        }
        if _asked(launcher, environment, "--start-server") is None:
            yield None
            return
        try:
            yield CompilerCache(launcher=launcher, environment=environment)
        finally:
            _asked(launcher, environment, "--stop-server")


def _asked(launcher: Path, environment: Mapping[str, str], *words: str) -> Completed | None:
    """Return what sccache answered; None when it is absent, fails, or does not answer in time."""
    try:
        done = run((launcher, *words), environment=environment, timeout_seconds=ANSWER_SECONDS)
    except ToolError:
        return None
    return done if done.returncode == 0 else None
