"""Small COCO files for tests: results, annotations and a complete ground-truth file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Write = Callable[[str, Any], Path]


def writer(folder: Path) -> Write:
    """Return a function that writes text unchanged, and other values as JSON, into a folder."""

    def write(name: str, content: Any) -> Path:
        path = folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def result(image: Any = 1, category: Any = 7, score: float = 0.5, **more: Any) -> Json:
    return {"image_id": image, "category_id": category, "bbox": [1, 2.5, 3, 4], "score": score,
            **more}  # fmt: skip


def annotation(id_: Any = 1, image: Any = 1, category: Any = 7, **more: Any) -> Json:
    plain = {"id": id_, "image_id": image, "category_id": category, "bbox": [0.1, 0.2, 3, 4.5],
             "area": 11.25, "iscrowd": 0}  # fmt: skip
    return {**plain, **more}


def truths(*annotations: Json, **more: Any) -> Json:
    plain: Json = {
        "info": {"year": 2024},
        "images": [
            {"id": 1, "file_name": "a.jpg", "width": 640, "height": 480, "weather": "rain"},
            {"id": 2, "file_name": "b.jpg", "width": 64, "height": 48, "weather": "sun"},
        ],
        "annotations": list(annotations) or [annotation()],
        "categories": [{"id": 7, "name": "cat", "supercategory": "animal"}, {"id": 9, "name": "x"}],
    }
    return {**plain, **more}
