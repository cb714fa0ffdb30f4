"""Which of a run's artifacts, or of a release's files, belong to a spec and a target. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ortrim.core.delivery import FOLDERS, PREFIX
from ortrim.core.targets import APPLE, TARGETS, OperatingSystem, matches
from ortrim.errors import UsageError

ASSEMBLED: Final = {
    package: tuple(name for name, target in TARGETS.items() if target.system in systems)
    for package, systems in (("android", (OperatingSystem.ANDROID,)), ("apple", APPLE))
}
"""What a package for several targets is called after, the name of its assembly -> its targets."""
PACKAGES: Final = sorted((*TARGETS, *ASSEMBLED), key=len, reverse=True)
DELIVERY: Final = re.compile(rf"{PREFIX}(?P<spec>[A-Za-z0-9._-]+)-(?P<package>{'|'.join(PACKAGES)})")
ASSET: Final = re.compile(
    rf"ortrim-(?P<spec>[A-Za-z0-9._-]+?)-(?P<package>{'|'.join(PACKAGES)})(?:-[0-9][^/]*|{re.escape(FOLDERS)})"
)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is wanted: a spec's name and targets as `--target` takes them; empty for all of them."""

    spec: str = ""
    target: str = ""

    def takes(self, spec: str, package: str) -> bool:
        """Whether a package, for one target or for a system, is wanted."""
        patterns = [pattern.strip() for pattern in self.target.split(",") if pattern.strip()]
        around = (each for each, inside in ASSEMBLED.items() if package in inside)
        names = [package, *ASSEMBLED.get(package, ()), *around]
        of_target = not patterns or any(matches(pattern, name) for pattern in patterns for name in names)
        return of_target and self.spec in {"", spec}

    def __str__(self) -> str:
        words = [f"spec {self.spec}"] * bool(self.spec) + [f"target {self.target}"] * bool(self.target)
        return ", ".join(words) or "everything"


EVERYTHING: Final = Selection()


def wanted_artifacts(names: Iterable[str], selection: Selection, where: str) -> tuple[str, ...]:
    """Return the names of the deliveries that are wanted, in order. Raises `UsageError` (`nothing-to-fetch`)."""
    return _wanted(names, DELIVERY, selection, where)


def wanted_assets(names: Iterable[str], selection: Selection, where: str) -> tuple[str, ...]:
    """Return the names of a release's files that are wanted, in order. Raises `UsageError` (`nothing-to-fetch`)."""
    if selection == EVERYTHING:
        return tuple(sorted(names))
    return _wanted(names, ASSET, selection, where)


def _wanted(names: Iterable[str], form: re.Pattern[str], selection: Selection, where: str) -> tuple[str, ...]:
    found = {name: match for name in sorted(names) if (match := form.fullmatch(name))}
    wanted = tuple(name for name, match in found.items() if selection.takes(match["spec"], match["package"]))
    if not wanted:
        there = sorted({f"{match['spec']} for {match['package']}" for match in found.values()})
        why = f"it has: {'; '.join(there[:20])}" if there else "it has no delivery of ortrim's"
        hint = "choose with --spec NAME and --target GLOB"
        raise UsageError("nothing-to-fetch", f"has nothing of {selection}", where=where, why=why, hint=hint)
    return wanted
