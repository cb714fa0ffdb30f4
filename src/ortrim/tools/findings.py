"""What `doctor` finds: one thing of this machine, whether it will do, and how to get it when it will not."""

from dataclasses import dataclass
from typing import Final

ALL_TARGETS: Final = "all targets"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing examined.

    `found` is a version and a path, or an amount; empty when the thing is absent. `needed_for` says for which
    targets and when. `problem` is empty when all is well; `remedy` is then, too, and otherwise the command that
    helps, or advice. What is not `required` keeps from the builds that `needed_for` names, and from no others.
    """

    name: str
    found: str
    needed_for: str = ALL_TARGETS
    required: bool = True
    problem: str = ""
    remedy: str = ""

    @property
    def satisfied(self) -> bool:
        """Whether nothing needs to be done."""
        return not self.problem
