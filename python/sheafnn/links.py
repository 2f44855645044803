"""Links, labels and numbers of edges: which pairs of nodes are linked, and how."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    accuracy_score, average_precision_score, log_loss, mean_absolute_error, r2_score, root_mean_squared_error, roc_auc_score,
)
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core, _edges, _labels
from ._estimator import Interrupted, Progress, check_loaded, check_sizes, interruption, option_texts, sampling, target_array
from .classifier import Uncertainty, class_notes, classes_of
from .dataset import Dataset


class LinkPredictor(BaseEstimator):
    """Tells linked pairs of nodes from others with a sheaf network of diagonal maps, stalk dimension 2 (docs/edges.md).

    ``fit`` hides a part of the edges, trains the network to tell these from pairs without an edge, and ranks the hidden test edges. Or the
    network learns ``targets`` of edges in place of links. All options that are None have the value of the program ``links``.

    :param model: ``"bsnn"`` (Bayesian) or ``"nsd"``
    :param targets: what is learned: ``"links"``, ``"classes"`` of edges such as signs, or ``"numbers"`` of edges
    :param pair_score: ``"energy"`` of the network's own sheaf, ``"dot"`` or ``"bilinear"``; None: bilinear
    :param outputs: values per node that scores are computed from; even for ``energy``
    :param channels: feature channels per stalk coordinate, 1 to 1024; None: 8
    :param layers: diffusion layers, 1 to 64; None: 2
    :param epochs: largest number of epochs
    :param patience: stop after this many epochs without improvement
    :param learning_rate: Adam's, above 0
    :param samples: posterior samples averaged at evaluation; None: 3
    :param predict_samples: posterior samples averaged by ``predict_proba`` and the like
    :param hits: k of Hits@k, one or several
    :param split: which edges are hidden (``EdgeSplitOptions`` of docs/options.md): ``message_share``, ``train_share``, ``validation_share``
        and ``test_share``, which sum to 1. Links also have ``negatives``, and ``negative_sampling``, ``"uniform"`` or ``"degree"``. Others
        have ``keep_targets``
    :param network: further options of the network (``ModelOptions``)
    :param training: further options of the training (``TrainOptions``)
    :param random_state: seed of the split, weights, dropout and noise
    :param threads: 0: as many as the graph is worth
    :param on_interrupt: as in SheafClassifier
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``: ``n_features_in_``, ``n_iter_``, ``result_`` and ``history_`` as in SheafClassifier. An accuracy is the share of
    the pairs whose probability is on the right side of ½. ``seen_`` is the Dataset with the edges that the network saw.
    ``test_pairs_`` are T x 2 node numbers; ``test_labels_`` is 1 where such a pair is an edge. Of classes and numbers,
    ``test_labels_`` are the labels or numbers of these edges, and ``classes_`` the different labels, sorted.

    >>> import sheafnn
    >>> model = LinkPredictor("nsd", pair_score="dot", epochs=20).fit(sheafnn.karate_club())
    >>> model.predict_proba([[0, 1], [4, 30]]).shape
    (2, 2)
    >>> sorted(model.score())
    ['average_precision', 'hits@10', 'loss', 'mrr', 'roc_auc']
    """

    def __init__(
        self,
        model: str = "bsnn",
        *,
        targets: str = "links",
        pair_score: str | None = None,
        outputs: int = 16,
        channels: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        samples: int | None = None,
        predict_samples: int = 20,
        hits: int | Sequence[int] = 10,
        split: Mapping[str, Any] | None = None,
        network: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        threads: int = 0,
        on_interrupt: str = "raise",
        progress: bool = False,
        callback: Callable[[Any], Any] | None = None,
    ):
        self.model = model
        self.targets = targets
        self.pair_score = pair_score
        self.outputs = outputs
        self.channels = channels
        self.layers = layers
        self.epochs = epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.samples = samples
        self.predict_samples = predict_samples
        self.hits = hits
        self.split = split
        self.network = network
        self.training = training
        self.random_state = random_state
        self.threads = threads
        self.on_interrupt = on_interrupt
        self.progress = progress
        self.callback = callback

    def fit(
        self, X: Any, y: Any = None, *, edges: Any = None, missing_labels: Sequence[str] | None = None
    ) -> "LinkPredictor":
        """Splits the edges, and trains the network.

        :param X: a Dataset, whose labels are ignored; or n x p features, dense or sparse
        :param y: for links None, since the edges are the targets. Otherwise m labels or numbers, one for each edge of the Dataset or
            each row of ``edges``; unknown where None or NaN. Edges with an unknown label are never targets. None: the
            ``edge_labels`` or ``edge_targets`` of the Dataset
        :param edges: with features: m x 2 node numbers, or a scipy sparse adjacency matrix without weights
        :param missing_labels: of classes: texts that mean an unknown label, as in SheafClassifier.fit; ``[]`` makes ``"-"`` a class
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        _checks.choice("targets", self.targets, ("links", "classes", "numbers"))
        if missing_labels is not None and self.targets != "classes":
            raise ValueError(f"missing_labels: {missing_labels!r} is not allowed; {self.targets} are no labels")
        if y is not None and self.targets == "links":
            raise ValueError(
                "y: not allowed; the edges of the graph are the targets. LinkPredictor(targets='classes') learns labels of edges, "
                "and targets='numbers' their numbers"
            )
        if y is None and self.targets != "links" and isinstance(X, Dataset):
            y = X.edge_labels if self.targets == "classes" else X.edge_targets
        if y is None and self.targets != "links":
            raise ValueError(f"y: None is not allowed; expected one of the {self.targets} for each edge")
        if edges is None and not isinstance(X, Dataset):
            raise ValueError("edges: None is not allowed; links are learned from the edges of a graph")
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_sizes(self, "channels", "layers", "epochs", "patience", "learning_rate", "samples")
        data = _graph(X, edges)
        labels, classes, numbers = self._known(data, y, edges, missing_labels)
        network = option_texts("network", self.network, channels=self.channels, layers=self.layers)
        training = option_texts(
            "training", self.training, epochs=self.epochs, patience=self.patience, learning_rate=self.learning_rate,
            samples=self.samples, threads=self.threads,
        )
        with Progress(self.progress, self.callback) as report:
            model, result, history, seen, pairs, own, values, more = _core.train_links(
                data._core, self.targets, self.model, self.pair_score or "", _checks.whole("outputs", self.outputs, 1, 65536),
                option_texts("split", self.split), network, training, self._hits(), _checks.seed(self.random_state, "random_state"),
                report, self.on_interrupt == "keep", labels, [str(name) for name in classes], numbers,
            )
        self.model_, self.result_, self.history_ = model, result, history
        self.n_iter_ = result["epochs"]
        self.n_features_in_ = data.feature_count
        self.seen_ = Dataset(seen, data.classes)
        self.test_pairs_, self.test_labels_ = pairs, values if self.targets == "numbers" else own
        figures = {"roc_auc": "test_roc_auc", "average_precision": "test_average_precision", "loss": "test_nll"}
        if self.targets == "classes":
            self.classes_, self.test_labels_ = classes, classes[own]
            figures = {"accuracy": "test_accuracy", **figures}
        elif self.targets == "numbers":
            figures = {"r2": "test_accuracy"}
        self._figures = {**{name: result[key] for name, key in figures.items()}, **more}
        if result["stop_reason"] == "interrupted":
            warnings.warn(interruption(result), Interrupted, stacklevel=2)
        return self

    def uncertainty(self, pairs: Any, X: Any = None, *, edges: Any = None) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every pair: a row is a pair. ``predict_proba``
        takes the same arguments.

        :raises ValueError: also for numbers, which have no probabilities
        """
        check_is_fitted(self, "model_")
        if self.targets == "numbers":
            raise ValueError("targets: 'numbers' have no probabilities; predict(pairs, return_std=True) has deviations")
        return Uncertainty(**self.model_.predict(*self._pairs(pairs, X, edges), *sampling(self)))

    def _pairs(self, pairs: Any, X: Any, edges: Any) -> tuple[Any, np.ndarray]:
        """The graph that the network reads, and pairs of its nodes."""
        if X is None:
            if edges is not None:
                raise ValueError("edges: not allowed without X, the features of these nodes")
            if not hasattr(self, "seen_"):
                raise ValueError("X: None is not allowed; files keep no graph; give the graph of these pairs")
            data = self.seen_
        else:
            data = _graph(X, edges)
        if data.feature_count != self.n_features_in_:
            raise ValueError(f"X has {data.feature_count} features, but the network has {self.n_features_in_}")
        own = _edges.edge_array(pairs, data.node_count, data.node_names, argument="pairs")
        return data._core, own

    def predict_proba(self, pairs: Any, X: Any = None, *, edges: Any = None) -> np.ndarray:
        """Probabilities, T x 2, that pairs of nodes are not linked, and that they are; or T x C of the ``classes_`` of edges. The order
        of a pair does not matter.

        :param pairs: T x 2 node numbers, or names of a Dataset's nodes
        :param X: the graph of these nodes: a Dataset, or features; None: the graph of the training, with the edges that the network saw
        :param edges: with features: as for fit
        :raises ValueError: a pair has one node twice, or a node that does not exist
        """
        return self.uncertainty(pairs, X, edges=edges).probabilities

    def predict(self, pairs: Any, X: Any = None, *, edges: Any = None, return_std: bool = False) -> Any:
        """1 where a pair is more probably linked than not, else 0; or the most probable class, or the expected number, of each pair.

        :param return_std: of numbers: return (numbers, standard deviations over the posterior samples)
        """
        if self.targets == "numbers":
            check_is_fitted(self, "model_")
            means, deviations = self.model_.predict_numbers(*self._pairs(pairs, X, edges), *sampling(self))
            return (means, deviations) if return_std else means
        if return_std:
            raise ValueError(f"return_std: True is not allowed; {self.targets} are no numbers")
        probabilities = self.predict_proba(pairs, X, edges=edges)
        if self.targets == "classes":
            return self.classes_[probabilities.argmax(axis=1)]
        return (probabilities[:, 1] > 0.5).astype(int)

    def score(self, pairs: Any = None, labels: Any = None, X: Any = None, *, edges: Any = None) -> dict[str, float]:
        """ROC AUC, average precision, loss, Hits@k and mean reciprocal rank of links. Of classes, accuracy and loss; of the test edges
        ROC AUC and average precision as well. Of numbers, R² (``r2``), mean absolute and root mean square error.

        :param pairs: T x 2, as in predict_proba; None: the test pairs of the training, with the figures that the program ``links``
            prints
        :param labels: with pairs: T values, 1 where a pair is linked, else 0; both must occur. Or T classes or numbers
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        """
        check_is_fitted(self, "model_")
        if pairs is None:
            for name, value in (("labels", labels), ("X", X), ("edges", edges)):
                if value is not None:
                    raise ValueError(f"{name}: not allowed without pairs")
            if not hasattr(self, "_figures"):
                raise ValueError("pairs: None is not allowed; files keep no test pairs")
            return dict(self._figures)
        if self.targets == "numbers":
            means = self.predict(pairs, X, edges=edges)
            truth = target_array(labels, len(means), "labels", "pairs")
            unknown = np.flatnonzero(np.isnan(truth))
            if unknown.size:
                raise ValueError(f"labels[{unknown[0]}]: nan is not allowed; a score needs known numbers")
            return {
                "r2": float(r2_score(truth, means)),
                "mean_absolute_error": float(mean_absolute_error(truth, means)),
                "root_mean_square_error": float(root_mean_squared_error(truth, means)),
            }
        probabilities = self.predict_proba(pairs, X, edges=edges)
        known = np.asarray(labels)
        if self.targets == "classes":
            if known.shape != (len(probabilities),) or not np.isin(known, self.classes_).all():
                raise ValueError(
                    f"labels: {labels!r} is not allowed; expected one of {self.classes_.tolist()} for each of {len(probabilities)} pairs"
                )
            return {
                "accuracy": float(accuracy_score(known, self.classes_[probabilities.argmax(axis=1)])),
                "loss": float(log_loss(known, probabilities / probabilities.sum(axis=1, keepdims=True), labels=self.classes_)),
            }
        linked = probabilities[:, 1]
        if known.shape != linked.shape or not np.isin(known, (0, 1)).all() or len(np.unique(known)) < 2:
            raise ValueError(f"labels: {labels!r} is not allowed; expected 1 or 0 for each of {len(linked)} pairs, and both of them")
        return {
            "roc_auc": float(roc_auc_score(known, linked)),
            "average_precision": float(average_precision_score(known, linked)),
            "loss": float(log_loss(known, linked)),
            **_core.rank_figures(linked[known == 1].tolist(), linked[known == 0].tolist(), self._hits()),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network to a .safetensors file, without the graph."""
        check_is_fitted(self, "model_")
        self.model_.save(os.fspath(path), class_notes(self.classes_) if self.targets == "classes" else {})

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "LinkPredictor":
        """The predictor with the network of a file that ``save`` or the program links wrote.

        :param parameters: parameters of predictions and scores: predict_samples, random_state, threads, hits
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        check_loaded(parameters, "hits")
        model = _core.LinkModel.load(os.fspath(path))
        notes = model.metadata
        self = cls(
            "bsnn" if model.bayesian else "nsd", targets=model.targets, pair_score=notes["score"], outputs=int(notes["classes"]),
            **parameters,
        )
        if self.targets == "classes":
            self.classes_ = classes_of(os.fspath(path), model, model.class_count)
        self.model_, self.n_features_in_ = model, int(notes["features"])
        return self

    def _known(self, data: Dataset, y: Any, edges: Any, missing: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Class numbers of the edges (-1: unknown), classes, and numbers of the edges; empty where they are not learned."""
        none = np.empty(0, np.int32), np.empty(0, int), np.empty(0)
        if self.targets == "links":
            return none
        if edges is None:
            pairs = data.edges
        elif scipy.sparse.issparse(edges):
            raise ValueError("y: not allowed with an adjacency matrix; list the edges as m x 2 node numbers")
        else:
            pairs = _edges.edge_array(edges, data.node_count)
        if self.targets == "classes":
            with _labels.called("y"):
                codes, classes = _labels.encode(y, len(pairs), minus_one=False, missing_labels=missing, signs=True, of="edges")
            if len(classes) < 2:
                raise ValueError(f"y: {classes.tolist()} is not allowed; at least two different labels are needed")
            return _edges.of_edges("y", pairs, codes, codes >= 0, data.edges, -1), classes, none[2]
        numbers = target_array(y, len(pairs), of="edges")
        if numbers.ndim != 1:
            raise ValueError(f"y: shape {numbers.shape} is not allowed; expected one number for each of {len(pairs)} edges")
        return none[0], none[1], _edges.of_edges("y", pairs, numbers, ~np.isnan(numbers), data.edges, np.nan)

    def _hits(self) -> list[int]:
        values = [self.hits] if np.ndim(self.hits) == 0 else list(self.hits)  # type: ignore[arg-type]
        return [_checks.whole("hits", value, 1, 2**31 - 1) for value in values]


def _graph(X: Any, edges: Any) -> Dataset:
    if isinstance(X, Dataset):
        if edges is not None:
            raise ValueError("edges: a Dataset has its own")
        return X
    return Dataset.from_numpy(edges, X)
