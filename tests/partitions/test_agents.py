"""Agent trajectories in buckets, with and without a column of steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from merging.test_parts import CASES
from partitions.cases import in_buckets, next_seed, same_as_in_memory


@pytest.fixture(autouse=True)
def _buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)


@pytest.mark.parametrize("more", [{}, {"intervals": 0.95, "draws": 20}])
def test_as_in_memory(tmp_path: Path, more: dict[str, float]) -> None:
    case = CASES["agents"][1](next_seed())
    same_as_in_memory(replace(case, options={**case.options, **more}), "agents", tmp_path)


@pytest.mark.parametrize("seed", [148, 196])
def test_missing_datums_are_judged_by_the_sizes_of_all_buckets(tmp_path: Path, seed: int) -> None:
    """The median number of calls of a single bucket differs from that of all."""
    same_as_in_memory(CASES["agents"][1](seed), "agents", tmp_path)


def test_calls_without_a_step(tmp_path: Path) -> None:
    case = next(case for seed in range(20) if len((case := CASES["agents"][1](seed)).sides) == 2)
    sides = tuple(side.sort("step").drop("step") for side in case.sides)
    same_as_in_memory(replace(case, sides=sides), "agents", tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_names_that_occur_in_some_bucket_are_not_noted(tmp_path: Path, seed: int) -> None:
    """One argument rule and one tool match a single datum; another of each matches none."""
    case = next(case for i in range(20) if len((case := CASES["agents"][1](i)).sides) == 2 - seed)
    options = {**case.options, "argument_rules": {"x": "0.5", "y": "text", "z": "text"}}
    side = case.sides[0]
    extra = {"datum_id": side["datum_id"][:1]}
    if len(case.sides) == 2:
        extra |= {"step": [9], "tool": ["c"], "arguments": ['{"y": 1}']}
    else:
        text = '{"name":"c","arguments":{"y":1}}'
        extra |= {"predicted_trajectory": [[text]], "reference_trajectory": [[text]]}
        side = side[1:]
    side = pl.concat([side, pl.DataFrame(extra, schema=side.schema)])
    case = replace(case, sides=(side, *case.sides[1:]), options={**options, "tools": ["c", "d"]})
    same_as_in_memory(case, "agents", tmp_path)
