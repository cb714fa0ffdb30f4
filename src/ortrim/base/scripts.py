"""Running our stand-alone scripts in a Python of their own, with packages that pip installs by their pins."""

import hashlib
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.base.build_bundle import WHEELS, site_bundle
from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.command import Completed, is_shortage, last_lines, out_of_memory, run, signal_name
from ortrim.base.files import disk_full, require_space, says_full, shipped_folder, storage_errors
from ortrim.base.tools import causes, diagnose, is_untrusted, untrusted
from ortrim.errors import Diagnostic, ToolError


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A CPython on this machine: its program, and its version to the second number."""

    program: str
    version: tuple[int, int]

    @property
    def tag(self) -> str:
        """The words for it and this machine, which wheels are for."""
        return f"cp{self.version[0]}{self.version[1]}-{sysconfig.get_platform()}"

    @property
    def isolated(self) -> tuple[str, ...]:
        """The words that start it without site packages; to be run with `scripts.environment_with`."""
        return (self.program, "-S", "-s")


OWN: Final = Interpreter(program=sys.executable, version=sys.version_info[:2])
TOOL_CACHES: Final = ("RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY")
"""Where GitHub's runners keep Pythons beside the one on PATH: `Python/VERSION/MACHINE/bin`."""
PROBE: Final = """\
import sys, sysconfig
print(sys.implementation.name, *sys.version_info[:2], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
"""


def find_interpreter(
    versions: tuple[tuple[int, int], ...], environment: Mapping[str, str] = os.environ
) -> Interpreter | None:
    """Return a CPython with the usual ABI of the first of these versions that there is, on PATH or in a tool cache."""
    for version in versions:
        for program in _programs(version, environment):
            if os.access(program, os.X_OK) and _probe_answer(program) == f"cpython {version[0]} {version[1]} 0":
                return Interpreter(program=str(program), version=version)
    return None


def _programs(version: tuple[int, int], environment: Mapping[str, str]) -> Iterator[Path]:
    number = f"{version[0]}.{version[1]}"
    yield from (Path(folder) / f"python{number}" for folder in os.get_exec_path(environment))
    for cache in filter(None, map(environment.get, TOOL_CACHES)):
        yield from sorted(Path(cache, "Python").glob(f"{number}.*/*/bin/python{number}"))


def _probe_answer(program: Path) -> str:
    try:
        return run((program, "-I", "-c", PROBE), timeout_seconds=20).stdout.strip()
    except ToolError:
        return ""


SCRIPTS: Final = shipped_folder("scripts")
TIMEOUT_SECONDS: Final = 1800
LAST_LINES: Final = 8
OUT_OF_SPACE: Final = "a program that works on the model ran out of disk space"
LONGEST_WORDS: Final = 300
SAFE_PATH: Final = "-P"
"""Keeps the folder of our scripts off the search path, where a name of theirs could hide a package."""


@dataclass(frozen=True, kw_only=True)
class Python:
    """A Python: the words that start it, and its environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class ScriptCrash(Exception):
    """A script ended without an answer: `ending` in words, such as "crashed (SIGSEGV)", and its last lines."""

    def __init__(self, ending: str, last_lines: str) -> None:
        super().__init__(ending)
        self.ending = ending
        self.last_lines = last_lines


def run_script(
    python: Python,
    script: Path,
    request: Mapping[str, object],
    *,
    folder: Path,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run `script` on `request` and return its answer.

    It is a program of its own, so that its crash is not ours (`ScriptCrash`) and what it prints stays off our output.
    It sets a request's `memory_bytes` itself as a limit.
    """
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as working:
        request_path = Path(working) / "request.json"
        request_path.write_text(json.dumps(dict(request)), encoding="utf-8")
        words: tuple[str | Path, ...] = (*python.words, SAFE_PATH, script, request_path)
        done = run(words, environment=python.environment, cwd=Path(working), timeout_seconds=timeout_seconds)
        said, own_limit = _said(done, Path(working) / "answer.json"), request.get("memory_bytes")
        if is_shortage(said, own_limit if isinstance(own_limit, int) else None):
            raise out_of_memory(script.stem, said.rpartition("\n")[2][:LONGEST_WORDS])
        try:
            answer = _answer(done, Path(working) / "answer.json")
        except ScriptCrash as crash:
            if says_full(folder, crash.last_lines):
                raise disk_full(OUT_OF_SPACE, folder, why=crash.last_lines.rpartition("\n")[2]) from crash
            raise
        if "failure" in answer and says_full(folder, json.dumps(answer)):
            raise disk_full(OUT_OF_SPACE, folder, why=str(answer.get("words") or answer["failure"]))
        return answer


def _said(done: Completed, path: Path) -> str:
    """Return what a script answered, or else what it printed last."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return (done.stderr or done.stdout).strip()


def _answer(done: Completed, path: Path) -> dict[str, Any]:
    said = last_lines(done.stderr or done.stdout, LAST_LINES)
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        raise ScriptCrash(ending(done.returncode), said) from error
    if not isinstance(answer, dict):
        raise ScriptCrash("gave no answer", said)
    return answer


def ending(returncode: int) -> str:
    """Say how a program ended: "crashed (SIGSEGV)"."""
    return f"ended with exit code {returncode}" if returncode >= 0 else f"crashed ({signal_name(returncode)})"


INSTALLED_BYTES: Final = {"tools": 534_000_000}
"""What takes much when it is installed: the toolchain of 1.21.0, with zig."""
PIP_SILENT_SECONDS: Final = 1800
"""pip says a line for each wheel that it begins, and gives up by itself on a network that is silent for 15 s."""
FOREIGN_PYTHON: Final = "312"
"""The Python whose wheels are taken for another machine, where nothing of them is run by a Python."""


def packages_folder(
    name: str, requirements: str, *, platforms: tuple[str, ...] = (), python: Interpreter = OWN
) -> Path:
    """Return the folder that holds exactly `requirements`, installing them when it is not there yet.

    Every line of `requirements` is pinned with hashes; only wheels are taken, for this machine and `python`, or for the
    first of the `platforms`, in the words of wheels' names (`manylinux_2_28_aarch64`).
    """
    tag = f"cp{FOREIGN_PYTHON}-{platforms[0]}" if platforms else python.tag
    digest = hashlib.sha256(requirements.encode()).hexdigest()[:16]
    folder = cache_folder("packages") / f"{name}-{tag}-{digest}"
    cached_folder(folder, lambda temporary: _install(name, requirements, temporary, platforms, python), large=True)
    return folder


ISOLATED_PYTHON: Final = OWN.isolated
"""The words that start this Python without site packages; to be run with `environment_with`."""


PASSED_VARIABLES: Final = ("SYSTEMROOT", "TEMP", "TMP", "LOCPATH")
"""Without the first, no Python can start on Windows; its folder for temporary files is named by the next ones. The last
names the folder of glibc's locales, which models with StringNormalizer need."""


def environment_with(folder: Path) -> dict[str, str]:
    """Return the environment for a Python that sees only the standard library and the packages of `folder`."""
    needed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**needed, **own, "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "PATH": "/usr/bin:/bin"}


def _install(name: str, requirements: str, temporary: Path, platforms: tuple[str, ...], python: Interpreter) -> None:
    require_space(temporary.parent, INSTALLED_BYTES.get(name, 0), f"installing '{name}'")
    _run_pip(("install", "--target", temporary), name, requirements, temporary, platforms, python=python)


def download_wheels(
    name: str, requirements: str, folder: Path, *, platforms: tuple[str, ...] = (), python: Interpreter = OWN
) -> None:
    """Put the wheels into `folder` that `packages_folder` would install."""
    _run_pip(("download", "--dest", folder), name, requirements, folder, platforms, python=python)


def _run_pip(
    task: tuple[str | Path, ...],
    name: str,
    requirements: str,
    folder: Path,
    platforms: tuple[str, ...],
    *,
    python: Interpreter,
) -> None:
    """Let our pip take wheels, from the bundle alone if there is one, and leave nothing else in `folder`."""
    elsewhere = () if python == OWN else ("--python", python.program)
    command = (sys.executable, "-m", "pip", *elsewhere, *task, "--disable-pip-version-check", "--no-deps", "--no-input")
    foreign = ("--implementation", "cp", "--python-version", FOREIGN_PYTHON) if platforms else ()
    machines = tuple(word for platform in platforms for word in ("--platform", platform))
    bundle = site_bundle()
    # In the system's temporary folder pip would need the same room once more.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pip-") as work:
        listing = Path(work) / "requirements.txt"
        listing.write_text(requirements, encoding="utf-8")
        options = ("--only-binary", ":all:", "--require-hashes", "--requirement", listing)
        offline: tuple[str | Path, ...] = ()
        environment = pip_environment()
        if bundle is not None:
            wheels = Path(work) / WHEELS
            wheels.mkdir()
            bundle.take_wheels(requirements, wheels)
            offline = ("--no-index", "--find-links", wheels)
            # The user's settings may name further places, on servers that are not to be asked.
            environment = {name: value for name, value in environment.items() if not name.startswith("PIP_")}
            environment["PIP_CONFIG_FILE"] = os.devnull
        words = (*command, *foreign, *machines, *options, *offline)
        done = run(words, environment={**environment, "TMPDIR": work}, silent_seconds=PIP_SILENT_SECONDS)
        if done.returncode == 0:
            return
        if bundle is not None and NOT_FOUND in done.stderr:
            lines = [line for line in done.stderr.splitlines() if NOT_FOUND in line]
            what, advice = f"does not hold the wheels of '{name}' for this Python", bundle.advice
            why = f"{lines[0].removeprefix('ERROR: ')}\n{advice['why']}"
            raise ToolError("bundle-lacks", what, where=str(bundle.path), why=why, hint=advice["hint"])
        raise install_error(name, done.stderr, folder)


NOT_FOUND: Final = "No matching distribution"
OVERRULING_VARIABLES: Final = (
    "PIP_CONSTRAINT",
    "PIP_NO_BINARY",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_USER",
)


def pip_environment() -> dict[str, str]:
    """Return the user's environment, in which the index and the proxy are named, without what bends `--target`."""
    return {name: value for name, value in os.environ.items() if name not in OVERRULING_VARIABLES}


def install_error(name: str, printed: str, folder: Path) -> Diagnostic:
    """Return what pip's own words mean: it has one exit code; `name` was to be installed into `folder`."""
    why = last_lines(printed)
    if says_full(folder, printed):
        return disk_full("pip ran out of disk space", folder, where=name, why=why)
    hint = "check that the package index has these versions for this Python, then run the same command again"
    unknown = ToolError("install-failed", "pip could not install the pinned packages", where=name, why=why, hint=hint)
    known = diagnose(printed, causes("pip"), name, why, python=sys.executable) or unknown
    # A certificate that is not trusted is why an index cannot be reached; it is not why a digest differs.
    is_reached = known.code in {"digest-mismatch", "pip-missing"}
    return untrusted(name, printed) if is_untrusted(printed) and not is_reached else known
