"""``evalengine convert``: annotations to tables, COCO JSON or text of tracks; runs to tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from evalengine.atomic import guarding
from evalengine.ingest.geometry import BOX_NAMES
from evalengine.schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE, Table
from evalengine.schemas.errors import N_EXAMPLES, InputError, ReadError, unknown
from evalengine.schemas.option_values import make_options
from evalengine.schemas.options import Options
from evalengine.schemas.tables import TABLES as TABLE_CONTRACTS
from evalengine.schemas.wording import in_python, option

from .annotations.format import look_at
from .annotations.registry import get, open_annotations
from .annotations.tracks import FORMS, KIND, track_files
from .files import Source, write_files
from .infer import recognise
from .opening import Inputs, Tables, open_inputs
from .problems import count_of, listing, refuse
from .recognise import Finder, contract
from .relabel import renamed
from .sources.coco import plainly
from .sources.json_files import sniff
from .sources.tables import open_source, schema_of

# Tables of detection as COCO's JSON: ground truths with images and categories, and results.

_OWN = {
    "datum_id",
    "label_value",
    "label_key",
    "score",
    "polygon",
    "mask",
    "segmentation",
    "iscrowd",
    "ignore",
    "area",
    "annotation_id",
    *BOX_NAMES,
}
"""Columns with a fixed place in COCO; others keep their names."""
_SEEN = 2  # visibility of a point that is labelled and seen

Writer = Callable[[IO[bytes]], object]


def coco_files(
    truths: pl.DataFrame | None,
    frame: pl.DataFrame | None,
    datums: pl.DataFrame | None,
    labels: pl.DataFrame | None,
) -> dict[str, tuple[Writer, int]]:
    """Return writers of ``groundtruths.json`` and ``predictions.json``, with their numbers of rows.

    Integer ids are kept; other ids of images and categories are numbered from 1 and stored as
    ``file_name`` and ``name`` by default. Missing boxes and areas are computed from the polygon or
    mask. A polygon with holes becomes a mask.

    Args:
        truths: canonical columns; None writes only results.
        datums: ``datum_id`` and further columns of images; None for those of the rows.
        labels: ``label_value`` and ``label_name``; None for those of the rows.

    Raises:
        InputError: several label keys, which COCO does not have; or a polygon with holes of an
            image whose size is unknown.
    """
    sides = [side for side in (truths, frame) if side is not None and side.width]
    for side in sides:
        if "label_key" in side.columns and side["label_key"].n_unique() > 1:
            keys = ", ".join(map(repr, side["label_key"].unique().sort().to_list()[:N_EXAMPLES]))
            raise InputError(
                f"label_key: COCO knows one kind of label, and here are several ({keys}). Take one"
                f" of them: {option('where', 'label_key = ...')}.",
                code="several_keys",
                column="label_key",
            )
    images = _with_all(datums, sides, "datum_id")
    classes = _with_all(labels, sides, "label_value")
    ids = _Ids(_numbers(images["datum_id"]), _numbers(classes["label_value"]))
    sizes: dict[Any, tuple[int, int]] = {}
    if {"height", "width"} <= {*images.columns}:
        complete = images.select("datum_id", "height", "width").drop_nulls()
        sizes = {i: (int(height), int(width)) for i, height, width in complete.iter_rows()}
    files: dict[str, tuple[Writer, int]] = {}
    if truths is not None:
        rows = _rows(truths, ids, sizes, "ground_truths")
        n = len(rows)
        stored_ids = truths["annotation_id"] if "annotation_id" in truths.columns else None
        numbers = range(1, n + 1) if stored_ids is None or stored_ids.null_count() else stored_ids
        for row, number in zip(rows, numbers, strict=True):
            row["id"] = number
        document = {
            "images": _images(images, ids),
            "categories": _categories(classes, ids),
            "annotations": rows,
        }
        files["groundtruths.json"] = (_writer(document), len(rows))
    if frame is not None:
        results = _rows(frame, ids, sizes, "predictions")
        files["predictions.json"] = (_writer(results), len(results))
    return files


class _Ids(msgspec.Struct, frozen=True):
    """COCO ids of images and categories, by our ids."""

    images: dict[Any, int]
    categories: dict[Any, int]


def _writer(thing: Any) -> Writer:
    return lambda file: file.write(msgspec.json.encode(thing))


def _with_all(table: pl.DataFrame | None, sides: list[pl.DataFrame], column: str) -> pl.DataFrame:
    """A table with a row for every id that a row of either side has, the listed ones first."""
    used = [side.select(column) for side in sides if side.height]
    if table is not None and used:
        used = [one.cast(table.schema[column]) for one in used]
    rows = pl.concat(used).unique().sort(column) if used else None
    if table is None:
        return rows if rows is not None else pl.DataFrame({column: []})
    if rows is None:
        return table
    return pl.concat([table, rows.join(table, on=column, how="anti")], how="diagonal")


def _numbers(ids: pl.Series) -> dict[Any, int]:
    if ids.dtype.is_integer():
        return {value: value for value in ids}
    return {value: number for number, value in enumerate(ids, 1)}


def _images(images: pl.DataFrame, ids: _Ids) -> list[dict[str, Any]]:
    rows = []
    for row in images.iter_rows(named=True):
        datum_id = row.pop("datum_id")
        name = row.pop("file_name", None) or (datum_id if isinstance(datum_id, str) else None)
        named = {"file_name": name} if name is not None else {}
        for side in ("width", "height"):  # tables of sizes have floats
            if row.get(side) is not None and float(row[side]).is_integer():
                row[side] = int(row[side])
        rows.append({"id": ids.images[datum_id], **named, **_filled(row)})
    return rows


def _categories(classes: pl.DataFrame, ids: _Ids) -> list[dict[str, Any]]:
    rows = []
    for row in classes.iter_rows(named=True):
        key = row.pop("label_value")
        name = row.pop("label_name", None)
        row.pop("label_key", None)
        rows.append(
            {"id": ids.categories[key], "name": str(key) if name is None else name, **_filled(row)}
        )
    return rows


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _rows(
    side: pl.DataFrame, ids: _Ids, sizes: dict[Any, tuple[int, int]], called: str
) -> list[dict[str, Any]]:
    """One side's rows as COCO has them, without their own ids."""
    if not side.height:
        return []
    shapes = _Shapes(side, sizes, called)
    scored = "score" in side.columns
    extra_columns = [name for name in side.columns if name not in _OWN]
    rows = []
    for i, row in enumerate(side.iter_rows(named=True)):
        box = shapes.box(i, row)
        entry: dict[str, Any] = {
            "image_id": ids.images[row["datum_id"]],
            "category_id": ids.categories[row["label_value"]],
            "bbox": box,
        }
        if scored:
            entry["score"] = row["score"]
        if shapes.there[i]:
            entry["segmentation"] = shapes.segmentation(i, row)
        if not scored:
            entry["area"] = shapes.area(i, row, box)
            entry["iscrowd"] = int(row.get("iscrowd") or 0)
            if row.get("ignore") is not None:
                entry["ignore"] = int(row["ignore"])
        entry |= _filled({name: row[name] for name in extra_columns})
        if "keypoints" in entry:
            flat = entry["keypoints"]
            if flat and isinstance(flat[0], list):  # points without visibility are visible
                flat = [value for point in flat for value in (*point, _SEEN)[:3]]
            entry["keypoints"] = flat
            labelled = entry.get("num_keypoints", sum(value > 0 for value in flat[2::3]))
            entry["num_keypoints"] = int(labelled)
        rows.append(entry)
    return rows


class _Shapes:
    """Polygons and masks of one side's rows, with derived values."""

    def __init__(self, side: pl.DataFrame, sizes: dict[Any, tuple[int, int]], called: str) -> None:
        from evalengine.geometry.masks import read_masks
        from evalengine.geometry.polygons import read_polygons

        self.sizes = sizes
        n = side.height
        self.there = np.zeros(n, bool)
        self.polygon_at = self.mask_at = np.full(n, -1, np.int64)
        self.polygons = self.masks = None
        if "polygon" in side.columns:
            rows = np.flatnonzero(side["polygon"].is_not_null().to_numpy())
            if rows.size:
                self.polygons = read_polygons(side["polygon"].gather(rows), side=called, rows=rows)
            self.polygon_at = np.full(n, -1, np.int64)
            self.polygon_at[rows] = np.arange(rows.size)
            self.there[rows] = True
        if "mask" in side.columns:
            rows = np.flatnonzero(side["mask"].is_not_null().to_numpy() & ~self.there)
            if rows.size:
                self.masks = read_masks(side["mask"].gather(rows), side=called, rows=rows)
            self.mask_at = np.full(n, -1, np.int64)
            self.mask_at[rows] = np.arange(rows.size)
            self.there[rows] = True

    def box(self, i: int, row: dict[str, Any]) -> list[float]:
        """Left, top, width and height of a row's box, or of its shape."""
        if row.get("xmin") is not None:
            width, height = row.get("box_width"), row.get("box_height")
            return [
                row["xmin"],
                row["ymin"],
                row["xmax"] - row["xmin"] if width is None else width,
                row["ymax"] - row["ymin"] if height is None else height,
            ]
        low = self._shape(i).boxes[self._at(i)]
        return [float(low[0]), float(low[1]), float(low[2] - low[0]), float(low[3] - low[1])]

    def area(self, i: int, row: dict[str, Any], box: list[float]) -> float:
        """As annotated; else of the shape, else of the box."""
        if row.get("area") is not None:
            return float(row["area"])
        if not self.there[i]:
            return box[2] * box[3]
        return float(self._shape(i).area[self._at(i)])

    def segmentation(self, i: int, row: dict[str, Any]) -> Any:
        """Return flat rings, or a run-length mask with compressed counts.

        Raises:
            InputError: a polygon with holes in an image of unknown size.
        """
        from evalengine.geometry.masks import to_rle
        from evalengine.geometry.polygons import rasterise

        at = self._at(i)
        if self.polygon_at[i] < 0:
            assert self.masks is not None
            return to_rle(self.masks)[at]
        assert self.polygons is not None
        one = self.polygons.take(np.array([at]))
        rings = one.rings
        if (np.diff(rings.part_start) == 1).all():
            offsets = rings.ring_start
            return [rings.xy[first:last].reshape(-1).tolist() for first, last in pairwise(offsets)]
        size = self.sizes.get(row["datum_id"])
        if size is None:
            raise InputError(
                f"{one.place.named(0)}: a polygon with holes, which COCO has as a mask only, of"
                f" image {row['datum_id']!r}, whose size is not known. Give a table of datum_id,"
                f" width and height as {option('datums', 'TABLE')}.",
                code="image_size_missing",
                value=row["datum_id"],
            )
        masks = rasterise(one, np.array([size[0]]), np.array([size[1]]))
        return to_rle(masks)[0]

    def _shape(self, i: int) -> Any:
        return self.polygons if self.polygon_at[i] >= 0 else self.masks

    def _at(self, i: int) -> int:
        return int(max(self.polygon_at[i], self.mask_at[i]))


TABLES, COCO = "tables", "coco"
TARGETS = (TABLES, COCO, *FORMS)

Tell = Callable[[str, bool], None]
"""Takes a sentence, and whether it is a warning."""


@guarding
def convert(
    ground_truths: Any,
    predictions: Any = None,
    *,
    out: str | os.PathLike[str],
    to: str = TABLES,
    format: str | None = None,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    tell: Tell | None = None,
) -> dict[str, int]:
    """Convert annotations and detections of any supported format to tables, COCO JSON or tracks.

    Tables are written as ``groundtruths.parquet``, ``predictions.parquet``, ``datums.parquet`` (the
    images) and ``labels.parquet``; COCO as ``groundtruths.json`` and ``predictions.json``;
    MOTChallenge and KITTI text as one file per sequence in ``groundtruths`` and ``predictions``.
    Files get temporary names, and are renamed after all are complete.

    Args:
        ground_truths: path, folder or table. Without ``predictions``, a table with scores, or
            tracks with a column ``track_id``, is treated as predictions.
        predictions: the same.
        out: folder, created if missing.
        to: ``tables``, ``coco``, ``mot`` or ``kitti-tracking``.
        format: of the ground truths; by default detected from the content.
        datums: table of datum_id, width and height: images without rows, and sizes for formats
            that need them.
        labels: table of label_value and label_name, for COCO's names of categories.
        options: ``columns``, ``box_format`` and ``angle_format`` apply to tables; ``label_map`` to
            all.
        tell: receives messages on decisions, and on information that the target cannot represent;
            by default the latter are Python warnings.

    Returns:
        File name to number of rows.

    Raises:
        ReadError: a file is missing, or does not fit its format.
        InputError: rows without boxes, or a folder that cannot be written.
        OptionError: an unknown format or target.

    Example:
        >>> import evalengine as ee
        >>> ee.convert("labels", out="tables")  # doctest: +SKIP
        {'groundtruths.parquet': 839, 'datums.parquet': 100, 'labels.parquet': 80}
    """
    if to not in TARGETS:
        raise unknown("target", to, TARGETS)
    parsed_options = make_options(options)
    truths = ground_truths if format is None else _of_format(format, ground_truths)
    tables = Tables(truths, None, datums, labels)
    if predictions is not None:
        tables = Tables(predictions, truths, datums, labels)
    inputs = open_inputs(tables, parsed_options, extras=_EVERYTHING)
    _report_notes(inputs, tell)
    kinds = {KIND} if to in FORMS else {one.format for one in inputs.sources.values()}
    if KIND in kinds and to == COCO:
        raise InputError(
            "COCO's JSON is written of images, not of tracks: write"
            f" {option('to', TABLES)} or {option('to', 'mot')}.",
            code="options_conflict",
            option="to",
        )
    converted = [table for table in TABLE_CONTRACTS if table.predictions_sign]
    table = next((one for one in converted if kinds.intersection(one.formats)), converted[0])
    for source in inputs.sources.values():
        if source.shares:
            raise InputError(
                f"{source.description}: coordinates are shares of images of unknown size, but "
                "tables and COCO have pixels. Keep the images next to the labels, or give a "
                f"table of datum_id, width and height as {option('datums', 'TABLE')}.",
                code="image_size_missing",
            )
    try:
        frames = {role: _frame(inputs, role, parsed_options, table) for role in inputs.sources}
    except InputError as error:
        raise plainly(error) from None
    if TABLE in frames:
        only_table = frames.pop(TABLE)
        frames[
            PREDICTIONS if table.predictions_sign[0] in only_table.columns else GROUND_TRUTHS
        ] = only_table
    if parsed_options.label_map is not None:
        frames, notes = renamed(frames, parsed_options.label_map)
        if LABELS in frames:
            frames[LABELS] = frames[LABELS].unique("label_value", keep="first", maintain_order=True)
        for note in notes:
            _report(tell, note.message)
    if to in FORMS:
        truth, detections, sizes = (
            frames.get(role) for role in (GROUND_TRUTHS, PREDICTIONS, DATUMS)
        )
        files = track_files(to, truth, detections, sizes, lambda warning: _report(tell, warning))
        _warn_of_earlier(Path(out), files, tell)
    elif to == TABLES:
        files = {
            f"{name}.parquet": (frames[role].write_parquet, frames[role].height)
            for role, name in _FILES.items()
            if role in frames
        }
    else:
        files = coco_files(
            *(frames.get(role) for role in (GROUND_TRUTHS, PREDICTIONS, DATUMS, LABELS))
        )
    write_files({name: write for name, (write, _) in files.items()}, Path(out))
    return {name: rows for name, (_, rows) in files.items()}


def _warn_of_earlier(out: Path, files: Mapping[str, object], tell: Tell | None) -> None:
    """Warn of sequences of an earlier conversion that would be scored with the new ones."""
    sides = {name.partition("/")[0] for name in files}
    existing = {
        path.relative_to(out).as_posix()
        for side in sides
        for path in (out / side).rglob("*.txt")
        if not path.name.startswith(".")
    }
    earlier = sorted(existing - files.keys())
    if earlier:
        _report(
            tell,
            f"{out} has {count_of(len(earlier), 'sequence')} of an earlier conversion:"
            f" {listing(earlier, len(earlier), 3)}. Folders of tracks are scored as a whole: remove"
            " them, or choose another folder.",
        )


def convert_coco(
    ground_truths: str | os.PathLike[str],
    predictions: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    to: str = TABLES,
    tell: Tell | None = None,
) -> dict[str, int]:
    """Convert COCO ground truths and results; see :func:`convert`.

    Raises:
        ReadError: not COCO, malformed or truncated.
        InputError: rows without boxes, or a folder that cannot be written.
    """
    _sure(ground_truths, ("coco",), "COCO ground truths (an object with annotations)")
    if predictions is not None:
        _sure(predictions, ("coco_results", "coco"), "COCO results (an array of results)")
    return convert(ground_truths, predictions, out=out, to=to, tell=tell)


def _sure(path: str | os.PathLike[str], kinds: tuple[str, ...], requirement: str) -> None:
    """Refuse a file of another kind."""
    local = Path(path).expanduser()
    if not local.is_file():
        open_source(path)  # raises the error that names the content
    kind = sniff(local)
    if kind not in kinds:
        raise ReadError(
            f"{local}: {requirement} are needed, but this file contains {_NAMES[kind]}.",
            code="wrong_format",
            file=str(local),
            format=kind,
        )


_NAMES = {
    "coco": "one object, as COCO ground truths do",
    "coco_results": "COCO results",
    "coco_annotations": "only COCO annotations",
    "videos": "objects followed through videos",
    "video_results": "results of videos",
    "records": "other records",
    "lines": "JSON Lines",
    "mapping": "a mapping of queries to documents",
}


def _of_format(name: str, path: Any) -> Source:
    """Annotations of a format that somebody named."""
    format_ = get(name)
    open_source_of = look_at([os.fspath(path)])
    if open_source_of is None:
        open_source(path)  # raises the error that names the content
        raise ReadError(f"{path}: no {format_.title}.")
    return open_annotations(format_, open_source_of)


def _report_notes(inputs: Inputs, tell: Tell | None) -> None:
    for role in (PREDICTIONS, GROUND_TRUTHS, TABLE):
        source = inputs.sources.get(role)
        if source is None:
            continue
        for note in sorted(source.notes, key=lambda note: not note.warning):
            if note.warning:
                _report(tell, note.message)
            elif tell is not None:
                tell(note.message, False)


def _report(tell: Tell | None, warning: str) -> None:
    if tell is None:
        warnings.warn(in_python(warning), stacklevel=4)
    else:
        tell(warning, True)


def _frame(inputs: Inputs, role: str, options: Options, fitted: Table) -> pl.DataFrame:
    """Return the rows of one table in canonical columns, followed by its other columns."""
    source = inputs.sources[role]
    if source.format in ("coco", "annotations"):
        frame = source.frame.collect()
        return frame if frame.width else pl.DataFrame(schema=_EMPTY)
    schema = inputs.schemas[role]
    if role == TABLE:
        signs = Finder(schema, role).candidates(fitted.predictions_sign)
        role = PREDICTIONS if signs else GROUND_TRUTHS
    table = contract(fitted.task, role, options, schema)
    unread: set[str] = set()
    if source.format == KIND and role != GROUND_TRUTHS:  # flags of ground truths
        columns = contract(fitted.task, GROUND_TRUTHS, options, {}).columns
        unread = {column.name for column in columns if column.kind == "flag"}
    naming = recognise(schema, table, options.columns, options.box_format, options.angle_format)
    refuse(naming.problems, {role: source.description})
    read = naming.used | unread
    rest = [name for name in schema if name not in read and name not in naming.exprs]
    return source.frame.select(*naming.exprs.values(), *rest).collect()


_EVERYTHING = frozenset({"segmentation", "keypoints"})
_EMPTY = {
    "datum_id": pl.Int64,
    "label_value": pl.Int64,
    "score": pl.Float64,
    "xmin": pl.Float64,
    "ymin": pl.Float64,
    "xmax": pl.Float64,
    "ymax": pl.Float64,
    "box_width": pl.Float64,
    "box_height": pl.Float64,
}
"""An empty file still has its columns."""
_FILES = {
    PREDICTIONS: "predictions",
    GROUND_TRUTHS: "groundtruths",
    DATUMS: "datums",
    LABELS: "labels",
}


# ``evalengine convert trec``: runs and qrels to Parquet in canonical columns, all or none.

_RETRIEVAL = ("trec", "mapping")


@guarding
def convert_trec(
    run: str | os.PathLike[str],
    qrels: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
) -> dict[str, int]:
    """Write ``run.parquet`` and, with qrels, ``qrels.parquet``.

    Files get temporary names, and are renamed after all are complete.

    Args:
        run: a run in the format of TREC, MS MARCO (3 columns) or BEIR (TSV or JSON).
        qrels: judgments in the format of TREC, MS MARCO, BEIR (TSV with a header) or pytrec_eval
            (JSON).
        out: folder, created if missing.

    Returns:
        File name to number of rows.

    Raises:
        ReadError: no run or no qrels, or an invalid line.
        InputError: a folder that cannot be written.
    """
    frames = {"run.parquet": _ranked(run, ("score", "rank"), "a run")}
    if qrels is not None:
        frames["qrels.parquet"] = _ranked(qrels, ("relevance",), "qrels")
    write_files({name: frame.write_parquet for name, frame in frames.items()}, Path(out))
    return {name: frame.height for name, frame in frames.items()}


def _ranked(path: str | os.PathLike[str], required: tuple[str, ...], what: str) -> pl.DataFrame:
    source = open_source(path)
    if source.format not in _RETRIEVAL:
        raise ReadError(
            f"{source.description}: {what} as TREC, BEIR or MS MARCO write it is needed, but this"
            f" file is read as {source.format}.",
            code="wrong_format",
            format=source.format,
        )
    frame, columns = source.frame, schema_of(source).keys()
    if columns == {"query_id", "doc_id", "score"} and "score" not in required:
        frame = frame.rename({"score": required[0]})
    elif not set(required) & columns:
        raise ReadError(
            f"{source.description}: {what} is needed, but the file has the columns"
            f" {', '.join(columns)}. The run comes first, then the qrels.",
            code="wrong_format",
        )
    return frame.collect()
