"""What of a buildspec concerns Linux: what is wrong with the choices for a target. Pure."""

from collections.abc import Iterator
from typing import Literal

from ortrim.spec.buildspec import BuildSpec, TargetSpec
from ortrim.spec.problems import Location, Problem, listed, shown
from ortrim.spec.rules import DEFAULT_GLIBC, system_compiler_problems
from ortrim.spec.targets import CPUS, TARGETS, CLibrary


def linkage(spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
    """Return how programs link the library."""
    return target.linkage or spec.linkage


def problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what the C library, the processor or the compiler of a target cannot follow."""
    yield from _c_library(target, location)
    yield from _processor(target, location)
    yield from system_compiler_problems(target, location, linkage)


def _c_library(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if TARGETS[target.id].c_library is not CLibrary.GLIBC and target.glibc != DEFAULT_GLIBC:
        what, why = "has no meaning for this target", f"{target.id} is built against {TARGETS[target.id].c_library}"
        yield Problem(code="stray-key", location=(*location, "glibc"), what=what, why=why)


def _processor(target: TargetSpec, location: Location) -> Iterator[Problem]:
    known = CPUS[TARGETS[target.id].architecture]
    if target.cpu is not None and target.cpu not in known:
        what = f"is {shown(target.cpu)}, which is not a processor that {target.id} can be built for"
        hint = f"choose among {listed(list(known), 'and')}, or leave 'cpu' out for any processor of the architecture"
        yield Problem(code="unknown-cpu", location=(*location, "cpu"), what=what, hint=hint)
