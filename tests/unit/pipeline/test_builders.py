"""What builds a target: this machine itself, or a container of it."""

from dataclasses import replace

import pytest

from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.workspace import LOCAL
from ortrim.pipeline import building
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import planned_for
from pipeline_stages import Stages

PINNED_IMAGES = "".join(
    f'[bases.{name}]\nreference = "{name}:1"\ndigest = "sha256:{"a" * 64}"\n' for name in ("python", "jdk")
) + "".join(
    f'[archives."{name}"]\nfile = "a.zip"\nsha256 = "{"b" * 64}"\n'
    for name in ("ndk;27.2.12479018", "cmdline-tools;19.0")
)
ANDROID = '[[targets]]\nid = "android-arm64-v8a"\n'


@pytest.fixture(autouse=True)
def tools(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "packages_folder", lambda *_: stages.folder)


def test_a_request_says_where_its_targets_are_built(stages: Stages) -> None:
    request = stages.request(jobs=3)
    planned = planned_for(request, stages.console)
    (target,) = planned.plan.targets
    options = ContainerOptions(engine="buildah")
    with stages.console.step("build") as step:
        native = executor_for(planned, target, request, step)
        contained = executor_for(planned, target, replace(request, container=options), step)
    assert replace(contained, execution=native.execution) == native
    assert contained.execution != native.execution
    assert native.execution(target.job.toolchain, step.note) == LOCAL
    assert native.log.is_absolute()


def test_a_container_needs_no_ndk_of_this_machine(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image has one; the JDK that compiles an AAR's classes is this machine's in either case."""
    asked: list[str] = []
    pins = stages.folder / "pins"
    pins.mkdir()
    (pins / "images.toml").write_text(PINNED_IMAGES)
    monkeypatch.setenv("ORTRIM_PINS", str(pins))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("ortrim.platforms.android.platform.find_ndk", lambda *_, **__: asked.append("ndk"))
    monkeypatch.setattr("ortrim.platforms.android.jni.chosen_jdk", lambda **_: asked.append("jdk"))
    request = stages.request(f'[android]\ntoolchain = "ndk"\n{ANDROID}', target="android-arm64-v8a")
    planned_for(replace(request, container=ContainerOptions()), stages.console, to_run=True)
    assert asked == ["jdk"]
    planned_for(request, stages.console, to_run=True)
    assert asked == ["jdk", "ndk", "jdk"]
