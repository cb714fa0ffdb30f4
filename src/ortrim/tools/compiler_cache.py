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
from ortrim.tools.command import run

SIZE_LIMIT: Final = "5G"


@dataclass(frozen=True, kw_only=True)
class CompilerCache:
    """A running cache server: the launcher that goes before the compiler, and the environment that it needs."""

    launcher: Path
    environment: Mapping[str, str]

    def use(self) -> CompilerCacheUse | None:
        """Return how far the cache has helped since it was started; None when it does not answer."""
        done = run((self.launcher, "--show-stats", "--stats-format=json"), environment=self.environment)
        if done.returncode != 0:
            return None
        stats = json.loads(done.stdout)["stats"]
        return CompilerCacheUse(
            hits=sum(stats["cache_hits"]["counts"].values()), requests=int(stats["requests_executed"])
        )


@contextmanager
def compiler_cache(launcher: Path, folder: Path, base_folders: tuple[Path, ...]) -> Iterator[CompilerCache | None]:
    """Run a cache server over `folder` for the time of one build; None when it cannot start.

    Each build has a server of its own on a private socket, so that builds side by side do not see each other's
    settings; they share the objects. `base_folders` are left out of the keys, so that a hit does not depend on
    where sources and build lie. A build without a cache is slow, not wrong: that is why a failure to start is
    not an error.
    """
    with tempfile.TemporaryDirectory(prefix="ortrim-") as sockets:  # short: a socket's path has at most 107 bytes
        environment = {
            "PATH": os.defpath,
            "SCCACHE_DIR": str(folder),
            "SCCACHE_CACHE_SIZE": SIZE_LIMIT,
            "SCCACHE_SERVER_UDS": str(Path(sockets) / "s"),
            "SCCACHE_IDLE_TIMEOUT": "0",
            "SCCACHE_BASEDIRS": os.pathsep.join(map(str, base_folders)),
        }
        started = run((launcher, "--start-server"), environment=environment, timeout_seconds=60)
        if started.returncode != 0:
            yield None
            return
        try:
            yield CompilerCache(launcher=launcher, environment=environment)
        finally:
            run((launcher, "--stop-server"), environment=environment, timeout_seconds=60)
