"""What a configuration lists, as uses of operators."""

from ortrim.models.operators import OperatorId, OperatorUse, parse_config, uses_of

CONFIG = 'ai.onnx;13;Gather{"inputs": {"1": ["int32_t", "int64_t"]}, "outputs": {"0": ["float"]}},If\n'
GATHER, IF = (OperatorId(domain="ai.onnx", opset=13, name=name) for name in ("Gather", "If"))


def test_each_type_of_each_slot_is_a_use() -> None:
    assert uses_of(parse_config(CONFIG)) == (
        OperatorUse(operator=GATHER, inputs=(), outputs=()),
        OperatorUse(operator=GATHER, inputs=("", "int32_t"), outputs=()),
        OperatorUse(operator=GATHER, inputs=("", "int64_t"), outputs=()),
        OperatorUse(operator=GATHER, inputs=(), outputs=("float",)),
        OperatorUse(operator=IF, inputs=(), outputs=()),
    )
    assert uses_of(parse_config("")) == ()


def test_the_node_is_a_hint_and_no_part_of_a_use() -> None:
    one, other = (OperatorUse(operator=IF, inputs=(), outputs=(), node=name) for name in "ab")
    assert one == other
    assert len({one, other}) == 1
