from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.binaries.link_map import MapInput, MapSymbol, parse_link_map, read_link_map
from ortrim.compiling.size.accounting import component_of, component_of_symbol, section_kind
from ortrim.errors import BinaryError, ExitCode

DATA = Path(__file__).with_name("data")
HEADER = "             VMA              LMA     Size Align Out     In      Symbol\n"


def test_small_map_is_read_in_full() -> None:
    """Output sections, input sections and symbols of a whole map come out with their sizes."""
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
    """The archives of a real link each have their component; hardly anything is left to `other`."""
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
        ("CMakeFiles/onnxruntime.dir/a folder/hooks/unreached.c.o", ".rodata", "other"),
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
    """With `--print-map` the map shares its stream with other output of the compiler."""
    row = "             200              200       78     8 .dynsym\n"
    assert [output.name for output in parse_link_map("warning: a b c\n" + row + HEADER + row)] == [".dynsym"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\0\0", HEADER.encode(), b"Archive member included\n.text 0x1 0x2\n"])
def test_other_files_are_not_link_maps(tmp_path: Path, content: bytes) -> None:
    """An empty file, a library, a map without sections and GNU ld's map are refused."""
    path = tmp_path / "library.map"
    path.write_bytes(content)
    with pytest.raises(BinaryError) as caught:
        read_link_map(path)
    assert caught.value.code == "not-a-link-map"
    assert caught.value.exit_code == ExitCode.BINARY


def test_missing_map_is_reported(tmp_path: Path) -> None:
    """The diagnostic names the file that should be there."""
    with pytest.raises(BinaryError, match="cannot be read") as caught:
        read_link_map(tmp_path / "absent.map")
    assert caught.value.code == "link-map-missing"


@given(st.text(alphabet="0123456789abcdef :()<>.\n\tVMALSizeAlignOutInSymbol", max_size=400))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    """Whatever stands in a map, sizes are never negative and nothing is raised."""
    for output in parse_link_map(HEADER + text):
        assert output.size_bytes >= 0
        assert all(inner.size_bytes >= 0 for inner in output.inputs)
