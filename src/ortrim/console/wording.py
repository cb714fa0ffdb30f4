"""Text for people and for GitHub's runner: durations, characters that may be shown, workflow commands."""

from typing import Final

from rich.text import Text

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


def printable(text: str) -> str:
    """Replace control and direction characters: a model's names must not steer the user's terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else REPLACEMENT for c in text)


def workflow_command(command: str, message: str, *, title: str = "") -> str:
    """Write a workflow command for GitHub's runner, escaped as its own toolkit escapes it."""
    escaped = printable(message).replace("%", "%25").replace("\n", "%0A")
    properties = f" title={title}" if title else ""
    return f"::{command}{properties}::{escaped}"


def defused(line: Text) -> Text:
    """Keep a line that merely looks like a workflow command from being obeyed by GitHub's runner."""
    plain = line.plain
    if plain.lstrip().startswith("::") or "##[" in plain:
        return Text(plain.replace("::", ": :", 1).replace("##[", "## ["))
    return line
