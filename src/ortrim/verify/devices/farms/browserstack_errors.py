"""What BrowserStack says when something is wrong, as diagnostics. Pure.

Its answers carry `{"message": "[BROWSERSTACK_SOME_CODE] words"}` or `{"error": "words"}`, most with the status 422.
"""

import re
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.verify.devices.farms.polling import Transient

SIGN_IN: Final = (
    "set BROWSERSTACK_USERNAME and BROWSERSTACK_ACCESS_KEY to those of https://www.browserstack.com/accounts/profile"
)
MOST_LETTERS: Final = 300
ADDRESS_QUERY: Final = re.compile(r"(https?://[^\s?\"']+)\?[^\s\"']*")
QUOTA_WORDS: Final = re.compile(r"PARALLELS_IN_USE|QUEUE_SIZE_EXCEEDED|parallel tests are|quota|limit reached|expired")
PLAN_WORDS: Final = re.compile(r"NOT_AVAILABLE_IN_CURRENT_PLAN|not (?:available|supported|included) (?:in|on|for) your")
DEVICE_WORDS: Final = re.compile(r"INVALID_DEVICE|INVALID_OS_VERSION|INCOMPATIBLE_OS_VERSION|[Dd]evice.* not found")


def refusal(status: int, message: str, where: str) -> Diagnostic | Transient:
    """Return what an answer means that is no success, by its HTTP status and its words."""
    why = f"{status}: {clean(message)}" if message else f"the answer was {status}"
    if status in {401, 403}:
        what = "BrowserStack refuses the user name or the access key"
        return VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)
    if QUOTA_WORDS.search(message):
        return quota(why, where)
    if status == 429:
        return Transient(quota(why, where))
    if status >= 500 or status in {408, 425}:
        return Transient(trouble(why, where))
    return _of_request(message, why, where)


def quota(why: str, where: str) -> VerifyError:
    """Return the diagnostic of an account that may not run more for now."""
    what, hint = "the account may not run more for now", "wait until other runs have ended, or look at the plan"
    return VerifyError("farm-quota", what, where=where, why=why, hint=hint)


def unreachable(why: str, where: str) -> NetworkError:
    """Return the diagnostic of a service that cannot be reached."""
    hint = "check the network or the proxy settings, then run the same command again"
    return NetworkError("farm-unreachable", "BrowserStack cannot be reached", where=where, why=why, hint=hint)


def trouble(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a fault of the farm's own."""
    hint = "it is not a fault of the app; run the same command again, and see https://status.browserstack.com"
    return VerifyError("farm-trouble", "BrowserStack itself is in trouble", where=where, why=why, hint=hint)


def clean(text: str) -> str:
    """Return a text's first line, cut short, with addresses in it that carry nothing secret."""
    return ADDRESS_QUERY.sub(r"\1", next(iter(text.strip().splitlines()), ""))[:MOST_LETTERS]


def _of_request(message: str, why: str, where: str) -> VerifyError:
    if PLAN_WORDS.search(message):
        what, hint = "the account's plan does not allow this", "look at the plan, or choose another device"
        return VerifyError("farm-project", what, where=where, why=why, hint=hint)
    if DEVICE_WORDS.search(message):
        what, hint = (
            "BrowserStack does not know the device",
            "see https://www.browserstack.com/list-of-browsers-and-platforms",
        )
        return VerifyError("farm-device-unknown", what, where=where, why=why, hint=hint)
    hint = "the reason is BrowserStack's own: mend what it names"
    return VerifyError("farm-refused", "BrowserStack does not take this", where=where, why=why, hint=hint)
