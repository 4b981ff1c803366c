"""An OpenAI-compatible embeddings endpoint on the loopback, with scripted vectors and faults."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

Vectors = Callable[[list[str]], list[list[float]]]
Fault = Callable[[dict[str, Any], int], tuple[int, dict[str, str], Any] | None]
"""From a request's body, and how many came before it, to status, headers and body of an answer
instead of the usual one; or None."""


def letters(texts: list[str]) -> list[list[float]]:
    """How often each of a few letters stands in a text."""
    return [[float(text.count(one)) for one in "aeio"] for text in texts]


class Server(ThreadingHTTPServer):
    """The server.

    Attributes:
        requests: bodies in the order they came.
        keys: Authorization headers, in that order.
    """

    daemon_threads = True

    def __init__(self, vectors: Vectors, fault: Fault, form: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.vectors, self.fault, self.form = vectors, fault, form
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the server's."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The vectors in reverse order, since their index counts and not their place."""
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            before = len(server.requests)
            server.requests.append(body)
            server.keys.append(self.headers.get("Authorization"))
        status, headers, sent = server.fault(body, before) or (200, {}, server.answer(body))
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        self.send_response(status if self.path == "/v1/embeddings" else 404)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(
    vectors: Vectors = letters, fault: Fault = lambda body, before: None, form: str = "float"
) -> Iterator[Server]:
    """A server on a thread of its own, ended at last."""
    server = Server(vectors, fault, form)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
