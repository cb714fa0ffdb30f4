"""What rests on upstream's insides: found in a tree of its form, and left out with a line where it is not there."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refusing
from fake_kernels import TYPED, make_kernels
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling import mechanisms
from ortrim.compiling.dead_kernels import AVX512_KERNELS, BRANCH, DEPTHWISE, FOUR_BITS, HARD_SWISH, SPARSE, WINOGRAD
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import BuildError
from sample_plans import sample_plan

CORE: Final = "onnxruntime/onnxruntime"
CONSTRUCTOR: Final = """\
this->GemmU8U8Dispatch = &U8X8Sse;
// Check if the processor supports AVX2/FMA3 features.
if (Avx2()) {
  this->GemmU8U8Dispatch = &U8U8Avx2;
  if (AvxVnni()) {
    this->GemmU8U8Dispatch = &U8S8Avx2;
  }
#if !defined(ORT_MINIMAL_BUILD)
  // Processors with AVX-512.
  if (((Cpuid7[1] & 0x10000) != 0) &&
      ((xcr0 & 0xE0) == 0xE0)) {
    this->GemmFloatKernel = FloatAvx512F;
    this->GemmDoubleKernel = DoubleAvx512F;
    this->ConvNchwFloatKernel = NchwAvx512F;
    this->PoolFloatKernel[Maximum] = PoolAvx512F;
    this->NchwcBlockSize = 16;
    if ((Cpuid7[1] & 0xC0020000) == 0xC0020000) {
      this->GemmU8S8Kernel = U8S8Avx512Core;
      this->FpQ4GemmDispatch = &Q4Avx512;
      if ((Cpuid7[2] & 0x800) != 0) {
        this->GemmU8U8Dispatch = &U8S8Avx2;
        this->GemmU8S8Kernel = U8S8Avx512Vnni;
      }
    }
  }
  if ((Cpuid7_1[3] & 0x10) != 0) {
    this->GemmU8U8Dispatch = &U8U8Avx2Vnni;
  }
#endif
}
"""
TEXTS: Final = {
    "platform.cpp": CONSTRUCTOR,
    "mlasi.h": "struct MLAS_PLATFORM {\n  int (*GemmFloatKernel)(int);\n};\n",
    "kernels.S": "FloatAvx512F NchwAvx512F PoolAvx512F U8S8Avx2 U8U8Avx2 U8S8Kernel.macro U8S8 U8U8Avx2Vnni",
}
WHOLE: Final = {
    f"{CORE}/core/graph/graph.cc": mechanisms.WEIGHTS,
    f"{CORE}/core/providers/cpu/nn/lstm.cc": "ONNX_CPU_OPERATOR_KERNEL(LSTM, 7, float, LSTM);\n",
    mechanisms.MLAS_HEADER: "MlasConv(\n    const MLAS_CONV_PARAMETERS* Parameters,\n    const float* Input,\n"
    "    const float* Filter,\n    const float* Bias,\n    float* WorkingBuffer,\n    float* Output,\n"
    "    MLAS_THREADPOOL* ThreadPool\n    );\n",
    **{
        name: "\n".join(words)
        for wanted in (
            *(mechanisms.ARENA, *mechanisms.LOADING.values(), *mechanisms.ROWS.values()),
            *(mechanisms.ARENA, mechanisms.PRODUCT, mechanisms.LSTM, mechanisms.GRU),
            *(mechanisms.TILED, mechanisms.FILTERED, mechanisms.SWISHED),
        )
        for name, words in wanted.items()
    },
    mechanisms.UPSTREAM: "static constexpr OrtApi ort_api_1 = {\n    &OrtApis::Run,\n};\n",
    **{
        f"{mechanisms.COMMON}/{name}": "".join(f"#define {macro} \\\n" for macro in macros)
        for name, macros in mechanisms.MACROS.items()
    },
    f"{mechanisms.COMMON}/make_string.h": "inline std::string MakeString(const Args&... args) {\n",
    f"{mechanisms.COMMON}/status.h": "class [[nodiscard]] Status {\n",
    **{
        f"{CORE}/{name}{'' if name.endswith('.cc') else '.cc'}": ""
        for name in mechanisms.HOT_SOURCES
        if not name.endswith("/")
    },
    **{f"protobuf/src/google/protobuf/{name}.cc": "" for name in ("parse_context", "message_lite", "io/coded_stream")},
}
"""What a tree has beside kernels with type control."""


def job_of(*, cpu: str = "", nchwc: bool = False) -> BuildJob:
    job = sample_plan().targets[0].job
    options = replace(job.build_options, dead_kernel_elimination=True, avx512_kernels=True, hot="-O2", cold="-Oz")
    options = replace(options, libcxx_no_exceptions=True)
    return replace(
        job,
        build_options=options,
        cpu=cpu,
        nchwc_block_size=16 if nchwc else 0,
        without_types=(SPARSE,),
        hot_operators=("ai.onnx:LSTM",),
    )


@pytest.fixture
def tree(tmp_path: Path) -> JobPaths:
    paths = make_kernels(tmp_path)
    for name, text in WHOLE.items():
        file = paths.sources / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return paths


def left_out(tree: JobPaths, texts: dict[str, str] = TEXTS, cpu: str = "x86-64-v3") -> tuple[str, ...]:
    found = mechanisms.find_mechanisms(tree, job_of(cpu=cpu), texts)
    assert all(any(name in line for line in found.remarks) for name in found.left_out)
    return found.left_out


def test_a_tree_that_has_everything_loses_nothing(tree: JobPaths) -> None:
    found = mechanisms.find_mechanisms(tree, job_of(nchwc=True), TEXTS)
    assert found == mechanisms.Mechanisms(assignments=found.assignments, api_table=found.api_table)
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ([f"{CORE}/core/graph/graph.cc"], mechanisms.REFUSE_SPARSE),
        ([f"{CORE}/core/providers/cpu/nn/lstm.cc"], mechanisms.HOT_OPERATORS),
        *(([name], mechanisms.DIRECT) for name in sorted(mechanisms.FILTERED)),
        ([mechanisms.MLAS_HEADER], mechanisms.DIRECT),
        (["protobuf/src/google/protobuf/io/coded_stream.cc"], mechanisms.MESSAGES),
        (["protobuf/src/google/protobuf/message_lite.cc"], mechanisms.MESSAGES),
        (list(TYPED), mechanisms.TYPES),
        ([f"{mechanisms.COMMON}/common.h"], mechanisms.ERRORS),
        ([f"{mechanisms.COMMON}/logging/macros.h"], mechanisms.ERRORS),
        ([f"{CORE}/core/framework/sequential_executor.cc"], "core/framework/sequential_executor"),
        *(([name], mechanisms.ROOM_ARENA) for name in mechanisms.ARENA),
        *(([name], header) for header, words in {**mechanisms.LOADING, **mechanisms.ROWS}.items() for name in words),
        *(([name], mechanisms.ONE_ROW_LSTM) for name in sorted(mechanisms.LSTM.keys() - mechanisms.ADDED)),
        *(([name], mechanisms.ONE_ROW_GRU) for name in sorted(mechanisms.GRU.keys() - mechanisms.ADDED)),
        ([mechanisms.UPSTREAM], mechanisms.KEPT_BLOCKS),
    ],
)
def test_what_does_not_fit_a_tree_is_left_out_of_it(tree: JobPaths, files: list[str], name: str) -> None:
    for file in files:
        (tree.sources / file).write_text("void other();\n")
    if name not in {mechanisms.MESSAGES, "core/framework/sequential_executor"}:
        assert left_out(tree) == (name,)
    for file in files:
        (tree.sources / file).unlink()
    assert left_out(tree) == (name,)


def test_a_library_as_upstreams_own_recipe_makes_it_misses_nothing_of_loading(tree: JobPaths) -> None:
    for file in (name for words in mechanisms.LOADING.values() for name in words):
        (tree.sources / file).unlink()
    found = mechanisms.find_mechanisms(tree, replace(job_of(), profile="upstream"), TEXTS)
    assert not mechanisms.LOADING.keys() & set(found.left_out)


def test_the_argument_that_newer_versions_have_after_the_threads_stands_in_no_ones_way(tree: JobPaths) -> None:
    threads = "concurrency::ThreadPool* thread_pool"
    for name in mechanisms.LSTM:
        file = tree.sources / name
        file.write_text(file.read_text().replace(threads, f"{threads}{mechanisms.SELECTOR}"))
    assert mechanisms.SELECTOR in file.read_text()
    assert left_out(tree) == ()


@pytest.mark.parametrize("added", ["", ", use_bf16", ", &mlas_backend_kernel_selector_config_, use_bf16"])
def test_winograds_products_do_without_what_newer_versions_say_of_other_kernels(tree: JobPaths, added: str) -> None:
    job = replace(job_of(), target=TARGETS["linux-arm64"], nchwc_block_size=8, tiled=True)
    threads = "context->GetOperatorThreadPool()"
    source = tree.sources / mechanisms.CORE / "contrib_ops/cpu/nchwc_ops.cc"
    assert threads in source.read_text()
    source.write_text(source.read_text().rpartition(threads)[0] + f"{threads}{added});\n")
    laid_out = replace(job, operator_config="com.microsoft.nchwc;1;Conv\n")
    assert WINOGRAD not in mechanisms.find_mechanisms(tree, laid_out, TEXTS).left_out


@pytest.mark.parametrize("file", mechanisms.ADDED)
def test_lstm_and_gru_go_with_what_both_call(tree: JobPaths, file: str) -> None:
    (tree.sources / file).write_text("void other();\n")
    assert left_out(tree) == (mechanisms.ONE_ROW_LSTM, mechanisms.ONE_ROW_GRU)


@pytest.mark.parametrize("file", mechanisms.PRODUCT)
def test_what_has_one_row_goes_with_the_product_that_it_calls(tree: JobPaths, file: str) -> None:
    (tree.sources / file).write_text("void other();\n")
    assert left_out(tree) == (mechanisms.ONE_ROW, mechanisms.ONE_ROW_LSTM, mechanisms.ONE_ROW_GRU)


@pytest.mark.parametrize("file", mechanisms.TILED)
def test_winograds_products_are_left_out_where_they_are_missed(tree: JobPaths, file: str) -> None:
    """By builds for ARM64 and x64 with convolutions in NCHWc layout that take them."""
    job = replace(job_of(), nchwc_block_size=8, operator_config="com.microsoft.nchwc;1;Conv\n")
    tiled = [replace(job, target=TARGETS[name], tiled=True) for name in ("linux-arm64", "linux-x64")]
    assert not any(WINOGRAD in mechanisms.find_mechanisms(tree, each, TEXTS).left_out for each in tiled)
    (tree.sources / file).write_text("void other();\n")
    assert all(WINOGRAD in mechanisms.find_mechanisms(tree, each, TEXTS).left_out for each in tiled)
    assert WINOGRAD not in mechanisms.find_mechanisms(tree, job, TEXTS).left_out


@pytest.mark.parametrize("file", mechanisms.SWISHED)
def test_hard_swish_is_left_out_where_one_of_its_operators_is_missed(tree: JobPaths, file: str) -> None:
    operators = "ai.onnx;13;HardSigmoid,Mul\ncom.microsoft.nchwc;1;Conv\n"
    job = replace(job_of(), nchwc_block_size=8, operator_config=operators)
    assert HARD_SWISH not in mechanisms.find_mechanisms(tree, job, TEXTS).left_out
    (tree.sources / file).write_text("void other();\n")
    assert HARD_SWISH in mechanisms.find_mechanisms(tree, job, TEXTS).left_out
    alone = replace(job, operator_config=operators.replace("HardSigmoid,", ""))
    assert HARD_SWISH not in mechanisms.find_mechanisms(tree, alone, TEXTS).left_out


@pytest.mark.parametrize("level", ["-Oz", "-Os", "-O2", "-O3"])
def test_what_one_level_compiles_is_looked_for_where_its_headers_are_included(
    tree: JobPaths, level: Literal["-Oz", "-Os", "-O2", "-O3"]
) -> None:
    """As `units.cmake` includes them: for speed, whether or not all else is compiled for size."""
    shutil.rmtree(tree.sources / CORE)
    operators = "ai.onnx;13;HardSigmoid,Mul\ncom.microsoft;1;MatMulNBits\ncom.microsoft.nchwc;1;Conv\n"
    job = replace(job_of(), target=TARGETS["linux-arm64"], nchwc_block_size=8, tiled=True, operator_config=operators)
    one = replace(job, build_options=replace(job.build_options, hot=level, cold=level))
    headers = {*mechanisms.ROWS, mechanisms.DIRECT, mechanisms.ONE_ROW, mechanisms.ONE_ROW_LSTM}
    headers |= {mechanisms.ONE_ROW_GRU, WINOGRAD, HARD_SWISH, FOUR_BITS}
    missed = set(mechanisms.find_mechanisms(tree, one, TEXTS).left_out)
    assert missed & headers == (headers if level in {"-O2", "-O3"} else set())
    assert not missed.intersection(mechanisms.HOT_SOURCES)


@pytest.mark.parametrize("hot", ["-O2", "-Oz"])
@pytest.mark.parametrize("file", [*mechanisms.FILTERED, mechanisms.MLAS_HEADER])
def test_kernels_for_one_filter_a_channel_are_left_out_where_they_are_missed(
    tree: JobPaths, file: str, hot: Literal["-O2", "-Oz"]
) -> None:
    job = replace(job_of(), build_options=replace(job_of().build_options, hot=hot))
    assert DEPTHWISE not in mechanisms.find_mechanisms(tree, replace(job, depthwise=True), TEXTS).left_out
    (tree.sources / file).write_text("void other();\n")
    assert DEPTHWISE in mechanisms.find_mechanisms(tree, replace(job, depthwise=True), TEXTS).left_out
    assert DEPTHWISE not in mechanisms.find_mechanisms(tree, job, TEXTS).left_out


@pytest.mark.parametrize("macro", [f"{name} {macro}" for name, macros in mechanisms.MACROS.items() for macro in macros])
def test_a_macro_of_another_form_leaves_errors_to_upstream(tree: JobPaths, macro: str) -> None:
    name, _, form = macro.partition(" ")
    header = tree.sources / mechanisms.COMMON / name
    header.write_text(header.read_text().replace(f"#define {form}", f"#define {form.replace(')', ', more)')}"))
    assert left_out(tree) == (mechanisms.ERRORS,)


def test_a_function_that_makes_texts_and_that_ours_lack_leaves_errors_to_upstream(tree: JobPaths) -> None:
    header = tree.sources / mechanisms.COMMON / "make_string.h"
    header.write_text(header.read_text() + "inline std::string MakeStringLite(std::string_view text);\n")
    assert left_out(tree) == (mechanisms.ERRORS,)


def test_kernels_are_left_in_where_their_table_is_not_found(tree: JobPaths) -> None:
    """Those for lesser processors, too, where upstream chooses in another way."""
    assert left_out(tree, TEXTS | {"mlasi.h": "class MlasPlatform;"}) == (mechanisms.TABLE,)
    assert left_out(tree, TEXTS | {"platform.cpp": CONSTRUCTOR.replace(BRANCH, "")}) == (BRANCH,)
    assert left_out(tree, TEXTS | {"platform.cpp": CONSTRUCTOR.replace(BRANCH, "")}, cpu="") == ()


@pytest.mark.parametrize("gone", ["0x10000", "0xC0020000", "0x800", "Cpuid7_1[3]", "GemmFloatKernel", "Avx512Core"])
def test_half_of_the_avx512_kernels_are_none(tree: JobPaths, gone: str) -> None:
    """A constructor that asks otherwise, fills other entries, or takes kernels that are nowhere defined."""
    texts = TEXTS | {"platform.cpp": CONSTRUCTOR.replace(gone, "Elsewhere")}
    assert AVX512_KERNELS in left_out(tree, texts)


def test_models_that_need_avx512_kernels_are_not_built_without(tree: JobPaths) -> None:
    texts = TEXTS | {"platform.cpp": CONSTRUCTOR.replace("NchwcBlockSize = 16", "Blocks()")}
    assert mechanisms.find_mechanisms(tree, job_of(), texts).left_out == ()
    texts = TEXTS | {"platform.cpp": CONSTRUCTOR.replace("((xcr0 & 0xE0) == 0xE0)", "Saved()")}
    with pytest.raises(BuildError, match="NCHWc") as refused:
        mechanisms.find_mechanisms(tree, job_of(nchwc=True), texts)
    assert refused.value.code == "nchwc-kernels-missing"


def assigned(text: str) -> dict[str, dict[str, str]]:
    functions = re.findall(r"static void (\w+)\(MLAS_PLATFORM& table\) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    return {name: dict(re.findall(r"table\.(\S+) = (\S+);", body)) for name, body in functions}


def test_entries_are_filled_as_upstream_fills_them() -> None:
    """Those that are quicker, by branch, and those of the layout apart from them."""
    quicker, nchwc = map(assigned, mechanisms.avx512_assignments(TEXTS))
    assert quicker == {
        "UseAvx512F": {"GemmFloatKernel": "FloatAvx512F"},
        "UseAvx512Core": {"GemmU8S8Kernel": "U8S8Avx512Core", "GemmU8U8Dispatch": "&U8U8Avx2"},
        "UseAvx512Vnni": {"GemmU8U8Dispatch": "&U8S8Avx2", "GemmU8S8Kernel": "U8S8Avx512Vnni"},
        "UseAvx2VnniInt8": {"GemmU8U8Dispatch": "&U8U8Avx2Vnni"},
    }
    wide = {"ConvNchwFloatKernel": "NchwAvx512F", "PoolFloatKernel[Maximum]": "PoolAvx512F", "NchwcBlockSize": "16"}
    assert nchwc == {"UseAvx512Nchwc": wide}


@pytest.mark.parametrize("entry", ["ErfKernelRoutine", "GeluErfKernelRoutine", "SiluKernelRoutine"])
def test_activations_have_the_kernels_of_later_versions(entry: str) -> None:
    """A quantized transformer took 1.14 of the time of the wheel of 1.30.0 without Erf's, 1.10 with it."""
    wide = CONSTRUCTOR.replace("= FloatAvx512F;", f"= FloatAvx512F; this->{entry} = ErfAvx512F;")
    quicker = mechanisms.avx512_assignments(TEXTS | {"platform.cpp": wide, "erf.cpp": "void ErfAvx512F() {"})[0]
    assert assigned(quicker)["UseAvx512F"] == {"GemmFloatKernel": "FloatAvx512F", entry: "ErfAvx512F"}


def test_products_of_few_bits_have_their_kernels_where_a_model_has_them(tree: JobPaths) -> None:
    """They are in large sources, which no other library compiles."""
    wide = CONSTRUCTOR.replace("&Q4Avx512;", "&Q4Avx512;\n      this->QNBitGemmDispatch = &BitsAvx512;")
    texts = TEXTS | {"platform.cpp": wide, "bits.cpp": "const MLAS_QNBIT_GEMM_DISPATCH BitsAvx512 = [] {"}
    entry, config = "table.QNBitGemmDispatch = &BitsAvx512;", "com.microsoft;1;MatMulNBits\n"
    assert entry in mechanisms.find_mechanisms(tree, replace(job_of(), operator_config=config), texts).assignments
    assert entry not in mechanisms.find_mechanisms(tree, job_of(), texts).assignments


def test_products_of_four_bits_are_upstreams_where_its_kernel_is_another(tree: JobPaths) -> None:
    """Nothing is said of them for models without such products, for x64, or where kernels are compiled for size."""
    job = replace(job_of(), target=TARGETS["linux-arm64"], operator_config="com.microsoft;1;MatMulNBits\n")
    assert FOUR_BITS in mechanisms.find_mechanisms(tree, job, TEXTS).left_out
    small = replace(job, build_options=replace(job.build_options, hot=job.build_options.cold))
    for other in (small, replace(job, target=job_of().target), replace(job, operator_config=job_of().operator_config)):
        assert FOUR_BITS not in mechanisms.find_mechanisms(tree, other, TEXTS).left_out
    for name, words in mechanisms.MULTIPLIED.items():
        (tree.sources / name).parent.mkdir(parents=True, exist_ok=True)
        (tree.sources / name).write_text("\n".join(words).replace(", ", ",\n    "))
    assert FOUR_BITS not in mechanisms.find_mechanisms(tree, job, TEXTS).left_out


def test_products_that_no_model_has_go_where_they_are_understood(tree: JobPaths) -> None:
    header = "struct MLAS_QNBIT_GEMM_DISPATCH {\n  Kernel_Fn* SQ8BitKernel = nullptr;\n};\n"
    job = replace(job_of(), few_bits=((4, 4),))
    found = mechanisms.find_mechanisms(tree, job, TEXTS | {mechanisms.FEW_BITS_HEADER: header})
    assert (found.unused_functions, found.left_out) == (("SQ8BitKernel",), ())
    assert mechanisms.find_mechanisms(tree, job, TEXTS).left_out == (mechanisms.FEW_BITS,)


def test_unsigned_weights_never_meet_a_kernel_that_saturates() -> None:
    """With AVX-VNNI and AVX-512 without VNNI upstream's table for signed weights would have such a kernel."""
    text = CONSTRUCTOR.replace("U8S8Avx512Core;", "U8S8Avx512Core; this->GemmU8U8Dispatch = &U8S8Avx2;")
    quicker = assigned(mechanisms.avx512_assignments(TEXTS | {"platform.cpp": text})[0])
    assert quicker["UseAvx512Core"]["GemmU8U8Dispatch"] == "&U8U8Avx2"
    own = CONSTRUCTOR.replace("this->GemmU8U8Dispatch = &U8U8Avx2;", "")
    quicker = assigned(
        mechanisms.avx512_assignments(TEXTS | {"platform.cpp": own.replace("&U8U8Avx2Vnni", "&Other")})[0]
    )
    assert "GemmU8U8Dispatch" not in quicker.get("UseAvx512Core", {})


@given(st.text(alphabet="this->GemmU8=Sse;{}[]&(\n if#/*", max_size=80))
def test_any_constructor_is_read(text: str) -> None:
    assert mechanisms.avx512_assignments({"platform.cpp": text}) == ("", "")
    assert len(mechanisms.avx512_assignments(TEXTS | {"platform.cpp": text + CONSTRUCTOR + text})) == 2


SOURCE = """
// static constexpr OrtApi ort_api_0 = { &OrtApis::CreateStatus, };
static constexpr OrtApiBase ort_api_base = {
    &OrtApis::GetApi};

static constexpr OrtApi ort_api_1_to_21 = {
    // NOTE: the order &OrtApis::MustNotChange, ever
    &OrtApis::CreateStatus,
    &OrtApis::GetErrorCode,
    &OrtApis::GetErrorMessage,
    &OrtApis::Run,
    &OrtApis::CreateIoBinding, /* &OrtApis::Old, */
#if !defined(ORT_MINIMAL_BUILD)
    &OrtApis::EnableProfiling,
#endif
    &OrtApis::SessionOptionsAppendExecutionProvider,
    &OrtApis::ReleaseStatus,
    // End of Version 1
};
static_assert(offsetof(OrtApi, Run) / sizeof(void*) == 3);
"""


def refused(text: str) -> list[str]:
    return [line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("ORTRIM_REFUSED")]


def test_inference_keeps_what_runs_models_in_upstreams_order() -> None:
    """Programs find a function by its place, so that upstream's order and its conditions stay."""
    assert mechanisms.api_table(SOURCE, "inference", providers=False).splitlines() == [
        "ORTRIM_KEPT(CreateStatus)",
        "ORTRIM_KEPT(GetErrorCode)",
        "ORTRIM_KEPT(GetErrorMessage)",
        "ORTRIM_KEPT(Run)",
        "ORTRIM_REFUSED(CreateIoBinding)",
        "#if !defined(ORT_MINIMAL_BUILD)",
        "ORTRIM_REFUSED(EnableProfiling)",
        "#endif",
        "ORTRIM_REFUSED(SessionOptionsAppendExecutionProvider)",
        "ORTRIM_KEPT(ReleaseStatus)",
    ]


def test_names_are_kept_beside_what_tells_of_errors() -> None:
    assert refused(mechanisms.api_table(SOURCE, ("CreateIoBinding",), providers=False)) == [
        "Run",
        "EnableProfiling",
        "SessionOptionsAppendExecutionProvider",
    ]


def test_names_add_to_inference() -> None:
    assert "CreateIoBinding" not in refused(
        mechanisms.api_table(SOURCE, ("inference", "CreateIoBinding"), providers=False)
    )
    assert "Run" not in refused(mechanisms.api_table(SOURCE, ("inference", "CreateIoBinding"), providers=False))


def test_all_refuses_nothing_that_could_succeed() -> None:
    """A minimal build makes no graph, device or plugin's node: it refuses to, and nobody has one to ask about."""
    assert refused(mechanisms.api_table(SOURCE, "all", providers=False)) == []
    asked = ["Graph_GetName", "Node_GetId", "GetEpApi", "EpDevice_EpName", "CreateExternalInitializerInfo"]
    asked += ["GetEpDevices", "SessionGetEpDeviceForInputs", "CopyTensors", "GetExperimentalFunction"]
    entries = "".join(f"    &OrtApis::{name},\n" for name in [*asked, "GetCompileApi", "ReleaseGraph"])
    newer = SOURCE.replace("    // End of Version 1\n", entries)
    assert refused(mechanisms.api_table(newer, "all", providers=False)) == asked


def test_a_library_with_providers_can_be_told_of_them() -> None:
    """An execution provider that nobody could name would be of no use."""
    assert "SessionOptionsAppendExecutionProvider" not in refused(
        mechanisms.api_table(SOURCE, "inference", providers=True)
    )


def test_a_function_that_is_not_there_is_named_with_one_like_it() -> None:
    caught = refusing.refused(
        BuildError, mechanisms.api_table, SOURCE, ("inference", "CreateIOBinding"), providers=False
    )
    assert caught.code == "unknown-c-function"
    assert "CreateIOBinding" in caught.what
    assert caught.hint == "did you mean CreateIoBinding?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        SOURCE.replace("static constexpr OrtApi ort_api_1", "static const OrtApi ort_api_1"),
        SOURCE + SOURCE.replace("1_to_21", "22"),
        SOURCE.replace("&OrtApis::Run,", "nullptr,"),
        SOURCE.replace("&OrtApis::Run,", "&Other::Run,"),
    ],
    ids=["no source", "no such table", "two tables", "an entry without a function", "an entry of another kind"],
)
def test_a_table_that_cannot_be_read_is_none(text: str) -> None:
    """Where another version writes its table in another way, all functions stay."""
    assert mechanisms.api_table(text, "inference", providers=False) == ""


def test_what_a_function_makes_can_be_released() -> None:
    made = {name.removeprefix("Release") for name in mechanisms.INFERENCE if name.startswith("Release")}
    assert made >= {"Env", "Session", "SessionOptions", "RunOptions", "Value", "MemoryInfo", "TypeInfo", "Status"}
