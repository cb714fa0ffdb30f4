"""The index of units: which translation unit of ONNX Runtime defines what others need, which holds kernels. Pure.

A unit is named by its source's symbolic path: `${sources}/onnxruntime/onnxruntime/core/graph/graph.cc`, or
`${build}/MinSizeRel/...` for what the build generates. An index comes from one full build and serves every later one:
what it says too much costs time, what it says too little is found by the linker.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass as plain_dataclass
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, FailFast, Field, ValidationError
from pydantic.dataclasses import dataclass

from ortrim.base.cache import cache_folder, is_kept, locked, record_entry
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import first_fault, read_json, to_canonical_json, to_data
from ortrim.buildspec.problems import VERSION
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.dead_kernels import AVX512_KERNELS, AVX512_NCHWC, CONSTRUCTORS, KernelTable
from ortrim.errors import SourcesError, StorageError
from ortrim.models.operators import RequiredOperators
from ortrim.pins.shipped import pin_names, pin_text

CONFIG: Final = ConfigDict(extra="forbid", strict=True)
LARGEST_INDEX: Final = 8 << 20  # characters that an index may have; that of 1.21.0 has a third of a million

WORD: Final = r"^[a-z0-9][a-z0-9_-]{0,127}$"
UNIT: Final = r"^\$\{(sources|build)\}(/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+$"
"""No part begins with a dot, and nothing stands in it that CMake, a shell or ninja would read as anything else."""
SYMBOL: Final = r"^[!-~]+$"
KERNEL: Final = r"^[A-Za-z0-9_.-]+:[A-Za-z_][A-Za-z0-9_]*$"

Word = Annotated[str, Field(pattern=WORD)]
UnitPath = Annotated[str, Field(pattern=UNIT, max_length=1000)]
Symbol = Annotated[str, Field(pattern=SYMBOL, max_length=10_000)]
KernelKey = Annotated[str, Field(pattern=KERNEL, max_length=200)]
UnitNumber = Annotated[int, Field(ge=0)]
UnitNumbers = Annotated[tuple[UnitNumber, ...], FailFast()]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Variant:
    """What an index was made with: `target` is an identifier, `toolchain` a kind; the least glibc is no part."""

    ort_version: Annotated[str, Field(pattern=VERSION)]
    target: Word
    toolchain: Word
    exceptions: bool

    @property
    def stem(self) -> str:
        """The name of the index's file, without its suffix."""
        words = f"onnxruntime-{self.ort_version}-{self.target}-{self.toolchain}"
        return f"{words}-exceptions" if self.exceptions else words


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Unit:
    """One translation unit: the symbols it defines that others need, kernels aside, and the units that it needs."""

    path: UnitPath
    provides: Annotated[tuple[Symbol, ...], FailFast()]
    needs: UnitNumbers


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class UnitIndex:
    """The units in the order of their paths; all else names them by their numbers in that order.

    `roots` are in every library; `kernels` says for each operator (`ai.onnx:Add`) which units hold kernels of it, of
    whatever version and type. Every tuple is sorted and without duplicates, so that equal indices have equal bytes.
    """

    schema: Literal["ortrim-units/1"] = "ortrim-units/1"
    variant: Variant
    roots: UnitNumbers
    units: Annotated[tuple[Unit, ...], FailFast()]
    kernels: Annotated[tuple[tuple[KernelKey, UnitNumbers], ...], FailFast()]

    def __post_init__(self) -> None:
        """Refuse what is not sorted, repeated or out of range."""
        numbers = (self.roots, *(unit.needs for unit in self.units), *(numbers for _, numbers in self.kernels))
        if any(number >= len(self.units) for number in chain.from_iterable(numbers)):
            raise ValueError("it names a unit that it does not have")
        names = (tuple(unit.path for unit in self.units), tuple(key for key, _ in self.kernels))
        ordered: Iterable[tuple[Any, ...]] = chain(numbers, names, (unit.provides for unit in self.units))
        if any(one >= other for values in ordered for one, other in pairwise(values)):
            raise ValueError("something in it is repeated or not sorted")
        if not self.roots:
            raise ValueError("it has no roots")


def read_index(text: str | bytes, where: str = "") -> UnitIndex:
    """Read an index; `where` names the file in errors."""
    if len(text) > LARGEST_INDEX:
        raise bad_index(where, f"it is larger than {LARGEST_INDEX:,} bytes")
    return read_json(UnitIndex, text, bad_index(where, ""))


def render_index(index: UnitIndex) -> str:
    """Write an index as JSON: one line for each unit and each operator; the same index gives the same bytes."""
    fields = ",\n".join(f'"{name}":{_rendered(value)}' for name, value in to_data(index).items())
    return f"{{{fields}}}\n"


def bad_index(where: str, why: str) -> SourcesError:
    """Make the diagnostic of what is not an index."""
    hint = "restore the file, or make it again: invoke pins.index"
    return SourcesError("bad-unit-index", "is not a valid index of units", where=where, why=why, hint=hint)


def _rendered(value: Any) -> str:
    if not isinstance(value, list) or not any(isinstance(entry, dict | list) for entry in value):
        return to_canonical_json(value)
    lines = ",\n".join(map(to_canonical_json, value))
    return f"[\n{lines}\n]"


Owners = Mapping[str, frozenset[str]]  # Operators by the name of an object file, such as `upsample.cc.o`


def object_owners(index: UnitIndex, operators: Collection[str]) -> Owners:
    """Return the object files that a library with these operators has for them, each with those that lead to it.

    Operators are keys such as `ai.onnx:Resize`. Files that every library has are not in it. Files of one name in
    several folders are one, owned by the operators of all of them, or by none when every library has one of them.
    """
    everywhere = _closure(index, index.roots)
    kernels = dict(index.kernels)
    found: dict[str, set[str]] = {}
    for operator in sorted(set(operators) & set(kernels)):
        for number in _closure(index, kernels[operator], everywhere):
            found.setdefault(_object_name(index, number), set()).add(operator)
    common = {_object_name(index, number) for number in everywhere}
    return {name: frozenset(owners) for name, owners in found.items() if name not in common}


def _closure(index: UnitIndex, start: Iterable[int], without: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return the units that some lead to, without those and what they lead to."""
    pending = [number for number in start if number not in without]
    seen = set(pending)
    while pending:
        fresh = set(index.units[pending.pop()].needs) - seen - without
        seen |= fresh
        pending.extend(fresh)
    return frozenset(seen)


def _object_name(index: UnitIndex, number: int) -> str:
    return _base_name(index.units[number]) + ".o"


REDUCED: Final = re.compile(r"\$\{build\}/[^/]+/op_reduction\.generated/")
"""Where a build with fewer operators compiles its copies of upstream's registration files from."""
ORIGINALS: Final = "${sources}/onnxruntime/"
REGISTRATIONS: Final = re.compile(r"\$\{sources\}/onnxruntime/(.*/(?:cpu_execution_provider|cpu_contrib_kernels)\.cc)")


def symbolic_path(file: str, directory: str, *, sources: str, build: str, hooks: str = "") -> str | None:
    """Return the name of the unit whose source is `file`, None for what is neither source nor generated.

    `file` may be relative to `directory`. Without `hooks`, ortrim's own sources are no units. The reduced copy of a
    registration file has its original's name.
    """
    path = posixpath.normpath(posixpath.join(directory, file))
    for name, folder in (("${sources}", sources), ("${build}", build), ("${hooks}", hooks)):
        if not folder:
            continue
        inside = path.removeprefix(posixpath.normpath(folder).rstrip("/") + "/")
        if inside != path:
            return REDUCED.sub(ORIGINALS, f"{name}/{inside}", count=1)
    return None


def compiled_names(unit: str, configuration: str = "MinSizeRel") -> tuple[str, ...]:
    """Return the names under which a build may compile a unit: its own, and that of its reduced copy if it has one."""
    registration = REGISTRATIONS.fullmatch(unit)
    if registration is None:
        return (unit,)
    return unit, f"${{build}}/{configuration}/op_reduction.generated/{registration[1]}"


DOMAINS: Final = {
    "kOnnxDomain": "ai.onnx",
    "kMLDomain": "ai.onnx.ml",
    "kMSDomain": "com.microsoft",
    "kPytorchAtenDomain": "org.pytorch.aten",
    "kMSExperimentalDomain": "com.microsoft.experimental",
    "kMSNchwcDomain": "com.microsoft.nchwc",
    "kMSInternalNHWCDomain": "com.ms.internal.nhwc",
    "kMSDmlDomain": "com.microsoft.dml",
    "kNGraphDomain": "com.intel.ai",
    "kVitisAIDomain": "com.xilinx",
}
"""As `map_ort_constant_to_domain` in upstream's `tools/ci_build/op_registration_utils.py`."""

_REGISTRATION: Final = re.compile(r"21BuildKernelCreateInfoI")
_DEMANGLED: Final = re.compile(r"\bBuildKernelCreateInfo<(?:\w+::)*(k\w+)>")
_LENGTH: Final = re.compile(r"(?:N|St|S[0-9A-Z]*_)*([0-9]{1,4})")
_CLASS: Final = re.compile(rf"k[A-Za-z0-9]+_([A-Za-z_][A-Za-z0-9_]*?)_({'|'.join(DOMAINS)})_ver[0-9]\w*")


def kernel_key(symbol: str) -> str | None:
    """Return the operator that a mangled symbol registers a kernel of, as `ai.onnx:Add`; None for any other."""
    start = _REGISTRATION.search(symbol)
    return _class_key(_template_argument(symbol, start.end())) if start else None


def demangled_kernel_key(symbol: str) -> str | None:
    """Return what `kernel_key` does, from the demangled name `BuildKernelCreateInfo<onnxruntime::kCpu...>()`."""
    argument = _DEMANGLED.search(symbol)
    return _class_key(argument[1]) if argument else None


def _class_key(name: str) -> str | None:
    named = _CLASS.fullmatch(name)
    return f"{DOMAINS[named[2]]}:{named[1]}" if named else None


def _template_argument(symbol: str, position: int) -> str:
    """Return the innermost name of the class that the template argument at `position` is, such as `NS_3foo3barE`."""
    name = ""
    while length := _LENGTH.match(symbol, position):
        position = length.end() + int(length[1])
        name = symbol[length.end() : position]
    return name if symbol[position : position + 1] == "E" else ""


MLAS: Final = "/onnxruntime/core/mlas/lib/"
WIDE_UNITS: Final = {
    AVX512_KERNELS: (
        "convsym.cpp", "qgemm_kernel_avx2.cpp", "intrinsics/avx512/quantize_avx512f.cpp",
        "x86_64/ConvSymKernelAvx512Core.S", "x86_64/QgemmU8X8KernelAvx2.S", "x86_64/QgemmU8X8KernelAvx512Core.S",
        "x86_64/QgemvU8S8KernelAvx512Core.S", "x86_64/QgemvU8S8KernelAvx512Vnni.S", "x86_64/SgemmKernelAvx512F.S",
        "x86_64/SoftmaxKernelAvx512F.S", "x86_64/TransKernelAvx512F.S",
    ),
    AVX512_NCHWC: ("x86_64/SconvKernelAvx512F.S", "x86_64/SpoolKernelAvx512F.S"),
}  # fmt: skip
"""By the source of ours that puts kernels into MLAS's table: where MLAS has them, below its own folder."""
FEW_BITS_UNITS: Final = ("sqnbitgemm_kernel_avx512.cpp", "sqnbitgemm_kernel_avx512vnni.cpp")
"""What `AVX512_KERNELS` names besides for products with weights of few bits."""


def select_units(index: UnitIndex, operators: RequiredOperators) -> tuple[str, ...]:
    """Return the paths of the units that a library with these operators may take, sorted.

    They are all that the roots and the operators' kernels lead to, of whatever opset and type. An operator that the
    index does not know adds nothing: should there be a kernel of it, the link lacks it.
    """
    return _paths(index, _start(index, operators))


def _start(index: UnitIndex, operators: RequiredOperators) -> set[int]:
    keys = {f"{operator.domain}:{operator.name}" for operator in operators.operators}
    chosen = [numbers for key, numbers in index.kernels if operators.everything or key in keys]
    return set(index.roots).union(*chosen)


def unread_units(
    index: UnitIndex, operators: RequiredOperators, wide: Collection[str], table: KernelTable
) -> dict[str, frozenset[str]]:
    """Return the units that only the table of MLAS's kernels leads to, by entries that nothing selected reads.

    With each come the kernels that it defines, by their symbols: what fills the table names them all the same. `wide`
    are units beside those of `select_units`.
    """
    users = {number: each for number, unit in enumerate(index.units) if (each := _users_of(unit, table)) is not None}
    fillers = {number for number, unit in enumerate(index.units) if _base_name(unit) in CONSTRUCTORS}
    chosen = {number for number, unit in enumerate(index.units) if unit.path in wide}
    asked, read = _start(index, operators) | (chosen - users.keys()), set[int]()
    chosen |= _closure(index, _start(index, operators))
    while asked:
        while asked:
            number = asked.pop()
            read.add(number)
            needs = set(index.units[number].needs) - read
            asked |= needs - users.keys() if number in fillers else needs
        names = {_base_name(index.units[number]) for number in read}.union(CONSTRUCTORS)
        asked = {number for number, each in users.items() if number not in read and not each.isdisjoint(names)}
    return {
        index.units[number].path: frozenset(
            symbol for symbol in index.units[number].provides if table.users(symbol) is not None
        )
        for number in sorted(chosen - read)
    }


def _users_of(unit: Unit, table: KernelTable) -> frozenset[str] | None:
    """Return the sources that may use a unit's kernels; None for one without, or with more that fills the table."""
    if MLAS not in unit.path or any(map(table.names_beside_kernels, unit.provides)):
        return None
    found = [users for symbol in unit.provides if (users := table.users(symbol)) is not None]
    return frozenset[str]().union(*found) if found else None


def _base_name(unit: Unit) -> str:
    return unit.path.rsplit("/", 1)[-1]


def wide_units(index: UnitIndex, sources: Collection[str], *, few_bits: bool = False) -> tuple[str, ...]:
    """Return the paths of the units that these of `WIDE_UNITS`' sources name kernels of, with all that these need."""
    more = FEW_BITS_UNITS if few_bits and AVX512_KERNELS in sources else ()
    names = (*(name for source in sources for name in WIDE_UNITS.get(source, ())), *more)
    endings = tuple(f"/mlas/lib/{name}" for name in names)
    named = {number for number, unit in enumerate(index.units) if unit.path.endswith(endings)}
    return _paths(index, named)


def providers(index: UnitIndex, symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the units that provide symbols, mangled, which a link did not find, with all that these need.

    Kernels are found by their operator, whatever opset and type they are for. What some unit defines but none needed of
    another when the index was made is not found.
    """
    known: defaultdict[str, set[int]] = defaultdict(set)
    for number, unit in enumerate(index.units):
        for symbol in unit.provides:
            known[symbol].add(number)
    kernels = dict(index.kernels)
    found = (known.get(symbol) or kernels.get(kernel_key(symbol) or "", ()) for symbol in symbols)
    return _paths(index, set[int]().union(*found))


def _paths(index: UnitIndex, start: Iterable[int]) -> tuple[str, ...]:
    return tuple(index.units[number].path for number in sorted(_closure(index, start)))


Definers = Mapping[str, set[int]]


@plain_dataclass(frozen=True, kw_only=True)
class ObjectSymbols:
    """The symbols that one object defines, global or weak, and those that it needs of others."""

    unit: str
    defined: frozenset[str]
    undefined: frozenset[str]


def make_index(variant: Variant, objects: Iterable[ObjectSymbols], roots: Iterable[str]) -> UnitIndex:
    """Make the index of all objects of a build; `roots` are the units that the link itself names.

    Of a symbol with several definers all are needed. The need of a kernel's registration is left out, so that a kernel
    is compiled only for its operator; a kernel whose operator is not known is needed as any symbol is. A unit that was
    compiled twice is one unit.
    """
    entries = _merged(objects)
    numbers = {entry.unit: number for number, entry in enumerate(entries)}
    asked = sorted(set(roots))
    if absent := [root for root in asked if root not in numbers]:
        raise bad_index(variant.stem, f"its root {absent[0]} was not compiled")
    definers = _definers(entries)
    try:
        return UnitIndex(
            variant=variant,
            roots=tuple(numbers[root] for root in asked),
            units=_units(entries, definers),
            kernels=_kernels(definers),
        )
    except ValidationError as error:
        raise bad_index(variant.stem, first_fault(error)) from error


def _merged(objects: Iterable[ObjectSymbols]) -> tuple[ObjectSymbols, ...]:
    """Return one entry for each unit, in order; it needs only what it does not define itself."""
    found: dict[str, list[ObjectSymbols]] = {}
    for entry in objects:
        found.setdefault(entry.unit, []).append(entry)
    merged = []
    for unit, same in sorted(found.items()):
        defined = frozenset[str]().union(*(entry.defined for entry in same))
        undefined = frozenset[str]().union(*(entry.undefined for entry in same)) - defined
        merged.append(ObjectSymbols(unit=unit, defined=defined, undefined=undefined))
    return tuple(merged)


def _definers(entries: Iterable[ObjectSymbols]) -> Definers:
    definers: defaultdict[str, set[int]] = defaultdict(set)
    for number, entry in enumerate(entries):
        for symbol in entry.defined:
            definers[symbol].add(number)
    return dict(definers)


def _units(entries: tuple[ObjectSymbols, ...], definers: Definers) -> tuple[Unit, ...]:
    undefined = frozenset(chain.from_iterable(entry.undefined for entry in entries))
    wanted = frozenset(symbol for symbol in undefined & definers.keys() if kernel_key(symbol) is None)
    return tuple(
        Unit(
            path=entry.unit,
            provides=tuple(sorted(entry.defined & wanted)),
            needs=_sorted(definers[symbol] for symbol in entry.undefined & wanted),
        )
        for entry in entries
    )


def _kernels(definers: Definers) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found: defaultdict[str, list[set[int]]] = defaultdict(list)
    for symbol, numbers in definers.items():
        if key := kernel_key(symbol):
            found[key].append(numbers)
    return tuple((key, _sorted(numbers)) for key, numbers in sorted(found.items()))


def _sorted(sets: Iterable[set[int]]) -> tuple[int, ...]:
    return tuple(sorted(set[int]().union(*sets)))


LEARNT: Final = "units"


def find_index(variant: Variant, on_note: Callable[[str], None]) -> UnitIndex | None:
    """Return the index of a variant: the shipped one, else the learnt one; None when there is neither."""
    return shipped_index(variant) or learnt_index(variant, on_note)


def nearest_index(variant: Variant) -> UnitIndex | None:
    """Return the index most like that of a variant without one, by version, then kind of target; None without any."""
    found = [read_index(pin_text(name) or "", name) for name in pin_names("units")]
    with suppress(StorageError):
        for path in sorted(cache_folder(LEARNT).glob("*.json")):
            with suppress(SourcesError, StorageError):
                found.append(read_index(_read(path) or b"", str(path)))
    return min(found, key=lambda index: _distance(index.variant, variant), default=None)


def _distance(one: Variant, other: Variant) -> tuple[object, ...]:
    versions = (map(int, re.findall(r"\d+", each.ort_version)) for each in (one, other))
    kinds = ((known.is_elf, known.architecture) for each in (one, other) if (known := TARGETS.get(each.target)))
    return (
        [abs(mine - theirs) for mine, theirs in zip_longest(*versions, fillvalue=0)],
        sum(len(set(both)) for both in zip(*kinds, strict=True)),
        len(set(one.target.split("-")) ^ set(other.target.split("-"))),
        len(set(one.toolchain.split("-")) ^ set(other.toolchain.split("-"))),
        one.exceptions != other.exceptions,
    )


def shipped_index(variant: Variant) -> UnitIndex | None:
    """Return the index that is pinned for a variant, the user's own first; None when there is none."""
    name = f"units/{variant.stem}.json"
    try:
        text = pin_text(name)
    except UnicodeDecodeError as error:
        raise bad_index(name, str(error)) from error
    return None if text is None else _index_of(variant, text, name)


def learnt_index(variant: Variant, on_note: Callable[[str], None] = lambda _: None) -> UnitIndex | None:
    """Return what an earlier full build taught; a file that cannot be read or believed is set aside with a note."""
    try:
        path = cache_folder(LEARNT) / f"{variant.stem}.json"
        content = None if path.is_file() and not is_kept(path) else _read(path)
        return None if content is None else _index_of(variant, content, str(path))
    except (SourcesError, StorageError) as error:
        on_note(f"the index of an earlier build is ignored: {error.where} {error.what} ({error.why})")
        return None


def save_learnt(index: UnitIndex) -> Path:
    """Keep an index for later builds of its variant, in place of any older one; return its file."""
    path = cache_folder(LEARNT) / f"{index.variant.stem}.json"
    with locked(path):  # Until it is recorded, another build would take it for damaged.
        write_atomically(path, render_index(index))
        record_entry(path)
    return path


def _index_of(variant: Variant, text: str | bytes, where: str) -> UnitIndex:
    index = read_index(text, where)
    if index.variant != variant:
        raise bad_index(where, f"it is the index of {index.variant.stem}, not of {variant.stem}")
    return index


def _read(path: Path) -> bytes | None:
    """Return a file's bytes, at most one more than an index may have; None when there is no such file."""
    with storage_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            return file.read(LARGEST_INDEX + 1)
