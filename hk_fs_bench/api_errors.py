"""What went wrong with a call, and what follows from it: the one table of error classes.

Decided on status and machine-readable codes, never on the wording: "insufficient quota" is an empty
account at one vendor and a limit per minute at another.
"""

from __future__ import annotations

import datetime
import email.utils
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hk_fs_bench.api_models import Provider

Action = Literal[
    "retry",  # a passing fault
    "overloaded",  # the same, and calls have to come more slowly
    "filtered",  # this prompt will never be answered: an answer status, no fault
    "drop_parameter",  # send again without one field
    "rejected",  # the request itself is refused: permanent, unless the same was answered before
    "stop_model",  # permanent for this model
    "stop_provider",  # permanent for all models of this account
]

OVERLOADED = (429, 503, 529)
PASSING = (408, 409, 425, 460, 498, 499)
REQUEST = (400, 413, 422, 431)
FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_filtered",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "moderation_blocked",
        "data_inspection_failed",
        "datainspectionfailed",
        "prohibited_content",
        "safety",
        "sensitive",
    }
)
# Statuses of services that put a word where the others put a number.
STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "overloaded_error": 529,
    "overloaded": 503,
    "unavailable": 503,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "timeout": 408,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "insufficient_quota": 429,
    "billing_error": 402,
}
# The one thing that many say in words alone. A message that names both limits decides nothing.
_DAILY = re.compile(
    r"\b(?:RPD|TPD)\b|(?i:\bper[ -]day\b|\bdaily\W+(?:\w+\W+)?(?:limit|quota|allocation)\b)"
)
_BY_MINUTE = re.compile(r"\b(?:RPM|TPM)\b|(?i:\bper[ -]min)")
# Where a message quotes the request, the quotation may be long.
MESSAGE_LENGTH = 300


def one_line(text: str) -> str:
    """What a service says, as a line that a terminal and any file can take."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * MESSAGE_LENGTH])
    return " ".join(shown.split())[:MESSAGE_LENGTH]


class Failure(Exception):
    """A call that gave no reply.

    `cause` is what a row records, `message` a line for people, `wait` the seconds that the service
    asked for, `parameter` the request field that it refused.
    """

    def __init__(
        self,
        action: Action,
        cause: str,
        message: str,
        *,
        wait: float | None = None,
        parameter: str | None = None,
    ) -> None:
        self.action: Action = action
        self.cause = cause
        self.message = one_line(message)
        self.wait = wait
        self.parameter = parameter
        super().__init__(f"{cause}: {self.message}")


def error_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error object that a body, a chunk or a choice holds, None if there is none."""
    error = body.get("error")
    if isinstance(error, Mapping) and error:
        return error
    if isinstance(error, str) and error:
        # One word may be a code; a phrase is none, whatever it says.
        code = error if re.fullmatch(r"[a-z][a-z0-9_.-]*", error) else body.get("code")
        text = f"{error}: {body.get('message', '')}".rstrip(": ")
        return {"message": text, "code": code, "type": body.get("type")}
    return None


def error_of_status(body: Any) -> Mapping[str, Any]:
    """The error object in the body of an error status, in any of the usual places."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, Mapping):
        return {"message": body} if isinstance(body, str) else {}
    if (error := error_of(body)) is not None:
        return error
    known = {k: body[k] for k in ("code", "type", "param", "message") if k in body}
    return known or {"message": str(body.get("detail", ""))}


def failure_of(
    status: int | None, error: Mapping[str, Any], headers: Mapping[str, str], provider: Provider
) -> Failure:
    """The class of an error reply.

    Args:
        status: the HTTP status; None for an error inside a reply of status 200, which then
            counts as the status that its code names.
    """
    codes = set(_codes(error))
    if status is None:
        status = _status_in(error, codes)
    message = str(error.get("message") or f"HTTP {status}")
    cause = f"http_{status}"
    if codes & FILTER_CODES or _flagged(error):
        return Failure("filtered", "content_filter", message)
    if status == 402 or codes & {code.lower() for code in provider.no_credit_codes}:
        return Failure("stop_provider", "no_credit", f"no credit: {message}")
    if status in OVERLOADED:
        if status == 429 and _daily(error, message):
            return Failure("stop_provider", "daily_quota", f"daily quota used up: {message}")
        return Failure("overloaded", cause, message, wait=asked_wait(headers, error))
    if status in PASSING or status >= 500:
        return Failure("retry", cause, message, wait=asked_wait(headers, error))
    parameter = error.get("param")
    if status in REQUEST:
        if isinstance(parameter, str) and parameter:
            return Failure("drop_parameter", cause, message, parameter=parameter)
        return Failure("rejected", cause, message)
    if 300 <= status < 400:
        message = f"the address redirects to {headers.get('location', 'elsewhere')}"
    if status == 404:
        message = f"no such model, or a wrong base URL (most end in /v1): {message}"
    return Failure("stop_model", cause, message)


def failure_of_exception(error: BaseException) -> Failure:
    """The class of a call that got no reply at all: a cut, a time-out, no connection."""
    chain = list(_chain(error))
    if any(isinstance(e, ssl.SSLCertVerificationError) for e in chain):
        return Failure("stop_model", "certificate", f"the certificate is not trusted: {chain[-1]}")
    names = {type(e).__name__ for e in chain}
    # The transport calls a refused or cut connection a time-out, so its causes go first.
    if any(isinstance(e, ConnectionRefusedError | socket.gaierror) for e in chain) or any(
        name == "ConnectError" or name.startswith("ClientConnector") for name in names
    ):
        hint = (
            " (is it http:// rather than https://?)" if isinstance(chain[-1], ssl.SSLError) else ""
        )
        return Failure("retry", "unreachable", f"can't connect: {chain[-1]}{hint}")
    if any("Timeout" in name for name in names) and "ServerDisconnectedError" not in names:
        return Failure("retry", "timeout", "no reply in time")
    return Failure("retry", "connection", f"the connection broke: {chain[-1]}")


def asked_wait(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    """Seconds that a service asks to wait: Retry-After in seconds or as a date, or Google's detail.

    A date is held against the service's own clock where it sends one. None for none or nonsense.
    """
    low = {str(k).lower(): str(v).strip() for k, v in headers.items()}
    for name, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        if (seconds := _number(low.get(name))) is not None:
            return seconds / scale
    if (then := _moment(low.get("retry-after"))) is not None:
        now = _moment(low.get("date"))
        return max(0.0, then - (time.time() if now is None else now))
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (seconds := _number(delay.removesuffix("s"))) is not None:
            return seconds
    return None


def _status_in(error: Mapping[str, Any], codes: set[str]) -> int:
    for name in ("code", "status", "http_status"):
        number = _number(str(error.get(name)))
        if number is not None and number.is_integer() and 400 <= number < 600:
            return int(number)
    return next((STATUS_OF_CODE[c] for c in sorted(codes) if c in STATUS_OF_CODE), 500)


def _codes(error: Mapping[str, Any]) -> Iterator[str]:
    for name in ("code", "type", "status", "reason"):
        if isinstance(value := error.get(name), str):
            yield value.strip().lower()
    for inner in ("innererror", "inner_error", "details"):
        if isinstance(value := error.get(inner), Mapping):
            yield from _codes(value)


def _flagged(error: Mapping[str, Any]) -> bool:
    """A gateway's note that it was the prompt's content that was refused."""
    metadata = error.get("metadata")
    return isinstance(metadata, Mapping) and "flagged_input" in metadata


def _daily(error: Mapping[str, Any], message: str) -> bool:
    ids = [
        str(violation.get("quotaId", ""))
        for detail in _details(error)
        for violation in detail.get("violations") or []
        if isinstance(violation, Mapping)
    ]
    if ids:
        return any("perday" in quota.lower() for quota in ids)
    return bool(_DAILY.search(message)) and not _BY_MINUTE.search(message)


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, Mapping):
            yield detail


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _moment(text: str | None) -> float | None:
    """Unix seconds of an HTTP date, which is UTC even where it does not say so."""
    try:
        moment = email.utils.parsedate_to_datetime(text or "")
        return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
