"""The models of the kernels' buildspec: the committed files are what the script makes, and hold what is measured."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from kernel_models import CHANNELS, DEFAULT_FOLDER, MODELS, SIZE, main
from numpy.typing import NDArray

SPEC = DEFAULT_FOLDER.with_suffix(".toml")


def test_the_committed_models_are_what_the_script_makes(tmp_path: Path) -> None:
    """Byte by byte, so that nobody has to trust a binary."""
    main([str(tmp_path / "new")])
    files = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert files == {path.name: path.read_bytes() for path in DEFAULT_FOLDER.iterdir()}


def test_the_buildspec_names_the_models_and_their_digests() -> None:
    """A changed model is a changed spec."""
    models = tomllib.loads(SPEC.read_text())["models"]
    assert [model["name"] for model in models] == list(MODELS)
    for model in models:
        assert model["sha256"] == hashlib.sha256((SPEC.parent / model["path"]).read_bytes()).hexdigest()


@pytest.mark.parametrize(("name", "element_type"), [("float32", np.float32), ("quantized", np.uint8)])
def test_results_say_something(name: str, element_type: type) -> None:
    """Outputs take many values, and few are cut off, so that a wrong kernel would show in them."""
    numbers: NDArray[Any] = np.random.default_rng(0).integers(0, 256, (1, CHANNELS[name], SIZE, SIZE))
    session = onnxruntime.InferenceSession(DEFAULT_FOLDER / f"{name}.onnx", providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": numbers.astype(element_type)})
    assert len(np.unique(output)) > 100
    if output.dtype == np.int8:
        assert np.mean(np.abs(output.astype(int)) >= 127) < 0.01
