"""What a verification is about: the models, the package, what the report says of both, and what to do with them."""

from dataclasses import dataclass
from pathlib import Path

from ortrim.core.artifacts import CompiledUnits, CompilerCacheUse
from ortrim.core.library_facts import LibraryFacts, LibrarySize
from ortrim.core.measurements import Comparison, Gate
from ortrim.core.model_spec import ModelSpec
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.sessions import SessionSettings
from ortrim.core.target_spec import Budgets
from ortrim.verify.baseline import Baseline
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import DEFAULT_REPETITION, Repetition
from ortrim.verify.reference import References, SavedOutputs


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One model to verify: as given, as converted, what the buildspec says of it, its cases, and their outputs.

    `reference` are the full runtime's outputs of the original model, `same_graph` those of the converted one;
    `session` are the package's settings.
    """

    prepared: PreparedModel
    converted: OrtModel
    spec: ModelSpec
    cases: tuple[Case, ...]
    reference: References
    same_graph: SavedOutputs
    session: SessionSettings


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a report says of its subject; the names are those of `VerifyReport`."""

    name: str
    target: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    profile: str
    build_seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is verified: the package's archive, its library, and what was read from both.

    `gates` are the properties that it must have; `sizes` are lines of the report that tell more of its size;
    `companions` are the libraries in the package that its library needs, as `RunRequest` has them.
    """

    archive: Path
    library: Path
    facts: LibraryFacts
    gates: tuple[Gate, ...]
    size: LibrarySize
    sizes: tuple[Comparison, ...] = ()
    companions: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every device is given alike: the library, the models, and what it is all held against.

    Outputs are kept below `folder`, each device's in a folder of its own. `least_memory` is searched for where there
    is a ceiling to be lowered; with `trace`, each model is run once more with the profile of single operators.
    """

    delivery: Delivery
    subjects: tuple[Subject, ...]
    budgets: Budgets
    baseline: Baseline
    baseline_size: LibrarySize
    runner: Path
    folder: Path
    repetition: Repetition = DEFAULT_REPETITION
    least_memory: bool = False
    trace: bool = False
