"""Gates of the command ``score``: status, table, baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        (["mAP[iou=0.5] >= 0.42"], 0),
        (["mAP[iou=0.5] >= 0.42", "mAR > 0.9"], 1),
        (["mAPP >= 0.42"], 2),
        (["mAP >= 0.42"], 2),
        (["mAP =>"], 2),
        (["mAR >= baseline"], 2),
    ],
)
def test_status(run: Run, received: dict[str, Any], gates: list[str], status: int) -> None:
    args = [word for gate in gates for word in ("--fail-under", gate)]
    got, out, err = run("score", "p.csv", "g.csv", "--format", "json", *args)
    assert got == status, err
    if status < 2:
        json.loads(out)
        assert err.startswith(f"gates: {'1 of 2 failed' if status else '1 passed'}")


def test_a_gate_that_cannot_be_read_stops_before_the_work(
    run: Run, received: dict[str, Any]
) -> None:
    assert run("score", "p.csv", "g.csv", "--fail-under", "mAP")[0] == 2
    assert not received


def test_the_result_is_saved_when_a_gate_fails(
    run: Run, received: dict[str, Any], tmp_path: Path
) -> None:
    out = str(tmp_path / "run")
    assert run("score", "p.csv", "g.csv", "--out", out, "--fail-under", "mAR > 0.9")[0] == 1
    status, _, err = run(
        "score", "p.csv", "g.csv", "--fail-under", "mAR >= baseline - 0.01", "--baseline", out
    )
    assert status == 0
    assert "mAR >= baseline - 0.01  0.6    0.59   0.6" in err


def test_a_baseline_without_gates_is_refused(run: Run, received: dict[str, Any]) -> None:
    status, _, err = run("score", "p.csv", "g.csv", "--baseline", "x")
    assert (status, "--fail-under" in err) == (2, True)
