"""Where new pins come from, on this machine: repositories of actions, Google's list of the SDK, a docker, and `gh`."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import gh_program
from fake_programs import FakePrograms
from ortrim.pins.shipped import action_pins, image_pins
from ortrim.sources.commits import git
from program_files import write_program
from upstream_likeness import served

DIGEST: Final = f"sha256:{'a' * 64}"
PACKAGE: Final = (
    '<remotePackage path="{path}"><archives><archive><complete><checksum>{sha1}</checksum><url>{file}</url></complete>'
    "<host-os>linux</host-os></archive></archives></remotePackage>"
)
REDIRECTED: Final = """\
import json, os
if os.environ.get("REDIRECTED"):
    from requests.adapters import HTTPAdapter
    addresses, send = json.loads(os.environ["REDIRECTED"]), HTTPAdapter.send
    def elsewhere(self, request, **options):
        for prefix, place in addresses:
            if request.url.startswith(prefix):
                request.url = place + request.url[len(prefix):]
                break
        return send(self, request, **options)
    HTTPAdapter.send = elsewhere
"""
"""Reads addresses at another place, as a network with stand-ins would."""


def add_hub(
    programs: FakePrograms, state: Path, tags: tuple[str, ...] = (), signed: tuple[str, ...] = ()
) -> dict[str, str]:
    """Add a `gh`, and a docker that knows one digest; return the environment of a `gh` that keeps its state there."""
    programs.add("docker")
    programs.answer("docker", "--version", stdout="Docker version 28.0.1, build abc\n")
    programs.answer("docker", "info", stdout="28.0.1 [name=seccomp]\n")
    programs.answer("docker", stdout=f"python@{DIGEST}\n")
    write_program(programs.folder / "bin" / "gh", f'exec "{sys.executable}" "{gh_program.__file__}" "$@"')
    return {"GH_STAND_IN": str(state), "GH_STAND_IN_TAGS": " ".join(tags), "GH_STAND_IN_SIGNED": " ".join(signed)}


def repositories(folder: Path, *, untagged: str = "") -> Path:
    """Make a repository for each pinned action, and return git's settings that lead to them."""
    for name in action_pins():
        path = folder / name
        path.mkdir(parents=True)
        git(path, "init", "--quiet")
        own = ("-c", "user.name=x", "-c", "user.email=x@y")
        git(path, *own, "commit", "--quiet", "--allow-empty", "--message", "one")
        if name != untagged:
            git(path, "tag", "v99.0.0")
    settings = folder / "settings"
    settings.write_text(f'[url "{folder}/"]\n\tinsteadOf = https://github.com/\n')
    return settings


@contextmanager
def googles_list(folder: Path) -> Iterator[str]:
    """Serve a list of the SDK's packages, and the packages, which are small; give the server's address."""
    folder.mkdir()
    entries = []
    for number, package in enumerate(image_pins().archives):
        content = package.encode()
        (folder / f"{number}.zip").write_bytes(content)
        digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        entries.append(PACKAGE.format(path=package, sha1=digest, file=f"{number}.zip"))
    (folder / "repository2-3.xml").write_text(f"<list>{''.join(entries)}</list>")
    with served(folder) as port:
        yield f"http://127.0.0.1:{port}"
