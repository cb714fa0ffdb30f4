"""Which version of ONNX Runtime models without a buildspec get, with a repository of git in the place of upstream's."""

import io
import platform
import tomllib
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.buildspec.targets import TARGETS
from ortrim.cli.options import GivenModels
from ortrim.compiling.upstream_arguments import optional_sources
from ortrim.errors import ModelError
from ortrim.pins.runtime import REPOSITORY, default_version, proofs, runtime_pins
from ortrim.planning.request import Request
from ortrim.planning.version_choice import version_to_judge
from ortrim.sources.sources import choices_of
from refusing import refused

NEWEST: Final = next(iter(proofs()))
NEWER: Final = ", ".join(version for version in proofs() if version != default_version())
CASES: Final = ("one:x=1",)
"""Given, so that none is looked for."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend a Linux for x86-64 that upstream answers, in a folder with models of an old and of a new opset."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert run(("git", "init", "--quiet", "upstream")).returncode == 0
    monkeypatch.setenv("ORTRIM_MIRRORS", f"{REPOSITORY}.git={tmp_path / 'upstream'}")
    write(Path("old.onnx"), relu())
    model = relu()
    model.opset_import[0].version = 24
    write(Path("new.onnx"), model)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing answer in upstream's place."""
    monkeypatch.setenv("ORTRIM_MIRRORS", f"{REPOSITORY}.git={Path('nowhere').absolute()}")


def chosen(model: str, target: str | None = None, version: str | None = None) -> tuple[str, str]:
    """Return the version in the buildspec of a build, and what was said."""
    said = io.StringIO()
    console = Console(stdout=said, stderr=said, environment={})
    given = GivenModels(model=(model,), case=CASES, ort_version=version)
    spec = given.first_spec(console, Request(spec=Path(), target=target))
    return tomllib.loads(spec.text(Path(), console))["onnxruntime"]["version"], said.getvalue()


def test_it_is_the_newest_that_is_proved_for_the_target() -> None:
    version, said = chosen("old.onnx")
    assert version == NEWEST
    assert f"ONNX Runtime {NEWEST}, proved by hand on" in said
    version, said = chosen("old.onnx", "ios-arm64")
    assert version == default_version()
    assert f"; {NEWER} are not proved for ios-arm64" in said


@pytest.mark.usefixtures("offline")
def test_what_cannot_be_had_is_passed_over() -> None:
    version, said = chosen("old.onnx")
    assert version == default_version()
    assert "proved by CI on" in said
    assert f"; {NEWER} are not to be had: " in said


@pytest.mark.usefixtures("offline")
def test_what_is_in_the_cache_can_be_had() -> None:
    """As a build of it leaves it there: with what libraries of the target need beside the rest."""
    wanted = optional_sources(())
    choices, _ = choices_of(runtime_pins(NEWEST), "auto", None, wanted)
    choices[0].folder.mkdir(parents=True)
    assert chosen("old.onnx")[0] == NEWEST


@pytest.mark.usefixtures("offline")
def test_a_model_that_is_too_new_for_what_there_is_hears_what_would_read_it() -> None:
    error = refused(ModelError, chosen, "new.onnx")
    assert error.code == "unsupported-opset"
    assert error.why.startswith(f"{NEWEST}, ")
    assert " are not to be had: " in error.why
    assert f"{default_version()} are not enough: opset 24 of ai.onnx" in error.why
    assert "choose another onnxruntime.version" in error.hint


def test_a_version_of_the_last_build_stays_while_it_reads_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever upstream answers by then; one that an option names goes first."""
    folder = Path("artifacts/old")
    folder.mkdir(parents=True)
    (folder / "old.toml").write_text(f'onnxruntime = {{ version = "{default_version()}" }}\n')
    version, said = chosen("old.onnx")
    assert version == default_version()
    assert "as in the last build" in said
    assert chosen("old.onnx", version="1.30") == ("1.30.0", "")
    folder.rename("artifacts/new")
    Path("artifacts/new/old.toml").rename("artifacts/new/new.toml")
    assert chosen("new.onnx")[0] == NEWEST


def test_a_version_of_the_last_build_does_not_stay_for_a_target_that_it_is_not_proved_for() -> None:
    """The folder has one buildspec for all targets of the models."""
    folder = Path("artifacts/old")
    folder.mkdir(parents=True)
    (folder / "old.toml").write_text(f'onnxruntime = {{ version = "{NEWEST}" }}\n')
    assert chosen("old.onnx")[0] == NEWEST
    version, said = chosen("old.onnx", "ios-arm64")
    assert version == default_version()
    assert f"; {NEWER} are not proved for ios-arm64" in said


def test_models_are_judged_for_what_they_would_be_built_with() -> None:
    assert version_to_judge("new.onnx") == NEWEST
    model = relu()
    model.opset_import[0].version = 99
    write(Path("newer.onnx"), model)
    assert version_to_judge("newer.onnx") == default_version()


def test_proofs_are_of_targets_and_told_on_the_status_page() -> None:
    """The newest first, and the default among them."""
    status = Path(__file__).parents[3] / "docs/explanation/status.md"
    assert default_version() in proofs()
    for version, proof in proofs().items():
        assert set(proof.targets) <= set(TARGETS)
        assert f"| {version} |" in status.read_text(encoding="utf-8")
