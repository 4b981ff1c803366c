"""``evaluate``: numbers of a run, by query and on average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...api import score
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...scorecard.card import Scorecard
from .names import Asked, asked, grouped
from .results import Nested, Qrels, Run, only_here


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
    judged, held = as_qrels(qrels), as_run(run)
    found = numbers_of(judged, [held], names, threads, make_comparable)[0].values
    if isinstance(run, Run) and save_results_in_run:
        queries = judged.get_query_ids()
        for name, values in found.items():
            run.mean_scores[name] = float(values.mean())
            if return_std and return_mean:
                run.std_scores[name] = float(values.std())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    shown: dict[str, Any] = dict(found)
    if return_mean:
        shown = {name: float(values.mean()) for name, values in found.items()}
        if return_std:
            shown = {
                name: {"mean": mean, "std": float(found[name].std())}
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
        raise InputError("qrels: there is no query.")
    for i, run in enumerate(runs):
        if comparable:
            run.make_comparable(qrels)
        else:
            _refuse_others(queries, run, run.name or f"run {i + 1}")
    relevance = qrels.rows["score"].unique().sort().to_numpy()
    lengths = [run.rows.group_by("query_id").len()["len"].to_numpy() for run in runs]
    longest = max(int(some.max(initial=0)) for some in lengths)
    wanted = [asked(name, relevance, longest) for name in dict.fromkeys(names)]
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
    own = rows.filter((pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k))
    order = pl.DataFrame({"datum_id": pl.Series(queries, dtype=own["datum_id"].dtype)})
    found = order.join(own, on="datum_id", how="left", maintain_order="left")["value"]
    values: Array = found.fill_null(0.0).to_numpy()
    return np.rint(values * one.times) if one.times != 1 else values.copy()


def _refuse_others(queries: list[Any], run: Run, name: str) -> None:
    mine = run.get_query_ids()
    lacking, more = only_here(queries, mine), only_here(mine, queries)
    if lacking or more:
        said = [
            f"{what}, first {', '.join(map(repr, some))}"
            for what, some in (("lacks judged queries", lacking), ("has unjudged ones", more))
            if some
        ]
        raise InputError(
            f"{name} {' and '.join(said)}. Pass make_comparable=True to leave the unjudged out and"
            " to count the others as answered by nothing."
        )


def as_qrels(qrels: Any) -> Qrels:
    """Convert nested dicts to :class:`Qrels`."""
    return qrels if isinstance(qrels, Qrels) else Qrels(_nested("qrels", qrels))


def as_run(run: Any) -> Run:
    """Convert nested dicts to a :class:`Run`."""
    return run if isinstance(run, Run) else Run(_nested("run", run))


def _nested(side: str, given: Any) -> Any:
    if not hasattr(given, "items"):
        raise InputError(f"{side}: give a dict of dicts or a {side.capitalize()}.")
    return given
