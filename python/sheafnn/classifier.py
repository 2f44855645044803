"""SheafClassifier: every network of the library with scikit-learn's methods."""

from __future__ import annotations

import dataclasses
import os
import warnings
from numbers import Integral, Real
from typing import Any, Callable, Mapping

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core
from .dataset import Dataset, _encode, _is_unknown, _label_array, _node_numbers, _unmasked
from .sheaf import LearnedSheaf, NodeMaps, read_learned


class Interrupted(UserWarning):
    """A training that Ctrl-C ended; the model has the parameters of the best epoch so far."""


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
    :param preset: ``"auto"``, ``"small"``, ``"citation"``, ``"heterophilic"``, ``"large"`` or ``"none"``
    :param channels: feature channels per stalk coordinate, 1 to 1024
    :param layers: diffusion layers, 1 to 64; flows have none
    :param feature_treatment: what happens to features first: ``"automatic"`` (by what the columns hold), ``"rows"`` (scaled
        to sum 1), ``"columns"`` or ``"none"``; its statistics are those of the graph that is fitted
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
    :param network: further options of the network, e.g. ``{"add_hp": True, "filter": "chebyshev"}``
    :param training: further options of the training, e.g. ``{"kl_schedule": "constant"}``
    :param random_state: seed of weights, dropout and noise; the same one gives the same numbers, for any number of threads
    :param threads: 0: as many as the graph is worth
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``:

    - ``classes_``, ``n_features_in_``, ``feature_names_in_`` where columns have names, ``n_iter_`` (epochs);
    - ``feature_treatment_``, a line that says what happens to features;
    - ``result_``, figures of the best epoch: best_epoch, epochs, stop_reason, validation_loss, validation_accuracy,
      test_accuracy, test_nll, test_ece, test_roc_auc, test_average_precision, test_macro_f1, test_brier (NaN without such
      nodes), epoch_seconds, parameters, preset;
    - ``history_``, an array for each of loss, nll, kl, kl_weight, validation_loss, validation_accuracy;
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
        network: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        threads: int = 0,
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
        self.network = network
        self.training = training
        self.random_state = random_state
        self.threads = threads
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
    ) -> "SheafClassifier":
        """Trains the network. Ctrl-C ends the training and keeps the best parameters so far, with a warning.

        :param X: a Dataset; or n x p features, dense or sparse
        :param y: with features: n labels; None or NaN where unknown (-1 is a label like any other, as in scikit-learn)
        :param edges: with features: m x 2 node numbers or a scipy sparse adjacency matrix; None: no edges
        :param train: with features: mask or numbers of the nodes whose labels may be seen; None: all with a label
        :param validation: with features: mask or numbers of the nodes that select the best epoch, which are not trained on;
            None: a stratified share of ``train``, see validation_fraction
        :param split: with a Dataset: which of its splits
        :raises ValueError: names the argument, its value and the limit
        :raises RuntimeError: a diverged training; names the epoch and the first number that is not finite
        """
        self._check_options()
        seed = self._seed()
        data = self._checked_data(X, y, edges, train, validation, split)
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
        with _Progress(self.progress, self.callback) as report:
            model, result, history, prediction = _core.train(
                data._core, number, self.model, self.maps, self.stalk_dim, self.preset, network, training, seed, report
            )
        self.classes_ = data.classes
        self.n_features_in_ = data.feature_count
        self._set_names(data.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.result_ = result
        self.history_ = history
        self.n_iter_ = result["epochs"]
        self.uncertainty_ = Uncertainty(**prediction)
        self.transduction_ = self.classes_[self.uncertainty_.probabilities.argmax(axis=1)]
        if result["stop_reason"] == "interrupted":
            warnings.warn(
                f"interrupted after {self.n_iter_} epochs; the model is that of epoch {result['best_epoch']}",
                Interrupted,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any, edges: Any = None) -> np.ndarray:
        """Class probabilities, n x C, of every node of a graph; columns are those of ``classes_``. Features without ``edges``
        are nodes without neighbours, whatever graph the network was trained on."""
        return self.uncertainty(X, edges).probabilities

    def predict(self, X: Any, edges: Any = None) -> np.ndarray:
        """The most probable class of every node of a graph."""
        probabilities = self.predict_proba(X, edges)  # fails first where nothing was fitted
        return self.classes_[probabilities.argmax(axis=1)]

    def uncertainty(self, X: Any, edges: Any = None) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every node of a graph.

        :param X: a Dataset; or n x p features, dense or sparse
        :param edges: as for ``fit``
        """
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        return Uncertainty(**self.model_.predict(data._core, *self._sampling()))

    def score(self, X: Any, y: Any = None, edges: Any = None, nodes: Any = None) -> float:
        """Share of the nodes whose class is predicted.

        :param nodes: mask or numbers of the nodes to look at; None: all with a known label
        """
        if isinstance(X, Dataset):
            if y is not None:
                raise ValueError("y: a Dataset has its own labels")
            if len(X.codes) == 0:
                raise ValueError(f"X: {X!r} is not allowed; a score needs labels")
            labels, known = X.labels, X.codes >= 0
        else:
            if y is None:
                raise ValueError("requires y to be passed, but the target y is None")
            labels = _label_array(y)
            if labels.ndim != 1 or labels.shape[0] != np.shape(X)[0]:
                raise ValueError(f"y: shape {labels.shape} is not allowed; expected one label for each of {np.shape(X)[0]} rows")
            known = np.array([not _is_unknown(label) for label in labels], bool)
        predicted = self.predict(X, edges)
        chosen = np.flatnonzero(known) if nodes is None else _node_numbers(nodes, len(predicted), "nodes")
        chosen = chosen[known[chosen]]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has a known label")
        return float(np.mean(predicted[chosen] == labels[chosen]))

    def learned_sheaf(self, X: Any, edges: Any = None, layer: int = 0) -> LearnedSheaf | NodeMaps:
        """The sheaf that the network puts on a graph: of Bayesian networks the mean of the posterior.

        :param layer: layer whose sheaf is returned (deterministic networks, and bcsnn with learners per layer)
        :return: maps per incident pair, or of cooperative networks maps per node
        """
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        content = self.model_.learned(data._core, *self._sampling(), _checks.whole("layer", layer, 0, 63))
        return read_learned(content, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a safetensors file, which the programs read as well."""
        check_is_fitted(self)
        self.model_.save(os.fspath(path), {"class_kind": self.classes_.dtype.kind})

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
        names = model.class_names
        kind = model.metadata.get("class_kind", "U")
        if not names:
            self.classes_ = np.arange(int(model.metadata["classes"]))
        elif kind in "iu":
            self.classes_ = np.array([int(name) for name in names])
        elif kind == "f":
            self.classes_ = np.array([float(name) for name in names])
        elif kind == "b":
            self.classes_ = np.array([name == "True" for name in names])
        else:
            self.classes_ = np.array(names)
        self.n_features_in_ = model.given_columns or int(model.metadata["features"])
        self._set_names(model.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
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
        if isinstance(self.random_state, Integral):
            return _checks.seed(self.random_state, "random_state")
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _sampling(self) -> tuple[int, int, int, int]:
        """Samples, seed, epoch and threads of a prediction."""
        samples = _checks.whole("predict_samples", self.predict_samples, 1, 32768)
        return samples, self._seed(), 0, _checks.whole("threads", self.threads, 0, 1_000_000)

    def _check_options(self) -> None:
        _checks.choice("model", self.model, ("bsnn", "nsd", "bcsnn", "csnn", "bflow", "flow"))
        _checks.choice("maps", self.maps, ("diagonal", "special-orthogonal", "general-linear", "identity"))
        _checks.whole("stalk_dim", self.stalk_dim, 2 if self.model in ("bcsnn", "csnn") else 1, 5)
        _checks.choice("preset", self.preset, ("auto", "none", "small", "citation", "heterophilic", "large"))
        _checks.number("validation_fraction", self.validation_fraction, 0, 1)
        if self.feature_treatment is not None:
            _checks.choice("feature_treatment", self.feature_treatment, ("automatic", "rows", "columns", "none"))
        _checks.whole("threads", self.threads, 0, 1_000_000)
        if self.kl_weight is not None:
            _checks.number("kl_weight", self.kl_weight, 0, 1e300)

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

    def _checked_data(self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int) -> Dataset:
        """A Dataset with one split, from what fit() was given."""
        if isinstance(X, Dataset):
            for name, value in (("y", y), ("edges", edges), ("train", train), ("validation", validation)):
                if value is not None:
                    raise ValueError(f"{name}: a Dataset has its own; use Dataset.with_splits for others")
            if X.class_count == 0:
                raise ValueError(f"X: {X!r} is not allowed; a training needs labels")
            count = len(X.splits)
            if count == 0:
                raise ValueError("split: the dataset has no splits; make some with make_splits() or with_splits()")
            _checks.whole("split", split, 0, count - 1)
            return X
        if split != 0:
            raise ValueError(f"split: {split!r} is not allowed; features have no splits, a Dataset has")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels, X = _label_array(y), _unmasked(X)
        if labels.ndim == 1 and any(_is_unknown(label) for label in labels) and not all(map(_is_unknown, labels)):
            features = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
        else:
            features, labels = validate_data(
                self, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan"
            )
            check_classification_targets(labels)
        codes, classes = _encode(labels, features.shape[0], minus_one=False)
        if len(classes) < 2:
            raise ValueError(f"y: {len(classes)} class is not allowed; a classifier needs at least two classes")
        count = features.shape[0]
        seen = np.flatnonzero(codes >= 0) if train is None else _node_numbers(train, count, "train")
        if validation is not None:
            held = _node_numbers(validation, count, "validation")
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
            if edges is not None:
                raise ValueError("edges: a Dataset has its own")
            if X.feature_count != self.n_features_in_:
                raise ValueError(f"X has {X.feature_count} features, but the network has {self.n_features_in_}")
            return X
        features = validate_data(
            self, _unmasked(X), accept_sparse="csr", dtype=np.float64, reset=False, ensure_all_finite="allow-nan"
        )
        return Dataset.from_numpy(edges, features)


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
