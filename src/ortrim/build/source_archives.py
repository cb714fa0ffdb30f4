"""The archives of components: fetched from wherever their pins say, kept by digest, never opened unchecked.

- Sources from a folder of the user's: what is in it, and a copy of just that.
- Git, as far as sources need it: one commit, as an archive.
- What upstream says of its dependencies: `cmake/deps.txt` in ONNX Runtime's own archive.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from ortrim.base.archives import DAMAGE, unpack
from ortrim.base.cache import cache_folder, discard
from ortrim.base.command import last_lines, run
from ortrim.base.console import counted
from ortrim.base.downloads import download
from ortrim.base.files import require_space, sha256_of, storage_errors
from ortrim.build.debian import fetch_debian
from ortrim.errors import Diagnostic, NetworkError, SourcesError
from ortrim.pins.runtime import ComponentPin, GitPin

ARCHIVES_BYTES: Final = 96_000_000
"""What the archives of 1.21.0 take together."""
APT_BYTES: Final = 57_000_000
"""What apt takes for its lists of Debian 12 while it unpacks them."""


def fetch_archives(
    components: Sequence[ComponentPin], suite: str | None, announce: Callable[[str], None]
) -> dict[str, Path]:
    """Return the archive of each component, fetching those that are not in the cache.

    Raises `SourcesError` (`digest-mismatch`, `wheel-unavailable`, what `fetch_debian` raises), `NetworkError` or
    `StorageError` (`disk-full`, before anything is fetched where there is no room for it).
    What came before stays, so that the next run goes on from there.
    """
    missing = [component for component in components if not _is_kept(component)]
    debian = [component for component in missing if component.origin.startswith("debian")]
    size = ARCHIVES_BYTES * len(missing) // max(len(components), 1) + (APT_BYTES if debian else 0)
    require_space(cache_folder("downloads"), size, "fetching the sources")
    for component in missing:
        if component not in debian:
            announce(f"fetch {component.file}")
            _fetch(component)
    if debian:
        announce(f"fetch {counted(len(debian), 'archive')} through apt")
        fetch_debian(debian, suite or "", keep)
    return {component.name: kept_path(component) for component in components}


def kept_path(component: ComponentPin) -> Path:
    """Return where the cache keeps a component's archive."""
    return cache_folder("downloads") / f"{component.sha256[:16]}-{component.file}"


def keep(component: ComponentPin, file: Path) -> None:
    """Move a file that came into the cache if it is what was pinned; otherwise remove it and raise."""
    with storage_errors(file):
        actual = sha256_of(file)
        if actual == component.sha256:
            file.replace(kept_path(component))
            return
        file.unlink()
    why = f"expected {component.sha256}\nactual   {actual}"
    hint = "it was changed at its source, or the pin is wrong; do not use it before you know which one"
    what = f"{component.file} is not what was pinned"
    raise SourcesError("digest-mismatch", what, where=component.location, why=why, hint=hint)


def _is_kept(component: ComponentPin) -> bool:
    path = kept_path(component)
    with storage_errors(path):
        if path.is_file() and sha256_of(path) != component.sha256:
            discard(path, "it is not what was pinned")
        return path.is_file()


def _fetch(component: ComponentPin) -> None:
    if component.origin == "wheel":
        _fetch_wheel(component)
    else:
        download(component.location, kept_path(component), component.sha256)


def _fetch_wheel(component: ComponentPin) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder("downloads"), prefix=".wheel-") as name:
        folder = Path(name)
        listing = folder / "requirements.txt"
        listing.write_text(f"{component.location} --hash=sha256:{component.sha256}\n")
        command = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
        options = ("--only-binary", ":all:", "--require-hashes", "--dest", folder, "--requirement", listing)
        done = run((*command, *options))
        if not (folder / component.file).is_file():
            why = last_lines(done.stderr)
            hint = "check the network and the package index, then run the same command again"
            what = f"pip did not deliver {component.file}"
            raise SourcesError("wheel-unavailable", what, where=component.location, why=why, hint=hint)
        keep(component, folder / component.file)


TIMEOUT_SECONDS: Final = 1800
SILENT_SECONDS: Final = 300
"""Of a fetch that is to show its progress, several times a second."""
AS_STORED: Final = ("-c", "core.autocrlf=false", "-c", "core.eol=lf")
"""Without these the user's settings could change line ends, and so what is built from one and the same commit."""


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder` and return what it printed.

    Raises `SourcesError` (`git-failed`) with git's own words, or `ToolError` when there is no git.
    """
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    silent_seconds = SILENT_SECONDS if "--progress" in arguments else None
    words: tuple[str | Path, ...] = ("git", "-C", folder, *arguments)
    done = run(words, environment=environment, timeout_seconds=TIMEOUT_SECONDS, silent_seconds=silent_seconds)
    if done.returncode != 0:
        why = last_lines(done.stderr)
        raise SourcesError("git-failed", f"git {arguments[0]} failed", where=str(folder), why=why)
    return done.stdout


def fetch_commit(pin: GitPin, work: Path, archive: Path) -> None:
    """Fetch the pinned tag into `work`, check that it is the pinned commit, and write its files as a tar archive.

    Raises `SourcesError` (`git-failed`, `commit-mismatch`).
    """
    work.mkdir(parents=True)
    git(work, "init", "--quiet", "--bare")
    git(work, "fetch", "--progress", "--depth", "1", "--no-tags", "--", pin.url, f"refs/tags/{pin.tag}")
    actual = git(work, "rev-parse", "FETCH_HEAD^{commit}").strip()
    if actual != pin.commit:
        why = f"expected {pin.commit}\nactual   {actual}"
        hint = "the tag was moved, or the pin is wrong; do not use it before you know which one"
        what = f"the tag {pin.tag} is not the commit that was pinned"
        raise SourcesError("commit-mismatch", what, where=pin.url, why=why, hint=hint)
    write_archive(work, pin.commit, archive)


def write_archive(repository: Path, commit: str, archive: Path) -> None:
    """Write the files of a commit as a tar archive, without a leading folder."""
    git(repository, *AS_STORED, "archive", "--format=tar", f"--output={archive}", commit)


def tagged_commit(url: str, tag: str) -> str:
    """Ask a repository which commit a tag names. Raises `SourcesError` (`git-failed`, `no-such-tag`)."""
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


DEPENDENCIES: Final = "cmake/deps.txt"
LARGEST_LIST: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """One line of upstream's `cmake/deps.txt`."""

    name: str
    url: str
    sha1: str


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """Read `cmake/deps.txt`: lines `name;url;sha1`, comments from `#`. Raises `SourcesError`."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return tuple(_dependency(line) for line in lines)


def _dependency(line: str) -> Dependency:
    parts = line.split(";")
    if len(parts) != 3 or len(parts[2]) != 40 or set(parts[2].lower()) - set("0123456789abcdef"):
        raise SourcesError("bad-dependency-list", f"cannot read {line[:100]!r}", where=DEPENDENCIES)
    return Dependency(name=parts[0], url=parts[1], sha1=parts[2].lower())


def version_in(url: str) -> str:
    """Return what an archive's address says of its version: a tag or a commit."""
    name = PurePosixPath(urlsplit(url).path).name
    for ending in (".zip", ".tar.gz", ".tgz"):
        name = name.removesuffix(ending)
    return name.removeprefix("v")


def read_dependency_list(archive: Path, commit: str) -> str:
    """Return `cmake/deps.txt` from ONNX Runtime's archive, once the archive says that it is of the tag's commit."""
    try:
        with zipfile.ZipFile(archive) as file:
            _check_commit(archive, file.comment.decode("ascii", "replace"), commit)
            name = next((name for name in file.namelist() if name.split("/", 1)[-1] == DEPENDENCIES), None)
            if name is None or file.getinfo(name).file_size > LARGEST_LIST:
                raise SourcesError("bad-dependency-list", "is missing or far too long", where=DEPENDENCIES)
            return file.read(name).decode("utf-8", "replace")
    except DAMAGE as error:
        raise NetworkError("corrupt-download", "is not a zip archive", where=str(archive), why=str(error)) from error


def _check_commit(archive: Path, comment: str, commit: str) -> None:
    """Compare with git's own mark: `git archive` writes the commit into the comment of a zip file."""
    if comment != commit:
        why = f"expected {commit}\nactual   {comment[:64] or '(none)'}"
        what = "the archive of ONNX Runtime does not name the tag's commit"
        raise SourcesError("commit-mismatch", what, where=str(archive), why=why)
