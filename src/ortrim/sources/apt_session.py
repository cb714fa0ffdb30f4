"""apt in folders of our own: nothing of the host's state is read or written, so no root is needed."""

import os
import shutil
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError, ToolError
from ortrim.sources.apt_sources import Mirror, source_stanza
from ortrim.storage.files import disk_full, says_full, write_atomically
from ortrim.tools.command import Completed, run

TIMEOUT_SECONDS: Final = 1800
SILENT_SECONDS: Final = 1200
"""apt says a line for each file that it begins: the largest, of 38 MB, comes in this time at 32 kB/s."""


def prepare_apt(folder: Path, mirror: Mirror, suite: str, architecture: str = "") -> tuple[str, ...]:
    """Make apt's folders afresh below `folder` and return the options that lead it there.

    With an architecture in Debian's words (`arm64`), only that one's packages are asked for, and no sources.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    stanza = source_stanza(mirror, suite, types="deb" if architecture else "deb-src deb")
    write_atomically(folder / "parts" / "ortrim.sources", stanza)
    foreign = (f"APT::Architecture={architecture}", f"APT::Architectures={architecture}", "Acquire::Languages=none")
    settings = (
        "Dir::Etc::SourceList=/dev/null",
        f"Dir::Etc::SourceParts={folder / 'parts'}",
        f"Dir::State::Lists={folder / 'lists'}",
        "Dir::State::Status=/dev/null",
        f"Dir::Cache={folder / 'cache'}",
        "Acquire::Retries=3",
        # As root, apt would fetch as another user, who cannot write to this user's cache.
        "APT::Sandbox::User=root",
        *(foreign if architecture else ()),
    )
    return tuple(word for setting in settings for word in ("-o", setting))


def run_apt(folder: Path, program: str, options: tuple[str, ...], *arguments: str) -> Completed:
    """Run `apt-get` or `apt-cache` in `folder`. Raises `SourcesError` (`apt-missing`), `StorageError` (`disk-full`)."""
    environment = {**os.environ, "LC_ALL": "C"}
    words = (program, "--quiet=1", *options, *arguments)
    try:
        done = run(
            words,
            cwd=folder,
            environment=environment,
            timeout_seconds=TIMEOUT_SECONDS,
            silent_seconds=SILENT_SECONDS,
        )
    except ToolError as error:
        if error.reference != "tool-missing":
            raise
        what = f"there is no {program} here"
        hint = "choose a kind of source other than `debian`, and devices other than qemu, whose parts are Debian's"
        raise SourcesError("apt-missing", what, where=program, why=error.why, hint=hint) from error
    if done.returncode != 0 and says_full(folder, done.stdout + done.stderr):
        raise disk_full(f"{program} ran out of disk space", folder, why=complaints(done))
    return done


def complaints(done: Completed) -> str:
    """Return what apt complains of, if its exit code says that it has anything to complain of."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
    return "\n".join(lines[:6]) if done.returncode != 0 else ""


def not_delivered(names: str, suite: str, reasons: list[str]) -> SourcesError:
    """Return the diagnostic of files that no mirror delivered, with each of apt's complaints once."""
    what = f"apt did not deliver {names}"
    hint = f"check that the mirror carries the suite {suite} and can be reached: apt-get update"
    why = "\n".join(dict.fromkeys(line for reason in reasons for line in reason.splitlines()))
    return SourcesError("apt-failed", what, where=suite, why=why[:2000], hint=hint)
