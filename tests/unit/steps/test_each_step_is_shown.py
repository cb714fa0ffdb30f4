"""Every step has a model that shows its use, and one that it has to leave alone: the tests that say so."""

from pathlib import Path
from typing import Final

import pytest

from ortrim.steps.table import EQUIPPED, PLAIN

TESTS: Final = Path(__file__).parents[2]
HERE: Final = "unit/steps"
SHOWN: Final[dict[str, tuple[str, str]]] = {
    "Simplify": (
        "integration/test_prepare.py::test_the_real_programs_fold_what_is_constant_and_leave_what_is_simple",
        f"{HERE}/test_simplify.py::test_a_model_that_is_simple_already_stays",
    ),
    "InferShapes": (
        "integration/test_prepare.py::test_named_dimensions_are_followed_by_the_runtimes_inference",
        f"{HERE}/test_dimensions.py::test_shapes_are_written_once",
    ),
    "FixDimensions": (
        f"{HERE}/test_dimensions.py::test_a_fixed_size_reaches_the_outputs",
        f"{HERE}/test_dimensions.py::test_a_size_that_is_there_already_changes_nothing",
    ),
    "NameDimensions": (
        f"{HERE}/test_dimensions.py::test_dimensions_get_names",
        f"{HERE}/test_dimensions.py::test_names_that_are_there_already_change_nothing",
    ),
    "Batch": (
        f"{HERE}/test_dimensions.py::test_a_batch_is_set_and_opened",
        f"{HERE}/test_dimensions.py::test_a_batch_that_is_there_already_changes_nothing",
    ),
    "Opset": (
        f"{HERE}/test_to_opset.py::test_an_operator_that_changed_is_converted",
        f"{HERE}/test_to_opset.py::test_the_same_opset_changes_nothing",
    ),
    "Strip": (
        f"{HERE}/test_strip.py::test_traces_of_the_exporter_go_wherever_they_are",
        f"{HERE}/test_strip.py::test_what_is_not_asked_for_stays",
    ),
    "Rename": (
        f"{HERE}/test_rename.py::test_names_change_in_inner_graphs_too",
        f"{HERE}/test_rename.py::test_nothing_to_rename_changes_nothing",
    ),
    "ShareConstants": (
        f"{HERE}/test_share_constants.py::test_equal_initializers_become_one",
        f"{HERE}/test_share_constants.py::test_constants_that_differ_stay",
    ),
    "RemoveDead": (
        f"{HERE}/test_remove_dead.py::test_dead_nodes_and_what_only_they_read_go",
        f"{HERE}/test_remove_dead.py::test_a_model_without_dead_parts_stays",
    ),
    "Extract": (
        f"{HERE}/test_parts.py::test_a_part_gives_what_its_values_are_in_the_whole",
        f"{HERE}/test_parts.py::test_the_whole_can_be_extracted",
    ),
    "Outputs": (
        f"{HERE}/test_parts.py::test_outputs_are_added_and_dropped",
        f"{HERE}/test_parts.py::test_outputs_that_are_there_change_nothing",
    ),
    "Merge": (
        f"{HERE}/test_parts.py::test_another_model_is_appended",
        f"{HERE}/test_parts.py::test_a_model_that_does_not_fit_is_refused",
    ),
    "Float16": (
        "integration/test_number_steps.py::test_float16_halves_the_weights_and_keeps_inputs_and_outputs",
        "integration/test_number_steps.py::test_float16_leaves_a_model_of_integers_alone",
    ),
    "Quantize": (
        "integration/test_number_steps.py::test_static_quantization_is_calibrated_with_the_cases",
        "integration/test_number_steps.py::test_a_model_with_nothing_to_quantize_is_refused",
    ),
    "Optimize": (
        "integration/test_number_steps.py::test_optimisation_fuses_at_its_level_and_says_for_whom",
        "integration/test_number_steps.py::test_optimisation_leaves_alone_what_is_optimal",
    ),
    "FoldInput": (
        f"{HERE}/test_fold_input.py::test_a_decoder_s_bytes_are_taken_and_the_rest_goes_into_the_weights",
        f"{HERE}/test_fold_input.py::test_nothing_asked_for_is_nothing_done",
    ),
    "Conv1dTo2d": (
        f"{HERE}/test_conv1d_to_2d.py::test_neighbours_stay_in_two_dimensions",
        f"{HERE}/test_conv1d_to_2d.py::test_other_models_are_left_alone",
    ),
    "ExpandRecurrent": (
        f"{HERE}/test_expand_recurrent.py::test_an_expansion_gives_the_same",
        f"{HERE}/test_expand_recurrent.py::test_what_is_not_asked_for_is_left_alone",
    ),
    "FoldBatchNorm": (
        f"{HERE}/test_fold_batch_norm.py::test_a_normalisation_is_folded",
        f"{HERE}/test_fold_batch_norm.py::test_other_models_are_left_alone",
    ),
}
"""Step -> the test of its use, and the test of a model that it leaves as it is, or refuses to change."""


def test_no_step_is_without() -> None:
    assert {kind.__name__ for kind in (*PLAIN, *EQUIPPED)} == set(SHOWN)


@pytest.mark.parametrize("step", SHOWN)
def test_both_tests_are_there(step: str) -> None:
    """Under these names, and they are two."""
    use, alone = SHOWN[step]
    assert use != alone
    for name in (use, alone):
        file, _, test = name.partition("::")
        assert f"\ndef {test}(" in (TESTS / file).read_text(encoding="utf-8")
