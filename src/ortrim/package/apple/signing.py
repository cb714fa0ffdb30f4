"""Signing, which is done on files: the xcframework is laid out, signed, and read back as it then is."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ortrim.package.apple.plists import XCFRAMEWORK
from ortrim.package.contents import PROGRAM_MODE, PackagedFile, PackagedLink, write_contents

Contents = tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]


def signed(files: Iterable[PackagedFile], links: Iterable[PackagedLink], sign: Callable[[Path], None]) -> Contents:
    """Return a package's files and links after `sign` was given the path of the xcframework among them.

    The signature holds a time, so that the bytes are no longer those of another run. Raises what `sign` raises.
    """
    inside = [file for file in files if file.path.startswith(f"{XCFRAMEWORK}/")]
    outside = tuple(file for file in files if file not in inside)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_contents(folder, inside, links)
        sign(folder / XCFRAMEWORK)
        found, found_links = _read(folder)
    return (*found, *outside), found_links


def _read(folder: Path) -> Contents:
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    files = tuple(_file(folder, path) for path in paths if not path.is_symlink())
    links = tuple(
        PackagedLink(path=path.relative_to(folder).as_posix(), target=path.readlink().as_posix())
        for path in paths
        if path.is_symlink()
    )
    return files, links


def _file(folder: Path, path: Path) -> PackagedFile:
    program = path.stat().st_mode & 0o100
    mode = {"mode": PROGRAM_MODE} if program else {}
    return PackagedFile(path=path.relative_to(folder).as_posix(), content=path.read_bytes(), **mode)
