"""What a word names: a library, a folder that holds one, or a buildspec; and where its link map is found."""

import shutil
from pathlib import Path
from typing import Protocol

import pytest

from apple_samples import MAC_SLICE, sample, write_files, xcframework_files
from finished_builds import leave_build
from ortrim.analysis import size
from ortrim.analysis.size import ONE_MAPPED, size_of, size_page, sizes_of_two
from ortrim.base.cache import cache_folder, record_entry
from ortrim.base.files import sha256_of, write_atomically
from ortrim.errors import BinaryError, StorageError, UsageError, VerifyError
from ortrim.planning.planned import planned_for
from pipeline_stages import Stages
from refusing import refused

DATA = Path(__file__).parent / "data"
LIBRARY = "libonnxruntime.so"


class Text(Protocol):
    """A stream that can be read."""

    def getvalue(self) -> str:
        """Return what was written."""


def leave(folder: Path, name: str = "folded", *, mapped: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(DATA / f"{name}.so", folder / LIBRARY)
    if mapped:
        shutil.copyfile(DATA / f"{name}.map", folder / "link.map")
    record_entry(folder)
    return folder


def test_a_finished_builds_folder_has_library_and_map(stages: Stages, tmp_path: Path) -> None:
    """Both are found in it, also when the word is the library itself."""
    folder = leave(tmp_path / "build")
    for word in (folder, folder / LIBRARY):
        sized = size_of(str(word), stages.request(), None, stages.console)
        assert (sized.library, sized.link_map) == (folder / LIBRARY, folder / "link.map")
        assert sized.accounting.mapped


@pytest.mark.parametrize("place", ["lib", "somewhere/deep/lib"])
def test_a_packages_library_has_the_map_of_its_build(stages: Stages, tmp_path: Path, place: str) -> None:
    """The map is that of the finished build with the same bytes; others of the same size are passed over."""
    leave(cache_folder("builds") / "other", "fewer")
    build = leave(cache_folder("builds") / "ours")
    twin = leave(cache_folder("builds") / "atwin")
    (twin / LIBRARY).write_bytes((twin / LIBRARY).read_bytes()[:-1] + b"\xff")
    record_entry(twin)
    leave(tmp_path / "package" / place, mapped=False)
    sized = size_of(str(tmp_path / "package"), stages.request(), None, stages.console)
    assert sized.link_map == build / "link.map"


def test_a_build_that_another_process_removes_meanwhile_is_passed_over(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = leave(cache_folder("builds") / "gone")
    build = leave(cache_folder("builds") / "ours")
    leave(tmp_path / "package", mapped=False)
    look = sha256_of

    def vanished(path: Path) -> str:
        if path.parent == gone:
            shutil.rmtree(gone)
        return look(path)

    monkeypatch.setattr(size, "sha256_of", vanished)
    assert size_of(str(tmp_path / "package"), stages.request(), None, stages.console).link_map == build / "link.map"


def test_a_library_is_known_under_its_soname(stages: Stages, tmp_path: Path) -> None:
    """A package has it as `libonnxruntime.so.1`, as people name it; its map is that of the build."""
    build = leave(cache_folder("builds") / "ours")
    library = leave(tmp_path / "package", mapped=False).joinpath(LIBRARY).rename(tmp_path / f"{LIBRARY}.1")
    assert size_of(str(library), stages.request(), None, stages.console).link_map == build / "link.map"


def test_a_library_that_nobody_knows_has_no_map(stages: Stages, tmp_path: Path) -> None:
    sized = size_of(str(leave(tmp_path / "a", mapped=False)), stages.request(), None, stages.console)
    assert sized.link_map is None
    assert sized.accounting.notes


def test_a_map_that_is_named_is_taken(stages: Stages, tmp_path: Path) -> None:
    """Also when another lies beside the library; one that does not exist is refused."""
    folder = leave(tmp_path / "a")
    (folder / "link.map").write_text("of something else")
    sized = size_of(str(folder), stages.request(), DATA / "folded.map", stages.console)
    assert sized.accounting.mapped
    error = refused(BinaryError, size_of, str(folder), stages.request(), tmp_path / "none.map", stages.console)
    assert error.code == "link-map-missing"


def test_folders_without_one_library_are_refused(stages: Stages, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    leave(tmp_path / "two" / "a")
    leave(tmp_path / "two" / "b")
    for folder, code in (("empty", "no-library"), ("two", "no-library"), ("nothing", "library-missing")):
        assert (
            refused(BinaryError, size_of, str(tmp_path / folder), stages.request(), None, stages.console).code == code
        )


@pytest.mark.parametrize("place", [
    "libonnxruntime.dylib", "lib/libonnxruntime.dylib", "somewhere/lib/libonnxruntime.dylib",
    "onnxruntime.xcframework/ios-arm64/onnxruntime.framework/onnxruntime",
])  # fmt: skip
def test_a_library_of_apples_systems_is_found(stages: Stages, tmp_path: Path, place: str) -> None:
    """By the name that it has in a finished build, in a package and in a framework; a map of its linker is not read."""
    library = tmp_path / "folder" / place
    library.parent.mkdir(parents=True)
    library.write_bytes(sample("macos-arm64.dylib"))
    (library.parent / "link.map").write_text("# Path: libonnxruntime.dylib")
    sized = size_of(str(tmp_path / "folder"), stages.request(), None, stages.console)
    assert sized.library == library
    assert sum(leaf.size_bytes for leaf in sized.accounting.leaves) == library.stat().st_size
    assert "__TEXT,__text" in {leaf.section for leaf in sized.accounting.leaves}


def test_a_framework_for_a_mac_has_one_library(stages: Stages, tmp_path: Path) -> None:
    """The links to it are not others; an xcframework of several slices has no single one."""
    slices = write_files(tmp_path / "onnxruntime.xcframework", xcframework_files())
    sized = size_of(str(slices / MAC_SLICE), stages.request(), None, stages.console)
    assert sized.library.resolve() == slices / MAC_SLICE / "onnxruntime.framework/Versions/A/onnxruntime"
    assert sum(leaf.size_bytes for leaf in sized.accounting.leaves) == sized.library.stat().st_size
    assert {leaf.component for leaf in sized.accounting.leaves} >= {"arm64 __TEXT", "x86_64 __TEXT", "file headers"}
    with pytest.raises(BinaryError, match="3 libraries") as caught:
        size_of(str(slices), stages.request(), None, stages.console)
    assert caught.value.code == "no-library"


def test_a_damaged_library_of_apples_systems_is_refused(stages: Stages, tmp_path: Path) -> None:
    (tmp_path / "libonnxruntime.dylib").write_bytes(sample("macos-arm64.dylib")[:400])
    assert refused(BinaryError, size_of, str(tmp_path), stages.request(), None, stages.console).code == "corrupt-mach-o"


def test_a_buildspec_is_its_finished_build(stages: Stages) -> None:
    request = stages.request()
    assert refused(VerifyError, size_of, str(request.spec), request, None, stages.console).code == "not-built"
    build = leave_build(planned_for(request, stages.console).plan.targets[0])
    leave(build)
    sized = size_of(str(request.spec), request, None, stages.console)
    assert (sized.name, sized.library) == ("sample linux-x64", build / LIBRARY)
    assert sized.accounting.mapped


def test_a_buildspec_of_several_targets_needs_one(stages: Stages) -> None:
    request = stages.request('[[targets]]\nid = "linux-x64"\n[[targets]]\nid = "linux-arm64"\n', target="linux")
    error = refused(UsageError, size_of, str(request.spec), request, None, stages.console)
    assert error.code == "one-target"
    assert "linux-x64, linux-arm64" in error.hint


def test_two_libraries_are_reported_in_the_same_terms(stages: Stages, tmp_path: Path) -> None:
    """With one map alone neither uses it, or everything would seem to have changed."""
    words = (str(leave(tmp_path / "old", "fewer")), str(leave(tmp_path / "new", mapped=False)))
    before, after = sizes_of_two(words, stages.request(), stages.console)
    assert [each.accounting.mapped for each in (before, after)] == [False, False]
    assert ONE_MAPPED in stages.stdout.getvalue().replace("\n", " ")
    leave(tmp_path / "new")
    before, after = sizes_of_two(words, stages.request(), stages.console)
    assert [each.accounting.mapped for each in (before, after)] == [True, True]


def test_a_page_that_cannot_be_written_is_a_diagnostic(stages: Stages, tmp_path: Path) -> None:
    sized = size_of(str(leave(tmp_path / "a")), stages.request(), None, stages.console)
    write_atomically(tmp_path / "deep" / "size.html", size_page(sized))
    assert "<figure" in (tmp_path / "deep" / "size.html").read_text()
    error = refused(StorageError, write_atomically, tmp_path / "a" / LIBRARY / "size.html", size_page(sized))
    assert error.code == "path-in-the-way"
