"""What a contract is: columns, the names recognised for them, and a table's rules."""

from __future__ import annotations

import msgspec

PREDICTIONS = "predictions"
GROUND_TRUTHS = "ground_truths"
TABLE = "table"
"""The role of one table that holds both sides."""
TRAINING = "training"
"""The role of what a model was trained on, for numbers that are held against it."""
DATUMS = "datums"
LABELS = "labels"

DEFAULT_LABEL_KEY = "label"
ROW = "__evalengine_row"
"""Beside the columns of a side that is part of a larger one: where its rows stand there, int64."""


class Column(msgspec.Struct, frozen=True):
    """One column of an input table.

    Attributes:
        name: canonical name.
        kind: ``id`` (integer or string), ``label`` (integer, string or boolean, or a list of
            those), ``items`` (a list of integers or strings), ``text``, ``texts`` (a string or a
            list of strings), ``text_list`` (the same, made a list), ``verdict`` (string, number or
            boolean, kept as text), ``number``, ``whole`` (an integer), ``flag``, ``list``, ``any``
            (no list), ``vector`` (a list or array of numbers), ``vectors`` (the same, or a list of
            several).
        about: one line for ``evalengine schemas``.
        aliases: names that users of other tools have for it, most common first; compared
            without case.
        nullable: whether a row may leave it out.
        low: smallest value allowed, for numbers.
        high: largest value allowed, for numbers; what is not 0 is at least one part of it.
        unique: whether a value may stand in one row only.
        single: whether single precision stays as it is.
        kin: names that may mean this column or something else: offered, never taken.
        otherwise: what else to do where it is missing.
        weak: aliases that other tables have for slices: no sign of the task in a table whose rows
            are named by another column of ids, unless what ``either`` names first is there.
        named: whether it stays unread too where nothing was asked for by name.
        way_out: what to do where its type does not fit, instead of what its kind says.
        numbered: a regular expression of own names that are such a column each; its one group that
            fits is a level, of 1 or in percent, which stands behind the name of each in the
            contract. Empty for one column.
        unclear: a regular expression of own names that may be such a column beside others.
        below: the column (of the same level) whose values these may not exceed.
        rising: whether values rise with the level; where they do not, that is told.
        sliced: whether it is read only where slices, clusters or metrics ask for it.
        steps: power of the steps of a series in training whose mean it is; 0 for other columns.
        lacking: what its nulls mean, where the user's table has no such column.
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
        required: columns that must be there.
        optional: columns used when they are there.
        key: columns that, as far as they are there, together may stand in one row only.
        any_of: columns of which at least one must be there.
        multilabel_key: the key instead, where the option ``multilabel`` is true.
        signs: columns that tell the task; it follows from a table that has one of them.
        unless: columns whose presence tells against the task.
        like: shapes of other tasks that its columns may be taken for.
        formats: source formats that tell the task.
        shape: what the columns make together beyond single columns, by the name under which
            ``inputs`` knows how to find and check it: ``boxes``, ``pair``; empty for nothing.
        wide: what ``score_columns`` replaces, where scores may stand in a column per label.
        datum: the column that names datums; once checked, every task's is called ``datum_id``.
        unit: word for one datum, and for several.
        lack: what to say first where none of ``any_of`` is there.
        either: columns of which both sides are read by the first that both have.
        instead: pairs of columns of which the second is read only where the first is not there.
        long: whether several rows of the one table make one datum.
        unread: columns that users may expect to count here and that do not, each with the reason;
            their presence is told.
        stand_ins: pairs of a required column and the one that may stand in for it: where a table
            has the second and not the first, the second is required instead.
        yields: whether all signs are needed to tell the task, and any other that the columns fit
            goes first: texts may stand beside labels and lists.
        all_signs: whether all signs are needed to tell the task, where one alone may stand in a
            table of another.
        filtered: whether the option ``where`` can leave rows of it out.
        multilabel_shape: the shape instead, where the option ``multilabel`` is true.
        values: what plain values of both sides are, row by row: pairs of a column of answers and
            one of truths, of which the first fits whose kinds the values have.
        beside: pairs of columns of which the first may be called by its kin, where nothing else is
            it and the second is there.
        together: columns that name a datum together, where none does so alone.
        found_by: of a task whose annotations are converted, the column that one side of them has
            if it is the predictions, and its other names; empty for other tasks.
        made_of: the side of the task that a command turns into this one; empty for none.
        made_by: that command, and the call in Python, with places for data and metrics.
        measured: columns that are signs only where their values are numbers with fractions; then
            tasks whose labels they would be give way.
        as_written: dialects that compare corners as files of Pascal VOC have them.
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
