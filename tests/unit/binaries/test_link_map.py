import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.files import shipped_folder
from ortrim.binaries.elf import ComponentSize, SymbolSize
from ortrim.binaries.link_map import MapInput, MapSymbol, parse_link_map, read_link_map
from ortrim.errors import BinaryError
from ortrim.size.accounting import component_of, component_of_symbol, section_kind
from ortrim.size.library import library_size
from refusing import refused

DATA = Path(__file__).with_name("data")
HEADER = "             VMA              LMA     Size Align Out     In      Symbol\n"


def test_small_map_is_read_in_full() -> None:
    outputs = {output.name: output for output in read_link_map(DATA / "tiny.map")}
    assert outputs[".text"].size_bytes == 0xF0
    assert outputs[".text"].inputs[1] == MapInput(
        file="libonnxruntime_mlas.a(mlas.o)",
        section=".text.kernel",
        address=0x15B3,
        size_bytes=0xAD,
        symbols=(MapSymbol(name="kernel", address=0x15B3, size_bytes=0xAD),),
    )
    assert outputs[".bss"].inputs[0].symbols[0].name == "state"


def test_real_map_of_the_runtime_is_attributed_to_its_components() -> None:
    outputs = read_link_map(DATA / "onnxruntime-excerpt.map")
    inputs = [inner for output in outputs for inner in output.inputs]
    components = {component_of(inner.file, inner.section) for inner in inputs}
    assert components >= {
        "session", "framework", "graph", "mlas", "providers", "common", "flatbuffers", "onnx",
        "protobuf", "abseil", "libc++", "libc++abi", "libunwind", "compiler-rt", "string literals", "relocation tables",
    }  # fmt: skip
    other = {inner.file for inner in inputs if component_of(inner.file, inner.section) == "other"}
    assert other <= {"CMakeFiles/onnxruntime.dir/generated_source.c.o", "demangle.o", "<internal>"}


@pytest.mark.parametrize(
    ("file", "section", "component"),
    [
        ("libonnxruntime_providers_xnnpack.a(a.o)", ".text", "providers_xnnpack"),
        (
            "_deps/googlexnnpack-build/libmicrokernels-prod.a(f32-gemm-4x8.c.o)",
            ".text",
            "xnnpack",
        ),
        ("CMakeFiles/onnxruntime_mlas.dir/x/sgemm.cpp.o", ".text", "mlas"),
        ("/home/a (b)/cache/libc++.a(/home/a (b)/locale.o)", ".text", "libc++"),
        ("libortrim_cxx.a(locale.cpp.o)", ".text", "libc++"),
        ("/usr/lib/gcc/x/14/libgcc.a(x.o)", ".text", "compiler-rt"),
        ("compiler_rt.o", ".text..Lcompiler_rt.divtf3.__divtf3", "compiler-rt"),
        ("crti.o", ".init", "libc"),
        ("libc_nonshared.a(stat.o)", ".text", "libc"),
        ("libonnxruntime_session.a(onnxruntime_c_api.cc.o)", ".text", "c api"),
        ("CMakeFiles/onnxruntime.dir/a folder/hooks/avx512_kernels.cc.o", ".text", "mlas"),
        ("CMakeFiles/onnxruntime.dir/hooks/avx512_nchwc.cc.o", ".text", "mlas"),
        ("CMakeFiles/onnxruntime.dir/a folder/hooks/unreached.c.o", ".rodata", "mlas"),
        ("x/libonnxruntime_framework.a(/y/run_options.cc.o)", ".text", "c api"),
        ("libonnxruntime_providers.a(run_options.cc.o)", ".text", "providers"),
        ("<internal>", ".got.plt", "dynamic linking"),
        ("<internal>", ".ARM.exidx", "unwind tables"),
        ("<internal>", ".shstrtab", "symbol table"),
        ("<internal>", ".made.up", "other"),
    ],
)
def test_component_of_an_input_section(file: str, section: str, component: str) -> None:
    """Archives, objects of a CMake target and what the linker made are each told by their name."""
    assert component_of(file, section) == component


def test_every_source_of_our_own_belongs_to_a_component() -> None:
    sources = [path.name for path in sorted(shipped_folder("cmake").glob("*.c*")) if path.suffix in {".c", ".cc"}]
    assert {"kept_blocks.cc", "unreached.c"} < set(sources)
    files = [f"CMakeFiles/onnxruntime.dir/hooks/{name}.o" for name in sources]
    assert [file for file in files if component_of(file, ".text") == "other"] == []


@pytest.mark.parametrize(
    ("symbol", "component"),
    [
        ("onnxruntime::Graph::Resolve()", "onnxruntime"),
        ("std::__1::vector<onnxruntime::NodeArg*>::push_back(onnxruntime::NodeArg*)", "onnxruntime"),
        ("onnx::AttributeProto::Clear()", "onnx"),
        ("google::protobuf::Arena::Init()", "protobuf"),
        ("onnxruntime::fbs::Read(flatbuffers::Table const*)", "flatbuffers"),
        ("MlasGemmBatch(CBLAS_TRANSPOSE)", "mlas"),
        ("OrtApis::Run(OrtSession*)", "c api"),
        ("absl::container_internal::kEmpty", "abseil"),
        ("std::__1::locale::classic()", "libc++"),
        ("std::string::append(char const*)", "C++ library"),
        ("__cxa_throw", "libc++abi"),
        ("_Unwind_Resume", "libunwind"),
        ("memcpy", "other"),
        ("", "other"),
    ],
)
def test_component_of_a_symbol(symbol: str, component: str) -> None:
    """Without an object file the namespace tells; the C++ library's templates belong to what they were made for."""
    assert component_of_symbol(symbol) == component


def test_section_without_inputs_is_named_by_its_kind() -> None:
    """Tables that a linker does not list by input are still said to be what they are."""
    assert section_kind(".relr.dyn") == "relocation tables"
    assert section_kind(".strange") == "other"


def test_text_before_the_map_is_passed_over() -> None:
    row = "             200              200       78     8 .dynsym\n"
    assert [output.name for output in parse_link_map("warning: a b c\n" + row + HEADER + row)] == [".dynsym"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\0\0", HEADER.encode(), b"Archive member included\n.text 0x1 0x2\n"])
def test_other_files_are_not_link_maps(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "library.map"
    path.write_bytes(content)
    caught = refused(BinaryError, read_link_map, path)
    assert caught.code == "not-a-link-map"


def test_missing_map_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BinaryError, match="cannot be read") as caught:
        read_link_map(tmp_path / "absent.map")
    assert caught.value.code == "link-map-missing"


@given(st.text(alphabet="0123456789abcdef :()<>.\n\tVMALSizeAlignOutInSymbol", max_size=400))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    for output in parse_link_map(HEADER + text):
        assert output.size_bytes >= 0
        assert all(inner.size_bytes >= 0 for inner in output.inputs)


TINY = DATA / "tiny.so"
MAP = DATA / "tiny.map"


def rewritten_map(tmp_path: Path, old: str, new: str) -> Path:
    text = MAP.read_text()
    assert old in text
    path = tmp_path / "other.map"
    path.write_text(text.replace(old, new))
    return path


def test_components_sum_to_the_loadable_bytes() -> None:
    size = library_size(TINY, MAP)
    by_name = {component.component: component.size_bytes for component in size.components}
    assert sum(by_name.values()) == size.loadable_bytes
    assert by_name["mlas"] == 0x140 + 0xAD + 0x18
    assert by_name["session"] == 0x43 + 0x12C
    assert by_name["padding"] == 0x160 - 0x1B - 0x140
    assert set(by_name) == {
        "mlas", "session", "padding", "relocation tables", "dynamic symbols", "dynamic linking", "string literals",
    }  # fmt: skip


def test_padding_for_relro_and_sections_out_of_memory_are_not_counted() -> None:
    """As in upstream's size check `.relro_padding` is left out; `.comment` and `.shstrtab` are never loaded."""
    by_name = {component.component: component.size_bytes for component in library_size(TINY, None).components}
    assert by_name[".text"] == 0xF0
    assert by_name[".bss"] == 0x12C
    assert not {".relro_padding", ".comment", ".shstrtab", ""} & set(by_name)


def test_without_a_map_components_are_sections() -> None:
    mapped, plain = library_size(TINY, MAP), library_size(TINY, None)
    assert plain.loadable_bytes == mapped.loadable_bytes == sum(each.size_bytes for each in plain.components)
    assert plain.largest_symbols == ()


def test_largest_come_first() -> None:
    size = library_size(TINY, MAP)
    assert [each.size_bytes for each in size.components] == sorted(
        (each.size_bytes for each in size.components), reverse=True
    )
    assert size.components[0] == ComponentSize(component="mlas", size_bytes=517)
    assert size.largest_symbols[:3] == (
        SymbolSize(name=".dynamic", component="dynamic linking", size_bytes=384),
        SymbolSize(name="table", component="mlas", size_bytes=320),
        SymbolSize(name="state", component="session", size_bytes=300),
    )


def test_object_files_have_their_share_of_a_component() -> None:
    """The largest come first, without archive and folder; the linker's own tables are in none."""
    files = library_size(TINY, MAP).largest_files
    assert [(each.name, each.component, each.size_bytes) for each in files] == [
        ("mlas.o", "mlas", 517),
        ("session.o", "session", 0x43 + 0x12C),
    ]
    assert library_size(TINY, None).largest_files == ()


def test_file_and_compressed_bytes() -> None:
    size = library_size(TINY, None)
    assert size.file_bytes == TINY.stat().st_size
    assert len(gzip.compress(b"", 9)) < size.compressed_bytes < size.file_bytes
    assert size == library_size(TINY, None)


def test_folded_functions_count_once(tmp_path: Path) -> None:
    line = "            15b3             15b3       ad     1                 kernel\n"
    twice = rewritten_map(tmp_path, line, line + line.replace("kernel", "double"))
    names = [symbol.name for symbol in library_size(TINY, twice).largest_symbols]
    assert len({"kernel", "double"} & set(names)) == 1


def test_assembly_stands_as_a_section_without_folders(tmp_path: Path) -> None:
    row = "             430              430      140     1                 table\n"
    unsized = rewritten_map(tmp_path, row, row.replace("140", "  0"))
    unsized.write_text(
        unsized.read_text().replace("libonnxruntime_mlas.a(", "/home/me/libonnxruntime_mlas.a(/home/me/")
    )
    (symbol,) = (each for each in library_size(TINY, unsized).largest_symbols if "table" in each.name)
    assert symbol == SymbolSize(name="mlas.o: .rodata.table", component="mlas", size_bytes=320)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f0     1 .text", "f1     1 .text"),
        (" .text\n", " .tixt\n"),
        ("ad     1         libonnx", "adad     1         libonnx"),
        ("12c    16 .bss", "ffffffffffff    16 .bss"),
    ],
)
def test_map_of_another_link_is_refused(tmp_path: Path, old: str, new: str) -> None:
    caught = refused(BinaryError, library_size, TINY, rewritten_map(tmp_path, old, new))
    assert caught.code == "link-map-mismatch"
    assert "build again" in caught.hint


def test_missing_map_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    caught = refused(BinaryError, library_size, TINY, tmp_path / "absent.map")
    assert caught.code == "link-map-missing"
