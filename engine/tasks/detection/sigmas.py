"""Sigmas of keypoints: disagreement of annotators at each point, relative to a person's size.

COCO's are those of pycocotools, divided by ten as there, which rounds. CrowdPose's are those of
xtcocotools and crowdposetools. ``even`` is 1 / k for k points, as in Ultralytics for other points
than COCO's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError
from ...schemas.wording import option
from ...tally.datums import Labels

_HUNDREDTHS = {
    "coco": "26 25 25 35 35 79 79 72 72 62 62 107 107 87 87 89 89",
    "crowdpose": "79 79 72 72 62 62 107 107 87 87 89 89 79 79",
}
NAMED = {
    name: tuple(int(number) / 100 / 10.0 for number in numbers.split())
    for name, numbers in _HUNDREDTHS.items()
}
"""Sigmas of known sets of points, in their order."""
EVEN = "even"

Sigma = float | str | tuple[float, ...]


class Sigmas(msgspec.Struct, frozen=True):
    """Sigmas by label.

    Attributes:
        usual: default for labels: numbers, one number for all points, or the name of a set; None
            for
            COCO's, which only fit 17 points.
        own: label value, as text -> its sigmas.
    """

    usual: Sigma | None = None
    own: Mapping[str, Sigma] = {}

    def variances(self, labels: Labels, n_points: Array) -> tuple[Array, Array]:
        """Return (2 sigma)^2 of every point.

        Args:
            n_points: int64 [labels], points of each label's rows; 0 if no row has any.

        Returns:
            int64 [labels], offset of each label; float64, the variances.

        Raises:
            InputError: the number of points differs from the number of sigmas.
        """
        at: list[int] = []
        parts, n = [np.zeros(0)], 0
        named = labels.frame["label_name"] if "label_name" in labels.frame.columns else None
        for i, value in enumerate(labels.frame["label_value"].to_list()):
            names = (str(value), "" if named is None else str(named[i]))
            own = next((self.own[name] for name in names if name in self.own), self.usual)
            at.append(n)
            if n_points[i]:
                parts.append((_sigma(own, int(n_points[i]), value) * 2) ** 2)
                n += parts[-1].size
        return np.array(at, np.int64), np.concatenate(parts)


def _sigma(given: Sigma | None, n: int, label: Any) -> Array:
    if given == EVEN:
        return np.full(n, 1 / n)
    if isinstance(given, float):
        return np.full(n, given)
    numbers = NAMED[given or "coco"] if given is None or isinstance(given, str) else given
    if len(numbers) != n:
        whose = "" if isinstance(given, tuple) else f"{given or 'coco'}'s "
        fits = [name for name, own in NAMED.items() if len(own) == n]
        ways = [option("keypoint_sigmas", name) for name in (*fits, EVEN, 0.05)]
        raise InputError(
            f"rows of label {label!r} have {n} keypoints, and keypoint_sigmas are"
            f" {whose}{len(numbers)}. Write {n} numbers, or {', '.join(ways[:-1])} or one number"
            f" for all such as {ways[-1]}."
        )
    return np.array(numbers, np.float64)


def read_sigmas(given: Any) -> Sigmas:
    """Parse the sigmas option and read its files.

    Args:
        given: None; a number; a name or the path of a JSON file; numbers; or a mapping of labels
            to any of these.

    Raises:
        OptionError: no such name or file, or a file with other content.
    """
    if isinstance(given, str) and given not in (*NAMED, EVEN):
        given = _file(given)
    if isinstance(given, Mapping):
        own = {str(label): _one(value) for label, value in given.items()}
        return Sigmas(None, {label: value for label, value in own.items() if value is not None})
    return Sigmas(_one(given))


def _one(given: Any) -> Sigma | None:
    if isinstance(given, str) and given not in (*NAMED, EVEN):
        given = _file(given)
    if given is None or isinstance(given, str):
        return given
    several = isinstance(given, (list, tuple))
    for one in given if several else (given,):
        if isinstance(one, bool) or not isinstance(one, (int, float)) or not 0 < one < np.inf:
            raise OptionError(f"keypoint_sigmas: {one!r} is not a sigma; write numbers above 0.")
    return tuple(map(float, given)) if several else float(given)


def _file(path: str) -> Any:
    try:
        found = json.loads(Path(path).expanduser().read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise OptionError(
            f"{option('keypoint_sigmas', path)}: {why}. Write {', '.join(NAMED)}, {EVEN}, numbers,"
            " or the path of a JSON file with a list of numbers or a mapping of labels to lists."
        ) from None
    if isinstance(found, str):
        said = option("keypoint_sigmas", path)
        raise OptionError(f"{said}: the file holds {found!r}, no numbers.")
    return found
