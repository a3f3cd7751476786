"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# Examples are not timed: a busy machine is no reason for a test to fail.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
