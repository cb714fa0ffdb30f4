"""Which sources register which operators' kernels, and which of them hot operators have use for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.dead_kernels import cold_kernels, registering_words

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
    """No compiler would take them either."""
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
    """Return the base names of the sources that stay hot."""
    cold = cold_kernels(TEXTS, operators)
    assert list(cold) == sorted(cold)
    return {path.rsplit("/", 1)[1] for path in TEXTS if path.endswith(".cc") and path not in cold}


def test_kernels_of_hot_operators_and_helpers_stay_hot() -> None:
    """What registers nothing may be needed by any of them."""
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
    """Of operators without a kernel there."""
    assert hot("custom:Nothing") == {"rnn_helpers.cc"}


@given(texts=st.dictionaries(st.sampled_from(sorted(TEXTS)), st.text() | st.sampled_from(sorted(TEXTS.values()))))
def test_any_text_is_read(texts: dict[str, str]) -> None:
    """What is cold registers kernels and is a source."""
    for path in cold_kernels(texts, ["ai.onnx:Conv"]):
        assert path.endswith(".cc")
        assert registering_words(texts[path])
