"""`invoke fetch` against the stand-in for GitHub: what arrives, what is locked, and everything that can go wrong."""

import errno
import hashlib
import io
import os
import random
import tracemalloc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from github_checks import refused
from github_fetching import (
    ANDROID,
    ANDROID_FILES,
    LINUX,
    LINUX_FILES,
    RELEASED,
    SIGNER,
    Apps,
    delivery,
    facts,
    recorded,
    sums,
    vouching,
    wanted,
    with_sigstores_own_keys,
)
from github_service import answer, message
from github_state import COMMIT, Artifact, Workflow
from github_wire import Reply
from ortrim.base.cache import locked_if_free
from ortrim.base.checksums import FileEntry
from ortrim.base.console import Console
from ortrim.base.files import storage_errors
from ortrim.cli.program import program
from ortrim.errors import DiagnosticGroup, ExitCode, NetworkError, PackageError, StorageError, UsageError
from ortrim.github.client import Remote as Named
from ortrim.github.client import connect
from ortrim.github.fetch import placing
from ortrim.github.fetch import run as fetch_run
from ortrim.github.fetch.placing import Store, read_lock, user_store
from ortrim.github.fetch.provenance import ProvenanceClaim, ask_attestations, check_provenance
from ortrim.github.fetch.run import App, Fetched, fetch_files
from ortrim.github.repositories import find_service
from ortrim.package.manifest import FAILED

OTHER_COMMIT: Final = 40 * "e"
V1: Final = wanted(release="v1")
ANY_REMOTE: Final = Named()


def fetch(apps: Apps, what: Any, app: str = "app", output: str = "", remote: Named = ANY_REMOTE) -> Fetched:
    place = App(folder=apps.folder / app, output=Path(output) if output else None)
    return fetch_files(what, remote, place, Console(stdout=io.StringIO(), stderr=io.StringIO()))


def check_files(apps: Apps, files: dict[str, bytes], app: str = "app") -> None:
    output = apps.output(app)
    assert {name: (output / name).read_bytes() for name in files} == files
    assert (output / "SHA256SUMS").read_bytes() == sums(files)
    assert apps.names(app) == {f"ortrim-runtime/{name}" for name in (*files, "SHA256SUMS")} | {"ortrim.lock"}
    lock = read_lock(apps.lock(app))
    assert lock is not None
    assert {file.path: file.sha256 for file in lock.files} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }


def check_nothing_came(apps: Apps) -> None:
    """Check that the app's folder is as it was, and that the cache holds no part of anything."""
    assert apps.names() == set()
    assert [path.name for path in (apps.folder / "cache").rglob("*.partial-*")] == []


# What arrives


def test_a_release_is_fetched_and_locked(apps: Apps) -> None:
    """All of its files; the lock says which commit. A second fetch asks GitHub nothing and changes nothing."""
    apps.service.release("v1", RELEASED)
    fetched = fetch(apps, V1)
    check_files(apps, RELEASED)
    assert fetched.changed
    origin = fetched.lock.origin
    assert (origin.release, origin.run, origin.commit, origin.repository) == ("v1", 0, COMMIT, "octo/ort")
    assert {each.words for each in fetched.attestations.values()} == {"not attested"}
    asked, before = len(apps.service.seen), apps.lock().stat()
    assert not fetch(apps, wanted()).changed
    assert (len(apps.service.seen), apps.lock().stat()) == (asked, before)


def test_only_one_target_of_a_release_is_fetched(apps: Apps) -> None:
    apps.service.release("v1", RELEASED)
    fetch(apps, wanted("kws", "android", release="v1"))
    check_files(apps, {name: content for name, content in RELEASED.items() if name.startswith(ANDROID)})
    assert sum(seen.status == 200 for seen in apps.service.seen if seen.server == "storage") == 3


def test_a_run_is_fetched_and_locked(apps: Apps) -> None:
    """Its deliveries come as archives, without what they say of themselves; the lock has their digests, too."""
    linux = delivery(7, "linux-x64", {**LINUX_FILES, FAILED: b"budget-missed"})
    android = delivery(8, "android", ANDROID_FILES)
    run = apps.service.delivered(linux, android, Artifact(id=9, name="compiled-kws-linux-x64", content=b"no archive"))
    fetched = fetch(apps, wanted(run=run.id))
    check_files(apps, {**LINUX_FILES, **ANDROID_FILES})
    assert [(each.name, each.sha256) for each in fetched.lock.artifacts] == [
        (each.name, hashlib.sha256(each.content).hexdigest()) for each in (android, linux)
    ]
    assert (fetched.lock.origin.run, fetched.lock.origin.commit) == (run.id, COMMIT)


def test_the_newest_run_is_fetched_when_it_is_asked_for(apps: Apps) -> None:
    """The newest that succeeded and has the target, not one that failed, nor one without it; the lock names it."""
    old = apps.service.delivered(delivery(7, "android", {"old.aar": b"1"}))
    meant = apps.service.delivered(delivery(8, "android", ANDROID_FILES))
    apps.service.delivered(delivery(9, "linux-x64", LINUX_FILES))
    apps.service.delivered(replace(delivery(10, "android", {"gone.aar": b"1"}), expired=True))
    apps.service.delivered(delivery(11, "android", {"bad.aar": b"1"}), conclusion="failure")
    fetched = fetch(apps, wanted("kws", "android", latest=True))
    check_files(apps, ANDROID_FILES)
    assert fetched.lock.origin.run == meant.id != old.id


@pytest.mark.parametrize("title", ["build * of v1.0 [7]", "build * with uploaded models [7]", "build * of [7] [8]", ""])
def test_the_newest_run_is_one_of_what_is_in_the_repository(apps: Apps, title: str) -> None:
    """Not one of another ref, nor a colleague's own models: they are fetched by their number alone."""
    meant = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    other = apps.service.delivered(delivery(8, "android", {"other.aar": b"1"}), title=title)
    assert fetch(apps, wanted(latest=True)).lock.origin.run == meant.id
    assert fetch(apps, wanted(run=other.id, update=True)).lock.origin.run == other.id


def test_the_newest_run_of_a_workflow_that_calls_the_build(apps: Apps) -> None:
    """As an app's repository has one: on the default branch, not a fork's of that name; then known by its number."""
    called, file = ("octo/ortrim/.github/workflows/build.yml@refs/tags/v1",), ".github/workflows/app.yml"
    apps.service.workflows["app.yml"] = Workflow()
    meant = apps.service.delivered(delivery(7, "android", ANDROID_FILES), title="Merge pull request #1")
    others = [apps.service.delivered(delivery(number, "android", {"other.aar": b"1"})) for number in (8, 9)]
    for run in (meant, *others):
        run.path, run.called = file, called
    others[0].head_branch, others[1].head_repository = "feature", "evil/ort"
    assert fetch(apps, wanted(latest=True), remote=Named(workflow="app.yml")).lock.origin.run == meant.id
    check_files(apps, ANDROID_FILES)
    fetch(apps, wanted(run=others[0].id, update=True))
    refused("run-not-ours", NetworkError, fetch, apps, wanted(run=others[1].id, update=True))


def test_the_lock_says_which_commit_was_built(apps: Apps) -> None:
    """Which is not the run's own, where that was told to check out another one."""
    run = apps.service.delivered(
        delivery(7, "android", ANDROID_FILES, says=facts(OTHER_COMMIT)), title="build * of x [7]"
    )
    fetched = fetch(apps, wanted(run=run.id))
    assert fetched.lock.origin.commit == OTHER_COMMIT
    check_files(apps, ANDROID_FILES)
    apps.forget()
    (apps.output() / f"{ANDROID}.aar").unlink()
    fetch(apps, wanted())
    check_files(apps, ANDROID_FILES)


def test_several_downloads_run_side_by_side(apps: Apps) -> None:
    """Twelve files over cut links, at most four connections: all arrive whole, and little comes twice."""
    files = {f"ortrim-kws-linux-x64-1.21.{n}.tar.gz": bytes([n]) * 300_000 for n in range(12)}
    apps.service.release("v1", files)
    apps.service.blobs.cuts = deque([2, *[100_000] * 12])
    fetch(apps, V1)
    check_files(apps, files)
    assert len({seen.path for seen in apps.service.seen if seen.server == "storage"}) == 13


def test_a_large_delivery_over_a_bad_link(apps: Apps) -> None:
    """Sixty megabytes over a link that is cut 20 times: intact in the app, nothing twice, memory flat."""
    content = random.Random(7).randbytes(60_000_000)  # noqa: S311
    made = delivery(7, "android", {f"{ANDROID}.aar": content})
    run = apps.service.delivered(made)
    apps.service.blobs.cuts = deque([len(made.content) // 21] * 20)
    tracemalloc.start()
    try:
        fetch(apps, wanted(run=run.id))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24_000_000
    sent = [seen for seen in apps.service.seen if seen.server == "storage"]
    assert [seen.status for seen in sent] == [200] + [206] * 20
    assert [int(seen.headers["range"][6:-1]) for seen in sent[1:]] == [
        n * (len(made.content) // 21) for n in range(1, 21)
    ]
    assert all(seen.headers["if-range"] for seen in sent[1:])
    assert (apps.output() / f"{ANDROID}.aar").stat().st_size == len(content)
    assert hashlib.sha256((apps.output() / f"{ANDROID}.aar").read_bytes()).digest() == hashlib.sha256(content).digest()


def test_no_login_reaches_the_server_that_stores_files(apps: Apps) -> None:
    """Neither the token nor a login of `.netrc`: only what the address itself carries."""
    apps.service.release("v1", RELEASED)
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    fetch(apps, V1)
    fetch(apps, wanted(run=run.id, update=True))
    stored = [seen for seen in apps.service.seen if seen.server == "storage"]
    assert len(stored) == 6
    for seen in stored:
        assert not {"authorization", "cookie", "proxy-authorization"} & set(seen.headers)
    for path in apps.folder.rglob("*"):
        assert not path.is_file() or apps.service.token.encode() not in path.read_bytes()


# The lock file and the cache


def test_an_app_is_built_from_its_lock_file_alone(apps: Apps) -> None:
    """In another checkout, with an empty cache: the same files, to the byte, with no option at all."""
    apps.service.release("v1", RELEASED)
    fetch(apps, wanted("kws", "android", release="v1"))
    apps.service.release("v2", LINUX_FILES)
    apps.forget()
    (apps.folder / "other").mkdir()
    apps.lock("other").write_bytes(apps.lock().read_bytes())
    fetch(apps, wanted(), "other")
    assert {path.name: path.read_bytes() for path in apps.output("other").iterdir()} == {
        path.name: path.read_bytes() for path in apps.output().iterdir()
    }
    assert apps.lock("other").read_bytes() == apps.lock().read_bytes()


def test_a_run_is_fetched_again_from_the_lock_file(apps: Apps) -> None:
    """By its archives' digests, also where the run was repeated and left a second archive of the name."""
    first, second = delivery(7, "android", ANDROID_FILES), delivery(8, "android", {f"{ANDROID}.aar": b"other"})
    run = apps.service.delivered(first)
    fetch(apps, wanted(run=run.id))
    run.artifacts = (first, second)
    apps.forget()
    (apps.output() / f"{ANDROID}.aar").unlink()
    fetch(apps, wanted())
    check_files(apps, ANDROID_FILES)


def test_apps_share_what_was_fetched(apps: Apps) -> None:
    """The second app's files come from the cache: GitHub is asked what there is, and no file is sent."""
    apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    fetch(apps, wanted(run=5000))
    sent = len(apps.service.lines("storage"))
    (apps.folder / "second").mkdir()
    fetch(apps, wanted(run=5000), "second")
    check_files(apps, ANDROID_FILES, "second")
    assert len(apps.service.lines("storage")) == sent


def test_offline_takes_everything_from_the_cache(apps: Apps) -> None:
    """What was fetched before can be placed again with nobody to ask."""
    apps.service.release("v1", RELEASED)
    fetch(apps, V1)
    asked = len(apps.service.seen)
    for path in apps.output().iterdir():
        path.unlink()
    fetch(apps, wanted(offline=True))
    check_files(apps, RELEASED)
    assert len(apps.service.seen) == asked


def test_offline_without_the_files_is_reported(apps: Apps) -> None:
    """One file is missing in the cache: nothing is asked, and nothing changed."""
    apps.service.release("v1", RELEASED)
    fetch(apps, V1)
    user_store().path_of(hashlib.sha256(b"{}").hexdigest()).unlink()
    (apps.output() / f"{LINUX}.tar.gz").unlink()
    asked, before = len(apps.service.seen), apps.names()
    assert f"{LINUX}.manifest.json" in refused("not-in-cache", StorageError, fetch, apps, wanted(offline=True)).what
    assert (len(apps.service.seen), apps.names()) == (asked, before)


def test_a_damaged_cache_is_mended(apps: Apps) -> None:
    """A file that is not what its name says is fetched again; offline it is missing."""
    apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    cached = user_store().path_of(hashlib.sha256(LINUX_FILES[f"{LINUX}.tar.gz"]).hexdigest())
    cached.write_bytes(b"x" * 5000)
    fetch(apps, wanted())
    check_files(apps, LINUX_FILES)
    cached.write_bytes(b"y" * 5000)
    refused("not-in-cache", StorageError, fetch, apps, wanted(offline=True))


def test_another_version_needs_to_be_asked_for(apps: Apps) -> None:
    """The lock file stands until `--update`; then folder and lock change together, the selection stays."""
    apps.service.release("v1", RELEASED)
    newer = {f"{ANDROID}.aar": b"newer", f"{LINUX}.tar.gz": b"newer"}
    apps.service.release("v2", newer, OTHER_COMMIT)
    fetch(apps, wanted("kws", "android", release="v1"))
    for what in (wanted(release="v2"), wanted(run=3), wanted(latest=True), wanted("other"), wanted("", "linux")):
        assert "--update" in refused("lock-differs", UsageError, fetch, apps, what).hint
    refused("lock-differs", UsageError, fetch, apps, wanted(), remote=Named(repository="github.invalid/octo/other"))
    check_files(apps, {name: RELEASED[name] for name in RELEASED if name.startswith(ANDROID)})
    fetched = fetch(apps, wanted(release="v2", update=True))
    check_files(apps, {f"{ANDROID}.aar": b"newer"})
    assert (fetched.lock.origin.commit, fetched.lock.origin.target) == (OTHER_COMMIT, "android")


def test_an_update_without_a_version_takes_what_the_release_is_now(apps: Apps) -> None:
    release = apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    changed = {**LINUX_FILES, f"{LINUX}.manifest.json": b"other"}
    release.files = {**changed, "SHA256SUMS": sums(changed)}
    fetch(apps, wanted(update=True))
    check_files(apps, changed)


def test_a_further_file_of_a_release_does_not_disturb_a_lock(apps: Apps) -> None:
    release = apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    release.files = {**RELEASED, "SHA256SUMS": sums(RELEASED)}
    apps.forget()
    fetch(apps, wanted())
    check_files(apps, LINUX_FILES)


def test_an_output_of_its_own_is_remembered(apps: Apps) -> None:
    """By the lock file, so that it need not be said again; one outside of the app is not."""
    apps.service.release("v1", LINUX_FILES)
    assert fetch(apps, V1, output="third_party/ort").lock.output == "third_party/ort"
    assert fetch(apps, wanted()).output == apps.folder / "app" / "third_party/ort"
    outside = apps.folder / "outside"
    assert fetch(apps, wanted(), output=str(outside)).lock.output == "third_party/ort"
    assert (outside / "SHA256SUMS").read_bytes() == sums(LINUX_FILES)


@pytest.mark.parametrize("what", [wanted(), wanted(update=True)])
def test_a_lock_file_does_not_lead_out_of_the_app(apps: Apps, what: Any) -> None:
    """Not through a link that somebody committed: nothing is asked, nothing written there."""
    apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    outside = apps.folder / "config"
    outside.mkdir()
    (apps.folder / "app" / "deps").symlink_to(outside)
    apps.lock().write_text(apps.lock().read_text().replace('"ortrim-runtime"', '"deps/autostart"'))
    asked, before = len(apps.service.seen), apps.lock().read_bytes()
    refused("output-outside", UsageError, fetch, apps, what)
    assert (list(outside.iterdir()), apps.lock().read_bytes(), len(apps.service.seen)) == ([], before, asked)


def test_a_link_inside_of_the_app_may_be_on_the_way(apps: Apps) -> None:
    """And one that leads outside when the user names it: then it is not remembered, as any folder outside."""
    apps.service.release("v1", LINUX_FILES)
    (apps.folder / "app" / "real").mkdir()
    (apps.folder / "config").mkdir()
    (apps.folder / "app" / "inside").symlink_to("real")
    (apps.folder / "app" / "outside").symlink_to(apps.folder / "config")
    assert fetch(apps, V1, output="inside/ort").lock.output == "inside/ort"
    assert not fetch(apps, wanted()).changed
    assert fetch(apps, wanted(update=True), output="outside/ort").lock.output == "inside/ort"
    assert (apps.folder / "config" / "ort" / "SHA256SUMS").is_file()


# What is refused


def test_a_locked_release_that_changed_is_refused(apps: Apps) -> None:
    """Another file under the same name, with sums that agree with it; the app keeps what it has."""
    release = apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    changed = {**LINUX_FILES, f"{LINUX}.tar.gz": b"evil"}
    release.files = {**changed, "SHA256SUMS": sums(changed)}
    apps.forget()
    error = refused("lock-mismatch", NetworkError, fetch, apps, wanted())
    assert f"{LINUX}.tar.gz: locked " in error.why
    assert f"{LINUX}.manifest.json" not in error.why
    check_files(apps, LINUX_FILES)


def test_a_tag_that_moved_is_refused(apps: Apps) -> None:
    """The files may be the same; who locked a commit is told."""
    apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    apps.service.commits["v1"] = OTHER_COMMIT
    apps.forget()
    error = refused("lock-mismatch", NetworkError, fetch, apps, wanted())
    assert error.why == f"commit: locked {COMMIT}, now {OTHER_COMMIT}"


def test_a_locked_run_that_changed_is_refused(apps: Apps) -> None:
    """Its archive is another one: nothing of it is downloaded."""
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    fetch(apps, wanted(run=run.id))
    run.artifacts = (delivery(8, "android", {f"{ANDROID}.aar": b"evil"}),)
    apps.forget()
    sent = len(apps.service.lines("storage"))
    refused("lock-mismatch", NetworkError, fetch, apps, wanted())
    assert len(apps.service.lines("storage")) == sent
    check_files(apps, ANDROID_FILES)


@pytest.mark.parametrize(
    ("what", "true", "lie"),
    [
        (f"{ANDROID}.aar", hashlib.sha256(ANDROID_FILES[f"{ANDROID}.aar"]).hexdigest(), 64 * "0"),
        ("commit", COMMIT, OTHER_COMMIT),
    ],
)
def test_a_lock_file_that_lies_is_refused(apps: Apps, what: str, true: str, lie: str) -> None:
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    fetch(apps, wanted(run=run.id))
    apps.lock().write_text(apps.lock().read_text().replace(true, lie))
    apps.forget()
    assert refused("lock-mismatch", NetworkError, fetch, apps, wanted()).why == f"{what}: locked {lie}, now {true}"


def test_a_lock_file_does_not_decide_who_gets_the_token(apps: Apps) -> None:
    """One that names another GitHub is followed only when the user names that, too."""
    apps.service.release("v1", LINUX_FILES)
    fetch(apps, V1)
    apps.lock().write_text(apps.lock().read_text().replace('"github.invalid"', '"evil.invalid"'))
    apps.forget()
    asked = len(apps.service.seen)
    assert "--repo evil.invalid/octo/ort" in refused("lock-other-host", UsageError, fetch, apps, wanted()).hint
    assert len(apps.service.seen) == asked


@pytest.mark.parametrize("content", [b"", b"[origin]\n", b"\xff", b"schema = 1\n"])
def test_a_damaged_lock_file_is_not_replaced(apps: Apps, content: bytes) -> None:
    apps.lock().write_bytes(content)
    for what in (wanted(), V1, wanted(release="v1", update=True)):
        refused("lock-damaged", StorageError, fetch, apps, what)
    assert apps.lock().read_bytes() == content
    assert apps.service.seen == []


@pytest.mark.parametrize(
    ("what", "reference"),
    [(V1, "release-not-found"), (wanted(run=77), "run-not-found"), (wanted(latest=True), "run-not-found")],
)
def test_what_is_not_there_is_reported(apps: Apps, what: Any, reference: str) -> None:
    """No such release, no such run, no run that has it."""
    refused(reference, NetworkError, fetch, apps, what)
    check_nothing_came(apps)


def test_a_target_that_was_not_built_is_reported(apps: Apps) -> None:
    apps.service.release("v1", RELEASED)
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    for what in (wanted("", "linux-arm64", release="v1"), wanted("", "linux", run=run.id)):
        assert "kws for android" in refused("nothing-to-fetch", UsageError, fetch, apps, what).why
    check_nothing_came(apps)


def test_an_expired_artifact_is_reported(apps: Apps) -> None:
    """Listed as such, or gone by the time it is asked for."""
    run = apps.service.delivered(replace(delivery(7, "android", ANDROID_FILES), expired=True))
    refused("artifact-expired", NetworkError, fetch, apps, wanted(run=run.id))
    run.artifacts = (delivery(7, "android", ANDROID_FILES),)
    apps.service.fault("/zip", message(410, "Artifact has expired"))
    refused("artifact-expired", NetworkError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


@pytest.mark.parametrize(
    "says", [None, b"", b"{}", b"[]", facts(""), facts().replace(b"c0ffee", b"main"), b" " * 5000 + facts(), b"\xff"]
)
def test_a_delivery_that_does_not_say_what_it_was_made_of_is_refused(apps: Apps, says: bytes | None) -> None:
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES, says=says))
    refused("delivery-without-commit", PackageError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


def test_deliveries_of_two_commits_are_not_mixed(apps: Apps) -> None:
    """As of a run for a branch that moved while it ran; each alone can be had, and its commit is locked."""
    other = delivery(8, "linux-x64", LINUX_FILES, says=facts(OTHER_COMMIT))
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES), other)
    error = refused("deliveries-differ", PackageError, fetch, apps, wanted(run=run.id))
    assert f"delivered-kws-linux-x64: {OTHER_COMMIT}" in error.why
    check_nothing_came(apps)
    assert fetch(apps, wanted("kws", "linux-x64", run=run.id)).lock.origin.commit == OTHER_COMMIT


@pytest.mark.parametrize(
    "change", [{"head_repository": "evil/ort"}, {"path": ".github/workflows/ci.yml"}, {"path": ""}]
)
def test_a_run_that_is_not_the_repositorys_own_is_refused(apps: Apps, change: dict[str, str]) -> None:
    """A fork's pull request runs here with a workflow of its own: what it left is not even listed."""
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    for name, value in change.items():
        setattr(run, name, value)
    refused("run-not-ours", NetworkError, fetch, apps, wanted(run=run.id))
    assert not any("/artifacts" in line for line in apps.service.lines())
    check_nothing_came(apps)


def test_a_run_that_is_not_over_is_not_fetched(apps: Apps) -> None:
    """Half of its deliveries may be missing."""
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES))
    run.ends = None
    assert f"invoke attach {run.id}" in refused("run-not-over", NetworkError, fetch, apps, wanted(run=run.id)).hint


@pytest.mark.parametrize(
    ("files", "listed", "reference"),
    [
        ({"a": b"1", "b": b"2"}, {"a": b"1"}, "unlisted-file"),
        ({"a": b"1"}, {"a": b"1", "b": b"2"}, "file-missing"),
        ({"a": b"1"}, {"a": b"2"}, "digest-mismatch"),
    ],
)
def test_a_delivery_that_differs_from_its_sums_is_refused(
    apps: Apps, files: dict[str, bytes], listed: dict[str, bytes], reference: str
) -> None:
    """Too much, too little, or something else."""
    run = apps.service.delivered(delivery(7, "android", files, sums(listed), says=None))
    with pytest.raises(DiagnosticGroup) as caught:
        fetch(apps, wanted(run=run.id))
    assert [each.code for each in caught.value.diagnostics] == [reference]
    assert caught.value.exit_code == ExitCode.PACKAGE
    check_nothing_came(apps)


def test_an_archive_that_is_not_what_github_says_is_refused(apps: Apps) -> None:
    run = apps.service.delivered(replace(delivery(7, "android", ANDROID_FILES), digest="sha256:" + 64 * "0"))
    refused("artifact-digest-mismatch", NetworkError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


@pytest.mark.parametrize("digest", [None, "sha512:00"])
def test_an_archive_without_a_digest_is_refused(apps: Apps, digest: str | None) -> None:
    run = apps.service.delivered(replace(delivery(7, "android", ANDROID_FILES), digest=digest))
    refused("artifact-no-digest", NetworkError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


@pytest.mark.parametrize("content", [b"PK no zip", b"", delivery(7, "android", ANDROID_FILES).content[:-40]])
def test_a_damaged_archive_is_refused(apps: Apps, content: bytes) -> None:
    """Cut short, empty, or none at all, though its digest is right."""
    run = apps.service.delivered(replace(delivery(7, "android", ANDROID_FILES), content=content))
    with pytest.raises(StorageError) as caught:
        fetch(apps, wanted(run=run.id))
    assert caught.value.code in {"corrupt-archive", "nothing-unpacked"}
    check_nothing_came(apps)


def test_a_release_whose_sums_github_contradicts_is_refused(apps: Apps) -> None:
    """Somebody replaced a file and not the sums: nothing of it is downloaded."""
    release = apps.service.release("v1", LINUX_FILES)
    release.files[f"{LINUX}.tar.gz"] = b"evil"
    assert hashlib.sha256(b"evil").hexdigest() in refused("digest-mismatch", PackageError, fetch, apps, V1).why
    check_nothing_came(apps)


def test_a_file_of_another_size_than_github_says_is_refused(apps: Apps) -> None:
    """The lock file would say something wrong of it."""
    release = apps.service.release("v1", {f"{ANDROID}.aar": b"aar"})
    listed = release.assets()
    apps.service.fault("/assets$", answer([{**listed[0], "size": 4}, listed[1]]))
    refused("artifact-digest-mismatch", NetworkError, fetch, apps, V1)
    check_nothing_came(apps)


def test_a_release_without_sums_or_without_a_file_of_them_is_refused(apps: Apps) -> None:
    """Nothing in it could be checked, or something is missing."""
    release = apps.service.release("v1", LINUX_FILES)
    del release.files[f"{LINUX}.manifest.json"]
    assert f"{LINUX}.manifest.json" in refused("asset-missing", NetworkError, fetch, apps, V1).what
    del release.files["SHA256SUMS"]
    assert "SHA256SUMS" in refused("asset-missing", NetworkError, fetch, apps, V1).what
    check_nothing_came(apps)


def test_a_file_of_a_release_that_comes_wrong_is_refused(apps: Apps) -> None:
    apps.service.release("v1", LINUX_FILES)
    apps.service.fault("GET /blob/asset-4000", *(Reply(body=b"evil", headers={"ETag": '"1"'}) for _ in range(3)))
    refused("artifact-digest-mismatch", NetworkError, fetch, apps, V1)
    check_nothing_came(apps)
    apps.service.faults.clear()
    fetch(apps, V1)
    check_files(apps, LINUX_FILES)


def test_a_link_that_does_not_come_back_is_reported(apps: Apps) -> None:
    """All downloads are given up, and what was finished need not come again."""
    apps.service.release("v1", RELEASED)
    apps.service.fault("GET /blob/asset-4001", *(Reply(silent=True) for _ in range(20)))
    refused("download-failed", NetworkError, fetch, apps, V1)
    check_nothing_came(apps)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_stops_a_download(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    apps.service.release("v1", LINUX_FILES)
    monkeypatch.setattr(os, "fsync", full)
    refused("disk-full", StorageError, fetch, apps, V1)
    check_nothing_came(apps)


@pytest.mark.parametrize("moment", ["copying", "locking"])
def test_a_full_disk_stops_an_update(apps: Apps, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """In the middle of a file, or when the lock file is to be written: the earlier version stays, and its lock."""
    apps.service.release("v1", LINUX_FILES)
    apps.service.release("v2", {f"{LINUX}.tar.gz": b"newer"})
    fetch(apps, V1)
    copy = Store.copy

    def half(store: Store, entry: FileEntry, destination: Path) -> None:
        copy(store, entry, destination)
        full()

    def written(path: Path, _: object) -> None:
        with storage_errors(path):
            full()

    if moment == "copying":
        monkeypatch.setattr(Store, "copy", half)
    else:
        monkeypatch.setattr(placing, "write_lock", written)
    refused("disk-full", StorageError, fetch, apps, wanted(release="v2", update=True))
    check_files(apps, LINUX_FILES)


def test_two_apps_fetch_the_same_at_once(apps: Apps) -> None:
    """One of them downloads, the other waits for it; both get everything."""
    run = apps.service.delivered(delivery(7, "android", {f"{ANDROID}.aar": bytes(5_000_000)}))
    (apps.folder / "second").mkdir()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda app: fetch(apps, wanted(run=run.id), app), ("app", "second")))
    for app in ("app", "second"):
        check_files(apps, {f"{ANDROID}.aar": bytes(5_000_000)}, app)
    assert len(apps.service.lines("storage")) == 1


def test_two_fetches_for_one_app_do_not_mix(apps: Apps) -> None:
    """The second is turned away while the first is at work."""
    apps.service.release("v1", LINUX_FILES)
    name = hashlib.sha256(str((apps.folder / "app").resolve()).encode()).hexdigest()
    with locked_if_free(user_store().folder / "apps" / name):
        refused("fetch-under-way", StorageError, fetch, apps, V1)
    assert apps.service.seen == []
    fetch(apps, V1)
    check_files(apps, LINUX_FILES)


@pytest.mark.parametrize("where", ["/blob/", "/zip", "/artifacts", "/attestations/"])
def test_ctrl_c_leaves_nothing_half_done(apps: Apps, where: str) -> None:
    """At any moment; afterwards the same command does all of it."""
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES), delivery(8, "linux-x64", LINUX_FILES))
    apps.service.interrupts = where
    with pytest.raises(KeyboardInterrupt):
        fetch(apps, wanted(run=run.id))
    check_nothing_came(apps)
    fetch(apps, wanted(run=run.id))
    check_files(apps, {**LINUX_FILES, **ANDROID_FILES})


def test_what_was_not_fetched_is_not_removed(apps: Apps) -> None:
    """A folder with files of the user's own is left alone, and so are files and links in its place."""
    apps.service.release("v1", LINUX_FILES)
    (apps.output() / "src").mkdir(parents=True)
    (apps.output() / "src" / "own.c").write_text("int main;")
    assert refused("path-in-the-way", StorageError, fetch, apps, V1).why == "src/own.c"
    assert apps.names() == {"ortrim-runtime/src/own.c"}
    (apps.folder / "app" / "link").symlink_to(apps.folder)
    for output in ("link", "ortrim-runtime/src/own.c"):
        refused("path-in-the-way", StorageError, fetch, apps, V1, output=output)


@pytest.mark.parametrize("output", [".", "..", "{app}", "{app}/../app", "deeper/..", "/"])
def test_the_apps_own_folder_is_not_replaced(apps: Apps, output: str) -> None:
    apps.service.release("v1", LINUX_FILES)
    before = (apps.folder / "app").stat().st_ino
    error = refused("path-in-the-way", StorageError, fetch, apps, V1, output=output.format(app=apps.folder / "app"))
    assert "--output" in error.hint
    assert (apps.names(), apps.service.seen, (apps.folder / "app").stat().st_ino) == (set(), [], before)


def test_two_deliveries_with_one_name_are_refused(apps: Apps) -> None:
    """Which of them is meant, nobody can say."""
    other = delivery(8, "linux-x64", {"models/kws.ort": b"another one"})
    run = apps.service.delivered(delivery(7, "android", ANDROID_FILES), other)
    assert "--target" in refused("name-twice", PackageError, fetch, apps, wanted(run=run.id)).hint
    assert apps.names() == set()


# Attestations


def test_an_attested_release_is_locked_with_its_signer(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    """One attestation vouches for many files, and is asked for once."""
    monkeypatch.setattr(fetch_run, "check_provenance", vouching(*LINUX_FILES.values()))
    apps.service.release("v1", RELEASED)
    for content in LINUX_FILES.values():
        apps.service.bundles[hashlib.sha256(content).hexdigest()] = [recorded("provenance.json")]
    fetched = fetch(apps, V1)
    assert {file.path: file.signer for file in fetched.lock.files if file.signer} == dict.fromkeys(LINUX_FILES, SIGNER)
    assert fetched.attestations[f"{LINUX}.tar.gz"].words == f"attested by {SIGNER}"
    assert fetched.attestations[f"{ANDROID}.aar"].words == "not attested"
    assert sum("/attestations/" in line for line in apps.service.lines()) == 3
    again = fetch(apps, wanted())
    assert again.attestations[f"{LINUX}.tar.gz"].words == f"locked: attested by {SIGNER}"


def test_an_attestation_of_something_else_stops_the_fetch(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one, of another repository and other files: nothing is placed, nothing locked."""
    with_sigstores_own_keys(monkeypatch, apps.folder / "home")
    apps.service.release("v1", LINUX_FILES)
    digest = hashlib.sha256(LINUX_FILES[f"{LINUX}.tar.gz"]).hexdigest()
    apps.service.bundles[digest] = [recorded("provenance.json")]
    assert refused("attestation-invalid", NetworkError, fetch, apps, V1).where == f"{LINUX}.tar.gz"
    check_nothing_came(apps)


def test_a_real_attestation_is_verified(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub's own provenance of a published file, through the API's form, by sigstore's real keys, offline."""
    with_sigstores_own_keys(monkeypatch, apps.folder / "home")
    content = recorded("provenance.json")
    digest = "9bb1add04b1b4e182be6b0b80931593f7a291eb49d69b4fd728a5d4cbcdc4bd3"
    apps.service.bundles[digest] = [content]
    claim = ProvenanceClaim(
        repository="https://github.com/trailofbits/pypi-attestations",
        commit="08802efe1f8e5fec4ad842d6b8ce97656092ee72",
    )
    entry = FileEntry(path="pypi_attestations-0.0.19.tar.gz", size_bytes=29882, sha256=digest)
    known = ask_attestations(apps.remote.client, claim, [entry], check_provenance)
    workflow = "https://github.com/trailofbits/pypi-attestations/.github/workflows/release.yml@refs/tags/v0.0.19"
    assert known[entry.path].signer == workflow


def test_an_attestation_that_is_lost_is_warned_of(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_run, "check_provenance", vouching(*LINUX_FILES.values()))
    apps.service.release("v1", LINUX_FILES)
    for content in LINUX_FILES.values():
        apps.service.bundles[hashlib.sha256(content).hexdigest()] = [recorded("provenance.json")]
    apps.service.release("v2", {f"{LINUX}.tar.gz": b"newer"})
    fetch(apps, V1)
    said = io.StringIO()
    place = App(folder=apps.folder / "app")
    fetch_files(wanted(release="v2", update=True), Named(), place, Console(stdout=said, stderr=said, width=500))
    assert f"warning: files were attested by {SIGNER.partition('@')[0]} before" in said.getvalue()


def test_without_a_token_github_is_not_asked_too_much(apps: Apps) -> None:
    """It answers 60 questions an hour: after twenty files without an attestation the rest is not asked about."""
    files = {f"ortrim-kws-linux-x64-1.21.{n}.tar.gz": b"%d" % n for n in range(30)}
    apps.service.release("v1", files)
    apps.secret = ""
    fetched = fetch(apps, V1)
    words = [each.words for each in fetched.attestations.values()]
    assert [word == "not attested" for word in words] == [True] * 20 + [False] * 10
    assert sum("/attestations/" in line for line in apps.service.lines()) == 20


def test_the_lock_file_is_readable(apps: Apps) -> None:
    apps.service.release("v1", {f"{ANDROID}.aar": b"aar"})
    fetch(apps, wanted("", "android", release="v1"))
    digest = hashlib.sha256(b"aar").hexdigest()
    assert apps.lock().read_text() == (
        "# The files of `invoke fetch`: keep this file under version control.\n"
        "# `invoke fetch` gives the same files again; `invoke fetch --update` changes this file.\n"
        'schema = "ortrim-lock/1"\noutput = "ortrim-runtime"\n\n'
        '[origin]\nhost = "github.invalid"\nrepository = "octo/ort"\nrelease = "v1"\n'
        f'commit = "{COMMIT}"\ntarget = "android"\n\n'
        f'[[file]]\npath = "{ANDROID}.aar"\nsize = 3\nsha256 = "{digest}"\n'
    )


# The program


def test_the_program_fetches_and_says_what(
    apps: Apps, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """From the command line to the files, with a token of the environment; later without any option."""
    apps.service.release("v1", RELEASED)
    monkeypatch.setattr(fetch_run, "connect", connect)
    monkeypatch.setattr(fetch_run, "find_service", find_service)
    monkeypatch.setenv("GITHUB_API_URL", apps.service.url)
    monkeypatch.setenv("GH_TOKEN", apps.service.token)
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", apps.service.token)
    monkeypatch.chdir(apps.folder / "app")
    program.run(["ortrim", "fetch", "--release", "v1", "--target", "android", "--repo", "octo/ort"], exit=False)
    said = capfd.readouterr().out
    check_files(apps, {name: content for name, content in RELEASED.items() if name.startswith(ANDROID)})
    assert f"octo/ort v1, commit {COMMIT}; locked in ortrim.lock" in said
    assert "0 of them twice" in said
    program.run(["ortrim", "fetch", "--offline"], exit=False)
    said = capfd.readouterr().out
    assert "2 files of 3,003 bytes were in ortrim-runtime" in said
    assert apps.service.token not in said
