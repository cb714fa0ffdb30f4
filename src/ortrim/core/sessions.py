"""Session settings that go with a model: chosen in the buildspec, packaged as `session.json`, measured with. Pure.

The words of `session.json` are ONNX Runtime's own: the attributes of its `SessionOptions`, and the keys of
`onnxruntime_session_options_config_keys.h`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from ortrim.core.model_spec import SessionSpec
from ortrim.core.serialization import to_json

Load = Literal["map", "bytes", "file"]
Entry = tuple[str, str]
DIRECTLY: Final[Entry] = ("session.use_ort_model_bytes_directly", "1")
"""The entry of a session's configuration with which a model is read from the application's bytes, not from a copy."""
IN_PLACE: Final[Entry] = ("session.use_ort_model_bytes_for_initializers", "1")
"""The entry with which tensors stay in those bytes, which then have to outlive the session."""
NO_PREPACKING: Final[Entry] = ("session.disable_prepacking", "1")
DEFAULTS: Final = SessionSpec(
    load="map", prepacking=True, arena=True, memory_pattern=True, threads=1, branches=1, spinning=False
)
"""What is chosen where a buildspec leaves it open; docs/session.md has the measurements."""
SPINNING: Final = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """How a session is created. `branches` are the parts of a model that may run at the same time.

    Without an `optimization_level` the runtime's own default holds.
    `configuration` holds what has a key of its own in ONNX Runtime, spinning apart.
    """

    load: Load = "file"
    threads: int = 1
    branches: int = 1
    allow_spinning: bool = False
    arena: bool = True
    memory_pattern: bool = True
    optimization_level: Literal["none", "basic", "extended", "all"] | None = None
    configuration: tuple[Entry, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelSession:
    """One model of `session.json`: its file beside it, how it is to be loaded, and the options of its session."""

    file: str
    load: Load
    intra_op_num_threads: int
    inter_op_num_threads: int
    execution_mode: Literal["ORT_SEQUENTIAL", "ORT_PARALLEL"]
    graph_optimization_level: Literal["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"]
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    session_configuration: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class SessionFile:
    """`session.json`: the settings of each model, by its name."""

    schema: Literal["ortrim-session/1"] = "ortrim-session/1"
    onnxruntime: str
    models: dict[str, ModelSession]


def settings_of(chosen: SessionSpec, *, style: str, aligned: bool) -> SessionSettings:
    """Return the settings that a buildspec's choices come to.

    A model of the `style` `fixed` was optimized when it was converted, one of `runtime` has that saved for the device.
    `aligned` says whether every tensor of the model lies where any processor can read it; if not, none is read in
    place unless the buildspec says so.
    """
    made = DEFAULTS.replaced_by(chosen)
    load = made.load or "map"
    in_place = aligned if made.in_place is None else made.in_place
    return SessionSettings(
        load=load,
        threads=made.threads or 1,
        branches=made.branches or 1,
        allow_spinning=bool(made.spinning),
        arena=bool(made.arena),
        memory_pattern=bool(made.memory_pattern),
        optimization_level="none" if style == "fixed" else "all",
        configuration=(
            *((DIRECTLY,) if load != "file" else ()),
            *((IN_PLACE,) if load != "file" and in_place else ()),
            *(() if made.prepacking else (NO_PREPACKING,)),
        ),
    )


def as_the_official(settings: SessionSettings) -> SessionSettings:
    """Return what the official library is measured with: the same threads, and for the rest what it does unasked.

    That is what an application has before it takes a trimmed library; its model in ONNX format cannot be used in place.
    """
    return replace(
        settings,
        load="file",
        allow_spinning=True,
        arena=True,
        memory_pattern=True,
        optimization_level=None,
        configuration=(),
    )


def session_json(ort_version: str, models: Mapping[str, SessionSettings]) -> str:
    """Return the text of `session.json`, for the models by their names."""
    sessions = {name: _model_session(name, settings) for name, settings in models.items()}
    return to_json(SessionFile(onnxruntime=ort_version, models=sessions))


def _model_session(name: str, settings: SessionSettings) -> ModelSession:
    spinning = dict.fromkeys(SPINNING, str(int(settings.allow_spinning)))
    return ModelSession(
        file=f"{name}.ort",
        load=settings.load,
        intra_op_num_threads=settings.threads,
        inter_op_num_threads=settings.branches,
        execution_mode="ORT_PARALLEL" if settings.branches > 1 else "ORT_SEQUENTIAL",
        graph_optimization_level="ORT_DISABLE_ALL" if settings.optimization_level == "none" else "ORT_ENABLE_ALL",
        enable_cpu_mem_arena=settings.arena,
        enable_mem_pattern=settings.memory_pattern,
        session_configuration=spinning | dict(settings.configuration),
    )
