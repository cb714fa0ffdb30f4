"""The executor: upstream's own `build.py` on a kept tree, what follows it, the static library, and runners."""

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, cached
from ortrim.base.files import FULL_DISK, disk_full, require_space, storage_errors
from ortrim.binaries.apple import EXPORTS
from ortrim.binaries.elf import read_library
from ortrim.binaries.link_map import INTERNAL, read_link_map
from ortrim.binaries.macho.dead_code import without_dead_code
from ortrim.binaries.macho.files import read_macho
from ortrim.binaries.macho.objects import needed_objects, with_own_names
from ortrim.binaries.objects import archive_members, hide_symbols
from ortrim.compiling import workspace
from ortrim.compiling.compiler_cache import CompilerCache, compiler_cache
from ortrim.compiling.plan import ARCHIVE, BuildJob, JobResult, RunnerJob, Toolchain, digest
from ortrim.compiling.relink import forget_unreached
from ortrim.compiling.selective import SelectiveBuild
from ortrim.compiling.upstream import CompileOutcome, CompileProgress, Upstream, first_error, remedy, require_known
from ortrim.compiling.workspace import DYLIB, LOCAL, BuildInputs, ExecutionEnvironment, JobPaths
from ortrim.errors import BuildError, StorageError

RUNNER: Final = "runner"
TREE_BYTES: Final = 210_000_000  # what the smallest tree of a pruned build takes, most of it precompiled headers
CONFIGURED: Final = "CMakeCache.txt"  # what CMake has left in a tree that was configured
LAUNCHERS: Final = {"C": "launch-cc", "CXX": "launch-c++"}
"""CMake's names of languages -> the names that launchers have among a toolchain's wrappers."""


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Builds, and says how far it is to whoever made it.

    Results lie in the user's cache by the job's digest. The log is written to `log` meanwhile. `execution` opens what a
    toolchain's programs run in, once there is something to compile. For measurements, `pruned=False` compiles every
    file as upstream does, and `cached=False` leaves the compiler cache alone; neither changes the library.
    """

    inputs: BuildInputs
    log: Path
    parallelism: workspace.Parallelism
    on_progress: CompileProgress
    on_note: Callable[[str], None]
    pruned: bool = True
    cached: bool = True
    execution: Callable[[Toolchain, Callable[[str], None]], ExecutionEnvironment] = lambda *_: LOCAL

    def run(self, job: BuildJob) -> JobResult:
        """Build a job, or return what was built of it before."""
        folder = workspace.finished_build(job)
        with cached(folder, self._say_that_it_waits) as destination:
            if destination and (made_of := self.inputs.made_of(job)):
                self._convert(*made_of, destination)
            elif destination:
                started = time.monotonic()
                with self.on_tree(job) as selective:
                    outcome, units = selective.compile_needed() if self.pruned else (selective.compile_all(), None)
                    outcome, units = selective.without_unreached(outcome, units)
                    require_success(job, outcome, self.log)
                    paths, execution = selective.upstream.paths, selective.upstream.execution
                    finish(job, paths, execution)
                    if job.is_linked_anew:
                        link_anew(job, paths, execution)
                    self.inputs.finish(job, paths)
                    if job.linkage == "static" and job.target.is_elf and job.toolchain.kind == "zig":
                        write_static_library(job, paths, execution)
                    workspace.collect(job, paths, destination, self.log)
                    left_out = selective.mechanisms.remarks
                    use = selective.cache.use() if selective.cache else None
                    seconds = time.monotonic() - started
                    workspace.write_facts(destination, seconds, use, units=units, left_out=left_out)
                    for remark in left_out:
                        self.on_note(remark)
                workspace.forget_old_trees()
        return workspace.result_of(folder)

    def _convert(self, job: BuildJob, change: Callable[[Path], None], destination: Path) -> None:
        """Write what another job leaves, with its library changed; the job is built if it was not."""
        built, started = self.run(job), time.monotonic()
        with storage_errors(destination):
            shutil.copytree(built.folder, destination, dirs_exist_ok=True)
            self.log.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built.log, self.log)
        change(destination / built.library.name)
        seconds = time.monotonic() - started
        workspace.write_facts(destination, seconds, None, units=built.units, left_out=built.left_out)

    def run_runner(self, job: RunnerJob) -> Path:
        """Compile a runner, or return what was compiled before."""

        def make(paths: JobPaths, execution: ExecutionEnvironment) -> tuple[Path, ...]:
            paths = replace(paths, archive=workspace.linked_archive(job))
            words = (str(paths.wrappers / "cc"), *paths.resolve_all(job.arguments))
            code, lines = execution.run(words, paths=paths, toolchain=job.toolchain)
            if code != 0:
                raise _build_failed(f"runner for {job.target.identifier}", first_error(lines), "", code)
            return (paths.build / RUNNER,)

        runner = finished_runner(job)
        self.run_beside(job.toolchain, runner.parent, make)
        return runner

    def run_beside(
        self, toolchain: Toolchain, folder: Path, make: Callable[[JobPaths, ExecutionEnvironment], Iterable[Path]]
    ) -> None:
        """Have in a folder of the cache what `make` compiles with a toolchain, unless it is there.

        `make` is given a workspace, and where its programs run, and returns the files to be kept.
        """
        with cached(folder) as destination:
            if destination:
                # Not in the system's temporary folder, from which programs may not be allowed to run.
                work, execution = destination / "work", self.execution(toolchain, self.on_note)
                with workspace.shared_zig(toolchain) as zig:
                    paths = workspace.prepare_workspace(work, self.inputs, toolchain, zig=zig, execution=execution)
                    made = tuple(make(paths, execution))
                for file in made:
                    file.rename(destination / file.name)
                shutil.rmtree(work)

    @contextmanager
    def on_tree(self, job: BuildJob) -> Iterator[SelectiveBuild]:
        """Hold the build tree of a job, alone, ready to compile in; it survives an interruption and is kept."""
        execution = self.execution(job.toolchain, self.on_note)
        folders = self.inputs.sources, self.inputs.tools
        workspace.require_past(*folders)
        with workspace.build_tree(job, self._say_that_it_waits, execution.apart, self.on_note) as tree:
            workspace.empty_unless_made_of(tree.path, *folders)
            if not (tree.path / "out").exists():
                require_space(tree.path, TREE_BYTES, "building")

            def on_step(done: int, total: int, item: str, /) -> None:
                self.on_progress(done, total, item)
                tree.checkpoint()

            with workspace.own_zig(tree.path, job.toolchain):
                paths = workspace.prepare_workspace(
                    tree.path, self.inputs, job.toolchain, job.operator_config, execution=execution
                )
                if not (paths.configured / CONFIGURED).exists():
                    require_known(job, paths.sources / "onnxruntime", paths.tools)
                forget_unreached(paths, job)
                kept, bases = cache_folder("compiler"), (tree.path, *folders)
                ready = compiler_cache(paths.tools / "bin", kept, bases, self.on_note, stores=execution.reaches_stores)
                with ready if self.cached else nullcontext() as cache:
                    upstream = self._upstream(job, paths, cache, execution, on_step)
                    yield SelectiveBuild(job=job, upstream=upstream, cache=cache, on_note=self.on_note)

    def _upstream(
        self,
        job: BuildJob,
        paths: JobPaths,
        cache: CompilerCache | None,
        execution: ExecutionEnvironment,
        on_step: CompileProgress,
    ) -> Upstream:
        with storage_errors(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.write_bytes(b"")
        parallel = ("--parallel", str(self.parallelism.jobs))
        launchers = _launcher_definitions(job.toolchain, paths, cache)
        return Upstream(
            paths=paths,
            arguments=(*paths.resolve_all(job.arguments), *launchers, *parallel),
            # `build.py` has ninja choose the number when one job is asked for; CMake hands it this one.
            environment=workspace.job_environment(paths, job.toolchain)
            | {"CMAKE_BUILD_PARALLEL_LEVEL": str(self.parallelism.jobs)}
            | dict(cache.environment if cache else {}),
            log=self.log,
            on_progress=on_step,
            execution=execution,
        )

    def _say_that_it_waits(self) -> None:
        self.on_note("waits for another build that uses the same folder")


def finished_runner(job: RunnerJob) -> Path:
    """Return the program that a runner's job leaves, or will leave."""
    return cache_folder("runners") / digest(job)[:20] / RUNNER


def _launcher_definitions(toolchain: Toolchain, paths: JobPaths, cache: CompilerCache | None) -> tuple[str, ...]:
    """Name what CMake puts before compilers: launcher and cache, or nothing, as trees remember the last."""
    own = {name for name, _ in toolchain.wrappers}
    definitions = []
    for language, name in LAUNCHERS.items():
        words = (paths.wrappers / name if name in own else None, cache.launcher if cache else None)
        definitions.append(f"CMAKE_{language}_COMPILER_LAUNCHER={';'.join(str(word) for word in words if word)}")
    return ("--cmake_extra_defines", *definitions)


def finish(job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment = LOCAL) -> None:
    """Run a job's finishing commands in its build folder."""
    for command in job.finishing:
        code, lines = execution.run(paths.resolve_all(command), paths=paths, toolchain=job.toolchain)
        if code != 0:
            why = first_error(lines)
            what = f"a step after the build failed: {' '.join(command)}"
            raise BuildError("build-failed", what, where=job.target.identifier, why=why, hint=remedy(why))


def require_success(job: BuildJob, outcome: CompileOutcome, log: Path) -> None:
    """Raise the diagnostic of a failed build: `BuildError` `build-failed`, or `StorageError` `disk-full`."""
    if outcome.failed:
        why = first_error(outcome.lines)
        raise _build_failed(job.target.identifier, why, f"the whole log is {log}; ", outcome.code)


def _build_failed(where: str, why: str, log: str, code: int) -> BuildError | StorageError:
    if any(words in why for words in FULL_DISK):
        places = (cache_folder("trees"), Path(tempfile.gettempdir()))
        return disk_full("the build ran out of disk space", *places, where=where, why=why, hint=log)
    what = "the build stopped at an error" if code > 0 else f"the build was stopped by signal {-code}"
    return BuildError("build-failed", what, where=where, why=why, hint=log + remedy(why))


OWN_OBJECTS: Final = "CMakeFiles/onnxruntime.dir"
"""Where CMake has the objects of the shared library itself, which refer to all that is exported."""
CXX_LIBRARIES: Final = ("libc++.a", "libc++abi.a")
LIBRARY_MEMBER: Final = re.compile(r"(.*\.a)\(.*\)")
OF_EVERY_LINKER: Final = re.compile(r"lib(compiler_rt|ubsan_rt|c_nonshared|c)\.a|(compiler_rt|crt\w*)\.o")
"""What the application's own compiler brings: its runtime and its C library. Two copies of these would be at odds."""


def write_static_library(job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment = LOCAL) -> None:
    """Make `libonnxruntime.a` of ELF in the build folder from what the shared library was linked from.

    It holds the C++ library, too, without the C library and the compiler's runtime, and shows the API alone: one object
    with the same sections as the shared library; what was left out of the one is in neither.
    """
    with storage_errors(paths.build), tempfile.TemporaryDirectory(dir=paths.build) as name:
        (paths.build / ARCHIVE).unlink(missing_ok=True)
        exported = read_library(paths.build / job.expected_outputs[0]).exported
        joined, hidden = Path(name, "joined.o"), Path(name, "onnxruntime.o")
        roots = tuple(word for name in exported for word in ("-u", name))
        script = ("-T", str(paths.hooks / workspace.UNREACHED)) if job.build_options.dead_kernel_elimination else ()
        linking = ("-r", "--gc-sections", "--force-group-allocation", "--strip-debug", *roots, *script)
        _zig(job, paths, execution, "ld.lld", *linking, "-o", str(joined), *linked_files(paths.link_map))
        hidden.write_bytes(hide_symbols(joined.read_bytes(), frozenset(exported), str(joined)))
        _archive(job, paths, execution, hidden)


def link_anew(job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment = LOCAL) -> None:
    """Link a library for Apple's systems of what the API needs of the library's own objects and of static libraries.

    zig's linker writes no map, and folds nothing. A static library is made of the same objects, whose names are its own
    then: what is finished and verified is what an app gets.
    """
    (image,) = read_macho(paths.configured / DYLIB).images
    listing = Path(paths.resolve(EXPORTS))
    with storage_errors(paths.build), tempfile.TemporaryDirectory(dir=paths.build) as name:
        (paths.build / ARCHIVE).unlink(missing_ok=True)  # of another build on this tree
        exported = [each.removeprefix("_") for each in listing.read_text(encoding="utf-8").split()]
        own = sorted((paths.configured / OWN_OBJECTS).rglob("*.o"))
        archives = (*sorted(paths.build.rglob("*.a")), *_runtime_libraries(job, paths, execution, own))
        roots = tuple(path.read_bytes() for path in own)
        needed = needed_objects(roots, (content for path in archives for _, content in archive_members(path)))
        where, folded = job.target.identifier, job.build_options.icf
        live = without_dead_code((*roots, *needed), exported, where, folded=folded)
        if job.linkage == "static":
            suffix = f".{hashlib.sha256(b''.join(live)).hexdigest()[:12]}"
            live = with_own_names(live, exported, suffix, where)
        files = tuple(Path(name, f"{number:03}.o") for number in range(len(live)))
        for path, content in zip(files, live, strict=True):
            path.write_bytes(content)
        named = f"-Wl,-install_name,{image.install_name},-current_version,{image.version}"
        words = ("-dynamiclib", "-Os", named, "-o", str(paths.build / workspace.LINKED_ANEW), *map(str, files))
        _link(job, paths, execution, "cc", *words)
        if job.linkage == "static":
            _archive(job, paths, execution, *files)


def _archive(job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment, *objects: Path) -> None:
    _zig(job, paths, execution, "ar", "rcsD", str(paths.build / ARCHIVE), *map(str, objects))


def _runtime_libraries(
    job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment, own: Iterable[Path]
) -> tuple[Path, ...]:
    """Return zig's C++ library, which it names when it links, unless the build has one of its own."""
    if job.build_options.libcxx_no_exceptions:
        return ()
    # zig's library is either small or for debuggers.
    words = ("c++", "-Os", "-dynamiclib", "-v", "-Wl,-undefined,dynamic_lookup")
    with tempfile.TemporaryDirectory(dir=paths.build) as folder:
        lines = _link(job, paths, execution, *words, "-o", str(Path(folder, "linked")), *map(str, own))
    linking = next((line for line in reversed(lines) if line.startswith("zig ld ")), "")
    starts = [match.end() for match in re.finditer(" (?=/)", linking)]  # of a path, in which there may be spaces, too
    ends = [match.end() for match in re.finditer("|".join(map(re.escape, CXX_LIBRARIES)), linking)]
    named = (Path(linking[start:end]) for end in ends for start in starts if start < end)
    found = tuple(path for path in named if path.is_file())
    if len(found) != len(CXX_LIBRARIES):
        what = "the library cannot be linked anew: zig does not say where its C++ library is"
        raise BuildError("build-failed", what, where=job.target.identifier, why=linking or "it printed no link")
    return found


def linked_files(link_map: Path) -> tuple[str, ...]:
    """Return the objects that a link took anything of, then the static libraries, in its order; see `OF_EVERY_LINKER`.

    What an object defines is taken from no library: `unreached.c` rests on that.
    """
    files: dict[str, None] = {}
    for output in read_link_map(link_map):
        for inner in output.inputs:
            member = LIBRARY_MEMBER.fullmatch(inner.file)
            files.setdefault(member[1] if member else inner.file)
    own = (file for file in files if file != INTERNAL and not OF_EVERY_LINKER.fullmatch(Path(file).name))
    return tuple(sorted(own, key=lambda file: file.endswith(".a")))


def _zig(job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment, *arguments: str) -> None:
    """Run a tool of the pinned toolchain."""
    _run(job, paths, execution, (str(paths.tools / "ziglang" / "zig"), *arguments), arguments[0])


def _link(
    job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment, compiler: str, *arguments: str
) -> Sequence[str]:
    """Link for the job's target, and return what the toolchain printed."""
    return _run(job, paths, execution, (str(paths.wrappers / compiler), *arguments), compiler)


def _run(
    job: BuildJob, paths: JobPaths, execution: ExecutionEnvironment, command: tuple[str, ...], tool: str
) -> Sequence[str]:
    """Run a command where the map's relative paths begin."""
    code, lines = execution.run(command, paths=paths, toolchain=job.toolchain, cwd=paths.configured)
    if code != 0:
        what = f"the {job.linkage} library cannot be made: zig {tool} failed"
        instead = "linkage = 'shared'" if job.linkage == "static" else "build_options = { icf = false }"
        hint = f"upstream's link was no failure: report this, and use {instead} for now"
        raise BuildError("build-failed", what, where=job.target.identifier, why=first_error(lines), hint=hint)
    return lines
