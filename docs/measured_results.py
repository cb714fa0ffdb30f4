"""Hook of mkdocs: the pages of benchmarks/results are part of the site, as `results/`, and links lead there."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def on_files(files: Any, config: Any) -> Any:
    """Add the measured results; links between them and the pages of docs/ become those of the site."""
    for path in sorted(RESULTS.glob("*.md")):
        text = path.read_text(encoding="utf-8").replace("](../../docs/", "](../")
        files.append(File.generated(config, f"results/{path.name}", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links to benchmarks/results into links to `results/`."""
    return re.sub(r"\]\(((?:\.\./)*)\.\./benchmarks/results/", r"](\1results/", markdown)
