"""What every step of a model's preparation can be told; the keys of each are in `step_specs` and `number_steps`."""

from typing import Annotated, Final

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.spec_words import CONFIG
from ortrim.core.tolerance_spec import ElementType, Tolerance

OPTIONAL: Final = "Leave the step out, and say so, when it cannot be done or outputs then differ, instead of ending."
TOLERANCES: Final = (
    "Tolerances for this step and those behind it, by element type of the output; others stay the model's."
)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class StepChoices:
    """The keys that all steps share."""

    # Descriptions, not docstrings: pydantic reads these in the class alone that has the field itself.
    optional: Annotated[bool, Field(description=OPTIONAL)] = False
    tolerances: Annotated[dict[ElementType, Tolerance], Field(description=TOLERANCES)] = Field(default_factory=dict)
