"""Dialects and settings of agents: which calls count, and how arguments are compared."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.errors import invalid
from ...schemas.options import Options

RULES = ("exact", "ignore", "text")
"""Rules of arguments besides tolerances."""
_TOLERANCE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([-+]?\d+))?(%?)")


class AgentRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        members: precision and recall count calls that match any call of the other trajectory;
            otherwise each call matches at most one.
        distinct_tools: ToolCorrectness counts equal calls of a tool once.
        decimals: digits to which means are rounded; always None.
    """

    members: bool = False
    distinct_tools: bool = False
    decimals: int | None = None


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a run of agents.

    Attributes:
        k: no cut-offs.
        argument_rules: ``path`` or ``tool.path`` -> rule.
        tools: those whose use TrajectorySingleToolUse counts.
    """

    rules: AgentRules
    k: tuple[int | None, ...] = (None,)
    tool_arguments: str
    argument_rules: dict[str, str] = msgspec.field(default_factory=dict)
    tools: tuple[str, ...] = ()

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        values["argument_rules"] = values["argument_rules"] or {}
        for path, rule in values["argument_rules"].items():
            if rule not in RULES and tolerance(rule) is None:
                raise invalid(
                    "argument_rules",
                    {path: rule},
                    f"write {', '.join(RULES)}, or a tolerance such as 0.01 or 1%.",
                )
        values["tools"] = tuple(dict.fromkeys(values["tools"] or ()))


def tolerance(rule: str) -> tuple[Decimal, bool] | None:
    """Return a tolerance, and whether it is relative to the expected number; None for words."""
    if _TOLERANCE.fullmatch(rule) is None:
        return None
    relative = rule.endswith("%")
    reach = Decimal(str(float(rule.removesuffix("%"))))
    return (reach / (100 if relative else 1), relative) if reach.is_finite() else None


_METRICS = (
    "TrajectoryExactMatch",
    "TrajectoryInOrderMatch",
    "TrajectoryAnyOrderMatch",
    "TrajectoryPrecision",
    "TrajectoryRecall",
    "TrajectoryF1",
    "ToolCorrectness",
)

DIALECTS = of_task(
    "agents",
    Dialect(
        name="standard",
        about="calls are matched one to one; tool and arguments must be equal",
        rules=AgentRules(),
        metrics=_METRICS,
    ),
    Dialect(
        name="vertex",
        about="Vertex AI, as documented: precision and recall count calls that appear anywhere in"
        " the other trajectory",
        rules=AgentRules(members=True),
        metrics=_METRICS[:5],
    ),
    Dialect(
        name="deepeval-4.3",
        about="deepeval 4.3: ToolCorrectness counts equal calls of a tool once",
        rules=AgentRules(distinct_tools=True),
        metrics=("ToolCorrectness",),
    ),
)
"""The dialects of agents."""
