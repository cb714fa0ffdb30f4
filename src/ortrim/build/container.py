"""The container executor: the native executor's work, with every program of it run in a container.

- The archives of Google's SDK as an image takes them: fetched by digest, and laid out anew as tar files.
- The image in which jobs run, built once per engine; its file and its log stay in the cache.
- What a job's container sees of this machine: its own folders, under their own names, and nothing else.
- What the image is made of in which a toolchain compiles: rendered from `docker/<system>/Dockerfile.j2`.
"""

import hashlib
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, assert_never

from ortrim.base.cache import cache_folder, cached_folder, is_kept, publish_folder
from ortrim.base.downloads import download
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.build.container_engines import ContainerOptions, ImageBuild, Mount, UsableEngine, first_that_works
from ortrim.build.container_runs import (
    PYTHON,
    Command,
    build_image,
    image_exists,
    image_label,
    remove_leftovers,
    require_mountable,
    run_in,
)
from ortrim.build.debian import PackageRequest
from ortrim.build.execution import JobPaths, Parallelism
from ortrim.build.jni import Jdk, JniLibrary, finished_jni, jni_library_in
from ortrim.build.native import NativeExecutor, finished_runner
from ortrim.build.ndk import REPOSITORY
from ortrim.build.plan import BuildJob, JobResult, RunnerJob, Toolchain
from ortrim.build.root_file_systems import DebianRoot, debian_root, zip_as_tar
from ortrim.build.trees import finished_build, result_of
from ortrim.errors import ToolError
from ortrim.pins.images import BasePin, ImagePins, image_pins


@dataclass(frozen=True, kw_only=True)
class SdkArchive:
    """An archive that is pinned: its name and version in the SDK, its file and its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


def sdk_archive(archive: SdkArchive, announce: Callable[[str], None]) -> Path:
    """Return an archive as a tar file, fetched and checked when it is not in the cache.

    The engines unpack tar files by themselves, and keep the links and permissions that zip files have in a form that
    few programs read. Raises `NetworkError` or `StorageError`.
    """
    folder = cache_folder("sdk") / f"{archive.name}-{archive.version}-{archive.sha256[:16]}"
    cached_folder(folder, lambda temporary: _fill(temporary, archive, announce), large=True)
    return folder / "content.tar"


def _fill(folder: Path, archive: SdkArchive, announce: Callable[[str], None]) -> None:
    kept = cache_folder("downloads") / archive.file
    announce(f"fetch {REPOSITORY}/{archive.file}")
    download(f"{REPOSITORY}/{archive.file}", kept, archive.sha256)
    zip_as_tar(kept, folder / "content.tar")


DEBIAN_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's words for the machines that ortrim builds on."""
NDK_HOST: Final = "x86_64"
"""The only Linux machine for which Google publishes an NDK (repository2-3.xml has no other)."""
COMMAND_LINE_TOOLS: Final = ("cmdline-tools", "19.0")


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """What an image is made of: its name, the text of its Dockerfile, and what that adds, by the name it has there."""

    tag: str
    dockerfile: str
    files: Mapping[str, Path]


def image_recipe(toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
    """Return the recipe of the image in which a toolchain compiles, fetching what it adds.

    Raises `SourcesError` (`image-not-pinned`, `bad-pin-file`, what apt and downloads raise) or `ToolError`
    (`compiler-not-in-image`, `no-ndk-for-host`, `unsupported-host`).
    """
    pins = image_pins()
    require_image(toolchain, pins)
    if toolchain.kind == "ndk":
        return _android(pins, toolchain.version, announce)
    return _linux(pins, announce)


def require_image(toolchain: Toolchain, pins: ImagePins) -> None:
    """Refuse a toolchain of which no image can be made, without fetching or building anything.

    Raises `SourcesError` (`image-not-pinned`) or `ToolError` (`compiler-not-in-image`, `no-ndk-for-host`).
    """
    match toolchain.kind:
        case "zig":
            pins.base("python")
        case "ndk":
            _android_parts(pins, toolchain.version)
        case "gcc" | "clang" | "xcode":
            what = f"the plan is for this machine's {toolchain.kind} {toolchain.version}, which the image does not have"
            hint = 'use compiler = "zig", which is the same in a container, or build with --executor native'
            raise ToolError("compiler-not-in-image", what, where=toolchain.kind, hint=hint)
        case _:
            assert_never(toolchain.kind)


def _linux(pins: ImagePins, announce: Callable[[str], None]) -> ImageRecipe:
    base, root = _base(pins.base("python"), announce)
    return _recipe("linux", {"base": base, "packages": root.packages if root else ()}, _root_files(root))


def _android_parts(pins: ImagePins, version: str) -> tuple[tuple[SdkArchive, SdkArchive], BasePin]:
    """Return the NDK, the command-line tools and the JDK that an image has."""
    if platform.machine() != NDK_HOST:
        what = f"Google publishes no NDK for {platform.machine()} machines"
        raise ToolError("no-ndk-for-host", what, where="android", hint="build for Android on an x86-64 machine")
    pins.base("python")
    return (_pinned(pins, "ndk", version), _pinned(pins, *COMMAND_LINE_TOOLS)), pins.base("jdk")


def _android(pins: ImagePins, version: str, announce: Callable[[str], None]) -> ImageRecipe:
    (ndk, tools), jdk = _android_parts(pins, version)
    base, root = _base(pins.base("python"), announce)
    values = {"base": base, "packages": root.packages if root else (), "jdk": jdk, "ndk": ndk, "tools": tools}
    parts = {f"{archive.name}.tar": sdk_archive(archive, announce) for archive in (ndk, tools)}
    return _recipe("android", {**values, "ndk_folder": image_ndk(version)}, _root_files(root) | parts)


def _pinned(pins: ImagePins, name: str, version: str) -> SdkArchive:
    file, sha256 = pins.archive(f"{name};{version}")
    return SdkArchive(name=name, version=version, file=file, sha256=sha256)


def image_ndk(version: str) -> Path:
    """Return where the image has its NDK."""
    return Path("/opt/android/ndk") / version


def _base(pin: BasePin, announce: Callable[[str], None]) -> tuple[BasePin, DebianRoot | None]:
    """Return the base by digest alone, or with the root file system that stands in for it."""
    if pin.digest or pin.suite is None:
        return pin, None
    machine = DEBIAN_NAMES.get(platform.machine())
    if machine is None:
        hint = "ortrim builds on Linux for x86-64 and arm64"
        raise ToolError("unsupported-host", f"{platform.machine()} is no host that ortrim knows", hint=hint)
    request = PackageRequest(names=tuple(sorted(pin.packages)), suite=pin.suite, architecture=machine)
    return pin, debian_root(request, announce)


def _root_files(root: DebianRoot | None) -> dict[str, Path]:
    return {"root.tar": root.archive} if root else {}


def _recipe(name: str, values: Mapping[str, Any], files: Mapping[str, Path]) -> ImageRecipe:
    """Name the image after all that its file says, which has the digest of all that it adds."""
    template = shipped_folder("docker") / name / "Dockerfile.j2"
    with storage_errors(template):
        text = template.read_text(encoding="utf-8")
    digest = hashlib.sha256(render(text, {**values, "label": ""}).encode()).hexdigest()[:16]
    tag = f"ortrim-{name}:{digest}"
    return ImageRecipe(tag=tag, dockerfile=render(text, {**values, "label": image_label(tag)}), files=files)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return the text of a Dockerfile."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import, needed only when an image is

    environment = Environment(  # noqa: S701 - a Dockerfile, not HTML
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=False
    )
    return environment.from_string(template).render(values)


def ready_image(usable: UsableEngine, recipe: ImageRecipe, announce: Callable[[str], None]) -> None:
    """Build an image with an engine unless it has it; its Dockerfile and log lie in the cache.

    Raises what `build_image` raises; nothing is left then, nor when ortrim is killed once it is started again.
    """
    record = cache_folder("images") / f"{usable.name}-{recipe.tag.replace(':', '-')}"
    if record.is_dir() and not image_exists(usable, recipe.tag):
        shutil.rmtree(record, ignore_errors=True)
    publish_folder(record, lambda temporary: _build(usable, recipe, temporary, announce))


def _build(usable: UsableEngine, recipe: ImageRecipe, folder: Path, announce: Callable[[str], None]) -> None:
    announce(f"{usable.name} builds the image {recipe.tag}, once")
    context, scratch = folder / "context", folder / "scratch"
    with storage_errors(folder):
        context.mkdir()
        scratch.mkdir()
        (context / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        (folder / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        for name, source in recipe.files.items():
            _place(source, context / name)
        with (folder / "build.log").open("w", encoding="utf-8") as log:
            image = ImageBuild(context=context, tag=recipe.tag)
            build_image(usable, image, scratch, lambda line: log.writelines((line, "\n")))
        shutil.rmtree(context)
        shutil.rmtree(scratch)


def _place(source: Path, destination: Path) -> None:
    """Have a large file in a second folder, without a copy where the file system allows it."""
    try:
        destination.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, destination)


WRITTEN: Final = ("ZIG_GLOBAL_CACHE_DIR",)
"""Variables of a job that name folders it writes into."""
CONFIGURATION: Final = "CCACHE_CONFIGPATH"
"""The variable that names the compiler cache's settings; beside them ccache writes what it counted."""


def job_mounts(paths: JobPaths, environment: Mapping[str, str]) -> tuple[Mount, ...]:
    """Return the mounts of a job: sources and tools read-only, the build folder and the caches to be written to.

    Folders have the same name inside, so that a build tree, its compiler cache keys and its commands are those that
    the native executor would have.
    """
    read = (paths.sources, paths.tools, paths.runner, *_linked(paths))
    written = (paths.build.parent, *_caches(environment, paths.build.parent))
    return (
        *(Mount(source=folder, target=str(folder)) for folder in read),
        *(Mount(source=folder, target=str(folder), writable=True) for folder in written),
    )


def _linked(paths: JobPaths) -> tuple[Path, ...]:
    """Return the folder of the static library that a runner links, if it does."""
    return () if paths.archive == Path() else (paths.archive.parent,)


def _caches(environment: Mapping[str, str], own: Path) -> Iterator[Path]:
    for name in WRITTEN:
        if name in environment and not Path(environment[name]).is_relative_to(own):
            yield Path(environment[name])
    if CONFIGURATION in environment:
        yield cache_folder("compiler")
        yield Path(environment[CONFIGURATION]).parent


@dataclass(frozen=True, kw_only=True)
class ContainerExecutor:
    """Builds in containers of this machine.

    `native` says what is built from what; results, trees and the compiler cache are those of the native executor, but
    for trees, which know the programs that they were configured with.
    """

    native: NativeExecutor
    options: ContainerOptions

    @property
    def parallelism(self) -> Parallelism:
        """How many compilations run at once."""
        return self.native.parallelism

    @property
    def log(self) -> Path:
        """The log of the build."""
        return self.native.log

    def run(self, job: BuildJob) -> JobResult:
        """Build a job, or return what was built of it before, here or natively; see `Executor.run`."""
        done = finished_build(job)
        if is_kept(done):
            return result_of(done)
        return self._in_a_container(job.toolchain).run(job)

    def run_runner(self, job: RunnerJob) -> Path:
        """Compile a runner, or return what was compiled before; see `Executor.run_runner`."""
        done = finished_runner(job)
        return done if is_kept(done.parent) else self._in_a_container(job.toolchain).run_runner(job)

    def run_jni(self, job: BuildJob, result: JobResult, jdk: Jdk) -> JniLibrary:
        """Compile the JNI library in a container; its Java is compiled here. See `NativeExecutor.run_jni`."""
        done = finished_jni(job, jdk)
        if is_kept(done):
            return jni_library_in(done)
        return self._in_a_container(job.toolchain).run_jni(job, result, jdk)

    def _in_a_container(self, toolchain: Toolchain) -> NativeExecutor:
        place = container_place(toolchain, self.options, self.native.on_note)
        inputs = replace(self.native.inputs, image_ndk=image_ndk(toolchain.version))
        return replace(self.native, place=place, inputs=inputs)


@dataclass(frozen=True, kw_only=True)
class ContainerPlace:
    """A place that starts a container for each program; see `Place`."""

    usable: UsableEngine
    image: str
    options: ContainerOptions

    python: tuple[str, ...] = (PYTHON, "-S", "-s")
    reaches_stores: bool = False

    @property
    def apart(self) -> str:
        """The image, which has the Python that CMake finds."""
        return self.image.partition(":")[2]

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """See `Place.stream`. Raises `UsageError`, or what `engine_error` returns."""
        own = job_mounts(paths, environment)
        require_mountable(self.options.mounts, own)
        inside = Command(
            words=tuple(words),
            environment=tuple(environment.items()),
            folder=str(cwd),
            mounts=(*own, *self.options.mounts),
            flags=self.options.flags,
        )
        return run_in(self.usable, self.image, inside, on_line)


def container_place(toolchain: Toolchain, options: ContainerOptions, on_note: Callable[[str], None]) -> ContainerPlace:
    """Return a place in a toolchain's image, with the engine asked for or the first that works.

    An engine works when it has built the image and started a command in it. Raises what went wrong: `ToolError`,
    `NetworkError`, `StorageError` or `SourcesError`.
    """
    recipe = image_recipe(toolchain, on_note)

    def attempt(usable: UsableEngine) -> None:
        for name in remove_leftovers(usable):
            on_note(f"removed {name}, which a run that was killed has left")
        ready_image(usable, recipe, on_note)
        _try_out(usable, recipe.tag, options)

    usable = first_that_works(options.engine, attempt, on_note)
    on_note(f"in {recipe.tag} with {usable.name} {usable.version}")
    return ContainerPlace(usable=usable, image=recipe.tag, options=options)


def _try_out(usable: UsableEngine, image: str, options: ContainerOptions) -> None:
    """Start a command that does nothing. Raises what `run_in` raises, or `ToolError` `image-unusable`."""
    inside = Command(
        words=("/bin/sh", "-c", ":"), environment=(), folder="/", mounts=options.mounts, flags=options.flags
    )
    code = run_in(usable, image, inside, lambda _: None)
    if code != 0:
        hint = f"remove the image, so that it is built anew: {usable.name} rmi {image}"
        raise ToolError("image-unusable", f"its shell ends with {code}", where=image, hint=hint)
