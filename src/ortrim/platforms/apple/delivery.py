"""From the finished builds of some slices to one package for Apple's systems that is fit to ship, and what it holds."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.binaries.macho import read_apple_library
from ortrim.binaries.xcframework import read_xcframework
from ortrim.compiling.plan import JobResult
from ortrim.package.manifest import PackageInputs
from ortrim.parity.measurements import Gate
from ortrim.platforms.apple.arguments import SYMBOLS
from ortrim.platforms.apple.gates import check_xcframework, require_sound_xcframework
from ortrim.platforms.apple.inputs import OBJECTIVE_C, AppleInputs, AppleManifest, ApplePart
from ortrim.platforms.apple.package import ApplePackage, make_apple_package
from ortrim.platforms.apple.rules import ApplePromise
from ortrim.platforms.apple.xcode import find_codesign, sign
from ortrim.platforms.platform import Packaging
from ortrim.verify.verification import Delivery


def deliver(packaging: Packaging) -> list[Delivery]:
    """Make one package of all slices."""
    sound = deliver_apple(list(map(apple_part, packaging.parts)), packaging.sources, packaging.folder)
    packaging.step.note(f"{sound.package.folder}: checksum {sound.package.checksum}")
    return [delivery(part.result, sound) for part in packaging.parts]


def slice_budgets(inputs: AppleInputs) -> tuple[tuple[str, int], ...]:
    """Return the most bytes of each slice by its identifier: what its targets may take together, if each has a budget.

    A static library has none: its own bytes are relocations and names as well, which do not come into an app.
    """
    planned = {target.identifier: target.budgets for target in inputs.first.plan.targets}
    found = []
    for each in () if inputs.static else inputs.slices:
        limits = [planned[part.inputs.job.target.identifier].library_bytes for part in each.parts]
        known = [limit for limit in limits if limit is not None]
        if len(known) == len(limits):
            found.append((each.slice.identifier, sum(known)))
    return tuple(found)


IDENTITY: Final = "ORTRIM_CODESIGN_IDENTITY"
"""The environment variable that names who signs; nobody does without it."""


@dataclass(frozen=True, kw_only=True)
class SoundXcframework:
    """A package whose xcframework passed every gate, but for those of budgets."""

    package: ApplePackage
    gates: tuple[Gate, ...]


def apple_part(inputs: PackageInputs) -> ApplePart:
    """Return one architecture of a package: what its build left, with what a dSYM of it holds."""
    symbols = inputs.result.folder / SYMBOLS
    return ApplePart(inputs=inputs, symbols=symbols if symbols.is_file() else None)


def deliver_apple(
    parts: Sequence[ApplePart], sources: Path, destination: Path, environment: Mapping[str, str] = os.environ
) -> SoundXcframework:
    """Make the package of all slices in the folder `destination`, and pass its xcframework through every gate.

    `sources` is the folder of the source tree; the xcframework is signed if the environment names an identity. Raises
    as `make_apple_package` does, `ToolError` (`codesign-missing`) and `PackageError` (`not-signed`) where it is to be
    signed, and a `DiagnosticGroup` of all that is wrong with the xcframework. A package that has not passed is gone.
    """
    inputs = AppleInputs(parts=tuple(parts), objective_c=sources / "onnxruntime" / OBJECTIVE_C)
    package = make_apple_package(inputs, destination, _signing(environment.get(IDENTITY, "")))
    try:
        facts, promise = read_xcframework(package.xcframework), _promise(inputs, package)
        require_sound_xcframework(facts, replace(promise, budgets=()))  # those are for the report to judge
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(package.folder)
        raise
    return SoundXcframework(package=package, gates=check_xcframework(facts, promise))


def delivery(result: JobResult, sound: SoundXcframework) -> Delivery:
    """Return what a package holds for one of its targets; the gates are those of the whole xcframework."""
    facts, size = read_apple_library(result.library)
    return Delivery(
        archive=sound.package.xcframework, library=result.library, facts=facts, gates=sound.gates, size=size
    )


def _promise(inputs: AppleInputs, package: ApplePackage) -> ApplePromise:
    manifest: AppleManifest = package.manifest
    return ApplePromise(
        slices=tuple(each.slice for each in inputs.slices),
        minimum_os=tuple((f"{each.platform}-{each.variant}".rstrip("-"), each.minimum_os) for each in manifest.slices),
        version=manifest.ort_version,
        budgets=slice_budgets(inputs),
        package_swift=(package.swift_package / "Package.swift").read_text(encoding="utf-8"),
    )


def _signing(identity: str) -> Callable[[Path], None] | None:
    return partial(sign, find_codesign(), identity) if identity else None
