"""Setting up for real, with a lock of a few small packages: quick enough to be interrupted, repeated and broken."""

import os
import re
import shutil
import sys
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.errors import ExitCode
from program_files import write_program
from tls_server import forget_certificates, tls_server

pytestmark = pytest.mark.network

ROOT: Final = Path(__file__).parents[2]
SMALL: Final = (
    "editables", "hatchling", "iniconfig", "invoke", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers",
)  # fmt: skip
"""What building the project itself takes, and two more."""
DEVELOPMENT: Final = (*SMALL, "execnet")
PROJECT: Final = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "ortrim"
version = "{version}"
[project.scripts]
ortrim = "ortrim:main"
[tool.hatch.build.targets.wheel]
packages = ["src/ortrim"]
"""


def small_lock(names: Collection[str] = SMALL) -> str:
    """Return the part of the project's own lock that has these packages."""
    entries = re.split(r"(?m)^(?=[a-z])", (ROOT / "requirements-dev.lock").read_text())
    return "".join(entry for entry in entries if entry.split("==")[0] in names)


@dataclass(kw_only=True)
class Checkout:
    """A small project with the real ./bootstrap; `settings` are added to the environment."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return self.folder / ".venv" / "bin" / "python"

    def bootstrap(self, *arguments: str, timeout_seconds: float = 300) -> Completed:
        """Run ./bootstrap with what the user's environment says of the index."""
        environment = {**os.environ, **self.settings, "PYTHONPATH": "/nowhere"}
        environment["PATH"] += os.pathsep + str(Path(sys.executable).resolve().parent)
        command: tuple[str | Path, ...] = (self.folder / "bootstrap", *arguments)
        return run(command, environment=environment, timeout_seconds=timeout_seconds)


def write_project(folder: Path, version: str = "1.0") -> None:
    (folder / "src" / "ortrim").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "bootstrap", folder)
    (folder / "src" / "ortrim" / "__init__.py").write_text("def main() -> None:\n    print('ortrim runs')\n")
    (folder / "pyproject.toml").write_text(PROJECT.format(version=version))
    (folder / "requirements.lock").write_text(small_lock())
    (folder / "requirements-dev.lock").write_text(small_lock(DEVELOPMENT))


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the wheels once, with their digests checked."""
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "lock.txt").write_text(small_lock(DEVELOPMENT))
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", folder)
    done = run([*command, "--requirement", folder / "lock.txt"], timeout_seconds=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def checkout(tmp_path: Path, wheels: Path) -> Checkout:
    """Give a fresh checkout in a folder with spaces, which installs from the wheels that were fetched."""
    folder = tmp_path / "a fresh checkout"
    write_project(folder)
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return Checkout(folder=folder, settings=settings)


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """Set one checkout up for the tests that begin after that."""
    folder = tmp_path_factory.mktemp("ready") / "checkout"
    write_project(folder)
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    done = Checkout(folder=folder, settings=settings).bootstrap("true")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def ready_checkout(ready: Path, wheels: Path) -> Checkout:
    """Give the checkout that is set up already; a test that breaks it repairs it."""
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return Checkout(folder=ready, settings=settings)


def assert_refused(done: Completed, reference: str) -> None:
    """Check that it ended in one diagnostic after its steps, without a traceback, and did not run the command."""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("bootstrap: ")]
    assert errors[0] == f"error: {reference}", done.stderr
    assert errors[-1].startswith("  hint: ")
    assert (done.returncode, done.stdout) == (ExitCode.TOOL, "")
    assert "Traceback" not in done.stderr


def test_a_fresh_checkout_is_set_up_and_the_second_run_does_nothing(checkout: Checkout) -> None:
    """The first run prints a line for each step on stderr; the second adds nothing."""
    elsewhere = checkout.folder / "elsewhere"
    checkout.settings |= {"PIP_TARGET": str(elsewhere), "PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1"}
    show = """
import importlib.metadata, iniconfig, ortrim, sys
print(importlib.metadata.version('ortrim'), ortrim.__file__, sys.prefix)
"""
    first = checkout.bootstrap("python", "-c", show)
    folder = checkout.folder
    assert first.stdout == f"1.0 {folder}/src/ortrim/__init__.py {folder}/.venv\n", first.stderr
    assert [line.split(" ")[1] for line in first.stderr.splitlines()] == ["making", "installing", "installing"]
    assert not elsewhere.exists()
    second = checkout.bootstrap("ortrim")
    assert (second.stdout, second.stderr, second.returncode) == ("ortrim runs\n", "", 0)


def test_the_command_runs_as_it_would_without(ready_checkout: Checkout, tmp_path: Path) -> None:
    """Arguments, exit code and streams are the command's own."""
    script = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = ready_checkout.bootstrap("python", "-c", script, "a b", "*", "")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['a b', '*', '']\n", "")


def test_a_command_that_does_not_exist_is_a_wrong_usage(ready_checkout: Checkout) -> None:
    """A slip of the pen is told from a failure of the command."""
    done = ready_checkout.bootstrap("invkoe", "build")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("error: command-missing\n  there is no command 'invkoe'\n  hint: ")


def test_a_changed_project_is_installed_alone(ready_checkout: Checkout) -> None:
    """A new version in pyproject.toml shows at once, without all packages being made again."""
    write_project(ready_checkout.folder, version="1.1")
    done = ready_checkout.bootstrap("python", "-c", "import importlib.metadata as m; print(m.version('ortrim'))")
    assert done.stdout == "1.1\n"
    assert done.stderr == "bootstrap: installing ortrim itself, from src\n"


def test_a_changed_lock_installs_afresh(ready_checkout: Checkout) -> None:
    lock = ready_checkout.folder / "requirements.lock"
    lock.write_text(small_lock({*SMALL} - {"iniconfig"}))
    assert "ModuleNotFoundError" in ready_checkout.bootstrap("python", "-c", "import iniconfig").stderr
    lock.write_text(small_lock())


def test_packages_of_development_are_added_for_its_commands(ready_checkout: Checkout) -> None:
    """What builds has no use for them; once they are there, they stay."""
    wanted = ("python", "-c", "import execnet")
    assert "ModuleNotFoundError" in ready_checkout.bootstrap(*wanted).stderr
    asked = ready_checkout.bootstrap("ruff", "--version")
    assert asked.stderr.partition("\n")[0] == f"bootstrap: installing {len(DEVELOPMENT)} locked packages"
    done = ready_checkout.bootstrap(*wanted)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_python_that_was_removed_is_replaced(ready_checkout: Checkout) -> None:
    """An upgrade of the system that takes the Python away leaves a dangling link, which is repaired."""
    (ready_checkout.python).unlink()
    (ready_checkout.python).symlink_to("/nowhere/python3.11")
    done = ready_checkout.bootstrap("python", "-c", "import iniconfig")
    assert done.returncode == 0
    assert "making .venv" in done.stderr


def test_a_moved_checkout_is_set_up_again(ready_checkout: Checkout, tmp_path: Path) -> None:
    """Scripts hold the path of their Python, so a copy elsewhere never runs the packages of the original."""
    moved = Checkout(folder=tmp_path / "moved", settings=ready_checkout.settings)
    shutil.copytree(ready_checkout.folder, moved.folder, symlinks=True)
    done = moved.bootstrap("python", "-c", "import sys, ortrim; print(sys.prefix, ortrim.__file__)")
    assert done.stdout == f"{moved.folder}/.venv {moved.folder}/src/ortrim/__init__.py\n", done.stderr
    assert "making .venv" in done.stderr


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_an_interrupted_run_is_repaired_by_the_next(checkout: Checkout, seconds: float) -> None:
    """Stopped while it makes the environment or installs, it leaves nothing that the next run takes for whole."""
    with pytest.raises(Exception, match="was stopped"):
        checkout.bootstrap("sleep", "60", timeout_seconds=seconds)
    done = checkout.bootstrap("python", "-c", "import iniconfig, invoke, ortrim; print('whole')")
    assert done.stdout == "whole\n", done.stderr


def test_a_marker_never_outlives_its_packages(ready_checkout: Checkout, tmp_path: Path) -> None:
    """A kill while the old environment is being removed leaves no marker: that goes first."""
    write_program(tmp_path / "rm", f'[ "$1" != -rf ] || {{ kill -9 $PPID; exit; }}\nexec {shutil.which("rm")} "$@"')
    (ready_checkout.folder / "requirements.lock").write_text(small_lock() + "# changed\n")
    assert (ready_checkout.folder / ".venv" / "installed.lock").exists()
    done = Checkout(folder=ready_checkout.folder, settings={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).bootstrap(
        "true"
    )
    assert done.returncode != 0
    assert ready_checkout.python.exists()
    assert not (ready_checkout.folder / ".venv" / "installed.lock").exists()


def test_two_at_once_do_the_work_once(checkout: Checkout) -> None:
    """The second waits for the first, says so, and finds everything done."""
    results: list[Completed] = []
    threads = [
        threading.Thread(target=lambda: results.append(checkout.bootstrap("python", "-c", "import iniconfig, ortrim")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in results] == [0, 0], results
    printed = "".join(done.stderr for done in results)
    assert printed.count("making .venv") == 1
    assert printed.count("waiting for another bootstrap") == 1


def test_an_index_out_of_reach_is_said_so(checkout: Checkout) -> None:
    """Without a network there is one diagnostic, with the reason that pip met."""
    checkout.settings = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_FIND_LINKS": "",
        "PIP_RETRIES": "1",
        "PIP_NO_CACHE_DIR": "1",
    }
    done = checkout.bootstrap("true")
    assert_refused(done, "index-unreachable")
    assert "Connection refused" in done.stderr


def test_a_certificate_that_is_not_trusted_is_said_so(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's proxy is no index out of reach; the variable in the hint makes pip trust it."""
    forget_certificates(monkeypatch)
    with tls_server(tmp_path) as proxy:
        checkout.settings = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"{proxy.address}/simple",
            "PIP_FIND_LINKS": "",
            "PIP_RETRIES": "1",
            "PIP_NO_CACHE_DIR": "1",
            "NO_PROXY": "127.0.0.1",
        }
        done = checkout.bootstrap("true")
        assert_refused(done, "untrusted-certificate")
        assert "export REQUESTS_CA_BUNDLE=" in done.stderr
        checkout.settings["REQUESTS_CA_BUNDLE"] = str(proxy.certificate)
        assert_refused(checkout.bootstrap("true"), "install-failed")  # it is trusted, and has no packages


def test_a_package_that_was_tampered_with_is_refused(checkout: Checkout, wheels: Path, tmp_path: Path) -> None:
    """A wheel with another digest than the lock's is not installed; both digests are shown."""
    bad = tmp_path / "bad"
    shutil.copytree(wheels, bad)
    with next(bad.glob("iniconfig-*.whl")).open("ab") as wheel:
        wheel.write(b"\0")
    checkout.settings["PIP_FIND_LINKS"] = str(bad)
    done = checkout.bootstrap("true")
    assert_refused(done, "digest-mismatch")
    assert "Expected" in done.stderr
    assert "Got" in done.stderr


def test_a_package_that_the_index_lacks_is_named(checkout: Checkout, tmp_path: Path) -> None:
    checkout.settings["PIP_FIND_LINKS"] = str(tmp_path)
    done = checkout.bootstrap("true")
    assert_refused(done, "install-failed")
    assert "editables==" in done.stderr
    assert (checkout.folder / ".venv" / "bootstrap.log").is_file()


@pytest.mark.needs("unshare")
@pytest.mark.parametrize("megabytes", [1, 8, 16])
def test_a_full_disk_is_said_so(checkout: Checkout, megabytes: int) -> None:
    """On a disk that fills while the environment is made, or while packages are installed, there is one diagnostic."""
    copy = 'mount -t tmpfs -o size="$1"m none "$2" && mkdir "$2/tmp" && cp -r "$3"/* "$2"'
    script = f'{copy} && TMPDIR="$2/tmp" "$2/bootstrap" true'
    small = checkout.folder.parent / "small disk"
    small.mkdir()
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(megabytes))
    environment = {**os.environ, **checkout.settings}
    environment["PATH"] += os.pathsep + str(Path(sys.executable).resolve().parent)
    done = run((*words, str(small), str(checkout.folder)), environment=environment, timeout_seconds=120)
    assert_refused(done, "disk-full")
