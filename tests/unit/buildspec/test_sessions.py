"""Session settings: what a buildspec's choices come to, and `session.json`."""

import json

import pytest

from ortrim.buildspec.buildspec import (
    DIRECTLY,
    IN_PLACE,
    BuildSpec,
    ModelSpec,
    SessionSettings,
    SessionSpec,
    as_the_official,
    session_json,
    session_of,
    settings_of,
)

CONTRARY = SessionSpec(
    load="bytes", in_place=False, prepacking=False, arena=False, memory_pattern=False, threads=4, inter_op_threads=2,
    spinning=True,
)  # fmt: skip


def chosen(choices: SessionSpec, *, style: str = "fixed", reads_in_place: bool = True) -> SessionSettings:
    return settings_of(choices, style=style, reads_in_place=reads_in_place)


def test_by_default_a_model_is_mapped_and_its_weights_stay_in_place() -> None:
    """One thread that does not spin, with all that shortens runs."""
    assert chosen(SessionSpec()) == SessionSettings(
        load="map", optimization_level="none", configuration=(DIRECTLY, IN_PLACE)
    )


def test_weights_that_cannot_stay_are_copied_unless_the_buildspec_says_otherwise() -> None:
    """ARMv7 faults on crooked ones, and no ONNX Runtime makes sparse ones dense there."""
    assert IN_PLACE not in chosen(SessionSpec(), reads_in_place=False).configuration
    assert IN_PLACE in chosen(SessionSpec(in_place=True), reads_in_place=False).configuration


def test_every_choice_is_heard() -> None:
    assert chosen(CONTRARY) == SessionSettings(
        load="bytes",
        threads=4,
        inter_op_threads=2,
        allow_spinning=True,
        arena=False,
        memory_pattern=False,
        optimization_level="none",
        configuration=(DIRECTLY, ("session.disable_prepacking", "1")),
    )


def test_what_the_runtime_reads_itself_is_never_used_in_place() -> None:
    assert chosen(SessionSpec(load="file")).configuration == ()


def test_a_models_own_choice_replaces_the_buildspecs() -> None:
    model = ModelSpec(name="m", session=SessionSpec(threads=2))
    spec = BuildSpec(name="s", session=SessionSpec(threads=4, arena=False), models=(model, ModelSpec(name="n")))
    assert [session_of(spec, each) for each in spec.models] == [SessionSpec(threads=2, arena=False), spec.session]


@pytest.mark.parametrize("choices", [SessionSpec(threads=4), CONTRARY, SessionSpec(threads=4, spinning=False)])
def test_the_official_library_has_the_same_threads_and_else_its_own_defaults(choices: SessionSpec) -> None:
    """It is what an application has before: its threads spin, whatever ours do."""
    official = as_the_official(chosen(choices))
    assert official == SessionSettings(threads=4, inter_op_threads=choices.inter_op_threads or 1, allow_spinning=True)


def test_the_file_speaks_onnx_runtimes_own_words() -> None:
    """An application applies them literally."""
    document = json.loads(session_json("1.21.0", {"vad": chosen(SessionSpec())}))
    assert document == {
        "schema": "ortrim-session/1",
        "onnxruntime": "1.21.0",
        "models": {
            "vad": {
                "file": "vad.ort",
                "load": "map",
                "intra_op_num_threads": 1,
                "inter_op_num_threads": 1,
                "execution_mode": "ORT_SEQUENTIAL",
                "graph_optimization_level": "ORT_DISABLE_ALL",
                "enable_cpu_mem_arena": True,
                "enable_mem_pattern": True,
                "session_configuration": {
                    "session.intra_op.allow_spinning": "0",
                    "session.inter_op.allow_spinning": "0",
                    "session.use_ort_model_bytes_directly": "1",
                    "session.use_ort_model_bytes_for_initializers": "1",
                },
            }
        },
    }


@pytest.mark.parametrize(("inter_op_threads", "mode"), [(1, "ORT_SEQUENTIAL"), (2, "ORT_PARALLEL")])
def test_branches_need_the_parallel_mode(inter_op_threads: int, mode: str) -> None:
    """In the sequential one, threads between operators would idle."""
    settings = chosen(SessionSpec(inter_op_threads=inter_op_threads))
    (model,) = json.loads(session_json("1.21.0", {"vad": settings}))["models"].values()
    assert (model["execution_mode"], model["inter_op_num_threads"]) == (mode, inter_op_threads)


@pytest.mark.parametrize(("style", "level"), [("fixed", "ORT_DISABLE_ALL"), ("runtime", "ORT_ENABLE_ALL")])
def test_saved_optimizations_are_applied_on_the_device(style: str, level: str) -> None:
    (model,) = json.loads(session_json("1.21.0", {"vad": chosen(SessionSpec(), style=style)}))["models"].values()
    assert model["graph_optimization_level"] == level
