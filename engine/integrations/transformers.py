"""Hugging Face's Trainer: ``compute_metrics`` of any task."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from evalengine.collector import Collector
from evalengine.ingest.sources.objects import as_array
from evalengine.schemas.errors import InputError, OptionError, unknown

Pair = tuple[Any, Any]
_PADDED = -100
"""The label of positions that do not count, in all of transformers."""


def compute_metrics(
    task: Literal["classification", "text", "detection"] = "classification",
    *,
    prefix: str = "",
    flat: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    image_processor: Any = None,
    **options: Any,
) -> Callable[..., dict[str, float]]:
    """Create a function for ``Trainer(compute_metrics=...)``, for whole sets or batches.

    - ``classification``: logits [n, classes], or [n, tokens, classes] with ignored labels of -100;
      they are converted to probabilities.
    - ``text``: token ids of ``predict_with_generate``, decoded by ``tokenizer``.
    - ``detection``: logits and boxes, converted to boxes in pixels by ``image_processor``; the
      Trainer then needs ``eval_do_concat_batches=False``, and targets ``orig_size``.

    With ``batch_eval_metrics=True`` batches are collected as they arrive, in little memory.

    Args:
        task: name of the task.
        prefix: before the names of numbers; the Trainer adds ``eval_`` itself.
        flat: selects the returned numbers: arguments of :meth:`evalengine.Scorecard.to_dict`.
        tokenizer: for ``text``.
        image_processor: for ``detection``.
        **options: of :class:`evalengine.Collector`.

    Raises:
        OptionError: an unsupported task, or a missing tokenizer or processor.

    Example:
        >>> trainer = Trainer(..., compute_metrics=compute_metrics("classification"))
    """
    if task not in _READERS:
        raise unknown("task of compute_metrics", task, _READERS)
    needed, read = _READERS[task]
    helper = {"tokenizer": tokenizer, "image_processor": image_processor}.get(needed)
    if needed and helper is None:
        raise OptionError(
            f"compute_metrics({task!r}): give {needed}=..., which its batches need.",
            code="option_missing",
            option=needed,
        )
    collector = Collector(task, **options)

    def compute(prediction: Any, compute_result: bool = True) -> dict[str, float]:
        output, truth = prediction.predictions, prediction.label_ids
        collector.add(*read(output, truth, helper))
        if not compute_result:
            return {}
        try:
            return collector.score().to_dict(prefix, **(flat or {}))
        finally:
            collector.reset()

    return compute


def _classes(predictions: Any, truth: Any, _: Any) -> Pair:
    """Convert logits to probabilities, without ignored tokens."""
    logits = as_array(
        predictions[0] if isinstance(predictions, (tuple, list)) else predictions
    ).astype(np.float64)
    labels = as_array(truth)
    if logits.shape[:-1] != labels.shape:
        raise InputError(
            f"logits of shape {logits.shape} and labels of shape {labels.shape}: a label for each"
            " row of logits is needed.",
            code="lengths_differ",
        )
    mask = labels != _PADDED
    logits, labels = logits[mask], labels[mask]
    if logits.shape[-1] == 1:
        raise InputError(
            "logits of one column: softmax makes 1 of each. Give the positive class's probability"
            " to ee.score(y_pred, y_true), or train with two labels.",
            code="single_column",
        )
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True), labels


def _texts(predictions: Any, truth: Any, tokenizer: Any) -> Pair:
    """Token ids to texts; padding of either side is not a token."""
    sides = []
    for ids in (predictions[0] if isinstance(predictions, tuple) else predictions, truth):
        tokens = as_array(ids)
        if tokens.dtype.kind not in "iu" or tokens.ndim != 2:
            raise InputError(
                f"texts come as token ids [n, tokens], not as {tokens.dtype} of {tokens.ndim}"
                " dimensions: set predict_with_generate=True.",
                code="wrong_dtype",
                column="tokens",
            )
        tokens = np.where(tokens == _PADDED, tokenizer.pad_token_id, tokens)
        sides.append(tokenizer.batch_decode(tokens, skip_special_tokens=True))
    return sides[0], sides[1]


def _boxes(predictions: Any, truth: Any, image_processor: Any) -> Pair:
    """Convert the batches of a detection model to lists of images in pixels."""
    batches = truth if truth and not isinstance(truth[0], Mapping) else [truth]
    outputs = predictions if batches is truth else [predictions]
    images, targets = [], []
    for output, batch in zip(outputs, batches, strict=True):
        sizes = [[int(side) for side in as_array(one["orig_size"])] for one in batch]
        logits, boxes = _detected(output)
        detections = image_processor.post_process_object_detection(
            _Output(_tensor(logits), _tensor(boxes)), threshold=0.0, target_sizes=_tensor(sizes)
        )
        images += [{key: one[key] for key in ("boxes", "labels", "scores")} for one in detections]
        targets += [_in_pixels(one, *size) for one, size in zip(batch, sizes, strict=True)]
    return images, targets


def _detected(output: Any) -> tuple[Any, Any]:
    """Logits and boxes of a model's output, with a loss dict before them or not."""
    if isinstance(output, Mapping):
        return output["logits"], output["pred_boxes"]
    arrays = [one for one in output if hasattr(one, "shape") and len(one.shape) == 3]
    boxes = next((place for place, one in enumerate(arrays) if place and one.shape[-1] == 4), None)
    if boxes is None:
        raise InputError("logits [n, queries, classes] and boxes [n, queries, 4] are needed.")
    return arrays[0], arrays[boxes]


def _in_pixels(target: Mapping[str, Any], height: int, width: int) -> dict[str, Any]:
    """Centres and sizes in shares of the image as corners in pixels."""
    x, y, w, h = as_array(target["boxes"]).reshape(-1, 4).astype(np.float64).T
    corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)
    one = {
        "boxes": corners * [width, height, width, height],
        "labels": as_array(target["class_labels"]),
    }
    # Their area is one of the resized image, and no area of the original's pixels.
    return one | {key: as_array(target[key]) for key in ("iscrowd",) if key in target}


class _Output:
    """Model output in the form that processors read."""

    def __init__(self, logits: Any, pred_boxes: Any) -> None:
        self.logits, self.pred_boxes = logits, pred_boxes


def _tensor(values: Any) -> Any:
    """Convert to a tensor if torch is imported, as processors require."""
    torch = sys.modules.get("torch")
    return values if torch is None else torch.as_tensor(np.asarray(values))


_READERS: dict[str, tuple[str, Callable[[Any, Any, Any], Pair]]] = {
    "classification": ("", _classes),
    "text": ("tokenizer", _texts),
    "detection": ("image_processor", _boxes),
}
