"""A model in NCHWc layout, block size 16, by the command line: each kernel of `avx512_nchwc.cc` computes for it."""

import json
import sys
from pathlib import Path
from typing import Final

import onnx
import pytest

from convolutional_models import blocked, convolutional
from ortrim.base.command import run
from ortrim.errors import ExitCode
from ortrim.models.convert import CPUINFO

pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 2400.0
SPEC: Final = """\
name = "wide"

[[models]]
name = "wide"
path = "wide.onnx"
level = "all"
layout = "nchwc16"
cases = [{ name = "first", seed = 1 }, { name = "second", seed = 2 }]

[[targets]]
id = "linux-x64"
glibc = "2.28"
cpu = "x86-64-v4"
"""


def test_blocks_of_16_are_in_parity_or_refused_without_avx512(tmp_path: Path) -> None:
    onnx.save(convolutional(), tmp_path / "wide.onnx")
    (tmp_path / "wide.toml").write_text(SPEC)
    words = ("build", "--json", "--spec", tmp_path / "wide.toml", "--output", tmp_path / "output")
    done = run((sys.executable, "-m", "invoke", *words), cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    if "avx512f" not in CPUINFO.read_text().split():
        assert (done.returncode, "layout-not-here" in done.stderr) == (ExitCode.CONVERT, True)
        return
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (device,) = report["devices"]
    assert len(device["parity"]) > 0
    (model,) = (tmp_path / "output").rglob("wide.ort")
    assert {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool"} <= blocked(model)
