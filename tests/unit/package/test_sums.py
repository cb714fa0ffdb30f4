from pathlib import Path

import pytest

from ortrim.base.checksums import check_sums, checksums_text
from ortrim.errors import DiagnosticGroup, ExitCode, PackageError
from ortrim.package.manifest import PackagedFile
from ortrim.package.package import check_paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with two files, a link and its sums."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.so.1").write_bytes(b"library")
    (tmp_path / "lib" / "a.so").symlink_to("a.so.1")
    (tmp_path / "LICENSE").write_text("MIT\n")
    entries = [PackagedFile(path=path, content=tmp_path / path).entry for path in ("lib/a.so.1", "LICENSE")]
    (tmp_path / "SHA256SUMS").write_text(checksums_text(entries))
    return tmp_path


def references(folder: Path) -> list[str]:
    """Return the references of all problems that checking finds."""
    with pytest.raises(DiagnosticGroup) as caught:
        check_sums(folder)
    assert caught.value.exit_code == ExitCode.PACKAGE
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_intact_folder_passes(folder: Path) -> None:
    """Files, and links to listed files, are in order."""
    check_sums(folder)


def test_all_differences_are_reported_at_once(folder: Path) -> None:
    """A changed, a missing and an added file are three problems of one group."""
    (folder / "LICENSE").write_text("GPL\n")
    (folder / "lib" / "a.so.1").unlink()
    (folder / "lib" / "b.so").write_bytes(b"")
    assert sorted(references(folder)) == ["digest-mismatch", "file-missing", "unlisted-file"]


def test_digests_stand_below_each_other(folder: Path) -> None:
    """Expected and actual are aligned, so that eyes can compare them."""
    (folder / "LICENSE").write_text("GPL\n")
    with pytest.raises(DiagnosticGroup) as caught:
        check_sums(folder)
    expected, actual = caught.value.why.splitlines()
    assert expected.startswith("expected ")
    assert len(expected) == len(actual) == len("expected ") + 64


def test_link_that_leaves_the_package_does_not_count(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A listed file replaced by a link to one with the same content elsewhere is not the package's file."""
    outside = tmp_path_factory.mktemp("outside") / "LICENSE"
    outside.write_text("MIT\n")
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(outside)
    assert "file-missing" in references(folder)


def test_missing_or_binary_sums_are_reported(folder: Path) -> None:
    """Without readable sums nothing can be checked."""
    (folder / "SHA256SUMS").write_bytes(b"\xff\xfe\x00")
    for reference in ("checksums-damaged", "checksums-missing"):
        with pytest.raises(PackageError) as caught:
            check_sums(folder)
        assert caught.value.code == reference
        (folder / "SHA256SUMS").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "abc  LICENSE",
        f"{'a' * 64} LICENSE",
        f"{'a' * 64}  ../etc/passwd",
        f"{'a' * 64}  /etc/passwd",
        f"{'A' * 64}  x",
    ],
)
def test_damaged_sums_are_reported_by_line(folder: Path, line: str) -> None:
    """Lines in another form and paths that leave the package are refused."""
    (folder / "SHA256SUMS").write_text(line + "\n")
    with pytest.raises(PackageError) as caught:
        check_sums(folder)
    assert caught.value.code == "checksums-damaged"
    assert "line 1" in caught.value.why


def test_empty_sums_are_damaged(folder: Path) -> None:
    """A truncated listing must not pass as one of an empty package."""
    (folder / "SHA256SUMS").write_text("")
    with pytest.raises(PackageError) as caught:
        check_sums(folder)
    assert caught.value.code == "checksums-damaged"


def test_listing_a_file_twice_is_damage(folder: Path) -> None:
    """Two digests for one file cannot both be meant."""
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text() + sums.read_text())
    with pytest.raises(PackageError) as caught:
        check_sums(folder)
    assert caught.value.code == "checksums-damaged"


@pytest.mark.parametrize("path", ["", ".", "..", "a/../b", "/a", "a//b", "./a", "a/", "a\nb", "a/./b", "a:b"])
def test_paths_that_are_not_plain_are_refused(path: str) -> None:
    """Only normal relative paths name files of a package."""
    with pytest.raises(PackageError) as caught:
        check_paths([path])
    assert caught.value.code == "bad-package-path"


def test_path_given_twice_is_refused() -> None:
    """Two models of one name would overwrite each other."""
    with pytest.raises(PackageError, match="cannot be packaged"):
        check_paths(["models/a.ort", "models/a.ort"])
