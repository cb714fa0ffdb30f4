"""Other inference engines, installed and run for real; and what becomes of one that crashes, hangs or runs wild."""

import io
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_samples import model_of, value, write
from ortrim.base.console import Console
from ortrim.bench import comparison as comparison_module
from ortrim.bench import engine_processes
from ortrim.bench.comparison import Compared, compare_engines
from ortrim.bench.engines import Engine, EngineComparison
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import TensorInfo
from ortrim.parity.measurements import Verdict
from ortrim.parity.runner import Repetition
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.request import Request

REPETITION: Final = Repetition(runs=20, warmup=2, seconds=0.2, timeout_seconds=60.0)
ODD: Final[Mapping[str, tuple[str, str, str]]] = {
    "crashes": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "load", "it crashed (SIGSEGV)"),
    "aborts": (
        "import os\nprint('native words', flush=True)\nos.abort()",
        "load",
        "it crashed (SIGABRT): native words",
    ),
    "wants memory": ("bytearray(2**45)", "load", "MemoryError"),
    "exits": ("raise SystemExit(3)", "load", "SystemExit: 3"),
    "leaves": ("import os\nos._exit(4)", "load", "it ended with exit code 4 and no answer"),
    "lacks an operator": ("raise RuntimeError('no operator Foo')", "load", "RuntimeError: no operator Foo"),
    "panics": ("class Panic(BaseException): ...\nraise Panic('rust')", "load", "Panic: rust"),
}
"""What an engine does while it loads a model, at which stage that is, and the reason that is shown."""


def odd_place(folder: Path, load: str, run: str = "return feeds") -> engine_processes.EngineEnvironment:
    indented = load.replace("\n", "\n    ")
    loads = f"def load(request):\n    {indented}\n    def run(feeds):\n        {run}\n    return run\n"
    text = f"def version():\n    return '1'\n\n{loads}"
    (folder / "engine_odd.py").write_text(text)
    return engine_processes.EngineEnvironment(
        engine=Engine(name="odd", title="odd", use=""),
        words=(sys.executable,),
        environment={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        packages=folder,
        libraries=folder,
    )


def odd_job(folder: Path) -> engine_processes.EngineJob:
    np.save(folder / "input_000.npy", np.arange(3, dtype=np.int32))
    inputs = (TensorInfo(name="x", shape=(3,), element_type="int32"),)
    return engine_processes.EngineJob(
        case="one",
        model=folder / "m",
        files=(folder / "input_000.npy",),
        inputs=inputs,
        outputs=(TensorInfo(name="y", shape=(3,), element_type="int64"),),
    )


@pytest.mark.parametrize("name", ODD)
def test_an_engine_may_do_what_it_likes(tmp_path: Path, name: str) -> None:
    """It is told by its stage and its last words."""
    load, stage, words = ODD[name]
    found = engine_processes.Driver(folder=tmp_path / "w", repetition=REPETITION).run(
        odd_place(tmp_path, load), odd_job(tmp_path)
    )
    assert isinstance(found, engine_processes.CannotRun)
    assert found.stage == stage
    assert words in found.reason


def test_an_engine_that_hangs_is_stopped(tmp_path: Path) -> None:
    driver = engine_processes.Driver(folder=tmp_path / "w", repetition=Repetition(timeout_seconds=2.0))
    found = driver.run(odd_place(tmp_path, "pass", "import time\n        time.sleep(600)"), odd_job(tmp_path))
    assert isinstance(found, engine_processes.CannotRun)  # at whatever stage a busy machine was by then
    assert found.reason == "it did not end within 2 seconds and was stopped"


def test_an_engine_that_is_not_there_is_reported(tmp_path: Path) -> None:
    place = odd_place(tmp_path, "pass")
    (tmp_path / "engine_odd.py").write_text("import no_such_engine")
    found = engine_processes.Driver(folder=tmp_path / "w").run(place, odd_job(tmp_path))
    assert isinstance(found, engine_processes.CannotRun)
    assert (found.stage, "no_such_engine" in found.reason) == ("import", True)


def test_a_converter_may_write_over_its_model(tmp_path: Path) -> None:
    """As onnx2tf does: it gets a copy, with the weights beside the model, of which nothing is left."""
    place = odd_place(tmp_path, "pass")
    lines = (
        "from pathlib import Path",
        "def version(): return '1'",
        "def convert(request):",
        "    model = Path(request['model'])",
        "    assert model.with_name('weights').read_text() == 'w'",
        "    model.write_text('simplified')",
        "    (Path(request['converted']) / 'made').touch()",
    )
    (tmp_path / "engine_odd.py").write_text("\n".join(lines))
    (tmp_path / "models").mkdir()
    for name, text in (("m", "original"), ("weights", "w")):
        (tmp_path / "models" / name).write_text(text)
    job = replace(odd_job(tmp_path), model=tmp_path / "models" / "m")
    found = engine_processes.Driver(folder=tmp_path / "w").convert(place, job)
    assert isinstance(found, engine_processes.EngineConversion), found
    assert (tmp_path / "models" / "m").read_text() == "original"
    assert [path.name for path in (tmp_path / "w" / "odd" / "converted").iterdir()] == ["made"]


def test_what_an_engine_prints_is_not_its_answer(tmp_path: Path) -> None:
    """And integers that it knows no wider type for are those of the model."""
    found = engine_processes.Driver(folder=tmp_path / "w", repetition=REPETITION).run(
        odd_place(tmp_path, "print('{}')"), odd_job(tmp_path)
    )
    assert isinstance(found, engine_processes.EngineRun)
    assert (found.outputs[0].element_type, found.outputs[0].shape, len(found.samples_ms)) == ("int64", (3,), 20)
    assert found.libraries == ()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run beside whatever is measured on this machine: no time is judged here."""
    monkeypatch.setattr(comparison_module, "alone", nullcontext)


def convolution() -> onnx.ModelProto:
    """Return a model that every engine knows: Conv, Relu, and a sum over each channel."""
    weights = numpy_helper.from_array(np.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    ends = [value("x", shape=("n", 3, 8, 8))], [value("y", shape=("n", 4, 1, 1))]
    return model_of(nodes, *ends, initializers=[weights], opsets=[("", 13)])


def compared(folder: Path, *engines: str, library: Path | None = None) -> EngineComparison:
    write(folder / "conv.onnx", convolution())
    spec = folder / "conv.toml"
    spec.write_text(
        '[[models]]\nname = "conv"\npath = "conv.onnx"\ncases = [{ name = "two", dimensions = { n = 2 } }]\n'
    )
    request = Request(spec=spec)
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    asked = Compared(request=request, engines=engines, rounds=2, library=library, repetition=REPETITION)
    return compare_engines(asked, console)


def check_all_ran(comparison: EngineComparison) -> None:
    """Every engine ran, answered rightly, said its version, and had libraries of its own open."""
    for row in comparison.cases[0].rows:
        assert row.times is not None, row
        assert row.times.parity.verdict is Verdict.PASS, row.times.parity
        assert 1_000_000 < row.times.library_bytes < 200_000_000
        assert 0 < row.times.peak_bytes < 500_000_000
        assert row.times.latency_ms.count > 2
    assert all(engine.version and engine.installed_bytes for engine in comparison.engines)


@pytest.mark.usefixtures("alone")
def test_a_library_by_its_c_api(tmp_path: Path) -> None:
    """As a trimmed one is called; the official library takes the converted model too."""
    pins = runtime_pins(RuntimeSpec().version)
    library = full_runtime(pins.version, pins.converter_requirements).library
    comparison = compared(tmp_path, "trimmed", library=library)
    check_all_ran(comparison)
    assert comparison.engines[1].version == RuntimeSpec().version
    assert comparison.engines[1].installed_bytes == library.stat().st_size


@pytest.mark.network
@pytest.mark.usefixtures("alone")
def test_engines_from_wheels(tmp_path: Path) -> None:
    """The two smallest: one takes the ONNX file, one has a converter. They stay in the cache once they are there."""
    comparison = compared(tmp_path, "tract", "mnn")
    check_all_ran(comparison)
    assert [engine.version for engine in comparison.engines[1:]] == ["0.23.9", "3.6.1"]
    assert [row.times.convert_ms is not None for row in comparison.cases[0].rows if row.times] == [False, False, True]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("engine", ["openvino", "ncnn", "litert"])
def test_larger_engines_from_wheels(tmp_path: Path, engine: str) -> None:
    """LiteRT's converter alone is 2.5 GB."""
    check_all_ran(compared(tmp_path, engine))
