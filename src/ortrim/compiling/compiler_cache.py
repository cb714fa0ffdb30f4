"""The compiler cache of a build, by ccache or sccache: objects compiled before, by this user or by the team."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from ortrim.base.cache import locked
from ortrim.base.command import Completed, run
from ortrim.base.files import storage_errors, write_atomically
from ortrim.compiling.plan import CompilerCacheUse
from ortrim.errors import Diagnostic, ToolError


class Backend(NamedTuple):
    """A store that sccache speaks to: chosen when `chosen_by` is set, with the variables of these prefixes."""

    name: str
    chosen_by: str
    prefixes: tuple[str, ...]


BACKENDS: Final = (
    Backend("S3", "SCCACHE_BUCKET", ("SCCACHE_BUCKET", "SCCACHE_REGION", "SCCACHE_ENDPOINT", "SCCACHE_S3_", "AWS_")),
    Backend("GitHub Actions", "SCCACHE_GHA_ENABLED", ("SCCACHE_GHA_", "ACTIONS_", "GITHUB_SERVER_URL")),
)

NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "HOME")
"""What a program needs beside its own settings to reach a store. AWS keeps credentials below HOME."""

CCACHE_SETTINGS: Final = {
    "CCACHE_MAXSIZE": "max_size",
    "CCACHE_REMOTE_STORAGE": "remote_storage",
    "CCACHE_REMOTE_ONLY": "remote_only",
    "CCACHE_RESHARE": "reshare",
}
"""ccache's variables that are heeded, and their names in its configuration file."""

NOT_WORDS: Final = re.compile(r"[^\w.+-]+")
SECRET_LETTERS: Final = 5  # Shorter values say nothing: `on`, `true`, a port

WAITING_SCHEMES: Final = ("redis:", "redis+unix:", "http:")
PATIENCE: Final = "@operation-timeout=2000"
"""How many milliseconds a compilation waits for a store that hangs; ccache's own figure is 10 seconds."""

OFF: Final = ("", "0", "off", "false", "no")


def chosen_backend(environment: Mapping[str, str]) -> Backend | None:
    """Return the store that the user's environment names for sccache; None for none."""
    asked = (backend for backend in BACKENDS if environment.get(backend.chosen_by, "").lower() not in OFF)
    return next(asked, None)


def backend_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that belong to any of sccache's stores; they hold secrets."""
    prefixes = tuple(prefix for backend in BACKENDS for prefix in backend.prefixes)
    return {name: value for name, value in environment.items() if name.startswith(prefixes) or name.upper() in NETWORK}


def ccache_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's settings for ccache by their names in its configuration file; they may hold secrets.

    A Redis in sccache's words is given to ccache: when one dies, sccache 0.16 waits 60 seconds for each compilation
    (mozilla/sccache#2820).
    """
    redis = redis_url(environment)
    settings = ({"remote_storage": redis} if redis else {}) | {
        name: environment[variable] for variable, name in CCACHE_SETTINGS.items() if environment.get(variable)
    }
    stores = settings.get("remote_storage", "")
    if stores.startswith(WAITING_SCHEMES) and "timeout" not in stores:
        settings["remote_storage"] = f"{stores} {PATIENCE}"
    return settings


def redis_url(environment: Mapping[str, str]) -> str:
    """Return the address that sccache's variables for Redis amount to, with the password in it; empty for none."""
    url = environment.get("SCCACHE_REDIS_ENDPOINT") or environment.get("SCCACHE_REDIS", "")
    scheme, mark, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    user, password = (quote(environment.get(f"SCCACHE_REDIS_{name}", ""), safe="") for name in ("USERNAME", "PASSWORD"))
    if not at and password:
        account, at = f"{user}:{password}", "@"
    database = environment.get("SCCACHE_REDIS_DB", "")
    path = f"/{database}" if database and "/" not in place else ""
    return f"{scheme}{mark}{account.removeprefix(':')}{at}{place}{path}"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return what a program said without the values that it was given, nor longer parts of them."""
    parts = {part for value in secrets for part in (value, *NOT_WORDS.split(value)) if len(part) >= SECRET_LETTERS}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "...")
    return text


ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class CompilerCache:
    """A compiler cache that is ready: the launcher that goes before the compiler, and what the launcher needs.

    `environment` holds no secret: every compile command sees it. `use` returns how much the cache has helped this
    build; None when it does not answer.
    """

    launcher: Path
    environment: Mapping[str, str]
    where: str
    use: Callable[[], CompilerCacheUse | None]


def ask(program: Path, environment: Mapping[str, str], *words: str, cwd: Path | None = None) -> Completed:
    """Return what a cache program answered."""
    done = run((program, *words), cwd=cwd, environment=environment, timeout_seconds=ANSWER_SECONDS)
    if done.returncode != 0:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise ToolError("compiler-cache-unusable", "cannot be used", where=program.name, why=why)
    return done


SETTINGS: Final = {
    "compiler_check": "content",  # the compiler is a wrapper, whose text names toolchain and version
    "depend_mode": "true",  # headers are taken from the compiler's own list, which saves a preprocessor run
    "max_size": "5G",
}


@contextmanager
def ccache(
    program: Path, folder: Path, base_folders: tuple[Path, ...], wishes: Mapping[str, str]
) -> Iterator[CompilerCache]:
    """Prepare ccache over `folder` for the time of one build.

    Paths below `base_folders` reach the compiler relative to its working folder, so that a hit does not depend on where
    a build lies. `wishes` are the user's settings; they go into a file that only this user can read.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ortrim-", ignore_cleanup_errors=True) as private:
        log, remote = Path(private) / "log", wishes.get("remote_storage", "")
        places = {"cache_dir": str(folder), "base_dir": ":".join(map(str, base_folders)), "stats_log": str(log)}
        configuration = Path(private) / "ccache.conf"
        configuration.write_text(_configuration_text(SETTINGS | dict(wishes) | places), encoding="utf-8")
        environment = {"CCACHE_CONFIGPATH": str(configuration)}
        if any("=" in str(folder) for folder in base_folders):
            why = "the name of a folder contains '=', which ccache reads as a setting"
            raise ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)
        _require_usable(program, environment, Path(private), remote=bool(remote))
        log.unlink(missing_ok=True)
        yield CompilerCache(
            launcher=program,
            environment=environment,
            where="ccache on this machine" + (f" and at {remote.partition(':')[0]}" if remote else ""),
            use=lambda: _use(program, environment),
        )


def _configuration_text(settings: Mapping[str, str]) -> str:
    """Return ccache's configuration; raises `ToolError` for a value that a line of it cannot hold."""
    if any(set(value) & {"\n", "\r", "\0"} for value in settings.values()):
        why = "a folder or a setting has a line break in its name"
        raise ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)
    return "".join(f"{name} = {value.replace('$', '$$')}\n" for name, value in settings.items())


def _require_usable(program: Path, environment: Mapping[str, str], private: Path, *, remote: bool) -> None:
    """Have ccache look up a compilation that is never kept, as `true` compiles nothing."""
    (private / "probe.c").write_text("", encoding="utf-8")
    words = (shutil.which("true") or "/bin/true", "-c", "probe.c", "-o", "probe.o")
    try:
        ask(program, environment, *words, cwd=private)
        counters = _counters(program, environment)
    except ToolError as error:
        raise (_store_unusable() if remote else error) from None  # ccache would tell the store's password
    if any(counters.get(name) for name in ("remote_storage_error", "remote_storage_timeout")):
        raise _store_unusable()


def _store_unusable() -> ToolError:
    why = "nothing answers at the store of CCACHE_REMOTE_STORAGE or SCCACHE_REDIS, or ccache cannot speak to it"
    return ToolError("compiler-cache-unusable", "cannot be used", where="ccache", why=why)


def _use(program: Path, environment: Mapping[str, str]) -> CompilerCacheUse | None:
    try:
        counters = _counters(program, environment)
        hits = sum(counters[name] for name in ("direct_cache_hit", "preprocessed_cache_hit"))
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
    """Run an sccache server for the time of one build, on a private socket; when it dies, the launcher compiles.

    `secrets` are the variables of the `store`, which only the server gets. The preprocessor runs for every request,
    because sccache's way around it returns the dependency file of another folder (docs/guides/build.md).
    """
    launcher = _launcher(folder)
    with tempfile.TemporaryDirectory(
        prefix="ortrim-", ignore_cleanup_errors=True
    ) as sockets:  # short: a socket's path has at most 107 bytes
        settings = {
            "SCCACHE_BASEDIRS": os.pathsep.join(map(str, base_folders)),
            "SCCACHE_CONF": os.devnull,
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
                use=lambda: _sccache_use(program, settings),
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
        raise ToolError(error.code, error.what, where=error.where, why=why) from None


def _sccache_use(program: Path, environment: Mapping[str, str]) -> CompilerCacheUse | None:
    try:
        stats = json.loads(ask(program, environment, "--show-stats", "--stats-format=json").stdout)["stats"]
        hits, requests = sum(stats["cache_hits"]["counts"].values()), int(stats["requests_executed"])
    except (ToolError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return CompilerCacheUse(hits=hits, requests=requests)


@contextmanager
def compiler_cache(
    programs: Path, folder: Path, base_folders: tuple[Path, ...], on_note: Callable[[str], None], *, stores: bool = True
) -> Iterator[CompilerCache | None]:
    """Keep a compiler cache ready for the time of one build; None when none can be used, which `on_note` is told.

    `programs` holds `ccache` and `sccache`; objects lie below `folder`. All of sources, build and tools lies below
    `base_folders`. The user's environment may name a store that a team shares; no `stores` leaves it out.
    """
    with ExitStack() as stack:
        cache = None
        for attempt in _attempts(programs, folder, base_folders, stores=stores):
            try:
                cache = stack.enter_context(attempt)
                break
            except (Diagnostic, OSError) as error:
                told = f"{error.where} {error.what}: {error.why}" if isinstance(error, Diagnostic) else str(error)
                on_note(f"compiler cache: {' '.join(told.split())}")
        yield cache


def _attempts(
    programs: Path, folder: Path, base_folders: tuple[Path, ...], *, stores: bool
) -> Iterator[AbstractContextManager[CompilerCache]]:
    """Yield the caches to try: the team's by either program, then this machine's; that alone without stores."""
    here, wishes = partial(ccache, programs / "ccache", folder / "ccache", base_folders), ccache_settings(os.environ)
    if not stores:
        yield here({name: value for name, value in wishes.items() if name == "max_size"})
        return
    if backend := chosen_backend(os.environ):
        secrets = backend_variables(os.environ)
        yield sccache(programs / "sccache", folder / "sccache", base_folders, backend.name, secrets)
    if wishes:
        yield here(wishes)
    yield here({})
