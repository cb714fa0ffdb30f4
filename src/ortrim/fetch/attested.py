"""Which of the fetched files are attested, and by whom."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ortrim.core.sums import FileEntry
from ortrim.errors import NetworkError
from ortrim.fetch.provenance import Check, Claim, Provenance, Unchecked
from ortrim.github.attestations import provenance_bundles
from ortrim.github.client import GitHub
from ortrim.github.repositories import Repository

ASKED_IN_VAIN: Final = 20
"""How many files are asked about without a token, of which GitHub answers 60 questions an hour, before it is enough."""
NOT_ATTESTED: Final = "not attested"
NOT_ASKED: Final = "not asked about: too many files to ask about without a token"


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """What is known of a file: the workflow that vouches for it, empty for none, and the same in words."""

    signer: str = ""
    words: str


def ask_attestations(
    client: GitHub, repository: Repository, claim: Claim, files: Iterable[FileEntry], check: Check
) -> dict[str, Attestation]:
    """Return what is known of each file, by path; one attestation may be of many files.

    Raises `NetworkError` (`attestation-invalid`) for a file whose attestations are all wrong, or as `GitHub.get`.
    """
    known: dict[str, Attestation] = {}
    found: dict[str, Attestation] = {}
    vain = 0
    for file in files:
        if file.sha256 not in known:
            if client.token is None and vain >= ASKED_IN_VAIN:
                known[file.sha256] = Attestation(words=NOT_ASKED)
            else:
                known |= _asked(client, repository, claim, file, check)
            vain += known[file.sha256].words == NOT_ATTESTED
        found[file.path] = known[file.sha256]
    return found


def _asked(
    client: GitHub, repository: Repository, claim: Claim, file: FileEntry, check: Check
) -> dict[str, Attestation]:
    """Return what is known of a file, and of all others that the same attestation is about."""
    bundles = provenance_bundles(client, repository, file.sha256)
    if not bundles:
        return {file.sha256: Attestation(words=NOT_ATTESTED)}
    trouble: NetworkError | Unchecked | None = None
    for bundle in bundles:
        try:
            return _vouched(check(bundle, claim), file)
        except (NetworkError, Unchecked) as error:
            trouble = error if trouble is None or isinstance(error, Unchecked) else trouble
    if isinstance(trouble, NetworkError):
        trouble.where = file.path
        raise trouble
    return {file.sha256: Attestation(words=f"attested, not checked: {trouble}")}


def _vouched(provenance: Provenance, file: FileEntry) -> dict[str, Attestation]:
    if file.sha256 not in provenance.subjects:
        what, hint = "GitHub gave an attestation of other files for it", "do not use it before you know why"
        raise NetworkError("attestation-invalid", what, where=file.path, hint=hint)
    vouched = Attestation(signer=provenance.signer, words=f"attested by {provenance.signer}")
    return dict.fromkeys(provenance.subjects, vouched)
