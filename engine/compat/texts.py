"""Single calls on plain Python lists of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ..api import score
from ..schemas.errors import InputError

Texts = str | Sequence[str]
References = str | Sequence[str] | Sequence[Sequence[str]]


def rouge(
    predictions: Texts,
    references: References,
    *,
    rouge_types: Sequence[str] = ("rouge1", "rouge2", "rougeL", "rougeLsum"),
    use_stemmer: bool = False,
) -> Any:
    """ROUGE of texts, as Hugging Face's ``evaluate`` without an aggregator: F by type.

    Args:
        predictions: a text, or a list of them.
        references: for each text its reference, or a list of several; the best counts, per type.
            For one text given as a string: a string, or a list of its references.
        rouge_types: some of rouge1, rouge2, rouge3, rougeL and rougeLsum.
        use_stemmer: whether tokens of four letters and more are stemmed.

    Returns:
        a dict of type and F, in [0, 1], per text; a single dict for a string.

    Raises:
        InputError: lists of different lengths, a text that is not a string, or one without
            references.
        OptionError: a type that does not exist.

    Example:
        >>> import evalengine as ee
        >>> ee.rouge("the cat sat", ["a cat sat", "the dog sat"], rouge_types=["rouge1", "rougeL"])
        {'rouge1': 0.6666666666666666, 'rougeL': 0.6666666666666666}
    """
    card = score(
        _table(predictions, references),
        task="text",
        dialect="rouge-score",
        metrics=["ROUGE"],
        rouge_types=list(rouge_types),
        use_stemmer=use_stemmer,
    )
    rows = card.frame("per_datum").filter(pl.col("statistic").is_null())
    by_type = {
        name: rows.filter(pl.col("metric") == f"ROUGE{name.removeprefix('rouge')}")["value"]
        for name in rouge_types
    }
    found = [dict(zip(by_type, row, strict=True)) for row in zip(*by_type.values(), strict=True)]
    return found[0] if isinstance(predictions, str) else found


def bleu(
    predictions: Texts,
    references: References,
    *,
    weights: Sequence[float] = (0.25, 0.25, 0.25, 0.25),
    smoothing: str = "none",
    tokenizer: str = "words",
) -> Any:
    """Sentence BLEU of texts, as Valor computes it with NLTK.

    Args:
        predictions: a text, or a list of them.
        references: as in :func:`rouge`; n-grams may match any of several.
        weights: weight of each n-gram order, summing to 1.
        smoothing: see :class:`evalengine.Options`.
        tokenizer: see :class:`evalengine.Options`.

    Returns:
        a number in [0, 1] per text; a single number for a string.

    Raises:
        InputError: as in :func:`rouge`.
        OptionError: weights that do not sum to 1; a smoothing or tokenizer that does not exist.

    Example:
        >>> import evalengine as ee
        >>> round(ee.bleu("the cat sat on the mat", "the cat sat on a mat"), 4)
        0.5373
    """
    card = score(
        _table(predictions, references),
        task="text",
        metrics=["BLEU"],
        bleu_weights=list(weights),
        smoothing=smoothing,
        tokenizer=tokenizer,
    )
    found = card.frame("per_datum")["value"].to_list()
    return found[0] if isinstance(predictions, str) else found


def _table(predictions: Texts, references: References) -> pl.DataFrame:
    """One row a text, its references in a list."""
    if isinstance(predictions, str):
        predictions, references = [predictions], [references]  # type: ignore[list-item]
    if isinstance(references, str) or len(predictions) != len(references):
        n = 1 if isinstance(references, str) else len(references)
        raise InputError(
            f"predictions and references must have the same length: {len(predictions)} and {n}.",
            code="unequal_lengths",
            counts=[len(predictions), n],
        )
    lists = [[one] if isinstance(one, str) else one for one in references]
    for i, (text, given) in enumerate(zip(predictions, lists, strict=True)):
        if not isinstance(text, str) or isinstance(given, (bytes, dict)):
            raise InputError(f"prediction {i} is not a string: {text!r}.", code="wrong_type", row=i)
        wrong = [one for one in given if not isinstance(one, str)] if given else [None]
        if wrong:
            raise InputError(
                f"references of text {i}: write a string or a list of strings, at least one;"
                f" found {given!r}.",
                code="wrong_type",
                row=i,
            )
    texts = pl.Series("text", [*predictions], dtype=pl.String)
    return pl.DataFrame([texts, pl.Series("reference", lists, dtype=pl.List(pl.String))])
