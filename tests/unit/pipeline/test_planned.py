"""From a request to a plan: what is refused, and before which work."""

import platform
import shutil
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnx_samples import model_of, value, write
from ortrim.base.tools import EMULATIONS
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.plan import digest
from ortrim.errors import Diagnostic, ExitCode, ParityError, PlanError, ToolError, UsageError, VerifyError
from ortrim.models.models import OrtModel
from ortrim.pipeline import verification
from ortrim.planning import models
from ortrim.planning import request as inputs
from ortrim.planning.models import converted_models
from ortrim.planning.planned import Planned, planned_for, planned_here
from ortrim.planning.request import Request, load
from pipeline_stages import Stages


def plan(stages: Stages, body: str = "", **changes: object) -> Planned:
    return planned_for(stages.request(body, **changes), stages.console)


def refused(stages: Stages, request: Request, *, to_run: bool = False) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        planned_for(request, stages.console, to_run=to_run)
    return caught.value


def test_a_request_becomes_a_plan(stages: Stages) -> None:
    """Model, operators, sources and the host's target."""
    made = plan(stages)
    assert stages.ran == ["prepare", "convert", "sources"]
    (target,) = made.plan.targets
    assert target.identifier == "linux-x64"
    assert target.job.operator_config == "ai.onnx;14;Relu\n"
    assert made.folder == stages.folder / "artifacts" / "sample" / digest(made.plan)[:12]


def test_other_names_of_targets_are_translated_and_that_is_said(stages: Stages) -> None:
    """In the buildspec and on the command line; the plan is that of the identifier."""
    body = '[[targets]]\nid = "linux-amd64"\n[[targets]]\nid = "linux-arm64"\n'
    made = plan(stages, body, target="linux-aarch64")
    assert [target.identifier for target in made.plan.targets] == ["linux-arm64"]
    said = stages.stdout.getvalue()
    assert "'targets[0].id': target 'linux-amd64' is linux-x64\n" in said
    assert "target linux-aarch64 is linux-arm64\n" in said
    named = plan(stages, body.replace("amd64", "x64"), target="linux-arm64")
    assert digest(named.plan) == digest(made.plan)


def test_a_model_in_blocks_of_16_is_planned_for_this_machine(stages: Stages) -> None:
    """What runs the models here, by the official library too, needs the processor that the targets promise."""
    made = planned_here(stages.request('level = "all"\nlayout = "nchwc16"\n'), stages.console)
    assert [target.job.cpu for target in made.plan.targets] == ["x86-64-v4"]
    made = planned_here(stages.request('level = "all"\nlayout = "nchwc8"\n'), stages.console)
    assert [target.job.cpu for target in made.plan.targets] == [""]


def test_a_profile_on_the_command_line_replaces_the_buildspecs(stages: Stages) -> None:
    """The plan is another one, and the buildspec's other keys stay."""
    made = plan(stages, profile="upstream")
    assert made.plan.targets[0].job.profile == "upstream"
    assert digest(made.plan) != digest(plan(stages).plan)


def test_the_plan_is_the_same_the_second_time(stages: Stages) -> None:
    """A rerun with nothing changed finds its own folder."""
    assert plan(stages).folder == plan(stages).folder


@pytest.mark.parametrize(
    "body",
    [
        '[[models.cases]]\nname = "one"\nseed = 1\n',
        "[models.tolerances.float32]\nabsolute = 0.5\n",
        "[budgets]\nlibrary_bytes = 7\n",
    ],
    ids=["cases", "tolerances", "budgets"],
)
def test_what_verification_depends_on_is_in_the_plan(stages: Stages, body: str) -> None:
    """Another case, tolerance or budget is another plan, so that no old report is taken for its own."""
    before, after = plan(stages), plan(stages, body)
    assert digest(before.plan) != digest(after.plan)
    assert digest(before.plan.targets[0].job) == digest(after.plan.targets[0].job)


def test_a_change_of_recorded_inputs_is_another_plan(stages: Stages) -> None:
    """Their content counts, not only their name."""
    body = '[[models.cases]]\nname = "one"\ndata = "one.npz"\n'
    np.savez(stages.folder / "one.npz", x=np.array([1.0], np.float32))
    before = plan(stages, body)
    np.savez(stages.folder / "one.npz", x=np.array([2.0], np.float32))
    assert digest(plan(stages, body).plan) != digest(before.plan)


def test_a_target_that_does_not_exist_is_refused_before_any_work(stages: Stages) -> None:
    """No model is fetched for a word that was misspelt."""
    error = refused(stages, stages.request(target="windows"))
    assert isinstance(error, UsageError)
    assert stages.ran == []


FOREIGN = ("linux-arm64", "linux-armhf", "linux-riscv64", "linux-arm64-musl")


def test_a_target_without_a_device_is_refused_before_compiling(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants to run the result is told in a second, not after a quarter of an hour, and how to get a device."""
    monkeypatch.setattr(shutil, "which", {"apt-get": "/usr/bin/apt-get"}.get)
    error = refused(stages, stages.request(target="linux"), to_run=True)
    assert isinstance(error, VerifyError)
    assert (error.code, error.exit_code, error.where) == ("no-device", ExitCode.VERIFY, ", ".join(FOREIGN))
    assert "apt-get install qemu-user-static; or " in error.hint
    assert "invoke plan" in error.hint
    assert stages.ran == []


@pytest.mark.parametrize("target", FOREIGN)
def test_a_target_whose_emulator_is_installed_is_not_refused(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    emulator = EMULATIONS[TARGETS[target].architecture.value].user.name
    monkeypatch.setattr(shutil, "which", {emulator: f"/usr/bin/{emulator}"}.get)
    made = planned_for(stages.request(target=target), stages.console, to_run=True)
    assert [each.identifier for each in made.plan.targets] == [target]


def test_a_target_without_a_device_can_be_planned(stages: Stages) -> None:
    made = plan(stages, target="linux-*")
    assert [target.identifier for target in made.plan.targets] == ["linux-x64", *FOREIGN]


@pytest.mark.parametrize(
    ("body", "target", "reference"),
    [
        pytest.param("", "linux-x64", "image-not-pinned", id="unpinned"),
        pytest.param(
            '[[targets]]\nid = "linux-x64"\ncompiler = "gcc"\n',
            "linux-x64",
            "compiler-not-in-image",
            id="gcc",
            marks=pytest.mark.needs("gcc"),
        ),
    ],
)
def test_an_image_that_cannot_be_made_is_refused_before_any_work(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, body: str, target: str, reference: str
) -> None:
    """No model is converted for a container that there will never be; a plan alone needs none."""
    pins = stages.folder / "pins"
    pins.mkdir()
    (pins / "images.toml").write_text('[bases.python]\nreference = "python:3.13"\n')
    monkeypatch.setenv("ORTRIM_PINS", str(pins))
    request = stages.request(body, target=target, container=ContainerOptions())
    assert refused(stages, request, to_run=True).code == reference
    assert stages.ran == []
    assert planned_for(request, stages.console).plan.targets


def test_a_bad_buildspec_is_refused_before_any_work(stages: Stages) -> None:
    """Nothing is fetched for a key that does not exist."""
    error = refused(stages, stages.request('colour = "red"\n'))
    assert error.exit_code is ExitCode.SPEC
    assert stages.ran == []


@pytest.mark.parametrize(
    ("case", "reference"),
    [
        ("inputs = { z = { value = 1.0 } }", "unknown-input"),
        ("dimensions = { batch = 2 }", "unknown-dimension"),
        ("inputs = { x = { shape = [2, 2] } }", "shape-mismatch"),
        ("inputs = { x = { value = 'text' } }", "wrong-value"),
    ],
)
def test_a_case_that_does_not_fit_is_refused_before_sources_and_compiling(
    stages: Stages, case: str, reference: str
) -> None:
    """Cases need only the model, so that a slip in one does not cost a build."""
    error = refused(stages, stages.request(f'[[models.cases]]\nname = "one"\n{case}\n'))
    assert (error.code, error.exit_code) == (reference, ExitCode.SPEC)
    assert "sources" not in stages.ran
    assert not [path for path in (stages.folder / "cache" / "cases").iterdir() if path.is_dir()]
    assert not (stages.folder / "artifacts").exists()


def test_cases_are_made_once_for_all_targets(stages: Stages) -> None:
    """They lie in the cache under a name of their own and are not written again."""
    made = plan(stages, '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\n')
    ((one, two),) = made.cases
    assert (one.name, two.name) == ("one", "two")
    assert (one.folder / "input_000.npy").is_file()
    assert one.folder.parent == two.folder.parent == stages.folder / "cache" / "cases"


def test_a_system_compiler_compiles_for_its_own_machine_only(stages: Stages) -> None:
    """What it would make of another target is a library for this one."""
    error = refused(stages, stages.request('[[targets]]\nid = "linux-arm64"\ncompiler = "gcc"\n', target="linux-arm64"))
    assert isinstance(error, PlanError)
    assert (error.code, error.exit_code) == ("no-cross-compiler", ExitCode.PLAN)
    assert 'compiler = "zig"' in error.hint
    assert stages.ran == []


def test_converting_needs_neither_sources_nor_cases(stages: Stages) -> None:
    models = converted_models(load(stages.request()), stages.console)
    assert stages.ran == ["prepare", "convert"]
    assert [operator.name for operator in models.operators.operators] == ["Relu"]


@pytest.mark.parametrize(
    ("system", "machine"), [("Windows", "AMD64"), ("Linux", "riscv64"), ("Darwin", "Power Macintosh"), ("", "")]
)
def test_a_host_that_nobody_knows_is_a_diagnostic(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert inputs.host_target() is None
    with pytest.raises(ToolError, match="neither compile nor run") as caught:
        inputs.require_host()
    assert caught.value.code == "unsupported-host"
    assert f"{system} on {machine}" in caught.value.why
    assert ("Subsystem" in caught.value.hint) == (system == "Windows")


def test_this_host_is_a_target() -> None:
    assert inputs.host_target() in TARGETS.values()


def test_locales_that_devices_need_are_said_before_anything_is_compiled(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library without exceptions ends the application where one is absent; that of C is everywhere."""
    converted: Callable[..., OrtModel] = vars(models)["convert"]

    def with_normalizer(*arguments: Any, **options: Any) -> OrtModel:
        return replace(converted(*arguments, **options), config="ai.onnx;10;StringNormalizer\n")

    monkeypatch.setattr(models, "convert", with_normalizer)
    ends = [value("x", TensorProto.STRING)], [value("y", TensorProto.STRING)]
    for locale, said in (("de_DE.UTF-8", True), ("C", False)):
        node = helper.make_node("StringNormalizer", ["x"], ["y"], locale=locale)
        write(stages.folder / "tiny.onnx", model_of([node], *ends))
        plan(stages, '[[models.cases]]\nname = "c"\n')
        assert ("needs the locale 'de_DE.UTF-8' on every device" in stages.stdout.getvalue()) is said
        stages.stdout.truncate(0)


def test_models_are_proved_for_targets_that_nothing_here_runs(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they ship: an application could not load them either; what conversion changes ends the command here."""
    made = plan(stages, '[[targets]]\nid = "android-arm64-v8a"\n', target="android-arm64-v8a")
    subject = SimpleNamespace(reference=SimpleNamespace(coverage=SimpleNamespace(executed=1, nodes=1)))
    sessions = []

    def proved(*given: Any, **_: Any) -> SimpleNamespace:
        sessions.append(given[3])
        return subject

    changed = ParityError("conversion-changes-outputs", "conversion changes output 'y'")
    monkeypatch.setattr(verification, "subject_of", proved)
    monkeypatch.setattr(verification, "with_draws_given", lambda given, _: given)
    monkeypatch.setattr(verification, "changed_outputs", lambda *_, here: () if here else (changed,))
    with pytest.raises(ParityError, match="conversion changes"):
        verification.make_references(made, stages.request(), stages.console)
    assert sessions == [model.session for model in made.plan.models_for(TARGETS["android-arm64-v8a"])]
