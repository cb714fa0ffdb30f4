"""What Android provides after the build: one AAR of all ABIs that is fit to ship, and the phones that run it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.binaries.elf import read_library
from ortrim.buildspec.targets import ABIS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.size.library import library_size
from ortrim.package.aar_contents import AarFacts, AbiSize, read_aar
from ortrim.package.manifest import PackageInputs
from ortrim.parity.measurements import Comparison, Gate, Verdict
from ortrim.platforms.android.aar import (
    FOLDERS,
    AarInputs,
    AarPart,
    AndroidPackage,
    companions_of,
    make_android_package,
)
from ortrim.platforms.android.gates import check_aar, require_sound_aar
from ortrim.platforms.android.jni import JAVA, Jdk, JniLibrary, build_jni_library, chosen_jdk
from ortrim.platforms.android.rules import Promise
from ortrim.platforms.platform import Packaging, tensor_gates
from ortrim.verify.verification import Delivery


def deliver(packaging: Packaging) -> list[Delivery]:
    """Compile the JNI library of each ABI, and make one AAR of all; without a JDK one that has no Java API."""
    assembly, parts = packaging.assembly, []
    assert assembly is not None
    jdk = chosen_jdk(wanted=assembly.java)
    for part in packaging.parts:
        binding = None
        if jdk is not None:
            packaging.step.progress(0, 0, f"JNI library of {part.job.target.identifier}")
            binding = build_jni_library(part.job, part.result, packaging.executor_of(part.job), jdk)
        parts.append(aar_part(part, binding))
    packaging.step.progress(0, 0, "classes and AAR" if jdk else "AAR without the Java API")
    assets = assembly.models_as_assets
    sound = deliver_aar(parts, packaging.sources, jdk, packaging.folder, models_as_assets=assets)
    packaging.step.note(f"{sound.package.folder}: {sound.package.manifest.coordinates}")
    return [delivery(part, sound) for part in packaging.parts]


@dataclass(frozen=True, kw_only=True)
class ValidatedAar:
    """An AAR that passed every gate, with what was read from it."""

    package: AndroidPackage
    facts: AarFacts
    gates: tuple[Gate, ...]


def aar_part(inputs: PackageInputs, binding: JniLibrary | None) -> AarPart:
    """Return one ABI of an AAR: what its build left, and the JNI library unless it has no Java API."""
    symbols = (inputs.result.symbols, binding.symbols if binding else None)
    return AarPart(
        inputs=inputs,
        binding=binding.library if binding else None,
        symbols=tuple(path for path in symbols if path is not None and path.is_file()),
    )


def deliver_aar(
    parts: Sequence[AarPart], sources: Path, jdk: Jdk | None, destination: Path, *, models_as_assets: bool = False
) -> ValidatedAar:
    """Make the AAR of all ABIs with everything beside it, in the folder `destination`, and pass it through every gate.

    `sources` is the folder of the source tree; without a `jdk` the AAR has no Java API. Raises as
    `make_android_package` does, and a `DiagnosticGroup` of all that is wrong with the AAR; the package is then gone.
    """
    inputs = AarInputs(
        parts=tuple(parts),
        java=tuple(sources / JAVA / name for name in FOLDERS),
        ndk=_ndk_of(parts[0].inputs.job) if parts else "",
        models_as_assets=models_as_assets,
    )
    package = make_android_package(inputs, jdk, destination)
    abis = tuple(part.abi for part in parts)
    promise = Promise(api_level=inputs.api, abis=abis, whole_relro=True, java=jdk is not None)
    try:
        facts = read_aar(package.aar)
        require_sound_aar(facts, promise)
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(package.folder)
        raise
    return ValidatedAar(package=package, facts=facts, gates=check_aar(facts, promise))


def _ndk_of(job: BuildJob) -> str:
    return job.toolchain.version if job.toolchain.kind == "ndk" else ""


AAR_SIZES: Final = (
    ("libraries of the ABI", "library_bytes"),
    ("libraries in the AAR", "compressed_bytes"),
    ("app's download", "download_bytes"),
)
"""Measures of a report -> what `AbiSize` calls them."""


def delivery(part: PackageInputs, sound: ValidatedAar) -> Delivery:
    """Return what an AAR holds for one ABI; its gates are those of the whole AAR."""
    job, result = part.job, part.result
    sizes = next(size for size in sound.facts.sizes if size.abi == ABIS[job.target.architecture])
    return Delivery(
        archive=sound.package.aar,
        library=result.library,
        facts=read_library(result.library),
        gates=(*sound.gates, *tensor_gates(part)),
        size=library_size(result.library, result.link_map),
        sizes=tuple(_size_line(measure, sizes, name) for measure, name in AAR_SIZES),
        companions=companions_of(job, result),
    )


def _size_line(measure: str, sizes: AbiSize, name: str) -> Comparison:
    """Return a line of the report that tells a size; budgets are for the runtime's library, as on other systems."""
    return Comparison(
        measure=measure,
        model="",
        unit="bytes",
        ours=getattr(sizes, name),
        baseline=None,
        ratio=None,
        spread=None,
        budget=None,
        budget_is_ratio=False,
        verdict=Verdict.NOT_JUDGED,
    )
