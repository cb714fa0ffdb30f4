"""What container engines say when something is wrong, as diagnostics. Pure.

Engines have one or two exit codes for all failures of their own, so causes are told apart by their words: those
recorded in `tests/unit/tools/data/containers`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ortrim.errors import Diagnostic, NetworkError, StorageError, ToolError
from ortrim.tools.containers import PROXIES

SHOWN_LINES: Final = 6
LONGEST_LINE: Final = 600
STEP: Final = "image-step-failed"
"""Of this cause the lines before tell more than its own."""
USERINFO: Final = re.compile(r"(://)[^/@\s\"']+@")
HIDDEN: Final = "..."


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause: how it is recognised, and what it is told as. `{engine}` in the hint stands for the engine's name."""

    words: str
    kind: type[Diagnostic]
    reference: str
    what: str
    hint: str


CAUSES: Final = (
    Cause(
        words=r"no space left on device|disk quota exceeded",
        kind=StorageError,
        reference="disk-full",
        what="there is no space left for images and containers",
        hint="free some space ({engine} keeps its images apart from ortrim's cache), then run the same command again",
    ),
    Cause(
        words=r"permission denied while trying to connect|dial unix \S+: connect: permission denied",
        kind=ToolError,
        reference="engine-not-permitted",
        what="this user may not use it",
        hint="let an administrator add this user to the group that owns its socket, or use an engine without a daemon",
    ),
    Cause(
        words=r"[Cc]annot connect to (the Docker daemon|Podman)|Is the docker daemon running",
        kind=ToolError,
        reference="engine-not-running",
        what="its daemon is not running",
        hint="start it (systemctl start docker), or choose an engine without a daemon: --engine podman or buildah",
    ),
    Cause(
        words=r"manifest unknown|manifest for \S+ not found|repository does not exist|pull access denied|"
        r"unauthorized\b|no basic auth credentials|authentication required",
        kind=NetworkError,
        reference="image-not-found",
        what="the registry does not have the base image with this digest, or does not give it to this user",
        hint="sign in ({engine} login), or pin an image that you have in your own images.toml (docs/containers.md)",
    ),
    Cause(
        words=r"short-name .* did not resolve",
        kind=ToolError,
        reference="image-name-unresolved",
        what="it does not know which registry has the base image",
        hint="name one in unqualified-search-registries of registries.conf, or in your own images.toml",
    ),
    Cause(
        words=r"no such host|name resolution|i/o timeout|connection (refused|reset)|TLS handshake|proxyconnect|"
        r"network is unreachable|no route to host|certificate signed by unknown|deadline exceeded|unexpected EOF",
        kind=NetworkError,
        reference="image-unreachable",
        what="the base image cannot be fetched",
        hint="check the network and the proxy (HTTPS_PROXY), then run the same command again",
    ),
    Cause(
        words=r"[Oo]peration not permitted|permission denied|[Pp]ermission denied|newuidmap|insufficient UIDs or GIDs|"
        r"cgroups? .*not supported|clone.* EPERM|unshare failed",
        kind=ToolError,
        reference="engine-not-permitted",
        what="it may not make containers here",
        hint="choose another engine; buildah needs least: root, or user namespaces with a range in /etc/subuid",
    ),
    Cause(
        words=r"^Error: building at STEP|returned a non-zero code:|failed to solve: process",
        kind=ToolError,
        reference=STEP,
        what="a step of the image failed, so that something in it is not as it should be",
        hint="if a base or an archive is not what it should be, pin another one: invoke pins.update --images",
    ),
    Cause(
        words=r"bind source path does not exist|error mounting|statfs .*: no such file|stat .*: no such file",
        kind=ToolError,
        reference="folder-not-shared",
        what="it does not see this machine's folders",
        hint="an engine on another machine cannot build here: unset DOCKER_HOST and DOCKER_CONTEXT",
    ),
)
"""In the order in which they are looked for: the more special ones come first."""


def engine_error(engine: str, doing: str, printed: str, environment: Mapping[str, str]) -> Diagnostic:
    """Return the diagnostic of an engine that failed while `doing` something; nothing in particular when that is empty.

    `environment` tells the proxies, whose credentials are taken out of what the engine printed.
    """
    told = without_credentials(printed, environment).strip()
    lines, where = told.splitlines(), f"{engine}: {doing}" if doing else engine
    for cause in CAUSES:
        found = [line for line in lines if re.search(cause.words, line)]
        if found:
            hint = cause.hint.format(engine=engine)
            why = "\n".join(lines[-SHOWN_LINES:]) if cause.reference == STEP else found[-1].strip()[:LONGEST_LINE]
            return cause.kind(cause.reference, cause.what, where=where, why=why, hint=hint)
    why = "\n".join(lines[-SHOWN_LINES:]) or "it printed nothing"
    hint = "see whether it works by itself, or choose another engine with --engine"
    return ToolError("engine-failed", "failed", where=where, why=why, hint=hint)


def proxies_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the proxy variables that are set, in either case, in order."""
    return tuple(name for each in PROXIES for name in (each, each.lower()) if environment.get(name))


def without_credentials(text: str, environment: Mapping[str, str]) -> str:
    """Return a text without what stands before the `@` of any address, nor a proxy's password by itself."""
    text = USERINFO.sub(rf"\1{HIDDEN}@", text)
    for secret in sorted(_secrets(environment), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(environment: Mapping[str, str]) -> set[str]:
    """Return every form in which a proxy's password may be printed."""
    found: set[str] = set()
    for name in proxies_in(environment):
        value = environment[name]
        userinfo = value.rpartition("@")[0].rpartition("//")[2]
        password = userinfo.partition(":")[2] or userinfo
        found |= {userinfo, unquote(userinfo), password, unquote(password)}
    return found - {""}
