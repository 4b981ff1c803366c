"""The partitions of a job as parts, whose tallies are kept between nights."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from urllib.parse import quote

import msgspec

from .._version import __version__
from ..atomic import is_abandoned, name_within
from .loading import LoadedJob
from .parts import Part
from .records import last_partitions
from .sources import Found, in_window, listed

FOLDER = ".tallies"
_DAY = 86400.0  # seconds
_LONGEST = 190  # bytes of a partition's name that stand in its tally's and its draft's


def parts_of(loaded: LoadedJob, found: Found, *, again: bool) -> list[Part]:
    """The parts of a job, in the order of its partitions.

    A tally is kept under a key of what it depends on: the partition's files and those that all
    share, options but threads, and the version. Anything else makes another key, and another file.

    Args:
        loaded: the job.
        found: its inputs, with partitions.
        again: make every tally anew.
    """
    outputs = loaded.job.outputs
    folder = Path(loaded.beside(outputs.tallies or f"{FOLDER}/{_own_folder(loaded.job.name)}"))
    options = repr(loaded.deciding)
    parts = []
    for value in found.partitions:
        depends = [__version__, options, found.key_of(value)]
        key = hashlib.sha256(msgspec.json.encode(depends)).hexdigest()[:16]
        part = Part(
            name=value,
            predictions=found.of_partition("predictions", value),
            ground_truths=found.of_partition("ground_truths", value),
            datums=found.of_partition("datums", value),
            key=key,
            tally=folder / f"{name_within(value, _LONGEST)}.{key}.tally",
        )
        if again:
            with suppress(OSError):
                part.tally.unlink()
        parts.append(part)
    return parts


def _own_folder(job: str) -> str:
    return name_within(quote(job, safe=""), _LONGEST)


def told_gone(loaded: LoadedJob, found: Found, run_id: str) -> str | None:
    """A sentence on partitions that the run before had and that are not there any more.

    Args:
        loaded: the job; partitions outside its window are not missed.
        found: its inputs.
        run_id: of this run.

    Returns:
        None where there are none.
    """
    inputs = loaded.job.inputs
    known, finished = last_partitions(loaded.matching(loaded.earlier), loaded.job.name, run_id)
    gone = [value for value in known if value not in found.partitions and in_window(inputs, value)]
    if not gone:
        return None
    many = "partition" if len(gone) == 1 else "partitions"
    return (
        f"{len(gone)} {many} of {inputs.partition} that the run of {finished[:19]} UTC had, gone"
        f" since and left out: {listed(gone)}. inputs.required names those that must be there."
    )


def clear_older(parts: Sequence[Part]) -> None:
    """Remove tallies of the same partitions under other keys: nothing asks for them any more.

    Drafts of runs that were killed go with them, those of other machines once they are a day old:
    younger ones may be of a run at work.
    """
    begun = time.time() - _DAY
    for folder in {part.tally.parent for part in parts}:
        for path in folder.glob(".*.tally.*"):
            with suppress(OSError):
                if is_abandoned(path) or path.stat().st_mtime <= begun:
                    path.unlink()
    for part in parts:
        # Not by a glob alone: partition "v1" is not to take "v1.2" for its own.
        label = part.tally.name.removesuffix(f".{part.key}.tally")
        own = re.compile(re.escape(label) + r"\.[0-9a-f]{16}\.tally")
        for path in part.tally.parent.glob(f"{escape(label)}.*.tally"):
            with suppress(OSError):
                if own.fullmatch(path.name) and path != part.tally:
                    path.unlink()
