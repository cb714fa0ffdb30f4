"""Compiling only those kernels of a source that the library registers, and not all that it defines.

Upstream's operator configuration takes registrations out of a table. The sources still define every kernel, for every
type, and the link drops them: `element_wise_ops.cc` compiles 300 kernels for the ten of a model. Macros of
`op_kernel.h` name a class for each kernel, and the table names the same classes. So a source is given a header that
defines these macros anew: as nothing for a class that the table lacks.

Upstream keeps kernels for 32 and 64-bit integers of some operators for what its optimizers may add to a model at load.
A minimal build changes no model, so that these go, too, as do loops of `Pow`, `Max` and `Min`, layer normalizations
and products of matrices (`math_cpu.cc`) of other types than the models'.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from ortrim.base.files import storage_errors, write_if_changed
from ortrim.compiling.dead_kernels import COMMENT, FLOAT16_NAME
from ortrim.compiling.mechanisms import text_of
from ortrim.compiling.upstream import REDUCED_TYPES, TYPED, type_folder, typed_units
from ortrim.compiling.workspace import JobPaths
from ortrim.models.operators import OperatorTypes

HEADER: Final = "kept_kernels.h"
TABLES: Final = ("core/providers/cpu/cpu_execution_provider.cc", "contrib_ops/cpu/cpu_contrib_kernels.cc")
"""What upstream's reduction of operators has copied, without the lines of other models."""
MACROS: Final = "onnxruntime/include/onnxruntime/core/framework/op_kernel.h"
LARGE: Final = ("core/providers/cpu/reduction/reduction_ops.cc",)
"""Sources without type control whose kernels take so long to compile that few of them are worth a compilation."""
MATH: Final = "core/util/math_cpu.cc"
NORMAL: Final = "core/providers/cpu/nn/layer_norm_impl.cc"
BENEATH: Final = (MATH, NORMAL)
"""Sources that define no kernels, but what several compute by."""
DEFINITION: Final = re.compile(r"#define (?P<name>ONNX_OPERATOR_\w+)\((?P<parameters>[^)]*)\)(?P<body>(?:.*\\\n)*.*)")
CLASS: Final = re.compile(r"\bclass (ONNX_OPERATOR_\w+_CLASS_NAME\([^)]*\));")
REGISTERED: Final = re.compile(
    r"\bBuildKernelCreateInfo<\s*(?!void\b)(?:(?:class )?(?P<name>\w+)\((?P<values>[^)]*)\))?"
)
INTEGERS: Final = ("int32_t", "int64_t")
DOMAINS: Final = {"kOnnxDomain": "ai.onnx", "kMSDomain": "com.microsoft"}
ENTRY: Final = re.compile(r"[ \t]*BuildKernelCreateInfo<\s*(?:class )?(?P<name>\w+)\((?P<values>[^)]*)\)>,")
PREAMBLE: Final = """\
// Made by ortrim: the kernels of this source that the library registers; see compiling/kept_kernels.py.
#pragma once
"""
KERNEL_HEADER: Final = '#include "core/framework/op_kernel.h"\n'
CHOICE: Final = """\
#define ORTRIM_SECOND(...) ORTRIM_SECOND_(__VA_ARGS__, ORTRIM_NOTHING, )
#define ORTRIM_SECOND_(first, second, ...) second
#define ORTRIM_NOTHING(...)
#define ORTRIM_WHOLE(macro, ...) macro(__VA_ARGS__)
#define ORTRIM_JOINED(first, second) ORTRIM_JOINED_(first, second)
#define ORTRIM_JOINED_(first, second) first##second
"""
"""Chooses what comes second: `ORTRIM_WHOLE`, if there is a macro for a class, and otherwise nothing."""
NO_TYPES_BESIDE: Final = """\
#include "core/providers/op_kernel_type_control.h"
#undef ORT_SPECIFY_OP_KERNEL_ARG_REQUIRED_TYPE_LIST
#define ORT_SPECIFY_OP_KERNEL_ARG_REQUIRED_TYPE_LIST(...)
"""
"""Takes from a source with type control the types that it has beside those of the models."""


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Code that is there for each of some types, or pairs of types of first inputs, whatever is registered.

    `operators` have use for it. `mark` is in the source that defines it, `header` and `declared` go before it, and each
    `%s` in `refused` is a type. Types `computed_as` another, or by another name, have use for that one's.
    """

    operators: tuple[str, ...]
    mark: str
    header: str
    declared: str = ""
    refused: str
    types: tuple[tuple[str, ...], ...]
    computed_as: Mapping[str, str] = field(default_factory=dict)


RAISED: Final = ("int32_t", "int64_t", "float", "double")
MULTIPLIED: Final = ("int32_t", "uint32_t", "int64_t", "uint64_t")
SIGNED: Final = {"uint32_t": "int32_t", "uint64_t": "int64_t"}
"""Upstream's kernels for signed integers multiply unsigned ones, too; a product is the same."""
HALF: Final = {FLOAT16_NAME: "Eigen::half"}
REFUSAL: Final = 'ORT_NOT_IMPLEMENTED("a type that no model has");'
ELEMENT_WISE: Final = '#include "core/providers/cpu/math/element_wise_ops.h"\n'
PRODUCTS: Final = '#include "core/common/common.h"\n#include "core/util/math_cpuonly.h"\n'
PRODUCT: Final = f"""\
template <> class Eigen::NoAlias<onnxruntime::EigenMatrixMap<%s>, Eigen::MatrixBase> {{
 public:
  template <typename Matrix> explicit NoAlias(Matrix&) {{}}
  template <typename Product> void operator=(const Product&) {{ {REFUSAL} }}
  template <typename Product> void operator+=(const Product&) {{ {REFUSAL} }}
}};
"""
"""What Eigen assigns a product of two matrices to: without it, none of the product is compiled."""
LOOPS: Final = (
    Loops(
        operators=("Pow",),
        mark="void PowImpl(OpKernelContext& context)",
        header=ELEMENT_WISE,
        declared="namespace onnxruntime::pow_internal {\n"
        "template <typename T, typename E> void PowImpl(OpKernelContext&);\n}\n",
        refused=f"template <> inline void onnxruntime::pow_internal::PowImpl<%s, %s>("
        f"onnxruntime::OpKernelContext&) {{ {REFUSAL} }}\n",
        types=(RAISED, RAISED),
    ),
    *(
        Loops(
            operators=(operator,),
            mark=f"struct {operator}_8::ComputeImpl {{",
            header=ELEMENT_WISE,
            refused=f"template <> struct onnxruntime::{operator}_8::ComputeImpl<%s> {{\n  onnxruntime::common::Status "
            f"operator()(const {operator}_8&, OpKernelContext*) const {{ {REFUSAL} }}\n}};\n",
            types=(("float", "double", "int32_t", "uint32_t", "int64_t", "uint64_t"),),
        )
        for operator in ("Max", "Min")
    ),
    Loops(
        operators=("MatMul", "Einsum", "ReduceSum", "ReduceMean"),
        mark="#define EIGEN_MATMUL_FUNCTION(T)",
        header=PRODUCTS,
        refused=PRODUCT,
        types=(MULTIPLIED,),
        computed_as=SIGNED,
    ),
    Loops(
        operators=("Gemm",),
        mark="void Gemm<Eigen::half, ThreadPool>",
        header=PRODUCTS,
        refused=PRODUCT,
        types=(tuple(HALF.values()),),
        computed_as=HALF,
    ),
    Loops(
        operators=("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        mark="using SupportedTypeList = boost::mp11::mp_list<float, double, MLFloat16>;",
        header='#include "core/providers/cpu/nn/layer_norm_impl.h"\n',
        refused="namespace onnxruntime {\ntemplate <> struct LayerNormImpl::SrcDispatcher<%s> { Status operator()(\n"
        f"  const LayerNormImpl*, OpKernelContext*, int64_t, float, bool, bool) const {{ {REFUSAL} }} }};\n}}\n",
        types=(("float", "double", FLOAT16_NAME),),
    ),
)
"""A quarter of what the demo has of `element_wise_ops.cc` is `Pow` of types that its model has not; half of the time
that `math_cpu.cc` takes are Eigen's products of integers and of half floats."""
Types = Callable[[str, str], OperatorTypes]  # the types of an operator, by its domain and name


def cut_units(paths: JobPaths) -> tuple[Path, ...]:
    """Return the sources that are given the header, in order: those with type control, and those of lists here."""
    core = paths.sources / "onnxruntime" / "onnxruntime"
    return (*typed_units(paths), *(core / name for name in (*LARGE, *BENEATH) if (core / name).is_file()))


QUANTIZED: Final = frozenset({"DequantizeLinear", "NhwcMaxPool", "QLinearConv", "QuantizeLinear"})
"""What a change of layout for an execution provider adds to a quantized model alone
(core/optimizer/layout_transformation/layout_transformation_potentially_added_ops.h)."""


def write_kept_kernels(
    paths: JobPaths,
    *,
    everything: bool = False,
    types: Types | None = None,
    unasked: Collection[str] = (),
    float16: bool = True,
) -> None:
    """Write the headers of a configured tree, where they have changed.

    With `everything`, and where tables or macros are not as they are known, sources keep all their kernels. With
    `types`, those that only upstream's optimizers ask for go, from the tables as well; so do those of operators
    `unasked` for, and without `float16` those for 16-bit floats: of operators in its own domain upstream registers
    every type.
    """

    def leaves_out(kernel: Mapping[str, str]) -> bool:
        if kernel.get("name") in unasked or (not float16 and kernel.get("type") == FLOAT16_NAME):
            return True
        return types is not None and _is_unused_integer(kernel, types)

    generated = paths.configured / REDUCED_TYPES
    with storage_errors(generated):
        macros = text_of(paths.sources / MACROS)
        tables = {}
        for name in TABLES:
            if table := text_of(generated / name):
                tables[name] = without_kernels(table, macros, leaves_out)
                write_if_changed(generated / name, tables[name])
        kept = {} if everything else registered_kernels(tables.values(), macros)
        registered = frozenset(kept.values())
        choosing = choosing_macros(macros) if kept else ""
        for unit in cut_units(paths):
            text = text_of(unit)
            typed, beside, own = TYPED.search(text), "", ""
            if unit.as_posix().endswith(BENEATH):
                head = PREAMBLE
            else:
                head = PREAMBLE + KERNEL_HEADER + choosing
                names = frozenset(re.findall(r"\w+", text))
                own = "".join(
                    f"#define ORTRIM_KEPT_{each} , ORTRIM_WHOLE\n" for each, name in kept.items() if name in names
                )
            if types:
                beside = (NO_TYPES_BESIDE if typed else "") + _without_loops(text, types, registered, float16=float16)
            write_if_changed(type_folder(paths, unit) / HEADER, head + beside + own)


def registered_kernels(tables: Iterable[str], macros: str) -> dict[str, str]:
    """Return the class of each kernel that the tables register, and its operator; none at all if any is unclear."""
    names = _class_names(macros)
    kept = {}
    for found in REGISTERED.finditer(COMMENT.sub("", "\n".join(tables))):
        parameters, body = names.get(found["name"], ((), ""))
        values = _words(found["values"] or "")
        if not parameters or len(values) != len(parameters) or "name" not in parameters:
            return {}
        meaning = dict(zip(parameters, values, strict=True))
        kept["".join(meaning.get(word, word) for word in _line(body).replace(" ", "").split("##"))] = meaning["name"]
    return dict(sorted(kept.items()))


def without_kernels(table: str, macros: str, leaves_out: Callable[[Mapping[str, str]], bool]) -> str:
    """Return a table without the kernels that are left out, as what their class's name is made of says."""
    names = _class_names(macros)

    def chosen(found: re.Match[str]) -> str:
        parameters, _ = names.get(found["name"], ((), ""))
        return "" if leaves_out(dict(zip(parameters, _words(found["values"]), strict=False))) else found[0]

    return ENTRY.sub(chosen, table)


def _is_unused_integer(kernel: Mapping[str, str], types: Types) -> bool:
    """Whether a kernel is for integers, and its operator has types, none of which is that integer's."""
    domain, kind = DOMAINS.get(kernel.get("domain", "")), kernel.get("type")
    if domain is None or kind not in INTEGERS:
        return False
    own = types(domain, kernel["name"])
    used = {each for _, several in (*own.inputs, *own.outputs) for each in several}
    return bool(used) and not own.custom and kind not in used


def _without_loops(source: str, types: Types, registered: frozenset[str], *, float16: bool) -> str:
    """Return what leaves loops for types that no model has, or of operators not `registered`, out of a source."""
    lines: dict[str, None] = {}
    for loops in LOOPS:
        left = _types_left_out(loops, types, registered, float16=float16) if loops.mark in source else ()
        if left:
            lines |= dict.fromkeys((loops.header, loops.declared))
            lines |= dict.fromkeys(loops.refused % each for each in left)
    return "".join(lines)


def _types_left_out(
    loops: Loops, types: Types, registered: frozenset[str], *, float16: bool
) -> tuple[tuple[str, ...], ...]:
    """Return the types that no registered operator needs; one whose types are not known may have any that is used."""
    unused = frozenset() if float16 else frozenset((FLOAT16_NAME, *HALF.values()))
    needed = set()
    for operator in loops.operators:
        if operator in registered or not registered:
            allowed = dict(types("ai.onnx", operator).inputs)
            if not allowed.keys() >= set(range(len(loops.types))):
                needed |= set(product(*loops.types))
                continue
            each = (allowed[place] for place in range(len(loops.types)))
            needed |= set(product(*([loops.computed_as.get(kind, kind) for kind in kinds] for kinds in each)))
    return tuple(each for each in product(*loops.types) if each not in needed or not unused.isdisjoint(each))


def _class_names(macros: str) -> dict[str, tuple[tuple[str, ...], str]]:
    return {
        found["name"]: (_words(found["parameters"]), found["body"])
        for found in DEFINITION.finditer(macros)
        if found["name"].endswith("_CLASS_NAME")
    }


def choosing_macros(macros: str) -> str:
    """Return the macros by which sources define kernels, each of which is nothing for a kernel that is not kept."""
    chosen = [CHOICE]
    for found in DEFINITION.finditer(macros):
        kernel = CLASS.search(found["body"])
        if found["name"].endswith("_EX") and kernel:
            parameters = _words(found["parameters"])
            head = f"({', '.join(parameters)})"
            values = ", ".join("__VA_ARGS__" if each == "..." else each for each in parameters)
            name, own = found["name"], f"ORTRIM_{found['name']}"
            choice = f"ORTRIM_SECOND(ORTRIM_JOINED(ORTRIM_KEPT_, {_line(kernel[1])}))({own}, {values})"
            chosen.append(f"#define {own}{head}{found['body']}\n#undef {name}\n#define {name}{head} {choice}\n")
    return "".join(chosen)


def _words(listed: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in _line(listed).split(",") if word.strip())


def _line(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())
