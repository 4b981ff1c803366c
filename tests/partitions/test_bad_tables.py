"""Invalid tables, which runs in buckets refuse with the message of a run in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets

import evalengine as ee

N = 60
ROW = pl.int_range(pl.len())
RNG = np.random.default_rng(0)
IDS = np.arange(N)
LABELED = pl.DataFrame({"datum_id": IDS, "label_value": np.array(["a", "b", "c"])[IDS % 3]})
SCORED = LABELED.with_columns(score=pl.Series(RNG.random(N)))
CORNERS = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
BOXES = LABELED.with_columns(**{name: pl.lit(value) for name, value in CORNERS.items()})
RUN = pl.DataFrame({"query_id": IDS // 6, "doc_id": IDS % 6, "score": RNG.random(N)})
GUESSED = pl.DataFrame({"datum_id": IDS, "prediction": RNG.random(N)})

TASKS = {
    "detection": (BOXES.with_columns(SCORED["score"]), BOXES, "score", "xmax"),
    "classification": (SCORED, LABELED, "score", "score"),
    "retrieval": (RUN, RUN.select("query_id", "doc_id", relevance=1.0), "score", "relevance"),
    "regression": (
        GUESSED, GUESSED.select("datum_id", target=pl.col("prediction") + 0.1), "prediction",
        "target",
    ),
}  # fmt: skip
"""Task -> predictions, ground truths, the column of scores, another numeric column."""

Harm = Callable[[pl.DataFrame, str], pl.DataFrame]


def set_in(frame: pl.DataFrame, column: str, value: object) -> pl.DataFrame:
    changed = pl.when(ROW == N // 2).then(pl.lit(value)).otherwise(pl.col(column))
    return frame.with_columns(changed.alias(column))


def text(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return set_in(frame.with_columns(pl.col(column).cast(pl.String)), column, "oops")


HARMS: dict[str, Harm] = {
    "text in score": lambda frame, score: text(frame, score),
    "null ids": lambda frame, _: set_in(frame, frame.columns[0], None),
    "NaN": lambda frame, score: set_in(frame, score, float("nan")),
    "infinite": lambda frame, score: set_in(frame, score, float("inf")),
    "null scores": lambda frame, score: set_in(frame, score, None),
    "inverted boxes": lambda frame, _: set_in(frame, "xmax", -5.0),
    "missing column": lambda frame, score: frame.drop(score),
    "repeated rows": lambda frame, _: pl.concat([frame, frame[20:22]]),
    "dates for scores": lambda frame, score: frame.with_columns(
        pl.lit("2026-01-01").str.to_date().alias(score)
    ),
    "lists for scores": lambda frame, score: frame.with_columns(pl.concat_list(score).alias(score)),
    "structs for ids": lambda frame, _: frame.with_columns(pl.struct(frame.columns[0])),
}


def outcome(*given: object, **how: object) -> tuple[str, object]:
    """Return the error's class and message, or an empty string and the warnings."""
    try:
        card = ee.score(*given, **how)
    except ee.EvalengineError as error:
        return type(error).__name__, str(error)
    return "", card.warnings


@pytest.mark.parametrize(
    ("task", "ending"), [*((task, "parquet") for task in TASKS), ("detection", "csv")]
)
def test_the_same_refusals(
    task: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions, truth, score, number = TASKS[task]
    cases = [(harm(predictions, score), truth) for name, harm in HARMS.items()
             if name != "inverted boxes" or "xmax" in predictions.columns]  # fmt: skip
    cases += [(predictions, text(truth, number))] if number in truth.columns else []
    if ending == "csv":
        cases = [sides for sides in cases if not any(map(nested, sides))]
    in_buckets(monkeypatch)
    for sides in cases:
        paths = [tmp_path / f"{name}.{ending}" for name in "pg"]
        for path, side in zip(paths, sides, strict=True):
            getattr(side, f"write_{ending}")(path)
        whole = outcome(*paths, task=task)
        assert outcome(*paths, task=task, memory_limit="450MiB") == whole


def nested(frame: pl.DataFrame) -> bool:
    return any(dtype.is_nested() for dtype in frame.dtypes)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_rows_of_several_files(
    bounded: bool, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error names the file and the row within that file."""
    in_buckets(monkeypatch)
    good = TASKS["detection"][0]
    paths = [str(tmp_path / f"{i}.{ending}") for i in range(3)]
    for i, path in enumerate(paths):
        frame = good.with_columns(pl.col("datum_id") + i * N)
        frame = set_in(frame, "xmax", -5.0) if i == 1 else frame
        getattr(frame, f"write_{ending}")(path)
    limit = {"memory_limit": "1GB"} if bounded else {}
    with pytest.raises(ee.InputError, match=f"row {N + N // 2} ") as raised:
        ee.score(paths, BOXES, **limit)
    facts = raised.value.facts
    assert (facts["file"], facts["row_of_file"]) == (paths[1], N // 2)
    assert f"row {N // 2} of {paths[1]}" in str(raised.value)


def as_in_memory(folder: Path, *sides: pl.DataFrame, **how: object) -> list[tuple[str, str]]:
    """Codes and severities of the findings, equal in memory and through buckets."""
    paths = []
    for i, side in enumerate(sides):
        side.write_parquet(folder / f"{i}.parquet")
        paths.append(str(folder / f"{i}.parquet"))
    cards = [ee.score(*paths, **how), ee.score(*paths, memory_limit="1GB", **how)]
    assert "buckets" in cards[1].run
    whole, parts = (sorted((one.code, one.severity) for one in card.findings) for card in cards)
    assert parts == whole
    return whole


def test_no_row_after_filtering_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    table = pl.DataFrame({"datum_id": [1, 2], "metric": "COMET", "value": [0.5, 0.7]})
    codes = as_in_memory(tmp_path, table, where="value > 1")
    assert ("no_rows", "warning") in codes


def test_no_ground_truths_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    predictions = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "b"]})
    truths = predictions.with_columns(seen=pl.Series([True, False]))
    for condition, warned in (("seen", False), ("label_value = 'c'", True)):
        where = {"ground_truths": condition}
        codes = as_in_memory(tmp_path, predictions, truths, task="classification", where=where)
        assert (("no_ground_truths", "warning") in codes) is warned


def test_few_queries_without_judged_documents_are_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three, beyond the share that is a warning in many queries."""
    in_buckets(monkeypatch)
    run = pl.DataFrame(
        [{"query_id": q, "doc_id": d, "score": d / 9} for q in range(12) for d in range(9)]
    )
    judged = pl.DataFrame(
        [
            {"query_id": q, "doc_id": d if q > 1 else d + 90, "relevance": 1}
            for q in range(12)
            for d in range(9)
        ]
    )
    codes = as_in_memory(tmp_path, run, judged, task="retrieval", metrics=["nDCG"])
    assert "judged_elsewhere" not in dict(codes)


def test_notes_of_predictions_and_references_stay_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    found = pl.DataFrame({"datum_id": IDS, "text": ["北京"] * 2 + ["a b"] * (N - 2)})
    truth = found.with_columns(text=pl.Series(["北京"] + ["a b"] * (N - 1)))
    codes = as_in_memory(tmp_path, found, truth, task="text", metrics=["ROUGE1"])
    assert codes.count(("no_rouge_words", "note")) == 2


def test_ids_of_nulls_only_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    judged = RUN.select(query_id=pl.lit(None, pl.String), doc_id="doc_id", relevance=1)
    RUN.write_parquet(tmp_path / "run.parquet")
    judged.write_parquet(tmp_path / "judged.parquet")
    paths = tmp_path / "run.parquet", tmp_path / "judged.parquet"
    for limit in (None, "1GB"):
        with pytest.raises(ee.InputError):
            ee.score(*paths, task="retrieval", memory_limit=limit)


@pytest.mark.parametrize("where", ["score > 2", "datum_id > 1000"])
def test_areas_without_any_score_have_no_interval(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    how = {"task": "classification", "metrics": ["ROCAUC"], "intervals": 0.9, "draws": 20}
    as_in_memory(tmp_path, SCORED, LABELED, where=where, **how)
