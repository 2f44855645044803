"""SheafClassifier: every network of the library with scikit-learn's methods."""

from __future__ import annotations

import dataclasses
import os
import warnings
from typing import Any, Callable, Sequence

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core
from ._estimator import (
    _UNSAID,
    Interrupted,
    Progress,
    SheafEstimator,
    TargetKind,
    check_known,
    device_number,
    in_cross_validation,
    interruption,
    node_weights,
    number_of_split,
    scored_nodes,
    target_array,
)
from ._labels import called, encode, known_labels, label_array, same_classes
from ._masks import node_numbers, plain
from .dataset import Dataset


class UnusedSheaf(UserWarning):
    """Warns that a network does not use its sheaf: the validation loss does not rise when edges exchange their maps."""


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """What the posterior samples say about every node; entropies are in nats."""

    probabilities: np.ndarray  #: n x C, mean over the samples
    entropy: np.ndarray  #: n, entropy of the mean distribution, at most log C
    mutual_information: np.ndarray  #: n, the epistemic part of the entropy; deterministic networks have 0
    epistemic_variance: np.ndarray  #: n, the mean over the classes of the variance over the samples


class SheafClassifier(ClassifierMixin, SheafEstimator):
    """Classifies the nodes of a graph with a sheaf neural network.

    ``fit`` takes a :class:`~sheafnn.Dataset` and the number of a split, or, as in scikit-learn, features and labels, with the
    graph as ``edges``. ``predict`` takes any graph whose nodes have the same features. An option that you leave at None takes the
    preset's value for the graph's size and homophily.

    :param model: network, Bayesian or deterministic. ``"bsnn"`` or ``"nsd"``: maps per incident pair. ``"bcsnn"`` or ``"csnn"``:
        maps per node. ``"bflow"`` or ``"flow"``: continuous time. ``"bconn-nsd"`` or ``"conn-nsd"``: orthogonal maps, computed
        from the features before the training. ``"bbunn"`` or ``"bunn"``: rotations per node and bundle. ``"bsnn-given"`` or
        ``"snn"``: convolutions on the sheaf of the data (:meth:`Dataset.with_sheaf`). ``"bsnn-around"`` or ``"nsd-given"``: other
        layers on that sheaf
    :param maps: ``"diagonal"``, ``"special-orthogonal"``, ``"general-linear"`` or ``"identity"``; cooperative and bundle networks
        ignore it
    :param stalk_dim: stalk dimension, 1 to 5; cooperative and bundle networks have 2 to 5
    :param loss: None: a class of each node, or several labels of each node where ``y`` is n x C. ``"ordinal"``: classes that are
        numbers are ordered, and thresholds of one scale divide them
    :param preset: ``"auto"``, ``"small"``, ``"citation"``, ``"heterophilic"``, ``"large"``, ``"dense"`` or ``"none"``
    :param channels: number of feature channels per stalk coordinate, 1 to 1024
    :param layers: number of diffusion layers, 1 to 64; networks in continuous time have no layers
    :param feature_treatment: how features are treated before the network reads them: ``"automatic"`` (by what the columns hold),
        ``"rows"`` (scaled to sum 1), ``"columns"`` or ``"none"``. The statistics come from the graph that you fit
    :param edge_types: whether ``"nsd"`` and ``"bsnn"`` have weights of the sheaf learner for each type of edges of a Dataset
    :param stalks: stalk dimensions of types of nodes of a Dataset, e.g. ``{"author": 1}``, 1 to ``stalk_dim``; other types, and None
        for all, have ``stalk_dim``. Needs diagonal or general linear maps
    :param edge_stalks: stalk dimensions of types of edges; needs ``edge_types=True``
    :param epochs: largest number of epochs
    :param patience: stop after this many epochs without improvement
    :param learning_rate: Adam's learning rate, above 0
    :param weight_decay: L2 decay of the weights, at least 0
    :param dropout: dropout rate of hidden features, in [0, 1)
    :param input_dropout: dropout rate of the features, in [0, 1)
    :param kl_weight: largest weight of the KL term, at least 0
    :param samples: number of posterior samples averaged at each evaluation of the training
    :param predict_samples: number of posterior samples that ``predict`` and the other predictions average
    :param validation_fraction: share of the training nodes that selects the best epoch, where you give ``fit`` no ``validation``.
        0 keeps the last epoch. A Dataset has its own validation nodes
    :param search: seconds in which the settings of a fixed list are tried (networks, maps, depths, an identity sheaf, nodes
        without edges). The setting with the best validation score is then trained. A search sees only the training and validation
        nodes of the split. If you change ``model``, ``maps`` or ``stalk_dim``, they restrict the list; other options hold for all
        settings. None: no search
    :param network: further options of the network, e.g. ``{"add_hp": True, "filter": "chebyshev"}``
    :param training: further options of the training, e.g. ``{"kl_schedule": "constant"}``
    :param random_state: seed of weights, dropout and noise; the same seed gives the same numbers, for any number of threads.
        NumPy's ``Generator`` or ``RandomState`` gives a new seed each time
    :param threads: number of threads; 0: as many as the graph is worth
    :param device: device to train on: ``"cpu"``, ``"cuda"`` (the first CUDA device) or ``"cuda:N"``. CUDA needs a package that
        was built for it, and a network that is not in continuous time. Predictions are made on the CPU
    :param on_interrupt: what Ctrl-C does: ``"raise"`` raises KeyboardInterrupt; ``"keep"`` ends the training with the best
        parameters so far, and warns
    :param progress: show a progress bar
    :param callback: called with an ``EpochReport`` after every epoch; False ends the training with the best parameters

    After ``fit``:

    - ``classes_``, ``n_features_in_``, ``feature_names_in_`` where columns have names, ``n_iter_`` (epochs);
    - ``feature_treatment_``, a line that says how features are treated;
    - ``result_``, the figures of the best epoch: best_epoch, epochs, stop_reason, epoch_seconds, parameters, preset,
      validation_loss and validation_accuracy. Of the test nodes it has test_accuracy, test_nll, test_ece, test_roc_auc,
      test_average_precision, test_macro_f1 and test_brier. A figure is NaN where the split has no such nodes. ``sheaf`` is a
      dictionary that says whether the network uses its sheaf. It has kl_per_pair, and quantiles of spread (kappa or sigma) and of
      turn_degrees. It also has the rise of the validation loss with other maps: permuted between edges, drawn from the prior, or
      the identity. A number that does not exist is None. A sheaf that the network does not use gives the warning ``UnusedSheaf``;
    - ``sheaf_use_``, the same dictionary, which files keep, so that a loaded classifier has it too. It is None for a network
      without a sheaf and for a file without the dictionary;
    - ``history_``, one array for each of loss, nll, kl, kl_weight, validation_loss, validation_accuracy;
    - ``search_``, after a search, a dictionary for each setting, the best first: name, model, maps, stalk_dim, round (its last),
      splits, epochs and seconds. It also has validation_score, validation_std and validation_loss; error says why the setting
      failed or was skipped;
    - ``best_params_``, after a search, the name, model, maps and stalk_dim that were chosen;
    - ``transduction_``, the classes predicted for all nodes of the graph, and ``uncertainty_``, their uncertainty;
    - ``multilabel_``, whether each node has several labels, n x C values 0 and 1. Predictions are n x C then, and there is no
      uncertainty. In ``result_`` and ``history_``, accuracy is the share of right labels;
    - ``ordinal_``, whether the classes are ordered. There is no uncertainty then, and ``sheaf_use_`` is None.

    >>> import sheafnn
    >>> data = sheafnn.karate_club()
    >>> model = SheafClassifier(stalk_dim=2, epochs=50).fit(data, split=0)
    >>> model.predict_proba(data).shape
    (34, 2)
    """

    multilabel_ = False  #: whether each node has several labels
    ordinal_ = False  #: whether the classes are ordered

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
        :param y: with features: n labels; None or NaN where unknown. The number -1 is a label like any other, as in scikit-learn.
            For several labels of each node, give n x C values 0 and 1, with NaN or -1 where unknown, also with a Dataset
        :param edges: with features: m x 2 node numbers or a scipy sparse adjacency matrix without weights; None: no edges
        :param train: with features: mask or indices of the nodes whose labels may be seen; None: all nodes with a label
        :param validation: with features: mask or indices of the nodes that select the best epoch. They are not trained on. None:
            the stratified share ``validation_fraction`` of ``train``
        :param split: with a Dataset: the index of the split
        :param missing_labels: with features: texts that mean an unknown label; all others are classes then. None: words such as
            NA, nan or None are refused
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises KeyboardInterrupt: Ctrl-C was pressed, and on_interrupt is not ``"keep"``
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        for attribute in ("search_", "best_params_"):  # of an earlier fit
            self.__dict__.pop(attribute, None)
        if self.loss is not None:
            _checks.choice("loss", self.loss, ("ordinal",))
            return self._fit_ordinal(X, y, edges, train, validation, split, missing_labels)
        if _has_several_labels(y):
            return self._fit_several(X, y, edges, train, validation, split, missing_labels)
        plan = self._plan(X, y, edges, train, validation, split, missing_labels)
        if self.search is not None:
            plan = self._searched(plan)
        with Progress(self.progress, self.callback) as report:
            outcome = plan.train(report, self.on_interrupt == "keep")
        for message, category in self._take(plan, outcome):
            warnings.warn(message, category, stacklevel=2)
        return self

    def _fit_several(
        self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int, missing_labels: Any
    ) -> "SheafClassifier":
        """Trains on several labels of each node."""
        self._check_options()
        if missing_labels is not None:
            raise ValueError(f"missing_labels: {missing_labels!r} is not allowed; several labels are 0, 1, and NaN or -1 where unknown")
        if not isinstance(X, Dataset):
            X = validate_data(self, _checks.features("X", X), accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
        targets = _several_labels(y, X.node_count if isinstance(X, Dataset) else X.shape[0])
        own = isinstance(X, Dataset)
        check_known(targets, np.arange(len(targets)))
        data, number = self._training_data(X, edges, train, validation, split, ~np.isnan(targets).all(axis=1), level=4)
        check_known(targets, data.splits[number].train)
        kind: TargetKind = ("multilabel", targets.shape[1], [], 2)
        predictions, _ = self._fit_targets(data, number if own else None, number, targets, kind, level=4)
        self.multilabel_, self.ordinal_ = True, False
        self.__dict__.pop("uncertainty_", None)
        self.classes_ = np.arange(targets.shape[1])
        self.transduction_ = (predictions > 0.5).astype(int)
        return self

    def _fit_ordinal(
        self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int, missing_labels: Any
    ) -> "SheafClassifier":
        """Trains on ordered classes."""
        self._check_options()
        data = self._checked_data(X, y, edges, train, validation, split, missing_labels)
        if data.classes.dtype.kind not in "iufb":
            raise ValueError(f"loss: 'ordinal' is not allowed; the order of the classes {data.classes[:3].tolist()} … is not known: give numbers")
        own = isinstance(X, Dataset)
        targets = np.where(data.codes < 0, np.nan, data.codes.astype(float))[:, None]
        kind: TargetKind = ("ordinal", 1, [], len(data.classes))
        predictions, _ = self._fit_targets(data, split if own else None, split if own else 0, targets, kind, level=4)
        self.multilabel_, self.ordinal_ = False, True
        self.__dict__.pop("uncertainty_", None)
        self.classes_ = data.classes
        self.transduction_ = self.classes_[predictions.argmax(axis=1)]
        return self

    def _kind(self) -> TargetKind:
        """What a network with several labels or ordered classes learns."""
        return ("ordinal", 1, [], len(self.classes_)) if self.ordinal_ else ("multilabel", len(self.classes_), [], 2)

    def _plan(
        self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int, missing_labels: Any
    ) -> "_Plan":
        """What fit() was given, checked."""
        if self.loss is not None:
            raise ValueError(f"loss: {self.loss!r} is not allowed; only classes without an order are trained together")
        self._check_options()
        seed = self._seed()
        data = self._checked_data(X, y, edges, train, validation, split, missing_labels)
        network, training = self._network_and_training(data)
        own = isinstance(X, Dataset)
        model = (self.model, self.maps, self.stalk_dim)
        return _Plan(data, split if own else 0, own, model, self.preset, network, training, seed, device_number(self.device))

    def _plan_of_split(self, data: Dataset, split: int) -> "_Plan":
        """A training on data with splits, checked."""
        return self._plan(data, None, None, None, None, split, None)

    def _searched(self, plan: "_Plan") -> "_Plan":
        """The plan with the best setting of a search."""
        if self.edge_types or self.stalks is not None:
            raise ValueError(f"search: {self.search!r} is not allowed; it has no networks with edge_types or stalks")
        self.search_ = _core.search(
            plan.data._core, plan.split, *self._restrictions(), plan.network, plan.training, plan.seed, float(self.search or 0)
        )
        best = self.search_[0]
        self.best_params_ = {key: best[key] for key in ("name", "model", "maps", "stalk_dim")}
        model = (best["model"], best["maps"], best["stalk_dim"])
        return dataclasses.replace(plan, model=model, preset=_core.searched + best["name"])

    def _take(self, plan: "_Plan", outcome: tuple[Any, ...]) -> list[tuple[str, type[Warning]]]:
        """Takes what a training gave. Returns what is to be warned of."""
        model, result, history, prediction = outcome
        data = plan.data
        self.multilabel_ = self.ordinal_ = False
        self.classes_ = data.classes
        self.n_features_in_ = data.feature_count
        self.trained_with_edges_ = data.edge_count > 0
        self.split_ = plan.split if plan.of_dataset else None
        self._set_names(data.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.sheaf_use_ = model.sheaf_use
        self.result_ = result
        self.history_ = history
        self.n_iter_ = result["epochs"]
        self.uncertainty_ = Uncertainty(**prediction)
        self.transduction_ = self.classes_[self.uncertainty_.probabilities.argmax(axis=1)]
        found: list[tuple[str, type[Warning]]] = []
        if (unused := result["sheaf"]["warning"]) is not None:
            found.append((unused, UnusedSheaf))
        if result["stop_reason"] == "interrupted":
            found.append((interruption(result), Interrupted))
        return found

    def predict_proba(self, X: Any, edges: Any = _UNSAID) -> np.ndarray:
        """Class probabilities of every node of a graph, n x C, with a column for each of ``classes_``.

        :param X: a Dataset; or n x p features, dense or sparse
        :param edges: with features: as for ``fit``; None or []: nodes without neighbours. For a network that was trained with
            edges, you must give this argument, in a Pipeline as ``pipeline.predict(X, edges=edges)``
        :raises ValueError: features without ``edges`` for a network that was trained with edges
        """
        check_is_fitted(self)
        if self.multilabel_ or self.ordinal_:
            return self._predict_targets(X, edges, self._kind())[0]
        return self.uncertainty(X, edges).probabilities

    def predict(self, X: Any, edges: Any = _UNSAID) -> np.ndarray:
        """The most probable class of every node of a graph; ``predict_proba`` takes the same arguments."""
        probabilities = self.predict_proba(X, edges)  # fails first where nothing was fitted
        if self.multilabel_:
            return (probabilities > 0.5).astype(int)
        return self.classes_[probabilities.argmax(axis=1)]

    def uncertainty(self, X: Any, edges: Any = _UNSAID) -> Uncertainty:
        """Probabilities, entropy, mutual information and epistemic variance of every node of a graph;
        ``predict_proba`` takes the same arguments."""
        check_is_fitted(self)
        if self.multilabel_:
            raise ValueError("uncertainty: not available for networks with several labels of each node; predict_proba gives their probabilities")
        if self.ordinal_:
            raise ValueError("uncertainty: not available for networks with ordered classes; predict_proba gives their probabilities")
        data = self._graph_data(X, edges)
        return Uncertainty(**self.model_.predict(data._core, *self._sampling()))

    def score(
        self, X: Any, y: Any = None, edges: Any = _UNSAID, nodes: Any = None, sample_weight: Any = None
    ) -> float:
        """The accuracy: the share of the nodes whose class is predicted.

        :param X: a Dataset; or features, with labels ``y`` and ``edges`` as for ``predict_proba``
        :param nodes: mask or indices of the nodes to score. None: all nodes with a known label; for a Dataset with splits, the
            test nodes of the split that the network was trained on. If that split has no test nodes: the labelled nodes outside
            its sets
        :param sample_weight: n values, at least 0, which weight the nodes. None: all nodes count alike
        :raises ValueError: no such node has a known label, all of their weights are 0, or the split of the training is not known
        """
        check_is_fitted(self)
        own = isinstance(X, Dataset)
        if self.multilabel_:
            return self._score_of_several(X, y, edges, nodes, sample_weight)
        if own:
            if y is not None:
                raise ValueError("y: not allowed with a Dataset, which has its own labels")
            if len(X.codes) == 0:
                raise ValueError(f"X: {X!r} is not allowed; a score needs labels")
            codes, classes = X.codes, X.classes
        else:
            if y is None:
                raise ValueError("requires y to be passed, but the target y is None")
            with called("y"):
                labels = label_array(y)
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = labels[:, 0]  # as fit() takes them
            if labels.ndim != 1 or labels.shape[0] != np.shape(X)[0]:
                raise ValueError(f"y: shape {labels.shape} is not allowed; expected one label for each of {np.shape(X)[0]} rows")
            with called("y"):
                codes, classes = encode(labels, len(labels), minus_one=False, missing_labels=())
        predicted = self.predict_proba(X, edges).argmax(axis=1)
        chosen: np.ndarray
        if nodes is not None:
            chosen = node_numbers(nodes, len(predicted), "nodes", distinct=False)
        else:
            chosen = scored_nodes(self, X) if own else np.arange(len(predicted))
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
        return float(np.average(right, weights=node_weights(sample_weight, len(predicted), chosen)))

    def _score_of_several(self, X: Any, y: Any, edges: Any, nodes: Any, sample_weight: Any) -> float:
        """Share of the nodes of which all labels are predicted, as scikit-learn's accuracy."""
        predicted = self.predict(X, edges)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        known = _several_labels(y, len(predicted))
        if nodes is not None:
            chosen: np.ndarray = node_numbers(nodes, len(predicted), "nodes", distinct=False)
        else:
            chosen = scored_nodes(self, X) if isinstance(X, Dataset) else np.arange(len(predicted))
        chosen = chosen[~np.isnan(known[chosen]).any(axis=1)]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has all of its labels known")
        weights = None if sample_weight is None else node_weights(sample_weight, len(predicted), chosen)
        return float(accuracy_score(known[chosen].astype(int), predicted[chosen], sample_weight=weights))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a safetensors file, which the programs read as well.

        :raises ValueError: a file cannot hold the labels: they are neither numbers, texts, bytes nor times
        """
        check_is_fitted(self)
        if self.multilabel_:
            return self._save(path, {"targets": "multilabel"})
        if self.ordinal_:
            return self._save(path, {"targets": "ordinal", **class_notes(self.classes_)})
        self._save(path, class_notes(self.classes_))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "SheafClassifier":
        """Loads a classifier from a file that ``save`` or the program train wrote.

        :param parameters: parameters of the constructor that predictions depend on: predict_samples, random_state, threads
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        self = cls._loaded(path, parameters, ("classes", "multilabel", "ordinal"))
        kind = self.model_.metadata.get("targets")
        self.multilabel_, self.ordinal_ = kind == "multilabel", kind == "ordinal"
        self.loss = "ordinal" if self.ordinal_ else None
        self.classes_ = np.arange(self.n_targets_) if self.multilabel_ else classes_of(os.fspath(path), self.model_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

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

    def _checked_data(
        self, X: Any, y: Any, edges: Any, train: Any, validation: Any, split: int, missing_labels: Any
    ) -> Dataset:
        """A Dataset with one split, from what fit() was given."""
        if isinstance(X, Dataset):
            _checks.no_parts_of_dataset(y=y, edges=edges, train=train, validation=validation, missing_labels=missing_labels)
            if X.class_count == 0:
                raise ValueError(f"X: {X!r} is not allowed; a training needs labels")
            number_of_split(X, split)
            return X
        X = _checks.features("X", X)
        if split != 0:
            raise ValueError(f"split: {split!r} is not allowed; only a Dataset has splits")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if edges is not None and in_cross_validation():
            raise ValueError(
                "edges: scikit-learn's cross-validation cuts the rows of X, but not the graph; use sheafnn.grid_search(data, grid), "
                "which trains on the splits of a Dataset"
            )
        with called("y"):
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
        with called("y"):
            codes, classes = encode(labels, features.shape[0], minus_one=False, missing_labels=missing_labels)
        if len(classes) < 2:
            raise ValueError(f"y: {len(classes)} class is not allowed; a classifier needs at least two classes")
        count = features.shape[0]
        seen = np.flatnonzero(codes >= 0) if train is None else node_numbers(train, count, "train")
        if validation is not None:
            held = node_numbers(validation, count, "validation")
            seen = seen if train is not None else np.setdiff1d(seen, held)
        else:
            seen, held = self._hold_out(seen, codes, 5)
        names = getattr(self, "feature_names_in_", ())
        return Dataset._of_codes(edges, features, codes, classes, [(seen, held, [])], "training data", (), names)

def _has_several_labels(y: Any) -> bool:
    """Whether y is n x C with C of 2 and more, which numbers say."""
    y = plain(y)
    if not isinstance(y, (np.ndarray, list, tuple)) and not hasattr(y, "iloc"):
        return False
    try:
        array = np.asarray(y)
    except ValueError:
        return False
    return array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "biuf"


def _several_labels(y: Any, count: int) -> np.ndarray:
    """n x C: 0 and 1, NaN where unknown."""
    array = target_array(y, count)
    array = np.where(array == -1, np.nan, array)
    wrong = np.argwhere(~((array == 0) | (array == 1) | np.isnan(array)))
    if array.ndim != 2 or len(wrong):
        place = ", ".join(map(str, wrong[0])) if len(wrong) else ""
        value = array[tuple(wrong[0])] if len(wrong) else array.shape
        raise ValueError(f"y[{place}]: {value} is not allowed; several labels of a node are 0 and 1, and NaN or -1 where unknown")
    return array


@dataclasses.dataclass(frozen=True)
class _Plan:
    """A training: what the library needs to know."""

    data: Dataset
    split: int
    of_dataset: bool  #: or of features and labels
    model: tuple[str, str, int]  #: name, maps, stalk dimension
    preset: str
    network: dict[str, str]
    training: dict[str, str]
    seed: int
    device: int  #: -1: the CPU

    def train(self, report: Callable[[Any, int], Any] | None, keep: bool) -> tuple[Any, ...]:
        """What _take() takes.

        :param report: called after every epoch
        :param keep: Ctrl-C keeps the best parameters
        """
        options = (*self.model, self.preset, self.network, self.training)
        if self.device < 0:
            return _core.train(self.data._core, self.split, *options, self.seed, report, keep)
        (outcome,) = _core.train_on_device(self.data._core, [(self.split, self.seed)], *options, report, keep, self.device)
        if isinstance(outcome, str):
            raise RuntimeError(outcome)
        return outcome


def class_notes(classes: np.ndarray) -> dict[str, str]:
    """Classes with the type that they were given, as files keep them.

    :raises ValueError: objects that are neither numbers, texts, bytes nor times
    """
    if classes.dtype.hasobject:
        kinds = ", ".join(sorted({type(label).__name__ for label in classes}))
        raise ValueError(
            f"classes_: labels of type {kinds} cannot be written to a file; use numbers, texts or NumPy's times as labels, or use pickle"
        )
    return {
        "class_kind": classes.dtype.kind,
        "class_dtype": classes.dtype.str,
        "class_data": np.ascontiguousarray(classes).tobytes().hex(),
    }


def classes_of(path: str, model: Any, count: int | None = None) -> np.ndarray:
    """The classes of a file, with the type that they were given.

    :param count: of the classes, where the network's outputs are others
    """
    metadata, names = model.metadata, model.class_names
    if count is None:
        count = int(metadata["classes"]) + (metadata.get("targets") == "ordinal")  # thresholds lie between classes
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
