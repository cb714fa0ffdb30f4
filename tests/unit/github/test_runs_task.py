"""`invoke runs`, `invoke attach` and `invoke build --executor github` on the command line."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ortrim.cli.tasks import github as github_task
from ortrim.cli.tasks.github import wants_cancel
from ortrim.errors import Interrupted, NetworkError
from ortrim.github import remote_build
from ortrim.github.client import Remote, Run
from program_runs import Run as Program
from program_runs import answer
from sample_reports import recorded_report

URL = "https://github.invalid/octo/ort/actions/runs/77"
RUN = Run(
    id=77, status="in_progress", conclusion=None, html_url=URL, display_title="build linux-x64,android [0011aabb]",
    created_at="2026-11-21T12:00:00Z",
)  # fmt: skip


def test_the_latest_runs_are_shown(ortrim: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number, state, targets, age and address; one that is over says how it ended."""
    hour = (datetime.now(UTC) - timedelta(hours=2, minutes=3, seconds=5)).isoformat()
    over = Run(id=76, status="completed", conclusion="failure", html_url=URL, display_title="x", created_at=hour)
    calls = answer(monkeypatch, github_task, "list_runs", (RUN, over))
    ended = ortrim("runs", "--repo", "octo/ort", "--token-file", "t", "--workflow", "app.yml")
    assert (ended.code, ended.err) == (0, "")
    assert calls[0][0] == Remote(repository="octo/ort", token_file=Path("t"), workflow="app.yml")
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0] == ["run", "status", "target", "age", "url"]
    assert lines[1][:3] == ["77", "in_progress", "linux-x64,android"]
    assert lines[2] == ["76", "failure", "x", "2", "h", "03", "min", URL]


@pytest.mark.parametrize("created", ["", "yesterday", "2026-11-21T12:00:00", "9999-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_is_no_error(ortrim: Program, monkeypatch: pytest.MonkeyPatch, created: str) -> None:
    """A clock may be wrong here or there; titles come from others and steer no terminal."""
    strange = Run(
        id=1, status=None, conclusion=None, html_url=URL, display_title="\x1b[31m red", created_at=created
    )  # fmt: skip
    answer(monkeypatch, github_task, "list_runs", (strange,))
    ended = ortrim("runs")
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out


def test_runs_are_one_document(ortrim: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none is an empty list, in words a line that says so."""
    answer(monkeypatch, github_task, "list_runs", (RUN,))
    (told,) = ortrim("runs", "--json").document()
    assert (told["id"], told["html_url"]) == (77, URL)
    answer(monkeypatch, github_task, "list_runs", ())
    assert ortrim("runs", "--json").document() == []
    assert ortrim("runs").out == "no build was dispatched yet\n"


@pytest.mark.parametrize("name", ["", "app", "../app.yml", "a/b.yml", "app.yml?x", ".yml"])
def test_what_is_no_workflow_s_file_is_refused(ortrim: Program, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    calls = answer(monkeypatch, github_task, "list_runs", ())
    ended = ortrim("runs", f"--workflow={name}")
    assert (ended.code, ended.err.splitlines()[0], calls) == (2, "error: bad-option", [])


@pytest.mark.parametrize("number", ["x", "0", "-1", "1.5", "9" * 30, "²", ""])
@pytest.mark.parametrize("words", [(), ("--cancel",)])
def test_a_number_that_is_none_is_refused(
    ortrim: Program, monkeypatch: pytest.MonkeyPatch, number: str, words: tuple[str, ...]
) -> None:
    calls = [answer(monkeypatch, github_task, name, None) for name in ("attach_to", "cancel_run")]
    ended = ortrim("attach", f"--run={number}", *words)
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: bad-option")
    assert calls == [[], []]


def test_a_run_that_was_taken_up_ends_with_its_reports(ortrim: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the build would have; without a record, with the folders of its artifacts."""
    calls = answer(monkeypatch, github_task, "attach_to", ((recorded_report(),), ()))
    ended = ortrim("attach", "77", "--output", "out", "--json")
    assert ended.code == 0
    assert len(ended.document()["reports"]) == 1
    assert calls[0][:3] == (77, Path("out"), Remote())
    answer(monkeypatch, github_task, "attach_to", ((), (Path("out/runs/77/x"),)))
    assert ortrim("attach", "77").out == "out/runs/77/x\n"
    assert ortrim("attach", "77", "--json").document() == {"folders": ["out/runs/77/x"]}


def test_a_run_is_cancelled(ortrim: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answer(monkeypatch, github_task, "cancel_run", True)  # noqa: FBT003
    ended = ortrim("attach", "77", "--cancel")
    assert (ended.code, ended.out) == (0, "the run 77 is being cancelled\n")
    assert calls[0][:3] == (77, Path("artifacts"), Remote())
    answer(monkeypatch, github_task, "cancel_run", False)  # noqa: FBT003
    assert "had ended already" in ortrim("attach", "77", "--cancel").out


@pytest.mark.parametrize(
    ("words", "error", "code"),
    [
        (("attach", "7"), Interrupted("run-left", "left"), 130),
        (("attach", "7", "--cancel"), NetworkError("run-not-found", "no"), 21),
        (("runs",), NetworkError("run-not-found", "no"), 21),
        (("build",), Interrupted("run-left", "left"), 130),
    ],
)
def test_what_goes_wrong_has_its_code(
    ortrim: Program, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], error: Exception, code: int
) -> None:
    for name in ("attach_to", "cancel_run", "list_runs"):
        answer(monkeypatch, github_task, name, error)
    answer(monkeypatch, remote_build, "build_on_github", error)
    github = ("--executor", "github") if words == ("build",) else ()
    ended = ortrim(*words, *github)
    assert ended.code == code
    assert ended.err.startswith("error: run-")


def test_a_build_at_github_gets_what_was_asked_for(ortrim: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where to, and everything else as for a build here."""
    calls = answer(monkeypatch, remote_build, "build_on_github", (recorded_report(),))
    ended = ortrim(
        *("build", "--executor", "github", "--repo", "octo/ort", "--ref", "topic/x", "--token-file", "t"),
        *("--target", "linux", "--output", "out", "--workflow", "compile.yaml", "--json"),
    )
    assert ended.code == 0
    assert len(json.loads(ended.out)["reports"]) == 1
    request, remote = calls[0][:2]
    assert remote == Remote(repository="octo/ort", ref="topic/x", token_file=Path("t"), workflow="compile.yaml")
    assert (request.target, request.output, request.container) == ("linux", Path("out"), None)


class Keyboard(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        """Be one."""
        return True


@pytest.mark.parametrize(
    ("typed", "cancels"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_at_a_terminal_the_user_is_asked(monkeypatch: pytest.MonkeyPatch, typed: str, cancels: bool) -> None:  # noqa: FBT001
    """Anything but a yes leaves the run alone."""
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))
    monkeypatch.setattr(sys, "stderr", Keyboard())
    assert wants_cancel(RUN) is cancels
    assert "Cancel the run 77?" in github_task.sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(sys, "stderr", Keyboard())
    assert not wants_cancel(RUN)
    assert github_task.sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_a_second_ctrl_c_leaves_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is in a hurry has answered, too."""

    class Pressed(Keyboard):
        def readline(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Pressed())
    monkeypatch.setattr(sys, "stderr", Keyboard())
    assert not wants_cancel(RUN)
