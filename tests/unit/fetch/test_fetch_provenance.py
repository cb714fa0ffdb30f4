"""Attestations that GitHub really signed, checked by sigstore's real keys, and what becomes of forged ones.

`tests/integration/data/attested/README.md` says where they are from.
"""

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refusing
from github_fetching import recorded, with_sigstores_own_keys
from ortrim.base.checksums import FileEntry
from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.fetch import provenance
from ortrim.github.fetch import provenance as attested
from ortrim.github.repositories import Repository, Service, Site

REPOSITORY: Final = "https://github.com/trailofbits/pypi-attestations"
COMMIT: Final = "08802efe1f8e5fec4ad842d6b8ce97656092ee72"
CLAIM: Final = provenance.ProvenanceClaim(repository=REPOSITORY, commit=COMMIT)
DIGEST: Final = "9bb1add04b1b4e182be6b0b80931593f7a291eb49d69b4fd728a5d4cbcdc4bd3"
RIGHT: Final = provenance.Provenance(
    signer=f"{REPOSITORY}/.github/workflows/release.yml@refs/tags/v0.0.19", subjects=frozenset({DIGEST})
)


FROM_SIGSTORE: Final = provenance._verifier


@pytest.fixture(autouse=True)
def _own_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_sigstores_own_keys(monkeypatch, tmp_path)


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, str):
        yield path
    elif isinstance(node, dict | list):
        for key, each in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(each, (*path, key))


def outcome(bundle: str) -> provenance.Provenance | str:
    try:
        return provenance.check_provenance(bundle, CLAIM)
    except NetworkError as error:
        return error.code
    except provenance.Unchecked as error:
        return str(error)


def refused(bundle: str, claim: provenance.ProvenanceClaim = CLAIM) -> str:
    caught = refusing.refused(NetworkError, provenance.check_provenance, bundle, claim)
    assert caught.code == "attestation-invalid"
    assert caught.why
    return caught.why


def test_a_provenance_of_githubs_is_right() -> None:
    assert provenance.check_provenance(json.dumps(recorded("provenance.json")), CLAIM) == RIGHT


@pytest.mark.parametrize(
    "claim",
    [
        provenance.ProvenanceClaim(repository="https://github.com/octo/ort", commit=COMMIT),
        provenance.ProvenanceClaim(repository="https://github.com/trailofbits", commit=COMMIT),
        provenance.ProvenanceClaim(repository=REPOSITORY + "2", commit=COMMIT),
        provenance.ProvenanceClaim(repository=REPOSITORY, commit=40 * "0"),
        provenance.ProvenanceClaim(repository=REPOSITORY, commit=""),
        provenance.ProvenanceClaim(repository="", commit=COMMIT),
    ],
)
def test_another_repository_or_commit_is_refused(claim: provenance.ProvenanceClaim) -> None:
    """The signature is right, and says something else."""
    refused(json.dumps(recorded("provenance.json")), claim)


def test_a_signature_for_something_else_is_no_provenance() -> None:
    """The same workflow signed the upload to PyPI, too."""
    assert "docs.pypi.org/attestations/publish" in refused(json.dumps(recorded("publish.json")))


def test_parts_of_two_right_ones_are_refused() -> None:
    one, other = recorded("provenance.json"), recorded("publish.json")
    refused(json.dumps({**one, "dsseEnvelope": other["dsseEnvelope"]}))
    refused(json.dumps({**one, "verificationMaterial": other["verificationMaterial"]}))


def forged(other_digest: str = "") -> str:
    """Return a bundle in which all fits together, signed by somebody with an authority of his own.

    The certificate says what the real one says, of the same repository, workflow and commit; the entry in the public
    log is the real one's, since nobody but the log itself can sign another.
    """
    bundle = deepcopy(recorded("provenance.json"))
    material, envelope = bundle["verificationMaterial"], bundle["dsseEnvelope"]
    real = x509.load_der_x509_certificate(b64decode(material["certificate"]["rawBytes"]))
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateBuilder(
        issuer_name=real.issuer,
        subject_name=real.subject,
        public_key=own.public_key(),
        serial_number=real.serial_number,
        not_valid_before=real.not_valid_before_utc,
        not_valid_after=real.not_valid_after_utc,
    )
    for extension in real.extensions:
        made = made.add_extension(extension.value, extension.critical)
    payload = b64decode(envelope["payload"]).replace(DIGEST.encode(), (other_digest or DIGEST).encode())
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    signature = own.sign(signed, ec.ECDSA(hashes.SHA256()))
    certificate = made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    material["certificate"]["rawBytes"] = b64encode(certificate).decode()
    envelope["payload"], envelope["signatures"][0]["sig"] = b64encode(payload).decode(), b64encode(signature).decode()
    return json.dumps(bundle)


@pytest.mark.parametrize("digest", ["", 64 * "a"])
def test_an_authority_of_ones_own_signs_nothing(digest: str) -> None:
    """For the real file, and for another one of the forger's."""
    refused(forged(digest))


def test_a_signature_of_another_time_is_refused() -> None:
    """The certificate was good for ten minutes: the log says when, and its word cannot be changed."""
    bundle = deepcopy(recorded("provenance.json"))
    (entry,) = bundle["verificationMaterial"]["tlogEntries"]
    entry["integratedTime"] = str(int(entry["integratedTime"]) + 86_400)
    refused(json.dumps(bundle))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_changed_character_proves_anything_else(data: st.DataObject) -> None:
    """Wherever a bundle is changed, it is refused, or says exactly what it said."""
    bundle = deepcopy(recorded("provenance.json"))
    path = data.draw(st.sampled_from(sorted(leaves(bundle), key=str)))
    node = bundle
    for key in path[:-1]:
        node = node[key]
    text = node[path[-1]]
    place = data.draw(st.integers(0, max(len(text) - 1, 0)))
    node[path[-1]] = text[:place] + data.draw(st.sampled_from("AB+/=0Z\x00ü")) + text[place + 1 :]
    assert outcome(json.dumps(bundle)) in {"attestation-invalid", provenance.OTHER_SERVICE, RIGHT}


@pytest.mark.parametrize("bundle", ["", "{}", "[]", "null", '"x"', "[" * 5000, '{"verificationMaterial": 3}'])
def test_what_is_no_bundle_is_refused(bundle: str) -> None:
    refused(bundle)


def test_a_signature_of_githubs_own_service_is_said_to_be_unchecked() -> None:
    """Private repositories get theirs from there; it is in no public log."""
    bundle = recorded("provenance.json")
    bundle["verificationMaterial"]["tlogEntries"] = []
    with pytest.raises(provenance.Unchecked, match="gh attestation verify"):
        provenance.check_provenance(json.dumps(bundle), CLAIM)


def test_without_the_library_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore.models", None)
    with pytest.raises(provenance.Unchecked) as caught:
        provenance.check_provenance(json.dumps(recorded("provenance.json")), CLAIM)
    assert str(caught.value) == 'sigstore is not installed; run: pip install "ortrim[attestation]"'


def test_keys_are_those_of_today_or_those_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sigstore's own server is asked first; when nobody answers, what came with the library counts."""
    from sigstore.errors import TUFError  # noqa: PLC0415 - slow to import
    from sigstore.verify import Verifier  # noqa: PLC0415

    asked: list[bool] = []
    real = Verifier.production

    def unreachable(*, offline: bool = False) -> Verifier:
        asked.append(offline)
        if not offline:
            raise TUFError("no network")
        return real(offline=True)

    monkeypatch.setattr(Verifier, "production", unreachable)
    monkeypatch.setattr(provenance, "_verifier", FROM_SIGSTORE.__wrapped__)
    assert provenance.check_provenance(json.dumps(recorded("provenance.json")), CLAIM) == RIGHT
    assert asked == [False, True]

    def broken(*, offline: bool = False) -> Verifier:
        raise TUFError(f"damaged, offline or not: {offline}")

    monkeypatch.setattr(Verifier, "production", broken)
    with pytest.raises(provenance.Unchecked, match="keys cannot be read"):
        provenance.check_provenance(json.dumps(recorded("provenance.json")), CLAIM)


# Which files are attested


FILES: Final = tuple(FileEntry(path=name, size_bytes=1, sha256=64 * name) for name in "abc")


def asked(monkeypatch: pytest.MonkeyPatch, bundles: dict[str, tuple[str, ...]], check: Any) -> Any:
    questions: list[str] = []

    def answered(_client: object, sha256: str) -> tuple[str, ...]:
        questions.append(sha256[0])
        return bundles.get(sha256[0], ())

    monkeypatch.setattr(attested, "provenance_bundles", answered)
    client = GitHub(Site(service=Service(), repository=Repository(owner="octo", name="ort")), None)
    known = provenance.ask_attestations(client, CLAIM, FILES, check)
    return {path: each.words for path, each in known.items()}, questions


def vouch(bundle: str, _claim: provenance.ProvenanceClaim) -> provenance.Provenance:
    if bundle == "later":
        raise provenance.Unchecked("no library")
    if not bundle.startswith("ok"):
        raise NetworkError("attestation-invalid", "is not valid", why=bundle)
    return provenance.Provenance(signer="build.yml", subjects=frozenset(64 * name for name in bundle[2:]))


def test_one_attestation_may_be_of_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    words, questions = asked(monkeypatch, {"a": ("okac",)}, vouch)
    assert words == {"a": "attested by build.yml", "b": "not attested", "c": "attested by build.yml"}
    assert questions == ["a", "b"]


def test_one_right_attestation_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    words, _ = asked(monkeypatch, {"a": ("wrong", "oka")}, vouch)
    assert words["a"] == "attested by build.yml"


@pytest.mark.parametrize("bundles", [("wrong",), ("wrong", "wrong too"), ("okc",)])
def test_a_file_with_only_wrong_attestations_is_refused(
    monkeypatch: pytest.MonkeyPatch, bundles: tuple[str, ...]
) -> None:
    """Damaged, forged, or of other files; the file is named."""
    caught = refusing.refused(NetworkError, asked, monkeypatch, {"b": bundles}, vouch)
    assert (caught.code, caught.where) == ("attestation-invalid", "b")


def test_an_attestation_that_cannot_be_checked_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    words, _ = asked(monkeypatch, {"a": ("later",)}, vouch)
    assert words["a"] == "attested, not checked: no library"
