"""Where each task is. A module is imported when one of its tasks is named, so that `--version` loads none."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from invoke.collection import Collection

TASKS: Final[Mapping[tuple[str, ...], Callable[[], ModuleType]]] = {
    ("build", "plan", "init", "verify", "report", "convert", "reduce", "prepare"): lambda: import_module(
        "ortrim.cli.build"
    ),
    ("bundle",): lambda: import_module("ortrim.cli.bundle"),
    ("page",): lambda: import_module("ortrim.page.task"),
    ("inspect",): lambda: import_module("ortrim.inspect.task"),
    ("lint",): lambda: import_module("ortrim.lint.task"),
    ("check-compat",): lambda: import_module("ortrim.compat.task"),
    ("compare",): lambda: import_module("ortrim.engines.task"),
    ("cost",): lambda: import_module("ortrim.cost.task"),
    ("devices", "doctor", "schema"): lambda: import_module("ortrim.cli.setup"),
    ("fetch",): lambda: import_module("ortrim.fetch.task"),
    ("api",): lambda: import_module("ortrim.app_api.task"),
    ("attach", "runs", "workflows"): lambda: import_module("ortrim.github.task"),
    ("size",): lambda: import_module("ortrim.size.task"),
    ("bench", "hot", "profile"): lambda: import_module("ortrim.bench.task"),
    ("accept-build", "check-build", "history"): lambda: import_module("ortrim.history.task"),
}
COLLECTIONS: Final[Mapping[str, Callable[[], ModuleType]]] = {
    "cache": lambda: import_module("ortrim.cli.cache"),
    "ci": lambda: import_module("ortrim.cli.ci"),
    "pins": lambda: import_module("ortrim.cli.pins"),
    "release": lambda: import_module("ortrim.cli.release"),
}
"""Those whose tasks have the module's name before their own."""
LISTING: Final = ("-l", "--list")
"""Options, of Invoke's, that are about all tasks."""


def namespace_for(words: Sequence[str]) -> Collection:
    """Return the tasks among which those of a command line are, all tasks unless it begins with a known one."""
    asked = [word.partition(".")[0] for word in words if word not in {"-h", "--help"}]
    known = {name for names in TASKS for name in names} | set(COLLECTIONS)
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
