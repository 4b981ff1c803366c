"""The site's navigation has every page, and its generated pages are complete."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
import yaml

import evalengine as ee
from evalengine.metrics import registry
from evalengine.schemas.options import FIELDS

ROOT = Path(__file__).parent.parent
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def hook(name: str) -> ModuleType:
    """Import a hook from its file, as MkDocs does."""
    [path] = [path for path in CONFIG["hooks"] if Path(path).stem == name]
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    return hook("generated_pages")


@pytest.fixture(scope="module")
def metric_pages() -> ModuleType:
    return hook("metric_pages")


def listed(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def test_every_page_is_once_in_the_navigation() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed(CONFIG["nav"])) == sorted(pages)


def test_generated_pages_are_complete(generated: ModuleType) -> None:
    pages = generated.pages()
    texts = {address: text for address, (_, text) in pages.items()}
    assert all(f"| `{name}` |" in texts["reference/options.md"] for name in FIELDS)
    assert all(
        f"\n## {name}\n" in texts["reference/python.md"] for name in ee.__all__ if name[0] != "_"
    )
    assert "\n## evalengine judge run\n" in texts["reference/commands.md"]
    assert "## ground_truths" in texts["reference/tables.md"]
    config = generated.on_config({"nav": [{"Reference": ["inputs.md"]}]})
    assert listed(config["nav"]) == ["inputs.md", *pages]


def test_docstrings_become_markdown(generated: ModuleType) -> None:
    text = (
        "Says :func:`it`.\n\nArgs:\n    one: first,\n        goes on.\n\nExample:\n    >>> 1\n    1"
    )
    assert generated.docstring(text) == (
        "Says `it`.\n\n**Args**\n\n- `one`: first,\n    goes on.\n\n**Example**\n\n"
        "```pycon\n>>> 1\n1\n```"
    )


def test_metrics_have_their_pages(metric_pages: ModuleType) -> None:
    pages = metric_pages.pages(examples=False)
    for row in ee.metrics_table().iter_rows(named=True):
        _, text = pages[f"reference/metrics-{row['task']}.md"]
        _, _, own = text.partition(f"\n### {row['name']}\n")
        about = own.partition("\n### ")[0]
        assert metric_pages.plain(row["definition"]) in about
        assert ("<math" in about) == (row["formula"] is not None)
        assert metric_pages.plain(row["source"]) in about


def test_an_example_is_the_output_of_the_command(metric_pages: ModuleType) -> None:
    metric = registry.get("panoptic", "PQ")
    words, printed, _ = metric_pages.example(metric, metric_pages.lines_of("panoptic"))
    assert words[:2] == ("panoptic/predicted.json", "panoptic/truth.json")
    assert words[-2:] == ("--metric", "PQ")
    assert "\n  PQ         0." in printed
    assert "also made" not in printed


def test_a_metric_without_a_number_in_any_example_ends_the_build(metric_pages: ModuleType) -> None:
    metric = registry.get("panoptic", "PQ")
    empty = metric_pages.Example(("--metric", "PQ"), "  PQ         –  no segments")
    for found in (None, empty):
        with pytest.raises(ValueError, match="PQ"):
            metric_pages.complete(metric, found)
    whole = empty._replace(printed="  PQ         0.5")
    assert metric_pages.complete(metric, whole) == whole


def test_differences_between_dialects(metric_pages: ModuleType) -> None:
    row = {**dict.fromkeys(metric_pages.SAME), "average": "macro", "k": 5, "area": None}
    rows = pl.DataFrame([{**row, "max_detections": 100, "value": 0.5}])
    others = [{**row, "area": "small", "value": 0.1}, {**row, "max_detections": 1, "value": 0.2}]

    def described(value: float | None) -> str:
        theirs = [*others, {**row, "area": "all", "max_detections": 100, "value": value}]
        said: str = metric_pages.difference(rows, pl.DataFrame(theirs))
        return said

    assert metric_pages.difference(rows, None) == ""
    assert described(0.5 + 1e-12) == ""
    assert described(0.25) == "0.2500 instead of 0.5000 (macro, k 5)"
    assert described(None) == "none instead of 0.5000 (macro, k 5)"
    percent = pl.DataFrame([{**row, "max_detections": 100, "parameters": "{}", "value": 50.0}])
    assert metric_pages.difference(rows, percent) == "50.0000 instead of 0.5000 (macro, k 5)"


def test_every_page_is_in_the_files_for_language_models(
    generated: ModuleType, metric_pages: ModuleType
) -> None:
    markdown = hook("markdown_pages")
    made = metric_pages.pages(examples=False) | generated.pages()
    written = {page: (ROOT / "docs" / page).read_text("utf-8") for page in listed(CONFIG["nav"])}
    texts = written | {address: text for address, (_, text) in made.items()}
    optional = [page for page in written if page.startswith(("benchmarks", "decisions/"))]
    pages = [
        markdown.Page("Decisions" if address in optional else "Docs", address, text)
        for address, text in texts.items()
    ]
    files = markdown.files("evalengine", "metrics", pages)
    linked = re.findall(r"^- \[.+\]\(([^()]+)\)", files["llms.txt"], re.M)
    assert sorted(linked) == sorted(["llms-full.txt", *texts])
    assert set(files) == {"llms.txt", "llms-full.txt", *texts}
    assert all(files[page] == written[page] for page in written)
    in_full = re.findall(r"^<!-- (\S+) -->$", files["llms-full.txt"], re.M)
    assert sorted(in_full) == sorted(set(texts) - set(optional))
    formulas = files["reference/metrics-retrieval.md"]
    assert "<math" not in formulas
    assert f"${registry.get('retrieval', 'MRR').formula}$" in formulas
    assert "- [The report](report.md): One HTML file about a run, to open, mail or attach." in (
        files["llms.txt"].splitlines()
    )


def test_plain_text_contains_no_markup(generated: ModuleType, metric_pages: ModuleType) -> None:
    assert generated.plain("a_b <= `c`") == r"a\_b &lt;= \`c\`"
    assert metric_pages.plain("|e| < 1") == r"\|e\| &lt; 1"
