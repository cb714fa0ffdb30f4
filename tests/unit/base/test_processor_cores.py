import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.processor_cores import MOST_CORES, cores_text, read_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [("4-7", (4, 5, 6, 7)), ("0", (0,)), ("7,4-5,5", (4, 5, 7)), (" 0-1\n", (0, 1)), ("1023", (1023,))],
)
def test_lists_as_linux_writes_them(text: str, cores: tuple[int, ...]) -> None:
    assert read_cores(text) == cores


@pytest.mark.parametrize(
    "text", ["", ",", "4-", "-4", "7-4", "4--7", "f0", "0x3", "1024", "0-9999", "4;7", "4,", "٤", "1e3", "4-7-9", "all"]
)
def test_what_is_no_list(text: str) -> None:
    """Nothing is guessed, and no number is beyond any machine's."""
    assert read_cores(text) == ()


@given(st.sets(st.integers(0, MOST_CORES - 1), min_size=1))
def test_a_written_list_is_read_again(cores: set[int]) -> None:
    assert read_cores(cores_text(list(cores))) == tuple(sorted(cores))


@given(st.text(alphabet="0123456789,- ", max_size=20))
def test_no_text_is_more_than_no_list(text: str) -> None:
    found = read_cores(text)
    assert list(found) == sorted(set(found))
    assert all(0 <= core < MOST_CORES for core in found)


def test_ranges_are_written_as_ranges() -> None:
    assert cores_text((7, 4, 5, 6, 0)) == "0,4-7"
    assert cores_text(()) == ""
