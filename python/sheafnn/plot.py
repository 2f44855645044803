"""Drawings for notebooks, with matplotlib, which is imported when something is drawn."""

from __future__ import annotations

from typing import Any, Mapping, Union

import numpy as np

from .uncertainty import RejectionCurve, ReliabilityDiagram

__all__ = ["rejection", "reliability"]


def _axes(ax: Any) -> Any:
    """The axes to draw on; None: new ones."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise ImportError("drawings need matplotlib: pip install matplotlib") from None
    return pyplot.figure(layout="constrained").add_subplot() if ax is None else ax


def reliability(diagram: ReliabilityDiagram, ax: Any = None) -> Any:
    """Draws the accuracy of each bin over its confidence, with the diagonal of a calibrated model; the bars' opacity shows the bins' nodes.

    :param ax: matplotlib's axes to draw on; None: those of a new figure
    :return: the axes
    :raises ImportError: there is no matplotlib
    """
    if not isinstance(diagram, ReliabilityDiagram):
        raise TypeError(f"diagram: {type(diagram).__name__} is not allowed; expected what uncertainty.reliability_diagram() returns")
    ax = _axes(ax)
    used = diagram.count > 0
    lower, upper, count = diagram.lower[used], diagram.upper[used], diagram.count[used]
    bars = ax.bar(lower, diagram.accuracy[used], upper - lower, align="edge", edgecolor="black", linewidth=0.5)
    for bar, nodes in zip(bars, count):
        bar.set_alpha(0.25 + 0.75 * float(nodes) / float(count.max()))
    ax.plot(diagram.confidence[used], diagram.accuracy[used], "o-", color="black", markersize=3, linewidth=1)
    ax.plot([0, 1], [0, 1], "--", color="gray", linewidth=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy", aspect="equal")
    return ax


def rejection(curves: Union[RejectionCurve, Mapping[str, RejectionCurve]], ax: Any = None) -> Any:
    """Draws the accuracy of the nodes that are left over the share of rejected ones.

    :param curves: one, or several with their names
    :param ax: as for :func:`reliability`
    :return: the axes
    :raises ImportError: there is no matplotlib
    """
    named = {"": curves} if isinstance(curves, RejectionCurve) else curves
    if not isinstance(named, Mapping) or not all(isinstance(curve, RejectionCurve) for curve in named.values()):
        raise TypeError(f"curves: {type(curves).__name__} is not allowed; expected what uncertainty.rejection_curve() returns, or several by name")
    ax = _axes(ax)
    for name, curve in named.items():
        count = len(curve.accuracy)
        ax.plot(np.arange(count) / count, curve.accuracy, label=f"{name}, area {curve.area:.3f}".removeprefix(", "))
    ax.set(xlim=(0, 1), xlabel="share of rejected nodes", ylabel="accuracy of the others")
    ax.legend()
    return ax
