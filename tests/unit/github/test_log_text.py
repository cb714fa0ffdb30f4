"""The part of a job's log that says why a step failed."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from ortrim.github.runs import EXCERPT_LINES, LONGEST_LINE, excerpt


def at(second: int, text: str) -> str:
    return f"2026-11-21T12:00:{second:02d}.1234567Z {text}"


def test_the_excerpt_ends_at_the_last_error() -> None:
    """What the step wrote afterwards matters less."""
    lines = [at(1, "one"), at(2, "##[error]first"), at(3, "two"), at(4, "##[error]Process completed"), at(5, "bye")]
    assert excerpt(lines) == ("one", "error: first", "two", "error: Process completed")


def test_only_the_steps_own_time_counts() -> None:
    """Steps before and after write into the same log; times are compared to the second, ends included."""
    lines = [at(1, "##[error]early"), at(2, "a"), at(3, "b"), at(4, "c"), at(5, "##[error]late")]
    assert excerpt(lines, "2026-11-21T12:00:02Z", "2026-11-21T12:00:04Z") == ("a", "b", "c")


def test_a_line_without_a_time_belongs_to_the_one_before() -> None:
    """A message of several lines has the time once."""
    lines = ["stray", at(1, "early"), "its rest", at(2, "a"), "its rest"]
    assert excerpt(lines, "2026-11-21T12:00:02Z") == ("a", "its rest")
    assert excerpt(lines)[:2] == ("stray", "early")


def test_times_colours_and_marks_are_left_out() -> None:
    """The first line has a byte order mark."""
    assert excerpt(["\ufeff" + at(1, "\x1b[31;1mred\x1b[0m \x1b[Kend  ")]) == ("red end",)


def test_a_log_of_any_length_needs_little_memory() -> None:
    """The excerpt is bounded in lines and in their length, however long the log goes on."""

    def endless() -> Iterator[str]:
        yield from (at(1, f"line {number}") for number in range(20_000))
        yield at(2, "x" * 100_000)

    found = excerpt(endless())
    assert len(found) == EXCERPT_LINES
    assert found[-2:] == ("line 19999", "x" * LONGEST_LINE)


def test_an_empty_log_has_no_excerpt() -> None:
    assert excerpt([]) == ()
    assert excerpt([at(1, "x")], "2026-11-21T13:00:00Z") == ()


@given(st.lists(st.text(max_size=80), max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_log(lines: list[str], started: str, completed: str) -> None:
    found = excerpt(lines, started, completed)
    assert len(found) <= EXCERPT_LINES
    assert all(len(line) <= LONGEST_LINE for line in found)
