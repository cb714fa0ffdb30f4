"""What runs each script of the workflows here, and what none of these tests can: named as `file: job: step`."""

from collections.abc import Iterable
from typing import Final

BUILD: Final = "test_a_dispatched_build_is_fetched_by_an_app"
PINS: Final = "test_pins_are_updated_by_schedule"
RELEASE: Final = "test_a_pushed_tag_is_released_and_fetched"
PUBLISH: Final = "test_a_signed_tag_is_published"
APP: Final = "test_an_app_calls_the_build"
ACTION: Final = "test_an_app_builds_in_one_job"
CI: Final = "test_a_push_is_tested_and_judged"
BY_ACT: Final = {
    ".github/actions/setup/action.yml: action: Install": APP,
    "action.yml: action: Plan": ACTION,
    "action.yml: action: Prepare this machine to compile": ACTION,
    "action.yml: action: Compile": ACTION,
    "action.yml: action: Prepare this machine to verify": ACTION,
    "action.yml: action: Assemble, package, verify": ACTION,
    "build.yml: plan: Plan": BUILD,
    "build.yml: compile: Prepare this machine": BUILD,
    "build.yml: compile: Compile": BUILD,
    "build.yml: deliver: Prepare this machine": BUILD,
    "build.yml: deliver: Assemble, package, verify": BUILD,
    "ci.yml: test: Prepare this machine": CI,
    "ci.yml: required: All of the above ended well": CI,
    "publish.yml: build: Check the tag": PUBLISH,
    "publish.yml: build: Build the wheel and the source distribution, and install them": PUBLISH,
    "release.yml: draft: Draft the release": RELEASE,
    "release.yml: publish: Publish what passed": RELEASE,
    "update-pins.yml: update: Pin newer actions": PINS,
    "update-pins.yml: update: Pin newer images": PINS,
    "update-pins.yml: update: Pin newer versions of ONNX Runtime": PINS,
    "update-pins.yml: update: Build the demo with the last version and the newest": PINS,
    "update-pins.yml: propose: Open a pull request": PINS,
}
"""Scripts that act runs, and the test in `test_workflows_run.py` that sees them end well."""
SLOW: Final = frozenset({ACTION, PINS, RELEASE})
"""Tests among those that take longer than CI allows."""
BY_ITSELF: Final = {
    ".github/actions/setup/action.yml: action: Install": "test_a_run_is_planned",
    "build.yml: plan: Plan": "test_a_run_is_planned",
    "ci.yml: test: Prepare this machine": "test_ci_prepares_its_machine",
    "ci.yml: test: Lint, types, tests": "test_ci_checks_everything",
    "ci.yml: fresh: The README's second command": "test_ci_tests_fresh_systems",
    "ci.yml: android: Prepare this machine": "test_ci_has_tests_with_each_ndk",
    "ci.yml: android: Tests that need an NDK": "test_ci_has_tests_with_each_ndk",
    "ci.yml: android-without-ndk: Tests that need bionic": "test_ci_has_a_test_with_bionic",
    "ci.yml: android-app: Prepare this machine": "test_ci_runs_an_app_on_each_phone",
    "ci.yml: android-app: Start a phone": "test_ci_runs_an_app_on_each_phone",
    "ci.yml: android-app: Tests that need a phone": "test_ci_runs_an_app_on_each_phone",
    "ci.yml: required: All of the above ended well": "test_ci_is_judged",
    "release.yml: draft: Draft the release": "test_a_release_is_drafted_and_published",
    "release.yml: publish: Publish what passed": "test_a_release_is_drafted_and_published",
    "update-pins.yml: update: Pin newer actions": "test_pins_are_updated_and_proposed",
    "update-pins.yml: update: Pin newer images": "test_pins_are_updated_and_proposed",
    "update-pins.yml: update: Pin newer versions of ONNX Runtime": "test_pins_are_updated_and_proposed",
    "update-pins.yml: propose: Open a pull request": "test_pins_are_updated_and_proposed",
}
"""Scripts that run one by one, with stand-ins for the programs that they start, and the test in `test_workflow_jobs.py`
that sees them end as they should."""
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

Every `run:` line of the workflows in `.github/workflows` and of the actions, and what executes it in the tests, on one
machine without GitHub. `act` reads the committed workflow, decides which jobs there are and runs them
(`tests/integration/test_workflows_run.py`); by itself, a script runs with stand-ins for the programs that it starts
(`tests/integration/test_workflow_jobs.py`). *Slow* tests are run by hand. Each test fails if a script listed for it did
not run.

| workflow | job | script | by act | by itself |
|---|---|---|---|---|
"""


def page(scripts: Iterable[str]) -> str:
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
