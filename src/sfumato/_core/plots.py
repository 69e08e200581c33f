"""Registry of plots: a package that defines a result does not have to import the plotting package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["load_plots_with", "plot_result", "register_plot"]

Function = TypeVar("Function", bound=Callable[..., Any])
_PLOTS: dict[type, Callable[..., Any]] = {}
_LOADERS: list[Callable[[], object]] = []


def load_plots_with(loader: Callable[[], object]) -> None:
    """Set the function that imports the plots; it is called when the first figure is drawn."""
    _LOADERS.append(loader)


def register_plot(result_type: type) -> Callable[[Function], Function]:
    """Register the decorated function as the plot of a result class."""

    def register(function: Function) -> Function:
        _PLOTS[result_type] = function
        return function

    return register


def plot_result(result: object, *arguments: Any, **options: Any) -> Any:
    """Draw the figure of a result with the function registered for its class or its nearest base class."""
    while _LOADERS:
        _LOADERS.pop()()
    kind = next(kind for kind in type(result).__mro__ if kind in _PLOTS)
    return _PLOTS[kind](result, *arguments, **options)
