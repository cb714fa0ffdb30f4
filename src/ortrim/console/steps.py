"""Steps: how far a stage of the work is, as a bar on a terminal or as lines in a log."""

from collections.abc import Callable
from typing import Final, Self

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ortrim.console.wording import duration_text, printable

LOG_SECONDS: Final = 30.0
"""A log hears of a step's progress at least this often, as long as there is any."""
LOG_SECONDS_BETWEEN: Final = 2.0
"""A log hears of a further tenth no sooner than this after its last line, or after the step's start."""


class Step:
    """A stage under way: what the code that does the work reports to."""

    def __init__(
        self, name: str, show: Callable[["Step", str], None], clock: Callable[[], float], bar: "Bar | Part | None"
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
        """Say how far the step is; as often as you like, a log hears of it only now and then.

        A `total` of 0 means that the end is not known.
        """
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
        """Whether a log should hear of this: at each further tenth, and every `LOG_SECONDS`.

        A step that ends at once is left at its tick.
        """
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
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("elapsed"),
            TimeRemainingColumn(),
            TextColumn("left {task.fields[note]}", markup=False),
            console=console,
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


class Part:
    """What shows a step that is part of another: as the other's progress."""

    def __init__(self, whole: Step, name: str) -> None:
        self._whole = whole
        self._name = name

    def show(self, done: float, total: float, text: str) -> None:
        """Say how far the part is."""
        self._whole.progress(done, total, f"{self._name}: {text}" if text else self._name)
