"""Pinning the full ONNX Runtime of a version, which converts models: its wheels and those that it needs."""

from collections.abc import Callable

from ortrim.errors import SourcesError
from ortrim.sources.pinned_requirements import PYTHONS, Wanted, pinned_text
from ortrim.tools.full_runtime import DISTRIBUTION


def converter_text(version: str, announce: Callable[[str], None]) -> str:
    """Return a requirements file for the full runtime of one version, with the digest of every wheel.

    Versions of what it needs are those that pip takes on each Python on x86-64. Raises `SourcesError` `no-converter`
    when there is no wheel for any Python that ortrim runs on, and as `pinned_text` does.
    """
    try:
        lines = pinned_text(Wanted(packages=(f"{DISTRIBUTION}=={version}",)), announce)
    except SourcesError as error:
        if error.reference != "no-wheel":
            raise
        what = f"the package index has no wheel of {DISTRIBUTION} {version} for Python {', '.join(PYTHONS)}"
        hint = "wait until it is published there; without it no model can be converted"
        raise SourcesError("no-converter", what, where=DISTRIBUTION, hint=hint) from error
    head = f"# The full ONNX Runtime {version} for converting models. Made by: invoke pins.update --latest\n"
    return head + lines
