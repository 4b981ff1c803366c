"""Structure of a contract: columns, their recognised names, and rules of a table."""

from __future__ import annotations

import msgspec

PREDICTIONS = "predictions"
GROUND_TRUTHS = "ground_truths"
TABLE = "table"
"""Role of a single table that contains both sides."""
TRAINING = "training"
"""Role of a model's training data, for numbers relative to it."""
DATUMS = "datums"
LABELS = "labels"

DEFAULT_LABEL_KEY = "label"
ROW = "__evalengine_row"
"""Additional column of a side that is part of a larger one: row number in the whole, int64."""


class Column(msgspec.Struct, frozen=True):
    """One column of an input table.

    Attributes:
        name: canonical name.
        kind: ``id`` (integer or string), ``label`` (integer, string or boolean, or a list of
            those), ``items`` (a list of integers or strings), ``text``, ``texts`` (a string or a
            list of strings), ``text_list`` (the same, converted to a list), ``verdict`` (string,
            number or boolean, stored as text), ``number``, ``whole`` (an integer), ``flag``,
            ``list``, ``any`` (no list), ``vector`` (a list or array of numbers), ``vectors`` (the
            same, or a list of several).
        about: one line for ``evalengine schemas``.
        aliases: names in other tools, most common first; compared without case.
        nullable: rows may be null.
        low: smallest value allowed, for numbers.
        high: largest value allowed, for numbers; positive values must be at least 1 / high.
        unique: a value may occur in one row only.
        single: single precision is kept.
        kin: names that may mean this column or something else: suggested, never used automatically.
        otherwise: alternative if the column is missing.
        weak: aliases that other tables use for slices: not a sign of the task in a table whose rows
            are identified by another id column, unless the first name in ``either`` is present.
        named: ignored if not requested by name.
        way_out: advice if its type does not fit, instead of the advice for its kind.
        numbered: regular expression of user's names that are such a column each; its matching group
            is a level, a fraction or in percent, which is appended to the contract's name. Empty
            for
            a single column.
        unclear: regular expression of user's names that may be further such columns.
        below: column (of the same level) whose values these may not exceed.
        rising: values increase with the level; otherwise a note is added.
        sliced: read only if slices, clusters or metrics request it.
        steps: power of the steps of a training series of which it is the mean; 0 for other columns.
        lacking: meaning of its nulls, if the user's table has no such column.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    unique: bool = False
    single: bool = False
    kin: tuple[str, ...] = ()
    otherwise: str = ""
    weak: tuple[str, ...] = ()
    named: bool = False
    way_out: str = ""
    numbered: str = ""
    unclear: str = ""
    below: str = ""
    rising: bool = False
    sliced: bool = False
    steps: int = 0
    lacking: str = ""


class Table(msgspec.Struct, frozen=True):
    """The contract of one side of one task.

    Attributes:
        task: task name, or ``all``.
        side: one of the table roles.
        required: columns that must be present.
        optional: columns used if present.
        key: columns whose combination, as far as present, must be unique.
        any_of: columns of which at least one must be present.
        multilabel_key: the key if the option ``multilabel`` is True.
        signs: columns that identify the task: one of them suffices.
        unless: columns whose presence excludes the task.
        like: formats of other tasks for which its columns may be mistaken.
        formats: source formats that identify the task.
        shape: joint content of several columns, by the name under which ``inputs`` finds and checks
            it: ``boxes``, ``pair``; may be empty.
        wide: column replaced by ``score_columns``, if scores may have one column per label.
        datum: column that identifies datums; renamed to ``datum_id`` once checked.
        unit: word for one datum, and for several.
        lack: beginning of the message if all of ``any_of`` are missing.
        either: columns of which both sides use the first that both have.
        instead: pairs of columns; the second is read only if the first is missing.
        long: several rows of the single table form one datum.
        unread: columns that users may expect to count and that are ignored, each with the reason;
            their presence is reported.
        stand_ins: pairs of a required column and its substitute: if a table has only the second,
            the
            second is required instead.
        yields: all signs are needed to identify the task, and any other task that the columns fit
            has priority: texts may occur next to labels and lists.
        all_signs: all signs are needed to identify the task, since a single one may occur in tables
            of another.
        filtered: the option ``where`` can filter its rows.
        multilabel_shape: the shape if the option ``multilabel`` is True.
        values: columns for plain values of both sides, row by row: pairs of a column of answers and
            one of truths; the first pair whose kinds match the values is used.
        beside: pairs of columns; the kin names of the first are accepted if no other column
            qualifies and the second is present.
        together: columns that identify a datum jointly.
        found_by: for a task whose annotations are converted, the column that one side of them has
            if it is the predictions, and its other names; empty for other tasks.
        made_of: side of the task that a command converts to this one; may be empty.
        made_by: that command, and the call in Python, with placeholders for data and metrics.
        measured: columns that are signs only if their values are fractional numbers; then tasks for
            which they would be labels are excluded.
        as_written: dialects that compare unmodified corners of Pascal VOC files.
    """

    task: str
    side: str
    required: tuple[Column, ...]
    optional: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    multilabel_key: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    unless: tuple[Column, ...] = ()
    like: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    shape: str = ""
    wide: tuple[str, ...] = ()
    datum: str = "datum_id"
    unit: tuple[str, str] = ("datum", "datums")
    lack: str = "nothing was predicted"
    either: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    long: bool = False
    unread: tuple[tuple[Column, str], ...] = ()
    stand_ins: tuple[tuple[str, str], ...] = ()
    yields: bool = False
    all_signs: bool = False
    filtered: bool = True
    multilabel_shape: str = ""
    values: tuple[tuple[str, str], ...] = ()
    beside: tuple[tuple[str, str], ...] = ()
    measured: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    found_by: tuple[str, ...] = ()
    as_written: tuple[str, ...] = ()
    made_of: str = ""
    made_by: tuple[str, str] = ("", "")

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, required ones first."""
        return self.required + self.optional

    @property
    def names(self) -> frozenset[str]:
        """The canonical names of all columns."""
        return frozenset(column.name for column in self.columns)
