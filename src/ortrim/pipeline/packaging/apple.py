"""From the finished builds of some slices to one package for Apple's systems that is fit to ship."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.binaries.macho_library import read_apple_library
from ortrim.binaries.xcframework import read_xcframework
from ortrim.core.apple_package import AppleManifest
from ortrim.core.artifacts import JobResult
from ortrim.core.measurements import Gate
from ortrim.package.apple.inputs import OBJECTIVE_C, AppleInputs, ApplePart
from ortrim.package.apple.layout import ApplePackage, make_apple_package
from ortrim.package.inputs import PackageInputs
from ortrim.pipeline.packaging.apple_budgets import slice_budgets
from ortrim.platforms.apple import SYMBOLS
from ortrim.tools.codesign import find_codesign, sign
from ortrim.verify.apple.gates import check_xcframework, require_sound_xcframework
from ortrim.verify.apple.rules import ApplePromise
from ortrim.verify.subjects import Delivery

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


def apple_delivery(result: JobResult, sound: SoundXcframework) -> Delivery:
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
