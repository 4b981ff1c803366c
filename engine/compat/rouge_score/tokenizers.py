"""Tokenizers of ROUGE: what cuts texts where the engine's own words will not do."""

from __future__ import annotations

import abc


class Tokenizer(abc.ABC):
    """Base of tokenizers; anything with ``tokenize`` will do."""

    @abc.abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, in order."""


class DefaultTokenizer(Tokenizer):
    """Lower-case words of a to z and digits; :class:`.RougeScorer` has the engine cut them.

    Args:
        use_stemmer: whether words of four letters and more are stemmed.
    """

    def __init__(self, use_stemmer: bool = False) -> None:
        self.use_stemmer = use_stemmer

    def tokenize(self, text: str) -> list[str]:
        """Refused: the engine holds hashes of tokens, and never makes strings of them."""
        raise NotImplementedError(
            "DefaultTokenizer is for RougeScorer(tokenizer=...) alone; for tokens as strings use"
            " rouge_score.tokenizers.DefaultTokenizer."
        )
