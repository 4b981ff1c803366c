"""``evaluate``, ``compare`` and ``fuse``, as in ranx."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...api import score
from ...comparing import compare as compare_cards
from ...fusion.fuse import METHODS
from ...fusion.fuse import fuse as fuse_runs
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, unknown
from ...scorecard.card import Scorecard
from ...statistics.tests import paired_t
from .results import Asked, Nested, Qrels, Run, grouped, label, only_here, translate_metric

# ``evaluate``: numbers of a run, by query and on average.


class Evaluated(NamedTuple):
    """Numbers of a run.

    Attributes:
        values: metric as the caller wrote it -> float64 [q], by ascending query id.
        cards: scorecards, with the metrics of each.
    """

    values: dict[str, Array]
    cards: list[tuple[Scorecard, list[Asked]]]


def evaluate(
    qrels: Qrels | Nested,
    run: Run | Nested,
    metrics: Sequence[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Evaluate a run.

    Args:
        qrels: the judgments.
        run: the run, over the same queries.
        metrics: one or several of ranx's: hits, hit_rate, precision, recall, f1, r-precision, mrr,
            map, dcg, dcg_burges, ndcg, ndcg_burges, bpref, rbp.95; with ``@10`` for a cut-off and
            ``-l2`` for the lowest relevance that counts.
        return_mean: return means over queries; otherwise an array by ascending query id.
        return_std: return dicts of ``mean`` and ``std``, over n.
        threads: number of threads; 0 for all.
        save_results_in_run: store the numbers in ``scores``, ``mean_scores`` and ``std_scores``.
        make_comparable: remove unjudged queries from the run and add missing ones; a :class:`Run`
            is modified in place.

    Returns:
        a dict by metric; for a single metric only its number.

    Raises:
        InputError: the run and the judgments have different queries, or scores that are not
            numbers.
        OptionError: no such metric.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    judged, ranked_run = as_qrels(qrels), as_run(run)
    scores = numbers_of(judged, [ranked_run], names, threads, make_comparable)[0].values
    if isinstance(run, Run) and save_results_in_run:
        queries = judged.get_query_ids()
        for name, values in scores.items():
            run.mean_scores[name] = float(values.mean())
            if return_std and return_mean:
                run.std_scores[name] = float(values.std())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    shown: dict[str, Any] = dict(scores)
    if return_mean:
        shown = {name: float(values.mean()) for name, values in scores.items()}
        if return_std:
            shown = {
                name: {"mean": mean, "std": float(scores[name].std())}
                for name, mean in shown.items()
            }
    return shown[names[0]] if len(names) == 1 else shown


def numbers_of(
    qrels: Qrels, runs: Sequence[Run], names: Sequence[str], threads: int, comparable: bool
) -> list[Evaluated]:
    """Compute the numbers that :func:`evaluate` and :func:`compare` show, per run.

    Raises:
        InputError: as in :func:`evaluate`.
        OptionError: as in :func:`evaluate`.
    """
    queries = qrels.get_query_ids()
    if not queries:
        raise InputError("qrels: there is no query.", code="empty")
    for i, run in enumerate(runs):
        if comparable:
            run.make_comparable(qrels)
        else:
            _refuse_others(queries, run, run.name or f"run {i + 1}")
    relevance = qrels.rows["score"].unique().sort().to_numpy()
    lengths = [run.rows.group_by("query_id").len()["len"].to_numpy() for run in runs]
    longest = max(int(some.max(initial=0)) for some in lengths)
    wanted = [translate_metric(name, relevance, longest) for name in dict.fromkeys(names)]
    return [_evaluated(qrels, run, wanted, queries, threads) for run in runs]


def _evaluated(
    qrels: Qrels, run: Run, wanted: Sequence[Asked], queries: list[Any], threads: int
) -> Evaluated:
    judged = qrels.rows.rename({"score": "relevance"})
    values: dict[str, Array] = {}
    cards = []
    for options, members in grouped(wanted):
        card = score(
            run.rows,
            judged,
            task="retrieval",
            metrics=[one.written for one in members],
            ties="input",
            complete=True,
            threads=threads or None,
            **options,
        )
        cards.append((card, members))
        rows = card.frame("per_datum").select("datum_id", "metric", "k", "value")
        for one in members:
            values[one.name] = _by_query(rows, one, queries)
    return Evaluated({one.name: values[one.name] for one in wanted}, cards)


def _by_query(rows: pl.DataFrame, one: Asked, queries: list[Any]) -> Array:
    """A metric's values by query; 0 of those without any judgment."""
    metric_rows = rows.filter((pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k))
    order = pl.DataFrame({"datum_id": pl.Series(queries, dtype=metric_rows["datum_id"].dtype)})
    ordered = order.join(metric_rows, on="datum_id", how="left", maintain_order="left")["value"]
    values: Array = ordered.fill_null(0.0).to_numpy()
    return np.rint(values * one.times) if one.times != 1 else values.copy()


def _refuse_others(queries: list[Any], run: Run, name: str) -> None:
    mine = run.get_query_ids()
    lacking, unjudged = only_here(queries, mine), only_here(mine, queries)
    if lacking or unjudged:
        differences = [
            f"{what}, first {', '.join(map(repr, some))}"
            for what, some in (("misses judged queries", lacking), ("has unjudged ones", unjudged))
            if some
        ]
        raise InputError(
            f"{name} {' and '.join(differences)}. Pass make_comparable=True to skip unjudged"
            " queries and to count missing ones as empty.",
            code="queries_differ",
        )


def as_qrels(qrels: Any) -> Qrels:
    """Convert nested dicts to :class:`Qrels`."""
    return qrels if isinstance(qrels, Qrels) else Qrels(_nested("qrels", qrels))


def as_run(run: Any) -> Run:
    """Convert nested dicts to a :class:`Run`."""
    return run if isinstance(run, Run) else Run(_nested("run", run))


def _nested(side: str, value: Any) -> Any:
    if not hasattr(value, "items"):
        raise InputError(
            f"{side}: give a dict of dicts or a {side.capitalize()}.", code="wrong_type", side=side
        )
    return value


# Result of ``compare``: means of runs, p-values of pairs, as text, LaTeX or a dict.

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"
_TESTS = {"student": "paired Student's t test", "fisher": "Fisher's randomisation test"}
_LATEX = r"""% \usepackage{{booktabs}}
\begin{{table}}[ht]
\centering
\caption{{Means over queries, the best of each column in bold. Superscripts name the runs that a run
is better than by a significant difference ({test}, $p \le {max_p}$).}}
\label{{tab:results}}
\begin{{tabular}}{{ll{columns}}}
\toprule
\textbf{{\#}} & \textbf{{Model}} & {heads} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
\end{{table}}"""


class OfPairs(dict[Any, Any]):
    """Something of two runs, in either order."""

    def __getitem__(self, pair: Iterable[str]) -> Any:
        return super().__getitem__(frozenset(pair))

    def __setitem__(self, pair: Iterable[str], value: Any) -> None:
        super().__setitem__(frozenset(pair), value)


class Report:
    """Result of :func:`compare`.

    Attributes:
        model_names: names of the runs.
        results: name -> metric -> mean.
        comparisons: two names, in either order -> metric -> ``p_value`` and ``significant``.
        metrics: as requested.
        max_p: highest significant p.
        win_tie_loss: (one name, other name) -> metric -> number of queries on which the first is
            better (W), equal (T) and worse (L).
        rounding_digits: displayed digits.
        show_percentages: whether percentages are shown.
        stat_test: source of p.
    """

    def __init__(
        self,
        model_names: list[str],
        results: dict[str, dict[str, float]],
        comparisons: Any,
        metrics: list[str],
        max_p: float,
        win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]],
        rounding_digits: int = 3,
        show_percentages: bool = False,
        stat_test: str = "student",
    ) -> None:
        if len(model_names) > len(_LETTERS):
            raise InputError(
                f"a report has letters for {len(_LETTERS)} runs; there are {len(model_names)}."
            )
        self.model_names, self.results, self.comparisons = model_names, results, comparisons
        self.metrics, self.max_p, self.win_tie_loss = metrics, max_p, win_tie_loss
        self.rounding_digits, self.show_percentages = rounding_digits, show_percentages
        self.stat_test = stat_test

    def _shown(self, value: float) -> str:
        digits = self.rounding_digits
        if self.show_percentages:
            return f"{round(value * 100, max(0, digits - 2)):.{max(0, digits - 2)}f}"
        return f"{round(value, digits):.{digits}f}"

    def _beaten(self, model: str, metric: str) -> list[int]:
        """Places of the runs that a run is significantly better than."""
        return [
            i
            for i, other in enumerate(self.model_names)
            if other != model
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
        ]

    def to_table(self) -> str:
        """The report as text, a letter above a number for each run that is beaten."""
        columns = [["#", *_LETTERS[: len(self.model_names)]], ["Model", *self.model_names]]
        for metric in self.metrics:
            cells = [
                self._shown(self.results[model][metric])
                + "".join(_RAISED[i] for i in self._beaten(model, metric))
                for model in self.model_names
            ]
            columns.append([label(metric), *cells])
        aligned = [_aligned(column) for column in columns]
        rows = zip(*aligned, strict=True)
        return "\n".join("  ".join(row).rstrip() for row in rows)

    def to_latex(self) -> str:
        """The report as a table of LaTeX, with booktabs."""
        rows = []
        best = {
            metric: max(round(one[metric], self.rounding_digits) for one in self.results.values())
            for metric in self.metrics
        }
        for letter, model in zip(_LETTERS, self.model_names, strict=False):
            cells = [letter, model.replace("_", r"\_")]
            for metric in self.metrics:
                value = self.results[model][metric]
                shown = self._shown(value).replace("%", r"\%")
                if round(value, self.rounding_digits) == best[metric]:
                    shown = rf"\textbf{{{shown}}}"
                above = "".join(_LETTERS[i] for i in self._beaten(model, metric))
                cells.append(f"{shown}$^{{{above}}}$" if above else shown)
            rows.append(" & ".join(cells) + r" \\")
        heads = " & ".join(rf"\textbf{{{label(metric)}}}" for metric in self.metrics)
        return _LATEX.format(
            test=_TESTS[self.stat_test],
            max_p=self.max_p,
            columns="c" * len(self.metrics),
            heads=heads,
            rows="\n".join(rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """``stat_test``, ``metrics``, ``model_names``, and of each run ``scores``, ``comparisons``
        (other run -> metric -> p) and ``win_tie_loss`` (other run -> metric -> W, T, L)."""
        result: dict[str, Any] = {
            "stat_test": self.stat_test,
            "metrics": self.metrics,
            "model_names": self.model_names,
        }
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            result[model] = {
                "scores": self.results[model],
                "comparisons": {other: self._p_values(model, other) for other in others},
                "win_tie_loss": {other: self.win_tie_loss[model, other] for other in others},
            }
        return result

    def _p_values(self, model: str, other: str) -> dict[str, float]:
        tested: Mapping[str, Any] = self.comparisons[model, other]
        return {metric: tested[metric]["p_value"] for metric in self.metrics}

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: ``model_names``, and a column of means a metric."""
        rows = [{"model_names": model, **self.results[model]} for model in self.model_names]
        return import_module("pandas").DataFrame(rows)

    def save(self, path: str) -> None:
        """Write :meth:`to_dict` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=4), "utf-8")

    def print_results(self) -> None:
        """Print the means as JSON."""
        print(json.dumps(self.results, indent=4))

    def __repr__(self) -> str:
        return self.to_table()


def _aligned(column: list[str]) -> list[str]:
    """A heading, a rule and cells of one width; numbers at their points, without zeros behind."""
    head, cells = column[0], column[1:]
    numbers = all(map(_is_number, cells))
    if numbers and any("." in cell for cell in cells):
        cells = [f"{float(cell):g}" for cell in cells]
        behind = [len(cell) - len(re.split("[.e]", cell)[0]) for cell in cells]
        cells = [
            cell + " " * (max(behind) - length) for cell, length in zip(cells, behind, strict=True)
        ]
    width = max(len(head) + 2, *map(len, cells))
    if numbers:
        return [head.rjust(width), "-" * width, *(cell.rjust(width) for cell in cells)]
    return [head.ljust(width), "-" * width, *(cell.ljust(width) for cell in cells)]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


# ``compare``: several runs, and which of their differences are significant.


def compare(
    qrels: Qrels | Nested,
    runs: Sequence[Run],
    metrics: Sequence[str] | str,
    stat_test: str = "student",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
    threads: int = 0,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    make_comparable: bool = False,
) -> Report:
    """Evaluate runs and test the differences of every pair.

    Args:
        qrels: the judgments.
        runs: two or more, over the same queries, with distinct names.
        metrics: see :func:`evaluate`.
        stat_test: student (paired t) or fisher (randomisation).
        n_permutations: for fisher.
        max_p: highest significant p.
        random_seed: for fisher.
        threads: number of threads; 0 for all.
        rounding_digits: digits in the report.
        show_percentages: whether the report shows percentages.
        make_comparable: see :func:`evaluate`.

    Raises:
        InputError: different queries, or two runs of one name.
        OptionError: no such metric or test.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if stat_test not in _PAIRED:
        raise OptionError(
            f"stat_test={stat_test!r}: there are {' and '.join(_PAIRED)}, pair by pair; p-values of"
            " many pairs are adjusted by evalengine.compare(adjust='holm').",
            code="unknown_name",
            value=stat_test,
        )
    opened_runs = [as_run(run) for run in runs]
    models = [run.name or f"run_{i}" for i, run in enumerate(opened_runs, 1)]
    if len(set(models)) < len(models):
        twice = next(name for name in models if models.count(name) > 1)
        raise InputError(
            f"two runs are named {twice!r}: give each a different name.",
            code="repeated_names",
            value=twice,
        )
    evaluations = numbers_of(as_qrels(qrels), opened_runs, names, threads, make_comparable)
    for run, one in zip(opened_runs, evaluations, strict=True):
        queries = run.get_query_ids()
        for name, values in one.values.items():
            run.mean_scores[name] = float(values.mean())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    evaluated = dict(zip(models, evaluations, strict=True))
    p_values = _PAIRED[stat_test](evaluated, names, n_permutations, random_seed)
    comparisons = OfPairs()
    for pair, by_metric in p_values.items():
        comparisons[pair] = {
            name: {"p_value": p, "significant": p <= max_p} for name, p in by_metric.items()
        }
    return Report(
        model_names=models,
        results={
            model: {name: float(one.values[name].mean()) for name in names}
            for model, one in evaluated.items()
        },
        comparisons=comparisons,
        metrics=names,
        max_p=max_p,
        win_tie_loss={
            (a, b): {
                name: _votes(evaluated[a].values[name], evaluated[b].values[name]) for name in names
            }
            for a, b in itertools.permutations(models, 2)
        },
        rounding_digits=rounding_digits,
        show_percentages=show_percentages,
        stat_test=stat_test,
    )


Pairs = dict[tuple[str, str], dict[str, float]]


def _student(evaluated: dict[str, Evaluated], names: list[str], draws: int, seed: int) -> Pairs:
    def p(a: Array, b: Array) -> float:
        return paired_t((float(a.mean()), float(b.mean()), a, b))

    return {
        (a, b): {name: p(evaluated[a].values[name], evaluated[b].values[name]) for name in names}
        for a, b in itertools.combinations(evaluated, 2)
    }


def _fisher(evaluated: dict[str, Evaluated], names: list[str], draws: int, seed: int) -> Pairs:
    p_values: Pairs = {pair: {} for pair in itertools.combinations(evaluated, 2)}
    for group in zip(*(one.cards for one in evaluated.values()), strict=True):
        rows = compare_cards(
            *(card for card, _ in group),
            names=list(evaluated),
            test="randomisation",
            adjust="none",
            draws=draws,
            seed=seed,
        ).differences
        for (a, b), by_metric in p_values.items():
            pair_rows = rows.filter((pl.col("run_a") == a) & (pl.col("run_b") == b))
            for one in group[0][1]:
                of_metric = (pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k)
                by_metric[one.name] = float(pair_rows.filter(of_metric)["p"][0])
    return {pair: {name: by_metric[name] for name in names} for pair, by_metric in p_values.items()}


_PAIRED: dict[str, Callable[[dict[str, Evaluated], list[str], int, int], Pairs]] = {
    "student": _student,
    "fisher": _fisher,
}


def _votes(a: Array, b: Array) -> dict[str, int]:
    """Queries on which the first is better, alike and worse."""
    counts = (int(np.count_nonzero(mask)) for mask in (a > b, a == b, a < b))
    return dict(zip("WTL", counts, strict=True))


# ``fuse``: several runs into one.

_KNOWN = {name: one for one in METHODS.values() for name in (one.name, *one.aliases)}
_PARAMS = {"k": "k", "weights": "weights", "gamma": "gamma", "phi": "persistence"}
"""Parameter of ranx's method -> name of the engine's option."""


def fuse(
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    params: Mapping[str, Any] | None = None,
) -> Run:
    """Fuse several runs into one; see :func:`evalengine.fuse`.

    Args:
        runs: two or more; a missing query counts as an empty list.
        norm: normalisation of each list's scores: min-max, max, sum, zmuv, rank, borda or None.
            Methods on ranks take none.
        method: rrf, isr, log_isr, rbc, wsum, mixed, gmnz, condorcet, bordafuse, sum, mnz, anz, max,
            min or med.
        params: weights of wsum and mixed, k of rrf, gamma of gmnz, phi of rbc; name.

    Raises:
        OptionError: an unknown method, normalisation or parameter.
    """
    if method not in _KNOWN:
        raise unknown("fusion method", method, tuple(_KNOWN))
    options = dict(params or {})
    name = options.pop("name", method)
    odd = next((key for key in options if key not in _PARAMS), None)
    if odd is not None:
        raise unknown("parameter", odd, tuple(_PARAMS))
    fused = fuse_runs(
        [run.rows for run in runs],
        method=method,
        normalisation=norm.replace("_", "-") if norm and _KNOWN[method].scores else None,
        **{_PARAMS[key]: value for key, value in options.items()},
    )
    return Run.from_df(fused, "query_id", "doc_id", "score", name)
