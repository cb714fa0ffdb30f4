from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ortrim.verify.verify as subject_module
from ortrim.core import measurements
from ortrim.core.buildspec import Budgets, ModelSpec
from ortrim.core.measurements import Gate, LibraryFacts, LibrarySize, Verdict, VerifyReport
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.serialization import from_json, to_json
from ortrim.errors import VerifyError
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.arrays import save_array
from ortrim.verify.baseline import Baseline
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import RunnerOutput, RunRequest, SavedOutput
from ortrim.verify.reference import CaseOutputs, SavedOutputs
from ortrim.verify.verify import Delivery, Identity, Subject, overall, verify_target

MakeModel = Callable[..., PreparedModel]
MakeOutput = Callable[..., RunnerOutput]
SAVED = SavedOutput(name="y", element_type="float32", shape=(2,), file="output_000.npy")


class SavingDevice:
    """A device whose runner saves the output it is given."""

    name = "saving"
    memory_meaningful = True
    time_meaningful = True
    refuses = ""

    def __init__(self, make: MakeOutput, value: Any) -> None:
        self.make = make
        self.value = value
        self.ran: list[str] = []

    def facts(self) -> measurements.Host:
        """Describe a machine."""
        return measurements.Host(system="Linux", machine="x86_64", cpu="c", cores=1, memory_bytes=1)

    def close(self) -> None:
        """Leave nothing."""

    def run(self, request: RunRequest) -> RunnerOutput:
        """Save the output when asked to, and report."""
        self.ran.append(request.library.name)
        if request.library.name == self.refuses:
            raise VerifyError("illegal-instruction", "the library uses an unknown instruction")
        output = self.make(only=1.0 if request.library.name == "ours.so" else 2.0)
        if request.outputs is None:
            return output
        (request.outputs / "only").mkdir(exist_ok=True)
        save_array(request.outputs / "only", "output_000", self.value)
        case = {**vars(output.cases[0]), "outputs": (SAVED,)}
        return RunnerOutput(**{**vars(output), "cases": (type(output.cases[0])(**case),)})


Verify = Callable[..., VerifyReport]


@pytest.fixture
def verify(make_model: MakeModel, make_output: MakeOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Verify a library whose reference output is [1, 2]."""
    reference = SavedOutputs(folder=tmp_path / "reference", cases=(CaseOutputs(name="only", outputs=(SAVED,)),))
    (tmp_path / "reference" / "only").mkdir(parents=True)
    save_array(tmp_path / "reference" / "only", "output_000", np.array([1, 2], np.float32))
    monkeypatch.setattr(subject_module, "reference_outputs", lambda *_: reference)
    (tmp_path / "package.tar.gz").write_bytes(b"12345")

    def run(
        value: Any = (1, 2),
        *gates: Gate,
        device: SavingDevice | None = None,
        baseline: Baseline | None = None,
        **budgets: Any,
    ) -> VerifyReport:
        return verify_target(
            _identity(),
            _delivery(tmp_path, gates),
            (_subject(make_model(), tmp_path),),
            Budgets(**budgets),
            device=device or SavingDevice(make_output, np.array(value, np.float32)),
            runner=tmp_path / "runner",
            runtime=FullRuntime(
                version="1.21.0", words=(), environment={}, packages=tmp_path, library=Path("/full.so")
            ),
            folder=tmp_path / "work",
            baseline=baseline,
        )

    return run


def _identity() -> Identity:
    return Identity(
        name="demo",
        target="linux-x64",
        ort_version="1.21.0",
        ortrim_version="0.1.0",
        plan_digest="d" * 64,
        profile="balanced",
        build_seconds=1.0,
        compiler_cache=None,
    )


def _delivery(folder: Path, gates: tuple[Gate, ...]) -> Delivery:
    facts = LibraryFacts(
        soname="s", machine="x64", needed=(), symbol_versions=(), exported=(),
        executable_stack=False, text_relocations=False, stripped=True, load_alignment=4096,
    )  # fmt: skip
    size = LibrarySize(file_bytes=10, loadable_bytes=9, compressed_bytes=5, components=(), largest_symbols=())
    return Delivery(
        archive=folder / "package.tar.gz",
        library=folder / "ours.so",
        facts=facts,
        gates=gates,
        size=size,
        baseline_size=size,
    )


def _subject(model: PreparedModel, folder: Path) -> Subject:
    converted = OrtModel(
        name="tiny", path=folder / "tiny.ort", sha256="b" * 64, size_bytes=1, ort_version="1.21.0",
        style="fixed", level="extended", config="",
    )  # fmt: skip
    cases = (Case(name="only", folder=folder, digest="d"),)
    return Subject(prepared=model, converted=converted, spec=ModelSpec(name="tiny", path=Path("t")), cases=cases)


def test_a_good_library_passes(verify: Verify) -> None:
    """The report holds everything, survives JSON, and passes."""
    report = verify(p50_ratio=0.6)
    assert (report.verdict, report.name, report.device, report.package_bytes) == (Verdict.PASS, "demo", "saving", 5)
    assert [(run.library, run.model) for run in report.runs] == [("ours", "tiny"), ("baseline", "tiny")]
    assert report.parity[0].verdict is Verdict.PASS
    assert from_json(VerifyReport, to_json(report)) == report


def test_a_lack_of_parity_leaves_the_report_whole(verify: Verify) -> None:
    """Wrong outputs fail, and yet everything is measured."""
    report = verify((1, 3))
    assert report.verdict is Verdict.FAIL
    assert report.parity[0].max_absolute == 1
    assert report.runs
    assert report.comparisons


def test_a_missed_budget_fails(verify: Verify) -> None:
    """A budget alone decides."""
    assert verify(p50_ratio=0.4).verdict is Verdict.FAIL


def test_a_failed_gate_fails(verify: Verify) -> None:
    """A gate alone decides."""
    assert verify((1, 2), Gate(name="g", verdict=Verdict.FAIL, detail="d")).verdict is Verdict.FAIL


def test_doubt_is_no_failure() -> None:
    """Only a failure fails."""
    assert overall([Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED, Verdict.PASS]) is Verdict.PASS
    assert overall([]) is Verdict.PASS
    assert overall([Verdict.PASS, Verdict.FAIL]) is Verdict.FAIL


def test_verifying_twice_works(verify: Verify, tmp_path: Path) -> None:
    """Outputs of an earlier run, good or half-written, do not get in the way."""
    verify()
    (tmp_path / "work" / "ours-saving" / "tiny" / "only" / "output_000.npy").write_bytes(b"half")
    (tmp_path / "work" / "ours-saving" / "tiny" / "only" / "output_000.npy").unlink()
    (tmp_path / "work" / "ours-saving" / "tiny" / "only").rmdir()
    assert verify().verdict is Verdict.PASS


@pytest.fixture
def emulated(make_output: MakeOutput) -> SavingDevice:
    """Give a device on which memory means something and time does not."""
    device = SavingDevice(make_output, np.array([1, 2], np.float32))
    device.time_meaningful = False
    return device


FOREIGN = Baseline(library=Path("/official.so"), name="onnxruntime 1.21.0 (official wheel for arm64)")


def test_where_time_means_nothing_it_is_not_judged(verify: Verify, emulated: SavingDevice) -> None:
    """Memory is measured beside the device's own baseline, in few runs; a missed latency does not fail."""
    report = verify(device=emulated, baseline=FOREIGN, p50_ms=0.001, peak_rss_bytes=1)
    lines = {line.measure: line for line in report.comparisons}
    assert (lines["latency p50"].verdict, lines["peak RSS"].verdict) == (Verdict.NOT_JUDGED, Verdict.FAIL)
    assert lines["latency p50"].reason == "time: what it takes on saving says nothing of a real device"
    assert (report.host.memory_meaningful, report.host.time_meaningful) == (True, False)
    assert report.baseline == FOREIGN.name
    assert emulated.ran.count("official.so") == 4
    assert emulated.ran.count("ours.so") == 4
    assert "full.so" not in emulated.ran


def test_where_nothing_is_meaningful_parity_is_all(verify: Verify, emulated: SavingDevice) -> None:
    """One run shows the outputs; no other is made, and no baseline is run."""
    emulated.memory_meaningful = False
    report = verify(device=emulated, baseline=FOREIGN, p50_ms=0.001, peak_rss_bytes=1, library_bytes=10)
    assert report.verdict is Verdict.PASS
    assert emulated.ran == ["ours.so"]
    assert report.parity[0].verdict is Verdict.PASS
    assert {line.verdict for line in report.comparisons if line.model} == {Verdict.NOT_JUDGED}
    assert from_json(VerifyReport, to_json(report)) == report


def test_a_baseline_that_does_not_run_there(verify: Verify, emulated: SavingDevice) -> None:
    """Ours is verified all the same, and the report says what became of the official library."""
    emulated.refuses = "official.so"
    report = verify(device=emulated, baseline=FOREIGN, peak_rss_ratio=0.5, peak_rss_bytes=10**9)
    assert report.verdict is Verdict.PASS
    assert report.baseline.endswith(
        "; it does not run on saving: the library uses an unknown instruction (illegal-instruction)"
    )
    assert [run.library for run in report.runs] == ["ours"]
    ratio, absolute = (line for line in report.comparisons if line.measure == "peak RSS")
    assert (ratio.verdict, ratio.baseline, absolute.verdict) == (Verdict.NOT_JUDGED, None, Verdict.PASS)
    assert emulated.ran.count("official.so") == 1


def test_our_own_failure_is_no_verdict(verify: Verify, emulated: SavingDevice) -> None:
    """A library that does not run on the device at all stops the verification with the device's diagnostic."""
    emulated.refuses = "ours.so"
    with pytest.raises(VerifyError) as caught:
        verify(device=emulated)
    assert caught.value.reference == "illegal-instruction"


def test_this_machines_own_baseline_has_to_run(verify: Verify, make_output: MakeOutput) -> None:
    """On the host, a baseline that fails is an error, and it is not tried beforehand."""
    device = SavingDevice(make_output, np.array([1, 2], np.float32))
    verify(device=device)
    assert device.ran.count("full.so") == 9
    device.refuses = "full.so"
    with pytest.raises(VerifyError):
        verify(device=device)


def test_without_any_baseline(verify: Verify, emulated: SavingDevice) -> None:
    """A device for which there is no official library has ours alone, and a name that says so."""
    emulated.name = "qemu:cpu@64"
    report = verify(device=emulated, baseline=Baseline(library=None, name="none"))
    assert (report.baseline, [run.library for run in report.runs]) == ("none", ["ours"])
    assert report.device == "qemu:cpu@64"


def test_outputs_of_devices_are_kept_apart(verify: Verify, emulated: SavingDevice, tmp_path: Path) -> None:
    """Two devices' outputs lie in folders of their own, side by side, and the host's where they ever did."""
    emulated.name = "qemu:cpu@64"
    verify(device=emulated)
    verify()
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["ours-qemu_cpu_64", "ours-saving"]
    emulated.name = "host"
    verify(device=emulated)
    assert (tmp_path / "work" / "ours" / "tiny" / "only" / "output_000.npy").is_file()
