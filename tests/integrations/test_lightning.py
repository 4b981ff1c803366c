"""The callback, in Lightning's loop if it is installed, and with stand-ins for its classes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import refused

import evalengine as ee

from .stand_ins import REAL, integration, module, standing_in

SCORES = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [0.375, 0.625], [0.625, 0.375]])
TRUTHS = np.array([0, 0, 1, 1, 0])


@pytest.fixture
def stand_in() -> Iterator[Any]:
    callbacks = module(Callback=object)
    with standing_in(
        lightning=module(), lightning__pytorch=module(), lightning__pytorch__callbacks=callbacks
    ):
        yield integration("lightning")


class Module:
    def __init__(self) -> None:
        self.logged: list[dict[str, float]] = []

    def log_dict(self, numbers: dict[str, float], sync_dist: bool) -> None:
        assert not sync_dist
        self.logged.append(numbers)


def step(first: int, last: int) -> dict[str, Any]:
    ids = list(range(first, last))
    return {"preds": SCORES[first:last], "target": TRUTHS[first:last], "ids": ids}


def test_an_epoch(stand_in: Any) -> None:
    callback = stand_in.Evaluate("classification", metrics=["Accuracy", "ROCAUC"])
    trainer, own = SimpleNamespace(world_size=1, sanity_checking=True), Module()
    callback.on_validation_batch_end(trainer, own, step(0, 2), None, 0)
    callback.on_validation_epoch_end(trainer, own)
    assert own.logged == []
    trainer.sanity_checking = False
    for _ in range(2):
        callback.on_validation_epoch_start(trainer, own)
        for place, (first, last) in enumerate(((0, 2), (2, 5), (0, 1))):  # one batch occurs twice
            callback.on_validation_batch_end(trainer, own, step(first, last), None, place)
        callback.on_validation_epoch_end(trainer, own)
    whole = ee.score(SCORES, TRUTHS, metrics=["Accuracy", "ROCAUC"])
    assert own.logged == [whole.to_dict("val/")] * 2
    assert callback.cards[0].metrics.equals(whole.metrics)
    for loader in (0, 1):
        callback.on_test_batch_end(trainer, own, step(loader, 5), None, 0, loader)
    callback.on_test_epoch_end(trainer, own)
    assert own.logged[-1]["test/Accuracy/dataloader_idx_0"] == whole.value("Accuracy")
    with refused("column_missing", columns=["preds", "target"]):
        callback.on_test_batch_end(trainer, own, {"loss": 1}, None, 0)
    with pytest.raises(ee.OptionError, match="dialct"):
        stand_in.Evaluate("classification", dialct="x")


TRAINING = """
import sys, torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset
import evalengine as ee
from evalengine.integrations.lightning import Evaluate

torch.manual_seed(0)
X, Y = torch.randn(41, 3), torch.randint(0, 3, (41,))
SET = TensorDataset(torch.arange(41), X, Y)

class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 3)
    def training_step(self, batch, i):
        return torch.nn.functional.cross_entropy(self.net(batch[1]), batch[2])
    def validation_step(self, batch, i):
        ids, x, y = batch
        return {"preds": self.net(x).softmax(1).bfloat16(), "target": y, "ids": ids}
    test_step = validation_step
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    processes, folder = int(sys.argv[1]), sys.argv[2]
    callback = Evaluate("classification", metrics=["Accuracy", "mROCAUC"])
    trainer = Trainer(max_epochs=2, callbacks=[callback], logger=CSVLogger(folder),
                      accelerator="cpu", devices=processes,
                      strategy="ddp" if processes > 1 else "auto", enable_progress_bar=False,
                      enable_model_summary=False, log_every_n_steps=1)
    net = Net()
    trainer.fit(net, DataLoader(SET, 4, shuffle=True), DataLoader(SET, 4))
    seen = trainer.validate(net, DataLoader(SET, 4), verbose=False)[0]
    scores = net.net(X).softmax(1).bfloat16().float().detach()
    whole = ee.score(scores, Y, metrics=["Accuracy", "mROCAUC"])
    assert callback.cards[0].metrics.equals(whole.metrics), (callback.cards[0], whole)
    for name, value in whole.to_dict("val/").items():
        assert abs(float(seen[name]) - value) < 1e-6, (name, seen)
    trainer.test(net, DataLoader(SET, 4), verbose=False)
    assert callback.cards[0].metrics.equals(whole.metrics)
    if trainer.is_global_zero:
        assert "val/Accuracy" in open(trainer.logger.log_dir + "/metrics.csv").readline()
        print("same numbers on", trainer.world_size)
"""


@pytest.mark.skipif(not (REAL["lightning"] and REAL["torch"]), reason="Lightning is not installed")
@pytest.mark.parametrize("processes", [1, 2])
def test_lightning_trains(tmp_path: Path, processes: int) -> None:
    (tmp_path / "training.py").write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "training.py", str(processes), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        timeout=300,
    )
    assert f"same numbers on {processes}" in done.stdout, done.stdout + done.stderr
