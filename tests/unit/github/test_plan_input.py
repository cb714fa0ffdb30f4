"""What travels of a plan: enough to decide it again, nothing of the models, and no word that anybody could run."""

import base64
import json
import lzma
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refusing
from operator_strategies import required_sets
from ortrim.base.console import Console
from ortrim.base.json import to_canonical_json, to_data
from ortrim.buildspec.buildspec import AndroidSpec, AppleSpec, Budgets, BuildOptionChoices, SessionSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildPlan, digest
from ortrim.errors import ExitCode, PlanError
from ortrim.github import plan_input
from ortrim.github.plan_input import (
    LARGEST,
    MOST_CHARACTERS,
    MOST_OUTPUT_CHARACTERS,
    HandedInput,
    decode,
    encode,
    handed_toolchains,
    plan_again,
    remote_payload,
)
from ortrim.models.operators import EMPTY, OperatorId, required_operators
from ortrim.planning.planned import decide
from ortrim.planning.planner import PlanInput
from ortrim.sources.sources import SourceTree
from sample_plans import MODELS, SOURCES, sample_input, sample_plan, sample_target, system_gcc

GIVEN = sample_input()
PLAN = sample_plan()
TEXT = encode(GIVEN, PLAN)


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Console:
    tree = SourceTree(folder=tmp_path, kind="upstream", pins=SOURCES, notes=())
    monkeypatch.setattr(plan_input, "fetch_sources", lambda *_, **__: tree)
    return Console(quiet=True)


def planned(given: PlanInput) -> BuildPlan:
    """Return the plan that this ortrim makes of an input for GitHub's machines, as it travels."""
    plan = decide(given, handed_toolchains(given.spec), SOURCES)
    return remote_payload(plan, plan.targets)


def packed(content: bytes, **options: Any) -> str:
    """Return bytes as a text of the right form, whatever they are."""
    return base64.urlsafe_b64encode(lzma.compress(content, **options)).rstrip(b"=").decode()


def changed(change: Callable[[Any], object], text: str = TEXT) -> str:
    data = to_data(decode(text))
    change(data)
    return packed(json.dumps(data, sort_keys=True, separators=(",", ":")).encode())


def refused(text: str, code: str) -> PlanError:
    error = refusing.refused(PlanError, decode, text)
    assert (error.code, error.exit_code) == (code, ExitCode.PLAN)
    assert error.__cause__ is None
    return error


def outcome(text: str) -> HandedInput | str:
    try:
        return decode(text)
    except PlanError as error:
        return error.code


@pytest.mark.parametrize("identifier", TARGETS)
def test_every_target_is_planned_again(identifier: str, console: Console) -> None:
    """To the last word, by which the digests of jobs are the same on both machines."""
    sample = sample_input(selected=(sample_target(identifier),))
    plan, tree = plan_again(encode(sample, planned(sample)), console)
    assert plan == planned(sample)
    assert tree.pins == SOURCES


@pytest.mark.parametrize(
    ("identifier", "changes"),
    [
        ("linux-x64", {"linkage": "static"}),
        ("linux-x64", {"profile": "upstream"}),
        ("linux-x64", {"profile": "upstream", "build_options": BuildOptionChoices(icf=True)}),
        ("linux-x64", {"build_options": BuildOptionChoices(api=("inference", "GetBoundOutputNames"))}),
        ("linux-x64", {"exceptions": True}),
        ("linux-x64", {"unused_types": ("float8",), "hot_operators": ("ai.onnx:Gemm",)}),
        ("linux-x64", {"models": tuple(replace(model, layout="nchwc8") for model in MODELS)}),
        ("android-x86_64", {"android": AndroidSpec(api=30, stl="c++_shared")}),
        ("android-arm64-v8a", {"android": AndroidSpec(toolchain="zig")}),
        ("ios-arm64", {"apple": AppleSpec(ios_deployment_target="17.0", framework="static", xcode="17.0.1")}),
    ],
)
def test_what_a_buildspec_may_choose_is_planned_again(
    identifier: str, changes: dict[str, Any], console: Console
) -> None:
    """Choices that are the user's are not taken for differences."""
    sample = sample_input(selected=(sample_target(identifier),), **changes)
    assert plan_again(encode(sample, planned(sample)), console)[0] == planned(sample)


def test_models_in_two_layouts_are_planned_again(console: Console) -> None:
    """Targets that run NCHWc layout get those contents, the others the common ones."""
    both = tuple(map(sample_target, ("linux-x64", "linux-riscv64")))
    sample = sample_input(selected=both)
    laid_out = replace(sample.contents, models=tuple(replace(model, layout="nchwc8") for model in MODELS))
    sample = replace(sample, nchwc=laid_out)
    plan, _ = plan_again(encode(sample, planned(sample)), console)
    assert [target.job.nchwc_block_size for target in plan.targets] == [8, 0]


def test_nothing_of_the_models_travels() -> None:
    """No name, no digest, not how many there are; no budget and no session."""
    secret = tuple(
        replace(MODELS[0], name=name, given_sha256="9" * 64, steps=("rename",)) for name in ("private", "other")
    )
    sample = sample_input(models=secret, budgets=Budgets(library_bytes=4711), session=SessionSpec(threads=17))
    sample = replace(sample, nchwc=sample.contents)
    plan = replace(sample_plan(models=secret), nchwc_models=secret)
    sent = remote_payload(plan, plan.targets)
    text = to_canonical_json(decode(encode(sample, sent))) + to_canonical_json(sent)
    assert [
        word for word in ("private", "other", "tiny", "rename", *(9 * n for n in "1239"), "4711", "17,") if word in text
    ] == []
    assert len(decode(encode(sample, sent)).given.contents.models) == 1


def test_only_the_targets_that_are_asked_for_travel() -> None:
    """With the digests of their jobs, by which what comes home is known."""
    both = tuple(map(sample_target, ("linux-x64", "android-arm64-v8a")))
    plan = sample_plan(selected=both, budgets=Budgets(library_bytes=4711))
    sent = remote_payload(plan, plan.targets[:1])
    assert digest(sent.targets[0].job) == digest(plan.targets[0].job)
    text = encode(sample_input(selected=both), sent)
    assert [target.id for target in decode(text).given.spec.targets] == ["linux-x64"]


LOCAL = tuple(replace(source, kind="path") for source in SOURCES)


@pytest.mark.parametrize(
    ("plan", "why"),
    [(sample_plan(sources=LOCAL), "folder of this machine"), (sample_plan(toolchain=system_gcc()), "gcc")],
)
def test_what_only_this_machine_has_stays(plan: BuildPlan, why: str) -> None:
    """With the key of the buildspec that says so."""
    error = refusing.refused(PlanError, remote_payload, plan, plan.targets)
    assert (error.code, error.exit_code) == ("plan-cannot-travel", ExitCode.PLAN)
    assert why in error.why
    assert "--executor github" in error.hint


def test_a_plan_of_another_ortrim_is_refused(console: Console) -> None:
    """By its version, and by whatever else it decides otherwise, such as with other hooks under the same version."""
    sample = sample_input()
    for plan, why in (
        (replace(planned(sample), ortrim_version="0.0.1"), "ortrim 0.0.1 made it"),
        (replace(PLAN, ortrim_version=installed_version("ortrim")), "decided otherwise here"),
    ):
        error = refusing.refused(PlanError, plan_again, encode(sample, plan), console)
        assert (error.code, error.exit_code) == ("plan-not-ours", ExitCode.PLAN)
        assert why in error.why


def in_spec(key: str, value: object) -> Callable[[Any], object]:
    return lambda data: data["given"]["spec"].update({key: value})


def in_target(key: str, value: object) -> Callable[[Any], object]:
    return lambda data: data["given"]["spec"]["targets"][0].update({key: value})


def in_contents(key: str, value: object) -> Callable[[Any], object]:
    return lambda data: data["given"]["contents"].update({key: value})


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(ortrim_version="1\n::set-env"),
        lambda data: data.update(plan_digest="../x"),
        in_spec("name", "../../x"),
        in_spec("name", "a b"),
        in_spec("name", ""),
        in_spec("profile", "mine"),
        in_spec("exceptions", "yes"),
        in_target("glibc", "2.28; id"),
        in_target("glibc", '2.28"'),
        in_target("glibc", "2.28\n"),
        in_target("cpu", "cortex-x; id"),
        in_target("linkage", "$(id)"),
        *(in_target("android", {"ndk": version}) for version in ("28.0.1-$(id)", "../../x", "27 ", "")),
        *(
            in_target("apple", {"ios_deployment_target": version})
            for version in ("15.1; id", '15.1"', "15.1\nid", "$(id)", "15", "")
        ),
        in_target("apple", {"xcode": "16.4; id"}),
        in_target("compiler", "sh"),
        in_spec("onnxruntime", {"version": "1.21.0; id", "source": "upstream", "path": None}),
        in_spec("onnxruntime", {"version": "1.21.0", "source": "git;id", "path": None}),
    ],
)
def test_a_word_that_no_buildspec_takes_is_refused(change: Callable[[Any], object]) -> None:
    """It would become part of scripts, arguments and paths; whoever may dispatch a workflow has no other way in."""
    refused(changed(change), "plan-other-schema")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_spec("targets", []), "no target"),
        (in_target("id", "linux-x65"), "targets[0].id"),
        (in_target("id", "../x"), "targets[0].id"),
        (in_target("cpu", "cortex-x"), "targets[0].cpu"),
        (in_spec("onnxruntime", {"version": "1.21.0", "source": "auto", "path": None}), "upstream, debian"),
        (in_spec("onnxruntime", {"version": "1.21.0", "source": "path", "path": "/etc"}), "upstream, debian"),
        *(
            (in_contents("hot_operators", ["ai.onnx:Gemm", name]), "hot_operators")
            for name in ("Conv", "", "ai.onnx:", "ai.onnx:Conv\n", "a b:Conv", "x:]==]", f"a:{'C' * 129}")
        ),
        *(
            (in_contents("unused_types", ["float8", word]), "unused_types")
            for word in ("--cmake_extra_defines", "float8 sparsetensor", "$(id)")
        ),
        (lambda data: data["given"]["contents"]["models"][0].update(name="x\n::stop"), "names"),
    ],
)
def test_what_no_buildspec_and_no_model_comes_to_is_refused(change: Callable[[Any], object], why: str) -> None:
    """Although its type is right."""
    error = refused(changed(change), "plan-not-ours")
    assert why in error.why


@pytest.mark.parametrize("name", ["Gemm\n!no_ops_specified_means_all_ops", "Gemm;id", "Gemm,Conv", "", 'G{"x": 1}'])
def test_an_operator_that_a_configuration_cannot_name_is_refused(name: str) -> None:
    """The configuration is read by upstream's scripts."""
    operators = required_operators([OperatorId(domain="ai.onnx", opset=13, name=name)])
    refused(changed(in_contents("operators", to_data(operators))), "plan-not-ours")


def test_a_layout_below_its_processor_is_refused(console: Console) -> None:
    """The library would end on one without AVX-512."""
    wide = changed(
        lambda data: data["given"]["contents"]["models"][0].update(layout="nchwc16"), encode(GIVEN, planned(GIVEN))
    )
    assert refusing.refused(PlanError, plan_again, wide, console).code == "layout-elsewhere"


def test_a_compiler_of_another_machine_is_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what its gcc was."""
    monkeypatch.setattr(plan_input, "handed_toolchains", lambda _: {"linux-x64": system_gcc()})
    error = refusing.refused(PlanError, plan_again, encode(GIVEN, planned_by_gcc()), console)
    assert error.code == "plan-cannot-travel"


def planned_by_gcc() -> BuildPlan:
    return replace(decide(GIVEN, {"linux-x64": system_gcc()}, SOURCES), models=())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(required_sets)
def test_any_operators_come_back(operators: Any) -> None:
    """Whatever a plan asks for, the text is made of safe characters and gives it back."""
    text = encode(sample_input(operators=operators), PLAN)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert decode(text).given.contents.operators == operators


def test_the_same_input_gives_the_same_text() -> None:
    """So that a dispatch can be compared with another."""
    assert encode(sample_input(), sample_plan()) == TEXT
    assert encode(sample_input(), replace(PLAN, spec_name="other")) != TEXT


def test_many_targets_fit() -> None:
    """What targets have in common is written once."""
    many = tuple(sample_target(name) for name in TARGETS)
    assert len(encode(sample_input(selected=many), sample_plan(selected=many))) < 2 * len(TEXT)


def test_what_does_not_fit_is_refused() -> None:
    """Before it is sent; the hint says how to make it smaller."""
    names = [OperatorId(domain="ai.onnx", opset=1, name=f"A{abs(hash((7, n)))}") for n in range(7000)]
    large = sample_input(operators=required_operators(names))
    error = refusing.refused(PlanError, encode, large, PLAN)
    assert error.code == "plan-too-large"
    assert "--target" in error.hint
    assert decode(encode(large, PLAN, MOST_OUTPUT_CHARACTERS)).given.contents.operators == large.contents.operators


def test_a_text_longer_than_any_dispatch_is_not_even_unpacked() -> None:
    """GitHub would not have carried it."""
    refused("A" * (MOST_OUTPUT_CHARACTERS + 1), "plan-too-large")


def test_a_bomb_does_not_go_off() -> None:
    """It is unpacked no further than a plan may be, in memory to match."""
    bomb = packed(b" " * (64 << 20), preset=0)
    assert len(bomb) < MOST_CHARACTERS
    tracemalloc.start()
    refused(bomb, "plan-too-large")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LARGEST


def test_a_dictionary_without_bounds_is_refused() -> None:
    """The decoder would set aside what the stream's header claims."""
    greedy = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    refused(packed(b"{}", filters=greedy), "plan-damaged")


@pytest.mark.parametrize(
    "text",
    [
        "", "=", "A", "not base64!", TEXT + "\n", TEXT[:-5], TEXT + "AAAA", "AAAA" + TEXT, TEXT + TEXT, TEXT + "ä",
        TEXT.replace("-", "+").replace("_", "/") + "+", packed(b"{}", format=lzma.FORMAT_ALONE),
        base64.urlsafe_b64encode(to_canonical_json(PLAN).encode()[:900]).decode(),
    ],
)  # fmt: skip
def test_what_is_no_such_text_is_refused(text: str) -> None:
    """Cut short, with something added, of other characters or another packing."""
    refused(text, "plan-damaged")


@given(st.integers(0, len(TEXT) - 1), st.sampled_from("AZaz09-_"))
def test_a_changed_character_is_noticed(place: int, character: str) -> None:
    """The checksum in the stream tells; a change that it cannot see changes nothing."""
    text = TEXT[:place] + character + TEXT[place + 1 :]
    assert outcome(text) in (decode(TEXT), "plan-damaged", "plan-other-schema")


@given(st.integers(0, len(TEXT) - 1))
def test_a_text_cut_anywhere_is_refused(length: int) -> None:
    refused(TEXT[:length], "plan-damaged")


@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    refused(text, "plan-damaged")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.update(schema="ortrim-plan/1"), "another schema"),
        (lambda data: data.pop("schema"), "does not know"),
        (lambda data: data.pop("given"), "given"),
        (lambda data: data.update(newcomer=1), "does not know"),
        (in_spec("newcomer", 1), "given.spec.newcomer"),
        (in_contents("newcomer", 1), "does not know"),
        (in_contents("operators", to_data(EMPTY) | {"operators": None}), "given.contents.operators.operators"),
    ],
)
def test_an_input_of_another_version_is_refused(change: Callable[[Any], object], told: str) -> None:
    """More, less or other than this version writes; what was written is not repeated."""
    assert told in refused(changed(change), "plan-other-schema").why


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 500_000, b'{"schema": 1}', b"NaN"])
def test_what_is_no_input_is_refused(content: bytes) -> None:
    refused(packed(content), "plan-other-schema")


def test_blanks_are_not_what_a_writer_writes() -> None:
    """One input has one text inside."""
    refused(packed(json.dumps(to_data(decode(TEXT))).encode()), "plan-other-schema")
