"""From a run to the score thresholds that serve best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from . import scoring
from .analysis.threshold_table import FoundThresholds
from .held_runs import hits_at, intervals_of, ious_of, tallied_through
from .ingest.problems import listing
from .ingest.values import sides_by_name
from .metrics.aims import Aims, aims_of
from .metrics.thresholds import RULES, Reached, Rule
from .overwriting import guarding
from .plan.summary import Tallied
from .progress import heard, silent
from .schemas.arrays import Array
from .schemas.errors import OptionError
from .schemas.intervals import Wanted
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.wording import option
from .statistics.curve_draws import notes_on
from .statistics.threshold_search import RATES, Found, Searched, search
from .tally.datums import Labels, keys_as_labels, named_rows

if TYPE_CHECKING:
    from .schemas.named import Named


_COUNTS = ("tp", "fp", "fn", "tn")
_AIMS = ("target_precision", "target_recall", "target_fpr", "false_positive_cost", "miss_cost")
_SETTABLE = ("beta", "pr_curve_iou_threshold", *_AIMS)
"""Options that may be other than those of the run."""


@heard
@guarding
def find_thresholds(
    run: Any = None,
    ground_truths: Any = None,
    *,
    y_true: Any = None,
    y_score: Any = None,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: scoring.Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundThresholds:
    """Find the best score thresholds, per label and for all labels together.

    Each threshold is reported with its counts and rates, their intervals, and its held-out result:
    the rule chooses on one half of the datums, split by a hash of their ids, and is counted on the
    other, then the reverse.

    Args:
        run: a :class:`Scorecard`, the folder of a saved one, or predictions, as :func:`score` takes
            them.
        ground_truths: if the run is predictions.
        y_true: scikit-learn's name for ``ground_truths``.
        y_score: scikit-learn's name for predictions, in place of ``run``.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`; ``metrics`` names the rules (by default
            all of the task), ``draws`` is 200 and ``intervals`` 0.95 by default, ``seed`` applies
            to the resamples and the halves.

    Returns:
        :class:`evalengine.analysis.threshold_table.FoundThresholds`, whose ``frame`` has one row
        per rule and label, and whose ``save`` writes a file for ``thresholds`` of :func:`score`.

    Raises:
        OptionError: metrics that choose no threshold, a task without scores; options that do not
            apply to a scored run.
        ResultError: a saved run without the required data.

    Example:
        >>> import evalengine as ee
        >>> ee.find_thresholds("runs/monday", metrics="ThresholdAtMaxF")  # doctest: +SKIP
    """
    run, ground_truths = sides_by_name(run, ground_truths, y_true, None, y_score)
    chosen = make_options(options, **named)
    asked = intervals_of(chosen)
    made, notes = tallied_through(
        run,
        ground_truths,
        chosen,
        asked,
        metrics=lambda task: chosen.metrics or (_rules(task, chosen)[0].metric,),
        settable=_SETTABLE,
        unread=_AIMS,
        then=lambda tallied, options: _found(tallied, options, asked),
        step="choosing thresholds",
        tables={"datums": datums, "labels": labels, "storage_options": storage_options},
        tell=progress if callable(progress) else silent,
    )
    made.said = (*notes, *made.said)
    return made


def _rules(task: str, options: Options) -> list[Rule]:
    """Return the rules named by metrics; by default all of the task.

    Raises:
        OptionError: metrics that choose no threshold, or a task without scores.
    """
    from .metrics import all_metrics, asked

    own = all_metrics(task)
    rules = {rule.metric: rule for rule in RULES if rule.metric in own}
    if not rules:
        raise OptionError(
            f"{option('task', task)}: nothing in {task} is decided by a threshold.",
            code="task_unfit",
            task=task,
        )
    named = [asked(task, name)[0].name for name in options.metrics or rules]
    if wrong := [name for name in named if name not in rules]:
        raise OptionError(
            f"{option('metrics', wrong)} chooses no threshold; write one of {', '.join(rules)}.",
            code="option_value",
            option="metrics",
            value=wrong,
        )
    return [rules[name] for name in named]


def _found(tallied: Tallied, options: Options, asked: Wanted) -> FoundThresholds:
    """Compute the thresholds of a run whose datums have keys; options name rules and targets."""
    plan, tallies = tallied.plan, tallied.tallies
    rules = _rules(plan.task, options)
    aims = aims_of(options, getattr(plan.settings, "beta", None))
    assert plan.does.curve is not None
    levels = search(plan, tallies, tallied.threads, rules, aims, asked)
    names = tallies.labels, keys_as_labels(tallies.labels)
    frames = [
        _rows(
            rule,
            i,
            level,
            labels,
            None if labels is names[0] else "micro",
            tallies.labels.dtype,
            aims,
        )
        for i, rule in enumerate(rules)
        for level, labels in zip(levels, names, strict=True)
    ]
    frame = pl.concat(frames)
    return FoundThresholds(
        frame,
        metrics=[rule.metric for rule in rules],
        beta=aims.beta,
        level=asked.level,
        **hits_at(plan.settings),
        n=len(tallies.datums),
        notes=[
            *_notes(tallies, asked, frame, levels[0], several=len(rules) > 1),
            *ious_of(tallied),
        ],
    )


def _place(row: dict[str, Any], *, several: bool) -> str:
    """Return the display name of a row, with the rule if there are several."""
    label = str(row["label_name"] or row["label_value"])
    label = label if row["average"] is None else "all labels"
    return f"{row['metric']} of {label}" if several else label


def _notes(
    tallies: Any, asked: Wanted, frame: pl.DataFrame, level: Searched, *, several: bool
) -> list[str]:
    said = [
        "held-out numbers are of thresholds chosen on one half of the datums and counted on the"
        f" other, both ways, halves by a hash of datum ids and {option('seed', asked.seed)}; fewer"
        " datums choose worse, so they err on the low side."
    ]
    said += notes_on(tallies, cut=level.cut)
    if level.exclusive and frame["average"].count():
        said.append(
            "labels exclude each other here, and counts are of each label against the rest: of"
            f" labels that reach their threshold {option('thresholds')} predicts the best alone, so"
            " that a run which is held to them counts otherwise."
        )
    without = frame.filter(pl.col("threshold").is_null())
    for reason, rows in without.group_by("reason", maintain_order=True):
        named = [_place(row, several=several) for row in rows.iter_rows(named=True)]
        said.append(f"no threshold for {listing(named)}: {reason[0]}.")
    broken = frame.filter(~pl.col("kept"))
    if broken.height:
        said.append(
            f"{broken.height} of {frame['kept'].count()} thresholds do not keep held out what they"
            " are held to; see the column kept."
        )
    return said


def _rows(
    rule: Rule,
    place: int,
    level: Searched,
    labels: Labels,
    average: str | None,
    dtype: pl.DataType,
    aims: Aims,
) -> pl.DataFrame:
    """Rows of one rule at one level; labels are of that type."""
    from .tally.cells import parameters

    one: Found = level.found[place]
    here, held = one.here, one.held_out
    none = np.full(level.shown.size, np.nan)
    columns: dict[str, Array] = {"threshold": one.threshold}
    columns["lower"], columns["upper"] = _ends(one, "threshold", none)
    columns |= {name: getattr(here, name) for name in _COUNTS}
    for name in RATES:
        columns[name] = getattr(here, name)
        columns[f"{name}_lower"], columns[f"{name}_upper"] = _ends(one, name, none)
    columns["cost"] = here.cost
    told = (*_COUNTS, *RATES, "cost")
    columns |= {f"held_out_{name}": getattr(held, name) for name in told}
    columns["flattery"] = _flattery(rule, here, held)
    kept: list[bool | None] = [None] * none.size
    if rule.holds is not None:
        name, aim, least = rule.holds
        value, limit = getattr(held, name), getattr(aims, aim)
        keeps = value >= limit if least else value <= limit
        known = ~np.isnan(value)
        kept = [bool(k) if there else None for k, there in zip(keeps, known, strict=True)]
    lacks = {"positives": "no ground truth", "negatives": "no negative datum"}
    missing = {
        "positives": level.positives <= 0,
        "negatives": np.nan_to_num(here.tn + here.fp, nan=1.0) <= 0,
    }
    why = np.full(none.size, "no threshold reaches it", object)
    if rule.lacking:
        why[missing[rule.lacking]] = lacks[rule.lacking]
    why[one.unscored] = "no scored row"
    why[~np.isnan(one.threshold)] = None
    aimed = parameters(**{n: getattr(aims, n) for n in rule.params or ("beta",)})
    frame = pl.DataFrame(
        {
            "metric": pl.Series([rule.metric] * none.size, dtype=pl.String),
            "parameters": pl.Series([aimed] * none.size, dtype=pl.String),
            **named_rows(labels, average, dtype).to_dict(),
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()},
            "kept": pl.Series(kept, dtype=pl.Boolean),
            "reason": pl.Series(why.tolist(), dtype=pl.String),
        }
    ).with_columns(pl.col(*columns).fill_nan(None))
    return frame.filter(pl.Series(level.shown))


def _ends(one: Found, name: str, none: Array) -> tuple[Array, Array]:
    if one.intervals is None:
        return none, none
    low, high = one.intervals[name]
    return low, high


def _flattery(rule: Rule, here: Reached, held: Reached) -> Array:
    """Return by how much the rule's objective looks better here than held out."""
    gap: Array = getattr(here, rule.serves) - getattr(held, rule.serves)
    return -gap if rule.serves == "cost" else gap
