"""`ortrim fetch`: options in, one function called, what came shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.errors import ExitCode, NetworkError
from ortrim.github.fetch.lock import Lock, LockedArtifact, LockedFile, Origin
from ortrim.github.fetch.offers import EVERYTHING, Selection
from ortrim.github.fetch.provenance import Attestation
from ortrim.github.fetch.run import App, Fetched, FetchRequest
from ortrim.github.followed_run import Remote
from program_runs import Run

A: Final = 64 * "a"
COMMIT: Final = 40 * "c"
SIGNER: Final = "https://github.com/octo/ort/.github/workflows/build.yml@refs/tags/v1"
FILES: Final = (
    LockedFile(path="ort.aar", size=1234567, sha256=A, signer=SIGNER),
    LockedFile(path="b", size=1, sha256=A),
)
RELEASE: Final = Origin(host="github.com", repository="octo/ort", release="v1/a", commit=COMMIT)
RUN: Final = Origin(host="github.com", repository="octo/ort", run=5, commit=COMMIT)
KNOWN: Final = {"ort.aar": Attestation(words=f"attested by {SIGNER}"), "b": Attestation(words="not attested")}


def fetched(origin: Origin = RELEASE) -> Fetched:
    """Return what a fetch comes to."""
    artifacts = (LockedArtifact(name="delivered-a-android", sha256=A),) if origin.run else ()
    lock = Lock(origin=origin, artifacts=artifacts, files=FILES)
    return Fetched(lock=lock, output=Path("ortrim-runtime"), changed=True, attestations=KNOWN)


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[Any]]:
    """Let the function behind the task return or raise something; what it is given is collected."""

    def replace_by(result: Any) -> list[Any]:
        given: list[Any] = []

        def called(*arguments: Any) -> Any:
            given.extend(arguments[:3])
            arguments[3].note("working")
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr("ortrim.cli.tasks.fetch.fetch_files", called)
        return given

    return replace_by


def test_without_options_the_lock_file_says_everything(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """And what came is shown: size, attestation, commit, place and lock."""
    given = outcome(fetched())
    ended = ortrim("fetch")
    assert given == [FetchRequest(), Remote(), App(folder=Path())]
    assert given[0].selection == EVERYTHING
    said = " ".join(ended.out.split())
    assert f"attested by {SIGNER}: 1,234,567 bytes ort.aar not attested: 1 byte b" in said
    assert "2 files of 1,234,568 bytes are in ortrim-runtime" in said
    assert f"github.com/octo/ort v1/a, commit {COMMIT}; locked in ortrim.lock" in said


def test_every_option_arrives(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """As it was written."""
    given = outcome(fetched())
    chosen = ("--run", "5", "--spec", "kws", "--target", "android", "--output", "x/y", "--repo", "octo/ort")
    words = (*chosen, "--token-file", "t", "--offline", "--update")
    assert ortrim("fetch", *words).code == 0
    selection = Selection(spec="kws", target="android")
    assert given == [
        FetchRequest(run=5, selection=selection, offline=True, update=True),
        Remote(repository="octo/ort", token_file=Path("t")),
        App(folder=Path(), output=Path("x/y")),
    ]
    given.clear()
    ortrim("fetch", "--latest", "--workflow", "app.yml")
    ortrim("fetch", "--release", "v1")
    assert given[:2] == [FetchRequest(latest=True), Remote(workflow="app.yml")]
    refused = ortrim("fetch", "--run", "5", "--workflow", "app.yml")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: bad-option")
    assert given[3] == FetchRequest(release="v1")


def test_other_names_of_targets_are_translated(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """Before anything is asked, so that the lock file has the identifier; names of packages stay."""
    given = outcome(fetched())
    ended = ortrim("fetch", "--target", "apple,linux-amd64")
    assert given[0].selection == Selection(target="apple,linux-x64")
    assert "target linux-amd64 is linux-x64" in ended.out
    assert "ambiguous-target" in ortrim("fetch", "--target", "aarch64").err


@pytest.mark.parametrize("number", ["", "0", "-1", "x", "1e3", "٣"])
def test_a_run_is_a_number(ortrim: Run, outcome: Callable[[Any], list[Any]], number: str) -> None:
    """Anything else is refused before anything is asked."""
    given = outcome(fetched())
    ended = ortrim("fetch", f"--run={number}")
    assert ended.code == ExitCode.USAGE
    assert given == []


def test_json_is_one_document(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """With everything that the table says."""
    outcome(fetched())
    document = ortrim("fetch", "--json").document()
    assert document["files"][0] == {
        "path": "ort.aar",
        "size_bytes": 1234567,
        "sha256": A,
        "signer": SIGNER,
        "attestation": f"attested by {SIGNER}",
    }
    assert (document["repository"], document["release"], document["run"]) == ("github.com/octo/ort", "v1/a", None)
    assert (document["commit"], document["output"], document["snippet"]) == (COMMIT, "ortrim-runtime", None)


def test_a_failure_has_its_code(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """On standard error, and as JSON where that is asked for."""
    outcome(NetworkError("lock-mismatch", "is not what ortrim.lock says any more"))
    ended = ortrim("fetch")
    assert (ended.code, ended.err.splitlines()[0]) == (ExitCode.NETWORK, "error: lock-mismatch")
    assert ortrim("fetch", "--json").document()["errors"][0]["code"] == "lock-mismatch"


def test_a_snippet_is_all_there_is_on_standard_output(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
    """With the address that GitHub gives a release's file; progress is told elsewhere."""
    outcome(fetched())
    ended = ortrim("fetch", "--snippet", "gradle")
    assert ended.code == 0
    assert A in ended.out
    assert "https://github.com/octo/ort/releases/download/v1%2Fa/ort.aar" in ended.out
    assert "working" not in ended.out
    assert "working" in ended.err
    assert ortrim("fetch", "--snippet", "gradle", "--json").document()["snippet"] == ended.out


@pytest.mark.parametrize(
    ("kind", "origin", "reference"),
    [
        ("gradle", RUN, "snippet-needs-release"),
        ("maven", RELEASE, "snippet-kind"),
        ("cmake", RELEASE, "snippet-no-file"),
    ],
)
def test_a_snippet_that_cannot_be_is_refused(
    ortrim: Run, outcome: Callable[[Any], list[Any]], kind: str, origin: Origin, reference: str
) -> None:
    """A run's artifacts have no address; kinds and files have to be there."""
    outcome(fetched(origin))
    ended = ortrim("fetch", "--snippet", kind)
    assert (ended.code, ended.err.splitlines()[-3:] != []) == (ExitCode.USAGE, True)
    assert f"error: {reference}" in ended.err
    assert ended.out == ""
