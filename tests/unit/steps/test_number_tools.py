"""What the steps by ONNX Runtime's own tools refuse or choose before any program is started."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from number_samples import picture
from ortrim.buildspec.step_specs import Optimize, Quantize
from ortrim.errors import ModelError
from ortrim.models.full_runtime import FullRuntime
from ortrim.steps.runtime_tools import optimize, quantize, takes_seven_bits, write_feeds
from ortrim.steps.step import Feeds, Workplace
from refusing import refused

STATIC = Quantize(use="quantize", mode="static")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    runtime = FullRuntime(
        version="1.21.0", words=("/none",), environment={}, packages=tmp_path / "packages", library=tmp_path
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    return Workplace(runtime=runtime, folder=folder, base=tmp_path, where="m: step 1 (quantize)", cases={})


def test_a_level_is_refused_for_versions_before_it(place: Workplace) -> None:
    error = refused(ModelError, optimize, picture(), Optimize(use="optimize", level="layout"), place)
    assert error.code == "level-not-there"
    assert "1.23" in error.hint
    assert list(place.folder.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY"])
def test_calibration_data_have_to_be_there(place: Workplace, content: bytes | None) -> None:
    """A file that is absent, empty, or one array alone, is refused by its name."""
    if content is not None:
        (place.base / "data.npz").write_bytes(content)
    error = refused(ModelError, quantize, picture(), replace(STATIC, data=(Path("data.npz"),)), place)
    assert error.code == "no-calibration-data"
    assert "data.npz" in error.what
    assert list(place.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "seven"),
    [
        (Quantize(use="quantize"), True),
        (Quantize(use="quantize", weights="uint8"), False),
        (STATIC, True),
        (replace(STATIC, activations="int8"), False),
        (replace(STATIC, reduce_range=False), False),
        (replace(STATIC, weights="uint8", reduce_range=True), True),
    ],
)
def test_weights_have_seven_bits_where_products_would_overflow(options: Quantize, *, seven: bool) -> None:
    """By default, where signed weights meet unsigned activations."""
    assert takes_seven_bits(options) == seven


def test_cases_are_written_under_any_name(place: Workplace) -> None:
    """Names of parameters of numpy's own, slashes, and texts."""
    feeds: Feeds = {
        "file": np.ones(2, np.float32),
        "a/../b": np.zeros(1, np.int64),
        "text": np.array(["é", ""], object),
    }
    (path,) = write_feeds({"case": feeds}, place)
    with np.load(path, allow_pickle=False) as content:
        assert sorted(content.files) == sorted(feeds)
        assert content["text"].tolist() == ["é", ""]
