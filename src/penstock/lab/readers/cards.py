"""Simulated card payments, with the names of the fraud query (EIRES, listing 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns

COLUMNS = {
    "TX_DATETIME": pa.timestamp("us", "UTC"),
    "TRANSACTION_ID": pa.int64(),
    "CUSTOMER_ID": pa.int64(),
    "TERMINAL_ID": pa.int64(),
    "TX_AMOUNT": pa.float64(),
    "TX_FRAUD": pa.int64(),
    "TX_FRAUD_SCENARIO": pa.int64(),
}
REFUSED_ABOVE = 220.0  # the simulator calls every payment above it a fraud (its scenario 1)


def read_card_transactions(
    path: Path | str, *, refused_above: float = REFUSED_ABOVE, rows: int | None = None
) -> pa.Table:
    """Return the payments of `card_transactions_simulated_2018`: T, or D if it was refused.

    The file does not say that payments were refused, and has no changes of a limit. Here those above an amount are
    refused, as a bank does that has a limit; L never comes. `cc` and `user` are the customer, who has one card; `loc`
    and `ben` the terminal, which is the place and the one who is paid. `vol` is the amount: listing 1 asks for more
    than 10k and 50k, which no payment here is. `org` and `limit` are there so that the listing can be run, and null.

    Args:
        path: of the file.
        refused_above: the amount.
        rows: how many rows of the file.

    `fraud` and `scenario` are what the simulator did: the truth that a query is measured by. Queries must not ask them.
    """
    table = read_columns(path, COLUMNS, rows=rows)
    is_refused = pc.greater(table.column("TX_AMOUNT"), refused_above)
    kind = np.where(is_refused.to_numpy(), 1, 0).astype(np.int8)
    customer, terminal = table.column("CUSTOMER_ID"), table.column("TERMINAL_ID").cast(pa.string())
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kind, ["T", "D"]),
            "ts": pc.cast(table.column("TX_DATETIME"), pa.int64()),
            "id": table.column("TRANSACTION_ID"),
            "cc": customer,
            "vol": table.column("TX_AMOUNT"),
            "loc": terminal,
            "user": customer.cast(pa.string()),
            "org": pa.nulls(len(table), pa.string()),
            "ben": terminal,
            "limit": pa.nulls(len(table), pa.float64()),
            "fraud": pc.equal(table.column("TX_FRAUD"), 1),
            "scenario": table.column("TX_FRAUD_SCENARIO"),
        }
    )
