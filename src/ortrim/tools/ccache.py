"""ccache: keeps compiled objects in a folder that any number of builds share, and in a store beside it."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompilerCacheUse
from ortrim.errors import ToolError
from ortrim.tools.running_cache import SIZE_LIMIT, CompilerCache, ask

HIT_COUNTERS: Final = ("direct_cache_hit", "preprocessed_cache_hit")
REMOTE_FAULTS: Final = ("remote_storage_error", "remote_storage_timeout")

SETTINGS: Final = {
    "compiler_check": "content",  # the compiler is a wrapper, whose text names toolchain and version
    "depend_mode": "true",  # headers are taken from the compiler's own list, which saves a preprocessor run
    "max_size": SIZE_LIMIT,
}


@contextmanager
def ccache(
    program: Path, folder: Path, base_folders: tuple[Path, ...], wishes: Mapping[str, str]
) -> Iterator[CompilerCache]:
    """Prepare ccache over `folder` for the time of one build.

    Paths below `base_folders` reach the compiler relative to its working folder, so that a hit does not depend on
    where a build lies. `wishes` are settings of the user's by their names in ccache's configuration file; they go
    into a file that only this user can read. Raises `ToolError` `compiler-cache-unusable` when the folder cannot be
    used or the store does not answer, and what `ask` raises.
    """
    with tempfile.TemporaryDirectory(prefix="ortrim-", ignore_cleanup_errors=True) as private:
        log, remote = Path(private) / "log", wishes.get("remote_storage", "")
        places = {"cache_dir": str(folder), "base_dir": ":".join(map(str, base_folders)), "stats_log": str(log)}
        configuration = Path(private) / "ccache.conf"
        configuration.write_text(_configuration_text(SETTINGS | dict(wishes) | places), encoding="utf-8")
        environment = {"CCACHE_CONFIGPATH": str(configuration)}
        _require_plain(base_folders)
        _require_usable(program, environment, Path(private), remote=bool(remote))
        log.unlink(missing_ok=True)
        yield CompilerCache(
            launcher=program,
            environment=environment,
            where="ccache on this machine" + (f" and at {remote.partition(':')[0]}" if remote else ""),
            use=lambda: _use(program, environment),
        )


def _require_plain(folders: tuple[Path, ...]) -> None:
    """Refuse folders with `=` in their names: a word with it is no compiler to ccache, but a setting."""
    if any("=" in str(folder) for folder in folders):
        why = "the name of a folder has '=', which ccache takes for a setting"
        raise ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)


def _configuration_text(settings: Mapping[str, str]) -> str:
    """Return ccache's configuration; raises `ToolError` for a value that a line of it cannot hold."""
    if any(set(value) & {"\n", "\r", "\0"} for value in settings.values()):
        why = "a folder or a setting has a line break in its name"
        raise ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)
    return "".join(f"{name} = {value.replace('$', '$$')}\n" for name, value in settings.items())


def _require_usable(program: Path, environment: Mapping[str, str], private: Path, *, remote: bool) -> None:
    """Have ccache look up a compilation that is never kept, as `true` compiles nothing."""
    (private / "probe.c").write_text("")
    words = (shutil.which("true") or "/bin/true", "-c", "probe.c", "-o", "probe.o")
    try:
        ask(program, environment, *words, cwd=private)
        counters = _counters(program, environment)
    except ToolError as error:
        raise (_store_unusable() if remote else error) from None  # ccache would tell the store's password
    if any(counters.get(name) for name in REMOTE_FAULTS):
        raise _store_unusable()


def _store_unusable() -> ToolError:
    why = "nothing answers at the store of CCACHE_REMOTE_STORAGE or SCCACHE_REDIS, or ccache cannot speak to it"
    return ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)


def _use(program: Path, environment: Mapping[str, str]) -> CompilerCacheUse | None:
    try:
        counters = _counters(program, environment)
        hits = sum(counters[name] for name in HIT_COUNTERS)
        return CompilerCacheUse(hits=hits, requests=hits + counters["cache_miss"])
    except (ToolError, KeyError, TypeError):
        return None


def _counters(program: Path, environment: Mapping[str, str]) -> dict[str, int]:
    """Return what ccache counted in this build's log; nothing when it answers nonsense."""
    answer = ask(program, environment, "--print-log-stats", "--format=json").stdout
    try:
        found = json.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
