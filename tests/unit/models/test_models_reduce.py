"""The operators that several models require together."""

from itertools import permutations
from pathlib import Path

from ortrim.errors import OperatorsError
from ortrim.models.models import OrtModel
from ortrim.models.operators import EMPTY, reduce_operators
from refusing import refused


def converted(name: str, config: str) -> OrtModel:
    return OrtModel(
        name=name, path=Path("m.ort"), sha256="0" * 64, size_bytes=1, ort_version="1.21.0",
        style="fixed", level="extended", config=config,
    )  # fmt: skip


def test_models_are_merged_whatever_their_order() -> None:
    """Each operator keeps the types that any model needs."""
    models = (
        converted("a", 'ai.onnx;14;Add{"inputs": {"0": ["float"]}}\n'),
        converted("b", 'ai.onnx;14;Add{"inputs": {"0": ["int64_t"]}},Relu\n'),
        converted("c", "com.microsoft;1;FusedConv\n"),
    )
    merged = {reduce_operators(order) for order in permutations(models)}
    assert len(merged) == 1
    assert merged.pop().types_of("ai.onnx", "Add").inputs == ((0, ("float", "int64_t")),)


def test_no_models_require_nothing() -> None:
    assert reduce_operators([]) == EMPTY


def test_a_damaged_configuration_is_named_by_its_model() -> None:
    """An edited cache does not end in a traceback."""
    assert "vad" in refused(OperatorsError, reduce_operators, [converted("vad", "nonsense")]).where
