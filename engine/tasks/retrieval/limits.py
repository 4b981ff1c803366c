"""How far numbers move by the order of equal scores, and by documents that nobody judged."""

from __future__ import annotations

import msgspec
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..limits import AT_MOST, EXACT, RANGE, UNKNOWN, Ends, Given, Limit
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


def _tied(given: Given) -> Ends | None:
    run = given.frames.sides.get(PREDICTIONS)
    if run is None or "doc_id" not in run.columns or "score" not in run.columns:
        return None
    if not run.select("datum_id", "score").is_duplicated().any():
        return None
    known = _BY_ORDER - _falling(given.settings)
    ends = (msgspec.structs.replace(given.settings, ties=end) for end in ("worst", "best"))
    runs = tuple((given.run(given.frames, settings), given.settings) for settings in ends)
    return Ends(runs, lambda metric: EXACT if metric in known else _unknown(metric, given.settings))


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


def _unjudged(given: Given) -> Ends | None:
    """Every retrieved document without a judgment of one grade among those that there are."""
    frames, settings = given.frames, given.settings
    run, qrels = frames.sides.get(PREDICTIONS), frames.sides.get(GROUND_TRUTHS)
    if run is None or qrels is None or settings.judged_only:
        return None  # documents without a judgment were left out on purpose
    if "doc_id" not in run.columns or "doc_id" not in qrels.columns:
        return None
    if "relevance" not in qrels.columns:
        qrels = qrels.with_columns(relevance=1.0)
    qrels = qrels.with_columns(pl.col("relevance").cast(pl.Float64))
    grades = qrels["relevance"].filter(qrels["relevance"] > 0).unique()
    highest = float(grades.max() or 1)  # type: ignore[arg-type]

    pair = ["datum_id", "doc_id"]
    more = run.select(pair).join(qrels.select(pair), on=pair, how="anti")
    more = more.join(qrels.select("datum_id").unique(), on="datum_id", how="semi")
    twice = more.height
    more = more.unique(maintain_order=True)

    def filled(relevance: float) -> Frames:
        judged = pl.concat([qrels, more.with_columns(relevance=relevance)], how="diagonal_relaxed")
        sides = {role: frame.clone() for role, frame in frames.sides.items()}
        return msgspec.structs.replace(
            frames, sides={**sides, GROUND_TRUTHS: judged}, notes=[*frames.notes]
        )

    low = given.tallies
    high = given.run(filled(highest), settings)
    known = _RISING - _falling(settings)
    if settings.ties != "average" and more.height == twice:
        batch = encode_batch(filled(SENTINEL), settings, frozenset(), given.workers)
        wanted = _DIVIDED.keys() - _falling(settings)
        wanted -= {"nDCG"} if settings.ideal == "retrieved" else set()
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
        known |= wanted

    def bound(metric: str) -> str:
        if metric not in known:
            return _unknown(metric, settings)
        return AT_MOST if metric == "nDCG" and len(grades) > 1 else EXACT

    return Ends(((low, settings), (high, settings)), bound)


LIMITS = (
    Limit(
        name="ties",
        why="relevant documents last, or first, among equal scores of a query",
        ends=_tied,
    ),
    Limit(
        name="unjudged",
        why="retrieved documents without a judgment, of any grade that the judgments have",
        ends=_unjudged,
    ),
)
