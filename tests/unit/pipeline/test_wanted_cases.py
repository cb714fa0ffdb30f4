"""For which models of a buildspec cases are sought when it has none."""

import pytest
from onnx import TensorProto, helper

from onnx_samples import model_of, value
from ortrim.models.onnx_files import facts_of
from ortrim.planning.models import wants_cases


@pytest.mark.parametrize(
    ("kind", "shape", "classic", "wanted"),
    [
        (TensorProto.FLOAT, (1, 3), False, False),
        (TensorProto.FLOAT, (1, 3), True, True),
        (TensorProto.FLOAT, ("n", 3), False, True),
        (TensorProto.FLOAT, None, False, True),
        (TensorProto.STRING, (1,), False, True),
        (TensorProto.INT64, (1, 16), False, True),
        (TensorProto.BOOL, (), False, True),
    ],
)
def test_cases_are_sought_where_default_values_show_little(
    kind: int,
    shape: tuple[int | str, ...] | None,
    classic: bool,  # noqa: FBT001
    wanted: bool,  # noqa: FBT001
) -> None:
    """A text that no table knows, or a number that leads to one row, proves nothing about the others."""
    opsets = (("", 17), ("ai.onnx.ml", 3)) if classic else (("", 17),)
    node = helper.make_node("Identity", ["x"], ["y"])
    model = model_of([node], [value("x", kind, shape)], [value("y", kind, shape)], opsets=opsets)
    assert wants_cases(facts_of(model, "a" * 64, 1, "here")) is wanted
