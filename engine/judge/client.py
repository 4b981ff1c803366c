"""Chat completions: what is asked of the endpoint, and what came back."""

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
        Transient: JSON of another form; it tells of the tokens that were used all the same.
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
    """Sends chat completions to one endpoint; threads may share it.

    Args:
        base_url: its address, checked.
        key: what goes into the Authorization header, or None.
        timeout: seconds for a connection, and between two pieces of an answer.
        connections: how many may be open.

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
        """One request.

        Raises:
            JudgeError: it makes no sense to go on.
            Transient: it may work later.
            Rejected: this request is not taken.
            Unstructured: not with this response format.
        """
        try:
            return self.post(body, read_completion)
        except Rejected as error:
            if "response_format" in body and any(word in str(error) for word in _FORMATS):
                raise Unstructured(str(error)) from None
            raise
