"""Each benchmark from its command to its record and table, with a machine and builds that take no time."""

import re
import shutil
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import activation_memory.measure
import budget_verdicts.measure
import build_options
import build_time.bench
import build_time.session
import build_time.worker
import footprint.measure
import footprint.rounds
import kernel_models
import measuring
import numpy as np
import preparation
import pytest
import session_settings
import transformer_model
from activation_memory.subjects import SUBJECTS
from budget_verdicts import slowed
from build_time.meter import Cost
from build_time.subject import Subject
from footprint.contenders import WHEEL, WHEEL_ORT, Contender, Contest
from footprint.record import Library, ModelKind
from invoke.collection import Collection
from onnx import helper
from preparation import GIVEN, PREPARED, Change, ModelFigures
from verdicts import drawn

from judged_models import runtime
from onnx_samples import model_of, value, write
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.buildspec.load import load_spec
from ortrim.compiling.plan import CompiledUnits, CompilerCacheUse
from ortrim.devices.device import ProgramDevice
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import CaseRun, MemoryUse, RunnerOutput, RunRequest
from ortrim.platforms import target_problems
from program_runs import Run
from sample_plans import sample_plan

ROOT = Path(__file__).parents[3]
TINY = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"
SPEC = ROOT / "buildspecs" / "silero-vad.toml"
DIGEST = "ab" * 32
UNIT_MS = 3e-5
"""What a unit of work takes that `budget_verdicts` compiles into a library."""

pytestmark = pytest.mark.usefixtures("checkout")


class Machine(ProgramDevice):
    """A device on which each process takes as long as another, but for noise and what was compiled into a library."""

    name = "host"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.compiled: dict[str, dict[str, float]] = {}
        self._random = np.random.default_rng(1)

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run at once."""
        self.ran.append(request.library.stem)
        more = self.compiled.get(request.library.name, {})
        noise = float(np.exp(self._random.normal(0, 0.01)))
        ms = noise * (0.1 + UNIT_MS * more.get("WORK", 0))
        runs = tuple(
            CaseRun(
                name=case.name, first_run_ms=9.0, outputs=(), runs=3,
                input_ms=(0.0,) * 3, inference_ms=(ms,) * 3, output_ms=(0.0,) * 3,
            )
            for case in request.cases
        )  # fmt: skip
        memory = MemoryUse(
            opened_rss_bytes=1,
            loaded_rss_bytes=2,
            peak_rss_bytes=round(noise * (1e7 + more.get("MEMORY", 0))),
            inference_peak_rss_bytes=None,
            peak_source="VmHWM",
        )
        return RunnerOutput(
            schema="ortrim-runner/1",
            status="ok",
            runtime_version="1.21.0",
            open_ms=1.0,
            load_ms=noise * (8 + UNIT_MS * more.get("LOAD_WORK", 0)),
            cases=runs,
            memory=memory,
        )

    def facts(self) -> HostFacts:
        """Describe it."""
        return HostFacts(system="Linux", machine="x86_64", cpu="A processor", cores=2, memory_bytes=1 << 34)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Let every benchmark measure on such a device, at rest."""
    machine = Machine()
    for module in (footprint.measure, footprint.rounds, preparation, session_settings):
        monkeypatch.setattr(module, "Host", lambda: machine)
    monkeypatch.setattr(budget_verdicts.measure, "Host", lambda: machine)
    monkeypatch.setattr(footprint.rounds, "wait_for_rest", lambda *_: 0.25)
    return machine


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Return a case with an input of 16 numbers."""
    np.save(tmp_path / "input_000.npy", np.zeros((1, 16), np.float32))
    return Case(name="one", folder=tmp_path, digest=DIGEST)


def contest(case: Case, *names: str) -> Contest:
    """Return a contest of contenders with these names."""
    contenders = (
        Contender(
            name=name, library=Path(f"/lib/{name}.so"), library_sha256="a", model=Path("m"), model_sha256="b",
            session=SessionSettings(),
        )
        for name in names
    )  # fmt: skip
    return Contest(
        spec="demo", model="net", runner=Path("r"), runner_sha256="c", cases=(case,), contenders=tuple(contenders)
    )


def library(contender: str) -> Library:
    """Return a library's facts."""
    return Library(spec="demo", contender=contender, sha256=DIGEST, file_bytes=9_000, compressed_bytes=3_000)


def built(case: Case, folder: Path) -> Any:
    """Return a build of one model with one case."""
    shutil.copy(TINY, folder / "built.so")
    converted = OrtModel(
        name="net",
        path=Path("m.ort"),
        sha256=DIGEST,
        size_bytes=9,
        ort_version="1.21.0",
        style="fixed",
        level="extended",
        config="",
    )
    models = SimpleNamespace(
        prepared=(SimpleNamespace(name="net", path=Path("m.onnx")),),
        converted=(converted,),
        runtime=SimpleNamespace(library=Path("wheel.so")),
    )
    planned = SimpleNamespace(models=models, cases=((case,),))
    return SimpleNamespace(planned=planned, library=folder / "built.so", headers=folder, runner=Path("r"))


def test_footprint(ortrim: Run, machine: Machine, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every library runs in every round, each begins in turn, and there are a report and a picture."""
    names = (WHEEL, WHEEL_ORT, "upstream", "balanced")
    own = contest(case, *names)
    kinds = (ModelKind(spec="demo", model="net", convolutions=True, layout=False),)
    subject = SimpleNamespace(name="demo", contests=lambda: (own,), kinds=lambda: kinds)
    monkeypatch.setattr(footprint.measure, "built_subject", lambda *_: subject)
    monkeypatch.setattr(footprint.measure, "libraries_of", lambda *_: tuple(map(library, names)))
    record = ortrim("measure.footprint", "--spec", "demo.toml", "--rounds", "2", "--output", "out", "--json").document()
    assert machine.ran == [*names, *names[1:], names[0]]
    assert [each["number"] for each in record["rounds"]] == [1, 2]
    assert {path.suffix for path in Path("out").iterdir()} == {".json", ".md", ".svg"}
    assert "| balanced | 9,000 | 1.000 | 3,000 |" in Path("out/footprint.md").read_text()


def test_preparation(ortrim: Run, machine: Machine, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models with and without their steps run in turn; the default specs have steps."""
    own = contest(case, GIVEN, PREPARED)
    figures = ModelFigures(onnx_bytes=2_850_000, nodes=63, operator_types=14, ort_bytes=2_300_000)
    change = Change(
        spec="demo", model="net", key=own.key, given=figures, prepared=figures, outputs=16, outputs_agree=16,
        largest_difference=2.5e-6,
    )  # fmt: skip
    pair = SimpleNamespace(name="demo", contests=lambda: (own,), prepared=SimpleNamespace(kinds=lambda: ()))
    monkeypatch.setattr(preparation, "built_pair", lambda *_: pair)
    monkeypatch.setattr(preparation, "proved", lambda *_: (tuple(map(library, (GIVEN, PREPARED))), (change,)))
    words = ("--spec", "demo.toml", "--rounds", "2", "--output", "out", "--json")
    assert len(ortrim("measure.preparation", *words).document()["rounds"]) == 2
    assert machine.ran == [GIVEN, PREPARED, PREPARED, GIVEN]
    assert "| demo: net | " in Path("out/preparation.md").read_text()
    specs = [load_spec(spec, target_problems) for spec in preparation.SPECS]
    assert all(model.steps for spec in specs for model in spec.models)


def test_session(ortrim: Run, machine: Machine, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting is changed alone, beside the wheel."""
    seconds = count()
    monkeypatch.setattr(session_settings, "_children_seconds", lambda: float(next(seconds)))
    monkeypatch.setattr(session_settings, "find_build", lambda *_: built(case, tmp_path))
    record = ortrim("measure.session", "--spec", "demo.toml", "--rounds", "2", "--output", "out", "--json").document()
    assert len(machine.ran) == 2 * len(record["rows"])
    assert "| net, one | arena = false | " in Path("out/session-settings.md").read_text()


def test_verdicts(ortrim: Run, machine: Machine, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library beside its copy passes, one that is found to be 5 % worse fails."""

    def compile_it(*words: str | Path) -> None:
        defined = dict(str(word)[2:].split("=", 1) for word in words if str(word).startswith("-D"))
        work = float(defined["WORK"].strip("{}").split(",")[1])
        amounts = {"WORK": work, **{name: float(defined[name]) for name in ("LOAD_WORK", "MEMORY")}}
        machine.compiled[Path(words[-2]).name] = amounts

    monkeypatch.setattr(budget_verdicts.measure, "find_build", lambda *_: built(case, tmp_path))
    monkeypatch.setattr(slowed, "compile_c", compile_it)
    trials = ortrim("measure.verdicts", "--number", "1", "--output", "out", "--json").document()
    assert [each["kind"] for each in trials] == ["same", "slowed"]
    text = Path("out/verdicts.md").read_text()
    assert "| the same library | 1 | load | 1.03 | 1 | 0 | 0 |" in text
    assert "| 5 % worse | 1 | load | 1.03 | 0 | 0 | 1 |" in text


def test_memory(ortrim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model runs in ONNX Runtime as it is and as it is optimized; its memory is measured beside the counted one."""
    shape = (1, 1 << 20)
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=shape)], [value("y", shape=shape)])
    path = write(tmp_path / "relu.onnx", model)
    subject = replace(SUBJECTS[0], shapes=(("x", shape),))
    monkeypatch.setattr(activation_memory.measure, "_chosen", lambda _: (subject,))
    monkeypatch.setattr(activation_memory.measure, "model_of", lambda *_: path)
    python = FullRuntime(version="1.21.0", words=(sys.executable,), environment={}, packages=tmp_path, library=tmp_path)
    monkeypatch.setattr(activation_memory.measure, "full_runtime", lambda *_: python)
    record = ortrim("measure.memory", "--output", "out", "--json").document()
    assert [each["form"] for each in record["rows"]] == ["as it is", "basic", "extended"]
    assert Path("out/activation-memory.md").read_text().count("\n") == 5


def test_build_options(ortrim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option is built alone on and alone off."""
    plan = sample_plan()
    planned = SimpleNamespace(plan=replace(plan, targets=plan.targets[:1]))
    result = SimpleNamespace(library=shutil.copy(TINY, tmp_path / "library.so"))
    executor = SimpleNamespace(run=lambda _: result)
    monkeypatch.setattr(build_options, "planned_for", lambda *_, **__: planned)
    monkeypatch.setattr(build_options, "executor_for", lambda *_: executor)
    assert ortrim("measure.build-options", "--output", "out").code == 0
    (report,) = Path("out").glob("*.md")
    assert "| icf | +0 | +0 |" in report.read_text()


BUILD_PY = f"""
import os, shutil, sys
from pathlib import Path
print("[1/2] Building a.o", flush=True)
print("[2/2] Linking libonnxruntime.so", flush=True)
out = Path(sys.argv[sys.argv.index("--build_dir") + 1]) / "MinSizeRel"
out.mkdir(parents=True)
shutil.copy({str(TINY)!r}, out / "libonnxruntime.so.1.21.0")
"""


@pytest.fixture
def free_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let upstream's recipe be a script that copies a library, and ortrim's nothing, both in this process."""
    script = tmp_path / "sources" / "onnxruntime" / "tools" / "ci_build" / "build.py"
    script.parent.mkdir(parents=True)
    script.write_text(BUILD_PY)
    job = sample_plan().targets[0].job

    def planned(spec: Path, _console: object) -> Subject:
        own = replace(job, operator_config=f"ai.onnx;{len(spec.stem)};Add\n")
        return Subject(name=spec.stem, file=spec, job=own, plan_digest="d" * 64, sources=tmp_path / "sources")

    def cost_of(work: Any) -> Cost:
        work()
        return Cost(
            wall_seconds=60, cpu_seconds=90, other_cpu_seconds=0, peak_process_bytes=1, peak_total_bytes=1,
            complete=True,
        )  # fmt: skip

    class Executor:
        """Builds nothing."""

        def __init__(self, **_: Any) -> None:
            self.log = None

        def run(self, _job: object) -> Any:
            """Return the library."""
            units, cache = CompiledUnits(compiled=2, total=9), CompilerCacheUse(hits=1, requests=2)
            return SimpleNamespace(library=TINY, link_map=None, units=units, compiler_cache=cache)

    def work(bench: build_time.bench.Bench, each: Any, cache: Path, _step: object) -> Any:
        return build_time.worker.do(bench._request(each, cache))

    monkeypatch.setattr("build_time.measure.planned_subject", planned)
    monkeypatch.setattr("ortrim.pipeline.building.packages_folder", lambda *_: tmp_path / "tools")
    monkeypatch.setattr(build_time.session, "packages_folder", lambda *_: tmp_path)
    monkeypatch.setattr(build_time.session, "wait_for_rest", lambda *_: 0.0)
    monkeypatch.setattr(build_time.worker, "cost_of", cost_of)
    monkeypatch.setattr(build_time.worker, "say", lambda *_: None)
    monkeypatch.setattr(build_time.worker, "Executor", Executor)
    monkeypatch.setattr(build_time.bench.Bench, "work", work)


@pytest.mark.usefixtures("free_builds")
def test_build(ortrim: Run) -> None:
    """Upstream's recipe and ortrim's, and the graph of growing operators."""
    words = ("--cases", "upstream,ortrim", "--graph", "graph.svg", "--output", "out")
    ended = ortrim("measure.build", "--spec", str(SPEC), *words, "--json")
    assert ended.code == 0, ended.err
    assert [each["case"] for each in ended.document()["measurements"]][:3] == ["upstream", "ortrim", "operators-1"]
    assert "upstream's recipe: 1 min 30 s" in Path("graph.svg").read_text()


def test_models_that_scripts_made(tmp_path: Path) -> None:
    """Byte by byte, so that nobody has to trust a binary."""
    kernel_models.main([str(tmp_path)])
    transformer_model.main([str(tmp_path / "encoder.onnx")])
    committed = (*kernel_models.DEFAULT_FOLDER.iterdir(), transformer_model.DEFAULT_FILE)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in committed}


def test_models_for_check_compat() -> None:
    """Of operators of the runtime alone: of others the verdict would be no art."""
    models = dict(drawn(runtime("ai.onnx;14;Relu\nai.onnx;13;Where\n"), 0))
    assert {model.graph.node[0].op_type for model in models.values()} == {"Relu", "Where"}


@pytest.mark.parametrize("name", Collection.from_module(measuring).task_names)
def test_every_option_is_explained(ortrim: Run, name: str) -> None:
    """`--help` names each with a text."""
    ended = ortrim("--help", f"measure.{name}")
    assert (ended.code, ended.err) == (0, "")
    options = [line for line in ended.out.splitlines() if line.startswith("  -")]
    assert options
    assert all(re.match(r"  -.*?  +\S", line) for line in options)
