"""Evaluation batch by batch, within a training loop."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack

import msgspec
import polars as pl

from .api import score
from .evaluation import planner
from .geometry.rasters import packed, unpacked
from .ingest.dtypes import within
from .ingest.files import Source
from .ingest.geometry import needed_fields
from .ingest.problems import Note, listing
from .ingest.relabel import classes_of
from .ingest.sources.objects import FORMAT as LABEL_MAPS
from .ingest.sources.objects import detached, empty_images, name_of, refuse_uneven
from .ingest.sources.table_formats import Names
from .ingest.sources.tables import open_source
from .ingest.values import differing_indexes, open_datums, paired_values, value_pair
from .outofcore.memory import BASE, bytes_of_limit
from .progress import Progress
from .schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from .schemas.errors import InputError, OptionError, ScratchError, invalid
from .schemas.named import Named, Task
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.tables import contracts
from .schemas.wording import option
from .scorecard.card import Scorecard

# Tables that grow by batches, in memory or, above a limit, on disk.


class Batch(NamedTuple):
    """One batch of one table.

    Attributes:
        first: offset of its datum numbers among all batches; 0 if its datums have ids.
    """

    rows: pl.DataFrame | pl.LazyFrame
    first: int


class Batches:
    """Tables by name, each a list of appended batches.

    Args:
        room: memory limit in bytes, above which batches are written to files; None for no limit.
        folder: for these files; by default the system's temporary folder.

    Attributes:
        datums: number of datums in batches that number them from 0.
    """

    def __init__(self, room: int | None = None, folder: str | None = None) -> None:
        self._room, self._folder = room, folder
        self._begin()

    def clear(self) -> None:
        """Forget all batches, and delete their files."""
        self._delete()
        self._begin()

    def _begin(self) -> None:
        self._tables: dict[str, list[Batch]] = {}
        self._columns: dict[str, dict[str, pl.DataType]] = {}
        self._bytes = self._written = self.datums = 0
        self._files = ExitStack()
        self._delete = weakref.finalize(self, self._files.close)
        self._home: Path | None = None

    def append(
        self,
        tables: Mapping[str, pl.DataFrame],
        *,
        datums: int = 0,
        own: Collection[str] = (),
        text: Collection[str] = (),
    ) -> None:
        """Append a batch of some tables.

        Args:
            tables: by name; each table has the same columns in every batch that has rows.
            datums: datums of this batch, numbered from 0 in column ``datum_id``.
            text: tables from CSV files, whose numbers may be strings in other batches.

        Raises:
            InputError: a table has other columns than in earlier batches; no table is changed then.
            ScratchError: the disk refuses a file.
        """
        for name, rows in tables.items():
            self._same_columns(name, rows, text=name in text)
        for name, rows in tables.items():
            first = 0 if name in own else self.datums
            self._tables.setdefault(name, []).append(Batch(rows, first))
            if rows.height:
                self._add_columns(name, _filled(rows))
            self._bytes += int(rows.estimated_size())
        self.datums += datums
        if self._room is not None and self._bytes > self._room:
            self._write()

    def extend(self, other: Batches, own: Collection[str] = (), text: Collection[str] = ()) -> None:
        """Append all batches of another instance; its datum numbers continue after these.

        Raises:
            InputError: a table has other columns there.
        """
        for name, columns in other._columns.items():
            self._same_columns(name, pl.DataFrame(schema=columns), rows=True, text=name in text)
        for name, batches in other._tables.items():
            shift = 0 if name in own else self.datums
            for rows, first in list(batches):
                frame = rows if isinstance(rows, pl.DataFrame) else rows.collect()
                self._tables.setdefault(name, []).append(Batch(frame, first + shift))
                self._bytes += int(frame.estimated_size())
            if name in other._columns:
                self._add_columns(name, other._columns[name])
            if self._room is not None and self._bytes > self._room:
                self._write()
        self.datums += other.datums

    @property
    def limits(self) -> tuple[int | None, str | None]:
        return self._room, self._folder

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __getstate__(self) -> dict[str, Any]:
        """Rows in files go along: the process that reads this may not see them."""
        tables = {
            name: [
                Batch(rows if isinstance(rows, pl.DataFrame) else rows.collect(), first)
                for rows, first in batches
            ]
            for name, batches in self._tables.items()
        }
        return {
            "room": self._room,
            "folder": self._folder,
            "tables": tables,
            "columns": self._columns,
            "datums": self.datums,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Batches.__init__(self, state["room"], state["folder"])
        self._tables, self._columns = state["tables"], state["columns"]
        self.datums = state["datums"]
        self._bytes = sum(
            int(rows.estimated_size())
            for batches in self._tables.values()
            for rows, _ in batches
            if isinstance(rows, pl.DataFrame)
        )

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan all rows of a table; batches in memory are merged into one.

        Raises:
            KeyError: no batch had it.
        """
        batches = self._tables[name]
        in_memory = [one for one in batches if isinstance(one.rows, pl.DataFrame)]
        if len(in_memory) > 1 and len(in_memory) == len(batches):
            rows = _joined(batches).collect()
            self._tables[name] = batches = [Batch(rows, 0)]
        return _joined(batches)

    def table(self, name: str) -> pl.DataFrame:
        """Return all rows of a table, in memory.

        Raises:
            KeyError: no batch had it.
        """
        return self.scan(name).collect()

    def _same_columns(
        self, name: str, frame: pl.DataFrame, *, rows: bool = False, text: bool = False
    ) -> None:
        expected = self._columns.get(name)
        if expected is None or not (frame.height or rows):
            return
        differences = [
            f"{word} {', '.join(map(repr, names))}"
            for word, names in (
                ("lack", [one for one in expected if one not in frame.columns]),
                ("have also", [one for one in frame.columns if one not in expected]),
            )
            if names
        ]
        if differences:
            raise InputError(
                f"{name.replace('_', ' ')}: these rows {' and '.join(differences)}, unlike those of"
                " earlier batches. Give the same columns in every batch.",
                code="columns_differ",
                side=name,
            )
        for column, dtype in (_filled(frame) if frame.height else frame.schema).items():
            forms = _form(dtype, text=text), _form(expected[column], text=text)
            if dtype != expected[column] and "" not in forms and forms[0] != forms[1]:
                raise InputError(
                    f"column {column!r}: this batch has {forms[0]}, and earlier ones have"
                    f" {forms[1]}. Give every batch in the same form.",
                    code="batches_differ",
                    side=name,
                    column=column,
                )

    def _add_columns(self, name: str, columns: Mapping[str, pl.DataType]) -> None:
        columns_before = self._columns.setdefault(name, {})
        columns_before |= {
            one: dtype
            for one, dtype in columns.items()
            if columns_before.get(one, pl.Null) == pl.Null
        }

    def _write(self) -> None:
        """Write the batches in memory to one file per table."""
        if self._home is None:
            from .outofcore.memory import scratch_folder

            self._home = self._files.enter_context(scratch_folder(self._folder, self._bytes))
        home = self._home
        for name, batches in self._tables.items():
            in_memory = [one for one in batches if isinstance(one.rows, pl.DataFrame)]
            if not in_memory:
                continue
            path = home / f"{name}-{self._written}.arrow"
            try:
                _joined(in_memory).collect().write_ipc(path)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise ScratchError(
                    f"{home}: batches of {name} cannot be written: {error}. Name a"
                    f" folder on a larger disk: {option('scratch', '/mnt/large')}."
                ) from error
            rest = [one for one in batches if not isinstance(one.rows, pl.DataFrame)]
            # Batches are in order: those in files are older.
            self._tables[name] = [*rest, Batch(pl.scan_ipc(path), 0)]
        self._written += 1
        self._bytes = 0


def _filled(frame: pl.DataFrame) -> dict[str, pl.DataType]:
    """Return the dtypes of columns; ``Null`` for those without a value, or of empty lists."""
    columns = dict(frame.schema)
    for one in frame:
        empty = isinstance(one.dtype, pl.Array) and 0 in one.dtype.shape
        if one.dtype == pl.List:
            empty = not one.list.len().sum()
        if empty or one.null_count() == len(one):
            columns[one.name] = pl.Null()
    return columns


def _form(dtype: pl.DataType, *, text: bool) -> str:
    """Describe values, structs and lists of them; empty for nulls, which may be anything.

    Args:
        text: of a CSV file: numbers and strings are single values.
    """
    depth, inner = within(dtype)
    kind = "objects" if isinstance(inner, pl.Struct) else "single values"
    if isinstance(inner, (pl.String, pl.Categorical, pl.Enum)) and not text:
        kind = "strings"
    elif (inner.is_numeric() or isinstance(inner, pl.Boolean)) and not text:
        kind = "numbers"
    elif inner.is_temporal() and not text:
        kind = "times"
    return "" if isinstance(inner, pl.Null) else "lists of " * depth + kind


def _joined(batches: list[Batch]) -> pl.LazyFrame:
    """Batches as one table, datums numbered through."""
    return pl.concat(
        [
            rows.lazy().with_columns(pl.col("^datum_id$") + first) if first else rows.lazy()
            for rows, first in batches
        ],
        how="diagonal_relaxed",
    )


# Scoring of batches as they arrive, for evaluation within a training loop.

VALUES = "values"
IDS = "ids"
_REPEATED = ("refuse", "first")
_SHARE = 4  # batches may take this fraction of a memory limit before scoring


class Form(msgspec.Struct, frozen=True):
    """Format of the batches of one table.

    Attributes:
        format: name of the reader's format, or ``values``.
        numbered: whether datums are positions in a list.
    """

    format: str
    numbered: bool


class Collector:
    """Predictions and ground truths of many batches, scored together.

    A batch is anything that :func:`evalengine.score` takes: lists of dicts of boxes, labels and
    scores, scores by class and classes, label maps, texts, tables. The numbers are bit-identical to
    one call with the rows of all batches. Collectors can be pickled and merged, so that each
    process can have one. They store rows, and label maps in compressed form.

    Args:
        task: one of the tasks; by default detected from the first batch.
        ground_truths: those of all batches, if they are known beforehand (a path, a table); batches
            then have only predictions.
        datums: table or list of all datum ids, see :func:`evalengine.score`.
        labels: table or list of declared classes.
        repeated: treatment of repeated ``ids``, as samplers pad the last batches of several
            processes: ``refuse``, or ``first``, which keeps only the first.
        options: options to start from; named ones take precedence.
        **named: any field of :class:`evalengine.Options`. Batches take a quarter of the
            ``memory_limit``; more are written to the ``scratch`` folder until they are scored.

    Raises:
        OptionError: an option, task, dialect or metric that does not exist.

    Example:
        >>> import evalengine as ee
        >>> collector = ee.Collector("detection", dialect="coco")
        >>> found = {"boxes": [[0, 0, 9, 9]], "labels": [1], "scores": [0.8]}
        >>> collector.add([found], [{"boxes": [[0, 0, 9, 8]], "labels": [1]}])
        >>> len(collector), collector.score().value("AP")
        (1, 0.7999999999999999)
    """

    def __init__(
        self,
        task: Task | None = None,
        /,
        *,
        ground_truths: Any = None,
        datums: Any = None,
        labels: Any = None,
        repeated: str = "refuse",
        options: Options | Mapping[str, Any] | None = None,
        **named: Unpack[Named],
    ) -> None:
        if repeated not in _REPEATED:
            raise OptionError(
                f"repeated={repeated!r}: write one of {', '.join(_REPEATED)}.",
                code="option_value",
                option="repeated",
                value=repeated,
            )
        self.options = make_options(options, **named)
        if task is not None:
            self.options = make_options(self.options, task=task)
        if self.options.task is not None:  # report a mistyped name before an epoch
            planner.make_plan(self.options, self.options.task)
        self.ground_truths, self.datums, self.labels = ground_truths, datums, labels
        self.repeated = repeated
        limit = self.options.memory_limit
        room = None if limit is None else max(0, bytes_of_limit(limit) - BASE) // _SHARE
        self._batches = Batches(room, self.options.scratch)
        self._forms: dict[str, Form] = {}
        self._notes: dict[str, Note] = {}
        self._classes: dict[str, dict[str, Names]] = {}
        self._rows = 0

    def __len__(self) -> int:
        """Datums that were added (images, label maps, values); rows of tables."""
        return self._batches.datums or self._rows

    def __repr__(self) -> str:
        word = "datums" if self._batches.datums else "rows"
        return f"Collector({self.options.task or 'any task'}: {len(self):,} {word})"

    def reset(self) -> None:
        """Forget all batches."""
        self._batches.clear()
        self._forms, self._notes, self._classes, self._rows = {}, {}, {}, 0

    def add(self, predictions: Any, ground_truths: Any = None, *, ids: Any = None) -> None:
        """Add a batch.

        Args:
            predictions: as :func:`evalengine.score` takes them, or one table of both sides. Tensors
                are copied to the CPU.
            ground_truths: the same; None if the collector was given all of them.
            ids: datum ids of lists and arrays, in the order of the batch. Without ids, datums are
                numbered 0, 1, 2, ... through all batches.

        Raises:
            InputError: unreadable input, another format or other columns than in earlier batches,
                or not one id per datum. The whole batch is discarded then.
        """
        if ground_truths is not None and self.ground_truths is not None:
            raise InputError(
                "this collector already has all ground truths: add predictions only.",
                code="truths_given",
            )
        if predictions is None:
            raise InputError("Collector.add: the predictions are missing.", code="sides_given")
        if _empty(predictions) and (ground_truths is None or _empty(ground_truths)):
            return
        sources = self._opened(detached(predictions), detached(ground_truths))
        forms = {
            role: Form(one.format, one.places is not None)
            for role, one in sources.items()
            if role not in (DATUMS, LABELS)
        }
        for role, form in forms.items():
            if self._forms.get(role, form) != form or (self._forms and role not in self._forms):
                text = ", ".join(f"{name} ({one.format})" for name, one in self._forms.items())
                raise InputError(
                    f"this batch is {role} ({form.format}), and earlier ones are {text}. Give every"
                    " batch in the same form.",
                    code="batches_differ",
                    side=role,
                )
        tables = {role: _collected(one) for role, one in sources.items()}
        classes = {role: classes_of(one) for role, one in sources.items() if tables[role].height}
        self._same_classes(classes)
        numbered = {one.places for one in sources.values()} - {None}
        datums = numbered.pop() or 0 if numbered else 0
        tables |= self._named(ids, datums if any(one.numbered for one in forms.values()) else None)
        csv = [role for role, one in sources.items() if one.text]
        self._batches.append(tables, datums=datums, own=_own(forms), text=csv)
        self._forms |= forms
        self._classes |= classes
        self._rows += tables[next(iter(forms))].height
        for one in sources.values():
            self._notes = {note.kind: note for note in one.notes} | self._notes

    def _same_classes(self, classes: Mapping[str, dict[str, Names]]) -> None:
        """Refuse names of classes in another order than those of earlier batches."""
        for role, names in classes.items():
            before = self._classes.get(role, names)
            differing = [one for one in names | before if names.get(one) != before.get(one)]
            if differing:
                raise InputError(
                    f"column {differing[0]!r}: classes have other names, or another order, than in"
                    " earlier batches. Give every batch the same names of classes, or the names"
                    " themselves in place of numbers.",
                    code="batches_differ",
                    side=role,
                    column=differing[0],
                )

    def _opened(self, predictions: Any, ground_truths: Any) -> dict[str, Source]:
        """A batch's tables by role, with the datums and labels that came along."""
        task = self.options.task
        table = None if task is None else contracts(task).get(TABLE)
        takes_values = task is None or (table is not None and bool(table.values))
        if ground_truths is not None and takes_values:
            pair = value_pair(predictions, ground_truths)
            if pair is not None:
                frame = pl.DataFrame([pair[0].alias(PREDICTIONS), pair[1].alias(GROUND_TRUTHS)])
                notes = differing_indexes(predictions, ground_truths)
                batch = Source(frame.lazy(), VALUES, VALUES, places=frame.height, notes=notes)
                return {VALUES: batch}
        if ground_truths is not None:
            predictions = empty_images(predictions, ground_truths)
            refuse_uneven(predictions, ground_truths)
        first = TABLE if ground_truths is None and self.ground_truths is None else PREDICTIONS
        sides = {first: predictions, GROUND_TRUTHS: ground_truths}
        sources = {
            role: open_source(
                thing,
                box_format=self.options.box_format,
                extras=needed_fields(self.options.iou_type, self.options.convert_to),
            )
            for role, thing in sides.items()
            if thing is not None
        }
        for one in sources.values():
            if one.shares or one.results is not None:
                raise InputError(
                    f"{one.description}: annotation files are scored as a whole, by score(...);"
                    " batches are tables, lists and arrays.",
                    code="not_a_table",
                )
        last = [*sources.values()][-1]
        if last.places is None:
            for role, along in ((DATUMS, last.datums), (LABELS, last.labels)):
                if along is not None:
                    sources[role] = Source(along.lazy(), last.description, last.format)
        return sources

    def _named(self, ids: Any, datums: int | None) -> dict[str, pl.DataFrame]:
        """Return the ids of a batch as a table, one row per datum."""
        if ids is None:
            if IDS in self._batches:
                raise InputError(
                    "ids: earlier batches have them. Give every batch its ids.",
                    code="batches_differ",
                    option="ids",
                )
            return {}
        if datums is None:
            raise InputError(
                "ids: the rows of this batch name their datums themselves.", code="ids_given"
            )
        if self._batches.datums and IDS not in self._batches:
            raise InputError(
                "ids: earlier batches have none. Give every batch its ids, or none.",
                code="batches_differ",
                option="ids",
            )
        frame = open_datums(ids).frame.collect()
        if frame.height != datums:
            raise InputError(
                f"ids: {frame.height:,} for {datums:,} datums. Give one for each.",
                code="lengths_differ",
                option="ids",
                count=frame.height,
                of=datums,
            )
        return {
            IDS: frame.rename({"datum_id": "id"})
            .with_row_index("datum_id")
            .cast({"datum_id": pl.Int64})
        }

    def merge(self, *others: Collector) -> Self:
        """Add the batches of other collectors with the same options; return this one.

        Datums without ids are numbered in this order, so the numbers depend on how batches were
        distributed; use ``ids`` to avoid that.

        Raises:
            InputError: other options or tables, or batches of another format.
        """
        for other in others:
            if not isinstance(other, Collector):
                raise InputError(
                    f"merge: a {name_of(other)} is not a collector.", code="collectors_differ"
                )
            if (other.options, other.repeated) != (self.options, self.repeated):
                raise InputError(
                    "merge: the other collector has other options.",
                    code="collectors_differ",
                    value="options",
                )
            for name in ("ground_truths", "datums", "labels"):
                if not _same(getattr(self, name), getattr(other, name)):
                    raise InputError(
                        f"merge: the other collector has other {name}.",
                        code="collectors_differ",
                        value=name,
                    )
            if self._forms and other._forms and self._forms != other._forms:
                raise InputError(
                    "merge: the other collector's batches are of another form.",
                    code="collectors_differ",
                    value="form",
                )
            if len(self) and len(other) and (IDS in self._batches) != (IDS in other._batches):
                raise InputError(
                    "merge: one collector's batches have ids, the other's have none.",
                    code="collectors_differ",
                    value="ids",
                )
            self._same_classes(other._classes)
            forms = self._forms | other._forms
            csv = [role for role, form in forms.items() if form.format == "csv"]
            self._batches.extend(other._batches, _own(forms), csv)
            self._forms = forms
            self._notes = other._notes | self._notes
            self._classes |= other._classes
            self._rows += other._rows
        return self

    def __add__(self, other: object) -> Collector:
        if not isinstance(other, Collector):
            return NotImplemented
        merged = object.__new__(type(self))
        merged.__dict__.update(self.__dict__)
        merged._batches = Batches(*self._batches.limits)
        merged._forms, merged._notes, merged._classes, merged._rows = {}, {}, {}, 0
        return merged.merge(self, other)

    def score(
        self,
        *,
        datums: Any = None,
        labels: Any = None,
        executor: Executor | str | None = None,
        address: str | None = None,
        progress: Progress | bool | None = None,
        report: str | Path | None = None,
        **named: Unpack[Named],
    ) -> Scorecard:
        """Score all batches. The batches are kept, and more may be added.

        Args:
            datums: as in :func:`evalengine.score`; replaces those of the collector.
            labels: as in :func:`evalengine.score`; replaces those of the collector.
            executor: see :func:`evalengine.score`.
            address: see :func:`evalengine.score`.
            progress: see :func:`evalengine.score`.
            report: see :func:`evalengine.score`.
            **named: options for this call; they take precedence over the collector's.

        Raises:
            InputError: no batches, a repeated id, or the tables break their contract.
            OptionError: an option that does not exist, or with which batches were already read.
        """
        if not self._forms:
            raise InputError("Collector.score: no batch was added yet.", code="empty")
        options = make_options(self.options, **named)
        if options.box_format != self.options.box_format:
            raise invalid(
                "box_format",
                str(options.box_format),
                "batches are read by it; give it to the Collector.",
            )
        labels = self.labels if labels is None else labels
        sources = self._sources(options, labels)
        for role, table in (
            (DATUMS, datums if datums is not None else self.datums),
            (LABELS, labels),
        ):
            if table is None:
                continue
            sources[role] = table
        truths = sources.get(GROUND_TRUTHS, self.ground_truths)
        first = sources.get(TABLE) or sources.get(PREDICTIONS)
        return score(
            first,
            truths,
            options=options,
            datums=sources.get(DATUMS),
            labels=sources.get(LABELS),
            executor=executor,
            address=address,
            progress=progress,
            report=report,
        )

    def _sources(self, options: Options, labels: Any) -> dict[str, Any]:
        """All batches as tables by role."""
        names = self._distinct_ids()
        notes = (*self._notes.values(), *self._left_out(names))
        if VALUES in self._forms:
            values = self._batches.table(VALUES)
            paired = paired_values(values[PREDICTIONS], values[GROUND_TRUTHS], labels, options)
            if paired is None:
                raise InputError(
                    f"these values are of no table of {option('task', options.task)}.",
                    code="task_unfit",
                    task=options.task,
                )
            for one in paired.values():
                if names is not None:
                    one.frame = _by_id(one.frame, names)
            next(iter(paired.values())).notes += notes
            return {**paired}
        sources: dict[str, Any] = {}
        for role, form in self._forms.items():
            frame = self._batches.scan(role)
            if form.numbered and names is not None:
                frame = _by_id(frame, names)
            if form.format == LABEL_MAPS:  # last, because joins in Polars mix up objects
                rows = frame.collect()
                frame = rows.with_columns(unpacked(rows["raster"])).lazy()
            message = f"{form.format} of {len(self):,} datums in batches"
            sources[role] = Source(frame, message, form.format, notes=notes)
            sources[role].classes = self._classes.get(role)
            notes = ()
            if form.numbered:
                every = pl.int_range(self._batches.datums, dtype=pl.Int64)
                sources[role].datums = pl.select(datum_id=every if names is None else names["id"])
        for role in (DATUMS, LABELS):
            if role in self._batches:
                sources[role] = self._batches.table(role).unique(maintain_order=True)
        return sources

    def _distinct_ids(self) -> pl.DataFrame | None:
        """Return number and id of each datum that counts; None if batches have no ids.

        Raises:
            InputError: a repeated id, unless the first is to be kept.
        """
        if IDS not in self._batches:
            return None
        names = self._batches.table(IDS)
        first = names["id"].is_first_distinct()
        again = names.filter(~first)["id"].unique(maintain_order=True)
        if len(again) and self.repeated == "refuse":
            raise InputError(
                f"ids: {len(again):,} of {int(first.sum()):,} datums were added more than once,"
                f" first {listing(again.head(3).to_list())}. Samplers of several processes repeat"
                " datums to fill their last batches: repeated='first' keeps one of each.",
                code="repeated_values",
                count=len(again),
                of=int(first.sum()),
            )
        return names.filter(first)

    def _left_out(self, names: pl.DataFrame | None) -> Sequence[Note]:
        n = 0 if names is None else self._batches.datums - names.height
        word = "datum" if n == 1 else "datums"
        message = f"skipped {n:,} {word} whose id was added before."
        return [Note("repeated_left_out", message, n)] if n else []


def _own(forms: Mapping[str, Form]) -> list[str]:
    """Return the tables whose datums have ids instead of numbers."""
    sides = (TABLE, PREDICTIONS, GROUND_TRUTHS)
    return [DATUMS, LABELS, *(one for one in sides if one in forms and not forms[one].numbered)]


def _empty(thing: Any) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, str) and not len(thing)


def _collected(source: Source) -> pl.DataFrame:
    rows = source.frame.collect()
    if source.format == LABEL_MAPS:
        return rows.with_columns(packed(rows["raster"].to_list()))
    return rows


def _by_id(frame: pl.LazyFrame, names: pl.DataFrame) -> pl.LazyFrame:
    """Replace datum numbers by ids; drop rows of other datums."""
    if "datum_id" not in frame.collect_schema():  # one row per datum
        frame = frame.with_row_index("datum_id").cast({"datum_id": pl.Int64})
    joined = frame.join(names.lazy(), on="datum_id", how="inner", maintain_order="left")
    return joined.drop("datum_id").rename({"id": "datum_id"})


def _same(one: Any, other: Any) -> bool:
    """Return whether two given tables are the same, also as copies in other processes."""
    if one is other or (isinstance(one, (str, Path)) and one == other):
        return True
    if isinstance(one, pl.DataFrame) and isinstance(other, pl.DataFrame):
        return one.equals(other)
    return type(one) is type(other) and pickle.dumps(one) == pickle.dumps(other)
