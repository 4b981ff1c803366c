"""Human labels of judged rows: known values, a slow reference, refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitions.cases import in_buckets
from polars.testing import assert_frame_equal
from refusals import refused
from sizes import tune

import evalengine as ee
from evalengine.statistics import human
from evalengine.statistics.human import Labelled
from evalengine.statistics.intervals import t_quantile

ROWS, LABELS = 600, 120


def verdicts(n: int = ROWS, seed: int = 1) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
    """Make a table of verdicts and the true labels of its rows."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.7
    judge = np.where(truth, rng.random(n) < 0.92, rng.random(n) > 0.75)
    table = pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "metric": "Bias",
            "verdict": np.where(judge, "yes", "no"),
            "topic": np.where(np.arange(n) % 3 == 0, "a", "b"),
            "talk": np.arange(n) // 6,
        }
    )
    return table, truth


def labels_of(truth: Any, rows: Any, **columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"datum_id": rows, "value": truth[rows].astype(int), **columns})


TABLE, TRUTH = verdicts()
CHOSEN = np.sort(np.random.default_rng(2).choice(ROWS, LABELS, replace=False))
HUMAN = labels_of(TRUTH, CHOSEN)


def row(card: Any, statistic: str, **filters: Any) -> dict[str, Any]:
    rows = card.metrics.filter(statistic=statistic, **filters)
    return rows.row(0, named=True)


def codes(card: Any) -> list[str]:
    return [one.code for one in card.findings]


def slow(f: Any, y: Any, place: Any, cluster: Any, kish: bool) -> tuple[float, float]:
    """Compute PPI++ by its definition: the estimate and half the width of its interval.

    Args:
        kish: limit the degrees of freedom by Kish's effective number of rows.
    """
    n, rows = len(place), len(f)
    rest = [i for i in range(rows) if i not in set(place)]
    others = len(rest)
    own = [f[i] for i in place]
    mean_y, mean_own = sum(y) / n, sum(own) / n
    mean = sum(f[i] for i in rest) / others
    every = sum(f) / rows
    spread = sum((one - every) ** 2 for one in f) / (rows - 1)
    pairs = zip(y, own, strict=True)
    cov = sum((a - mean_y) * (b - mean_own) for a, b in pairs) / n
    power = min(max(cov / ((1 + n / others) * spread), 0), 1) if spread else 0.0
    gaps = [a - power * b for a, b in zip(y, own, strict=True)]
    sums: dict[int, float] = {}
    for i in rest:
        sums[cluster[i]] = sums.get(cluster[i], 0) + power * (f[i] - mean) / others
    for i, gap in zip(place, gaps, strict=True):
        sums[cluster[i]] = sums.get(cluster[i], 0) + (gap - sum(gaps) / n) / n
    many = len(sums)
    variance = sum(one**2 for one in sums.values()) * many / (many - 1)
    labelled = len({cluster[i] for i in place})
    single = [power * (f[i] - mean) / others for i in rest]
    single += [(gap - sum(gaps) / n) / n for gap in gaps]
    if kish and any(single):
        squares = [one**2 for one in single]
        labelled = min(labelled, int(sum(squares) ** 2 / sum(one**2 for one in squares)))
    half = t_quantile(0.975, labelled - 1) * math.sqrt(variance)
    return mean_y + power * (mean - mean_own), half


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_corrected_means_match_the_definition(seed, binary, clustered):
    rng = np.random.default_rng(seed)
    n, others = int(rng.integers(25, 60)), int(rng.integers(5, 90))
    rows = n + others
    y = rng.random(rows) if not binary else (rng.random(rows) < 0.5).astype(float)
    noise = rng.random(rows)
    f = np.where(noise < 0.4, rng.permutation(y), y) if binary else 0.7 * y + 0.3 * noise
    place = np.sort(rng.choice(rows, n, replace=False))
    cluster = rng.integers(0, 20, rows) if clustered else np.arange(rows)
    data = Labelled(f, place, y[place], cluster=cluster if clustered else None, binary=binary)
    result = human.corrected(data, (-math.inf, math.inf))
    value, half = slow(f.tolist(), y[place].tolist(), place.tolist(), cluster.tolist(), binary)
    assert result.value == pytest.approx(value, abs=1e-12)
    if human.too_few(data):
        assert math.isnan(result.lower)
    else:
        assert result.upper - result.value == pytest.approx(half, rel=1e-10)


def test_equal_weights_and_single_row_clusters_keep_the_values():
    f = TABLE["verdict"].eq("yes").cast(float).to_numpy()
    y = TRUTH[CHOSEN].astype(float)
    kind = {"verdicts": True, "binary": True}
    plain = Labelled(f, CHOSEN, y, **kind)
    weighted = Labelled(f, CHOSEN, y, weight=np.full(LABELS, 3.0), **kind)
    by_row = Labelled(f, CHOSEN, y, cluster=np.arange(ROWS), **kind)
    assert human.ppi(weighted).value == pytest.approx(human.ppi(plain).value, abs=1e-12)
    one, other = (human.corrected(data, (0.0, 1.0)) for data in (plain, by_row))
    assert other == pytest.approx(one)
    for make in (human.kappa, lambda data: human.mean_of_labels(data, (0.0, 1.0))):
        assert make(by_row).value == pytest.approx(make(plain).value)
        assert make(by_row).se == pytest.approx(make(plain).se, rel=0.02)


def test_known_agreement():
    """A common example of Cohen's kappa: 20 and 15 of 50 applications agree, kappa 0.4."""
    f = np.repeat([1.0, 1.0, 0.0, 0.0], [20, 5, 10, 15])
    y = np.repeat([1.0, 0.0, 1.0, 0.0], [20, 5, 10, 15])
    data = Labelled(f, np.arange(50), y)
    result = human.kappa(data)
    assert result.value == pytest.approx(0.4)
    assert result.se == pytest.approx(0.127, abs=5e-4)
    sensitivity = human.proportion(data, data.own == 1, data.label == 1)
    assert (sensitivity.value, sensitivity.n) == (20 / 30, 30)


def test_known_alpha():
    """Krippendorff's example of four coders and twelve units."""
    _ = None
    table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
    cells = [(u, v) for coder in table for u, v in enumerate(coder) if v is not None]
    unit, value = (np.array(one) for one in zip(*cells, strict=True))
    result = human.alpha(unit, value.astype(float))
    assert result.value == pytest.approx(0.849, abs=5e-4)
    assert result.n == 11  # the last unit has one label


def test_known_rogan_gladen():
    """Share 0.4 of 1,000 unlabelled rows; sensitivity 0.9 of 100, specificity 0.8 of 50 labels."""
    f = np.concatenate([np.repeat([1.0, 0.0, 1.0, 0.0], [90, 10, 10, 40]), np.zeros(1000)])
    f[150:550] = 1
    y = np.repeat([1.0, 0.0], [100, 50])
    data = Labelled(f, np.arange(150), y)
    sides = [human.proportion(data, data.own == one, data.label == one) for one in (1.0, 0.0)]
    result = human.rogan_gladen(data, *sides)
    value = (0.4 + 0.8 - 1) / 0.7
    variance = 0.4 * 0.6 / 1000 + value**2 * 0.09 / 100 + (1 - value) ** 2 * 0.16 / 50
    assert result.value == pytest.approx(value)
    assert result.se == pytest.approx(math.sqrt(variance) / 0.7)


@pytest.mark.parametrize("annotated", [False, True])
def test_values_and_verdicts_are_the_same_labels(annotated):
    labels = HUMAN
    if annotated:
        other = HUMAN.with_columns(
            value=pl.when(pl.col("datum_id") % 11 == 0).then(0).otherwise("value")
        )
        third = HUMAN.with_columns(
            value=pl.when(pl.col("datum_id") % 7 == 0).then(0).otherwise("value")
        )
        labels = pl.concat(
            [
                one.with_columns(pl.lit(name).alias("annotator"))
                for one, name in zip((HUMAN, other, third), "xyz", strict=True)
            ]
        )
    word = pl.when(pl.col("value") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    by_word = labels.with_columns(verdict=word).drop("value")
    a, b = (ee.score(TABLE, human=one) for one in (labels, by_word))
    assert a.metrics.equals(b.metrics)
    assert ("alpha" in a.metrics["statistic"]) == annotated
    booleans = labels.with_columns(pl.col("value").cast(pl.Boolean))
    assert ee.score(TABLE, human=booleans).metrics.equals(a.metrics)


def test_rows_without_a_majority_of_annotators_are_skipped():
    """The order of the table does not matter."""
    other = HUMAN.with_columns(
        value=pl.when(pl.col("datum_id") % 5 == 0).then(0).otherwise("value")
    )
    both = pl.concat(
        [HUMAN.with_columns(annotator=pl.lit("x")), other.with_columns(annotator=pl.lit("y"))]
    )
    tied = int((HUMAN["value"] != other["value"]).sum())
    card, other_card = (ee.score(TABLE, human=one) for one in (both, both.reverse()))
    assert tied > 0
    (note,) = [one for one in card.findings if one.code == "labels_tied"]
    assert note.count == tied
    assert row(card, "labels")["support"] == LABELS - tied
    assert row(card, "labels")["value"] == row(other_card, "labels")["value"]


@pytest.mark.parametrize("value", [5, -1])
def test_labels_beyond_the_range_of_the_metric_are_refused(value):
    labels = HUMAN.with_columns(value=pl.lit(value))
    with refused("option_value", table="human", column="value", count=LABELS):
        ee.score(TABLE, human=labels)


def test_rows_of_the_scorecard(tmp_path):
    card = ee.score(TABLE, human=HUMAN, by="topic")
    judge = TABLE["verdict"].eq("yes").to_numpy()
    agreed = judge[CHOSEN] == TRUTH[CHOSEN]
    result = row(card, "agreement")
    assert (result["value"], result["support"]) == (pytest.approx(agreed.mean()), LABELS)
    assert card.value("Bias") == pytest.approx(judge.mean())
    one = card.metrics.filter(statistic="labels", slice_value="a")
    inside = CHOSEN[CHOSEN % 3 == 0]
    assert one["value"][0] == pytest.approx(TRUTH[inside].mean())
    corrected = row(card, "corrected")
    assert corrected["lower"] < card.value("Bias", statistic="corrected") < corrected["upper"]
    (note,) = [one for one in card.findings if one.code == "human_labels"]
    assert note.count == LABELS
    assert note.facts["others"] == ROWS - LABELS
    card.save(tmp_path / "run")
    other_card = ee.load(tmp_path / "run")
    assert other_card.metrics.equals(card.metrics)
    assert other_card.to_label.equals(card.to_label)


@pytest.mark.parametrize("cluster", [None, "talk"])
def test_slices_are_those_of_their_rows(cluster):
    uneven = TABLE.with_columns(talk=pl.col("datum_id").pow(2) % 37)
    card = ee.score(uneven, human=HUMAN, by="topic", cluster=cluster)
    for name in "ab":
        rows = uneven.filter(topic=name)
        labels = HUMAN.filter(pl.col("datum_id").is_in(rows["datum_id"].implode()))
        one = ee.score(rows.drop("topic"), human=labels, cluster=cluster).metrics
        columns = [c for c in one.columns if not c.startswith("slice")]
        mine = card.metrics.filter(slice_value=name).select(columns)
        assert {"corrected", "agreement"} <= {*mine["statistic"]}
        assert_frame_equal(mine, one.select(columns), check_row_order=False, rel_tol=1e-9)


def test_the_order_of_rows_and_buckets_change_nothing(tmp_path):
    TABLE.write_parquet(tmp_path / "verdicts.parquet")
    card = ee.score(TABLE, human=HUMAN)
    mixed = ee.score(TABLE.sample(fraction=1, shuffle=True, seed=3), human=HUMAN.reverse())
    parts = ee.score(
        str(tmp_path / "verdicts.parquet"), human=HUMAN, memory_limit="448MiB", executor="threads"
    )
    for other in (mixed, parts):
        assert other.metrics.equals(card.metrics)
        assert other.to_label.sort("datum_id").equals(card.to_label.sort("datum_id"))


@pytest.mark.parametrize("how", [{"by": ["talk"]}, {"cluster": "talk"}])
def test_slices_and_clusters_of_tallies_on_disk(tmp_path, monkeypatch, how):
    """Some talks are null, so group codes include a missing value."""
    in_buckets(monkeypatch)
    tune(tally_bytes=1)
    talk = pl.when(pl.col("datum_id") % 7 > 0).then(pl.col("talk").cast(pl.String))
    rows = TABLE.with_columns(talk=talk)
    rows.write_parquet(tmp_path / "verdicts.parquet")
    whole = ee.score(rows, human=HUMAN, **how)
    parts = ee.score(str(tmp_path / "verdicts.parquet"), human=HUMAN, memory_limit="1GB", **how)
    assert (parts.run["buckets"], parts.tallied) == (3, None)
    order = ["metric", "statistic", "slice_value"]
    assert_frame_equal(parts.metrics.sort(order), whole.metrics.sort(order))


def test_few_labels_have_no_corrected_interval():
    few = HUMAN.head(20)
    card = ee.score(TABLE, human=few)
    assert row(card, "corrected")["lower"] is None
    assert "10 needed" in row(card, "corrected")["reason"]
    assert row(card, "labels")["lower"] is not None
    clusters = ee.score(TABLE, human=HUMAN.filter(pl.col("datum_id") < 48), cluster="talk")
    assert all(row(clusters, name)["lower"] is None for name in ("labels", "corrected"))


def test_a_row_without_a_cluster_is_a_cluster():
    talk = pl.when(pl.col("datum_id") % 2 == 0).then(pl.col("talk").cast(pl.String))
    own_name = pl.format("z{}", pl.col("datum_id").cast(pl.String).str.zfill(4))
    rows = TABLE.with_columns(talk=talk)
    named = rows.with_columns(pl.col("talk").fill_null(own_name))
    one, other = (ee.score(each, human=HUMAN, cluster="talk").metrics for each in (rows, named))
    assert one.equals(other)


def test_labels_of_a_biased_sample_are_a_warning():
    judge = TABLE["verdict"].eq("yes").to_numpy()
    chosen = np.sort(np.concatenate([np.flatnonzero(~judge)[:60], np.flatnonzero(judge)[:60]]))
    card = ee.score(TABLE, human=labels_of(TRUTH, chosen))
    assert any(
        one.code == "labels_not_random" and one.severity == "warning" for one in card.findings
    )
    weight = np.where(judge[chosen], judge.sum() / 60, (~judge).sum() / 60)
    weighted = ee.score(TABLE, human=labels_of(TRUTH, chosen, label_weight=weight))
    assert "labels_not_random" not in codes(weighted)
    share = judge.mean()
    expected = share * TRUTH[chosen][judge[chosen]].mean()
    expected += (1 - share) * TRUTH[chosen][~judge[chosen]].mean()
    assert weighted.value("Bias", statistic="labels") == pytest.approx(expected)
    assert weighted.value("Bias", statistic="corrected") == pytest.approx(expected)


def test_a_judge_that_guesses_is_a_warning():
    labels = HUMAN.with_columns(value=1 - pl.col("value"))
    (result,) = [
        one for one in ee.score(TABLE, human=labels).findings if one.code == "judge_by_chance"
    ]
    assert result.severity == "warning"
    assert "judge_by_chance" not in codes(ee.score(TABLE, human=HUMAN))


def test_labels_of_other_rows_are_reported():
    more = pl.concat(
        [HUMAN, pl.DataFrame({"datum_id": [-1, -2], "value": [1, 1]})], how="vertical_relaxed"
    )
    card = ee.score(TABLE, human=more)
    (note,) = [one for one in card.findings if one.code == "labels_unjudged"]
    assert (note.count, note.severity) == (2, "note")
    assert card.metrics.equals(ee.score(TABLE, human=HUMAN).metrics)


def test_rows_to_label_are_stratified_and_can_be_given_back():
    card = ee.score(TABLE, human=HUMAN, label_next=80, seed=4)
    frame = card.to_label
    fresh = frame.filter(pl.col("value").is_null())
    assert (fresh.height, frame.height) == (80, 80 + LABELS)
    assert frame["datum_id"].is_unique().all()
    sizes = dict(pl.Series(TABLE["verdict"] == "yes").value_counts().iter_rows())
    for judged, many in frame.group_by("judge").len().iter_rows():
        weight = frame.filter(judge=judged)["label_weight"].unique()
        assert weight.to_list() == [pytest.approx(sizes[bool(judged)] / many)]
    filled = frame.with_columns(
        pl.Series("value", TRUTH[frame["datum_id"].to_numpy()].astype(float))
    )
    other_card = ee.score(TABLE, human=filled)
    assert "labels_not_random" not in codes(other_card)
    assert row(other_card, "corrected")["support"] == 80 + LABELS
    assert other_card.value("Bias", statistic="corrected") == pytest.approx(
        other_card.value("Bias", statistic="labels")
    )
    first = ee.score(TABLE, label_next=40).to_label
    assert first["value"].null_count() == 40
    assert not ee.score(TABLE, label_next=40).to_label.equals(
        ee.score(TABLE, label_next=40, seed=1).to_label
    )


def test_allotted_labels_minimise_the_variance():
    """No other allocation of 15 labels has a smaller variance."""
    size, spread = np.array([40, 25, 10]), np.array([0.1, 0.4, 0.3])
    labelled = np.array([3, 2, 1])
    made = human.allotted(size, spread, labelled, 9) + labelled

    def variance(many: Any) -> float:
        return float(((size * spread) ** 2 / many).sum())

    every = [
        np.array([a, b, 15 - a - b]) for a in range(3, 14) for b in range(2, 14) if 15 - a - b >= 1
    ]
    assert made.sum() == 15
    assert variance(made) == pytest.approx(min(map(variance, every)))


def test_more_labels_halve_the_interval():
    """With the suggested number of additional labels, the interval is about half as wide."""
    table, truth = verdicts(40_000, 5)
    order = np.random.default_rng(6).permutation(40_000)
    f = table["verdict"].eq("yes").cast(float).to_numpy()

    def data(n: int) -> Labelled:
        place = np.sort(order[:n])
        return Labelled(f, place, truth[place].astype(float))

    few = data(400)
    more = human.more_labels(few)
    assert more is not None
    wide, narrow = (human.corrected(one, (0.0, 1.0)).se for one in (few, data(400 + more)))
    assert narrow / wide == pytest.approx(0.5, abs=0.06)
    assert human.more_labels(Labelled(f[:500], np.arange(450), truth[:450].astype(float))) is None


def test_intervals_of_verdicts_without_labels_have_a_note():
    assert "judge_not_checked" in codes(ee.score(TABLE, intervals=0.95))
    assert "judge_not_checked" not in codes(ee.score(TABLE, intervals=0.95, human=HUMAN))
    assert "judge_not_checked" not in codes(ee.score(TABLE))


def test_ratings_are_correlated():
    rng = np.random.default_rng(3)
    label = rng.integers(1, 6, 200)
    judge = np.clip(label + rng.integers(-1, 2, 200), 1, 5)
    table = pl.DataFrame({"datum_id": np.arange(200), "metric": "Coherence", "verdict": judge})
    card = ee.score(table, human=pl.DataFrame({"id": np.arange(0, 200, 2), "rating": label[::2]}))
    assert row(card, "correlation")["value"] == pytest.approx(
        np.corrcoef(judge[::2], label[::2])[0, 1]
    )
    assert "kappa" not in card.metrics["statistic"]
    assert row(card, "corrected")["lower"] > 1


def test_ratings_of_1_are_no_verdicts():
    """As verdicts they would have an interval below 1, outside the range of ratings."""
    judge = np.where(np.arange(200) % 9 == 0, 2, 1)
    table = pl.DataFrame({"datum_id": np.arange(200), "metric": "Coherence", "verdict": judge})
    card = ee.score(table, human=pl.DataFrame({"id": np.arange(60), "rating": 1}))
    result = row(card, "labels")
    assert (result["value"], result["lower"]) == (1, None)
    assert row(card, "correlation")["value"] is None
    assert "agreement" not in card.metrics["statistic"]


@pytest.mark.parametrize("wrong", [0, 1])
def test_labels_of_one_large_weight_are_few(wrong):
    """Kish's effective number of 60 labels, one with weight 500, is 1.25."""
    label = np.ones(60, int)
    label[1 : 1 + wrong] = 0
    weight = np.ones(60)
    weight[0] = 500
    labels = pl.DataFrame({"datum_id": CHOSEN[:60], "value": label, "label_weight": weight})
    result = row(ee.score(TABLE, human=labels), "labels")
    z, n, p = 1.96, 559**2 / (250_000 + 59), 1 - wrong / 559
    low = (p + z**2 / (2 * n) - z * math.sqrt(p * (1 - p) / n + (z / n / 2) ** 2)) / (1 + z**2 / n)
    assert result["lower"] == pytest.approx(low, abs=0.02)


def test_labels_of_few_clusters_are_few():
    """If all labels agree, their effective number is that of clusters."""
    label = np.ones(120)
    cluster = np.arange(120) // 10
    data = Labelled(label, np.arange(120), label, cluster=cluster, verdicts=True)
    t = t_quantile(0.975, 11)
    assert human.mean_of_labels(data, (0.0, 1.0)).lower == pytest.approx(1 / (1 + t**2 / 12))


def test_sensitivity_without_a_positive_label_is_named():
    card = ee.score(TABLE, human=HUMAN.with_columns(value=0))
    assert "no label is 1" in row(card, "rogan_gladen")["reason"]
    card = ee.score(TABLE, human=HUMAN.with_columns(value=1))
    assert "no label is 0" in row(card, "rogan_gladen")["reason"]


_ANNOTATED = pl.concat(
    [
        HUMAN.with_columns(annotator=pl.lit(name), label_weight=w)
        for name, w in (("x", 2.0), ("y", 3.0))
    ]
)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (HUMAN.with_columns(pl.col("datum_id").cast(pl.String)), "types_differ"),
        (pl.concat([HUMAN, HUMAN.head(1)]), "repeated_values"),
        (HUMAN.with_columns(label_weight=0.0), "option_value"),
        (_ANNOTATED, "option_value"),
        (_ANNOTATED.with_columns(verdict=pl.lit("yes")).drop("value"), "option_value"),
        (HUMAN.with_columns(value=float("inf")), "option_value"),
        (HUMAN.drop("value"), "column_missing"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels, code):
    with pytest.raises(ee.InputError) as caught:
        ee.score(TABLE, human=labels)
    assert caught.value.code == code


def test_runs_with_other_labels_are_compared():
    result = ee.compare(ee.score(TABLE, human=HUMAN), ee.score(TABLE)).differences
    assert result["metric"].to_list() == ["Bias"]
    assert result["difference"][0] == 0


@pytest.mark.parametrize("n", [6, 98, 300])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("judge", ["no", "same", "opposite"])
def test_agreements_without_a_standard_error_have_no_interval(n, clustered, judge):
    label = np.arange(n) % 2
    verdict = {"no": 0 * label, "same": label, "opposite": 1 - label}[judge]
    ids = np.arange(n)
    table = pl.DataFrame(
        {
            "datum_id": ids,
            "metric": "Faithfulness",
            "verdict": np.where(verdict == 1, "yes", "no"),
            "group": ids % max(n // 2, 1),
        }
    )
    labels = pl.DataFrame({"datum_id": ids, "value": label})
    card = ee.score(table, human=labels, cluster="group" if clustered else None)
    result = row(card, "kappa")
    assert result["lower"] is None
    assert result["upper"] is None
    assert result["reason"].startswith("no interval")
    assert judge != "no" or result["value"] == 0


def test_perfect_correlations_have_no_interval():
    values = np.arange(50) / 50
    data = Labelled(values, np.arange(50), values * 0.5)
    assert human.correlation(data).value == pytest.approx(1)
    assert math.isnan(human.correlation(data).lower)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rows_of_rogan_and_gladens_share_are_named(weighted):
    table, truth = verdicts()
    rows = np.arange(LABELS)
    more = {"label_weight": 1.0 + rows % 2} if weighted else {}
    card = ee.score(table, human=labels_of(truth, rows, **more))
    parameters = json.loads(row(card, "rogan_gladen")["parameters"])
    assert parameters["share_of"] == ("all rows" if weighted else "unlabelled rows")
    judge = card.per_datum.sort("datum_id")["value"].to_numpy()
    share = judge.mean() if weighted else judge[LABELS:].mean()
    rates = [row(card, name)["value"] for name in ("sensitivity", "specificity")]
    expected = (share + rates[1] - 1) / (sum(rates) - 1)
    assert row(card, "rogan_gladen")["value"] == pytest.approx(expected)


def test_labels_that_are_all_empty_are_a_note():
    table, truth = verdicts()
    labels = pl.DataFrame(
        {"datum_id": [0, 1], "value": [None, None]}, schema_overrides={"value": pl.Float64}
    )
    result = [(one.code, one.count) for one in ee.score(table, human=labels).findings]
    assert result == [("labels_empty", 2)]
    assert "labels_empty" not in codes(ee.score(table, human=labels_of(truth, range(50))))


def test_weights_of_verdicts_are_not_read():
    table, _ = verdicts()
    card = ee.score(table.with_columns(weight=pl.lit(2.0)))
    assert [one.code for one in card.findings] == ["unread_column"]
    assert card.value("Bias") == ee.score(table).value("Bias")


def test_extreme_weights_and_ids():
    datums = range(12)
    judged = {"datum_id": datums, "metric": ["Faithfulness"] * 12, "verdict": ["yes", "no"] * 6}
    human = {"datum_id": range(6), "value": [1, 0] * 3, "label_weight": [1e18, 1.0] * 3}
    assert ee.score(judged, human=human).value("Faithfulness") == 0.5
    ids = pl.Series("datum_id", [2**64 - 1, 1], dtype=pl.UInt64)
    with pytest.raises(ee.InputError, match="18446744073709551615"):
        ee.score(judged, human=pl.DataFrame([ids]).with_columns(value=1))
