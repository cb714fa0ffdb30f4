"""Reduce: `OrtModel...` -> `RequiredOperators`, what one runtime for all of them must contain."""

from collections.abc import Iterable
from functools import reduce

from ortrim.core.models import OrtModel
from ortrim.core.operator_config import parse_config
from ortrim.core.operators import EMPTY, RequiredOperators, merge


def reduce_operators(models: Iterable[OrtModel]) -> RequiredOperators:
    """Return the operators and types that the models require together; the order of models does not matter.

    They come from the converted models: optimizing makes operators that the originals do not show (upstream's
    issue 23018). Raises `OperatorsError` for a configuration that cannot be read.
    """
    configs = (parse_config(model.config, f"required operators of {model.name}") for model in models)
    return reduce(merge, configs, EMPTY)
