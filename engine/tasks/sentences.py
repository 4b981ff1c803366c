"""Sentences of texts in English."""

from __future__ import annotations

import polars as pl

from ..kernels.sentences import hashed_words, split_sentences
from ..schemas.arrays import Array
from .packing import packed, unpacked

# Words that decide whether a full stop ends an English sentence.

_TITLES = (
    "mr mrs ms mx dr prof rev hon st gen col maj capt lt cmdr sgt cpl pvt gov sen rep pres supt adm"
    " messrs mme mlle fr"
)
_ABBREVIATIONS = (
    "jr sr esq ph.d m.d b.a m.a b.sc m.sc d.c u.s u.k u.n e.u e.g i.e a.m p.m a.d b.c b.c.e c.e"
    " cf viz vs v etc al et.al resp approx ca est inc ltd co corp bros dept univ assn ave blvd rd"
    " mt ft sq pl jan feb apr jun jul aug sep sept oct nov dec tue tues thu thur thurs fri nos vol"
    " vols ed eds fig figs eq eqs sec ch chap pp p refs op cit ibid trans tel ext avg hr hrs oz lb"
    " lbs cm mm km kg ala ariz ark calif colo conn fla ga ind kan ky md mich minn mo mont neb nev"
    " okla pa penn tenn tex va vt wis wyo ont que"
)
_STARTERS = (
    "the he she it they we you i this that these those there here his her their our its my your in"
    " on at by for from with as if when while after before since during although though however"
    " moreover meanwhile but and so then what who why how where which one some many most all both"
    " each another no not a an also today yesterday now"
)

TITLES = hashed_words(tuple(_TITLES.split()))
"""Words that a name follows, so that their stop never ends a sentence."""
ABBREVIATIONS = hashed_words(tuple(_ABBREVIATIONS.split()))
"""Words written with a stop, without those that are words of their own more often."""
STARTERS = hashed_words(tuple(_STARTERS.split()))
"""Words that often begin a sentence: after an abbreviation, with a capital, they do."""


def sentences_of(texts: pl.Series) -> tuple[pl.Series, Array]:
    """Split English texts into sentences; also return their offsets per text, int64 [n + 1].

    See :func:`evalengine.kernels.sentences.split_sentences` for the rules. NLTK's Punkt, used by
    the
    reference, learned its abbreviations from newspapers; ours are a list.
    """
    data, start, text_start = split_sentences(*packed(texts), ABBREVIATIONS, TITLES, STARTERS)
    return unpacked(data, start), text_start
