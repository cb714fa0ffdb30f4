"""One target on several devices for real, side by side: emulators, a whole machine, and a board that is not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from fake_runtime import programs_below
from ortrim.base.files import sha256_of
from ortrim.binaries.elf import read_library
from ortrim.buildspec.buildspec import Budgets, CaseSpec, ModelSpec, SessionSettings
from ortrim.buildspec.targets import TARGETS
from ortrim.devices.kinds import read_names
from ortrim.models.full_runtime import foreign_library, full_runtime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.inputs import make_cases
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import reference_outputs
from ortrim.parity.runner import check_trace
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.devices import open_device
from ortrim.platforms import platform_of
from ortrim.report.write import read_report, write_reports
from ortrim.size.library import library_size
from ortrim.verify.measure import Baseline
from ortrim.verify.reports import DeviceReport, VerifyReport
from ortrim.verify.target import Delivery, ModelUnderTest, Task, verify_target
from sample_tasks import IDENTITY, built_in

pytestmark = [
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64", "sshd"),
]
TARGET: Final = TARGETS["linux-arm64"]
USER: Final = "qemu-user:cortex-a76"
MACHINE: Final = "qemu-system:cortex-a76"
TOO_OLD: Final = "qemu-user:cortex-a53"
NOWHERE: Final = "ssh:nobody@127.0.0.1:1"


def prepared_model(folder: Path) -> PreparedModel:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 3)) for name in "xy"]
    nodes = [helper.make_node("Add", ["x", "x"], ["s"]), helper.make_node("Tanh", ["s"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model" / "model.onnx"
    path.parent.mkdir()
    onnx.save(model, path)
    return PreparedModel(name="model", path=path, facts=facts_of(model, sha256_of(path), 1, "model"))


def subject_in(folder: Path) -> ModelUnderTest:
    """Return the model with a case and the full runtime's outputs of it; it is not converted."""
    prepared, runtime = prepared_model(folder), full_runtime(onnxruntime.__version__, None)
    spec = ModelSpec(name="model", path=prepared.path, cases=(CaseSpec(name="many", dimensions={"n": 7}),))
    cases = make_cases(prepared, spec, folder, folder / "cases")
    reference = reference_outputs(prepared, cases, runtime, folder / "outputs" / "reference")
    converted = OrtModel(
        name="model", path=prepared.path, sha256="b" * 64, size_bytes=1, ort_version=runtime.version,
        style="fixed", level="extended", config="",
    )  # fmt: skip
    return ModelUnderTest(
        prepared=prepared,
        converted=converted,
        spec=spec,
        cases=cases,
        reference=reference,
        same_graph=reference,
        session=SessionSettings(),
    )


def official_library() -> Path:
    pins = runtime_pins(onnxruntime.__version__)
    library = foreign_library(pins.version, pins.converter_requirements, "arm64")
    assert library is not None
    return library


def task_in(folder: Path, runner: Path, budgets: Budgets) -> Task:
    """Return the task of verifying the official library beside itself, with a profile."""
    library = official_library()
    (folder / "package.tar.gz").write_bytes(b"a package")
    delivery = Delivery(
        archive=folder / "package.tar.gz",
        library=library,
        facts=read_library(library),
        gates=(),
        size=library_size(library, None),
    )
    return Task(
        built=built_in(folder),
        delivery=delivery,
        subjects=(subject_in(folder),),
        budgets=budgets,
        baseline=Baseline(library=library, name="the same library"),
        baseline_size=library_size(library, None),
        runner=runner,
        folder=folder / "outputs",
        trace=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("together")


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> VerifyReport:
    runner = programs_below(tmp_path_factory.mktemp("programs"))("linux-arm64") / "runner"
    task = task_in(folder, runner, Budgets(peak_rss_ratio=1.1, deadline_ms=1.0))
    names = read_names(platform_of(TARGET), TARGET, (USER, TOO_OLD, MACHINE, NOWHERE))
    return verify_target(IDENTITY, task, names, lambda name: open_device(TARGET, name))


@pytest.fixture(scope="module")
def device(report: VerifyReport) -> Callable[[str], DeviceReport]:
    found = {device.device: device for device in report.devices}
    return found.__getitem__


Device = Callable[[str], DeviceReport]


def test_every_device_has_its_report(report: VerifyReport) -> None:
    """In the order asked for; those that fail do not touch the others, and fail the whole."""
    verdicts = {device.device: device.verdict for device in report.devices}
    assert list(verdicts) == [USER, TOO_OLD, MACHINE, "ssh:ssh://nobody@127.0.0.1:1"]
    assert list(verdicts.values()) == [Verdict.PASS, Verdict.FAIL, Verdict.PASS, Verdict.FAIL]
    assert report.verdict is Verdict.FAIL


def test_outputs_are_the_full_runtimes_on_each(device: Device) -> None:
    """With a machine around the process or without."""
    for name in (USER, MACHINE):
        assert [output.verdict for output in device(name).parity] == [Verdict.PASS]


def test_memory_is_judged_in_a_whole_machine_alone(device: Device) -> None:
    lines = {name: {line.measure: line for line in device(name).comparisons} for name in (USER, MACHINE)}
    assert lines[MACHINE]["peak RSS"].verdict is Verdict.PASS
    assert 0.9 < (lines[MACHINE]["peak RSS"].ratio or 0) < 1.1
    assert {line.verdict for line in lines[USER].values()} == {Verdict.NOT_JUDGED}
    assert lines[MACHINE]["missed deadlines"].verdict is Verdict.NOT_JUDGED


def test_every_profile_opens(device: Device, folder: Path) -> None:
    for name in (USER, MACHINE):
        (trace,) = device(name).traces
        check_trace(folder / trace, name)
        assert "Tanh" in (folder / trace).read_text()
    assert device(USER).traces != device(MACHINE).traces


def test_what_failed_says_why(device: Device) -> None:
    """The processor that is too old, and the board that is not there, in words, with what to do."""
    (old,) = device(TOO_OLD).failed_models
    assert (old.code, old.exit_code) == ("illegal-instruction", 19)
    failure = device("ssh:ssh://nobody@127.0.0.1:1").failure
    assert failure is not None
    assert failure.exit_code == 19
    assert "refused" in f"{failure.what} {failure.why}"
    assert failure.hint


def test_nothing_but_outputs_is_left(report: VerifyReport, folder: Path) -> None:
    outputs = folder / "outputs"
    assert sorted(path.name for path in outputs.iterdir() if path.name != "reference") == [
        "qemu-system_cortex-a76",
        "qemu-user_cortex-a53",
        "qemu-user_cortex-a76",
    ]
    for path in outputs.glob("qemu-*_cortex-a76"):
        assert sorted(entry.name for entry in (path / "model").iterdir()) == ["many", "trace.json"]
    write_reports(report, folder)
    assert read_report(folder / "report.json") == report
