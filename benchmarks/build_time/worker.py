"""Does one piece of work in a process of its own and says what it cost: `-m build_time.worker REQUEST RESULT`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from build_time.cases import Recipe
from build_time.meter import Cost, cost_of
from build_time.subject import library_of, upstream_job
from ortrim.base.cache import cache_folder
from ortrim.base.command import stream
from ortrim.base.files import write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.base.scripts import ISOLATED_PYTHON
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildJob, CompilerCacheUse
from ortrim.compiling.upstream import first_error, ninja_step
from ortrim.compiling.workspace import Parallelism, job_environment, prepare_workspace
from ortrim.errors import BuildError, Diagnostic, ExitCode
from ortrim.pipeline.building import build_inputs
from ortrim.platforms import platform_of


@dataclass(frozen=True, kw_only=True)
class Work:
    """What to do: build `job` by a recipe from the tree `sources`, or run `command`; the log says what happened."""

    recipe: Recipe
    job: BuildJob
    sources: Path
    cached: bool
    jobs: int
    log: Path
    command: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a build left: the library with its link map, and how it was made; of a command, nothing."""

    library: Path | None = None
    link_map: Path | None = None
    units: tuple[int, int] | None = None
    cache: CompilerCacheUse | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """How the work ended: what it cost and left, or what went wrong."""

    cost: Cost | None = None
    steps: int = 0
    built: Built = Built()
    error: str = ""


def do(work: Work) -> Done:
    """Do the work and return what it cost and left; a diagnostic becomes `error`."""
    recipes = {Recipe.UPSTREAM: build_upstream, Recipe.COMMAND: run_command}
    recipe = recipes.get(work.recipe, build_ortrim)
    left: list[Built] = []
    try:
        cost = cost_of(lambda: left.append(recipe(work)))
    except Diagnostic as diagnostic:
        return Done(error=str(diagnostic))
    if not cost.complete:
        return Done(error="a process went on running after the work was done")
    return Done(cost=cost, steps=steps_in(work.log), built=left[0])


def build_ortrim(work: Work) -> Built:
    executor = Executor(
        inputs=build_inputs(work.sources, platform_of(work.job.target)),
        log=work.log,
        parallelism=Parallelism(jobs=work.jobs, reason="as asked"),
        on_progress=say,
        on_note=lambda text: say(0, 0, text),
        pruned=work.recipe is Recipe.PRUNED,
        cached=work.cached,
    )
    result = executor.run(work.job)
    units = (result.units.compiled, result.units.total) if result.units else None
    return Built(library=result.library, link_map=result.link_map, units=units, cache=result.compiler_cache)


def build_upstream(work: Work) -> Built:
    """Build as upstream's documentation says, with the same compiler and flags. Raises `BuildError`."""
    job = upstream_job(work.job)
    tree = cache_folder("trees") / "upstream"
    inputs = build_inputs(work.sources, platform_of(job.target))
    paths = prepare_workspace(tree, inputs, job.toolchain, job.operator_config)
    script = paths.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
    words = (*ISOLATED_PYTHON, str(script), *paths.resolve_all(job.arguments), "--parallel", str(work.jobs))
    lines: list[str] = []
    with work.log.open("w", buffering=1, encoding="utf-8") as log:
        on_line = listener(lines, lambda line: log.write(line + "\n"))
        code = stream(words, on_line, cwd=paths.build, environment=job_environment(paths, job.toolchain))
    if code != 0:
        raise BuildError("build-failed", "upstream's recipe failed", why=first_error(lines), hint=f"see {work.log}")
    link_map = paths.build / "link.map"
    return Built(library=paths.build / library_of(job), link_map=link_map if link_map.is_file() else None)


def run_command(work: Work) -> Built:
    lines: list[str] = []
    code = stream(work.command, listener(lines, lambda _: None))
    work.log.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if code not in {ExitCode.OK, ExitCode.BUDGET}:  # a missed budget ends a build like a met one
        why = "\n".join(lines[-12:])
        raise BuildError("command-failed", f"exit code {code}", where=" ".join(work.command[-3:]), why=why)
    return Built()


def listener(lines: list[str], write: Callable[[str], object]) -> Callable[[str], None]:
    """Return what to do with each line of output: keep it, write it, say how far the build is."""

    def on_line(line: str) -> None:
        lines.append(line)
        write(line)
        if step := ninja_step(line):
            say(*step)

    return on_line


def say(done: int, total: int, item: str) -> None:
    """Tell whoever started this process how far it is."""
    sys.stdout.write(f"{done} {total} {item}\n")
    sys.stdout.flush()


def steps_in(log: Path) -> int:
    """Return how many steps ninja did, over all its runs."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return sum(ninja_step(line) is not None for line in text.splitlines())


def main(request: Path, result: Path) -> None:
    write_atomically(result, to_json(do(from_json(Work, request.read_bytes()))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
