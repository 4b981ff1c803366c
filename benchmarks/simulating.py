"""Command line of simulations: sets of a cell are stored, and a second call continues."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import reporting

_SAVED_EVERY = 10  # sets


def simulate(
    doc: str | None,
    name: str,
    cells: Sequence[str],
    measured: Callable[[str, int, int], Any],
    as_table: Callable[[Any], str],
    *,
    sets: int,
    draws: int,
) -> int:
    """Simulate the cells on the command line, print the table, and return the exit status.

    Args:
        doc: text of ``--help``.
        name: name of the store (``name.json``) and, with dashes, of the table in the documentation.
        cells: names of all cells.
        measured: cell, number of the set and of resamples -> stored result of the set.
        as_table: cell -> its sets, in order -> Markdown.
        sets: default of ``--sets``.
        draws: default of ``--draws``.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", type=int, default=sets)
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--cells", nargs="*", default=[*cells], choices=[*cells])
    parser.add_argument("--store", type=Path, default=Path(f"{name}.json"))
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args()
    saved = json.loads(given.store.read_text()) if given.store.exists() else {}
    begin = time.perf_counter()
    for cell in given.cells:
        stored = saved.setdefault(cell, [])
        for i in range(len(stored), given.sets):
            stored.append(measured(cell, i, given.draws))
            if i % _SAVED_EVERY == _SAVED_EVERY - 1:
                given.store.write_text(json.dumps(saved))
        print(f"{cell}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    given.store.write_text(json.dumps(saved))
    table = as_table(saved)
    print(table)
    if given.write_docs:
        reporting.write_docs(name.replace("_", "-"), table, reporting.PAGES.parent)
    return 0
