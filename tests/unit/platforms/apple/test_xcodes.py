"""Apple targets on their way to a plan: what compiles each, for which oldest system, and what is refused at once."""

import platform
from typing import Any

import pytest

from absent_packages import without_package
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.errors import Diagnostic, ExitCode, PlanError, ToolError
from ortrim.pins import runtime
from ortrim.pins.runtime import known_version, runtime_pins
from ortrim.planning import request as inputs
from ortrim.planning.planned import planned_for
from ortrim.platforms import APPLE as APPLE_SYSTEMS
from ortrim.platforms.apple import platform as toolchains
from ortrim.platforms.apple.xcode import Xcode
from pipeline_stages import Stages
from xcode_layout import lay_out_xcode

PINS = runtime_pins("1.21.0").apple
OURS = [name for name, target in TARGETS.items() if target.system in APPLE]


def with_coreml(target: str) -> str:
    """Return the rest of a buildspec whose target has what only Xcode brings."""
    return f'style = "runtime"\n[[targets]]\nid = "{target}"\nproviders = ["coreml"]\n'


def jobs(stages: Stages, target: str, body: str = "", **changes: Any) -> dict[str, Any]:
    """Plan Apple targets and return their jobs by name."""
    made = planned_for(stages.request(body, target=target, **changes), stages.console)
    return {each.identifier: each.job for each in made.plan.targets}


def refused(stages: Stages, target: str = "ios-arm64", body: str = "", **changes: Any) -> Diagnostic:
    """Plan to run what is refused before any work and return the diagnostic."""
    before = sorted(stages.folder.glob("artifacts/*/*"))
    with pytest.raises(Diagnostic) as caught:
        planned_for(stages.request(body, target=target, **changes), stages.console, to_run=True)
    assert stages.ran == []
    assert sorted(stages.folder.glob("artifacts/*/*")) == before
    assert caught.value.hint
    return caught.value


@pytest.fixture
def mac(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Xcode:
    """Pretend to be on a Mac with an Xcode of its own version."""
    found = Xcode(folder=lay_out_xcode(stages.folder / "Xcode.app", "17.1"), version="17.1")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(inputs, "host_target", lambda: TARGETS["macos-arm64"])
    monkeypatch.setattr(toolchains, "find_xcode", lambda _version=None: found)
    return found


def test_the_oldest_system_is_the_lowest_that_the_version_has(stages: Stages) -> None:
    """By the table of the pins, for Mac Catalyst its own."""
    assert PINS is not None
    found = {name: job.apple.deployment_target for name, job in jobs(stages, ",".join(OURS)).items()}
    phone = dict.fromkeys(("ios-arm64", "ios-simulator-arm64", "ios-simulator-x86_64"), PINS.ios)
    mac = dict.fromkeys(("macos-arm64", "macos-x86_64"), PINS.macos)
    assert found == {**phone, **mac, "maccatalyst-arm64": PINS.maccatalyst}


@pytest.mark.parametrize(
    ("version", "macos"), [("1.21.0", "13.3"), ("1.22.0", "13.3"), ("1.23.2", "13.4"), ("1.30.0", "14.0")]
)
def test_every_version_has_its_own_lowest(stages: Stages, version: str, macos: str) -> None:
    """Upstream raised it for Macs with 1.23, and again with 1.24."""
    assert jobs(stages, "macos-arm64", version=version)["macos-arm64"].apple.deployment_target == macos


def test_what_is_asked_for_goes_before_the_lowest(stages: Stages) -> None:
    """A target's own before the buildspec's; Mac Catalyst goes by the version of iOS."""
    body = (
        '[apple]\nios_deployment_target = "16.0"\n'
        '[[targets]]\nid = "ios-arm64"\n[[targets]]\nid = "maccatalyst-arm64"\n'
        '[[targets]]\nid = "ios-simulator-arm64"\napple = { ios_deployment_target = "17.2" }\n'
    )
    found = {name: job.apple.deployment_target for name, job in jobs(stages, "*", body).items()}
    assert found == {"ios-arm64": "16.0", "maccatalyst-arm64": "16.0", "ios-simulator-arm64": "17.2"}


@pytest.mark.parametrize(
    ("target", "key", "asked", "lowest"),
    [
        ("ios-arm64", "ios_deployment_target", "15.0", "15.1"),
        ("ios-simulator-x86_64", "ios_deployment_target", "9.3", "15.1"),
        ("macos-x86_64", "macos_deployment_target", "12.7", "13.3"),
        ("maccatalyst-arm64", "ios_deployment_target", "13.1", "14.0"),
    ],
)
def test_an_older_system_than_the_version_has_is_refused(
    stages: Stages, target: str, key: str, asked: str, lowest: str
) -> None:
    """Versions are compared as numbers; the lowest is named, with the key that says it."""
    error = refused(stages, target, f'[apple]\n{key} = "{asked}"\n')
    assert isinstance(error, PlanError)
    assert (error.code, error.exit_code) == ("deployment-target-too-low", ExitCode.PLAN)
    assert lowest in error.what
    assert f'apple.{key} = "{lowest}"' in error.hint


def test_a_version_whose_lowest_is_not_known_wants_it_said(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """And which Xcode compiles it where there is none to ask."""
    entry = {name: value for name, value in known_version("1.21.0").items() if name != "apple"}
    monkeypatch.setattr(runtime, "known_version", lambda _: entry)
    assert refused(stages).code == "no-deployment-target"
    said = '[apple]\nios_deployment_target = "15.1"\n'
    with pytest.raises(PlanError) as caught:
        jobs(stages, "ios-arm64", said, on_macs=True)
    assert caught.value.code == "no-xcode-version"
    assert "apple.xcode" in caught.value.hint
    asked = jobs(stages, "ios-arm64", f'{said}xcode = "16.1"\n', on_macs=True)
    assert asked["ios-arm64"].toolchain.version == "16.1"


@pytest.mark.parametrize("target", OURS)
@pytest.mark.parametrize("changes", [{}, {"container": object()}], ids=["native", "container"])
def test_what_only_xcode_compiles_is_refused_at_once_elsewhere(
    stages: Stages, target: str, changes: dict[str, Any]
) -> None:
    """Before models are converted, with both ways out."""
    error = refused(stages, target, with_coreml(target), **changes)
    assert isinstance(error, ToolError)
    assert (error.code, error.where, error.exit_code) == ("needs-mac", target, ExitCode.TOOL)
    assert "container" in changes or "CoreML" in error.why
    assert "--executor github" in error.hint


@pytest.mark.parametrize("target", OURS)
def test_a_plan_for_githubs_macs_can_be_made_anywhere(stages: Stages, target: str) -> None:
    """With the Xcode that the pins name, for Macs too; nothing of it is looked for here."""
    assert PINS is not None
    request = stages.request(target=target, elsewhere=True, on_macs=True)
    (made,) = planned_for(request, stages.console, to_run=True).plan.targets
    assert (made.job.toolchain.kind, made.job.toolchain.version) == ("xcode", PINS.xcode)


@pytest.mark.parametrize("changes", [{}, {"elsewhere": True, "on_macs": True}], ids=["here", "github"])
def test_without_lief_apples_targets_are_refused_at_once(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """It reads what is packaged here, whoever compiles; a plan can be shown without it."""
    without_package(monkeypatch, "lief")
    error = refused(stages, **changes)
    assert (error.code, error.where, error.exit_code) == ("tool-missing", "lief", ExitCode.TOOL)
    assert error.hint.endswith('install "ortrim[apple]"')
    assert jobs(stages, "ios-arm64").keys() == {"ios-arm64"}


def test_a_library_is_cross_built_where_there_is_no_mac(stages: Stages) -> None:
    """By the hermetic toolchain; what only Xcode makes keeps it, so that its plan can be shown."""
    kinds = {name: job.toolchain.kind for name, job in jobs(stages, ",".join(OURS)).items()}
    assert kinds == dict.fromkeys(OURS, "zig")
    assert jobs(stages, "ios-arm64", on_macs=True)["ios-arm64"].toolchain.kind == "xcode"


def test_a_mac_compiles_in_no_container(stages: Stages, mac: Xcode) -> None:
    """Xcode has none."""
    assert refused(stages, container=object()).code == "needs-mac"


@pytest.mark.parametrize("target", OURS)
def test_static_frameworks_are_cross_built(stages: Stages, target: str) -> None:
    """By the same key as on a Mac; what they are joined of is what the dynamic library is linked from."""
    body = '[apple]\nframework = "static"\n'
    job = jobs(stages, target, body)[target]
    assert (job.toolchain.kind, job.linkage) == ("zig", "static")
    assert str(job.expected_outputs[-1]) == "libonnxruntime.a"
    assert not {"-lc++", "-framework"} & set(APPLE_SYSTEMS.runner_arguments(job))


@pytest.mark.parametrize("target", OURS)
def test_a_mac_compiles_with_its_own_xcode(stages: Stages, mac: Xcode, target: str) -> None:
    """Also for itself; its version is in the plan."""
    (made,) = planned_for(stages.request(target=target), stages.console, to_run=True).plan.targets
    assert (made.job.toolchain.kind, made.job.toolchain.version) == ("xcode", mac.version)


def test_a_mac_plans_for_githubs_with_theirs(stages: Stages, mac: Xcode) -> None:
    """The plan is the one that they accept."""
    assert PINS is not None
    job = jobs(stages, "ios-arm64", elsewhere=True, on_macs=True)["ios-arm64"]
    assert job.toolchain.version == PINS.xcode != mac.version


def test_a_mac_without_xcode_can_show_the_plan(stages: Stages, monkeypatch: pytest.MonkeyPatch, mac: Xcode) -> None:
    """What is wrong with it is said when something is to be compiled."""
    assert PINS is not None

    def missing(_version: str | None = None) -> Xcode:
        raise ToolError("xcode-missing", "is missing", hint="install it")

    monkeypatch.setattr(toolchains, "find_xcode", missing)
    assert jobs(stages, "ios-arm64")["ios-arm64"].toolchain.version == PINS.xcode != mac.version
    stages.ran.clear()
    assert refused(stages).code == "xcode-missing"


@pytest.mark.parametrize("sdk", ["iPhoneOS", "iPhoneSimulator"])
def test_an_xcode_without_the_sdk_of_a_target_is_refused(stages: Stages, mac: Xcode, sdk: str) -> None:
    """Another target may go on with what there is."""
    (mac.folder / "Platforms" / f"{sdk}.platform" / "Developer" / "SDKs" / f"{sdk}.sdk").rmdir()
    target = {"iPhoneOS": "ios-arm64", "iPhoneSimulator": "ios-simulator-arm64"}[sdk]
    assert refused(stages, target).code == "xcode-sdk-missing"
    assert planned_for(stages.request(target="macos-arm64"), stages.console, to_run=True).plan.assemblies


def test_the_plan_is_the_same_on_every_machine(stages: Stages, mac: Xcode) -> None:
    """But for the version of Xcode, which the buildspec may say."""
    body = f'[apple]\nxcode = "{mac.version}"\n'
    here = jobs(stages, "ios-arm64", body)
    assert here == jobs(stages, "ios-arm64", body, elsewhere=True, on_macs=True)
