"""Models on a command line, without a buildspec."""

import os
import platform
from pathlib import Path

import pytest

from onnx_samples import relu, write
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import CaseSpec
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.cli.options import GivenModels, latest_folders
from ortrim.errors import ToolError, UsageError
from ortrim.planning import first_spec
from ortrim.planning.request import Request
from refusing import refused

CASES = ("one:x=1",)
"""Given, so that none is looked for."""


@pytest.fixture(autouse=True)
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend a Linux for x86-64, in an empty folder with a model."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write(Path("m.onnx"), relu())


def test_a_target_that_does_not_exist_is_refused_before_cases_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for them may take many seconds."""

    def forbidden(*_: object) -> CaseSpec:
        raise AssertionError

    monkeypatch.setattr(first_spec, "found_for", forbidden)
    with pytest.raises(UsageError, match="nowhere"):
        GivenModels(model=("m.onnx",)).request(Request(spec=Path(), target="nowhere"), Console(), to_run=True)
    assert not Path("artifacts/m").exists()


def test_the_level_of_a_model_that_steps_change_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes several conversions, and would be that of another model."""
    sought: list[str] = []
    monkeypatch.setattr(first_spec, "full_runtime", lambda *_: None)
    monkeypatch.setattr(first_spec, "lower_level", lambda prepared, *_, **__: sought.append(prepared.name))
    given = GivenModels(model=("m.onnx",), case=CASES)
    for steps, looked in ((("strip",), []), ((), ["m"])):
        given.first_spec(Console(), steps=steps).with_cases(Console())
        assert sought == looked


def test_tools_are_needed_only_where_this_machine_compiles() -> None:
    """Not for a plan, nor for a build at GitHub."""
    given = GivenModels(model=("m.onnx",), case=CASES)
    asked = Request(spec=Path(), target="android-arm64-v8a", ndk=Path("nowhere"))
    assert refused(ToolError, given.request, asked, Console(), to_run=True).code == "ndk-not-a-folder"
    assert given.request(asked, Console()).spec == Path("artifacts/m/m.toml")


def test_what_was_built_last_goes_by_its_name() -> None:
    """For each target the report that was written last; a file of the name comes first."""
    folders = [Path("artifacts/net") / plan / target for plan in ("aa", "bb") for target in ("linux-x64", "ios-arm64")]
    for at, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "report.json").touch()
        os.utime(folder / "report.json", (100 - at, 100 - at))
    assert latest_folders(("net",), Path("artifacts"), None) == {"ios-arm64": folders[1], "linux-x64": folders[0]}
    assert latest_folders(("net",), Path("artifacts"), "linux") == {"linux-x64": folders[0]}
    assert latest_folders(("net", "net"), Path("artifacts"), None) == {}
    assert latest_folders(("m.onnx",), Path("artifacts"), None) == {}
    error = refused(UsageError, latest_folders, ("nett",), Path("artifacts"), None)
    assert (error.code, error.hint) == ("unknown-word", "did you mean 'net'?")


@pytest.mark.parametrize("step", WITHOUT_KEYS)
def test_a_step_is_named_without_its_keys(step: str) -> None:
    """Each that the command line knows has something to do by its defaults."""
    (model,) = GivenModels(model=("m.onnx",), case=CASES).first_spec(Console(), steps=(step,)).loaded().models
    assert [each.use for each in model.steps] == [step]
