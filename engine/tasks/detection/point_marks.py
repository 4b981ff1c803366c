"""Names of the marks of single keypoints."""

from __future__ import annotations

from collections.abc import Sequence

PCK, PCKH = "keypoints by box", "keypoints by head"
KINDS, SHOWN = "kinds of keypoints", "shown kinds of keypoints"
NEEDS = frozenset({PCK, PCKH, KINDS, SHOWN})
"""Needs of the metrics of single keypoints."""
POINTS = "keypoints"
"""Name of their tally, in addition to that of predictions."""
OF_KINDS = ("good", "jitter", "inversion", "swap", "miss")
"""Outcomes of points, in the order of the kernel's codes."""
SHARES = {PCK: 0.2, PCKH: 0.5}
"""Share of a person's size within which a keypoint is found, unless another is given."""
_MARKS = {PCK: ("in a box", "near by box"), PCKH: ("with a head", "near by head"), KINDS: OF_KINDS}


def marks_of(needs: frozenset[str]) -> tuple[str, ...]:
    """Names of the marks of every point."""
    return tuple(name for need, names in _MARKS.items() if need in needs for name in names)


def found(need: str) -> tuple[str, str]:
    """Marks of labelled points of people of known size, and of those among them that were found."""
    labelled, near = _MARKS[need]
    return labelled, near


def named(n_points: int, marks: Sequence[str]) -> list[str]:
    """Names of the marks of all points, those of the first point first."""
    return [f"{mark} {q}" for q in range(1, n_points + 1) for mark in marks]


def places(names: Sequence[str], mark: str) -> list[int]:
    """Return the indices of a mark, one per point."""
    return [i for i, name in enumerate(names) if name.rpartition(" ")[0] == mark]
