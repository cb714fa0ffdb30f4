"""What the user sees while ortrim works: steps with their progress, messages, diagnostics and results."""

from ortrim.console.console import Console
from ortrim.console.steps import Step
from ortrim.console.wording import counted, duration_text, printable

__all__ = ["Console", "Step", "counted", "duration_text", "printable"]
