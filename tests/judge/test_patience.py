"""Turns, pauses and repeats: nobody runs into a limit that the endpoint has told of."""

from __future__ import annotations

import threading
import time
from typing import Any

import polars as pl
import pytest
from judge.server import Answer, completion, serving, well

import evalengine as ee
from evalengine import endpoint
from evalengine.endpoint import Budget, GivenUp, Limits, Patience, Price, Transient

ROWS = pl.DataFrame({"text": [f"Text {i}." for i in range(40)], "contexts": [["c"]] * 40})


def run(server: Any, tmp_path: Any, data: pl.DataFrame = ROWS, **more: Any) -> Any:
    named = {"metrics": "Hallucination", "model": "m", "cache": str(tmp_path / "c"), **more}
    return ee.judge(data, base_url=server.url, **named)


class Clock:
    """A clock that only sleeping moves on.

    Attributes:
        now: seconds.
        slept: how long, each time.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def refused(budget: Budget, wait: float) -> None:
    """As many refusals as hold everybody back."""
    assert [budget.failed(wait) for _ in range(3)][-1]


def test_strays_hold_nobody_else_back():
    """One refusal in fifty requests waits alone; so many that few get through do not."""
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    for _ in range(20):
        for _ in range(49):
            budget.take()
            budget.back(1, 1)
        budget.take()
        assert not budget.failed(7.0)
    assert clock.slept == []
    held = []
    for _ in range(6):
        budget.take()
        held.append(budget.failed(7.0))
        budget.take()
        budget.back(1, 1)
    assert held[0] is False
    assert held[-1] is True


def test_a_stray_waits_as_long_as_it_was_told(monkeypatch):
    assert waits(monkeypatch, Transient("rate_limited", "", 3.0), 0) == []
    stop, slept = threading.Event(), []
    monkeypatch.setattr(stop, "wait", slept.append)
    answers = iter([Transient("rate_limited", "", 3.0), None])

    def once() -> int:
        error = next(answers)
        if error is not None:
            raise error
        return 1

    assert Patience(Budget(Limits(), None), 3, stop).send(once, lambda one: (1, 1)) == 1
    assert slept == [3.0]


def test_a_pause_holds_everybody_back():
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    budget.take()
    refused(budget, 7.0)
    budget.take()  # another one's request
    assert clock.now >= 107.0


def test_a_pause_moves_turns_that_were_given_before_it():
    """A thread asleep until its turn learns of a pause that was asked for meanwhile."""
    clock = Clock()
    budget = Budget(Limits(per_minute=120), None, clock, clock.sleep)
    budget.take()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept) == 1:
            refused(budget, 6.0)

    budget._sleep = sleep
    budget.take()
    assert clock.now == pytest.approx(100.5 + 6.0)
    budget.take()
    assert clock.now == pytest.approx(100.5 + 6.0 + 0.5)


def test_after_a_pause_turns_are_spread_out():
    turns = []
    for _ in range(50):
        clock = Clock()
        budget = Budget(Limits(), None, clock, clock.sleep)
        budget.take()
        refused(budget, 0.5)
        budget.take()
        turns.append(clock.now)
    assert len({round(turn, 2) for turn in turns}) > 10
    assert 100.5 <= min(turns) <= max(turns) <= 101.5


def test_every_refusal_spreads_them_further_and_answers_less():
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    spreads = []
    for _ in range(3):
        budget.take()
        refused(budget, 0.5)  # of the same moment: no further refusal
        spreads.append(budget._spread)
        clock.now += 100.0
    assert spreads == [1.0, 2.0, 4.0]
    budget.back(1, 1)
    assert budget._spread < 4.0


def test_a_rate_is_kept_while_the_endpoint_pauses(tmp_path):
    times: list[float] = []

    def script(body: dict[str, Any], before: int) -> Answer:
        times.append(time.monotonic())
        if before < 3:
            return Answer(status=429, headers={"Retry-After": "0.8"})
        return well(body, before)

    with serving(script) as server:
        run(server, tmp_path, ROWS.head(8), requests_per_minute=600, concurrency=8)
    early = [at for at in times[3:] if at < times[2] + 0.7]  # the third holds everybody back
    assert len(early) <= 1  # one may have left before the answer was there
    assert len(times) == 11


def test_an_endpoint_that_takes_few_at_once_loses_no_row(tmp_path, monkeypatch):
    lock = threading.Lock()
    under_way = 0

    def script(body: dict[str, Any], before: int) -> Answer:
        nonlocal under_way
        with lock:
            if under_way >= 4:
                return Answer(status=429, headers={"Retry-After": "0.05"})
            under_way += 1
        time.sleep(0.02)
        with lock:
            under_way -= 1
        return well(body, before)

    monkeypatch.setattr(endpoint, "_LEAST_SPREAD", 0.05)  # as short as this endpoint's pauses
    with serving(script) as server:
        done = run(server, tmp_path, concurrency=32)
    assert done.verdicts["status"].to_list() == ["ok"] * 40


def waits(monkeypatch: pytest.MonkeyPatch, error: Transient, retries: int) -> list[float]:
    """How long is waited before each repeat of a request that always fails."""
    monkeypatch.setattr(endpoint.random, "uniform", lambda low, high: high)
    slept: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", slept.append)

    def once() -> None:
        raise error

    with pytest.raises(GivenUp):
        Patience(Budget(Limits(), None, sleep=slept.append), retries, stop).send(
            once, lambda answer: (0, 0)
        )
    return slept


def test_waits_grow_between_repeats(monkeypatch):
    assert waits(monkeypatch, Transient("server_error", "500"), 4) == [0.5, 1.0, 2.0, 4.0]


def test_a_429_that_says_nothing_is_waited_for_longer_and_more_often(monkeypatch):
    slept = waits(monkeypatch, Transient("rate_limited", "429", None), 2)
    assert slept == [0.5 * 2**i for i in range(7)] + [60.0] * 9


def test_no_retries_are_none(monkeypatch):
    assert waits(monkeypatch, Transient("rate_limited", "429", None), 0) == []


def taken(budget: Budget, seconds: float = 0.3) -> list[bool]:
    """What ``take`` says, or nothing where it waits."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(budget.take()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found


def test_where_only_what_is_under_way_would_pass_a_limit_an_answer_is_waited_for():
    """A first answer that is long says little of the rest."""
    budget = Budget(Limits(tokens=100_000), None)
    budget.take()
    budget.back(10_000, 0)
    for _ in range(9):
        assert taken(budget) == [True]
    waiting: list[bool] = []
    thread = threading.Thread(target=lambda: waiting.append(budget.take()), daemon=True)
    thread.start()
    thread.join(0.2)
    assert (waiting, budget.usage.stopped) == ([], None)
    budget.back(100, 20)
    thread.join(5.0)
    assert waiting == [True]


def test_a_long_first_answer_ends_no_run(tmp_path):
    def script(body: dict[str, Any], before: int) -> Answer:
        answer = well(body, before)
        if before == 0:
            sent = {**completion(answer), "usage": {"prompt_tokens": 10_000}}
            return Answer(body=sent)
        return Answer(answer.text, wait=0.02)

    with serving(script) as server:
        done = run(server, tmp_path, max_tokens=50_000, concurrency=16)
    assert done.verdicts["status"].to_list() == ["ok"] * 40


def test_few_requests_leave_before_the_first_answer(tmp_path):
    """All 32 at once would cost 32 times the limit."""
    prices = {"m": {"input": 1e4, "output": 0.0}}  # an answer of 100 tokens costs 1
    with serving(latency=0.1) as server:
        done = run(server, tmp_path, max_cost=1.0, prices=prices, concurrency=32)
        assert len(server.requests) <= 4
    assert done.usage.stopped == "max_cost=1"


def test_without_token_counts_a_limit_on_them_stops_and_says_so(tmp_path):
    def script(body: dict[str, Any], before: int) -> Answer:
        sent = completion(well(body, before))
        del sent["usage"]
        return Answer(body=sent)

    for limit in (
        {"max_tokens": 1000},
        {"max_cost": 1.0, "prices": {"m": {"input": 1, "output": 1}}},
    ):
        with serving(script) as server:
            done = run(server, tmp_path, cache=str(tmp_path / next(iter(limit))), **limit)
            assert len(server.requests) <= 4
        assert "no token counts" in done.notes[-1]
        assert "max_requests" in done.notes[-1]
        assert set(done.verdicts["status"]) == {"ok", "budget"}
    with serving(script) as server:
        assert set(run(server, tmp_path).verdicts["status"]) == {"ok"}


def test_tokens_of_answers_that_cannot_be_used_count(tmp_path):
    body = {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 7}}
    with serving(lambda _, before: Answer(body=body)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=1)
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.answers) == (140, 14, 0)
    assert Price(1.0, 0.0).of(140, 0) == pytest.approx(140e-6)


def test_an_error_in_a_response_of_status_200_is_told(tmp_path):
    body = {"error": {"message": "no worker left, key sk-secret-0123456789abcdef"}}
    with serving(lambda _, before: Answer(body=body)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=0)
    assert done.verdicts["status"].to_list() == ["bad_answer"]
    assert "left, key [key]" in done.verdicts["error"][0]


@pytest.mark.parametrize("count", ["1e400", "99999999999999999999", "-1", '"many"', "[]x"])
def test_token_counts_that_are_none_are_a_bad_answer(count, tmp_path):
    sent = b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": %s}}'
    raw = sent % count.encode()
    with serving(lambda _, before: Answer(body=raw)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=0)
    assert done.verdicts["status"].to_list() == ["bad_answer"]
