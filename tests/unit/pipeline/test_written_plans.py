"""Plans that are written down: what is read of them, and what makes a plan anew."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_samples import relu, write
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import digest
from ortrim.errors import Diagnostic, StorageError, ToolError, VerifyError
from ortrim.pipeline import finished
from ortrim.pipeline.building import build
from ortrim.pipeline.finished import finished_reports, reports_of
from ortrim.planning import request as inputs
from ortrim.planning.devices import devices_of
from ortrim.planning.planned import looked_at, plan_for, planned_for, read_plan
from ortrim.planning.request import Request
from ortrim.report.write import JSON_NAME, read_report, write_reports
from pipeline_stages import Stages, leave_report
from refusing import refused

CASES = '[[models.cases]]\nname = "one"\ndata = "one.npz"\n'
Finish = Callable[..., Path]


@pytest.fixture
def finish(stages: Stages) -> Finish:
    """Leave packages and reports of a build, and return the first target's folder."""

    def finish(request: Request) -> Path:
        planned = planned_for(request, stages.console)
        folders = [leave_report(planned, target) for target in planned.plan.targets]
        stages.ran.clear()
        return folders[0]

    return finish


def test_a_finished_build_is_found_without_planning(stages: Stages, finish: Finish) -> None:
    folder = finish(stages.request(CASES.replace('data = "one.npz"\n', "")))
    stages.stdout.truncate(0)
    request = Request(spec=stages.folder / "sample.toml", output=stages.folder / "artifacts")
    assert finished_reports(request, stages.console) == (read_report(folder / JSON_NAME),)
    assert stages.ran == []
    assert stages.stdout.getvalue().count(f"linux-x64: nothing has changed since {folder / JSON_NAME}") == 1


def test_a_report_is_shown_without_the_cache(stages: Stages, finish: Finish, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read, and nothing is fetched or converted for its name."""
    finish(stages.request())
    monkeypatch.setenv("ORTRIM_CACHE", str(stages.folder / "empty"))
    assert len(reports_of(stages.request(), stages.console)) == 1
    assert stages.ran == []
    assert not (stages.folder / "empty").exists()


def test_a_report_of_a_build_at_github_is_found(stages: Stages, finish: Finish) -> None:
    """Its compilers are those of GitHub's machines."""
    finish(stages.request(target="ios", elsewhere=True, on_macs=True))
    assert {report.target for report in reports_of(stages.request(target="ios"), stages.console)} >= {"ios-arm64"}


def touched(path: Path, content: bytes) -> None:
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_model(stages: Stages) -> None:
    path = stages.folder / "tiny.onnx"
    changed = path.read_bytes().replace(b"ortrim", b"Ortrim")
    model = onnx.load(path)
    model.producer_name = "x" * len(model.producer_name) or "x"
    content = model.SerializeToString()
    if len(content) == path.stat().st_size:
        touched(path, content)
    else:
        path.write_bytes(changed + content)


def another_input(stages: Stages) -> None:
    np.savez(stages.folder / "one.npz", x=np.array([2.0], np.float32))


def hot(stages: Stages) -> None:
    (stages.folder / "sample.hot.toml").write_text('operators = ["ai.onnx:Relu"]\n')


def own_pins(stages: Stages) -> None:
    os.environ["ORTRIM_PINS"] = str(stages.folder / "pins")
    (stages.folder / "pins").mkdir()
    (stages.folder / "pins" / "more.toml").write_text("a = 1\n")


@pytest.mark.parametrize("change", [another_model, another_input, hot, own_pins])
def test_a_change_of_a_file_is_planned_anew(
    stages: Stages, finish: Finish, monkeypatch: pytest.MonkeyPatch, change: Callable[[Stages], None]
) -> None:
    monkeypatch.setenv("ORTRIM_PINS", "")
    np.savez(stages.folder / "one.npz", x=np.array([1.0], np.float32))
    request = stages.request(CASES)
    finish(request)
    assert finished_reports(request, stages.console)
    change(stages)
    assert finished_reports(request, stages.console) is None
    with pytest.raises(VerifyError, match="report-missing") as caught:
        reports_of(request, stages.console)
    assert "changed since" in caught.value.why
    assert caught.value.hint == "run: invoke build"
    assert stages.ran == []


def test_a_file_beside_the_model_counts(stages: Stages, finish: Finish) -> None:
    """The model's own name for it is in no buildspec."""
    model = relu()
    weights = onnx.numpy_helper.from_array(np.arange(2048, dtype=np.float32), "w")
    model.graph.initializer.append(weights)
    onnx.save(model, stages.folder / "tiny.onnx", save_as_external_data=True, location="tiny.weights", size_threshold=0)
    request = stages.request()
    finish(request)
    assert finished_reports(request, stages.console)
    content = bytearray((stages.folder / "tiny.weights").read_bytes())
    content[0] ^= 1
    touched(stages.folder / "tiny.weights", bytes(content))
    assert finished_reports(request, stages.console) is None


def test_a_file_of_the_same_content_is_no_change(stages: Stages, finish: Finish) -> None:
    """As after a checkout of another branch and back."""
    request = stages.request()
    finish(request)
    shutil.copyfile(stages.folder / "tiny.onnx", stages.folder / "copy.onnx")
    (stages.folder / "copy.onnx").replace(stages.folder / "tiny.onnx")
    assert finished_reports(request, stages.console)


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("[models.tolerances.float32]\nabsolute = 0.5\n", {}),
        ("[budgets]\nlibrary_bytes = 7\n", {}),
        ('level = "basic"\n', {}),
        ("", {"profile": "upstream"}),
        ("", {"version": "1.22.0"}),
        ("", {"target": "linux-arm64"}),
        ("", {"devices": ("ssh:pi@board",)}),
        ("", {"trace": True}),
        ("", {"cores": (1,)}),
    ],
    ids=str,
)
def test_another_request_is_planned_anew(stages: Stages, finish: Finish, body: str, asked: dict[str, Any]) -> None:
    finish(stages.request())
    assert finished_reports(stages.request(body, **asked), stages.console) is None


def another_ortrim(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(inputs, "_own_code", lambda: "other")


def another_onnx(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(inputs, "installed_version", lambda name: f"{name} 99")


def another_compiler(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    toolchains_of = inputs.toolchains_of

    def others(*words: Any) -> Any:
        return {name: replace(each, version="99") for name, each in toolchains_of(*words).items()}

    monkeypatch.setattr(inputs, "toolchains_of", others)


def emulator_for_layouts(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    before = inputs._converts_for_x64
    monkeypatch.setattr(inputs, "_converts_for_x64", lambda *words: not before(*words))


def another_host(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    """Be another machine, whose default devices are others."""
    for module in (inputs, finished):
        monkeypatch.setattr(module, "host_target", lambda: TARGETS["linux-arm64"])


def a_bundle(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Name a bundle, which may be for other targets."""
    monkeypatch.setenv("ORTRIM_BUNDLE", str(folder / "bundle.zip"))


def no_package(_: pytest.MonkeyPatch, folder: Path) -> None:
    next(folder.glob("artifacts/*/*/linux-x64/package.tar.gz")).unlink()


def no_report(_: pytest.MonkeyPatch, folder: Path) -> None:
    next(folder.glob("artifacts/*/*/linux-x64/report.json")).unlink()


def damaged_latest(_: pytest.MonkeyPatch, folder: Path) -> None:
    next(folder.glob("artifacts/*/latest/*.json")).write_text("{")


def older_latest(_: pytest.MonkeyPatch, folder: Path) -> None:
    path = next(folder.glob("artifacts/*/latest/*.json"))
    path.write_text(path.read_text().replace("ortrim-latest/1", "ortrim-latest/0"))


def leading_out(_: pytest.MonkeyPatch, folder: Path) -> None:
    path = next(folder.glob("artifacts/*/latest/*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "plan": "../../../../etc"}))


@pytest.mark.parametrize(
    "change",
    [
        another_ortrim, another_onnx, another_compiler, emulator_for_layouts, another_host, a_bundle,
        no_package, no_report, damaged_latest, older_latest, leading_out,
    ],
)  # fmt: skip
def test_what_is_not_as_it_was_is_looked_at_closely(
    stages: Stages, finish: Finish, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    request = stages.request('[[models.cases]]\nname = "one"\n')
    finish(request)
    assert finished_reports(request, stages.console)
    change(monkeypatch, stages.folder)
    assert finished_reports(request, stages.console) is None


def test_a_build_that_is_verified_in_full_is_not_found_quickly(
    stages: Stages, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--verify-cache` has the cache read, and CI does."""
    finish(stages.request())
    monkeypatch.setattr(finished, "is_verifying", lambda: True)
    assert finished_reports(stages.request(), stages.console) is None


def test_a_build_for_an_emulator_that_is_gone_is_looked_at_closely(
    stages: Stages, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused then, as a build that was never made."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    request = stages.request(target="linux-arm64")
    folder = finish(request)
    report = read_report(folder / JSON_NAME)
    names = map(str, devices_of(TARGETS["linux-arm64"], request))
    write_reports(replace(report, devices=tuple(replace(report.devices[0], device=name) for name in names)), folder)
    assert finished_reports(request, stages.console)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert finished_reports(request, stages.console) is None
    assert refused(VerifyError, build, request, stages.console).code == "no-device"


def test_a_plan_is_read_back(stages: Stages) -> None:
    made = planned_for(stages.request(), stages.console).plan
    stages.ran.clear()
    assert plan_for(stages.request(), stages.console) == made
    assert stages.ran == []


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, **changes}))

    return edit


def other_words(path: Path) -> None:
    """Let the compiler be called through other words."""
    path.write_text(path.read_text().replace('"--config"', '"--evil"'))


def other_operators(path: Path) -> None:
    """Let the library have other operators, in all places."""
    path.write_text(path.read_text().replace("Relu", "Gelu"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(), lambda path: path.write_text("{"), lambda path: path.write_bytes(b"\xff"),
        edited(schema="ortrim-written-plan/0"), edited(more=1, plan=None), other_words, other_operators,
        edited(sources=[]),
    ],
    ids=["absent", "cut", "binary", "schema", "incomplete", "words", "operators", "sources"],
)  # fmt: skip
def test_a_plan_that_is_not_ours_is_made_again(stages: Stages, damage: Callable[[Path], None]) -> None:
    """Nothing of it is run: what is read is decided again, and has to be the same."""
    planned = planned_for(stages.request(), stages.console)
    damage(planned.folder / "plan.json")
    seen = looked_at(stages.request(), stages.console)
    with pytest.raises(VerifyError, match="not-built") as caught:
        read_plan(seen, stages.folder / "artifacts")
    assert "plan.json is" in caught.value.why
    assert caught.value.hint == "run: invoke build"
    again = planned_for(stages.request(), stages.console)
    assert digest(again.plan) == digest(planned.plan)
    assert read_plan(seen, stages.folder / "artifacts").plan == planned.plan


def test_a_plan_that_cannot_be_written_is_made_all_the_same(stages: Stages) -> None:
    """A look at a plan needs no folder for results."""
    (stages.folder / "file").write_text("in the way")
    assert planned_for(stages.request(output=stages.folder / "file"), stages.console).plan.targets


def test_what_an_emulator_says_counts(monkeypatch: pytest.MonkeyPatch, stages: Stages) -> None:
    """One that is missing or too old converts nothing."""

    def refuse(_: object) -> None:
        raise ToolError("tool-too-old", "is too old")

    monkeypatch.setattr(inputs, "require", lambda _: "found")
    found = looked_at(stages.request(), stages.console).key
    monkeypatch.setattr(inputs, "require", refuse)
    assert looked_at(stages.request(), stages.console).key != found
    plain = stages.request('layout = "plain"\n')
    without = looked_at(plain, stages.console).key
    monkeypatch.setattr(inputs, "require", lambda _: "found")
    assert looked_at(plain, stages.console).key == without


def test_a_folder_of_sources_counts(monkeypatch: pytest.MonkeyPatch, stages: Stages) -> None:
    from ortrim.sources import commits  # noqa: PLC0415 - replaced below

    seen = []

    def identify(path: Path, version: str) -> Any:
        seen.append((path, version))
        return commits.Checkout(path=path, digest=str(len(seen)), clean=True)

    monkeypatch.setattr(commits, "identify", identify)
    (stages.folder / "ort").mkdir()
    request = stages.request('[onnxruntime]\nsource = "path"\npath = "ort"\n')
    first, second = (looked_at(request, stages.console).key for _ in range(2))
    assert first != second
    assert seen[0][0] == stages.folder / "ort"


def test_errors_in_what_is_asked_for_are_the_builds_to_tell(stages: Stages) -> None:
    assert finished_reports(stages.request("colour = 1\n"), stages.console) is None
    assert finished_reports(stages.request(target="windows"), stages.console) is None
    refused(Diagnostic, build, stages.request(target="windows"), stages.console)
    (stages.folder / "file").write_text("in the way")
    refused(StorageError, build, stages.request(output=stages.folder / "file"), stages.console)
    write(stages.folder / "tiny.onnx", relu())
