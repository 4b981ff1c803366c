"""Kill a scheduled job at random moments, and check the contents of its folder each time.

    python benchmarks/jobs.py [--kills N] [--rows N] [--seed N]

Two versions of the inputs take turns. Each time the job is started and killed with SIGKILL, half
the time anywhere between its start and its end, half the time within 60 ms of beginning to write.
Then the folder must contain one version's complete result: files, sizes, values, digests and marker
of one run. Otherwise the program ends with an error. The checks are those of tests/jobs/kills.py.
Finally one run completes, and only its result may remain.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

KILLS = Path(__file__).resolve().parents[1] / "tests" / "jobs" / "kills.py"


def harness() -> ModuleType:
    """Import the module of the tests, which are not a package."""
    spec = importlib.util.spec_from_file_location("job_kills", KILLS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> int:
    """Run the trials and print one line of figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    module = harness()
    with tempfile.TemporaryDirectory() as name:
        kills = module.Kills(Path(name), rows=given.rows, seed=given.seed)
        counted = module.trials(kills, given.kills)
        last = [*module.COMMAND, str(kills.job), "--quiet"]
        subprocess.run(last, check=True, stdout=subprocess.DEVNULL)
        standing, left = kills.found(), kills.left_behind()
    if left:
        print(f"left behind: {', '.join(left)}", file=sys.stderr)
        return 1
    print(
        f"{given.kills} kills in {counted['started']} starts:"
        f" the old result stood there {counted['old']} times, the new one {counted['new']} times,"
        f" a mixture never; one whole run took {kills.seconds:.1f} s, all"
        f" {counted['seconds']:.0f} s; version {standing} at last, nothing left beside it"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
