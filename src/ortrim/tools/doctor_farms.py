"""What this machine has for verifying on device farms: their programs, and whether there are credentials.

Of credentials nothing is read but that they are there, and where.
"""

import importlib.metadata
import os
from collections.abc import Callable
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.farm_credentials import absent_variables, aws_credentials
from ortrim.tools.findings import Finding
from ortrim.tools.gcloud import find_gcloud, has_account

FIREBASE: Final = "verification on 'firebase' devices"
AWS: Final = "verification on 'devicefarm' devices"
BROWSERSTACK: Final = "verification on 'browserstack' devices"
EXTRA: Final = 'pip install "ortrim[devicefarm]"'
SIGN_IN_TO_AWS: Final = "aws configure, aws sso login, or set AWS_PROFILE"


def _gcloud() -> Finding:
    try:
        gcloud = find_gcloud()
    except ToolError as error:
        return _finding("gcloud", FIREBASE, "", error.what, error.hint.removeprefix("run: "))
    about = f"{gcloud.version} ({gcloud.program})"
    if has_account(gcloud):
        return _finding("gcloud", FIREBASE, f"{about}, with an account")
    return _finding("gcloud", FIREBASE, f"{about}, no account", "nobody is signed in", "gcloud auth login")


def _boto3() -> Finding:
    try:
        version = importlib.metadata.version("boto3")
    except importlib.metadata.PackageNotFoundError:
        return _finding("boto3", AWS, "", "is not installed", EXTRA)
    method, problem = aws_credentials()
    if method:
        return _finding("boto3", AWS, f"{version}, with credentials ({method})")
    return _finding("boto3", AWS, f"{version}, no credentials", problem, SIGN_IN_TO_AWS)


def _browserstack() -> Finding:
    absent = absent_variables(os.environ)
    if absent:
        remedy = "set both, from https://www.browserstack.com/accounts/profile"
        return _finding("BrowserStack", BROWSERSTACK, "", f"not set: {' and '.join(absent)}", remedy)
    return _finding("BrowserStack", BROWSERSTACK, "user name and access key are set")


def _finding(name: str, needed_for: str, found: str, problem: str = "", remedy: str = "") -> Finding:
    return Finding(name=name, found=found, needed_for=needed_for, required=False, problem=problem, remedy=remedy)


FARM_CHECKS: Final[tuple[tuple[str, Callable[[], Finding]], ...]] = (
    ("gcloud", _gcloud),
    ("boto3", _boto3),
    ("BrowserStack", _browserstack),
)
"""By the name of the finding."""
