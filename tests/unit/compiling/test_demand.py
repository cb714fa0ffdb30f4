"""What is compiled for a job: by an index, by what the linker misses, and all of it when nothing is known."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import fake_library  # fmt: skip
from ortrim.base.cache import cache_folder
from ortrim.buildspec.build_options import BuildOptions
from ortrim.compiling.plan import BuildJob, CompiledUnits
from ortrim.compiling.selective import MISSES_LIMIT, SelectiveBuild, variant_of
from ortrim.compiling.translation_units import UnitIndex, learnt_index, make_index, render_index, save_learnt
from ortrim.compiling.upstream import CompileOutcome
from ortrim.errors import SourcesError
from ortrim.planning.planner import with_arguments
from refusing import refused
from unit_samples import ADD, GEMM, INTERFACE, PROVIDER, SESSION, SGEMM, UNUSED, without_shipped_indices
from workshop import LIBRARY, Workshop

ALL = sorted(fake_library.UNITS)
NOTHING_KNOWN = "there is no translation-unit index for this version and target: compiling all files and making one"
DOES_NOT_FIT = "the translation-unit index does not fit this build: all files are compiled"
CHAIN = (
    ((INTERFACE, "OrtGetApiBase"),),
    ((SESSION, "make_provider"), (SESSION, "log_line"), (PROVIDER, "log_line")),
    ((fake_library.LOG, "platform"),),
    ((fake_library.PLATFORM, "cpuid_info"),),
)
"""Needs that an index may have forgotten, by how many links it takes until the linker sees them."""


@pytest.fixture(autouse=True)
def _library(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    without_shipped_indices(monkeypatch)
    workshop.job = with_arguments(replace(workshop.job, operator_config=fake_library.ONLY_ADD))
    fake_library.write_library(workshop)


def pin(workshop: Workshop, content: UnitIndex | str) -> None:
    path = workshop.folder / "pins" / "units" / f"{variant_of(workshop.job).stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else render_index(content))


@contextmanager
def demand_of(workshop: Workshop, job: BuildJob | None = None) -> Iterator[SelectiveBuild]:
    with workshop.executor(cached=False).on_tree(job or workshop.job) as selective:
        yield selective


def compile_needed(workshop: Workshop, job: BuildJob | None = None) -> tuple[CompileOutcome, CompiledUnits | None]:
    with demand_of(workshop, job) as selective:
        return selective.compile_needed()


def compile_selected(workshop: Workshop, index: UnitIndex) -> tuple[CompileOutcome, CompiledUnits | None]:
    with demand_of(workshop) as selective:
        return selective.compile_selected(index)


def test_what_the_link_takes_is_compiled(workshop: Workshop) -> None:
    """No kernel of another operator and nothing that nobody needs; upstream is called once for each phase."""
    pin(workshop, fake_library.index_of(variant_of(workshop.job)))
    outcome, units = compile_needed(workshop)
    assert not outcome.failed
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)
    assert units == CompiledUnits(compiled=8, total=11)
    assert workshop.notes == ["compiles 8 of 11 files"]
    assert workshop.calls() == "ub"


def test_what_nothing_reads_is_compiled_when_it_is_asked_for(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of MLAS's table that no selected source has an entry of; a link can ask for them all the same."""
    unread = {UNUSED: frozenset({"unused"})}
    monkeypatch.setattr("ortrim.compiling.selective.translation_units.unread_units", lambda *_: unread)
    options = BuildOptions(dead_kernel_elimination=True)
    workshop.job = replace(workshop.job, build_options=options, operator_config=fake_library.ONLY_ADD)
    index = fake_library.index_of(variant_of(workshop.job))
    index = replace(index, roots=tuple(range(len(index.units))))
    with demand_of(workshop) as selective:
        _, units = selective.compile_selected(index)
        _, whole = selective.compile_selected(index, with_unread=True)
    assert (units, whole) == (CompiledUnits(compiled=10, total=11), CompiledUnits(compiled=11, total=11))


def test_another_model_compiles_what_it_needs(workshop: Workshop) -> None:
    """In the same tree: what is not needed any more is no longer linked."""
    pin(workshop, fake_library.index_of(variant_of(workshop.job)))
    compile_needed(workshop)
    outcome, units = compile_needed(
        workshop, replace(workshop.job, operator_config=fake_library.ONLY_ADD + fake_library.ONLY_GEMM)
    )
    assert not outcome.failed
    assert set(fake_library.compiled(workshop)) == {*fake_library.FOR_ADD, GEMM, SGEMM}
    assert units == CompiledUnits(compiled=10, total=11)


def test_what_the_link_misses_is_added(workshop: Workshop) -> None:
    index = fake_library.index_of(variant_of(workshop.job), [(ADD, "broadcast")])
    outcome, units = compile_selected(workshop, index)
    assert not outcome.failed
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)
    assert units == CompiledUnits(compiled=8, total=11)
    assert workshop.notes[0] == "compiles 7 of 11 files"
    assert workshop.notes[1:] == ["the link asks for 1 more file than foreseen", "compiles 8 of 11 files"]
    assert workshop.calls() == "ubub"


def test_kernels_that_a_link_misses_are_found_by_their_operators(workshop: Workshop) -> None:
    """Registrations name two that the index does not know to be needed; what the system defines is asked of no unit."""
    workshop.job = replace(workshop.job, operator_config="ai.onnx;14;Unheard\n")
    outcome, units = compile_selected(workshop, fake_library.index_of(variant_of(workshop.job)))
    assert not outcome.failed
    assert fake_library.compiled(workshop) == sorted({*fake_library.FOR_ADD, GEMM, SGEMM})
    assert units == CompiledUnits(compiled=10, total=11)
    assert workshop.calls() == "ubub"


def forgetful(workshop: Workshop, misses: int) -> UnitIndex:
    return fake_library.index_of(variant_of(workshop.job), [need for needs in CHAIN[:misses] for need in needs])


@pytest.mark.parametrize("misses", range(1, MISSES_LIMIT + 1))
def test_a_miss_may_lead_to_another(workshop: Workshop, misses: int) -> None:
    outcome, units = compile_selected(workshop, forgetful(workshop, misses))
    assert not outcome.failed
    assert units == CompiledUnits(compiled=8, total=11)
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)
    assert workshop.calls() == "ub" * (misses + 1)
    assert DOES_NOT_FIT not in workshop.notes


def test_an_index_that_misses_too_often_is_set_aside(workshop: Workshop) -> None:
    """Everything is compiled and said to be, after what the last link asked for; the library is the same."""
    outcome, units = compile_selected(workshop, forgetful(workshop, MISSES_LIMIT + 1))
    assert (outcome.failed, units) == (False, None)
    assert fake_library.compiled(workshop) == ALL
    assert workshop.calls() == "ub" * (MISSES_LIMIT + 2)
    asked = "the link asks for 1 more file than foreseen"
    assert workshop.notes[-3:] == ["compiles 7 of 11 files", asked, DOES_NOT_FIT]
    assert (workshop.tree / "out" / LIBRARY).is_file()


def test_a_miss_that_the_index_knows_nothing_of_is_not_tried_again(workshop: Workshop) -> None:
    index = fake_library.without(fake_library.index_of(variant_of(workshop.job), [(ADD, "broadcast")]), ["broadcast"])
    outcome, units = compile_selected(workshop, index)
    assert (outcome.failed, units) == (False, None)
    assert fake_library.compiled(workshop) == ALL
    assert workshop.notes == ["compiles 7 of 11 files", DOES_NOT_FIT]


@pytest.mark.parametrize(
    ("ninja", "why"),
    [
        ("echo 'ninja: error: loading build.ninja' >&2; exit 1", "ninja: error: loading build.ninja"),
        ("exit 1", "exit code 1"),
        ("kill -9 $$", "exit code -9"),
        ("echo", "it printed no compilation database"),
        ("echo null", "it printed no compilation database"),
        ('echo \'[{"file": "a.cc"}]\'', "it printed no compilation database"),
        ('echo \'[{"file": 1, "output": "a.o"}]\'', "it printed no compilation database"),
    ],
)
def test_a_tree_whose_objects_cannot_be_told_is_compiled_in_full(workshop: Workshop, ninja: str, why: str) -> None:
    """Nobody knows what the link misses then; it is said why, and the library is there."""
    workshop.tool("ninja", ninja)
    outcome, units = compile_selected(workshop, fake_library.index_of(variant_of(workshop.job), [(ADD, "broadcast")]))
    assert (outcome.failed, units) == (False, None)
    assert fake_library.compiled(workshop) == ALL
    first, told, last = workshop.notes
    assert (first, last) == ("compiles 7 of 11 files", DOES_NOT_FIT)
    assert told.startswith("the missing files of the link cannot be found: ")
    assert why in told


def test_objects_that_are_no_elf_files_are_compiled_in_full_after_a_miss(workshop: Workshop) -> None:
    """Such as bitcode, which a linker takes and whose symbols nobody else can read."""
    spoil = "\n".join(
        f"(configured / '{stem}.o').write_bytes(b'BC')" for stem in (*fake_library.UNITS.values(), "provider-add")
    )
    fake_library.write_library(workshop, before_linking=f"{spoil}\nFACTS['objects'] = str(configured)")
    outcome, units = compile_selected(workshop, fake_library.index_of(variant_of(workshop.job), [(ADD, "broadcast")]))
    assert (outcome.failed, units) == (False, None)
    assert workshop.notes[1].startswith("the missing files of the link cannot be found: ")
    assert "this is not an ELF file" in workshop.notes[1]
    assert workshop.notes[2:] == [DOES_NOT_FIT]


def test_without_ninja_nothing_is_learnt(workshop: Workshop) -> None:
    (workshop.folder / "tools" / "bin" / "ninja").unlink()
    outcome, _ = compile_needed(workshop)
    assert not outcome.failed
    assert workshop.notes[-1].startswith("no translation-unit index was made of this build: ")
    assert not list(cache_folder("units").iterdir())


def test_a_symbol_that_nothing_defines_fails_the_build(workshop: Workshop) -> None:
    fake_library.write_library(
        workshop, before_linking="FACTS['symbols']['session'][1].append('nowhere')\nFACTS['defined'].append('nowhere')"
    )
    outcome, units = compile_selected(workshop, fake_library.index_of(variant_of(workshop.job)))
    assert (outcome.code, units) == (1, None)
    assert outcome.lines[-1] == "ld.lld: error: undefined symbol: nowhere"
    assert workshop.calls() == "ubub"


@pytest.mark.parametrize(
    "failure",
    ["print('a.cc:1:2: error: use of undeclared identifier')", "print('No space left on device')", ""],
    ids=["compiler", "disk", "silent"],
)
def test_another_failure_is_not_tried_again(workshop: Workshop, failure: str) -> None:
    fake_library.write_library(workshop, before_linking=f"{failure}\nsys.exit(2)")
    outcome, units = compile_selected(workshop, fake_library.index_of(variant_of(workshop.job)))
    assert (outcome.code, units) == (2, None)
    assert workshop.calls() == "ub"
    assert workshop.notes == ["compiles 8 of 11 files"]


def test_without_an_index_everything_is_compiled_and_learnt(workshop: Workshop) -> None:
    """The next model of the same version and flags compiles what it needs, with what the first build taught."""
    outcome, units = compile_needed(workshop)
    assert (outcome.failed, units) == (False, None)
    assert fake_library.compiled(workshop) == ALL
    assert workshop.notes == [NOTHING_KNOWN]
    outcome, units = compile_needed(workshop, replace(workshop.job, operator_config=fake_library.ONLY_GEMM))
    assert not outcome.failed
    assert units is not None
    assert units.compiled < units.total == 11
    assert UNUSED not in fake_library.compiled(workshop)


def test_the_index_of_all_types_serves_a_build_with_fewer(workshop: Workshop) -> None:
    pin(workshop, fake_library.index_of(variant_of(workshop.job)))
    outcome, units = compile_needed(workshop, replace(workshop.job, without_types=("sparsetensor",)))
    assert (outcome.failed, units) == (False, CompiledUnits(compiled=8, total=11))
    assert workshop.notes == ["compiles 8 of 11 files"]


def test_what_a_build_with_fewer_types_teaches_is_a_start_for_others(workshop: Workshop) -> None:
    fewer = replace(workshop.job, without_types=("sparsetensor",))
    compile_needed(workshop, fewer)
    workshop.notes.clear()
    assert compile_needed(workshop, fewer)[1] == CompiledUnits(compiled=8, total=11)
    assert workshop.notes == ["compiles 8 of 11 files"]
    assert compile_needed(workshop)[1] == CompiledUnits(compiled=8, total=11)
    assert workshop.notes[1].startswith(
        "there is no translation-unit index for this version and target: starting from "
    )


def test_what_an_index_does_not_know_is_compiled(workshop: Workshop) -> None:
    """Files of another version or target, or of a dependency that the index was made without."""
    variant = variant_of(workshop.job)
    old = make_index(
        variant, [entry for entry in fake_library.objects_of() if entry.unit != fake_library.BROADCAST], [INTERFACE]
    )
    outcome, units = compile_selected(workshop, old)
    assert not outcome.failed
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)
    assert units == CompiledUnits(compiled=8, total=11)
    assert "compiles 7 of 10 files" in workshop.notes


@pytest.mark.parametrize("forgotten", [[], [(ADD, "broadcast")]], ids=["fits", "lacks"])
def test_a_build_without_an_index_starts_from_that_of_another(
    workshop: Workshop, forgotten: list[tuple[str, str]]
) -> None:
    """What it says too little the linker asks for; nothing is learnt that is not of the whole."""
    variant = replace(variant_of(workshop.job), ort_version="1.20.0", target="linux-arm64")
    path = workshop.folder / "pins" / "units" / f"{variant.stem}.json"
    path.parent.mkdir(parents=True)
    path.write_text(render_index(fake_library.index_of(variant, forgotten)))
    outcome, units = compile_needed(workshop)
    assert not outcome.failed
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)
    assert units == CompiledUnits(compiled=8, total=11)
    assert workshop.notes[0].endswith("for this version and target: starting from that of 1.20.0-linux-arm64-zig")
    assert not list(cache_folder("units").iterdir())


def test_a_start_that_does_not_fit_is_learnt_from(workshop: Workshop) -> None:
    variant = replace(variant_of(workshop.job), ort_version="1.20.0")
    save_learnt(fake_library.without(fake_library.index_of(variant, [(ADD, "broadcast")]), ["broadcast"]))
    outcome, units = compile_needed(workshop)
    assert (outcome.failed, units) == (False, None)
    assert workshop.notes[-1] == DOES_NOT_FIT
    assert learnt_index(variant_of(workshop.job)) == fake_library.index_of(variant_of(workshop.job))


def test_what_no_index_knows_is_found_in_the_sources(workshop: Workshop) -> None:
    (workshop.sources / fake_library.BROADCAST.removeprefix("${sources}/")).write_text("void broadcast() {}\n")
    (workshop.sources / UNUSED.removeprefix("${sources}/")).write_text("void broadcasts() {}\n")
    index = fake_library.without(fake_library.index_of(variant_of(workshop.job), [(ADD, "broadcast")]), ["broadcast"])
    outcome, units = compile_selected(workshop, index)
    assert (outcome.failed, units) == (False, CompiledUnits(compiled=8, total=11))
    assert fake_library.compiled(workshop) == sorted(fake_library.FOR_ADD)


def test_what_is_learnt_is_the_index_of_the_objects(workshop: Workshop) -> None:
    """Registrations have their original's name; objects of other programs and other steps of ninja's are left out."""
    job = replace(workshop.job, operator_config=fake_library.ONLY_ADD + fake_library.ONLY_GEMM)
    compile_needed(workshop, job)
    assert learnt_index(variant_of(job)) == fake_library.index_of(variant_of(job))


def test_a_failed_build_teaches_nothing(workshop: Workshop) -> None:
    fake_library.write_library(workshop, before_linking="sys.exit(1)")
    outcome, units = compile_needed(workshop)
    assert (outcome.failed, units) == (True, None)
    assert learnt_index(variant_of(workshop.job)) is None
    assert not list(cache_folder("units").iterdir())


def test_everything_is_compiled_when_everything_is_asked_for(workshop: Workshop) -> None:
    pin(workshop, fake_library.index_of(variant_of(workshop.job)))
    outcome, units = compile_needed(workshop, replace(workshop.job, operator_config=fake_library.EVERYTHING))
    assert (outcome.failed, units) == (False, None)
    assert fake_library.compiled(workshop) == ALL
    assert workshop.notes == []
    assert not list(cache_folder("units").iterdir())


def test_a_damaged_pinned_index_stops_the_build(workshop: Workshop) -> None:
    pin(workshop, "{")
    caught = refused(SourcesError, compile_needed, workshop)
    assert caught.code == "bad-unit-index"
    assert workshop.calls() == ""


def test_a_build_of_which_nothing_can_be_learnt_is_a_build(workshop: Workshop) -> None:
    spoil = "\n".join(
        f"(configured / '{stem}.o').write_bytes(b'BC')" for stem in (*fake_library.UNITS.values(), "provider-add")
    )
    fake_library.write_library(workshop, before_linking=f"{spoil}\nFACTS['objects'] = str(configured)")
    outcome, units = compile_needed(workshop)
    assert (outcome.failed, units) == (False, None)
    assert workshop.notes[-1].startswith("no translation-unit index was made of this build: ")
    assert "this is not an ELF file" in workshop.notes[-1]
    assert not list(cache_folder("units").iterdir())


def test_an_index_that_cannot_be_kept_does_not_spoil_the_build(workshop: Workshop) -> None:
    """A file where the folder of indices should be: said twice, once for reading and once for writing."""
    cache_folder("units").rmdir()
    (workshop.folder / "cache" / "units").write_text("in the way")
    outcome, _ = compile_needed(workshop)
    assert not outcome.failed
    assert [note.partition(":")[0] for note in workshop.notes] == [
        "the index of an earlier build is ignored",
        "there is no translation-unit index for this version and target",
        "no translation-unit index was made of this build",
    ]


def test_the_index_of_a_tree_has_all_that_was_compiled_in_it(workshop: Workshop) -> None:
    job = replace(workshop.job, operator_config=fake_library.EVERYTHING)
    with demand_of(workshop, job) as selective:
        selective.compile_all()
        assert selective.index() == fake_library.index_of(variant_of(job))
        (workshop.tree / "out" / "MinSizeRel" / "CMakeFiles" / "lib.dir" / "interface.o").unlink()
        caught = refused(SourcesError, selective.index)
    assert caught.code == "bad-unit-index"


def test_no_object_is_an_orphan() -> None:
    defined = frozenset[str]().union(*(each.defined for each in fake_library.objects_of()))
    undefined = frozenset[str]().union(*(each.undefined for each in fake_library.objects_of()))
    assert undefined - defined == {"malloc"}
