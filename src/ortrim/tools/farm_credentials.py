"""Whether the vendors' own places have credentials for a device farm. Nothing of a credential is returned."""

from collections.abc import Mapping
from typing import Final

BROWSERSTACK_VARIABLES: Final = ("BROWSERSTACK_USERNAME", "BROWSERSTACK_ACCESS_KEY")


def absent_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of the variables are not set that BrowserStack's own tools take credentials from."""
    return tuple(name for name in BROWSERSTACK_VARIABLES if not environment.get(name))


def aws_credentials() -> tuple[str, str]:
    """Return boto3's word for the place where it finds credentials, empty when there are none; and then why.

    boto3 may ask the machine's own service for them, as it does whenever it looks. Raises `ImportError` without boto3.
    """
    import boto3  # noqa: PLC0415 - an extra
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        credentials = boto3.Session().get_credentials()
    except BotoCoreError as error:
        return "", type(error).__name__
    return ("", "none where boto3 looks for them") if credentials is None else (str(credentials.method), "")
