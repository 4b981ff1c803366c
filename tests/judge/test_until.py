"""Judging of random rows until a gate is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from judge.server import serving
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.jobs.verdicts import until
from evalengine.schemas.option_values import make_options
from evalengine.statistics.sequences import betting, counted

N = 600
ROWS = pl.DataFrame(
    {"datum_id": range(N), "text": [f"Text {i}." for i in range(N)], "contexts": [["c"]] * N}
)
OPTIONS = make_options({"metrics": ["Hallucination"]}, task="judged")


def run(server: Any, tmp_path: Path, gate: str, rows: pl.DataFrame = ROWS, **more: Any) -> Any:
    named = {"metrics": "Hallucination", "model": "m", "cache": str(tmp_path / "c"), **more}
    return ee.judge(rows, base_url=server.url, until=until(gate, OPTIONS), **named)


def test_rows_are_judged_until_the_gate_holds(tmp_path: Path) -> None:
    with serving() as server:
        whole = ee.judge(
            ROWS, metrics="Hallucination", model="m", cache=str(tmp_path / "w"), base_url=server.url
        )
        value = whole.card.value("Hallucination")
        sent = len(server.requests)
        done = run(server, tmp_path, f"Hallucination <= {min(1, value + 0.2)} always")
        some = len(server.requests) - sent
    n = done.card.metrics["scored"][0]
    assert 50 <= n < N
    assert some == n
    ids = done.verdicts["datum_id"].unique()
    assert ids.sort().to_list() == done.verdicts["datum_id"].unique(maintain_order=True).to_list()
    assert ids.max() > N // 2  # not the first rows
    values = done.card.per_datum["value"].to_numpy()
    lower, upper = betting(np.array(counted(values, (0.0, 1.0))), 0.95)
    assert f"[{lower:.4f}, {upper:.4f}]" in done.notes[-1]
    assert f"{n} rows of {N} judged" in done.notes[-1]


def test_rows_are_judged_until_the_gate_cannot_be_shown(tmp_path: Path) -> None:
    with serving() as server:
        sides = [
            run(server, tmp_path, gate)
            for gate in ("Hallucination > 0.99 always", "Hallucination < 0.01 always")
        ]
    assert any("cannot be shown" in one.notes[-1] for one in sides if one.notes)


def test_an_undecided_gate_judges_all_rows(tmp_path: Path) -> None:
    few = ROWS.head(60)
    with serving() as server:
        done = run(server, tmp_path, "Hallucination <= 1 always", few.head(3))
        assert done.card.metrics["support"][0] == 3
        assert not any("judged" in note for note in done.notes)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    with serving() as server:
        status = main(
            [
                "judge", "run", str(tmp_path / "rows.parquet"), "--metric", "Hallucination",
                "--model", "m", "--base-url", server.url, "--out", str(tmp_path / "v.parquet"),
                "--cache", str(tmp_path / "c"), "--until", "Hallucination >= 0.0 always",
            ]
        )  # fmt: skip
    assert status == 0
    assert "judged: Hallucination >= 0.0 always holds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("Hallucination >= 0.5", "gate_unfit"),
        ("Hallucination >= 0.5 surely", "gate_unfit"),
        ("Hallucination >= baseline always", "gate_unfit"),
        ("Hallucination[label=*] >= 0.5 always", "gate_unfit"),
        ("Halucination >= 0.5 always", "unknown_name"),
    ],
)
def test_gates_that_are_refused(gate: str, code: str) -> None:
    with refused(code):
        until(gate, OPTIONS)
