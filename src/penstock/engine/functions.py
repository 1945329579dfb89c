"""User functions and remote sources as the kernels call them: by address, a block of rows at a time.

A function is compiled if numba can compile it for numbers; else, and for rows that compiled code cannot do (texts,
errors), Python is called back. The types that Python sees are those of the columns: whole numbers as int, truth values
as bool, texts as str. A missing argument makes the result missing, without a call.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from ctypes import c_double
from difflib import get_close_matches
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from penstock.engine.answers import PENDING, Answers, MustBlockError
from penstock.engine.meaning import Known
from penstock.engine.texts import Texts
from penstock.engine.value_kinds import Kinds, kind_of
from penstock.errors import PenstockError
from penstock.kernel.calling import (
    BLOCK_FUNCTION,
    IS_COMPILING,
    CannotCompileError,
    Compiled,
    address_of,
    compile_block,
    results_at,
    rows_at,
)
from penstock.pattern import ast
from penstock.pattern.functions import RESERVED_FUNCTIONS
from penstock.plan.callees import Address, Asks, Callee, names_called
from penstock.plan.layout import TEXT_HIGH, TEXT_LOW
from penstock.plan.tables import Floats, Ints
from penstock.plan.terms import Constant

NEW_TEXTS = 4096  # new texts that functions may return while a batch is processed
_MANY = 1000  # rows that Python may do for a compiled function before it is called slow
_TRIED = (0, 1, 2, 3, -1, 10, 0.5, -2.5, 1000)
_SEEN = {bool: "bool", int: "int", float: "float", str: "string"}


class FunctionError(PenstockError):
    """A user function or a remote source that is not there, that failed, or that returned what is no value."""


class SlowFunctionWarning(UserWarning):
    """A user function that numba cannot compile: Python is called for every row."""


def check_registered(queries: Iterable[ast.Query], functions: Mapping[str, Any], remotes: Mapping[str, Any]) -> None:
    """Refuse functions and sources that queries name and that are not there; all of them at once."""
    problems = [
        f"function '{name}': the language has one of this name\n  fix: register it by another name"
        for name in functions if name.lower() in RESERVED_FUNCTIONS
    ] + [
        f"function '{name}': a {type(function).__name__} cannot be called\n  fix: give a function"
        for name, function in functions.items() if not callable(function)
    ]  # fmt: skip
    named = [names_called(query) for query in queries]
    for what, place, there in (("function", 0, functions), ("remote source", 1, remotes)):
        for name in sorted({name for names in named for name in names[place]} - set(there)):
            close = get_close_matches(name, there, n=1)
            give = f"Engine(…, {'functions' if place == 0 else 'remotes'}={{'{name}': …}})"
            fix = f"did you mean '{close[0]}'?" if close else f"give it: {give}"
            told = f"there are {', '.join(map(repr, there))}" if there else "none are given"
            problems.append(f"{what} '{name}': a query names it, and {told}\n  fix: {fix}")
    if problems:
        raise FunctionError("\n".join(problems))


class Functions:
    """The user functions and remote sources of an engine.

    Attributes:
        kinds: what attributes were before they became numbers.
        texts: the texts of the engine.
        has_texts: whether a call has returned a text.
        answers: the remote sources.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        remotes: Mapping[str, Any],
        texts: Texts | None = None,
        *,
        postpones: bool = False,
    ) -> None:
        self.functions, self.answers = dict(functions), Answers(remotes, postpones=postpones)
        self.texts = Texts() if texts is None else texts
        self.kinds: Kinds = lambda name: None
        self.has_texts = False
        self.when_text: list[Callable[[], None]] = []  # called when a call first returns a text
        self.slow: list[str] = []  # warnings that are due
        self.warned: set[str] = set()  # functions that were warned of
        self._error: BaseException | None = None
        self._callers: dict[Callee, _Caller] = {}
        self._compiled: dict[tuple[str, int], Compiled | CannotCompileError] = {}
        self._ranks: Ints = np.zeros(0, np.int64)

    # --- what the kernels read --------------------------------------------------------------------------------

    def numbers(self, constants: Iterable[Constant]) -> Floats:
        """Return constants as conditions see them: texts as their codes, callees as addresses."""
        return np.array([self._number(each) for each in constants], np.float64)

    def _number(self, constant: Constant) -> float:
        if isinstance(constant, str):
            return self.texts.code(constant)
        return float(self._address(constant)) if isinstance(constant, Address) else float(constant)

    def _address(self, address: Address) -> int:
        callee = address.callee
        if address.is_compiled:
            compiled = self.compiled(callee)
            return compiled.address if isinstance(compiled, Compiled) else 0
        if callee not in self._callers:
            self._callers[callee] = _Caller(self, callee)
        return self._callers[callee].address

    def compiled(self, callee: Callee) -> Compiled | CannotCompileError | None:
        """Return a function as machine code, or why there is none; None if nothing is to be compiled."""
        if callee.asks is not Asks.FUNCTION or not IS_COMPILING:
            return None
        key = callee.name, len(callee.arguments)
        if key not in self._compiled:
            function, arity = self.functions[callee.name], len(callee.arguments)
            self._compiled[key] = _compiled_once(Known(function), arity)
        return self._compiled[key]

    def ranks(self) -> Ints:
        """Return the alphabetical rank of each text, with room for texts that calls return while a kernel runs."""
        known = self.texts.ranks()
        if len(known) + NEW_TEXTS > len(self._ranks):
            self._ranks = np.zeros(2 * len(known) + 2 * NEW_TEXTS, np.int64)
        self._ranks[: len(known)] = known
        return self._ranks

    def as_python(self, values: Floats, kind: str | None) -> list[Any]:
        """Return values as Python has them; `kind` is what they were before they became numbers."""
        listed: list[float] = values.tolist()
        has_text = bool(((values >= TEXT_LOW) & (values < TEXT_HIGH)).any())
        if kind == "float" and not has_text:
            return listed
        if kind == "bool" and not has_text:
            return [value == 1.0 for value in listed]
        texts = {value: self.texts[int(value - TEXT_LOW)] for value in set(listed) if _is_text(value)}
        if kind == "float":
            return [texts.get(value, value) for value in listed]
        return [texts[v] if v in texts else int(v) if v.is_integer() else v for v in listed]

    def kind(self, callee: Callee) -> str | None:
        """Return the type of results so far: bool, int, float or string; None if only the values can tell."""
        compiled, caller = self.compiled(callee), self._callers.get(callee)
        seen = set() if caller is None else {_SEEN.get(each, "float") for each in caller.seen}
        if isinstance(compiled, Compiled):
            seen.add(compiled.kind)
        return seen.pop() if len(seen) == 1 else None

    # --- what calls say ---------------------------------------------------------------------------------------

    def code(self, text: str) -> float:
        """Return a text that a call has returned as conditions see it."""
        before = len(self.texts)
        code = self.texts.code(text)
        if len(self.texts) > before and len(self._ranks):
            if len(self.texts) > len(self._ranks):
                raise FunctionError(
                    f"functions returned more than {NEW_TEXTS:,} new texts in one batch\n  fix: give smaller batches"
                )
            self._ranks[: len(self.texts)] = self.texts.ranks()
        if not self.has_texts:
            self.has_texts = True
            for listener in self.when_text:
                listener()
        return code

    @property
    def has_failed(self) -> bool:
        """Whether a call has failed and nobody was told yet."""
        return self._error is not None

    def fail(self, error: BaseException) -> None:
        """Remember an error: none passes through machine code. The first one counts."""
        self._error = self._error or error

    def check(self) -> None:
        """Raise what went wrong in a call since the last check."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def warn(self, stacklevel: int) -> None:
        """Warn of slow functions that have not been warned of."""
        due, self.slow = self.slow, []
        for told in due:
            warnings.warn(told, SlowFunctionWarning, stacklevel=stacklevel + 1)


class _Caller:
    """A block function that calls Python: a user function, or a lookup in a remote source."""

    def __init__(self, functions: Functions, callee: Callee) -> None:
        self.functions, self.callee = functions, callee
        self.call: Callable[..., Any] = _python(functions, callee)
        self._code = BLOCK_FUNCTION(self.block)
        self.address = address_of(self._code)
        self.rows = 0  # that Python has done
        self._kinds: list[str | None] = [None] * len(callee.arguments)
        self._kinds_of: Kinds | None = None
        self.seen: set[type] = set()  # types of results

    def block(self, arguments: int | None, stride: int, count: int, results: int) -> int:
        """Do all rows; if one fails, all are missing, and what comes of that is not looked at."""
        try:
            if not self.functions.has_failed:
                start = perf_counter()
                done = (self.do_row if count == 1 else self.do_rows)(arguments or 0, stride, count, results)
                self.tell(done, perf_counter() - start)
        except BaseException as error:  # also an interrupt: nothing may pass through machine code
            self.functions.fail(error)
        if self.functions.has_failed:
            results_at(results, count)[:] = np.nan
        return count

    def do_row(self, arguments: int, stride: int, count: int, results: int) -> int:
        """Do one row, without arrays: they would cost more than the call. Return how many calls there were."""
        given = [c_double.from_address(arguments + 8 * stride * k).value for k in range(len(self.kinds))]
        result = math.nan
        if not any(map(math.isnan, given)):
            result = self.called([tuple(map(self.one_as_python, given, self.kinds))])[0]
        c_double.from_address(results).value = result
        return int(result == result)

    def do_rows(self, arguments: int, stride: int, count: int, results: int) -> int:
        """Do rows; return how many calls there were."""
        given = rows_at(arguments, stride, count, len(self.kinds))
        is_there = ~np.isnan(given).any(axis=0) if given else np.ones(count, np.bool_)
        columns = [
            self.functions.as_python(values[is_there], kind) for values, kind in zip(given, self.kinds, strict=True)
        ]
        rows = list(zip(*columns, strict=True)) if columns else [()] * count
        out, numbers = results_at(results, count), self.called(rows)
        out[:] = np.nan
        out[is_there] = numbers
        return len(rows)

    @property
    def kinds(self) -> list[str | None]:
        """What its arguments are before they become numbers."""
        if self._kinds_of is not self.functions.kinds:
            self._kinds_of = self.functions.kinds
            self._kinds = [kind_of(node, self._kinds_of) for node in self.callee.arguments]
        return self._kinds

    def called(self, rows: list[tuple[Any, ...]]) -> list[float]:
        row: tuple[Any, ...] = ()
        try:
            if self.callee.asks is Asks.FUNCTION:
                numbers = []
                for row in rows:
                    numbers.append(self.as_number(self.call(*row)))
                return numbers
            known: dict[tuple[Any, ...], float] = {}  # a source is asked once for each key of a block
            for row in rows:
                if row not in known:
                    known[row] = self.as_number(self.call(*row))
            return [known[row] for row in rows]
        except MustBlockError:
            raise
        except FunctionError as error:
            raise FunctionError(f"{self.spelled(row)} {error}") from error
        except Exception as error:
            raise FunctionError(f"{self.spelled(row)} failed: {type(error).__name__}: {error}") from error

    def spelled(self, row: tuple[Any, ...]) -> str:
        name, given = self.callee.name, ", ".join(map(repr, row))
        return f"{name}({given})" if self.callee.asks is Asks.FUNCTION else f"REMOTE[{name}, {given}]"

    def tell(self, count: int, seconds: float) -> None:
        """Note a warning the first time that rows are slow, with what they cost."""
        self.rows += count
        if not count or self.callee.name in self.functions.warned:
            return
        compiled = self.functions.compiled(self.callee)
        if compiled is None or (isinstance(compiled, Compiled) and self.rows < _MANY):
            return
        self.functions.warned.add(self.callee.name)
        why = "its arguments are texts, or it raises" if isinstance(compiled, Compiled) else str(compiled)
        name, cost = self.callee.name, 1e6 * seconds / count
        self.functions.slow.append(
            f"function '{name}' is called by Python, {cost:.1f} µs per call, because numba cannot compile it: {why}\n"
            "  fix: write it with numbers only, or make it cheaper by conditions that come first and need no function; "
            "to silence: warnings.simplefilter('ignore', penstock.SlowFunctionWarning)"
        )

    # --- values -----------------------------------------------------------------------------------------------

    def one_as_python(self, value: float, kind: str | None) -> Any:
        """Return a value as Python has it."""
        if _is_text(value):
            return self.functions.texts[int(value - TEXT_LOW)]
        if kind == "bool":
            return value == 1.0
        return int(value) if kind != "float" and value.is_integer() else value

    def as_number(self, value: Any) -> float:
        """Return a value as conditions see it."""
        if value is None:
            return math.nan
        self.seen.add(type(value))
        if isinstance(value, str):
            return self.functions.code(value)
        if not isinstance(value, float | int | np.number | np.bool_):
            raise FunctionError(f"is a {type(value).__name__}, and a value must be a number, a truth value or a text")
        number = float(value)
        if _is_text(number):
            raise FunctionError(f"is {value}, and numbers from 2**52 to 2**52 + 2**40 stand for texts")
        return number


def _is_text(value: float) -> bool:
    return TEXT_LOW <= value < TEXT_HIGH


def _python(functions: Functions, callee: Callee) -> Callable[..., Any]:
    """Return what a callee is in Python."""
    if callee.asks is Asks.FUNCTION:
        function = functions.functions[callee.name]
        return getattr(function, "py_func", function)  # of what numba has compiled already
    look_up, column = functions.answers.of(callee.name), callee.column

    def is_pending(key: Any) -> bool:
        return look_up(key) is PENDING

    def value(key: Any) -> Any:
        found = look_up(key)
        if found is None or found is PENDING:  # what is not there yet is missing, and nothing comes of that
            return None
        return found if column is None else found.get(column)

    def is_in(item: Any, key: Any) -> bool:
        members = value(key)
        if members is None:
            return False
        found = item in members if isinstance(members, set | frozenset) else any(item == each for each in members)
        return found is (callee.asks is Asks.IS_IN)

    return {Asks.VALUE: value, Asks.IS_PENDING: is_pending}.get(callee.asks, is_in)


# --- compiling ------------------------------------------------------------------------------------------------


def _compiled_or_not(function: Callable[..., Any], arity: int) -> Compiled | CannotCompileError:
    try:
        compiled = compile_block(function, arity)
        _try_out(getattr(function, "py_func", function), compiled, arity)
    except CannotCompileError as error:
        return error
    return compiled


@lru_cache(maxsize=256)
def _compiled_once(known: Known, arity: int) -> Compiled | CannotCompileError:
    """Compile a function that other engines may be given, too; on Spark, a worker gets a new copy with each batch."""
    return _compiled_or_not(known.function, arity)


def _try_out(function: Callable[..., Any], compiled: Compiled, arity: int) -> None:
    """Compare machine code with Python on a few numbers: some code means something else when it is compiled."""
    call, count = BLOCK_FUNCTION(compiled.address), len(_TRIED) if arity else 1
    for i in range(count):
        row = [_TRIED[(i * (k + 1) + k) % len(_TRIED)] for k in range(arity)]
        stack = np.array([*row, 0.0], np.float64)
        if not call(stack.ctypes.data, 1, 1, stack.ctypes.data):
            continue
        for given in (row, list(map(float, row))):
            try:
                wanted = function(*given)
            except Exception:
                continue  # where Python raises, compiled code may have a value: inf, or missing
            told = math.nan if wanted is None else wanted
            if not np.isclose(float(stack[0]), told, rtol=1e-9, atol=0.0, equal_nan=True):
                spelled = ", ".join(map(str, given))
                raise CannotCompileError(f"compiled, of ({spelled}) it is {stack[0]:g}, and in Python {wanted!r}")
