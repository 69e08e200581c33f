"""Plots of results: a result finds its plot here, so that the package that defines it need not import plotting."""

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
    """Declare a function as the plot of a class of results."""

    def register(function: Function) -> Function:
        _PLOTS[result_type] = function
        return function

    return register


def plot_result(result: object, *arguments: Any, **options: Any) -> Any:
    """Return the figure of a result, drawn by the function that is registered for its class or the nearest base."""
    while _LOADERS:
        _LOADERS.pop()()
    kind = next(kind for kind in type(result).__mro__ if kind in _PLOTS)
    return _PLOTS[kind](result, *arguments, **options)
