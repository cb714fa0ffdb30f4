"""Running one command in a container of its own, which is gone afterwards."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.tools.command import run, stream
from ortrim.tools.containers import ContainerRun, Mount
from ortrim.tools.containers_choice import UsableEngine
from ortrim.tools.containers_errors import engine_error
from ortrim.tools.containers_owned import PIPE, REMOVAL_SECONDS, own_folder, owner, remove

LIFELINE: Final = (Path(__file__).parents[1] / "data" / "scripts" / "lifeline.py").read_text(encoding="utf-8")
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
    """Run a command, hand over each line of its output, and return its exit code (above 128: a signal's, as in shells).

    Raises what `engine_error` returns when the command was not started. Whatever ends this call or this program ends
    the command too.
    """
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
    """Run it and tell the engine's own words, which come before `STARTED`, from the command's."""
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
