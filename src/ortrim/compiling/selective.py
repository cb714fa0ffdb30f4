"""Compiling what the link takes by an index, adding what it turns out to miss, and learning from builds without one.

An index of another version or target is a start as well. Kernels in which models spend no time are compiled for size.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from ortrim.base.console import counted
from ortrim.base.files import storage_errors, write_if_changed
from ortrim.compiling import relink, translation_units
from ortrim.compiling.compiler_cache import CompilerCache
from ortrim.compiling.dead_kernels import FLOAT16, KernelTable, cold_kernels
from ortrim.compiling.kept_kernels import QUANTIZED, cut_units, write_kept_kernels
from ortrim.compiling.mechanisms import API_TABLE, ASSIGNMENTS, EXTENSION, HOT_SOURCES, Mechanisms, find_mechanisms
from ortrim.compiling.plan import BuildJob, CompiledUnits
from ortrim.compiling.upstream import (
    KERNELS,
    UNDEFINED,
    CompileOutcome,
    Upstream,
    type_folder,
    typed_units,
    write_type_control,
)
from ortrim.compiling.upstream_arguments import laid_out_sources, wide_sources
from ortrim.compiling.workspace import CONFIGURATION, JobPaths
from ortrim.errors import BinaryError, BuildError, Diagnostic, SourcesError, StorageError, ToolError
from ortrim.models.operators import parse_config


def cold_kernel_sources(paths: JobPaths, operators: Iterable[str]) -> tuple[Path, ...]:
    """Return the sources of kernels that no hot operator has use for, in order; none when every kernel is hot."""
    hot = tuple(operators)
    core = paths.sources / "onnxruntime" / "onnxruntime"
    return tuple(core / name for name in cold_kernels(_texts(core), hot)) if hot else ()


def _texts(core: Path) -> dict[str, str]:
    files = (file for folder in KERNELS for file in (core / folder).rglob("*") if file.suffix in (".cc", ".h"))
    with storage_errors(core):
        return {file.relative_to(core).as_posix(): file.read_text(encoding="utf-8", errors="replace") for file in files}


SELECTION: Final = "selection.cmake"
UNFOUND: Final = re.compile(r"(?:undefined symbol: |undefined reference to `|^ *\"(?=.*, referenced from))(.+)")
"""What a linker did not find, as lld, GNU ld and Apple's linker say it: demangled, a name of C's as it is."""
ARGUMENTS: Final = re.compile(r"\(.*|<.*?>+|\babi:\w+|\blts_\d+::|[\"'].*")
"""What is no name in it: arguments, those of templates, and the namespace in which abseil says its version."""
WORD: Final = re.compile(r"(?!_*\d)_*(\w+)")
"""A name without the underscores before it, with which Apple's linker spells those of C."""


def variant_of(job: BuildJob) -> translation_units.Variant:
    """Return what an index must have been made with to serve a job.

    Execution providers and types that are left out count among the toolchain's words: they bring sources of their own,
    or less of them. The index of all types serves every job.
    """
    without = ("without", *job.without_types) if job.without_types else ()
    return translation_units.Variant(
        ort_version=job.ort_version,
        target=job.target.identifier,
        toolchain="-".join((job.toolchain.kind, *job.providers, *without)),
        exceptions=job.exceptions,
    )


def mentioning(paths: JobPaths, units: Collection[str], lines: Iterable[str]) -> frozenset[str]:
    """Return the units whose source names something that a linker, by its `lines`, did not find, or the class it is in.

    Its mangled name has changed with an argument's type or with a dependency's version; that of a kernel in assembly is
    put together by macros, in a source whose name ends as it does.
    """
    asked = {
        frozenset(WORD.findall(ARGUMENTS.sub("", found[1]))[-2:]) - {""}
        for line in lines
        if (found := UNFOUND.search(line))
    }
    kernels = tuple(f"{found[0]}.S" for names in asked for name in names if (found := EXTENSION.search(name)))
    named = {unit for unit in units if unit.endswith(kernels)}
    for unit in units:
        with suppress(OSError):
            words = frozenset(WORD.findall(Path(paths.resolve(unit)).read_text(encoding="utf-8", errors="replace")))
            if any(names <= words for names in asked if names):
                named.add(unit)
    return frozenset(named)


def write_selection(
    paths: JobPaths,
    omitted: Iterable[str],
    hot_operators: Iterable[str] = (),
    left_out: Iterable[str] = (),
    laid_out: Iterable[str] = (),
    *,
    operators: Iterable[str] = (),
    unused_functions: Iterable[str] = (),
) -> None:
    """Write what `units.cmake` reads: the units that are not compiled, by their symbolic paths.

    Kernels that no hot operator has use for are cold; none are without hot operators.
    """
    cut = cut_units(paths)
    lists = (
        (
            "ORTRIM_OMITTED",
            tuple(
                paths.resolve(name)
                for unit in omitted
                for name in translation_units.compiled_names(unit, CONFIGURATION)
            ),
        ),
        ("ORTRIM_CUT_UNITS", tuple(map(str, cut))),
        ("ORTRIM_CUT_FOLDERS", tuple(str(type_folder(paths, unit)) for unit in cut)),
        ("ORTRIM_COLD_KERNELS", tuple(map(str, cold_kernel_sources(paths, hot_operators)))),
        ("ORTRIM_HOT_SOURCES", HOT_SOURCES),
        ("ORTRIM_LEFT_OUT", tuple(left_out)),
        ("ORTRIM_LAID_OUT", tuple(laid_out)),
        ("ORTRIM_OPERATORS", tuple(sorted(set(operators)))),
        ("ORTRIM_UNUSED_FUNCTIONS", tuple(unused_functions)),
    )
    written = (f"set({name}\n" + "".join(f"  [==[{value}]==]\n" for value in values) + ")\n" for name, values in lists)
    write_if_changed(paths.hooks / SELECTION, "".join(written))


MISSES_LIMIT: Final = 3
"""How often what is missing is added before everything is compiled; one round does unless the index is of no use."""
ROOT: Final = "generated_source.c"  # the one source of the shared library itself, which names what it exports
NO_INDEX: Final = "there is no translation-unit index for this version and target"
UNREADABLE: Final = (BinaryError, BuildError, ToolError)
"""What is wrong when a tree's objects cannot be read: a compiler's own bitcode instead of ELF, or ninja fails."""


@dataclass(frozen=True, kw_only=True)
class SelectiveBuild:
    """One job's compilation on its tree; notes for the user go to `on_note`."""

    job: BuildJob
    upstream: Upstream
    cache: CompilerCache | None
    on_note: Callable[[str], None]

    @property
    def _paths(self) -> JobPaths:
        return self.upstream.paths

    def without_unreached(
        self, linked: CompileOutcome, units: CompiledUnits | None
    ) -> tuple[CompileOutcome, CompiledUnits | None]:
        """Link again without the kernels that nothing in the library reaches, if the job's build options say so."""
        if linked.failed or not self.job.build_options.dead_kernel_elimination:
            return linked, units
        outcome = self._linked_again(linked)
        if not outcome.failed or not any(map(UNDEFINED.search, outcome.lines)):
            return outcome, units
        index = self._known() or translation_units.nearest_index(variant_of(self.job))
        if index is None:
            return outcome, units
        self.on_note("kernels are asked for that were not compiled")
        whole, units = self.compile_selected(index, with_unread=True)
        return (whole if whole.failed else self._linked_again(whole)), units

    def _linked_again(self, linked: CompileOutcome) -> CompileOutcome:
        link, table, mechanisms = self.upstream.link, self._table, self.mechanisms
        return relink.leave_out_unreached(
            self._paths, self.job, linked, link, self.on_note, table=table, mechanisms=mechanisms
        )

    def compile_needed(self) -> tuple[CompileOutcome, CompiledUnits | None]:
        """Compile what the link takes, by the index of the job or one that is like it; everything when none serves."""
        if parse_config(self.job.operator_config).everything:
            return self.compile_all(), None
        index = self._known()
        if index:
            return self.compile_selected(index)
        start = translation_units.nearest_index(variant_of(self.job))
        if start:
            self.on_note(f"{NO_INDEX}: starting from that of {start.variant.stem.removeprefix('onnxruntime-')}")
            outcome, units = self.compile_selected(start)
        else:
            self.on_note(f"{NO_INDEX}: compiling all files and making one")
            outcome, units = self.compile_all(), None
        return (outcome, units) if units else (self._learnt(outcome), None)

    def compile_all(self) -> CompileOutcome:
        """Compile every unit, as upstream does."""
        self._select(())
        self._leave_out(())
        return self.upstream.compile(partial(self._cut, everything=True))

    def _leave_out(self, kernels: Iterable[str]) -> None:
        if self.job.build_options.dead_kernel_elimination:
            relink.leave_out(self._paths, self.job, frozenset(kernels), self._table)

    def _cut(self, *, everything: bool) -> None:
        write_type_control(self._paths, typed_units(self._paths))
        whole = everything or not self.job.build_options.dead_kernel_elimination
        operators = parse_config(self.job.operator_config)
        types = None if self.job.types_for_optimizers else operators.types_of
        named = {each.name for each in operators.operators}
        unasked = QUANTIZED if self.job.providers and not (whole or operators.everything or QUANTIZED & named) else ()
        float16 = FLOAT16 not in self.job.without_types
        write_kept_kernels(self._paths, everything=whole, types=types, unasked=unasked, float16=float16)

    def compile_selected(
        self, index: translation_units.UnitIndex, *, every_kernel: bool = False, with_unread: bool = False
    ) -> tuple[CompileOutcome, CompiledUnits | None]:
        """Compile what an index selects for the job's operators or does not know, and what the link then lacks.

        Units that only the table of MLAS's kernels leads to, by entries that nothing selected reads, are left out,
        unless every kernel is to be kept, or `with_unread`.
        """
        known = frozenset(unit.path for unit in index.units)
        operators = parse_config(self.job.operator_config)
        few_bits = operators.multiplies_by_few_bits
        wide = translation_units.wide_units(index, wide_sources(self.job), few_bits=few_bits)
        omitted = known.difference(translation_units.select_units(index, operators), wide)
        unread: Mapping[str, frozenset[str]] = {}
        if self.job.build_options.dead_kernel_elimination and not every_kernel and not with_unread:
            unread = translation_units.unread_units(index, operators, wide, self._table)
            omitted |= unread.keys()
        for misses in range(MISSES_LIMIT + 1):
            self.on_note(f"compiles {len(known - omitted)} of {counted(len(known), 'file')}")
            self._select(sorted(omitted))
            self._leave_out(symbol for unit in unread.keys() & omitted for symbol in unread[unit])
            outcome = self.upstream.compile(partial(self._cut, everything=every_kernel))
            if not outcome.failed:
                return outcome, self._counted(known, omitted)
            if not any(UNDEFINED.search(line) for line in outcome.lines):
                return outcome, None
            missing = self._missing(index) & omitted or mentioning(self._paths, omitted, outcome.lines)
            if missing:
                self.on_note(f"the link asks for {counted(len(missing), 'more file')} than foreseen")
            if not missing or misses == MISSES_LIMIT:
                break
            omitted -= missing
        self.on_note("the translation-unit index does not fit this build: all files are compiled")
        return self.compile_all(), None

    @cached_property
    def mechanisms(self) -> Mechanisms:
        """What the tree has for the job."""
        return find_mechanisms(self._paths, self.job, self._texts)

    @cached_property
    def _table(self) -> KernelTable:
        return relink.table_of(self.job, self._texts)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return relink.mlas_texts(self._paths)

    def _select(self, units: Iterable[str]) -> None:
        found = self.mechanisms
        write_if_changed(self._paths.hooks / ASSIGNMENTS, found.assignments)
        write_if_changed(self._paths.hooks / API_TABLE, found.api_table)
        laid_out = laid_out_sources(self.job)
        operators = (each.name for each in parse_config(self.job.operator_config).operators)
        write_selection(
            self._paths,
            units,
            self.job.hot_operators,
            found.left_out,
            laid_out,
            operators=operators,
            unused_functions=found.unused_functions,
        )

    def _known(self) -> translation_units.UnitIndex | None:
        """Return the index of all types, else the one that a build without the same types has taught."""
        jobs = dict.fromkeys((replace(self.job, without_types=()), self.job))
        found = (translation_units.find_index(variant_of(job), self.on_note) for job in jobs)
        return next(filter(None, found), None)

    def _counted(self, known: frozenset[str], omitted: frozenset[str]) -> CompiledUnits:
        """Count what is compiled in this tree and what is left out of it; without ninja by the index alone."""
        paths = self._paths
        with suppress(*UNREADABLE):
            compiled = frozenset(unit for unit, _ in relink.compiled_units(paths))
            left = sum(unit not in compiled and Path(paths.resolve(unit)).exists() for unit in omitted)
            return CompiledUnits(compiled=len(compiled), total=len(compiled) + left)
        return CompiledUnits(compiled=len(known - omitted), total=len(known))

    def _learnt(self, outcome: CompileOutcome) -> CompileOutcome:
        """Keep the index of a build that ended well; the library is there even when nothing can be learnt of it."""
        if not outcome.failed:
            try:
                translation_units.save_learnt(self.index())
            except (*UNREADABLE, SourcesError, StorageError) as error:
                self.on_note(f"no translation-unit index was made of this build: {_in_words(error)}")
        return outcome

    def _missing(self, index: translation_units.UnitIndex) -> frozenset[str]:
        """Return the units that define what the link of this tree needs; none when the objects cannot be read."""
        try:
            objects = relink.read_objects(self._paths, (*relink.EVERYWHERE, relink.HOOKS))
            roots = {
                entry.unit
                for entry in objects
                if entry.unit.startswith(relink.HOOKS) or entry.unit.endswith(f"/{ROOT}")
            }
            return frozenset(translation_units.providers(index, relink.undefined_in(objects, roots)))
        except UNREADABLE as error:
            self.on_note(f"the missing files of the link cannot be found: {_in_words(error)}")
            return frozenset()

    def index(self) -> translation_units.UnitIndex:
        """Return the index that the objects of this tree make, all of which must have been compiled."""
        objects = relink.read_objects(self._paths)
        roots = [symbols.unit for symbols in objects if symbols.unit.endswith(f"/{ROOT}")]
        return translation_units.make_index(variant_of(self.job), objects, roots)


def _in_words(error: Diagnostic) -> str:
    return f"{error.where} {error.what} ({error.why})"
