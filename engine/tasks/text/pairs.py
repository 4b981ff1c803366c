"""Candidates and their references, tokenizers, tokens that several measures share, and measures."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import text_bytes
from ...kernels.text import ngram_matches
from ...kernels.words import (
    DECIMAL,
    SINGLE,
    SPACE,
    TOKEN,
    WORD,
    code_points,
    local_codes,
    mteval_words,
    words_at_spaces,
    words_by_rules,
)
from ...metrics.averages import mean_metric, pooled
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.options import DECLARED
from ...tallies.datums import parameters
from ...tallies.stats import Column
from ...tallies.tables import Coded
from ..encoding import Workers
from .dialects import TER_OPTIONS, Settings

R = TypeVar("R")
Hashed = tuple[Array, Array, Array]
"""First and second hash of each token, uint64; offsets of the tokens of each text, int64."""


class Pairs(msgspec.Struct, frozen=True):
    """Scored texts, each with one reference or more.

    Attributes:
        candidates: String [n], without nulls.
        references: String [m], without nulls, those of a candidate adjacent.
        start: int64 [n + 1], offsets of the references of each candidate; each has at least one.
        made: cache shared by measures, by name; see :meth:`once`. ``vectors`` are those of the
            tables or of an embedder, ``contexts`` the contexts of each candidate as one text
            (String [n], null for none), if any.
    """

    candidates: pl.Series
    references: pl.Series
    start: Array
    made: dict[Any, Any]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def candidate(self) -> Array:
        """The candidate of each reference, int64 [m]."""
        start = self.start
        return self.once(
            "candidate", lambda: np.repeat(np.arange(start.size - 1), start[1:] - start[:-1])
        )

    def once(self, name: Any, make: Callable[[], R]) -> R:
        """Return a cached value, or compute it on first use."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of all texts, with codes valid within one candidate and its references.

    Attributes:
        candidates: offsets of the tokens of each candidate, int64 [n + 1]; codes, int32.
        references: same for the references.
        n_codes: one more than the highest code.
    """

    candidates: tuple[Array, Array]
    references: tuple[Array, Array]
    n_codes: int

    @property
    def lengths(self) -> tuple[Array, Array]:
        """Number of tokens of each candidate, and of each reference."""
        ours, theirs = self.candidates[0], self.references[0]
        return ours[1:] - ours[:-1], theirs[1:] - theirs[:-1]


def of_code_points(ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> Tokens:
    """Return characters as tokens; kernels allocate a table up to the highest code point."""
    highest = max(int(codes.max(initial=0)) for _, codes in (ours, theirs))
    return Tokens(ours, theirs, highest + 1)


def best_reference(value: Array, start: Array) -> Array:
    """Return the first reference of each candidate with its highest value, int64 [n].

    Args:
        value: float64 [m], without NaN.
        start: int64 [n + 1], offsets of the references of each candidate, at least one each.
    """
    many = np.diff(start)
    if value.size == many.size:
        return np.arange(many.size)
    highest = np.maximum.reduceat(value, start[:-1])
    place = np.where(value == np.repeat(highest, many), np.arange(value.size), value.size)
    return np.minimum.reduceat(place, start[:-1])


def _ngrams(first: int, last: int, candidate: Array, *rest: Any) -> None:
    ngram_matches(first, last, (candidate, np.arange(candidate.size + 1)), *rest)


class Texts:
    """Scored texts with the settings of a run, as measures read them."""

    def __init__(self, pairs: Pairs, settings: Settings, workers: Workers) -> None:
        self.pairs, self.settings, self.workers = pairs, settings, workers

    def sides(self, cut: Callable[[pl.Series], R]) -> tuple[R, R]:
        """Call a function on the candidates and on the references."""
        return cut(self.pairs.candidates), cut(self.pairs.references)

    def cased(self, texts: pl.Series) -> pl.Series:
        """Return texts, in lower case if case is ignored."""
        return texts.str.to_lowercase() if self.settings.lowercase else texts

    def tokens(self, cut: Callable[[pl.Series], Hashed]) -> Tokens:
        """Tokens of all texts, from a function that hashes those of some."""
        return self.coded(*self.sides(cut))

    def coded(self, candidates: Hashed, references: Hashed) -> Tokens:
        """Codes of hashed tokens, candidate by candidate."""
        codes = np.empty(candidates[0].size, np.int32), np.empty(references[0].size, np.int32)
        sides = tuple((side[2], side[0], side[1]) for side in (candidates, references))
        most = self.workers.over(
            candidates[2],
            lambda first, last: local_codes(
                first, last, self.pairs.start, sides[0], sides[1], codes
            ),
        )
        return Tokens((candidates[2], codes[0]), (references[2], codes[1]), max(most, default=0))

    def each(
        self,
        kernel: Callable[..., None],
        tokens: Tokens,
        *sides: Any,
        shape: tuple[int, ...] = (),
        out: Array | None = None,
    ) -> Array:
        """Run a counting kernel on each pair of reference and candidate, int64 [m, ...].

        Args:
            kernel: takes a range, the candidate of each reference, both sides, the number of codes,
                and the result.
            sides: candidates and references for the kernel; those of the tokens by default.
            shape: of the result of one pair.
            out: filled and returned; None to allocate it.
        """
        counts = np.empty((len(self.pairs.references), *shape), np.int64) if out is None else out
        read = self.pairs.candidate, *(sides or (tokens.candidates, tokens.references))
        self.workers.over(
            tokens.references[0],
            lambda first, last: kernel(first, last, *read, tokens.n_codes, counts),
        )
        return counts

    def ngrams(self, tokens: Tokens, orders: int) -> Array:
        """Clipped n-grams that each reference shares with its candidate, int64 [m, orders]."""
        return self.each(_ngrams, tokens, shape=(orders,))

    def best(self, values: Mapping[str | None, Array]) -> list[Values]:
        """The values of each candidate's best reference by the first of them.

        Args:
            values: statistic, None for the metric value, -> float64 [m], without NaN.
        """
        at = best_reference(next(iter(values.values())), self.pairs.start)
        return [Values(value[at], statistic=name) for name, value in values.items()]


# Measures: from candidates and references to one row of numbers per candidate.

_USUAL: dict[str, Any] = {
    "use_stemmer": False,
    "rouge_tokenizer": "ascii",
    "tokenizer": "words",
    "smoothing": "none",
    "bleu_weights": (0.25,) * 4,
    "lowercase": False,
    **dict.fromkeys(TER_OPTIONS, False),
    "similarity_threshold": None,
    "faithfulness_threshold": DECLARED["faithfulness_threshold"].default,
    "stop_words": None,
}
"""Option -> value that is not reported in ``parameters``."""


class Values(msgspec.Struct, frozen=True):
    """Numbers of candidates.

    Attributes:
        values: float64 [n], or [n, parts] of numbers that are summed over datums.
        statistic: None for the value of the metric.
        reason: why a value is undefined.
        status: see :class:`~evalengine.tallies.stats.Column`.
    """

    values: Array
    statistic: str | None = None
    reason: str | None = None
    status: Coded | None = None


class Measure(msgspec.Struct, frozen=True):
    """A measure of texts, which computes the columns of a need.

    Attributes:
        name: metric of its rows.
        of: maps texts to values. The first select the best of several candidates of a datum; the
            others are of the same candidate.
        params: options of the metric, reported if they are not as usual.
        summed: the last values are summed over datums before a formula.
        vectors: computed from vectors instead of texts.
    """

    name: str
    of: Callable[[Texts], list[Values]]
    params: tuple[str, ...] = ()
    summed: bool = False
    vectors: bool = False

    def __call__(self, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
        """Return columns of float64 [n, 1, n_k]."""
        options = {name: getattr(settings, name) for name in _USUAL if name in self.params}
        other = tuple((name, one) for name, one in options.items() if one != _USUAL[name])
        return tuple(
            Column(
                metric=self.name,
                statistic=one.statistic,
                parameters=(_stop_word_count(other),),
                k=(None,) if one.values.ndim == 1 else tuple(range(one.values.shape[1])),
                values=one.values[:, None, None] if one.values.ndim == 1 else one.values[:, None],
                reason=one.reason,
                status=one.status,
            )
            for one in self.of(Texts(pairs, settings, workers))
        )


@lru_cache
def _stop_word_count(options: tuple[tuple[str, Any], ...]) -> str | None:
    values = {name: len(one) if name == "stop_words" else one for name, one in options}
    return parameters(**values) if values else None


def metric(
    name: str,
    need: str,
    of: Callable[[Texts], list[Values]],
    definition: str,
    formula: str,
    *,
    source: str,
    params: tuple[str, ...] = (),
    of_sums: Callable[[Array, Any], Array] | None = None,
    vectors: bool = False,
    **rest: Any,
) -> Metric:
    """Define a metric: the mean over datums of its need, or a formula of sums over datums.

    Args:
        need: name of its measure.
        of: see :class:`Measure`, as for ``vectors``.
        definition: one sentence.
        formula: in TeX.
        of_sums: from sums [r, parts] and settings to values [r]; None for a mean.
        **rest: other fields of :class:`~evalengine.metrics.Metric`.
    """
    if of_sums is not None:
        rest["compute"] = pooled(need, name, of_sums)
    measures = {need: Measure(name, of, params, of_sums is not None, vectors)}
    fields = {"formula": formula, "definition": definition, "source": source, **rest}
    return mean_metric("text", name, need, params=params, measures=measures, **fields)


# Kinds of characters by code point, as Python's Unicode tables have them.

_ASCII, _EVERY = 128, 0x110000
_OTHER_WORDS = (
    (0x200C, 0x200E),  # joiners
    (0x24B6, 0x24EA),  # circled letters
    (0x1F130, 0x1F14A),  # squared letters
    (0x1F150, 0x1F16A),
    (0x1F170, 0x1F18A),
)
"""Ranges of word characters that are neither letters, marks nor numbers by their category."""
_SINGLE = (
    (0x3040, 0x3100),  # kana
    (0x31F0, 0x3200),
    (0x3400, 0xA000),  # Chinese characters
    (0xF900, 0xFB00),
    (0x20000, 0x32000),
)
"""Ranges of scripts without spaces between words, whose letters are tokens one by one."""


def codes_needed(data: Array) -> int:
    """Return the length of a code table for a text's bytes: most are ASCII."""
    return _ASCII if data.size == 0 or int(data.max()) < 0x80 else _EVERY


@cache
def regex_kinds(size: int) -> Array:
    r"""Classify code points: ``WORD`` as ``\w``, ``DECIMAL`` as ``\d``, ``SPACE`` as ``\s``.

    These are the classes of the engine ``regex``, used by NLTK 3.10: marks, letter numbers, circled
    letters and joiners belong to words, superscripts and fractions do not; the four separators of
    ASCII (0x1C to 0x1F) are not white space.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Nd":
            kinds[code] = WORD | DECIMAL
        elif category[0] in "LM" or category in ("Nl", "Pc"):
            kinds[code] = WORD
        elif character.isspace() and not 0x1C <= code <= 0x1F:
            kinds[code] = SPACE
    for begin, end in _OTHER_WORDS:
        kinds[begin:end] = WORD
    return kinds


@cache
def token_kinds(size: int) -> Array:
    """Classify code points for the Unicode tokenizer of ROUGE.

    Letters, digits and combining marks form tokens; Chinese characters and kana are single tokens;
    everything else is a separator.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            kinds[code] = TOKEN
    for begin, end in _SINGLE:
        some = kinds[begin:end]
        some[some == TOKEN] = SINGLE
    return kinds


# Tokenizers of BLEU by name: from texts to hashes of tokens.

SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""Characters removed by Python's ``str.strip``."""
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_CHINESE = (
    r"[\u{3400}-\u{4DB5}\u{4E00}-\u{9FBB}\u{F900}-\u{FA2D}\u{FA30}-\u{FA6A}\u{FA70}-\u{FAD9}"
    r"\u{2001}-\u{2A6D}\u{2F81}-\u{2FA1}\u{FF00}-\u{FFEF}\u{2E80}-\u{2EFF}\u{3000}-\u{303F}"
    r"\u{31C0}-\u{31EF}\u{2F00}-\u{2FDF}\u{2FF0}-\u{2FFF}\u{3100}-\u{312F}\u{31A0}-\u{31BF}"
    r"\u{FE10}-\u{FE1F}\u{FE30}-\u{FE4F}\u{2600}-\u{26FF}\u{2700}-\u{27BF}\u{3200}-\u{33FF}]"
)
"""Chinese characters for sacrebleu's tokenizer zh: its two ranges beyond U+FFFF are compared as
strings of two characters, and so mean U+2001 to U+2A6D and U+2F81 to U+2FA1.
"""


def by_rules(texts: pl.Series) -> Hashed:
    r"""The tokens of Valor's regular expression, ``\w+|\$[\d]+|[^\s\.]+``."""
    data, start = text_bytes(texts)
    return words_by_rules(data, start, regex_kinds(codes_needed(data)))


def mteval(texts: pl.Series) -> Hashed:
    """sacrebleu's 13a."""
    data, start = text_bytes(texts)
    last = data[start[1:][start[1:] > start[:-1]] - 1]
    # Most texts end in a visible ASCII character and have a single line.
    if ((last <= ord(" ")) | (last > ord("~"))).any() or any((data == ord(c)).any() for c in "\n<"):
        column = pl.col(texts.name).str.strip_chars_end(SPACES)
        texts = _replaced(texts, column, (("<skipped>", ""), ("-\n", ""), ("\n", " ")))
        data, start = text_bytes(texts)
    if bool((data == ord("&")).any()):
        data, start = text_bytes(_replaced(texts, pl.col(texts.name), _ENTITIES))
    return mteval_words(data, start, padded=True)


def _replaced(texts: pl.Series, column: pl.Expr, pairs: tuple[tuple[str, str], ...]) -> pl.Series:
    """Texts with pieces replaced one after the other, in one query: each costs a millisecond."""
    for piece, instead in pairs:
        column = column.str.replace_all(piece, instead, literal=True)
    return texts.to_frame().select(column).to_series()


def chinese(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's zh: Chinese characters separately, the rest by the rules of 13a."""
    texts = texts.str.strip_chars(SPACES).str.replace_all(f"({_CHINESE})", " ${1} ")
    return mteval_words(*text_bytes(texts), padded=False)


def international(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's intl: separate symbols, and punctuation not between digits."""
    texts = texts.str.strip_chars_end(SPACES)
    for pattern, instead in (
        (r"(\P{N})(\p{P})", "${1} ${2} "),
        (r"(\p{P})(\P{N})", " ${1} ${2}"),
        (r"(\p{S})", " ${1} "),
    ):
        texts = texts.str.replace_all(pattern, instead)
    return words_at_spaces(*text_bytes(texts))


def characters(texts: pl.Series) -> Hashed:
    """Characters but white space."""
    return _hashed(*code_points(*text_bytes(texts), spaces=False))


def every_character(texts: pl.Series) -> Hashed:
    """All characters."""
    return _hashed(*code_points(*text_bytes(texts), spaces=True))


def _hashed(start: Array, codes: Array) -> Hashed:
    """Code points as their own hashes."""
    exact = codes.astype(np.uint64)
    return exact * np.uint64(0x9E3779B97F4A7C15), exact, start


TOKENIZERS: dict[str, Callable[[pl.Series], Hashed]] = {
    "words": by_rules,
    "none": lambda texts: words_at_spaces(*text_bytes(texts)),
    "13a": mteval,
    "char": characters,
    "intl": international,
    "zh": chinese,
}
"""Name of a tokenizer -> function."""


# Content words of English texts: words without punctuation and function words.

PUNCTUATION = r"[!-/:-@\[-`{-~]"
BETWEEN = f"[{SPACES}]+"
_EDGE = r"[^\p{L}\p{N}]"
_FUNCTION_WORDS = (
    # determiners
    "a an the this that these those all any both each every few more most much many no other some"
    " such same own another either neither several"
    # pronouns
    " i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his"
    " himself she her hers herself it its itself they them their theirs themselves what which who"
    " whom whose"
    # verbs that help others
    " am is are was were be been being have has had having do does did doing can could will would"
    " shall should may might must"
    # prepositions
    " about above across after against along among around at before behind below beneath beside"
    " between beyond by down during for from in inside into near of off on onto out outside over"
    " since through throughout to toward towards under until up upon with within without"
    # conjunctions
    " and but or nor if because as while although though unless whether than so"
    # adverbs that point or grade
    " again further then once here there when where why how just only very too also now not"
)
FUNCTION_WORDS = tuple(_FUNCTION_WORDS.split())
"""English function words, by word class."""
_TWO_IN_ONE = (
    f"({_EDGE})(?:(can)(not)|(g[iı]m)(me)|(gon)(na)|(got)(ta)|(lem)(me))({_EDGE})",
    "${1} ${2}${4}${6}${8}${10} ${3}${5}${7}${9}${11} ${12}",
)
_BEFORE_SPACE = (f"({_EDGE})(wan)(na) ", "${1} ${2} ${3}  ")
_NUMBER = r" \p{Nd}+(?:e\p{Nd}+)? "


def _value(number: str) -> str:
    """The same spelling for the same number in double precision; no word has a ``#``."""
    decimal = all(letter.isdecimal() or letter == "e" for letter in number)
    return f"#{float(number)!r}" if decimal else number


def spaced_words(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Return lowercase texts without ASCII punctuation and some words, double-spaced.

    Args:
        texts: String, without nulls.
        words: words to remove, lower case, without white space.
    """
    lowered = texts.str.to_lowercase().str.replace_all(PUNCTUATION, "")
    separated = pl.concat_str(pl.lit(" "), lowered.str.replace_all(BETWEEN, "  "), pl.lit(" "))
    spaced = pl.select(separated).to_series()
    if not words:
        return spaced
    return spaced.str.replace_many([f" {word} " for word in words], [""] * len(words))


def content_words(texts: pl.Series, words: tuple[str, ...] = FUNCTION_WORDS) -> pl.Series:
    """Return the content words of texts, separated by white space.

    Texts are lowercased; ASCII punctuation is removed ("$1,234.50" is 123450), then stop words;
    words such as "cannot" and "gonna" become two, as in the Penn treebank (R. MacIntyre's rules);
    numbers of the same value ("007", "7", "1e3") become the same word.

    Args:
        texts: String, without nulls.
        words: stop words, lower case, without white space.
    """
    cleaned = spaced_words(texts, words)
    for pattern, instead in (_TWO_IN_ONE, _TWO_IN_ONE, _BEFORE_SPACE):
        cleaned = cleaned.str.replace_all(pattern, instead)
    numbers = cleaned.str.extract_all(_NUMBER).explode(empty_as_null=False).unique().to_list()
    if numbers:
        cleaned = cleaned.str.replace_many(numbers, [f" {_value(one.strip())} " for one in numbers])
    return cleaned
