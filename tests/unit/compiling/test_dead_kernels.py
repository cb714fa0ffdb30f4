"""MLAS's table of kernels, read out of sources in upstream's manner."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_tables import SOURCES
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.dead_kernels import (
    BRANCH,
    CONSTRUCTORS,
    DECLARATIONS,
    FLOAT8,
    FLOAT16,
    FLOORS,
    KINDS,
    OPTIONAL,
    SOURCE,
    SPARSE,
    KernelTable,
    LinkedObject,
    cold_kernels,
    few_bits,
    idle_kernels,
    kernel_table,
    message_methods,
    reached_kernels,
    registering_words,
    superseded_kernels,
    table_kernels,
    unused_functions,
    unused_types,
    wanted_methods,
)
from ortrim.compiling.relink import DONE, ROOM, done_text, forget_unreached, leave_out, read_script, write_script
from ortrim.compiling.workspace import LEFT_OUT, UNREACHED, JobPaths
from ortrim.models.operators import EMPTY, ModelUses, OperatorId, OperatorUse, RequiredOperators, required_operators
from sample_plans import sample_plan

TABLE = kernel_table(SOURCES)


@pytest.mark.parametrize(
    ("kernel", "users"),
    [
        ("FloatKernelSse", {"sgemm.cpp"}),
        ("FloatKernelAvx", {"sgemm.cpp"}),
        ("PoolKernel", {"snchwc.cpp"}),
        ("QuantDispatchDefault", {"qgemm.h", "qgemm.cpp", "qgemm_avx2.cpp"}),
        ("QuantDispatchAvx2", {"qgemm.h", "qgemm.cpp", "qgemm_avx2.cpp"}),
        ("_Z9DepthwiseIahEvPKT_", {"qdwconv.cpp"}),
        ("ExpKernel", {"platform.cpp", "compute.cpp"}),
    ],
)
def test_a_kernel_is_used_by_the_sources_that_use_its_entries(kernel: str, users: set[str]) -> None:
    """Entries that are arrays, that have defaults, that headers use for their includers; mangled templates, too."""
    assert TABLE.users(kernel) == frozenset(users)


def test_functions_that_are_called_for_an_entry_are_known() -> None:
    """MLAS asks one of them for its products of 4 bits: an address without code ended the first inference on ARM64."""
    assert TABLE.called == {"ChosenDispatch"}
    assert TABLE.is_called("_Z14ChosenDispatchi")
    assert not TABLE.is_called("QuantDispatchAvx2")


def test_functions_that_return_an_entry_without_kernels_are_known() -> None:
    """And those that only ask the processor, whichever way the preprocessor decides; not those that do more."""
    assert TABLE.getters == {"MlasBlockSize", "MlasHalfSupported"}
    assert TABLE.only_gets("_Z13MlasBlockSizev")
    assert TABLE.only_gets("_ZNK13MLAS_CPUIDINFO7HasHalfEv")
    assert not TABLE.only_gets("MlasPool")


@pytest.mark.parametrize("symbol", ["_Z13MlasBlockSizei", "_Z4CallIXadL_Z13MlasBlockSizevEEEiv", "13MlasBlockSize"])
def test_a_function_with_a_getters_name_inside_is_another(symbol: str) -> None:
    """It may be one of the same name that takes something and uses an entry, or one that the getter is given to."""
    assert not TABLE.only_gets(symbol)


def test_a_number_is_no_kernel() -> None:
    """As one, it would be found in every mangled name that has a part of 18 letters; nor is one that has a name."""
    assert TABLE.entries.keys().isdisjoint({"8", "BLOCK_OF_TWO"})
    assert TABLE.users("_Z18_InternalSerialize") is None


@pytest.mark.parametrize(
    "symbol", ["getauxval", "memcpy", "_ZdlPv", "FloatKernel", "_Z11FloatKernelv", "", "_Z9Depthwis"]
)
def test_what_the_constructor_merely_calls_is_no_kernel(symbol: str) -> None:
    assert TABLE.users(symbol) is None


def test_comparing_entries_is_no_use_of_a_kernel() -> None:
    """The constructor's source asks whether two entries are the same; the kernels need not be there for that."""
    assert "platform.cpp" not in (TABLE.users("QuantDispatchAvx2") or ())


def test_comparing_an_entry_with_a_kernel_is_no_use_of_either() -> None:
    """Upstream chooses another way for what one kernel is chosen for; an address of its own is enough for that."""
    assert "route.cpp" not in (TABLE.users("FloatKernelAvx") or ())
    assert "route.cpp" not in (TABLE.users("CastKernel") or ())
    assert TABLE.only_compares("route.cpp", "FloatKernelAvx")
    assert not TABLE.only_compares("route.cpp", "FloatKernelSse")
    assert not TABLE.only_compares("sgemm.cpp", "FloatKernelAvx")


@pytest.mark.parametrize(
    "use",
    [
        "GetMlasPlatform().FloatRoutine == FloatKernelAvx(1)",
        "GetMlasPlatform().FloatRoutine == FloatKernelAvx; FloatKernelAvx(1);",
        "FloatKernelAvx == Chosen(GetMlasPlatform().FloatRoutine)",
        "FloatKernelAvx(1) == GetMlasPlatform().FloatRoutine(1)",
        "1 == GetMlasPlatform().FloatRoutine(1)",
        "GetMlasPlatform().FloatRoutine(1) == FloatKernelAvx(1)",
    ],
)
def test_a_call_beside_a_comparison_is_a_use(use: str) -> None:
    table = kernel_table(SOURCES | {"route.cpp": SOURCES["route.cpp"] + f"int Other() {{ return {use}; }}"})
    named = not table.only_compares("route.cpp", "FloatKernelAvx")
    assert named or "route.cpp" in (table.users("FloatKernelAvx") or ())


@pytest.mark.parametrize("absent", [CONSTRUCTORS[0], DECLARATIONS])
def test_without_its_sources_there_is_no_table(absent: str) -> None:
    assert (
        kernel_table({name: text for name, text in SOURCES.items() if name != absent}).users("FloatKernelSse") is None
    )


@given(text=st.text(alphabet='structMLAS_PLATFORM {};=this->&x[]()\n"#include', max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert kernel_table({CONSTRUCTORS[0]: text, DECLARATIONS: f"struct MLAS_PLATFORM {{\n{text}\n}};"}) is not None


CONV = """\
#include "core/providers/cpu/nn/conv.h"
namespace onnxruntime {
ONNX_CPU_OPERATOR_VERSIONED_KERNEL(
    Conv, 1, 10, KernelDefBuilder().TypeConstraint("T", DataTypeImpl::GetTensorType<float>()),
    Conv<float>);
}
"""
FUSED = '#include "core/providers/cpu/nn/conv.h"\nONNX_OPERATOR_TYPED_KERNEL_EX(\n  FusedConv, kMSDomain, 1, float);\n'
LOCAL = """\
#define REG(OP, VERSION) \\
  ONNX_CPU_OPERATOR_KERNEL( \\
    OP, VERSION, Builder(), OP);
#define TWICE(OP) REG(OP, 7) \\
  REG(OP, 13)
// REG(Commented, 7)
REG(Abs, 6)
/* REG(
  Hidden, 7) */
TWICE(Neg)
UNRELATED(Sin)
"""
INSIDE = "#define ADD(TYPE) \\\n  ONNX_CPU_OPERATOR_TYPED_KERNEL(Expand, 8, TYPE, Builder())\nADD(float)\n"
HELPER = '#include "core/providers/cpu/rnn/rnn_helpers.h"\nvoid Conv(int);\n'
NAMED = "class ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 6, Abs);\n"


@pytest.mark.parametrize(
    ("text", "operators"),
    [(CONV, {"Conv"}), (FUSED, {"FusedConv"}), (LOCAL, {"Abs", "Neg"}), (INSIDE, {"Expand"})],
    ids=["over several lines", "in a domain", "by macros of its own", "named in its own macro"],
)
def test_the_operators_are_among_the_words_of_registrations(text: str, operators: set[str]) -> None:
    """Whichever macro it is, and none that stands in a comment or is given to another one."""
    found = registering_words(text)
    assert operators <= found
    assert not found & {"Commented", "Hidden", "Sin", "namespace", "core"}


@pytest.mark.parametrize("text", ["", HELPER, NAMED, "#define ONNX_OPERATOR_X_KERNEL_DOC 1\n"])
def test_a_source_that_registers_nothing_has_none(text: str) -> None:
    """A helper, and upstream's list of all kernels, which only names their classes."""
    assert registering_words(text) == frozenset()


def test_an_unfinished_registration_is_read_to_the_end() -> None:
    """Of a damaged source everything counts, so that it stays hot."""
    assert "Conv" in registering_words("ONNX_CPU_OPERATOR_KERNEL(\n  Conv, 1")


def test_macros_that_need_each_other_come_to_an_end() -> None:
    text = "#define A(x) B(x)\n#define B(x) A(x) ONNX_CPU_OPERATOR_KERNEL(x, 1)\nA(Conv)\n"
    assert "Conv" in registering_words(text)


CPU = "core/providers/cpu"
TEXTS = {
    f"{CPU}/nn/conv.cc": CONV,
    f"{CPU}/nn/conv.h": f'#include "{CPU}/nn/conv_attributes.h"\n',
    f"{CPU}/nn/conv_attributes.h": '#include "core/common/common.h"\n',
    f"{CPU}/math/abs.cc": LOCAL,
    f"{CPU}/tensor/expand.cc": INSIDE,
    f"{CPU}/tensor/expandbase.h": "",
    f"{CPU}/rnn/rnn_helpers.cc": HELPER,
    f"{CPU}/rnn/lstm.cc": f'#include "{CPU}/tensor/expandbase.h"\nONNX_CPU_OPERATOR_KERNEL(LSTM, 7)\n',
    "contrib_ops/cpu/fused_conv.cc": FUSED,
}


def hot(*operators: str) -> set[str]:
    cold = cold_kernels(TEXTS, operators)
    assert list(cold) == sorted(cold)
    return {path.rsplit("/", 1)[1] for path in TEXTS if path.endswith(".cc") and path not in cold}


def test_kernels_of_hot_operators_and_helpers_stay_hot() -> None:
    assert hot("ai.onnx:Conv") == {"conv.cc", "rnn_helpers.cc"}
    assert hot("ai.onnx:Neg", "ai.onnx:Expand") == {"abs.cc", "expand.cc", "rnn_helpers.cc"}


def test_what_a_hot_kernel_is_made_of_stays_hot() -> None:
    """A fused convolution is an ordinary one with an end of its own, whose header it includes."""
    assert hot("com.microsoft:FusedConv") == {"fused_conv.cc", "conv.cc", "rnn_helpers.cc"}


def test_a_header_that_begins_like_a_source_is_implemented_there() -> None:
    """Upstream has `concatbase.h` for what lies in `concat.cc`."""
    assert hot("ai.onnx:LSTM") == {"lstm.cc", "expand.cc", "rnn_helpers.cc"}


def test_the_domain_does_not_matter() -> None:
    """A name in another domain keeps a kernel hot, which costs bytes and nothing else."""
    assert hot("com.microsoft:Conv") == hot("ai.onnx:Conv")


def test_without_any_use_all_kernels_are_cold() -> None:
    assert hot("custom:Nothing") == {"rnn_helpers.cc"}


@given(texts=st.dictionaries(st.sampled_from(sorted(TEXTS)), st.text() | st.sampled_from(sorted(TEXTS.values()))))
def test_any_text_is_read_kernel_registrations(texts: dict[str, str]) -> None:
    for path in cold_kernels(texts, ["ai.onnx:Conv"]):
        assert path.endswith(".cc")
        assert registering_words(texts[path])


CONSTRUCTOR = f"""
{{
  this->Gemm = GemmSse;
  this->Pool[Maximum] = PoolMaximumSse;
  this->Pool[Average] = PoolAverageSse;
  this->Exp = &Exp;
  this->Cast = nullptr;
  if (Avx()) {{
    this->Gemm = GemmAvx;
    this->Pool[Maximum] = PoolMaximumAvx;
    // {BRANCH}
    if (Avx2()) {{
      this->Gemm = GemmFma;
      if (Vnni()) {{
        this->Exp = ExpVnni;
        this->Pool[Average] = PoolMaximumSse;
      }}
      this->Cast = CastAvx2;
    }}
  }}
  this->Late = GemmAvx;
}}
"""


@pytest.mark.parametrize("cpu", FLOORS)
def test_what_is_replaced_on_every_processor_is_superseded(cpu: str) -> None:
    assert superseded_kernels(CONSTRUCTOR, cpu) == {"GemmSse", "nullptr"}


def test_what_is_replaced_after_the_constructor_is_superseded_as_well() -> None:
    """Also the kernels that its last branch chose, unless they are chosen elsewhere."""
    after = "table.Pool[Average] = PoolAverageWide; table.Gemm = GemmWide; table.BlockSize = 16;"
    superseded = superseded_kernels(CONSTRUCTOR, FLOORS[0], after)
    assert superseded == {"GemmSse", "GemmFma", "PoolAverageSse", "nullptr"}


@pytest.mark.parametrize("cpu", ["", "x86-64-v2", "cortex-a76"])
def test_below_the_baseline_every_kernel_may_be_chosen(cpu: str) -> None:
    assert superseded_kernels(CONSTRUCTOR, cpu) == frozenset()


def test_another_constructor_keeps_everything() -> None:
    """Another version's may have other words before the branch."""
    assert superseded_kernels(CONSTRUCTOR.replace("AVX2/FMA3", "AVX2"), "x86-64-v3") == frozenset()


@given(st.text(alphabet="this->Gemm=Sse;{}[]&\n ", max_size=80))
def test_any_text_is_read_superseded_kernels(text: str) -> None:
    assert superseded_kernels(f"this->A = B; {BRANCH} {text}", "x86-64-v3") >= frozenset()


IDLE = {
    CONSTRUCTORS[0]: "this->Softmax = &SoftmaxNeon; this->Rope = &RopeAvx2; this->LutGenKernel = &LookupAvx2;",
    DECLARATIONS: """struct MLAS_PLATFORM {
    const MLAS_SOFTMAX_DISPATCH* Softmax{nullptr};
    const MLAS_ROPE_DISPATCH* Rope{nullptr};
    const MLAS_LOOKUP_DISPATCH* LutGenKernel{nullptr};
};""",
    "softmax.h": """struct MLAS_SOFTMAX_DISPATCH {
    typedef MLAS_FP16(ReduceMax_Fn)(
        const MLAS_FP16* Input
    );  // of float32 there is none
    ReduceMax_Fn* ReduceMax = nullptr;
    typedef void(Exp_Fn)(const MLAS_FP16* Input);
    Exp_Fn* Exp = nullptr;
};
struct MLAS_ROPE_DISPATCH {
    typedef void(SRope_Fn)(const float* input);  // and MLAS_FP16
    typedef void(HRope_Fn)(const MLAS_FP16* input);
};
struct MLAS_LOOKUP_DISPATCH {
    MLAS_LOOKUP* GenerateLUT = nullptr;
};
""",
}


@pytest.mark.parametrize(
    ("used", "float16", "idle"),
    [
        ((), True, set()),
        ((), False, {"SoftmaxNeon"}),
        (((4, 4),), True, {"LookupAvx2"}),
        (((4, 4), (2, 0)), False, {"SoftmaxNeon"}),
        (((8, 4),), False, {"SoftmaxNeon", "LookupAvx2"}),
    ],
)
def test_tables_of_functions_for_types_and_bits_that_no_model_has_are_idle(
    used: tuple[tuple[int, int], ...], *, float16: bool, idle: set[str]
) -> None:
    """On ARM64 18 kB of Softmax for 16-bit floats, on x64 21 kB for weights of 2 bits; a table of both types stays."""
    assert idle_kernels(IDLE, used, float16=float16) == idle
    table = kernel_table(IDLE | {"compute.cpp": "Softmax Rope LutGenKernel"}, idle)
    assert {name for name in ("SoftmaxNeon", "RopeAvx2", "LookupAvx2") if not table.users(name)} == idle


def test_a_kernel_that_stands_in_another_entry_as_well_is_not_idle() -> None:
    more = IDLE | {CONSTRUCTORS[0]: IDLE[CONSTRUCTORS[0]] + "this->Rope = &SoftmaxNeon;"}
    assert idle_kernels(more, (), float16=False) == frozenset()


DEPTHWISE = "_Z9DepthwiseIahEvPKT_"
KERNELS = frozenset({"FloatKernelSse", "QuantDispatchAvx2", "QuantDispatchDefault", "PoolKernel", DEPTHWISE})


def linked(
    source: str, *, defined: str = "", undefined: str = "", own: str = "", functions: str = "", live: bool = True
) -> LinkedObject:
    names = (frozenset(text.split()) for text in (defined, undefined, own, functions))
    here, there, inside, kept = names
    return LinkedObject(
        source=source, defined=here, undefined=there, live=live, functions=kept if functions else None, own=inside
    )


UNREACHED_KERNELS_CONSTRUCTOR = linked("platform.cpp", undefined=f"getauxval {' '.join(KERNELS)}")


def test_the_kernels_are_those_that_the_constructor_names() -> None:
    """What else it needs is none, and neither is what others need."""
    assert (
        table_kernels(TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, linked("sgemm.cpp", undefined="FloatKernelAvx")))
        == KERNELS
    )


def test_nothing_is_reached_by_the_constructor_alone() -> None:
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR,)) == frozenset()


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("sgemm.cpp", {"FloatKernelSse"}),
        ("snchwc.cpp", {"PoolKernel"}),
        ("qdwconv.cpp", {DEPTHWISE}),
        ("qgemm.cpp", {"QuantDispatchAvx2", "QuantDispatchDefault"}),
        ("activate.cpp", set[str]()),
    ],
)
def test_code_that_uses_an_entry_reaches_its_kernels(source: str, reached: set[str]) -> None:
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, linked(source))) == reached
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, linked(source, live=False))) == frozenset()


def test_a_kernel_that_is_named_without_the_table_is_reached() -> None:
    """By another source, or in its own object, whose words the linker's script leads elsewhere, too."""
    assert reached_kernels(KERNELS, TABLE, (linked("other.cpp", undefined="PoolKernel"),)) == {"PoolKernel"}
    naming = linked("other.cpp", defined="PoolKernel", own="PoolKernel")
    assert reached_kernels(KERNELS, TABLE, (naming,)) == {"PoolKernel"}
    assert not reached_kernels(KERNELS, TABLE, (replace(naming, live=False),))


def test_a_kernel_that_data_name_is_reached() -> None:
    """Upstream has tables of kernels in objects of which no code need be in the library."""
    table = replace(linked("fixed.cpp", undefined="PoolKernel", own="FloatKernelSse", live=False), data=True)
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, table)) == {"PoolKernel", "FloatKernelSse"}
    assert not reached_kernels(KERNELS, TABLE, (replace(UNREACHED_KERNELS_CONSTRUCTOR, data=True),))


def test_data_use_no_entries() -> None:
    """An entry is used by code; constants for kernels in assembly lie in sources that use entries."""
    assert not reached_kernels(
        KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, replace(linked("sgemm.cpp", live=False), data=True))
    )


def test_a_kernel_beside_code_that_does_not_name_it_is_not_reached() -> None:
    """Upstream has kernels for casts in one object with those for products of 4 bits."""
    assert not reached_kernels(KERNELS, TABLE, (linked("other.cpp", defined="PoolKernel FloatKernelSse"),))


@pytest.mark.parametrize(("functions", "reached"), [
    ("MlasBlockSize", set[str]()),
    ("_Z13MlasBlockSizev", set[str]()),
    ("MlasBlockSize MlasPool", {"PoolKernel"}),
    ("MlasPool", {"PoolKernel"}),
    ("", {"PoolKernel"}),
])  # fmt: skip
def test_returning_an_entry_that_is_no_kernel_reaches_none(functions: str, reached: set[str]) -> None:
    """Upstream's kernels for blocks of channels hung on a function that says how large a block is."""
    snchwc = linked("snchwc.cpp", undefined="PoolKernel", functions=functions)
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, snchwc)) == reached


@pytest.mark.parametrize(("functions", "undefined", "reached"), [
    ("startup _ZNSt3__113unordered_mapIiED2Ev", "", set[str]()),
    ("startup MlasPool", "", {"PoolKernel"}),
    ("startup _Z7StartupSt6vector", "", {"PoolKernel"}),
    ("startup", "FloatKernelSse", {"FloatKernelSse"}),
])  # fmt: skip
def test_making_globals_uses_no_entry(functions: str, undefined: str, reached: set[str]) -> None:
    """Products of 4 bits have a map of settings, which hung on their kernels; what it names counts."""
    snchwc = linked("snchwc.cpp", undefined=undefined, functions=functions)
    assert reached_kernels(KERNELS, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, snchwc)) == reached


def test_a_kernel_that_a_minimal_build_only_compares_is_one_of_the_table() -> None:
    """Its constructor does not name kernels of AVX-512; from 1.25 on other sources ask whether they were chosen."""
    assert table_kernels(TABLE, (linked("route.cpp", undefined="FloatKernelAvx"),)) == {"FloatKernelAvx"}


def test_a_kernel_that_is_compared_is_not_reached() -> None:
    """The object names it, but nothing calls it; whoever also calls it reaches it."""
    kernels = KERNELS | {"FloatKernelAvx"}
    assert not reached_kernels(
        kernels, TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, linked("route.cpp", undefined="FloatKernelAvx"))
    )
    assert reached_kernels(kernels, TABLE, (linked("other.cpp", undefined="FloatKernelAvx"),)) == {"FloatKernelAvx"}


def test_only_what_was_left_out_is_asked_about() -> None:
    assert reached_kernels(frozenset(), TABLE, (UNREACHED_KERNELS_CONSTRUCTOR, linked("sgemm.cpp"))) == frozenset()


@dataclass(frozen=True, kw_only=True)
class Hooks:
    hooks: Path


def test_every_symbol_leads_into_the_bytes_that_there_are(tmp_path: Path) -> None:
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    symbols = frozenset(f"Kernel{number}" for number in range(ROOM + 40))
    write_script(paths, symbols)
    script = tmp_path / UNREACHED
    places = {int(line.rstrip(";").rsplit("+ ", 1)[1]) for line in script.read_text().splitlines()}
    assert places == set(range(ROOM))
    assert read_script(paths) == symbols


def test_every_symbol_is_defined_for_links_that_would_open_an_archive_for_it(tmp_path: Path) -> None:
    """Once each, whatever characters are in it; none is left of an earlier link."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm", "_Z3Getb"})
    assert (tmp_path / LEFT_OUT).read_text() == 'ORTRIM_LEFT_OUT(0, "MlasGemm")\nORTRIM_LEFT_OUT(1, "_Z3Getb")\n'
    write_script(paths, ())
    assert (tmp_path / LEFT_OUT).read_text() == ""


def test_a_function_that_is_called_leads_to_code(tmp_path: Path) -> None:
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm", "_Z3Getb"}, KernelTable(entries={}, readers={}, called=frozenset({"Get"})))
    script = (tmp_path / UNREACHED).read_text()
    assert script == '"MlasGemm" = ortrim_unreached + 0;\n"_Z3Getb" = ortrim_unreached_call;\n'


def test_what_another_job_left_out_is_forgotten(tmp_path: Path) -> None:
    """A kept tree's script would hide from the first link what this job's own files miss; its own script stays."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    job, other = sample_plan().targets[0].job, sample_plan(profile="upstream").targets[0].job
    for left, expected in ((job, {"MlasGemm"}), (other, set())):
        write_script(paths, {"MlasGemm"})
        (tmp_path / DONE).write_text(done_text(paths, left))
        forget_unreached(paths, job)
        assert read_script(paths) == expected
        assert (tmp_path / DONE).exists() == bool(expected)


@pytest.mark.parametrize("damaged", [UNREACHED, LEFT_OUT])
@pytest.mark.parametrize("left", ["", '"MlasGemm" = ortrim_unreached + 0;\n'])
def test_a_script_that_is_not_what_was_done_is_made_anew(tmp_path: Path, left: str, damaged: str) -> None:
    """Cut short or changed, it gave another library, which was kept under the digest of the right one.

    Without the definitions, a table that fills itself would be written where the script leads: into constants.
    """
    paths, job = cast("JobPaths", Hooks(hooks=tmp_path)), sample_plan().targets[0].job
    write_script(paths, {"MlasGemm", "MlasConv"})
    (tmp_path / DONE).write_text(done_text(paths, job))
    (tmp_path / damaged).write_text(left)
    forget_unreached(paths, job)
    assert read_script(paths) == frozenset()
    assert not (tmp_path / DONE).exists()


def test_what_an_interrupted_build_left_out_is_forgotten(tmp_path: Path) -> None:
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm"})
    forget_unreached(paths, sample_plan().targets[0].job)
    assert read_script(paths) == frozenset()


@pytest.mark.parametrize(
    ("target", "kernels", "expected"),
    [
        ("linux-x64", {"MlasConv"}, {"MlasConv", *TABLE.entries}),
        ("linux-x64", set(), set()),
        ("macos-x86_64", {"MlasConv"}, {"MlasConv"}),
    ],
)
def test_the_first_link_does_without_kernels_that_are_not_compiled(
    tmp_path: Path, target: str, kernels: set[str], expected: set[str]
) -> None:
    """A script of ELF may name all kernels, an index none that only our own sources use; later links know better."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    job = replace(sample_plan().targets[0].job, target=TARGETS[target])
    write_script(paths, {"MlasGemm"})
    leave_out(paths, job, frozenset(kernels), TABLE)
    assert read_script(paths) == expected
    (tmp_path / DONE).write_text(done_text(paths, job))
    leave_out(paths, job, frozenset({"MlasPool"}), TABLE)
    assert read_script(paths) == expected


PARSE = "_ZN4onnx11TensorProto14_InternalParseEPKcPN6google8protobuf8internal12ParseContextE"
WRITE = "_ZNK4onnx11TensorProto18_InternalSerializeEPhPN6google8protobuf2io19EpsCopyOutputStreamE"
COUNT = "_ZNK4onnx11TensorProto12ByteSizeLongEv"
METHODS = frozenset({PARSE, WRITE, COUNT})
OTHERS = frozenset({"_ZN4onnx11TensorProto9MergeFromERKS0_", "_ZN4onnx11TensorProtoD0Ev", "_ZTVN4onnx11TensorProtoE"})
MESSAGES = LinkedObject(source=SOURCE, defined=METHODS | OTHERS, undefined=METHODS, live=True)


def code(source: str, *undefined: str) -> LinkedObject:
    return LinkedObject(source=source, defined=frozenset(), undefined=frozenset(undefined), live=True)


def test_the_methods_are_those_of_onnxs_messages() -> None:
    """Not what copies and destroys them, and nothing of other objects that have such names."""
    other = replace(MESSAGES, source="coreml.pb.cc")
    assert message_methods((MESSAGES, other)) == METHODS
    assert message_methods((other,)) == frozenset()


def test_nothing_is_wanted_where_nobody_reads_or_writes() -> None:
    """The messages' own object names them in tables alone."""
    assert wanted_methods(METHODS | {"PoolKernel"}, (MESSAGES, code("arena.cc"))) == frozenset()


@pytest.mark.parametrize("reader", [
    code("parse_context.cc"), code("coded_stream.cc"), code("tensorprotoutils.cc", COUNT, "memcpy"),
])  # fmt: skip
def test_all_are_wanted_as_soon_as_somebody_does(reader: LinkedObject) -> None:
    """Protobuf's code for it is in the library, or another source names one; kernels are none of its business."""
    assert wanted_methods(METHODS | {"PoolKernel"}, (MESSAGES, reader)) == METHODS
    assert wanted_methods(METHODS, (MESSAGES, replace(reader, live=False))) == frozenset()


@pytest.mark.parametrize(("functions", "wanted"), [
    (frozenset({"_ZN6google8protobuf8internal12ShutdownData3getEv"}), frozenset[str]()),
    (frozenset({"_ZNK6google8protobuf11MessageLite21SerializeToCodedStreamEPNS0_2io17CodedOutputStreamE"}), METHODS),
    (None, METHODS),
])  # fmt: skip
def test_of_what_all_messages_share_functions_count(functions: frozenset[str] | None, wanted: frozenset[str]) -> None:
    """What clears up at the end reads no message; where functions cannot be told apart, it is taken to."""
    base = replace(code("message_lite.cc"), functions=functions)
    assert wanted_methods(METHODS, (MESSAGES, base)) == wanted


def test_a_table_that_names_one_wants_all() -> None:
    """Data ask for what they name, and read nothing themselves."""
    table = replace(code("tensorprotoutils.cc", COUNT), live=False, data=True)
    assert wanted_methods(METHODS, (MESSAGES, table)) == METHODS
    reader = replace(table, source="parse_context.cc", undefined=frozenset())
    assert wanted_methods(METHODS, (MESSAGES, reader)) == frozenset()


def test_what_was_not_left_out_is_not_wanted() -> None:
    assert wanted_methods(frozenset({"PoolKernel"}), (MESSAGES, code("parse_context.cc"))) == frozenset()


PLAIN = ModelUses(format_version="6", uses=(), element_types=("float", "int64_t", "std::string"))


def using(name: str, domain: str = "ai.onnx") -> OperatorUse:
    return OperatorUse(operator=OperatorId(domain=domain, opset=18, name=name), inputs=("float",), outputs=("bool",))


def test_models_of_plain_tensors_need_none_of_the_kinds() -> None:
    assert unused_types(EMPTY, (PLAIN, PLAIN)) == KINDS == ("float16", "float8", "optional", "sparsetensor")


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (replace(PLAIN, element_types=("MLFloat16", "float")), FLOAT16),
        (replace(PLAIN, element_types=("Float8E4M3FN", "float")), FLOAT8),
        (replace(PLAIN, element_types=("Float8E5M2FNUZ",)), FLOAT8),
        (replace(PLAIN, uses=(using("OptionalHasElement"),)), OPTIONAL),
        (replace(PLAIN, uses=(using("Relu"), using("OptionalGetElement"))), OPTIONAL),
        (replace(PLAIN, saved=(OperatorId(domain="ai.onnx", opset=15, name="Optional"),)), OPTIONAL),
        (replace(PLAIN, sparse=True), SPARSE),
        (replace(PLAIN, uses=(using("SparseToDenseMatMul", "com.microsoft"),)), SPARSE),
    ],
)
def test_what_one_model_has_is_kept_for_all(model: ModelUses, kept: str) -> None:
    expected = tuple(kind for kind in KINDS if kind != kept)
    assert unused_types(EMPTY, (model,)) == unused_types(EMPTY, (PLAIN, model)) == expected


def test_an_operator_of_the_configuration_alone_counts_too() -> None:
    """The converter lists operators that a saved optimization takes the place of."""
    operators = required_operators([OperatorId(domain="ai.onnx", opset=18, name="OptionalHasElement")])
    assert unused_types(operators, (PLAIN,)) == (FLOAT16, FLOAT8, SPARSE)


def test_a_value_whose_type_is_not_known_may_be_anything() -> None:
    """Of a newer format, say: floats of 8 and 16 bits stay, and what no type can be stays out."""
    assert unused_types(EMPTY, (replace(PLAIN, element_types=("", "float")),)) == (OPTIONAL, SPARSE)


ALL = RequiredOperators(no_operators_means_all=True)


@pytest.mark.parametrize(("operators", "models"), [(ALL, (PLAIN,)), (EMPTY, ())])
def test_nothing_is_left_out_when_models_do_not_tell(
    operators: RequiredOperators, models: tuple[ModelUses, ...]
) -> None:
    assert unused_types(operators, models) == ()


PRODUCTS = """\
struct MLAS_QNBIT_GEMM_DISPATCH {
    typedef size_t(Q8BitGemmPackQuantBDataSize_Fn)(size_t N);
    Q8BitGemmPackQuantBDataSize_Fn* Q8BitGemmPackQuantBDataSize = nullptr;
    SQ4BitGemmM1Kernel_CompFp32_Fn* SQ4BitGemmM1Kernel_CompFp32 = nullptr;
    HQ4BitGemmKernel_CompFp16_Fn* HQ4BitGemmKernel_CompFp16 = nullptr;
    SQ8BitGemmKernel_Fn* SQ8BitGemmKernel = nullptr;
    SQ4BitGemmKernel_CompInt8_Fn* SQ4BitGemmKernel_CompInt8 = nullptr;
    QuantizeARow_CompInt8_Fn* QuantizeARow_CompInt8 = nullptr;
};
SQ8Other_Fn* SQ8BitOther = nullptr;
"""
BYTES = ("Q8BitGemmPackQuantBDataSize", "SQ8BitGemmKernel")
FLOATS = ("SQ4BitGemmM1Kernel_CompFp32",)


@pytest.mark.parametrize(
    ("used", "left"),
    [
        ([(4, 4)], (BYTES[0], *FLOATS, BYTES[1])),
        ([(4, 0)], BYTES),
        ([(4, 0), (4, 4)], BYTES),
        ([(4, 4), (8, 4)], FLOATS),
        ([(8, 4)], FLOATS),
        ([(2, 0), (4, 4)], ()),
    ],
)
def test_products_go_that_no_model_has(used: list[tuple[int, int]], left: tuple[str, ...]) -> None:
    """Of 8 bits, where all have 4; of floats, where all are of level 4: what upstream's operator never asks for."""
    assert unused_functions(PRODUCTS, used) == left


def test_products_stay_where_their_table_is_not_found() -> None:
    assert unused_functions("struct OTHER {\n};\n", [(4, 4)]) is None


def test_products_are_those_of_all_models_if_all_are_known() -> None:
    """An optimization that a model has saved may make one, of which nothing is known; so may a mixture of experts."""
    models = [ModelUses(format_version="6", uses=(), few_bits=((bits, 4),)) for bits in (8, 4, 8)]
    assert few_bits(models) == ((4, 4), (8, 4))
    made = replace(models[0], saved=(OperatorId(domain="com.microsoft", opset=1, name="MatMulNBits"),))
    assert few_bits([*models, made]) == ()
    experts = OperatorUse(operator=OperatorId(domain="com.microsoft", opset=1, name="QMoE"), inputs=(), outputs=())
    assert few_bits([*models, replace(models[0], uses=(experts,))]) == ()
