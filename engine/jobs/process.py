"""Lock, signals, log lines and lineage events of a job."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from io import RawIOBase
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar

import msgspec

from .._version import __version__
from ..atomic import name_within, try_lock, written
from ..schemas.errors import EvalengineError, OptionError, not_installed
from ..schemas.job import JobOutputs
from ..schemas.results import FAILED, SKIPPED
from ..scorecard.storage import real_folder
from .sources import JobTables, without_secrets
from .verdicts import Verdict

# Lock for one run per folder of results, released if its owner dies.
#
# It is a system lock on a file next to the folder, which is never removed, since a file about to
# vanish must not be locked. The file names the owner, from its second byte on: on Windows other
# processes cannot read the locked first byte.

_POLL = 0.2
_LONGEST_NAME = 240  # bytes of a folder's name that its lock's name contains
_LONGEST = 1 << 16  # bytes that are read of a lock


class LockedError(EvalengineError):
    """Error for a folder that another run is writing to; this run itself is valid."""


class Holder(msgspec.Struct, frozen=True):
    """Owner of a lock."""

    job: str
    pid: int
    host: str
    since: str


@contextmanager
def locked(
    folder: Path, job: str, *, wait: float = 0.0, tell: Callable[[str], None] = lambda message: None
) -> Iterator[None]:
    """Lock a folder of results.

    Args:
        wait: seconds to wait for another owner.
        tell: called with log messages.

    Raises:
        LockedError: another run had the lock for all that time.
        WriteError: the lock file cannot be created.
    """
    real = real_folder(folder)  # links share one lock
    path = real.with_name(f".{name_within(real.name, _LONGEST_NAME)}.lock")
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    with written(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a buffer would be written again on close.
        opened = open(path, "a+b", buffering=0, opener=_of_writers)  # noqa: SIM115
    with closing(opened) as file:
        with written(path):
            _acquire(file, folder, wait, tell)
            before = _holder(file)
            if before is not None:
                tell(
                    f"took over from a run that died: process {before.pid} on {before.host},"
                    f" begun {before.since}"
                )
            holder = Holder(job, os.getpid(), socket.gethostname(), now)
            _write(file, b"\n" + msgspec.json.encode(holder))
        try:
            yield
        finally:
            try:
                _write(file, b"")
            except OSError as error:  # the lock itself goes with the file's last handle
                tell(f"{path} still names the former owner: {error}")


def _of_writers(path: str, flags: int) -> int:
    """Open a lock file with access only for users who may write results next to it.

    Whoever can read a file can lock it, and block every run. Links are not followed: their target
    would be emptied.
    """
    parent = os.stat(os.path.dirname(path)).st_mode
    # In a sticky folder, everybody owns their files.
    writers = 0 if parent & stat.S_ISVTX else parent & 0o022
    mode = 0o600 | writers | writers << 1
    opened = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    status = os.fstat(opened)
    if hasattr(os, "geteuid") and status.st_uid == os.geteuid() and status.st_mode & ~mode & 0o777:
        os.fchmod(opened, status.st_mode & mode)  # one of an earlier version
    return opened


def _acquire(file: RawIOBase, folder: Path, wait: float, tell: Callable[[str], None]) -> None:
    end, waiting = time.monotonic() + wait, False
    while not try_lock(file):
        holder, message = _holder(file), f"another run is writing {folder}"
        if holder is not None:  # None between its lock and its name
            message = (
                f"another run of job {holder.job!r} (process {holder.pid} on {holder.host}, since"
                f" {holder.since}) is writing {folder}"
            )
        if time.monotonic() >= end:
            raise LockedError(
                f"{message}. Two runs do not write one folder at once: try again when it is done,"
                " wait with --wait SECONDS, or give the jobs different folders.",
                code="locked",
            )
        if not waiting:
            tell(f"waiting: {message}")
            waiting = True
        time.sleep(min(_POLL, max(0.0, end - time.monotonic())))


def _holder(file: RawIOBase) -> Holder | None:
    file.seek(1)
    try:
        return msgspec.json.decode(file.read(_LONGEST) or b"", type=Holder)
    except (msgspec.DecodeError, RecursionError):
        return None


def _write(file: RawIOBase, text: bytes) -> None:
    file.truncate(0)
    if text and file.write(text) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# Termination signals stop a run within seconds, but never while a result is moved into place.
#
# Python runs signal handlers in the main thread between bytecodes, which a long call into Polars
# or a kernel would delay. So another thread does the work while the main one waits; it is
# abandoned when the process exits.

T = TypeVar("T")


class Stopped(BaseException):
    """Termination of the process by a signal.

    Attributes:
        signal: its number; shells see the status 128 + signal.
    """

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(signal.Signals(number).name)


class _State:
    """Signals of this process, as far as a run looks at them."""

    n_locks = 0
    pending: int | None = None


def _handle(number: int, frame: FrameType | None) -> None:
    if _State.n_locks:
        _State.pending = number
    else:
        raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Make termination signals raise :class:`Stopped` within this context, in the main thread.

    These are SIGTERM, SIGINT, and SIGHUP unless it is ignored, as under ``nohup``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM, signal.SIGINT]
    hangup = getattr(signal, "SIGHUP", None)  # only on POSIX
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    before: dict[int, Any] = {number: signal.signal(number, _handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer signals until the end of this context."""
    _State.n_locks += 1
    try:
        yield
    finally:
        _State.n_locks -= 1
        if not _State.n_locks and _State.pending is not None:
            number, _State.pending = _State.pending, None
            raise Stopped(number)


def aside(work: Callable[[threading.Event], T]) -> T:
    """Run work in a separate thread and wait for it.

    Args:
        work: called with an event that is set if the result is no longer needed.

    Returns:
        its result; its exceptions are raised here.
    """
    left = threading.Event()
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work(left))
        except BaseException as error:  # raised again by who waits
            failed.append(error)

    # A daemon: the process may end while it is at work.
    thread = threading.Thread(
        target=copy_context().run, args=(run,), name="evalengine job", daemon=True
    )
    try:
        thread.start()
        thread.join()
    except BaseException:
        left.set()
        raise
    if failed:
        raise failed[0]
    return done[0]


# Log lines of a run: text for people, or one JSON object a line for collectors.

INFO, WARNING, ERROR = "info", "warning", "error"


class Tell(Protocol):
    """Callback for log messages of a run."""

    def __call__(
        self, message: str, *, level: str = INFO, job: str | None = None, **facts: Any
    ) -> None: ...


def nothing(message: str, *, level: str = INFO, job: str | None = None, **facts: Any) -> None:
    """No log at all."""


def log_to(*, form: str = "text", job: str = "", quiet: bool = False) -> Tell:
    """Return a callback that logs to standard error.

    Args:
        form: ``text`` or ``json``.
        quiet: only warnings and errors.
    """

    name = job

    def tell(message: str, *, level: str = INFO, job: str | None = None, **facts: Any) -> None:
        nonlocal name
        name = job or name
        if quiet and level == INFO:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if form == "json":
            line = {"time": now, "level": level, "job": name, "message": message, **facts}
            text = json.dumps(line, ensure_ascii=False, default=str)
        else:
            fact_text = " ".join(f"{fact}={value}" for fact, value in facts.items())
            text = f"{now} {level.upper():<7} {name}: {message}" + (
                f" ({fact_text})" if fact_text else ""
            )
        print(text, file=sys.stderr, flush=True)

    return tell


# OpenLineage events of a run, as lines of a file or to a URL: plain JSON, by its spec 2-0-2.
#
# https://openlineage.io/spec/2-0-2/OpenLineage.json. Failures to send are logged and do not stop
# the run.

START, COMPLETE, FAIL, ABORT = "START", "COMPLETE", "FAIL", "ABORT"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_PRODUCER = f"urn:evalengine:{__version__}"
_SECONDS = 3.0

Send = Callable[[bytes], None]


class Lineage:
    """Events of one run; without a target none are sent.

    Args:
        target: the file relative to the working folder, or the URL; or None.
        warn: called with messages on failures to send.

    Raises:
        OptionError: a URL, and httpx is not installed.
    """

    def __init__(
        self, outputs: JobOutputs, target: str | None, job: str, warn: Callable[[str], None]
    ) -> None:
        self._job = {"namespace": outputs.lineage_namespace, "name": job}
        self._warn = warn
        self._run_id = str(uuid.uuid4())
        self._inputs: list[dict[str, Any]] = []
        self._outputs: list[dict[str, Any]] = []
        self._target = target
        self._send: Send | None = None
        if target is not None:
            self._send = _sender(target, os.environ.get(outputs.lineage_key_env))

    def start(self, tables: JobTables, folder: Path) -> None:
        """The run begins to work on its inputs."""
        self._about(tables, folder)
        self._event(START, {})

    def _about(self, tables: JobTables, folder: Path) -> None:
        self._inputs = [
            _dataset(file.path, local=file.stamp is not None)
            for files in tables.files.values()
            for file in files
        ]
        self._outputs = [_dataset(str(folder), local=True)]

    def never_began(self, message: str) -> None:
        """Report a run that ends before its inputs are known: they are missing or invalid.

        Also sends START, since an end needs one.
        """
        self._event(START, {})
        self.stop(FAIL, message)

    @property
    def run_id(self) -> str | None:
        """Id of the run in its events; None if none are sent."""
        return None if self._send is None else self._run_id

    def resume(self, run_id: str, tables: JobTables, folder: Path) -> None:
        """Continue for a run that ended before reporting it."""
        self._run_id = run_id
        self._about(tables, folder)

    def complete(self, verdicts: Sequence[Verdict]) -> bool:
        """Report that the result exists; gates become assertions on the first input.

        Returns:
            True if it was sent, or if there is no target.
        """
        inputs = [dict(one) for one in self._inputs]
        if verdicts and inputs:
            inputs[0]["inputFacets"] = {
                "dataQualityAssertions": {
                    **_facet("1-0-1", "DataQualityAssertionsDatasetFacet"),
                    "assertions": [
                        {
                            "assertion": f"{one.gate} [{one.row}]" if one.row else one.gate,
                            "success": one.status != FAILED,
                        }
                        for one in verdicts
                        if one.status != SKIPPED
                    ],
                }
            }
        return self._event(COMPLETE, {}, inputs)

    def stop(self, kind: str, message: str) -> None:
        """Report a run without a result: ``FAIL``, or ``ABORT`` if it was interrupted."""
        facet = {
            **_facet("1-0-0", "ErrorMessageRunFacet"),
            "message": message,
            "programmingLanguage": "python",
        }
        self._event(kind, {"errorMessage": facet})

    def _event(
        self, kind: str, facets: dict[str, Any], inputs: list[dict[str, Any]] | None = None
    ) -> bool:
        if self._send is None:
            return True
        engine = {
            **_facet("1-1-1", "ProcessingEngineRunFacet"),
            "version": __version__,
            "name": "evalengine",
        }
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(),
            "run": {"runId": self._run_id, "facets": {"processing_engine": engine, **facets}},
            "job": self._job,
            "inputs": self._inputs if inputs is None else inputs,
            "outputs": self._outputs,
            "producer": _PRODUCER,
            "schemaURL": _SCHEMA,
        }
        try:
            self._send(msgspec.json.encode(event))
        except OSError as error:
            self._warn(f"lineage: {kind} could not be sent to {self._target}: {error}")
            return False
        return True


def _dataset(path: str, *, local: bool) -> dict[str, Any]:
    """A dataset by the naming of https://openlineage.io/docs/spec/naming: store, and path in it."""
    if local:
        return {"namespace": "file", "name": os.path.abspath(path)}
    scheme, _, rest = without_secrets(path).partition("://")
    store, _, name = rest.partition("/")
    return {"namespace": f"{scheme}://{store}", "name": name}


def _facet(version: str, name: str) -> dict[str, str]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{name}.json#/$defs/{name}"}


def _sender(target: str, key: str | None) -> Send:
    if target.startswith(("http://", "https://")):
        return _poster(target, key)
    path = Path(target)

    def add(event: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write at the end of the file: lines of runs side by side stay whole.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, event + b"\n")
        finally:
            os.close(handle)

    return add


def _poster(url: str, key: str | None) -> Send:
    try:
        import httpx
    except ImportError:
        raise OptionError(
            f"outputs.lineage is a URL, which needs {not_installed('httpx', 'judge')}, or write to"
            " a file."
        ) from None
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"

    def post(event: bytes) -> None:
        try:
            answer = httpx.post(url, content=event, headers=headers, timeout=_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(str(error) or type(error).__name__) from None
        if answer.status_code >= 400:
            raise OSError(f"HTTP {answer.status_code}")

    return post
