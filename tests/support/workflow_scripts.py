"""What runs each script of the workflows here, and what none of these tests can: named as `file: job: step`."""

from collections.abc import Iterable
from typing import Final

BUILD: Final = "test_a_dispatched_build_is_fetched_by_an_app"
PINS: Final = "test_pins_are_updated_by_schedule"
RELEASE: Final = "test_a_pushed_tag_is_released_and_fetched"
BY_ACT: Final = {
    "build.yml: plan: Plan": BUILD,
    "build.yml: compile: Prepare this machine": BUILD,
    "build.yml: compile: Compile": BUILD,
    "build.yml: deliver: Prepare this machine": BUILD,
    "build.yml: deliver: Assemble, package, verify": BUILD,
    "release.yml: draft: Draft the release": RELEASE,
    "release.yml: publish: Publish what passed": RELEASE,
    "update-pins.yml: update: Pin newer actions": PINS,
    "update-pins.yml: update: Pin newer images": PINS,
    "update-pins.yml: update: Pin newer versions of ONNX Runtime": PINS,
    "update-pins.yml: update: Build the demo with the last version and the newest": PINS,
    "update-pins.yml: propose: Open a pull request": PINS,
}
"""Scripts that act runs, and the test in `test_workflows_run.py` that sees them end well."""
SLOW: Final = frozenset({PINS, RELEASE})
"""Tests among those that take longer than CI allows."""
BY_ITSELF: Final = frozenset(
    {
        "build.yml: plan: Plan",
        "ci.yml: test: Prepare this machine",
        "ci.yml: test: Lint, types, tests",
        "ci.yml: fresh: The README's second command",
        "ci.yml: android: Prepare this machine",
        "ci.yml: android: Tests that need an NDK",
        "ci.yml: android-without-ndk: Tests that need bionic",
        "ci.yml: android-app: Prepare this machine",
        "ci.yml: android-app: Start a phone",
        "ci.yml: android-app: Tests that need a phone",
        "ci.yml: required: All of the above ended well",
        "release.yml: draft: Draft the release",
        "release.yml: publish: Publish what passed",
        "update-pins.yml: update: Pin newer actions",
        "update-pins.yml: update: Pin newer images",
        "update-pins.yml: update: Pin newer versions of ONNX Runtime",
        "update-pins.yml: propose: Open a pull request",
    }
)
"""Scripts that `test_workflow_jobs.py` runs one by one, with stand-ins for the programs that they start."""
NEEDS: Final = {
    "mac": "a Mac with Xcode",
    "gradle": "Gradle with Android's plugin, which no registry here has",
    "farm": "devices of a farm",
    "ndk": "Android's C library, which only github.com has",
    "windows": "Windows",
}
NOT_HERE: Final = {
    "build.yml: app: Compile the app": "gradle",
    "build.yml: farm: Verify on devices of farms": "farm",
    "ci.yml: android-without-ndk: Build the demo for every ABI": "ndk",
    "ci.yml: apple: Prepare this machine": "mac",
    "ci.yml: apple: Tests that need Xcode and its simulators": "mac",
    "ci.yml: windows: Install the wheel and use it": "windows",
}
"""Scripts that no test runs, and which of the `NEEDS` is missing."""
INTRODUCTION: Final = """\
# Where the workflows' scripts run

<!-- Rendered by tests/integration/test_workflow_jobs.py; ORTRIM_WRITE_DOCS=1 writes it anew. -->

Every `run:` line of the workflows in `.github/workflows`, and what executes it in the tests, on one machine without
GitHub. `act` reads the committed workflow, decides which jobs there are and runs them
(`tests/integration/test_workflows_run.py`); by itself, a script runs with stand-ins for the programs that it starts
(`tests/integration/test_workflow_jobs.py`). *Slow* tests are run by hand. Each test of `act` fails if a script listed
for it did not end well.

| workflow | job | script | by act | by itself |
|---|---|---|---|---|
"""


def page(scripts: Iterable[str]) -> str:
    """Return a page that says of each script what runs it, and lists those that nothing here runs."""
    rows, missing = [], []
    for script in sorted(scripts):
        file, job, step = script.split(": ", 2)
        test = BY_ACT.get(script, "")
        by_act = "" if not test else "yes, slow" if test in SLOW else "yes"
        rows.append(f"| `{file}` | {job} | {step} | {by_act} | {'yes' if script in BY_ITSELF else ''} |")
        if script in NOT_HERE:
            missing.append(f"| `{file}` | {job} | {step} | {NEEDS[NOT_HERE[script]]} |")
    heading = "\n## Scripts that no test runs\n\n| workflow | job | script | needs |\n|---|---|---|---|\n"
    return INTRODUCTION + "\n".join(rows) + "\n" + heading + "\n".join(missing) + "\n"
