"""Models on a command line, without a buildspec."""

import platform
from pathlib import Path

import pytest

from onnx_samples import relu, write
from ortrim.base.console import Console
from ortrim.cli.given_models import GivenModels
from ortrim.errors import ToolError, UsageError
from ortrim.pipeline import first_spec
from ortrim.pipeline.request import Request
from ortrim.spec.buildspec import CaseSpec

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


def test_tools_are_needed_only_where_this_machine_compiles() -> None:
    """Not for a plan, nor for a build at GitHub."""
    given, asked = GivenModels(model=("m.onnx",), case=CASES), Request(spec=Path(), target="ios-arm64")
    with pytest.raises(ToolError) as caught:
        given.request(asked, Console(), to_run=True)
    assert caught.value.code == "needs-mac"
    assert given.request(asked, Console()).spec == Path("artifacts/m/m.toml")
