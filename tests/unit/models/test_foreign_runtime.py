from pathlib import Path

import pytest

from ortrim.errors import ToolError
from ortrim.models import full_runtime
from ortrim.models.full_runtime import foreign_library
from ortrim.pins.shipped import pin_text
from refusing import refused

SHA = "--hash=sha256:" + "a" * 64
REQUIREMENTS = f"""\
coloredlogs==15.0 \\
    {SHA}
onnxruntime==1.21.0 \\
    {SHA} \\
    --hash=sha256:{"b" * 64}
packaging==24.0 \\
    {SHA}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, tuple[str, ...]]]:
    """Have a wheel's folder without installing one; returns what was asked for."""
    asked: list[tuple[str, str, tuple[str, ...]]] = []

    def folder(name: str, requirements: str, *, platforms: tuple[str, ...]) -> Path:
        asked.append((name, requirements, platforms))
        return tmp_path

    monkeypatch.setattr(full_runtime, "packages_folder", folder)
    (tmp_path / "onnxruntime" / "capi").mkdir(parents=True)
    (tmp_path / "onnxruntime" / "capi" / "libonnxruntime.so.1.21.0").write_bytes(b"library")
    return asked


def test_the_official_library_for_another_machine(installed: list[tuple[str, str, tuple[str, ...]]]) -> None:
    library = foreign_library("1.21.0", REQUIREMENTS, "arm64")
    assert library is not None
    assert library.read_bytes() == b"library"
    ((name, requirements, platforms),) = installed
    assert name == "onnxruntime-1.21.0"
    assert requirements == REQUIREMENTS[REQUIREMENTS.index("onnxruntime") : REQUIREMENTS.index("packaging")]
    assert all("aarch64" in platform for platform in platforms)


@pytest.mark.parametrize(
    ("requirements", "architecture"),
    [
        (REQUIREMENTS, "arm"),
        (REQUIREMENTS, "riscv64"),
        (None, "arm64"),
        ("", "arm64"),
        (REQUIREMENTS.replace("1.21.0", "1.22.0"), "arm64"),
        (REQUIREMENTS.replace("onnxruntime", "not-onnxruntime"), "arm64"),
        ("onnxruntime==1.21.0\n", "arm64"),
    ],
)
def test_where_there_is_none(
    installed: list[tuple[str, str, tuple[str, ...]]], requirements: str | None, architecture: str
) -> None:
    """No wheel for the machine, no pins, another version or a line without hashes: nothing is fetched."""
    assert foreign_library("1.21.0", requirements, architecture) is None
    assert installed == []


@pytest.mark.parametrize("content", [None, b""])
def test_a_wheel_without_its_library(
    installed: list[tuple[str, str, tuple[str, ...]]], tmp_path: Path, content: bytes | None
) -> None:
    """A folder that somebody emptied says which one to remove."""
    path = tmp_path / "onnxruntime" / "capi" / "libonnxruntime.so.1.21.0"
    path.unlink() if content is None else path.write_bytes(content)
    error = refused(ToolError, foreign_library, "1.21.0", REQUIREMENTS, "arm64")
    assert error.code == "baseline-incomplete"
    assert str(tmp_path) in error.hint


@pytest.mark.parametrize("version", ["1.21.0", "1.21.1", "1.22.0", "1.23.2"])
def test_every_pinned_version_has_one(installed: list[tuple[str, str, tuple[str, ...]]], version: str) -> None:
    """The pins that ship with ortrim name the wheels of all machines."""
    with pytest.raises(ToolError) if version != "1.21.0" else pytest.MonkeyPatch.context():
        foreign_library(version, pin_text(f"requirements/onnxruntime-{version}.txt"), "arm64")
    assert installed[0][1].startswith(f"onnxruntime=={version} \\\n")
    assert installed[0][1].count("--hash=sha256:") >= 10
