"""Verdicts for GitHub Actions: workflow commands that annotate a run, and the step's summary.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..report.summary import plain
from ..schemas.errors import WriteError
from .showing import gates_markdown, headline, named, sentence
from .verdicts import FAILED, SKIPPED, Verdict

_KINDS = {FAILED: "error", SKIPPED: "warning"}
_SUMMARY = "GITHUB_STEP_SUMMARY"
_MOST = 1_000_000
"""Bytes of a summary; GitHub takes 1 MiB a step."""


def command(kind: str, title: str, said: str) -> str:
    """Return a workflow command: ``error``, ``warning`` or ``notice``, with escaped content."""
    title = _escaped(plain(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={title}::{_escaped(said)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_commands(
    verdicts: Sequence[Verdict], warnings: Sequence[str], notice: str = ""
) -> str:
    """Return workflow commands for failed and skipped gates, warnings, and the result.

    Args:
        notice: one-line result, in addition to the gates.
    """
    lines = [
        command(_KINDS[one.status], f"{named(one)} {one.status}", plain(sentence(one)))
        for status in _KINDS
        for one in verdicts
        if one.status == status
    ]
    lines += [command("warning", "evalengine", plain(said)) for said in warnings]
    said = [headline(verdicts)] if verdicts else []
    said += [notice] if notice else []
    lines += [command("notice", "evalengine", plain("; ".join(said)))] if said else []
    return "".join(f"{line}\n" for line in lines)


def summarise(verdicts: Sequence[Verdict], result: str) -> bool:
    """Append gates and result to the step's summary.

    Returns:
        whether the environment names a file for that.

    Raises:
        WriteError: it cannot be written.
    """
    path = os.environ.get(_SUMMARY)
    if not path:
        return False
    parts = ["## evalengine", *([gates_markdown(verdicts)] if verdicts else []), result]
    text = "\n\n".join(part.rstrip("\n") for part in parts) + "\n\n"
    whole = text.encode("utf-8", "replace")
    if len(whole) > _MOST:
        kept = whole[:_MOST].rpartition(b"\n")[0]
        whole = kept + b"\n\n(cut: a summary has 1 MiB at most)\n\n"
    try:
        with open(path, "ab") as file:
            file.write(whole)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error}.") from error
    return True
