"""``RougeScorer``: ROUGE of one text at a time, or of many at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...geometry.columns import offsets_of
from ...metrics import measures
from ...schemas.errors import InputError, OptionError
from ...tasks.text.metrics.ngrams import ROUGE_WORDS, Words, rouge
from ...tasks.text.pairs import Pairs, Tokens
from ..arrays import pairs_of, settings_of, workers_for
from .scoring import Score
from .tokenizers import DefaultTokenizer

_SUMMARY = "rougeLsum"
_OF_SEQUENCES = {"rougeL": "rougel", _SUMMARY: "rougelsum"}


def _measure(rouge_type: str) -> Any:
    """Return the measure of a ROUGE type.

    Raises:
        OptionError: there is no such type.
    """
    if rouge_type in _OF_SEQUENCES:
        return measures("text")[_OF_SEQUENCES[rouge_type]]
    if re.fullmatch("rouge[1-9]", rouge_type):
        return rouge(int(rouge_type[-1]))
    raise OptionError(
        f"rouge_types: {rouge_type!r} is none; write rouge1 to rouge9, rougeL or {_SUMMARY}.",
        code="option_value",
        option="rouge_types",
        value=rouge_type,
    )


class RougeScorer:
    """ROUGE of texts, equal to rouge-score 0.1.2.

    Args:
        rouge_types: some of rouge1 to rouge9, rougeL and rougeLsum.
        use_stemmer: whether words of four letters and more are stemmed.
        split_summaries: whether rougeLsum splits texts into sentences by NLTK's Punkt, which must
            be installed with its data; otherwise into lines.
        tokenizer: an object whose ``tokenize`` splits a text into a list of strings; by default
            words of a to z and digits.

    Raises:
        OptionError: a type that does not exist; ``split_summaries`` without NLTK.
    """

    def __init__(
        self,
        rouge_types: Sequence[str],
        use_stemmer: bool = False,
        split_summaries: bool = False,
        tokenizer: Any = None,
    ) -> None:
        if isinstance(tokenizer, DefaultTokenizer):
            use_stemmer, tokenizer = tokenizer.use_stemmer, None
        self.rouge_types = [*rouge_types]
        self._measures = [(name, _measure(name)) for name in rouge_types]
        self._settings = settings_of("rouge-score", use_stemmer=bool(use_stemmer) and not tokenizer)
        self._tokenize: Callable[[str], list[str]] | None = getattr(tokenizer, "tokenize", None)
        self._sentences = _nltk_sentences() if split_summaries else None

    def score(self, target: str, prediction: str) -> dict[str, Score]:
        """Compute precision, recall and F of one text, by type.

        Args:
            target: the reference.
            prediction: the text.

        Raises:
            InputError: one of them is not a string.
        """
        return self._scored([[target]], [prediction])[0]

    def score_multi(self, targets: Sequence[str], prediction: str) -> dict[str, Score]:
        """Compute the scores against the reference with the highest F, per type.

        Raises:
            InputError: no reference; a value that is not a string.
        """
        if isinstance(targets, str):
            raise InputError(
                "targets: write a list of strings; score() takes one.",
                code="wrong_type",
                side="targets",
            )
        return self._scored([targets], [prediction])[0]

    def score_all(
        self, targets: Sequence[str] | Sequence[Sequence[str]], predictions: Sequence[str]
    ) -> list[dict[str, Score]]:
        """Compute :meth:`score` (for lists of references, :meth:`score_multi`) of many texts at
        once.

        Args:
            targets: the reference of each text, or a list of several.
            predictions: the texts.

        Raises:
            InputError: different lengths, a text without reference, a value that is not a string.
        """
        if isinstance(targets, str) or isinstance(predictions, str):
            raise InputError("targets and predictions are lists of strings; score() takes one.")
        if len(targets) != len(predictions):
            raise InputError(
                f"{len(targets)} targets, but {len(predictions)} predictions.",
                code="lengths_differ",
                lengths=[len(targets), len(predictions)],
            )
        lists = [[one] if isinstance(one, str) else one for one in targets]
        return self._scored(lists, predictions)

    def _scored(
        self, targets: Sequence[Sequence[str]], predictions: Sequence[str]
    ) -> list[dict[str, Score]]:
        pairs = pairs_of(predictions, targets)
        workers = workers_for(pairs)
        sentences = self._sentences
        if self._tokenize is not None:
            pairs.made[ROUGE_WORDS] = self._cut(pairs, lambda text: [text])
            sentences = sentences or _lines
        by_sentence = pairs
        if sentences is not None and _SUMMARY in self.rouge_types:
            by_sentence = self._in_sentences(pairs, sentences)
        columns = []
        for name, measure in self._measures:
            texts = by_sentence if name == _SUMMARY else pairs
            f, precision, recall = measure(texts, self._settings, workers)
            three = (one.values.ravel().tolist() for one in (precision, recall, f))
            columns.append(map(Score, *three))
        rows = zip(*columns, strict=True) if columns else [()] * len(predictions)
        return [dict(zip(self.rouge_types, row, strict=True)) for row in rows]

    def _in_sentences(self, pairs: Pairs, sentences: Callable[[str], list[str]]) -> Pairs:
        """The texts with a sentence a line; or with the tokens of each sentence."""
        if self._tokenize is not None:
            words = {ROUGE_WORDS: self._cut(pairs, sentences)}
            return Pairs(pairs.candidates, pairs.references, pairs.start, words)
        ours, theirs = (
            ["\n".join(one.replace("\n", " ") for one in sentences(text)) for text in texts]
            for texts in (pairs.candidates, pairs.references)
        )
        counts = np.diff(pairs.start).tolist()
        rest = iter(theirs)
        return pairs_of(ours, [[next(rest) for _ in range(count)] for count in counts])

    def _cut(self, pairs: Pairs, sentences: Callable[[str], list[str]]) -> Words:
        """Encode the tokens of the user's tokenizer, with their sentences."""
        tokenize = self._tokenize
        assert tokenize is not None
        code: dict[str, int] = {}
        sides = []
        for texts in (pairs.candidates, pairs.references):
            codes: list[int] = []
            many, first, start = [], [], [0]
            for text in texts:
                before = len(codes), len(start)
                for sentence in sentences(text):
                    codes.extend(code.setdefault(one, len(code)) for one in tokenize(sentence))
                    if len(codes) > start[-1]:
                        start.append(len(codes))
                many.append(len(codes) - before[0])
                first.append(len(start) - before[1])
            tokens = offsets_of(np.array(many, np.int64)), np.array(codes, np.int32)
            sides.append((tokens, (offsets_of(np.array(first, np.int64)), np.array(start))))
        (ours, our_lines), (theirs, their_lines) = sides
        return Words(Tokens(ours, theirs, max(len(code), 1)), our_lines, their_lines)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _nltk_sentences() -> Callable[[str], list[str]]:
    """Return NLTK's sentence splitter, as used by rouge-score.

    Raises:
        OptionError: NLTK is not installed.
    """
    try:
        split: Callable[[str], list[str]] = import_module("nltk").sent_tokenize
    except ImportError:
        raise OptionError(
            "split_summaries=True splits sentences by NLTK, which is not installed: pip install"
            " nltk and its data punkt_tab; or put a line break behind every sentence and omit it."
        ) from None
    return split
