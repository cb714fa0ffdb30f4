"""README's picture of a report: `python tests/support/report_picture.py FOLDER` takes it anew, and writes its figures.

The folder is one that `invoke build` has left, with `report.html` and `report.json`.
"""

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from browser import browser
from ortrim.base.files import sha256_of

PICTURE: Final = Path(__file__).parents[2] / "docs" / "img" / "report.png"
FIGURES: Final = PICTURE.with_suffix(".json")
WIDTH: Final = 1120
BELOW: Final = "document.querySelectorAll('h2')[3].parentElement.getBoundingClientRect().top"
"""Where the fourth part begins, of which the picture shows nothing."""


def take_picture(folder: Path) -> None:
    """Show what is above the latencies, and write the figures that are compared."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as page:
        page.width(WIDTH)
        page.scheme("light")
        page.open(folder / "report.html")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": page.value(BELOW), "scale": 1}
        taken = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    PICTURE.write_bytes(base64.b64decode(taken["data"]))
    report = json.loads((folder / "report.json").read_text())
    lines = (*report["comparisons"], *(line for device in report["devices"] for line in device["comparisons"]))
    kept = [{key: line[key] for key in ("measure", "ours", "ratio", "budget", "budget_is_ratio")} for line in lines]
    figures = {"picture_sha256": sha256_of(PICTURE), "name": report["name"], "target": report["target"], "lines": kept}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    take_picture(Path(sys.argv[1]))
