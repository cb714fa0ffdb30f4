"""Finding the full ONNX Runtime of exactly one version."""

import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ortrim.base.scripts import Interpreter
from ortrim.errors import ExitCode, ToolError
from ortrim.models import full_runtime as module
from ortrim.models.full_runtime import DISTRIBUTION, MINIMAL_BUILD_WORDS, full_runtime

LINUX = "libonnxruntime.so.{}"


def write_distribution(folder: Path, number: str, library: bytes = b"full", name: str = LINUX) -> Path:
    information = folder / f"onnxruntime-{number}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {number}\n")
    path = folder / "onnxruntime" / "capi" / name.format(number)
    path.parent.mkdir(parents=True)
    path.write_bytes(library)
    return path


@pytest.fixture
def separate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setattr(module, "packages_folder", lambda *_, **__: folder)
    return folder


def test_the_installed_version_is_taken_as_it_is() -> None:
    runtime = full_runtime(version(DISTRIBUTION), None)
    assert runtime.words == (sys.executable,)
    assert runtime.library.name == f"libonnxruntime.so.{version(DISTRIBUTION)}"
    assert runtime.library.stat().st_size > 10_000_000


def test_another_version_comes_from_its_own_folder(separate: Path) -> None:
    """Its Python sees that folder and no site packages."""
    library = write_distribution(separate, "1.0.99")
    runtime = full_runtime("1.0.99", "onnxruntime==1.0.99 --hash=sha256:00")
    assert runtime.library == library
    assert runtime.packages == separate
    assert runtime.environment["PYTHONPATH"] == str(separate)
    assert "-S" in runtime.words


WHEELS = [
    ("Linux", LINUX, "onnxruntime_pybind11_state.so"),
    ("Darwin", "libonnxruntime.{}.dylib", "onnxruntime_pybind11_state.so"),
    ("Windows", "onnxruntime.dll", "onnxruntime_pybind11_state.pyd"),
]
"""What is in the folder `capi` of 1.21.0's wheels: the library and the extension module."""


@pytest.mark.parametrize(("system", "name", "extension"), WHEELS)
def test_the_library_is_called_as_the_wheel_of_this_system_calls_it(
    separate: Path, monkeypatch: pytest.MonkeyPatch, system: str, name: str, extension: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    library = write_distribution(separate, "1.0.99", name=name)
    assert full_runtime("1.0.99", "onnxruntime==1.0.99").library == library
    (library.parent / extension).write_bytes(MINIMAL_BUILD_WORDS)
    refused("1.0.99", "onnxruntime==1.0.99", "converter-not-full")


def refused(number: str, requirements: str | None, reference: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        full_runtime(number, requirements)
    assert caught.value.code == reference
    assert caught.value.exit_code == ExitCode.TOOL
    assert caught.value.hint
    return caught.value


def test_a_version_without_pins_is_unavailable() -> None:
    refused("1.0.99", None, "converter-unavailable")


def test_a_python_without_a_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:

    def no_wheel(*_: object, **__: object) -> Path:
        why = "ERROR: No matching distribution found for onnxruntime==1.0.99"
        raise ToolError("install-failed", "pip could not install the pinned packages", why=why)

    monkeypatch.setattr(module, "packages_folder", no_wheel)
    error = refused("1.0.99", "onnxruntime==1.0.99", "converter-unavailable")
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in error.why


OLDER = Interpreter(program="/opt/python3.12", version=(3, 12))


@pytest.mark.parametrize(
    ("number", "own", "taken"),
    [
        ("1.23.2", (3, 13), "own"),
        ("1.23.2", (3, 14), "older"),
        ("1.24.0", (3, 14), "older"),
        ("1.24.1", (3, 14), "own"),
        ("1.30.0", (3, 14), "own"),
    ],
)
def test_a_version_without_a_wheel_for_ours_runs_in_an_older_python(
    separate: Path, monkeypatch: pytest.MonkeyPatch, number: str, own: tuple[int, int], taken: str
) -> None:
    """Python 3.14 came after 1.24.0; its packages are installed for the Python that they run in."""
    ours = Interpreter(program="/opt/python", version=own)
    monkeypatch.setattr(module, "OWN", ours)
    monkeypatch.setattr(module, "find_interpreter", lambda versions: OLDER if OLDER.version in versions else None)
    write_distribution(separate, number)
    expected = ours if taken == "own" else OLDER
    runtime = full_runtime(number, f"onnxruntime=={number} --hash=sha256:00")
    assert (runtime.python, runtime.words) == (expected, expected.isolated)


def test_without_an_older_python_both_ways_out_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One to install, or another version to build; no package index is asked."""
    monkeypatch.setattr(module, "OWN", Interpreter(program="/opt/python", version=(3, 14)))
    monkeypatch.setattr(module, "find_interpreter", lambda _: None)
    monkeypatch.setattr(module, "packages_folder", None)
    error = refused("1.0.99", "onnxruntime==1.0.99", "converter-unavailable")
    assert "Python 3.14" in error.why
    assert "python3.13 is on PATH" in error.hint
    assert "1.24.1 or newer" in error.hint


def test_other_failures_of_pip_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure with another cause keeps its own diagnostic."""

    def failed(*_: object, **__: object) -> Path:
        raise ToolError("install-failed", "pip could not install", why="it has its reasons", hint="ask it")

    monkeypatch.setattr(module, "packages_folder", failed)
    refused("1.0.99", "onnxruntime==1.0.99", "install-failed")


def test_pins_of_another_version_are_refused(separate: Path) -> None:
    """Requirements that install a newer converter are caught before it converts anything."""
    write_distribution(separate, "1.1.0")
    refused("1.0.99", "onnxruntime==1.1.0", "converter-unavailable")


def test_a_minimal_build_is_refused(separate: Path) -> None:
    write_distribution(separate, "1.0.99", b"\x7fELF..." + MINIMAL_BUILD_WORDS + b"...")
    refused("1.0.99", "onnxruntime==1.0.99", "converter-not-full")


@pytest.mark.parametrize("library", [None, b""])
def test_a_wheel_without_its_library_is_refused(separate: Path, library: bytes | None) -> None:
    """A half-removed installation is named instead of failing later."""
    path = write_distribution(separate, "1.0.99", library or b"")
    if library is None:
        path.unlink()
    refused("1.0.99", "onnxruntime==1.0.99", "converter-incomplete")
