"""Metrics are found by the names that users know, in any capitals."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine import metrics, tasks
from evalengine.metrics.registry import close, same, squeezed
from evalengine.report import show
from evalengine.schemas.errors import OptionError, did_you_mean


@pytest.mark.parametrize(
    ("task", "name", "metric", "k"),
    [
        ("classification", "accuracy", "Accuracy", None),
        ("classification", "AUROC", "ROCAUC", None),
        ("classification", "roc_auc", "ROCAUC", None),
        ("classification", "f1_macro", "F1", None),
        ("classification", "f1", "F1", None),
        ("segmentation", "miou", "mIOU", None),
        ("detection", "map", "mAP", None),
        ("detection", "Ap", "AP", None),
        ("retrieval", "P_5", "P", 5),
        ("retrieval", "ndcg_cut_10", "nDCG", 10),
        ("retrieval", "recall_100", "Recall", 100),
        ("retrieval", "map_cut_20", "MAP", 20),
        ("retrieval", "recip_rank", "MRR", None),
        ("retrieval", "Recall_all@5", "RetrievalRecallAll", 5),
        ("retrieval", "NDCG_any@10", "RetrievalNDCGAny", 10),
        ("retrieval", "ndcg@10", "nDCG", 10),
        ("text", "rougel", "ROUGEL", None),
        ("judged", "FAITHFULNESS", "Faithfulness", None),
    ],
)
def test_known_names(task: str, name: str, metric: str, k: int | None) -> None:
    result, cut = metrics.parse_metric_name(task, name)
    assert (result.name, cut) == (metric, k)
    assert metrics.has(task, name)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        (
            "classification",
            "accuracy_score:Accuracy matthews_corr_coef:MCC calibration_error:ECE f2_score:F2"
            " confusion_matrix:ConfusionMatrix roc_curve:ROCCurve cross_entropy:LogLoss"
            " average_precision:AP AveragePrecision:AP qwk:CohenKappaQuadratic",
        ),
        ("detection", "confusion_matrix:ConfusionMatrix AveragePrecision:AP f1_score:F1"),
        (
            "segmentation",
            "pixel_accuracy:PixelAccuracy mean_iou:mIOU dice_score:Dice boundary_iou:BoundaryIOU"
            " frequency_weighted_iou:FrequencyWeightedIoU hausdorff_95:HD95 DSC:Dice",
        ),
        ("panoptic", "panoptic_quality:PQ pq_dagger:PQDagger"),
        ("tracking", "num_switches:IDSW mostly_lost:ML id_switches:IDSW"),
        ("retrieval", "mean_reciprocal_rank:MRR RetrievalMAP:MAP RetrievalHitRate:Success"),
        ("text", "rouge_l:ROUGEL WordErrorRate:WER"),
        ("judged", "ResponseRelevancy:AnswerRelevance FaithfulnessMetric:Faithfulness"),
        (
            "regression",
            "explained_variance:ExplainedVariance WMAPE:WAPE nse:R2 pearson_r:Pearson r_squared:R2"
            " SymmetricMeanAbsolutePercentageError:SMAPE quantile_loss:QuantileLoss",
        ),
    ],
)
def test_names_of_other_tools(task: str, names: str) -> None:
    for pair in names.split():
        name, ours = pair.split(":")
        assert metrics.parse_metric_name(task, name)[0].name == ours, name
        assert metrics.has(task, name)


@pytest.mark.parametrize(
    ("task", "name", "metric", "k"),
    [
        ("classification", "top_5_accuracy", "TopKAccuracy", 5),
        ("retrieval", "precision_at_5", "P", 5),
        ("retrieval", "ndcg_at_10", "nDCG", 10),
    ],
)
def test_cuts_within_names_of_other_tools(task: str, name: str, metric: str, k: int) -> None:
    result, cut = metrics.parse_metric_name(task, name)
    assert (result.name, cut) == (metric, k)


def test_thresholds_within_names_of_other_tools() -> None:
    assert metrics.registry.at_threshold("detection", "map_50") == ("mAP", 0.5)


def test_f_at_the_beta_of_the_options() -> None:
    table = pl.DataFrame({"actual": [1, 0, 1, 1], "score": [0.9, 0.2, 0.3, 0.8]})
    named = [ee.score(table, metrics=[name], beta=2.0).metrics for name in ("fbeta_score", "F2")]
    assert named[0].equals(named[1])


def test_own_names_in_small_letters_with_underscores() -> None:
    for task in tasks.NAMES:
        for name in metrics.names(task):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            if squeezed(snake) in close(task):
                continue
            result = {
                metrics.parse_metric_name(task, form)[0].name
                for form in (snake, re.sub(r"_(?!\d)", "-", snake))
            }
            assert len(result) == 1
            assert result.pop().lower() == name.lower()


def test_names_of_other_tools_lead_to_metrics_that_exist() -> None:
    for task in tasks.NAMES:
        for name, ours in same(task).items():
            assert ours in metrics.names(task), name
            assert squeezed(name) == name
            assert name not in close(task)
    every = {name for task in tasks.NAMES for name in metrics.names(task)} | {"ROUGE"}
    options = {"coco", "sacrebleu", "segm", "keypoints", "things", "stuff"}
    for task in tasks.NAMES:
        for name, sentence in close(task).items():
            assert squeezed(name) == name
            quoted = set(re.findall(r"'([^']+)'", sentence))
            assert quoted <= every | options | {"small", "medium", "large"}, name


OTHER_METRICS = {
    "classification": "pr_auc hinge_loss StatScores ACE gini",
    "detection": "LAMR oLRP mAPH PDQ mean_iou APs mar_100",
    "retrieval": "alpha_nDCG NRBP STREC ERR_IA RetrievalFallOut",
    "segmentation": "clDice asd GeneralizedDiceScore VOE",
    "tracking": "AMOTA TETA TRA",
    "text": "meteor gleu NIST bleurt cider mer",
    "judged": "context_entity_recall context_utilization relevance correctness",
    "regression": "nrmse MdAPE MAAPE RRMSE MARE MSIS rae mad mpe bias",
}


@pytest.mark.parametrize("task", OTHER_METRICS)
def test_a_metric_of_another_tool_is_not_a_misspelling(task: str) -> None:
    for name in OTHER_METRICS[task].split():
        with pytest.raises(OptionError) as raised:
            metrics.parse_metric_name(task, name)
        assert "Did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    ("task", "name", "ours"),
    [
        ("classification", "TopKAcuracy", "TopKAccuracy"),
        ("classification", "Acuracy", "Accuracy"),
        ("classification", "BalancedAcurracy", "BalancedAccuracy"),
        ("detection", "mpa", "mAP"),
        ("detection", "maap", "mAP"),
        ("retrieval", "nDCC", "nDCG"),
        ("text", "ROGUE1", "ROUGE1"),
        ("text", "BLUE", "BLEU"),
        ("judged", "Fathfulness", "Faithfulness"),
        ("segmentation", "IOUs", "IOU"),
    ],
)
def test_misspelt_names_suggest_the_right_one(task: str, name: str, ours: str) -> None:
    assert f"'{ours}'" in did_you_mean(name, metrics.names(task))


def test_every_name_finds_its_metric_in_any_capitals() -> None:
    """Unless another metric has exactly that name."""
    for task in ("classification", "detection", "segmentation", "retrieval", "text", "judged"):
        known = metrics.all_metrics(task)
        for name, metric in known.items():
            assert metrics.parse_metric_name(task, name)[0].name == name
            alike = [one for one in known if one.casefold() == name.casefold()]
            if len(alike) == 1:
                assert metrics.parse_metric_name(task, name.upper())[0].name in (name, name.upper())
            for alias in metric.aliases:
                assert metrics.has(task, alias), (task, alias)


BOXES = [
    str(Path(__file__).parents[1] / "examples" / "detection" / f"{side}.parquet")
    for side in ("predictions", "groundtruths")
]


@pytest.mark.parametrize(
    ("names", "metric", "thresholds"),
    [
        (["mAP@0.5"], "mAP", [0.5]),
        (["map75"], "mAP", [0.75]),
        (["mAP@.5", "mAP@.9"], "mAP", [0.5, 0.9]),
        (["AP50", "mAP"], "mAP", [0.5, 0.75]),  # those of the plain name remain
        (["AP50"], "AP", [0.5]),
    ],
)
def test_iou_thresholds_in_names(names: list[str], metric: str, thresholds: list[float]) -> None:
    assert all(metrics.has("detection", name) for name in names)
    result = ee.score(*BOXES, metrics=names).metrics.filter(metric=metric)
    own = ee.score(*BOXES, metrics=[metric], iou_thresholds_to_return=thresholds).metrics
    assert result["iou_threshold"].unique().sort().to_list() == thresholds
    assert result.equals(own.filter(metric=metric))


def test_a_threshold_in_a_name_next_to_the_option_suggests_the_option() -> None:
    with refused("unknown_name", OptionError, value="mAP@0.5"):
        ee.score(*BOXES, metrics=["mAP@0.5"], iou_thresholds_to_return=[0.75])
    with refused("option_value", OptionError, option="iou_thresholds_to_return", value=0.33):
        ee.score(*BOXES, metrics=["mAP@0.33"])


@pytest.mark.parametrize("name", ["mAP50-95", "mAP@[.5:.95]", "map@0.5:0.95"])
def test_a_range_of_thresholds_is_coco_s(name: str) -> None:
    assert metrics.parse_metric_name("detection", name)[0].name == "mAPAveragedOverIOUs"


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("precision_weighted", "Precision"),
        ("recall_macro", "Recall"),
        ("balanced_accuracy", "BalancedAccuracy"),
        ("matthews_corrcoef", "MCC"),
        ("average_precision", "AP"),
        ("roc_auc_ovr", "mROCAUC"),
        ("roc_auc_ovo", "mROCAUCOneVsOne"),
    ],
)
def test_scorers_of_scikit_learn(name: str, metric: str) -> None:
    assert metrics.parse_metric_name("classification", name)[0].name == metric


@pytest.mark.parametrize(
    ("name", "listed"),
    [("auroc", "ROCAUC"), ("F1_macro", "F1"), ("ndcg_cut_10", "nDCG"), ("accuracy", "Accuracy")],
)
def test_the_registry_accepts_the_same_names(name: str, listed: str) -> None:
    told = show.metrics_listing(ee.metrics_table(), [name], None, "text")
    assert told.startswith(f"{listed}  (")


def test_an_unknown_name_lists_only_a_few_others() -> None:
    with pytest.raises(ee.OptionError) as raised:
        show.metrics_listing(ee.metrics_table(), ["acuracy"], None, "text")
    message = str(raised.value)
    assert "mean 'Accuracy'?" in message
    assert len(message) < 120


def test_a_dialects_own_names_are_its_references() -> None:
    """ragas calls LLMContextRecall context_recall, a name that Valor has elsewhere."""
    verdicts = pl.DataFrame(
        {
            "datum_id": [1, 1, 1, 1],
            "metric": ["LLMContextRecall", "LLMContextRecall", "ContextRecall", "ContextRecall"],
            "verdict": ["1", "0", "yes", "yes"],
            "item_index": [0, 1, 0, 1],
        }
    )
    card = ee.score(verdicts, metrics=["context_recall"], dialect="ragas")
    assert card.metrics["metric"].to_list() == ["LLMContextRecall"]
    assert list(card.to_ragas()) == [{"context_recall": 0.5}]
    valor = ee.score(verdicts, metrics=["context_recall"])
    assert valor.metrics["metric"].to_list() == ["ContextRecall"]


@pytest.mark.parametrize("task", tasks.NAMES)
def test_a_name_is_of_one_metric(task: str) -> None:
    """A second declaration of a name would hide the first metric."""
    home = importlib.import_module(f"evalengine.tasks.{task}.metrics")
    parts = [f"{home.__name__}.{name}" for name in getattr(home, "MODULES", ())]
    modules = [importlib.import_module(part) for part in parts] or [home]
    names = Counter(
        name
        for module in modules
        for one in module.METRICS
        for name in {one.name.casefold(), *map(str.casefold, one.aliases)}
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 1


def test_a_judged_metric_does_not_turn_numbers_into_texts() -> None:
    measured = pl.DataFrame({"target": [1.5, 2.0], "prediction": [1.5, 2.5]})
    with refused("unknown_name", match="MeanError"):
        ee.score(measured, metrics=["bias"])
    answers = pl.DataFrame({"input": ["a b", "c"], "prediction": ["d e", "f"]})
    with refused("column_missing", match="evalengine judge"):
        ee.score(answers, metrics=["bias"])
