"""What gcloud printed, as it was recorded: see `tests/unit/devices/data/gcloud/README.md`."""

from pathlib import Path
from typing import Final

from ortrim.base.command import Completed

RECORDED: Final = Path(__file__).parents[1] / "unit" / "devices" / "data" / "gcloud"


def recorded(name: str) -> Completed:
    texts = {
        kind: (RECORDED / f"{name}.{kind}.txt").read_text() if (RECORDED / f"{name}.{kind}.txt").is_file() else ""
        for kind in ("out", "err")
    }
    returncode = int((RECORDED / f"{name}.rc.txt").read_text())
    return Completed(argv=("gcloud",), returncode=returncode, stdout=texts["out"], stderr=texts["err"])
