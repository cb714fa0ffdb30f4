"""What the command line and the lock file come to together."""

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from github_checks import OCTO
from ortrim.base.checksums import SUMS, is_plain_path
from ortrim.base.console import Console
from ortrim.base.http import Clock, OnBytes
from ortrim.buildspec.targets import TARGETS
from ortrim.errors import ExitCode, NetworkError, StorageError, UsageError
from ortrim.github.client import GitHub, Remote, RetryingSession
from ortrim.github.fetch import placing
from ortrim.github.fetch.offers import EVERYTHING, Selection, wanted_artifacts, wanted_assets
from ortrim.github.fetch.provenance import Attestation
from ortrim.github.fetch.run import App, Fetched, FetchRequest, completed
from ortrim.github.repositories import Service, Site
from program_runs import Run
from refusing import refused

A: Final = 64 * "a"
COMMIT: Final = 40 * "c"
LOCK: Final = placing.Lock(
    origin=placing.Origin(
        host="github.com", repository="octo/ort", release="v1", commit=COMMIT, spec="kws", target="android"
    ),
    files=(
        placing.LockedFile(path="ort.aar", size=3, sha256=A, signer="https://github.com/octo/ort/x.yml@refs/tags/v1"),
    ),
)
KWS: Final = Selection(spec="kws", target="android")


@pytest.mark.parametrize(
    "wanted",
    [
        FetchRequest(),
        FetchRequest(release="v1"),
        FetchRequest(selection=KWS),
        FetchRequest(release="v1", selection=KWS),
        FetchRequest(offline=True),
    ],
)
def test_a_lock_file_is_followed_by_who_says_nothing_else(wanted: FetchRequest) -> None:
    assert completed(wanted, LOCK) is None


@pytest.mark.parametrize(
    "says",
    [
        {"release": "v2"}, {"run": 5}, {"latest": True}, {"selection": Selection(spec="vad")},
        {"selection": Selection(target="linux-x64")},
    ],
)  # fmt: skip
def test_a_lock_file_is_not_overruled(says: dict[str, Any]) -> None:
    error = refused(UsageError, completed, FetchRequest(**says), LOCK)
    assert (error.code, error.hint) == ("lock-differs", "to change the lock file: --update")
    assert error.why.startswith("given ")


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({}, {"release": "v1", "selection": KWS}),
        ({"release": "v2"}, {"release": "v2", "selection": KWS}),
        ({"run": 5}, {"run": 5, "selection": KWS}),
        ({"latest": True}, {"latest": True, "selection": KWS}),
        (
            {"selection": Selection(target="linux")},
            {"release": "v1", "selection": Selection(spec="kws", target="linux")},
        ),
    ],
)
def test_an_update_keeps_what_it_does_not_change(says: dict[str, Any], expected: dict[str, Any]) -> None:
    assert completed(FetchRequest(**says, update=True), LOCK) == FetchRequest(**expected, update=True)


@pytest.mark.parametrize(
    ("wanted", "reference"),
    [
        (FetchRequest(), "fetch-which"),
        (FetchRequest(selection=KWS), "fetch-which"),
        (FetchRequest(update=True), "fetch-which"),
        (FetchRequest(offline=True), "offline-needs-lock"),
        (FetchRequest(release="v1", offline=True), "offline-needs-lock"),
        (FetchRequest(release="v1", run=5), "bad-option"),
        (FetchRequest(run=5, latest=True), "bad-option"),
        (FetchRequest(release="v1\n"), "bad-option"),
        (FetchRequest(run=5, selection=Selection(target="android,\x1b[2J")), "bad-option"),
        (FetchRequest(run=5, selection=Selection(spec="x" * 1000)), "bad-option"),
    ],
)
def test_without_a_lock_file_something_has_to_be_named(wanted: FetchRequest, reference: str) -> None:
    assert refused(UsageError, completed, wanted, None).code == reference


def test_an_update_needs_the_network() -> None:
    error = refused(UsageError, completed, FetchRequest(update=True, offline=True), LOCK)
    assert error.code == "offline-needs-lock"


def test_what_is_named_is_taken_as_it_is() -> None:
    wanted = FetchRequest(release="v1", selection=KWS)
    assert completed(wanted, None) == wanted
    assert completed(replace(wanted, update=True), None) == replace(wanted, update=True)


DELIVERIES = (
    "delivered-kws-android", "delivered-kws-linux-x64", "delivered-kws-linux-arm64", "delivered-kws-linux-arm64-musl",
    "delivered-kws-2-linux-x64", "delivered-linux-linux-x64", "compiled-kws-linux-x64", "delivered-kws-windows-x64",
    "../delivered-kws-android", "delivered-kws-android\n",
)  # fmt: skip
ASSETS = (
    "ortrim-kws-android-1.21.0.aar", "ortrim-kws-android-1.21.0.manifest.json",
    "ortrim-kws-android-arm64-v8a-1.21.0.report.json", "ortrim-kws-android-x86_64-1.21.0-on-emulator.report.json",
    "ortrim-kws-linux-x64-1.21.0.tar.gz", "ortrim-kws-2-linux-x64-1.21.0.tar.gz", "notes.txt",
)  # fmt: skip


def artifacts(spec: str = "", target: str = "") -> set[str]:
    chosen = wanted_artifacts(DELIVERIES, Selection(spec=spec, target=target), "here")
    return {name.removeprefix("delivered-") for name in chosen}


@pytest.mark.parametrize(
    ("spec", "target", "expected"),
    [
        ("kws", "", {"kws-android", "kws-linux-x64", "kws-linux-arm64", "kws-linux-arm64-musl"}),
        ("kws-2", "", {"kws-2-linux-x64"}),
        ("linux", "", {"linux-linux-x64"}),
        ("kws", "android", {"kws-android"}),
        ("kws", "android-arm64-v8a", {"kws-android"}),
        ("kws", "android-*", {"kws-android"}),
        ("kws", "linux-arm64", {"kws-linux-arm64"}),
        ("kws", "linux-arm64*", {"kws-linux-arm64", "kws-linux-arm64-musl"}),
        ("kws", "android, linux-x64", {"kws-android", "kws-linux-x64"}),
        ("", "linux-x64", {"kws-linux-x64", "kws-2-linux-x64", "linux-linux-x64"}),
    ],
)
def test_deliveries_are_chosen_by_spec_and_target(spec: str, target: str, expected: set[str]) -> None:
    assert artifacts(spec, target) == expected


@pytest.mark.parametrize("target", ["apple", "ios", "ios-simulator-arm64", "macos", "macos-universal2", "mac*", ""])
def test_an_xcframework_belongs_to_each_of_its_slices(target: str) -> None:
    """It has one name for phones and Macs; no other target's choice brings it."""
    there = ("delivered-kws-apple", "delivered-kws-linux-x64")
    assert "delivered-kws-apple" in wanted_artifacts(there, Selection(target=target), "here")
    assert wanted_artifacts(there, Selection(target="linux*"), "here") == ("delivered-kws-linux-x64",)
    assert wanted_assets(["ortrim-kws-apple-1.21.0.zip"], Selection(spec="kws", target=target), "here")


@pytest.mark.parametrize("package", ["android", "apple"])
def test_archives_of_folders_and_reports_belong_to_a_package_of_several_targets(package: str) -> None:
    one = "android-x86" if package == "android" else "ios-arm64"
    names = {f"ortrim-kws-{package}-folders.zip", f"ortrim-kws-{one}-1.21.0.report.json"}
    there = [*names, "ortrim-kws-linux-x64-folders.zip"]
    for target in (package, one):
        assert set(wanted_assets(there, Selection(target=target), "here")) == names
    assert wanted_assets([*names, *ASSETS], Selection(target="linux-x64", spec="kws"), "here") == (ASSETS[4],)


def test_every_target_can_be_fetched() -> None:
    for identifier in TARGETS:
        assert wanted_artifacts([f"delivered-a-{identifier}"], Selection(spec="a", target=identifier), "here")


def test_files_of_a_release_are_chosen_by_their_names() -> None:
    """Packages, proof and reports of a target; with no choice made, everything."""
    android = Selection(spec="kws", target="android")
    assert wanted_assets(ASSETS, android, "here") == tuple(sorted(ASSETS[:4]))
    assert wanted_assets(ASSETS, Selection(spec="kws-2"), "here") == ("ortrim-kws-2-linux-x64-1.21.0.tar.gz",)
    assert wanted_assets(ASSETS, EVERYTHING, "here") == tuple(sorted(ASSETS))


@pytest.mark.parametrize("selection", [Selection(spec="other"), Selection(target="ios"), Selection(target="x")])
def test_nothing_found_names_what_there_is(selection: Selection) -> None:
    caught = refused(UsageError, wanted_artifacts, DELIVERIES, selection, "run 5")
    assert (caught.code, caught.where) == ("nothing-to-fetch", "run 5")
    assert "kws for android" in caught.why
    assert str(selection) in caught.what


def test_nothing_at_all_is_reported() -> None:
    with pytest.raises(UsageError, match="has nothing of everything") as caught:
        wanted_artifacts(["logs"], EVERYTHING, "run 5")
    assert "no delivery" in caught.value.why


SIGNER: Final = "https://github.com/octo/ort/.github/workflows/build.yml@refs/tags/v1"
FILES: Final = (
    placing.LockedFile(path="ort.aar", size=1234567, sha256=A, signer=SIGNER),
    placing.LockedFile(path="b", size=1, sha256=A),
)
RELEASE: Final = placing.Origin(host="github.com", repository="octo/ort", release="v1/a", commit=COMMIT)
RUN: Final = placing.Origin(host="github.com", repository="octo/ort", run=5, commit=COMMIT)
KNOWN: Final = {"ort.aar": Attestation(words=f"attested by {SIGNER}"), "b": Attestation(words="not attested")}


def fetched(origin: placing.Origin = RELEASE) -> Fetched:
    artifacts = (placing.LockedArtifact(name="delivered-a-android", sha256=A),) if origin.run else ()
    lock = placing.Lock(origin=origin, artifacts=artifacts, files=FILES)
    return Fetched(lock=lock, output=Path("ortrim-runtime"), changed=True, attestations=KNOWN)


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[Any]]:
    def replace_by(result: Any) -> list[Any]:
        given: list[Any] = []

        def called(*arguments: Any) -> Any:
            given.extend(arguments[:3])
            arguments[3].note("working")
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr("ortrim.cli.tasks.github.fetch_files", called)
        return given

    return replace_by


def test_every_option_arrives(ortrim: Run, outcome: Callable[[Any], list[Any]]) -> None:
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
        ("unity", RUN, "snippet-kind"),
        ("rust", RUN, "snippet-no-file"),
        ("cmake", RELEASE, "snippet-no-file"),
    ],
)
def test_a_snippet_that_cannot_be_is_refused(
    ortrim: Run, outcome: Callable[[Any], list[Any]], kind: str, origin: placing.Origin, reference: str
) -> None:
    """A run's artifacts have no address; kinds and files have to be there."""
    outcome(fetched(origin))
    ended = ortrim("fetch", "--snippet", kind)
    assert (ended.code, ended.err.splitlines()[-3:] != []) == (ExitCode.USAGE, True)
    assert f"error: {reference}" in ended.err
    assert ended.out == ""


LOCK_OF_A_RUN: Final = placing.Lock(
    origin=placing.Origin(host="github.com", repository="octo/ort", run=5000, commit=COMMIT),
    output="third_party/ort",
    artifacts=(placing.LockedArtifact(name="delivered-kws-android", sha256=A),),
    files=(placing.LockedFile(path="a/b", size=0, sha256=A), placing.LockedFile(path="c", size=2**53, sha256=A)),
)
WORDS: Final = st.text(st.characters(exclude_categories=["C"]), max_size=40)
DIGESTS: Final = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
PATHS: Final = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda text: is_plain_path(text) and "/" not in text and text != SUMS
)
LOCKED_FILES: Final = st.lists(
    st.builds(placing.LockedFile, path=PATHS, size=st.integers(0, 2**53), sha256=DIGESTS, signer=WORDS),
    min_size=1,
    max_size=5,
    unique_by=lambda file: file.path.lower(),
).map(tuple)
ORIGINS: Final = st.builds(
    placing.Origin,
    host=st.sampled_from(["github.com", "ghe.example:8443"]),
    repository=st.sampled_from(["octo/ort", "a/b.c_d"]),
    release=WORDS.filter(bool),
    commit=st.sampled_from([COMMIT, A]),
    spec=WORDS,
    target=WORDS,
)


@given(st.builds(placing.Lock, origin=ORIGINS, output=PATHS, files=LOCKED_FILES))
def test_what_is_written_is_read_back(lock: placing.Lock) -> None:
    assert placing.parse_lock(placing.lock_text(lock).encode()) == lock


def test_a_run_is_read_back() -> None:
    assert placing.parse_lock(placing.lock_text(LOCK_OF_A_RUN).encode()) == LOCK_OF_A_RUN


def read(content: bytes) -> placing.Lock | str:
    try:
        return placing.parse_lock(content)
    except StorageError as error:
        return error.code


@given(st.binary())
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    assert read(content) == "lock-damaged"


@given(st.data())
def test_a_lock_file_with_a_changed_character_is_another_or_none(data: st.DataObject) -> None:
    """Nothing in between, and never an exception of another kind."""
    text = placing.lock_text(LOCK_OF_A_RUN)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    outcome = read(changed.encode("utf-8", "surrogatepass"))
    assert outcome == "lock-damaged" or (
        isinstance(outcome, placing.Lock) and read(placing.lock_text(outcome).encode()) == outcome
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('schema = "ortrim-lock/1"', 'schema = "ortrim-lock/2"'),
        ('schema = "ortrim-lock/1"\n', ""),
        ("ortrim-runtime", "../ortrim-runtime"),
        ("ortrim-runtime", "/ortrim-runtime"),
        ('release = "v1"\n', ""),
        ('release = "v1"\n', 'release = "v1"\nrun = 3\n'),
        ("octo/ort", "octo/.."),
        ("octo/ort", "octo/ort/more"),
        ('"github.com"', '"https://github.com"'),
        ('"github.com"', '"github.com/evil"'),
        (COMMIT, COMMIT[1:]),
        (COMMIT, COMMIT + "\\n"),
        ("ort.aar", "../ort.aar"),
        ("ort.aar", SUMS),
        ("ort.aar", "a\\u001b[2J"),
        ("size = 3", "size = -1"),
        ("size = 3", 'size = "3"'),
        ("size = 3", "size = 3.0"),
        ("size = 3", "size = true"),
        ("size = 3", "size = 1979-05-27"),
        ("size = 3", "size = nan"),
        ("size = 3\n", "size = 3\nmode = 7\n"),
        (A, A.upper()),
        ("[[file]]", "[[files]]"),
        ("[origin]", "[[origin]]"),
    ],
)
def test_what_ortrim_would_not_write_is_refused(before: str, after: str) -> None:
    """Unknown keys and schemas, wrong types, paths that climb, contradictions."""
    text = placing.lock_text(LOCK)
    assert before in text
    caught = refused(StorageError, placing.parse_lock, text.replace(before, after, 1).encode(), "app/ortrim.lock")
    assert (caught.code, caught.where) == ("lock-damaged", "app/ortrim.lock")
    assert caught.why


@pytest.mark.parametrize("paths", [("a", "A"), ("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_files_that_cannot_lie_side_by_side_are_refused(paths: tuple[str, ...]) -> None:
    files = tuple(placing.LockedFile(path=path, size=1, sha256=A) for path in paths)
    with pytest.raises(StorageError):
        placing.parse_lock(placing.lock_text(replace(LOCK, files=files)).encode())


def test_a_lock_file_without_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "ortrim.lock").write_bytes(placing.lock_text(LOCK).encode() + b"#" * (4 << 20))
    assert refused(StorageError, placing.read_lock, tmp_path / "ortrim.lock").code == "lock-damaged"


def test_a_lock_file_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    files = tuple(placing.LockedFile(path=f"{number:0400}", size=1, sha256=A) for number in range(12_000))
    caught = refused(StorageError, placing.write_lock, tmp_path / "ortrim.lock", replace(LOCK, files=files))
    assert caught.code == "lock-too-large"
    assert list(tmp_path.iterdir()) == []


def test_no_lock_file_is_none(tmp_path: Path) -> None:
    assert placing.read_lock(tmp_path / "ortrim.lock") is None
    placing.write_lock(tmp_path / "ortrim.lock", LOCK)
    assert placing.read_lock(tmp_path / "ortrim.lock") == LOCK
    (tmp_path / "folder").mkdir()
    assert refused(StorageError, placing.read_lock, tmp_path / "folder").code == "path-in-the-way"


@pytest.mark.parametrize("value", [5, None, "x\x00y"])
def test_words_are_checked_when_they_are_made(value: Any) -> None:
    with pytest.raises(ValueError, match="release"):
        placing.Origin(host="github.com", repository="octo/ort", release=value, commit=COMMIT)


SECONDS: Final = 20.0
"""How long a test waits for another thread before it fails."""


def client_with(sleep: Callable[[float], None] = lambda _: None) -> GitHub:
    return GitHub(Site(service=Service(), repository=OCTO), None, RetryingSession(None, clock=Clock(sleep=sleep)))


def run(downloads: list[placing.Download], client: GitHub | None = None) -> list[tuple[float, float, str]]:
    told: list[tuple[float, float, str]] = []
    console = Console(stdout=io.StringIO(), stderr=io.StringIO())
    with console.step("fetch") as step:
        step.progress = lambda done, total, text="": told.append((done, total, text))  # type: ignore[method-assign]
        placing.download_all(downloads, client or client_with(), step)
    return told


def test_nothing_to_fetch_is_nothing() -> None:
    assert run([]) == []


def test_several_are_under_way_at_once() -> None:
    together = threading.Barrier(placing.AT_ONCE, timeout=SECONDS)
    clients: list[GitHub] = []

    def fetched(client: GitHub, on_bytes: OnBytes) -> None:
        clients.append(client)
        together.wait()
        on_bytes(5, 10)

    told = run([placing.Download(name=str(n), size_bytes=10, run=fetched) for n in range(2 * placing.AT_ONCE)])
    assert len(set(map(id, clients))) == placing.AT_ONCE
    assert told[-1] == (20.0 * placing.AT_ONCE, 20 * placing.AT_ONCE, f"{2 * placing.AT_ONCE} downloads")
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_a_single_one_is_named() -> None:
    assert run([placing.Download(name="a.aar", size_bytes=10, run=lambda _, on_bytes: on_bytes(4, 10))]) == [
        (4, 10, "a.aar"),
        (10, 10, "a.aar"),
    ]


def test_the_account_is_that_of_all() -> None:
    """Requests, repeats and bytes of every connection."""

    def fetched(client: GitHub, _: OnBytes) -> None:
        client.session.traffic.requests += 1
        client.session.traffic.bytes_received += 7

    with Console(stdout=io.StringIO(), stderr=io.StringIO()).step("fetch") as step:
        traffic = placing.download_all(
            [placing.Download(name=str(n), size_bytes=7, run=fetched) for n in range(9)], client_with(), step
        )
    assert (traffic.requests, traffic.bytes_received) == (9, 63)


def test_one_failure_stops_the_others() -> None:
    """Those that wait for bytes, those that pause, and those that have not begun."""
    begun, ended = threading.Barrier(3, timeout=SECONDS), list[str]()

    def failing(_client: GitHub, _on_bytes: OnBytes) -> None:
        begun.wait()
        raise NetworkError("artifact-expired", "expired")

    def receiving(_client: GitHub, on_bytes: OnBytes) -> None:
        begun.wait()
        with pytest.raises(placing.GivenUp):
            endless(on_bytes)
        ended.append("receiving")

    def pausing(client: GitHub, _on_bytes: OnBytes) -> None:
        begun.wait()
        pause(client)
        ended.append("pausing")

    def late(_client: GitHub, on_bytes: OnBytes) -> None:
        on_bytes(1, 10)
        ended.append("late")

    kinds = [failing, receiving, pausing]
    downloads = [placing.Download(name=kind.__name__, size_bytes=10, run=kind) for kind in kinds]
    blocked = placing.Download(name="blocked", size_bytes=1, run=lambda client, _: pause(client))
    error = refused(NetworkError, run, [*downloads, blocked, placing.Download(name="late", size_bytes=1, run=late)])
    assert error.code == "artifact-expired"
    assert sorted(ended) == ["pausing", "receiving"]


def endless(on_bytes: OnBytes) -> None:
    while True:
        on_bytes(1, 10)


def pause(client: GitHub) -> None:
    with pytest.raises(placing.GivenUp):
        client.session.rest(10**9)


def test_a_long_pause_is_announced() -> None:
    def limited(client: GitHub, _: OnBytes) -> None:
        client.session._announce("GitHub's rate limit: waiting 60 s")

    out = io.StringIO()
    with Console(stdout=out, stderr=out).step("fetch") as step:
        placing.download_all([placing.Download(name="a", size_bytes=1, run=limited)], client_with(), step)
    assert "GitHub's rate limit: waiting 60 s" in out.getvalue()
