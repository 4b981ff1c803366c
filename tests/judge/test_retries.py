"""Retries and pauses of requests after refusals of an endpoint."""

from __future__ import annotations

import threading
import time
from typing import Any

import polars as pl
import pytest
from judge.server import Answer, answer_correctly, completion, serving

import evalengine as ee
from evalengine import endpoint
from evalengine.endpoint import Budget, GivenUp, Limits, Patience, Price, Transient

ROWS = pl.DataFrame({"text": [f"Text {i}." for i in range(40)], "contexts": [["c"]] * 40})


def run(server: Any, tmp_path: Any, data: pl.DataFrame = ROWS, **more: Any) -> Any:
    named = {"metrics": "Hallucination", "model": "m", "cache": str(tmp_path / "c"), **more}
    return ee.judge(data, base_url=server.url, **named)


class Clock:
    """Clock that advances only by sleeping.

    Attributes:
        now: time in seconds.
        slept: duration of every sleep.
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
    """Report enough refusals to pause all requests."""
    assert [budget.failed(wait) for _ in range(3)][-1]


def test_single_refusals_delay_no_other_request():
    """One refusal in fifty requests pauses no other; refusal of every second one pauses all."""
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    for _ in range(20):
        for _ in range(49):
            budget.take()
            budget.back(1, 1)
        budget.take()
        assert not budget.failed(7.0)
    assert clock.slept == []
    paused = []
    for _ in range(6):
        budget.take()
        paused.append(budget.failed(7.0))
        budget.take()
        budget.back(1, 1)
    assert paused[0] is False
    assert paused[-1] is True


def test_a_refused_request_waits_for_retry_after(monkeypatch):
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


def test_a_pause_delays_all_requests():
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    budget.take()
    refused(budget, 7.0)
    budget.take()  # a request of another thread
    assert clock.now >= 107.0


def test_a_pause_delays_requests_that_are_already_scheduled():
    """A thread that sleeps until its scheduled time checks for a pause afterwards."""
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


def test_requests_are_spread_out_after_a_pause():
    times = []
    for _ in range(50):
        clock = Clock()
        budget = Budget(Limits(), None, clock, clock.sleep)
        budget.take()
        refused(budget, 0.5)
        budget.take()
        times.append(clock.now)
    assert len({round(moment, 2) for moment in times}) > 10
    assert 100.5 <= min(times) <= max(times) <= 101.5


def test_refusals_increase_the_spread_and_answers_reduce_it():
    clock = Clock()
    budget = Budget(Limits(), None, clock, clock.sleep)
    spreads = []
    for _ in range(3):
        budget.take()
        refused(budget, 0.5)  # refusals of the same moment count once
        spreads.append(budget._spread)
        clock.now += 100.0
    assert spreads == [1.0, 2.0, 4.0]
    budget.back(1, 1)
    assert budget._spread < 4.0


def test_a_pause_applies_with_a_rate_limit(tmp_path):
    times: list[float] = []

    def script(body: dict[str, Any], before: int) -> Answer:
        times.append(time.monotonic())
        if before < 3:
            return Answer(status=429, headers={"Retry-After": "0.8"})
        return answer_correctly(body, before)

    with serving(script) as server:
        run(server, tmp_path, ROWS.head(8), requests_per_minute=600, concurrency=8)
    early = [at for at in times[3:] if at < times[2] + 0.7]  # the third refusal pauses all
    assert len(early) <= 1  # one may have been sent before the refusal arrived
    assert len(times) == 11


def test_an_endpoint_with_low_concurrency_loses_no_row(tmp_path, monkeypatch):
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
        return answer_correctly(body, before)

    monkeypatch.setattr(endpoint, "_LEAST_SPREAD", 0.05)  # as short as Retry-After
    with serving(script) as server:
        done = run(server, tmp_path, concurrency=32)
    assert done.verdicts["status"].to_list() == ["ok"] * 40


def waits(monkeypatch: pytest.MonkeyPatch, error: Transient, retries: int) -> list[float]:
    """Return the waits before each repeat of a request that always fails."""
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


def test_a_429_without_retry_after_is_repeated_longer(monkeypatch):
    slept = waits(monkeypatch, Transient("rate_limited", "429", None), 2)
    assert slept == [0.5 * 2**i for i in range(7)] + [60.0] * 9


def test_zero_retries(monkeypatch):
    assert waits(monkeypatch, Transient("rate_limited", "429", None), 0) == []


def take_within(budget: Budget, seconds: float = 0.3) -> list[bool]:
    """Return the result of ``take``, or an empty list if it waits."""
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(budget.take()), daemon=True)
    thread.start()
    thread.join(seconds)
    return results


def test_a_request_waits_if_open_ones_might_exceed_the_limit():
    """The estimate rests on a long first answer, and a shorter second one lowers it."""
    budget = Budget(Limits(tokens=100_000), None)
    budget.take()
    budget.back(10_000, 0)
    for _ in range(9):
        assert take_within(budget) == [True]
    waiting: list[bool] = []
    thread = threading.Thread(target=lambda: waiting.append(budget.take()), daemon=True)
    thread.start()
    thread.join(0.2)
    assert (waiting, budget.usage.stopped) == ([], None)
    budget.back(100, 20)
    thread.join(5.0)
    assert waiting == [True]


def test_a_long_first_answer_does_not_end_a_run(tmp_path):
    def script(body: dict[str, Any], before: int) -> Answer:
        answer = answer_correctly(body, before)
        if before == 0:
            sent = {**completion(answer), "usage": {"prompt_tokens": 10_000}}
            return Answer(body=sent)
        return Answer(answer.text, wait=0.02)

    with serving(script) as server:
        done = run(server, tmp_path, max_tokens=50_000, concurrency=16)
    assert done.verdicts["status"].to_list() == ["ok"] * 40


def test_few_requests_are_sent_before_the_first_answer(tmp_path):
    """32 requests at once would cost 32 times the limit."""
    prices = {"m": {"input": 1e4, "output": 0.0}}  # an answer of 100 tokens costs 1
    with serving(latency=0.1) as server:
        done = run(server, tmp_path, max_cost=1.0, prices=prices, concurrency=32)
        assert len(server.requests) <= 4
    assert done.usage.stopped == "max_cost=1"


def test_missing_token_counts_stop_a_run_with_a_token_limit(tmp_path):
    def script(body: dict[str, Any], before: int) -> Answer:
        sent = completion(answer_correctly(body, before))
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


def test_tokens_of_unusable_answers_count(tmp_path):
    body = {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 7}}
    with serving(lambda _, before: Answer(body=body)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=1)
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.answers) == (140, 14, 0)
    assert Price(1.0, 0.0).of(140, 0) == pytest.approx(140e-6)


def test_an_error_in_a_response_with_status_200_is_recorded(tmp_path):
    body = {"error": {"message": "no worker left, key sk-secret-0123456789abcdef"}}
    with serving(lambda _, before: Answer(body=body)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=0)
    assert done.verdicts["status"].to_list() == ["bad_answer"]
    assert "left, key [key]" in done.verdicts["error"][0]


@pytest.mark.parametrize("count", ["1e400", "99999999999999999999", "-1", '"many"', "[]x"])
def test_invalid_token_counts_are_a_bad_answer(count, tmp_path):
    sent = b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": %s}}'
    raw = sent % count.encode()
    with serving(lambda _, before: Answer(body=raw)) as server:
        done = run(server, tmp_path, ROWS.head(1), retries=0)
    assert done.verdicts["status"].to_list() == ["bad_answer"]
