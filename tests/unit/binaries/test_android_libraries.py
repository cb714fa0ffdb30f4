from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aar_samples import CLASS
from android_samples import BINDING, RUNTIME, TRIPLES, sample
from ortrim.binaries.android import NativeLibrary, UndefinedSymbol
from ortrim.binaries.android_libraries import SOURCE_PATH, native_method, read_class, read_native_library
from ortrim.errors import BinaryError
from refusing import refused

GOOD = sample(f"arm64-v8a-{RUNTIME}")
TINY = Path(__file__).with_name("data") / "tiny.so"


def read(data: bytes, abi: str = "arm64-v8a") -> NativeLibrary:
    return read_native_library(data, f"jni/{abi}/{RUNTIME}", 100, 200)


@pytest.mark.parametrize("abi", TRIPLES)
def test_a_library_of_each_abi_is_read_in_full(abi: str) -> None:
    """Of 32 and 64 bits, what bionic's loader looks at."""
    library = read(sample(f"{abi}-{RUNTIME}"), abi)
    assert (library.abi, library.built_for, library.name) == (abi, abi, RUNTIME)
    assert (library.api_level, library.ndk, library.version) == (24, "r27c", "1.21.0")
    assert library.facts.needed == ("libc.so", "libdl.so")
    assert set(library.undefined) == {
        UndefinedSymbol(name=name, version="LIBC", weak=False) for name in ("access", "dlopen")
    }
    assert len(library.build_id) == 40
    assert {segment.alignment for segment in library.segments} == {16384}
    assert library.relro is not None
    assert library.loader_features == ()
    assert (library.size_bytes, library.compressed_bytes, library.download_bytes) == (
        len(sample(f"{abi}-{RUNTIME}")),
        100,
        200,
    )


def test_a_jni_library_needs_the_runtime_in_its_version() -> None:
    library = read(sample(f"x86-{BINDING}"), "x86")
    assert UndefinedSymbol(name="OrtGetApiBase", version="VERS_1.21.0", weak=False) in library.undefined
    assert library.version == ""


def test_a_library_that_the_ndk_did_not_make_has_no_level() -> None:
    """One of Linux is read all the same, and its versions are glibc's."""
    library = read(TINY.read_bytes(), "x86_64")
    assert (library.built_for, library.api_level, library.ndk) == ("x86_64", None, "")
    assert {symbol.version for symbol in library.undefined if not symbol.weak} == {"GLIBC_2.2.5"}


def test_formats_that_old_loaders_do_not_know_are_named() -> None:
    assert read(sample("new-hash.so")).loader_features == (("DT_GNU_HASH", 23),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"\0/build/a/b.cc\0", [b"/build/a/b.cc"]),
        (b"error in /home/x/src/y.hpp:3", [b"/home/x/src/y.hpp"]),
        (b"\0onnxruntime/core/session.cc\0", []),
        (b"\0./core/session.cc\0../a/b.h\0", []),
        (b"\0/proc/cpuinfo\0/dev/urandom\0/data/local/tmp\0", []),
        (b"https://example.com/a/b.c", []),
        (b"/a.b/c.cxx2", []),
    ],
)
def test_only_absolute_paths_of_sources_count(text: bytes, expected: list[bytes]) -> None:
    assert SOURCE_PATH.findall(text) == expected


def test_long_runs_of_slashes_are_searched_quickly() -> None:
    """What a hostile library holds does not make the search slow: its names are bounded."""
    assert SOURCE_PATH.findall(b"/" * 1_000_000 + b"a/" * 500_000) == []


@settings(deadline=None, max_examples=200)
@given(flips=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(1, 255)), min_size=1, max_size=10))
def test_flipped_bytes_give_facts_or_a_diagnostic(flips: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for place, mask in flips:
        data[place] ^= mask
    with suppress(BinaryError):
        read(bytes(data))


@settings(deadline=None, max_examples=60)
@given(size=st.integers(0, len(GOOD) - 1))
def test_a_library_that_was_cut_is_refused(size: int) -> None:
    refused(BinaryError, read, GOOD[:size])


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
    caught = refused(BinaryError, read_class, data, "classes.jar: A.class")
    assert caught.code == "corrupt-class"
    assert caught.where == "classes.jar: A.class"


def test_a_class_that_was_cut_is_refused() -> None:
    """At every byte before the methods end; what follows is not looked at."""
    whole = read_class(CLASS, "A")
    for size in range(len(CLASS)):
        with suppress(BinaryError):
            assert read_class(CLASS[:size], "A") == whole


@settings(deadline=None, max_examples=300)
@given(flips=st.lists(st.tuples(st.integers(0, len(CLASS) - 1), st.integers(1, 255)), min_size=1, max_size=6))
def test_flipped_bytes_give_a_class_or_a_diagnostic(flips: list[tuple[int, int]]) -> None:
    data = bytearray(CLASS)
    for place, mask in flips:
        data[place] ^= mask
    with suppress(BinaryError):
        read_class(bytes(data), "A")
