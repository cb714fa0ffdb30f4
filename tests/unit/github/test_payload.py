"""A plan as one input of a dispatch."""

import base64
import json
import lzma
import re
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operator_strategies import required_sets
from ortrim.base.json import to_canonical_json, to_data
from ortrim.build.plan import BuildPlan, digest
from ortrim.errors import ExitCode, PlanError
from ortrim.github.dispatch import LARGEST_PLAN, MOST_LETTERS, MOST_OUTPUT_LETTERS, decode_plan, encode_plan
from sample_plans import sample_plan, sample_target

PLAN = sample_plan()
TEXT = encode_plan(PLAN)


def packed(content: bytes, **options: Any) -> str:
    """Return bytes as a text of the right form, whatever they are."""
    return base64.urlsafe_b64encode(lzma.compress(content, **options)).rstrip(b"=").decode()


def refused(text: str, reference: str) -> PlanError:
    """Decode, which must fail."""
    with pytest.raises(PlanError) as caught:
        decode_plan(text)
    assert caught.value.code == reference
    assert caught.value.exit_code == ExitCode.PLAN
    assert caught.value.__cause__ is None
    return caught.value


def outcome(text: str) -> BuildPlan | str:
    """Decode; return the plan or the reference of the diagnostic."""
    try:
        return decode_plan(text)
    except PlanError as error:
        return error.code


def test_a_plan_comes_back_as_it_was() -> None:
    """With the same digest, which names its output folder on both sides."""
    assert decode_plan(TEXT) == PLAN
    assert digest(decode_plan(TEXT)) == digest(PLAN)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(required_sets)
def test_any_operators_come_back(operators: Any) -> None:
    """Whatever a plan asks for, the text is made of safe characters and gives the plan back."""
    plan = sample_plan(operators=operators)
    text = encode_plan(plan)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert decode_plan(text) == plan


def test_the_same_plan_gives_the_same_text() -> None:
    """So that a dispatch can be compared with another."""
    assert encode_plan(sample_plan()) == TEXT
    assert encode_plan(replace(PLAN, spec_name="other")) != TEXT


def test_a_plan_of_many_targets_fits() -> None:
    """What targets have in common is written once."""
    names = ("linux-x64", "linux-arm64", "android-arm64-v8a", "android-armeabi-v7a", "android-x86", "android-x86_64")
    many = sample_plan(selected=tuple(sample_target(name) for name in names))
    assert len(encode_plan(many)) < 2.5 * len(TEXT)


def test_a_plan_that_does_not_fit_is_refused() -> None:
    """Before it is sent; the hint says how to make it smaller."""
    job = replace(PLAN.targets[0].job, operator_config=str([hash((7, n)) for n in range(6000)]))
    large = replace(PLAN, targets=(replace(PLAN.targets[0], job=job),))
    with pytest.raises(PlanError) as caught:
        encode_plan(large)
    assert caught.value.code == "plan-too-large"
    assert decode_plan(encode_plan(large, most_letters=MOST_OUTPUT_LETTERS)) == large
    assert "--target" in caught.value.hint


def test_a_text_longer_than_any_dispatch_is_not_even_unpacked() -> None:
    """GitHub would not have carried it."""
    refused("A" * (MOST_OUTPUT_LETTERS + 1), "plan-too-large")


def test_a_bomb_does_not_go_off() -> None:
    """It is unpacked no further than a plan may be, in memory to match."""
    bomb = packed(b" " * (64 << 20), preset=0)
    assert len(bomb) < MOST_LETTERS
    tracemalloc.start()
    refused(bomb, "plan-too-large")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LARGEST_PLAN


def test_a_dictionary_without_bounds_is_refused() -> None:
    """The decoder would set aside what the stream's header claims."""
    greedy = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    refused(packed(b"{}", filters=greedy), "plan-damaged")


@pytest.mark.parametrize(
    "text",
    [
        "", "=", "A", "not base64!", TEXT + "\n", TEXT[:-5], TEXT + "AAAA", "AAAA" + TEXT, TEXT + TEXT, TEXT + "ä",
        TEXT.replace("-", "+").replace("_", "/") + "+", packed(b"{}", format=lzma.FORMAT_ALONE),
        base64.urlsafe_b64encode(to_canonical_json(PLAN).encode()[:900]).decode(),
    ],
)  # fmt: skip
def test_what_is_no_such_text_is_refused(text: str) -> None:
    """Cut short, with something added, of other characters or another packing."""
    refused(text, "plan-damaged")


@given(st.integers(0, len(TEXT) - 1), st.sampled_from("AZaz09-_"))
def test_a_changed_character_is_noticed(place: int, character: str) -> None:
    """The checksum in the stream tells; a change that it cannot see changes nothing."""
    changed = TEXT[:place] + character + TEXT[place + 1 :]
    assert outcome(changed) in (PLAN, "plan-damaged", "plan-other-schema")


@given(st.integers(0, len(TEXT) - 1))
def test_a_text_cut_anywhere_is_refused(length: int) -> None:
    """A shell or a form may have dropped its end."""
    refused(TEXT[:length], "plan-damaged")


@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    """With a diagnostic, never with anything else."""
    refused(text, "plan-damaged")


def changed(change: Any) -> str:
    """Return the text of the sample's data after a change."""
    data = to_data(PLAN)
    change(data)
    return packed(json.dumps(data, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.update(schema="ortrim-plan/2"), "another schema"),
        (lambda data: data.pop("schema"), "does not know"),
        (lambda data: data.pop("targets"), "targets"),
        (lambda data: data.update(targets=None), "targets"),
        (lambda data: data.update(newcomer=1), "does not know"),
        (lambda data: data["targets"][0]["job"].update(target="vax-vms"), "targets.0.job.target"),
        (lambda data: data["targets"][0]["job"].update(exceptions="yes"), "does not know"),
        (lambda data: data["targets"][0]["job"]["target"].update(newcomer=1), ""),
    ],
)
def test_a_plan_of_another_version_is_refused(change: Any, told: str) -> None:
    """More, less or other than this version writes; what was written is not repeated."""
    assert told in refused(changed(change), "plan-other-schema").why


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 500_000, b'{"schema": 1}', b"NaN"])
def test_what_is_no_plan_is_refused(content: bytes) -> None:
    """Well packed all the same."""
    refused(packed(content), "plan-other-schema")


def test_blanks_are_not_what_a_writer_writes() -> None:
    """One plan has one text inside."""
    assert isinstance(PLAN, BuildPlan)
    refused(packed(json.dumps(to_data(PLAN)).encode()), "plan-other-schema")
