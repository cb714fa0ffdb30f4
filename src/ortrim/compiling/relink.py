"""Leaving out of a library what nothing in it can reach: link, look, and link again until nothing changes.

That is kernels, and what reads and writes ONNX's messages as files.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.base.command import run
from ortrim.base.files import sha256_of, storage_errors, write_if_changed
from ortrim.base.json import first_fault, from_json
from ortrim.binaries.link_map import read_link_map
from ortrim.binaries.macho.symbols import DefinedSymbol, defined_symbols, yield_to_others
from ortrim.binaries.objects import own_references, read_object
from ortrim.compiling import dead_kernels
from ortrim.compiling.mechanisms import MESSAGES, Mechanisms, avx512_assignments
from ortrim.compiling.plan import BuildJob, digest
from ortrim.compiling.translation_units import ObjectSymbols, symbolic_path
from ortrim.compiling.upstream import CompileOutcome
from ortrim.compiling.workspace import DYLIB, LEFT_OUT, UNREACHED, JobPaths
from ortrim.errors import BuildError

EVERYWHERE: Final = ("${sources}/", "${build}/")
OWN: Final = "/ortrim-"  # begins the names of empty sources that make precompiled headers; see precompiled.cmake
LONGEST_REASON: Final = 300  # characters of ninja's own words that are shown


@dataclass(frozen=True, kw_only=True)
class RelinkStep:
    """An entry of ninja's compilation database: what is made from which file, as far as it matters here."""

    file: str
    output: str


def read_objects(paths: JobPaths, below: tuple[str, ...] = EVERYWHERE) -> tuple[ObjectSymbols, ...]:
    """Read the objects of the tree whose units lie below some folders (all but our hooks' own), with their sources."""
    return tuple(
        ObjectSymbols(unit=unit, defined=defined, undefined=undefined)
        for unit, path in compiled_units(paths, below)
        for defined, undefined in [read_object(path)]
    )


def compiled_units(paths: JobPaths, below: tuple[str, ...] = EVERYWHERE) -> Iterator[tuple[str, Path]]:
    """Yield the units below some folders that are compiled, and their objects."""
    places = {"sources": str(paths.sources), "build": str(paths.build), "hooks": str(paths.hooks)}
    for step in _steps(paths):
        path = paths.configured / step.output
        unit = symbolic_path(step.file, str(paths.configured), **places)
        if path.suffix == ".o" and path.is_file() and unit is not None and unit.startswith(below) and OWN not in unit:
            yield unit, path


def undefined_in(objects: Iterable[ObjectSymbols], roots: Collection[str]) -> frozenset[str]:
    """Return the symbols that no object defines, of those that a link needs which begins with the units `roots`."""
    definers: defaultdict[str, list[ObjectSymbols]] = defaultdict(list)
    pending = []
    for entry in objects:
        for symbol in entry.defined:
            definers[symbol].append(entry)
        if entry.unit in roots:
            pending.append(entry)
    needed: set[str] = set()
    while pending:
        fresh = pending.pop().undefined - needed
        needed |= fresh
        pending.extend(entry for symbol in fresh for entry in definers[symbol])
    return frozenset(symbol for symbol in needed if not definers[symbol])


def _steps(paths: JobPaths) -> tuple[RelinkStep, ...]:
    done = run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured)
    if done.returncode != 0:
        raise _unknown(paths, (done.stderr or done.stdout).strip() or f"exit code {done.returncode}")
    try:
        return from_json(tuple[RelinkStep, ...], done.stdout)
    except ValidationError as error:
        raise _unknown(paths, f"it printed no compilation database: {first_fault(error)}") from error


def _unknown(paths: JobPaths, why: str) -> BuildError:
    hint = f"remove the folder {paths.build}, then run the same command again"
    what = "ninja cannot say what the objects of this tree are made from"
    return BuildError("objects-unknown", what, where=str(paths.configured), why=why[:LONGEST_REASON], hint=hint)


SYMBOL: Final = "ortrim_unreached"
ROOM: Final = 256  # bytes of `resources/cmake/unreached.c`
HOOKS: Final = "${hooks}/"
MLAS: Final = "${sources}/onnxruntime/onnxruntime/core/mlas/lib/"
OF_TABLE: Final = (MLAS, HOOKS)
OF_MESSAGES: Final = ("${sources}/protobuf/", "${build}/MinSizeRel/onnx/")
"""Protobuf, and what protoc makes; `units.cmake` has them compiled whole also where the linker optimises the rest."""
OPTIMIZED: Final = "lto.o"
DATA: Final = (".data", ".rodata", ".tdata", ".init_array")
"""What the sections begin with that may hold the address of a function."""
FUNCTION: Final = ".text."  # what the section of a single function begins with, its name follows
DONE: Final = "unreached.job"
"""Names the job for which the script is complete, and what it holds: another one would give another library."""
WHOLE: Final = Mechanisms()
NO_TABLE: Final = dead_kernels.KernelTable(entries={}, readers={})
LOOKS: Final = 8  # how often a library is looked at; the second look finds nothing new unless kernels ask for kernels


@dataclass(frozen=True, kw_only=True)
class _Tree:
    """MLAS's objects and our own, all that can be read, and what MLAS's refer to themselves: the same at each look."""

    mlas: tuple[ObjectSymbols, ...]
    readable: tuple[ObjectSymbols, ...]
    own: Mapping[str, frozenset[str]]
    optimized: bool
    named: Mapping[str, tuple[DefinedSymbol, ...]]

    def linked(
        self, paths: JobPaths
    ) -> tuple[tuple[dead_kernels.LinkedObject, ...], tuple[dead_kernels.LinkedObject, ...]]:
        """Return MLAS's objects and all readable ones, with what the last link took of them; LTO's are one."""
        sections = _sections_by_unit(paths, self.named) if self.named else _sections_by_file(paths)
        mlas, readable = _linked(self.mlas, self.own, sections), _linked(self.readable, {}, sections)
        if not self.optimized:
            return mlas, readable
        defined, undefined = read_object(paths.configured / OPTIMIZED)
        optimized = dead_kernels.LinkedObject(
            source=OPTIMIZED,
            defined=defined,
            undefined=undefined,
            live=True,
            data=True,
            functions=None,
            own=frozenset(),
        )
        return mlas, (*readable, optimized)


def leave_out_unreached(
    paths: JobPaths,
    job: BuildJob,
    linked: CompileOutcome,
    link: Callable[[], CompileOutcome],
    on_note: Callable[[str], None],
    *,
    table: dead_kernels.KernelTable,
    mechanisms: Mechanisms = WHOLE,
) -> CompileOutcome:
    """Link a library again without what nothing in it reaches; `linked` is the link before.

    The first link leaves all out, and each later one takes back what turned out to be asked for, so that the rest
    depends on nothing but the job. A link that fails is the outcome: were all kernels kept then, a machine short of
    memory would give another library of the same digest.
    """
    if not table.entries:
        return linked
    done = paths.hooks / DONE
    tree = _tree(paths, job)
    link = link if job.target.is_elf else partial(_link_in_favour, paths, link)
    if not _is_done(paths, job):
        mlas, readable = tree.linked(paths)
        methods = frozenset[str]() if MESSAGES in mechanisms.left_out else dead_kernels.message_methods(readable)
        linked = _link_without(dead_kernels.table_kernels(table, mlas) | methods, paths, table, link)
    for _ in range(LOOKS):
        left_out = read_script(paths)
        if linked.failed:
            return linked
        mlas, readable = tree.linked(paths)
        reached = dead_kernels.reached_kernels(left_out, table, mlas) | dead_kernels.wanted_methods(left_out, readable)
        if not reached:
            write_if_changed(done, done_text(paths, job))
            return linked
        linked = _link_without(left_out - reached, paths, table, link)
    on_note("dead kernels cannot be found: all kernels are kept")
    return _link_without(frozenset(), paths, table, link)


def table_of(job: BuildJob, texts: Mapping[str, str]) -> dead_kernels.KernelTable:
    """Return the table of MLAS's kernels for a job, out of `mlas_texts`."""
    after = texts[dead_kernels.AVX512_NCHWC] if job.nchwc_block_size == 16 else ""
    constructor = texts.get(dead_kernels.CONSTRUCTORS[0], "")
    superseded = dead_kernels.superseded_kernels(constructor, job.cpu, after)
    float16 = dead_kernels.FLOAT16 not in job.without_types
    return dead_kernels.kernel_table(
        texts, superseded | dead_kernels.idle_kernels(texts, job.few_bits, float16=float16)
    )


def leave_out(paths: JobPaths, job: BuildJob, kernels: frozenset[str], table: dead_kernels.KernelTable) -> None:
    """Have a job's first link do without kernels that are not compiled, unless the script is complete already.

    An index does not know those of them that only our own sources put into the table. Of a script it does no harm to
    name kernels that are there; our own definitions would be second ones.
    """
    if not _is_done(paths, job):
        named = table.entries.keys() if kernels and job.target.is_elf else frozenset[str]()
        write_script(paths, kernels | named, table)


def forget_unreached(paths: JobPaths, job: BuildJob) -> None:
    """Empty the script that another job left in a kept tree: a link asks for nothing that the script gives it."""
    if not _is_done(paths, job):
        write_script(paths, ())


def done_text(paths: JobPaths, job: BuildJob) -> str:
    """Return what says that script and definitions, as they are, are complete for a job."""
    with storage_errors(paths.hooks):
        return " ".join((digest(job), *(sha256_of(paths.hooks / name) for name in (UNREACHED, LEFT_OUT))))


def _is_done(paths: JobPaths, job: BuildJob) -> bool:
    """Whether the last link is what a job came to; if not, it is no longer known what the last link is."""
    done = paths.hooks / DONE
    with storage_errors(done):
        if done.exists() and done.read_text(encoding="utf-8") == done_text(paths, job):
            return True
        done.unlink(missing_ok=True)
        return False


def _link_without(
    symbols: frozenset[str], paths: JobPaths, table: dead_kernels.KernelTable, link: Callable[[], CompileOutcome]
) -> CompileOutcome:
    write_script(paths, symbols, table)
    return link()


def _link_in_favour(paths: JobPaths, link: Callable[[], CompileOutcome]) -> CompileOutcome:
    """Link with a linker that has no scripts: what is left out gives way to our own definitions."""
    for archive in sorted(paths.configured.rglob("*.a")):
        yield_to_others(archive, read_script(paths))
    return link()


def write_script(paths: JobPaths, symbols: Iterable[str], table: dead_kernels.KernelTable = NO_TABLE) -> None:
    """Say which symbols the next link leaves out, those in `table` as code; beyond `ROOM` some share an address."""
    numbered = tuple(enumerate(sorted(symbols)))
    places = (
        (symbol, f"{SYMBOL}_call" if table.is_called(symbol) else f"{SYMBOL} + {number % ROOM}")
        for number, symbol in numbered
    )
    lines = (f'"{symbol}" = {place};\n' for symbol, place in places)
    definitions = (
        f'ORTRIM_LEFT_OUT{"_CALL" * table.is_called(symbol)}({number}, "{symbol}")\n' for number, symbol in numbered
    )
    write_if_changed(paths.hooks / LEFT_OUT, "".join(definitions))
    write_if_changed(paths.hooks / UNREACHED, "".join(lines))


def read_script(paths: JobPaths) -> frozenset[str]:
    """Return the symbols that the last link left out."""
    script = paths.hooks / UNREACHED
    with storage_errors(script):
        return frozenset(line.split('"')[1] for line in script.read_text(encoding="utf-8").splitlines())


def mlas_texts(paths: JobPaths) -> dict[str, str]:
    """Return the texts of MLAS's sources and headers, and of what fills its table in our own, by base name, joined."""
    texts: dict[str, str] = {}
    folder = Path(paths.resolve(MLAS))
    with storage_errors(folder):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            texts[file.name] = texts.get(file.name, "") + file.read_text(encoding="utf-8", errors="replace")
    return texts | dict(zip(dead_kernels.AVX512_SOURCES, avx512_assignments(texts), strict=True))


def _tree(paths: JobPaths, job: BuildJob) -> _Tree:
    """Read the tree's objects; of those that the linker optimises the compiler's own code is all there is."""
    readable = OF_MESSAGES if job.build_options.lto else EVERYWHERE
    units = (*readable, MLAS, HOOKS)
    objects = read_objects(paths, units)
    return _Tree(
        mlas=tuple(each for each in objects if each.unit.startswith(OF_TABLE)),
        readable=tuple(each for each in objects if each.unit.startswith(readable)),
        own={unit: own_references(path) for unit, path in compiled_units(paths, (MLAS,))},
        optimized=job.build_options.lto,
        named={} if job.target.is_elf else {unit: defined_symbols(path) for unit, path in compiled_units(paths, units)},
    )


def _linked(
    objects: Iterable[ObjectSymbols], own: Mapping[str, frozenset[str]], sections: Mapping[str, set[str]]
) -> tuple[dead_kernels.LinkedObject, ...]:
    return tuple(
        dead_kernels.LinkedObject(
            source=name,
            defined=each.defined,
            undefined=each.undefined,
            live=bool(code := _beginning(taken, ".text")),
            data=bool(_beginning(taken, *DATA)),
            functions=_functions(code),
            own=own.get(each.unit, frozenset()),
        )
        for each in objects
        for name in [each.unit.rsplit("/", 1)[1]]
        for taken in [sections.get(each.unit, sections.get(f"{name}.o", set()))]
    )


def _beginning(sections: Iterable[str], *words: str) -> frozenset[str]:
    return frozenset(section for section in sections if section.startswith(words))


def _functions(sections: frozenset[str]) -> frozenset[str] | None:
    """Return the functions whose sections these are; None when several may share one."""
    named = frozenset(section.removeprefix(FUNCTION) for section in sections if section.startswith(FUNCTION))
    return named if len(named) == len(sections) else None


def _sections_by_unit(paths: JobPaths, named: Mapping[str, tuple[DefinedSymbol, ...]]) -> dict[str, set[str]]:
    """Return by units what a map would say, of the symbols of a Mach-O library: zig's linker writes no map.

    What is left out is nobody's. A symbol that several objects define, such as a template's function, is of those of
    which more is there, or else of all; if some do not deal with the table, it knows nothing of the table.
    """
    kept = {symbol.name for symbol in defined_symbols(paths.configured / DYLIB)} - read_script(paths)
    times = Counter(name for symbols in named.values() for name in {each.name for each in symbols})
    outside = (symbols for unit, symbols in named.items() if not unit.startswith(OF_TABLE))
    kept -= {each.name for symbols in outside for each in symbols if times[each.name] > 1}
    there = {unit: [each for each in symbols if each.name in kept] for unit, symbols in named.items()}
    live = {unit for unit, symbols in there.items() if any(times[each.name] == 1 for each in symbols)}
    placed = {each.name for unit in live for each in there[unit]}
    return {
        unit: {each.elf_section for each in symbols if unit in live or each.name not in placed}
        for unit, symbols in there.items()
    }


def _sections_by_file(paths: JobPaths) -> dict[str, set[str]]:
    """Return the sections that the last link took, by the base names of objects, those in archives, too."""
    found = defaultdict[str, set[str]](set)
    for output in read_link_map(paths.link_map):
        for inner in output.inputs:
            if inner.size_bytes:
                name = inner.file.removesuffix(")").rsplit("/", 1)[-1].rsplit("(", 1)[-1]
                found[name].add(inner.section)
    return found
