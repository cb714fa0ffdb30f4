"""What our library is measured beside, where the device runs it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.core.library_facts import LibrarySize
from ortrim.errors import VerifyError
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.devices.base import Device, Repetition
from ortrim.verify.devices.host import Host
from ortrim.verify.rounds import Measurement, request_of

NO_SIZE: Final = LibrarySize(file_bytes=0, loadable_bytes=0, compressed_bytes=0, components=(), largest_symbols=())
TRIAL: Final = Repetition(runs=1, warmup=0)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A library for a target, None when there is none, and its name in reports.

    `runs_here` says that this machine runs it. On every other device it is tried first, since the official library may
    not run on the very processor that ours is for (microsoft/onnxruntime#23957).
    """

    library: Path | None
    name: str
    runs_here: bool = False


def own_baseline(runtime: FullRuntime) -> Baseline:
    """Return the full runtime's own library, which this machine runs."""
    name = f"onnxruntime {runtime.version} (official wheel)"
    return Baseline(library=runtime.library, name=name, runs_here=True)


def without_failing(
    plans: tuple[Measurement, ...], baseline: Baseline, device: Device
) -> tuple[tuple[Measurement, ...], Baseline]:
    """Return the plans, without a baseline where it does not run, and the baseline with that in its name."""
    if baseline.library is None or (baseline.runs_here and device.name == Host.name):
        return plans, baseline
    failures = [_failure(plan, baseline.library, device) for plan in plans]
    kept = tuple(
        replace(plan, baseline_library=None) if failure else plan for plan, failure in zip(plans, failures, strict=True)
    )
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
