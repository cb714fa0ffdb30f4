"""Kernels that a build does without: those of MLAS's table of the processor that nothing reads. Pure.

Constructors put the best kernels for the processor into the entries of `struct MLAS_PLATFORM`, and so name every kernel
there is; the sources that compute read single entries. Upstream: core/mlas/lib/{mlasi.h,platform.cpp}.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from ortrim.models.operators import FEW_BITS, ModelUses, RequiredOperators

AVX512_KERNELS: Final = "avx512_kernels.cc"
AVX512_NCHWC: Final = "avx512_nchwc.cc"
AVX512_SOURCES: Final = (AVX512_KERNELS, AVX512_NCHWC)
"""Ours in `resources/cmake`, for the kernels that minimal builds go without."""
AVX512_CONVOLUTIONS: Final = "avx512_convolutions.cc"
"""Ours there, with convolution kernels of its own for NCHWc layout, block size 8."""
NEON_CONVOLUTIONS: Final = "neon_convolutions.cc"
"""The same for ARM64, where models in that layout do not run without."""
WINOGRAD: Final = "winograd_filters.h"
"""Ours, by which convolutions in that layout come to fewer products."""
WINOGRAD_AVX2: Final = "winograd_avx2.cc"
"""Those on x64; ARM64's source has them inside."""
HARD_SWISH: Final = "hard_swish.h"
"""Ours, by which hard-swish of such models takes one pass."""
FOUR_BITS: Final = "four_bits.h"
"""Ours, for products with weights of 4 bits on ARM64."""
DEPTHWISE: Final = "depthwise_convolutions.h"
"""Ours, for depthwise convolutions in plain layout."""
CONSTRUCTORS: Final = ("platform.cpp", *AVX512_SOURCES)  # what fills the table: upstream's, and ours
DECLARATIONS: Final = "mlasi.h"
STRUCTURE: Final = re.compile(r"^struct MLAS_PLATFORM \{.*?^\};", re.DOTALL | re.MULTILINE)
ASSIGNED: Final = re.compile(r"(?:this->|table\.)(\w+)(?:\[\w+\])?\s*=\s*&?([A-Za-z_]\w*)")
CALL_FOR_ENTRY: Final = re.compile(r"(?:this->|table\.)\w+(?:\[\w+\])?\s*=\s*&?([A-Za-z_]\w*)\s*\(")
"""An entry that a function returns, as that for products of 4 bits on ARM64 from 1.22 on."""
DEFAULT: Final = re.compile(r"(\w+)\{&(\w+)\}")
NUMBER: Final = re.compile(r"^\s*static constexpr \w+ (\w+) = \d", re.MULTILINE)
CONSTANTS: Final = frozenset({"nullptr", "true", "false"})
"""What stands in an entry and is no kernel, beside numbers with names."""
INCLUDED: Final = re.compile(r'^\s*#\s*include\s*"(?:[^"\n]*/)?([^"/\n]+)"', re.MULTILINE)
WORD: Final = re.compile(r"\w+")
OF_MLAS: Final = re.compile(r"\bMlas\w+")
CALLED: Final = re.compile(r"[.>](\w+)\s*(?:->|\()")
"""How the constructor's own source would use a kernel; it may compare entries, for which an address is enough."""
IGNORED: Final = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
"""Comments, and the lines of the preprocessor: what stands between these counts, whichever way it decides."""
GETTER: Final = re.compile(
    r"\b(\w+)\(\s*(?:void)?\s*\)\s*\{\s*return\s+GetMlasPlatform\(\)\.(\w+);\s*(?:return\s+\w+;\s*)?\}"
)
"""A function that does nothing but return an entry, or a number where there is none."""
ASKER: Final = re.compile(
    r"\b(\w+)\(\s*(?:void)?\s*\)\s*\{\s*return\s+MLAS_CPUIDINFO::GetCPUIDInfo\(\)\.\w+\(\);\s*(?:return\s+\w+;\s*)?\}"
)
"""A function that does nothing but ask what the processor has, such as MlasFp16AccelerationSupported (halfgemm.cpp)."""
PROCESSOR: Final = re.compile("_ZNK?13MLAS_CPUIDINFO")  # what such a function calls, when it is no part of it
NO_CALL: Final = r"\b(?!\s*(?:[(\[.]|->|::))"
COMPARISON: Final = re.compile(
    rf"GetMlasPlatform\(\)\.\w+\s*[!=]=\s*&?(?P<kernel>\w+){NO_CALL}"
    rf"|(?<![\w.>:])&?(?P<first>\w+)\s*[!=]=\s*GetMlasPlatform\(\)\.\w+{NO_CALL}"
)
"""An entry that is compared with a kernel: for that an address is enough, and `unreached.c` has one for each."""


@dataclass(frozen=True, kw_only=True)
class KernelTable:
    """For each kernel, by its plain name, the entries it may stand in; for each entry, the sources that may use it.

    Sources go by their base names. `getters` only return an entry without kernels, or what the processor has.
    `compared` are the kernels that a source names for comparisons alone. `called` are functions that the constructor
    calls for the kernels that they return, `others` what it names of MLAS that is no kernel.
    """

    entries: Mapping[str, frozenset[str]]
    readers: Mapping[str, frozenset[str]]
    getters: frozenset[str] = frozenset()
    compared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    called: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def names_beside_kernels(self, symbol: str) -> bool:
        """Whether the constructor names something, mangled or not, that is no kernel."""
        return any(symbol == name or _mangles(symbol, name) for name in self.others)

    def only_gets(self, symbol: str) -> bool:
        """Whether a function, mangled or not, is one of the `getters`, or asks the processor on their behalf."""
        spelled = (each for name in self.getters for each in (name, f"_Z{len(name)}{name}v", f"_ZL{len(name)}{name}v"))
        return bool(PROCESSOR.match(symbol)) or symbol in spelled

    def only_compares(self, source: str, symbol: str) -> bool:
        """Whether a source names a kernel, mangled or not, for nothing but comparisons with entries."""
        kernels = self.compared.get(source, frozenset())
        return any(symbol == kernel or _mangles(symbol, kernel) for kernel in kernels)

    def is_called(self, symbol: str) -> bool:
        """Whether the constructor calls a function, mangled or not, for what stands in an entry."""
        return any(symbol == function or _mangles(symbol, function) for function in self.called)

    def users(self, symbol: str) -> frozenset[str] | None:
        """Return the sources that may use a kernel, mangled or not, by way of the table; None for what is no kernel."""
        named = [entries for kernel, entries in self.entries.items() if symbol == kernel or _mangles(symbol, kernel)]
        if not named:
            return None
        return frozenset[str]().union(*(self.readers[entry] for entries in named for entry in entries))


def kernel_table(sources: Mapping[str, str], superseded: Collection[str] = ()) -> KernelTable:
    """Read the table out of the texts of MLAS's sources and headers, by base name.

    A source uses an entry when it, or a header that it includes by whatever way, has the entry's name outside a
    comparison. Kernels that are `superseded` stand in no entry. Where the table is not found, there are no kernels in
    it.
    """
    entries = table_entries(sources, superseded)
    if not entries:
        return KernelTable(entries={}, readers={})
    constructors = {name: sources[name] for name in CONSTRUCTORS if name in sources}
    declarations = sources[DECLARATIONS]
    words = {name: frozenset(WORD.findall(COMPARISON.sub("", text))) for name, text in sources.items()}
    words[DECLARATIONS] = frozenset(WORD.findall(STRUCTURE.sub("", declarations, count=1)))
    words |= {name: frozenset(CALLED.findall(text)) for name, text in constructors.items()}
    seen = {name: _with_headers(name, sources) for name in sources}
    every = frozenset[str]().union(*entries.values())
    readers = {
        entry: frozenset(name for name in sources if any(entry in words[file] for file in seen[name]))
        for entry in every
    }
    compared = {name: _only_compared(text, seen[name] - {DECLARATIONS}, words) for name, text in sources.items()}
    return KernelTable(
        entries=entries,
        readers=readers,
        getters=_getters(sources.values(), every),
        compared=compared,
        called=frozenset(name for text in constructors.values() for name in CALL_FOR_ENTRY.findall(text)),
        others=frozenset(name for text in constructors.values() for name in OF_MLAS.findall(text)) - entries.keys(),
    )


def table_entries(sources: Mapping[str, str], superseded: Collection[str] = ()) -> dict[str, frozenset[str]]:
    """Return the entries that each kernel may stand in, none for one that is superseded; see `kernel_table`."""
    structure = STRUCTURE.search(sources.get(DECLARATIONS, ""))
    if structure is None:
        return {}
    entries: dict[str, frozenset[str]] = {}
    assigned = [found for name in CONSTRUCTORS for found in ASSIGNED.findall(sources.get(name, ""))]
    numbers = CONSTANTS.union(*(NUMBER.findall(text) for text in sources.values()))
    for entry, kernel in (*assigned, *DEFAULT.findall(structure[0])):
        if kernel in numbers:
            continue
        entries[kernel] = entries.get(kernel, frozenset()) | (set() if kernel in superseded else {entry})
    return entries


def _only_compared(text: str, files: Iterable[str], words: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return what a source compares with entries, and neither it nor a header with inline functions names otherwise."""
    found = frozenset(each["kernel"] or each["first"] for each in COMPARISON.finditer(text))
    return found.difference(*(words[file] for file in files))


def _getters(texts: Iterable[str], kernels: Collection[str]) -> frozenset[str]:
    """Return the functions, none written twice, that ask the processor, or return an entry that is for no kernel."""
    plain = [IGNORED.sub("", text) for text in texts]
    found = [getter for text in plain for getter in GETTER.findall(text)]
    found += [(name, "") for text in plain for name in ASKER.findall(text)]
    names = [name for name, _ in found]
    return frozenset(name for name, entry in found if entry not in kernels and names.count(name) == 1)


def _mangles(symbol: str, kernel: str) -> bool:
    return symbol.startswith("_Z") and f"{len(kernel)}{kernel}" in symbol


def _with_headers(name: str, sources: Mapping[str, str]) -> frozenset[str]:
    seen, pending = {name}, [name]
    while pending:
        fresh = {file for file in INCLUDED.findall(sources[pending.pop()]) if file in sources} - seen
        seen |= fresh
        pending.extend(fresh)
    return frozenset(seen)


COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CALL: Final = re.compile(r"\b(?P<name>[A-Za-z_]\w*)\s*\(")
DEFINITION: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<body>(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
REGISTERS: Final = re.compile(r"ONNX_(CPU_)?OPERATOR_\w*KERNEL(_EX)?")
"""Upstream's own macros; those that only name a kernel's class end in `_CLASS_NAME`."""
REGISTRATION_INCLUDED: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"(?P<path>[^"\n]+)"', re.MULTILINE)


def cold_kernels(texts: Mapping[str, str], operators: Iterable[str]) -> tuple[str, ...]:
    """Return the sources that register kernels, of which no hot operator has use, in order.

    `texts` are kernels' sources and headers by the paths by which they include each other. `operators` are named
    `domain:OpType`; kernels of the same name in another domain count for them. In use is a source that registers one
    of them, and one whose header such a source includes, at whatever distance. Sources that register nothing stay out.
    """
    names = frozenset(operator.rpartition(":")[2] for operator in operators)
    words = {path: registering_words(text) for path, text in texts.items() if path.endswith(".cc")}
    used = _in_use(texts, [path for path, found in words.items() if not found.isdisjoint(names)])
    return tuple(sorted(path for path, found in words.items() if found and path not in used))


def registering_words(text: str) -> frozenset[str]:
    """Return all words that a source's registrations of kernels are given, the names of the operators among them.

    A registration is a call of upstream's macros or of one of the source's own that comes down to them. Empty for a
    source that registers nothing.
    """
    plain = COMMENT.sub(" ", text)
    macros = _registering_macros(plain)
    calls = (call for call in CALL.finditer(plain) if call["name"] in macros)
    return frozenset(word for call in calls for word in re.findall(r"\w+", _arguments(plain, call.end())))


def _registering_macros(text: str) -> frozenset[str]:
    found = {call["name"] for call in CALL.finditer(text) if REGISTERS.fullmatch(call["name"])}
    words = {each["name"]: frozenset(re.findall(r"\w+", each["body"])) for each in DEFINITION.finditer(text)}
    while more := {name for name, body in words.items() if not body.isdisjoint(found)} - found:
        found |= more
    return frozenset(found)


def _arguments(text: str, start: int) -> str:
    depth = 1
    for bracket in re.finditer(r"[()]", text[start:]):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return text[start : start + bracket.start()]
    return text[start:]


def _in_use(texts: Mapping[str, str], sources: Iterable[str]) -> frozenset[str]:
    """Return sources, what they include, and the sources that implement that, at whatever distance."""
    found, waiting = set(sources), list(sources)
    while waiting:
        path = waiting.pop()
        new = {each["path"] for each in REGISTRATION_INCLUDED.finditer(texts[path])} & texts.keys()
        new |= set(_implementing(texts, path))
        waiting += new - found
        found |= new
    return frozenset(found)


def _implementing(texts: Mapping[str, str], header: str) -> Iterator[str]:
    """Yield the sources beside a header whose names begin its own: `concat.cc` for `concatbase.h`."""
    path = PurePosixPath(header)
    for length in range(1, len(path.stem) + 1):
        source = str(path.with_name(f"{path.stem[:length]}.cc"))
        if path.suffix == ".h" and source in texts:
            yield source


FLOORS: Final = ("x86-64-v3", "x86-64-v4")  # Processors, as buildspecs name them, that have AVX2 and FMA
BRANCH: Final = "Check if the processor supports AVX2/FMA3 features."  # Upstream's words before the branch
SLOT: Final = re.compile(r"(?:this->|table\.)(\w+(?:\[\w+\])?)\s*=\s*&?([A-Za-z_]\w*)")


def superseded_kernels(constructor: str, cpu: str, after: str = "") -> frozenset[str]:
    """Return the plain names of kernels that are put into the table and replaced again on each processor from `cpu` on.

    `after` is the text of what fills entries after the constructor, whatever the processor. None for another baseline,
    or when the branch is not found.
    """
    mark = constructor.find(BRANCH)
    start = constructor.find("{", mark)
    if cpu not in FLOORS or mark == -1 or start == -1:
        return frozenset()
    branch, rest = own_statements(constructor[start:])
    taken = SLOT.findall(constructor[:start] + branch + after)
    last = frozenset(dict(taken).values())
    return frozenset(kernel for _, kernel in taken) - last - frozenset(kernel for _, kernel in ASSIGNED.findall(rest))


LOOKUP: Final = "LutGenKernel"
"""The entry, from 1.24 on, for products with weights of 2 bits that a session's option has looked up in tables."""
FUNCTIONS: Final = re.compile(r"^struct (MLAS_\w+_DISPATCH) \{(.*?)^\};", re.DOTALL | re.MULTILINE)
FUNCTION: Final = re.compile(r"\btypedef\b[^;]*;")
TABLE_OF: Final = re.compile(r"\bconst (MLAS_\w+_DISPATCH)\* (\w+)\b")
HALF: Final = "MLAS_FP16"


def idle_kernels(sources: Mapping[str, str], used: Collection[tuple[int, int]], *, float16: bool) -> frozenset[str]:
    """Return the plain names of what stands only in entries that are read for no model.

    Without `float16` these are the entries with tables of functions that all take 16-bit floats; and that for weights
    of 2 bits, unless products have some: `used` are the bits and accuracy levels of all products, none when one is
    unknown. Who asks for it with other bits is refused whatever stands there (core/mlas/lib/qlutgemm.cpp).
    """
    bodies = dict(found for text in sources.values() for found in FUNCTIONS.findall(IGNORED.sub("", text)))
    half = {name for name, body in bodies.items() if all(HALF in each for each in FUNCTION.findall(body) or [""])}
    idle = {entry for name, entry in TABLE_OF.findall(sources.get(DECLARATIONS, "")) if not float16 and name in half}
    idle |= {LOOKUP} if used and 2 not in {bits for bits, _ in used} else set()
    return frozenset(kernel for kernel, entries in table_entries(sources).items() if entries and entries <= idle)


def own_statements(block: str) -> tuple[str, str]:
    """Return what stands in a block that begins a text, blocks within it left out, and all else of the text."""
    own, others, depth = "", "", 0
    for position, piece in enumerate(parts := re.split(r"([{}])", block)):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if position and depth == 0:
            return own, others + "".join(parts[position:])
        if depth == 1:
            own += piece
        else:
            others += piece
    return own, others


@dataclass(frozen=True, kw_only=True)
class LinkedObject:
    """An object: its source's base name, its symbols, and what of its code is in the library.

    `live` says whether any of it is, `functions` names what is, as far as each function lies in a section of its own;
    None where that is not so. `data` says whether any of its data are, such as a table of functions. `own` are the
    symbols that it defines and itself refers to by name.
    """

    source: str
    defined: frozenset[str]
    undefined: frozenset[str]
    live: bool
    data: bool = False
    functions: frozenset[str] | None = None
    own: frozenset[str] = frozenset()


def table_kernels(table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return the symbols of all kernels that the table's constructors name, or another source for comparisons alone."""
    return frozenset(
        symbol
        for each in objects
        for symbol in each.undefined
        if table.users(symbol) is not None and (each.source in CONSTRUCTORS or table.only_compares(each.source, symbol))
    )


GLOBALS: Final = re.compile(r"startup$|_ZNK?St")
"""The section of what makes a source's globals, without its `.text.`, and methods of std."""


def reached_kernels(left_out: frozenset[str], table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return those of the kernels left out of a library that code in it may ask for.

    That is code that uses an entry of the table in which they may stand, or code or data that name them for more than
    comparisons, also in the object that defines them. An object of which nothing but `getters` of the table is in the
    library asks for none. What makes a source's globals uses no entry; the linker keeps it of each object it opens.
    """
    live = tuple(each for each in objects if each.live and not _has_only(each, table.only_gets))
    names = (*live, *(each for each in objects if each.data))
    uses = (each for each in live if not _has_only(each, GLOBALS.match))
    sources = frozenset(each.source for each in uses) | frozenset(CONSTRUCTORS)
    own = frozenset[str]().union(*(each.own for each in names))
    named = frozenset(
        symbol
        for each in names
        if each.source not in CONSTRUCTORS
        for symbol in each.undefined & left_out
        if not table.only_compares(each.source, symbol)
    )
    asked = frozenset(symbol for symbol in left_out if (table.users(symbol) or frozenset()) & sources)
    return asked | named | left_out & own


def _has_only(linked: LinkedObject, kind: Callable[[str], object]) -> bool:
    return bool(linked.functions) and all(map(kind, linked.functions or ()))


SOURCE: Final = "onnx-ml.pb.cc"  # what protoc makes: the messages, and of each what reads and writes it
READERS: Final = ("parse_context.cc", "coded_stream.cc")
"""Protobuf's own sources through which all reading and all writing goes."""
BASE: Final = "message_lite.cc"
"""What all messages have in common: functions that read or write any message, and some that do not."""
ANY_MESSAGE: Final = re.compile(
    "(?!_ZN6google8protobuf11MessageLite14_InternalParse).*(Parse|Serialize|ByteSize|Append)"
)
"""Of what such functions are called; the one method that has no override in a message reads nothing."""
METHOD: Final = re.compile(r"_ZNK?4onnx\w+(14_InternalParseEPKc|18_InternalSerializeEPh|12ByteSizeLongE)\w+")


def message_methods(objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return the symbols of what reads and writes ONNX's messages."""
    return frozenset(
        name for each in objects if each.source == SOURCE for name in each.defined if METHOD.fullmatch(name)
    )


def wanted_methods(left_out: frozenset[str], objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return those of the methods left out of a library that code in it may ask for: all of them or none.

    All as soon as protobuf's own code for reading or writing is in the library without them, or another object names
    one.
    """
    methods = frozenset(filter(METHOD.fullmatch, left_out))
    others = tuple(each for each in objects if each.source != SOURCE)
    named = frozenset[str]().union(*(each.undefined for each in others if each.live or each.data))
    reads_or_writes = any(_reads_or_writes(each) for each in others if each.live)
    return methods if reads_or_writes or methods & named else frozenset()


def _reads_or_writes(linked: LinkedObject) -> bool:
    """Whether an object of which some code is in the library may call the methods of whatever message it is given.

    Of what all messages have in common, functions go by their names, and any counts where these are not known.
    """
    if linked.source == BASE:
        return linked.functions is None or any(map(ANY_MESSAGE.match, linked.functions))
    return linked.source in READERS


FLOAT8: Final = "float8"
OPTIONAL: Final = "optional"
SPARSE: Final = "sparsetensor"
OF_UPSTREAM: Final = (FLOAT8, OPTIONAL, SPARSE)  # what upstream can leave out by itself, and calls so
FLOAT16: Final = "float16"
KINDS: Final = (FLOAT16, *OF_UPSTREAM)
"""All kinds; without 16-bit floats go the kernels that ARM64 has for them, which upstream registers for models without
any (core/providers/cpu/fp16): `resources/cmake/without_float16.h`."""

OPTIONAL_OPERATORS: Final = frozenset({"Optional", "OptionalGetElement", "OptionalHasElement"})
SPARSE_OPERATORS: Final = frozenset({"SparseToDenseMatMul"})
FLOAT8_PREFIX: Final = "Float8"
FLOAT16_NAME: Final = "MLFloat16"


def unused_types(operators: RequiredOperators, models: Sequence[ModelUses]) -> tuple[str, ...]:
    """Return the kinds in `KINDS`, in order, that a library with these operators for these models can do without.

    None when all operators are required, when there is no model, and no floats as soon as the type of a single value
    is not known.
    """
    if operators.everything or not models:
        return ()
    asked = (operator for model in models for operator in (*(use.operator for use in model.uses), *model.saved))
    names = {operator.name for operator in (*operators.operators, *asked)}
    kinds = {kind for model in models for kind in model.element_types}
    used = {
        FLOAT16: not kinds.isdisjoint({"", FLOAT16_NAME}),
        FLOAT8: any(not kind or kind.startswith(FLOAT8_PREFIX) for kind in kinds),
        OPTIONAL: not names.isdisjoint(OPTIONAL_OPERATORS),
        SPARSE: not names.isdisjoint(SPARSE_OPERATORS) or any(model.sparse for model in models),
    }
    return tuple(kind for kind in KINDS if not used[kind])


DISPATCH: Final = re.compile(r"^struct MLAS_QNBIT_GEMM_DISPATCH \{.*?^\};", re.DOTALL | re.MULTILINE)
DISPATCHED: Final = re.compile(r"^\s*\w+_Fn\* (\w+) = nullptr;", re.MULTILINE)
OTHER_BITS: Final = re.compile(r"S?Q[28]Bit\w+")
OF_FLOATS: Final = re.compile(r"SQ4Bit\w+_CompFp32")
"""Functions of products whose first factor stays float32: those of any accuracy level but 4."""
QUANTIZED_LEVEL: Final = 4
EXPERTS: Final = "QMoE"


def few_bits(models: Iterable[ModelUses]) -> tuple[tuple[int, int], ...]:
    """Return the bits and accuracy levels of all models' products with weights of few bits; none if one is unknown.

    A mixture of experts calls the same functions (upstream's pull request 32644).
    """
    known = tuple(models)
    operators = {use.operator.name for model in known for use in model.uses}
    if EXPERTS in operators or any(operator.name == FEW_BITS for model in known for operator in model.saved):
        return ()
    return tuple(sorted({each for model in known for each in model.few_bits}))


def unused_functions(header: str, used: Collection[tuple[int, int]]) -> tuple[str, ...] | None:
    """Return the functions of MLAS's table for weights of few bits on x64 that no model's products call.

    These are those for 8 and 2 bits where all have 4, and those that multiply floats where all are at level 4. `used`
    are the bits and accuracy levels of all products. None when the table is not found. At level 4 upstream's operator
    asks only for functions that every table of x64 has; where one is missing it takes another way, which is right, too
    (contrib_ops/cpu/quantization/matmul_nbits.cc).
    """
    table = DISPATCH.search(header)
    names = DISPATCHED.findall(table[0]) if table else ()
    if not names:
        return None
    left = [OTHER_BITS] if {bits for bits, _ in used} == {4} else []
    left += [OF_FLOATS] if all(level == QUANTIZED_LEVEL for _, level in used) else []
    return tuple(name for name in names if any(kind.fullmatch(name) for kind in left))
