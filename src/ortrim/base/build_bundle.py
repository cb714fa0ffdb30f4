"""One file with all that builds of one version fetch: what `ORTRIM_BUNDLE` names, and builds read without any network.

It is a zip archive of files as they came, and a manifest with the size and the SHA-256 of each. It is not trusted: who
takes a file out checks it against ortrim's own pins.
"""

import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from ortrim.base.archives import open_zip
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.json import read_json, to_json
from ortrim.errors import SourcesError, StorageError, UsageError

VARIABLE: Final = "ORTRIM_BUNDLE"
LAYOUT: Final = 1
MANIFEST: Final = "manifest.json"
LARGEST_MANIFEST: Final = 4 << 20
WHEELS: Final = "wheels"
HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")  # how a requirements file pins a wheel
FIRST_DAY: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can say: the same files are the same bundle."""
CONFIG: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class BundledFile:
    """One file of a bundle."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class BundleManifest:
    """What a bundle is for, and its files by their names in it.

    `buildspec` is the name of the one whose models are in it, empty for none; `python` is what the wheels are for.
    """

    layout: int
    ortrim: str
    version: str
    targets: tuple[str, ...]
    buildspec: str
    python: str
    files: dict[str, BundledFile]


@dataclass(frozen=True, kw_only=True)
class BuildBundle:
    """A bundle that was found whole as far as its lists say; each file is checked when it is taken out."""

    path: Path
    manifest: BundleManifest

    def require(self, version: str, targets: Sequence[str]) -> None:
        """Refuse builds that it is not for."""
        made_for, where = self.manifest.version, str(self.path)
        if version != made_for:
            what = f"is a bundle for ONNX Runtime {made_for}, not {version}"
            hint = f"make one where there is a network: invoke bundle --ort-version {version}"
            raise SourcesError("bundle-of-another-version", what, where=where, hint=hint)
        missing = [target for target in targets if target not in self.manifest.targets]
        if missing:
            what = f"is a bundle for {', '.join(self.manifest.targets)}, not for {', '.join(missing)}"
            hint = f"make one where there is a network: invoke bundle --target {','.join(targets)}"
            raise SourcesError("bundle-lacks-target", what, where=where, hint=hint)

    def take(self, name: str, destination: Path, what: str) -> None:
        """Write a file of the bundle to `destination`; `what` says in words what it is."""
        file = self.manifest.files.get(name)
        if file is None:
            raise SourcesError("bundle-lacks", f"does not hold {what}", where=str(self.path), **self.advice)
        with open_zip(self.path, str(self.path)) as archive:
            archive.extract(name, destination)
        actual = sha256_of(destination)
        if actual != file.sha256:
            destination.unlink()
            why = f"expected {file.sha256}\nactual   {actual}"
            hint = "it was changed after it was made: copy the bundle again, or make it again"
            what = f"{name} is not what the bundle's manifest says"
            raise StorageError("digest-mismatch", what, where=str(self.path), why=why, hint=hint)

    def take_wheels(self, requirements: str, folder: Path) -> None:
        """Write those wheels into `folder` that the text of a requirements file pins by SHA-256."""
        pinned = set(HASH.findall(requirements))
        for name, file in self.manifest.files.items():
            if name.startswith(f"{WHEELS}/") and file.sha256 in pinned:
                self.take(name, folder / Path(name).name, name)

    @property
    def advice(self) -> dict[str, str]:
        """Reason and hint of an error about what is not in it."""
        manifest = self.manifest
        spec = f"of the buildspec {manifest.buildspec}" if manifest.buildspec else "without a buildspec"
        why = f"it was made {spec}, for ONNX Runtime {manifest.version} on {', '.join(manifest.targets)}, with a"
        hint = "with this buildspec, these targets, this version of ortrim and the same Python, make it again"
        return {"why": f"{why} Python for {manifest.python}", "hint": f"{hint}: invoke bundle FILE --target ..."}


def site_bundle() -> BuildBundle | None:
    """Return the bundle that `ORTRIM_BUNDLE` names, None without one."""
    chosen = os.environ.get(VARIABLE)
    return read_bundle(Path(chosen).absolute()) if chosen else None


def read_bundle(path: Path) -> BuildBundle:
    """Return a bundle whose files are those of its manifest, by name and size."""
    where = str(path)
    if not path.is_file():
        hint = f"correct {VARIABLE} or --bundle, or make one where there is a network: invoke bundle"
        raise UsageError("no-such-bundle", "is not a file", where=where, hint=hint)
    with open_zip(path, where) as archive:
        text = archive.read(MANIFEST, LARGEST_MANIFEST) if MANIFEST in archive.members else b""
        sizes = {name: entry.file_size for name, entry in archive.members.items() if name != MANIFEST}
    why, hint = "" if text else f"it holds no {MANIFEST}", "name a file that this version's invoke bundle wrote"
    damaged = StorageError("not-a-bundle", "is not a bundle of ortrim's", where=where, why=why, hint=hint)
    manifest = read_json(BundleManifest, text, damaged)
    if manifest.layout != LAYOUT:
        what, hint = (
            f"was made by ortrim {manifest.ortrim}, which this one does not read",
            "make it again with this one",
        )
        raise StorageError("not-a-bundle", what, where=where, hint=hint)
    named = {name: file.size_bytes for name, file in manifest.files.items()}
    if named != sizes:
        why = "differs: " + ", ".join(sorted({name for name, _ in named.items() ^ sizes.items()})[:10])
        what, hint = "its files are not those that its manifest names", "copy the bundle again, or make it again"
        raise StorageError("bundle-incomplete", what, where=where, why=why, hint=hint)
    return BuildBundle(path=path, manifest=manifest)


@contextmanager
def chosen_bundle(file: str | None) -> Iterator[None]:
    """Let the bundle of an option stand before that of the environment, for this process and those that it starts."""
    before = os.environ.get(VARIABLE)
    if file is not None:
        os.environ[VARIABLE] = file
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif file is not None:
            os.environ.pop(VARIABLE, None)


class BundleWriter:
    """A bundle that is being written; `files` are those that are in it by now."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.files: dict[str, BundledFile] = {}
        self._archive = archive

    def add(self, name: str, path: Path) -> None:
        """Add a file, once, under a name in the bundle."""
        if name in self.files:
            return
        entry = zipfile.ZipInfo(name, FIRST_DAY)
        entry.external_attr = 0o100644 << 16
        with storage_errors(path), path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            source.seek(0)
            with self._archive.open(entry, "w", force_zip64=True) as member:
                shutil.copyfileobj(source, member, 1 << 20)
        self.files[name] = BundledFile(size_bytes=path.stat().st_size, sha256=digest)

    def finish(self, manifest: BundleManifest) -> None:
        """Write the manifest, the last of the files."""
        self._archive.writestr(zipfile.ZipInfo(MANIFEST, FIRST_DAY), to_json(manifest))


@contextmanager
def new_bundle(file: IO[bytes]) -> Iterator[BundleWriter]:
    """Write a bundle to a file that is open."""
    with zipfile.ZipFile(file, "w") as archive:
        yield BundleWriter(archive)
