"""Python's garbage collector stands still while kernels are compiled, and goes on afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numba
import pytest
from numba.core import event

from evalengine.kernels import jit


@pytest.fixture
def seen() -> Iterator[dict[str, bool]]:
    """Whether the collector was on when each function went through a pass of the compiler."""
    found: dict[str, bool] = {}

    class Watch(event.Listener):  # type: ignore[misc]
        def on_start(self, told: Any) -> None:
            found[told.data["qualname"]] = gc.isenabled()

        def on_end(self, told: Any) -> None:
            pass

    watch = Watch()
    event.register("numba:run_pass", watch)
    yield found
    event.unregister("numba:run_pass", watch)


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_held_back_and_let_go(collecting: bool, seen: dict[str, bool]) -> None:
    """Also of a function compiled for another one, and of one that cannot be compiled."""
    jit._numba()

    @numba.njit
    def within(i: int) -> int:
        return i + 1

    @numba.njit
    def around(i: int) -> Any:
        return within(i) + 1

    @numba.njit
    def wrong(i: int) -> Any:
        return around(i) + "text"

    (gc.enable if collecting else gc.disable)()
    try:
        assert around(1) == 3
        assert gc.isenabled() == collecting
        with pytest.raises(numba.TypingError):
            wrong(1)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
    ours = {name.rpartition(".")[2]: on for name, on in seen.items() if "<locals>" in name}
    assert ours == {"within": False, "around": False, "wrong": False}
