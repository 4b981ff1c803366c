"""Agents as a task."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from ... import metrics as registry
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.errors import OptionError
from ...schemas.wording import option
from ..contents import Content, Contents, word_diffs
from ..encoding import Workers
from ..per_datum import OF_VALUES, losses, truth
from ..task import Sample, Task
from .dialects import Settings
from .encode import tally
from .metrics import SINGLE_USE


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics; with ``tools``, also their use.

    Raises:
        OptionError: the use of tools was requested without names.
    """
    use = registry.get("agents", SINGLE_USE)
    if use in metrics and not settings.tools:
        raise OptionError(
            f"{SINGLE_USE} needs names of tools: write {option('tools', ['search'])}.",
            code="option_missing",
            option="tools",
        )
    return (*metrics, *([use] if settings.tools and not asked_for else [])), []


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`: the calls of both sides, one per line."""
    return word_diffs(frames, ids, ("predicted_trajectory", "reference_trajectory"), _lines)


def _lines(rows: pl.DataFrame | None, name: str) -> list[str]:
    """Return the calls of a datum as one text; separate tables have a row per call."""
    if rows is None:
        return []
    if name in rows.columns:
        lines = rows[name].explode(empty_as_null=False, keep_nulls=False)
    else:
        rows = rows.sort("step") if "step" in rows.columns else rows
        shown = [one for one in ("tool", "arguments") if one in rows.columns]
        texts = rows.select(pl.concat_str(shown, separator=" ", ignore_nulls=True))
        lines = texts.to_series()
    text = "\n".join(lines.to_list())
    return [text] if text else []


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    own = ", ".join(f"{path} {rule}" for path, rule in settings.argument_rules.items())
    return [
        f"match     calls by tool and arguments ({settings.tool_arguments}{own and f'; {own}'})",
        f"tally     {', '.join(sorted(needs))}, one value per datum",
        "mean      over datums",
    ]


def samples() -> Iterator[Sample]:
    """Two trajectories, equal calls and similar ones."""
    table = pl.DataFrame(
        {
            "predicted_trajectory": [['{"name":"a","args":{"x":1}}', "b"], ["b"]],
            "reference_trajectory": [["b", '{"name":"a","args":{"x":1.5}}'], ["b"]],
        }
    )
    yield table, None, {}
    yield table, None, {"argument_rules": {"x": "1"}, "tools": ["a"]}


TASK = Task(
    name="agents",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents),
    no_limits="every call is compared as it is, so no choice is open",
    truth=truth,
    growth=8,  # calls in addition to their texts
    **{**OF_VALUES, "losses": partial(losses, first=("TrajectoryF1", "ToolCorrectness"))},
)
