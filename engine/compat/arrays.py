"""Arguments of mirrored functions as tables."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from .. import dialects, metrics, tasks
from ..api import score
from ..executors import Threads
from ..exports.rows import automatic_positive, beta_name, phoenix_score
from ..geometry.columns import offsets_of
from ..schemas.arrays import Array
from ..schemas.contract import WEIGHT
from ..schemas.errors import InputError, OptionError, invalid
from ..schemas.option_values import in_name
from ..schemas.options import Options
from ..scorecard.card import Scorecard
from ..tallies.datums import Labels
from ..tallies.scored_view import ScoredView
from ..tallies.units import Units
from ..tasks.encoding import Workers
from ..tasks.text.dialects import Settings
from ..tasks.text.pairs import Pairs

if TYPE_CHECKING:
    from ..schemas.named import Dialect

# Conversion of lists, arrays, Series and tensors to columns.


class Column(NamedTuple):
    """Labels of one side.

    Attributes:
        values: integers or strings; booleans became 0 and 1.
        kind: original type: bool, float, int or str.
    """

    values: pl.Series
    kind: type


def column(name: str, values: Any) -> Column:
    """Convert labels to a Series of integers or strings.

    Args:
        name: of the argument, for errors.
        values: one-dimensional, or a single column: a sequence, an array, a Series, anything with
            ``__array__``.

    Raises:
        InputError: several columns, a null, or a type other than integer, string or boolean.
    """
    series = _series(name, values)
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if series.null_count():
        raise InputError(
            f"{name}: {series.null_count()} of {len(series)} labels are missing.",
            code="null_values",
            option=name,
            count=series.null_count(),
        )
    if series.dtype == pl.Boolean:
        return Column(series.cast(pl.Int64), bool)
    if series.dtype.is_float():
        integers = series.cast(pl.Int64, strict=False)
        wrong = series.filter((integers.cast(series.dtype) != series).fill_null(True))
        if len(wrong):
            raise InputError(
                f"{name}: {len(wrong)} of {len(series)} labels are not whole numbers, first"
                f" {wrong[:3].to_list()}. Are these scores?",
                code="not_whole",
                option=name,
                count=len(wrong),
            )
        return Column(integers, float)
    if series.dtype.is_integer():
        return Column(series.cast(pl.Int64), int)
    if series.dtype != pl.String:
        raise InputError(f"{name}: labels are integers, strings or booleans, not {series.dtype}.")
    return Column(series, str)


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.DataFrame) and values.width == 1:
        values = values.to_series()
    if isinstance(values, pl.Series):
        return values
    if isinstance(values, (pl.DataFrame, str, bytes, dict)):
        raise InputError(f"{name}: one column of labels is needed, not a {type(values).__name__}.")
    if "pandas" in type(values).__module__ and getattr(values, "ndim", 2) == 1:
        return pl.Series(sys.modules["pandas"].Series(values))  # of arrays, too
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} has the shape {array.shape}: one label a row is needed. Several labels a row"
            " are scored by evalengine.score(..., multilabel=True).",
            code="wrong_shape",
            option=name,
            shape=array.shape,
        )
    if array.dtype.kind == "S":
        raise InputError(f"{name}: labels are bytes; decode them to strings.")
    if array.dtype.kind in "OU":
        items = array.tolist()
        kinds = {type(one) for one in items}
        if len({str if issubclass(kind, str) else float for kind in kinds}) > 1:
            raise InputError(
                f"{name}: labels are of several types:"
                f" {', '.join(sorted(kind.__name__ for kind in kinds))}."
            )
        return pl.Series(items, strict=False)
    return pl.Series(array)


def check_same_kind(columns: dict[str, pl.Series]) -> None:
    """Refuse label columns of different lengths or types, and empty ones.

    Raises:
        InputError: they differ, or have no rows.
    """
    lengths = {name: len(one) for name, one in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"inconsistent numbers of rows: {listed(lengths)}.",
            code="lengths_differ",
            lengths=lengths,
        )
    if not all(lengths.values()):
        raise InputError(
            f"{' and '.join(lengths)} are empty: at least one row is needed.", code="empty"
        )
    kinds = {name: one.dtype for name, one in columns.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(
            f"labels are a mix of strings and numbers: {listed(kinds)}.", code="types_mixed"
        )


def listed(by_name: dict[str, Any]) -> str:
    return ", ".join(f"{name} {one}" for name, one in by_name.items())


def numbers(
    name: str, values: Any, *, rows: int | None = None, dims: Sequence[int] = (1,)
) -> Array:
    """Convert scores or weights to an array of floats; single precision is kept.

    Args:
        name: of the argument, for errors.
        rows: required number of rows.
        dims: allowed numbers of dimensions; a single column becomes one dimension.

    Raises:
        InputError: not numeric, NaN or infinite, or another shape.
    """
    array = np.asarray(values.to_numpy() if isinstance(values, pl.Series) else values)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: numbers are needed: {error}.") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name}: numbers are needed, not {array.dtype}.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in dims:
        raise InputError(f"{name} has the shape {array.shape}, which does not fit the labels.")
    if rows is not None and len(array) != rows:
        raise InputError(f"inconsistent numbers of rows: labels {rows}, {name} {len(array)}.")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    broken = int(np.count_nonzero(~np.isfinite(array)))
    if broken:
        raise InputError(
            f"{name}: {broken} of {array.size} numbers are NaN or infinite.",
            code="not_finite",
            option=name,
            count=broken,
        )
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def weights(values: Any, rows: int) -> dict[str, Array]:
    """Return the column ``weight``, or an empty dict without weights.

    Raises:
        InputError: as in :func:`numbers`; all weights are 0; weights that tables may not have.
    """
    if values is None:
        return {}
    array = numbers("sample_weight", values, rows=rows).astype(np.float64, copy=False)
    if not array.any():
        raise InputError("sample_weight: all weights are 0, so no row counts.", code="zero_weights")
    most = WEIGHT.high or math.inf
    if ((array < 0) | (array > most) | ((array > 0) & (array < 1 / most))).any():
        labels = np.zeros(rows, np.int64)
        table = pl.DataFrame({"actual": labels, "predicted": labels, "weight": array})
        classify(table, "Accuracy", dialect="sklearn")  # raises
    return {"weight": array}


def chosen(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Refuse an unsupported value of an argument.

    Raises:
        OptionError: the value is not in ``allowed``.
    """
    if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
        raise invalid(name, value, f"write one of {', '.join(map(repr, allowed))}.")


def undefined(message: str) -> None:
    """Warn of an undefined value, with scikit-learn's class if that is imported."""
    kind = getattr(sys.modules.get("sklearn.exceptions"), "UndefinedMetricWarning", UserWarning)
    warnings.warn(message, kind, stacklevel=4)


def classify(table: pl.DataFrame, *metrics: str, dialect: Dialect, **options: Any) -> Scorecard:
    """Score a table of both sides."""
    return score(table, task="classification", dialect=dialect, metrics=metrics, **options)


# Single calls on plain Python lists of labels.

_AVERAGES = ("macro", "micro", "weighted")


def precision_recall_fscore(
    expected: Sequence[Hashable],
    output: Sequence[Hashable],
    *,
    beta: float = 1.0,
    average: str = "macro",
    positive_label: Any = None,
    zero_division: float = 0.0,
) -> list[dict[str, Any]]:
    """Precision, recall and F-beta of two lists of labels, as Phoenix's PrecisionRecallFScore.

    Labels are compared as Python compares them, so 1 equals 1.0 and True but not "1".

    Args:
        expected: true labels, integers, strings or booleans.
        output: predicted labels, of the same length.
        beta: weight of recall in F, above 0.
        average: ``macro``, ``micro`` or ``weighted``.
        positive_label: score only this label. By default it is 1 if the average is macro and the
            labels are 0 and 1.
        zero_division: value of 0 / 0; NaN gives NaN.

    Returns:
        three dicts of ``name``, ``score``, ``kind`` and ``direction``.

    Raises:
        InputError: not sequences, different lengths, empty, or the positive label does not occur.
        OptionError: beta or average out of range.

    Example:
        >>> import evalengine as ee
        >>> scores = ee.precision_recall_fscore(["cat", "dog", "cat"], ["cat", "cat", "cat"])
        >>> [(score["name"], round(score["score"], 3)) for score in scores]
        [('precision', 0.333), ('recall', 0.5), ('f1', 0.4)]
    """
    if average not in _AVERAGES:
        raise OptionError(f"average={average!r}: write one of {', '.join(_AVERAGES)}.")
    if isinstance(beta, bool) or not (math.isfinite(beta) and beta > 0):
        raise OptionError(f"beta={beta}: write a finite number above 0.")
    truth, predicted = _list("expected", expected), _list("output", output)
    if len(truth) != len(predicted):
        raise InputError(
            f"expected and output must have the same length: {len(truth)} and {len(predicted)}."
        )
    if not truth:
        raise InputError("expected and output must be non-empty.")
    code: dict[Hashable, int] = {}
    for label in (*truth, *predicted):
        code.setdefault(label, len(code))
    positive = automatic_positive(list(code), positive_label, average)
    if positive is not None and positive not in code:
        raise InputError(f"positive_label={positive!r} is not among the labels {list(code)[:10]}.")
    options = Options(
        dialect="phoenix", beta=float(beta), average=average, zero_division=float(zero_division)
    )
    settings = tasks.get("classification").settings.resolve(
        options, dialects.get("classification", "phoenix")
    )
    view = _view([code[label] for label in truth], [code[label] for label in predicted], len(code))
    scores = []
    suffix = "" if positive is not None or average == "macro" else f"_{average}"
    for metric, name in (
        ("Precision", "precision"),
        ("Recall", "recall"),
        (f"F{in_name(beta)}", beta_name(beta)),
    ):
        compute = metrics.get("classification", metric).compute
        assert compute is not None
        cells = {cell.columns.get("average"): cell for cell in compute(view, settings)}
        chosen = cells[None if positive is not None else average].columns["value"]
        assert isinstance(chosen, np.ndarray)
        value = chosen[0, 0 if positive is None else code[positive]]
        scores.append(phoenix_score(name, float(value), suffix))
    return scores


def _list(name: str, labels: Any) -> list[Hashable]:
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise InputError(f"{name} must be a sequence of labels, not {labels!r}.")
    result = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    wrong = [label for label in result if not isinstance(label, (str, int, float))]
    if wrong or any(isinstance(label, float) and not label.is_integer() for label in result):
        raise InputError(
            f"{name}: labels are strings, integers or booleans; found"
            f" {(wrong or [x for x in result if isinstance(x, float)])[0]!r}."
        )
    return result


def _view(truth: list[int], predicted: list[int], n_labels: int) -> ScoredView:
    units = Units(
        datum=None,
        key=None,
        truth=np.array(truth, np.int32),
        truth_start=None,
        hard=np.array(predicted, np.int32),
        hard_score=None,
        weight=None,
    )
    names = pl.DataFrame({"label_key": ["label"] * n_labels, "label_value": range(n_labels)})
    labels = Labels(names, np.zeros(n_labels, np.int32), ("label",))
    return ScoredView(units, None, labels)


# Single calls on plain Python lists of texts.

Texts = str | Sequence[str]
References = str | Sequence[str] | Sequence[Sequence[str]]


def rouge(
    predictions: Texts,
    references: References,
    *,
    rouge_types: Sequence[str] = ("rouge1", "rouge2", "rougeL", "rougeLsum"),
    use_stemmer: bool = False,
) -> Any:
    """ROUGE of texts, as Hugging Face's ``evaluate`` without an aggregator: F by type.

    Args:
        predictions: a text, or a list of them.
        references: for each text its reference, or a list of several; the best counts, per type.
            For one text given as a string: a string, or a list of its references.
        rouge_types: some of rouge1, rouge2, rouge3, rougeL and rougeLsum.
        use_stemmer: whether tokens of four letters and more are stemmed.

    Returns:
        a dict of type and F, in [0, 1], per text; a single dict for a string.

    Raises:
        InputError: lists of different lengths, a text that is not a string, or one without
            references.
        OptionError: a type that does not exist.

    Example:
        >>> import evalengine as ee
        >>> ee.rouge("the cat sat", ["a cat sat", "the dog sat"], rouge_types=["rouge1", "rougeL"])
        {'rouge1': 0.6666666666666666, 'rougeL': 0.6666666666666666}
    """
    card = score(
        _table(predictions, references),
        task="text",
        dialect="rouge-score",
        metrics=["ROUGE"],
        rouge_types=list(rouge_types),
        use_stemmer=use_stemmer,
    )
    rows = card.frame("per_datum").filter(pl.col("statistic").is_null())
    by_type = {
        name: rows.filter(pl.col("metric") == f"ROUGE{name.removeprefix('rouge')}")["value"]
        for name in rouge_types
    }
    scores = [dict(zip(by_type, row, strict=True)) for row in zip(*by_type.values(), strict=True)]
    return scores[0] if isinstance(predictions, str) else scores


def bleu(
    predictions: Texts,
    references: References,
    *,
    weights: Sequence[float] = (0.25, 0.25, 0.25, 0.25),
    smoothing: str = "none",
    tokenizer: str = "words",
) -> Any:
    """Sentence BLEU of texts, as Valor computes it with NLTK.

    Args:
        predictions: a text, or a list of them.
        references: as in :func:`rouge`; n-grams may match any of several.
        weights: weight of each n-gram order, summing to 1.
        smoothing: see :class:`evalengine.Options`.
        tokenizer: see :class:`evalengine.Options`.

    Returns:
        a number in [0, 1] per text; a single number for a string.

    Raises:
        InputError: as in :func:`rouge`.
        OptionError: weights that do not sum to 1; a smoothing or tokenizer that does not exist.

    Example:
        >>> import evalengine as ee
        >>> round(ee.bleu("the cat sat on the mat", "the cat sat on a mat"), 4)
        0.5373
    """
    card = score(
        _table(predictions, references),
        task="text",
        metrics=["BLEU"],
        bleu_weights=list(weights),
        smoothing=smoothing,
        tokenizer=tokenizer,
    )
    scores = card.frame("per_datum")["value"].to_list()
    return scores[0] if isinstance(predictions, str) else scores


def _table(predictions: Texts, references: References) -> pl.DataFrame:
    """One row a text, its references in a list."""
    if isinstance(predictions, str):
        predictions, references = [predictions], [references]  # type: ignore[list-item]
    if isinstance(references, str) or len(predictions) != len(references):
        n = 1 if isinstance(references, str) else len(references)
        raise InputError(
            f"predictions and references must have the same length: {len(predictions)} and {n}.",
            code="lengths_differ",
            counts=[len(predictions), n],
        )
    lists = [[one] if isinstance(one, str) else one for one in references]
    for i, (text, group) in enumerate(zip(predictions, lists, strict=True)):
        if not isinstance(text, str) or isinstance(group, (bytes, dict)):
            raise InputError(f"prediction {i} is not a string: {text!r}.", code="wrong_type", row=i)
        wrong = [one for one in group if not isinstance(one, str)] if group else [None]
        if wrong:
            raise InputError(
                f"references of text {i}: write a string or a list of strings, at least one;"
                f" found {group!r}.",
                code="wrong_type",
                row=i,
            )
    texts = pl.Series("text", [*predictions], dtype=pl.String)
    return pl.DataFrame([texts, pl.Series("reference", lists, dtype=pl.List(pl.String))])


# Texts with their references, measured without a table: one pair takes microseconds.

R = TypeVar("R")

_FEW = 256
"""Pairs that are measured by the thread that calls: to share them out would cost more."""


def workers_for(pairs: Pairs) -> Workers:
    """Return only this thread for few pairs, otherwise all threads."""
    return Threads(1) if len(pairs) < _FEW else Threads()


@lru_cache
def settings_of(dialect: str, **options: Any) -> Settings:
    """Return the settings of a text dialect, from hashable options.

    Raises:
        OptionError: a value out of range.
    """
    return Settings.resolve(Options(**options), dialects.get("text", dialect))


def pairs_of(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Pairs:
    """Pair candidates with their references.

    Args:
        references: one or more per candidate.

    Raises:
        InputError: a value that is not text, or a candidate without references.
    """
    many = np.fromiter(map(len, references), np.int64, len(references))
    if many.size and not many.all():
        raise InputError(
            f"text {int(np.argmin(many))} has no reference: give one or more.",
            code="references_missing",
            row=int(np.argmin(many)),
        )
    flat = [one for those in references for one in those]
    n, columns = len(candidates), None
    if n < _FEW:  # one Series for both sides; errors are raised below, with the name of the side
        with suppress(InputError):
            both = _column("text", [*candidates, *flat])
            columns = both.slice(0, n), both.slice(n)
    columns = columns or (_column("text", candidates), _column("reference", flat))
    return Pairs(*columns, offsets_of(many), {})


def _column(side: str, texts: Sequence[str]) -> pl.Series:
    try:
        column = pl.Series(side, texts, dtype=pl.String, strict=True)
    except (TypeError, UnicodeEncodeError, pl.exceptions.PolarsError):
        column = None
    if column is None or column.null_count():
        raise InputError(_wrong(side, texts), code="not_text", side=side)
    return column


def _wrong(side: str, texts: Sequence[Any]) -> str:
    """Return a message about the first value that is not text."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            return f"{side} {i} is not a string: {text!r}."
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"{side} {i} has half a surrogate pair at character {error.start}, which is no"
                    " text; write text.encode('utf-8', 'replace').decode()."
                )
    return f"{side}: these are not texts."
