"""The files of a Debian package: an `ar` archive whose member `data.tar.*` holds them. No dpkg needed."""

from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.storage.files import storage_errors

MAGIC: Final = b"!<arch>\n"
HEADER_BYTES: Final = 60


def is_debian_package(archive: Path) -> bool:
    """Whether a file is an `ar` archive."""
    with storage_errors(archive), archive.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def write_data_archive(package: Path, destination: Path) -> None:
    """Copy the member `data.tar.*` out of a package. Raises `SourcesError` (`bad-debian-package`).

    The format is described in deb(5) and ar(5): headers of 60 bytes, name in the first 16, decimal size in
    ten from 48 on; members are padded to an even length.
    """
    length = package.stat().st_size
    with storage_errors(package), package.open("rb") as file:
        file.seek(len(MAGIC))
        while len(header := file.read(HEADER_BYTES)) == HEADER_BYTES:
            name, size = header[:16].decode("latin-1").strip(" /"), header[48:58].decode("latin-1").strip()
            if header[58:] != b"`\n" or not size.isdecimal() or int(size) > length - file.tell():
                break
            if name.startswith("data.tar"):
                destination.write_bytes(file.read(int(size)))
                return
            file.seek(int(size) + int(size) % 2, 1)
    raise SourcesError("bad-debian-package", "holds no data.tar", where=str(package))
