"""Killed and interrupted runs, which continue from the cache."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

SERVER = Path(__file__).with_name("server.py")


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Restore the handler of SIGINT, which background jobs ignore and child processes inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_kill_in_the_middle_of_600_requests(tmp_path):
    rows = 300  # two steps each
    table = pl.DataFrame({"id": list(range(rows)), "text": [f"Opinion {i}." for i in range(rows)]})
    table.write_parquet(tmp_path / "rows.parquet")
    log, port = tmp_path / "log", tmp_path / "url"
    server = subprocess.Popen([sys.executable, str(SERVER), str(port), "0.002", str(log)])
    try:
        while not port.exists():
            time.sleep(0.02)
        command = [
            sys.executable, "-m", "evalengine", "judge", "run", "rows.parquet", "--metric", "Bias",
            "--model", "loopback", "--base-url", port.read_text(), "--out", "verdicts.parquet",
            "--concurrency", "16",
        ]  # fmt: skip
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        sent = []
        for stop_at in (120, 330):
            run = subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
            )
            while not log.exists() or len(log.read_bytes().splitlines()) < stop_at:
                assert run.poll() is None, "ended before it could be killed"
                time.sleep(0.005)
            run.send_signal(signal.SIGKILL)
            run.wait()
            sent.append(len(log.read_bytes().splitlines()))
            assert not (tmp_path / "verdicts.parquet").exists()
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
    finally:
        server.kill()
        server.wait()
    asked = Counter(log.read_bytes().splitlines())
    assert len(asked) == 2 * rows
    # Only requests that were open at a kill are repeated: at most 16 per kill.
    repeats = sum(n - 1 for n in asked.values())
    assert repeats <= 2 * 16
    verdicts = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert verdicts["datum_id"].to_list() == list(range(rows))
    assert verdicts["status"].unique().to_list() == ["ok"]
    assert f"{2 * rows + repeats - sent[-1]} requests" in done.stderr


def interrupted(
    tmp_path: Path, times: int, slow: float
) -> tuple[subprocess.CompletedProcess[str], float, int]:
    """Interrupt a run while four answers are open, which take ``slow`` seconds.

    Returns:
        the finished process; seconds from the first interrupt to its end; answers in the cache.
    """
    from judge.server import Answer, answer_correctly, serving

    def script(body: dict[str, Any], before: int) -> Answer:
        return Answer(answer_correctly(body, before).text, wait=0.0 if before < 4 else slow)

    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(40)], "contexts": [["c"]] * 40})
    rows.write_parquet(tmp_path / "rows.parquet")
    with serving(script) as server:
        command = [
            sys.executable, "-m", "evalengine", "judge", "run", "rows.parquet", "--metric",
            "Hallucination", "--model", "m", "--base-url", server.url, "--out", "v.parquet",
            "--concurrency", "4",
        ]  # fmt: skip
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        run = subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        while len(server.requests) < 8:
            assert run.poll() is None, "ended before it could be interrupted"
            time.sleep(0.02)
        begun = time.monotonic()
        for _ in range(times):
            run.send_signal(signal.SIGINT)
            time.sleep(0.5)
        out, err = run.communicate(timeout=60)
        seconds = time.monotonic() - begun
        assert len(server.requests) == 8
    with sqlite3.connect(tmp_path / "judge.sqlite") as base:
        cached = base.execute("SELECT count(*) FROM answers").fetchone()[0]
    base.close()
    return subprocess.CompletedProcess(command, run.returncode, out, err), seconds, cached


def test_ctrl_c_waits_for_open_answers(tmp_path):
    done, _, cached = interrupted(tmp_path, 1, slow=1.0)
    assert done.returncode == 130
    assert cached == 8
    assert "waiting for answers" in done.stderr
    assert "in judge.sqlite" in done.stderr
    assert not (tmp_path / "v.parquet").exists()


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    done, seconds, cached = interrupted(tmp_path, 2, slow=3.0)
    assert done.returncode == 130
    assert seconds < 2.5  # the answers take 3 s
    assert cached == 4


@pytest.mark.slow
def test_the_allowed_concurrency_is_used(tmp_path):
    """192 requests, 64 at once: a barrier answers only when 64 are open.

    benchmarks/judged.py compares the time with its lower bound.
    """
    from judge.server import Answer, answer_correctly, serving

    import evalengine as ee

    table = pl.DataFrame({"text": [f"Text {i}." for i in range(192)], "contexts": [["c"]] * 192})
    barrier = threading.Barrier(64, timeout=20)

    def script(body: dict[str, Any], before: int) -> Answer:
        with suppress(threading.BrokenBarrierError):  # asserted below
            barrier.wait()
        return answer_correctly(body, before)

    with serving(script) as server:
        done = ee.judge(
            table, metrics="Hallucination", model="m", base_url=server.url,
            cache=str(tmp_path / "c"), concurrency=64,
        )  # fmt: skip
        assert server.most == 64
    assert not barrier.broken
    assert done.usage.requests == 192
