"""A sink that writes each batch into a table of PostgreSQL in one transaction.

One transaction has one writer: the rows of a batch come to the driver, as Arrow, and go from there. That suits matches,
which are few beside the events; a batch must fit into the driver's memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from penstock.spark.columns import quoted
from penstock.spark.sinks.once import JSON_OPTIONS, Name, Once, SinkError, name_of

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

BATCHES = "penstock_batches"
LONGEST_NAME_BYTES = 63  # of a column; PostgreSQL cuts longer ones off without an error

# Types that have one of their own in PostgreSQL; what is not here becomes text.
_TYPES: dict[type[st.DataType], str] = {
    st.BooleanType: "boolean",
    st.ByteType: "smallint",
    st.ShortType: "smallint",
    st.IntegerType: "integer",
    st.LongType: "bigint",
    st.FloatType: "real",
    st.DoubleType: "double precision",
    st.BinaryType: "bytea",
    st.DateType: "date",
    st.TimestampType: "timestamptz",
    st.TimestampNTZType: "timestamp",
    st.DayTimeIntervalType: "interval",
}
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # in JSON; after an even number of backslashes
_NESTED = (st.StructType, st.ArrayType, st.MapType, st.VariantType)


class PostgresOnce(Once):
    """Writes each batch into a table once: the rows and the number of the batch are committed together.

    A table that is not there is made, with a column for each of the frame: texts, numbers, times as such; arrays of
    events and other nested values as `jsonb`. The numbers of the batches are in the table `penstock_batches`; of a
    stream and a table, only the newest is needed later. A text has U+FFFD where it had the character NUL or bytes that
    are no UTF-8, which PostgreSQL does not take; a time that Python has no date for is infinity.

    Args:
        table: its name, perhaps with that of its schema before it: "alerts", "fraud.alerts".
        name: the stream's: a batch is the same if stream, table and number are.
        dsn: where the database is, as libpq takes it. What it does not say comes from the environment: PGHOST, PGUSER,
            PGPASSWORD, a password file …  It is not shown anywhere.

    Raises:
        SinkError: when a batch is written: the database cannot be reached, or does not take the rows.

    Examples:
        sink = PostgresOnce("alerts", CheckpointId("state"), "host=db.example dbname=fraud")
        found.writeStream.foreachBatch(sink).option("checkpointLocation", "state").start()
    """

    def __init__(self, table: str, name: Name, dsn: str = "") -> None:
        self.table, self.name, self._dsn = table, name, dsn

    def __repr__(self) -> str:
        return f"PostgresOnce({self.table!r})"

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Write a batch, unless it is there."""
        self.name = name_of(self.name, frame)
        fields = frame.schema.fields
        rows = frame.select(*(_plain(field).alias(field.name) for field in fields)).toArrow()
        return self.store(rows, [(field.name, column_type(field.dataType)) for field in fields], batch_id)

    def store(self, rows: pa.Table, columns: Sequence[tuple[str, str]], batch_id: int) -> bool:
        """Write the rows of a batch, which have the names and PostgreSQL types of these columns; once."""
        try:
            import psycopg
        except ModuleNotFoundError:
            raise SinkError("PostgreSQL needs psycopg\n  fix: pip install 'penstock[postgres]'") from None
        _check_names([name for name, _ in columns])
        try:
            with psycopg.connect(self._dsn) as connection:  # one transaction: committed at the end, or not at all
                self._create(connection, columns)
                if not self._claim(connection, batch_id, len(rows)):
                    return False
                self._copy(connection, rows, columns)
        except psycopg.Error as error:
            raise SinkError(f"PostgreSQL, table {self.table}: {without_password(str(error), self._dsn)}") from None
        return True

    def _identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(*self.table.split("."))

    def _create(self, connection: psycopg.Connection, columns: Sequence[tuple[str, str]]) -> None:
        """Make the tables that are missing. To ask first is kind to users who may write, but not make tables."""
        from psycopg import sql

        if _is_missing(connection, self._identifier()):
            listed = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in columns]
            statement = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})")
            connection.execute(statement.format(self._identifier(), sql.SQL(", ").join(listed)))
        if _is_missing(connection, sql.Identifier(BATCHES)):
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {BATCHES} (name text, target text, batch_id bigint, rows bigint,"
                " written_at timestamptz DEFAULT now(), PRIMARY KEY (name, target, batch_id))"
            )

    def _claim(self, connection: psycopg.Connection, batch_id: int, rows: int) -> bool:
        """Enter a batch; return False if it is there. Another attempt that is writing it now is waited for."""
        done = connection.execute(
            f"INSERT INTO {BATCHES} (name, target, batch_id, rows) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (self.name, self.table, batch_id, rows),
        )
        return done.rowcount == 1

    def _copy(self, connection: psycopg.Connection, rows: pa.Table, columns: Sequence[tuple[str, str]]) -> None:
        from psycopg import sql

        names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(self._identifier(), names)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in python_rows(rows, [kind for _, kind in columns]):
                copy.write_row(row)


def column_type(data_type: st.DataType) -> str:
    """Return the type of a column in PostgreSQL.

    Examples:
        >>> column_type(st.LongType()), column_type(st.DecimalType(10, 2)), column_type(st.ArrayType(st.StringType()))
        ('bigint', 'numeric(10,2)', 'jsonb')
    """
    if isinstance(data_type, st.DecimalType):
        return f"numeric({data_type.precision},{data_type.scale})"
    return "jsonb" if isinstance(data_type, _NESTED) else _TYPES.get(type(data_type), "text")


def _plain(field: st.StructField) -> Column:
    """Return a column as a value that PostgreSQL takes: what is nested as JSON, texts in UTF-8."""
    column = quoted(field.name)
    kind = column_type(field.dataType)
    if kind == "jsonb":
        return sf.to_json(column, JSON_OPTIONS)
    return sf.make_valid_utf8(column.cast("string")) if kind == "text" else column


def python_rows(table: pa.Table, kinds: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table as psycopg takes them, for columns of these PostgreSQL types."""
    for batch in table.to_batches():
        yield from zip(*map(_values, batch.columns, kinds), strict=True)


def _values(column: Any, kind: str) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        epoch = datetime(1970, 1, 1, tzinfo=UTC if column.type.tz else None)
        return [_moment(epoch, us, microseconds=1) for us in column.cast(pa.timestamp("us")).cast("int64").to_pylist()]
    if pa.types.is_date32(column.type):
        return [_moment(date(1970, 1, 1), days, days=1) for days in column.cast("int32").to_pylist()]
    values: list[Any] = column.to_pylist()
    if kind == "jsonb":
        return [text and _ESCAPED_NUL.sub(r"\1\\ufffd", text) for text in values]
    return [text and text.replace("\0", "\ufffd") for text in values] if kind == "text" else values


def _moment(epoch: Any, count: int | None, **unit: int) -> Any:
    try:
        return None if count is None else epoch + count * timedelta(**unit)
    except OverflowError:
        return "infinity" if count is not None and count > 0 else "-infinity"


def _check_names(names: Sequence[str]) -> None:
    long = [name for name in names if len(name.encode()) > LONGEST_NAME_BYTES]
    if long:
        raise SinkError(
            f"PostgreSQL takes names of {LONGEST_NAME_BYTES} bytes, and a column is called {long[0]!r}\n"
            "  fix: give it a shorter name: RETURN … AS shorter"
        )


def _is_missing(connection: psycopg.Connection, table: sql.Identifier) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", (table.as_string(connection),)).fetchone()
    return found is None or found[0] is None


def without_password(message: str, dsn: str) -> str:
    """Return an error message in which no password of a dsn is shown.

    A dsn that cannot be read is not shown at all: any part of it may be the password.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        secrets = [value for key, value in conninfo_to_dict(dsn).items() if "password" in key and value]
    except ProgrammingError:
        return "its dsn cannot be read (it is not shown here)\n  fix: write it as in 'host=localhost dbname=events'"
    for secret in secrets:
        message = message.replace(str(secret), "***")
    return message.strip()
