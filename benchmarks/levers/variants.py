"""The builds that are compared: each lever pulled alone in one profile, and let go alone in another. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from ortrim.build.plan import BuildJob
from ortrim.models.operators import needs_wide_characters, parse_config
from ortrim.platforms.planner import with_arguments
from ortrim.spec.build_options import PROFILES, Levers, applicable
from ortrim.spec.targets import APPLE, Architecture

NOT_OF_THE_CODE: Final = "precompiled"
"""The lever that changes how long a build takes, and not what it makes."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of the levers: the lever that is `pulled` or `let_go`, neither for a whole profile."""

    profile: str
    lever: str
    levers: Levers

    @property
    def words(self) -> str:
        """What is built, for progress and errors."""
        return f"{self.profile}, {self.lever} the other way" if self.lever else self.profile


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
    pulled = applicable(
        levers,
        toolchain=job.toolchain.kind,
        elf=job.target.system not in APPLE,
        x64=job.target.architecture is Architecture.X64,
        exceptions=job.exceptions,
        wide_characters=needs_wide_characters(parse_config(job.operator_config)),
        static=job.linkage == "static",
    )
    left_out = () if pulled.unused_types else unused_types
    return with_arguments(replace(job, levers=pulled, without_types=left_out))
