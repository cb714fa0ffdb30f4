"""The same model in ORT format has the same bytes, whatever order the converter wrote it in."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import ModelError
from ortrim.models.ort_format import Damaged, Table, canonical, root_of
from refusing import refused

DATA = Path(__file__).parent / "data"
FIRST = (DATA / "branching_first.ort").read_bytes()
SECOND = (DATA / "branching_second.ort").read_bytes()

TypeStrings = list[tuple[str, list[tuple[str, list[tuple[int, int]]]]]]


def type_strings(data: bytes) -> TypeStrings:
    """Return the kernel type strings of a model: what the rewriting lays out anew."""
    resolver = root_of(data, "").table(3)
    assert resolver is not None
    return [(operator.text(0), [_arguments(entry) for entry in operator.tables(1)]) for operator in resolver.tables(0)]


def _arguments(entry: Table) -> tuple[str, list[tuple[int, int]]]:
    return entry.text(0), [(argument.integer(0, "b"), argument.integer(1, "I")) for argument in entry.tables(1)]


def test_two_conversions_become_the_same_bytes() -> None:
    assert FIRST != SECOND
    assert canonical(FIRST) == canonical(SECOND)


def test_nothing_is_lost() -> None:
    """Version and kernel type strings stay as they were, in their order."""
    rewritten = canonical(FIRST)
    assert type_strings(rewritten) == type_strings(FIRST)
    assert len(type_strings(rewritten)) == 8
    assert root_of(rewritten, "").text(0) == root_of(FIRST, "").text(0) == "6"


def test_the_model_itself_is_not_touched() -> None:
    before, after = root_of(FIRST, "").table(1), root_of(canonical(FIRST), "").table(1)
    assert before is not None
    assert after is not None
    assert (before.position - after.position) % 64 == 0
    assert FIRST[before.position :] == after.data[after.position :]


def test_rewriting_again_changes_nothing() -> None:
    """A canonical file is its own canonical file."""
    assert canonical(canonical(FIRST)) == canonical(FIRST)


def test_other_files_are_refused() -> None:
    assert refused(ModelError, canonical, b"\0" * 100).code == "not-ort"


@given(st.integers(0, len(FIRST) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_files_end_in_one_error(position: int, junk: bytes) -> None:
    damaged = FIRST[:position] + junk + FIRST[position + len(junk) :]
    try:
        canonical(damaged)
    except Damaged:
        pass
    except ModelError as error:
        assert error.code == "not-ort"  # noqa: PT017 - one of three right outcomes


@given(st.integers(8, len(FIRST) - 1))
def test_truncated_files_end_in_one_error(length: int) -> None:
    try:
        canonical(FIRST[:length])
    except Damaged:
        return
    assert length > len(FIRST) // 4
