"""The container executor: the native executor's work, with every program of it run in a container."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ortrim.core.artifacts import JobResult
from ortrim.core.plan import BuildJob, RunnerJob, Toolchain
from ortrim.errors import ToolError
from ortrim.executors.container_images import ready_image
from ortrim.executors.container_mounts import job_mounts
from ortrim.executors.container_recipes import image_ndk, image_recipe
from ortrim.executors.jni import JniLibrary, finished_jni, jni_library_in
from ortrim.executors.native import NativeExecutor, finished_runner
from ortrim.executors.parallelism import Parallelism
from ortrim.executors.paths import JobPaths
from ortrim.executors.results import finished_build, result_of
from ortrim.storage.records import is_kept
from ortrim.tools.containers import ContainerOptions
from ortrim.tools.containers_choice import UsableEngine, first_that_works
from ortrim.tools.containers_options import require_mountable
from ortrim.tools.containers_owned import remove_leftovers
from ortrim.tools.containers_running import PYTHON, Command, run_in
from ortrim.tools.javac import Jdk


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
