"""Attestations of where a file comes from, as GitHub keeps them."""

import json
from dataclasses import dataclass
from typing import Any, Final

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.records import parsed
from ortrim.github.repositories import Repository

NONE: Final = frozenset({"github-not-found", "github-no-token"})
"""How GitHub says that there is none: servers that keep no attestations answer so, too."""


@dataclass(frozen=True, kw_only=True)
class _Attestation:
    bundle: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Attestations:
    attestations: tuple[_Attestation, ...] = ()


def provenance_bundles(client: GitHub, repository: Repository, sha256: str) -> tuple[str, ...]:
    """Return the attestations of provenance that GitHub has for a file of this SHA-256, each a bundle of sigstore's.

    They are the repository's word for nothing until they are checked. Raises `NetworkError` as `GitHub.get` does.
    """
    path = f"{repository.path}/attestations/sha256:{sha256}"
    try:
        found = parsed(_Attestations, client.get(path, predicate_type="provenance"), path)
    except NetworkError as error:
        if error.reference in NONE:
            return ()
        raise
    return tuple(json.dumps(each.bundle) for each in found.attestations if each.bundle)
