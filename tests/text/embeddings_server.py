"""OpenAI-compatible embeddings endpoint on loopback, with scripted vectors and faults."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from loopback import Handler, Loopback, served

Vectors = Callable[[list[str]], list[list[float]]]
Fault = Callable[[dict[str, Any], int], tuple[int, dict[str, str], Any] | None]
"""Function of a request's body and the number of earlier requests.

It returns status, headers and body of an answer that replaces the usual one, or None.
"""


def letters(texts: list[str]) -> list[list[float]]:
    """Return how often each of a few letters occurs in a text."""
    return [[float(text.count(one)) for one in "aeio"] for text in texts]


class Server(Loopback):
    """Server of embeddings.

    Attributes:
        requests: bodies in the order they came.
        keys: Authorization headers, in that order.
    """

    def __init__(self, vectors: Vectors, fault: Fault, form: str) -> None:
        super().__init__(_Handler)
        self.vectors, self.fault, self.form = vectors, fault, form
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.lock = threading.Lock()
        self.url = f"http://{self.at}/v1"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send the vectors in reverse order, because their index counts and not their position."""
        data: list[dict[str, Any]] = []
        for i, vector in enumerate(self.vectors(body["input"])):
            packed: Any = vector[: body.get("dimensions")]
            if self.form == "base64":
                packed = base64.b64encode(np.array(packed, "<f4").tobytes()).decode()
            data.append({"object": "embedding", "index": i, "embedding": packed})
        tokens = sum(len(text.split()) for text in body["input"])
        return {
            "object": "list",
            "data": data[::-1],
            "model": body["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }


class _Handler(Handler):
    server: Server

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            before = len(server.requests)
            server.requests.append(body)
            server.keys.append(self.headers.get("Authorization"))
        status, headers, sent = server.fault(body, before) or (200, {}, server.answer(body))
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        status = status if self.path == "/v1/embeddings" else 404
        self.send(status, {**headers, "Content-Type": "application/json"}, data)


@contextmanager
def serving(
    vectors: Vectors = letters, fault: Fault = lambda body, before: None, form: str = "float"
) -> Iterator[Server]:
    """Run the server during a ``with`` block."""
    with served(Server(vectors, fault, form)) as server:
        yield server
