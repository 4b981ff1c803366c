"""TREC: output of trec_eval, and run files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..schemas.errors import InputError

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# Output of ``trec_eval -q``: one line per measure and query.

_SCORED = "scored"
_ALL = "all"
_LEVEL = "relevance_level"


class Line(msgspec.Struct, frozen=True):
    """One measure as trec_eval names it.

    Attributes:
        name: trec_eval's, without cut-off or parameter.
        metric: ours.
        cut: whether it has a cut-off, appended to the name.
        parameter: appended to the name, with two digits.
        usual: value, if any, that is omitted from the name.
        statistic: statistic of the metric.
        whole: whether it is an integer count.
    """

    name: str
    metric: str
    cut: bool = False
    parameter: str | None = None
    usual: float | None = None
    statistic: str | None = None
    whole: bool = False


LINES = (
    Line("num_ret", "NumRetrieved", whole=True),
    Line("num_rel", "NumRelevant", whole=True),
    Line("num_rel_ret", "NumRelevantRetrieved", whole=True),
    Line("map", "MAP"),
    Line("gm_map", "GMAP"),
    Line("Rprec", "RPrecision"),
    Line("bpref", "bpref"),
    Line("recip_rank", "MRR"),
    Line("iprec_at_recall", "InterpolatedPrecision", parameter="recall"),
    Line("P", "P", cut=True),
    Line("recall", "Recall", cut=True),
    Line("infAP", "infAP"),
    Line("gm_bpref", "GMBpref"),
    Line("Rprec_mult", "RPrecisionMult", parameter="multiple"),
    Line("utility", "Utility"),
    Line("11pt_avg", "ElevenPointPrecision"),
    Line("binG", "binG"),
    Line("G", "G"),
    Line("ndcg", "nDCG"),
    Line("ndcg_rel", "nDCGRel"),
    Line("Rndcg", "RnDCG"),
    Line("ndcg_cut", "nDCG", cut=True),
    Line("map_cut", "MAP", cut=True),
    Line("relative_P", "RelativePrecision", cut=True),
    Line("success", "Success", cut=True),
    Line("set_P", "SetPrecision"),
    Line("set_relative_P", "SetRelativePrecision"),
    Line("set_recall", "SetRecall"),
    Line("set_map", "SetMAP"),
    Line("set_F", "SetF", parameter="beta", usual=1.0),
    Line("num_nonrel_judged_ret", "NumNonrelevantJudgedRetrieved", whole=True),
    Line("rbp", "RBP", parameter="persistence", usual=0.9),
    Line("rbp_resid", "RBPResidual", parameter="persistence", usual=0.9),
    Line("unj", "Unjudged", cut=True),
)
"""trec_eval 10's measures that there are here, in the order in which ``-m all_trec`` prints."""

_KEYS = ("metric", "statistic", "k", "parameters")


class _Named(msgspec.Struct, frozen=True):
    """Printed name and position of a row."""

    place: tuple[int, float, str]
    name: str
    whole: bool


def to_trec(card: Scorecard) -> str:
    """Format as lines ``measure<tab>query<tab>value``, queries in byte order, then the query
    ``all``.

    Measures have trec_eval's names, order and four digits, counts none; names are padded to 22.
    Metrics that trec_eval does not have follow under our names. Undefined is 0, as in trec_eval.
    Slices are omitted. A query is printed if it counts in means. With one relevance level, names do
    not include it, as after ``trec_eval -l``; with several, our names do.

    Args:
        card: a scorecard of retrieval, new or loaded; reads the frames ``per_datum`` and
            ``metrics``.
    """
    counts = pl.col("value").is_not_null() | (pl.col("status") == _SCORED)
    single = _with_parameters(card.frame("per_datum").filter(counts))
    queries = single["datum_id"].unique()
    total = _with_parameters(card.metrics.filter(pl.col("slice").is_null()))
    # The name and place of every row that may be printed.
    rows = pl.concat([single.select(_KEYS), total.select(_KEYS)]).unique().rows()
    parameters = {row: json.loads(row[3]) if row[3] else {} for row in rows}
    if len({own[_LEVEL] for own in parameters.values() if _LEVEL in own}) == 1:
        for own in parameters.values():
            own.pop(_LEVEL, None)
    named = {row: _named(row[0], row[1], row[2], own) for row, own in parameters.items()}
    lines = list(_of_queries(single, named))
    tag = card.run.get("run_id")
    if tag is not None:
        lines.append(_line("runid", _ALL, str(tag)))
    counted = [len(queries), *total.select(pl.col("support").max()).drop_nulls().to_series()]
    lines.append(_line("num_q", _ALL, f"{counted[-1]:.0f}"))
    lines += _block(total.select(*_KEYS, "value").rows(), named, _ALL)
    return "".join(lines)


def _with_parameters(frame: pl.DataFrame) -> pl.DataFrame:
    if "parameters" in frame.columns:
        return frame
    return frame.with_columns(pl.lit(None, pl.String).alias("parameters"))


def _named(metric: str, statistic: str | None, k: int | None, parameters: dict[str, Any]) -> _Named:
    for place, line in enumerate(LINES):
        if (line.metric, line.statistic, line.cut) != (metric, statistic, k is not None):
            continue
        if line.cut and not parameters:
            return _Named((place, float(k or 0), ""), f"{line.name}_{k}", line.whole)
        if not line.cut and set(parameters) <= {line.parameter}:
            value = parameters.get(line.parameter) if line.parameter else None
            usual = value is None or value == line.usual
            name = line.name if usual else f"{line.name}_{value:.2f}"
            return _Named((place, float(value or 0.0), ""), name, line.whole)
    full_name = metric + (f".{statistic}" if statistic else "") + ("" if k is None else f"@{k}")
    if parameters:
        full_name += json.dumps(parameters, separators=(",", ":"))
    return _Named((len(LINES), 0.0 if k is None else float(k), full_name), full_name, False)


def _of_queries(single: pl.DataFrame, names_by_key: dict[tuple[Any, ...], _Named]) -> Iterator[str]:
    """Lines of all queries, in byte order of their ids as trec_eval has them."""
    rows = single.with_columns(pl.col("datum_id").cast(pl.String)).sort(
        "datum_id", maintain_order=True
    )
    for piece in rows.select("datum_id", *_KEYS, "value").partition_by(
        "datum_id", maintain_order=True
    ):
        query = str(piece["datum_id"][0])
        yield from _block(piece.drop("datum_id").rows(), names_by_key, query)


def _block(
    rows: list[tuple[Any, ...]], names_by_key: dict[tuple[Any, ...], _Named], query: str
) -> list[str]:
    """The lines of one query, or of all, in trec_eval's order."""
    named = sorted(
        ((names_by_key[row[:4]], row[4]) for row in rows), key=lambda pair: pair[0].place
    )
    return [
        _line(one.name, query, f"{value or 0.0:.0f}" if one.whole else f"{value or 0.0:6.4f}")
        for one, value in named
    ]


def _line(name: str, query: str, value: str) -> str:
    return f"{name:<22}\t{query}\t{value}\n"


# A run as the lines of a TREC run file.


def trec_lines(run: pl.DataFrame, tag: str = "evalengine") -> str:
    """Format as lines ``query Q0 document rank score tag``, single-spaced.

    Args:
        run: query_id, doc_id, score and rank, in the order to write.
        tag: name of the run, the last field.

    Raises:
        InputError: an id or the tag is empty or contains white space, which the format does not
            allow.
    """
    ids = run.select(pl.col("query_id", "doc_id").cast(pl.String))
    for name in ids.columns:
        blank = ids.filter(pl.col(name).str.contains(r"\s|^$"))
        if blank.height:
            raise InputError(
                f"column {name!r}: {blank.height:,} ids are empty or contain blanks, first"
                f" {blank[name][0]!r}; TREC runs do not support these. Write Parquet.",
                code="label_unwritable",
                column=name,
                count=blank.height,
            )
    if not tag or len(tag.split()) != 1:
        raise InputError(f"tag {tag!r}: the tag of a TREC run must be one word.")
    return run.select(
        ids["query_id"],
        pl.lit("Q0").alias("q0"),
        ids["doc_id"],
        "rank",
        "score",
        pl.lit(tag).alias("tag"),
    ).write_csv(include_header=False, separator=" ", quote_style="never")
