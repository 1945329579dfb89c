"""A stream that sheds, and is there to be killed: `python -m tests.spark.shedding_driver FOLDER STRATEGY`.

Events are files in FOLDER/in, one of them a batch. What is shed goes to FOLDER/attempts, a file for each attempt at a
batch: so attempts can be compared.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import penstock as pk
from penstock.spark import detect, output
from penstock.spark.session import session
from tests.spark.recovery_driver import JAVA_OPTIONS, of_files

QUERY = pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 30 s PARTITION BY card", "abc")
WINDOWED = pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 30 s PARTITION BY card WINDOW 30 s EVERY 10 s", "windows")
FROM_WINDOWS = "-from-windows"  # what the name of a strategy ends with that sheds from the windows of WINDOWED
HANGS_FROM = 3  # the first attempt at this batch, and at each after it, does not end


def main(folder: Path, strategy: str) -> None:
    """Process all that is there, a file at a time, and end; or wait in the middle of a batch to be killed."""
    spark = session("penstock-shedding", cores=2, **JAVA_OPTIONS)
    events = of_files(spark, folder).withColumn(
        "arrived",
        sf.timestamp_micros(
            sf.unix_micros(sf.current_timestamp()) - sf.col("x").cast("long") * 12_000
        ),  # some cannot be on time any more, however fast the machine is
    )
    model = folder / "model"
    name = strategy.removesuffix(FROM_WINDOWS)
    shed = pk.Shedding(bound="1 s", strategy=name, model=model if model.exists() else None)
    asked = detect(
        QUERY if name == strategy else WINDOWED, seq="id", arrival="arrived", shed=shed, outputs=["matches", "shed"]
    )

    def write(frame: DataFrame, number: int) -> None:
        frame.persist()
        rows = output(frame, "shed").select("id", "reason").collect()
        shed = sorted((row.id, row.reason) for row in rows)
        matches = output(frame, "matches").count()
        attempt = len(list(folder.glob(f"attempts/{number}.*")))
        (folder / "attempts" / f"{number}.{attempt}").write_text(json.dumps([shed, matches]))
        frame.unpersist()
        if number >= HANGS_FROM and attempt == 0:
            time.sleep(600)

    (folder / "attempts").mkdir(exist_ok=True)
    writer = events.transform(asked).writeStream.foreachBatch(write)
    checkpoint = str(folder / "checkpoint")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
