"""What a delivery says of itself, in a file beside its packages."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

FACTS: Final = "build.json"
PREFIX: Final = "delivered-"
"""How the names of deliveries begin; what follows is the spec and the package."""
FOLDERS: Final = "-folders.zip"
"""How the name of a release's archive ends that holds what lies in folders of a delivery, and their `SHA256SUMS`."""
WORKFLOW: Final = "build.yml"
"""What makes deliveries on GitHub; runs of any other workflow have none."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class DeliveryFacts:
    """The commit of this repository that a delivery was made of, empty where nobody knew."""

    schema: Literal["ortrim-delivery/1"] = "ortrim-delivery/1"
    commit: Annotated[str, Field(pattern=r"^([0-9a-f]{40}([0-9a-f]{24})?)?$")]
