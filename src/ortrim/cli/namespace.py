"""Where each task is, and the words of a command line: what may follow them, and what those mean that name nothing.

A module is imported when one of its tasks is named, so that `--version` loads none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from invoke.collection import Collection

from ortrim.errors import UsageError

TASKS: Final[Mapping[tuple[str, ...], Callable[[], ModuleType]]] = {
    ("build", "plan", "verify", "report"): lambda: import_module("ortrim.cli.tasks.build"),
    ("init", "convert", "reduce", "prepare", "bundle", "page"): lambda: import_module("ortrim.cli.tasks.models"),
    ("inspect", "api"): lambda: import_module("ortrim.cli.tasks.inspect"),
    ("lint", "cost"): lambda: import_module("ortrim.cli.tasks.lint"),
    ("check-compat",): lambda: import_module("ortrim.cli.tasks.compat"),
    ("devices", "doctor", "schema"): lambda: import_module("ortrim.cli.tasks.setup"),
    ("attach", "runs", "fetch", "workflows"): lambda: import_module("ortrim.cli.tasks.github"),
    ("size",): lambda: import_module("ortrim.cli.tasks.size"),
    ("bench", "hot", "profile", "compare"): lambda: import_module("ortrim.cli.tasks.bench"),
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


def candidates(words: Sequence[str]) -> Iterator[str]:
    """Yield what a shell offers in the place of the last word, which may be unfinished: a task, an option, its value.

    `words` are those behind the program's name. Shells leave an empty last word out: behind a whole task's name, or
    that of an option, they may also be at the next word.
    """
    from ortrim.buildspec.build_options import PROFILE_NAMES  # noqa: PLC0415 - no other command needs the values here
    from ortrim.buildspec.step_specs import WITHOUT_KEYS  # noqa: PLC0415
    from ortrim.buildspec.targets import TARGETS  # noqa: PLC0415

    values = {"--target": tuple(TARGETS), "--profile": PROFILE_NAMES, "--step": WITHOUT_KEYS}
    (task, *others) = words or ("",)
    if not others and task not in TASK_NAMES:
        yield from TASK_NAMES
        if task.partition(".")[0] in COLLECTIONS:
            yield from namespace_for((task,)).task_names
        return
    task = next((word for word in reversed(others) if word in TASK_NAMES), task)  # several may stand in one line
    option = next((each for each in words[-1:-3:-1] if each in values), "")
    if option:
        yield from values[option]
    elif others and words[-1].startswith("-"):
        contexts = {context.name: context for context in namespace_for((task,)).to_contexts()}
        flags = contexts[task].flags if task in contexts else {}
        yield from (name for name in flags if name.startswith("--") and words[-1] not in flags)


SUFFIXES: Final = (".onnx", ".ort", ".toml")
LONGEST: Final = 200
"""So much of a word is repeated."""
LIKENESS: Final = 0.7
"""How alike words are, from 0 to 1, of which one may stand for the other."""


def unknown_word(word: str, what: str, otherwise: str = "", known: Iterable[str] = ()) -> UsageError:
    """Return the diagnostic (`unknown-word`) for a word of which `what` is true: 'no task has this name', say.

    Its hint names the nearest of models, buildspecs, tasks and other `known` words, or says `otherwise`.
    """
    near = " or ".join(_near(word[:LONGEST], known))
    hint = f"did you mean {near}?" if near else otherwise
    return UsageError("unknown-word", what, where=repr(word[:LONGEST]), hint=hint)


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word nearest to one that is not, an empty one if none is near."""
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=LIKENESS)), "")


def is_file_like(word: str) -> bool:
    """Whether a word was meant as a file or a folder, by how it is written."""
    return word.endswith((*SUFFIXES, "/")) or len(Path(word).parts) > 1


def _near(word: str, known: Iterable[str]) -> Iterator[str]:
    path = Path(word)
    if other := nearest_word(word, known):
        yield repr(other)
    elif name := nearest_word(path.name, beside := _beside(path)):
        yield repr(str(path.with_name(beside[name])))
    if not is_file_like(word) and (task := nearest_word(word, TASK_NAMES)):
        yield f"the task {task!r}"


def _beside(path: Path) -> dict[str, str]:
    """Return the names of models, buildspecs and folders where a file was looked for, also by those without suffix."""
    try:
        found = sorted(each.name for each in path.parent.iterdir() if each.suffix in SUFFIXES or each.is_dir())
    except (OSError, ValueError):
        return {}
    return {**{Path(name).stem: name for name in found}, **{name: name for name in found}}
