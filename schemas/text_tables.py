"""Tables of text: written texts, with one or more references each."""

from __future__ import annotations

from .columns import DATASET, DATUM_ID, WEIGHT, renamed
from .contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table

TEXT_DATUM = renamed(
    DATUM_ID, "id", "sample_id", "example_id", "row_id", "question_id", "query_id", "qid", "doc_id",
    "document_id", "text_id", "segment_id", "sentence_id",
)  # fmt: skip
_WRITTEN = (
    "prediction", "predictions", "predicted", "response", "output", "answer", "candidate",
    "hypothesis", "actual_output", "generated", "generated_text", "generated_answer", "completion",
    "hyp", "mt", "translation", "summary", "prediction_text", "model_output",
)  # fmt: skip
_EXPECTED = (
    "references", "reference_text", "reference_answer", "ground_truth", "ground_truths",
    "ground_truth_answer", "ground_truth_answers", "expected", "expected_output", "target",
    "targets", "gold", "gold_answer", "gold_text", "ref", "refs", "correct_answer", "answers",
    "reference_summary", "highlights",
)  # fmt: skip
TEXT = Column("text", "text", "What was written.", _WRITTEN)
TRUE_TEXT = Column("text", "text", "A reference; a row each.", ("reference", *_EXPECTED, "answer"))
REFERENCE = Column(
    "reference", "texts", "What should have been written: a text or a list of texts.", _EXPECTED
)
EMBEDDING = Column(
    "embedding",
    "vector",
    "The vector of what was written: a list or array of numbers.",
    ("embeddings", "vector", "text_embedding", "prediction_embedding", "response_embedding",
     "answer_embedding", "output_embedding", "generated_embedding", "candidate_embedding"),
)  # fmt: skip
_TRUE_VECTORS = (
    "reference_embeddings", "reference_vector", "ground_truth_embedding", "expected_embedding",
    "target_embedding", "gold_embedding",
)  # fmt: skip
TRUE_EMBEDDING = Column(
    "embedding",
    "vector",
    "The vector of a reference; a row each.",
    ("reference_embedding", *_TRUE_VECTORS, *EMBEDDING.aliases[:3]),
)
REFERENCE_EMBEDDING = Column(
    "reference_embedding",
    "vectors",
    "The vector of what should have been written, or a list of several.",
    _TRUE_VECTORS,
)
CONTEXTS = Column(
    "contexts",
    "text_list",
    "What was retrieved for the text: a text or a list of texts, for DeterministicFaithfulness.",
    ("retrieved_contexts", "retrieved_context", "retrieval_context", "context", "context_list",
     "retrieved"),
    named=True,
)  # fmt: skip
_BY_VECTOR = (("text", "embedding"),)
_UNREAD = ((WEIGHT, "text has no weights; every datum counts once"),)

TEXT_PREDICTIONS = Table(
    "text",
    PREDICTIONS,
    (TEXT_DATUM, TEXT),
    (EMBEDDING, CONTEXTS, DATASET),
    signs=("text",),
    shape="references",
    stand_ins=_BY_VECTOR,
    unread=_UNREAD,
    yields=True,
)
TEXT_GROUND_TRUTHS = Table(
    "text",
    GROUND_TRUTHS,
    (TEXT_DATUM, TRUE_TEXT),
    (TRUE_EMBEDDING, DATASET),
    signs=("text",),
    shape="vectors",
    stand_ins=_BY_VECTOR,
    unread=_UNREAD,
    yields=True,
)
TEXT_TABLE = Table(
    "text",
    TABLE,
    (TEXT, REFERENCE),
    (EMBEDDING, REFERENCE_EMBEDDING, CONTEXTS, TEXT_DATUM, DATASET),
    key=("datum_id",),
    signs=("reference", "text"),
    shape="references",
    stand_ins=(("text", "embedding"), ("reference", "reference_embedding")),
    values=(("text", "reference"), ("embedding", "reference_embedding")),
    unread=_UNREAD,
    yields=True,
)
