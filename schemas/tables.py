"""Input contracts of every task, by task and side.

``contract`` defines their structure; each task's tables are in a separate module.
"""

from __future__ import annotations

from .classification_tables import (
    CLASSIFICATION_GROUND_TRUTHS,
    CLASSIFICATION_PREDICTIONS,
    CLASSIFICATION_TABLE,
)
from .contract import Table
from .detection_tables import DETECTION_GROUND_TRUTHS, DETECTION_PREDICTIONS
from .errors import unknown
from .judged_tables import JUDGE_REFERENCES, JUDGE_ROWS, JUDGED_TABLE
from .panoptic_tables import PANOPTIC_GROUND_TRUTHS, PANOPTIC_PREDICTIONS
from .regression_tables import (
    REGRESSION_GROUND_TRUTHS,
    REGRESSION_PREDICTIONS,
    REGRESSION_TABLE,
    REGRESSION_TRAINING,
)
from .retrieval_tables import RETRIEVAL_GROUND_TRUTHS, RETRIEVAL_PREDICTIONS, RETRIEVAL_TABLE
from .segmentation_tables import SEGMENTATION_GROUND_TRUTHS, SEGMENTATION_PREDICTIONS
from .shared_tables import DATUM_TABLE, LABEL_TABLE
from .text_tables import TEXT_GROUND_TRUTHS, TEXT_PREDICTIONS, TEXT_TABLE
from .tracking_tables import TRACKING_DATUMS, TRACKING_GROUND_TRUTHS, TRACKING_PREDICTIONS

TABLES: tuple[Table, ...] = (
    DETECTION_PREDICTIONS,
    DETECTION_GROUND_TRUTHS,
    SEGMENTATION_PREDICTIONS,
    SEGMENTATION_GROUND_TRUTHS,
    PANOPTIC_PREDICTIONS,
    PANOPTIC_GROUND_TRUTHS,
    TRACKING_PREDICTIONS,
    TRACKING_GROUND_TRUTHS,
    TRACKING_DATUMS,
    CLASSIFICATION_PREDICTIONS,
    CLASSIFICATION_GROUND_TRUTHS,
    CLASSIFICATION_TABLE,
    RETRIEVAL_PREDICTIONS,
    RETRIEVAL_GROUND_TRUTHS,
    RETRIEVAL_TABLE,
    JUDGED_TABLE,
    JUDGE_ROWS,
    JUDGE_REFERENCES,
    TEXT_PREDICTIONS,
    TEXT_GROUND_TRUTHS,
    TEXT_TABLE,
    REGRESSION_PREDICTIONS,
    REGRESSION_GROUND_TRUTHS,
    REGRESSION_TABLE,
    REGRESSION_TRAINING,
    DATUM_TABLE,
    LABEL_TABLE,
)


def task_names() -> tuple[str, ...]:
    """The tasks that have contracts, in their order."""
    return tuple(dict.fromkeys(table.task for table in TABLES if table.task != "all"))


def contracts(task: str) -> dict[str, Table]:
    """Role to contract of every table a task knows."""
    return {table.side: table for table in reversed(TABLES) if table.task in (task, "all")}


def table_for(task: str, side: str) -> Table:
    """Return the contract of one side of one task.

    Raises:
        OptionError: no task of that name, or the task has no such table.
    """
    if task not in task_names():
        raise unknown("task", task, task_names())
    known = contracts(task)
    if side not in known:
        raise unknown(f"table of {task}", side, known)
    return known[side]
