"""Where a team shares compiled objects, read from the variables of the cache programs themselves. Pure.

A build's own environment is made anew, so that none of these reaches a compiler by itself; docs/compiler-cache.md
says what a user may write.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A store that sccache speaks to: chosen when `chosen_by` is set, with the variables of these prefixes."""

    name: str
    chosen_by: str
    prefixes: tuple[str, ...]


BACKENDS: Final = tuple(
    Backend(name=name, chosen_by=chosen_by, prefixes=prefixes)
    for name, chosen_by, prefixes in (
        ("several levels", "SCCACHE_MULTILEVEL_CHAIN", ("SCCACHE_MULTILEVEL_", "SCCACHE_LOCAL_RW_MODE")),
        ("S3", "SCCACHE_BUCKET", ("SCCACHE_BUCKET", "SCCACHE_REGION", "SCCACHE_ENDPOINT", "SCCACHE_S3_", "AWS_")),
        ("GitHub Actions", "SCCACHE_GHA_ENABLED", ("SCCACHE_GHA_", "ACTIONS_", "GITHUB_SERVER_URL")),
        ("WebDAV", "SCCACHE_WEBDAV_ENDPOINT", ("SCCACHE_WEBDAV_",)),
        ("Google Cloud Storage", "SCCACHE_GCS_BUCKET", ("SCCACHE_GCS_", "GOOGLE_APPLICATION_CREDENTIALS")),
        ("Azure", "SCCACHE_AZURE_CONNECTION_STRING", ("SCCACHE_AZURE_",)),
        ("OSS", "SCCACHE_OSS_BUCKET", ("SCCACHE_OSS_", "ALIBABA_CLOUD_")),
        ("COS", "SCCACHE_COS_BUCKET", ("SCCACHE_COS_", "TENCENTCLOUD_", "TKE_")),
    )
)

NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "HOME")
"""What a program needs beside its own settings to reach a store. AWS keeps credentials below HOME."""

CCACHE_SETTINGS: Final = {
    "CCACHE_MAXSIZE": "max_size",
    "CCACHE_REMOTE_STORAGE": "remote_storage",
    "CCACHE_REMOTE_ONLY": "remote_only",
    "CCACHE_RESHARE": "reshare",
}
"""ccache's variables that are heeded, and their names in its configuration file."""

NOT_WORDS: Final = re.compile(r"[^\w.+-]+")
SECRET_LETTERS: Final = 5
"""Shorter values say nothing: `on`, `true`, a port."""

WAITING_SCHEMES: Final = ("redis:", "redis+unix:", "http:")
PATIENCE: Final = "@operation-timeout=2000"
"""How many milliseconds a compilation waits for a store that hangs; ccache's own figure is 10 seconds."""

OFF: Final = ("", "0", "off", "false", "no")


def chosen_backend(environment: Mapping[str, str]) -> Backend | None:
    """Return the store that the user's environment asks sccache for; None for none."""
    asked = (backend for backend in BACKENDS if environment.get(backend.chosen_by, "").lower() not in OFF)
    return next(asked, None)


def backend_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that belong to any of sccache's stores; they hold secrets."""
    prefixes = tuple(prefix for backend in BACKENDS for prefix in backend.prefixes)
    return {name: value for name, value in environment.items() if name.startswith(prefixes) or name.upper() in NETWORK}


def ccache_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's settings for ccache by their names in its configuration file; they may hold secrets.

    A Redis that is given in sccache's words is given to ccache: when a Redis dies, sccache 0.16 waits 60 seconds for
    each compilation (mozilla/sccache#2820), ccache none.
    """
    redis = redis_url(environment)
    settings = ({"remote_storage": redis} if redis else {}) | {
        name: environment[variable] for variable, name in CCACHE_SETTINGS.items() if environment.get(variable)
    }
    stores = settings.get("remote_storage", "")
    if stores.startswith(WAITING_SCHEMES) and "timeout" not in stores:
        settings["remote_storage"] = f"{stores} {PATIENCE}"
    return settings


def redis_url(environment: Mapping[str, str]) -> str:
    """Return the address that sccache's variables for Redis amount to, with the password in it; empty for none."""
    url = environment.get("SCCACHE_REDIS_ENDPOINT") or environment.get("SCCACHE_REDIS", "")
    scheme, mark, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    user, password = (quote(environment.get(f"SCCACHE_REDIS_{name}", ""), safe="") for name in ("USERNAME", "PASSWORD"))
    if not at and password:
        account, at = f"{user}:{password}", "@"
    database = environment.get("SCCACHE_REDIS_DB", "")
    path = f"/{database}" if database and "/" not in place else ""
    return f"{scheme}{mark}{account.removeprefix(':')}{at}{place}{path}"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return what a program said without the values that it was given, nor longer parts of them."""
    parts = {part for value in secrets for part in (value, *NOT_WORDS.split(value)) if len(part) >= SECRET_LETTERS}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "...")
    return text
