"""Helper threads: order, errors, nesting, several callers, forks and the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from evalengine.executors import Threads
from evalengine.executors import pools as module

PATIENCE = 60.0  # seconds until a test fails, well above the delays of a slow machine


def concurrent_calls(workers: int) -> list[Callable[[], int]]:
    """Return calls that end only if that many run at the same time."""
    meet = threading.Barrier(workers)
    return [partial(meet.wait, PATIENCE) for _ in range(workers)]


def test_results_are_in_order() -> None:
    threads = Threads(3)
    assert threads.each([partial(pow, i, 2) for i in range(100)]) == [i * i for i in range(100)]


def test_as_many_calls_run_at_once_as_there_are_workers() -> None:
    threads = Threads(4)
    for _ in range(3):
        assert sorted(threads.each(concurrent_calls(4))) == [0, 1, 2, 3]


def test_no_more_run_at_once_even_in_nested_lists() -> None:
    threads = Threads(3)
    lock, now, most = threading.Lock(), 0, 0
    pause = threading.Event()

    def call() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        pause.wait(0.002)
        with lock:
            now -= 1

    threads.each([lambda: threads.each([call] * 6)] * 6)
    assert 2 <= most <= 3


def test_nested_lists_deeper_than_there_are_threads_end() -> None:
    threads = Threads(2)

    def nested(depth: int) -> int:
        if not depth:
            return 1
        return sum(threads.each([partial(nested, depth - 1)] * 3))

    assert nested(5) == 3**5


def test_a_helper_that_is_done_joins_a_list_inside_another_call() -> None:
    threads = Threads(2)
    joined = threading.Event()
    main = threading.get_ident()
    others: set[int] = set()

    def inner() -> None:
        if threading.get_ident() != main:
            others.add(threading.get_ident())
            joined.set()
        joined.wait(0.01 if others else 0.05)

    def outer(long: bool) -> None:
        if long:
            threads.each([inner] * 400)

    def unequal(number: int) -> None:
        outer(threading.get_ident() == main)

    meet = threading.Barrier(2)

    def both(number: int) -> None:
        meet.wait(PATIENCE)  # one in each thread
        unequal(number)

    threads.each([partial(both, 0), partial(both, 1)])
    assert others


def test_threads_are_kept_from_one_list_to_the_next() -> None:
    threads = Threads(2)
    seen: set[int] = set()
    for _ in range(20):
        threads.each([lambda: seen.add(threading.get_ident())] * 8)
        Threads(2).each([lambda: seen.add(threading.get_ident())] * 8)
    helping = [one for one in threading.enumerate() if one.name.startswith("evalengine")]
    assert {one.ident for one in helping} >= seen - {threading.get_ident()}


def test_several_callers_share_one_object() -> None:
    threads = Threads(2)
    result: dict[int, list[int]] = {}

    def caller(number: int) -> None:
        for _ in range(20):
            result[number] = threads.each([partial(pow, number, i) for i in range(10)])

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(5)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(PATIENCE)
    assert result == {number: [number**i for i in range(10)] for number in range(5)}


def test_the_first_error_in_order_is_raised_and_no_call_begins_after_it() -> None:
    threads = Threads(2)
    failed, begun = threading.Event(), []

    def first() -> None:
        assert failed.wait(PATIENCE)
        raise ValueError("first")

    def second() -> None:
        failed.set()
        raise KeyError("second")

    rest = [partial(begun.append, i) for i in range(50)]
    with pytest.raises(ValueError, match="first"):
        threads.each([first, second, *rest])
    assert begun == []
    assert sorted(threads.each(concurrent_calls(2))) == [0, 1]  # all are free again


def test_calls_under_way_are_waited_for_before_an_error_is_raised() -> None:
    threads = Threads(2)
    begun, ended = threading.Event(), threading.Event()

    def fails() -> None:
        assert begun.wait(PATIENCE)
        raise ValueError("here")

    def lasts() -> None:
        begun.set()
        threading.Event().wait(0.05)
        ended.set()

    with pytest.raises(ValueError, match="here"):
        threads.each([fails, lasts])
    assert ended.is_set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stops_the_others(error: type[BaseException]) -> None:
    threads = Threads(2)
    begun: list[int] = []

    def interrupted() -> None:
        raise error

    with pytest.raises(error):
        threads.each([interrupted] * 2 + [partial(begun.append, 1)] * 50)
    assert begun == []
    assert sorted(threads.each(concurrent_calls(2))) == [0, 1]


def test_an_interrupt_is_raised_before_errors_of_other_calls() -> None:
    """Callers that continue after errors of a run must not miss an interrupt."""
    threads = Threads(2)
    meet = threading.Barrier(2)

    def fails() -> None:
        meet.wait(PATIENCE)
        raise ValueError("the run's own")

    def interrupted() -> None:
        meet.wait(PATIENCE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.each([fails, interrupted])


def test_a_given_executor_starts_no_call_after_an_error_and_is_joined() -> None:
    begun, ended = threading.Event(), threading.Event()
    later: list[int] = []

    def fails() -> None:
        assert begun.wait(PATIENCE)
        raise ValueError("here")

    def lasts() -> None:
        begun.set()
        threading.Event().wait(0.1)
        ended.set()

    with ThreadPoolExecutor(2) as executor:
        threads = Threads(2, executor)
        with pytest.raises(ValueError, match="here"):
            threads.each([fails, lasts, *[partial(later.append, i) for i in range(200)]])
        assert ended.is_set()
        seen = len(later)
        threading.Event().wait(0.05)
        assert len(later) == seen
        assert threads.each([partial(pow, i, 2) for i in range(9)]) == [i * i for i in range(9)]


def test_if_no_thread_can_start_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(3)
    refused = threading.Event()

    def refuse(thread: threading.Thread) -> None:
        refused.set()
        raise RuntimeError("can't start new thread")

    module.dismiss()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        seen = threads.each([threading.get_ident] * 10)
    assert refused.is_set()
    assert set(seen) == {threading.get_ident()}
    assert sorted(threads.each(concurrent_calls(3))) == [0, 1, 2]


def test_dismissed_helpers_end_and_start_again() -> None:
    threads = Threads(3)
    threads.each(concurrent_calls(3))
    module.dismiss()
    assert not [one for one in threading.enumerate() if one.name.startswith("evalengine")]
    assert sorted(threads.each(concurrent_calls(3))) == [0, 1, 2]


def output_of(script: str) -> str:
    """Run a script in a new process and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    output = output_of(
        "import os, threading, warnings\n"
        "warnings.simplefilter('ignore')\n"  # newer Pythons warn of any fork while threads run
        "from evalengine.executors import Threads\n"
        "def meet():\n"
        "    barrier = threading.Barrier(2)\n"
        "    return len(Threads(2).each([lambda: barrier.wait(30)] * 2))\n"
        "meet()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(meet())\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), meet())\n"
    )
    assert output == "2 2\n"


def test_work_at_the_end_of_the_process_is_done_by_the_caller() -> None:
    output = output_of(
        "import atexit\n"
        "from evalengine.executors import Threads\n"
        "threads = Threads(2)\n"
        "def work():\n"
        "    print(sum(threads.each([lambda: 1] * 10)))\n"
        "work()\n"
        "atexit.register(work)\n"
    )
    assert output == "10\n10\n"
