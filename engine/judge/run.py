"""Concurrent judging of rows: every call is made once, and every answer is stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

import msgspec

from ..endpoint.budget import Budget, Usage
from ..endpoint.client import Rejected
from ..endpoint.patience import GivenUp, Patience, Unsent
from ..schemas.errors import JudgeError
from .cache import Cache, key_of
from .client import ChatClient, Completion, Unstructured
from .parsing import BadReply, parse, response_schema
from .prompts import Prompt
from .steps import Asked, Failed, NotAnswered, Record, Row, judge_row

REJECTED = "rejected"
"""Status of a call that the endpoint does not take, however often it is sent."""
_TOLD_EVERY = 0.2
_ENDED = ("refused", "truncated")
"""Bad replies that no further word mends: at temperature 0 the same request gives the same."""
_REPEATED = 4000
"""Characters of a bad reply that are sent back with the error."""


class Request(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        body: of the HTTP request, without a response format.
        count: number of items to judge, or None.
    """

    key: str
    prompt: Prompt
    body: dict[str, Any]
    count: int | None


class Source(Protocol):
    """Source of answers that are not in the cache."""

    def answer(self, request: Request) -> Completion:
        """The answer; raises Failed."""
        ...


class Progress(msgspec.Struct, frozen=True):
    """Progress of a run."""

    done: int
    total: int
    usage: Usage
    seconds: float
    ending: bool = False

    @property
    def line(self) -> str:
        """``120/500 rows, 240 requests (12.0/s), 300 cached, cost 0.0123``."""
        usage, rate = self.usage, self.usage.requests / max(self.seconds, 1e-9)
        cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
        return (
            f"{self.done:,}/{self.total:,} judged, {usage.requests:,} requests ({rate:.1f}/s),"
            f" {usage.cached:,} cached, {usage.input_tokens + usage.output_tokens:,} tokens{cost}"
        )


class Endpoint:
    """Source that sends requests to an endpoint, within a budget, with retries.

    Args:
        budget: decides when to stop.
        retries: maximum number of retries of a failed request.
        structured: ``auto`` requests a JSON schema until the endpoint refuses one; ``schema``,
            ``object`` and ``none`` are fixed.
        stop: set if the run ends early.
    """

    def __init__(
        self,
        client: ChatClient,
        budget: Budget,
        retries: int,
        structured: str,
        stop: threading.Event,
    ) -> None:
        self._client, self._patience = client, Patience(budget, retries, stop)
        self._form = "schema" if structured == "auto" else structured
        self._may_fall = structured == "auto"

    def found(self) -> None:
        """An answer of this endpoint and model was there already, so that both are right."""
        self._client.worked = True

    def answer(self, request: Request) -> Completion:
        """Return the answer to a request.

        Raises:
            JudgeError: the endpoint cannot be used.
            Failed: no answer within the limits.
        """
        while True:
            form = self._form
            body = {**request.body, **self._asked(form, request)}
            try:
                answer = self._patience.send(
                    partial(self._client.complete, body),
                    lambda answer: (answer.input_tokens, answer.output_tokens),
                )
            except Unstructured as error:
                if form != self._form:  # another thread has learnt it meanwhile
                    continue
                if not self._may_fall:
                    raise Failed(REJECTED, str(error)) from None
                self._form = {"schema": "object", "object": "none"}[form]
            except Rejected as error:
                raise Failed(REJECTED, str(error)) from None
            except Unsent as error:
                told = f"not asked: {error}" if error.kind == "budget" else str(error)
                raise Failed(error.kind, told) from None
            except GivenUp as error:
                if error.last.unreachable:
                    raise JudgeError(
                        f"nobody answers at the judge's address: {error.last}.",
                        code="endpoint_unreachable",
                    ) from None
                if error.down:
                    raise JudgeError(
                        f"the judge's endpoint answers no more: {error.down} calls in a row failed"
                        f" every time, the last with {error}. What was answered is in the cache:"
                        " run again when the endpoint works.",
                        code="endpoint_failing",
                        count=error.down,
                    ) from None
                raise Failed(error.last.kind, str(error)) from None
            else:
                # From now on a refusal that speaks of formats is about one request.
                self._may_fall = self._may_fall and form != self._form
                return answer

    @staticmethod
    def _asked(form: str, request: Request) -> dict[str, Any]:
        if form == "none":
            return {}
        if form == "object":
            return {"response_format": {"type": "json_object"}}
        return {"response_format": response_schema(request.prompt, request.count)}


class Collector:
    """Source that answers no request but collects them, for batch files.

    Args:
        keep: receives each request once.
    """

    def __init__(
        self, cache: Cache, keep: Callable[[Request], object] = lambda request: None
    ) -> None:
        self.keys: set[str] = set()
        self._cache, self._keep = cache, keep

    def answer(self, request: Request) -> Completion:
        """Collect the request.

        Raises:
            NotAnswered: with a batch's failure, or because no request was sent.
            Failed: a batch rejected the request, which is not collected then.
        """
        failed = self._cache.failure(request.key)
        if failed is not None and failed[0] == REJECTED:
            raise Failed(*failed)
        if request.key not in self.keys:
            self.keys.add(request.key)
            self._keep(request)
        if failed is not None:
            raise NotAnswered(*failed)
        raise NotAnswered("not_answered", "no answer in the cache")


class Caller:
    """Answer calls from the cache, or from a source once.

    Args:
        retries: maximum number of repetitions of a call with an unusable reply.
        found: called when an answer was in the cache.
    """

    def __init__(
        self,
        *,
        prompts: dict[str, Prompt],
        cache: Cache,
        source: Source,
        endpoint: str,
        model: str,
        parameters: dict[str, Any],
        retries: int,
        found: Callable[[], None] = lambda: None,
    ) -> None:
        self._prompts, self._cache, self._source = prompts, cache, source
        self._endpoint, self._model, self._parameters = endpoint, model, parameters
        self._retries, self._found = retries, found
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Completion]] = {}

    def ask(self, name: str, given: dict[str, Any], judgment: int, spent: Spent) -> list[Any]:
        """Return texts or verdicts of one call; a call with an unusable reply is repeated.

        A repetition appends the reply and its error to the messages: the same request at
        temperature 0 would give, and cost, the same. Refused or truncated replies are requested
        again unchanged, but not at temperature 0.

        Raises:
            JudgeError: the endpoint cannot be used.
            Failed: no usable reply.
        """
        prompt = self._prompts[name]
        messages = prompt.messages(given)
        body = {"model": self._model, "messages": messages, **self._parameters}
        count = len(given[prompt.items]) if prompt.items else None
        told = f"{name}/{prompt.version}"
        bad: Failed | None = None
        for attempt in range(self._retries + 1):
            key = key_of(
                self._endpoint, self._model, messages, self._parameters, told, judgment, attempt
            )
            answer = self._answer(Request(key, prompt, body, count), told)
            spent.prompts[told] = None
            spent.calls[key] = (answer.input_tokens, answer.output_tokens)
            try:
                return parse(_whole(answer), prompt, given)
            except BadReply as error:
                bad = Failed(error.kind, f"{error} (asked {attempt + 1} times)")
                if error.kind not in _ENDED:
                    messages = [*messages, *_mended(answer.text, str(error))]
                    body = {**body, "messages": messages}
                elif self._parameters.get("temperature") == 0:
                    break
        assert bad is not None
        raise bad

    def _answer(self, request: Request, told: str) -> Completion:
        answer = self._cache.get(request.key)
        if answer is not None:
            self._found()
            return answer
        with self._lock:
            under_way = self._under_way.get(request.key)
            if under_way is None:
                mine: Future[Completion] = Future()
                self._under_way[request.key] = mine
        if under_way is not None:
            return under_way.result()
        try:
            # Between the look into the cache and here another thread may have put it there.
            answer = self._cache.get(request.key)
            if answer is None:
                new = self._source.answer(request)
                answer = self._cache.put(request.key, told, self._model, new)
            mine.set_result(answer)
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[request.key]
        return answer


def _mended(reply: str, why: str) -> list[dict[str, str]]:
    """Messages that ask for a better reply; endpoints refuse an empty one of the assistant's."""
    said = f"That reply cannot be used: {why} Answer again, in the form that was asked for."
    before = [{"role": "assistant", "content": reply[:_REPEATED]}] if reply.strip() else []
    return [*before, {"role": "user", "content": said}]


def _whole(answer: Completion) -> str:
    """Return the text of a complete answer.

    Raises:
        BadReply: it was truncated, or refused.
    """
    if answer.refusal is not None or answer.finish == "content_filter":
        said = answer.refusal or "the endpoint's filter held the answer back"
        raise BadReply("refused", " ".join(said.split())[:200])
    if answer.finish == "length":
        raise BadReply("truncated", "the reply was cut off at the limit of its tokens")
    return answer.text


class Spent(msgspec.Struct):
    """Usage by the calls of one row and metric.

    Attributes:
        calls: key -> tokens read and written.
        prompts: names and versions used, in order.
    """

    calls: dict[str, tuple[int, int]] = {}
    prompts: dict[str, None] = {}


class Outcome(msgspec.Struct, frozen=True):
    """Verdict rows of one row and metric, and their usage."""

    records: list[Record]
    spent: Spent


def run(
    rows: Sequence[Row],
    asked: Sequence[Asked],
    caller: Caller,
    *,
    threads: int,
    stop: threading.Event,
    usage: Usage,
    grace: float = 0.0,
    progress: Callable[[Progress], None] | None = None,
) -> list[Outcome]:
    """Judge every row by every metric.

    Args:
        stop: set here if the run ends early, so that no further request is sent.
        grace: seconds that an interrupted run waits for pending answers, which are paid for; a
            second interruption ends it immediately.
        progress: called at intervals, from this thread.

    Returns:
        one outcome per row and metric, rows first.

    Raises:
        JudgeError: the endpoint cannot be used; answers so far are cached.
    """
    units = [(row, one) for row in rows for one in asked]
    outcomes: list[Outcome | None] = [None] * len(units)
    turn = iter(range(len(units)))
    lock = threading.Lock()
    errors: list[BaseException] = []
    done, busy = 0, max(1, min(threads, len(units)))

    def work() -> None:
        nonlocal busy
        try:
            judge_some()
        finally:
            with lock:
                busy -= 1
                if not busy:
                    ended.set()

    def judge_some() -> None:
        nonlocal done
        while not stop.is_set():
            with lock:
                place = next(turn, None)
            if place is None:
                return
            row, one = units[place]
            spent = Spent()
            try:
                records = judge_row(row, one, partial(caller.ask, spent=spent))
            except BaseException as error:
                errors.append(error)
                stop.set()
                return
            outcomes[place] = Outcome(records, spent)
            with lock:
                done += 1

    begun = time.monotonic()

    def now(ending: bool = False) -> Progress:
        return Progress(done, len(units), usage, time.monotonic() - begun, ending)

    # Not Thread.join: in Python 3.11 one that is interrupted takes its thread for ended.
    ended = threading.Event()
    for worker in [threading.Thread(target=work, daemon=True) for _ in range(busy)]:
        worker.start()
    try:
        while not ended.wait(_TOLD_EVERY):
            if progress is not None:
                progress(now())
        if progress is not None:
            progress(now())
    except BaseException:
        stop.set()
        if progress is not None:
            progress(now(ending=True))
        ended.wait(grace)
        raise
    if errors:
        raise errors[0]
    return [outcome for outcome in outcomes if outcome is not None]
