"""The tables of three days and their job from tests/jobs."""

from jobs.conftest import folder  # noqa: F401
