"""The builds that are compared: each lever pulled alone in one profile, and let go alone in another. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from ortrim.core.plan import BuildJob
from ortrim.core.profiles import PROFILES, Levers, applicable
from ortrim.core.targets import APPLE
from ortrim.planning import with_arguments

NOT_OF_THE_CODE: Final = "precompiled"
"""The lever that changes how long a build takes, and not what it makes."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of the levers: the lever that is `pulled` or `let_go`, neither for a whole profile."""

    profile: str
    lever: str
    levers: Levers


def variants(bottom: str, top: str) -> Iterator[Variant]:
    """Yield each of two profiles whole, then with each lever in which they differ as the other has it."""
    low, high = PROFILES[bottom], PROFILES[top]
    names = [each.name for each in fields(Levers) if each.name != NOT_OF_THE_CODE]
    differing = [name for name in names if getattr(low, name) != getattr(high, name)]
    for profile, base, other in ((bottom, low, high), (top, high, low)):
        yield Variant(profile=profile, lever="", levers=base)
        for name in differing:
            yield Variant(profile=profile, lever=name, levers=replace(base, **{name: getattr(other, name)}))


def with_levers(job: BuildJob, levers: Levers, unused_types: tuple[str, ...]) -> BuildJob:
    """Return a job with other levers; `unused_types` are what the models' types allow to leave out."""
    elf = job.target.system not in APPLE
    pulled = applicable(levers, toolchain=job.toolchain.kind, elf=elf, exceptions=job.exceptions)
    left_out = () if pulled.unused_types else unused_types
    return with_arguments(replace(job, levers=pulled, without_types=left_out))
