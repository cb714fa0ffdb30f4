"""Which types a reduced build really leaves out. Facts of ONNX Runtime 1.21.0."""

import pytest

from judged_models import runtime
from ortrim.analysis.compat_runtime import INPUT, OUTPUT, SECOND, InstalledRuntime, Slot, allowed_types, one_hot_fits
from ortrim.models.operators import OperatorId, RequiredOperators, parse_config

INTEGERS = {"int32_t", "int64_t"}
BYTES = {"int8_t", "uint8_t"}
FLOAT = '{"inputs": {"0": ["float"]}}'


def operator(name: str, opset: int = 13, domain: str = "ai.onnx") -> OperatorId:
    return OperatorId(domain=domain, opset=opset, name=name)


def limited(name: str, entry: str) -> RequiredOperators:
    """Return a configuration of one operator with these types."""
    return parse_config(f"ai.onnx;13;{name}{entry}\n")


def built(
    name: str, entry: str = FLOAT, *, domain: str = "ai.onnx", own: bool = False, **facts: bool
) -> InstalledRuntime:
    return runtime(f"{domain};13;{name}{entry}\n", types_for_optimizers=not own, **facts)


@pytest.mark.parametrize(
    ("name", "opset", "slot", "expected", "own"),
    [
        ("Relu", 14, INPUT, {"float"}, {"float"}),
        ("Add", 14, INPUT, {"float", *INTEGERS}, {"float"}),
        ("Pad", 18, INPUT, {"float", *INTEGERS}, {"float"}),
        ("Pad", 2, INPUT, {"float"}, {"float"}),
        ("Max", 13, INPUT, {"float", *INTEGERS}, {"float"}),
        ("Max", 8, INPUT, {"float"}, {"float"}),
        ("DequantizeLinear", 13, INPUT, {"float", *BYTES, "int32_t"}, {"float", *BYTES}),
        ("Transpose", 13, INPUT, {"float"}, {"float"}),
        ("Transpose", 21, INPUT, None, None),
        ("Gather", 13, INPUT, None, None),
        ("Reshape", 14, INPUT, None, None),
        ("Relu", 14, SECOND, None, None),
    ],
)
def test_types_that_are_listed_and_those_that_stay_anyway(
    name: str, opset: int, slot: Slot, expected: set[str] | None, own: set[str] | None
) -> None:
    """Upstream keeps integers where shapes are computed, from an opset on; some lists have no effect at all."""
    assert taken(allowed_types(built(name), operator(name, opset), slot)) == expected
    assert taken(allowed_types(built(name, own=True), operator(name, opset), slot)) == own


def taken(found: frozenset[str] | None) -> set[str] | None:
    return None if found is None else set(found)


def test_a_configuration_alone_promises_no_type_that_it_does_not_list() -> None:
    assert taken(allowed_types(runtime(f"ai.onnx;13;Add{FLOAT}\n"), operator("Add"), INPUT)) == {"float"}


def test_casts_are_limited_on_both_sides() -> None:
    types = '{"inputs": {"0": ["float"]}, "outputs": {"0": ["double"]}}'
    for own, kept in ((False, {"bool", *INTEGERS}), (True, set())):
        cast = built("Cast", types, own=own)
        assert taken(allowed_types(cast, operator("Cast"), INPUT)) == {"float", *kept}
        assert taken(allowed_types(cast, operator("Cast"), OUTPUT)) == {"double", *kept}


def test_an_operator_without_types_keeps_all() -> None:
    assert allowed_types(built("Relu", ""), operator("Relu"), INPUT) is None


def test_concat_copies_whatever_has_a_size_that_is_there() -> None:
    """Four bytes by float, eight by int64_t where upstream keeps it; not one byte, nor strings."""
    allowed = allowed_types(built("Concat"), operator("Concat"), INPUT)
    assert allowed is not None
    assert {"float", "uint32_t", "double", "uint64_t"} <= allowed
    assert not {"bool", "int8_t", "MLFloat16", "std::string"} & allowed
    assert taken(allowed_types(built("Concat", own=True), operator("Concat"), INPUT)) == {
        "float",
        "int32_t",
        "uint32_t",
    }


def test_an_extended_build_keeps_what_layouts_need() -> None:
    assert allowed_types(built("Transpose", extended=True), operator("Transpose"), INPUT) is None
    contrib = operator("QLinearConv", 1, "com.microsoft")
    for extended, expected in ((True, None), (False, {"float"})):
        product = built("QLinearConv", domain="com.microsoft", extended=extended)
        assert taken(allowed_types(product, contrib, INPUT)) == expected


def test_globally_allowed_types_limit_every_operator() -> None:
    """Also one that is limited by nothing else; what always stays stays."""
    config = "!globally_allowed_types;float\nai.onnx;13;Add,Relu,Gather\n"
    required = runtime(config, types_for_optimizers=True)
    assert taken(allowed_types(required, operator("Relu"), INPUT)) == {"float"}
    assert taken(allowed_types(required, operator("Add"), INPUT)) == {"float", *INTEGERS}
    assert allowed_types(required, operator("Gather"), INPUT) is None


def test_one_hot_takes_the_triples_that_are_listed() -> None:
    required = limited("OneHot", '{"custom": [["int64_t", "float", "int32_t"]]}')
    assert one_hot_fits(required, ("int64_t", "int32_t", "float"))
    assert not one_hot_fits(required, ("int64_t", "float", "int32_t"))
    assert one_hot_fits(required, ("int64_t",)), "what the model does not say is not compared with it"
    assert one_hot_fits(limited("OneHot", ""), ("bool", "bool", "bool"))
    everywhere = parse_config("!globally_allowed_types;float,int64_t\nai.onnx;11;OneHot\n")
    assert one_hot_fits(everywhere, ("int64_t", "int64_t", "float"))
    assert not one_hot_fits(everywhere, ("int64_t", "int64_t", "double"))
