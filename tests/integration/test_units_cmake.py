"""`units.cmake`, the wrappers and the native executor with the real CMake, ninja and zig, on a toy library."""

import ctypes
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from native_builds import native_executor
from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.elf import read_library
from ortrim.buildspec.build_options import BuildOptions
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildJob, CompilerCacheUse
from ortrim.compiling.relink import OWN
from ortrim.compiling.selective import SelectiveBuild
from ortrim.compiling.toolchains import PRECOMPILED_MARK
from ortrim.compiling.translation_units import UnitIndex, learnt_index
from ortrim.compiling.upstream import ninja_step
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planner import with_arguments
from sample_plans import sample_plan
from unit_samples import without_shipped_indices

pytestmark = pytest.mark.network

TOY: Final = Path(__file__).with_name("data") / "toy"
CORE: Final = "${sources}/onnxruntime/onnxruntime/core"
CONFIGURED: Final = "${build}/MinSizeRel"
ADD, GEMM = f"{CORE}/providers/cpu/math/add.cc", f"{CORE}/providers/cpu/math/gemm.cc"
SGEMM: Final = f"{CORE}/mlas/sgemm.cpp"
REGISTRATIONS: Final = f"{CORE}/providers/cpu/cpu_execution_provider.cc"
COMMON: Final = frozenset({
    f"{CORE}/common/logging.cc", f"{CORE}/common/parent.cc", f"{CORE}/common/plain.c",
    f"{CONFIGURED}/common/generated.cc", f"{CONFIGURED}/generated_source.c", f"{CORE}/framework/allocator.cc",
    f"{CORE}/session/session.cc", REGISTRATIONS,
})  # fmt: skip
"""What every library takes, whatever its operators are."""
OPTIONAL: Final = f"{CORE}/providers/cpu/math/optional.cc"
"""It stands behind a generator expression, which only CMake's last step evaluates: it is always compiled."""
EVERYTHING: Final = "!no_ops_specified_means_all_ops_are_required\n"
AWKWARD: Final = "a folder of mine=yours"


def config(**types: str) -> str:
    entries = (f'{name}{{"inputs": {{"0": ["{allowed}"]}}}}' if allowed else name for name, allowed in types.items())
    return f"ai.onnx;13;{','.join(entries)}\n"


@dataclass(frozen=True, kw_only=True)
class Toy:
    """The toy's executor, the job that it builds, and what it said."""

    executor: Executor
    job: BuildJob
    notes: list[str]

    @contextmanager
    def selective(self, operator_config: str) -> Iterator[SelectiveBuild]:
        self.notes.clear()
        with self.executor.on_tree(replace(self.job, operator_config=operator_config)) as selective:
            yield selective

    def log(self) -> str:
        return self.executor.log.read_text()


@cache
def users_folders() -> tuple[Path, Path]:
    """Return the user's own tools and zig's cache, asked for before any toy has a cache of its own."""
    return packages_folder("tools", tool_requirements()), cache_folder("zig")


@contextmanager
def lay_out(folder: Path) -> Iterator[Toy]:
    shutil.copytree(TOY, folder / "sources")
    tools, zig = users_folders()
    (folder / "cache").mkdir()
    (folder / "cache" / "zig").symlink_to(zig)
    notes: list[str] = []
    log = folder / "build.log"
    executor = native_executor(folder / "sources", log, tools=tools, on_note=notes.append, cached=False)
    build_options = BuildOptions(precompiled_headers=True)
    job = with_arguments(replace(sample_plan().targets[0].job, ort_version="1.21.0", build_options=build_options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTRIM_CACHE", str(folder / "cache"))
        patch.setenv("ORTRIM_PINS", str(folder / "pins"))
        without_shipped_indices(patch)
        yield Toy(executor=executor, job=job, notes=notes)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    """Lay out the sources in a folder of an awkward name."""
    with lay_out(tmp_path_factory.mktemp("toy") / AWKWARD) as toy:
        yield toy


def is_own(name: str) -> bool:
    return "/hooks/" in name or OWN in name


def objects(selective: SelectiveBuild) -> set[str]:
    """Return the units that the library's targets compile, as ninja has them and as they lie there."""
    paths = selective.upstream.paths
    done = run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured)
    outputs = {entry["output"] for entry in json.loads(done.stdout)}
    there = {unit.path for unit in selective.index().units}
    units = {name for name in outputs if name.endswith(".o") and "flatc" not in name and not is_own(name)}
    assert len(there) == len(units)
    return there


def library(selective: SelectiveBuild) -> bytes:
    return (selective.upstream.paths.configured / "libonnxruntime.so.1.21.0").read_bytes()


def call(selective: SelectiveBuild, value: int, folder: Path) -> int:
    copy = folder / f"copy-{len(list(folder.iterdir()))}.so"
    copy.write_bytes(library(selective))
    return int(ctypes.CDLL(str(copy)).OrtGetApiBase(value))


def marked(selective: SelectiveBuild) -> set[str]:
    """Return the names of the sources that are compiled with a precompiled header."""
    paths = selective.upstream.paths
    commands = json.loads(run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured).stdout)
    files = {entry["file"] for entry in commands if PRECOMPILED_MARK in entry["command"]}
    return {Path(file).name for file in files if not is_own(file)}


def built(log: str) -> list[str]:
    """Return the names of what was compiled, by what ninja printed, but for ortrim's own sources."""
    steps = (ninja_step(line) for line in log.splitlines() if "] Building C" in line and not is_own(line))
    return sorted(step[2] for step in steps if step)


@pytest.fixture(scope="module")
def index(toy: Toy) -> UnitIndex:
    with toy.selective(EVERYTHING) as selective:
        assert selective.compile_all().code == 0, toy.log()
        return selective.index()


def test_a_full_build_compiles_everything(toy: Toy, index: UnitIndex) -> None:
    """With nothing selected, each source of each library is compiled, in whatever way it was given to CMake."""
    units = {unit.path for unit in index.units}
    assert units >= {*COMMON, ADD, GEMM, SGEMM, OPTIONAL}
    assert {Path(unit).name for unit in units if "unused" in unit} == {
        "unused.cc", "unused_adapters.cc", "unused_generated.cc", "unused_qgemm.cpp", "unused_sparse.cc",
    }  # fmt: skip
    assert [key for key, _ in index.kernels] == ["ai.onnx:Add", "ai.onnx:Gemm"]


def test_only_what_the_link_takes_is_compiled_and_the_library_is_the_same(
    toy: Toy, index: UnitIndex, tmp_path: Path
) -> None:
    """Byte for byte, in a tree where everything had been compiled; and it works."""
    with toy.selective(config(Add="")) as selective:
        assert selective.compile_all().code == 0, toy.log()
        unpruned = library(selective)
        outcome, units = selective.compile_selected(index)
        assert outcome.code == 0, toy.log()
        assert objects(selective) == {*COMMON, ADD, OPTIONAL}
        assert units is not None
        assert (units.compiled, units.total) == (len({*COMMON, ADD, OPTIONAL}), len(index.units))
        assert library(selective) == unpruned
        assert call(selective, 10, tmp_path) == (10 - 2) * 2


def test_an_empty_tree_gives_the_same_library(toy: Toy, index: UnitIndex, tmp_path: Path) -> None:
    """Compiled from nothing, only with what is selected: a library without a source of its own left is archived too."""
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        first = library(selective)
        shutil.rmtree(selective.upstream.paths.build)
    with toy.selective(config(Add="")) as selective:
        outcome, _ = selective.compile_selected(index)
        assert outcome.code == 0, toy.log()
        assert built(toy.log()) == sorted(Path(unit).name for unit in {*COMMON, ADD, OPTIONAL})
        assert library(selective) == first
        assert (selective.upstream.paths.configured / "libonnxruntime_lora.a").is_file()


def test_the_same_again_compiles_nothing(toy: Toy, index: UnitIndex) -> None:
    """Neither the selection, the registrations nor the types look new."""
    with toy.selective(config(Add="float")) as selective:
        selective.compile_selected(index)
    with toy.selective(config(Add="float")) as selective:
        outcome, _ = selective.compile_selected(index)
    assert outcome.code == 0
    assert "ninja: no work to do." in outcome.lines


def test_a_new_trees_second_configuration_compiles_nothing(toy: Toy, index: UnitIndex) -> None:
    """What upstream asks the compiler after it has used the answer is known from the start.

    What a dependency leaves in CMake's cache, such as its C++ standard, changes nothing either.
    """
    with toy.selective(config(Add="")) as selective:
        shutil.rmtree(selective.upstream.paths.build)
    for _ in range(2):
        with toy.selective(config(Add="")) as selective:
            outcome, _ = selective.compile_selected(index)
            assert outcome.code == 0, toy.log()
            ninja = (selective.upstream.paths.configured / "build.ninja").read_text()
            assert "-Wno-error=shorten-64-to-32 -Wno-error=unused-but-set-variable" in ninja
    assert built(toy.log()) == []
    assert "ninja: no work to do." in outcome.lines


def test_two_jobs_do_not_make_the_same_header(toy: Toy, index: UnitIndex) -> None:
    """What begins with a header waits for the object of the empty source that makes it, which ninja knows."""
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        paths = selective.upstream.paths
        ninja = (paths.tools / "bin" / "ninja", "-t")
        commands = json.loads(run((*ninja, "compdb"), cwd=paths.configured).stdout)
        waiting = [entry for entry in commands if PRECOMPILED_MARK in entry["command"] and not is_own(entry["output"])]
        for entry in waiting:
            (kind,) = re.findall(rf"{PRECOMPILED_MARK}(\S+)", entry["command"])
            lines = run((*ninja, "inputs", entry["output"]), cwd=paths.configured).stdout.splitlines()
            names = {Path(line.strip("'")).name for line in lines}
            assert {name for name in names if name.endswith(".o")} == {f"ortrim-{kind}.cc.o"}
            assert f"ortrim-{kind}.cc" in names, "nothing makes it"
    assert waiting


def test_nothing_of_a_compilers_own_stays_in_a_tree(toy: Toy, index: UnitIndex) -> None:
    """The local cache of zig would hold the precompiled header once more."""
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        paths = selective.upstream.paths
    assert not paths.compiler_scratch.exists()
    names = sorted(path.name for path in paths.configured.glob("precompiled*"))
    assert re.fullmatch(r"precompiled-common-\w{8}\.pch precompiled-onnxruntime-\w{8}\.pch", " ".join(names))


def test_one_more_operator_compiles_its_own_files(toy: Toy, index: UnitIndex, tmp_path: Path) -> None:
    """CMake configures again because the selection changed; what was compiled before stays."""
    with toy.selective(config(Add="float")) as selective:
        selective.compile_selected(index)
    with toy.selective(config(Add="float", Gemm="")) as selective:
        outcome, _ = selective.compile_selected(index)
        assert outcome.code == 0, toy.log()
        assert built(toy.log()) == ["cpu_execution_provider.cc", "gemm.cc", "sgemm.cpp"]
        assert objects(selective) == {*COMMON, ADD, GEMM, SGEMM, OPTIONAL}
        assert call(selective, 10, tmp_path) == (16 + len("float\0")) * 100


def test_types_of_one_operator_compile_one_file(toy: Toy, index: UnitIndex, tmp_path: Path) -> None:
    """Each kernel source reads its own type control, before upstream's."""
    for types in ("float", "int64_t"):
        with toy.selective(config(Add="float", Gemm=types)) as selective:
            outcome, _ = selective.compile_selected(index)
            assert outcome.code == 0, toy.log()
            assert call(selective, 10, tmp_path) == (16 + len("float\0")) * 100 + len(f"{types}\0")
    assert built(toy.log()) == ["gemm.cc"]


def test_a_changed_selection_configures_by_itself(toy: Toy, index: UnitIndex) -> None:
    """Ninja alone, as a developer would call it in a tree, sees that CMake has to run."""
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        paths = selective.upstream.paths
        selection = paths.hooks / "selection.cmake"
        unit = f"  [==[{paths.sources}/onnxruntime/onnxruntime/core/common/unused.cc]==]\n"
        selection.write_text(selection.read_text().replace(unit, ""))
        ninja = (paths.tools / "bin" / "ninja", "onnxruntime")
        first, second = (
            run(ninja, cwd=paths.configured, environment=selective.upstream.environment).stdout for _ in range(2)
        )
        assert "Re-running CMake" in first
        assert built(first) == ["unused.cc"]
        assert second == "ninja: no work to do.\n"


def test_what_the_real_linker_misses_is_found(toy: Toy, index: UnitIndex) -> None:
    """An index that forgot who needs a unit: lld's words are understood, and the same library comes out."""
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        expected = library(selective)
        numbers = {unit.path: number for number, unit in enumerate(index.units)}
        gone = numbers[f"{CORE}/common/parent.cc"], numbers[f"{CONFIGURED}/common/generated.cc"]
        units = (
            replace(unit, needs=tuple(number for number in unit.needs if number not in gone)) for unit in index.units
        )
        outcome, compiled = selective.compile_selected(replace(index, units=tuple(units)))
        assert outcome.code == 0, toy.log()
        assert objects(selective) == {*COMMON, ADD, OPTIONAL}
        assert compiled is not None
        assert "the link asks for 2 more files than foreseen" in toy.notes
        assert library(selective) == expected


def test_a_miss_that_nothing_provides_ends_with_everything(toy: Toy, index: UnitIndex) -> None:
    """Then the library is that of a full build, and it is said that the index is of no use."""
    with toy.selective(config(Add="")) as selective:
        units = tuple(replace(unit, provides=(), needs=()) for unit in index.units)
        outcome, compiled = selective.compile_selected(replace(index, units=units))
        assert outcome.code == 0, toy.log()
        assert compiled is None
        assert objects(selective) == {unit.path for unit in index.units}
    assert toy.notes[-1] == "the translation-unit index does not fit this build: all files are compiled"


def test_an_error_of_the_compiler_is_not_tried_again(toy: Toy, index: UnitIndex) -> None:
    """The real compiler's words are not taken for the linker's."""
    source = toy.executor.inputs.sources / "onnxruntime" / "onnxruntime" / "core" / "session" / "session.cc"
    good = source.read_text()
    try:
        source.write_text(f"{good}\nint wrong() {{ return undefined_symbol; }}\n")
        with toy.selective(config(Add="")) as selective:
            outcome, _ = selective.compile_selected(index)
    finally:
        source.write_text(good)
    assert outcome.code != 0
    assert len(toy.notes) == 1
    assert any("use of undeclared identifier" in line for line in outcome.lines)


def test_marked_sources_are_compiled_with_the_header(toy: Toy, index: UnitIndex) -> None:
    """Each is made once for a tree; C, and libraries that are not of the list, go without, or they would not compile.

    So does what stands behind a generator expression: CMake does not say which file that is.
    """
    with toy.selective(config(Add="")) as selective:
        selective.compile_selected(index)
        sizes = [path.stat().st_size for path in selective.upstream.paths.configured.glob("precompiled-*.pch")]
        assert len(sizes) > 1
        assert min(sizes) > 1000
        own = {"allocator.cc", "cpu_execution_provider.cc", "add.cc", "session.cc"}
        assert marked(selective) == own | {"generated.cc", "logging.cc", "parent.cc"}


def test_a_source_that_is_optimised_further_goes_without_the_header(tmp_path: Path) -> None:
    """Clang refuses a header that was precompiled at another level; the first build of a tree ended there."""
    with lay_out(tmp_path) as toy:
        root = tmp_path / "sources" / "onnxruntime"
        conditioned, lists = "nn/layer_norm_impl.cc", root / "cmake" / "CMakeLists.txt"
        (root / "onnxruntime/core/providers/cpu/nn").mkdir()
        (root / "onnxruntime/core/providers/cpu/math/gemm.cc").rename(
            root / "onnxruntime/core/providers/cpu" / conditioned
        )
        lists.write_text(lists.read_text().replace("math/gemm.cc", conditioned))
        build_options = BuildOptions(precompiled_headers=True, hot="-O2")
        job = with_arguments(replace(toy.job, build_options=build_options))
        with replace(toy, job=job).selective(EVERYTHING) as selective:
            assert selective.compile_all().code == 0, toy.log()
            assert "add.cc" in marked(selective)
            assert "layer_norm_impl.cc" not in marked(selective)


def test_headers_that_are_written_again_as_they_were_are_the_same(tmp_path: Path) -> None:
    """As ONNX's generator writes them when another interpreter of Python builds on the tree."""
    with lay_out(tmp_path) as toy, toy.selective(EVERYTHING) as selective:
        assert selective.compile_all().code == 0, toy.log()
        for header in (tmp_path / "sources").rglob("*.h"):
            header.touch()
        assert selective.compile_all().code == 0, toy.log()


def test_the_compiler_cache_leaves_the_library_as_it_is(tmp_path: Path) -> None:
    """Which folders stand in a source's `__FILE__` does not depend on how the cache writes them."""
    with lay_out(tmp_path / "a folder of mine") as plain, plain.selective(EVERYTHING) as selective:
        selective.compile_all()
        without = library(selective)
    with lay_out(tmp_path / "another") as other:
        cached = replace(other.executor, cached=True)
        with replace(other, executor=cached).selective(EVERYTHING) as selective:
            selective.compile_all()
            assert selective.cache
            assert selective.cache.use() == CompilerCacheUse(hits=0, requests=other.log().count("] Building C"))
            assert library(selective) == without
    assert b"onnxruntime/core/common/logging.cc" in without
    assert b"common/generated.cc" in without


def test_a_folder_whose_name_ccache_takes_for_a_setting(toy: Toy) -> None:
    with replace(toy, executor=replace(toy.executor, cached=True)).selective(EVERYTHING) as selective:
        assert selective.compile_all().code == 0
        assert selective.cache is None
    assert any("=" in note and "compiler cache" in note for note in toy.notes)


def test_without_an_index_the_executor_learns_one(toy: Toy, index: UnitIndex) -> None:
    """From nothing to a finished build, and the second model with what the first one taught."""
    first = toy.executor.run(replace(toy.job, operator_config=config(Add="", Gemm="")))
    assert first.units is None
    assert learnt_index(index.variant) == index
    second = toy.executor.run(replace(toy.job, operator_config=config(Gemm="")))
    assert second.units is not None
    assert second.units.compiled == len({*COMMON, GEMM, SGEMM, OPTIONAL})
    assert read_library(second.library).exported == read_library(first.library).exported
    assert second.link_map is not None


HOOKED: Final = {
    "onnxruntime_framework": {
        "core/framework/allocation_planner.cc": ["same_types.h"],
        "core/framework/prepacked_weights.cc": ["weights_hash.h"],
    },
    "onnxruntime_mlas": {
        "core/mlas/lib/sgemm.cpp": ["one_row.h"],
        "core/mlas/lib/sqnbitgemm_kernel_neon_int8.cpp": ["four_bits.h"],
    },
    "onnxruntime_providers": {
        "contrib_ops/cpu/fused_conv.cc": ["direct_convolutions.h"],
        "contrib_ops/cpu/nchwc_ops.cc": ["winograd_filters.h"],
        "contrib_ops/cpu/quantization/qlinear_softmax.cc": ["byte_softmax.h"],
        "contrib_ops/cpu/skip_layer_norm.cc": ["skip_layer_norm_rows.h"],
        "core/providers/cpu/activation/activations.cc": ["hard_swish.h"],
        "core/providers/cpu/math/element_wise_ops.cc": ["span_loops.h", "hard_swish.h"],
        "core/providers/cpu/nn/conv.cc": ["depthwise_convolutions.h", "direct_convolutions.h"],
        "core/providers/cpu/nn/layer_norm_impl.cc": ["layer_norm_rows.h"],
        "core/providers/cpu/rnn/deep_cpu_gru.cc": ["one_row_gru.h"],
        "core/providers/cpu/rnn/lstm_base.cc": ["one_row_lstm.h"],
    },
}
"""Upstream's sources of each library, and the headers of ours that stand ahead of them, in this order."""
FOR_MODELS: Final = {"depthwise_convolutions.h", "four_bits.h", "hard_swish.h", "winograd_filters.h"}
NOT_BEFORE_ROUNDING: Final = {"layer_norm_rows.h", "skip_layer_norm_rows.h"}
FOR_SIZE: Final = {"depthwise_convolutions.h", "same_types.h", "weights_hash.h"}


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("hot", "selected", "taken"),
    [
        *((hot, {"LAID_OUT": FOR_MODELS, "OPERATORS": ["DequantizeLinear"]}, lambda _: True) for hot in ("-O2", "-O3")),
        ("-O2", {}, lambda header: header not in FOR_MODELS),
        ("-O2", {"LAID_OUT": FOR_MODELS, "LEFT_OUT": FOR_MODELS}, lambda header: header not in FOR_MODELS),
        ("-Oz", {"LAID_OUT": FOR_MODELS}, lambda header: header in FOR_SIZE),
        *(
            (
                *("-O2", {"LAID_OUT": FOR_MODELS, "OPERATORS": ["Add", operator]}),
                lambda header: header not in NOT_BEFORE_ROUNDING,
            )
            for operator in ("QLinearConv", "DynamicQuantizeLinear", "MatMulInteger", "MatMulNBits", "QuantizeLinear")
        ),
    ],
)
def test_headers_stand_ahead_of_the_sources_that_they_change(
    tmp_path: Path, hot: str, selected: Mapping[str, Collection[str]], taken: Callable[[str], bool]
) -> None:
    """Without them a library is upstream's own there, and only slower."""
    lists = "cmake_minimum_required(VERSION 3.28)\nproject(onnxruntime CXX)\n"
    for library, sources in HOOKED.items():
        paths = [tmp_path / "onnxruntime" / name for name in sources]
        lists += f"add_library({library} STATIC {' '.join(map(str, paths))})\n"
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    selection = "".join(f"set(ORTRIM_{name} {' '.join(values)})\n" for name, values in selected.items())
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake" / "CMakeLists.txt").write_text(lists)
    (tmp_path / "selection.cmake").write_text(selection)
    (tmp_path / "dependencies.cmake").touch()
    tools, _ = users_folders()
    words = (
        *("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools}/bin/ninja", "-DCMAKE_CXX_COMPILER=g++"),
        f"-DCMAKE_PROJECT_onnxruntime_INCLUDE={shipped_folder('cmake')}/units.cmake",
        *(f"-DORTRIM_{name.upper()}={tmp_path}/{name}.cmake" for name in ("dependencies", "selection")),
        *("-DORTRIM_COLD=-Oz", f"-DORTRIM_HOT={hot}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
    )
    done = run((tools / "cmake" / "data" / "bin" / "cmake", "-S", tmp_path / "cmake", "-B", tmp_path / "out", *words))
    assert done.returncode == 0, done.stderr
    commands = json.loads((tmp_path / "out" / "compile_commands.json").read_text())
    ahead = {
        Path(each["file"]).relative_to(tmp_path / "onnxruntime").as_posix(): re.findall(
            r"-include (\S+)", each["command"]
        )
        for each in commands
    }
    hooked = {name: headers for sources in HOOKED.values() for name, headers in sources.items()}
    assert ahead == {name: list(filter(taken, headers)) for name, headers in hooked.items()}
