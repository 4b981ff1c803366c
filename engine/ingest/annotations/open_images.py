"""Open Images' CSV: one line per box in relative coordinates; image labels in separate files.

Columns as in https://storage.googleapis.com/openimages/web/download_v7.html, and of its challenge's
submissions (``ImageId,PredictionString``). Verified image labels become two lists per image: shown
and not shown.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from evalengine.schemas.errors import N_NAMES, InputError, ReadError

from ..files import Source
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of
from .format import FIRST, IMAGE_SUFFIXES, Format, Look, broken, look_at, text_of
from .yolo import HIGH, LOW

_SCORES = ("score", "conf")
_FLAGS = {
    "isoccluded": "is_occluded",
    "istruncated": "is_truncated",
    "isgroupof": "is_group_of",
    "isdepiction": "is_depiction",
    "isinside": "is_inside",
}
_GROUPS = "is_group_of"
_EACH = 6  # fields of a detection in a PredictionString


def _kind(head: bytes) -> str | None:
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    columns = {*([name.strip().strip('"').casefold() for name in line.split(",")])}
    if {"imageid", "labelname", *CORNER_NAMES} <= columns:
        return "boxes"
    if {"imageid", "labelname", "confidence"} <= columns and not columns & {*CORNER_NAMES}:
        return "labels"
    return "submission" if columns == {"imageid", "predictionstring"} else None


def _detect(look: Look) -> bool:
    kinds = [_kind(head) for name, head in look.heads(".csv") if not _is_names(name)]
    return bool({*kinds} - {"labels"}) and None not in kinds


def _is_names(file: str) -> bool:
    return "class-descriptions" in os.path.basename(file).lower()


def _read(look: Look) -> Source:
    readers = {"boxes": _boxes, "submission": _submission, "labels": _labels}
    read: dict[str, list[pl.DataFrame]] = {kind: [] for kind in readers}
    firsts = {}
    listed: list[pl.Series] = []
    zeros = 0
    for file, head in look.heads(".csv", most=len(look.files)):
        kind = None if _is_names(file) else _kind(head)
        if kind is not None:
            table = readers[kind](file)
            if kind != "labels":
                listed.append(table["datum_id"])
                zeros += table.select((_ZERO & _NAMED).sum()).item() if _is_truth(table) else 0
                table = table.filter(_NAMED & ~_ZERO if _is_truth(table) else _NAMED)
                firsts[file] = table.head(FIRST)
            read[kind].append(table)
    frames = read["boxes"] + read["submission"]
    if len({"score" in frame.columns for frame in frames}) > 1:
        raise ReadError(
            f"{look.given}: some files have scores and others none. Give one side.",
            code="scores_missing",
        )
    rows = pl.concat(frames, how="diagonal")  # flags missing in some files become null
    if _GROUPS in rows.columns:
        rows = rows.with_columns(pl.col(_GROUPS).fill_null(0))
    of_zeros = "images without objects, which are not scored as objects."
    message = f"{count_of(zeros, 'row')} with a box of 0, 0, 0, 0: {of_zeros}"
    return Source(
        rows.lazy(),
        datums=_datums(listed, read["labels"]),
        labels=_names(look, rows),
        shares=True,
        firsts=firsts,
        notes=(Note("boxes_of_zeros", message, zeros),) if zeros else (),
    )


_NAMED = pl.col("label_value").is_not_null()
_ZERO = pl.all_horizontal(pl.col(CORNER_NAMES) == 0)


def _is_truth(rows: pl.DataFrame) -> bool:
    return "score" not in rows.columns


def _datums(listed: list[pl.Series], labels: list[pl.DataFrame]) -> pl.DataFrame:
    """A row per image, with the lists of its labels if there are files of those."""
    ids = pl.concat([*listed, *(frame["datum_id"] for frame in labels)])
    datums = ids.unique(maintain_order=True).to_frame()
    if not labels:
        return datums
    lists = (
        pl.concat(labels)
        .group_by("datum_id")
        .agg(
            pl.col("label_value").filter("shown").alias("positive_labels"),
            pl.col("label_value").filter(~pl.col("shown")).alias("negative_labels"),
        )
    )
    empty = pl.lit([], pl.List(pl.String))
    return datums.join(lists, on="datum_id", how="left", maintain_order="left").with_columns(
        pl.col("positive_labels", "negative_labels").fill_null(empty)
    )


def _labels(file: str) -> pl.DataFrame:
    """Read verified image labels, and whether each is shown; unverified ones are dropped."""
    frame = _csv(file)
    columns = {name.strip().casefold(): name for name in frame.columns}
    sure = frame[columns["confidence"]].cast(pl.Float64, strict=False)
    odd = sure.is_null() | (sure < 0) | (sure > 1)
    if odd.any():
        row = int(odd.arg_true()[0])
        wrong = f"column {columns['confidence']!r} contains {frame[columns['confidence']][row]!r}"
        repair = "1 means that the image shows the label, 0 that it does not."
        raise broken(file, row + 2, wrong, repair)
    labels = frame.select(
        pl.col(columns["imageid"]).alias("datum_id"),
        pl.col(columns["labelname"]).alias("label_value"),
        pl.Series("shown", sure == 1),
    )
    return _stems(labels.filter((sure == 0) | (sure == 1)))


def _csv(file: str) -> pl.DataFrame:
    try:
        frame = pl.read_csv(file, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        rows = csv.reader(text_of(file).splitlines())
        wide = len(next(rows, []))
        line = next((n for n, row in enumerate(rows, 2) if len(row) > wide), None)
        why = f"more fields than the header's {wide}" if line else str(error).split("\n")[0]
        raise (broken(file, line, why.rstrip("."), "Quote fields that contain a comma.")) from None
    return frame.filter(~pl.all_horizontal(pl.all().str.strip_chars("\r ").fill_null("") == ""))


def _boxes(file: str) -> pl.DataFrame:
    frame = _csv(file)
    origin = {name.strip().casefold(): name for name in frame.columns}
    scored = next((origin[name] for name in _SCORES if name in origin), None)
    if scored is None and "confidence" in origin:
        # In ground truths this column is the annotator's confidence: always 1 for boxes.
        varies = frame[origin["confidence"]].is_in(["0", "1", "1.0", "0.0"]).all()
        scored = None if varies else origin["confidence"]
    numbers = {name: origin[name] for name in CORNER_NAMES}
    if scored is not None:
        numbers["score"] = scored
    numbers |= {target: origin[name] for name, target in _FLAGS.items() if name in origin}
    read = frame.select(
        pl.col(origin["imageid"]).alias("datum_id"),
        pl.col(origin["labelname"]).alias("label_value"),
        *(pl.col(name).cast(pl.Float64, strict=False).alias(to) for to, name in numbers.items()),
    )
    # A row with only an image: it has no objects.
    texts = [
        origin["labelname"],
        *(origin[name] for name in (*CORNER_NAMES, *_SCORES) if name in origin),
    ]
    without_box = frame.select(
        pl.all_horizontal(pl.col(dict.fromkeys(texts)).str.strip_chars().fill_null("") == "")
    ).to_series()
    zero = (
        read.select(_ZERO.fill_null(value=False)).to_series() & frame[origin["labelname"]].is_null()
    )
    without_box |= zero
    nameless = frame[origin["labelname"]].is_null() & ~without_box
    if nameless.any():
        wrong = f"a box without a class ({int(nameless.sum()):,} such lines)"
        repair = "Write its class, or no corners if the image has no objects."
        raise broken(file, int(nameless.arg_true()[0]) + 2, wrong, repair)
    for to, name in numbers.items():
        odd = read[to].is_null() & ~without_box
        if to in _FLAGS.values():  # some exporters write them empty
            odd &= frame[name].is_not_null()
            odd |= ~read[to].is_between(-1, 1).fill_null(value=True)
        if odd.any():
            row = int(odd.arg_true()[0])
            wrong = (
                f"column {name!r} contains {frame[name][row]!r}, which is not a "
                f"number{' from -1 to 1' if to in _FLAGS.values() else ''} ({int(odd.sum()):,} "
                "such lines)"
            )
            raise broken(file, row + 2, wrong, "Correct it.")
    _refuse_pixels(read, file, read.with_row_index()["index"])
    flags = [pl.col(to).cast(pl.Int64) for to in numbers if to in _FLAGS.values()]
    if _GROUPS in numbers:  # -1 is unknown, of old sets: no group for all that is known
        flags = [flag for flag in flags if flag.meta.output_name() != _GROUPS]
        flags.append(pl.col(_GROUPS).fill_null(0).clip(0).cast(pl.Int64))
    first = [name for name in ("datum_id", "label_value", "score") if name in read.columns]
    empty = [to for to in _FLAGS.values() if to in numbers and read[to].null_count() == read.height]
    label = pl.when(~without_box).then("label_value")
    read = read.with_columns(flags).with_columns(label_value=label)
    return _stems(read.drop(empty).select(*first, pl.exclude(first)))


def _refuse_pixels(read: pl.DataFrame, file: str, rows: pl.Series) -> None:
    """Refuse corners that are not relative coordinates.

    Args:
        rows: row of each box in the file, from 0 after the header.
    """
    corners = [*CORNER_NAMES]
    out = ~pl.all_horizontal(pl.col(corners).is_between(LOW, HIGH))
    odd = read.select(out.alias("odd"))["odd"]
    if odd.any():
        i = int(odd.arg_max() or 0)
        example = dict(zip(corners, read.select(corners).row(i), strict=True))
        raise broken(
            file,
            int(rows[i]) + 2,
            f"corners that are not shares of the image: {example} ({int(odd.sum()):,} such boxes)",
            "Divide x by the image's width and y by its height; a table with pixels has columns"
            " datum_id, label_value, xmin, ymin, xmax and ymax.",
        )


def _stems(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove image suffixes that some exporters include in ids."""
    pattern = rf"(?i)({'|'.join(map(re.escape, IMAGE_SUFFIXES))})$"
    return frame.with_columns(pl.col("datum_id").str.replace(pattern, ""))


def _submission(file: str) -> pl.DataFrame:
    frame = _csv(file)
    frame.columns = ["datum_id", "said"]
    pieces = frame.with_columns(pl.col("said").fill_null("").str.extract_all(r"\S+"))
    wrong = pieces["said"].list.len() % _EACH != 0
    if wrong.any():
        row = int(wrong.arg_true()[0])
        message = f"{pieces['said'].list.len()[row]} fields in a PredictionString"
        repair = "Every detection has six: label, confidence, XMin, YMin, XMax, YMax."
        raise broken(file, row + 2, message, repair)
    names = ("label_value", "score", *CORNER_NAMES)
    flat = pieces.with_row_index().filter(pl.col("said").list.len() > 0).explode("said")
    rows = flat.height // _EACH
    columns: dict[str, Any] = {"datum_id": flat["datum_id"].gather_every(_EACH)}
    for at, name in enumerate(names):
        columns[name] = flat["said"].gather_every(_EACH, at)
    boxes = pl.DataFrame(columns)
    assert boxes.height == rows
    try:
        boxes = boxes.with_columns(pl.col(*names[1:]).cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        message = str(error).split("\n")[0].rstrip(".")
        raise broken(file, None, f"a PredictionString: {message}", "Correct it.") from None
    _refuse_pixels(boxes, file, flat["index"].gather_every(_EACH))
    return _stems(boxes)


def _names(look: Look, rows: pl.DataFrame) -> pl.DataFrame | None:
    """Return the names of the labels, if their description file is present."""
    files = [os.path.join(look.root, name) for name in sorted(os.listdir(look.root))]
    described = [file for file in files if _is_names(file) and file.endswith(".csv")]
    if not described:
        return None
    names = pl.read_csv(described[0], has_header=False, infer_schema=False)
    if names.width < 2:
        raise broken(described[0], 1, "names of classes need two columns", "Correct it.")
    labels = names.select(
        pl.col(names.columns[0]).alias("label_value"), pl.col(names.columns[1]).alias("label_name")
    ).unique("label_value", keep="first", maintain_order=True)
    return labels.join(rows.select("label_value").unique(), on="label_value", how="semi")


OPEN_IMAGES = Format("open-images", (".csv",), _read, detects=_detect)


# Class hierarchy: an instance of a class is one of all its ancestors. Source: Open Images
# challenge, "Evaluation"; TensorFlow's ``oid_hierarchical_labels_expansion``.

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
    tree = hierarchy if isinstance(hierarchy, Mapping) else _read_tree(os.fspath(hierarchy))
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


def _read_tree(path: str) -> Tree:
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
        names = ", ".join(map(repr, unknown[:N_NAMES]))
        raise InputError(
            f"{what}: {count_of(len(unknown), 'label')} not in the hierarchy, first {names}. Take"
            " the rows out, or add the labels to the tree.",
            code="unknown_label",
            count=len(unknown),
            value=unknown[0],
        )
