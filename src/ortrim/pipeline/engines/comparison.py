"""`compare`: the same models and cases in several inference engines, in turn."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim.bench.engine_answers import CannotRun
from ortrim.bench.engine_catalogue import TRIMMED, Engine, engines_named
from ortrim.bench.engine_runs import Driver, Patience, Place
from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.engine_comparison import ComparedCase, EngineComparison, EngineFacts
from ortrim.core.serialization import to_json
from ortrim.errors import UsageError
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.bench.alone import alone
from ortrim.pipeline.converted import Request
from ortrim.pipeline.engines.places import installed_bytes, place_of
from ortrim.pipeline.engines.subjects import Subject, Trimmed, check_names, loaded_of, subject_of, trimmed_of
from ortrim.pipeline.engines.turns import Setting, compared_case
from ortrim.pipeline.models.ready import ready_models
from ortrim.report.engine_markdown import engine_markdown
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.tools.full_runtime import FullRuntime, full_runtime
from ortrim.verify.devices.host import Host

FOLDER: Final = "compare"
"""Where comparisons are written, in the folder of packages and reports."""
JSON_NAME: Final = "compare.json"
MARKDOWN_NAME: Final = "compare.md"
ROUNDS: Final = 5
"""How often each engine is run for each case, in a process of its own each time."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What is to be compared: a buildspec or a model's file in `request.spec`, and which engines, models and cases.

    Without any named, these are the usual engines and all models and cases. `library` is a trimmed one to take in
    place of the buildspec's finished build.
    """

    request: Request
    engines: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    dimensions: Mapping[str, int] = field(default_factory=dict)
    rounds: int = ROUNDS
    threads: int = 1
    library: Path | None = None
    patience: Patience = field(default_factory=Patience)


def compare_engines(compared: Compared, console: Console) -> EngineComparison:
    """Run all cases in all engines. What an engine cannot do is a row that says why, and fails nothing.

    Raises `UsageError` (`bad-option`, `no-such-model`, `no-such-case`, `bench-busy`), what reading the buildspec, doing
    its steps, making its cases and running them in the full runtime raise, and `StorageError`.
    """
    engines = engines_named(compared.engines)
    loaded = loaded_of(compared.request, compared.dimensions)
    check_names(loaded, compared.models, compared.cases)
    subjects, runtime = _subjects(compared, loaded, console)
    machine, load_average = Host(compared.request.cores).facts(), os.getloadavg()[0]
    with _working_folder() as folder:
        driver = Driver(folder=folder, threads=compared.threads, patience=compared.patience)
        setting = _setting(compared, loaded, engines, driver, console)
        with alone():
            cases, versions = _measured(subjects, setting, console)
    return EngineComparison(
        name=loaded.spec.name,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ortrim_version=installed_version("ortrim"),
        reference=f"ONNX Runtime {runtime.version}, optimizations off",
        machine=machine,
        load_average=load_average,
        threads=compared.threads,
        rounds=compared.rounds,
        engines=tuple(_facts(engine, setting.places[engine.name], versions) for engine in engines),
        cases=cases,
    )


def write_comparison(comparison: EngineComparison, output: Path) -> Path:
    """Write `compare.json` and `compare.md` below `output` and return their folder. Raises `StorageError`."""
    folder = output / FOLDER / comparison.name
    texts = {JSON_NAME: to_json(comparison), MARKDOWN_NAME: engine_markdown(comparison)}
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return folder


@contextmanager
def _working_folder() -> Iterator[Path]:
    """Make a folder for converted models and outputs, and remove it in the end."""
    root = cache_folder("compare")
    with storage_errors(root), tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _subjects(compared: Compared, loaded: LoadedSpec, console: Console) -> tuple[tuple[Subject, ...], FullRuntime]:
    ready = ready_models(loaded, console)
    runtime = _runtime(loaded)
    numbers = [n for n, each in enumerate(ready) if not compared.models or each.model.name in compared.models]
    with console.step("run the models without optimizations"):
        made = (subject_of(loaded, number, ready[number], runtime, compared.cases) for number in numbers)
        subjects = tuple(subject for subject in made if subject.cases)
    if not subjects:
        raise UsageError("no-such-case", "none of these models has such a case", where="--case", hint="leave one out")
    return subjects, runtime


def _runtime(loaded: LoadedSpec) -> FullRuntime:
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    return full_runtime(pins.version, pins.converter_requirements)


def _setting(
    compared: Compared, loaded: LoadedSpec, engines: tuple[Engine, ...], driver: Driver, console: Console
) -> Setting:
    """Find the trimmed runtime, and install what is not there yet."""
    runtime = _runtime(loaded)
    wanted = any(engine.name == TRIMMED for engine in engines)
    trimmed = trimmed_of(loaded, compared.request, compared.library, console) if wanted else None
    places: dict[str, Place | CannotRun] = {}
    with console.step("install the engines") as step:
        for number, engine in enumerate(engines):
            step.progress(number, len(engines), engine.title)
            if engine.name == TRIMMED and not isinstance(trimmed, Trimmed):
                assert trimmed is not None
                places[engine.name] = trimmed
            else:
                library = trimmed.library if isinstance(trimmed, Trimmed) else None
                places[engine.name] = place_of(engine, runtime, library)
    return Setting(engines=engines, places=places, trimmed=trimmed, driver=driver, rounds=compared.rounds)


def _measured(
    subjects: tuple[Subject, ...], setting: Setting, console: Console
) -> tuple[tuple[ComparedCase, ...], Mapping[str, str]]:
    """Return all cases, fewer when the user stopped it, and the version that each engine told."""
    pairs = [(subject, case) for subject in subjects for case in subject.cases]
    cases: list[ComparedCase] = []
    versions: dict[str, str] = {}
    with console.step("compare") as step:
        try:
            for number, (subject, case) in enumerate(pairs):

                def tell(done: float, text: str, number: int = number, name: str = case.name) -> None:
                    step.progress(number + done, len(pairs), f"{name}: {text}")

                found, told = compared_case(subject, case, setting, tell)
                cases.append(found)
                versions.update(told)
        except KeyboardInterrupt:
            if not cases:
                raise
            step.note("stopped; the cases that were finished are shown")
    return tuple(cases), versions


def _facts(engine: Engine, place: Place | CannotRun, versions: Mapping[str, str]) -> EngineFacts:
    known = None if isinstance(place, CannotRun) else installed_bytes(place)
    version = versions.get(engine.name, "")
    return EngineFacts(name=engine.name, title=engine.title, version=version, use=engine.use, installed_bytes=known)
