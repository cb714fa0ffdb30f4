"""What AWS and its client say when something is wrong, as diagnostics. Pure: classes are told by their names.

The names are those of botocore 1.44 and of its model of the service (devicefarm/2015-06-23).
"""

from collections.abc import Sequence
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.verify.devices.farms.polling import Transient

SIGN_IN: Final = (
    "give AWS's own tools credentials that may use Device Farm: aws configure, aws sso login, AWS_PROFILE, or "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
REFUSED: Final = frozenset({
    "AccessDenied", "AccessDeniedException", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
    "IncompleteSignature", "IncompleteSignatureException", "InvalidClientTokenId", "InvalidSignatureException",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired",
    "RequestExpired", "SignatureDoesNotMatch", "UnauthorizedOperation", "UnrecognizedClientException",
})  # fmt: skip
THROTTLED: Final = frozenset({
    "RequestLimitExceeded", "SlowDown", "Throttling", "ThrottledException", "ThrottlingException",
    "TooManyRequestsException",
})  # fmt: skip
NO_CREDENTIALS: Final = frozenset({
    "ConfigNotFound", "ConfigParseError", "CredentialRetrievalError", "InvalidConfigError", "LoginError",
    "NoAuthTokenError", "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "SSOError",
    "TokenRetrievalError", "UnauthorizedSSOTokenError",
})  # fmt: skip
UNREACHABLE: Final = frozenset({"HTTPClientError", "ConnectionError", "EndpointConnectionError"})
MOST_LETTERS: Final = 300


def refusal(code: str, status: int, message: str, where: str) -> Diagnostic | Transient:
    """Return what an answer of the service means, by its code (`LimitExceededException`) and HTTP status."""
    why = f"{code}: {short(message)}"
    if code in THROTTLED:
        what, hint = "AWS answers no more questions for now", "wait some minutes, then run the same command again"
        return Transient(VerifyError("farm-quota", what, where=where, why=why, hint=hint))
    if code in REFUSED:
        return VerifyError("farm-credentials", "AWS refuses the credentials", where=where, why=why, hint=SIGN_IN)
    if status >= 500:
        return Transient(trouble(why, where))
    return _of_service(code, why, where)


def failure(kinds: Sequence[str], message: str, where: str) -> Diagnostic | Transient:
    """Return what an exception of the client means, by the names of its class and the classes above it."""
    why = f"{kinds[0]}: {short(message)}"
    if NO_CREDENTIALS.intersection(kinds):
        return no_credentials(why, where)
    if UNREACHABLE.intersection(kinds):
        return Transient(unreachable(why, where))
    if "ParamValidationError" in kinds:
        # Its first line only says that there is something; the next ones say what.
        return refused(short(" ".join(message.split())), where)
    return trouble(why, where)


def no_credentials(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a machine without credentials for AWS."""
    what = "there are no credentials for AWS"
    return VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)


def unreachable(why: str, where: str) -> NetworkError:
    """Return the diagnostic of a service that cannot be reached."""
    hint = "check the network or the proxy settings, then run the same command again"
    return NetworkError("farm-unreachable", "AWS Device Farm cannot be reached", where=where, why=why, hint=hint)


def trouble(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a fault of the farm's own."""
    hint = "it is not a fault of the app; run the same command again, and see https://health.aws.amazon.com"
    return VerifyError("farm-trouble", "AWS Device Farm itself is in trouble", where=where, why=why, hint=hint)


def refused(why: str, where: str) -> VerifyError:
    """Return the diagnostic of something that the farm does not take."""
    hint = "the reason is AWS's own: mend what it names"
    return VerifyError("farm-refused", "AWS Device Farm does not take this", where=where, why=why, hint=hint)


def short(message: str) -> str:
    """Return a message's first line, cut short: AWS adds lines with the request's headers, a token among them."""
    return next(iter(message.strip().splitlines()), "")[:MOST_LETTERS]


def _of_service(code: str, why: str, where: str) -> VerifyError:
    """Return what the exceptions of the service's own model mean."""
    match code:
        case "LimitExceededException":
            what, hint = "a quota of the account is used up", "see Service Quotas in AWS's console, or wait"
            return VerifyError("farm-quota", what, where=where, why=why, hint=hint)
        case "NotEligibleException" | "ServiceAccountException":
            hint = "open Device Farm once in AWS's console: it sets up what the account lacks"
            what = "the account cannot use Device Farm"
            return VerifyError("farm-project", what, where=where, why=why, hint=hint)
        case "NotFoundException":
            what, hint = "the project, or what belongs to it, is not there", "look at it in AWS's console"
            return VerifyError("farm-project", what, where=where, why=why, hint=hint)
        case "ArgumentException" | "InvalidParameterException" | "ValidationException":
            return refused(why, where)
        case _:
            return trouble(why, where)
