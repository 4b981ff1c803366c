"""Rules for every task: threads, groups at a time and saving change no frame."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from merging.parts import Case, same
from merging.test_parts import CASES, every_case

import evalengine as ee
from evalengine.schemas.tuning import tuned


def scored(name: str, case: Case, **options: object) -> ee.Scorecard:
    task = CASES[name][0]
    return ee.score(*case.sides, task=task, **case.tables, **case.options, **options)


def in_valor(card: ee.Scorecard) -> object:
    """Return Valor's format of it, or the reason why there is none."""
    try:
        return card.to_valor()
    except ee.ResultError as error:
        return str(error)


def frames(card: ee.Scorecard) -> dict[str, pl.DataFrame]:
    return {name: card.frame(name) for name in card.frames}


@every_case
def test_threads(name: str) -> None:
    case = CASES[name][1](3)
    one, several = (scored(name, case, threads=n) for n in (1, 3))
    same(frames(several), frames(one))
    assert several.notes == one.notes


@every_case
def test_groups_at_a_time(name: str) -> None:
    """Slices are computed one by one, or a few at once."""
    case = CASES[name][1](4)
    together = frames(scored(name, case))
    for cells in (1, 300):
        with tuned(group_cells=cells):
            same(frames(scored(name, case)), together)


@every_case
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    card = scored(name, CASES[name][1](5))
    again = ee.load(card.save(tmp_path / "run"))
    same(frames(again), frames(card))
    assert again.labels.equals(card.labels)
    assert (again.notes, again.warnings, again.options) == (card.notes, card.warnings, card.options)
    assert in_valor(again) == in_valor(card)
