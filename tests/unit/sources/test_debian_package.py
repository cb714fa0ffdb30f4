from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import SourcesError
from ortrim.sources.debian import is_debian_package, write_data_archive


def ar_member(name: str, content: bytes, *, size: int | None = None) -> bytes:
    """Return one member of an ar archive; `size` lies about its length."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content) if size is None else size:<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def package(*members: bytes) -> bytes:
    """Return an ar archive."""
    return b"!<arch>\n" + b"".join(members)


def test_data_is_found_behind_members_of_odd_length(tmp_path: Path) -> None:
    """The data archive is copied out whatever precedes it."""
    content = package(
        ar_member("debian-binary", b"2.0\n"), ar_member("control.tar.xz", b"odd"), ar_member("data.tar.xz", b"D")
    )
    (tmp_path / "p.deb").write_bytes(content)
    assert is_debian_package(tmp_path / "p.deb")
    write_data_archive(tmp_path / "p.deb", tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == b"D"


@pytest.mark.parametrize(
    "content",
    [
        package(),
        package(ar_member("debian-binary", b"2.0\n")),
        package(ar_member("data.tar.xz", b"D", size=10**9)),
        package(ar_member("control", b"c", size=-5), ar_member("data.tar.xz", b"D")),
        package(ar_member("data.tar.xz", b"D"))[:40],
        package(b"x" * 60),
    ],
)
def test_damaged_packages_are_refused(tmp_path: Path, content: bytes) -> None:
    """A package without data, cut short, or with a member that claims too much, is refused."""
    (tmp_path / "p.deb").write_bytes(content)
    with pytest.raises(SourcesError) as caught:
        write_data_archive(tmp_path / "p.deb", tmp_path / "data")
    assert caught.value.code == "bad-debian-package"
    assert not (tmp_path / "data").exists()


@given(content=st.binary(max_size=300))
def test_any_bytes_end_in_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever follows the magic number, reading ends."""
    folder = tmp_path_factory.mktemp("deb")
    (folder / "p.deb").write_bytes(package(content))
    with suppress(SourcesError):
        write_data_archive(folder / "p.deb", folder / "data")
        assert (folder / "data").read_bytes() in content


def test_other_files_are_no_packages(tmp_path: Path) -> None:
    """Anything without ar's magic number is not taken for a package."""
    (tmp_path / "x").write_bytes(b"!<ar")
    assert not is_debian_package(tmp_path / "x")
