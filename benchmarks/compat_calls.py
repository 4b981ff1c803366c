"""Time calls of scikit-learn and torchmetrics, by evalengine's drop-ins and by the packages.

    python benchmarks/compat_calls.py sklearn torchmetrics --torch-python TORCH/bin/python \
        --write-docs

Each side is a process that makes the data, calls everything once on a thousandth, and then times
every call; sides take turns, and figures are medians. CPU is user and system seconds over all
threads. If an interpreter does not have the package of a section, the section is skipped with a
note.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

import numpy as np

# Last, so that module names of this folder do not shadow those of packages.
sys.path.append(str(Path(__file__).resolve().parent))

Call = Callable[[], Any]
ROWS, CLASSES, BATCHES = 1_000_000, 10, 100
MODULES = {
    "sklearn": {"evalengine": "evalengine.compat.sklearn", "theirs": "sklearn.metrics"},
    "torchmetrics": {"evalengine": "evalengine.compat.torchmetrics", "theirs": "torchmetrics"},
}
NAMES = {"sklearn": "scikit-learn", "torchmetrics": "torchmetrics"}
ABOUT = """\
{rows:,} rows, {classes} classes unless the call has another number, arrays in memory, the same data
on both sides{more}. CPU is user and system seconds over all threads of evalengine ({threads} cores)
and of {theirs}. *Ratio* is evalengine's figure by the other's: below 1 is faster. *Values* is the
largest relative difference between the two answers.
"""
MORE = {
    "sklearn": "",
    "torchmetrics": ", 100 calls of `update` and one of `compute`; tensors on their side",
}


def sklearn_calls(module: Any, rows: int) -> Iterator[tuple[str, Call]]:
    """Return each call of scikit-learn's functions."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, CLASSES, rows)
    guess = np.where(rng.random(rows) < 0.7, truth, rng.integers(0, CLASSES, rows))
    weight = rng.random(rows)
    yes = (rng.random(rows) < 0.3).astype(int)
    score = np.clip(rng.normal(0.35 + 0.3 * yes, 0.2), 0, 1)
    wide = rng.random((rows, CLASSES))
    wide[np.arange(rows), truth] += 0.7
    wide /= wide.sum(axis=1, keepdims=True)
    tags, predicted = rng.random((rows, 5)) < 0.3, rng.random((rows, 5)) < 0.3
    graded, order = rng.integers(0, 4, (rows // 100, 100)), rng.random((rows // 100, 100))
    yield "accuracy_score", lambda: module.accuracy_score(truth, guess)
    yield "f1_score, macro", lambda: module.f1_score(truth, guess, average="macro")
    yield (
        "f1_score, macro, weights",
        lambda: module.f1_score(truth, guess, average="macro", sample_weight=weight),
    )
    yield (
        "precision_recall_fscore_support",
        lambda: module.precision_recall_fscore_support(truth, guess)[:3],
    )
    yield "confusion_matrix", lambda: module.confusion_matrix(truth, guess)
    yield (
        "classification_report",
        lambda: module.classification_report(truth, guess, output_dict=True)["macro avg"][
            "f1-score"
        ],
    )
    yield "matthews_corrcoef", lambda: module.matthews_corrcoef(truth, guess)
    yield "cohen_kappa_score", lambda: module.cohen_kappa_score(truth, guess)
    yield "roc_auc_score", lambda: module.roc_auc_score(yes, score)
    yield (
        "roc_auc_score, 10 classes, ovr",
        lambda: module.roc_auc_score(truth, wide, multi_class="ovr"),
    )
    yield "average_precision_score", lambda: module.average_precision_score(yes, score)
    yield "roc_curve", lambda: module.roc_curve(yes, score)[1].mean()
    yield "precision_recall_curve", lambda: module.precision_recall_curve(yes, score)[0].mean()
    yield "log_loss, 10 classes", lambda: module.log_loss(truth, wide)
    yield "brier_score_loss", lambda: module.brier_score_loss(yes, score)
    yield "top_k_accuracy_score, k=3", lambda: module.top_k_accuracy_score(truth, wide, k=3)
    yield "accuracy_score, 5 labels a row", lambda: module.accuracy_score(tags, predicted)
    yield (
        "f1_score, 5 labels a row, macro",
        lambda: module.f1_score(tags, predicted, average="macro"),
    )
    yield (
        "f1_score, 5 labels a row, samples",
        lambda: module.f1_score(tags, predicted, average="samples", zero_division=0),
    )
    yield "roc_auc_score, 5 labels a row", lambda: module.roc_auc_score(tags, wide[:, :5])
    yield "ndcg_score, 10,000 x 100, k=10", lambda: module.ndcg_score(graded, order, k=10)
    yield (
        "roc_auc_score, 100 rows, 100 times",
        lambda: [module.roc_auc_score(yes[:100], score[:100]) for _ in range(min(100, rows // 50))],
    )


def torchmetrics_calls(module: Any, rows: int) -> Iterator[tuple[str, Call]]:
    """Return each class of torchmetrics: updates in batches, and compute."""
    convert = (lambda x: x) if module.__name__.startswith("evalengine") else tensors()
    rng = np.random.default_rng(2)
    truth = rng.integers(0, CLASSES, rows)
    guess = np.where(rng.random(rows) < 0.7, truth, rng.integers(0, CLASSES, rows))
    yes = (rng.random(rows) < 0.3).astype(int)
    score = np.clip(rng.normal(0.35 + 0.3 * yes, 0.2), 0, 1)
    wide = rng.random((rows, CLASSES))
    wide /= wide.sum(axis=1, keepdims=True)
    cut = np.array_split(np.arange(rows), min(BATCHES, rows))

    def run_all(make: Callable[[], Any], preds: Any, target: Any) -> Call:
        batches = [(convert(preds[at]), convert(target[at])) for at in cut]

        def call() -> Any:
            metric = make()
            for one in batches:
                metric.update(*one)
            return metric.compute()

        return call

    many = {"task": "multiclass", "num_classes": CLASSES}
    classes = (
        ("Accuracy, micro", lambda: module.Accuracy(**many, average="micro")),
        ("F1Score, macro", lambda: module.F1Score(**many, average="macro")),
        ("ConfusionMatrix", lambda: module.ConfusionMatrix(**many)),
        ("CohenKappa", lambda: module.CohenKappa(**many)),
    )
    for name, make in classes:
        yield name, run_all(make, guess, truth)
    yield "AUROC, exact", run_all(lambda: module.AUROC(task="binary"), score, yes)
    yield (
        "AveragePrecision, exact",
        run_all(lambda: module.AveragePrecision(task="binary"), score, yes),
    )
    yield "AUROC, 10 classes, exact", run_all(lambda: module.AUROC(**many), wide, truth)
    yield (
        "CalibrationError, 10 classes",
        run_all(lambda: module.CalibrationError(**many), wide, truth),
    )
    images = boxes(max(4, rows // 1000), convert)

    detector = getattr(module, "MeanAveragePrecision", None)
    if detector is None:
        from torchmetrics.detection.mean_ap import MeanAveragePrecision as detector

    def detect() -> Any:
        metric = detector()
        for preds, target in images:
            metric.update(preds, target)
        return metric.compute()["map"]

    yield f"MeanAveragePrecision, {len(images) * 10:,} images", detect


def tensors() -> Callable[[Any], Any]:
    import torch

    return torch.from_numpy


def boxes(n_images: int, convert: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Return batches of ten images, 30 predictions and 8 ground truths each, of 10 classes."""
    rng = np.random.default_rng(3)

    def image() -> tuple[Any, Any]:
        low = rng.random((8, 2)) * 400
        true = np.hstack([low, low + 20 + rng.random((8, 2)) * 100])
        of = rng.integers(0, 8, 30)
        near = true[of] + rng.uniform(-9, 9, (30, 4))  # corners stay in order
        labels = rng.integers(0, CLASSES, 8)
        preds = {
            "boxes": convert(near),
            "scores": convert(rng.random(30)),
            "labels": convert(labels[of]),
        }
        return preds, {"boxes": convert(true), "labels": convert(labels)}

    predicted = [image() for _ in range(max(1, n_images // 10) * 10)]
    return [
        (
            [one for one, _ in predicted[at : at + 10]],
            [other for _, other in predicted[at : at + 10]],
        )
        for at in range(0, len(predicted), 10)
    ]


CALLS = {"sklearn": sklearn_calls, "torchmetrics": torchmetrics_calls}


def timed(section: str, side: str, rows: int) -> dict[str, Any]:
    """Return wall and CPU seconds and the result of every call of one side, in this process."""
    import importlib
    import warnings

    warnings.simplefilter("ignore")
    module = importlib.import_module(MODULES[section][side])
    for _, call in CALLS[section](module, max(rows // 1000, 100)):
        call()
    seconds = {}
    for name, call in CALLS[section](module, rows):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        seconds[name] = {"wall": wall, "cpu": cpu, "value": np.ravel(np.asarray(answer)).tolist()}
    return seconds


def measured(section: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """Measure every run of both sides; None if a package is missing."""
    torch = options.torch_python if section == "torchmetrics" else options.python
    pythons = {"evalengine": options.python, "theirs": torch}
    package = MODULES[section]["theirs"].partition(".")[0]
    if (
        not torch
        or subprocess.run([torch, "-c", f"import {package}"], capture_output=True).returncode
    ):
        print(f"{section}: left out, {package} is not installed for {torch or '--torch-python'}")
        return None
    version = subprocess.run(
        [torch, "-c", f"from importlib.metadata import version as v; print(v({NAMES[package]!r}))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in pythons}
    for _ in range(options.runs):
        for side, python in pythons.items():
            command = [python, __file__, section, "--side", side, "--rows", str(options.rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{section}, {side}: {done.stderr}")
            runs[side].append(json.loads(done.stdout.splitlines()[-1]))
    return {"version": version, "runs": runs}


def page(section: str, results: dict[str, Any], options: argparse.Namespace) -> str:
    """Format the section as Markdown."""
    from measuring import machine
    from reporting import quotient, seconds, table

    here = machine()
    ours, theirs = (results["runs"][side] for side in ("evalengine", "theirs"))
    called = f"{NAMES[section]} {results['version']}"
    rows = []
    for name in ours[0]:
        mine, other = (
            {kind: median(run[name][kind] for run in side) for kind in ("wall", "cpu")}
            for side in (ours, theirs)
        )
        a, b = (np.array(side[0][name]["value"], float) for side in (ours, theirs))
        relative = np.abs(a - b) / np.maximum(np.abs(b), 1e-300)
        worst = float(np.where(a == b, 0.0, relative).max())
        rows.append(
            [f"`{name}`", seconds(mine["wall"]), seconds(other["wall"]),
             quotient(mine["wall"] / other["wall"]), seconds(mine["cpu"]), seconds(other["cpu"]),
             quotient(mine["cpu"] / other["cpu"]), f"{worst:.0e}" if worst else "equal"]
        )  # fmt: skip
    header = ["call", "wall s", f"{NAMES[section]}, wall s", "ratio", "CPU s",
              f"{NAMES[section]}, CPU s", "ratio", "values"]  # fmt: skip
    about = ABOUT.format(
        rows=options.rows, classes=CLASSES, more=MORE[section], threads=here["cores"], theirs=called
    )
    where = (
        f"{here['cpu']}, {here['cores']} cores (shared; load average {here['load_average']} at the"
        f" end), {here['system']}, Python {here['python']}, {datetime.date.today()}; medians of"
        f" {options.runs} runs. Repeat with `python benchmarks/compat_calls.py {section} --runs"
        f" {options.runs}{' --torch-python TORCH/bin/python' if section == 'torchmetrics' else ''}"
        " --write-docs`."
    )
    title = f"## Calls of {NAMES[section]}, {options.rows:,} rows"
    return "\n\n".join((title, fill(about.strip(), 100), table(header, rows), where))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sections", nargs="+", choices=[*MODULES])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="with evalengine, scikit-learn")
    parser.add_argument("--torch-python", help="with torchmetrics")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--side", choices=["evalengine", "theirs"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(timed(options.sections[0], options.side, options.rows)))
        return
    for section in options.sections:
        results = measured(section, options)
        if results is None:
            continue
        text = page(section, results, options)
        print(text)
        if options.write_docs:
            from reporting import write_docs

            write_docs(f"compat_calls-{section}", text)


if __name__ == "__main__":
    main()
