"""A stand-in for GitHub's program `gh`: takes the words that the real one takes, refuses others, keeps what it is told.

Words, exit codes (1 for a failure, 4 without a login) and messages are those of gh 2.x, by its manual. What it keeps is
in the JSON file that `GH_STAND_IN` names, and no token is; files of releases lie in the folder beside it, `.files`.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

FIELDS = {"isDraft", "assets", "tagName", "name", "body"}
LISTED = {"isDraft", "tagName", "name"}


def fail(text: str, code: int = 1) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    raise SystemExit(code)


class Words(argparse.ArgumentParser):
    """Words that are not known end the program with 1, as in the real one."""

    def error(self, message: str) -> NoReturn:
        fail(f"{message}\n\nUsage:  {self.prog}")


def release_create(state: dict[str, Any], words: argparse.Namespace) -> None:
    if words.verify_tag and words.tag not in os.environ.get("GH_STAND_IN_TAGS", "").split():
        fail(f"tag {words.tag} doesn't exist in the repo octo/ort, aborting due to --verify-tag flag")
    if words.tag in state["releases"]:
        fail("HTTP 422: Validation Failed\nRelease.tag_name already exists")
    assets = []
    for file in words.files:
        if not Path(file).is_file():
            fail(f"no matches found for `{file}`")
        kept = Path(os.environ["GH_STAND_IN"]).with_suffix(".files")
        kept.mkdir(exist_ok=True)
        shutil.copyfile(file, kept / Path(file).name)
        assets.append({"name": Path(file).name, "size": Path(file).stat().st_size})
    names = [asset["name"] for asset in assets]
    if len(set(names)) != len(names):
        fail("HTTP 422: Validation Failed\nReleaseAsset.name already exists")
    notes = Path(words.notes_file).read_text(encoding="utf-8")
    state["releases"][words.tag] = {
        "tagName": words.tag, "name": words.title, "body": notes, "isDraft": words.draft, "assets": assets
    }  # fmt: skip
    sys.stdout.write(f"https://github.com/octo/ort/releases/tag/{words.tag}\n")


def release_list(state: dict[str, Any], words: argparse.Namespace) -> None:
    unknown = set(words.json.split(",")) - LISTED
    if unknown:
        fail(f"Unknown JSON field: {min(unknown)!r}")
    found = [{name: release[name] for name in words.json.split(",")} for release in state["releases"].values()]
    sys.stdout.write(json.dumps(found[: words.limit]) + "\n")


def release_delete(state: dict[str, Any], words: argparse.Namespace) -> None:
    if not words.yes:
        fail("--yes required when not running interactively")
    if state["releases"].pop(words.tag, None) is None:
        fail("release not found")


def release_view(state: dict[str, Any], words: argparse.Namespace) -> None:
    unknown = set(words.json.split(",")) - FIELDS
    if unknown:
        fail(f"Unknown JSON field: {min(unknown)!r}")
    release = state["releases"].get(words.tag) or fail("release not found")
    sys.stdout.write(json.dumps({name: release[name] for name in words.json.split(",")}) + "\n")


def release_edit(state: dict[str, Any], words: argparse.Namespace) -> None:
    release = state["releases"].get(words.tag) or fail("release not found")
    release["isDraft"] = words.draft == "true"


def pr_create(state: dict[str, Any], words: argparse.Namespace) -> None:
    if any(each["head"] == words.head for each in state["pulls"]):
        fail(f"a pull request for branch {words.head!r} into branch 'main' already exists")
    body = Path(words.body_file).read_text(encoding="utf-8")
    if len(body) > 65536:
        fail("GraphQL: Body is too long (maximum is 65536 characters) (createPullRequest)")
    state["pulls"].append({"head": words.head, "title": words.title, "body": body})
    sys.stdout.write(f"https://github.com/octo/ort/pull/{len(state['pulls'])}\n")


def api(state: dict[str, Any], words: argparse.Namespace) -> None:
    """Answer for annotated tags, of which some are signed; their ids are their names."""
    kind, _, name = words.path.removeprefix("repos/{owner}/{repo}/git/").rpartition("/")
    known = os.environ.get("GH_STAND_IN_TAGS", "").split()
    if kind == "ref/tags" and name in known:
        answer = {"ref": f"refs/tags/{name}", "object": {"type": "tag", "sha": name.encode().hex().zfill(40)}}
    elif kind == "tags":
        tag = bytes.fromhex(name).strip(b"\0").decode()
        is_signed = tag in os.environ.get("GH_STAND_IN_SIGNED", "").split()
        reason = "valid" if is_signed else "unsigned"
        answer = {"tag": tag, "verification": {"verified": is_signed, "reason": reason}}
    else:
        fail('{"message":"Not Found","status":"404"}gh: Not Found (HTTP 404)')
    sys.stdout.write(json.dumps(answer))


def parser() -> argparse.ArgumentParser:
    """Return the words that ortrim may use, with the spelling of the manual."""
    top = Words(prog="gh", allow_abbrev=False)
    groups = top.add_subparsers(required=True, parser_class=Words)
    release = groups.add_parser("release", allow_abbrev=False).add_subparsers(required=True, parser_class=Words)
    create = release.add_parser("create", allow_abbrev=False)
    create.set_defaults(action=release_create)
    for name in ("--draft", "--prerelease", "--verify-tag", "--generate-notes"):
        create.add_argument(name, action="store_true")
    for name in ("--title", "--notes-file", "--target"):
        create.add_argument(name, default="")
    create.add_argument("tag")
    create.add_argument("files", nargs="*")
    view = release.add_parser("view", allow_abbrev=False)
    view.set_defaults(action=release_view)
    view.add_argument("--json", required=True)
    view.add_argument("tag")
    listed = release.add_parser("list", allow_abbrev=False)
    listed.set_defaults(action=release_list)
    listed.add_argument("--json", required=True)
    listed.add_argument("--limit", type=int, default=30)
    delete = release.add_parser("delete", allow_abbrev=False)
    delete.set_defaults(action=release_delete)
    delete.add_argument("--yes", action="store_true")
    delete.add_argument("tag")
    edit = release.add_parser("edit", allow_abbrev=False)
    edit.set_defaults(action=release_edit)
    edit.add_argument("--draft", choices=("true", "false"), required=True)
    edit.add_argument("tag")
    asked = groups.add_parser("api", allow_abbrev=False)
    asked.set_defaults(action=api)
    asked.add_argument("path")
    pull = groups.add_parser("pr", allow_abbrev=False).add_subparsers(required=True, parser_class=Words)
    request = pull.add_parser("create", allow_abbrev=False)
    request.set_defaults(action=pr_create)
    for name in ("--head", "--title", "--body-file"):
        request.add_argument(name, required=True)
    return top


def main() -> None:
    if not os.environ.get("GH_TOKEN"):
        fail("To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable.", 4)
    words, more = parser().parse_known_args()
    flags = [word for word in more if word.startswith("-")]
    if flags or (more and words.action is not release_create):
        fail(f"unknown flag: {flags[0]}" if flags else f"accepts 1 arg(s), received {1 + len(more)}")
    if more:
        words.files += more
    path = Path(os.environ["GH_STAND_IN"])
    state = json.loads(path.read_text()) if path.exists() else {"releases": {}, "pulls": []}
    words.action(state, words)
    path.write_text(json.dumps(state))


if __name__ == "__main__":
    main()
