"""What ./bootstrap refuses before it writes anything. Installing is tried by the integration tests."""

import os
import shutil
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.errors import ExitCode
from program_files import write_program

ROOT: Final = Path(__file__).parents[2]
FILES: Final = ("bootstrap", "pyproject.toml", "requirements-dev.lock", "requirements.lock")
UTILITIES: Final = ("cat", "cmp", "cp", "dirname", "grep", "id", "mkdir", "mv", "rm", "sed", "tail")
"""All programs that ./bootstrap may use beside git and Python."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A made-up machine: a checkout in a folder with a space, and all that is on PATH."""

    checkout: Path
    programs: Path

    def bootstrap(self, *arguments: str, path: tuple[Path, ...] = (), **variables: str) -> Completed:
        environment = {"PATH": os.pathsep.join(map(str, (self.programs, *path))), "LC_ALL": "C.UTF-8", **variables}
        return run([self.checkout / "bootstrap", *arguments], environment=environment, timeout_seconds=60)

    def program(self, name: str, text: str) -> None:
        write_program(self.programs / name, text)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a machine with git and the usual utilities, without Python and without a package manager."""
    checkout, programs = tmp_path / "a checkout", tmp_path / "bin"
    checkout.mkdir()
    programs.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, checkout)
    for name in (*UTILITIES, "git"):
        (programs / name).symlink_to(shutil.which(name) or "absent")
    return Machine(checkout=checkout, programs=programs)


def python_folder(folder: Path, *names: str, pretend: str = "") -> Path:
    venv.create(folder)
    for entry in (folder / "bin").iterdir():
        entry.unlink()
    for name in names:
        (folder / "bin" / name).symlink_to(Path(sys.executable).resolve())
    packages = next((folder / "lib").glob("python3.*/site-packages"))
    (packages / "pretend.py").write_text(pretend)
    (packages / "pretend.pth").write_text("import pretend\n")
    return folder / "bin"


def assert_refused(done: Completed, machine: Machine, reference: str, *words: str) -> None:
    """Check the layout, the exit code, the words, and that nothing was written."""
    lines = done.stderr.splitlines()
    assert lines[0] == f"error: {reference}", done.stderr
    assert lines[-1].startswith("  hint: ")
    assert done.returncode == ExitCode.TOOL
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr
    assert sorted(entry.name for entry in machine.checkout.iterdir()) == [*FILES]


def test_without_a_command_it_prints_its_usage(machine: Machine) -> None:
    """Asking for help is fine; saying nothing is a wrong usage. Neither sets anything up."""
    asked, silent = machine.bootstrap("--help"), machine.bootstrap()
    assert (asked.returncode, silent.returncode) == (0, ExitCode.USAGE)
    assert asked.stdout == silent.stderr
    assert "./bootstrap invoke build" in asked.stdout
    assert not (machine.checkout / ".venv").exists()


def test_no_python(machine: Machine) -> None:
    assert_refused(machine.bootstrap("pytest"), machine, "python-missing", "3.11, 3.12, 3.13 or 3.14")


def test_no_git(machine: Machine, tmp_path: Path) -> None:
    """Git is looked for before Python, and the hint names the package."""
    (machine.programs / "git").unlink()
    assert_refused(machine.bootstrap("pytest"), machine, "git-missing", "git")


NEW: Final = "import sys; sys.version_info = (3, 14, 0, 'final', 0)"
TOO_NEW: Final = "import sys; sys.version_info = (3, 15, 0, 'final', 0)"
FREE_THREADED: Final = "import sysconfig; sysconfig.get_config_var = lambda name: 1"
PRETENCES: Final = [
    (TOO_NEW, "python-unsupported", "only Python 3.15.0 (python3)"),
    ("import sys; sys.version_info = (3, 10, 4, 'final', 0)", "python-unsupported", "have wheels up to 3.14"),
    ("import sys; sys.version_info = (2, 7, 18, 'final', 0)", "python-unsupported", "only Python 2.7.18 (python3)"),
    ("import platform; platform.python_implementation = lambda: 'PyPy'", "python-unsupported", "only PyPy"),
    (FREE_THREADED, "python-unsupported", "without the usual ABI"),
    ("import sys; sys.modules['ensurepip'] = None", "venv-missing", "cannot make virtual environments"),
    ("import sys; sys.modules['venv'] = None", "venv-missing", "ensurepip"),
    ("import sys; sys.modules['_lzma'] = sys.modules['_ssl'] = None", "python-incomplete", "built without: lzma, ssl"),
    ("import platform; platform.machine = lambda: 'riscv64'", "platform-unsupported", "Linux on riscv64, 64 bits"),
    ("import sys; sys.maxsize = 2**31 - 1", "platform-unsupported", "32 bits"),
    ("import os; os.confstr = lambda name: 'glibc 2.17'", "platform-unsupported", "glibc 2.17"),
    ("import os; os.confstr = lambda name: None", "platform-unsupported", "musl"),
    ("import os; os.confstr = lambda name: int(name)", "platform-unsupported", "musl"),
]


@pytest.mark.parametrize(("pretend", "reference", "words"), PRETENCES)
def test_a_python_that_will_not_do(machine: Machine, tmp_path: Path, pretend: str, reference: str, words: str) -> None:
    """Each reason has its own words, found out before anything is made."""
    folder = python_folder(tmp_path / "other", "python3", pretend=pretend)
    assert_refused(machine.bootstrap("pytest", path=(folder,)), machine, reference, words)


@pytest.mark.needs("python3.10")
def test_a_real_python_that_is_too_old(machine: Machine) -> None:
    (machine.programs / "python3").symlink_to(shutil.which("python3.10") or "absent")
    assert_refused(machine.bootstrap("pytest"), machine, "python-unsupported", "found only Python 3.10.")


@pytest.mark.parametrize(
    "text",
    [
        "exit 127",
        "echo garbage",
        "kill -9 $$",
        "printf '9'",
        "printf 'x\\ty\\tz\\n'",
        "echo 'pyenv: not found' >&2; exit 127",
    ],
)
def test_programs_that_only_look_like_python(machine: Machine, text: str) -> None:
    """Shims without a version behind them, and whatever else is called python3, count as absent."""
    machine.program("python3", text)
    assert_refused(machine.bootstrap("pytest"), machine, "python-missing")


def test_the_nearest_miss_is_reported(machine: Machine, tmp_path: Path) -> None:
    """With one Python too old and another lacking ensurepip, the hint is the smaller step."""
    old = python_folder(tmp_path / "old", "python3", pretend="import sys; sys.version_info = (3, 9, 1, 'final', 0)")
    near = python_folder(tmp_path / "near", "python3.12", pretend="import sys; sys.modules['ensurepip'] = None")
    assert_refused(machine.bootstrap("pytest", path=(old, near)), machine, "venv-missing", "(python3.12)")


def chosen(machine: Machine, *path: Path, **variables: str) -> str:
    """Return what happens once a Python was found: the folder cannot be made, since a file is in its place."""
    (machine.checkout / ".venv").write_text("")
    done = machine.bootstrap("pytest", path=path, **variables)
    assert done.returncode == ExitCode.TOOL
    return done.stderr.splitlines()[0]


def test_a_folder_that_cannot_be_written(machine: Machine, tmp_path: Path) -> None:
    """A read-only checkout is one clear message, too."""
    assert chosen(machine, python_folder(tmp_path / "good", "python3")) == "error: folder-not-writable"


@pytest.mark.parametrize("name", ["python3", "python3.13", "python3.12", "python3.11", "python3.14", "python"])
def test_a_suitable_python_is_found_by_any_of_its_names(machine: Machine, tmp_path: Path, name: str) -> None:
    machine.program("python3", "exit 127")
    old = python_folder(tmp_path / "old", "python3", pretend="import sys; sys.version_info = (3, 9, 1, 'final', 0)")
    assert chosen(machine, old, python_folder(tmp_path / "good", name)) == "error: folder-not-writable"


@pytest.mark.parametrize("variable", ["RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"])
def test_a_python_of_a_runners_tool_cache_is_found(machine: Machine, tmp_path: Path, variable: str) -> None:
    tools = tmp_path / "hosted tool cache"
    (tools / "Python" / "3.12.11.complete").mkdir(parents=True)
    python_folder(tools / "Python" / "3.13.9" / "arm64-freethreaded", "python3", pretend=FREE_THREADED)
    python_folder(tools / "Python" / "3.12.11" / "arm64", "python3")
    new = python_folder(tmp_path / "new", "python3", pretend=TOO_NEW)
    assert chosen(machine, new) == "error: python-unsupported"
    assert chosen(machine, new, **{variable: str(tools)}) == "error: folder-not-writable"


def test_a_python_that_the_converter_has_a_wheel_for_comes_first(machine: Machine, tmp_path: Path) -> None:
    """3.14 will do, with the converter in another; the other alone is better, wherever it is."""
    new = python_folder(tmp_path / "new", "python3", pretend=NEW)
    assert made_with(machine, new) == "3.14.0"
    own = ".".join(map(str, sys.version_info[:3]))
    assert made_with(machine, new, python_folder(tmp_path / "older", "python3.11")) == own
    tools = tmp_path / "tools"
    python_folder(tools / "Python" / "3.13.9" / "arm64", "python3")
    assert made_with(machine, new, RUNNER_TOOL_CACHE=str(tools)) == own


def made_with(machine: Machine, *path: Path, **variables: str) -> str:
    """Return the version of the Python that the virtual environment is made with, and no more than begin to make it."""
    (machine.programs / "rm").unlink()
    machine.program("rm", "kill -9 $PPID")
    done = machine.bootstrap("invoke", path=path, **variables)
    return done.stderr.partition("making .venv with Python ")[2].partition(" ")[0]


def test_modules_in_the_current_folder_are_not_imported(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file called platform.py where the user happens to be changes nothing."""
    (tmp_path / "platform.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert chosen(machine, python_folder(tmp_path / "good", "python3")) == "error: folder-not-writable"


@pytest.mark.parametrize(
    ("available", "hint"),
    [
        ("python3.12 python3.13", "apt-get install python3.13 python3.13-venv"),
        ("python3.11", "apt-get install python3.11 python3.11-venv"),
        ("", "apt-get install python3 python3-venv"),
    ],
)
def test_the_hint_is_what_the_distribution_has(machine: Machine, available: str, hint: str) -> None:
    """Of the supported versions the newest that apt knows is named; with empty lists, the default."""
    machine.program("apt-get", "exit 1")
    machine.program("apt-cache", f'for name in {available}; do [ "$2" = "$name" ] && exit 0; done; exit 100')
    done = machine.bootstrap("pytest")
    assert_refused(done, machine, "python-missing")
    assert done.stderr.rstrip().endswith(hint)


@pytest.mark.parametrize(("name", "package"), [("python3", "python3-venv"), ("python3.12", "python3.12-venv")])
def test_the_package_of_a_missing_venv_is_named(machine: Machine, tmp_path: Path, name: str, package: str) -> None:
    machine.program("apt-get", "exit 1")
    folder = python_folder(tmp_path / "other", name, pretend="import sys; sys.modules['ensurepip'] = None")
    done = machine.bootstrap("pytest", path=(folder,))
    assert_refused(done, machine, "venv-missing")
    assert done.stderr.rstrip().endswith(f"apt-get install {package}")


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("dnf", "dnf install git"),
        ("zypper", "zypper install git"),
        ("pacman", "pacman -S git"),
        ("brew", "brew install git"),
    ],
)
def test_other_package_managers_have_their_words(machine: Machine, manager: str, command: str) -> None:
    (machine.programs / "git").unlink()
    machine.program(manager, "exit 1")
    assert_refused(machine.bootstrap("pytest"), machine, "git-missing", command)


def test_this_python_is_supported() -> None:
    """What pyproject.toml demands, the probe accepts, and the tests run on."""
    assert (3, 11) <= sys.version_info[:2] <= (3, 14)
    assert 'requires-python = ">=3.11,<3.15"' in (ROOT / "pyproject.toml").read_text()
    assert "(3, 11), (3, 12), (3, 13), (3, 14)" in (ROOT / "bootstrap").read_text()
