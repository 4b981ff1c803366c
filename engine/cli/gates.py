"""Gates of the command ``score``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..jobs.verdicts import Verdict
    from ..scorecard.card import Scorecard


def gate_keeper(gates: Sequence[str], baseline: str | None) -> Callable[[Scorecard], list[Verdict]]:
    """What judges a scorecard by gates, which are read now: mistakes show before any work.

    Raises:
        OptionError: a gate that cannot be read, or one about a baseline that is not given.
        ResultError: the baseline is no result.
    """
    if not gates:
        if baseline is not None:
            raise click.UsageError("--baseline is for gates: add --fail-under GATE.")
        return lambda card: []
    from ..jobs.gates import parse_gates
    from ..jobs.verdicts import judge_gates, numbers_of
    from ..scorecard.card import load

    parsed = parse_gates(gates)
    earlier = None if baseline is None else numbers_of(load(baseline))
    needing = [gate for gate in parsed if gate.needs_baseline]
    if needing and earlier is None:
        raise click.UsageError(
            f"gate {needing[0].text!r} speaks of a baseline: say which earlier result with"
            " --baseline DIR."
        )
    return lambda card: judge_gates(parsed, numbers_of(card), earlier)


def told_gates(verdicts: Sequence[Verdict]) -> bool:
    """Print what became of gates, if there were any, to standard error.

    Returns:
        whether one failed.
    """
    if not verdicts:
        return False
    from ..jobs.showing import gates_table
    from ..jobs.verdicts import failed

    click.echo(gates_table(verdicts), err=True, nl=False)
    return bool(failed(verdicts))
