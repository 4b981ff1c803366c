"""A model card's ``model-index``: the results of the Hugging Face Hub, as data and as YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..schemas.errors import OptionError, invalid
from ..schemas.wording import option

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# https://github.com/huggingface/hub-docs/blob/main/modelcard.md

TASK_TYPES = {
    "detection": "object-detection",
    "segmentation": "image-segmentation",
    "panoptic": "image-segmentation",
    "tracking": "object-detection",
    "spans": "token-classification",
    "text": "text-generation",
    "judged": "text-generation",
    "agents": "text-generation",
    "retrieval": "text-retrieval",
    "regression": "tabular-regression",
}
"""Task -> its name on the Hub, if it has one."""
_KIND = re.compile(r"other|robotics|translation|summarization|[a-z0-9]+(-[a-z0-9]+)+")
"""Form of the Hub's names of tasks; it adds new ones now and then."""


class ModelIndex(dict[str, Any]):
    """``{"model-index": [...]}``, as ``huggingface_hub.ModelCardData`` reads it."""

    def to_yaml(self) -> str:
        """Return it as YAML, for the front matter of a README.md."""
        return "\n".join(_yaml(self)) + "\n"


def model_index(
    card: Scorecard,
    model_name: str,
    dataset: Mapping[str, str | None],
    *,
    task_type: str | None = None,
    task_name: str | None = None,
) -> ModelIndex:
    """See :meth:`evalengine.Scorecard.to_model_index`."""
    from ..report.summary import sections

    kind = task_type or TASK_TYPES.get(card.task)
    if kind is None:
        raise OptionError(
            f"task_type: the Hub has no task for {card.task}. Name one, such as"
            f" {option('task_type', 'text-classification')}.",
            code="option_value",
            option="task_type",
        )
    if not _KIND.fullmatch(kind):
        raise invalid(
            "task_type", kind, "write the Hub's name of a task, such as text-classification."
        )
    metrics: list[dict[str, Any]] = []
    for section in sections(card):
        for line in section.headline:
            if line.value is None:
                continue
            row = line.row
            args = {
                name: row[name]
                for name in ("lower", "upper", "support")
                if row.get(name) is not None
            }
            if not metrics:
                args["cite"] = card.cite
            metric = {"type": row["metric"].lower(), "name": line.title, "value": line.value}
            metrics.append({**metric, "args": args} if args else metric)
    result = {
        "task": _filled({"type": kind, "name": task_name}),
        "dataset": _filled(dataset),
        "metrics": metrics,
    }
    return ModelIndex({"model-index": [{"name": model_name, "results": [result]}]})


def _filled(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _yaml(value: Any) -> list[str]:
    """Lines of a mapping, list or plain value; texts are quoted as in JSON, which YAML reads."""
    if isinstance(value, Mapping):
        lines = []
        for name, item in value.items():
            inner = _yaml(item)
            nested = isinstance(item, (Mapping, list))
            lines += [f"{name}:", *(f"  {line}" for line in inner)] if nested else []
            lines += [] if nested else [f"{name}: {inner[0]}"]
        return lines
    if isinstance(value, list):
        return [
            f"{'- ' if i == 0 else '  '}{line}"
            for item in value
            for i, line in enumerate(_yaml(item))
        ]
    return [json.dumps(value, ensure_ascii=False)]
