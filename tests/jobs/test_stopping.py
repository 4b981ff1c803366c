"""Signals: heeded at once, but not while a result is put into its place."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from evalengine.jobs.process import Stopped, aside, deferred_signals, stoppable


def tell(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    for _ in range(1000):  # its handler runs between two of these
        pass


def test_a_signal_is_heeded_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stopped) as caught, stoppable():
        tell(signal.SIGTERM)
    assert (caught.value.signal, str(caught.value)) == (signal.SIGTERM, "SIGTERM")
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_held_is_done_first() -> None:
    done: list[str] = []

    def in_place() -> None:
        with deferred_signals():
            with deferred_signals():
                tell(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with stoppable():
        with pytest.raises(Stopped) as caught:
            in_place()
        assert (done, caught.value.signal) == (["inner", "outer"], signal.SIGINT)
        with deferred_signals():  # it is heeded once
            done.append("again")
    assert done[-1] == "again"


def test_work_that_nobody_waits_for_knows_it() -> None:
    left: list[threading.Event] = []
    go_on = threading.Event()

    def work(gone: threading.Event) -> bool:
        left.append(gone)
        os.kill(os.getpid(), signal.SIGTERM)
        return go_on.wait(60)

    with pytest.raises(Stopped), stoppable():
        aside(work)
    assert left[0].is_set()
    go_on.set()
