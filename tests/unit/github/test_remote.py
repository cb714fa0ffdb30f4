"""A build over several machines: each job does its part with what the ones before it left."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from finished_builds import leave_compiled
from ortrim.base.json import to_json
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import PlannedTarget
from ortrim.compiling.workspace import finished_build
from ortrim.errors import BuildError, PlanError, ToolError, UsageError
from ortrim.github import jobs, plan_input
from ortrim.github.jobs import compile_planned, deliver_compiled, mark_delivery, plan_run, sdk_versions, targets_named
from ortrim.github.plan_input import remote_payload
from ortrim.github.workflow_files import WorkflowInputs
from ortrim.package.manifest import FAILED
from ortrim.parity.measurements import Verdict
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.history import BESIDE, AcceptedFile
from ortrim.pipeline.transfer import export_compiled
from ortrim.platforms import ANDROID, APPLE, LINUX
from ortrim.platforms.android.jni import BINDING
from ortrim.report.history import AcceptedBuild, entry_of
from pipeline_stages import Stages
from refusing import refused
from sample_reports import recorded_report


@pytest.fixture
def asked(stages: Stages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., WorkflowInputs]:
    """Return a function that makes a run's inputs for a buildspec that is here."""
    stages.request()
    monkeypatch.chdir(tmp_path)
    from ortrim.planning import planned  # noqa: PLC0415 - what the fixture put in its place

    monkeypatch.setattr(plan_input, "fetch_sources", planned.fetch_sources)  # type: ignore[attr-defined]

    def inputs(target: str = "linux-x64", plan: str = "") -> WorkflowInputs:
        return WorkflowInputs(spec=PurePosixPath("sample.toml"), target=target, profile=None, plan=plan)

    return inputs


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    made: list[str] = []

    class Executor:
        def run(self, job: Any) -> None:
            made.append(job.target.identifier)

        def run_runner(self, job: Any) -> None:
            made.append(f"runner {job.target.identifier}")

        def run_beside(self, _toolchain: Any, folder: Path, _make: Any) -> None:
            made.append("jni library")
            folder.mkdir(parents=True)
            (folder / BINDING).touch()

    monkeypatch.setattr(jobs, "native_executor", lambda *_: Executor())
    monkeypatch.setattr("ortrim.platforms.android.jni.find_jdk", lambda *_: None)

    def export(target: PlannedTarget, destination: Path) -> Path:
        leave_compiled(target)
        return export_compiled(target, destination)

    monkeypatch.setattr(jobs, "export_compiled", export)
    return made


def test_the_plan_of_a_run_is_that_of_its_buildspec(asked: Callable[..., WorkflowInputs], stages: Stages) -> None:
    plan, _ = plan_run(asked("linux-x64,linux-armhf"), stages.console)
    assert [target.identifier for target in plan.targets] == ["linux-x64", "linux-armhf"]


def test_a_plan_that_came_along_needs_no_model(asked: Callable[..., WorkflowInputs], stages: Stages) -> None:
    plan, text = plan_run(asked(), stages.console)
    stages.ran.clear()
    assert plan_run(asked(plan=text), stages.console) == (remote_payload(plan, plan.targets), text)
    assert stages.ran == ["sources"]


def test_each_target_is_compiled_by_itself(
    asked: Callable[..., WorkflowInputs], stages: Stages, compiler: list[str], tmp_path: Path
) -> None:
    """With the sources of the plan, and an archive of it is left; no model is needed."""
    _, text = plan_run(asked("linux-x64,linux-arm64"), stages.console)
    stages.ran.clear()
    (archive,) = compile_planned(text, "linux-arm64", tmp_path / "compiled", stages.console)
    assert archive == tmp_path / "compiled" / "compiled-linux-arm64.tar.gz"
    assert compiler == ["linux-arm64", "runner linux-arm64"]
    assert stages.ran == ["sources"]


def test_a_target_that_is_not_in_the_plan_is_refused(asked: Callable[..., WorkflowInputs], stages: Stages) -> None:
    _, text = plan_run(asked(), stages.console)
    error = refused(UsageError, compile_planned, text, "linux-armhf", Path("compiled"), stages.console)
    assert error.code == "no-such-target"
    assert "linux-x64" in error.hint


@pytest.mark.parametrize("text", ["", "x", "eNqrVkrLL1KyUlBKSixSqgUAIJkEXA=="])
def test_without_a_plan_nothing_is_compiled(asked: Callable[..., WorkflowInputs], stages: Stages, text: str) -> None:
    with pytest.raises(PlanError):
        compile_planned(text, "linux-x64", Path("compiled"), stages.console)


@pytest.fixture
def second_half(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Let building, verifying and handing over do nothing but say with what they were called, or of which commit.

    What is handed over is a folder with no more than its marks.
    """
    made: list[tuple[str, Any]] = []

    def stage(name: str, result: Any) -> Callable[..., Any]:
        def run(first: Any, *more: Any) -> Any:
            made.append((name, first))
            return result

        return run

    monkeypatch.setattr(jobs, "checked_out_commit", lambda _: 40 * "a")

    def hand_over(_: Any, destination: Path, commit: str, failure: str) -> None:
        made.append(("hand over", commit))
        destination.mkdir()
        mark_delivery(destination, failure)

    report = recorded_report()
    monkeypatch.setattr(jobs, "build", stage("build", (report,)))
    monkeypatch.setattr(jobs, "verify_again", stage("verify", (replace(report, name="further"),)))
    monkeypatch.setattr(jobs, "hand_over", hand_over)
    monkeypatch.setattr(jobs, "add_reports", stage("add reports", ()))
    return made


def test_what_was_compiled_elsewhere_is_delivered(
    asked: Callable[..., WorkflowInputs],
    stages: Stages,
    compiler: list[str],
    second_half: list[tuple[str, Any]],
    tmp_path: Path,
) -> None:
    """It counts as built here, so that nothing is compiled again."""
    made = asked()
    plan, text = plan_run(made, stages.console)
    compile_planned(text, "linux-x64", tmp_path / "compiled", stages.console)
    reports = deliver_compiled(made, "linux-x64", tmp_path / "compiled", tmp_path / "delivery", stages.console)
    assert reports == (recorded_report(),)
    assert [name for name, _ in second_half] == ["build", "hand over"]
    assert dict(second_half)["hand over"] == 40 * "a"
    assert finished_build(plan.targets[0].job).is_dir()
    assert not (tmp_path / "delivery" / FAILED).exists()


@pytest.mark.usefixtures("compiler", "second_half")
@pytest.mark.parametrize("accepted", [False, True])
def test_a_delivery_that_did_not_pass_says_so(
    asked: Callable[..., WorkflowInputs],
    stages: Stages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    accepted: bool,  # noqa: FBT001
) -> None:
    report = recorded_report()
    if accepted:
        smaller = replace(report, size=replace(report.size, file_bytes=report.size.file_bytes // 2))
        entry = AcceptedBuild(entry=entry_of(smaller, ""), accepted_at="2026-01-01T00:00:00+00:00", note="")
        (tmp_path / f"sample{BESIDE}").write_text(to_json(AcceptedFile(builds=(entry,))))
    else:
        missed = replace(report.comparisons[0], verdict=Verdict.FAIL)
        report = replace(report, comparisons=(missed, *report.comparisons[1:]), verdict=Verdict.FAIL)
    monkeypatch.setattr(jobs, "build", lambda *_: (report,))
    made = asked()
    compile_planned(plan_run(made, stages.console)[1], "linux-x64", tmp_path / "compiled", stages.console)
    deliver_compiled(made, "linux-x64", tmp_path / "compiled", tmp_path / "delivery", stages.console)
    assert (tmp_path / "delivery" / FAILED).read_text() == ("regression\n" if accepted else "budget-missed\n")


def test_an_android_package_is_verified_on_a_phone(
    asked: Callable[..., WorkflowInputs],
    stages: Stages,
    compiler: list[str],
    second_half: list[tuple[str, Any]],
    tmp_path: Path,
) -> None:
    targets = "android-arm64-v8a,android-x86_64"
    made = asked(targets)
    compile_planned(plan_run(made, stages.console)[1], targets, tmp_path / "compiled", stages.console)
    assert compiler[:3] == ["android-arm64-v8a", "runner android-arm64-v8a", "jni library"]
    reports = deliver_compiled(made, targets, tmp_path / "compiled", tmp_path / "delivery", stages.console)
    assert [report.name for report in reports] == [recorded_report().name, "further"]
    assert [name for name, _ in second_half] == ["build", "hand over", "verify", "add reports"]
    request = dict(second_half)["verify"]
    assert (request.target, request.devices, request.elsewhere) == ("android-x86_64", ("adb",), True)


@pytest.mark.usefixtures("compiler", "second_half")
def test_a_phone_that_ends_the_job_leaves_no_sound_delivery(
    asked: Callable[..., WorkflowInputs], stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is uploaded all the same, and says that it was not verified to the end."""

    def fails(*_: Any) -> None:
        raise ToolError("tool-timeout", "adb does not answer")

    monkeypatch.setattr(jobs, "verify_again", fails)
    made = asked("android-x86_64")
    _, text = plan_run(made, stages.console)
    compile_planned(text, "android-x86_64", tmp_path / "compiled", stages.console)
    with pytest.raises(ToolError):
        deliver_compiled(made, "android-x86_64", tmp_path / "compiled", tmp_path / "delivery", stages.console)
    assert (tmp_path / "delivery" / FAILED).read_text() == "not-verified\n"


def test_what_was_not_compiled_is_not_delivered(
    asked: Callable[..., WorkflowInputs], stages: Stages, second_half: list[tuple[str, Any]], tmp_path: Path
) -> None:
    assert (
        refused(
            BuildError, deliver_compiled, asked(), "linux-x64", tmp_path, tmp_path / "delivery", stages.console
        ).code
        == "not-compiled"
    )
    assert second_half == []


@pytest.mark.parametrize("text", ["", "linux", "linux-x64,", "linux-*", "linux-x64 linux-arm64", "ios-armv7"])
def test_steps_take_identifiers_alone(text: str) -> None:
    """They come from the matrix, which has no patterns."""
    assert refused(UsageError, targets_named, text).code == "no-such-target"
    assert [each.identifier for each in targets_named("linux-x64,android-x86")] == ["linux-x64", "android-x86"]


def test_the_ndk_is_that_of_the_plan(asked: Callable[..., WorkflowInputs], stages: Stages) -> None:
    """Without a plan the pinned one; a target for Linux needs none."""
    android, linux = (TARGETS["android-x86_64"],), (TARGETS["linux-x64"],)
    _, text = plan_run(asked("android-x86_64,linux-x64"), stages.console)
    pinned = runtime_pins("1.21.0").ndk
    assert sdk_versions(ANDROID, text, android) == sdk_versions(ANDROID, "", android) == (pinned,)
    assert sdk_versions(LINUX, text, linux) == sdk_versions(LINUX, "", linux) == ()


def test_the_xcode_is_that_of_the_plan(asked: Callable[..., WorkflowInputs], stages: Stages) -> None:
    """Planned on any machine with the pinned one, Macs' own libraries too; which is in no plan for Linux."""
    apple = (TARGETS["ios-arm64"], TARGETS["macos-x86_64"])
    plan, text = plan_run(asked("ios-arm64,macos-x86_64,linux-x64"), stages.console)
    pinned = runtime_pins("1.21.0").apple
    assert pinned is not None
    assert sdk_versions(APPLE, text, apple) == sdk_versions(APPLE, "", apple) == (pinned.xcode,)
    kinds = {target.job.toolchain.kind for target in plan.targets if target.job.apple}
    assert kinds == {"xcode"}
