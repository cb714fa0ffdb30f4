"""How a plan is shown: to a reader, and to a program."""

import io
import json
from dataclasses import replace

from ortrim.base.console import Console
from ortrim.base.json import from_json
from ortrim.cli.rendering import show_plan
from ortrim.compiling.plan import BuildPlan
from ortrim.models.operators import (
    OperatorId,
    OperatorTypes,
    RequiredOperators,
)
from ortrim.planning.prediction import Prediction
from sample_plans import sample_plan

OPERATORS = RequiredOperators(
    operators=(
        OperatorId(domain="ai.onnx", opset=7, name="And"),
        OperatorId(domain="ai.onnx", opset=13, name="Gather"),
        OperatorId(domain="ai.onnx", opset=14, name="Gather"),
        OperatorId(domain="com.microsoft", opset=1, name="FusedConv"),
    ),
    types=((("ai.onnx", "Gather"), OperatorTypes(inputs=((0, ("float",)), (1, ("int64_t",))))),),
)
EXPECTED = (Prediction(target="linux-x64", least=700_000, most=900_000, builds=2, seconds=(20.0, 75.0)),)


PLAN = sample_plan(operators=OPERATORS)


def shown(*, json_mode: bool, plan: BuildPlan = PLAN) -> tuple[str, str]:
    """Return what is printed of a plan: the result, and what accompanies it."""
    out, err = io.StringIO(), io.StringIO()
    console = Console(stdout=out, stderr=err, environment={"COLUMNS": "80"})
    show_plan(console, plan, EXPECTED, json_mode=json_mode)
    return out.getvalue(), err.getvalue()


def test_a_plan_fits_a_screen_and_ends_with_what_is_expected() -> None:
    """An operator stands there once, with its types; the many words of a build are for programs."""
    printed = "".join(shown(json_mode=False))
    words = " ".join(printed.split())
    assert "And, Gather (float, int64_t), com.microsoft:FusedConv" in words
    assert "--json shows them" in words
    assert printed.splitlines()[-1] == f"{EXPECTED[0].text}"
    assert len(printed.splitlines()) < 20


def test_a_plan_names_execution_providers_beside_the_processors() -> None:
    """Where there are any."""
    (target,) = PLAN.targets
    with_xnnpack = replace(PLAN, targets=(replace(target, job=replace(target.job, providers=("xnnpack",))),))
    assert "providers xnnpack, cpu" in " ".join("".join(shown(json_mode=False, plan=with_xnnpack)).split())
    assert "providers" not in "".join(shown(json_mode=False))


def test_a_plan_for_programs_has_all() -> None:
    printed = json.loads(shown(json_mode=True)[0])
    (expected,) = printed.pop("expected")
    assert (expected["target"], expected["least"], expected["most"]) == ("linux-x64", 700_000, 900_000)
    assert from_json(BuildPlan, json.dumps(printed)) == PLAN
