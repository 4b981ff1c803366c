"""Encode and match: build ranked lists with judgments from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest import dtypes
from ...ingest.both_sides import refuse_negative, unicode_forms
from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.id_mismatch import differing
from ...ingest.problems import MANY, OTHER_DOCUMENTS, Note, count_of, listing, note_of, tied_notes
from ...ingest.shapes import LISTS, check_ranks
from ...kernels.passages import credit_passages
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ...schemas.errors import InputError, OptionError, invalid
from ...schemas.options import Options
from ...schemas.wording import option
from ...tallies.datums import Datums
from ..encoding import (
    Workers,
    encode_sides,
    pop_column,
    row_numbers,
    row_of_datums,
    table_datums,
    truth_of_texts,
)
from .dialects import MATCHES, SENTENCES, Settings
from .ranked import Lists, Side, SortedSides, judged_side, lists_of, meet_ids

# Texts matched by a rule: relevance of retrieved texts, and golds they match.


def _sorted_texts(texts: Side, n: int) -> tuple[pl.Series, Array, Array]:
    """Texts by query, then by descending value; their offsets and values."""
    # lexsort keeps the order of rows; of equal golds the most relevant comes first, and is kept
    order = np.lexsort((-texts.value, texts.query))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(texts.query, minlength=n), out=start[1:])
    return texts.doc.gather(order), start, texts.value[order]


def text_lists(
    n: int,
    retrieved: Side,
    relevant: Side,
    rule: str,
    settings: Settings,
    workers: Workers,
    *,
    count_tokens: bool = False,
) -> Lists:
    """Build ranked lists of texts."""
    from .texts import match_texts, token_counts  # which ids do without

    ours, start, _ = _sorted_texts(retrieved, n)
    golds, gold_start, value = _sorted_texts(relevant, n)
    threshold = MATCHES[rule] if settings.match_threshold is None else settings.match_threshold
    matched = match_texts(
        ours,
        start,
        golds,
        gold_start,
        rule=rule,
        threshold=threshold,
        rules=settings.rules,
        workers=workers,
    )
    worth = np.ones(int(matched.gold_start[-1]))
    if matched.gold_row is not None:
        worth = value[matched.gold_row]
    size = int(matched.retrieved_start[-1])
    best, gain = np.empty(size), np.empty(size)
    gold_rank = np.zeros(worth.size, np.int32)
    workers.over(
        matched.retrieved_start,
        lambda first, last: credit_passages(
            first,
            last,
            matched.retrieved_start,
            matched.gold_start,
            matched.pair_start,
            matched.match,
            worth,
            (best, gain, gold_rank),
        ),
    )
    hit = ~np.isnan(best)
    before = np.concatenate([[0], np.cumsum(hit)])
    query = np.repeat(np.arange(n), np.diff(matched.retrieved_start))
    rank = (np.arange(size) - matched.retrieved_start[query] + 1).astype(np.int32)
    of_gold = np.repeat(np.arange(n), np.diff(matched.gold_start))
    down = np.lexsort((-worth, of_gold))
    return Lists(
        retrieved=np.diff(matched.retrieved_start),
        start=before[matched.retrieved_start],
        rank=rank[hit],
        relevance=best[hit],
        gain=gain[hit],
        gold_start=matched.gold_start,
        gold=worth[down],
        gold_rank=gold_rank[down],
        repeats=matched.gold_repeats,
        tokens=token_counts(ours, start) if count_tokens else None,
    )


_SAMPLED = 20  # queries that are looked at before all
_LONG, _QUERIES, _LATE = 5, 10, 0.8
_QUERIES_OF_PART = 40  # some of many parts have late documents by chance
_FEW, _PART, _DENSE = 3, 0.05, 0.5
"""Limits of the warning: number and share of queries without judged documents, and minimum judged
share for the others.
"""


class Batch(msgspec.Struct):
    """Retrieval input as arrays.

    Attributes:
        datums: the queries.
        lists: their ranked lists.
        others: need -> lists built by another rule.
        answered: bool [q], the query is in the predictions.
        judged: bool [q], the query is in the ground truths.
        row: int64 [q], row of each query in the single table, -1 for none; None for code order.
        height: rows of the single table; None for two tables.
        truth: uint64 [q], hash of the relevant documents of each query of a single table; None for
            two tables.
    """

    datums: Datums
    lists: Lists
    others: dict[str, Lists]
    answered: Array
    judged: Array
    row: Array | None = None
    height: int | None = None
    truth: Array | None = None


def encode_batch(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> Batch:
    """Code queries, sort lists, and match judged documents.

    Raises:
        InputError: a document twice in a list, or a rank.
        OptionError: a matching rule that the metrics do not support.
    """
    table = frames.sides.get(TABLE)
    if table is not None:
        return _one_table(frames, table, settings, needs, workers)
    run, judged = _matching(frames.predictions, frames.ground_truths)
    height = run.height, judged.height
    datums, (query, golds) = encode_sides(frames, (PREDICTIONS, GROUND_TRUTHS))
    relevance = (
        pop_column(judged, "relevance").to_numpy()
        if "relevance" in judged.columns
        else np.ones(height[1])
    )
    ranked = "rank" in run.columns
    if "score" in run.columns:
        value = pop_column(run, "score").to_numpy()
    elif ranked:
        value = -pop_column(run, "rank").to_numpy()
    else:
        _add_notes(frames, "neither score nor rank: texts are ranked in the order of their rows.")
        value = -np.arange(height[0], dtype=np.float64)
    if ranked:
        _add_notes(frames, check_ranks(query, -value, datums.id, "predictions"))
    answered = np.bincount(query, minlength=len(datums)) > 0
    judged_query = np.bincount(golds, minlength=len(datums)) > 0
    texts = "doc_id" not in run.columns
    name, kind = "text" if texts else "doc_id", "rank" if ranked else "score"
    sides = (
        Side("predictions", query, pop_column(run, name), value, kind, row_numbers(run)),
        Side(
            "ground truths",
            golds,
            pop_column(judged, name),
            relevance,
            "relevance",
            row_numbers(judged),
        ),
    )
    lists, others = _lists(frames, datums, *sides, settings, needs, workers, texts=texts)
    if texts:
        _note_tied(frames, query, value, lists)
    _note_relevance(frames, relevance, lists, judged_query)
    if not ranked and not _warn_counted(frames, query, value):
        _warn_reversed(frames, lists)
    _warn_unjudged(frames, lists, judged_query)
    return Batch(datums, lists, others, answered, judged_query)


def _matching(run: pl.DataFrame, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return both sides with the same document column; an empty side may have no columns."""
    columns = {**run.schema, **judged.schema}
    name = next((name for name in ("doc_id", "text") if name in columns), "doc_id")
    nothing = pl.Series(name, [], columns.get(name, pl.String))
    return (
        run if name in run.columns or run.height else run.with_columns(nothing),
        judged if name in judged.columns or judged.height else judged.with_columns(nothing),
    )


def _lists(
    frames: Frames,
    datums: Datums,
    run: Side,
    judged: Side,
    settings: Settings,
    needs: frozenset[str],
    workers: Workers,
    *,
    texts: bool,
) -> tuple[Lists, dict[str, Lists]]:
    """Return the ranked lists of ids or texts, and lists by other rules for some needs."""
    if texts:
        frames.notes += unicode_forms(run.doc, judged.doc, judged.name)
        return _by_text(len(datums), run, judged, settings, needs, workers)
    if settings.match is not None:
        _add_notes(
            frames,
            f"{option('match', settings.match)} is not read: documents are matched by their ids.",
        )
    if settings.match_threshold is not None:
        _add_notes(
            frames,
            f"{option('match_threshold', settings.match_threshold)} is not read: documents are"
            f" matched by their ids.",
        )
    if settings.ignore_identical_ids:
        run = _without_own(frames, run, datums)
    elif run.column is not None and datums.id.dtype == pl.String == run.doc.dtype:
        # Numbers may be of other things.
        _note_own(frames, run, judged, datums)
    repeats = settings.rules.repeats_allowed
    if repeats:
        judged = _each_once(judged)
    if settings.rules.texts_only:
        _add_notes(
            frames,
            "documents are matched by their ids; this dialect's rules for texts are not used.",
        )
    if "token_count" in needs:
        raise OptionError("TokenCount counts tokens of texts, but these tables contain ids.")
    sides: SortedSides = meet_ids(run, judged, datums.id, workers, repeats=repeats)
    if run.query.size and judged.query.size and not sides.hits.position.size:
        message = (
            f"no document is among the judgments of its query: {run.name} contain"
            f" {listing(run.doc.head(3))}, {judged.name} {listing(judged.doc.head(3))}"
        )
        why = differing(run.doc, judged.doc, "documents")
        message += f".{why}" if why else "; are the ids of one collection?"
        _add_notes(frames, message, OTHER_DOCUMENTS)
    if settings.judged_only:
        sides = meet_ids(judged_side(sides), judged, datums.id, workers, repeats=repeats)
    lists = lists_of(sides, settings)
    if settings.ties != "average":
        _note_tied_ids(frames, sides, settings)
    turned = needs & set(settings.rules.ascending_ties)
    if not turned or settings.ties != "trec":
        return lists, {}
    return lists, dict.fromkeys(turned, lists_of(sides, settings, ascending=True))


def _each_once(judged: Side) -> Side:
    """The judgments without those of a document that its query has already."""
    pairs = pl.DataFrame({"query": judged.query, "doc": judged.doc})
    first = pairs.select(pl.struct("query", "doc").is_first_distinct()).to_series()
    if first.all():
        return judged
    rows = first.arg_true().to_numpy()
    return msgspec.structs.replace(
        judged, query=judged.query[rows], doc=judged.doc.gather(rows), value=judged.value[rows]
    )


def _without_own(frames: Frames, run: Side, datums: Datums) -> Side:
    """The run without documents that bear their query's own id."""
    same = datums.id.gather(run.query).cast(pl.String) == run.doc.cast(pl.String)
    n = int(same.sum())
    if n:
        words = "row", "rows", "whose document is the query itself skipped"
        frames.notes.append(note_of("own_documents_skipped", n, words, ()))
    others = np.flatnonzero(~same.to_numpy())
    rows = None if run.row is None else run.row[others]
    return Side(
        run.name, run.query[others], run.doc.gather(others), run.value[others], run.column, rows
    )


def _note_own(frames: Frames, run: Side, judged: Side, datums: Datums) -> None:
    """Note queries, at least half, whose best document is the query itself, without a judgment."""
    own: set[tuple[int, str]] = set()
    for end in (_SAMPLED, len(datums)):  # some queries first
        rows = np.flatnonzero(run.query < end)
        query, value = run.query[rows], run.value[rows]
        top = np.full(min(end, len(datums)), -np.inf)
        np.maximum.at(top, query, value)
        best = rows[value == top[query]]
        of_best = run.query[best]
        ids, docs = datums.id.gather(of_best).to_list(), run.doc.gather(best).to_list()
        own = {
            (int(query), doc)
            for query, one, doc in zip(of_best, ids, docs, strict=True)
            if one == doc and not one.isdigit()
        }
        if 2 * len(own) < max(1, np.isfinite(top).sum()):
            return
    pairs = zip(judged.query.tolist(), judged.doc.to_list(), strict=True)
    n = len(own.difference(pairs))
    if 2 * n < max(1, len(datums)):
        return
    words = (
        "query",
        "queries",
        "whose best document is the query itself, without a judgment:"
        f" {option('ignore_identical_ids', True)} skips these rows",
    )
    frames.notes.append(note_of("own_documents", n, words))


def _by_text(
    n: int,
    retrieved: Side,
    relevant: Side,
    settings: Settings,
    needs: frozenset[str],
    workers: Workers,
) -> tuple[Lists, dict[str, Lists]]:
    rule = settings.match or settings.default_match
    refuse_for_texts(settings, rule, needs)
    own_rules = {
        own_match for need, own_match in settings.rules.own_matches.items() if need in needs
    }
    refuse_highest(settings, {(rule, settings.rules.match_at_threshold)} | own_rules)
    tokens = "token_count" in needs
    lists = text_lists(n, retrieved, relevant, rule, settings, workers, count_tokens=tokens)
    others = {}
    for need, (own_match, reached) in settings.rules.own_matches.items():
        if need in needs:
            rules = msgspec.structs.replace(settings.rules, match_at_threshold=reached)
            other = msgspec.structs.replace(settings, rules=rules)
            others[need] = text_lists(n, retrieved, relevant, own_match, other, workers)
    return lists, others


def refuse_highest(settings: Settings, rules: set[tuple[str, bool]]) -> None:
    """Raise OptionError for a threshold that no similarity can exceed.

    Args:
        settings: uses ``match_threshold``.
        rules: matching rules, each with whether a similarity equal to the threshold is a match.
    """
    if settings.match_threshold != 1:
        return
    for rule, reached in sorted(rules):
        if MATCHES[rule] is not None and not reached:
            raise invalid(
                "match_threshold",
                1,
                f"by {option('match', rule)} a similarity must be"
                " above the threshold, and none is above 1, so no text could match. Write"
                f" {option('match', 'exact_chunk')} for equal texts, or a lower threshold such as"
                " 0.999.",
            )


def refuse_for_texts(settings: Settings, rule: str, needs: frozenset[str]) -> None:
    """Raise OptionError for options without meaning for texts."""
    if settings.judged_only:
        raise OptionError("judged_only: with texts, only matches are judged; remove it.")
    if settings.ties == "average":
        reason = "texts that match by a rule have no tied scores to average over; remove it."
        raise invalid("ties", "average", reason)
    if settings.match_threshold is not None and MATCHES[rule] is None:
        those = ", ".join(name for name, threshold in MATCHES.items() if threshold is not None)
        raise OptionError(
            f"{option('match_threshold', settings.match_threshold)}: {option('match', rule)} has"
            f" no threshold. Remove it, or match by {those}.",
            code="option_unread",
            option="match_threshold",
        )
    ranked = sorted(needs - {"precision_recall_f1", "token_count"})
    if rule in SENTENCES and ranked:
        raise OptionError(
            f"{option('match', rule)} compares sentences, which have no rank: it only supports"
            " PrecisionRecallF1. Ask for that, or match chunks by"
            f" {rule.replace('sentence', 'chunk')!r}."
        )


def _one_table(
    frames: Frames, table: pl.DataFrame, settings: Settings, needs: frozenset[str], workers: Workers
) -> Batch:
    """One row a query, both sides in lists."""
    height = table.height
    numbers = row_numbers(table)
    texts, reason = has_texts(frames, settings)
    _add_notes(frames, reason)
    datums, codes = table_datums(frames, table, height, numbers)
    query_of_row = np.arange(height, dtype=np.int32) if codes is None else codes
    sides = []
    for name in LISTS:
        column = pop_column(table, name)
        query = np.repeat(query_of_row, column.list.len().to_numpy())
        sides.append((query, column.explode(empty_as_null=False, keep_nulls=False)))
    (query, ours), (golds, theirs) = sides
    if texts:
        ours, theirs = ours.cast(pl.String), theirs.cast(pl.String)
    else:
        ours, theirs = _of_one_kind(ours, theirs, as_text=settings.rules.ids_as_text)
    value, relevance = -np.arange(query.size, dtype=np.float64), np.ones(golds.size)
    run = Side("retrieved", query, ours, value, None)
    judged = Side("relevant", golds, theirs, relevance, None)
    lists, others = _lists(frames, datums, run, judged, settings, needs, workers, texts=texts)
    judged_query = np.zeros(len(datums), bool)
    judged_query[query_of_row] = True
    _note_relevance(frames, relevance, lists, judged_query)
    # Queries that only a table of datums knows come behind those of the rows.
    row = row_of_datums(numbers, codes, len(datums), height)
    return Batch(
        datums,
        lists,
        others,
        judged_query,
        judged_query,
        row,
        None if numbers is not None else height,
        truth_of_texts(theirs, len(datums), golds),
    )


def _of_one_kind(
    ours: pl.Series, theirs: pl.Series, *, as_text: bool
) -> tuple[pl.Series, pl.Series]:
    """Return ids of both sides in one dtype; an empty side takes that of the other."""
    if ours.dtype == theirs.dtype:
        return ours, theirs
    if as_text:
        return ours.cast(pl.String), theirs.cast(pl.String)
    if not len(ours) or not len(theirs):
        dtype = theirs.dtype if not len(ours) else ours.dtype
        return ours.cast(dtype, strict=False), theirs.cast(dtype, strict=False)
    kinds = [dtypes.kind_of(side.dtype) for side in (ours, theirs)]
    if kinds[0] == kinds[1]:
        wide = dtypes.common([ours.dtype, theirs.dtype])
        for side in (ours, theirs) if wide == pl.UInt64() else ():
            refuse_negative(side, repr(side.name))
        return ours.cast(wide), theirs.cast(wide)
    raise InputError(
        f"'retrieved' contains {kinds[0]} ({listing(ours.head(3))}), 'relevant' {kinds[1]}"
        f" ({listing(theirs.head(3))}): they can never be equal. Bring both to one type, e.g."
        " pl.col('retrieved').cast(pl.List(pl.String))."
    )


def has_texts(frames: Frames, settings: Settings) -> tuple[bool, str | None]:
    """Return True if the tables contain texts, which match by a rule; False for ids.

    For two tables the columns decide. For lists: a named rule or a dialect of texts; otherwise
    column names that contain ``_id``, ``context``, ``chunk`` or ``text``; otherwise strings with
    white space are texts.

    Returns:
        the answer; an explanation for the user, or None.
    """
    table = frames.sides.get(TABLE)
    if table is None:
        return "doc_id" not in frames.predictions.columns, None
    sides = [table[name] for name in LISTS]
    by_name = texts_by_columns(
        [side.dtype for side in sides], frames.recognised.get(TABLE, {}), settings
    )
    if by_name is not None:
        return by_name, None
    spaced = any(_spaced(side) for side in sides)
    if spaced:
        return True, (
            "'retrieved' and 'relevant' contain white space and are read as texts, matched by"
            f" {settings.default_match!r}; {option('match')} names another rule."
        )
    return False, (
        "'retrieved' and 'relevant' contain no white space and are read as ids, which are equal or"
        f" not; {option('match')} names a rule for texts."
    )


def texts_by_columns(
    kinds: Sequence[pl.DataType], recognised: Mapping[str, str], settings: Settings
) -> bool | None:
    """Return whether lists contain texts by columns and options; None if rows must decide.

    Args:
        kinds: dtypes of both columns.
        recognised: user's column name -> canonical name.
    """
    if settings.rules.texts_only:
        return True
    if all(dtypes.kind_of(kind) == "integers" for kind in kinds):
        return False
    if settings.match is not None:
        return True
    names = " ".join(column for column, name in recognised.items() if name in LISTS).lower()
    if "_id" in names:
        return False
    return True if any(word in names for word in ("context", "chunk", "text")) else None


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Return why the kind of lists, texts or ids, depends on all rows; empty if columns decide.

    Args:
        ready: the tables before any row is read.
        heads: first rows of each.
    """
    side = ready.sides.get(TABLE)
    if side is None:
        return ""
    kinds = [heads[TABLE].schema[name] for name in LISTS]
    if texts_by_columns(kinds, side.naming.recognised, settings) is not None:
        return ""
    return "the contents of a retrieval table depend on all of its rows"


def _spaced(lists: pl.Series) -> bool:
    items = lists.explode(empty_as_null=False, keep_nulls=False)
    if items.dtype != pl.String:
        return False
    # The first few texts usually decide.
    return any(bool(some.str.contains(r"\s").any()) for some in (items.head(1000), items))


def _add_notes(frames: Frames, message: str | None, kind: str = "retrieval") -> None:
    if message:
        frames.notes.append(Note(kind, message, warning=kind == OTHER_DOCUMENTS))


def _note_tied(frames: Frames, query: Array, value: Array, lists: Lists) -> None:
    """A note of queries whose highest score texts that match and others have."""
    top = np.full(len(lists), -np.inf)
    np.maximum.at(top, query, value)
    first = np.bincount(query[value == top[query]], minlength=len(lists))
    of_hit = np.repeat(np.arange(len(lists)), np.diff(lists.start))
    right = (lists.rank <= first[of_hit]) & (lists.relevance > 0)
    hits = np.bincount(of_hit[right], minlength=len(lists))
    n, n_queries = int(((hits > 0) & (hits < first)).sum()), int((np.diff(lists.start) > 0).sum())
    frames.notes += tied_notes(n, n_queries, ("query", "queries"), "texts", "ranks")


def _note_tied_ids(frames: Frames, sides: SortedSides, settings: Settings) -> None:
    """A note of many queries whose highest score relevant documents and others have.

    Equal scores in few lists are usual; in most lists they make scores meaningless.
    """
    hits, n = sides.hits, sides.start.size - 1
    right = sides.judged.value[sides.gold_rows][hits.gold] > 0
    top = (hits.greater == 0) & (hits.equal > 1) & right
    if not top.any():
        return
    query = np.repeat(np.arange(n), np.diff(hits.start))
    size = np.zeros(n, np.int64)
    size[query[top]] = hits.equal[top]
    tied = int((np.bincount(query[top], minlength=n) < size).sum())
    n_queries = int((np.bincount(query[right], minlength=n) > 0).sum())
    if tied > MANY * n_queries or not frames.whole:
        order = "document ids" if settings.ties == "trec" else "the order of the rows"
        words = ("query", "queries")
        shares = {"beyond": 0.5, "least": MANY}
        frames.notes += tied_notes(tied, n_queries, words, "documents", "ranks", order, **shares)


def _warn_counted(frames: Frames, query: Array, value: Array) -> bool:
    """Add a warning about scores that number the rows of every query, as ranks do."""
    if not value.size or value[0] not in (0, 1):
        return False
    rise = np.diff(value) == 1
    same = np.diff(query) == 0
    if not np.array_equal(rise, same) or same.sum() < _LONG:
        return False
    first = value[1:][~same]
    if not (first == value[0]).all():
        return False
    n = first.size + 1
    frames.notes.append(
        Note(
            "scores_reversed",
            f"the scores of {count_of(n, 'query', 'queries')} count the rows from {value[0]:.0f}"
            " up, so that the last document of a list ranks first:"
            f" are they ranks? {option('columns', {'score': 'rank'})} reads them so.",
            n,
            warning=True,
        )
    )
    return True


def _warn_reversed(frames: Frames, lists: Lists) -> None:
    """Add a warning about lists whose relevant documents are at the end."""
    query = np.repeat(np.arange(len(lists)), np.diff(lists.start))
    here = (lists.relevance > 0) & (lists.retrieved[query] >= _LONG)
    relevant = np.bincount(query[here], minlength=len(lists))
    above = np.bincount(query[here], lists.rank[here] - 1, len(lists))
    mixed = (relevant > 0) & (relevant < lists.retrieved)
    queries = int(mixed.sum())
    if queries < (_QUERIES if frames.whole else _QUERIES_OF_PART):
        return
    relevant, others = relevant[mixed], (lists.retrieved - relevant)[mixed]
    place = (above[mixed] - relevant * (relevant - 1) / 2) / (relevant * others)
    if place.mean() < _LATE:
        return
    frames.notes.append(
        Note(
            "scores_reversed",
            f"relevant documents are at the end of their lists (below {place.mean():.0%} of the"
            f" others on average, in {queries:,} queries): are the scores ranks or distances, for"
            f" which lower is better? {option('columns', {'score': 'rank'})} reads them so; if some"
            " of a query are equal, write them negated.",
            warning=True,
            facts={"place": float(place.mean())},
        )
    )


def _warn_unjudged(frames: Frames, lists: Lists, judged_query: Array) -> None:
    """Add a warning about queries without judged documents, if those of others are judged."""
    judged = judged_query & (lists.retrieved >= _LONG)
    hits = np.diff(lists.start)
    none, some = judged & (hits == 0), judged & (hits > 0)
    n = int(none.sum())
    of = int(judged.sum())
    if n < (max(_FEW, _PART * of) if frames.whole else 1) or not some.any():
        return
    share = float(hits[some].sum() / lists.retrieved[some].sum())
    if share < _DENSE:
        return
    frames.notes.append(
        Note(
            "judged_elsewhere",
            f"{n:,} of {of:,} judged queries have no retrieved document with a judgment, while"
            f" {share:.0%} of those of the others have one: are the judgments of another"
            " collection, or ids written otherwise?",
            n,
            warning=True,
            facts={"count": n, "of": of, "beyond": _PART, "least": _PART, "fewest": _FEW},
        )
    )


def _note_relevance(frames: Frames, relevance: Array, lists: Lists, judged_query: Array) -> None:
    """Judged queries without a relevant document, and judgments below 0."""
    unjudged = int((relevance < 0).sum())
    if unjudged:
        words = "judgment", "judgments", "with a relevance below 0: taken as not judged"
        frames.notes.append(note_of("negative_relevance", unjudged, words, ()))
    empty = int(((lists.relevant == 0) & judged_query).sum())
    if empty:
        words = (
            "query",
            "queries",
            "without any relevant document: values are 0 there, or undefined in metrics that need"
            " one",
        )
        note, of = note_of("queries_without_relevant", empty, words, ()), int(judged_query.sum())
        facts = {"count": empty, "of": of, "beyond": 0.5}
        warning = empty > of / 2
        frames.notes.append(msgspec.structs.replace(note, warning=warning, facts=facts))
