"""Words of a command line that name nothing: what each could have meant."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ortrim.cli.namespace import TASK_NAMES
from ortrim.errors import UsageError

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
