"""Who is measured, in which order, and what is measured anew."""

from dataclasses import replace

import pytest
from footprint.contenders import UPSTREAM, WHEEL, chosen_profiles

from footprint_samples import NAMES, contest
from ortrim.errors import ExitCode, UsageError
from ortrim.spec.build_options import PROFILE_NAMES
from ortrim.verify.devices.device import Repetition


def test_each_contender_begins_in_turn() -> None:
    """And every round has all of them, in the same circle."""
    orders = [[each.name for each in contest().order(number)] for number in range(1, 6)]
    assert [order[0] for order in orders] == [*NAMES, NAMES[0]]
    assert all(sorted(order) == sorted(NAMES) for order in orders)
    assert orders[1] == [*NAMES[1:], NAMES[0]]


def test_the_same_contest_has_the_same_key() -> None:
    """So that what was measured before is left out."""
    assert contest().key == contest().key


def test_whatever_enters_a_measurement_changes_the_key() -> None:
    """Ratios of rounds with another library, model, case, runner or repetition would say nothing."""
    one = contest()
    first, *others = one.contenders
    changed = [
        contest(balanced="other"),
        replace(one, runner_sha256="other"),
        replace(one, cases=one.cases[:1]),
        replace(one, repetition=Repetition(runs=1)),
        replace(one, contenders=(replace(first, model_sha256="other"), *others)),
        replace(one, contenders=(replace(first, session=replace(first.session, threads=2)), *others)),
        replace(one, contenders=tuple(others)),
    ]
    assert len({each.key for each in (one, *changed)}) == len(changed) + 1


def test_a_process_has_the_contenders_library_model_and_settings() -> None:
    """And the cases and the runner of all."""
    one = contest()
    request = one.request(one.contenders[0])
    assert (request.library.name, request.model.name) == (f"{WHEEL}.so", "model.onnx")
    assert (request.runner, request.cases, request.repetition) == (one.runner, one.cases, one.repetition)


@pytest.mark.parametrize("words", ["", " , "])
def test_without_names_every_profile_is_built(words: str) -> None:
    """Upstream's recipe first: it is what the others are beside."""
    chosen = chosen_profiles(words)
    assert chosen[0] == UPSTREAM
    assert sorted(chosen) == sorted(PROFILE_NAMES)


@pytest.mark.parametrize(
    ("words", "profiles"),
    [
        ("balanced", ("balanced",)),
        ("balanced,upstream", (UPSTREAM, "balanced")),
        (" upstream , size ", (UPSTREAM, "size")),
    ],
)
def test_those_that_are_named_are_built(words: str, profiles: tuple[str, ...]) -> None:
    """And no others: upstream's recipe takes ten times as long."""
    assert chosen_profiles(words) == profiles


@pytest.mark.parametrize("words", ["smallest", "balanced,Balanced", "-O2"])
def test_a_profile_that_does_not_exist_is_refused(words: str) -> None:
    """With those that there are."""
    with pytest.raises(UsageError) as caught:
        chosen_profiles(words)
    assert (caught.value.code, caught.value.exit_code) == ("bad-option", ExitCode.USAGE)
    assert all(name in caught.value.hint for name in PROFILE_NAMES)
