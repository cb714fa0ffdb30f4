from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.analysis import size
from ortrim.base.console import Console
from ortrim.size.accounting import NO_MAP, account
from ortrim.size.library import comparable

DATA = Path(__file__).parent / "data"
HOSTILE = "<script>alert('1')</script>\x1b[2J"


def sized(name: str, *, mapped: bool = True) -> size.Sized:
    library, link_map = DATA / f"{name}.so", DATA / f"{name}.map" if mapped else None
    return size.Sized(name=name, library=library, link_map=link_map, accounting=account(library, link_map))


@pytest.fixture
def pair() -> tuple[size.Sized, size.Sized]:
    before, after = sized("fewer"), sized("folded")
    old, new = comparable(before.accounting, after.accounting)
    return replace(before, accounting=old), replace(after, accounting=new)


def shown(renderable: object, capsys: pytest.CaptureFixture[str]) -> str:
    Console(environment={"COLUMNS": "80"}).render(renderable)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_the_table_has_the_largest_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of the largest has bytes and share; the rest is one line, so that the lines sum to the file."""
    lines = shown(size.size_table(sized("folded"), "component", 2), capsys).splitlines()
    assert lines[0] == "folded: 3,616 bytes, and 400 bytes of zeros in memory"
    rows = [line.split()[:5] for line in lines if "%" in line]
    assert rows == [
        ["ELF", "headers", "1,472", "40.7", "%"],
        ["dynamic", "symbols", "1,025", "28.3", "%"],
        ["9", "smaller", "ones", "1,119", "30.9"],
    ]


def test_every_grouping_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Operators, files, symbols and sections each have their table within 80 columns."""
    wanted = {"operator": "Relu", "file": "common.cc.o", "symbol": "table", "section": ".dynstr"}
    for by, word in wanted.items():
        text = shown(size.size_table(sized("folded"), by, 99), capsys)
        assert word in text
        assert max(map(len, text.splitlines())) <= 80


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert NO_MAP in shown(size.size_table(sized("unstripped", mapped=False), "symbol", 5), capsys).replace("\n", " ")


def test_a_comparison_says_why_in_a_few_lines(
    pair: tuple[size.Sized, size.Sized], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line has the whole difference; components, operators and symbols follow with what became of them."""
    text = shown(size.difference_tables(*pair, "", 5), capsys)
    assert text.startswith("752 bytes larger (+26.3 %): 2,864 to 3,616\n")
    assert "  Add" in text
    assert "new" in text
    (providers,) = (line.split() for line in text.splitlines() if line.startswith("  providers"))
    assert providers[1:] == ["+227", "grown", "156", "to", "383"]


def test_equal_libraries_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    one = sized("folded")
    text = shown(size.difference_tables(one, one, "", 5), capsys)
    assert size.difference_headline(one, one) == "both have 3,616 bytes"
    assert text.count("nothing changed") == 3


def test_the_data_sum_to_the_file(pair: tuple[size.Sized, size.Sized]) -> None:
    """As JSON nothing is rounded or left out, unless the top was asked for."""
    for by in ("component", "operator", "file", "symbol", "section"):
        data = size.size_data(pair[1], by, None)
        assert sum(entry["size_bytes"] for entry in data["entries"]) == data["file_bytes"] == 3616
        assert len(size.size_data(pair[1], by, 1)["entries"]) == 1
        difference = size.difference_data(*pair, by, None)
        assert (
            sum(entry["difference_bytes"] for entry in difference["entries"]) == difference["difference_bytes"] == 752
        )
    folded = [entry for entry in size.size_data(pair[1], "symbol", None)["entries"] if entry["name"] == "MlasThreads"]
    assert folded[0]["folded"] == ["MlasWorkers"]


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    """The treemap and all tables are in one file without scripts or links."""
    page = size.size_page(sized("folded"))
    assert page.count('class="treemap"') == 1
    assert "sgemm" in page or "Relu" in page
    assert "default-src 'none'" in page
    assert "://" not in page
    assert "<script" not in page
    for heading in ("By component", "Kernels by operator", "Largest object files", "Largest symbols", "By section"):
        assert heading in page


def test_a_page_without_a_map_leaves_out_what_it_cannot_tell() -> None:
    page = size.size_page(sized("unstripped", mapped=False))
    assert "Kernels by operator" not in page
    assert NO_MAP in page


def test_hostile_names_are_escaped(pair: tuple[size.Sized, size.Sized]) -> None:
    """Names of files, symbols and libraries can neither be markup nor steer a terminal."""
    leaves = tuple(replace(leaf, symbol=HOSTILE, file=leaf.file and HOSTILE) for leaf in pair[1].accounting.leaves)
    ugly = replace(pair[1], name=HOSTILE, accounting=replace(pair[1].accounting, leaves=leaves))
    for page in (size.size_page(ugly), size.difference_page(pair[0], ugly)):
        assert "<script" not in page
        assert "\x1b" not in page


def test_a_page_of_two_has_what_grew(pair: tuple[size.Sized, size.Sized]) -> None:
    page = size.difference_page(*pair)
    assert "752 bytes larger" in page
    assert page.count("<svg") == 1
    assert "+227 B" in page
