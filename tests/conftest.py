"""Settings for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# `make test` tries the same examples each time: whether a change may land does not hang on luck. `make test-all` tries
# new ones.
settings.register_profile("fixed", derandomize=True)

SESSIONS = {"spark", "connect", "connect_session", "connect_url", "either"}  # fixtures that start a JVM


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr.startswith("not slow"):
        settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send the tests that share sessions of Spark to one worker (`--dist loadgroup`), and those that share a broker.

    All others go where there is room, also those that start a Spark of their own.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if SESSIONS & fixtures:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "broker" in fixtures:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
