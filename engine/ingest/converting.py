"""``evalengine convert``: annotations to tables, COCO JSON or text of tracks; runs to tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from evalengine.atomic import guarding
from evalengine.schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE, Table
from evalengine.schemas.errors import InputError, ReadError, unknown
from evalengine.schemas.option_values import make_options
from evalengine.schemas.options import Options
from evalengine.schemas.tables import TABLES as TABLE_CONTRACTS
from evalengine.schemas.wording import in_python, option

from .annotations.coco_writing import coco_files
from .annotations.registry import get, look_at, open_annotations
from .annotations.tracks import FORMS, KIND, track_files
from .files import write_files
from .infer import recognise
from .opening import Inputs, Tables, open_inputs
from .problems import count_of, listing, refuse
from .recognise import Finder, contract
from .relabel import renamed
from .source import Source
from .sources.coco import plainly
from .sources.json_files import sniff
from .sources.tables import open_source, schema_of

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
        datums: table of datum_id, width and height, for formats that need missing sizes.
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
    tables = Tables(truths, None, datums)
    if predictions is not None:
        tables = Tables(predictions, truths, datums)
    inputs = open_inputs(tables, parsed_options, wanted=_EVERYTHING)
    _report_notes(inputs, tell)
    kinds = {KIND} if to in FORMS else {one.format for one in inputs.sources.values()}
    if KIND in kinds and to == COCO:
        raise InputError(
            "COCO's JSON is written of images, not of tracks: write"
            f" {option('to', TABLES)} or {option('to', 'mot')}.",
            code="options_conflict",
            option="to",
        )
    converted = [table for table in TABLE_CONTRACTS if table.found_by]
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
        frames[PREDICTIONS if table.found_by[0] in only_table.columns else GROUND_TRUTHS] = (
            only_table
        )
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
        files = track_files(to, truth, detections, sizes, lambda said: _report(tell, said))
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


def _sure(path: str | os.PathLike[str], kinds: tuple[str, ...], wanted: str) -> None:
    """Refuse a file of another kind."""
    local = Path(path).expanduser()
    if not local.is_file():
        open_source(path)  # raises the error that names the content
    kind = sniff(local)
    if kind not in kinds:
        raise ReadError(
            f"{local}: {wanted} are needed, but this file contains {_NAMES[kind]}.",
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
        signs = Finder(schema, role).candidates(fitted.found_by)
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
        run: a run in the format of TREC, MS MARCO (3 columns) or BEIR (JSON).
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


def _ranked(path: str | os.PathLike[str], wanted: tuple[str, ...], what: str) -> pl.DataFrame:
    source = open_source(path)
    if source.format not in _RETRIEVAL:
        raise ReadError(
            f"{source.description}: {what} as TREC, BEIR or MS MARCO write it is needed, but this"
            f" file is read as {source.format}.",
            code="wrong_format",
            format=source.format,
        )
    frame = source.frame
    if source.format == "mapping" and "score" not in wanted:
        frame = frame.rename({"score": wanted[0]})
    elif not set(wanted) & schema_of(source).keys():
        raise ReadError(
            f"{source.description}: {what} is needed, but the file has the columns"
            f" {', '.join(schema_of(source))}. The run comes first, then the qrels.",
            code="wrong_format",
        )
    return frame.collect()
