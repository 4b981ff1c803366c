"""Evaluation in parts: a plan that is made once, tallies made anywhere, merged in any order."""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import msgspec
import polars as pl

from ._version import __version__
from .evaluation import own as own_values
from .evaluation import planner
from .executors import Threads
from .ingest import both_sides
from .ingest.collecting import Prepared, collect, named_problems
from .ingest.dtypes import within
from .ingest.files import Source
from .ingest.frames import Part, assemble
from .ingest.ids import ALL
from .ingest.opening import Tables, open_inputs
from .ingest.preparing import early_notes, prepare, rewritten
from .ingest.problems import Note, refuse
from .ingest.recognise import Finder, Side
from .ingest.relabel import classes_in, name_of_class, read_label_map
from .ingest.sources.objects import detached, name_of
from .metrics import is_open
from .metrics import own as own_metrics
from .metrics.own import OwnMetric
from .outofcore.driver import (
    check_common_ids,
    explicit_metrics,
    fitted_to_heads,
    merged_heights,
    notes_of,
)
from .outofcore.shuffle import Whole, common_dtypes, distinct_pairs, first_rows, of_score_columns
from .run import add_own, card_of_tallies, messages_of, open_tables, unanswered
from .schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from .schemas.errors import InputError, OptionError, ResultError
from .schemas.named import Named
from .schemas.option_values import Encoder, TableObject, make_options
from .schemas.options import FIELDS, Options
from .schemas.tables import table_for
from .schemas.wording import option
from .scorecard.card import Scorecard
from .scorecard.storage import plain_options, restored_options
from .tallies import stored
from .tallies.merging import added

_SAMPLE_ROWS = 100_000
_OF_ALL_ROWS = (
    "limits",
    "human",
    "label_next",
    "memory_limit",
    "scratch",
    "client_reads",
    "regions",
)
"""Options that need all rows in one place, or that a part has no use for."""


class TallyPlan:
    """Plan of an evaluation in parts; made by :func:`plan`, and picklable.

    Task, metrics, columns and their types are fixed. Every part is read by them or refused.

    Attributes:
        options: the options, with task and metrics filled in.
        fingerprint: 16 hexadecimal digits, equal for plans whose tallies can be merged.
    """

    def __init__(
        self,
        blanks: Mapping[str, pl.DataFrame],
        options: Options,
        labels: pl.DataFrame | None,
        notes: list[Note],
        by_sample: bool,
        own: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.options = options
        self._own = own
        self._blanks = dict(blanks)
        self._labels = labels
        self._notes = notes
        self._by_sample = by_sample

    def __repr__(self) -> str:
        names = ", ".join((*(self.options.metrics or ()), *self._own))
        return f"TallyPlan({self.options.task}: {names}; {self.fingerprint})"

    def __reduce__(self) -> tuple[Any, ...]:
        self._refuse_local()
        return TallyPlan._from_plain, (self._plain,)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of task, metrics, files of own metrics, options, columns, labels and version."""
        plain = msgspec.json.decode(self._plain)
        columns = {
            role: sorted((name, str(dtype)) for name, dtype in frame.schema.items())
            for role, frame in self._blanks.items()
        }
        options = {name: value for name, value in plain["options"].items() if name != "threads"}
        parts = [self._plan.fingerprint, options, columns, plain["labels"]]
        parts += [plain["own"]] if self._own else []
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]

    def tally(self, predictions: Any, ground_truths: Any = None, *, datums: Any = None) -> Tally:
        """Tally some of the datums: all rows of each of them.

        Args:
            predictions: as for :func:`evalengine.score`, with the columns of the plan.
            ground_truths: the same; an empty table if these datums have none.
            datums: ids of these datums, if the plan has a table of datums.

        Returns:
            a tally, which can be pickled, stored and merged.

        Raises:
            InputError: the rows break their contract, or contradict the plan: a missing or new
                column, or another type.
        """
        tables = Tables(detached(predictions), detached(ground_truths), datums)
        ready, plan = self._bound(tables), self._plan
        frames, before = collect(ready.sides, ready.where, ready.plan)
        rows = {role: frame for role, frame in frames.items() if role != LABELS}
        before = {role: frame.height for role, frame in rows.items()} | before
        checked = assemble(ready, frames, {}, self.options, Part({}, None, ALL))
        for role in rows.keys() & checked.remaining.keys():
            rows[role] = checked.remaining[role].filtered(rows[role])
        pairs = distinct_pairs([both_sides.side_pairs(rows)])
        keys = [frame["label_key"] for frame in rows.values() if "label_key" in frame.columns]
        keyed = pl.concat(keys).drop_nulls().unique() if keys else None
        pairs |= of_score_columns(ready, pairs, keyed)
        heights = {role: frame.height for role, frame in checked.sides.items()}
        if checked.datums is not None:
            heights["datums"] = checked.datums.height
        common_ids = checked.common_ids
        threads = Threads(self.options.threads)
        custom_metrics = self._functions
        values = own_values.measured(custom_metrics, checked) if custom_metrics else None
        plain_findings = None
        if (by_rows := plan.does.fitted_by_rows) is None:
            tallies = planner.run(plan, checked, threads)
        else:
            self._refuse_new_metrics(frames)
            tallies, findings = by_rows.tally(
                checked, plan.settings, plan.needs, threads, several=True
            )
            plain_findings = msgspec.to_builtins(findings)
        if values is not None:
            values = own_values.with_slices(values, custom_metrics, tallies.datums, None)
        facts = TallyFacts(
            notes=[msgspec.to_builtins(note) for note in checked.notes],
            heights=heights,
            before=before,
            met=None if common_ids is None else common_ids.plain,
            recognised=checked.recognised,
            findings=plain_findings,
        )
        return Tally(self, [facts], pairs, tallies, values)

    def _bound(self, tables: Tables) -> Prepared:
        """Return the plan's tables with the rows of some others."""
        ready = self._ready
        assert self.options.task is not None
        inputs = open_inputs(tables, self.options)
        inputs, _ = rewritten(inputs, self.options.task, self.options, of_part=True)
        sides = {}
        for role, planned in ready.sides.items():
            if role == LABELS:
                sides[role] = planned
                continue
            if role not in inputs.sources:
                # Predictions without ground truths are taken for a table of both.
                lost = GROUND_TRUTHS if role == PREDICTIONS and TABLE in inputs.sources else role
                raise _contradiction(lost, f"the plan has {_named(lost)}, and this part has none.")
            source, schema = inputs.sources[role], inputs.schemas[role]
            frame = _as_planned(role, source, schema, planned.schema)
            source = msgspec.structs.replace(source, frame=frame)
            naming = msgspec.structs.replace(
                planned.naming, recognised=dict(planned.naming.recognised)
            )
            sides[role] = Side(source, planned.table, planned.schema, naming)
        unplanned = [role for role in inputs.sources if role not in (*sides, LABELS)]
        if unplanned:
            raise _contradiction(
                unplanned[0], f"the plan has no {_named(unplanned[0])}, and this part has."
            )
        return Prepared(sides, ready.plan, ready.where)

    def _refuse_new_metrics(self, frames: Mapping[str, pl.DataFrame]) -> None:
        """Refuse rows of metrics that the plan does not have, if the user did not choose them."""
        if not self._by_sample:
            return
        open_plan = _plan_of(self.options.replace(metrics=None))
        fitted, _ = planner.may_fit(open_plan, _ahead(open_plan, frames))
        names = [metric.name for metric in self._plan.metrics]
        new = [metric.name for metric in fitted.metrics if metric.name not in names]
        if new:
            all_names = [*names, new[0], *(one["reference"] for one in self._own.values())]
            raise _contradiction(
                TABLE,
                f"column 'metric': {new[0]!r} is not in the plan ({', '.join(names)}). Plan with a"
                f" sample that has it, or name the metrics: {option('metrics', all_names)}.",
                column="metric",
                value=new[0],
            )

    @property
    def _functions(self) -> tuple[OwnMetric, ...]:
        """The own metrics, imported where the plan arrives.

        Raises:
            OptionError: this process cannot import one.
            ResultError: its file is another one than that of the plan.
        """
        references = [one["reference"] for one in self._own.values()]
        strange, metrics = own_metrics.split(references, lambda name: False)
        if strange:
            raise OptionError(
                f"metric {strange[0]}: this process cannot import it. Install its module wherever"
                " parts are tallied.",
                code="unknown_name",
                value=strange[0],
            )
        for one in metrics:
            if one.digest != self._own[one.name]["digest"]:
                raise ResultError(
                    f"metric {one.reference}: its file has changed since the plan was made, or is"
                    " another one here. Make the plan again, or install the same file.",
                    code="other_plan",
                    value=one.reference,
                )
        return metrics

    def _refuse_local(self) -> None:
        """Refuse to leave this process with a function that others cannot import."""
        for name, one in self._own.items():
            if not own_metrics.is_importable(one["reference"]):
                raise OptionError(
                    f"metric {name}: other processes cannot import {one['reference']}, so that this"
                    " plan and its tallies cannot be sent or stored. Define the function at the top"
                    " of a module.",
                    code="option_unfit",
                    option="metrics",
                    value=name,
                )

    # -- what follows from columns and options, made again where the plan arrives ----------------

    @cached_property
    def _ready(self) -> Prepared:
        tables = Tables(
            self._blanks.get(TABLE, self._blanks.get(PREDICTIONS)),
            self._blanks.get(GROUND_TRUTHS),
            self._blanks.get("datums"),
            self._labels,
        )
        assert self.options.task is not None
        return prepare(open_inputs(tables, self.options), self.options.task, self.options)

    @cached_property
    def _plan(self) -> planner.Plan:
        full = _plan_of(self.options)
        return planner.narrowed(full, ()) if self._own and not self.options.metrics else full

    @cached_property
    def _plain(self) -> bytes:
        """All of the plan as JSON; no unpickling is needed to read a tally."""
        plain = {
            "columns": {role: _packed(frame) for role, frame in self._blanks.items()},
            "options": plain_options(self.options),
            "metrics": self.options.metrics,
            "labels": None if self._labels is None else _packed(self._labels),
            "notes": self._notes,
            "by_sample": self._by_sample,
            "own": self._own,
        }
        return msgspec.json.encode(plain)

    @staticmethod
    @lru_cache(maxsize=8)
    def _from_plain(plain: bytes) -> TallyPlan:
        fields = msgspec.json.decode(plain)
        return TallyPlan(
            {role: _unpacked(text) for role, text in fields["columns"].items()},
            restored_options(fields["options"], Path("tally")),
            None if fields["labels"] is None else _unpacked(fields["labels"]),
            msgspec.convert(fields["notes"], list[Note]),
            fields["by_sample"],
            fields.get("own", {}),
        )


class TallyFacts(msgspec.Struct):
    """What is kept of the tables of one part, for the notes of the whole.

    Attributes:
        heights: table -> rows; ``before``: the same before conditions.
        met: summary of the datum ids that both sides have.
        findings: facts of the rows, for tasks whose rows determine the metrics.
    """

    notes: list[Any]
    heights: dict[str, int]
    before: dict[str, int]
    met: Any
    recognised: dict[str, dict[str, str]]
    findings: Any = None


class Tally:
    """Tally of some of the datums; made by :meth:`TallyPlan.tally` and :func:`merge`.

    Small for counts and values; as large as their rows for metrics over ranked or scored rows,
    such as AP and ROC AUC.
    """

    def __init__(
        self,
        plan: TallyPlan,
        facts: list[TallyFacts],
        pairs: dict[str, pl.DataFrame],
        tallies: Any,
        values: pl.DataFrame | None,
    ) -> None:
        self.plan = plan
        self._values = values
        self._facts, self._pairs, self._tallies = facts, pairs, tallies

    def __repr__(self) -> str:
        return f"Tally({len(self)} datums, plan {self.plan.fingerprint})"

    def __len__(self) -> int:
        """Number of datums."""
        return len(self._tallies.datums)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tally.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """Return the tally and its plan as bytes, which contain no code.

        Raises:
            OptionError: an own metric is not defined in a module.
        """
        self.plan._refuse_local()
        about = {
            "plan": base64.b85encode(self.plan._plain).decode(),
            "facts": msgspec.to_builtins(self._facts),
            "pairs": {side: _packed(frame) for side, frame in self._pairs.items()},
            "values": None if self._values is None else _packed(self._values),
        }
        buffer = io.BytesIO()
        stored.write(
            {stored.WHOLE: stored.timeless(self._tallies)},
            buffer,
            fingerprint=self.plan.fingerprint,
            about=about,
        )
        return buffer.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> Tally:
        """Read a tally that :meth:`to_bytes` wrote.

        Raises:
            ReadError: bytes that are cut off or altered.
            ResultError: bytes of something else, or of a newer version.
        """
        return _read(_Bytes(data))

    def summarise(self) -> Scorecard:
        """Return the numbers of these datums, as one run over their rows would.

        Raises:
            InputError: the two sides have no datum in common.
        """
        tally_plan, ready = self.plan, self.plan._ready
        plan, notes = tally_plan._plan, list(tally_plan._notes)
        heads = [msgspec.to_builtins(one) for one in self._facts]
        if (by_rows := plan.does.fitted_by_rows) is not None:
            findings: list[Any] = [
                msgspec.convert(one.findings, by_rows.findings) for one in self._facts
            ]
            plan, late_notes = planner.fitted_late(plan, by_rows.merge(findings))
            notes += late_notes
        merged = self._whole(ready)
        notes += check_common_ids(heads, ready)
        notes += planner.worth_telling(plan, notes_of(heads, ready, merged, tally_plan.options))
        if (late := plan.does.late_notes) is not None:
            notes = [note for note in notes if note.kind not in late.kinds]
            notes += late.notes(self._tallies, plan.settings, plan.needs)
        rows = merged_heights(heads, merged)
        card = card_of_tallies(
            plan,
            tally_plan.options,
            self._tallies,
            Threads(tally_plan.options.threads),
            messages_of(unanswered(plan, notes), self._facts[0].recognised),
            rows=rows,
            recognised=self._facts[0].recognised,
            sources=dict.fromkeys(rows, f"{len(self._facts)} parts"),
            facts={"parts": {"all": len(self._facts)}},
        )
        if self._values is not None:
            add_own(card, tally_plan.options, tally_plan._own, self._values)
            references = (one["reference"] for one in tally_plan._own.values())
            card.options = tally_plan.options.replace(
                metrics=(*(tally_plan.options.metrics or ()), *references)
            )
        return card

    def _whole(self, ready: Prepared) -> Whole:
        pairs, labels = dict(self._pairs), None
        if self.plan._labels is not None:
            labels = collect({LABELS: ready.sides[LABELS]}, {}, ready.plan)[0][LABELS]
            if pairs:
                pairs[LABELS] = both_sides.label_pairs(labels)
        return Whole(
            n=1,
            heights={},
            before=added(one.before for one in self._facts),
            blanks=first_rows(ready),
            pairs={side: frame.sort("label_key", "label_value") for side, frame in pairs.items()},
            labels=labels,
            notes=[],
            begins={},
            filled={},
            ahead=pl.DataFrame(),
        )


_Given = Tally | bytes | bytearray | memoryview | str | PathLike[str]
_TALLY = (Tally, bytes, bytearray, memoryview, str, PathLike)

# The public functions.


def plan(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    **named: Unpack[Named],
) -> TallyPlan:
    """Plan an evaluation in parts from samples or schemas of its tables.

    The task, the metrics, the columns and their types are decided here, once. Name the metrics if
    the rows of a sample do not have all that parts may have (tasks ``judged`` and ``values``).

    Args:
        predictions: a few rows, as :func:`evalengine.score` takes them; or the columns: a mapping
            of names to Polars dtypes, a Polars or an Arrow schema.
        ground_truths: the same.
        datums: the same, if parts come with a table of their datums.
        labels: table or list of declared classes, for all parts.
        options: options to start from; named ones take precedence.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        a plan, which can be pickled and sent to workers.

    Raises:
        InputError: columns break the contract of the task.
        OptionError: options that need all rows in one place.

    Example:
        >>> import evalengine as ee
        >>> import polars as pl
        >>> columns = {"datum_id": pl.Int64, "actual": pl.String, "predicted": pl.String}
        >>> plan = ee.plan(columns, metrics=["Accuracy"])
        >>> rows = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"], "predicted": ["a", "a"]})
        >>> tallies = [plan.tally(rows[:1]), plan.tally(rows[1:])]
        >>> ee.merge(tallies).summarise().value("Accuracy")
        0.5
    """
    parsed = make_options(options, **named)
    plain = Options()
    for name in _OF_ALL_ROWS:
        if getattr(parsed, name) != getattr(plain, name):
            raise OptionError(
                f"{option(name, getattr(parsed, name))}: parts are tallied on their own, so omit"
                " it, or score the tables in one run.",
                code="option_unfit",
                option=name,
            )
    if isinstance(parsed.training, TableObject) or isinstance(parsed.embedder, Encoder):
        name = "training" if isinstance(parsed.training, TableObject) else "embedder"
        raise OptionError(
            f"{name}: objects do not travel with tallies. Give a path or a name.",
            code="option_unfit",
            option=name,
        )
    if parsed.label_map is not None:  # a file may change, or be missing where tallies are read
        parsed = parsed.replace(label_map=_pairs_of(parsed.label_map))
    tables = Tables(_table(predictions), _table(ground_truths), _table(datums), labels)
    opened = open_tables(tables, parsed)
    task = opened.plan.task
    inputs, parsed = rewritten(opened.inputs, task, opened.options, of_part=True)
    if inputs is not opened.inputs:
        _refuse_numbered(opened.inputs.schemas, task, parsed)
    ready = prepare(inputs, task, parsed)
    refuse(named_problems(ready.sides), {r: s.source.description for r, s in ready.sides.items()})
    notes = early_notes(ready, parsed)
    heads = first_rows(ready, _SAMPLE_ROWS)
    by_rows = opened.plan.does.fitted_by_rows is not None
    if by_rows:
        fit, _ = planner.may_fit(opened.plan, _ahead(opened.plan, heads))
    else:
        fit, notes = fitted_to_heads(opened.plan, ready, heads, notes)
    dtypes, more_notes = common_dtypes(ready, heads, mapped=parsed.label_map is not None)
    notes += more_notes
    final = explicit_metrics(parsed.replace(task=task), fit)
    declared = inputs.sources.get(LABELS)
    blanks = {
        role: pl.DataFrame(schema={**schema, **_unified(ready.sides[role], dtypes[role])})
        for role, schema in inputs.schemas.items()
        if role != LABELS
    }
    result = TallyPlan(
        blanks,
        final,
        None if declared is None else declared.frame.collect(),
        notes,
        by_rows
        and opened.options.metrics is None
        and (not opened.own or is_open(task)),  # else own metrics are the only ones
        own_values.facts_of(opened.own),
    )
    read = prepare(inputs, task, final).sides
    for role, side in result._ready.sides.items():
        names = {name: str(expr) for name, expr in read[role].naming.exprs.items()}
        if names != {name: str(expr) for name, expr in side.naming.exprs.items()}:
            raise InputError(
                f"{_named(role)}: the rows of the sample decide how its columns are read. Convert"
                " them to their final types first, in the sample and in every part.",
                code="sample_decides",
                side=role,
            )
    return result


def tally(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    **named: Unpack[Named],
) -> Tally:
    """Tally some of the datums by a plan made from the same tables.

    For parts of one machine, whose columns are known to be the same; see :func:`plan` for others.
    Arguments as for :func:`plan`; schemas have no rows.
    """
    tally_plan = plan(
        predictions, ground_truths, datums=datums, labels=labels, options=options, **named
    )
    return tally_plan.tally(predictions, ground_truths, datums=datums)


def merge(tallies: Iterable[_Given] | _Given) -> Tally:
    """Merge tallies of disjoint sets of datums; the numbers equal those of one run, bit for bit.

    Args:
        tallies: tallies, their bytes, or files of those bytes. The order matters only if rows have
            no datum id: their numbers continue from tally to tally.

    Raises:
        InputError: an object that is no tally; a datum occurs in two tallies; an object or file
            of rows without datum ids is given twice.
        ResultError: none at all, tallies of different plans, or other bytes.
    """
    if isinstance(tallies, _TALLY) or not isinstance(tallies, Iterable):
        tallies = [tallies]
    parts: list[Tally] = []
    seen: dict[str | int, _Given] = {}  # kept, so that no other object gets their id
    for n, one in enumerate(tallies):
        if not isinstance(one, _TALLY):
            raise InputError(
                f"merge: tally {n} (from 0) is a {name_of(one)}. Give tallies, their bytes, or"
                " files of those bytes.",
                code="not_a_tally",
                value=n,
            )
        part = _opened(one)
        unnamed = part._tallies.datums.ids is None  # else its datums are found
        key = os.path.realpath(one) if isinstance(one, (str, PathLike)) else id(one)
        if unnamed and key in seen:
            raise InputError(
                f"merge: tally {n} (from 0) was given before, and its rows have no ids."
                " Give every tally once.",
                code="given_twice",
                value=n,
            )
        if unnamed:
            seen[key] = one
        parts.append(part)
    if not parts:
        raise ResultError("merge: there is no tally.", code="empty")
    first = parts[0]
    for n, part in enumerate(parts):
        if part.plan.fingerprint != first.plan.fingerprint:
            raise ResultError(
                f"merge: tally {n} was made by another plan than the first: other"
                f" {', '.join(_differences(first.plan, part.plan))}. Tally its rows by the same"
                " plan.",
                code="other_plan",
                value=n,
            )
    if len(parts) == 1:
        return first
    return Tally(
        first.plan,
        [facts for part in parts for facts in part._facts],
        distinct_pairs([part._pairs for part in parts]),
        planner.merge(first.plan._plan, [part._tallies for part in parts]),
        _merged_values(parts),
    )


def _merged_values(parts: list[Tally]) -> pl.DataFrame | None:
    """Return the values of own metrics by datum; rows without datum ids are numbered on."""
    frames, before = [], 0
    for part in parts:
        if part._values is None:
            return None
        shift = before if part._tallies.datums.ids is None else 0
        ids = pl.col("datum_id")
        frames.append(part._values.with_columns(ids + shift) if shift else part._values)
        before += len(part)
    return own_values.stacked(frames).sort("datum_id", maintain_order=True)


def _differences(one: TallyPlan, other: TallyPlan) -> list[str]:
    """Return what differs between two plans: options, columns or labels."""
    names = [name for name in FIELDS if getattr(one.options, name) != getattr(other.options, name)]
    names += ["columns"] * (
        {role: dict(frame.schema) for role, frame in one._blanks.items()}
        != {role: dict(frame.schema) for role, frame in other._blanks.items()}
    )
    if msgspec.json.decode(one._plain)["labels"] != msgspec.json.decode(other._plain)["labels"]:
        names.append("labels")
    names += ["own metrics"] * (one._own != other._own)
    return names or ["version"]


def _opened(source: _Given) -> Tally:
    if isinstance(source, Tally):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Tally.from_bytes(bytes(source))
    return _read(Path(source))


class _Bytes(io.BytesIO):
    """Bytes of a tally; the text is their name in messages."""

    def __str__(self) -> str:
        return "these bytes"


def _read(source: _Bytes | Path) -> Tally:
    with stored.opened(source) as file:
        about = file.head["about"]
        if "plan" not in about:
            raise ResultError(
                f"{source}: a tally without a plan, such as those of saved runs.", code="no_plan"
            )
        tally_plan = TallyPlan._from_plain(base64.b85decode(about["plan"]))
        if tally_plan.fingerprint != file.head["fingerprint"]:
            raise ResultError(
                f"{source}: made by evalengine {file.head['evalengine']}, and this is"
                f" {__version__}, whose plans differ. Tally these rows again.",
                code="other_plan",
                value=file.head["evalengine"],
            )
        (tallies,) = file.load([stored.WHOLE])
        return Tally(
            tally_plan,
            msgspec.convert(about["facts"], list[TallyFacts]),
            {side: _unpacked(text) for side, text in about["pairs"].items()},
            tallies,
            None if about.get("values") is None else _unpacked(about["values"]),
        )


# Rows against the plan.


def _plan_of(options: Options) -> planner.Plan:
    assert options.task is not None
    return planner.make_plan(options, options.task)


def _unified(side: Side, dtypes: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Return the columns of a CSV file that are read in the dtype of others."""
    return {
        name: dtype
        for column, dtype in dtypes.items()
        if side.source.text
        for name in side.naming.exprs[column].meta.root_names()
        if dtype == pl.String or side.schema[name] != pl.Boolean  # parts convert to integers
    }


def _ahead(plan: planner.Plan, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the values that decide about metrics; the columns, if a table has one per metric."""
    assert plan.does.fitted_by_rows is not None
    names = plan.does.fitted_by_rows.columns
    table = frames[TABLE]
    columns = table.select(name for name in names if name in table.columns)
    return columns.unique() if columns.width else table.clear()


def _as_planned(
    role: str, source: Source, schema: Mapping[str, pl.DataType], planned: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return the planned columns in their types.

    An empty part may have other types, since a table without rows often has none. If the plan has
    strings, integers of CSV files are read as strings, and numbers of classes by their names.
    """
    frame = source.frame
    empty = frame.head(1).collect().is_empty()
    if empty:
        return pl.LazyFrame(schema=planned)
    lost = [name for name in planned if name not in schema]
    if lost:
        raise _contradiction(
            role, f"column {lost[0]!r} of the plan is missing in {_named(role)}.", column=lost[0]
        )
    unplanned = [name for name in schema if name not in planned]
    if unplanned:
        raise _contradiction(
            role,
            f"{_named(role)}: the plan has no column {unplanned[0]!r}. Make the plan with it,"
            " or drop it from the part.",
            column=unplanned[0],
        )
    for name, dtype in planned.items():
        own, numbered = schema[name], within(schema[name])[1].is_integer()
        if numbered and within(dtype)[1] == pl.String and (names := classes_in(source, name)):
            frame = frame.with_columns(name_of_class(name, own, names))
            schema = {**schema, name: dtype}
    for name, dtype in planned.items():
        from_text = source.text and schema[name].is_integer() and dtype == pl.String
        if not from_text and not _fits(schema[name], dtype):
            raise _contradiction(
                role,
                f"column {name!r} of {_named(role)} has dtype {schema[name]}, and {dtype} in the"
                f" plan. {_way_to(dtype, name, schema[name])}",
                column=name,
                dtype=str(schema[name]),
            )
    return frame.select(pl.col(name).cast(dtype) for name, dtype in planned.items())


def _fits(dtype: pl.DataType, planned: pl.DataType) -> bool:
    """Return whether all values of a dtype exist in another: the conversion loses nothing."""
    if dtype == planned or dtype == pl.Null:
        return True
    if isinstance(planned, pl.List) and isinstance(dtype, (pl.List, pl.Array)):
        return _fits(dtype.inner, planned.inner)  # type: ignore[arg-type]
    if isinstance(planned, pl.Struct) and isinstance(dtype, pl.Struct):
        ours, theirs = ({f.name: f.dtype for f in one.fields} for one in (dtype, planned))
        return list(ours) == list(theirs) and all(_fits(ours[n], theirs[n]) for n in ours)  # type: ignore[arg-type]
    if dtype.is_integer() and planned.is_integer():
        return True  # out of range is refused when values are read
    if dtype.is_float() and planned == pl.Float64:
        return True
    texts = (pl.String, pl.Categorical, pl.Enum)
    return isinstance(dtype, texts) and isinstance(planned, (pl.String, pl.Categorical))


def _way_to(dtype: pl.DataType, name: str, own: pl.DataType) -> str:
    """Return what to do with a column of another type; casts of structs would drop fields."""
    if dtype.is_nested():
        return "Give every part the same type, or write the values as JSON text in all of them."
    way = f"Cast it: pl.col({name!r}).cast(pl.{dtype})"
    if own == pl.String and dtype.is_numeric():
        return f"{way}. If not all are numbers, make the plan with pl.String."
    return f"{way}."


def _contradiction(role: str, message: str, **facts: Any) -> InputError:
    return InputError(message, code="plan_contradicted", side=role, **facts)


def _named(role: str) -> str:
    return "the table" if role == TABLE else role.replace("_", " ")


def _table(value: Any) -> Any:
    """Return an empty table for a schema; anything else unchanged."""
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "empty_table"):
        return value.empty_table()
    kinds = value.values() if isinstance(value, Mapping) else ()
    if kinds and all(isinstance(one, str) for one in kinds):
        raise InputError(
            "a mapping of names to texts is no schema. Give Polars dtypes, such as"
            " {'datum_id': pl.Int64}, or a few rows.",
            code="not_a_table",
        )
    if kinds and all(isinstance(one, (pl.DataType, type)) for one in kinds):
        return pl.DataFrame(schema=value)
    return value


def _pairs_of(label_map: Any) -> dict[Any, Any]:
    """Return a label map in any form as old label to new label, with keys where it has them."""
    pairs = {}
    for row in read_label_map(label_map).iter_rows(named=True):
        old, new = (
            row[name] if row[key] is None else (row[key], row[name])
            for key, name in (("label_key", "label_value"), ("new_label_key", "new_label_value"))
        )
        pairs[old] = new
    return pairs


def _refuse_numbered(
    schemas: Mapping[str, Mapping[str, pl.DataType]], task: str, options: Options
) -> None:
    """Refuse sentences without ids: their numbers would begin anew in every part."""
    for role, schema in schemas.items():
        if role in (TABLE, PREDICTIONS, GROUND_TRUTHS):
            table = table_for(task, role)
            finder = Finder(schema, table.side, options.columns, table.names)
            (column,) = (one for one in table.columns if one.name == table.datum)
            if finder.find(column) is None:
                raise InputError(
                    f"{_named(role)}: sentences have no {table.datum}, and are numbered anew in"
                    " every part. Add such a column.",
                    code="column_missing",
                    side=role,
                    column=table.datum,
                )


def _packed(frame: pl.DataFrame) -> str:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return base64.b85encode(buffer.getvalue()).decode()


def _unpacked(text: str) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(base64.b85decode(text)))
