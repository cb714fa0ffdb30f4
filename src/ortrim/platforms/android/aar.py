"""The AAR of all ABIs, and what an app team gets beside it: a Maven repository, plain libraries, symbols."""

import hashlib
import io
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import publish_folder
from ortrim.base.checksums import FileEntry
from ortrim.base.files import storage_errors
from ortrim.binaries.android import PAGE_BYTES
from ortrim.binaries.elf import build_id_of, read_library
from ortrim.buildspec.targets import ABIS
from ortrim.compiling.plan import AndroidBuild, BuildJob, JobResult, digest
from ortrim.errors import PackageError
from ortrim.package import manifest as manifests
from ortrim.package import package
from ortrim.package.aar_contents import AarFacts, AarLibraries, AarManifest, read_aar
from ortrim.package.manifest import PackagedFile, PackageInputs
from ortrim.package.package import json_content, rendered
from ortrim.parity.measurements import Comparison, Gate, Verdict
from ortrim.platforms.android import jni
from ortrim.platforms.android.arguments import LIBRARY, SHARED_STL
from ortrim.platforms.android.gates import Promise, check_aar, require_sound_aar
from ortrim.platforms.android.jni import SYMBOLS as JNI_SYMBOLS
from ortrim.platforms.platform import Packaging, tensor_gates
from ortrim.size.library import library_size
from ortrim.verify.target import Delivery

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
    """One ABI of an AAR: the inputs of its target's package, and its JNI library unless there is no Java API."""

    inputs: PackageInputs
    binding: Path | None

    @property
    def symbols(self) -> tuple[Path, ...]:
        """The libraries with their symbol tables that builds left, each named as the library with `.sym` behind it."""
        left = (self.inputs.result.symbols, self.binding.with_name(JNI_SYMBOLS) if self.binding else None)
        return tuple(path for path in left if path is not None and path.is_file())

    @property
    def abi(self) -> str:
        """The ABI's name, which is that of its folders."""
        return ABIS[self.inputs.job.target.architecture]

    @property
    def android(self) -> AndroidBuild:
        """What the libraries are built for."""
        return jni.android_build(self.inputs.job)

    @property
    def libraries(self) -> tuple[tuple[str, Path], ...]:
        """The libraries by name: runtime, JNI library, and the C++ library when that is shared."""
        result = self.inputs.result
        companions = ((path.name, path) for path in companions_of(self.inputs.job, result))
        binding = ((jni.BINDING, self.binding),) if self.binding else ()
        return ((LIBRARY, result.library), *binding, *companions)


@dataclass(frozen=True, kw_only=True)
class AarInputs:
    """All that an AAR is made from: its ABIs, upstream's Java files, and whether the models go in as assets.

    `java` are the folders with the sources of the Java API; `ndk` is the version of the NDK, such as `27.2.12479018`,
    empty where none compiled.
    """

    parts: tuple[AarPart, ...]
    java: tuple[Path, ...]
    ndk: str
    models_as_assets: bool = False

    @property
    def first(self) -> PackageInputs:
        """The inputs of the first ABI, for what is the same in all, with the sources and licences of all."""
        return manifests.joined_inputs(part.inputs for part in self.parts)

    @property
    def name(self) -> str:
        """Name of the package: of its folder and, with suffixes, of the files in it."""
        return f"ortrim-{self.first.plan.spec_name}-android-{self.first.plan.ort_version}"

    def coordinates(self, javac: str) -> Coordinates:
        """Return what an app names the AAR by, given the version of javac; empty without the Java API."""
        plan = self.first.plan
        origins = "\0".join((digest(plan), javac, zlib.ZLIB_RUNTIME_VERSION))
        version = f"{plan.ort_version}-{hashlib.sha256(origins.encode()).hexdigest()[:DIGEST_LETTERS]}"
        return Coordinates(group=GROUP, artifact=f"onnxruntime-android-{plan.spec_name}", version=version)

    @property
    def api(self) -> int:
        """The API level that every ABI runs on: the highest of theirs."""
        return max(part.android.api for part in self.parts)


def companions_of(job: BuildJob, result: JobResult) -> tuple[Path, ...]:
    """Return the libraries that a build left for its library to need: the C++ library, unless that is inside."""
    shared = job.android is not None and job.android.stl == "c++_shared"
    return (result.folder / SHARED_STL,) if shared else ()


def check_aar_inputs(inputs: AarInputs) -> None:
    """Refuse inputs that are absent or do not belong together."""
    if not inputs.parts:
        raise PackageError("no-abi", "an AAR needs at least one ABI", hint="build an android target first")
    for part in inputs.parts:
        manifests.check_inputs(part.inputs)
        if part.inputs.job.android is None:
            what = "this target is not one for Android"
            hint = "an AAR takes the targets android-<abi>"
            raise PackageError("not-android", what, where=part.inputs.job.target.identifier, hint=hint)
        files = (*(path for _, path in part.libraries), *part.symbols)
        manifests.require_files(files, what="a library of the AAR is not there")
    first = inputs.parts[0]
    for part in inputs.parts[1:]:
        same = (part.inputs.plan, part.android.stl) == (first.inputs.plan, first.android.stl)
        if not same or [each.abi for each in inputs.parts].count(part.abi) > 1:
            what = "the ABIs of an AAR come from one plan, each once, with the same C++ library"
            raise PackageError("mixed-builds", what, where=part.abi, hint="run: invoke build --target 'android*'")


MODULE: Final = "onnxruntime"
SCHEMA_VERSION: Final = 2


def prefab_files(inputs: AarInputs, headers: tuple[Path, ...]) -> tuple[PackagedFile, ...]:
    """Return the package's and the module's metadata, its headers, and each ABI's library with what it was built for.

    The version is upstream's alone, since CMake takes numbers only.
    """
    top = f"prefab/modules/{MODULE}"
    about = {
        "name": MODULE,
        "schema_version": SCHEMA_VERSION,
        "dependencies": [],
        "version": inputs.first.plan.ort_version,
    }
    module = {"export_libraries": [], "library_name": LIBRARY.removesuffix(".so"), "android": {}}
    return (
        PackagedFile(path="prefab/prefab.json", content=json_content(about)),
        PackagedFile(path=f"{top}/module.json", content=json_content(module)),
        *(PackagedFile(path=f"{top}/include/{path.name}", content=path) for path in headers),
        *(file for part in inputs.parts for file in _library(part, inputs.ndk, f"{top}/libs/android.{part.abi}")),
    )


def _library(part: AarPart, ndk: str, folder: str) -> tuple[PackagedFile, ...]:
    # A C++ library inside, which nothing of the interface shows, is none to Prefab: it refuses `c++_static` to all.
    stl = "none" if part.android.stl == "c++_static" else part.android.stl
    about = {
        "abi": part.abi,
        "api": part.android.api,
        "ndk": int(ndk.partition(".")[0] or OLDEST_NDK),
        "stl": stl,
        "static": False,
    }
    return (
        PackagedFile(path=f"{folder}/abi.json", content=json_content(about)),
        PackagedFile(path=f"{folder}/{LIBRARY}", content=part.inputs.result.library),
    )


OLDEST_NDK: Final = "21"
"""Prefab wants a number of every library; a C interface is the same to all NDKs."""
FOLDERS: Final = ("java", "android")
"""Of `java/src/main`: the API, and what stands in for a desktop's Java, as in upstream's `build-android.gradle`."""
MANIFEST: Final = b"Manifest-Version: 1.0\r\n\r\n"


def classes_jar(jdk: jni.Jdk | None, folders: Sequence[Path]) -> bytes:
    """Compile all Java files below some folders, and return the classes as a jar: without a JDK an empty one.

    The same sources and the same version of javac give the same bytes.
    """
    if jdk is None:
        return _jar(())
    sources = sorted(path for folder in folders for path in folder.rglob("*.java"))
    if not sources:
        where, hint = ", ".join(map(str, folders)), "remove ortrim's cache of sources, and run the same command again"
        raise PackageError("java-sources-missing", "there are no Java files", where=where, hint=hint)
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-java-") as work:
        classes = Path(work) / "classes"
        classes.mkdir()
        jni.compile_java(jdk, sources, classes, Path(work) / "headers")
        found = sorted(classes.rglob("*.class"))
        return _jar([PackagedFile(path=path.relative_to(classes).as_posix(), content=path) for path in found])


def _jar(files: Sequence[PackagedFile]) -> bytes:
    buffer = io.BytesIO()
    package.fill_zip(buffer, (PackagedFile(path=package.JAR_MANIFEST, content=MANIFEST), *files))
    return buffer.getvalue()


OWN_FOLDER: Final = "META-INF/ortrim"
"""What Android Gradle Plugin does not know of in an AAR it leaves alone; nothing of it gets into an app."""
METADATA: Final = "META-INF/com/android/build/gradle/aar-metadata.properties"
METADATA_TEXT: Final = b"""\
aarFormatVersion=1.0
aarMetadataVersion=1.0
minCompileSdk=1
minCompileSdkExtension=0
minAndroidGradlePluginVersion=1.0.0
"""
CLASSES: Final = "classes.jar"
RULES: Final = "proguard.txt"
KEEP_RULES: Final = b"""\
# The JNI library looks for these classes, their constructors and their fields by name.
-keep class ai.onnxruntime.** { *; }
"""


def aar_content(inputs: AarInputs, jdk: jni.Jdk | None) -> tuple[tuple[PackagedFile, ...], AarManifest]:
    """Return all that goes into an AAR, and what it says of itself; without a JDK there is no Java API among it."""
    payload = _payload(inputs, jdk)
    package.check_paths(file.path for file in payload)
    for part in inputs.parts:
        manifests.refuse_machine_paths(part.inputs, payload)
    return manifests.described(
        inputs.first, inputs.name, payload, lambda entries: _manifest(inputs, jdk, entries), f"{OWN_FOLDER}/"
    )


def _payload(inputs: AarInputs, jdk: jni.Jdk | None) -> tuple[PackagedFile, ...]:
    first, headers = inputs.first, inputs.first.headers
    models = package.model_files(first, "assets/models") if inputs.models_as_assets else ()
    return (
        PackagedFile(
            path="AndroidManifest.xml", content=rendered("android/AndroidManifest.xml.j2", {"api": inputs.api})
        ),
        PackagedFile(path="R.txt", content=b""),
        PackagedFile(path=CLASSES, content=classes_jar(jdk, inputs.java)),
        *((PackagedFile(path=RULES, content=KEEP_RULES),) if jdk else ()),
        PackagedFile(path=METADATA, content=METADATA_TEXT),
        *_libraries_below("jni", inputs),
        *(PackagedFile(path=f"headers/{path.name}", content=path) for path in headers),
        *prefab_files(inputs, headers),
        *models,
        PackagedFile(path=f"{OWN_FOLDER}/LICENSE", content=package.plain_text(first.licence)),
        PackagedFile(path=f"{OWN_FOLDER}/ThirdPartyNotices.txt", content=package.notices_text(first)),
    )


def _manifest(inputs: AarInputs, jdk: jni.Jdk | None, files: tuple[FileEntry, ...]) -> AarManifest:
    shared = manifests.shared_facts(inputs.first, files)
    javac = (("javac", jdk.version),) if jdk else ()
    return AarManifest(
        **shared | {"tools": tuple(sorted((*shared["tools"], *javac)))},
        name=inputs.name,
        coordinates=str(inputs.coordinates(jdk.version if jdk else "")),
        api_level=inputs.api,
        page_bytes=PAGE_BYTES,
        ndk=inputs.ndk,
        stl=inputs.parts[0].android.stl,
        java=jdk is not None,
        abis=tuple(_libraries(part) for part in inputs.parts),
    )


def _libraries(part: AarPart) -> AarLibraries:
    return AarLibraries(
        **manifests.library_facts(part.inputs.job),
        abi=part.abi,
        build_ids=tuple((name, build_id_of(path) or "") for name, path in part.libraries),
    )


def symbol_files(inputs: AarInputs) -> tuple[PackagedFile, ...]:
    """Return the unstripped libraries, twice by name: as debuggers look for them, and as Play's console takes them.

    `.build-id/ab/cdef.debug` is what lldb, llvm-symbolizer and debuginfod look for; `<abi>/<library>.sym` is the layout
    of a symbols zip that Play takes.
    """
    files = []
    for part in inputs.parts:
        shipped = dict(part.libraries)
        for path in part.symbols:
            files.append(manifests.debug_file(shipped[path.name.removesuffix(SYMBOLS_SUFFIX)], path))
            files.append(PackagedFile(path=f"{part.abi}/{path.name}", content=path))
    return tuple(files)


DIGESTS: Final = ("md5", "sha1", "sha256", "sha512")
"""Maven checks the first two, Gradle all."""
VARIANTS: Final = (("releaseApiElements", "java-api"), ("releaseRuntimeElements", "java-runtime"))
OFFICIAL: Final = ("com.microsoft.onnxruntime", "onnxruntime-android")
"""The AAR that ours replaces, by group and name: an app has one or the other."""
ATTRIBUTES: Final = {
    "org.gradle.category": "library",
    "org.gradle.dependency.bundling": "external",
    "org.gradle.libraryelements": "aar",
}


def repository_files(inputs: AarInputs, coordinates: Coordinates, aar: Path) -> tuple[PackagedFile, ...]:
    """Return the files of the repository, by path from its top: the AAR, what describes it, and their digests.

    `.module` is Gradle's own description, to which the POM refers; `maven-metadata.xml` lists the one version.
    """
    top = f"{coordinates.group.replace('.', '/')}/{coordinates.artifact}"
    stem = f"{top}/{coordinates.version}/{coordinates.artifact}-{coordinates.version}"
    values = {
        "coordinates": coordinates,
        "ort_version": inputs.first.plan.ort_version,
        "spec_name": inputs.first.plan.spec_name,
        "plan_digest": digest(inputs.first.plan)[:DIGEST_LETTERS],
        "licences": manifests.all_licences(inputs.first),
    }
    files = (
        PackagedFile(path=f"{stem}.aar", content=aar),
        PackagedFile(path=f"{stem}.pom", content=rendered("android/pom.xml.j2", values)),
        PackagedFile(path=f"{stem}.module", content=_module(coordinates, inputs.first.plan.ort_version, aar)),
        PackagedFile(path=f"{top}/maven-metadata.xml", content=rendered("android/maven-metadata.xml.j2", values)),
    )
    checksums = (
        PackagedFile(path=f"{file.path}.{name}", content=value.encode())
        for file in files
        for name, value in _digests(file.data).items()
    )
    return (*files, *checksums)


def _module(coordinates: Coordinates, ort_version: str, aar: Path) -> bytes:
    """Return Gradle's module metadata; format: docs of Gradle, "Gradle Module Metadata specification", version 1.1."""
    name = f"{coordinates.artifact}-{coordinates.version}.aar"
    provided = ((coordinates.group, coordinates.artifact, coordinates.version), (*OFFICIAL, ort_version))
    capabilities = [dict(zip(("group", "name", "version"), each, strict=True)) for each in provided]
    file = {"name": name, "url": name, "size": aar.stat().st_size, **_digests(aar.read_bytes())}
    content: dict[str, Any] = {
        "formatVersion": "1.1",
        "component": {
            "group": coordinates.group,
            "module": coordinates.artifact,
            "version": coordinates.version,
            "attributes": {"org.gradle.status": "release"},
        },
        "variants": [
            {
                "name": variant,
                "attributes": ATTRIBUTES | {"org.gradle.usage": usage},
                "capabilities": capabilities,
                "files": [file],
            }
            for variant, usage in VARIANTS
        ],
    }
    return json_content(content)


def _digests(data: bytes) -> dict[str, str]:
    return {name: hashlib.new(name, data, usedforsecurity=False).hexdigest() for name in DIGESTS}


REPOSITORY: Final = "maven"
DOCUMENTS: Final = ("manifest.json", "sbom.cdx.json", "LICENSE", "ThirdPartyNotices.txt")
"""What stands in the AAR as well, so that it can be read without opening that."""


@dataclass(frozen=True, kw_only=True)
class AndroidPackage:
    """A finished package: its folder, and the AAR in it, beside which are a Maven repository and zips.

    `symbols` is the zip of unstripped libraries, None when no build left any.
    """

    folder: Path
    aar: Path
    symbols: Path | None
    manifest: AarManifest


def make_android_package(inputs: AarInputs, jdk: jni.Jdk | None, destination: Path) -> AndroidPackage:
    """Make the package's folder, `ortrim-<spec>-android-<version>`, in the folder `destination`.

    The same inputs and the same version of javac give the same bytes on any machine whose Python has the same zlib;
    with another of these, the AAR has other coordinates. The folder appears when it is complete and replaces an earlier
    one.
    """
    check_aar_inputs(inputs)
    folder = destination / inputs.name
    with package.writing(folder):
        (files, manifest), symbols = aar_content(inputs, jdk), symbol_files(inputs)
        shutil.rmtree(folder, ignore_errors=True)
        coordinates = inputs.coordinates(jdk.version if jdk else "")
        publish_folder(folder, lambda temporary: _fill(temporary, inputs, coordinates, files, symbols))
    return AndroidPackage(
        folder=folder,
        aar=folder / f"{inputs.name}.aar",
        symbols=folder / f"{inputs.name}-symbols.zip" if symbols else None,
        manifest=manifest,
    )


def _fill(
    folder: Path,
    inputs: AarInputs,
    coordinates: Coordinates,
    files: tuple[PackagedFile, ...],
    symbols: tuple[PackagedFile, ...],
) -> None:
    aar = folder / f"{inputs.name}.aar"
    package.write_zip(aar, files)
    contents = {file.path: file.content for file in files}
    package.write_zip(folder / f"{inputs.name}-jniLibs.zip", _plain_files(inputs, contents))
    if symbols:
        package.write_zip(folder / f"{inputs.name}-symbols.zip", symbols)
    (folder / REPOSITORY).mkdir()
    repository = repository_files(inputs, coordinates, aar)
    package.write_contents(folder / REPOSITORY, repository, ())
    package.write_zip(folder / f"{inputs.name}-{REPOSITORY}.zip", repository)
    documents = [PackagedFile(path=name, content=contents[f"{OWN_FOLDER}/{name}"]) for name in DOCUMENTS]
    package.write_contents(folder, (*package.model_files(inputs.first), *documents), ())
    package.write_sums(folder)


def _plain_files(inputs: AarInputs, contents: Mapping[str, bytes | Path]) -> tuple[PackagedFile, ...]:
    """Return what a project that keeps its own `jniLibs` takes: libraries, classes, headers and the rules for R8."""
    java = {"libs/onnxruntime.jar": CLASSES, RULES: RULES} if RULES in contents else {}
    inside = java | {name: f"{OWN_FOLDER}/{name}" for name in ("LICENSE", "ThirdPartyNotices.txt")}
    return (
        *_libraries_below("jniLibs", inputs),
        *(PackagedFile(path=f"include/{path.name}", content=path) for path in inputs.first.headers),
        *(PackagedFile(path=path, content=contents[place]) for path, place in inside.items()),
    )


def _libraries_below(folder: str, inputs: AarInputs) -> Iterator[PackagedFile]:
    for part in inputs.parts:
        for name, path in part.libraries:
            yield PackagedFile(path=f"{folder}/{part.abi}/{name}", content=path)


def deliver(packaging: Packaging) -> list[Delivery]:
    """Compile the JNI library of each ABI, and make one AAR of all; without a JDK one that has no Java API."""
    assembly, parts = packaging.assembly, []
    assert assembly is not None
    jdk = jni.chosen_jdk(wanted=assembly.java)
    for part in packaging.parts:
        binding = None
        if jdk is not None:
            packaging.step.progress(0, 0, f"JNI library of {part.job.target.identifier}")
            binding = jni.build_jni_library(part.job, part.result, packaging.executor_of(part.job), jdk)
        parts.append(AarPart(inputs=part, binding=binding))
    packaging.step.progress(0, 0, "classes and AAR" if jdk else "AAR without the Java API")
    assets = assembly.models_as_assets
    made, facts, gates = deliver_aar(parts, packaging.sources, jdk, packaging.folder, models_as_assets=assets)
    packaging.step.note(f"{made.folder}: {made.manifest.coordinates}")
    return [delivery(part, made.aar, facts, gates) for part in packaging.parts]


def deliver_aar(
    parts: Sequence[AarPart], sources: Path, jdk: jni.Jdk | None, destination: Path, *, models_as_assets: bool = False
) -> tuple[AndroidPackage, AarFacts, tuple[Gate, ...]]:
    """Make the AAR of all ABIs with everything beside it, in the folder `destination`, and pass it through every gate.

    `sources` is the folder of the source tree; without a `jdk` the AAR has no Java API. Raises a `DiagnosticGroup` of
    all that is wrong with the AAR; the package is then gone. Returns it with what was read from it, and its gates.
    """
    toolchain = parts[0].inputs.job.toolchain if parts else None
    inputs = AarInputs(
        parts=tuple(parts),
        java=tuple(sources / jni.JAVA / name for name in FOLDERS),
        ndk=toolchain.version if toolchain and toolchain.kind == "ndk" else "",
        models_as_assets=models_as_assets,
    )
    made = make_android_package(inputs, jdk, destination)
    abis = tuple(part.abi for part in parts)
    promise = Promise(api_level=inputs.api, abis=abis, whole_relro=True, java=jdk is not None)
    try:
        facts = read_aar(made.aar)
        require_sound_aar(facts, promise)
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(made.folder)
        raise
    return made, facts, check_aar(facts, promise)


AAR_SIZES: Final = (
    ("libraries of the ABI", "library_bytes"),
    ("libraries in the AAR", "compressed_bytes"),
    ("app's download", "download_bytes"),
)
"""Measures of a report -> what `AbiSize` calls them."""


def delivery(part: PackageInputs, aar: Path, facts: AarFacts, gates: tuple[Gate, ...]) -> Delivery:
    """Return what an AAR holds for one ABI; its gates are those of the whole AAR."""
    job, result = part.job, part.result
    sizes = next(size for size in facts.sizes if size.abi == ABIS[job.target.architecture])
    return Delivery(
        archive=aar,
        library=result.library,
        facts=read_library(result.library),
        gates=(*gates, *tensor_gates(part)),
        size=library_size(result.library, result.link_map),
        sizes=tuple(
            Comparison(
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
            for measure, name in AAR_SIZES
        ),
        companions=companions_of(job, result),
    )
