"""Containers and images of this user's ortrim: made, run, and removed, also when a run was killed; and users' flags."""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.cache import cache_folder, locked, locked_if_free
from ortrim.base.command import run, stream
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.compiling.containers.engines import (
    ANSWER_SECONDS,
    ContainerRun,
    ImageBuild,
    Mount,
    UsableEngine,
    engine_error,
    proxies_in,
    without_credentials,
)
from ortrim.errors import Diagnostic, NetworkError, UsageError, bad_option

REMOVAL_SECONDS: Final = 120.0
PIPE: Final = "alive"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make the folder of one container, called as that is, with a pipe that ends with us, and hold its lock."""
    folder = cache_folder("containers") / f"{_prefix()}{secrets.token_hex(6)}"
    with locked(folder):
        try:
            with storage_errors(folder):
                folder.mkdir()
                os.mkfifo(folder / PIPE)
                pipe = os.open(folder / PIPE, os.O_RDWR)
            try:
                yield folder
            finally:
                os.close(pipe)
        finally:
            _forget(folder)


def owner() -> str:
    """Return what distinguishes this cache folder from those of other users of the same engine."""
    return hashlib.sha256(str(cache_folder("containers")).encode()).hexdigest()[:12]


def remove(usable: UsableEngine, name: str) -> None:
    """Remove a container that may be gone already; what cannot be removed now is a leftover for the next run."""
    with suppress(Diagnostic):
        run((*usable.engine.remove, name), timeout_seconds=REMOVAL_SECONDS)


def remove_leftovers(usable: UsableEngine) -> tuple[str, ...]:
    """Remove the containers and folders that killed runs of this cache folder left; return the containers' names."""
    listed = run(usable.engine.list_owned(owner()), timeout_seconds=ANSWER_SECONDS).stdout
    names = tuple(name for name in map(str.strip, listed.splitlines()) if name.startswith(_prefix()))
    removed = tuple(name for name in names if _removed_if_dead(usable, name))
    for folder in cache_folder("containers").glob(f"{_prefix()}*"):
        if folder.name not in names:
            with locked_if_free(folder) as free:
                if free:
                    _forget(folder)
    return removed


def _removed_if_dead(usable: UsableEngine, name: str) -> bool:
    folder = cache_folder("containers") / name
    with locked_if_free(folder) as free:
        if free:
            remove(usable, name)
            _forget(folder)
    return free


def _forget(folder: Path) -> None:
    """Remove a container's folder and lock file; names are never used again, so nobody waits for the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f".{folder.name}.lock").unlink(missing_ok=True)


def _prefix() -> str:
    return f"ortrim-{owner()}-"


LAST_LINES: Final = 200
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\b")


def image_exists(usable: UsableEngine, tag: str) -> bool:
    """Whether the engine has an image."""
    return run((*usable.engine.image_exists, tag), timeout_seconds=ANSWER_SECONDS).returncode == 0


def build_image(usable: UsableEngine, image: ImageBuild, temporary: Path, on_line: Callable[[str], None]) -> None:
    """Build an image while the caller holds the lock of its tag; `on_line` gets what is printed without credentials.

    The engine's temporary files go to `temporary`. If ortrim is killed, the engine's program ends.
    """
    _remove_unfinished(usable, image.tag)
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        on_line(without_credentials(line, os.environ))

    words = (*_ending_with_us(), *usable.engine.build(image, proxies_in(os.environ)))
    code = stream(words, take, environment={**os.environ, "TMPDIR": str(temporary)})
    if code != 0:
        raise engine_error(usable.name, f"build {image.tag}", "\n".join(lines[-LAST_LINES:]), os.environ)


def pulled_digest(usable: UsableEngine, reference: str) -> str:
    """Fetch an image by its tag and return the digest (`sha256:...`) that its registry gives it."""
    for words in (usable.engine.pull, usable.engine.digest):
        done = run((*words, reference))
        if done.returncode != 0:
            raise engine_error(usable.name, f"pull {reference}", done.stdout + done.stderr, os.environ)
    found = DIGEST.search(done.stdout)
    if found is None:
        what = "the registry has no digest for it, so that the same image could not be fetched again"
        raise NetworkError("image-without-digest", what, where=reference, why=done.stdout.strip()[:300])
    return found[0]


def _remove_unfinished(usable: UsableEngine, tag: str) -> None:
    """Remove what a killed build of this image left; the label, which comes first in its file, says whose it is."""
    words = usable.engine.list_unfinished
    listed = run(words, timeout_seconds=ANSWER_SECONDS).stdout if words else ""
    for name in filter(None, map(str.strip, listed.splitlines())):
        described = run((*usable.engine.inspect, name), timeout_seconds=ANSWER_SECONDS).stdout
        if image_label(tag).replace('"', r"\"") in described:
            run((*usable.engine.remove, name), timeout_seconds=ANSWER_SECONDS)


def image_label(tag: str) -> str:
    """Return the instruction that comes first in an image's file, and marks what a killed build has left."""
    return f'LABEL ortrim.image="{tag}" ortrim.builder="{owner()}"'


def _ending_with_us() -> tuple[str, ...]:
    """Return the words that end a program when this one is killed: util-linux's, where it is installed."""
    return ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()


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
    """Return the mount that `SRC:DST` or `SRC:DST:ro` means."""
    source, _, rest = word.partition(":")
    target, _, mode = rest.partition(":")
    if mode not in {"", "ro"}:
        raise bad_option("mount", word, "write it as SRC:DST or SRC:DST:ro")
    path, inside = _existing(source), PurePosixPath(target)
    if path is None:
        raise bad_option("mount", word, "its first part must be an existing file or folder")
    if not inside.is_absolute() or ".." in inside.parts or NOT_MOUNTABLE.search(f"{path}{inside}"):
        raise bad_option(
            "mount", word, "its second part must be an absolute path; neither may contain commas or quotes"
        )
    if str(inside) in OF_THE_IMAGE or any(inside.is_relative_to(folder) for folder in OF_THE_KERNEL):
        raise bad_option(
            "mount", word, "the image needs that folder itself: choose one of your own, such as /opt/company"
        )
    return Mount(source=path, target=str(inside), writable=mode != "ro")


def _existing(source: str) -> Path | None:
    """Return a file or folder with links followed; None for a name of nothing, or of nothing that could be."""
    try:
        return Path(source).expanduser().resolve(strict=True) if source else None
    except (OSError, RuntimeError, ValueError):
        return None


def parse_mounts(words: Sequence[str]) -> tuple[Mount, ...]:
    """Return all mounts; two may not have the same target."""
    mounts = tuple(parse_mount(word) for word in words)
    targets = [mount.target for mount in mounts]
    for word, target in zip(words, targets, strict=True):
        if targets.count(target) > 1:
            raise bad_option("mount", word, "two mounts have the same target")
    return mounts


def parse_flags(words: Sequence[str]) -> tuple[str, ...]:
    """Return the flags for the engine's `run`, as they are: one word each, `--name` or `--name=value`."""
    for word in words:
        if FLAG.fullmatch(word) is None:
            raise bad_option("engine-flag", word, "write each as one argument: --engine-flag=--memory=8g")
        if word.partition("=")[0] in OURS:
            raise bad_option(
                "engine-flag", word, "ortrim sets this itself (docs/guides/build.md); for folders there is --mount"
            )
    return tuple(words)


def require_mountable(mounts: Sequence[Mount], own: Sequence[Mount]) -> None:
    """Refuse a user's mount that covers or is covered by one of ortrim's `own`, and paths that no engine can mount."""
    for mount in own:
        if NOT_MOUNTABLE.search(str(mount.source)):
            hint = "choose another cache folder with ORTRIM_CACHE"
            what = "no container engine can mount a path that contains a comma or a quote"
            raise UsageError("path-not-mountable", what, where=str(mount.source), hint=hint)
        for other in mounts:
            ours, theirs = PurePosixPath(mount.target), PurePosixPath(other.target)
            if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
                raise bad_option(
                    "mount", f"{other.source}:{other.target}", f"ortrim mounts {mount.target}: choose another place"
                )


LIFELINE: Final = (shipped_folder("scripts") / "lifeline.py").read_text(encoding="utf-8")
STARTED: Final = "ortrim: the container runs"
"""What `lifeline.py` prints first: until then, what fails is the engine and not the command."""
NOISE: Final = ("subprocess exited with status", "subprocess exited on", "Error: exit status")
"""How buildah's lines begin that only repeat the exit code."""
PYTHON: Final = "/usr/bin/python3"
"""Where every image has a Python."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is run in a container: the words, the whole environment, the folder, and what it sees of this machine."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: str
    mounts: tuple[Mount, ...]
    flags: tuple[str, ...] = ()


def run_in(usable: UsableEngine, image: str, inside: Command, on_line: Callable[[str], None]) -> int:
    """Run a command, hand over its lines, and return its exit code (above 128: a signal's); it ends with us."""
    with own_folder() as own:
        planned = _container_run(usable, image, inside, own)
        try:
            for words in usable.engine.prepare(planned):
                done = run(words, timeout_seconds=REMOVAL_SECONDS)
                if done.returncode != 0:
                    raise engine_error(usable.name, "make a container", done.stdout + done.stderr, os.environ)
            return _streamed(usable, planned, on_line)
        finally:
            remove(usable, planned.name)


def _container_run(usable: UsableEngine, image: str, inside: Command, own: Path) -> ContainerRun:
    """Say what the engine is to run: the lifeline, which runs the command with nothing in its environment but ours."""
    variables = tuple(f"{name}={value}" for name, value in inside.environment)
    lifeline = (PYTHON, "-I", "-S", "-c", LIFELINE, str(own / PIPE))
    return ContainerRun(
        image=image,
        name=own.name,
        owner=owner(),
        command=(*lifeline, "/usr/bin/env", "-i", *variables, *inside.words),
        folder=inside.folder,
        mounts=(*inside.mounts, Mount(source=own, target=str(own))),
        user=os.geteuid(),
        group=os.getegid(),
        rootless=usable.rootless,
        flags=inside.flags,
    )


def _streamed(usable: UsableEngine, planned: ContainerRun, on_line: Callable[[str], None]) -> int:
    """Run it and separate the engine's own output, which comes before `STARTED`, from the command's."""
    before: list[str] = []
    started = False

    def take(line: str) -> None:
        nonlocal started
        if not started:
            started = line == STARTED
            before.append(line)
        elif not line.startswith(NOISE):
            on_line(line)

    code = stream(usable.engine.run(planned), take)
    if not started:
        raise engine_error(usable.name, "run a command", "\n".join(before), os.environ)
    return code
