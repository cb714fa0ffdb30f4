"""What the tests of the buildspec reader share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.buildspec.load import load_spec
from ortrim.errors import DiagnosticGroup, ExitCode, SpecError
from ortrim.platforms import target_problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(b"the reader opens no model")
    (tmp_path / "inputs.npz").write_bytes(b"nor inputs")
    (tmp_path / "test_data_set_0").mkdir()
    (tmp_path / "checkout").mkdir()
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Callable[[str], LoadedSpec]:

    def load_text(text: str) -> LoadedSpec:
        file = folder / "kws.toml"
        file.write_text(text, encoding="utf-8")
        return load_spec(file, target_problems)

    return load_text


@pytest.fixture
def refused(load: Callable[[str], LoadedSpec], folder: Path) -> Callable[[str], str]:
    """Return a function that gives the words with which a buildspec is refused, its folder left out."""

    def refuse(text: str) -> str:
        before = sorted([*folder.iterdir(), folder / "kws.toml"])
        with pytest.raises(DiagnosticGroup) as caught:
            load(text)
        assert caught.value.exit_code == ExitCode.SPEC
        assert all(isinstance(diagnostic, SpecError) for diagnostic in caught.value.diagnostics)
        assert sorted(folder.iterdir()) == before
        return str(caught.value).replace(f"{folder}/", "")

    return refuse
