"""Rules about unread columns, and the lists of columns read, guessed and not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from evalengine import metrics
from evalengine.ingest.both_sides import LABEL_COLUMNS
from evalengine.ingest.collecting import Prepared
from evalengine.ingest.dtypes import folded, within
from evalengine.ingest.problems import Note, Problem, count_of, listing
from evalengine.ingest.recognise import Naming, Side
from evalengine.ingest.where import Condition
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.options import Options
from evalengine.schemas.tables import FRAME, RANK
from evalengine.schemas.wording import option

from . import NOTE, PROBLEM, WARNING, Facts, Rule, apply, rows_of, words

_HEAD = 2_000  # rows of each side that are compared first
_FEW = 20  # common keys that are enough
_SOUGHT = 200  # keys sought in all rows if the first ones have too few in common
_DIFFER = 0.05  # share of compared keys from which values differ
_GUESSED = frozenset({"classification", "text"})
"""Tasks that any labels or texts next to other columns suggest."""
_ONE_PER_DATUM = frozenset({"classification", "regression", "text", "judged"})
"""Tasks in which any differing column may be the prediction; elsewhere only positions are."""
_BOOKKEEPING = words(
    "id ids uuid guid index idx row rows nr no path file filename filepath url uri link"
    " source model models run version date day time timestamp created updated modified"
    " annotator author user worker comment comments note notes hash md5 sha sha256 checksum"
    " latency runtime ms cost tokens unnamed split fold seed tag tags score confidence weight"
)
"""Words in names of columns that differ between the sides of sound tables."""
_SHAPES = words(
    "bbox box boxes polygon polygons wkt geometry geom coordinate coordinates coord coords"
    " corners keypoints mask rle segmentation span spans"
)
"""Words in names of columns that by themselves name boxes, outlines or spans."""
_LISTS = words("roi rect rectangle quad xyxy xywh cxcywh")
"""Words that do so unless the column has single numbers."""
_UNITS = words("ms idx index row rows tokens")
"""Words of bookkeeping that are also units of spans."""
_POSITIONS = _SHAPES | words(
    "min max left right top bottom start end begin x y z w h xmin ymin xmax ymax cx cy xc yc"
    " width height lat lon point points entity entities segment segments"
)
"""Words in names of columns of boxes, outlines, points and spans."""
_WIDE, _HIGH = frozenset(["w", "width"]), frozenset(["h", "height"])
_FIRST, _LAST = frozenset(["start", "begin"]), frozenset(["end", "stop"])
_X, _Y = frozenset(["x", "cx", "xc"]), frozenset(["y", "cy", "yc"])
_WKT = r"(?i)^\s*(SRID=\d+;)?\s*(MULTI)?(POINT|LINESTRING|POLYGON)\s*(Z|M|ZM)?\s*\("
_CORNERS = {
    "xmin": r"(x.?(min|start|begin|left|1|0)|(min|left).?x|left)",
    "ymin": r"(y.?(min|start|begin|top|1|0)|(min|top).?y|top)",
    "xmax": r"(x.?(max|end|stop|right|2)|(max|right).?x|right)",
    "ymax": r"(y.?(max|end|stop|bottom|2)|(max|bottom).?y|bottom)",
}
"""Names of corners of boxes, next to other words."""


class Columns(msgspec.Struct, frozen=True):
    """Evidence before any row is read."""

    ready: Prepared
    options: Options
    unread: frozenset[str]


def evidence_of(ready: Prepared, options: Options) -> tuple[set[str], Columns | None]:
    """Return the signals of the columns of two sides, and the evidence if there is any signal."""
    sides = ready.sides
    ours, theirs = sides[PREDICTIONS], sides[GROUND_TRUTHS]
    unread = ours.schema.keys() & theirs.schema.keys()
    for naming in (ours.naming, theirs.naming):
        unread -= naming.exprs.keys()
        unread -= naming.recognised.keys()
    signals = set()
    if unread and not {ours.source.format, theirs.source.format} <= _NAMING:
        signals.add("unread_on_both")
    task, names = ours.table.task, {*map(folded, ours.schema)}
    if task == "retrieval":
        numeric = all(s.schema.get("score", pl.Null()).is_numeric() for s in (ours, theirs))
        if numeric and theirs.naming.recognised.get("score") == "relevance":
            signals.add("unlabelled_sides")
        if "relevance" not in theirs.naming.exprs and len(theirs.schema) > len(theirs.naming.exprs):
            signals.add("no_relevance")
        ordered = {ours.table.datum, "score"} <= ours.naming.exprs.keys()
        if ordered and not names.isdisjoint((RANK.name, *RANK.aliases)):
            signals.add("score_and_rank")
    elif task == "detection":
        if not _FRAMES.isdisjoint(map(folded, unread)):
            signals.add("frames")
    elif task == "agents":
        if not _INPUTS.isdisjoint(names | {*map(folded, theirs.schema)}):
            signals.add("input")
        if ("arguments" in ours.naming.exprs) != ("arguments" in theirs.naming.exprs):
            signals.add("arguments_of_one")
    return signals, Columns(ready, options, frozenset(unread)) if signals else None


_NAMING = frozenset({"annotations", "tracks"})
"""Formats whose readers name all positions."""


def _differing(evidence: Columns) -> Iterator[Facts]:
    """Columns of both sides that are not read and whose values differ within common datums."""
    ready, inferred = evidence.ready, evidence.options.task is None
    ours, theirs = ready.sides[PREDICTIONS], ready.sides[GROUND_TRUTHS]
    task, datum = ours.table.task, ours.table.datum
    names = _idle(evidence)
    positions, shapes, plain = _positions(ours, names)
    names = [name for name in names if name not in plain]
    if task not in _ONE_PER_DATUM:
        names = positions
    names = [n for n in names if pl.Object not in (ours.schema[n], theirs.schema[n])]
    if not names or not all(datum in side.naming.exprs for side in (ours, theirs)):
        return
    differing = {
        name: (n, of)
        for name, (n, of) in _compared(ours, theirs, names, ready).items()
        if n and n >= _DIFFER * of
    }
    by_severity: dict[str, list[str]] = {}
    for name in differing:
        if name in shapes and task in _GUESSED and inferred:
            severity = PROBLEM
        elif task not in _ONE_PER_DATUM or (name in positions and not inferred):
            severity = NOTE
        else:
            severity = WARNING
        by_severity.setdefault(severity, []).append(name)
    for severity, chosen in by_severity.items():
        n, of = max(differing[name] for name in chosen)
        yield Facts(
            severity=severity,
            columns=tuple(chosen),
            count=n,
            of=of,
            values={"task": task, "unit": list(ours.table.unit), "ways": _corners(positions)},
        )


_TRUE = words("true truth gt actual target reference gold")
_PREDICTED = words("pred predicted prediction det detected")
_SPLIT = r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+"


def differing_pairs(ready: Prepared, options: Options) -> tuple[list[Note], list[Problem]]:
    """Apply the rule of unread columns to one table, whose sides are words in names."""
    side = ready.sides[TABLE]
    task, inferred = side.table.task, options.task is None
    pairs: dict[tuple[str, ...], dict[bool, str]] = {}
    unread = side.schema.keys() - side.naming.used - _selecting(ready)
    for name in unread if task in _GUESSED else ():
        parts = [part for part in re.split(_SPLIT, name) if part]
        kinds = [(part.lower() in _TRUE, part.lower() in _PREDICTED) for part in parts]
        of_side = [truth for truth, predicted in kinds if truth or predicted]
        if len(of_side) == 1:
            rest = (part for part, kind in zip(parts, kinds, strict=True) if not any(kind))
            pairs.setdefault(tuple(rest), {})[of_side[0]] = name
    named = [both for both in pairs.values() if len(both) == 2]
    if not named:
        return [], []
    names = [name for name in side.schema if any(name in both.values() for both in named)]
    positions, shapes, _ = _positions(side, names)
    sound = {n for n in names if n not in shapes and side.schema[n] == pl.String}
    sound |= {n for n in names if _words(n) & (_BOOKKEEPING - _UNITS)}
    rows = rows_of(ready, TABLE).head(_HEAD)
    chosen: list[str] = []
    most = of = 0
    for both in named:
        if not {*both.values()} <= {*positions} - sound:
            continue
        differ = [_plain(one, side.schema[one]).cast(pl.String) for one in both.values()]
        n, of = rows.select((differ[0] != differ[1]).sum(), all=pl.len()).collect().row(0)
        if n and n >= _DIFFER * of:
            most, chosen = max(most, n), [*chosen, *both.values()]
    if not chosen:
        return [], []
    sure = PROBLEM if {*chosen} & shapes else WARNING
    facts = Facts(
        severity=sure if inferred else NOTE,
        side=TABLE,
        columns=tuple(name for name in names if name in chosen),
        count=most,
        of=of,
        values={"task": task, "unit": list(side.table.unit), "ways": {}},
    )
    rule: Rule[Prepared] = Rule(
        "unread_columns_differ", set(), lambda _: iter([facts]), _describe_differing
    )
    return apply([rule], task, {"pairs"}, ready)


def _selecting(ready: Prepared) -> set[str]:
    """Columns of conditions and slices."""
    return {name for one in ready.where.values() for name in one.names} | {*ready.plan.homes}


def _idle(evidence: Columns) -> list[str]:
    """Columns of which differing values mean something, in the order of the predictions."""
    ready = evidence.ready
    recognised = {*map(folded, _selecting(ready))}
    for role in (PREDICTIONS, GROUND_TRUTHS):
        side = ready.sides[role]
        recognised |= {*map(folded, side.table.names | side.naming.used)}
        for column, _ in side.table.unread:  # another note reports these
            recognised |= {*map(folded, (column.name, *column.aliases))}
    schema = ready.sides[PREDICTIONS].schema
    names = [
        name
        for name in schema
        if name in evidence.unread and name.strip() and folded(name) not in recognised
    ]
    ends = [
        {name for name in names if schema[name].is_numeric() and _words(name) & group}
        for group in (_FIRST, _LAST)
    ]
    spans = set().union(*ends) if all(ends) else set()
    return [
        name
        for name in names
        if not _words(name) & (_BOOKKEEPING - _UNITS if name in spans else _BOOKKEEPING)
    ]


def _words(name: str) -> set[str]:
    """Return the words of a column's name in lower case, with and without numbers behind them."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()
    return set(re.findall(r"[a-z]+|[0-9]+", spaced)) | set(re.findall(r"[a-z0-9]+", spaced))


def _positions(side: Side, names: list[str]) -> tuple[list[str], set[str], set[str]]:
    """Classify columns by name, dtype and first rows.

    Returns:
        Columns that may be positions; those that are certainly boxes, outlines or spans; and others
        that differ between sides in valid tables: image sizes, and embeddings.
    """
    words = {name: _words(name) for name in names}

    def having(*groups: frozenset[str]) -> set[str]:
        """Columns with words of the groups, if every group has one."""
        matches = [{name for name in names if words[name] & group} for group in groups]
        return set().union(*matches) if all(matches) else set()

    dtypes = {name: side.schema[name] for name in names}
    depths = {n: depth for n in names if (depth := within(dtypes[n]))[1].is_numeric()}
    looked = [n for n in names if dtypes[n] == pl.String or depths.get(n, (0,))[0]]
    first = side.source.frame.select(looked).head(20).collect() if looked else pl.DataFrame()
    single = {name for name in looked if depths.get(name, (0,))[0] == 1}
    shapes = {name for name in looked if name not in single and _outlined(first[name])}
    shapes |= {name for name in names if words[name] & _SHAPES} | having(_X, _Y, _WIDE, _HIGH)
    shapes |= {n for n in names if words[n] & _LISTS and not dtypes[n].is_numeric()}
    shapes |= having(_FIRST, _LAST) | {
        n for n in names if dtypes[n].is_nested() and n in having(_NAMED)
    }
    shapes |= set(_corners(names))
    plain = having(_WIDE, _HIGH)
    boxes = {n for n in single if _boxed(first[n].cast(pl.List(pl.Float64)))}
    plain |= {n for n, (depth, inner) in depths.items() if depth and inner.is_float()} - boxes
    plain -= shapes
    positions = [n for n in names if n in shapes or (words[n] & _POSITIONS and n not in plain)]
    return positions, shapes, plain


_NAMED = _POSITIONS - _WIDE - _HIGH


def _outlined(first: pl.Series) -> bool:
    """Return whether cells are WKT, or lists of points."""
    if first.dtype == pl.String:
        return bool(first.str.contains(_WKT).any())
    inner: Any = first.dtype
    while inner.inner.is_nested():
        first, inner = first.explode().drop_nulls(), inner.inner
    lengths = first.cast(pl.List(inner.inner)).list.len()
    return bool(lengths.len() and (lengths == 2).all())


def _boxed(first: pl.Series) -> bool:
    """Return whether all lists have four numbers, the last two of them sizes or later corners.

    Lists whose sum is 1 are probabilities.
    """
    lists = first.drop_nulls()
    if not len(lists) or not (lists.list.len() == 4).all():
        return False
    x, y, z, w = (lists.list.get(place) for place in range(4))
    boxes = ((z > 0) & (w > 0)).all() or ((z > x) & (w > y)).all()
    return bool(boxes and not ((x + y + z + w - 1).abs() < _ROUNDED).all())


_ROUNDED = 0.01


def _corners(names: Iterable[str]) -> dict[str, str]:
    """Return ``columns`` that make boxes of four columns, if their names allow it."""
    mapping = {}
    for corner, pattern in _CORNERS.items():
        fits = [n for n in names if re.search(rf"(?<![a-z0-9]){pattern}(?![a-z0-9])", n.lower())]
        if len(fits) == 1:
            mapping[fits[0]] = corner
    return mapping if len(mapping) == len(_CORNERS) else {}


def _compared(
    ours: Side, theirs: Side, names: list[str], ready: Prepared
) -> dict[str, tuple[int, int]]:
    """Return per column the number of keys with different values, and of keys compared.

    A key is a datum, in retrieval a datum and a document; values of one key are compared as sets.
    """
    keys = [
        column.name
        for column in ours.table.columns
        if (
            (column.kind == "id" and column.name not in LABEL_COLUMNS)
            or column.name == ours.table.datum
        )
        and column.name in ours.naming.exprs
        and column.name in theirs.naming.exprs
    ]
    rows = [_rows(side, keys, names, ready) for side in (ours, theirs)]
    heads = [one.head(_HEAD).collect() for one in rows]
    common = heads[0].select("key").unique().join(heads[1].select("key").unique(), on="key")
    if common.height < _FEW:
        sought = heads[1]["key"].unique(maintain_order=True).head(_SOUGHT)
        selected = pl.col("key").is_in(sought.implode())
        heads = [one.filter(selected).head(10 * _HEAD).collect() for one in rows]
    for i, head in enumerate(heads):
        if head.height >= _HEAD:  # the last key may go on beyond the rows looked at
            heads = [one.filter(pl.col("key") != heads[i]["key"][-1]) for one in heads]
    result = {}
    for at, name in enumerate(names):
        value = pl.col(f"value {at}")
        if any(head.schema[f"value {at}"].is_numeric() for head in heads):
            number = value.cast(pl.Float64, strict=False).round_sig_figs(6)
            value = pl.coalesce(number.cast(pl.String), value.cast(pl.String))
        sets = [
            head.select("key", value=value)
            .drop_nulls()
            .group_by("key")
            .agg(pl.col("value").cast(pl.String).unique().sort().str.join("\n"))
            for head in heads
        ]
        pairs = sets[0].join(sets[1], on="key", suffix=" of truth")
        if pairs.height:
            n = int(pairs.select((pl.col("value") != pl.col("value of truth")).sum()).item())
            result[name] = (n, pairs.height)
    return result


def _rows(side: Side, keys: list[str], names: list[str], ready: Prepared) -> pl.LazyFrame:
    """Keys as text, and the columns, numbers or text."""
    key = [side.naming.exprs[name].cast(pl.String) for name in keys]
    return rows_of(ready, side.table.side).select(
        pl.concat_str(key, separator="\n").alias("key"),
        *(_plain(name, side.schema[name]).alias(f"value {at}") for at, name in enumerate(names)),
    )


def _plain(name: str, dtype: pl.DataType) -> pl.Expr:
    if dtype.is_numeric():
        return pl.col(name)
    if dtype.is_nested():
        return pl.struct(name).struct.json_encode()
    if dtype == pl.Binary:
        return pl.col(name).bin.encode("hex")
    if dtype == pl.Duration:
        return pl.col(name).dt.total_microseconds()
    return pl.col(name).cast(pl.String).str.strip_chars()


def _describe_differing(facts: Facts) -> str:
    task, ways = facts.values["task"], facts.values["ways"]
    one, many = facts.values["unit"]
    several = len(facts.columns) > 1
    are, them, they = ("are", "them", "they") if several else ("is", "it", "it")
    columns = f"column{'s' * several} {listing(facts.columns)}"
    differ = f"differ{'s' * (not several)} in {count_of(facts.count or 0, one, many)} of {facts.of}"
    named = option("columns", ways or {facts.columns[0]: "..."})
    if facts.severity != PROBLEM:
        return (
            f"{columns}: on both sides, {differ} compared, and {are} not read. If {task} should"
            f" score {them}, write {named}; if not, drop {them}"
            f"{'' if facts.side == TABLE else ' from one of the tables'}."
        )
    meaning = f"If {'these are boxes' if ways else f'{they} should count'}, write {named}."
    return (
        f"task: {columns} {are} on both sides, look{'s' * (not several)} like positions and"
        f" {differ} compared, but {task} does not read {them}. {meaning} To score without {them},"
        f" write {option('task', task)}."
    )


def _exchanged(evidence: Columns) -> Iterator[Facts]:
    """Judgments with fractions or high numbers, and a run with a few grades only; or two runs.

    Mappings and tables whose relevance is called score, as BEIR's, do not state their side.
    """
    sides = evidence.ready.sides
    frames = [sides[role].source.frame for role in (PREDICTIONS, GROUND_TRUTHS)]
    theirs = frames[1].select("score").drop_nulls().collect()["score"]
    run = not {"rank", "run_id"}.isdisjoint(sides[GROUND_TRUTHS].schema)
    if run and sides[GROUND_TRUTHS].source.format == "trec":
        yield Facts(severity=WARNING, count=len(theirs))
        return
    odd = int(((theirs != theirs.round()) | (theirs.abs() > _HIGHEST)).sum())
    if 2 * odd <= len(theirs):
        return
    ours = frames[0].select("score").drop_nulls().collect()["score"]
    if not len(ours) or ours.n_unique() > _GRADES or not (ours == ours.round()).all():
        return
    grades = bool(ours.is_between(-1, _GRADES).all())
    if grades or not (theirs == theirs.round()).all():
        yield Facts(severity=WARNING, count=odd, of=len(theirs))


def _describe_exchanged(facts: Facts) -> str:
    if facts.of is None:
        return (
            "the ground truths are a TREC run, whose scores count as relevance: are the two sides"
            " swapped? The predictions come first."
        )
    return (
        f"{facts.count:,} of {facts.of:,} judgments are fractions or above {_HIGHEST}, as scores of"
        " a run are, and the predictions are a few whole numbers, as judgments are: are the two"
        " sides swapped? The predictions come first."
    )


def _without_relevance(evidence: Columns) -> Iterator[Facts]:
    """Judgments without a relevance, and a column of grades that is not read."""
    ready = evidence.ready
    side = ready.sides[GROUND_TRUTHS]
    idle = [
        name
        for name, dtype in side.schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean)
        and name not in side.naming.used
        and name not in ready.plan.homes
        and _words(name) & _GRADED
        and not _words(name) & _COUNTED
    ]
    head = side.source.frame.select(pl.col(idle).cast(pl.Float64)).head(_HEAD).collect()
    for name in idle:
        values = head[name].drop_nulls().drop_nans()
        zeros = int((values == 0).sum())
        if bool((values > 0).any()) and values.n_unique() > 1:
            yield Facts(
                severity=WARNING if zeros else NOTE,
                side=GROUND_TRUTHS,
                columns=(name,),
                count=zeros,
                of=len(values),
                values={
                    "boolean": side.schema[name] == pl.Boolean,
                    "lowest": values.min(),
                    "highest": values.max(),
                },
            )
            return


def _describe_without_relevance(facts: Facts) -> str:
    cast = "convert it to integers and " if facts.values.get("boolean") else ""
    highest = facts.values["highest"]
    values, from_on = f"{facts.values['lowest']:g} to {highest:g}", ""
    if highest > 1:
        level = int(highest)
        levels = option("relevance_levels", level)
        from_on = f" {levels} then counts only grades of {level} or more as relevant."
    if facts.count:
        values = f"0 in {facts.count:,} of {facts.of:,} rows looked at"
    return (
        f"ground truths: no column of relevance, so that every row counts as relevant. Column"
        f" {facts.columns[0]!r} ({values}) is not read. If it is the relevance, {cast}write"
        f" {option('columns', {facts.columns[0]: 'relevance'})}.{from_on}"
    )


_GRADED = words(
    "rel relevance relevant relevancy rating ratings grade grades graded judgment judgement judged"
    " gain qrel"
)
"""Words in names of columns of relevance."""
_COUNTED = words(
    "id ids index idx n num count number rank position time date verified confidence level by"
)


def _against_ranks(evidence: Columns) -> Iterator[Facts]:
    """Scores that rise along the ranks of every query looked at."""
    side = evidence.ready.sides[PREDICTIONS]
    ranks = [name for name in side.schema if folded(name) in (RANK.name, *RANK.aliases)]
    if len(ranks) > 1 or not side.schema[ranks[0]].is_numeric() or ranks[0] in side.naming.used:
        return
    exprs = side.naming.exprs
    head = (
        side.source.frame.head(_HEAD)
        .select(query=exprs[side.table.datum], score=exprs["score"], rank=pl.col(ranks[0]))
        .collect()
        .drop_nulls()
        .sort("query", "rank")
    )
    rise = head.select(
        pl.col("score").diff().filter(pl.col("query") == pl.col("query").shift(1))
    ).to_series()
    if int((rise > 0).sum()) >= _FEW and not bool((rise < 0).any()):
        yield Facts(
            severity=NOTE,
            side=PREDICTIONS,
            columns=("score", ranks[0]),
            count=head["query"].n_unique(),
        )


def _describe_against_ranks(facts: Facts) -> str:
    rank = facts.columns[1]
    return (
        f"the scores rise along column {rank!r} in all {facts.count:,} queries looked at, and the"
        " highest score ranks first. Are they distances, for which lower is better, or is rank 1"
        f" the lowest score? Negate distances, or remove the scores to rank by {rank!r}; ranks"
        " from the lowest score up are not read."
    )


_INPUTS = words("input args kwargs params parameters")
"""Names of columns of arguments, or of something else."""
_NO_ARGUMENTS = r'^\s*(\{(\s*"[^"]*"\s*:\s*null\s*,?)*\s*\}|null)?\s*$'


def _inputs(evidence: Columns) -> Iterator[Facts]:
    """Objects in a column such as ``input`` next to tools, if only it can be the arguments."""
    sides = [(role, evidence.ready.sides[role]) for role in (PREDICTIONS, GROUND_TRUTHS)]
    objects = [_objects(side) for _, side in sides]
    if all(
        names or "arguments" in side.naming.exprs
        for names, (_, side) in zip(objects, sides, strict=True)
    ):
        for names, (role, _) in zip(objects, sides, strict=True):
            for name in names:
                yield Facts(severity=WARNING, side=role, columns=(name,))


def _objects(side: Side) -> list[str]:
    """Return unread columns of objects that differ between the calls of a datum."""
    datum = side.naming.exprs.get(side.table.datum)
    if "arguments" in side.naming.exprs or datum is None:
        return []
    result = []
    for name, dtype in side.schema.items():
        if folded(name) not in _INPUTS or name in side.naming.used:
            continue
        value = pl.col(name)
        if isinstance(dtype, pl.Struct):
            value = value.struct.json_encode()
        elif dtype != pl.String:
            continue
        head = side.source.frame.select(datum=datum, value=value).head(_HEAD).collect()
        texts = head["value"].drop_nulls()
        if texts.is_empty() or not texts.str.contains(r"^\s*\{").all():
            continue
        n = head["datum"].n_unique()
        if n == len(head) or n < len(head.unique()):  # otherwise the prompt of the datum
            result.append(name)
    return result


def _describe_inputs(facts: Facts) -> str:
    name = facts.columns[0]
    return (
        f"{facts.side.replace('_', ' ')}: column {name!r} contains objects and is not read, so that"
        f" arguments do not count. To read it, write {option('columns', {name: 'arguments'})}."
    )


def _arguments_of_one(evidence: Columns) -> Iterator[Facts]:
    """Arguments on one side only, so that its calls match none of the other side."""
    sides = evidence.ready.sides
    role = PREDICTIONS if "arguments" in sides[PREDICTIONS].naming.exprs else GROUND_TRUTHS
    more = "superset" if role == PREDICTIONS else "subset"
    requested = evidence.options.metrics or metrics.names("agents")
    if evidence.options.tool_arguments in ("ignore", more) or all(
        metrics.has("agents", name)
        and "tool_arguments" not in metrics.metric_of("agents", name).params
        for name in requested
    ):
        return
    if any(_inputs(evidence)):
        return  # the arguments of the other side
    side = sides[role]
    head = side.source.frame.select(side.naming.exprs["arguments"].alias("value"))
    texts = head.head(_HEAD).collect()["value"].cast(pl.String).drop_nulls()
    if n := int((~texts.str.contains(_NO_ARGUMENTS)).sum()):
        yield Facts(severity=WARNING, side=role, columns=("arguments",), count=n)


def _describe_arguments_of_one(facts: Facts) -> str:
    other = "predictions" if facts.side == GROUND_TRUTHS else "ground truths"
    return (
        f"{facts.side.replace('_', ' ')}: calls have arguments, and those of the {other} have none,"
        f" so that they do not match. To compare tools only, write"
        f" {option('tool_arguments', 'ignore')}."
    )


_FRAMES = frozenset({FRAME.name, *FRAME.aliases})
_FIRST_BOXES = 100_000


def _several_frames(evidence: Columns) -> Iterator[Facts]:
    """Columns of frames that are not read, if most datums have boxes of several frames."""
    sides = evidence.ready.sides
    for name in sides[PREDICTIONS].schema:
        if name not in evidence.unread or folded(name) not in _FRAMES:
            continue
        counts = []
        for role in (PREDICTIONS, GROUND_TRUTHS):
            datum = sides[role].naming.exprs.get(sides[role].table.datum)
            if datum is None:
                return
            rows = rows_of(evidence.ready, role).select(datum=datum, frame=pl.col(name))
            rows = rows.drop_nulls().head(_FIRST_BOXES)
            several = rows.group_by("datum").agg(pl.col("frame").n_unique() > 1)
            counts.append(several.select(pl.col("frame").sum(), all=pl.len()).collect().row(0))
        if all(2 * n > of for n, of in counts):
            n, of = counts[0]
            yield Facts(severity=WARNING, columns=(name,), count=n, of=of)


def _describe_several_frames(facts: Facts) -> str:
    (name,) = facts.columns
    return (
        f"{count_of(facts.count or 0, 'datum has', 'datums have')} boxes of several frames, and"
        f" column {name!r} is not read: boxes of different frames match. Give each frame a"
        f" datum_id, such as 'clip_1/17'; to score tracks, write {option('task', 'tracking')}."
    )


_HIGHEST = 10  # grade that judgments usually have
_GRADES = 6  # distinct whole numbers at most that judgments are

RULES: tuple[Rule[Columns], ...] = (
    Rule("unread_columns_differ", {"unread_on_both"}, _differing, _describe_differing),
    Rule("mappings_swapped", {"unlabelled_sides"}, _exchanged, _describe_exchanged),
    Rule("relevance_unread", {"no_relevance"}, _without_relevance, _describe_without_relevance),
    Rule("scores_against_ranks", {"score_and_rank"}, _against_ranks, _describe_against_ranks),
    Rule("frames_unread", {"frames"}, _several_frames, _describe_several_frames),
    Rule("arguments_unread", {"input"}, _inputs, _describe_inputs),
    Rule(
        "arguments_on_one_side", {"arguments_of_one"}, _arguments_of_one, _describe_arguments_of_one
    ),
)


def columns_read(
    tables: Mapping[str, tuple[Mapping[str, Any], Naming]],
    named: Mapping[str, str] | None,
    pieces: Iterable[str] = (),
    where: Mapping[str, Condition] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the columns of every table as plain values: ``read``, ``guessed``, ``unread``.

    Returns:
        Per role: names in the input that are read by their canonical name or by ``columns``; name
            in the input to canonical name of guessed ones; and names that are not read.
    """
    result: dict[str, dict[str, Any]] = {}
    sliced = set(pieces)
    for one in (where or {}).values():
        sliced |= set(one.names)
    for role, (schema, naming) in tables.items():
        used = naming.used | sliced
        result[role] = {"read": [], "guessed": {}, "unread": []}
        for name in schema:
            if name in naming.recognised and name in used and name not in (named or {}):
                result[role]["guessed"][name] = naming.recognised[name]
            else:
                result[role]["read" if name in used else "unread"].append(name)
    return result


def describe_columns(columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines of :func:`columns_read` for people."""
    lines = []
    for role, groups in columns.items():
        guessed = [f"{mine} as {canonical}" for mine, canonical in groups["guessed"].items()]
        for title, names in (
            ("read", groups["read"]),
            ("guessed", guessed),
            ("not read", groups["unread"]),
        ):
            if names:
                more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
                message = ", ".join(names[:_MOST_NAMES])
                lines.append(f"{title:<10}{role.replace('_', ' ')}: {message}{more}")
    return lines


_MOST_NAMES = 40
