"""Datasets: a graph with node features, labels and splits into training, validation and test nodes."""

from __future__ import annotations

import os
from typing import Any, Iterable, NamedTuple, Sequence

import numpy as np
import scipy.sparse

from . import _core


class Split(NamedTuple):
    """Node numbers, increasing: of training, validation and test nodes."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def _node_numbers(nodes: Any, count: int, name: str) -> np.ndarray:
    """Node numbers of a mask (n booleans) or of node numbers, as int32."""
    array = np.asarray(nodes)
    if array.ndim != 1:
        raise ValueError(f"{name}: {array.ndim} axes: expected a mask or node numbers, one axis")
    if array.dtype == bool:
        if array.shape[0] != count:
            raise ValueError(f"{name}: a mask of {array.shape[0]}: the graph has {count} nodes")
        array = np.flatnonzero(array)
    if array.size == 0:
        return np.empty(0, np.int32)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name}: {array.dtype}: expected a mask of booleans or whole node numbers")
    bad = array[(array < 0) | (array >= count)]
    if bad.size:
        raise ValueError(f"{name}: node {bad[0]}: must be between 0 and {count - 1}")
    return np.ascontiguousarray(array, np.int32)


def _feature_arrays(features: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Offsets, columns and values of a matrix without its zeros, and its shape."""
    if scipy.sparse.issparse(features):
        matrix = scipy.sparse.csr_matrix(features, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    else:
        dense = np.asarray(features, dtype=np.float64)
        if dense.ndim != 2:
            raise ValueError(f"features: {dense.ndim} axes: expected two, nodes and features")
        if not np.isfinite(dense).all():
            row, column = np.argwhere(~np.isfinite(dense))[0]
            raise ValueError(f"features[{row}, {column}]: {dense[row, column]}: must be finite, not NaN or infinity")
        matrix = scipy.sparse.csr_matrix(dense)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float64),
        matrix.shape,
    )


def _edge_array(edges: Any) -> np.ndarray:
    """An m x 2 array of node numbers from one, from 2 x m with ``m > 2``, or from a square sparse matrix."""
    if edges is None:
        return np.empty((0, 2), np.int64)
    if scipy.sparse.issparse(edges):
        if edges.shape[0] != edges.shape[1]:
            raise ValueError(f"edges: an adjacency matrix of shape {edges.shape}: must be square")
        entries = edges.tocoo()
        used = entries.data != 0
        return np.stack([entries.row[used], entries.col[used]], axis=1).astype(np.int64)
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or 2 not in array.shape:
        raise ValueError(f"edges: shape {array.shape}: expected m x 2 node numbers, or a sparse adjacency matrix")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"edges: {array.dtype}: expected whole node numbers")
    if array.shape[1] != 2:
        array = array.T
    return np.ascontiguousarray(array, np.int64)


def _encode(labels: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers (-1: unknown) and classes. Unknown: -1 among whole numbers, None or NaN among others."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.shape[0] != count:
        raise ValueError(f"labels: shape {array.shape}: expected one label for each of {count} nodes")
    if np.issubdtype(array.dtype, np.integer):
        known = array >= 0
        if (array < -1).any():
            raise ValueError(f"labels: {array[array < -1][0]}: must be at least 0, or -1 where unknown")
    elif np.issubdtype(array.dtype, np.floating):
        known = ~np.isnan(array)
    elif array.dtype == object:
        known = np.array([label is not None and label == label for label in array], bool)
    else:
        known = np.ones(array.shape, bool)
    classes, numbers = np.unique(array[known], return_inverse=True)
    codes = np.full(count, -1, np.int32)
    codes[known] = numbers
    return codes, classes


class Dataset:
    """A node classification task: a graph of n nodes, n x p features, labels and splits.

    Made by :meth:`from_numpy`, :meth:`from_scipy`, :meth:`from_networkx`, :meth:`from_pyg`, :func:`load_dataset`,
    :func:`karate_club` and :func:`synthetic`. The graph is simple and undirected: duplicates and both directions of an edge
    count once, self-loops are dropped. Networks on directed arcs remember which way an edge was listed.
    """

    def __init__(self, core: _core.Dataset, classes: np.ndarray | None = None):
        self._core = core
        if classes is None:
            classes = np.array(core.class_names) if core.class_names else np.arange(core.class_count)
        self._classes = classes

    @classmethod
    def from_numpy(
        cls,
        edges: Any,
        features: Any,
        labels: Any = None,
        *,
        splits: Iterable[Sequence[Any]] = (),
        name: str = "dataset",
        node_names: Sequence[str] = (),
    ) -> "Dataset":
        """A dataset of arrays.

        :param edges: m x 2 node numbers; a scipy sparse adjacency matrix is taken as well
        :param features: n x p numbers, dense or scipy sparse; the number of rows is the number of nodes
        :param labels: n labels of any kind; unknown ones are -1 among whole numbers, None or NaN among others
        :param splits: each (train, validation, test), as masks or node numbers
        :param name: shown in messages
        :raises ValueError: names the argument, its value and the limit

        >>> data = Dataset.from_numpy([[0, 1], [1, 2]], [[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
        >>> data.node_count, data.edge_count, list(map(str, data.classes))
        (3, 2, ['a', 'b'])
        """
        offsets, columns, values, (count, width) = _feature_arrays(features)
        codes, classes = (np.empty(0, np.int32), np.empty(0)) if labels is None else _encode(labels, count)
        plain = np.issubdtype(classes.dtype, np.integer) and np.array_equal(classes, np.arange(len(classes)))
        core = _core.make_dataset(
            name, count, _edge_array(edges), offsets, columns, values, width, codes, len(classes),
            [str(node) for node in node_names], [] if plain or labels is None else [str(c) for c in classes],
        )
        data = cls(core, classes)
        return data.with_splits(splits) if list(splits) else data

    @classmethod
    def from_scipy(cls, adjacency: Any, features: Any, labels: Any = None, **more: Any) -> "Dataset":
        """A dataset with the graph of a square sparse matrix: an edge wherever it has an entry that is not 0.

        >>> import scipy.sparse
        >>> path = scipy.sparse.diags([[1, 1]], [1], shape=(3, 3))
        >>> Dataset.from_scipy(path, [[1.0], [2.0], [3.0]]).edge_count
        2
        """
        if not scipy.sparse.issparse(adjacency):
            raise ValueError(f"adjacency: {type(adjacency).__name__}: expected a scipy sparse matrix")
        return cls.from_numpy(adjacency, features, labels, **more)

    @classmethod
    def from_networkx(
        cls, graph: Any, features: str = "features", labels: str | None = "label", **more: Any
    ) -> "Dataset":
        """A dataset of a networkx graph. Nodes are numbered in its order and keep their names.

        :param features: node attribute with the features: numbers, all of one length
        :param labels: node attribute with the label, missing where unknown; None: there are none
        """
        nodes = list(graph.nodes)
        number = {node: i for i, node in enumerate(nodes)}
        missing = [node for node in nodes if features not in graph.nodes[node]]
        if missing:
            raise ValueError(f"features: node {missing[0]!r} has no attribute {features!r}")
        table = np.array([np.atleast_1d(graph.nodes[node][features]) for node in nodes], float)
        edges = np.array([[number[u], number[v]] for u, v in graph.edges()], np.int64).reshape(-1, 2)
        known = None
        if labels is not None:
            values = [graph.nodes[node].get(labels) for node in nodes]
            known = np.array(values) if None not in values else np.array(values, object)
        return cls.from_numpy(edges, table, known, node_names=[str(node) for node in nodes], **more)

    @classmethod
    def from_pyg(cls, data: Any, **more: Any) -> "Dataset":
        """A dataset of a ``torch_geometric.data.Data``: edge_index, x, y and the masks, if it has some."""

        def array(value: Any) -> np.ndarray:
            return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)

        x = data.x.to_dense() if getattr(data.x, "is_sparse", False) else data.x
        labels = None if getattr(data, "y", None) is None else array(data.y).reshape(-1)
        count = array(x).shape[0]
        masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
        splits: list[tuple[np.ndarray, ...]] = []
        if masks[0] is not None:
            tables = [np.zeros(count, bool) if m is None else array(m).astype(bool) for m in masks]
            tables = [m.reshape(count, -1) for m in tables]
            for s in range(max(m.shape[1] for m in tables)):
                splits.append(tuple(m[:, min(s, m.shape[1] - 1)] for m in tables))
        return cls.from_numpy(array(data.edge_index).T.reshape(-1, 2), array(x), labels, splits=splits, **more)

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def node_count(self) -> int:
        return self._core.node_count

    @property
    def edge_count(self) -> int:
        return self._core.edge_count

    @property
    def feature_count(self) -> int:
        return self._core.feature_count

    @property
    def class_count(self) -> int:
        return self._core.class_count

    @property
    def classes(self) -> np.ndarray:
        """The labels that there are, sorted; ``codes`` are numbers of them."""
        return self._classes

    @property
    def codes(self) -> np.ndarray:
        """n class numbers, -1 where the label is unknown; empty without labels."""
        return self._core.labels

    @property
    def labels(self) -> np.ndarray:
        """n labels as they were given; where one is unknown, -1 among whole numbers, else None."""
        codes = self.codes
        if (codes >= 0).all():
            return self._classes[codes]
        if np.issubdtype(self._classes.dtype, np.integer):
            return np.where(codes >= 0, self._classes[np.maximum(codes, 0)], -1)
        return np.array([self._classes[c] if c >= 0 else None for c in codes], object)

    @property
    def edges(self) -> np.ndarray:
        """m x 2 node numbers, sorted, the smaller one first."""
        return self._core.edges

    @property
    def features(self) -> scipy.sparse.csr_matrix:
        """n x p."""
        offsets, columns, values = self._core.feature_arrays()
        return scipy.sparse.csr_matrix((values, columns, offsets), shape=(self.node_count, self.feature_count))

    @property
    def adjacency(self) -> scipy.sparse.csr_matrix:
        """n x n, symmetric, with ones."""
        edges = self.edges
        both = np.concatenate([edges, edges[:, ::-1]])
        ones = np.ones(len(both))
        return scipy.sparse.csr_matrix((ones, (both[:, 0], both[:, 1])), shape=(self.node_count, self.node_count))

    @property
    def node_names(self) -> list[str]:
        """n names, or an empty list."""
        return self._core.node_names

    @property
    def splits(self) -> list[Split]:
        return [Split(*parts) for parts in self._core.splits()]

    def with_splits(self, splits: Iterable[Sequence[Any]]) -> "Dataset":
        """The same data with other splits, each (train, validation, test), as masks or node numbers.

        :raises ValueError: a node out of range or in two sets, or a split without training nodes
        """
        count = self.node_count
        numbers = []
        for s, split in enumerate(splits):
            if len(split) != 3:
                raise ValueError(f"splits[{s}]: {len(split)} sets: expected train, validation and test")
            train, validation, test = (
                _node_numbers(part, count, f"splits[{s}].{name}") for part, name in zip(split, Split._fields)
            )
            numbers.append((train, validation, test))
        core = _core.copy_dataset(self._core)
        core.set_splits(numbers)
        return Dataset(core, self._classes)

    def make_splits(
        self,
        count: int = 10,
        *,
        train: float = 0.6,
        validation: float = 0.2,
        test: float = 0.2,
        stratified: bool = True,
        seed: int = 0,
    ) -> "Dataset":
        """The same data with random splits of the labelled nodes; stratified: the shares hold within every class."""
        return Dataset(
            _core.random_splits(self._core, count, train, validation, test, stratified, seed), self._classes
        )

    def homophily(self) -> float:
        """Share of the edges between labelled nodes that join nodes of one class."""
        return _core.edge_homophily(self._core)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {self.node_count} nodes, {self.edge_count} edges, {self.feature_count} features, "
            f"{self.class_count} classes, {len(self._core.splits())} splits>"
        )


def karate_club() -> Dataset:
    """Zachary's karate club: 34 nodes, 78 edges, two classes.

    >>> karate_club()
    <Dataset karate: 34 nodes, 78 edges, 34 features, 2 classes, 10 splits>
    """
    return Dataset(_core.karate_club())


def synthetic(
    *,
    nodes: int = 1000,
    classes: int = 5,
    features: int = 100,
    words: int = 10,
    degree: float = 6,
    homophily: float = 0.3,
    class_cycle: float = 0,
    feature_noise: float = 0.5,
    degree_noise: float = 0.5,
    splits: int = 10,
    seed: int = 0,
) -> Dataset:
    """A random graph with classes: the same options and seed give the same dataset, here and in C++.

    :param degree: mean degree
    :param homophily: probability that an edge joins two nodes of one class
    :param class_cycle: probability that another edge joins a class and the next one
    :param words: drawn per node from a vocabulary of ``features``, of which each is typical of one class
    :param feature_noise: probability that a word is drawn from the whole vocabulary
    :param degree_noise: standard deviation of the logarithm of a node's expected degree
    :param splits: number of stratified splits of 48/32/20
    """
    return Dataset(
        _core.synthetic(
            nodes, classes, features, words, degree, homophily, class_cycle, feature_noise, degree_noise, splits, seed
        )
    )


def load_dataset(path: str | os.PathLike[str], *, splits: bool = True, labels: bool = True) -> Dataset:
    """A dataset from a file or folder, as the programs read it: .npz, Geom-GCN, CSV (docs/data.md).

    :param splits: take the file's splits, if it has some
    :param labels: the file must have labels
    :raises RuntimeError: names the file and what is wrong with it
    """
    return Dataset(_core.load_dataset(os.fspath(path), not splits, not labels))
