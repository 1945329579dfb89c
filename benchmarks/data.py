"""The numbers of docs/data.md: made streams beside recorded ones, what queries find in them, how fast they are made.

Usage: python benchmarks/data.py [--speed] [FOLDER]; FOLDER has the recorded data sets (by default, PENSTOCK_DATA names
it). Without it the columns of recorded streams stay empty. With --speed, only how fast streams are made.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

import penstock as pk
from penstock.lab import statistics
from penstock.lab.completion import Completion, completion
from penstock.lab.generators import Buses, Generator, Soccer, Stocks, Synthetic
from penstock.lab.generators.synthetic import DataSet
from penstock.lab.readers import DataError, read_minute_bars, read_soccer_match, read_toronto_buses, recorded
from penstock.spark import generated
from penstock.spark.session import session

QUERIES = Path(__file__).parents[1] / "tests" / "queries"
SEEDS = (1, 2, 3)
BARS, MATCH, DAY = "us_minute_bars_2018", "soccer_match_positions_2019", "nasdaq_eoddata_sample_2008"
SPARK_ROWS = 10_000_000
SYNTHETIC: tuple[tuple[DataSet, int], ...] = (("DS1", 1), ("DS4", 1), ("DS5", 2), ("DS1", 3))
BARS_PERCENT = 0.02

# What the thesis states as match probability (section 4.3.2.1).
STATED = {"table4.2-q1": 0.32, "table4.2-q2": 0.22, "table4.2-q4": 0.66, "table4.2-q5": 0.14, "table4.2-q6": 0.06}


def main() -> None:
    """Print everything, as tables of Markdown."""
    given = [each for each in sys.argv[1:] if each != "--speed"]
    if len(given) == len(sys.argv) - 1:
        print_streams(given[0] if given else os.environ.get("PENSTOCK_DATA"))
    streams = (Stocks(), Soccer(), Buses(), Synthetic("DS1"), Synthetic("DS8"))
    print_speed(streams)
    print_speed_on_spark(streams)


def print_streams(folder: str | None) -> None:
    """Print what streams are like, and what queries find in them."""
    made_stocks, made_soccer, made_buses = Stocks(), Soccer(), Buses()
    bars = read_if_there(folder, BARS, read_minute_bars)
    match = read_if_there(folder, MATCH, read_soccer_match)
    toronto = read_toronto(folder)
    compare("Quotes", statistics.quotes(days(made_stocks, 17)), bars and statistics.quotes(bars))
    day = read_if_there(folder, DAY, read_minute_bars)
    small = days(Stocks(symbols=7, followers=3), 1)
    compare("Quotes of 7 symbols in a day", statistics.quotes(small), day and statistics.quotes(day))
    compare("Positions", statistics.positions(days(made_soccer, 5)), match and statistics.positions(match))
    compare("Reports", statistics.reports(days(made_buses, 12)), toronto and statistics.reports(toronto))
    print("\n| influence | leader and follower, same minute | one minute later |\n| --- | ---: | ---: |")
    for influence in (0, 0.25, 0.5, 0.75, 1):
        lead = statistics.quotes(days(Stocks(influence=influence), 40)).lead
        print(f"| {influence} | {lead[0]:.2f} | {lead[1]:.2f} |")
    print_completion(bars, match)
    print_gaps()


def read_if_there(folder: str | None, name: str, read: Any) -> pa.Table | None:
    """Return a recorded stream, None if it is not there."""
    try:
        table: pa.Table = read(recorded(name, folder))
        return table
    except DataError as error:
        print(error, file=sys.stderr)
        return None


def read_toronto(folder: str | None) -> pa.Table | None:
    """Return the buses of Toronto, None if they are not there."""
    return read_if_there(
        folder,
        "toronto_bus_gps_2016",
        lambda path: read_toronto_buses(path, recorded("toronto_bus_stops_2016", folder)),
    )


def days(stream: Generator, blocks: int) -> pa.Table:
    """Return some blocks of a stream."""
    return stream.table(blocks * stream.block_rows)


def compare(title: str, made: Any, real: Any) -> None:
    """Print the statistics of a made and a recorded stream side by side."""
    print(f"\n| {title} | made | recorded |\n| --- | ---: | ---: |")
    for field in fields(made):
        print(f"| {field.name} | {shown(getattr(made, field.name))} | {shown(getattr(real, field.name, None))} |")


def shown(value: Any) -> str:
    """Return a number, or several, as text of few digits."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"≥ {100 * key:g} %: {100 * share:.2g} %" for key, share in value.items())
    if isinstance(value, Iterable):
        return ", ".join(map(shown, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def query(name: str, percent: float = 1.0) -> pk.Query:
    """Return a query of the thesis, with another percentage than 1 if wanted."""
    text = (QUERIES / f"thesis-{name}.cep").read_text(encoding="utf-8")
    return pk.parse(
        re.sub(r"(?<=\* )(1\.01|0\.99|1\.005|0\.995|0\.01)\b", lambda found: scaled(found[0], percent), text)
    )


def scaled(factor: str, percent: float) -> str:
    """Return a factor that stands for a percentage: 1.01 for 1 %, with percent = 0.1 it becomes 1.001.

    Examples:
        >>> [scaled(each, 0.1) for each in ("1.01", "0.99", "1.005", "0.01")]
        ['1.001', '0.999', '1.0005', '0.001']
    """
    whole = round(float(factor))
    return f"{whole + (float(factor) - whole) * percent:.8g}"


def print_completion(bars: pa.Table | None, match: pa.Table | None) -> None:
    """Print how many runs complete."""
    print("\n| query | stream | opening events | of these complete | matches per run and window | stated |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for number in (1, 2, 4, 5):
        name = f"table4.2-q{number}"
        for symbols in (250, 60):
            streams = [Stocks(seed=seed, symbols=symbols) for seed in SEEDS]
            rows = 60 * streams[0].block_rows
            show(name, f"Stocks, {symbols} symbols", [completion(query(name), each.batches(rows)) for each in streams])
        if bars:
            show(name, f"minute bars, x = {BARS_PERCENT} %", [completion(query(name, BARS_PERCENT), bars.to_batches())])
    show(
        "table4.2-q6", "Soccer", [completion(query("table4.2-q6"), Soccer(seed=s).batches(20 * 62_100)) for s in SEEDS]
    )
    if match:
        show("table4.2-q6", "the match of 2019", [completion(query("table4.2-q6"), match.to_batches())])
    for name in ("table3.1-q4", "table3.1-q4-sequence"):
        show(name, "Buses", [completion(query(name), Buses(seed=seed).batches(24 * 43_200)) for seed in SEEDS])
    for data_set, number in SYNTHETIC:
        name = f"table6.4-q{number}"
        show(
            name, data_set, [completion(query(name), Synthetic(data_set, seed=seed).batches(200_000)) for seed in SEEDS]
        )


def show(name: str, stream: str, results: list[Completion]) -> None:
    """Print a line: the range over all seeds."""
    shares, chances = [each.share for each in results], [each.probability for each in results]
    stated = f"{100 * STATED[name]:.0f} %" if name in STATED else ""
    opened = sum(each.opened for each in results)
    print(f"| {name} | {stream} | {opened:,} | {span(shares)} | {span(chances)} | {stated} |")


def span(shares: list[float]) -> str:
    """Return the least and the largest of some shares, in percent."""
    low, high = f"{100 * min(shares):.2g}", f"{100 * max(shares):.2g}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def print_gaps() -> None:
    """Print the shares and gaps of the synthetic sets."""
    print("\n| set | share | mean gap, s | variation |\n| --- | --- | --- | --- |")
    for name in get_args(DataSet):
        kinds = statistics.gaps(Synthetic(name).table(1_000_000))
        share = ", ".join(f"{kind} {100 * each.share:.1f} %" for kind, each in kinds.items())
        print(
            f"| {name} | {share} | {shown(each.mean_seconds for each in kinds.values())} "
            f"| {shown(each.variation for each in kinds.values())} |"
        )


def print_speed(streams: tuple[Generator, ...]) -> None:
    """Print how fast streams are made, on one core."""
    print("\n| stream | million events per second |\n| --- | ---: |")
    for stream in streams:
        stream.block(0)
        rows = 0
        start = time.perf_counter()
        while time.perf_counter() < start + 2:
            stream.block(rows // stream.block_rows)
            rows += stream.block_rows
        print(f"| {stream} | {rows / (time.perf_counter() - start) / 1e6:.1f} |")


def print_speed_on_spark(streams: tuple[Generator, ...]) -> None:
    """Print how fast Spark makes streams on two cores: the better of two times, when the workers have started."""
    spark = session("penstock-data", cores=2)
    print("\n| stream on Spark | million events per second |\n| --- | ---: |")
    generated(spark, streams[0], streams[0].block_rows * 8).write.format("noop").mode("overwrite").save()
    for stream in streams:
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            generated(spark, stream, SPARK_ROWS).write.format("noop").mode("overwrite").save()
            seconds.append(time.perf_counter() - start)
        print(f"| {stream} | {SPARK_ROWS / min(seconds) / 1e6:.1f} |", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
