"""What AWS Device Farm's machine does beside the device: a test specification that runs the app's instrumentation.

Without one the service takes the tests apart, runs them one by one and, as is reported (maplibre-native issue 1577),
finds no files on the device. With one, this machine's `adb` runs the instrumentation once, as on any phone, and pulls
the results into the folder that becomes the run's customer artifacts. Syntax and variables:
https://docs.aws.amazon.com/devicefarm/latest/developerguide/custom-test-environments.html
"""

import shlex
from string import Template
from typing import Final

FOLDER: Final = "ortrim-results"
OUTPUT_ARGUMENT: Final = "additionalTestOutputDir"
"""The argument of the instrumentation by which the harness knows where its results are wanted."""

SPECIFICATION: Final = Template("""\
version: 0.1
android_test_host: amazon_linux_2
phases:
  test:
    commands:
      - |
        adb -s "$$DEVICEFARM_DEVICE_UDID" shell am instrument -r -w -e $argument $results \\
          "$$DEVICEFARM_TEST_PACKAGE_NAME/$$DEVICEFARM_TEST_PACKAGE_RUNNER" 2>&1 \\
          | tee "$$DEVICEFARM_LOG_DIR/instrument.log"
      - |
        adb -s "$$DEVICEFARM_DEVICE_UDID" pull $results "$$DEVICEFARM_LOG_DIR/$folder" || true
      - |
        if grep -E 'INSTRUMENTATION_STATUS_CODE: -[12]' "$$DEVICEFARM_LOG_DIR/instrument.log"; then exit 1; fi
      - |
        grep 'INSTRUMENTATION_CODE: -1' "$$DEVICEFARM_LOG_DIR/instrument.log"
artifacts:
  - $$DEVICEFARM_LOG_DIR
""")
"""`am instrument` ends with 0 whatever came of the tests. Of each test it prints a code: -1 is an error, -2 a failure;
of itself -1 when it came to its end, and 0 when the app crashed. The results are pulled before that is looked at."""


def specification(results: str) -> str:
    """Return the specification of a run whose results lie in the folder `results` on the device."""
    return SPECIFICATION.substitute(results=shlex.quote(results), folder=FOLDER, argument=OUTPUT_ARGUMENT)
