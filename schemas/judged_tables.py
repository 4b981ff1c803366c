"""Tables of judged metrics: verdicts, one per row, and the input of a judge."""

from __future__ import annotations

from .columns import DATASET, DATUM_ID, renamed
from .contract import TABLE, Column, Table

JUDGED_DATUM = renamed(
    DATUM_ID,
    "id",
    "sample_id",
    "example_id",
    "row_id",
    "question_id",
    "query_id",
    about="Which text, answer or query was judged.",
)
METRIC = Column("metric", "text", "The metric that the verdict is for.", ("metric_name",))
VERDICT = Column(
    "verdict",
    "verdict",
    "The judge's word: yes, no, ...; TP, FP, FN; a rating; null where there is none.",
    ("verdicts",),
    nullable=True,
)
STEP = Column(
    "step",
    "text",
    "What was judged: response or reference where a metric judges both; in a row of status empty"
    " what there was none of.",
    nullable=True,
)
REFERENCE_INDEX = Column(
    "reference_index",
    "whole",
    "Which of several ground truths it was compared with, from 0; 0 if absent.",
    (),
    nullable=True,
    low=0.0,
)
ITEM_INDEX = Column(
    "item_index",
    "whole",
    "Place of the statement or context among those judged together; of contexts their rank.",
    ("item",),
    nullable=True,
    low=0.0,
)
JUDGMENT_INDEX = Column(
    "judgment_index",
    "whole",
    "Which of several judgments of the same item; most of them decide.",
    ("judgment",),
    nullable=True,
    low=0.0,
)
ITEMS = Column(
    "items",
    "whole",
    "How many items were to be judged together; another number of verdicts is an error.",
    ("n_items",),
    nullable=True,
    low=0.0,
)
STATEMENT = Column(
    "statement", "text", "What was judged, in words.", ("claim", "opinion"), nullable=True
)
REASON = Column("reason", "text", "Why the judge says so.", ("analysis",), nullable=True)
STATUS = Column(
    "status",
    "text",
    "ok or null; empty where there was nothing to judge; else the kind of error.",
    nullable=True,
)
ERROR = Column("error", "text", "What went wrong, in words.", ("error_message",), nullable=True)
INPUT_TOKENS = Column(
    "input_tokens", "number", "Tokens read by the judge.", ("prompt_tokens",), nullable=True
)
OUTPUT_TOKENS = Column(
    "output_tokens",
    "number",
    "Tokens written by the judge.",
    ("completion_tokens",),
    nullable=True,
)

VERDICT_KEY = (
    "datum_id",
    "metric",
    "step",
    "reference_index",
    "item_index",
    "judgment_index",
)
"""Columns that together name one verdict; absent ones are equal in all rows."""

JUDGED_TABLE = Table(
    "judged",
    TABLE,
    (JUDGED_DATUM, METRIC, VERDICT),
    (
        STEP,
        REFERENCE_INDEX,
        ITEM_INDEX,
        JUDGMENT_INDEX,
        ITEMS,
        STATEMENT,
        REASON,
        STATUS,
        ERROR,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        DATASET,
    ),
    signs=("verdict",),
    shape="verdicts",
    long=True,
    made_of="judge_rows",
    made_by=(
        "evalengine judge run {data} --metric {metrics} --model NAME --base-url URL"
        " -o verdicts.parquet && evalengine score verdicts.parquet",
        "ee.judge({data}, metrics={metrics}, model=..., base_url=...).card",
    ),
)

QUERY = Column(
    "query", "text", "What was asked.", ("user_input", "question", "input"), nullable=True
)
TEXT = Column(
    "text",
    "text",
    "What was answered or written: the text to judge.",
    ("response", "answer", "actual_output", "output", "prediction", "summary"),
    nullable=True,
)
CONTEXTS = Column(
    "contexts",
    "items",
    "What was retrieved, best first.",
    ("retrieved_contexts", "retrieval_context", "context", "context_list", "retrieved"),
    nullable=True,
    way_out="Give each row a list of strings, as Parquet and JSON Lines hold them; of one string,"
    " as CSV has it, pl.col('contexts').str.split('|') makes a list.",
)
REFERENCE = Column(
    "reference",
    "text_list",
    "The ground truth: a string, or a list where there are several.",
    ("ground_truth", "ground_truths", "groundtruths", "ground_truth_answers", "expected_output",
     "references", "reference_answer"),
    nullable=True,
)  # fmt: skip
SOURCE = Column(
    "source",
    "text",
    "The text that was summarised, for SummaryCoherence.",
    ("article", "source_text"),
    nullable=True,
)

JUDGE_ROWS = Table(
    "judged",
    "judge_rows",
    (),
    (JUDGED_DATUM, QUERY, TEXT, CONTEXTS, REFERENCE, SOURCE),
    key=("datum_id",),
    any_of=("query", "text", "contexts", "reference", "source"),
    lack="there is nothing to judge",
    filtered=False,
)
"""Input of the judge stage; the metrics determine the required columns."""
JUDGE_REFERENCES = Table(
    "judged",
    "judge_references",
    (JUDGED_DATUM, renamed(TEXT, "reference", "ground_truth", about="One ground truth.")),
    filtered=False,
)
"""Ground truths of the judge stage as a separate table, one per row."""
