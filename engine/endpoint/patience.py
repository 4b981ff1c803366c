"""One request until it is answered: within a budget, repeated where a failure may pass."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from .budget import Budget
from .client import Transient

R = TypeVar("R")

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
_LIMITED = 8
"""How many times as often as another a request is repeated that came too early (429)."""


class Unsent(Exception):
    """A request that was not sent.

    Attributes:
        kind: ``budget`` or ``stopped``.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class GivenUp(Exception):
    """A request that failed every time.

    Attributes:
        last: the last failure.
        tried: how often it was sent.
    """

    def __init__(self, last: Transient, tried: int) -> None:
        self.last, self.tried = last, tried
        super().__init__(f"{last} (tried {tried} times)")


class Patience:
    """Sends requests within a budget, and again where they failed; threads may share it.

    Args:
        budget: says when to stop, and holds everybody back after a 429.
        retries: how often a request is sent again; after a 429 eight times as often, as that says
            nothing of the request.
        stop: set where the run ends early.
    """

    def __init__(self, budget: Budget, retries: int, stop: threading.Event) -> None:
        self.budget, self.retries, self.stop = budget, retries, stop

    def send(self, once: Callable[[], R], tokens: Callable[[R], tuple[int, int]]) -> R:
        """The answer to one request.

        Args:
            once: sends it; raises Transient where it is worth another try.
            tokens: read and written, of the answer.

        Raises:
            Unsent: a limit is reached, or the run was stopped.
            GivenUp: it failed every time.
            Exception: whatever else sending raises, at once.
        """
        tried = limited = 0
        while True:
            if not self.budget.take():
                raise Unsent("budget", f"{self.budget.usage.stopped} was reached")
            if self.stop.is_set():
                self.budget.failed(None)
                raise Unsent("stopped", "the run was stopped")
            try:
                answer = once()
            except Transient as error:
                self.budget.failed(error.wait, *error.tokens)
                if error.kind == "rate_limited":
                    limited += 1
                else:
                    tried += 1
                if tried > self.retries or limited > self.retries * _LIMITED:
                    raise GivenUp(error, tried + limited) from None
                if not error.wait:
                    again = limited if error.kind == "rate_limited" else tried
                    most = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (again - 1))
                    self.stop.wait(most * random.uniform(0.5, 1.0))
            except BaseException:
                self.budget.failed(None)
                raise
            else:
                self.budget.back(*tokens(answer))
                return answer
