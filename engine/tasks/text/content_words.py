"""Content words of English texts: words without punctuation and function words."""

from __future__ import annotations

import polars as pl

from .tokenizers import SPACES

MARKS = r"[!-/:-@\[-`{-~]"
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
    known = all(letter.isdecimal() or letter == "e" for letter in number)
    return f"#{float(number)!r}" if known else number


def _without(spaced: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Remove words from texts.

    Args:
        spaced: String, in lower case, with two spaces between words and one around each text, so
            that each word has separate spaces on both sides.
        words: lower case, without white space.
    """
    if not words:
        return spaced
    return spaced.str.replace_many([f" {word} " for word in words], [""] * len(words))


def spaced_words(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Return lowercase texts without ASCII punctuation and some words, double-spaced.

    Args:
        texts: String, without nulls.
        words: words to remove, lower case, without white space.
    """
    bare = texts.str.to_lowercase().str.replace_all(MARKS, "")
    apart = pl.concat_str(pl.lit(" "), bare.str.replace_all(BETWEEN, "  "), pl.lit(" "))
    return _without(pl.select(apart).to_series(), words)


def content_words(texts: pl.Series, words: tuple[str, ...] = FUNCTION_WORDS) -> pl.Series:
    """Return the content words of texts, separated by white space.

    Texts are lowercased; ASCII punctuation is removed ("$1,234.50" is 123450), then stop words;
    words
    such as "cannot" and "gonna" become two, as in the Penn treebank (R. MacIntyre's rules); numbers
    of
    the same value ("007", "7", "1e3") become the same word.

    Args:
        texts: String, without nulls.
        words: stop words, lower case, without white space.
    """
    found = spaced_words(texts, words)
    for pattern, instead in (_TWO_IN_ONE, _TWO_IN_ONE, _BEFORE_SPACE):
        found = found.str.replace_all(pattern, instead)
    numbers = found.str.extract_all(_NUMBER).explode(empty_as_null=False).unique().to_list()
    if numbers:
        found = found.str.replace_many(numbers, [f" {_value(one.strip())} " for one in numbers])
    return found
