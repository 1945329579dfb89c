"""`entry`, `compiled` and `part`: numba with little to compile, and a disk cache that knows all of the kernel.

What Python calls is an *entry*; what only entries call is a *part* of them. Three things differ from numba's default:

- Numba makes machine code of every function on its own, and again of all it calls inside each of its callers. Here only
  entries become machine code; parts stay intermediate code until they are linked into an entry. The first start takes
  a third of the time.
- Numba calls a cached function stale when the file it stands in has changed. But an entry holds the code of what it
  calls, and the places of `penstock.plan.layout` too, so here a change in any of these files makes it stale; and in
  its own file, which may be elsewhere.
- Numba lets every variable that is an index count from the end if it is negative. No kernel does that, and to ask costs
  a third of the time: loops with such a question do not become vector instructions. So here an index that is a variable
  must not be negative (a constant may be).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.np import arrayobj

_F = TypeVar("_F", bound=Callable[..., Any])
_njit: Any = numba.njit  # its stubs do not know all options


class _Part(JITCodeLibrary):
    """Code that is only ever linked into other code: it is neither optimised nor made machine code on its own."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironments(self._codegen)


class _WithoutEnvironments:
    """A code generator that binds no environment to a function: only code that calls into Python reads it."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


@register_pass(mutates_CFG=False, analysis_only=True)
class _MakePart(FunctionPass):
    _name = "penstock_make_part"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


class _LowerForward(Lower):
    """Makes code in which variables that are indexes are not negative; marks its builder for `_forward_index`."""

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.builder.penstock_forward = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _ForwardLowering(NativeLowering):
    _name = "penstock_forward_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _LowerForward


_integer_index = arrayobj.fix_integer_index


def _forward_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Return an index as code; one that may be negative is asked about in all code but the kernels'."""
    if getattr(builder, "penstock_forward", False) and not isinstance(index, ir.Constant):
        return context.cast(builder, index, kind, types.intp)
    return _integer_index(context, builder, kind, index, size)


arrayobj.fix_integer_index = _forward_index


class _Compiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_ForwardLowering if each is NativeLowering else each, told) for each, told in passes.passes]
        self.add_passes(passes)
        passes.finalize()
        return [passes]

    def add_passes(self, passes: Any) -> None:
        pass


class _PartCompiler(_Compiler):
    def add_passes(self, passes: Any) -> None:
        passes.add_pass_after(_MakePart, NopythonTypeInference)


# Without numba's reference counts (_nrt): they cost 80 ns per call and array, and nothing here makes or drops arrays.
_LEAN: dict[str, Any] = {"no_cfunc_wrapper": True, "_nrt": False, "error_model": "numpy"}
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


def part(function: _F) -> _F:
    """Compile a function that only compiled functions call and that makes no arrays."""
    return _for_types(_njit(**_LEAN, **_INNER)(function))


def inlined(function: _F) -> _F:
    """Like `part`, into its callers: a call that passes all of the memory's arrays costs 100 ns."""
    return _for_types(_njit(**_LEAN, **_INNER, forceinline=True)(function))


def entry(function: _F) -> _F:
    """Compile a function that Python calls and that makes no arrays, when it is first called; keep it on disk."""
    return _cached(_njit(**_LEAN, cache=True, pipeline_class=_Compiler)(function))


def compiled(function: _F) -> _F:
    """Compile any function: Python may call it, and it may make arrays."""
    return _cached(_njit(no_cfunc_wrapper=True, error_model="numpy", cache=True)(function))


def _for_types(dispatcher: Any) -> Any:
    """Compile a part once for arguments of the same types; numba does it for each number that stands in a call."""
    if hasattr(dispatcher, "get_call_template"):  # not if NUMBA_DISABLE_JIT is set
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, named: template(
            tuple(map(types.unliteral, args)), {name: types.unliteral(each) for name, each in named.items()}
        )
    return dispatcher


def _cached(dispatcher: Any) -> Any:
    if hasattr(dispatcher, "_cache"):  # not if NUMBA_DISABLE_JIT is set
        source = Path(inspect.getfile(dispatcher.py_func)).read_bytes()
        dispatcher._cache._cache_file._source_stamp = stamp() + sha256(source).hexdigest()
    return dispatcher


@cache
def stamp() -> str:
    """Return a digest of the sources that compiled code depends on."""
    constants = [files("penstock.plan").joinpath(name) for name in ("layout.py", "joins.py")]
    sources = [*files("penstock.kernel").iterdir(), *constants]
    texts = sorted((source.name, source.read_bytes()) for source in sources if source.name.endswith(".py"))
    return sha256(repr(texts).encode()).hexdigest()
