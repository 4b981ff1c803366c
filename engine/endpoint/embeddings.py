"""Embeddings from an endpoint, and the file of answers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from ..schemas.errors import EndpointError, InputError, OptionError
from ..schemas.option_values import Embedding
from ..schemas.wording import option
from .client import (
    Budget,
    Client,
    GivenUp,
    Limits,
    Patience,
    Rejected,
    Transient,
    Unsent,
    Usage,
    checked_url,
    key_from,
    price_of,
    token_counts,
)

# Answers of an endpoint in one SQLite file, so that a killed run can resume.

_OWN = 0x6576616C
"""SQLite application id of our files: "eval"."""
_VERSION = 1
"""Raised when a table changes its form."""


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
                self.path, check_same_thread=False, isolation_level=None, timeout=60
            )
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"cache {self.path}: cannot be used: {error}.") from None
        try:
            self._claim()
            # With WAL, a kill loses no answers; a power cut loses at most the last ones.
            self._base.execute("PRAGMA journal_mode=WAL")
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
                lambda: self._client.post(body, lambda found: _read(found, len(batch))),
                lambda found: (found.tokens, 0),
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
        asked, size = self._embedding.dimensions, answer.vectors.shape[1]
        if asked is not None and size != asked:
            raise self._stopped(
                f"it returns vectors of {size} numbers instead of dimensions={asked}. Omit"
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
