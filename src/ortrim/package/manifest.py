"""`manifest.json`: what is in a package and what it was made from; written by us, read back from anywhere."""

import tarfile
import zlib
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.core.artifacts import Manifest
from ortrim.core.plan import BuildJob, digest
from ortrim.core.serialization import from_json
from ortrim.core.sums import FileEntry
from ortrim.errors import PackageError
from ortrim.package.inputs import PackageInputs

MANIFEST: Final = "manifest.json"
NO_CPUINFO: Final = "onnxruntime_ENABLE_CPUINFO=OFF"
LARGEST_BYTES: Final = 16 << 20
MEMBERS_LIMIT: Final = 10_000
UNPACKED_LIMIT: Final = 8 << 30


def has_cpuinfo(job: BuildJob) -> bool:
    """Whether the library pytorch/cpuinfo is compiled in."""
    return NO_CPUINFO not in job.arguments


def make_manifest(inputs: PackageInputs, files: tuple[FileEntry, ...]) -> Manifest:
    """Return the manifest of a package with these files, itself and `SHA256SUMS` left out."""
    job = inputs.job
    return Manifest(
        name=inputs.name,
        target=job.target.identifier,
        ort_version=job.ort_version,
        ortrim_version=inputs.plan.ortrim_version,
        plan_digest=digest(inputs.plan),
        profile=job.profile,
        exceptions=job.exceptions,
        minimum_glibc=job.minimum_glibc,
        cpu=job.cpu,
        linkage=job.linkage,
        cpuinfo=has_cpuinfo(job),
        compiler=f"{job.toolchain.kind} {job.toolchain.version}",
        tools=inputs.job.tools,
        arguments=job.arguments,
        operators=inputs.operators,
        models=inputs.plan.models,
        sources=job.sources,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
    )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a package, given its folder, its archive, or `manifest.json` itself.

    Raises `PackageError` (`package-missing`, `package-damaged`, `manifest-missing`, `manifest-damaged`).
    """
    if not path.exists():
        raise PackageError("package-missing", "there is no such package", where=str(path))
    if path.is_dir():
        return _parsed(_file_bytes(path / MANIFEST), path / MANIFEST)
    if path.name == MANIFEST:
        return _parsed(_file_bytes(path), path)
    return _parsed(_archived_bytes(path), path)


def _file_bytes(path: Path) -> bytes:
    if not path.is_file():
        raise PackageError("manifest-missing", f"the package has no {MANIFEST}", where=str(path))
    with path.open("rb") as file:
        return file.read(LARGEST_BYTES + 1)


def _archived_bytes(path: Path) -> bytes:
    try:
        with tarfile.open(path, "r:gz") as archive:
            content = _member_bytes(archive)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        what = "the archive cannot be read"
        hint = "download or build it again"
        raise PackageError("package-damaged", what, where=str(path), why=str(error), hint=hint) from error
    if content is None:
        raise PackageError("manifest-missing", f"the archive has no {MANIFEST}", where=str(path))
    return content


def _member_bytes(archive: tarfile.TarFile) -> bytes | None:
    """Return the manifest's bytes without unpacking anything; what no real package reaches is refused."""
    unpacked = 0
    for number, member in enumerate(archive):
        unpacked += member.size
        if number >= MEMBERS_LIMIT or unpacked > UNPACKED_LIMIT:
            raise ValueError("it is larger than any package")
        if member.isreg() and member.name.count("/") == 1 and member.name.endswith(f"/{MANIFEST}"):
            content = archive.extractfile(member)
            assert content is not None
            return content.read(LARGEST_BYTES + 1)
    return None


def _parsed(content: bytes, where: Path) -> Manifest:
    if len(content) > LARGEST_BYTES:
        raise _damaged(where, "it is larger than any manifest")
    try:
        return from_json(Manifest, content)
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(str(part) for part in first['loc']) or 'the whole'}: {first['msg']}"
        raise _damaged(where, why) from error


def _damaged(where: Path, why: str) -> PackageError:
    hint = "it was edited, cut off, or made by an incompatible version of ortrim"
    return PackageError("manifest-damaged", f"{MANIFEST} is not a manifest", where=str(where), why=why, hint=hint)
