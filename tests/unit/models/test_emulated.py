"""Converting on an emulated processor."""

import platform
from pathlib import Path

import pytest

from ortrim.errors import ConvertError, ToolError
from ortrim.models import emulated as module
from ortrim.models.emulated import emulated
from ortrim.tools.base import InstalledTool
from ortrim.tools.full_runtime import FullRuntime

RUNTIME = FullRuntime(
    version="1.21.0", words=("python", "-I"), environment={}, packages=Path("p"), library=Path("l.so")
)


def on(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    """Pretend to be on a machine."""
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


def test_the_runtime_is_started_by_qemu_without_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine has."""
    on(monkeypatch, "Linux", "x86_64")
    qemu = InstalledTool(name="qemu-x86_64-static", path=Path("/usr/bin/qemu-x86_64-static"), version="7.2")
    monkeypatch.setattr(module, "require", lambda _: qemu)
    words = emulated(RUNTIME, "m").words
    assert words[:2] == (str(qemu.path), "-cpu")
    assert words[2].startswith("Haswell")
    assert words[3:] == RUNTIME.words


@pytest.mark.parametrize("machine", [("Linux", "aarch64"), ("Darwin", "x86_64"), ("Darwin", "arm64")])
def test_elsewhere_it_is_refused_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch, machine: tuple[str, str]
) -> None:
    """The wheel of an ARM machine does not know the layout; qemu runs programs of Linux alone."""
    on(monkeypatch, *machine)
    with pytest.raises(ConvertError) as caught:
        emulated(RUNTIME, "vad")
    assert (caught.value.reference, caught.value.where) == ("layout-not-here", "vad")


def test_without_qemu_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A processor that has AVX-512 cannot do it, and one that has not would give other bytes."""
    on(monkeypatch, "Linux", "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError) as caught:
        emulated(RUNTIME, "vad")
    assert caught.value.reference == "tool-missing"
