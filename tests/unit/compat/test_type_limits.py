"""Which types a reduced build really leaves out. Facts of ONNX Runtime 1.21.0."""

import pytest

from ortrim.compat.installed import INPUT, OUTPUT, SECOND, Slot, allowed_types, one_hot_fits
from ortrim.models.operators import OperatorId, RequiredOperators, parse_config

INTEGERS = {"int32_t", "int64_t"}


def operator(name: str, opset: int = 13, domain: str = "ai.onnx") -> OperatorId:
    """Return one operator."""
    return OperatorId(domain=domain, opset=opset, name=name)


def limited(name: str, entry: str, domain: str = "ai.onnx") -> RequiredOperators:
    """Return a build of one operator with these types."""
    return parse_config(f"{domain};13;{name}{entry}\n")


FLOAT = '{"inputs": {"0": ["float"]}}'


@pytest.mark.parametrize(
    ("name", "opset", "slot", "expected"),
    [
        ("Relu", 14, INPUT, {"float"}),
        ("Add", 14, INPUT, {"float", *INTEGERS}),
        ("Pad", 18, INPUT, {"float", *INTEGERS}),
        ("Pad", 2, INPUT, {"float"}),
        ("Max", 13, INPUT, {"float", *INTEGERS}),
        ("Max", 8, INPUT, {"float"}),
        ("DequantizeLinear", 13, INPUT, {"float", "int8_t", "uint8_t", "int32_t"}),
        ("Transpose", 13, INPUT, {"float"}),
        ("Transpose", 21, INPUT, None),
        ("Gather", 13, INPUT, None),
        ("Reshape", 14, INPUT, None),
        ("Relu", 14, SECOND, None),
    ],
)
def test_types_that_are_listed_and_those_that_stay_anyway(
    name: str, opset: int, slot: Slot, expected: set[str] | None
) -> None:
    """Upstream keeps integers where shapes are computed, from an opset on; some lists have no effect at all."""
    found = allowed_types(limited(name, FLOAT), operator(name, opset), slot, extended=False)
    assert found == (None if expected is None else frozenset(expected))


def test_casts_are_limited_on_both_sides() -> None:
    """The types that are always there are the same on both."""
    required = limited("Cast", '{"inputs": {"0": ["float"]}, "outputs": {"0": ["double"]}}')
    assert allowed_types(required, operator("Cast"), INPUT, extended=False) == frozenset({"float", "bool", *INTEGERS})
    assert allowed_types(required, operator("Cast"), OUTPUT, extended=False) == frozenset({"double", "bool", *INTEGERS})


def test_an_operator_without_types_keeps_all() -> None:
    """Of one that is not there at all nothing can be said either."""
    assert allowed_types(limited("Relu", ""), operator("Relu"), INPUT, extended=False) is None


def test_concat_copies_whatever_has_a_size_that_is_there() -> None:
    """Four bytes by float, eight by int64_t, which is always there; not one byte, nor strings."""
    allowed = allowed_types(limited("Concat", FLOAT), operator("Concat"), INPUT, extended=False)
    assert allowed is not None
    assert {"float", "uint32_t", "double", "uint64_t"} <= allowed
    assert not {"bool", "int8_t", "MLFloat16", "std::string"} & allowed


def test_an_extended_build_keeps_what_layouts_need() -> None:
    """All types of Transpose and of the quantizing operators, of both domains."""
    assert allowed_types(limited("Transpose", FLOAT), operator("Transpose"), INPUT, extended=True) is None
    contrib = operator("QLinearConv", 1, "com.microsoft")
    required = limited("QLinearConv", FLOAT, "com.microsoft")
    assert allowed_types(required, contrib, INPUT, extended=True) is None
    assert allowed_types(required, contrib, INPUT, extended=False) == frozenset({"float"})


def test_globally_allowed_types_limit_every_operator() -> None:
    """Also one that is limited by nothing else; what always stays stays."""
    required = parse_config("!globally_allowed_types;float\nai.onnx;13;Add,Relu,Gather\n")
    assert allowed_types(required, operator("Relu"), INPUT, extended=False) == frozenset({"float"})
    assert allowed_types(required, operator("Add"), INPUT, extended=False) == frozenset({"float", *INTEGERS})
    assert allowed_types(required, operator("Gather"), INPUT, extended=False) is None


def test_one_hot_takes_the_triples_that_are_listed() -> None:
    """In the order of its registrations: indices, values, depth."""
    required = limited("OneHot", '{"custom": [["int64_t", "float", "int32_t"]]}')
    assert one_hot_fits(required, ("int64_t", "int32_t", "float"))
    assert not one_hot_fits(required, ("int64_t", "float", "int32_t"))
    assert one_hot_fits(required, ("int64_t",)), "what the model does not say is not compared with it"
    assert one_hot_fits(limited("OneHot", ""), ("bool", "bool", "bool"))
    everywhere = parse_config("!globally_allowed_types;float,int64_t\nai.onnx;11;OneHot\n")
    assert one_hot_fits(everywhere, ("int64_t", "int64_t", "float"))
    assert not one_hot_fits(everywhere, ("int64_t", "int64_t", "double"))
