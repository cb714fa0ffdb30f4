"""The system's compilers: found on PATH, asked for their version, refused when too old."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, ToolError
from ortrim.toolchains.system import system_toolchain
from ortrim.tools.command import run

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put programs that print something on a PATH of their own."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(*names: str, printed: str = "") -> None:
        for name in names:
            (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{printed}'\n")
            (tmp_path / name).chmod(0o755)

    return put


FIRST_LINES = [
    ("gcc", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
    ("gcc", "gcc (GCC) 13.2.1 20230801 (Red Hat 13.2.1-1)", "13.2.1"),
    ("gcc", "gcc (crosstool-NG 1.25.0) 12.1.0", "12.1.0"),
    ("gcc", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "11.4.0"),
    ("clang", "Debian clang version 14.0.6", "14.0.6"),
    ("clang", "clang version 18.1.3 (https://example.org/llvm-project.git 2f0d1d1.2)", "18.1.3"),
]


@pytest.mark.parametrize(("kind", "printed", "version"), FIRST_LINES)
def test_the_version_is_read_from_what_the_compiler_prints(
    install: Install, kind: str, printed: str, version: str
) -> None:
    """What stands in brackets is the distribution's own version."""
    install("gcc", "g++", "clang", "clang++", "ar", "ranlib", printed=printed)
    toolchain = system_toolchain("gcc" if kind == "gcc" else "clang")
    assert (toolchain.kind, toolchain.version, toolchain.triple) == (kind, version, "")


def test_a_plan_names_programs_not_places(install: Install, tmp_path: Path) -> None:
    """The same compiler gives the same plan wherever it is installed."""
    install("gcc", "g++", "ar", "ranlib", printed="gcc (GCC) 12.2.0")
    toolchain = system_toolchain("gcc")
    assert dict(toolchain.environment) == {
        "ORTRIM_COMPILER_C": "gcc", "ORTRIM_COMPILER_CXX": "g++", "ORTRIM_AR": "ar", "ORTRIM_RANLIB": "ranlib",
    }  # fmt: skip
    assert str(tmp_path) not in repr(toolchain)
    assert all("# gcc 12.2.0\n" in text for _, text in toolchain.wrappers)


@pytest.mark.parametrize("absent", ["gcc", "g++", "ar", "ranlib"])
def test_an_absent_program_is_named(install: Install, absent: str) -> None:
    """A compiler without its archiver is of no use; the text says which program is not there."""
    install(*({"gcc", "g++", "ar", "ranlib"} - {absent}), printed="gcc 12.2.0")
    with pytest.raises(ToolError) as caught:
        system_toolchain("gcc")
    assert (caught.value.reference, caught.value.exit_code) == ("compiler-missing", ExitCode.TOOL)
    assert caught.value.why == f"not there: {absent}"
    assert "apt-get install g++" in caught.value.hint


@pytest.mark.parametrize("printed", ["gcc (GCC) 10.5.0", "", "no number", "gcc version twelve", "12"])
def test_what_is_too_old_or_names_no_version_is_refused(install: Install, printed: str) -> None:
    """Neither is a compiler that one may rely on."""
    install("gcc", "g++", "ar", "ranlib", printed=printed)
    with pytest.raises(ToolError, match="version 11 or newer is needed") as caught:
        system_toolchain("gcc")
    assert caught.value.reference == "compiler-too-old"


@pytest.mark.needs("gcc")
def test_the_real_gcc_is_read_like_it_says_itself() -> None:
    """Its `-dumpfullversion` is the version in the plan."""
    assert system_toolchain("gcc").version == run(("gcc", "-dumpfullversion")).stdout.strip()
