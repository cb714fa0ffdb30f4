"""Fetching Debian's original tarballs and packages through apt, in folders of our own, so without root."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from ortrim.errors import SourcesError
from ortrim.pins.source_sets import ComponentPin
from ortrim.sources.apt_session import complaints, not_delivered, prepare_apt, run_apt
from ortrim.sources.apt_sources import Mirror, host_mirrors
from ortrim.storage.cache import cache_folder
from ortrim.storage.folders import locked


def fetch_debian(components: Sequence[ComponentPin], suite: str, accept: Callable[[ComponentPin, Path], None]) -> None:
    """Fetch `components` from `suite` and hand each file over to `accept`, which checks and keeps it.

    apt's exit codes are not believed: a source may have a second part that a mirror does not serve, though the
    file that is wanted came. What counts is that the file is there. Mirrors are the host's own. Raises
    `SourcesError` (`apt-missing`, `apt-no-sources`, `apt-failed`).
    """
    mirrors = host_mirrors(suite)
    if not mirrors:
        what, hint = "apt has no Debian mirror configured here", "add one to /etc/apt/sources.list.d, or choose a kind"
        raise SourcesError("apt-no-sources", what, where="/etc/apt", hint=f"{hint} of source other than `debian`")
    folder = cache_folder("apt") / suite
    with locked(folder):
        try:
            _fetch_from_any(mirrors, components, suite, folder, accept)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _fetch_from_any(
    mirrors: Sequence[Mirror],
    components: Sequence[ComponentPin],
    suite: str,
    folder: Path,
    accept: Callable[[ComponentPin, Path], None],
) -> None:
    missing, reasons = list(components), []
    for mirror in mirrors:
        options = prepare_apt(folder, mirror, suite)
        reasons.append(complaints(run_apt(folder, "apt-get", options, "update")))
        for component in tuple(missing):
            done = run_apt(folder, "apt-get", options, *_request(component))
            if (folder / component.file).is_file():
                accept(component, folder / component.file)
                missing.remove(component)
            else:
                reasons.append(complaints(done))
        if not missing:
            return
    raise not_delivered(", ".join(component.file for component in missing), suite, reasons)


def _request(component: ComponentPin) -> tuple[str, ...]:
    if component.origin == "debian-binary":
        return ("download", component.location)
    return ("source", "--download-only", "--tar-only", component.location)
