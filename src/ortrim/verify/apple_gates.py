"""Properties without which an xcframework is not fit to ship, each with a reference of its own."""

from collections.abc import Sequence
from typing import Final

from ortrim.core.measurements import Gate, Verdict
from ortrim.core.xcframework import XcframeworkFacts
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.verify.apple_binary_rules import BINARY_RULES
from ortrim.verify.apple_layout_rules import LAYOUT_RULES
from ortrim.verify.apple_package_rules import PACKAGE_RULES
from ortrim.verify.apple_plist_rules import PLIST_RULES
from ortrim.verify.apple_rules import ApplePromise, Rule

RULES: Final[tuple[Rule, ...]] = (*PACKAGE_RULES, *LAYOUT_RULES, *PLIST_RULES, *BINARY_RULES)
NOTHING: Final = ApplePromise()
"""What is promised of an xcframework of any origin."""


def check_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise = NOTHING) -> tuple[Gate, ...]:
    """Return each property that an xcframework must have, and whether it has it."""
    return tuple(rule.gate(xcframework, promise) for rule in RULES)


def broken_rules(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in their order."""
    references = {rule.name: rule.reference for rule in RULES}
    return tuple(references[gate.name] for gate in gates if gate.verdict is Verdict.FAIL)


def require_sound_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise) -> None:
    """Refuse one that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    found: tuple[Diagnostic, ...] = tuple(breach for rule in RULES for breach in rule.diagnostics(xcframework, promise))
    if found:
        raise DiagnosticGroup(found)
