"""What reads and writes ONNX's messages, in a library that does neither."""

from dataclasses import replace

import pytest

from ortrim.compiling.dead_kernels import SOURCE, LinkedObject, message_methods, wanted_methods

PARSE = "_ZN4onnx11TensorProto14_InternalParseEPKcPN6google8protobuf8internal12ParseContextE"
WRITE = "_ZNK4onnx11TensorProto18_InternalSerializeEPhPN6google8protobuf2io19EpsCopyOutputStreamE"
COUNT = "_ZNK4onnx11TensorProto12ByteSizeLongEv"
METHODS = frozenset({PARSE, WRITE, COUNT})
OTHERS = frozenset({"_ZN4onnx11TensorProto9MergeFromERKS0_", "_ZN4onnx11TensorProtoD0Ev", "_ZTVN4onnx11TensorProtoE"})
MESSAGES = LinkedObject(source=SOURCE, defined=METHODS | OTHERS, undefined=METHODS, live=True)


def code(source: str, *undefined: str) -> LinkedObject:
    """Return an object whose code is in the library."""
    return LinkedObject(source=source, defined=frozenset(), undefined=frozenset(undefined), live=True)


def test_the_methods_are_those_of_onnxs_messages() -> None:
    """Not what copies and destroys them, and nothing of other objects that have such names."""
    other = replace(MESSAGES, source="coreml.pb.cc")
    assert message_methods((MESSAGES, other)) == METHODS
    assert message_methods((other,)) == frozenset()


def test_nothing_is_wanted_where_nobody_reads_or_writes() -> None:
    """The messages' own object names them in tables alone."""
    assert wanted_methods(METHODS | {"PoolKernel"}, (MESSAGES, code("arena.cc"))) == frozenset()


@pytest.mark.parametrize("reader", [
    code("parse_context.cc"), code("coded_stream.cc"), code("tensorprotoutils.cc", COUNT, "memcpy"),
])  # fmt: skip
def test_all_are_wanted_as_soon_as_somebody_does(reader: LinkedObject) -> None:
    """Protobuf's code for it is in the library, or another source names one; kernels are none of its business."""
    assert wanted_methods(METHODS | {"PoolKernel"}, (MESSAGES, reader)) == METHODS
    assert wanted_methods(METHODS, (MESSAGES, replace(reader, live=False))) == frozenset()


@pytest.mark.parametrize(("functions", "wanted"), [
    (frozenset({"_ZN6google8protobuf8internal12ShutdownData3getEv"}), frozenset[str]()),
    (frozenset({"_ZNK6google8protobuf11MessageLite21SerializeToCodedStreamEPNS0_2io17CodedOutputStreamE"}), METHODS),
    (None, METHODS),
])  # fmt: skip
def test_of_what_all_messages_share_functions_count(functions: frozenset[str] | None, wanted: frozenset[str]) -> None:
    """What clears up at the end reads no message; where functions cannot be told apart, it is taken to."""
    base = replace(code("message_lite.cc"), functions=functions)
    assert wanted_methods(METHODS, (MESSAGES, base)) == wanted


def test_a_table_that_names_one_wants_all() -> None:
    """Data ask for what they name, and read nothing themselves."""
    table = replace(code("tensorprotoutils.cc", COUNT), live=False, data=True)
    assert wanted_methods(METHODS, (MESSAGES, table)) == METHODS
    reader = replace(table, source="parse_context.cc", undefined=frozenset())
    assert wanted_methods(METHODS, (MESSAGES, reader)) == frozenset()


def test_what_was_not_left_out_is_not_wanted() -> None:
    """It is in the library already."""
    assert wanted_methods(frozenset({"PoolKernel"}), (MESSAGES, code("parse_context.cc"))) == frozenset()
