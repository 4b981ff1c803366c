"""Preference dialects, settings and layout."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.display import Entry, Layout


class PreferenceRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which references disagree; none so far."""


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a run of preferences.

    Attributes:
        k: no cut-offs.
    """

    rules: PreferenceRules
    k: tuple[int | None, ...] = ()


_METRICS = ("WinRate", "BradleyTerry", "Rank")

DIALECTS = of_task(
    "preferences",
    Dialect(
        name="standard",
        about="win rates against the field and Bradley-Terry strengths; ties are half a win each",
        rules=PreferenceRules(),
        metrics=_METRICS,
    ),
)
"""The dialects of preferences."""

_COLUMNS = tuple(Entry(name, name) for name in ("BradleyTerry", "WinRate", "Rank"))
LAYOUTS = {None: Layout((), _COLUMNS, _COLUMNS, best_first=True)}
"""Tables of models, the strongest first."""
