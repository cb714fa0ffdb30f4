"""The steps of workflows as a runner calls them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.cli.tasks import pins
from ortrim.compiling.plan import BuildPlan
from ortrim.github import jobs, runner_setup
from ortrim.github.workflow_files import FOLDER, NAMES
from ortrim.parity.measurements import Verdict
from ortrim.planning.request import Request
from ortrim.platforms import ANDROID, PLATFORMS
from program_runs import Run, answer
from sample_plans import sample_plan, sample_target
from sample_reports import recorded_report


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be a runner of GitHub's: its files lie in the folder that is returned."""
    for name in ("OUTPUT", "STEP_SUMMARY"):
        (tmp_path / name).touch()
        monkeypatch.setenv(f"GITHUB_{name}", str(tmp_path / name))
    monkeypatch.setenv("ORTRIM_INPUTS", json.dumps({"target": "linux-*"}))
    monkeypatch.delenv("ORTRIM_PLAN", raising=False)
    monkeypatch.delenv("ORTRIM_NEEDS", raising=False)
    return tmp_path


def outputs(runner: Path) -> dict[str, str]:
    """Read a step's outputs, each of one line."""
    lines = (runner / "OUTPUT").read_text().splitlines()
    return {lines[n].partition("<<")[0]: lines[n + 1] for n in range(0, len(lines), 3)}


PLAN: BuildPlan = sample_plan(selected=tuple(map(sample_target, ("linux-x64", "android-x86_64"))))


def test_a_plan_that_came_along_has_no_deliveries(ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is empty, which is how the workflow's condition reads it."""
    monkeypatch.setenv("ORTRIM_INPUTS", json.dumps({"plan": "eNqr"}))
    answer(monkeypatch, jobs, "plan_run", (PLAN, "text"))
    assert ortrim("ci.plan").code == 0
    assert outputs(runner)["delivered"] == ""


@pytest.mark.parametrize("task", [("ci.plan",), ("ci.deliver", "--target", "linux-x64")])
@pytest.mark.parametrize("inputs", [None, "", "{", '{"target": "$(id)"}'])
def test_without_inputs_that_can_be_read_nothing_is_done(
    ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch, task: tuple[str, ...], inputs: str | None
) -> None:
    monkeypatch.delenv("ORTRIM_INPUTS") if inputs is None else monkeypatch.setenv("ORTRIM_INPUTS", inputs)
    ended = ortrim(*task)
    assert ended.code == 2
    assert "workflow-inputs" in ended.err
    assert (runner / "OUTPUT").read_text() == ""


def test_compiling_takes_the_plan_from_the_environment(
    ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTRIM_PLAN", "abc")
    calls = answer(monkeypatch, jobs, "compile_planned", (Path("compiled/x.tar.gz"),))
    ended = ortrim("ci.compile", "--target", "linux-x64")
    assert (ended.code, ended.out) == (0, "compiled/x.tar.gz\n")
    assert calls[0][:3] == ("abc", "linux-x64", Path("compiled"))


def test_a_delivery_is_summed_up_on_the_run_s_page(ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes, memory and parity, also of one that misses its budget, which ends the step as it ends a build."""
    report = recorded_report()
    missed = replace(report.comparisons[0], verdict=Verdict.FAIL)
    bad = replace(report, comparisons=(missed, *report.comparisons[1:]), verdict=Verdict.FAIL)
    for reports, code in (((report,), 0), ((bad,), 3)):
        answer(monkeypatch, jobs, "deliver_compiled", reports)
        assert ortrim("ci.deliver", "--target", "linux-x64").code == code
    text = (runner / "STEP_SUMMARY").read_text()
    assert text.count("## ✓ silero-vad for linux-x64") == 1
    assert text.count("## ✗ silero-vad for linux-x64") == 1


def test_a_machine_is_prepared_for_what_comes(ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiling job needs no emulator, a delivery no NDK; one of x86-64 Android needs a phone."""
    called: list[str] = []
    for platform in PLATFORMS:
        monkeypatch.setattr(platform, "require_package_tools", lambda _: called.append("package tools"))
    for name in ("prepare_sdk", "install_emulators", "install_layout_emulator", "start_phone"):
        monkeypatch.setattr(runner_setup, name, lambda *_, name=name: called.append(name))
    tools = ["package tools"] * len(PLATFORMS)
    ortrim("ci.prepare", "--target", "linux-armhf")
    assert called == tools + ["prepare_sdk"] * len(PLATFORMS)
    called.clear()
    ortrim("ci.prepare", "--target", "linux-armhf", "--to-verify")
    assert called == [*tools, "install_emulators", "install_layout_emulator"]
    called.clear()
    ortrim("ci.prepare", "--target", "android-arm64-v8a,android-x86_64", "--to-verify")
    assert called == [*tools, "install_emulators", "install_layout_emulator", "start_phone"]


def test_a_job_names_its_ndk_and_its_phone(ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not named is the version that ONNX Runtime is pinned with, and the phone of its own scripts."""
    monkeypatch.setattr(ANDROID, "require_package_tools", lambda _: None)
    calls = {
        name: answer(monkeypatch, runner_setup, name, None) for name in ("prepare_sdk", "prefer_ndk", "start_phone")
    }
    ortrim("ci.prepare", "--target", "android-x86_64", "--ndk", "28.0.13004108")
    asked = {call[0]: call[1] for call in calls["prepare_sdk"]}
    assert asked == {**dict.fromkeys(PLATFORMS, ()), ANDROID: ("28.0.13004108",)}
    assert calls["prefer_ndk"] == [("28.0.13004108",)]
    ortrim("ci.prepare", "--target", "android-x86_64", "--to-verify", "--api", "35")
    ortrim("ci.prepare", "--target", "android-x86_64", "--to-verify")
    assert [call[0] for call in calls["start_phone"]] == [35, 29]


def test_workflows_are_rendered_into_the_repository(ortrim: Run) -> None:
    """Then they are up to date; a second time nothing is written."""
    ended = ortrim("workflows")
    assert (ended.code, ended.out.split()) == (0, [str(FOLDER / f"{name}.yml") for name in NAMES])
    assert ortrim("workflows", "--check").code == 0
    assert ortrim("workflows").out == ""
    (Path.cwd() / FOLDER / "ci.yml").write_text("")
    ended = ortrim("workflows", "--check")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: workflow-outdated")


def test_pins_are_proposed_with_what_was_built(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a build the text says so, and when a job failed; the address is the answer, or that there is nothing."""
    bodies: list[str] = []
    answers = iter(["https://example.com/7", None, None])

    def propose(_: Path, body: str) -> str | None:
        bodies.append(body)
        return next(answers)

    monkeypatch.setattr("ortrim.cli.tasks.pins.propose_pins", propose)
    assert ortrim("pins.propose").out == "https://example.com/7\n"
    assert "nothing to propose" in ortrim("pins.propose").out
    note = "\nThe workflows are still those of the old pins: run `invoke workflows` on this branch.\n"
    assert bodies == [f"Nothing was built with these pins.\n{note}"] * 2
    monkeypatch.setenv("ORTRIM_NEEDS", '{"update": {"result": "failure"}}')
    ortrim("pins.propose")
    assert "\nNot everything could be brought up to date: " in bodies[-1]


def test_versions_are_compared(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each report's verdict is a line; a missed budget is for the pull request to tell, and no error."""
    report = replace(recorded_report(), verdict=Verdict.FAIL)
    monkeypatch.setattr(pins, "build_versions", lambda *_: (report, replace(report, ort_version="1.24.1")))
    ended = ortrim("pins.compare")
    assert ended.code == 0
    assert [line.partition(":")[0] for line in ended.out.splitlines()] == [
        "ONNX Runtime 1.21.0", "ONNX Runtime 1.24.1"
    ]  # fmt: skip


def test_an_index_is_made_for_a_version(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buildspec's own without one."""
    asked: list[str | None] = []

    def make(request: Request, _: object) -> tuple[()]:
        asked.append(request.version)
        return ()

    monkeypatch.setattr(pins, "make_unit_index", make)
    assert ortrim("pins.index", "--version", "1.24.1").code == 0
    assert ortrim("pins.index").code == 0
    assert asked == ["1.24.1", None]


@pytest.mark.parametrize(("task", "name"), [("ci.app", "compile_app"), ("ci.farm", "verify_on_farms")])
def test_farms_are_reported_what_the_run_was_asked_for(
    ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch, task: str, name: str
) -> None:
    """From the same document as every other step."""
    monkeypatch.setenv("ORTRIM_INPUTS", json.dumps({"target": "android", "devices": "firebase:a.arm-34"}))
    (call,) = [answer(monkeypatch, jobs, name, (Path("harness"),) if task == "ci.app" else (recorded_report(),))]
    assert ortrim(task).code == 0
    assert call[0][0].devices == ("firebase:a.arm-34",)
    assert ("silero-vad for linux-x64" in (runner / "STEP_SUMMARY").read_text()) == (task == "ci.farm")


def test_a_farm_without_its_target_is_refused_in_the_plan(
    ortrim: Run, runner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is handed to later jobs."""
    monkeypatch.setenv("ORTRIM_INPUTS", json.dumps({"devices": "firebase:a.arm-34"}))
    answer(monkeypatch, jobs, "plan_run", (PLAN, "text"))
    ended = ortrim("ci.plan")
    assert "no-farm-target" in ended.err
    assert (runner / "OUTPUT").read_text() == ""


@pytest.mark.parametrize(
    "words",
    [
        *(
            ("pins.update", *words)
            for words in (
                (), ("--version", "1.21.0", "--actions"), ("--images", "--actions"), ("--latest", "--version", "1.21.0")
            )
        ),
        ("release.draft", "--tag", "v1.0.0", "--files", "x", "--attested", "no"),
    ],
)  # fmt: skip
def test_a_step_with_impossible_options_is_refused(ortrim: Run, words: tuple[str, ...]) -> None:
    """Pins are updated of one kind at a time."""
    ended = ortrim(*words)
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: bad-option")


def test_packages_are_pinned_alone(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "update_requirements", lambda _: (Path("onnx.txt"),))
    ended = ortrim("pins.update", "--requirements")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "onnx.txt")
    assert ortrim("pins.update", "--requirements", "--images").code == 2
