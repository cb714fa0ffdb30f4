import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_sources import private_cache
from ortrim.errors import ExitCode, SourcesError
from ortrim.sources import debian
from ortrim.sources.debian import DebianPackage, Mirror, PackageRequest, fetch_packages, packages_in, source_stanza

# As apt-get 2.6.1 printed it for trixie, arm64.
LISTING = """\
'http://mirror.invalid/debian/pool/main/b/busybox/busybox-static_1.37.0-6%2bb9_arm64.deb' \
busybox-static_1%3a1.37.0-6+b9_arm64.deb 847552 \
SHA256:c833be48abfa16bc19c4966ec93e289ff1ce5d2f1476cad3a57bd105378cd15c
'http://mirror.invalid/debian/pool/main/g/glibc/libc6_2.41-12%2bdeb13u4_arm64.deb' \
libc6_2.41-12+deb13u4_arm64.deb 2483572 \
SHA256:8784eda966b189c777a384dac5ce009e8fc9b52d006926c5a013e7fa8aa688cc
"""
APT = """\
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
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in for apt first in PATH, configure two mirrors, and return the folder of what they offer."""
    private_cache(tmp_path, monkeypatch)
    (tmp_path / "bin").mkdir()
    (tmp_path / "mirror").mkdir()
    for name in ("apt-get", "apt-cache"):
        (tmp_path / "bin" / name).write_text(APT.format(mirror=tmp_path / "mirror", log=tmp_path / "log"))
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    mirrors = [Mirror(uri="http://one.example.org/debian"), Mirror(uri="http://two.example.org/debian")]
    monkeypatch.setattr(debian, "host_mirrors", lambda _: mirrors)
    return tmp_path / "mirror"


def offer(mirror: Path, host: str, **packages: bytes) -> None:
    """Have a mirror offer packages."""
    (mirror / f"{host}.example.org").mkdir(exist_ok=True)
    for name, content in packages.items():
        (mirror / f"{host}.example.org" / name.replace("_", "-")).write_bytes(content)


def fetched(mirror: Path, *names: str, **depended: str) -> dict[str, tuple[DebianPackage, bytes]]:
    """Fetch packages and return what was handed over; nothing stays in the cache."""
    found: dict[str, tuple[DebianPackage, bytes]] = {}

    def accept(package: DebianPackage, file: Path) -> None:
        found[package.name] = (package, file.read_bytes())

    request = PackageRequest(names=names, suite="trixie", architecture="arm64", depended=depended)
    try:
        fetch_packages(request, accept)
    finally:
        left = [path.name for path in (mirror.parent / "cache" / "apt").iterdir()]
        assert left == [".trixie-arm64.lock"]
    return found


def refused(mirror: Path, *names: str) -> SourcesError:
    """Return the diagnostic of a fetch that has to fail."""
    with pytest.raises(SourcesError) as caught:
        fetched(mirror, *names)
    assert caught.value.exit_code == ExitCode.SOURCES
    return caught.value


def test_packages_are_handed_over_with_their_digests(mirror: Path) -> None:
    """Name, version and SHA-256 are the index's, and apt is led to the other architecture in folders of our own."""
    offer(mirror, "one", libc6=b"c", busybox=b"b")
    found = fetched(mirror, "libc6", "busybox")
    assert {name: content for name, (_, content) in found.items()} == {"libc6": b"c", "busybox": b"b"}
    package = found["libc6"][0]
    assert (package.version, package.architecture, package.suite) == ("1.0", "arm64", "trixie")
    assert package.sha256 == hashlib.sha256(b"c").hexdigest()
    update = (mirror.parent / "log").read_text().splitlines()[0]
    for option in ("APT::Architecture=arm64", "Dir::Etc::SourceList=/dev/null", "Dir::State::Status=/dev/null"):
        assert f"-o {option} " in update


def test_an_empty_package_stands_for_one_of_its_dependencies(mirror: Path) -> None:
    """What fits the pattern is fetched in its place."""
    offer(mirror, "one", **{"kernel_6.12_cloud": b"k"})
    assert list(fetched(mirror, "meta", meta="kernel-[0-9.]+-cloud")) == ["kernel-6.12-cloud"]


def test_the_second_mirror_is_asked_when_the_first_lacks_one(mirror: Path) -> None:
    """Packages come from one mirror, so that they fit each other."""
    offer(mirror, "one", libc6=b"old")
    offer(mirror, "two", libc6=b"new", busybox=b"b")
    assert fetched(mirror, "libc6", "busybox")["libc6"][1] == b"new"


def test_a_mirror_whose_lists_do_not_fit_is_asked_by_the_suites_other_name(mirror: Path) -> None:
    """Under each name it has files of its own; another suite of that name is not taken."""
    offer(mirror, "one", libc6=b"c")
    (mirror / "trixie.torn").touch()
    (mirror / "stable.codename").write_text("forky")
    (mirror / "oldstable.codename").write_text("trixie")
    assert fetched(mirror, "libc6")["libc6"][0].suite == "trixie"
    suites = [line for line in (mirror.parent / "log").read_text().splitlines() if line.endswith("update")]
    assert len(suites) == 3


def test_a_mirror_whose_lists_do_not_fit_under_any_name(mirror: Path) -> None:
    """What apt says is passed on."""
    (mirror / "one.example.org").mkdir()
    for name in ("trixie", "stable", "oldstable", "testing"):
        (mirror / f"{name}.torn").touch()
    assert "unexpected size" in refused(mirror, "libc6").why


@pytest.mark.parametrize("damage", ["absent", "lost"])
def test_what_does_not_come_is_named(mirror: Path, damage: str) -> None:
    """A package that no mirror has, or whose file does not arrive, fails with apt's own words once each."""
    offer(mirror, "one", libc6=b"c", **({"busybox": b"b"} if damage == "lost" else {}))
    (mirror / "one.example.org" / "busybox.lost").touch()
    error = refused(mirror, "libc6", "busybox")
    assert error.code == "apt-failed"
    assert "busybox" in error.what
    assert "two.example.org does not have a Release file" in error.why


def test_a_wrong_digest_is_refused(mirror: Path) -> None:
    """A file that is not what the signed index says is not handed over."""
    offer(mirror, "one", libc6=b"changed")
    (mirror / "one.example.org" / "libc6.lie").touch()
    error = refused(mirror, "libc6")
    assert error.code == "digest-mismatch"
    assert hashlib.sha256(b"changed").hexdigest() in error.why


def test_no_apt_here(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without apt is told to use other devices."""
    monkeypatch.setenv("PATH", "/nonexistent")
    error = refused(mirror, "libc6")
    assert error.code == "apt-missing"
    assert "devices other than qemu" in error.hint


def test_no_mirror_configured(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose apt has no Debian mirror gets a diagnostic of its own."""
    monkeypatch.setattr(debian, "host_mirrors", lambda _: [])
    with pytest.raises(SourcesError) as caught:
        fetch_packages(PackageRequest(names=("libc6",), suite="trixie", architecture="arm64"), lambda *_: None)
    assert caught.value.code == "apt-no-sources"


def test_what_accepting_raises_is_passed_on(mirror: Path) -> None:
    """A package that cannot be unpacked leaves nothing behind either."""
    offer(mirror, "one", libc6=b"c")

    def refuse(_package: DebianPackage, _file: Path) -> None:
        raise ValueError("no")

    request = PackageRequest(names=("libc6",), suite="trixie", architecture="arm64")
    with pytest.raises(ValueError, match="no"):
        fetch_packages(request, refuse)
    assert [path.name for path in (mirror.parent / "cache" / "apt").iterdir()] == [".trixie-arm64.lock"]


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
    """A name that leads elsewhere, a digest of another kind and all other words are not packages."""
    assert packages_in(line, "trixie") == []


@given(st.text())
def test_any_listing_is_read(text: str) -> None:
    """Whatever is printed, what comes of it are names of files in one folder."""
    assert all(re.fullmatch(r"[^/]+\.deb", file) for _, file in packages_in(text + LISTING + text, "s"))


def test_packages_alone_are_offered() -> None:
    """The index of sources, as large again, is not fetched for packages."""
    mirror = Mirror(uri="http://one.example.org/debian")
    assert source_stanza(mirror, "trixie", types="deb").startswith("Types: deb\n")
    assert source_stanza(mirror, "trixie").startswith("Types: deb-src deb\n")
