"""The objects of a tree as ninja and the objects themselves tell of them."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refusing
from busy_folders import compiling
from fake_library import NINJA, OBJECTS, SYMBOLS
from ortrim.base.cache import cache_folder, locked
from ortrim.compiling import workspace
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.relink import LONGEST_REASON, read_objects, undefined_in
from ortrim.compiling.translation_units import ObjectSymbols
from ortrim.compiling.upstream_arguments import wide_sources
from ortrim.errors import BinaryError, BuildError, ExitCode, StorageError, ToolError
from ortrim.planning.planner import with_arguments
from sample_plans import FOREST, sample_plan, system_gcc
from workshop import Workshop

pytestmark = pytest.mark.usefixtures("cache")

JOB = sample_plan().targets[0].job
OTHERS: dict[str, dict[str, Any]] = {
    "exceptions": {"exceptions": True},
    "profile": {"profile": "upstream"},
    "target": {"target": "linux-arm64"},
    "toolchain": {"toolchain": system_gcc()},
    "ml operators": {"operators": FOREST},
}


def tree_of(job: BuildJob) -> Path:
    with workspace.build_tree(job, lambda: pytest.fail("waited")) as tree:
        return tree.path


def test_jobs_that_differ_in_their_operators_share_a_tree() -> None:
    with workspace.build_tree(JOB, lambda: pytest.fail("waited")) as kept:
        tree = kept.path
        (tree / "object.o").touch()
    assert tree_of(replace(JOB, operator_config="ai.onnx;14;Relu\n")) == tree
    assert (tree / "object.o").is_file()


def test_jobs_for_models_of_another_layout_share_a_tree_but_for_the_widest() -> None:
    """What is added for NCHWc layout is chosen with the sources; only that for block size 16 is in the arguments."""
    config = "com.microsoft.nchwc;1;Conv\n"
    eight = with_arguments(replace(JOB, nchwc_block_size=8, tiled=True, operator_config=config))
    sixteen = replace(JOB, nchwc_block_size=16)
    wide = ("avx512_convolutions.cc", "winograd_avx2.cc", "winograd_filters.h")
    assert wide_sources(eight)[-3:] == wide
    assert wide_sources(replace(eight, tiled=False))[-1] == wide[0]
    assert not {*wide[1:]} & {*wide_sources(replace(eight, toolchain=replace(JOB.toolchain, kind="gcc")))}
    assert tree_of(eight) == tree_of(JOB)
    assert tree_of(with_arguments(sixteen)) != tree_of(JOB)


def test_a_tree_of_other_copies_of_its_inputs_is_made_anew(tmp_path: Path) -> None:
    """Sources that were unpacked anew have other times, which precompiled headers do not take."""
    sources = tmp_path / "sources"
    sources.mkdir()
    tree = tree_of(JOB)
    workspace.empty_unless_made_of(tree, sources)
    (tree / "object.o").touch()
    workspace.empty_unless_made_of(tree, sources)
    assert (tree / "object.o").is_file()
    os.utime(sources, ns=(0, 1))
    workspace.empty_unless_made_of(tree, sources)
    assert not (tree / "object.o").exists()


def test_a_tree_in_which_a_killed_builds_compiler_works_on_is_emptied(tmp_path: Path) -> None:
    """What was started outlives ortrim when that is killed, and makes and removes its temporary files until it ends."""
    sources = tmp_path / "sources"
    sources.mkdir()
    tree = tree_of(JOB)
    for moment in range(20):
        with compiling(tree / f"out/zig/{moment}"):
            os.utime(sources, ns=(0, moment))
            workspace.empty_unless_made_of(tree, sources)
    assert not (tree / "out/object.o").exists()


def copied_until(count: int, copy: Callable[..., Any]) -> Callable[..., Any]:
    copied: list[Path] = []

    def interrupted(source: Path, destination: Path, **options: Any) -> None:
        if len(copied) == count:
            Path(destination).write_text("ha")
            raise KeyboardInterrupt
        copied.append(destination)
        copy(source, destination, **options)

    return interrupted


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_half_a_copy_of_what_zig_compiled_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, before: bool
) -> None:
    """Ctrl-C while it is copied: zig would take half a file for what it once wrote under that name."""
    with workspace.shared_zig(JOB.toolchain) as shared:
        write_zig(shared)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come late
        if before:
            patch.setattr(shutil, "copyfile", copied_until(1, shutil.copyfile))
        with (
            workspace.build_tree(JOB, lambda: pytest.fail("waited")) as tree,
            workspace.own_zig(tree.path, JOB.toolchain),
        ):
            patch.setattr(shutil, "copyfile", copied_until(1, shutil.copyfile))
    with workspace.build_tree(JOB, lambda: pytest.fail("waited")) as tree, workspace.own_zig(tree.path, JOB.toolchain):
        assert halves(tree.path / "zig") == []
    with workspace.shared_zig(JOB.toolchain) as shared:
        assert halves(shared) == []


def write_zig(folder: Path) -> None:
    for name in ("o/1/libc++.a", "o/2/crt1.o", "h/1.txt", "tmp/half"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("half" if name == "tmp/half" else f"all of {name}")


def halves(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if not path.read_text().startswith("all of") and path.name != "half"]


def test_what_zig_is_at_work_on_is_not_copied() -> None:
    """A zig that outlived its build may still rename it, or remove it."""
    with workspace.shared_zig(JOB.toolchain) as shared:
        write_zig(shared)
    with workspace.build_tree(JOB, lambda: pytest.fail("waited")) as tree, workspace.own_zig(tree.path, JOB.toolchain):
        assert (tree.path / "zig/o/1/libc++.a").is_file()
        assert not (tree.path / "zig/tmp").exists()


@pytest.mark.parametrize("name", ["", "out/MinSizeRel/build.ninja", "out/MinSizeRel/.ninja_log"])
def test_a_tree_from_the_future_is_made_anew(name: str) -> None:
    """The clock was ahead when it was used: ninja would configure it a hundred times over, or take old objects."""
    with workspace.build_tree(JOB, lambda: pytest.fail("waited")) as kept:
        tree = kept.path
        for file in ("out/MinSizeRel/build.ninja", "out/MinSizeRel/.ninja_log"):
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).touch()
    ahead = time.time() + 3600
    os.utime(tree / name, (ahead, ahead))
    said: list[str] = []
    with workspace.build_tree(JOB, lambda: pytest.fail("waited"), on_note=said.append) as held:
        assert held.path == tree
        assert list(tree.iterdir()) == []
    assert len(said) == 1
    assert "clock" in said[0]


def test_inputs_from_the_future_are_refused(tmp_path: Path) -> None:
    """Sources that were unpacked while the clock was ahead, or tools: with them no build would come to its end."""
    workspace.require_past(tmp_path)
    ahead = time.time() + 86_400
    os.utime(tmp_path, (ahead, ahead))
    caught = refusing.refused(StorageError, workspace.require_past, tmp_path.parent, tmp_path)
    assert (caught.code, caught.where) == ("clock-behind", str(tmp_path))


def test_both_linkages_share_a_tree() -> None:
    """The static library is joined of what the shared one is linked from, which is not compiled again for it."""
    shared, static = (sample_plan("linux-x64", linkage=each).targets[0].job for each in ("shared", "static"))
    assert shared != static
    assert tree_of(static) == tree_of(shared)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_jobs_that_compile_otherwise_have_trees_of_their_own(changes: dict[str, Any]) -> None:
    assert tree_of(sample_plan(**changes).targets[0].job) != tree_of(JOB)


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, hooks_sha256="e" * 64),
        replace(JOB, tools=(("cmake", "9"),)),
        replace(JOB, sources=JOB.sources[:1]),
        replace(JOB, arguments=(*JOB.arguments, "--x")),
    ],
    ids=["hooks", "tools", "sources", "arguments"],
)
def test_what_the_objects_are_made_from_is_part_of_the_tree(other: BuildJob) -> None:
    assert tree_of(other) != tree_of(JOB)


def test_a_file_in_the_way_of_a_tree_is_a_diagnostic() -> None:
    path = tree_of(JOB)
    path.rmdir()
    path.write_text("mine")
    for _ in range(2):
        with pytest.raises(StorageError) as caught, workspace.build_tree(JOB, lambda: pytest.fail("waited")):
            pass
        assert (caught.value.code, caught.value.exit_code) == ("path-in-the-way", ExitCode.STORAGE)
    assert path.read_text() == "mine"


def trees_of_ages(count: int) -> list[Path]:
    made = []
    for age in range(count):
        tree = cache_folder("trees") / f"tree-{age}"
        (tree / "out").mkdir(parents=True)
        (tree / "out" / "object.o").touch()
        os.utime(tree, (1_000_000_000 + age, 1_000_000_000 + age))
        made.append(tree)
    return made


def test_trees_used_longest_ago_go() -> None:
    trees = trees_of_ages(workspace.KEPT + 3)
    workspace.forget_old_trees()
    assert [tree for tree in trees if tree.exists()] == trees[3:]


def test_use_makes_a_tree_young() -> None:
    mine = tree_of(JOB)
    os.utime(mine, (0, 0))
    trees = trees_of_ages(workspace.KEPT)
    tree_of(JOB)
    workspace.forget_old_trees()
    assert mine.is_dir()
    assert not trees[0].exists()


def test_an_old_tree_that_is_in_use_stays() -> None:
    trees = trees_of_ages(workspace.KEPT + 2)
    with locked(trees[0]):
        workspace.forget_old_trees()
    assert [tree for tree in trees if tree.exists()] == [trees[0], *trees[2:]]
    workspace.forget_old_trees()
    assert [tree for tree in trees if tree.exists()] == trees[2:]


def test_a_tree_that_another_build_removes_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = trees_of_ages(workspace.KEPT + 1)
    real = Path.is_dir

    def vanishing(path: Path) -> bool:
        was = real(path)
        if path == trees[3]:
            (path / "out" / "object.o").unlink()
            (path / "out").rmdir()
            path.rmdir()
        return was

    monkeypatch.setattr(Path, "is_dir", vanishing)
    workspace.forget_old_trees()
    assert [tree for tree in trees if tree.exists()] == [*trees[:3], *trees[4:]]


def test_other_files_beside_the_trees_are_left_alone() -> None:
    trees_of_ages(workspace.KEPT + 1)
    (cache_folder("trees") / "note.txt").write_text("mine")
    (cache_folder("trees") / ".hidden").mkdir()
    workspace.forget_old_trees()
    assert (cache_folder("trees") / "note.txt").read_text() == "mine"
    assert (cache_folder("trees") / ".hidden").is_dir()


@pytest.fixture
def paths(workshop: Workshop) -> workspace.JobPaths:
    workshop.tool("ninja", NINJA)
    (workshop.folder / "work").mkdir()
    paths = workspace.prepare_workspace(workshop.folder / "work", workshop.executor().inputs, workshop.job.toolchain)
    paths.configured.mkdir()
    return paths


def describe(paths: workspace.JobPaths, text: str) -> None:
    (paths.configured / "compdb.json").write_text(text)


def refused(paths: workspace.JobPaths) -> BuildError:
    caught = refusing.refused(BuildError, read_objects, paths)
    assert caught.code == "objects-unknown"
    assert caught.where == str(paths.configured)
    assert str(paths.build) in caught.hint
    return caught


def entry(paths: workspace.JobPaths, source: str, output: str) -> str:
    return f'{{"directory": "{paths.configured}", "command": "cc", "file": "{source}", "output": "{output}"}}'


def test_an_object_is_named_by_its_source(paths: workspace.JobPaths) -> None:
    (paths.configured / "add.o").write_bytes((OBJECTS / "add.o").read_bytes())
    steps = (
        entry(paths, f"{paths.sources}/onnxruntime/add.cc", "add.o"),
        entry(paths, f"{paths.sources}/onnxruntime/gone.cc", "gone.o"),
        entry(paths, "/usr/share/check.c", "add.o"),
        entry(paths, "libx.a", "libx.so"),
    )
    describe(paths, f"[{', '.join(steps)}]")
    defined, undefined = SYMBOLS["add"]
    wanted = ObjectSymbols(unit="${sources}/onnxruntime/add.cc", defined=defined, undefined=undefined)
    assert read_objects(paths) == (wanted,)


def test_what_ninja_says_is_shown(paths: workspace.JobPaths, workshop: Workshop) -> None:
    workshop.tool("ninja", "echo 'ninja: error: build.ninja:7: bad'; exit 1")
    assert refused(paths).why == "ninja: error: build.ninja:7: bad"
    workshop.tool("ninja", f"echo {'x' * 9000} >&2; exit 1")
    assert len(refused(paths).why) == LONGEST_REASON


def test_no_ninja_is_a_tools_diagnostic(paths: workspace.JobPaths, workshop: Workshop) -> None:
    (workshop.folder / "tools" / "bin" / "ninja").unlink()
    caught = refusing.refused(ToolError, read_objects, paths)
    assert caught.code == "tool-missing"


@pytest.mark.parametrize("content", [b"", b"BC\xc0\xde", b"\x7fELF", (OBJECTS / "add.o").read_bytes()[:200]])
def test_a_damaged_object_is_named(paths: workspace.JobPaths, content: bytes) -> None:
    (paths.configured / "add.o").write_bytes(content)
    describe(paths, f"[{entry(paths, f'{paths.sources}/add.cc', 'add.o')}]")
    caught = refusing.refused(BinaryError, read_objects, paths)
    assert caught.where == str(paths.configured / "add.o")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from('[]{}",:1afile output\\n\\u0000')))
def test_nonsense_of_ninjas_is_a_diagnostic(paths: workspace.JobPaths, text: str) -> None:
    describe(paths, text)
    with suppress(BuildError):
        assert read_objects(paths) == ()


def test_what_nobody_defines_is_undefined() -> None:
    """Of what the roots lead to: an object that the link does not take may lack what it likes."""
    one = ObjectSymbols(unit="a", defined=frozenset({"f"}), undefined=frozenset({"g", "h"}))
    other = ObjectSymbols(unit="b", defined=frozenset({"g"}), undefined=frozenset({"f"}))
    idle = ObjectSymbols(unit="c", defined=frozenset({"i"}), undefined=frozenset({"f", "j"}))
    assert undefined_in((one, other, idle), {"a"}) == undefined_in((one, other, idle), {"b"}) == {"h"}
    assert undefined_in((one, other, idle), {"c"}) == {"h", "j"}
    assert undefined_in((), {"a"}) == frozenset()
