"""Locking what was fetched, and holding what is offered later against it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ortrim.core.sums import FileEntry
from ortrim.errors import NetworkError
from ortrim.fetch.attested import Attestation
from ortrim.fetch.lock import NAME, Lock, LockedArtifact, LockedFile, Origin
from ortrim.fetch.offers import Offer
from ortrim.fetch.request import Wanted
from ortrim.fetch.store import Store
from ortrim.github.repositories import Site

SHOWN: Final = 10


def new_origin(wanted: Wanted, commit: str, site: Site) -> Origin:
    """Return where files come from, as a lock file says it."""
    return Origin(
        host=site.service.host,
        repository=str(site.repository),
        release=wanted.release,
        run=wanted.run,
        commit=commit,
        spec=wanted.selection.spec,
        target=wanted.selection.target,
    )


def locked_files(files: Iterable[FileEntry], known: Mapping[str, Attestation]) -> tuple[LockedFile, ...]:
    """Return files as a lock file says them, with those who vouch for them."""
    return tuple(
        LockedFile(path=file.path, size=file.size_bytes, sha256=file.sha256, signer=known[file.path].signer)
        for file in files
    )


def lost_attestation(before: Lock | None, after: Lock) -> str:
    """Return a warning when files were attested before and some are not any more, or by another workflow."""
    signers = {_workflow(file.signer) for file in before.files if file.signer} if before else set()
    others = [file.path for file in after.files if _workflow(file.signer) not in signers]
    if not signers or not others:
        return ""
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"files were attested by {', '.join(sorted(signers))} before; these are not now: {named}"


def _workflow(signer: str) -> str:
    """Return a workflow without the branch or tag that it ran for."""
    return signer.partition("@")[0]


def require_same_offer(lock: Lock, offer: Offer, store: Store | None) -> None:
    """Raise `NetworkError` (`lock-mismatch`), with what differs, unless an offer still has what was locked.

    Without a `store` only the archives are compared; commit and files are known once they are in the store.
    More than what was locked is no difference. Raises as `Offer.commit` and `Offer.files` do.
    """
    differences = [*_other_artifacts(lock, offer.artifacts)]
    if store is not None:
        differences += [*_other_commit(lock, offer.commit(store)), *_other_files(lock, offer.files(store))]
    if differences:
        more = [f"and {len(differences) - SHOWN} more"] * (len(differences) > SHOWN)
        what = f"{lock.origin.words} is not what {NAME} says any more"
        why = "\n".join([*differences[:SHOWN], *more])
        hint = "find out who changed it; if that was meant: invoke fetch --update"
        raise NetworkError("lock-mismatch", what, where=offer.page, why=why, hint=hint)


def _other_commit(lock: Lock, commit: str) -> Iterator[str]:
    if commit != lock.origin.commit:
        yield f"commit: locked {lock.origin.commit}, now {commit}"


def _other_artifacts(lock: Lock, artifacts: Iterable[LockedArtifact]) -> Iterator[str]:
    there = {each.name: each.sha256 for each in artifacts}
    for each in lock.artifacts:
        if there.get(each.name) != each.sha256:
            yield f"{each.name}: locked {each.sha256}, now {there.get(each.name, 'absent')}"


def _other_files(lock: Lock, files: Sequence[FileEntry]) -> Iterator[str]:
    there = {each.path: each.sha256 for each in files}
    for each in lock.files:
        if there.get(each.path) != each.sha256:
            yield f"{each.path}: locked {each.sha256}, now {there.get(each.path, 'absent')}"
