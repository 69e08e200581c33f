"""How kernels are compiled: free of the interpreter's lock, and once per machine where numba can keep them."""

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

__all__ = ["Word", "Words", "device", "instruction", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])
#: A 64-bit number inside compiled code, where numba's types hold and Python's have no say.
Word: TypeAlias = Any
Words: TypeAlias = npt.NDArray[Any]

_log = logging.getLogger("sfumato")
#: What to say when one of these is compiled.
_announcements: dict[Callable[..., Any], str] = {}


def device(function: Function) -> Function:
    """A function that kernels call and the compiler dissolves in them, however long it is."""
    dissolved: Function = register_jitable(forceinline=True)(function)
    return dissolved


def instruction(definition: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, defined by its types and the instructions it stands for."""
    defined: Callable[..., Any] = intrinsic(definition)
    return defined


def kernel(name: str) -> Callable[[Function], Callable[..., int]]:
    """Compile a function when it is first called, and say so if no earlier run left it in numba's cache."""

    def decorate(function: Function) -> Callable[..., int]:
        # Numba takes a cached kernel for fresh if its name and its own file are unchanged, whatever became of the
        # files it calls into: so the name carries a digest of them all.
        function.__qualname__ = f"{name}.{_digest()}"
        try:
            compiled: Callable[..., int] = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
            often = "once per machine"
        except RuntimeError:
            # Neither NUMBA_CACHE_DIR nor the package nor the user's cache folder is writable. A shared temporary
            # folder will not do: whoever writes there first would choose the code that runs here.
            compiled = numba.njit(nogil=True, error_model="numpy")(function)
            often = "once per process, as no cache folder is writable"
        _announcements[function] = f"compiling the {name} kernel ({often})"
        return compiled

    return decorate


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256()
    shared = Path(__file__).parent
    for source in sorted([*shared.glob("*.py"), *shared.parent.glob("*/*kernel.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


class _Announcer(event.Listener):
    """Hears of compilations that really happen: a kernel found in the cache causes none."""

    def on_start(self, event: Any) -> None:
        announcement = _announcements.get(event.data["dispatcher"].py_func)
        if announcement is not None:
            _log.warning(announcement)  # a pause of seconds should explain itself without set-up

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
