"""Models converted as a build of a runtime would convert them, and held against it."""

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from ortrim.advise.answer import DEFAULT_CONVERSION
from ortrim.advise.compatibility import Judgement, in_doubt, judge
from ortrim.advise.installed import InstalledRuntime
from ortrim.core.model_spec import ModelSpec
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.operator_config import parse_config
from ortrim.core.operator_uses import ModelUses, uses_of
from ortrim.errors import ModelError
from ortrim.models.convert import Conversion, convert
from ortrim.models.copies import FACTS_LAYOUT
from ortrim.models.kernel_versions import kernel_versions
from ortrim.models.ort_reading import IDENTIFIER
from ortrim.models.ort_uses import read_uses
from ortrim.models.prepare import prepare
from ortrim.pins.runtime import runtime_pins
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.tools.full_runtime import FullRuntime, full_runtime

UNFIT: Final = re.compile(r"[^a-z0-9._-]+")
LONGEST_NAME: Final = 64


class Trials:
    """Converts models as a build of one runtime would, and holds them against it."""

    def __init__(self, installed: InstalledRuntime) -> None:
        self.installed = installed

    @cached_property
    def full(self) -> FullRuntime:
        """The full runtime of the same version."""
        pins = runtime_pins(self.installed.ort_version)
        return full_runtime(pins.version, pins.converter_requirements)

    @property
    def usual(self) -> tuple[str, str]:
        """Style and level of the runtime's own models."""
        return next(iter(self.installed.conversions), DEFAULT_CONVERSION)

    def prepare(self, path: Path) -> PreparedModel:
        """Return our own copy of a model. Raises as `models.prepare.prepare` does."""
        root, version = cache_folder("models") / FACTS_LAYOUT, self.installed.ort_version
        spec = ModelSpec(name=model_name(path), path=Path(path.name))
        return prepare(spec, base=path.parent, root=root, ort_version=version, where=str(path))

    def convert(self, model: PreparedModel, conversion: tuple[str, str]) -> ModelUses:
        """Return what a model, so converted, asks of a runtime. Raises as `models.convert.convert` does."""
        style, level = cast(tuple[Any, Any], conversion)
        wanted = Conversion(style=style, level=level)
        converted = convert(model, wanted, runtime=self.full, root=cache_folder("conversions"))
        uses = read_uses(converted.path)
        return _with_saved(uses, converted) if uses.saved and self.installed.extended is not False else uses

    def judge(self, model: ModelUses) -> Judgement:
        """Hold a converted model against the runtime."""
        doubt = {(each.domain, each.name) for each in in_doubt(self.installed, model)}
        kernels = kernel_versions(doubt, runtime=self.full, folder=cache_folder("conversions")) if doubt else {}
        return judge(self.installed, model, kernels)


def _with_saved(uses: ModelUses, converted: OrtModel) -> ModelUses:
    """Add what the saved optimizations make, with types: the converter's configuration has both, applied and not."""
    listed = uses_of(parse_config(converted.config, f"required operators of {converted.name}"))
    return replace(uses, uses=tuple(sorted({use: use for use in (*listed, *uses.uses)}.values())), saved=())


def model_name(path: Path) -> str:
    """Return a name that a buildspec can give the model of a file."""
    name = UNFIT.sub("-", path.stem.lower()).strip("._-")[:LONGEST_NAME]
    return name or "model"


def is_ort(path: Path) -> bool:
    """Whether a file is in ORT format already. Raises `ModelError` (`model-missing`)."""
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", where="--model", hint="check the path")
    with storage_errors(path), path.open("rb") as file:
        return file.read(8)[4:] == IDENTIFIER
