"""Compilation of kernels: without Python's global interpreter lock, and once per machine if numba can cache them."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numba
import numpy.typing as npt
from numba.core import event
from numba.extending import intrinsic, register_jitable

__all__ = ["Word", "Words", "allocation", "device", "instruction", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])
#: A 64-bit number inside compiled code, where numba's types apply instead of Python's.
Word: TypeAlias = Any
Words: TypeAlias = npt.NDArray[Any]

_log = logging.getLogger("sfumato")
#: Log message for the compilation of each kernel.
_announcements: dict[Callable[..., Any], str] = {}


def device(function: Function) -> Function:
    """Return a function that kernels call and that the compiler always inlines; it must not create or return arrays."""
    # Numba would count references to the arguments that are arrays, which often takes longer than the function itself.
    inlined: Function = register_jitable(forceinline=True, _nrt=False)(function)
    return inlined


def allocation(function: Function) -> Function:
    """Return a function that kernels call to create arrays."""
    inlined: Function = register_jitable(forceinline=True)(function)
    return inlined


def instruction(definition: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that kernels call, defined by its types and the instructions it emits."""
    defined: Callable[..., Any] = intrinsic(definition)
    return defined


def kernel(name: str, *, allocates: bool = False) -> Callable[[Function], Callable[..., int]]:
    """Return a decorator that compiles a function on its first call, and logs it unless numba's cache has it.

    Only a kernel that allocates may create arrays; numba counts references in it.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": allocates}

    def decorate(function: Function) -> Callable[..., int]:
        # Numba reuses a cached kernel if its name and its own file are unchanged, even if files that it calls into have
        # changed. So the name includes a digest of all these files.
        function.__qualname__ = f"{name}.{_digest()}"
        try:
            compiled: Callable[..., int] = numba.njit(cache=True, **options)(function)
            often = "once per machine"
        except RuntimeError:
            # Neither NUMBA_CACHE_DIR nor the package nor the user's cache folder is writable. A shared temporary folder
            # is unsafe, because another user could write the code that runs here.
            compiled = numba.njit(**options)(function)
            often = "once per process, as no cache folder is writable"
        _announcements[function] = f"compiling the {name} kernel ({often})"
        return compiled

    return decorate


@functools.cache
def _digest() -> str:
    """Return a digest of the source files of all kernels."""
    digest = hashlib.sha256()
    shared = Path(__file__).parent
    for source in sorted([*shared.glob("*.py"), *shared.parent.glob("*/*kernel.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


class _Announcer(event.Listener):
    """Log compilations that take place; a kernel loaded from the cache causes none."""

    def on_start(self, event: Any) -> None:
        announcement = _announcements.get(event.data["dispatcher"].py_func)
        if announcement is not None:
            _log.warning(announcement)  # a warning, so that users see the reason for the pause without configuration

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
