"""The buildspec of models that have none: their files, the cases found for them, and what a command line chose."""

import os
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder
from ortrim.base.console import Console, printable
from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import CaseSpec, LoadedSpec, ModelSpec
from ortrim.buildspec.load import spec_from_data
from ortrim.buildspec.problems import toml_string
from ortrim.errors import ModelError
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import FACTS_LAYOUT, models_named, prepare
from ortrim.parity.cases.found import case_toml
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import default_version, runtime_pins, supported_versions
from ortrim.planning.conversions import lower_level
from ortrim.planning.models import found_for, with_layout
from ortrim.planning.planner import select_targets
from ortrim.planning.request import host_target
from ortrim.planning.version_choice import chosen_version
from ortrim.platforms import target_problems

SEVERAL: Final = "models"
"""The name of several models together."""


@dataclass(frozen=True, kw_only=True)
class FirstChoices:
    """What a command line chooses for models without a buildspec; what is empty is left to ortrim.

    `cases` are the user's own, which each model then has, with absolute paths of recorded inputs. `target` selects as
    `select_targets` does what is written down; without one, nothing is. `built_for` selects what is built now. `steps`
    are names of steps that each model has, with their defaults.
    """

    version: str | None = None
    profile: ProfileName | None = None
    cases: tuple[CaseSpec, ...] = ()
    target: str | None = None
    built_for: str | None = None
    steps: tuple[str, ...] = ()


Noted = tuple[ModelSpec, tuple[str, ...]]
"""A model, and what was found of it and its cases."""


@dataclass(frozen=True, kw_only=True)
class FirstSpec:
    """A buildspec that is not written yet; `version` is that of ONNX Runtime."""

    name: str
    version: str
    choices: FirstChoices
    models: tuple[Noted, ...]

    def with_cases(self, console: Console) -> "FirstSpec":
        """Return the same with cases for models that have none, and the level of each, which may take long.

        Steps make other models, whose level is not that of the given ones.
        """
        return replace(self, models=tuple(self._with_cases(model, console) for model, _ in self.models))

    def text(self, folder: Path, console: Console) -> str:
        """Return its text, in which files are named as seen from `folder`, which need not be there yet."""
        spec, chosen = self.loaded(), self.choices.target
        targets = () if chosen is None else select_targets(spec, chosen, None, console.note)
        return _text(self, folder) + "".join(f"\n[[targets]]\nid = {toml_string(each.id)}\n" for each in targets)

    def loaded(self) -> LoadedSpec:
        """Return it as it would be loaded."""
        here = Path(f"{self.name}.toml")
        return spec_from_data(tomllib.loads(_text(self, here.parent)), here, target_problems)

    def _with_cases(self, model: ModelSpec, console: Console) -> Noted:
        """Return a model with its cases and, without steps, the highest level that keeps what it computes."""
        prepared = _prepared(model, self.version)
        pins = runtime_pins(self.version)
        runtime = full_runtime(pins.version, pins.converter_requirements)
        notes: tuple[str, ...] = ()
        if not model.cases:
            found = found_for(prepared, runtime, console)
            model, notes = replace(model, cases=found.cases), (*found.reasons, *found.warnings)
        if self.choices.steps:
            return model, notes
        with console.step(f"convert {model.name}, and compare its outputs") as step:
            cases = cases_made(prepared, model, Path(), lambda: runtime)
            lower = lower_level(prepared, with_layout(model, {}), cases, runtime, profile=self.choices.profile)
            if lower:
                level, words = lower
                line = f"level = '{level}' keeps its outputs; '{model.level}' {words}"
                step.note(f"{model.name}: {line}")
                model, notes = replace(model, level=level), (*notes, line)
        return model, notes


def first_spec(words: Sequence[str], choices: FirstChoices, console: Console, output: Path | None = None) -> FirstSpec:
    """Return a buildspec for the models that `words` name, without other cases than the user's own.

    `output` is the folder that has the buildspecs of earlier builds, whose version is kept.
    """
    newest = choices.version or supported_versions()[-1]
    models = models_named(words, root=cache_folder("models") / FACTS_LAYOUT, ort_version=newest)
    name = models[0].name if len(models) == 1 else SEVERAL
    noted = tuple((replace(model, cases=choices.cases), ()) for model in models)
    spec = FirstSpec(name=name, version=choices.version or default_version(), choices=choices, models=noted)
    if choices.version:
        return spec
    pattern, host = choices.built_for or choices.target, host_target()
    targets = select_targets(spec.loaded(), pattern, host) if pattern or host else ()
    facts = {_place(model): _prepared(model, newest).facts for model in models}
    last = "" if output is None else _version_in(output / name / f"{name}.toml")
    version = chosen_version(facts, [target.id for target in targets], console.note, last=last)
    return replace(spec, version=version)


def _version_in(file: Path) -> str:
    """Return the version that a buildspec names; empty where there is none."""
    with suppress(OSError, ValueError, KeyError):
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["onnxruntime"]["version"])
    return ""


def _place(model: ModelSpec) -> str:
    return str(model.path or model.url or f"{model.wheel}/{model.member}")


def _prepared(model: ModelSpec, version: str) -> PreparedModel:
    root = cache_folder("models") / FACTS_LAYOUT
    return prepare(model, base=Path(), root=root, ort_version=version, where=_place(model))


def _text(spec: FirstSpec, folder: Path) -> str:
    lines = ["# Every key: ortrim schema", f"name = {toml_string(spec.name)}"]
    if spec.choices.profile:
        lines.append(f"profile = {toml_string(spec.choices.profile)}")
    lines.append(f"onnxruntime = {{ version = {toml_string(spec.version)} }}")
    for model, notes in spec.models:
        lines += ["", "[[models]]", *_source(model, folder), *_cases(model, notes, folder)]
        lines += [f"[[models.steps]]\nuse = {toml_string(step)}" for step in spec.choices.steps]
    return "\n".join(lines) + "\n"


def _source(model: ModelSpec, folder: Path) -> list[str]:
    path = None if model.path is None else _seen_from(folder, model.path)
    keys = {
        "name": model.name, "path": path, "url": model.url, "wheel": model.wheel, "member": model.member,
        "sha256": model.sha256, "level": model.level if model.level != ModelSpec.level else None,
    }  # fmt: skip
    return [f"{key} = {toml_string(word)}" for key, word in keys.items() if word is not None]


def _cases(model: ModelSpec, notes: Iterable[str], folder: Path) -> list[str]:
    # A model's names must not end the comment that they stand in.
    reasons = (f"# {' '.join(printable(line).split())}" for line in notes)
    seen = (replace(case, data=Path(_seen_from(folder, case.data))) if case.data else case for case in model.cases)
    return [*reasons, "cases = [", *(f"    {case_toml(case)}," for case in seen), "]"] if model.cases else []


def _seen_from(folder: Path, path: Path) -> str:
    """Return a path as a file in `folder` names it; on Windows, one on another drive stays as it is."""
    try:
        seen = Path(os.path.relpath(path, folder.absolute())).as_posix()
    except ValueError:
        seen = path.absolute().as_posix()
    try:
        seen.encode()
    except UnicodeEncodeError as error:
        hint = "rename the file; a buildspec is UTF-8 text and cannot name it"
        raise ModelError("name-not-utf8", "the name is not UTF-8", where=ascii(seen), hint=hint) from error
    return seen
