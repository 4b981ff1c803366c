"""Score thresholds by label, in any form, as rows of key, value and number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

from .errors import OptionError
from .wording import option


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
