"""From the finished builds of some ABIs to one AAR that is fit to ship."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from ortrim.binaries.aar import read_aar
from ortrim.errors import DiagnosticGroup
from ortrim.executors.jni import JAVA, build_jni_library
from ortrim.executors.places import HERE, Place
from ortrim.executors.workspace import Inputs
from ortrim.package.android.classes import FOLDERS
from ortrim.package.android.inputs import AarInputs, AarPart
from ortrim.package.android.layout import AndroidPackage, make_android_package
from ortrim.package.inputs import PackageInputs
from ortrim.platforms.android import SYMBOLS
from ortrim.tools.javac import Jdk
from ortrim.verify.android_gates import require_sound_aar
from ortrim.verify.android_rules import Promise


def aar_part(inputs: PackageInputs, workspace: Inputs, jdk: Jdk, place: Place = HERE) -> AarPart:
    """Return one ABI of an AAR: what its build left, and the JNI library, compiled if it was not before.

    Raises as `build_jni_library` does.
    """
    binding = build_jni_library(inputs.job, inputs.result, workspace, jdk, place)
    symbols = (inputs.result.folder / SYMBOLS, binding.symbols)
    return AarPart(
        inputs=inputs,
        binding=binding.library,
        symbols=tuple(path for path in symbols if path is not None and path.is_file()),
    )


def deliver_aar(
    parts: Sequence[AarPart], sources: Path, jdk: Jdk, destination: Path, *, models_as_assets: bool = False
) -> AndroidPackage:
    """Make the AAR of all ABIs with everything beside it, in the folder `destination`, and pass it through every gate.

    `sources` is the folder of the source tree. Raises as `make_android_package` does, and a `DiagnosticGroup` of all
    that is wrong with the AAR; the package is then gone.
    """
    inputs = AarInputs(
        parts=tuple(parts),
        java=tuple(sources / JAVA / name for name in FOLDERS),
        ndk=parts[0].inputs.job.toolchain.version if parts else "",
        models_as_assets=models_as_assets,
    )
    package = make_android_package(inputs, jdk, destination)
    promise = Promise(api_level=inputs.api, abis=tuple(part.abi for part in parts), library_bytes=_budget(inputs))
    try:
        require_sound_aar(read_aar(package.aar), promise)
    except DiagnosticGroup:
        shutil.rmtree(package.folder)
        raise
    return package


def _budget(inputs: AarInputs) -> int | None:
    """Return the largest budget of the ABIs, None unless each has one."""
    targets = {target.job.target: target.budgets.library_bytes for target in inputs.first.plan.targets}
    given = [targets[part.inputs.job.target] for part in inputs.parts]
    return max((each for each in given if each is not None), default=None) if None not in given else None
