"""Tasks of the command line: the letters of their options, and a help that shows first what is used most.

- The decorator that makes one, in the place of Invoke's own.
- The text of `--help` for one: its options in groups, in the order in which people meet them.
"""

import inspect
from collections.abc import Container, Iterator, Mapping
from functools import partial
from typing import Any, Final

from invoke.parser.argument import Argument
from invoke.tasks import Task
from invoke.tasks import task as invoke_task
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ortrim.cli.boundary import reworded

LETTERS: Final[Mapping[str, str]] = {
    "spec": "s", "target": "t", "profile": "p", "output": "o", "jobs": "j", "device": "d",
}  # fmt: skip
"""The letters of options, the same in every task. Invoke chooses by order, for `token-file` it chose `--`."""
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "What": ("model", "app", "spec", "target", "profile", "ort-version", "case", "data", "dim", "given", "only"),
    "Where to": ("output", "github", "json", "plan-only"),
    "Verify": ("device", "cores", "least-memory", "trace", "training-run"),
    "Compile": ("jobs", "executor", "engine", "mount", "engine-flag", "ndk", "bundle", "verify-cache"),
    "GitHub": ("repo", "ref", "workflow", "token-file"),
}
"""Options that many tasks have, by what they are about; a task's own stand before them."""
WITHOUT_NAME: Final = ("model", "app", "spec")
"""Options whose values stand alone: a task has one of them at most."""


class OrtrimTask(Task[Any]):
    """A task whose options have the letters of `LETTERS`, and no others."""

    def arg_opts(self, name: str, default: str, taken_names: set[str]) -> dict[str, Any]:
        """Return Invoke's choices for an option, with its letter."""
        choices = super().arg_opts(name, default, taken_names)
        choices["names"] += [letter for letter in (LETTERS.get(choices["names"][0]),) if letter]
        return choices


task = partial(invoke_task, klass=OrtrimTask, auto_shortflags=False)


def without_name(options: Container[str]) -> str | None:
    """Return the option of a task whose values may be given without its name, None when it has none."""
    return next((name for name in WITHOUT_NAME if name in options), None)


def words_of(program: str, name: str, options: Mapping[str, Argument]) -> str:
    """Return how a task is called: the words that it takes, then its options."""
    needed = [option for option, each in options.items() if each.positional and each.kind is not list]
    alone = without_name(options)
    several = "..." if alone and options[alone].kind is list else ""
    words = [option.upper() for option in needed] or [f"[{alone.upper()}{several}]" for _ in (alone,) if alone]
    return " ".join((program, name, *words, *(("[options]",) if len(options) > len(needed) else ())))


def task_help(program: str, name: str, called: Task[Any], options: Mapping[str, Argument]) -> Group:
    """Return the help of a task: how it is called, what it does, and its options, given by name, in groups."""
    grouped = {each for names in GROUPS.values() for each in names}
    groups = {"Options": tuple(each for each in options if each not in grouped), **GROUPS}
    shown = {title: [options[each] for each in names if each in options] for title, names in groups.items()}
    return Group(
        Text(f"Usage: {words_of(program, name, options)}\n"),
        Text(f"{inspect.getdoc(called) or ''}\n"),
        *(part for title, each in shown.items() if each for part in _group(title, each)),
    )


def _group(title: str, options: list[Argument]) -> Iterator[Text | Padding]:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for option in options:
        table.add_row(Text(_named(option)), Text(reworded(option.help or "")))
    yield Text(f"{title}:", "bold")
    yield Padding(table, (0, 0, 0, 2), expand=False)
    yield Text()


def _named(option: Argument) -> str:
    (name, *letters) = option.names
    value = "" if option.kind is bool else f" {name.rpartition('-')[2].upper()}"
    return f"{f'-{letters[0]}, ' if letters else ''}--{name}{value}"
