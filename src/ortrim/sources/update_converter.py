"""Pinning the full ONNX Runtime of a version, which converts models: its wheels and those that it needs."""

from collections.abc import Callable
from typing import Final

from ortrim.errors import SourcesError
from ortrim.tools.foreign_runtime import WHEEL_PLATFORMS
from ortrim.tools.full_runtime import DISTRIBUTION
from ortrim.tools.resolving import Resolved, resolved

PYTHONS: Final = ("3.11", "3.12", "3.13")
"""Those that ortrim runs on."""
MACHINE: Final = WHEEL_PLATFORMS["x64"]
OTHER_MACHINES: Final = (WHEEL_PLATFORMS["arm64"], ("macosx_14_0_arm64",))
"""Whose digests are pinned, too, where there are wheels for them: hosts, and baselines of targets."""
Found = dict[tuple[str, str], dict[str, set[str]]]
"""By name and version: by Python, the digests of the wheels."""


def converter_text(version: str, announce: Callable[[str], None]) -> str:
    """Return a requirements file for the full runtime of one version, with the digest of every wheel.

    Versions of what it needs are those that pip takes on each Python on x86-64. Raises `SourcesError` `no-converter`
    when there is no wheel for any Python that ortrim runs on, and as `resolved` does.
    """
    found: Found = {}
    for python in PYTHONS:
        announce(f"ask the package index for {DISTRIBUTION} {version} for Python {python}")
        _add(found, python, version)
    pythons = {python for digests in found.values() for python in digests}
    if not pythons:
        what = f"the package index has no wheel of {DISTRIBUTION} {version} for Python {', '.join(PYTHONS)}"
        hint = "wait until it is published there; without it no model can be converted"
        raise SourcesError("no-converter", what, where=DISTRIBUTION, hint=hint)
    head = f"# The full ONNX Runtime {version} for converting models. Made by: invoke pins.update --latest\n"
    return head + "".join(_entry(*key, digests, pythons) for key, digests in sorted(found.items()))


def _add(found: Found, python: str, version: str) -> None:
    taken = resolved([f"{DISTRIBUTION}=={version}"], python, MACHINE)
    if taken is None:
        return
    exactly = [f"{wheel.name}=={wheel.version}" for wheel in taken]
    others = (resolved(exactly, python, machine, dependencies=False) or () for machine in OTHER_MACHINES)
    for wheel in (*taken, *(wheel for wheels in others for wheel in wheels)):
        found.setdefault(_key(wheel), {}).setdefault(python, set()).add(wheel.sha256)


def _key(wheel: Resolved) -> tuple[str, str]:
    return wheel.name, wheel.version


def _entry(name: str, version: str, digests: dict[str, set[str]], pythons: set[str]) -> str:
    """Write one requirement; one that not all Pythons take says which do."""
    named = " or ".join(f"python_version == '{python}'" for python in sorted(digests))
    marker = "" if set(digests) == pythons else f" ; {named}"
    hashes = sorted({digest for each in digests.values() for digest in each})
    return " \\\n    ".join([f"{name}=={version}{marker}", *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n"
