"""What a version's word means, and which models each version loads, by the data that ships with ortrim."""

from itertools import pairwise
from pathlib import Path

import pytest

from ortrim.pins.runtime import (
    default_version,
    exact_version,
    limits_of,
    needed_for_ir_version,
    needed_for_opset,
    supported_versions,
)


@pytest.mark.parametrize(
    ("word", "version"),
    [
        ("1.30", "1.30.0"),
        ("1.21", "1.21.1"),
        ("1.24", "1.24.4"),
        ("1.22", "1.22.0"),
        ("1.22.2", "1.22.2"),
        ("1.21.0", "1.21.0"),
        ("1.99", "1.99.0"),
        ("9.9.9", "9.9.9"),
    ],
)
def test_a_minor_version_is_its_newest_patch(word: str, version: str) -> None:
    """Of those that are not known to be broken; whole versions, and minor ones that are unknown, are judged later."""
    assert exact_version(word) == version


def test_the_newest_has_pinned_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose sources nobody pinned could not be built; the user's own pins count."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    before = exact_version("newest")
    assert before in supported_versions()
    (tmp_path / "onnxruntime-1.32.0-upstream.toml").write_text("")
    assert exact_version("newest") == "1.32.0"


def test_the_default_is_known() -> None:
    """It is one of the versions that can be built."""
    assert default_version() in supported_versions()


def test_limits_only_grow() -> None:
    """A newer version loads what an older one does, so that "or later" is true."""
    limits = [limits_of(version) for version in supported_versions()]
    found = [(each.opset, each.ml_opset or 0, each.ir_version) for each in limits if each]
    assert len(found) == len(limits)
    for older, newer in pairwise(found):
        assert all(least <= most for least, most in zip(older, newer, strict=True))
    assert limits_of("9.9.9") is limits_of("1.22.1") is None


def test_what_a_model_needs_is_named() -> None:
    """The first version that loads it, or that there is none."""
    assert needed_for_opset("ai.onnx", 24) == "opset 24 of ai.onnx needs ONNX Runtime 1.24.4 or later"
    assert needed_for_ir_version(11) == "IR version 11 needs ONNX Runtime 1.23.2 or later"
    newest = supported_versions()[-1]
    assert needed_for_opset("ai.onnx.ml", 99).endswith(f"loads opset 99 of ai.onnx.ml; the newest is {newest}")
