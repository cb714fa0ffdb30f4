"""What holds between the keys of a model and of its cases, and the files that they name."""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ortrim.core.model_spec import CaseSpec, InputSpec, Layout, ModelSpec
from ortrim.core.sums import is_plain_path
from ortrim.spec.files import exists
from ortrim.spec.problems import Location, Problem, listed, shown
from ortrim.spec.step_rules import step_problems

LAYOUT_LEVELS: Final[dict[Layout, tuple[str, ...]]] = {
    "nchwc8": ("all",),
    "nchwc16": ("all",),
    "s8s8": ("extended", "all"),
}
"""At which levels a layout is made: `graph_transformer_utils.cc` of 1.21.0."""
SMALLEST_DEFAULT: Final = -1.0
"""The smallest default of an input's `low`, over all element types."""
LARGEST_DEFAULT: Final = 9.0
"""The largest default of an input's `high`, over all element types."""


def model_problems(model: ModelSpec, location: Location, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with a model whose keys and types are right; relative paths are seen from `folder`."""
    yield from _name(model, location)
    yield from _source(model, location, folder)
    yield from _url(model, location)
    yield from _member(model, location)
    yield from _layout(model, location)
    for index, step in enumerate(model.steps):
        yield from step_problems(step, (*location, "steps", index), folder)
    for index, case in enumerate(model.cases):
        yield from _case(case, (*location, "cases", index), folder)


def _name(model: ModelSpec, location: Location) -> Iterator[Problem]:
    if not is_plain_path(f"{model.name}.ort"):
        what = f"is {shown(model.name)}, which Windows takes for a device"
        hint = "choose another name: a package has a file of it"
        yield Problem(reference="bad-value", location=(*location, "name"), what=what, hint=hint)


def _source(model: ModelSpec, location: Location, folder: Path) -> Iterator[Problem]:
    given = [f"'{key}'" for key in ("path", "url", "wheel") if getattr(model, key) is not None]
    if len(given) != 1:
        what = f"has {len(given)} sources: {listed(given, 'and')}" if given else "has no source"
        hint = "give exactly one of 'path', 'url' and 'wheel'"
        yield Problem(reference="model-source", location=location, what=what, hint=hint)
    elif model.path is None and model.sha256 is None:
        hint = f"a model from {given[0]} is used only when its digest is the one given: sha256sum FILE shows it"
        yield Problem(reference="missing-key", location=(*location, "sha256"), what="is missing", hint=hint)
    if model.path is not None and not exists(folder / model.path, folder=False):
        what = f"names {shown(str(model.path))}, which is not a file"
        hint = "paths are relative to the buildspec's folder"
        yield Problem(reference="model-missing", location=(*location, "path"), what=what, hint=hint)


def _url(model: ModelSpec, location: Location) -> Iterator[Problem]:
    if model.url is not None and (what := _fault_of(model.url)):
        hint = "use an https:// address without a user name; http:// goes on loopback only"
        yield Problem(reference="unsafe-url", location=(*location, "url"), what=what, hint=hint)


def _fault_of(url: str) -> str:
    """Return why an address is refused, or nothing; the address itself may hold a password and is not shown."""
    if not url.isascii() or any(character <= " " for character in url):
        return "holds blanks or characters outside ASCII"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError when it is no number
    except ValueError:
        return "is not an address"
    if "@" in parts.netloc:
        return "holds a user name or a password, which would show in logs and reports"
    if not parts.hostname or parts.scheme not in ("https", "http"):
        return "is not an https:// address"
    return "" if parts.scheme == "https" or _is_loopback(parts) else "is not encrypted"


def _is_loopback(parts: SplitResult) -> bool:
    try:
        return parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _member(model: ModelSpec, location: Location) -> Iterator[Problem]:
    place = (*location, "member")
    if model.wheel is not None and model.member is None:
        hint = f"give the model's path inside the wheel of {shown(model.wheel)}"
        yield Problem(reference="missing-key", location=place, what="is missing", hint=hint)
    if model.member is not None and model.wheel is None:
        yield Problem(reference="stray-key", location=place, what="has a meaning only beside 'wheel'")
    if model.allow_links and model.path is None:
        stray = "has a meaning only beside 'path'"
        yield Problem(reference="stray-key", location=(*location, "allow_links"), what=stray)
    if model.member is not None and not _is_plain(model.member):
        what = f"must be a relative path with '/' between its parts and no '..', not {shown(model.member)}"
        yield Problem(reference="unsafe-member", location=place, what=what)


def _is_plain(member: str) -> bool:
    odd = any(character in member for character in "\\:\0")
    return member == str(PurePosixPath(member)) and not odd and not {"..", "/", "."} & set(PurePosixPath(member).parts)


def _layout(model: ModelSpec, location: Location) -> Iterator[Problem]:
    place = (*location, "layout")
    if model.layout is None:
        return
    if model.level not in (levels := LAYOUT_LEVELS[model.layout]):
        what = f"needs level = {listed([repr(level) for level in levels])}, not {shown(model.level)}"
        why = "a lower level leaves the operators as they are"
        yield Problem(reference="bad-value", location=place, what=what, why=why)


def _case(case: CaseSpec, location: Location, folder: Path) -> Iterator[Problem]:
    if case.data is not None:
        yield from _data(case, case.data, location, folder)
    for name, wanted in case.inputs.items():
        yield from _input(wanted, (*location, "inputs", name))


def _data(case: CaseSpec, data: Path, location: Location, folder: Path) -> Iterator[Problem]:
    for key in ("seed", "dimensions", "inputs"):
        if getattr(case, key):
            what = "has no meaning beside 'data', whose recorded inputs are taken as they are"
            yield Problem(reference="stray-key", location=(*location, key), what=what)
    is_archive = data.suffix == ".npz"
    if not exists(folder / data, folder=not is_archive):
        what = f"names {shown(str(data))}, which is not a {'file' if is_archive else 'folder'}"
        hint = "an .npz file or a test_data_set_* folder, relative to the buildspec's folder"
        yield Problem(reference="data-missing", location=(*location, "data"), what=what, hint=hint)


def _input(wanted: InputSpec, location: Location) -> Iterator[Problem]:
    if wanted.value is not None:
        for key in ("low", "high"):
            if getattr(wanted, key) is not None:
                what = "has no meaning beside 'value', which fills the whole tensor"
                yield Problem(reference="stray-key", location=(*location, key), what=what)
    elif wanted.low is not None and wanted.high is not None:
        if wanted.low >= wanted.high:
            what = f"must be less than 'high', {wanted.high:g}, not {wanted.low:g}"
            hint = "to fill the tensor with one value, use 'value'"
            yield Problem(reference="bad-value", location=(*location, "low"), what=what, hint=hint)
    elif wanted.low is not None and wanted.low >= LARGEST_DEFAULT:
        what = f"must be less than the default of 'high', {LARGEST_DEFAULT:g}, not {wanted.low:g}"
        yield Problem(reference="bad-value", location=(*location, "low"), what=what, hint="give 'high' as well")
    elif wanted.high is not None and wanted.high <= SMALLEST_DEFAULT:
        what = f"must be greater than the default of 'low', {SMALLEST_DEFAULT:g}, not {wanted.high:g}"
        yield Problem(reference="bad-value", location=(*location, "high"), what=what, hint="give 'low' as well")
