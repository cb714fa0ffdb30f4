"""What holds between the choices for a session."""

from collections.abc import Iterator

from ortrim.core.model_spec import SessionSpec
from ortrim.spec.problems import Location, Problem


def session_problems(session: SessionSpec, location: Location) -> Iterator[Problem]:
    """Yield what is wrong with the choices for a session whose keys and types are right."""
    if session.load == "file" and session.in_place:
        what = "cannot be beside load = 'file': the runtime then reads the model into memory of its own"
        hint = "leave 'load' out, or take 'map' or 'bytes'"
        yield Problem(reference="stray-key", location=(*location, "in_place"), what=what, hint=hint)
