"""Tables shuffled to buckets in ranges of a few rows, by slow, killed and failing workers."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import (
    WIDE,
    boxes,
    in_buckets,
    in_row_ranges,
    same_as_in_memory,
    wait_until,
    write_sides,
)
from random_tables import of_each_kind
from sizes import tune

import evalengine as ee
from evalengine.ingest.collecting import Side
from evalengine.ingest.opening import Tables, open_inputs
from evalengine.ingest.preparing import prepare
from evalengine.ingest.slices import SlicePlan
from evalengine.outofcore import shuffle
from evalengine.outofcore import shuffle as shuffle_stage
from evalengine.schemas.contract import ROW
from evalengine.schemas.options import Options
from evalengine.schemas.tuning import Tuning


@pytest.mark.parametrize("name", ["detection", "binary", "lists", "tracking", "judged"])
def test_row_ranges_are_as_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables, and single tables of scores, lists, video frames and verdicts."""
    in_buckets(monkeypatch, WIDE)
    task, draw = CASES[name]
    case = of_each_kind(name, draw(5))
    rows = max(side.height for side in case.sides) // 4
    pool = in_row_ranges(monkeypatch, rows)
    tune(shuffle_rows=rows // 2)
    same_as_in_memory(case, task, tmp_path, files=3, executor="processes")
    units = [call for name, call in pool.called if name == "shuffle_range"]
    assert len(units) > len(case.sides)


@pytest.mark.parametrize("dialect", ["coco", "valor-lite"])
def test_workers_answer_queries_of_views(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries of all datums and of slices; some labels have more rows than a group."""
    in_buckets(monkeypatch)
    pool = in_row_ranges(monkeypatch, 50)
    weather = (pl.col("datum_id") % 3).alias("weather")
    sides = tuple(side.with_columns(weather) for side in boxes(25))
    options = {"dialect": dialect, "by": ["weather"], "score_thresholds": [0.2, 0.5]}
    same_as_in_memory(Case(sides, options), "detection", tmp_path, executor="processes")
    assert len([1 for name, _ in pool.called if name == "answer_span"]) >= 2 * 5


def test_the_largest_groups_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, msgspec.structs.replace(WIDE, group_rows=1000))
    pool = in_row_ranges(monkeypatch, 50)
    predictions, truths = boxes(40)
    rare = pl.when(pl.col("datum_id") < 3).then(pl.col("label_value")).otherwise(4)
    sides = tuple(side.with_columns(label_value=rare) for side in (predictions, truths))
    same_as_in_memory(Case(sides, {}), "detection", tmp_path, executor="processes")
    for stage in ("merge_rows", "answer_span"):
        groups = [call[1] for name, call in pool.called if name == stage]
        assert groups[:2] == [1, 0]  # the last label has most rows


def test_problems_name_rows_of_the_whole_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inverted boxes in two row ranges, and an annotation id repeated in two others."""
    predictions, truths = boxes()
    index = pl.int_range(truths.height, eager=True)
    truths = truths.with_columns(
        annotation_id=pl.when(index == 170).then(3).otherwise(index),
        xmax=pl.when(index.is_in([31, 99])).then(-1.0).otherwise(pl.col("xmax")),
    )
    repeated = boxes()[1].with_columns(annotation_id=truths["annotation_id"])
    for sides, rows in (
        ((predictions, truths), {31, 99, 3, 170}),
        ((predictions, repeated), {3, 170}),
    ):
        given = write_sides(Case(sides, {}), tmp_path)
        with pytest.raises(ee.InputError) as whole:
            ee.score(*given, task="detection")
        with monkeypatch.context() as patch:
            in_buckets(patch)
            in_row_ranges(patch, 13)
            with pytest.raises(ee.InputError) as parts:
                ee.score(*given, task="detection", executor="processes", scratch=str(tmp_path))
        for error in (whole.value, parts.value):
            numbers = {int(number) for number in re.findall(r"\b\d+\b", str(error))}
            assert rows <= numbers


def test_rows_keep_their_numbers_under_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows before a range is known only after the others are shuffled."""
    in_buckets(monkeypatch)
    in_row_ranges(monkeypatch, 7)
    where = {"predictions": "score > 0.4", "ground_truths": "datum_id > 7"}
    same_as_in_memory(
        Case(boxes(25), {"where": where}), "detection", tmp_path, files=2, executor="processes"
    )


def test_row_ranges_start_at_row_groups(tmp_path: Path) -> None:
    rows = boxes(100)[1]
    files = [str(tmp_path / f"{i}.parquet") for i in range(2)]
    rows.head(180).write_parquet(files[0], row_group_size=50)
    rows.tail(120).write_parquet(files[1], row_group_size=500)
    assert shuffle._cuts(files, 300, 100) == [0, 100, 180]
    assert shuffle._cuts(files, 300, 1000) == [0]
    assert shuffle._cuts((), 300, 100) == [0, 100, 200]  # an object store
    assert shuffle._cuts(files[1:], 120, 10) == [0]  # one row group


def test_row_ranges_are_neither_small_nor_many() -> None:
    assert shuffle.rows_of_range(1000, 8, 4) == Tuning().shuffle_rows
    assert shuffle.rows_of_range(16_000_000, 8, 4) == 1_000_000
    rows = shuffle.rows_of_range(10**9, 400, 128)
    assert 10**9 // rows * 400 <= shuffle.MOST_FILES


def test_narrow_columns_are_widened_for_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids beyond 32 bits, negative ids, and doubles that single precision would change."""
    in_buckets(monkeypatch, WIDE)
    tune(shuffle_rows=20)
    ids = pl.col("datum_id").cast(pl.Int64)
    late, last = ids > 20, ids > 40
    moved = pl.when(last).then(-ids - (1 << 40)).when(late).then(ids + (1 << 33)).otherwise(ids)
    sides = [
        side.with_columns(
            pl.col("xmin").cast(pl.Float64) + pl.when(late).then(0.1).otherwise(0.0)
        ).with_columns(moved.alias("datum_id"))
        for side in boxes()
    ]
    case = Case((sides[0], sides[1]), {"metrics": ["mAP", "AP", "F1"]})
    same_as_in_memory(case, "detection", tmp_path)
    values = pl.DataFrame(
        {"a": [1, 300], "b": [-1, 2**63 - 1], "c": [0.5, None], "d": [0.1, 1e300], "e": ["x", "y"]}
    )
    kinds: dict[str, Any] = {}
    narrow = shuffle._narrowed(values, kinds)
    assert narrow.dtypes == [pl.UInt16, pl.Int64, pl.Float32, pl.Float64, pl.String]
    assert narrow.cast(dict(values.schema)).equals(values)
    few = values.head(1).with_columns(b=pl.lit(None, pl.Int64))
    assert shuffle._narrowed(few, kinds).dtypes == narrow.dtypes


# -- killed, slow and failing workers ------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> shuffle_stage.Shuffle:
    """Return predictions of 60 images to shuffle to three buckets."""
    sides = write_sides(Case(boxes(), {}), tmp_path)
    ready = prepare(open_inputs(Tables(*sides)), "detection", Options())
    side = ready.sides["predictions"]
    return shuffle_stage.Shuffle("predictions", side, {}, SlicePlan(), {}, 3, 60)


def shuffled_rows(folder: Path, unit: int) -> pl.DataFrame:
    """Return the shuffled rows of a range, in their order."""
    summary = shuffle_stage.load_summary(folder, "predictions", unit)
    files = [shuffle_stage.bucket_file(folder, "predictions", unit, one) for one in summary.buckets]
    rows = shuffle_stage.read_rows(files, [100] * len(files)).sort(ROW)
    assert rows.height == summary.rows
    return rows


def test_an_interrupted_row_range_is_shuffled_again(
    table: shuffle_stage.Shuffle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "buckets").mkdir()
    whole = shuffle_stage.batches

    def broken(*given: Any) -> Iterator[pl.DataFrame]:
        yield next(iter(whole(*given))).head(5)
        raise KeyboardInterrupt

    unit = (0, 40, 20)
    with monkeypatch.context() as patch:
        patch.setattr(shuffle_stage, "batches", broken)
        with pytest.raises(KeyboardInterrupt):
            shuffle_stage.shuffle_rows(tmp_path, unit, table)
    assert not shuffle_stage.range_folder(tmp_path, "predictions", 0).exists()
    shuffle_stage.shuffle_rows(str(tmp_path), unit, table)
    rows = shuffled_rows(tmp_path, 0)
    assert rows[ROW].to_list() == list(range(100, 120))
    assert rows["datum_id"].to_list() == [row // 3 for row in range(40, 60)]


def test_a_row_range_that_another_worker_has_finished_is_kept(
    table: shuffle_stage.Shuffle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "buckets").mkdir()
    whole = shuffle_stage.batches

    def slow(role: str, side: Side, *given: Any) -> Iterator[pl.DataFrame]:
        monkeypatch.setattr(shuffle_stage, "batches", whole)
        shuffle_stage.shuffle_rows(tmp_path, (2, 0, 30), table)
        yield from whole(role, side, *given)

    monkeypatch.setattr(shuffle_stage, "batches", slow)
    shuffle_stage.shuffle_rows(tmp_path, (2, 0, 30), table)
    assert shuffled_rows(tmp_path, 2).height == 30
    assert [path.name for path in (tmp_path / "buckets").iterdir()] == ["predictions-2"]


def test_a_failed_rename_is_raised(
    table: shuffle_stage.Shuffle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "buckets").mkdir()

    def gone(draft: Path, target: Path) -> None:
        shutil.rmtree(draft)
        raise FileNotFoundError(str(draft))

    monkeypatch.setattr(shuffle_stage.os, "rename", gone)
    with pytest.raises(FileNotFoundError):
        shuffle_stage.shuffle_rows(tmp_path, (0, 0, None), table)


@pytest.mark.slow
def test_a_process_killed_while_it_shuffles_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, msgspec.structs.replace(WIDE, group_rows=10**6, datums_at_once=10**6))
    tune(range_rows=500)
    killed: list[int] = []
    dealt: list[Path] = []

    def kill() -> None:
        wait_until(lambda: any((tmp_path / "scratch").glob("*/buckets/predictions-*")))
        dealt.extend((tmp_path / "scratch").glob("*/buckets/*_truths-*"))
        for one in multiprocessing.active_children()[:1]:
            os.kill(one.pid or 0, signal.SIGKILL)
            killed.append(one.pid or 0)

    thread = threading.Thread(target=kill)

    def report(step: str) -> None:
        if step.startswith("shuffling") and not thread.ident:
            thread.start()

    case = Case(boxes(4_000), {"metrics": ["mAP"]})
    how = {"executor": "processes", "threads": 2, "progress": report}
    same_as_in_memory(case, "detection", tmp_path, **how)
    thread.join()
    assert killed
    assert len(dealt) < 24  # 24 ranges of 500 rows: some were not yet written


@pytest.mark.parametrize(
    ("name", "dtype", "units"),
    [("weather", pl.Enum(["sun", "fog", "rain", "snow"]), True), ("", pl.Categorical(), False)],
)
def test_slices_whose_values_have_codes(
    name: str, dtype: pl.DataType, units: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The codes of a categorical differ by batch; a column's name may be empty."""
    in_buckets(monkeypatch, WIDE)
    if units:
        in_row_ranges(monkeypatch, 50)
    tune(shuffle_rows=9)
    n = pl.col("datum_id")
    values = pl.when(n % 7 < 3).then(pl.lit("sun")).when(n % 3 == 0).then(pl.lit("rain"))
    column = values.when(n < 40).then(pl.lit("snow")).cast(dtype).alias(name)  # other rows are null
    predictions, truths = boxes(60)
    sides = (predictions, truths.with_columns(column))
    case = Case(sides, {"by": [name], "metrics": ["AP", "mAP"]})
    same_as_in_memory(case, "detection", tmp_path, executor="processes" if units else "threads")


def test_files_with_footers_that_only_polars_reads_are_shuffled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    in_row_ranges(monkeypatch, 50)
    predictions, truths = boxes(60)
    sides = (predictions.with_columns(pl.lit(1).cast(pl.Int128).alias("large")), truths)
    case = Case(sides, {"metrics": ["mAP"]})
    same_as_in_memory(case, "detection", tmp_path, executor="processes")


@pytest.mark.parametrize("name", ["detection", "lists"])
def test_a_row_range_opens_only_its_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also opens the first file, which has the columns, but no other file before its rows."""
    in_buckets(monkeypatch, WIDE)
    pool = in_row_ranges(monkeypatch, 3)
    task, draw = CASES[name]
    case = of_each_kind(name, draw(4))
    same_as_in_memory(case, task, tmp_path, files=12, executor="processes")
    calls = [call for name, call in pool.called if name == "shuffle_range"]
    assert len(calls) > 2
    for _, (_, first, rows), pickled in calls:
        table = pickle.loads(pickled)
        files = table.side.source.files
        heights = [pl.scan_parquet(file).select(pl.len()).collect().item() for file in files]
        before = table.before + heights[0] if table.before else 0
        own = heights[1:] if table.before else heights
        assert before <= first
        assert rows is None or first + rows > before + sum(own[:-1])
        assert not table.before or first < before + own[0]


@pytest.mark.parametrize("change", ["dtype", "column", "pages"])
def test_a_file_that_differs_from_the_first_is_refused(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    sides = write_sides(Case(boxes(), {}), tmp_path, files=12)
    other = Path(sides[0][7])
    if change == "dtype":
        pl.read_parquet(other).cast({"score": pl.String}).write_parquet(other)
    elif change == "column":
        pl.read_parquet(other).drop("score").write_parquet(other)
    else:
        data = bytearray(other.read_bytes())
        data[4:200] = bytes(196)
        other.write_bytes(data)
    in_row_ranges(monkeypatch, 13)
    with pytest.raises(ee.ReadError, match=other.name):
        ee.score(*sides, task="detection", executor="processes", scratch=str(tmp_path / "s"))
    assert not (tmp_path / "s").exists() or os.listdir(tmp_path / "s") == []


def test_without_footers_every_row_range_gets_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    pool = in_row_ranges(monkeypatch, 13)
    monkeypatch.setattr(shuffle, "row_stops", lambda _: None)
    case = Case(boxes(9), {"metrics": ["mAP"]})  # three row ranges in three files
    same_as_in_memory(case, "detection", tmp_path, files=3, executor="processes")
    dealt = [call for name, call in pool.called if name == "shuffle_range"]
    assert len({(first, rows) for _, (_, first, rows), _ in dealt}) > 2
    assert {len(pickle.loads(table).side.source.files) for *_, table in dealt} == {3}


@pytest.mark.parametrize(("width", "rows"), [(1, 30), (100, 10), (10**9, 1)])
def test_wide_rows_are_read_few_at_a_time(
    width: int, rows: int, table: shuffle_stage.Shuffle
) -> None:
    """A row may contain a whole label map, so a batch is limited by bytes too."""
    tune(shuffle_rows=30, shuffle_bytes=1000)
    given = (table.role, table.side, table.where, table.plan)
    heights = [batch.height for batch in shuffle_stage.batches(*given, width)]
    assert max(heights) <= rows
    assert sum(heights) == sum(batch.height for batch in shuffle_stage.batches(*given))


def test_the_width_of_rows_is_measured_on_the_first_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    pool = in_row_ranges(monkeypatch, 13)
    table = pl.DataFrame({"text": ["x" * 5000] * 40, "reference": ["x"] * 40})
    case = Case((table,), {"metrics": ["ROUGE1"]})
    same_as_in_memory(case, "text", tmp_path, executor="processes")
    (first, *_) = [pickle.loads(call[2]) for name, call in pool.called if name == "shuffle_range"]
    assert 5000 <= first.width < 5100


@pytest.mark.parametrize(
    ("units", "name"), [(False, "lists"), (True, "judged"), (True, "detection")]
)
def test_a_table_is_read_by_several_queries(
    units: bool, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query reads ahead only within its rows; conditions and files stay those of the table."""
    in_buckets(monkeypatch, WIDE)
    if units:
        in_row_ranges(monkeypatch, 13)
    tune(query_bytes=1000 if name == "detection" else 200)
    read: list[int] = []
    part = shuffle_stage._part

    def reading(table: shuffle_stage.Shuffle, unit: shuffle_stage.RowRange) -> Side:
        read.append(unit[2] or 0)
        return part(table, unit)

    monkeypatch.setattr(shuffle_stage, "_part", reading)
    task, draw = CASES[name]
    how: dict[str, Any] = {"executor": "processes"} if units else {}
    same_as_in_memory(of_each_kind(name, draw(4)), task, tmp_path, files=3, **how)
    assert len(read) > 3
    where = {"predictions": "score > 0.4"}
    case = Case(boxes(), {"where": where}) if name == "detection" else draw(6)
    folder = tmp_path / "other"
    folder.mkdir()
    same_as_in_memory(case, task, folder, **how)
