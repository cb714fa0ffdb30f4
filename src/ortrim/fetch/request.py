"""What is to be fetched, by the command line and the lock file together. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from ortrim.errors import UsageError
from ortrim.fetch.lock import NAME, Lock
from ortrim.fetch.names import EVERYTHING, Selection

LONGEST: Final = 900
UPDATE: Final = "to change the lock file: --update"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line says, empty where it says nothing; `latest` asks for the newest run."""

    release: str = ""
    run: int = 0
    latest: bool = False
    selection: Selection = EVERYTHING
    offline: bool = False
    update: bool = False

    @property
    def says_which(self) -> bool:
        """Whether it names a release or a run, or asks for the newest one."""
        return bool(self.release or self.run or self.latest)


def completed(wanted: Wanted, lock: Lock | None) -> Wanted | None:
    """Return what is to be looked up anew, or None when the lock file is to be followed.

    What an update does not say is taken from the lock file. Raises `UsageError`: `fetch-which` (nothing says what is
    wanted), `lock-differs` (the lock file says otherwise), `bad-option`, `offline-needs-lock`.
    """
    if sum(map(bool, (wanted.release, wanted.run, wanted.latest))) > 1:
        raise UsageError("bad-option", "only one of them can be fetched", where="--release, --run, --latest")
    said = wanted.release + wanted.selection.spec + wanted.selection.target
    if not said.isprintable() or len(said) > LONGEST:
        raise UsageError("bad-option", "no name is like that", where="--release, --spec, --target")
    if wanted.offline and (lock is None or wanted.update):
        what = f"without asking anybody, only what a {NAME} names can be fetched"
        raise UsageError("offline-needs-lock", what, where="--offline", hint=f"fetch once with a network, keep {NAME}")
    if lock is not None and not wanted.update:
        _require_same(wanted, lock)
        return None
    if lock is not None:
        wanted = _filled(wanted, lock)
    if not wanted.says_which:
        hint = "--release TAG, --run ID, or --latest for the newest run; then a lock file remembers"
        raise UsageError(
            "fetch-which", "nothing says what is to be fetched", where=NAME, why="it is not there", hint=hint
        )
    return wanted


def _require_same(wanted: Wanted, lock: Lock) -> None:
    origin = lock.origin
    said = (
        ("--release", wanted.release, origin.release),
        ("--run", str(wanted.run or ""), str(origin.run or "")),
        ("--latest", "the newest run" * wanted.latest, ""),
        ("--spec", wanted.selection.spec, origin.spec),
        ("--target", wanted.selection.target, origin.target),
    )
    for option, asked, locked in said:
        if asked and asked != locked:
            why = f"asked for {asked}, locked to {locked or origin.words}"
            raise UsageError("lock-differs", f"{NAME} says otherwise", where=option, why=why, hint=UPDATE)


def _filled(wanted: Wanted, lock: Lock) -> Wanted:
    origin, selection = lock.origin, wanted.selection
    chosen = Selection(spec=selection.spec or origin.spec, target=selection.target or origin.target)
    if wanted.says_which:
        return replace(wanted, selection=chosen)
    return replace(wanted, selection=chosen, release=origin.release, run=origin.run)
