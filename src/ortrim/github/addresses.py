"""Where GitHub's API is, and which addresses may be trusted with what."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ortrim.errors import UsageError

API: Final = "https://api.github.com"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class Service:
    """A GitHub: the address of its REST API, without a slash at the end, and the host that people see."""

    api: str = API
    host: str = "github.com"


def find_service(environment: Mapping[str, str] = os.environ) -> Service:
    """Return GitHub, or the server that `GITHUB_API_URL` names as GitHub's own runners set it.

    Raises `UsageError` (`github-bad-address`): only https is spoken, and http on this machine itself.
    """
    given = environment.get("GITHUB_API_URL", "").rstrip("/")
    if not given:
        return Service()
    parts = _split(given)
    if parts is None or not is_protected(given) or parts.username or parts.query or parts.fragment:
        hint = "it has the form https://HOST/api/v3"
        what = "is no address of an API that a token may be sent to"
        raise UsageError("github-bad-address", what, where="GITHUB_API_URL", hint=hint)
    return Service(api=given, host=(parts.hostname or "").removeprefix("api."))


def service_at(host: str, environment: Mapping[str, str] = os.environ) -> Service:
    """Return the GitHub that people see at `host`, where its API is by GitHub's own rules.

    If `GITHUB_API_URL` is of that host, it says where. Raises `UsageError` as `find_service` does.
    """
    named = find_service(environment)
    if host.lower() == named.host.lower():
        return named
    if host.lower() == Service().host:
        return Service()
    own = host.lower().endswith(".ghe.com")
    return Service(api=f"https://api.{host}" if own else f"https://{host}/api/v3", host=host)


def is_protected(url: str) -> bool:
    """Whether nobody on the way can read what is asked for at `url`: https, or http that stays on this machine."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def same_origin(first: str, second: str) -> bool:
    """Whether two addresses have the same scheme, host and port: only then may they see the same token."""
    one, other = _split(first), _split(second)
    return one is not None and other is not None and _origin(one) == _origin(other)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)


def _split(url: str) -> SplitResult | None:
    """Take an address apart; None for what is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
