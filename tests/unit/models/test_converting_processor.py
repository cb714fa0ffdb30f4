"""The processor that a layout is converted on."""

import platform
from pathlib import Path

import pytest

from ortrim.base.tools import InstalledTool
from ortrim.buildspec.buildspec import Layout
from ortrim.errors import ConvertError, ToolError
from ortrim.models import convert as module
from ortrim.models.convert import converter_for
from ortrim.models.full_runtime import FullRuntime
from refusing import refused

RUNTIME = FullRuntime(
    version="1.21.0", words=("python", "-I"), environment={}, packages=Path("p"), library=Path("l.so")
)


def on(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


def test_the_runtime_is_started_by_qemu_without_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "Linux", "x86_64")
    qemu = InstalledTool(name="qemu-x86_64-static", path=Path("/usr/bin/qemu-x86_64-static"), version="7.2")
    monkeypatch.setattr(module, "require", lambda _: qemu)
    words = converter_for("nchwc8", RUNTIME, "m").words
    assert words[:2] == (str(qemu.path), "-cpu")
    assert words[2].startswith("Haswell")
    assert words[3:] == RUNTIME.words


@pytest.mark.parametrize("layout", ["nchwc8", "nchwc16"])
@pytest.mark.parametrize("machine", [("Linux", "aarch64"), ("Darwin", "x86_64"), ("Darwin", "arm64")])
def test_elsewhere_it_is_refused_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch, machine: tuple[str, str], layout: Layout
) -> None:
    """The wheel of an ARM machine does not know the layout; qemu runs programs of Linux alone."""
    on(monkeypatch, *machine)
    error = refused(ConvertError, converter_for, layout, RUNTIME, "vad")
    assert (error.code, error.where) == ("layout-not-here", "vad")


@pytest.mark.parametrize("layout", ["plain", "s8s8"])
def test_other_models_are_converted_on_any_machine(monkeypatch: pytest.MonkeyPatch, layout: Layout) -> None:
    on(monkeypatch, "Darwin", "arm64")
    assert converter_for(layout, RUNTIME, "m") is RUNTIME


def test_blocks_of_16_are_made_by_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which has to have AVX-512: by its own words, not by a part of another one."""
    on(monkeypatch, "Linux", "x86_64")
    monkeypatch.setattr(module, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512dq\n")
    assert converter_for("nchwc16", RUNTIME, "m") is RUNTIME
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx2 avx512fp16\n")
    error = refused(ConvertError, converter_for, "nchwc16", RUNTIME, "vad")
    assert (error.code, error.where) == ("layout-not-here", "vad")
    assert "nchwc8" in error.hint


def test_without_qemu_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A processor that has AVX-512 cannot do it, and one that has not would give other bytes."""
    on(monkeypatch, "Linux", "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused(ToolError, converter_for, "nchwc8", RUNTIME, "vad").code == "tool-missing"
