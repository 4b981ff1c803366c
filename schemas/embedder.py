"""Embedders: an endpoint, or a user's object, that converts texts to vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .errors import OptionError, unknown
from .wording import option

CACHE = "embeddings.sqlite"


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint of embeddings.

    Attributes:
        model: its name at the endpoint.
        base_url: the endpoint, up to and without ``/embeddings``; None for the environment
            variable ``OPENAI_BASE_URL``.
        api_key_env: environment variable that contains the key; sent in one header, never stored.
        cache: file of all vectors.
        dimensions: requested length; None to omit it from the request.
        batch_size: texts in one request.
        concurrency: concurrent requests.
        timeout: seconds for a connection, and between two chunks of a response.
        retries: number of retries of a failed request.
        requests_per_minute: maximum rate of requests.
        max_requests: stop after this number of requests.
        max_tokens: stop after this number of tokens.
        max_cost: stop at this cost, by the price table.
        prices: model -> ``input`` and ``output`` per million tokens, or a TOML file of that.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    cache: str = CACHE
    dimensions: int | None = None
    batch_size: int = 128
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 3
    requests_per_minute: float | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: str | dict[str, dict[str, float]] | None = None


class Encoder:
    """An object with a method ``encode`` that converts texts to vectors.

    Copies that were pickled or read from a file only have the name.

    Args:
        name: name of its class.
        model: the object, or None in a copy.
    """

    def __init__(self, name: str, model: Any = None) -> None:
        self.name = name
        self._model = model

    def encode(self, texts: list[str]) -> Any:
        """Return the object's vectors for texts.

        Raises:
            OptionError: this is a copy.
        """
        if self._model is None:
            raise OptionError(
                f"{option('embedder')}: the object {self.name} did not come along with the"
                " options; give it again.",
                code="option_missing",
                option="embedder",
            )
        return self._model.encode(texts)

    def __repr__(self) -> str:
        return f"Encoder({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoder) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, (self.name,)


def as_embedder(given: Any) -> Embedding | Encoder:
    """Normalise the option ``embedder``.

    Args:
        given: the name of a model, a mapping of the fields of :class:`Embedding`, or an object
            with ``encode(list[str])``.

    Raises:
        OptionError: another type, or a field that does not exist.
    """
    if isinstance(given, Embedding | Encoder):
        return given
    if isinstance(given, str):
        given = {"model": given}
    if not isinstance(given, Mapping):
        if callable(getattr(given, "encode", None)):
            return Encoder(f"{type(given).__module__}.{type(given).__qualname__}", given)
        raise OptionError(
            f"{option('embedder')}: {type(given).__name__} has no encode. Give an object with"
            " encode(list of texts), the name of a model, or a mapping such as"
            " {'model': 'my-model', 'base_url': 'http://localhost:8000/v1'}.",
            code="option_value",
            option="embedder",
        )
    if set(given) == {"object"}:
        return Encoder(str(given["object"]))
    fields = Embedding.__struct_fields__
    for name in given:
        if name not in fields:
            raise unknown("field", str(name), fields, before=f"{option('embedder')}: ")
    if not str(given.get("model", "")).strip():
        raise OptionError(
            f"{option('embedder')}: write the model's name: model=...",
            code="option_missing",
            option="model",
        )
    try:
        found = msgspec.convert(
            {name: value for name, value in given.items() if value is not None},
            Embedding,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise OptionError(
            f"{option('embedder')}: {error}", code="option_value", option="embedder"
        ) from None
    counts = (found.batch_size, found.concurrency, found.dimensions or 1)
    if min(counts) < 1 or found.retries < 0 or not found.timeout > 0:
        raise OptionError(
            f"{option('embedder')}: batch_size, concurrency and dimensions are 1 or more, retries 0"
            " or more, timeout more than 0 seconds.",
            code="option_value",
            options=["batch_size", "concurrency", "dimensions", "retries", "timeout"],
        )
    return found
