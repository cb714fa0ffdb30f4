"""sccache: keeps compiled objects in the stores that ccache does not know, such as S3 and GitHub Actions."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompilerCacheUse
from ortrim.errors import ToolError
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.storage.folders import locked
from ortrim.tools.cache_settings import without_secrets
from ortrim.tools.running_cache import SIZE_LIMIT, CompilerCache, ask

IDLE_SECONDS: Final = 600
"""How long a server outlives a build that was killed. Configuring and linking ask nothing of it for minutes."""

LAUNCHER: Final = """\
#!/bin/sh
# sccache ends with 2 when it cannot do its own part, as when its server was killed. Then the compiler does all.
"$ORTRIM_SCCACHE" "$@"
code=$?
[ "$code" != 2 ] || exec "$@"
exit "$code"
"""


@contextmanager
def sccache(
    program: Path, folder: Path, base_folders: tuple[Path, ...], store: str, secrets: Mapping[str, str]
) -> Iterator[CompilerCache]:
    """Run an sccache server for the time of one build, on a private socket.

    `secrets` are the variables of the `store`, which only the server gets; `folder` is for a level of the cache on
    this machine, if the variables ask for one. `base_folders` are left out of the keys. The preprocessor runs for
    every request, because sccache's way around it returns the dependency file of another folder
    (docs/compiler-cache.md). When the server dies, the launcher compiles. Raises `ToolError`
    `compiler-cache-unusable` when the server does not start, what `ask` raises, and `StorageError`.
    """
    launcher = _launcher(folder)
    with tempfile.TemporaryDirectory(
        prefix="ortrim-", ignore_cleanup_errors=True
    ) as sockets:  # short: a socket's path has at most 107 bytes
        settings = {
            "SCCACHE_BASEDIRS": os.pathsep.join(map(str, base_folders)),
            "SCCACHE_CACHE_SIZE": SIZE_LIMIT,
            "SCCACHE_CONF": os.devnull,
            "SCCACHE_DIR": str(folder),
            "SCCACHE_DIRECT": "false",
            "SCCACHE_IDLE_TIMEOUT": str(IDLE_SECONDS),
            "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
            "SCCACHE_SERVER_UDS": str(Path(sockets) / "s"),
        }
        try:
            _start(program, {**secrets, **settings, "PATH": os.defpath}, secrets)
            yield CompilerCache(
                launcher=launcher,
                environment={**settings, "ORTRIM_SCCACHE": str(program)},
                where=f"sccache at {store}",
                use=lambda: _use(program, settings),
            )
        finally:
            with suppress(ToolError):
                ask(program, settings, "--stop-server")


def _launcher(folder: Path) -> Path:
    """Return the script that goes before the compiler; its place stays the same, as build trees remember it."""
    launcher = folder / "launcher"
    with locked(launcher), storage_errors(launcher):
        if not os.access(launcher, os.X_OK) or launcher.read_text(encoding="utf-8") != LAUNCHER:
            write_atomically(launcher, LAUNCHER)
            launcher.chmod(0o755)
    return launcher


def _start(program: Path, environment: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    """Start the server; its own words about a failure come without the values of `secrets`."""
    try:
        ask(program, environment, "--start-server")
    except ToolError as error:
        told = [line for line in error.why.splitlines() if "error:" in line] or [error.why]
        why = without_secrets(told[-1], secrets.values())
        raise ToolError(error.reference, error.what, where=error.where, why=why) from None


def _use(program: Path, environment: Mapping[str, str]) -> CompilerCacheUse | None:
    try:
        stats = json.loads(ask(program, environment, "--show-stats", "--stats-format=json").stdout)["stats"]
        hits, requests = sum(stats["cache_hits"]["counts"].values()), int(stats["requests_executed"])
    except (ToolError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return CompilerCacheUse(hits=hits, requests=requests)
