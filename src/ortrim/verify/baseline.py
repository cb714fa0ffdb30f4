"""What our library is measured beside, where the device runs it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.errors import VerifyError
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.devices.base import Device, Repetition
from ortrim.verify.rounds import Measurement, request_of

TRIAL: Final = Repetition(runs=1, warmup=0)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A library for the device, None when there is none, and its name in reports.

    `trusted` says that it runs where it is meant to; one that is not is tried first, since the official library of
    another architecture may not run on the very processor that ours is for (microsoft/onnxruntime#23957).
    """

    library: Path | None
    name: str
    trusted: bool = False


def own_baseline(runtime: FullRuntime) -> Baseline:
    """Return the full runtime's own library, which this machine runs."""
    name = f"onnxruntime {runtime.version} (official wheel)"
    return Baseline(library=runtime.library, name=name, trusted=True)


def without_failing(plans: list[Measurement], baseline: Baseline, device: Device) -> tuple[list[Measurement], Baseline]:
    """Return the plans, without a baseline where it does not run, and the baseline with that in its name."""
    if baseline.trusted or baseline.library is None:
        return plans, baseline
    failures = [_failure(plan, baseline.library, device) for plan in plans]
    kept = [
        replace(plan, baseline_library=None) if failure else plan for plan, failure in zip(plans, failures, strict=True)
    ]
    said = dict.fromkeys(failure for failure in failures if failure)
    name = "; ".join((baseline.name, *(f"it does not run on {device.name}: {failure}" for failure in said)))
    return kept, replace(baseline, name=name)


def _failure(plan: Measurement, library: Path, device: Device) -> str:
    """Return why the baseline does not run a model there, or nothing."""
    request = request_of(replace(plan, repetition=TRIAL), library, plan.onnx_model)
    try:
        device.run(request)
    except VerifyError as error:
        return f"{error.what} ({error.reference})"
    return ""
