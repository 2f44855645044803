"""SheafRegressor: every network of the library on real targets, with scikit-learn's methods."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import validate_data

from . import _checks
from ._estimator import _UNSAID, SheafEstimator, in_cross_validation, node_weights, target_array
from ._masks import node_numbers, plain
from .dataset import Dataset


class SheafRegressor(RegressorMixin, SheafEstimator):
    """Predicts real numbers for the nodes of a graph with a sheaf neural network.

    The parameters are the parameters of :class:`~sheafnn.SheafClassifier`, except that ``search`` must stay None and ``device``
    must stay "cpu". The network is trained on targets that are shifted and scaled to mean 0 and deviation 1, with a Gaussian
    likelihood of deviation 1.

    After ``fit``: ``n_features_in_``, ``feature_names_in_``, ``n_iter_``, ``n_targets_``, ``result_``, ``history_`` and
    ``feature_treatment_`` as in SheafClassifier, where accuracy means R²; losses and R² refer to the scaled targets. Also
    ``target_mean_`` and ``target_scale_`` of each target, and ``transduction_``, the predictions for the graph of the training.
    ``sheaf_use_`` is None.

    >>> import numpy, sheafnn
    >>> data = sheafnn.karate_club()
    >>> degree = data.adjacency.sum(axis=1)
    >>> model = SheafRegressor("nsd", "diagonal", 2, epochs=100).fit(data, numpy.asarray(degree).ravel(), split=0)
    >>> model.predict(data).shape
    (34,)
    """

    def fit(
        self, X: Any, y: Any = None, *, edges: Any = None, train: Any = None, validation: Any = None, split: int = 0
    ) -> "SheafRegressor":
        """Trains the network.

        :param X: a Dataset, whose labels are ignored; or n x p features, dense or sparse
        :param y: n numbers, or n x k numbers; NaN where unknown
        :param edges: with features: as in SheafClassifier.fit; the same holds for train and validation
        :param split: with a Dataset: the number of the split
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises KeyboardInterrupt: Ctrl-C was pressed, and on_interrupt is not ``"keep"``
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        self._check_options()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if isinstance(X, Dataset):
            own = target_array(y, X.node_count)
        else:
            X = _checks.features("X", X)
            if edges is not None and in_cross_validation():
                raise ValueError("edges: scikit-learn's cross-validation cuts the rows of X, but not the graph")
            y = _checks.unmasked("y", plain(y))
            values = np.asarray(y)
            if values.dtype.kind == "f" and np.isnan(values).any():  # which scikit-learn would refuse
                X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
            else:
                X, y = validate_data(
                    self, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan", multi_output=True, y_numeric=True
                )
            own = target_array(y, X.shape[0])
        targets = own if own.ndim == 2 else own[:, None]
        of_dataset = isinstance(X, Dataset)
        data, number = self._training_data(X, edges, train, validation, split, ~np.isnan(targets).all(axis=1), level=3)
        seen = targets[data.splits[number].train]
        without = np.flatnonzero(np.isnan(seen).all(axis=0))
        if without.size:
            raise ValueError(f"y: target {without[0]} is not known of any node to train on")
        mean = np.nanmean(seen, axis=0)
        scale = np.nanstd(seen, axis=0)
        scale[~(scale > 0)] = 1
        predictions = self._fit_targets(data, number if of_dataset else None, number, (targets - mean) / scale, multilabel=False, level=3)
        self.target_mean_, self.target_scale_ = mean, scale
        self.one_axis_ = own.ndim == 1
        self.transduction_ = self._unscaled(predictions)
        return self

    def predict(self, X: Any, edges: Any = _UNSAID) -> np.ndarray:
        """The targets of every node of a graph, n or n x k as in ``fit``: means over ``predict_samples`` samples of the posterior.

        :param X: a Dataset; or n x p features, dense or sparse
        :param edges: with features: as for ``fit``; for a network that was trained with edges, you must give this argument
        """
        return self._unscaled(self._predict_targets(X, edges, False))

    def score(self, X: Any, y: Any = None, edges: Any = _UNSAID, nodes: Any = None, sample_weight: Any = None) -> float:
        """R² of the nodes; for several targets, the mean of their R².

        :param X: a Dataset, or features with ``edges``
        :param y: n or n x k numbers; nodes where one is NaN do not count
        :param nodes: mask or numbers of the nodes to score. None takes all nodes; but for a Dataset the test nodes of the split
            that the network was trained on, or, if the split has none, the nodes outside its sets
        :param sample_weight: n numbers, at least 0; None: all nodes count alike
        """
        predicted = self.predict(X, edges)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        truth = target_array(y, len(predicted))
        if truth.shape != predicted.shape:
            raise ValueError(f"y: shape {truth.shape} is not allowed; the network predicts {predicted.shape}")
        if nodes is not None:
            chosen: np.ndarray = node_numbers(nodes, len(predicted), "nodes", distinct=False)
        else:
            chosen = self._scored_nodes(X) if isinstance(X, Dataset) else np.arange(len(predicted))
        chosen = chosen[~np.isnan(truth[chosen].reshape(len(chosen), -1)).any(axis=1)]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has a known target")
        weights = None if sample_weight is None else node_weights(sample_weight, len(predicted))[chosen]
        return float(r2_score(truth[chosen], predicted[chosen], sample_weight=weights))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a safetensors file."""
        more = {"targets": "numbers", "target_axes": "1" if self.one_axis_ else "2"}
        for name in ("target_mean", "target_scale"):
            more[name] = np.ascontiguousarray(getattr(self, f"{name}_"), "<f8").tobytes().hex()
        self._save(path, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "SheafRegressor":
        """Loads a regressor from a file that ``save`` wrote.

        :param parameters: parameters of the constructor that predictions depend on: predict_samples, random_state, threads
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        self = cls._loaded(path, parameters, ("numbers",))
        metadata = self.model_.metadata
        try:
            self.one_axis_ = metadata["target_axes"] == "1"
            for name in ("target_mean", "target_scale"):
                values = np.frombuffer(bytes.fromhex(metadata[name]), "<f8").copy()
                if values.shape != (self.n_targets_,) or not np.isfinite(values).all():
                    raise ValueError(f"{name}: {values} is not allowed; expected {self.n_targets_} finite numbers")
                setattr(self, f"{name}_", values)
        except (KeyError, ValueError) as error:
            raise RuntimeError(f"{os.fspath(path)}: {error}") from None
        return self

    def _unscaled(self, predictions: np.ndarray) -> np.ndarray:
        own = predictions * self.target_scale_ + self.target_mean_
        return own[:, 0] if self.one_axis_ else own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
