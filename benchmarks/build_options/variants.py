"""The builds that are compared: each build option on alone in one profile, and off alone in another. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from ortrim.buildspec.build_options import BuildOptions, ProfileName, applicable, profile_for
from ortrim.buildspec.targets import APPLE, Architecture
from ortrim.compiling.plan import BuildJob
from ortrim.models.operators import needs_wide_characters, parse_config
from ortrim.planning.planner import with_arguments

NOT_OF_THE_CODE: Final = "precompiled_headers"
"""The build option that changes how long a build takes, and not what it makes."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of the build options: the build option that is `pulled` or `off`, neither for a whole profile."""

    profile: str
    option: str
    build_options: BuildOptions

    @property
    def words(self) -> str:
        return f"{self.profile}, {self.option} the other way" if self.option else self.profile


def variants(bottom: ProfileName, top: ProfileName, kept: Mapping[str, Any]) -> Iterator[Variant]:
    """Yield each of two profiles whole, then with each build option in which they differ as the other has it."""
    low, high = profile_for(bottom, kept), profile_for(top, kept)
    names = [each.name for each in fields(BuildOptions) if each.name != NOT_OF_THE_CODE]
    differing = [name for name in names if getattr(low, name) != getattr(high, name)]
    for profile, base, other in ((bottom, low, high), (top, high, low)):
        yield Variant(profile=profile, option="", build_options=base)
        for name in differing:
            yield Variant(profile=profile, option=name, build_options=replace(base, **{name: getattr(other, name)}))


def with_build_options(job: BuildJob, build_options: BuildOptions, unused_types: tuple[str, ...]) -> BuildJob:
    pulled = applicable(
        build_options,
        toolchain=job.toolchain.kind,
        elf=job.target.system not in APPLE,
        x64=job.target.architecture is Architecture.X64,
        exceptions=job.exceptions,
        wide_characters=needs_wide_characters(parse_config(job.operator_config)),
        static=job.linkage == "static",
    )
    left_out = unused_types if pulled.type_reduction else ()
    return with_arguments(replace(job, build_options=pulled, without_types=left_out))
