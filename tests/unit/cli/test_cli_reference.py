"""docs/reference/cli.md is what the tasks say of themselves; ORTRIM_WRITE_DOCS=1 writes it anew."""

import inspect
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from invoke.parser.argument import Argument

from ortrim.cli.namespace import maintains, namespace_for
from ortrim.cli.program import words_of

namespace: Final = namespace_for(())
PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
INTRODUCTION: Final = """\
# Command line

<!-- Rendered from the tasks by tests/unit/cli/test_cli_reference.py; ORTRIM_WRITE_DOCS=1 writes it anew. -->

`invoke TASK` in a checkout and `ortrim TASK` in any folder run the same tasks, with the same words and options.
`--help TASK` prints what stands here. Several tasks may stand in one line: `ortrim lint model.onnx cost model.onnx`.
All tasks have the same [exit codes](errors.md#exit-codes).
"""
SHARED: Final = """
## Options of several tasks

The section of a task names those that it has.

| option | meaning |
|---|---|"""
SHARED_BY: Final = 3
"""Tasks that have an option in the same words from which on it stands in one place."""

TABLE: Final = "\n| task | what it does |\n|---|---|"
MAINTENANCE: Final = """
These tasks maintain ortrim and its workflows; a checkout also has the benchmarks (`invoke --list measure`).
"""
VALUES: Final = {str: "TEXT", list: "TEXT", int: "NUMBER", float: "NUMBER"}
HELP: Final = {name: dict(namespace[name].help) for name in namespace.task_names}
"""Invoke empties a task's help when it reads the task's arguments; tests that ran before did so."""


def names() -> list[str]:
    """Return the names of all tasks in the order of the list."""
    return sorted(namespace.task_names, key=lambda name: (maintains(name), "." in name, name))


def words(name: str) -> str:
    """Return what a task's docstring says."""
    return inspect.cleandoc(namespace[name].__doc__ or "")


def cell(text: str) -> str:
    """Return text as it may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def arguments(name: str) -> list[Argument]:
    """Return a task's arguments with their help, in the order of their names."""
    task = namespace[name]
    task.help = dict(HELP[name])
    found = task.get_arguments()  # Invoke's order, which is that of what stands by itself
    named = sorted((each for each in found if not is_positional(each)), key=lambda argument: argument.name or "")
    return [*filter(is_positional, found), *named]


def is_positional(argument: Argument) -> bool:
    """Whether an argument stands by itself; one that may be repeated needs its option each time."""
    return bool(argument.positional) and argument.kind is not list


def spelled(argument: Argument) -> str:
    """Return an argument as it is written, its value included."""
    if is_positional(argument):
        return f"`{str(argument.name).upper()}`"
    value = f" {VALUES.get(argument.kind, argument.kind.__name__.upper())}" if argument.takes_value else ""
    flags = [f"-{name}" if len(name) == 1 else f"--{name}" for name in argument.names if name.strip("-")]
    return ", ".join(f"`{flag}{value}`" for flag in sorted(flags, key=len, reverse=True))


def row(argument: Argument) -> str:
    """Return the row of a table."""
    return f"| {spelled(argument)} | {cell(argument.help or '')} |"


@cache
def shared() -> tuple[str, ...]:
    """Return the rows of options that several tasks have in the same words, of each option the most frequent one."""
    counted = Counter(row(each) for name in names() for each in arguments(name) if not is_positional(each))
    frequent = (text for text, tasks in counted.most_common() if tasks >= SHARED_BY)
    return tuple(sorted({text.split(" | ")[0]: text for text in reversed(tuple(frequent))}.values()))


def section(name: str) -> Iterator[str]:
    """Yield the lines of a task's section."""
    found = arguments(name)
    usage = words_of("invoke", name, {str(each.names[0]): each for each in found})
    yield f"## `{name}`\n\n```\n{usage}\n```\n\n{words(name)}\n"
    own = [row(each) for each in found if row(each) not in shared()]
    if own:
        yield "\n".join(["| option | meaning |\n|---|---|", *own, ""])
    if others := [spelled(each).split("`")[1].split()[0] for each in found if row(each) in shared()]:
        yield f"[Shared options](#options-of-several-tasks): {', '.join(f'`{name}`' for name in others)}\n"


def render() -> str:
    """Return the page."""
    rows = {name: f"| [`{name}`](#{name.replace('.', '')}) | {words(name).splitlines()[0]} |" for name in names()}
    users = (row for name, row in rows.items() if not maintains(name))
    of_maintainers = (row for name, row in rows.items() if maintains(name))
    tables = [INTRODUCTION + TABLE, *users, MAINTENANCE + TABLE, *of_maintainers, SHARED, *shared(), ""]
    return "\n".join([*tables, *(line for name in names() for line in section(name))])


def test_the_page_is_what_the_tasks_say() -> None:
    """A changed option or word of help changes the page."""
    if os.environ.get("ORTRIM_WRITE_DOCS"):
        PAGE.write_text(render(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == render()


def test_every_option_says_what_it_means() -> None:
    silent = [(name, each.name) for name in names() for each in arguments(name) if not each.help]
    assert silent == []
