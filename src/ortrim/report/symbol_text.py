"""Names of C++ symbols made short enough to read: what a template was made for and a function takes is left out."""

from typing import Final

from ortrim.console import printable
from ortrim.report.figures import ELLIPSIS, shortened

PLAIN: Final = 60
"""Characters up to which a name is shown as it is."""
LETTERS: Final = 90
LONGEST: Final = 10_000
"""How much of a name is looked at."""
PAIRS: Final = {"<": ">", "(": ")"}
KEPT: Final = "(anonymous namespace)"


def symbol_text(name: str, letters: int = LETTERS) -> str:
    """Write a demangled name in at most `letters` characters; short ones as they are."""
    shown = printable(name[:LONGEST])
    return shown if len(shown) <= min(PLAIN, letters) else shortened(_collapsed(shown), letters)


def _collapsed(name: str) -> str:
    """Replace what stands in the outermost brackets by an ellipsis; `operator<` and the like are no brackets."""
    text, depth, closing = "", 0, ""
    for position, character in enumerate(name):
        if depth == 0 and character in PAIRS and not _literal(name, position):
            text, depth, closing = f"{text}{character}{ELLIPSIS}", 1, PAIRS[character]
        elif depth == 0:
            text += character
        elif character in PAIRS and PAIRS[character] == closing and not _literal(name, position):
            depth += 1
        elif character == closing and name[position - 1] != "-":
            depth -= 1
            text += character if depth == 0 else ""
    return text


def _literal(name: str, position: int) -> bool:
    """Whether the character is part of an operator's or of an unnamed namespace's name."""
    return name.startswith(KEPT, position) or name[:position].rstrip("<(").endswith("operator")
