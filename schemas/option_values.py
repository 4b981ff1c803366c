"""Options from loosely typed values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from .errors import OptionError, invalid, unknown
from .options import DECLARED, FIELDS, Options, checked, checked_names, help_texts, kind_of
from .wording import as_list, option

# Metrics as users write them: a name, or a name with a cut-off behind an ``@``.


def in_name(number: float) -> str:
    """A number as names of metrics have it: the shortest text that reads back as the same one."""
    return repr(float(number)).removesuffix(".0")


_WHOLE = re.compile(r"[0-9]{1,9}")


class ParsedMetric(msgspec.Struct, frozen=True):
    """One requested metric.

    Attributes:
        metric: its name, without a cut-off.
        k: cut-off in the name, 0 or more; None without one.
    """

    metric: str
    k: int | None = None


def parse_metric(name: str) -> ParsedMetric:
    """Split ``nDCG@10`` into name and cut-off; a name without ``@`` has none.

    The registry checks that the metric exists and takes a cut-off.

    Raises:
        OptionError: the text after ``@`` is not an integer from 0 to 999999999.
    """
    metric, at, k = name.partition("@")
    if not at:
        return ParsedMetric(name)
    if not _WHOLE.fullmatch(k):
        raise OptionError(
            f"{name!r}: a cut-off follows the @, a whole number from 0 to 999999999,"
            f" such as '{metric}@10'.",
            code="option_value",
            option="metrics",
            value=name,
        )
    return ParsedMetric(metric, int(k))


# Score thresholds by label, in any form, as rows of key, value and number.


class LabelThreshold(NamedTuple):
    """The score from which predictions of a label count.

    Attributes:
        key: label key, None for any.
        value: label value as text, None for all labels without a separate row.
        number: the score.
        name: the label's name in the source of the threshold, or None. If both sides have names,
            labels are matched by name, since class numbers differ between formats.
    """

    key: str | None
    value: str | None
    number: float
    name: str | None = None


LabelThresholds = tuple[LabelThreshold, ...]

_NAME = "thresholds"
_WAYS = (
    "Write {'car': 0.4}, a table with label_value and threshold (and label_key), or a .json, .csv"
    " or .parquet file of one, as find_thresholds saves it"
)


def read_thresholds(given: Any) -> LabelThresholds:
    """Parse thresholds by label, and read their files.

    Args:
        given: a path of JSON, CSV or Parquet; a mapping of labels, or (key, value) pairs, to
            numbers; a table, records or triples of label_key, label_value and threshold, with an
            optional label_name.

    Raises:
        OptionError: another form, a label without a number, one label twice.
    """
    if isinstance(given, (str, PathLike)):
        given = _file(fspath(given))
    if isinstance(given, Mapping):
        rows = [(*_label(label), number, None) for label, number in given.items()]
    elif isinstance(given, Sequence):
        rows = [_row(one) for one in given]
    else:
        try:
            import polars as pl

            rows = [_row(one) for one in pl.DataFrame(given).to_dicts()]
        except (TypeError, ValueError, pl.exceptions.PolarsError):
            raise _refused(f"{given!r} is not a table", given) from None
    by_label: dict[tuple[str | None, str | None], LabelThreshold] = {}
    for key, value, number, name in rows:
        real = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not real or not math.isfinite(number):
            raise _refused(f"{number!r} of label {value!r} is not a finite number", number)
        place = None if key is None else str(key), None if value is None else label_text(value)
        row = LabelThreshold(*place, float(number), None if name is None else str(name))
        if (other := by_label.setdefault(place, row)).number != number:
            raise _refused(
                f"label {value!r} has two thresholds, {other.number} and {number}", value
            )
    return tuple(by_label.values())


def label_text(value: Any) -> str:
    """A label as thresholds name it: booleans as CSV and JSON write them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(what: str, value: Any) -> OptionError:
    return OptionError(f"{_NAME}: {what}. {_WAYS}.", code="option_value", option=_NAME, value=value)


def _label(label: Any) -> tuple[Any, Any]:
    return (label[0], label[1]) if isinstance(label, tuple) and len(label) == 2 else (None, label)


def _row(one: Any) -> tuple[Any, Any, Any, Any]:
    if isinstance(one, Mapping):
        missing = [name for name in ("label_value", "threshold") if name not in one]
        if missing:
            raise _refused(
                f"column {missing[0]!r} is missing among {', '.join(map(str, one))}", missing[0]
            )
        return one.get("label_key"), one["label_value"], one["threshold"], one.get("label_name")
    if isinstance(one, Sequence) and not isinstance(one, str) and len(one) in (3, 4):
        return one[0], one[1], one[2], one[3] if len(one) == 4 else None
    raise _refused(f"{one!r} is not a label with a threshold", one)


def _file(path: str) -> Any:
    import polars as pl

    ending = path.rpartition(".")[2].lower()
    try:
        if ending == "json":
            with open(path, encoding="utf-8-sig") as file:
                return json.load(file)
        if ending in ("csv", "parquet"):
            read = pl.read_csv if ending == "csv" else pl.read_parquet
            return read(path).to_dicts()
    except (OSError, ValueError, RecursionError, pl.exceptions.PolarsError) as error:
        raise OptionError(
            f"{option(_NAME, path)}: it cannot be read: {error}",
            code="file_unreadable",
            option="thresholds",
        ) from error
    raise OptionError(
        f"{option(_NAME, path)}: a .json, .csv or .parquet file is read.",
        code="format_unknown",
        option="thresholds",
    )


def chosen_thresholds(
    requested: Collection[float], grid: tuple[float, ...], *, strict: bool = True
) -> tuple[float, ...]:
    """Return the thresholds of a grid that are wanted; 0.9 may be 0.8999...9 in the grid.

    Raises:
        OptionError: one is not in the grid, and ``strict``.
    """
    chosen: set[float] = set()
    for value in requested:
        equal = [one for one in grid if math.isclose(value, one, abs_tol=1e-9)]
        chosen.update(equal)
        if strict and not equal:
            rounded = [round(one, 10) for one in grid]
            raise invalid(
                "iou_thresholds_to_return",
                value,
                f"it is not among iou_thresholds {rounded}, add it there.",
            )
    return tuple(filter(chosen.__contains__, grid))


# Objects of the user as values of options: a table, an encoder.


class _ObjectValue:
    """An object as the value of an option.

    Copies that were pickled or read from a file only have the name.

    Args:
        name: name of its type.
        held: the object, or None in a copy.
    """

    _option = ""

    def __init__(self, name: str, value: Any = None) -> None:
        self.name = name
        self._held = value

    def _object(self) -> Any:
        """Return the object.

        Raises:
            OptionError: this is a copy.
        """
        if self._held is None:
            raise OptionError(
                f"{option(self._option)}: the object ({self.name}) did not come along with the"
                " options; give it again.",
                code="option_missing",
                option=self._option,
            )
        return self._held

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class TableObject(_ObjectValue):
    """A table in memory; its ``digest`` is set once its content is read."""

    def __init__(self, option: str, name: str, value: Any = None, digest: str = "") -> None:
        super().__init__(name, value)
        self._option = option
        self.digest = digest

    @property
    def table(self) -> Any:
        """The table; refused in a copy."""
        return self._object()

    def __str__(self) -> str:
        return f"{self.name}, sha256 {self.digest[:12]}" if self.digest else self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableObject):
            return False
        if self.digest or other.digest:  # a name only gives the number of rows
            return self.digest == other.digest
        return self.name == other.name

    def __hash__(self) -> int:
        return hash(TableObject)  # digests come later, and equal ones may have other names

    def __reduce__(self) -> tuple[Any, ...]:
        return TableObject, (self._option, self.name, None, self.digest)


def as_table(option: str, given: Any) -> str | tuple[str, ...] | TableObject:
    """Normalise an option that is a table.

    Args:
        option: its name.
        given: a path, a glob, paths, or any table that ``score`` takes.
    """
    if isinstance(given, TableObject):
        return given
    if isinstance(given, (str, PathLike)):
        return fspath(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, str) for one in given):
        return given[0] if len(given) == 1 else tuple(given)
    if isinstance(given, Mapping) and "object" in given and {*given} <= {"object", "sha256"}:
        return TableObject(option, str(given["object"]), digest=str(given.get("sha256", "")))
    kind = type(given)
    rows = (
        f" of {len(given):,} rows"
        if hasattr(given, "columns") and hasattr(given, "__len__")
        else ""
    )
    return TableObject(option, f"{kind.__module__.split('.')[0]}.{kind.__qualname__}{rows}", given)


# Embedders: an endpoint, or a user's object, that converts texts to vectors.

CACHE = "embeddings.sqlite"


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint of embeddings.

    Attributes:
        model: its name at the endpoint.
        base_url: the endpoint, up to and without ``/embeddings``; None for the environment
            variable ``OPENAI_BASE_URL``.
        api_key_env: environment variable that contains the key; sent in one header, never stored.
        cache: file of all vectors.
        dimensions: requested length; None to omit it from the request.
        batch_size: texts in one request.
        concurrency: concurrent requests.
        timeout: seconds for a connection, and between two chunks of a response.
        retries: number of retries of a failed request.
        requests_per_minute: maximum rate of requests.
        max_requests: stop after this number of requests.
        max_tokens: stop after this number of tokens.
        max_cost: stop at this cost, by the price table.
        prices: model -> ``input`` and ``output`` per million tokens, or a TOML file of that.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    cache: str = CACHE
    dimensions: int | None = None
    batch_size: int = 128
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 3
    requests_per_minute: float | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: str | dict[str, dict[str, float]] | None = None


class Encoder(_ObjectValue):
    """An object with a method ``encode`` that converts texts to vectors."""

    _option = "embedder"

    def encode(self, texts: list[str]) -> Any:
        """Return the object's vectors for texts; refused in a copy."""
        return self._object().encode(texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoder) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, (self.name,)


def as_embedder(given: Any) -> Embedding | Encoder:
    """Normalise the option ``embedder``.

    Args:
        given: the name of a model, a mapping of the fields of :class:`Embedding`, or an object
            with ``encode(list[str])``.

    Raises:
        OptionError: another type, or a field that does not exist.
    """
    if isinstance(given, Embedding | Encoder):
        return given
    if isinstance(given, str):
        given = {"model": given}
    if not isinstance(given, Mapping):
        if callable(getattr(given, "encode", None)):
            return Encoder(f"{type(given).__module__}.{type(given).__qualname__}", given)
        raise OptionError(
            f"{option('embedder')}: {type(given).__name__} has no encode. Give an object with"
            " encode(list of texts), the name of a model, or a mapping such as"
            " {'model': 'my-model', 'base_url': 'http://localhost:8000/v1'}.",
            code="option_value",
            option="embedder",
        )
    if set(given) == {"object"}:
        return Encoder(str(given["object"]))
    fields = Embedding.__struct_fields__
    for name in given:
        if name not in fields:
            raise unknown("field", str(name), fields, before=f"{option('embedder')}: ")
    if not str(given.get("model", "")).strip():
        raise OptionError(
            f"{option('embedder')}: write the model's name: model=...",
            code="option_missing",
            option="model",
        )
    try:
        result = msgspec.convert(
            {name: value for name, value in given.items() if value is not None},
            Embedding,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise OptionError(
            f"{option('embedder')}: {error}", code="option_value", option="embedder"
        ) from None
    counts = (result.batch_size, result.concurrency, result.dimensions or 1)
    if min(counts) < 1 or result.retries < 0 or not result.timeout > 0:
        raise OptionError(
            f"{option('embedder')}: batch_size, concurrency and dimensions are 1 or more, retries 0"
            " or more, timeout more than 0 seconds.",
            code="option_value",
            options=["batch_size", "concurrency", "dimensions", "retries", "timeout"],
        )
    return result


# Options from loosely typed values, as calls, mappings and the command line give them.

_KINDS = {str: "a string", float: "a number", int: "a whole number"}


def make_options(base: Options | Mapping[str, Any] | None = None, **given: Any) -> Options:
    """Build options from loosely typed values: scalars become tuples, None means not given.

    Args:
        base: options to start from, or a mapping of them; ``given`` has priority.
        **given: any field of :class:`Options`.

    Raises:
        OptionError: an unknown name, or a value of the wrong type.
    """
    merged: dict[str, Any] = {}
    if isinstance(base, Options):
        merged = {field: getattr(base, field) for field in FIELDS}
    elif isinstance(base, Mapping):
        merged = checked_names(base)
    elif base is not None:
        raise invalid("options", base, "give an Options object or a mapping.")
    for name, value in checked_names(given).items():
        if value is not None:
            merged[name] = value
    typed: dict[str, Any] = {}
    untyped: dict[str, Any] = {}  # keys may be labels or numbers of any type, and values objects
    for name, value in merged.items():
        kind = kind_of(name)
        if value is None:
            continue
        if name in _CONVERT:
            value = _CONVERT[name](value)
        elif get_origin(kind) is tuple:
            value = _as_tuple(name, value, get_args(kind)[0])
        elif kind is not Any and not hasattr(value, "keys"):
            # msgspec takes arrays for mappings, and refuses NumPy's scalars
            dtype, value = getattr(value, "dtype", None), as_list(value)
            value = value if isinstance(value, list) else _as_meant(value, dtype)
        (untyped if kind is Any else typed)[name] = value
    try:
        options = msgspec.convert(typed, Options, strict=False)
    except msgspec.ValidationError as error:
        name = path_of(error)
        value = typed[name]
        value = {str(key): value[key] for key in value} if isinstance(value, dict) else value
        raise invalid(name, value, f"write {_form_of(name)}.") from None
    if options.threads is not None:
        checked("threads", options.threads)
    if options.memory_limit is not None:
        parse_size(options.memory_limit)
    if options.spread is not None and options.spread not in options.by:
        options = msgspec.structs.replace(options, by=(*options.by, options.spread))
    return msgspec.structs.replace(options, **untyped) if untyped else options


def _form_of(name: str) -> str:
    """Return the types of an option's values in words, with its example of a mapping."""
    pairs = [one.partition("=") for one in help_texts()[name].partition("E.g. ")[2].split(",")]
    example = {key: value for key, sign, value in pairs if sign}
    words = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        tuple: "a list",
        dict: f"a mapping such as {example}" if example else "a mapping",
    }
    kind = Options.__annotations__[name].__origin__
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    return " or ".join(words[get_origin(one) or one] for one in kinds if one is not NoneType)


def path_of(error: Exception) -> str:
    """Return the option that msgspec refuses, ``value`` if it names none."""
    text = str(error)
    return text.split("`$.")[1].split("`")[0].split("[")[0] if "`$." in text else "value"


def _as_meant(value: Any, dtype: Any = None) -> Any:
    """Return a number of half or single precision as the shortest decimal of it: 0.1, as written.

    Args:
        dtype: of the array that had the number; by default its own.
    """
    narrow = str(dtype or getattr(value, "dtype", "")).rpartition(".")[2].lower()
    if narrow not in ("float16", "float32"):
        return value
    import numpy as np  # only if an array is given

    return float(str(getattr(np, narrow)(value)))


def _as_tuple(name: str, value: Any, kind: type) -> tuple[Any, ...]:
    dtype = getattr(value, "dtype", None)
    if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)):
        value = as_list(value)
        value = value if isinstance(value, (list, tuple)) else [value]
    try:
        if DECLARED[name].decimals:
            value = [_as_meant(item, dtype) for item in value]
        if kind is not str and any(isinstance(item, (bool, str)) for item in value):
            raise ValueError
        converted = tuple(kind(item) for item in value)
        if kind is int and any(c != float(v) for c, v in zip(converted, value, strict=True)):
            raise ValueError
        return converted
    except (TypeError, ValueError, OverflowError):
        raise invalid(name, value, f"every item must be {_KINDS[kind]}.") from None


def _as_ranges(value: Any) -> dict[str, tuple[float, float]]:
    try:
        return {str(k): (float(lo), float(hi)) for k, (lo, hi) in dict(value).items()}
    except (TypeError, ValueError):
        raise invalid(
            "area_ranges",
            value,
            "write a mapping of names to (low, high), such as {'small': (0, 1024)}.",
        ) from None


def _as_stop_words(value: Any) -> tuple[str, ...] | str:
    if isinstance(value, (str, PathLike)):
        return fspath(value)
    value = as_list(value)
    words = list(value) if isinstance(value, (Sequence, set, frozenset)) else [value]
    wrong = [word for word in words if not isinstance(word, str)]
    if wrong:
        raise OptionError(
            f"stop_words: write a list of strings, or the path of a file with one word a line;"
            f" {wrong[0]!r} is not a string.",
            code="option_value",
            option="stop_words",
            value=wrong[0],
        )
    return tuple(sorted(words)) if isinstance(value, (set, frozenset)) else tuple(words)


def read_stop_words(given: tuple[str, ...] | str | None) -> tuple[str, ...] | None:
    """Return the stop words of the option, lower-case, distinct.

    Args:
        given: words, or the path of a UTF-8 file with one per line; or None.

    Raises:
        OptionError: no such file, a file that is not text, or white space within a word.
    """
    if given is None:
        return None
    words = given if not isinstance(given, str) else _words_of(given)
    distinct = dict.fromkeys(word.strip().lower() for word in words)
    distinct.pop("", None)
    wide = [word for word in distinct if len(word.split()) > 1]
    if wide:
        raise OptionError(
            f"stop_words: {len(wide):,} of {len(distinct):,} contain white space, first "
            f"{wide[0]!r}, but tokens do not: write one word per line, or a list of single words.",
            code="option_value",
            option="stop_words",
            count=len(wide),
        )
    return tuple(distinct)


def _words_of(path: str) -> list[str]:
    file = Path(path).expanduser()
    try:
        return file.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise OptionError(
            f"{option('stop_words', path)}: the file is not UTF-8 text; write one word a line.",
            code="file_unreadable",
            option="stop_words",
        ) from None
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise OptionError(
            f"{option('stop_words', path)}: {why}. Give the path of a file with one word a line,"
            " or several words: a list in Python, between commas in a shell.",
            code="file_missing",
            option="stop_words",
        ) from None


def as_sigmas(value: Any) -> Any:
    """A number, a name or path, numbers in a tuple, or a mapping of labels to these."""
    if isinstance(value, Mapping):
        return {getattr(k, "item", lambda k=k: k)(): as_sigmas(v) for k, v in value.items()}
    if isinstance(value, PathLike):
        return fspath(value)
    value = as_list(value)
    if isinstance(value, str):
        return value
    several = isinstance(value, Sequence)
    for one in value if several else (value,):
        number = isinstance(one, (int, float)) and not isinstance(one, bool)
        if not (number and 0 < one < math.inf):
            raise invalid(
                "keypoint_sigmas",
                one,
                "write numbers above 0, one for each keypoint or one for all, or the name of a set"
                " or file.",
            )
    return tuple(map(float, value)) if several else float(value)


def _as_score_columns(value: Any) -> tuple[str, ...] | dict[str | int | bool, str]:
    if isinstance(value, Mapping):
        mapped = {
            label.item() if hasattr(label, "item") else label: name for label, name in value.items()
        }
        if (
            mapped
            and all(isinstance(label, (str, int)) for label in mapped)
            and all(isinstance(name, str) for name in mapped.values())
        ):
            return mapped
    else:
        names = [value] if isinstance(value, str) else as_list(value)
        if isinstance(names, Sequence) and names and all(isinstance(name, str) for name in names):
            return tuple(names)
    raise invalid(
        "score_columns",
        value,
        "write the names of the columns, such as ['prob_cat', 'prob_dog'], or a"
        " mapping of labels to them, such as {'cat': 'prob_cat'}.",
    )


def _as_metrics(value: Any) -> tuple[str, ...]:
    """Names of metrics; own metrics become the references by which a run finds them."""
    value = as_list(value)
    several = isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, str)
    names = []
    references: dict[str, Any] = {}
    for one in value if several else [value]:
        if isinstance(one, str):
            names.append(one)
        elif hasattr(one, "reference") and callable(one):
            if references.setdefault(one.reference, one) is not one:
                raise OptionError(
                    f"metric {one.reference}: {one.name!r} is the name of another metric of this"
                    " run. Rename the function: set its __name__ and __qualname__ before it is"
                    " decorated.",
                    code="reserved_name",
                    value=one.name,
                )
            names.append(one.register())
        elif callable(one):
            raise invalid("metrics", one, "decorate an own metric with @evalengine.metric.")
        else:
            names.append(str(one))
    return tuple(names)


def _as_label(label: Any) -> Any:
    listed = as_list(label)
    if listed is label or not isinstance(listed, list):
        return listed
    if len(listed) != 1:
        raise invalid("positive_label", listed, "write one label.")
    return listed[0]


def _with_texts(pairs: Any) -> Any:
    """Return a mapping whose values may be numbers with texts in their place."""
    if isinstance(pairs, Mapping):
        return {key: str(one) for key, one in pairs.items()}
    return as_list(pairs)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_size(limit: str | int) -> int:
    """Return a memory limit in bytes.

    Args:
        limit: bytes, or text such as ``2GB``, ``512MiB`` or ``1.5 g``.

    Raises:
        OptionError: not a size, or not above 0.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)\s*([kmgt]?)(i?)b?", str(limit).strip().lower())
    if match is None:
        raise invalid(
            "memory_limit",
            limit,
            f"not a size. Write bytes, or a number and a unit: {option('memory_limit', '2GB')}.",
        )
    number, unit, binary = match.groups()
    scale = 1024 ** "kmgt".index(unit) * 1024 if binary and unit else _UNITS[unit]
    size = int(float(number) * scale)
    if size <= 0:
        raise invalid(
            "memory_limit", limit, f"below 1 byte. Write a unit: {option('memory_limit', '2GB')}."
        )
    return size


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "area_ranges": _as_ranges,
    "argument_rules": _with_texts,
    "metrics": _as_metrics,
    "score_columns": _as_score_columns,
    "stop_words": _as_stop_words,
    "thresholds": read_thresholds,
    "keypoint_sigmas": as_sigmas,
    "embedder": as_embedder,
    "training": partial(as_table, "training"),
    "regions": partial(as_table, "regions"),
    "human": partial(as_table, "human"),
    "match": lambda name: str(name).lower().removesuffix("_match"),
    "positive_label": _as_label,
}
"""Option -> function from its value as users give it."""


# The options of intervals, before anything is computed.

LEVEL = 0.95
FEW_CLUSTERS = 20
LEAST_DRAWS = 20


class Intervals(msgspec.Struct, frozen=True):
    """The options of intervals with every default filled in.

    Attributes:
        level: confidence, in (0, 1).
        draws: number of resamples.
        seed: seed of the resamples.
        method: None for each metric's default.
        cluster: column of the clusters to resample; None to resample single datums.
    """

    level: float
    draws: int
    seed: int
    method: str | None
    cluster: str | None


def _read_without_intervals(options: Options) -> tuple[str, ...]:
    """Options of intervals that human labels and the spread over groups read, too."""
    if options.spread is not None:
        return "draws", "seed", "cluster"
    labels = options.human is not None or options.label_next is not None
    return ("seed", "cluster") if labels else ()


def level_of(options: Options) -> float:
    """Return the confidence of intervals, as a share; by default :data:`LEVEL`."""
    level = LEVEL if options.intervals is None else options.intervals
    return level / 100 if level > 1 else level


def parse_intervals(options: Options) -> Intervals | None:
    """Return the requested intervals; None without any.

    Raises:
        OptionError: an invalid value, or one without ``intervals``.
    """
    if options.intervals is None:
        for name in ("draws", "seed", "cluster", "method"):
            setting = getattr(options, name)
            if setting is not None and name not in _read_without_intervals(options):
                raise OptionError(
                    f"{option(name, setting)} is of intervals: add {option('intervals', 0.95)}.",
                    code="option_unread",
                    option=name,
                    value=setting,
                )
        return None
    level = level_of(options)
    if not 0 < level < 1:
        raise invalid("intervals", options.intervals, "write a confidence such as 0.95 or 95.")
    draws = DECLARED["draws"].default if options.draws is None else options.draws
    checked("draws", draws)
    method = options.method if options.method is None else checked("method", options.method)
    return Intervals(level, draws, options.seed or 0, method, options.cluster)
