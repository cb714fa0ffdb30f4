"""Checking attestations with the library sigstore: who signed, in which repository, of which commit, for which files.

The library is large and needed by few, so it is an extra (`ortrim[attestation]`) and imported here only when it is
used. Certificate fields: https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from ortrim.errors import NetworkError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from sigstore.verify import Verifier

ISSUER: Final = "https://token.actions.githubusercontent.com"
STATEMENT: Final = "application/vnd.in-toto+json"
PROVENANCE: Final = "https://slsa.dev/provenance/v1"
MISSING: Final = 'install "ortrim[attestation]"'
OTHER_SERVICE: Final = "in no public log, as those of private repositories are: gh attestation verify checks it"


@dataclass(frozen=True, kw_only=True)
class Claim:
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


Check = Callable[[str, Claim], Provenance]
"""Takes a bundle and what it has to say. Raises `Unchecked`, and `NetworkError` for one that is not right."""


def check_provenance(bundle: str, claim: Claim) -> Provenance:
    """Check a bundle by sigstore's keys.

    Raises `NetworkError` (`attestation-invalid`) for one that is damaged, forged, or of another repository or commit,
    and `Unchecked` without the library, without its keys, and for signatures of services that it does not know.
    """
    try:
        from sigstore.models import Bundle  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unchecked(MISSING) from None
    if not _is_in_public_log(bundle):
        raise Unchecked(OTHER_SERVICE)
    verifier = _verifier()
    try:
        kind, payload = verifier.verify_dsse(Bundle.from_json(bundle), _Workflow(claim))
        return Provenance(signer=_signer(bundle), subjects=_subjects(kind, payload))
    except Exception as error:  # whatever the library thinks of a stranger's bytes: they are not right
        hint = "do not use what was fetched before you know why"
        what = "an attestation is not right"
        where, why = claim.repository, str(error)[:500] or type(error).__name__
        raise NetworkError("attestation-invalid", what, where=where, why=why, hint=hint) from error


class _Workflow:
    """Accepts certificates that GitHub gave to a workflow of the repository that ran for the commit."""

    def __init__(self, claim: Claim) -> None:
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
        raise ValueError(f"it is no provenance: {statement['predicateType']!r:.200}")
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
