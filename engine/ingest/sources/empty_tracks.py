"""Empty files of predictions: the ground truths' files decide the format."""

from __future__ import annotations

import os
from typing import Any

import polars as pl


def nothing_tracked(predictions: Any, truths: Any) -> Any:
    """Return the predictions; empty text files as files of the other side's format without rows."""
    if not all(isinstance(path, (str, os.PathLike)) for path in (predictions, truths)):
        return predictions
    path, of_truths = os.fspath(predictions), os.fspath(truths)
    if not _holds_nothing(path):
        return predictions
    from ..annotations.registry import look_at, recognised
    from .annotated import open_annotations

    found, look = recognised([of_truths]), look_at([path])
    if found is None or look is None:
        return predictions
    source = open_annotations(found[0], look)
    if found[0].datum != "sequence" and "score" not in source.frame.collect_schema():
        source.frame = source.frame.with_columns(score=pl.lit(0.0))
    return source


def _holds_nothing(path: str) -> bool:
    """Return whether a path is an empty text file, or a folder of only such files."""
    if not os.path.isdir(path):
        return path.endswith(".txt") and os.path.isfile(path) and not os.path.getsize(path)
    files = os.listdir(path)
    return bool(files) and all(
        name.endswith(".txt") and _holds_nothing(os.path.join(path, name)) for name in files
    )
