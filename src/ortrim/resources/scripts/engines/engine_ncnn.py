"""ncnn: converted beforehand by pnnx for the shapes of the case, then run in float32."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

Arrays = list[Any]
STEM = "model.ncnn"
TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8"}
LAST_LINES = 2
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
INPUT_LINE = re.compile(r'ex\.input\("([^"]+)",(.*)')
OUTPUT_LINE = re.compile(r'ex\.extract\("([^"]+)"\)\s*\n(.*)')
BATCH = re.compile(r"batch_index=(\d+)")


def version() -> str:
    """Return the engine's version."""
    return str(ncnn.__version__)


def convert(request: dict[str, Any]) -> None:
    """Convert with pnnx, a program of its own. Raises RuntimeError with its last words when it fails."""
    folder = Path(request["converted"])
    own = folder / "model.onnx"
    own.symlink_to(request["model"])
    described = zip(request["input_shapes"], request["input_types"], strict=True)
    shapes = ",".join(f"[{','.join(map(str, shape))}]{TYPES.get(kind, kind)}" for shape, kind in described)
    words = [str(Path(request["packages"]) / "pnnx" / "pnnx"), str(own), f"inputshape={shapes}", "fp16=0"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0 or not (folder / f"{STEM}.param").is_file():
        last = " / ".join(COLOURS.sub("", done.stderr).strip().splitlines()[-LAST_LINES:])
        raise RuntimeError(f"pnnx ended with {done.returncode}: {last}")


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Load the converted model."""
    folder = Path(request["converted"])
    net = ncnn.Net()
    net.opt.num_threads = request["threads"]
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(folder / f"{STEM}.param")) or net.load_model(str(folder / f"{STEM}.bin")):
        raise RuntimeError("ncnn does not load what pnnx wrote: a layer that it does not know")
    example = (folder / "model_ncnn.py").read_text(encoding="utf-8")
    inputs, outputs = INPUT_LINE.findall(example), OUTPUT_LINE.findall(example)
    if len(inputs) != len(request["input_names"]):
        raise RuntimeError(f"the converted model has {len(inputs)} inputs, not {len(request['input_names'])}")

    def run(feeds: Arrays) -> Arrays:
        with net.create_extractor() as extractor:
            for (name, words), feed in zip(inputs, feeds, strict=True):
                extractor.input(name, mat(feed, words))
            found = [(extractor.extract(name), words) for name, words in outputs]
            if any(code for (code, _), _ in found):
                raise RuntimeError(f"ncnn ended with {[code for (code, _), _ in found]}")
            return [array(value, words) for (_, value), words in found]

    return run


def mat(feed: Any, words: str) -> Any:
    """Return an array as ncnn takes it: in the way that pnnx's own example of the converted model does."""
    if ".squeeze(0)" in words:
        return ncnn.Mat(np.ascontiguousarray(feed[0])).clone()
    batch = BATCH.search(words)
    return (ncnn.Mat(feed, batch_index=int(batch[1])) if batch else ncnn.Mat(feed)).clone()


def array(value: Any, words: str) -> Any:
    """Return an output as an array, by the same example."""
    batch = BATCH.search(words)
    found = np.array(value.numpy(batch_index=int(batch[1])) if batch else value.numpy())
    return found[None] if ".unsqueeze(0)" in words else found
