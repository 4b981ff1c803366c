"""Retrieval dialects: order of ties, averages and formulas of each reference."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Layout


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


class RetrievalDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set for ids.
        text_metrics: default set for texts.
        k: cut-offs.
        match: matching rule for texts.
        persistence: of RBP.
    """

    metrics: tuple[str, ...]
    text_metrics: tuple[str, ...]
    k: tuple[int, ...] = (1, 5, 10, 20)
    match: str = "chunk_from_original"
    persistence: float = 0.9


_RANKED = ("nDCG", "MAP", "MRR", "P", "Recall", "Success")
_REMEM = ("RetrievalRecall", "RetrievalRecallAll", "RetrievalNDCGAny")
_TREC_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_OFFICIAL = (
    "NumRetrieved",
    "NumRelevant",
    "NumRelevantRetrieved",
    "MAP",
    "GMAP",
    "RPrecision",
    "bpref",
    "MRR",
    "InterpolatedPrecision",
    "P",
)
_ALL = RetrievalDefaults(metrics=_RANKED, text_metrics=("PrecisionRecallF1", *_REMEM, "MRR"))

DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="retrieval",
        about="trec_eval's formulas; ties by descending document id; the documents' rules for"
        " texts",
        rules=RetrievalRules(),
        defaults=_ALL,
        undefined=0.0,
        export="trec",
    ),
    "trec_eval": Dialect(
        name="trec_eval",
        task="retrieval",
        about="trec_eval 10: its official measures and cut-offs",
        rules=RetrievalRules(graded_persistence=True),
        defaults=RetrievalDefaults(metrics=_OFFICIAL, text_metrics=_OFFICIAL, k=_TREC_CUTS),
        undefined=0.0,
        export="trec",
    ),
    "ir-measures": Dialect(
        name="ir-measures",
        task="retrieval",
        about="ir-measures 0.4.3: queries without results count as 0; RR@k and Judged@k break ties"
        " the other way",
        rules=RetrievalRules(
            complete=True, missing_zero=True, ascending_ties=("reciprocal_rank_cut", "judged")
        ),
        defaults=RetrievalDefaults(metrics=_RANKED, text_metrics=_RANKED, persistence=0.8),
        undefined=0.0,
        export="trec",
    ),
    "continuous-eval": Dialect(
        name="continuous-eval",
        task="retrieval",
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
        defaults=RetrievalDefaults(
            metrics=("PrecisionRecallF1",), text_metrics=("PrecisionRecallF1",), match="rouge_chunk"
        ),
        undefined=0.0,
        export="continuous_eval",
    ),
    "remem": Dialect(
        name="remem",
        task="retrieval",
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
        defaults=RetrievalDefaults(metrics=_REMEM, text_metrics=_REMEM),
        undefined=0.0,
        export="remem",
    ),
    "ragas": Dialect(
        name="ragas",
        task="retrieval",
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
        defaults=RetrievalDefaults(
            metrics=("IDBasedContextPrecision", "IDBasedContextRecall"),
            text_metrics=("NonLLMContextPrecision", "NonLLMContextRecall"),
            match="levenshtein",
        ),
        undefined=None,
        export="ragas",
    ),
}
"""The dialects of retrieval."""


# Layout of retrieval results: the metrics in their order.

LAYOUTS: dict[str | None, Layout] = {}
