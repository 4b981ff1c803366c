"""Labels of two sides that seem to be the same and are written or numbered in two ways."""

from __future__ import annotations

import re

import polars as pl

from evalengine.schemas.wording import option

from .problems import Note, count_of

_MOST = 2_000  # labels of a side that are compared letter by letter
_NEAR = 0.8  # similarity from which names may be one
_SHOWN = 5
_LEAST = 3  # numbered classes of a side from which their range tells something


def spelling_notes(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[Note]:
    """What labels that stand on one side only have to do with those of the other.

    Args:
        ours: label_key and label_value of the predictions, each pair once.
        theirs: the same of the ground truths.

    Returns:
        A warning of labels that differ in capitals, blanks, hyphens or plural alone, or of classes
        numbered from 0 and from 1; a note of names that look alike.
    """
    keys = ["label_key", "label_value"]
    lone = [
        a.join(b, on=keys, how="anti", maintain_order="left")["label_value"].drop_nulls().unique()
        for a, b in ((ours, theirs), (theirs, ours))
    ]
    if not all(len(side) for side in lone):
        return []
    if lone[0].dtype.is_integer() and lone[1].dtype.is_integer():
        return _numbered(ours["label_value"], theirs["label_value"], lone[0], lone[1])
    mine, others = (sorted(map(str, side)) for side in lone)
    known = {_plain(other): other for other in others}
    same = {name: known[_plain(name)] for name in mine if _plain(name) in known}
    notes = []
    if same:
        notes.append(
            Note(
                "labels_spelt_apart",
                f"{count_of(len(same), 'label')} of the predictions"
                f" {'differs' if len(same) == 1 else 'differ'} from one of the ground truths in"
                " capitals, blanks, hyphens or plural alone, and so cannot match:"
                f" {_pairs(same)}. If they are the same: {_mapped(same)}.",
                len(same),
                warning=True,
            )
        )
    near = _near([n for n in mine if n not in same], [o for o in others if o not in same.values()])
    if near:
        notes.append(
            Note(
                "labels_look_alike",
                f"{count_of(len(near), 'label')} of the predictions"
                f" {'looks' if len(near) == 1 else 'look'} like one of the ground truths:"
                f" {_pairs(near)}. If they are the same: {_mapped(near)}.",
                len(near),
            )
        )
    return notes


def _plain(label: str) -> str:
    """A label without what people write now so, now so."""
    plain = re.sub(r"[\s_./-]+", "", label.casefold())
    return re.sub("(?<=[sxz])es$|(?<=[^sui])s$", "", plain) or plain


def _near(mine: list[str], others: list[str]) -> dict[str, str]:
    """Names that differ in few letters, numbers in them aside: ``class 1`` is not ``class 2``."""
    if not mine or not others or max(len(mine), len(others)) > _MOST:
        return {}
    # Imported here: only labels that never meet need it.
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extractOne

    by_numbers: dict[tuple[str, ...], list[str]] = {}
    for other in others:
        by_numbers.setdefault(_numbers(other), []).append(other)
    found: dict[str, str] = {}
    for name in mine:
        choices = by_numbers.get(_numbers(name), [])
        best = extractOne(name, choices, scorer=OSA.normalized_similarity, score_cutoff=_NEAR)
        if best is not None:
            found[name] = best[0]
    return found


def _numbers(name: str) -> tuple[str, ...]:
    return tuple(re.findall("[0-9]+", name))


def _numbered(ours: pl.Series, theirs: pl.Series, mine: pl.Series, others: pl.Series) -> list[Note]:
    """A warning of classes without gaps, as many on both sides, that begin one apart."""
    sides = [side.drop_nulls().unique().cast(pl.Int64).sort() for side in (ours, theirs)]
    if len(mine) != 1 or len(others) != 1 or len(sides[0]) != len(sides[1]):
        return []
    (low, high), (first, last) = ((int(side[0]), int(side[-1])) for side in sides)
    n, step = len(sides[0]), first - low
    if abs(step) != 1 or n < _LEAST or high - low != n - 1 or last - first != n - 1:
        return []
    return [
        Note(
            "labels_one_off",
            f"classes of the predictions are numbered {low} to {high}, those of the ground truths"
            f" {first} to {last}: if one side counts from another number, no class is compared with"
            f" itself. {option('label_format', [f'{step:+d}'])} moves those of the predictions.",
            warning=True,
        )
    ]


def _pairs(found: dict[str, str]) -> str:
    some = "; ".join(f"{a!r} and {b!r}" for a, b in list(found.items())[:_SHOWN])
    more = len(found) - _SHOWN
    return f"{some} and {more:,} more" if more > 0 else some


def _mapped(found: dict[str, str]) -> str:
    first = dict(list(found.items())[:_SHOWN])
    more = {"...": ""} if len(found) > _SHOWN else {}
    return option("label_map", {**first, **more})
