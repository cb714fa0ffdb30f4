"""What a library for Macs lacks when zig has linked it: exports that are none but those asked for."""

from pathlib import Path

from ortrim.core.apple import EXPORTS
from ortrim.core.plan import BuildJob
from ortrim.executors.paths import JobPaths
from ortrim.storage.files import storage_errors


def offer_public_api_alone(job: BuildJob, paths: JobPaths) -> None:
    """Leave a linked library the names that upstream has it export, in place; done again it changes nothing.

    Raises `BinaryError` as `with_exports` does, and `StorageError`.
    """
    from ortrim.binaries.macho_exports import with_exports  # noqa: PLC0415 - imports lief

    library = paths.build / job.expected_outputs[0]
    with storage_errors(library):
        names = frozenset(Path(paths.resolve(EXPORTS)).read_text(encoding="utf-8").split())
        library.write_bytes(with_exports(library.read_bytes(), names, str(library)))
