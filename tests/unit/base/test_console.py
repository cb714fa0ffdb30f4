import errno
import io
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from ortrim.base.console import Console, counted, duration_text, printable
from ortrim.errors import Diagnostic, DiagnosticGroup, SpecError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Streams:
    def __init__(
        self, *, terminal: bool = False, json_mode: bool = False, quiet: bool = False, **environment: str
    ) -> None:
        self.out, self.err = (Terminal(), Terminal()) if terminal else (io.StringIO(), io.StringIO())
        self.clock = Clock()
        self.console = Console(
            json_mode=json_mode,
            quiet=quiet,
            stdout=self.out,
            stderr=self.err,
            environment={"TERM": "xterm", **environment},
            clock=self.clock,
        )

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.out.getvalue().splitlines()]


DIAGNOSTIC = SpecError(
    "unknown-key", "'abi' is not a known key", where="x.toml", why="first\nsecond", hint="did you mean 'abis'?"
)


def test_a_finished_step_prints_a_tick_and_its_duration() -> None:
    streams = Streams()
    with streams.console.step("build linux-x64"):
        streams.clock.now += 350
    assert streams.lines() == ["✓ build linux-x64  5 min 50 s"]


def test_a_skipped_step_says_up_to_date() -> None:
    streams = Streams()
    with streams.console.step("convert") as step:
        step.skip("same digest")
    with streams.console.step("reduce") as step:
        step.skip()
    assert streams.lines() == ["= convert  up to date (same digest)", "= reduce  up to date"]


@pytest.mark.parametrize("error", [SpecError("a", "b"), KeyboardInterrupt(), ValueError("x")])
def test_a_failed_step_prints_a_cross_and_passes_the_error_on(error: BaseException) -> None:
    streams = Streams()
    with pytest.raises(type(error)), streams.console.step("build"):
        raise error
    assert streams.lines()[0].startswith("✗ build")


def test_a_log_hears_of_progress_now_and_then() -> None:
    """Of 547 reports in 547 seconds a log shows one after 2 seconds, each tenth, and one at least every 30 seconds."""
    streams = Streams()
    with streams.console.step("compile") as step:
        for done in range(548):
            streams.clock.now = float(done)
            step.progress(done, 547, f"object {done}")
    lines = streams.lines()
    assert lines[0].startswith("  compile: 0 % after 2 s about 9 min")
    assert lines[2] == "  compile: 10 % after 55 s about 8 min 12 s left (object 55)"
    assert lines[-2] == "  compile: 100 % after 9 min 07 s (object 547)"
    assert 20 <= len(lines) <= 30


def test_a_fast_step_does_not_flood_the_log() -> None:
    streams = Streams()
    with streams.console.step("unpack") as step:
        for done in range(101):
            step.progress(done, 100)
    assert streams.lines() == ["✓ unpack  0 s"]


def test_progress_without_a_known_end_has_no_percentage() -> None:
    """A total of 0 is an unknown end: no percentage, no remaining time, no division by zero."""
    streams = Streams()
    with streams.console.step("wait") as step:
        streams.clock.now = 2.0
        step.progress(0, 0, "for the lock")
    assert streams.lines()[0] == "  wait: after 2 s (for the lock)"


def test_more_done_than_the_total_is_all_of_it() -> None:
    streams = Streams()
    with streams.console.step("download") as step:
        streams.clock.now = 2.0
        step.progress(20, 10)
    assert streams.lines()[0] == "  download: 100 % after 2 s"


def test_a_terminal_shows_a_bar_with_elapsed_and_remaining_time() -> None:
    streams = Streams(terminal=True, COLUMNS="100")
    with streams.console.step("compile") as step:
        step.progress(5, 10, "a.cc")
        step.note("a note")
    shown = streams.out.getvalue()
    assert "elapsed" in shown
    assert "left a.cc" in shown
    assert "50%" in shown
    assert "\x1b[2K" in shown
    assert "a note" in shown


def test_a_narrow_terminal_cuts_the_file_and_not_the_times() -> None:
    """Eighty columns show how long it takes, whatever the name is that is compiled."""
    streams = Streams(terminal=True, COLUMNS="80")
    with streams.console.step("build linux-arm64-musl") as step:
        step.progress(5, 10, "a_name_of_a_file_that_is_longer_than_the_line.cc")
    shown = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", streams.out.getvalue())
    assert re.search(r"50% \d:\d\d:\d\d elapsed, [-\d]:[-\d]{2}:[-\d]{2} left a", shown)


def test_a_step_says_whether_its_progress_is_seen_as_it_is() -> None:
    """A log gets lines, and wants no more of them than are worth keeping."""
    for terminal in (True, False):
        with Streams(terminal=terminal).console.step("compile") as step:
            assert step.live is terminal


def test_no_color_is_respected() -> None:
    for streams, coloured in ((Streams(terminal=True, NO_COLOR="1"), False), (Streams(terminal=True), True)):
        streams.console.warn("look here")
        assert ("33m" in streams.out.getvalue()) is coloured


def test_json_mode_leaves_standard_output_to_the_document() -> None:
    streams = Streams(json_mode=True)
    table = Table()
    table.add_row("a cell")
    with streams.console.step("plan") as step:
        step.progress(1, 2)
        step.note("half")
    streams.console.note("note")
    streams.console.warn("warning")
    streams.console.render(table)
    streams.console.diagnostic(DIAGNOSTIC)
    streams.console.result('{"a": 1}')
    assert json.loads(streams.out.getvalue()) == {"a": 1}
    for text in ("✓ plan", "half", "note", "warning", "a cell", "unknown-key"):
        assert text in streams.err.getvalue()


def test_json_is_utf8_on_a_stream_that_is_not(tmp_path: Path) -> None:
    """A terminal with another encoding still gets JSON in UTF-8, and messages never fail to print."""
    with (tmp_path / "out").open("w", encoding="ascii") as out, (tmp_path / "err").open("w", encoding="ascii") as err:
        console = Console(json_mode=True, stdout=out, stderr=err, environment={})
        console.note("grüße ✓")
        console.result('"ü"')
    assert json.loads((tmp_path / "out").read_bytes()) == "ü"
    assert b"gr" in (tmp_path / "err").read_bytes()


def test_a_document_keeps_names_that_no_encoding_has() -> None:
    """A file's name may be bytes that are no text; a reader of the document finds the file."""
    name, streams = os.fsdecode(b"m\xff.onnx"), Streams(json_mode=True)
    streams.console.document({"path": name, "note": "\u00fc"})
    assert streams.out.getvalue().isascii()
    assert json.loads(streams.out.getvalue()) == {"path": name, "note": "\u00fc"}


def test_quiet_keeps_warnings_results_and_diagnostics() -> None:
    streams = Streams(quiet=True)
    with streams.console.step("plan") as step:
        step.note("unheard")
    streams.console.note("unheard")
    streams.console.render("unheard")
    streams.console.warn("heard")
    streams.console.result("result")
    streams.console.diagnostic(DIAGNOSTIC)
    assert streams.lines() == ["warning: heard", "result"]
    assert str(DIAGNOSTIC) in streams.err.getvalue()


def test_a_hushed_console_speaks_where_the_other_does() -> None:
    streams = Streams()
    with streams.console.step("plan") as step, streams.console.hushed(step).step("unheard"):
        hushed = streams.console.hushed(step)
        hushed.note("unheard")
        hushed.render("unheard")
        hushed.warn("heard")
    streams.console.note("heard, too")
    lines = streams.lines()
    assert (lines[0], lines[-1]) == ("warning: heard", "heard, too")
    assert not [line for line in lines if "unheard" in line]


def test_a_step_of_a_hushed_console_is_progress_of_the_whole() -> None:
    """Hours of work inside another step are not silent."""
    streams = Streams()
    with streams.console.step("plan") as whole, streams.console.hushed(whole).step("steps of m") as part:
        streams.clock.now += 40
        part.progress(1, 4, "step 2")
        part.note("unheard")
    assert streams.lines()[0] == "  plan: 25 % after 40 s about 2 min 00 s left (steps of m: step 2)"
    assert not [line for line in streams.lines() if "unheard" in line]


@pytest.mark.parametrize(
    "diagnostic", [DIAGNOSTIC, SpecError("a", "b"), DiagnosticGroup((DIAGNOSTIC, SpecError("c", "d " * 200)))]
)
def test_a_diagnostic_is_printed_in_its_own_layout(diagnostic: Diagnostic) -> None:
    streams = Streams()
    streams.console.diagnostic(diagnostic)
    assert streams.err.getvalue() == str(diagnostic) + "\n"


def test_a_diagnostic_is_coloured_on_a_terminal_without_changing_its_text() -> None:
    streams = Streams(terminal=True)
    streams.console.diagnostic(DIAGNOSTIC)
    shown = streams.err.getvalue()
    assert "\x1b[1;31merror: unknown-key\x1b[0m" in shown
    for sequence in ("\x1b[1;31m", "\x1b[1m", "\x1b[32m", "\x1b[0m"):
        shown = shown.replace(sequence, "")
    assert shown == str(DIAGNOSTIC) + "\n"


def test_github_folds_the_lines_of_a_step() -> None:
    streams = Streams(GITHUB_ACTIONS="true")
    with streams.console.step("build") as step:
        step.note("one")
        streams.clock.now = 2.0
        step.progress(1, 2)
    with streams.console.step("plan"):
        pass
    assert streams.lines() == [
        "::group::build",
        "  one",
        "  build: 50 % after 2 s about 2 s left",
        "::endgroup::",
        "✓ build  2 s",
        "✓ plan  0 s",
    ]


def test_github_gets_annotations() -> None:
    streams = Streams(GITHUB_ACTIONS="true")
    streams.console.warn("50 %\nof it")
    streams.console.diagnostic(DiagnosticGroup((DIAGNOSTIC, SpecError("other", "what"))))
    assert streams.lines() == ["::warning::50 %25%0Aof it"]
    annotations = [line for line in streams.err.getvalue().splitlines() if line.startswith("::")]
    assert annotations == ["::error title=unknown-key::x.toml: 'abi' is not a known key", "::error title=other::what"]


@pytest.mark.parametrize(
    "text", ["::set-env name=A::b", "  ::stop-commands::x", "fine\n::add-mask::x", "a ##[add-path]b"]
)
def test_text_cannot_give_orders_to_githubs_runner(text: str) -> None:
    streams = Streams(GITHUB_ACTIONS="true")
    streams.console.note(text)
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in streams.lines())


def test_text_cannot_steer_the_terminal() -> None:
    streams = Streams()
    with streams.console.step("model [bold]\x1b[2Jx\u202ey") as step:
        step.note("\x1b]0;title\x07")
    streams.console.note("[link=x]y[/link] :smile:")
    assert "\x1b" not in streams.out.getvalue()
    assert "\u202e" not in streams.out.getvalue()
    assert "model [bold]" in streams.out.getvalue()
    assert streams.lines()[-1] == "[link=x]y[/link] :smile:"


def test_long_lines_are_not_broken_in_a_log() -> None:
    streams = Streams()
    streams.console.note("/folder" * 100)
    assert streams.lines() == ["/folder" * 100]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.421, "0.42 s"), (9.94, "9.9 s"), (12.4, "12 s"), (59.6, "1 min 00 s"), (350, "5 min 50 s"),
        (3720, "1 h 02 min"),
    ],
)  # fmt: skip
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (21, "21 files"), (1234, "1,234 files")]
)
def test_a_noun_agrees_with_its_number(number: int, text: str) -> None:
    assert counted(number, "file") == text


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert all(character.isprintable() or character in "\n\t" for character in shown)


class Unread(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_what_nobody_reads_is_for_the_caller_to_end() -> None:
    """Tables, lines and results alike; rich would end the program with a code of its own."""
    console = Console(stdout=Unread(), stderr=io.StringIO(), environment={})
    for show in (console.render, console.note, console.result):
        with pytest.raises(BrokenPipeError):
            show("a")


class Full(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_stream_that_cannot_be_written_is_named() -> None:
    console = Console(stdout=Full(), stderr=Full(), environment={})
    for show in (console.render, console.note, console.result):
        with pytest.raises(OSError, match="'standard output'"):
            show("a")
    with pytest.raises(OSError, match="'standard error'"):
        console.diagnostic(Diagnostic("a", "b"))


@pytest.mark.parametrize("columns", ["", "0", "1", "-3", "wide"])
def test_a_width_that_no_terminal_has_is_not_taken(columns: str) -> None:
    """Some programs hand on COLUMNS=0, in which a table shows nothing at all."""
    streams = Streams(COLUMNS=columns)
    table = Table("a" * 50, "b" * 50)
    streams.console.render(table)
    assert "a" * 50 in streams.out.getvalue()
    streams = Streams(COLUMNS="30")
    streams.console.render(table)
    assert max(map(len, streams.lines())) == 30


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
