import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.errors import BinaryError, ToolError
from ortrim.size import accounting
from ortrim.size.accounting import (
    GROUPINGS,
    LINKED,
    NO_MAP,
    STRIPPED,
    Accounting,
    Leaf,
    Piece,
    account,
    demangled,
    divided,
    shares,
)
from refusing import refused

OURS = Path(__file__).with_name("data")
LIBRARIES = Path(__file__).parents[1] / "binaries" / "data"
PAIRS = [
    (OURS / "folded.so", OURS / "folded.map"),
    (OURS / "fewer.so", OURS / "fewer.map"),
    (OURS / "lto.so", OURS / "lto.map"),
    (OURS / "thin.so", OURS / "thin.map"),
    (OURS / "gnu.so", None),
    (OURS / "unstripped.so", None),
    (LIBRARIES / "tiny.so", LIBRARIES / "tiny.map"),
    (LIBRARIES / "tiny.so", None),
    (LIBRARIES / "android" / "armeabi-v7a-libonnxruntime.so", None),
    (LIBRARIES / "android" / "x86-libonnxruntime.so", None),
    (LIBRARIES / "android" / "unstripped.so", None),
]


def leaf(accounting: Accounting, symbol: str) -> Leaf:
    (found,) = (each for each in accounting.leaves if symbol in each.symbol)
    return found


@pytest.mark.parametrize(("library", "link_map"), PAIRS)
def test_every_byte_of_a_file_is_in_exactly_one_leaf(library: Path, link_map: Path | None) -> None:
    """Headers, tables, padding and code sum to the file's real size, by every grouping."""
    accounting = account(library, link_map)
    size = library.stat().st_size
    assert accounting.file_bytes == size
    assert all(each.size_bytes > 0 for each in accounting.leaves)
    for key in GROUPINGS.values():
        assert sum(share.size_bytes for share in shares(accounting.leaves, key)) == size


def test_what_a_map_says_of_a_library() -> None:
    """Object files, symbols, folded names, merged strings, the linker's tables and the headers are told apart."""
    accounting = account(OURS / "folded.so", OURS / "folded.map")
    sizes = {share.name[0]: share.size_bytes for share in shares(accounting.leaves, GROUPINGS["component"])}
    assert sizes == {
        "ELF headers": 64 + 8 * 56 + 15 * 64,
        "dynamic symbols": 0x150 + 0x70 + 0x241,
        "providers": 383,
        "session": 344,
        "dynamic linking": 0x90 + 8,
        "symbol table": 0x78,
        "padding": 41,
        "string literals": 0x20,
        "relocation tables": 0x18,
        "notes": 0x13,
        "constants": 4,
    }
    threads = leaf(accounting, "MlasThreads")
    assert (threads.file, threads.folded, threads.size_bytes) == (
        "libonnxruntime_session.a(common.cc.o)",
        ("MlasWorkers",),
        11,
    )
    assert accounting.notes == ()
    assert accounting.zeroed_bytes == 400


def test_kernels_have_their_operators() -> None:
    """A file with one registered operator is that operator's; of one with two, what names neither serves several."""
    leaves = account(OURS / "folded.so", OURS / "folded.map").leaves
    of = {each.symbol: each.operator for each in leaves if each.section == ".text" and each.file}
    assert of["onnxruntime::relu(float const*, int)"] == "Relu"
    assert of["onnxruntime::Add<float>::Compute(float const*, unsigned long) const"] == "Add"
    assert of["onnxruntime::Mul<float>::Compute(float const*, unsigned long) const"] == "Mul"
    assert of["onnxruntime::shared_by_both(int)"] == "several in kernels.cc.o"
    assert of["OrtText"] == ""


def test_code_made_at_link_time_is_told_by_its_names() -> None:
    """With one object for all files the namespaces say the components, and a note says that they do."""
    accounting = account(OURS / "lto.so", OURS / "lto.map")
    assert {leaf(accounting, name).component for name in ("MlasThreads", "MlasWorkers")} == {"mlas"}
    assert leaf(accounting, "OrtText").component == "c api"
    assert leaf(accounting, "shared_by_both").component == "onnxruntime"
    assert leaf(accounting, "shared_by_both").operator == ""
    assert leaf(accounting, "BuildKernelCreateInfo<onnxruntime::kCpuExecutionProvider_Add").operator == "Add"
    (note,) = accounting.notes
    assert note.endswith(LINKED)


def test_thin_link_time_optimisation_keeps_the_files() -> None:
    accounting = account(OURS / "thin.so", OURS / "thin.map")
    assert leaf(accounting, "OrtText").file == "libonnxruntime_session.a(common.cc.o)"
    assert accounting.notes == ()


def test_a_library_with_symbols_needs_no_map() -> None:
    """Its functions are demangled, what has no symbol is named by its section, and a note says what is missing."""
    accounting = account(OURS / "unstripped.so", None)
    assert leaf(accounting, "onnxruntime::relu(float const*, int)").component == "onnxruntime"
    assert leaf(accounting, ".eh_frame").component == "unwind tables"
    assert accounting.notes[0] == NO_MAP
    assert not accounting.mapped


def test_a_stripped_library_without_a_map_is_its_sections() -> None:
    """Code, data and tables are all that can be told, and it is said so."""
    accounting = account(OURS / "folded.so", None)
    of = {each.section: each.component for each in accounting.leaves}
    assert (of[".text"], of[".data"], of[".rodata"]) == ("code", "data", "read-only data")
    assert accounting.notes == (NO_MAP, STRIPPED)


def test_a_map_of_another_link_is_refused() -> None:
    assert refused(BinaryError, account, OURS / "folded.so", OURS / "fewer.map").code == "link-map-mismatch"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library", b"\x7fELF" + bytes(60)])
def test_what_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    library = tmp_path / "a.so"
    library.write_bytes(content)
    assert refused(BinaryError, account, library, None).code in {"not-elf", "corrupt-elf", "not-a-library"}


NUMBER = st.tuples(st.integers(min_value=0, max_value=4000), st.integers(min_value=0, max_value=2**64 - 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBER, max_size=3), st.sampled_from(["folded", "gnu", "unstripped"]))
def test_a_damaged_library_is_refused_or_accounted_for(changes: list[tuple[int, int]], name: str) -> None:
    """Whatever its tables claim, either a diagnostic says so or the leaves sum to the file."""
    data = bytearray((OURS / f"{name}.so").read_bytes())
    for place, value in changes:
        struct.pack_into("<Q", data, min(place, len(data) - 8), value)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "a.so"
        library.write_bytes(data)
        try:
            accounting = account(library, None)
        except BinaryError:
            return
    assert sum(each.size_bytes for each in accounting.leaves) == len(data)


LINES = (OURS / "folded.map").read_text().split("\n")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_map_is_refused_or_sums_up(data: st.DataObject) -> None:
    changed = list(LINES)
    for _ in range(data.draw(st.integers(min_value=1, max_value=6))):
        at = data.draw(st.integers(min_value=0, max_value=len(changed) - 1))
        match data.draw(st.sampled_from(["cut", "repeat", "drop", "number"])):
            case "cut":
                changed[at] = changed[at][: data.draw(st.integers(min_value=0, max_value=80))]
            case "repeat":
                changed.insert(at, changed[data.draw(st.integers(min_value=0, max_value=len(changed) - 1))])
            case "drop":
                changed[at] = ""
            case _:
                changed[at] = changed[at].replace("1", data.draw(st.sampled_from(["f", "0", "2", "11"])), 1)
    with tempfile.TemporaryDirectory() as folder:
        link_map = Path(folder) / "link.map"
        link_map.write_text("\n".join(changed))
        try:
            accounting = account(OURS / "folded.so", link_map)
        except BinaryError as error:
            assert error.code in {"not-a-link-map", "link-map-mismatch"}  # noqa: PT017 - either is right
            return
    assert sum(each.size_bytes for each in accounting.leaves) == (OURS / "folded.so").stat().st_size


def test_a_truncated_map_is_refused(tmp_path: Path) -> None:
    """A map that ends in the middle of `.text` lacks sections that the library has."""
    text = (OURS / "folded.map").read_text()
    link_map = tmp_path / "link.map"
    link_map.write_text(text[: text.index("MlasThreads")])
    assert refused(BinaryError, account, OURS / "folded.so", link_map).code == "link-map-mismatch"


PLACES = st.integers(min_value=-50, max_value=150)
CLAIMS = st.lists(
    st.builds(lambda start, size, owner: Piece(start=start, end=start + size, owner=owner), PLACES, PLACES, st.text())
)


@given(CLAIMS, st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=60))
def test_every_byte_has_exactly_one_owner(claims: list[Piece[str]], start: int, size: int) -> None:
    """Whatever is claimed, the pieces follow each other without gap or overlap, and none is empty."""
    pieces = list(divided(start, start + size, claims))
    assert sum(piece.size_bytes for piece in pieces) == size
    assert all(piece.size_bytes > 0 for piece in pieces)
    assert [piece.start for piece in pieces] == [start, *(piece.end for piece in pieces)][: len(pieces)]
    for piece in pieces:
        inside = [claim for claim in claims if claim.start <= piece.start and piece.end <= claim.end]
        assert piece.owner in [claim.owner for claim in inside] if piece.owner is not None else True


def test_the_first_claim_has_what_two_claim() -> None:
    """Of overlapping claims the earlier one wins, of those that begin together the longer; the rest is nobody's."""
    claims = [
        Piece(start=4, end=8, owner="late"),
        Piece(start=2, end=6, owner="early"),
        Piece(start=2, end=3, owner="short"),
    ]
    assert [(piece.size_bytes, piece.owner) for piece in divided(0, 10, claims)] == [
        (2, None),
        (4, "early"),
        (2, "late"),
        (2, None),
    ]


def test_names_of_cxx_are_demangled_and_others_left() -> None:
    """Only names that the compiler mangled are in the answer; one that is cut short is as it was."""
    names = ["_ZN11onnxruntime4reluEPKfi", "main", "_Zbroken", "_ZN3foo\n3barEv"]
    assert demangled(names) == {
        "_ZN11onnxruntime4reluEPKfi": "onnxruntime::relu(float const*, int)",
        "_Zbroken": "_Zbroken",
    }
    assert demangled([]) == {}


def test_a_long_name_is_left_as_it_is() -> None:
    """A name longer than any compiler writes is not given to the demangler."""
    name = "_Z" + "1a" * 10_001
    assert demangled([name]) == {name: name[:20_000]}


def test_a_demangler_that_does_not_answer_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout, a crash or a wrong number of lines leave the names as they are."""

    def times_out(*_: Any, **__: Any) -> None:
        raise ToolError("tool-timeout", "did not end")

    monkeypatch.setattr(accounting, "run", times_out)
    assert demangled(["_Z1fv"]) == {}


def test_a_crash_of_the_demangler_is_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "demangle.py"
    script.write_text("import os\nprint('f()', flush=True)\nos.abort()\n")
    monkeypatch.setattr(accounting, "SCRIPT", script)
    assert demangled(["_Z1fv"]) == {}
    script.write_text("print('one')\nprint('two')\n")
    assert demangled(["_Z1fv"]) == {}
