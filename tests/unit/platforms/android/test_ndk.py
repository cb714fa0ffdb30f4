"""Finding an installed NDK. The layouts here are empty files: nothing in them is run."""

import os
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from ndk_layout import LINUX, lay_out_ndk
from ndk_layout import NDK_VERSION as VERSION
from ortrim.errors import ExitCode, ToolError
from ortrim.platforms.android.ndk import (
    LEVELS,
    PARTS,
    PREBUILT,
    PREBUILT_PARTS,
    PROPERTIES,
    Ndk,
    chosen_version,
    find_ndk,
    installed_ndk,
    installed_versions,
)

OTHER = "28.0.13004108"
WHOLE = (*PARTS, *(f"{LINUX}/{part}" for part in PREBUILT_PARTS))


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.fixture
def ndk(tmp_path: Path) -> Path:
    return lay_out_ndk(tmp_path / "an ndk")


def refused(
    named: Path | None = None, environment: dict[str, str] | None = None, version: str = VERSION, api: int | None = None
) -> ToolError:
    with pytest.raises(ToolError) as caught:
        find_ndk(version, named=named, api=api, environment=environment or {})
    assert caught.value.exit_code is ExitCode.TOOL
    assert caught.value.hint
    return caught.value


def test_an_ndk_that_was_named_is_found(ndk: Path) -> None:
    found = find_ndk(VERSION, named=ndk, environment={"ANDROID_NDK_HOME": "/nowhere"})
    assert found == Ndk(folder=ndk, version=VERSION, levels=None)


@pytest.mark.parametrize("variable", ["ANDROID_NDK_HOME", "ANDROID_NDK_ROOT"])
def test_an_ndk_is_found_where_the_environment_says(ndk: Path, variable: str) -> None:
    assert find_ndk(VERSION, environment={variable: str(ndk)}).folder == ndk
    assert installed_ndk({variable: str(ndk)}).version == VERSION


@pytest.mark.parametrize("variable", ["ANDROID_HOME", "ANDROID_SDK_ROOT"])
def test_an_ndk_is_found_in_an_sdk(tmp_path: Path, variable: str) -> None:
    """An SDK has several side by side, and the one of the plan's version is taken."""
    for version in (VERSION, OTHER):
        lay_out_ndk(tmp_path / "sdk" / "ndk" / version, version)
    environment = {variable: str(tmp_path / "sdk")}
    assert find_ndk(OTHER, environment=environment).folder == tmp_path / "sdk" / "ndk" / OTHER


def test_of_several_the_one_of_the_right_version_is_taken(tmp_path: Path) -> None:
    """Machines of CI name one and have the others in the SDK."""
    environment = {"ANDROID_NDK_HOME": str(lay_out_ndk(tmp_path / "named", OTHER)), "ANDROID_HOME": str(tmp_path)}
    lay_out_ndk(tmp_path / "ndk" / VERSION)
    assert find_ndk(VERSION, environment=environment).folder == tmp_path / "ndk" / VERSION


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_a_mac_has_its_own_folder_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    """One for both kinds of Macs, called after the older; an NDK for Linux is none there."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    mac = lay_out_ndk(tmp_path / "mac", prebuilt=PREBUILT["Darwin", machine])
    assert find_ndk(VERSION, named=mac).prebuilt == mac / "toolchains/llvm/prebuilt/darwin-x86_64"
    error = refused(named=lay_out_ndk(tmp_path / "linux"))
    assert (error.code, "darwin-x86_64/bin/clang" in error.why) == ("ndk-incomplete", True)


def test_all_that_are_installed_are_known(tmp_path: Path) -> None:
    """Named ones, and those of an SDK, the newest first; what cannot be used is none of them."""
    sdk = tmp_path / "sdk"
    for version in ("9.0.100000", OTHER, VERSION):
        lay_out_ndk(sdk / "ndk" / version, version)
    lay_out_ndk(sdk / "ndk" / "28.1.13356709", "28.1.13356709", "elsewhere")
    (sdk / "ndk" / ".installer").mkdir()
    named = lay_out_ndk(tmp_path / "named", "26.3.11579264")
    environment = {"ANDROID_NDK_HOME": str(named), "ANDROID_SDK_ROOT": str(sdk), "ANDROID_HOME": "/nowhere"}
    assert installed_versions(None, environment) == ("26.3.11579264", OTHER, VERSION, "9.0.100000")
    assert installed_versions(sdk / "ndk" / OTHER, environment) == (OTHER,)
    assert installed_ndk({"ANDROID_HOME": str(sdk)}).version == OTHER


@pytest.mark.parametrize(
    ("wanted", "pinned", "installed", "chosen"),
    [
        (None, VERSION, (), VERSION),
        (None, VERSION, (OTHER, VERSION), VERSION),
        (None, VERSION, ("27.0.12077973", "28.2.13676358", OTHER, "27.10.1000000"), "28.2.13676358"),
        (None, VERSION, ("25.2.9519653", "29.0.14206865", "28.0.0-beta1"), VERSION),
        (None, None, (OTHER,), OTHER),
        (None, None, (), None),
        ("27", VERSION, (OTHER,), VERSION),
        ("27", VERSION, ("27.9.1000000", "27.10.1000000"), "27.10.1000000"),
        ("28", VERSION, (VERSION,), OTHER),
        ("28", VERSION, (VERSION, "28.2.13676358"), "28.2.13676358"),
        ("25", VERSION, ("25.2.9519653",), "25.2.9519653"),
        ("25", VERSION, (VERSION,), None),
        (OTHER, VERSION, (VERSION,), OTHER),
    ],
)
def test_the_version_that_a_plan_is_made_for(
    wanted: str | None, pinned: str | None, installed: tuple[str, ...], chosen: str | None
) -> None:
    """An exact one is kept; else the pinned one, unless there are others alone; numbers are compared, not letters."""
    assert chosen_version(wanted, pinned, installed) == chosen


def test_a_link_is_followed_to_where_the_ndk_is(ndk: Path, tmp_path: Path) -> None:
    """CMake makes a path of its own from it, which must be the same one."""
    (tmp_path / "link").symlink_to(ndk)
    assert find_ndk(VERSION, named=tmp_path / "link").folder == ndk


@pytest.mark.parametrize("environment", [{}, {"ANDROID_NDK_HOME": ""}, {"ANDROID_HOME": "/nowhere"}])
def test_without_an_ndk_it_is_said_which_one_to_get(environment: dict[str, str]) -> None:
    """The version that the plan wants, and both ways to name its folder; an SDK without NDKs is none."""
    error = refused(environment=environment)
    assert error.code == "ndk-missing"
    assert f"sdkmanager 'ndk;{VERSION}'" in error.hint
    assert "--ndk" in error.hint
    assert "ANDROID_NDK_HOME" in error.hint


@pytest.mark.parametrize("name", ["nothing here", "a\0b", "x" * 5000])
def test_a_folder_that_is_not_there_is_said_with_who_named_it(tmp_path: Path, name: str) -> None:
    error = refused(named=tmp_path / name)
    assert (error.code, error.where) == ("ndk-not-a-folder", f"--ndk {tmp_path / name}")
    assert error.what == "there is no such folder"


def test_a_file_is_no_ndk(ndk: Path) -> None:
    error = refused(environment={"ANDROID_NDK_ROOT": str(ndk / PROPERTIES)})
    assert (error.code, error.where) == ("ndk-not-a-folder", f"ANDROID_NDK_ROOT {ndk / PROPERTIES}")
    assert "is a file" in error.what


@pytest.mark.parametrize("part", WHOLE)
def test_an_ndk_that_lacks_a_part_is_not_whole(ndk: Path, part: str) -> None:
    remove(ndk / part)
    error = refused(named=ndk)
    assert (error.code, error.why) == ("ndk-incomplete", f"not there: {part}")


def test_another_version_is_refused_with_both_ways_out(ndk: Path) -> None:
    error = refused(named=ndk, version=OTHER)
    assert error.code == "ndk-wrong-version"
    assert error.what == f"is version {VERSION}; the plan is for {OTHER}"
    assert f"'ndk;{OTHER}'" in error.hint
    assert f'android.ndk = "{VERSION}"' in error.hint


def test_a_preview_is_another_version(tmp_path: Path) -> None:
    error = refused(named=lay_out_ndk(tmp_path / "ndk", f"{VERSION}-beta1"))
    assert (error.code, f"{VERSION}-beta1" in error.what) == ("ndk-wrong-version", True)


@pytest.mark.parametrize(
    "properties",
    [b"", b"Pkg.Revision", b"Pkg.Revision = r27c\n", b"\xff\xfe\x00", b"#Pkg.Revision = 27.2.1\n", b"x" * (1 << 20)],
)
def test_an_ndk_that_does_not_say_its_version_is_damaged(ndk: Path, properties: bytes) -> None:
    (ndk / PROPERTIES).write_bytes(properties)
    error = refused(named=ndk)
    assert error.code == "ndk-damaged"
    assert len(error.why) < 300


@pytest.mark.parametrize("api", [20, 36])
def test_a_level_that_the_ndk_does_not_know_is_refused(ndk: Path, api: int) -> None:
    levels(ndk, '{"min": 21, "max": 35, "aliases": {"20": 19}}')
    assert find_ndk(VERSION, named=ndk, api=35).levels == (21, 35)
    error = refused(named=ndk, api=api)
    assert error.code == "ndk-api-level"
    assert error.what == f"knows the API levels 21 to 35, not {api}"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"min": "a", "max": 1}', '{"min": 1}', '{"min": null, "max": []}'])
def test_levels_that_cannot_be_read_refuse_nothing(ndk: Path, text: str) -> None:
    """CMake looks at them again."""
    levels(ndk, text)
    assert find_ndk(VERSION, named=ndk, api=99).levels is None


@pytest.mark.parametrize(("system", "machine"), [("Linux", "aarch64"), ("Windows", "AMD64")])
def test_other_hosts_are_reported_so(ndk: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    for error in (refused(named=ndk), refused()):
        assert error.code == "ndk-unsupported-host"
        assert f"{system} {machine}" in error.what
        assert "invoke plan" in error.hint
        assert 'android.toolchain = "zig"' in error.hint
        assert "install" not in error.hint


def test_without_an_environment_the_doctors_ndk_is_missing() -> None:
    """No version is asked for, since each buildspec may want its own."""
    with pytest.raises(ToolError, match="is not found") as caught:
        installed_ndk({})
    assert caught.value.code == "ndk-missing"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_properties_that_may_not_be_read_are_damage(ndk: Path) -> None:
    (ndk / PROPERTIES).chmod(0)
    assert refused(named=ndk).code == "ndk-damaged"


def levels(ndk: Path, text: str) -> None:
    (ndk / LEVELS).parent.mkdir()
    (ndk / LEVELS).write_text(text)


def remove(path: Path) -> None:
    remover: Callable[[], None] = path.rmdir if path.is_dir() else path.unlink
    remover()
