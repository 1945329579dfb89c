"""What remote sources answer, and what they have not answered yet.

A source may answer `PENDING` for a key. The engine then *awaits* the key, and does not ask for it again, until
`Engine.resolve` brings its value.

Which values are kept: within one step of the engine (a batch, a resolve) a source is asked once for each key, so all
that is decided in a step is decided by the same values. Beyond that nothing is kept of what was there at once: caching
is the source's business, which knows what values cost and how long they are good for. What came late is kept as long as
an event from before it came is: something that was postponed may still ask for it. And while a match waits, the other
values that it needs stay too, or it could wait for ever for two values of which the source can hold only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.engine.snapshots import SnapshotError
from penstock.errors import PenstockError

Key: TypeAlias = tuple[str, Any]  # a source and a key of it
_FORGET_FROM = 64  # fewer values are not worth looking for those to forget
_NOT_TOLD = "the engine was not told that values may be late\n  fix: Engine(…, postpone=True)"


class _Pending(Enum):
    """What a remote source answers when it does not have a value yet."""

    PENDING = "PENDING"

    def __repr__(self) -> str:
        return "penstock.PENDING"


PENDING: Final = _Pending.PENDING


class Awaited(NamedTuple):
    """A value that a source has not given yet, and how many runs and complete matches wait for it."""

    source: str
    key: Any
    runs: int
    matches: int


class MustBlockError(PenstockError):
    """A source answered `PENDING`, and the query cannot go on without the value."""


class StillPendingError(PenstockError):
    """The stream is over, and matches wait for values."""

    def __init__(self, awaited: Iterable[Awaited]) -> None:
        self.awaited = [each for each in awaited if each.matches]
        shown = [
            f"REMOTE[{each.source}, {each.key!r}] ({each.matches} {'match' if each.matches == 1 else 'matches'})"
            for each in self.awaited[:10]
        ]
        more = [f"… and {len(self.awaited) - 10} more"] if len(self.awaited) > 10 else []
        super().__init__(
            f"the stream is over, and matches wait for {', '.join([*shown, *more])}\n"
            "  fix: engine.resolve(source, {key: value, …}), with None for what there is none of; then flush() again"
        )


class Answers:
    """The remote sources of an engine, with what is awaited of them.

    Attributes:
        postpones: whether sources may answer `PENDING`.
        must_block: why the query that asks cannot do without an answer; None if it can.
        told: how often something was not there.
    """

    def __init__(self, remotes: Mapping[str, Any], *, postpones: bool = False) -> None:
        self.remotes, self.postpones = dict(remotes), postpones
        self.must_block: str | None = None
        self.told = 0
        self.awaited: dict[Key, None] = {}
        self._asked: dict[Key, Any] = {}  # in this step
        self._late: dict[Key, tuple[Any, int]] = {}  # values, and the newest time in the stream when they came
        self._kept = 0  # how many late ones there were when some were forgotten

    def of(self, source: str) -> Callable[[Any], Any]:
        """Return what looks up a key of a source."""
        if self.postpones:
            return lambda key: self.get(source, key)
        get = self.remotes[source].get

        def at_once(key: Any) -> Any:
            found = get(key)
            if found is PENDING:
                raise MustBlockError(f"REMOTE[{source}, {key!r}] is not there yet: {_NOT_TOLD}")
            return found

        return at_once

    def get(self, source: str, key: Any) -> Any:
        """Return a value, or PENDING."""
        place = source, key
        if place in self._asked:
            return self._asked[place]
        if place in self._late:
            return self._late[place][0]
        found = PENDING if place in self.awaited else self.remotes[source].get(key)
        if found is not PENDING:
            self._asked[place] = found
            return found
        if self.must_block is not None:
            raise MustBlockError(
                f"REMOTE[{source}, {key!r}] is not there yet, and the query must block: {self.must_block}\n"
                "  fix: give it an engine of its own, whose sources wait for their values (see Engine.must_block)"
            )
        self.told += 1
        self.awaited[place] = None
        return PENDING

    def arrive(self, source: str, values: Mapping[Any, Any], now: int) -> list[Any]:
        """Take values that have come, at a time in the stream; return the keys that were awaited."""
        keys = [key for key in values if (source, key) in self.awaited]
        for key in keys:
            del self.awaited[source, key]
            self._late[source, key] = values[key], now
        return keys

    def end_step(self, now: int, *, is_waiting: bool) -> None:
        """Forget what was asked in a step; not, if a match waits that may ask for it again."""
        if is_waiting:
            self._late |= {place: (value, now) for place, value in self._asked.items()}
        self._asked = {}

    def forget(self, oldest: Callable[[], int | None]) -> None:
        """Forget late values, if there are many: those that came before the oldest event that is kept (its time)."""
        if len(self._late) >= max(_FORGET_FROM, 2 * self._kept):
            time = oldest()
            self._late = {} if time is None else {k: each for k, each in self._late.items() if each[1] >= time}
            self._kept = len(self._late)

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive between two steps."""
        return {
            "awaited": [list(place) for place in self.awaited],
            "late": [[*place, _described(place, value), now] for place, (value, now) in self._late.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.awaited = dict.fromkeys((source, key) for source, key in state["awaited"])
        self._late = {(source, key): (_restored(value), now) for source, key, value, now in state["late"]}


def _described(place: Key, value: Any) -> Any:
    """Return a value as JSON has it: a scalar, or a dict that says whether it is a row or a set."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    if isinstance(value, Mapping):
        return {"row": [[name, _described(place, each)] for name, each in value.items()]}
    if isinstance(value, Iterable):
        return {"set": [_described(place, each) for each in value]}
    raise SnapshotError(f"REMOTE[{place[0]}, {place[1]!r}] is a {type(value).__name__}, which a snapshot cannot hold")


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "row" in value:
        return {name: _restored(each) for name, each in value["row"]}
    return frozenset(map(_restored, value["set"]))
