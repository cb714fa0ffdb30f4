"""The cases: their names, their order, what is asked for."""

import pytest
from build_time.cases import (
    CASES,
    POINTS,
    Recipe,
    Start,
    chosen_cases,
    graph_cases,
    operators_in,
    schedule,
)

from ortrim.errors import UsageError


def test_without_names_all_cases_are_chosen() -> None:
    """All of it is what a release is measured with."""
    assert chosen_cases("") == CASES
    assert len({case.name for case in CASES}) == len(CASES)


def test_names_choose_cases_in_the_order_in_which_they_are_measured() -> None:
    """`cold-cache` makes what later cases start from, however the names are ordered."""
    assert [case.name for case in chosen_cases(" three-more, upstream ,,")] == ["upstream", "three-more"]


@pytest.mark.parametrize("words", ["nothing", "upstream,nothing", "Upstream", "up stream", "operators-5"])
def test_an_unknown_name_is_refused_with_those_there_are(words: str) -> None:
    """A misspelt case must not silently measure less."""
    with pytest.raises(UsageError) as caught:
        chosen_cases(words)
    assert (caught.value.code, caught.value.where) == ("bad-option", "--cases")
    assert "three-more-elsewhere" in caught.value.hint


def test_rounds_interleave_the_cases() -> None:
    """Whatever slows the machine down for a while slows both sides of a ratio."""
    planned = [(number, case.name) for number, case in schedule(chosen_cases("upstream,ortrim,unpruned"), 2)]
    assert planned == [(1, "upstream"), (1, "ortrim"), (1, "unpruned"), (2, "upstream"), (2, "ortrim")]


def test_the_goals_are_the_issues() -> None:
    """Issue 3's table."""
    goals = {case.name: (case.goal_ratio, case.goal_seconds) for case in CASES}
    assert goals["ortrim"] == (0.25, None)
    assert goals["three-more"] == goals["three-more-elsewhere"] == (0.05, 60)
    assert goals["switch-back"] == (None, 10)
    assert goals["nothing-changed"] == (None, 2)


def test_what_is_compared_with_upstream_has_no_compiler_cache_either() -> None:
    """The ratio of clean builds is one of work, not of luck."""
    for name in ("upstream", "ortrim", "unpruned"):
        (case,) = chosen_cases(name)
        assert (case.cached, case.start) == (False, Start.EMPTY)


def test_the_graph_grows_from_one_operator_to_all() -> None:
    """Each point is a clean build without compiler cache."""
    cases = graph_cases(253)
    assert [case.first for case in cases] == [*POINTS, 253]
    assert [operators_in(case.name) for case in cases] == [*POINTS, 253]
    assert {(case.recipe, case.cached, case.start) for case in cases} == {(Recipe.PRUNED, False, Start.EMPTY)}


def test_a_short_list_has_fewer_points() -> None:
    """No number stands twice."""
    assert [case.first for case in graph_cases(20)] == [1, 20]
    assert [case.first for case in graph_cases(7)] == [1, 7]


@pytest.mark.parametrize("name", ["upstream", "operators-", "operators-x", "operators-5 ", "x-operators-5"])
def test_other_cases_are_no_points_of_the_graph(name: str) -> None:
    """A record may hold anything."""
    assert operators_in(name) is None
