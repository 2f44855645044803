"""Datasets: a graph with node features, labels and splits into training, validation and test nodes."""

from __future__ import annotations

import os
from typing import Any, Iterable, NamedTuple, Sequence

import numpy as np
import scipy.sparse

from . import _checks, _core


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
        if np.iscomplexobj(features):
            raise ValueError("features: Complex data not supported")
        matrix = scipy.sparse.csr_matrix(features, dtype=np.float64, copy=True)
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    else:
        dense = _checks.real("features", features)
        if dense.ndim != 2:
            raise ValueError(f"features: {dense.ndim} axes are not allowed; expected two, nodes and features")
        if not np.isfinite(dense).all():
            row, column = np.argwhere(~np.isfinite(dense))[0]
            value = dense[row, column]
            raise ValueError(f"features[{row}, {column}]: {value} is not allowed; must be finite, not NaN or infinity")
        matrix = scipy.sparse.csr_matrix(dense)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float64),
        matrix.shape,
    )


def _edge_array(edges: Any, count: int) -> np.ndarray:
    """An m x 2 array of node numbers from one, from 2 x m with ``m > 2``, or from a sparse n x n matrix."""
    if edges is None:
        return np.empty((0, 2), np.int64)
    if scipy.sparse.issparse(edges):
        if edges.shape != (count, count):
            raise ValueError(
                f"edges: an adjacency matrix of shape {edges.shape} is not allowed; must be {count} x {count}, as many as "
                "the features have rows"
            )
        entries = edges.tocoo()
        used = entries.data != 0
        return np.stack([entries.row[used], entries.col[used]], axis=1).astype(np.int64)
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or 2 not in array.shape:
        raise ValueError(
            f"edges: shape {array.shape} is not allowed; expected m x 2 node numbers, or a sparse adjacency matrix"
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"edges: {array.dtype} is not allowed; expected whole node numbers")
    if array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"edges: {array.max()} is not allowed; a node number must be between 0 and {count - 1}")
    if array.shape[1] != 2:
        array = array.T
    return np.ascontiguousarray(array, np.int64)


def _is_unknown(label: Any) -> bool:
    """None, NaN, NaT, pandas.NA: what is not equal to itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _label_array(labels: Any) -> np.ndarray:
    """Labels before NumPy makes texts of what is none."""
    array = np.asarray(labels)
    if array.dtype.kind in "US" and not isinstance(labels, np.ndarray):
        own = np.asarray(labels, dtype=object)
        if not all(isinstance(label, str) for label in own.ravel()):
            return own
    return array


def _known(array: np.ndarray) -> np.ndarray:
    """Which labels are known; -1 is a label like any other here."""
    if array.dtype == object or array.dtype.kind in "fcmM":
        return np.array([not _is_unknown(label) for label in array], bool)
    return np.ones(array.shape, bool)


def _encode(labels: Any, count: int, minus_one: bool) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers (-1: unknown) and classes. None, NaN and the like are unknown.

    :param minus_one: among whole numbers, -1 is unknown as well, and smaller ones are errors
    """
    array = _label_array(labels)
    if array.ndim != 1 or array.shape[0] != count:
        raise ValueError(f"labels: shape {array.shape} is not allowed; expected one label for each of {count} nodes")
    known = _known(array)
    values = array[known]
    if array.dtype == object:
        if any(isinstance(label, str) for label in values) and not all(isinstance(label, str) for label in values):
            raise ValueError("labels: texts and other values are not allowed together")
        values = np.array(values.tolist())
    if minus_one and np.issubdtype(values.dtype, np.integer):
        if (values < -1).any():
            raise ValueError(f"labels: {values.min()} is not allowed; must be at least 0, or -1 where unknown")
        known[np.flatnonzero(known)[values < 0]] = False
        values = values[values >= 0]
    classes, numbers = np.unique(values, return_inverse=True)
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
        if labels is None:
            codes, classes = np.empty(0, np.int32), np.empty(0, int)
        else:
            codes, classes = _encode(labels, np.shape(features)[0] if np.ndim(features) > 0 else 0, minus_one=True)
        return cls._of_codes(edges, features, codes, classes, splits, name, node_names)

    @classmethod
    def _of_codes(
        cls,
        edges: Any,
        features: Any,
        codes: np.ndarray,
        classes: np.ndarray,
        splits: Iterable[Sequence[Any]],
        name: str,
        node_names: Sequence[str],
    ) -> "Dataset":
        """As from_numpy, of class numbers: n, or none at all."""
        offsets, columns, values, (count, width) = _feature_arrays(features)
        names = [str(node) for node in node_names]
        if names and len(names) != count:
            raise ValueError(f"node_names: {len(names)} names are not allowed; must be one for each of {count} nodes")
        core = _core.make_dataset(
            str(name), count, _edge_array(edges, count), offsets, columns, values, width, codes, len(classes), names,
            _class_names(classes),
        )
        data, own_splits = cls(core, classes), list(splits)
        return data.with_splits(own_splits) if own_splits else data

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
        :raises ValueError: names the node or the attribute
        """
        nodes = list(graph.nodes)
        number = {node: i for i, node in enumerate(nodes)}
        missing = [node for node in nodes if features not in graph.nodes[node]]
        if missing:
            raise ValueError(f"features: node {missing[0]!r} has no attribute {features!r}")
        rows = [np.atleast_1d(np.asarray(graph.nodes[node][features])) for node in nodes]
        for node, row in zip(nodes, rows):
            if row.shape != rows[0].shape or row.dtype.kind not in "biuf":
                raise ValueError(
                    f"features: node {node!r} has {row.tolist()!r}; must be numbers, as many as those of node {nodes[0]!r}"
                )
        table = np.array(rows, float).reshape(len(nodes), -1)
        edges = np.array([[number[u], number[v]] for u, v in graph.edges()], np.int64).reshape(-1, 2)
        known = None
        if labels is not None:
            values = [graph.nodes[node].get(labels) for node in nodes]
            if all(value is None for value in values):
                raise ValueError(f"labels: no node has an attribute {labels!r}; labels=None: there are none")
            known = np.empty(len(values), object)
            known[:] = values
        return cls.from_numpy(edges, table, known, node_names=[str(node) for node in nodes], **more)

    @classmethod
    def from_pyg(cls, data: Any, **more: Any) -> "Dataset":
        """A dataset of a ``torch_geometric.data.Data``: edge_index, x, y, and the masks if present."""

        def array(value: Any) -> np.ndarray:
            return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)

        if getattr(data, "x", None) is None:
            raise ValueError("x: None is not allowed; the data need features of the nodes")
        x = array(data.x.to_dense() if getattr(data.x, "is_sparse", False) else data.x)
        count = x.shape[0]
        labels = None if getattr(data, "y", None) is None else array(data.y)
        if labels is not None and labels.size == count:
            labels = labels.reshape(count)  # n x 1 as well
        edges = array(data.edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ValueError(f"edge_index: shape {edges.shape} is not allowed; must be 2 x m")
        masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
        splits: list[tuple[np.ndarray, ...]] = []
        if masks[0] is not None:
            tables = [np.zeros(count, bool) if m is None else array(m).astype(bool) for m in masks]
            tables = [m.reshape(count, -1) for m in tables]
            for s in range(max(m.shape[1] for m in tables)):
                splits.append(tuple(m[:, min(s, m.shape[1] - 1)] for m in tables))
        return cls.from_numpy(np.ascontiguousarray(edges.T), x, labels, splits=splits, **more)

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
        """Distinct known labels, sorted; ``codes`` index into it."""
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
            if len(self._classes) == 0:
                return np.full(len(codes), -1)
            return np.where(codes >= 0, self._classes[np.maximum(codes, 0)], -1)
        return np.array([self._classes[c] if c >= 0 else None for c in codes], object)

    @property
    def edges(self) -> np.ndarray:
        """m x 2 node numbers, sorted, the smaller one first."""
        return self._core.edges

    @property
    def arcs(self) -> np.ndarray:
        """2m x 2 node numbers, source and target, sorted: both directions of every edge. Arrays of maps have this order."""
        edges = self.edges
        both = np.concatenate([edges, edges[:, ::-1]])
        return both[np.lexsort((both[:, 1], both[:, 0]))]

    @property
    def features(self) -> scipy.sparse.csr_matrix:
        """n x p."""
        offsets, columns, values = self._core.feature_arrays()
        return scipy.sparse.csr_matrix((values, columns, offsets), shape=(self.node_count, self.feature_count))

    @property
    def adjacency(self) -> scipy.sparse.csr_matrix:
        """n x n, symmetric, with ones."""
        arcs = self.arcs
        return scipy.sparse.csr_matrix((np.ones(len(arcs)), arcs.T), shape=(self.node_count, self.node_count))

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
        core = _core.random_splits(
            self._core,
            _checks.whole("count", count, 0, 1000),
            _checks.number("train", train, 0, 1),
            _checks.number("validation", validation, 0, 1),
            _checks.number("test", test, 0, 1),
            bool(stratified),
            _checks.seed(seed),
        )
        return Dataset(core, self._classes)

    def __reduce__(self) -> tuple[Any, ...]:
        listed = self._core.listed_arcs  # networks on directed arcs tell them from the others
        parts = (listed, self.features, self.codes, self._classes, self.splits, self.name, self.node_names)
        return Dataset._of_codes, parts

    def homophily(self) -> float:
        """Share of the edges between labelled nodes that join nodes of one class."""
        return _core.edge_homophily(self._core)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {self.node_count} nodes, {self.edge_count} edges, {self.feature_count} features, "
            f"{self.class_count} classes, {len(self._core.splits())} splits>"
        )


def _class_names(classes: np.ndarray) -> list[str]:
    """Names of classes for files; none where they are 0, 1, …"""
    if np.issubdtype(classes.dtype, np.integer) and np.array_equal(classes, np.arange(len(classes))):
        return []
    return [str(c) for c in classes]


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
    largest = 2**31 - 1
    core = _core.synthetic(
        _checks.whole("nodes", nodes, 0, largest),
        _checks.whole("classes", classes, 0, largest),
        _checks.whole("features", features, 0, largest),
        _checks.whole("words", words, 0, largest),
        _checks.number("degree", degree, 0, largest),
        _checks.number("homophily", homophily, 0, 1),
        _checks.number("class_cycle", class_cycle, 0, 1),
        _checks.number("feature_noise", feature_noise, 0, 1),
        _checks.number("degree_noise", degree_noise, 0, 2),
        _checks.whole("splits", splits, 0, 1000),
        _checks.seed(seed),
    )
    return Dataset(core)


def load_dataset(
    path: str | os.PathLike[str],
    *,
    splits: bool = True,
    labels: bool = True,
    missing_labels: Sequence[str] | None = None,
) -> Dataset:
    """A dataset from a file or folder, as the programs read it: .npz, Geom-GCN, CSV (docs/data.md).

    :param splits: take the file's splits, if present
    :param labels: the file must have labels
    :param missing_labels: words of the file that mean an unknown label, beside the empty text and -1; all others are
        classes then. None: words such as NA or None are refused
    :raises RuntimeError: names the file and what is wrong with it
    """
    if isinstance(missing_labels, str):
        missing_labels = [missing_labels]
    words = None if missing_labels is None else list(missing_labels)
    core = _core.load_dataset(os.fspath(path), not splits, not labels, words)
    # Labels of arrays are numbers again; a text folder's are texts.
    arrays = os.path.isfile(path) or os.path.exists(os.path.join(path, "out1_node_feature_label.txt"))
    return Dataset(core, _numbers(core.class_names) if arrays else None)


def _numbers(names: list[str]) -> np.ndarray | None:
    """Names of classes as numbers; None where they are none."""
    for kind in (int, float):
        try:
            return np.array([kind(name) for name in names]) if names else None
        except ValueError:
            continue
    return None
