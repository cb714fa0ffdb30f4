"""Rules and what they find. Pure.

- All that the rules look at: a model's graph, and what a runtime, a build and upstream's own tools say of it. Pure.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ortrim.errors import Diagnostic, ModelError
from ortrim.models.graph_facts import GraphFacts
from ortrim.pins.runtime import VersionLimits

Operator = tuple[str, str]
"""Domain and name."""
Sizes = tuple[tuple[str, int], ...]
"""Dynamic dimensions with the sizes that they were given."""


@dataclass(frozen=True, kw_only=True)
class RuntimeFacts:
    """The version that the model is judged for, with the newest models that it loads; None: not recorded."""

    version: str
    limits: VersionLimits | None = None


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """What the full runtime says of the model's operators.

    `without` are those without any CPU kernel that are no functions of other operators, `unheard` those of them that
    the runtime has never heard of. `missing` is the one, with its node, at which loading ended.
    """

    without: tuple[Operator, ...] = ()
    unheard: tuple[Operator, ...] = ()
    missing: tuple[Operator, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run at some sizes of the dynamic dimensions; `failure` is empty when it ended well."""

    sizes: Sizes
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """How the model fared in the full runtime: why it did not load, if so, how it ended early, and all runs."""

    load_failure: str = ""
    crash: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProviderFacts:
    """What upstream's usability checker counts for one execution provider, by kinds of operator alone.

    `fixed_partitions` and `fixed_supported` are what they would be if all shapes were fixed.
    """

    name: str
    nodes: int
    supported: int
    partitions: int
    fixed_supported: int
    fixed_partitions: int
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LintFacts:
    """One model with all that is known of it; None stands for what was not looked at.

    `library` is the code size of each operator in a finished build, by name as `invoke size` shows it; `elsewhere` are
    the operators of the other models that are judged with this one, which keep their code in a common library.
    """

    graph: GraphFacts
    runtime: RuntimeFacts
    kernels: KernelFacts | None = None
    run: RunFacts | None = None
    providers: tuple[ProviderFacts, ...] | None = None
    library: tuple[tuple[str, int], ...] | None = None
    elsewhere: frozenset[Operator] = frozenset()


Level = Literal["error", "advice"]


@dataclass(frozen=True, kw_only=True, order=True)
class Shown:
    """One place where a model breaks a rule, and how, in words."""

    place: str
    words: str


@dataclass(frozen=True, kw_only=True)
class LintRule:
    """A rule: its stable code and level, what it is about, why that matters, and the step that mends it.

    An error ends the command as one of its `kind` does elsewhere.
    """

    code: str
    level: Level
    title: str
    why: str
    fix: str
    check: Callable[[LintFacts], Iterable[Shown]]
    kind: type[Diagnostic] = ModelError


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One thing that a rule found in a model."""

    code: str
    level: Level
    place: str
    words: str
