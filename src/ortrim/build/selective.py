"""Compiling what the link takes, adding what it turns out to miss, and learning from builds without an index.

- Which units a build compiles: those that the link needs by the index, passed to CMake through `units.cmake`.
- Which sources of kernels are compiled for size, because the models spend no time worth the name in them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from ortrim.base.console import counted
from ortrim.base.files import storage_errors, write_if_changed
from ortrim.build.compiler_cache import CompilerCache
from ortrim.build.dead_kernels import cold_kernels
from ortrim.build.execution import CONFIGURATION, JobPaths
from ortrim.build.mechanisms import ASSIGNMENTS, HOT_SOURCES, Mechanisms, find_mechanisms
from ortrim.build.plan import BuildJob, CompiledUnits, CompilerCacheUse
from ortrim.build.relink import leave_out_unreached, mlas_texts, read_objects, undefined_in
from ortrim.build.translation_units import (
    IndexFound,
    UnitIndex,
    Variant,
    compiled_names,
    find_index,
    make_index,
    providers,
    save_learnt,
    select_units,
    wide_units,
)
from ortrim.build.upstream import KERNELS, UNDEFINED, CompileOutcome, Upstream, type_folder, typed_units
from ortrim.build.upstream_arguments import wide_sources
from ortrim.errors import BinaryError, BuildError, Diagnostic, SourcesError, StorageError, ToolError
from ortrim.models.operators import parse_config

SUFFIXES: Final = (".cc", ".h")


def cold_kernel_sources(paths: JobPaths, operators: Iterable[str]) -> tuple[Path, ...]:
    """Return the sources of kernels that no hot operator has use for, in order; none when every kernel is hot.

    Raises `StorageError`.
    """
    hot = tuple(operators)
    core = paths.sources / "onnxruntime" / "onnxruntime"
    return tuple(core / name for name in cold_kernels(_texts(core), hot)) if hot else ()


def _texts(core: Path) -> dict[str, str]:
    files = (file for folder in KERNELS for file in (core / folder).rglob("*") if file.suffix in SUFFIXES)
    with storage_errors(core):
        return {file.relative_to(core).as_posix(): file.read_text(encoding="utf-8", errors="replace") for file in files}


SELECTION: Final = "selection.cmake"


def variant_of(job: BuildJob) -> Variant:
    """Return what an index must have been made with to serve a job.

    Execution providers bring sources of their own into the build, so that they count among the toolchain's words; so
    do the types that are left out, since sources define less without them. What sources with all types need and define
    is more than any do with fewer, so that the index of all types serves every job.
    """
    without = ("without", *job.without_types) if job.without_types else ()
    return Variant(
        ort_version=job.ort_version,
        target=job.target.identifier,
        toolchain="-".join((job.toolchain.kind, *job.providers, *without)),
        exceptions=job.exceptions,
    )


def write_selection(
    paths: JobPaths, units: Iterable[str], hot_operators: Iterable[str] = (), left_out: Iterable[str] = ()
) -> None:
    """Write what `units.cmake` reads: the units to compile, by their symbolic paths; none means all.

    Kernels that no hot operator has use for are named as cold; none are without hot operators. `left_out` is what
    `Mechanisms` has.
    """
    typed = typed_units(paths)
    lists = (
        ("ORTRIM_UNITS", tuple(paths.resolve(name) for unit in units for name in compiled_names(unit, CONFIGURATION))),
        ("ORTRIM_TYPED_UNITS", tuple(map(str, typed))),
        ("ORTRIM_TYPE_FOLDERS", tuple(str(type_folder(paths, unit)) for unit in typed)),
        ("ORTRIM_COLD_KERNELS", tuple(map(str, cold_kernel_sources(paths, hot_operators)))),
        ("ORTRIM_HOT_SOURCES", HOT_SOURCES),
        ("ORTRIM_LEFT_OUT", tuple(left_out)),
    )
    write_if_changed(paths.hooks / SELECTION, "".join(_cmake_list(name, values) for name, values in lists))


def _cmake_list(name: str, values: Iterable[str]) -> str:
    return f"set({name}\n" + "".join(f"  [==[{value}]==]\n" for value in values) + ")\n"


MISSES_LIMIT: Final = 3
"""How often what is missing is added before everything is compiled; one round does unless the index is of no use."""
ROOT: Final = "generated_source.c"
"""The one source of the shared library itself, which names what it exports."""
UNREADABLE: Final = (BinaryError, BuildError, ToolError)
"""What is wrong when a tree's objects cannot be read: a compiler's own bitcode instead of ELF, or ninja fails."""


@dataclass(frozen=True, kw_only=True)
class SelectiveBuild:
    """One job's compilation on its tree; notes for the user go to `on_note`."""

    job: BuildJob
    upstream: Upstream
    cache: CompilerCache | None
    on_note: Callable[[str], None]

    def cache_use(self) -> CompilerCacheUse | None:
        """Return how far the compiler cache has helped so far; None without one."""
        return self.cache.use() if self.cache else None

    @property
    def _paths(self) -> JobPaths:
        return self.upstream.paths

    def without_unreached(self, linked: CompileOutcome) -> CompileOutcome:
        """Link again without the kernels that nothing in the library reaches, if the job's build options say so.

        Raises as `leave_out_unreached` does.
        """
        if linked.failed or not self.job.build_options.dead_kernel_elimination:
            return linked
        link, mechanisms = self.upstream.link, self.mechanisms
        return leave_out_unreached(self._paths, self.job, linked, link, self.on_note, mechanisms=mechanisms)

    def compile_needed(self) -> tuple[CompileOutcome, CompiledUnits | None]:
        """Compile what the link takes; everything when no index serves the job, which is then learnt."""
        found = self._known()
        operators = parse_config(self.job.operator_config)
        if operators.everything:
            return self.compile_all(), None
        if found.index is None:
            self.on_note(
                "there is no translation-unit index for this version and flags: compiling all files and making one"
            )
            return self._learnt(self.compile_all()), None
        return self.compile_selected(found.index)

    def compile_all(self) -> CompileOutcome:
        """Compile every unit, as upstream does."""
        self._select(())
        return self.upstream.compile()

    def compile_selected(self, index: UnitIndex) -> tuple[CompileOutcome, CompiledUnits | None]:
        """Compile what an index selects for the job's operators, and what the link then lacks."""
        wide = wide_units(index, wide_sources(self.job))
        units = frozenset((*select_units(index, parse_config(self.job.operator_config)), *wide))
        for misses in range(MISSES_LIMIT + 1):
            self.on_note(f"compiles {len(units)} of {counted(len(index.units), 'file')}")
            self._select(sorted(units))
            outcome = self.upstream.compile()
            if not outcome.failed:
                return outcome, CompiledUnits(compiled=len(units), total=len(index.units))
            if not any(UNDEFINED.search(line) for line in outcome.lines):
                return outcome, None
            missing = self._missing(index) - units
            if missing:
                self.on_note(f"the link asks for {counted(len(missing), 'more file')} than foreseen")
            if not missing or misses == MISSES_LIMIT:
                break
            units |= missing
        self.on_note("the translation-unit index does not fit this build: all files are compiled")
        return self.compile_all(), None

    @cached_property
    def mechanisms(self) -> Mechanisms:
        """What the tree has for the job. Raises as `find_mechanisms` does."""
        return find_mechanisms(self._paths, self.job, mlas_texts(self._paths))

    def _select(self, units: Iterable[str]) -> None:
        """Write what this job compiles, and what of the tree goes into it."""
        write_if_changed(self._paths.hooks / ASSIGNMENTS, self.mechanisms.assignments)
        write_selection(self._paths, units, self.job.hot_operators, self.mechanisms.left_out)

    def _known(self) -> IndexFound:
        """Return the index of all types, else the one that a build without the same types has taught."""
        found = IndexFound(index=None)
        for job in dict.fromkeys((replace(self.job, without_types=()), self.job)):
            found = find_index(variant_of(job))
            if found.note:
                self.on_note(found.note)
            if found.index:
                break
        return found

    def _learnt(self, outcome: CompileOutcome) -> CompileOutcome:
        """Keep the index of a build that ended well; the library is there even when nothing can be learnt of it."""
        if not outcome.failed:
            try:
                save_learnt(self.index())
            except (*UNREADABLE, SourcesError, StorageError) as error:
                self.on_note(f"no translation-unit index was made of this build: {_in_words(error)}")
        return outcome

    def _missing(self, index: UnitIndex) -> frozenset[str]:
        """Return the units that define what the objects of this tree need; none when the objects cannot be read."""
        try:
            return frozenset(providers(index, undefined_in(read_objects(self._paths))).units)
        except UNREADABLE as error:
            self.on_note(f"the missing files of the link cannot be found: {_in_words(error)}")
            return frozenset()

    def index(self) -> UnitIndex:
        """Return the index that the objects of this tree make, all of which must have been compiled.

        Raises as `read_objects` and `make_index` do.
        """
        objects = read_objects(self._paths)
        roots = [symbols.unit for symbols in objects if symbols.unit.endswith(f"/{ROOT}")]
        return make_index(variant_of(self.job), objects, roots)


def _in_words(error: Diagnostic) -> str:
    return f"{error.where} {error.what} ({error.why})"
