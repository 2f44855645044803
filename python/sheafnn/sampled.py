"""Training on drawn neighbours, of graphs that may be larger than memory."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core
from ._estimator import (
    Interrupted,
    Progress,
    check_kind,
    check_loaded,
    check_sizes,
    interruption,
    number_of_split,
    option_texts,
    sampling,
    scored_nodes,
)
from ._labels import same_classes
from ._masks import node_numbers
from .classifier import Uncertainty, class_notes, classes_of
from .dataset import Dataset, NodeData


class LargeGraph(NodeData):
    """A node classification task in a folder of .npy arrays (docs/large_graphs.md). Only the rows that a step needs are read.

    The labels and the splits are in memory. Do not change the folder while you use it.

    :param folder: the folder
    :raises FileNotFoundError: there is no such folder, or an array is missing; the message names the file
    :raises RuntimeError: an array is damaged or does not fit the others; the message names the file, the entry, its value and the
        limit. Rows of the graph and features are checked when they are read
    """

    _kind = _core.LargeGraph
    _copy = staticmethod(_core.copy_large_graph)

    def __init__(self, folder: str | os.PathLike[str]):
        super().__init__(_core.LargeGraph.open(os.fspath(folder)))
        self._folder = os.path.abspath(folder)

    def _like(self, core: Any) -> "LargeGraph":
        other = type(self).__new__(type(self))
        NodeData.__init__(other, core, self._classes)
        other._folder = self._folder
        return other

    @property
    def folder(self) -> str:
        """The absolute path of the folder."""
        return self._folder

    @property
    def edge_count(self) -> int:
        """Number of undirected edges."""
        return self._core.edge_count

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._folder, [tuple(split) for split in self.splits])

    def __repr__(self) -> str:
        train, validation, test = map(len, self.splits[0])
        return (
            f"<LargeGraph {self.name}: {self.node_count} nodes, {self.edge_count} edges, {self.feature_count} features, "
            f"{self.class_count} classes; {train} training, {validation} validation and {test} test nodes>"
        )


def _reopened(folder: str, splits: list[Any]) -> LargeGraph:
    return LargeGraph(folder).with_splits(splits)


class SampledClassifier(ClassifierMixin, BaseEstimator):
    """Classifies nodes with a sheaf network that sees drawn neighbours of a few nodes at a time (docs/large_graphs.md).

    It takes a :class:`~sheafnn.LargeGraph`, whose rows are read as needed, or a :class:`~sheafnn.Dataset`. All options that are None
    have the value of the program ``large_graph``.

    :param model: any network of SheafClassifier but those with given maps, ``"snn"`` and ``"bsnn-given"``
    :param maps: as in SheafClassifier
    :param stalk_dim: stalk dimension, 1 to 5
    :param fan_outs: numbers of neighbours that are drawn for a node at distance 0, 1, … of the nodes of a step, 0: all; None: 10, 10
    :param batch_size: training nodes in a step, 0: all; None: 512
    :param steps: largest number of steps in an epoch, 0: as many as all training nodes need; None: 0
    :param evaluated: largest number of validation nodes, and of test nodes, to predict after an epoch, 0: all; None: 0
    :param channels: feature channels per stalk coordinate
    :param layers: layers; None: 2
    :param epochs: largest number of epochs; None: 10
    :param patience: stop after this many epochs without improvement
    :param learning_rate: Adam's, above 0
    :param samples: posterior samples averaged at evaluation; None: 3
    :param predict_samples: posterior samples averaged by ``predict`` and the like
    :param network: further options of the network (docs/options.md), e.g. ``{"layer": "wave"}``
    :param training: further options of the training (``TrainOptions``), e.g. ``{"dropout": 0.5}``
    :param random_state: seed of weights, dropout, noise and of the drawn neighbours
    :param threads: 0: as many as a sample is worth
    :param on_interrupt: as in SheafClassifier; ``"keep"`` ends the training after the epoch
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``: ``classes_``, ``n_features_in_``, ``n_iter_``, ``split_``, ``feature_treatment_``, ``result_`` (figures of the best
    epoch) and ``history_`` (an array for each quantity of the epochs).

    >>> import sheafnn
    >>> data = sheafnn.synthetic(nodes=200, classes=2, features=20, words=5, homophily=0.9, splits=1)
    >>> model = SampledClassifier("nsd", fan_outs=(5, 5), batch_size=32, epochs=3).fit(data)
    >>> model.predict_proba(data, nodes=[7, 3]).shape
    (2, 2)
    """

    def __init__(
        self,
        model: str = "nsd",
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        fan_outs: Sequence[int] | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
        evaluated: int | None = None,
        channels: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        samples: int | None = None,
        predict_samples: int = 20,
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
        self.fan_outs = fan_outs
        self.batch_size = batch_size
        self.steps = steps
        self.evaluated = evaluated
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
        self.on_interrupt = on_interrupt
        self.progress = progress
        self.callback = callback

    def fit(self, X: LargeGraph | Dataset, y: Any = None, *, split: int = 0) -> "SampledClassifier":
        """Trains the network.

        :param X: a LargeGraph, or a Dataset with labels and splits
        :param y: none: X has its own labels
        :param split: the index of the split
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises KeyboardInterrupt: Ctrl-C was pressed, and on_interrupt is not ``"keep"``
        :raises RuntimeError: a diverged training, or a row that cannot be read; the message names the epoch, or the file and the node
        """
        data = _graph(X)
        if y is not None:
            raise ValueError("y: not allowed; X has its own labels")
        if data.class_count == 0:
            raise ValueError(f"X: {data!r} is not allowed; a training needs labels")
        number = number_of_split(data, split)
        _checks.choice("model", self.model, _core.model_names)
        _checks.choice("maps", self.maps, _core.maps_names)
        _checks.whole("stalk_dim", self.stalk_dim, _core.least_stalk_dim(self.model), 5)
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_sizes(
            self, "batch_size", "steps", "evaluated", "channels", "layers", "epochs", "patience", "learning_rate", "samples"
        )
        drawn = option_texts("sampling", None, steps=self.steps, evaluated=self.evaluated)
        network = option_texts("network", self.network, channels=self.channels, layers=self.layers)
        training = option_texts(
            "training", self.training, epochs=self.epochs, patience=self.patience, batch_size=self.batch_size,
            learning_rate=self.learning_rate, samples=self.samples, threads=self.threads,
        )
        with Progress(self.progress, self.callback) as report:
            model, result, history = _core.train_on_samples(
                data._core, number, self.model, self.maps, self.stalk_dim, _fan_outs(self.fan_outs), drawn, network, training,
                _checks.seed(self.random_state, "random_state"), report, self.on_interrupt == "keep",
            )
        self.model_, self.result_, self.history_ = model, result, history
        self.n_iter_ = result["epochs"]
        self.classes_ = data.classes
        self.n_features_in_ = data.feature_count
        self.feature_treatment_ = model.feature_treatment
        self.split_ = number
        if result["stop_reason"] == "interrupted":
            warnings.warn(interruption(result), Interrupted, stacklevel=2)
        return self

    def uncertainty(
        self, X: LargeGraph | Dataset, nodes: Any = None, *, fan_outs: Sequence[int] | None = None
    ) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of nodes, in the order of ``nodes``; ``predict_proba`` takes the
        same arguments."""
        check_is_fitted(self, "model_")
        data = self._checked(X)
        count = data.node_count
        numbers: np.ndarray = np.arange(count, dtype=np.int32) if nodes is None else node_numbers(nodes, count, "nodes", distinct=False)
        increasing, place = np.unique(numbers, return_inverse=True)
        drawn = _fan_outs(self.fan_outs if fan_outs is None else fan_outs)
        found = _core.predict_on_samples(self.model_, data._core, increasing, drawn, *sampling(self))
        return Uncertainty(**{name: values[place] for name, values in found.items()})

    def predict_proba(
        self, X: LargeGraph | Dataset, nodes: Any = None, *, fan_outs: Sequence[int] | None = None
    ) -> np.ndarray:
        """Class probabilities of nodes, k x C, with a column for each of ``classes_``.

        :param X: a LargeGraph or a Dataset with the features of the training
        :param nodes: mask or indices of the k nodes; None: all nodes
        :param fan_outs: in place of the estimator's; 0s, two for each layer, give a deterministic network's outputs on the whole graph
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: a row that cannot be read; the message names the file and the node
        """
        return self.uncertainty(X, nodes, fan_outs=fan_outs).probabilities

    def predict(self, X: LargeGraph | Dataset, nodes: Any = None, *, fan_outs: Sequence[int] | None = None) -> np.ndarray:
        """The most probable class of nodes; ``predict_proba`` takes the same arguments."""
        probabilities = self.predict_proba(X, nodes, fan_outs=fan_outs)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(
        self, X: LargeGraph | Dataset, y: Any = None, nodes: Any = None, *, fan_outs: Sequence[int] | None = None
    ) -> float:
        """The accuracy: the share of the nodes whose class is predicted.

        :param nodes: mask or indices of the nodes to score. None: the test nodes of the split that the network was trained on. If
            that split has no test nodes: the labelled nodes outside its sets
        :raises ValueError: no such node has a known label
        """
        check_is_fitted(self, "model_")
        data = self._checked(X)
        if y is not None:
            raise ValueError("y: not allowed; X has its own labels")
        chosen: np.ndarray
        if nodes is not None:
            chosen = node_numbers(nodes, data.node_count, "nodes", distinct=False)
        else:
            chosen = scored_nodes(self, data)
        codes = data.codes
        chosen = chosen[codes[chosen] >= 0] if len(codes) else chosen[:0]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has a known label")
        predicted = self.predict_proba(data, chosen, fan_outs=fan_outs).argmax(axis=1)
        return float(np.mean(predicted == same_classes(self.classes_, data.classes)[codes[chosen]]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network to a .safetensors file, as the program large_graph does; SheafClassifier and the program predict read it.

        :raises ValueError: a file cannot hold the labels: they are neither numbers, texts, bytes nor times
        """
        check_is_fitted(self, "model_")
        known = classes_of(os.fspath(path), self.model_)
        same = known.dtype == self.classes_.dtype and np.array_equal(known, self.classes_)
        self.model_.save(os.fspath(path), {} if same else class_notes(self.classes_))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, split: int = 0, **parameters: Any) -> "SampledClassifier":
        """The classifier with the network of a file that ``save``, SheafClassifier or a program wrote.

        :param split: the split that the network was trained on, which ``score`` needs
        :param parameters: parameters of predictions: predict_samples, random_state, threads, fan_outs
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        number = _checks.whole("split", split, 0, 2**31 - 1)
        check_loaded(parameters, "fan_outs")
        model = _core.Model.load(os.fspath(path))
        check_kind(path, model, cls, ("classes",))
        self = cls(model.kind, model.maps, model.stalk_dimension, **parameters)
        self.model_, self.split_ = model, number
        self.classes_ = classes_of(os.fspath(path), model)
        self.n_features_in_ = model.given_columns or int(model.metadata["features"])
        self.feature_treatment_ = model.feature_treatment
        return self

    def _checked(self, X: Any) -> LargeGraph | Dataset:
        data = _graph(X)
        if data.feature_count != self.n_features_in_:
            raise ValueError(f"X has {data.feature_count} features, but the network has {self.n_features_in_}")
        return data


def _graph(X: Any) -> LargeGraph | Dataset:
    if not isinstance(X, (LargeGraph, Dataset)):
        raise TypeError(f"X: {type(X).__name__} is not allowed; expected a LargeGraph or a Dataset")
    return X


def _fan_outs(values: Any) -> list[int] | None:
    if values is None:
        return None
    if np.ndim(values) != 1:
        raise ValueError(f"fan_outs: {values!r} is not allowed; expected a list of whole numbers")
    return [_checks.whole(f"fan_outs[{i}]", value, 0, _core.max_fan_out) for i, value in enumerate(values)]
