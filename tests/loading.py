"""Load checked rows of tables, as a run does."""

from typing import Any

from evalengine.ingest.frames import Frames, checked_frames
from evalengine.ingest.infer import infer_task, with_canonical_columns
from evalengine.ingest.opening import Tables, open_inputs
from evalengine.schemas.options import Options


def load_frames(
    predictions: Any,
    truths: Any = None,
    *,
    options: Options | None = None,
    task: str | None = None,
    **more: Any,
) -> Frames:
    """Read, recognise, filter and check all tables of a run."""
    inputs = open_inputs(Tables(predictions, truths, **more), options or Options())
    options = with_canonical_columns(inputs, options or Options())
    return checked_frames(inputs, options.task or task or infer_task(inputs, options), options)
