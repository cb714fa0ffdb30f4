import dataclasses
import errno
import json
import threading
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refusing
from operator_strategies import operators
from ortrim.base.cache import record_entry, watched_cache
from ortrim.compiling import translation_units
from ortrim.compiling.dead_kernels import KernelTable
from ortrim.compiling.translation_units import (
    DOMAINS,
    FEW_BITS_UNITS,
    LARGEST_INDEX,
    WIDE_UNITS,
    ObjectSymbols,
    Unit,
    UnitIndex,
    Variant,
    compiled_names,
    demangled_kernel_key,
    find_index,
    kernel_key,
    learnt_index,
    make_index,
    nearest_index,
    object_owners,
    providers,
    read_index,
    render_index,
    save_learnt,
    select_units,
    shipped_index,
    symbolic_path,
    unread_units,
    wide_units,
)
from ortrim.errors import ExitCode, SourcesError, StorageError
from ortrim.models.operators import EMPTY, OperatorId, RequiredOperators, parse_config, required_operators
from ortrim.pins import shipped
from ortrim.pins.shipped import pin_text
from unit_samples import (
    ADD,
    ADD_OLD,
    GEMM,
    INTERFACE,
    KERNELS,
    NAMES,
    OBJECTS,
    PROVIDER,
    SESSION,
    SGEMM,
    VARIANT,
    indices,
    kernel,
    object_lists,
    sample_index,
    symbols,
)

EVERYTHING = required_operators((), no_operators_means_all=True)
TEXT = render_index(sample_index())
Step = str | int


def refused(text: str | bytes) -> SourcesError:
    caught = refusing.refused(SourcesError, read_index, text, "index.json")
    assert caught.code == "bad-unit-index"
    assert (caught.where, bool(caught.why)) == ("index.json", True)
    return caught


def changed(steps: tuple[Step, ...], value: Any) -> str:
    data = json.loads(TEXT)
    place = data
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    return json.dumps(data)


@given(indices)
def test_what_is_written_reads_back(index: UnitIndex) -> None:
    text = render_index(index)
    assert read_index(text) == read_index(text.encode()) == index
    assert render_index(read_index(text)) == text


def test_each_unit_and_operator_has_a_line() -> None:
    lines = TEXT.splitlines()
    assert sum('"path":' in line for line in lines) == len(sample_index().units)
    assert sum(line.startswith('["ai.onnx:') for line in lines) == 2
    assert max(map(len, lines)) < 400


def test_file_is_named_after_what_the_index_was_made_with() -> None:
    assert VARIANT.stem == "onnxruntime-1.21.0-linux-x64-zig"
    data = json.loads(changed(("variant", "exceptions"), value=True))
    assert read_index(json.dumps(data)).variant.stem == "onnxruntime-1.21.0-linux-x64-zig-exceptions"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "onnxruntime/a.cc",
        "${sources}",
        "${sources}/",
        "${sources}//a.cc",
        "${sources}/../a.cc",
        "${sources}/a/../../b.cc",
        "${sources}/./a.cc",
        "${sources}/a/..",
        "${sources}a.cc",
        "${tools}/a.cc",
        "${build}/a.cc\n",
        "${build}/a;b.cc",
        '${build}/a"b.cc',
        "${build}/a\\b.cc",
        "${build}/a b.cc",
        "${build}/${HOME}/a.cc",
        "${build}/$ENV{HOME}.cc",
        "${build}/$<TARGET_FILE:x>",
        "${build}/a#b.cc",
        "${build}/a(b.cc",
        "${build}/a'b.cc",
        "${build}/a\0.cc",
        "${build}/\N{LATIN SMALL LETTER A WITH DIAERESIS}.cc",
        "${build}/" + "a" * 1000,
        7,
        None,
    ],
)
def test_path_that_could_do_harm_is_refused(path: object) -> None:
    data = json.loads(TEXT)
    data["units"] = [{"needs": [], "path": path, "provides": []}]
    data["roots"], data["kernels"] = [0], []
    assert "units.0.path" in refused(json.dumps(data)).why


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (("schema",), "ortrim-units/2"),
        (("variant", "ort_version"), "../1.21.0"),
        (("variant", "target"), "linux/x64"),
        (("variant", "toolchain"), ""),
        (("variant", "exceptions"), 1),
        (("variant", "ml_ops"), True),
        (("extra",), []),
        (("roots",), []),
        (("roots",), [7]),
        (("roots",), [-1]),
        (("roots",), [0, 0]),
        (("roots",), [1, 0]),
        (("roots",), ["0"]),
        (("roots",), [0.0]),
        (("roots",), [True]),
        (("roots",), [10**400]),
        (("roots",), {"0": 0}),
        (("units",), []),
        (("units", 0, "needs"), [1, 1]),
        (("units", 0, "needs"), [99]),
        (("units", 0, "provides"), ["b", "a"]),
        (("units", 0, "provides"), ["a b"]),
        (("units", 0, "provides"), [""]),
        (("units", 0, "provides"), ["a" * 10_001]),
        (("units", 1, "path"), "${build}/MinSizeRel/generated_source.c"),
        (("units", 1, "path"), "${build}/MinSizeRel/a.c"),
        (("kernels", 0), ["ai.onnx:Add", [99]]),
        (("kernels", 0), ["ai.onnx:Add", [2, 1]]),
        (("kernels", 0), ["ai.onnx;Add", [1]]),
        (("kernels", 0), ["ai.onnx:Zoo", [1]]),
        (("kernels", 0), ["ai.onnx:Gemm", [1]]),
        (("kernels", 0), ["ai.onnx:Add"]),
    ],
)
def test_index_that_contradicts_itself_is_refused(steps: tuple[Step, ...], value: object) -> None:
    refused(changed(steps, value))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "{" * 100_000, "[" * 100_000, TEXT[:-3], TEXT + TEXT, b"\xff\xfe", b"\x7fELF", "NaN"],
)
def test_other_files_are_refused(text: str | bytes) -> None:
    refused(text)


def test_huge_file_is_refused_unread() -> None:
    assert f"{LARGEST_INDEX:,}" in refused(b" " * (LARGEST_INDEX + 1)).why


def test_many_faults_are_reported_by_the_first() -> None:
    data = json.loads(TEXT)
    data["units"][0]["needs"] = ["x"] * 1_000_000
    assert refused(json.dumps(data)).why.startswith("units.0.needs.0:")


def check_read_or_refused(text: str) -> None:
    try:
        index = read_index(text)
    except SourcesError as error:
        assert error.code == "bad-unit-index"  # noqa: PT017 - both outcomes are right
        return
    assert read_index(render_index(index)) == index
    assert set(select_units(index, EVERYTHING)) <= {unit.path for unit in index.units}


@given(st.integers(0, len(TEXT)), st.integers(0, 20), st.text(max_size=5))
def test_any_damage_to_the_text_is_read_or_refused(start: int, length: int, replacement: str) -> None:
    check_read_or_refused(TEXT[:start] + replacement + TEXT[start + length :])


@given(st.integers(0, len(TEXT) - 2))
def test_truncated_index_is_always_refused(length: int) -> None:
    refused(TEXT[:length])


UNKNOWN = Variant(ort_version="9.9.9", target="linux-x64", toolchain="zig", exceptions=True)
SHIPPED = sorted(path.name for path in Path(shipped.__file__).with_name("units").glob("*.json"))
CPU = "${sources}/onnxruntime/onnxruntime/core/providers/cpu"
MLAS = "${sources}/onnxruntime/onnxruntime/core/mlas/lib"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))


def index_of(variant: Variant) -> UnitIndex:
    return dataclasses.replace(sample_index(), variant=variant)


def pin(tmp_path: Path, content: str, variant: Variant = UNKNOWN) -> None:
    path = tmp_path / "pins" / "units" / f"{variant.stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def set_aside(variant: Variant) -> str:
    notes: list[str] = []
    assert find_index(variant, notes.append) is None
    (note,) = notes
    assert note.startswith("the index of an earlier build is ignored: ")
    return note


def found(variant: Variant) -> UnitIndex | None:
    return find_index(variant, pytest.fail)


def test_shipped_index_selects_a_fraction_of_the_units() -> None:
    """The index of 1.21.0 knows every operator, and a small model takes the lesser part of the units."""
    index = shipped_index(VARIANT)
    assert index is not None
    selected = select_units(index, parse_config("ai.onnx;13;Gemm,Add\ncom.microsoft;1;FusedConv"))
    assert len(index.units) > 500
    assert len(index.kernels) > 200
    assert {f"{CPU}/math/gemm.cc", f"{CPU}/math/element_wise_ops.cc", f"{MLAS}/sgemm.cpp"} <= set(selected)
    assert {f"{CPU}/cpu_execution_provider.cc", "${build}/MinSizeRel/generated_source.c"} <= set(selected)
    assert f"{CPU}/math/top_k.cc" not in selected
    assert len(selected) < 0.4 * len(index.units)


LIB = "${sources}/onnxruntime/onnxruntime/core/mlas/lib"
TABLE = KernelTable(
    entries={name: frozenset({f"{name}Entry"}) for name in ("MlasFloat", "MlasQuant", "MlasOther")},
    readers={
        "MlasFloatEntry": frozenset({"sgemm.cpp"}),
        "MlasQuantEntry": frozenset({"qgemm.cpp"}),
        "MlasOtherEntry": frozenset({"other.cpp", "quant_avx.cpp"}),
    },
    others=frozenset({"MlasMask"}),
)
FILLED = ("_Z9MlasFloatv", "_Z9MlasQuantv", "MlasOther", "MlasMask")


def table_index() -> UnitIndex:
    """`other.cpp` reads its own kernel and is named by nothing; `mask.cpp` has something that every library names."""
    objects = (
        symbols(INTERFACE, undefined=("Gemm", "Quant")),
        symbols(f"{LIB}/sgemm.cpp", ("Gemm",), ("platform",)),
        symbols(f"{LIB}/qgemm.cpp", (QUANT_KERNEL,), ("platform",)),
        symbols(PROVIDER, (), (QUANT_KERNEL,)),
        symbols(f"{LIB}/platform.cpp", ("platform",), FILLED),
        symbols(f"{LIB}/float_avx.cpp", FILLED[:1]),
        symbols(f"{LIB}/quant_avx.cpp", FILLED[1:2], ("help",)),
        symbols(f"{LIB}/helper.cpp", ("help",)),
        symbols(f"{LIB}/other.cpp", FILLED[2:3]),
        symbols(f"{LIB}/mask.cpp", FILLED[3:]),
        symbols(f"{LIB}/wide.cpp", ("MlasWide",)),
    )
    return make_index(VARIANT, objects, [INTERFACE])


QUANT_KERNEL = kernel("kCpuExecutionProvider_MatMulInteger_kOnnxDomain_ver10_uint8_t")


def test_units_to_which_only_the_table_leads_are_not_read() -> None:
    """With what they alone need; one of unknown kernels is taken to be read, as a wide one without symbols is."""
    wide = (f"{LIB}/wide.cpp",)
    assert unread_units(table_index(), EMPTY, wide, TABLE) == {
        f"{LIB}/helper.cpp": frozenset(),
        f"{LIB}/other.cpp": {"MlasOther"},
        f"{LIB}/quant_avx.cpp": {"_Z9MlasQuantv"},
    }


def test_a_unit_that_reads_an_entry_brings_its_kernels_and_what_these_read() -> None:
    operators = required_operators([OperatorId(domain="ai.onnx", opset=10, name="MatMulInteger")])
    assert unread_units(table_index(), operators, (), TABLE) == {}


def test_without_a_table_all_units_are_read() -> None:
    assert unread_units(table_index(), EMPTY, (), KernelTable(entries={}, readers={})) == {}


def test_shipped_index_knows_the_operator_of_every_kernel() -> None:
    """No kernel of the real build had a name that could not be read, which would compile it always."""
    index = shipped_index(VARIANT)
    assert index is not None
    registrations = [s for unit in index.units for s in unit.provides if "21BuildKernelCreateInfoI" in s]
    assert registrations == []
    assert {key.split(":")[0] for key, _ in index.kernels} >= {"ai.onnx", "com.microsoft", "com.microsoft.nchwc"}
    assert all(kernel_key(symbol) is None for unit in index.units for symbol in unit.provides)


@pytest.mark.parametrize("name", [name for name in SHIPPED if "-linux-x64-" in name])
def test_wide_kernels_are_in_the_units_of_x64(name: str) -> None:
    text = pin_text(f"units/{name}")
    assert text is not None
    index = read_index(text)
    taken = wide_units(index, WIDE_UNITS, few_bits=True)
    assert not any("sqnbitgemm_kernel_avx512" in path for path in wide_units(index, WIDE_UNITS))
    named = [*FEW_BITS_UNITS, *(unit for units in WIDE_UNITS.values() for unit in units)]
    assert [unit for unit in named if not any(path.endswith(f"/mlas/lib/{unit}") for path in taken)] == []
    assert len(taken) < 0.2 * len(index.units)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_indices_are_canonical_and_small(name: str) -> None:
    text = pin_text(f"units/{name}")
    assert text is not None
    index = read_index(text, name)
    assert f"{index.variant.stem}.json" == name
    assert render_index(index) == text
    assert len(text) < 400_000


def test_an_index_is_shipped_with_and_without_exceptions() -> None:
    """The same files hold the same operators' kernels; what they need differs."""
    without, with_them = shipped_index(VARIANT), shipped_index(dataclasses.replace(VARIANT, exceptions=True))
    assert without is not None
    assert with_them is not None
    assert [unit.path for unit in without.units] == [unit.path for unit in with_them.units]
    assert without.kernels == with_them.kernels
    assert without.units != with_them.units


def test_shipped_index_comes_first() -> None:
    save_learnt(index_of(VARIANT))
    assert found(VARIANT) == shipped_index(VARIANT)
    assert learnt_index(VARIANT) == index_of(VARIANT)


def test_users_own_index_replaces_the_shipped_one(tmp_path: Path) -> None:
    pin(tmp_path, render_index(index_of(VARIANT)), VARIANT)
    assert found(VARIANT) == index_of(VARIANT)


def test_unknown_variant_has_no_index() -> None:
    assert shipped_index(UNKNOWN) is None
    assert found(UNKNOWN) is None


@pytest.mark.parametrize(
    ("version", "target", "expected"),
    [
        ("1.24.4", "linux-x64", "1.21.0-linux-x64"),
        ("1.24.4", "linux-arm64-musl", "1.21.0-linux-arm64-musl"),
        ("1.21.0", "android-arm64-v8a", "1.21.0-linux-arm64"),
        ("1.21.0", "android-armeabi-v7a", "1.21.0-linux-armhf"),
        ("1.21.0", "android-x86_64", "1.21.0-linux-x64"),
        ("1.21.0", "ios-arm64", "1.21.0-macos-arm64"),
        ("1.21.0", "ios-simulator-x86_64", "1.21.0-macos-x86_64"),
    ],
)
def test_the_nearest_index_is_of_the_next_version_and_target(version: str, target: str, expected: str) -> None:
    found = nearest_index(Variant(ort_version=version, target=target, toolchain="zig", exceptions=False))
    assert found is not None
    assert f"{found.variant.ort_version}-{found.variant.target}" == expected


def test_what_was_learnt_may_be_nearest(tmp_path: Path) -> None:
    """A file that is no index is passed over; in a cache that cannot be read nothing is known."""
    learnt = dataclasses.replace(UNKNOWN, target="linux-arm64")
    save_learnt(index_of(learnt)).with_name("broken.json").write_text("{")
    assert nearest_index(UNKNOWN) == index_of(learnt)


def test_learnt_index_is_found_again(tmp_path: Path) -> None:
    path = save_learnt(index_of(UNKNOWN))
    save_learnt(index_of(UNKNOWN))
    assert path == tmp_path / "cache" / "units" / "onnxruntime-9.9.9-linux-x64-zig-exceptions.json"
    assert found(UNKNOWN) == index_of(UNKNOWN)
    beside = {path.with_name(f".{path.name}.{kind}") for kind in ("record", "lock")}
    assert set(path.parent.iterdir()) == {path, *beside}


def test_an_index_may_be_read_while_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another build reads between its file and the record of that: it waits, and takes neither for damage."""
    save_learnt(index_of(UNKNOWN))
    newer = dataclasses.replace(index_of(UNKNOWN), kernels=())
    read: list[UnitIndex | None] = []
    reader = threading.Thread(target=lambda: read.append(learnt_index(UNKNOWN)))

    def slowly(path: Path) -> None:
        reader.start()
        reader.join(0.3)
        record_entry(path)

    monkeypatch.setattr(translation_units, "record_entry", slowly)
    with watched_cache(lambda _: None) as watch:
        save_learnt(newer)
        reader.join()
    assert read == [newer]
    assert found(UNKNOWN) == newer
    assert watch.damages == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xff", b"null", b" " * (LARGEST_INDEX + 5), b'{"schema":"ortrim-units/0"}']
)
def test_damaged_learnt_index_is_set_aside(content: bytes) -> None:
    """An empty, truncated, binary, huge or older file counts as none, and the note names it; learning mends it."""
    path = save_learnt(index_of(UNKNOWN))
    path.write_bytes(content)
    record_entry(path)
    assert str(path) in set_aside(UNKNOWN)
    save_learnt(index_of(UNKNOWN))
    assert found(UNKNOWN) == index_of(UNKNOWN)


def test_a_learnt_index_that_is_not_what_was_learnt_is_none() -> None:
    path = save_learnt(index_of(UNKNOWN))
    path.write_text(path.read_text().replace("generated_source.c", "generated_source.d"))
    assert found(UNKNOWN) is None
    assert not path.exists()


def test_learnt_index_of_another_variant_is_set_aside() -> None:
    path = save_learnt(index_of(UNKNOWN))
    path.write_text(render_index(index_of(VARIANT)))
    record_entry(path)
    assert f"it is the index of {VARIANT.stem}" in set_aside(UNKNOWN)


def test_learnt_index_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "units" / f"{UNKNOWN.stem}.json"
    folder.mkdir(parents=True)
    assert str(folder) in set_aside(UNKNOWN)
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.write_text("in the way")
    assert str(folder.parent) in set_aside(UNKNOWN)


def test_index_that_cannot_be_kept_is_a_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_learnt(index_of(UNKNOWN))
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError) as caught:
        save_learnt(index_of(UNKNOWN))
    assert (caught.value.code, caught.value.exit_code) == ("disk-full", ExitCode.STORAGE)
    beside = {path.with_name(f".{path.name}.{kind}") for kind in ("record", "lock")}
    assert set(path.parent.iterdir()) == {path, *beside}
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["", "{", "null", render_index(sample_index())[:-40], render_index(sample_index())])
def test_damaged_pinned_index_is_a_diagnostic(tmp_path: Path, content: str) -> None:
    """What is pinned is wrong or it is right: a damaged file, or one of another variant, stops the build."""
    pin(tmp_path, content)
    caught = refusing.refused(SourcesError, found, UNKNOWN)
    assert caught.code == "bad-unit-index"
    assert caught.where == f"units/{UNKNOWN.stem}.json"
    assert "invoke pins.index" in caught.hint


def test_shipped_file_that_is_not_text_is_a_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / f"{UNKNOWN.stem}.json").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(shipped, "files", lambda _package: tmp_path)
    caught = refusing.refused(SourcesError, shipped_index, UNKNOWN)
    assert caught.code == "bad-unit-index"


SOURCES = "/home/me/.cache/ortrim/sources/1d9a"
BUILD = "/home/me/.cache/ortrim/builds/9d65.work/out"
NINJA = f"{BUILD}/MinSizeRel"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (f"{SOURCES}/onnxruntime/cmake/a+b.cc", "${sources}/onnxruntime/cmake/a+b.cc"),
        (f"{SOURCES}/abseil_cpp/absl/../absl//base/log.cc", "${sources}/abseil_cpp/absl/base/log.cc"),
        (f"{NINJA}/generated_source.c", "${build}/MinSizeRel/generated_source.c"),
        ("onnx/onnx-ml.pb.cc", "${build}/MinSizeRel/onnx/onnx-ml.pb.cc"),
        ("../../../sources/1d9a/re2/re2/re2.cc", None),
        ("../../../../sources/1d9a/re2/re2/re2.cc", "${sources}/re2/re2/re2.cc"),
        (f"{SOURCES}x/re2/re2/re2.cc", None),
        (SOURCES, None),
        ("/usr/include/stdio.h", None),
        ("/", None),
    ],
)
def test_source_has_the_name_that_it_has_everywhere(file: str, expected: str | None) -> None:
    assert symbolic_path(file, NINJA, sources=SOURCES, build=BUILD) == expected
    assert symbolic_path(file, NINJA, sources=SOURCES + "/", build=BUILD + "/") == expected


@pytest.mark.parametrize(
    "inside",
    ["onnxruntime/core/providers/cpu/cpu_execution_provider.cc", "onnxruntime/contrib_ops/cpu/cpu_contrib_kernels.cc"],
)
def test_reduced_copy_is_the_same_unit(inside: str) -> None:
    """A registration file has one name, whether the build compiles upstream's file or the copy with fewer operators."""
    copy = symbolic_path(f"op_reduction.generated/{inside}", NINJA, sources=SOURCES, build=BUILD)
    assert copy == "${sources}/onnxruntime/" + inside
    assert compiled_names(copy) == (copy, f"${{build}}/MinSizeRel/op_reduction.generated/{inside}")


def test_other_units_are_compiled_under_their_own_name() -> None:
    for unit in ("${build}/MinSizeRel/generated_source.c", "${sources}/onnxruntime/onnxruntime/core/graph/graph.cc"):
        assert compiled_names(unit) == (unit,)


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b.cc"]), max_size=8))
def test_name_never_climbs(parts: list[str]) -> None:
    path = symbolic_path("/".join(parts), NINJA, sources=SOURCES, build=BUILD)
    assert path is None or ".." not in path.split("/")


VARIANT_unit_owners = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=False)
OWNER_NAMES = ("both.cc", "own/same.cc", "resize.cc", "root.cc", "same.cc", "split.cc", "upsample.cc")
NEEDS = ((), (), (0, 3, 6), (4,), (), (0, 1), (3,))
INDEX = UnitIndex(
    variant=VARIANT_unit_owners,
    roots=(3,),
    units=tuple(
        Unit(path=f"${{sources}}/{name}", provides=(), needs=needs)
        for name, needs in zip(OWNER_NAMES, NEEDS, strict=True)
    ),
    kernels=(("ai.onnx:Resize", (2,)), ("ai.onnx:Split", (5,))),
)


def test_a_file_is_owned_by_who_leads_to_it() -> None:
    owners = object_owners(INDEX, {"ai.onnx:Resize", "ai.onnx:Split", "ai.onnx:Unheard"})
    assert owners == {
        "both.cc.o": {"ai.onnx:Resize", "ai.onnx:Split"},
        "resize.cc.o": {"ai.onnx:Resize"},
        "split.cc.o": {"ai.onnx:Split"},
        "upsample.cc.o": {"ai.onnx:Resize"},
    }


def test_only_operators_that_are_there_count() -> None:
    assert object_owners(INDEX, {"ai.onnx:Split"})["both.cc.o"] == {"ai.onnx:Split"}
    assert object_owners(INDEX, ()) == {}


def test_a_circle_of_needs_ends() -> None:
    upsample = replace(INDEX.units[6], needs=(2,))
    owners = object_owners(replace(INDEX, units=(*INDEX.units[:6], upsample)), {"ai.onnx:Resize"})
    assert owners["upsample.cc.o"] == owners["resize.cc.o"] == {"ai.onnx:Resize"}


def test_the_shipped_index_tells_real_helpers() -> None:
    """Resize brings upsample.cc, and LSTM its own file and helpers; the runtime's own files are nobody's."""
    index = shipped_index(VARIANT_unit_owners)
    assert index is not None
    owners = object_owners(index, {"ai.onnx:Resize", "ai.onnx:LSTM", "ai.onnx:Conv"})
    assert owners["upsample.cc.o"] == {"ai.onnx:Resize"}
    assert owners["uni_directional_lstm.cc.o"] == {"ai.onnx:LSTM"}
    assert owners["convolve.cpp.o"] == {"ai.onnx:Conv"}
    assert "inference_session.cc.o" not in owners


BASE = {INTERFACE, SESSION, PROVIDER}


def required(*names: str, domain: str = "ai.onnx") -> RequiredOperators:
    return required_operators(OperatorId(domain=domain, opset=3, name=name) for name in names)


def test_roots_alone_give_what_every_library_has() -> None:
    assert set(select_units(sample_index(), EMPTY)) == BASE


def test_operator_brings_its_kernels_and_what_they_need() -> None:
    index = sample_index()
    assert set(select_units(index, required("Add"))) == BASE | {ADD}
    assert set(select_units(index, required("Gemm"))) == BASE | {GEMM, SGEMM, ADD}
    assert set(select_units(index, required("FusedGemm", domain="com.microsoft"))) == BASE | {GEMM, SGEMM, ADD}
    assert set(select_units(index, EVERYTHING)) == BASE | {GEMM, SGEMM, ADD}


def test_unknown_operator_adds_nothing() -> None:
    """An operator of another domain or another name is left for the link to ask for."""
    index = sample_index()
    assert set(select_units(index, required("Softmax", "ad", "Add_", "", ":"))) == BASE
    assert set(select_units(index, required("Add", domain="com.microsoft"))) == BASE


def test_missing_symbol_leads_to_its_units() -> None:
    assert providers(sample_index(), ["sgemm"]) == (SGEMM,)
    assert set(providers(sample_index(), ["make_provider"])) == {PROVIDER, SESSION}


def test_missing_kernel_is_found_by_its_operator() -> None:
    unseen = kernel("kCpuExecutionProvider_Gemm_kOnnxDomain_ver99_Float8")
    assert set(providers(sample_index(), [ADD_OLD])) == {ADD, SESSION, PROVIDER}
    assert set(providers(sample_index(), [unseen])) == {GEMM, SGEMM, ADD, SESSION, PROVIDER}


def test_symbols_that_nobody_provides_add_nothing() -> None:
    unseen = kernel("kCpuExecutionProvider_Softmax_kOnnxDomain_ver13_float")
    assert providers(sample_index(), iter(["sgemm", "zlib", "malloc", "malloc", unseen])) == (SGEMM,)
    assert providers(sample_index(), []) == ()


@given(indices, operators, operators)
def test_more_operators_never_select_less(
    index: UnitIndex, some: frozenset[OperatorId], more: frozenset[OperatorId]
) -> None:
    fewer = set(select_units(index, required_operators(some)))
    greater = set(select_units(index, required_operators(some | more)))
    assert set(select_units(index, EMPTY)) <= fewer <= greater <= set(select_units(index, EVERYTHING))
    assert greater <= {unit.path for unit in index.units}


@given(indices, st.lists(st.sampled_from((*NAMES, *KERNELS, "nobody"))))
def test_providers_are_units_of_the_index(index: UnitIndex, missing: list[str]) -> None:
    found = providers(index, missing)
    assert list(found) == sorted(set(found) & {unit.path for unit in index.units})


def unit_of(index: UnitIndex, path: str) -> Unit:
    return next(unit for unit in index.units if unit.path == path)


def needed_by(index: UnitIndex, path: str) -> set[str]:
    return {index.units[number].path for number in unit_of(index, path).needs}


def refused_unit_making(objects: tuple[ObjectSymbols, ...], roots: tuple[str, ...]) -> SourcesError:
    caught = refusing.refused(SourcesError, make_index, VARIANT, objects, roots)
    assert caught.code == "bad-unit-index"
    return caught


def test_index_says_who_needs_whom() -> None:
    index = sample_index()
    assert needed_by(index, INTERFACE) == {SESSION}
    assert needed_by(index, GEMM) == {SGEMM, ADD}
    assert unit_of(index, SESSION).provides == ("OrtGetApiBase", "_ZTV3Log")
    assert [index.units[number].path for number in index.roots] == [INTERFACE]


def test_kernels_are_needed_by_operators_alone() -> None:
    index = sample_index()
    assert needed_by(index, PROVIDER) == {SESSION}
    kernels = {key: [index.units[number].path for number in numbers] for key, numbers in index.kernels}
    assert kernels == {"ai.onnx:Add": [ADD], "ai.onnx:Gemm": [GEMM], "com.microsoft:FusedGemm": [GEMM]}
    assert not any(kernel_key(symbol) for unit in index.units for symbol in unit.provides)


def test_kernel_that_cannot_be_told_is_always_compiled() -> None:
    """A kernel of an operator that no configuration can name is an ordinary need of the registration file."""
    strange = kernel("kCpuExecutionProvider_Odd_kSomeNewDomain_ver1")
    objects = (symbols(INTERFACE, (), (strange,)), symbols(ADD, (strange,)))
    index = make_index(VARIANT, objects, [INTERFACE])
    assert needed_by(index, INTERFACE) == {ADD}
    assert unit_of(index, ADD).provides == (strange,)


def test_all_definers_of_a_symbol_are_needed() -> None:
    """Of a weak symbol in several objects the linker may take any, so all are compiled."""
    objects = (symbols(INTERFACE, (), ("weak",)), symbols(ADD, ("weak",)), symbols(GEMM, ("weak",)))
    assert needed_by(make_index(VARIANT, objects, [INTERFACE]), INTERFACE) == {ADD, GEMM}


def test_unit_compiled_twice_is_one_unit() -> None:
    """Files of protobuf are in two libraries: what either object needs and defines is the unit's."""
    objects = (
        symbols(INTERFACE, (), ("one", "two")),
        symbols(ADD, ("one",), ("two", "other")),
        symbols(ADD, ("two",), ()),
        symbols(GEMM, ("other",)),
    )
    index = make_index(VARIANT, objects, [INTERFACE])
    assert needed_by(index, ADD) == {GEMM}
    assert unit_of(index, ADD).provides == ("one", "two")


def test_root_that_was_not_compiled_is_refused() -> None:
    """An index whose root is missing would select nothing, so none is made; nor one without roots."""
    assert SGEMM in refused_unit_making(OBJECTS[:2], (INTERFACE, SGEMM)).why
    assert "no roots" in refused_unit_making(OBJECTS, ()).why
    assert INTERFACE in refused_unit_making((), (INTERFACE,)).why


@pytest.mark.parametrize("path", ["${sources}/a;b.cc", "/elsewhere/a.cc", "${sources}/a b.cc", ""])
def test_name_that_an_index_cannot_hold_is_refused(path: str) -> None:
    assert "path" in refused_unit_making((symbols(INTERFACE), symbols(path)), (INTERFACE,)).why


@given(object_lists, st.randoms(use_true_random=False))
def test_order_of_the_objects_does_not_matter(objects: list[ObjectSymbols], random: Random) -> None:
    shuffled = sorted(objects, key=lambda _: random.random())
    assert make_index(VARIANT, shuffled, [INTERFACE, INTERFACE]) == make_index(VARIANT, objects, [INTERFACE])


@given(object_lists, st.booleans())
def test_selection_leaves_nothing_undefined(objects: list[ObjectSymbols], everything: bool) -> None:  # noqa: FBT001
    index = make_index(VARIANT, objects, [INTERFACE])
    selected = set(select_units(index, EVERYTHING if everything else required_operators(())))
    defined = {symbol for entry in objects if entry.unit in selected for symbol in entry.defined}
    needed = {symbol for entry in objects if entry.unit in selected for symbol in entry.undefined} - defined
    left = {symbol for entry in objects for symbol in entry.defined} & needed
    assert all(kernel_key(symbol) for symbol in left)
    assert not (everything and left)


REAL = [
    ("INS_41kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE", "ai.onnx:Or"),
    ("INS_47kCpuExecutionProvider_Asinh_kOnnxDomain_ver9_21EEE", "ai.onnx:Asinh"),
    ("INS_60kCpuExecutionProvider_ReduceProd_kOnnxDomain_ver1_10_int64_tEEE", "ai.onnx:ReduceProd"),
    ("INS0_49kCpuExecutionProvider_QGemm_kMSDomain_ver1_int8_tEEE", "com.microsoft:QGemm"),
    (
        "INS0_72kCpuExecutionProvider_GatherBlockQuantized_kMSDomain_ver1_Int4x2_int32_tEEE",
        "com.microsoft:GatherBlockQuantized",
    ),
    ("INS0_60kCpuExecutionProvider_ReorderInput_kMSNchwcDomain_ver1_floatEEE", "com.microsoft.nchwc:ReorderInput"),
    ("INS0_66kCpuExecutionProvider_LayerNormalization_kOnnxDomain_ver1_16_floatEEE", "ai.onnx:LayerNormalization"),
]
TAIL = "NS_16KernelCreateInfoEv"


@pytest.mark.parametrize(("symbol", "key"), REAL)
def test_real_kernels_are_read(symbol: str, key: str) -> None:
    """Symbols as zig's compiler made them of ONNX Runtime 1.21.0 give the operator as a configuration names it."""
    for start in ("_ZN11onnxruntime", "_ZN11onnxruntime7contrib", "__ZN11onnxruntime"):
        assert kernel_key(f"{start}21BuildKernelCreateInfo{symbol}{TAIL}") == key


@given(
    operator=st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}(_[A-Za-z0-9]{1,6}){0,2}", fullmatch=True),
    constant=st.sampled_from(sorted(DOMAINS)),
    version=st.sampled_from(["1", "7_12", "13_float", "1_8_int64_t", "1_Int4x2_int32_t"]),
    namespace=st.sampled_from(["NS_", "NS0_", "N12_GLOBAL__N_1", "NS_7xnnpack", "N3foo3bar", "NSt3foo", "NS1_3fooS_"]),
)
def test_every_operator_in_every_domain_is_read(operator: str, constant: str, version: str, namespace: str) -> None:
    symbol = kernel(f"kCpuExecutionProvider_{operator}_{constant}_ver{version}", namespace)
    assert kernel_key(symbol) == f"{DOMAINS[constant]}:{operator}"


@pytest.mark.parametrize(
    "symbol",
    [
        "",
        "OrtGetApiBase",
        "_ZN11onnxruntime21BuildKernelCreateInfoIvEENS_16KernelCreateInfoEv",
        "_ZN11onnxruntime21BuildKernelCreateInfoI",
        "_ZN11onnxruntime21BuildKernelCreateInfoINS_9999kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE",
        "_ZN11onnxruntime21BuildKernelCreateInfoINS_40kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE",
        kernel("kCpuExecutionProvider_Add_kSomeNewDomain_ver1"),
        kernel("kCpuExecutionProvider_Add_kOnnxDomain"),
        kernel("kCpuExecutionProvider_kOnnxDomain_ver1"),
        kernel("MyOwnKernel"),
    ],
)
def test_other_symbols_are_no_kernels(symbol: str) -> None:
    assert kernel_key(symbol) is None


@given(st.text(alphabet="NSIE_0123456789kverOnxDomaiP", max_size=60))
def test_any_rest_of_a_name_is_taken(rest: str) -> None:
    key = kernel_key("_ZN11onnxruntime21BuildKernelCreateInfoI" + rest)
    assert key is None or key.split(":")[0] in DOMAINS.values()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (
            "foo::Info foo::BuildKernelCreateInfo<foo::kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float>()",
            "ai.onnx:Relu",
        ),
        ("BuildKernelCreateInfo<a::b::kCpuExecutionProvider_FusedConv_kMSDomain_ver1>()", "com.microsoft:FusedConv"),
        ("onnxruntime::KernelCreateInfo onnxruntime::BuildKernelCreateInfo<void>()", None),
        ("onnxruntime::kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float", None),
        ("", None),
    ],
)
def test_a_demangled_name_says_the_same(name: str, key: str | None) -> None:
    assert demangled_kernel_key(name) == key
