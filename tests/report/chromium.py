"""Client of headless Chromium over its debugging pipe."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

BINARY = shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # of the browser itself
    "--remote-debugging-pipe",
)
_WAIT = 30.0
# The pipe must have descriptors 3 and 4. An intermediate process sets them, because ``preexec_fn``
# warns in a process with threads.
_SET_PIPES = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_RECORD_ALERTS = (
    "window.saidAloud = []; window.alert = (text) => window.saidAloud.push(String(text));"
)


class Proxy(socketserver.ThreadingTCPServer):
    """Proxy that records the browser's requests and does not answer."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), socketserver.StreamRequestHandler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        line = request.makefile("rb").readline().decode("latin-1")
        self.asked.append(" ".join(line.split()[:2]) or "a connection")


class Chromium:
    """Context manager of a browser process."""

    def __enter__(self) -> Chromium:
        assert BINARY is not None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.proxy = Proxy()
        pipes = *os.pipe(), *os.pipe()
        # Duplicates above 4, so that setting 3 and 4 does not overwrite them.
        to_read, self._out, self._in, to_write = (
            fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in pipes
        )
        for one in pipes:
            os.close(one)
        mine = f"--user-data-dir={self._folder.name}"
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-ISc",
                _SET_PIPES,
                str(to_read),
                str(to_write),
                BINARY,
                *_ARGUMENTS,
                mine,
            ],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._ids = itertools.count(1)
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.write(self._out, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(timeout=_WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self.proxy.shutdown()
        self.proxy.server_close()
        self._folder.cleanup()

    @contextmanager
    def opened(self, path: str | Path, *, scripts: bool = True) -> Iterator[Page]:
        """Open a file in a new page.

        Args:
            path: HTML file.
            scripts: True if the page's scripts run.
        """
        # A separate context, so that only requests of pages use the proxy.
        context = self.send(
            "Target.createBrowserContext",
            proxyServer=f"http://127.0.0.1:{self.proxy.server_address[1]}",
            proxyBypassList="<-loopback>",
        )["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.send("Target.attachToTarget", **target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.send(f"{domain}.enable", session)
        if not scripts:
            self.send("Emulation.setScriptExecutionDisabled", session, value=True)
        self.send("Page.addScriptToEvaluateOnNewDocument", session, source=_RECORD_ALERTS)
        self.events.clear()
        self.proxy.asked.clear()
        begun = time.monotonic()
        self.send("Page.navigate", session, url=Path(path).resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        yield Page(self, session, time.monotonic() - begun)
        self.send("Target.disposeBrowserContext", browserContextId=context)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == number:
                assert "error" not in got, got
                result: dict[str, Any] = got["result"]
                return result
            self.events.append(got)

    def wait_for(self, method: str) -> dict[str, Any]:
        """Return the next event of a name."""
        for i, event in enumerate(self.events):
            if event.get("method") == method:
                return self.events.pop(i)
        until = time.monotonic() + _WAIT
        while time.monotonic() < until:
            event = self._read()
            if event.get("method") == method:
                return event
            self.events.append(event)
        raise TimeoutError(method)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            some = os.read(self._in, 1 << 20)
            if not some:
                raise ConnectionError("chromium ended")
            self._rest += some
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


class Page:
    """Open page.

    Attributes:
        requests: requested addresses except the page itself and data URLs, and all requests that
            reached the proxy.
        errors: errors of the console and exceptions of the page.
        seconds: time from the call to the load event.
    """

    def __init__(self, browser: Chromium, session: str, seconds: float) -> None:
        self._browser, self._session = browser, session
        self.seconds = seconds

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def _events(self, *methods: str) -> Iterator[dict[str, Any]]:
        self.evaluate("1")  # earlier events have arrived by then
        for event in self._browser.events:
            if event.get("sessionId") == self._session and event["method"] in methods:
                yield event["params"]

    @property
    def requests(self) -> list[str]:
        every = [one["request"]["url"] for one in self._events("Network.requestWillBeSent")]
        within = [url for url in every[1:] if not url.startswith("data:")]
        return within + self._browser.proxy.asked

    @property
    def errors(self) -> list[str]:
        errors = [one["entry"]["text"] for one in self._events("Log.entryAdded")
                  if one["entry"]["level"] == "error"]  # fmt: skip
        errors += [str(one["args"]) for one in self._events("Runtime.consoleAPICalled")
                   if one["type"] in ("error", "assert", "warning")]  # fmt: skip
        return errors + [
            one["exceptionDetails"]["text"] for one in self._events("Runtime.exceptionThrown")
        ]

    @property
    def dialogs(self) -> list[str]:
        """Texts of alerts, which are recorded because a dialog would block the page."""
        texts: list[str] = self.evaluate("window.saidAloud")
        return texts

    def evaluate(self, expression: str) -> Any:
        """Evaluate an expression and return its value, which must be JSON."""
        answer = self._send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def theme(self, name: str) -> None:
        """Set the colour scheme, ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self._send("Emulation.setEmulatedMedia", media="", features=features)

    def press(self, key: str) -> None:
        code = {"Tab": 9, "ArrowRight": 39, "Enter": 13}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            typed = more if kind == "keyDown" else {}
            named = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            self._send("Input.dispatchKeyEvent", **named, **typed)

    def screenshot(self, path: str | Path) -> None:
        """Write the whole page as PNG."""
        height = self.evaluate("Math.ceil(document.documentElement.getBoundingClientRect().height)")
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16_000), "scale": 1}
        taken = self._send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(taken["data"]))

    def pdf(self) -> bytes:
        """Print the page to PDF."""
        return base64.b64decode(self._send("Page.printToPDF", printBackground=False)["data"])
