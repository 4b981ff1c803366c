"""The collector: batches give the result of one call with all rows, to the bit."""

from __future__ import annotations

import itertools
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.collector import Batches

from .forms import FORMS, Run, Tensor

CASES = int(os.environ.get("COLLECTOR_CASES", 6))


def cut(run: Run, first: int, last: int) -> tuple[Any, ...]:
    return tuple(run.cut(side, first, last) for side in run.sides)


def scored(run: Run, *sides: Any, **more: Any) -> Any:
    """Return the metrics, or the error."""
    try:
        return ee.score(*sides, **run.options, **run.given, **more).metrics
    except ee.EvalengineError as error:
        return type(error)


def collected(collector: ee.Collector) -> Any:
    try:
        return collector.score().metrics
    except ee.EvalengineError as error:
        return type(error)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, type) or isinstance(theirs, type):
        return ours is theirs
    return bool(ours.equals(theirs))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", range(CASES))
def test_batches_are_one_run(form: str, case: int) -> None:
    rng = np.random.default_rng([case, *form.encode()])
    run = FORMS[form](rng)
    cuts = np.unique(np.r_[0, rng.integers(0, run.n + 1, 3), run.n])
    collector = ee.Collector(**run.options, **run.given)
    parts = [ee.Collector(**run.options, **run.given) for _ in range(2)]
    ids = rng.permutation(100)[: run.n]
    named = ee.Collector(**run.options, **run.given)
    for place, (first, last) in enumerate(itertools.pairwise(cuts)):
        batch = cut(run, first, last)
        collector.add(*batch)
        parts[2 * place >= len(cuts) - 1].add(*batch)
        if not run.own:
            named.add(*batch, ids=ids[first:last].tolist())
    whole = scored(run, *run.sides)
    assert same(collected(collector), whole)
    again = pickle.loads(pickle.dumps(parts[0])) + pickle.loads(pickle.dumps(parts[1]))
    assert same(collected(again), whole)
    assert len(again) == len(collector)
    if not run.own:
        assert len(named) == run.n
        if form in ("classes", "maps", "texts"):  # elsewhere ties are ordered by id
            assert same(collected(named), whole)


class TestIds:
    found, truth = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), [0, 1, 1]

    def test_shards_in_any_order_are_one_run(self) -> None:
        rng = np.random.default_rng(5)
        run = FORMS["images"](rng)
        ids = [f"i{place:02}" for place in range(run.n)]
        parts = [ee.Collector("detection", dialect="coco") for _ in range(3)]
        for place in rng.permutation(run.n):
            part = parts[place % 3]
            part.add(*(side[place : place + 1] for side in run.sides), ids=[ids[place]])
        ordered = ee.Collector("detection", dialect="coco")
        ordered.add(*run.sides, ids=ids)
        for order in ((0, 1, 2), (2, 0, 1)):
            whole = ee.Collector("detection", dialect="coco")
            whole.merge(*(parts[place] for place in order))
            assert whole.score().metrics.equals(ordered.score().metrics)

    def test_repeated_datums_of_samplers(self) -> None:
        for repeated in ("refuse", "first"):
            collector = ee.Collector("classification", repeated=repeated)
            collector.add(self.found, self.truth, ids=["a", "b", "c"])
            collector.add(self.found[:1], [1], ids=["a"])
            if repeated == "refuse":
                with refused("repeated_values", count=1, of=3, match="'a'.*repeated='first'"):
                    collector.score()
                continue
            card = collector.score()
            assert card.value("Accuracy") == 2 / 3
            assert any("skipped 1 datum" in note for note in card.notes)
        with pytest.raises(ee.OptionError, match="repeated='last'"):
            ee.Collector(repeated="last")

    def test_they_are_matched_with_a_table_of_datums(self) -> None:
        collector = ee.Collector("classification", metrics=["Accuracy"])
        collector.add(self.found[:2], self.truth[:2], ids=["a", "b"])
        collector.add(self.found[2:], self.truth[2:], ids=["c"])
        datums = pl.DataFrame({"datum_id": ["c", "b", "a"], "light": ["day", "day", "night"]})
        card = collector.score(datums=datums, by="light")
        assert card.value("Accuracy", slice="light", slice_value="day") == 0.5

    def test_refusals(self) -> None:
        collector = ee.Collector("classification")
        with refused("lengths_differ", option="ids", count=2, of=3):
            collector.add(self.found, self.truth, ids=["a", "b"])
        assert len(collector) == 0
        collector.add(self.found, self.truth, ids=["a", "b", "c"])
        with refused("batches_differ", option="ids"):
            collector.add(self.found, self.truth)
        other = ee.Collector("classification")
        other.add(self.found, self.truth)
        with refused("batches_differ", option="ids"):
            other.add(self.found, self.truth, ids=["a", "b", "c"])
        with refused("collectors_differ", value="ids"):
            collector.merge(other)
        missing = ee.Collector("text")
        missing.add(["a"], [None])
        missing.add(["a"], ["a"])
        with refused("null_values", column="reference", count=1):
            missing.score(metrics=["ExactMatch"])
        table = pl.DataFrame({"actual": [1], "predicted": [1]})
        with refused("ids_given"):
            ee.Collector().add(table, ids=[1])


class TestForms:
    def test_ground_truths_known_beforehand(self, tmp_path: Path) -> None:
        qrels = tmp_path / "qrels.parquet"
        pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "y"]}).write_parquet(qrels)
        collector = ee.Collector("retrieval", ground_truths=qrels, metrics=["MRR"])
        collector.add({"query_id": ["a", "a"], "doc_id": ["z", "x"], "score": Tensor([0.5, 0.25])})
        collector.add({"query_id": ["b"], "doc_id": ["y"], "score": Tensor([0.5])})
        assert collector.score().value("MRR") == 0.75
        with refused("truths_given"):
            collector.add({}, {})

    def test_empty_batches_and_none(self) -> None:
        collector = ee.Collector("detection")
        collector.add([], [])
        with pytest.raises(ee.InputError, match="no batch"):
            collector.score()
        nothing = {"boxes": np.zeros((0, 4)), "labels": []}
        collector.add([{**nothing, "scores": []}], [nothing])
        one = {"boxes": [[0, 0, 9, 9]], "labels": [3]}
        collector.add([{**one, "scores": [0.5]}], [one])
        collector.add([{**nothing, "scores": []}], [nothing])
        assert len(collector) == 3
        assert collector.score().read["datums"] == 3
        collector.reset()
        assert not len(collector)

    def test_other_forms_and_columns_are_refused(self) -> None:
        one = {"boxes": [[0, 0, 9, 9]], "labels": [3]}
        collector = ee.Collector("detection")
        collector.add([{**one, "scores": [0.5]}], [{**one, "iscrowd": [0]}])
        with refused("columns_differ", side="ground_truths", match="'iscrowd'"):
            collector.add([{**one, "scores": [0.5]}], [one])
        assert len(collector) == 1
        with refused("batches_differ", side="predictions"):
            collector.add(pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}))
        with refused("lengths_differ", match="2 images"):
            collector.add([one, one], [one])
        other = ee.Collector("detection", dialect="coco")
        with refused("collectors_differ", value="options"):
            collector.merge(other)
        with pytest.raises(ee.OptionError, match="box_format='xywh'"):
            collector.score(box_format="xywh")
        with pytest.raises(ee.OptionError, match="dialect"):
            ee.Collector("detection", dialct="coco")

    def test_options_of_one_call(self) -> None:
        collector = ee.Collector("text")
        collector.add(["the cat sat"], ["the cat sat down"])
        assert collector.score(metrics=["BLEU"]).metrics["metric"].unique().to_list() == ["BLEU"]
        assert collector.score().metrics["metric"].n_unique() > 1

    def test_label_maps_are_stored_compactly(self) -> None:
        sky = np.zeros((400, 600), np.int64)
        collector = ee.Collector("segmentation")
        collector.add([sky], [sky])
        assert len(pickle.dumps(collector)) < sky.nbytes / 50


class TestBatches:
    def test_rows_beyond_the_limit_are_in_files(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(1)
        frames = [pl.DataFrame({"datum_id": np.arange(3), "x": rng.random(3)}) for _ in range(9)]
        small, large = Batches(100, str(tmp_path)), Batches()
        for frame in frames:
            for batches in (small, large):
                batches.append({"a": frame, "b": frame}, datums=3, own=["b"])
        [home] = tmp_path.iterdir()
        assert len([*home.glob("*.arrow")]) > 4
        for name in ("a", "b"):
            assert small.table(name).equals(large.table(name))
        both = Batches(100, str(tmp_path))
        both.extend(small, ["b"])
        both.extend(pickle.loads(pickle.dumps(small)), ["b"])
        assert both.table("a")["datum_id"].to_list() == list(range(54))
        assert both.table("b")["datum_id"].to_list() == [0, 1, 2] * 18
        del both
        small.clear()
        assert not [*tmp_path.iterdir()]

    def test_a_collector_with_a_limit(self, tmp_path: Path) -> None:
        run = FORMS["images"](np.random.default_rng(3))
        limits = {"memory_limit": "1GiB", "scratch": str(tmp_path)}
        collector = ee.Collector(**run.options, **limits)
        collector._batches._room = 10  # as if a GiB were little
        for place in range(run.n):
            collector.add(*(side[place : place + 1] for side in run.sides))
        assert [*tmp_path.glob("*/*.arrow")]
        assert collector.score().metrics.equals(scored(run, *run.sides))


@pytest.mark.parametrize(
    ("task", "options", "value", "meant"),
    [
        ("detecton", {}, "detecton", "'detection'"),
        ("detection", {"metrics": ["mpa"]}, "mpa", "'mAP'"),
        ("detection", {"dialect": "cocoa"}, "cocoa", "'coco'"),
    ],
)
def test_names_are_checked_before_the_first_batch(task, options, value, meant):
    with refused("unknown_name", ee.OptionError, value=value, match=meant):
        ee.Collector(task, **options)


def test_other_tables_are_not_merged():
    truths = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"]})
    made = [ee.Collector("classification", ground_truths=one)
            for one in (truths, truths.clone(), truths.reverse())]  # fmt: skip
    made[0].merge(pickle.loads(pickle.dumps(made[1])))
    with pytest.raises(ee.InputError, match="other ground_truths"):
        made[0].merge(made[2])


@pytest.mark.parametrize(
    ("task", "batches"),
    [
        ("text", ((["a"], [["a", "b"]]), (["a"], ["a"]))),
        ("text", ((["a"], ["a"]), (["a"], [["a", "b"]]))),
        ("classification", (([0.2, 0.8], [0, 1]), ([[0.2, 0.8]], [1]))),
        ("regression", (([[1.0, 2.0]], [[1.0, 2.0]]), ([1.5, 2.0], [1.0, 2.0]))),
    ],
)
def test_batches_have_one_form(task: Any, batches: Any) -> None:
    collector = ee.Collector(task)
    arrays = task != "text"
    first, second = ([np.array(one) if arrays else one for one in batch] for batch in batches)
    collector.add(*first)
    with pytest.raises(ee.InputError) as error:
        collector.add(*second)
    assert error.value.code == "batches_differ"
    assert len(collector) == len(batches[0][0])


def test_nothing_is_no_batch_and_no_collector() -> None:
    collector = ee.Collector("classification")
    with refused("sides_given"):
        collector.add(None)  # type: ignore[arg-type]
    with refused("collectors_differ"):
        collector.merge(None)  # type: ignore[arg-type]


def test_numbers_and_strings_are_two_forms(tmp_path: Path) -> None:
    first, second = ([1, 2, 1], [1, 2, 2]), (["1", "b"], ["1", "1"])
    one, other = ee.Collector("classification"), ee.Collector("classification")
    one.add(*first)
    other.add(*second)
    for add in (
        lambda: one.add(*second),
        lambda: other.add([True], [True]),
        lambda: one.merge(other),
    ):
        with refused("batches_differ", column="predictions"):
            add()
    assert len(one) == 3
    ids = ee.Collector("classification")
    ids.add([1, 2], [1, 2], ids=[1, 2])
    with refused("batches_differ", column="id"):
        ids.add([1, 2], [1, 2], ids=["1", "2"])
    rows = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"], "predicted": ["a", "a"]})
    tables = ee.Collector("classification", by=["site"])
    for site in ("x", None, np.nan, "y"):  # without values, any type
        part = rows.with_columns(pl.Series("site", [site, site])).fill_nan(None)
        tables.add(part.with_columns(datum_id=pl.col("datum_id") + len(tables)))
    with refused("batches_differ", column="site"):
        tables.add(rows.with_columns(site=pl.lit(1)))
    with refused("batches_differ", column="site", match="this batch has times"):
        tables.add(rows.with_columns(site=pl.lit("2026-12-01").str.to_date()))
    lists = ee.Collector("classification", multilabel=True)
    empty = pl.Series([[]], dtype=pl.List(pl.Float64))
    for labels in (empty, [["a"]], [np.array([])]):  # without labels, any type
        lists.add(pl.DataFrame({"actual": labels, "predicted": labels}))
    assert lists.score().value("Recall", label="a") == 1.0
    files = ee.Collector("classification")  # CSV files have no types
    for name, labels in (("a.csv", [1, 2]), ("b.csv", ["none", "2"])):
        pl.DataFrame({"actual": labels, "predicted": labels}).write_csv(tmp_path / name)
        files.add(tmp_path / name)
    assert files.score().labels["label_value"].to_list() == ["1", "2", "none"]


def test_names_and_objects_of_calls_are_two_forms() -> None:
    collector = ee.Collector("agents")
    names, objects = [["a"]], [[{"name": "a", "args": {"x": 1}}]]
    collector.add({"predicted_trajectory": names, "reference_trajectory": names})
    with pytest.raises(ee.InputError) as error:
        collector.add({"predicted_trajectory": objects, "reference_trajectory": objects})
    assert error.value.code == "batches_differ"


def test_scores_without_datums_have_no_rows() -> None:
    collector = ee.Collector("classification", labels=["a", "b"])
    collector.add(np.zeros((0, 2)), np.zeros(0, int))
    assert [one.code for one in collector.score().findings] == ["no_rows"]
