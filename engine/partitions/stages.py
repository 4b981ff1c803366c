"""Stages of a bounded run: plain functions over files, which any process on any machine may call.

Each writes one file under another name and renames it, and does nothing where that file is there:
a stage that is called again after its worker died costs only what was not finished.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner
from ..executors import Threads
from ..inputs.collecting import Prepared
from ..inputs.frames import Part, assemble
from ..schemas.contract import LABELS
from ..schemas.options import Options
from ..tally import grouped, stored
from ..tally.ranked import Ranked
from .splitting import Whole, bucket_file

Array = np.ndarray[Any, Any]


class Job(msgspec.Struct):
    """What every stage is told, in a file of the scratch folder.

    Attributes:
        options: of the run.
        task: its task.
        needs: what must be tallied.
        fingerprint: of its plan.
        ready: the tables, without their sources.
        whole: what is known of the whole input.
        chunks: groups of labels by which ranked rows are kept apart; 0 where they are not.
    """

    options: Options
    task: str
    needs: frozenset[str]
    fingerprint: str
    ready: Prepared
    whole: Whole
    chunks: int


def write_job(folder: Path, job: Job) -> None:
    """Leave the job for the stages."""
    (folder / "parts").mkdir()
    (folder / "groups").mkdir()
    (folder / "job.pickle").write_bytes(pickle.dumps(job))


@lru_cache(maxsize=2)
def _job(folder: str) -> tuple[Job, planner.Plan]:
    # A file that this run wrote into a folder of its own.
    job: Job = pickle.loads((Path(folder) / "job.pickle").read_bytes())
    return job, planner.make_plan(job.options, job.task)


def part_file(folder: str | Path, bucket: int) -> Path:
    """Where the tally of a bucket goes."""
    return Path(folder) / "parts" / f"{bucket}.tally"


def group_file(folder: str | Path, group: int) -> Path:
    """Where the rows of a group of labels go."""
    return Path(folder) / "groups" / f"{group}.tally"


def tally_bucket(folder: str, bucket: int, threads: int) -> None:
    """Check and tally the rows of one bucket.

    Args:
        folder: the scratch folder.
        bucket: which one.
        threads: threads to use.

    Raises:
        InputError: the rows break their contract; row numbers are those of the whole input.
    """
    target = part_file(folder, bucket)
    if target.exists():
        return
    job, plan = _job(folder)
    whole = job.whole
    files = {role: bucket_file(Path(folder), role, bucket) for role in whole.blanks}
    frames = {
        role: _rows(path) if path.exists() else whole.blanks[role] for role, path in files.items()
    }
    if whole.labels is not None:
        frames[LABELS] = whole.labels
    part = Part(whole.pairs, whole.known)
    checked = assemble(job.ready, frames, {}, job.options, part)
    heights = {role: frame.height for role, frame in checked.sides.items()}
    if checked.datums is not None:
        heights["datums"] = checked.datums.height
    met = checked.met
    tallies = plan.module.tally(checked, plan.settings, job.needs, Threads(threads))
    things: dict[str, Any] = {stored.WHOLE: tallies}
    if job.chunks:
        ranked: Ranked = tallies.ranked
        things[stored.WHOLE] = msgspec.structs.replace(tallies, ranked=grouped.without_rows(ranked))
        plain = msgspec.structs.replace(
            ranked,
            row=np.zeros(ranked.row.size, np.int8),
            gt_row=np.zeros(ranked.gt_row.size, np.int8),
        )
        things |= {
            chunk: grouped.of_labels(plain, first, last)
            for chunk, (first, last) in chunks(ranked.n_labels, job.chunks).items()
        }
        sizes = np.diff(ranked.start) + np.diff(ranked.gt_start)
    notes = [(n.kind, n.message, n.count, n.words, list(n.lowest)) for n in checked.notes]
    about = {
        "notes": notes,
        "heights": heights,
        "labels": sizes.tolist() if job.chunks else [],
        "met": None
        if met is None
        else [met.sizes, met.common, [ids.to_list() for ids in met.lowest]],
        "recognised": checked.recognised,
    }
    stored.save(things, target, fingerprint=job.fingerprint, about=about)
    for path in files.values():
        path.unlink(missing_ok=True)


def _rows(path: Path) -> pl.DataFrame:
    """The rows of a bucket, read and not mapped: what is mapped counts as memory, too."""
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return pl.DataFrame(reader.read_all())


def chunks(n_labels: int, n: int) -> dict[str, tuple[int, int]]:
    """Consecutive labels that stand together in a file, by name.

    Args:
        n_labels: labels of the run.
        n: how many such groups, about.
    """
    each = max(1, -(-n_labels // n))
    return {
        f"labels-{first}": (first, min(first + each, n_labels))
        for first in range(0, n_labels, each)
    }


def merge_labels(folder: str, group: int, names: Sequence[str], parts: Sequence[int]) -> None:
    """Bring the rows of some labels together from all buckets.

    Args:
        folder: the scratch folder.
        group: number of the group.
        names: its chunks of labels.
        parts: the buckets.
    """
    target = group_file(folder, group)
    if target.exists():
        return
    rows: list[Ranked] = []
    codes: list[Array] = []
    for bucket in parts:
        rows.append(_beside(stored.load_several(part_file(folder, bucket), names)))
        codes.append(np.load(codes_file(folder, bucket)))
    stored.save(grouped.merge_groups(rows, codes), target)


def codes_file(folder: str | Path, bucket: int) -> Path:
    """Where the codes of a bucket's datums among all datums stand."""
    return Path(folder) / "parts" / f"{bucket}.npy"


def _beside(labels: Sequence[Ranked]) -> Ranked:
    """Tallies of consecutive labels as one of all of them."""
    if len(labels) == 1:
        return labels[0]
    rows = {
        name: np.concatenate([getattr(one, name) for one in labels], axis=-1)
        for name in (
            "score", "datum", "row", "rank", "hit", "ignored", "skipped", "tie",
            "gt_datum", "gt_row", "gt_counted",
        )
    }  # fmt: skip
    return msgspec.structs.replace(
        labels[0],
        start=_starts([one.start for one in labels]),
        gt_start=_starts([one.gt_start for one in labels]),
        **rows,
    )


def _starts(parts: Sequence[Array]) -> Array:
    """Offsets of rows one after the other."""
    sizes = np.concatenate([np.diff(start) for start in parts])
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def code_datums(folder: str, parts: Sequence[int], at_once: int) -> int:
    """Number all datums in ascending order of id, a range of ids at a time.

    Args:
        folder: the scratch folder, whose ``parts`` get a file of codes for each bucket.
        parts: the buckets.
        at_once: datums held at once, about.

    Returns:
        how many datums there are.
    """
    ids = [stored.load(part_file(folder, bucket)).datums.id for bucket in parts]
    total = sum(map(len, ids))
    codes = [np.empty(len(some), np.int32) for some in ids]
    n_ranges = max(1, -(-total // at_once))
    sample = pl.concat([some.gather_every(max(1, total // 10_000)) for some in ids]).sort()
    cuts = [sample[len(sample) * i // n_ranges] for i in range(1, n_ranges)] if len(sample) else []
    begin = [0] * len(ids)
    before = 0
    for cut in [*cuts, None]:
        end = [len(s) if cut is None else int(s.search_sorted(cut, "left")) for s in ids]
        few = pl.concat([s.slice(a, b - a) for s, a, b in zip(ids, begin, end, strict=True)])
        place = np.empty(len(few), np.int32)
        place[few.arg_sort().to_numpy()] = np.arange(before, before + len(few), dtype=np.int32)
        at = 0
        for own, a, b in zip(codes, begin, end, strict=True):
            own[a:b] = place[at : at + b - a]
            at += b - a
        before += len(few)
        begin = end
    for bucket, own in zip(parts, codes, strict=True):
        draft = codes_file(folder, bucket).with_suffix(f".{os.getpid()}.draft")
        with open(draft, "wb") as file:
            np.save(file, own)
        os.replace(draft, codes_file(folder, bucket))
    return total
