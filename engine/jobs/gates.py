"""Gates: syntax, meaning and checks before a run."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence

import msgspec

from .. import metrics, tasks
from ..evaluation import planner
from ..ingest.problems import listing
from ..metrics.own import names as own_names
from ..metrics.registry import at_threshold, group_of
from ..report.tables import any_title, by_title
from ..schemas.errors import OptionError, unknown
from ..schemas.options import Options
from ..schemas.wording import option
from ..scorecard.lookup import KEYS, SHORT

# Syntax and meaning of gates: ``mAP[weather=rain] >= baseline - 0.01``.
#
# ::
#
#     gate       = metric [ "." statistic ] [ filter ] operator bound [ "surely" | "always" ]
#     filter     = "[" condition { "," condition } "]"
#     condition  = name "=" ( value | "*" )
#     operator   = ">=" | "<=" | ">" | "<" | "=="
#     bound      = number | "baseline" [ ( "+" | "-" | "*" ) number ]
#
# A condition's name is a column of the metrics frame, a slice column, ``label`` or ``iou``; ``*``
# means every value, each of which has to pass; ``* spread`` of a slice means by how much the
# number differs between its values, less what equal groups would show. With ``surely`` the low end
# of the number's interval has to reach the bound, or the high end for ``<`` and ``<=``; with a
# baseline it is the interval of the difference, over resamples that both runs share. With
# ``always`` it is the confidence sequence over all nights of a job, which holds at every look.

EACH = "*"
SPREAD = "* spread"
"""Value of a slice in gates on the difference between its groups, less that of equal groups."""
SURELY, ALWAYS = "surely", "always"
COVERAGE = "coverage"
"""Name in gates for the share of rows that could be scored: the minimum over metrics, or with
``metric=NAME`` that of one.
"""
_TOLERANCE = 1e-12
"""Numbers this close, as a share of the larger of bound and 1, are equal: 0.81 - 0.01 is 0.8."""

_HEAD = re.compile(r"""\s*(?P<metric>"[^"]+"|'[^']+'|[^\s\[\]<>=]+)\s*(?P<open>\[)?""")
_CONDITION = re.compile(
    r"""\s*(?P<name>"[^"]*"|'[^']*'|[^\s=,\[\]"'][^=,\[\]]*?)\s*=\s*"""
    r"""(?P<value>"[^"]*"|'[^']*'|[^\s,\]"'][^,\]]*?)\s*(?P<end>[,\]])"""
)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BOUND = re.compile(
    rf"\s*(?P<operator>>=|<=|==|>|<)\s*(?:(?P<number>{_NUMBER})|(?P<baseline>baseline)"
    rf"(?:\s*(?P<sign>[-+*])\s*(?P<by>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))?)"
    r"(?:\s+(?P<how>surely|always))?\s*",
    re.IGNORECASE,
)
_SIGNS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISONS: dict[str, Callable[[float, float, float], bool]] = {
    ">=": lambda value, bound, slack: value >= bound - slack,
    "<=": lambda value, bound, slack: value <= bound + slack,
    ">": lambda value, bound, slack: value > bound + slack,
    "<": lambda value, bound, slack: value < bound - slack,
    "==": lambda value, bound, slack: abs(value - bound) <= slack,
}


class Gate(msgspec.Struct, frozen=True):
    """Parsed gate.

    Attributes:
        metric: name as written, in any case; ``nDCG@10`` includes its cut-off.
        operator: one of ``>= <= > < ==``.
        number: the bound, or the change to the baseline.
        sign: operator of the change to the baseline, ``+ - *``; empty without a baseline.
        quoted: names whose value was quoted: a star or null in them is literal.
        how: empty if the number has to pass; ``surely`` for its interval, ``always`` for its
            confidence sequence.
        fails: whether the run fails if the condition is true, instead of false.
    """

    text: str
    metric: str
    conditions: tuple[tuple[str, str], ...]
    operator: str
    number: float
    sign: str = ""
    quoted: tuple[str, ...] = ()
    how: str = ""
    fails: bool = False

    @property
    def title(self) -> str:
        """Name in verdicts."""
        return f"fail if {self.text}" if self.fails else self.text

    @property
    def surely(self) -> bool:
        """True if the interval has to pass, not only the number."""
        return self.how == SURELY

    @property
    def always(self) -> bool:
        """True if the confidence sequence over all nights has to pass."""
        return self.how == ALWAYS

    @property
    def needs_baseline(self) -> bool:
        return bool(self.sign)

    @property
    def written_bound(self) -> str:
        """Operator and bound as text."""
        bound = f"baseline {self.sign} {self.number:g}" if self.sign else f"{self.number:g}"
        if bound in ("baseline + 0", "baseline - 0"):
            bound = "baseline"
        return f"{self.operator} {bound}{self.how and ' '}{self.how}"

    @property
    def margin(self) -> float:
        """Bound of the difference to the baseline, for gates on intervals."""
        return -self.number if self.sign == "-" else self.number

    def end(self, lower: float, upper: float) -> float:
        """Return the end of an interval that has to pass."""
        return lower if self.lower_bounded else upper

    @property
    def lower_bounded(self) -> bool:
        """True if values above the bound pass."""
        return self.operator in (">", ">=")

    @property
    def on_spread(self) -> bool:
        """True if the gate is on the difference between the groups of a slice."""
        return any(value == SPREAD and name not in self.quoted for name, value in self.conditions)

    def stars(self, name: str) -> bool:
        """Return whether a condition is an unquoted star."""
        return name not in self.quoted and dict(self.conditions).get(name) == EACH

    def bound(self, baseline: float | None) -> float:
        """Return the number that a value is compared with."""
        if not self.sign or baseline is None:
            return self.number
        return _SIGNS[self.sign](baseline, self.number)

    def holds(self, value: float, bound: float) -> bool:
        """Return whether a value passes; numbers equal up to rounding are equal."""
        slack = _TOLERANCE * max(1.0, abs(bound))
        return _COMPARISONS[self.operator](value, bound, slack)


def parse_gate(text: str, *, fails: bool = False) -> Gate:
    """Parse a gate.

    Args:
        fails: whether it is a condition to fail by.

    Raises:
        OptionError: a syntax error; the message shows the position.
    """
    head = _HEAD.match(text)
    if head is None:
        raise _unreadable(text, 0, "a gate begins with a metric")
    place = head.end()
    conditions: list[tuple[str, str]] = []
    quoted: list[str] = []
    open_ = head["open"] is not None
    while open_:
        match = _CONDITION.match(text, place)
        if match is None:
            raise _unreadable(text, place, "expected name=value and then , or ]")
        name, value = match["name"], match["value"]
        conditions.append((_unquoted(name), _unquoted(value)))
        if _unquoted(value) != value:
            quoted.append(_unquoted(name))
        place, open_ = match.end(), match["end"] == ","
    bound = _BOUND.fullmatch(text, place)
    if bound is None:
        percent = re.search(rf"({_NUMBER})\s*%", text[place:])
        raise _unreadable(
            text,
            place,
            f"write the percentage as a number, {float(percent[1]) / 100:g}"
            if percent
            else "expected >=, <=, >, < or ==, then a number or baseline, such as"
            " >= 0.42 or >= baseline - 0.01",
        )
    twice = [name for name, _ in conditions if sum(name == other for other, _ in conditions) > 1]
    if twice:
        raise OptionError(
            f"gate {text!r}: {twice[0]!r} is named twice; write it once.",
            code="given_twice",
            value=twice[0],
        )
    sign, number = "", bound["number"]
    if number is None:
        sign, number = bound["sign"] or "+", bound["by"] or "0"
    by = float(number)
    if not math.isfinite(by):
        raise OptionError(
            f"gate {text!r}: {number} is too large a number.", code="too_high", value=number
        )
    gate = Gate(
        text.strip(),
        _unquoted(head["metric"]),
        tuple(conditions),
        bound["operator"],
        by,
        sign,
        tuple(quoted),
        (bound["how"] or "").lower(),
        fails,
    )
    if gate.how:
        _can_be_sure(gate)
    return gate


def _can_be_sure(gate: Gate) -> None:
    """Refuse a gate that no interval answers."""
    why = ""
    if gate.operator == "==":
        why = f"no number is {gate.how} equal to another: write >= and <= with a margin"
    elif gate.sign == "*":
        why = (
            "the interval is one of the difference to the baseline, not of a share of it: write"
            f" baseline - 0.01 {gate.how}"
        )
    elif gate.on_spread:
        why = "the spread between groups has no interval, but what equal groups show is taken off"
    elif gate.metric.casefold() == COVERAGE:
        why = f"{COVERAGE} is a count of this run's rows, without an interval: omit {gate.how}"
    if why:
        raise OptionError(f"gate {gate.text!r}: {why}.", code="gate_unfit")


def parse_gates(texts: Sequence[str], fail_if: Sequence[str] = ()) -> tuple[Gate, ...]:
    """Parse all gates before any work.

    Raises:
        OptionError: a gate that cannot be parsed.
    """
    return (
        *(parse_gate(text) for text in texts),
        *(parse_gate(text, fails=True) for text in fail_if),
    )


def refuse_unknown(gates: Sequence[Gate], plan: planner.Plan, own: Sequence[str] = ()) -> None:
    """Refuse gates about no metric of any task, once the task is known and before rows are read.

    Args:
        own: names of own metrics.

    Raises:
        OptionError: names the nearest metric.
    """
    if metrics.is_open(plan.task):
        return
    _refuse_thresholds(gates, [plan.task], plan.dialect.name)
    refuse_ranges(gates, plan.task)
    for gate in gates:
        is_metric = gate.metric.casefold() == COVERAGE or any_title(gate.metric)
        is_metric |= any(group_of(task, gate.metric) for task in tasks.NAMES) and gate.on_spread
        if not is_metric and not any(metrics.has(task, gate.metric) for task in tasks.NAMES):
            choices = {name for task in tasks.NAMES for name in metrics.names(task)}
            choices |= {*own, *(metric.name for metric in plan.metrics)}
            if gate.metric.partition(".")[0] not in choices:
                raise unknown("metric", gate.metric, choices, before=f"gate {gate.text!r}: ")


def refuse_ranges(gates: Sequence[Gate], task: str) -> None:
    """Refuse bounds that no value of the metric can have."""
    for gate in gates:
        known = metrics.has(task, gate.metric) and not group_of(task, gate.metric)
        if gate.sign or not known or metrics.is_open(task):
            continue
        metric = metrics.metric_of(task, gate.metric)
        name, (low, high) = metric.name, metric.range
        if low <= gate.number <= high:
            continue
        limit = f"at most {high:g}" if gate.number > high else f"at least {low:g}"
        percent = f" For {gate.number:g} % write {gate.number / 100:g}."
        raise OptionError(
            f"gate {gate.text!r}: {name} is {limit}.{percent * (high == 1 < gate.number <= 100)}",
            code="too_high" if gate.number > high else "too_low",
            value=gate.number,
        )


def _refuse_thresholds(gates: Sequence[Gate], of: Sequence[str], dialect: str) -> None:
    """Refuse names with an IoU threshold, such as mAP50, that are no title of these tasks."""
    for gate in gates:
        rated = next((one for task in of if (one := at_threshold(task, gate.metric))), None)
        if rated is None or any(
            by_title(task, dialect, gate.metric, set(), metrics.names(task)) for task in of
        ):
            continue
        conditions = [f"{name}={value}" for name, value in gate.conditions]
        written = f"{rated[0]}[{', '.join((f'iou={rated[1]:g}', *conditions))}]"
        raise OptionError(
            f"gate {gate.text!r}: the IoU threshold is a condition here: write {written}"
            f" {gate.written_bound}.",
            code="unknown_name",
            value=gate.metric,
        )


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') else text


def _unreadable(text: str, place: int, message: str) -> OptionError:
    rest = text[place:].strip()
    where = f"at {rest!r}" if rest else "at its end"
    return OptionError(
        f"gate {text!r} cannot be read {where}: {message}. A gate is"
        " 'metric[column=value, ...] >= number', as in 'mAP[iou=0.5, weather=rain] >= 0.42'."
        " Put names with blanks or brackets, and their statistic, in double quotes.",
        code="gate_malformed",
        at=rest,
    )


# Checks of gates against the requested run, before any table is read.

CONDITIONS = ("label_name", *SHORT, *KEYS)
"""Names for conditions of gates, in addition to slices and the metric of coverage."""


def check_gates(gates: Sequence[Gate], options: Options) -> None:
    """Refuse gates about a slice or a metric that the run does not compute.

    The metrics are known only if they or the task are given; the rest is decided with the verdicts.

    Raises:
        OptionError: suggests the nearest name.
    """
    for gate in gates:
        for name, value in gate.conditions:
            if value == SPREAD and name not in gate.quoted and options.spread != name:
                raise OptionError(
                    f"gate {gate.text!r} is on the spread over {name!r}: add"
                    f" {option('spread', name)}.",
                    code="option_missing",
                    option="spread",
                )
            is_coverage = gate.metric.casefold() == COVERAGE and name == "metric"
            if name not in (*CONDITIONS, *options.by) and not is_coverage:
                raise unknown(
                    "condition",
                    name,
                    (*options.by, *CONDITIONS),
                    before=f"gate {gate.text!r}: ",
                    after=f" A slice is asked for with {option('by', [*options.by, name])}.",
                )
    _refuse_thresholds(gates, planner.fitting_tasks(options), options.dialect)
    if options.metrics is None and options.task is None:
        return
    own_metrics = own_names(options.metrics or ())
    fitting = planner.fitting_tasks(options)
    plans = [plan for task in fitting if (plan := _plan(options, task)) is not None]
    for gate in gates:
        if (
            plans
            and gate.metric not in own_metrics
            and not any(_makes(plan, gate) for plan in plans)
        ):
            computed = dict.fromkeys(metric.name for plan in plans for metric in plan.metrics)
            raise unknown(
                "metric of this run",
                gate.metric,
                computed,
                before=f"gate {gate.text!r}: ",
                after=f" Others are asked for with {option('metrics')}.",
            )
        if len(plans) == 1:
            _refuse_ambiguous(plans[0], gate)


def _plan(options: Options, task: str) -> planner.Plan | None:
    """Return the plan of a task; None if other options do not fit and the task was not given."""
    try:
        return planner.make_plan(options, task)
    except OptionError:
        if options.task is None:
            return None
        raise


_AXES = {
    "k": "k",
    "iou_thresholds_to_return": "iou_threshold",
    "score_thresholds": "score_threshold",
}
"""Option with several values, and the column of a metric that has a row for each."""


def _refuse_ambiguous(plan: planner.Plan, gate: Gate) -> None:
    """Refuse a gate on a metric with several rows that it does not choose among."""
    name, cut, _ = gate.metric.partition("@")
    settled = {SHORT.get(one, one) for one, _ in gate.conditions} | ({"k"} if cut else set())
    computed = {metric.name: metric for metric in plan.metrics if metric.frame == "metrics"}
    metric = next(
        (one for one in computed.values() if one.name.casefold() == name.casefold()), None
    )
    if metric is None or by_title(plan.task, plan.dialect.name, gate.metric, settled, computed):
        return
    for param, column in _AXES.items():
        values: Sequence[float] = getattr(plan.settings, param, None) or ()
        listed = param in metric.params and (param != "k" or metric.bare == "cut")
        # the dialect calls a mean by this name, which this run does not compute
        several = len(values) > 1 or (values and metric.name in plan.dialect.means)
        if listed and column not in settled and several:
            raise OptionError(
                f"gate {gate.text!r}: {metric.name} has a row for each {column}"
                f" ({listing(values)}). To choose one, write"
                f" {metric.name}[{column}={values[0]:g}].",
                code="ambiguous",
                columns=[column],
            )


_WORD = re.compile(r"[A-Z][a-z0-9]+")


def _makes(plan: planner.Plan, gate: Gate) -> bool:
    """Return whether a plan has the metric of a gate, under any name or title."""
    if gate.metric.casefold() == COVERAGE or metrics.is_open(plan.task):
        return True
    computed = [metric.name for metric in plan.metrics if metric.frame == "metrics"]
    settled = {SHORT.get(name, name) for name, _ in gate.conditions}
    if by_title(plan.task, plan.dialect.name, gate.metric, settled, computed) is not None:
        return True
    if gate.on_spread and (needed := group_of(plan.task, gate.metric)) is not None:
        return {*needed(plan.options)} <= {*computed}
    name = gate.metric.partition("@")[0].casefold()
    # Metrics of several numbers (PrecisionRecallF1) have rows by the words of their name.
    words = [word for one in computed for word in (one, *_WORD.findall(one))]
    if name in map(str.casefold, words):
        return True
    own_name = plan.dialect.own_names.get(gate.metric, gate.metric)
    return metrics.has(plan.task, own_name) and any(
        metrics.metric_of(plan.task, one).name in computed
        for one in metrics.members(plan.task, own_name, plan.options)
    )
