"""Stocks as a stream: three rises in a row of one symbol, with the late and the malformed rows beside the matches.

    python examples/stocks.py

Writes a few files of quotes, as a feed would leave them in a folder, some of them out of order and some broken, and
runs a stream over them that ends when it has seen all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import penstock as pk
from penstock.spark import detect, output
from penstock.spark.session import session

QUERY = pk.parse(
    """
    PATTERN SEQ(Quote a, Quote b, Quote c)
    WHERE a.price * 1.01 < b.price AND b.price * 1.01 < c.price
    WITHIN 10 s
    PARTITION BY symbol
    SELECT FIRST
    RETURN c.price / a.price AS rise
    """,
    "rising",
)
SCHEMA = "type string, symbol string, ts timestamp, price double"


def write_quotes(folder: Path, files: int = 6, rows: int = 500) -> None:
    """Write files of quotes, one JSON object a line; a quote may be up to two seconds late, and a few have no time."""
    random, prices = Random(1), dict.fromkeys(["AAA", "BBB", "CCC", "DDD"], 100.0)
    for number in range(files):
        lines = []
        for row in range(rows):
            symbol = random.choice(list(prices))
            prices[symbol] *= random.uniform(0.985, 1.016)
            seconds = 2 + (number * rows + row) * 0.1 - random.uniform(0, 2)
            time = f"2025-01-02T10:{int(seconds // 60) % 60:02}:{seconds % 60:06.3f}Z" if row % 200 != 199 else None
            lines.append(json.dumps({"type": "Quote", "symbol": symbol, "ts": time, "price": round(prices[symbol], 2)}))
        path = folder / f"quotes-{number}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (number, number))  # Spark reads files by the times at which they were changed


def main() -> None:
    """Run the stream over the files."""
    spark = session("stocks")
    with TemporaryDirectory() as name:
        quotes, results, checkpoint = Path(name, "quotes"), Path(name, "results"), Path(name, "checkpoint")
        quotes.mkdir()
        write_quotes(quotes)
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(quotes))
        found = stream.transform(detect(QUERY, watermark="2 s", outputs=["matches", "late", "malformed"]))
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(results))
        query.awaitTermination()
        for progress in query.recentProgress:
            counts = progress.observedMetrics["penstock"]
            print(f"batch {progress.batchId}: {counts.rows} rows, {counts.matches} matches, {counts.held} held back")
        frame = spark.read.parquet(str(results))
        output(frame, "matches").select("symbol", "first_ts", "last_ts", "rise").orderBy("first_ts").show(5)
        output(frame, "malformed").show(3, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
