"""Agents: the tools that an agent called, compared with the calls that were expected."""
