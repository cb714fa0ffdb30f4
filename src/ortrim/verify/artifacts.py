"""What identifies the files that are verified."""

from collections.abc import Iterator
from pathlib import Path

from ortrim.binaries.notes import build_id_of
from ortrim.core.reports import Artifact
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.verify.subjects import Delivery


def artifacts_of(delivery: Delivery) -> tuple[Artifact, ...]:
    """Return what is delivered: the package, then its library and the companions of that.

    Raises `StorageError` for a file that cannot be read, and `BinaryError` as `build_id_of` does.
    """
    return tuple(map(_artifact, _files(delivery)))


def _files(delivery: Delivery) -> Iterator[Path]:
    yield delivery.archive
    yield delivery.library
    yield from delivery.companions


def _artifact(path: Path) -> Artifact:
    with storage_errors(path):
        size_bytes, sha256 = path.stat().st_size, sha256_of(path)
    return Artifact(name=path.name, size_bytes=size_bytes, sha256=sha256, build_id=build_id_of(path))
