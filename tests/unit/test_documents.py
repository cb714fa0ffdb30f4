"""The documents: every link in them leads somewhere, and every page that the project names is there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks" / "results").glob("*.md")),
)
NAMED_IN: Final = ("src", "tests", "benchmarks", "buildspecs", "bootstrap", "pyproject.toml")
UPSTREAMS: Final = {
    f"docs/{name}.md" for name in ("ContribOperators", "Operators", "Versioning", "reference/compatibility")
}


def prose(page: Path) -> Iterator[str]:
    """Yield the lines of a page outside of code blocks."""
    in_code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield line


def anchor(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def anchors(page: Path) -> list[str]:
    return [anchor(line.lstrip("#")) for line in prose(page) if re.match(r"#+ ", line)]


def broken_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)]*)\)", "\n".join(prose(page))):
        path, _, part = target.partition("#")
        if path.startswith(("https://", "http://")):
            continue
        file = (page.parent / path).resolve() if path else page
        if not target or not file.exists() or (part and part not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    """Relative links name files that exist, and headings that these have."""
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_headings_of_a_page_differ(page: Path) -> None:
    found = anchors(page)
    assert len(set(found)) == len(found)
    assert sum(line.startswith("# ") for line in prose(page)) == 1


def test_pages_that_sources_name_are_there() -> None:
    named = set()
    for top in NAMED_IN:
        place = ROOT / top
        for file in (place,) if place.is_file() else place.rglob("*"):
            if file.suffix in {"", ".py", ".toml", ".cmake", ".h", ".j2", ".sh", ".lock"} and file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace")
                named |= set(re.findall(r"(?<![\w./-])((?:docs|benchmarks/results)/[\w/-]+\.md)", text))
    assert len(named) > 10
    assert [name for name in sorted(named - UPSTREAMS) if not (ROOT / name).is_file()] == []


def test_every_page_is_reached() -> None:
    index = ROOT / "docs" / "index.md"
    targets = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)\s#]+)", index.read_text())}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - targets == {index}
