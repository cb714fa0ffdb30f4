"""Reading the host's own apt sources, to learn which mirror it uses. Pure but for `host_mirrors`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ONE_LINE: Final = re.compile(r"^\s*deb(?:-src)?\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<rest>\S.*)$")
ALIASES: Final = frozenset({"stable", "oldstable", "testing", "unstable", "sid"})
DEBIAN_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Where the host gets a distribution from, and what vouches for it there (as in apt's own fields)."""

    uri: str
    signed_by: str = ""
    trusted: str = ""


@dataclass(frozen=True, kw_only=True)
class _Entry:
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str
    trusted: str


def host_mirrors(suite: str, etc: Path = Path("/etc/apt"), release: Path = Path("/etc/os-release")) -> list[Mirror]:
    """Return the mirrors from which the host takes its distribution, in the order of its configuration."""
    names = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    files = [(path.suffix, path.read_text(encoding="utf-8", errors="replace")) for path in names if path.is_file()]
    codename = _codename(release.read_text(encoding="utf-8", errors="replace") if release.is_file() else "")
    texts = [(suffix == ".sources", text) for suffix, text in files if suffix in {".sources", ".list"}]
    return mirrors_in(texts, frozenset({codename, suite}) | ALIASES)


def mirrors_in(texts: list[tuple[bool, str]], suites: frozenset[str]) -> list[Mirror]:
    """Return the mirrors of `suites` with a component `main`.

    `texts` are files in the deb822 format (True) or in the one-line format (False). Security, update and
    third-party archives have suites of other names and are left out.
    """
    entries = [entry for deb822, text in texts for entry in (_deb822(text) if deb822 else _one_line(text))]
    mirrors = [
        Mirror(uri=uri, signed_by=entry.signed_by, trusted=entry.trusted)
        for entry in entries
        if "main" in entry.components and suites.intersection(entry.suites)
        for uri in entry.uris
    ]
    return list({mirror.uri.rstrip("/"): mirror for mirror in reversed(mirrors)}.values())[::-1]


def source_stanza(mirror: Mirror, suite: str, types: str = "deb-src deb") -> str:
    """Return a deb822 file that offers `suite` of a mirror: sources and packages, or those `types` alone."""
    signed_by = mirror.signed_by or (str(DEBIAN_KEYRING) if DEBIAN_KEYRING.is_file() else "")
    fields = {
        "Types": types,
        "URIs": mirror.uri,
        "Suites": suite,
        "Components": "main",
        "Signed-By": signed_by,
        "Trusted": mirror.trusted,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _deb822(text: str) -> Iterator[_Entry]:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", lines):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        if fields.get("enabled", "yes").lower() not in {"no", "false", "0", "off"}:
            yield _Entry(
                uris=tuple(fields.get("uris", "").split()),
                suites=tuple(fields.get("suites", "").split()),
                components=tuple(fields.get("components", "").split()),
                signed_by=fields.get("signed-by", ""),
                trusted=fields.get("trusted", ""),
            )


def _one_line(text: str) -> Iterator[_Entry]:
    for line in text.splitlines():
        if (found := ONE_LINE.match(line)) is None:
            continue
        options = dict(word.split("=", 1) for word in (found["options"] or "").split() if "=" in word)
        suite, *components = found["rest"].split("#")[0].split() or [""]
        yield _Entry(
            uris=(found["uri"],),
            suites=(suite,),
            components=tuple(components),
            signed_by=options.get("signed-by", "").replace(",", " "),
            trusted=options.get("trusted", ""),
        )


def _codename(release: str) -> str:
    found = re.search(r'^VERSION_CODENAME="?([^"\n]+)"?$', release, re.MULTILINE)
    return found[1] if found else ""
