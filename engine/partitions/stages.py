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
import pyarrow as pa

from .. import planner
from ..executors import Threads
from ..inputs.collecting import Prepared
from ..inputs.frames import Part, assemble
from ..schemas.contract import LABELS
from ..schemas.options import Options
from ..tally import grouped, stored
from ..tally.datums import Datums
from ..tally.ranked import Ranked
from . import slabs
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
        giant: rows of one bucket above which a group of labels is written in pieces.
        piece: rows of such a piece, at most.
        ids: datum ids that are written together.
    """

    options: Options
    task: str
    needs: frozenset[str]
    fingerprint: str
    ready: Prepared
    whole: Whole
    chunks: int
    giant: int
    piece: int
    ids: int


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


def group_file(folder: str | Path, group: int, slab: int = 0) -> Path:
    """Where the rows of a group of labels go, or a slab of them."""
    return Path(folder) / "groups" / f"{group}-{slab}.tally"


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
    things, apart = _apart(tallies, job) if job.chunks else ({stored.WHOLE: tallies}, {})
    notes = [(n.kind, n.message, n.count, n.words, list(n.lowest)) for n in checked.notes]
    about = {
        "notes": notes,
        "heights": heights,
        "met": None
        if met is None
        else [met.sizes, met.common, [ids.to_list() for ids in met.lowest]],
        "recognised": checked.recognised,
        **apart,
    }
    stored.save(things, target, fingerprint=job.fingerprint, about=about)
    for path in files.values():
        path.unlink(missing_ok=True)


def _apart(tallies: Any, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tally as things of its own: ranked rows by groups of labels, datum ids in blocks.

    Returns:
        things by name, and what is told of them: rows of each label, pieces of each group of
        labels, first id and size of each block.
    """
    ranked: Ranked = tallies.ranked
    ids = tallies.datums.id
    datums = tallies.datums if is_named(tallies) else Datums(None, pl.DataFrame(), None, len(ids))
    whole = msgspec.structs.replace(tallies, ranked=grouped.without_rows(ranked), datums=datums)
    things: dict[str, Any] = {stored.WHOLE: whole}
    plain = msgspec.structs.replace(
        ranked,
        row=np.zeros(ranked.row.size, np.int8),
        gt_row=np.zeros(ranked.gt_row.size, np.int8),
    )
    pieces = {}
    for chunk, (first, last) in chunks(ranked.n_labels, job.chunks).items():
        few = grouped.of_labels(plain, first, last)
        n = few.score.size
        some, pieces[chunk] = slabs.cut(few, chunk, job.piece if n > job.giant else n + 1)
        things |= some
    blocks = []
    for at in range(0, len(ids), job.ids):
        things[f"ids-{at}"] = few_ids = ids.slice(at, job.ids)
        blocks.append([few_ids[0], len(few_ids)])
    sizes = np.diff(ranked.start) + np.diff(ranked.gt_start)
    return things, {
        "labels": sizes.tolist(),
        "pieces": msgspec.to_builtins(pieces),
        "ids": blocks,
    }


def is_named(tallies: Any) -> bool:
    """Whether ids or slices of datums are needed once all are numbered."""
    datums = tallies.datums
    shown = tallies.examples is not None or tallies.outcomes is not None
    return shown or bool(datums.slices.width) or datums.dataset is not None


def _rows(path: Path) -> pl.DataFrame:
    """The rows of a bucket, read and not mapped: what is mapped counts as memory, too."""
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
    for bucket in parts:
        known = _pieces_of(stored.head_of(part_file(folder, bucket)), names)
        flat = [piece.name for name in names for piece in known[name]]
        found = iter(stored.load_several(part_file(folder, bucket), flat))
        labels = [_below([next(found) for _ in known[name]]) for name in names]
        rows.append(grouped.with_datums(_beside(labels), _codes(folder, bucket)))
    stored.save(grouped.merge_groups(rows), target)


def merge_slab(
    folder: str,
    group: int,
    slab: int,
    name: str,
    between: tuple[slabs.Key, slabs.Key | None],
    parts: Sequence[int],
) -> None:
    """Bring together the rows of one group of labels that stand between two keys.

    Args:
        folder: the scratch folder.
        group: number of the group.
        slab: number of the slab.
        name: the group's one chunk of labels.
        between: the key at which the slab begins, and that at which the next one does.
        parts: the buckets.
    """
    target = group_file(folder, group, slab)
    if target.exists():
        return
    rows: list[Ranked] = []
    for bucket in parts:
        wanted = slabs.needed(pieces_of(folder, bucket, name), *between)
        found = stored.load_several(part_file(folder, bucket), [one.name for one in wanted])
        codes = _codes(folder, bucket)
        rows += [
            slabs.within(grouped.with_datums(one, codes), piece.key, *between)
            for one, piece in zip(found, wanted, strict=True)
        ]
    stored.save(grouped.merge_groups(rows), target)


def pieces_of(folder: str, bucket: int, name: str) -> list[slabs.Piece]:
    """The pieces of a chunk of labels in one bucket, datums under the codes of the whole."""
    pieces = _pieces_of(stored.head_of(part_file(folder, bucket)), [name])[name]
    codes = _codes(folder, bucket)
    return [
        piece
        if piece.key == slabs.BEFORE_ALL
        else msgspec.structs.replace(
            piece, key=msgspec.structs.replace(piece.key, datum=int(codes[piece.key.datum]))
        )
        for piece in pieces
    ]


def _pieces_of(head: dict[str, Any], names: Sequence[str]) -> dict[str, list[slabs.Piece]]:
    told = head["about"]["pieces"]
    return {name: msgspec.convert(told[name], list[slabs.Piece]) for name in names}


def _codes(folder: str, bucket: int) -> Array:
    return np.fromfile(codes_file(folder, bucket), np.int32)


def codes_file(folder: str | Path, bucket: int) -> Path:
    """Where the codes of a bucket's datums among all datums stand."""
    return Path(folder) / "parts" / f"{bucket}.codes"


def _beside(labels: Sequence[Ranked]) -> Ranked:
    """Tallies of consecutive labels as one of all of them."""
    if len(labels) == 1:
        return labels[0]
    rows = {name: np.concatenate([getattr(one, name) for one in labels], axis=-1) for name in _ROWS}
    return msgspec.structs.replace(
        labels[0],
        start=_starts([one.start for one in labels]),
        gt_start=_starts([one.gt_start for one in labels]),
        **rows,
    )


def _below(pieces: Sequence[Ranked]) -> Ranked:
    """Pieces of the same labels, whose rows stand one after the other, as one."""
    if len(pieces) == 1:
        return pieces[0]
    rows = {name: np.concatenate([getattr(one, name) for one in pieces], axis=-1)
            for name in _ROWS}  # fmt: skip
    return msgspec.structs.replace(
        pieces[0],
        start=np.sum([one.start for one in pieces], axis=0),
        gt_start=np.sum([one.gt_start for one in pieces], axis=0),
        **rows,
    )


_ROWS = (
    "score", "datum", "row", "rank", "hit", "ignored", "skipped", "tie",
    "gt_datum", "gt_row", "gt_counted",
)  # fmt: skip


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
    blocks = [stored.head_of(part_file(folder, bucket))["about"]["ids"] for bucket in parts]
    cuts, held = [], 0
    for first, size in sorted((first, size) for own in blocks for first, size in own):
        if held and held + size > at_once // 2:
            cuts.append(first)
            held = 0
        held += size
    drafts = [codes_file(folder, bucket).with_suffix(f".{os.getpid()}.draft") for bucket in parts]
    for draft in drafts:
        draft.write_bytes(b"")
    read = [0] * len(blocks)  # blocks, and their ids
    at = [0] * len(blocks)
    waiting: list[pl.Series | None] = [None] * len(blocks)
    before = 0
    for cut in [*cuts, None]:
        few: list[pl.Series] = []
        for b, (bucket, own) in enumerate(zip(parts, blocks, strict=True)):
            names = []
            while read[b] < len(own) and (cut is None or own[read[b]][0] < cut):
                names.append(f"ids-{at[b]}")
                at[b] += own[read[b]][1]
                read[b] += 1
            found = stored.load_several(part_file(folder, bucket), names) if names else []
            kept = waiting[b]
            ids = found if kept is None else [kept, *found]
            here = pl.concat(ids) if ids else None
            end = 0
            if here is not None:
                end = len(here) if cut is None else int(here.search_sorted(cut, "left"))
                waiting[b] = here.slice(end)
            few.append(pl.Series() if here is None else here.slice(0, end))
        filled = [ids for ids in few if len(ids)]
        if not filled:
            continue
        order = pl.concat(filled).arg_sort().to_numpy()
        code = np.empty(order.size, np.int32)
        code[order] = np.arange(before, before + order.size, dtype=np.int32)
        begin = 0
        for draft, ids in zip(drafts, few, strict=True):
            with open(draft, "ab") as file:
                code[begin : begin + len(ids)].tofile(file)
            begin += len(ids)
        before += order.size
    for bucket, draft in zip(parts, drafts, strict=True):
        os.replace(draft, codes_file(folder, bucket))
    return before
