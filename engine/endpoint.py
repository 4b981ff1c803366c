"""OpenAI-compatible endpoints: requests, retries, budgets, keys, and embeddings of texts."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import json
import os
import random
import re
import sqlite3
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec
import numpy as np

from .schemas.arrays import Array
from .schemas.errors import EndpointError, InputError, OptionError, not_installed
from .schemas.option_values import Embedding
from .schemas.wording import option

# Keys: read from the environment, sent in one header, and taken out of everything else.

KEY_VARIABLE = "OPENAI_API_KEY"
_LIKE_KEYS = re.compile(r"\b(?:sk|pk|key|gsk|hf)[-_][A-Za-z0-9_\-]{12,}|Bearer\s+\S+", re.I)
_HIDDEN = "[key]"


def key_from(variable: str) -> str | None:
    """Return the key in an environment variable; None if it is the default one and not set.

    Raises:
        OptionError: another variable that is not set; a key with characters that are invalid in a
            header.
    """
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_VARIABLE:
        raise OptionError(
            f"api_key_env={variable!r}: this environment variable is not set. Set it, or omit the"
            f" option for an endpoint without a key ({KEY_VARIABLE} is read if it is set).",
            code="variable_missing",
            value=variable,
        )
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise OptionError(
            f"the environment variable {variable} contains characters that no key has (spaces,"
            " line ends, letters beyond ASCII); was more copied into it than the key?",
            code="key_malformed",
            value=variable,
        )
    return key


def redacted(text: str, key: str | None) -> str:
    """Replace the key, and strings that look like keys, in a text."""
    if key:
        text = text.replace(key, _HIDDEN)
    return _LIKE_KEYS.sub(_HIDDEN, text)


def sound(text: str) -> str:
    """Replace lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def checked_url(base_url: str) -> str:
    """Return the endpoint without a trailing slash.

    Raises:
        OptionError: no http(s) address, or one with a user, password or query in it.
    """
    url = base_url.strip()
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        valid = valid and (parts.port is None or parts.port > 0)
    except ValueError:  # a port or an IPv6 address that is none
        valid = False
    if not valid or any(letter.isspace() or not letter.isprintable() for letter in url):
        # Do not repeat an address that may contain a password.
        url_text = "" if set("@?#") & set(url) else f"={redacted(url, None)!r}"
        raise OptionError(
            f"base_url{url_text}: no address; write one such as http://localhost:8000/v1.",
            code="option_value",
            option="base_url",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError(
            "base_url contains a user, password or query. Keys come from the environment variable"
            " that api_key_env names; write only the plain address.",
            code="secret_in_address",
            option="base_url",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


# HTTP client of the endpoint: one request, and the meaning of its answer or failure.

R = TypeVar("R")

_STOPPING = {
    401: "the key was refused",
    402: "the account has no credit left",
    403: "the key is not allowed to do this",
    404: "there is no such model or address",
}
_STOPPING_CODES = {
    "insufficient_quota": "the account has no quota left",
    "billing_hard_limit_reached": "the account has no quota left",
    "invalid_api_key": "the key was refused",
    "model_not_found": "there is no such model",
}
_MAY_BE_ROWS = {403: 2, 404: 1}
"""Statuses that may concern only one request -> number of them that stops a run without any answer
yet; a single 403 may be a content filter.
"""
_IN_A_ROW = 20
"""Number of them in a row that stops a run that had answers."""
_AGAIN = (408, 409, 425, 429)
_LONGEST_WAIT = 600.0
_LONGEST_QUOTE = 300
_MOST_TOKENS = 10**12


class Transient(Exception):
    """Temporary failure.

    Attributes:
        kind: ``rate_limited``, ``server_error``, ``timeout``, ``connection``, ``bad_answer``.
        wait: seconds that the server asked to wait, or None.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        wait: float | None = None,
        *,
        unreachable: bool = False,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind, self.wait, self.unreachable = kind, wait, unreachable
        self.tokens = tokens
        super().__init__(message)


class Rejected(Exception):
    """A request that the endpoint does not take, however often it is sent."""


class Client:
    """Client for one path of an OpenAI-compatible endpoint; thread-safe.

    Args:
        path: path below it, such as ``/embeddings``.
        key: value for the Authorization header, or None.
        timeout: seconds for a connection, and between two chunks of an answer.
        connections: maximum number of open connections.
        who: subject of messages: ``the judge``.

    Attributes:
        worked: the endpoint has answered with the model, now or in an earlier run.

    Raises:
        OptionError: the extra is not installed.
    """

    def __init__(
        self,
        base_url: str,
        path: str,
        key: str | None,
        timeout: float,
        connections: int,
        *,
        who: str,
        extra: str,
        failure: type[EndpointError],
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise OptionError(
                f"{who} is reached by HTTP through {not_installed('httpx', extra)}.",
                code="package_missing",
                package="httpx",
            ) from None
        self._key = key
        self._url = base_url + path
        self._who, self._stops = who, failure
        self._answered = self.worked = False
        self._refused = 0
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
        self._failures = (httpx.TimeoutException, httpx.ConnectError, httpx.HTTPError)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def post(self, body: dict[str, Any], read: Callable[[Any], R]) -> R:
        """Send one request.

        Args:
            body: its JSON, including ``model``.
            read: parses the answer's JSON; raises Transient if it cannot.

        Raises:
            EndpointError: a permanent failure.
            Transient: a retry may succeed.
            Rejected: this request is not accepted.
        """
        timed_out, unreachable, any_failure = self._failures
        try:
            response = self._http.post(self._url, json=body)
        except timed_out:
            raise Transient("timeout", "no answer in time") from None
        except unreachable as error:
            message = self._clean(str(error))
            raise Transient("connection", message, unreachable=not self._answered) from None
        except any_failure as error:
            raise Transient("connection", self._clean(str(error) or "dropped")) from None
        self._answered = True
        if response.status_code == 200:
            try:
                result = read(response.json())
            except (ValueError, RecursionError):
                raise Transient("bad_answer", "the endpoint's answer is not JSON") from None
            except Transient as error:
                message = self._clean(str(error))
                raise Transient(error.kind, message, error.wait, tokens=error.tokens) from None
            self.worked, self._refused = True, 0
            return result
        raise self._failure(response, body)

    def _failure(self, response: Any, body: dict[str, Any]) -> Exception:
        status = response.status_code
        reason, code = _error_of(response)
        reason = self._clean(reason)
        message = f"HTTP {status}" + (f": {reason}" if reason else "")
        why = _STOPPING_CODES.get(code) or _STOPPING.get(status)
        if 300 <= status < 400:
            why = "the endpoint is somewhere else"
        if code not in _STOPPING_CODES and status in _MAY_BE_ROWS:
            self._refused += 1
            if self._refused < (_IN_A_ROW if self.worked else _MAY_BE_ROWS[status]):
                return Rejected(message)
        if why is not None:
            return self._stops(
                f"{self._who} at {self._url} stopped: {why} ({message}). Model {body['model']!r};"
                " check the address, the model and the key in the environment.",
                code="endpoint_refused",
                status=status,
            )
        if status in _AGAIN or status >= 500:
            kind = "rate_limited" if status == 429 else "server_error"
            return Transient(kind, message, retry_after(response.headers.get("retry-after")))
        return Rejected(message)

    def _clean(self, text: str) -> str:
        # The key first: cut in the middle it would not be known any more.
        return sound(redacted(" ".join(text.split()), self._key)[:_LONGEST_QUOTE])


def _error_of(response: Any) -> tuple[str, str]:
    """Message and code of an error's body, whatever form it has."""
    try:
        return error_in(response.json()) or (response.text, "")
    except (ValueError, RecursionError):
        return response.text, ""


def error_in(body: Any) -> tuple[str, str] | None:
    """Return message and code of the error in a body, or None."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("message", "")), str(error.get("code", ""))
    return (str(error), "") if error else None


def token_counts(body: Any) -> tuple[int, int]:
    """Return the tokens read and written according to a body, 0 if absent.

    If only the sum is given, as by some embedding endpoints, all tokens count as read.

    Raises:
        Transient: counts that are not valid numbers.
    """
    usage = (body.get("usage") if isinstance(body, dict) else None) or {}
    try:
        written = int(usage.get("completion_tokens") or 0)
        rest = max(int(usage.get("total_tokens") or 0) - written, 0)
        read = int(usage.get("prompt_tokens") or rest)
    except (AttributeError, TypeError, ValueError, OverflowError):
        read = written = -1
    if not (0 <= read <= _MOST_TOKENS and 0 <= written <= _MOST_TOKENS):
        raise Transient("bad_answer", "the endpoint reports token counts that are not numbers")
    return read, written


def retry_after(header: str | None) -> float | None:
    """Parse a Retry-After header, seconds or a date; None if invalid or not positive."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return min(seconds, _LONGEST_WAIT) if seconds > 0 else None


# Cost and rate limits of a run.

_MILLION = 1e6
_FIRST = 4
"""Maximum number of concurrent requests before the first answer shows the cost of one."""
_LEAST_SPREAD, _MOST_SPREAD = 1.0, 60.0
_CALMER = 0.98
_SEVERAL, _MOST_REFUSALS, _FORGIVEN = 3, 6, 0.1
"""Refusals that pause all requests, maximum that is remembered, and the decrement per answer: one
refusal in ten requests or fewer is sporadic and pauses only the refused request.
"""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Price of one model, in any currency, per million tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Compute the cost of tokens."""
        return (self.input * input_tokens + self.output * output_tokens) / _MILLION


def price_of(
    model: str, prices: str | Path | Mapping[str, Mapping[str, float]] | None
) -> Price | None:
    """Return the price of a model.

    Args:
        prices: model -> ``input`` and ``output``, or a TOML file of that; None if unknown.

    Raises:
        OptionError: a table without that model, or of another form.
    """
    if prices is None:
        return None
    try:
        table = (
            tomllib.loads(Path(prices).read_text("utf-8-sig"))
            if isinstance(prices, (str, Path))
            else prices
        )
        price_table = msgspec.convert(table, dict[str, Price])
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise OptionError(
            f"prices: {error}. Write a table of models, each with input and output per million"
            ' tokens: ["my-model"] input = 0.15, output = 0.6.'
        ) from None
    if model not in price_table:
        raise OptionError(
            f"prices: no price of {model!r}; there are: {', '.join(price_table)}.",
            code="price_missing",
            value=model,
        )
    return price_table[model]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a run; None for no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    per_minute: float | None = None


class Usage(msgspec.Struct):
    """Resources used by a run.

    Attributes:
        cost: of the received answers, None without a price.
        stopped: the limit that was reached, or None.
    """

    requests: int = 0
    answers: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    stopped: str | None = None


class Budget:
    """Count requests and enforce limits; thread-safe.

    The limit on requests is never exceeded. Tokens and cost are known only with the answer: each
    pending request counts as the mean of the answers so far. If that would exceed a limit,
    :meth:`take` waits for an answer; it stops once the actual usage reaches the limit. Before the
    first answer only a few requests are sent. A limit is thus exceeded at most by the amount by
    which pending answers cost more than the mean.

    A pause that the endpoint requests delays the refused request; it delays all requests if several
    were refused with few answers in between. They then resume spread over a time that doubles with
    every pause and shrinks with every answer.

    Args:
        clock: seconds; for tests.
        sleep: waits so many seconds; returns True if the run has ended meanwhile.
    """

    def __init__(
        self,
        limits: Limits,
        price: Price | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if limits.cost is not None and price is None:
            raise OptionError(
                "max_cost needs prices: a table of the cost of the model's tokens.",
                code="option_missing",
                option="prices",
            )
        self.limits, self.price = limits, price
        self.usage = Usage(cost=None if price is None else 0.0)
        self._changed = threading.Condition()
        self._clock, self._sleep = clock, sleep
        self._under_way = 0
        self._next = 0.0
        self._pause = 0.0
        self._spread = 0.0
        self._refusals = 0.0

    def take(self) -> bool:
        """Wait for permission to send one request; False if a limit is reached."""
        with self._changed:
            while True:
                reached = self._reached()
                if reached is not None:
                    self.usage.stopped = reached
                    return False
                if self._has_room():
                    break
                self._changed.wait()
            self.usage.requests += 1
            self._under_way += 1
            now = self._clock()
            turn = self._turn(now)
        while turn > now:
            if self._sleep(turn - now):
                break
            with self._changed:
                if self._pause <= turn:
                    break
                now = self._clock()
                turn = self._turn(now)  # a pause was asked for while this one waited
        return True

    def back(self, input_tokens: int, output_tokens: int) -> None:
        """An answer came."""
        with self._changed:
            self.usage.answers += 1
            self._spread *= _CALMER
            self._refusals = max(self._refusals - _FORGIVEN, 0.0)
            self._count(input_tokens, output_tokens)

    def failed(self, wait: float | None, input_tokens: int = 0, output_tokens: int = 0) -> bool:
        """Record a request without a usable answer.

        Args:
            wait: seconds that the endpoint asked to wait; None for no pause.

        Returns:
            whether all requests are delayed; otherwise only the caller waits.
        """
        with self._changed:
            self._count(input_tokens, output_tokens)
            if wait:
                self._refusals = min(self._refusals + 1, _MOST_REFUSALS)
            delayed = bool(wait) and self._refusals >= _SEVERAL
            if wait and delayed:
                now = self._clock()
                if now >= self._pause:  # several that were under way together are one refusal
                    self._spread = min(max(2 * self._spread, wait, _LEAST_SPREAD), _MOST_SPREAD)
                self._pause = max(self._pause, now + wait)
            return delayed

    def count_cached(self) -> None:
        """An answer was there already."""
        with self._changed:
            self.usage.cached += 1

    def _count(self, input_tokens: int, output_tokens: int) -> None:
        usage = self.usage
        self._under_way -= 1
        usage.input_tokens += input_tokens
        usage.output_tokens += output_tokens
        if self.price is not None:
            usage.cost = self.price.of(usage.input_tokens, usage.output_tokens)
        self._changed.notify_all()

    def _turn(self, now: float) -> float:
        """Return the time of the next request."""
        if self.limits.per_minute is None:
            if now >= self._pause:
                return now
            return self._pause + random.uniform(0.0, self._spread)
        turn = max(now, self._pause, self._next)
        self._next = turn + 60.0 / self.limits.per_minute
        return turn

    def _reached(self) -> str | None:
        usage, limits = self.usage, self.limits
        if limits.requests is not None and usage.requests >= limits.requests:
            return f"max_requests={limits.requests}"
        tokens = usage.input_tokens + usage.output_tokens
        for name, limit, used in (
            ("max_tokens", limits.tokens, tokens),
            ("max_cost", limits.cost, usage.cost or 0.0),
        ):
            if limit is None:
                continue
            if used >= limit:
                return f"{name}={limit:g}" if isinstance(limit, float) else f"{name}={limit}"
            if usage.answers and not tokens:
                return f"{name}, as the endpoint reports no token counts (use max_requests)"
        return None

    def _has_room(self) -> bool:
        """Return whether the estimated usage of pending requests allows one more."""
        usage, limits = self.usage, self.limits
        if (limits.tokens is None and limits.cost is None) or not self._under_way:
            return True
        if not usage.answers:
            return self._under_way < _FIRST
        share = 1 + self._under_way / usage.answers
        tokens = (usage.input_tokens + usage.output_tokens) * share
        if limits.tokens is not None and tokens >= limits.tokens:
            return False
        return limits.cost is None or (usage.cost or 0.0) * share < limits.cost


# Retries of one request within a budget.

_FIRST_WAIT, _PATIENCE_LONGEST_WAIT = 0.5, 60.0
_LIMITED = 8
"""Factor on the number of retries after 429 (too many requests)."""


class Unsent(Exception):
    """Request that was not sent.

    Attributes:
        kind: ``budget`` or ``stopped``.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class GivenUp(Exception):
    """Request that failed every time.

    Attributes:
        down: number of consecutive failed requests, if enough to give up the endpoint, otherwise 0.
    """

    def __init__(self, last: Transient, tried: int, down: int = 0) -> None:
        self.last, self.tried, self.down = last, tried, down
        super().__init__(f"{last} (tried {tried} times)")


class Patience:
    """Sender of requests within a budget, with retries; thread-safe.

    Args:
        budget: decides when to stop, and pauses all requests after several 429.
        retries: maximum number of retries; eight times as many after 429, which is no fault of the
            request.
        stop: set if the run ends early.
    """

    def __init__(self, budget: Budget, retries: int, stop: threading.Event) -> None:
        self.budget, self.retries, self.stop = budget, retries, stop
        self._lost = 0

    def send(self, once: Callable[[], R], tokens: Callable[[R], tuple[int, int]]) -> R:
        """Return the answer to one request.

        Args:
            once: sends it; raises Transient if a retry may succeed.

        Raises:
            Unsent: a limit is reached, or the run was stopped.
            GivenUp: it failed every time.
            Exception: any other error of ``once``, immediately.
        """
        tried = limited = 0
        while True:
            if not self.budget.take():
                raise Unsent("budget", f"stopped by {self.budget.usage.stopped}")
            if self.stop.is_set():
                self.budget.failed(None)
                raise Unsent("stopped", "the run was stopped")
            try:
                answer = once()
            except Transient as error:
                delayed = self.budget.failed(error.wait, *error.tokens)
                if error.kind == "rate_limited":
                    limited += 1
                else:
                    tried += 1
                if tried > self.retries or limited > self.retries * _LIMITED:
                    self._lost += 1
                    down = self._lost if self._lost >= _IN_A_ROW else 0
                    raise GivenUp(error, tried + limited, down) from None
                if not delayed:
                    again = limited if error.kind == "rate_limited" else tried
                    most = min(_PATIENCE_LONGEST_WAIT, _FIRST_WAIT * 2 ** (again - 1))
                    self.stop.wait(error.wait or most * random.uniform(0.5, 1.0))
            except BaseException:
                self.budget.failed(None)
                raise
            else:
                self._lost = 0
                self.budget.back(*tokens(answer))
                return answer


# Answers of an endpoint in one SQLite file, so that a killed run can resume.

_OWN = 0x6576616C
"""SQLite application id of our files: "eval"."""
_VERSION = 1
"""Raised when a table changes its form."""
_WAIT = 60  # seconds that another process may lock a file


class AnswerFile:
    """One SQLite file; thread-safe.

    Args:
        path: created if missing, readable only by its owner.

    Raises:
        InputError: the file is something else, such as another program's database, or cannot be
            written.
    """

    def __init__(self, path: str | Path, tables: str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._base = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level=None, timeout=_WAIT
            )
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"cache {self.path}: cannot be used: {error}.") from None
        try:
            self._claim()
            self._use_wal()
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(tables)
        except sqlite3.Error as error:
            self._base.close()
            raise InputError(
                f"cache {self.path}: cannot be used: {error}.",
                code="cache_unusable",
                file=str(self.path),
            ) from None
        except InputError:
            self._base.close()
            raise

    def _use_wal(self) -> None:
        """Switch the journal: a kill loses no answers, a power cut at most the last ones.

        SQLite's timeout does not apply while another run switches it, too.
        """
        end = time.monotonic() + _WAIT
        while True:
            try:
                self._base.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def _claim(self) -> None:
        """Mark a new file as ours; another program's is not touched."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            (application,) = self._base.execute("PRAGMA application_id").fetchone()
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            (filled,) = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != _OWN and filled:
                raise InputError(
                    f"cache {self.path}: this is a database of another program, or of an earlier"
                    " version of this one; name a new file.",
                    code="cache_unusable",
                    file=str(self.path),
                )
            if application == _OWN and version != _VERSION:
                raise InputError(
                    f"cache {self.path}: its form is {version}, and this version of evalengine"
                    f" reads form {_VERSION}; name another file.",
                    code="cache_unusable",
                    version=version,
                )
            if application != _OWN:
                self._base.execute(f"PRAGMA application_id={_OWN}")
                self._base.execute(f"PRAGMA user_version={_VERSION}")
        finally:
            self._base.execute("COMMIT" if self._base.in_transaction else "SELECT 1")

    def close(self) -> None:
        """Write everything back into the one file."""
        with self._lock:
            self._base.close()


# Embeddings of texts from an endpoint: in batches, each text once, kept as they arrive.

PATH = "/embeddings"
URL_VARIABLE = "OPENAI_BASE_URL"
_TABLES = """
CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""
_LOOKED_UP = 500
_WHO = "the embeddings endpoint"


class Embedded(msgspec.Struct, frozen=True):
    """Vectors of texts.

    Attributes:
        vectors: float32 [n, d]; NaN for rejected texts.
    """

    vectors: Array
    rejected: dict[int, str]
    usage: Usage


class _Answer(msgspec.Struct, frozen=True):
    """Vectors of one batch, float32 [n, d], and tokens read."""

    vectors: Array
    tokens: int


class _VectorCache(AnswerFile):
    """Vectors by a hash of endpoint, model, length and text; neither texts nor keys are stored."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, _TABLES)

    def get(self, keys: Sequence[str]) -> dict[str, Array]:
        """Return the cached vectors of the keys."""
        result: dict[str, Array] = {}
        for first in range(0, len(keys), _LOOKED_UP):
            some = keys[first : first + _LOOKED_UP]
            placeholders = ",".join("?" * len(some))
            with self._lock:
                rows = self._base.execute(
                    f"SELECT key, vector FROM embeddings WHERE key IN ({placeholders})", some
                ).fetchall()
            result.update((key, np.frombuffer(vector, "<f4")) for key, vector in rows)
        return result

    def put(self, keys: Sequence[str], vectors: Array) -> None:
        """Keep vectors; they are on disk, as far as this process goes, once this returns."""
        rows = [(key, one.astype("<f4").tobytes()) for key, one in zip(keys, vectors, strict=True)]
        with self._lock:
            self._base.execute("BEGIN")
            self._base.executemany("INSERT OR REPLACE INTO embeddings VALUES (?,?)", rows)
            self._base.execute("COMMIT")


def embed(texts: Sequence[str], embedding: Embedding) -> Embedded:
    """Return vectors of texts, from the cache or the endpoint.

    Args:
        texts: distinct and not empty (endpoints refuse empty ones).

    Raises:
        EndpointError: the endpoint cannot be used, a limit was reached, or a batch failed every
            time; vectors so far are cached, and the same call resumes.
        OptionError: no address, or the extra ``embeddings`` is not installed.
        InputError: the cache cannot be used.
    """
    base_url = embedding.base_url or os.environ.get(URL_VARIABLE, "")
    if not base_url.strip():
        raise OptionError(
            f"{option('embedder')}: give the endpoint's address:"
            f" base_url=http://localhost:8000/v1, or the environment variable {URL_VARIABLE}.",
            code="option_missing",
            option="base_url",
        )
    url = checked_url(base_url)
    limits = Limits(
        requests=embedding.max_requests,
        tokens=embedding.max_tokens,
        cost=embedding.max_cost,
        per_minute=embedding.requests_per_minute,
    )
    stop = threading.Event()
    budget = Budget(limits, price_of(embedding.model, embedding.prices), sleep=stop.wait)
    cache = _VectorCache(embedding.cache)
    client = None
    try:
        about = [url, embedding.model, embedding.dimensions]
        keys = [hashlib.sha256(json.dumps([*about, text]).encode()).hexdigest() for text in texts]
        cached = cache.get(keys)
        budget.usage.cached = len(cached)
        missing = [i for i, key in enumerate(keys) if key not in cached]
        vectors: dict[int, Array] = {}
        rejected: dict[int, str] = {}
        if missing:
            client = Client(
                url,
                PATH,
                key_from(embedding.api_key_env),
                embedding.timeout,
                embedding.concurrency,
                who=_WHO,
                extra="embeddings",
                failure=EndpointError,
            )
            source = _Source(
                client, embedding, Patience(budget, embedding.retries, stop), texts, keys, cache
            )
            vectors, rejected = source.all(missing)
        return Embedded(_stacked(keys, cached, vectors, rejected), rejected, budget.usage)
    finally:
        stop.set()
        if client is not None:
            client.close()
        cache.close()


class _Source:
    """Texts of one run that the cache does not have."""

    def __init__(
        self,
        client: Client,
        embedding: Embedding,
        patience: Patience,
        texts: Sequence[str],
        keys: Sequence[str],
        cache: _VectorCache,
    ) -> None:
        self._client, self._embedding, self._patience = client, embedding, patience
        self._texts, self._keys, self._cache = texts, keys, cache
        self._made: dict[int, Array] = {}
        self._rejected: dict[int, str] = {}
        self._accepted = False

    def all(self, missing: list[int]) -> tuple[dict[int, Array], dict[int, str]]:
        """Vectors and refusals by the number of the text."""
        size = self._embedding.batch_size
        batches = [missing[i : i + size] for i in range(0, len(missing), size)]
        with ThreadPoolExecutor(min(self._embedding.concurrency, len(batches))) as pool:
            try:
                futures: list[Future[None]] = [pool.submit(self._batch, one) for one in batches]
                wait(futures, return_when=FIRST_EXCEPTION)
                failed = [one.exception() for one in futures if one.done()]
                for error in failed:
                    if error is not None:
                        raise error
            except BaseException:
                self._patience.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return self._made, self._rejected

    def _batch(self, batch: list[int]) -> None:
        """One batch; one that is not taken is halved until the texts are known that are not."""
        body: dict[str, Any] = {
            "model": self._embedding.model,
            "input": [self._texts[i] for i in batch],
        }
        if self._embedding.dimensions is not None:
            body["dimensions"] = self._embedding.dimensions
        try:
            answer = self._patience.send(
                lambda: self._client.post(body, lambda response: _read(response, len(batch))),
                lambda answer: (answer.tokens, 0),
            )
        except Rejected as error:
            if len(batch) > 1:
                half = len(batch) // 2
                self._batch(batch[:half])
                self._batch(batch[half:])
                return
            if not self._accepted and not self._made:
                raise self._stopped(f"it refuses every text: {error}", "texts_refused") from None
            self._rejected[batch[0]] = str(error)
            return
        except Unsent as error:
            raise self._stopped(str(error), error.kind) from None
        except GivenUp as error:
            raise self._stopped(str(error), error.last.kind) from None
        requested, size = self._embedding.dimensions, answer.vectors.shape[1]
        if requested is not None and size != requested:
            raise self._stopped(
                f"it returns vectors of {size} numbers instead of dimensions={requested}. Omit"
                " dimensions, or use a model that can shorten its vectors",
                "wrong_length",
            )
        self._accepted = True
        self._cache.put([self._keys[i] for i in batch], answer.vectors)
        self._made.update(zip(batch, answer.vectors, strict=True))

    def _stopped(self, why: str, code: str) -> EndpointError:
        done = self._patience.budget.usage.cached + len(self._made)
        return EndpointError(
            f"{_WHO} stopped: {why}. {done:,} of {len(self._texts):,} distinct texts are embedded"
            f" and kept in {self._embedding.cache}; the same call goes on from there.",
            code=code,
            count=done,
            of=len(self._texts),
            stopped=self._patience.budget.usage.stopped,
        )


def _read(body: Any, n: int) -> _Answer:
    """Parse the vectors of a response's JSON, in the order of the texts.

    Raises:
        Transient: JSON of another form, or numbers that are not finite.
    """
    try:
        data = body["data"]
        places = [int(one.get("index", i)) for i, one in enumerate(data)]
        vectors: list[Any] = [None] * n
        for place, one in zip(places, data, strict=True):
            vectors[place] = _vector(one["embedding"])
        stacked = np.stack(vectors)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise Transient(
            "bad_answer", f"the answer does not contain {n} vectors of one length"
        ) from None
    if stacked.ndim != 2 or stacked.shape[1] == 0 or sorted(places) != list(range(n)):
        raise Transient("bad_answer", f"the answer does not contain {n} vectors of one length")
    if not np.isfinite(stacked).all():
        raise Transient("bad_answer", "the answer contains vectors with NaN or infinity")
    return _Answer(stacked, token_counts(body)[0])


def _vector(value: Any) -> Array:
    """Numbers, or the base64 of their bytes."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    return np.array(value, np.float32)


def _stacked(
    keys: Sequence[str],
    cached: dict[str, Array],
    computed: dict[int, Array],
    rejected: dict[int, str],
) -> Array:
    lengths = {one.size for one in (*cached.values(), *computed.values())}
    if len(lengths) > 1:
        raise EndpointError(
            f"{_WHO} gave vectors of different lengths ({', '.join(map(str, sorted(lengths)))}):"
            " was the model replaced under the same name? Use another cache.",
            code="lengths_differ",
            counts=sorted(lengths),
        )
    out = np.full((len(keys), *lengths), np.nan, np.float32)
    for i, key in enumerate(keys):
        if i not in rejected:
            out[i] = cached[key] if key in cached else computed[i]
    return out
