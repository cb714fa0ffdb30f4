"""Android targets on their way to a plan: which NDK each wants, and what is refused before any work."""

import shutil

import pytest

from aar_samples import fake_jdk
from ndk_layout import LINUX, NDK_VERSION, forget_ndks, lay_out_ndk
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.errors import Diagnostic, ExitCode, PlanError, ToolError, UsageError
from ortrim.planning import request as inputs
from ortrim.planning.planned import Planned, planned_for
from ortrim.platforms.android import ndk
from ortrim.platforms.android.arguments import bionic_pin
from ortrim.platforms.android.ndk import SDK_VARIABLES, VARIABLES
from pipeline_stages import Stages


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_ndks(monkeypatch)
    monkeypatch.setattr(ndk, "_prebuilt", lambda: LINUX)


WITH_JAVA = "[android]\njava = true\n"
WITH_NDK = '[android]\ntoolchain = "ndk"\n'
"""Asks for the NDK where none is found."""


def plan(stages: Stages, body: str = "", target: str = "android") -> Planned:
    return planned_for(stages.request(body, target=target), stages.console)


def refused(stages: Stages, body: str = "", *, to_run: bool = True, **changes: object) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        planned_for(stages.request(body, target="android", **changes), stages.console, to_run=to_run)
    assert stages.ran == []
    assert not (stages.folder / "artifacts").exists()
    return caught.value


def test_a_plan_needs_no_ndk(stages: Stages) -> None:
    """It names the version that is pinned for the runtime, and the triple with the default level."""
    (target,) = plan(stages, WITH_NDK).plan.targets
    assert target.identifier == "android-arm64-v8a"
    assert (target.job.toolchain.kind, target.job.toolchain.version) == ("ndk", NDK_VERSION)
    assert target.job.toolchain.triple == "aarch64-none-linux-android24"


def test_a_machine_that_compiles_nothing_needs_no_ndk(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled elsewhere comes with its JNI library; the classes of the AAR take a JDK all the same."""
    monkeypatch.setenv("JAVA_HOME", str(fake_jdk(stages.folder / "jdk" / "bin").javac.parents[1]))
    assert refused(stages, WITH_NDK).code == "ndk-missing"
    request = stages.request(target="android", elsewhere=True)
    assert planned_for(request, stages.console, to_run=True).plan.assemblies
    stages.ran.clear()
    monkeypatch.setenv("JAVA_HOME", str(stages.folder))
    shutil.rmtree(stages.folder / "artifacts", ignore_errors=True)
    assert refused(stages, WITH_JAVA, elsewhere=True).code == "javac-missing"


def test_a_plan_needs_no_host_that_runs_libraries(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a build that another machine compiles; only compiling here does, and leaving the target open."""
    monkeypatch.setattr(inputs, "host_target", lambda: None)
    assert plan(stages).plan.assemblies
    elsewhere = stages.request(target="android-arm64-v8a", elsewhere=True, on_macs=True)
    assert planned_for(elsewhere, stages.console, to_run=True).plan.assemblies
    with pytest.raises(ToolError, match="neither compile nor run"):
        planned_for(stages.request(target="android-arm64-v8a"), stages.console, to_run=True)
    with pytest.raises(UsageError, match="no target runs on this machine"):
        planned_for(stages.request(), stages.console)


def test_each_abi_may_have_choices_of_its_own(stages: Stages) -> None:
    """The level and the NDK of a target go before the buildspec's."""
    body = (
        '[android]\napi = 28\nndk = "28.0.13004108"\n[[targets]]\nid = "android-x86"\n'
        f'[[targets]]\nid = "android-x86_64"\nandroid = {{ api = 30, ndk = "{NDK_VERSION}" }}\n'
    )
    made = plan(stages, body).plan.targets
    assert [(each.job.toolchain.triple, each.job.toolchain.version) for each in made] == [
        ("i686-none-linux-android28", "28.0.13004108"),
        ("x86_64-none-linux-android30", NDK_VERSION),
    ]


def test_without_an_ndk_zig_compiles(stages: Stages) -> None:
    """Nothing need be installed; the triple has the level, and the plan says which bionic."""
    (target,) = plan(stages).plan.targets
    toolchain = target.job.toolchain
    assert (toolchain.kind, toolchain.triple) == ("zig", "aarch64-linux-android.24")
    assert dict(toolchain.environment)["ORTRIM_BIONIC"] == "${bionic}"
    assert f"bionic {bionic_pin().commit[:12]}" in dict(toolchain.wrappers)["cc"]


@pytest.mark.parametrize("name", [*VARIABLES, *SDK_VARIABLES])
def test_an_ndk_that_is_installed_compiles(stages: Stages, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It is the app's own; `toolchain` decides otherwise."""
    lay_out_ndk(stages.folder / "sdk" / "ndk" / NDK_VERSION)
    monkeypatch.setenv(name, str(stages.folder / "sdk" if name in SDK_VARIABLES else stages.folder / "sdk" / "ndk"))
    (target,) = plan(stages).plan.targets
    assert target.job.toolchain.kind == "ndk"
    (target,) = plan(stages, '[android]\ntoolchain = "zig"\n').plan.targets
    assert target.job.toolchain.kind == "zig"


def test_what_only_the_ndk_has_is_refused_to_zig(stages: Stages) -> None:
    """Before any work; left to itself the choice of a compiler follows it."""
    with pytest.raises(PlanError) as caught:
        plan(stages, '[android]\ntoolchain = "zig"\nstl = "c++_shared"\n')
    assert caught.value.code == "needs-ndk"
    (target,) = plan(stages, '[android]\nstl = "c++_shared"\n').plan.targets
    assert target.job.toolchain.kind == "ndk"


def test_an_ndk_that_was_named_is_looked_at(stages: Stages) -> None:
    """`--ndk` reaches the search; so does the level that the buildspec asks for."""
    assert refused(stages, ndk=stages.folder / "none").code == "ndk-not-a-folder"
    other = lay_out_ndk(stages.folder / "other", "25.2.9519653")
    assert refused(stages, ndk=other).code == "ndk-wrong-version"
    fitting = lay_out_ndk(stages.folder / "ndk")
    (fitting / "meta").mkdir()
    (fitting / "meta" / "platforms.json").write_text('{"min": 21, "max": 35}')
    assert refused(stages, "[android]\napi = 36\n", ndk=fitting).code == "ndk-api-level"


def test_what_is_installed_is_taken_with_a_warning(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan names it, so that what it gives is another library; the pinned one goes first when it is there too."""
    newest = "28.2.13676358"
    for version in ("26.3.11579264", newest):
        lay_out_ndk(stages.folder / "sdk" / "ndk" / version, version)
    monkeypatch.setenv("ANDROID_HOME", str(stages.folder / "sdk"))
    job = plan(stages).plan.targets[0].job
    assert job.toolchain.version == newest
    assert stages.stdout.getvalue().count(f"NDK {NDK_VERSION}, which upstream builds this ONNX Runtime with,") == 1
    assert f'android.ndk = "{newest}"' in stages.stdout.getvalue()
    for body in (f'[android]\nndk = "{newest}"\n', '[android]\nndk = "28"\n'):
        assert plan(stages, body).plan.targets[0].job == job
    lay_out_ndk(stages.folder / "sdk" / "ndk" / NDK_VERSION)
    assert plan(stages).plan.targets[0].job.toolchain.version == NDK_VERSION
    assert stages.stdout.getvalue().count("is not installed") == 1


def test_other_machines_get_the_ndk_that_is_pinned(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this one has means nothing to GitHub's machines, nor to a container."""
    monkeypatch.setenv("ANDROID_HOME", str(stages.folder / "sdk"))
    lay_out_ndk(stages.folder / "sdk" / "ndk" / "28.2.13676358", "28.2.13676358")
    for changes in ({"elsewhere": True, "on_macs": True}, {"container": ContainerOptions()}):
        request = stages.request(target="android", **changes)
        made = planned_for(request, stages.console).plan.targets[0].job.toolchain.version
        assert made == NDK_VERSION


def test_a_major_of_which_nothing_is_known(stages: Stages) -> None:
    """It is not guessed which version of it is meant."""
    error = refused(stages, '[android]\nndk = "25"\n', to_run=False)
    assert (error.code, "no NDK 25 is installed" in error.what) == ("no-ndk-version", True)


def test_an_ndk_for_nothing_is_not_passed_over(stages: Stages) -> None:
    """Whoever names one expects it to be used."""
    with pytest.raises(UsageError) as caught:
        planned_for(stages.request(target="linux-x64", ndk=stages.folder), stages.console, to_run=True)
    assert (caught.value.code, caught.value.where) == ("bad-option", "--ndk")
    assert stages.ran == []


def test_a_slip_of_the_pen_is_said_before_what_to_install(stages: Stages) -> None:
    """A device that cannot be meant is one, whether or not there is an NDK."""
    error = refused(stages, devices=("qemu-user",))
    assert (error.code, error.exit_code) == ("wrong-device", ExitCode.USAGE)
    assert error.hint.startswith("choose adb, or a device farm's:")


def test_with_its_ndk_only_a_jdk_is_missing(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next thing that is asked for: an NDK that fits is not refused."""
    ndk = lay_out_ndk(stages.folder / "ndk")
    monkeypatch.setenv("JAVA_HOME", str(stages.folder))
    error = refused(stages, WITH_JAVA, ndk=ndk)
    assert (error.code, error.exit_code) == ("javac-missing", ExitCode.TOOL)
    fake_jdk(stages.folder / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(stages.folder / "jdk"))
    assert planned_for(stages.request(target="android", ndk=ndk), stages.console, to_run=True).plan.assemblies


@pytest.mark.parametrize(
    ("body", "on_macs", "times"),
    [("", False, 1), ("[android]\njava = false\n", False, 0), ("", True, 0)],
    ids=["left-open", "not-wanted", "on-github"],
)
def test_without_a_jdk_the_aar_has_no_java_api_and_that_is_said(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, body: str, on_macs: object, times: int
) -> None:
    """Before anything is compiled, with the way out; not to who wants none, nor of GitHub's machines."""
    monkeypatch.setenv("JAVA_HOME", str(stages.folder))
    planned_for(stages.request(body, target="android", elsewhere=True, on_macs=on_macs), stages.console)
    said = stages.stdout.getvalue()
    assert said.count("there is no JDK, so the AAR has no Java API") == said.count("say android.java = false") == times


@pytest.mark.parametrize("version", ["1.31.1", "1.32.0"])
def test_a_runtime_whose_ndk_nobody_looked_up_asks_for_one(stages: Stages, version: str) -> None:
    """No version is invented; the key that says it is named."""
    error = refused(stages, f'[onnxruntime]\nversion = "{version}"\n{WITH_NDK}', to_run=False)
    assert isinstance(error, PlanError)
    assert (error.code, error.exit_code, error.where) == ("no-ndk-version", ExitCode.PLAN, "android-arm64-v8a")
    assert "android.ndk" in error.hint
