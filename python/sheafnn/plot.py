"""Drawings for notebooks, with matplotlib, which is imported when something is drawn."""

from __future__ import annotations

from typing import Any, Mapping, Union

import numpy as np
from scipy.sparse import csr_matrix

from . import _checks
from .classifier import SheafClassifier
from .dataset import Dataset
from .sheaf import CellularSheaf, LearnedSheaf
from .uncertainty import RejectionCurve, ReliabilityDiagram

__all__ = ["rejection", "reliability", "sheaf"]

_MOST_NODES = 2000  #: of a graph that is laid out here


def _axes(ax: Any) -> Any:
    """The axes to draw on; None: new ones."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise ImportError("drawings need matplotlib: pip install matplotlib") from None
    return pyplot.figure(layout="constrained").add_subplot() if ax is None else ax


def reliability(diagram: ReliabilityDiagram, ax: Any = None) -> Any:
    """Draws the accuracy of each bin over its confidence, with the diagonal of a calibrated model. The opacity of a bar shows how
    many nodes the bin has.

    :param ax: matplotlib's axes to draw on; None: axes of a new figure
    :return: the axes
    :raises ImportError: matplotlib is not installed
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
    """Draws the accuracy of the remaining nodes over the share of rejected nodes.

    :param curves: one curve, or a mapping from names to curves
    :param ax: as for :func:`reliability`
    :return: the axes
    :raises ImportError: matplotlib is not installed
    """
    named = {"": curves} if isinstance(curves, RejectionCurve) else curves
    if not isinstance(named, Mapping) or not all(isinstance(curve, RejectionCurve) for curve in named.values()):
        raise TypeError(f"curves: {type(curves).__name__} is not allowed; expected what uncertainty.rejection_curve() returns, or several by name")
    if not named:
        raise ValueError("curves: an empty mapping is not allowed; at least one curve is needed")
    ax = _axes(ax)
    for name, curve in named.items():
        count = len(curve.accuracy)
        ax.plot(np.arange(count) / count, curve.accuracy, label=f"{name}, area {curve.area:.3f}".removeprefix(", "))
    ax.set(xlim=(0, 1), xlabel="share of rejected nodes", ylabel="accuracy of the others")
    ax.legend()
    return ax


def sheaf(model: SheafClassifier, data: Dataset, *, positions: Any = None, layer: int = 0, ax: Any = None) -> Any:
    """Draws a graph with the predictions and the sheaf of a trained network. A node's colour is its predicted class, and its size
    is the entropy of the prediction. An edge's colour says how far the maps at its ends differ, by the norm of F_u - F_v;
    cooperative networks have gray edges.

    :param model: trained classifier, with one class for each node
    :param data: the graph
    :param positions: positions of the nodes, n x 2; None: attraction along edges and repulsion lay out the nodes, of which there
        may be 2000
    :param layer: number of the layer whose sheaf is drawn, as in ``SheafClassifier.learned_sheaf``
    :param ax: as for :func:`reliability`
    :return: the axes
    :raises ImportError: matplotlib is not installed

    >>> import sheafnn
    >>> data = sheafnn.karate_club()
    >>> model = sheafnn.SheafClassifier(stalk_dim=2, epochs=20).fit(data)
    >>> axes = sheafnn.plot.sheaf(model, data)
    """
    if not isinstance(model, SheafClassifier):
        raise TypeError(f"model: {type(model).__name__} is not allowed; expected a SheafClassifier")
    if not isinstance(data, Dataset):
        raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset")
    learned = model.learned_sheaf(data, layer=layer)
    doubt = model.uncertainty(data)
    if positions is None:
        places = _layout(data)
    else:
        places = _checks.real("positions", positions)
        if places.shape != (data.node_count, 2) or not np.isfinite(places).all():
            raise ValueError(f"positions: shape {places.shape} is not allowed; expected {data.node_count} x 2 finite numbers")
    ax = _axes(ax)
    from matplotlib.collections import LineCollection

    lines = LineCollection(list(places[learned.edges]), linewidths=1, colors="lightgray", zorder=1)
    if isinstance(learned, LearnedSheaf):
        lines.set_array(_differences(learned))
        lines.set_cmap("viridis")
        ax.figure.colorbar(lines, ax=ax, label="difference of the maps at both ends")
    ax.add_collection(lines)
    predicted = doubt.probabilities.argmax(axis=1)
    sizes = 20 + 80 * doubt.entropy / np.log(max(2, len(model.classes_)))
    for number, name in enumerate(model.classes_):
        own = predicted == number
        if own.any():
            ax.scatter(*places[own].T, s=sizes[own], label=str(name), edgecolors="black", linewidths=0.5, zorder=2)
    ax.legend(title="predicted class")
    ax.set_axis_off()
    ax.set_aspect("equal")
    return ax


def _differences(learned: LearnedSheaf) -> np.ndarray:
    """Of each edge the norm of the difference between the maps at its ends."""
    count = learned.data.node_count
    arcs, edges = learned.arcs.astype(np.int64), learned.edges.astype(np.int64)
    keys = arcs[:, 0] * count + arcs[:, 1]  # sorted
    first, second = (np.searchsorted(keys, edges[:, side] * count + edges[:, 1 - side]) for side in (0, 1))
    maps = learned.dense_maps()
    return np.sqrt(((maps[first] - maps[second]) ** 2).sum(axis=(1, 2)))


def _layout(data: Dataset) -> np.ndarray:
    """Positions by springs, beginning at eigenvectors of the graph; the same each time."""
    count = data.node_count
    if count > _MOST_NODES:
        raise ValueError(f"positions: None is not allowed for {count} nodes; at most {_MOST_NODES} are laid out, give an n x 2 array")
    graph = Dataset.from_numpy(data.edges, csr_matrix((count, 1)))
    trivial = CellularSheaf(graph, np.empty((0, 0)), family="identity", normalisation="degree")
    pairs = trivial.eigenpairs(min(count, 3)).vectors[:, 0, :]
    start = np.zeros((count, 2))
    start[:, : max(0, pairs.shape[1] - 1)] = pairs[:, 1:]
    noise = np.random.default_rng(0).normal(size=(count, 2))
    places = start / (np.abs(start).max() + 1e-12) + 0.05 * noise
    length = np.sqrt(4 / max(count, 1))
    u, v = data.edges.T
    for heat in np.linspace(0.1, 0.005, 100):
        apart = places[:, None] - places[None]
        squares = np.maximum((apart**2).sum(axis=2), 1e-6)
        force = (apart * (length**2 / squares)[:, :, None]).sum(axis=1) - 0.1 * places
        along = places[u] - places[v]
        pull = along * np.linalg.norm(along, axis=1, keepdims=True) / length
        np.add.at(force, u, -pull)
        np.add.at(force, v, pull)
        size = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-12)
        places = places + force / size * np.minimum(size, heat)
    return places
