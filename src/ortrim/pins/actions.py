"""The pins of GitHub's actions: each by its commit; one whose commit nobody has seen is refused."""

import tomllib
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

import pydantic
from pydantic import ConfigDict, Field

from ortrim.errors import SourcesError
from ortrim.pins.shipped import pin_text

ACTIONS_FILE: Final = "actions.toml"
CONFIG: Final = ConfigDict(extra="forbid")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$")]
Tag = Annotated[str, Field(pattern=r"^v[0-9]+(\.[0-9]+){0,2}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class ActionPin:
    """An action: its tag for people, and its commit, which is absent when nobody has seen it."""

    tag: Tag
    commit: Commit | None = None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Content:
    actions: dict[Name, ActionPin] = field(default_factory=dict)


def action_pins() -> Mapping[str, ActionPin]:
    """Return the pins of actions: the user's own, or those that travel with ortrim. Raises `SourcesError`."""
    text = pin_text(ACTIONS_FILE)
    assert text is not None
    return read_action_pins(text)


def read_action_pins(text: str) -> Mapping[str, ActionPin]:
    """Read a file of action pins. Raises `SourcesError` `bad-pin-file`."""
    try:
        return pydantic.TypeAdapter(_Content).validate_python(tomllib.loads(text)).actions
    except tomllib.TOMLDecodeError as error:
        raise _bad(str(error)) from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise _bad(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def action_reference(pins: Mapping[str, ActionPin], name: str) -> str:
    """Return what a step `uses`, with the tag as a comment; `name` may go deeper (`actions/cache/restore`).

    Raises `SourcesError` `action-not-pinned`.
    """
    owner, _, rest = name.partition("/")
    pin = pins.get(f"{owner}/{rest.partition('/')[0]}")
    if pin is None or pin.commit is None:
        why = f"its tag {pin.tag} can be moved to another commit by whoever owns it" if pin else "it is not in the file"
        hint = (
            "where github.com can be reached, run: invoke pins.update --actions (type no commit that you did not see)"
        )
        what = "the commit of the action is not known"
        raise SourcesError("action-not-pinned", what, where=f"{ACTIONS_FILE}: {name}", why=why, hint=hint)
    return f"{name}@{pin.commit} # {pin.tag}"


def _bad(why: str) -> SourcesError:
    hint = "restore the file, or remove your own and take the one that travels with ortrim"
    return SourcesError("bad-pin-file", "is not a valid pin file", where=ACTIONS_FILE, why=why, hint=hint)
