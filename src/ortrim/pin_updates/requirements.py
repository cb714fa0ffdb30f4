"""Requirements files in which each wheel is pinned by its digest, for every Python and machine that has one."""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ortrim.base.certificates import is_untrusted
from ortrim.base.command import run
from ortrim.base.scripts import install_error, pip_environment
from ortrim.errors import NetworkError, SourcesError
from ortrim.models.full_runtime import WHEEL_PLATFORMS

SECONDS: Final = 600
ABSENT: Final = ("No matching distribution", "not a supported wheel")
"""What pip says of a version that the index does not have, or has not for the Python and machine in question."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """One wheel that pip would take."""

    name: str
    version: str
    sha256: str


def resolved(
    requirements: Sequence[str], python: str, platforms: Sequence[str], *, dependencies: bool = True
) -> tuple[Resolved, ...] | None:
    """Return the wheels that pip would take for `python` (`3.12`) on `platforms`; None when a requirement has none."""
    with tempfile.TemporaryDirectory(prefix="ortrim-resolving-") as folder:
        report = Path(folder) / "report.json"
        where = ("--python-version", python, *(word for each in platforms for word in ("--platform", each)))
        options = ("--target", Path(folder) / "none", "--report", report, *(() if dependencies else ("--no-deps",)))
        done = run((*_COMMAND, *where, *options, *requirements), environment=pip_environment(), timeout_seconds=SECONDS)
        if done.returncode == 0:
            return _resolving_wheels(json.loads(report.read_text(encoding="utf-8")))
    unheard = "Retrying (" in done.stderr or is_untrusted(done.stderr)
    if any(words in done.stderr for words in ABSENT) and not unheard:
        return None
    raise install_error(requirements[0], done.stderr, Path(tempfile.gettempdir()))


_COMMAND: Final = (
    *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--ignore-installed", "--only-binary", ":all:", "--implementation", "cp"),
)


def _resolving_wheels(report: Any) -> tuple[Resolved, ...]:
    return tuple(sorted((_wheel(each) for each in report["install"]), key=lambda wheel: wheel.name))


def _wheel(entry: Any) -> Resolved:
    metadata = entry["metadata"]
    name, version = str(metadata["name"]).lower().replace("_", "-"), str(metadata["version"])
    digest = str(entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""))
    if not SHA256.fullmatch(digest):
        what, hint = (
            f"gives no SHA-256 of {name} {version}",
            "use an index that has it: pip config list shows the configured one",
        )
        raise NetworkError("bad-index-answer", what, where="the package index", hint=hint)
    return Resolved(name=name, version=version, sha256=digest)


PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""Those that ortrim runs on."""
MACHINE: Final = WHEEL_PLATFORMS["x64"]
OTHER_MACHINES: Final = (WHEEL_PLATFORMS["arm64"], ("macosx_14_0_arm64",))
"""Whose digests are pinned, too, where there are wheels for them: hosts, and baselines of targets."""


@dataclass(frozen=True, kw_only=True)
class WantedRequirement:
    """What a file pins: `packages` as pip takes them, with what they need unless they stand `alone`.

    `pythons` are tried on x86-64, which decides on the versions; wheels for other `machines` are pinned beside those.
    """

    packages: tuple[str, ...]
    alone: bool = False
    pythons: tuple[str, ...] = PYTHONS
    machines: tuple[Sequence[str], ...] = OTHER_MACHINES


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The digests of wheels by name and version, and by Python."""

    digests: dict[tuple[str, str], dict[str, set[str]]] = field(default_factory=dict)

    def add(self, wheel: Resolved, python: str) -> None:
        key = wheel.name, wheel.version
        self.digests.setdefault(key, {}).setdefault(python, set()).add(wheel.sha256)


def pinned_text(wanted: WantedRequirement, announce: Callable[[str], None]) -> str:
    """Return the lines of a requirements file, with the newest versions that pip takes."""
    found = _Found()
    for python in wanted.pythons:
        announce(f"ask the package index for {', '.join(wanted.packages)} for Python {python}")
        for wheel in _wheels(wanted, python):
            found.add(wheel, python)
    pythons = {python for digests in found.digests.values() for python in digests}
    if not pythons:
        names = ", ".join(wanted.packages)
        what = f"the package index has no wheel of {names} for Python {', '.join(wanted.pythons)}"
        raise SourcesError("no-wheel", what, where=wanted.packages[0], hint="wait until it is published there")
    return "".join(_entry(*key, digests, pythons) for key, digests in sorted(found.digests.items()))


def _wheels(wanted: WantedRequirement, python: str) -> Iterator[Resolved]:
    taken = resolved(wanted.packages, python, MACHINE, dependencies=not wanted.alone) or ()
    exactly = [f"{wheel.name}=={wheel.version}" for wheel in taken]
    yield from taken
    for machine in wanted.machines if exactly else ():
        yield from _elsewhere(exactly, python, machine)


def _elsewhere(exactly: Sequence[str], python: str, machine: Sequence[str]) -> Iterator[Resolved]:
    """Yield the wheels of another machine: all at once, or those that there are if some are missing."""
    together = resolved(exactly, python, machine, dependencies=False)
    if together is not None:
        yield from together
    elif len(exactly) > 1:
        for each in exactly:
            yield from resolved([each], python, machine, dependencies=False) or ()


def _entry(name: str, version: str, digests: dict[str, set[str]], pythons: set[str]) -> str:
    """Write one requirement; one that not all Pythons take says which do."""
    named = " or ".join(f"python_version == '{python}'" for python in sorted(digests))
    marker = "" if set(digests) == pythons else f" ; {named}"
    hashes = sorted({digest for each in digests.values() for digest in each})
    return " \\\n    ".join([f"{name}=={version}{marker}", *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n"
