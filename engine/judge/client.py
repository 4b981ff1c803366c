"""Chat completions: requests and responses."""

from __future__ import annotations

from typing import Any

import msgspec

from ..endpoint.client import Client, Rejected, Transient, error_in, token_counts
from ..endpoint.redaction import sound
from ..schemas.errors import JudgeError

PATH = "/chat/completions"
_FORMATS = ("response_format", "json_schema", "json_object")


class Unstructured(Exception):
    """The endpoint does not know the response format that was asked for."""


class Completion(msgspec.Struct, frozen=True):
    """Chat completion.

    Attributes:
        finish: reason for its end: ``stop``, ``length``, ``content_filter``, ...
        refusal: the model's refusal, or None.
        input_tokens: tokens of the messages, 0 if unknown.
        output_tokens: tokens of the reply, 0 if unknown.
    """

    text: str
    finish: str = "stop"
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def read_completion(body: Any) -> Completion:
    """Parse the completion in a response's JSON.

    Raises:
        Transient: JSON of another form; includes the tokens that were used nevertheless.
    """
    tokens = token_counts(body)
    try:
        choice = body["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        return Completion(
            text=sound(_text(message.get("content"))),
            finish=str(choice.get("finish_reason") or "stop"),
            refusal=sound(str(refusal)) if refusal else None,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        error = error_in(body)
        told = f": {error[0]}" if error else ""
        said = f"the endpoint answered without a completion{told}"
        raise Transient("bad_answer", said, tokens=tokens) from None


def _text(content: Any) -> str:
    """A message's content: a string, or parts of which the texts are joined."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError
    return content or ""


class ChatClient(Client):
    """Client for chat completions of one endpoint; thread-safe.

    Args:
        key: value for the Authorization header, or None.
        timeout: seconds for a connection, and between two chunks of an answer.
        connections: maximum number of open connections.

    Raises:
        OptionError: the extra ``judge`` is not installed.
    """

    def __init__(self, base_url: str, key: str | None, timeout: float, connections: int) -> None:
        super().__init__(
            base_url,
            PATH,
            key,
            timeout,
            connections,
            who="the judge",
            extra="judge",
            failure=JudgeError,
        )

    def complete(self, body: dict[str, Any]) -> Completion:
        """Send one request.

        Raises:
            JudgeError: a permanent failure.
            Transient: a retry may succeed.
            Rejected: this request is not accepted.
            Unstructured: this response format is not accepted.
        """
        try:
            return self.post(body, read_completion)
        except Rejected as error:
            if "response_format" in body and any(word in str(error) for word in _FORMATS):
                raise Unstructured(str(error)) from None
            raise
