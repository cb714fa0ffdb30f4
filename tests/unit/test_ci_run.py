"""What `.ci/run` installs, and how it runs the README's commands: its own functions, by bash, on made-up machines."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from browser import PROGRAMS
from fake_programs import FakePrograms
from ortrim.base.command import run
from program_files import write_program

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "run"
BASH: Final = shutil.which("bash") or "bash"
TOOLS: Final = (
    *(
        "gcc",
        "g++",
        "gdb",
        "addr2line",
        "pkg-config",
        "cpio",
        "redis-server",
        "adb",
        "sshd",
        "buildah",
        "javac",
        "mcs",
        "mono",
        "npm",
        "gradle",
        "ruby",
    ),
    *("qemu-aarch64-static", "qemu-arm-static", "qemu-riscv64-static", "qemu-x86_64", "qemu-system-aarch64"),
)


def installed(folder: Path, system: str, *programs: str, stub: str = "", has_venv: bool = True) -> list[str]:
    made = FakePrograms(folder)
    made.add(*programs, "apt-get", "sudo", "python")
    if not has_venv:
        made.answer("python", stderr="No module named 'ensurepip'", code=1)
    if stub:
        made.add(stub)
        made.answer(stub, stderr="requires the chromium snap to be installed", code=1)
    release = folder / "os-release"
    release.write_text(system)
    script = 'source "$1" && SYSTEM_PYTHON=$3 && install_test_tools "$2"'
    words = (BASH, "-c", script, "test", SCRIPT, release, folder / "bin" / "python")
    done = run(words, environment={"PATH": str(folder / "bin")})
    assert (done.returncode, done.stderr) == (0, "")
    calls = [call for call in made.calls if "install" in call]
    return [word for call in calls for word in call[call.index("install") + 1 :] if not word.startswith("-")]


DEBIAN: Final = 'ID=debian\nVERSION_ID="12"\n'
UBUNTU: Final = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n'


@pytest.mark.parametrize(
    ("system", "browser", "stub", "packages"),
    [
        (DEBIAN, (), "", ["chromium"]),
        (DEBIAN, ("chromium",), "", []),
        (DEBIAN, ("google-chrome",), "", []),
        (UBUNTU, ("google-chrome-stable",), "chromium-browser", []),
        (UBUNTU, (), "chromium-browser", []),
        (UBUNTU, (), "", []),
    ],
)
def test_a_browser_is_installed_where_it_is_a_package(
    tmp_path: Path, system: str, browser: tuple[str, ...], stub: str, packages: list[str]
) -> None:
    """An image's Chrome will do; Ubuntu's package is a snap in disguise, and asking for Debian's fails there."""
    assert installed(tmp_path, system, *TOOLS, *browser, stub=stub) == packages


def test_other_tools_are_installed_on_either_system(tmp_path: Path) -> None:
    """By the names of their packages, at once."""
    without = [tool for tool in TOOLS if tool not in {"adb", "javac"}]
    assert installed(tmp_path, UBUNTU, *without) == ["adb", "default-jdk-headless"]


def test_the_system_s_python_can_make_virtual_environments(tmp_path: Path) -> None:
    """Debian has that in a package of its own, which the README's commands need."""
    assert installed(tmp_path, UBUNTU, *TOOLS, has_venv=False) == ["python3-venv"]


def test_the_readme_s_commands_run_on_a_bare_machine(tmp_path: Path) -> None:
    """In a clone, one after the other, each with a HOME that was empty, and nothing else of this environment."""
    write_program(tmp_path / "bootstrap", 'env >> ~/seen\necho "$@" | tee -a ~/ran')
    (tmp_path / "README.md").write_text("```sh\n./bootstrap invoke build   # one\n./bootstrap pytest\n```\nrm no\n")
    name = ("-c", "user.name=x", "-c", "user.email=x@x")
    for words in (("init", "-q"), ("add", "."), (*name, "commit", "-q", "-m", "x")):
        assert run(("git", *words), cwd=tmp_path).returncode == 0
    script = 'source "$1" && rm() { cat "$2/seen"; } && SYSTEM_PYTHON=$2 && run_readme'
    done = run((BASH, "-c", script, "test", SCRIPT, shutil.which("env") or "env"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = [line for line in done.stdout.splitlines() if not line.startswith("==")]
    ran, seen = printed[:2], printed[2:]
    assert ran == ["invoke build", "pytest"]
    assert {line.partition("=")[0] for line in seen} <= {"CI", "HOME", "OLDPWD", "PATH", "PWD", "SHLVL", "_"}
    assert "PATH=/usr/bin:/bin" in seen


def test_all_other_tests_run_after_the_readme_s_commands() -> None:
    *_, readme, _comment, last = SCRIPT.read_text().splitlines()
    assert readme == "step run_readme"
    assert last.startswith("exec ./bootstrap pytest tests/integration ")


def test_the_tests_take_the_browsers_that_it_looks_for() -> None:
    done = run((BASH, "-c", 'source "$1" && echo "${BROWSERS[@]}"', "test", SCRIPT))
    assert tuple(done.stdout.split()) == PROGRAMS
