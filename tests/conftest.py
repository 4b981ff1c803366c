"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no failure: how long an example takes is not tested here.
settings.register_profile("evalengine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evalengine")
