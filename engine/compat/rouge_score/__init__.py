"""The package ``rouge_score``: change the import, keep the calls.

Example:
    >>> from evalengine.compat.rouge_score import rouge_scorer
    >>> scorer = rouge_scorer.RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    >>> scorer.score("The quick brown fox jumps", "A quick fox jumped")["rougeL"]
    Score(precision=0.75, recall=0.6, fmeasure=0.6666666666666665)
"""

from __future__ import annotations

from . import rouge_scorer, scoring, tokenizers

__all__ = ["rouge_scorer", "scoring", "tokenizers"]
