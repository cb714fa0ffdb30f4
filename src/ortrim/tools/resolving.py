"""What pip would install on another Python or machine, without installing it: the way to the digests of wheels."""

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.errors import NetworkError
from ortrim.tools.command import run
from ortrim.tools.environments import install_error, pip_environment

SECONDS: Final = 600
ABSENT: Final = ("No matching distribution", "not a supported wheel")
"""What pip says of a version that the index does not have, or has not for the Python and machine in question."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """One wheel that pip would take."""

    name: str
    version: str
    sha256: str


def resolved(
    requirements: Sequence[str], python: str, platforms: Sequence[str], *, dependencies: bool = True
) -> tuple[Resolved, ...] | None:
    """Return the wheels that pip would take, by the user's own index; None when one of the requirements has none there.

    `python` is a CPython (`3.12`), `platforms` are in the words of wheels' names; without `dependencies`, only what is
    required itself. Raises `NetworkError` (`index-unreachable`, `bad-index-answer`) or `ToolError` (`install-failed`).
    """
    with tempfile.TemporaryDirectory(prefix="ortrim-resolving-") as folder:
        report = Path(folder) / "report.json"
        where = ("--python-version", python, *(word for each in platforms for word in ("--platform", each)))
        options = ("--target", Path(folder) / "none", "--report", report, *(() if dependencies else ("--no-deps",)))
        done = run((*_COMMAND, *where, *options, *requirements), environment=pip_environment(), timeout_seconds=SECONDS)
        if done.returncode == 0:
            return _wheels(json.loads(report.read_text(encoding="utf-8")))
    if any(words in done.stderr for words in ABSENT) and "Retrying (" not in done.stderr:
        return None
    raise install_error(requirements[0], done.stderr, Path(tempfile.gettempdir()))


_COMMAND: Final = (
    *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--ignore-installed", "--only-binary", ":all:", "--implementation", "cp"),
)


def _wheels(report: Any) -> tuple[Resolved, ...]:
    return tuple(sorted((_wheel(each) for each in report["install"]), key=lambda wheel: wheel.name))


def _wheel(entry: Any) -> Resolved:
    metadata = entry["metadata"]
    name, version = str(metadata["name"]).lower().replace("_", "-"), str(metadata["version"])
    digest = str(entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""))
    if not SHA256.fullmatch(digest):
        what, hint = (
            f"gives no SHA-256 of {name} {version}",
            "use an index that does: pip config list says which",
        )
        raise NetworkError("bad-index-answer", what, where="the package index", hint=hint)
    return Resolved(name=name, version=version, sha256=digest)
