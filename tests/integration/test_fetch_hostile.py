"""`invoke fetch` of releases and deliveries whose content means harm: nothing of it is placed, and nothing hangs."""

import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from github_checks import refused
from github_fetching import LINUX, LINUX_FILES, Apps, delivery, facts, sums, wanted
from github_state import Artifact
from ortrim.base.archives import Members
from ortrim.base.checksums import MOST_FILES
from ortrim.base.console import Console
from ortrim.errors import Diagnostic, DiagnosticGroup, PackageError, StorageError
from ortrim.github.client import Remote as Named
from ortrim.github.fetch.run import App, Fetched, fetch_files
from ortrim.package.manifest import FACTS

GOOD: Final = f"{LINUX}.tar.gz"
V1: Final = wanted(release="v1")
A: Final = 64 * "a"
HARMFUL: Final = (
    ".git/config", ".GIT/hooks/post-checkout", "git~1/config", "../up", "/etc/evil", "a/../../up", "NUL", "aux.ort",
    "models/COM1.ort", "a.", "a ", "b./c", "a:b", "a\\b", "a\u202egnp.exe",
)  # fmt: skip
TWINS: Final = (
    ("ort.aar", "Ort.aar"),
    ("Models/a", "models/b"),
    ("\u00e9.ort", "e\u0301.ort"),
    ("strasse.ort", "stra\u00dfe.ort"),
    ("a", "a/b"),
    ("sha256sums", "a"),
)


def fetch(apps: Apps, what: Any, output: str = "") -> Fetched:
    """Fetch as `invoke fetch` does in the app's folder."""
    place = App(folder=apps.folder / "app", output=Path(output) if output else None)
    return fetch_files(what, Named(), place, Console(stdout=io.StringIO(), stderr=io.StringIO()))


def check_nothing_came(apps: Apps) -> None:
    """Check that nothing is in the app's folder, nor beside it."""
    assert apps.names() == set()
    assert {path.name for path in apps.folder.iterdir()} == {"app", "cache", "netrc"}
    assert [path.name for path in (apps.folder / "cache").rglob("*.partial-*")] == []


def release(apps: Apps, listed: bytes, **files: bytes) -> None:
    """Have a release whose `SHA256SUMS` says something else than what there is."""
    made = apps.service.release("v1", files or LINUX_FILES)
    apps.service.releases[:] = [replace(made, files={**made.files, "SHA256SUMS": listed})]


@pytest.mark.parametrize("path", HARMFUL)
def test_a_release_with_a_harmful_path(apps: Apps, path: str) -> None:
    """Into git's folder, out of the output, over a device, or with a name that Windows or people read differently."""
    release(apps, f"{A}  {path}\n".encode())
    assert "line 1" in refused("checksums-damaged", PackageError, fetch, apps, V1).why
    check_nothing_came(apps)


@pytest.mark.parametrize("path", HARMFUL)
def test_a_delivery_with_a_harmful_path(apps: Apps, path: str) -> None:
    """The same inside of an archive, where it is the archive or its list that is refused."""
    run = apps.service.delivered(delivery(7, "linux-x64", {path: b"evil"}))
    with pytest.raises(Diagnostic) as caught:
        fetch(apps, wanted(run=run.id))
    assert caught.value.code in {"checksums-damaged", "unsafe-archive"}
    check_nothing_came(apps)


@pytest.mark.parametrize("paths", TWINS)
def test_files_that_not_every_file_system_can_hold(apps: Apps, paths: tuple[str, str]) -> None:
    """In a release, in one delivery, and in two of them: both are named before anything is placed."""
    release(apps, "".join(f"{A}  {path}\n" for path in paths).encode())
    error = refused("name-twice", PackageError, fetch, apps, V1)
    assert all(repr(path) in error.what for path in paths) or "SHA256SUMS" in error.what
    two = [
        delivery(7 + n, name, {path: b"1"})
        for n, (name, path) in enumerate(zip(("android", "apple"), paths, strict=True))
    ]
    run = apps.service.delivered(*two)
    refused("name-twice", PackageError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


@pytest.mark.parametrize(
    "listed",
    [b"", b"\xff\n", b"a" * 5_000_000, "".join(f"{n:064x}  {n}\n" for n in range(MOST_FILES + 1)).encode()],
    ids=["empty", "binary", "endless", "more files than any release has"],
)
def test_damaged_sums(apps: Apps, listed: bytes) -> None:
    release(apps, listed)
    refused("checksums-damaged", PackageError, fetch, apps, V1)
    run = apps.service.delivered(delivery(7, "linux-x64", {"a": b""}, listed))
    refused("checksums-damaged", PackageError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)


def test_more_unlisted_files_than_anybody_reads(apps: Apps) -> None:
    """The first of them are named, not all 500."""
    files = {str(number): b"" for number in range(500)}
    run = apps.service.delivered(delivery(7, "linux-x64", files, sums({"0": b""})))
    with pytest.raises(DiagnosticGroup) as caught:
        fetch(apps, wanted(run=run.id))
    assert len(caught.value.diagnostics) == 50
    check_nothing_came(apps)


@pytest.mark.parametrize("target", ["real", "../../../netrc", "/etc/passwd"])
def test_a_delivery_with_a_link(apps: Apps, target: str) -> None:
    """GitHub keeps whatever bytes it is given: a tar with a link, which may lead to a listed file, or out."""
    files = {"link": b"content", "real": b"content"}
    inside = {**files, FACTS: facts()}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in {**inside, "SHA256SUMS": sums(inside)}.items():
            entry = tarfile.TarInfo(name)
            if name == "link":
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                archive.addfile(entry)
            else:
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    run = apps.service.delivered(Artifact(id=7, name="delivered-kws-linux-x64", content=content.getvalue()))
    refused("unsafe-archive", StorageError, fetch, apps, wanted(run=run.id))
    check_nothing_came(apps)
    assert not [path for path in (apps.folder / "cache").rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("claims", [[5 << 30], [1 << 30] * 5])
def test_a_bomb_is_refused_before_it_goes_off(apps: Apps, monkeypatch: pytest.MonkeyPatch, claims: list[int]) -> None:
    """5 GB in a few bytes, by one file or by several: an archive says beforehand what it unpacks to."""
    content, written = io.BytesIO(), list[Path]()
    monkeypatch.setattr(Members, "write", lambda _self, path, *_, **_options: written.append(path))
    with zipfile.ZipFile(content, "w") as archive:
        for number, claim in enumerate(claims):
            archive.writestr(str(number), b"0")
            archive.filelist[-1].file_size = claim
    run = apps.service.delivered(Artifact(id=7, name="delivered-kws-linux-x64", content=content.getvalue()))
    refused("archive-too-large", StorageError, fetch, apps, wanted(run=run.id))
    assert written == []
    check_nothing_came(apps)


# What is there already


@pytest.mark.parametrize("listed", [True, False])
def test_a_folder_that_another_program_listed_is_not_replaced(apps: Apps, listed: bool) -> None:  # noqa: FBT001
    """Other programs write `SHA256SUMS`, too: such a folder is the user's, unless all of it came from a fetch."""
    apps.service.release("v1", LINUX_FILES)
    mine, own = apps.folder / "app" / "dist", {"release.zip": b"made at home"}
    mine.mkdir()
    for name, content in {**own, **({"SHA256SUMS": sums(own)} if listed else {})}.items():
        (mine / name).write_bytes(content)
    before = {path.name: path.read_bytes() for path in mine.iterdir()}
    assert "release.zip" in refused("path-in-the-way", StorageError, fetch, apps, V1, output="dist").why
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


@pytest.mark.parametrize("recorded", [True, False])
def test_a_fetched_folder_is_replaced_without_the_cache(apps: Apps, recorded: bool) -> None:  # noqa: FBT001
    """The lock file names it as its output, or all that it lists was fetched by this user."""
    apps.service.release("v1", LINUX_FILES)
    apps.service.release("v2", {GOOD: b"newer"})
    output = "vendor" if recorded else str(apps.folder / "elsewhere")
    fetch(apps, V1, output=output)
    if recorded:
        apps.forget()
    fetch(apps, wanted(release="v2", update=True), output=output)
    assert (apps.folder / "app" / output / GOOD).read_bytes() == b"newer"


def test_a_link_in_the_output_is_not_written_through(apps: Apps) -> None:
    apps.service.release("v1", LINUX_FILES)
    precious = apps.folder / "app" / "precious"
    precious.mkdir()
    (precious / GOOD).write_bytes(b"mine")
    apps.output().symlink_to(precious)
    refused("path-in-the-way", StorageError, fetch, apps, V1)
    assert (precious / GOOD).read_bytes() == b"mine"
