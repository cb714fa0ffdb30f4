"""Sources by git: a commit's files, fetched in whatever way works and proved by git's own ids, or a user's checkout.

A commit's id is the SHA-1 of what it says, its tree's id among it, and that is the SHA-1 of names and ids of files.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.archives import unpack
from ortrim.base.build_bundle import site_bundle
from ortrim.base.command import last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.http import Mirrors, fetch, mirrored, site_mirrors
from ortrim.base.tools import UNTRUSTED_HINT, git_certificates, is_untrusted
from ortrim.errors import Diagnostic, NetworkError, SourcesError, StorageError, ToolError
from ortrim.pins.runtime import CommitPin

TIMEOUT_SECONDS: Final = 1800
ASKED_SECONDS: Final = 8
SILENT_SECONDS: Final = 300  # of a fetch that is to show its progress, several times a second
NO_EOL_CONVERSION: Final = ("-c", "core.autocrlf=false", "-c", "core.eol=lf")
"""Without these the user's settings could change line ends, and so what is built from one and the same commit."""


def git(folder: Path, *arguments: str, timeout_seconds: float = TIMEOUT_SECONDS, **environment: str) -> str:
    """Run git in `folder`, with more variables of the environment, and return what it printed."""
    variables = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **git_certificates(), **environment}
    silent_seconds = SILENT_SECONDS if "--progress" in arguments else None
    words: tuple[str | Path, ...] = ("git", "-C", folder, *arguments)
    done = run(words, environment=variables, timeout_seconds=timeout_seconds, silent_seconds=silent_seconds)
    if done.returncode != 0:
        why, hint = last_lines(done.stderr), UNTRUSTED_HINT if is_untrusted(done.stderr) else ""
        raise SourcesError("git-failed", f"git {arguments[0]} failed", where=str(folder), why=why, hint=hint)
    return done.stdout


def write_archive(repository: Path, commit: str, archive: Path) -> None:
    """Write the files of a commit as a tar archive, without a leading folder."""
    git(repository, *NO_EOL_CONVERSION, "archive", "--format=tar", f"--output={archive}", commit)


def tagged_commit(url: str, tag: str) -> str:
    """Ask a repository which commit a tag names."""
    printed = git(Path(), "ls-remote", "--", url, f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}")
    names = {name: commit for commit, name in (line.split("\t") for line in printed.splitlines() if "\t" in line)}
    commit = names.get(f"refs/tags/{tag}^{{}}", names.get(f"refs/tags/{tag}"))
    if commit is None:
        raise SourcesError("no-such-tag", f"the repository has no tag {tag}", where=url)
    return commit


def why_silent(repository: str) -> str:
    """Return why a repository, or its mirror, does not answer within seconds; empty if it does."""
    url = mirrored(f"{repository}.git", site_mirrors())
    try:
        git(Path(), "ls-remote", "--quiet", "--", url, "HEAD", timeout_seconds=ASKED_SECONDS)
    except Diagnostic as error:
        return (error.why or error.what).splitlines()[0].removeprefix("fatal: ")
    return ""


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
    with storage_errors(root):
        return Checkout(path=root, digest=_digest_of(root, _files(root)), clean=False)


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


def _digest_of(root: Path, names: list[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        content = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        mode = "link" if path.is_symlink() else "run" if path.stat().st_mode & 0o100 else "file"
        digest.update(f"{name}\0{mode}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


LEFT_OUT: Final = (
    "csharp", "docs", "js", "onnxruntime/contrib_ops/cuda", "onnxruntime/test", "orttraining/orttraining/test", "rust",
    "samples", "winml",
)  # fmt: skip
"""Folders that no build reads: 330 of the 430 MB of 1.24.4's files."""
AS_STORED: Final = "* -text -eol -ident -filter -working-tree-encoding -export-subst -export-ignore\n"
"""As git's attributes, which would otherwise let the user's settings and upstream's change line ends."""
DAMAGED: Final = frozenset({"archive-too-large", "corrupt-archive", "nothing-unpacked", "unsafe-archive"})


def fetch_commit(pin: CommitPin, folder: Path, work: Path, announce: Callable[[str], None]) -> None:
    """Fill the new `folder` with the files of a commit, without those that no build reads.

    First with git; then, if the tree is pinned, as an archive; where there is a bundle, from that alone. `work` is for
    what is needed meanwhile.
    """
    if (bundle := site_bundle()) is not None:
        announce(f"take {_named(pin)} from {bundle.path.name}")
        packed = work / "commit.tar.gz"
        bundle.take(bundled_commit(pin), packed, _named(pin))
        unpack(packed, folder)
        packed.unlink()
        require_tree(folder, pin.tree or "", pin.left_out)
        return
    ways = {"with git": _with_git} | ({"as an archive": _as_archive} if pin.tree else {})
    failures: list[Diagnostic] = []
    for words, way in ways.items():
        announce(f"fetch {_named(pin)} {words}")
        try:
            way(pin, folder, work)
        except (NetworkError, SourcesError, StorageError, ToolError) as error:
            if isinstance(error, StorageError) and error.code not in DAMAGED:
                raise
            failures.append(error)
            shutil.rmtree(folder, ignore_errors=True)
        else:
            return
    what = f"the commit {pin.commit} could not be fetched in any way"
    why = "\n".join(f"{words}: {failure}" for words, failure in zip(ways, failures, strict=True))
    mirror = f"https://mirror.example/{_repository(pin)}.git"
    hint = f"behind a firewall, name a mirror of the repository: ORTRIM_MIRRORS='{pin.repository}.git={mirror}'"
    raise SourcesError("commit-unavailable", what, where=pin.repository, why=why, hint=hint)


def _named(pin: CommitPin) -> str:
    return f"{_repository(pin)}'s commit {pin.commit[:10]}"


def _repository(pin: CommitPin) -> str:
    return pin.repository.rsplit("/", 1)[-1]


def _with_git(pin: CommitPin, folder: Path, _work: Path) -> None:
    folder.mkdir()
    fetch_objects(folder, pin.repository, pin.commit, site_mirrors())
    (folder / ".git" / "info" / "attributes").write_text(AS_STORED, encoding="utf-8", newline="\n")
    left_out = dict(pin.left_out) or left_out_of(folder, pin.commit)
    patterns = ("/*", *(f"!/{name}/" for name in left_out))
    git(folder, "sparse-checkout", "set", "--no-cone", *patterns)
    git(folder, "checkout", "--quiet", "--detach", pin.commit)
    tree = git(folder, "rev-parse", f"{pin.commit}^{{tree}}").strip()
    shutil.rmtree(folder / ".git")
    require_tree(folder, tree, left_out)


def fetch_objects(folder: Path, repository: str, commit: str, mirrors: Mirrors) -> None:
    """Fetch a commit into a new repository `folder`, without files' contents, which git then fetches as needed."""
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", mirrored(f"{repository}.git", mirrors))
    git(folder, "fetch", "--progress", "--depth", "1", "--no-tags", "--filter=blob:none", "origin", commit)


def left_out_of(repository: Path, commit: str) -> dict[str, str]:
    """Return the ids of a commit's folders that no build reads, and of its submodules."""
    lines = git(repository, "ls-tree", "-r", "-t", commit).splitlines()
    entries = [(line.split("\t", 1)[1], *line.split()[1:3]) for line in lines]
    return {name: f"{kind} {number}" for name, kind, number in entries if kind == "commit" or name in LEFT_OUT}


def _as_archive(pin: CommitPin, folder: Path, work: Path) -> None:
    archive = work / f"{pin.commit}.zip"
    fetch(mirrored(f"{pin.repository}/archive/{pin.commit}.zip", site_mirrors()), archive, "sha256", None)
    unpack(archive, folder, strip=1, zip_links=True)
    archive.unlink()
    for name in pin.left_out:
        shutil.rmtree(folder / name, ignore_errors=True)
    require_tree(folder, pin.tree or "", pin.left_out)


def bundled_commit(pin: CommitPin) -> str:
    """Return the name of a commit's files in a bundle."""
    return f"commits/{pin.commit}.tar.gz"


def pack_commit(pin: CommitPin, folder: Path, archive: Path) -> None:
    """Write the files that `fetch_commit` brought as one archive."""
    if pin.tree is None:
        what = "only its commit is pinned, which does not prove the files that a bundle holds"
        hint = "run: invoke pins.update --version VERSION, which pins git's ids of the files, too"
        raise SourcesError("tree-not-pinned", what, where=pin.commit, hint=hint)
    require_tree(folder, pin.tree, pin.left_out)
    with (
        storage_errors(archive),
        gzip.GzipFile(archive, "wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as file,
    ):
        for path in sorted(folder.rglob("*")):
            file.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def require_tree(folder: Path, tree: str, left_out: Mapping[str, str]) -> None:
    """Refuse a folder whose files are not those of git's tree; those `left_out` are known by their ids."""
    with storage_errors(folder):
        actual = tree_id(folder, left_out)
    if actual != tree:
        what = "the files are not those of the commit that was pinned"
        why = f"expected the tree {tree}\nactual            {actual}"
        hint = "something on the way changed them; do not use them before you know what"
        raise SourcesError("tree-mismatch", what, where=str(folder), why=why, hint=hint)


def tree_id(folder: Path, left_out: Mapping[str, str]) -> str:
    """Return git's id of a folder's files. `left_out` has the ids of folders below that are not there."""
    entries = []
    below = {name.split("/", 1)[0] for name in left_out}
    for name in {path.name for path in folder.iterdir()} | below:
        path = folder / name
        if path.is_symlink():
            entries.append(("120000", name, _object_id("blob", str(path.readlink()).encode())))
        elif path.is_file():
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            entries.append((mode, name, _object_id("blob", path.read_bytes())))
        elif name in left_out:
            kind, number = left_out[name].split()
            entries.append(("160000" if kind == "commit" else "40000", name, number))
        elif any(path.iterdir()) or name in below:  # git knows no empty folders
            inner = {key.split("/", 1)[1]: left_out[key] for key in left_out if key.startswith(f"{name}/")}
            entries.append(("40000", name, tree_id(path, inner)))
    entries.sort(key=lambda entry: entry[1].encode() + (b"/" if entry[0] == "40000" else b""))  # git's own order
    lines = (f"{mode} {name}".encode() + b"\0" + bytes.fromhex(number) for mode, name, number in entries)
    return _object_id("tree", b"".join(lines))


def _object_id(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}".encode() + b"\0" + content, usedforsecurity=False).hexdigest()
