"""Sheaves: what a network has learned, and Laplacians of sheaves that are given by their maps."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import numpy as np
import scipy.sparse

from . import _checks, _core
from .dataset import Dataset


def sheaf_laplacian(
    data: Dataset,
    maps: Any,
    edge_weights: Any = None,
    *,
    family: str = "general-linear",
    normalisation: str = "none",
) -> scipy.sparse.csr_matrix:
    """The Laplacian of a sheaf on a graph, nd x nd, as a scipy sparse matrix.

    :param maps: 2m x d x d, for each arc of ``data.arcs`` the map from its source's stalk to its edge's. Diagonal maps may
        be 2m x d; for the identity pass an empty 2m x 0 array, d is 1
    :param edge_weights: m positive weights; rotations only
    :param family: ``"diagonal"``, ``"special-orthogonal"``, ``"general-linear"``, ``"conformal"`` or ``"identity"``
    :param normalisation: ``"none"``, ``"block"``, ``"augmented"`` or ``"degree"`` (docs/math.md)
    :raises ValueError: names the argument, its value and the limit; e.g. a map that is no rotation

    The trivial sheaf has the graph's own Laplacian:

    >>> import numpy, sheafnn
    >>> data = sheafnn.Dataset.from_numpy([[0, 1], [1, 2]], numpy.ones((3, 1)))
    >>> sheaf_laplacian(data, numpy.ones((4, 1, 1))).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset")
    table = _checks.real("maps", maps)
    if table.ndim not in (2, 3):
        raise ValueError(f"maps: {table.ndim} axes: expected arcs x d x d, or arcs x d for diagonal maps")
    arcs, dimension = 2 * data.edge_count, max(1, table.shape[-1])
    allowed = [(arcs, dimension, dimension)] + [(arcs, dimension)] * (family == "diagonal" or dimension == 1)
    if family != "identity" and table.shape not in allowed:
        raise ValueError(
            f"maps: shape {table.shape} is not allowed; must be {arcs} x d x d, a map for each arc, or {arcs} x d for diagonal maps"
        )
    if family == "diagonal" and table.ndim == 3:
        if np.any(table != table * np.eye(dimension)):
            raise ValueError("maps: not diagonal")
        table = np.ascontiguousarray(np.diagonal(table, axis1=1, axis2=2))
    weights = _checks.real("edge_weights", [] if edge_weights is None else edge_weights)
    values, columns, offsets = _core.laplacian(data._core, family, dimension, table, weights, normalisation)
    return scipy.sparse.csr_matrix((values, columns, offsets), shape=(data.node_count * dimension,) * 2)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LearnedSheaf:
    """A sheaf with a map for every incident pair: of the source of an arc and its edge."""

    family: str  #: diagonal, special-orthogonal, general-linear or identity
    stalk_dim: int  #: d
    normalisation: str  #: of the network's Laplacian
    arcs: np.ndarray  #: 2m x 2, source and target, sorted
    edges: np.ndarray  #: m x 2, sorted
    maps: np.ndarray  #: 2m x d x d; diagonal maps 2m x d; of Bayesian networks the posterior's mean
    edge_weights: np.ndarray  #: m, ones where the family has none
    spread: dict[str, np.ndarray]  #: of the posterior, by name: kappa, or sigma; 2m rows
    layer_embeddings: np.ndarray  #: (L + 1) x n x h, the nodes' features after every layer
    probabilities: np.ndarray  #: n x C
    data: Dataset = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return f"<LearnedSheaf: {self.family} maps of {len(self.arcs)} arcs, stalk dimension {self.stalk_dim}>"

    def dense_maps(self) -> np.ndarray:
        """2m x d x d for every family, without edge weights."""
        d = self.stalk_dim
        if self.family == "identity":
            return np.broadcast_to(np.eye(d), (len(self.arcs), d, d))
        return self.maps if self.maps.ndim == 3 else self.maps[:, :, None] * np.eye(d)

    def laplacian(self, normalisation: str | None = None) -> scipy.sparse.csr_matrix:
        """The sheaf's Laplacian, nd x nd.

        :param normalisation: None: that of the network
        """
        maps = self.dense_maps() if self.family != "diagonal" else self.maps
        weights = self.edge_weights if self.family == "special-orthogonal" else None
        family = self.family if self.family != "identity" else "diagonal"
        return sheaf_laplacian(
            self.data, maps, weights, family=family, normalisation=normalisation or self.normalisation
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NodeMaps:
    """Conformal maps c R of every node, as the source and as the target of arcs (cooperative networks)."""

    stalk_dim: int  #: d
    arcs: np.ndarray  #: source and target
    edges: np.ndarray  #: m x 2
    out_rotations: np.ndarray  #: n x d x d
    out_scales: np.ndarray  #: n
    in_rotations: np.ndarray  #: n x d x d
    in_scales: np.ndarray  #: n
    spread: dict[str, np.ndarray]  #: of the posterior: out_kappa, in_kappa, … ; n each
    layer_embeddings: np.ndarray  #: (L + 1) x n x h
    probabilities: np.ndarray  #: n x C
    data: Dataset = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return f"<NodeMaps: conformal maps of {len(self.out_scales)} nodes, stalk dimension {self.stalk_dim}>"


_COMMON = {
    "format_version", "family", "stalk_dimension", "node_count", "edges", "arcs", "model", "normalisation",
    "layer_embeddings", "embeddings", "probabilities", "entropy", "mutual_information", "labels", "class_names",
    "sheaf_use",
}


def read_learned(content: bytes, data: Dataset) -> LearnedSheaf | NodeMaps:
    """What ``io::learned_arrays`` collects (docs/learned_sheaf.md)."""
    arrays = dict(np.load(io.BytesIO(content)))
    shared = {name: arrays[name] for name in ("arcs", "edges", "layer_embeddings", "probabilities")}
    d = int(arrays["stalk_dimension"])
    maps = ("out_rotations", "out_scales", "in_rotations", "in_scales")
    used = _COMMON | {"maps", "edge_weights"} | set(maps)
    spread = {name: array for name, array in arrays.items() if name not in used}
    if "out_rotations" in arrays:
        return NodeMaps(stalk_dim=d, spread=spread, data=data, **shared, **{name: arrays[name] for name in maps})
    return LearnedSheaf(
        family=str(arrays["family"]),
        stalk_dim=d,
        normalisation=str(arrays["normalisation"]),
        maps=arrays["maps"],
        edge_weights=arrays["edge_weights"],
        spread=spread,
        data=data,
        **shared,
    )
