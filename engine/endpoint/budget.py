"""What a run may cost, and how fast it may go."""

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
"""Requests under way before the first answer tells what one takes."""
_LEAST_SPREAD, _MOST_SPREAD = 1.0, 60.0
_CALMER = 0.98
_SEVERAL, _MOST_REFUSALS, _FORGIVEN = 3, 6, 0.1
"""Refusals that hold everybody back, how many are remembered, and what an answer takes off them:
one refusal in ten requests and fewer are strays, which hold back the refused request alone."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Price of one model, in any currency, per million tokens.

    Attributes:
        input: of tokens read.
        output: of tokens written.
    """

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost."""
        return (self.input * input_tokens + self.output * output_tokens) / _MILLION


def price_of(
    model: str, prices: str | Path | Mapping[str, Mapping[str, float]] | None
) -> Price | None:
    """The price of a model.

    Args:
        model: its name.
        prices: model -> ``input`` and ``output``, or a TOML file of that; None where unknown.

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
    """What a run may use up; None for no limit.

    Attributes:
        requests: requests sent, repeated ones included.
        tokens: tokens read and written.
        cost: by the price table.
        per_minute: requests a minute.
    """

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    per_minute: float | None = None


class Usage(msgspec.Struct):
    """What a run has used.

    Attributes:
        requests: requests sent, repeated ones included.
        answers: answers that came.
        cached: answers that were there already.
        input_tokens: of the answers that came.
        output_tokens: of them.
        cost: of them, None without a price.
        stopped: which limit was reached, or None.
    """

    requests: int = 0
    answers: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    stopped: str | None = None


class Budget:
    """Counts what is sent and says when to stop; threads may share it.

    Requests never pass their limit. Tokens and cost are known once an answer is there: what is
    under way counts as much as the mean of the answers so far. Where that would pass a limit,
    :meth:`take` waits for an answer to come back; it stops where what was used has reached it. A
    few requests go out before the first answer. So a limit is passed by little more than the
    answers that were under way together cost more than the mean.

    A pause that the endpoint asks for holds back the refused request; everybody, where several
    were refused and few answered in between. Then those who wait go on spread out over a time
    that doubles with every pause and shrinks with every answer.

    Args:
        limits: of the run.
        price: of the model, or None.
        clock: seconds; for tests.
        sleep: waits so many seconds; true where the run has ended meanwhile.
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
        """Ask leave for one request, waiting for its turn; False where a limit is reached."""
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
        """No answer came that can be used.

        Args:
            wait: seconds that the endpoint asked to wait; None for no pause.
            input_tokens: read all the same.
            output_tokens: written all the same.

        Returns:
            whether everybody is held back so long; else the caller waits alone.
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
        """When the next request may leave."""
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
        """Whether what is under way leaves room for one more, as far as can be known."""
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
