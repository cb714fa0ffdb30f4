"""Why the libraries use what Apple wants a reason for, and the privacy manifest that says so."""

import plistlib
from collections.abc import Iterable, Mapping
from typing import Final

from ortrim.binaries.required_reasons import Category, categories, used_categories
from ortrim.core.apple import ApplePlatform
from ortrim.core.apple_package import RequiredReason
from ortrim.errors import PackageError

PRIVACY_FILE: Final = "PrivacyInfo.xcprivacy"
Undefined = Mapping[str, tuple[ApplePlatform, Iterable[str]]]
"""Identifier of a slice -> its platform, and the symbols that it asks the system for."""


def required_reasons(undefined: Undefined) -> tuple[RequiredReason, ...]:
    """Return what of Apple's required reason API the libraries of all slices use, and our reasons.

    Raises `PackageError` `no-required-reason` for a slice of iOS that uses what ONNX Runtime has no reason for; on a
    Mac, Apple asks for none. A call that goes by the name of a method, `systemUptime`, shows in no symbol.
    """
    used = {identifier: used_categories(names) for identifier, (_, names) in undefined.items()}
    for identifier, (platform, _) in undefined.items():
        if platform is ApplePlatform.IOS:
            _require_reasons(identifier, used[identifier])
    found = ((each, _symbols(each, used.values())) for each in categories() if each.reasons)
    return tuple(
        RequiredReason(category=each.name, reasons=each.reasons, symbols=symbols) for each, symbols in found if symbols
    )


def privacy_manifest(reasons: Iterable[RequiredReason]) -> bytes:
    """Return the content of `PrivacyInfo.xcprivacy`: nothing is collected, nobody is tracked, and these are used."""
    used = [
        {"NSPrivacyAccessedAPIType": each.category, "NSPrivacyAccessedAPITypeReasons": list(each.reasons)}
        for each in reasons
    ]
    content = {
        "NSPrivacyAccessedAPITypes": used,
        "NSPrivacyCollectedDataTypes": [],
        "NSPrivacyTracking": False,
        "NSPrivacyTrackingDomains": [],
    }
    return plistlib.dumps(content)


def _symbols(category: Category, used: Iterable[Mapping[str, tuple[str, ...]]]) -> tuple[str, ...]:
    return tuple(sorted({name for slice_used in used for name in slice_used.get(category.name, ())}))


def _require_reasons(identifier: str, used: Mapping[str, tuple[str, ...]]) -> None:
    for category in categories():
        if not category.reasons and (symbols := used.get(category.name)):
            what = f"the library uses {', '.join(symbols)}, which Apple wants a reason for"
            why = f"{category.name}: ITMS-91053 (missing API declaration) would be the answer to an upload"
            hint = "find what calls it: `invoke inspect` lists the symbols; ONNX Runtime itself has no use for it"
            raise PackageError("no-required-reason", what, where=identifier, why=why, hint=hint)
