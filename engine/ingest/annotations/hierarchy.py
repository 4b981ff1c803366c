"""Open Images' class hierarchy: an instance of a class is one of all its ancestors.

Source: Open Images challenge, "Evaluation"; TensorFlow's ``oid_hierarchical_labels_expansion``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from evalengine.schemas.errors import N_NAMES, InputError, ReadError

from ..problems import count_of
from .open_images import OPEN_IMAGES
from .registry import look_at

Tree = Mapping[str, Any]


def expand_hierarchy(
    ground_truths: pl.DataFrame | str | os.PathLike[str],
    hierarchy: Tree | str | os.PathLike[str],
    *,
    datums: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Expand ground truths and verified image labels along a tree of classes.

    A box is also one of each ancestor class except the root. An image that shows a class shows its
    ancestors; one that does not show a class shows no descendant of it. The boxes of a class that
    occurs twice in the tree are repeated among its ancestors, as in TensorFlow's tool. Detections
    are not expanded: a model has to predict ancestor classes itself.

    Args:
        ground_truths: a table with ``label_value``, or Open Images' CSV files, or their folder.
        hierarchy: the JSON tree of ``LabelName`` and ``Subcategory``, or its file; ``Part`` is
            ignored.
        datums: the table of images with ``positive_labels`` and ``negative_labels``; by default
            that of the files.

    Returns:
        both tables, as :func:`evalengine.score` takes them; None if there is no table of images.

    Raises:
        ReadError: a file that cannot be read.
        InputError: labels that are not in the hierarchy.

    Example:
        >>> truth = pl.DataFrame({"datum_id": ["a"], "label_value": ["dog"]})
        >>> animals = {"LabelName": "animal", "Subcategory": [{"LabelName": "dog"}]}
        >>> tree = {"LabelName": "entity", "Subcategory": [animals]}
        >>> expand_hierarchy(truth, tree)[0]["label_value"].to_list()
        ['dog', 'animal']
    """
    if isinstance(ground_truths, pl.DataFrame):
        rows = ground_truths
    else:
        path = os.fspath(ground_truths)
        look = look_at([path])
        if look is None or not OPEN_IMAGES.detect(look):
            raise ReadError(
                f"{path}: contains no CSV of Open Images. Give a table for anything else.",
                code="format_unknown",
                file=path,
            )
        read = OPEN_IMAGES.read(look)
        rows, datums = read.frame.collect(), read.datums if datums is None else datums
    tree = hierarchy if isinstance(hierarchy, Mapping) else _read(os.fspath(hierarchy))
    above = _above(tree, root=True)
    below: dict[str, list[str]] = {label: [] for label in above}
    for label, classes in above.items():
        for name in dict.fromkeys(classes):
            below[name].append(label)
    expanded = _expanded(rows, "label_value", above, "ground truths")
    if datums is not None:
        for name, relatives in (("positive_labels", above), ("negative_labels", below)):
            if name in datums.columns:
                datums = _lists(datums, name, relatives)
    return expanded, datums


def _read(path: str) -> Tree:
    try:
        with open(path, encoding="utf-8-sig") as file:
            tree = json.load(file)
    except (OSError, ValueError) as error:
        raise ReadError(
            f"{path}: is not a hierarchy that can be read: {error}.",
            code="file_malformed",
            file=path,
        ) from None
    if not isinstance(tree, dict) or "LabelName" not in tree:
        raise ReadError(
            f"{path}: a hierarchy is an object with 'LabelName' and 'Subcategory'.",
            code="file_malformed",
            file=path,
        )
    return tree


def _above(node: Tree, *, root: bool = False) -> dict[str, list[str]]:
    """Every class of a tree and the classes above it, the nearest first; the root is none."""
    result: dict[str, list[str]] = {}
    for child in node.get("Subcategory", ()):
        for label, classes in _above(child).items():
            result.setdefault(label, []).extend(classes)
    if not root:
        for classes in result.values():
            classes.append(node["LabelName"])
        result[node["LabelName"]] = []
    return result


def _expanded(
    rows: pl.DataFrame, column: str, more: Mapping[str, list[str]], what: str
) -> pl.DataFrame:
    """Return each row, followed by copies for the implied classes."""
    _refuse(rows[column].unique().sort(), more, what)
    table = pl.DataFrame(
        {column: [*more], "_all": [[label, *classes] for label, classes in more.items()]},
        schema={column: rows.schema[column], "_all": pl.List(rows.schema[column])},
    )
    joined = rows.join(table, on=column, how="left", maintain_order="left").explode("_all")
    return joined.with_columns(pl.col("_all").alias(column)).drop("_all")


def _lists(datums: pl.DataFrame, name: str, more: Mapping[str, list[str]]) -> pl.DataFrame:
    """A column of lists with all that follows, each label once."""
    numbered = datums.select(name).with_row_index("row").explode(name).drop_nulls(name)
    full = _expanded(numbered, name, more, f"datums: {name}")
    lists = full.group_by("row", maintain_order=True).agg(pl.col(name).unique(maintain_order=True))
    joined = datums.drop(name).with_row_index("row").join(lists, on="row", how="left")
    empty = pl.lit([], datums.schema[name])
    return joined.sort("row").select(
        *(pl.col(one).fill_null(empty) if one == name else one for one in datums.columns)
    )


def _refuse(labels: Iterable[Any], choices: Mapping[str, Any], what: str) -> None:
    unknown = [label for label in labels if label not in choices]
    if unknown:
        shown = ", ".join(map(repr, unknown[:N_NAMES]))
        raise InputError(
            f"{what}: {count_of(len(unknown), 'label')} not in the hierarchy, first {shown}. Take"
            " the rows out, or add the labels to the tree.",
            code="unknown_label",
            count=len(unknown),
            value=unknown[0],
        )
