"""tract: shapes and types of the case set beforehand where the model bears that, then its own optimizations."""

from collections.abc import Callable
from typing import Any

import tract

Arrays = list[Any]
TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "bool"}


def version() -> str:
    """Return the engine's version."""
    return str(tract.version())


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Read the ONNX file and make it runnable: for the case's shapes, or else for those that the model names itself."""
    try:
        model = read(request, fixed=True).into_model()
    except tract.TractError:
        model = read(request, fixed=False).into_model()
    names = [model.input_name(index) for index in range(model.input_count())]
    order = [request["input_names"].index(name) for name in names]
    runnable = model.into_runnable()

    def run(feeds: Arrays) -> Arrays:
        return [value.to_numpy() for value in runnable.run([feeds[index] for index in order])]

    return run


def read(request: dict[str, Any], *, fixed: bool) -> Any:
    """Read the ONNX file; `fixed` says whether its inputs get the shapes of the case."""
    model = tract.onnx().load(request["model"])
    places = {model.input_name(index): index for index in range(model.input_count())}
    described = zip(request["input_names"], request["input_shapes"], request["input_types"], strict=True)
    for name, shape, kind in described:
        if fixed and name in places:
            model.set_input_fact(places[name], ",".join([*map(str, shape), type_word(kind)]))
    return model


def type_word(kind: str) -> str:
    """Return tract's word for an element type: `f32`, `i64`."""
    return TYPES.get(kind, kind.replace("uint", "u").replace("int", "i"))
