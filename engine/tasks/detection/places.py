"""Position and size of predictions in their images, as bins."""

from __future__ import annotations

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import count_of, listing
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tally.box_bins import places_of
from ..image_sizes import declared_sizes
from .encode import Batch
from .matching import Matched
from .settings import Settings

PLACES = "places"
"""Need of every prediction's position and size in its image."""
_SHOWN = 3


def placed(frames: Frames, batch: Batch, matched: Matched, settings: Settings) -> Matched:
    """Add the position bins of predictions to the match.

    Args:
        frames: the tables; ``datums`` declares height and width.
        settings: resolution of the bins.

    Raises:
        InputError: predictions on images of unknown size; the message names the first.
    """
    ranked = matched.ranked
    sizes = declared_sizes(frames, batch.datums)[ranked.datum]
    unknown = np.unique(ranked.datum[sizes[:, 0] == 0])
    if unknown.size:
        shown = [batch.datums.id[int(code)] for code in unknown[:_SHOWN]]
        raise InputError(
            f"calibration by position and size: {count_of(unknown.size, 'datum')} with predictions"
            f" and without height and width, first: {listing(shown, unknown.size)}. Give all of"
            f" them in {option('datums')}, or leave these metrics out."
        )
    boxes = matched.predictions.boxes[matched.order]
    place = places_of(boxes, sizes.astype(np.float64), settings.box_bins.boxes)
    return msgspec.structs.replace(matched, ranked=msgspec.structs.replace(ranked, place=place))
