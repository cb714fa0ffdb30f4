"""`bundle` as a shell runs it, and tasks that are given a bundle."""

from pathlib import Path

import pytest

from bundle_samples import write_bundle
from program_runs import Run

SPEC = 'onnxruntime = {{ version = "{version}" }}\n[[models]]\nname = "one"\npath = "m.onnx"\n'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Write a buildspec for the version and a target of the sample bundle, and that bundle."""
    write_bundle(tmp_path / "b.zip")
    (tmp_path / "m.onnx").write_bytes(b"not opened")
    file = tmp_path / "one.toml"
    file.write_text(SPEC.format(version="1.24.4"))
    return file


def test_a_bundle_of_another_version(ortrim: Run, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec.write_text(SPEC.format(version="1.21.0"))
    monkeypatch.setenv("ORTRIM_BUNDLE", str(spec.parent / "b.zip"))
    ended = ortrim("plan", "--spec", str(spec), "--target", "linux-x64")
    assert ended.code == 14
    assert "bundle-of-another-version" in ended.err


@pytest.mark.parametrize(
    ("target", "size", "code", "reference"),
    [
        ("linux-riscv64", None, 14, "bundle-lacks-target"),
        ("linux-x64", 500, 22, "corrupt-archive"),
        ("linux-x64", 0, 22, "corrupt-archive"),
    ],
)
def test_the_option_of_build(
    ortrim: Run, spec: Path, *, target: str, size: int | None, code: int, reference: str
) -> None:
    bundle = spec.parent / "b.zip"
    bundle.write_bytes(bundle.read_bytes()[:size])
    ended = ortrim("build", "--spec", str(spec), "--target", target, "--bundle", str(bundle))
    assert ended.code == code
    assert reference in ended.err
    assert str(bundle) in ended.err


def test_a_bundle_of_what_there_is_not(ortrim: Run, tmp_path: Path) -> None:
    ended = ortrim("bundle", "--ort-version", "9.9.9", "--target", "linux-x64", "--output", str(tmp_path / "b.zip"))
    assert ended.code == 2
    assert "unknown-version" in ended.err
    assert not list(tmp_path.glob("b.zip"))
