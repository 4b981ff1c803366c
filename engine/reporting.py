"""Write the report of a run, with or without a baseline, to disk."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from .comparing import compare, refuse_other_rules
from .comparing import margins as margins_of
from .evaluation.summary import Tallied
from .ingest.opening import Tables
from .progress import Progress, reports_progress, step
from .report.page import Examples, Gate, as_page, write_page
from .report.provenance import command
from .run import tallied_of
from .schemas.errors import InputError, OptionError, ResultError
from .schemas.options import Options
from .schemas.wording import in_python, render, without_secrets
from .scorecard.card import Scorecard

_ENDINGS = (".html", ".htm")
_FAIL_IF = "fail if "
"""Prefix of gates that state when a run fails."""


def check_report(path: str | Path) -> None:
    """Check that a report can be written to a path.

    Raises:
        OptionError: the extension is not .html, or the folder does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise OptionError(f"report {str(path)!r}: the report is HTML: call it {target.stem}.html.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"report {str(path)!r}: there is no folder {target.absolute().parent}.")


@reports_progress
def make_report(
    card: Scorecard,
    path: str | Path,
    *,
    baseline: Scorecard | None = None,
    names: Sequence[str] = ("baseline", "this run"),
    title: str = "",
    gates: Sequence[Gate] = (),
    images: str | Path | None = None,
    tables: Tables | None = None,
    options: Options | None = None,
    folder: str | Path | None = None,
    again: str = "",
    progress: Progress | bool | None = None,
) -> Path:
    """Write the report of a run.

    Args:
        card: the run.
        path: the HTML file.
        baseline: an earlier run, shown next to every number.
        names: names of the baseline and the run.
        title: page title.
        gates: shown in this order.
        images: folder of the datums' images; without it, no thumbnails are shown.
        tables: the scored tables, if they were not files.
        options: level, draws and seed of the comparison.
        folder: folder of the run, if it was saved after it was scored.
        again: command that writes the page again; by default one with the run and its baseline.
        progress: called with the name of each step.

    Returns:
        path of the file.

    Raises:
        InputError: the baseline was scored with other rules.
        OptionError: not an HTML file.
        WriteError: the file cannot be written.
    """
    check_report(path)
    notes: list[str] = []
    warnings: list[str] = []
    comparison, margins, untested = None, None, ""
    if baseline is not None:
        refuse_other_rules({names[0]: baseline, names[1]: card})
        step("comparing")
        try:
            comparison = compare(baseline, card, names=names, options=options)
        except (InputError, OptionError, ResultError) as error:
            notes.append(f"the runs are not compared datum by datum: {in_python(error.message)}")
            try:
                margins = margins_of(
                    baseline, card, metrics=card.metrics["metric"].unique(), by=card.options.by
                )
            except (InputError, OptionError, ResultError) as unknown:
                untested = in_python(unknown.message)
                notes.pop()  # the page shows the reason in place of the verdict
            else:
                notes += [f"the baseline's data: {margins.remark}."] if margins.remark else []
        else:
            new = [one for one in comparison.notes if not _is_note(card, one, names[1])]
            warnings += [one for one in new if one in comparison.warnings]
            notes += [f"comparison: {one}" for one in new if one not in comparison.warnings]
    example_tables = _examples(card, baseline if comparison is not None else None, images, tables)
    step("writing the report")
    page = as_page(
        card,
        title=title,
        baseline=baseline,
        baseline_name=names[0] if baseline is not None else "",
        comparison=comparison,
        margins=margins,
        gates=gates,
        notes=notes,
        warnings=warnings,
        examples=example_tables,
        commands=_commands(card, path, baseline, gates, images, options, again),
        folder=card.folder if folder is None else folder,
        untested=untested,
    )
    return write_page(page, path)


def _is_note(card: Scorecard, note: str, name: str) -> bool:
    """Return True if a note of a comparison is one of the run's own notes."""
    return note.removeprefix(f"{name}: ") in map(render, card.notes)


def _commands(
    card: Scorecard,
    path: str | Path,
    baseline: Scorecard | None,
    gates: Sequence[Gate],
    images: str | Path | None,
    options: Options | None,
    again: str,
) -> list[str]:
    """Return the commands that score the run and write the page again."""
    scored = command(card.task, card.options, card.run.get("inputs", {}))
    if again:
        return [scored, again]
    paths: dict[str, str] = {}
    if baseline is not None:
        paths["baseline"] = without_secrets(str(baseline.folder or "<baseline>"))
    if images is not None:
        paths["images"] = str(images)
    words = [word for name, value in paths.items() for word in (f"--{name}", value)]
    gate_words: list[str] = []
    for gate in dict.fromkeys(one.written for one in gates if one.written):
        negated = gate.startswith(_FAIL_IF)
        gate_words += ["--fail-if" if negated else "--fail-under", gate.removeprefix(_FAIL_IF)]
    if card.folder is None:
        if scored.startswith("evalengine score"):
            return [f"{scored} {shlex.join([*words, *gate_words, '--report', str(path)])}"]
        more = "".join(f", {name}={value!r}" for name, value in paths.items())
        return [f"{scored}.to_html({str(path)!r}{more})"]
    usual = Options()
    for name in ("draws", "seed"):
        value = getattr(options or usual, name)
        words += [f"--{name}", str(value)] if value != getattr(usual, name) else []
    if gate_words and baseline is not None:
        both = [paths["baseline"], str(card.folder)]
        parts = ["compare", *both, *words[2:], *gate_words, "--report", str(path)]
    else:
        parts = ["report", str(card.folder), *words, "-o", str(path)]
    return [scored, shlex.join(["evalengine", *parts])]


def _examples(
    card: Scorecard, baseline: Scorecard | None, images: str | Path | None, tables: Tables | None
) -> list[Examples]:
    """Return the datums that got worse since the baseline, and the worst datums.

    The list is empty if they are unknown.
    """
    from .evaluation.paging import worse_since
    from .report.contents import contents, pictures
    from .report.page import examples

    tallied = card.tallied
    if tallied is None and card.folder is not None:
        with suppress(ResultError):  # sections that need the tally are omitted
            tallied = tallied_of("", card)
    lists: list[pl.DataFrame | None] = []
    if baseline is not None and tallied is not None:
        with suppress(ResultError):
            lists.append(worse_since(tallied_of("", baseline), tallied))
    lists.append(card.page_frame("worst"))
    tables_of_examples = []
    for worst in lists:
        if worst is None or not worst.height:
            continue
        content = contents(card, worst, tallied, tables)
        thumbnails = None if images is None else pictures(content.datums, str(images))
        tables_of_examples.append(examples(worst, content, thumbnails, slices_of(tallied, worst)))
    return tables_of_examples


def slices_of(tallied: Tallied | None, worst: pl.DataFrame) -> pl.DataFrame | None:
    """Return the slices of datums, one row per datum; None without slices or tally."""
    if tallied is None or not tallied.tallies.datums.slices.width:
        return None
    datums = tallied.tallies.datums
    with_ids = datums.slices.with_columns(datums.id.alias("datum_id"))
    ids = worst.select(pl.col("datum_id").cast(datums.id.dtype))
    return ids.join(with_ids, on="datum_id", how="left", maintain_order="left").drop("datum_id")
