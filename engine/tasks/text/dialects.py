"""Text dialects: tokens, smoothing, scales and empty cases of each reference."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Layout


class TextRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        several: a datum may have several predictions, of which the best counts; otherwise that is
            refused.
        percent: BLEU, chrF and TER are in [0, 100].
        bleu: formula of BLEU: ``nltk`` (a geometric mean over all orders; an order that the
            candidate is too short for has no matches) or ``sacrebleu`` (for a sentence, over the
            orders that it is long enough for).
        floor: BLEU below this value becomes 0: NLTK's result for orders without matches.
        characters: BLEU uses characters, including white space, and the reference that maximises
            it instead of all together.
        normalise: normalisation of ExactMatch: ``squad`` (no case, articles, punctuation) or
            ``strip`` (no case, no surrounding white space).
        sequence: implementation of ROUGE-L: ``rouge-score``, or ``rouge`` (distinct words,
            sentences
            between full stops, best references chosen separately for precision and recall).
        overlap: tokens that overlap: ``squad``, each as often as it occurs in both, or ``content``,
            distinct content words, over all of a side.
        decimals: digits to which means are rounded, or None.
        wordless: reading ease and grade of a text without words; None for undefined.
    """

    several: bool = False
    percent: bool = False
    bleu: str = "nltk"
    floor: float = 1e-9
    characters: bool = False
    normalise: str = "squad"
    sequence: str = "rouge-score"
    overlap: str = "squad"
    decimals: int | None = None
    wordless: tuple[float, float] | None = None


class TextDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set; ``ROUGE`` means the option ``rouge_types``.
        tokenizer: of BLEU.
        smoothing: of BLEU.
    """

    metrics: tuple[str, ...] = ("ROUGE", "BLEU")
    tokenizer: str = "words"
    smoothing: str = "none"


DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="text",
        about="rouge-score's ROUGE, sentence BLEU without smoothing (0 if an order has no match),"
        " all from 0 to 1",
        rules=TextRules(),
        defaults=TextDefaults(),
        undefined=None,
        export="valor",
    ),
    "rouge-score": Dialect(
        name="rouge-score",
        task="text",
        about="rouge-score 0.1.2, best reference by type",
        rules=TextRules(),
        defaults=TextDefaults(metrics=("ROUGE",)),
        undefined=None,
        export="valor",
    ),
    "nltk": Dialect(
        name="nltk",
        task="text",
        about="nltk 3.10 sentence_bleu and corpus_bleu of tokens between white space, tiny values"
        " kept",
        rules=TextRules(floor=0.0),
        defaults=TextDefaults(metrics=("BLEU", "CorpusBLEU"), tokenizer="none"),
        undefined=None,
        export="valor",
    ),
    "sacrebleu": Dialect(
        name="sacrebleu",
        task="text",
        about="sacrebleu 2.6: corpus scores from 0 to 100, tokenizer 13a, exponential smoothing",
        rules=TextRules(percent=True, bleu="sacrebleu", floor=0.0),
        defaults=TextDefaults(metrics=("CorpusBLEU",), tokenizer="13a", smoothing="exp"),
        undefined=None,
        export="valor",
    ),
    "valor": Dialect(
        name="valor",
        task="text",
        about="Valor's ROUGE and BLEU: the best of several predictions",
        rules=TextRules(several=True),
        defaults=TextDefaults(),
        undefined=0.0,
        export="valor",
    ),
    "continuous-eval": Dialect(
        name="continuous-eval",
        task="text",
        about="continuous-eval 0.3.14: ROUGE-L of the package rouge, overlap of content words, BLEU"
        " of characters, best reference; matches but for case and white space around",
        rules=TextRules(
            floor=0.0,
            characters=True,
            normalise="strip",
            sequence="rouge",
            overlap="content",
            wordless=(121.22, 0.0),
        ),
        defaults=TextDefaults(
            metrics=("ROUGEL", "TokenPrecision", "TokenRecall", "TokenF1", "BLEU", "ExactMatch")
        ),
        undefined=None,
        export="valor",
    ),
}
"""The dialects of text."""


# Layout of text results: the metrics in their order.

LAYOUTS: dict[str | None, Layout] = {}
