"""The JSON Schema and the reference agree with the reader, and the shipped buildspecs with both."""

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

import ortrim.buildspec
import ortrim.platforms
from buildspec_reference import ERROR_CODES, EXAMPLE, render_reference
from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.schema import buildspec_schema, known_keys
from ortrim.buildspec.targets import TARGETS
from ortrim.platforms import target_problems

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(path for path in (ROOT / "buildspecs").glob("*.toml") if ".hot" not in path.suffixes)


def test_the_schema_is_a_schema() -> None:
    """The export is JSON Schema 2020-12 without an `$id`, and each key is described."""
    schema = buildspec_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in schema
    tables = [schema, *schema["$defs"].values()]
    assert all(node["description"] for table in tables for node in table["properties"].values())


def test_the_schema_says_what_toml_can_say() -> None:
    schema = buildspec_schema()
    assert "null" not in str(schema)
    assert schema["required"] == ["models"]
    assert schema["$defs"]["TargetSpec"]["properties"]["id"]["enum"] == list(TARGETS)


@pytest.mark.parametrize("key", ["zzz", "name", "targets"])
def test_the_schema_refuses_what_the_reader_refuses(key: str) -> None:
    document = {"models": [{"name": "m", "path": "m.onnx"}]}
    validator = jsonschema.Draft202012Validator(buildspec_schema())
    assert validator.is_valid(document)
    assert not validator.is_valid({**document, key: 1})


def test_known_keys_follow_the_document() -> None:
    assert known_keys(("models", 0, "cases", 7, "inputs", "sr")) == (
        "shape", "value", "choices", "low", "high", "count_from",
    )  # fmt: skip
    assert known_keys(("models", 0, "cases", 7, "inputs")) == ()
    assert known_keys(("no", "such", 3, "place")) == ()


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_buildspecs_are_valid(file: Path) -> None:
    jsonschema.validate(tomllib.loads(file.read_text()), buildspec_schema())
    loaded = load_spec(file, target_problems)
    assert loaded.name == file.stem
    assert [target.id for target in loaded.targets] == list(TARGETS)
    assert all(len(model.cases) >= 3 for model in loaded.models)


def test_there_are_shipped_buildspecs() -> None:
    assert [file.stem for file in SHIPPED] == ["multi-model", "silero-vad", "transformer"]


def test_the_reference_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "buildspec.md"
    if os.environ.get("ORTRIM_WRITE_DOCS"):
        page.write_text(render_reference(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == render_reference()


def test_the_example_of_the_reference_loads(load: Callable[[str], LoadedSpec], folder: Path) -> None:
    (folder / "keyword.onnx").touch()
    assert load(EXAMPLE).models[0].cases[0].dimensions == {"batch": 1, "samples": 16000}


def test_every_problem_is_documented() -> None:
    spec, platforms = Path(ortrim.buildspec.__path__[0]), Path(ortrim.platforms.__path__[0])
    source = "".join(file.read_text() for file in spec.glob("*.py"))
    used = re.findall(r'(?:Problem\(|code = |else |SpecError\(|return )"([a-z0-9]+(?:-[a-z0-9]+)+)"', source)
    for file in platforms.glob("*/platform.py"):
        used += re.findall(r'Problem\((?:code=)?"([a-z0-9-]+)"', file.read_text())
    assert set(used) == set(ERROR_CODES)
