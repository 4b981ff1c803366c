"""Headless Chromium through its debugging pipe: pages opened, watched, asked and printed."""

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
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # of the browser's own requests
    "--remote-debugging-pipe",
)
_WAIT = 30.0
# The pipe's ends have to be 3 and 4: a process between sets them, since a function called in the
# child of a process with threads is warned of.
_BETWEEN = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_KEPT = "window.saidAloud = []; window.alert = (text) => window.saidAloud.push(String(text));"


class Proxy(socketserver.ThreadingTCPServer):
    """What the browser sends to any network arrives here, is kept, and gets no answer."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), socketserver.StreamRequestHandler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        line = request.makefile("rb").readline().decode("latin-1")
        self.asked.append(" ".join(line.split()[:2]) or "a connection")


class Chromium:
    """A browser; a context manager."""

    def __enter__(self) -> Chromium:
        assert BINARY is not None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.proxy = Proxy()
        pipes = *os.pipe(), *os.pipe()
        # Beyond 3 and 4, so that neither takes the other's place.
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
                _BETWEEN,
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
        """A file in a page of its own.

        Args:
            path: an HTML file.
            scripts: whether the page's scripts run.
        """
        # A context of its own: through the proxy goes what pages ask for, not the browser itself.
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
        self.send("Page.addScriptToEvaluateOnNewDocument", session, source=_KEPT)
        self.events.clear()
        self.proxy.asked.clear()
        begun = time.monotonic()
        self.send("Page.navigate", session, url=Path(path).resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        yield Page(self, session, time.monotonic() - begun)
        self.send("Target.disposeBrowserContext", browserContextId=context)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; its result."""
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
        """The first event of a name that was not taken before."""
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
        found: dict[str, Any] = json.loads(first)
        return found


class Page:
    """A page that is open.

    Attributes:
        requests: addresses that were asked for, without the page's own and those within it, and
            what went out of the browser by whatever way.
        errors: what the console and the page said of errors.
        seconds: from the call to the load event.
    """

    def __init__(self, browser: Chromium, session: str, seconds: float) -> None:
        self._browser, self._session = browser, session
        self.seconds = seconds

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def _events(self, *methods: str) -> Iterator[dict[str, Any]]:
        self.evaluate("1")  # what happened before has arrived then
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
        said = [one["entry"]["text"] for one in self._events("Log.entryAdded")
                if one["entry"]["level"] == "error"]  # fmt: skip
        said += [str(one["args"]) for one in self._events("Runtime.consoleAPICalled")
                 if one["type"] in ("error", "assert", "warning")]  # fmt: skip
        return said + [
            one["exceptionDetails"]["text"] for one in self._events("Runtime.exceptionThrown")
        ]

    @property
    def dialogs(self) -> list[str]:
        """What alerts said; they are kept, since a dialog would halt the page."""
        found: list[str] = self.evaluate("window.saidAloud")
        return found

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, as JSON has it."""
        found = self._send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def theme(self, name: str) -> None:
        """``light`` or ``dark``."""
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
        """The whole page as PNG."""
        height = self.evaluate("Math.ceil(document.documentElement.getBoundingClientRect().height)")
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16_000), "scale": 1}
        taken = self._send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(taken["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self._send("Page.printToPDF", printBackground=False)["data"])
