"""What a shell offers at the end of a command line; where nothing is offered, the shell itself offers files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ortrim.buildspec.build_options import PROFILE_NAMES
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.buildspec.targets import TARGETS
from ortrim.cli.namespace import COLLECTIONS, TASK_NAMES, namespace_for

VALUES: Final[Mapping[str, Sequence[str]]] = {
    "--target": tuple(TARGETS),
    "--profile": PROFILE_NAMES,
    "--step": WITHOUT_KEYS,
}


def candidates(words: Sequence[str]) -> Iterator[str]:
    """Yield what may stand in the place of the last word, which may be unfinished: a task, an option, its value.

    `words` are those behind the program's name. Shells leave an empty last word out: behind a whole task's name, or
    that of an option, they may also be at the next word.
    """
    (task, *others) = words or ("",)
    if not others and task not in TASK_NAMES:
        yield from TASK_NAMES
        if task.partition(".")[0] in COLLECTIONS:
            yield from namespace_for((task,)).task_names
        return
    task = next((word for word in reversed(others) if word in TASK_NAMES), task)  # several may stand in one line
    option = next((each for each in words[-1:-3:-1] if each in VALUES), "")
    if option:
        yield from VALUES[option]
    elif others and words[-1].startswith("-"):
        contexts = {context.name: context for context in namespace_for((task,)).to_contexts()}
        flags = contexts[task].flags if task in contexts else {}
        yield from (name for name in flags if name.startswith("--") and words[-1] not in flags)
