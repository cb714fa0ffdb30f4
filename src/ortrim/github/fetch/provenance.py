"""Checking attestations with the library sigstore: who signed, in which repository, of which commit, for which files.

The library is large and needed by few, so it is an extra (`ortrim[attestation]`) and imported here only when it is
used. Certificate fields: https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from ortrim.base.checksums import FileEntry
from ortrim.base.tools import extra_command
from ortrim.errors import NetworkError
from ortrim.github.artifacts import provenance_bundles
from ortrim.github.client import GitHub

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from sigstore.verify import Verifier

ISSUER: Final = "https://token.actions.githubusercontent.com"
STATEMENT: Final = "application/vnd.in-toto+json"
PROVENANCE: Final = "https://slsa.dev/provenance/v1"
OTHER_SERVICE: Final = "in no public log, as for private repositories: check it with gh attestation verify"


@dataclass(frozen=True, kw_only=True)
class ProvenanceClaim:
    """What a workflow's signature has to say: the repository's page and the commit."""

    repository: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a checked attestation says: the workflow that signed, and the SHA-256 of each file it vouches for."""

    signer: str
    subjects: frozenset[str]


class Unchecked(Exception):
    """An attestation cannot be checked here; the words say why."""


Check = Callable[[str, ProvenanceClaim], Provenance]
"""Takes a bundle and what it has to say. Raises `Unchecked`, and `NetworkError` for one that is not right."""


def check_provenance(bundle: str, claim: ProvenanceClaim) -> Provenance:
    """Check a bundle by sigstore's keys."""
    try:
        from sigstore.models import Bundle  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unchecked(f"sigstore is not installed; run: {extra_command('attestation')}") from None
    if not _is_in_public_log(bundle):
        raise Unchecked(OTHER_SERVICE)
    verifier = _verifier()
    try:
        kind, payload = verifier.verify_dsse(Bundle.from_json(bundle), _Workflow(claim))
        return Provenance(signer=_signer(bundle), subjects=_subjects(kind, payload))
    except Exception as error:  # whatever the library thinks of a stranger's bytes: they are not right
        hint = "find out why before you use the files"
        what = "an attestation is not valid"
        where, why = claim.repository, str(error)[:500] or type(error).__name__
        raise NetworkError("attestation-invalid", what, where=where, why=why, hint=hint) from error


class _Workflow:
    """Accepts certificates that GitHub gave to a workflow of the repository that ran for the commit."""

    def __init__(self, claim: ProvenanceClaim) -> None:
        self._claim = claim

    def verify(self, cert: "Certificate") -> None:
        """Raise sigstore's `VerificationError` for any other certificate."""
        from sigstore.verify import policy  # noqa: PLC0415 - an extra

        wanted = (
            policy.OIDCIssuerV2(ISSUER),
            policy.OIDCSourceRepositoryURI(self._claim.repository),
            policy.OIDCSourceRepositoryDigest(self._claim.commit),
        )
        policy.AllOf(list(wanted)).verify(cert)


def _subjects(kind: str, payload: bytes) -> frozenset[str]:
    """Return the digests that a signed statement is about. Raises `ValueError` and the like for another statement."""
    statement = json.loads(payload)
    if kind != STATEMENT or statement["predicateType"] != PROVENANCE:
        raise ValueError(f"it is not a provenance: {statement['predicateType']!r:.200}")
    return frozenset(str(subject["digest"]["sha256"]) for subject in statement["subject"])


def _signer(bundle: str) -> str:
    """Return the workflow in the certificate of a bundle that was checked."""
    from cryptography.x509 import SubjectAlternativeName, UniformResourceIdentifier  # noqa: PLC0415 - of the extra
    from sigstore.models import Bundle  # noqa: PLC0415

    names = Bundle.from_json(bundle).signing_certificate.extensions.get_extension_for_class(SubjectAlternativeName)
    return names.value.get_values_for_type(UniformResourceIdentifier)[0]


def _is_in_public_log(bundle: str) -> bool:
    """Whether a bundle says that it is in a transparency log: sigstore's public service puts everything there."""
    try:
        return bool(json.loads(bundle)["verificationMaterial"].get("tlogEntries"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return True  # damaged: the check says so


@cache
def _verifier() -> "Verifier":
    """Return a verifier with sigstore's keys of today, or else with those that the library came with."""
    from sigstore.errors import Error  # noqa: PLC0415 - an extra
    from sigstore.verify import Verifier  # noqa: PLC0415

    logging.getLogger("sigstore").setLevel(logging.ERROR)  # it warns of its own fallback, which is meant
    try:
        return Verifier.production()
    except (Error, OSError):
        pass
    try:
        return Verifier.production(offline=True)
    except (Error, OSError, ValueError) as error:
        raise Unchecked(f"sigstore's keys cannot be read: {type(error).__name__}") from None


ASKED_IN_VAIN: Final = 20
"""How many files are looked up without a token, with which GitHub allows 60 requests an hour."""
NOT_ATTESTED: Final = "not attested"
NOT_ASKED: Final = "not looked up: too many files without a token"


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """What is known of a file: the workflow that vouches for it, empty for none, and the same in words."""

    signer: str = ""
    words: str


def ask_attestations(
    client: GitHub, claim: ProvenanceClaim, files: Iterable[FileEntry], check: Check
) -> dict[str, Attestation]:
    """Return what is known of each file, by path; one attestation may be of many files."""
    known: dict[str, Attestation] = {}
    found: dict[str, Attestation] = {}
    vain = 0
    for file in files:
        if file.sha256 not in known:
            if client.token is None and vain >= ASKED_IN_VAIN:
                known[file.sha256] = Attestation(words=NOT_ASKED)
            else:
                known |= _asked(client, claim, file, check)
            vain += known[file.sha256].words == NOT_ATTESTED
        found[file.path] = known[file.sha256]
    return found


def _asked(client: GitHub, claim: ProvenanceClaim, file: FileEntry, check: Check) -> dict[str, Attestation]:
    """Return what is known of a file, and of all others that the same attestation is about."""
    bundles = provenance_bundles(client, file.sha256)
    if not bundles:
        return {file.sha256: Attestation(words=NOT_ATTESTED)}
    failed: NetworkError | Unchecked | None = None
    for bundle in bundles:
        try:
            return _vouched(check(bundle, claim), file)
        except (NetworkError, Unchecked) as error:
            failed = error if failed is None or isinstance(error, Unchecked) else failed
    if isinstance(failed, NetworkError):
        failed.where = file.path
        raise failed
    return {file.sha256: Attestation(words=f"attested, not checked: {failed}")}


def _vouched(provenance: Provenance, file: FileEntry) -> dict[str, Attestation]:
    if file.sha256 not in provenance.subjects:
        what, hint = "GitHub gave an attestation of other files for it", "find out why before you use it"
        raise NetworkError("attestation-invalid", what, where=file.path, hint=hint)
    vouched = Attestation(signer=provenance.signer, words=f"attested by {provenance.signer}")
    return dict.fromkeys(provenance.subjects, vouched)
