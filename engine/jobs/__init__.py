"""Scheduled runs: a job file, gates, one folder a result, a table over time.

``running`` is one run from beginning to end; everything else is a part of it. Above ``api``, whose
``score`` does the work.
"""
