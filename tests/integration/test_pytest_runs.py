"""Runs of pytest as a whole: which tests it takes, what it says that it left out, what keeps it from being green."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run

NDK_TESTS: Final = "tests/integration/test_android_ndk.py"
ROOT: Final = Path(__file__).parents[2]
ELSEWHERE: Final = "192.0.2.1"
"""An address for documentation, which no machine has (RFC 5737)."""
ASKING: Final = f"""
import socket, sys, threading, pytest
def ask():
    try:
        socket.create_connection(("{ELSEWHERE}", 80), timeout=1)
    except BaseException:
        pass
def test_hidden(): ask()
def test_in_a_thread():
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
@pytest.fixture
def asked(): ask()
def test_in_a_fixture(asked): pass
def test_after_it(): pass
@pytest.mark.network
def test_that_may(): sys.audit("socket.gethostbyname", "host.example")
"""
LEFT_OUT: Final = "left out: 2 files in tests/integration, half an hour; to run them, too: ./bootstrap pytest --all"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project with this one's settings, a unit, the small build and two others."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "benchmarks").mkdir()
    for name in ("unit", "integration"):
        (folder / "tests" / name).mkdir(parents=True)
    for name in ("conftest.py", "unavailable.toml"):
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    (folder / "tests" / "support").symlink_to(ROOT / "tests" / "support")
    for name in ("unit/test_a", "integration/test_small_build", "integration/test_b", "integration/test_c"):
        (folder / "tests" / f"{name}.py").write_text("def test_it() -> None: pass\n")
    return folder


def pytest_in(folder: Path, *words: str) -> Completed:
    return run((sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words), cwd=folder)


def test_a_run_takes_units_and_one_build_and_says_so(project: Path) -> None:
    """Its last line names what it has left out, and how that is run."""
    *_, closing, last = pytest_in(project).stdout.splitlines()
    assert "2 passed" in closing
    assert last == LEFT_OUT


@pytest.mark.parametrize(
    ("words", "passed"),
    [(("--all",), 4), (("tests/integration",), 3), (("--all", "tests/integration/test_b.py"), 1)],
)
def test_what_is_asked_for_is_run(project: Path, words: tuple[str, ...], passed: int) -> None:
    """All tests, or those that are named, and nothing is said to be left out."""
    *_, closing = pytest_in(project, *words).stdout.splitlines()
    assert f"{passed} passed" in closing


def test_a_run_for_the_sake_of_a_tool_is_not_green_without_it() -> None:
    """As CI's job with an NDK is started; a word that is no tool's is refused."""
    for word, code in (("ndk", 1), ("nkd", pytest.ExitCode.USAGE_ERROR)):
        words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--require", word, NDK_TESTS)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANDROID")}
        assert run((*words, "-k", "runner_compiles"), cwd=ROOT, environment=environment).returncode == code


def test_workers_make_one_list() -> None:
    """Each test that was not tried is counted once, whichever process had it."""
    options = ("-q", "-p", "no:cacheprovider", "-n", "2", "-k", "runner_compiles")
    words = (sys.executable, "-m", "pytest", *options, NDK_TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANDROID", "CI"))}
    done = run(words, cwd=ROOT, environment=environment)
    (skipped,) = re.findall(r"^(\d+) skipped", done.stdout, re.MULTILINE)
    assert done.stdout.count("not tried for want of") == 1
    assert f"\n  ndk: {skipped}, " in done.stdout


def test_a_test_cannot_hide_what_it_asked_for(tmp_path: Path) -> None:
    """Nor can a thread or a fixture; the next test is not blamed, and one that may use the network does."""
    (tmp_path / "test_asking.py").write_text(ASKING)
    options = ("-q", "-p", "no:cacheprovider", "-p", "conftest", f"--rootdir={tmp_path}", "-c", "/dev/null")
    path = os.pathsep.join(str(ROOT / "tests" / name) for name in ("", "support"))
    words = (sys.executable, "-m", "pytest", *options, tmp_path / "test_asking.py")
    done = run(words, environment={**os.environ, "PYTHONPATH": path}, cwd=tmp_path)
    assert "3 failed, 2 passed" in done.stdout
    assert done.stdout.count(f"asked for: {ELSEWHERE}") >= 3
