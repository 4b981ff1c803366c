"""Table formats beyond files: Delta, Iceberg, DuckDB, Lance, and Hugging Face's data sets.

Each is recognised by files in its folder, by its first bytes, or by an object's class. Libraries
are imported on demand; if one is missing, the error names the extra to install.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import polars as pl

from evalengine.schemas.errors import ReadError, not_installed

from ..files import Room, Source, refuse_beyond

_KEY = "huggingface"  # in the metadata of Arrow's schemas
Names = tuple[str, ...]
"""Names of classes, by number."""
_SPLITS, _ABOUT = "dataset_dict.json", "dataset_info.json"
_NUMBER = re.compile(r"\d+")
_DUCKDB_MARK = slice(8, 12)


class TableFormat(msgspec.Struct, frozen=True):
    """Table format.

    Attributes:
        library: the module that reads it, or empty.
        read: reads a path, and the text after ``::`` in it.
    """

    name: str
    title: str
    library: str
    extra: str
    detect: Callable[[str], bool]
    read: Callable[[str, str | None], pl.LazyFrame]


def open_table(address: str, room: Room | None = None) -> Source | None:
    """Open a table of one of these formats; None for other paths.

    Args:
        address: a local path; a table of a DuckDB file follows after ``::``.
    """
    path, sign, part = address.partition("::")
    path = os.path.expanduser(path.removeprefix("file://"))
    entry = next((one for one in _FORMATS if os.path.exists(path) and one.detect(path)), None)
    if entry is None:
        return None
    try:
        if entry.library:
            importlib.import_module(entry.library)
    except ImportError:
        raise ReadError(
            f"{address}: is {entry.title}. It needs {not_installed(entry.library, entry.extra)}.",
            code="package_missing",
            library=entry.library,
        ) from None
    if room is not None and os.path.isfile(path):
        refuse_beyond(room, [path], entry.name, address)
    try:
        frame = entry.read(path, part if sign else None)
        frame.collect_schema()
    except ReadError:
        raise
    except Exception as error:
        message = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ReadError(
            f"{address}: {entry.title} cannot be read: {message}.",
            code="file_unreadable",
            file=str(address),
        ) from error
    classes = _saved_classes(path) if entry.read is _saved else None
    return Source(frame, f"{entry.title} {address}", entry.name, classes=classes)


def of_schema(metadata: Mapping[Any, Any] | None) -> dict[str, Names]:
    """Return class names by column, from the metadata of an Arrow or Parquet schema.

    Args:
        metadata: keys and values, bytes or strings; the features are JSON under ``huggingface``.
    """
    text = metadata and (metadata.get(_KEY) or metadata.get(_KEY.encode()))
    if not text:
        return {}
    try:
        features = msgspec.json.decode(text)["info"]["features"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}
    return of_features(features) if isinstance(features, dict) else {}


def of_features(features: Mapping[str, Any]) -> dict[str, Names]:
    """Return class names by column, from features as dicts or objects, plain or in lists."""
    result = {}
    for name, feature in features.items():
        inner = _field(feature, "feature") or feature
        if isinstance(feature, list) and len(feature) == 1:
            inner = feature[0]
        names = _field(inner, "names")
        if names and (_field(inner, "_type") or type(inner).__name__) == "ClassLabel":
            result[name] = tuple(map(str, names))
    return result


def _field(feature: Any, name: str) -> Any:
    return feature.get(name) if isinstance(feature, Mapping) else getattr(feature, name, None)


def classes_of(thing: Any) -> dict[str, tuple[str, ...]]:
    """Names of classes by column, of another library's table object."""
    if isinstance(thing, dict) and len(thing) == 1:  # one split
        thing = next(iter(thing.values()))
    features = getattr(thing, "features", None)
    if isinstance(features, dict):
        return of_features(features)
    return of_schema(getattr(getattr(thing, "schema", None), "metadata", None))


def table_of(thing: Any) -> pl.LazyFrame | None:
    """Return the rows of another library's table object; None for other values."""
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(thing).__mro__}
    name = next((name for name in _OBJECTS if name in kinds), None)
    return None if name is None else _OBJECTS[name](thing)


def _inside(path: str, names: Iterable[str], displayed_path: str) -> list[str]:
    """Return the files that a table refers to, which must be in its folder; links are followed."""
    root = os.path.realpath(path)
    files = [
        os.path.join(path, unquote(urlsplit(name).path) if "://" in name else name)
        for name in names
    ]
    for name, file in zip(names, files, strict=True):
        if "\0" in file or os.path.commonpath([root, os.path.realpath(file)]) != root:
            raise ReadError(
                f"{displayed_path}: it names the file {name!r}, which is outside its folder and is"
                " not read. Copy the table as a whole."
            )
    return files


def _delta(path: str, part: str | None) -> pl.LazyFrame:
    import deltalake

    table = deltalake.DeltaTable(path)
    _inside(path, table.file_uris(), path)
    return pl.scan_delta(table)


def _iceberg(path: str, part: str | None) -> pl.LazyFrame:
    """Scan the newest metadata: by ``version-hint.text``, or the highest number."""
    folder = Path(path) / "metadata"
    hint = folder / "version-hint.text"
    matches = {file: _NUMBER.search(file.name) for file in folder.glob("*.metadata.json")}
    numbers = {file: int(match[0]) if match else -1 for file, match in matches.items()}
    files = sorted(matches, key=lambda file: (numbers[file], file.name))
    if hint.is_file():
        message = hint.read_text().strip()
        files = [
            file for file in files if file.name in (f"v{message}.metadata.json", message)
        ] or files
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(files[-1].resolve()))
    snapshot = table.current_snapshot()
    _inside(path, [table.location(), *([snapshot.manifest_list] if snapshot else [])], path)
    if snapshot is not None:
        _inside(path, [one.manifest_path for one in snapshot.manifests(table.io)], path)
    for task in table.scan().plan_files():
        named = [task.file.file_path, *(one.file_path for one in task.delete_files)]
        _inside(path, named, path)
    return pl.scan_iceberg(table)


_CLOSED: dict[str, Any] = {"enable_external_access": "false", "python_enable_replacements": "false"}


def _duckdb(path: str, part: str | None) -> pl.LazyFrame:
    import duckdb

    # A view can read any file and address, so views are excluded, and external access is disabled.
    with duckdb.connect(path, read_only=True, config=_CLOSED) as opened:
        rows = opened.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_type = 'BASE TABLE' ORDER BY ALL"
        ).fetchall()
        names = {
            name if schema == "main" else f"{schema}.{name}": (schema, name)
            for schema, name in rows
        }
        if part is None and len(names) == 1:
            part = next(iter(names))
        if part not in names:
            available = ", ".join(names) or "none (views are not read)"
            example = f" Write {path}::{next(iter(names))}." if names else ""
            question = "which table is meant" if part is None else f"no table {part!r} is there"
            raise ReadError(
                f"{path}: {question}; tables: {available}.{example}",
                code="table_missing",
                table=part,
            )
        quoted = ".".join('"' + one.replace('"', '""') + '"' for one in names[part])
        return pl.DataFrame(opened.sql(f"SELECT * FROM {quoted}")).lazy()


def _lance(path: str, part: str | None) -> pl.LazyFrame:
    import lance

    return pl.scan_pyarrow_dataset(lance.dataset(path))


def _one_saved(path: str) -> str:
    """Return the folder of the only split of a saved data set."""
    if os.path.isfile(os.path.join(path, _SPLITS)):
        splits = _json(os.path.join(path, _SPLITS)).get("splits", [])
        if len(splits) != 1:
            raise ReadError(
                f"{path}: a data set of the splits {', '.join(splits)}. Give one of them:"
                f" {os.path.join(path, splits[0] if splits else 'train')}.",
                code="split_missing",
                splits=splits,
            )
        [path] = _inside(path, splits, path)
    return path


def _saved_classes(path: str) -> dict[str, tuple[str, ...]]:
    """Names of classes by column, of the features of a saved data set."""
    path = _one_saved(path)
    [about] = _inside(path, [_ABOUT], path)
    features = _json(about).get("features") if os.path.isfile(about) else None
    return of_features(features) if isinstance(features, dict) else {}


def _saved(path: str, part: str | None) -> pl.LazyFrame:
    """Scan the output of ``save_to_disk``: Arrow streams, ordered by ``state.json``."""
    import pyarrow as pa

    path = _one_saved(path)
    [state] = _inside(path, ["state.json"], path)
    names = [one["filename"] for one in _json(state)["_data_files"]]
    tables = []
    for file in _inside(path, names, path):
        with pa.memory_map(file) as mapped, pa.ipc.open_stream(mapped) as rows:
            tables.append(rows.read_all())
    frame = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(frame, pl.DataFrame)  # of a table, not of a column
    return frame.lazy()


def _json(file: str) -> dict[str, Any]:
    return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Any])


def _is_duckdb(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(_DUCKDB_MARK.stop)[_DUCKDB_MARK] == b"DUCK"


def _is_saved(path: str) -> bool:
    one = all(os.path.isfile(os.path.join(path, name)) for name in ("state.json", _ABOUT))
    return one or os.path.isfile(os.path.join(path, _SPLITS))


def _contains(*names: str) -> Callable[[str], bool]:
    """Return a test for folders that have a match for each pattern."""
    return lambda path: os.path.isdir(path) and all(any(Path(path).glob(one)) for one in names)


_FORMATS = (
    TableFormat("delta", "a Delta table", "deltalake", "delta", _contains("_delta_log"), _delta),
    TableFormat(
        "iceberg",
        "an Iceberg table",
        "pyiceberg",
        "iceberg",
        _contains("metadata/*.metadata.json"),
        _iceberg,
    ),
    TableFormat("duckdb", "a DuckDB file", "duckdb", "duckdb", _is_duckdb, _duckdb),
    TableFormat(
        "lance", "a Lance table", "lance", "lance", _contains("_versions/*.manifest"), _lance
    ),
    TableFormat("saved", "a data set of Hugging Face", "", "", _is_saved, _saved),
)


def _one_split(splits: Any) -> pl.LazyFrame:
    if len(splits) != 1:
        names = list(splits)
        raise ReadError(
            f"a DatasetDict of the splits {', '.join(map(str, names))}: give one of them, such as"
            f" splits[{names[0] if names else 'test'!r}].",
            code="split_missing",
            splits=names,
        )
    return _of_dataset(next(iter(splits.values())))


def _of_dataset(dataset: Any) -> pl.LazyFrame:
    if not hasattr(dataset, "to_polars"):
        raise ReadError(
            f"a {type(dataset).__name__} is read once, row by row. Give"
            " datasets.Dataset.from_list(list(it)), or one split that is not streamed.",
            code="not_a_table",
        )
    frame: pl.DataFrame = dataset.to_polars()
    return frame.lazy()


_OBJECTS: dict[str, Callable[[Any], pl.LazyFrame]] = {
    "deltalake.DeltaTable": lambda table: pl.scan_delta(table),
    "pyiceberg.Table": lambda table: pl.scan_iceberg(table),
    "pyarrow.Dataset": lambda dataset: pl.scan_pyarrow_dataset(dataset),
    "datasets.Dataset": _of_dataset,
    "datasets.DatasetDict": _one_split,
    "datasets.IterableDataset": _of_dataset,
}
"""Classes, by module and name, to their readers; Lance's data set is a subclass of pyarrow's."""
