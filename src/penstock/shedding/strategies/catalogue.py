"""All strategies, by the names that users spell."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.shedding.strategies.chance import RandomEvent, RandomRun
from penstock.shedding.strategies.ebl import EBL
from penstock.shedding.strategies.espice import Espice
from penstock.shedding.strategies.gspice import GspiceSF, GspiceSH, GspiceST, GspiceWF, GspiceWH, GspiceWT
from penstock.shedding.strategies.hspice import HspicePM, HspiceW
from penstock.shedding.strategies.pspice import Pspice, PspiceWithoutTime
from penstock.shedding.strategies.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    each.name: each
    for each in (
        RandomEvent, RandomRun, EBL, Espice, Pspice, PspiceWithoutTime, HspicePM, HspiceW,
        GspiceSH, GspiceST, GspiceSF, GspiceWH, GspiceWT, GspiceWF,
    )
}  # fmt: skip


def strategy_of(name: str) -> type[Strategy]:
    """Return a strategy by its name.

    Raises:
        PenstockError: there is none of that name.
    """
    if name not in STRATEGIES:
        raise PenstockError(f"there is no strategy {name!r}\n  fix: give one of {', '.join(map(repr, STRATEGIES))}")
    return STRATEGIES[name]
