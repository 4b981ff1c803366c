"""What codes stand for: datums with their slices, labels with their keys."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]


class Datums(msgspec.Struct, frozen=True):
    """The datums of a run; code i is row i.

    Attributes:
        id: unique ids in ascending order (numeric, or bytes of UTF-8).
        slices: one String column per ``by`` entry, aligned with ``id``; null where unknown.
        dataset: the dataset each datum belongs to, aligned with ``id``, or None.
    """

    id: pl.Series
    slices: pl.DataFrame
    dataset: pl.Series | None = None

    def __len__(self) -> int:
        return len(self.id)

    def groups(self, column: str) -> tuple[Array, list[str]]:
        """Group code of each datum, int32 [n] (-1 for none), and the groups' names."""
        values = self.slices[column]
        names = values.drop_nulls().unique().sort().to_list()
        if not names:
            return np.full(len(values), -1, np.int32), []
        codes = values.cast(pl.Enum(names)).to_physical().cast(pl.Int32).fill_null(-1)
        return codes.to_numpy(), names


class Labels(msgspec.Struct, frozen=True):
    """The labels of a run; code i is row i, sorted by key and value.

    Attributes:
        frame: label_key, label_value (integer or string) and label_name (null where unknown).
        key: int32 [n], code of each label's key.
        key_names: names of the keys, ascending.
    """

    frame: pl.DataFrame
    key: Array
    key_names: tuple[str, ...]

    def __len__(self) -> int:
        return self.frame.height

    @property
    def dtype(self) -> pl.DataType:
        """Dtype of label values."""
        return self.frame.schema["label_value"]

    @staticmethod
    def of(frame: pl.DataFrame) -> Labels:
        """From a frame of label_key, label_value, label_name, sorted and unique."""
        names = tuple(frame["label_key"].unique().sort().to_list())
        where = {name: i for i, name in enumerate(names)}
        key = np.array([where[k] for k in frame["label_key"].to_list()], np.int32)
        return Labels(frame, key, names)
