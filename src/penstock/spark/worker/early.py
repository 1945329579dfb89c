"""What is shed before the shuffle: rows that are overdue, and, by strategies that look at the stream, what is too much.

A partition of a micro-batch is looked at by itself, without state: what it knows is how long its rows have waited.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.arrow_values import numbers
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.chance import uniform
from penstock.shedding.strategies.gspice import GspiceS
from penstock.spark.worker.judging import marked
from penstock.spark.worker.shedding import Shed
from penstock.spark.worker.spec import TIE
from penstock.spark.worker.times import is_null


def worths(table: pa.Table, type_name: str, ts: Ints, is_event: Bools, shed: Shed) -> Floats | None:
    """Return what a strategy that looks at the stream says about rows; NaN: it does not know; None: it is no such.

    The predecessor pane is that of the partition: it begins with it, and holds the rows before in it.
    """
    strategy = shed.strategy
    if not isinstance(strategy, GspiceS):
        return None
    result = np.full(len(table), np.nan)
    places = np.flatnonzero(is_event)
    tie = numbers(table.column(TIE))
    view, known, _ = shed.view(table.take(pa.array(places)), type_name, ts[places], tie[places])
    result[places[known]] = strategy.utilities(view)
    return result


def chosen(
    table: pa.Table, now: int, is_event: Bools, worth: Floats | None, shed: Shed, by: Sequence[str] = ()
) -> tuple[Bools, Bools, Bools]:
    """Return which rows are overdue, which the strategy gives up, and which it spares, of the keys, `by`, never shed.

    No row of these goes here. Those that are overdue are late, and tell, as those that are spared do, how many matches
    other keys have lost.
    """
    none = np.zeros(len(table), np.bool_)
    if not shed.leaves_out or shed.in_windows is not None:  # all rows count for positions in windows
        return none, none, none
    lags, tie = shed.lags(table, now), table.column(TIE)
    may_go = is_event & ~is_null(tie)
    is_overdue = may_go & (lags > shed.bound.bound)
    here = np.flatnonzero(may_go & ~is_overdue)
    share = shed.bound.share_by_lag(float(lags[here].max(initial=0)))
    if shed.strategy.level != "stream":
        share = 0.0
    if share <= 0 and not is_overdue.any():
        return none, none, none
    is_marked, chance = marked(table, by, shed.unshed, shed.seed), uniform(shed.seed + 1, numbers(tie)[here])
    is_shed = none.copy()
    if worth is None:
        is_shed[here[chance < share]] = True
    else:
        known = ~np.isnan(worth[here])
        order = here[known][np.lexsort((chance[known], worth[here][known]))]
        is_shed[order[: round(share * len(here))]] = True
    return is_overdue & ~is_marked, is_shed & ~is_marked, is_shed & is_marked
