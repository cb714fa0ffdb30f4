"""What is told of the models and libraries of a spec."""

from pathlib import Path

import pytest
from footprint.libraries import has_packed_relocations
from footprint.subject import has_convolutions

from ortrim.base.command import run

TINY = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"


@pytest.mark.parametrize("name", ["Conv", "FusedConv", "QLinearConv", "ConvTranspose", "ConvInteger"])
def test_every_kind_of_convolution_is_one(name: str) -> None:
    """As the converted model has it, fused and quantized ones too."""
    assert has_convolutions(f"ai.onnx;13;Add,{name}\n")


def test_a_transformer_has_no_convolution() -> None:
    """Its products are others."""
    assert not has_convolutions("ai.onnx;13;Gemm,MatMul,Softmax\ncom.microsoft;1;FusedMatMul\n")


@pytest.mark.needs("gcc")
def test_packed_relocations_are_seen(tmp_path: Path) -> None:
    """In a library that was linked with them."""
    (tmp_path / "a.c").write_text("int a; int *pointers[64] = {[0 ... 63] = &a};\n")
    packed = tmp_path / "a.so"
    words = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,pack-relative-relocs", "-nostdlib")
    assert run(("gcc", *words, "-o", packed, tmp_path / "a.c")).returncode == 0
    assert has_packed_relocations(packed)
    assert not has_packed_relocations(TINY)
