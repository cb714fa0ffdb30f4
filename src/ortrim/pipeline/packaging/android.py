"""From the finished builds of some ABIs to one AAR that is fit to ship."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ortrim.binaries.aar import read_aar
from ortrim.core.aar import AarFacts
from ortrim.core.measurements import Gate
from ortrim.executors.jni import JAVA, JniLibrary
from ortrim.package.android.classes import FOLDERS
from ortrim.package.android.inputs import AarInputs, AarPart
from ortrim.package.android.layout import AndroidPackage, make_android_package
from ortrim.package.inputs import PackageInputs
from ortrim.platforms.android import SYMBOLS
from ortrim.tools.javac import Jdk
from ortrim.verify.android.gates import check_aar, require_sound_aar
from ortrim.verify.android.rules import Promise


@dataclass(frozen=True, kw_only=True)
class SoundAar:
    """An AAR that passed every gate, with what was read from it."""

    package: AndroidPackage
    facts: AarFacts
    gates: tuple[Gate, ...]


def aar_part(inputs: PackageInputs, binding: JniLibrary) -> AarPart:
    """Return one ABI of an AAR: what its build left, and the JNI library."""
    symbols = (inputs.result.folder / SYMBOLS, binding.symbols)
    return AarPart(
        inputs=inputs,
        binding=binding.library,
        symbols=tuple(path for path in symbols if path is not None and path.is_file()),
    )


def deliver_aar(
    parts: Sequence[AarPart], sources: Path, jdk: Jdk, destination: Path, *, models_as_assets: bool = False
) -> SoundAar:
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
    promise = Promise(api_level=inputs.api, abis=tuple(part.abi for part in parts), whole_relro=True)
    try:
        facts = read_aar(package.aar)
        require_sound_aar(facts, promise)
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(package.folder)
        raise
    return SoundAar(package=package, facts=facts, gates=check_aar(facts, promise))
