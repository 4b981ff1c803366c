"""A run that is killed goes on where it was, and pays for nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

SERVER = Path(__file__).with_name("server.py")


@pytest.mark.slow
def test_kill_in_the_middle_of_5000_requests(tmp_path):
    rows = 2500  # two steps each
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
        for stop_at in (900, 2600):
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
    # What was under way when the process died had no answer yet: at most what may be at once.
    again = sum(n - 1 for n in asked.values())
    assert again <= 2 * 16
    verdicts = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert verdicts["datum_id"].to_list() == list(range(rows))
    assert verdicts["status"].unique().to_list() == ["ok"]
    assert f"{2 * rows + again - sent[-1]} requests" in done.stderr


@pytest.mark.slow
def test_many_at_once_keep_near_the_floor(tmp_path):
    """300 requests, 64 at once, against 0.5 s: no thread stands in another's way."""
    from judge.server import serving

    import evalengine as ee

    table = pl.DataFrame({"text": [f"Text {i}." for i in range(320)], "contexts": [["c"]] * 320})
    with serving(latency=0.5) as server:
        begun = time.monotonic()
        done = ee.judge(
            table, metrics="Hallucination", model="m", base_url=server.url,
            cache=str(tmp_path / "c"), concurrency=64,
        )  # fmt: skip
        seconds = time.monotonic() - begun
        assert server.most >= 48
    assert done.usage.requests == 320
    assert seconds < 320 * 0.5 / 8  # far from one after another; benchmarks/judged.py measures it
