"""An OpenAI-compatible server on the loopback, with scripted answers and faults.

As a script it prints its address and serves until it is killed (``python tests/judge/server.py``).
``... --answer FILE`` prints answers to the lines of a batch file. ``... URL_FILE LATENCY LOG``
writes the address to a file and the digest of every request's body to a log.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec


class Answer(msgspec.Struct):
    """Scripted answer to one request.

    Attributes:
        text: the reply; None for an HTTP error.
        status: HTTP status.
        headers: additional headers.
        body: raw body that replaces the completion.
        finish: finish reason.
        refusal: refusal that replaces the reply.
        wait: seconds before the answer.
        drop: close the connection without an answer.
    """

    text: str | None = None
    status: int = 200
    headers: dict[str, str] = {}
    body: Any = None
    finish: str = "stop"
    refusal: str | None = None
    wait: float = 0.0
    drop: bool = False


Script = Callable[[dict[str, Any], int], Answer]
"""Maps a request's body and the number of earlier requests to an answer."""


def given_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the data in the user message of a request."""
    data: dict[str, Any] = json.loads(body["messages"][1]["content"])
    return data


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """Return a valid reply to any prompt of the package: ``no`` for items with "not", else yes."""
    system, given = body["messages"][0]["content"], given_of(body)
    form = system[system.rfind("Answer with one JSON object") :]
    for key in ("statements", "claims", "opinions"):
        if f'{{"{key}": [' in form:
            pieces = [piece.strip() for piece in given["text"].split(".")]
            return {key: [piece + "." for piece in pieces if piece]}
    if '"TP"' in form:
        ours, theirs = given["response_statements"], given["reference_statements"]
        return {
            "TP": [one for one in ours if one in theirs],
            "FP": [one for one in ours if one not in theirs],
            "FN": [one for one in theirs if one not in ours],
        }
    if '"rating"' in form:
        return {"reason": "clear", "rating": 4}
    if '"classifications"' in form:
        pieces = [piece.strip() for piece in given["reference"].split(".") if piece.strip()]
        return {
            "classifications": [
                {"statement": one, "reason": "r", "attributed": int("not" not in one)}
                for one in pieces
            ]
        }
    items = next(given[key] for key in _ITEMS if isinstance(given.get(key), list))
    return {
        "verdicts": [
            {"reason": "because", "verdict": "no" if "not" in item else "yes"} for item in items
        ]
    }


_ITEMS = ("claims", "statements", "opinions", "contexts")


def answer_correctly(body: dict[str, Any], before: int) -> Answer:
    """Script that always gives a valid reply."""
    return Answer(json.dumps(reply(body)))


class Server(ThreadingHTTPServer):
    """HTTP server with a script.

    Attributes:
        requests: bodies of requests, in order of arrival.
        keys: Authorization headers, in the same order.
        most: maximum of concurrent requests.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self, script: Script = answer_correctly, latency: float = 0.0, log: str | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.latency = script, latency
        self.log = None if log is None else open(log, "ab", buffering=0)  # noqa: SIM115
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.lock = threading.Lock()
        self.under_way = self.most = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        """Print no log."""

    def do_POST(self) -> None:
        server = self.server
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        with server.lock:
            before = len(server.requests)
            server.requests.append(body)
            server.keys.append(self.headers.get("Authorization"))
            server.under_way += 1
            server.most = max(server.most, server.under_way)
            if server.log is not None:
                server.log.write(hashlib.sha256(raw).hexdigest().encode() + b"\n")
        answer = server.script(body, before)
        time.sleep(server.latency + answer.wait)
        with server.lock:
            server.under_way -= 1
        if answer.drop:
            # reset, as by a crashed server
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        sent = answer.body
        if sent is None:
            sent = completion(answer) if answer.status == 200 else {"error": {"message": "fault"}}
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def completion(answer: Answer) -> dict[str, Any]:
    """Return a chat completion in the format of the API."""
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    return {
        "id": "one",
        "object": "chat.completion",
        "model": "loopback",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


@contextmanager
def serving(script: Script = answer_correctly, latency: float = 0.0) -> Iterator[Server]:
    """Run a server in a thread."""
    server = Server(script, latency)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def batch_answers(lines: Iterable[str]) -> Iterator[str]:
    """Yield a batch endpoint's answers to the lines of a batch file, in reverse order."""
    for line in reversed([json.loads(line) for line in lines]):
        body = completion(answer_correctly(line["body"], 0))
        response = {"status_code": 200, "request_id": "one", "body": body}
        yield json.dumps({"custom_id": line["custom_id"], "response": response, "error": None})


def main(given: list[str]) -> None:
    if given[:1] == ["--answer"]:
        for line in batch_answers(Path(given[1]).read_text("utf-8").splitlines()):
            print(line)
        return
    if given:
        url_file, latency, log = given
        server = Server(answer_correctly, float(latency), log)
        part = Path(url_file + ".part")
        part.write_text(server.url)
        part.rename(url_file)
    else:
        server = Server()
        print(f"export OPENAI_BASE_URL={server.url}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
