"""The demo's library for ARM64 on emulated machines, when it was built here: `invoke build --target linux-arm64`."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ortrim.console import Console
from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.targets import TARGETS
from ortrim.executors.results import finished_build, result_of
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.pipeline.targets import executor_for
from ortrim.tasks.options import request_from
from ortrim.verify.devices.base import DEFAULT_REPETITION, RunRequest
from ortrim.verify.devices.least_memory import REPETITION, least_memory
from ortrim.verify.devices.qemu_system import QemuSystem
from ortrim.verify.devices.select import devices_for
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs, reference_outputs

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64"),
]
TARGET = "linux-arm64"
DEVICES = ("qemu-user:cortex-a53", "qemu-user:cortex-a76", "qemu-system:cortex-a53", "qemu-system:cortex-a76")


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build for ARM64, and a runner for it."""

    planned: Planned
    library: Path
    runner: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the demo's build, if there is one."""
    console = Console()
    request = request_from(None, target=TARGET, output=str(tmp_path_factory.mktemp("artifacts")))
    planned = make_planned(request, console)
    (target,) = planned.plan.targets
    if not finished_build(target.job).is_dir():
        pytest.skip(f"the demo was not built for {TARGET} here: invoke build --target {TARGET}")
    with console.step("compile the runner") as step:
        runner = executor_for(planned, target, request, step).run_runner(target.runner)
    return Built(planned=planned, library=result_of(finished_build(target.job)).library, runner=runner)


def request_of(built: Built, number: int) -> RunRequest:
    """Return a run of one of the demo's models with all its cases."""
    return RunRequest(
        runner=built.runner,
        library=built.library,
        model=built.planned.models.converted[number].path,
        cases=built.planned.cases[number],
        repetition=replace(DEFAULT_REPETITION, runs=1, warmup=0),
    )


def parity_on(name: str, built: Built, folder: Path) -> list[OutputParity]:
    """Run all models on a device and hold their outputs against the full runtime's."""
    found: list[OutputParity] = []
    (device,) = devices_for(TARGETS[TARGET], (name,))
    with closing(device):
        for number, model in enumerate(built.planned.models.prepared):
            outputs = folder / model.name
            outputs.mkdir()
            ran = device.run(replace(request_of(built, number), outputs=outputs))
            cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in ran.cases)
            runtime = built.planned.models.runtime
            reference = reference_outputs(model, built.planned.cases[number], runtime, folder / "reference")
            tolerances = built.planned.models.loaded.spec.models[number].tolerances
            found += compare(model.name, reference, SavedOutputs(folder=outputs, cases=cases), tolerances)
    return found


@pytest.mark.parametrize("name", DEVICES)
def test_the_demo_is_in_parity_on_every_machine(built: Built, tmp_path: Path, name: str) -> None:
    """Old processor or new, emulated alone or with a whole machine: the outputs are the full runtime's."""
    found = parity_on(name, built, tmp_path)
    assert found
    assert {output.verdict for output in found} == {Verdict.PASS}, found


def test_the_least_memory_of_the_demo(built: Built) -> None:
    """It runs in a machine of 64 MiB, of which the kernel takes half."""
    (device,) = devices_for(TARGETS[TARGET], ("qemu-system:cortex-a53",))
    assert isinstance(device, QemuSystem)
    found = least_memory(device, replace(request_of(built, 0), repetition=REPETITION))
    assert found.enough_mib - found.too_little_mib <= 2
    assert found.enough_mib <= 64, found
