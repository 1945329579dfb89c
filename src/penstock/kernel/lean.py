"""Hooks that nobody uses cost nothing: without them the plain kernel is compiled without their code.

Numba compiles an entry anew for tables of another type. If `PlainTables.hooks` is None, `hook` is the constant 0, and
all that depends on it is left out; else it is read from the options, which hooks may change from batch to batch. To ask
for hooks that are not used took 5 to 26 % of the time. What hooks alone call stands behind a test of an argument for
None besides (`plain.py`): numba leaves that out before it looks at types, so it is not even compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from penstock.kernel.calling import IS_COMPILING
from penstock.plan.tables import Ints

_array: Any = arrayobj.make_array


def _hook(_: Any, hooks: Any, place: Any) -> Any:
    """Return what the hooks say at a place; 0 if there are none."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(signature.args[0], types.NoneType):
            return ir.Constant(ir.IntType(64), 0)
        data = _array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return types.int64(hooks, types.intp), code


def _hook_in_python(hooks: Ints | None, place: int) -> int:
    return 0 if hooks is None else int(hooks[place])


_compiled: Any = intrinsic(_hook)
hook: Callable[[Ints | None, int], int] = _compiled if IS_COMPILING else _hook_in_python
