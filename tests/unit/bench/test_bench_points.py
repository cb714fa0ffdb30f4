"""The words of a sweep."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_samples import BASE, FULL_BASE, sample_model, session
from ortrim.bench.points import (
    CHOICES,
    EACH,
    MOST_POINTS,
    axis_from,
    name_of,
    session_lines,
    settings_at,
    sweep_points,
    turns,
    value_of,
    values_of,
    with_value,
)
from ortrim.buildspec.buildspec import DIRECTLY, IN_PLACE, NO_PREPACKING
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


def test_without_words_there_is_the_default_alone() -> None:
    assert sweep_points(BASE, (), cores=4, full=False) == (BASE,)


def test_each_changes_every_setting_alone() -> None:
    """Spinning comes with threads that can spin; levels are of models in ONNX format."""
    names = [point.name for point in sweep_points(BASE, (EACH,), cores=2, full=False)]
    assert names == [
        "default", "threads=2", "inter_op_threads=2", "threads=2 spinning=true", "load=bytes", "load=file",
        "in_place=false",
        "prepacking=false", "arena=false", "memory_pattern=false",
    ]  # fmt: skip
    full = [point.name for point in sweep_points(FULL_BASE, (EACH,), cores=2, full=True)]
    assert {"level=none", "level=basic", "level=extended", "load=map"} <= set(full)
    assert not any("in_place" in name for name in full)


def test_spinning_is_varied_alone_where_there_are_threads() -> None:
    base = with_value(BASE, "threads", 4)
    names = [point.name for point in sweep_points(base, (EACH,), cores=4, full=False)]
    assert "spinning=true" in names


def test_named_settings_are_combined() -> None:
    points = sweep_points(BASE, ("threads=1,2", "spinning", EACH), cores=4, full=False)
    names = [point.name for point in points]
    assert names[0] == "default"
    assert {"threads=2", "spinning=true", "threads=2 spinning=true"} <= set(names)
    assert len(names) == len(set(names))
    assert all(value_of(point, name) is not None for point in points for name in CHOICES if name != "level")


def test_levels_mean_nothing_to_a_converted_model() -> None:
    error = refused(UsageError, sweep_points, BASE, ("level=none",), cores=4, full=False)
    assert error.code == "bad-option"
    assert "--library wheel" in error.hint


def test_too_many_points_are_refused() -> None:
    words = ("threads=1,2,3,4,5,6,7,8", "inter_op_threads=1,2,3,4", "arena", "memory_pattern")
    error = refused(UsageError, sweep_points, BASE, words, cores=4, full=False)
    assert error.code == "sweep-too-large"
    assert str(MOST_POINTS) in error.what


def test_rounds_begin_with_the_next_point() -> None:
    """Each round has every point, loaded alone and with each case, one right after the other."""
    model = sample_model("threads=1,2", "arena")
    rounds = [[(point.name, case) for point, case in turns(model, number)] for number in range(5)]
    first = [each[0][0] for each in rounds]
    assert first == ["default", "arena=false", "threads=2 arena=false", "threads=2", "default"]
    assert all(Counter(each) == Counter(rounds[0]) for each in rounds)
    assert [case for _, case in rounds[0][:3]] == ["", "one", "two"]


def test_a_converted_model_has_what_its_package_has() -> None:
    settings = settings_at(BASE, style="fixed", reads_in_place=True, onnx=False)
    assert (settings.load, settings.optimization_level) == ("map", "none")
    assert settings.configuration == (DIRECTLY, IN_PLACE)


def test_a_model_in_onnx_format_has_its_level_and_no_word_about_bytes() -> None:
    point = with_value(with_value(FULL_BASE, "level", "basic"), "prepacking", value=False)
    settings = settings_at(with_value(point, "load", "map"), style="fixed", reads_in_place=True, onnx=True)
    assert (settings.load, settings.optimization_level) == ("map", "basic")
    assert settings.configuration == (NO_PREPACKING,)
