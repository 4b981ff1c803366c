"""Bounds of numbers in bounded memory: buckets tallied at each extreme of a choice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from ..executors import Threads
from ..executors.pools import Pool
from ..plan import limits, planner
from ..tally import stored
from .stages import collected, job_of, part_file, rows_of_bucket, write_tally

Merged = Callable[[str], Any]
"""The tally of all buckets, from a folder with their parts."""


def end_folder(folder: str | Path, end: str) -> Path:
    """Return the folder for the parts of one extreme of a choice."""
    return Path(folder) / "limits" / end


def tally_ends(folder: str, bucket: int, threads: int, digest: str, known: list[Any]) -> None:
    """Tally the rows of one bucket at each extreme of each choice."""
    job, plan = job_of(folder, digest)
    chosen = limits.choices(plan, known)
    paths = [
        part_file(end_folder(folder, limits.name_of(limit, n)), bucket)
        for limit, facts in chosen
        for n in range(len(limit.settings(plan.settings, facts)))
    ]
    if all(path.exists() for path in paths):
        return
    frames, files = rows_of_bucket(folder, bucket, job, paths[-1])
    if frames is None:
        return
    for end, tallies in limits.ends_of(plan, frames, chosen, None, Threads(threads)):
        write_tally(part_file(end_folder(folder, end), bucket), tallies, job, plan, {})
    for path in files:
        path.unlink(missing_ok=True)


def limits_of(
    folder: str,
    parts: list[int],
    known: Sequence[Any],
    plan: planner.Plan,
    values: pl.DataFrame,
    pool: Pool,
    digest: str,
    merged: Merged,
) -> pl.DataFrame:
    """Compute the frame ``limits`` of a run.

    Args:
        values: the frame ``metrics``.
        merged: from a folder of parts to the merged tally.
    """
    chosen = limits.choices(plan, known)
    if not chosen:
        return limits.table(plan, values, [], {}, Threads(1))
    names = [
        limits.name_of(limit, n)
        for limit, facts in chosen
        for n in range(len(limit.settings(plan.settings, facts)))
    ]
    with ExitStack() as stack:
        for name in names:
            home = end_folder(folder, name)
            for inside in ("parts", "blocks", "groups"):
                (home / inside).mkdir(parents=True)
            stack.callback(shutil.rmtree, home)
        calls = [(folder, bucket, pool.threads, digest, [*known]) for bucket in parts]
        collected(pool.run(tally_ends, calls))
        ends = {name: merged(str(end_folder(folder, name))) for name in names}
        return limits.table(plan, values, chosen, ends, Threads(1))


def heads_of(folder: str, parts: list[int]) -> list[dict[str, Any]]:
    """Return the metadata of the parts in a folder."""
    return [stored.head_of(part_file(folder, bucket))["about"] for bucket in parts]
