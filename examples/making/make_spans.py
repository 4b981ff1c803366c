"""Make the bundled example of spans: tagged sentences, and segments of videos.

    python examples/making/make_spans.py [FOLDER]

The tagger truncates every seventh entity, gives every ninth another type, and has a few false
positives. The detector moves the bounds of segments by up to a quarter of their length. Seeded.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

ENTITIES = {
    "PER": ["Ada Lovelace", "Marie Curie", "Alan Turing", "Grace Hopper"],
    "LOC": ["New York", "Paris", "Lake Geneva", "Oslo"],
    "ORG": ["World Bank", "Red Cross", "Acme", "North Sea Energy"],
}
WORDS = [
    "met",
    "said",
    "visited",
    "the",
    "report",
    "of",
    "yesterday",
    "in",
    "near",
    "about",
    "a",
    "meeting",
    "with",
    "plans",
    "for",
]
ACTIONS = ("jump", "throw", "run")


def sentences() -> list[list[tuple[str, str, str]]]:
    """Return 80 sentences: token, true tag, predicted tag."""
    chance = random.Random(7)
    out = []
    for _ in range(80):
        rows: list[tuple[str, str, str]] = []
        for _ in range(chance.randrange(3)):
            rows += [(chance.choice(WORDS), "O", "O") for _ in range(chance.randint(1, 4))]
            label = chance.choice([*ENTITIES])
            names = chance.choice(ENTITIES[label]).split()
            true = [f"{'I' if at else 'B'}-{label}" for at in range(len(names))]
            found = list(true)
            if chance.randrange(7) == 0:
                found[-1] = "O"
            if chance.randrange(9) == 0:
                other = chance.choice([one for one in ENTITIES if one != label])
                found = [tag.replace(label, other) for tag in found]
            rows += zip(names, true, found, strict=True)
        extra = "B-LOC" if chance.randrange(12) == 0 else "O"
        rows += [(chance.choice(WORDS), "O", extra), (".", "O", "O")]
        out.append(rows)
    return out


def conll(rows: list[list[tuple[str, str, str]]], column: int) -> str:
    """Return sentences with one of their columns of tags."""
    return "\n".join("".join(f"{row[0]}\t{row[column]}\n" for row in one) for one in rows)


def segments() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ActivityNet's ground truths and detections of 30 videos."""
    chance = random.Random(3)
    database, results = {}, {}
    for number in range(30):
        name, duration, annotations, found = f"v{number:02}", 90.0, [], []
        for start in range(5, 80, 20):
            if chance.random() < 0.3:
                continue
            label, length = chance.choice(ACTIONS), chance.uniform(4, 14)
            annotations.append({"label": label, "segment": [start, round(start + length, 2)]})
            if chance.random() < 0.85:
                moved = [chance.uniform(-0.25, 0.25) * length for _ in range(2)]
                ends = [round(start + moved[0], 2), round(start + length + moved[1], 2)]
                score = round(1 - (abs(moved[0]) + abs(moved[1])) / length * chance.random(), 3)
                found.append({"label": label, "score": score, "segment": ends})
        if chance.random() < 0.5:
            ends = [round(chance.uniform(0, 70), 2), 0.0]
            ends[1] = round(ends[0] + chance.uniform(2, 12), 2)
            score = round(chance.uniform(0.1, 0.7), 3)
            found.append({"label": chance.choice(ACTIONS), "score": score, "segment": ends})
        subset = ("validation", "training")[number % 10 == 9]
        database[name] = {"duration": duration, "subset": subset, "annotations": annotations}
        if subset == "validation":
            results[name] = found
    version = "VERSION 1.3"
    truth = {"database": database, "taxonomy": [], "version": version}
    return truth, {"version": version, "results": results, "external_data": {"used": False}}


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = sentences()
    for name, column in (("gold", 1), ("found", 2)):
        (folder / f"{name}.conll").write_text(conll(rows, column), encoding="utf-8")
    for name, made in zip(("activities", "detections"), segments(), strict=True):
        text = json.dumps(made, separators=(",", ":"))
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    home = Path(__file__).resolve().parents[1]
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else home / "spans")
