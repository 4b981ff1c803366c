"""Judged metrics: a table of verdicts is encoded and measured here, without a judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, listing, not_read
from ...metrics.registry import Metric, get, has, names
from ...schemas.contract import DATUMS, TABLE
from ...schemas.errors import InputError, did_you_mean
from ...schemas.options import Options
from ...schemas.wording import option
from ..contents import Contents, contents_of_table
from ..per_datum import OF_VALUES
from ..task import FittedByRows, Sample, Task
from .dialects import Settings
from .encode import metric_names
from .findings import Findings, merge_findings
from .tallies import notes_of_findings, tally, tally_part, written

# The metrics of a run: those asked for, or those that the table has verdicts of.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all for which the table has verdicts.

    Raises:
        InputError: the table has rows, but verdicts only of unknown metrics.
    """
    return fit_written(metrics, written(frames), settings, asked_for=asked_for)


def fit_written(
    metrics: tuple[Metric, ...], rows: Mapping[str, int], settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all with verdicts; see :func:`fit`."""
    strange = {name: rows[name] for name in sorted(rows) if not has("judged", name)}
    present = set(metric_names(rows).values())
    notes = []
    if strange:
        if not present and not asked_for:
            raise InputError(
                f"column 'metric' names no judged metric: {listing(strange)}."
                f"{did_you_mean(next(iter(strange)), names('judged'))} `evalengine metrics --task"
                " judged` lists them; correct the column.",
                code="unknown_name",
                value=next(iter(strange)),
            )
        many = count_of(sum(strange.values()), "row")
        message = f"{many} of unknown metrics skipped: {listing(strange)}."
        notes.append(
            Note("unknown_metrics", message, len(strange), facts={"metrics": [*strange][:5]})
        )
    fitting = (
        metrics if asked_for else tuple(metric for metric in metrics if metric.name in present)
    )
    read = {name for metric in fitting for name in metric.params}
    undecided = any(words.ambiguous for words in settings.rules.words.values())
    if settings.penalize_ambiguous and "penalize_ambiguous" in read and not undecided:
        message = "is only read by dialects with undecided verdicts (deepeval)."
        notes.append(not_read(f"{option('penalize_ambiguous')} {message}"))
    if "beta" in settings.given and settings.mode != "f1" and "beta" in read:
        message = (
            f"{option('beta', settings.beta)} weighs recall in F and has no effect with"
            f" {option('mode', settings.mode)}."
        )
        notes.append(not_read(message))
    return fitting, notes


AHEAD = ("metric", "judgment_index")
"""Columns whose distinct values decide in advance which metrics to tally."""


def may_fit(
    metrics: tuple[Metric, ...], needs: frozenset[str], ahead: pl.DataFrame, *, asked_for: bool
) -> tuple[tuple[Metric, ...], bool]:
    """Return the metrics that verdicts may have, before checks, and whether judgments vote.

    Args:
        ahead: distinct values of ``AHEAD`` in all rows, for the columns that exist.

    Returns:
        metrics; True if any item may have several judgments, so that all of them vote.
    """
    real_names = metric_names(ahead["metric"].cast(pl.String).drop_nulls().unique().to_list())
    present = set(real_names.values())
    fitting = (
        metrics if asked_for else tuple(metric for metric in metrics if metric.name in present)
    )
    if "judgment_index" not in ahead.columns:
        return fitting, False
    wanted = [name for name, real in real_names.items() if get("judged", real).needs[0] in needs]
    judgments = ahead.filter(pl.col("metric").cast(pl.String).is_in(wanted))["judgment_index"]
    return fitting, judgments.cast(pl.Int64, strict=False).fill_null(0).n_unique() > 1


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Return why verdicts depend on all rows; empty if the first rows suffice.

    The remaining rows decide whether judgments vote, and a condition on the table of datums can
    only be applied after the join.
    """
    if DATUMS in ready.where and "judgment_index" in ready.sides[TABLE].naming.exprs:
        return "the contents of a judged table depend on all of its rows"
    return ""


# The plan of a judged run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    strict = "; values below the best count as the worst" if settings.strict_mode else ""
    return [
        f"words     made alike by {settings.rules.fold}; judgments of one item vote",
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}{strict}",
        "mean      over datums with a value; the rest is counted by its kind",
    ]


# A tiny table of verdicts; judged metrics have no compiled kernels.


def samples() -> Iterator[Sample]:
    """Verdicts of one metric."""
    yield (
        pl.DataFrame({"datum_id": [1, 1], "metric": ["Bias"] * 2, "verdict": ["yes", "no"]}),
        None,
        {},
    )


TASK = Task(
    name="judged",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    truths=False,
    contents=Contents(of_tables=contents_of_table),
    needs_all_rows=needs_all_rows,
    judge=True,
    fitted_by_rows=FittedByRows(
        AHEAD, may_fit, fit_written, tally_part, Findings, merge_findings, notes_of_findings
    ),
    **OF_VALUES,
)
