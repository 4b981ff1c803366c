"""OpenAI-compatible endpoints: requests, retries, budgets, keys, and answers kept in a file.

What the judge stage and the embeddings of texts share; it knows nothing of either.
"""
