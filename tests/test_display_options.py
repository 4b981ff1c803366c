"""Options of tables: order, length and width."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.report.show import render, show, write_rich
from evalengine.report.summary import sections
from evalengine.report.tables import look
from evalengine.schemas.errors import OptionError

EXAMPLES = Path(__file__).parent.parent / "examples" / "detection"
TABLES = [str(EXAMPLES / f"{name}.parquet") for name in ("predictions", "groundtruths")]


@pytest.fixture(scope="module")
def card() -> ee.Scorecard:
    return ee.score(*TABLES, datums=str(EXAMPLES / "datums.parquet"), by=["weather", "camera"])


def table(card: ee.Scorecard, form: str = "table", **how: object) -> str:
    out = io.StringIO()
    show(card, form, out, look=look(**how))  # type: ignore[arg-type]
    return out.getvalue()


def names(text: str, header: str) -> list[str]:
    """Return the first words of the rows below a header, up to the next empty line."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.split()[:1] == [header])
    rows = []
    for line in lines[begin + 1 :]:
        if not line.strip():
            break
        rows.append(line.split()[0])
    return rows


def values(card: ee.Scorecard, metric: str) -> pl.DataFrame:
    whole = pl.col("slice").is_null() & pl.col("label_value").is_not_null()
    return card.metrics.filter(whole, metric=metric)


@pytest.mark.parametrize(
    ("sort", "metric"), [("value", "APAveragedOverIOUs"), ("AR", "AR"), ("ar", "AR")]
)
def test_the_worst_of_a_column_is_first(card: ee.Scorecard, sort: str, metric: str) -> None:
    expected = values(card, metric).sort("value")["label_value"].to_list()
    assert names(table(card, sort=sort), "label") == expected


def test_names_and_support(card: ee.Scorecard) -> None:
    rows = values(card, "AR")
    assert names(table(card, sort="label"), "label") == sorted(rows["label_value"])
    by_support = rows.sort("support", descending=True)["label_value"].to_list()
    assert names(table(card, sort="support"), "label") == by_support


def test_names_that_are_numbers_are_sorted_as_such() -> None:
    parts = [row for value in (10, 9, 1) for row in fabricated.of_label(value, 0.05 * value)]
    made = fabricated.card(parts, label=pl.Int32())
    assert names(table(made, sort="label"), "label")[:3] == ["1", "9", "10"]


def test_labels_with_numbers_of_any_length_are_sorted() -> None:
    long = "9" * 5_000
    order = ["part 9", "part 10", f"part {long}"]
    parts = [row for name in reversed(order) for row in fabricated.of_label(name, 0.5)]
    text = table(fabricated.card(parts), sort="label", top=2)
    assert re.findall(r"part \d+", text)[:2] == order[:2]


def test_top_applies_to_every_table_and_counts_the_rest(card: ee.Scorecard) -> None:
    text = table(card, top=2)
    assert (
        len(re.findall(r"\.\.\. and (\d+) more", text)) == 2
    )  # labels, weather; there are two cameras
    assert names(text, "weather")[:2] == names(table(card), "weather")[:2]
    assert "and 3 more rows" in table(card, "markdown", top=2)
    for every in ("all", 0, "ALL"):
        assert "more" not in table(card, top=every, wide=True).replace("more than", "")


def test_a_missing_column_is_refused(card: ee.Scorecard) -> None:
    with refused("unknown_name", OptionError, value="ARR"):
        table(card, sort="ARR")
    with pytest.raises(OptionError, match="number of rows"):
        look(top="many")
    with pytest.raises(OptionError, match="0 or more"):
        look(top=-1)


def test_wide_shows_every_column(card: ee.Scorecard) -> None:
    many = ee.score(*TABLES, metrics=["AP", "AR"], iou_thresholds=[i / 20 for i in range(10, 20)],
                    iou_thresholds_to_return=[i / 20 for i in range(10, 20)])  # fmt: skip
    assert "more column" in table(many)
    text = table(many, wide=True)
    assert "more column" not in text
    assert text.count("AP@") == 10


def test_the_command_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *TABLES, "--sort", "label", "--top", "1"]) == 0
    assert names(capsys.readouterr().out, "label")[0] == "bus"
    assert main(["score", *TABLES, "--sort", "nothing"]) == 2
    out, err = capsys.readouterr()
    assert "--sort nothing" in err
    assert len(names(out, "label")) == 5  # the result is saved nevertheless


def test_a_card_prints_itself(card: ee.Scorecard, capsys: pytest.CaptureFixture[str]) -> None:
    card.show(sort="label", top=1)
    assert names(capsys.readouterr().out, "label")[0] == "bus"


@given(width=st.integers(20, 250), sort=st.sampled_from([None, "value", "label", "AR"]),
       top=st.sampled_from([None, 0, 1, 3]))  # fmt: skip
def test_no_digit_is_cut_at_any_width(width: int, sort: str | None, top: int | None) -> None:
    from rich.console import Console

    made = ee.score(*TABLES, threads=1)
    whole = {f"{v:.4f}" for v in made.metrics["value"].drop_nulls()}
    console = Console(width=width, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(render(made, look=look(sort, top)))
    text = capture.get()
    assert max(map(len, text.splitlines())) <= width
    shown = set(re.findall(r"(?<![\d.@])\d\.\d+", text))
    assert {one for one in shown if len(one) > 4} <= whole
    write_rich(render(made), io.StringIO())


def test_labels_without_a_value_are_hidden_if_few_have_one() -> None:
    """A long table shows the 2 of 20 declared labels that occur, and counts the others."""
    known = [f"c{i:02}" for i in range(20)]
    card = ee.score(["c03", "c07"], ["c03", "c03"], labels=known)
    assert names(table(card), "label")[:3] == ["c07", "c03", "..."]
    assert "  ... and 18 more" in table(card)
    assert len(names(table(card, top="all"), "label")) == 20


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_wide_tables_have_no_trailing_blanks(
    card: ee.Scorecard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal, pipe = Terminal(), io.StringIO()
    for out in (terminal, pipe):
        show(card, "table", out, look=look(wide=True))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert "\x1b[" in terminal.getvalue()
    assert [line for line in plain.splitlines() if line != line.rstrip()] == []
    assert plain.splitlines() == [*pipe.getvalue().splitlines(), card.cite]


def scores(labels: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return a table of classification, and the option for its scores."""
    n = 60
    actual = [row % labels for row in range(n)]
    if labels == 2:
        return pl.DataFrame(
            {"actual": actual, "score": [row * 7 % 11 / 11 for row in range(n)]}
        ), {}
    columns = {
        f"p_{label}": [0.5 if (row * 7 + 3) % 10 % labels == label else 0.25 for row in range(n)]
        for label in range(labels)
    }
    table = pl.DataFrame({"actual": [f"c{label}" for label in actual], **columns})
    return table, {"score_columns": {f"c{label}": f"p_{label}" for label in range(labels)}}


def test_a_requested_metric_of_one_label_is_in_the_headline() -> None:
    table, named = scores(2)
    card = ee.score(table, metrics=["roc_auc", "f1", "accuracy"], **named)
    [section] = sections(card)
    values = {line.row["metric"]: line.value for line in section.headline}
    assert values["ROCAUC"] == card.value("ROCAUC")
    assert f"{card.value('ROCAUC'):.4f}" in str(card)
    assert card.to_dict()["ROCAUC"] == card.value("ROCAUC")


def test_requested_metrics_of_labels_are_printed_and_in_the_dict() -> None:
    table, named = scores(3)
    card = ee.score(table, metrics=["roc_auc", "f1"], **named)
    areas = {f"c{label}": card.value("ROCAUC", label_value=f"c{label}") for label in range(3)}
    assert [f"{area:.4f}" in str(card) for area in areas.values()] == [True] * 3
    assert {
        name.partition("/")[2]: value
        for name, value in card.to_dict().items()
        if name.startswith("ROCAUC")
    } == areas
    usual = ee.score(table, **named).to_dict()
    assert not any(name.startswith("ROCAUC") for name in usual)


def first_cells(table: str) -> list[str]:
    """Return the first cells of the rows of an HTML table."""
    return re.findall(r"<tr>\s*<t[dh] ?[^>]*>([^<]*)</t[dh]>(?!<th)", table)


@pytest.mark.parametrize(
    ("metric", "by", "id"), [("Recall", "labels", "labels-0"), ("Accuracy", "slices", "slices-0-0")]
)
def test_terminal_page_chart_and_notebook_have_one_order(
    metric: str, by: str, id: str, tmp_path: Path
) -> None:
    """The worst are first, undefined ones last; ties go by support, then name, numbers by value."""
    truths = ["b"] * 4 + ["a"] * 4 + ["10"] * 3 + ["9"] * 3 + ["c"] * 6 + ["e"] * 8
    message = [*truths]
    for wrong in (0, 4, 8, 11, 14, 15, 20, 21):  # 3 of 4, 3 of 4, 2 of 3, 2 of 3, 4 of 6, 6 of 8
        message[wrong] = "d"
    rows = pl.DataFrame(
        {"datum_id": range(28), "y_true": truths, "y_pred": message, "part": truths}
    )
    card = ee.score(rows, by="part", metrics=[metric])
    expected = ["c", "9", "10", "e", "a", "b"]
    undefined = ["d"] if by == "labels" else []
    header = "label" if by == "labels" else "part"
    assert names(table(card), header) == expected + undefined
    *_, notebook = card._repr_html_().partition(f">{header}</th>")
    assert first_cells(notebook.partition("</table>")[0]) == expected + undefined
    page = card.to_html(tmp_path / "a.html").read_text("utf-8")
    shown = re.search(rf'<table id="{id}".*?</table>', page, re.S)
    assert shown
    assert first_cells(shown[0]) == expected + undefined
    axes = getattr(card.plot, by)().axes[0]
    chart = [one.get_text().removeprefix("part=") for one in axes.get_yticklabels()]
    assert axes.yaxis_inverted()
    assert chart == expected + undefined


def test_leaderboards_have_the_best_first(tmp_path: Path) -> None:
    """Labels of preferences are models: ``z`` is the strongest, ``x`` the weakest."""
    pairs = [("x", "y", "model_b"), ("y", "z", "model_b"), ("x", "z", "model_b")] * 5
    pairs += [("x", "y", "model_a"), ("y", "z", "model_a"), ("x", "z", "model_a")]
    rows = pl.DataFrame(pairs, schema=["model_a", "model_b", "winner"], orient="row")
    card = ee.score(rows.with_row_index("datum_id"))
    assert names(table(card), "label") == ["z", "y", "x"]
    assert "best BradleyTerry: z" in repr(card)
    page = card.to_html(tmp_path / "a.html").read_text("utf-8")
    shown = re.search(r'<table id="labels-0".*?</table>', page, re.S)
    assert shown
    assert first_cells(shown[0]) == ["z", "y", "x"]
    chart = card.plot.labels().axes[0].get_yticklabels()
    assert [one.get_text() for one in chart] == ["z", "y", "x"]
