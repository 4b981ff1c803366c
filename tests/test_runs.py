"""Runs of sorted scores: merged in memory and on disk, and read in blocks of points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.labels import HIT, OTHER
from evalengine.kernels.scores import points
from evalengine.tallies import sorted_scores
from evalengine.tallies.sorted_scores import Sorted, merge_score_runs, points_in_blocks
from evalengine.tallies.stored import Place

Array = np.ndarray[Any, Any]

drawn = given(
    seed=st.integers(0, 2**32 - 1),
    segments=st.integers(1, 4),
    rows=st.sampled_from([2, 5, 30, 10_000]),
    different=st.sampled_from([1, 3, 1000]),
    weighted=st.booleans(),
)


def a_run(
    rng: np.random.Generator, segments: int, different: int, *, weighted: bool, n: int = 60
) -> Sorted:
    """Return scores by segment, ascending, some negative."""
    segment = np.sort(rng.integers(0, segments, int(rng.integers(0, n))))
    score = rng.integers(-different, different, segment.size) / different
    score = score[np.lexsort((score, segment))]
    weight = np.round(rng.random(score.size) * 3) * rng.random(score.size) if weighted else None
    return Sorted(np.searchsorted(segment, np.arange(segments + 1)), score, weight)


def listed(run: Sorted) -> list[tuple[int, float, float]]:
    """Return segment, score and weight of every row, with ties in a fixed order."""
    segment = np.repeat(np.arange(run.start.size - 1), np.diff(run.start))
    weight = np.ones(run.score.size) if run.weight is None else run.weight
    return sorted(zip(segment.tolist(), run.score.tolist(), weight.tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@drawn
def test_the_run_of_all_parts(
    seed: int,
    segments: int,
    rows: int,
    different: int,
    weighted: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The merged run has all rows in ascending order, whatever is in memory at once.

    Parts without weights among others have a weight of 1 per row.
    """
    rng = np.random.default_rng(seed)
    place = Place(str(tmp_path_factory.mktemp("runs")), rows)
    parts = [a_run(rng, segments, different, weighted=weighted and bool(i % 3)) for i in range(4)]
    want = sorted(row for part in parts for row in listed(part))
    given = []
    for part in parts:
        ascending = part.weight is not None or bool(rng.integers(0, 2))
        score = part.score.copy()
        if not ascending:
            for a, b in zip(part.start[:-1], part.start[1:], strict=True):
                rng.shuffle(score[a:b])
        given.append(Sorted(part.start, score, part.weight))
    merged = merge_score_runs(iter(given), segments, place)
    assert listed(merged) == want
    assert (merged.weight is None) == all(part.weight is None for part in parts)
    for a, b in zip(merged.start[:-1], merged.start[1:], strict=True):
        assert (np.diff(merged.score[a:b]) >= 0).all()
    assert list(Path(place.folder).iterdir()) == []  # files have no names


def test_huge_and_tiny_scores(tmp_path: Path) -> None:
    """Differences of scores overflow, or their inverse does."""
    for score in ([-1.7e308, 1.7e308, 0.0] * 40, [0.0] * 60 + [i * 5e-324 for i in range(60)]):
        run = Sorted(np.array([0, 120]), np.array(score), None)
        merged = merge_score_runs(iter([run, run]), 1, Place(str(tmp_path), 10))
        assert merged.score.tolist() == sorted(score + score)


def test_no_part_has_a_run(tmp_path: Path) -> None:
    merged = merge_score_runs(iter([]), 3, Place(str(tmp_path), 10))
    assert merged.start.tolist() == [0, 0, 0, 0]
    assert merged.score.size == 0


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory-mapped pages without space on the disk would crash the process."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sorted_scores.os, "posix_fallocate", full)
    run = Sorted(np.array([0, 3]), np.arange(3.0), None)
    with pytest.raises(OSError, match="No space left"):
        merge_score_runs(iter([run]), 1, Place(str(tmp_path), 2))


@settings(max_examples=150, deadline=None)
@drawn
def test_points_of_blocks_are_those_of_all(
    seed: int, segments: int, rows: int, different: int, weighted: bool
) -> None:
    run = a_run(np.random.default_rng(seed), 3 * segments, different, weighted=weighted)
    start, *want = points(run.bounds(HIT), run.bounds(OTHER), run.score, run.weight)
    found: list[list[list[tuple[float, ...]]]] = [[] for _ in range(segments)]
    for block in points_in_blocks(run, rows):
        columns = np.stack([block.threshold, block.tp, block.fp], axis=1)
        for s in range(segments):
            found[s].append([tuple(row) for row in columns[block.start[s] : block.start[s + 1]]])
    for s in range(segments):
        own = np.stack(want, axis=1)[start[s] : start[s + 1]]
        assert [row for block in found[s] for row in block] == [tuple(row) for row in own]
