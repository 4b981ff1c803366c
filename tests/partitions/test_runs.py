"""Runs in buckets have the frames and messages of runs in memory, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from merging import parts
from merging.parts import Case
from merging.test_parts import CASES, every_case
from numpy.testing import assert_array_equal
from partitions.cases import WIDE, boxes, in_buckets, same_as_in_memory, write_sides
from refusals import refused

import evalengine as ee
from evalengine import metrics
from evalengine.outofcore import driver, memory
from evalengine.outofcore.stages import label_groups
from evalengine.schemas.option_values import make_options


@every_case
def test_buckets_are_as_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES[name]
    same_as_in_memory(draw(8), task, tmp_path, files=3)


RANKED = {"iou_thresholds", "pr_curve_iou_threshold", "spot_ious"}
"""Needs that ranked rows meet; these are merged by label."""
WITH_MORE = {
    frozenset(needs): one
    for one in metrics.names("detection")
    if (needs := {*metrics.get("detection", one).needs} - RANKED)
}
"""Other needs -> a metric with these needs."""


@pytest.mark.parametrize("metric", WITH_MORE.values())
def test_a_single_metric_is_as_in_memory(
    metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tally contains only what this metric needs in addition to ranked rows."""
    in_buckets(monkeypatch, WIDE)
    for name, seed in (("keypoints", 3), ("keypoints", 4), ("detection", 5), ("centres", 4),
                       ("seen", 4)):  # fmt: skip
        case = CASES[name][1](seed)
        single = replace(case, options={**case.options, "metrics": [metric], "by": []})
        fitting: Any = ()
        with suppress(ee.InputError):  # the tables do not have its columns
            fitting = parts.fitted(single, "detection").metrics
        if fitting:
            same_as_in_memory(single, "detection", tmp_path)
            return
    pytest.fail(f"no case has the columns of {metric}")


def _noted_in_memory(case: Case, task: str, folder: Path) -> bool:
    """Return True if a run with a memory limit notes that it is scored in memory."""
    sides = write_sides(case, folder)
    card = ee.score(*sides, task=task, **case.options, **case.tables, memory_limit="1GB")
    return any(one.code == "not_in_parts" for one in card.findings)


def test_samples_of_buckets_without_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of samples is unknown in buckets without a datum of both sides."""
    in_buckets(monkeypatch)
    truths = pl.DataFrame({"datum_id": range(12), "target": np.arange(12.0)})
    results = pl.DataFrame({"datum_id": [3, 20], "samples": [[1.0, 2.0, 4.0], [1.0, 2.0, 3.0]]})
    same_as_in_memory(Case((results, truths), {"metrics": ["CRPS"]}), "regression", tmp_path)


def test_tables_that_cannot_be_shuffled_are_noted(tmp_path: Path) -> None:
    """Judgments vote if any datum has several after a condition on the datums.

    Such a run needs all rows, so it is scored in memory.
    """
    rows = {"datum_id": [1, 1, 2], "metric": ["Bias"] * 3, "verdict": ["yes", "no", "no"],
            "judgment_index": [0, 1, 0], "item_index": [0, 0, 0]}  # fmt: skip
    datums = pl.DataFrame({"datum_id": [1, 2], "topic": ["a", "b"]})
    case = Case((pl.DataFrame(rows),), {"where": "topic = 'b'"}, tables={"datums": datums})
    assert _noted_in_memory(case, "judged", tmp_path)
    assert not _noted_in_memory(Case(case.sides, {}, tables=case.tables), "judged", tmp_path)


def test_lists_of_strings_are_shuffled_if_their_kind_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White space in any row makes them texts, unless column names or options decide."""
    in_buckets(monkeypatch)
    table = pl.DataFrame(
        {
            "query_id": range(20),
            "retrieved": [[f"a {i}", "b c", f"d {i % 3}"] for i in range(20)],
            "relevant": [[f"a {i}", f"d {i % 2}"] for i in range(20)],
        }
    )
    options: dict[str, Any] = {"metrics": ["MAP", "P"], "k": [2]}
    assert _noted_in_memory(Case((table,), options), "retrieval", tmp_path)
    chosen = Case((table,), {**options, "match": "exact_chunk"})
    same_as_in_memory(chosen, "retrieval", tmp_path)
    named = table.rename({"retrieved": "retrieved_contexts", "relevant": "reference_contexts"})
    same_as_in_memory(Case((named,), options), "retrieval", tmp_path)


def _with_problem(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Case:
    predictions, truths = boxes()
    return Case((change(predictions), truths), {})


PROBLEMS = {
    "nulls": lambda t: t.with_columns(
        score=pl.when(pl.int_range(pl.len()) % 50 == 7).then(None).otherwise("score")
    ),
    "inverted": lambda t: t.with_columns(
        xmax=pl.when(pl.int_range(pl.len()) % 40 == 9).then(-5.0).otherwise("xmax")
    ),
    "nan": lambda t: t.with_columns(
        ymin=pl.when(pl.int_range(pl.len()) % 60 == 9).then(np.nan).otherwise("ymin")
    ),
    "strangers": lambda t: t.with_columns(datum_id=pl.col("datum_id") + 10_000),
    "strings": lambda t: t.with_columns(pl.col("datum_id").cast(pl.String)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_counted_over_all_buckets(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message equals that of a run in memory, with the row numbers of the input."""
    in_buckets(monkeypatch)
    sides = write_sides(_with_problem(PROBLEMS[name]), tmp_path)
    with pytest.raises(ee.InputError) as whole:
        ee.score(*sides, task="detection")
    with pytest.raises(ee.InputError) as dealt:
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert str(dealt.value) == str(whole.value)
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.parametrize("texts", [False, True])
def test_an_annotation_of_two_datums_is_refused(
    texts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two rows are in different buckets; unique ids are accepted."""
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    ids = pl.int_range(pl.len()) + 5
    kind = pl.String if texts else pl.Int64
    once = truths.with_columns(annotation_id=ids.cast(kind))
    same_as_in_memory(Case((predictions, once), {"metrics": ["mAP"]}), "detection", tmp_path)
    twice = truths.with_columns(annotation_id=(ids % 170).cast(kind))
    sides = write_sides(Case((predictions, twice), {}), tmp_path)
    facts = {"side": "ground_truths", "column": "annotation_id", "count": 20, "rows": [0, 1, 2]}
    facts |= {"values": 10, "key": ["annotation_id"]}
    with refused("repeated_values", **facts):
        ee.score(*sides, task="detection")
    with refused("repeated_values", **facts):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert list((tmp_path / "s").iterdir()) == []


def test_a_condition_and_a_label_map_apply_in_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    options = {"where": "xmin > 0", "label_map": {"1": "7", "9": "8"}, "metrics": ["mAP", "AP"]}
    same_as_in_memory(Case((predictions, truths), options), "detection", tmp_path)


@pytest.mark.parametrize("where", ["xmin > 0", "xmin < -9"])
def test_buckets_have_the_arrays_of_coco_also_without_rows(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    case = Case(boxes(), {"where": where, "dialect": "coco"})
    ours = same_as_in_memory(case, "detection", tmp_path).to_coco()
    theirs = ee.score(*case.sides, **case.options).to_coco()
    assert ours["stats"] == theirs["stats"]
    assert len(ours["stats"]) == 12
    for name in ("precision", "recall", "scores"):
        assert_array_equal(ours[name], theirs[name])


def test_preferences_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    case = CASES["preferences"][1](3)
    where = {**case.options, "where": f"{case.datum} IS NULL"}
    same_as_in_memory(replace(case, options=where), "preferences", tmp_path)


def test_a_label_map_unifies_numbers_and_names_in_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    names = {label: f"class {label}" for label in truths["label_value"].unique()}
    truths = truths.with_columns(pl.col("label_value").replace_strict(names))
    options = {"label_map": names, "metrics": ["mAP", "AP"]}
    same_as_in_memory(Case((predictions, truths), options), "detection", tmp_path)
    sides = [
        side.unique("datum_id").select("datum_id", "label_value") for side in (predictions, truths)
    ]
    options = {"label_map": names, "metrics": ["Accuracy", "F1", "ConfusionMatrix"]}
    same_as_in_memory(Case((sides[0], sides[1]), options), "classification", tmp_path)


def test_ids_of_different_dtypes_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    case = Case((predictions.cast({"datum_id": pl.UInt32}), truths), {"metrics": ["mAP"]})
    same_as_in_memory(case, "detection", tmp_path)
    for large in (4, 2**63):  # of UInt64 only if one needs it
        labels = pl.col("label_value").cast(pl.UInt64).replace(4, large)
        for label in (labels, pl.col("label_value").cast(pl.UInt64)):
            sides = predictions.with_columns(label), truths.with_columns(labels)
            card = same_as_in_memory(Case(sides, {"metrics": ["mAP", "AP"]}), "detection", tmp_path)
            assert card.labels.schema["label_value"] == (pl.Int64 if large == 4 else pl.UInt64)
            tables = {"labels": pl.DataFrame({"label_value": range(5)})}  # of another dtype
            case = Case(sides, {"metrics": ["mAP", "AP"]}, tables=tables)
            same_as_in_memory(case, "detection", tmp_path)


def test_small_inputs_stay_in_memory(tmp_path: Path) -> None:
    card = ee.score(*write_sides(Case(boxes(), {}), tmp_path), task="detection", memory_limit="8GB")
    assert "buckets" not in card.run


@pytest.mark.parametrize(
    ("given", "size"),
    [("2GB", 2 * 10**9), ("512 MiB", 512 << 20), ("1.5g", 1_500_000_000), (7, 7), ("1KiB", 1024)],
)
def test_limits_are_read(given: str | int, size: int) -> None:
    assert memory.bytes_of_limit(given) == size


@pytest.mark.parametrize("given", ["lots", "-1", "0", "2 gigs"])
def test_invalid_limits_are_refused(given: str) -> None:
    for refuse in (memory.bytes_of_limit, lambda limit: make_options(memory_limit=limit)):
        with pytest.raises(ee.OptionError, match="memory_limit"):
            refuse(given)


def test_the_default_limit_is_a_share_of_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 10**10)
    assert memory.bytes_of_limit(None) == 7 * 10**9


def test_label_groups_have_a_maximum_of_rows() -> None:
    assert label_groups(np.array([5, 5, 1, 30, 2, 3]), 10) == [0, 2, 3, 4, 6]
    assert label_groups(np.array([], np.int64), 10) == [0, 0]
    assert label_groups(np.array([3]), 10) == [0, 1]


def test_more_rows_make_more_buckets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Twice the rows make twice the buckets, and the size of a group is constant."""
    from evalengine.ingest.opening import Tables, open_inputs
    from evalengine.ingest.preparing import prepare
    from evalengine.outofcore.shuffle import first_rows
    from evalengine.schemas.options import Options

    ready = prepare(open_inputs(Tables(*boxes())), "detection", Options())
    heads = first_rows(ready)
    results = [
        memory.bucket_count(
            ready, heads, {"predictions": rows, "ground_truths": rows}, 2 * 10**9, task="detection"
        )
        for rows in (50_000_000, 100_000_000)
    ]
    assert results[0].n > 1
    assert abs(results[1].n - 2 * results[0].n) <= 1
    assert results[0].group_rows == results[1].group_rows


def test_tables_that_fit_are_not_shuffled() -> None:
    """A run without slices, intervals and nested columns may use all memory of the limit."""
    from evalengine.ingest.opening import Tables, open_inputs
    from evalengine.ingest.preparing import prepare
    from evalengine.outofcore.shuffle import first_rows
    from evalengine.schemas.options import Options

    ready = prepare(open_inputs(Tables(*boxes())), "detection", Options())
    heads = first_rows(ready)
    row = sum(head.estimated_size() / head.height + 8 for head in heads.values())
    rows = int(220e6 / row)

    def buckets(plain: bool, **more: pl.Expr) -> int:
        shown = {role: head.with_columns(**more) for role, head in heads.items()}
        heights = dict.fromkeys(heads, rows)
        sizes = memory.bucket_count(ready, shown, heights, 2 * 10**9, task="detection", plain=plain)
        return sizes.n

    assert buckets(True) == 1
    assert buckets(False) == 2
    assert buckets(True, points=pl.lit([0])) == 2


@pytest.mark.parametrize("given", ["1kb", "100MB", 1])
def test_a_limit_below_the_minimum_is_refused(given: str | int, tmp_path: Path) -> None:
    """The message names the minimum, which is accepted."""
    sides = write_sides(Case(boxes(), {}), tmp_path)
    with refused("memory_limit_too_small", least="448MiB"):
        ee.score(*sides, task="detection", memory_limit=given)
    ee.score(*sides, task="detection", memory_limit="448MiB")


def test_a_limit_for_more_files_than_can_be_open_is_refused() -> None:
    """The message names a sufficient limit."""
    from evalengine.ingest.opening import Tables, open_inputs
    from evalengine.ingest.preparing import prepare
    from evalengine.outofcore.shuffle import first_rows
    from evalengine.schemas.options import Options

    ready = prepare(open_inputs(Tables(*boxes())), "detection", Options())
    heads, heights = first_rows(ready), {"predictions": 10**9, "ground_truths": 10**9}

    def sizes(limit: str) -> memory.Sizes:
        limits = {"limit": memory.bytes_of_limit(limit), "given": limit}
        return memory.bucket_count(ready, heads, heights, task="detection", **limits)

    with refused("memory_limit_too_small", least="3264MiB") as raised:
        sizes("600MB")
    enough = str(raised.value).rpartition("memory_limit='")[2].partition("'")[0]
    assert sizes(enough).n <= memory.MOST_BUCKETS


@pytest.mark.parametrize(
    ("task", "labels"),
    [("detection", 1), ("detection", 40), ("classification", 40), ("classification in files", 1)],
)
def test_the_reserved_scratch_is_sufficient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, labels: int
) -> None:
    """Nor is it more than three times the need, which would refuse sufficient disks."""
    reserved: list[int] = []

    def sized(*given: Any, **how: Any) -> memory.Sizes:
        sizes = real(*given, **how)
        reserved.append(sizes.scratch)
        return msgspec.structs.replace(sizes, n=4, group_rows=40_000)

    used: list[int] = []

    def report(step: str) -> None:
        files = (path for path in (tmp_path / "s").rglob("*") if path.is_file())
        used.append(sum(path.stat().st_size for path in files))

    real = driver.bucket_count
    monkeypatch.setattr(driver, "bucket_count", sized)
    predictions, truths = boxes(40_000)
    if task == "detection":
        label = (pl.col("datum_id") % labels).alias("label_value")
        sides = [side.with_columns(label) for side in (predictions, truths)]
    else:
        predictions = predictions.select(
            "datum_id", (pl.int_range(pl.len()) % 3 + labels).alias("label_value"), "score"
        )
        sides = [predictions, predictions.drop("score").unique("datum_id", keep="first")]
    given = write_sides(Case((sides[0], sides[1]), {}), tmp_path, rows=50_000)
    task, _, filed = task.partition(" ")
    asked = {"metrics": ["AP", "mAP", "LogLoss"], "average": "micro"} if filed else {}
    ee.score(
        *given, task=task, **asked, memory_limit="1GB", scratch=str(tmp_path / "s"), progress=report
    )
    assert len(used) > 3
    assert reserved[0] / 3 < max(used) < reserved[0]
