import os
from pathlib import Path

import pytest

from fake_sources import RUNTIME_FILES, FakeSources
from ortrim.errors import SourcesError
from ortrim.sources.commits import copy_checkout, git, identify, tagged_commit
from ortrim.sources.sources import fetch_sources
from refusing import refused


def make_files(folder: Path) -> Path:
    for name, text in RUNTIME_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make_files(tmp_path / "checkout")


@pytest.fixture
def repository(plain: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (plain / ".gitignore").write_text("/ignored\n")
    git(plain, "init", "--quiet")
    git(plain, "add", "--all")
    git(plain, "commit", "--quiet", "--message", "one")
    git(plain, "tag", "--annotate", "--message", "release", "v1.21.0")
    return plain


def test_folder_without_git_has_the_digest_of_its_files(plain: Path) -> None:
    """The identity follows names, contents and permissions of files, and nothing else."""
    first = identify(plain, "1.21.0")
    assert not first.clean
    (plain / "build").mkdir()
    (plain / "build/object.o").write_text("")
    assert identify(plain, "1.21.0") == first
    (plain / "tools/ci_build/build.py").chmod(0o755)
    second = identify(plain, "1.21.0")
    (plain / "LICENSE").write_text("changed")
    third = identify(plain, "1.21.0")
    assert len({first.digest, second.digest, third.digest}) == 3


@pytest.mark.needs("git")
def test_clean_repository_has_its_commit(repository: Path) -> None:
    """A clean checkout is identified by its commit; ignored files do not make it unclean, new and changed ones do."""
    commit = git(repository, "rev-parse", "HEAD").strip()
    (repository / "ignored").write_text("")
    assert identify(repository, "1.21.0").digest == commit
    (repository / "new").write_text("")
    dirty = identify(repository, "1.21.0")
    assert (dirty.clean, len(dirty.digest)) == (False, 64)
    (repository / "new").unlink()
    (repository / "LICENSE").write_text("changed")
    assert not identify(repository, "1.21.0").clean


@pytest.mark.needs("git")
def test_folder_inside_another_repository_is_not_taken_for_it(repository: Path) -> None:
    """Sources that lie unpacked in somebody's repository do not get that repository's commit."""
    inner = make_files(repository / "ignored")
    assert not identify(inner, "1.21.0").clean


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        ({"VERSION_NUMBER": "1.20.0"}, "version-mismatch"),
        ({"VERSION_NUMBER": ""}, "version-mismatch"),
        ({"tools/ci_build/build.py": None}, "not-onnxruntime"),
    ],
)
def test_other_sources_are_refused(plain: Path, change: dict[str, str | None], reference: str) -> None:
    """A folder of another version, or that is not ONNX Runtime, is refused before anything is fetched."""
    for name, text in change.items():
        if text is None:
            (plain / name).unlink()
        else:
            (plain / name).write_text(text)
    caught = refused(SourcesError, identify, plain, "1.21.0")
    assert caught.code == reference


@pytest.mark.parametrize("name", [None, "absent", "checkout/LICENSE"])
def test_checkout_that_is_no_folder(tmp_path: Path, plain: Path, name: str | None) -> None:
    """A path that was not given, does not exist or is a file is refused."""
    caught = refused(SourcesError, identify, None if name is None else tmp_path / name, "1.21.0")
    assert caught.code == "no-checkout"


def test_change_while_copying_is_noticed(plain: Path, tmp_path: Path) -> None:
    checkout = identify(plain, "1.21.0")
    (plain / "LICENSE").write_text("changed in between")
    caught = refused(SourcesError, copy_checkout, checkout, tmp_path / "copy", tmp_path / "work")
    assert caught.code == "checkout-changed"


def test_path_becomes_a_tree_and_stays_untouched(fake: FakeSources, plain: Path) -> None:
    """A checkout is copied, its dependencies come from archives, and a change gives another tree."""
    before = sorted(plain.rglob("*"))
    tree = fetch_sources(fake.runtime(), "path", plain)
    assert sorted(plain.rglob("*")) == before
    assert tree.pins[0].kind == "path"
    assert tree.pins[1].kind == "debian"
    assert (tree.folder / "onnxruntime/LICENSE").read_text() == "MIT\n"
    (plain / "LICENSE").write_text("MIT, changed\n")
    changed = fetch_sources(fake.runtime(), "path", plain)
    assert (changed.folder / "onnxruntime/LICENSE").read_text() == "MIT, changed\n"
    assert (tree.folder / "onnxruntime/LICENSE").read_text() == "MIT\n"


@pytest.mark.needs("git")
def test_clean_repository_becomes_a_tree_of_its_commit(fake: FakeSources, repository: Path) -> None:
    (repository / "ignored").write_text("")
    tree = fetch_sources(fake.runtime(), "path", repository)
    assert not (tree.folder / "onnxruntime/ignored").exists()
    assert (tree.folder / "onnxruntime/tools/ci_build/build.py").is_file()


@pytest.mark.needs("git")
def test_the_commit_of_a_tag(repository: Path, tmp_path: Path) -> None:
    assert tagged_commit(str(repository), "v1.21.0") == git(repository, "rev-parse", "HEAD").strip()
    caught = refused(SourcesError, tagged_commit, str(repository), "v9.9.9")
    assert caught.code == "no-such-tag"
    caught = refused(SourcesError, tagged_commit, str(tmp_path / "absent"), "v1.21.0")
    assert caught.code == "git-failed"
    assert "absent" in caught.why
