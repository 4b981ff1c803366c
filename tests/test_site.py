"""The site's navigation has every page, and its generated pages have all that there is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import evalengine as ee
from evalengine.schemas.options import FIELDS

ROOT = Path(__file__).parent.parent
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    """The hook, as MkDocs imports it: from its file."""
    [path] = CONFIG["hooks"]
    spec = importlib.util.spec_from_file_location("generated_pages", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def listed(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def test_every_page_stands_once_in_the_navigation() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed(CONFIG["nav"])) == sorted(pages)


def test_generated_pages_have_everything(generated: ModuleType) -> None:
    pages = generated.pages()
    texts = {address: text for address, (_, text) in pages.items()}
    for row in ee.metrics_table().iter_rows(named=True):
        assert f"\n## {row['name']}\n" in texts[f"reference/metrics-{row['task']}.md"]
    assert all(f"| `{name}` |" in texts["reference/options.md"] for name in FIELDS)
    assert all(
        f"\n## {name}\n" in texts["reference/python.md"] for name in ee.__all__ if name[0] != "_"
    )
    assert "\n## evalengine judge run\n" in texts["reference/commands.md"]
    assert "\n## ground_truths (input, task detection)\n" in texts["reference/tables.md"]
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
