"""User functions and remote sources in the engine: what they are given, what they cost, what goes wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest

import penstock as pk
from penstock.engine.functions import NEW_TEXTS, FunctionError, SlowFunctionWarning
from penstock.engine.matches import Matches
from penstock.engine.queries import EngineError
from penstock.kernel.calling import IS_COMPILING
from penstock.pattern.parser import parse
from penstock.plan.callees import names_called
from penstock.plan.planning import plan
from penstock.plan.terms import Calls, Code
from penstock.reference import Event, find
from tests.engine.comparing import as_lists, pieces, row, rows
from tests.generators import FUNCTIONS, REMOTES, Case, seeded

CASES = 150
Batch = dict[str, list[Any]]
compiled_only = pytest.mark.skipif(not IS_COMPILING, reason="nothing is compiled")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, where kernels run as plain Python


class Slow:
    """A function that numba cannot compile; it keeps what it was given."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.given: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> Any:
        self.given.append(arguments)
        return self.function(*arguments)


def events(**columns: list[Any]) -> Batch:
    """Return a batch: A, B, A, B, … with times 1, 2, 3, …"""
    size = len(next(iter(columns.values())))
    return {"type": [("A", "B")[k % 2] for k in range(size)], "ts": list(range(1, size + 1)), **columns}


def bound(matches: Matches) -> list[tuple[int, ...]]:
    return sorted(tuple(seq for each in match.events.values() for seq in each) for match in matches)


def run(query: str, batch: Batch, **options: Any) -> Matches:
    engine = pk.Engine(parse(f"PATTERN {query} WITHIN 1 min"), **options)
    return engine.process(batch) + engine.flush()


def of_reference(query: str, batch: Batch, **options: Any) -> list[tuple[int, ...]]:
    names = [name for name in batch if name not in ("type", "ts")]
    stream = [
        Event(batch["type"][k], ts, k, {name: batch[name][k] for name in names}) for k, ts in enumerate(batch["ts"])
    ]
    found = find(parse(f"PATTERN {query} WITHIN 1 min"), stream, **options)
    return sorted(tuple(seq for _, each in match.bindings for seq in each) for match in found)


# --- as the reference -----------------------------------------------------------------------------------------


def calling_cases() -> Iterator[Case]:
    return (case for case in seeded(100 * CASES) if any(names_called(case.query)))


@pytest.mark.parametrize("is_slow", [False, True])
def test_random_queries_that_call_find_what_the_reference_finds(is_slow: bool) -> None:
    functions = {name: Slow(function) for name, function in FUNCTIONS.items()} if is_slow else FUNCTIONS
    options: dict[str, Any] = {"functions": functions, "remotes": REMOTES}
    matches = 0
    for seed, case in enumerate(islice(calling_cases(), CASES)):
        random, got = Random(seed), Matches()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SlowFunctionWarning)
            engine = pk.Engine(case.query, **options)
            for piece in pieces(case.events, [random.randint(0, len(case.events)) for _ in range(2)]):
                got += engine.process(as_lists(piece))
                if random.random() < 0.5:
                    engine = pk.Engine.restore(engine.snapshot(), **options)
            got += engine.flush()
        wanted = sorted(map(row, find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)), key=repr)
        assert sorted(rows(got), key=repr) == wanted, case
        matches += len(wanted)
    assert matches > CASES


@pytest.mark.parametrize(
    "condition",
    [
        "f(a.x) = f(b.x)",
        "f(a.x) < b.x",
        "f(b.x) > 1",
        "SAME[f(x)]",
        "g(a.x, b.x) < 2",
        "g(a.x, b.x) < g(b.x, a.x)",
        "NOT g(a.x, b.x) > 0",
        "g(f(a.x), b.x) <= f(g(b.x, a.x))",
        "f(3) < a.x + b.x",
        "g(a.x, a.x) = f(b.x) OR f(a.x) IN (1, 2, g(a.x, b.x))",
    ],
)
@pytest.mark.parametrize("is_slow", [False, True])
def test_calls_in_conditions(condition: str, is_slow: bool) -> None:
    random = Random(condition)
    batch = events(x=[random.choice([None, 0.5, *range(6)]) for _ in range(40)])
    functions: dict[str, Callable[..., Any]] = {"f": lambda x: x // 2, "g": lambda x, y: 2 * x - y}
    query = f"SEQ(A a, B b) WHERE {condition}"
    wanted = of_reference(query, batch, functions=functions)
    given = {name: Slow(function) for name, function in functions.items()} if is_slow else functions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowFunctionWarning)
        assert bound(run(query, batch, functions=given)) == wanted
    assert wanted


@pytest.mark.parametrize(
    "condition",
    [
        "f(a.k) = b.k",
        "f(a.k) < b.k",
        "g(a.k, b.k) = 'pq'",
        "g(a.k, b.k) < g(b.k, a.k)",
        "g(a.k, b.k) >= c.k",
        "g(a.k, b.k) < f(c.k)",
        "c.k > g(a.k, b.k) OR g(a.k, c.k) < 'q'",
        "SAME[f(k)]",
    ],
)
@pytest.mark.filterwarnings("ignore::penstock.engine.functions.SlowFunctionWarning")
def test_texts_in_and_out(condition: str) -> None:
    random = Random(condition)
    kinds = [random.choice(["p", "q", "pq", "qp", "r", None]) for _ in range(50)]
    batch = {**events(k=kinds), "type": [random.choice("ABC") for _ in kinds]}
    functions: dict[str, Callable[..., Any]] = {"f": lambda k: k[::-1], "g": lambda k, m: k + m}
    query = f"SEQ(A a, B b, C c) WHERE {condition}"
    wanted = of_reference(query, batch, functions=functions)
    assert bound(run(query, batch, functions=functions)) == wanted
    assert wanted


@pytest.mark.parametrize("sign", ["<", ">=", ">"])
@pytest.mark.parametrize("cut", [0, 8])
@pytest.mark.filterwarnings("ignore::penstock.engine.functions.SlowFunctionWarning")
def test_a_function_that_returns_numbers_and_then_texts(sign: str, cut: int) -> None:
    functions: dict[str, Callable[..., Any]] = {"f": lambda x, y: x + y if x + y < 10 else "z" * int(x)}
    batch: Batch = {"type": list("ABABCCABCC"), "ts": list(range(10)), "x": [1, 2, 3, 4, 5, 9, 9, 9, 100, -1]}
    query = f"SEQ(A a, B b, C c) WHERE f(a.x, b.x) {sign} c.x"
    engine = pk.Engine(parse(f"PATTERN {query} WITHIN 1 min"), functions=functions)
    matches = engine.process({name: values[:cut] for name, values in batch.items()})
    engine = pk.Engine.restore(engine.snapshot(), functions=functions)
    matches += engine.process({name: values[cut:] for name, values in batch.items()})
    assert bound(matches + engine.flush()) == of_reference(query, batch, functions=functions)


# --- derived columns ------------------------------------------------------------------------------------------


def test_what_one_event_tells_is_a_column_and_a_key() -> None:
    query = parse("PATTERN SEQ(A a, B b) WHERE f(a.x, 3) = f(b.x, 3) AND SAME[h(k)] AND f(a.x, b.x) > 1 WITHIN 1 min")
    planned = plan(query, Calls.DERIVED)
    derived = [column.name for column in planned.terms.columns if column.node is not None]
    assert derived == ["f(_.x, 3)", "h(_.k)"]
    called = [any(code == Code.CALL for code, _ in each.program) for each in planned.terms.conditions]
    assert called == [False, False, True]
    assert planned.plain is not None
    assert (planned.plain.states[1:, 3] >= 0).any()  # runs are found by the key


@pytest.mark.filterwarnings("ignore::penstock.engine.functions.SlowFunctionWarning")
def test_functions_are_called_once_per_event_and_only_where_other_conditions_hold() -> None:
    f = Slow(lambda x: 100 // x)
    batch: Batch = {"type": ["A", "A", "C", "B", "B"], "ts": [1, 2, 3, 4, 5], "x": [0, 5, 0, 4, 50]}
    matches = run(
        "SEQ(A a, B b) WHERE a.x > 0 AND f(a.x) > 0 AND f(a.x) < b.x AND f(a.x) + 1 < b.x", batch, functions={"f": f}
    )
    assert bound(matches) == [(1, 4)]
    assert f.given == [(5,)]


# --- what functions are given ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::penstock.engine.functions.SlowFunctionWarning")
def test_python_sees_the_types_of_the_columns_and_never_a_missing_value() -> None:
    f = Slow(lambda *given: all(value is not None for value in given))
    batch = events(n=[3, 4, None, 6], x=[1.0, 2.5, 1.0, 4.0], k=["p", "q", "r", "s"], flag=[True, False, True, False])
    run("SEQ(A a, B b) WHERE f(a.n, b.x, a.k, b.flag, a.n + 1, a.ts)", batch, functions={"f": f})
    assert f.given == [(3, 2.5, "p", False, 4, 1), (3, 4.0, "p", False, 4, 1)]
    assert [list(map(type, row)) for row in f.given] == [[int, float, str, bool, int, int]] * 2


def test_returned_values_have_their_types() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "both": lambda x, y: x + y if x > 1 else None,
        "near": lambda x, y: abs(x - y) < 2,
        "spelled": Slow(lambda x: f"<{x}>"),
    }
    query = "SEQ(A a, B b) WITHIN 1 min RETURN both(a.n, b.n) AS s, near(a.n, b.n) AS near, spelled(b.n) AS t"
    engine = pk.Engine(parse(f"PATTERN {query}"), functions=functions)
    batch = events(n=[1, 2, 3, 7])
    if IS_COMPILING:
        with pytest.warns(SlowFunctionWarning, match="'spelled'"):
            matches = engine.process(batch)
    else:
        matches = engine.process(batch)
    values = {tuple(match.events.values()): list(match.values.values()) for match in matches}
    assert values == {
        ((0,), (1,)): [None, True, "<2>"],
        ((0,), (3,)): [None, False, "<7>"],
        ((2,), (3,)): [10, False, "<7>"],
    }
    assert isinstance(values[(0,), (1,)][1], bool)


# --- slow functions -------------------------------------------------------------------------------------------


@compiled_only
def test_a_slow_function_is_warned_of_once_with_why_and_what_it_costs() -> None:
    def shout(name: str) -> str:
        return name.upper()

    engine = pk.Engine(parse("PATTERN SEQ(A a, B b) WHERE shout(a.k) = b.k WITHIN 1 min"), functions={"shout": shout})
    with pytest.warns(SlowFunctionWarning) as caught:
        engine.process(events(k=["p", "P"]))
    (warning,) = caught
    told = str(warning.message)
    assert "function 'shout'" in told
    assert "µs per call" in told
    assert "Unknown attribute 'upper' of type float64" in told
    assert "penstock.SlowFunctionWarning" in told
    assert warning.filename == __file__
    engine.process({"type": ["A", "B"], "ts": [5, 6], "k": ["q", "Q"]})  # no further warning, which would be an error


@compiled_only
def test_code_that_means_something_else_when_compiled_is_left_to_python() -> None:
    functions: dict[str, Callable[..., Any]] = {"f": lambda n: isinstance(n, int)}
    with pytest.warns(SlowFunctionWarning, match=r"compiled, of \(0\) it is 0, and in Python True"):
        assert bound(run("SEQ(A a, B b) WHERE f(a.n)", events(n=[1, 2]), functions=functions)) == [(0, 1)]


def test_rows_that_compiled_code_cannot_do_are_done_by_python() -> None:
    functions: dict[str, Callable[..., Any]] = {"itself": lambda x: x}
    batch = events(v=[1, "p", "p", 1, "p", "p"])
    assert bound(run("SEQ(A a, B b) WHERE itself(a.v) = b.v", batch, functions=functions)) == [(0, 3), (2, 5), (4, 5)]


# --- what goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["f(a.x) > 0", "f(b.x - a.x) > 0", "SAME[f(x)]"])
@pytest.mark.parametrize("is_slow", [False, True])
def test_an_error_in_a_function_is_raised_with_its_arguments(condition: str, is_slow: bool) -> None:
    def f(x: float) -> float:
        return 1 / (x - 2)

    query = parse(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 1 min")
    engine = pk.Engine(query, functions={"f": Slow(f) if is_slow else f})
    with pytest.raises(FunctionError, match=r"f\(2\) failed: ZeroDivisionError") as caught:
        engine.process(events(x=[2, 4]))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(EngineError, match=r"failed \(FunctionError\).*\n.*restore it from a snapshot"):
        engine.process(events(x=[2, 3]))


def test_an_interrupt_in_a_function_is_not_lost() -> None:
    def stop(x: float, y: float) -> float:
        raise KeyboardInterrupt

    engine = pk.Engine(parse("PATTERN SEQ(A a, B b) WHERE f(a.x, b.x) > 0 WITHIN 1 min"), functions={"f": Slow(stop)})
    with pytest.raises(KeyboardInterrupt):
        engine.process(events(x=[2, 4]))


def test_results_that_are_no_values_are_refused() -> None:
    query = "SEQ(A a, B b) WHERE f(a.x) > 0"
    with pytest.raises(FunctionError, match=r"f\(1\) is a list, and a value must be"):
        run(query, events(x=[1, 2]), functions={"f": Slow(lambda x: [x])})
    with pytest.raises(FunctionError, match=r"f\(1\) is 4503599627370497, and numbers from 2\*\*52"):
        run(query, events(x=[1, 2]), functions={"f": lambda x: x + 2**52})


@pytest.mark.filterwarnings("ignore::penstock.engine.functions.SlowFunctionWarning")
def test_too_many_new_texts_while_the_kernel_runs() -> None:
    size = 2 * NEW_TEXTS + 64
    batch: Batch = {"type": ["A"] + ["B"] * size, "ts": list(range(size + 1)), "n": list(range(size + 1))}
    with pytest.raises(FunctionError, match="more than 4,096 new texts in one batch"):
        run("SEQ(A a, B b) WHERE f(a.n, b.n) < 'p'", batch, functions={"f": Slow(lambda n, m: f"{n}-{m}")})


def test_all_missing_functions_and_sources_are_named() -> None:
    conditions = "risk(a.x) > 1 AND SAME[zone(x)] AND REMOTE[cards, a.x] > 1"
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {conditions} WITHIN 1 min RETURN scores(b.x)")
    with pytest.raises(FunctionError) as caught:
        pk.Engine(query, functions={"risk": abs, "score": abs})
    assert str(caught.value).splitlines() == [
        "function 'scores': a query names it, and there are 'risk', 'score'",
        "  fix: did you mean 'score'?",
        "function 'zone': a query names it, and there are 'risk', 'score'",
        "  fix: give it: Engine(…, functions={'zone': …})",
        "remote source 'cards': a query names it, and none are given",
        "  fix: give it: Engine(…, remotes={'cards': …})",
    ]


def test_names_of_the_language_and_what_cannot_be_called() -> None:
    with pytest.raises(FunctionError, match=r"function 'Abs': the language has one(.|\n)*'f': a int cannot be called"):
        pk.Engine(parse("PATTERN SEQ(A a, B b) WITHIN 1 min"), functions={"Abs": abs, "f": 3})  # type: ignore[dict-item]


def test_a_snapshot_holds_no_functions() -> None:
    query = parse("PATTERN SEQ(A a, B b) WHERE f(a.x, b.x) > 3 WITHIN 1 min")
    engine = pk.Engine(query, functions={"f": lambda x, y: x + y})
    engine.process({"type": ["A"], "ts": [1], "x": [2]})
    blob = engine.snapshot()
    with pytest.raises(FunctionError, match="function 'f': a query names it, and none are given"):
        pk.Engine.restore(blob)
    again = pk.Engine.restore(blob, functions={"f": lambda x, y: x * y})
    assert bound(again.process({"type": ["B", "B"], "ts": [2, 3], "x": [1, 2]})) == [(0, 2)]


# --- remote sources -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "REMOTE[`limit`, a.k] < b.x",
        "REMOTE[`limit`, a.k] < REMOTE[`limit`, b.k]",
        "b.k IN REMOTE[keys, a.x]",
        "b.k NOT IN REMOTE[keys, a.x]",
        "NOT b.k IN REMOTE[keys, a.x]",
        "REMOTE[row, a.x].cap = b.x",
        "a.k IN REMOTE[keys, a.x]",
        "REMOTE[row, REMOTE[`limit`, a.k] + b.x].cap > 1",
    ],
)
def test_remote_sources(condition: str) -> None:
    random = Random(condition)
    batch = events(
        x=[random.choice([None, 0, 1, 2, 3]) for _ in range(30)], k=[random.choice("pqrs") for _ in range(30)]
    )
    query = f"SEQ(A a, B b) WHERE {condition}"
    wanted = of_reference(query, batch, remotes=REMOTES)
    assert bound(run(query, batch, remotes=REMOTES)) == wanted
    assert wanted


def test_a_source_that_fails_and_one_that_has_no_value() -> None:
    class Broken(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            raise ConnectionError("no route")

    query = "SEQ(A a, B b) WHERE REMOTE[cards, a.x + b.x] > 1"
    with pytest.raises(FunctionError, match=r"REMOTE\[cards, 3\] failed: ConnectionError: no route"):
        run(query, events(x=[1, 2]), remotes={"cards": Broken()})
    with pytest.raises(FunctionError, match=r"REMOTE\[cards, 3\] is a set, and a value must be"):
        run(query, events(x=[1, 2]), remotes={"cards": {3: {1}}})
