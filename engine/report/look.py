"""Display settings of tables: order, number of rows, number of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..schemas.errors import OptionError, did_you_mean
from ..schemas.wording import option

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from .grids import Grid, Row

ALL = "all"
VALUE, LABEL, SUPPORT = "value", "label", "support"


class Look(msgspec.Struct, frozen=True):
    """Display settings for tables of labels and slices.

    Attributes:
        sort: ``value`` (by the first number, worst first), ``label`` (by label or slice name),
            ``support`` (largest first), or a column title (worst first). None is the default order:
            labels with the worst last, slices with the worst first.
        top: maximum number of rows per table; 0 for all; None for the default.
        wide: show all columns and thresholds, whatever the terminal's width.
    """

    sort: str | None = None
    top: int | None = None
    wide: bool = False

    def usually(self) -> Look:
        """The same in the usual order."""
        return msgspec.structs.replace(self, sort=None)


USUAL = Look()


def look(sort: str | None = None, top: int | str | None = None, *, wide: bool = False) -> Look:
    """Validate display settings.

    Raises:
        OptionError: ``top`` is neither an integer >= 0 nor ``all``.
    """
    if isinstance(top, str):
        if top.lower() != ALL and not top.isdigit():
            raise OptionError(f"{option('top', top)}: write a number of rows, or {ALL}.")
        top = 0 if top.lower() == ALL else int(top)
    if top is not None and top < 0:
        raise OptionError(f"{option('top', top)}: write 0 or more; 0 is for every row.")
    return Look(sort, top, wide)


def arranged(card: Scorecard, grids: list[Grid], sort: str | None) -> list[Grid]:
    """Sort tables of labels or slices.

    Raises:
        OptionError: no table has such a column; the message lists the columns.
    """
    if sort is None:
        return grids
    known = {title.lower() for grid in grids for title in grid.columns}
    wanted = sort.lower()
    if grids and wanted not in (VALUE, LABEL, SUPPORT) and wanted not in known:
        titles = list(dict.fromkeys(title for grid in grids for title in grid.columns))
        every = [VALUE, LABEL, SUPPORT, *titles]
        raise OptionError(
            f"{option('sort', sort)}: no table has such a column.{did_you_mean(sort, every)} There"
            f" are {', '.join(every)}."
        )
    return [_sorted(card, grid, wanted) for grid in grids]


def _sorted(card: Scorecard, grid: Grid, wanted: str) -> Grid:
    titles = [title.lower() for title in grid.columns]
    key: Callable[[Row], Any]
    if wanted == LABEL:
        key = _by_name
    elif wanted == SUPPORT:
        key = _by_support
    else:
        at = 0 if wanted == VALUE else titles.index(wanted) if wanted in titles else None
        if at is None:
            return grid
        known = [one for row in grid.rows if (one := row.rows[at] if row.rows else None)]
        metric = known[0]["metric"] if known else grid.first
        sign = -1.0 if card.directions.get(metric) == "lower" else 1.0

        def key(row: Row) -> Any:
            value = row.numbers[at]
            return value is None, sign * (value or 0.0)

    return msgspec.structs.replace(grid, rows=sorted(grid.rows, key=key))


def _by_name(row: Row) -> Any:
    """Names as people sort them: numbers by value."""
    return [(0, float(name), "") if _number(name) else (1, 0.0, name) for name in row.names]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _by_support(row: Row) -> Any:
    support = row.support
    if isinstance(support, str):  # "5 of 60"
        support = float(support.split()[-1].replace(",", ""))
    return -(support or 0.0)
