"""Cold kernels of a source tree: found in its text, and told to CMake."""

from pathlib import Path

import pytest

from fake_kernels import CONTRIB, CPU, make_kernels
from ortrim.compiling.execution import JobPaths
from ortrim.compiling.selective import SELECTION, cold_kernel_sources, write_selection
from ortrim.errors import ExitCode, StorageError

KERNELS = {f"{CPU}/nn/conv.cc": "Conv", f"{CPU}/nn/lstm.cc": "LSTM", f"{CONTRIB}/bert/attention.cc": "Attention"}
ELSEWHERE = "onnxruntime/onnxruntime/core/providers/cuda/conv.cc"


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    """Make sources that register kernels among those that do not."""
    paths = make_kernels(tmp_path)
    for name, operator in {**KERNELS, ELSEWHERE: "Conv"}.items():
        (paths.sources / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.sources / name).write_bytes(b"// \xff\nONNX_CPU_OPERATOR_KERNEL(" + operator.encode() + b", 1, B);\n")
    return paths


def test_kernels_of_other_operators_are_cold(paths: JobPaths) -> None:
    """Those of the processor, in order; bytes that are no text do not matter."""
    cold = cold_kernel_sources(paths, ["ai.onnx:LSTM"])
    assert cold == (paths.sources / CONTRIB / "bert/attention.cc", paths.sources / CPU / "nn/conv.cc")


def test_without_hot_operators_nothing_is_read(paths: JobPaths) -> None:
    """Every kernel is hot then, whatever the sources are."""
    (paths.sources / CPU / "nn/conv.cc").chmod(0)
    assert cold_kernel_sources(paths, ()) == ()


def test_cmake_is_told(paths: JobPaths) -> None:
    """In the list that `units.cmake` reads."""
    write_selection(paths, (), ["ai.onnx:Conv", "com.microsoft:Attention"])
    text = (paths.hooks / SELECTION).read_text()
    assert f"set(ORTRIM_COLD_KERNELS\n  [==[{paths.sources / CPU / 'nn/lstm.cc'}]==]\n)\n" in text


def test_a_source_that_cannot_be_read_is_a_diagnostic(paths: JobPaths) -> None:
    """A folder in its place is not taken for a source without kernels."""
    (paths.sources / CPU / "nn/conv.cc").unlink()
    (paths.sources / CPU / "nn/conv.cc").mkdir()
    with pytest.raises(StorageError) as caught:
        cold_kernel_sources(paths, ["ai.onnx:LSTM"])
    assert (caught.value.code, caught.value.exit_code) == ("path-in-the-way", ExitCode.STORAGE)
