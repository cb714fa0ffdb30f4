"""What an app's developer uses, in a Python that lacks what Windows lacks. Nothing of it ran on a real Windows."""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import ortrim
from github_fetching import LINUX, RELEASED, Apps, sums
from github_state import COMMIT
from onnx_samples import relu, write
from ortrim.base.command import Completed, run

HOOK: Final = Path(__file__).parent / "data" / "without_posix.py"


def called(folder: Path, *words: str | Path, **environment: str) -> Completed:
    """Run the program; what it prints goes into pipes, which are no UTF-8 on Windows."""
    set_up = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", **environment}
    return run((sys.executable, "-W", "error", HOOK, *words), cwd=folder, environment=set_up)


def test_a_file_that_another_thread_closes_meanwhile_is_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, real = runpy.run_path(str(HOOK))["unless_open"](os.rename), os.readlink
    (tmp_path / "a").touch()
    with (tmp_path / "other").open("w") as other:

        def late(path: str | Path, **options: Any) -> str:
            if str(path).endswith(f"/fd/{number}"):
                other.close()
            return real(path, **options)

        number = other.fileno()
        monkeypatch.setattr(os, "readlink", late)
        rename(tmp_path / "a", tmp_path / "b")
        assert other.closed
    with (tmp_path / "b").open(), pytest.raises(PermissionError):
        rename(tmp_path / "b", tmp_path / "a")


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    """None takes a module or a name for granted that is POSIX's alone, down to what only builds need."""
    package = Path(ortrim.__file__).parent
    files = [
        file.relative_to(package.parent) for file in package.rglob("*.py") if package / "resources" not in file.parents
    ]
    names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    code = HOOK.read_text().replace("from ortrim.cli.program import main", "").replace("    main()", "")
    script = tmp_path / "all.py"
    script.write_text(f"{code}\n    import importlib\n    [importlib.import_module(name) for name in {names}]\n")
    done = run((sys.executable, "-W", "error", script), environment=os.environ)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("--list",), ("--version",), ("fetch", "--help"), ("--help", "fetch"), ("schema",)])
def test_what_needs_nothing_of_the_machine_is_answered(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The first things that anybody tries."""
    done = called(tmp_path, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_release_is_fetched_twice(apps: Apps, tmp_path: Path) -> None:
    """Whole, with sums that `fetch` itself reads again; the second call asks nobody."""
    apps.service.release("v1", RELEASED)
    words = ("fetch", "--repo", "127.0.0.1/octo/ort", "--release", "v1", "--token-file", tmp_path / "token")
    (tmp_path / "token").write_text(apps.service.token)
    done = called(apps.folder / "app", *words, GITHUB_API_URL=apps.service.url)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert COMMIT in done.stdout
    assert (apps.output() / "SHA256SUMS").read_bytes() == sums(RELEASED)
    assert (apps.output() / f"{LINUX}.tar.gz").read_bytes() == RELEASED[f"{LINUX}.tar.gz"]
    asked = len(apps.service.seen)
    again = called(apps.folder / "app", "fetch", GITHUB_API_URL=apps.service.url)
    assert again.returncode == 0, again.stderr
    assert len(apps.service.seen) == asked


def test_a_public_release_needs_no_token(apps: Apps) -> None:
    """`gh` is a program, and is not asked."""
    apps.service.release("v1", RELEASED)
    environment = {"GITHUB_API_URL": apps.service.url, "GH_TOKEN": "", "GITHUB_TOKEN": ""}
    done = called(apps.folder / "app", "fetch", "--repo", "127.0.0.1/octo/ort", "--release", "v1", **environment)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert not [seen for seen in apps.service.seen if "authorization" in seen.headers]


def test_a_model_is_inspected(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx", relu())
    done = called(tmp_path, "inspect", "--file", "m.onnx", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)
    assert called(tmp_path, "inspect", "--file", "m.onnx").returncode == 0


SPEC: Final = """
[[models]]
name = "m"
path = "m.onnx"
[[models.steps]]
use = "strip"
[[targets]]
id = "linux-x64"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a model and its buildspec; no program that is started finds a way to limit its memory."""
    write(tmp_path / "m.onnx", relu())
    (tmp_path / "m.toml").write_text(SPEC)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "resource.py").write_text("raise ModuleNotFoundError(name=__name__)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    return tmp_path


@pytest.mark.parametrize("words", [("lint", "--model", "m.onnx"), ("cost", "m.toml"), ("prepare", "--spec", "m.toml")])
def test_a_model_is_examined_and_prepared(project: Path, words: tuple[str, ...]) -> None:
    """The full runtime runs it in programs of its own, which are no obstacle."""
    done = called(project, *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "m.onnx" in done.stdout or "strip" in done.stdout or "Relu" in done.stdout


def test_lint_runs_the_model(project: Path) -> None:
    (model,) = json.loads(called(project, "lint", "--model", "m.onnx", "--json").stdout)["models"]
    assert not [words for words in model["not_checked"] if "operators cost" not in words]


def test_a_model_is_converted_and_checked_against_a_runtime(project: Path) -> None:
    assert called(project, "convert", "--spec", "m.toml").returncode == 0
    (model,) = project.glob("m.ort")
    reduced = called(project, "reduce", "--spec", "m.toml").stdout
    (project / "own.config").write_text(next(line for line in reduced.splitlines() if ";" in line))
    done = called(project, "check-compat", "--runtime", "own.config", "--model", model)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("build", "--spec", "m.toml", "--target", "linux-x64"), "unsupported-host"),
        (("build", "--spec", "m.toml", "--target", "linux-x64", "--executor", "github"), "no-device"),
        (("bench", "--spec", "m.toml"), "unsupported-host"),
        (("plan", "--spec", "m.toml"), "no-such-target"),
    ],
)
def test_what_needs_a_machine_that_runs_libraries_says_where_it_can(
    project: Path, words: tuple[str, ...], code: str
) -> None:
    """With a way out that exists there, instead of a traceback or an emulator that Windows has not."""
    done = called(project, *words)
    assert code in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert {"unsupported-host": "--executor github", "no-device": "--device ssh", "no-such-target": "--target"}[
        code
    ] in done.stderr
    assert "qemu" not in done.stderr


@pytest.mark.parametrize("words", [("doctor",), ("devices",)])
def test_what_is_here_is_listed(tmp_path: Path, words: tuple[str, ...]) -> None:
    """What cannot be examined there is not a symptom."""
    done = called(tmp_path, *words)
    assert "Traceback" not in done.stderr + done.stdout
    assert "has no attribute" not in done.stdout


def test_the_size_of_a_library_is_shown(tmp_path: Path) -> None:
    """What of it can be read without another program."""
    library = Path(__file__).parents[1] / "unit" / "binaries" / "data" / "tiny.so"
    done = called(tmp_path, "size", library)
    assert done.returncode == 0, done.stderr
    assert "3,664 bytes" in done.stdout
