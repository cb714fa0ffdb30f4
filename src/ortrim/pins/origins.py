"""Who supplies what is compiled in, and the names by which vulnerability scanners know it."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from packageurl import PackageURL
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from ortrim.pins.shipped import shipped_file

FILE: Final = "origins.toml"
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
CPE: Final = "cpe:2.3:a:{name}:{version}:*:*:*:*:*:*:*"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What scanners know a part of a library by, and its source; `cpe` is empty for what the NVD does not name."""

    name: str
    version: str
    supplier: str
    purl: PackageURL
    cpe: str
    repository: str
    revision: str


@checked_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _Entry:
    purl: str
    supplier: str
    repository: str = ""
    tag_prefix: str = ""
    name: str = ""
    released_as: Mapping[str, str] = field(default_factory=dict)
    cpe: str = ""


def origin_of(maker: str, name: str, version: str) -> Origin:
    """Return the origin of a part at a version, which is a release, a tag or a commit.

    `maker` is `components` for those of the source tree, else the kind of toolchain that puts the part in itself. The
    package URL has the release without its tag's prefix, so that scanners compare it, and the prefix beside it.
    """
    entry = _entries()[maker][name]
    version = entry.released_as.get(version, version).removeprefix(entry.tag_prefix)
    prefix = "" if COMMIT.fullmatch(version) else entry.tag_prefix
    base = PackageURL.from_string(entry.purl)
    on_github = f"https://github.com/{base.namespace}/{base.name}" if base.type == "github" else ""
    source = {"vcs_url": f"git+{entry.repository}@{prefix}{version}"} if entry.repository else {}
    qualifiers = source or ({"version_prefix": prefix} if prefix else {})
    repository = entry.repository or on_github
    return Origin(
        name=entry.name or name,
        version=version,
        supplier=entry.supplier,
        purl=base._replace(version=version, qualifiers=qualifiers),
        cpe=CPE.format(name=entry.cpe, version=version) if entry.cpe and not COMMIT.fullmatch(version) else "",
        repository=repository,
        revision=f"{prefix}{version}" if repository else "",
    )


@cache
def _entries() -> dict[str, dict[str, _Entry]]:
    data = tomllib.loads(shipped_file(FILE).read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, dict[str, _Entry]]).validate_python(data)
