"""Link prediction: which pairs of nodes are linked."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core, _edges
from ._estimator import Interrupted, Progress, check_loaded, check_sizes, interruption, option_texts, sampling
from .classifier import Uncertainty
from .dataset import Dataset


class LinkPredictor(BaseEstimator):
    """Tells linked pairs of nodes from others with a sheaf network of diagonal maps, stalk dimension 2 (docs/edges.md).

    ``fit`` hides a part of the edges, trains the network to tell these from pairs without an edge, and ranks the hidden test edges. All
    options that are None have the value of the program ``links``.

    :param model: ``"bsnn"`` (Bayesian) or ``"nsd"``
    :param pair_score: ``"energy"`` of the network's own sheaf, ``"dot"`` or ``"bilinear"``
    :param outputs: numbers of a node that scores are made of; of ``energy`` even
    :param channels: feature channels per stalk coordinate, 1 to 1024; None: 8
    :param layers: diffusion layers, 1 to 64; None: 2
    :param epochs: largest number of epochs
    :param patience: stop after this many epochs without improvement
    :param learning_rate: Adam's, above 0
    :param samples: posterior samples averaged at evaluation; None: 3
    :param predict_samples: posterior samples averaged by ``predict_proba`` and the like
    :param hits: k of Hits@k, one or several
    :param split: which edges are hidden (``EdgeSplitOptions`` of docs/options.md): ``message_share``, ``train_share``, ``validation_share``
        and ``test_share``, which sum to 1; ``negatives``; ``negative_sampling``, ``"uniform"`` or ``"degree"``
    :param network: further options of the network (``ModelOptions``)
    :param training: further options of the training (``TrainOptions``)
    :param random_state: seed of the split, weights, dropout and noise
    :param threads: 0: as many as the graph is worth
    :param on_interrupt: as in SheafClassifier
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``: ``n_features_in_``, ``n_iter_``, ``result_`` and ``history_`` as in SheafClassifier. An accuracy is the share of
    the pairs whose probability is on the right side of ½. ``seen_`` is the Dataset with the edges that the network saw.
    ``test_pairs_`` are T x 2 node numbers; ``test_labels_`` is 1 where such a pair is an edge.

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
        pair_score: str = "energy",
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

    def fit(self, X: Any, y: Any = None, *, edges: Any = None) -> "LinkPredictor":
        """Splits the edges, and trains the network.

        :param X: a Dataset, whose labels are ignored; or n x p features, dense or sparse
        :param y: must be None: the edges are the targets
        :param edges: with features: m x 2 node numbers, or a scipy sparse adjacency matrix without weights
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        if y is not None:
            raise ValueError("y: not allowed; the edges of the graph are the targets")
        if edges is None and not isinstance(X, Dataset):
            raise ValueError("edges: None is not allowed; links are learned from the edges of a graph")
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_sizes(self, "channels", "layers", "epochs", "patience", "learning_rate", "samples")
        data = _graph(X, edges)
        network = option_texts("network", self.network, channels=self.channels, layers=self.layers)
        training = option_texts(
            "training", self.training, epochs=self.epochs, patience=self.patience, learning_rate=self.learning_rate,
            samples=self.samples, threads=self.threads,
        )
        with Progress(self.progress, self.callback) as report:
            model, result, history, seen, pairs, labels, ranks = _core.train_links(
                data._core, self.model, self.pair_score, _checks.whole("outputs", self.outputs, 1, 65536),
                option_texts("split", self.split), network, training, self._hits(), _checks.seed(self.random_state, "random_state"),
                report, self.on_interrupt == "keep",
            )
        self.model_, self.result_, self.history_ = model, result, history
        self.n_iter_ = result["epochs"]
        self.n_features_in_ = data.feature_count
        self.seen_ = Dataset(seen, data.classes)
        self.test_pairs_, self.test_labels_ = pairs, labels
        figures = {"roc_auc": "test_roc_auc", "average_precision": "test_average_precision", "loss": "test_nll"}
        self._figures = {**{name: result[key] for name, key in figures.items()}, **ranks}
        if result["stop_reason"] == "interrupted":
            warnings.warn(interruption(result), Interrupted, stacklevel=2)
        return self

    def uncertainty(self, pairs: Any, X: Any = None, *, edges: Any = None) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every pair: a row is a pair. ``predict_proba``
        takes the same arguments."""
        check_is_fitted(self, "model_")
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
        return Uncertainty(**self.model_.predict(data._core, own, *sampling(self)))

    def predict_proba(self, pairs: Any, X: Any = None, *, edges: Any = None) -> np.ndarray:
        """Probabilities, T x 2, that pairs of nodes are not linked, and that they are. The order of a pair does not matter.

        :param pairs: T x 2 node numbers, or names of a Dataset's nodes
        :param X: the graph of these nodes: a Dataset, or features; None: the graph of the training, with the edges that the network saw
        :param edges: with features: as for fit
        :raises ValueError: a pair has one node twice, or a node that does not exist
        """
        return self.uncertainty(pairs, X, edges=edges).probabilities

    def predict(self, pairs: Any, X: Any = None, *, edges: Any = None) -> np.ndarray:
        """1 where a pair is more probably linked than not, else 0."""
        return (self.predict_proba(pairs, X, edges=edges)[:, 1] > 0.5).astype(int)

    def score(self, pairs: Any = None, labels: Any = None, X: Any = None, *, edges: Any = None) -> dict[str, float]:
        """ROC AUC, average precision, loss, Hits@k and mean reciprocal rank.

        :param pairs: T x 2, as in predict_proba; None: the test pairs of the training, with the figures that the program ``links``
            prints
        :param labels: with pairs: T numbers, 1 where a pair is linked, else 0; both must occur
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        """
        check_is_fitted(self, "model_")
        if pairs is None:
            if not hasattr(self, "_figures"):
                raise ValueError("pairs: None is not allowed; files keep no test pairs")
            return dict(self._figures)
        linked = self.predict_proba(pairs, X, edges=edges)[:, 1]
        known = np.asarray(labels)
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
        self.model_.save(os.fspath(path))

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
        self = cls("bsnn" if model.bayesian else "nsd", pair_score=notes["score"], outputs=int(notes["classes"]), **parameters)
        self.model_, self.n_features_in_ = model, int(notes["features"])
        return self

    def _hits(self) -> list[int]:
        values = [self.hits] if np.ndim(self.hits) == 0 else list(self.hits)  # type: ignore[arg-type]
        return [_checks.whole("hits", value, 1, 2**31 - 1) for value in values]


def _graph(X: Any, edges: Any) -> Dataset:
    if isinstance(X, Dataset):
        if edges is not None:
            raise ValueError("edges: a Dataset has its own")
        return X
    return Dataset.from_numpy(edges, X)
