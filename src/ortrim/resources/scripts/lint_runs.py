"""Load a model with the CPU execution provider alone, and run it at several sizes of its dynamic dimensions.

Runs inside the full runtime's own Python, so it imports only the standard library, NumPy and onnxruntime. Called with
the path of a request in JSON; writes its answer beside it.
"""

import itertools
import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

limit_memory = runpy.run_path(str(Path(__file__).with_name("memory.py")))["limit_memory"]
SILENT = 4
SIZES = (1, 2, 3, 8, 16, 17, 32, 64, 100, 224, 256)
LARGE_SIZES = (512, 1024, 4096, 16000)
"""Tried when no smaller one ran: samples of sound come by the thousand."""
FEW_SIZES = (1, 3, 16, 64, 256)
MOST_MIXED = 3
MOST_ALONE = 6
MOST_ELEMENTS = 2**22
MOST_FIXED_ELEMENTS = 2**26
"""Of an input whose sizes the model fixes: there is no smaller one to try."""
LONGEST_WORDS = 2000
TYPES = {"string": np.str_, "bool": np.bool_}


def main(request_path: Path) -> None:
    """Answer `{"load": words, "trials": [{"sizes": {...}, "failure": words}], "skipped": words}`.

    The model in the request's file `model` is loaded as if it lay in the folder `beside`.
    """
    request = json.loads(request_path.read_text(encoding="utf-8"))
    limit_memory(request["memory_bytes"])
    answer: dict[str, Any] = {"load": "", "trials": [], "skipped": ""}
    try:
        session = load(request["model"], request["beside"])
    except Exception as error:  # noqa: BLE001 - whatever loading raises is the answer
        answer["load"] = str(error)
    if request["run"] and not answer["load"]:
        answer["trials"], answer["skipped"] = Attempts(session, request).all()
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def load(path: str, beside: str) -> onnxruntime.InferenceSession:
    """Make a session of a model whose weights lie in its own folder, unless another is named."""
    onnxruntime.set_default_logger_severity(SILENT)
    options = onnxruntime.SessionOptions()
    if beside:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", beside)
    model = Path(path).read_bytes() if beside else path
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Attempts:
    """Runs at several sizes, until the time is up."""

    def __init__(self, session: onnxruntime.InferenceSession, request: dict[str, Any]) -> None:
        self.session = session
        self.inputs = request["inputs"]
        self.names = request["dimensions"]
        self.own = tuple(request["sizes"])
        self.first = tuple(request["first"])
        self.ends = time.monotonic() + request["seconds"]
        self.done: dict[tuple[tuple[str, int], ...], str] = {}
        self.random = np.random.default_rng(0)

    def all(self) -> tuple[list[dict[str, Any]], str]:
        """Try the user's sizes and equal ones, mixed ones if none of these runs, then each alone around what runs."""
        skipped = ""
        try:
            self.search()
        except TimeoutError:
            skipped = "the time was up before all sizes were tried"
        except TypeError as error:
            skipped = f"an input cannot be made: {error}"
        if not (self.done or skipped):
            skipped = f"the smallest inputs have more than {self.most():,} elements"
        return [{"sizes": dict(sizes), "failure": words} for sizes, words in self.done.items()], skipped

    def search(self) -> None:
        """Fill `done`."""
        for sizes in self.first:
            self.attempt({name: sizes.get(name, 1) for name in self.names})
        for size in SIZES if self.names else SIZES[:1]:
            self.attempt(dict.fromkeys(self.names, size))
        rare = (*LARGE_SIZES, *self.own)
        if self.base() is None and self.names:
            for size in rare:
                self.attempt(dict.fromkeys(self.names, size))
        if self.base() is None and 1 < len(self.names) <= MOST_MIXED:
            self.mix((*FEW_SIZES, *rare))
        if (base := self.base()) is not None and len(self.names) > 1:
            for name, size in itertools.product(self.names[:MOST_ALONE], (*SIZES, *(rare if self.large(base) else ()))):
                self.attempt({**base, name: size})

    def mix(self, sizes: tuple[int, ...]) -> None:
        """Try different sizes together until some run, those with the smallest largest one first."""
        for mixed in sorted(itertools.product(sizes, repeat=len(self.names)), key=max):
            self.attempt(dict(zip(self.names, mixed, strict=True)))
            if self.base() is not None:
                return

    @staticmethod
    def large(sizes: dict[str, int]) -> bool:
        """Whether some size is none of those that are tried first."""
        return any(size not in SIZES for size in sizes.values())

    def base(self) -> dict[str, int] | None:
        """Return the first sizes that ran."""
        return next((dict(sizes) for sizes, words in self.done.items() if not words), None)

    def attempt(self, sizes: dict[str, int]) -> None:
        """Run once, if that was not tried and its inputs are small."""
        key = tuple(sizes.items())
        if key in self.done:
            return
        if time.monotonic() > self.ends:
            raise TimeoutError
        shapes = [[sizes.get(size, size) for size in each["shape"]] for each in self.inputs]
        if any(np.prod(shape, dtype=float) > self.most() for shape in shapes):
            return
        feeds = {each["name"]: self.made(each, shape) for each, shape in zip(self.inputs, shapes, strict=True)}
        self.done[key] = ""
        try:
            self.session.run(None, feeds)
        except Exception as error:  # noqa: BLE001 - whatever running raises is the answer
            self.done[key] = " ".join(str(error).split())[:LONGEST_WORDS]

    def most(self) -> int:
        """Return how many elements an input may have."""
        return MOST_ELEMENTS if self.names else MOST_FIXED_ELEMENTS

    def made(self, each: dict[str, Any], shape: list[int]) -> np.ndarray[Any, Any]:
        """Return a small random input: numbers below one, and 0 or 1 as integers, which are valid indices mostly."""
        kind = each["type"]
        if kind.startswith("float"):
            return np.asarray(self.random.random(shape), dtype=kind)
        return np.asarray(self.random.integers(0, 2, shape)).astype(TYPES.get(kind, kind))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
