"""Tables of three days and the job about them, as tests/jobs has them."""

from jobs.conftest import folder  # noqa: F401
