from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.sources.debian import INSTEAD, Mirror, host_mirrors, mirrors_in, no_mirror, source_stanza

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
    """The official image's file gives its one mirror, without the security archive."""
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert mirrors_in([(True, DEBIAN_CONTAINER)], SUITES) == [
        Mirror(uri="http://mirror.example.org/debian", signed_by=keyring)
    ]


def test_third_parties_and_disabled_entries_are_left_out() -> None:
    """Archives with suites of their own, and entries that are switched off, are not mirrors of the distribution."""
    assert mirrors_in([(True, THIRD_PARTY)], SUITES) == []


def test_several_addresses_and_a_key_in_the_file() -> None:
    """All addresses of a stanza count, and a key that stands in the file is carried over, lines and all."""
    one, two = mirrors_in([(True, INLINE_KEY)], SUITES)
    assert (one.uri, two.uri) == ("https://one.example.org/debian", "https://two.example.org/debian")
    assert one.trusted == "yes"
    assert mirrors_in([(True, source_stanza(one, "trixie"))], SUITES) == [one]


def test_one_line_format() -> None:
    """Options, comments and double entries of the older format are understood."""
    assert mirrors_in([(False, ONE_LINE)], SUITES) == [
        Mirror(uri="http://mirror.example.org/debian/"),
        Mirror(uri="https://other.example.org/d", signed_by="/etc/apt/keyrings/k.gpg", trusted="yes"),
    ]


def test_files_of_the_host(tmp_path: Path) -> None:
    """Both places and formats are read, other files are not, and the release's code name counts."""
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
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "os-release").write_text('PRETTY_NAME="Fedora Linux 43"\n')
    error = no_mirror("trixie", INSTEAD, tmp_path / "os-release")
    assert (error.code, error.where) == (code, "Fedora Linux 43")
    assert words in error.hint
    assert ("/etc/apt" in error.hint) == bool(programs)


def test_host_without_apt(tmp_path: Path) -> None:
    """A host that has no apt configuration has no mirrors."""
    assert host_mirrors("trixie", tmp_path, tmp_path / "os-release") == []


def test_stanza_asks_for_sources_and_packages() -> None:
    """What apt is given names the suite, and no field without a value."""
    stanza = source_stanza(Mirror(uri="http://m.example.org/debian", signed_by="/k.gpg"), "trixie")
    assert stanza == (
        "Types: deb-src deb\nURIs: http://m.example.org/debian\nSuites: trixie\nComponents: main\nSigned-By: /k.gpg\n"
    )


@given(st.text(), st.booleans())
def test_any_text_is_read_without_a_traceback(text: str, deb822: bool) -> None:  # noqa: FBT001
    """Whatever stands in a file of apt's, reading it ends with a list."""
    assert isinstance(mirrors_in([(deb822, text)], SUITES), list)
