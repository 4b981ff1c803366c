"""OpenAI-compatible endpoints: requests, retries, budgets, keys, and cached answers.

Shared by the judge stage and the embeddings of texts; independent of both.
"""
