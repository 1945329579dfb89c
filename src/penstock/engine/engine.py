"""The engine: queries in one process. Batches of events in, matches out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from penstock.engine.answers import PENDING, Awaited, StillPendingError
from penstock.engine.batches import SEQ, TIME, TYPE, Batch, Reader
from penstock.engine.detector import Detector, Mode
from penstock.engine.dropping import drop_from_all
from penstock.engine.ended import Ended, check_ended
from penstock.engine.functions import Functions, check_registered
from penstock.engine.hooks import Hooks, size_of
from penstock.engine.intake import attributes
from penstock.engine.matcher import TooManyRunsError
from penstock.engine.matches import Matches
from penstock.engine.obligations import Waiting
from penstock.engine.queries import EngineError, weighted
from penstock.engine.snapshots import SnapshotError, pack, unpack
from penstock.engine.together import Together, parted, put_together, with_together
from penstock.engine.waiting import waiting
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.validate import validate
from penstock.plan.layout import EVENT_SEQ, EVENT_TS
from penstock.plan.planning import plan as planned
from penstock.plan.tables import Floats, Ints
from penstock.plan.terms import Calls

MAX_RUNS = 20_000_000
_RECLAIM_WRITTEN_FROM, _RECLAIM_WRITTEN_TIMES = 256, 1.25  # events, before a snapshot looks for those not needed
_FORGET_FROM = 1 << 16  # fewer texts are not worth looking for those to forget


class Engine:
    """Finds the matches of one or more queries in batches of events.

    Args:
        queries: a query, or several, each perhaps with its weight: `[query, (other, 2.5)]`. Weights say how much a
            match of a query counts: models of shedding learn them. They change nothing in the engine.
        type: the name of the column with the type of an event.
        time: that of its time: whole microseconds, or timestamps.
        seq: that of its number, which matches refer to. Without such a column, events are numbered as they come.
        max_runs: how many runs a query may have; beyond, `process` raises `TooManyRunsError`.
        plan: how matches are found. "automaton" keeps runs; "tree" joins buffers of events, for queries that allow it;
            "auto" chooses by the rates and values of the first thousand events, and again now and then.
        functions: the user functions that queries call, by name. Values in and out are numbers, truth values and texts;
            None is missing. The engine calls them when it suits it, so a function must depend on its arguments only.
            Numba compiles them if it can; else Python is called, and a `SlowFunctionWarning` says what that costs.
        remotes: the sources that queries look up with REMOTE, by name: dicts, or anything else with `get(key)`.
        postpone: whether sources may answer `penstock.PENDING`: not there yet. Conditions that need such a value are
            postponed, and matches held, until `resolve` brings it; `must_block` says which queries cannot do that.
        ended: whether runs that end without a match are kept until `ended()` asks for them; for plain queries.

    Raises:
        EngineError: an option does not go with a query, or with another.
        FunctionError: a query names a function or a source that is not given.

    Examples:
        >>> import penstock as pk
        >>> engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 min"))
        >>> matches = engine.process({"type": ["A", "B", "B"], "ts": [1, 2, 3], "v": [3, 2, 5]})
        >>> matches += engine.flush()
        >>> matches
        1 match
          a 0; b 2
    """

    def __init__(
        self,
        queries: ast.Query | Iterable[ast.Query | tuple[ast.Query, float]],
        *,
        type: str = TYPE,  # noqa: A002 - what users call it
        time: str = TIME,
        seq: str = SEQ,
        max_runs: int = MAX_RUNS,
        plan: Mode = "auto",
        functions: Mapping[str, Callable[..., Any]] | None = None,
        remotes: Mapping[str, Any] | None = None,
        postpone: bool = False,
        ended: bool = False,
    ) -> None:
        if plan not in get_args(Mode):
            raise EngineError(f"plan={plan!r} is none of {', '.join(map(repr, get_args(Mode)))}")
        pairs = weighted(queries)
        self.queries: Sequence[ast.Query] = [query for query, _ in pairs]
        self.weights: Sequence[float] = [weight for _, weight in pairs]
        self._max_runs, self._mode, self._is_over = max_runs, plan, False
        self._postpone, self._ended, self._flushed = postpone, ended, Matches()
        self._is_ending = False  # flush() was called, and values are missing
        self._failure = ""  # why it takes no more batches
        self._texts_kept = 0
        for query in self.queries:
            validate(query, strict=False)
        check_registered(self.queries, functions or {}, remotes or {})
        plans = [planned(query, Calls.DERIVED, postpones=postpone) for query in self.queries]
        if ended:
            check_ended(plans, plan)
        self._reader = Reader((name for each in plans for name in attributes(each)), type=type, time=time, seq=seq)
        self._functions = Functions(functions or {}, remotes or {}, self._reader.texts, postpones=postpone)
        alone = len(plans) == 1
        self._detectors = [
            Detector(each, self._reader, self._functions, max_runs, plan, ended, alone) for each in plans
        ]
        self._running = list(self._detectors)  # what batches go to: those that begin alike may have one together
        self._may_share = not (alone or ended or postpone or plan == "tree")  # until the first batch, or hooks

    def process(self, batch: Any, hooks: Hooks | Sequence[Hooks | None] | None = None) -> Matches:
        """Return the matches that a batch completes.

        Args:
            batch: events sorted by (time, seq), after those of earlier batches, of any number: a pyarrow Table or
                RecordBatch, a pandas or polars DataFrame, anything with `__arrow_c_stream__`, or a dict of lists or
                arrays. Only the columns that the queries name are read.

            hooks: what is shed of the batch and counted in it; for several queries, one or a list of one for each.

        Raises:
            BatchError: the batch cannot be used; nothing has changed.
            HookError: the hooks do not fit the batch, the query or its plan; nothing has changed.
            TooManyRunsError: a query has more than `max_runs` runs; the engine takes no more batches.
            FunctionError: a user function or a remote source failed; the engine takes no more batches.
            MustBlockError: a source answered `PENDING` to a query that cannot go on without; likewise.
        """
        self._check_usable()
        each = [hooks] * len(self._detectors) if hooks is None or isinstance(hooks, Hooks) else list(hooks)
        chosen = dict(zip(map(id, self._detectors), each, strict=True))
        for detector, hook in zip(self._detectors, each, strict=True):
            if hook is not None:
                self._part()
                detector.check(hook, size_of(batch))
        events = self._reader.read(batch)
        if all(hook is None for hook in each):
            self._share(events)
        matches = self._matches(lambda detector: detector.process(events, chosen.get(id(detector))))
        self._forget_texts()
        return matches

    def _share(self, events: Batch) -> None:
        """Before the first batch, put queries together that begin alike; part those that are cheaper alone."""
        if self._may_share:
            self._may_share, chooses = False, self._mode == "auto"
            known = self._reader, self._functions, self._max_runs
            self._running = put_together(self._detectors, *known, chooses=chooses)
        self._running = parted(self._running, lambda together: together.is_dearer(events))

    def _part(self) -> None:
        """Let each query keep its own runs from now on: something is about them."""
        self._may_share = False
        self._running = parted(self._running, lambda together: True)

    @property
    def together(self) -> list[tuple[int, ...]]:
        """The queries that share the runs of a common beginning now: the places of those that do, group by group.

        That is decided at the first batch; from the first time that the runs of a query are asked for, or hooks are
        given, each has its own.
        """
        return [each.merged.members for each in self._running if isinstance(each, Together)]

    def _forget_texts(self) -> None:
        """Forget the texts that nothing holds any more, when there are twice as many as were held last time."""
        texts = self._reader.texts
        if len(texts) < max(_FORGET_FROM, 2 * self._texts_kept):
            return
        for detector in self._running:
            detector.drop_unneeded()
        used = np.zeros(len(texts), np.bool_)
        for detector in self._running:
            detector.mark_texts(used)
        numbers = texts.forget(used)
        for detector in self._running:
            detector.renumber_texts(numbers)
        self._texts_kept = len(texts)

    def advance(self, ts: int) -> Matches:
        """Let time pass without events: return the matches that are known now because no event before `ts` will come.

        These are matches with a negation or, under FIRST, a list at the end, whose WITHIN is over; events tell the
        time too, so this is for streams that pause, and for keys that get no more events.

        Args:
            ts: in microseconds; a batch with an earlier event is refused from now on. A time that has passed already
                changes nothing.
        """
        self._check_usable()
        self._reader.advance(ts)
        return self._matches(lambda detector: detector.advance(ts))

    def flush(self) -> Matches:
        """End the stream: return the matches that only the passing of time completes. No batch may follow.

        Raises:
            StillPendingError: matches wait for values. Nothing is lost: `resolve` these, and flush again.
        """
        self._check_usable(may_be_ending=True)
        if not self._is_ending:
            self._is_ending = True
            self._flushed = self._matches(lambda detector: detector.flush())
        if any(detector.is_waiting for detector in self._detectors):
            raise StillPendingError(self.pending())
        self._is_over, matches = True, self._flushed
        return matches

    def _matches(self, step: Callable[[Detector], Matches]) -> Matches:
        """Return the matches of a step of all queries."""
        matches = Matches()
        try:
            for detector in self._running:
                matches += step(detector)
                self._functions.check()
        except BaseException as error:
            had = "had too many runs" if isinstance(error, TooManyRunsError) else f"failed ({type(error).__name__})"
            self._failure = f"the engine {had} in an earlier batch"
            raise
        self._functions.warn(stacklevel=3)
        if self._postpone:
            self._end_step()
        return matches

    def _check_usable(self, *, may_be_ending: bool = False) -> None:
        if self._failure:
            raise EngineError(f"{self._failure}\n  fix: restore it from a snapshot")
        if self._is_over or (self._is_ending and not may_be_ending):
            raise EngineError("the stream is over: flush() was called\n  fix: make a new Engine for a new stream")

    # --- values that come late --------------------------------------------------------------------------------

    @property
    def must_block(self) -> list[str | None]:
        """Why each query cannot go on while a value is not there yet; None for those that can.

        Where a reason is given, a source that answers `PENDING` to the query is an error.
        """
        return [detector.plan.must_block for detector in self._detectors]

    def resolve(self, source: str, values: Mapping[Any, Any]) -> Matches:
        """Bring values that a source had answered `PENDING` for; return the matches that waited for them and hold.

        Args:
            source: its name.
            values: by key, what `get` would return: None if there is nothing. Keys that nobody waits for are passed
                over: what they will be asked for, the source will be asked for.
        """
        self._check_usable(may_be_ending=True)
        answers = self._functions.answers
        if source not in answers.remotes:
            raise EngineError(
                f"there is no remote source '{source}'; there are {', '.join(map(repr, answers.remotes))}"
            )
        if any(value is PENDING for value in values.values()):
            raise EngineError("PENDING is no value that has come\n  fix: resolve a key when its value is there")
        keys = answers.arrive(source, values, self._now())
        return self._matches(lambda detector: detector.resolve(source, keys)) if keys else Matches()

    def pending(self) -> list[Awaited]:
        """Return the keys that sources have answered `PENDING` for, and how many runs and matches wait for each.

        Runs of a tree plan are not counted: it has none.
        """
        runs, matches = Waiting(), Waiting()
        for detector in self._detectors:
            of_runs, of_matches = detector.waiting()
            runs, matches = runs + of_runs, matches + of_matches
        self._functions.check()
        self._end_step()
        places = self._functions.answers.awaited
        return [Awaited(*place, runs[place], matches[place]) for place in places]

    def _end_step(self) -> None:
        """Forget the values that nothing will ask for again."""
        is_waiting = any(detector.is_waiting for detector in self._detectors)
        self._functions.answers.end_step(self._now(), is_waiting=is_waiting)
        stores = [detector.store for detector in self._detectors]
        times = (int(store.events[EVENT_TS, 0]) for store in stores if store.size)
        self._functions.answers.forget(lambda: min(times, default=None))

    def _now(self) -> int:
        """Return the time of the newest event."""
        return max(detector.intake.now for detector in self._running)

    # --- looking inside ---------------------------------------------------------------------------------------

    def runs(self) -> Matches:
        """Return the open runs, in the form of matches: what is bound so far, by window.

        Raises:
            HookError: plan="tree" was asked for. An engine that has chosen a tree by itself changes to the automaton.
        """
        self._part()
        return sum((detector.runs() for detector in self._detectors), Matches())

    def ended(self) -> Ended:
        """Return the runs that have ended without a match since this was last called, and forget them.

        Each is returned once; flush() ends all that are open. A run that moved on has not ended; under EACH, LAST and
        CUMULATIVE nor has one from which something was taken: what it became is a match, or ends itself. Runs that were
        dropped are not among them.

        Raises:
            EngineError: the engine was made without `ended=True`.
        """
        if not self._ended:
            raise EngineError("this engine does not keep runs that ended\n  fix: Engine(query, ended=True)")
        return sum((detector.ended() for detector in self._detectors), Ended())

    def kept(self) -> Ints:
        """Return the numbers (`seq`) of the events that may still be part of a match, and perhaps of some more."""
        stores = [detector.store for detector in self._running]
        numbers = [store.events[EVENT_SEQ, : store.size] for store in stores]
        return numbers[0].copy() if len(numbers) == 1 else np.unique(np.concatenate(numbers))

    @property
    def states(self) -> list[list[tuple[str, ...]]]:
        """What is bound in each state of each query's automaton; state 0 is where runs open."""
        plans = [detector.plan for detector in self._detectors]
        return [
            [tuple(plan.numbered.variables[v].name for v in sorted(state.bound)) for state in plan.automaton.states]
            for plan in plans
        ]

    def open_runs(self, query: int = 0) -> Ints:
        """Return how many runs of a query are open in each state, as `states` names them; in state 0 there are none.

        Args:
            query: its place among the queries.

        Raises:
            HookError: as `runs`.
        """
        self._part()
        return self._detectors[query].keep_runs().open_runs()

    def waiting(self, types: Sequence[str], *, by_query: bool = False) -> list[Ints]:
        """Return how many open runs, of all keys, wait for an event of each type: (S, T) by the states of a query.

        It says what an event of a type takes. No plan changes for it: queries that share the runs of a common beginning
        count as one, and of a tree of joins the tuples count, in state 0.

        Args:
            types: names.
            by_query: one for each query, by `states`; this changes plans as `open_runs` does.
        """
        if by_query:
            self._part()
            for detector in self._detectors:
                detector.keep_runs()
        return [waiting(detector, types) for detector in self._running]

    def drop_runs(self, count: int, utility: Floats, query: int = 0) -> Ints:
        """Drop runs of a query, those of least utility first; return how many of each state.

        Args:
            count: how many; all, if there are fewer.
            utility: (S, B) of a run by its state and by what it has left of WITHIN, in B equal parts, the least first.
            query: its place among the queries.

        Raises:
            HookError: plan="tree" was asked for. An engine that has chosen a tree by itself changes to the automaton.
        """
        self._part()
        return self._detectors[query].keep_runs().drop_runs(count, utility)

    def partitions(self, query: int = 0) -> Floats:
        """Return the PARTITION BY values of a query's partitions, in the order in which they came: (P, keys).

        Texts are codes of the engine's own there.
        """
        self._part()
        return self._detectors[query].intake.key_numbers()

    def drop_runs_of_all(
        self, count: int, utilities: Sequence[Floats], *, left: Floats | None = None, seed: int | None = None
    ) -> int:
        """Drop runs of all queries, those of least utility first; return how many.

        Args:
            count: how many; all, if there are fewer.
            utilities: per query (S, B) of a run by its state and by what it has left, in B equal parts, least first;
                (1, B) if the state does not matter.
            left: by partition, in the order in which they came: the share that its runs have left, of whatever the
                utilities are about; NaN if they must stay. Without it, what is left of WITHIN.
            seed: of the choice among runs of the same state and part; without it, the oldest go first.

        Raises:
            HookError: a query does not run on the plain kernel, which alone can do this.
        """
        self._part()
        matchers = [detector.keep_plain_runs() for detector in self._detectors]
        return drop_from_all(matchers, count, utilities, left, seed)

    @property
    def work(self) -> dict[str, int]:
        """What has been done: events, run checks, runs created, matches found; open runs; events without a key.

        Events count for every query, and so do those without a key; what queries do together counts once.
        """
        total = {"checks": 0, "runs_created": 0, "matches": 0, "runs": 0}
        events = without_key = 0
        for detector in self._running:
            for name, count in detector.work.items():
                total[name] += count
            queries = len(detector.members) if isinstance(detector, Together) else 1
            events, without_key = events + queries * detector.intake.count, without_key + queries * detector.without_key
        return {"events": events, **total, "without_key": without_key}

    # --- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return all that the engine knows; `restore` goes on from there."""
        self._check_usable()
        together = [each for each in self._running if isinstance(each, Together)]
        if any(detector.has_ended() for detector in self._detectors):
            raise EngineError("runs have ended that a snapshot would lose\n  fix: call ended() before snapshot()")
        for detector in self._running:  # to look for what can be dropped takes less time than to write it
            detector.reclaim(_RECLAIM_WRITTEN_FROM, _RECLAIM_WRITTEN_TIMES)
        return pack(
            {
                "queries": [render(query) for query in self.queries],
                "names": [query.name for query in self.queries],
                "weights": list(self.weights),
                "max_runs": self._max_runs,
                "plan": self._mode,
                "has_texts": int(self._functions.has_texts),
                "postpone": int(self._postpone),
                "ended": int(self._ended),
                "answers": self._functions.answers.state(),
                "reader": self._reader.state(),
                "may_share": int(self._may_share),
                "detectors": {str(k): each.state() for k, each in enumerate(self._detectors) if each in self._running},
                "together": {str(k): each.spelled() for k, each in enumerate(together)},
            }
        )

    @classmethod
    def restore(
        cls,
        blob: bytes,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        remotes: Mapping[str, Any] | None = None,
    ) -> Engine:
        """Return an engine that goes on where a snapshot was taken.

        Args:
            blob: from `snapshot`.
            functions: those that the queries call: functions are not part of a snapshot.
            remotes: the remote sources, likewise.

        Raises:
            FunctionError: a query names a function or a source that is not given.
            SnapshotError: not a snapshot, of another version, truncated, or altered.
        """
        state = unpack(blob)
        try:
            pairs = zip(state["queries"], state["names"], strict=True)
            queries = [replace(parse(text), name=name) for text, name in pairs]
            engine = cls(
                list(zip(queries, state["weights"], strict=True)),
                max_runs=state["max_runs"],
                plan=state["plan"],
                functions=functions,
                remotes=remotes,
                postpone=bool(state["postpone"]),
                ended=bool(state["ended"]),
            )
            engine._functions.answers.restore(state["answers"])
            engine._reader, known = Reader.from_state(state["reader"]), engine._functions
            known.texts, known.has_texts, known.when_text = engine._reader.texts, bool(state["has_texts"]), []
            plans = [detector.plan for detector in engine._detectors]
            engine._detectors = [
                Detector(each, engine._reader, known, engine._max_runs, engine._mode, engine._ended, len(plans) == 1)
                for each in plans
            ]
            engine._running, engine._may_share = list(engine._detectors), bool(state["may_share"])
            for spelled in state["together"].values():
                members = [engine._detectors[k] for k in spelled["members"]]
                one = Together.restored(spelled, members, engine._reader, known, engine._max_runs)
                engine._running = with_together(engine._running, one)
            for k, detector in enumerate(engine._detectors):
                if detector in engine._running:
                    detector.restore(state["detectors"][str(k)])
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot does not hold what it should: {error}") from error
        return engine
