"""MOTS text: masks of tracks, one file per sequence, one line per mask and frame.

``time_frame id class_id height width rle`` separated by blanks, the last in COCO's compressed form;
class 10 marks regions of objects that are not annotated individually:
https://www.vision.rwth-aachen.de/page/mots
"""

from __future__ import annotations

import polars as pl

from .format import Annotations, Format, Look, broken, text_of
from .text_lines import is_number, lines_of, shown, whole_in
from .tracks import sequence_files, sequences_of, with_lengths

_CLASSES = {1: "car", 2: "pedestrian", 10: "ignore"}
_REGION = 10
_NAMES = ("frame", "object_id", "kind", "height", "width")
_FIELDS = len(_NAMES) + 1


def _is_mots(head: bytes) -> bool:
    lines = head.decode("utf-8", "replace").lstrip().split("\n", 1)
    fields = lines[0].split()
    numbers, counts = fields[:-1], fields[-1:]
    return len(fields) == _FIELDS and all(map(str.isdecimal, numbers)) and not is_number(counts[0])


def _rows(file: str) -> pl.DataFrame:
    """All masks of a file; each region is one by itself."""
    text = text_of(file)
    schema = {**dict.fromkeys(_NAMES, pl.Int64), "counts": pl.String}
    if text.strip():
        try:
            table = pl.read_csv(
                text.encode(), has_header=False, separator=" ", quote_char=None, schema=schema
            )
        except pl.exceptions.PolarsError:
            raise _wrong_line(file) from None
    else:
        table = pl.DataFrame(schema=schema)
    if sum(table.null_count().row(0)):
        raise _wrong_line(file)
    region = pl.col("kind") == _REGION
    named = pl.col("kind").replace_strict(_CLASSES, default=None, return_dtype=pl.String)
    return table.select(
        "frame",
        object_id=pl.when(region).then(-region.cast(pl.Int64).cum_sum()).otherwise("object_id"),
        label_value=named.fill_null(pl.col("kind").cast(pl.String)),
        mask=pl.struct(size=pl.concat_list("height", "width"), counts="counts"),
        region=region,
    )


def _wrong_line(file: str) -> Exception:
    for line, fields in lines_of(file):
        if len(fields) != _FIELDS:
            return broken(
                file, line, f"{len(fields)} fields: {shown(fields)}",
                "Needed are time_frame, id, class_id, height, width and the run-length code, with"
                " one blank between them.",
            )  # fmt: skip
        whole_in(file, line, fields[:-1])
    return broken(
        file, None, "lines that are not masks of tracks", "Write one blank between fields, and none"
        " at the ends of lines.",
    )  # fmt: skip


def _read(look: Look) -> Annotations:
    files = sequence_files(look)
    names = sequences_of(files, look)
    rows = pl.concat(
        _rows(file).select(pl.lit(name, pl.String).alias("sequence"), pl.all())
        for file, name in zip(files, names, strict=True)
    )
    if not rows["region"].any():
        rows = rows.drop("region")
    return Annotations(rows=rows, datums=with_lengths(files, names))


def _mots(look: Look) -> bool:
    return look.mostly(_is_mots, ".txt")


MOTS = Format("mots", (".txt",), _mots, _read, datum="sequence")
