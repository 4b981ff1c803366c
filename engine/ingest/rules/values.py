"""Rules about values of columns: several models in one table, spans next to equal texts, labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.ingest.both_sides import LABEL_COLUMNS, ONE_SIDED_LABELS
from evalengine.ingest.collecting import Prepared
from evalengine.ingest.dtypes import MISSING
from evalengine.ingest.geometry import CORNER_NAMES, iou_with
from evalengine.ingest.problems import Note, count_of, listing
from evalengine.ingest.recognise import Finder, Side
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.options import Options
from evalengine.schemas.tables import table_for
from evalengine.schemas.wording import option, sql_name, sql_text

from . import NOTE, PROBLEM, WARNING, Facts, Rule, apply, rows_of, words

MODELS = words(
    "model model_name model_id modelname system system_id system_name run_name run_id method"
    " method_name algorithm estimator classifier checkpoint"
)
"""Names of columns for the model of a row."""
RUNS = words(
    "epoch epochs seed random_seed run run_no run_number fold step global_step train_step"
    " training_step iteration iter"
)
"""Names of columns for the run of a model, where each datum has rows of nearly all its values."""
NAMED = MODELS | RUNS
_SPANS = words("spans span entities entity annotations ents predicted_spans")
_SPAN_NAMES = words("start end begin stop offset start_offset end_offset start_char end_char")
_FIELDS = 2  # of a struct that make a span: both ends, or an end and a length
_HEAD = 2_000  # rows of each side whose texts are compared
_EQUAL = 0.95  # share of datums with equal texts from which these are the input
_SHARED = 0.5  # share of datums with rows of several models
_NEARLY = 0.8  # share of the runs of which a row's datum, and its label, have rows
_BOXES = 4_000  # rows of a few datums that are compared
_OVERLAP, _REPEATED = 0.5, 0.3  # IoU of boxes of two runs, and the share of rows with such a box
_OTHERS = re.compile(
    r"(lag|roll|expand|diff)|[-_.](lo|hi|lower|upper|q|p)[-_.]?\d|(^|[-_.])(lo|hi|low|high|lower|upper"
    r"|lb|ub|min|max|std|stddev|sd|se|sigma|var|variance|raw)([-_.]|$)",
    re.IGNORECASE,
)
"""Names of columns that are features, ends of intervals or spreads, not other models."""
_PREDICTED = words("pred preds predicted prediction forecast yhat estimate")
_FEW = 10  # of so many labels one may be a missing value
_UNSURE = frozenset(["method", "system"])  # names that may also describe the rows
_EACH = 10  # rows of each model whose rows are datums
_SIDES = (TABLE, PREDICTIONS, GROUND_TRUTHS)


class Values(msgspec.Struct, frozen=True):
    """Evidence before any row is checked.

    Attributes:
        models: role to names of columns of models or runs.
        spans: role to names of unread columns of spans.
        forecasts: role to names of columns that may be predictions of other models.
    """

    ready: Prepared
    options: Options
    models: dict[str, list[str]]
    spans: dict[str, list[str]]
    forecasts: dict[str, list[str]]


def evidence_of(ready: Prepared, options: Options) -> tuple[set[str], Values]:
    """Return the signals of names and dtypes of columns, and the evidence."""
    signals: set[str] = set()
    models, spans, forecasts = {}, {}, {}
    for role in _SIDES:
        side = ready.sides.get(role)
        if side is None:
            continue
        names = NAMED if side.table.runs else MODELS
        if role != GROUND_TRUTHS and not names.isdisjoint(map(str.casefold, side.schema)):
            models[role] = [name for name in side.schema if name.casefold() in names]
            signals.add("model_column")
        if "text" in side.naming.exprs and pl.List in side.schema.values():
            idle = side.schema.keys() - side.naming.used
            if columns := [name for name in side.schema if name in idle and _is_span(name, side)]:
                spans[role] = columns
                signals.add("spans_unread")
        if columns := _other_predictions(side, options):
            forecasts[role] = columns
            signals.add("numbers_unread")
        if side.naming.constant is not None:
            signals.add("constant_training")
        if options.task is None and pl.List in side.schema.values():
            signals.add("lists")
    return signals, Values(ready, options, models, spans, forecasts)


def _other_predictions(side: Side, options: Options) -> list[str]:
    """Own names of unread numbers in a frame of forecasts, or named like the prediction."""
    read = side.naming.exprs.get("prediction")
    if read is None:
        return []
    prediction, *_ = read.meta.root_names()
    used = side.naming.used
    every = {"unique_id", "ds"} <= side.schema.keys()  # as StatsForecast and its kin name them
    every |= prediction in (options.columns or {}) and "series" in side.naming.exprs
    return [
        name
        for name, dtype in side.schema.items()
        if dtype.is_float()
        and name not in used
        and name not in options.by
        and not _OTHERS.search(name)
        and (every or _similar(name, prediction))
    ]


def _similar(name: str, other: str) -> bool:
    """Return whether one name extends the other by a word, or both share a word for predictions."""
    ours, theirs = (re.split(r"[\W_]+", one.casefold()) for one in (name, other))
    few, many = sorted((ours, theirs), key=len)
    longer = len(few) < len(many) and few in (many[: len(few)], many[-len(few) :])
    return longer or any(ours[at] == theirs[at] and ours[at] in _PREDICTED for at in (0, -1))


def _is_span(name: str, side: Side) -> bool:
    """Return whether a column has lists of spans, by the fields of structs or by name."""
    dtype = side.schema[name]
    inner: Any = dtype.inner if isinstance(dtype, pl.List) else None
    if isinstance(inner, pl.Struct):
        fields = {field.name.casefold() for field in inner.fields}
        return len(fields & _SPAN_NAMES) >= _FIELDS or {"offset", "length"} <= fields
    return isinstance(inner, pl.List) and name.casefold() in _SPANS


def _rows(evidence: Values, role: str, **columns: pl.Expr) -> pl.LazyFrame:
    """Expressions over the own columns of one table, of the rows that its condition keeps."""
    return rows_of(evidence.ready, role).select(**columns)


def _models(evidence: Values) -> Iterator[Facts]:
    """Tables whose datums have rows of several models each."""
    model_names: set[str] = set()
    columns = [(role, name) for role, names in evidence.models.items() for name in names]
    for role, column in columns:
        if role in model_names:  # one column per table is named
            continue
        table, exprs = evidence.ready.sides[role].table, evidence.ready.sides[role].naming.exprs
        truths = evidence.ready.sides.get(GROUND_TRUTHS)
        if truths is not None and column in truths.schema:
            continue
        rows = _rows(evidence, role, model=pl.col(column))
        sample = pl.concat([rows.head(_HEAD), rows.tail(_HEAD)])
        if sample.unique().collect()["model"].drop_nulls().len() <= 1:  # one model, or none
            continue
        names = rows.unique().collect()["model"].drop_nulls()
        if len(names) <= 1:
            continue
        names_of_key = table.key or ((table.datum, "doc_id") if "doc_id" in exprs else ())
        key = [exprs[name] for name in names_of_key if name in exprs]
        if table.datum in exprs:
            sure = bool(key) or "model" in column.casefold()
            if not sure and not _runs(evidence, role, column):
                continue
            named = {f"key {i}": expr for i, expr in enumerate(key or [exprs[table.datum]])}
            rows = _rows(evidence, role, **named, model=pl.col(column))
            several = rows.group_by(*named).agg(pl.col("model").n_unique() > 1)
            n, of = several.select(pl.col("model").sum(), all=pl.len()).collect().row(0)
            severity = PROBLEM if key else WARNING
            if not n or (not key and n < _SHARED * of):
                continue
        elif not table.values or (truth := exprs.get(table.values[0][1])) is None:
            continue
        elif shared := _shared(evidence, role, truth, column):
            (n, of), severity = shared, PROBLEM
        elif column in evidence.ready.plan.homes or column.casefold() in _UNSURE:
            continue
        else:  # each row is a datum: models of the same rows have the same true values
            rows = _rows(evidence, role, truth=truth.hash(0), model=pl.col(column))
            sets = rows.group_by("model", maintain_order=True).agg(pl.col("truth")).collect()
            if sets["truth"].n_unique() > 1 or (sets["truth"].list.len() < _EACH).any():
                continue
            n, of, severity = len(names), len(names), WARNING
        models = sorted(map(str, names))
        model_names.add(role)
        yield Facts(
            severity=severity,
            side=role,
            columns=(column,),
            count=n,
            of=of,
            values={
                "models": models[:5],
                "number": len(names),
                "literal": str(names.min()) if names.dtype.is_numeric() else sql_text(models[0]),
            },
        )


def _runs(evidence: Values, role: str, column: str) -> bool:
    """Return whether boxes are of several runs: in the same datums, of the same labels and objects.

    Parts of one run, such as tiles, are in the same datums, too, but they do not overlap.
    """
    side = evidence.ready.sides[role]
    exprs, datum = side.naming.exprs, side.table.datum
    if not side.table.runs or column in side.naming.used:
        return False
    keys = [name for name in (datum, "label_value") if name in exprs]
    read = {name: exprs[name] for name in (*keys, *CORNER_NAMES) if name in exprs}
    rows = _rows(evidence, role, **read, run=pl.col(column)).drop_nulls()
    runs = rows.select(pl.col("run").unique(maintain_order=True)).collect()["run"]
    for name in keys:
        groups = rows.group_by(name, maintain_order=True)
        by_key = groups.agg(n=pl.col("run").n_unique(), rows=pl.len()).collect()
        of_runs, n = by_key.select((pl.col("n") * pl.col("rows")).sum(), pl.col("rows").sum()).row(
            0
        )
        if of_runs < _NEARLY * len(runs) * n:
            return False
        if name == datum:
            datums = by_key.filter(pl.col("rows").cum_sum() <= _BOXES).head(_HEAD)
            datums = datums if datums.height else by_key.head(1)
    if not {*CORNER_NAMES} <= read.keys():
        return True
    some = pl.col(datum).is_in(datums[datum].implode()), pl.col("run").is_in(runs[:2].implode())
    few = rows.filter(*some).head(_BOXES).with_row_index("row").collect()
    pairs = few.join(few, on=keys).filter(pl.col("run") != pl.col("run_right"))
    same = pairs.filter(iou_with("_right") >= _OVERLAP)
    return same["row"].n_unique() >= _REPEATED * few.height


def _shared(
    evidence: Values, role: str, truth: pl.Expr, model_column: str
) -> tuple[int, int] | None:
    """Count the times of series with rows of several models that agree in the truth, and all times.

    None if these are fewer than half, or the table has no such columns.
    """
    side = evidence.ready.sides[role]
    table = table_for(side.table.task, role)
    find = Finder(side.schema, role, evidence.options.columns)
    columns = (column for column in table.columns if column.name in table.id_columns)
    key = [name for column in columns if (name := find.find(column)) not in (None, model_column)]
    if not key:
        return None
    named = {f"key {i}": pl.col(name) for i, name in enumerate(key)}
    rows = _rows(evidence, role, **named, truth=truth, model=pl.col(model_column)).group_by(*named)
    several = (pl.col("model").n_unique() > 1) & (pl.col("truth").n_unique() == 1)
    counts = rows.agg(several=several).select(pl.col("several").sum(), all=pl.len())
    n, of = counts.collect().row(0)
    return (n, of) if n and n >= _SHARED * of else None


def _describe_models(facts: Facts) -> str:
    (column,), models = facts.columns, facts.values["models"]
    literal = facts.values["literal"]
    what = "runs by column" if column.casefold() in RUNS else "models by column"
    return (
        f"{facts.side.replace('_', ' ')}: rows are of {facts.values['number']} {what}"
        f" {column!r} ({listing(models, facts.values['number'])}), and of the same"
        f" datums. Score one at a time, {option('where', f'{sql_name(column)} = {literal}')};"
        f" to compare them: `evalengine compare` with {option('model', column)}."
    )


def _spans(evidence: Values) -> Iterator[Facts]:
    """Columns of spans that are not read, next to texts that are equal on both sides."""
    sides = evidence.ready.sides
    first, second = (TABLE, TABLE) if TABLE in sides else (PREDICTIONS, GROUND_TRUTHS)
    ours, theirs = sides[first].naming.exprs, sides[second].naming.exprs
    texts = ours.get("text"), theirs.get("reference" if first == second else "text")
    datum = sides[first].table.datum
    named = first == second or (datum in ours and datum in theirs)
    if texts[0] is None or texts[1] is None or not named:
        return
    if first == second:
        joined = _rows(evidence, first, ours=texts[0], theirs=texts[1]).head(_HEAD)
    else:
        joined = _rows(evidence, first, datum=ours[datum], ours=texts[0]).head(_HEAD)
        other = _rows(evidence, second, datum=theirs[datum], theirs=texts[1])
        joined = joined.join(other, on="datum", how="inner")
    truth = pl.col("theirs")
    if isinstance(joined.collect_schema()["theirs"], pl.List):
        truth = truth.list.first()
    n, of = joined.select((pl.col("ours") == truth).sum(), all=pl.len()).collect().row(0)
    if of and n >= _EQUAL * of:
        columns = tuple(dict.fromkeys(span for names in evidence.spans.values() for span in names))
        yield Facts(
            severity=WARNING if evidence.options.task or evidence.options.metrics else PROBLEM,
            side=next(iter(evidence.spans)),
            columns=columns,
            count=n,
            of=of,
        )


def _describe_spans(facts: Facts) -> str:
    way = f"; to score the texts, write {option('task', 'text')}"
    way = way if facts.severity == PROBLEM else ""
    return (
        f"task: the texts of both sides are equal in {facts.count:,} of {facts.of:,} datums, and"
        f" column{'s' * (len(facts.columns) > 1)} {listing(facts.columns)} of spans next to them"
        " is not read: text metrics compare the input with itself. To score tags, give lists of"
        f" them as predicted and actual{way}."
    )


def _labels(evidence: Values) -> Iterator[Facts]:
    """Columns of whole numbers as labels in which a few texts mark missing values."""
    facts_of: dict[tuple[str, str], Facts] = {}
    missing_texts: dict[tuple[str, str], set[str]] = {}
    for role in _SIDES:
        side = evidence.ready.sides.get(role)
        for name in LABEL_COLUMNS if side is not None else ():
            exprs = side.naming.exprs if side is not None else {}
            if name not in exprs:
                continue
            rows = _rows(evidence, role, text=exprs[name]).with_row_index("row")
            if rows.collect_schema()["text"].is_nested():  # several labels per row
                rows = rows.explode("text")
            text = pl.col("text").cast(pl.String, strict=False).str.strip_chars()
            rows = rows.with_columns(text).drop_nulls()
            missing = pl.col("text").str.contains(MISSING)
            integral = pl.col("text").str.contains(r"^[-+]?\d+$")
            n, of, odd = (
                rows.select(n=missing.sum(), of=pl.len(), odd=(~missing & ~integral).sum())
                .collect()
                .row(0)
            )
            first = rows.filter(missing).head(1000).collect()
            missing_texts[role, name] = set(first["text"])
            if n and not odd and n <= max(1, of // _FEW):
                (column,) = exprs[name].meta.root_names()
                facts_of[role, name] = Facts(
                    severity=WARNING,
                    side=role,
                    columns=(column,),
                    count=n,
                    of=of,
                    rows=tuple(first["row"].head(3)),
                    values={"marks": sorted(missing_texts[role, name])},
                )
    for key, facts in facts_of.items():
        others = {mark for other, texts in missing_texts.items() if other != key for mark in texts}
        if not missing_texts[key] & others:  # on both sides it is a class
            yield facts


def _describe_labels(facts: Facts) -> str:
    (column,), missing_texts = facts.columns, facts.values["marks"]
    rows = ", ".join(f"{row:,}" for row in facts.rows)
    literal = sql_text(missing_texts[0])
    return (
        f"{facts.side.replace('_', ' ')}: column {column!r}: {facts.count:,} of"
        f" {count_of(facts.of or 0, 'label')} read {listing(missing_texts)}, first rows"
        f" (from 0): {rows}; all others are whole numbers. It is scored as a class. If it marks a"
        f" missing value, write {option('where', f'{sql_name(column)} <> {literal}')}."
    )


def _forecasts(evidence: Values) -> Iterator[Facts]:
    """Find unread columns that are closer to the truth than its mean is."""
    for role, names in evidence.forecasts.items():
        exprs = evidence.ready.sides[role].naming.exprs
        aim = exprs.get("target", exprs["prediction"]).cast(pl.Float64)
        rows = _rows(evidence, role, aim=aim, **{f"c {name}": pl.col(name) for name in names})
        head = rows.head(_HEAD).collect()
        if not head.height:
            continue
        aims = head["aim"].to_numpy()
        with np.errstate(invalid="ignore", over="ignore"):
            spread = np.abs(aims - aims.mean()).sum()
            closer = [
                name
                for name in names
                if np.abs(head[f"c {name}"].cast(pl.Float64).to_numpy() - aims).sum() < spread
            ]
        if closer:
            (scored, *_) = exprs["prediction"].meta.root_names()
            yield Facts(severity=NOTE, side=role, columns=tuple(closer), values={"scored": scored})


def _describe_forecasts(facts: Facts) -> str:
    first, scored = facts.columns[0], facts.values["scored"]
    return (
        f"{facts.side.replace('_', ' ')}: of several columns like predictions only"
        f" {scored!r} is scored, not {listing(facts.columns)}. To score another model:"
        f" {option('columns', {first: 'prediction'})}; to compare them: `evalengine compare` with"
        f" {option('predictions', [scored, *facts.columns])}."
    )


def _constant(evidence: Values) -> Iterator[Facts]:
    """Scored series that never change in training."""
    for role, side in evidence.ready.sides.items():
        if side.naming.constant is None:
            continue
        key, names = side.naming.constant
        rows = _rows(evidence, role, key=key).group_by("key").len().collect()
        rows = rows.filter(pl.col("key").is_in(list(names)))
        if rows.height:
            here = set(rows["key"])
            series = [name for one, name in names.items() if one in here]
            columns = tuple(key.meta.root_names())
            plain = len(columns) == 1 and not side.schema[columns[0]].is_integer()
            values = {"series": series[:5], "number": len(series)}
            if len(columns) == 1:
                values["literal"] = sql_text(series[0]) if plain else series[0]
            n = int(rows["len"].sum())
            yield Facts(severity=NOTE, side=role, columns=columns, count=n, values=values)


def _describe_constant(facts: Facts) -> str:
    series, many = facts.values["series"], facts.values["number"]
    way = ""
    if "literal" in facts.values:
        condition = f"{sql_name(facts.columns[0])} <> {facts.values['literal']}"
        way = f" To exclude one: {option('where', condition)}."
    return (
        f"{facts.side.replace('_', ' ')}: {count_of(facts.count or 0, 'row')} of"
        f" {count_of(many, 'series', 'series')} that do not change in training:"
        f" {listing(series, many)}. Their scale is 0, so that numbers with it are undefined.{way}"
    )


def _tags(evidence: Values) -> Iterator[Facts]:
    """Lists of labels that are spelled as tags of entities."""
    sides = evidence.ready.sides
    for role, side in ((role, sides[role]) for role in _SIDES if role in sides):
        for name in LABEL_COLUMNS:
            own = side.naming.exprs[name].meta.root_names() if name in side.naming.exprs else []
            if len(own) != 1 or side.schema[own[0]] != pl.List(pl.String):
                continue
            tags = _rows(evidence, role, tag=pl.col(own[0])).head(_HEAD).explode("tag").drop_nulls()
            n, of, begun = (
                tags.select(
                    pl.col("tag").str.contains(_TAG).sum(),
                    all=pl.len(),
                    begun=pl.col("tag").str.contains("^B-").any(),
                )
                .collect()
                .row(0)
            )
            if begun and n == of:
                yield Facts(severity=NOTE, side=role, columns=tuple(own), count=n)
                return


def _describe_tags(facts: Facts) -> str:
    return (
        f"task: column {facts.columns[0]!r} has lists of tags of entities, scored as classes of"
        f" tokens. To score the entities, write {option('task', 'spans')}."
    )


def of_labels(ready: Prepared, options: Options, notes: Sequence[Note]) -> list[Note]:
    """Apply the rules triggered by labels of only one side."""
    one_sided = [label for note in notes if note.kind in ONE_SIDED_LABELS for label in note.lowest]
    texts = [str(label[-1] if isinstance(label, tuple) else label) for label in one_sided]
    if not any(map(_MARK.search, texts)):
        return []
    task = next(side.table.task for role, side in ready.sides.items() if role in _SIDES)
    return apply(OF_LABELS, task, {"lone_mark"}, Values(ready, options, {}, {}, {}))[0]


_MARK = re.compile(MISSING)
_TAG = r"^(O|[BIESLU]-\S.*)$"

RULES: tuple[Rule[Values], ...] = (
    Rule("several_models", {"model_column"}, _models, _describe_models),
    Rule("spans_not_read", {"spans_unread"}, _spans, _describe_spans, {"text"}),
    Rule("models_not_scored", {"numbers_unread"}, _forecasts, _describe_forecasts, {"regression"}),
    Rule("tags_as_classes", {"lists"}, _tags, _describe_tags, {"classification"}),
    Rule("constant_training", {"constant_training"}, _constant, _describe_constant),
)
OF_LABELS: tuple[Rule[Values], ...] = (
    Rule("missing_as_label", {"lone_mark"}, _labels, _describe_labels, {"classification"}),
)
