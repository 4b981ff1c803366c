"""Tags of tokens to tables of spans: IOB, IOE, IOBES and BILOU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from ...kernels.spans import read_leniently, read_strictly
from ...schemas.arrays import Array
from ...schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, TABLE, Table
from ...schemas.errors import N_NAMES, InputError, unknown
from ...schemas.options import Options
from ...schemas.tables import SCHEMES
from ...schemas.wording import option
from ..both_sides import check_kinds, datum_notes, same_kind
from ..dtypes import within
from ..files import Source
from ..id_mismatch import check_meet
from ..ids import ALL, DatumIds
from ..problems import DatumNouns, Note, count_of, listing
from ..recognise import Finder
from .tables import schema_of

if TYPE_CHECKING:
    from ..opening import Inputs

_CLASSES = "OBIESLU.?"
"""Classes of prefixes: that of O is 0, the last stands for all others."""
_NO_TYPE = "_"
_IDS = "datum_id"
_WORDS = "tokens"
_MOST = 0.5  # share of other words from which sentences of other numbers are not compared
_OTHER = " of the predictions"

# Schemes: allowed prefixes; where chunks begin, go on, and end. "B>I=" is a tag I after a tag B of
# the same type, "!" another type; "*" is any prefix. As in seqeval 1.2.2, ``scheme.py``.

_SCHEMES = {
    "IOB1": ("IOB", "O>I I>I! B>I I>B= B>B=", "B>I= I>I=", "I>I! I>O I>B B>O B>I! B>B="),
    "IOB2": ("IOB", "*>B", "B>I= I>I=", "I>O I>I! I>B B>O B>I! B>B"),
    "IOE1": ("IOE", "O>I I>I! E>I E>E=", "I>I= I>E=", "I>I! I>O I>E! E>I= E>E="),
    "IOE2": ("IOE", "O>I O>E E>I E>E I>I! I>E!", "I>E= I>I=", "E>*"),
    "IOBES": ("IOBES", "*>B *>S", "B>I= B>E= I>I= I>E=", "S>* E>*"),
    "BILOU": ("BILOU", "*>B *>U", "B>I= B>L= I>I= I>L=", "U>* L>*"),
}
assert tuple(_SCHEMES) == SCHEMES
# conlleval's, as in seqeval's ``get_entities``; L and U are unknown there, and read as any other.
_BEGINS = "*>B *>S E>E E>I S>E S>I O>E O>I *>B! *>I! *>E! *>S! *>L! *>U! *>?!"
_BOUNDARIES = "E>* S>* B>B B>S B>O I>B I>S I>O B>*! I>*! E>*! S>*! L>*! U>*! ?>*!"
_READ_BY_ALL = str.maketrans("LU", "ES")
# nervaluate's: any tag but O belongs to an entity; B, or another type, begins one.
_MARKED = "BIESLU.?"
_LOOSE = (
    " ".join([f"O>{a}" for a in _MARKED] + [f"{a}>B {a}>*!" for a in _MARKED]),
    " ".join(f"{a}>O {a}>B {a}>*!" for a in _MARKED),
)


class _Reading(msgspec.Struct, frozen=True):
    """Rules by which tags are read without a scheme.

    Attributes:
        begins: where chunks begin, and ``ends``: where they end.
        type_of: returns the type in a tag.
        class_of: returns the class of a tag's prefix.
        spelled: whether tags that are not well spelled are refused.
        prefixes: prefixes that are known; others are read, with a warning; empty for all.
        opening: beginnings of tags that may begin an entity; empty for all.
    """

    begins: str = _BEGINS
    ends: str = _BOUNDARIES
    type_of: Callable[[str], str] = lambda tag: tag[1:].split("-", maxsplit=1)[-1]
    class_of: Callable[[str], str] = lambda tag: tag[:1]
    spelled: bool = False
    prefixes: str = ""
    opening: tuple[str, ...] = ()


_READINGS = {
    "standard": _Reading(class_of=lambda tag: tag[:1].translate(_READ_BY_ALL), spelled=True),
    "seqeval": _Reading(prefixes="OBIES"),
    "nervaluate": _Reading(
        *_LOOSE,
        type_of=lambda tag: tag[2:],
        class_of=lambda tag: "O" if tag == "O" else tag[:1].replace("O", "?"),
        opening=("B-", "I-"),
    ),
}
_STRICT = "strict"
"""Reading by a scheme."""


@cache
def _rules(patterns: str) -> Array:
    """Patterns as a table of previous class, class, and whether types are the same, flat."""
    out = np.zeros((len(_CLASSES), len(_CLASSES), 2), bool)
    for before, pair in (pattern.split(">") for pattern in patterns.split()):
        rows = slice(None) if before == "*" else _CLASSES.index(before)
        columns = slice(None) if pair[0] == "*" else _CLASSES.index(pair[0])
        types = {"=": [1], "!": [0]}.get(pair[1:], [0, 1])
        for at in types:
            out[rows, columns, at] = True
    return out.reshape(-1)


class _Tags(msgspec.Struct, frozen=True):
    """Tags of one side: codes and offsets, and the tag of each code."""

    code: Array
    start: Array
    names: list[str]


def _encoded(lists: pl.Series, whose: str, ids: pl.Series) -> _Tags:
    """Code the tags of sentences.

    Raises:
        InputError: null lists or tags.
    """
    length = lists.list.len()
    flat = lists.filter(length > 0).explode()
    if lists.null_count() or flat.null_count():
        wrong = lists.is_null() | lists.list.eval(pl.element().is_null()).list.any()
        examples = ids.filter(wrong)
        raise InputError(
            f"{whose}: null tags in {count_of(len(examples), 'sentence')}, first"
            f" {listing(examples.head(N_NAMES).to_list(), len(examples))}. Write 'O' for tokens of"
            " no entity, and an empty list for a sentence without tokens.",
            code="null_values",
            count=len(examples),
        )
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(length.to_numpy())])
    flat = flat.cast(pl.String)
    names = flat.unique().sort()
    code = flat.cast(pl.Enum(names)).to_physical().to_numpy()
    return _Tags(code.astype(np.int32), start.astype(np.int64), names.to_list())


class _Entities(msgspec.Struct, frozen=True):
    """Entities of one side.

    Attributes:
        sentence: int32 [n], row of the sentence.
        first: int32 [n], first tag.
        last: int32 [n], tag after the last.
        kind: int32 [n], index among the types.
        types: the types.
        odd: tags that the reading does not know but reads.
    """

    sentence: Array
    first: Array
    last: Array
    kind: Array
    types: list[str]
    odd: list[str] = []


def _read(tags: _Tags, reading: str, scheme: str | None, whose: str, ids: pl.Series) -> _Entities:
    """Return the entities of one side.

    Raises:
        InputError: tags that the scheme or the reading does not know.
    """
    used = np.unique(tags.code).tolist()
    inside, wrong, why = "", [i for i in used if not tags.names[i]], _SPELLING
    rule = _READINGS.get(reading, _Reading())
    if scheme is not None or reading == _STRICT:
        scheme = scheme or "IOB2"
        allowed, begins, inside, boundaries = _SCHEMES[scheme]
        letters = [tag[:1] for tag in tags.names]
        types = [tag[1:].strip("-") for tag in tags.names]
        wrong = [i for i in used if letters[i] not in [*allowed]]
        tag_letters = {letters[i] for i in used}
        fits = [
            option("scheme", name) for name, one in _SCHEMES.items() if tag_letters <= {*one[0]}
        ]
        way = f". Write {' or '.join(fits)}." if fits else _SPELLING
        why = f", which {scheme} does not know{way}"
    else:
        begins, boundaries = rule.begins, rule.ends
        types = [rule.type_of(tag) for tag in tags.names]
        letters = [rule.class_of(tag) for tag in tags.names]
        if rule.spelled:
            wrong = [i for i in used if not _well_spelled(tags.names[i])]
    if wrong:
        raise _unknown_tags(tags, wrong, why, whose, ids)
    types = [name or _NO_TYPE for name in types]
    values = sorted({*types, _NO_TYPE})
    at = {value: i for i, value in enumerate(values)}
    code = {letter: i for i, letter in enumerate(_CLASSES)}
    arguments = (
        tags.code,
        tags.start,
        np.array([code.get(letter, len(code) - 1) for letter in letters], np.int8),
        np.array([at[name] for name in types], np.int32),
        _rules(begins),
    )
    if inside:
        entities = read_strictly(*arguments, _rules(inside), _rules(boundaries), at[_NO_TYPE])
        return _Entities(*entities, values)
    entities = read_leniently(*arguments, _rules(boundaries), at[_NO_TYPE])
    if rule.opening:
        opening = np.unique(tags.code[tags.start[entities[0]] + entities[1]]).tolist()
        wrong = [i for i in opening if not tags.names[i].startswith(rule.opening)]
        if wrong:
            why = f", which begins no entity in {reading}: only {' and '.join(rule.opening)} do."
            raise _unknown_tags(tags, wrong, why, whose, ids)
    odd = [tags.names[i] for i in used if rule.prefixes and letters[i] not in rule.prefixes]
    return _Entities(*entities, values, odd)


def _well_spelled(tag: str) -> bool:
    return tag in [*_CLASSES[:7]] or (
        tag[:1] in [*_CLASSES[1:7]] and tag[1:2] == "-" and len(tag) > 2
    )


_SPELLING = (
    ". Tags are O, or a prefix (B, I, E, S, L, U), a hyphen and the type: B-PER. Labels without"
    " prefixes are classes of tokens: omit the task to score them as such."
)


def _unknown_tags(
    tags: _Tags, wrong: list[int], why: str, whose: str, ids: pl.Series
) -> InputError:
    names = [tags.names[i] for i in sorted(wrong)]
    many = int(np.isin(tags.code, wrong).sum())
    at = np.flatnonzero(np.isin(tags.code, wrong))[:N_NAMES]
    rows = np.unique(np.searchsorted(tags.start, at, side="right") - 1)
    sentences = [ids[int(row)] for row in rows]
    return InputError(
        f"{whose}: {count_of(many, 'token')} tagged {listing(names[:N_NAMES], len(names))}, first"
        f" in {'sentence' if len(sentences) == 1 else 'sentences'} {listing(sentences)}{why}",
        code="unknown_tags",
        count=many,
        value=names[0],
    )


# Tables of spans in place of tables of tags.


def with_spans(
    inputs: Inputs, contracts: Mapping[str, Table], options: Options
) -> tuple[Inputs, Options]:
    """Replace tables with columns of tags by tables of spans, one row per entity.

    Columns of one table, other than tags and ids, become columns of a table of datums.

    Args:
        inputs: what was opened.
        contracts: the task's tables, by role.
        options: the options.

    Returns:
        the new sources, and the options without names of columns that are gone; those given if no
        table has tags.

    Raises:
        InputError: null or unknown tags, ids that repeat, or sentences of different lengths.
    """
    sources, tagged = inputs.sources, {}
    renames = dict(options.columns or {})
    for role in (TABLE, PREDICTIONS, GROUND_TRUTHS):
        if role in sources and (
            lists := _lists(sources[role], inputs.schemas[role], contracts[role], renames)
        ):
            tagged[role] = lists
    if not tagged:
        return inputs, options
    if TABLE not in tagged and len(tagged) < 2:
        (role,) = tagged
        raise InputError(
            f"{role.replace('_', ' ')} have a column of tags, and the other table has none. Give"
            " both sides tags, or both sides spans (start, end, label_value).",
            code="tags_on_one_side",
            side=role,
        )
    table = contracts[TABLE]
    reading = table.readings.get(options.dialect, "standard")
    if options.scheme is not None and options.scheme not in SCHEMES:
        raise unknown("scheme", options.scheme, SCHEMES)
    sides, notes = _unify_ids(
        _sides(tagged), sources, DatumNouns(table.datum, "sentence", "sentences")
    )
    new_sources, made_lists = dict(sources), {}
    for role, side in sides.items():
        whose = f"column {side.name!r}" if TABLE in tagged else role.replace("_", " ")
        tags = _encoded(side.tags, whose, side.ids)
        made_lists[role] = tags
        entities = _read(tags, reading, options.scheme, whose, side.ids)
        if entities.odd:
            examples = listing(entities.odd, len(entities.odd))
            message = (
                f"{whose}: seqeval does not know the tags {examples}: they never begin or end an"
            )
            message += " entity of their type by their prefix."
            if {tag[0] for tag in entities.odd} <= {*"LU"}:
                message += " Dialect standard reads them."
            notes.append(Note("tags_unknown_to_dialect", message, len(entities.odd), warning=True))
        frame = pl.DataFrame(
            {
                _IDS: side.ids.gather(entities.sentence),
                "start": entities.first,
                "end": entities.last,
                "label_value": pl.Series(entities.types, dtype=pl.String).gather(entities.kind),
            }
        )
        origin = sources[TABLE if TABLE in tagged else role]
        new_sources[role] = msgspec.structs.replace(
            origin,
            frame=frame.lazy(),
            results=None,
            format="tags",
            datums=None,
            footprints={},
            notes=(),
            facts={**origin.facts, "tags": f"read as {options.scheme or reading}"},
        )
    if TABLE not in tagged:
        notes += _compare_words(sides)
    _check_lengths(sides, made_lists)
    if not any(new_sources[role].frame.select(pl.len()).collect().item() for role in sides):
        many = sum(tags.code.size for tags in made_lists.values())
        message = f"no entity was read from {count_of(many, 'tag')} of both sides"
        scheme = options.scheme or ("IOB2" if reading == _STRICT else reading)
        message += f", read as {scheme}: there are no numbers"
        message += " (seqeval returns zero_division)." if reading in ("seqeval", "strict") else "."
        notes.append(Note("no_entities", message, 0, warning=True))
    new_sources.pop(TABLE, None)
    first = new_sources[PREDICTIONS]
    before = tuple(note for role in tagged for note in sources[role].notes)
    new_sources[PREDICTIONS] = msgspec.structs.replace(first, notes=(*before, *notes))
    if DATUMS not in new_sources:
        rests = {role: lists.rest for role, lists in tagged.items()}
        rest = rests[TABLE] if TABLE in rests else _joined(rests, sides)
        new_sources[DATUMS] = Source(rest.lazy(), first.description, "tags")
    used = {name for lists in tagged.values() for name in lists.used}
    left = {mine: to for mine, to in renames.items() if mine not in used}
    schemas = {role: schema_of(source) for role, source in new_sources.items()}
    options = msgspec.structs.replace(options, columns=left or None)
    return msgspec.structs.replace(inputs, sources=new_sources, schemas=schemas), options


class _Lists(msgspec.Struct, frozen=True):
    """Tags of one table.

    Attributes:
        columns: canonical name -> lists of tags.
        names: canonical name -> name in the table.
        ids: ids of the sentences.
        words: the tokens of the sentences, if a file has them.
        rest: other columns, and the ids.
        used: names of the columns that were read.
    """

    columns: dict[str, pl.Series]
    names: dict[str, str]
    ids: pl.Series
    words: pl.Series | None
    rest: pl.DataFrame
    used: tuple[str, ...]


class _Side(msgspec.Struct, frozen=True):
    """Tags of one side."""

    name: str
    tags: pl.Series
    ids: pl.Series
    words: pl.Series | None = None


def _lists(
    source: Source, schema: Mapping[str, pl.DataType], table: Table, renames: Mapping[str, str]
) -> _Lists | None:
    """Read the columns of tags of a table; None if it has none."""
    if not table.tags or not any(isinstance(dtype, pl.List) for dtype in schema.values()):
        return None
    find = Finder(schema, table.side, renames, table.names)
    columns = {column.name: column for column in table.columns}
    names = {name: mine for name in table.tags if (mine := find.find(columns[name]))}
    if not names:
        lists = [name for name, dtype in schema.items() if dtype == pl.List(pl.String)]
        if lists and "tags" in columns and find.find(columns["start"]) is None:
            raise InputError(
                f"{table.side.replace('_', ' ')}: lists of tags are read from column 'tags' of both"
                " tables, or from 'predicted' and 'actual' of one table. Columns with lists:"
                f" {', '.join(lists)}. To name one: {option('columns', {lists[-1]: 'tags'})}.",
                code="column_missing",
                column="tags",
            )
    lists = [mine for mine in names.values() if isinstance(schema[mine], pl.List)]
    if not lists:
        return None
    flat = [one for one in names.values() if one not in lists or within(schema[one])[0] > 1]
    if flat or len(names) < len(table.tags):
        missing = [name for name in table.tags if name not in names] or flat
        raise InputError(
            f"{table.side.replace('_', ' ')}: {listing(missing)}: lists of tags are needed in"
            f" {' and '.join(table.tags)}. Columns there: {', '.join(schema)}.",
            code="column_missing",
            column=missing[0],
        )
    id_column = find.find(columns[_IDS])
    frame = source.frame.collect()
    ids = frame[id_column] if id_column else pl.int_range(frame.height, eager=True)
    if id_column and (ids.null_count() or ids.is_duplicated().any()):
        wrong = ids.filter(ids.is_null() | ids.is_duplicated())
        raise InputError(
            f"{table.side.replace('_', ' ')}: column {id_column!r}: every row is one sentence, and"
            f" {count_of(len(wrong), 'id')} are null or repeat, first"
            f" {listing(wrong.head(N_NAMES).to_list(), len(wrong))}. Remove the column to number"
            " the sentences by their rows.",
            code="repeated_ids",
            column=id_column,
            count=len(wrong),
        )
    used = (*names.values(), *((id_column,) if id_column else ()))
    plain = [name for name, dtype in frame.schema.items() if not dtype.is_nested()]
    rest = frame.select(ids.alias(_IDS), *(name for name in plain if name not in used))
    tags = {name: frame[mine] for name, mine in names.items()}
    words = frame[_WORDS] if isinstance(schema.get(_WORDS), pl.List) else None
    return _Lists(tags, names, ids, words, rest, used)


def _sides(lists: Mapping[str, _Lists]) -> dict[str, _Side]:
    """Tags of predictions and ground truths."""
    if TABLE in lists:
        one = lists[TABLE]
        roles = {PREDICTIONS: "predicted", GROUND_TRUTHS: "actual"}
        return {
            role: _Side(one.names[name], one.columns[name], one.ids) for role, name in roles.items()
        }
    return {
        role: _Side(
            next(iter(one.names.values())), next(iter(one.columns.values())), one.ids, one.words
        )
        for role, one in lists.items()
    }


def _unify_ids(
    sides: dict[str, _Side], sources: Mapping[str, Source], nouns: DatumNouns
) -> tuple[dict[str, _Side], list[Note]]:
    """Unify the ids of both sides; return them with the notes on sentences of one side.

    Raises:
        InputError: ids of two kinds, or no common id.
    """
    ours, theirs = (sides[role].ids for role in (PREDICTIONS, GROUND_TRUTHS))
    if ours is theirs or (ours.dtype == theirs.dtype and ours.equals(theirs)):
        return sides, []
    frames = {role: side.ids.alias(_IDS).to_frame() for role, side in sides.items()}
    notes = same_kind(frames, (_IDS,), {role: sources[role].text for role in frames})
    check_kinds(frames, (_IDS,), nouns)
    ids = DatumIds.of({role: frame[_IDS] for role, frame in frames.items()}, ALL)
    notes += [*check_meet(ids, nouns), *datum_notes(ids, nouns, rows=frames)]
    unified = {
        role: msgspec.structs.replace(side, ids=frames[role][_IDS]) for role, side in sides.items()
    }
    return unified, notes


def _joined(rests: Mapping[str, pl.DataFrame], sides: Mapping[str, _Side]) -> pl.DataFrame:
    """Join the other columns of both sides; those of the ground truths take precedence."""
    truths, ours = (
        rests[role].with_columns(sides[role].ids.alias(_IDS))
        for role in (GROUND_TRUTHS, PREDICTIONS)
    )
    shared = [name for name in truths.columns if name in ours.columns and name != _IDS]
    ours = ours.rename({name: name + _OTHER for name in shared})
    joined = truths.join(ours, on=_IDS, how="full", coalesce=True, maintain_order="left_right")
    first = [pl.coalesce(name, name + _OTHER) for name in shared]
    return joined.with_columns(first).drop(name + _OTHER for name in shared)


def _compare_words(sides: Mapping[str, _Side]) -> list[Note]:
    """Warn of sentences with other words, if both sides have words.

    Raises:
        InputError: the sides have other numbers of sentences, and most words differ.
    """
    frames = []
    for role in (PREDICTIONS, GROUND_TRUTHS):
        side = sides[role]
        if side.words is None:
            return []
        frames.append(pl.DataFrame({_IDS: side.ids, role: side.words.cast(pl.List(pl.String))}))
    joined = frames[0].join(frames[1], on=_IDS, maintain_order="left")
    wrong = joined.filter(pl.col(PREDICTIONS).ne_missing(pl.col(GROUND_TRUTHS)))
    if not wrong.height:
        return []
    words = pl.col(PREDICTIONS).list.len()
    same = wrong.filter(words == pl.col(GROUND_TRUTHS).list.len(), words > 0)
    same = same.explode(PREDICTIONS, GROUND_TRUTHS)
    n_same = int(same.select((pl.col(PREDICTIONS) == pl.col(GROUND_TRUTHS)).sum()).item())
    differ = int(wrong.select(words.sum()).item()) - n_same
    id_, *texts = wrong.select(_IDS, PREDICTIONS, GROUND_TRUTHS).row(0)
    mine, other = (one or [] for one in texts)
    least = min(len(mine), len(other))
    at = next((i for i in range(least) if mine[i] != other[i]), least)
    examples = (listing(one[at : at + 3], most=3) or "no token" for one in (mine, other))
    where = (
        f"first {id_!r}, from token {at}: {' in the predictions, '.join(examples)} in the others"
    )
    facts = {"count": wrong.height, "first": id_, "words": differ}
    counts = [frame.height for frame in frames]
    if counts[0] != counts[1] and differ > _MOST * int(joined.select(words.sum()).item()):
        raise InputError(
            f"the predictions have {count_of(counts[0], 'sentence')}, the ground truths"
            f" {counts[1]:,}, and most words differ, {where}. A sentence may be missing: repair"
            " the files, or give both sides ids of sentences.",
            code="words_differ",
            **facts,
        )
    message = f"{count_of(wrong.height, 'sentence')} with other words on the two sides, {where}."
    return [Note("words_differ", message, wrong.height, warning=True, facts=facts)]


def _check_lengths(sides: Mapping[str, _Side], tags: Mapping[str, _Tags]) -> None:
    """Refuse sentences whose number of tokens differs between the sides."""
    ours, theirs = (
        pl.DataFrame({_IDS: sides[role].ids, role: np.diff(tags[role].start)})
        for role in (PREDICTIONS, GROUND_TRUTHS)
    )
    if ours[_IDS].equals(theirs[_IDS]):
        joined = ours.hstack([theirs[GROUND_TRUTHS]])
    else:
        joined = ours.join(theirs, on=_IDS, how="inner", maintain_order="left")
    wrong = joined.filter(pl.col(PREDICTIONS) != pl.col(GROUND_TRUTHS))
    if wrong.height:
        first, mine, other = wrong.select(_IDS, PREDICTIONS, GROUND_TRUTHS).row(0)
        raise InputError(
            f"{count_of(wrong.height, 'sentence')} of different lengths on the two sides, first"
            f" {first!r}: {mine:,} tags in the predictions and {other:,} in the ground truths. Both"
            " sides need one tag per token: check how tokens were split, or cut off.",
            code="tokens_differ",
            count=wrong.height,
            value=first,
            lengths=[mine, other],
        )
