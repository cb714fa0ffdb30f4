"""Requirements files in which each wheel is pinned by its digest, for every Python and machine that has one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ortrim.errors import SourcesError
from ortrim.tools.foreign_runtime import WHEEL_PLATFORMS
from ortrim.tools.resolving import Resolved, resolved

PYTHONS: Final = ("3.11", "3.12", "3.13")
"""Those that ortrim runs on."""
MACHINE: Final = WHEEL_PLATFORMS["x64"]
OTHER_MACHINES: Final = (WHEEL_PLATFORMS["arm64"], ("macosx_14_0_arm64",))
"""Whose digests are pinned, too, where there are wheels for them: hosts, and baselines of targets."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
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


def pinned_text(wanted: Wanted, announce: Callable[[str], None]) -> str:
    """Return the lines of a requirements file, with the newest versions that pip takes.

    Raises `SourcesError` (`no-wheel`) when there is no wheel for any of the Pythons, and as `resolved` does.
    """
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


def _wheels(wanted: Wanted, python: str) -> Iterator[Resolved]:
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
