"""Names that come from models, libraries and machines, made fit to be shown."""

from typing import Final

from ortrim.console import printable
from ortrim.report.figures import shortened

NAME_LETTERS: Final = 72


def name_text(name: str) -> str:
    """Write a name so that it can neither steer a terminal nor fill a page."""
    return shortened(printable(name), NAME_LETTERS)
