"""Retries of one request within a budget."""

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
"""Factor on the number of retries after 429 (too many requests)."""
_IN_A_ROW = 20
"""Requests given up with no answer in between, after which an endpoint counts as down."""


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
                held = self.budget.failed(error.wait, *error.tokens)
                if error.kind == "rate_limited":
                    limited += 1
                else:
                    tried += 1
                if tried > self.retries or limited > self.retries * _LIMITED:
                    self._lost += 1
                    down = self._lost if self._lost >= _IN_A_ROW else 0
                    raise GivenUp(error, tried + limited, down) from None
                if not held:
                    again = limited if error.kind == "rate_limited" else tried
                    most = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (again - 1))
                    self.stop.wait(error.wait or most * random.uniform(0.5, 1.0))
            except BaseException:
                self.budget.failed(None)
                raise
            else:
                self._lost = 0
                self.budget.back(*tokens(answer))
                return answer
