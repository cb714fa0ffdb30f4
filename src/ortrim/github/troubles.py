"""What goes wrong between us and a server, in words that repeat nothing of the request."""

from ssl import SSLCertVerificationError
from typing import Final

import requests
from requests.exceptions import ChunkedEncodingError, ConnectTimeout, ProxyError, SSLError, Timeout
from urllib3.exceptions import NameResolutionError, NewConnectionError


class Trouble(Exception):
    """A request that got no answer, or no whole one.

    `sent` is whether the server may have seen it, `hopeless` whether the same will happen again.
    """

    def __init__(self, words: str, *, sent: bool = True, hopeless: bool = False) -> None:
        super().__init__(words)
        self.sent = sent
        self.hopeless = hopeless


UNSENT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ProxyError, "the proxy cannot be reached, or does not let it pass"),
    (ConnectTimeout, "no connection came about in time"),
    (NameResolutionError, "the host's name is not known"),
    (NewConnectionError, "the host takes no connection"),
)
"""What happens before anything is sent: the error, or what it gives as its reason, and the words."""

INVALID: Final = "an address, the proxy's address, a header or the file of certificates is not valid"


def trouble_of(error: Exception) -> Trouble:
    """Put an error of requests', of urllib3's or of the system into words; the error itself holds the request."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    for kind, words in UNSENT:
        if isinstance(error, kind) or isinstance(reason, kind):
            return Trouble(words, sent=False)
    if isinstance(error, SSLError):
        untrusted = isinstance(reason, Exception) and isinstance(
            next(iter(reason.args), None), SSLCertVerificationError
        )
        words = (
            "this system does not trust the server's certificate" if untrusted else "no secure connection came about"
        )
        return Trouble(words, sent=not untrusted, hopeless=untrusted)
    if isinstance(error, Timeout):
        return Trouble("no answer came in time")
    if isinstance(error, requests.ConnectionError | ChunkedEncodingError):
        return Trouble("the connection broke")
    return Trouble(INVALID, sent=False, hopeless=True)
