"""What a build gets of a compiler cache, whichever program keeps it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompilerCacheUse
from ortrim.errors import ToolError
from ortrim.tools.command import Completed, run

SIZE_LIMIT: Final = "5G"
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class CompilerCache:
    """A compiler cache that is ready: the launcher that goes before the compiler, and what the launcher needs.

    `environment` holds no secret, because every compile command of the build sees it. `where` says in a few words
    which program keeps the objects, and where. `use` tells how far the cache has helped this build; None when it
    does not answer.
    """

    launcher: Path
    environment: Mapping[str, str]
    where: str
    use: Callable[[], CompilerCacheUse | None]


def ask(program: Path, environment: Mapping[str, str], *words: str, cwd: Path | None = None) -> Completed:
    """Return what a cache program answered.

    Raises `ToolError`: `compiler-cache-unusable` when it fails, or what `run` raises when it is absent or hangs.
    """
    done = run((program, *words), cwd=cwd, environment=environment, timeout_seconds=ANSWER_SECONDS)
    if done.returncode != 0:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise ToolError("compiler-cache-unusable", "cannot be used", where=program.name, why=why)
    return done
