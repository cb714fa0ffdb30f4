import dataclasses
import errno
import threading
from pathlib import Path

import pytest

from ortrim.base.cache import record_entry, watched_cache
from ortrim.compiling import translation_units
from ortrim.compiling.translation_units import (
    AVX512_UNITS,
    LARGEST_INDEX,
    IndexFound,
    UnitIndex,
    Variant,
    find_index,
    kernel_key,
    learnt_index,
    nearest_index,
    read_index,
    render_index,
    save_learnt,
    select_units,
    shipped_index,
    wide_units,
)
from ortrim.errors import ExitCode, SourcesError, StorageError
from ortrim.models.operators import parse_config
from ortrim.pins import shipped
from ortrim.pins.shipped import pin_text
from unit_samples import VARIANT, sample_index

UNKNOWN = Variant(ort_version="9.9.9", target="linux-x64", toolchain="zig", exceptions=True)
SHIPPED = sorted(path.name for path in Path(shipped.__file__).with_name("units").glob("*.json"))
CPU = "${sources}/onnxruntime/onnxruntime/core/providers/cpu"
MLAS = "${sources}/onnxruntime/onnxruntime/core/mlas/lib"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))


def index_of(variant: Variant) -> UnitIndex:
    """Return the index of the made-up library as that of a variant."""
    return dataclasses.replace(sample_index(), variant=variant)


def pin(tmp_path: Path, content: str, variant: Variant = UNKNOWN) -> None:
    """Put a file into the user's pins folder."""
    path = tmp_path / "pins" / "units" / f"{variant.stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def set_aside(variant: Variant) -> str:
    """Return why what was learnt of a variant is set aside; nothing may be taken of it."""
    found = find_index(variant)
    assert found.index is None
    assert found.note.startswith("the index of an earlier build is ignored: ")
    return found.note


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
    """Each source that ours take kernels of is compiled, under the name that the index knows it by."""
    text = pin_text(f"units/{name}")
    assert text is not None
    index = read_index(text)
    taken = wide_units(index, AVX512_UNITS)
    named = [unit for units in AVX512_UNITS.values() for unit in units]
    assert [unit for unit in named if not any(path.endswith(f"/mlas/lib/{unit}") for path in taken)] == []
    assert len(taken) < 0.2 * len(index.units)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_indices_are_canonical_and_small(name: str) -> None:
    """Each file has the bytes that `invoke pins.index` would write, under the name of its variant; none is large."""
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
    """What was learnt does not replace what is pinned."""
    save_learnt(index_of(VARIANT))
    assert find_index(VARIANT) == IndexFound(index=shipped_index(VARIANT))
    assert learnt_index(VARIANT) == IndexFound(index=index_of(VARIANT))


def test_users_own_index_replaces_the_shipped_one(tmp_path: Path) -> None:
    """As of every pin file."""
    pin(tmp_path, render_index(index_of(VARIANT)), VARIANT)
    assert find_index(VARIANT).index == index_of(VARIANT)


def test_unknown_variant_has_no_index() -> None:
    """Nothing pinned, nothing learnt: no index and nothing to say."""
    assert shipped_index(UNKNOWN) is None
    assert find_index(UNKNOWN) == IndexFound(index=None)


@pytest.mark.parametrize(
    ("version", "target", "expected"),
    [
        ("1.24.4", "linux-x64", "1.21.0-linux-x64"),
        ("1.24.4", "linux-arm64-musl", "1.21.0-linux-arm64-musl"),
        ("1.21.0", "android-arm64-v8a", "1.21.0-linux-arm64"),
    ],
)
def test_the_nearest_index_is_of_the_next_version_and_target(version: str, target: str, expected: str) -> None:
    """In this order, among those that travel with ortrim."""
    found = nearest_index(Variant(ort_version=version, target=target, toolchain="zig", exceptions=False))
    assert found is not None
    assert f"{found.variant.ort_version}-{found.variant.target}" == expected


def test_what_was_learnt_may_be_nearest(tmp_path: Path) -> None:
    """A file that is no index is passed over; in a cache that cannot be read nothing is known."""
    learnt = dataclasses.replace(UNKNOWN, target="linux-arm64")
    save_learnt(index_of(learnt)).with_name("broken.json").write_text("{")
    assert nearest_index(UNKNOWN) == index_of(learnt)


def test_learnt_index_is_found_again(tmp_path: Path) -> None:
    """What one build learnt the next one uses; a later one replaces it; nothing else is left in the cache."""
    path = save_learnt(index_of(UNKNOWN))
    save_learnt(index_of(UNKNOWN))
    assert path == tmp_path / "cache" / "units" / "onnxruntime-9.9.9-linux-x64-zig-exceptions.json"
    assert find_index(UNKNOWN) == IndexFound(index=index_of(UNKNOWN))
    beside = {path.with_name(f".{path.name}.{kind}") for kind in ("record", "lock")}
    assert set(path.parent.iterdir()) == {path, *beside}


def test_an_index_may_be_read_while_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another build reads between its file and the record of that: it waits, and takes neither for damage."""
    save_learnt(index_of(UNKNOWN))
    newer = dataclasses.replace(index_of(UNKNOWN), kernels=())
    found: list[IndexFound] = []
    reader = threading.Thread(target=lambda: found.append(learnt_index(UNKNOWN)))

    def slowly(path: Path) -> None:
        reader.start()
        reader.join(0.3)
        record_entry(path)

    monkeypatch.setattr(translation_units, "record_entry", slowly)
    with watched_cache(lambda _: None) as watch:
        save_learnt(newer)
        reader.join()
    assert found == [IndexFound(index=newer)]
    assert find_index(UNKNOWN) == IndexFound(index=newer)
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
    assert find_index(UNKNOWN) == IndexFound(index=index_of(UNKNOWN))


def test_a_learnt_index_that_is_not_what_was_learnt_is_none() -> None:
    """One character of it would decide what is compiled."""
    path = save_learnt(index_of(UNKNOWN))
    path.write_text(path.read_text().replace("generated_source.c", "generated_source.d"))
    assert find_index(UNKNOWN) == IndexFound(index=None)
    assert not path.exists()


def test_hostile_learnt_index_is_set_aside() -> None:
    """An index whose paths CMake would read as more than paths is not used."""
    path = save_learnt(index_of(UNKNOWN))
    path.write_text(path.read_text().replace("generated_source.c", "a;execute_process(COMMAND id)"))
    record_entry(path)
    assert "units.0.path" in set_aside(UNKNOWN)


def test_learnt_index_of_another_variant_is_set_aside() -> None:
    """A file that was renamed or copied does not pass for another variant's."""
    path = save_learnt(index_of(UNKNOWN))
    path.write_text(render_index(index_of(VARIANT)))
    record_entry(path)
    assert f"it is the index of {VARIANT.stem}" in set_aside(UNKNOWN)


def test_learnt_index_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    """A folder in its place, or a cache folder that cannot be made, is as if nothing was learnt."""
    folder = tmp_path / "cache" / "units" / f"{UNKNOWN.stem}.json"
    folder.mkdir(parents=True)
    assert str(folder) in set_aside(UNKNOWN)
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.write_text("in the way")
    assert str(folder.parent) in set_aside(UNKNOWN)


def test_index_that_cannot_be_kept_is_a_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported; the older index stays, and nothing is left beside it."""
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
    with pytest.raises(SourcesError) as caught:
        find_index(UNKNOWN)
    assert (caught.value.code, caught.value.exit_code) == ("bad-unit-index", ExitCode.SOURCES)
    assert caught.value.where == f"units/{UNKNOWN.stem}.json"
    assert "invoke pins.index" in caught.value.hint


def test_shipped_file_that_is_not_text_is_a_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation with a damaged file says so."""
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / f"{UNKNOWN.stem}.json").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(shipped, "files", lambda _package: tmp_path)
    with pytest.raises(SourcesError) as caught:
        shipped_index(UNKNOWN)
    assert caught.value.code == "bad-unit-index"
