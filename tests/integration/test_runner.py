"""The runner, compiled here, with the installed wheel's library and small models."""

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.base.command import Completed, run
from ortrim.base.files import sha256_of
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec, SessionSettings, session_json
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.compare import GIVEN, compare
from ortrim.parity.inputs import Case, load_array, make_cases
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import Repetition, RunnerEnded, RunRequest, read_output, runner_words
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.conversions import subject_of, with_draws_given
from ortrim.sources.sources import fetch_sources
from ortrim.verify.measure import Baseline
from ortrim.verify.target import verify_on
from refusing import refused
from sample_tasks import sample_task

pytestmark = pytest.mark.network

RUNNER_SOURCES = Path(__file__).parents[2] / "runner"
OPSET = 17
STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror")
NUMBERS = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "string",
)  # fmt: skip
ONNX_TYPES = {"float32": "FLOAT", "float64": "DOUBLE"}

Build = Callable[..., PreparedModel]


def compiler() -> list[str]:
    found = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if found:
        return [found]
    return [str(packages_folder("tools", tool_requirements()) / "ziglang" / "zig"), "cc"]


def compile_c(output: Path, *words: str | Path) -> None:
    done = run([*compiler(), *STRICT, *words, "-o", output, "-ldl", "-lpthread"])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def headers() -> Path:
    """Return the folder of ONNX Runtime's C API header."""
    tree = fetch_sources(runtime_pins(onnxruntime.__version__), "auto")
    return tree.folder / "onnxruntime" / "include" / "onnxruntime" / "core" / "session"


@pytest.fixture(scope="session")
def runner(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runner") / "runner"
    compile_c(path, f"-I{headers}", *sorted(RUNNER_SOURCES.glob("*.c")))
    return path


@pytest.fixture(scope="session")
def runtime() -> FullRuntime:
    return full_runtime(onnxruntime.__version__, None)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build a model from nodes and from (name, type, shape) of its inputs and outputs."""

    def make(
        nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
    ) -> PreparedModel:
        graph = helper.make_graph(nodes, "g", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return PreparedModel(name="model", path=path, facts=facts_of(model, sha256_of(path), 1, "model"))

    return make


def value(name: str, kind: str, shape: tuple[int | str, ...]) -> onnx.ValueInfoProto:
    number = getattr(TensorProto, ONNX_TYPES.get(kind, kind.upper()))
    return helper.make_tensor_value_info(name, number, shape)


@pytest.fixture
def request_for(runner: Path, runtime: FullRuntime, tmp_path: Path) -> Callable[..., RunRequest]:

    def make(model: PreparedModel, cases: tuple[Case, ...], **changes: Any) -> RunRequest:
        request = RunRequest(
            runner=runner,
            library=runtime.library,
            model=model.path,
            cases=cases,
            outputs=tmp_path / "ours",
            repetition=Repetition(runs=3, warmup=1, timeout_seconds=60),
        )
        return dataclasses.replace(request, **changes)

    return make


Request = Callable[..., RunRequest]


@pytest.fixture
def parity_of(request_for: Request, runtime: FullRuntime, tmp_path: Path) -> Callable[..., dict[str, OutputParity]]:
    """Run a model by the runner and by the reference script and compare all outputs."""

    def compared(model: PreparedModel, *cases: CaseSpec) -> dict[str, OutputParity]:
        spec = ModelSpec(name="model", path=model.path, cases=cases)
        made = make_cases(model, spec, tmp_path, tmp_path / "cases")
        reference = reference_outputs(model, made, runtime, tmp_path / "reference")
        output = Host().run(request_for(model, made))
        ours = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in output.cases)
        found = compare("model", reference, SavedOutputs(folder=tmp_path / "ours", cases=ours), {})
        return {f"{parity.case}/{parity.output}": parity for parity in found}

    return compared


Parity = Callable[..., dict[str, OutputParity]]


def identity_model(build: Build, *kinds: str, shape: tuple[int | str, ...] = ("n", 3)) -> PreparedModel:
    nodes = [helper.make_node("Identity", [f"in_{kind}"], [f"out_{kind}"]) for kind in kinds]
    inputs = [value(f"in_{kind}", kind, shape) for kind in kinds]
    return build(nodes, inputs, [value(f"out_{kind}", kind, shape) for kind in kinds])


def test_every_type_comes_through(build: Build, parity_of: Parity, tmp_path: Path) -> None:
    """Inputs of all types are what comes out, read and written by the runner and, anew, by the reference script."""
    sizes = [CaseSpec(name=f"n{n}", dimensions={"n": n}) for n in (0, 1, 4)]
    found = parity_of(identity_model(build, *NUMBERS), *sizes)
    assert len(found) == len(NUMBERS) * 3
    unjudged = {name: parity.reason for name, parity in found.items() if parity.verdict is not Verdict.PASS}
    assert set(unjudged.values()) == {"it has no elements"}
    assert set(unjudged) == {name for name in found if name.startswith("n0/")}
    (case,) = (tmp_path / "cases").glob("n4-*")
    for index in range(len(NUMBERS)):
        suffix = "strings" if NUMBERS[index] == "string" else "npy"
        given, found_array = (
            case / f"input_{index:03}.{suffix}",
            tmp_path / "ours" / "n4" / f"output_{index:03}.{suffix}",
        )
        assert np.array_equal(load_array(given), load_array(found_array))


def test_bfloat16_comes_through(build: Build, parity_of: Parity) -> None:
    """The type that NumPy lacks travels as its bits, on both ways."""
    found = parity_of(
        identity_model(build, "bfloat16", "float32"), *[CaseSpec(name=f"n{n}", dimensions={"n": n}) for n in (1, 3)]
    )
    assert {parity.element_type for parity in found.values()} == {"bfloat16", "float32"}
    assert {(parity.verdict, parity.max_absolute) for parity in found.values()} == {(Verdict.PASS, 0)}


def test_scalars_come_through(build: Build, parity_of: Parity) -> None:
    """Tensors without dimensions stay so."""
    found = parity_of(identity_model(build, "float32", "int64", "string", shape=()), CaseSpec(name="c"))
    assert {parity.shape for parity in found.values()} == {()}
    assert {parity.verdict for parity in found.values()} == {Verdict.PASS}


def test_the_report_is_whole(build: Build, request_for: Request, tmp_path: Path) -> None:
    """Times, memory, version and outputs are all there and plausible."""
    model = identity_model(build, "float32")
    cases = make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases")
    output = Host().run(request_for(model, cases))
    assert output.runtime_version == onnxruntime.__version__
    assert (output.cases[0].runs, output.memory.peak_source) == (3, "VmHWM")
    assert 0 < output.open_ms < 60_000
    assert 0 < output.load_ms < 60_000
    assert output.load_waited_ms is not None
    assert 0 <= output.load_waited_ms < output.load_ms
    opened, loaded = output.memory.opened_rss_bytes, output.memory.loaded_rss_bytes
    assert opened is not None
    assert loaded is not None
    assert 0 < opened <= loaded <= output.memory.peak_rss_bytes


def test_the_time_limit_ends_the_runs(build: Build, request_for: Request, tmp_path: Path) -> None:
    """No run is begun after the limit, but one is always made."""
    model = identity_model(build, "float32")
    cases = make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases")
    repetition = Repetition(runs=1_000_000, warmup=1_000_000, seconds=0.05)
    assert Host().run(request_for(model, cases, repetition=repetition)).cases[0].runs == 1


def test_settings_are_taken(build: Build, request_for: Request, tmp_path: Path) -> None:
    """Threads, branches, spinning, arena, memory pattern, level and configuration entries all reach the session."""
    model = identity_model(build, "float32")
    cases = make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases")
    session = SessionSettings(
        threads=2,
        inter_op_threads=2,
        allow_spinning=True,
        arena=False,
        memory_pattern=False,
        optimization_level="none",
        configuration=(("session.disable_prepacking", "1"),),
    )
    assert Host().run(request_for(model, cases, session=session)).cases[0].runs == 3


@pytest.mark.parametrize("load", ["file", "bytes", "map"])
def test_a_model_is_the_same_however_it_is_loaded(
    runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path, load: str
) -> None:
    """The runtime reads the file, or is given the bytes that were read or mapped."""
    (tmp_path / "input_000.npy").write_bytes(GOOD)
    done = call(runner, runtime, float_model, "--load", load, "--case", f"c={tmp_path}", "--outputs", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "out" / "c" / "output_000.npy"), np.zeros((1, 3), np.float32))


SESSION = session_json(
    onnxruntime.__version__,
    {
        "other": SessionSettings(load="file", threads=9),
        "model": SessionSettings(
            load="map", threads=2, inter_op_threads=2, arena=False, memory_pattern=False, optimization_level="none",
            configuration=(("session.disable_prepacking", "1"),),
        ),
    },
)  # fmt: skip


def settled(runner: Path, runtime: FullRuntime, folder: Path, text: str) -> Completed:
    """Load `model.ort` with a session file; the settings are taken before the model is looked for."""
    (folder / "session.json").write_text(text, encoding="utf-8")
    return call(runner, runtime, folder / "model.ort", "--session", folder / "session.json")


def test_a_packages_session_file_is_taken(
    runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path
) -> None:
    """As ortrim writes it, and with keys that a later version may add."""
    float_model.rename(tmp_path / "model.ort")
    text = SESSION.replace(
        '"file": "model.ort"', '"later": [{"x": [1, -2.5e3, null, []]}, "y", true], "file": "model.ort"'
    )
    assert settled(runner, runtime, tmp_path, SESSION).returncode == 0
    assert settled(runner, runtime, tmp_path, text).returncode == 0


WITH_PROVIDER = session_json(onnxruntime.__version__, {"model": SessionSettings(load="map", providers=("XNNPACK",))})


def test_execution_providers_of_a_session_file_are_added(
    runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path
) -> None:
    """The official library has none that the C API adds by this name, and says so; a list may be emptied by hand."""
    float_model.rename(tmp_path / "model.ort")
    done = settled(runner, runtime, tmp_path, WITH_PROVIDER)
    assert done.returncode == 2
    assert "XNNPACK execution provider is not supported in this build" in done.stdout + done.stderr
    by_word = call(runner, runtime, tmp_path / "model.ort", "--provider", "XNNPACK")
    assert document(by_word)["message"] == document(done)["message"]
    emptied = re.sub(r"\[\s*\"XNNPACK\"\s*\]", "[]", WITH_PROVIDER)
    assert emptied != WITH_PROVIDER
    assert settled(runner, runtime, tmp_path, emptied).returncode == 0


HOSTILE_SESSIONS = {
    "provider for a list": re.sub(r"\[\s*\"XNNPACK\"\s*\]", '"XNNPACK"', WITH_PROVIDER),
    "number for a provider": WITH_PROVIDER.replace('"XNNPACK"', "1"),
    "endless list of providers": WITH_PROVIDER.replace('"XNNPACK"', '"XNNPACK",'),
    "empty": "",
    "no object": "[]",
    "another schema": SESSION.replace("ortrim-session/1", "ortrim-session/2"),
    "another model": SESSION.replace('"model"', '"mode"'),
    "no models": '{"schema": "ortrim-session/1"}',
    "twice": SESSION + SESSION,
    "another load": SESSION.replace('"map"', '"stream"'),
    "no threads": SESSION.replace('"intra_op_num_threads": 2', '"intra_op_num_threads": 0'),
    "many threads": SESSION.replace('"intra_op_num_threads": 2', '"intra_op_num_threads": 99999999999999999999'),
    "text for a number": SESSION.replace('"intra_op_num_threads": 2', '"intra_op_num_threads": "2"'),
    "number for a truth": SESSION.replace('"enable_cpu_mem_arena": false', '"enable_cpu_mem_arena": 0'),
    "number for a text": SESSION.replace('"session.disable_prepacking": "1"', '"session.disable_prepacking": 1'),
    "deep": '{"x": ' * 100_000,
    "deep arrays": '{"x": ' + "[" * 100_000,
    "escape": SESSION.replace('"map"', '"m\\u0061p"'),
    "zero": "{\0}",
    "long": " " * (1 << 21),
}


@pytest.mark.parametrize("kind", HOSTILE_SESSIONS)
def test_hostile_session_files(runner: Path, runtime: FullRuntime, tmp_path: Path, kind: str) -> None:
    done = settled(runner, runtime, tmp_path, HOSTILE_SESSIONS[kind])
    assert (done.returncode, document(done)["stage"]) == (2, "arguments"), done.stderr


def test_a_session_file_that_is_cut_off_is_refused(runner: Path, runtime: FullRuntime, tmp_path: Path) -> None:
    for length in range(0, len(SESSION) - 2, 7):
        assert settled(runner, runtime, tmp_path, SESSION[:length]).returncode == 2, SESSION[:length]


def test_the_reference_multiplies_integers_right(build: Build, runtime: FullRuntime, tmp_path: Path) -> None:
    """The official library's own kernels for AMX do not, in row 31 of a tile of less than 16 columns."""
    weights = np.random.default_rng(0).integers(0, 256, (64, 18), dtype=np.uint8)
    constants = {"b": weights, "a_zero": np.uint8(127), "b_zero": np.uint8(119)}
    nodes = [
        *(
            helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array), name))
            for name, array in constants.items()
        ),
        helper.make_node("MatMulInteger", ["x", "b", "a_zero", "b_zero"], ["y"]),
    ]
    model = build(nodes, [value("x", "uint8", (32, 64))], [value("y", "int32", (32, 18))])
    cases = make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases")
    reference = reference_outputs(model, cases, runtime, tmp_path / "reference")
    given = load_array(cases[0].folder / "input_000.npy").astype(np.int64)
    (output,) = reference.cases[0].outputs
    assert output.file
    found = load_array(reference.folder / "default" / output.file)
    assert np.array_equal(found, (given - 127) @ (weights.astype(np.int64) - 119))


def test_sequences_are_saved_by_element(build: Build, request_for: Request, tmp_path: Path) -> None:
    node = helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [value("x", "float32", (3, 2))], [sequence])
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(onnx_model.SerializeToString())
    model = identity_model(build, "float32", shape=(3, 2))
    (tmp_path / "model.onnx").write_bytes(onnx_model.SerializeToString())
    cases = make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases")
    output = Host().run(request_for(model, cases))
    reference = reference_outputs(model, cases, full_runtime(onnxruntime.__version__, None), tmp_path / "reference")
    assert [saved.name for saved in output.cases[0].outputs] == ["s[0]", "s[1]", "s[2]"]
    assert output.cases[0].outputs == reference.cases[0].outputs
    given = load_array(cases[0].folder / "input_000.npy")
    assert np.array_equal(load_array(tmp_path / "ours" / "default" / "output_000_002.npy"), given[2:])


def written(tmp_path: Path, model: onnx.ModelProto) -> PreparedModel:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return PreparedModel(name="model", path=path, facts=facts_of(model, sha256_of(path), 1, "model"))


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_maps_are_compared_by_keys_and_values(parity_of: Parity, tmp_path: Path, kind: str) -> None:
    """ZipMap, the end of what scikit-learn exports, gives one map for each row: two vectors each on both sides."""
    labels: dict[str, Any] = (
        {"classlabels_strings": ["b", "Zürich", "a"]} if kind == "string" else {"classlabels_int64s": [7, -1, 3]}
    )
    zipped = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)
    number = TensorProto.STRING if kind == "string" else TensorProto.INT64
    scores = helper.make_map_type_proto(number, helper.make_tensor_type_proto(TensorProto.FLOAT, ()))
    output = helper.make_value_info("y", helper.make_sequence_type_proto(scores))
    graph = helper.make_graph([zipped], "g", [value("x", "float32", ("n", 3))], [output])
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
    model = written(tmp_path, helper.make_model(graph, opset_imports=imports, ir_version=8))
    found = parity_of(model, CaseSpec(name="c", dimensions={"n": 2}))
    assert list(found) == ["c/y[0].keys", "c/y[0].values", "c/y[1].keys", "c/y[1].values"]
    keys, values = ({found[f"c/y[{row}].{part}"].verdict for row in (0, 1)} for part in ("keys", "values"))
    assert (keys, values) == ({Verdict.NOT_JUDGED}, {Verdict.PASS})  # the keys are the same in each row
    assert [parity.element_type for parity in found.values()] == [kind, "float32"] * 2
    saved = load_array(tmp_path / "ours" / "c" / f"output_000_000_keys.{'strings' if kind == 'string' else 'npy'}")
    assert saved.tolist() == sorted(saved.tolist())


def test_random_models_are_not_judged(build: Build, parity_of: Parity) -> None:
    """What another seed changes cannot be compared; the model's other outputs are."""
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["noise"]), helper.make_node("Neg", ["x"], ["y"])]
    outputs = [value("noise", "float32", (4,)), value("y", "float32", (4,))]
    found = parity_of(build(nodes, [value("x", "float32", (4,))], outputs), CaseSpec(name="c"))
    assert [found[name].verdict for name in ("c/noise", "c/y")] == [Verdict.NOT_JUDGED, Verdict.PASS]


def test_indices_beyond_a_vocabulary_say_how_to_bound_them(build: Build, parity_of: Parity) -> None:
    """Random integers that a Gather refuses: what the hint suggests makes the model run."""
    words = helper.make_node(
        "Constant", [], ["table"], value=helper.make_tensor("t", TensorProto.FLOAT, [5], [0.1, 0.2, 0.3, 0.4, 0.5])
    )
    nodes = [words, helper.make_node("Gather", ["table", "ids"], ["y"])]
    model = build(nodes, [value("ids", "int64", (64,))], [value("y", "float32", (64,))])
    error = refused(VerifyError, parity_of, model, CaseSpec(name="c"))
    assert "inputs = { ids = { high = 4 } }" in error.hint
    assert "case 'c'" in error.where
    found = parity_of(model, CaseSpec(name="c", inputs={"ids": InputSpec(high=4)}))
    assert found["c/y"].verdict is Verdict.PASS


def optional_model(tmp_path: Path) -> Path:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, (2,))
    given = helper.make_value_info("x", helper.make_optional_type_proto(tensor))
    graph = helper.make_graph(
        [helper.make_node("OptionalHasElement", ["x"], ["y"])], "g", [given], [value("y", "bool", ())]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path = tmp_path / "optional.onnx"
    path.write_bytes(model.SerializeToString())
    return path


COMMA = """comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
"""
SETS_IT = """#include <locale.h>
#include <stdlib.h>
__attribute__((constructor)) static void set(void) { if (!setlocale(LC_NUMERIC, "comma")) abort(); }
"""


@pytest.mark.needs("localedef")
def test_numbers_are_those_of_json_in_every_locale(
    runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path
) -> None:
    """A library that is loaded may set a locale for the whole process, in which 0.5 is written 0,5."""
    (tmp_path / "comma.source").write_text(COMMA)
    run(["localedef", "-c", "-i", tmp_path / "comma.source", "-f", "ANSI_X3.4-1968", tmp_path / "comma"])
    (tmp_path / "sets.c").write_text(SETS_IT)
    compile_c(tmp_path / "sets.so", "-shared", "-fPIC", tmp_path / "sets.c")
    (tmp_path / "input_000.npy").write_bytes(GOOD)
    words = ("--library", runtime.library, "--preload", tmp_path / "sets.so", "--model", float_model)
    done = run([runner, *words, "--case", f"c={tmp_path}"], environment={"LOCPATH": str(tmp_path)}, timeout_seconds=60)
    assert done.returncode == 0, done.stderr
    assert 0 < document(done)["load_ms"] < 60_000
    (case,) = document(done)["cases"]
    assert len(case["inference_ms"]) == case["runs"]
    assert case["instructions"] is None or len(case["instructions"]) == case["runs"]  # few clouds let one count


@pytest.mark.parametrize("megabytes", [60, 90, 120])
def test_a_limit_of_memory_is_said_to_be_one(
    build: Build, request_for: Request, tmp_path: Path, megabytes: int
) -> None:
    """100 MB for one value are too much under `ulimit -v`."""
    shape = numpy_helper.from_array(np.array([400_000, 64], np.int64), "shape")
    nodes = [
        helper.make_node("Constant", [], ["shape"], value=shape),
        helper.make_node("Expand", ["x", "shape"], ["large"]),
        helper.make_node("ReduceMax", ["large"], ["y"], keepdims=0),
    ]
    model = build(nodes, [value("x", "float32", (1, 64))], [value("y", "float32", ())])
    request = request_for(model, make_cases(model, ModelSpec(name="m", path=model.path), tmp_path, tmp_path / "cases"))
    limited = ("/bin/sh", "-c", f'ulimit -v {megabytes << 10}; exec "$@"', "sh")
    with pytest.raises(RunnerEnded) as caught:
        read_output(run((*limited, *runner_words(request)), timeout_seconds=60), request)
    assert caught.value.code == "out-of-memory"


@pytest.mark.parametrize("present", [True, False])
def test_optional_inputs(runner: Path, runtime: FullRuntime, tmp_path: Path, present: bool) -> None:  # noqa: FBT001
    folder = tmp_path / "case"
    folder.mkdir()
    if present:
        np.save(folder / "input_000.npy", np.zeros(2, np.float32))
    done = call(runner, runtime, optional_model(tmp_path), "--case", f"c={folder}", "--outputs", tmp_path / "out")
    assert done.returncode == 0, done.stdout
    assert bool(np.load(tmp_path / "out" / "c" / "output_000.npy")) is present


def call(runner: Path, runtime: FullRuntime, model: Path, *words: str | Path) -> Completed:
    return run([runner, "--library", runtime.library, "--model", model, *words], timeout_seconds=60)


def document(done: Completed) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == "ortrim-runner/1"
    return found


def npy(descriptor: str, shape: str, data: bytes, order: str = "False") -> bytes:
    header = f"{{'descr': '{descriptor}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


GOOD = npy("<f4", "(1, 3)", bytes(12))
HOSTILE = {
    "empty": b"",
    "magic only": b"\x93NUMPY",
    "no header": b"\x93NUMPY\x01\x00",
    "text": b"hello, this is not an array",
    "version 9": b"\x93NUMPY\x09\x00" + GOOD[8:],
    "header beyond the end": b"\x93NUMPY\x01\x00\xff\xff{",
    "long header beyond the end": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "cut off": GOOD[:-1],
    "too long": GOOD + b"\0",
    "huge shape": npy("<f4", "(9223372036854775807, 9223372036854775807)", b""),
    "huge size": npy("<f8", "(4611686018427387904,)", b""),
    "number too large": npy("<f4", "(99999999999999999999999,)", b""),
    "negative": npy("<f4", "(-1, 3)", b""),
    "many dimensions": npy("<f4", "(" + "1," * 200 + ")", bytes(4)),
    "Fortran order": npy("<f4", "(1, 3)", bytes(12), "True"),
    "big-endian": npy(">f4", "(1, 3)", bytes(12)),
    "object": npy("|O", "(1, 3)", bytes(24)),
    "structure": GOOD.replace(b"'<f4'", b"[('a')"),
    "no shape": GOOD.replace(b"'shape'", b"'shaqe'"),
    "twice": GOOD.replace(b"'fortran_order'", b"'descr'        "),
    "no end": GOOD.replace(b"}", b" "),
    "wrong type": npy("<i8", "(1, 3)", bytes(24)),
    "binary header": b"\x93NUMPY\x01\x00\x10\x00" + bytes(range(240, 256)),
}


@pytest.fixture
def float_model(build: Build) -> Path:
    return identity_model(build, "float32").path


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_arrays(runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path, kind: str) -> None:
    """No file crashes the runner: each is a refusal that names the file."""
    (tmp_path / "input_000.npy").write_bytes(HOSTILE[kind])
    done = call(runner, runtime, float_model, "--case", f"c={tmp_path}")
    assert done.returncode == 5, (done.returncode, done.stderr)
    assert "input_000.npy: " in document(done)["message"]


def test_the_hostile_arrays_are_hostile(runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path) -> None:
    """The array that they are all made from is accepted, so that each is refused for its own fault."""
    (tmp_path / "input_000.npy").write_bytes(GOOD)
    assert call(runner, runtime, float_model, "--case", f"c={tmp_path}").returncode == 0


HOSTILE_STRINGS = {
    "empty": b"",
    "half a rank": b"\x01\0\0",
    "high rank": (2**63).to_bytes(8, "little"),
    "no shape": (2).to_bytes(8, "little"),
    "huge shape": b"".join(n.to_bytes(8, "little") for n in (2, 2**62, 2**62)),
    "negative": b"".join(n.to_bytes(8, "little") for n in (1, 2**64 - 1)),
    "no element": b"".join(n.to_bytes(8, "little") for n in (1, 1)),
    "long element": b"".join(n.to_bytes(8, "little") for n in (1, 1, 2**64 - 1)),
    "more": b"".join(n.to_bytes(8, "little") for n in (1, 0, 0)),
}


@pytest.mark.parametrize("kind", HOSTILE_STRINGS)
def test_hostile_strings(runner: Path, runtime: FullRuntime, build: Build, tmp_path: Path, kind: str) -> None:
    (tmp_path / "input_000.strings").write_bytes(HOSTILE_STRINGS[kind])
    done = call(runner, runtime, identity_model(build, "string").path, "--case", f"c={tmp_path}")
    assert done.returncode == 5, (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "stage"),
    [
        (["--library", "/absent.so", "--model", "MODEL"], 3, "open"),
        (["--library", "RUNNER", "--model", "MODEL"], 3, "open"),
        (["--library", "libm.so.6", "--model", "MODEL"], 3, "open"),
        (["--library", "LIBRARY", "--model", "/absent.onnx"], 4, "load"),
        (["--library", "LIBRARY", "--model", "RUNNER"], 4, "load"),
        *(
            (["--library", "LIBRARY", "--model", model, "--load", load], 4, "load")
            for load in ("map", "bytes")
            for model in ("/absent.onnx", "RUNNER", "EMPTY", "/dev/null")
        ),
        (["--library", "LIBRARY", "--model", "MODEL", "--case", "c=/absent"], 5, "input"),
        (["--library", "LIBRARY", "--model", "MODEL", "--case", "c=EMPTY"], 5, "input"),
        (["--library", "LIBRARY", "--model", "MODEL", "--case", "c=GOOD", "--outputs", "/proc/absent"], 7, "output"),
        (["--library", "LIBRARY", "--model", "MODEL", "--case", "c=WRONG"], 6, "first run"),
        ([], 2, "arguments"),
        (["--library"], 2, "arguments"),
        (["--library", "x"], 2, "arguments"),
        (["--bogus", "1"], 2, "arguments"),
        (["--runs", "0"], 2, "arguments"),
        (["--runs", "1x"], 2, "arguments"),
        (["--runs", "99999999999999999999"], 2, "arguments"),
        (["--seconds", "nan"], 2, "arguments"),
        (["--seconds", "-1"], 2, "arguments"),
        (["--allow-spinning", "2"], 2, "arguments"),
        (["--config", "novalue"], 2, "arguments"),
        (["--load", "stream"], 2, "arguments"),
        (["--library", "LIBRARY", "--model", "MODEL", "--session", "/absent.json"], 2, "arguments"),
        (["--library", "LIBRARY", "--model", "MODEL", "--session", "EMPTY"], 2, "arguments"),
        (["--inter-op-threads", "0"], 2, "arguments"),
        (["--memory-pattern", "yes"], 2, "arguments"),
        (["--case", "nofolder"], 2, "arguments"),
        (["--case", "../up=/x"], 2, "arguments"),
        (["--case", "a=/x", "--case", "a=/y"], 2, "arguments"),
        (["--library", "LIBRARY", "--model", "MODEL", "--optimization-level", "most"], 2, "settings"),
    ],
)
def test_failures_have_their_exit_code(  # noqa: PLR0917 - fixtures
    runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path, arguments: list[str], code: int, stage: str
) -> None:
    places = {"LIBRARY": runtime.library, "RUNNER": runner, "MODEL": float_model}
    for name, shape in (("GOOD", "(1, 3)"), ("WRONG", "(3, 1)"), ("EMPTY", "")):
        (tmp_path / name).mkdir()
        if shape:
            (tmp_path / name / "input_000.npy").write_bytes(npy("<f4", shape, bytes(12)))
        places[name] = tmp_path / name
    words = [_placed(word, places) for word in arguments]
    done = run([runner, *words], timeout_seconds=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    found = document(done)
    assert (found["status"], found["stage"], found["exit_code"]) == ("error", stage, code)
    assert found["message"]


def _placed(word: str, places: dict[str, Path]) -> str:
    head, _, tail = word.rpartition("=")
    return f"{head}={places.get(tail, tail)}" if head else str(places.get(word, word))


def test_what_follows_random_numbers_is_compared_by_the_runner(
    build: Build, runner: Path, runtime: FullRuntime, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], seed=7.0),
        helper.make_node("Add", ["x", "noise"], ["noisy"]),
        helper.make_node("MatMul", ["noisy", "w"], ["y"]),
    ]
    weights = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
    tensors = [value("x", "float32", (2, 8))], [value("y", "float32", (2, 4))]

    def made(matrix: Any) -> PreparedModel:
        constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(matrix))
        return build([constant, *nodes], *tensors)

    wrong = onnx.load(made(weights * (1 + np.eye(8, 4, dtype=np.float32) / 100)).path)
    model = made(weights)
    spec = ModelSpec(name="model", path=model.path, layout="plain", cases=(CaseSpec(name="only"),))
    cases = make_cases(model, spec, tmp_path, tmp_path / "cases")
    converted = convert(model, Conversion(style="fixed"), runtime=runtime, root=tmp_path / "conversions")
    subject = with_draws_given(
        subject_of(model, converted, spec, SessionSettings(load="map"), cases, runtime=runtime), runtime
    )
    given = subject.draws_given
    assert given is not None
    task = sample_task(model, tmp_path, runner=runner, baseline=Baseline(library=None, name="none"))
    delivery = dataclasses.replace(task.delivery, library=runtime.library)
    task = dataclasses.replace(task, delivery=delivery, repetition=Repetition(runs=1, warmup=0))
    report = verify_on(Host(), dataclasses.replace(task, subjects=(subject,)))
    assert [(each.verdict, each.reason) for each in report.parity] == [(Verdict.PASS, GIVEN)]
    (mutant,) = [node for node in wrong.graph.node if node.op_type == "Constant"]
    mutated = onnx.load(given.prepared.path)
    next(node for node in mutated.graph.node if node.op_type == "Constant").CopyFrom(mutant)
    (tmp_path / "mutant.onnx").write_bytes(mutated.SerializeToString())
    changed = dataclasses.replace(given.converted, path=tmp_path / "mutant.onnx")
    mutants = dataclasses.replace(subject, draws_given=dataclasses.replace(given, converted=changed))
    report = verify_on(Host(), dataclasses.replace(task, subjects=(mutants,)))
    assert [each.verdict for each in report.parity] == [Verdict.FAIL]
    assert report.parity[0].reason.startswith(f"{GIVEN}; 6 of 8 elements out of tolerance")


def test_the_report_can_go_to_a_file(runner: Path, runtime: FullRuntime, float_model: Path, tmp_path: Path) -> None:
    """Then standard output stays empty; a file that cannot be written is a failure of its own."""
    path = tmp_path / "report.json"
    done = call(runner, runtime, float_model, "--json", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(path.read_text())["status"] == "ok"
    assert call(runner, runtime, float_model, "--json", "/proc/absent").returncode == 7


def test_a_model_that_the_full_runtime_refuses(build: Build, runtime: FullRuntime, tmp_path: Path) -> None:
    model = identity_model(build, "float32")
    known = model.path.read_bytes()
    assert b"Identity" in known
    for content, code, words in (
        (known.replace(b"Identity", b"Identitx"), "unknown-operator", "Identitx"),
        (b"garbage", "reference-failed", "Error parsing"),
    ):
        model.path.write_bytes(content)
        error = refused(Diagnostic, reference_outputs, model, (), runtime, tmp_path / "reference")
        assert error.code == code
        assert words in error.why


def test_python_is_the_one_with_the_wheel(runtime: FullRuntime) -> None:
    """The reference runs in the Python whose library is the baseline."""
    assert runtime.words == (sys.executable,)
    assert runtime.library.is_file()
