"""Options from loosely typed values, as calls, mappings and the command line give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import msgspec

from .embedder import as_embedder
from .errors import OptionError
from .label_thresholds import read_thresholds
from .options import FIELDS, Options, checked_names
from .training import as_training
from .wording import option

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
    "label_map", "score_columns", "gains", "embedder", "stop_words", "keypoint_sigmas",
    "thresholds", "training",
)  # fmt: skip
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
        raise OptionError(f"options={base!r}: give an Options object or a mapping.")
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
        raise OptionError(f"{option('threads', options.threads)}: write 1 or more.")
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
        raise OptionError(f"{name}={value!r}: every item must be {_KINDS[kind]}.") from None


def _as_ranges(value: Any) -> dict[str, tuple[float, float]]:
    try:
        return {str(k): (float(lo), float(hi)) for k, (lo, hi) in dict(value).items()}
    except (TypeError, ValueError):
        raise OptionError(
            f"area_ranges={value!r}: write a mapping of names to (low, high), such as"
            " {'small': (0, 1024)}."
        ) from None


def _as_stop_words(value: Any) -> tuple[str, ...] | str:
    """Words, or the path of a file of them."""
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
    """Names of columns, or a mapping of labels to them."""
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
    raise OptionError(
        f"score_columns={value!r}: write the names of the columns, such as ['prob_cat',"
        " 'prob_dog'], or a mapping of labels to them, such as {'cat': 'prob_cat'}."
    )
