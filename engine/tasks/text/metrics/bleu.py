"""BLEU, by sentence and by corpus."""

from __future__ import annotations

from typing import Any

from ....metrics.averages import pooled
from ....schemas.arrays import Array
from .bleu_formula import bleu
from .parts import metric

_FORMULA = (
    r"\text{BP} \cdot \exp\left(\sum_o w_o \ln \frac{M_o}{c_o}\right), \quad"
    r" \text{BP} = \min\left(1, e^{1 - |r| / |c|}\right)"
)
_PARAMS = ("bleu_weights", "smoothing", "tokenizer", "lowercase")


def _of_sums(total: Array, settings: Any) -> Array:
    return bleu(total, settings, sentence=False)


METRICS = (
    metric(
        "BLEU",
        "bleu",
        definition="brevity penalty * geometric mean of the precisions of 1-grams to 4-grams,"
        " clipped by the references, of every text by itself; mean over datums",
        formula=_FORMULA,
        source="nltk 3.10 sentence_bleu; Papineni et al. 2002",
        params=_PARAMS,
        aliases=("bleu", "SentenceBLEU", "sentence_bleu"),
    ),
    metric(
        "CorpusBLEU",
        "bleu_counts",
        definition="BLEU of the counts of all datums together",
        formula=_FORMULA,
        source="Papineni et al. 2002; sacrebleu 2.6",
        params=_PARAMS,
        aliases=("corpus_bleu", "corpusbleu", "sacrebleu"),
        compute=pooled("bleu_counts", "CorpusBLEU", _of_sums),
    ),
)
