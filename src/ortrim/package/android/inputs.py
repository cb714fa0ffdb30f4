"""What an AAR is made from, and the checks that its ABIs belong together."""

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import JobResult
from ortrim.core.plan import AndroidBuild, BuildJob, digest
from ortrim.core.targets import ABIS
from ortrim.errors import PackageError
from ortrim.package.inputs import PackageInputs, check_inputs

RUNTIME: Final = "libonnxruntime.so"
BINDING: Final = "libonnxruntime4j_jni.so"
SHARED_STL: Final = "libc++_shared.so"
SYMBOLS_SUFFIX: Final = ".sym"
GROUP: Final = "ortrim"
DIGEST_LETTERS: Final = 12


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """What an app names an AAR by: `group:artifact:version`.

    The version holds a digest of all that the bytes depend on, so that it is new whenever they may be: Gradle keeps
    what it fetched. That is the plan, and what of this machine the bytes come from: javac, and the zlib of Python.
    """

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, kw_only=True)
class AarPart:
    """One ABI of an AAR: the inputs of its target's package, and its JNI library.

    `symbols` are libraries with their symbol tables, each named as the library with `.sym` behind it.
    """

    inputs: PackageInputs
    binding: Path
    symbols: tuple[Path, ...] = ()

    @property
    def abi(self) -> str:
        """The ABI's name, which is that of its folders."""
        return ABIS[self.inputs.job.target.architecture]

    @property
    def android(self) -> AndroidBuild:
        """What the libraries are built for."""
        assert self.inputs.job.android is not None
        return self.inputs.job.android

    @property
    def libraries(self) -> tuple[tuple[str, Path], ...]:
        """The libraries by name: runtime, JNI library, and the C++ library when that is shared."""
        result = self.inputs.result
        companions = ((path.name, path) for path in companions_of(self.inputs.job, result))
        return ((RUNTIME, result.library), (BINDING, self.binding), *companions)


@dataclass(frozen=True, kw_only=True)
class AarInputs:
    """All that an AAR is made from: its ABIs, upstream's Java files, and whether the models go in as assets.

    `java` are the folders with the sources of the Java API; `ndk` is the version of the NDK, such as `27.2.12479018`.
    """

    parts: tuple[AarPart, ...]
    java: tuple[Path, ...]
    ndk: str
    models_as_assets: bool = False

    @property
    def first(self) -> PackageInputs:
        """The inputs of the first ABI, for what is the same in all."""
        return self.parts[0].inputs

    @property
    def name(self) -> str:
        """Name of the package: of its folder and, with suffixes, of the files in it."""
        return f"ortrim-{self.first.plan.spec_name}-android-{self.first.plan.ort_version}"

    def coordinates(self, javac: str) -> Coordinates:
        """Return what an app names the AAR by, given the version of the compiler that makes its classes."""
        plan = self.first.plan
        origins = "\0".join((digest(plan), javac, zlib.ZLIB_RUNTIME_VERSION))
        version = f"{plan.ort_version}-{hashlib.sha256(origins.encode()).hexdigest()[:DIGEST_LETTERS]}"
        return Coordinates(group=GROUP, artifact=f"onnxruntime-{plan.spec_name}", version=version)

    @property
    def api(self) -> int:
        """The API level that every ABI runs on: the highest of theirs."""
        return max(part.android.api for part in self.parts)


def companions_of(job: BuildJob, result: JobResult) -> tuple[Path, ...]:
    """Return the libraries that a build left for its library to need: the C++ library, unless that is inside."""
    shared = job.android is not None and job.android.stl == "c++_shared"
    return (result.folder / SHARED_STL,) if shared else ()


def check_aar_inputs(inputs: AarInputs) -> None:
    """Refuse inputs that are absent or do not belong together.

    Raises `PackageError` (`no-abi`, `not-android`, `mixed-builds`, and those of `check_inputs`).
    """
    if not inputs.parts:
        raise PackageError("no-abi", "an AAR needs at least one ABI", hint="build an android target first")
    for part in inputs.parts:
        check_inputs(part.inputs)
        if part.inputs.job.android is None:
            what = "this target is not one for Android"
            hint = "an AAR takes the targets android-<abi>"
            raise PackageError("not-android", what, where=part.inputs.job.target.identifier, hint=hint)
        _check_files(part)
    _check_agreement(inputs)


def _check_files(part: AarPart) -> None:
    for path in (*(path for _, path in part.libraries), *part.symbols):
        if not path.is_file():
            what, hint = "a library of the AAR is not there", "build the target again"
            raise PackageError("package-input-missing", what, where=str(path), hint=hint)


def _check_agreement(inputs: AarInputs) -> None:
    first = inputs.parts[0]
    for part in inputs.parts[1:]:
        same = (part.inputs.plan, part.android.stl) == (first.inputs.plan, first.android.stl)
        if not same or [each.abi for each in inputs.parts].count(part.abi) > 1:
            what = "the ABIs of an AAR are of one plan, each there once, with one C++ library"
            raise PackageError("mixed-builds", what, where=part.abi, hint="run: invoke build --target 'android*'")
