"""Signals stop a job at once, except while a result is moved into its place."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from evalengine.jobs.process import Stopped, aside, deferred_signals, stoppable


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    for _ in range(1000):  # the handler runs between two iterations
        pass


def test_a_signal_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stopped) as caught, stoppable():
        send(signal.SIGTERM)
    assert (caught.value.signal, str(caught.value)) == (signal.SIGTERM, "SIGTERM")
    assert signal.getsignal(signal.SIGTERM) is before


def test_deferred_work_is_finished_first() -> None:
    done: list[str] = []

    def in_place() -> None:
        with deferred_signals():
            with deferred_signals():
                send(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with stoppable():
        with pytest.raises(Stopped) as caught:
            in_place()
        assert (done, caught.value.signal) == (["inner", "outer"], signal.SIGINT)
        with deferred_signals():  # the signal raises only once
            done.append("again")
    assert done[-1] == "again"


def test_abandoned_work_is_notified() -> None:
    events: list[threading.Event] = []
    go_on = threading.Event()

    def work(abandoned: threading.Event) -> bool:
        events.append(abandoned)
        os.kill(os.getpid(), signal.SIGTERM)
        return go_on.wait(60)

    with pytest.raises(Stopped), stoppable():
        aside(work)
    assert events[0].is_set()
    go_on.set()
