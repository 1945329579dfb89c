"""What `penstock doctor` tells of Spark, as plain values. Works without pyspark, too: that is one of the answers."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from penstock.spark.java import JavaError, find_java

# A session that is over before what the second compiler makes of it is used.
SHORT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def java_facts() -> dict[str, Any]:
    """Return the Java that Spark would run on, and what was passed over for it."""
    try:
        java = find_java()
    except JavaError as error:
        return {"home": None, "version": None, "source": None, "passed_over": error.passed_over}
    return {**asdict(java), "home": str(java.home)}


def session_facts() -> dict[str, Any]:
    """Start a session, send something through one of its Python workers, and return whether it came back."""
    begin = time.monotonic()
    try:
        from penstock.spark.session import session

        running = session("penstock-doctor", cores=1, **SHORT)
        running.range(3).mapInArrow(lambda batches: batches, "id long").collect()
        running.stop()
    except Exception as error:  # whatever it is, it is what the user asks for
        return {"starts": False, "seconds": None, "problem": str(error)}
    return {"starts": True, "seconds": round(time.monotonic() - begin, 1), "problem": None}
