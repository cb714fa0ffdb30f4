"""Cuts GitHub's own description of its API down to what ortrim asks for: how `github-openapi.json` is made."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

OPERATIONS: Final = {
    "/repos/{owner}/{repo}": ("get",),
    "/repos/{owner}/{repo}/branches/{branch}": ("get",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches": ("post",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs": ("get",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}": ("get",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs": ("get",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts": ("get",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}/cancel": ("post",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}/force-cancel": ("post",),
    "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs": ("get",),
    "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": ("get",),
    "/repos/{owner}/{repo}/releases": ("get",),
    "/repos/{owner}/{repo}/releases/latest": ("get",),
    "/repos/{owner}/{repo}/releases/tags/{tag}": ("get",),
    "/repos/{owner}/{repo}/releases/{release_id}/assets": ("get",),
    "/repos/{owner}/{repo}/releases/assets/{asset_id}": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}": ("get",),
    "/repos/{owner}/{repo}/attestations/{subject_digest}": ("get",),
}
EXAMPLES: Final = (
    *("workflow-run", "job-paginated", "artifact", "release", "release-asset", "commit"),
    *("full-repository-default-response", "branch-get"),
)
"""Whose examples are kept: the stand-in fills its answers up with them."""
WORDS: Final = frozenset({"description", "summary", "title", "externalDocs", "tags", "example", "operationId"})


def trimmed(whole: Any) -> dict[str, Any]:
    """Return the operations and everything that they refer to."""
    paths = {
        path: {verb: _plain(whole["paths"][path][verb]) for verb in verbs if verb in whole["paths"][path]}
        for path, verbs in OPERATIONS.items()
    }
    origin = {name: whole["info"][name] for name in ("license", "title", "version")}
    kept: dict[str, Any] = {"info": origin, "paths": paths, "components": {}}
    todo = [*_references(paths), *(f"#/components/examples/{name}" for name in EXAMPLES)]
    while todo:
        _, _, kind, name = todo.pop().split("/")
        place = kept["components"].setdefault(kind, {})
        if name not in place and name in whole["components"].get(kind, {}):
            found = whole["components"][kind][name]
            place[name] = found if kind == "examples" else _plain(found)
            todo += [] if kind == "examples" else _references(place[name])
    return kept


def _plain(node: Any) -> Any:
    """Return a part without words and examples, with null where it may be null."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: {name: _plain(each) for name, each in value.items()} if key == "properties" else _plain(value)
        for key, value in node.items()
        if key == "properties" or not (key in WORDS | {"examples"} or key.startswith("x-"))
    }
    if not kept.pop("nullable", False):
        return kept
    if "enum" in kept and None not in kept["enum"]:
        kept["enum"] = [*kept["enum"], None]
    if isinstance(kept.get("type"), str):
        return {**kept, "type": [kept["type"], "null"]}
    return {"anyOf": [kept, {"type": "null"}]}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)


if __name__ == "__main__":
    print(json.dumps(trimmed(json.loads(Path(sys.argv[1]).read_bytes())), sort_keys=True, indent=1))  # noqa: T201
