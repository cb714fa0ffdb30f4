"""Properties without which an AAR is not fit to ship, each with a reference of its own."""

from collections.abc import Sequence
from typing import Final

from ortrim.core.aar import AarFacts
from ortrim.core.measurements import Gate
from ortrim.verify.android.elf_rules import ELF_RULES
from ortrim.verify.android.link_rules import LINK_RULES
from ortrim.verify.android.package_rules import PACKAGE_RULES
from ortrim.verify.android.rules import Promise, Rule
from ortrim.verify.rules import broken, judged, require_kept

RULES: Final[tuple[Rule, ...]] = (*PACKAGE_RULES, *ELF_RULES, *LINK_RULES)
OLDEST_API: Final = 21
"""What an AAR that does not say it is judged by: the oldest that NDKs since r26 build for."""


def check_aar(aar: AarFacts, promise: Promise) -> tuple[Gate, ...]:
    """Return each property that an AAR must have, and whether it has it."""
    return judged(RULES, aar, promise)


def broken_rules(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in their order."""
    return broken(RULES, gates)


def require_sound_aar(aar: AarFacts, promise: Promise) -> None:
    """Refuse an AAR that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    require_kept(RULES, aar, promise)


def own_promise(aar: AarFacts) -> Promise:
    """Return what an AAR of any origin promises by itself: the API level of its manifest, its own ABIs."""
    return Promise(api_level=OLDEST_API if aar.minimum_api is None else aar.minimum_api)
