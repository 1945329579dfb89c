"""Recorded events as a live stream: another process sends them over a socket, at a rate, each with its arrival time.

    python -m penstock.lab.replaying EVENTS.parquet '[[10000, 20], [20000, 40]]'

sends 10,000 events/s for 20 s, then goes up to 20,000 events/s within 20 s (a rate at a time, linear between), and ends
with the last. It prints the port that it listens on, and begins when somebody has connected.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

LOOPBACK = "127.0.0.1"
NUMBER, ARRIVED = "number", "arrived"  # columns that are added: which event it is, and when it arrived, in microseconds
_NAP_SECONDS = 0.01

Points = Sequence[tuple[float, float]]  # events per second, at a time in seconds


class Replay:
    """Sends events to whoever connects; a context manager.

    Args:
        path: of the events, in Parquet.
        points: the rate over time: (events/s, seconds), linear between; before the first, its rate.

    Attributes:
        port: where it listens.
    """

    def __init__(self, path: str | Path, points: Points) -> None:
        self._command = [sys.executable, "-m", "penstock.lab.replaying", str(path), json.dumps(list(points))]
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all is sent; return whether it is."""
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def sent_by(seconds: float, points: Points) -> int:
    """Return how many events are sent after some time.

    Examples:
        >>> sent_by(10, [(100, 5), (300, 10)])
        1500
    """
    rates, times = (np.array(each, np.float64) for each in zip(*points, strict=True))
    times, rates = np.concatenate([[0.0], times]), np.concatenate([rates[:1], rates])
    seconds = min(seconds, float(times[-1]))
    inner = times[times < seconds]
    grid = np.concatenate([inner, [seconds]])
    return int(np.trapezoid(np.interp(grid, times, rates), grid))


def _send(path: str, points: Points) -> None:
    table = pq.read_table(path)
    with socket.create_server((LOOPBACK, 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
        with connection:
            start, at, last = time.time(), 0, points[-1][1]
            while (now := time.time() - start) < last and at < len(table):
                due = min(sent_by(now, points), len(table))
                if due > at:
                    connection.sendall(_lines(table.slice(at, due - at), at))
                    at = due
                time.sleep(_NAP_SECONDS)


def _lines(rows: pa.Table, first: int) -> bytes:
    """Return events as lines; what is sent together arrives together."""
    size = len(rows)
    rows = rows.append_column(NUMBER, pa.array(np.arange(first, first + size)))
    rows = rows.append_column(ARRIVED, pa.array(np.full(size, int(time.time() * 1e6))))
    sink = io.BytesIO()
    csv.write_csv(rows, sink, csv.WriteOptions(include_header=False, quoting_style="none"))
    return sink.getvalue()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # whoever listened has had enough
        _send(sys.argv[1], json.loads(sys.argv[2]))
