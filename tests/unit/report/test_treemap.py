from ortrim.binaries.elf import ComponentSize, LibrarySize, SymbolSize
from ortrim.report.charts import FAMILIES, STYLES, Tile, family, merged, report_tiles


def tile(label: str, value: int) -> Tile:
    return Tile(label=label, tip=label, value=value, style="family-runtime")


def test_small_tiles_are_drawn_as_one() -> None:
    """A thousand tiny files are one tile that says how many they are, and no byte is lost."""
    found = merged([*(tile(f"tiny{number}", 40) for number in range(1000)), tile("large", 1_000_000)], 0.01)
    assert [(each.label, each.value) for each in found] == [("large", 1_000_000), ("1000 smaller", 40_000)]
    assert found[1].tip == "1000 smaller: tiny0, tiny1, tiny2, tiny3, ..."


def test_a_single_small_tile_keeps_its_name() -> None:
    assert [each.label for each in merged([tile("tiny", 1), tile("large", 999)], 0.01)] == ["large", "tiny"]


def test_nothing_is_no_tile() -> None:
    assert merged([tile("x", 0), tile("y", -5)], 0.5) == ()


def test_a_report_knows_components_and_their_largest_files() -> None:
    size = LibrarySize(
        file_bytes=1000,
        loadable_bytes=1000,
        compressed_bytes=10,
        components=(
            ComponentSize(component="mlas", size_bytes=700),
            ComponentSize(component="padding", size_bytes=300),
        ),
        largest_symbols=(),
        largest_files=(SymbolSize(name="sgemm.cpp.o", component="mlas", size_bytes=500),),
    )
    families = {family.label: family for family in report_tiles(size)}
    (mlas,) = families["kernels"].parts
    assert [(part.label, part.value) for part in mlas.parts] == [("sgemm", 500), ("all else", 200)]
    assert [part.value for part in families["tables, strings, padding"].parts[0].parts] == [300]
    assert list(families) == ["kernels", "tables, strings, padding"]
    assert sum(family.value for family in families.values()) == 1000


def test_every_component_has_a_family() -> None:
    """Parts of ONNX Runtime are what no table names; each family has a colour."""
    assert family("framework") == family("optimizer") == "ONNX Runtime"
    assert family("providers_xnnpack") == "kernels"
    assert family(".comment") == family("ELF headers") == "tables, strings, padding"
    assert family("code") == family("data") == "code and data together"
    assert set(STYLES) == set(FAMILIES)
