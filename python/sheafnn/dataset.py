"""Datasets: a graph with node features, labels and splits into training, validation and test nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Sequence

import numpy as np
import scipy.sparse

from . import _checks, _core, _edges, _masks, _tables, _types
from ._labels import encode as _encode, missing_words

if TYPE_CHECKING:
    from typing_extensions import Self


class Split(NamedTuple):
    """The training, validation and test nodes, as increasing node numbers."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class GivenSheaf(NamedTuple):
    """The maps of a sheaf that a Dataset has (:meth:`Dataset.with_sheaf`)."""

    maps: np.ndarray  #: 2m x k, in the order of ``Dataset.arcs``: k is d for diagonal maps, otherwise the d x d entries of a map
    edge_weights: np.ndarray  #: m
    edge_labels: Any  #: m labels, or None


def _feature_arrays(features: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Offsets, columns and values of a matrix without its zeros, and its shape. Missing values are NaN."""
    features = _checks.features("features", _masks.plain(features))
    if scipy.sparse.issparse(features):
        if np.iscomplexobj(features):
            raise ValueError("features: Complex data not supported")
        matrix = scipy.sparse.csr_matrix(features, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    else:
        if hasattr(features, "iloc") and hasattr(features, "to_numpy"):  # pandas, whose missing values may be NA
            try:
                features = features.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise ValueError(f"features: {error}") from None
        dense = _checks.real("features", features)
        if dense.ndim != 2:
            raise ValueError(f"features: {dense.ndim} axes are not allowed; expected two, nodes and features")
        if np.isinf(dense).any():
            row, column = np.argwhere(np.isinf(dense))[0]
            value = dense[row, column]
            raise ValueError(f"features[{row}, {column}]: {value} is not allowed; must be finite, or NaN where it is missing")
        matrix = scipy.sparse.csr_matrix(dense)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float64),
        matrix.shape,
    )


def _feature_names(names: Sequence[str] | None, features: Any, width: int) -> list[str]:
    """Names of the columns: those given, or a data frame's if they are texts; none where they are not known."""
    if names is None:
        own = getattr(features, "columns", None)
        names = [] if own is None or not all(isinstance(name, str) for name in own) else list(own)
    texts = [str(name) for name in names]
    _checks.texts(lambda i: f"feature_names[{i}]:", texts)
    if texts and len(texts) != width:
        raise ValueError(f"feature_names: {len(texts)} names are not allowed; must be one for each of {width} columns")
    _checks.different("feature_names", texts)
    return texts


class NodeData:
    """What tasks on the nodes of a graph and of a hypergraph have in common."""

    _copy: Callable[[Any], Any]  #: of the core
    _kind: type  #: of the core
    _made_by: str  #: the public functions that make one

    def __init__(self, core: Any = None, classes: np.ndarray | None = None, *more: Any, **named: Any):
        _checks.made(self, core, more or named)
        self._core = core
        if classes is None:
            classes = np.array(core.class_names) if core.class_names else np.arange(core.class_count)
        self._classes = classes

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def node_count(self) -> int:
        return self._core.node_count

    @property
    def feature_count(self) -> int:
        return self._core.feature_count

    @property
    def feature_names(self) -> list[str]:
        """p names of the columns of features, or an empty list."""
        return self._core.feature_names

    @property
    def features(self) -> scipy.sparse.csr_matrix:
        """n x p; NaN where a value is missing."""
        offsets, columns, values = self._core.feature_arrays()
        return scipy.sparse.csr_matrix((values, columns, offsets), shape=(self.node_count, self.feature_count))

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
        """n labels as you gave them; an unknown label is -1 among whole numbers of 64 bits, and None otherwise."""
        codes = self.codes
        if (codes >= 0).all():
            return self._classes[codes]
        if self._classes.dtype.kind in "iu":  # timedelta64 is a subtype of NumPy's integers
            if len(self._classes) == 0:
                return np.full(len(codes), -1)
            if self._classes[-1] <= np.iinfo(np.int64).max:
                return np.where(codes >= 0, self._classes.astype(np.int64)[np.maximum(codes, 0)], -1)
        return np.array([self._classes[c] if c >= 0 else None for c in codes], object)

    @property
    def splits(self) -> list[Split]:
        return [Split(*parts) for parts in self._core.splits()]

    def with_splits(self, splits: Iterable[Any]) -> Self:
        """The same data with other splits.

        :param splits: for each split (train, validation, test), or a mapping with these keys. A set is a mask, of booleans or of 0
            and 1, or a list of node numbers. n integers that are all 0 or 1 and repeat are a mask. A set may also hold the masks
            of S splits, n x S or S x n. Nodes whose label or target is not known do not count in a training
        :raises ValueError: a node is out of range or in two sets, a split has no training nodes, or a mask has another value or
            size. The message names the split, the set and the node

        >>> import numpy
        >>> masks = numpy.array([[1, 0, 0, 0], [0, 0, 0, 1]])
        >>> data = Dataset.from_numpy([[0, 1]], numpy.eye(4), [0, 1, 0, 1]).with_splits([(masks, [1], [2])])
        >>> [split.train.tolist() for split in data.splits]
        [[0], [3]]
        """
        count = self.node_count
        numbers: list[_masks.Sets] = []
        for s, split in enumerate(splits):
            parts = _masks.parts_of(split, f"splits[{s}]")
            numbers += _masks.split_sets(parts, count, [f"splits[{s}].{name}" for name in Split._fields])
        core = type(self)._copy(self._core)
        core.set_splits(numbers)
        return self._like(core)

    def _like(self, core: Any) -> Self:
        """The same data with another core."""
        return type(self)(core, self._classes)


class Dataset(NodeData):
    """A node classification task: a graph of n nodes, n x p features, labels and splits.

    You make one with :meth:`from_numpy`, :meth:`from_scipy`, :meth:`from_pandas`, :meth:`from_networkx`, :meth:`from_pyg`,
    :func:`load_dataset`, :func:`karate_club` and :func:`synthetic`. The graph is simple and undirected: duplicates and both
    directions of an edge count once, and self-loops are dropped. Networks on directed arcs use the direction in which you listed
    an edge.
    """

    _kind, _made_by = _core.Dataset, "Dataset.from_numpy(edges, features, labels), from_pandas, from_networkx, from_pyg or load_dataset(path)"
    _copy = staticmethod(_core.copy_dataset)

    @classmethod
    def from_numpy(
        cls,
        edges: Any,
        features: Any,
        labels: Any = None,
        *,
        splits: Iterable[Any] = (),
        name: str = "dataset",
        node_names: Sequence[str] = (),
        feature_names: Sequence[str] | None = None,
        arc_features: Any = None,
        edge_types: Any = None,
        node_types: Any = None,
        missing_labels: Sequence[str] | None = None,
        weights: str = "refuse",
    ) -> "Dataset":
        """A dataset from arrays.

        :param edges: m x 2 node numbers, or names where you give node_names, or a scipy sparse adjacency matrix
        :param features: n x p values, dense, masked, scipy sparse or a data frame; the number of rows is the number of nodes. A
            missing value is NaN, None or masked
        :param labels: n labels of any kind; unknown labels are None or NaN, -1 among numbers, empty among texts
        :param splits: splits as with_splits takes them
        :param name: name of the dataset in messages
        :param node_names: n different names, or None
        :param feature_names: p names; None: the names of a data frame. A model that was trained with names refuses other names
        :param arc_features: features of the listed edges, which learned maps read. m x k: for both directions of an edge, or for
            one direction where both are listed. m x 2 x k: for the listed direction and the other direction
        :param edge_types: m types of the listed edges, texts or whole numbers; both directions of an edge have one type
        :param node_types: n types of the nodes, texts or whole numbers
        :param missing_labels: texts that mean an unknown label; all other texts are classes then. None: words such as NA, nan or
            None are errors
        :param weights: weights of an adjacency matrix: ``"refuse"`` raises an error where they differ, ``"ignore"`` takes the
            edges alone
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

        >>> data = Dataset.from_numpy([[0, 1], [1, 2]], [[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
        >>> data.node_count, data.edge_count, list(map(str, data.classes))
        (3, 2, ['a', 'b'])
        >>> Dataset.from_numpy([["ada", "bob"]], [[1.0], [2.0]], node_names=["bob", "ada"]).edges.tolist()
        [[0, 1]]
        """
        if labels is None:
            codes, classes = np.empty(0, np.int32), np.empty(0, int)
        else:
            count = np.shape(features)[0] if np.ndim(features) > 0 else 0
            codes, classes = _encode(labels, count, minus_one=True, missing_labels=missing_labels)
        return cls._of_codes(
            edges, features, codes, classes, splits, name, node_names, feature_names, arc_features, weights, edge_types, node_types
        )

    @classmethod
    def _of_codes(
        cls,
        edges: Any,
        features: Any,
        codes: np.ndarray,
        classes: np.ndarray,
        splits: Iterable[Any],
        name: str,
        node_names: Sequence[str],
        feature_names: Sequence[str] | None = None,
        arc_features: Any = None,
        weights: str = "refuse",
        edge_types: Any = None,
        node_types: Any = None,
    ) -> "Dataset":
        """As from_numpy, of class numbers: n, or none at all."""
        offsets, columns, values, (count, width) = _feature_arrays(features)
        names = [str(node) for node in node_names]
        if names and len(names) != count:
            raise ValueError(f"node_names: {len(names)} names are not allowed; must be one for each of {count} nodes")
        _check_names(names, node_names)
        _checks.choice("weights", weights, ("refuse", "ignore"))
        pairs = _edges.edge_array(edges, count, names, weights)
        core = _core.make_dataset(
            str(name), count, pairs, offsets, columns, values, width, codes, len(classes), names, _class_names(classes),
            _feature_names(feature_names, features, width),
        )
        data, own_splits = cls(core, classes), list(splits)
        for argument, value in (("arc_features", arc_features), ("edge_types", edge_types)):
            if value is not None and scipy.sparse.issparse(edges):
                raise ValueError(f"{argument}: not allowed with an adjacency matrix; list the edges as m x 2 node numbers")
        if edge_types is not None:
            core.set_edge_types(pairs, _types.type_texts("edge_types", edge_types, len(pairs), "edges"))
        if node_types is not None:
            core.set_node_types(_types.type_texts("node_types", node_types, count, "nodes"))
        if arc_features is not None:
            core.set_arc_features(_edges.arc_table(pairs, arc_features, data.arcs, count))
        return data.with_splits(own_splits) if own_splits else data

    @classmethod
    def from_scipy(cls, adjacency: Any, features: Any, labels: Any = None, *, weights: str = "refuse", **more: Any) -> "Dataset":
        """A dataset with the graph of a square sparse matrix, which has an edge wherever the sum of the entries is not 0.

        :param weights: ``"refuse"`` raises an error where the entries differ, since networks learn the weights of edges;
            ``"ignore"`` takes the edges alone
        :param more: other parameters of from_numpy
        :raises ValueError: an entry is not finite, or entries differ; the message names the row and the column

        >>> import scipy.sparse
        >>> path = scipy.sparse.diags([[1, 1]], [1], shape=(3, 3))
        >>> Dataset.from_scipy(path, [[1.0], [2.0], [3.0]]).edge_count
        2
        """
        if not scipy.sparse.issparse(adjacency):
            raise ValueError(f"adjacency: {type(adjacency).__name__}: expected a scipy sparse matrix")
        count = np.shape(features)[0] if np.ndim(features) > 0 else 0
        for argument in ("arc_features", "edge_types"):
            if more.get(argument) is not None:
                raise ValueError(f"{argument}: not allowed with an adjacency matrix; list the edges with from_numpy")
        return cls.from_numpy(_edges.adjacency_edges(adjacency, count, weights, "adjacency"), features, labels, **more)

    @classmethod
    def from_pandas(
        cls,
        nodes: Any,
        edges: Any,
        *,
        names: str | None = None,
        label: str | None = "label",
        features: Sequence[str] | None = None,
        splits: str | Sequence[str] | None = None,
        source: int | str = 0,
        target: int | str = 1,
        arc_features: str | Sequence[str] = (),
        edge_types: str | None = None,
        node_types: str | None = None,
        weights: str = "refuse",
        missing_labels: Sequence[str] | None = None,
        name: str = "dataset",
    ) -> "Dataset":
        """A dataset from two pandas tables, which are read like nodes.csv and edges.csv (docs/data.md).

        :param nodes: a row for each node
        :param edges: a row for each edge
        :param names: column of ``nodes`` with the names that ``edges`` uses; None: the index
        :param label: column of ``nodes`` with the labels, missing where unknown; None: the data have no labels
        :param features: columns of ``nodes`` with the features; None: all columns without another meaning. None of these may be
            called like a set of a split, such as ``train`` or ``fold``
        :param splits: columns of ``nodes``, one for each split, which hold train, validation (or val), test or nothing; None:
            ``split``, or ``split_0``, ``split_1``, …
        :param source: column of ``edges`` with one end, by position or name
        :param target: column of ``edges`` with the other end, by position or name
        :param arc_features: columns of ``edges`` that are features of arcs
        :param edge_types: column of ``edges`` with the types of edges; None: they have no types
        :param node_types: column of ``nodes`` with the types of nodes; None: they have no types
        :param weights: ``"refuse"`` raises an error where another column of ``edges`` is not constant; ``"ignore"`` takes the
            edges alone
        :param missing_labels: as in from_numpy
        :raises ValueError: a table is not allowed; the message names the table, the column and the row

        >>> import pandas
        >>> nodes = pandas.DataFrame({"label": ["a", "b", None], "age": [31, 40, 29]}, index=["ada", "bob", "cyd"])
        >>> edges = pandas.DataFrame({"from": ["ada", "bob"], "to": ["bob", "cyd"]})
        >>> data = Dataset.from_pandas(nodes, edges)
        >>> data.edge_count, data.node_names, data.feature_names
        (2, ['ada', 'bob', 'cyd'], ['age'])
        """
        table = _tables.node_table(nodes, names, label, features, splits, node_types)
        pairs, of_arcs, of_edges = _tables.edge_table(edges, table.names, source, target, arc_features, weights, edge_types)
        return cls.from_numpy(
            pairs, table.features, table.labels, splits=table.splits, name=name, node_names=table.names,
            feature_names=table.feature_names, arc_features=of_arcs, edge_types=of_edges, node_types=table.types,
            missing_labels=missing_labels,
        )

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        features: str = "features",
        labels: str | None = "label",
        *,
        arc_features: str | None = None,
        edge_types: str | None = None,
        node_types: str | None = None,
        weights: str = "refuse",
        **more: Any,
    ) -> "Dataset":
        """A dataset from a networkx graph. The nodes are numbered in the graph's order and keep their names.

        :param features: node attribute with the features, as many numbers for every node
        :param labels: node attribute with the label, missing where unknown; None: the data have no labels
        :param arc_features: edge attribute with features of arcs, as many numbers for every edge
        :param edge_types: edge attribute with the type of every edge; None: edges have no types
        :param node_types: node attribute with the type of every node; None: nodes have no types
        :param weights: ``"refuse"`` raises an error where the edge attribute ``weight`` differs, since networks learn the weights
            of edges. A missing weight is 1. ``"ignore"`` takes the edges alone
        :param more: other parameters of from_numpy
        :raises ValueError: the graph is not allowed; the message names the node, the edge or the attribute
        """
        _checks.choice("weights", weights, ("refuse", "ignore"))
        attributes_of = {
            "features": features, "labels": labels, "arc_features": arc_features, "edge_types": edge_types, "node_types": node_types
        }
        for argument, attribute in attributes_of.items():
            if not _tables.is_hashable(attribute):
                raise ValueError(f"{argument}: {type(attribute).__name__} is not allowed; expected the name of an attribute")
        nodes = list(graph.nodes)
        if not nodes:
            raise ValueError("graph: it has no nodes; a dataset needs at least one")
        number = {node: i for i, node in enumerate(nodes)}
        table = _rows(
            [graph.nodes[node].get(features) for node in nodes], features, "features", lambda i: f"node {nodes[i]!r}"
        )
        ends = list(graph.edges())

        def between(i: int) -> str:
            return f"edge {ends[i][0]!r} – {ends[i][1]!r}"

        if weights == "refuse" and arc_features != "weight":
            values = [attributes.get("weight", 1) for _, _, attributes in graph.edges(data=True)]
            for i, weight in enumerate(values):
                if not isinstance(weight, (int, float, np.number)):
                    raise ValueError(
                        f"graph: {between(i)} has the weight {weight!r}; must be a number, and weights='ignore' takes the edges alone"
                    )
            own = np.array(values, float)
            _edges.check_finite(own, lambda i: f"graph: weight of {between(i)}")
            joins = np.flatnonzero([u != v for u, v in ends])  # self-loops are dropped
            _edges.check_weights(own[joins], lambda i: between(joins[i]), "graph")
        edges = np.array([[number[u], number[v]] for u, v in ends], np.int64).reshape(-1, 2)
        if arc_features is not None:
            if not ends:
                raise ValueError(f"arc_features: {arc_features!r} is not allowed; the graph has no edges")
            of_edges = [attributes.get(arc_features) for _, _, attributes in graph.edges(data=True)]
            more["arc_features"] = _rows(of_edges, arc_features, "arc_features", between)
        if edge_types is not None:
            more["edge_types"] = [attributes.get(edge_types) for _, _, attributes in graph.edges(data=True)]
        if node_types is not None:
            more["node_types"] = [graph.nodes[node].get(node_types) for node in nodes]
        known = None
        if labels is not None:
            values = [graph.nodes[node].get(labels) for node in nodes]
            if all(value is None for value in values):
                raise ValueError(f"labels: no node has an attribute {labels!r}; labels=None means that there are no labels")
            known = np.empty(len(values), object)
            known[:] = values
        return cls.from_numpy(edges, table, known, **{"node_names": nodes, **more})

    @classmethod
    def from_pyg(
        cls, data: Any, *, arc_features: Any = None, weights: str = "refuse", splits: Iterable[Any] | None = None, **more: Any
    ) -> "Dataset":
        """A dataset from a ``torch_geometric.data.Data``: edge_index, x, y, and the masks, ``edge_type`` and ``node_type`` if present.

        ``train_mask``, ``val_mask`` and ``test_mask`` are masks of n, n x splits or splits x n, or node numbers; so are
        ``train_idx``, ``val_idx``, ``test_idx``. A mask of n belongs to every split.

        :param arc_features: ``"edge_attr"`` or another attribute, or m x k values: features of arcs
        :param weights: ``"refuse"`` raises an error where ``edge_weight`` or ``edge_attr`` is not constant, since networks learn
            the weights of edges; ``"ignore"`` takes the edges alone
        :param splits: splits that replace the data's splits, as with_splits takes them
        :param more: other parameters of from_numpy; ``edge_types=None`` and ``node_types=None`` leave the types out
        :raises ValueError: an attribute is not allowed; the message names the attribute, its value and the limit
        """
        _checks.choice("weights", weights, ("refuse", "ignore"))
        _checks.one_type("data", data)

        def array(value: Any) -> np.ndarray:
            return np.asarray(_masks.plain(value))

        if getattr(data, "x", None) is None:
            raise ValueError("x: None is not allowed; the data need features of the nodes")
        x = _masks.plain(_masks.dense(data.x))
        count = np.shape(x)[0]
        labels = None if getattr(data, "y", None) is None else _masks.plain(data.y)
        if labels is not None and np.size(labels) == count and np.ndim(labels) > 1:
            labels = labels.reshape(count)  # n x 1 as well
        if getattr(data, "edge_index", None) is None:
            _checks.no_adjacency("adj_t", getattr(data, "adj_t", None))
            raise ValueError("edge_index: None is not allowed; must be 2 x m node numbers")
        _checks.no_adjacency("edge_index", data.edge_index)
        edges = array(data.edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ValueError(f"edge_index: shape {edges.shape} is not allowed; must be 2 x m")
        if weights == "refuse":
            used = "" if arc_features is None else arc_features if isinstance(arc_features, str) else "edge_attr"
            _check_edge_attributes(data, edges, used)
        if isinstance(arc_features, str):
            if getattr(data, arc_features, None) is None:
                raise ValueError(f"arc_features: the data have no attribute {arc_features!r}")
            arc_features = array(getattr(data, arc_features))
        for attribute in ("edge_type", "node_type"):
            more.setdefault(f"{attribute}s", getattr(data, attribute, None))
        own = _pyg_splits(data, count) if splits is None else splits
        return cls.from_numpy(np.ascontiguousarray(edges.T), x, labels, splits=own, arc_features=arc_features, **more)

    def to_pyg(self, split: int | None = 0) -> Any:
        """The dataset as a ``torch_geometric.data.Data``.

        It has x (single precision) and y: class numbers, -1 where the label is unknown, or n x k targets. edge_index has both
        directions of every edge in the order of ``arcs``. Features of arcs are its edge_attr, splits its ``train_mask``,
        ``val_mask`` and ``test_mask``. Types are its ``edge_type`` and ``node_type``: the types themselves if they are numbers,
        otherwise indices into their names. A sheaf of :meth:`with_sheaf` is left out.

        :param split: number of the split of the masks; None: masks of n x splits
        :raises ImportError: PyTorch Geometric is not installed
        :raises ValueError: there is no such split
        """
        try:
            import torch
            from torch_geometric.data import Data
        except ImportError as error:
            raise ImportError("to_pyg needs PyTorch Geometric: pip install torch torch_geometric") from error
        r = Data(
            x=torch.from_numpy(self.features.toarray().astype(np.float32)),
            edge_index=torch.from_numpy(np.ascontiguousarray(self.arcs.T, np.int64)),
            num_nodes=self.node_count,
        )
        if len(self.codes) > 0:
            r.y = torch.from_numpy(self.codes.astype(np.int64))
        elif self.targets is not None:
            r.y = torch.from_numpy(np.array(self.targets))
        if self.arc_features is not None:
            r.edge_attr = torch.from_numpy(np.asarray(self.arc_features, np.float32))
        if self.edge_types is not None:
            ends = np.sort(self.arcs, axis=1).astype(np.int64)
            edges = self.edges.astype(np.int64)
            edge = np.searchsorted(edges[:, 0] * self.node_count + edges[:, 1], ends[:, 0] * self.node_count + ends[:, 1])
            r.edge_type = torch.from_numpy(_numbers_of(self.edge_types, self._core.edge_types)[edge])
        if self.node_types is not None:
            r.node_type = torch.from_numpy(_numbers_of(self.node_types, self._core.node_types))
        splits = self.splits
        if split is not None:
            number = _checks.whole("split", split, 0, max(0, len(splits) - 1))
            splits = splits[number : number + 1]
        for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
            masks = np.zeros((len(splits), self.node_count), bool)
            for mask, parts in zip(masks, splits):
                mask[parts[k]] = True
            if splits:
                r[name] = torch.from_numpy(masks[0] if split is not None else np.ascontiguousarray(masks.T))
        return r

    @property
    def edge_count(self) -> int:
        return self._core.edge_count

    @property
    def edges(self) -> np.ndarray:
        """The edges: m x 2 node numbers, sorted, the smaller node first."""
        return self._core.edges

    @property
    def arcs(self) -> np.ndarray:
        """2m x 2 node numbers, source and target, sorted: both directions of every edge. Arrays of maps have this order."""
        edges = self.edges
        both = np.concatenate([edges, edges[:, ::-1]])
        return both[np.lexsort((both[:, 1], both[:, 0]))]

    @property
    def adjacency(self) -> scipy.sparse.csr_matrix:
        """The adjacency matrix, n x n, symmetric, with entries 1."""
        arcs = self.arcs
        return scipy.sparse.csr_matrix((np.ones(len(arcs)), arcs.T), shape=(self.node_count, self.node_count))

    @property
    def node_names(self) -> list[str]:
        """n names of the nodes, or an empty list."""
        return self._core.node_names

    @property
    def arc_features(self) -> Any:
        """2m x k values, in the order of ``arcs``; None without features of arcs."""
        return self._core.arc_features

    @property
    def edge_types(self) -> Any:
        """m types in the order of ``edges``: whole numbers where all of them are, otherwise texts; None without types."""
        return _types.types_of(self._core.edge_types, self.edge_type_names)

    @property
    def edge_type_names(self) -> list[str]:
        """Texts of the types of edges, each once, in the order of the network's weights; or an empty list."""
        return self._core.edge_type_names

    @property
    def edge_labels(self) -> Any:
        """m labels to learn with ``LinkPredictor``, in the order of ``edges``: numbers where all of them are, otherwise texts; an
        unknown label is None. None without labels of edges."""
        codes = self._core.edge_labels
        if not len(codes):
            return None
        names = self._core.edge_class_names
        numbers = _numbers(names)
        classes = np.array(names, object) if numbers is None else numbers
        if (codes >= 0).all():
            return classes[codes]
        return np.array([*classes, None], object)[codes]

    @property
    def edge_targets(self) -> Any:
        """m values to learn with ``LinkPredictor``, in the order of ``edges``, NaN where unknown; None without numbers."""
        return self._core.edge_targets if len(self._core.edge_targets) else None

    @property
    def node_types(self) -> Any:
        """n types: whole numbers where all of them are, otherwise texts; None without types."""
        return _types.types_of(self._core.node_types, self.node_type_names)

    @property
    def node_type_names(self) -> list[str]:
        """Texts of the types of nodes, each once; or an empty list."""
        return self._core.node_type_names

    def with_sheaf(self, sheaf: Any, *, edge_labels: Any = None) -> "Dataset":
        """The same data with a sheaf for ``SheafClassifier(model="snn")`` or ``"bsnn-given"``. Other networks learn or compute their
        maps, and ignore it.

        :param sheaf: a :class:`CellularSheaf` on this graph, or the path of an .npz file (docs/given_sheaves.md). ``maps`` and
            ``stalk_dim`` of the network must be its family and stalk dimension, otherwise ``fit`` raises ValueError. The network
            normalises the sheaf itself. A file with a ``table`` and without ``edge_labels`` has maps of ``edge_types``
        :param edge_labels: m labels from 0 on, in the order of ``edges``. With ``model="bsnn-given"`` edges of one label have one
            spread around their maps. A file has its own labels
        :raises TypeError: neither a CellularSheaf nor a path
        :raises ValueError: the sheaf is on another graph, or a label is not allowed
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: a file cannot be read; the message names the file and the key

        >>> import numpy, sheafnn
        >>> data = sheafnn.karate_club()
        >>> trivial = sheafnn.CellularSheaf(data, numpy.ones((156, 2)), family="diagonal")
        >>> given = data.with_sheaf(trivial)
        >>> model = sheafnn.SheafClassifier("snn", maps="diagonal", stalk_dim=2, epochs=30).fit(given)
        >>> model.predict(given).shape
        (34,)
        """
        from .sheaf import CellularSheaf

        if not isinstance(sheaf, CellularSheaf):
            if not isinstance(sheaf, (str, os.PathLike)):
                raise TypeError(f"sheaf: {type(sheaf).__name__} is not allowed; expected a CellularSheaf or the path of an .npz file")
            if edge_labels is not None:
                raise ValueError("edge_labels: not allowed with a file; it has a key of its own")
            return Dataset(_core.with_given_sheaf(self._core, os.fspath(sheaf)), self._classes)
        _edges.check_same_graph("sheaf", sheaf.data, self.node_count, self.edges)
        labels = np.empty(0, np.int64)
        if edge_labels is not None:
            labels = _edges.labels_of("edge_labels", _masks.plain(edge_labels), self.edge_count)
        return Dataset(_core.with_given_sheaf(self._core, sheaf.maps, sheaf.edge_weights, labels, 0), self._classes)

    @property
    def given_sheaf(self) -> GivenSheaf | None:
        """The sheaf of :meth:`with_sheaf`; None without one."""
        if self._core.given_sheaf is None:
            return None
        maps, weights, labels, _ = self._core.given_sheaf
        own = weights if len(weights) else np.ones(self.edge_count)
        arcs = 2 * self.edge_count
        return GivenSheaf(maps.reshape(arcs, len(maps) // max(1, arcs)), own, labels if len(labels) else None)

    def make_splits(
        self,
        count: int = 10,
        *,
        train: float = 0.6,
        validation: float = 0.2,
        test: float = 0.2,
        stratified: bool = True,
        seed: _checks.Seed = 0,
    ) -> "Dataset":
        """The same data with random splits of the nodes with a label or, where the data have targets, with a known target. With
        ``stratified`` the shares hold within every class."""
        core = _core.random_splits(
            self._core,
            _checks.whole("count", count, 1, 1000),
            _checks.number("train", train, 0, 1),
            _checks.number("validation", validation, 0, 1),
            _checks.number("test", test, 0, 1),
            bool(stratified),
            _checks.seed(seed),
        )
        return Dataset(core, self._classes)

    @property
    def targets(self) -> Any:
        """n x k values to learn in place of labels, NaN where unknown; None without targets."""
        return self._core.targets

    @property
    def target_names(self) -> list[str]:
        """k names of the targets, or an empty list."""
        return self._core.target_names

    def __reduce__(self) -> tuple[Any, ...]:
        listed = self._core.listed_arcs  # networks on directed arcs tell them from the others
        parts = (listed, self.features, self.codes, self._classes, self.splits, self.name, self.node_names, self.feature_names)
        types = self.edge_types, self.node_types
        of_edges = self._core.edge_labels, self._core.edge_class_names, self._core.edge_targets
        return _unpickled, (parts, self.arc_features, self.targets, self.target_names, self._core.given_sheaf, types, of_edges)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            "a Dataset is not an array, and scikit-learn's cross-validation cuts rows, not graphs; use sheafnn.grid_search(data, grid)"
        )

    def homophily(self) -> float:
        """Share of the edges between labelled nodes that join nodes of one class."""
        return _core.edge_homophily(self._core)

    def __repr__(self) -> str:
        learned = f"{len(self.target_names)} targets" if self.target_names else f"{self.class_count} classes"
        return (
            f"<Dataset {self.name}: {self.node_count} nodes, {self.edge_count} edges, {self.feature_count} features, "
            f"{learned}, {len(self._core.splits())} splits>"
        )


def _unpickled(
    parts: tuple[Any, ...],
    arc_features: np.ndarray | None,
    targets: np.ndarray | None = None,
    target_names: Sequence[str] = (),
    given_sheaf: tuple[Any, ...] | None = None,
    types: tuple[Any, Any] = (None, None),
    of_edges: tuple[Any, ...] | None = None,
) -> Dataset:
    data = Dataset._of_codes(*parts)
    if of_edges is not None:
        data._core.set_edge_values(*of_edges)
    edge_types, node_types = types
    if edge_types is not None:  # in the order of the edges, not of the listed arcs
        edges = np.ascontiguousarray(data.edges, np.int64)
        data._core.set_edge_types(edges, _types.type_texts("edge_types", edge_types, len(edges), "edges"))
    if node_types is not None:
        data._core.set_node_types(_types.type_texts("node_types", node_types, data.node_count, "nodes"))
    if arc_features is not None:
        data._core.set_arc_features(np.ascontiguousarray(arc_features))
    if targets is not None:
        data._core.set_targets(np.ascontiguousarray(targets), list(target_names))
    return data if given_sheaf is None else Dataset(_core.with_given_sheaf(data._core, *given_sheaf), data._classes)


def _numbers_of(types: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Types as whole numbers, 64 bits: the types themselves, or else their codes."""
    return (types if types.dtype.kind == "i" else codes).astype(np.int64)


def _check_names(names: Sequence[str], given: Sequence[Any]) -> None:
    """Names are known by what they print: 1 and '1' would be one.

    :param given: what prints them
    """
    _checks.texts(lambda node: f"node_names[{node}]:", names)
    first: dict[str, int] = {}
    for node, name in enumerate(names):
        before = first.setdefault(name, node)
        if before != node:
            raise ValueError(
                f"node_names: nodes {before} and {node} are both called {name!r}, as {given[before]!r} and {given[node]!r}; "
                "every name must print differently"
            )


def _rows(values: list[Any], attribute: str, argument: str, place: Callable[[int], str]) -> np.ndarray:
    """One row of numbers for each value, all of one length.

    :param place: what messages call value i
    """
    for i, value in enumerate(values):
        if value is None:
            raise ValueError(f"{argument}: {place(i)} has no attribute {attribute!r}")
    rows = [np.atleast_1d(np.asarray(_checks.unmasked(argument, _masks.plain(value)))) for value in values]
    for i, row in enumerate(rows):
        if row.shape != rows[0].shape or row.dtype.kind not in "biuf":
            raise ValueError(f"{argument}: {place(i)} has {row.tolist()!r}; must be numbers, as many as {place(0)} has")
    return np.array(rows, float).reshape(len(rows), -1)


def _check_edge_attributes(data: Any, edges: np.ndarray, used: str) -> None:
    """Refuses weights and features of PyTorch Geometric's edges that would be lost.

    :param edges: 2 x m
    """
    count = edges.shape[1]
    joins = np.flatnonzero(edges[0] != edges[1])  # self-loops are dropped
    for attribute in ("edge_weight", "edge_attr"):
        value = getattr(data, attribute, None)
        if value is None or attribute == used:
            continue
        table = _checks.real(attribute, value)
        if len(table) != count:
            raise ValueError(f"{attribute}: {len(table)} rows are not allowed; must be one for each of {count} edges")
        for column in table.reshape(count, -1 if count else 1).T:
            _edges.check_finite(column, lambda i: f"{attribute}[{i}]")
            more = ", and arc_features='edge_attr' gives them to the network" if attribute == "edge_attr" else ""
            _edges.check_weights(column[joins], lambda i: f"edge {joins[i]}", attribute, more)


def _pyg_splits(data: Any, count: int) -> list[_masks.Sets]:
    """The splits of the masks or node numbers that PyTorch Geometric's data have."""
    parts: list[Any] = []
    names: list[str] = []
    for spellings in _masks.SPELLINGS.values():
        found = [
            f"{part}_{form}" for part in spellings[::-1] for form in ("mask", "masks", "idx", "index")
            if getattr(data, f"{part}_{form}", None) is not None
        ]
        if len(found) > 1:
            raise ValueError(f"{found[1]}: the data also have {found[0]}; only one can be meant")
        names.append(found[0] if found else f"{spellings[-1]}_mask")
        parts.append(getattr(data, found[0]) if found else None)
    if all(part is None for part in parts):
        return []
    if parts[0] is None:
        other = next(name for name, part in zip(names, parts) if part is not None)
        raise ValueError(f"train_mask: None is not allowed; the data have {other}")
    return _masks.split_sets([[] if part is None else part for part in parts], count, names)


def _class_names(classes: np.ndarray) -> list[str]:
    """Names of classes for files; none where they are 0, 1, …"""
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
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
    seed: _checks.Seed = 0,
) -> Dataset:
    """A random graph with classes: the same options and seed give the same dataset, here and in C++.

    :param degree: mean degree
    :param homophily: probability that an edge joins two nodes of one class
    :param class_cycle: probability that another edge joins a class and the next one
    :param words: number of words per node; a word is drawn from a vocabulary of size ``features``, in which each word is typical
        of one class
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
    targets: Sequence[str] | None = None,
    edge_types: bool = False,
    node_types: bool = False,
    edge_labels: str | None = None,
    edge_target: str | None = None,
    label: str = "label",
    ignore_columns: Sequence[str] = (),
    ignore_edge_columns: Sequence[str] = (),
    identity_features: bool = False,
) -> Dataset:
    """A dataset from a file or folder, as the programs read it: .npz, Geom-GCN, CSV (docs/data.md).

    :param splits: whether to take the file's splits, if present
    :param labels: whether the file must have labels, or targets in their place. Without them there are no splits
    :param missing_labels: words of the file that mean an unknown label, besides the empty text and -1; all other words are
        classes then. None: words such as NA or None are errors
    :param targets: names of columns of ``nodes.csv``, or keys of an .npz file, with numbers to learn (:attr:`Dataset.targets`).
        Labels are not read then. With ``labels=False``, targets that the file lacks are unknown
    :param edge_types: whether to read the types of edges, from the column ``type`` of ``edges.csv`` or the key ``edge_types`` of an
        .npz file. Types that differ are refused otherwise
    :param node_types: whether to read the types of nodes, from the column ``type`` of ``nodes.csv`` or the key ``node_types``
    :param edge_labels: column of ``edges.csv``, or key of an .npz file with one value for each listed edge: labels of the edges
        (:attr:`Dataset.edge_labels`), which ``LinkPredictor(targets="classes")`` learns. The number -1 is a label
    :param edge_target: likewise numbers of the edges (:attr:`Dataset.edge_targets`), for ``targets="numbers"``
    :param label: column of ``nodes.csv`` with the labels
    :param ignore_columns: columns of ``nodes.csv`` that are not read, such as texts and dates
    :param ignore_edge_columns: columns of ``edges.csv`` that are not read, such as weights
    :param identity_features: whether the features are one-hot node numbers in place of what the files hold
    :raises FileNotFoundError: there is no such file
    :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
    :raises ValueError: targets that are no names, or a name that occurs twice; labels or numbers of edges that are missing
    """
    for argument, column in (("edge_labels", edge_labels), ("edge_target", edge_target), ("label", label)):
        if (column is not None or argument == "label") and (not isinstance(column, str) or not column):
            raise ValueError(f"{argument}: {column!r} is not allowed; expected the name of a column or key")
    names = _checks.text_list("targets", targets, "a list of names")
    core = _core.load_dataset(
        os.fspath(path), not splits, not labels, missing_words(missing_labels), names, bool(edge_types), bool(node_types),
        edge_labels or "", edge_target or "", label, _checks.names("ignore_columns", ignore_columns),
        _checks.names("ignore_edge_columns", ignore_edge_columns), bool(identity_features),
    )
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
