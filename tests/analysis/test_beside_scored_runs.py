"""What stands beside a run that is scored already is read, or refused, never passed over."""

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
    ("asked", "refusal"),
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
    find: Callable[..., Any], asked: dict[str, Any], refusal: dict[str, Any], saved: Path
) -> None:
    with refused(**refusal):
        find(saved, **asked)


def test_options_of_the_run_itself_and_those_that_are_read_are_not(saved: Path) -> None:
    own = {"task": "detection", "by": ["weather"]}
    assert len(ee.find_errors(saved, **own, top=3)) == 3
    found = ee.find_slices(saved, **own, metrics=["mAP"], draws=20, seed=3, threads=1, least=5)
    assert found.metric == "mAP"
    assert ee.find_thresholds(saved, beta=2, draws=20, threads=1).beta == 2


def test_columns_name_those_of_the_datums_beside_a_run(saved: Path) -> None:
    table = pl.read_parquet(DATUMS).rename({"datum_id": "frame"})
    asked: dict[str, Any] = {"by": ["weather"], "draws": 20, "least": 5}
    with refused("column_missing", column="datum_id", rows=7, of=60):
        ee.find_slices(saved, datums=table.head(7), **asked)
    named = ee.find_slices(saved, datums=table, columns={"frame": "datum_id"}, **asked)
    assert named.frame.equals(ee.find_slices(saved, **asked).frame)


@pytest.mark.parametrize(
    "command",
    ["errors", "slices", "label-errors", "thresholds", "calibration", "explain", "limits"],
)
def test_the_shell_refuses_them_too(command: str, saved: Path) -> None:
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
def test_a_run_that_keeps_too_little_says_for_what(
    find: Callable[..., Any], step: str, card: ee.Scorecard
) -> None:
    said = f"no tally, which {step} needs.*without memory_limit= and executor="
    with pytest.raises(ee.ResultError, match=said):
        find(copy.copy(card))


def test_a_saved_run_without_its_tally_says_so(card: ee.Scorecard, tmp_path: Path) -> None:
    copy.copy(card).save(tmp_path / "run")
    said = r"no tally, which finding slices needs.*without memory_limit="
    with pytest.raises(ee.ResultError, match=said):
        ee.find_slices(tmp_path / "run")
