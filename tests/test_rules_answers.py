"""Rules about impossible answers: labels without scores, ties, renamed labels, gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from partitions.cases import FEW, in_buckets
from refusals import refused

import evalengine as ee
from evalengine.ingest import rules
from evalengine.ingest.problems import ChecksFailed, Note, notes_of_parts
from evalengine.ingest.rules import Rule
from evalengine.schemas.results import Finding
from evalengine.tasks.rules import renamed

LABELS = list("abcde")


def codes_of(card: Any, code: str) -> list[Finding]:
    return [one for one in card.findings if one.code == code]


def warned(card: Any) -> list[str]:
    return [one.code for one in card.findings if one.severity == "warning"]


def through_buckets(
    sides: tuple[pl.DataFrame, pl.DataFrame], folder: Path, patch: pytest.MonkeyPatch
) -> ee.Scorecard:
    """Score the same tables through files in four buckets."""
    files = [folder / name for name in ("p.parquet", "g.parquet")]
    for side, file in zip(sides, files, strict=True):
        side.write_parquet(file)
    in_buckets(patch)
    card = ee.score(*files, memory_limit="1GB")
    assert card.run["buckets"] == FEW.n
    return card


class TestLabelsWithoutScores:
    TABLE = pl.DataFrame({"y_true": ["a", "b", "c"] * 50, "p_a": [0.8, 0.1, 0.1] * 50,
                          "p_b": [0.1, 0.8, 0.1] * 50, "p_c": [0.1, 0.1, 0.8] * 50})  # fmt: skip

    @pytest.mark.parametrize(
        ("columns", "labels", "odd"),
        [(["p_a", "p_b"], ["c"], []), (["p_a"], ["b", "c"], []), ({"a": "p_a", "x": "p_c"},
         ["b", "c"], ["x"])],
    )  # fmt: skip
    def test_they_are_refused(self, columns: Any, labels: list[str], odd: list[str]) -> None:
        for asked in (None, ["Accuracy"], ["mROCAUC", "LogLoss"]):
            with pytest.raises(ChecksFailed) as caught:
                ee.score(self.TABLE, score_columns=columns, metrics=asked)
            (problem,) = caught.value.problems
            assert problem.kind == "labels_without_scores"
            assert (problem.facts["labels"], problem.facts["columns"]) == (labels, odd)
            assert (problem.count, problem.facts["of"]) == (len(labels), 3)

    def test_through_buckets(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.TABLE.write_parquet(tmp_path / "t.parquet")
        in_buckets(monkeypatch)
        with pytest.raises(ChecksFailed) as caught:
            ee.score(tmp_path / "t.parquet", score_columns=["p_a", "p_b"], memory_limit="1GB")
        assert [one.kind for one in caught.value.problems] == ["labels_without_scores"]

    def test_classes_that_are_never_true_and_one_column_of_two_classes(self) -> None:
        more = ee.score(self.TABLE.filter(y_true="a"), score_columns=["p_a", "p_b", "p_c"])
        assert warned(more) == []
        two = self.TABLE.filter(pl.col("y_true") != "c")
        with refused("labels_without_scores", ChecksFailed):
            ee.score(two, score_columns=["p_b"], metrics=["ROCAUC"])
        rest = ee.score(
            self.TABLE, score_columns=["p_a", "p_b"], where="y_true <> 'c'", metrics=["mROCAUC"]
        )
        assert rest.value("mROCAUC", average="macro") == 1.0


def long_table(n: int, tied: int, k: int = 5) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a right classifier whose first datums have equal scores, the true label first."""
    true = [LABELS[i % k] for i in range(n)]
    rows = [
        (i, one, 0.2 if i < tied else 0.9 if one == label else 0.1 / k)
        for i, label in enumerate(true)
        for one in [label, *(x for x in LABELS[:k] if x != label)]
    ]
    made = pl.DataFrame(rows, schema=["datum_id", "label_value", "score"], orient="row")
    return made, pl.DataFrame({"datum_id": range(n), "label_value": true})


class TestTies:
    @pytest.mark.parametrize(("tied", "severity"), [(3, "note"), (4, "warning"), (30, "warning")])
    @pytest.mark.parametrize("metrics", [None, ["TopKAccuracy"], ["Accuracy"]])
    @pytest.mark.parametrize("turned", [False, True])
    def test_of_labels(self, tied: int, severity: str, metrics: Any, turned: bool) -> None:
        mine, truth = long_table(30, tied)
        card = ee.score(mine.reverse() if turned else mine, truth, metrics=metrics)
        (one,) = codes_of(card, "tied_top_scores")
        assert (one.severity, one.count, one.facts["of"]) == (severity, tied, 30)

    def test_of_columns_of_scores(self) -> None:
        rows = {"y_true": ["a", "b", "c"] * 10, "a": [0.4] * 30, "b": [0.4] * 30, "c": [0.2] * 30}
        card = ee.score(pl.DataFrame(rows), score_columns=["a", "b", "c"])
        assert [one.count for one in codes_of(card, "tied_top_scores")] == [20]

    @pytest.mark.parametrize(("tied", "severity"), [(2, None), (8, "note"), (20, "warning")])
    @pytest.mark.parametrize("zeros", [False, True])
    @pytest.mark.parametrize("name", ["doc_id", "text"])
    def test_of_retrieval(self, tied: int, severity: str | None, zeros: bool, name: str) -> None:
        """Ids are reported if a tenth of the queries is tied; texts at once, as for labels."""
        rows = pl.DataFrame({"query_id": np.repeat(range(20), 10), "at": np.tile(range(10), 20)})
        rows = rows.with_columns(pl.format("d{}", "at").alias(name))
        equal = pl.col("query_id") < tied
        score = pl.when(equal).then(0.5).otherwise(1 / (pl.col("at") + 1))
        truth = rows.select("query_id", name, relevance=(pl.col("at") % 4 == 0).cast(pl.Int8))
        truth = truth if zeros else truth.filter(pl.col("relevance") > 0)
        mine = rows.select("query_id", name, score=score)
        severities = [one.severity for one in codes_of(ee.score(mine, truth), "tied_top_scores")]
        if name == "text":
            severity = "note" if tied == 2 else "warning"
        assert severities == ([] if severity is None else [severity])
        if name == "doc_id":
            card = ee.score(mine, truth, ties="average", metrics=["nDCG"])
            assert codes_of(card, "tied_top_scores") == []

    def test_equal_scores_elsewhere(self) -> None:
        mine, truth = long_table(30, 0)
        assert codes_of(ee.score(mine, truth), "tied_top_scores") == []
        wrong = mine.join(truth, on=["datum_id", "label_value"], how="anti")
        assert codes_of(ee.score(wrong, truth), "tied_top_scores") == []
        assert codes_of(ee.score(wrong, truth, metrics=["TopKAccuracy"]), "tied_top_scores") == []
        for k in ([1], [3]):
            card = ee.score(mine, truth, metrics=["TopKAccuracy"], k=k)
            assert codes_of(card, "tied_top_scores") == []

    def test_few_among_many(self) -> None:
        mine, truth = long_table(40_000, 4_000)
        (one,) = codes_of(ee.score(mine, truth, metrics=["Accuracy"]), "tied_top_scores")
        assert (one.severity, one.count) == ("note", 4_000)

    @pytest.mark.parametrize("tied", [1, 30])
    def test_through_buckets(
        self, tied: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sides = long_table(30, tied)
        (one,) = codes_of(ee.score(*sides), "tied_top_scores")
        (other,) = codes_of(through_buckets(sides, tmp_path, monkeypatch), "tied_top_scores")
        assert (one.severity, one.count, one.message) == (
            other.severity, other.count, other.message
        )  # fmt: skip

    def test_of_retrieved_texts(self) -> None:
        run = pl.DataFrame(
            {"query_id": [1, 1, 1, 2, 2, 2], "text": ["gold", "b", "c", "d", "fine", "f"],
             "score": [0.5] * 6}
        )  # fmt: skip
        golds = pl.DataFrame({"query_id": [1, 2], "text": ["gold", "fine"]})
        how: dict[str, Any] = {"metrics": ["MRR"], "match": "exact_chunk"}
        (one,) = codes_of(ee.score(run, golds, **how), "tied_top_scores")
        assert (one.severity, one.count, one.facts["of"]) == ("warning", 2, 2)
        apart = run.with_columns(score=pl.Series([3.0, 2.0, 1.0] * 2))
        assert codes_of(ee.score(apart, golds, **how), "tied_top_scores") == []
        below = run.with_columns(score=pl.Series([3.0, 2.0, 2.0, 3.0, 2.0, 2.0]))
        assert codes_of(ee.score(below, golds, **how), "tied_top_scores") == []
        ranked = run.drop("score").with_columns(rank=pl.Series([1, 2, 3] * 2))
        assert codes_of(ee.score(ranked, golds, **how), "tied_top_scores") == []


def classified(right: float, n: int, names: dict[str, str], seed: int = 0) -> pl.DataFrame:
    """Return a classifier with a given share of right answers, with renamed labels."""
    rng = np.random.default_rng(seed)
    true = rng.choice(LABELS, n)
    made = np.where(rng.random(n) < right, true, rng.choice(LABELS, n))
    return pl.DataFrame({"actual": true, "predicted": [names.get(x, x) for x in made.tolist()]})


CYCLE = dict(zip(LABELS, [*LABELS[1:], "a"], strict=True))
SWAP = {"a": "b", "b": "a"}
THREE = {"a": "b", "b": "c", "c": "a"}


class TestRenamedLabels:
    @pytest.mark.parametrize(
        ("names", "n", "right", "code"),
        [
            (CYCLE, 25, 0.8, "labels_apart"),
            (CYCLE, 60, 0.5, "labels_apart"),
            (CYCLE, 400, 0.5, "labels_apart"),
            (SWAP, 100, 0.8, "labels_exchanged"),
            (SWAP, 400, 0.6, "labels_exchanged"),
            (THREE, 100, 0.8, "labels_exchanged"),
        ],
    )
    def test_of_a_classifier_that_is_not_perfect(
        self, names: dict[str, str], n: int, right: float, code: str
    ) -> None:
        card = ee.score(classified(right, n, names))
        assert warned(card) == [code]
        (one,) = codes_of(card, code)
        back = {new: old for old, new in names.items()}
        assert dict(one.facts["labels"]) == back
        assert one.facts["of"] == n

    @pytest.mark.parametrize("right", [0.0, 0.1, 0.3, 0.6, 1.0])
    @pytest.mark.parametrize("n", [20, 50, 400])
    @pytest.mark.parametrize("seed", range(5))
    def test_a_poor_classifier_is_not_a_renamed_one(self, right: float, n: int, seed: int) -> None:
        assert warned(ee.score(classified(right, n, {}, seed))) == []

    def test_confused_classes_are_not_exchanged(self) -> None:
        rng = np.random.default_rng(0)
        table = classified(0.9, 400, {})
        mixed = pl.Series(rng.random(400) < 0.5) & pl.col("predicted").is_in(["a", "b"])
        unsure = pl.when(mixed).then(pl.col("predicted").replace(SWAP)).otherwise("predicted")
        assert warned(ee.score(table.with_columns(predicted=unsure))) == []

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize(("labels", "right"), [(200, 0.5), (100, 0.65)])
    def test_siblings_confused_by_chance_are_not_exchanged(
        self, labels: int, right: float, seed: int
    ) -> None:
        """There are pairs of similar labels, with five rows of each label."""
        rng = np.random.default_rng(seed)
        true = np.repeat(np.arange(labels), 5)
        made = np.where(rng.random(true.size) < right, true, true ^ 1)
        assert warned(ee.score(pl.DataFrame({"actual": true, "predicted": made}))) == []

    @pytest.mark.parametrize(("truth", "made"), [((0, 1), (-1, 1)), ((-1, 1), (0, 1))])
    def test_two_codes_of_a_binary_problem(self, truth: Any, made: Any) -> None:
        rng = np.random.default_rng(1)
        true = rng.integers(0, 2, 200)
        said = np.where(rng.random(200) < 0.8, true, 1 - true)
        table = {"actual": np.array(truth)[true], "predicted": np.array(made)[said]}
        card = ee.score(pl.DataFrame(table))
        (one,) = codes_of(card, "labels_one_sided")
        assert one.facts["labels"] == [[made[0], truth[0]]]
        mapped = ee.score(
            pl.DataFrame(table), label_map={str(made[0]): truth[0]}, metrics=["Accuracy"]
        )
        assert mapped.value("Accuracy") == np.mean(true == said)

    def test_one_class_under_another_name(self) -> None:
        card = ee.score(classified(0.8, 200, {"a": "bus"}))
        assert codes_of(card, "labels_one_sided")[0].facts["labels"] == [["bus", "a"]]
        guessed = ee.score(classified(0.0, 200, {"a": "bus"}))
        assert codes_of(guessed, "labels_one_sided") == []

    @pytest.mark.parametrize("names", [CYCLE, SWAP])
    def test_of_boxes(
        self, names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(3)
        n = 300
        at = rng.uniform(0, 500, (n, 2))
        corners = dict(zip(["xmin", "ymin", "xmax", "ymax"], np.c_[at, at + 40].T, strict=True))
        labels = classified(0.7, n, names, 3)
        truth = pl.DataFrame({"datum_id": rng.integers(0, 60, n), **corners}).with_columns(
            label_value=labels["actual"]
        )
        mine = truth.with_columns(label_value=labels["predicted"], score=rng.random(n))
        card = ee.score(mine, truth)
        code = "labels_exchanged" if names is SWAP else "labels_apart"
        assert warned(card) == [code]
        assert warned(ee.check(mine, truth)) == [code]
        if names is SWAP:
            bounded = through_buckets((mine, truth), tmp_path, monkeypatch)
            (one,), (other,) = (codes_of(each, code) for each in (card, bounded))
            assert one.facts["labels"] == other.facts["labels"]
        assert warned(ee.score(mine.with_columns(label_value=labels["actual"]), truth)) == []


class TestThresholds:
    ROWS = pl.DataFrame({"actual": [0, 1] * 20, "score": np.linspace(0.05, 0.95, 40)})

    @pytest.mark.parametrize("at", [40, 1.5, -1])
    def test_beyond_all_scores(self, at: float) -> None:
        (one,) = codes_of(ee.score(self.ROWS, decision_threshold=at), "threshold_beyond_scores")
        assert one.severity == "warning"
        scores = {"lowest": 0.05, "highest": 0.95}
        assert one.facts == {"option": "decision_threshold", "threshold": at, **scores}

    def test_that_split_the_scores(self) -> None:
        percent = self.ROWS.with_columns(pl.col("score") * 100)
        logits = self.ROWS.with_columns(pl.col("score") * 8 - 4)
        for table, at in ((percent, 40), (logits, -2), (logits, 0), (self.ROWS, 0.99)):
            assert warned(ee.score(table, decision_threshold=at)) == []

    @pytest.mark.parametrize(("scale", "shift", "warns"), [(100, 0, True), (8, -4, False)])
    def test_default_of_percent_and_logits(self, scale: float, shift: float, warns: bool) -> None:
        table = self.ROWS.with_columns(pl.col("score") * scale + shift)
        (one,) = codes_of(ee.score(table), "cut_logits")
        assert (one.severity == "warning") == warns
        assert "decision_threshold=50" in one.message
        assert codes_of(ee.score(table, metrics=["ROCAUC"]), "cut_logits") == []

    def test_of_several_labels(self) -> None:
        rows = {"datum_id": [0, 0, 1, 1], "label_value": ["a", "b"] * 2, "score": [0.9, 0.2] * 2}
        truth = {"datum_id": [0, 1], "label_value": ["a", "b"]}
        how: dict[str, Any] = {"multilabel": True, "metrics": ["F1"]}
        card = ee.score(pl.DataFrame(rows), pl.DataFrame(truth), decision_threshold=40, **how)
        assert warned(card) == ["threshold_beyond_scores"]
        assert warned(ee.score(pl.DataFrame(rows), pl.DataFrame(truth), **how)) == []
        for factor, severity in ((100, "warning"), (-4, "note")):
            other = pl.DataFrame(rows).with_columns(pl.col("score") * factor)
            (one,) = codes_of(ee.score(other, pl.DataFrame(truth), **how), "cut_logits")
            assert one.severity == severity

    @pytest.mark.parametrize("at", [[40], [1.5, 50]])
    def test_of_curves_and_boxes(self, at: list[float]) -> None:
        box = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
        truth = pl.DataFrame({"datum_id": range(40), "label_value": "a", **box})
        found = truth.with_columns(self.ROWS["score"])
        for tables, metric in (((found, truth), "F1"), ((self.ROWS,), "PrecisionRecallCurve")):
            card = ee.score(*tables, metrics=[metric], score_thresholds=at)
            (one,) = codes_of(card, "threshold_beyond_scores")
            assert (one.severity, one.facts["option"]) == ("warning", "score_thresholds")
            percent = tables[0].with_columns(pl.col("score") * 100)
            for fair, limits in ((tables[0], [0.99, 1]), (percent, at)):
                card = ee.score(fair, *tables[1:], metrics=[metric], score_thresholds=limits)
                assert codes_of(card, "threshold_beyond_scores") == []


class TestScoresOfOtherLabels:
    LABELS = ("a", "b", "c")

    def card(self, columns: str, n: int = 60, **how: Any) -> ee.Scorecard:
        """Score tables whose predicted labels have the highest of three scores."""
        table = pl.DataFrame({"at": range(n)}).with_columns(
            actual=(pl.col("at") % 7 % 3).replace_strict(dict(enumerate(self.LABELS))),
            predicted=(pl.col("at") % 3).replace_strict(dict(enumerate(self.LABELS))),
            **{f"p_{x}": 0.2 + 0.4 * (pl.col("at") % 3 == i) for i, x in enumerate(self.LABELS)},
        )
        score_columns = {one: f"p_{other}" for one, other in zip("abc", columns, strict=True)}
        return ee.score(table, score_columns=score_columns, **how)

    @pytest.mark.parametrize("columns", ["bac", "bca"])
    def test_exchanged_columns(self, columns: str) -> None:
        (one,) = codes_of(self.card(columns), "scores_of_other_labels")
        assert one.severity == "warning"
        assert one.facts["count"] == (40 if columns == "bac" else 60)
        assert codes_of(self.card("abc"), "scores_of_other_labels") == []

    def test_exchanged_columns_in_buckets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_buckets(monkeypatch)
        card = self.card("bca", memory_limit="1GB")
        (one,) = codes_of(card, "scores_of_other_labels")
        assert one == codes_of(self.card("bca"), "scores_of_other_labels")[0]

    def test_labels_decided_by_a_threshold(self) -> None:
        table = pl.DataFrame({"actual": [0, 1, 1] * 20, "predicted": [0, 1, 1] * 20})
        score = pl.col("predicted") * 0.3
        table = table.with_columns(one=score, zero=1 - score)
        card = ee.score(table, score_columns={0: "zero", 1: "one"})
        assert warned(card) == []

    def test_labels_decided_by_weights(self) -> None:
        rng = np.random.default_rng(5)
        scores = rng.dirichlet(np.ones(3) * 3, 200)
        predicted = (scores * [0.2, 1, 5]).argmax(1)
        assert (predicted != scores.argmax(1)).mean() > 0.5
        columns = pl.DataFrame(scores, schema=list(self.LABELS))
        labels = pl.Series(predicted).replace_strict(dict(enumerate(self.LABELS)))
        table = columns.with_columns(actual=labels, predicted=labels)
        card = ee.score(table, score_columns=dict(zip(self.LABELS, self.LABELS, strict=True)))
        assert codes_of(card, "scores_of_other_labels") == []


class TestDatumsWithoutPredictions:
    @staticmethod
    def boxes(n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        truth = pl.DataFrame({"datum_id": range(n), "label_value": ["a"] * n, "xmin": [0.0] * n,
                              "ymin": [0.0] * n, "xmax": [9.0] * n, "ymax": [9.0] * n})  # fmt: skip
        return truth.with_columns(score=pl.lit(0.5)), truth

    @pytest.mark.parametrize(
        ("kept", "severity"), [(0, "warning"), (1, "warning"), (36, "warning"), (37, "note")]
    )
    def test_of_boxes(
        self, kept: int, severity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine, truth = self.boxes(40)
        kind = "datums_without_predictions"
        sides = mine.head(kept), truth
        cards = [ee.score(*sides), ee.check(*sides)]
        if kept:
            cards.append(through_buckets(sides, tmp_path, monkeypatch))
            halves = [[side[rows] for side in sides] for rows in (slice(20), slice(20, None))]
            cards.append(ee.merge([ee.tally(*half) for half in halves]).summarise())
        for card in cards:
            (one,) = codes_of(card, kind)
            assert (one.severity, one.count) == (severity, 40 - kept)
            facts = one.facts["with_ground_truths"], one.facts["ground_truths"]
            assert facts == (40 - kept, 40)  # also of buckets without a gap

    def test_a_file_with_a_header_only(self, tmp_path: Path) -> None:
        mine, truth = self.boxes(40)
        files = tmp_path / "p.csv", tmp_path / "g.csv"
        mine.clear().write_csv(files[0])
        truth.write_csv(files[1])
        assert warned(ee.score(*files)) == ["datums_without_predictions"]

    def test_images_without_objects_need_none(self) -> None:
        mine, truth = self.boxes(10)
        card = ee.score(mine, truth, datums=pl.DataFrame({"datum_id": range(100)}))
        (one,) = codes_of(card, "datums_without_predictions")
        assert (one.severity, one.count, one.facts["with_ground_truths"]) == ("note", 90, 0)
        card = ee.score(mine.head(8), truth, datums=pl.DataFrame({"datum_id": range(100)}))
        assert warned(card) == ["datums_without_predictions"]

    @pytest.mark.parametrize(
        ("lost", "severity"), [(range(12), "note"), (range(24, 36), "warning")]
    )
    def test_detectors_that_find_nothing_in_sparse_images(
        self, lost: range, severity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Images 0 to 23 have one object, the others three; 12 of 60 images have no prediction."""
        _, one = self.boxes(60)
        more = one.filter(pl.col("datum_id") >= 24)
        truth = pl.concat([one, more.with_columns(xmin=1.0), more.with_columns(xmin=2.0)])
        mine = truth.with_columns(score=0.5).filter(~pl.col("datum_id").is_in(list(lost)))
        for card in (
            ee.score(mine, truth),
            ee.check(mine, truth),
            through_buckets((mine, truth), tmp_path, monkeypatch),
        ):
            (note,) = codes_of(card, "datums_without_predictions")
            assert (note.severity, note.count) == (severity, 12)

    def test_of_labels(self) -> None:
        truth = pl.DataFrame({"datum_id": range(40), "label_value": ["a", "b"] * 20})
        assert warned(ee.score(truth.head(36), truth)) == ["datums_without_predictions"]
        assert warned(ee.score(truth.head(37), truth)) == []


class TestMappings:
    QRELS: ClassVar = {f"q{i}": {"d1": 1, "d2": 0} for i in range(9)}
    RUN: ClassVar = {f"q{i}": {"d1": 0.31, "d2": 0.92, "d3": 0.45} for i in range(9)}

    def test_exchanged(self) -> None:
        card = ee.score(self.QRELS, self.RUN, metrics=["nDCG@10"])
        (one,) = codes_of(card, "mappings_swapped")
        assert (one.severity, one.count) == ("warning", 27)
        assert warned(ee.check(self.QRELS, self.RUN)) == ["mappings_swapped"]
        whole = {q: {d: round(100 * v) for d, v in own.items()} for q, own in self.RUN.items()}
        assert warned(ee.score(self.QRELS, whole, metrics=["nDCG@10"])) == ["mappings_swapped"]

    def test_in_order(self) -> None:
        graded = {q: {d: v / 2 for d, v in own.items()} for q, own in self.QRELS.items()}
        whole = {q: {d: round(100 * v) for d, v in own.items()} for q, own in self.RUN.items()}
        for run in (self.RUN, whole):
            for qrels in (self.QRELS, graded):
                assert warned(ee.score(run, qrels, metrics=["nDCG@10"])) == []

    def test_tables_whose_relevance_is_called_score(self, tmp_path: Path) -> None:
        tables = []
        for name, side in (("q", self.QRELS), ("r", self.RUN)):
            rows = [(q, d, v) for q, own in side.items() for d, v in own.items()]
            names = ["query_id", "corpus_id", "score"]
            tables.append(pl.DataFrame(rows, schema=names, orient="row"))
            tables[-1].write_parquet(tmp_path / f"{name}.parquet")
        qrels, run = tables
        for sides in ((qrels, run), (tmp_path / "q.parquet", tmp_path / "r.parquet")):
            card = ee.score(*sides, metrics=["nDCG@10"])
            assert codes_of(card, "mappings_swapped")[0].severity == "warning"
            assert warned(ee.score(*sides[::-1], metrics=["nDCG@10"])) == []


def test_notes_of_parts_with_facts_and_without_a_rule_add_up() -> None:
    parts = [
        [Note("of_no_rule", f"{n} rows are odd.", n, facts={"count": n, "of": 9})] for n in (2, 3)
    ]
    (whole,) = notes_of_parts(parts, rules.reworded)
    assert (whole.count, whole.facts) == (5, {"count": 5, "of": 18})


def test_two_rules_have_two_codes() -> None:
    first = Rule(code="only_here", needs=frozenset(), look=lambda _: [], describe=str)
    with pytest.raises(AssertionError, match="only_here"):
        Rule(code=first.code, needs=frozenset(), look=first.look, describe=repr)


def test_random_label_maps_have_no_exchanged_labels() -> None:
    kinds = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        maps = [[rng.choice(rng.choice(5, rng.integers(1, 4)), 40) for _ in "12"] for _ in "123"]
        mine, other = np.concatenate(maps, axis=1)
        pairs = pl.DataFrame({"mine": mine, "other": other}).group_by("mine", "other").len()
        note = renamed(pairs, pl.Series(range(5)), "", 2, independent=False)
        kinds.add(note.kind if note else "")
    assert not {"labels_exchanged", "labels_one_sided"} & kinds
