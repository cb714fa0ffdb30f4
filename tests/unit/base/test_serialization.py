"""Core types to JSON and back."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from ortrim.base.checksums import FileEntry
from ortrim.base.json import from_json, to_canonical_json, to_data, to_json
from ortrim.compiling.plan import BuildPlan, Manifest, PlannedModel
from sample_plans import OPERATORS, sample_plan

MODEL = PlannedModel(
    name="grüße", onnx_sha256="1", ort_sha256="2", tests_sha256="3", style="fixed", level="extended"
)  # fmt: skip


def test_a_plan_comes_back_as_it_was() -> None:
    plan = sample_plan()
    assert from_json(BuildPlan, to_json(plan)) == plan
    assert from_json(BuildPlan, to_canonical_json(plan).encode()) == plan


def test_a_manifest_comes_back_as_it_was() -> None:
    plan = sample_plan()
    job = plan.targets[0].job
    manifest = Manifest(
        name="sample", target="linux-x64", ort_version="1.21.0", ortrim_version="0.1.0", plan_digest="d" * 64,
        profile="balanced", exceptions=False, minimum_glibc="2.28", cpuinfo=False, compiler="zig 0.17.0",
        tools=(("cmake", "3.31"),), arguments=job.arguments, operators=OPERATORS,
        models=plan.models, sources=job.sources, files=(FileEntry(path="lib/x.so", size_bytes=1, sha256="e" * 64),),
    )  # fmt: skip
    assert from_json(Manifest, to_json(manifest)) == manifest


def test_json_for_people_is_readable() -> None:
    text = to_json(MODEL)
    fields = ["name", "onnx_sha256", "ort_sha256", "tests_sha256", "style", "level", "layout", "session", "steps"]
    assert list(json.loads(text)) == [*fields, "given_sha256"]
    assert '"grüße"' in text
    assert text.endswith("}\n")


def test_canonical_json_depends_on_the_value_alone() -> None:
    text = to_canonical_json(MODEL)
    assert text.isascii()
    assert " " not in text
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert to_canonical_json(replace(MODEL)) == text != to_canonical_json(replace(MODEL, style="runtime"))


def test_a_tuple_of_values_is_a_list() -> None:
    """Tasks print several values as one document."""
    assert to_data((MODEL,)) == [to_data(MODEL)]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"name": 1}', b"\xff\xfe", '{"name": "a", "name": []}'])
def test_what_does_not_fit_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValidationError):
        from_json(PlannedModel, text)
