"""Finding another Python than ortrim's own."""

import os
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from ortrim.base import scripts
from ortrim.base.command import Completed, run
from ortrim.base.scripts import ISOLATED_PYTHON, OWN, Interpreter, environment_with, find_interpreter, packages_folder
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError, ToolError
from program_files import write_program
from refusing import refused
from small_wheels import write_wheel


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "packages"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def left_behind(cache: Path) -> list[str]:
    return [entry.name for entry in cache.iterdir() if entry.suffix not in {".lock", ".record"}]


def test_packages_are_installed_once(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = write_wheel(wheels, "onepackage", "1.5")
    folder = packages_folder("tools", line)
    assert (folder / "onepackage.py").read_text() == "VERSION = '1.5'\n"
    monkeypatch.setattr(scripts, "run", None)
    assert packages_folder("tools", line) == folder


def test_a_tool_that_was_damaged_is_installed_anew(wheels: Path) -> None:
    line = write_wheel(wheels, "onepackage", "1.5")
    folder = packages_folder("tools", line)
    (folder / "onepackage.py").chmod(0o644)
    (folder / "onepackage.py").write_text("VERSION = '1.6'\n")
    assert packages_folder("tools", line) == folder
    assert (folder / "onepackage.py").read_text() == "VERSION = '1.5'\n"


def test_a_folder_is_named_after_what_it_holds(wheels: Path) -> None:
    """Another version is another folder, so that one plan never changes the tools of another."""
    first = packages_folder("tools", write_wheel(wheels, "onepackage", "1.5"))
    second = packages_folder("tools", write_wheel(wheels, "onepackage", "1.6"))
    assert first != second
    assert f"cp{sys.version_info.major}{sys.version_info.minor}" in first.name


def test_packages_for_another_python(wheels: Path, tmp_path: Path) -> None:
    """Our pip installs them, by what that Python takes; it need have no pip itself."""
    venv.create(tmp_path / "other", with_pip=False)
    other = Interpreter(program=str(tmp_path / "other" / "bin" / "python"), version=(3, 98))
    folder = packages_folder("tools", write_wheel(wheels, "onepackage", "1.5"), python=other)
    assert folder.name.startswith("tools-cp398-")
    script = "import onepackage, sys; print(onepackage.VERSION, sys.prefix)"
    done = run([other.program, "-s", "-c", script], environment=environment_with(folder))
    assert done.stdout == f"1.5 {tmp_path / 'other'}\n", done.stderr


def test_wheels_for_another_machine(wheels: Path) -> None:
    """They are taken by their platform's name, whatever this machine and this Python are, into a folder named so."""
    line = write_wheel(wheels, "onepackage", "1.5")
    original = wheels / "onepackage-1.5-py3-none-any.whl"
    foreign = wheels / "onepackage-1.5-cp312-cp312-manylinux_2_28_aarch64.whl"
    original.rename(foreign)
    folder = packages_folder("tools", line, platforms=("manylinux_2_28_aarch64", "manylinux_2_17_aarch64"))
    assert (folder / "onepackage.py").is_file()
    assert folder.name.startswith("tools-cp312-manylinux_2_28_aarch64-")
    caught = refused(ToolError, packages_folder, "tools", line, platforms=("manylinux_2_28_s390x",))
    assert caught.code == "install-failed"


def test_the_isolated_python_sees_that_folder_alone(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(wheels))
    folder = packages_folder("tools", write_wheel(wheels, "onepackage", "1.5"))
    script = (
        "import onepackage, importlib.util as u, sys; print(onepackage.VERSION, u.find_spec('pytest'), sys.path[1])"
    )
    done = run([*ISOLATED_PYTHON, "-c", script], environment=environment_with(folder))
    assert done.stdout == f"1.5 None {folder}\n", done.stderr


def test_settings_that_bend_the_target_are_overruled(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's pip settings may name an index, and cannot move or refuse the installation."""
    for name, value in {"PIP_USER": "1", "PIP_PREFIX": "/nowhere", "PIP_CONSTRAINT": "/nowhere/file"}.items():
        monkeypatch.setenv(name, value)
    assert (packages_folder("tools", write_wheel(wheels, "onepackage", "1.5")) / "onepackage.py").exists()


def test_pip_works_where_there_is_room_anyway(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the system's temporary folder, which may be small or absent; nothing of that stays among the packages."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    seen: list[Path] = []

    def spy(*words: Any, environment: dict[str, str], **options: Any) -> Completed:
        seen.append(Path(environment["TMPDIR"]))
        assert seen[0].is_dir()
        return run(*words, environment=environment, **options)

    monkeypatch.setattr(scripts, "run", spy)
    folder = packages_folder("tools", write_wheel(wheels, "onepackage", "1.5"))
    assert seen[0].parent.parent == folder.parent
    assert not list(folder.glob(".pip-*"))


def install_error(requirements: str) -> Diagnostic:
    caught = refused(Diagnostic, packages_folder, "tools", requirements)
    assert caught.where == "tools"
    assert caught.why
    assert caught.hint
    return caught


def test_a_changed_wheel_is_refused(wheels: Path, cache: Path) -> None:
    line = write_wheel(wheels, "onepackage", "1.5")
    with (wheels / "onepackage-1.5-py3-none-any.whl").open("ab") as wheel:
        wheel.write(b"\0")
    error = install_error(line)
    assert (error.code, error.exit_code) == ("digest-mismatch", ExitCode.NETWORK)
    assert left_behind(cache) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("SSLCertVerificationError", "untrusted-certificate"),
        ("Retrying (Retry(total=4)) SSLCertVerificationError", "untrusted-certificate"),
        ("SSLCertVerificationError\nTHESE PACKAGES DO NOT MATCH THE HASHES", "digest-mismatch"),
        ("Retrying (Retry(total=4))", "index-unreachable"),
    ],
)
def test_the_graver_of_what_pip_says_is_the_cause(words: str, code: str, tmp_path: Path) -> None:
    assert scripts.install_error("tools", words, tmp_path).code == code


@pytest.mark.parametrize("line", ["onepackage==1.5", f"absentpackage==9.9 --hash=sha256:{'0' * 64}"])
def test_what_has_no_digest_and_what_the_index_lacks_are_refused(wheels: Path, cache: Path, line: str) -> None:
    """The name and version that were wanted stand in the message."""
    write_wheel(wheels, "onepackage", "1.5")
    error = install_error(f"{line}\n")
    assert isinstance(error, ToolError)
    assert error.code == "install-failed"
    assert line.partition(" ")[0] in error.why
    assert left_behind(cache) == []


def test_an_index_out_of_reach_is_an_error_of_the_network(
    wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the port of `discard`, where nobody listens
    monkeypatch.setenv("PIP_RETRIES", "1")
    error = install_error(f"absentpackage==9.9 --hash=sha256:{'0' * 64}\n")
    assert isinstance(error, NetworkError)
    assert (error.code, error.exit_code) == ("index-unreachable", ExitCode.NETWORK)
    assert left_behind(cache) == []


RECORDED = [
    (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
        StorageError,
        "disk-full",
    ),
    (
        "ERROR: Could not install packages due to an OSError: [Errno 122] Disk quota exceeded\n",
        StorageError,
        "disk-full",
    ),
    ("/opt/python/bin/python: No module named pip\n", ToolError, "pip-missing"),
]


@pytest.mark.parametrize(("printed", "kind", "reference"), RECORDED)
def test_other_causes_are_told_apart(
    cache: Path, monkeypatch: pytest.MonkeyPatch, printed: str, kind: type[Diagnostic], reference: str
) -> None:
    """A full disk and a Python without pip, by the words that pip and Python printed when it happened."""
    failed = Completed(argv=(), returncode=1, stdout="", stderr=printed)
    monkeypatch.setattr(scripts, "run", lambda *_, **__: failed)
    error = install_error("onepackage==1.5\n")
    assert isinstance(error, kind)
    assert error.code == reference
    assert left_behind(cache) == []


HERE = sys.version_info[:2]
NAME = f"python{HERE[0]}.{HERE[1]}"
ABSENT = (3, 99)


def real(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / NAME).symlink_to(Path(sys.executable).resolve())
    return folder / NAME


@pytest.mark.parametrize(
    "text", ["exit 127", "echo cpython 3 99 0", "echo pypy {} {} 0".format(*HERE), "echo cpython {} {} 1".format(*HERE)]
)
def test_one_that_will_not_do_hides_no_other(tmp_path: Path, text: str) -> None:
    """Shims of versions that are not there, other implementations, and those with another ABI."""
    write_program(tmp_path / "first" / NAME, text)
    program = real(tmp_path / "second")
    path = os.pathsep.join(map(str, (tmp_path / "absent", tmp_path / "first", program.parent)))
    assert find_interpreter((ABSENT, HERE), {"PATH": path}) == Interpreter(program=str(program), version=HERE)
    assert find_interpreter((ABSENT,), {"PATH": path}) is None


@pytest.mark.parametrize("variable", ["RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"])
def test_one_of_a_runners_tool_cache_is_found(tmp_path: Path, variable: str) -> None:
    program = real(tmp_path / "Python" / f"{HERE[0]}.{HERE[1]}.9" / "arm64" / "bin")
    found = find_interpreter((HERE,), {"PATH": str(tmp_path), variable: str(tmp_path)})
    assert found == Interpreter(program=str(program), version=HERE)


def test_our_own_is_known_by_what_its_wheels_are_for() -> None:
    assert OWN.tag.startswith(f"cp{HERE[0]}{HERE[1]}-linux") or "macosx" in OWN.tag
    assert OWN.isolated == (sys.executable, "-S", "-s")
