"""Settings for all tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# `make test` tries the same examples each time: whether a change may land does not hang on luck. `make test-all` tries
# new ones.
settings.register_profile("fixed", derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr.startswith("not slow"):
        settings.load_profile("fixed")


class OneWorkerForSpark(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Sends the tests that start Spark to one worker, which then has one JVM; others go wherever there is room."""

    def _split_scope(self, nodeid: str) -> str:
        needs_spark = nodeid.startswith("tests/spark/") and not nodeid.startswith("tests/spark/test_workers.py")
        return "spark" if needs_spark else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorkerForSpark:
    return OneWorkerForSpark(config, log)
