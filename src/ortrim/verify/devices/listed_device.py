"""One line of the list of devices."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ListedDevice:
    """A device by the name that `--device` takes, or the form of such names.

    `targets` are those that it runs, empty when only the device itself knows. `memory` and `time` say whether they
    can be measured there; parity and illegal instructions can everywhere. `problem` and `remedy` are empty for one
    that is ready; `found` says what is there.
    """

    name: str
    targets: tuple[str, ...]
    memory: bool
    time: bool
    found: str
    problem: str = ""
    remedy: str = ""


def absent(name: str, problem: str, remedy: str, targets: tuple[str, ...] = ()) -> ListedDevice:
    """Return the line of a kind of device of which there is none, or no way to any."""
    return ListedDevice(name=name, targets=targets, memory=True, time=True, found="", problem=problem, remedy=remedy)
