"""Tables of retrieval: a query is the datum; retrieved documents are ids or texts."""

from __future__ import annotations

from .columns import DATASET, SCORE, WEIGHT, renamed
from .contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table

QUERY_ID = Column(
    "query_id",
    "id",
    "Which query this belongs to.",
    ("qid", "query-id", "q_id", "topic_id", "topic", "queryid", "question_id"),
    kin=("query", "question", "id", "user_input"),
    weak=("topic",),
)
DOC_ID = Column(
    "doc_id",
    "id",
    "The document.",
    ("docno", "docid", "corpus-id", "corpus_id", "document_id", "doc", "did", "pid", "passage_id",
     "chunk_id", "item_id"),
    kin=("id", "document", "passage"),
)  # fmt: skip
RETRIEVAL_SCORE = renamed(
    SCORE, "similarity", "sim", about="Score of the document, higher is ranked first."
)
RANK = Column(
    "rank", "number", "Place in the list, lowest first; read where there is no score.",
    ("position", "ranking"),
)  # fmt: skip
TEXT = Column(
    "text", "text", "The chunk, passage or document itself.",
    ("chunk", "content", "contents", "passage", "context", "body", "page_content", "document"),
)  # fmt: skip
RELEVANCE = Column(
    "relevance",
    "number",
    "How relevant it was judged, 1 if absent; below 0 is not judged.",
    ("rel", "relevance_score", "relevancy", "judgment", "judgement", "grade", "label", "score",
     "gain"),
)  # fmt: skip
RETRIEVED = Column(
    "retrieved",
    "items",
    "What was retrieved, best first: a list of ids or texts.",
    ("retrieved_contexts", "retrieved_context", "retrieved_chunks", "retrieved_docs",
     "retrieved_documents", "retrieved_ids", "retrieved_context_ids", "retrieved_doc_ids"),
    kin=("contexts", "predictions", "chunks"),
)  # fmt: skip
RELEVANT = Column(
    "relevant",
    "items",
    "What should have been retrieved: a list of ids or texts.",
    ("reference_contexts", "ground_truth_context", "ground_truth_contexts", "gold_docs",
     "gold_documents", "gold_contexts", "relevant_docs", "relevant_documents", "relevant_ids",
     "reference_context_ids", "relevant_doc_ids", "relevant_contexts", "gold"),
    kin=("contexts", "ground_truths", "reference"),
)  # fmt: skip
_QUERY = ("query", "queries")
_EQUAL_QUERIES = ((WEIGHT, "retrieval has no weights; every query counts once"),)

RETRIEVAL_PREDICTIONS = Table(
    "retrieval",
    PREDICTIONS,
    (QUERY_ID,),
    (DOC_ID, TEXT, RETRIEVAL_SCORE, RANK, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    shape="ranked",
    datum="query_id",
    unit=_QUERY,
    lack="nothing was retrieved",
    either=("doc_id", "text"),
    instead=(("score", "rank"),),
    unread=_EQUAL_QUERIES,
)
RETRIEVAL_GROUND_TRUTHS = Table(
    "retrieval",
    GROUND_TRUTHS,
    (QUERY_ID,),
    (DOC_ID, TEXT, RELEVANCE, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    datum="query_id",
    unit=_QUERY,
    lack="nothing was judged",
    either=("doc_id", "text"),
    unread=_EQUAL_QUERIES,
)
RETRIEVAL_TABLE = Table(
    "retrieval",
    TABLE,
    (RETRIEVED, RELEVANT),
    (QUERY_ID, DATASET),
    key=("query_id",),
    signs=("retrieved", "relevant"),
    values=(("retrieved", "relevant"),),
    shape="lists",
    datum="query_id",
    unit=_QUERY,
    unread=_EQUAL_QUERIES,
)
