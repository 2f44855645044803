"""SheafClassifier: every network of the library with scikit-learn's methods."""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from numbers import Integral, Real
from typing import Any, Callable, Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core
from ._labels import encode, known_labels, label_array, same_classes
from ._masks import node_numbers
from .dataset import Dataset
from .sheaf import LearnedSheaf, NodeMaps, read_learned


class Interrupted(UserWarning):
    """A training that Ctrl-C ended, with ``on_interrupt="keep"``; the model has the parameters of the best epoch so far."""


class UnusedSheaf(UserWarning):
    """A network whose sheaf is not used: with its maps permuted between edges, the loss of the validation nodes does not rise."""


class _Unsaid:
    def __repr__(self) -> str:
        return "<the graph of a Dataset>"


_UNSAID: Any = _Unsaid()


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """What the posterior samples say about every node; entropies are in nats."""

    probabilities: np.ndarray  #: n x C, mean over the samples
    entropy: np.ndarray  #: n, of the mean distribution, at most log C
    mutual_information: np.ndarray  #: n, the epistemic part of the entropy; 0 of deterministic networks
    epistemic_variance: np.ndarray  #: n, variance over the samples, mean over the classes


def _text(name: str, value: Any) -> str:
    """An option as the library reads it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}: {value!r}: expected a number, a boolean or a text")


class SheafClassifier(ClassifierMixin, BaseEstimator):
    """Classifies the nodes of a graph with a sheaf neural network.

    ``fit`` takes a :class:`~sheafnn.Dataset` and the number of a split, or, as in scikit-learn, features and labels, with
    the graph as ``edges``. ``predict`` takes any graph whose nodes have the same features. All options that are None have
    the value of the preset for the graph's size and homophily.

    :param model: ``"bsnn"`` (Bayesian) or ``"nsd"``: maps per incident pair; ``"bcsnn"`` or ``"csnn"``: maps per node;
        ``"bflow"`` or ``"flow"``: continuous time
    :param maps: ``"diagonal"``, ``"special-orthogonal"``, ``"general-linear"`` or ``"identity"``; without effect on
        cooperative networks
    :param stalk_dim: stalk dimension, 1 to 5; of cooperative networks 2 to 5
    :param preset: ``"auto"``, ``"small"``, ``"citation"``, ``"heterophilic"``, ``"large"``, ``"dense"`` or ``"none"``
    :param channels: feature channels per stalk coordinate, 1 to 1024
    :param layers: diffusion layers, 1 to 64; flows have none
    :param feature_treatment: what happens to features first: ``"automatic"`` (by what the columns hold), ``"rows"`` (scaled
        to sum 1), ``"columns"`` or ``"none"``; its statistics come from the graph that is fitted
    :param epochs: largest number of epochs
    :param patience: stop after this many epochs without improvement
    :param learning_rate: Adam's, above 0
    :param weight_decay: L2, at least 0
    :param dropout: of hidden features, in [0, 1)
    :param input_dropout: of features, in [0, 1)
    :param kl_weight: largest weight of the KL term, at least 0
    :param samples: posterior samples averaged at evaluation
    :param predict_samples: posterior samples averaged by ``predict`` and the like
    :param validation_fraction: share of the training nodes held out to select the best epoch where ``fit`` is given no
        ``validation``; not used with a Dataset. 0: keep the last epoch
    :param search: seconds to try the settings of a fixed list in (networks, maps, depths, an identity sheaf, nodes without
        edges); the one with the best validation score is trained. It sees the training and validation nodes of the split
        alone. ``model``, ``maps`` and ``stalk_dim`` that differ from their defaults restrict the list, and other options hold
        for all settings. None: no search
    :param network: further options of the network, e.g. ``{"add_hp": True, "filter": "chebyshev"}``
    :param training: further options of the training, e.g. ``{"kl_schedule": "constant"}``
    :param random_state: seed of weights, dropout and noise; the same one gives the same numbers, for any number of threads.
        NumPy's ``Generator`` or ``RandomState`` is asked for one each time
    :param threads: 0: as many as the graph is worth
    :param on_interrupt: what Ctrl-C does to a training: ``"raise"`` raises KeyboardInterrupt, ``"keep"`` ends the training with
        the best parameters so far, and warns
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``:

    - ``classes_``, ``n_features_in_``, ``feature_names_in_`` where columns have names, ``n_iter_`` (epochs);
    - ``feature_treatment_``, a line that says what happens to features;
    - ``result_``, figures of the best epoch: best_epoch, epochs, stop_reason, validation_loss, validation_accuracy,
      test_accuracy, test_nll, test_ece, test_roc_auc, test_average_precision, test_macro_f1, test_brier (NaN without such
      nodes), epoch_seconds, parameters, preset; and ``sheaf``, a dictionary that says whether the learned sheaf is used: kl_per_pair,
      quantiles of spread (kappa or sigma) and turn_degrees, and the rise of the validation loss with maps that are permuted between
      edges, drawn from the prior, or the identity; None where there is no such number. A sheaf that is not used is a warning, ``UnusedSheaf``;
    - ``sheaf_use_``, the same dictionary, which files keep: a classifier that was loaded has it as well. None of networks
      without a sheaf, and of files without it;
    - ``history_``, an array for each of loss, nll, kl, kl_weight, validation_loss, validation_accuracy;
    - ``search_``, after a search, a dictionary for each setting, the best first: name, model, maps, stalk_dim, round (its last),
      splits, epochs, validation_score, validation_std, validation_loss, seconds, and error, why it left the search or was left
      out; ``best_params_``, the name, model, maps and stalk_dim that were chosen;
    - ``transduction_``, the classes predicted for all nodes of the graph, and ``uncertainty_``, their uncertainty.

    >>> import sheafnn
    >>> data = sheafnn.karate_club()
    >>> model = SheafClassifier(stalk_dim=2, epochs=50).fit(data, split=0)
    >>> model.predict_proba(data).shape
    (34, 2)
    """

    def __init__(
        self,
        model: str = "bsnn",
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        preset: str = "auto",
        channels: int | None = None,
        layers: int | None = None,
        feature_treatment: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        dropout: float | None = None,
        input_dropout: float | None = None,
        kl_weight: float | None = None,
        samples: int = 3,
        predict_samples: int = 20,
        validation_fraction: float = 0.2,
        search: float | None = None,
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
        self.preset = preset
        self.channels = channels
        self.layers = layers
        self.feature_treatment = feature_treatment
        self.epochs = epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.kl_weight = kl_weight
        self.samples = samples
        self.predict_samples = predict_samples
        self.validation_fraction = validation_fraction
        self.search = search
        self.network = network
        self.training = training
        self.random_state = random_state
        self.threads = threads
        self.on_interrupt = on_interrupt
        self.progress = progress
        self.callback = callback

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Any = None,
        train: Any = None,
        validation: Any = None,
        split: int = 0,
        missing_labels: Sequence[str] | None = None,
    ) -> "SheafClassifier":
        """Trains the network.

        :param X: a Dataset; or n x p features, dense or sparse
        :param y: with features: n labels; None or NaN where unknown (the number -1 is a label like any other, as in scikit-learn)
        :param edges: with features: m x 2 node numbers or a scipy sparse adjacency matrix without weights; None: no edges
        :param train: with features: mask or numbers of the nodes whose labels may be seen; None: all with a label
        :param validation: with features: mask or numbers of the nodes that select the best epoch, which are not trained on;
            None: a stratified share of ``train``, see validation_fraction
        :param split: with a Dataset: which of its splits
        :param missing_labels: with features: texts that mean an unknown label; all others are classes then. None: words such as
            NA, nan or None are refused
        :raises ValueError: names the argument, its value and the limit
        :raises KeyboardInterrupt: Ctrl-C, unless on_interrupt is ``"keep"``
        :raises RuntimeError: a diverged training; names the epoch and the first number that is not finite
        """
        self._check_options()
        seed = self._seed()
        data = self._checked_data(X, y, edges, train, validation, split, missing_labels)
        number = split if isinstance(X, Dataset) else 0
        network = self._options(
            "network", self.network, channels=self.channels, layers=self.layers, feature_treatment=self.feature_treatment
        )
        training = self._options(
            "training",
            self.training,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            kl_maximum=self.kl_weight,
            samples=self.samples,
            threads=self.threads,
        )
        chosen, preset = (self.model, self.maps, self.stalk_dim), self.preset
        for attribute in ("search_", "best_params_"):  # of an earlier fit
            self.__dict__.pop(attribute, None)
        if self.search is not None:
            self.search_ = _core.search(data._core, number, *self._restrictions(), network, training, seed, float(self.search))
            best = self.search_[0]
            self.best_params_ = {key: best[key] for key in ("name", "model", "maps", "stalk_dim")}
            chosen = (best["model"], best["maps"], best["stalk_dim"])
            preset = _core.searched + best["name"]
        with _Progress(self.progress, self.callback) as report:
            model, result, history, prediction = _core.train(
                data._core, number, *chosen, preset, network, training, seed, report, self.on_interrupt == "keep"
            )
        self.classes_ = data.classes
        self.n_features_in_ = data.feature_count
        self.trained_with_edges_ = data.edge_count > 0
        self.split_ = number if isinstance(X, Dataset) else None
        self._set_names(data.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.sheaf_use_ = model.sheaf_use
        self.result_ = result
        self.history_ = history
        self.n_iter_ = result["epochs"]
        self.uncertainty_ = Uncertainty(**prediction)
        self.transduction_ = self.classes_[self.uncertainty_.probabilities.argmax(axis=1)]
        if (unused := result["sheaf"]["warning"]) is not None:
            warnings.warn(unused, UnusedSheaf, stacklevel=2)
        if result["stop_reason"] == "interrupted":
            warnings.warn(
                f"interrupted after {self.n_iter_} epochs; the model is that of epoch {result['best_epoch']}",
                Interrupted,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any, edges: Any = _UNSAID) -> np.ndarray:
        """Class probabilities, n x C, of every node of a graph; a column for each of ``classes_``.

        :param X: a Dataset; or n x p features, dense or sparse
        :param edges: with features: as for ``fit``; None or []: nodes without neighbours. A network that was trained with edges
            has to be told, also by a Pipeline: ``pipeline.predict(X, edges=edges)``
        :raises ValueError: features without ``edges`` for a network that was trained with edges
        """
        return self.uncertainty(X, edges).probabilities

    def predict(self, X: Any, edges: Any = _UNSAID) -> np.ndarray:
        """The most probable class of every node of a graph; ``predict_proba`` takes the same arguments."""
        probabilities = self.predict_proba(X, edges)  # fails first where nothing was fitted
        return self.classes_[probabilities.argmax(axis=1)]

    def uncertainty(self, X: Any, edges: Any = _UNSAID) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every node of a graph;
        ``predict_proba`` takes the same arguments."""
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        return Uncertainty(**self.model_.predict(data._core, *self._sampling()))

    def score(
        self, X: Any, y: Any = None, edges: Any = _UNSAID, nodes: Any = None, sample_weight: Any = None
    ) -> float:
        """Share of the nodes whose class is predicted.

        :param X: a Dataset; or features, with labels ``y`` and ``edges`` as for ``predict_proba``
        :param nodes: mask or numbers of the nodes to look at. None: of a Dataset with splits the test nodes of the split that
            the network was trained on, or, without test nodes, the labelled nodes that are in no set of it; of other data all
            nodes with a known label
        :param sample_weight: n numbers, at least 0; the weights' share is returned. None: all nodes count alike
        :raises ValueError: no such node has a known label, all of their weights are 0, or it is not known which split the network was trained on
        """
        own = isinstance(X, Dataset)
        if own:
            if y is not None:
                raise ValueError("y: a Dataset has its own labels")
            if len(X.codes) == 0:
                raise ValueError(f"X: {X!r} is not allowed; a score needs labels")
            codes, classes = X.codes, X.classes
        else:
            if y is None:
                raise ValueError("requires y to be passed, but the target y is None")
            labels = label_array(y)
            if labels.ndim != 1 or labels.shape[0] != np.shape(X)[0]:
                raise ValueError(f"y: shape {labels.shape} is not allowed; expected one label for each of {np.shape(X)[0]} rows")
            codes, classes = encode(labels, len(labels), minus_one=False, missing_labels=())
        predicted = self.predict_proba(X, edges).argmax(axis=1)
        chosen: np.ndarray
        if nodes is not None:
            chosen = node_numbers(nodes, len(predicted), "nodes", distinct=False)
        else:
            chosen = self._scored_nodes(X) if own else np.arange(len(predicted))
        chosen = chosen[codes[chosen] >= 0]
        if len(chosen) == 0:
            more = "" if nodes is not None or not own or not X.splits else "; the split has no test nodes, name others with nodes="
            raise ValueError(f"nodes: none of them has a known label{more}")
        same = same_classes(self.classes_, classes)
        if own and (same < 0).all():
            raise ValueError(
                f"X: none of its classes {classes[:5].tolist()} is one of the network's, {self.classes_[:5].tolist()}; labels have "
                "to be of the same type as the training's labels"
            )
        right = predicted[chosen] == same[codes[chosen]]
        if sample_weight is None:
            return float(np.mean(right))
        weights = _node_weights(sample_weight, len(predicted))[chosen]
        largest = weights.max()
        if largest == 0:
            raise ValueError("sample_weight: 0 is not allowed for all of the nodes that are looked at")
        return float(np.average(right, weights=weights / largest))

    def _scored_nodes(self, data: Dataset) -> np.ndarray:
        """The nodes of a Dataset that say how good the network is."""
        splits = data.splits
        if not splits:
            return np.arange(data.node_count)
        number = 0 if len(splits) == 1 else getattr(self, "split_", None)
        if number is None or number >= len(splits):
            raise ValueError(
                f"nodes: None is not allowed; it is not known which of the {len(splits)} splits the network was trained on: name "
                "the nodes, e.g. nodes=data.splits[0].test"
            )
        split = splits[number]
        return split.test if len(split.test) else np.setdiff1d(np.arange(data.node_count), np.concatenate(split))

    def learned_sheaf(self, X: Any, edges: Any = _UNSAID, layer: int = 0) -> LearnedSheaf | NodeMaps:
        """The sheaf that the network puts on a graph: of Bayesian networks the mean of the posterior.

        :param X: a Dataset; or features, with ``edges`` as for ``predict_proba``
        :param layer: layer whose sheaf is returned (deterministic networks, and bcsnn with learners per layer)
        :return: maps per incident pair, or of cooperative networks maps per node
        """
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        content = self.model_.learned(data._core, *self._sampling(), _checks.whole("layer", layer, 0, 63))
        return read_learned(content, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a safetensors file, which the programs read as well.

        :raises ValueError: labels that a file cannot hold: objects that are neither numbers, texts, bytes nor times
        """
        check_is_fitted(self)
        classes = self.classes_
        if classes.dtype.hasobject:
            kinds = ", ".join(sorted({type(label).__name__ for label in classes}))
            raise ValueError(
                f"classes_: labels of type {kinds} cannot be written to a file; label the nodes with numbers, texts or NumPy's "
                "times, or use pickle"
            )
        more = {
            "class_kind": classes.dtype.kind,
            "class_dtype": classes.dtype.str,
            "class_data": np.ascontiguousarray(classes).tobytes().hex(),
        }
        for key in ("trained_with_edges", "split"):
            value = getattr(self, f"{key}_", None)
            if value is not None:
                more[key if key != "split" else "trained_split"] = str(int(value))
        self.model_.save(os.fspath(path), more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "SheafClassifier":
        """A classifier with the network of a file that ``save`` or the program train wrote.

        :param parameters: those of the constructor that predictions depend on: predict_samples, random_state, threads
        :raises RuntimeError: names the file and what is wrong with it
        """
        model = _core.Model.load(os.fspath(path))
        for name, value in parameters.items():
            if name not in ("predict_samples", "random_state", "threads"):
                raise ValueError(f"{name}: {value!r} is not allowed; choose predict_samples, random_state, threads")
        self = cls(model=model.kind, maps=model.maps, stalk_dim=model.stalk_dimension, **parameters)
        self.classes_ = _classes_of(os.fspath(path), model)
        if "trained_with_edges" in model.metadata:
            self.trained_with_edges_ = model.metadata["trained_with_edges"] == "1"
        elif "class_kind" not in model.metadata:
            self.trained_with_edges_ = True  # programs train on graphs
        if "trained_split" in model.metadata:
            self.split_ = int(model.metadata["trained_split"])
        self.n_features_in_ = model.given_columns or int(model.metadata["features"])
        self._set_names(model.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.sheaf_use_ = model.sheaf_use
        return self

    def _set_names(self, names: list[str]) -> None:
        """``feature_names_in_``, or none where the columns have no names."""
        if names:
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, (Integral, np.random.Generator)):
            return _checks.seed(self.random_state, "random_state")
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _sampling(self) -> tuple[int, int, int, int]:
        """Samples, seed, epoch and threads of a prediction."""
        samples = _checks.whole("predict_samples", self.predict_samples, 1, 32768)
        return samples, self._seed(), 0, _checks.whole("threads", self.threads, 0, 1_000_000)

    def _check_options(self) -> None:
        _checks.choice("model", self.model, _core.model_names)
        _checks.choice("maps", self.maps, _core.maps_names)
        _checks.whole("stalk_dim", self.stalk_dim, 2 if self.model in ("bcsnn", "csnn") else 1, 5)
        _checks.choice("preset", self.preset, ("auto", "none", *_core.preset_names))
        _checks.number("validation_fraction", self.validation_fraction, 0, 1)
        if self.feature_treatment is not None:
            _checks.choice("feature_treatment", self.feature_treatment, _core.feature_treatment_names)
        _checks.whole("threads", self.threads, 0, 1_000_000)
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        if self.search is not None and _checks.number("search", self.search, 0, 1e300) == 0:
            raise ValueError(f"search: {self.search!r} is not allowed; must be above 0 seconds")
        if self.kl_weight is not None:
            _checks.number("kl_weight", self.kl_weight, 0, 1e300)

    def _restrictions(self) -> tuple[str, str, int]:
        """Model, maps and stalk dimension that a search is restricted to; "" and 0: any."""
        if self.preset != "auto":
            raise ValueError(f"preset: {self.preset!r} is not allowed; the settings of a search have options of their own")
        default = SheafClassifier()
        return (
            "" if self.model == default.model else self.model,
            "" if self.maps == default.maps else self.maps,
            0 if self.stalk_dim == default.stalk_dim else self.stalk_dim,
        )

    def _options(self, name: str, more: Mapping[str, Any] | None, **own: Any) -> dict[str, str]:
        """Options as texts: parameters of the classifier, and those of the mapping ``name``."""
        if more is not None and not isinstance(more, Mapping):
            raise TypeError(f"{name}: {type(more).__name__} is not allowed; expected a mapping from names to values")
        for key, value in (more or {}).items():
            if key in own:
                parameter = "kl_weight" if key == "kl_maximum" else key
                raise ValueError(f"{name}[{key!r}]: {value!r} is not allowed; it is the parameter {parameter} of the classifier")
        options = {**own, **(more or {})}
        return {key: _text(key, value) for key, value in options.items() if value is not None}

    def _checked_data(
        self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int, missing_labels: Any
    ) -> Dataset:
        """A Dataset with one split, from what fit() was given."""
        if isinstance(X, Dataset):
            others = ("y", y), ("edges", edges), ("train", train), ("validation", validation), ("missing_labels", missing_labels)
            for name, value in others:
                if value is not None:
                    raise ValueError(f"{name}: a Dataset has its own; use Dataset.with_splits for others")
            if X.class_count == 0:
                raise ValueError(f"X: {X!r} is not allowed; a training needs labels")
            count = len(X.splits)
            if count == 0:
                raise ValueError("split: the dataset has no splits; make some with make_splits() or with_splits()")
            _checks.whole("split", split, 0, count - 1)
            return X
        X = _checks.features("X", X)
        if split != 0:
            raise ValueError(f"split: {split!r} is not allowed; features have no splits, a Dataset has")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if edges is not None and _in_cross_validation():
            raise ValueError(
                "edges: scikit-learn's cross-validation cuts the rows of X, but not the graph; use sheafnn.grid_search(data, grid), "
                "which trains on the splits of a Dataset"
            )
        labels = label_array(y)
        known = known_labels(labels) if labels.ndim == 1 else np.empty(0, bool)
        if known.any() and not known.all():
            features = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
            check_classification_targets(np.array(labels[known].tolist()))
        else:
            features, labels = validate_data(
                self, X, labels, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan"
            )
            check_classification_targets(labels)
        codes, classes = encode(labels, features.shape[0], minus_one=False, missing_labels=missing_labels)
        if len(classes) < 2:
            raise ValueError(f"y: {len(classes)} class is not allowed; a classifier needs at least two classes")
        count = features.shape[0]
        seen = np.flatnonzero(codes >= 0) if train is None else node_numbers(train, count, "train")
        if validation is not None:
            held = node_numbers(validation, count, "validation")
            seen = seen if train is not None else np.setdiff1d(seen, held)
        else:
            seen, held = self._hold_out(seen, codes)
        names = getattr(self, "feature_names_in_", ())
        return Dataset._of_codes(edges, features, codes, classes, [(seen, held, [])], "training data", (), names)

    def _hold_out(self, nodes: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cuts off a share of the nodes of each class, rounded."""
        fraction = float(self.validation_fraction)
        random = np.random.default_rng(self._seed())
        held = [
            random.permutation(own)[: int(round(fraction * len(own)))]
            for own in (nodes[codes[nodes] == c] for c in np.unique(codes[nodes]))
        ]
        chosen = np.sort(np.concatenate(held)) if held else np.empty(0, int)
        left = np.setdiff1d(nodes, chosen)
        if len(chosen) and len(left) == 0:
            raise ValueError(f"validation_fraction: {fraction} is not allowed; of {len(nodes)} nodes none is left to train on")
        if fraction > 0 and len(chosen) == 0:
            warnings.warn(
                f"validation_fraction: {fraction} of {len(nodes)} nodes is none: the last epoch is kept", UserWarning, stacklevel=4
            )
        return left, chosen

    def _graph_data(self, X: Any, edges: Any) -> Dataset:
        """A Dataset without labels, from what predict() and the like were given."""
        if isinstance(X, Dataset):
            if edges is not None and edges is not _UNSAID:
                raise ValueError("edges: a Dataset has its own")
            if X.feature_count != self.n_features_in_:
                raise ValueError(f"X has {X.feature_count} features, but the network has {self.n_features_in_}")
            return X
        features = validate_data(
            self, _checks.features("X", X), accept_sparse="csr", dtype=np.float64, reset=False, ensure_all_finite="allow-nan"
        )
        if edges is _UNSAID:
            edges, trained_with = None, getattr(self, "trained_with_edges_", None)
            if trained_with:
                raise ValueError(
                    "edges: missing; the network was trained with edges: pass the graph of these nodes, in a Pipeline as "
                    "pipeline.predict(X, edges=edges), or edges=None for nodes without neighbours"
                )
            if trained_with is None:
                warnings.warn(
                    "edges: missing, and the file does not say whether the network was trained with some; the nodes have no "
                    "neighbours (edges=None says so)", UserWarning, stacklevel=4
                )
        return Dataset.from_numpy(edges, features)


def _node_weights(weights: Any, count: int) -> np.ndarray:
    own = _checks.real("sample_weight", _checks.unmasked("sample_weight", weights))
    if own.shape != (count,):
        raise ValueError(f"sample_weight: shape {own.shape} is not allowed; expected one number for each of {count} nodes")
    bad = np.flatnonzero(~(np.isfinite(own) & (own >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}]: {own[bad[0]]} is not allowed; must be finite and at least 0")
    return own


def _in_cross_validation() -> bool:
    """Whether scikit-learn fits on a part of the rows."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("_fit_and_score", "_fit_and_predict") and frame.f_globals.get("__name__", "").startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _classes_of(path: str, model: _core.Model) -> np.ndarray:
    """The classes of a file, with the type that they were given."""
    metadata, names = model.metadata, model.class_names
    count = int(metadata["classes"])
    if "class_data" in metadata:
        try:
            classes = np.frombuffer(bytes.fromhex(metadata["class_data"]), np.dtype(metadata["class_dtype"])).copy()
        except (KeyError, TypeError, ValueError) as error:
            raise RuntimeError(f"{path}: class_data: {error}") from None
        if len(classes) != count:
            raise RuntimeError(f"{path}: class_data: {len(classes)} classes are not allowed; the network has {count}")
        return classes
    kind = metadata.get("class_kind", "U")  # older files and the programs' files
    if not names:
        return np.arange(count)
    if kind in "iu":
        return np.array([int(name) for name in names])
    if kind == "f":
        return np.array([float(name) for name in names])
    if kind == "b":
        return np.array([name == "True" for name in names])
    return np.array(names)


class _Progress:
    """A progress bar and the user's callback as one function of an epoch; None where there is nothing to call."""

    def __init__(self, shown: bool, callback: Callable[[Any], Any] | None):
        self.shown, self.callback = shown, callback
        self.bar: Any = None

    def __enter__(self) -> Callable[[Any, int], Any] | None:
        if self.shown:
            from tqdm.auto import tqdm

            self.bar = tqdm(unit=" epochs", desc="training")
        return self if self.shown or self.callback is not None else None

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, epoch: Any, epochs: int) -> Any:
        if self.bar is not None:
            self.bar.total = epochs
            self.bar.update()
            if epoch.epoch % 10 == 0:
                self.bar.set_postfix(loss=f"{epoch.loss:.3f}", validation=f"{epoch.validation_accuracy:.3f}", refresh=False)
        return None if self.callback is None else self.callback(epoch)
