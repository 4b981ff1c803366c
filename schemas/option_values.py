"""Options from loosely typed values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

import msgspec

from .errors import OptionError, invalid, unknown
from .options import FIELDS, Options, checked_names
from .wording import option

# Metrics as users write them: a name, or a name with a cut-off behind an ``@``.


def in_name(number: float) -> str:
    """A number as names of metrics have it: the shortest text that reads back as the same one."""
    return repr(float(number)).removesuffix(".0")


_WHOLE = re.compile(r"[0-9]{1,9}")


class Asked(msgspec.Struct, frozen=True):
    """One requested metric.

    Attributes:
        metric: its name, without a cut-off.
        k: cut-off in the name, 0 or more; None without one.
    """

    metric: str
    k: int | None = None


def parse_metric(name: str) -> Asked:
    """Split ``nDCG@10`` into name and cut-off; a name without ``@`` has none.

    The registry checks that the metric exists and takes a cut-off.

    Raises:
        OptionError: the text after ``@`` is not an integer from 0 to 999999999.
    """
    metric, at, k = name.partition("@")
    if not at:
        return Asked(name)
    if not _WHOLE.fullmatch(k):
        raise OptionError(
            f"{name!r}: a cut-off follows the @, a whole number from 0 to 999999999,"
            f" such as '{metric}@10'.",
            code="option_value",
            option="metrics",
            value=name,
        )
    return Asked(metric, int(k))


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
    found: dict[tuple[str | None, str | None], LabelThreshold] = {}
    for key, value, number, name in rows:
        real = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not real or not math.isfinite(number):
            raise _refused(f"{number!r} of label {value!r} is not a finite number", number)
        place = None if key is None else str(key), None if value is None else label_text(value)
        row = LabelThreshold(*place, float(number), None if name is None else str(name))
        if (other := found.setdefault(place, row)).number != number:
            raise _refused(
                f"label {value!r} has two thresholds, {other.number} and {number}", value
            )
    return tuple(found.values())


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
            with open(path, encoding="utf-8") as file:
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


# The option ``training``: paths, or a table in memory.


class HeldTable:
    """A table in memory, as an option value.

    Copies that were pickled or read from a file only have the name.

    Args:
        name: name of its type.
        table: the table, or None in a copy.
        digest: digest of its content, set once it is read.
    """

    def __init__(self, name: str, table: Any = None, digest: str = "") -> None:
        self.name = name
        self._table = table
        self.digest = digest

    @property
    def table(self) -> Any:
        """The table.

        Raises:
            OptionError: this is a copy.
        """
        if self._table is None:
            raise OptionError(
                f"{option('training')}: the table ({self.name}) did not come along with the"
                " options; give it again, or write it to a file and give its path.",
                code="option_missing",
                option="training",
            )
        return self._table

    def __repr__(self) -> str:
        return f"HeldTable({self.name!r})"

    def __str__(self) -> str:
        return f"{self.name}, sha256 {self.digest[:12]}" if self.digest else self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeldTable):
            return False
        if self.digest or other.digest:  # a name only gives the number of rows
            return self.digest == other.digest
        return self.name == other.name

    def __hash__(self) -> int:
        return hash(HeldTable)  # digests come later, and equal ones may have other names

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldTable, (self.name, None, self.digest)


def as_training(given: Any) -> str | tuple[str, ...] | HeldTable:
    """Normalise the option ``training``.

    Args:
        given: a path, a glob, paths, or any table that ``score`` takes.
    """
    if isinstance(given, HeldTable):
        return given
    if isinstance(given, (str, PathLike)):
        return fspath(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, str) for one in given):
        return given[0] if len(given) == 1 else tuple(given)
    if isinstance(given, Mapping) and "object" in given and {*given} <= {"object", "sha256"}:
        return HeldTable(str(given["object"]), digest=str(given.get("sha256", "")))
    kind = type(given)
    rows = (
        f" of {len(given):,} rows"
        if hasattr(given, "columns") and hasattr(given, "__len__")
        else ""
    )
    return HeldTable(f"{kind.__module__.split('.')[0]}.{kind.__qualname__}{rows}", given)


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


class Encoder:
    """An object with a method ``encode`` that converts texts to vectors.

    Copies that were pickled or read from a file only have the name.

    Args:
        name: name of its class.
        model: the object, or None in a copy.
    """

    def __init__(self, name: str, model: Any = None) -> None:
        self.name = name
        self._model = model

    def encode(self, texts: list[str]) -> Any:
        """Return the object's vectors for texts.

        Raises:
            OptionError: this is a copy.
        """
        if self._model is None:
            raise OptionError(
                f"{option('embedder')}: the object {self.name} did not come along with the"
                " options; give it again.",
                code="option_missing",
                option="embedder",
            )
        return self._model.encode(texts)

    def __repr__(self) -> str:
        return f"Encoder({self.name!r})"

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
        found = msgspec.convert(
            {name: value for name, value in given.items() if value is not None},
            Embedding,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise OptionError(
            f"{option('embedder')}: {error}", code="option_value", option="embedder"
        ) from None
    counts = (found.batch_size, found.concurrency, found.dimensions or 1)
    if min(counts) < 1 or found.retries < 0 or not found.timeout > 0:
        raise OptionError(
            f"{option('embedder')}: batch_size, concurrency and dimensions are 1 or more, retries 0"
            " or more, timeout more than 0 seconds.",
            code="option_value",
            options=["batch_size", "concurrency", "dimensions", "retries", "timeout"],
        )
    return found


# Options from loosely typed values, as calls, mappings and the command line give them.

_KINDS = {str: "a string", float: "a number", int: "a whole number"}

_TUPLES = {
    "metrics": str,
    "by": str,
    "id_format": str,
    "label_format": str,
    "iou_thresholds": float,
    "iou_thresholds_to_return": float,
    "score_thresholds": float,
    "max_detections": int,
    "k": int,
    "relevance_levels": float,
    "rouge_types": str,
    "bleu_weights": float,
    "pixel_spacing": float,
    "head_segment": int,
}
_AS_GIVEN = (
    "label_map",
    "score_columns",
    "gains",
    "embedder",
    "stop_words",
    "keypoint_sigmas",
    "thresholds",
    "training",
)
"""Fields kept as they are, since their keys may be labels or numbers of any type, or objects."""


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
    merged.update({k: v for k, v in checked_names(given).items() if v is not None})
    for name, kind in _TUPLES.items():
        if merged.get(name) is not None:
            merged[name] = _as_tuple(name, merged[name], kind)
    if merged.get("area_ranges") is not None:
        merged["area_ranges"] = _as_ranges(merged["area_ranges"])
    if merged.get("score_columns") is not None:
        merged["score_columns"] = _as_score_columns(merged["score_columns"])
    if merged.get("stop_words") is not None:
        merged["stop_words"] = _as_stop_words(merged["stop_words"])
    if merged.get("thresholds") is not None:
        merged["thresholds"] = read_thresholds(merged["thresholds"])
    if merged.get("keypoint_sigmas") is not None:
        merged["keypoint_sigmas"] = _as_sigmas(merged["keypoint_sigmas"])
    if merged.get("embedder") is not None:
        merged["embedder"] = as_embedder(merged["embedder"])
    if merged.get("training") is not None:
        merged["training"] = as_training(merged["training"])
    if hasattr(merged.get("positive_label"), "item"):
        merged["positive_label"] = merged["positive_label"].item()
    try:
        options = msgspec.convert(
            {k: v for k, v in merged.items() if k not in _AS_GIVEN}, Options, strict=False
        )
    except msgspec.ValidationError as error:
        name = path_of(error)
        raise OptionError(f"option {name}: {error}", code="option_value", option=name) from None
    if options.threads is not None and options.threads < 1:
        raise invalid("threads", options.threads, "write 1 or more.")
    given_as_is = {name: merged[name] for name in _AS_GIVEN if merged.get(name) is not None}
    return msgspec.structs.replace(options, **given_as_is) if given_as_is else options


def path_of(error: Exception) -> str:
    """Return the option that msgspec refuses, ``value`` if it names none."""
    text = str(error)
    return text.split("`$.")[1].split("`")[0].split("[")[0] if "`$." in text else "value"


def _as_tuple(name: str, value: Any, kind: type) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)):
        if hasattr(value, "tolist"):
            value = value.tolist()
        value = value if isinstance(value, (list, tuple)) else [value]
    try:
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
    if hasattr(value, "tolist"):
        value = value.tolist()
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


def _as_sigmas(value: Any) -> Any:
    """A number, a name or path, numbers in a tuple, or a mapping of labels to these."""
    if isinstance(value, Mapping):
        return {getattr(k, "item", lambda k=k: k)(): _as_sigmas(v) for k, v in value.items()}
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    several = isinstance(value, Sequence) and not isinstance(value, str)
    for one in value if several else (value,):
        number = isinstance(one, (int, float)) and not isinstance(one, bool)
        if not (number and 0 < one < math.inf) and (several or not isinstance(value, str)):
            raise OptionError(
                f"keypoint_sigmas: {one!r} is not a sigma: write numbers above 0, one for each"
                " keypoint or one for all, or the name of a set or file."
            )
    return tuple(map(float, value)) if several else value


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
        names = [value] if isinstance(value, str) else value
        if isinstance(names, Sequence) and names and all(isinstance(name, str) for name in names):
            return tuple(names)
    raise invalid(
        "score_columns",
        value,
        "write the names of the columns, such as ['prob_cat', 'prob_dog'], or a"
        " mapping of labels to them, such as {'cat': 'prob_cat'}.",
    )


# The options of intervals, before anything is computed.

METHOD_NAMES = ("percentile", "recentred", "normal", "bca", "jackknife", "wilson", "delong")
BY_THEORY = ("wilson", "delong")
"""Methods that assume independent datums and use no resamples."""
LEVEL, DRAWS, SEED = 0.95, 1000, 0
FEW_CLUSTERS = 20
LEAST_DRAWS = 20


class Wanted(msgspec.Struct, frozen=True):
    """The options of intervals with every default filled in.

    Attributes:
        level: confidence, in (0, 1).
        draws: number of resamples.
        seed: seed of the resamples.
        method: one of :data:`METHOD_NAMES`; None for each metric's default.
        cluster: column of the clusters to resample; None to resample single datums.
    """

    level: float
    draws: int
    seed: int
    method: str | None
    cluster: str | None


def wanted(options: Options) -> Wanted | None:
    """Return the requested intervals; None without any.

    Raises:
        OptionError: an invalid value, or one without ``intervals``.
    """
    if options.intervals is None:
        for name in ("draws", "seed", "cluster", "method"):
            given = getattr(options, name)
            if given is not None:
                raise OptionError(
                    f"{option(name, given)} is of intervals: add {option('intervals', 0.95)}.",
                    code="option_unread",
                    option=name,
                    value=given,
                )
        return None
    level = options.intervals / 100 if options.intervals > 1 else options.intervals
    if not 0 < level < 1:
        raise OptionError(
            f"{option('intervals', options.intervals)}: write a confidence such as 0.95 or 95.",
            code="option_value",
            option="intervals",
            value=options.intervals,
        )
    draws = DRAWS if options.draws is None else options.draws
    if draws < LEAST_DRAWS:
        raise OptionError(
            f"{option('draws', draws)}: write {LEAST_DRAWS} or more.",
            code="option_value",
            option="draws",
            value=draws,
        )
    method = options.method
    if method is not None and method not in METHOD_NAMES:
        raise unknown("method", method, METHOD_NAMES)
    if method in BY_THEORY and options.cluster is not None:
        raise OptionError(
            f"{option('method', method)} treats datums as independent: omit {option('cluster')}, "
            "or take another method.",
            code="options_conflict",
            options=["method", "cluster"],
        )
    return Wanted(level, draws, options.seed or SEED, method, options.cluster)
