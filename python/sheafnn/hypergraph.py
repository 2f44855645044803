"""Hypergraphs, whose hyperedges join any number of nodes, and sheaf hypergraph networks."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable, ClassVar, Iterable, Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core, _masks
from ._estimator import Progress, check_loaded, check_sizes, number_of_split, option_texts, sampling
from ._labels import encode as _encode
from ._labels import missing_words, same_classes
from .classifier import Uncertainty, class_notes, classes_of
from .dataset import NodeData, _class_names, _feature_arrays, _feature_names


class Hypergraph(NodeData):
    """A node classification task on a hypergraph: n nodes, n x p features, labels and splits.

    You make one with :meth:`from_numpy`, :meth:`from_lists`, :func:`load_hypergraph` and :func:`synthetic_hypergraph`.
    """

    _kind, _made_by = _core.HypergraphDataset, "Hypergraph.from_numpy(incidence, features, labels), from_lists or load_hypergraph(path)"
    _copy = staticmethod(_core.copy_hypergraph)

    @classmethod
    def from_numpy(
        cls,
        incidence: Any,
        features: Any,
        labels: Any = None,
        *,
        hyperedge_count: int | None = None,
        splits: Iterable[Any] = (),
        name: str = "hypergraph",
        feature_names: Sequence[str] | None = None,
        missing_labels: Sequence[str] | None = None,
    ) -> "Hypergraph":
        """A hypergraph from arrays.

        :param incidence: nnz x 2 numbers: each row has a node and a hyperedge that the node belongs to, and each pair appears
            once
        :param features: as in Dataset.from_numpy
        :param labels: as in Dataset.from_numpy
        :param hyperedge_count: number of hyperedges; None: one more than the largest number of a hyperedge
        :param splits: as in Dataset.with_splits
        :param name: name of the hypergraph in messages
        :param feature_names: as in Dataset.from_numpy
        :param missing_labels: as in Dataset.from_numpy
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit

        >>> data = Hypergraph.from_numpy([[0, 0], [1, 0], [2, 0], [2, 1]], [[1.0], [2.0], [0.0]], ["a", "b", "b"])
        >>> data.node_count, data.hyperedge_count, list(map(str, data.classes))
        (3, 2, ['a', 'b'])
        """
        offsets, columns, values, (count, width) = _feature_arrays(features)
        if labels is None:
            codes, classes = np.empty(0, np.int32), np.empty(0, int)
        else:
            codes, classes = _encode(labels, count, minus_one=True, missing_labels=missing_labels)
        given = _masks.plain(incidence)
        if np.ma.is_masked(given):
            raise ValueError("incidence: a masked entry is not allowed; expected nnz x 2 numbers")
        pairs = np.asarray(given)
        if pairs.size == 0:
            pairs = np.empty((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"incidence: shape {pairs.shape} is not allowed; must be nnz x 2")
        if pairs.dtype.kind not in "iu":
            raise ValueError(f"incidence: numbers of type {pairs.dtype} are not allowed; must be whole numbers")
        outside = np.flatnonzero((pairs[:, 1] < 0) | (pairs[:, 1] >= 2**31 - 1))
        if len(outside):
            number = pairs[outside[0], 1]
            raise ValueError(f"incidence[{outside[0]}, 1]: {number} is not allowed; must be between 0 and {2**31 - 2}")
        largest = int(pairs[:, 1].max()) + 1 if len(pairs) else 0
        hyperedges = largest if hyperedge_count is None else _checks.whole("hyperedge_count", hyperedge_count, 0, 2**31 - 1)
        parts = (str(name), count, hyperedges, np.ascontiguousarray(pairs, np.int64), offsets, columns, values, width, codes)
        data = _made(cls, parts, classes, _feature_names(feature_names, features, width))
        own_splits = list(splits)
        return data.with_splits(own_splits) if own_splits else data

    @classmethod
    def from_lists(cls, hyperedges: Iterable[Iterable[int]], features: Any, labels: Any = None, **more: Any) -> "Hypergraph":
        """A hypergraph from lists of node numbers, one list for each hyperedge.

        :param more: other parameters of from_numpy

        >>> Hypergraph.from_lists([[0, 1, 2], [2]], [[1.0], [2.0], [0.0]]).incidence.tolist()
        [[0, 0], [1, 0], [2, 0], [2, 1]]
        """
        members = [list(nodes) for nodes in hyperedges]
        pairs = [(node, number) for number, nodes in enumerate(members) for node in nodes]
        return cls.from_numpy(np.array(pairs or np.empty((0, 2), int)), features, labels, **{"hyperedge_count": len(members), **more})

    @property
    def hyperedge_count(self) -> int:
        return self._core.hyperedge_count

    @property
    def incidence(self) -> np.ndarray:
        """nnz x 2, sorted by node and hyperedge."""
        return self._core.incidence

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("a Hypergraph is not an array, which scikit-learn's cross-validation cuts; use sheafnn.fit_many(data)")

    def __reduce__(self) -> tuple[Any, ...]:
        pairs = self.incidence.astype(np.int64)
        *arrays, (_, width) = _feature_arrays(self.features)
        parts = (self.name, self.node_count, self.hyperedge_count, pairs, *arrays, width, self.codes)
        return _made, (type(self), parts, self._classes, self.feature_names, [tuple(split) for split in self.splits])

    def __repr__(self) -> str:
        return f"<Hypergraph {self.name!r}: {self.node_count} nodes, {self.hyperedge_count} hyperedges, {self.feature_count} features>"


def _made(cls: type[Hypergraph], parts: tuple[Any, ...], classes: np.ndarray, names: list[str], splits: Iterable[Any] = ()) -> Hypergraph:
    """
    :param parts: what make_hypergraph takes before the classes
    :param names: of the features
    """
    make: Any = _core.make_hypergraph
    core = make(*parts, len(classes), _class_names(classes), names)
    core.set_splits(list(splits))
    return cls(core, classes)


def load_hypergraph(
    path: str | os.PathLike[str],
    *,
    prediction: bool = False,
    label: str = "label",
    ignore_columns: Sequence[str] = (),
    missing_labels: Sequence[str] | None = None,
) -> Hypergraph:
    """A hypergraph in an .npz file, or in a folder with hyperedges.csv and nodes.csv (docs/data.md).

    :param prediction: whether the data serve a prediction only: labels may be missing, and splits are ignored
    :param label: column of ``nodes.csv`` with the labels
    :param ignore_columns: columns of ``nodes.csv`` that are not read, such as texts and dates
    :param missing_labels: as in :func:`load_dataset`
    :raises FileNotFoundError: there is no such file
    :raises RuntimeError: the file cannot be read; the message names the file, the line or key, the value and the limit
    :raises ValueError: names of columns that are no texts, or empty
    """
    if not isinstance(label, str) or not label:
        raise ValueError(f"label: {label!r} is not allowed; expected the name of a column or key")
    ignored = _checks.names("ignore_columns", ignore_columns)
    return Hypergraph(_core.load_hypergraph(os.fspath(path), bool(prediction), label, ignored, missing_words(missing_labels)))


def synthetic_hypergraph(
    nodes: int = 1000,
    classes: int = 5,
    features: int = 100,
    words: int = 10,
    hyperedges: int = 1000,
    least_size: int = 2,
    largest_size: int = 6,
    homophily: float = 0.7,
    feature_noise: float = 0.5,
    splits: int = 10,
    seed: _checks.Seed = 0,
) -> Hypergraph:
    """A seeded task in which each hyperedge has a class. With probability ``homophily`` a member has that class, and otherwise it
    is any node. Features are counts of words.

    :raises ValueError: an option is out of range; the message names the option, its value and the limit
    """
    return Hypergraph(
        _core.synthetic_hypergraph(
            nodes, classes, features, words, hyperedges, least_size, largest_size, float(homophily), float(feature_noise), splits,
            _checks.seed(seed),
        )
    )


class HypergraphClassifier(ClassifierMixin, BaseEstimator):
    """Classifies the nodes of a hypergraph with a sheaf hypergraph network.

    :param model: ``"shgnn"``, or ``"bshgnn"`` (Bayesian)
    :param maps: ``"diagonal"``, ``"special-orthogonal"`` or ``"general-linear"``; of ``"shgnn"`` also ``"identity"``, for comparisons
    :param stalk_dim: stalk dimension, 2 to 4
    :param channels: number of feature channels per stalk coordinate, 1 to 1024; None: 16
    :param layers: number of diffusion layers, 1 to 64; None: 2
    :param epochs: largest number of epochs; None: 500
    :param patience: stop after this many epochs without improvement; None: 200
    :param learning_rate: Adam's, above 0; None: 0.01
    :param samples: posterior samples averaged at evaluation; None: 3
    :param predict_samples: number of posterior samples that ``predict`` and the other predictions average
    :param network: further options of the network (``HypergraphOptions`` of docs/options.md), e.g. ``{"laplacian": "nonlinear"}``;
        ``projection`` is a list of numbers, one for each channel
    :param training: further options of the training (``TrainOptions``), e.g. ``{"weight_decay": 0.01}``
    :param random_state: seed of weights, dropout and noise
    :param threads: number of threads; 0: as many as the hypergraph is worth
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``: ``classes_``, ``n_features_in_``, and ``result_``, the figures of the best epoch.

    >>> import sheafnn
    >>> data = sheafnn.synthetic_hypergraph(nodes=100, classes=2, hyperedges=100, homophily=0.9, splits=1)
    >>> model = HypergraphClassifier(epochs=30).fit(data)
    >>> model.predict_proba(data).shape
    (100, 2)
    """

    def __init__(
        self,
        model: str = "shgnn",
        maps: str = "diagonal",
        stalk_dim: int = 2,
        *,
        channels: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        samples: int | None = None,
        predict_samples: int = 20,
        network: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        random_state: int = 0,
        threads: int = 0,
        progress: bool = False,
        callback: Callable[[Any], Any] | None = None,
    ):
        self.model = model
        self.maps = maps
        self.stalk_dim = stalk_dim
        self.channels = channels
        self.layers = layers
        self.epochs = epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.samples = samples
        self.predict_samples = predict_samples
        self.network = network
        self.training = training
        self.random_state = random_state
        self.threads = threads
        self.progress = progress
        self.callback = callback

    def fit(self, X: Hypergraph, y: Any = None, *, split: int = 0) -> "HypergraphClassifier":
        """Trains the network.

        :param X: a Hypergraph with labels and splits
        :param y: must be None: a Hypergraph has its own labels
        :param split: the index of the split
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        data = self._checked(X)
        if y is not None:
            raise ValueError("y: a Hypergraph has its own labels")
        if not data.splits:
            raise ValueError("split: the hypergraph has no splits; make some with with_splits()")
        plan = self._plan_of_split(data, split)
        with Progress(self.progress, self.callback) as report:
            outcome = plan.train(report)
        self._take(plan, outcome)
        return self

    def _seed(self) -> int:
        return _checks.seed(self.random_state, "random_state")

    def _plan_of_split(self, data: Hypergraph, split: int) -> "_Plan":
        """A training on data with splits, checked."""
        check_sizes(self, "channels", "layers", "epochs", "patience", "learning_rate", "samples")
        network = option_texts("network", self.network, channels=self.channels, layers=self.layers)
        training = option_texts(
            "training", self.training, epochs=self.epochs, patience=self.patience, learning_rate=self.learning_rate, samples=self.samples,
            threads=self.threads,
        )
        number = _checks.whole("split", split, 0, len(data.splits) - 1)
        model = (self.model, self.maps, _checks.whole("stalk_dim", self.stalk_dim, 2, 4))
        return _Plan(data, number, model, network, training, self._seed())

    def _take(self, plan: "_Plan", outcome: tuple[Any, ...]) -> list[tuple[str, type[Warning]]]:
        """Takes what a training gave. Nothing is to be warned of."""
        self.model_, self.result_ = outcome
        self.classes_ = plan.data.classes
        self.n_features_in_ = plan.data.feature_count
        self.split_ = plan.split
        return []

    def uncertainty(self, X: Hypergraph) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every node of a hypergraph."""
        check_is_fitted(self, "model_")
        data = self._checked(X)
        return Uncertainty(**self.model_.predict(data._core, *sampling(self)))

    def predict_proba(self, X: Hypergraph) -> np.ndarray:
        """Class probabilities of every node, n x C, with a column for each of ``classes_``."""
        return self.uncertainty(X).probabilities

    def predict(self, X: Hypergraph) -> np.ndarray:
        """The most probable class of every node."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, X: Hypergraph, y: Any = None, nodes: Any = None) -> float:
        """The accuracy: the share of the nodes whose class is predicted.

        :param nodes: mask or indices of the nodes to score. None: the test nodes of the split that the network was trained on, or
            all nodes of a Hypergraph without splits
        :raises ValueError: none of them has a known label
        """
        probabilities = self.predict_proba(X)
        if y is not None:
            raise ValueError("y: a Hypergraph has its own labels")
        chosen: np.ndarray
        if nodes is not None:
            chosen = _masks.node_numbers(nodes, X.node_count, "nodes", distinct=False)
        else:
            chosen = X.splits[number_of_split(X, self.split_)].test if X.splits else np.arange(X.node_count)
        chosen = chosen[X.codes[chosen] >= 0] if len(X.codes) else chosen[:0]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has a known label")
        same = same_classes(self.classes_, X.classes)
        return float(np.mean(probabilities.argmax(axis=1)[chosen] == same[X.codes[chosen]]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network to a .safetensors file, which C++ and the program predict read.

        :raises ValueError: a file cannot hold the labels: they are neither numbers, texts, bytes nor times
        """
        check_is_fitted(self, "model_")
        self.model_.save(os.fspath(path), class_notes(self.classes_))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, split: int = 0, **parameters: Any) -> "HypergraphClassifier":
        """Loads a classifier from a file.

        :param split: the split that the network was trained on, from 0 on, which score() needs
        :param parameters: parameters of predictions: predict_samples, random_state, threads
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        number = _checks.whole("split", split, 0, 2**31 - 1)
        check_loaded(parameters)
        model = _core.HypergraphModel.load(os.fspath(path))
        self = cls(model.kind, model.maps, model.stalk_dimension, **parameters)
        self.model_, self.split_ = model, number
        self.classes_ = classes_of(os.fspath(path), model, model.class_count)
        return self

    @staticmethod
    def _checked(data: Any) -> Hypergraph:
        if not isinstance(data, Hypergraph):
            raise TypeError(f"X: {type(data).__name__} is not allowed; expected a Hypergraph")
        return data


@dataclasses.dataclass(frozen=True)
class _Plan:
    """A training: what the library needs to know."""

    data: Hypergraph
    split: int
    model: tuple[str, str, int]  #: name, maps, stalk dimension
    network: dict[str, str]
    training: dict[str, str]
    seed: int
    device: ClassVar[int] = -1  #: the CPU

    def train(self, report: Callable[[Any, int], Any] | None, keep: bool = False) -> tuple[Any, ...]:
        """What _take() takes.

        :param report: called after every epoch
        :param keep: of other classifiers: Ctrl-C keeps the best parameters
        """
        return _core.train_hypergraph(
            self.data._core, self.split, *self.model, self.network, self.training, self.seed, report
        )
