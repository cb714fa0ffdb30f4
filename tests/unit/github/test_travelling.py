"""What of a plan leaves this machine."""

from dataclasses import replace

import pytest

from ortrim.build.plan import BuildPlan, digest
from ortrim.errors import ExitCode, PlanError
from ortrim.github.dispatch import decode_plan, encode_plan
from ortrim.github.jobs import travelling
from ortrim.spec.buildspec import Budgets
from sample_plans import SOURCES, sample_plan, sample_target, system_gcc

PLAN = sample_plan(
    selected=tuple(map(sample_target, ("linux-x64", "android-arm64-v8a"))), budgets=Budgets(library_bytes=4711)
)


def test_jobs_travel_and_nothing_of_the_models() -> None:
    """They keep their digests, by which what comes home is known."""
    sent = travelling(PLAN, PLAN.targets)
    assert (sent.models, sent.assemblies) == ((), ())
    assert {target.budgets for target in sent.targets} == {Budgets()}
    for before, after in zip(PLAN.targets, sent.targets, strict=True):
        assert digest(before.job) == digest(after.job)
        assert digest(before.runner) == digest(after.runner)
    assert decode_plan(encode_plan(sent)) == sent


def test_only_what_is_asked_for_travels() -> None:
    """A plan of more is made smaller."""
    sent = travelling(PLAN, PLAN.targets[:1])
    assert [target.job.target.identifier for target in sent.targets] == ["linux-x64"]
    assert len(encode_plan(sent)) < len(encode_plan(PLAN))


LOCAL = tuple(replace(source, kind="path") for source in SOURCES)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (sample_plan(sources=LOCAL), "folder of this machine"),
        (sample_plan(toolchain=system_gcc()), "gcc"),
        (replace(sample_plan(), spec_name="-x"), "name"),
        (replace(sample_plan(), spec_name="../x"), "name"),
    ],
)
def test_what_only_this_machine_has_stays(plan: BuildPlan, why: str) -> None:
    """With the key of the buildspec that says so."""
    with pytest.raises(PlanError) as caught:
        travelling(plan, plan.targets)
    assert (caught.value.code, caught.value.exit_code) == ("plan-cannot-travel", ExitCode.PLAN)
    assert why in caught.value.why
    assert "--executor github" in caught.value.hint
