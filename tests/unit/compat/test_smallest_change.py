"""What has to be added to a runtime: enough, and no more."""

from hypothesis import given
from hypothesis import strategies as st

from judged_models import changed, configs, global_configs, model, models, runtime, use
from ortrim.analysis.compat import judge, smallest_change, written
from ortrim.analysis.compat_runtime import InstalledRuntime
from ortrim.models.operators import ModelUses

CONFIG = 'ai.onnx;13;Gather{"inputs": {"1": ["int64_t"]}}\nai.onnx;14;Relu{"inputs": {"0": ["float"]}}\n'


def changes(installed: InstalledRuntime, *wanted: ModelUses) -> tuple[str, str]:
    """Return the lines that let a runtime take models, and what takes the place of its line of global types."""
    return written(installed, smallest_change(installed, [(each, judge(installed, each, {})) for each in wanted]))


def change(installed: InstalledRuntime, *wanted: ModelUses) -> str:
    lines, replacement = changes(installed, *wanted)
    assert not replacement
    return lines


def test_nothing_is_added_for_what_fits() -> None:
    assert change(runtime(CONFIG), model(use("Relu", 14))) == ""


def test_operators_come_with_their_types() -> None:
    """Those that the model uses, where a configuration can limit them."""
    lines = change(runtime(CONFIG), model(use("Cast", 13, "int64_t", outputs=("float",)), use("Shape", 15)))
    assert lines == 'ai.onnx;13;Cast{"inputs": {"0": ["int64_t"]}, "outputs": {"0": ["float"]}}\nai.onnx;15;Shape\n'


def test_a_new_type_comes_with_the_old_ones() -> None:
    """Since upstream takes a later line in place of an earlier one."""
    lines = change(runtime(CONFIG), model(use("Relu", 14, "double")))
    assert lines == 'ai.onnx;14;Relu{"inputs": {"0": ["double", "float"]}}\n'


def test_another_opset_of_an_operator_keeps_the_types() -> None:
    lines = change(runtime(CONFIG), model(use("Relu", 13, "double")))
    assert lines == 'ai.onnx;13;Relu{"inputs": {"0": ["double", "float"]}}\n'


def test_what_several_models_lack_is_one_change() -> None:
    lines = change(runtime(CONFIG), model(use("Abs", 13)), model(use("Abs", 13, "double")))
    assert lines == 'ai.onnx;13;Abs{"inputs": {"0": ["double", "float"]}}\n'


def test_global_types_are_one_line_for_all() -> None:
    installed = runtime("!globally_allowed_types;float\nai.onnx;13;Relu\n")
    lines, replacement = changes(installed, model(use("Relu", 13, "double"), use("Abs", 13)))
    assert (lines, replacement) == ("ai.onnx;13;Abs,Relu\n", "!globally_allowed_types;double,float\n")


def test_global_types_that_are_enough_stay() -> None:
    installed = runtime("!globally_allowed_types;float\nai.onnx;13;Relu\n")
    assert changes(installed, model(use("Abs", 13))) == ("ai.onnx;13;Abs\n", "")


def test_operators_of_custom_libraries_are_left_out() -> None:
    """No build can have them; nor a name that would be another line of the configuration."""
    wanted = model(use("Foo", 1, domain="my.ops"), use("A\nai.onnx;1;Evil", 1), use("Abs", 13))
    assert change(runtime(CONFIG), wanted) == 'ai.onnx;13;Abs{"inputs": {"0": ["float"]}}\n'


@given(st.one_of(configs, global_configs), models, models)
def test_with_the_change_the_models_fit(config: str, one: ModelUses, other: ModelUses) -> None:
    """Read as ortrim reads it, changed as the words of `check-compat` say."""
    after = runtime(changed(config, *changes(runtime(config), one, other)))
    assert judge(after, one, {}).fits
    assert judge(after, other, {}).fits
    assert changes(after, one, other) == ("", "")
