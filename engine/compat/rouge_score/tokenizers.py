"""Tokenizers of ROUGE, for texts that the engine's tokenizer does not cover."""

from __future__ import annotations

import abc


class Tokenizer(abc.ABC):
    """Base of tokenizers; anything with ``tokenize`` will do."""

    @abc.abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, in order."""


class DefaultTokenizer(Tokenizer):
    """Lower-case words of a to z and digits; :class:`.RougeScorer` delegates to the engine.

    Args:
        use_stemmer: whether words of four letters and more are stemmed.
    """

    def __init__(self, use_stemmer: bool = False) -> None:
        self.use_stemmer = use_stemmer

    def tokenize(self, text: str) -> list[str]:
        """Raise NotImplementedError: the engine has only hashes of tokens, not strings."""
        raise NotImplementedError(
            "DefaultTokenizer is only for RougeScorer(tokenizer=...); for tokens as strings use"
            " rouge_score.tokenizers.DefaultTokenizer."
        )
