"""What holds between the keys of a buildspec, beyond their types.

- What holds between the keys of a model and of its cases, and the files that they name.
- What holds between the keys of one target of a buildspec.
- What holds between the choices for a session.
- What holds between the keys of one step of a model's preparation, and the files that it names.
- Whether what a buildspec names is there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from ortrim.base.checksums import is_plain_path
from ortrim.spec.buildspec import (
    Budgets,
    CaseSpec,
    InputSpec,
    Layout,
    LeverChoices,
    ModelSpec,
    RuntimeSpec,
    SessionSpec,
    TargetSpec,
    deployment_key,
)
from ortrim.spec.problems import Location, Problem, listed, nearest, shown
from ortrim.spec.step_specs import Extract, Merge, Outputs, Quantize, Rename, StepChoices, Strip
from ortrim.spec.targets import APPLE, CPUS, TARGETS, CLibrary, OperatingSystem, meant_by


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
            yield from _kept(step, location)
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
                yield Problem(reference="step-file-missing", location=(*location, field.name), what=what, hint=hint)


def _idle(step: StepChoices, keys: tuple[str, ...], location: Location) -> Iterator[Problem]:
    if not any(getattr(step, key) for key in keys):
        what, hint = "is told nothing to do", f"give it {listed([repr(key) for key in keys])}, or leave it out"
        yield Problem(reference="idle-step", location=location, what=what, hint=hint)


def _twice(names: tuple[str, ...], location: Location) -> Iterator[Problem]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem(reference="duplicate-name", location=location, what=f"has {shown(name)} twice")


def _kept(step: Strip, location: Location) -> Iterator[Problem]:
    if step.keep and not step.metadata:
        what = "has no meaning beside metadata = false, with which all properties stay"
        yield Problem(reference="stray-key", location=(*location, "keep"), what=what)


def _calibration(step: Quantize, location: Location) -> Iterator[Problem]:
    if step.data and step.mode == "dynamic":
        what = "has a meaning only beside mode = 'static'"
        hint = "dynamic quantization finds ranges in every run"
        yield Problem(reference="stray-key", location=(*location, "data"), what=what, hint=hint)


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


DEFAULT_GLIBC: Final = TargetSpec(id="").glibc
ZIG_ONLY: Final = "has a meaning only with compiler = 'zig'"


def target_problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what is wrong with a target whose keys and types are right; `linkage` is what holds for all targets."""
    if target.id not in TARGETS:
        several = f"choose {listed(meant)}" if (meant := meant_by(target.id)) else ""
        hint = several or nearest(target.id, TARGETS, otherwise=f"the targets are {listed(list(TARGETS), 'and')}")
        what = f"is {shown(target.id)}, which is not a target"
        yield Problem(reference="unknown-target", location=(*location, "id"), what=what, hint=hint)
    elif TARGETS[target.id].system is OperatingSystem.ANDROID:
        yield from _android(target, location, linkage)
        yield from _no_apple(target, location)
        return
    elif TARGETS[target.id].system in APPLE:
        yield from _apple(target, location)
        yield from _no_android(target, location)
        return
    else:
        yield from _c_library(target, location)
        yield from _processor(target, location)
        yield from _no_android(target, location)
        yield from _no_apple(target, location)
    if target.compiler != "zig":
        yield from _system_compiler(target, location, linkage)


def _c_library(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if TARGETS[target.id].c_library is not CLibrary.GLIBC and target.glibc != DEFAULT_GLIBC:
        what, why = "has no meaning for this target", f"{target.id} is built against {TARGETS[target.id].c_library}"
        yield Problem(reference="stray-key", location=(*location, "glibc"), what=what, why=why)


def _processor(target: TargetSpec, location: Location) -> Iterator[Problem]:
    known = CPUS[TARGETS[target.id].architecture]
    if target.cpu is not None and target.cpu not in known:
        what = f"is {shown(target.cpu)}, which is no processor that {target.id} can be built for"
        hint = f"choose among {listed(list(known), 'and')}, or leave 'cpu' out for any processor of the architecture"
        yield Problem(reference="unknown-cpu", location=(*location, "cpu"), what=what, hint=hint)


def _system_compiler(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that only the pinned toolchain can follow."""
    if target.glibc != DEFAULT_GLIBC:
        why = f"{target.compiler} links against the glibc of the system that it runs on"
        yield Problem(reference="stray-key", location=(*location, "glibc"), what=ZIG_ONLY, why=why)
    if target.cpu is not None:
        why = f"{target.compiler} compiles for what it takes for this machine's architecture"
        yield Problem(reference="stray-key", location=(*location, "cpu"), what=ZIG_ONLY, why=why)
    if (target.linkage or linkage) == "static":
        key = "compiler" if target.linkage is None else "linkage"
        what = "cannot make a static library" if target.linkage is None else ZIG_ONLY
        why = f"the archive is joined with zig's linker; {target.compiler}'s C++ library would be missing from it"
        hint = "use compiler = 'zig', or linkage = 'shared' for this target"
        yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)


def _no_android(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if target.android is not None:
        what = f"has a meaning only for Android, and the target is {target.id}"
        yield Problem(reference="stray-key", location=(*location, "android"), what=what)


def _no_apple(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if target.apple is not None:
        what = f"has a meaning only for Apple's systems, and the target is {target.id}"
        yield Problem(reference="stray-key", location=(*location, "apple"), what=what)


def _apple(target: TargetSpec, location: Location) -> Iterator[Problem]:
    """Yield the keys that Xcode decides, and the deployment target of another system."""
    stray = (
        (
            "compiler",
            target.compiler != "zig",
            "its libraries are compiled by Xcode, or for Macs by zig",
            "apple.xcode",
        ),
        (
            "glibc",
            target.glibc != DEFAULT_GLIBC,
            "its C library is the system's own",
            f"apple.{deployment_key(target.id)}",
        ),
        ("cpu", target.cpu is not None, "its processors are few; better ones are found at run time", ""),
        ("linkage", target.linkage is not None, "an xcframework holds frameworks", "apple.framework"),
    )
    for key, given, why, instead in stray:
        if given:
            hint = f"leave it out; '{instead}' is what there is to choose" if instead else "leave it out"
            what = "has no meaning for Apple's systems"
            yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)
    other = {"ios_deployment_target", "macos_deployment_target"} - {deployment_key(target.id)}
    for key in other:
        if target.apple is not None and getattr(target.apple, key) is not None:
            what = f"has no meaning for {target.id}, which goes by '{deployment_key(target.id)}'"
            yield Problem(reference="stray-key", location=(*location, "apple", key), what=what)


def _android(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that the NDK decides; an ABI is a floor already, and packages hold shared libraries."""
    stray = (
        ("compiler", target.compiler != "zig", "libraries for Android are compiled by the NDK", "android.ndk"),
        ("glibc", target.glibc != DEFAULT_GLIBC, "Android's C library is bionic", "android.api"),
        ("cpu", target.cpu is not None, "the ABI is the least processor; better ones are found at run time", ""),
    )
    for key, given, why, instead in stray:
        if given:
            hint = f"leave it out; '{instead}' is what there is to choose" if instead else "leave it out"
            what = "has no meaning for Android"
            yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)
    if (target.linkage or linkage) == "static":
        key = "id" if target.linkage is None else "linkage"
        what = "cannot be a static library, which 'linkage' asks for" if key == "id" else "has no meaning for Android"
        why = "an AAR holds shared libraries, which Java loads"
        hint = "use linkage = 'shared' for this target"
        yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)


def session_problems(session: SessionSpec, location: Location) -> Iterator[Problem]:
    """Yield what is wrong with the choices for a session whose keys and types are right."""
    if session.load == "file" and session.in_place:
        what = "cannot be beside load = 'file': the runtime then reads the model into memory of its own"
        hint = "leave 'load' out, or take 'map' or 'bytes'"
        yield Problem(reference="stray-key", location=(*location, "in_place"), what=what, hint=hint)


@dataclass(frozen=True, kw_only=True)
class SoundParts:
    """The parts of a buildspec whose keys and types are right; models and targets with their index."""

    runtime: RuntimeSpec
    profile: str
    levers: LeverChoices
    models: tuple[tuple[int, ModelSpec], ...]
    targets: tuple[tuple[int, TargetSpec], ...]
    linkage: Literal["shared", "static"]
    budgets: Budgets
    session: SessionSpec


def semantic_problems(parts: SoundParts, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the sound parts; relative paths are seen from `folder`."""
    yield from _runtime(parts.runtime, folder)
    yield from _levers(parts.profile, parts.levers)
    yield from _budgets(parts.budgets, ("budgets",))
    yield from session_problems(parts.session, ("session",))
    yield from _duplicates((("models", index, "name"), model.name) for index, model in parts.models)
    yield from _references(index for index, model in parts.models if model.reference)
    for index, model in parts.models:
        yield from model_problems(model, ("models", index), folder)
        yield from session_problems(model.session or SessionSpec(), ("models", index, "session"))
        cases = enumerate(model.cases)
        yield from _duplicates((("models", index, "cases", number, "name"), case.name) for number, case in cases)
    yield from _duplicates((("targets", index, "id"), target.id) for index, target in parts.targets)
    for index, target in parts.targets:
        yield from target_problems(target, ("targets", index), parts.linkage)
        yield from _target_budgets(target, ("targets", index), parts.budgets)


def _runtime(runtime: RuntimeSpec, folder: Path) -> Iterator[Problem]:
    place = ("onnxruntime", "path")
    if runtime.path is None:
        if runtime.source == "path":
            hint = "give the folder of an ONNX Runtime checkout"
            yield Problem(reference="missing-key", location=place, what="is missing", hint=hint)
    elif runtime.source != "path":
        hint = "add source = 'path', or leave 'path' out"
        yield Problem(
            reference="stray-key", location=place, what="has a meaning only beside source = 'path'", hint=hint
        )
    elif not exists(folder / runtime.path, folder=True):
        what = f"names {shown(str(runtime.path))}, which is not a folder"
        hint = "paths are relative to the buildspec's folder"
        yield Problem(reference="source-missing", location=place, what=what, hint=hint)


def _levers(profile: str, levers: LeverChoices) -> Iterator[Problem]:
    chosen = [repr(name) for name, value in vars(levers).items() if value is not None]
    if profile == "upstream" and chosen:
        what = "has no meaning beside profile = 'upstream'"
        why = "that profile is exactly upstream's own flags"
        hint = f"leave {listed(chosen, 'and')} out, or take another profile"
        yield Problem(reference="stray-key", location=("levers",), what=what, why=why, hint=hint)


def _references(found: Iterable[int]) -> Iterator[Problem]:
    for index in list(found)[1:]:
        place = ("models", index, "reference")
        yield Problem(reference="second-reference", location=place, what="is true for the second time")


def _duplicates(names: Iterable[tuple[Location, str]]) -> Iterator[Problem]:
    seen = set()
    for location, name in names:
        if name in seen:
            yield Problem(reference="duplicate-name", location=location, what=f"is {shown(name)} for the second time")
        seen.add(name)


def _target_budgets(target: TargetSpec, location: Location, budgets: Budgets) -> Iterator[Problem]:
    if target.budgets is not None and (target.budgets.p50_ms or target.budgets.p99_ms):
        yield from _budgets(budgets.replaced_by(target.budgets), (*location, "budgets"))


def _budgets(budgets: Budgets, location: Location) -> Iterator[Problem]:
    median, tail = budgets.p50_ms, budgets.p99_ms
    if median is not None and tail is not None and tail < median:
        what = f"allow {tail:g} ms at the 99th percentile, less than the {median:g} ms of the median"
        yield Problem(reference="bad-value", location=location, what=what)
