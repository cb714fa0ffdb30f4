"""Pinning the packages that `prepare` and `compare` install: tools that simplify models, onnx, and other engines."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.pins.shipped import writable_pins_folder
from ortrim.sources.pinned_requirements import Wanted, pinned_text
from ortrim.storage.files import write_atomically

MADE_BY: Final = "# Made by: invoke pins.update --requirements\n"
FILES: Final[Mapping[str, tuple[str, Wanted]]] = MappingProxyType({
    "onnxslim": ("onnxslim, which simplifies models.", Wanted(packages=("onnxslim",))),
    "onnxsim": ("onnxsim, which simplifies models.", Wanted(packages=("onnxsim",))),
    "onnx": (
        "onnx beside the full ONNX Runtime, whose own tools need it; what else onnx needs is there.",
        Wanted(packages=("onnx", "ml-dtypes", "typing-extensions"), alone=True),
    ),
    "engine-openvino": ("OpenVINO, one of the engines of `invoke compare`.", Wanted(packages=("openvino",))),
    "engine-tract": ("tract, one of the engines of `invoke compare`.", Wanted(packages=("tract", "numpy"))),
    "engine-mnn": ("MNN, one of the engines of `invoke compare`.", Wanted(packages=("mnn", "numpy"))),
    "engine-ncnn": (
        "ncnn and its converter pnnx, an engine of `invoke compare`, without what pnnx's program does not need.",
        Wanted(packages=("ncnn", "numpy", "pnnx"), alone=True),
    ),
    "engine-litert": ("LiteRT, one of the engines of `invoke compare`.", Wanted(packages=("ai-edge-litert",))),
    "engine-litert-converter": (
        "onnx2tf, which converts for LiteRT; for Python 3.11 on x86-64 alone.",
        Wanted(packages=("onnx2tf",), pythons=("3.11",), machines=()),
    ),
})  # fmt: skip
"""By the file's name, what it is for and what it pins."""


def update_requirements(announce: Callable[[str], None]) -> tuple[Path, ...]:
    """Pin the newest version of each package with the digests of its wheels, and return the files that were written.

    Nothing is written unless all were found. Raises `SourcesError`, `NetworkError` and `ToolError` as `pinned_text`
    does, and `StorageError`.
    """
    texts = {
        name: f"# {purpose}\n{MADE_BY}{pinned_text(wanted, announce)}" for name, (purpose, wanted) in FILES.items()
    }
    folder = writable_pins_folder() / "requirements"
    for name, text in texts.items():
        write_atomically(folder / f"{name}.txt", text)
    return tuple(folder / f"{name}.txt" for name in texts)
