"""A judge compared with human labels: agreement, corrected means, and the rows to label next."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import polars.selectors as cs

from .. import metrics
from ..evaluation.summary import Result
from ..ingest.infer import recognise
from ..ingest.problems import MANY, Note, count_of, listing, refuse
from ..ingest.sources.tables import open_source, schema_of
from ..ingest.training import digest_of
from ..schemas.arrays import Array
from ..schemas.contract import HUMAN
from ..schemas.errors import InputError
from ..schemas.option_values import LEVEL, TableObject, level_of
from ..schemas.options import Options
from ..schemas.results import Finding, frame_schema, in_schema
from ..schemas.tables import contracts
from ..schemas.wording import option
from ..tallies.draws import effective_number
from ..tasks.encoding import cluster_codes
from .intervals import Sample, effective_trials, normal_quantile, t_quantile, wilson

# Estimates from labelled rows. A labelled row i has a value f[i] of the judge, a label y[i] and a
# share p[i] of the weight of all labels. An interval rests on influence values, one per row, whose
# sums over clusters are independent; a row is a cluster unless clusters are given.

LEAST = 10
"""Labels that differ from the judge, and labels of either verdict, that an interval needs."""
_LARGE_DF = 10_000
_ROUNDING = 1e-24
"""Variance of an agreement, from -1 to 1, that is only rounding."""


def _dot(one: Array, other: Array) -> float:
    """Return the sum of products; BLAS would give other last digits on other processors."""
    return float((one * other).sum())


class Labelled(msgspec.Struct, frozen=True):
    """Values of a judge, and human labels of some of its rows.

    Attributes:
        judged: float64 [N], values of the judge.
        place: int64 [n], row of each label.
        label: float64 [n].
        weight: float64 [n], 1 / probability that the row was labelled; None if all are equal.
        cluster: int64 [N], code of each row's cluster; None if rows are independent.
        level: confidence of intervals.
        verdicts: whether labels are verdicts, 0 or 1.
        binary: whether the judge's values are verdicts, too.
    """

    judged: Array
    place: Array
    label: Array
    weight: Array | None = None
    cluster: Array | None = None
    level: float = LEVEL
    verdicts: bool = False
    binary: bool = False

    @property
    def share(self) -> Array:
        """Share of each label in the weight of all, float64 [n]."""
        n = self.place.size
        return np.full(n, 1 / n) if self.weight is None else self.weight / self.weight.sum()

    def mean(self, values: Array) -> float:
        """Return the weighted mean of values of labels, exact if all are equal."""
        return float(values[0] + _dot(self.share, values - values[0]))

    @property
    def own(self) -> Array:
        """Values of the judge in labelled rows, float64 [n]."""
        return self.judged[self.place]

    @property
    def plain(self) -> bool:
        """True if rows are independent and of equal weight."""
        return self.weight is None and self.cluster is None

    @property
    def shares_all(self) -> bool:
        """True if the judge's share for Rogan and Gladen includes labelled rows.

        Their variance needs a share that is independent of sensitivity and specificity, so only
        other rows count if labels are a random sample and do not cover all rows.
        """
        return self.weight is not None or self.place.size == self.judged.size

    @property
    def clusters(self) -> int:
        """Number of clusters with labels."""
        return self.place.size if self.cluster is None else np.unique(self.cluster[self.place]).size

    @property
    def few_clusters(self) -> str:
        """Why labels are of too few clusters for an interval; empty if they suffice."""
        if self.cluster is None or self.clusters >= LEAST:
            return ""
        return f"no interval: labels of {self.clusters} clusters, {LEAST} needed"

    def among(self, rows: Array) -> Labelled:
        """Return the part within some rows, bool [N]."""
        inside, code = rows[self.place], np.cumsum(rows) - 1
        return msgspec.structs.replace(
            self,
            judged=self.judged[rows],
            place=code[self.place[inside]],
            label=self.label[inside],
            weight=None if self.weight is None else self.weight[inside],
            cluster=None if self.cluster is None else self.cluster[rows],
        )

    def variance(self, influence: Array, rows: Array | None = None) -> tuple[float, int]:
        """Return the variance of a sum of influence values, and the number of clusters.

        Args:
            influence: float64, of all rows, or of ``rows``.
        """
        if self.cluster is not None:
            cluster = self.cluster if rows is None else self.cluster[rows]
            influence = np.bincount(np.unique(cluster, return_inverse=True)[1], influence)
        n = influence.size
        return (_dot(influence, influence) * n / (n - 1) if n > 1 else math.nan), n


class Number(NamedTuple):
    """An estimate with its interval; NaN if undefined.

    Attributes:
        n: labels that it rests on.
        reason: why number or interval are missing.
    """

    value: float
    lower: float = math.nan
    upper: float = math.nan
    se: float = math.nan
    n: int = 0
    reason: str = ""


def _around(
    data: Labelled,
    value: float,
    variance: float,
    within: tuple[float, float],
    clusters: int | None = None,
    *,
    least: float = 0.0,
) -> Number:
    """Return a number with an interval, if labels are of enough clusters and vary.

    Args:
        clusters: for Student's t; None for a normal interval.
        least: variance that is only rounding, if it is known.
    """
    n, p = data.place.size, (1 + data.level) / 2
    why = data.few_clusters
    if n < 2:
        why = f"no interval: {count_of(n, 'label')}"
    elif not variance > least:
        cause = "a standard error of 0" if least else f"{n:,} labels, all alike"
        why = f"no interval: {cause}"
    if why:
        return Number(value, n=n, reason=why)
    if clusters is None or clusters > _LARGE_DF:
        reach = normal_quantile(p)
    else:
        reach = t_quantile(p, max(clusters - 1, 1))
    reach *= math.sqrt(variance)
    low, high = max(value - reach, within[0]), min(value + reach, within[1])
    return Number(value, low, high, math.sqrt(variance), n)


def proportion(data: Labelled, hit: Array, chosen: Array) -> Number:
    """Return the share of hits among chosen labels, with Wilson's interval.

    With weights or clusters, n is the number of independent rows of the same variance, at most
    Kish's number of rows; if all labels are alike, Kish's number of clusters.

    Args:
        hit: bool [n].
        chosen: bool [n].
    """
    n = int(chosen.sum())
    if not n:
        return Number(math.nan, reason="no such label")
    weight = np.ones(n) if data.weight is None else data.weight[chosen]
    p = weight / weight.sum()
    value = _dot(weight, hit[chosen]) / float(weight.sum())
    if why := data.few_clusters:
        return Number(value, n=n, reason=why)
    trials = independent = effective_number(weight)
    if not data.plain:
        place = data.place[chosen]
        variance, clusters = data.variance(p * (hit[chosen] - value), place)
        fixed = trials
        if data.cluster is not None:
            of_cluster = np.bincount(np.unique(data.cluster[place], return_inverse=True)[1], p)
            fixed = effective_number(of_cluster)
        upper_level = (1 + data.level) / 2
        z, t = (
            normal_quantile(upper_level),
            t_quantile(upper_level, min(max(clusters - 1, 1), _LARGE_DF)),
        )
        independent = float(effective_trials(value, trials, variance, z, t, fixed))
        trials = independent * (t / z) ** 2
    if not trials > 0:  # one weight swamps the others
        return Number(value, n=n, reason="no interval: a few labels have all weight")
    none = np.zeros((0, 1))
    bounds = wilson(
        Sample(
            point=np.array([value]),
            level=data.level,
            range=(0.0, 1.0),
            drawn=none,
            left_out=none,
            trials=np.array([independent]),
            variance=np.full(1, np.nan),
        )
    )
    se = math.sqrt(max(value * (1 - value), 0.0) / trials)
    return Number(value, float(bounds.lower[0]), float(bounds.upper[0]), se, n)


def mean_of_labels(data: Labelled, within: tuple[float, float]) -> Number:
    """Return the mean of the labels: Wilson's interval of verdicts, Student's t of numbers."""
    y, p = data.label, data.share
    if data.verdicts:
        return proportion(data, y == 1, np.ones(y.size, bool))
    value = data.mean(y)
    variance, clusters = data.variance(p * (y - value), data.place)
    return _around(data, value, variance, within, clusters)


def kappa(data: Labelled) -> Number:
    """Return Cohen's kappa; its variance is that of Fleiss, Cohen and Everitt (1969).

    Source: J. Cohen, "A coefficient of agreement for nominal scales" (1960).
    """
    f, y, p = data.own, data.label, data.share
    kinds, code = np.unique(np.concatenate([f, y]), return_inverse=True)
    of_judge, of_label = np.split(code, 2)
    judge, label = (np.bincount(code, p, minlength=kinds.size) for code in (of_judge, of_label))
    same, chance = _dot(p, f == y), _dot(judge, label)
    if chance >= 1 - 1e-12:
        return Number(math.nan, n=y.size, reason="all verdicts and labels are equal")
    one_value = 1 in (np.unique(of_judge).size, np.unique(of_label).size)
    value = 0.0 if one_value else (same - chance) / (1 - chance)
    marginal = label[of_judge] + judge[of_label] - 2 * chance
    influence = p * (((f == y) - same) * (1 - chance) - (1 - same) * marginal) / (1 - chance) ** 2
    if data.plain:  # the published variance divides by n
        return _around(data, value, _dot(influence, influence), (-1.0, 1.0), least=_ROUNDING)
    variance, clusters = data.variance(influence, data.place)
    return _around(data, value, variance, (-1.0, 1.0), clusters, least=_ROUNDING)


def correlation(data: Labelled) -> Number:
    """Return Pearson's correlation of judge and labels, of values that are not verdicts."""
    f, y, p = data.own, data.label, data.share
    f, y = f - data.mean(f), y - data.mean(y)
    size = math.sqrt(_dot(p, f**2) * _dot(p, y**2))
    if size <= 0:
        return Number(math.nan, n=y.size, reason="the judge or the labels do not vary")
    value = _dot(p, f * y) / size
    one, two = f / math.sqrt(_dot(p, f**2)), y / math.sqrt(_dot(p, y**2))
    influence = p * (one * two - value / 2 * (one**2 + two**2))
    variance, clusters = data.variance(influence, data.place)
    return _around(data, value, variance, (-1.0, 1.0), clusters, least=_ROUNDING)


def too_few(data: Labelled) -> str:
    """Return why the labels are too few for a corrected interval; empty if they suffice."""
    wrong = int((data.own != data.label).sum())
    if why := data.few_clusters:
        return why
    if wrong < LEAST:
        return f"no interval: {count_of(wrong, 'label')} of {LEAST} needed differ from the judge"
    if data.binary:
        rarer = int(min((data.label == 0).sum(), (data.label == 1).sum()))
        if rarer < LEAST:
            return (
                f"no interval: {count_of(rarer, 'label')} of {LEAST} needed have the rarer verdict"
            )
    return ""


class Corrected(NamedTuple):
    """PPI++ estimate of the mean that people would give to all judged rows.

    Attributes:
        power: weight of the judge's values (lambda), 0 if they say nothing about labels.
        influence: float64 [N].
    """

    value: float
    power: float
    influence: Array


def ppi(data: Labelled) -> Corrected:
    """Correct the judge's mean by labels of some of its rows.

    Source: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++: Efficient prediction-powered
    inference" (2023). With weights, the same as a difference estimator over all rows.
    """
    f, place, y, p = data.judged, data.place, data.label, data.share
    rows, n = f.size, place.size
    others = rows - n
    judged, spread = f[place], float(f.var(ddof=1)) if rows > 1 else 0.0
    slope = 0.0
    if others and spread > 0:
        slope = _dot(p, (y - _dot(p, y)) * (judged - _dot(p, judged))) / spread
        slope = min(max(slope, 0.0), rows / others)
    power = slope * others / rows
    if data.weight is None:
        unlabelled = np.ones(rows, bool)
        unlabelled[place] = False
        mean = float(f[unlabelled].mean()) if others else 0.0
        gap = y - power * judged
        influence = np.where(unlabelled, power * (f - mean) / max(others, 1), 0.0)
        influence[place] = (gap - gap.mean()) / n
        return Corrected(float(gap.mean()) + power * mean, power, influence)
    gap = y - slope * judged
    influence = slope * (f - f.mean()) / rows
    influence[place] += p * (gap - _dot(p, gap))
    return Corrected(_dot(p, gap) + slope * float(f.mean()), power, influence)


def corrected(data: Labelled, within: tuple[float, float]) -> Number:
    """Return the PPI++ estimate with its interval, if there are enough labels."""
    estimate = ppi(data)
    variance, _ = data.variance(estimate.influence)
    if why := too_few(data):
        return Number(estimate.value, n=data.place.size, reason=why)
    clusters = data.clusters
    if data.binary:
        # The few labels that differ from the judge decide: Kish's number of squared influences.
        squares = estimate.influence**2
        clusters = min(
            clusters, int(float(squares.sum()) ** 2 / max(_dot(squares, squares), 1e-300))
        )
    return _around(data, estimate.value, variance, within, clusters)


def rogan_gladen(data: Labelled, sensitivity: Number, specificity: Number) -> Number:
    """Correct the judge's share of positive verdicts by its sensitivity and specificity.

    Source: W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test"
    (1978).
    """
    f, y, p, n = data.judged, data.label, data.share, data.place.size
    for one, verdict in ((sensitivity, 1), (specificity, 0)):
        if math.isnan(one.value):
            return Number(math.nan, n=n, reason=f"undefined: no label is {verdict}")
    youden = sensitivity.value + specificity.value - 1
    if youden <= 0:
        return Number(
            math.nan, n=n, reason="undefined: sensitivity and specificity are together 1 or less"
        )
    others = np.ones(f.size, bool)
    if not data.shares_all:
        others[data.place] = False
    share = float(f[others].mean())
    value = (share + specificity.value - 1) / youden
    influence = np.where(others, (f - share) / others.sum(), 0.0)
    positive = -value * (data.own - sensitivity.value) / p[y == 1].sum()
    negative = (1 - value) * (1 - data.own - specificity.value) / p[y == 0].sum()
    influence[data.place] += p * np.where(y == 1, positive, negative)
    influence /= youden
    value = min(max(value, 0.0), 1.0)
    if why := too_few(data):
        return Number(value, n=n, reason=why)
    if data.plain:  # the published formula is normal
        return _around(data, value, _dot(influence, influence), (0.0, 1.0))
    return _around(data, value, data.variance(influence)[0], (0.0, 1.0), data.clusters)


def alpha(unit: Array, value: Array) -> Number:
    """Return Krippendorff's alpha of several annotators, with differences of squared values.

    For verdicts it equals the nominal alpha.

    Source: K. Krippendorff, Content Analysis (2004), chapter 11.

    Args:
        unit: int64 [m], code of the labelled row.
        value: float64 [m], one annotator's label of it.
    """
    many = np.bincount(unit)
    paired = many[unit] > 1
    unit, value = unit[paired], value[paired]
    units, n = int((many > 1).sum()), value.size
    if not n:
        return Number(math.nan, reason="no row has two annotators")
    value = value - value.mean()
    total, squares = (np.bincount(unit, of, minlength=many.size) for of in (value, value**2))
    repeated = many > 1
    observed = 2 * (many * squares - total**2)[repeated] / (many[repeated] - 1)
    expected = 2 * (n * _dot(value, value) - float(value.sum()) ** 2) / (n - 1)
    if expected <= 0:
        return Number(math.nan, n=units, reason="all labels are equal")
    return Number(1 - float(observed.sum()) / expected, n=units)


def more_labels(data: Labelled) -> int | None:
    """Return how many more labels would halve the corrected interval; None if no number would.

    The part of the variance that comes from the judge's rows does not shrink by labels.
    """
    f, y, p = data.judged, data.label, data.share
    variance, _ = data.variance(ppi(data).influence)
    spread = float(f.var())
    slope = (
        _dot(p, (y - _dot(p, y)) * (data.own - _dot(p, data.own))) / spread if spread > 0 else 0.0
    )
    slope = min(max(slope, 0.0), 1.0)
    gap = y - slope * data.own
    of_labels, _ = data.variance(p * (gap - _dot(p, gap)), data.place)
    rest = variance / 4 - slope**2 * data.variance((f - f.mean()) / f.size)[0]
    if not (rest > 0 and of_labels > 0):
        return None
    needed = math.ceil(y.size * of_labels / rest)
    return needed - y.size if needed <= f.size else None


# Rows to label next: strata by the judge's value, more labels where they differ more from it.

STRATA = 5
_PULL = 10


def allotted(size: Array, spread: Array, labelled: Array, more: int) -> Array:
    """Return how many more rows of each stratum to label, int64.

    Source: T. Wright, "The equivalence of Neyman optimum allocation for sampling and equal
    proportions for apportioning the U.S. House of Representatives" (2012).

    Args:
        size: rows per stratum.
        spread: standard deviation of labels around the judge per stratum.
        labelled: labelled rows per stratum.
    """
    many = labelled.astype(np.int64)

    def gain(h: int) -> tuple[float, int]:
        k = int(many[h])
        gained = math.inf if k == 0 else (size[h] * spread[h]) ** 2 / (k * (k + 1))
        return -gained, h

    heap = [gain(h) for h in range(size.size) if many[h] < size[h]]
    heapq.heapify(heap)
    for _ in range(more):
        if not heap:
            break
        _, h = heapq.heappop(heap)
        many[h] += 1
        if many[h] < size[h]:
            heapq.heappush(heap, gain(h))
    return many - labelled


def _deviation_of(data: Labelled, stratum: Array) -> Array:
    """Standard deviation of label minus judge per stratum, pulled to that of all by some rows."""
    strata = int(stratum.max(initial=-1)) + 1
    if data.place.size < 2:
        return np.ones(strata)
    of, gap = stratum[data.place], data.label - data.own
    n = np.bincount(of, minlength=strata)
    mean = np.bincount(of, gap, minlength=strata) / np.maximum(n, 1)
    squares = np.bincount(of, (gap - mean[of]) ** 2, minlength=strata)
    return np.sqrt((squares + _PULL * max(float(gap.var()), 1e-12)) / (n + _PULL))


def to_label(data: Labelled, ids: pl.Series, more: int, seed: int) -> pl.DataFrame | None:
    """Return rows to label next, and labelled ones, with weights for both together.

    Labels so far count as a random sample within each stratum.

    Args:
        ids: of the judge's rows.

    Returns:
        datum_id, value, judge, stratum, probability, label_weight; rows without a value first.
        None if earlier labels have weights that differ within a stratum.
    """
    values, stratum = np.unique(data.judged, return_inverse=True)
    if values.size > STRATA:  # fifths of the rows by value
        edges = np.unique(np.quantile(data.judged, np.arange(1, STRATA) / STRATA))
        stratum = np.searchsorted(edges, data.judged, side="left")
    size = np.bincount(stratum)
    n = np.bincount(stratum[data.place], minlength=size.size)
    if data.weight is not None:
        for h in range(size.size):
            weights = data.weight[stratum[data.place] == h]
            if weights.size and np.ptp(weights) > 1e-6 * weights.max():
                return None
    extra = allotted(size, _deviation_of(data, stratum), n, more)
    free = np.ones(data.judged.size, bool)
    free[data.place] = False
    order = ids.arg_sort().to_numpy()  # the order of the tables does not matter
    order = order[np.random.default_rng(seed).permutation(order.size)]
    order = order[free[order]]
    chosen = np.concatenate(
        [order[stratum[order] == h][: extra[h]] for h in range(size.size)] + [data.place]
    )
    value = np.concatenate([np.full(int(extra.sum()), np.nan), data.label])
    probability = ((n + extra) / size)[stratum[chosen]]
    return pl.DataFrame(
        {
            "datum_id": ids.gather(chosen),
            "value": pl.Series(value, nan_to_null=True),
            "judge": data.judged[chosen],
            "stratum": stratum[chosen] + 1,
            "probability": probability,
            "label_weight": 1 / probability,
        }
    )


# The option ``human``: a table of labels, checked, one label per datum and metric.

SCORED = "scored"
Verdicts = Callable[[pl.DataFrame], tuple[pl.DataFrame, Sequence[Finding]]]
"""From a table of verdicts to the per-datum frame that the task makes of it, and findings."""
_KEY = ("datum_id", "metric", "annotator")


def read_labels(
    options: Options, task: str, run: Sequence[str], ids: pl.DataType, score: Verdicts
) -> tuple[pl.DataFrame, list[Note]]:
    """Return human labels of a run's metrics.

    Args:
        run: metrics of the run.
        ids: dtype of its datum ids.
        score: for tables with a column ``verdict`` instead of ``value``.

    Returns:
        datum_id, metric, annotator (null if the table has none), value and label_weight (null).

    Raises:
        InputError: columns, ids, values or weights that cannot be used, or a label in two rows.
    """
    human = options.human
    thing = human.table if isinstance(human, TableObject) else human
    source = open_source(list(thing) if isinstance(thing, tuple) else thing)
    before = f"human ({source.description})"
    schema = {
        name: pl.Float64() if dtype == pl.Boolean else dtype
        for name, dtype in schema_of(source).items()
    }
    naming = recognise(schema, contracts(task)[HUMAN], options.columns)
    refuse(naming.problems, {HUMAN: source.description})
    raw = source.frame.with_columns(cs.boolean().cast(pl.Float64)).collect()
    rows = raw.select(list(naming.exprs.values()))
    if isinstance(human, TableObject):
        human.digest = digest_of(rows)
    if (rows.schema["datum_id"] == pl.String) != (ids == pl.String):
        raise InputError(
            f"{before}: its datum ids are {rows.schema['datum_id']}, those of the run {ids}. Cast"
            " one of them.",
            code="types_differ",
            table="human",
            column="datum_id",
        )
    if "metric" not in rows.columns:
        if len(run) > 1:
            raise InputError(
                f"{before}: no column metric, and the run has {listing(run)}. Add the column, or"
                f" score one of them: {option('metrics', [run[0]])}.",
                code="column_missing",
                table="human",
                column="metric",
            )
        rows = rows.with_columns(metric=pl.lit(run[0] if run else None, pl.String))
    names = {
        name: metrics.get(task, name).name if metrics.has(task, name) else None
        for name in rows["metric"].unique().drop_nulls().to_list()
    }
    rows = rows.with_columns(pl.col("metric").replace_strict(names, default=None))
    missing = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in (("annotator", pl.String), ("label_weight", pl.Float64))
        if name not in rows.columns
    ]
    rows = rows.with_columns(missing)
    relevant = rows.filter(pl.col("metric").is_in(list(run)))
    weights = pl.col("label_weight").n_unique().over("datum_id", "metric")
    what = "label_weight that differs from others of the same datum"
    _refuse_rows(relevant, weights > 1, before, "label_weight", f"a {what}.")
    notes: list[Note] = []
    if "value" not in rows.columns:
        has_metric = rows["metric"].is_not_null()
        plain = raw.drop(naming.recognised, strict=False)
        rows, notes = _scored(plain.filter(has_metric), rows.filter(has_metric), score)
    rows = rows.select(*_KEY, "value", "label_weight")
    if other := rows.filter(~pl.col("metric").is_in(list(run)).fill_null(value=False)).height:
        message = f"human: {count_of(other, 'label')} of metrics that this run does not have."
        notes.append(Note("labels_of_other_metrics", message, other))
    given = rows.height - other
    rows = rows.filter(pl.col("metric").is_in(list(run)), pl.col("value").is_not_null())
    if not rows.height and not other:
        message = f"human: 0 of {count_of(given, 'row')} have a label; labels are in 'value'."
        notes.append(Note("labels_empty", message, given))
    weight = pl.col("label_weight")
    _refuse_rows(rows, ~pl.col("value").is_finite(), before, "value", "a value that is not finite.")
    for name in run:
        low, high = metrics.get(task, name).range
        beyond = (pl.col("metric") == name) & ~pl.col("value").is_between(low, high)
        what = f"a value of {name} that is not between {low:g} and {high:g}."
        _refuse_rows(rows, beyond, before, "value", what)
    if rows["label_weight"].null_count() < rows.height:
        wrong = weight.is_null() | ~((weight > 0) & weight.is_finite())
        what = "no weight, or one that is not a finite number above 0."
        _refuse_rows(rows, wrong, before, "label_weight", what)
    twice = pl.struct(_KEY).is_duplicated()
    hint = " Several annotators of a row are distinguished by a column annotator."
    _refuse_rows(rows, twice, before, "datum_id", f"a second label of the same datum.{hint}")
    cast = pl.col("datum_id").cast(ids, strict=False)
    _refuse_rows(
        rows, cast.is_null(), before, "datum_id", f"an id that is no {ids}, as others are."
    )
    return rows.with_columns(cast), notes


def _scored(
    raw: pl.DataFrame, rows: pl.DataFrame, score: Verdicts
) -> tuple[pl.DataFrame, list[Note]]:
    """Return the values of tables of verdicts, which the task computes per annotator."""
    verdicts = raw.with_columns(rows.select("datum_id", "metric", "annotator", "verdict"))
    parts, notes = [], []
    for (annotator,), group in verdicts.partition_by(
        "annotator", as_dict=True, maintain_order=True
    ).items():
        values, raised = score(group.drop("annotator"))
        parts.append(values.with_columns(annotator=pl.lit(annotator, pl.String)))
        notes += [
            Note(one.code, f"human: {one.message}", one.count, warning=one.severity == "warning")
            for one in raised
        ]
    weights = rows.group_by("datum_id", "metric").agg(pl.col("label_weight").first())
    values = pl.concat(parts).select(*_KEY, "value")
    on = ["datum_id", "metric"]
    return values.join(weights, on=on, how="left", maintain_order="left"), notes


def _refuse_rows(rows: pl.DataFrame, wrong: pl.Expr, before: str, column: str, what: str) -> None:
    bad = rows.filter(wrong)
    if bad.height:
        raise InputError(
            f"{before}: {count_of(bad.height, 'row')} with {what} First datums:"
            f" {listing(bad['datum_id'].head(3).to_list())}.",
            code="repeated_values" if column == "datum_id" else "option_value",
            table="human",
            column=column,
            count=bad.height,
        )


def one_label(rows: pl.DataFrame, binary: bool) -> pl.DataFrame:
    """Reduce several annotators to one label per datum: the mean, or of verdicts the majority.

    Null in a tie, which has no majority.
    """
    value = pl.col("value")
    if binary:
        twice = (value * 2).sum() - pl.len()
        value = pl.when(twice != 0).then((twice > 0).cast(pl.Float64))
    else:
        value = value.mean()
    return rows.group_by("datum_id", maintain_order=True).agg(
        value.alias("value"), pl.col("label_weight").first()
    )


# Numbers, notes and rows to label of a run.

_LISTED = 100
_GUESSING = 30  # labels from which a judge without information is a warning
_SURE = 3.0
"""Standard errors that labelled and other rows may differ by."""


def add_human(result: Result, options: Options, score: Verdicts) -> None:
    """Add to a run: numbers against human labels, notes, and rows to label next."""
    frames = result.frames
    values = frames["per_datum"]()
    frames["per_datum"] = values.clone
    values = values.sort("metric", "datum_id")  # sums do not depend on the order of the tables
    run = [metric.name for metric in result.plan.metrics]
    ids = values.schema["datum_id"]
    labels = None
    if options.human is not None:
        labels, notes = read_labels(options, result.plan.task, run, ids, score)
        result.notes = [*result.notes, *notes]
        if columns := dict.fromkeys(options.columns_of_datums):
            values = values.join(_columns(result, columns), on="datum_id", how="left")
    level = level_of(options)
    n_next = options.label_next if options.label_next is not None else _LISTED
    added, listed = [], []
    for name in run:
        chosen = values.filter(pl.col("metric") == name)
        scored = chosen.filter(pl.col("value").is_not_null())
        empty = np.zeros(0, np.int64)
        data = Labelled(scored["value"].to_numpy(), empty, np.zeros(0), level=level)
        if labels is not None:
            mine = labels.filter(pl.col("metric") == name)
            if not mine.height:
                continue
            if options.cluster is not None:
                codes = cluster_codes(scored, options.cluster)
                data = msgspec.structs.replace(data, cluster=codes)
            ranged = metrics.get(result.plan.task, name).range == (0.0, 1.0)
            data, notes = _joined(data, scored["datum_id"], chosen["datum_id"], mine, name, ranged)
            result.notes += notes
            if data.place.size:
                rows = _rows(result, name, data, mine)
                for column in dict.fromkeys(options.by):
                    for group in scored[column].drop_nulls().unique().sort():
                        part = data.among((scored[column] == group).fill_null(False).to_numpy())
                        if part.place.size:
                            at = {"slice": column, "slice_value": group}
                            rows += [{**row, **at} for row in _rows(result, name, part, None)]
                added += rows
                result.notes += _notes(name, data, rows)
        sample = to_label(data, scored["datum_id"], n_next, options.seed or 0)
        if sample is None:
            message = (
                f"{name}: no rows to label next, since weights of labels differ among rows of"
                " similar verdicts."
            )
            result.notes.append(Note("no_rows_to_label", message))
        else:
            listed.append(sample.with_columns(metric=pl.lit(name)))
    if added:
        table = frames["metrics"]()
        new = pl.DataFrame(added, schema_overrides=table.schema, infer_schema_length=None)
        combined = pl.concat([table, in_schema(new, table.schema)])
        frames["metrics"] = combined.clone
    schema = frame_schema("to_label", datum=ids)
    rows_next = in_schema(pl.concat(listed), schema) if listed else pl.DataFrame(schema=schema)
    frames["to_label"] = rows_next.clone


def _columns(result: Result, columns: Iterable[str]) -> pl.DataFrame:
    """Return slice columns and the cluster of every datum, as text."""
    if result.datums is not None:
        return result.datums.select("datum_id", *columns)
    assert result.tallied is not None
    datums = result.tallied.tallies.datums
    slices = [datums.slices[name].cast(pl.String).alias(name) for name in columns]
    return pl.DataFrame([datums.id.alias("datum_id"), *slices])


def _rows(
    result: Result, name: str, data: Labelled, mine: pl.DataFrame | None
) -> list[dict[str, Any]]:
    """Return rows of the metrics frame.

    Args:
        mine: labels of all annotators; None to skip their agreement.
    """
    metric = metrics.get(result.plan.task, name)
    every = np.ones(data.place.size, bool)
    numbers: dict[str, Number] = {}
    if mine is not None and mine.select(pl.struct("datum_id").is_duplicated().any()).item():
        unit = mine["datum_id"].rank("dense").to_numpy().astype(np.int64) - 1
        numbers["alpha"] = alpha(unit, mine["value"].to_numpy())
    if data.binary:
        numbers["agreement"] = proportion(data, data.own == data.label, every)
        numbers["kappa"] = kappa(data)
        numbers["sensitivity"] = proportion(data, data.own == 1, data.label == 1)
        numbers["specificity"] = proportion(data, data.own == 0, data.label == 0)
    else:
        numbers["correlation"] = correlation(data)
    numbers["labels"] = mean_of_labels(data, metric.range)
    numbers["corrected"] = corrected(data, metric.range)
    if data.binary:
        rates = numbers["sensitivity"], numbers["specificity"]
        numbers["rogan_gladen"] = rogan_gladen(data, *rates)
    better = result.plan.dialect.better.get(name, metric.better)
    share_of = "all rows" if data.shares_all else "unlabelled rows"
    return [
        {
            "metric": name,
            "statistic": statistic,
            **{key: _null(getattr(one, key)) for key in ("value", "lower", "upper", "se")},
            "support": one.n,
            "scored": one.n,
            "reason": one.reason or None,
            "parameters": json.dumps(
                {"better": better if statistic in _MEANS else "higher"}
                | ({"share_of": share_of} if statistic == "rogan_gladen" else {})
            ),
        }
        for statistic, one in numbers.items()
    ]


_MEANS = ("labels", "corrected", "rogan_gladen")


def _null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _notes(name: str, data: Labelled, rows: Sequence[Mapping[str, Any]]) -> list[Note]:
    """Return notes on a metric's labels: what they say of the judge, and of themselves."""
    stats = {row["statistic"]: row for row in reversed(rows)}
    n, others = data.place.size, data.judged.size - data.place.size
    judge, power = float(data.judged.mean()), ppi(data).power
    best = stats["corrected"] if stats["corrected"]["lower"] is not None else stats["labels"]
    by = "corrected by" if best is stats["corrected"] else "by only the"
    message = f"{name}: {judge:.4g} by the judge, {best['value']:.4g} {by} {count_of(n, 'label')}"
    if best["lower"] is not None:
        message += f" ({best['lower']:.4g} to {best['upper']:.4g})"
        if not best["lower"] <= judge <= best["upper"]:
            message += "; do not report the judge's number"
    message += "."
    facts: dict[str, Any] = {"metric": name, "others": others, "lambda": power}
    n_labels = more_labels(data) if best is stats["corrected"] else None
    if n_labels is not None:
        message += f" About {n_labels:,} more labels would halve the interval."
        facts["more"] = n_labels
    notes = [Note("human_labels", message, n, facts=facts)]
    unlabelled = np.ones(data.judged.size, bool)
    unlabelled[data.place] = False
    share, own = data.share, data.own
    if n > 1 and others > 1:
        mean = _dot(share, own)
        variance, _ = data.variance(share * (own - mean), data.place)
        if data.weight is None:
            others_of = data.judged[unlabelled]
            gap = mean - float(others_of.mean())
            variance += data.variance(
                (others_of - others_of.mean()) / others, np.flatnonzero(unlabelled)
            )[0]
        else:
            gap = mean - judge
        if abs(gap) > max(_SURE * math.sqrt(variance), 1e-12):
            message = (
                f"{name}: labelled rows are no random sample: the judge gives them"
                f" {mean:.4g} on average, and {mean - gap:.4g} to the others. Corrected numbers"
                " would be wrong. Label rows chosen at random, or give column label_weight (1 /"
                " probability that the row was chosen)."
            )
            facts = {"metric": name, "labelled": mean, "others": mean - gap}
            notes.append(Note("labels_not_random", message, n, warning=True, facts=facts))
    useless = stats["kappa" if data.binary else "correlation"]["value"]
    if n >= _GUESSING and useless is not None and useless <= 0:
        message = (
            f"{name}: the judge agrees with people no more than chance would. Do not use its"
            " verdicts."
        )
        notes.append(Note("judge_by_chance", message, n, warning=True, facts={"metric": name}))
    return notes


def _joined(
    data: Labelled, ids: pl.Series, judged: pl.Series, mine: pl.DataFrame, name: str, ranged: bool
) -> tuple[Labelled, list[Note]]:
    """Attach labels to the judge's rows; labels on other rows are reported.

    Args:
        ranged: whether the metric is from 0 to 1, so that verdicts are possible.
    """
    binary = ranged and bool(
        np.isin(data.judged, (0, 1)).all() and mine["value"].is_in([0.0, 1.0]).all()
    )
    one = one_label(mine, binary)
    notes = []
    if tied := one["value"].null_count():
        message = (
            f"{name}: {count_of(tied, 'row')} of {one.height:,} without a label, since as many"
            " annotators say 1 as 0. Let one more person decide."
        )
        many = tied > MANY * one.height
        notes.append(Note("labels_tied", message, tied, warning=many, facts={"metric": name}))
        one = one.drop_nulls("value")
    places = pl.DataFrame({"datum_id": ids, "place": np.arange(len(ids), dtype=np.int64)})
    joined = one.join(places, on="datum_id", how="left", maintain_order="left")
    lost = joined.filter(pl.col("place").is_null())["datum_id"]
    if len(lost):
        unscored = int(lost.is_in(judged.implode()).sum())
        failed = f", {unscored:,} of them without a score of the judge" if unscored else ""
        message = (
            f"{name}: {count_of(len(lost), 'label')} of rows that were not judged{failed}; they are"
            f" not used: {listing(lost.head(3).to_list(), len(lost))}."
        )
        facts = {"metric": name, "without_score": unscored}
        many = len(lost) > one.height / 2
        notes.append(Note("labels_unjudged", message, len(lost), warning=many, facts=facts))
    joined = joined.drop_nulls("place").sort("place")
    weight = joined["label_weight"].to_numpy() if joined["label_weight"].count() else None
    if weight is not None and np.ptp(weight) <= 1e-9 * weight.max(initial=0):
        weight = None
    place = joined["place"].to_numpy()
    label = joined["value"].to_numpy()
    verdicts = ranged and bool(np.isin(label, (0, 1)).all())
    data = msgspec.structs.replace(data, place=place, label=label, weight=weight)
    return msgspec.structs.replace(data, verdicts=verdicts, binary=binary), notes
