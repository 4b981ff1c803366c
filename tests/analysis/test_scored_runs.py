"""Arguments next to a scored run are read or refused, never ignored."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from refusals import refused

import evalengine as ee
from evalengine.cli import cli

EXAMPLES = Path(__file__).parents[2] / "examples" / "detection"
BOXES = [str(EXAMPLES / f"{side}.parquet") for side in ("predictions", "groundtruths")]
FINDERS: list[Callable[..., Any]] = [
    ee.find_errors,
    ee.find_slices,
    ee.find_label_errors,
    ee.find_thresholds,
    ee.find_calibration,
    ee.find_limits,
]


DATUMS = EXAMPLES / "datums.parquet"


@pytest.fixture(scope="module")
def card() -> ee.Scorecard:
    return ee.score(*BOXES, metrics=["mAP", "LabelErrors"], by=["weather"], datums=DATUMS)


@pytest.fixture(scope="module")
def saved(card: ee.Scorecard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    card.save(folder)
    return folder


@pytest.mark.parametrize("find", FINDERS)
@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            {"where": "nonsense = 3"},
            {"code": "option_unread", "option": "where", "value": "nonsense = 3"},
        ),
        ({"dialect": "coco"}, {"code": "option_unread", "option": "dialect", "value": "coco"}),
        ({"task": "text"}, {"code": "option_unread", "option": "task", "value": "text"}),
        (
            {"memory_limit": "2GB"},
            {"code": "option_unread", "option": "memory_limit", "value": "2GB"},
        ),
    ],
)
def test_options_that_would_not_be_read_are_refused(
    find: Callable[..., Any], options: dict[str, Any], refusal: dict[str, Any], saved: Path
) -> None:
    with refused(**refusal):
        find(saved, **options)


def test_options_of_the_run_are_accepted(saved: Path) -> None:
    own = {"task": "detection", "by": ["weather"]}
    assert len(ee.find_errors(saved, **own, top=3)) == 3
    result = ee.find_slices(saved, **own, metrics=["mAP"], draws=20, seed=3, threads=1, least=5)
    assert result.metric == "mAP"
    assert ee.find_thresholds(saved, beta=2, draws=20, threads=1).beta == 2


def test_columns_rename_the_datums_table_of_a_run(saved: Path) -> None:
    table = pl.read_parquet(DATUMS).rename({"datum_id": "frame"})
    options: dict[str, Any] = {"by": ["weather"], "draws": 20, "least": 5}
    with refused("column_missing", column="datum_id", rows=7, of=60):
        ee.find_slices(saved, datums=table.head(7), **options)
    named = ee.find_slices(saved, datums=table, columns={"frame": "datum_id"}, **options)
    assert named.frame.equals(ee.find_slices(saved, **options).frame)


@pytest.mark.parametrize(
    "command",
    ["errors", "slices", "label-errors", "thresholds", "calibration", "explain", "limits"],
)
def test_the_command_refuses_unread_options(command: str, saved: Path) -> None:
    number = ["--number", "mAP"] if command == "explain" else []
    done = CliRunner().invoke(cli, [command, str(saved), *number, "--where", "nonsense = 3"])
    assert done.exit_code != 0
    assert isinstance(done.exception, ee.OptionError)


@pytest.mark.parametrize(
    ("find", "step"),
    [
        (ee.find_slices, "finding slices"),
        (ee.find_thresholds, "choosing thresholds"),
        (ee.find_calibration, "fitting"),
    ],
)
def test_runs_without_a_tally_name_the_analysis_that_needs_it(
    find: Callable[..., Any], step: str, card: ee.Scorecard
) -> None:
    message = f"no tally, which {step} needs.*without memory_limit= and executor="
    with pytest.raises(ee.ResultError, match=message):
        find(copy.copy(card))


def test_saved_runs_without_a_tally_are_refused(card: ee.Scorecard, tmp_path: Path) -> None:
    copy.copy(card).save(tmp_path / "run")
    message = r"no tally, which finding slices needs.*without memory_limit="
    with pytest.raises(ee.ResultError, match=message):
        ee.find_slices(tmp_path / "run")
