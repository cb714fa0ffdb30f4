"""Fetching Debian's original tarballs and packages through apt, in folders of our own, so without root."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError, ToolError
from ortrim.pins.source_sets import ComponentPin
from ortrim.sources.apt_sources import Mirror, host_mirrors, source_stanza
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import write_atomically
from ortrim.storage.folders import locked
from ortrim.tools.command import Completed, run

TIMEOUT_SECONDS: Final = 1800


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
        options = _prepared(folder, mirror, suite)
        reasons.append(_said(_apt(folder, options, "update")))
        for component in tuple(missing):
            done = _apt(folder, options, *_request(component))
            if (folder / component.file).is_file():
                accept(component, folder / component.file)
                missing.remove(component)
            else:
                reasons.append(_said(done))
        if not missing:
            return
    what = f"apt did not deliver {', '.join(component.file for component in missing)}"
    hint = f"check that the mirror carries the suite {suite} and can be reached: apt-get update"
    why = "\n".join(dict.fromkeys(line for reason in reasons for line in reason.splitlines()))
    raise SourcesError("apt-failed", what, where=suite, why=why[:2000], hint=hint)


def _request(component: ComponentPin) -> tuple[str, ...]:
    if component.origin == "debian-binary":
        return ("download", component.location)
    return ("source", "--download-only", "--tar-only", component.location)


def _prepared(folder: Path, mirror: Mirror, suite: str) -> tuple[str, ...]:
    """Make apt's folders afresh and return the options that lead it there."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    write_atomically(folder / "parts" / "ortrim.sources", source_stanza(mirror, suite))
    settings = (
        "Dir::Etc::SourceList=/dev/null",
        f"Dir::Etc::SourceParts={folder / 'parts'}",
        f"Dir::State::Lists={folder / 'lists'}",
        "Dir::State::Status=/dev/null",
        f"Dir::Cache={folder / 'cache'}",
        "Acquire::Retries=3",
        # As root, apt would fetch as another user, who cannot write to this user's cache.
        "APT::Sandbox::User=root",
    )
    return tuple(word for setting in settings for word in ("-o", setting))


def _apt(folder: Path, options: tuple[str, ...], *arguments: str) -> Completed:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return run(
            ("apt-get", "--quiet=2", *options, *arguments),
            cwd=folder,
            environment=environment,
            timeout_seconds=TIMEOUT_SECONDS,
        )
    except ToolError as error:
        if error.reference != "tool-missing":
            raise
        what, hint = "there is no apt-get here", "choose a kind of source other than `debian`"
        raise SourcesError("apt-missing", what, where="apt-get", why=error.why, hint=hint) from error


def _said(done: Completed) -> str:
    """Return apt's complaints, if its exit code says that it has any."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
    return "\n".join(lines[:6]) if done.returncode != 0 else ""
