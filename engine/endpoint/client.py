"""HTTP client of the endpoint: one request, and the meaning of its answer or failure."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..schemas.errors import EndpointError, OptionError
from .redaction import redacted, sound

if TYPE_CHECKING:
    import httpx

R = TypeVar("R")

_STOPPING = {
    401: "the key was refused",
    402: "the account has no credit left",
    403: "the key is not allowed to do this",
    404: "there is no such model or address",
}
_STOPPING_CODES = {
    "insufficient_quota": "the account has no quota left",
    "billing_hard_limit_reached": "the account has no quota left",
    "invalid_api_key": "the key was refused",
    "model_not_found": "there is no such model",
}
_MAY_BE_ROWS = {403: 2, 404: 1}
"""Statuses that may concern only one request -> number of them that stops a run without any answer
yet; a single 403 may be a content filter.
"""
_IN_A_ROW = 20
"""Number of them in a row that stops a run that had answers."""
_AGAIN = (408, 409, 425, 429)
_LONGEST_WAIT = 600.0
_SHOWN = 300
_MOST_TOKENS = 10**12


class Transient(Exception):
    """Temporary failure.

    Attributes:
        kind: ``rate_limited``, ``server_error``, ``timeout``, ``connection``, ``bad_answer``.
        wait: seconds that the server asked to wait, or None.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        wait: float | None = None,
        *,
        unreachable: bool = False,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind, self.wait, self.unreachable = kind, wait, unreachable
        self.tokens = tokens
        super().__init__(message)


class Rejected(Exception):
    """A request that the endpoint does not take, however often it is sent."""


class Client:
    """Client for one path of an OpenAI-compatible endpoint; thread-safe.

    Args:
        path: path below it, such as ``/embeddings``.
        key: value for the Authorization header, or None.
        timeout: seconds for a connection, and between two chunks of an answer.
        connections: maximum number of open connections.
        who: subject of messages: ``the judge``.

    Attributes:
        worked: the endpoint has answered with the model, now or in an earlier run.

    Raises:
        OptionError: the extra is not installed.
    """

    def __init__(
        self,
        base_url: str,
        path: str,
        key: str | None,
        timeout: float,
        connections: int,
        *,
        who: str,
        extra: str,
        failure: type[EndpointError],
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise OptionError(
                f"{who} is reached by HTTP through httpx, which is not installed: pip install"
                f" 'evalengine[{extra}]'.",
                code="package_missing",
                package="httpx",
            ) from None
        self._key = key
        self._url = base_url + path
        self._who, self._stops = who, failure
        self._answered = self.worked = False
        self._refused = 0
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http: httpx.Client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
        self._failures = (httpx.TimeoutException, httpx.ConnectError, httpx.HTTPError)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def post(self, body: dict[str, Any], read: Callable[[Any], R]) -> R:
        """Send one request.

        Args:
            body: its JSON, including ``model``.
            read: parses the answer's JSON; raises Transient if it cannot.

        Raises:
            EndpointError: a permanent failure.
            Transient: a retry may succeed.
            Rejected: this request is not accepted.
        """
        timed_out, unreachable, any_failure = self._failures
        try:
            response = self._http.post(self._url, json=body)
        except timed_out:
            raise Transient("timeout", "no answer in time") from None
        except unreachable as error:
            said = self._clean(str(error))
            raise Transient("connection", said, unreachable=not self._answered) from None
        except any_failure as error:
            raise Transient("connection", self._clean(str(error) or "dropped")) from None
        self._answered = True
        if response.status_code == 200:
            try:
                found = read(response.json())
            except (ValueError, RecursionError):
                raise Transient("bad_answer", "the endpoint's answer is not JSON") from None
            except Transient as error:
                said = self._clean(str(error))
                raise Transient(error.kind, said, error.wait, tokens=error.tokens) from None
            self.worked, self._refused = True, 0
            return found
        raise self._failure(response, body)

    def _failure(self, response: httpx.Response, body: dict[str, Any]) -> Exception:
        status = response.status_code
        told, code = _error_of(response)
        told = self._clean(told)
        said = f"HTTP {status}" + (f": {told}" if told else "")
        why = _STOPPING_CODES.get(code) or _STOPPING.get(status)
        if 300 <= status < 400:
            why = "the endpoint is somewhere else"
        if code not in _STOPPING_CODES and status in _MAY_BE_ROWS:
            self._refused += 1
            if self._refused < (_IN_A_ROW if self.worked else _MAY_BE_ROWS[status]):
                return Rejected(said)
        if why is not None:
            return self._stops(
                f"{self._who} at {self._url} stopped: {why} ({said}). Model {body['model']!r};"
                " check the address, the model and the key in the environment.",
                code="endpoint_refused",
                status=status,
            )
        if status in _AGAIN or status >= 500:
            kind = "rate_limited" if status == 429 else "server_error"
            return Transient(kind, said, retry_after(response.headers.get("retry-after")))
        return Rejected(said)

    def _clean(self, text: str) -> str:
        # The key first: cut in the middle it would not be known any more.
        return sound(redacted(" ".join(text.split()), self._key)[:_SHOWN])


def _error_of(response: httpx.Response) -> tuple[str, str]:
    """Message and code of an error's body, whatever form it has."""
    try:
        return error_in(response.json()) or (response.text, "")
    except (ValueError, RecursionError):
        return response.text, ""


def error_in(body: Any) -> tuple[str, str] | None:
    """Return message and code of the error in a body, or None."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("message", "")), str(error.get("code", ""))
    return (str(error), "") if error else None


def token_counts(body: Any) -> tuple[int, int]:
    """Return the tokens read and written according to a body, 0 if absent.

    If only the sum is given, as by some embedding endpoints, all tokens count as read.

    Raises:
        Transient: counts that are not valid numbers.
    """
    usage = (body.get("usage") if isinstance(body, dict) else None) or {}
    try:
        written = int(usage.get("completion_tokens") or 0)
        rest = max(int(usage.get("total_tokens") or 0) - written, 0)
        read = int(usage.get("prompt_tokens") or rest)
    except (AttributeError, TypeError, ValueError, OverflowError):
        read = written = -1
    if not (0 <= read <= _MOST_TOKENS and 0 <= written <= _MOST_TOKENS):
        raise Transient("bad_answer", "the endpoint reports token counts that are not numbers")
    return read, written


def retry_after(given: str | None) -> float | None:
    """Parse a Retry-After header, seconds or a date; None if invalid or not positive."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return min(seconds, _LONGEST_WAIT) if seconds > 0 else None
