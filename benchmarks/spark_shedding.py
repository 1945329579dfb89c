"""Does a stream on Spark keep its latency bound? Fed at twice what it can do, without shedding and with it.

    python benchmarks/spark_shedding.py [--strategies random-event espice pspice] [--seconds 180] [--rate EVENTS/S]
        [--bound 2]

1. What is sustained: the rate goes up until the latency is beyond the bound; the greatest before is the capacity.
2. At 200 % of it, for so many seconds, without shedding: the latency grows as long as it goes on.
3. The same with each strategy, whose model was learned from other events: the 99th percentile of the latency must be
   within the bound (the first seconds, in which workers start, left out), of matches and of all events that were not
   shed. It is the time from the arrival of the event, or of the last event of a match, to the moment at which the sink
   has it. Of events it is that of a sample: a second query matches one event of fifty by itself.
4. What was lost: matches of one key of eight, against those that the engine finds in all its events.

The query asks for payments that are near one another, by a distance that takes its time: so the load is the matcher's,
and not what Spark does for each row. Rows that are shed are counted, and are the price.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.lab.replaying import Replay, sent_by
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.spark import Listener, Progress, detect
from penstock.spark.losing import estimated_loss
from penstock.spark.session import session

QUERY = pk.parse(
    """
    PATTERN SEQ(A a, B | F b, C c)
    WHERE distance(a.lat, a.lon, b.lat, b.lon) < 2 AND distance(b.lat, b.lon, c.lat, c.lon) < 2
    WITHIN 10 s PARTITION BY card
    """,
    "near",
)
PROBE = pk.parse("PATTERN A | B | C | F p WHERE p.sampled = 1 WITHIN 1 s PARTITION BY card", "probe")
QUERIES = [(QUERY, 1.0), (PROBE, 1e-9)]  # what is found of the second must not matter to a model
SCHEMA = pk.Schema.model_validate(
    {
        "types": {"*": {"card": "int", "lat": "float", "lon": "float", "sampled": "int", "number": "int"}},
        "functions": {"distance": {"arguments": ["float"] * 4, "returns": "float"}},
    }
)
KEYS = 8
SAMPLED = 0.02
WARM_UP_S = 30.0
WARM_UP_BATCHES = 12
LEARN_FROM = 20_000  # events
UNSHED = 0.0  # of so few keys, none can be spared
SEED = 3


def distance(lat_1: float, lon_1: float, lat_2: float, lon_2: float) -> float:
    """Return the kilometres between two places on the ellipsoid of the earth, about as Vincenty has it."""
    flat, degree = 1 / 298.257223563, math.pi / 180
    u_1, u_2 = math.atan((1 - flat) * math.tan(lat_1 * degree)), math.atan((1 - flat) * math.tan(lat_2 * degree))
    sin_1, cos_1, sin_2, cos_2 = math.sin(u_1), math.cos(u_1), math.sin(u_2), math.cos(u_2)
    apart = lon = (lon_2 - lon_1) * degree
    angle = 0.0
    for _ in range(12):
        sin, cos = math.sin(lon), math.cos(lon)
        sin_angle = math.sqrt((cos_2 * sin) ** 2 + (cos_1 * sin_2 - sin_1 * cos_2 * cos) ** 2)
        if sin_angle == 0.0:
            return 0.0
        cos_angle = sin_1 * sin_2 + cos_1 * cos_2 * cos
        angle = math.atan2(sin_angle, cos_angle)
        heading = cos_1 * cos_2 * sin / sin_angle
        rest = 1 - heading * heading
        middle = cos_angle - 2 * sin_1 * sin_2 / rest if rest > 0 else 0.0
        k = flat / 16 * rest * (4 + flat * (4 - 3 * rest))
        more = angle + k * sin_angle * (middle + k * cos_angle * (2 * middle * middle - 1))
        lon = apart + (1 - k) * flat * heading * more
    return 6378.137 * angle


def events(rows: int, seed: int = SEED) -> pa.Table:
    """Return payments: where they are made, and with which card. Those of type F are far away from most others."""
    random = np.random.default_rng(seed)
    types = random.choice(["A", "B", "C", "F"], rows, p=[0.35, 0.2, 0.25, 0.2])
    wide = np.where(types == "F", 10.0, 1.0)
    return pa.table(
        {
            "type": types,
            "card": random.integers(0, KEYS, rows),
            "lat": np.round(48 + wide * random.random(rows), 5),
            "lon": np.round(9 + wide * random.random(rows), 5),
            "sampled": (random.random(rows) < SAMPLED).astype(np.int64),
        }
    )


@dataclass
class Watched:
    """What came out of a run.

    Attributes:
        batches: when each was over, in seconds since the start, and its progress.
        waited: of matches and of sampled events that were not shed, by the name of the query: when the sink had them,
            and their latencies.
        found: the matches of one key.
    """

    batches: list[tuple[float, Progress]] = field(default_factory=list)
    waited: dict[str, list[tuple[float, np.ndarray]]] = field(default_factory=lambda: {"near": [], "probe": []})
    found: list[pa.Table] = field(default_factory=list)
    start: float = field(default_factory=time.time)

    def note(self, frame: DataFrame, number: int) -> None:
        """Take the matches of a batch; a sink."""
        ids = [sf.col(v)[0]["number"].alias(v) for v in "abc"]
        rows = frame.select("query", sf.unix_micros("arrived_ts").alias("us"), "card", *ids).toArrow()
        now = time.time()
        waits, names = now - rows.column("us").to_numpy() / 1e6, np.array(rows.column("query").to_pylist())
        for name, waited in self.waited.items():
            if (mine := waits[names == name]).size:
                waited.append((now - self.start, mine))
        is_first = pc.and_(pc.equal(rows.column("card"), 0), pc.equal(rows.column("query"), "near"))
        self.found.append(rows.filter(is_first))

    def p(self, share: float, name: str, after: float = WARM_UP_S, until: float = np.inf) -> float:
        """Return a percentile of the latencies in a stretch of time; NaN if there are none."""
        waits = np.concatenate([np.zeros(0), *(each for at, each in self.waited[name] if after < at <= until)])
        return float(np.percentile(waits, share)) if len(waits) else np.nan

    def is_kept(self, bound_s: float) -> bool:
        """Whether 99 of 100 matches and events were on time; of events, there must have been some."""
        return self.p(99, "probe") <= bound_s and not self.p(99, "near") > bound_s


def run(
    spark: SparkSession, path: Path, points: list[tuple[float, float]], shed: pk.Shedding | None,
    stop_at: float | None = None, batches: int | None = None,
) -> Watched:  # fmt: skip
    """Run a stream as long as events are sent; or until the latency is beyond a limit, or so many batches are done."""
    watched = Watched()
    listener = Listener(lambda progress: watched.batches.append((time.time() - watched.start, progress)))
    spark.streams.addListener(listener)
    with Replay(path, points) as replay, tempfile.TemporaryDirectory() as folder:
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", replay.port).load()
        part = sf.split("value", ",")
        frame = lines.select(
            part[0].alias("type"), part[1].cast("int").alias("card"), part[2].cast("double").alias("lat"),
            part[3].cast("double").alias("lon"), part[4].cast("long").alias("sampled"),
            part[5].cast("long").alias("number"), sf.timestamp_micros(part[6].cast("long")).alias("arrived"),
        ).withColumn("ts", sf.col("arrived"))  # fmt: skip
        asked = detect(
            QUERIES, by="card", seq="number", attributes=[], arrival="arrived", shed=shed, schema=SCHEMA,
            functions={"distance": distance},
        )  # fmt: skip
        query = (
            frame.transform(asked).writeStream.foreachBatch(watched.note).option("checkpointLocation", folder).start()
        )
        while not replay.wait(0.2) and query.isActive:
            late = [np.median(each) for at, each in watched.waited["probe"][-3:] if at > WARM_UP_S]
            if stop_at is not None and len(late) == 3 and min(late) > stop_at:
                break
            if batches is not None and len(watched.waited["probe"]) >= batches:
                break
        if shed is not None and stop_at is None and batches is None:
            query.processAllAvailable()
        query.stop()
    spark.streams.removeListener(listener)
    if query.exception() is not None:
        print(str(query.exception())[-2000:], file=sys.stderr)
    return watched


def capacity(spark: SparkSession, path: Path, least: float, most: float, seconds: float, bound_s: float) -> float:
    """Return the greatest rate whose events are on time, while the rate goes up."""
    points = [(least, WARM_UP_S), (most, WARM_UP_S + seconds)]
    run(spark, path, [(least, 300.0)], None, batches=WARM_UP_BATCHES)  # workers start, and stay
    watched = run(spark, path, points, None, stop_at=1.5 * bound_s)
    on_time = [
        at - each.max() for at, each in watched.waited["probe"] if at > WARM_UP_S and np.percentile(each, 99) <= bound_s
    ]
    if not on_time:
        sys.exit("even the lowest rate is too high, as this machine is now: give a lower --least, or a longer --bound")
    at = max(on_time, default=0.0)
    return float(np.interp(at, [WARM_UP_S, WARM_UP_S + seconds], [least, most]))


def described(watched: Watched, seconds: float) -> str:
    """Return a line of figures."""
    thirds = [watched.p(99, "probe", k * seconds / 3, (k + 1) * seconds / 3) for k in range(3)]
    total = sum(p.rows for _, p in watched.batches)
    shed, runs = (sum(getattr(p, name) for _, p in watched.batches) for name in ("shed", "shed_runs"))
    early, overdue = (sum(getattr(p, name) for _, p in watched.batches) for name in ("shed_early", "shed_overdue"))
    wrong = sum(not p.adds_up for _, p in watched.batches)
    by_third = " ".join(f"{each:.1f}" for each in thirds)
    lasted = [p.seconds for at, p in watched.batches if at > WARM_UP_S]
    return (
        f"events p50 {watched.p(50, 'probe'):.2f} s, p99 {watched.p(99, 'probe'):.2f} s (by thirds {by_third}); "
        f"matches p99 {watched.p(99, 'near'):.2f} s; {len(watched.batches)} batches of {np.mean(lasted or [0]):.2f} s; "
        f"{total:,} rows, {100 * shed / max(total, 1):.1f} % shed ({100 * overdue / max(total, 1):.1f} % overdue, "
        f"{100 * early / max(total, 1):.1f} % before the shuffle), {runs:,} runs shed; "
        f"{sum(len(w) for _, w in watched.waited['near']):,} matches{', ROWS DO NOT ADD UP' if wrong else ''}"
    )


def write_log(watched: Watched, path: Path) -> None:
    """Write a line for each batch: when it was over, how long it took, what it did."""
    with path.open("w") as file:
        for at, progress in watched.batches:
            file.write(json.dumps({"at": round(at, 2), **progress.as_json()}) + "\n")


def truth(table: pa.Table, points: list[tuple[float, float]]) -> set[tuple[int, ...]]:
    """Return the matches of one key in all events, by their numbers; times are as planned, to 10 ms."""
    seconds = np.arange(0, points[-1][1], 0.01)
    sent = np.array([sent_by(each, points) for each in seconds])
    numbers = np.arange(min(len(table), int(sent[-1])))
    ts = (seconds[np.searchsorted(sent, numbers, side="right").clip(0, len(seconds) - 1)] * 1e6).astype(np.int64)
    mine = table.column("card").to_numpy()[: len(numbers)] == 0
    rows = table.slice(0, len(numbers)).filter(pa.array(mine))
    rows = rows.append_column("ts", pa.array(ts[mine])).append_column("seq", pa.array(numbers[mine]))
    engine = pk.Engine(QUERY, functions={"distance": distance})
    found = engine.process(rows).to_arrow()
    return set(zip(*(pc.list_element(found.column(v), 0).to_pylist() for v in "abc"), strict=True))


def main() -> int:
    """Measure; return 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategies", nargs="*", default=["random-event", "espice", "pspice"])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--rate", type=float, default=0.0, help="what is sustained, if it is known")
    parser.add_argument("--bound", type=float, default=2.0, help="of the latency, in seconds")
    parser.add_argument("--least", type=float, default=500.0)
    parser.add_argument("--most", type=float, default=6_000.0)
    parser.add_argument("--unshed", type=int, default=1, help="0 leaves the run without shedding out")
    parser.add_argument("--log", type=Path, help="a directory for a line of JSON for each batch")
    given = parser.parse_args()
    spark = session("penstock-shedding", cores=2, **{"spark.driver.memory": "3g", "spark.log.level": "OFF"})
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "events.parquet"
        if not (sustained := given.rate):
            pq.write_table(events(int(given.most * 120)), path)
            sustained = capacity(spark, path, given.least, given.most, 90.0, given.bound)
        else:
            pq.write_table(events(int(given.rate * 60)), path)
            run(spark, path, [(sustained / 2, 300.0)], None, batches=WARM_UP_BATCHES)
        print(f"sustained: {sustained:,.0f} events/s on time ({given.bound:g} s)", flush=True)
        rate = 2 * sustained
        points = [(rate / 10, 10.0), (rate, 15.0), (rate, given.seconds)]
        table = events(int(rate * given.seconds))
        pq.write_table(table, path)
        runs: dict[str, Watched] = {}
        for strategy in [*(["nothing"] if given.unshed else []), *given.strategies]:
            shed = None if strategy == "nothing" else shedding(strategy, rate, given.bound)
            runs[strategy] = watched = run(spark, path, points, shed)
            kept = "kept" if watched.is_kept(given.bound) else "BROKEN"
            print(f"200 %, {strategy} shed: {described(watched, given.seconds)}: {kept}", flush=True)
            if given.log:
                given.log.mkdir(parents=True, exist_ok=True)
                write_log(watched, given.log / f"{strategy}.jsonl")
        spark.stop()
    report_loss(truth(table, points), {name: each for name, each in runs.items() if name != "nothing"})
    is_kept = all(each.is_kept(given.bound) for name, each in runs.items() if name != "nothing")
    print("bound kept" if is_kept else "bound broken")
    return 0 if is_kept else 1


def report_loss(expected: set[tuple[int, ...]], runs: dict[str, Watched]) -> None:
    """Print what each strategy has lost."""
    for strategy, watched in runs.items():
        columns = [[each.column(v).to_pylist() for v in "abc"] for each in watched.found]
        found = {row for each in columns for row in zip(*each, strict=True)}
        lost, more = len(expected - found) / max(1, len(expected)), len(found - expected)
        print(
            f"{strategy}: of {len(expected):,} matches of a key {100 * lost:.1f} % were lost; {more} are not among "
            "them (events whose times are at the end of WITHIN)"
        )
        estimate = estimated_loss(progress for _, progress in watched.batches)
        if estimate.matches:
            print(f"{strategy}: estimated from keys that are never shed: {estimate}")


def shedding(strategy: str, rate: float, bound_s: float) -> pk.Shedding:
    """Return a strategy with a model of other events."""
    options: dict[str, Any] = {"bound": f"{bound_s} s", "strategy": strategy, "unshed": UNSHED}
    if strategy not in ("random-event", "random-run"):
        ts = (np.arange(LEARN_FROM) * 1e6 / rate).astype(np.int64)
        history = events(LEARN_FROM, SEED + 1).append_column("ts", pa.array(ts))
        seen = unshed(QUERIES, history, Costs(), is_split=False, bins=1, functions={"distance": distance})
        learned = seen.history
        assert learned is not None
        options |= {"model": STRATEGIES[strategy].fitted(learned), "types": learned.names}
    return pk.Shedding(**options)


if __name__ == "__main__":
    sys.exit(main())
