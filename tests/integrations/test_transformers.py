"""``compute_metrics``: with the arguments of Trainers, and in a Trainer if it can run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import refused

import evalengine as ee
from evalengine.integrations.transformers import compute_metrics

from .stand_ins import REAL

Make = Callable[..., Any]


@pytest.fixture(params=["stand-in", "transformers"])
def prediction(request: pytest.FixtureRequest) -> Make:
    """Constructor of transformers' ``EvalPrediction``, or of a stand-in."""
    if request.param == "stand-in":
        return lambda result, truth: SimpleNamespace(predictions=result, label_ids=truth)
    if not REAL["transformers"]:
        pytest.skip("transformers is not installed")
    from transformers.trainer_utils import EvalPrediction

    return EvalPrediction


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_classes_whole_and_in_batches(prediction: Make) -> None:
    rng = np.random.default_rng(0)
    logits, truth = rng.normal(size=(20, 3)).astype(np.float32), rng.integers(0, 3, 20)
    options = {"metrics": ["Accuracy", "mROCAUC"], "labels": ["a", "b", "c"]}
    compute = compute_metrics("classification", **options)
    whole = ee.score(softmax(logits.astype(float)), truth, **options)
    assert compute(prediction(logits, truth)) == whole.to_dict()
    assert compute(prediction((logits, "hidden states"), truth)) == whole.to_dict()
    assert compute(prediction(logits[:7], truth[:7]), compute_result=False) == {}
    assert compute(prediction(logits[7:], truth[7:]), compute_result=True) == whole.to_dict()
    assert all(type(one) is float for one in compute(prediction(logits, truth)).values())
    with refused("lengths_differ"):
        compute(prediction(logits, truth[:3]))
    with refused("single_column"):
        compute(prediction(logits[:, :1], truth))


def test_ignored_tokens(prediction: Make) -> None:
    rng = np.random.default_rng(1)
    logits, truth = rng.normal(size=(4, 6, 3)), rng.integers(0, 3, (4, 6))
    truth[:, 4:] = -100
    logits[:, 4:] = -100
    counted = truth.ravel() != -100
    whole = ee.score(softmax(logits.reshape(-1, 3)[counted]), truth.ravel()[counted])
    assert compute_metrics("classification", prefix="x_")(prediction(logits, truth)) == (
        whole.to_dict("x_")
    )


class Tokenizer:
    pad_token_id = 0
    words = ("<pad>", "the", "cat", "sat", "down")

    def batch_decode(self, ids: np.ndarray, skip_special_tokens: bool) -> list[str]:
        assert skip_special_tokens
        return [" ".join(self.words[one] for one in row if one) for row in ids]


def test_texts(prediction: Make) -> None:
    compute = compute_metrics("text", tokenizer=Tokenizer(), metrics=["ROUGE1", "BLEU"])
    result = np.array([[1, 2, 3, 0], [1, 2, -100, -100]])
    truth = np.array([[1, 2, 3, 4], [1, 2, -100, -100]])
    texts = ["the cat sat", "the cat"], ["the cat sat down", "the cat"]
    whole = ee.score(*texts, task="text", metrics=["ROUGE1", "BLEU"])
    assert compute(prediction(result, truth)) == whole.to_dict()
    with refused("wrong_dtype", column="tokens"):
        compute(prediction(result.astype(float), truth))
    with pytest.raises(ee.OptionError, match=r"give tokenizer=\.\.\."):
        compute_metrics("text")
    with refused("unknown_name", value="texts"):
        compute_metrics("texts")


class Processor:
    """DETR's rule: the likeliest class except the last, which is background; corners in pixels."""

    def post_process_object_detection(
        self, outputs: Any, threshold: float, target_sizes: Any
    ) -> list[dict[str, Any]]:
        result = []
        for logits, boxes, size in zip(
            np.asarray(outputs.logits), np.asarray(outputs.pred_boxes), target_sizes, strict=True
        ):
            scores = softmax(logits)[:, :-1]
            height, width = (int(side) for side in size)
            x, y, w, h = boxes.T
            corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)
            certain = scores.max(axis=1) > threshold
            result.append({"boxes": (corners * [width, height, width, height])[certain],
                          "labels": scores.argmax(axis=1)[certain],
                          "scores": scores.max(axis=1)[certain]})  # fmt: skip
        return result


def test_detections(prediction: Make) -> None:
    rng = np.random.default_rng(2)
    batches, targets = [], []
    for n in (2, 3, 1):
        boxes = rng.uniform(0.2, 0.6, (n, 5, 4))
        batches.append(({"loss": 1.0}, rng.normal(size=(n, 5, 4)), boxes))
        targets.append([
            {"orig_size": np.array([80, 120]), "boxes": boxes[i, :3], "area": np.ones(3),
             "class_labels": rng.integers(0, 3, 3), "iscrowd": np.zeros(3, int)}
            for i in range(n)
        ])  # fmt: skip
    processor = Processor()
    result, truth = [], []
    for (_, logits, boxes), batch in zip(batches, targets, strict=True):
        output = SimpleNamespace(logits=logits, pred_boxes=boxes)
        sizes = [one["orig_size"] for one in batch]
        result += processor.post_process_object_detection(output, 0.0, sizes)
        for one in batch:
            x, y, w, h = (one["boxes"] * [120, 80, 120, 80]).T
            corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)
            truth.append({"boxes": corners, "labels": one["class_labels"]})
    whole = ee.score(result, truth, dialect="coco").to_dict()
    assert whole["AP"] > 0
    compute = compute_metrics("detection", image_processor=processor, dialect="coco")
    assert compute(prediction(batches, targets)) == pytest.approx(whole, abs=1e-9)
    compute(prediction(batches[0], targets[0]), compute_result=False)
    compute(prediction(batches[1][1:], targets[1]), compute_result=False)
    assert compute(prediction(batches[2], targets[2])) == pytest.approx(whole, abs=1e-9)


@pytest.mark.skipif(not (REAL["transformers"] and REAL["torch"]), reason="torch is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by_batch", [False, True])
def test_a_trainer_evaluates(tmp_path: Any, by_batch: bool) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    torch.manual_seed(0)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": 3}
    model = BertForSequenceClassification(BertConfig(vocab_size=30, intermediate_size=8, **shape))
    rows = [{"input_ids": torch.randint(0, 30, (6,)), "labels": i % 3} for i in range(21)]
    arguments = TrainingArguments(str(tmp_path), per_device_eval_batch_size=4, use_cpu=True,
                                  report_to=[], batch_eval_metrics=by_batch)  # fmt: skip
    compute = compute_metrics("classification", metrics=["Accuracy", "mROCAUC"])
    trainer = Trainer(model, arguments, eval_dataset=rows, compute_metrics=compute)
    logged = trainer.evaluate()
    out = trainer.predict(rows) if not by_batch else None
    with torch.no_grad():
        ids = torch.stack([row["input_ids"] for row in rows])
        logits = model.eval()(ids).logits.numpy() if out is None else out.predictions
    truth = [row["labels"] for row in rows]
    whole = ee.score(softmax(logits.astype(float)), truth, metrics=["Accuracy", "mROCAUC"])
    for name, value in whole.to_dict("eval_").items():
        assert logged[name] == pytest.approx(value, abs=1e-6)


@pytest.mark.skipif(not (REAL["transformers"] and REAL["torch"]), reason="torch is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_processor_of_transformers() -> None:
    import torch
    from transformers import DetrImageProcessor

    size = torch.tensor([80, 120])
    boxes = torch.tensor([[[0.5, 0.5, 0.25, 0.5], [0.25, 0.25, 0.25, 0.25]]])
    logits = torch.tensor([[[4.0, 0, 0], [0, 4, 0]]])
    target = {"orig_size": size, "boxes": boxes[0], "class_labels": torch.tensor([0, 1])}
    compute = compute_metrics("detection", image_processor=DetrImageProcessor(), dialect="coco")
    arrays = ((logits.numpy(), boxes.numpy()),)
    logged = compute(SimpleNamespace(predictions=arrays, label_ids=[[target]]))
    assert logged["AP"] == pytest.approx(1)
