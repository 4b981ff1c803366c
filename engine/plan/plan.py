"""Plan of a run."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import tasks
from ..dialects import Dialect
from ..metrics import Metric
from ..schemas.options import Options
from ..tasks.task import Task


class Plan(msgspec.Struct, frozen=True):
    """Plan of a run.

    Attributes:
        settings: the options with every default filled in; its ``k`` contains the cut-offs of all
            metrics.
        metrics: the metrics, in the order requested.
        cuts: metric name -> its cut-offs, ascending, for metrics that have one; None, last, means
            the whole list.
        needs: required tallies of the metrics, and of the report if requested.
        named: whether the user chose the metrics; otherwise an analysis did.
        paged: whether the data of the report are tallied too.
        refused: metrics of the report that the tables do not allow, with the reason.
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
        """Definition of the task."""
        return tasks.get(self.task)

    @property
    def cuts_of_needs(self) -> dict[str, set[int | None]]:
        """Need -> cut-offs at which some metric uses it; None means the whole list."""
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
