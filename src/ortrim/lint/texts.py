"""Rules about texts that travel in a model."""

import re
from collections.abc import Iterator
from typing import Final

from ortrim.core.graph_facts import TextFacts
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

PATH: Final = re.compile(
    r"(?:/(?:home|Users|root|mnt|opt|usr|tmp|var|data|work|workspace|content|srv|media|private|builds?)/[^\s\"':;,]+"
    r"|\b[A-Za-z]:[\\/][^\s\"':;,]+"
    r"|\bFile \"[^\"]+\""
    r"|[^\s\"'()<>:;,]+\.py(?=[(:]\d+|\"|', line))"
)
"""Folders of Unix, of Windows, and the lines of Python's traces; a node's own name such as `/conv/Conv` is none."""
LONGEST: Final = 80


def source_paths(facts: LintFacts) -> Iterator[Shown]:
    """Find paths of the exporting machine in doc strings, metadata and names."""
    places: dict[str, list[str]] = {}
    for text in facts.graph.texts:
        if not _is_module(text) and (found := PATH.search(text.text)):
            places.setdefault(found[0], []).append(text.place)
    for path, shown in places.items():
        more = f" and {len(shown) - 1:,} more places" if len(shown) > 1 else ""
        yield Shown(place=shown[0], words=f"the {shown[0]}{more} shows '{_short(path)}'")


def _is_module(text: TextFacts) -> bool:
    """Tell the name that PyTorch's exporter gives a node, modules and operator (`/data/conv/Relu`), from a path."""
    _, of, operator = text.place.partition("name of ")
    return bool(of) and re.fullmatch(rf"/\S*/{re.escape(operator)}(_\d+)?", text.text) is not None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
