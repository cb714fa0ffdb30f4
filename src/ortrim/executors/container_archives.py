"""The archives of Google's SDK as an image takes them: fetched by digest, and laid out anew as tar files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ortrim.sources.android_sdk import REPOSITORY
from ortrim.sources.zip_tar import zip_as_tar
from ortrim.storage.cache import cache_folder
from ortrim.storage.downloads import download
from ortrim.storage.records import cached_folder


@dataclass(frozen=True, kw_only=True)
class SdkArchive:
    """An archive that is pinned: its name and version in the SDK, its file and its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


def sdk_archive(archive: SdkArchive, announce: Callable[[str], None]) -> Path:
    """Return an archive as a tar file, fetched and checked when it is not in the cache.

    The engines unpack tar files by themselves, and keep the links and permissions that zip files have in a form that
    few programs read. Raises `NetworkError` or `StorageError`.
    """
    folder = cache_folder("sdk") / f"{archive.name}-{archive.version}-{archive.sha256[:16]}"
    cached_folder(folder, lambda temporary: _fill(temporary, archive, announce), large=True)
    return folder / "content.tar"


def _fill(folder: Path, archive: SdkArchive, announce: Callable[[str], None]) -> None:
    kept = cache_folder("downloads") / archive.file
    announce(f"fetch {REPOSITORY}/{archive.file}")
    download(f"{REPOSITORY}/{archive.file}", kept, archive.sha256)
    zip_as_tar(kept, folder / "content.tar")
