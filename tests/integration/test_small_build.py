"""One real build of a small model, from `ortrim build` to the verdict: what a contributor's run has of the real thing.

It needs nothing of the machine but git, Python and the package registries. Whatever was fetched or compiled before is
used again; the library is linked, packaged and verified in every run.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnx_samples import model_of, value
from ortrim.base.command import run
from own_caches import FETCHED_OR_COMPILED, own_cache

pytestmark = [pytest.mark.alone, pytest.mark.build, pytest.mark.network]


def test_a_model_becomes_a_library_with_its_outputs(tmp_path: Path) -> None:
    """Found cases agree with the full runtime, each gate passes, and the library is a twentieth of the official one."""
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((16, 4), dtype=np.float32), "weights")
    model = model_of(
        [onnx.helper.make_node("MatMul", ["x", "weights"], ["y"]), onnx.helper.make_node("Softmax", ["y"], ["scores"])],
        inputs=[value("x", TensorProto.FLOAT, ("batch", 16))],
        outputs=[value("scores", TensorProto.FLOAT, ("batch", 4))],
        initializers=[weights],
    )
    onnx.save(model, tmp_path / "small.onnx")
    (tmp_path / "cache").mkdir()
    with own_cache(tmp_path / "cache", *FETCHED_OR_COMPILED) as environment:
        words = (Path(sys.executable).with_name("ortrim"), "build", "small.onnx", "--json")
        done = run(words, cwd=tmp_path, environment=environment, timeout_seconds=1800)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (device,) = report["devices"]
    assert {(line["output"], line["verdict"]) for line in device["parity"]} == {("scores", "pass")}
    assert len(device["parity"]) == 2
    assert {gate["verdict"] for gate in report["gates"]} == {"pass"}
    assert report["size"]["file_bytes"] < report["baseline_size"]["file_bytes"] / 20
