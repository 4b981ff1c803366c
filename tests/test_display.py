"""Scorecards as shown to people and programs."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from typing import Any

import fabricated
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console

import evalengine as ee
from evalengine.cli import _FORMATS
from evalengine.report.show import render, show
from evalengine.report.text import FORMATS
from evalengine.schemas.errors import OptionError
from evalengine.scorecard.card import Scorecard


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(card: Scorecard, form: str = "table") -> str:
    out = io.StringIO()
    show(card, form, out)
    return out.getvalue()


def many(n: int, **more: Any) -> Scorecard:
    draw = random.Random(0)
    rows = fabricated.aggregates()
    for i in range(n):
        rows += fabricated.of_label(f"class {i:03d} " + "x" * draw.randrange(60), draw.random() / 2)
    return fabricated.card(rows, **more)


def test_the_command_offers_every_format() -> None:
    assert (*FORMATS, "github") == _FORMATS  # annotations, which no library call prints


class TestTable:
    def test_headline_first_then_the_worst_label(self) -> None:
        lines = shown(fabricated.card()).splitlines()
        assert [line.split() for line in lines if line.startswith("  ")] == [
            ["mAPAveragedOverIOUs", "0.5000"],
            ["mAP", "@", "IoU", "0.5", "0.7000"],
            ["mAP", "@", "IoU", "0.75", "0.4000"],
            ["mAR", "0.6000"],
            ["label", "APAveragedOverIOUs", "AP@0.5", "AP@0.75", "AR", "support"],
            ["dog", "0.2000", "0.3000", "0.1500", "0.2200", "10"],
            ["cat", "0.8000", "0.9000", "0.7500", "0.8200", "10"],
            ["owl", "–", "–", "–", "–", "0"],
        ]
        assert "– no ground truth: label owl" in lines

    def test_lower_may_be_better(self) -> None:
        card = fabricated.card()
        card.directions["APAveragedOverIOUs"] = "lower"
        text = shown(card)
        assert text.index("cat") < text.index("dog")

    def test_piped_is_plain_and_80_wide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "300")
        text = shown(many(50, notes=("words " * 40,)))
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80
        assert not [line for line in text.splitlines() if line != line.rstrip()]
        assert not set(text) & set("─│┌┃━")

    def test_a_terminal_gets_emphasis(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        out = Terminal()
        show(fabricated.card(), "table", out)
        assert "\x1b[1m" in out.getvalue()

    def test_of_many_labels_the_best_and_worst_are_shown(self) -> None:
        card = many(50)
        rows = [line.split() for line in shown(card).splitlines() if line.startswith("  class")]
        aps = card.metrics.filter(metric="APAveragedOverIOUs", label_key="label")["value"]
        worst_first = [f"{value:.4f}" for value in aps.sort()]
        assert [row[-5] for row in rows] == worst_first[:10] + worst_first[-5:]
        assert "... and 35 more" in shown(card)

    def test_a_few_labels_are_all_shown(self) -> None:
        text = shown(many(15))
        assert text.count("class ") == 15
        assert "more" not in text

    def test_defined_labels_are_shown_before_undefined_ones(self) -> None:
        rows = [row for i in range(30) for row in fabricated.of_label(f"seen {i}", i / 100)]
        rows += [row for i in range(30) for row in fabricated.of_label(f"unseen {i}", None)]
        text = shown(fabricated.card(rows))
        assert "... and 45 more" in text
        assert "0, unseen 1, unseen 2 and 27" in text
        assert text.count("  unseen") == 0

    def test_numbers_are_never_cut(self) -> None:
        rows = fabricated.aggregates()
        for i in range(20):
            rows += fabricated.of_label(1000 + i, 0.5)
        labels = [("label", 1000 + i, "a very long name " * 3) for i in range(20)]
        text = shown(fabricated.card(rows, label=pl.Int64(), labels=labels))
        assert max(map(len, text.splitlines())) <= 80
        line = next(line for line in text.splitlines() if "1003" in line)
        assert line.split()[-5:] == ["0.5000", "0.6000", "0.4500", "0.5200", "10"]
        assert "very long name" in line
        assert "…" in line

    def test_label_text_cannot_steer_the_terminal(self) -> None:
        text = shown(fabricated.card(fabricated.of_label("[red]a\x1b[31m\nb[/red]", 0.5)))
        assert "[red]a\\x1b[31m\\nb[/red]" in text

    def test_several_label_keys_make_sections(self) -> None:
        card = fabricated.card(
            [
                *fabricated.aggregates("animal"),
                *fabricated.of_label("cat", 0.5, "animal"),
                *fabricated.aggregates("colour"),
                *fabricated.of_label("red", 0.5, "colour"),
            ]
        )
        text = shown(card)
        places = [text.index(word) for word in ("key animal", "cat", "key colour", "red ")]
        assert places == sorted(places)

    def test_slices_after_labels(self) -> None:
        rows = [*fabricated.aggregates(), *fabricated.of_label("cat", 0.5)]
        for value, shift in (("rain", -0.1), ("sun", 0.1)):
            rows += fabricated.aggregates(shift=shift, slice="weather", slice_value=value)
        lines = shown(fabricated.card(rows)).splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("  weather"))
        assert lines[at].split() == [
            "weather",
            "mAPAveragedOverIOUs",
            "mAP@0.5",
            "mAP@0.75",
            "mAR",
            "support",
        ]
        assert lines[at + 1].split() == ["rain", "0.4000", "0.6000", "0.3000", "0.5000", "30"]
        assert lines[at + 2].split() == ["sun", "0.6000", "0.8000", "0.5000", "0.7000", "30"]

    def test_notes_come_last(self) -> None:
        text = shown(fabricated.card(notes=("read image_id as datum_id", "2 boxes of no area")))
        assert text.splitlines()[-2:] == [
            "note: read image_id as datum_id",
            "note: 2 boxes of no area",
        ]

    def test_metrics_outside_the_layout_are_shown_near_the_middle(self) -> None:
        rows = [
            {
                "metric": "F1",
                "label_key": "label",
                "label_value": label,
                "average": average,
                "iou_threshold": iou,
                "score_threshold": score,
                "value": iou * score + shift,
            }
            for iou in (0.5, 0.75)
            for score in (0.05, 0.25, 0.45, 0.95)
            for label, average, shift in (
                (None, "macro", 0.0),
                (None, "micro", 0.1),
                ("cat", None, 0.2),
            )
        ]
        lines = [line.split() for line in shown(fabricated.card(rows)).splitlines()]
        where = ["at", "IoU", "0.5,", "score", "0.45"]
        assert ["F1", "macro", "0.2250", *where] in lines
        assert ["F1", "micro", "0.3250", *where] in lines
        assert ["cat", "0.4250"] in lines
        assert where in lines

    def test_no_numbers(self) -> None:
        assert "no numbers" in shown(fabricated.card([]))

    def test_an_ascii_stream_gets_replacements(self) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")
        show(fabricated.card(notes=("naïve",)), "table", out)
        out.flush()
        assert b"owl                     -" in raw.getvalue()
        assert b"na?ve" in raw.getvalue()


class TestCoco:
    rows = tuple(
        {
            "metric": metric,
            "label_key": "label",
            "area": area,
            "max_detections": cap,
            "iou_threshold": iou,
            "value": value,
        }
        for metric, iou, area, cap, value in (
            ("mAR", None, "small", 100, 0.6),
            ("mAR", None, "all", 1, 0.3),
            ("mAR", None, "all", 100, 0.5),
            ("mAP", 0.5, "small", 100, 0.9),
            ("mAP", 0.5, "all", 100, 0.1 + 0.2),
            ("mAP", 0.75, "all", 100, 0.25),
            ("mAPAveragedOverIOUs", None, "all", 100, 0.2),
            ("mAPAveragedOverIOUs", None, "small", 100, 0.1),
        )
    )

    def test_familiar_names_and_every_digit(self) -> None:
        text = shown(fabricated.card(self.rows, dialect="coco"))
        assert [line.split() for line in text.splitlines() if line.startswith("  ")] == [
            ["AP", "0.2000", "0.2"],
            ["AP50", "0.3000", "0.30000000000000004"],
            ["AP75", "0.2500", "0.25"],
            ["APsmall", "0.1000", "0.1"],
            ["AR1", "0.3000", "0.3"],
            ["AR100", "0.5000", "0.5"],
            ["ARsmall", "0.6000", "0.6"],
        ]

    def test_the_same_rows_in_another_dialect(self) -> None:
        text = shown(fabricated.card(self.rows))
        assert "mAPAveragedOverIOUs, small  0.1000" in text
        assert "30000000" not in text


class TestFormats:
    card = fabricated.card()

    def test_json_contains_rows_and_notes(self) -> None:
        card = fabricated.card(notes=("a note", 'said "so"'), warnings=('said "so"',))
        result = json.loads(shown(card, "json"))
        assert result.pop("metrics") == card.metrics.to_dicts()
        assert result.pop("cite") == card.cite
        assert result == {"notes": ["a note", 'said "so"'], "warnings": ['said "so"']}

    def test_csv(self) -> None:
        rows = list(csv.DictReader(io.StringIO(shown(self.card, "csv"))))
        assert len(rows) == self.card.metrics.height
        assert list(rows[0]) == self.card.metrics.columns
        assert float(rows[0]["value"]) == 0.5

    def test_parquet(self) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw)
        show(self.card, "parquet", out)
        raw.seek(0)
        assert_frame_equal(pl.read_parquet(raw), self.card.metrics)

    def test_parquet_is_not_for_terminals(self) -> None:
        with pytest.raises(OptionError, match="--out"):
            show(self.card, "parquet", Terminal())

    def test_unknown(self) -> None:
        with pytest.raises(OptionError, match="'json'"):
            show(self.card, "jsn")

    def test_markdown(self) -> None:
        card = fabricated.card(
            [*fabricated.aggregates(), *fabricated.of_label("a|b", 0.5)], notes=("a note",)
        )
        text = shown(card, "markdown")
        assert "| mAP @ IoU 0.5 | 0.7000 |" in text
        assert "| a\\|b | 0.5000 | 0.6000 | 0.4500 | 0.5200 | 10 |" in text
        assert text.endswith(f"- note: a note\n- cite: `{card.cite}`\n")

    def test_markdown_of_all_labels(self) -> None:
        assert shown(many(50), "markdown").count("| class ") == 50

    def test_markdown_of_labels_that_are_markup(self) -> None:
        table = pl.DataFrame({"actual": ["![x](http://e/x.png)", "a|b", "[c](javascript:d)"]})
        said = shown(ee.score(table.with_columns(predicted="actual")), "markdown")
        assert r"| !\[x\](http://e/x.png) |" in said
        assert r"| a\|b |" in said
        assert r"| \[c\](javascript:d) |" in said


class TestPromptAndNotebook:
    def test_repr_is_short(self) -> None:
        text = repr(many(50))
        assert "mAP @ IoU 0.5        0.7000" in text
        assert "50 labels; worst APAveragedOverIOUs: " in text
        assert "frames: metrics" in text
        assert len(text.splitlines()) < 12

    def test_repr_without_values(self) -> None:
        assert "no numbers" in repr(fabricated.card([]))

    def test_html_is_escaped(self) -> None:
        card = fabricated.card(
            [*fabricated.aggregates(), *fabricated.of_label("<script>", 0.5)], notes=("a & b",)
        )
        text = card._repr_html_()
        assert "&lt;script&gt;" in text
        assert "<script>" not in text
        assert "a &amp; b" in text
        assert "0.7000" in text

    def test_html_of_many_labels(self) -> None:
        text = many(50)._repr_html_()
        assert "… 30 more" in text
        assert text.count("class ") == 20


class TestWidth:
    """At any width digits are complete: names are shortened first, then columns removed."""

    @pytest.mark.parametrize("width", [20, 24, 31, 40, 56, 72, 80, 100, 132, 200, 250])
    @pytest.mark.parametrize("n", [3, 40])
    def test_every_number_is_complete(self, width: int, n: int) -> None:
        rows = fabricated.aggregates()
        for i in range(n):
            rows += fabricated.of_label(f"class {i:03d}", 0.1 + i / 100, support=1000 + i)
            rows += fabricated.aggregates(slice="weather", slice_value=f"kind {i}", shift=i / 1000)
        card = fabricated.card(rows)
        whole = {f"{value:.4f}" for value in card.metrics["value"].drop_nulls()}
        whole |= {f"{value:,}" for value in card.metrics["support"].drop_nulls()}
        out = io.StringIO()
        console = Console(file=out, width=width, color_system=None, highlight=False)
        console.print(render(card))
        text = out.getvalue()
        assert max(map(len, text.splitlines())) <= width
        decimals = re.findall(r"(?<![\w@.])\d*\.\d+", text)
        assert decimals
        assert {one for one in decimals if len(one) > 4} <= whole
        for line in text.splitlines():
            if line.startswith(("  class ", "  kind ")) and "more" not in line:
                assert {one for one in line.split()[2:] if one[0].isdigit()} <= whole | {
                    f"{i:03d}" for i in range(n)
                } | {str(i) for i in range(n)}, line


def test_weights_of_rows_are_rounded() -> None:
    table = {"actual": ["a", "a", "b"], "predicted": ["a", "b", "b"], "weight": [0.1, 0.2, 2.0]}
    text = shown(ee.score(table, metrics=["Recall"]), "markdown")
    assert "| a | 0.3333 | 0.30 |" in text
    assert "| b | 1.0000 | 2 |" in text


def test_counts_are_integers_and_shares_are_not():
    predictions = pl.DataFrame({"datum_id": [1, 2], "predicted": ["a", "b"]})
    truth = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "a"]})
    card = ee.score(predictions, truth, task="classification", metrics=["Counts", "F1"])
    out = io.StringIO()
    show(card, "table", out)
    lines = {line.split()[0]: line.split() for line in out.getvalue().splitlines() if line.strip()}
    assert lines["a"] == ["a", "0.6667", "1", "0", "1", "0", "2"]
    assert lines["b"] == ["b", "0.0000", "0", "1", "0", "1", "0"]
