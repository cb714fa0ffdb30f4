"""What a library does with bad models, bad inputs and too little memory, without and with exceptions.

usage: errors_at_run_time.py PACKAGE_WITHOUT PACKAGE_WITH

Both are unpacked packages of the demo, `buildspecs/silero-vad.toml`, one with `exceptions = false` and one with
`exceptions = true`. Each attempt is a process of its own (`errors_at_run_time.c`), since some of them end it. Prints
the tables of `benchmarks/results/errors-at-run-time.md`. Takes a minute.
"""

import random
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
import onnxruntime
from onnx import TensorProto, helper

from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.errors import ToolError
from ortrim.pins.shipped import tool_requirements

MODEL: Final = "models/silero-vad.ort"
LIBRARY: Final = "lib/libonnxruntime.so"
STATUS: Final = 3
"""Exit code of an attempt that got a status, as in errors_at_run_time.c."""
OUTCOMES: Final = {-signal.SIGABRT: "aborts", -signal.SIGSEGV: "crashes", -signal.SIGBUS: "crashes"}
PATIENCE_SECONDS: Final = 5
"""All attempts that end do so within a fraction of a second."""
WIDTH: Final = 120
"""Most characters of a message that are shown."""
LOCATION: Final = re.compile(r"^\S+\.(cc|h):\d+ (operator\(\) |\w+ )?")
"""Where in the sources a message comes from: file, line and, of some, the function."""
KB: Final = 1000

INPUT, STATE, RATE = (
    ("input", "input", "float:1x576"),
    ("input", "state", "float:2x1x128"),
    ("input", "sr", "int64:=16000"),
)
GOOD: Final = (*INPUT, *STATE, *RATE, "output", "output")
SMALL: Final = ("input", "x", "float:1x4", "output", "y")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One row: what is tried, as attempts of a model and the words that follow it on the command line."""

    name: str
    attempts: tuple[tuple[Path, tuple[str, ...]], ...]


def main(packages: tuple[Path, ...]) -> None:
    """Print the tables for two packages: without, then with exceptions."""
    with tempfile.TemporaryDirectory(prefix="errors-") as name:
        folder = Path(name)
        attempt = compile_attempt(folder, packages[0])
        write("| what is tried | `exceptions = false` | `exceptions = true` |", "|---|---|---|")
        for trial in trials(packages[0] / MODEL, folder):
            found = cells(attempt, tuple(package / LIBRARY for package in packages), trial, folder)
            write(f"| {trial.name} | {' | '.join(found)} |")


def write(*lines: str) -> None:
    """Print lines at once, so that progress is seen."""
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


def compile_attempt(folder: Path, package: Path) -> Path:
    program = folder / "attempt"
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    include = f"-I{package}/include/onnxruntime"
    done = run((zig, "cc", "-O2", include, Path(__file__).with_suffix(".c"), "-o", program, "-ldl"))
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return program


def trials(model: Path, folder: Path) -> Iterator[Trial]:
    """Yield all rows; their files are made in `folder`."""
    yield Trial(name="nothing wrong", attempts=((model, GOOD),))
    yield from bad_files(model, folder)
    yield from unfit_models(folder)
    yield from bad_inputs(model)
    yield from little_memory(model)


def bad_files(model: Path, folder: Path) -> Iterator[Trial]:
    """Yield rows about files that are no whole model in ORT format."""
    content = model.read_bytes()
    converted = folder / "small.ort"
    convert(made_model("Relu"), converted)
    small = converted.read_bytes()
    cuts = [len(content) * part // 16 for part in range(1, 16)]
    files = {
        "no such file": [],
        "an empty file": [b""],
        "random bytes": [noise(size) for size in (3, 8, 64, 10_000, 1_000_000)],
        "an `.onnx` file": [made_model("Relu").SerializeToString()],
        "`.ort` cut off within its first 64 bytes": [content[:size] for size in range(4, 64, 4)],
        "`.ort` cut off later, at each 16th of it": [content[:size] for size in cuts],
        "`.ort` of 2.2 MB, mostly weights, with one byte changed": [damaged(content, seed) for seed in range(500)],
        f"`.ort` of {len(small):,} bytes without weights, with one byte changed": [
            damaged(small, seed) for seed in range(1500)
        ],
    }
    for number, (name, contents) in enumerate(files.items()):
        paths = [folder / f"{number}-{index}.ort" for index in range(len(contents))]
        for path, data in zip(paths, contents, strict=True):
            path.write_bytes(data)
        words = SMALL if "without weights" in name else GOOD
        yield Trial(name=name, attempts=tuple((path, words) for path in paths or [folder / "missing.ort"]))


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)  # noqa: S311 - to be repeatable, not secret


def damaged(content: bytes, seed: int) -> bytes:
    chosen = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
    place = chosen.randrange(len(content))
    return content[:place] + bytes([content[place] ^ chosen.randrange(1, 256)]) + content[place + 1 :]


def unfit_models(folder: Path) -> Iterator[Trial]:
    """Yield rows about whole models that need what the library was built without."""
    kinds = {
        "needs an operator that was left out": made_model("Softplus"),
        "needs an operator of another opset": made_model("Relu", opset=13),
        "needs an element type that was left out": made_model("Relu", element_type=TensorProto.DOUBLE),
        "needs a family of kernels that was left out (int8 GEMM)": product_of_bytes(),
        "has sparse weights, which were left out": sparse_weights(),
        "has an input or output of 8-bit floats, which were left out": eight_bit_output(),
    }
    for number, (name, model) in enumerate(kinds.items()):
        path = folder / f"unfit-{number}.ort"
        convert(model, path)
        yield Trial(name=f"a model that {name}", attempts=((path, SMALL),))


def bad_inputs(model: Path) -> Iterator[Trial]:
    output = ("output", "output")
    rows = {
        "an input of the wrong type": ("input", "input", "double:1x576", *STATE, *RATE, *output),
        "an input of the wrong rank": ("input", "input", "float:576", *STATE, *RATE, *output),
        "an input with a wrong fixed dimension": (*INPUT, "input", "state", "float:2x1x64", *RATE, *output),
        "dimensions that do not fit each other": (*INPUT, "input", "state", "float:2x3x128", *RATE, *output),
        "an input with no elements": ("input", "input", "float:1x0", *STATE, *RATE, *output),
        "an input too short for the model": ("input", "input", "float:1x8", *STATE, *RATE, *output),
        "an input left out": (*INPUT, *STATE, *output),
        "an input that the model does not have": (*GOOD, "input", "volume", "float:1"),
        "an output that the model does not have": (*INPUT, *STATE, *RATE, "output", "loudness"),
    }
    for name, words in rows.items():
        yield Trial(name=name, attempts=((model, words),))


def little_memory(model: Path) -> Iterator[Trial]:
    """Yield rows about allocations that fail: what is left is limited, or what is asked for is too much."""
    many = ("input", "input", "float:4096x576", "input", "state", "float:2x4096x128", *RATE, "output", "output")
    batch = 2**28
    huge = ("input", "input", f"float:{batch}x576", "input", "state", f"float:2x{batch}x128", *RATE, "output", "output")
    limits = tuple(str(kilobytes * KB) for kilobytes in (4, 100, 300, 700, 1000, 1500, 2000, 2500, 3000, 4000))
    yield Trial(
        name="loading with 4 kB to 4 MB of memory left",
        attempts=tuple((model, (*GOOD, "load-memory", limit)) for limit in limits),
    )
    yield Trial(
        name="running a batch of 4,096 with 4 kB to 4 MB of memory left",
        attempts=tuple((model, (*many, "run-memory", limit)) for limit in limits),
    )
    yield Trial(name="running a batch of 2^28, which needs 687 GB", attempts=((model, huge),))


def product_of_bytes() -> onnx.ModelProto:
    ends = [end("x", TensorProto.UINT8, (4, 4)), end("y", TensorProto.INT32, (4, 4))]
    return model_of(helper.make_node("MatMulInteger", ["x", "x"], ["y"]), ends)


def sparse_weights() -> onnx.ModelProto:
    numbers = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    places = helper.make_tensor("places", TensorProto.INT64, [2], [0, 3])
    model = model_of(helper.make_node("Add", ["x", "w"], ["y"]), [end("x"), end("y")])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(numbers, places, [4]))
    return model


def eight_bit_output() -> onnx.ModelProto:
    model = made_model("Relu")
    model.graph.initializer.append(helper.make_tensor("e", TensorProto.FLOAT8E5M2, [2], [1.0, 2.0]))
    model.graph.output.append(end("e", TensorProto.FLOAT8E5M2, (2,)))
    model.ir_version = 9  # the first with such numbers
    return model


def made_model(operator: str, *, opset: int = 18, element_type: int = TensorProto.FLOAT) -> onnx.ModelProto:
    ends = [end(name, element_type) for name in "xy"]
    return model_of(helper.make_node(operator, ["x"], ["y"]), ends, opset)


def end(name: str, element_type: int = TensorProto.FLOAT, shape: tuple[int, ...] = (1, 4)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def model_of(node: onnx.NodeProto, ends: list[onnx.ValueInfoProto], opset: int = 18) -> onnx.ModelProto:
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def convert(model: onnx.ModelProto, path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def cells(attempt: Path, libraries: tuple[Path, ...], trial: Trial, folder: Path) -> list[str]:
    found = [outcomes(attempt, library, trial, folder) for library in libraries]
    return [found[0], *("the same" if cell == found[0] else cell for cell in found[1:])]


def outcomes(attempt: Path, library: Path, trial: Trial, folder: Path) -> str:
    """Return what happened, how often if a row has several attempts, and the first message of each kind."""
    messages: dict[str, list[str]] = {}
    for model, words in trial.attempts:
        outcome, message = outcome_of((attempt, library, model, *words))
        messages.setdefault(outcome, []).append(shortened(message, folder))
    total = len(trial.attempts)
    parts = []
    for outcome, said in sorted(messages.items(), key=lambda item: -len(item[1])):
        often = f" in {len(said):,} of {total:,}" if len(said) < total else f", all {total:,}" if total > 1 else ""
        first = next(filter(None, said), "")
        parts.append(f"**{outcome}**{often}" + (f": `{first}`" if first else ""))
    return "; ".join(parts)


def outcome_of(command: Sequence[str | Path]) -> tuple[str, str]:
    """Return the kind of outcome of one attempt and the runtime's own words about it."""
    try:
        done = run(command, timeout_seconds=PATIENCE_SECONDS)
    except ToolError:
        return "hangs", ""
    if done.returncode == 0:
        return "runs", ""
    if done.returncode == STATUS:
        return "status", done.stdout.removeprefix("loaded\n")
    if done.returncode < 0:
        last = next(filter(None, reversed(done.stderr.splitlines())), "")
        return OUTCOMES[done.returncode], last
    raise SystemExit(f"{done.argv}: {done.stderr}")


def shortened(message: str, folder: Path) -> str:
    """Return a message as it fits into a table: the innermost status, without source files and functions."""
    innermost = message.rpartition("Status Message: ")[2].replace(f"{folder}/", "").replace("|", "\\|")
    words = " ".join(LOCATION.sub("", innermost).split())
    return words if len(words) <= WIDTH else f"{words[:WIDTH]}…"


if __name__ == "__main__":
    main(tuple(map(Path, sys.argv[1:3])))
