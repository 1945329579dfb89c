"""A driver that is there to be killed: `python -m tests.spark.recovery_driver FOLDER`, with events in FOLDER/in."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.spark import detect
from penstock.spark.session import session
from tests.spark.test_detect import KEYED

JAVA_OPTIONS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main(folder: Path) -> None:
    """Process all files that are there, one a batch, and end."""
    spark = session("penstock-recovery", cores=2, **JAVA_OPTIONS)
    schema = spark.read.parquet(str(folder / "schema")).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    found = reader.parquet(str(folder / "in")).transform(detect(KEYED, by="card", seq="id", watermark="2 s"))
    writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
