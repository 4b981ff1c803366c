"""Options: one immutable object, the same in Python, in the shell and in TOML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from .errors import OptionError, unknown
from .wording import option

# Names of the options in other tools.

ELSEWHERE = {
    "metric": "metrics",
    "metric_names": "metrics",
    "metrics_to_return": "metrics",
    "measures": "metrics",
    "k_list": "k",
    "k_values": "k",
    "top_k": "k",
    "cutoffs": "k",
    "matching_strategy": "match",
    "iou": "iou_thresholds",
    "iou_thrs": "iou_thresholds",
    "iouthrs": "iou_thresholds",
    "iou_thresholds_to_compute": "iou_thresholds",
    "score_threshold": "score_thresholds",
    "confidence_threshold": "score_thresholds",
    "confidence_thresholds": "score_thresholds",
    "convert_annotations_to_type": "convert_to",
    "number_of_examples": "pr_curve_max_examples",
    "filters": "where",
    "filter_by": "where",
    "filter": "where",
    "maxdets": "max_detections",
    "max_dets": "max_detections",
    "max_detection_thresholds": "max_detections",
    "arearng": "area_ranges",
    "area_range": "area_ranges",
    "ioutype": "iou_type",
    "pos_label": "positive_label",
    "threshold": "decision_threshold",
    "rel": "relevance_levels",
    "relevance_level": "relevance_levels",
    "column_map": "columns",
    "rename": "columns",
    "weights": "bleu_weights",
    "smoothing_function": "smoothing",
    "smooth_method": "smoothing",
    "tokenize": "tokenizer",
    "embeddings": "embedder",
    "slices": "by",
    "group_by": "by",
    "slice_by": "by",
    "n_jobs": "threads",
}
"""Name of an option in other tools or the shell, in lower case -> its name here."""


def meant(name: str) -> str | None:
    """Return the message for another tool's name of an option; None for unknown names."""
    ours = ELSEWHERE.get(name.lower().replace("-", "_"))
    return None if ours is None else f"{name!r} is not a known option. It is {option(ours)} here."


# Options: one immutable object, the same in Python, in the shell and in TOML.
#
# A field that is None takes the default of the dialect, then of the task. Given and default
# values remain distinguishable, since some defaults depend on the given options.


def _meta(description: str, example: str = "") -> msgspec.Meta:
    return msgspec.Meta(description=description, examples=[example] if example else None)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All options of ``score``, except the tables.

    Example:
        >>> import evalengine as ee
        >>> nightly = ee.Options(dialect="coco", by=("weather",))
    """

    task: Annotated[
        str | None, _meta("Task; follows from the columns unless given.", "detection")
    ] = None
    dialect: Annotated[
        str, _meta("Named rule set: standard, or the reference to agree with.", "coco")
    ] = "standard"
    metrics: Annotated[
        tuple[str, ...] | None, _meta("Metrics to compute; the task's default set unless given.")
    ] = None
    by: Annotated[
        tuple[str, ...], _meta("Slice columns; 'a*b' crosses two.", "weather*camera")
    ] = ()
    where: Annotated[
        dict[str, str] | str | None,
        _meta(
            "SQL condition on rows, applied to every side that has its columns; or one per side"
            " under 'predictions' and 'ground_truths'.",
            "score > 0.1",
        ),
    ] = None
    columns: Annotated[
        dict[str, str] | None, _meta("Own column names: {'mine': 'datum_id'}.", "mine=datum_id")
    ] = None
    label_map: Annotated[
        Any,
        _meta(
            "Rename or merge labels: {'van': 'car'}, or (key, value) pairs on either side; may"
            " change key and value.",
            "van=car",
        ),
    ] = None
    box_format: Annotated[
        str | None, _meta("Content of a list column 'bbox': xyxy, xywh or cxcywh.", "xywh")
    ] = None
    angle_format: Annotated[
        str | None,
        _meta(
            "Unit and direction of the angle of oriented boxes, as seen in the image: radians or"
            " degrees, clockwise or counterclockwise; of 3-D boxes radians-z-up, degrees-z-up or"
            " radians-camera (KITTI's).",
            "radians-clockwise",
        ),
    ] = None
    id_format: Annotated[
        tuple[str, ...] | None,
        _meta(
            "How datum ids of all tables are rewritten before they are matched: text, case, blanks,"
            " unicode, zeros, extension, file, stem, number; a step added to the predictions'"
            " (+1); a regular expression whose first group is the id.",
            "stem",
        ),
    ] = None
    label_format: Annotated[
        tuple[str, ...] | None,
        _meta(
            "The same for labels in columns (those of label maps' pixels aside): case, blanks, a"
            " step added to the predictions' (+1) and the like.",
            "case",
        ),
    ] = None
    iou_type: Annotated[
        str | None,
        _meta(
            "Geometry to compare: bbox, obb or probiou (oriented boxes), segm (masks), boundary "
            "or, only if given, keypoints, 3d or bev (3-D boxes, or their ground planes); by the "
            "tables unless given.",
            "bbox",
        ),
    ] = None
    iou_thresholds: Annotated[
        tuple[float, ...] | None, _meta("IoU thresholds, in (0, 1]; 0.50 to 0.95 by 0.05.", "0.5")
    ] = None
    iou_thresholds_to_return: Annotated[
        tuple[float, ...] | None, _meta("Those with separate AP and mAP rows; 0.5 and 0.75.", "0.5")
    ] = None
    score_thresholds: Annotated[
        tuple[float, ...] | None,
        _meta("Score thresholds of curves and counts; 0.05 to 0.95 by 0.05.", "0.5"),
    ] = None
    recall_score_threshold: Annotated[
        float | None, _meta("Lowest score of a true positive in AR and mAR; none.", "0.3")
    ] = None
    pr_curve_iou_threshold: Annotated[
        float | None, _meta("IoU threshold of the score-threshold curves; 0.5.", "0.5")
    ] = None
    pr_curve_max_examples: Annotated[
        int | None,
        _meta(
            "Examples per cell of detailed curves (1), and, if given, of confusion matrices.", "3"
        ),
    ] = None
    max_detections: Annotated[
        tuple[int, ...] | None,
        _meta("Caps per datum and label, best scores first; none in standard.", "100"),
    ] = None
    area_ranges: Annotated[
        dict[str, tuple[float, float]] | None,
        _meta("Named area ranges in squared pixels, both ends included.", "small=0:1024"),
    ] = None
    convert_to: Annotated[
        str | None,
        _meta(
            "Geometry to compare: box, polygon or mask; the coarser of the two sides' unless"
            " given.",
            "box",
        ),
    ] = None
    invalid_polygons: Annotated[
        str | None,
        _meta("Self-crossing or empty polygons: refuse or repair; refuse unless given.", "repair"),
    ] = None
    background_iou: Annotated[
        float | None, _meta("IoU up to which a wrong detection is background in TIDE; 0.1.", "0.2")
    ] = None
    boundary_ratio: Annotated[
        float | None,
        _meta("Width of the boundary in boundary IoU, as a share of the diagonal; 0.02.", "0.02"),
    ] = None
    keypoint_sigmas: Annotated[
        Any,
        _meta(
            "Spread of each keypoint in OKS: coco, crowdpose, even, one number for all, a number"
            " each, a JSON file of these, or a mapping of labels to any of them; coco's for 17.",
            "0.05",
        ),
    ] = None
    pck_threshold: Annotated[
        float | None,
        _meta("Share of people's boxes (0.2), or heads (0.5), a found keypoint may be off.", "0.1"),
    ] = None
    head_segment: Annotated[
        tuple[int, ...] | None,
        _meta("Two keypoints, counted from 1, whose distance is the head's size in PCKh.", "9,10"),
    ] = None
    mirrored_keypoints: Annotated[
        dict[int, int] | None,
        _meta("Left keypoints and their right ones, counted from 1; known of 17 and 14.", "2=3"),
    ] = None
    pixel_spacing: Annotated[
        tuple[float, ...] | None,
        _meta("Height and width of a pixel, or one number for both; 1.", "0.8"),
    ] = None
    surface_tolerance: Annotated[
        float | None,
        _meta("Distance allowed between outlines in NSD and BoundaryF1; 1, of pixel_spacing.", "2"),
    ] = None
    ignore_index: Annotated[
        int | None, _meta("Index of ground-truth pixels that count nowhere.", "255")
    ] = None
    background: Annotated[
        int | None, _meta("Index of pixels without a label; none in standard.", "0")
    ] = None
    resample: Annotated[
        bool | None,
        _meta("Bring predicted rasters of another resolution onto the ground truth's; false."),
    ] = None
    remote_rasters: Annotated[
        bool | None,
        _meta(
            "Whether a table's raster paths may be addresses or GDAL's virtual files, fetched with"
            " the environment's credentials; false."
        ),
    ] = None
    raster_root: Annotated[
        str | None,
        _meta("Folder that must contain a table's raster files; anywhere.", "data/masks"),
    ] = None
    beta: Annotated[float | None, _meta("Weight of recall in F; 1.", "0.5")] = None
    average: Annotated[
        str | None,
        _meta("The average that single numbers show: macro, micro, weighted or samples.", "macro"),
    ] = None
    positive_label: Annotated[
        str | int | bool | None,
        _meta("The positive of two labels; 1 or true unless given.", "spam"),
    ] = None
    zero_division: Annotated[
        float | None, _meta("Value of a ratio without denominator; null unless given.", "0")
    ] = None
    k: Annotated[tuple[int, ...] | None, _meta("Cut-offs of the metrics that have one.", "1,5")] = (
        None
    )
    score_columns: Annotated[
        Any,
        _meta(
            "Columns with one label's score each: their names (* matches any text), or a mapping "
            "of labels to names.",
            "'prob_*'",
        ),
    ] = None
    multilabel: Annotated[
        bool | None, _meta("Whether a datum may have several true labels; false.")
    ] = None
    decision_threshold: Annotated[
        float | None,
        _meta("Score from which a label counts as predicted, binary or multilabel; 0.5.", "0.7"),
    ] = None
    n_bins: Annotated[int | None, _meta("Bins of calibration metrics; 15.", "10")] = None
    box_bins: Annotated[
        int | None, _meta("Bins of each of centre x, centre y, width and height in BoxECE; 5.", "4")
    ] = None
    least_in_bin: Annotated[
        int | None, _meta("Predictions of a bin that counts in BoxECE; 8.", "1")
    ] = None
    max_fpr: Annotated[
        float | None, _meta("False-positive rate up to which PartialROCAUC runs; 0.1.", "0.1")
    ] = None
    target_precision: Annotated[
        float | None, _meta("Precision of ThresholdAtPrecision; 0.9.", "0.9")
    ] = None
    target_recall: Annotated[float | None, _meta("Recall of ThresholdAtRecall; 0.9.", "0.9")] = None
    target_fpr: Annotated[
        float | None, _meta("False-positive rate of ThresholdAtFPR; 0.1.", "0.01")
    ] = None
    thresholds: Annotated[
        Any,
        _meta(
            "Score from which predictions of each label count: a file that the command thresholds"
            " wrote, a table of label_value and threshold, or labels and numbers.",
            "best.json",
        ),
    ] = None
    false_positive_cost: Annotated[
        float | None, _meta("Cost of a false positive in ThresholdAtCost; 1.", "5")
    ] = None
    miss_cost: Annotated[float | None, _meta("Cost of a miss in ThresholdAtCost; 1.", "20")] = None
    thin_curves: Annotated[
        bool | None, _meta("Skip points of ROCCurve on a straight line; true.")
    ] = None
    match: Annotated[
        str | None,
        _meta(
            "When a retrieved text is a relevant one: chunk_from_original, exact_chunk,"
            " exact_sentence, rouge_chunk, rouge_sentence, fuzzy or levenshtein; ids match by"
            " equality.",
            "rouge_chunk",
        ),
    ] = None
    match_threshold: Annotated[
        float | None,
        _meta(
            "Lower limit of a match: ROUGE-L recall (0.7 chunks, 0.8 sentences), fuzzy ratio "
            "(0.9) or Levenshtein similarity (0.5); of tracks the IoU from which on CLEAR and "
            "identity match (0.5).",
            "0.7",
        ),
    ] = None
    ties: Annotated[
        str | None,
        _meta("Order of equal scores: trec (document id descending), input or average.", "input"),
    ] = None
    complete: Annotated[
        bool | None, _meta("Average over all judged queries, absent ones as 0; false.")
    ] = None
    judged_only: Annotated[
        bool | None, _meta("Skip documents without a judgment in every list; false.")
    ] = None
    relevance_levels: Annotated[
        tuple[float, ...] | None,
        _meta("Lowest relevance that counts as relevant, one or several; above 0.", "2"),
    ] = None
    gains: Annotated[
        Any, _meta("Gain of a relevance in nDCG: linear, exponential, or a mapping.", "exponential")
    ] = None
    discount: Annotated[
        str | None,
        _meta("Discount of a rank in nDCG: 'log2(rank+1)', or 'log2(rank)' from rank 2 on."),
    ] = None
    ideal: Annotated[
        str | None, _meta("Ideal order of nDCG: all judged documents, or the retrieved.")
    ] = None
    persistence: Annotated[float | None, _meta("Chance of looking on, in RBP; 0.9.", "0.8")] = None
    ignore_identical_ids: Annotated[
        bool | None, _meta("Remove a query's id from its results (BEIR); false.")
    ] = None
    mode: Annotated[
        str | None, _meta("FactualCorrectness as f1, precision or recall; f1.", "recall")
    ] = None
    atomicity: Annotated[
        str | None, _meta("How finely FactualCorrectness splits claims: low or high; low.")
    ] = None
    coverage: Annotated[
        str | None, _meta("How much of a text its claims are to cover: low or high; low.")
    ] = None
    strict_mode: Annotated[
        bool | None, _meta("Judged values below the best count as the worst (deepeval); false.")
    ] = None
    penalize_ambiguous: Annotated[
        bool | None, _meta("Undecided verdicts count against Faithfulness (deepeval); false.")
    ] = None
    rouge_types: Annotated[
        tuple[str, ...] | None,
        _meta("Variants of ROUGE; rouge1, rouge2, rougeL and rougeLsum.", "rouge1,rougeL"),
    ] = None
    use_stemmer: Annotated[
        bool | None, _meta("Whether ROUGE stems tokens of four letters and more (Porter); false.")
    ] = None
    rouge_tokenizer: Annotated[
        str | None, _meta("Tokens of ROUGE: ascii (rouge-score's), or unicode.", "unicode")
    ] = None
    bleu_weights: Annotated[
        tuple[float, ...] | None,
        _meta("Weight of each n-gram order of BLEU, summing to 1; 0.25 each of 4.", "0.5,0.5"),
    ] = None
    smoothing: Annotated[
        str | None,
        _meta(
            "Smoothing of BLEU: none, NLTK's method1 to method7, or sacrebleu's exp, floor and"
            " add-k.",
            "method1",
        ),
    ] = None
    tokenizer: Annotated[
        str | None,
        _meta(
            "Tokens of BLEU: words, none (white space), or sacrebleu's 13a, char, intl and zh.",
            "13a",
        ),
    ] = None
    lowercase: Annotated[
        bool | None, _meta("Whether BLEU, chrF, WER, CER and edit similarity ignore case; false.")
    ] = None
    stop_words: Annotated[
        Any,
        _meta(
            "Words skipped in token overlap, instead of articles (or continuous-eval's function "
            "words): a list, or a file with one per line.",
            "stop_words.txt",
        ),
    ] = None
    faithfulness_threshold: Annotated[
        float | None,
        _meta("Precision from which a sentence counts as supported by the contexts; 0.5.", "0.7"),
    ] = None
    ter_normalized: Annotated[
        bool | None, _meta("Whether TER separates punctuation from words; false.")
    ] = None
    ter_no_punct: Annotated[bool | None, _meta("Whether TER removes punctuation; false.")] = None
    ter_asian_support: Annotated[
        bool | None,
        _meta("Whether these two treat Chinese and Japanese characters as well; false."),
    ] = None
    ter_case_sensitive: Annotated[bool | None, _meta("Whether TER minds case; false.")] = None
    embedder: Annotated[
        Any,
        _meta(
            "Source of vectors for SemanticSimilarity: a model at an OpenAI-compatible endpoint "
            "(model, base_url and more by name), or in Python an object with encode.",
            "model=my-model,base_url=http://localhost:8000/v1",
        ),
    ] = None
    similarity_threshold: Annotated[
        float | None, _meta("Cosine from which SemanticSimilarity is 1, and else 0; none.", "0.8")
    ] = None
    nulls: Annotated[
        str | None,
        _meta("Null texts: refuse them, skip their datums, or take them as empty; refuse.", "skip"),
    ] = None
    huber_delta: Annotated[
        float | None, _meta("Error from which Huber grows in step with it; 1.", "2.5")
    ] = None
    tweedie_power: Annotated[
        float | None, _meta("Power of TweedieDeviance and D2Tweedie; 1.5.", "1.9")
    ] = None
    quantile: Annotated[
        float | None, _meta("Which quantile predictions are, for Pinball; 0.5.", "0.9")
    ] = None
    interval_level: Annotated[
        float | None, _meta("Share of targets that predicted intervals should contain; 0.9.", "0.8")
    ] = None
    n_features: Annotated[int | None, _meta("Features of the model, for AdjustedR2.", "12")] = None
    training: Annotated[
        Any, _meta("Table of series before the forecasts, for MASE and RMSSE.", "train.parquet")
    ] = None
    seasonality: Annotated[
        int | None, _meta("Steps back that the naive forecast of training looks; 1.", "7")
    ] = None
    limits: Annotated[
        bool | None, _meta("Add frame limits: how far numbers could move by open choices; false.")
    ] = None
    intervals: Annotated[
        float | None,
        _meta("Confidence of intervals of every metric: 0.95, or 95 percent; none.", "95"),
    ] = None
    draws: Annotated[
        int | None,
        _meta("Number of bootstrap resamples for intervals and comparisons; 1,000.", "10000"),
    ] = None
    seed: Annotated[int | None, _meta("Seed of the resamples; 0.", "1")] = None
    cluster: Annotated[
        str | None,
        _meta(
            "Column of the clusters to resample, as the video of a frame; single datums.", "video"
        ),
    ] = None
    method: Annotated[
        str | None,
        _meta(
            "Kind of interval: percentile, recentred, normal, bca, jackknife, wilson or delong; by"
            " metric.",
            "bca",
        ),
    ] = None
    threads: Annotated[int | None, _meta("Threads; all cores unless given.", "2")] = None
    memory_limit: Annotated[
        str | int | None,
        _meta(
            "Memory limit: bytes or '2GB'; a share of free memory unless given. Larger inputs "
            "use files.",
            "2GB",
        ),
    ] = None
    scratch: Annotated[
        str | None,
        _meta(
            "Folder for files of a run larger than memory; the system's temporary one unless "
            "given.",
            "/mnt/large",
        ),
    ] = None

    @property
    def drawn(self) -> bool:
        """True if datums are resampled."""
        return self.intervals is not None

    @property
    def columns_of_datums(self) -> tuple[str, ...]:
        """Entries that are read as slices are: those of ``by``, and the cluster."""
        return self.by if self.cluster is None else (*self.by, self.cluster)

    def replace(self, **changes: Any) -> Options:
        """A copy with some fields changed; a mistyped name answers with the nearest right one."""
        return msgspec.structs.replace(self, **checked_names(changes))


FIELDS: tuple[str, ...] = tuple(field.name for field in msgspec.structs.fields(Options))


def checked_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping, after checking that every name in it is an option.

    Raises:
        OptionError: names the first unknown option and the nearest valid one.
    """
    for name in given:
        if name not in FIELDS:
            said = meant(name) or unknown("option", name, FIELDS).said
            raise OptionError(said, code="unknown_name", value=name)
    return dict(given)


# Options by topic, and the tasks that read them.


class Group(msgspec.Struct, frozen=True):
    """Options that are documented together.

    Attributes:
        title: their topic.
        options: their names.
        tasks: tasks that read them; empty for all.
    """

    title: str
    options: tuple[str, ...]
    tasks: tuple[str, ...] = ()


GROUPS: tuple[Group, ...] = (
    Group("Task, metrics and slices", ("task", "dialect", "metrics", "by", "where")),
    Group(
        "Matching and thresholds",
        (
            "iou_thresholds",
            "iou_thresholds_to_return",
            "recall_score_threshold",
            "pr_curve_iou_threshold",
            "max_detections",
            "area_ranges",
            "background_iou",
        ),
        ("detection",),
    ),
    Group(
        "Matching and thresholds",
        ("iou_thresholds", "iou_thresholds_to_return", "match_threshold"),
        ("tracking",),
    ),
    Group(
        "Classes and scores",
        (
            "beta",
            "average",
            "positive_label",
            "zero_division",
            "k",
            "score_columns",
            "multilabel",
            "decision_threshold",
            "n_bins",
            "max_fpr",
            "target_fpr",
            "thin_curves",
        ),
        ("classification",),
    ),
    Group("Curves", ("score_thresholds", "pr_curve_max_examples"), ("classification", "detection")),
    Group("Chosen thresholds", ("beta",), ("detection",)),
    Group("Calibration", ("n_bins", "box_bins", "least_in_bin"), ("detection",)),
    Group(
        "Chosen thresholds",
        ("thresholds", "target_precision", "target_recall", "false_positive_cost", "miss_cost"),
        ("classification", "detection"),
    ),
    Group(
        "Geometry", ("box_format", "angle_format", "convert_to", "keypoint_sigmas"), ("detection",)
    ),
    Group("Geometry", ("pck_threshold", "head_segment", "mirrored_keypoints"), ("detection",)),
    Group("Geometry", ("box_format",), ("tracking",)),
    Group("Geometry", ("iou_type",), ("detection", "panoptic", "tracking")),
    Group("Geometry", ("boundary_ratio",), ("detection", "segmentation", "panoptic")),
    Group("Geometry", ("invalid_polygons",), ("detection", "segmentation")),
    Group("Pixels", ("ignore_index", "background", "resample"), ("segmentation",)),
    Group("Outlines", ("pixel_spacing", "surface_tolerance"), ("segmentation",)),
    Group(
        "Raster files", ("remote_rasters", "raster_root"), ("detection", "segmentation", "panoptic")
    ),
    Group(
        "Ranked lists",
        (
            "k",
            "match",
            "match_threshold",
            "ties",
            "complete",
            "judged_only",
            "relevance_levels",
            "gains",
            "discount",
            "ideal",
            "persistence",
            "ignore_identical_ids",
        ),
        ("retrieval",),
    ),
    Group(
        "Verdicts",
        ("mode", "beta", "atomicity", "coverage", "strict_mode", "penalize_ambiguous"),
        ("judged",),
    ),
    Group(
        "Errors of numbers",
        ("huber_delta", "tweedie_power", "quantile", "interval_level", "n_features"),
        ("regression",),
    ),
    Group("Forecasts", ("training", "seasonality"), ("regression",)),
    Group("ROUGE", ("rouge_types", "use_stemmer", "rouge_tokenizer"), ("text",)),
    Group("BLEU", ("bleu_weights", "smoothing", "tokenizer"), ("text",)),
    Group(
        "TER",
        ("ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive"),
        ("text",),
    ),
    Group(
        "Texts and vectors",
        (
            "lowercase",
            "stop_words",
            "faithfulness_threshold",
            "embedder",
            "similarity_threshold",
            "nulls",
        ),
        ("text",),
    ),
    Group("Names", ("columns", "label_map", "id_format", "label_format")),
    Group("Open choices", ("limits",), ("detection", "retrieval")),
    Group("Intervals", ("intervals", "draws", "seed", "cluster", "method")),
    Group("Execution", ("threads", "memory_limit", "scratch")),
)
"""Every option, in the order of the help."""


def _tasks_of() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in GROUPS:
        for name in group.options if group.tasks else ():
            found[name] = (*found.get(name, ()), *group.tasks)
    return found


TASKS_OF = _tasks_of()
"""Options that not every task reads -> the tasks that do."""


# Options that were given to a task that does not read them.


def idle(options: Options, task: str) -> list[str]:
    """Options that were given and that the task does not read, one sentence each."""
    return [
        f"{name} is an option of {' and '.join(owners)}; {task} does not read it."
        for name, owners in TASKS_OF.items()
        if task not in owners and getattr(options, name) is not None
    ]
