"""`invoke build --target android...`: what the program says without an NDK, from the shell's point of view."""

from pathlib import Path

import pytest

from ndk_layout import LINUX, forget_ndks
from onnx_samples import relu, write
from ortrim.cli.options import request_from
from ortrim.errors import ExitCode
from ortrim.platforms.android import ndk
from program_runs import Run

SPEC = '[[models]]\nname = "tiny"\npath = "tiny.onnx"\n'


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget where this machine has an NDK, and whether one could run here."""
    forget_ndks(monkeypatch)
    monkeypatch.setattr(ndk, "_prebuilt", lambda: LINUX)


@pytest.fixture
def spec(ortrim: Run) -> Run:
    """Write a buildspec into the folder in which the program runs."""
    write(Path("tiny.onnx"), relu())
    Path("tiny.toml").write_text(SPEC)
    return ortrim


@pytest.mark.parametrize("target", ["android", "android-x86"])
def test_without_an_ndk_a_build_says_what_to_get(spec: Run, target: str) -> None:
    """The version and the two ways to name its folder; nothing was converted, nothing is left."""
    with Path("tiny.toml").open("a") as file:
        file.write('\n[android]\ntoolchain = "ndk"\n')
    ended = spec("build", "--spec", "tiny.toml", "--target", target)
    assert (ended.code, ended.out) == (ExitCode.TOOL, "")
    assert ended.err.startswith("error: ndk-missing\n")
    assert "ndk;27.2.12479018" in ended.err
    assert "--ndk" in ended.err
    assert sorted(path.name for path in Path().rglob("*") if path.is_file()) == ["tiny.onnx", "tiny.toml"]


def test_a_folder_that_is_no_ndk_is_named(spec: Run) -> None:
    """As it was written on the command line."""
    ended = spec("build", "--spec", "tiny.toml", "--target", "android", "--ndk", "no such folder", "--json")
    assert ended.code == ExitCode.TOOL
    (error,) = ended.document()["errors"]
    assert (error["code"], error["where"]) == ("ndk-not-a-folder", "--ndk no such folder")


def test_the_folder_becomes_part_of_the_request() -> None:
    """Without the option it is left to the environment."""
    assert request_from(None, ndk="a b").ndk == Path("a b")
    assert request_from(None).ndk is None
