import hashlib
from pathlib import Path
from typing import Final

import pytest

from fake_sources import FakeSources
from ortrim.errors import ExitCode, SourcesError, StorageError
from ortrim.pins.runtime import ComponentPin
from ortrim.sources import debian
from ortrim.sources.archives import keep, kept_path
from ortrim.sources.debian import Mirror, fetch_debian

MIRRORS: Final = [Mirror(uri="http://one.example.org/debian"), Mirror(uri="http://two.example.org/debian")]
APT: Final = """\
#!/bin/sh
# Stands in for apt-get: what a mirror offers lies in $FAKE_MIRROR/<host>; says and returns what the real one does.
for word; do case $word in Dir::Etc::SourceParts=*) parts=${{word#*=}};; esac; last=$word; done
echo "$*" >> {log}
host=$(sed -n 's,^URIs: http://\\([^/]*\\).*,\\1,p' "$parts/ortrim.sources")
case "$*" in
*update) test -d {mirror}/$host && exit 0
    echo "E: The repository 'http://$host/debian trixie Release' does not have a Release file." >&2; exit 100;;
esac
test -f {mirror}/$host/$last && cp {mirror}/$host/$last "$(cat {mirror}/$host/$last.name)"
test -f {mirror}/$host/$last.fails || exit 0
echo "E: Failed to fetch some archives." >&2; exit 100
"""


class FakeMirror:
    """Packages that a stand-in for apt-get delivers, by host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"

    def offer(self, host: str, pin: ComponentPin, content: bytes, *, fails: bool = False) -> None:
        """Offer a package's file; with `fails`, apt ends with an error though it was delivered."""
        place = self.folder / host
        place.mkdir(exist_ok=True)
        (place / pin.location).write_bytes(content)
        (place / f"{pin.location}.name").write_text(pin.file)
        if fails:
            (place / f"{pin.location}.fails").touch()


def debian_pin(name: str, content: bytes, origin: str = "debian-source") -> ComponentPin:
    """Make the pin of a Debian component."""
    return ComponentPin(
        name=name, version="1", licence="MIT", origin="debian-binary" if origin == "debian-binary" else "debian-source",
        location=f"{name}-src", file=f"{name}_1.orig.tar.gz", sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


@pytest.fixture
def mirror(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMirror:
    """Put a stand-in for apt-get first in PATH, and configure two mirrors."""
    fake = FakeMirror(tmp_path / "mirror")
    (tmp_path / "bin").mkdir()
    fake.folder.mkdir()
    program = tmp_path / "bin/apt-get"
    program.write_text(APT.format(log=fake.log, mirror=fake.folder))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(debian, "host_mirrors", lambda _: MIRRORS)
    return fake


def test_files_are_fetched_with_folders_of_our_own(mirror: FakeMirror, cache: Path) -> None:
    """Sources and packages are asked for by name, apt is kept away from the host's state, nothing of it stays."""
    source, binary = debian_pin("one", b"1"), debian_pin("two", b"2", "debian-binary")
    (cache / "downloads").mkdir(parents=True)
    mirror.offer("one.example.org", source, b"1")
    mirror.offer("one.example.org", binary, b"2")
    fetch_debian([source, binary], "trixie", keep)
    assert kept_path(source).read_bytes() == b"1"
    assert kept_path(binary).read_bytes() == b"2"
    update, first, second = mirror.log.read_text().splitlines()
    assert f"-o Dir::State::Lists={cache / 'apt/trixie/lists'} " in update
    assert "-o Dir::Etc::SourceList=/dev/null " in update
    assert first.endswith(" source --download-only --tar-only one-src")
    assert second.endswith(" download two-src")
    assert [path.name for path in (cache / "apt").iterdir()] == [".trixie.lock"]


def test_exit_code_is_not_believed(mirror: FakeMirror, cache: Path) -> None:
    """A source whose second part is not served still delivers its first, though apt-get fails."""
    pin = debian_pin("date", b"d")
    (cache / "downloads").mkdir(parents=True)
    mirror.offer("one.example.org", pin, b"d", fails=True)
    fetch_debian([pin], "trixie", keep)
    assert kept_path(pin).read_bytes() == b"d"


def test_second_mirror_delivers_what_the_first_lacks(mirror: FakeMirror, cache: Path) -> None:
    """Mirrors are tried in order; what one delivered is not asked of the next."""
    here, there = debian_pin("here", b"h"), debian_pin("there", b"t")
    (cache / "downloads").mkdir(parents=True)
    mirror.offer("one.example.org", here, b"h")
    mirror.offer("two.example.org", there, b"t")
    fetch_debian([here, there], "trixie", keep)
    assert mirror.log.read_text().count(" here-src\n") == 1


def test_mirror_without_the_suite(mirror: FakeMirror, cache: Path) -> None:
    """When no mirror carries the suite, the diagnostic shows apt's own words once each and what is missing."""
    with pytest.raises(SourcesError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert caught.value.code == "apt-failed"
    assert caught.value.exit_code == ExitCode.SOURCES
    assert "one_1.orig.tar.gz" in caught.value.what
    assert "E: The repository 'http://one.example.org/debian trixie Release'" in caught.value.why
    assert "two.example.org" in caught.value.why
    assert [path.name for path in (cache / "apt").iterdir()] == [".trixie.lock"]


def test_a_full_disk_is_not_the_mirrors_fault(mirror: FakeMirror, cache: Path, tmp_path: Path) -> None:
    """Apt says so in the middle of other words, and ends as it does without a network; the next mirror is not asked."""
    words = "E: Failed to fetch x  Error writing to file - write (28: No space left on device) [IP: 192.0.2.1 80]"
    (tmp_path / "bin/apt-get").write_text(f"#!/bin/sh\necho $* >> {mirror.log}\necho '{words}' >&2\nexit 100\n")
    with pytest.raises(StorageError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert (caught.value.code, caught.value.where) == ("disk-full", str(cache / "apt/trixie"))
    assert words in caught.value.why
    assert len(mirror.log.read_text().splitlines()) == 1


def test_wrong_digest_is_refused_and_removed(mirror: FakeMirror, cache: Path) -> None:
    """A file that apt delivered but that is not what was pinned is not kept, and both digests are shown."""
    pin = debian_pin("one", b"expected")
    (cache / "downloads").mkdir(parents=True)
    mirror.offer("one.example.org", pin, b"changed")
    with pytest.raises(SourcesError) as caught:
        fetch_debian([pin], "trixie", keep)
    assert caught.value.code == "digest-mismatch"
    assert caught.value.why == f"expected {pin.sha256}\nactual   {hashlib.sha256(b'changed').hexdigest()}"
    assert not list((cache / "downloads").iterdir())


def test_no_apt_here(mirror: FakeMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without apt-get is told how upstream can be reached."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SourcesError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert caught.value.code == "apt-missing"
    assert "ORTRIM_MIRRORS" in caught.value.hint


def test_no_mirror_configured(fake: FakeSources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose apt has no Debian mirror gets a diagnostic of its own."""
    monkeypatch.setattr(debian, "host_mirrors", lambda _: [])
    with pytest.raises(SourcesError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert caught.value.code == "apt-no-sources"
