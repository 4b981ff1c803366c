"""The plan: what a run will do."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import tasks
from ..dialects import Dialect
from ..metrics import Metric
from ..schemas.options import Options
from ..tasks.task import Task


class Plan(msgspec.Struct, frozen=True):
    """What will be done.

    Attributes:
        task: task name.
        dialect: the rule set.
        options: what the user asked for.
        settings: the same with every default filled in; its ``k`` holds the cut-offs of all
            metrics together.
        metrics: the metrics, in the order asked for.
        cuts: metric name -> its own cut-offs, ascending, of the metrics that have one; None, last,
            stands for the whole list.
        needs: what must be tallied for them, and for the report where it is made.
        named: whether the metrics are those that the user knows of; else finding chose them.
        paged: whether what the report draws from is tallied too.
        refused: metrics of the report that the tables cannot carry, with the reason.
        fingerprint: same for runs whose tallies may be merged.
    """

    task: str
    dialect: Dialect
    options: Options
    settings: Any
    metrics: tuple[Metric, ...]
    cuts: dict[str, tuple[int | None, ...]]
    needs: frozenset[str]
    fingerprint: str
    paged: bool = False
    named: bool = True
    refused: dict[str, str] = {}

    @property
    def does(self) -> Task:
        """What the task does."""
        return tasks.get(self.task)

    @property
    def cuts_of_needs(self) -> dict[str, set[int | None]]:
        """Need -> the cut-offs at which some metric wants it; None stands for the whole list."""
        found: dict[str, set[int | None]] = {}
        for metric in self.metrics:
            for need in metric.needs:
                found.setdefault(need, set()).update(self.cuts.get(metric.name, (None,)))
        return found

    def settings_of(self, metric: Metric) -> Any:
        """The settings that one metric is computed with: all of them, at its own cut-offs."""
        cuts = self.cuts.get(metric.name)
        if cuts is None or cuts == self.settings.k:
            return self.settings
        return msgspec.structs.replace(self.settings, k=cuts)
