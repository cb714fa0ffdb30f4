import hashlib
import re
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refusing
from ar_samples import ar_member
from fake_sources import FakeSources, private_cache
from ortrim.errors import ExitCode, SourcesError, StorageError
from ortrim.pins.runtime import ComponentPin
from ortrim.sources import debian
from ortrim.sources.archives import keep, kept_path
from ortrim.sources.debian import (
    INSTEAD,
    DebianPackage,
    Mirror,
    PackageRequest,
    fetch_debian,
    fetch_packages,
    host_mirrors,
    is_debian_package,
    mirrors_in,
    no_mirror,
    packages_in,
    source_stanza,
    write_data_archive,
)
from program_files import write_program

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
    write_program(tmp_path / "bin/apt-get", APT.format(log=fake.log, mirror=fake.folder))
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
    pin = debian_pin("one", b"expected")
    (cache / "downloads").mkdir(parents=True)
    mirror.offer("one.example.org", pin, b"changed")
    caught = refusing.refused(SourcesError, fetch_debian, [pin], "trixie", keep)
    assert caught.code == "digest-mismatch"
    assert caught.why == f"expected {pin.sha256}\nactual   {hashlib.sha256(b'changed').hexdigest()}"
    assert not list((cache / "downloads").iterdir())


def test_no_apt_here(mirror: FakeMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SourcesError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert caught.value.code == "apt-missing"
    assert "ORTRIM_MIRRORS" in caught.value.hint


def test_no_mirror_configured(fake: FakeSources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "host_mirrors", lambda _: [])
    with pytest.raises(SourcesError) as caught:
        fetch_debian([debian_pin("one", b"1")], "trixie", keep)
    assert caught.value.code == "apt-no-sources"


SUITES: Final = frozenset({"bookworm", "trixie", "stable"})
DEBIAN_CONTAINER: Final = """\
Types: deb
# http://snapshot.example.org/archive/debian/20250520T000000Z
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
THIRD_PARTY: Final = """\
Types: deb
URIs: https://deb.example.com/node_20.x
Suites: nodistro
Components: main

Types: deb
URIs: https://disabled.example.com/debian
Suites: bookworm
Components: main
Enabled: no
"""
INLINE_KEY: Final = """\
Types: deb
URIs: https://one.example.org/debian
  https://two.example.org/debian
Suites: trixie
Components: main contrib
Trusted: yes
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abcdef
 -----END PGP PUBLIC KEY BLOCK-----
"""
ONE_LINE: Final = """\
# deb http://commented.example.org/debian bookworm main
deb cdrom:[Debian GNU/Linux]/ bookworm contrib
deb http://mirror.example.org/debian/ bookworm main contrib # the mirror
deb-src http://mirror.example.org/debian bookworm main
deb [arch=amd64 signed-by=/etc/apt/keyrings/k.gpg trusted=yes] https://other.example.org/d trixie main
deb http://security.example.org/debian-security bookworm-security main
garbage
deb
"""


def test_debian_container() -> None:
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert mirrors_in([(True, DEBIAN_CONTAINER)], SUITES) == [
        Mirror(uri="http://mirror.example.org/debian", signed_by=keyring)
    ]


def test_third_parties_and_disabled_entries_are_left_out() -> None:
    """Archives with suites of their own, and entries that are switched off, are not mirrors of the distribution."""
    assert mirrors_in([(True, THIRD_PARTY)], SUITES) == []


def test_several_addresses_and_a_key_in_the_file() -> None:
    one, two = mirrors_in([(True, INLINE_KEY)], SUITES)
    assert (one.uri, two.uri) == ("https://one.example.org/debian", "https://two.example.org/debian")
    assert one.trusted == "yes"
    assert mirrors_in([(True, source_stanza(one, "trixie"))], SUITES) == [one]


def test_one_line_format() -> None:
    assert mirrors_in([(False, ONE_LINE)], SUITES) == [
        Mirror(uri="http://mirror.example.org/debian/"),
        Mirror(uri="https://other.example.org/d", signed_by="/etc/apt/keyrings/k.gpg", trusted="yes"),
    ]


def test_files_of_the_host(tmp_path: Path) -> None:
    folder = tmp_path / "apt/sources.list.d"
    folder.mkdir(parents=True)
    (tmp_path / "apt/sources.list").write_text("deb http://a.example.org/debian forky main\n")
    (folder / "b.sources").write_text(DEBIAN_CONTAINER.replace("bookworm ", "forky "))
    (folder / "c.list.disabled").write_text("deb http://c.example.org/debian forky main\n")
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="forky"\n')
    mirrors = host_mirrors("trixie", tmp_path / "apt", tmp_path / "os-release")
    assert [mirror.uri for mirror in mirrors] == ["http://a.example.org/debian", "http://mirror.example.org/debian"]


def test_another_distributions_mirrors_are_none(tmp_path: Path) -> None:
    """Ubuntu's apt lists Ubuntu's mirrors, which have no suite of Debian's; one of Debian's beside them counts."""
    folder = tmp_path / "apt/sources.list.d"
    folder.mkdir(parents=True)
    (tmp_path / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n")
    (folder / "ubuntu.sources").write_text(DEBIAN_CONTAINER.replace("bookworm ", "noble "))
    assert host_mirrors("trixie", tmp_path / "apt", tmp_path / "os-release") == []
    (folder / "debian.list").write_text("deb http://a.example.org/debian trixie main\n")
    (mirror,) = host_mirrors("trixie", tmp_path / "apt", tmp_path / "os-release")
    assert mirror.uri == "http://a.example.org/debian"


@pytest.mark.parametrize(
    ("programs", "code", "words"),
    [(["apt-get"], "apt-no-sources", "add a mirror of Debian's trixie"), ([], "apt-missing", "ORTRIM_MIRRORS")],
)
def test_a_host_is_told_what_helps_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], code: str, words: str
) -> None:
    """Nobody is sent to apt's folder where there is no apt."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in programs:
        write_program(tmp_path / name)
    (tmp_path / "os-release").write_text('PRETTY_NAME="Fedora Linux 43"\n')
    error = no_mirror("trixie", INSTEAD, tmp_path / "os-release")
    assert (error.code, error.where) == (code, "Fedora Linux 43")
    assert words in error.hint
    assert ("/etc/apt" in error.hint) == bool(programs)


def test_host_without_apt(tmp_path: Path) -> None:
    assert host_mirrors("trixie", tmp_path, tmp_path / "os-release") == []


def test_stanza_asks_for_sources_and_packages() -> None:
    """What apt is given names the suite, and no field without a value."""
    stanza = source_stanza(Mirror(uri="http://m.example.org/debian", signed_by="/k.gpg"), "trixie")
    assert stanza == (
        "Types: deb-src deb\nURIs: http://m.example.org/debian\nSuites: trixie\nComponents: main\nSigned-By: /k.gpg\n"
    )


@given(st.text(), st.booleans())
def test_any_text_is_read_without_a_traceback(text: str, deb822: bool) -> None:  # noqa: FBT001
    assert isinstance(mirrors_in([(deb822, text)], SUITES), list)


# As apt-get 2.6.1 printed it for trixie, arm64.
LISTING = """\
'http://mirror.invalid/debian/pool/main/b/busybox/busybox-static_1.37.0-6%2bb9_arm64.deb' \
busybox-static_1%3a1.37.0-6+b9_arm64.deb 847552 \
SHA256:c833be48abfa16bc19c4966ec93e289ff1ce5d2f1476cad3a57bd105378cd15c
'http://mirror.invalid/debian/pool/main/g/glibc/libc6_2.41-12%2bdeb13u4_arm64.deb' \
libc6_2.41-12+deb13u4_arm64.deb 2483572 \
SHA256:8784eda966b189c777a384dac5ce009e8fc9b52d006926c5a013e7fa8aa688cc
"""
APT_PACKAGES_APT = """\
#!/bin/sh
# Stands in for apt-get and apt-cache: what a mirror offers lies in {mirror}/<host>/<package>.
for word; do case $word in Dir::Etc::SourceParts=*) parts=${{word#*=}};; esac; done
echo "${{0##*/}} $*" >>{log}
host=$(sed -n 's,^URIs: http://\\([^/]*\\).*,\\1,p' "$parts/ortrim.sources")
suite=$(sed -n 's,^Suites: ,,p' "$parts/ortrim.sources")
for word; do case $word in Dir::State::Lists=*) lists=${{word#*=}};; esac; done
printf 'Origin: Debian\nCodename: %s\n' "$(cat {mirror}/$suite.codename 2>/dev/null)" >"$lists/x_InRelease"
case "$*" in
*update)
  test -f {mirror}/$suite.torn && {{ echo "E: Failed to fetch x  File has unexpected size (1 != 2)." >&2; exit 100; }}
  test -d {mirror}/$host && exit 0; echo "E: $host does not have a Release file." >&2; exit 100;;
*show*meta) echo "Package: meta"; echo "Depends: kernel-6.12-cloud (= 1), kernel-6.12 (= 1)"; exit 0;;
*show*) exit 100;;
esac
status=0
while [ "$1" != download ]; do shift; done; shift
[ "$1" = --print-uris ] && {{ only=1; shift; }}
for name; do
  file={mirror}/$host/$name
  test -f $file || {{ echo "E: Unable to locate package $name" >&2; status=100; continue; }}
  digest=$(sha256sum <$file | cut -d' ' -f1)
  test -f $file.lie && digest=$(sha256sum </dev/null | cut -d' ' -f1)
  if [ "$only" ]; then echo "'http://x/$name' ${{name}}_1.0_arm64.deb 3 SHA256:$digest"
  else test -f $file.lost || cp $file ${{name}}_1.0_arm64.deb; fi
done
exit $status
"""


@pytest.fixture
def mirror_apt_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in for apt first in PATH, configure two mirrors, and return the folder of what they offer."""
    private_cache(tmp_path, monkeypatch)
    (tmp_path / "bin").mkdir()
    (tmp_path / "mirror").mkdir()
    for name in ("apt-get", "apt-cache"):
        write_program(
            tmp_path / "bin" / name, APT_PACKAGES_APT.format(mirror=tmp_path / "mirror", log=tmp_path / "log")
        )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    mirrors = [Mirror(uri="http://one.example.org/debian"), Mirror(uri="http://two.example.org/debian")]
    monkeypatch.setattr(debian, "host_mirrors", lambda _: mirrors)
    return tmp_path / "mirror"


def offer(mirror_apt_packages: Path, host: str, **packages: bytes) -> None:
    (mirror_apt_packages / f"{host}.example.org").mkdir(exist_ok=True)
    for name, content in packages.items():
        (mirror_apt_packages / f"{host}.example.org" / name.replace("_", "-")).write_bytes(content)


def fetched(mirror_apt_packages: Path, *names: str, **depended: str) -> dict[str, tuple[DebianPackage, bytes]]:
    found: dict[str, tuple[DebianPackage, bytes]] = {}

    def accept(package: DebianPackage, file: Path) -> None:
        found[package.name] = (package, file.read_bytes())

    request = PackageRequest(names=names, suite="trixie", architecture="arm64", depended=depended)
    try:
        fetch_packages(request, accept)
    finally:
        left = [path.name for path in (mirror_apt_packages.parent / "cache" / "apt").iterdir()]
        assert left == [".trixie-arm64.lock"]
    return found


def refused(mirror_apt_packages: Path, *names: str) -> SourcesError:
    return refusing.refused(SourcesError, fetched, mirror_apt_packages, *names)


def test_packages_are_handed_over_with_their_digests(mirror_apt_packages: Path) -> None:
    """Name, version and SHA-256 are the index's, and apt is led to the other architecture in folders of our own."""
    offer(mirror_apt_packages, "one", libc6=b"c", busybox=b"b")
    found = fetched(mirror_apt_packages, "libc6", "busybox")
    assert {name: content for name, (_, content) in found.items()} == {"libc6": b"c", "busybox": b"b"}
    package = found["libc6"][0]
    assert (package.version, package.architecture, package.suite) == ("1.0", "arm64", "trixie")
    assert package.sha256 == hashlib.sha256(b"c").hexdigest()
    update = (mirror_apt_packages.parent / "log").read_text().splitlines()[0]
    for option in ("APT::Architecture=arm64", "Dir::Etc::SourceList=/dev/null", "Dir::State::Status=/dev/null"):
        assert f"-o {option} " in update


def test_an_empty_package_stands_for_one_of_its_dependencies(mirror_apt_packages: Path) -> None:
    offer(mirror_apt_packages, "one", **{"kernel_6.12_cloud": b"k"})
    assert list(fetched(mirror_apt_packages, "meta", meta="kernel-[0-9.]+-cloud")) == ["kernel-6.12-cloud"]


def test_the_second_mirror_is_asked_when_the_first_lacks_one(mirror_apt_packages: Path) -> None:
    offer(mirror_apt_packages, "one", libc6=b"old")
    offer(mirror_apt_packages, "two", libc6=b"new", busybox=b"b")
    assert fetched(mirror_apt_packages, "libc6", "busybox")["libc6"][1] == b"new"


def test_a_mirror_whose_lists_do_not_fit_is_asked_by_the_suites_other_name(mirror_apt_packages: Path) -> None:
    offer(mirror_apt_packages, "one", libc6=b"c")
    (mirror_apt_packages / "trixie.torn").touch()
    (mirror_apt_packages / "stable.codename").write_text("forky")
    (mirror_apt_packages / "oldstable.codename").write_text("trixie")
    assert fetched(mirror_apt_packages, "libc6")["libc6"][0].suite == "trixie"
    suites = [line for line in (mirror_apt_packages.parent / "log").read_text().splitlines() if line.endswith("update")]
    assert len(suites) == 3


def test_a_mirror_whose_lists_do_not_fit_under_any_name(mirror_apt_packages: Path) -> None:
    (mirror_apt_packages / "one.example.org").mkdir()
    for name in ("trixie", "stable", "oldstable", "testing"):
        (mirror_apt_packages / f"{name}.torn").touch()
    assert "unexpected size" in refused(mirror_apt_packages, "libc6").why


@pytest.mark.parametrize("damage", ["absent", "lost"])
def test_what_does_not_come_is_named(mirror_apt_packages: Path, damage: str) -> None:
    """A package that no mirror has, or whose file does not arrive, fails with apt's own words once each."""
    offer(mirror_apt_packages, "one", libc6=b"c", **({"busybox": b"b"} if damage == "lost" else {}))
    (mirror_apt_packages / "one.example.org" / "busybox.lost").touch()
    error = refused(mirror_apt_packages, "libc6", "busybox")
    assert error.code == "apt-failed"
    assert "busybox" in error.what
    assert "two.example.org does not have a Release file" in error.why


def test_a_wrong_digest_is_refused(mirror_apt_packages: Path) -> None:
    offer(mirror_apt_packages, "one", libc6=b"changed")
    (mirror_apt_packages / "one.example.org" / "libc6.lie").touch()
    error = refused(mirror_apt_packages, "libc6")
    assert error.code == "digest-mismatch"
    assert hashlib.sha256(b"changed").hexdigest() in error.why


def test_no_apt_here_apt_packages(mirror_apt_packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    error = refused(mirror_apt_packages, "libc6")
    assert error.code == "apt-missing"
    assert "devices other than qemu" in error.hint


def test_what_accepting_raises_is_passed_on(mirror_apt_packages: Path) -> None:
    """A package that cannot be unpacked leaves nothing behind either."""
    offer(mirror_apt_packages, "one", libc6=b"c")

    def refuse(_package: DebianPackage, _file: Path) -> None:
        raise ValueError("no")

    request = PackageRequest(names=("libc6",), suite="trixie", architecture="arm64")
    with pytest.raises(ValueError, match="no"):
        fetch_packages(request, refuse)
    assert [path.name for path in (mirror_apt_packages.parent / "cache" / "apt").iterdir()] == [".trixie-arm64.lock"]


def test_the_real_listing_is_read() -> None:
    """Versions lose what makes them file names, and keep their epoch."""
    (shell, file), (library, _) = packages_in(LISTING, "trixie")
    assert (shell.name, shell.version, file) == (
        "busybox-static", "1:1.37.0-6+b9", "busybox-static_1%3a1.37.0-6+b9_arm64.deb",
    )  # fmt: skip
    assert (library.name, library.version, library.sha256[:8]) == ("libc6", "2.41-12+deb13u4", "8784eda9")


@pytest.mark.parametrize(
    "line",
    [
        "'http://x' ../../etc/passwd.deb 3 SHA256:" + "0" * 64,
        "'http://x' a_1_arm64.deb 3 MD5Sum:" + "0" * 32,
        "'http://x' a_1_2_arm64.deb 3 SHA256:" + "0" * 64,
        "'http://x' a.deb 3 SHA256:" + "0" * 64,
        "Get:1 http://x libc6",
        "",
    ],
)
def test_lines_that_are_no_packages(line: str) -> None:
    assert packages_in(line, "trixie") == []


@given(st.text())
def test_any_listing_is_read(text: str) -> None:
    assert all(re.fullmatch(r"[^/]+\.deb", file) for _, file in packages_in(text + LISTING + text, "s"))


def test_packages_alone_are_offered() -> None:
    """The index of sources, as large again, is not fetched for packages."""
    mirror_apt_packages = Mirror(uri="http://one.example.org/debian")
    assert source_stanza(mirror_apt_packages, "trixie", types="deb").startswith("Types: deb\n")
    assert source_stanza(mirror_apt_packages, "trixie").startswith("Types: deb-src deb\n")


def package(*members: bytes) -> bytes:
    return b"!<arch>\n" + b"".join(members)


def test_data_is_found_behind_members_of_odd_length(tmp_path: Path) -> None:
    content = package(
        ar_member("debian-binary", b"2.0\n"), ar_member("control.tar.xz", b"odd"), ar_member("data.tar.xz", b"D")
    )
    (tmp_path / "p.deb").write_bytes(content)
    assert is_debian_package(tmp_path / "p.deb")
    write_data_archive(tmp_path / "p.deb", tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == b"D"


@pytest.mark.parametrize(
    "content",
    [
        package(),
        package(ar_member("debian-binary", b"2.0\n")),
        package(ar_member("data.tar.xz", b"D", size=10**9)),
        package(ar_member("control", b"c", size=-5), ar_member("data.tar.xz", b"D")),
        package(ar_member("data.tar.xz", b"D"))[:40],
        package(b"x" * 60),
    ],
)
def test_damaged_packages_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.deb").write_bytes(content)
    caught = refusing.refused(SourcesError, write_data_archive, tmp_path / "p.deb", tmp_path / "data")
    assert caught.code == "bad-debian-package"
    assert not (tmp_path / "data").exists()


def test_other_files_are_no_packages(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"!<ar")
    assert not is_debian_package(tmp_path / "x")
