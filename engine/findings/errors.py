"""Errors of a run: its worst datums and the rows responsible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec
import polars as pl

from ..atomic import guarding, refuse, whole_file, written
from ..evaluation import planner
from ..evaluation.paging import losses_of, worst
from ..evaluation.summary import judged_of
from ..ingest.geometry import CORNER_NAMES
from ..ingest.infer import recognise
from ..ingest.opening import Tables
from ..ingest.problems import count_of, listing
from ..ingest.sources.tables import open_source
from ..progress import Progress, reports_progress, step
from ..report.text import number
from ..run import (
    card_of_run,
    class_names,
    is_scored,
    open_tables,
    own_ious,
    refusal,
    refuse_own,
    refuse_tables,
    score_opened,
    tallied_of,
)
from ..schemas.contract import DATUM_TABLE
from ..schemas.errors import InputError, ResultError, invalid, unknown
from ..schemas.named import Named
from ..schemas.option_values import make_options
from ..schemas.options import Options
from ..schemas.wording import in_python, option
from ..scorecard.card import Scorecard
from ..tasks.task import Losses
from . import FindingResult, with_boxes, with_names

# Result class of ``find_errors``.


class FoundErrors(FindingResult, eq=False):
    """Errors of a run, worst first.

    Attributes:
        datums: the worst datums, see :func:`evalengine.evaluation.paging.worst`:
            ``datum_id, metric, value, why, parameters``.
        rows: wrong rows of these datums: the rows of the ``errors`` frame that the metric of
            ``datums`` counts, at its IoU and score threshold. None in tasks that judge whole
            datums, and for a scored run that has no such frame.
        rowless: reason why ``rows`` is None; otherwise None.
        n: number of datums of the run.
        row_messages: notes on rows that are not included, options marked as in ``messages``.
        names: label value, as text -> name of the class, if it has another.
    """

    datums: pl.DataFrame
    rows: pl.DataFrame | None
    n: int
    rowless: str | None = None
    row_messages: tuple[str, ...] = ()
    names: dict[str, str] = msgspec.field(default_factory=dict)
    _images: Callable[[], pl.DataFrame | None] | None = None
    _name = "datums"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, one sentence each."""
        return tuple(map(in_python, (*self.messages, *self.row_messages)))

    def write(self, form: str, path: str | Path) -> int:
        """Write ``rows`` as tasks for an image annotation tool.

        Args:
            form: ``label-studio``, ``cvat`` (for images 1.1), or ``coco``, which FiftyOne reads,
                with the properties of each error as attributes.
            path: the file, written atomically.

        Returns:
            number of images.

        Raises:
            ResultError: there are no rows; the message gives the reason.
            InputError: image sizes that the format needs are unknown.
        """
        refuse(path, self.inputs)
        if self.rows is None:
            raise ResultError(f"there are no rows to plot: {self.rowless}.", code="not_kept")
        images = None if self._images is None else self._images()
        return _write_tasks(self.rows, images, form, path)

    def _heading(self) -> str:
        if not len(self):
            return f"no errors in {count_of(self.n, 'datum')}"
        first = self.datums.row(0, named=True)
        made_with = msgspec.json.decode(first["parameters"]) if first["parameters"] else {}
        at = ", ".join(
            f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
            for name, value in made_with.items()
        )
        by = first["metric"] + (f" ({at})" if at else "")
        few = f"{len(self):,} " if len(self) > 1 else ""
        return f"the {few}worst of {count_of(self.n, 'datum')}, by {by}"

    def _rows(self) -> pl.DataFrame:
        return self.datums

    def _table_rows(self) -> pl.DataFrame:
        name = self.datums["metric"][0] if len(self) else "value"
        return self.datums.select("datum_id", pl.col("value").alias(name), "why")


class ErrorRows(FindingResult, eq=False):
    """Display of the wrong rows."""

    of: FoundErrors
    _name = "errors"

    def _heading(self) -> str:
        return self.of._heading()

    def _rows(self) -> pl.DataFrame:
        return self.of.datums if self.of.rows is None else self.of.rows

    def _table_rows(self) -> pl.DataFrame:
        rows = with_boxes(self._rows())
        same = [name for name in ("label_key", "iou_threshold") if rows[name].n_unique() <= 1]
        return with_names(rows.drop(same), ("label_value", "annotation_label"), self.of.names)

    def __len__(self) -> int:
        return len(self.of)


# Implementation of ``find_errors``: the worst datums and their wrong rows.


FRAME = "errors"
_IMAGE_COLUMNS = ("datum_id", "width", "height", "file_name")
ORDERS = ("loss", "score")
"""By how wrong their datums are, or by how sure predictions were."""


@reports_progress
@guarding
def find_errors(
    run: Any,
    ground_truths: Any = None,
    *,
    top: int = 50,
    sort: str = "loss",
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundErrors:
    """Find the errors of a run, worst datums first.

    Args:
        run: a :class:`evalengine.Scorecard`, the folder of a saved one, or predictions, as
            :func:`evalengine.score` takes them. A scored run has rows of errors only if it has the
            metric that produces them (``Errors`` in detection).
        ground_truths: if the run is predictions.
        top: maximum number of datums, and of rows.
        sort: order of the rows: ``loss``, by the loss of their datums, or ``score``, by the score
            of predictions, missed ground truths last.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.findings.errors.FoundErrors`: ``datums``, and ``rows`` in tasks
        whose rows are right or wrong: the rows that the metric of ``datums`` counts.

    Raises:
        OptionError: an order of rows that the scored run does not have; options that contradict
            those of a scored run.
        ResultError: a run whose tally was too large to keep.

    Example:
        >>> import evalengine as ee
        >>> ee.find_errors("preds.parquet", "gts.parquet").rows  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    if top < 1:
        raise invalid("top", top, "write 1 or more.")
    if sort not in ORDERS:
        raise unknown("sort", sort, ORDERS)
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    if is_scored(run):
        refuse_tables(tables, datums=False)
    else:
        step("scoring")
    card, losses, ranking = _judged(tables, chosen)
    n = ranking.height if card.read.get("datums") is None else card.read["datums"]
    at = losses.made_with.get("iou_threshold")
    settings = planner.make_plan(card.options, card.task).settings
    notes = (
        *(() if is_scored(run) else card.notes),
        *own_ious(settings, card.labels["label_value"], at, "iou_thresholds"),
    )
    filled_by = [one.name for one in planner.filling(card.task, FRAME)]
    rowless = None
    if not filled_by:
        rowless = f"in {card.task} datums are wrong as wholes, not row by row"
    elif FRAME not in card.frames:
        reason = f"score it with {option('metrics', filled_by[:1])}"
        if not is_scored(run):
            reason = refusal(FRAME, card.task, chosen, tables).rstrip(".") or reason
        rowless = f"the run keeps no rows of errors ({reason})"
    if rowless is not None:
        if sort != "loss":
            raise invalid("sort", sort, f"{rowless}; omit it.", code="option_unread")
        return FoundErrors(ranking.head(top), None, n, rowless=rowless, messages=notes)
    counted = card.frame(FRAME)
    row_notes: list[str] = []
    if losses.rows is not None:
        counted, row_notes = losses.rows(counted)
    place = ranking.select("datum_id", place=pl.int_range(pl.len()))
    by = ["place", "score"] if losses.by_score else ["place"]
    by = ["score", "place"] if sort == "score" else by
    falling = [one == "score" for one in by]
    rows = counted.join(place, on="datum_id", how="left", maintain_order="left")
    rows = rows.sort(by, descending=falling, nulls_last=True, maintain_order=True).drop("place")
    images = partial(_images, tables, chosen)
    return FoundErrors(
        ranking.head(top),
        rows.head(top),
        n,
        _images=images,
        messages=notes,
        row_messages=tuple(row_notes),
        names=dict(class_names(card)),
    )


def _judged(tables: Tables, options: Options) -> tuple[Scorecard, Losses, pl.DataFrame]:
    """Return the scorecard of a run, its losses, and the datums, worst first."""
    with ExitStack() as disk:
        if is_scored(tables.predictions):
            card = card_of_run(tables, options, settable=["columns"])
        else:
            opened = open_tables(tables, options)
            plan, parts = opened.plan, opened.plan.does.in_parts
            bounded = options.memory_limit is not None and bool(planner.filling(plan.task, FRAME))
            bounded &= parts is None or parts.judged is not None
            frames = [FRAME, "per_datum"] if bounded else [FRAME]
            opened.plan = planner.showing(plan, frames)
            card = score_opened(opened, in_memory=not bounded, disk=disk if bounded else None)
        tallied = tallied_of("the run", card, "finding errors")
        refuse_own(tallied, options)
        step("searching for errors")
        judged = judged_of(tallied.plan, tallied.tallies)
        tallied = msgspec.structs.replace(tallied, tallies=judged)
        losses = losses_of(tallied)
        return card, losses, worst(tallied, len(tallied.tallies.datums), losses)


def _images(tables: Tables, options: Options) -> pl.DataFrame | None:
    """Return ids, sizes and names of images, from the table of datums or the ground truths."""
    rows = None
    for table in (tables.datums, tables.ground_truths):
        if table is not None and rows is None:
            source = open_source(table, storage_options=tables.storage_options)
            datums = None if source.datums is None else source.datums.lazy()
            rows = source.frame if table is tables.datums and datums is None else datums
    if rows is None:
        return None
    exprs = dict(recognise(rows.collect_schema(), DATUM_TABLE, options.columns).exprs)
    return rows.select(
        exprs[name].alias(name) for name in _IMAGE_COLUMNS if name in exprs
    ).collect()


# Errors as tasks for image annotation tools. File formats: https://labelstud.io/guide/predictions,
# CVAT for images 1.1 (https://docs.cvat.ai/docs/manual/advanced/xml_format), and COCO ground truths
# with additional attributes, which FiftyOne's COCODetectionDataset and CVAT read.

_ABOUT = ("error", "iou", "annotation_label", "annotation_id", "prediction_row")
"""Attributes of a region in addition to label and score."""


class _Region(NamedTuple):
    """Box to review.

    Attributes:
        box: left, top, right and bottom in pixels.
        score: None for missed ground truths.
    """

    label: str
    box: tuple[float, float, float, float]
    score: float | None
    about: dict[str, Any]


class _Image(NamedTuple):
    """Image with its regions.

    Attributes:
        width: in pixels; None if unknown.
        height: in pixels; None if unknown.
        regions: in the order of the rows.
    """

    name: str
    width: int | None
    height: int | None
    datum_id: Any
    regions: list[_Region]


def _write_tasks(
    rows: pl.DataFrame, images: pl.DataFrame | None, form: str, path: str | Path
) -> int:
    """Write rows of errors as tasks, one per image with errors, in the order of their first row.

    Wrong predictions are shown with their predicted boxes, missed ground truths with theirs. The
    file is written atomically.

    Args:
        rows: rows of the ``errors`` frame.
        images: one row per datum: ``datum_id``, ``width`` and ``height`` in pixels, ``file_name``;
            or None. The id replaces a missing name.
        form: one of :data:`_TASK_FORMATS`.

    Raises:
        OptionError: no such format.
        InputError: missing image sizes that the format needs, or rows of video frames.
    """
    if form not in _TASK_FORMATS:
        raise unknown("form", form, _TASK_FORMATS)
    if "frame" in rows.columns:
        raise InputError(
            f"{form} shows images, and these rows are of frames of sequences, whose files no table"
            " names. List them as a table."
        )
    make, sized = _TASK_FORMATS[form]
    tasks = list(_review_images(rows, images))
    unsized = [one.datum_id for one in tasks if not one.width or not one.height]
    if sized and unsized:
        raise InputError(
            f"{form} needs the size of each image; it is unknown of"
            f" {count_of(len(unsized), 'image')}: {listing(unsized[:3])}. Give a table with the"
            f" columns datum_id, width, height and file_name in {option('datums')}.",
            code="image_size_missing",
            count=len(unsized),
        )
    with written(path), whole_file(path, sweeps=True) as file:
        file.write(make(tasks))
    return len(tasks)


def _review_images(rows: pl.DataFrame, images: pl.DataFrame | None) -> Iterator[_Image]:
    images_by_id: dict[Any, dict[str, Any]] = {}
    if images is not None:
        images_by_id = {str(row["datum_id"]): row for row in images.iter_rows(named=True)}
    for (datum,), group in rows.group_by("datum_id", maintain_order=True):
        image = images_by_id.get(str(datum), {})
        width, height = (
            None if image.get(name) is None else round(image[name]) for name in ("width", "height")
        )
        regions = []
        for row in group.iter_rows(named=True):
            before = "annotation_" if row["xmin"] is None else ""
            left, top, right, bottom = (row[before + name] for name in CORNER_NAMES)
            about = {name: row[name] for name in _ABOUT if row[name] is not None}
            box = left, top, right, bottom
            regions.append(_Region(str(row["label_value"]), box, row["score"], about))
        yield _Image(str(image.get("file_name") or datum), width, height, datum, regions)


def _label_studio(images: list[_Image]) -> bytes:
    tasks = [
        {
            "data": {"image": image.name, "datum_id": image.datum_id},
            "predictions": [
                {
                    "model_version": "evalengine errors",
                    "result": [_rectangle(i, one, image) for i, one in enumerate(image.regions)],
                }
            ],
        }
        for image in images
    ]
    return msgspec.json.encode(tasks)


def _rectangle(number: int, region: _Region, image: _Image) -> dict[str, Any]:
    assert image.width is not None
    assert image.height is not None
    left, top, right, bottom = region.box
    message = ", ".join(f"{name} {value}" for name, value in region.about.items())
    task: dict[str, Any] = {
        "id": f"error-{number}",
        "type": "rectanglelabels",
        "from_name": "label",
        "to_name": "image",
        "original_width": image.width,
        "original_height": image.height,
        "image_rotation": 0,
        "value": {
            "x": 100 * left / image.width,
            "y": 100 * top / image.height,
            "width": 100 * (right - left) / image.width,
            "height": 100 * (bottom - top) / image.height,
            "rotation": 0,
            "rectanglelabels": [region.label],
        },
        "meta": {"text": [message]},
    }
    return task if region.score is None else {**task, "score": region.score}


def _cvat(images: list[_Image]) -> bytes:
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    for position, image in enumerate(images):
        size = {"width": str(image.width), "height": str(image.height)}
        one = SubElement(root, "image", {"id": str(position), "name": image.name, **size})
        for region in image.regions:
            places = zip(("xtl", "ytl", "xbr", "ybr"), map(repr, region.box), strict=True)
            plain = {"source": "auto", "occluded": "0", **dict(places), "z_order": "0"}
            box = SubElement(one, "box", {"label": region.label, **plain})
            scored = {} if region.score is None else {"score": region.score}
            for name, value in (region.about | scored).items():
                SubElement(box, "attribute", {"name": name}).text = str(value)
    indent(root)
    return tostring(root, encoding="utf-8", xml_declaration=True)


def _coco(images: list[_Image]) -> bytes:
    names = sorted({region.label for image in images for region in image.regions})
    categories = {name: place for place, name in enumerate(names, 1)}
    annotations: list[dict[str, Any]] = []
    for image_id, image in enumerate(images, 1):
        for region in image.regions:
            left, top, right, bottom = region.box
            width, height = right - left, bottom - top
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": categories[region.label],
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                    **region.about,
                    **({} if region.score is None else {"score": region.score}),
                }
            )
    return msgspec.json.encode(
        {
            "images": [
                {
                    "id": image_id,
                    "file_name": image.name,
                    "datum_id": image.datum_id,
                    **({"width": image.width, "height": image.height} if image.width else {}),
                }
                for image_id, image in enumerate(images, 1)
            ],
            "categories": [{"id": place, "name": name} for name, place in categories.items()],
            "annotations": annotations,
        }
    )


_TASK_FORMATS: dict[str, tuple[Callable[[list[_Image]], bytes], bool]] = {
    "label-studio": (_label_studio, True),
    "cvat": (_cvat, True),
    "coco": (_coco, False),
}
"""Format -> writer, and whether it needs image sizes."""
