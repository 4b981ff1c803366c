"""``compare``: several runs, and which of their differences are significant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from ...api import compare as compare_cards
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError
from ...statistics.significance import paired_t
from .evaluation import Evaluated, as_qrels, as_run, numbers_of
from .report import OfPairs, Report
from .results import Nested, Qrels, Run


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
    if stat_test not in _TESTS:
        raise OptionError(
            f"stat_test={stat_test!r}: there are {' and '.join(_TESTS)}, pair by pair; p-values of"
            " many pairs are adjusted by evalengine.compare(adjust='holm')."
        )
    held = [as_run(run) for run in runs]
    models = [run.name or f"run_{i}" for i, run in enumerate(held, 1)]
    if len(set(models)) < len(models):
        twice = next(name for name in models if models.count(name) > 1)
        raise InputError(f"two runs are named {twice!r}: give each a name of its own.")
    found = numbers_of(as_qrels(qrels), held, names, threads, make_comparable)
    for run, one in zip(held, found, strict=True):
        queries = run.get_query_ids()
        for name, values in one.values.items():
            run.mean_scores[name] = float(values.mean())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    evaluated = dict(zip(models, found, strict=True))
    p_values = _TESTS[stat_test](evaluated, names, n_permutations, random_seed)
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
    found: Pairs = {pair: {} for pair in itertools.combinations(evaluated, 2)}
    for group in zip(*(one.cards for one in evaluated.values()), strict=True):
        rows = compare_cards(
            *(card for card, _ in group),
            names=list(evaluated),
            test="randomisation",
            adjust="none",
            draws=draws,
            seed=seed,
        ).differences
        for (a, b), by_metric in found.items():
            own = rows.filter((pl.col("run_a") == a) & (pl.col("run_b") == b))
            for one in group[0][1]:
                of_metric = (pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k)
                by_metric[one.name] = float(own.filter(of_metric)["p"][0])
    return {pair: {name: by_metric[name] for name in names} for pair, by_metric in found.items()}


_TESTS: dict[str, Callable[[dict[str, Evaluated], list[str], int, int], Pairs]] = {
    "student": _student,
    "fisher": _fisher,
}


def _votes(a: Array, b: Array) -> dict[str, int]:
    """Queries on which the first is better, alike and worse."""
    counts = (int(np.count_nonzero(found)) for found in (a > b, a == b, a < b))
    return dict(zip("WTL", counts, strict=True))
