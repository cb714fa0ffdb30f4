"""The words of a sweep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_samples import BASE, FULL_BASE, session
from ortrim.bench.points import CHOICES, axis_from, name_of, session_lines, values_of, with_value
from ortrim.errors import UsageError
from refusing import refused


def test_an_axis_has_values_of_its_own_or_those_given() -> None:
    """Threads go up to the cores; a value that is given twice counts once."""
    assert axis_from("threads", 6) == ("threads", (1, 2, 4, 6))
    assert axis_from("threads", 1) == ("threads", (1,))
    assert axis_from("threads=2,1,2", 6) == ("threads", (2, 1))
    assert axis_from("spinning", 2) == ("spinning", (False, True))
    assert axis_from("load=map, file", 2) == ("load", ("map", "file"))
    assert axis_from("level=none", 2) == ("level", ("none",))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("thread", "did you mean 'threads'?"), ("", "choose each"), ("threads=0", "from 1 to 1024"),
        ("threads=1025", "from 1 to 1024"), ("threads=true", "from 1 to 1024"), ("threads=\u0663", "from 1 to 1024"),
        ("threads=1,,2", "from 1 to 1024"), ("arena=1", "false, true"), ("load=disk", "map, bytes, file"),
        ("level=", "none, basic"), ("x" * 1000, "choose each"),
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_refused(word: str, hint: str) -> None:
    error = refused(UsageError, axis_from, word, 2)
    assert error.code == "bad-option"
    assert hint in error.hint
    assert len(error.what) < 200


@given(st.text(max_size=40))
def test_any_word_is_an_axis_or_a_diagnostic(word: str) -> None:
    try:
        name, values = axis_from(word, 4)
    except UsageError:
        return
    assert name in CHOICES
    assert all(with_value(BASE, name, value) for value in values)


def test_a_point_is_named_by_what_differs() -> None:
    """In the words that ask for it; the same as the default is the default."""
    point = with_value(with_value(FULL_BASE, "threads", 2), "level", "basic")
    assert name_of(point, FULL_BASE) == "threads=2 level=basic"
    assert name_of(with_value(BASE, "arena", value=True), BASE) == "default"


def test_a_point_as_lines_of_a_buildspec() -> None:
    point = with_value(with_value(BASE, "arena", value=False), "load", "bytes")
    assert session_lines(point, BASE) == ('load = "bytes"', "arena = false")
    assert session_lines(with_value(FULL_BASE, "level", "none"), FULL_BASE) == ()
    assert point.session == session(arena=False, load="bytes")


def test_every_axis_has_values() -> None:
    assert all(len(values_of(name, 4)) > 1 for name in CHOICES)
