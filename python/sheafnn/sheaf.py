"""Sheaves that a network has learned, and Laplacians of sheaves that you give by their maps."""

from __future__ import annotations

import dataclasses
import functools
import io
from typing import Any

import numpy as np
import scipy.sparse

from . import _checks, _core
from ._edges import edge_array
from ._masks import node_numbers
from .dataset import Dataset
from .rotations import checked_rotations, rounded_rotations


def sheaf_laplacian(
    data: Dataset,
    maps: Any,
    edge_weights: Any = None,
    *,
    family: str = "general-linear",
    normalisation: str = "none",
) -> scipy.sparse.csr_matrix:
    """The Laplacian of a sheaf on a graph, nd x nd, as a scipy sparse matrix.

    :param maps: 2m x d x d: for each arc of ``data.arcs``, the map from its source's stalk to the stalk of its edge. Diagonal
        maps may be 2m x d. For the identity pass an empty 2m x 0 array; d is 1 then
    :param edge_weights: m positive weights, for rotations only
    :param family: ``"diagonal"``, ``"special-orthogonal"``, ``"orthogonal"``, ``"general-linear"``, ``"conformal"`` or ``"identity"``
    :param normalisation: ``"none"``, ``"block"``, ``"augmented"`` or ``"degree"`` (docs/math.md)
    :raises ValueError: an argument is not allowed, e.g. a map that is not a rotation; the message
        names the argument, its value and the limit

    The trivial sheaf has the graph's own Laplacian:

    >>> import numpy, sheafnn
    >>> data = sheafnn.Dataset.from_numpy([[0, 1], [1, 2]], numpy.ones((3, 1)))
    >>> sheaf_laplacian(data, numpy.ones((4, 1, 1))).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    return CellularSheaf(data, maps, edge_weights, family=family, normalisation=normalisation).laplacian()


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Smallest eigenvalues with orthonormal eigenvectors."""

    values: np.ndarray  #: k, ascending
    vectors: np.ndarray  #: n x d x k: ``vectors[u]`` has the entries of node u in each eigenvector


@dataclasses.dataclass(frozen=True, eq=False)
class ApproximateSections:
    """The cochains that disagree least over the edges."""

    disagreement: np.ndarray  #: k, ascending: for each section the sum over the edges of the squared differences
    sections: np.ndarray  #: n x d x k


@dataclasses.dataclass(frozen=True, eq=False)
class NearestSection:
    """A rotation for each node, which together are nearly a section. They are unique up to one common rotation from the right."""

    rotations: np.ndarray  #: n x d x d
    disagreement: float  #: sum over the edges of w² times the squared Frobenius norm of R_u X_u - R_v X_v
    bound: float  #: lower bound: no choice of rotations disagrees less
    eigenvalues: np.ndarray  #: the d smallest eigenvalues of the Laplacian


class CellularSheaf:
    """A sheaf on a graph that is given by its maps, without learning.

    :param data: the graph
    :param maps: as in :func:`sheaf_laplacian`; the same holds for edge_weights, family and normalisation. The arrays are copied
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

    The sections of the trivial sheaf are constant on connected components:

    >>> import numpy, sheafnn
    >>> data = sheafnn.karate_club()
    >>> sheaf = CellularSheaf(data, numpy.ones((156, 1, 1)))
    >>> sheaf.harmonic_space().shape
    (34, 1, 1)
    >>> extension = sheaf.harmonic_extension([0, 33], [[0.0], [1.0]])
    >>> bool((0 <= extension).all() and (extension <= 1).all())
    True
    """

    def __init__(
        self, data: Dataset, maps: Any, edge_weights: Any = None, *, family: str = "general-linear", normalisation: str = "none"
    ):
        if not isinstance(data, Dataset):
            raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset")
        table = _checks.real("maps", rounded_rotations("maps", maps) if family == "special-orthogonal" else maps)
        if table.ndim not in (2, 3):
            raise ValueError(f"maps: {table.ndim} axes: expected arcs x d x d, or arcs x d for diagonal maps")
        arcs, dimension = 2 * data.edge_count, max(1, table.shape[-1])
        allowed = [(arcs, dimension, dimension)] + [(arcs, dimension)] * (family == "diagonal" or dimension == 1)
        if family != "identity" and table.shape not in allowed:
            raise ValueError(
                f"maps: shape {table.shape} is not allowed; must be {arcs} x d x d, a map for each arc, or {arcs} x d with "
                'family="diagonal"'
            )
        if family == "diagonal" and table.ndim == 3:
            if np.any(table != table * np.eye(dimension)):
                raise ValueError("maps: not diagonal")
            table = np.ascontiguousarray(np.diagonal(table, axis1=1, axis2=2))
        weights = _checks.real("edge_weights", [] if edge_weights is None else edge_weights)
        table, weights = table.copy(), weights.copy()
        for array in (table, weights):
            array.flags.writeable = False
        self._parts = (data._core, family, dimension, table, weights, normalisation)
        _core.check_sheaf(*self._parts)
        self.data = data
        self.stalk_dim = dimension
        self.family = family

    @property
    def maps(self) -> np.ndarray:
        """2m x d x d, or 2m x d for diagonal maps, in the order of ``data.arcs``; a read-only copy of what was given."""
        return self._parts[3]

    @property
    def edge_weights(self) -> np.ndarray:
        """m weights of the edges; empty: all are 1."""
        return self._parts[4]

    def __repr__(self) -> str:
        return f"<CellularSheaf: {self.family} maps of {2 * self.data.edge_count} arcs, stalk dimension {self.stalk_dim}>"

    def __reduce__(self) -> tuple[Any, ...]:
        _, family, _, maps, weights, normalisation = self._parts
        make = functools.partial(CellularSheaf, family=family, normalisation=normalisation)
        return make, (self.data, maps, weights if weights.size else None)

    def laplacian(self) -> scipy.sparse.csr_matrix:
        """The Laplacian, nd x nd."""
        values, columns, offsets = _core.laplacian(*self._parts)
        return scipy.sparse.csr_matrix((values, columns, offsets), shape=(self.data.node_count * self.stalk_dim,) * 2)

    def eigenpairs(self, count: int, *, tolerance: float = 0, seed: Any = 0) -> Eigenpairs:
        """The smallest eigenvalues of the Laplacian with eigenvectors; large graphs need an iteration.

        :param count: number of eigenvalues, 1 to nd
        :param tolerance: largest residual, as a share of the largest possible eigenvalue; 0: near rounding
        :param seed: seed of the iteration's first vectors
        """
        return Eigenpairs(*_core.eigenpairs(*self._parts, self._count(count), *_iteration(tolerance, seed)))

    def approximate_sections(self, count: int, *, tolerance: float = 0, seed: Any = 0) -> ApproximateSections:
        """The cochains of least disagreement, with the arguments of :meth:`eigenpairs`."""
        return ApproximateSections(*_core.approximate_sections(*self._parts, self._count(count), *_iteration(tolerance, seed)))

    def harmonic_space(self, *, tolerance: float = 0) -> np.ndarray:
        """An orthonormal basis of the Laplacian's kernel, n x d x k. Without normalisation the kernel consists of the global
        sections.

        :param tolerance: share of the largest eigenvalue up to which an eigenvalue counts as 0, below 1; 0: near rounding
        """
        return _core.harmonic_basis(*self._parts, _checks.any_number("tolerance", tolerance))

    def harmonic_extension(self, nodes: Any, values: Any) -> np.ndarray:
        """Extends values on some nodes to all nodes with the least disagreement, n x d x f.

        :param nodes: mask or indices of the nodes with values, each once
        :param values: values of these nodes, k x d x f; or k x d for f = 1, where the result is n x d
        :raises ValueError: an argument is not allowed, or there is more than one extension, as on a connected component without
            such nodes
        """
        fixed = node_numbers(nodes, self.data.node_count, "nodes")
        table = _checks.real("values", values)
        if table.ndim not in (2, 3) or table.shape[:2] != (len(fixed), self.stalk_dim):
            raise ValueError(
                f"values: shape {table.shape} is not allowed; expected {len(fixed)} x {self.stalk_dim}, or {len(fixed)} x "
                f"{self.stalk_dim} x f, rows of the {len(fixed)} nodes"
            )
        whole = _core.harmonic_extension(*self._parts, fixed, table if table.ndim == 3 else table[:, :, None])
        return whole if table.ndim == 3 else whole[:, :, 0]

    def nearest_section(self, *, tolerance: float = 0, seed: Any = 0) -> NearestSection:
        """Synchronisation: rotations of all nodes that nearly agree over the edges. The graph must be connected, and the family
        ``"special-orthogonal"`` or ``"identity"``. The arguments are the arguments of :meth:`eigenpairs`."""
        return NearestSection(*_core.nearest_section(*self._parts, *_iteration(tolerance, seed)))

    def _count(self, count: Any) -> int:
        return _checks.whole("count", count, 1, max(1, self.data.node_count * self.stalk_dim))


def _iteration(tolerance: Any, seed: Any) -> tuple[float, int]:
    return _checks.any_number("tolerance", tolerance), _checks.seed(seed)


def connection_sheaf(
    data: Dataset, stalk_dim: int, *, special: bool = False, gauge: str = "signs", normalisation: str = "augmented"
) -> CellularSheaf:
    """A sheaf of orthogonal maps that align the directions in which the features vary around neighbours (docs/math.md).

    The features are not scaled. At the smaller node of an edge the map is the identity, and at the larger node it is O.

    :param stalk_dim: stalk dimension, 1 to 5, and at most the number of features
    :param special: restrict the maps to rotations, instead of orthogonal maps of either determinant
    :param gauge: ``"signs"``, or ``"pivots"`` for data such as bags of words, whose directions are not unique
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

    >>> import numpy, sheafnn
    >>> points = numpy.random.default_rng(0).normal(size=(5, 3))
    >>> data = sheafnn.Dataset.from_numpy([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [1, 4]], points)
    >>> connection_sheaf(data, 2)
    <CellularSheaf: orthogonal maps of 12 arcs, stalk dimension 2>
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset")
    dimension = _checks.whole("stalk_dim", stalk_dim, 1, 5)
    transports = _core.connection_transports(data._core, dimension, _checks.flag("special", special), str(gauge))
    arcs = data.arcs.astype(np.int64)
    n = max(1, data.node_count)
    edges = data.edges.astype(np.int64)
    edge = np.searchsorted(edges[:, 0] * n + edges[:, 1], arcs.min(axis=1) * n + arcs.max(axis=1))
    maps = np.where((arcs[:, 0] > arcs[:, 1])[:, None, None], transports[edge], np.eye(dimension))
    return CellularSheaf(data, maps, family="special-orthogonal" if special else "orthogonal", normalisation=normalisation)


def synchronise(
    edges: Any, rotations: Any, weights: Any = None, *, nodes: int | None = None, tolerance: float | None = None
) -> NearestSection:
    """Finds rotations X of all nodes from measurements R of their differences: R is near X_u X_v' for every edge (u, v).

    :param edges: m x 2 node numbers u and v, each edge once, of a connected graph
    :param rotations: m x d x d, d from 2 to 5, or SciPy's Rotation objects
    :param weights: m positive weights; None: all are 1
    :param nodes: number of nodes; None: the largest node number plus one
    :param tolerance: how far from orthogonal the rotations may be, as in :mod:`sheafnn.rotations`
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

    >>> import numpy, sheafnn
    >>> truth = sheafnn.rotations.haar(10, 3, seed=1)
    >>> edges = numpy.array([[u, v] for u in range(10) for v in range(u)])
    >>> found = synchronise(edges, truth[edges[:, 0]] @ truth[edges[:, 1]].transpose(0, 2, 1))
    >>> numpy.allclose(found.rotations @ found.rotations[0].T, truth @ truth[0].T)
    True
    """
    measured = checked_rotations("rotations", rotations, tolerance)
    if measured.ndim != 3:
        raise ValueError(f"rotations: shape {measured.shape} is not allowed; expected m x d x d")
    largest = 2**31 - 1
    pairs = edge_array(edges, largest)
    count = int(pairs.max()) + 1 if nodes is None and len(pairs) else _checks.whole("nodes", 1 if nodes is None else nodes, 1, largest)
    if len(measured) != len(pairs):
        raise ValueError(f"rotations: {len(measured)} are not allowed; expected one for each of {len(pairs)} edges")
    data = Dataset.from_numpy(pairs, scipy.sparse.csr_matrix((count, 1)))
    if data.edge_count != len(pairs):
        raise ValueError(f"edges: {len(pairs)} are not allowed where {data.edge_count} are different; name each once, and no self-loops")
    arcs = data.arcs.astype(np.int64)
    place = np.argsort(pairs.min(axis=1) * count + pairs.max(axis=1))  # of the sorted edges, which data has
    keys = np.sort(pairs.min(axis=1) * count + pairs.max(axis=1))
    edge = place[np.searchsorted(keys, arcs.min(axis=1) * count + arcs.max(axis=1))]
    second = arcs[:, 0] == pairs[edge, 1]
    maps = np.where(second[:, None, None], measured[edge], np.eye(measured.shape[-1]))
    own = None if weights is None else _checks.real("weights", weights)
    if own is not None and own.shape != (len(pairs),):
        raise ValueError(f"weights: shape {own.shape} is not allowed; expected one number for each of {len(pairs)} edges")
    return CellularSheaf(data, maps, None if own is None else own[place], family="special-orthogonal").nearest_section()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LearnedSheaf:
    """A sheaf with a map for every incident pair, which is the source of an arc and its edge."""

    family: str  #: diagonal, special-orthogonal, orthogonal, general-linear or identity
    stalk_dim: int  #: d
    normalisation: str  #: normalisation of the network's Laplacian
    arcs: np.ndarray  #: 2m x 2, source and target, sorted
    edges: np.ndarray  #: m x 2, sorted
    maps: np.ndarray  #: 2m x d x d, or 2m x d for diagonal maps; Bayesian networks give the posterior's mean
    edge_weights: np.ndarray  #: m edge weights, 1 where the family has no edge weights
    spread: dict[str, np.ndarray]  #: spread of the posterior by name, kappa or sigma; 2m rows each
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

    def sheaf(self, normalisation: str | None = None) -> CellularSheaf:
        """The same sheaf as a :class:`CellularSheaf`, which has eigenpairs, sections and extensions.

        :param normalisation: normalisation of the Laplacian; None: the network's normalisation
        """
        maps = self.dense_maps() if self.family != "diagonal" else self.maps
        weights = self.edge_weights if self.family == "special-orthogonal" else None
        family = self.family if self.family != "identity" else "diagonal"
        return CellularSheaf(self.data, maps, weights, family=family, normalisation=normalisation or self.normalisation)

    def laplacian(self, normalisation: str | None = None) -> scipy.sparse.csr_matrix:
        """The sheaf's Laplacian, nd x nd, with the ``normalisation`` of :meth:`sheaf`."""
        return self.sheaf(normalisation).laplacian()


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
    spread: dict[str, np.ndarray]  #: spread of the posterior by name: out_kappa, in_kappa, …; n values each
    layer_embeddings: np.ndarray  #: (L + 1) x n x h
    probabilities: np.ndarray  #: n x C
    data: Dataset = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return f"<NodeMaps: conformal maps of {len(self.out_scales)} nodes, stalk dimension {self.stalk_dim}>"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BundleMaps:
    """Rotations of every node into the common frame of every bundle (bundle networks)."""

    stalk_dim: int  #: d
    arcs: np.ndarray  #: source and target
    edges: np.ndarray  #: m x 2
    bundle_rotations: np.ndarray  #: n x B x d x d; Bayesian networks give the modes
    spread: dict[str, np.ndarray]  #: spread of the posterior: bundle_kappa, n x B
    layer_embeddings: np.ndarray  #: (L + 1) x n x h
    probabilities: np.ndarray  #: n x C
    data: Dataset = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        n, bundles = self.bundle_rotations.shape[:2]
        return f"<BundleMaps: rotations of {n} nodes in {bundles} bundles of dimension {self.stalk_dim}>"


_COMMON = {
    "format_version", "family", "stalk_dimension", "node_count", "edges", "arcs", "model", "normalisation",
    "layer_embeddings", "embeddings", "probabilities", "entropy", "mutual_information", "labels", "class_names",
    "sheaf_use",
}


def read_learned(content: bytes, data: Dataset) -> LearnedSheaf | NodeMaps | BundleMaps:
    """What ``io::learned_arrays`` collects (docs/learned_sheaf.md)."""
    arrays = dict(np.load(io.BytesIO(content)))
    shared = {name: arrays[name] for name in ("arcs", "edges", "layer_embeddings", "probabilities")}
    d = int(arrays["stalk_dimension"])
    maps = ("out_rotations", "out_scales", "in_rotations", "in_scales")
    used = _COMMON | {"maps", "edge_weights", "bundle_rotations"} | set(maps)
    spread = {name: array for name, array in arrays.items() if name not in used}
    if "out_rotations" in arrays:
        return NodeMaps(stalk_dim=d, spread=spread, data=data, **shared, **{name: arrays[name] for name in maps})
    if "bundle_rotations" in arrays:
        rotations = arrays["bundle_rotations"]
        return BundleMaps(stalk_dim=d, spread=spread, data=data, bundle_rotations=rotations, **shared)
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
