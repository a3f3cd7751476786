"""Settings of all tests."""

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# Examples are not timed: a busy machine is no reason for a test to fail.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Let all processes of one run share what XLA has compiled; nothing is kept for the next run."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:  # the workers of pytest-xdist have it from their parent
        return
    folder = tempfile.mkdtemp(prefix="trilift-compiled-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
