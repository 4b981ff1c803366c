"""What a run may cost, and how fast it may go."""

from __future__ import annotations

import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ..schemas.errors import OptionError

_MILLION = 1e6


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
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise OptionError(
            f"prices: {error}. Write a table of models, each with input and output per million"
            ' tokens: ["my-model"] input = 0.15, output = 0.6.'
        ) from None
    if model not in known:
        raise OptionError(f"prices: no price of {model!r}; there are: {', '.join(known)}.")
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
    under way counts as much as the mean of the answers so far, so that a limit is passed by at most
    the difference, and by the first answers that are under way together.

    Args:
        limits: of the run.
        price: of the model, or None.
        clock: seconds; for tests.
        sleep: waits; for tests.
    """

    def __init__(
        self,
        limits: Limits,
        price: Price | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if limits.cost is not None and price is None:
            raise OptionError("max_cost needs prices: a table of what the model's tokens cost.")
        self.limits, self.price = limits, price
        self.usage = Usage(cost=None if price is None else 0.0)
        self._lock = threading.Lock()
        self._clock, self._sleep = clock, sleep
        self._under_way = 0
        self._next = 0.0
        self._pause = 0.0

    def take(self) -> bool:
        """Ask leave for one request, waiting for its turn; False where a limit is reached."""
        with self._lock:
            reached = self._reached()
            if reached is not None:
                self.usage.stopped = reached
                return False
            self.usage.requests += 1
            self._under_way += 1
            now = self._clock()
            turn = max(now, self._pause)
            if self.limits.per_minute is not None:
                turn = max(turn, self._next)
                self._next = turn + 60.0 / self.limits.per_minute
        if turn > now:
            self._sleep(turn - now)
        return True

    def back(self, input_tokens: int, output_tokens: int) -> None:
        """An answer came."""
        with self._lock:
            usage = self.usage
            self._under_way -= 1
            usage.answers += 1
            usage.input_tokens += input_tokens
            usage.output_tokens += output_tokens
            if self.price is not None:
                usage.cost = self.price.of(usage.input_tokens, usage.output_tokens)

    def failed(self, wait: float | None) -> None:
        """No answer came; with ``wait`` nobody sends anything for so many seconds."""
        with self._lock:
            self._under_way -= 1
            if wait:
                self._pause = max(self._pause, self._clock() + wait)

    def found(self) -> None:
        """An answer was there already."""
        with self._lock:
            self.usage.cached += 1

    def _reached(self) -> str | None:
        usage, limits = self.usage, self.limits
        if limits.requests is not None and usage.requests >= limits.requests:
            return f"max_requests={limits.requests}"
        share = 1 + self._under_way / max(1, usage.answers)
        tokens = (usage.input_tokens + usage.output_tokens) * share
        if limits.tokens is not None and tokens >= limits.tokens:
            return f"max_tokens={limits.tokens}"
        if limits.cost is not None and (usage.cost or 0.0) * share >= limits.cost:
            return f"max_cost={limits.cost:g}"
        return None
