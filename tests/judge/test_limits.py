"""Limits of requests, tokens, cost, rate and concurrency."""

from __future__ import annotations

import threading
import time

import polars as pl
import pytest
from judge.server import serving
from refusals import refused

import evalengine as ee
from evalengine.endpoint import Budget, Limits, retry_after

ROWS = pl.DataFrame({"text": [f"Text {i}." for i in range(40)], "contexts": [["c"]] * 40})


def run(server, tmp_path, **more):
    named = {"metrics": "Hallucination", "model": "m", "cache": str(tmp_path / "c"), **more}
    return ee.judge(ROWS, base_url=server.url, **named)


def test_requests_stop_at_their_limit_and_continue_in_a_later_run(tmp_path):
    with serving() as server:
        done = run(server, tmp_path, max_requests=15)
        assert len(server.requests) == 15
        counts = done.verdicts["status"].value_counts().sort("status").rows()
        assert counts == [("budget", 25), ("ok", 15)]
        assert done.card.metrics.select("support", "scored").row(0) == (40, 15)
        assert "max_requests=15" in done.notes[-1]
        rest = run(server, tmp_path)
        assert (rest.usage.requests, rest.usage.cached) == (25, 15)
    assert rest.card.metrics["scored"][0] == 40


def test_tokens_and_cost_exceed_their_limit_only_by_open_requests(tmp_path):
    prices = {"m": {"input": 1.0, "output": 10.0}}
    each = (100 * 1.0 + 20 * 10.0) / 1e6
    with serving() as server:
        done = run(server, tmp_path, max_tokens=1200, concurrency=1)
        assert done.usage.input_tokens + done.usage.output_tokens == 1200
        more = run(server, tmp_path, max_cost=5 * each, prices=prices, concurrency=1)
    assert more.usage.requests == 5
    assert more.usage.cost == pytest.approx(5 * each)


def test_prices_come_from_a_file(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text("[m]\ninput = 2.0\noutput = 4.0\n", "utf-8-sig")  # with a byte order mark
    with serving() as server:
        done = run(server, tmp_path, prices=path)
    assert done.usage.cost == pytest.approx(40 * (200 + 80) / 1e6)
    path.write_text("[other]\ninput = 2.0\noutput = 4.0\n")
    with serving() as server, pytest.raises(ee.OptionError, match="no price of 'm'"):
        run(server, tmp_path, prices=path)
    with serving() as server, refused("option_missing", option="prices"):
        run(server, tmp_path, max_cost=1.0)


def test_the_concurrency_bounds_open_requests(tmp_path):
    with serving(latency=0.05) as server:
        run(server, tmp_path, concurrency=7)
        assert 4 <= server.most <= 7


def test_a_rate_spreads_requests_out():
    slept: list[float] = []
    now = 100.0
    budget = Budget(Limits(per_minute=120), None, clock=lambda: now, sleep=slept.append)
    assert [budget.take() for _ in range(4)] == [True] * 4
    assert slept == pytest.approx([0.5, 1.0, 1.5])


def test_retry_after_is_seconds_or_a_date():
    assert retry_after("3") == 3.0
    assert retry_after("1e9") == 600.0
    assert retry_after("0") is None  # the default wait applies
    assert retry_after("-5") is None
    assert retry_after("Mon, 01 Jan 2001 00:00:00 GMT") is None
    assert retry_after("nan") is None
    assert retry_after("soon") is None
    assert retry_after(None) is None
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    wait = retry_after(later)
    assert wait is not None
    assert 25 < wait <= 30


def test_progress_is_reported_in_the_callers_thread(tmp_path):
    calls: list[tuple[str, int, int]] = []
    with serving(latency=0.02) as server:
        run(
            server,
            tmp_path,
            concurrency=2,
            progress=lambda now: calls.append(
                (threading.current_thread().name, now.done, now.total)
            ),
        )
    assert {name for name, _, _ in calls} == {threading.current_thread().name}
    assert calls[-1][1:] == (40, 40)
