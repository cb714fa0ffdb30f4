from xml.etree import ElementTree as ET

import pytest

from ortrim.binaries.libraries import ComponentSize, FileSize, LibrarySize
from ortrim.report.charts import FAMILIES, STYLES, family
from ortrim.report.treemap import HEIGHT, WIDTH, Tile, report_tiles, treemap

SVG = "{http://www.w3.org/2000/svg}"


def tile(label: str, value: int, *parts: Tile) -> Tile:
    """Return a tile of the first family."""
    return Tile(label=label, tip=label, value=value, style="family-runtime", parts=parts)


def drawn(*families: Tile) -> ET.Element:
    """Return a treemap's elements."""
    return ET.fromstring(treemap("a map", families))  # noqa: S314 - our own


def texts(picture: ET.Element) -> list[str]:
    """Return all labels of a picture."""
    return ["".join(element.itertext()) for element in picture.iter() if element.tag.endswith("text")]


def tips(picture: ET.Element) -> list[str]:
    """Return what the tiles say when the pointer rests on them."""
    return [element.text or "" for element in picture.iter() if element.tag.endswith("title")]


def test_tiles_say_what_they_are() -> None:
    """Every tile has a tip with its whole name, bytes and share; large ones have their names written on them."""
    files = (tile("graph", 600_000), tile("a_name_that_is_far_too_long_for_so_small_a_place_as_this_one", 2_000))
    picture = drawn(tile("family", 602_000, tile("framework", 602_000, *files)))
    assert "framework  602 kB" in texts(picture)
    assert "graph" in texts(picture)
    assert "graph\n600 kB, 99.7 %" in tips(picture)
    assert picture.get("aria-label") == "a map"
    assert picture.get("role") == "img"


def test_everything_lies_inside() -> None:
    """No tile reaches beyond the picture, and none has a negative size."""
    symbols = [tile(f"s{number}", 1 + 997 * number % 313) for number in range(300)]
    files = [tile(f"f{number}", 20 + number**3, *symbols[:number]) for number in range(60)]
    picture = drawn(tile("one", 90_000, tile("c", 80_000, *files), tile("d", 10_000)), tile("two", 5_000, *files[:3]))
    for element in picture.iter():
        if element.tag.endswith("rect"):
            x, y, width, height = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
            assert min(width, height, x, y) >= 0
            assert x + width <= WIDTH + 0.01
            assert y + height <= HEIGHT + 0.01


def test_small_tiles_are_drawn_as_one() -> None:
    """A thousand tiny files are one tile that says how many they are."""
    files = [tile("large", 1_000_000), *(tile(f"tiny{number}", 40) for number in range(1000))]
    picture = drawn(tile("family", 1_040_000, tile("framework", 1_040_000, *files)))
    assert any(tip.startswith("1000 smaller: tiny0, tiny1") for tip in tips(picture))
    assert len(tips(picture)) < 10


@pytest.mark.parametrize("values", [(), (0,), (-5,), (0, -1)])
def test_nothing_is_no_picture(values: tuple[int, ...]) -> None:
    """What has no bytes, or less in a forged report, is not drawn."""
    assert treemap("a map", [tile("x", value) for value in values]) == ""


def test_hostile_names_are_text() -> None:
    """Markup in a name stays a name, and control characters are replaced before."""
    picture = drawn(tile("f", 9, tile("<script>alert(1)</script>", 9)))
    assert not [element for element in picture.iter() if "script" in element.tag]
    assert any("<script>" in text for text in texts(picture))


def test_a_report_knows_components_and_their_largest_files() -> None:
    """The rest of a component is one tile; a report of an older version has components alone."""
    size = LibrarySize(
        file_bytes=1000,
        loadable_bytes=1000,
        compressed_bytes=10,
        components=(
            ComponentSize(component="mlas", size_bytes=700),
            ComponentSize(component="padding", size_bytes=300),
        ),
        largest_symbols=(),
        largest_files=(FileSize(name="sgemm.cpp.o", component="mlas", size_bytes=500),),
    )
    families = {family.label: family for family in report_tiles(size)}
    (mlas,) = families["kernels"].parts
    assert [(part.label, part.value) for part in mlas.parts] == [("sgemm", 500), ("all else", 200)]
    assert [part.value for part in families["tables, strings, padding"].parts[0].parts] == [300]
    assert sum(family.value for family in families.values()) == 1000


def test_every_component_has_a_family() -> None:
    """Parts of ONNX Runtime are what no table names; each family has a colour."""
    assert family("framework") == family("optimizer") == "ONNX Runtime"
    assert family("providers_xnnpack") == "kernels"
    assert family(".comment") == family("ELF headers") == "tables, strings, padding"
    assert family("code") == family("data") == "code and data together"
    assert set(STYLES) == set(FAMILIES)
