"""The container executor: the native executor's work, with every program of it run in a container of an image."""

import hashlib
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import cache_folder, is_kept, publish_folder
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.compiling.containers.engines import ContainerOptions, ImageBuild, Mount, UsableEngine, first_that_works
from ortrim.compiling.containers.root_file_systems import DebianRoot, debian_root
from ortrim.compiling.containers.runs import (
    PYTHON,
    Command,
    build_image,
    image_exists,
    image_label,
    remove_leftovers,
    require_mountable,
    run_in,
)
from ortrim.compiling.execution import ExecutionEnvironment, JobPaths, Parallelism
from ortrim.compiling.native import NativeExecutor, finished_runner
from ortrim.compiling.plan import BuildJob, JobResult, RunnerJob, Toolchain
from ortrim.compiling.trees import finished_build, result_of
from ortrim.errors import ToolError
from ortrim.pins.images import BasePin, ImagePins, image_pins
from ortrim.sources.debian import PackageRequest

DEBIAN_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's words for the machines that ortrim builds on."""


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """What an image is made of: its name, the text of its Dockerfile, and what that adds, by the name it has there."""

    tag: str
    dockerfile: str
    files: Mapping[str, Path]


class Images:
    """The images in which a platform's toolchains run; these have Python, which is all that zig needs."""

    def require_image(self, toolchain: Toolchain, pins: ImagePins) -> None:
        """Refuse a toolchain of which no image can be made, without fetching or building anything."""
        if toolchain.kind != "zig":
            what = f"the plan is for this machine's {toolchain.kind} {toolchain.version}, which the image does not have"
            hint = 'use compiler = "zig", which is the same in a container, or build with --executor native'
            raise ToolError("compiler-not-in-image", what, where=toolchain.kind, hint=hint)
        pins.base("python")

    def image_recipe(self, toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
        """Return the recipe of the image in which a toolchain compiles, fetching what it adds."""
        pins = image_pins()
        self.require_image(toolchain, pins)
        base, root = image_base(pins.base("python"), announce)
        return recipe_of("linux", {"base": base, "packages": root.packages if root else ()}, root_files(root))

    def image_folders(self, _toolchain: Toolchain, _named: Path | None = None) -> Mapping[str, Path]:
        """Return the image's folders that a toolchain's symbolic paths mean, whatever is named on this machine."""
        return {}


def image_base(pin: BasePin, announce: Callable[[str], None]) -> tuple[BasePin, DebianRoot | None]:
    """Return the base by digest alone, or with the root file system that stands in for it."""
    if pin.digest or pin.suite is None:
        return pin, None
    machine = DEBIAN_NAMES.get(platform.machine())
    if machine is None:
        hint = "ortrim builds on Linux for x86-64 and arm64"
        raise ToolError("unsupported-host", f"{platform.machine()} is not a supported host", hint=hint)
    request = PackageRequest(names=tuple(sorted(pin.packages)), suite=pin.suite, architecture=machine)
    return pin, debian_root(request, announce)


def root_files(root: DebianRoot | None) -> dict[str, Path]:
    """Return the file that a base adds to an image, if it does."""
    return {"root.tar": root.archive} if root else {}


def recipe_of(name: str, values: Mapping[str, Any], files: Mapping[str, Path]) -> ImageRecipe:
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
    """Build an image with an engine unless it has it; its Dockerfile and log lie in the cache."""
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

    Folders have the same name inside, so that build tree and compiler cache keys are the native executor's.
    """
    read = (paths.sources, paths.tools, paths.runner, *_linked(paths))
    written = (paths.build.parent, *_caches(environment, paths.build.parent))
    return (
        *(Mount(source=folder, target=str(folder)) for folder in read),
        *(Mount(source=folder, target=str(folder), writable=True) for folder in written),
    )


def _linked(paths: JobPaths) -> tuple[Path, ...]:
    """Return the folders of a static library that a runner links and of a sysroot, where there are such."""
    found = {paths.archive: paths.archive.parent, paths.bionic: paths.bionic}
    return tuple(folder for path, folder in found.items() if path != Path())


def _caches(environment: Mapping[str, str], own: Path) -> Iterator[Path]:
    for name in WRITTEN:
        if name in environment and not Path(environment[name]).is_relative_to(own):
            yield Path(environment[name])
    if CONFIGURATION in environment:
        yield cache_folder("compiler")
        yield Path(environment[CONFIGURATION]).parent


@dataclass(frozen=True, kw_only=True)
class ContainerExecutor:
    """Builds in containers; results and compiler cache are the native executor's, trees are not."""

    native: NativeExecutor
    options: ContainerOptions
    images: Images

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

    def run_beside(
        self, toolchain: Toolchain, folder: Path, make: Callable[[JobPaths, ExecutionEnvironment], Iterable[Path]]
    ) -> None:
        """Have in `folder` what `make` compiles, unless it is there; see `Executor.run_beside`."""
        if not is_kept(folder):
            self._in_a_container(toolchain).run_beside(toolchain, folder, make)

    def _in_a_container(self, toolchain: Toolchain) -> NativeExecutor:
        recipe = self.images.image_recipe(toolchain, self.native.on_note)
        place = container_place(recipe, self.options, self.native.on_note)
        inputs = replace(self.native.inputs, installed=self.images.image_folders)
        return replace(self.native, place=place, inputs=inputs)


@dataclass(frozen=True, kw_only=True)
class ContainerPlace:
    """A place that starts a container for each program; see `ExecutionEnvironment`."""

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
        """See `ExecutionEnvironment.stream`."""
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


def container_place(recipe: ImageRecipe, options: ContainerOptions, on_note: Callable[[str], None]) -> ContainerPlace:
    """Return a place in an image, with the requested engine or the first that builds it and starts a command in it."""

    def attempt(usable: UsableEngine) -> None:
        for name in remove_leftovers(usable):
            on_note(f"removed {name}, which a run that was killed has left")
        ready_image(usable, recipe, on_note)
        _try_out(usable, recipe.tag, options)

    usable = first_that_works(options.engine, attempt, on_note)
    on_note(f"in {recipe.tag} with {usable.name} {usable.version}")
    return ContainerPlace(usable=usable, image=recipe.tag, options=options)


def _try_out(usable: UsableEngine, image: str, options: ContainerOptions) -> None:
    """Start a command that does nothing."""
    inside = Command(
        words=("/bin/sh", "-c", ":"), environment=(), folder="/", mounts=options.mounts, flags=options.flags
    )
    code = run_in(usable, image, inside, lambda _: None)
    if code != 0:
        hint = f"remove the image, so that it is built again: {usable.name} rmi {image}"
        raise ToolError("image-unusable", f"its shell ends with {code}", where=image, hint=hint)
