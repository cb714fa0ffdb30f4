"""Which container engine is used: the one asked for, or the first that works."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ortrim.errors import Diagnostic, ToolError, UsageError
from ortrim.tools.base import require
from ortrim.tools.command import run
from ortrim.tools.containers import Engine
from ortrim.tools.containers_buildah import BUILDAH
from ortrim.tools.containers_docker import DOCKER, PODMAN
from ortrim.tools.containers_errors import engine_error

ENGINES: Final[tuple[Engine, ...]] = (DOCKER, PODMAN, BUILDAH)
"""In the order in which they are tried."""
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class UsableEngine:
    """An engine that answers here."""

    engine: Engine
    version: str
    rootless: bool

    @property
    def name(self) -> str:
        """The engine's name, as users give it."""
        return self.engine.tool.name


def engine_named(name: str) -> Engine:
    """Return an engine. Raises `UsageError` (`bad-option`)."""
    for engine in ENGINES:
        if engine.tool.name == name:
            return engine
    hint = f"choose {', '.join(engine.tool.name for engine in ENGINES)}"
    raise UsageError("bad-option", f"{name!r} is not possible here", where="--engine", hint=hint)


def probe(engine: Engine) -> UsableEngine:
    """Find out whether an engine answers here; whether it may make containers shows when it does.

    Raises `ToolError`: `tool-missing`, `tool-too-old`, `engine-not-running`, `engine-not-permitted`, `engine-failed`.
    """
    installed = require(engine.tool)
    done = run(engine.probe(), timeout_seconds=ANSWER_SECONDS)
    if done.returncode != 0:
        raise engine_error(engine.tool.name, "", done.stdout + done.stderr, os.environ)
    rootless = engine.is_rootless(done.stdout, os.geteuid())
    return UsableEngine(engine=engine, version=installed.version, rootless=rootless)


def first_that_works(
    wanted: str | None, attempt: Callable[[UsableEngine], None], on_note: Callable[[str], None]
) -> UsableEngine:
    """Return the engine that was asked for, or else the first with which `attempt` raises no `ToolError`.

    `on_note` hears of those that are there and do not work. Raises what went wrong with the one asked for, or
    `ToolError` `no-container-engine` with the reason of each.
    """
    failures: list[Diagnostic] = []
    for engine in ENGINES if wanted is None else (engine_named(wanted),):
        try:
            usable = probe(engine)
            attempt(usable)
        except ToolError as error:
            failures.append(error)
            if error.reference != "tool-missing":
                on_note(f"{error.where}: {error.what}")
        else:
            return usable
    if wanted is not None:
        raise failures[0]
    why = "\n".join(f"{failure.where}: {failure.what} ({failure.hint})" for failure in failures)
    hint = "mend one of them, or build without a container: --executor native"
    raise ToolError("no-container-engine", "no container engine works here", why=why, hint=hint)
