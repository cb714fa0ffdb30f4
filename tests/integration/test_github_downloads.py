"""Downloads from GitHub against the stand-in: artifacts and files of releases, over links that break."""

import hashlib
import random
import tracemalloc
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from github_checks import Remote, new_client, refused, running_remote
from github_service import REPOSITORY, message
from github_state import Artifact, Release, RemoteRun
from github_wire import Drip, Reply
from ortrim.base.archives import unpack
from ortrim.base.files import sha256_of
from ortrim.errors import NetworkError, StorageError
from ortrim.github import artifacts
from ortrim.github.artifacts import (
    choose_artifact,
    choose_asset,
    download_artifact,
    download_asset,
    fetch_artifact,
    get_release,
    list_artifacts,
    list_assets,
    opened_download,
)
from ortrim.github.client import Artifact as Listed
from ortrim.github.client import GitHub
from ortrim.github.runs import get_run
from zips import zipped

CONTENT: Final = random.Random(6).randbytes(3_000_000)  # noqa: S311
SMALL: Final = bytes(range(40))
ZIP_LINE: Final = f"GET {REPOSITORY}/actions/artifacts/7/zip"


def archive_of(*names: str) -> bytes:
    return zipped({name: name * 100 for name in names})


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Remote]:
    """Run the stand-in; the user has logins for both of its hosts in `.netrc`."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\nmachine localhost login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with running_remote(monkeypatch) as running:
        yield running


def listed(remote: Remote, *artifacts: Artifact) -> tuple[Listed, ...]:
    """Have the stand-in hold a run with these artifacts; returns what the API says of them."""
    remote.service.template = lambda: RemoteRun(artifacts=artifacts)
    return list_artifacts(remote.client, remote.service.start("build").id)


def only(remote: Remote, content: bytes = CONTENT, **changes: object) -> Listed:
    return listed(remote, replace(Artifact(id=7, name="linux-x64", content=content), **changes))[0]  # type: ignore[arg-type]


def fetched(remote: Remote, artifact: Listed, tmp_path: Path) -> bytes:
    """Download an artifact; only the file and its lock are there then."""
    download_artifact(remote.client, artifact, tmp_path / "in/a.zip")
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"a.zip", ".a.zip.lock"}
    return (tmp_path / "in/a.zip").read_bytes()


def check_nothing_left(tmp_path: Path) -> None:
    """No part of a file stays behind, but the lock may."""
    folder = tmp_path / "in"
    assert not folder.is_dir() or {path.name for path in folder.iterdir()} <= {".a.zip.lock"}


def attempts(remote: Remote) -> int:
    return sum(line.startswith(ZIP_LINE) for line in remote.service.lines())


def test_an_artifact_arrives_and_unpacks(remote: Remote, tmp_path: Path) -> None:
    """Bytes as stored; the server behind the redirect sees neither the token nor a login of `.netrc`."""
    content = archive_of("lib/libonnxruntime.so", "SHA256SUMS")
    assert fetched(remote, only(remote, content), tmp_path) == content
    (stored,) = (seen for seen in remote.service.seen if seen.server == "storage")
    assert not {"authorization", "cookie"} & set(stored.headers)
    unpack(tmp_path / "in/a.zip", tmp_path / "out")
    assert (tmp_path / "out/lib/libonnxruntime.so").is_file()
    assert (tmp_path / "in/a.zip").stat().st_mode & 0o777 == 0o644


def test_progress_is_reported(remote: Remote, tmp_path: Path) -> None:
    """Bytes so far and in all, to the end; a file that is there already is not fetched again."""
    told: list[tuple[int, int]] = []
    artifact = only(remote)
    for _ in range(2):
        download_artifact(
            remote.client, artifact, tmp_path / "in/a.zip", lambda done, total: told.append((done, total))
        )
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert told == sorted(told)
    assert attempts(remote) == 1


def test_a_link_cut_twenty_times_costs_little(remote: Remote, tmp_path: Path) -> None:
    """Each part is asked for where the last one ended, at a fresh address; next to nothing comes twice."""
    remote.service.blobs.cuts = deque([len(CONTENT) // 21] * 20)
    assert fetched(remote, only(remote), tmp_path) == CONTENT
    assert attempts(remote) == 21
    sent = [line.rsplit(" ")[-1] for line in remote.service.lines("storage")]
    assert sent == ["200"] + ["206"] * 20
    traffic = remote.client.session.traffic
    assert (traffic.bytes_received, traffic.bytes_again, traffic.repeats) == (len(CONTENT), 0, 20)


def download_in_little_memory(remote: Remote, artifact: Listed, path: Path) -> None:
    tracemalloc.start()
    try:
        download_artifact(remote.client, artifact, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_a_large_artifact_needs_little_memory(remote: Remote, tmp_path: Path) -> None:
    """200 MB over a link that is cut 20 times: intact, less than 5 % of it twice, memory flat."""
    content = random.Random(7).randbytes(200_000_000)  # noqa: S311
    artifact = only(remote, content)
    remote.service.blobs.cuts = deque([len(content) // 21] * 20)
    download_in_little_memory(remote, artifact, tmp_path / "in/a.zip")
    assert attempts(remote) == 21
    traffic = remote.client.session.traffic
    assert traffic.bytes_received == len(content) + traffic.bytes_again
    assert traffic.bytes_again < 0.05 * len(content)
    assert sha256_of(tmp_path / "in/a.zip") == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("offset", range(len(SMALL)))
def test_a_cut_at_any_offset_is_mended(remote: Remote, tmp_path: Path, offset: int) -> None:
    """Before the first byte, before the last, and anywhere between, twice."""
    remote.service.blobs.cuts = deque([offset, 0])
    assert fetched(remote, only(remote, SMALL), tmp_path) == SMALL
    assert remote.client.session.traffic.bytes_received == len(SMALL)


def test_an_address_that_expired_is_asked_for_anew(remote: Remote, tmp_path: Path) -> None:
    """It is good for a minute; a pause between two parts may be longer."""
    artifact = only(remote)
    expired = Reply(status=403, body=b"<Error><Code>AuthenticationFailed</Code></Error>")
    remote.service.blobs.cuts = deque([1_000_000])
    remote.service.fault("GET /blob", Reply(silent=True), expired)
    assert fetched(remote, artifact, tmp_path) == CONTENT
    assert attempts(remote) == 4


def test_a_file_that_changes_between_parts_is_fetched_whole(remote: Remote, tmp_path: Path) -> None:
    """`If-Range` makes the server start over rather than join two files."""
    remote.service.blobs.changing = True
    remote.service.blobs.cuts = deque([1_000_000])
    assert fetched(remote, only(remote), tmp_path) == CONTENT
    assert [line.rsplit(" ")[-1] for line in remote.service.lines("storage")] == ["200", "200"]
    assert remote.client.session.traffic.bytes_again == 1_000_000


def test_a_server_without_ranges_starts_over(remote: Remote, tmp_path: Path) -> None:
    remote.service.blobs.ranges = False
    remote.service.blobs.cuts = deque([1_000_000, 2_000_000])
    assert fetched(remote, only(remote), tmp_path) == CONTENT


@pytest.mark.parametrize(
    "wrong",
    [
        Reply(status=206, body=CONTENT[5:], headers={"Content-Range": f"bytes 5-{len(CONTENT) - 1}/{len(CONTENT)}"}),
        Reply(status=206, body=CONTENT[1_000_000:]),
        Reply(status=206, body=b"", headers={"Content-Range": "bytes 1000000-"}),
        Reply(status=416, headers={"Content-Range": "bytes */999"}),
        Reply(status=416),
    ],
)
def test_another_part_than_the_one_asked_for_is_not_taken(remote: Remote, tmp_path: Path, wrong: Reply) -> None:
    """What has come is forgotten then, and the whole file fetched."""
    artifact = only(remote)
    first = Reply(body=CONTENT, cut=1_000_000, headers={"ETag": '"0x8"'})
    remote.service.fault("GET /blob", first, replace(wrong))
    assert fetched(remote, artifact, tmp_path) == CONTENT
    assert remote.client.session.traffic.bytes_again == 1_000_000


def test_parts_that_do_not_fit_are_fetched_once_more(remote: Remote, tmp_path: Path) -> None:
    """A server may say 206 and give bytes of another file; the digest tells, and a whole file mends it."""
    artifact = only(remote)
    place = {"Content-Range": f"bytes 1000000-{len(CONTENT) - 1}/{len(CONTENT)}"}
    other = Reply(status=206, body=CONTENT[:1_000_000:-1], headers=place)
    remote.service.fault("GET /blob", Reply(body=CONTENT, cut=1_000_000), other)
    assert fetched(remote, artifact, tmp_path) == CONTENT


def test_a_cut_right_at_the_end_is_noticed(remote: Remote, tmp_path: Path) -> None:
    """All bytes came, the server then has none left (416), and the file is whole."""
    artifact = only(remote)
    first = Reply(body=CONTENT + b"?", cut=len(CONTENT), headers={"ETag": '"0x8"'})
    remote.service.fault("GET /blob", first)
    assert fetched(remote, artifact, tmp_path) == CONTENT
    assert remote.service.lines("storage")[-1].endswith("416")
    assert remote.client.session.traffic.bytes_again == 0


def test_a_body_without_a_length_may_be_cut_unseen(remote: Remote, tmp_path: Path) -> None:
    """Then only the digest tells, and the file is fetched once more."""
    artifact = only(remote)
    remote.service.fault("GET /blob", Reply(body=CONTENT[:1_000_000], has_length=False))
    assert fetched(remote, artifact, tmp_path) == CONTENT


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_trouble_of_the_storage_passes_or_is_reported(remote: Remote, tmp_path: Path, status: int) -> None:
    """Twice is overcome; six times in a row is given up, without a trace on the disk."""
    artifact = only(remote)
    remote.service.fault("GET /blob", Reply(status=status), Reply(status=status))
    assert fetched(remote, artifact, tmp_path) == CONTENT
    (tmp_path / "in/a.zip").unlink()
    remote.service.fault("GET /blob", *(Reply(status=status) for _ in range(9)))
    assert str(status) in refused("download-failed", NetworkError, fetched, remote, artifact, tmp_path).why
    assert attempts(remote) == 3 + 6
    check_nothing_left(tmp_path)


def test_a_link_that_brings_nothing_is_given_up(remote: Remote, tmp_path: Path) -> None:
    """Cut before the first byte again and again."""
    artifact = only(remote)
    remote.service.fault("GET /blob", *(Reply(body=CONTENT, cut=0) for _ in range(9)))
    assert "at 0 bytes" in refused("download-failed", NetworkError, fetched, remote, artifact, tmp_path).what
    check_nothing_left(tmp_path)


def test_a_link_that_brings_almost_nothing_is_given_up(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes each time would take for ever."""
    monkeypatch.setattr(artifacts, "MOST_ATTEMPTS", 9)
    remote.service.blobs.cuts = deque([10] * 20)
    assert "at 90 bytes" in refused("download-failed", NetworkError, fetched, remote, only(remote), tmp_path).what
    check_nothing_left(tmp_path)


def test_a_storage_that_drips_is_left_and_asked_again(remote: Remote, tmp_path: Path) -> None:
    artifact, began = only(remote), remote.clock.now
    remote.service.fault("GET /blob", Reply(body=CONTENT, drip=Drip(size=500, seconds=30)))
    assert fetched(remote, artifact, tmp_path) == CONTENT
    ranges = [seen.headers.get("range") for seen in remote.service.seen if seen.server == "storage"]
    assert ranges == [None, "bytes=1500-"]
    assert 90 <= remote.clock.now - began < 150


def test_a_slow_storage_is_waited_for(remote: Remote, tmp_path: Path) -> None:
    """Three kilobytes a second are some, for a quarter of an hour: one request, nothing twice."""
    artifact, began = only(remote), remote.clock.now
    remote.service.fault("GET /blob", Reply(body=CONTENT, drip=Drip(size=30_000, seconds=10)))
    assert fetched(remote, artifact, tmp_path) == CONTENT
    assert remote.clock.now - began >= 990
    assert (attempts(remote), remote.client.session.traffic.bytes_again) == (1, 0)


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        (message(410, "Artifact has expired"), "artifact-expired"),
        (message(404, "Not Found"), "artifact-missing"),
        (message(403, "Resource not accessible"), "github-refused"),
        (message(401, "Bad credentials"), "github-refused"),
    ],
)
def test_a_refused_download_is_not_repeated(remote: Remote, tmp_path: Path, reply: Reply, reference: str) -> None:
    artifact = only(remote)
    remote.service.fault("/zip", reply)
    refused(reference, NetworkError, fetched, remote, artifact, tmp_path)
    assert attempts(remote) == 1
    check_nothing_left(tmp_path)


def test_rate_limits_and_trouble_of_the_api_are_sat_out(remote: Remote, tmp_path: Path) -> None:
    """Before and between the parts of a download."""
    artifact = only(remote)
    limit = message(429, "slow down", **{"Retry-After": "11"})
    remote.service.blobs.cuts = deque([1_000_000])
    remote.service.fault("/zip", limit, Reply(status=502))
    assert fetched(remote, artifact, tmp_path) == CONTENT
    assert remote.clock.slept.count(11) == 1


def test_a_wrong_digest_is_not_accepted(remote: Remote, tmp_path: Path) -> None:
    """Both digests are shown, one above the other; nothing gets the file's name."""
    artifact = only(remote, digest="sha256:" + 64 * "0")
    error = refused("artifact-digest-mismatch", NetworkError, fetched, remote, artifact, tmp_path)
    assert error.why == f"expected {64 * '0'}\nactual   {hashlib.sha256(CONTENT).hexdigest()}"
    check_nothing_left(tmp_path)


@pytest.mark.parametrize("digest", [None, "sha512:00", "sha256:xyz", f"sha256:{64 * 'A'}"])
def test_what_cannot_be_checked_is_not_fetched(remote: Remote, tmp_path: Path, digest: str | None) -> None:
    refused("artifact-no-digest", NetworkError, fetched, remote, only(remote, digest=digest), tmp_path)
    assert attempts(remote) == 0
    check_nothing_left(tmp_path)


def test_a_download_without_end_is_stopped(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAXIMUM_BYTES", 1_000_000)
    refused("download-too-large", NetworkError, fetched, remote, only(remote), tmp_path)
    check_nothing_left(tmp_path)


@pytest.mark.parametrize(
    "place",
    ["http://192.0.2.1/x", "ftp://localhost/x", "file:///etc/passwd", "", "http://[", "https://", "//localhost:1/x"],
)
def test_a_redirect_to_where_others_listen_is_not_followed(remote: Remote, tmp_path: Path, place: str) -> None:
    artifact = only(remote)
    remote.service.fault("/zip", *(Reply(status=302, headers={"Location": place}) for _ in range(9)))
    with pytest.raises(NetworkError) as caught:
        fetched(remote, artifact, tmp_path)
    assert caught.value.code in {"github-unexpected-answer", "download-failed"}
    check_nothing_left(tmp_path)


@pytest.mark.parametrize("line", ["/zip", "GET /blob"])
def test_what_comes_with_a_redirect_is_not_read(remote: Remote, tmp_path: Path, line: str) -> None:
    """A body of 80 MiB, or one without an end, would come to lie in memory."""
    artifact = only(remote)
    location = {"Location": remote.service.blob_address("7", CONTENT)}
    remote.service.fault(line, Reply(status=302, headers=location, body=bytes(80 << 20)))
    download_in_little_memory(remote, artifact, tmp_path / "in/a.zip")
    assert sha256_of(tmp_path / "in/a.zip") == hashlib.sha256(CONTENT).hexdigest()


def test_redirects_in_a_circle_end(remote: Remote, tmp_path: Path) -> None:
    artifact = only(remote)
    here = remote.service.blob_address("x", b"")
    remote.service.fault("GET /blob", *(Reply(status=302, headers={"Location": here}) for _ in range(9)))
    remote.service.fault("/zip", Reply(status=302, headers={"Location": here}))
    refused("github-unexpected-answer", NetworkError, fetched, remote, artifact, tmp_path)


def test_a_renamed_repository_still_gives_its_artifacts(remote: Remote, tmp_path: Path) -> None:
    """The API sends on within itself, where the token may go too."""
    artifact = only(remote)
    there = {"Location": f"{remote.service.url}{REPOSITORY}/actions/artifacts/7/zip"}
    remote.service.fault("/zip", Reply(status=301, headers=there))
    assert fetched(remote, artifact, tmp_path) == CONTENT


def test_https_is_not_left(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API that is spoken to over https may not send to loopback either."""
    monkeypatch.setattr(GitHub, "url", lambda *_: f"{remote.service.url}{REPOSITORY}/actions/artifacts/7/zip")
    only_if_http = replace(remote.client.service, api="https://api.github.invalid")
    artifact = Artifact(id=7, name="a", content=SMALL)
    remote.service.runs.append(RemoteRun(id=1, artifacts=(artifact,)))
    remote.client.service = only_if_http
    refused("github-unexpected-answer", NetworkError, opened_download(remote.client, "/x", {}).__enter__)
    assert remote.service.lines("storage") == []


def test_an_artifact_becomes_a_folder_once(remote: Remote, tmp_path: Path) -> None:
    """Fetched and unpacked in one go; a folder that is there is left alone."""
    artifact = only(remote, archive_of("lib/libonnxruntime.so", "SHA256SUMS"))
    assert fetch_artifact(remote.client, artifact, tmp_path / "in/linux-x64")
    assert not fetch_artifact(remote.client, artifact, tmp_path / "in/linux-x64")
    assert attempts(remote) == 1
    assert (tmp_path / "in/linux-x64/lib/libonnxruntime.so").is_file()
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"linux-x64", ".linux-x64.lock"}


@pytest.mark.parametrize(
    ("content", "reference"),
    [(archive_of("../evil"), "unsafe-archive"), (archive_of("a")[:-9], "corrupt-archive")],
    ids=["outside", "cut"],  # a name that holds the archive would hold the time, and pytest's workers differ in it
)
def test_an_artifact_that_does_not_unpack_leaves_nothing(
    remote: Remote, tmp_path: Path, content: bytes, reference: str
) -> None:
    """Neither the folder nor the archive."""
    refused(reference, StorageError, fetch_artifact, remote.client, only(remote, content), tmp_path / "in/linux-x64")
    assert {path.name for path in (tmp_path / "in").iterdir()} == {".linux-x64.lock"}


def test_a_place_that_is_taken_is_reported(remote: Remote, tmp_path: Path) -> None:
    """A folder of the file's name stays as it is."""
    (tmp_path / "in/a.zip/kept").mkdir(parents=True)
    refused("path-in-the-way", StorageError, download_artifact, remote.client, only(remote), tmp_path / "in/a.zip")
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"a.zip", ".a.zip.lock"}
    assert (tmp_path / "in/a.zip/kept").is_dir()


def test_an_artifact_needs_a_token(remote: Remote, tmp_path: Path) -> None:
    """Also in public repositories; nothing is asked then."""
    artifact = only(remote)
    client = new_client(remote.service, remote.clock, [], secret="")
    refused("github-no-token", NetworkError, download_artifact, client, artifact, tmp_path / "in/a.zip")
    assert attempts(remote) == 0


# Choosing


def test_the_newest_of_equal_names_is_chosen(remote: Remote) -> None:
    """A run that was repeated leaves several; other names are left alone."""
    artifacts = listed(
        remote,
        Artifact(id=3, name="a", content=b"old", expired=True),
        Artifact(id=9, name="a", content=b"new"),
        Artifact(id=12, name="b", content=b"other"),
    )
    run = get_run(remote.client, 5000)
    assert choose_artifact(artifacts, "a", run).id == 9


@pytest.mark.parametrize(
    ("artifacts", "reference", "told"),
    [
        ((), "artifact-missing", "it has none"),
        ((Artifact(id=1, name="linux-arm64", content=b""),), "artifact-missing", "linux-arm64"),
        ((Artifact(id=1, name="linux-x64", content=b"", expired=True),), "artifact-expired", "on 2026-11-22"),
    ],
)
def test_an_artifact_that_will_not_do_is_reported(
    remote: Remote, artifacts: tuple[Artifact, ...], reference: str, told: str
) -> None:
    found = listed(remote, *artifacts)
    run = get_run(remote.client, 5000)
    assert told in str(refused(reference, NetworkError, choose_artifact, found, "linux-x64", run))


@pytest.mark.parametrize("name", ["../../evil", "a\x1b[2J", "x" * 5000])
def test_names_of_others_are_data(remote: Remote, name: str) -> None:
    artifact = Artifact(id=1, name=name, content=b"")
    if len(name) > 4096:
        refused("github-unexpected-answer", NetworkError, listed, remote, artifact)
    else:
        assert listed(remote, artifact)[0].name == name


# Releases


@pytest.fixture
def release(remote: Remote) -> Release:
    files = {f"file-{number}": b"%d" % number for number in range(129)}
    held = Release(id=4, tag="v1/ä", files={**files, "ort.aar": CONTENT}, states={"file-3": "open"})
    remote.service.releases.append(held)
    return held


@pytest.mark.parametrize("secret", ["", "known"])
@pytest.mark.parametrize("tag", ["", "v1/ä"])
def test_a_file_of_a_release_arrives(remote: Remote, release: Release, tmp_path: Path, secret: str, tag: str) -> None:
    """By tag or the latest, from a public repository also without a token, over a link that is cut."""
    client = remote.client if secret else new_client(remote.service, remote.clock, [], secret="")
    found = get_release(client, tag)
    asset = choose_asset(list_assets(client, found), "ort.aar", found)
    remote.service.blobs.cuts = deque([100, 0, 2_000_000])
    download_asset(client, asset, tmp_path / "in/a.zip")
    assert (tmp_path / "in/a.zip").read_bytes() == CONTENT
    accepts = {seen.headers["accept"] for seen in remote.service.seen if seen.path.endswith("/assets/4129")}
    assert accepts == {"application/octet-stream"}


def test_the_api_may_give_the_file_itself(remote: Remote, release: Release, tmp_path: Path) -> None:
    found = get_release(remote.client)
    asset = choose_asset(list_assets(remote.client, found), "ort.aar", found)
    remote.service.fault("GET .*/assets/4129", Reply(body=CONTENT, cut=1000), Reply(body=CONTENT))
    download_asset(remote.client, asset, tmp_path / "in/a.zip")
    assert (tmp_path / "in/a.zip").read_bytes() == CONTENT
    assert remote.service.lines("storage") == []


def test_a_release_that_is_not_there_is_reported(remote: Remote) -> None:
    """By tag, and when there is none at all."""
    for tag in ("v9", ""):
        refused("release-not-found", NetworkError, get_release, remote.client, tag)


def test_a_release_that_is_refused_is_not_called_missing(remote: Remote) -> None:
    remote.service.fault("/releases", message(403, "Resource protected"))
    refused("github-refused", NetworkError, get_release, remote.client)


@pytest.mark.parametrize("name", ["file-3", "ort.zip"])
def test_a_file_that_is_not_there_is_reported(remote: Remote, release: Release, name: str) -> None:
    found = get_release(remote.client)
    error = refused("asset-missing", NetworkError, choose_asset, list_assets(remote.client, found), name, found)
    assert "file-0" in error.why
    assert "file-3," not in error.why


def test_a_lock_files_digest_counts_alone(remote: Remote, release: Release, tmp_path: Path) -> None:
    release.digests = False
    found = get_release(remote.client)
    asset = choose_asset(list_assets(remote.client, found), "ort.aar", found)
    refused("artifact-no-digest", NetworkError, download_asset, remote.client, asset, tmp_path / "in/a.zip")
    refused(
        "artifact-digest-mismatch",
        NetworkError,
        download_asset,
        remote.client,
        asset,
        tmp_path / "in/a.zip",
        sha256=64 * "1",
    )
    check_nothing_left(tmp_path)
    download_asset(remote.client, asset, tmp_path / "in/a.zip", sha256=hashlib.sha256(CONTENT).hexdigest())
    assert (tmp_path / "in/a.zip").read_bytes() == CONTENT
