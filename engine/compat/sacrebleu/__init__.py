"""The calls of the package ``sacrebleu``: change the import, keep the calls.

Example:
    >>> from evalengine.compat.sacrebleu import corpus_bleu
    >>> corpus_bleu(["The dog bit the man."], [["The dog had bit the man."]])
    BLEU = 51.15 100.0/80.0/50.0/33.3 (BP = 0.846 ratio = 0.857 hyp_len = 6 ref_len = 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .metrics import BLEU, CHRF, TER, BLEUScore, CHRFScore, References, TERScore

__all__ = [
    "BLEU",
    "CHRF",
    "TER",
    "BLEUScore",
    "CHRFScore",
    "TERScore",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_ter",
    "raw_corpus_bleu",
    "sentence_bleu",
    "sentence_chrf",
    "sentence_ter",
]


def corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str | None = BLEU.TOKENIZER_DEFAULT,
    use_effective_order: bool = False,
) -> Any:
    """BLEU of all texts together; see :class:`BLEU`."""
    metric = BLEU(
        lowercase, force, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return metric.corpus_score(hypotheses, references)


def raw_corpus_bleu(
    hypotheses: Sequence[str], references: References, smooth_value: float | None = 0.1
) -> Any:
    """BLEU of tokens between white space, with ``floor`` smoothing."""
    return corpus_bleu(hypotheses, references, "floor", smooth_value, True, False, "none", True)


def sentence_bleu(
    hypothesis: str,
    references: Sequence[str],
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    lowercase: bool = False,
    tokenize: str | None = BLEU.TOKENIZER_DEFAULT,
    use_effective_order: bool = True,
) -> Any:
    """BLEU of one text; see :class:`BLEU`."""
    metric = BLEU(
        lowercase, False, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return metric.sentence_score(hypothesis, references)


def corpus_chrf(
    hypotheses: Sequence[str],
    references: References,
    char_order: int = CHRF.CHAR_ORDER,
    word_order: int = CHRF.WORD_ORDER,
    beta: int = CHRF.BETA,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> Any:
    """chrF of all texts together; see :class:`CHRF`."""
    metric = CHRF(char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    return metric.corpus_score(hypotheses, references)


def sentence_chrf(
    hypothesis: str,
    references: Sequence[str],
    char_order: int = CHRF.CHAR_ORDER,
    word_order: int = CHRF.WORD_ORDER,
    beta: int = CHRF.BETA,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> Any:
    """chrF of one text; see :class:`CHRF`."""
    metric = CHRF(char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    return metric.sentence_score(hypothesis, references)


def corpus_ter(
    hypotheses: Sequence[str],
    references: References,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Any:
    """TER of all texts together; see :class:`TER`."""
    metric = TER(normalized, no_punct, asian_support, case_sensitive)
    return metric.corpus_score(hypotheses, references)


def sentence_ter(
    hypothesis: str,
    references: Sequence[str],
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Any:
    """TER of one text; see :class:`TER`."""
    metric = TER(normalized, no_punct, asian_support, case_sensitive)
    return metric.sentence_score(hypothesis, references)
