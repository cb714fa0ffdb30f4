"""The kernels that a source is left, as a compiler's preprocessor sees them, on macros in upstream's manner."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fake_kernels import CPU, TYPED, make_kernels
from ortrim.base.command import run
from ortrim.compiling.kept_kernels import (
    HEADER,
    LARGE,
    MACROS,
    MATH,
    NORMAL,
    TABLES,
    cut_units,
    registered_kernels,
    write_kept_kernels,
)
from ortrim.compiling.upstream import REDUCED_TYPES, type_folder
from ortrim.compiling.workspace import JobPaths
from ortrim.models.operators import OperatorTypes

pytestmark = pytest.mark.needs("gcc")

DEFINITIONS: Final = r"""
#pragma once
#define ONNX_OPERATOR_KERNEL_CLASS_NAME(provider, domain, ver, name) \
  provider##_##name##_##domain##_ver##ver
#define ONNX_CPU_OPERATOR_KERNEL(name, ver, builder, ...) \
  ONNX_OPERATOR_KERNEL_EX(name, kOnnxDomain, ver, kCpu, builder, __VA_ARGS__)
#define ONNX_OPERATOR_KERNEL_EX(name, domain, ver, provider, builder, ...) \
  class ONNX_OPERATOR_KERNEL_CLASS_NAME(provider, domain, ver, name);      \
  kernel name builder __VA_ARGS__
#define ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_CLASS_NAME(provider, domain, startver, endver, type, name) \
  provider##_##name##_##domain##_ver##startver##_##endver##_##type
#define ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_EX(name, domain, startver, endver, type, \
                                                provider, builder, ...)               \
  class ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_CLASS_NAME(provider, domain, startver,   \
                                                        endver, type, name);          \
  kernel name type builder __VA_ARGS__
"""
SOURCE: Final = """
#include "core/framework/op_kernel.h"
#define TYPED(type) \\
  ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_EX(Pow, kOnnxDomain, 7, 12, type, kCpu, Create(1, 2), Pow<type>)
TYPED(float)
TYPED(double);
ONNX_CPU_OPERATOR_KERNEL(Max, 13, Create(), Max<float, double>);
ONNX_CPU_OPERATOR_KERNEL(Max, 8, Create(), Max_8);
"""
ALL: Final = [
    "class kCpu_Pow_kOnnxDomain_ver7_12_float; kernel Pow float Create(1, 2) Pow<float>",
    "class kCpu_Pow_kOnnxDomain_ver7_12_double; kernel Pow double Create(1, 2) Pow<double>;",
    "class kCpu_Max_kOnnxDomain_ver13; kernel Max Create() Max<float, double>;",
    "class kCpu_Max_kOnnxDomain_ver8; kernel Max Create() Max_8;",
]
DOUBLE: Final = """\
      BuildKernelCreateInfo<ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_CLASS_NAME(kCpu, kOnnxDomain, 7, 12,
                                                                            double, Pow)>,
"""
MAX: Final = "      BuildKernelCreateInfo<class ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpu, kOnnxDomain, 13, Max)>,\n"
CAST: Final = "      BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpu, kOnnxDomain, 13, Cast)>,\n"
NONE: Final = "      BuildKernelCreateInfo<void>,  // default entry\n"
UNIT: Final = f"{CPU}/math/element_wise_ops.cc"


@pytest.fixture(name="paths")
def fixture_paths(tmp_path: Path) -> JobPaths:
    paths = make_kernels(tmp_path)
    for name, text in ((MACROS, DEFINITIONS), (UNIT, TYPED[UNIT].splitlines()[0] + SOURCE)):
        path = paths.sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    control = paths.sources / "onnxruntime/onnxruntime/core/providers/op_kernel_type_control.h"
    control.write_text("")
    return paths


def configure(paths: JobPaths, *registrations: str) -> None:
    """Write what upstream's reduction of operators leaves of its tables."""
    for name, lines in zip(TABLES, ((NONE, *registrations), (NONE,)), strict=True):
        table = paths.configured / REDUCED_TYPES / name
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text("const table[] = {\n" + "".join(lines) + "};\n")


def kernels(paths: JobPaths) -> list[str]:
    """Return the kernels that a compiler finds in the source, with its header."""
    unit = paths.sources / UNIT
    folders = (
        type_folder(paths, unit),
        *(paths.sources / "onnxruntime" / name for name in ("include/onnxruntime", "onnxruntime")),
    )
    words = ("gcc", "-E", "-P", "-x", "c++", *(f"-I{folder}" for folder in folders), "-include", HEADER, str(unit))
    done = run(words)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines() if line.strip(" ;")]


@pytest.mark.parametrize(
    ("registrations", "expected"),
    [
        ((DOUBLE, MAX, CAST), [ALL[1], ALL[2]]),
        ((MAX,), [ALL[2]]),
        ((f"// {DOUBLE.strip()}\n".replace("\n   ", "\n//"), CAST), []),
    ],
)
def test_a_source_defines_the_kernels_that_are_registered(
    paths: JobPaths, registrations: tuple[str, ...], expected: list[str]
) -> None:
    """Of the same name, type and version; a comment registers nothing."""
    configure(paths, *registrations)
    write_kept_kernels(paths, everything=False)
    assert kernels(paths) == expected


@pytest.mark.parametrize("strange", ["ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpu, Max)", "Max_13", "NEW_NAME(kCpu, Max)"])
def test_a_source_keeps_all_of_them_where_a_registration_is_not_understood(paths: JobPaths, strange: str) -> None:
    """Another version may register in another way; a kernel too many costs seconds, one too few the build."""
    configure(paths, DOUBLE, f"BuildKernelCreateInfo<{strange}>,\n")
    write_kept_kernels(paths, everything=False)
    assert kernels(paths) == ALL


def test_a_source_keeps_all_of_them_when_asked_to(paths: JobPaths) -> None:
    configure(paths, DOUBLE)
    write_kept_kernels(paths, everything=True)
    assert kernels(paths) == ALL


def test_a_tree_without_tables_keeps_all(paths: JobPaths) -> None:
    """A build with all operators reduces nothing."""
    write_kept_kernels(paths, everything=False)
    assert kernels(paths) == ALL


def test_a_change_of_other_operators_leaves_the_header_alone(paths: JobPaths) -> None:
    configure(paths, MAX)
    write_kept_kernels(paths, everything=False)
    header = type_folder(paths, paths.sources / UNIT) / HEADER
    before = header.stat().st_mtime_ns
    configure(paths, MAX, CAST)
    write_kept_kernels(paths, everything=False)
    assert header.stat().st_mtime_ns == before
    configure(paths, MAX, DOUBLE)
    write_kept_kernels(paths, everything=False)
    assert header.stat().st_mtime_ns != before


def test_large_sources_are_cut_without_type_control(paths: JobPaths) -> None:
    (large,) = LARGE
    assert cut_units(paths) == tuple(paths.sources / name for name in TYPED)
    there = paths.sources / "onnxruntime" / "onnxruntime" / large
    there.parent.mkdir(parents=True)
    there.write_text("")
    assert cut_units(paths) == (*(paths.sources / name for name in TYPED), there)


def test_a_class_is_named_as_its_macro_pastes_it() -> None:
    assert registered_kernels([DOUBLE, MAX], DEFINITIONS) == {
        "kCpu_Max_kOnnxDomain_ver13": "Max",
        "kCpu_Pow_kOnnxDomain_ver7_12_double": "Pow",
    }


WHOLE: Final = DOUBLE.replace("double", "int64_t")
HALF: Final = DOUBLE.replace("double", "MLFloat16").replace("kOnnxDomain", "kMSDomain")
FOREIGN: Final = MAX.replace("kOnnxDomain", "kOtherDomain").replace("Max", "Pow")


def types_of(*used: str) -> Callable[[str, str], OperatorTypes]:

    def types(domain: str, name: str) -> OperatorTypes:
        assert domain == "ai.onnx"
        return OperatorTypes(inputs=((0, used),)) if name == "Pow" and used else OperatorTypes()

    return types


@pytest.mark.parametrize(
    ("used", "expected"),
    [(("float", "double"), (DOUBLE, MAX)), (("float", "int64_t"), (DOUBLE, WHOLE, MAX)), ((), (DOUBLE, WHOLE, MAX))],
)
def test_integers_that_no_model_has_are_not_registered(
    paths: JobPaths, used: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """Upstream keeps them for what its optimizers add at load; other types are its to judge."""
    configure(paths, DOUBLE, WHOLE, MAX, FOREIGN)
    source = paths.sources / UNIT
    source.write_text(source.read_text() + "TYPED(int64_t)\n")
    write_kept_kernels(paths, types=types_of(*used))
    table = (paths.configured / REDUCED_TYPES / TABLES[0]).read_text()
    assert table.split() == "".join(("const table[] = {\n", NONE, *expected, FOREIGN, "};\n")).split()
    assert len(kernels(paths)) == len(expected)


def test_operators_that_only_quantized_models_would_get_are_not_registered(paths: JobPaths) -> None:
    """Whatever their domain; others stay."""
    configure(paths, DOUBLE, MAX, FOREIGN)
    write_kept_kernels(paths, unasked={"Pow"})
    table = (paths.configured / REDUCED_TYPES / TABLES[0]).read_text()
    assert table.split() == f"const table[] = {{\n{NONE}{MAX}}};\n".split()
    assert kernels(paths) == [ALL[2]]


@pytest.mark.parametrize(("float16", "expected"), [(True, (DOUBLE, HALF)), (False, (DOUBLE,))])
def test_half_floats_that_no_model_has_are_not_registered(
    paths: JobPaths, *, float16: bool, expected: tuple[str, ...]
) -> None:
    """Of contrib operators upstream registers every type; the float kernel beside stays."""
    configure(paths, DOUBLE, HALF)
    write_kept_kernels(paths, float16=float16)
    table = (paths.configured / REDUCED_TYPES / TABLES[0]).read_text()
    assert table.split() == "".join(("const table[] = {\n", NONE, *expected, "};\n")).split()


def test_sources_have_no_types_beside_those_of_the_models(paths: JobPaths) -> None:
    control = paths.sources / "onnxruntime/onnxruntime/core/providers/op_kernel_type_control.h"
    control.write_text("#pragma once\n#define ORT_SPECIFY_OP_KERNEL_ARG_REQUIRED_TYPE_LIST(...) required\n")
    source = paths.sources / UNIT
    source.write_text(source.read_text() + "ORT_SPECIFY_OP_KERNEL_ARG_REQUIRED_TYPE_LIST(kCpu, Pow, 0, int64_t);\n")
    configure(paths, MAX)
    write_kept_kernels(paths, types=types_of("float"))
    assert kernels(paths) == [ALL[2]]
    write_kept_kernels(paths)
    assert kernels(paths) == [ALL[2], "required;"]


OPERATORS: Final = """\
#pragma once
#include <cstdint>
#define ORT_NOT_IMPLEMENTED(...) throw 0
namespace onnxruntime {
class OpKernelContext {};
namespace common { struct Status {}; }
using common::Status;
class Max_8 { public: template <typename T> struct ComputeImpl; };
class Min_8 { public: template <typename T> struct ComputeImpl; };
}
"""
LOOPING: Final = """
#include <cstdio>
#include "core/providers/cpu/math/element_wise_ops.h"
namespace onnxruntime {
namespace pow_internal {
template <typename T, typename E>
void PowImpl(OpKernelContext& context) {}
}
template <typename T>
struct Max_8::ComputeImpl {
  Status operator()(const Max_8&, OpKernelContext*) const { return {}; }
};
template <typename T>
struct Min_8::ComputeImpl {
  Status operator()(const Min_8&, OpKernelContext*) const { return {}; }
};
}
using namespace onnxruntime;
#define SAY(name, ...) try { __VA_ARGS__; puts(name); } catch (int) {}
#define RAISE(base, exponent) SAY("Pow " #base " " #exponent, pow_internal::PowImpl<base, exponent>(context))
#define RAISE_ALL(base) RAISE(base, int32_t) RAISE(base, int64_t) RAISE(base, float) RAISE(base, double)
#define COMPARE(type) \\
  SAY("Max " #type, Max_8::ComputeImpl<type>()(Max_8(), &context)) \\
  SAY("Min " #type, Min_8::ComputeImpl<type>()(Min_8(), &context))
int main() {
  OpKernelContext context;
  RAISE_ALL(int32_t) RAISE_ALL(int64_t) RAISE_ALL(float) RAISE_ALL(double)
  COMPARE(float) COMPARE(double) COMPARE(int32_t) COMPARE(uint32_t) COMPARE(int64_t) COMPARE(uint64_t)
}
"""
KINDS: Final = ("float", "double", "int32_t", "uint32_t", "int64_t", "uint64_t")
POWERS: Final = ("int32_t", "int64_t", "float", "double")
EXTREMES: Final = [f"{name} {kind}" for kind in KINDS for name in ("Max", "Min")]
LEFT: Final = [f"Max {kind}" for kind in KINDS if kind not in ("int64_t", "double")]
RAISED: Final = [f"Pow {base} {exponent}" for base in POWERS for exponent in POWERS]


MIN: Final = MAX.replace("Max", "Min")
LOOPED: Final = (MAX, MIN, DOUBLE)


def said(paths: JobPaths, unit: str) -> list[str]:
    """Return what a source says that is compiled with its header, and run."""
    source, folder = paths.sources / unit, paths.sources / "onnxruntime/onnxruntime"
    program = paths.build / "program"
    folders = (type_folder(paths, source), paths.sources / "onnxruntime/include/onnxruntime", folder)
    words = (*(f"-I{each}" for each in folders), "-Wall", "-Werror", "-include", HEADER, str(source))
    done = run(("g++", *words, "-o", str(program)))
    assert done.returncode == 0, done.stderr
    return run((str(program),)).stdout.splitlines()


def known(types: dict[str, tuple[tuple[str, ...], ...]]) -> Callable[[str, str], OperatorTypes]:
    all_of = {name: OperatorTypes(inputs=tuple(enumerate(inputs))) for name, inputs in types.items()}
    return lambda _, name: all_of.get(name, OperatorTypes())


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("registered", "types", "expected"),
    [
        (LOOPED, {}, [*RAISED, *EXTREMES]),
        (
            LOOPED,
            {"Pow": (("float",), ("float", "int64_t")), "Max": (("int64_t", "double"),)},
            ["Pow float int64_t", "Pow float float", *(each for each in EXTREMES if each not in LEFT)],
        ),
        (LOOPED, {"Pow": (("float",),)}, [*RAISED, *EXTREMES]),
        ((MAX,), {}, [f"Max {kind}" for kind in KINDS]),
        ((CAST,), {"Pow": (("float",), ("float",))}, []),
        (("BuildKernelCreateInfo<Strange>",), {"Min": (("float",),)}, [*RAISED, *EXTREMES[:2], *EXTREMES[2::2]]),
    ],
)
def test_loops_are_left_for_types_of_the_models(
    paths: JobPaths, registered: tuple[str, ...], types: dict[str, tuple[tuple[str, ...], ...]], expected: list[str]
) -> None:
    source = paths.sources / UNIT
    source.write_text(TYPED[UNIT].splitlines()[0] + LOOPING)
    source.with_suffix(".h").write_text(OPERATORS)
    configure(paths, *registered)
    write_kept_kernels(paths, types=known(types))
    assert said(paths, UNIT) == expected


EIGEN: Final = """\
#pragma once
#include <cstdint>
namespace Eigen {
struct half {};
template <typename T> struct MatrixBase {};
template <typename T, template <typename> class Base> class NoAlias {
 public:
  explicit NoAlias(T&) {}
  template <typename Other> void operator=(const Other&) {}
  template <typename Other> void operator+=(const Other&) {}
};
template <typename T> struct Matrix {
  NoAlias<Matrix, MatrixBase> noalias() { return NoAlias<Matrix, MatrixBase>(*this); }
};
}
namespace onnxruntime { template <typename T> using EigenMatrixMap = Eigen::Matrix<T>; }
"""
MULTIPLYING: Final = """
#include <cstdio>
#include "core/util/math_cpuonly.h"
#define EIGEN_MATMUL_FUNCTION(T) \\
  void MatMul(T) { Eigen::Matrix<T>().noalias() = 1; }
EIGEN_MATMUL_FUNCTION(int32_t)
EIGEN_MATMUL_FUNCTION(uint32_t)
EIGEN_MATMUL_FUNCTION(int64_t)
EIGEN_MATMUL_FUNCTION(uint64_t)
EIGEN_MATMUL_FUNCTION(double)
struct ThreadPool;
template <typename T, typename P> void Gemm();
template <>
void Gemm<Eigen::half, ThreadPool>() {
  Eigen::Matrix<Eigen::half>().noalias() += 1;
}
#define SAY(name, ...) try { __VA_ARGS__; puts(name); } catch (int) {}
int main() {
  SAY("int32_t", MatMul(int32_t())) SAY("uint32_t", MatMul(uint32_t())) SAY("int64_t", MatMul(int64_t()))
  SAY("uint64_t", MatMul(uint64_t())) SAY("double", MatMul(double())) SAY("half", (Gemm<Eigen::half, ThreadPool>()))
}
"""
INTEGERS: Final = ["int32_t", "uint32_t", "int64_t", "uint64_t"]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("registered", "types", "expected"),
    [
        ((CAST,), {}, ["double"]),
        (("MatMul",), {}, [*INTEGERS, "double"]),
        (("MatMul", "ReduceSum"), {"MatMul": (("float", "int64_t"),), "ReduceSum": (("int32_t",),)},
         ["int32_t", "int64_t", "double"]),
        (("ReduceMean",), {"ReduceMean": (("uint32_t",),)}, ["int32_t", "double"]),
        (("MatMul", "ReduceSum"), {"MatMul": (("float",),)}, [*INTEGERS, "double"]),
        (("Gemm",), {"Gemm": (("float",),)}, ["double"]),
        (("Gemm",), {"Gemm": (("MLFloat16",),)}, ["double", "half"]),
    ],
)  # fmt: skip
def test_products_are_left_for_types_of_the_models(
    paths: JobPaths, registered: tuple[str, ...], types: dict[str, tuple[tuple[str, ...], ...]], expected: list[str]
) -> None:
    """Eigen multiplies integers and half floats for few models; a type that a reduction has counts, too."""
    source = paths.sources / "onnxruntime/onnxruntime" / MATH
    source.parent.mkdir(parents=True)
    source.write_text(MULTIPLYING)
    (source.parent / "math_cpuonly.h").write_text(EIGEN)
    common = paths.sources / "onnxruntime/include/onnxruntime/core/common/common.h"
    common.parent.mkdir(parents=True)
    common.write_text("#pragma once\n#define ORT_NOT_IMPLEMENTED(...) throw 0\n")
    configure(paths, *(name if name == CAST else MAX.replace("Max", name) for name in registered))
    write_kept_kernels(paths, types=known(types))
    assert said(paths, f"onnxruntime/onnxruntime/{MATH}") == expected


NORMALIZING: Final = """
#include <cstdio>
#include "core/providers/cpu/nn/layer_norm_impl.h"
namespace boost::mp11 { template <typename...> struct mp_list {}; }
namespace onnxruntime {
using SupportedTypeList = boost::mp11::mp_list<float, double, MLFloat16>;
template <typename T> void LayerNormImpl::Say(const char* name) {
  try { SrcDispatcher<T>()(this, nullptr, -1, 1e-5f, false, false); puts(name); } catch (int) {}
}
void LayerNormImpl::Compute() { Say<float>("float"); Say<double>("double"); Say<MLFloat16>("half"); }
}
int main() { onnxruntime::LayerNormImpl().Compute(); }
"""
NORMALIZATION: Final = """\
#pragma once
#include <cstdint>
#define ORT_NOT_IMPLEMENTED(...) throw 0
namespace onnxruntime {
struct MLFloat16 {};
struct OpKernelContext;
struct Status {};
class LayerNormImpl {
 public:
  void Compute();
 private:
  template <typename T> void Say(const char*);
  template <typename T> struct SrcDispatcher {
    Status operator()(const LayerNormImpl*, OpKernelContext*, int64_t, float, bool, bool) const { return {}; }
  };
};
}
"""


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("registered", "float16", "expected"),
    [
        ("LayerNormalization", True, ["float", "double", "half"]),
        ("LayerNormalization", False, ["float", "double"]),
        ("SimplifiedLayerNormalization", False, ["float", "double"]),
        ("RMSNormalization", False, ["float", "double"]),
        ("Softmax", True, []),
    ],
)
def test_normalizations_are_left_for_types_of_the_models(
    paths: JobPaths, registered: str, *, float16: bool, expected: list[str]
) -> None:
    """They choose by the type of a tensor as they run: a decoder of floats had 22 kB for 16-bit ones."""
    source = paths.sources / "onnxruntime/onnxruntime" / NORMAL
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(NORMALIZING)
    source.with_suffix(".h").write_text(NORMALIZATION)
    configure(paths, MAX.replace("Max", registered))
    write_kept_kernels(paths, types=known({}), float16=float16)
    assert said(paths, f"onnxruntime/onnxruntime/{NORMAL}") == expected
