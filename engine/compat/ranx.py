"""The calls of the package ``ranx``: change the import, keep the calls.

Example:
    >>> from evalengine.compat.ranx import Qrels, Run, evaluate
    >>> qrels = Qrels({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}})
    >>> run = Run({"q1": {"d2": 0.9, "d1": 0.4}, "q2": {"d3": 0.7}}, name="bm25")
    >>> evaluate(qrels, run, ["mrr", "precision@2"])
    {'mrr': 0.75, 'precision@2': 0.5}
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import polars as pl

from ..api import score
from ..comparing import compare as compare_cards
from ..exports.trec import trec_lines
from ..fusion import METHODS, NORMALISATIONS
from ..fusion import fuse as fuse_runs
from ..ingest.files import write_files
from ..ingest.sources.json_rows import source_of
from ..ingest.sources.tables import open_source
from ..report.text import latex_text
from ..schemas.arrays import Array
from ..schemas.errors import InputError, OptionError, unknown
from ..scorecard.card import Scorecard
from ..statistics.tests import paired_t

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate", "fuse"]

# ``Qrels`` and ``Run``: a number for every document of a query.

Nested = Mapping[Any, Mapping[Any, Any]]
_Own = TypeVar("_Own", bound="Results")

_KINDS = {
    ".json": "json",
    ".trec": "trec",
    ".txt": "trec",
    ".gz": "gz",
    ".parq": "parquet",
    ".parquet": "parquet",
}
"""Ending of a path -> kind of file."""
_IDS = ("query_id", "doc_id")


class Results:
    """Numbers of documents by query; see :class:`Qrels` and :class:`Run`.

    Attributes:
        name: name of the set or the system.
    """

    _number: ClassVar[str]
    """Engine column of the number."""

    def __init__(self, results: Nested | None = None, name: str | None = None) -> None:
        self.name = name
        self._nested: dict[Any, dict[Any, Any]] | None = {}
        self._rows: pl.DataFrame | None = None
        self._empty_queries: list[Any] = []  # queries without documents, which have no rows
        if results:
            self._take(_rows_of(results, type(self).__name__), _plain_rows(results))

    def _take(self, rows: pl.DataFrame, queries_without_rows: list[Any]) -> None:
        self._rows, self._empty_queries, self._nested = rows, queries_without_rows, None

    @property
    def rows(self) -> pl.DataFrame:
        """``query_id, doc_id, score``, a row a document, in the order they were given."""
        if self._rows is None:
            nested = self._nested or {}
            self._rows, self._empty_queries = (
                _rows_of(nested, type(self).__name__),
                _plain_rows(nested),
            )
        return self._rows

    def _ordered(self) -> pl.DataFrame:
        """The rows by ascending query and descending number, equal ones as they were given."""
        return self.rows.sort("query_id", "score", descending=[False, True], maintain_order=True)

    def _opened(self) -> dict[Any, dict[Any, Any]]:
        """Return the numbers as a mutable nested dict."""
        if self._nested is None:
            self._nested = self.to_dict()
        self._rows = None
        return self._nested

    def get_query_ids(self) -> list[Any]:
        """Ids of the queries, ascending."""
        return sorted({*self.rows["query_id"].unique().to_list(), *self._empty_queries})

    def keys(self) -> KeysView[Any]:
        """Ids of the queries, ascending."""
        return dict.fromkeys(self.get_query_ids()).keys()

    def add_score(self, q_id: Any, doc_id: Any, score: float) -> None:
        """Set the number of one document."""
        self._opened().setdefault(q_id, {})[doc_id] = score

    def add(self, q_id: Any, doc_ids: Sequence[Any], scores: Sequence[float]) -> None:
        """Set all documents of a query; those that it had go."""
        self.add_multi([q_id], [doc_ids], [scores])

    def add_multi(
        self,
        q_ids: Sequence[Any],
        doc_ids: Sequence[Sequence[Any]],
        scores: Sequence[Sequence[float]],
    ) -> None:
        """:meth:`add` of several queries."""
        rankings = [dict(zip(*pair, strict=True)) for pair in zip(doc_ids, scores, strict=True)]
        self._opened().update(zip(q_ids, rankings, strict=True))

    def to_dict(self) -> dict[Any, dict[Any, Any]]:
        """Query to document to number: ascending queries, descending numbers."""
        rows = self._ordered().with_columns(self._displayed_score())
        result: dict[Any, dict[Any, Any]] = {q_id: {} for q_id in self.get_query_ids()}
        parts = rows.group_by("query_id", maintain_order=True).agg("doc_id", "score")
        for query, documents, scores in parts.iter_rows():
            result[query] = dict(zip(documents, scores, strict=True))
        return result

    def _displayed_score(self) -> pl.Expr:
        """The numbers as users see them."""
        return pl.col("score")

    def get_doc_ids_and_scores(self) -> list[dict[Any, Any]]:
        """Documents and numbers of each query."""
        return list(self.to_dict().values())

    def to_dataframe(self) -> Any:
        """A pandas DataFrame of ``q_id, doc_id, score``."""
        rows = self._ordered().select(
            pl.col("query_id").alias("q_id"), "doc_id", self._displayed_score()
        )
        return import_module("pandas").DataFrame(rows.to_dict(as_series=False))

    def save(self, path: str, kind: str | None = None) -> None:
        """Write the numbers as JSON, TREC lines, or Parquet with ``q_id, doc_id, score``.

        Args:
            path: ends in .json, .trec, .txt, .parq or .parquet.
            kind: json, trec or parquet; overrides the suffix.

        Raises:
            OptionError: another kind.
            InputError: the file cannot be written, or ids that TREC lines cannot contain.
        """
        target, file_kind = Path(path), _kind(path, kind)
        rows = self._ordered().with_columns(self._displayed_score())

        def write(file: IO[bytes]) -> None:
            if file_kind == "parquet":
                rows.rename({"query_id": "q_id"}).write_parquet(file)
            elif file_kind == "json":
                file.write(json.dumps(self.to_dict(), indent=2, ensure_ascii=False).encode())
            else:
                file.write(self._lines(rows).encode())

        write_files({target.name: write}, target.parent)

    def _lines(self, rows: pl.DataFrame) -> str:
        raise NotImplementedError

    @classmethod
    def from_dict(cls: type[_Own], d: Nested, name: str | None = None) -> _Own:
        """Build from nested dicts: query to document to number.

        Raises:
            InputError: ids of two kinds, or a value that is not a number.
        """
        return cls(d, name)

    @classmethod
    def from_df(
        cls: type[_Own],
        df: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        name: str | None = None,
    ) -> _Own:
        """Build from a table: pandas, Polars, pyarrow, or a path.

        Raises:
            InputError: a column is missing.
        """
        frame = open_source(df).frame
        has = frame.collect_schema().names()
        for column in (q_id_col, doc_id_col, score_col):
            if column not in has:
                raise InputError(
                    f"column {column!r}: there are {', '.join(has)}.",
                    code="column_missing",
                    column=column,
                )
        rows = frame.select(
            pl.col(q_id_col).alias("query_id"),
            pl.col(doc_id_col).alias("doc_id"),
            pl.col(score_col).cast(pl.Float64).alias("score"),
        ).collect()
        results = cls(name=name)
        results._take(rows, [])
        return results

    @classmethod
    def from_parquet(
        cls: type[_Own],
        path: str,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        pd_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> _Own:
        """Build from a Parquet file.

        Raises:
            OptionError: arguments for pandas, which is not used here.
        """
        if pd_kwargs:
            raise OptionError(
                "pd_kwargs: pandas does not read the file here; omit it.",
                code="option_unfit",
                option="pd_kwargs",
            )
        return cls.from_df(path, q_id_col, doc_id_col, score_col, name)

    @classmethod
    def from_file(
        cls: type[_Own], path: str, kind: str | None = None, name: str | None = None
    ) -> _Own:
        """Build from a JSON file of nested objects, or TREC lines, gzipped or not.

        Args:
            path: the file; its format is detected from the content.
            kind: only validated.
            name: for runs, by default the tag of the lines.

        Raises:
            OptionError: an LZ4 file.
            ReadError: a broken line, with its number.
        """
        _kind(path, kind)
        rows = open_source(path).frame.collect()
        if name is None and "run_id" in rows.columns and rows.height:
            name = rows["run_id"][0]
        number = pl.col(cls._number if cls._number in rows.columns else "score")
        results = cls(name=name)
        results._take(rows.select(*_IDS, number.cast(pl.Float64).alias("score")), [])
        return results

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self)

    def __getitem__(self, q_id: Any) -> dict[Any, Any]:
        if self._nested is None:
            self._nested = self.to_dict()
        return dict(self._nested[q_id])

    def __len__(self) -> int:
        return len(self.get_query_ids())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r}, name={self.name!r})"


class Qrels(Results):
    """Judgments: query to document to relevance.

    Args:
        qrels: whole numbers, 1 and above relevant; fractions are kept.
        name: name of the set.

    Raises:
        InputError: ids of two kinds, or a value that is not a number.
    """

    _number = "relevance"

    def __init__(self, qrels: Nested | None = None, name: str | None = None) -> None:
        super().__init__(qrels, name)

    def set_relevance_level(self, rel_lvl: int = 1) -> None:
        """Take ``rel_lvl - 1`` from every relevance, for good."""
        less = rel_lvl - 1
        self._take(self.rows.with_columns(pl.col("score") - less), self._empty_queries)

    def _displayed_score(self) -> pl.Expr:
        score = self.rows["score"]
        integral = bool((score == score.floor()).all())
        return pl.col("score").cast(pl.Int64) if integral else pl.col("score")

    def _lines(self, rows: pl.DataFrame) -> str:
        zero = pl.lit("0").alias("iteration")
        columns = rows.select("query_id", zero, "doc_id", "score")
        return columns.write_csv(include_header=False, separator=" ", quote_style="never")


class Run(Results):
    """Run: query to document to score.

    Args:
        run: higher scores rank first, ties in the order given.
        name: name of the system.

    Attributes:
        metadata: a dict for use by callers.
        scores: metric -> query -> value, of evaluated metrics.
        mean_scores: metric -> mean.
        std_scores: metric -> standard deviation, over n.

    Raises:
        InputError: ids of two kinds, or a value that is not a number.
    """

    _number = "score"

    def __init__(self, run: Nested | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.metadata: dict[str, Any] = {}
        self.scores: defaultdict[str, dict[Any, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}

    def make_comparable(self, qrels: Qrels) -> Run:
        """Remove queries that are not judged and add unanswered ones, in place."""
        judged = qrels.get_query_ids()
        rows = self.rows
        rows = rows.filter(
            pl.col("query_id").is_in(pl.Series(judged, dtype=rows["query_id"].dtype))
        )
        answered = set(rows["query_id"].unique())
        self._take(rows, [query for query in judged if query not in answered])
        return self

    def _ranked(self) -> pl.DataFrame:
        """Return ``query_id, doc_id, rank``: equal scores as they were given."""
        rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
        return self._ordered().select("query_id", "doc_id", rank)

    def _lines(self, rows: pl.DataFrame) -> str:
        rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
        return trec_lines(rows.with_columns(rank), self.name or "evalengine")


def _rows_of(nested: Nested, description: str) -> pl.DataFrame:
    return source_of(nested, description).frame.collect()


def _plain_rows(nested: Nested) -> list[Any]:
    return [query for query, documents in nested.items() if not documents]


def _kind(path: str, kind: str | None) -> str:
    result = kind or _KINDS.get(Path(path).suffix, Path(path).suffix.removeprefix("."))
    if result not in _KINDS.values():
        raise unknown("kind", result, sorted(set(_KINDS.values())))
    return result


def only_here(one: Iterable[Any], other: Iterable[Any]) -> list[Any]:
    """Return up to five ids of one side that are missing in the other."""
    other_ids = set(other)
    return list(itertools.islice((query for query in one if query not in other_ids), 5))


# ranx's names of metrics, and the engine's numbers that they are.


class Translation(NamedTuple):
    """Translation of one of ranx's metrics.

    Attributes:
        label: its name in reports.
        cut: the engine's metric up to k.
        whole: the same over whole lists; None to use ``cut`` at the longest list.
        gains: gain function of graded metrics; None for others.
        times_k: whether ranx's number is k times the engine's.
    """

    label: str
    cut: str
    whole: str | None
    gains: str | None = None
    times_k: bool = False


TRANSLATIONS = {
    "hits": Translation("Hits", "P@{k}", "NumRelevantRetrieved", times_k=True),
    "hit_rate": Translation("Hit Rate", "Success@{k}", None),
    "precision": Translation("P", "P@{k}", "SetPrecision"),
    "recall": Translation("Recall", "Recall@{k}", "SetRecall"),
    "f1": Translation("F1", "F1@{k}", "SetF"),
    "r-precision": Translation("R-Prec", "RPrecision", "RPrecision"),
    "mrr": Translation("MRR", "MRR@{k}", "MRR"),
    "map": Translation("MAP", "MAP@{k}", "MAP"),
    "dcg": Translation("DCG", "DCG@{k}", "DCG", "linear"),
    "dcg_burges": Translation("DCG Burges", "DCG@{k}", "DCG", "exponential"),
    "ndcg": Translation("NDCG", "nDCG@{k}", "nDCG", "linear"),
    "ndcg_burges": Translation("NDCG Burges", "nDCG@{k}", "nDCG", "exponential"),
    "bpref": Translation("BPref", "bpref", "bpref"),
    "rbp": Translation("RBP", "RBP", "RBP"),
}
_GAINS: dict[str, Callable[[float], float]] = {
    "linear": float,
    "exponential": lambda relevance: float(np.exp2(relevance)) - 1,
}


class ParsedMetric(NamedTuple):
    """One requested metric.

    Attributes:
        name: as the caller wrote it.
        metric: the engine's, without its cut-off.
        k: the cut-off, or None.
        times: factor on the engine's number.
        options: engine options.
    """

    name: str
    metric: str
    k: int | None
    times: int
    options: dict[str, Any]

    @property
    def written(self) -> str:
        """The engine's name with the cut-off."""
        return self.metric if self.k is None else f"{self.metric}@{self.k}"


def translate_metric(name: str, relevance: Array, longest: int) -> ParsedMetric:
    """Translate a name of ranx's to the engine's metric and options.

    Args:
        name: such as ``ndcg@10``, ``map-l2`` or ``rbp.95``.
        relevance: distinct values of the judgments.
        longest: length of the longest list.

    Raises:
        OptionError: no such metric, cut-off, level or persistence.
    """
    base, level, suffix = _parts(name)
    how = TRANSLATIONS[base]
    options: dict[str, Any] = {"relevance_levels": None if level == 1 else [level]}
    k = 0
    if base == "rbp":
        options["persistence"] = float(f"0.{_digits(name, suffix, _PERSISTENCE)}")
    elif suffix:
        k = int(_digits(name, suffix))
    if how.gains is not None:
        options = {"gains": _gains(how.gains, level, relevance)}
    pattern = how.cut if k or how.whole is None else how.whole
    metric, at, _ = pattern.partition("@{k}")
    cut = (k or max(longest, 1)) if at else None
    return ParsedMetric(name, metric, cut, k if how.times_k and k else 1, options)


def _parts(name: str) -> tuple[str, int, str]:
    """Split a name into metric, lowest relevant relevance, and the text after ``@`` or ``.``."""
    prefix, _, level = name.partition("-l")
    base, suffix = prefix, ""
    for mark in ".@" if prefix.startswith("rbp") else "@":
        if mark in prefix:
            base, _, suffix = prefix.partition(mark)
            break
    if base not in TRANSLATIONS:
        raise unknown("metric", base, tuple(TRANSLATIONS))
    return base, int(_digits(name, level)) if level else 1, suffix


_PERSISTENCE = "write the persistence behind a dot, as in 'rbp.95'."


def _digits(name: str, digits: str, way: str = "") -> str:
    if not digits.isascii() or not digits.isdigit():
        raise OptionError(
            f"metric {name!r}: {way or f'{digits!r} is not a whole number.'}",
            code="option_value",
            option="metric",
            value=name,
        )
    return digits


def _gains(kind: str, level: int, relevance: Array) -> str | dict[float, float]:
    """Return the gain of each relevance, 0 below the level."""
    if level == 1:
        return kind
    return {
        float(one): _GAINS[kind](one) if one >= level else 0.0 for one in relevance if one > 0
    } or kind


def label(name: str) -> str:
    """A metric's name in reports: ``NDCG@10``, ``MAP-l2``, ``RBP.95``."""
    base, level, suffix = _parts(name)
    mark = "." if base == "rbp" else "@"
    title = TRANSLATIONS[base].label + (f"{mark}{suffix}" if suffix else "")
    return f"{title}-l{level}" if "-l" in name else title


def grouped(requested: Iterable[ParsedMetric]) -> list[tuple[dict[str, Any], list[ParsedMetric]]]:
    """Metrics that one run of the engine can compute, with its options."""
    groups: list[tuple[dict[str, Any], list[ParsedMetric]]] = []
    for one in requested:
        for options, members in groups:
            if all(options.get(key, value) == value for key, value in one.options.items()):
                options.update(one.options)
                members.append(one)
                break
        else:
            groups.append((dict(one.options), [one]))
    return groups


# ``evaluate``: numbers of a run, by query and on average.


class Evaluated(NamedTuple):
    """Numbers of a run.

    Attributes:
        values: metric as the caller wrote it -> float64 [q], by ascending query id.
        cards: scorecards, with the metrics of each.
    """

    values: dict[str, Array]
    cards: list[tuple[Scorecard, list[ParsedMetric]]]


def evaluate(
    qrels: Qrels | Nested,
    run: Run | Nested,
    metrics: Sequence[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Evaluate a run.

    Args:
        qrels: the judgments.
        run: the run, over the same queries.
        metrics: one or several of ranx's: hits, hit_rate, precision, recall, f1, r-precision, mrr,
            map, dcg, dcg_burges, ndcg, ndcg_burges, bpref, rbp.95; with ``@10`` for a cut-off and
            ``-l2`` for the lowest relevance that counts.
        return_mean: return means over queries; otherwise an array by ascending query id.
        return_std: return dicts of ``mean`` and ``std``, over n.
        threads: number of threads; 0 for all.
        save_results_in_run: store the numbers in ``scores``, ``mean_scores`` and ``std_scores``.
        make_comparable: remove unjudged queries from the run and add missing ones; a :class:`Run`
            is modified in place.

    Returns:
        a dict by metric; for a single metric only its number.

    Raises:
        InputError: the run and the judgments have different queries, or scores that are not
            numbers.
        OptionError: no such metric.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    judged, ranked_run = as_qrels(qrels), as_run(run)
    scores = numbers_of(judged, [ranked_run], names, threads, make_comparable)[0].values
    if isinstance(run, Run) and save_results_in_run:
        queries = judged.get_query_ids()
        for name, values in scores.items():
            run.mean_scores[name] = float(values.mean())
            if return_std and return_mean:
                run.std_scores[name] = float(values.std())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    results: dict[str, Any] = dict(scores)
    if return_mean:
        results = {name: float(values.mean()) for name, values in scores.items()}
        if return_std:
            results = {
                name: {"mean": mean, "std": float(scores[name].std())}
                for name, mean in results.items()
            }
    return results[names[0]] if len(names) == 1 else results


def numbers_of(
    qrels: Qrels, runs: Sequence[Run], names: Sequence[str], threads: int, comparable: bool
) -> list[Evaluated]:
    """Compute the numbers that :func:`evaluate` and :func:`compare` show, per run.

    Raises:
        InputError: as in :func:`evaluate`.
        OptionError: as in :func:`evaluate`.
    """
    queries = qrels.get_query_ids()
    if not queries:
        raise InputError("qrels: there is no query.", code="empty")
    for i, run in enumerate(runs):
        if comparable:
            run.make_comparable(qrels)
        else:
            _refuse_others(queries, run, run.name or f"run {i + 1}")
    relevance = qrels.rows["score"].unique().sort().to_numpy()
    lengths = [run.rows.group_by("query_id").len()["len"].to_numpy() for run in runs]
    longest = max(int(some.max(initial=0)) for some in lengths)
    requested = [translate_metric(name, relevance, longest) for name in dict.fromkeys(names)]
    return [_evaluated(qrels, run, requested, queries, threads) for run in runs]


def _evaluated(
    qrels: Qrels, run: Run, requested: Sequence[ParsedMetric], queries: list[Any], threads: int
) -> Evaluated:
    judged = qrels.rows.rename({"score": "relevance"})
    values: dict[str, Array] = {}
    cards = []
    for options, members in grouped(requested):
        card = score(
            run.rows,
            judged,
            task="retrieval",
            metrics=[one.written for one in members],
            ties="input",
            complete=True,
            threads=threads or None,
            **options,
        )
        cards.append((card, members))
        rows = card.frame("per_datum").select("datum_id", "metric", "k", "value")
        for one in members:
            values[one.name] = _by_query(rows, one, queries)
    return Evaluated({one.name: values[one.name] for one in requested}, cards)


def _by_query(rows: pl.DataFrame, one: ParsedMetric, queries: list[Any]) -> Array:
    """A metric's values by query; 0 of those without any judgment."""
    metric_rows = rows.filter((pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k))
    order = pl.DataFrame({"datum_id": pl.Series(queries, dtype=metric_rows["datum_id"].dtype)})
    ordered = order.join(metric_rows, on="datum_id", how="left", maintain_order="left")["value"]
    values: Array = ordered.fill_null(0.0).to_numpy()
    return np.rint(values * one.times) if one.times != 1 else values.copy()


def _refuse_others(queries: list[Any], run: Run, name: str) -> None:
    mine = run.get_query_ids()
    unscored, unjudged = only_here(queries, mine), only_here(mine, queries)
    if unscored or unjudged:
        differences = [
            f"{what}, first {', '.join(map(repr, some))}"
            for what, some in (("misses judged queries", unscored), ("has unjudged ones", unjudged))
            if some
        ]
        raise InputError(
            f"{name} {' and '.join(differences)}. Pass make_comparable=True to skip unjudged"
            " queries and to count missing ones as empty.",
            code="queries_differ",
        )


def as_qrels(qrels: Any) -> Qrels:
    """Convert nested dicts to :class:`Qrels`."""
    return qrels if isinstance(qrels, Qrels) else Qrels(_nested("qrels", qrels))


def as_run(run: Any) -> Run:
    """Convert nested dicts to a :class:`Run`."""
    return run if isinstance(run, Run) else Run(_nested("run", run))


def _nested(side: str, value: Any) -> Any:
    if not hasattr(value, "items"):
        raise InputError(
            f"{side}: give a dict of dicts or a {side.capitalize()}.", code="wrong_type", side=side
        )
    return value


# Result of ``compare``: means of runs, p-values of pairs, as text, LaTeX or a dict.

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"
_TESTS = {"student": "paired Student's t test", "fisher": "Fisher's randomisation test"}
_LATEX = r"""% \usepackage{{booktabs}}
\begin{{table}}[ht]
\centering
\caption{{Means over queries, the best of each column in bold. Superscripts name the runs that a run
is better than by a significant difference ({test}, $p \le {max_p}$).}}
\label{{tab:results}}
\begin{{tabular}}{{ll{columns}}}
\toprule
\textbf{{\#}} & \textbf{{Model}} & {heads} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
\end{{table}}"""


class OfPairs(dict[Any, Any]):
    """Something of two runs, in either order."""

    def __getitem__(self, pair: Iterable[str]) -> Any:
        return super().__getitem__(frozenset(pair))

    def __setitem__(self, pair: Iterable[str], value: Any) -> None:
        super().__setitem__(frozenset(pair), value)


class Report:
    """Result of :func:`compare`.

    Attributes:
        model_names: names of the runs.
        results: name -> metric -> mean.
        comparisons: two names, in either order -> metric -> ``p_value`` and ``significant``.
        metrics: as requested.
        max_p: highest significant p.
        win_tie_loss: (one name, other name) -> metric -> number of queries on which the first is
            better (W), equal (T) and worse (L).
        rounding_digits: displayed digits.
        show_percentages: whether percentages are shown.
        stat_test: source of p.
    """

    def __init__(
        self,
        model_names: list[str],
        results: dict[str, dict[str, float]],
        comparisons: Any,
        metrics: list[str],
        max_p: float,
        win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]],
        rounding_digits: int = 3,
        show_percentages: bool = False,
        stat_test: str = "student",
    ) -> None:
        if len(model_names) > len(_LETTERS):
            raise InputError(
                f"a report has letters for {len(_LETTERS)} runs; there are {len(model_names)}."
            )
        self.model_names, self.results, self.comparisons = model_names, results, comparisons
        self.metrics, self.max_p, self.win_tie_loss = metrics, max_p, win_tie_loss
        self.rounding_digits, self.show_percentages = rounding_digits, show_percentages
        self.stat_test = stat_test

    def _formatted(self, value: float) -> str:
        digits = self.rounding_digits
        if self.show_percentages:
            return f"{round(value * 100, max(0, digits - 2)):.{max(0, digits - 2)}f}"
        return f"{round(value, digits):.{digits}f}"

    def _beaten(self, model: str, metric: str) -> list[int]:
        """Places of the runs that a run is significantly better than."""
        return [
            i
            for i, other in enumerate(self.model_names)
            if other != model
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
        ]

    def to_table(self) -> str:
        """The report as text, a letter above a number for each run that is beaten."""
        columns = [["#", *_LETTERS[: len(self.model_names)]], ["Model", *self.model_names]]
        for metric in self.metrics:
            cells = [
                self._formatted(self.results[model][metric])
                + "".join(_RAISED[i] for i in self._beaten(model, metric))
                for model in self.model_names
            ]
            columns.append([label(metric), *cells])
        aligned = [_aligned(column) for column in columns]
        rows = zip(*aligned, strict=True)
        return "\n".join("  ".join(row).rstrip() for row in rows)

    def to_latex(self) -> str:
        """The report as a table of LaTeX, with booktabs."""
        rows = []
        best = {
            metric: max(round(one[metric], self.rounding_digits) for one in self.results.values())
            for metric in self.metrics
        }
        for letter, model in zip(_LETTERS, self.model_names, strict=False):
            cells = [letter, latex_text(model)]
            for metric in self.metrics:
                value = self.results[model][metric]
                text = self._formatted(value).replace("%", r"\%")
                if round(value, self.rounding_digits) == best[metric]:
                    text = rf"\textbf{{{text}}}"
                above = "".join(_LETTERS[i] for i in self._beaten(model, metric))
                cells.append(f"{text}$^{{{above}}}$" if above else text)
            rows.append(" & ".join(cells) + r" \\")
        heads = " & ".join(rf"\textbf{{{label(metric)}}}" for metric in self.metrics)
        return _LATEX.format(
            test=_TESTS[self.stat_test],
            max_p=self.max_p,
            columns="c" * len(self.metrics),
            heads=heads,
            rows="\n".join(rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """``stat_test``, ``metrics``, ``model_names``, and of each run ``scores``, ``comparisons``
        (other run -> metric -> p) and ``win_tie_loss`` (other run -> metric -> W, T, L)."""
        result: dict[str, Any] = {
            "stat_test": self.stat_test,
            "metrics": self.metrics,
            "model_names": self.model_names,
        }
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            result[model] = {
                "scores": self.results[model],
                "comparisons": {other: self._p_values(model, other) for other in others},
                "win_tie_loss": {other: self.win_tie_loss[model, other] for other in others},
            }
        return result

    def _p_values(self, model: str, other: str) -> dict[str, float]:
        tested: Mapping[str, Any] = self.comparisons[model, other]
        return {metric: tested[metric]["p_value"] for metric in self.metrics}

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: ``model_names``, and a column of means a metric."""
        rows = [{"model_names": model, **self.results[model]} for model in self.model_names]
        return import_module("pandas").DataFrame(rows)

    def save(self, path: str) -> None:
        """Write :meth:`to_dict` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=4), "utf-8")

    def print_results(self) -> None:
        """Print the means as JSON."""
        print(json.dumps(self.results, indent=4))

    def __repr__(self) -> str:
        return self.to_table()


def _aligned(column: list[str]) -> list[str]:
    """A heading, a rule and cells of one width; numbers at their points, without zeros behind."""
    head, cells = column[0], column[1:]
    numbers = all(map(_is_number, cells))
    if numbers and any("." in cell for cell in cells):
        cells = [f"{float(cell):g}" for cell in cells]
        decimals = [len(cell) - len(re.split("[.e]", cell)[0]) for cell in cells]
        cells = [
            cell + " " * (max(decimals) - length)
            for cell, length in zip(cells, decimals, strict=True)
        ]
    width = max(len(head) + 2, *map(len, cells))
    if numbers:
        return [head.rjust(width), "-" * width, *(cell.rjust(width) for cell in cells)]
    return [head.ljust(width), "-" * width, *(cell.ljust(width) for cell in cells)]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


# ``compare``: several runs, and which of their differences are significant.


def compare(
    qrels: Qrels | Nested,
    runs: Sequence[Run],
    metrics: Sequence[str] | str,
    stat_test: str = "student",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
    threads: int = 0,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    make_comparable: bool = False,
) -> Report:
    """Evaluate runs and test the differences of every pair.

    Args:
        qrels: the judgments.
        runs: two or more, over the same queries, with distinct names.
        metrics: see :func:`evaluate`.
        stat_test: student (paired t) or fisher (randomisation).
        n_permutations: for fisher.
        max_p: highest significant p.
        random_seed: for fisher.
        threads: number of threads; 0 for all.
        rounding_digits: digits in the report.
        show_percentages: whether the report shows percentages.
        make_comparable: see :func:`evaluate`.

    Raises:
        InputError: different queries, or two runs of one name.
        OptionError: no such metric or test.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if stat_test not in _PAIRED:
        raise OptionError(
            f"stat_test={stat_test!r}: there are {' and '.join(_PAIRED)}, pair by pair; p-values of"
            " many pairs are adjusted by evalengine.compare(adjust='holm').",
            code="unknown_name",
            value=stat_test,
        )
    opened_runs = [as_run(run) for run in runs]
    models = [run.name or f"run_{i}" for i, run in enumerate(opened_runs, 1)]
    if len(set(models)) < len(models):
        twice = next(name for name in models if models.count(name) > 1)
        raise InputError(
            f"two runs are named {twice!r}: give each a different name.",
            code="repeated_names",
            value=twice,
        )
    evaluations = numbers_of(as_qrels(qrels), opened_runs, names, threads, make_comparable)
    for run, one in zip(opened_runs, evaluations, strict=True):
        queries = run.get_query_ids()
        for name, values in one.values.items():
            run.mean_scores[name] = float(values.mean())
            run.scores[name].update(zip(queries, values.tolist(), strict=True))
    evaluated = dict(zip(models, evaluations, strict=True))
    p_values = _PAIRED[stat_test](evaluated, names, n_permutations, random_seed)
    comparisons = OfPairs()
    for pair, by_metric in p_values.items():
        comparisons[pair] = {
            name: {"p_value": p, "significant": p <= max_p} for name, p in by_metric.items()
        }
    return Report(
        model_names=models,
        results={
            model: {name: float(one.values[name].mean()) for name in names}
            for model, one in evaluated.items()
        },
        comparisons=comparisons,
        metrics=names,
        max_p=max_p,
        win_tie_loss={
            (a, b): {
                name: _votes(evaluated[a].values[name], evaluated[b].values[name]) for name in names
            }
            for a, b in itertools.permutations(models, 2)
        },
        rounding_digits=rounding_digits,
        show_percentages=show_percentages,
        stat_test=stat_test,
    )


Pairs = dict[tuple[str, str], dict[str, float]]


def _student(evaluated: dict[str, Evaluated], names: list[str], draws: int, seed: int) -> Pairs:
    def p(a: Array, b: Array) -> float:
        return paired_t((float(a.mean()), float(b.mean()), a, b))

    return {
        (a, b): {name: p(evaluated[a].values[name], evaluated[b].values[name]) for name in names}
        for a, b in itertools.combinations(evaluated, 2)
    }


def _fisher(evaluated: dict[str, Evaluated], names: list[str], draws: int, seed: int) -> Pairs:
    p_values: Pairs = {pair: {} for pair in itertools.combinations(evaluated, 2)}
    for group in zip(*(one.cards for one in evaluated.values()), strict=True):
        rows = compare_cards(
            *(card for card, _ in group),
            names=list(evaluated),
            test="randomisation",
            adjust="none",
            draws=draws,
            seed=seed,
        ).differences
        for (a, b), by_metric in p_values.items():
            pair_rows = rows.filter((pl.col("run_a") == a) & (pl.col("run_b") == b))
            for one in group[0][1]:
                of_metric = (pl.col("metric") == one.metric) & pl.col("k").eq_missing(one.k)
                by_metric[one.name] = float(pair_rows.filter(of_metric)["p"][0])
    return {pair: {name: by_metric[name] for name in names} for pair, by_metric in p_values.items()}


_PAIRED: dict[str, Callable[[dict[str, Evaluated], list[str], int, int], Pairs]] = {
    "student": _student,
    "fisher": _fisher,
}


def _votes(a: Array, b: Array) -> dict[str, int]:
    """Queries on which the first is better, alike and worse."""
    counts = (int(np.count_nonzero(mask)) for mask in (a > b, a == b, a < b))
    return dict(zip("WTL", counts, strict=True))


# ``fuse``: several runs into one.

_METHODS_BY_NAME = {name: one for one in METHODS.values() for name in (one.name, *one.aliases)}
_PARAMS = {"k": "k", "weights": "weights", "gamma": "gamma", "phi": "persistence"}
"""Parameter of ranx's method -> name of the engine's option."""


def fuse(
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    params: Mapping[str, Any] | None = None,
) -> Run:
    """Fuse several runs into one; see :func:`evalengine.fuse`.

    Args:
        runs: two or more; a missing query counts as an empty list.
        norm: normalisation of each list's scores: min-max, max, sum, zmuv, rank, borda or None.
            Methods on ranks take none.
        method: rrf, isr, log_isr, rbc, wsum, mixed, gmnz, condorcet, bordafuse, sum, mnz, anz, max,
            min or med.
        params: weights of wsum and mixed, k of rrf, gamma of gmnz, phi of rbc; name.

    Raises:
        OptionError: an unknown method, normalisation or parameter.
    """
    if method not in _METHODS_BY_NAME:
        raise unknown("fusion method", method, tuple(_METHODS_BY_NAME))
    normalisation = norm.replace("_", "-") if norm else None
    if normalisation is not None and normalisation not in NORMALISATIONS:
        raise unknown("normalisation", normalisation, tuple(NORMALISATIONS))
    options = dict(params or {})
    name = options.pop("name", method)
    odd = next((key for key in options if key not in _PARAMS), None)
    if odd is not None:
        raise unknown("parameter", odd, tuple(_PARAMS))
    how = _METHODS_BY_NAME[method]
    ranks = not (NORMALISATIONS[normalisation] if how.scores and normalisation else how).scores
    fused = fuse_runs(
        [run._ranked() if ranks else run.rows for run in runs],
        method=method,
        normalisation=normalisation if how.scores else None,
        **{_PARAMS[key]: value for key, value in options.items()},
    )
    return Run.from_df(fused, "query_id", "doc_id", "score", name)
