"""Options: one immutable object, the same in Python, in the shell and in TOML.

Each field of :class:`Options` declares its option: type, topic, tasks, default, accepted values.
Its help text is its entry in the docstring of the class. Settings and checks of tasks, the command
line and notes on options that are not read follow from the declaration.
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import msgspec

from .contract import words
from .errors import OptionError, invalid, unknown
from .wording import option

if TYPE_CHECKING:
    from .named import Dialect, Task
else:  # names are checked with a message that suggests the nearest
    Task = Dialect = str

# Names of the options in other tools.

_NAMES_ELSEWHERE = {
    "metrics": "metric metric_names metrics_to_return measures",
    "k": "k_list k_values top_k cutoffs",
    "match": "matching_strategy",
    "iou_thresholds": "iou iou_thrs iouthrs iou_thresholds_to_compute",
    "score_thresholds": "score_threshold confidence_threshold confidence_thresholds",
    "convert_to": "convert_annotations_to_type",
    "pr_curve_max_examples": "number_of_examples",
    "where": "filters filter_by filter",
    "max_detections": "maxdets max_dets max_detection_thresholds",
    "collar": "t_collar",
    "area_ranges": "arearng area_range",
    "iou_type": "ioutype",
    "positive_label": "pos_label",
    "decision_threshold": "threshold",
    "relevance_levels": "rel relevance_level",
    "columns": "column_map rename",
    "value_columns": "values",
    "statistics": "statistic",
    "better": "directions",
    "bleu_weights": "weights",
    "smoothing": "smoothing_function smooth_method",
    "tokenizer": "tokenize",
    "embedder": "embeddings",
    "by": "slices group_by slice_by",
    "threads": "n_jobs",
}
ELSEWHERE: dict[str, str] = {}
"""Name of an option in other tools or the shell, in lower case -> its name here."""
for _ours, _names in _NAMES_ELSEWHERE.items():
    ELSEWHERE |= dict.fromkeys(words(_names), _ours)


def explain_foreign_name(name: str) -> str | None:
    """Return the message for another tool's name of an option; None for unknown names."""
    ours = ELSEWHERE.get(name.lower().replace("-", "_"))
    return None if ours is None else f"{name!r} is not a known option. It is {option(ours)} here."


# Declaration of an option: text, tasks, default, accepted values.


class Range(msgspec.Struct, frozen=True):
    """Numbers that an option accepts; always finite.

    Attributes:
        low: smallest number.
        high: largest number.
        above: ``low`` itself is excluded.
        below: ``high`` itself is excluded.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def check(self, name: str, *values: float) -> None:
        """Refuse values of an option that are outside.

        Raises:
            OptionError: names the first.
        """
        for value in values:
            above = value > self.low if self.above else value >= self.low
            below = value < self.high if self.below else value <= self.high
            if not (above and below and abs(value) < math.inf):
                raise invalid(name, value, f"write {self._words()}.")

    def _words(self) -> str:
        if math.isinf(self.low):
            return "a finite number"
        if math.isinf(self.high):
            return f"a number above {self.low:g}" if self.above else f"{self.low:g} or more"
        if not self.above and not self.below:
            return f"a number from {self.low:g} to {self.high:g}"
        low = "above" if self.above else "at least"
        high = "below" if self.below else "at most"
        return f"a number {low} {self.low:g} and {high} {self.high:g}"


class Option(msgspec.Struct, frozen=True):
    """Declaration of an option.

    Attributes:
        topic: its heading in help, one of :data:`TOPICS`.
        tasks: tasks that read it; empty for all.
        default: its value in dialects that set none.
        accepts: accepted numbers or words, by task if these differ; of a tuple for each item.
        grid: its items are sorted and distinct.
        may_be_empty: no items are a valid value.
        decimals: items of half and single precision are read as the decimals that were meant, such
            as 0.55. Thresholds of scores are kept exactly.
    """

    topic: str
    tasks: tuple[str, ...] = ()
    default: Any = None
    accepts: Range | tuple[str, ...] | dict[str, Range | tuple[str, ...]] | None = None
    grid: bool = False
    may_be_empty: bool = False
    decimals: bool = False


CLASSIFICATION, DETECTION, TRACKING = ("classification",), ("detection",), ("tracking",)
SEGMENTATION, PANOPTIC, RETRIEVAL = ("segmentation",), ("panoptic",), ("retrieval",)
TEXT, JUDGED, REGRESSION = ("text",), ("judged",), ("regression",)
VALUES, SPANS, AGENTS = ("values",), ("spans",), ("agents",)

DIRECTIONS = ("higher", "lower", "neither")
"""Better directions of a metric; the option ``better`` takes the first two."""

TOPICS = (
    RUN := "Task, metrics and slices",
    MATCHING := "Matching and thresholds",
    SCORES := "Weights and cut-offs",
    CLASSES := "Classes and scores",
    CURVES := "Curves",
    CUTS := "Chosen thresholds",
    CALIBRATION := "Calibration",
    GEOMETRY := "Geometry",
    PIXELS := "Pixels",
    OUTLINES := "Outlines",
    RASTERS := "Raster files",
    LISTS := "Ranked lists",
    VERDICTS := "Verdicts",
    STATISTICS := "Values",
    CALLS := "Tool calls",
    NUMBERS := "Errors of numbers",
    FORECASTS := "Forecasts",
    ROUGE := "ROUGE",
    BLEU := "BLEU",
    TER := "TER",
    TEXTS := "Texts and vectors",
    NAMES := "Names",
    OPEN := "Open choices",
    INTERVALS := "Intervals",
    EXECUTION := "Execution",
)
"""Headings of the help, in order."""

FINITE, POSITIVE, FROM_0, FROM_1 = Range(), Range(0, above=True), Range(0), Range(1)
SHARE, POSITIVE_SHARE, INSIDE = (
    Range(0, 1),
    Range(0, 1, above=True),
    Range(0, 1, above=True, below=True),
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All options of ``score``, except the tables.

    A field that is None takes the default of the dialect, then the declared one. Given and default
    values remain distinguishable, since some defaults depend on the given options.

    Example:
        >>> import evalengine as ee
        >>> nightly = ee.Options(dialect="coco", by=("weather",))

    Attributes:
        task: Task; follows from the columns unless given. E.g. detection
        dialect: Named rule set: standard, or the reference to agree with. E.g. coco
        metrics: Metrics to compute; the task's default set unless given.
        by: Slice columns; 'a*b' crosses two. E.g. weather*camera
        spread: Slice column over whose values every metric is compared: lowest, highest,
            difference, ratio, and what equal groups would show. E.g. gender
        where: SQL condition on rows, applied to every side that has its columns; or one per side
            under 'predictions' and 'ground_truths'. E.g. score > 0.1
        columns: Own column names: {'mine': 'datum_id'}. E.g. mine=datum_id
        label_map: Rename or merge labels: {'van': 'car'}, or (key, value) pairs on either side;
            may change key and value. E.g. van=car
        box_format: Content of a list column 'bbox': xyxy, xywh or cxcywh. E.g. xywh
        angle_format: Unit and direction of the angle of oriented boxes, as seen in the image:
            radians or degrees, clockwise or counterclockwise; of 3-D boxes radians-z-up,
            degrees-z-up or radians-camera (KITTI's). E.g. radians-clockwise
        id_format: How datum ids of all tables are rewritten before they are matched: text, case,
            blanks, unicode, zeros, extension, file, stem, number; a step added to the predictions'
            (+1); a regular expression whose first group is the id. E.g. stem
        label_format: The same for labels in columns (those of label maps' pixels aside): case,
            blanks, a step added to the predictions' (+1) and the like. E.g. case
        iou_type: Geometry to compare: bbox, obb or probiou (oriented boxes), segm (masks),
            boundary or, only if given, keypoints, 3d or bev (3-D boxes, or their ground planes);
            by the tables unless given. E.g. bbox
        iou_thresholds: IoU thresholds, in (0, 1]; 0.50 to 0.95 by 0.05. E.g. 0.5
        iou_thresholds_to_return: Those with separate AP and mAP rows; 0.5 and 0.75. E.g. 0.5
        score_thresholds: Score thresholds of curves and counts; 0.05 to 0.95 by 0.05. E.g. 0.5
        recall_score_threshold: Lowest score of a true positive in AR and mAR; none. E.g. 0.3
        pr_curve_iou_threshold: IoU threshold of the score-threshold curves; 0.5. E.g. 0.5
        pr_curve_max_examples: Examples per cell of detailed curves (1), and, if given, of
            confusion matrices. E.g. 3
        max_detections: Caps per datum and label, best scores first; none in standard. E.g. 100
        area_ranges: Named area ranges in squared pixels, both ends included. E.g. small=0:1024
        convert_to: Geometry to compare: box, polygon or mask; the coarser of the two sides' unless
            given. E.g. box
        invalid_polygons: Self-crossing or empty polygons: refuse or repair; refuse unless given.
            E.g. repair
        background_iou: IoU up to which a wrong detection is background in TIDE; 0.1. E.g. 0.2
        boundary_ratio: Width of the boundary in boundary IoU, as a share of the diagonal; 0.02.
            E.g. 0.02
        regions: Table of boxes (datum_id, xmin, ymin, xmax, ymax) in which nothing counts,
            whatever the label. E.g. regions.parquet
        region_overlap: Share of a prediction inside the regions from which it does not count; 0.5
            in standard and visdrone. E.g. 0.8
        keypoint_sigmas: Spread of each keypoint in OKS: coco, crowdpose, even, one number for all,
            a number each, a JSON file of these, or a mapping of labels to any of them; coco's for
            17. E.g. 0.05
        pck_threshold: Share of people's boxes (0.2), or heads (0.5), a found keypoint may be off.
            E.g. 0.1
        head_segment: Two keypoints, counted from 1, whose distance is the head's size in PCKh.
            E.g. 9,10
        mirrored_keypoints: Left keypoints and their right ones, counted from 1; known of 17 and
            14. E.g. 2=3
        pixel_spacing: Height and width of a pixel, or one number for both; 1. E.g. 0.8
        surface_tolerance: Distance allowed between outlines in NSD and BoundaryF1; 1, of
            pixel_spacing. E.g. 2
        ignore_index: Index of ground-truth pixels that count nowhere. E.g. 255
        background: Index of pixels without a label; none in standard. E.g. 0
        resample: Bring predicted rasters of another resolution onto the ground truth's; false.
        remote_rasters: Whether a table's raster paths may be addresses or GDAL's virtual files,
            fetched with the environment's credentials; false.
        raster_root: Folder that must contain a table's raster files; anywhere. E.g. data/masks
        beta: Weight of recall in F; 1. E.g. 0.5
        average: The average that single numbers show: macro, micro, weighted or samples. E.g. macro
        positive_label: The positive of two labels; 1 or true unless given. E.g. spam
        zero_division: Value of a ratio without denominator; null unless given. E.g. 0
        k: Cut-offs of the metrics that have one. E.g. 1,5
        score_columns: Columns with one label's score each: their names (* matches any text), or a
            mapping of labels to names. E.g. 'prob_*'
        multilabel: Whether a datum may have several true labels; false.
        decision_threshold: Score from which a label counts as predicted, binary or multilabel;
            0.5. E.g. 0.7
        n_bins: Bins of calibration metrics; 15. E.g. 10
        box_bins: Bins of each of centre x, centre y, width and height in BoxECE; 5. E.g. 4
        least_in_bin: Predictions of a bin that counts in BoxECE; 8. E.g. 1
        max_fpr: False-positive rate up to which PartialROCAUC runs; 0.1. E.g. 0.1
        target_precision: Precision of ThresholdAtPrecision; 0.9. E.g. 0.9
        target_recall: Recall of ThresholdAtRecall; 0.9. E.g. 0.9
        target_fpr: False-positive rate of ThresholdAtFPR; 0.1. E.g. 0.01
        thresholds: Score from which predictions of each label count: a file that the command
            thresholds wrote, a table of label_value and threshold, or labels and numbers. E.g.
            best.json
        false_positive_cost: Cost of a false positive in ThresholdAtCost; 1. E.g. 5
        miss_cost: Cost of a miss in ThresholdAtCost; 1. E.g. 20
        top_share: Share of datums with the highest scores in Gain and Lift; 0.1. E.g. 0.2
        thin_curves: Skip points of ROCCurve on a straight line; true.
        scheme: Spelling of tags: IOB1, IOB2, IOE1, IOE2, IOBES or BILOU; only its well-formed
            entities count. Without it all are read, and malformed ones too. E.g. IOB2
        span_ends: Whether column end is the first place after a span (exclusive), or its last
            (inclusive); exclusive. E.g. inclusive
        min_overlap_percentage: Percent of a true span that an overlap has to cover (nervaluate);
            1. E.g. 50
        collar: Seconds that onsets, and offsets, may differ (sed); 0.2. E.g. 0.5
        percentage_of_length: Share of a true event's length that offsets may differ, if that is
            more than the collar (sed); 0.5. E.g. 0.2
        match: When a retrieved text is a relevant one: chunk_from_original, exact_chunk,
            exact_sentence, rouge_chunk, rouge_sentence, fuzzy or levenshtein; ids match by
            equality. E.g. rouge_chunk
        match_threshold: Lower limit of a match: ROUGE-L recall (0.7 chunks, 0.8 sentences), fuzzy
            ratio (0.9) or Levenshtein similarity (0.5); of tracks the IoU from which on CLEAR and
            identity match (0.5). E.g. 0.7
        ties: Order of equal scores: trec (document id descending), input or average. E.g. input
        complete: Average over all judged queries, absent ones as 0; false.
        judged_only: Skip documents without a judgment in every list; false.
        relevance_levels: Lowest relevance that counts as relevant, one or several; above 0. E.g. 2
        gains: Gain of a relevance in nDCG: linear, exponential, or a mapping. E.g. exponential
        discount: Discount of a rank in nDCG: 'log2(rank+1)', or 'log2(rank)' from rank 2 on.
        ideal: Ideal order of nDCG: all judged documents, or the retrieved.
        persistence: Chance of looking on, in RBP; 0.9. E.g. 0.8
        ignore_identical_ids: Remove a query's id from its results (BEIR); false.
        mode: FactualCorrectness as f1, precision or recall; f1. E.g. recall
        atomicity: How finely FactualCorrectness splits claims: low or high; low.
        coverage: How much of a text its claims are to cover: low or high; low.
        strict_mode: Judged values below the best count as the worst (deepeval); false.
        penalize_ambiguous: Undecided verdicts count against Faithfulness (deepeval); false.
        human: Table of human labels of some judged rows (datum_id, value), to correct the judge's
            mean. E.g. labels.parquet
        label_next: Rows to label next, in the frame to_label; 100 with human. E.g. 200
        rouge_types: Variants of ROUGE; rouge1, rouge2, rougeL and rougeLsum. E.g. rouge1,rougeL
        use_stemmer: Whether ROUGE stems tokens of four letters and more (Porter); false.
        rouge_tokenizer: Tokens of ROUGE: ascii (rouge-score's), or unicode. E.g. unicode
        bleu_weights: Weight of each n-gram order of BLEU, summing to 1; 0.25 each of 4. E.g.
            0.5,0.5
        smoothing: Smoothing of BLEU: none, NLTK's method1 to method7, or sacrebleu's exp, floor
            and add-k. E.g. method1
        tokenizer: Tokens of BLEU: words, none (white space), or sacrebleu's 13a, char, intl and
            zh. E.g. 13a
        lowercase: Whether BLEU, chrF, WER, CER and edit similarity ignore case; false.
        stop_words: Words skipped in token overlap, instead of articles (or continuous-eval's
            function words): a list, or a file with one per line. E.g. stop_words.txt
        faithfulness_threshold: Precision from which a sentence counts as supported by the
            contexts; 0.5. E.g. 0.7
        ter_normalized: Whether TER separates punctuation from words; false.
        ter_no_punct: Whether TER removes punctuation; false.
        ter_asian_support: Whether these two treat Chinese and Japanese characters as well; false.
        ter_case_sensitive: Whether TER minds case; false.
        embedder: Source of vectors for SemanticSimilarity: a model at an OpenAI-compatible
            endpoint (model, base_url and more by name), or in Python an object with encode. E.g.
            model=my-model,base_url=http://localhost:8000/v1
        similarity_threshold: Cosine from which SemanticSimilarity is 1, and else 0; none. E.g. 0.8
        nulls: Null texts: refuse them, skip their datums, or take them as empty; refuse. E.g. skip
        huber_delta: Error from which Huber grows in step with it; 1. E.g. 2.5
        tweedie_power: Power of TweedieDeviance and D2Tweedie; 1.5. E.g. 1.9
        quantile: Which quantile predictions are, for Pinball; 0.5. E.g. 0.9
        interval_level: Share of targets that predicted intervals should contain; 0.9. E.g. 0.8
        n_features: Features of the model, for AdjustedR2. E.g. 12
        training: Table of series before the forecasts, for MASE and RMSSE. E.g. train.parquet
        seasonality: Steps back that the naive forecast of training looks; 1. E.g. 7
        value_columns: Columns of numbers or booleans, one per metric, of a table with one row per
            datum; all columns of numbers but ids, weights and slices unless given. E.g.
            COMET,latency
        statistics: Statistics of values: mean, sum, median, std, min, max, or percentiles such as
            p95; mean. E.g. mean,p95
        better: Better direction of own metrics, higher or lower; without it comparisons say higher
            and lower. E.g. COMET=higher
        tool_arguments: How arguments of tool calls are compared: exact, subset (the call's are
            among the expected), superset (the reverse), ignore; exact.
        argument_rules: Rule for an argument, of one tool or of all: exact, ignore, text (case and
            white space do not count), or a tolerance of numbers, also in percent.
            E.g. search.query=text,lat=0.01,price=1%
        tools: Tools whose use TrajectorySingleToolUse counts. E.g. search
        limits: Add frame limits: how far numbers could move by open choices; false.
        intervals: Confidence of intervals of every metric: 0.95, or 95 percent; none. E.g. 95
        draws: Number of bootstrap resamples for intervals and comparisons; 1,000. E.g. 10000
        seed: Seed of the resamples; 0. E.g. 1
        cluster: Column of the clusters to resample, as the video of a frame; single datums. E.g.
            video
        method: Kind of interval (percentile, recentred, normal, bca, jackknife, wilson, logit, log
            or delong); by metric. E.g. bca
        threads: Threads; all cores unless given. E.g. 2
        memory_limit: Memory limit: bytes or '2GB'; a share of free memory unless given. Larger
            inputs use files. E.g. 2GB
        scratch: Folder or store for a run larger than memory: a path, or an address such as s3://...;
            the system's temporary folder unless given. E.g. /mnt/large
        client_reads: Whether this process reads all tables for the workers of a cluster; only those
            that the workers cannot read unless given.
    """

    task: Annotated[Task | None, Option(RUN)] = None
    dialect: Annotated[Dialect, Option(RUN)] = "standard"
    metrics: Annotated[tuple[str, ...] | None, Option(RUN)] = None
    by: Annotated[tuple[str, ...], Option(RUN)] = ()
    spread: Annotated[str | None, Option(RUN)] = None
    where: Annotated[dict[str, str] | str | None, Option(RUN)] = None
    columns: Annotated[dict[str, str] | None, Option(NAMES)] = None
    label_map: Annotated[Any, Option(NAMES)] = None
    box_format: Annotated[str | None, Option(GEOMETRY, DETECTION + TRACKING)] = None
    angle_format: Annotated[str | None, Option(GEOMETRY, DETECTION)] = None
    id_format: Annotated[tuple[str, ...] | None, Option(NAMES)] = None
    label_format: Annotated[tuple[str, ...] | None, Option(NAMES)] = None
    iou_type: Annotated[
        str | None,
        Option(
            GEOMETRY,
            DETECTION + PANOPTIC + TRACKING,
            accepts={
                "detection": words("bbox obb probiou segm boundary keypoints 3d bev distance"),
                "panoptic": ("segm", "boundary"),
                "tracking": ("bbox", "segm"),
            },
        ),
    ] = None
    iou_thresholds: Annotated[
        tuple[float, ...] | None,
        Option(
            MATCHING,
            DETECTION + TRACKING + SPANS,
            accepts={"tracking": POSITIVE_SHARE},
            grid=True,
            decimals=True,
        ),
    ] = None
    iou_thresholds_to_return: Annotated[
        tuple[float, ...] | None,
        Option(MATCHING, DETECTION + TRACKING + SPANS, grid=True, decimals=True),
    ] = None
    score_thresholds: Annotated[
        tuple[float, ...] | None,
        Option(CURVES, CLASSIFICATION + DETECTION + SPANS, accepts=FINITE, grid=True),
    ] = None
    recall_score_threshold: Annotated[
        float | None, Option(MATCHING, DETECTION + SPANS, accepts=FINITE)
    ] = None
    pr_curve_iou_threshold: Annotated[float | None, Option(MATCHING, DETECTION + SPANS)] = None
    pr_curve_max_examples: Annotated[
        int | None, Option(CURVES, CLASSIFICATION + DETECTION + SPANS, accepts=FROM_0)
    ] = None
    max_detections: Annotated[
        tuple[int, ...] | None,
        Option(MATCHING, DETECTION + SPANS, accepts=FROM_1, grid=True, may_be_empty=True),
    ] = None
    area_ranges: Annotated[dict[str, tuple[float, float]] | None, Option(MATCHING, DETECTION)] = (
        None
    )
    convert_to: Annotated[
        str | None, Option(GEOMETRY, DETECTION, accepts=("box", "obb", "polygon", "mask", "raster"))
    ] = None
    invalid_polygons: Annotated[
        str | None, Option(GEOMETRY, DETECTION + SEGMENTATION, "refuse", ("refuse", "repair"))
    ] = None
    background_iou: Annotated[float | None, Option(MATCHING, DETECTION + SPANS)] = None
    boundary_ratio: Annotated[
        float | None, Option(GEOMETRY, DETECTION + SEGMENTATION + PANOPTIC, 0.02, INSIDE)
    ] = None
    regions: Annotated[Any, Option(MATCHING, DETECTION)] = None
    region_overlap: Annotated[float | None, Option(MATCHING, DETECTION, accepts=POSITIVE_SHARE)] = (
        None
    )
    keypoint_sigmas: Annotated[Any, Option(GEOMETRY, DETECTION)] = None
    pck_threshold: Annotated[float | None, Option(GEOMETRY, DETECTION, accepts=POSITIVE)] = None
    head_segment: Annotated[tuple[int, ...] | None, Option(GEOMETRY, DETECTION)] = None
    mirrored_keypoints: Annotated[dict[int, int] | None, Option(GEOMETRY, DETECTION)] = None
    pixel_spacing: Annotated[
        tuple[float, ...] | None, Option(OUTLINES, SEGMENTATION, (1.0,), POSITIVE)
    ] = None
    surface_tolerance: Annotated[float | None, Option(OUTLINES, SEGMENTATION, 1.0, FROM_0)] = None
    ignore_index: Annotated[int | None, Option(PIXELS, SEGMENTATION)] = None
    background: Annotated[int | None, Option(PIXELS, SEGMENTATION)] = None
    resample: Annotated[bool | None, Option(PIXELS, SEGMENTATION, False)] = None
    remote_rasters: Annotated[bool | None, Option(RASTERS, DETECTION + SEGMENTATION + PANOPTIC)] = (
        None
    )
    raster_root: Annotated[str | None, Option(RASTERS, DETECTION + SEGMENTATION + PANOPTIC)] = None
    beta: Annotated[
        float | None, Option(SCORES, CLASSIFICATION + DETECTION + JUDGED + SPANS, 1.0, POSITIVE)
    ] = None
    average: Annotated[
        str | None,
        Option(CLASSES, CLASSIFICATION, accepts=("macro", "micro", "weighted", "samples")),
    ] = None
    positive_label: Annotated[str | int | bool | None, Option(CLASSES, CLASSIFICATION)] = None
    zero_division: Annotated[float | None, Option(CLASSES, CLASSIFICATION + SPANS)] = None
    k: Annotated[
        tuple[int, ...] | None,
        Option(
            SCORES,
            CLASSIFICATION + RETRIEVAL,
            accepts={"classification": FROM_1, "retrieval": FROM_0},
            grid=True,
        ),
    ] = None
    score_columns: Annotated[Any, Option(CLASSES, CLASSIFICATION)] = None
    multilabel: Annotated[bool | None, Option(CLASSES, CLASSIFICATION, False)] = None
    decision_threshold: Annotated[float | None, Option(CLASSES, CLASSIFICATION, accepts=FINITE)] = (
        None
    )
    n_bins: Annotated[
        int | None, Option(CALIBRATION, CLASSIFICATION + DETECTION + SPANS, 15, FROM_1)
    ] = None
    box_bins: Annotated[int | None, Option(CALIBRATION, DETECTION, 5, Range(1, 100))] = None
    least_in_bin: Annotated[int | None, Option(CALIBRATION, DETECTION, 8, FROM_1)] = None
    max_fpr: Annotated[float | None, Option(CLASSES, CLASSIFICATION, accepts=POSITIVE_SHARE)] = None
    target_precision: Annotated[
        float | None, Option(CUTS, CLASSIFICATION + DETECTION + SPANS, 0.9, SHARE)
    ] = None
    target_recall: Annotated[
        float | None, Option(CUTS, CLASSIFICATION + DETECTION + SPANS, 0.9, SHARE)
    ] = None
    target_fpr: Annotated[float | None, Option(CUTS, CLASSIFICATION, 0.1, SHARE)] = None
    thresholds: Annotated[Any, Option(CUTS, CLASSIFICATION + DETECTION + SPANS, ())] = None
    false_positive_cost: Annotated[
        float | None, Option(CUTS, CLASSIFICATION + DETECTION + SPANS, 1.0, FROM_0)
    ] = None
    miss_cost: Annotated[
        float | None, Option(CUTS, CLASSIFICATION + DETECTION + SPANS, 1.0, FROM_0)
    ] = None
    top_share: Annotated[float | None, Option(CUTS, CLASSIFICATION, 0.1, POSITIVE_SHARE)] = None
    thin_curves: Annotated[bool | None, Option(CLASSES, CLASSIFICATION, True)] = None
    scheme: Annotated[
        str | None,
        Option(MATCHING, SPANS, accepts=("IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU")),
    ] = None
    span_ends: Annotated[
        str | None, Option(MATCHING, SPANS, "exclusive", ("exclusive", "inclusive"))
    ] = None
    min_overlap_percentage: Annotated[float | None, Option(MATCHING, SPANS, 1.0, Range(1, 100))] = (
        None
    )
    collar: Annotated[float | None, Option(MATCHING, SPANS, 0.2, POSITIVE)] = None
    percentage_of_length: Annotated[float | None, Option(MATCHING, SPANS, 0.5, SHARE)] = None
    match: Annotated[
        str | None,
        Option(
            MATCHING,
            RETRIEVAL,
            accepts=words(
                "chunk_from_original exact_chunk exact_sentence rouge_chunk rouge_sentence fuzzy"
                " levenshtein"
            ),
        ),
    ] = None
    match_threshold: Annotated[
        float | None,
        Option(
            MATCHING, RETRIEVAL + TRACKING, accepts={"retrieval": SHARE, "tracking": POSITIVE_SHARE}
        ),
    ] = None
    ties: Annotated[str | None, Option(LISTS, RETRIEVAL, "trec", ("trec", "input", "average"))] = (
        None
    )
    complete: Annotated[bool | None, Option(LISTS, RETRIEVAL)] = None
    judged_only: Annotated[bool | None, Option(LISTS, RETRIEVAL, False)] = None
    relevance_levels: Annotated[
        tuple[float, ...] | None, Option(LISTS, RETRIEVAL, accepts=POSITIVE, grid=True)
    ] = None
    gains: Annotated[Any, Option(LISTS, RETRIEVAL, "linear", ("linear", "exponential"))] = None
    discount: Annotated[
        str | None, Option(LISTS, RETRIEVAL, "log2(rank+1)", ("log2(rank+1)", "log2(rank)"))
    ] = None
    ideal: Annotated[str | None, Option(LISTS, RETRIEVAL, "judged", ("judged", "retrieved"))] = None
    persistence: Annotated[float | None, Option(LISTS, RETRIEVAL, accepts=INSIDE)] = None
    ignore_identical_ids: Annotated[bool | None, Option(LISTS, RETRIEVAL, False)] = None
    mode: Annotated[str | None, Option(VERDICTS, JUDGED, accepts=("f1", "precision", "recall"))] = (
        None
    )
    atomicity: Annotated[str | None, Option(VERDICTS, JUDGED, accepts=("low", "high"))] = None
    coverage: Annotated[str | None, Option(VERDICTS, JUDGED, accepts=("low", "high"))] = None
    strict_mode: Annotated[bool | None, Option(VERDICTS, JUDGED, False)] = None
    penalize_ambiguous: Annotated[bool | None, Option(VERDICTS, JUDGED, False)] = None
    human: Annotated[Any, Option(VERDICTS, JUDGED)] = None
    label_next: Annotated[int | None, Option(VERDICTS, JUDGED, accepts=FROM_0)] = None
    rouge_types: Annotated[
        tuple[str, ...] | None,
        Option(
            ROUGE,
            TEXT,
            ("rouge1", "rouge2", "rougeL", "rougeLsum"),
            ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"),
        ),
    ] = None
    use_stemmer: Annotated[bool | None, Option(ROUGE, TEXT, False)] = None
    rouge_tokenizer: Annotated[str | None, Option(ROUGE, TEXT, "ascii", ("ascii", "unicode"))] = (
        None
    )
    bleu_weights: Annotated[tuple[float, ...] | None, Option(BLEU, TEXT, (0.25,) * 4, FROM_0)] = (
        None
    )
    smoothing: Annotated[
        str | None,
        Option(
            BLEU,
            TEXT,
            accepts=words(
                "none method0 method1 method2 method3 method4 method5 method6 method7 exp floor"
                " add-k"
            ),
        ),
    ] = None
    tokenizer: Annotated[
        str | None, Option(BLEU, TEXT, accepts=("words", "none", "13a", "char", "intl", "zh"))
    ] = None
    lowercase: Annotated[bool | None, Option(TEXTS, TEXT, False)] = None
    stop_words: Annotated[Any, Option(TEXTS, TEXT)] = None
    faithfulness_threshold: Annotated[float | None, Option(TEXTS, TEXT, 0.5, SHARE)] = None
    ter_normalized: Annotated[bool | None, Option(TER, TEXT, False)] = None
    ter_no_punct: Annotated[bool | None, Option(TER, TEXT, False)] = None
    ter_asian_support: Annotated[bool | None, Option(TER, TEXT, False)] = None
    ter_case_sensitive: Annotated[bool | None, Option(TER, TEXT, False)] = None
    embedder: Annotated[Any, Option(TEXTS, TEXT)] = None
    similarity_threshold: Annotated[float | None, Option(TEXTS, TEXT, accepts=Range(-1, 1))] = None
    nulls: Annotated[str | None, Option(TEXTS, TEXT, "refuse", ("refuse", "skip", "empty"))] = None
    huber_delta: Annotated[float | None, Option(NUMBERS, REGRESSION, 1.0, POSITIVE)] = None
    tweedie_power: Annotated[float | None, Option(NUMBERS, REGRESSION, 1.5, FINITE)] = None
    quantile: Annotated[float | None, Option(NUMBERS, REGRESSION, 0.5, SHARE)] = None
    interval_level: Annotated[float | None, Option(NUMBERS, REGRESSION, 0.9, INSIDE)] = None
    n_features: Annotated[int | None, Option(NUMBERS, REGRESSION, accepts=FROM_0)] = None
    training: Annotated[Any, Option(FORECASTS, REGRESSION)] = None
    seasonality: Annotated[int | None, Option(FORECASTS, REGRESSION, accepts=FROM_1)] = None
    value_columns: Annotated[tuple[str, ...] | None, Option(STATISTICS, VALUES)] = None
    statistics: Annotated[tuple[str, ...] | None, Option(STATISTICS, VALUES, ("mean",))] = None
    better: Annotated[dict[str, str] | None, Option(STATISTICS, VALUES)] = None
    tool_arguments: Annotated[
        str | None, Option(CALLS, AGENTS, "exact", ("exact", "subset", "superset", "ignore"))
    ] = None
    argument_rules: Annotated[dict[str, str] | None, Option(CALLS, AGENTS)] = None
    tools: Annotated[tuple[str, ...] | None, Option(CALLS, AGENTS)] = None
    limits: Annotated[bool | None, Option(OPEN, DETECTION + RETRIEVAL)] = None
    intervals: Annotated[float | None, Option(INTERVALS)] = None
    draws: Annotated[int | None, Option(INTERVALS, default=1000, accepts=Range(20))] = None
    seed: Annotated[int | None, Option(INTERVALS, default=0)] = None
    cluster: Annotated[str | None, Option(INTERVALS)] = None
    method: Annotated[
        str | None,
        Option(
            INTERVALS,
            accepts=words("percentile recentred normal bca jackknife wilson logit log delong"),
        ),
    ] = None
    threads: Annotated[int | None, Option(EXECUTION, accepts=FROM_1)] = None
    memory_limit: Annotated[str | int | None, Option(EXECUTION)] = None
    scratch: Annotated[str | None, Option(EXECUTION)] = None
    client_reads: Annotated[bool | None, Option(EXECUTION)] = None

    @property
    def drawn(self) -> bool:
        """True if datums are resampled."""
        return self.intervals is not None

    @property
    def columns_of_datums(self) -> tuple[str, ...]:
        """Entries that are read as slices are: those of ``by``, and the cluster."""
        return self.by if self.cluster is None else (*self.by, self.cluster)

    def replace(self, **changes: Any) -> "Options":
        """A copy with some fields changed; a mistyped name answers with the nearest right one."""
        return msgspec.structs.replace(self, **checked_names(changes))


FIELDS: tuple[str, ...] = Options.__struct_fields__

DECLARED: dict[str, Option] = {
    name: hint.__metadata__[0] for name, hint in Options.__annotations__.items()
}
"""Every option, in the order of the fields."""


TABLE_OPTIONS = (
    *("label_map", "regions", "thresholds", "keypoint_sigmas", "human", "stop_words", "training"),
)
"""Options that may be tables or files."""


def help_texts() -> dict[str, str]:
    """Return the help text of every option: its entry in the docstring of :class:`Options`."""
    # From Python 3.13 on, compiled docstrings have no common indentation.
    entry = re.compile(r"^((?: {4}){1,2})(\w+): (.+(?:\n\1 {4}.+)*)", re.MULTILINE)
    return {name: " ".join(text.split()) for _, name, text in entry.findall(Options.__doc__ or "")}


def kind_of(name: str) -> Any:
    """Return the type of an option, of several the first, without None."""
    kind = Options.__annotations__[name].__origin__
    return get_args(kind)[0] if get_origin(kind) is UnionType else kind


def checked_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping, after checking that every name in it is an option.

    Raises:
        OptionError: names the first unknown option and the nearest valid one.
    """
    for name in given:
        if name not in FIELDS:
            message = explain_foreign_name(name) or unknown("option", name, FIELDS).message
            raise OptionError(message, code="unknown_name", value=name)
    return dict(given)


def checked(name: str, value: Any, task: str = "") -> Any:
    """Return the value of an option, sorted if it is a grid.

    Raises:
        OptionError: it is out of range, unknown or empty.
    """
    declared = DECLARED[name]
    accepts = declared.accepts
    if isinstance(accepts, dict):
        accepts = accepts.get(task)
    items = value if isinstance(value, tuple) else (value,)
    if not items and (accepts or declared.grid) and not declared.may_be_empty:
        raise invalid(name, [], "write at least one value.")
    if isinstance(accepts, Range):
        accepts.check(name, *items)
    elif accepts is not None:
        for item in items:
            if not isinstance(item, Mapping) and item not in accepts:
                raise unknown(name, str(item), accepts)
    return tuple(sorted(set(value))) if declared.grid else value


def idle(options: Options, task: str) -> list[str]:
    """Options that were given and that the task does not read, one sentence each."""
    return [
        f"{name} is an option of {' and '.join(declared.tasks)}; {task} does not read it."
        + _other_task(options, declared.tasks)
        for name, declared in DECLARED.items()
        if declared.tasks and task not in declared.tasks and getattr(options, name) is not None
    ]


def _other_task(options: Options, tasks: Sequence[str]) -> str:
    """Return how to score by the task of an option, if the task was inferred."""
    if options.task is not None or len(tasks) > 1:
        return ""
    return f" If the table is for that, write {option('task', tasks[0])}."
