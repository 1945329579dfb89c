"""Settings for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# `make test` tries the same examples each time: whether a change may land does not hang on luck. `make test-all` tries
# new ones.
settings.register_profile("fixed", derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        settings.load_profile("fixed")
