"""Sets of many small graphs, and networks with one row of outputs per graph."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core, _edges, _masks
from ._estimator import (
    Interrupted,
    Progress,
    check_loaded,
    check_sizes,
    interruption,
    node_weights,
    option_texts,
    sampling,
    target_array,
)
from ._labels import called, encode, known_labels, label_array, same_classes
from .classifier import Uncertainty, class_notes, classes_of
from .dataset import Split, _check_edge_attributes, _class_names, _feature_arrays, _feature_names, _numbers

E = TypeVar("E", bound="GraphEstimator")


class GraphSet:
    """G graphs as one disjoint union of n nodes, with features of the nodes, and a class or numbers per graph.

    Made by :meth:`from_arrays`, :meth:`from_pyg` and :func:`load_graphs`. Graphs are simple and undirected, as in a Dataset, and
    have at least one node.
    """

    _kind, _made_by = _core.GraphSet, "GraphSet.from_arrays(edges, graph_indicator, features, labels), from_pyg or load_graphs(folder)"

    def __init__(self, core: Any = None, classes: Any = None, *more: Any, **named: Any):
        _checks.made(self, core, more or named)
        self._core = core
        self._classes = classes

    @classmethod
    def from_arrays(
        cls,
        edges: Any,
        graph_indicator: Any,
        features: Any = None,
        labels: Any = None,
        *,
        node_tags: Any = None,
        targets: Any = None,
        folds: Iterable[Any] = (),
        name: str = "graphs",
        arc_features: Any = None,
        feature_names: Sequence[str] | None = None,
        missing_labels: Sequence[str] | None = None,
    ) -> "GraphSet":
        """A set of arrays, as an .npz file has them (docs/data.md, "Sets of graphs").

        :param edges: m x 2 node numbers of the union, 0 … n - 1
        :param graph_indicator: n values, the graph of each node: 0 … G - 1, not decreasing
        :param features: n x p, dense or sparse, NaN where a value is missing; None, without tags: the degree
        :param labels: G labels of any kind; unknown labels are None or NaN, or -1 among numbers unless the only labels are -1 and 1
        :param node_tags: n whole numbers, one-hot features before the others
        :param targets: G or G x k values that replace labels, NaN where unknown
        :param folds: lists of graph numbers or masks of G, the test graphs of each fold; disjoint
        :param name: shown in messages
        :param arc_features: m x k values, as in Dataset.from_numpy
        :param feature_names: p names of the columns of features, as in Dataset.from_numpy
        :param missing_labels: texts that mean an unknown label, as in Dataset.from_numpy; ``[]`` makes ``"-"`` a class
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

        >>> graphs = GraphSet.from_arrays([[0, 1], [1, 2], [3, 4]], [0, 0, 0, 1, 1, 2], labels=["a", "b", "a"])
        >>> graphs.graph_count, graphs.features.toarray().ravel().tolist()
        (3, [1.0, 2.0, 1.0, 1.0, 1.0, 0.0])
        """
        indicator = _whole_numbers("graph_indicator", graph_indicator)
        count = len(indicator)
        tags = np.empty(0, np.int64) if node_tags is None else _whole_numbers("node_tags", node_tags)
        names: list[str] = []
        offsets, columns, values, (rows, width) = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), (count, 0)
        if features is not None:
            offsets, columns, values, (rows, width) = _feature_arrays(features)
            if rows != count:
                raise ValueError(f"features: {rows} rows are not allowed; must be one for each of {count} nodes")
            names = _feature_names(feature_names, features, width)
        elif feature_names is not None:
            raise ValueError("feature_names: names without features are not allowed")
        pairs = _edges.edge_array(edges, count)
        core = _core.make_graph_set(str(name), pairs, indicator, tags, offsets, columns, values, width, names)
        graphs = cls(core, np.empty(0, int))
        if arc_features is not None:
            if scipy.sparse.issparse(edges):
                raise ValueError("arc_features: not allowed with an adjacency matrix; list the edges as m x 2 node numbers")
            core.set_arc_features(_edges.arc_table(pairs, arc_features, graphs._arcs(), count))
        if labels is not None and targets is not None:
            raise ValueError("targets: labels are given as well; a set has labels or targets")
        if labels is not None:
            graphs = graphs._with_labels(labels, missing_labels)
        elif targets is not None:
            graphs = cls(core.with_targets(_checked_targets(targets, graphs.graph_count)), np.empty(0, int))
        own_folds = list(folds)
        return graphs.with_folds(own_folds) if own_folds else graphs

    @classmethod
    def from_pyg(
        cls, data: Any, *, arc_features: str | None = None, weights: str = "refuse", folds: Iterable[Any] = (), name: str = "graphs"
    ) -> "GraphSet":
        """A set of PyTorch Geometric's graphs.

        :param data: a list (or a dataset) of ``Data``, or a ``Batch``: edge_index, x, y. Whole numbers in y are labels, others targets;
            without x the degree is the feature
        :param arc_features: ``"edge_attr"`` or another attribute: features of arcs
        :param weights: ``"refuse"`` raises where ``edge_weight`` or ``edge_attr`` would be lost; ``"ignore"`` takes the edges alone
        :param folds: as from_arrays
        :param name: as from_arrays
        :raises ValueError: a graph is not allowed; the message names the graph, the attribute and its value
        """
        _checks.choice("weights", weights, ("refuse", "ignore"))
        batch = getattr(data, "batch", None)
        if batch is None and hasattr(data, "edge_index"):
            raise ValueError("data: one Data is not allowed; expected a list of them, or a Batch")
        members = [data] if batch is not None else list(data)
        if not members:
            raise ValueError("data: an empty list is not allowed; a set needs at least one graph")
        tables: dict[str, list[np.ndarray]] = {}
        nodes = graphs = 0
        for i, one in enumerate(members):
            place = "data" if batch is not None else f"data[{i}]"
            _checks.one_type(place, one)
            if getattr(one, "edge_index", None) is None:
                raise ValueError(f"{place}.edge_index: None is not allowed; must be 2 x m node numbers")
            edges = np.asarray(_masks.plain(one.edge_index))
            if edges.ndim != 2 or edges.shape[0] != 2:
                raise ValueError(f"{place}.edge_index: shape {edges.shape} is not allowed; must be 2 x m")
            x = getattr(one, "x", None)
            count = int(one.num_nodes) if x is None else len(x)
            if edges.size and not 0 <= edges.min() <= edges.max() < count:
                raise ValueError(
                    f"{place}.edge_index: {edges.max() if edges.max() >= count else edges.min()} is not allowed; must be between 0 "
                    f"and {count - 1}"
                )
            if weights == "refuse":
                _check_edge_attributes(one, edges, arc_features or "")
            own = {"edges": edges.T + nodes, "graph_indicator": np.full(count, graphs)}
            if batch is not None:
                own["graph_indicator"] = _whole_numbers("batch", batch)
            for key, attribute in (("features", "x"), ("y", "y"), ("arc_features", arc_features)):
                value = None if attribute is None else getattr(one, attribute, None)
                if value is None and attribute == arc_features and attribute is not None:
                    raise ValueError(f"arc_features: {place} has no attribute {attribute!r}")
                if value is not None:
                    own[key] = _table(value)
            if batch is None and "y" in own:
                own["y"] = own["y"].reshape(1, -1)
            for key, table in own.items():
                tables.setdefault(key, []).append(table)
            nodes, graphs = nodes + count, graphs + 1
        for key, own_tables in tables.items():
            if len(own_tables) != len(members):
                attribute = "x" if key == "features" else key
                raise ValueError(f"{attribute}: {len(own_tables)} of {len(members)} graphs have it; all or none must")
            for i, table in enumerate(own_tables):
                if table.shape[1:] != own_tables[0].shape[1:]:
                    raise ValueError(f"data[{i}]: {key} of shape {table.shape} is not allowed; data[0] has {own_tables[0].shape}")
        joined: dict[str, Any] = {key: np.concatenate(own_tables) for key, own_tables in tables.items()}
        y = joined.pop("y", None)
        if y is not None and y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y is not None:
            joined["targets" if y.dtype.kind == "f" else "labels"] = y
        return cls.from_arrays(joined.pop("edges"), joined.pop("graph_indicator"), folds=folds, name=name, **joined)

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def graph_count(self) -> int:
        return self._core.graph_count

    def __len__(self) -> int:
        return self.graph_count

    @property
    def node_count(self) -> int:
        """Number of nodes of all graphs."""
        return self._core.node_count

    @property
    def edge_count(self) -> int:
        """Number of edges of all graphs."""
        return self._core.edge_count

    @property
    def feature_count(self) -> int:
        return self._core.feature_count

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of ``features``: ``tag=H`` of a tag, ``""`` of an unknown name. Empty where no name is known."""
        return self._core.feature_names

    @property
    def edges(self) -> np.ndarray:
        """m x 2 node numbers of the union, sorted, the smaller one first."""
        return self._core.edges

    @property
    def graph_indicator(self) -> np.ndarray:
        """n values: the graph of each node."""
        return self._core.graph_indicator

    @property
    def features(self) -> scipy.sparse.csr_matrix:
        """n x p."""
        offsets, columns, values = self._core.feature_arrays()
        return scipy.sparse.csr_matrix((values, columns, offsets), shape=(self.node_count, self.feature_count))

    @property
    def classes(self) -> np.ndarray:
        """Distinct known labels, sorted; ``codes`` index into it. Empty without labels."""
        return self._classes

    @property
    def class_count(self) -> int:
        return self._core.class_count

    @property
    def codes(self) -> np.ndarray:
        """G class numbers, -1 where the label is unknown; empty without labels."""
        return self._core.labels

    @property
    def targets(self) -> np.ndarray | None:
        """G x k values, NaN where unknown; None of a set without them."""
        targets = self._core.targets
        return targets if targets.size else None

    @property
    def folds(self) -> list[np.ndarray]:
        """The test graphs of each fold."""
        return self._core.folds

    @property
    def splits(self) -> list[Split]:
        """Training, validation and test graphs of each published split. Splits replace folds."""
        return [Split(*parts) for parts in self._core.splits]

    def with_folds(self, folds: Any, seed: _checks.Seed = 0) -> "GraphSet":
        """The same set with other test folds.

        :param folds: lists of graph numbers or masks of G, disjoint; or a number of folds, drawn as the program graphs draws them.
            Classes are then dealt out evenly; of a regression, graphs without a known target are in no fold
        :param seed: of folds that are drawn
        :raises ValueError: a graph out of range or in two folds, or folds to draw of a set without labels and targets

        >>> graphs = GraphSet.from_arrays([], [0, 1, 2, 3], labels=[0, 1, 0, 1])
        >>> sorted(len(fold) for fold in graphs.with_folds(2).folds)
        [2, 2]
        """
        if np.ndim(folds) == 0 and not hasattr(folds, "__iter__"):
            count = _checks.whole("folds", folds, 2, max(2, self.graph_count))
            return type(self)(self._core.with_stratified_folds(count, _checks.seed(seed)), self._classes)
        own = [
            _masks.node_numbers(fold, self.graph_count, f"folds[{i}]", of="graph") for i, fold in enumerate(folds)
        ]
        return type(self)(self._core.with_folds(own), self._classes)

    def fold_split(self, fold: int, *, validation_fraction: float = 0.1, seed: _checks.Seed = 0) -> Split:
        """Training, validation and test graphs where a fold is tested, as the program graphs draws them.

        :param fold: index of the fold, from 0; for a set with splits, the index of the split
        :param validation_fraction: share of the labelled graphs outside of the fold, within each class, in (0, 1)
        """
        folds, splits = self.folds, self.splits
        if splits:
            return splits[_checks.whole("fold", fold, 0, len(splits) - 1)]
        if not folds:
            raise ValueError(f"fold: {fold!r} is not allowed; the set has no folds: with_folds(10) makes some")
        number = _checks.whole("fold", fold, 0, len(folds) - 1)
        share = _fraction(validation_fraction)
        return Split(*self._core.fold_split(folds[number], share, _checks.seed(seed), number))

    def _arcs(self) -> np.ndarray:
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        return both[np.lexsort((both[:, 1], both[:, 0]))]

    def _with_labels(self, labels: Any, missing_labels: Sequence[str] | None) -> "GraphSet":
        array = label_array(labels)
        if array.ndim != 1 or len(array) != self.graph_count:
            raise ValueError(f"labels: shape {array.shape} is not allowed; expected one label for each of {self.graph_count} graphs")
        known = array[known_labels(array)]
        numbers = [label for label in known.tolist() if isinstance(label, (int, float))]
        signs = len(numbers) == len(known) and set(numbers) == {-1, 1}  # the classes of many sets of graphs
        codes, classes = encode(labels, self.graph_count, minus_one=not signs, missing_labels=missing_labels)
        return type(self)(self._core.with_labels(codes, len(classes), _class_names(classes)), classes)

    def __reduce__(self) -> tuple[Any, ...]:
        core = self._core
        *arrays, (_, width) = _feature_arrays(self.features)  # in order: missing values come last in the library's rows
        parts = (core.name, core.listed_arcs.astype(np.int64), core.graph_indicator.astype(np.int64), *arrays, width)
        names = (core.feature_names, core.edge_feature_names, core.graph_names)
        return _unpickled, (parts, core.arc_features, self.codes, self._classes, self.targets, self.folds, self._core.splits, names)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            "a GraphSet is not an array, which scikit-learn's cross-validation cuts; use graphs.with_folds(10) and fit(graphs, fold=0)"
        )

    def __repr__(self) -> str:
        what = f"{len(self.classes)} classes" if len(self.codes) else "no labels" if self.targets is None else f"{self.targets.shape[1]} targets"
        return (
            f"<GraphSet {self.name}: {self.graph_count} graphs, {self.node_count} nodes, {self.edge_count} edges, "
            f"{self.feature_count} features, {what}, " + (f"{len(self.splits)} splits>" if self.splits else f"{len(self.folds)} folds>")
        )


def load_graphs(path: str | os.PathLike[str]) -> GraphSet:
    """A set from a folder of graphs.csv, nodes.csv and edges.csv, an .npz file or a folder of the TU text format (docs/data.md).

    :raises FileNotFoundError: there is no such file
    :raises RuntimeError: a file cannot be read; the message names the file, the line or key, the value and the limit
    """
    core = _core.load_graphs(os.fspath(path))
    classes = _numbers(core.class_names)
    if classes is None:
        classes = np.array(core.class_names) if core.class_names else np.arange(core.class_count)
    return GraphSet(core, classes)


class GraphEstimator(BaseEstimator):
    """Parameters and methods of GraphClassifier and GraphRegressor."""

    def __init__(
        self,
        model: str = "nsd",
        maps: str = "diagonal",
        stalk_dim: int = 3,
        *,
        pooling: str | None = None,
        channels: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        samples: int | None = None,
        predict_samples: int = 20,
        validation_fraction: float = 0.1,
        network: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        threads: int = 0,
        on_interrupt: str = "raise",
        progress: bool = False,
        callback: Callable[[Any], Any] | None = None,
    ):
        self.model = model
        self.maps = maps
        self.stalk_dim = stalk_dim
        self.pooling = pooling
        self.channels = channels
        self.layers = layers
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.samples = samples
        self.predict_samples = predict_samples
        self.validation_fraction = validation_fraction
        self.network = network
        self.training = training
        self.random_state = random_state
        self.threads = threads
        self.on_interrupt = on_interrupt
        self.progress = progress
        self.callback = callback

    def _split(self, graphs: GraphSet, known: np.ndarray, fold: Any, train: Any, validation: Any) -> Split:
        """Training, validation and test graphs. :param known: which graphs have a label or target"""
        count, share = graphs.graph_count, _fraction(self.validation_fraction)
        seed = _checks.seed(self.random_state, "random_state")
        if fold is not None:
            for name, value in (("train", train), ("validation", validation)):
                if value is not None:
                    raise ValueError(f"{name}: not allowed with fold; the graphs outside of the fold are trained on")
            return graphs.fold_split(fold, validation_fraction=share, seed=seed)
        nothing = np.empty(0, np.int32)
        seen: np.ndarray = np.flatnonzero(known) if train is None else _masks.node_numbers(train, count, "train", of="graph")
        if validation is not None:
            held: np.ndarray = _masks.node_numbers(validation, count, "validation", of="graph")
            seen = seen if train is not None else np.setdiff1d(seen, held)
            return Split(np.ascontiguousarray(seen, np.int32), held, nothing)
        others = np.setdiff1d(np.arange(count), seen).astype(np.int32)
        seen, held, _ = graphs._core.fold_split(others, share, seed, 0)
        return Split(seen, held, nothing)

    def _train(self, core: Any, split: Split, fold: Any) -> None:
        """Trains on the labels or targets of ``core``, a set."""
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_sizes(self, "channels", "layers", "epochs", "patience", "batch_size", "learning_rate", "samples")
        seed = _checks.seed(self.random_state, "random_state")
        network = option_texts("network", self.network, pooling=self.pooling, channels=self.channels, layers=self.layers)
        training = option_texts(
            "training", self.training, epochs=self.epochs, patience=self.patience, batch_size=self.batch_size,
            learning_rate=self.learning_rate, samples=self.samples, threads=self.threads,
        )
        with Progress(self.progress, self.callback) as report:
            model, result, history = _core.train_graphs(
                core, (split.train, split.validation, split.test), self.model, self.maps,
                _checks.whole("stalk_dim", self.stalk_dim, 1, 5), network, training, seed, report, self.on_interrupt == "keep",
            )
        self.model_, self.result_, self.history_ = model, result, history
        self.n_iter_ = result["epochs"]
        self.n_features_in_ = core.feature_count
        self.split_, self.fold_ = split, fold
        if result["stop_reason"] == "interrupted":
            warnings.warn(interruption(result), Interrupted, stacklevel=3)

    def _checked(self, graphs: Any) -> GraphSet:
        if not isinstance(graphs, GraphSet):
            raise TypeError(f"graphs: {type(graphs).__name__} is not allowed; expected a GraphSet")
        own = getattr(self, "n_features_in_", graphs.feature_count)
        if graphs.feature_count != own:
            raise ValueError(f"graphs: {graphs.feature_count} features are not allowed; the network has {own}")
        return graphs

    def _scored(self, graphs: GraphSet, numbers: Any, known: np.ndarray, what: str) -> np.ndarray:
        """Indices of the graphs that a score is computed from."""
        if numbers is not None:
            chosen: np.ndarray = _masks.node_numbers(numbers, graphs.graph_count, "numbers", distinct=False, of="graph")
        else:
            fold = getattr(self, "fold_", None)
            folds = [split.test for split in graphs.splits] or graphs.folds
            chosen = np.arange(graphs.graph_count) if fold is None or fold >= len(folds) else folds[fold]
        chosen = chosen[known[chosen]]
        if len(chosen) == 0:
            raise ValueError(f"numbers: none of these graphs has a known {what}")
        return chosen

    def _save(self, path: str | os.PathLike[str], more: dict[str, str]) -> None:
        check_is_fitted(self, "model_")
        fold = getattr(self, "fold_", None)
        self.model_.save(os.fspath(path), more if fold is None else {**more, "trained_fold": str(int(fold))})

    @classmethod
    def _loaded(cls: type[E], path: str | os.PathLike[str], parameters: Mapping[str, Any], regression: bool) -> E:
        check_loaded(parameters)
        model = _core.GraphModel.load(os.fspath(path))
        if ("targets" in model.metadata) != regression:
            other = "GraphClassifier" if regression else "GraphRegressor"
            raise RuntimeError(f"{os.fspath(path)}: the network is one of a {other}, not of a {cls.__name__}")
        self = cls("bsnn" if model.bayesian else "nsd", model.maps, model.stalk_dimension, **parameters)
        self.model_, self.n_features_in_ = model, model.feature_count
        if "trained_fold" in model.metadata:
            self.fold_ = int(model.metadata["trained_fold"])
        return self


class GraphClassifier(ClassifierMixin, GraphEstimator):
    """Classifies graphs with a sheaf network whose features are pooled over the nodes of each graph (docs/graphs.md).

    All options that are None have the value of the program ``graphs``.

    :param model: ``"nsd"``, or ``"bsnn"`` (Bayesian)
    :param maps: ``"diagonal"``, ``"special-orthogonal"`` or ``"identity"``, and others that the package was built with
    :param stalk_dim: stalk dimension, 3, and others that the package was built with
    :param pooling: ``"sum"``, ``"mean"``, ``"max"``, ``"attention"`` or ``"harmonic"``; None: sum
    :param channels: feature channels per stalk coordinate, 1 to 1024; None: 16
    :param layers: diffusion layers, 1 to 64; None: 4
    :param epochs: largest number of epochs; None: 200
    :param patience: stop after this many epochs without improvement; None: 50
    :param batch_size: graphs in a step, 0: all; None: 32
    :param learning_rate: Adam's, above 0; None: 0.005
    :param samples: posterior samples averaged at evaluation; None: 3
    :param predict_samples: posterior samples averaged by ``predict`` and the like
    :param validation_fraction: share of the training graphs that are held out to select the best epoch, in (0, 1)
    :param network: further options of the network (``PooledOptions`` of docs/options.md), e.g. ``{"pooling_steps": 4}``
    :param training: further options of the training (``TrainOptions``), e.g. ``{"dropout": 0.2}``
    :param random_state: seed of weights, dropout, noise and of the graphs that are held out
    :param threads: 0: as many as the graphs are worth
    :param on_interrupt: as in SheafClassifier
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``: ``classes_``, ``n_features_in_``, ``n_iter_``, ``fold_``, ``split_`` (training, validation and test graphs),
    ``result_`` (figures of the best epoch) and ``history_``. The last has an array for each quantity of the epochs.

    >>> ring, path = [[0, 1], [1, 2], [2, 3], [3, 0]], [[4, 5], [5, 6], [6, 7]]
    >>> edges = np.concatenate([np.array(ring + path) + 8 * i for i in range(10)])
    >>> graphs = GraphSet.from_arrays(edges, np.repeat(np.arange(20), 4), labels=["ring", "path"] * 10)
    >>> model = GraphClassifier(channels=4, layers=2, epochs=60).fit(graphs)
    >>> model.predict_proba(graphs).shape
    (20, 2)
    """

    def fit(
        self,
        X: GraphSet,
        y: Any = None,
        *,
        fold: int | None = None,
        train: Any = None,
        validation: Any = None,
        missing_labels: Sequence[str] | None = None,
    ) -> "GraphClassifier":
        """Trains the network.

        :param X: a GraphSet with labels
        :param y: G labels that replace the labels of the set
        :param fold: index of the fold that is tested; a share of the other labelled graphs validates, and the rest is trained on
        :param train: numbers or mask of the training graphs; None: all graphs with a label
        :param validation: numbers or mask of the graphs that select the best epoch; None: the share ``validation_fraction`` of
            ``train``
        :param missing_labels: with y: texts that mean an unknown label, as in Dataset.from_numpy
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        self.__dict__.pop("n_features_in_", None)
        graphs = self._checked(X)
        if y is not None:
            with called("y"):
                graphs = graphs._with_labels(y, missing_labels)
        elif missing_labels is not None:
            raise ValueError(f"missing_labels: {missing_labels!r} is not allowed without y; a GraphSet has its own labels")
        if len(graphs.classes) < 2:
            raise ValueError(f"X: {graphs!r} is not allowed; a classifier needs at least two classes")
        self._train(graphs._core, self._split(graphs, graphs.codes >= 0, fold, train, validation), fold)
        self.classes_ = graphs.classes
        return self

    def uncertainty(self, X: GraphSet) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every graph of a set: a row is a graph."""
        check_is_fitted(self, "model_")
        return Uncertainty(**self.model_.predict(self._checked(X)._core, *sampling(self)))

    def predict_proba(self, X: GraphSet) -> np.ndarray:
        """Class probabilities, G x C, of every graph; a column for each of ``classes_``."""
        return self.uncertainty(X).probabilities

    def predict(self, X: GraphSet) -> np.ndarray:
        """The most probable class of every graph."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, X: GraphSet, y: Any = None, numbers: Any = None, sample_weight: Any = None) -> float:
        """Share of the graphs whose class is predicted.

        :param y: G labels that replace the labels of the set
        :param numbers: numbers or mask of the graphs to score; None: the fold that was tested, or all labelled graphs if there was
            no fold
        :param sample_weight: G values, at least 0; None: all graphs count alike
        :raises ValueError: none of these graphs has a known label
        """
        probabilities = self.predict_proba(X)
        with called("y"):
            graphs = X if y is None else X._with_labels(y, ())
        known = graphs.codes >= 0 if len(graphs.codes) else np.zeros(graphs.graph_count, bool)
        chosen = self._scored(graphs, numbers, known, "label")
        right = probabilities.argmax(axis=1)[chosen] == same_classes(self.classes_, graphs.classes)[graphs.codes[chosen]]
        return float(np.average(right, weights=_weights(sample_weight, graphs.graph_count, chosen)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network to a .safetensors file, which C++ and the program graphs read."""
        check_is_fitted(self, "model_")
        self._save(path, class_notes(self.classes_))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "GraphClassifier":
        """The classifier with the network of a file that ``save`` or the program graphs wrote.

        :param parameters: parameters of predictions: predict_samples, random_state, threads
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        self = cls._loaded(path, parameters, False)
        own = "class_data" in self.model_.metadata or not self.model_.class_names
        numbers = None if own else _numbers(self.model_.class_names)
        self.classes_ = classes_of(os.fspath(path), self.model_) if numbers is None else numbers
        return self


class GraphRegressor(RegressorMixin, GraphEstimator):
    """Predicts numbers of graphs with a sheaf network whose features are pooled over the nodes of each graph.

    The parameters are the parameters of :class:`~sheafnn.GraphClassifier`. The network is trained on targets that are shifted and
    scaled to mean 0 and deviation 1, with a Gaussian likelihood of deviation 1.

    After ``fit``: the attributes of GraphClassifier; also ``target_mean_`` and ``target_scale_`` of each target. An accuracy is R²
    here. Losses and R² refer to the scaled targets.

    >>> edges = [[i, i + 1] for i in range(60) if i % 6 != 5]
    >>> graphs = GraphSet.from_arrays(edges, np.repeat(np.arange(10), 6), np.arange(60)[:, None] / 60, targets=np.arange(10.0))
    >>> GraphRegressor(channels=4, layers=2, epochs=20).fit(graphs).predict(graphs).shape
    (10,)
    """

    def fit(
        self, X: GraphSet, y: Any = None, *, fold: int | None = None, train: Any = None, validation: Any = None
    ) -> "GraphRegressor":
        """Trains the network.

        :param X: a GraphSet with targets
        :param y: G or G x k values that replace the targets of the set, NaN where unknown
        :param fold: as in GraphClassifier.fit; the same holds for train and validation
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        self.__dict__.pop("n_features_in_", None)
        graphs = self._checked(X)
        targets = _targets_of(graphs, y)
        known = ~np.isnan(targets).all(axis=1)
        core = graphs._core.with_targets(targets)
        split = self._split(GraphSet(core, graphs.classes), known, fold, train, validation)
        seen = targets[split.train]
        without = np.flatnonzero(np.isnan(seen).all(axis=0))
        if without.size:
            raise ValueError(f"y: target {without[0]} is not known of any graph to train on")
        mean, scale = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
        scale[~(scale > 0)] = 1
        self._train(core.with_targets(np.ascontiguousarray((targets - mean) / scale)), split, fold)
        self.target_mean_, self.target_scale_ = mean, scale
        return self

    def predict(self, X: GraphSet, return_std: bool = False) -> Any:
        """The targets of every graph of a set, G for one target or G x k: means over ``predict_samples`` samples of the posterior.

        :param return_std: return (means, standard deviations). The deviations are of the means of the samples: what the network
            does not know. The scatter of the targets themselves is not in them
        :raises ValueError: ``return_std`` with the model "nsd"
        """
        check_is_fitted(self, "model_")
        if return_std and not self.model_.bayesian:
            raise ValueError("return_std: True is not allowed; the model 'nsd' has no posterior, 'bsnn' has")
        samples = self.model_.sample_numbers(self._checked(X)._core, *sampling(self))
        means = samples.mean(axis=0) * self.target_scale_ + self.target_mean_
        deviations = samples.std(axis=0) * self.target_scale_
        if means.shape[1] == 1:
            means, deviations = means[:, 0], deviations[:, 0]
        return (means, deviations) if return_std else means

    def score(self, X: GraphSet, y: Any = None, numbers: Any = None, sample_weight: Any = None) -> float:
        """R² of the graphs; for several targets, the mean of their R². Graphs with an unknown target do not count.

        :param y: G or G x k values that replace the targets of the set
        :param numbers: as in GraphClassifier.score; the same holds for sample_weight
        """
        predicted = self.predict(X)
        truth = _targets_of(X, y)
        predicted = predicted.reshape(len(predicted), -1)
        if truth.shape != predicted.shape:
            raise ValueError(f"y: shape {truth.shape} is not allowed; the network predicts {predicted.shape}")
        chosen = self._scored(X, numbers, ~np.isnan(truth).any(axis=1), "target")
        weights = _weights(sample_weight, X.graph_count, chosen)
        return float(r2_score(truth[chosen], predicted[chosen], sample_weight=weights))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a .safetensors file."""
        check_is_fitted(self, "model_")
        more = {"targets": "numbers"}
        for name in ("target_mean", "target_scale"):
            more[name] = np.ascontiguousarray(getattr(self, f"{name}_"), "<f8").tobytes().hex()
        self._save(path, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "GraphRegressor":
        """The regressor with the network of a file that ``save`` wrote.

        :param parameters: parameters of predictions: predict_samples, random_state, threads
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        self = cls._loaded(path, parameters, True)
        try:
            for name in ("target_mean", "target_scale"):
                values = np.frombuffer(bytes.fromhex(self.model_.metadata[name]), "<f8").copy()
                if values.shape != (self.model_.outputs,) or not np.isfinite(values).all():
                    raise ValueError(f"{name}: {values} is not allowed; expected {self.model_.outputs} finite numbers")
                setattr(self, f"{name}_", values)
        except (KeyError, ValueError) as error:
            raise RuntimeError(f"{os.fspath(path)}: {error}") from None
        return self


def _unpickled(
    parts: Sequence[Any], arc_features: Any, codes: np.ndarray, classes: np.ndarray, targets: np.ndarray | None, folds: list[np.ndarray],
    splits: Sequence[Any] = (), names: Sequence[list[str]] = ([], [], []),
) -> GraphSet:
    name, arcs, indicator, offsets, columns, values, width = parts
    core = _core.make_graph_set(name, arcs, indicator, np.empty(0, np.int64), offsets, columns, values, width, names[0])
    core.edge_feature_names, core.graph_names = names[1], names[2]
    if arc_features is not None:
        core.set_arc_features(np.ascontiguousarray(arc_features))
    if len(codes):
        core = core.with_labels(codes, len(classes), _class_names(classes))
    if targets is not None:
        core = core.with_targets(targets)
    return GraphSet(core.with_splits(list(splits)) if splits else core.with_folds(folds), classes)


def _fraction(value: Any) -> float:
    """The share of graphs that validates."""
    own = _checks.number("validation_fraction", value, 0, 1)
    if not 0 < own < 1:
        raise ValueError(f"validation_fraction: {value!r} is not allowed; must be above 0 and below 1")
    return own


def _table(value: Any) -> np.ndarray:
    """Numbers of PyTorch Geometric; of one axis at least."""
    return np.atleast_1d(np.asarray(_masks.plain(_masks.dense(value))))


def _whole_numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(_masks.plain(values))
    if array.ndim != 1:
        raise ValueError(f"{name}: {array.ndim} axes are not allowed; expected one, a number for each node")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: {array.dtype} is not allowed; expected whole numbers")
    return np.ascontiguousarray(array, np.int64)


def _checked_targets(targets: Any, graphs: int, name: str = "targets") -> np.ndarray:
    """G x k."""
    own = target_array(targets, graphs, name, of="graphs")
    return np.ascontiguousarray(own if own.ndim == 2 else own[:, None])


def _targets_of(graphs: GraphSet, y: Any) -> np.ndarray:
    if y is not None:
        return _checked_targets(y, graphs.graph_count, "y")
    if graphs.targets is None:
        raise ValueError(f"X: {graphs!r} is not allowed; a regression needs targets")
    return graphs.targets


def _weights(weights: Any, graphs: int, chosen: np.ndarray) -> np.ndarray | None:
    return None if weights is None else node_weights(weights, graphs, chosen, of="graphs")
