"""The endpoint: one request, and what its answer or its failure means."""

from __future__ import annotations

import email.utils
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ..schemas.errors import JudgeError, OptionError
from .redaction import redacted, sound

if TYPE_CHECKING:
    import httpx

PATH = "/chat/completions"
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_STOPPING = {
    401: "the key was refused",
    403: "the key is not allowed to do this",
    404: "there is no such model or address",
}
_AGAIN = (408, 409, 425, 429)
_LONGEST_WAIT = 600.0
_SHOWN = 300


class Transient(Exception):
    """A failure that may pass.

    Attributes:
        kind: ``rate_limited``, ``server_error``, ``timeout``, ``connection``, ``bad_answer``.
        wait: seconds that the server asked to wait, or None.
        unreachable: nobody answered at the address.
    """

    def __init__(
        self, kind: str, message: str, wait: float | None = None, *, unreachable: bool = False
    ) -> None:
        self.kind, self.wait, self.unreachable = kind, wait, unreachable
        super().__init__(message)


class Rejected(Exception):
    """A request that the endpoint does not take, however often it is sent."""


class Unstructured(Exception):
    """The endpoint does not know the response format that was asked for."""


class Completion(msgspec.Struct, frozen=True):
    """What came back.

    Attributes:
        text: the reply.
        finish: why it ended: ``stop``, ``length``, ``content_filter``, ...
        refusal: what the model said instead of answering, or None.
        input_tokens: tokens of the messages, 0 where not told.
        output_tokens: tokens of the reply, 0 where not told.
    """

    text: str
    finish: str = "stop"
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def read_completion(body: Any) -> Completion:
    """The completion in a response's JSON.

    Raises:
        Transient: JSON of another form.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        usage = body.get("usage") or {}
        refusal = message.get("refusal")
        return Completion(
            text=sound(_text(message.get("content"))),
            finish=str(choice.get("finish_reason") or "stop"),
            refusal=sound(str(refusal)) if refusal else None,
            input_tokens=int(usage.get("prompt_tokens") or 0),
            output_tokens=int(usage.get("completion_tokens") or 0),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise Transient("bad_answer", "the endpoint answered without a completion") from None


def _text(content: Any) -> str:
    """A message's content: a string, or parts of which the texts are joined."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError
    return content or ""


class Client:
    """Sends chat completions to one OpenAI-compatible endpoint; threads may share it.

    Args:
        base_url: its address, checked.
        key: what goes into the Authorization header, or None.
        timeout: seconds for a connection, and between two pieces of an answer.
        connections: how many may be open.

    Raises:
        OptionError: the extra ``judge`` is not installed.
    """

    def __init__(self, base_url: str, key: str | None, timeout: float, connections: int) -> None:
        try:
            import httpx
        except ImportError:
            raise OptionError(
                "the judge stage speaks HTTP through httpx, which is not installed: pip install"
                " 'evalengine[judge]'."
            ) from None
        self._key = key
        self._url = base_url + PATH
        self.answered = False
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

    def complete(self, body: dict[str, Any]) -> Completion:
        """One request.

        Raises:
            JudgeError: it makes no sense to go on.
            Transient: it may work later.
            Rejected: this request is not taken.
            Unstructured: not with this response format.
        """
        timed_out, unreachable, any_failure = self._failures
        try:
            response = self._http.post(self._url, json=body)
        except timed_out:
            raise Transient("timeout", "no answer in time") from None
        except unreachable as error:
            said = self._clean(str(error))
            raise Transient("connection", said, unreachable=not self.answered) from None
        except any_failure as error:
            raise Transient("connection", self._clean(str(error) or "dropped")) from None
        self.answered = True
        if response.status_code == 200:
            try:
                return read_completion(response.json())
            except (ValueError, RecursionError):
                raise Transient("bad_answer", "the endpoint's answer is no JSON") from None
        raise self._failure(response, body)

    def _failure(self, response: httpx.Response, body: dict[str, Any]) -> Exception:
        status = response.status_code
        told, code = _error_of(response)
        told = self._clean(told)
        said = f"HTTP {status}" + (f": {told}" if told else "")
        if status in _STOPPING or code in _NO_QUOTA or 300 <= status < 400:
            why = _STOPPING.get(status, "the account has no quota left")
            if 300 <= status < 400:
                why = "the endpoint is somewhere else"
            return JudgeError(
                f"the judge at {self._url} stopped: {why} ({said}). Model {body['model']!r}; check"
                " the address, the model and the key in the environment."
            )
        if status in _AGAIN or status >= 500:
            kind = "rate_limited" if status == 429 else "server_error"
            return Transient(kind, said, retry_after(response.headers.get("retry-after")))
        if "response_format" in body and any(
            word in told for word in ("response_format", "json_schema", "json_object")
        ):
            return Unstructured(said)
        return Rejected(said)

    def _clean(self, text: str) -> str:
        # The key first: cut in the middle it would not be known any more.
        return sound(redacted(" ".join(text.split()), self._key)[:_SHOWN])


def _error_of(response: httpx.Response) -> tuple[str, str]:
    """Message and code of an error's body, whatever form it has."""
    try:
        error = response.json()["error"]
        if isinstance(error, dict):
            return str(error.get("message", "")), str(error.get("code", ""))
        return str(error), ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return response.text, ""


def retry_after(given: str | None) -> float | None:
    """Seconds to wait, of a header that holds seconds or a date; None where it says neither."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    if seconds != seconds:
        return None
    return min(max(0.0, seconds), _LONGEST_WAIT)
