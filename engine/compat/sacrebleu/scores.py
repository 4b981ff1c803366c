"""Results of sacrebleu's metrics: number, components, printed form."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

VERSION = "2.6.0"
"""The release of sacrebleu whose numbers these are; signatures name it."""


class Score:
    """Number with its name.

    Attributes:
        name: name of the metric.
        score: 0 to 100 (TER has no upper bound).
    """

    def __init__(self, name: str, score: float) -> None:
        self.name, self.score = name, score
        self._mean = self._ci = -1.0
        self._verbose = ""

    def format(
        self, width: int = 2, score_only: bool = False, signature: str = "", is_json: bool = False
    ) -> str:
        """Format the number as text or JSON.

        Args:
            width: decimal digits.
            score_only: omit the name in text.
            signature: of the metric, added to the name.
            is_json: JSON with the parts of the signature as members; requires a signature.
        """
        shown = f"{self.score:.{width}f}"
        members: dict[str, Any] = {
            "name": self.name,
            "score": float(shown),
            "signature": signature,
        }
        if self._mean > 0:
            mean, spread = f"{self._mean:.{width}f}", f"{self._ci:.{width}f}"
            members |= {"confidence_mean": float(mean), "confidence_var": float(spread)}
            members["confidence"] = f"μ = {mean} ± {spread}"
            shown += f" ({members['confidence']})"
        if self._verbose:
            members["verbose_score"] = self._verbose
        if score_only:
            return shown
        if is_json:
            members |= dict(part.split(":") for part in signature.split("|"))
            return json.dumps(members, indent=1, ensure_ascii=False)
        name = f"{self.name}|{signature}" if signature else self.name
        return f"{name} = {shown} {self._verbose}".rstrip(" ")

    def estimate_ci(self, scores: Iterable[Score]) -> None:
        """Store the mean of resampled scores and half the width of their 95% interval."""
        values: list[Any] = sorted(one.score for one in scores)
        if any(isinstance(value, np.float32) for value in values):
            values = [np.float32(value) for value in values]  # those of nothing are floats
        beyond = len(values) // 40
        self._ci = 0.5 * (values[-1 - beyond] - values[beyond])
        self._mean = statistics.mean(values)

    def __repr__(self) -> str:
        return self.format()


class BLEUScore(Score):
    """BLEU and its components.

    Attributes:
        counts: n-grams that also occur in a reference, by order.
        totals: n-grams, by order.
        precisions: their ratio, smoothed, 0 to 100.
        bp: brevity penalty.
        sys_len: tokens of the texts.
        ref_len: tokens of the references closest in length.
        ratio: sys_len / ref_len, 0 if there are none.
    """

    def __init__(
        self,
        score: float,
        counts: Sequence[Any],
        totals: Sequence[Any],
        precisions: Sequence[Any],
        bp: float,
        sys_len: int,
        ref_len: int,
    ) -> None:
        super().__init__("BLEU", score)
        self.counts, self.totals, self.precisions = counts, totals, precisions
        self.bp, self.sys_len, self.ref_len = bp, sys_len, ref_len
        self.ratio = sys_len / ref_len if ref_len else 0
        self.prec_str = "/".join(f"{one:.1f}" for one in precisions)
        self._verbose = (
            f"{self.prec_str} (BP = {bp:.3f} ratio = {self.ratio:.3f} hyp_len = {sys_len:d}"
            f" ref_len = {ref_len:d})"
        )


class CHRFScore(Score):
    """chrF of an order of characters, an order of words, and a weight of recall."""

    def __init__(self, score: float, char_order: int, word_order: int, beta: int) -> None:
        super().__init__(f"chrF{beta}{'+' * word_order}", score)
        self.char_order, self.word_order, self.beta = char_order, word_order, beta


class TERScore(Score):
    """TER, with the edits and the mean length of references that it is the ratio of."""

    def __init__(self, score: float, num_edits: float, ref_length: float) -> None:
        super().__init__("TER", score)
        self.num_edits, self.ref_length = int(num_edits), ref_length


class Signature:
    """Settings of a number as comparable text.

    Args:
        info: name -> value, in order; None is omitted.
        short: name -> abbreviation.
    """

    def __init__(self, info: Mapping[str, Any], short: Mapping[str, str]) -> None:
        self.info, self._short = dict(info), short

    def format(self, short: bool = False) -> str:
        """``name:value`` of all that is known, the version last."""
        said = {True: "yes", False: "no"}
        parts = [
            f"{self._short[name] if short else name}:"
            f"{said[value] if isinstance(value, bool) else value}"
            for name, value in {**self.info, "version": VERSION}.items()
            if value is not None
        ]
        return "|".join(parts)

    def update(self, key: str, value: Any) -> None:
        """Set one part."""
        self.info[key] = value

    def __repr__(self) -> str:
        return self.format()
