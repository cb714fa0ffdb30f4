"""Sources from a folder of the user's: what is in it, and a copy of just that."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from ortrim.errors import Diagnostic, SourcesError
from ortrim.sources.git import git, write_archive
from ortrim.storage.files import storage_errors
from ortrim.storage.unpack import unpack


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A checkout as found: `digest` is its commit when clean, or else a SHA-256 over its files."""

    path: Path
    digest: str
    clean: bool


def identify(path: Path | None, version: str) -> Checkout:
    """Look at a checkout of ONNX Runtime.

    Raises `SourcesError`: `no-checkout`, `not-onnxruntime`, `version-mismatch`.
    """
    if path is None or not path.is_dir():
        hint = "set onnxruntime.path to a checkout of ONNX Runtime, relative to the buildspec"
        raise SourcesError("no-checkout", "is not a folder", where=str(path or "onnxruntime.path"), hint=hint)
    root = path.resolve()
    check_version(root, version)
    if (commit := _clean_commit(root)) is not None:
        return Checkout(path=root, digest=commit, clean=True)
    return Checkout(path=root, digest=_digest(root), clean=False)


def check_version(folder: Path, version: str) -> None:
    """Refuse a folder that is not the source of ONNX Runtime `version`."""
    where, number = str(folder), folder / "VERSION_NUMBER"
    if not (folder / "tools/ci_build/build.py").is_file() or not number.is_file():
        what = "is not the source of ONNX Runtime: tools/ci_build/build.py or VERSION_NUMBER is missing"
        raise SourcesError("not-onnxruntime", what, where=where)
    actual = number.read_text(encoding="utf-8", errors="replace").strip()
    if actual != version:
        what = f"is ONNX Runtime {actual[:40]}, not {version}"
        hint = "set onnxruntime.version to the version of the source, since the converter must be of the same"
        raise SourcesError("version-mismatch", what, where=where, hint=hint)


def copy_checkout(checkout: Checkout, destination: Path, work: Path) -> None:
    """Copy a checkout's files into `destination`: those of its commit, or when it is not clean those it holds now.

    Raises `SourcesError` (`checkout-changed`) when it is no longer what it was when identified.
    """
    if checkout.clean:
        work.mkdir(parents=True, exist_ok=True)
        write_archive(checkout.path, checkout.digest, work / "checkout.tar")
        unpack(work / "checkout.tar", destination)
        return
    with storage_errors(checkout.path):
        files = _files(checkout.path)
        for name in files:
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout.path / name, destination / name, follow_symlinks=False)
    if _digest_of(destination, files) != checkout.digest:
        what, hint = "was changed while it was copied", "run the same command again"
        raise SourcesError("checkout-changed", what, where=str(checkout.path), hint=hint)


def _clean_commit(root: Path) -> str | None:
    """Return the commit that is checked out, or None when the folder holds anything else beside it."""
    try:
        if Path(git(root, "rev-parse", "--show-toplevel").strip()) != root:
            return None
        if git(root, "status", "--porcelain", "--ignore-submodules=all").strip():
            return None
        return git(root, "rev-parse", "HEAD").strip()
    except Diagnostic:
        return None


def _files(root: Path) -> list[str]:
    """Return the names of all files that belong to the source, sorted; what git ignores is left out."""
    try:
        listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    except Diagnostic:
        walked = [str(path.relative_to(root)) for path in root.rglob("*")]
        listed = [name for name in walked if not name.startswith((".git/", "build/"))]
    return sorted(name for name in listed if name and ((root / name).is_file() or (root / name).is_symlink()))


def _digest(root: Path) -> str:
    with storage_errors(root):
        return _digest_of(root, _files(root))


def _digest_of(root: Path, names: list[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        content = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        mode = "link" if path.is_symlink() else "run" if path.stat().st_mode & 0o100 else "file"
        digest.update(f"{name}\0{mode}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()
