"""What holds for every task: threads, groups at a time and a store leave no trace in any frame."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging.parts import Case, same
from merging.test_parts import CASES, every_case

import evalengine as ee
from evalengine.schemas.tuning import tuned

few = settings(max_examples=2)
seeds = given(seed=st.integers(0, 2**32 - 1))


def scored(name: str, case: Case, **options: object) -> ee.Scorecard:
    task = CASES[name][0]
    return ee.score(*case.sides, task=task, **case.tables, **case.options, **options)


def in_valor(card: ee.Scorecard) -> object:
    """Valor's shape of it, or why there is none."""
    try:
        return card.to_valor()
    except ee.ResultError as error:
        return str(error)


def frames(card: ee.Scorecard) -> dict[str, pl.DataFrame]:
    return {name: card.frame(name) for name in card.frames}


@every_case
@few
@seeds
def test_threads(name: str, seed: int) -> None:
    case = CASES[name][1](seed)
    one, several = (scored(name, case, threads=n) for n in (1, 3))
    same(frames(several), frames(one))
    assert several.notes == one.notes


@every_case
@few
@seeds
def test_groups_at_a_time(name: str, seed: int) -> None:
    """Slices seen one by one, or a few at once."""
    case = CASES[name][1](seed)
    together = frames(scored(name, case))
    for cells in (1, 300):
        with tuned(group_cells=cells):
            same(frames(scored(name, case)), together)


@every_case
@few
@seeds
def test_kept_and_read_back(name: str, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    card = scored(name, CASES[name][1](seed))
    again = ee.load(card.save(tmp_path_factory.mktemp("kept") / "run"))
    same(frames(again), frames(card))
    assert again.labels.equals(card.labels)
    assert (again.notes, again.warnings, again.options) == (card.notes, card.warnings, card.options)
    assert in_valor(again) == in_valor(card)
