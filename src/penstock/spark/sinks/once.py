"""Sinks for `writeStream.foreachBatch` that write each batch once, even if Spark runs it again.

Spark runs the last batch of a stream again when it goes on from a checkpoint in which that batch is not marked as
done, and gives it the same number. So a sink that knows which numbers it has written leaves nothing twice. A batch that
is run again has the same matches; only `detected_ts` differs, which is when this attempt found them.

A batch must be worked off even if nothing is written: Spark refuses to go on if a stateful operator was not run to its
end. `drain` does that.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO, TypeAlias
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.errors import PenstockError
from penstock.spark.columns import quoted
from penstock.spark.outputs import output
from penstock.spark.worker.results import MATCHES, OUTPUT

BATCH_ID = "batch_id"
# Microseconds are kept, and the zone does not hang on the session.
JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
    "ignoreNullFields": "false",
}
_OWNER, _ATTEMPT = "_checkpoint", "_attempt-"


class SinkError(PenstockError):
    """A batch could not be written."""


class Once(ABC):
    """Writes each batch once; what `foreachBatch` calls."""

    @abstractmethod
    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Write a batch, unless that was done before; work it off in any case. Return whether it was written."""

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch."""
        self.write(frame, batch_id)


class CheckpointId:
    """The id that Spark gave to the stream of a checkpoint: the same as long as the checkpoint goes on.

    Args:
        path: of the checkpoint. Spark writes the id when the stream starts, so it is there when a batch is.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def __call__(self, spark: SparkSession) -> str:
        """Read it."""
        here = local(str(self.path))
        row = spark.read.text(f"{self.path if here is None else f'file://{here}'}/metadata").first()
        if row is None:
            raise SinkError(f"{self.path}: the checkpoint has no id")
        return str(json.loads(row[0])["id"])


# What a sink calls the stream that it writes for: a name, or something that finds it out when the first batch is there.
Name: TypeAlias = str | Callable[[SparkSession], str]


def name_of(name: Name, frame: DataFrame) -> str:
    """Return the name of a stream."""
    return name if isinstance(name, str) else name(frame.sparkSession)


def drain(frame: DataFrame) -> None:
    """Work a batch off without writing it anywhere."""
    frame.write.format("noop").mode("overwrite").save()


def as_json(*columns: str) -> Column:
    """Return columns as a text: an object in JSON."""
    return sf.to_json(sf.struct(*map(quoted, columns)), JSON_OPTIONS)


def keys_of(frame: DataFrame) -> list[str]:
    """Return the names of the keys in a frame of matches: they stand between `query` and `window`."""
    names = frame.columns
    return names[names.index("query") + 1 : names.index("window")] if {"query", "window"} <= set(names) else []


def local(path: str) -> Path | None:
    """Return a path on this machine's file system, which is where one without a scheme is; None if it is elsewhere."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return Path(path).absolute()
    return Path("/", rest.lstrip("/")) if scheme == "file" else None


class FilesByBatch(Once):
    """Writes a folder for each batch, `batch_id=00000012`; the column `batch_id` is there again when they are read.

    On this machine's file system, a batch is written under a hidden name and renamed when it is complete: whoever reads
    sees all of a batch or nothing of it. A batch that is there is not written again, so what was read once stays so.

    On any other file system that Spark knows (`hdfs://…`), Spark writes into a hidden folder and then moves it in the
    place of the old one. A batch that is run again replaces the first attempt, with the same matches. Whoever reads in
    between may miss that batch; where a folder is not renamed in one step, as on S3, he may see part of it. After the
    batch is done, neither can be. A batch without rows leaves no folder there.

    No file is forced to disk: a batch survives the end of the process, not that of the machine.

    Args:
        path: of the folder; without a scheme, on this machine.
        format: one that Spark writes into files: "parquet", "json", "orc" …
        name: the stream's, if a folder that another stream has written into shall be refused (on this machine only).
        options: of Spark's writer.

    Raises:
        SinkError: when a batch is written: the folder is another stream's, or cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        format: str,  # noqa: A002 - Spark's word
        name: Name | None = None,
        **options: str | int | float | bool,
    ) -> None:
        self.path, self.format, self.name = str(path), format, name
        self.options = {**(JSON_OPTIONS if format == "json" else {}), **options}
        self._is_ours = False

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Write a batch, unless it is there."""
        if BATCH_ID in frame.columns:
            raise SinkError(f"{self.path}: a column is called {BATCH_ID}, as the folders are\n  fix: rename it")
        here = local(self.path)
        if here is not None:
            return self._write_here(frame, batch_id, here)
        writer = frame.withColumn(BATCH_ID, sf.lit(f"{batch_id:08}")).write.format(self.format).options(**self.options)
        writer = writer.partitionBy(BATCH_ID).mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.save(self.path)
        return True

    def _write_here(self, frame: DataFrame, batch_id: int, folder: Path) -> bool:
        if not self._is_ours:
            self._enter(folder, frame)
        final = folder / f"{BATCH_ID}={batch_id:08}"
        if final.exists():
            drain(frame)
            return False
        attempt = folder / f"{_ATTEMPT}{batch_id:08}-{uuid4().hex}"
        try:
            frame.write.format(self.format).options(**self.options).save(f"file://{attempt}")
            os.rename(attempt, final)
        except OSError as error:
            if final.exists():  # another attempt at the same batch was first, and it has the same rows
                return False
            raise SinkError(f"{final}: cannot be written: {error.strerror or error}") from None
        finally:
            shutil.rmtree(attempt, ignore_errors=True)
        return True

    def _enter(self, folder: Path, frame: DataFrame) -> None:
        """See to it that the folder is there, is this stream's, and has nothing of attempts that did not end."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self.name is not None:
                own(folder, name_of(self.name, frame))
            for left in folder.glob(f"{_ATTEMPT}*"):
                shutil.rmtree(left, ignore_errors=True)
        except OSError as error:
            raise SinkError(f"{folder}: cannot be written: {error.strerror or error}") from None
        self._is_ours = True


class ParquetByBatch(FilesByBatch):
    """Writes Parquet, a folder for each batch; see `FilesByBatch`. `spark.read.parquet(path)` reads them all.

    Examples:
        found.writeStream.foreachBatch(ParquetByBatch("matches")).option("checkpointLocation", "state").start()
    """

    def __init__(self, path: str | Path, name: Name | None = None, **options: str | int | float | bool) -> None:
        super().__init__(path, "parquet", name, **options)


def own(folder: Path, name: str) -> None:
    """Mark a folder as a stream's.

    Raises:
        SinkError: it is another's.
    """
    mark = folder / _OWNER
    there = mark.read_text("utf-8").strip() if mark.exists() else ""
    if not there and next(folder.glob(f"{BATCH_ID}=*"), None) is None:
        mark.write_text(name + "\n", "utf-8")
    elif there != name:
        raise SinkError(
            f"{folder}: holds the batches of another checkpoint, whose numbers begin at 0 as well\n"
            "  fix: go on from that checkpoint, or write into another folder"
        )


class Lines(Once):
    """Prints the rows of each batch, a JSON object in a line. A batch that is run again is printed again.

    Args:
        output: what the rows are: "matches", "late", "malformed" …; the objects tell it.
        stream: where to; stdout, if not given.
    """

    def __init__(self, output: str = MATCHES, stream: TextIO | None = None) -> None:
        self.output, self.stream = output, stream

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Print a batch."""
        tagged = frame.select(sf.lit(self.output).alias(OUTPUT), "*")
        for row in tagged.select(as_json(*tagged.columns)).collect():
            print(row[0], file=self.stream or sys.stdout, flush=True)
        return True


class Fanout(Once):
    """Parts a batch into the outputs of `detect(…, outputs=…)` and gives each to its sink; it is worked off once.

    If one sink fails, the batch is run again, and the others, if they write once, have it already.

    Args:
        sinks: by output: "matches", "late", "malformed", "shed", "ended".

    Examples:
        found = events.transform(detect(query, outputs=["matches", "malformed"]))
        sinks = Fanout({"matches": ParquetByBatch("matches"), "malformed": ParquetByBatch("malformed")})
        found.writeStream.foreachBatch(sinks).option("checkpointLocation", "state").start()
    """

    def __init__(self, sinks: Mapping[str, Once]) -> None:
        self.sinks = dict(sinks)

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Give a batch to all sinks; return whether any of them has written."""
        if len(self.sinks) == 1:
            return self._write(frame, batch_id)
        frame.persist()
        try:
            return self._write(frame, batch_id)
        finally:
            frame.unpersist()

    def _write(self, frame: DataFrame, batch_id: int) -> bool:
        is_parted = OUTPUT in frame.columns
        found = [sink.write(output(frame, name) if is_parted else frame, batch_id) for name, sink in self.sinks.items()]
        return any(found)
