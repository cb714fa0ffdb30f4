"""What runs of our library leave below a folder of this machine: outputs to compare, and profiles of operators."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ortrim.storage.files import storage_errors
from ortrim.verify.devices.base import Device, Repetition, RunnerOutput
from ortrim.verify.reference import CaseOutputs, SavedOutputs
from ortrim.verify.rounds import Measurement, request_of
from ortrim.verify.traces import TRACE

ONCE: Final = Repetition(runs=1, warmup=0)


def device_folder(name: str) -> str:
    """Return the name of the folder of a device's files; different devices have different ones."""
    return quote(name.replace(":", "_", 1), safe="@")


def our_outputs(plan: Measurement, device: Device, outputs: Path) -> tuple[SavedOutputs, RunnerOutput]:
    """Run our library once and return its outputs, which stay in `outputs`, and what it took.

    Raises what `Device.run` raises.
    """
    with storage_errors(outputs):
        outputs.mkdir(parents=True, exist_ok=True)
    request = request_of(replace(plan, repetition=ONCE), plan.library, plan.ort_model)
    ran = device.run(replace(request, outputs=outputs))
    cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in ran.cases)
    return SavedOutputs(folder=outputs, cases=cases), ran


def trace_of(plan: Measurement, device: Device, outputs: Path) -> Path:
    """Run our library once more with the profile of single operators, and return that file, beside the outputs.

    Raises what `Device.run` raises, which sees to it that the file is a trace.
    """
    request = request_of(replace(plan, repetition=ONCE), plan.library, plan.ort_model)
    with storage_errors(outputs), tempfile.TemporaryDirectory(dir=outputs, prefix=".trace-") as name:
        device.run(replace(request, outputs=Path(name), trace=True))
        return (Path(name) / TRACE).replace(outputs / TRACE)
