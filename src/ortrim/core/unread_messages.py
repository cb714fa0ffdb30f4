"""Which functions of ONNX's messages a library has no use for: those that read and write them as files. Pure.

What is read from a model in ORT format is kept in ONNX's own messages. The table of virtual functions of each names
what would read it from a protobuf file and write it into one, so that a library keeps all of that for nothing.
Upstream: what `protoc` makes of `onnx-ml.proto`; protobuf's `message_lite.h`, `parse_context.cc`, `coded_stream.cc`.
"""

import re
from collections.abc import Iterable
from typing import Final

from ortrim.core.unreached_kernels import LinkedObject

SOURCE: Final = "onnx-ml.pb.cc"
"""What protoc makes: the messages, and of each what reads and writes it."""
READERS: Final = ("parse_context.cc", "coded_stream.cc")
"""Protobuf's own sources through which all reading and all writing goes."""
BASE: Final = "message_lite.cc"
"""What all messages have in common: functions that read or write any message, and some that do not."""
ANY_MESSAGE: Final = re.compile("Parse|Serialize|ByteSize|Append")
METHOD: Final = re.compile(r"_ZNK?4onnx\w+(14_InternalParseEPKc|18_InternalSerializeEPh|12ByteSizeLongE)\w+")


def message_methods(objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return the symbols of what reads and writes ONNX's messages."""
    return frozenset(
        name for each in objects if each.source == SOURCE for name in each.defined if METHOD.fullmatch(name)
    )


def wanted_methods(left_out: frozenset[str], objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return those of the methods left out of a library that code in it may ask for: all of them or none.

    All as soon as protobuf's own code for reading or writing is in the library without them, or another object names
    one.
    """
    methods = frozenset(filter(METHOD.fullmatch, left_out))
    others = tuple(each for each in objects if each.source != SOURCE)
    named = frozenset[str]().union(*(each.undefined for each in others if each.live or each.data))
    reads_or_writes = any(_reads_or_writes(each) for each in others if each.live)
    return methods if reads_or_writes or methods & named else frozenset()


def _reads_or_writes(linked: LinkedObject) -> bool:
    """Whether an object of which some code is in the library may call the methods of whatever message it is given.

    Of what all messages have in common, functions go by their names, and any counts where these cannot be told.
    """
    if linked.source == BASE:
        return linked.functions is None or any(map(ANY_MESSAGE.search, linked.functions))
    return linked.source in READERS
