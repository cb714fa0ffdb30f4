"""Servers whose certificates this machine does not know, as behind a proxy that reads along: said, and remedied.

`REQUESTS_CA_BUNDLE` is read by requests, by pip and, because we hand it on, by git (`http.sslCAInfo`).
"""

import os
from typing import Final

from ortrim.errors import NetworkError

VARIABLE: Final = "REQUESTS_CA_BUNDLE"
GIT_VARIABLE: Final = "GIT_SSL_CAINFO"
WORDS: Final = ("SSLCertVerificationError", "certificate verification failed", "SSL certificate problem")
"""Of pip, on every system, and of git with GnuTLS and with OpenSSL."""
HINT: Final = (
    "behind a proxy with a certificate of its own, name the file that has it (PEM), which whoever runs the proxy"
    f" has: export {VARIABLE}=/path/to/certificates.pem; ortrim, pip and git read it"
)


def is_untrusted(printed: str) -> bool:
    """Whether a program says that it does not trust a server's certificate."""
    return any(words in printed for words in WORDS)


def untrusted(where: str, printed: str) -> NetworkError:
    """Return the diagnostic of what printed so (`untrusted-certificate`); its first such line is the cause."""
    what = "the server's certificate is not trusted here"
    why = next(filter(is_untrusted, printed.splitlines()), printed)
    return NetworkError("untrusted-certificate", what, where=where, why=why, hint=HINT)


def git_variables() -> dict[str, str]:
    """Return what git needs to trust the same certificates, unless the user says it to git already."""
    named = os.environ.get(VARIABLE)
    return {GIT_VARIABLE: named} if named and GIT_VARIABLE not in os.environ else {}
