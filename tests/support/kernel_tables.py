"""Sources in the manner of MLAS's: a table of kernels, a constructor that fills it, and sources that use entries."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "integration" / "data" / "kernel_tables"
SOURCES: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}
