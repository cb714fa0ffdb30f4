"""The command line's words for builds at GitHub, checked."""

from collections.abc import Mapping
from pathlib import Path

from ortrim.pipeline.github.connection import Remote
from ortrim.tasks.options import bad_option
from ortrim.workflows.inputs import REF


def remote_from(repo: str | None, ref: str | None = None, token_file: str | None = None) -> Remote:
    """Return where runs are. Raises `UsageError` (`bad-option`)."""
    if ref is not None and not REF.fullmatch(ref):
        raise bad_option("ref", ref[:100], "give the name of a branch or a tag")
    return Remote(repository=repo or "", ref=ref or "", token_file=None if token_file is None else Path(token_file))


def require_possible(executor: str, *, upload_models: bool, here: Mapping[str, object], **words: str | None) -> None:
    """Refuse options that go with `--executor github` alone, and those of what is done `here` if nothing is.

    Raises `UsageError` (`bad-option`).
    """
    for option, word in {**words, "upload_models": "--upload-models" if upload_models else None}.items():
        if word is not None and executor != "github":
            raise bad_option(option.replace("_", "-"), word, "it goes with --executor github")
    for option, value in here.items():
        if value and upload_models:
            raise bad_option(option, str(value), "nothing is verified here with --upload-models")


def run_number(text: str) -> int:
    """Return the number of a run. Raises `UsageError` (`bad-option`)."""
    if text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0:
        return int(text)
    raise bad_option("run", text[:100], "give the number of a run, which invoke runs shows")
