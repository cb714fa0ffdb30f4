"""Google's list of SDK packages, as sdkmanager reads it."""

import pytest

from ortrim.errors import ExitCode, SourcesError
from ortrim.pin_updates.update import listed_archive
from refusing import refused

HEAD = """<?xml version="1.0" ?>
<sdk:sdk-repository xmlns:sdk="http://schemas.android.com/sdk/android/repo/repository2/03"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <license id="android-sdk-license" type="text">Terms &amp; conditions; see &lt;url&gt;nowhere.zip&lt;/url&gt;</license>
"""
ARCHIVE = """
    <archive>
      <!--Built on: Wed Jan 25 21:30:32 2023.-->
      <complete><size>531118193</size><checksum type="sha1">{sha1}</checksum><url>{url}</url></complete>
      {host}
    </archive>
"""
PACKAGE = '<remotePackage path="{path}"><channelRef ref="channel-0"/><archives>{archives}</archives></remotePackage>'
LINUX, MAC = "<host-os>linux</host-os>", "<host-os>macosx</host-os>"


def archive(url: str, host: str, sha1: str = "53af80a1cce9144025b81c78c8cd556bff42bd0e") -> str:
    return ARCHIVE.format(url=url, host=host, sha1=sha1)


def listing(*packages: tuple[str, str]) -> bytes:
    entries = "".join(PACKAGE.format(path=path, archives=archives) for path, archives in packages)
    return f"{HEAD}{entries}</sdk:sdk-repository>".encode()


BOTH = (
    archive("ndk-darwin.zip", MAC, "a" * 40) + archive("ndk-linux.zip", LINUX) + archive("ndk-win.zip", MAC, "b" * 40)
)


def test_the_archive_for_linux_is_found() -> None:
    """Among those for other systems and those of other packages, whatever comes after it."""
    text = listing(("ndk;25.1.1", archive("old.zip", LINUX, "c" * 40)), ("ndk;25.2.2", BOTH), ("ndk;26.0.0", ""))
    assert listed_archive(text, "ndk;25.2.2") == ("ndk-linux.zip", "53af80a1cce9144025b81c78c8cd556bff42bd0e")


def test_an_archive_for_every_system_is_for_linux() -> None:
    """It names none. SHA-1 is in lower case, however it is written."""
    found = listed_archive(listing(("tools;1.0", archive("all.zip", "", "A" * 40))), "tools;1.0")
    assert found == ("all.zip", "a" * 40)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (b"", "bad-sdk-list"),
        (b"<html>sign in", "bad-sdk-list"),
        (listing(("ndk;25.2.2", BOTH))[:-30], "bad-sdk-list"),
        (b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>', "bad-sdk-list"),
        (b"\xff\xfe\x00", "bad-sdk-list"),
        (listing(), "not-in-sdk-list"),
        (listing(("ndk;25.2.2.1", BOTH)), "not-in-sdk-list"),
        (listing(("ndk;25.2.2", archive("mac.zip", MAC))), "not-in-sdk-list"),
        (listing(("ndk;25.2.2", archive("https://example.com/x.zip", LINUX))), "not-in-sdk-list"),
        (listing(("ndk;25.2.2", archive("../x.zip", LINUX))), "not-in-sdk-list"),
        (listing(("ndk;25.2.2", archive("x.zip", LINUX, "abc"))), "not-in-sdk-list"),
    ],
)
def test_another_list_is_refused(text: bytes, reference: str) -> None:
    caught = refused(SourcesError, listed_archive, text, "ndk;25.2.2")
    assert (caught.code, caught.exit_code) == (reference, ExitCode.SOURCES)
