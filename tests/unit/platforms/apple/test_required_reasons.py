"""What Apple wants a reason for, by the symbols that a library asks the system for."""

import plistlib

from ortrim.binaries.apple import ApplePlatform
from ortrim.binaries.xcframework import categories, plain_name
from ortrim.errors import ExitCode, PackageError
from ortrim.platforms.apple.framework import privacy_manifest, required_reasons
from refusing import refused

FILES = "NSPrivacyAccessedAPICategoryFileTimestamp"
BOOT = "NSPrivacyAccessedAPICategorySystemBootTime"


def test_symbols_of_all_slices_come_together() -> None:
    """Each category once, with its reasons; variants of a symbol are that symbol."""
    found = required_reasons(
        {
            "ios-arm64": (ApplePlatform.IOS, ("malloc", "mach_absolute_time", "fstat")),
            "macos-x86_64": (ApplePlatform.MACOS, ("stat$INODE64", "fstat$INODE64")),
        }
    )
    assert [(each.category, each.reasons, each.symbols) for each in found] == [
        (FILES, ("C617.1",), ("fstat", "stat")),
        (BOOT, ("35F9.1",), ("mach_absolute_time",)),
    ]


def test_who_uses_nothing_needs_no_reason() -> None:
    """Names that only look alike are other functions."""
    assert (
        required_reasons({"ios-arm64": (ApplePlatform.IOS, ("stats", "mach_continuous_time", "clock_gettime"))}) == ()
    )


def test_a_use_without_a_reason_is_refused() -> None:
    """The store would refuse it after the upload."""
    caught = refused(
        PackageError, required_reasons, {"ios-arm64": (ApplePlatform.IOS, ("statfs", "OBJC_CLASS_$_NSString"))}
    )
    assert (caught.code, caught.exit_code) == ("no-required-reason", ExitCode.PACKAGE)
    assert "statfs" in caught.what
    assert "ITMS-91053" in caught.why


def test_a_mac_asks_for_no_reason() -> None:
    """What has none is left unsaid there."""
    assert required_reasons({"macos-arm64": (ApplePlatform.MACOS, ("statfs",))}) == ()


def test_classes_keep_their_names() -> None:
    """The dollar sign is theirs."""
    assert plain_name("OBJC_CLASS_$_NSUserDefaults") == "OBJC_CLASS_$_NSUserDefaults"
    refused(PackageError, required_reasons, {"ios-arm64": (ApplePlatform.IOS, ("OBJC_CLASS_$_NSUserDefaults",))})


def test_the_manifest_is_what_xcode_reads() -> None:
    """No tracking, nothing collected, and each category with its reasons."""
    found = required_reasons({"ios-arm64": (ApplePlatform.IOS, ("stat",))})
    content = plistlib.loads(privacy_manifest(found))
    assert content == {
        "NSPrivacyTracking": False,
        "NSPrivacyTrackingDomains": [],
        "NSPrivacyCollectedDataTypes": [],
        "NSPrivacyAccessedAPITypes": [
            {"NSPrivacyAccessedAPIType": FILES, "NSPrivacyAccessedAPITypeReasons": ["C617.1"]}
        ],
    }


def test_apples_list_is_whole() -> None:
    """All five categories, and no symbol without its category."""
    assert len(categories()) == 5
    assert all(each.symbols and each.name.startswith("NSPrivacyAccessedAPICategory") for each in categories())
