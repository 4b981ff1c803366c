"""Cost and rate limits of a run."""

from __future__ import annotations

import random
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ..schemas.errors import OptionError

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
            tomllib.loads(Path(prices).read_text("utf-8"))
            if isinstance(prices, (str, Path))
            else prices
        )
        known = msgspec.convert(table, dict[str, Price])
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise OptionError(
            f"prices: {error}. Write a table of models, each with input and output per million"
            ' tokens: ["my-model"] input = 0.15, output = 0.6.'
        ) from None
    if model not in known:
        raise OptionError(
            f"prices: no price of {model!r}; there are: {', '.join(known)}.",
            code="price_missing",
            value=model,
        )
    return known[model]


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
                "max_cost needs prices: a table of what the model's tokens cost.",
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
            held = bool(wait) and self._refusals >= _SEVERAL
            if wait and held:
                now = self._clock()
                if now >= self._pause:  # several that were under way together are one refusal
                    self._spread = min(max(2 * self._spread, wait, _LEAST_SPREAD), _MOST_SPREAD)
                self._pause = max(self._pause, now + wait)
            return held

    def found(self) -> None:
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
