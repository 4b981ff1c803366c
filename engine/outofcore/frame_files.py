"""Frames of a bounded run: held where they are small, written row by row where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import polars as pl

from ..ingest.problems import Note
from ..plan import planner
from ..schemas.results import frame_schema
from ..schemas.tuning import tuning
from ..scorecard.held import FrameFile
from .memory_plan import BASE
from .scratch import gigabytes, scratch_folder

SINGLE = "per_datum"
Maker = Callable[[], pl.DataFrame]


def frames_of(
    makers: Mapping[str, Maker], tallies: Any, plan: planner.Plan, scratch: str | None, limit: int
) -> dict[str, Maker]:
    """What gives the frames of a run whose tally is about to go.

    Args:
        makers: what makes each frame.
        tallies: of the run.
        plan: of the run.
        scratch: folder for files; the system's unless given.
        limit: bytes of memory that the run may take.

    Raises:
        ScratchError: there is no room for a frame that goes into a file.
    """
    frames: dict[str, Maker] = {}
    for name, make in makers.items():
        if name == SINGLE and plan.does.in_parts is not None and plan.does.in_parts.of_few:
            frames[name] = _of_single_datums(tallies, plan, scratch, limit)
        else:
            frames[name] = make().clone
    return frames


def frames_beyond(frames: Mapping[str, Maker], limit: int) -> list[Note]:
    """Whether the frames that are held take more than there may be.

    Args:
        frames: what gives each frame of a run, which has been made.
        limit: bytes of memory that the run may take.
    """
    sizes = {
        name: int(make().estimated_size())
        for name, make in frames.items()
        if not isinstance(make, FrameFile)
    }
    if BASE + sum(sizes.values()) <= limit:
        return []
    largest = max(sizes, key=lambda name: sizes[name])
    return [
        Note(
            "frames_beyond_limit",
            f"the frames take {gigabytes(sum(sizes.values()))} of memory beside the"
            f" {gigabytes(BASE)} of the process, more than the limit of {gigabytes(limit)}; the"
            f" largest is {largest!r}: ask for fewer metrics or slices that fill it.",
        )
    ]


def _of_single_datums(tallies: Any, plan: planner.Plan, scratch: str | None, limit: int) -> Maker:
    """The values of single datums: of each metric file by file, in the order of one frame."""
    in_parts = plan.does.in_parts
    assert in_parts is not None
    assert in_parts.shown is not None
    rows = in_parts.shown(tallies, plan.cuts_of_needs)
    parts = _single_datums(tallies, plan)
    if 2 * rows * tuning().datum_bytes <= limit - BASE:
        return pl.concat(parts).clone
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch, rows * tuning().datum_file_bytes))
        path = folder / f"{SINGLE}.parquet"
        writer = None
        for part in parts:
            table = part.to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table)
        assert writer is not None
        writer.close()
        return FrameFile(path, rows, stack.pop_all().close)


def _single_datums(tallies: Any, plan: planner.Plan) -> Iterator[pl.DataFrame]:
    """The frame in parts, of no datums one without rows."""
    assert plan.does.in_parts is not None
    assert plan.does.in_parts.of_few is not None
    columns = [one for made in tallies.stats.columns.values() for one in made]
    several = any(len(column.parameters) > 1 or column.parameters[0] for column in columns)
    schema = frame_schema(SINGLE, datum=tallies.datums.id_dtype)
    if not len(tallies.datums):
        yield pl.DataFrame(schema={**schema, "parameters": pl.String()} if several else schema)
    for few, cuts in plan.does.in_parts.of_few(tallies, plan.cuts_of_needs):
        part = plan.does.own_frames(SINGLE, few, plan.settings, _no_views, cuts=cuts)
        if several or "parameters" in part.columns:
            schema = {**schema, "parameters": pl.String()}
        yield part.with_columns(
            pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in schema.items()
            if name not in part.columns
        ).select(*schema)


def _no_views(function: Callable[..., pl.DataFrame]) -> list[pl.DataFrame]:
    """Values of single datums are of no view."""
    return []
