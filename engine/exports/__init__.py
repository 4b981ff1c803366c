"""Output shapes of other tools, by name, in modules that are imported on use.

An exporter is a function of a scorecard. It reads only frames, so it also works on a stored result.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Export(NamedTuple):
    """One output shape.

    Attributes:
        target: ``module:function`` of this package; the function takes a scorecard.
        tasks: supported tasks.
        dialects: supported dialects; empty for all.
        needs: required tallies, whatever the metrics.
        live: ``module:function`` of a view and settings, for data that frames do not contain; used
            if the tally is in memory.
    """

    target: str
    tasks: tuple[str, ...]
    dialects: tuple[str, ...] = ()
    live: str | None = None
    needs: frozenset[str] = frozenset()


REGISTRY: dict[str, Export] = {
    "coco": Export(
        "coco:coco_from_frames",
        ("detection",),
        live="coco:coco_from_view",
        needs=frozenset({"iou_thresholds"}),
    ),
    "continuous_eval": Export("rows:to_continuous_eval", ("retrieval",)),
    "kitti": Export("coco:to_kitti", ("detection",), ("kitti", "kitti-r11")),
    "lvis": Export(
        "coco:lvis_from_frames",
        ("detection",),
        ("lvis", "lvis-fixed", "lvis-boundary"),
        live="coco:lvis_from_view",
        needs=frozenset({"iou_thresholds"}),
    ),
    "panoptic": Export("coco:to_panoptic", ("panoptic",)),
    "phoenix": Export("rows:to_phoenix", ("classification",)),
    "ragas": Export("rows:to_ragas", ("retrieval", "text", "judged")),
    "remem": Export("rows:to_remem", ("retrieval",)),
    "trec": Export("trec:to_trec", ("retrieval",)),
    "valor": Export(
        "valor:to_valor", ("detection", "classification", "segmentation", "text", "judged")
    ),
}
"""Name of the shape (``to_<name>()``) -> its exporter."""


def makers(
    task: str, dialect: str, run: tuple[Any, Any] | None = None
) -> dict[str, Callable[[Any], Any]]:
    """Return the exporters of a task and dialect, by name, not yet imported.

    Args:
        run: view of the whole set and settings, if the tally is in memory.
    """
    return {
        name: _later(export.target)
        if run is None or export.live is None
        else _live(export.live, run)
        for name, export in REGISTRY.items()
        if task in export.tasks and (not export.dialects or dialect in export.dialects)
    }


def who_has(name: str) -> str:
    """Words for the tasks and dialects that have an export, e.g. ``task detection``."""
    export = REGISTRY.get(name)
    if export is None:
        return "none yet"
    message = f"task {' or '.join(export.tasks)}"
    return message + (f" with dialect {' or '.join(export.dialects)}" if export.dialects else "")


def _live(target: str, run: tuple[Any, Any]) -> Callable[[Any], Any]:
    call = _later(target)
    return lambda card: call(*run)


def _later(target: str) -> Callable[..., Any]:
    module, function = target.split(":")

    def call(*args: Any) -> Any:
        return getattr(import_module(f".{module}", __name__), function)(*args)

    return call
