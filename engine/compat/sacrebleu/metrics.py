"""``BLEU``, ``CHRF`` and ``TER``, as in sacrebleu."""

from __future__ import annotations

import json
import logging
import math
import os
import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...metrics import measures
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, invalid
from ...tasks.text.dialects import MOST_ORDERS
from ...tasks.text.metrics.ngrams import chrf, of_characters, of_words, sentence_counts
from ...tasks.text.pairs import TOKENIZERS, Pairs, Texts, best_reference
from ..arrays import pairs_of, settings_of, workers_for

# Results of sacrebleu's metrics: number, components, printed form.

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
        score_text = f"{self.score:.{width}f}"
        members: dict[str, Any] = {
            "name": self.name,
            "score": float(score_text),
            "signature": signature,
        }
        if self._mean > 0:
            mean, spread = f"{self._mean:.{width}f}", f"{self._ci:.{width}f}"
            members |= {"confidence_mean": float(mean), "confidence_var": float(spread)}
            members["confidence"] = f"μ = {mean} ± {spread}"
            score_text += f" ({members['confidence']})"
        if self._verbose:
            members["verbose_score"] = self._verbose
        if score_only:
            return score_text
        if is_json:
            members |= dict(part.split(":") for part in signature.split("|"))
            return json.dumps(members, indent=1, ensure_ascii=False)
        name = f"{self.name}|{signature}" if signature else self.name
        return f"{name} = {score_text} {self._verbose}".rstrip(" ")

    def estimate_ci(self, scores: Iterable[Score]) -> None:
        """Store the mean of resampled scores and half the width of their 95% interval."""
        values: list[Any] = sorted(one.score for one in scores)
        if any(isinstance(value, np.float32) for value in values):
            values = [np.float32(value) for value in values]  # scores of empty resamples are floats
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
        flag_words = {True: "yes", False: "no"}
        parts = [
            f"{self._short[name] if short else name}:"
            f"{flag_words[value] if isinstance(value, bool) else value}"
            for name, value in {**self.info, "version": VERSION}.items()
            if value is not None
        ]
        return "|".join(parts)

    def update(self, key: str, value: Any) -> None:
        """Set one part."""
        self.info[key] = value

    def __repr__(self) -> str:
        return self.format()


# ``BLEU``, ``CHRF`` and ``TER``: counts by the engine's kernels, and their last formula.

References = Sequence[Sequence[str | None]]

_log = logging.getLogger(__name__)
_SHORT = {
    "nrefs": "#",
    "test": "t",
    "lang": "l",
    "subset": "S",
    "origlang": "o",
    "bs": "bs",
    "ar": "ar",
    "seed": "rs",
    "version": "v",
    "case": "c",
    "eff": "e",
}
"""Short names of signature parts that all metrics have."""
_TOKENIZED = 100
"""Lines that end in a stop between spaces from which texts seem to be tokens already."""


class Metric(ABC):
    """A metric of texts whose counts add up over a corpus."""

    _short: ClassVar[dict[str, str]]
    _advice = ""
    """Advice on scores of single texts."""

    def __init__(self, references: References | None) -> None:
        self.n_bootstrap: int | None = None
        self.seed: str | None = None
        self.num_refs: int | None = None
        self._references = None if references is None else self._lines(references)

    def corpus_score(
        self, hypotheses: Sequence[str], references: References | None, n_bootstrap: int = 1
    ) -> Any:
        """Compute the score of all texts together.

        Args:
            hypotheses: the texts.
            references: streams of references, each of the same length; None in a stream if a text
                has fewer. None for those given to the class.
            n_bootstrap: resamples for the mean and the 95% interval in the printed score; the seed
                is the variable SACREBLEU_SEED, by default 12345.

        Raises:
            InputError: different lengths, no text, a text without reference, a value that is not a
                string.
        """
        counts = self._counts(hypotheses, references)
        result = self._score(_total(counts))
        if n_bootstrap > 1:
            self.n_bootstrap, self.seed = n_bootstrap, os.environ.get("SACREBLEU_SEED", "12345")
            self.seed = self.seed.lower()
            rng = np.random.default_rng(None if self.seed == "none" else int(self.seed))
            places = rng.choice(len(counts), size=(n_bootstrap, len(counts)), replace=True)
            single = counts.astype(np.float32)  # sacrebleu resamples in single precision
            result.estimate_ci(self._score(single[row].sum(0)) for row in places)
        return result

    def sentence_score(self, hypothesis: str, references: Sequence[str | None]) -> Any:
        """Compute the score of one text.

        Raises:
            InputError: no reference, or a value that is not a string.
        """
        if isinstance(references, str) or not isinstance(hypothesis, str):
            raise InputError("give a string and a list of its references.", code="wrong_type")
        self._advise()
        streams = [[one] for one in references]
        return self._score(_total(self._counts([hypothesis], streams)))

    def sentence_scores(
        self, hypotheses: Sequence[str], references: References | None
    ) -> list[Any]:
        """:meth:`sentence_score` of many texts at once; arguments as of :meth:`corpus_score`."""
        self._advise()
        return [self._score(row.tolist()) for row in self._counts(hypotheses, references)]

    def get_signature(self) -> Signature:
        """Return the settings of the last score.

        Raises:
            InputError: no text was scored yet.
        """
        if self.num_refs is None:
            raise InputError(
                "the number of references is not known: score something first.",
                code="not_evaluated",
            )
        shared = {
            "nrefs": "var" if self.num_refs < 0 else self.num_refs,
            "bs": self.n_bootstrap,
            "seed": self.seed,
        }
        return Signature({**shared, **self._signature_parts()}, _SHORT | self._short)

    def _lines(self, references: References) -> list[list[str]]:
        """References by text."""
        if isinstance(references, str) or any(isinstance(one, str) for one in references):
            raise InputError(
                "references are streams, lists of strings as long as the texts: with one"
                " reference a text, [references].",
                code="wrong_type",
                side="references",
            )
        if len({len(one) for one in references}) != 1:
            lengths = ", ".join(str(len(one)) for one in references) or "none"
            raise InputError(
                f"streams of references must be as long as each other: {lengths}.",
                code="lengths_differ",
                lengths=[len(one) for one in references],
            )
        lines = [[one for one in row if one is not None] for row in zip(*references, strict=True)]
        many = {len(line) for line in lines}
        self.num_refs = many.pop() if len(many) == 1 else -1
        return lines

    def _counts(self, hypotheses: Sequence[str], references: References | None) -> Array:
        lines = self._references if not references else self._lines(references)
        if lines is None:
            raise InputError(
                "no references: give them here or to the class.", code="references_missing"
            )
        if isinstance(hypotheses, str) or len(hypotheses) != len(lines) or not lines:
            n = 1 if isinstance(hypotheses, str) else len(hypotheses)
            raise InputError(
                f"lists of texts and references are as long, one or more: {n} texts,"
                f" references of {len(lines)}.",
                code="lengths_differ",
                lengths=[n, len(lines)],
            )
        return self._measured(pairs_of(hypotheses, lines))

    def _advise(self) -> None:
        if self._advice:
            _log.warning(self._advice)

    @abstractmethod
    def _measured(self, pairs: Pairs) -> Array:
        """Counts of each text, [n, counts]."""

    @abstractmethod
    def _score(self, counts: Any) -> Score:
        """The score of counts."""

    @abstractmethod
    def _signature_parts(self) -> dict[str, Any]:
        """Parts of the signature."""


def _total(counts: Array) -> list[Any]:
    """Sums over all texts, added one after the other, as Python's numbers."""
    return (
        counts.sum(axis=0) if counts.dtype.kind == "i" else np.cumsum(counts, axis=0)[-1]
    ).tolist()


class BLEU(Metric):
    """BLEU with the arguments and numbers of sacrebleu.

    Args:
        lowercase: whether to ignore case.
        force: suppress the warning about texts that look tokenized.
        tokenize: 13a (default; zh if ``trg_lang`` is zh), intl, zh, char or none.
        smooth_method: exp, floor, add-k or none.
        smooth_value: for floor and add-k, by default 0.1 and 1.
        max_ngram_order: highest order of n-grams.
        effective_order: skip orders that the texts are too short for.
        trg_lang: language of the texts.
        references: streams of references, default of :meth:`corpus_score`.

    Raises:
        OptionError: an unknown tokenizer or smoothing, or an order out of range.
    """

    SMOOTH_DEFAULTS: ClassVar[dict[str, float | None]] = {
        "none": None,
        "floor": 0.1,
        "add-k": 1,
        "exp": None,
    }
    TOKENIZERS = ("none", "zh", "13a", "intl", "char")
    TOKENIZER_DEFAULT = "13a"
    _short: ClassVar[dict[str, str]] = {"tok": "tok", "smooth": "s"}

    def __init__(
        self,
        lowercase: bool = False,
        force: bool = False,
        tokenize: str | None = None,
        smooth_method: str = "exp",
        smooth_value: float | None = None,
        max_ngram_order: int = 4,
        effective_order: bool = False,
        trg_lang: str = "",
        references: References | None = None,
    ) -> None:
        if smooth_method not in self.SMOOTH_DEFAULTS:
            raise invalid(
                "smooth_method", smooth_method, f"write one of {', '.join(self.SMOOTH_DEFAULTS)}."
            )
        if not 1 <= max_ngram_order <= MOST_ORDERS:
            raise invalid("max_ngram_order", max_ngram_order, f"from 1 to {MOST_ORDERS}.")
        by_language = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
        name = tokenize or by_language.get(trg_lang, self.TOKENIZER_DEFAULT)
        if name not in self.TOKENIZERS or name not in TOKENIZERS:
            raise invalid(
                "tokenize",
                name,
                f"there are {', '.join(self.TOKENIZERS)}. Cut the texts by it yourself and"
                " write tokenize='none'.",
            )
        self.lowercase, self.trg_lang, self.tokenizer_signature = lowercase, trg_lang, name
        self.smooth_method, self.smooth_value = smooth_method, smooth_value
        self.max_ngram_order, self.effective_order = max_ngram_order, effective_order
        self._force = force
        if not effective_order:
            self._advice = "BLEU of single sentences is better with effective_order=True."
        self._settings = settings_of(
            "sacrebleu",
            lowercase=bool(lowercase),
            tokenizer=name,
            bleu_weights=(1 / max_ngram_order,) * max_ngram_order,
        )
        super().__init__(references)

    def _measured(self, pairs: Pairs) -> Array:
        many = len(pairs) >= _TOKENIZED and not self._force
        if many and pairs.candidates.str.ends_with(" .").sum() >= _TOKENIZED:
            _log.warning(
                "%d or more texts end in ' .': are they tokens already? Scores of detokenised"
                " texts can be compared; force=True silences this.",
                _TOKENIZED,
            )
        return sentence_counts(Texts(pairs, self._settings, workers_for(pairs)))

    def _score(self, counts: Any) -> BLEUScore:
        n = self.max_ngram_order
        return self.compute_bleu(
            counts[2 : 2 + n],
            counts[2 + n :],
            int(counts[0]),
            int(counts[1]),
            self.smooth_method,
            self.smooth_value,
            self.effective_order,
            n,
        )

    @staticmethod
    def compute_bleu(
        correct: Any,
        total: Any,
        sys_len: int,
        ref_len: int,
        smooth_method: str = "none",
        smooth_value: float | None = None,
        effective_order: bool = False,
        max_ngram_order: int = 4,
    ) -> BLEUScore:
        """BLEU of counts by order; add-k is added to the counts that are given."""
        if smooth_value is None:
            smooth_value = BLEU.SMOOTH_DEFAULTS[smooth_method]
        brevity = 1.0
        if sys_len < ref_len:
            brevity = math.exp(1 - ref_len / sys_len) if sys_len > 0 else 0.0
        precisions: list[Any] = [0.0] * max_ngram_order
        if not any(correct):
            return BLEUScore(0.0, correct, total, precisions, brevity, sys_len, ref_len)
        orders, halved = max_ngram_order, 1.0
        for i in range(max_ngram_order):
            if smooth_method == "add-k" and i:
                correct[i] += smooth_value
                total[i] += smooth_value
            if total[i] == 0:
                break
            if effective_order:
                orders = i + 1
            if correct[i] != 0:
                precisions[i] = 100.0 * correct[i] / total[i]
            elif smooth_method == "exp":
                halved *= 2
                precisions[i] = 100.0 / (halved * total[i])
            elif smooth_method == "floor":
                precisions[i] = 100.0 * smooth_value / total[i]  # type: ignore[operator]
        logs = [math.log(one) if one else -9999999999.0 for one in precisions[:orders]]
        score = brevity * math.exp(sum(logs) / orders)
        return BLEUScore(score, correct, total, precisions, brevity, sys_len, ref_len)

    def _signature_parts(self) -> dict[str, Any]:
        default = self.SMOOTH_DEFAULTS[self.smooth_method]
        value = default if self.smooth_value is None else self.smooth_value
        value_text = "" if default is None else f"[{value:.2f}]"
        return {
            "case": "lc" if self.lowercase else "mixed",
            "eff": bool(self.effective_order),
            "tok": self.tokenizer_signature,
            "smooth": f"{self.smooth_method}{value_text}",
        }


class CHRF(Metric):
    """chrF, and chrF++ with ``word_order=2``; arguments and numbers of sacrebleu.

    Args:
        char_order: highest order of character n-grams.
        word_order: highest order of word n-grams.
        beta: weight of recall.
        lowercase: whether to ignore case.
        whitespace: whether white space counts as characters.
        eps_smoothing: mean of F over all orders, with a tiny number for empty ones.
        references: see :class:`BLEU`.

    Raises:
        OptionError: an order out of range.
    """

    CHAR_ORDER, WORD_ORDER, BETA = 6, 0, 2
    _short: ClassVar[dict[str, str]] = {"nc": "nc", "nw": "nw", "space": "s"}

    def __init__(
        self,
        char_order: int = CHAR_ORDER,
        word_order: int = WORD_ORDER,
        beta: int = BETA,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
        references: References | None = None,
    ) -> None:
        lower, higher = sorted((char_order, word_order))
        if lower < 0 or not 0 < higher <= MOST_ORDERS:
            raise OptionError(
                f"char_order={char_order}, word_order={word_order}: write 0 to {MOST_ORDERS}, one"
                " of them above 0.",
                code="option_value",
                option="char_order",
                value=char_order,
            )
        self.char_order, self.word_order, self.beta = char_order, word_order, beta
        self.lowercase, self.whitespace, self.eps_smoothing = lowercase, whitespace, eps_smoothing
        self._settings = settings_of("sacrebleu", lowercase=bool(lowercase))
        super().__init__(references)

    def _f(self, counts: Array) -> Array:
        return chrf(counts, percent=True, beta=self.beta, smoothed=self.eps_smoothing)

    def _measured(self, pairs: Pairs) -> Array:
        texts = Texts(pairs, self._settings, workers_for(pairs))
        of_kinds = []
        if self.char_order:
            of_kinds.append(of_characters(texts, orders=self.char_order, spaces=self.whitespace))
        if self.word_order:
            of_kinds.append(of_words(texts, orders=self.word_order))
        counts = np.concatenate(of_kinds, axis=1)
        best = best_reference(self._f(counts), pairs.start)
        return counts[best].reshape(best.size, -1)

    def _score(self, counts: Any) -> CHRFScore:
        value = self._f(np.asarray(counts).reshape(1, -1, 3))[0]
        # Means and intervals of resampled scores have the same precision.
        score = value if value.dtype == np.float32 else float(value)
        return CHRFScore(score, self.char_order, self.word_order, self.beta)

    def _signature_parts(self) -> dict[str, Any]:
        return {
            "case": "lc" if self.lowercase else "mixed",
            "eff": not self.eps_smoothing,
            "nc": self.char_order,
            "nw": self.word_order,
            "space": bool(self.whitespace),
        }


class TER(Metric):
    """Translation edit rate with the arguments and numbers of sacrebleu.

    Args:
        normalized: separate punctuation from words.
        no_punct: remove punctuation.
        asian_support: apply both also to Chinese and Japanese.
        case_sensitive: whether case matters.
        references: see :class:`BLEU`.
    """

    _short: ClassVar[dict[str, str]] = {"tok": "t", "norm": "nr", "punct": "pn", "asian": "as"}

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
        references: References | None = None,
    ) -> None:
        self.normalized, self.no_punct = normalized, no_punct
        self.asian_support, self.case_sensitive = asian_support, case_sensitive
        self._settings = settings_of(
            "sacrebleu",
            ter_normalized=bool(normalized),
            ter_no_punct=bool(no_punct),
            ter_asian_support=bool(asian_support),
            ter_case_sensitive=bool(case_sensitive),
        )
        super().__init__(references)

    def _measured(self, pairs: Pairs) -> Array:
        _, counts = measures("text")["ter"](pairs, self._settings, workers_for(pairs))
        return counts.values[:, 0]

    def _score(self, counts: Any) -> TERScore:
        edits, length = counts
        value = edits / length if length > 0 else float(edits > 0)
        return TERScore(100 * value, edits, length)

    def _signature_parts(self) -> dict[str, Any]:
        return {
            "case": "mixed" if self.case_sensitive else "lc",
            "tok": "tercom",
            "norm": bool(self.normalized),
            "punct": not self.no_punct,
            "asian": bool(self.asian_support),
        }
