"""How far numbers move by the order of equal scores, and by documents that nobody judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..limits import AT_MOST, EXACT, RANGE, UNKNOWN, Bound, Facts, Given, Limit, any_of
from .encode import encode_batch
from .settings import Settings
from .unjudged import SENTINEL, bounds

_BY_ORDER = frozenset({
    "nDCG", "DCG", "MAP", "GMAP", "MRR", "P", "Recall", "Success", "RPrecision", "F1", "RBP",
})  # fmt: skip
"""Metrics that no relevant document lowers by moving up."""
_RISING = frozenset({
    "P", "MRR", "Success", "DCG", "RBP", "SDCG", "INSQ", "SetPrecision", "Utility", "NumRetrieved",
    "NumRelevantRetrieved",
})  # fmt: skip
"""Metrics that no relevant document lowers."""
_DIVIDED = {
    "Recall": "recall", "F1": "f1", "MAP": "average_precision", "GMAP": "average_precision",
    "RPrecision": "r_precision", "nDCG": "ndcg",
}  # fmt: skip
"""Metrics that are bounded one query after the other, and their needs."""


def _tied(frames: Frames, settings: Settings) -> Facts | None:
    run = frames.sides.get(PREDICTIONS)
    if run is None or "doc_id" not in run.columns or "score" not in run.columns:
        return None
    return {"tied": run.select("datum_id", "score").is_duplicated().any()}


def _by_ties(given: Given) -> Iterator[Any]:
    for end in ("worst", "best"):
        settings = msgspec.structs.replace(given.settings, ties=end)
        yield given.run(given.frames, settings)


def _bound_of_ties(settings: Settings, facts: Facts, ends: Sequence[Any]) -> Bound | None:
    known = _BY_ORDER - _falling(settings)
    if not facts["tied"]:
        return None
    return lambda metric: EXACT if metric in known else _unknown(metric, settings)


def _falling(settings: Settings) -> set[str]:
    """Metrics that a document may lower by becoming relevant, or by moving up."""
    rules, mapped = settings.rules, not isinstance(settings.gains, str)
    return {
        *(("MAP", "GMAP") if rules.averaged_over_retrieved else ()),
        *(("RBP",) if rules.graded_persistence else ()),  # shares of the query's highest relevance
        *(("DCG", "nDCG") if mapped else ()),
    }


def _unknown(metric: str, settings: Settings) -> str:
    """Gains of the user's own may lead beyond the range of metrics that take gains."""
    takes = "gains" in metrics.get("retrieval", metric).params
    return UNKNOWN if takes and not isinstance(settings.gains, str) else RANGE


def _judgments(frames: Frames) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgments, of relevance 1 unless told; retrieved documents of judged queries without one."""
    run, qrels = frames.sides[PREDICTIONS], frames.sides[GROUND_TRUTHS]
    if "relevance" not in qrels.columns:
        qrels = qrels.with_columns(relevance=1.0)
    qrels = qrels.with_columns(pl.col("relevance").cast(pl.Float64))
    pair = ["datum_id", "doc_id"]
    more = run.select(pair).join(qrels.select(pair), on=pair, how="anti")
    return qrels, more.join(qrels.select("datum_id").unique(), on="datum_id", how="semi")


def _unjudged(frames: Frames, settings: Settings) -> Facts | None:
    """The grades that judgments have, two of them and the highest."""
    run, qrels = frames.sides.get(PREDICTIONS), frames.sides.get(GROUND_TRUTHS)
    if run is None or qrels is None or settings.judged_only:
        return None  # documents without a judgment were left out on purpose
    if "doc_id" not in run.columns or "doc_id" not in qrels.columns:
        return None
    qrels, more = _judgments(frames)
    grades = qrels["relevance"].filter(qrels["relevance"] > 0).unique().sort()
    return {
        "grades": [*grades.head(1), *grades[1:].tail(1)],
        "twice": more.is_duplicated().any(),
    }


def _of_all(facts: Sequence[Facts]) -> Facts:
    grades = sorted({grade for one in facts for grade in one["grades"]})
    return {"grades": grades, "twice": any(one["twice"] for one in facts)}


def _divided(settings: Settings, facts: Facts) -> set[str]:
    """Metrics that are bounded one query after the other."""
    if settings.ties == "average" or facts["twice"]:
        return set()
    wanted = _DIVIDED.keys() - _falling(settings)
    return wanted - {"nDCG"} if settings.ideal == "retrieved" else wanted


def _by_judgments(given: Given) -> Iterator[Any]:
    """Every retrieved document without a judgment of one grade among those that there are."""
    frames, settings = given.frames, given.settings
    highest = max(given.facts["grades"], default=1.0)
    qrels, more = _judgments(frames)
    more = more.unique(maintain_order=True)

    def filled(relevance: float) -> Frames:
        judged = pl.concat([qrels, more.with_columns(relevance=relevance)], how="diagonal_relaxed")
        sides = {role: frame.clone() for role, frame in frames.sides.items()}
        return msgspec.structs.replace(
            frames, sides={**sides, GROUND_TRUTHS: judged}, notes=[*frames.notes]
        )

    low, high = given.tallies, given.run(filled(highest), settings)
    if wanted := _divided(settings, given.facts):
        batch = encode_batch(filled(SENTINEL), settings, frozenset(), given.workers)
        needs = {_DIVIDED[metric] for metric in wanted}
        columns = {need: of for need, of in low.stats.columns.items() if need in needs}
        ends = bounds(batch.lists, settings, highest, columns)
        low, high = (
            msgspec.structs.replace(
                tallies, stats=msgspec.structs.replace(stats, columns={**stats.columns, **made})
            )
            for tallies, made in zip((low, high), ends, strict=True)
            for stats in (tallies.stats,)
        )
    yield from (low, high)


def _bound_of_judgments(settings: Settings, facts: Facts, ends: Sequence[Any]) -> Bound:
    known = (_RISING - _falling(settings)) | _divided(settings, facts)

    def bound(metric: str) -> str:
        if metric not in known:
            return _unknown(metric, settings)
        return AT_MOST if metric == "nDCG" and len(facts["grades"]) > 1 else EXACT

    return bound


LIMITS = (
    Limit(
        name="ties",
        why="relevant documents last, or first, among equal scores of a query",
        facts=_tied,
        whole=any_of,
        settings=lambda settings, facts: (settings,) * 2,
        ends=_by_ties,
        bound=_bound_of_ties,
    ),
    Limit(
        name="unjudged",
        why="retrieved documents without a judgment, of any grade that the judgments have",
        facts=_unjudged,
        whole=_of_all,
        settings=lambda settings, facts: (settings,) * 2,
        ends=_by_judgments,
        bound=_bound_of_judgments,
    ),
)
