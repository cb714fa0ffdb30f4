"""Compiled targets on their way to another machine: what arrives is what left, or nothing is taken."""

import os
from pathlib import Path

import pytest

from fake_sources import private_cache
from finished_builds import leave_build, leave_compiled, leave_jni, leave_runner
from ortrim.base.cache import cache_folder, record_entry
from ortrim.compiling.executor import finished_runner
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.errors import BuildError, StorageError
from ortrim.pipeline.transfer import archive_name, export_compiled, import_compiled, is_compiled
from ortrim.platforms.android.jni import finished_jni, jni_library_in
from refusing import refused
from sample_plans import OPERATORS, sample_plan

(TARGET,) = sample_plan().targets
(ANDROID,) = sample_plan("android-arm64-v8a").targets
(OTHER,) = sample_plan(operators=OPERATORS, profile="upstream").targets


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    private_cache(tmp_path / "there", monkeypatch)
    leave_build(TARGET)
    leave_runner(TARGET)
    made = export_compiled(TARGET, tmp_path / "compiled")
    private_cache(tmp_path / "here", monkeypatch)
    return made


def test_a_build_arrives_as_it_left(archive: Path) -> None:
    assert archive.name == archive_name("linux-x64")
    import_compiled((TARGET,), archive.parent)
    result = result_of(finished_build(TARGET.job))
    assert result.library.read_bytes() == b"\x7fELFlinux-x64"
    assert result.compiler_cache is not None
    assert [header.name for header in result.headers.iterdir()] == ["onnxruntime_c_api.h"]
    assert os.access(finished_runner(TARGET.runner), os.X_OK)


def test_the_same_build_is_the_same_archive(archive: Path, tmp_path: Path) -> None:
    import_compiled((TARGET,), archive.parent)
    assert export_compiled(TARGET, tmp_path / "again").read_bytes() == archive.read_bytes()


def test_what_is_here_already_is_kept(archive: Path) -> None:
    library = leave_build(TARGET) / "libonnxruntime.so"
    library.write_bytes(b"own")
    record_entry(library.parent)
    import_compiled((TARGET,), archive.parent)
    assert library.read_bytes() == b"own"
    assert finished_runner(TARGET.runner).is_file()


def test_what_is_not_compiled_cannot_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library without its runner is not enough either; nothing is left."""
    private_cache(tmp_path, monkeypatch)
    for leave in (lambda _: None, leave_build):
        leave(TARGET)
        assert refused(BuildError, export_compiled, TARGET, tmp_path / "compiled").code == "not-compiled"
    assert not (tmp_path / "compiled").exists()


def taken() -> list[str]:
    folders = (cache_folder("builds"), cache_folder("runners"))
    return [path.name for folder in folders for path in folder.iterdir() if not path.name.endswith(".lock")]


def test_an_archive_that_is_missing_is_reported(archive: Path) -> None:
    archive.unlink()
    error = refused(BuildError, import_compiled, (TARGET,), archive.parent)
    assert (error.code, error.where) == ("not-compiled", "linux-x64")
    assert taken() == []


def test_an_archive_of_another_plan_is_refused(archive: Path) -> None:
    """The name of the target alone does not make it the right one."""
    assert refused(BuildError, import_compiled, (OTHER,), archive.parent).code == "compiled-for-another-plan"
    assert taken() == []


@pytest.mark.parametrize("part", [0, 1, 10, 200, -1])
def test_a_damaged_archive_leaves_nothing(archive: Path, part: int) -> None:
    archive.write_bytes(archive.read_bytes()[:part])
    assert refused(StorageError, import_compiled, (TARGET,), archive.parent).code == "corrupt-archive"
    assert taken() == []


def test_a_build_without_its_facts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_cache(tmp_path / "there", monkeypatch)
    facts = leave_build(TARGET) / "facts.json"
    facts.write_text("{}")
    record_entry(facts.parent)
    leave_runner(TARGET)
    made = export_compiled(TARGET, tmp_path / "compiled")
    private_cache(tmp_path / "here", monkeypatch)
    assert refused(StorageError, import_compiled, (TARGET,), made.parent).code == "build-damaged"
    assert taken() == []


@pytest.mark.needs("javac")
def test_the_jni_library_of_an_android_target_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its symbols, so that the AAR is packaged where there is no NDK, whatever the JDK there."""
    private_cache(tmp_path / "there", monkeypatch)
    leave_compiled(ANDROID)
    made = export_compiled(ANDROID, tmp_path / "compiled")
    private_cache(tmp_path / "here", monkeypatch)
    assert not is_compiled(ANDROID)
    import_compiled((ANDROID,), made.parent)
    assert is_compiled(ANDROID)
    found = jni_library_in(finished_jni(ANDROID.job))
    assert found.read_bytes() == b"\x7fELFjni android-arm64-v8a"
    assert found.with_name(f"{found.name}.sym").is_file()


@pytest.mark.needs("javac")
def test_an_android_target_without_its_jni_library_is_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_cache(tmp_path / "there", monkeypatch)
    leave_build(ANDROID)
    leave_runner(ANDROID)
    assert refused(BuildError, export_compiled, ANDROID, tmp_path / "compiled").code == "not-compiled"
    library = leave_jni(ANDROID) / "libonnxruntime4j_jni.so"
    library.unlink()
    record_entry(library.parent)
    made = export_compiled(ANDROID, tmp_path / "compiled")
    private_cache(tmp_path / "here", monkeypatch)
    assert refused(StorageError, import_compiled, (ANDROID,), made.parent).code == "jni-damaged"
    assert not is_compiled(ANDROID)
