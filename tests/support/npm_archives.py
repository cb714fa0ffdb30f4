"""Packages of the npm registry, by digest."""

import base64
import hashlib
from pathlib import Path

from ortrim.base.command import run


def npm_archive(package: str, integrity: str, folder: Path) -> Path:
    """Fetch a package, such as `name@1.2.3`, into `folder`; return its archive, which has npm's `integrity`."""
    done = run(("npm", "pack", "--silent", package), cwd=folder, timeout_seconds=600)
    assert done.returncode == 0, done.stderr
    archive = folder / done.stdout.split()[-1]
    digest = hashlib.sha512(archive.read_bytes()).digest()
    assert f"sha512-{base64.b64encode(digest).decode()}" == integrity, archive
    return archive
