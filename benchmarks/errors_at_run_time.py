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
from pathlib import Path
from typing import Final

import onnx.parser
import onnxruntime
from onnx import TensorProto, helper
from programs import compile_c, print_now

from ortrim.base.command import run
from ortrim.errors import ToolError

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


Trial = tuple[str, tuple[tuple[Path, tuple[str, ...]], ...]]
"""What is tried, and its attempts: a model and the words that follow it on the command line."""


def main(packages: tuple[Path, ...]) -> None:
    """Print the tables for two packages: without, then with exceptions."""
    with tempfile.TemporaryDirectory(prefix="errors-") as name:
        folder = Path(name)
        attempt = folder / "attempt"
        compile_c(f"-I{packages[0]}/include/onnxruntime", Path(__file__).with_suffix(".c"), "-o", attempt, "-ldl")
        print_now("| what is tried | `exceptions = false` | `exceptions = true` |", "|---|---|---|")
        for trial, attempts in trials(packages[0] / MODEL, folder):
            first, *others = (outcomes((attempt, package / LIBRARY), attempts, folder) for package in packages)
            cells = [trial, first, *("the same" if cell == first else cell for cell in others)]
            print_now(f"| {' | '.join(cells)} |")


def trials(model: Path, folder: Path) -> Iterator[Trial]:
    """Yield all rows; their files are made in `folder`."""
    yield "nothing wrong", ((model, GOOD),)
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
        yield name, tuple((path, words) for path in paths or [folder / "missing.ort"])


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
        "needs an element type that was left out": made_model("Relu", kind="double"),
        "needs a family of kernels that was left out (int8 GEMM)": parsed(
            "(uint8[4, 4] x) => (int32[4, 4] y) { y = MatMulInteger(x, x) }"
        ),
        "has sparse weights, which were left out": sparse_weights(),
        "has an input or output of 8-bit floats, which were left out": eight_bit_output(),
    }
    for number, (name, model) in enumerate(kinds.items()):
        path = folder / f"unfit-{number}.ort"
        convert(model, path)
        yield f"a model that {name}", ((path, SMALL),)


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
        yield name, ((model, words),)


def little_memory(model: Path) -> Iterator[Trial]:
    """Yield rows about allocations that fail: what is left is limited, or what is asked for is too much."""
    many = ("input", "input", "float:4096x576", "input", "state", "float:2x4096x128", *RATE, "output", "output")
    batch = 2**28
    huge = ("input", "input", f"float:{batch}x576", "input", "state", f"float:2x{batch}x128", *RATE, "output", "output")
    limits = tuple(str(kilobytes * KB) for kilobytes in (4, 100, 300, 700, 1000, 1500, 2000, 2500, 3000, 4000))
    for name, words in {"loading": (*GOOD, "load-memory"), "running a batch of 4,096": (*many, "run-memory")}.items():
        yield f"{name} with 4 kB to 4 MB of memory left", tuple((model, (*words, limit)) for limit in limits)
    yield "running a batch of 2^28, which needs 687 GB", ((model, huge),)


def made_model(operator: str, *, opset: int = 18, kind: str = "float") -> onnx.ModelProto:
    return parsed(f"({kind}[1, 4] x) => ({kind}[1, 4] y) {{ y = {operator}(x) }}", opset)


def parsed(graph: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {graph}')


def sparse_weights() -> onnx.ModelProto:
    model = parsed("(float[1, 4] x) => (float[1, 4] y) { y = Add(x, w) }")
    numbers = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    places = helper.make_tensor("places", TensorProto.INT64, [2], [0, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(numbers, places, [4]))
    return model


def eight_bit_output() -> onnx.ModelProto:
    model = made_model("Relu")
    model.graph.initializer.append(helper.make_tensor("e", TensorProto.FLOAT8E5M2, [2], [1.0, 2.0]))
    model.graph.output.append(helper.make_tensor_value_info("e", TensorProto.FLOAT8E5M2, (2,)))
    model.ir_version = 9  # the first with such numbers
    return model


def convert(model: onnx.ModelProto, path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def outcomes(command: tuple[Path, ...], attempts: Sequence[tuple[Path, tuple[str, ...]]], folder: Path) -> str:
    """Return what happened, how often if a row has several attempts, and the first message of each kind."""
    messages: dict[str, list[str]] = {}
    for model, words in attempts:
        outcome, message = outcome_of((*command, model, *words))
        messages.setdefault(outcome, []).append(shortened(message, folder))
    total = len(attempts)
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
