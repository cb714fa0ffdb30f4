"""New versions of ONNX Runtime: which there are, and what has to be known of each before it can be built."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.console import Console, Step
from ortrim.errors import Diagnostic, Interrupted, StorageError
from ortrim.github.addresses import API, Service, find_service
from ortrim.github.client import GitHub
from ortrim.github.credentials import find_token
from ortrim.github.pages import everything
from ortrim.github.records import Release
from ortrim.github.repositories import Repository
from ortrim.pins.runtime import runtime_pins, supported_versions, versions_file
from ortrim.pins.shipped import pin_text, writable_pins_folder
from ortrim.pipeline.pins.version_limits import model_limits
from ortrim.sources.mirrored import Mirrors, mirrored
from ortrim.sources.update import pin_sources
from ortrim.sources.update_converter import converter_text
from ortrim.sources.update_versions import VERSIONS_FILE, release_number, with_version
from ortrim.storage.files import write_atomically
from ortrim.tools.full_runtime import full_runtime
from ortrim.workflows.updates import VersionsUpdate, refused_by

UPSTREAM: Final = Repository(owner="microsoft", name="onnxruntime")


def upstream_client(mirrors: Mirrors) -> GitHub:
    """Return a client of the GitHub that has ONNX Runtime, wherever this repository lies.

    Only github.com itself gets a token, and only the one that is for it.
    """
    api = mirrored(API, mirrors)
    token = find_token() if (api, find_service()) == (API, Service()) else None
    return GitHub(Service(api=api), token)


def released_versions(client: GitHub) -> tuple[str, ...]:
    """Return the numbers of all releases that are neither drafts nor pre-releases, oldest first.

    Raises `NetworkError` as `GitHub.get` does.
    """
    found = everything(client, f"{UPSTREAM.path}/releases", tuple[Release, ...], tuple)
    stable = {each.tag_name.removeprefix("v") for each in found if not (each.draft or each.prerelease)}
    return tuple(sorted((each for each in stable if release_number(each)), key=_number))


def pin_new_versions(released: Iterable[str], console: Console, *, mirrors: Mirrors = ()) -> VersionsUpdate:
    """Pin every released version that is newer than the newest pinned one, each whole or not at all.

    A version that cannot be pinned stops no other: the record says why. Versions that are known to be broken are left
    out. The newest pinned one gets the pins of upstream's archives, too, where it has others alone. Raises
    `StorageError`: a full disk is no version's fault.
    """
    last = newest_pinned()
    done, refused = [], []
    for version in wanted_versions(released, last):
        with console.step(f"pin ONNX Runtime {version}") as step:
            try:
                _pin(version, step, mirrors)
                done.append(version)
            except (Interrupted, StorageError):
                raise
            except Diagnostic as diagnostic:
                refused.append(refused_by(version, diagnostic))
                step.note(f"not pinned: {diagnostic}")
    newer = tuple(version for version in done if version != last)
    return VersionsUpdate(last=last, pinned=newer, refused=tuple(refused))


def newest_pinned() -> str:
    """Return the newest version whose sources are pinned, from wherever they come."""
    return max((version for version in supported_versions() if _is_pinned(version)), key=_number)


def wanted_versions(released: Iterable[str], last: str) -> tuple[str, ...]:
    """Return those of the released versions that are to be pinned, oldest first."""
    known = versions_file()["versions"]
    newer = (version for version in released if release_number(version) and _number(version) >= _number(last))
    whole = (version for version in newer if "known_broken" not in known.get(version, {}))
    return tuple(sorted((version for version in whole if not _has_archives(version)), key=_number))


def _pin(version: str, step: Step, mirrors: Mirrors) -> None:
    """Find out all before the entry is written that makes a version known."""
    if version in versions_file()["versions"]:
        pin_sources(version, mirrors=mirrors, announce=step.note)
        return
    requirements = converter_text(version, step.note)
    step.note("try which models it loads")
    limits = model_limits(full_runtime(version, requirements))
    sources = pin_sources(version, mirrors=mirrors, announce=step.note)
    write_atomically(writable_pins_folder() / "requirements" / f"onnxruntime-{version}.txt", requirements)
    text = pin_text(VERSIONS_FILE)
    assert text is not None
    written = with_version(
        text, version, max_opset=limits.max_opset, max_ir_version=limits.max_ir_version, ndk=sources.ndk
    )
    write_atomically(_versions_path(), written)
    versions_file.cache_clear()


def _versions_path() -> Path:
    return writable_pins_folder() / VERSIONS_FILE


def _is_pinned(version: str) -> bool:
    pins = runtime_pins(version)
    return bool(pins.sources) or pins.git is not None


def _has_archives(version: str) -> bool:
    known = version in versions_file()["versions"]
    return known and any(each.kind == "archive" for each in runtime_pins(version).sources)


def _number(version: str) -> tuple[int, ...]:
    number = release_number(version)
    assert number is not None
    return number
