"""Figures of benchmarks/size.py on a small synthetic tree."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

TREE = {
    "engine/__init__.py": "from .tally import counts\n",
    "engine/tally/__init__.py": "",
    "engine/tally/counts.py": '''
        """What is counted."""
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from ..plan import Plan


        class CountsView:
            """Of all labels."""


        class CountParts:
            size = (1, 2,)  # fmt: skip
            """Where it stands."""


        class StoredPartsView(CountsView):
            text = "# what is no comment"  # nothing but what is told


        class Parts: ...


        def single():
            """Count one."""
            from ..plan import Plan
            raise OneByOne("no 'what' of strings is a docstring")
    ''',
    "engine/plan.py": "from .tally.counts import single\nclass Plan: ...\n" + "x = 1\n" * 90,
    "kernels/sums.py": "",
    "schemas/names.py": "from ..engine_of_others import name\n",
    "tests/test_counts.py": """
        @pytest.mark.parametrize(("given", "message"), [
            (1, "one is not a number here"),
            (2, "short"),
            pytest.param(3, "three is not a number here"),
            ("four words that are given", "short"),
        ])
        def test_one(given, message):
            with pytest.raises(ValueError, match="is not a number"):
                single()
            with pytest.raises(ValueError, match=re.escape("is not a number (1)")):
                single("this text is only passed on")
            assert "two words" in card.notes
            assert f"{given} is not one of them" in whatever
            assert card.notes == ("the first of two notes", "the other of two notes")
            assert single(given) and message in str(error)
    """,
    "docs/page.md": "Where rows stand.\n\n```\nwhat is code\n```\nOf both the rows meet.\n",
}


@pytest.fixture
def size(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delitem(sys.modules, "size", raising=False)
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("size")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.split("\n")
        path.write_text("\n".join(line.removeprefix("        ") for line in lines), "utf-8")
    return tmp_path


def test_figures_of_a_made_tree(size: ModuleType, tree: Path) -> None:
    figures = size.measure(tree)
    expected: dict[str, Any] = {
        "files": 6,
        "files under 80 lines": 3,
        "fmt: skip, fmt: off": 1,
        "import cycles, top-level imports": 0,
        "import cycles, with lazy imports": 1,
        "modules in cycles, with lazy imports": 2,
        "import cycles, with TYPE_CHECKING imports": 1,
        "TYPE_CHECKING blocks": 1,
        "classes of views, resamples and parts": 4,
        "raise OneByOne": 1,
        "docstrings that begin with What, Whether, ...": 2,
        "assertions on wording in tests": {"single": 5, "cases of parametrize": 2},
    }
    assert {name: figures[name] for name in expected} == expected


def test_pairs_are_found_by_bases_and_by_names(size: ModuleType, tree: Path) -> None:
    assert size.pairs(size.read(tree, size.SOURCE)) == [
        ("CountParts", "CountsView"),
        ("StoredPartsView", "CountsView"),
    ]


def test_idiom_is_counted_by_kind_of_text(size: ModuleType, tree: Path) -> None:
    figures = size.measure(tree)
    assert figures["idiom: what, as a noun"] == {
        "docstrings": 1,
        "comments": 1,
        "strings": 2,
        "docs": 0,
    }
    for name, counts in {
        "where, for if or when": (1, 0, 0, 1),
        "stand, stands": (1, 0, 0, 1),
        "tell, told, say, said": (0, 1, 0, 0),
        "sentence that begins with Of": (1, 0, 0, 1),
        "meet": (0, 0, 0, 1),
    }.items():
        assert tuple(figures[f"idiom: {name}"].values()) == counts, name


def test_every_figure_has_one_to_compare_with(size: ModuleType, tree: Path) -> None:
    figures = size.measure(tree)
    assert list(figures) == list(size.BEFORE)
    assert set(size.GATES) <= set(figures)


def test_the_command_prints_a_table_or_json(tree: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "size.py"), str(tree)]
    printed = [
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--json"])
    ]
    assert printed[0].splitlines()[2].split(" | ") == ["| files", "915", "6", "400 |"]
    assert json.loads(printed[1])["files"] == 6
