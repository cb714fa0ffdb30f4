"""The program, run in this process as a shell would run it."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measuring
import pytest
from invoke.collection import Collection
from invoke.main import program as invoke_program
from invoke.program import Program

from fake_sources import private_cache
from ndk_layout import forget_ndks
from ortrim.cli.namespace import namespace_for
from ortrim.cli.program import program


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        return json.loads(self.out)


def answer(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, result: Any) -> list[tuple[Any, ...]]:
    """Put a function in place of what a task calls, and return its calls; a result that is an exception is raised."""
    calls: list[tuple[Any, ...]] = []

    def function(*arguments: Any) -> Any:
        calls.append(arguments)
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(module, name, function)
    return calls


Run = Callable[..., Ended]
CHECKOUT = Path(__file__).parents[2]
NAMESPACE = namespace_for(())
MEASURE = Collection.from_module(measuring)
COLLECTIONS = (NAMESPACE, *NAMESPACE.collections.values(), MEASURE)
TASKS = tuple(task for collection in COLLECTIONS for task in collection.tasks.values())
HELP = [(task, dict(task.help)) for task in TASKS]
"""Invoke empties a task's help while it reads the command line; a process normally does that once."""


def program_in(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `ortrim` with some words in an empty folder with a cache of its own."""
    private_cache(folder, monkeypatch)
    forget_ndks(monkeypatch)
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    for name in [name for name in os.environ if name.startswith("INVOKE_")] + ["GITHUB_ACTIONS", "COLUMNS"]:
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, name: str = "ortrim") -> Ended:
        code, line = 0, ["ortrim", *words]
        if name == "invoke":
            line = ["invoke", "--search-root", str(CHECKOUT), *words]
            monkeypatch.setattr(sys, "argv", line)
            invoke_program.__class__ = Program  # what it is until it has read tasks.py
        for task, texts in HELP:
            task.help = dict(texts)
        try:
            (program if name == "ortrim" else invoke_program).run(line)
        except SystemExit as ending:
            code = int(ending.code or 0)
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return run
