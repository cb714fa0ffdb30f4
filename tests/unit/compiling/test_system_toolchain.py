"""The system's compilers: found on PATH, asked for their version, refused when too old."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from ortrim.base.command import Completed, run
from ortrim.buildspec.build_options import PROFILES
from ortrim.compiling.toolchains import system_toolchain
from ortrim.errors import ExitCode, ToolError

Install = Callable[..., None]


def run_wrapper(text: str, compiler: str, folder: Path, *arguments: str) -> Completed:
    """Run a wrapper of this text, in a folder, in front of a compiler on the machine's own PATH."""
    wrapper = folder / "wrapper"
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    names = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX")
    places = {"PATH": "/usr/local/bin:/usr/bin:/bin", "ORTRIM_SOURCES": "/sources", "ORTRIM_BUILD": str(folder)}
    return run((wrapper, *arguments), cwd=folder, environment=places | dict.fromkeys(names, compiler))


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
    assert (caught.value.code, caught.value.exit_code) == ("compiler-missing", ExitCode.TOOL)
    assert caught.value.why == f"not there: {absent}"
    assert "apt-get install g++" in caught.value.hint


@pytest.mark.parametrize("printed", ["gcc (GCC) 10.5.0", "", "no number", "gcc version twelve", "12"])
def test_what_is_too_old_or_names_no_version_is_refused(install: Install, printed: str) -> None:
    """Neither is a compiler that one may rely on."""
    install("gcc", "g++", "ar", "ranlib", printed=printed)
    with pytest.raises(ToolError, match="version 11 or newer is needed") as caught:
        system_toolchain("gcc")
    assert caught.value.code == "compiler-too-old"


@pytest.mark.parametrize(("kind", "printed", "level"), [
    ("gcc", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "-Os"),
    ("gcc", "gcc (GCC) 12.1.0", "-Oz"),
    ("clang", "Debian clang version 14.0.6", "-Oz"),
])  # fmt: skip
def test_a_gcc_without_the_smallest_level_is_given_the_next(
    install: Install, kind: Literal["gcc", "clang"], printed: str, level: str, tmp_path: Path
) -> None:
    """`-Oz` came with gcc 12; to gcc 11 it is an error."""
    install("gcc", "g++", "clang", "clang++", "ar", "ranlib", printed=printed)
    wrappers = dict(system_toolchain(kind).wrappers)
    for name in ("cc", "c++"):
        given = run_wrapper(wrappers[name], "echo", tmp_path, "-c", "-Oz", "-O3", "a.cc")
        assert given.stdout.split()[-4:] == ["-c", level, "-O3", "a.cc"]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("level", sorted({PROFILES["balanced"].cold, PROFILES["balanced"].hot}))
def test_the_machines_own_gcc_compiles_with_the_flags_of_the_default_profile(level: str, tmp_path: Path) -> None:
    """Through its wrapper, whichever version it is."""
    text = dict(system_toolchain("gcc").wrappers)["cc"]
    (tmp_path / "a.c").write_text("int one(void) { return 1; }\n")
    done = run_wrapper(text, "gcc", tmp_path, level, "-fomit-frame-pointer", "-g0", "-c", "a.c", "-o", "a.o")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.o").is_file()


@pytest.mark.needs("gcc")
def test_the_real_gcc_is_read_like_it_says_itself() -> None:
    """Its `-dumpfullversion` is the version in the plan."""
    assert system_toolchain("gcc").version == run(("gcc", "-dumpfullversion")).stdout.strip()
