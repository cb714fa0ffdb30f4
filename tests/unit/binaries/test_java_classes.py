from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aar_samples import CLASS
from ortrim.binaries.android_libraries import native_method, read_class
from ortrim.errors import BinaryError, ExitCode


def test_native_methods_of_a_real_class_are_found() -> None:
    """Headers that javac writes have the same names; methods with a body and fields are left out."""
    found = read_class(CLASS, "OnnxRuntime.class")
    assert (found.name, found.version) == ("ai/onnxruntime/OnnxRuntime", 52)
    assert [method.long_symbol for method in found.native_methods] == [
        "Java_ai_onnxruntime_OnnxRuntime_initialiseAPIBase__",
        "Java_ai_onnxruntime_OnnxRuntime_overloaded__I",
        "Java_ai_onnxruntime_OnnxRuntime_overloaded___3Ljava_lang_String_2",
    ]
    assert found.native_methods[0].short_symbol == "Java_ai_onnxruntime_OnnxRuntime_initialiseAPIBase"
    assert found.native_methods[0].method == "ai.onnxruntime.OnnxRuntime.initialiseAPIBase"


@pytest.mark.parametrize(
    ("name", "method", "symbol"),
    [
        ("a/B$C", "run_it", "Java_a_B_00024C_run_1it"),
        ("größe/A", "x", "Java_gr_000f6_000dfe_A_x"),
        ("A", "y2", "Java_A_y2"),
    ],
)
def test_names_are_spelled_as_the_specification_says(name: str, method: str, symbol: str) -> None:
    """Underscores, dollars and letters beyond ASCII are escaped."""
    assert native_method(name, method, "()V").short_symbol == symbol


@pytest.mark.parametrize("data", [b"", b"\xca\xfe\xba\xbe", b"PK\x03\x04" * 10, b"\xca\xfe\xba\xbe" + b"\xff" * 40])
def test_what_is_no_class_is_refused(data: bytes) -> None:
    """With a diagnostic of its own."""
    with pytest.raises(BinaryError) as caught:
        read_class(data, "classes.jar: A.class")
    assert (caught.value.code, caught.value.exit_code) == ("corrupt-class", ExitCode.BINARY)
    assert caught.value.where == "classes.jar: A.class"


def test_a_class_that_was_cut_is_refused() -> None:
    """At every byte before the methods end; what follows is not looked at."""
    whole = read_class(CLASS, "A")
    for size in range(len(CLASS)):
        with suppress(BinaryError):
            assert read_class(CLASS[:size], "A") == whole


@settings(deadline=None, max_examples=300)
@given(flips=st.lists(st.tuples(st.integers(0, len(CLASS) - 1), st.integers(1, 255)), min_size=1, max_size=6))
def test_flipped_bytes_give_a_class_or_a_diagnostic(flips: list[tuple[int, int]]) -> None:
    """Nothing but a `BinaryError` escapes."""
    data = bytearray(CLASS)
    for place, mask in flips:
        data[place] ^= mask
    with suppress(BinaryError):
        read_class(bytes(data), "A")
