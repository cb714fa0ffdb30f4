"""The pages as a site: mkdocs finds no broken link or anchor, and no page that its menu lacks."""

from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder

pytestmark = pytest.mark.network
ROOT: Final = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Every page of docs/ and benchmarks/results is in it, and it loads nothing from another server."""
    tools = packages_folder("site-tools", (ROOT / "docs" / "requirements.txt").read_text())
    words = (
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        ROOT / "mkdocs.yml",
        "--site-dir",
        tmp_path,
    )
    done = run((*ISOLATED_PYTHON, *words), environment=environment_with(tools))
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    pages |= {Path("results", page.stem) for page in (ROOT / "benchmarks" / "results").glob("*.md")}
    made = {page.parent.relative_to(tmp_path) for page in tmp_path.rglob("index.html")}
    assert {page.parent if page.name in {"index", "README"} else page for page in pages} <= made
    assert "fonts.googleapis" not in (tmp_path / "index.html").read_text(encoding="utf-8")
