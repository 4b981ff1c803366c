"""Text dialects: tokens, smoothing, scales and empty cases of each reference."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect


class TextRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the references disagree about.

    Attributes:
        several: a datum may have several predictions, of which the best counts; otherwise that is
            refused.
        percent: BLEU, chrF and TER run from 0 to 100.
        bleu: whose formula BLEU is: ``nltk`` (a geometric mean over all orders, an order that the
            candidate is too short for counts as one without matches) or ``sacrebleu`` (of a
            sentence, over the orders that it is long enough for).
        floor: values of BLEU below become 0: what NLTK makes of orders without matches.
        characters: BLEU goes over characters, white space among them, and takes the reference by
            which it is highest instead of all together.
        normalise: how ExactMatch compares: ``squad`` (no case, articles, punctuation) or ``strip``
            (no case, no white space around).
        sequence: whose ROUGE-L it is: ``rouge-score``, or ``rouge`` (different words, sentences
            between full stops, precision and recall of their own best references).
        overlap: what tokens overlap: ``squad``, every one as often as it stands in both, or
            ``content`` words, different ones, over all of a side.
        decimals: digits that means are rounded to, or None.
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
    """Defaults of the options that were not given.

    Attributes:
        metrics: default set; ``ROUGE`` stands for the option ``rouge_types``.
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
        about="rouge-score's ROUGE, sentence BLEU without smoothing that is 0 where an order has"
        " no match, all from 0 to 1",
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
