"""Step of the action: install, score, check gates, and report to GitHub. Inputs are variables."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

STATUS = {0: "passed", 1: "failed"}


def given(name: str) -> str:
    """Return an input of the action; empty if it was omitted."""
    return os.environ.get(f"INPUT_{name}", "").strip()


def options() -> list[str]:
    """Return the options of both runs, with intervals if gates use ``surely``, as in ``score``."""
    said = shlex.split(given("OPTIONS"))
    sure = re.search(r"\bsurely\b", given("FAIL_UNDER") + given("FAIL_IF"), re.IGNORECASE)
    given_by_user = any(word.startswith("--intervals") for word in said)
    return [*said, *([] if given_by_user or not sure else ["--intervals", "0.95"])]


def lines(name: str, option: str) -> list[str]:
    """Return one option per line of an input."""
    gates = (line.strip() for line in given(name).splitlines())
    return [word for gate in gates if gate for word in (option, gate)]


def install() -> int:
    """Install the version of the input ``version``; return the exit status."""
    wanted = given("VERSION")
    if not wanted:
        return 0
    what = wanted if Path(wanted).exists() else f"evalengine=={wanted}"
    return subprocess.call([sys.executable, "-m", "pip", "install", "--quiet", what])


def score(predictions: str, out: Path, *more: str) -> int:
    """Score predictions by the inputs, write the result, and return the exit status."""
    sides = [predictions, *filter(None, [given("GROUND_TRUTHS")])]
    words = [*options(), "--out", str(out), "--overwrite", *more, "--", *sides]
    return subprocess.call([sys.executable, "-m", "evalengine", "score", *words])


def run(report: Path) -> int:
    """Run the complete step; return the exit status."""
    status = install()
    if status:
        return status
    gates = [*lines("FAIL_UNDER", "--fail-under"), *lines("FAIL_IF", "--fail-if")]
    baseline = given("BASELINE")
    if baseline and not (Path(baseline) / "run.json").is_file():
        print("::group::baseline", flush=True)
        status = score(baseline, report / "baseline", "--format", "markdown")
        print("::endgroup::", flush=True)
        if status:
            return status
        baseline = str(report / "baseline")
    held = ["--baseline", baseline] if baseline and gates else []
    junit = ["--junit", str(report / "junit.xml")] if gates else []
    return score(given("PREDICTIONS"), report / "result", *gates, *held, *junit)


def main() -> int:
    """Run the step and write its outputs."""
    report = Path(os.environ.get("RUNNER_TEMP", ".")) / "evalengine"
    report.mkdir(parents=True, exist_ok=True)
    status = run(report)
    outputs = f"status={STATUS.get(status, 'error')}\nreport={report}\n"
    target = os.environ.get("GITHUB_OUTPUT")
    if target:
        with open(target, "a", encoding="utf-8") as file:
            file.write(outputs)
    else:
        print(outputs, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
