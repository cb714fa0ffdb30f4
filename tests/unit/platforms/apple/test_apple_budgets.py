"""Slices may take what their targets may take together; a missed budget is reported, and is no reason to refuse."""

from dataclasses import replace
from pathlib import Path

from apple_packages import apple_inputs
from ortrim.buildspec.buildspec import Budgets
from ortrim.parity.measurements import Verdict
from ortrim.platforms.apple.framework import AppleInputs
from ortrim.platforms.apple.package import deliver_apple, slice_budgets


def budgeted(inputs: AppleInputs, limit: int | None, target: str = "") -> AppleInputs:
    """Return inputs whose plan gives every library, or that of one target alone, a budget."""
    plan = inputs.first.plan
    targets = tuple(
        replace(each, budgets=Budgets(library_bytes=limit)) if target in {"", each.identifier} else each
        for each in plan.targets
    )
    changed = replace(plan, targets=targets)
    return replace(
        inputs, parts=tuple(replace(part, inputs=replace(part.inputs, plan=changed)) for part in inputs.parts)
    )


def test_slices_have_the_budgets_of_their_targets_together(tmp_path: Path) -> None:
    """A slice of two architectures may take twice as much; one target without a budget leaves its slice without."""
    inputs = apple_inputs(tmp_path)
    found = dict(slice_budgets(budgeted(inputs, 1000)))
    assert (found["ios-arm64"], found["ios-arm64_x86_64-simulator"]) == (1000, 2000)
    assert slice_budgets(inputs) == ()
    assert dict(slice_budgets(budgeted(inputs, 1000, "macos-arm64"))) == {}
    assert dict(slice_budgets(budgeted(inputs, 1000, "ios-arm64"))) == {"ios-arm64": 1000}


def test_a_missed_budget_fails_its_gate_and_the_package_is_delivered(tmp_path: Path) -> None:
    """The report judges it target by target, with the exit code of budgets."""
    inputs = budgeted(apple_inputs(tmp_path), 1000)
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "objectivec").rename(tmp_path / "onnxruntime" / "objectivec")
    package, gates = deliver_apple(inputs.parts, tmp_path, tmp_path / "out", {})
    assert [gate.name for gate in gates if gate.verdict is Verdict.FAIL] == ["size of each slice"]
    assert package.folder.is_dir()
