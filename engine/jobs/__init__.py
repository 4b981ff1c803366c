"""Scheduled runs: a job file, gates, one folder per result, a history table.

``running`` executes one run; the other modules are its parts. Uses ``score`` of ``api``.
"""
