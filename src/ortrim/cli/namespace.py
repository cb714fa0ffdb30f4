"""Where each task is. A module is imported when one of its tasks is named, so that `--version` loads none."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from invoke.collection import Collection

TASKS: Final[Mapping[tuple[str, ...], Callable[[], ModuleType]]] = {
    ("build", "plan", "verify", "report"): lambda: import_module("ortrim.cli.tasks.build"),
    ("init", "convert", "reduce", "prepare"): lambda: import_module("ortrim.cli.tasks.models"),
    ("bundle",): lambda: import_module("ortrim.cli.tasks.bundle"),
    ("page",): lambda: import_module("ortrim.cli.tasks.page"),
    ("inspect",): lambda: import_module("ortrim.cli.tasks.inspect"),
    ("lint",): lambda: import_module("ortrim.cli.tasks.lint"),
    ("check-compat",): lambda: import_module("ortrim.cli.tasks.compat"),
    ("compare",): lambda: import_module("ortrim.cli.tasks.compare"),
    ("cost",): lambda: import_module("ortrim.cli.tasks.cost"),
    ("devices", "doctor", "schema"): lambda: import_module("ortrim.cli.tasks.setup"),
    ("fetch",): lambda: import_module("ortrim.cli.tasks.fetch"),
    ("api",): lambda: import_module("ortrim.cli.tasks.api"),
    ("attach", "runs", "workflows"): lambda: import_module("ortrim.cli.tasks.github"),
    ("size",): lambda: import_module("ortrim.cli.tasks.size"),
    ("bench", "hot", "profile"): lambda: import_module("ortrim.cli.tasks.bench"),
    ("accept-build", "check-build", "history"): lambda: import_module("ortrim.cli.tasks.history"),
}
COLLECTIONS: Final[Mapping[str, Callable[[], ModuleType]]] = {
    "cache": lambda: import_module("ortrim.cli.tasks.cache"),
    "ci": lambda: import_module("ortrim.cli.tasks.ci"),
    "pins": lambda: import_module("ortrim.cli.tasks.pins"),
    "release": lambda: import_module("ortrim.cli.tasks.release"),
}
"""Groups: their tasks have the group's name before their own."""
MAINTAINING: Final = ("ci", "measure", "pins", "release")
"""Groups whose tasks maintain ortrim and its workflows; a checkout alone has those of `measure`."""
TASK_NAMES: Final = tuple(name for names in TASKS for name in names)
LISTING: Final = ("-l", "--list")
"""Options, of Invoke's, that are about all tasks."""


def namespace_for(words: Sequence[str]) -> Collection:
    """Return the tasks among which those of a command line are, all tasks unless it begins with a known one."""
    asked = [word.partition(".")[0] for word in words if word not in {"-h", "--help"}]
    known = {*TASK_NAMES, *COLLECTIONS}
    everything = not known.intersection(asked[:1]) or any(word.startswith(LISTING) for word in words)
    namespace = Collection()
    for names, load in TASKS.items():
        if everything or not set(asked).isdisjoint(names):
            for task in Collection.from_module(load()).tasks.values():
                namespace.add_task(task)
    for name, load in COLLECTIONS.items():
        if everything or name in asked:
            namespace.add_collection(Collection.from_module(load()), name=name)
    return namespace


def maintains(name: str) -> bool:
    """Whether a task, by its whole name, maintains ortrim, so that users of ortrim do not call it."""
    return name.partition(".")[0] in MAINTAINING
