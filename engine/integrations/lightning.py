"""Lightning: a callback that collects results of validation and test steps, and logs numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from evalengine.collector import Collector
from evalengine.schemas.errors import InputError
from evalengine.scorecard.card import Scorecard

if TYPE_CHECKING:
    from evalengine.schemas.named import Task

PREDICTIONS, TARGETS, IDS = "preds", "target", "ids"


class Evaluate(Callback):  # type: ignore[misc]  # untyped if Lightning is not installed
    """Callback that scores all batches of a validation or test epoch together, over all processes.

    A step returns a dict with ``preds`` and ``target``, in any form that
    :class:`evalengine.Collector` takes, and optionally ``ids``. Samplers of several processes
    repeat datums to fill their last batches; with ``ids`` these count once.

    Args:
        task: of the collector.
        prefix: before the names of numbers, one each for validation and test.
        flat: names and selection of logged numbers: arguments of
            :meth:`evalengine.Scorecard.to_dict`.
        **options: of the collector.

    Attributes:
        cards: the last epoch's scorecards, by the number of their data loader; their numbers are
            exact, while Lightning rounds logged ones to float32.

    Example:
        >>> trainer = Trainer(callbacks=[Evaluate("detection", dialect="coco")])
    """

    def __init__(
        self,
        task: Task | None = None,
        *,
        prefix: tuple[str, str] = ("val/", "test/"),
        flat: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._new = partial(Collector, task, **{"repeated": "first", **options})
        self._new()  # refuses wrong options before training begins
        self.prefix, self.flat = prefix, dict(flat or {})
        self._collectors: dict[int, Collector] = {}
        self.cards: dict[int, Scorecard] = {}

    def _add(self, outputs: Any, loader: int) -> None:
        if not isinstance(outputs, Mapping) or not {PREDICTIONS, TARGETS} <= outputs.keys():
            kind = ", ".join(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise InputError(
                f"the step returned {kind or 'an empty dict'}: return a dict with {PREDICTIONS!r}"
                f" and {TARGETS!r}, and {IDS!r} if datums have ids.",
                code="column_missing",
                columns=[PREDICTIONS, TARGETS],
            )
        collector = self._collectors.setdefault(loader, self._new())
        collector.add(outputs[PREDICTIONS], outputs[TARGETS], ids=outputs.get(IDS))

    def _log(self, trainer: Any, module: Any, prefix: str) -> None:
        whole = gathered(self._collectors, trainer.world_size)
        self._collectors = {}
        if not whole:  # the sanity check
            return
        self.cards = {loader: one.score() for loader, one in sorted(whole.items())}
        numbers = {
            name if len(whole) == 1 else f"{name}/dataloader_idx_{loader}": value
            for loader, card in self.cards.items()
            for name, value in card.to_dict(prefix, **self.flat).items()
        }
        # All processes have the same numbers, so no reduction is needed.
        module.log_dict(numbers, sync_dist=False)

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin anew: an epoch may have been cut off."""
        self._collectors = {}

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep a batch; those of the sanity check are not results."""
        if not trainer.sanity_checking:
            self._add(outputs, dataloader_idx)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Score and log."""
        self._log(trainer, pl_module, self.prefix[0])

    on_test_epoch_start = on_validation_epoch_start
    on_test_batch_end = on_validation_batch_end

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Score and log."""
        self._log(trainer, pl_module, self.prefix[1])


def gathered(own: dict[int, Collector], processes: int) -> dict[int, Collector]:
    """Merge the collectors of all processes of ``torch.distributed``, in the order of ranks."""
    if processes == 1:
        return own
    import torch.distributed as distributed

    parts: list[Any] = [None] * processes
    distributed.all_gather_object(parts, own)
    merged: dict[int, Collector] = {}
    for part in parts:
        for loader, one in part.items():
            merged[loader] = merged[loader].merge(one) if loader in merged else one
    return merged
