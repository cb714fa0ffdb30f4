"""Which points a sweep has, and in which order they are measured."""

from collections import Counter

from bench_samples import BASE, FULL_BASE, sample_model
from ortrim.bench.points import CHOICES, EACH, MOST_POINTS, sweep_points, turns, value_of, with_value
from ortrim.errors import UsageError
from refusing import refused


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
