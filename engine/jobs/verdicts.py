"""Results of gates."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import metrics as registry
from .. import tasks
from ..comparing import margins
from ..evaluation.summary import Tallied, summarise
from ..ingest.problems import count_of
from ..report.tables import by_title
from ..report.text import p_value
from ..run import tallied_of, with_keys
from ..schemas.contract import PREDICTIONS
from ..schemas.errors import OptionError, ResultError, unknown
from ..schemas.option_values import LEVEL, parse_intervals
from ..schemas.options import Options
from ..schemas.results import FAILED, PASSED, SKIPPED, frame_schema, in_schema
from ..schemas.wording import option
from ..scorecard.card import Scorecard
from ..scorecard.lookup import KEYS, SHORT, ambiguous, chosen_rows
from ..scorecard.storage import tally_bytes
from ..statistics.comparing import Margins, covers_other_datums
from ..statistics.comparison import Comparison
from ..statistics.intervals import EXACT, NOT_MOVED, clopper_pearson, one_sided_p
from ..statistics.paired import too_few
from ..statistics.sequences import DatumValues, Night, look, without_repeats
from ..statistics.tests import holm
from ..tallies.draws import effective_number
from ..tasks.encoding import draw_keys
from .gates import COVERAGE, EACH, SPREAD, Gate, check_gates, parse_gate

# Evaluation of gates on a scorecard: each row of a gate passes, fails or is skipped.

_HALF = 0.5  # a mean over fewer of its rows passes no gate, unless some gate speaks of coverage

_SHORT = {name: column for name, column in SHORT.items() if name != "label"} | {
    "metric": "statistic"
}
"""Names of columns that gates may use for short."""


class Verdict(msgspec.Struct, frozen=True):
    """Result of one gate on one row.

    Attributes:
        gate: the gate as written, after "fail if" if it is a condition to fail by.
        row: identifies the row for gates with several, such as ``weather=rain``; otherwise empty.
        status: ``passed``, ``failed`` or ``skipped``.
        value: the metric; None if undefined.
        bound: the bound; None if the baseline has no number.
        baseline: the earlier run's number; None without one.
        reason: reason for a missing comparison, or the datums it is restricted to.
        lower: low end of the interval of a gate with ``surely``; otherwise None.
        interval_of: ``number``, or ``difference`` to the baseline; empty without an interval.
        support: count behind the number, such as boxes or pixels.
        n: datums that were resampled and count: of the run, or of the slice if known.
        p: one-sided p of the condition of a gate with ``surely``; None without an interval.
    """

    gate: str
    row: str
    status: str
    value: float | None
    bound: float | None
    baseline: float | None = None
    reason: str = ""
    coverage: float = 1.0
    lower: float | None = None
    upper: float | None = None
    interval_of: str = ""
    level: float | None = None
    support: float | None = None
    n: int | None = None
    p: float | None = None


class Numbers(msgspec.Struct, frozen=True):
    """Numbers that gates are evaluated on.

    Attributes:
        level: confidence of the intervals in the frame; None without.
        datums: from a slice and its value, None for the whole set, to its number of datums, or
            None.
        units: from the same to its effective number of datums or clusters, or None.
        spread: rows of gates on the spread over groups; None without one.
    """

    task: str
    metrics: pl.DataFrame
    labels: pl.DataFrame
    dialect: str = "standard"
    level: float | None = None
    datums: Callable[[str | None, str | None], int | None] = lambda column, value: None
    units: Callable[[str | None, str | None], float | None] = lambda column, value: None
    spread: pl.DataFrame | None = None

    def of(self, gate: Gate) -> Numbers:
        """Return the numbers that a gate is about.

        Raises:
            ResultError: a gate on the spread, and the run has none.
        """
        if not gate.on_spread:
            return self
        if self.spread is None:
            raise ResultError("no spread over groups was computed.", code="no_such_row")
        return msgspec.structs.replace(self, metrics=self.spread)


class Watch(msgspec.Struct):
    """Nights that gates with ``always`` are about.

    Attributes:
        runs: name of each night that is scored now -> its numbers, and its tally if its datums are
            independent and it was kept.
        level: confidence of the sequences, in (0, 1).
        earlier: tally of the baseline; None without one.
        finished: time of this run, ISO 8601.
        digest: of the data of this run; may be empty.
        nights: gate and row -> name of a night -> what was observed; those of earlier runs, to
            which this run's are added.
        shares: condition to fail by -> row -> its share of the condition's errors on all nights,
            in (0, 1]; those of earlier runs, to which new rows are added.
        read: see :class:`Nights`.
    """

    runs: Mapping[str, tuple[Numbers, Tallied | None]]
    level: float
    earlier: Tallied | None = None
    finished: str = ""
    digest: str = ""
    nights: dict[str, dict[str, Night]] = {}
    shares: dict[str, dict[str, float]] = {}
    read: dict[str, int] = {}

    def add(self, key: str, name: str, night: Night) -> None:
        """Add a night; one with the same name, or the same data, is replaced."""
        night = msgspec.structs.replace(night, finished=self.finished, digest=self.digest)
        self.nights[key] = without_repeats({**self.nights.get(key, {}), name: night})

    def divide(self, title: str, rows: Sequence[str], *, several: bool) -> None:
        """Give each new row of a condition its share of the condition's errors.

        The new rows of a night share 1/2 of them on the first such night, then 1/6, 1/12 and so
        on, which adds up to 1.

        Args:
            several: later nights may have more rows.
        """
        shares = self.shares.setdefault(title, {})
        remaining, new = 1 - sum(shares.values()), [row for row in rows if row not in shares]
        spent = remaining**2 / (1 + remaining) if several else remaining
        shares.update({row: spent / len(new) for row in new})


Compare = Callable[[Collection[str], Collection[str]], Margins | str]
"""From metrics and slices to how sure the differences to the baseline are, or why there are none.
"""


def numbers_of(card: Scorecard) -> Numbers:
    """The numbers of a scorecard, and the coverage of those whose rows could not all be scored.

    If means skip datums without a prediction, it is the share of datums that have one.
    """
    part, of = pl.col("scored") / pl.col("support"), card.read.get("datums")
    if of and tasks.get(card.task).unanswered is not None:
        lost = card.run.get("inputs", {}).get(PREDICTIONS, {}).get("lacking", 0)
        part = part.fill_null(1 - lost / of)
    over_all = pl.col("slice").is_null() & pl.col("label_value").is_null()
    coverage = pl.col("metric").str.to_lowercase() == COVERAGE  # that of intervals keeps the name
    each = (
        card.metrics.filter(over_all, part.is_not_null(), pl.col("support") > 0, ~coverage.any())
        .with_columns(value=part.cast(pl.Float64), statistic="metric", metric=pl.lit(COVERAGE))
        .unique("statistic", keep="first", maintain_order=True)
        .with_columns(k=None, parameters=None, reason=None)
    )
    least = each.bottom_k(1, by="value").with_columns(statistic=pl.lit(None, pl.String))
    rows = [frame.cast(dict(card.metrics.schema)) for frame in (least, each)]  # type: ignore[arg-type]
    intervals = parse_intervals(card.options)
    level = None if intervals is None else intervals.level
    frame, spread = pl.concat([card.metrics, *rows]), None
    if "spread" in card.frames:
        spread = card.spread.with_columns(value=pl.col("excess"), slice_value=pl.lit(SPREAD))
        spread = in_schema(spread, dict(card.metrics.schema))
    return Numbers(
        card.task,
        frame,
        card.labels,
        card.dialect,
        level,
        _datums_of(card),
        _units_of(card),
        spread,
    )


def _datums_of(card: Scorecard) -> Callable[[str | None, str | None], int | None]:
    """Return a function for the number of datums of a scorecard, and of slices if tallies are
    available.
    """

    @cache
    def of(column: str) -> dict[str, int]:
        if card.tallied is None:
            return {}
        codes, names = card.tallied.tallies.datums.groups(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        return dict(zip(names, counts.tolist(), strict=True))

    return lambda column, value: (
        card.read.get("datums") if column is None else of(column).get(str(value))
    )


def _units_of(card: Scorecard) -> Callable[[str | None, str | None], float | None]:
    """Return a function for the effective number of resampled units, as :func:`_datums_of`."""
    intervals = parse_intervals(card.options)
    if intervals is None or intervals.cluster is None:
        return _datums_of(card)

    @cache
    def of(column: str | None) -> dict[str | None, float]:
        if card.tallied is None:
            return {}
        datums = with_keys(card.tallied, intervals.cluster).tallies.datums
        group, names = (np.zeros(len(datums), np.int32), [None])
        if column is not None:
            group, names = datums.groups(column)
        sizes = pl.DataFrame({"group": group, "key": datums.keys}).filter(pl.col("group") >= 0)
        sizes = sizes.group_by("group", "key").len("n")
        return {
            names[code]: effective_number(part["n"].to_numpy())
            for (code,), part in sizes.group_by("group")
        }

    return lambda column, value: of(column).get(value)


def judge_gates(
    gates: Sequence[Gate],
    numbers: Numbers,
    baseline: Numbers | None = None,
    *,
    first: bool = False,
    compare: Compare = lambda metrics, slices: "there is no run to compare with",
    differ: bool | None = False,
    watch: Watch | None = None,
    budget: float | None = None,
) -> list[Verdict]:
    """Evaluate gates on a run.

    Args:
        baseline: an earlier run's, for gates that refer to one.
        first: whether a missing baseline means that there was no earlier run: then gates on it are
            skipped.
        compare: computes intervals of differences to the baseline for the metrics and slices of
            gates; called only if needed.
        differ: whether the means of the runs are over different datums: then every gate on the
            baseline uses the numbers from ``compare``, over common datums. None if unknown: then
            gates fail if the shares of scored rows differ too much.
        watch: for gates with ``always``; this run's nights are added to it.
        budget: probability that any condition to fail by with ``surely`` or ``always`` fails the
            run though none is true, in equal parts for all of them; without it each has its own.

    Returns:
        one verdict per gate; for a gate with ``*`` one per row.

    Raises:
        OptionError: a gate on a baseline, and none was given.
        ResultError: a gate that matches no row, or several ambiguously.
    """
    selected = [_select_rows(gate, numbers, baseline, first) for gate in gates]
    needing = [
        one.rows for one in selected if one.gate.needs_baseline and (one.gate.surely or differ)
    ]
    margins: Margins | str | None = None
    if needing and baseline is not None:
        metrics, slices = (
            {value for rows in needing for value in rows[column].drop_nulls().to_list()}
            for column in ("metric", "slice")
        )
        margins = compare(metrics, slices)
    accepted = any(gate.metric.casefold() == COVERAGE for gate in gates)
    for one in selected:
        if one.gate.always and watch is not None:
            _observe(one, baseline, watch)
            if one.gate.fails:
                rows = [_row(one, row) for row in one.rows.iter_rows(named=True)]
                watch.divide(one.gate.title, rows, several=bool(one.each))
    ways = [one.gate.how for one in selected if one.gate.fails and one.gate.how]
    part = None if budget is None else budget / max(1, len(ways))
    context = _Context(baseline, numbers, margins, differ, accepted, watch, part)
    pooled = (
        None if part is None else part * sum(one.gate.surely for one in selected if one.gate.fails)
    )
    result = _adjusted([(one, each) for one in selected for each in _judged(one, context)], pooled)
    return result if accepted else [_covered(one) for one in result]


def _adjusted(judged: list[tuple[_GateRows, Verdict]], pooled: float | None) -> list[Verdict]:
    """Adjust the verdicts of gates with ``surely`` for the number of their rows.

    If any of many rows fails the run, some row does so by chance: Holm's adjustment, over the rows
    of a ``*``, or over those of all conditions to fail by if they share a budget. If all rows have
    to pass, none is needed. Sources: S. Holm (1979); R. Berger, "Multiparameter hypothesis testing
    and acceptance sampling" (1982).

    Args:
        pooled: part of the budget of all conditions to fail by; None without one.
    """
    verdicts = [verdict for _, verdict in judged]
    families: dict[int, list[int]] = {}
    for place, (gate_rows, verdict) in enumerate(judged):
        if gate_rows.gate.surely and verdict.lower is not None:
            shared = pooled is not None and gate_rows.gate.fails
            families.setdefault(0 if shared else id(gate_rows), []).append(place)
    for key, places in families.items():
        gate_rows, first = judged[places[0]]
        many, alpha, of = count_of(len(places), "row"), (1 - (first.level or 0.0)) / 2, ""
        if pooled is not None and key == 0:
            alpha, of = pooled, " of false_alarms"
        elif not gate_rows.each or len(places) < 2:
            continue
        raised = holm(np.array([verdicts[place].p for place in places], float)).tolist()
        for place, p in zip(places, raised, strict=True):
            one, status = verdicts[place], verdicts[place].status
            why = f"all of {many} have to pass: not adjusted for their number"
            if gate_rows.gate.fails:
                why = f"{p_value(p)} after Holm's adjustment for {many}, against {alpha:.3g}{of}"
                status = FAILED if p <= alpha else PASSED
            reason = "; ".join(filter(None, (one.reason, why)))
            verdicts[place] = _with(one, status=status, reason=reason)
    return verdicts


def _covered(one: Verdict) -> Verdict:
    """A verdict that does not pass on a number which rests on less than half of its rows."""
    if one.status != PASSED or one.coverage >= _HALF:
        return one
    why = (
        f"only {one.coverage:.0%} of the rows could be scored; a gate such as"
        f" '{COVERAGE} >= {math.floor(100 * one.coverage) / 100:g}' accepts that"
    )
    return msgspec.structs.replace(one, status=FAILED, reason=why)


def failed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return [one for one in verdicts if one.status == FAILED]


class _GateRows(msgspec.Struct, frozen=True):
    """A gate and the rows it is about: metric, filters and starred columns that chose them."""

    gate: Gate
    metric: str
    filters: dict[str, Any]
    each: tuple[str, ...]
    rows: pl.DataFrame


def _select_rows(gate: Gate, numbers: Numbers, baseline: Numbers | None, first: bool) -> _GateRows:
    if gate.needs_baseline and baseline is None and not first:
        raise OptionError(
            f"gate {gate.text!r} needs a baseline, and there is none: name an earlier run with"
            ' --baseline DIR in the shell or baseline = "last" in a job.',
            code="option_missing",
            option="baseline",
        )
    try:
        numbers = numbers.of(gate)
        metric, filters, each = _question(gate, numbers)
        rows = chosen_rows(numbers.metrics, numbers.labels, metric, filters, each)
        for group in rows.partition_by(each, maintain_order=True) if each else [rows]:
            if group.height > 1:
                raise ambiguous(group, metric, _for_example(gate, group, each))
    except (ResultError, OptionError) as error:
        raise type(error)(
            f"gate {gate.text!r}: {error.message}", code=error.code, **error.facts
        ) from None
    return _GateRows(gate, metric, filters, each, rows)


def rows_of_gate(title: str, card: Scorecard) -> list[tuple[dict[str, Any], float]]:
    """Return the row of a gate, by its title, and its bound, which is NaN if it is a baseline's.

    Empty if the gate has several rows, or none in this scorecard.
    """
    text = title.removeprefix("fail if ")
    try:
        gate = parse_gate(text, fails=text != title)
        gate_rows = _select_rows(gate, numbers_of(card), None, first=True)
    except (OptionError, ResultError):  # the run has no such row, as runs before it may have
        return []
    bound = math.nan if gate.needs_baseline else gate.number
    return [] if gate_rows.each else [(row, bound) for row in gate_rows.rows.iter_rows(named=True)]


class _Context(msgspec.Struct, frozen=True):
    """Numbers that all gates of a run are compared with.

    Attributes:
        differ: whether the means of both runs are over different datums; None if unknown.
        accepted: whether a gate on coverage allows means over fewer datums.
        part: probability that a condition to fail by errs; None without a budget.
    """

    baseline: Numbers | None
    numbers: Numbers
    margins: Margins | str | None
    differ: bool | None
    accepted: bool
    watch: Watch | None
    part: float | None


def _judged(gate_rows: _GateRows, context: _Context) -> Iterable[Verdict]:
    gate, each = gate_rows.gate, gate_rows.each
    baseline, numbers, margins = context.baseline, context.numbers, context.margins
    for row in gate_rows.rows.iter_rows(named=True):
        starred = {name: row[name] for name in each}
        part = 1.0 if row["scored"] is None else row["scored"] / max(1, row["support"])
        blank = Verdict(
            gate.title,
            _row(gate_rows, row),
            FAILED,
            row["value"],
            None,
            coverage=part,
            support=row["support"],
            n=_n(row, numbers) if gate.surely else None,
        )
        earlier, why, share = None, "", None
        if gate.needs_baseline and baseline is None:
            yield _with(blank, status=SKIPPED, reason="no earlier run")
            continue
        if gate.needs_baseline and baseline is not None:
            try:
                earlier, why, share = _earlier(
                    gate, baseline, gate_rows.metric, gate_rows.filters, starred
                )
            except ResultError as error:
                raise ResultError(
                    f"gate {gate.text!r}, of the baseline: {error.message}",
                    code=error.code,
                    **error.facts,
                ) from None
            if why:
                yield _with(blank, status=SKIPPED if why == _NEW else FAILED, reason=why)
                continue
        elif baseline is not None:  # to show: the gate is not about it
            with suppress(ResultError):
                earlier = _earlier(gate, baseline, gate_rows.metric, gate_rows.filters, starred)[0]
        blank = _with(blank, bound=gate.bound(earlier), baseline=earlier)
        if row["value"] is None:
            why = f"undefined: {row['reason'] or 'no reason is given'}"
            yield _with(blank, reason=why)
        elif gate.always and gate.needs_baseline and context.differ and not context.accepted:
            why = f"the means are over other datums than the baseline's; a gate on {COVERAGE}"
            yield _with(blank, reason=f"{why} accepts that")
        elif (
            gate.needs_baseline
            and margins is not None
            and (gate.surely or context.differ)
            and not gate.always
        ):
            yield _of_difference(gate, blank, row, context, by_support=_by_support(row, numbers))
        elif (
            context.differ is None
            and not context.accepted
            and too_few(1 - abs(part - (share or part)))
        ):
            why = f"{part:.0%} of the rows could be scored, {share:.0%} of the baseline's"
            yield _with(blank, reason=f"{why}, and which both have is not kept")
        elif gate.always:
            yield _of_sequence(gate, blank, context)
        elif gate.surely:
            yield _of_interval(gate, blank, row, numbers)
        else:
            status = _status(gate, row["value"], blank.bound)
            if status == FAILED and earlier is not None and not gate.needs_baseline:
                too = _status(gate, earlier, blank.bound) == FAILED
                why = "the baseline fails it too" if too else ""
            yield _with(blank, status=status, reason=why)
    if gate.needs_baseline and baseline is not None and each:
        yield from _missing_rows(gate_rows, baseline)


def _by_support(row: dict[str, Any], numbers: Numbers) -> bool:
    """Return whether the support of a row counts datums, some of which do not enter means."""
    return row["scored"] is None and tasks.get(numbers.task).unanswered is not None


def _n(row: dict[str, Any], numbers: Numbers) -> int | None:
    """Count the datums that a number rests on: those scored, those that enter its mean, or all."""
    if row["scored"] is not None:
        return int(row["scored"])
    if _by_support(row, numbers):
        return int(row["support"])
    return numbers.datums(row["slice"], row["slice_value"])


_with = msgspec.structs.replace


def _status(gate: Gate, value: float, bound: float | None) -> str:
    assert bound is not None
    return PASSED if gate.holds(value, bound) != gate.fails else FAILED


def _row(gate_rows: _GateRows, row: dict[str, Any]) -> str:
    return _row_name(gate_rows.gate, row) if gate_rows.each else ""


def _key(title: str, row: str) -> str:
    return f"{title} [{row}]" if row else title


def _observe(gate_rows: _GateRows, baseline: Numbers | None, watch: Watch) -> None:
    """Add the nights that are scored now to the sequences of a gate."""
    gate, before = gate_rows.gate, 0.0
    if gate.needs_baseline and baseline is None:
        return
    earlier = watch.earlier if gate.needs_baseline else None
    for name, (numbers, run) in watch.runs.items():
        try:
            rows = _select_rows(gate, numbers, baseline, first=True).rows
        except ResultError:  # a night without this label or slice
            continue
        values = None
        if run is not None and (earlier is not None or not gate.needs_baseline):
            values = DatumValues(run, rows["metric"].unique().to_list(), earlier)
        for row in rows.filter(pl.col("value").is_not_null()).iter_rows(named=True):
            if baseline is not None and gate.needs_baseline:
                starred = {column: row[column] for column in gate_rows.each}
                number, _, _ = _earlier(
                    gate, baseline, gate_rows.metric, gate_rows.filters, starred
                )
                if number is None:
                    continue
                before = number
            night = Night(row["value"] - before) if values is None else values.night(row, before)
            watch.add(_key(gate.title, _row(gate_rows, row)), name, night)


def _of_sequence(gate: Gate, blank: Verdict, context: _Context) -> Verdict:
    """Return the verdict on the confidence sequence of a number, or of a difference.

    Any of several rows of a condition to fail by fails the run, so each has its share of the
    errors.
    """
    watch = context.watch
    assert watch is not None
    alpha = 1 - watch.level if context.part is None or not gate.fails else 2 * context.part
    level = 1 - alpha * (watch.shares[gate.title][blank.row] if gate.fails else 1)
    looked = look([*watch.nights.get(_key(gate.title, blank.row), {}).values()], level)
    blank = _with(blank, reason=looked.reason, n=looked.n)
    if looked.bounds is None:
        return _with(blank, status=SKIPPED)
    lower, upper = looked.bounds
    return _with(
        blank,
        status=_status(gate, gate.end(lower, upper), gate.margin if gate.sign else blank.bound),
        lower=lower,
        upper=upper,
        interval_of="difference" if gate.sign else "number",
        level=level,
    )


def _of_interval(gate: Gate, blank: Verdict, row: dict[str, Any], numbers: Numbers) -> Verdict:
    """Return the verdict on the interval of a number."""
    lower, upper, level = row["lower"], row["upper"], numbers.level
    units = numbers.units(row["slice"], row["slice_value"])
    if row.get("trials") is not None and level is not None:
        lower, upper = clopper_pearson(row["value"], row["trials"], level)
    if lower is None or upper is None or lower == upper:  # as runs of earlier versions may have
        return _with(blank, reason=row["reason"] or f"no interval: {NOT_MOVED}")
    status = _status(gate, gate.end(lower, upper), blank.bound)
    blank = _with(blank, reason=EXACT if row.get("trials") is not None else "")
    p = None
    if level is not None and blank.bound is not None:
        interval_end, above, trials = gate.end(lower, upper), gate.lower_bounded, row.get("trials")
        p = one_sided_p(row["value"], blank.bound, interval_end, level, trials, units, above=above)
    return _with(
        blank, status=status, lower=lower, upper=upper, interval_of="number", level=level, p=p
    )


def _of_difference(
    gate: Gate, blank: Verdict, row: dict[str, Any], context: _Context, *, by_support: bool
) -> Verdict:
    """Return the verdict on a number's difference to the baseline, over the compared datums.

    Includes its interval if the gate has ``surely``.
    """
    margins = context.margins
    assert margins is not None
    if isinstance(margins, str):
        return _with(blank, status=SKIPPED, reason=margins)
    schema = margins.rows.schema
    same = (pl.col(name).eq_missing(pl.lit(row[name], schema[name])) for name in ("metric", *KEYS))
    pair = next(margins.rows.filter(*same).iter_rows(named=True), None)
    if pair is None:
        return _with(blank, reason="the baseline has no number of the same row")
    lower, upper = pair["lower"], pair["upper"]
    about = _with(
        blank,
        value=pair["b"],
        baseline=pair["a"],
        bound=None if pair["a"] is None else gate.bound(pair["a"]),
        reason=margins.remark,
    )
    gaps = [
        f"{who} has no value for {count_of(pair[name], 'datum')}"
        for who, name in (("the baseline", "missing_a"), ("this run", "missing_b"))
        if pair.get(name)
    ]
    if gaps:
        about = _with(
            about, reason="; ".join([*filter(None, [margins.remark]), " and ".join(gaps)])
        )
    if too_few(pair.get("coverage")) and not context.accepted:
        why = (
            f"{about.reason}, more than a tenth of those with a value; a gate on {COVERAGE} accepts"
            " that"
        )
        return _with(about, reason=why)
    if gate.surely and by_support:
        about = _with(about, n=int(pair["support"]))  # of those that both answer
    if not gate.surely:
        if about.value is None or about.bound is None:
            return _with(about, reason="undefined over the datums that both runs answer")
        return _with(about, status=_status(gate, about.value, about.bound))
    if lower is None or upper is None:
        still = ": no resample changes it" * (pair["difference"] is not None)
        message = f"the difference has no interval{still}"
        why = "; ".join(filter(None, (message, about.reason)))
        return _with(about, reason=why)
    status = _status(gate, gate.end(lower, upper), gate.margin)
    return _with(
        about,
        status=status,
        lower=lower,
        upper=upper,
        interval_of="difference",
        level=margins.level,
        p=one_sided_p(
            pair["difference"],
            gate.margin,
            gate.end(lower, upper),
            margins.level,
            units=pair.get("units"),
            above=gate.lower_bounded,
        ),
    )


def _missing_rows(gate_rows: _GateRows, baseline: Numbers) -> Iterable[Verdict]:
    """Yield verdicts of a gate with ``*`` on rows that only the baseline has, so that they are
    noticed.
    """
    gate, each = gate_rows.gate, gate_rows.each
    try:
        before = baseline.of(gate).metrics
        before = chosen_rows(before, baseline.labels, gate_rows.metric, gate_rows.filters, each)
    except ResultError:
        return
    keys = pl.col(list(each)).cast(pl.String)
    present = set(gate_rows.rows.select(keys).iter_rows())
    for row, key in zip(before.iter_rows(named=True), before.select(keys).iter_rows(), strict=True):
        if key not in present:
            yield Verdict(
                gate.title, _row_name(gate, row), SKIPPED, None, None, row["value"], _MISSING
            )


def _for_example(gate: Gate, rows: pl.DataFrame, each: tuple[str, ...]) -> str:
    """Return the gate with a condition that selects its first row."""
    telling = [
        name for name in KEYS if name not in each and rows[name].n_unique() > 1 and rows[name][0]
    ]
    if not telling:
        return ""
    written = [f"{name}={value}" for name, value in gate.conditions]
    written += [f"{name}={rows[name][0]}" for name in telling]
    return f" For example: '{gate.metric}[{', '.join(written)}] {gate.written_bound}'."


_NEW = "not in the baseline"
_MISSING = "only in the baseline"


def _earlier(
    gate: Gate, baseline: Numbers, metric: str, filters: dict[str, Any], starred: dict[str, Any]
) -> tuple[float | None, str, float | None]:
    """Return the baseline's number, or the reason for its absence; and the share of its scored
    rows.

    Raises:
        ResultError: the baseline has no such row, for a gate that names its row, or several.
    """
    try:
        rows = baseline.of(gate).metrics
        rows = chosen_rows(rows, baseline.labels, metric, {**filters, **starred})
    except ResultError:
        if starred:
            return None, _NEW, None
        raise
    if rows.height > 1:
        raise ambiguous(rows, metric)
    value: float | None = rows["value"][0]
    if value is None:
        why = f"undefined in the baseline: {rows['reason'][0] or 'no reason is given'}"
        return None, why, None
    scored, support = rows["scored"][0], rows["support"][0]
    return value, "", None if scored is None else scored / max(1, support)


def _question(gate: Gate, numbers: Numbers) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Translate a gate to metric, filters and starred columns of the metrics frame.

    Raises:
        ResultError: a condition on a name that is no column, slice or label.
    """
    filters: dict[str, Any] = {}
    each: list[str] = []
    slices = numbers.metrics["slice"].drop_nulls().unique(maintain_order=True).to_list()
    for name, value in gate.conditions:
        column = _column(name, value, numbers, slices)
        if column == "slice_value" and name != "slice_value":
            filters["slice"] = name
        starred = gate.stars(name)
        if column == "slice" and not starred:
            # All slices of a column are meant unless one of them is named.
            filters["slice"] = value
            if "slice_value" not in dict(gate.conditions):
                each.append("slice_value")
        elif starred:
            column = "label_value" if column == "label_name" else column
            each += [column, "slice_value"] if column == "slice" else [column]
        else:
            dtype = numbers.metrics.schema.get(column, pl.String())
            literal = name in gate.quoted and dtype == pl.String
            filters[column] = value if literal else _typed(value, dtype)
    names = numbers.metrics["metric"].unique()
    named = by_title(numbers.task, numbers.dialect, gate.metric, {*filters, *each}, names)
    if named is not None:
        metric, parameters = named
        return metric, {**parameters, **filters}, tuple(dict.fromkeys(each))
    return _metric(gate, numbers), filters, tuple(dict.fromkeys(each))


def _metric(gate: Gate, numbers: Numbers) -> str:
    """The name that the frame has for a metric, in whatever capitals or alias it was written."""
    name, at, cut = gate.metric.partition("@")
    names = numbers.metrics["metric"].unique(maintain_order=True).to_list()
    if name not in names:
        registered = registry.all_metrics(numbers.task).values()
        matches = [one for one in names if one.casefold() == name.casefold()] or [
            one.name
            for one in registered
            if one.name in names and name.casefold() in map(str.casefold, one.aliases)
        ]
        if len(matches) == 1:
            name = matches[0]
    return f"{name}{at}{cut}"


def _column(name: str, value: str, numbers: Numbers, slices: list[str]) -> str:
    """Return the column of the metrics frame for a condition's name.

    Raises:
        ResultError: unknown name.
    """
    if name in KEYS or name == "label_name":
        return name
    if name in slices:
        return "slice_value"
    if name == "label":
        labels = numbers.labels
        named = value in labels["label_name"].to_list()
        valued = value in labels["label_value"].cast(pl.String).to_list()
        return "label_name" if named and not valued else "label_value"
    if name in _SHORT:
        return _SHORT[name]
    raise unknown(
        "condition of a gate",
        name,
        (*slices, "label", *_SHORT, *KEYS, "label_name"),
        error=ResultError,
    )


def _typed(value: str, dtype: pl.DataType) -> Any:
    """A condition's value as its column has it; text that is no such value stays text."""
    if value == "null":
        return None
    if dtype == pl.Boolean:
        return {"true": True, "false": False}.get(value.casefold(), value)
    try:
        if dtype.is_integer():
            return int(value)
        if dtype.is_float():
            return float(value)
    except ValueError:
        return value
    return value


def _row_name(gate: Gate, row: dict[str, Any]) -> str:
    """Return the values of a gate's stars."""
    parts = []
    for name, _ in gate.conditions:
        if name == "slice":
            parts.append(f"{row['slice']}={row['slice_value']}")
        elif gate.stars(name):
            column = {"label": "label_value", "label_name": "label_value", **_SHORT}.get(name, name)
            parts.append(f"{name}={row[column if column in KEYS else 'slice_value']}")
    return ", ".join(parts)


def watch_of(
    gates: Sequence[Gate],
    card: Scorecard,
    earlier: Scorecard | None,
    night: str = "",
    parts: Mapping[str, Tallied] | None = None,
) -> Watch | None:
    """Return the nights of a run, without those of earlier runs; None without ``always`` gates.

    Args:
        night: name of the night.
        parts: partitions of the run, which are nights; empty or None without.
    """
    gates = [gate for gate in gates if gate.always]
    if not gates:
        return None
    intervals = parse_intervals(card.options)
    level = LEVEL if intervals is None else intervals.level
    clustered = intervals is not None and intervals.cluster is not None
    current = tallied_of("this run", card) if can_be_compared(card) else None
    before = None
    if earlier is not None and needing_margins(gates):
        before = tallied_of("the baseline", earlier) if can_be_compared(earlier) else None
    if not parts:
        run = None if clustered else current
        return Watch({night: (numbers_of(card), run)}, level, before, digest=_digest(current))
    runs = {}
    for name, part in parts.items():
        frames = [
            summarise(one.plan, one.tallies, threads=one.threads)[0]["metrics"]()
            for one in (part, part.own)
            if one is not None
        ]
        metrics = pl.concat(frames, how="diagonal_relaxed")
        numbers = Numbers(card.task, metrics, card.labels, card.dialect)
        runs[name] = numbers, None if clustered else part
    return Watch(runs, level, before)


def until(text: str, options: Options) -> Callable[[Scorecard], str]:
    """Return a function that says how a gate with ``always`` is decided; empty while it is not.

    Args:
        options: of the scorecards.

    Raises:
        OptionError: a gate that cannot be parsed, without ``always``, or of several rows.
    """
    gate = parse_gate(text)
    if not gate.always or gate.needs_baseline or EACH in dict(gate.conditions).values():
        raise OptionError(
            f"{option('until', text)}: write a gate on one number that ends in always, such as"
            " 'Faithfulness >= 0.8 always'.",
            code="gate_unfit",
        )
    check_gates([gate], options)

    def decided(card: Scorecard) -> str:
        (verdict,) = judge_gates([gate], numbers_of(card), watch=watch_of([gate], card, None))
        if verdict.value is not None and verdict.n is None:
            raise OptionError(
                f"{option('until', text)}: the number is not a mean of one value per row with a"
                " range.",
                code="gate_unfit",
            )
        if verdict.lower is None or verdict.upper is None:
            return ""
        most = verdict.upper if gate.lower_bounded else verdict.lower
        if verdict.status != PASSED and gate.holds(most, gate.number):
            return ""
        what = "holds" if verdict.status == PASSED else "cannot be shown"
        return (
            f"{gate.text} {what}, with {verdict.value:.4g} and the {verdict.level:.0%} confidence"
            f" sequence [{verdict.lower:.4f}, {verdict.upper:.4f}]"
        )

    return decided


def _digest(run: Tallied | None) -> str:
    """Digest of the datums and their ground truths, in any order; empty if unknown."""
    truth = None if run is None else run.plan.does.truth
    if run is None or truth is None or run.tallies.datums.ids is None:
        return ""
    if (codes := truth(run.tallies)) is None:
        return ""
    datums = run.tallies.datums
    keys = draw_keys(datums.id, datums.slices, None)
    order = np.argsort(keys)
    rows = np.stack([keys[order], np.asarray(codes, np.uint64)[order]])
    return hashlib.sha256(rows.tobytes()).hexdigest()[:16]


# Data for gates with ``surely``: intervals of numbers and of differences.

_INTERVAL_OPTIONS = ("draws", "seed", "method", "cluster")


def with_intervals(options: Options, gates: Sequence[Gate]) -> Options:
    """Add intervals to the options of a run, if gates need them and they were not requested."""
    has_options = any(getattr(options, name) is not None for name in _INTERVAL_OPTIONS)
    requested = [gate for gate in gates if gate.surely or (gate.always and has_options)]
    if options.drawn or not requested:
        return options
    needed = has_options or not all(gate.needs_baseline for gate in requested)
    return options.replace(intervals=LEVEL) if needed else options


def needing_margins(gates: Sequence[Gate]) -> list[Gate]:
    """Gates that are about the difference to a baseline and its interval or sequence."""
    return [gate for gate in gates if gate.how and gate.needs_baseline]


def refuse_workers(gates: Sequence[Gate], executor: str | None) -> None:
    """Refuse gates on differences for runs by workers, before any work.

    Raises:
        OptionError: the tallies stay with the workers.
    """
    needing = needing_margins(gates)
    if needing and executor not in (None, "threads"):
        raise OptionError(
            f"gate {needing[0].text!r}: executor {executor!r} does not keep the tally, which"
            f" comparing needs: score in memory, or omit {needing[0].how}.",
            code="options_conflict",
            options=["executor", needing[0].how],
        )


def can_be_compared(earlier: Scorecard) -> bool:
    """Return whether a result has its tallies."""
    return earlier.tallied is not None or (
        earlier.folder is not None and tally_bytes(earlier.folder) > 0
    )


def hold(gates: Sequence[Gate], earlier: Scorecard) -> None:
    """Load a baseline's data for gates before any work: its folder may be replaced by the run.

    Raises:
        ResultError: it has no tallies for comparison.
    """
    _ = earlier.metrics
    needing = needing_margins(gates)
    if needing and not can_be_compared(earlier):
        raise ResultError(f"gate {needing[0].text!r}: {unkept(earlier)}", code="not_kept")
    if needing or (keeping(gates, earlier.task) and can_be_compared(earlier)):
        earlier.tallied = tallied_of("the baseline", earlier)


def means_differ_in_datums(earlier: Scorecard | None, card: Scorecard) -> bool | None:
    """Return whether the means of a run and its baseline are over different datums.

    Their numbers are then not comparable, and gates use the common datums. None if a run does not
    have the required tallies.
    """
    if earlier is None or earlier.task != card.task or not _leaves_out(card.task):
        return False
    if not can_be_compared(earlier) or not can_be_compared(card):
        return None
    first, second = tallied_of("the baseline", earlier), tallied_of("this run", card)
    if covers_other_datums(first, second):
        return True
    if first.own is None or second.own is None:
        return False
    return covers_other_datums(first.own, second.own)


def _leaves_out(task: str) -> bool:
    does = tasks.get(task)
    return does.unanswered is not None or does.common is not None


def keeping(gates: Sequence[Gate], task: str) -> bool:
    """Return whether gates need the tallies of a baseline, or are better with them."""
    about = any(gate.needs_baseline for gate in gates)
    return bool(needing_margins(gates)) or (about and _leaves_out(task))


def unkept(earlier: Scorecard | None) -> str:
    """Why a baseline has no difference with an interval, and the way out."""
    where = f" {earlier.folder}" if earlier is not None and earlier.folder is not None else ""
    return (
        f"the baseline{where} has no tally to compare with (it was too large, or an earlier"
        " version wrote it): score it again, or omit surely or always."
    )


def compare_with(earlier: Scorecard | None, card: Scorecard) -> Compare:
    """Return a function that computes intervals of a run's differences to its baseline.

    Args:
        earlier: the baseline, if its result still exists.
    """

    def compare(metrics: Collection[str], slices: Collection[str]) -> Margins | str:
        if earlier is None or not can_be_compared(earlier):
            return unkept(earlier)
        if not can_be_compared(card):
            raise ResultError(
                "a gate with baseline and surely: this run has no tally, which comparing needs, as"
                " it is too large: score it in memory, or omit surely.",
                code="not_kept",
            )
        return margins(earlier, card, metrics=metrics, by=slices)

    return compare


def refuse_own_intervals(gates: Sequence[Gate]) -> None:
    """Refuse gates of comparisons on the interval of a single number.

    Raises:
        OptionError: a comparison has only intervals of differences.
    """
    for gate in gates:
        if gate.always:
            raise OptionError(
                f"gate {gate.text!r}: a comparison is a single look: write surely, or put the gate"
                " into a job.",
                code="gate_unfit",
            )
        if gate.surely and not gate.needs_baseline:
            raise OptionError(
                f"gate {gate.text!r}: a comparison has only intervals of differences: write"
                f" {gate.operator} baseline - 0.01 surely, or gate the number when the run is"
                " scored.",
                code="gate_needs_baseline",
            )


def compared_numbers(
    comparison: Comparison, labels: pl.DataFrame | None
) -> tuple[Numbers, Numbers, Margins]:
    """Return the numbers of both runs of a comparison, and their differences, for gates.

    Args:
        labels: names of labels, if known.
    """
    rows = comparison.differences
    if labels is None:
        labels = rows.select("label_key", "label_value").drop_nulls().unique(maintain_order=True)
        labels = labels.with_columns(pl.lit(None, pl.String).alias("label_name"))
    empty = frame_schema("metrics", label=rows.schema["label_value"])

    def of(column: str) -> Numbers:
        numbers = rows.select(
            *(
                pl.col(column).alias("value")
                if name == "value"
                else pl.col(name)
                if name in ("metric", "support", *KEYS)
                else pl.lit(None, dtype).alias(name)
                for name, dtype in empty.items()
            )
        )
        return Numbers(
            comparison.task,
            numbers,
            labels,
            comparison.dialect,
            datums=lambda column, value: comparison.n if column is None else None,
        )

    units = comparison.units
    differences = rows if units is None else rows.with_columns(units.alias("units"))
    return of("a"), of("b"), Margins(differences, comparison.level)
