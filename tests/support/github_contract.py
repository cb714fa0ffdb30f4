"""GitHub's own description of its API, against which what is asked and what is answered are both checked."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

DESCRIPTION: Final = Path(__file__).parents[1] / "integration" / "data" / "github-openapi.json"
NAME: Final = "urn:github"


@cache
def description() -> Any:
    return json.loads(DESCRIPTION.read_bytes())


@cache
def example(name: str) -> dict[str, Any]:
    """Return the description's example of a schema: what the stand-in fills its answers up with."""
    found: dict[str, Any] = description()["components"]["examples"][name]["value"]
    return found


@cache
def _registry() -> Registry[Any]:
    resource = Resource.from_contents(description(), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource(NAME, resource)
    return registry


def objections(schema: Any, value: Any) -> list[str]:
    validator = Draft202012Validator(_absolute(schema), registry=_registry())
    return [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message[-200:]}" for error in validator.iter_errors(value)
    ]


def _absolute(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: NAME + each if key == "$ref" else _absolute(each) for key, each in schema.items()}
    return [_absolute(each) for each in schema] if isinstance(schema, list) else schema


def _resolved(node: Any) -> Any:
    if "$ref" not in node:
        return node
    _, _, kind, name = node["$ref"].split("/")
    return description()["components"][kind][name]


def operation(method: str, path: str) -> Any:
    for template, verbs in description()["paths"].items():
        pattern = re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in verbs:
            return verbs[method.lower()]
    return None


def request_objections(method: str, path: str, query: str, body: bytes) -> list[str]:
    asked = operation(method, path)
    if asked is None:
        return [f"there is no {method} {path}"]
    known = {each["name"]: each for each in map(_resolved, asked.get("parameters", ())) if each["in"] == "query"}
    found = [f"unknown parameter {name}" for name in parse_qs(query) if name not in known]
    for name, values in parse_qs(query).items():
        if name in known:
            found += objections(known[name]["schema"], _typed(known[name]["schema"], values[0]))
    return [*found, *_body_objections(_resolved(asked.get("requestBody", {})), body)]


def _body_objections(wanted: Any, body: bytes) -> list[str]:
    content = wanted.get("content", {}).get("application/json")
    if not body:
        return ["no body, and one is required"] if wanted.get("required") else []
    return objections(content["schema"], json.loads(body)) if content else ["a body that nobody asks for"]


def _typed(schema: Mapping[str, Any], text: str) -> Any:
    return int(text) if schema.get("type") == "integer" and text.isdigit() else text


def answer_objections(method: str, path: str, status: int, body: bytes) -> list[str]:
    """Return what the description has against an answer; it leaves out most refusals."""
    answers = (operation(method, path) or {}).get("responses", {})
    if str(status) not in answers and status >= 400:
        return []
    if str(status) not in answers:
        return [f"{method} {path} never answers {status}"]
    content = _resolved(answers[str(status)]).get("content", {}).get("application/json")
    return objections(content["schema"], json.loads(body)) if content and body else []
