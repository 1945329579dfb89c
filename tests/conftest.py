"""Settings for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `make test` tries the same examples each time: whether a change may land does not hang on luck. `make test-all` tries
# new ones.
settings.register_profile("fixed", derandomize=True)

SESSIONS = {"spark", "connect", "connect_session", "connect_url", "either"}  # fixtures that start a JVM

# Tests are over before the second compiler has paid for itself: with it, starting and asking takes half as long again.
JAVA_OPTIONS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
ROOT = Path(__file__).parents[1]
# Workers import what tests define by its name, and penstock from this tree, whichever is installed.
PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session in this process, with two cores.

    It is the only one, and the first: a JVM starts once in a process, and workers have the paths of its environment. So
    a test of what starts a session by itself asks for this one, too, and finds it running.
    """
    from penstock.spark.session import session

    with pytest.MonkeyPatch.context() as patch:
        for name, value in PYTHON.items():
            patch.setenv(name, value)
        running = session("penstock-tests", cores=2, **JAVA_OPTIONS)
    yield running
    running.stop()


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
