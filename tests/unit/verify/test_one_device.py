"""One device: what is run there, what of it is judged, and what else can be asked for."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from fake_machine import fake_machine, hungry_qemu
from ortrim.base.json import from_json, to_json
from ortrim.buildspec.buildspec import DIRECTLY, Budgets, SessionSettings
from ortrim.devices.device import Outcome, device_folder
from ortrim.devices.qemu import QemuSystem
from ortrim.devices.remote import CooledDevice
from ortrim.devices.simctl import SimulatorDevice
from ortrim.errors import VerifyError
from ortrim.models.models import PreparedModel
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import Coverage, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import OF_ONE_MODEL, TRACE, RunnerEnded, RunnerOutput, RunRequest
from ortrim.verify import target
from ortrim.verify.measure import ROUNDS, Baseline
from ortrim.verify.reports import DeviceReport
from ortrim.verify.target import MEMORY_ROUNDS, Task, verify_on
from refusing import refused
from sample_tasks import SavingDevice, sample_task

MakeModel = Callable[..., PreparedModel]
MakeOutput = Callable[..., RunnerOutput]
FOREIGN = Baseline(library=Path("/official.so"), name="onnxruntime 1.21.0 (official wheel for arm64)")
OWN = Baseline(library=Path("/full.so"), name="onnxruntime 1.21.0 (official wheel)")


@pytest.fixture
def device(make_output: MakeOutput) -> SavingDevice:
    """Give a device on which everything means something and our outputs are right."""
    return SavingDevice(make_output)


@pytest.fixture
def emulated(make_output: MakeOutput) -> SavingDevice:
    made = SavingDevice(make_output)
    made.time_meaningful = False
    return made


@pytest.fixture
def task(make_model: MakeModel, tmp_path: Path) -> Callable[..., Task]:
    """Make the task of verifying a library whose reference output is [1, 2]."""

    def make(**changes: Any) -> Task:
        return sample_task(make_model(), tmp_path, **{"baseline": OWN, **changes})

    return make


MakeTask = Callable[..., Task]


def test_a_good_library_passes(device: SavingDevice, task: MakeTask) -> None:
    report = verify_on(device, task(budgets=Budgets(p50_ratio=0.6)))
    assert (report.verdict, report.device, report.baseline, report.failure) == (Verdict.PASS, "saving", OWN.name, None)
    assert [(run.library, run.model) for run in report.runs] == [("ours", "tiny"), ("baseline", "tiny")]
    assert report.parity[0].verdict is Verdict.PASS
    assert (report.least_memory, report.traces) == ((), ())
    assert from_json(DeviceReport, to_json(report)) == report


def test_a_lack_of_parity_leaves_the_report_whole(make_output: MakeOutput, task: MakeTask) -> None:
    """Wrong outputs fail, and yet everything is measured."""
    report = verify_on(SavingDevice(make_output, (1, 3)), task())
    assert report.verdict is Verdict.FAIL
    assert report.parity[0].max_absolute == 1
    assert report.runs
    assert report.comparisons


def test_a_comparison_of_nothing_is_inconclusive(make_output: MakeOutput, task: MakeTask, tmp_path: Path) -> None:
    """An output of zeros shows nothing; the buildspec may expect so, and a difference still fails."""
    given = task()
    save_array(tmp_path / "reference" / "only", "output_000", np.zeros(2, np.float32))
    zeros = SavingDevice(make_output, (0, 0))
    report = verify_on(zeros, given)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert (report.parity[0].verdict, report.parity[0].reason) == (Verdict.NOT_JUDGED, "every element is 0")
    expected = expecting_nothing(given)
    assert verify_on(zeros, expected).verdict is Verdict.PASS
    assert verify_on(SavingDevice(make_output, (0, 1)), expected).verdict is Verdict.FAIL


def expecting_nothing(task: Task) -> Task:
    (subject,) = task.subjects
    return replace(task, subjects=(replace(subject, spec=replace(subject.spec, expect="empty")),))


def test_a_model_without_nodes_is_inconclusive(device: SavingDevice, task: MakeTask) -> None:
    """Nothing is computed, so that nothing can be wrong."""
    given = task()
    (subject,) = given.subjects
    reference = replace(subject.reference, coverage=Coverage(nodes=0, executed=0))
    report = verify_on(device, replace(given, subjects=(replace(subject, reference=reference),)))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.parity[0].reason == "the model has no nodes: nothing was computed"


@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("quantized", [True, False])
def test_a_quantized_model_has_bounds_of_its_own(
    make_output: MakeOutput,
    task: MakeTask,
    monkeypatch: pytest.MonkeyPatch,
    quantized: bool,  # noqa: FBT001
    saturates: bool,  # noqa: FBT001
) -> None:
    """Conversion may change more of it, the library no more, unless this machine's own kernels saturate."""
    monkeypatch.setattr(target, "saturates_here", lambda: saturates)
    given = task()
    (subject,) = given.subjects
    subject = replace(subject, reference=replace(subject.reference, quantized=quantized))
    report = verify_on(SavingDevice(make_output, (1.1, 2)), replace(given, subjects=(subject,)))
    assert report.verdict is (Verdict.PASS if quantized and saturates else Verdict.FAIL)
    assert (report.parity[0].same_graph is None) is (quantized and saturates)


@pytest.mark.parametrize(("name", "verdict"), [("adb", Verdict.PASS), ("host", Verdict.FAIL)])
def test_other_processors_round_a_quantized_model_otherwise(
    make_output: MakeOutput, task: MakeTask, monkeypatch: pytest.MonkeyPatch, name: str, verdict: Verdict
) -> None:
    """Numbers near the middle of two levels take the other one: `turn-detection` on 32-bit ARM differs by 0.0022."""
    monkeypatch.setattr(target, "saturates_here", lambda: False)
    given = task()
    (subject,) = given.subjects
    subject = replace(subject, reference=replace(subject.reference, quantized=True))
    device = SavingDevice(make_output, (1.005, 2))
    device.name = name
    assert verify_on(device, replace(given, subjects=(subject,))).verdict is verdict


def test_the_same_graph_on_this_machine_has_next_to_no_leeway(make_output: MakeOutput, task: MakeTask) -> None:
    """The same kernels give the same numbers; other processors have others."""
    device = SavingDevice(make_output, (1.00009, 2))
    assert verify_on(device, task()).verdict is Verdict.PASS
    device.name = "host"
    report = verify_on(device, task())
    assert report.verdict is Verdict.FAIL
    assert "with the same converted model" in report.parity[0].reason


@pytest.mark.parametrize(("layout", "verdict"), [("plain", Verdict.FAIL), ("nchwc8", Verdict.PASS)])
def test_nchwc_block_size_8_has_other_kernels_in_the_full_runtime(
    make_output: MakeOutput, task: MakeTask, layout: Literal["plain", "nchwc8"], verdict: Verdict
) -> None:
    """Where the processor has AVX-512, it changes the model to block size 16."""
    given = task()
    (subject,) = given.subjects
    subject = replace(subject, spec=replace(subject.spec, layout=layout))
    device = SavingDevice(make_output, (1.00009, 2))
    device.name = "host"
    assert verify_on(device, replace(given, subjects=(subject,))).verdict is verdict


@pytest.mark.parametrize(("original", "same_graph", "verdict"), [
    (1.0005, 1.0005, Verdict.PASS), (1.0005, 1.0, Verdict.FAIL), (1.005, 1.005, Verdict.FAIL),
])  # fmt: skip
def test_what_converting_changes_may_be_more_where_the_library_changes_nothing(
    make_output: MakeOutput, task: MakeTask, original: float, same_graph: float, verdict: Verdict
) -> None:
    """Some models are that sensitive: the official library differs as much from itself when it optimizes them."""
    given = task()
    (subject,) = given.subjects
    (given.folder.parent / "same" / "only").mkdir(parents=True)
    save_array(given.folder.parent / "same" / "only", "output_000", np.array((same_graph, 2), np.float32))
    own = SavedOutputs(folder=given.folder.parent / "same", cases=subject.reference.cases)
    task_of = replace(given, subjects=(replace(subject, same_graph=own),))
    assert verify_on(SavingDevice(make_output, (original, 2)), task_of).verdict is verdict


def test_a_deadline_is_in_every_run(device: SavingDevice, task: MakeTask) -> None:
    """The buildspec's, beside the runs that missed it."""
    report = verify_on(device, task(budgets=Budgets(deadline_ms=1.5)))
    missed = {run.library: (run.cases[0].deadline_ms, run.cases[0].missed) for run in report.runs}
    assert missed["ours"] == (1.5, 0)
    assert missed["baseline"][1] > 0


def test_verifying_twice_works(device: SavingDevice, task: MakeTask, tmp_path: Path) -> None:
    verify_on(device, task())
    saved = tmp_path / "outputs" / "saving" / "tiny" / "only" / "output_000.npy"
    saved.write_bytes(b"half")
    assert verify_on(device, task()).verdict is Verdict.PASS


def test_where_time_means_nothing_it_is_not_judged(emulated: SavingDevice, task: MakeTask) -> None:
    """Memory is measured beside the device's own baseline, in few runs; a missed latency does not fail."""
    report = verify_on(emulated, task(baseline=FOREIGN, budgets=Budgets(p50_ms=0.001, peak_rss_bytes=1)))
    lines = {line.measure: line for line in report.comparisons}
    assert (lines["latency p50"].verdict, lines["peak RSS"].verdict) == (Verdict.NOT_JUDGED, Verdict.FAIL)
    assert lines["latency p50"].reason == "time: what it takes on saving says nothing about a real device"
    assert report.host is not None
    assert (report.host.memory_meaningful, report.host.time_meaningful) == (True, False)
    assert report.baseline == FOREIGN.name
    assert emulated.ran.count("official.so") == 4
    assert emulated.ran.count("ours.so") == 4


def test_where_nothing_is_meaningful_parity_is_all(emulated: SavingDevice, task: MakeTask) -> None:
    """One run shows the outputs; no other is made, and no baseline is run."""
    emulated.memory_meaningful = False
    report = verify_on(emulated, task(baseline=FOREIGN, budgets=Budgets(p50_ms=0.001, peak_rss_bytes=1)))
    assert report.verdict is Verdict.PASS
    assert emulated.ran == ["ours.so"]
    assert report.parity[0].verdict is Verdict.PASS
    assert {line.verdict for line in report.comparisons} == {Verdict.NOT_JUDGED}
    assert from_json(DeviceReport, to_json(report)) == report


def test_a_baseline_that_does_not_run_there(emulated: SavingDevice, task: MakeTask) -> None:
    """Ours is verified all the same, and the report says what became of the official library."""
    emulated.refuses = "official.so"
    report = verify_on(emulated, task(baseline=FOREIGN, budgets=Budgets(peak_rss_ratio=0.5, peak_rss_bytes=10**9)))
    assert report.verdict is Verdict.PASS
    assert report.baseline.endswith(
        "; it does not run on saving: the library uses an unknown instruction (illegal-instruction)"
    )
    assert [run.library for run in report.runs] == ["ours"]
    ratio, absolute = (line for line in report.comparisons if line.measure == "peak RSS")
    assert (ratio.verdict, ratio.baseline, absolute.verdict) == (Verdict.NOT_JUDGED, None, Verdict.PASS)
    assert emulated.ran.count("official.so") == 1


DRAWN = "it depends on the random numbers of RandomNormalLike 'n', which every C++ library draws in its own way"


class DrawingDevice(SavingDevice):
    """A device whose model draws other numbers than the full runtime's, and computes `given` where it gets them."""

    given: tuple[float, ...] = (1, 2)
    without_draws: VerifyError | None = None

    def run(self, request: RunRequest) -> RunnerOutput:
        given = request.model.name == "given.ort"
        if given and self.without_draws:
            raise self.without_draws
        self.value = np.array(self.given if given else (7, 8), np.float32)
        return super().run(request)


def drawing(task: Task, *, given: bool = True) -> Task:
    (subject,) = task.subjects
    other = replace(subject, converted=replace(subject.converted, path=Path("given.ort"))) if given else None
    (case,) = subject.reference.cases
    outputs = tuple(replace(each, draws="RandomNormalLike 'n'") for each in case.outputs)
    reference = replace(subject.reference, cases=(replace(case, outputs=outputs),))
    subject = replace(subject, reference=reference, same_graph=reference, draws_given=other)
    return replace(task, subjects=(subject,))


def test_what_follows_random_numbers_is_judged_with_them_given(make_output: MakeOutput, task: MakeTask) -> None:
    """Its own numbers say nothing; by the same numbers the outputs have to be the same."""
    device = DrawingDevice(make_output)
    report = verify_on(device, drawing(task()))
    (output,) = report.parity
    assert (report.verdict, output.verdict) == (Verdict.PASS, Verdict.PASS)
    assert output.reason == "with the random numbers given as inputs"
    device.given = (1, 2.1)
    (wrong,) = verify_on(device, drawing(task())).parity
    assert wrong.verdict is Verdict.FAIL
    assert wrong.reason.startswith("with the random numbers given as inputs; 1 of 2 elements out of tolerance")
    assert {request.outputs.name for request in device.requests if request.outputs} == {"tiny", "tiny~draws-given"}


def test_random_numbers_that_cannot_be_given(make_output: MakeOutput, task: MakeTask) -> None:
    """The line says why it is not judged, and a library that lacks what only the other model needs does not fail."""
    device = DrawingDevice(make_output)
    (output,) = verify_on(device, drawing(task(), given=False)).parity
    assert (output.verdict, output.reason) == (Verdict.NOT_JUDGED, DRAWN)
    device.without_draws = RunnerEnded("model-refused", "the library refuses the model", returncode=4)
    report = verify_on(device, drawing(task()))
    assert (report.verdict, report.failed_models) == (Verdict.INCONCLUSIVE, ())
    said = f"{DRAWN}; with them as inputs, the library refuses the model (model-refused)"
    assert (report.parity[0].verdict, report.parity[0].reason) == (Verdict.NOT_JUDGED, said)
    device.without_draws = VerifyError("device-lost", "the connection broke")
    with pytest.raises(VerifyError):
        verify_on(device, drawing(task()))


def two_models(task: Task) -> Task:
    """Return a task of two models that are alike but for their names."""
    (subject,) = task.subjects
    other = replace(subject, prepared=replace(subject.prepared, name="other"))
    return replace(task, subjects=(subject, other))


@pytest.mark.parametrize("code", sorted(OF_ONE_MODEL))
def test_each_model_has_its_own_verdict(device: SavingDevice, task: MakeTask, code: str) -> None:
    """What the library does not run fails by its name, once, and the others are verified whole."""
    device.fails = {"tiny": RunnerEnded(code, "no", returncode=4, where="ours.so with tiny", why="words", hint="do")}
    report = verify_on(device, two_models(task()))
    assert (report.verdict, report.failure, report.exit_code) == (Verdict.FAIL, None, 4)
    (failure,) = report.failed_models
    assert (failure.model, failure.code, failure.where, failure.exit_code) == ("tiny", code, "ours.so with tiny", 19)
    assert [(output.model, output.verdict) for output in report.parity] == [("other", Verdict.PASS)]
    assert {run.model for run in report.runs} == {line.model for line in report.comparisons} == {"other"}
    assert [request.name for request in device.requests].count("tiny") == 1
    assert from_json(DeviceReport, to_json(report)) == report


def test_no_model_runs(emulated: SavingDevice, task: MakeTask) -> None:
    emulated.fails = {
        name: RunnerEnded("runner-crashed", f"{name} crashed", returncode=-11) for name in ("tiny", "other")
    }
    report = verify_on(emulated, two_models(task()))
    assert [failure.what for failure in report.failed_models] == ["tiny crashed", "other crashed"]
    assert (report.verdict, report.exit_code, report.signal, report.parity) == (Verdict.FAIL, None, "SIGSEGV", ())


def test_a_device_that_goes_away_is_no_models_failure(emulated: SavingDevice, task: MakeTask) -> None:
    """Nor is a library that cannot be loaded: the verification there ends with that."""
    for code in ("device-lost", "library-refused", "runner-not-startable"):
        emulated.fails = {"tiny": VerifyError(code, "no")}
        assert refused(VerifyError, verify_on, emulated, two_models(task())).code == code


@pytest.mark.parametrize("name", ["host", "ssh:board"])
def test_the_baseline_may_fail(device: SavingDevice, task: MakeTask, name: str) -> None:
    """Its own optimizations may break the model, and a board may lack what the official library needs."""
    device.name, device.refuses = name, "full.so"
    report = verify_on(device, task())
    assert [run.library for run in report.runs] == ["ours"]
    assert f"it does not run on {name}" in report.baseline


def test_without_any_baseline(emulated: SavingDevice, task: MakeTask) -> None:
    """A device for which there is no official library has ours alone, and a name that says so."""
    report = verify_on(emulated, task(baseline=Baseline(library=None, name="none")))
    assert (report.baseline, [run.library for run in report.runs]) == ("none", ["ours"])


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("host", "host"),
        ("qemu-system:cortex-a53@128", "qemu-system_cortex-a53@128"),
        ("adb:127.0.0.1:5555", "adb_127.0.0.1%3A5555"),
        ("ssh:ssh://pi@board:22", "ssh_ssh%3A%2F%2Fpi@board%3A22"),
        ("adb:..", "adb_.."),
        ("adb:../../x\n", "adb_..%2F..%2Fx%0A"),
    ],
)
def test_folders_are_named_after_devices(name: str, folder: str) -> None:
    assert device_folder(name) == folder


def test_what_throttled_says_so(emulated: SavingDevice, task: MakeTask, make_output: MakeOutput) -> None:
    """A phone that grew too hot for its times has that as the reason why they are not judged."""

    class Phone(SavingDevice, CooledDevice):
        """A phone that is hot."""

        heat = "it throttled in every run"

        def __init__(self) -> None:
            SavingDevice.__init__(self, make_output)

    phone = Phone()
    phone.time_meaningful = False
    report = verify_on(phone, task())
    assert {line.reason for line in report.comparisons if line.unit == "ms"} == {"time: it throttled in every run"}


def test_what_became_hot_is_spared_the_rounds(device: SavingDevice, task: MakeTask) -> None:
    """A phone whose times mean nothing after the proofs is measured as briefly as one where they never did."""
    untouched = device.run

    def heating(request: RunRequest) -> RunnerOutput:
        device.time_meaningful = False
        return untouched(request)

    device.run = heating  # type: ignore[method-assign]
    verify_on(device, task())
    assert device.ran.count("full.so") == MEMORY_ROUNDS + 1


def test_what_goes_with_our_library_alone(device: SavingDevice, task: MakeTask) -> None:
    """Companions and the settings of the model; the baseline has as many threads, and what it does unasked."""
    given = task()
    companions = (Path("/libc++_shared.so"),)
    session = SessionSettings(load="map", threads=2, arena=False, configuration=(DIRECTLY,))
    subjects = tuple(replace(subject, session=session) for subject in given.subjects)
    verify_on(device, replace(given, subjects=subjects, delivery=replace(given.delivery, companions=companions)))
    asked = {(each.library.name, each.model.name, each.companions, each.session) for each in device.requests}
    assert asked == {
        ("ours.so", "tiny.ort", companions, session),
        ("full.so", "tiny.onnx", (), SessionSettings(threads=2, allow_spinning=True)),
    }
    assert len({each.runner for each in device.requests}) == 1


@pytest.mark.parametrize("time_meaningful", [True, False])
def test_what_is_in_doubt_is_measured_on(make_output: MakeOutput, task: MakeTask, *, time_meaningful: bool) -> None:
    """Until the verdict is clear, where times mean something; an emulated machine's memory does not vary."""

    class Unsteady(SavingDevice):
        """A device on which every other process of ours takes a tenth more memory than the baseline's."""

        def run(self, request: RunRequest) -> RunnerOutput:
            output = super().run(request)
            more = 11 if self.ran.count("ours.so") % 2 else 9
            peak = 1_000_000 * (more if request.library.name == "ours.so" and len(self.ran) < 40 else 10)
            return replace(output, memory=replace(output.memory, peak_rss_bytes=peak))

    device = Unsteady(make_output)
    device.time_meaningful = time_meaningful
    report = verify_on(device, task(budgets=Budgets(peak_rss_ratio=1.05)))
    verdict = next(line.verdict for line in report.comparisons if line.measure == "peak RSS")
    assert verdict is (Verdict.PASS if time_meaningful else Verdict.INCONCLUSIVE)
    assert device.ran.count("ours.so") > 1 + 9 if time_meaningful else device.ran.count("ours.so") == 1 + MEMORY_ROUNDS


class TracingDevice(SavingDevice):
    """A device whose runner leaves a profile when it is asked for one."""

    def run(self, request: RunRequest) -> RunnerOutput:
        output = super().run(request)
        if request.trace:
            assert request.outputs is not None
            (request.outputs / TRACE).write_text("[]")
        return output


def test_a_profile_lies_beside_the_outputs(make_output: MakeOutput, task: MakeTask, tmp_path: Path) -> None:
    """One more run for each model, and the report names the file from where it lies itself."""
    device = TracingDevice(make_output)
    report = verify_on(device, task(trace=True))
    assert report.traces == ("outputs/saving/tiny/trace.json",)
    assert (tmp_path / report.traces[0]).read_text() == "[]"
    assert sorted(path.name for path in (tmp_path / "outputs" / "saving" / "tiny").iterdir()) == ["only", TRACE]
    assert [request.trace for request in device.requests].count(True) == 1


def test_a_profile_that_fails_leaves_nothing(make_output: MakeOutput, task: MakeTask, tmp_path: Path) -> None:
    """The run's own diagnostic, the outputs as they were, and no half file."""

    class Failing(TracingDevice):
        """A device that fails in the middle of a profile."""

        def run(self, request: RunRequest) -> RunnerOutput:
            super().run(request)
            if request.trace:
                raise VerifyError("trace-unreadable", "the profile is cut off")
            return super().run(request)

    with pytest.raises(VerifyError, match="cut off"):
        verify_on(Failing(make_output), task(trace=True))
    assert [path.name for path in (tmp_path / "outputs" / "saving" / "tiny").iterdir()] == ["only"]


def test_progress_counts_every_run(emulated: SavingDevice, task: MakeTask) -> None:
    """From nothing to all, never back, with the model's name."""
    told: list[tuple[int, int, str]] = []
    verify_on(emulated, task(), lambda *words: told.append(words))
    assert (told[0], told[-1]) == ((0, 4, "parity of tiny"), (4, 4, "measuring tiny"))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


@pytest.fixture
def machine(tmp_path: Path) -> QemuSystem:
    """Give a machine that is killed for want of memory below 90 MiB."""
    return fake_machine(tmp_path, hungry_qemu(tmp_path / "qemu", enough_mib=90))


def in_files(task: Task, folder: Path) -> Task:
    """Return a task whose files are there, and whose references are what the machine's runner gives: nothing."""
    for name in ("runner", "ours.so", "tiny.ort", "tiny.onnx"):
        (folder / name).write_bytes(b"a file")
    case = replace(task.subjects[0].cases[0], folder=folder / "case")
    case.folder.mkdir()
    reference = replace(task.subjects[0].reference, folder=folder, cases=(CaseOutputs(name="only", outputs=()),))
    subject = replace(task.subjects[0], cases=(case,), reference=reference, same_graph=reference)
    return replace(task, subjects=(subject,), baseline=Baseline(library=None, name="none"))


def test_the_least_memory_is_found_when_asked_for(machine: QemuSystem, task: MakeTask, tmp_path: Path) -> None:
    """With the model's name, and with progress that never goes beyond what was announced."""
    told: list[tuple[int, int]] = []
    asked = in_files(task(least_memory=True), tmp_path)
    report = verify_on(machine, asked, lambda done, total, _: told.append((done, total)))
    (least,) = report.least_memory
    assert least.model == "tiny"
    assert least.too_little_mib < 90 <= least.enough_mib
    assert all(done <= total for done, total in told)
    assert verify_on(machine, replace(asked, least_memory=False)).least_memory == ()


def test_the_least_memory_of_a_machine_with_more(machine: QemuSystem, task: MakeTask, tmp_path: Path) -> None:
    """A model that needs more than the usual machine has is tried with what was asked for."""
    report = verify_on(machine.with_memory(512), in_files(task(least_memory=True), tmp_path))
    assert report.least_memory[0].tried[0] == (512, "enough")


def test_a_simulators_numbers_are_a_macs(
    emulated: SavingDevice, task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is judged, and every line says why."""
    monkeypatch.setattr(SavingDevice, "caveat", SimulatorDevice.caveat)
    emulated.memory_meaningful = False
    report = verify_on(emulated, task(budgets=Budgets(p50_ms=0.001, peak_rss_bytes=1)))
    assert report.verdict is Verdict.PASS
    reasons = {line.reason for line in report.comparisons}
    assert reasons == {
        f"{what}: what it takes on saving is a Mac's number, not a phone's" for what in ("memory", "time")
    }


def test_a_phone_is_reported_beforehand_what_is_run(make_output: MakeOutput, task: MakeTask) -> None:
    """Its app carries all that is run then, before the first has ended; no verdict in doubt asks for more."""

    class Phone(SavingDevice):
        def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
            self.asked = tuple(requests)
            assert not self.ran
            return super().run_all(self.asked)

    phone = Phone(make_output)
    phone.fails = {"other": RunnerEnded("model-refused", "no", returncode=4)}
    report = verify_on(phone, two_models(task(budgets=Budgets(peak_rss_ratio=1.0))))
    assert [failure.model for failure in report.failed_models] == ["other"]
    assert {run.model for run in report.runs} == {"tiny"}
    assert phone.requests == list(phone.asked)
    assert len(phone.asked) == 2 * (1 + 1 + 2 * ROUNDS)


@pytest.mark.parametrize(("order", "scale"), [("MLAS's", 2e-5), ("by eights", 2e-5), ("by fours", 3e-5)])
def test_where_convolutions_add_in_another_order_a_last_bit_may_differ(
    make_output: MakeOutput, task: MakeTask, monkeypatch: pytest.MonkeyPatch, order: str, scale: float
) -> None:
    """Of a number near 0.5, of which 0.0002 is left; of sums by fours a little more. No other model is allowed it."""
    monkeypatch.setattr(target, "adds_by_fours_here", lambda: order == "by fours")
    given, convolves = task(), order != "MLAS's"
    (subject,) = given.subjects
    save_array(subject.reference.folder / "only", "output_000", np.array([0.0002, 0.0001], np.float32))
    device = SavingDevice(make_output, (0.0002 + 2**-25, 0.0001))
    device.name = "host"
    reference = replace(subject.reference, convolves=convolves)
    found = verify_on(device, replace(given, subjects=(replace(subject, reference=reference),))).parity[0]
    assert found.verdict is (Verdict.PASS if convolves else Verdict.FAIL)
    assert found.same_graph_allowed == pytest.approx(0.0002 * (scale + 1e-5) + (2**-24 if convolves else 0.0), rel=1e-6)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_copy_that_does_not_round_has_to_agree_as_well(
    make_output: MakeOutput,
    task: MakeTask,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    wrong: bool,  # noqa: FBT001
) -> None:
    """The library runs it, too; as it ships it is nearer to floats than the full runtime, which is not its fault."""
    monkeypatch.setattr(target, "saturates_here", lambda: True)
    given = task()
    (subject,) = given.subjects
    official = replace(subject.reference, folder=tmp_path / "official", quantized=True)
    for folder, values in ((official.folder, (1.03, 2)), (tmp_path / "floats", (1, 2 + wrong / 10))):
        (folder / "only").mkdir(parents=True)
        save_array(folder / "only", "output_000", np.array(values, np.float32))
    exact = replace(subject.reference, folder=tmp_path / "floats")
    copy = replace(subject, reference=exact, same_graph=exact)
    subject = replace(subject, reference=official, same_graph=official, float_products=copy)
    device = SavingDevice(make_output)
    report = verify_on(device, replace(given, subjects=(subject,)))
    assert report.verdict is (Verdict.FAIL if wrong else Verdict.PASS)
    assert ("not rounded to 8 bits" in report.parity[0].reason) is wrong
