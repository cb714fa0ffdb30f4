"""What the user sees while ortrim works: steps with their progress, messages, diagnostics and results."""

from ortrim.console.console import STANDARD_OUTPUT, Console
from ortrim.console.steps import Step
from ortrim.console.wording import counted, duration_text, printable

__all__ = ["STANDARD_OUTPUT", "Console", "Step", "counted", "duration_text", "printable"]
