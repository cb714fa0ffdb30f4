"""The console: steps with their progress, messages, diagnostics and results, for a terminal, a log and GitHub.

On a terminal a step shows a bar; in a log it writes a plain line now and then; on GitHub its lines are folded into a
group and diagnostics become annotations.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from io import TextIOWrapper
from typing import IO, Any, Final, NoReturn, Self, TextIO

from rich.console import Console as RichConsole
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from ortrim.errors import Diagnostic, DiagnosticGroup

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def duration_text(seconds: float) -> str:
    """Write a duration for reading: `0.42 s`, `12 s`, `5 min 50 s`, `1 h 02 min`."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole} s" if seconds >= 10 else f"{seconds:.2g} s"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, which takes an `s` for all numbers but one: `1 file`, `1,200 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first_lines(lines: Sequence[str], most: int) -> str:
    """Return the first `most` lines, and how many more there are."""
    rest = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join((*lines[:most], *rest))


def printable(text: str) -> str:
    """Replace control and direction characters: a model's names must not steer the user's terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else REPLACEMENT for c in text)


def defused(line: Text) -> Text:
    """Keep a line that merely looks like a workflow command from being obeyed by GitHub's runner."""
    plain = line.plain
    if plain.lstrip().startswith("::") or "##[" in plain:
        return Text(plain.replace("::", ": :", 1).replace("##[", "## ["))
    return line


LOG_SECONDS: Final = 30.0  # a log gets a step's progress at least this often, as long as there is any
LOG_SECONDS_BETWEEN: Final = 2.0
"""A log gets a further tenth no sooner than this after its last line, or after the step's start."""


class Step:
    """A stage under way: what the code that does the work reports to."""

    def __init__(
        self,
        name: str,
        show: Callable[["Step", str], None],
        clock: Callable[[], float],
        bar: "Bar | ProgressPart | None",
    ) -> None:
        self.name = name
        self.skipped = ""
        self.opened = False
        self._show = show
        self._clock = clock
        self._bar = bar
        self._started = self._told = clock()
        self._tenths = -1

    @property
    def live(self) -> bool:
        """Whether a bar shows every bit of progress; a log wants lines of what is worth keeping."""
        return self._bar is not None

    def progress(self, done: float, total: float, text: str = "") -> None:
        """Say how far the step is; call it often, a log gets few of the calls. A `total` of 0 is an unknown end."""
        done = min(done, total)
        if self._bar:
            self._bar.show(done, total, text)
        elif self._due(done, total):
            self._show(self, self._progress_line(done, total, text))

    def note(self, text: str) -> None:
        """Say something about this step."""
        self._show(self, f"  {text}")

    def skip(self, reason: str = "") -> None:
        """Say that there was nothing to do; the step then ends with "up to date" instead of a tick."""
        self.skipped = f"up to date ({reason})" if reason else "up to date"

    def _due(self, done: float, total: float) -> bool:
        """Whether a log should get this: at each further tenth, and every `LOG_SECONDS`; nothing at once."""
        tenths = int(10 * done / total) if total > 0 else 0
        since = self._clock() - self._told
        further = tenths > self._tenths and since >= LOG_SECONDS_BETWEEN
        if not (further or since >= LOG_SECONDS):
            return False
        self._tenths, self._told = tenths, self._clock()
        return True

    def _progress_line(self, done: float, total: float, text: str) -> str:
        elapsed = self._clock() - self._started
        parts = [f"{self.name}:"]
        if total > 0:
            parts.append(f"{100 * done / total:.0f} %")
        if elapsed >= 1:
            parts.append(f"after {duration_text(elapsed)}")
        if elapsed >= 1 and 0 < done < total:
            parts.append(f"about {duration_text(elapsed * (total - done) / done)} left")
        return "  " + " ".join([*parts, f"({text})"] if text else parts)


class Bar:
    """A progress bar that is gone when the step ends."""

    def __init__(self, console: RichConsole, name: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=18),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            # In a narrow terminal this is cut short, and not the times.
            TextColumn("{task.fields[note]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=console,
            expand=True,
            transient=True,
        )
        self._task = self._progress.add_task(printable(name), total=None, note="")

    def show(self, done: float, total: float, text: str) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total if total > 0 else None, note=printable(text))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class ProgressPart:
    """What shows a step that is part of another: as the other's progress."""

    def __init__(self, whole: Step, name: str) -> None:
        self._whole = whole
        self._name = name

    def show(self, done: float, total: float, text: str) -> None:
        """Say how far the part is."""
        self._whole.progress(done, total, f"{self._name}: {text}" if text else self._name)


STANDARD_OUTPUT: Final = "standard output"
LOG_WIDTH: Final = 120
LEAST_WIDTH: Final = 20
"""Width of a terminal by `COLUMNS`; in fewer columns tables lose their words, and in 0 all of them."""


class Console:
    """The one way to the user's eyes.

    Results go to standard output, diagnostics to standard error, all else to standard output too, but to standard error
    in `json_mode`, so that standard output carries one JSON document. `quiet` leaves out steps, notes and tables;
    `reword` has the last word on lines. `NO_COLOR` and `GITHUB_ACTIONS` are respected.
    """

    def __init__(
        self,
        *,
        json_mode: bool = False,
        quiet: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
        width: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        reword: Callable[[str], str] = str,
    ) -> None:
        environment = os.environ if environment is None else environment
        self.answered = False
        self._stdout = stdout or sys.stdout
        self._clock = clock
        self._reword = reword
        self._github = environment.get("GITHUB_ACTIONS") == "true"
        error_stream = stderr or sys.stderr
        _survive_any_character(self._stdout, error_stream, json_mode=json_mode)
        self._errors = _rich(error_stream, environment, width)
        self._content = self._errors if json_mode else _rich(self._stdout, environment, width)
        self._quiet = quiet
        self._whole: Step | None = None
        terminal = self._content.file.isatty() and environment.get("TERM") != "dumb"
        self._live = terminal and not self._github and not quiet

    def hushed(self, step: "Step") -> "Console":
        """Return this console without notes and tables, whose steps are progress of `step`: one step to the user."""
        hushed = copy(self)
        hushed._quiet, hushed._live, hushed._whole = True, False, step  # noqa: SLF001 - a console of this very class
        return hushed

    @contextmanager
    def step(self, name: str) -> Iterator["Step"]:
        """Show one stage of the work: its progress while it runs; a tick or a cross in the end. Steps do not nest."""
        started = self._clock()
        with ExitStack() as stack:
            bar: Bar | ProgressPart | None = stack.enter_context(Bar(self._content, name)) if self._live else None
            bar = ProgressPart(self._whole, name) if self._whole else bar
            step = Step(name, self._step_line, self._clock, bar)
            mark = ("✗", "bold red")
            try:
                yield step
                mark = ("=", "cyan") if step.skipped else ("✓", "bold green")
            finally:
                stack.close()
                self._end_step(step, mark, self._clock() - started)

    def note(self, text: str) -> None:
        """Say something worth knowing."""
        if not self._quiet:
            self._line(self._content, Text(printable(self._reword(text))))

    def warn(self, text: str) -> None:
        """Say something that the user should look at; an annotation on GitHub."""
        text = self._reword(text)
        if self._github:
            self._command("warning", text)
        else:
            self._line(self._content, Text.assemble(("warning: ", "bold yellow"), printable(text)))

    def render(self, renderable: RenderableType) -> None:
        """Show a table or anything else that rich can draw."""
        if not self._quiet:
            with self._named(self._content.file):
                self._content.print(renderable)

    def result(self, text: str) -> None:
        """Print the command's result, unchanged, on standard output; `answered` then says so."""
        self.answered = True
        with self._named(self._stdout):
            self._stdout.write(text if text.endswith("\n") else text + "\n")
            self._stdout.flush()

    def document(self, data: Any) -> None:
        """Print JSON-ready data as the command's result, in ASCII, so that names of files keep all their bytes."""
        self.result(json.dumps(data, indent=2))

    def diagnostic(self, diagnostic: Diagnostic) -> None:
        """Print a diagnostic in the layout of `Diagnostic.__str__`, in colour on a terminal."""
        text = Text(printable(str(diagnostic)))
        text.highlight_regex(r"(?m)^error: .*$", "bold red")
        text.highlight_regex(r"(?m)^  why: ", "bold")
        text.highlight_regex(r"(?m)^  hint: .*$", "green")
        self._line(self._errors, text)
        if self._github:
            members = diagnostic.told if isinstance(diagnostic, DiagnosticGroup) else (diagnostic,)
            for member in members:
                place = f"{member.where}: " if member.where else ""
                self._command("error", place + member.what, title=member.code)

    def _step_line(self, step: "Step", text: str) -> None:
        """Print a line of a step; on GitHub the first one opens the group."""
        if self._quiet:
            return
        if self._github and not step.opened:
            self._command("group", step.name)
        step.opened = True
        self._line(self._content, Text(printable(self._reword(text))))

    def _end_step(self, step: "Step", mark: tuple[str, str], seconds: float) -> None:
        if self._quiet:
            return
        if self._github and step.opened:
            self._command("endgroup", "")
        ending = f"  {step.skipped}" if step.skipped else f"  {duration_text(seconds)}"
        self._line(self._content, Text.assemble(mark, f" {printable(step.name)}", (printable(ending), "dim")))

    def _line(self, console: RichConsole, text: Text) -> None:
        if self._github:
            text = Text("\n").join(defused(line) for line in text.split("\n"))
        with self._named(console.file):
            console.print(text, soft_wrap=True)
            console.file.flush()

    @contextmanager
    def _named(self, stream: IO[str]) -> Iterator[None]:
        """Let an error of the operating system say that it is about a standard stream, as others name their files."""
        try:
            yield
        except OSError as error:
            error.filename = STANDARD_OUTPUT if stream is self._stdout else "standard error"
            raise

    def _command(self, command: str, message: str, *, title: str = "") -> None:
        stream = self._errors if command == "error" else self._content
        escaped = printable(message).replace("%", "%25").replace("\n", "%0A")  # as its own toolkit escapes it
        properties = f" title={title}" if title else ""
        stream.print(Text(f"::{command}{properties}::{escaped}"), soft_wrap=True)


class _Rich(RichConsole):
    """rich's console, which leaves it to the error boundary how a program ends whose output nobody reads any more."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _rich(stream: TextIO, environment: Mapping[str, str], width: int | None) -> RichConsole:
    columns = environment.get("COLUMNS", "")
    if not columns.isdecimal() or int(columns) < LEAST_WIDTH:
        environment = {name: value for name, value in environment.items() if name != "COLUMNS"}
        if width is None and not stream.isatty():
            width = LOG_WIDTH
    return _Rich(file=stream, width=width, markup=False, highlight=False, emoji=False, _environ=environment)


def _survive_any_character(stdout: TextIO, stderr: TextIO, *, json_mode: bool) -> None:
    """Let no stream fail on a character that it cannot encode; JSON is UTF-8 whatever the locale says."""
    for stream in (stdout, stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if json_mode and isinstance(stdout, TextIOWrapper):
        stdout.reconfigure(encoding="utf-8")


__all__ = ["STANDARD_OUTPUT", "Console", "Step", "counted", "duration_text", "printable"]
