"""What is measured by `bench` and `profile`: the models, a library for this machine, and a runner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.bench import BenchLibrary, LibraryKind
from ortrim.core.plan import PlannedTarget
from ortrim.errors import UsageError
from ortrim.executors.results import finished_build, result_of
from ortrim.pipeline.builders import executor_for
from ortrim.pipeline.converted import Request
from ortrim.pipeline.models.files import is_buildspec, open_sizes, refuse_sizes, spec_of_model
from ortrim.pipeline.planned import Planned, make_planned, planned_here, planned_to_run
from ortrim.storage.files import sha256_of
from ortrim.storage.records import is_kept
from ortrim.tools.full_runtime import is_minimal
from ortrim.verify.baseline import own_baseline

BUILT: Final = "built"
WHEEL: Final = "wheel"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A buildspec or a model's file in `request.spec`, and the library: `built`, `wheel`, its path, or nothing.

    `dimensions` are the sizes that a model's file leaves open.
    """

    request: Request
    library: str = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What runs here: the plan with models and cases, the library, and the runner that runs it."""

    planned: Planned
    target: PlannedTarget
    library: BenchLibrary
    path: Path
    runner: Path

    def model(self, number: int) -> Path:
        """Return the file of a model in the format that the library reads."""
        models = self.planned.models
        return (models.prepared if self.library.full else models.converted)[number].path


def subject_of(asked: Asked, console: Console) -> Subject:
    """Find the library, convert the models and compile the runner.

    Without a library being named that is the buildspec's finished build for this machine, else the official wheel.
    Raises `ModelError` (`model-missing`), `UsageError` (`bad-option`, `not-built`), and as planning and compiling do.
    """
    planned = _planned(asked, console)
    (target, *_) = planned.plan.targets
    library, path = _library(asked, planned, target)
    with console.step("compile the runner") as step:
        runner = executor_for(planned, target, asked.request, step).run_runner(target.runner)
    return Subject(planned=planned, target=target, library=library, path=path, runner=runner)


def _planned(asked: Asked, console: Console) -> Planned:
    spec = asked.request.spec
    if not is_buildspec(spec):
        if asked.library == BUILT:
            hint = f"a model's file has no build; name its buildspec, or a library, or {WHEEL}"
            raise UsageError("bad-option", "does not go with a model's file", where="--library built", hint=hint)
        planned = planned_to_run(spec_of_model(spec, asked.dimensions), asked.request, console)
        if left := _left_open(planned, asked.dimensions):
            console.note(f"sizes that are taken to be 1: {', '.join(left)}; give others with --dim NAME=SIZE")
        return planned
    refuse_sizes(asked.dimensions)
    if asked.library in {"", BUILT}:
        try:
            return make_planned(asked.request, console)
        except UsageError as error:
            if error.reference != "no-such-target" or asked.library:
                raise
    return planned_here(asked.request, console)


def _left_open(planned: Planned, dimensions: Mapping[str, int]) -> tuple[str, ...]:
    """Return the dimensions of a model's inputs that nobody gave a size."""
    (model,) = planned.models.prepared
    return tuple(name for name in open_sizes(model.facts.inputs) if name not in dimensions)


def _library(asked: Asked, planned: Planned, target: PlannedTarget) -> tuple[BenchLibrary, Path]:
    spec, folder = asked.request.spec, finished_build(target.job)
    if asked.library not in {"", BUILT, WHEEL}:
        path = Path(asked.library)
        if not path.is_file() or path.stat().st_size == 0:
            hint = f"give the path of a library, {BUILT} or {WHEEL}"
            raise UsageError("bad-option", f"'{asked.library}' is no library", where="--library", hint=hint)
        return _described("file", path.name, path, planned), path
    if asked.library != WHEEL and is_buildspec(spec) and is_kept(folder):
        path = result_of(folder).library
        return _described(
            BUILT, f"the build of {planned.plan.spec_name}, profile {target.job.profile}", path, planned
        ), path
    if asked.library == BUILT:
        hint = f"run: invoke build -s {spec}"
        raise UsageError("not-built", "it was not built for this machine", where=str(spec), hint=hint)
    runtime = planned.models.runtime
    return _described(WHEEL, own_baseline(runtime).name, runtime.library, planned), runtime.library


def _described(kind: LibraryKind, name: str, path: Path, planned: Planned) -> BenchLibrary:
    version = planned.plan.ort_version
    return BenchLibrary(kind=kind, name=name, sha256=sha256_of(path), ort_version=version, full=not is_minimal(path))
