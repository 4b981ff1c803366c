"""``Qrels`` and ``Run``, and names of metrics."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import polars as pl

from ...exports.trec import trec_lines
from ...ingest.files import write_files
from ...ingest.sources.json_rows import source_of
from ...ingest.sources.tables import open_source
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, unknown

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
        self._bare: list[Any] = []  # queries without documents, which have no rows
        if results:
            self._take(_rows_of(results, type(self).__name__), _bare(results))

    def _take(self, rows: pl.DataFrame, bare: list[Any]) -> None:
        self._rows, self._bare, self._nested = rows, bare, None

    @property
    def rows(self) -> pl.DataFrame:
        """``query_id, doc_id, score``, a row a document, in the order they were given."""
        if self._rows is None:
            nested = self._nested or {}
            self._rows, self._bare = _rows_of(nested, type(self).__name__), _bare(nested)
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
        return sorted({*self.rows["query_id"].unique().to_list(), *self._bare})

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
        rows = self._ordered().with_columns(self._shown_score())
        result: dict[Any, dict[Any, Any]] = {q_id: {} for q_id in self.get_query_ids()}
        parts = rows.group_by("query_id", maintain_order=True).agg("doc_id", "score")
        for query, documents, scores in parts.iter_rows():
            result[query] = dict(zip(documents, scores, strict=True))
        return result

    def _shown_score(self) -> pl.Expr:
        """The numbers as users see them."""
        return pl.col("score")

    def get_doc_ids_and_scores(self) -> list[dict[Any, Any]]:
        """Documents and numbers of each query."""
        return list(self.to_dict().values())

    def to_dataframe(self) -> Any:
        """A pandas DataFrame of ``q_id, doc_id, score``."""
        rows = self._ordered().select(
            pl.col("query_id").alias("q_id"), "doc_id", self._shown_score()
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
        rows = self._ordered().with_columns(self._shown_score())

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
        self._take(self.rows.with_columns(pl.col("score") - less), self._bare)

    def _shown_score(self) -> pl.Expr:
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

    def _lines(self, rows: pl.DataFrame) -> str:
        rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
        return trec_lines(rows.with_columns(rank), self.name or "evalengine")


def _rows_of(nested: Nested, description: str) -> pl.DataFrame:
    return source_of(nested, description).frame.collect()


def _bare(nested: Nested) -> list[Any]:
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


class Asked(NamedTuple):
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


def translate_metric(name: str, relevance: Array, longest: int) -> Asked:
    """Translate a name of ranx's to the engine's metric and options.

    Args:
        name: such as ``ndcg@10``, ``map-l2`` or ``rbp.95``.
        relevance: distinct values of the judgments.
        longest: length of the longest list.

    Raises:
        OptionError: no such metric, cut-off, level or persistence.
    """
    base, level, behind = _parts(name)
    how = TRANSLATIONS[base]
    options: dict[str, Any] = {"relevance_levels": None if level == 1 else [level]}
    k = 0
    if base == "rbp":
        options["persistence"] = float(f"0.{_digits(name, behind, _PERSISTENCE)}")
    elif behind:
        k = int(_digits(name, behind))
    if how.gains is not None:
        options = {"gains": _gains(how.gains, level, relevance)}
    pattern = how.cut if k or how.whole is None else how.whole
    metric, at, _ = pattern.partition("@{k}")
    cut = (k or max(longest, 1)) if at else None
    return Asked(name, metric, cut, k if how.times_k and k else 1, options)


def _parts(name: str) -> tuple[str, int, str]:
    """Split a name into metric, lowest relevant relevance, and the text after ``@`` or ``.``."""
    prefix, _, level = name.partition("-l")
    base, behind = prefix, ""
    for mark in ".@" if prefix.startswith("rbp") else "@":
        if mark in prefix:
            base, _, behind = prefix.partition(mark)
            break
    if base not in TRANSLATIONS:
        raise unknown("metric", base, tuple(TRANSLATIONS))
    return base, int(_digits(name, level)) if level else 1, behind


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
    base, level, behind = _parts(name)
    mark = "." if base == "rbp" else "@"
    shown = TRANSLATIONS[base].label + (f"{mark}{behind}" if behind else "")
    return f"{shown}-l{level}" if "-l" in name else shown


def grouped(wanted: Iterable[Asked]) -> list[tuple[dict[str, Any], list[Asked]]]:
    """Metrics that one run of the engine can compute, with its options."""
    groups: list[tuple[dict[str, Any], list[Asked]]] = []
    for one in wanted:
        for options, members in groups:
            if all(options.get(key, value) == value for key, value in one.options.items()):
                options.update(one.options)
                members.append(one)
                break
        else:
            groups.append((dict(one.options), [one]))
    return groups
