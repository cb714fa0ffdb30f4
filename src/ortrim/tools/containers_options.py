"""What a user adds to a container: mounts and flags for the engine, as checked words. Looks at files, changes none."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.errors import UsageError
from ortrim.tools.containers import Mount

NOT_MOUNTABLE: Final = re.compile(r'[,"\n\r\0]')
"""What the engines' `--mount` cannot hold."""
OF_THE_IMAGE: Final = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/tmp", "/usr", "/var")  # noqa: S108
OF_THE_KERNEL: Final = ("/dev", "/proc", "/sys")
FLAG: Final = re.compile(r"--[a-z][a-z0-9-]*(=[^\n\r\0]*)?", re.ASCII)
OURS: Final = frozenset({
    "--cap-add", "--detach", "--entrypoint", "--env", "--env-file", "--init", "--interactive", "--isolation", "--label",
    "--mount", "--name", "--net", "--network", "--pid", "--privileged", "--publish", "--pull", "--read-only",
    "--restart", "--rm", "--tty", "--user", "--userns", "--volume", "--volumes-from", "--workdir", "--workingdir",
})  # fmt: skip
"""Flags that would undo what ortrim promises of a container, or that it needs itself."""


def parse_mount(word: str) -> Mount:
    """Return the mount that `SRC:DST` or `SRC:DST:ro` means. Raises `UsageError` (`bad-option`)."""
    source, _, rest = word.partition(":")
    target, _, mode = rest.partition(":")
    if mode not in {"", "ro"}:
        raise _bad("mount", word, "write it as SRC:DST or SRC:DST:ro")
    path, inside = _existing(source), PurePosixPath(target)
    if path is None:
        raise _bad("mount", word, "its first part has to be a file or folder that is there")
    if not inside.is_absolute() or ".." in inside.parts or NOT_MOUNTABLE.search(f"{path}{inside}"):
        raise _bad("mount", word, "its second part has to be an absolute path; neither may hold commas or quotes")
    if str(inside) in OF_THE_IMAGE or any(inside.is_relative_to(folder) for folder in OF_THE_KERNEL):
        raise _bad("mount", word, "the image needs that folder itself: choose one of your own, such as /opt/company")
    return Mount(source=path, target=str(inside), writable=mode != "ro")


def _existing(source: str) -> Path | None:
    """Return a file or folder with links followed; None for a name of nothing, or of nothing that could be."""
    try:
        return Path(source).expanduser().resolve(strict=True) if source else None
    except (OSError, RuntimeError, ValueError):
        return None


def parse_mounts(words: Sequence[str]) -> tuple[Mount, ...]:
    """Return all mounts; two may not have the same target. Raises `UsageError` (`bad-option`)."""
    mounts = tuple(parse_mount(word) for word in words)
    targets = [mount.target for mount in mounts]
    for word, target in zip(words, targets, strict=True):
        if targets.count(target) > 1:
            raise _bad("mount", word, "two mounts have the same target")
    return mounts


def parse_flags(words: Sequence[str]) -> tuple[str, ...]:
    """Return the flags for the engine's `run`, as they are. Raises `UsageError` (`bad-option`).

    A flag is one word, `--name` or `--name=value`.
    """
    for word in words:
        if FLAG.fullmatch(word) is None:
            raise _bad("engine-flag", word, "write each as one word: --engine-flag=--memory=8g")
        if word.partition("=")[0] in OURS:
            raise _bad(
                "engine-flag", word, "ortrim sets this itself (docs/containers.md); for folders there is --mount"
            )
    return tuple(words)


def require_mountable(mounts: Sequence[Mount], own: Sequence[Mount]) -> None:
    """Refuse a user's mount that covers or is covered by one of ortrim's `own`, and paths that no engine can mount.

    Raises `UsageError` (`bad-option`, `path-not-mountable`).
    """
    for mount in own:
        if NOT_MOUNTABLE.search(str(mount.source)):
            hint = "choose another cache folder with ORTRIM_CACHE"
            what = "no container engine can mount a path with a comma or a quote"
            raise UsageError("path-not-mountable", what, where=str(mount.source), hint=hint)
        for other in mounts:
            ours, theirs = PurePosixPath(mount.target), PurePosixPath(other.target)
            if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
                raise _bad(
                    "mount", f"{other.source}:{other.target}", f"ortrim mounts {mount.target}: choose another place"
                )


def _bad(option: str, value: str, hint: str) -> UsageError:
    return UsageError("bad-option", f"{value!r} is not possible here", where=f"--{option}", hint=hint)
