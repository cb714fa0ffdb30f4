"""Properties without which an xcframework is not fit to ship, each with a reference of its own."""

from collections.abc import Sequence
from typing import Final

from ortrim.core.measurements import Gate
from ortrim.core.xcframework import XcframeworkFacts
from ortrim.verify.apple.binary_rules import BINARY_RULES
from ortrim.verify.apple.layout_rules import LAYOUT_RULES
from ortrim.verify.apple.package_rules import PACKAGE_RULES
from ortrim.verify.apple.plist_rules import PLIST_RULES
from ortrim.verify.apple.rules import ApplePromise, Rule
from ortrim.verify.rules import broken, judged, require_kept

RULES: Final[tuple[Rule, ...]] = (*PACKAGE_RULES, *LAYOUT_RULES, *PLIST_RULES, *BINARY_RULES)
NOTHING: Final = ApplePromise()
"""What is promised of an xcframework of any origin."""


def check_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise = NOTHING) -> tuple[Gate, ...]:
    """Return each property that an xcframework must have, and whether it has it."""
    return judged(RULES, xcframework, promise)


def broken_rules(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in their order."""
    return broken(RULES, gates)


def require_sound_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise) -> None:
    """Refuse one that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    require_kept(RULES, xcframework, promise)
