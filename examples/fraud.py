"""Card fraud in a batch: a small payment that tests a card, then a large one within five minutes.

    python examples/fraud.py

Makes 200,000 payments of 5,000 cards with Spark, plants a few frauds among them, and finds these.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.spark import detect
from penstock.spark.session import session

QUERY = pk.parse(
    """
    PATTERN SEQ(Payment small, Payment large)
    WHERE small.amount < 2 AND large.amount > 500 AND large.country <> small.country
    WITHIN 5 min
    PARTITION BY card
    RETURN large.amount AS amount, large.ts - small.ts AS waited_us
    """,
    "tested card",
)


def payments(spark: SparkSession, rows: int = 200_000, cards: int = 5_000) -> DataFrame:
    """Return made payments, ten a second, in which one of 20,000 begins a fraud."""
    rolls = spark.range(rows).withColumn("roll", sf.pmod(sf.xxhash64("id"), sf.lit(20_000)))
    normal = rolls.select(
        sf.lit("Payment").alias("type"),
        sf.timestamp_micros(sf.lit(1_735_689_600_000_000) + sf.col("id") * 100_000).alias("ts"),
        sf.pmod(sf.xxhash64("id", sf.lit(1)), sf.lit(cards)).alias("card"),
        (sf.lit(2) + sf.pmod(sf.xxhash64("id", sf.lit(2)), sf.lit(30_000)) / 100).alias("amount"),
        sf.lit("DE").alias("country"),
        "roll",
    )
    begun = normal.where("roll = 0").withColumn("amount", sf.lit(1.0))
    ended = begun.withColumn("ts", sf.col("ts") + sf.expr("INTERVAL 90 SECONDS"))
    ended = ended.withColumn("amount", sf.lit(900.0)).withColumn("country", sf.lit("XX"))
    return normal.unionByName(begun).unionByName(ended).drop("roll")


def main() -> None:
    """Find the frauds, and show some."""
    spark = session("fraud")
    found = payments(spark).transform(detect(QUERY)).cache()
    print(f"{found.count()} cards were tested and then used:")
    found.select("card", "first_ts", "last_ts", "amount", "small", "large").orderBy("first_ts").show(5, truncate=60)
    spark.stop()


if __name__ == "__main__":
    main()
