"""The option that names a training run."""

from typing import Final

from ortrim.errors import UsageError

LONGEST: Final = 200


def run_name(word: str) -> str:
    """Return what identifies the run that made the models. Raises `UsageError` (`bad-option`)."""
    if len(word) <= LONGEST and word.isprintable():
        return word
    hint = f"give at most {LONGEST} printable characters"
    raise UsageError("bad-option", "this cannot name a training run", where="--training-run", hint=hint)
