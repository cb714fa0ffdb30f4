"""Git, as far as sources need it, and a user's own folder of ONNX Runtime's sources, copied as it is."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base import certificates
from ortrim.base.archives import unpack
from ortrim.base.command import last_lines, run
from ortrim.base.files import storage_errors
from ortrim.errors import Diagnostic, SourcesError

TIMEOUT_SECONDS: Final = 1800
SILENT_SECONDS: Final = 300
"""Of a fetch that is to show its progress, several times a second."""
AS_STORED: Final = ("-c", "core.autocrlf=false", "-c", "core.eol=lf")
"""Without these the user's settings could change line ends, and so what is built from one and the same commit."""


def git(folder: Path, *arguments: str, **environment: str) -> str:
    """Run git in `folder`, with more variables of the environment, and return what it printed."""
    variables = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **certificates.git_variables(), **environment}
    silent_seconds = SILENT_SECONDS if "--progress" in arguments else None
    words: tuple[str | Path, ...] = ("git", "-C", folder, *arguments)
    done = run(words, environment=variables, timeout_seconds=TIMEOUT_SECONDS, silent_seconds=silent_seconds)
    if done.returncode != 0:
        why, hint = last_lines(done.stderr), certificates.HINT if certificates.is_untrusted(done.stderr) else ""
        raise SourcesError("git-failed", f"git {arguments[0]} failed", where=str(folder), why=why, hint=hint)
    return done.stdout


def write_archive(repository: Path, commit: str, archive: Path) -> None:
    """Write the files of a commit as a tar archive, without a leading folder."""
    git(repository, *AS_STORED, "archive", "--format=tar", f"--output={archive}", commit)


def tagged_commit(url: str, tag: str) -> str:
    """Ask a repository which commit a tag names."""
    printed = git(Path(), "ls-remote", "--", url, f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}")
    names = {name: commit for commit, name in (line.split("\t") for line in printed.splitlines() if "\t" in line)}
    commit = names.get(f"refs/tags/{tag}^{{}}", names.get(f"refs/tags/{tag}"))
    if commit is None:
        raise SourcesError("no-such-tag", f"the repository has no tag {tag}", where=url)
    return commit


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A checkout as found: `digest` is its commit when clean, or else a SHA-256 over its files."""

    path: Path
    digest: str
    clean: bool


def identify(path: Path | None, version: str) -> Checkout:
    """Look at a checkout of ONNX Runtime."""
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
    """Copy a checkout's files into `destination`: those of its commit, or when it is not clean those it holds now."""
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
