"""What holds between the keys of a buildspec, beyond their types."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from ortrim.base.checksums import is_plain_path
from ortrim.buildspec import buildspec
from ortrim.buildspec.problems import Location, Problem, Scalar, listed, nearest, shown
from ortrim.buildspec.step_specs import Extract, Merge, Outputs, Quantize, Rename, StepChoices, Strip
from ortrim.buildspec.targets import TARGETS, meant_by


def exists(path: Path, *, folder: bool) -> bool:
    """Whether a folder, or a plain file, is there; a path that cannot exist on this system is not."""
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError):
        return False


def step_problems(step: StepChoices, location: Location, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with a step whose keys and types are right; relative paths are seen from `folder`."""
    yield from _files(step, location, folder)
    match step:
        case Rename():
            yield from _idle(step, ("inputs", "outputs", "nodes", "number_nodes"), location)
        case Outputs():
            yield from _idle(step, ("add", "drop"), location)
            yield from _twice((*step.add, *step.drop), (*location, "drop"))
        case Strip():
            yield from _idle(step, ("metadata", "documentation", "producer", "shapes", "node_names"), location)
            if step.keep and not step.metadata:
                what = "has no meaning with metadata = false, which keeps all properties"
                yield Problem("stray-key", (*location, "keep"), what)
        case Extract():
            yield from _twice(step.inputs, (*location, "inputs"))
            yield from _twice(step.outputs, (*location, "outputs"))
        case Merge():
            yield from _twice(tuple(step.connect.values()), (*location, "connect"))
        case Quantize():
            yield from _calibration(step, location)
        case _:
            pass


def _files(step: StepChoices, location: Location, folder: Path) -> Iterator[Problem]:
    for field in fields(step):
        value = getattr(step, field.name)
        for path in value if isinstance(value, tuple) else (value,):
            if isinstance(path, Path) and not exists(folder / path, folder=False):
                what = f"names {shown(str(path))}, which is not a file"
                hint = "paths are relative to the buildspec's folder"
                yield Problem("step-file-missing", (*location, field.name), what, hint=hint)


def _idle(step: StepChoices, keys: tuple[str, ...], location: Location) -> Iterator[Problem]:
    if not any(getattr(step, key) for key in keys):
        what, hint = "has nothing to do", f"give it {listed([repr(key) for key in keys])}, or leave it out"
        yield Problem("idle-step", location, what, hint=hint)


def _twice(names: tuple[str, ...], location: Location) -> Iterator[Problem]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem("duplicate-name", location, f"has {shown(name)} twice")


def _calibration(step: Quantize, location: Location) -> Iterator[Problem]:
    if step.data and step.mode == "dynamic":
        what = "has a meaning only with mode = 'static'"
        hint = "dynamic quantization finds ranges in every run"
        yield Problem("stray-key", (*location, "data"), what, hint=hint)


LAYOUT_LEVELS: Final[dict[str, tuple[str, ...]]] = {
    "nchwc8": ("all",),
    "nchwc16": ("all",),
    "s8s8": ("extended", "all"),
}
"""At which levels a layout is made: `graph_transformer_utils.cc` of 1.21.0."""
SMALLEST_DEFAULT: Final = -1.0
"""The smallest default of an input's `low`, over all element types."""
LARGEST_DEFAULT: Final = 9.0
"""The largest default of an input's `high`, over all element types."""


def model_problems(model: buildspec.ModelSpec, location: Location, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with a model whose keys and types are right; relative paths are seen from `folder`."""
    if not is_plain_path(f"{model.name}.ort"):
        what = f"is {shown(model.name)}, which is a reserved device name on Windows"
        hint = "choose another name: a package has a file of it"
        yield Problem("bad-value", (*location, "name"), what, hint=hint)
    yield from _source(model, location, folder)
    yield from _url(model, location)
    yield from _member(model, location)
    yield from _layout(model, location)
    for index, step in enumerate(model.steps):
        yield from step_problems(step, (*location, "steps", index), folder)
    for index, case in enumerate(model.cases):
        yield from _case(case, (*location, "cases", index), folder)
    yield from _order(model.cases, location)


def _source(model: buildspec.ModelSpec, location: Location, folder: Path) -> Iterator[Problem]:
    given = [f"'{key}'" for key in ("path", "url", "wheel") if getattr(model, key) is not None]
    if len(given) != 1:
        what = f"has {len(given)} sources: {listed(given, 'and')}" if given else "has no source"
        hint = "give exactly one of 'path', 'url' and 'wheel'"
        yield Problem("model-source", location, what, hint=hint)
    elif model.path is None and model.sha256 is None:
        hint = f"a model from {given[0]} is used only if it has this digest: sha256sum FILE shows it"
        yield Problem("missing-key", (*location, "sha256"), "is missing", hint=hint)
    if model.path is not None and not exists(folder / model.path, folder=False):
        what = f"names {shown(str(model.path))}, which is not a file"
        hint = "paths are relative to the buildspec's folder"
        yield Problem("model-missing", (*location, "path"), what, hint=hint)


def _url(model: buildspec.ModelSpec, location: Location) -> Iterator[Problem]:
    if model.url is not None and (what := fault_of(model.url)):
        yield Problem("unsafe-url", (*location, "url"), what, hint=SAFE_ADDRESS)


SAFE_ADDRESS: Final = "use an https:// address without a user name; http:// is possible only on loopback"


def fault_of(url: str) -> str:
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


def _member(model: buildspec.ModelSpec, location: Location) -> Iterator[Problem]:
    place = (*location, "member")
    if model.wheel is not None and model.member is None:
        hint = f"give the model's path inside the wheel of {shown(model.wheel)}"
        yield Problem("missing-key", place, "is missing", hint=hint)
    if model.member is not None and model.wheel is None:
        yield Problem("stray-key", place, "has a meaning only with 'wheel'")
    if model.allow_links and model.path is None:
        stray = "has a meaning only with 'path'"
        yield Problem("stray-key", (*location, "allow_links"), stray)
    if model.member is not None and not _is_plain(model.member):
        what = f"must be a relative path with '/' between its parts and no '..', not {shown(model.member)}"
        yield Problem("unsafe-member", place, what)


def _is_plain(member: str) -> bool:
    odd = any(character in member for character in "\\:\0")
    return member == str(PurePosixPath(member)) and not odd and not {"..", "/", "."} & set(PurePosixPath(member).parts)


def _layout(model: buildspec.ModelSpec, location: Location) -> Iterator[Problem]:
    place = (*location, "layout")
    if model.layout in ("auto", "plain"):
        return
    if model.level not in (levels := LAYOUT_LEVELS[model.layout]):
        what = f"needs level = {listed([repr(level) for level in levels])}, not {shown(model.level)}"
        why = "a lower level leaves the operators as they are"
        yield Problem("bad-value", place, what, why=why)


def _case(case: buildspec.CaseSpec, location: Location, folder: Path) -> Iterator[Problem]:
    if case.data is not None:
        yield from _data(case, case.data, location, folder)
    if case.states and not (case.after or case.data):
        what, hint = "has no meaning without 'after'", "name the case that runs before: after = '...'"
        yield Problem("stray-key", (*location, "states"), what, hint=hint)
    for name in [name for name in case.states if name in case.inputs]:
        what = f"feeds {shown(name)}, which 'inputs' gives"
        yield Problem("stray-key", (*location, "states", name), what, hint="leave one of them out")
    for name, wanted in case.inputs.items():
        yield from _input(wanted, (*location, "inputs", name))


def _data(case: buildspec.CaseSpec, data: Path, location: Location, folder: Path) -> Iterator[Problem]:
    for key in ("seed", "dimensions", "inputs", "after", "states"):
        if getattr(case, key):
            what = "has no meaning with 'data', whose recorded inputs are used unchanged"
            yield Problem("stray-key", (*location, key), what)
    is_archive = data.suffix == ".npz"
    if not exists(folder / data, folder=not is_archive):
        what = f"names {shown(str(data))}, which is not a {'file' if is_archive else 'folder'}"
        hint = "an .npz file or a test_data_set_* folder, relative to the buildspec's folder"
        yield Problem("data-missing", (*location, "data"), what, hint=hint)


def _order(cases: tuple[buildspec.CaseSpec, ...], location: Location) -> Iterator[Problem]:
    """Yield cases that come after one which is not there, and the first of each circle of them."""
    before = {case.name: case.after for case in cases}
    in_circles: set[str] = set()
    for index, case in enumerate(cases):
        place = (*location, "cases", index, "after")
        if case.after is not None and case.after not in before:
            hint = nearest(case.after, before, otherwise=f"the cases are {listed(list(before), 'and')}")
            yield Problem("unknown-case", place, f"is {shown(case.after)}, which is no case of this model", hint=hint)
        circle = [case.name]
        while (name := before.get(circle[-1])) is not None and name not in circle:
            circle.append(name)
        if name == case.name and name not in in_circles:
            in_circles.update(circle)
            what = f"leads back to the case itself: {' after '.join(map(shown, [*circle, name]))}"
            hint = "leave 'after' out of the case that runs first"
            yield Problem("case-circle", place, what, hint=hint)


STRAY: Final = {
    "value": "fills the whole tensor",
    "choices": "says what is drawn",
    "count_from": "says what the numbers are",
}


def _choices_problem(choices: tuple[Scalar | tuple[Scalar, ...], ...]) -> str:
    nested = {isinstance(each, tuple) for each in choices}
    if not choices or () in choices:
        return "must not be empty"
    return "must be values, or an array of values for each position of the last axis" if len(nested) > 1 else ""


def _input(wanted: buildspec.InputSpec, location: Location) -> Iterator[Problem]:
    if wanted.choices is not None and (problem := _choices_problem(wanted.choices)):
        yield Problem("bad-value", (*location, "choices"), problem)
    first = next((key for key in STRAY if getattr(wanted, key) is not None), None)
    if first is not None:
        for key in ("choices", "count_from", "low", "high"):
            if key != first and getattr(wanted, key) is not None:
                yield Problem("stray-key", (*location, key), f"has no meaning with '{first}', which {STRAY[first]}")
    elif wanted.low is not None and wanted.high is not None:
        if wanted.low >= wanted.high:
            what = f"must be less than 'high', {wanted.high:g}, not {wanted.low:g}"
            hint = "to fill the tensor with one value, use 'value'"
            yield Problem("bad-value", (*location, "low"), what, hint=hint)
    elif wanted.low is not None and wanted.low >= LARGEST_DEFAULT:
        what = f"must be less than the default of 'high', {LARGEST_DEFAULT:g}, not {wanted.low:g}"
        yield Problem("bad-value", (*location, "low"), what, hint="give 'high' as well")
    elif wanted.high is not None and wanted.high <= SMALLEST_DEFAULT:
        what = f"must be greater than the default of 'low', {SMALLEST_DEFAULT:g}, not {wanted.high:g}"
        yield Problem("bad-value", (*location, "high"), what, hint="give 'low' as well")


DEFAULT_GLIBC: Final = buildspec.TargetSpec(id="").glibc
OPTION_TABLES: Final = {"android": "Android", "apple": "Apple's systems"}
"""Tables of a target that hold the options of one platform -> the words for its systems."""
ZIG_ONLY: Final = "has a meaning only with compiler = 'zig'"


TargetRules = Callable[[buildspec.TargetSpec, Location, Literal["shared", "static"]], Iterator[Problem]]
"""Yields what is wrong with a known target, by the rules of its platform; the linkage is what holds for all targets."""


def _target_problems(
    target: buildspec.TargetSpec, location: Location, linkage: Literal["shared", "static"], rules: TargetRules
) -> Iterator[Problem]:
    if target.id in TARGETS:
        yield from rules(target, location, linkage)
        return
    several = f"choose {listed(meant)}" if (meant := meant_by(target.id)) else ""
    hint = several or nearest(target.id, TARGETS, otherwise=f"the targets are {listed(list(TARGETS), 'and')}")
    yield Problem("unknown-target", (*location, "id"), f"is {shown(target.id)}, which is not a target", hint=hint)
    yield from system_compiler_problems(target, location, linkage)


def stray_tables(target: buildspec.TargetSpec, location: Location, own: str) -> Iterator[Problem]:
    """Yield the tables of options that are another platform's; `own` is the name of the target's, if it has one."""
    for table, words in OPTION_TABLES.items():
        if table != own and getattr(target, table) is not None:
            what = f"has a meaning only for {words}, and the target is {target.id}"
            yield Problem("stray-key", (*location, table), what)


def stray_keys(stray: Iterable[tuple[str, bool, str, str]], location: Location, system: str) -> Iterator[Problem]:
    """Yield the keys that mean nothing on a system: of each its name, whether it is given, why, and what is instead."""
    for key, given, why, instead in stray:
        if given:
            hint = f"leave it out; '{instead}' is what there is to choose" if instead else "leave it out"
            yield Problem("stray-key", (*location, key), f"has no meaning for {system}", why=why, hint=hint)


def system_compiler_problems(
    target: buildspec.TargetSpec, location: Location, linkage: Literal["shared", "static"]
) -> Iterator[Problem]:
    """Yield the keys that only the pinned toolchain can follow, where another is chosen."""
    if target.compiler == "zig":
        return
    if target.glibc != DEFAULT_GLIBC:
        why = f"{target.compiler} links against the glibc of the system that it runs on"
        yield Problem("stray-key", (*location, "glibc"), ZIG_ONLY, why=why)
    if target.cpu is not None:
        why = f"{target.compiler} compiles only for the architecture that it finds on this machine"
        yield Problem("stray-key", (*location, "cpu"), ZIG_ONLY, why=why)
    if (target.linkage or linkage) == "static":
        key = "compiler" if target.linkage is None else "linkage"
        what = "cannot make a static library" if target.linkage is None else ZIG_ONLY
        why = f"the archive is joined with zig's linker; {target.compiler}'s C++ library would be missing from it"
        hint = "use compiler = 'zig', or linkage = 'shared' for this target"
        yield Problem("stray-key", (*location, key), what, why=why, hint=hint)


def session_problems(session: buildspec.SessionSpec, location: Location) -> Iterator[Problem]:
    """Yield what is wrong with the choices for a session whose keys and types are right."""
    if session.load == "file" and session.in_place:
        what = "cannot be used with load = 'file': the runtime then reads the model into its own memory"
        hint = "leave 'load' out, or use 'map' or 'bytes'"
        yield Problem("stray-key", (*location, "in_place"), what, hint=hint)


@dataclass(frozen=True, kw_only=True)
class SoundParts:
    """The parts of a buildspec whose keys and types are right; models and targets with their index."""

    runtime: buildspec.RuntimeSpec
    profile: str
    build_options: buildspec.BuildOptionChoices
    models: tuple[tuple[int, buildspec.ModelSpec], ...]
    targets: tuple[tuple[int, buildspec.TargetSpec], ...]
    linkage: Literal["shared", "static"]
    budgets: buildspec.Budgets
    session: buildspec.SessionSpec


def semantic_problems(parts: SoundParts, folder: Path, rules: TargetRules) -> Iterator[Problem]:
    """Yield what is wrong with the sound parts; relative paths are seen from `folder`."""
    yield from _runtime(parts.runtime, folder)
    yield from _build_options(parts.profile, parts.build_options)
    yield from _budgets(parts.budgets, ("budgets",))
    yield from session_problems(parts.session, ("session",))
    yield from _duplicates((("models", index, "name"), model.name) for index, model in parts.models)
    yield from _references(index for index, model in parts.models if model.reference)
    for index, model in parts.models:
        yield from model_problems(model, ("models", index), folder)
        yield from session_problems(model.session or buildspec.SessionSpec(), ("models", index, "session"))
        cases = enumerate(model.cases)
        yield from _duplicates((("models", index, "cases", number, "name"), case.name) for number, case in cases)
    yield from _duplicates((("targets", index, "id"), target.id) for index, target in parts.targets)
    for index, target in parts.targets:
        yield from _target_problems(target, ("targets", index), parts.linkage, rules)
        if target.budgets is not None and (target.budgets.p50_ms or target.budgets.p99_ms):
            yield from _budgets(parts.budgets.replaced_by(target.budgets), (*("targets", index), "budgets"))


def _runtime(runtime: buildspec.RuntimeSpec, folder: Path) -> Iterator[Problem]:
    place = ("onnxruntime", "path")
    if runtime.path is None:
        if runtime.source == "path":
            hint = "give the folder of an ONNX Runtime checkout"
            yield Problem("missing-key", place, "is missing", hint=hint)
    elif runtime.source != "path":
        hint = "add source = 'path', or leave 'path' out"
        yield Problem("stray-key", place, "has a meaning only with source = 'path'", hint=hint)
    elif not exists(folder / runtime.path, folder=True):
        what = f"names {shown(str(runtime.path))}, which is not a folder"
        hint = "paths are relative to the buildspec's folder"
        yield Problem("source-missing", place, what, hint=hint)


def _build_options(profile: str, build_options: buildspec.BuildOptionChoices) -> Iterator[Problem]:
    chosen = [repr(name) for name, value in vars(build_options).items() if value is not None]
    if profile == "upstream" and chosen:
        what = "has no meaning with profile = 'upstream'"
        why = "that profile is exactly upstream's own flags"
        hint = f"leave {listed(chosen, 'and')} out, or use another profile"
        yield Problem("stray-key", ("build_options",), what, why=why, hint=hint)


def _references(found: Iterable[int]) -> Iterator[Problem]:
    for index in list(found)[1:]:
        yield Problem("second-reference", ("models", index, "reference"), "is true for the second time")


def _duplicates(names: Iterable[tuple[Location, str]]) -> Iterator[Problem]:
    seen = set()
    for location, name in names:
        if name in seen:
            yield Problem("duplicate-name", location, f"is {shown(name)} for the second time")
        seen.add(name)


def _budgets(budgets: buildspec.Budgets, location: Location) -> Iterator[Problem]:
    median, tail = budgets.p50_ms, budgets.p99_ms
    if median is not None and tail is not None and tail < median:
        what = f"allow {tail:g} ms at the 99th percentile, less than the {median:g} ms of the median"
        yield Problem("bad-value", location, what)
