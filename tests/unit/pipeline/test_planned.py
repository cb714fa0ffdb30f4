"""From a request to a plan: what is refused, and before which work."""

import io
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fake_sources import private_cache
from onnx_samples import model_of, relu, value, write
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.base.tools import EMULATIONS
from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.plan import digest
from ortrim.errors import Diagnostic, ExitCode, ParityError, PlanError, ToolError, UsageError, VerifyError
from ortrim.models.convert import Conversion
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.pipeline import verification
from ortrim.planning import conversions as kept
from ortrim.planning import models
from ortrim.planning import models as module
from ortrim.planning import request as inputs
from ortrim.planning.models import cases_of, converted_models, ready_models, wants_cases
from ortrim.planning.planned import Planned, planned_for, planned_here
from ortrim.planning.request import Request, load, require_known
from pipeline_stages import Stages
from prepared_by_steps import STEPS, after_steps
from refusing import refused


def planned(stages: Stages, body: str = "", **changes: object) -> Planned:
    return planned_for(stages.request(body, **changes), stages.console)


def unplanned(stages: Stages, request: Request, *, to_run: bool = False) -> Diagnostic:
    return refused(Diagnostic, planned_for, request, stages.console, to_run=to_run)


def test_a_request_becomes_a_plan(stages: Stages) -> None:
    made = planned(stages)
    assert stages.ran == ["prepare", "convert", "sources"]
    (target,) = made.plan.targets
    assert target.identifier == "linux-x64"
    assert target.job.operator_config == "ai.onnx;14;Relu\n"
    assert made.folder == stages.folder / "artifacts" / "sample" / digest(made.plan)[:12]


def test_other_names_of_targets_are_translated_and_that_is_said(stages: Stages) -> None:
    """In the buildspec and on the command line; the plan is that of the identifier."""
    body = '[[targets]]\nid = "linux-amd64"\n[[targets]]\nid = "linux-arm64"\n'
    made = planned(stages, body, target="linux-aarch64")
    assert [target.identifier for target in made.plan.targets] == ["linux-arm64"]
    said = stages.stdout.getvalue()
    assert "'targets[0].id': target 'linux-amd64' is linux-x64\n" in said
    assert "target linux-aarch64 is linux-arm64\n" in said
    named = planned(stages, body.replace("amd64", "x64"), target="linux-arm64")
    assert digest(named.plan) == digest(made.plan)


def test_a_model_in_blocks_of_16_is_planned_for_this_machine(stages: Stages) -> None:
    """What runs the models here, by the official library too, needs the processor that the targets promise."""
    made = planned_here(stages.request('level = "all"\nlayout = "nchwc16"\n'), stages.console)
    assert [target.job.cpu for target in made.plan.targets] == ["x86-64-v4"]
    made = planned_here(stages.request('level = "all"\nlayout = "nchwc8"\n'), stages.console)
    assert [target.job.cpu for target in made.plan.targets] == [""]


def test_a_profile_on_the_command_line_replaces_the_buildspecs(stages: Stages) -> None:
    """The plan is another one, and the buildspec's other keys stay."""
    made = planned(stages, profile="upstream")
    assert made.plan.targets[0].job.profile == "upstream"
    assert digest(made.plan) != digest(planned(stages).plan)


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
    before, after = planned(stages), planned(stages, body)
    assert digest(before.plan) != digest(after.plan)
    assert digest(before.plan.targets[0].job) == digest(after.plan.targets[0].job)


def test_a_change_of_recorded_inputs_is_another_plan(stages: Stages) -> None:
    body = '[[models.cases]]\nname = "one"\ndata = "one.npz"\n'
    np.savez(stages.folder / "one.npz", x=np.array([1.0], np.float32))
    before = planned(stages, body)
    np.savez(stages.folder / "one.npz", x=np.array([2.0], np.float32))
    assert digest(planned(stages, body).plan) != digest(before.plan)


def test_a_target_that_does_not_exist_is_refused_before_any_work(stages: Stages) -> None:
    """No model is fetched for a word that was misspelt."""
    error = unplanned(stages, stages.request(target="windows"))
    assert isinstance(error, UsageError)
    assert stages.ran == []


FOREIGN = ("linux-arm64", "linux-armhf", "linux-riscv64", "linux-arm64-musl")


def test_a_target_without_a_device_is_refused_before_compiling(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants to run the result is told in a second, not after a quarter of an hour, and how to get a device."""
    monkeypatch.setattr(shutil, "which", {"apt-get": "/usr/bin/apt-get"}.get)
    error = unplanned(stages, stages.request(target="linux"), to_run=True)
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
    made = planned(stages, target="linux-*")
    assert [target.identifier for target in made.plan.targets] == ["linux-x64", *FOREIGN]


@pytest.mark.parametrize(
    ("body", "target", "reference"),
    [
        pytest.param("", "linux-x64", "image-not-pinned", id="unpinned"),
        pytest.param(
            '[[targets]]\nid = "android-x86_64"\n[android]\ntoolchain = "ndk"\n',
            "android-x86_64",
            "image-not-pinned",
            id="ndk",
        ),
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
    assert unplanned(stages, request, to_run=True).code == reference
    assert stages.ran == []
    assert planned_for(request, stages.console).plan.targets


def test_a_bad_buildspec_is_refused_before_any_work(stages: Stages) -> None:
    """Nothing is fetched for a key that does not exist."""
    error = unplanned(stages, stages.request('colour = "red"\n'))
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
    error = unplanned(stages, stages.request(f'[[models.cases]]\nname = "one"\n{case}\n'))
    assert (error.code, error.exit_code) == (reference, ExitCode.SPEC)
    assert "sources" not in stages.ran
    assert not [path for path in (stages.folder / "cache" / "cases").iterdir() if path.is_dir()]
    assert not (stages.folder / "artifacts").exists()


def test_cases_are_made_once_for_all_targets(stages: Stages) -> None:
    """They lie in the cache under a name of their own and are not written again."""
    made = planned(stages, '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\n')
    ((one, two),) = made.cases
    assert (one.name, two.name) == ("one", "two")
    assert (one.folder / "input_000.npy").is_file()
    assert one.folder.parent == two.folder.parent == stages.folder / "cache" / "cases"


def test_a_system_compiler_compiles_for_its_own_machine_only(stages: Stages) -> None:
    """What it would make of another target is a library for this one."""
    error = unplanned(
        stages, stages.request('[[targets]]\nid = "linux-arm64"\ncompiler = "gcc"\n', target="linux-arm64")
    )
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
        planned(stages, '[[models.cases]]\nname = "c"\n')
        assert ("needs the locale 'de_DE.UTF-8' on every device" in stages.stdout.getvalue()) is said
        stages.stdout.truncate(0)


def test_models_are_proved_for_targets_that_nothing_here_runs(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they ship: an application could not load them either; what conversion changes ends the command here."""
    made = planned(stages, '[[targets]]\nid = "android-arm64-v8a"\n', target="android-arm64-v8a")
    subject = SimpleNamespace(reference=SimpleNamespace(coverage=SimpleNamespace(executed=1, nodes=1)))
    sessions = []

    def proved(*given: Any, **_: Any) -> SimpleNamespace:
        sessions.append(given[3])
        return subject

    changed = ParityError("conversion-changes-outputs", "conversion changes output 'y'")
    monkeypatch.setattr(verification, "subject_of", proved)
    monkeypatch.setattr(verification, "with_draws_given", lambda given, _: given)
    monkeypatch.setattr(verification, "with_float_products", lambda given, _: given)
    monkeypatch.setattr(verification, "changed_outputs", lambda *_, here: () if here else (changed,))
    with pytest.raises(ParityError, match="conversion changes"):
        verification.make_references(made, stages.request(), stages.console)
    assert sessions == [model.session for model in made.plan.models_for(TARGETS["android-arm64-v8a"])]


def test_known_names_pass() -> None:
    require_known("no-such-model", "--only", ("b", "a"), ("a", "b"))
    require_known("no-such-model", "--only", (), ())


@pytest.mark.parametrize(("name", "hint"), [("vda", "did you mean 'vad'?"), ("x" * 500, "there are: vad, ocr")])
def test_an_unknown_name_is_refused(name: str, hint: str) -> None:
    error = refused(UsageError, require_known, "no-such-model", "--only", ("vad", name), ("vad", "ocr"))
    assert (error.code, error.where, error.hint) == ("no-such-model", "--only", hint)
    assert len(error.what) < 130


CONSOLE = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})


@pytest.fixture(name="loaded")
def fixture_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedSpec:
    """Load a buildspec whose first model has a step, and whose second has none."""
    private_cache(tmp_path, monkeypatch)
    write(tmp_path / "m.onnx", relu())
    models = (f'[[models]]\nname = "{name}"\npath = "m.onnx"\n' for name in ("one", "two"))
    (tmp_path / "two.toml").write_text(STEPS.join(models) + '[[targets]]\nid = "linux-x64"\n')
    return load(Request(spec=tmp_path / "two.toml"))


def test_a_model_with_steps_is_the_one_after_them(
    loaded: LoadedSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_steps(monkeypatch, tmp_path, model_of([helper.make_node("Abs", ["x"], ["y"])]))
    first, second = ready_models(loaded, CONSOLE)
    assert (first.model.path, first.steps) == (tmp_path / "after.onnx", ("simplify",))
    assert (second.model.facts.sha256, second.steps) == (sha256_of(tmp_path / "m.onnx"), ())
    assert first.preparation
    assert cases_of(first, 0, loaded) == first.preparation.cases
    assert [case.name for case in cases_of(second, 1, loaded)] == ["default"]


def test_no_runtime_is_asked_for_models_as_given(loaded: LoadedSpec, monkeypatch: pytest.MonkeyPatch) -> None:

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "full_runtime", refuse)
    assert [each.steps for each in ready_models(loaded, CONSOLE, given=True)] == [(), ()]
    with pytest.raises(AssertionError):
        ready_models(loaded, CONSOLE)


@pytest.mark.parametrize(
    ("kind", "shape", "classic", "wanted"),
    [
        (TensorProto.FLOAT, (1, 3), False, False),
        (TensorProto.FLOAT, (1, 3), True, True),
        (TensorProto.FLOAT, ("n", 3), False, True),
        (TensorProto.FLOAT, None, False, True),
        (TensorProto.STRING, (1,), False, True),
        (TensorProto.INT64, (1, 16), False, True),
        (TensorProto.BOOL, (), False, True),
    ],
)
def test_cases_are_sought_where_default_values_show_little(
    kind: int,
    shape: tuple[int | str, ...] | None,
    classic: bool,  # noqa: FBT001
    wanted: bool,  # noqa: FBT001
) -> None:
    """A text that no table knows, or a number that leads to one row, proves nothing about the others."""
    opsets = (("", 17), ("ai.onnx.ml", 3)) if classic else (("", 17),)
    node = helper.make_node("Identity", ["x"], ["y"])
    model = model_of([node], [value("x", kind, shape)], [value("y", kind, shape)], opsets=opsets)
    assert wants_cases(facts_of(model, "a" * 64, 1, "here")) is wanted


def weights(name: str, shape: Sequence[int], kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, kind), name)


def filtering(*filters: int, product: int = 0, constant: bool = False, size: int = 8) -> onnx.ModelProto:
    own, spare = weights("w", filters), weights("spare", (product,))
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=own))
    shape = (1, filters[1], *(size for _ in filters[2:]))
    given = [spare] if constant else [own, spare]
    return model_of(nodes, [value("x", shape=shape)], [value("y", shape=None)], initializers=given)


@pytest.mark.parametrize(
    ("model", "shares"),
    [
        (filtering(4, 3, 3, 3), (1, 0)),
        (filtering(4, 3, 3, 3, constant=True), (1, 0)),
        (filtering(4, 3, 3, 3, product=324), (0.25, 0)),
        (filtering(4, 3, 3), (0, 1)),
    ],
    ids=["alone", "as Constant", "beside a product", "along one axis"],
)
def test_the_share_of_convolutions_is_that_of_their_weights(
    model: onnx.ModelProto, shares: tuple[float, float]
) -> None:
    """Those along two axes, and those along one, however the exporter writes their weights."""
    facts = facts_of(model, sha256="", size_bytes=1, where="m")
    assert (facts.convolution_share, facts.one_axis_share) == pytest.approx(shares)


class Conversions:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str]] = []
        self.two_axes: list[tuple[str, ...]] = []
        convert = vars(models)["convert"]

        def noted(model: PreparedModel, conversion: Conversion, **options: object) -> OrtModel:
            self.seen.append((conversion.level, conversion.layout))
            self.two_axes.append(conversion.two_axes)
            made: OrtModel = convert(model, conversion, **options)
            return made

        monkeypatch.setattr(models, "convert", noted)
        monkeypatch.setattr(models, "converter_for", lambda _layout, runtime, _where: runtime)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch, stages: Stages) -> Conversions:
    """Make the sample's model one of convolutions, on a machine that can convert it."""
    write(stages.folder / "tiny.onnx", filtering(8, 8, 3, 3))
    return Conversions(monkeypatch)


NCHWC8, PLAIN = ("all", "nchwc8"), ("extended", "plain")


@pytest.mark.parametrize(
    ("target", "profile"), [("linux-x64", "balanced"), ("linux-x64", "size"), ("linux-arm64", "balanced")]
)
def test_a_model_of_convolutions_gets_nchwc_layout(
    stages: Stages, conversions: Conversions, target: str, profile: str
) -> None:
    """Without a word in the buildspec; what was chosen is said, with the way out."""
    plan = planned(stages, target=target, profile=profile).plan
    assert conversions.seen == [NCHWC8]
    assert [model.layout for model in plan.models] == ["nchwc8"]
    assert plan.targets[0].job.nchwc_block_size == 8
    assert "tiny: in NCHWc layout" in stages.stdout.getvalue()
    assert "layout = 'plain'" in stages.stdout.getvalue()


@pytest.mark.parametrize(("size", "layout", "two_axes"), [(100, NCHWC8, ("y",)), (17, PLAIN, ())])
def test_convolutions_along_one_axis_get_it_where_that_is_faster(
    stages: Stages, conversions: Conversions, size: int, layout: tuple[str, str], two_axes: tuple[str, ...]
) -> None:
    """As such along two axes: of 98 positions, not of 15."""
    write(stages.folder / "tiny.onnx", filtering(64, 64, 3, size=size))
    planned(stages)
    assert (conversions.seen, conversions.two_axes) == ([layout], [two_axes])


def test_blocks_of_16_channels_are_another_rule_s(stages: Stages, conversions: Conversions) -> None:
    """Costs of blocks of 8 say nothing of them."""
    write(stages.folder / "tiny.onnx", filtering(64, 64, 3, size=100))
    wide = 'level = "all"\nlayout = "nchwc16"\n[[targets]]\nid = "linux-x64"\ncpu = "x86-64-v4"\n'
    planned(stages, wide)
    assert (conversions.seen, conversions.two_axes) == ([("all", "nchwc16")], [()])


@pytest.mark.parametrize(("profile", "two_axes"), [("balanced", ("y",)), ("upstream", ())])
def test_upstream_s_profile_converts_models_as_upstream_does(
    stages: Stages,
    conversions: Conversions,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    two_axes: tuple[str, ...],
) -> None:
    """A lower level is tried as a build would have it, too."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2])
    given = model_of(
        [node], [value("x", shape=(1, 8, 99))], [value("y", shape=None)], initializers=[weights("w", (8, 8, 4))]
    )
    write(stages.folder / "tiny.onnx", given)
    made = planned(stages, profile=profile)
    assert (conversions.seen, conversions.two_axes) == ([PLAIN], [two_axes])
    whole, tried = made.models.loaded, list[tuple[str, tuple[str, ...]]]()

    def converted(_: PreparedModel, conversion: Conversion, **__: object) -> SimpleNamespace:
        tried.append((conversion.level, conversion.two_axes))
        return SimpleNamespace(reads_in_place=True)

    monkeypatch.setattr(kept, "convert", converted)
    monkeypatch.setattr(kept, "subject_of", lambda *_, **__: None)
    monkeypatch.setattr(kept, "changed_by_conversion", lambda subject: subject)
    monkeypatch.setattr(kept, "_is_representative", lambda *_, here: here)
    monkeypatch.setattr(kept, "_diagnostic", lambda *given: given[-1])
    subject: Any = SimpleNamespace(prepared=made.models.prepared[0], spec=whole.models[0], cases=made.cases[0])
    assert [*map(str, kept.changed_outputs([subject], whole, made.models.runtime, here=True))] == ["basic"]
    assert tried == [("basic", two_axes)]


def test_each_target_of_a_build_has_the_model_that_it_runs_best(stages: Stages, conversions: Conversions) -> None:
    made = planned(stages, target="linux-x64,linux-riscv64")
    x64, other = (target.job for target in made.plan.targets)
    assert conversions.seen == [NCHWC8, PLAIN]
    assert [made.plan.models_for(job.target)[0].layout for job in (x64, other)] == ["nchwc8", ""]
    assert made.models.for_target(x64.target) is not made.models.for_target(other.target)
    assert (x64.nchwc_block_size, other.nchwc_block_size) == (8, 0)
    assert x64 == planned(stages).plan.targets[0].job
    assert other == planned(stages, target="linux-riscv64").plan.targets[0].job


def test_x64_and_arm64_have_the_same_model(stages: Stages, conversions: Conversions) -> None:
    """It is converted once: both take blocks of 8 channels."""
    made = planned(stages, target="linux-x64,linux-arm64")
    assert conversions.seen == [NCHWC8]
    assert [target.job.nchwc_block_size for target in made.plan.targets] == [8, 8]
    assert made.models.for_target(TARGETS["linux-x64"]) is made.models.for_target(TARGETS["linux-arm64"])


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("", {"target": "linux-riscv64"}),
        ("", {"target": "android-x86_64"}),
        ("", {"profile": "upstream"}),
        ('layout = "plain"\n', {}),
        ('style = "runtime"\n', {}),
        ('level = "basic"\n', {}),
    ],
)
def test_otherwise_it_stays_as_it_is(
    stages: Stages, conversions: Conversions, body: str, changes: dict[str, object]
) -> None:
    plan = planned(stages, body, **changes).plan
    assert [model.layout for model in plan.models] == [""]
    assert {layout for _, layout in conversions.seen} == {"plain"}


def test_block_size_8_is_not_chosen_beside_block_size_16(stages: Stages, conversions: Conversions) -> None:
    write(stages.folder / "wide.onnx", filtering(16, 16, 3, 3))
    wide = 'level = "all"\nlayout = "nchwc16"\n[[targets]]\nid = "linux-x64"\ncpu = "x86-64-v4"\n'
    plan = planned(stages, f'[[models]]\nname = "wide"\npath = "wide.onnx"\n{wide}').plan
    assert [model.layout for model in plan.models] == ["", "nchwc16"]


def test_few_convolutions_pay_for_no_kernels(stages: Stages, conversions: Conversions) -> None:
    """As where a transformer cuts an image into pieces."""
    write(stages.folder / "tiny.onnx", filtering(8, 8, 3, 3, product=50_000))
    assert [model.layout for model in planned(stages).plan.models] == [""]
    assert conversions.seen == [PLAIN]


def test_a_machine_that_cannot_convert_says_what_it_takes(
    stages: Stages, conversions: Conversions, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*_: object) -> None:
        raise ToolError("tool-missing", "is not installed", where="qemu-x86_64-static", hint="run: apt-get install it")

    monkeypatch.setattr(models, "converter_for", refuse)
    assert [model.layout for model in planned(stages).plan.models] == [""]
    assert conversions.seen == [PLAIN]
    said = " ".join(stages.stdout.getvalue().split())
    assert "tiny: not in NCHWc layout" in said
    assert "qemu-x86_64-static is not installed; run: apt-get install it" in said


def test_a_conversion_that_was_asked_for_is_kept(stages: Stages, conversions: Conversions, tmp_path: Path) -> None:
    """`convert` is for no target: what it writes runs everywhere."""
    models.converted_models(load(stages.request()), stages.console)
    assert conversions.seen == [PLAIN]
