"""Retrieval dialects and settings: order of ties, averages and formulas of each reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.contract import words
from ...schemas.errors import invalid
from ...schemas.options import DECLARED, FINITE, Options


class RetrievalRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        complete: judged queries that are missing from the run count as 0 in means.
        missing_zero: every measure of such a query is 0, including counts of judgments.
        texts_only: lists contain texts whatever their values; integers are their digits.
        repeats_allowed: a document may occur twice in a list; otherwise that is refused.
        ascending_ties: needs whose ties are ordered by ascending document id instead of descending.
        averaged_over_retrieved: average precision is divided by the relevant documents retrieved,
            not by all relevant ones.
        ideal_repeats: golds given twice count twice in the ideal order of nDCG.
        repeats_missed: RetrievalRecallAll is 0 if a gold is given twice.
        ids_as_text: integers and strings match as ids, by their digits.
        own_matches: needs of texts that match by another rule, and whether a similarity equal to
            the threshold is a match for them.
        keep_repeats: a gold given twice counts twice.
        precision_epsilon: added by ragas to the number of matching texts.
        match_at_threshold: a similarity equal to the threshold is a match; otherwise it must be
            above.
        reference_rouge: ROUGE-L and its tokens are those of the package rouge 1.0.1.
        reference_chunks: the chunk rule reproduces the reference's defects: text after a second
            ": " is lost, and an empty chunk matches everything.
        graded_persistence: RBP sums relevance scaled to [0, 1] instead of relevant documents, and
            has no residual if all retrieved documents are judged.
        decimals: digits to which pooled values are rounded, or None.
    """

    complete: bool = False
    missing_zero: bool = False
    texts_only: bool = False
    repeats_allowed: bool = False
    ascending_ties: tuple[str, ...] = ()
    averaged_over_retrieved: bool = False
    ideal_repeats: bool = False
    repeats_missed: bool = False
    ids_as_text: bool = False
    own_matches: dict[str, tuple[str, bool]] = {}
    keep_repeats: bool = False
    precision_epsilon: float = 0.0
    match_at_threshold: bool = False
    reference_rouge: bool = False
    reference_chunks: bool = False
    graded_persistence: bool = False
    decimals: int | None = None


MATCHES = {
    "chunk_from_original": None,
    "exact_chunk": None,
    "exact_sentence": None,
    "rouge_chunk": 0.7,
    "rouge_sentence": 0.8,
    "fuzzy": 0.9,
    "levenshtein": 0.5,
}
"""Match rule -> threshold that it is compared with, None for those without."""
SENTENCES = ("exact_sentence", "rouge_sentence")
USUAL = {
    **{name: DECLARED[name].default for name in ("gains", "discount", "ideal")},
    "persistence": 0.9,
}
"""Option -> the value that rows do not name in ``parameters``: the formula as it is published."""


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a retrieval run: the dialect's rules, and options with defaults filled in.

    Attributes:
        k: ascending; in settings of a single metric, a last None means the whole list.
        match: as given, or None.
        default_match: matching rule for texts if none is given.
        match_threshold: None for the rule's default.
        ties: also ``best`` or ``worst``, relevant documents first or last, for bounds.
        relevance_levels: None for anything above 0.
        metrics: default metrics of the dialect for ids.
        text_metrics: default metrics of the dialect for texts.
        highest: the highest relevance of the whole input, if only a part of it is measured; else
            None.
    """

    rules: RetrievalRules
    k: tuple[int | None, ...]
    match: str | None
    default_match: str
    match_threshold: float | None
    ties: str
    complete: bool
    judged_only: bool
    relevance_levels: tuple[float | None, ...]
    gains: str | dict[float, float]
    discount: str
    ideal: str
    persistence: float
    ignore_identical_ids: bool
    metrics: tuple[str, ...]
    text_metrics: tuple[str, ...]
    highest: float | None = None

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        gains = values["gains"]
        if isinstance(gains, Mapping):
            try:
                values["gains"] = {float(level): float(gain) for level, gain in gains.items()}
                FINITE.check("gains", *values["gains"], *values["gains"].values())
            except (TypeError, ValueError):
                values["gains"] = {}
            if not values["gains"]:
                raise invalid("gains", gains, "write a mapping of relevance to gain, all numbers.")
        values["relevance_levels"] = values["relevance_levels"] or (None,)
        values["default_match"], values["match"] = dialect.default("match"), options.match
        values["metrics"], values["text_metrics"] = dialect.metrics, dialect.text_metrics


def unusual(settings: Settings, *names: str) -> dict[str, Any]:
    """Return the options that differ from ``USUAL``, for ``parameters``.

    A dialect's default counts as different, so that equal rows are computed equally in all
    dialects.
    """
    values = {name: getattr(settings, name) for name in names}
    return {
        name: {f"{level:g}": gain for level, gain in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in values.items()
        if value != USUAL[name]
    }


_RANKED = ("nDCG", "MAP", "MRR", "P", "Recall", "Success")
_REMEM = ("RetrievalRecall", "RetrievalRecallAll", "RetrievalNDCGAny")
_TREC_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_OFFICIAL = words(
    "NumRetrieved NumRelevant NumRelevantRetrieved MAP GMAP RPrecision bpref MRR"
    " InterpolatedPrecision P"
)
_DEFAULTS = {"k": (1, 5, 10, 20), "match": "chunk_from_original", "persistence": 0.9}

DIALECTS = of_task(
    "retrieval",
    Dialect(
        name="standard",
        about="trec_eval's formulas; ties by descending document id; the documents' rules for"
        " texts",
        rules=RetrievalRules(),
        metrics=_RANKED,
        text_metrics=("PrecisionRecallF1", *_REMEM, "MRR"),
        defaults=_DEFAULTS,
        undefined=0.0,
        export="trec",
    ),
    Dialect(
        name="trec_eval",
        about="trec_eval 10: its official measures and cut-offs",
        rules=RetrievalRules(graded_persistence=True),
        metrics=_OFFICIAL,
        text_metrics=_OFFICIAL,
        defaults={**_DEFAULTS, "k": _TREC_CUTS},
        undefined=0.0,
        export="trec",
    ),
    Dialect(
        name="ir-measures",
        about="ir-measures 0.4.3: queries without results count as 0; RR@k and Judged@k break ties"
        " the other way",
        rules=RetrievalRules(
            complete=True, missing_zero=True, ascending_ties=("reciprocal_rank_cut", "judged")
        ),
        metrics=_RANKED,
        text_metrics=_RANKED,
        defaults={**_DEFAULTS, "persistence": 0.8},
        undefined=0.0,
        export="trec",
    ),
    Dialect(
        name="continuous-eval",
        about="continuous-eval 0.3.14: ROUGE of the package rouge, reached thresholds match",
        rules=RetrievalRules(
            complete=True,
            texts_only=True,
            repeats_allowed=True,
            averaged_over_retrieved=True,
            ideal_repeats=True,
            match_at_threshold=True,
            reference_rouge=True,
        ),
        metrics=("PrecisionRecallF1",),
        text_metrics=("PrecisionRecallF1",),
        defaults={**_DEFAULTS, "match": "rouge_chunk"},
        undefined=0.0,
        export="continuous_eval",
    ),
    Dialect(
        name="remem",
        about="REMem's code: exact recall, its chunk rule, pooled values to 4 digits",
        rules=RetrievalRules(
            complete=True,
            texts_only=True,
            repeats_allowed=True,
            repeats_missed=True,
            own_matches={"retrieval_recall": ("exact_chunk", False)},
            reference_chunks=True,
            decimals=4,
        ),
        metrics=_REMEM,
        text_metrics=_REMEM,
        defaults=_DEFAULTS,
        undefined=0.0,
        export="remem",
    ),
    Dialect(
        name="ragas",
        about="ragas 0.4.3 without a language model: ids as sets, Levenshtein similarity of texts",
        rules=RetrievalRules(
            complete=True,
            repeats_allowed=True,
            ids_as_text=True,
            own_matches={"text_context_recall": ("levenshtein", False)},
            keep_repeats=True,
            precision_epsilon=1e-10,
            match_at_threshold=True,
        ),
        metrics=("IDBasedContextPrecision", "IDBasedContextRecall"),
        text_metrics=("NonLLMContextPrecision", "NonLLMContextRecall"),
        defaults={**_DEFAULTS, "match": "levenshtein"},
        export="ragas",
    ),
)
"""The dialects of retrieval."""
