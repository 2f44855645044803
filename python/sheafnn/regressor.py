"""SheafRegressor: every network of the library on real targets, with scikit-learn's methods."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core
from ._estimator import _UNSAID, SheafEstimator, TargetKind, check_known, in_cross_validation, node_weights, scored_nodes, target_array
from ._masks import node_numbers, plain
from .dataset import Dataset

_LOSSES = ("squared", "gaussian", "poisson")


def _targets_of(X: Any, y: Any) -> Any:
    """y, or in its place the targets of a Dataset, if it has some."""
    return X.targets if y is None and isinstance(X, Dataset) else y


class SheafRegressor(RegressorMixin, SheafEstimator):
    """Predicts real numbers for the nodes of a graph with a sheaf neural network.

    The parameters are the parameters of :class:`~sheafnn.SheafClassifier`, except that ``search`` must stay None and ``device``
    must stay "cpu".

    :param loss: ``"squared"`` (or None): numbers with a normal distribution of deviation 1. ``"gaussian"``: the variance of each
        node and target is learned as well. ``"poisson"``: counts, whose rates are learned. Before the training, numbers are
        shifted and scaled to mean 0 and deviation 1; counts are not

    After ``fit``:

    - ``n_features_in_``, ``feature_names_in_``, ``n_iter_``, ``result_``, ``history_`` and ``feature_treatment_`` as in
      SheafClassifier. An accuracy is R² here. Losses and R² refer to the scaled targets. ``sheaf_use_`` is None;
    - ``loss_``, the name of the loss;
    - ``n_targets_`` and ``target_names_``, the names of the targets of a Dataset or an empty list;
    - ``target_mean_`` and ``target_scale_`` of each target (0 and 1 for counts), and ``base_rates_``, the mean counts;
    - ``transduction_``, the predictions for the graph of the training.

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
        :param y: n values, or n x k values; NaN where unknown. None: the targets of the Dataset
        :param edges: with features: as in SheafClassifier.fit; the same holds for train and validation
        :param split: with a Dataset: the index of the split
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        :raises KeyboardInterrupt: Ctrl-C was pressed, and on_interrupt is not ``"keep"``
        :raises RuntimeError: the training diverged; the message names the epoch and the first number that is not finite
        """
        self._check_options()
        loss = _LOSSES[0] if self.loss is None else _checks.choice("loss", self.loss, _LOSSES)
        names = list(X.target_names) if y is None and isinstance(X, Dataset) else []
        y = _targets_of(X, y)
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
        check_known(targets, np.arange(len(targets)))
        data, number = self._training_data(X, edges, train, validation, split, ~np.isnan(targets).all(axis=1), level=3)
        check_known(targets, data.splits[number].train)
        if loss == "poisson":
            _check_counts(own)
        nodes = np.ascontiguousarray(data.splits[number].train, np.int32)
        mean, scale, rates = _core.target_scaling(loss, np.ascontiguousarray(targets, float), nodes)
        kind = (loss, targets.shape[1], rates.tolist(), 2)
        predictions, _ = self._fit_targets(data, number if of_dataset else None, number, (targets - mean) / scale, kind, level=3)
        self.loss_, self.base_rates_, self.target_names_ = loss, rates, names
        self.target_mean_, self.target_scale_ = mean, scale
        self.one_axis_ = own.ndim == 1
        self.transduction_ = self._unscaled(predictions)
        return self

    def predict(self, X: Any, edges: Any = _UNSAID, return_std: bool = False) -> Any:
        """The targets of every node of a graph, n or n x k as in ``fit``: means over ``predict_samples`` samples of the posterior.

        :param X: a Dataset; or n x p features, dense or sparse
        :param edges: with features: as for ``fit``; for a network that was trained with edges, you must give this argument
        :param return_std: return (means, standard deviations). With the loss "gaussian" the deviations are of the mixture of the
            samples: the learned variance plus the variance of the means. With "poisson" they are the square roots of the rates
        :raises ValueError: ``return_std`` with the loss "squared"
        """
        check_is_fitted(self)
        if return_std and self.loss_ == "squared":
            raise ValueError("return_std: True is not allowed; the loss 'squared' learns no deviations, 'gaussian' does")
        means, deviations = self._predict_targets(X, edges, self._kind())
        if not return_std or deviations is None:
            return self._unscaled(means)
        return self._unscaled(means), self._shaped(deviations * self.target_scale_)

    def predict_interval(
        self, X: Any, y: Any = None, edges: Any = _UNSAID, nodes: Any = None, coverage: float = 0.9, method: str = "conformal"
    ) -> tuple[np.ndarray, np.ndarray]:
        """An interval for the target of every node, which contains it with probability ``coverage``.

        Conformal intervals need nodes with known targets that served neither to train nor to choose the network. If these
        nodes and the others are exchangeable, the coverage is right whatever the network. The validation nodes chose the best
        epoch, so that intervals from them are a little too narrow.

        :param X: a Dataset; or n x p features, dense or sparse
        :param y: targets as in ``fit``; "posterior" does not need them
        :param edges: with features: as for ``predict``
        :param nodes: mask or indices of the nodes that determine the widths. None: for a Dataset, the validation nodes of the split
            that the network was trained on
        :param coverage: between 0 and 1
        :param method: ``"conformal"``: intervals of one width for each target. ``"normalised"``: widths in proportion to the
            standard deviations of ``predict``. ``"posterior"``: central intervals of the mixture of the posterior samples, right
            if the network is. The last two need the loss "gaussian" or "poisson"
        :return: lower and upper bounds, n or n x k as in ``fit``; infinite where there are too few nodes. Bounds of counts are
            whole numbers and belong to the interval
        :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
        """
        check_is_fitted(self)
        coverage = _checks.any_number("coverage", coverage)
        _checks.choice("method", method, ("conformal", "normalised", "posterior"))
        if method != "conformal" and self.loss_ == "squared":
            raise ValueError(f"method: {method!r} is not allowed; the loss 'squared' learns no deviations, 'gaussian' does")
        if method == "posterior":
            data = self._graph_data(X, edges)
            lower, upper = self.model_.target_intervals(data._core, self._kind(), coverage, *self._sampling())
            return self._unscaled(lower), self._unscaled(upper)
        means, deviations = self._predict_targets(X, edges, self._kind())
        truth = self._truth(X, y, self._shaped(means).shape, f"y: None is not allowed; method {method!r} needs known targets")
        if nodes is None:
            nodes = self._validation_nodes(X)
        chosen = np.ascontiguousarray(node_numbers(nodes, len(means), "nodes"), np.int32)
        scaled = (truth.reshape(means.shape) - self.target_mean_) / self.target_scale_
        sizes = deviations if method == "normalised" and deviations is not None else np.empty((0, means.shape[1]))
        lower, upper = _core.residual_intervals(means, sizes, np.ascontiguousarray(scaled), chosen, coverage)
        lower, upper = self._unscaled(lower), self._unscaled(upper)
        return (np.maximum(np.ceil(lower), 0), np.floor(upper)) if self.loss_ == "poisson" else (lower, upper)

    def _validation_nodes(self, X: Any) -> np.ndarray:
        """The nodes that chose the epoch."""
        number = getattr(self, "split_", None)
        if not isinstance(X, Dataset) or number is None or number >= len(X.splits) or len(X.splits[number].validation) == 0:
            raise ValueError("nodes: None is not allowed; name nodes with known targets that the network was not trained on")
        return X.splits[number].validation

    def _truth(self, X: Any, y: Any, shape: tuple[int, ...], missing: str) -> np.ndarray:
        """Known targets in the shape of the predictions: y, or the targets of a Dataset, whose one column may be one axis.

        :param missing: what messages say where there are none
        """
        own = _targets_of(X, y)
        if own is None:
            raise ValueError(missing)
        truth = target_array(own, shape[0])
        if y is None and truth.size == np.prod(shape):
            return truth.reshape(shape)
        if truth.shape != shape:
            name = "y: shape" if y is not None else "X: targets of shape"
            raise ValueError(f"{name} {truth.shape} {'is' if y is not None else 'are'} not allowed; the network predicts {shape}")
        return truth

    def _kind(self) -> TargetKind:
        return self.loss_, self.n_targets_, self.base_rates_.tolist(), 2

    def score(self, X: Any, y: Any = None, edges: Any = _UNSAID, nodes: Any = None, sample_weight: Any = None) -> float:
        """R² of the nodes; for several targets, the mean of their R².

        :param X: a Dataset, or features with ``edges``
        :param y: n or n x k values; nodes with a NaN do not count. None: the targets of the Dataset
        :param nodes: mask or indices of the nodes to score. None: all nodes; for a Dataset, the test nodes of the split that the
            network was trained on. If that split has no test nodes: the nodes outside its sets
        :param sample_weight: n values, at least 0; None: all nodes count alike
        """
        predicted = self.predict(X, edges)
        truth = self._truth(X, y, predicted.shape, "requires y to be passed, but the target y is None")
        if nodes is not None:
            chosen: np.ndarray = node_numbers(nodes, len(predicted), "nodes", distinct=False)
        else:
            chosen = scored_nodes(self, X) if isinstance(X, Dataset) else np.arange(len(predicted))
        chosen = chosen[~np.isnan(truth[chosen].reshape(len(chosen), -1)).any(axis=1)]
        if len(chosen) == 0:
            raise ValueError("nodes: none of them has a known target")
        weights = None if sample_weight is None else node_weights(sample_weight, len(predicted), chosen)
        return float(r2_score(truth[chosen], predicted[chosen], sample_weight=weights))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trained network to a safetensors file."""
        check_is_fitted(self)
        more = {"targets": "numbers", "target_axes": "1" if self.one_axis_ else "2", "target_loss": self.loss_}
        for name in ("target_mean", "target_scale", "base_rates"):
            more[name] = np.ascontiguousarray(getattr(self, f"{name}_"), "<f8").tobytes().hex()
        if self.target_names_:
            record = io.StringIO()
            csv.writer(record, quoting=csv.QUOTE_ALL, lineterminator="").writerow(self.target_names_)
            more["target_names"] = record.getvalue()
        self._save(path, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> "SheafRegressor":
        """Loads a regressor from a file that ``save`` wrote.

        :param parameters: parameters of the constructor that predictions depend on: predict_samples, random_state, threads
        :raises FileNotFoundError: there is no such file
        :raises RuntimeError: the file cannot be read; the message names the file and what is wrong with it
        """
        self = cls._loaded(path, parameters, ("numbers",))
        metadata = self.model_.metadata
        try:
            self.one_axis_ = metadata["target_axes"] == "1"
            self.loss_ = _checks.choice("target_loss", metadata.get("target_loss", _LOSSES[0]), _LOSSES)
            self.loss = self.loss_
            if self.loss_ == "gaussian":
                self.n_targets_ //= 2  # the network has outputs of means and of variances
            for name in ("target_mean", "target_scale", "base_rates"):
                values = np.frombuffer(bytes.fromhex(metadata.get(name, "") if name == "base_rates" else metadata[name]), "<f8").copy()
                count = self.n_targets_ if name != "base_rates" or self.loss_ == "poisson" else 0
                if values.shape != (count,) or not np.isfinite(values).all():
                    raise ValueError(f"{name}: {values} is not allowed; expected {count} finite numbers")
                setattr(self, f"{name}_", values)
            record = metadata.get("target_names", "")
            self.target_names_ = next(csv.reader(io.StringIO(record, newline="")), [])
            if self.target_names_ and len(self.target_names_) != self.n_targets_:
                raise ValueError(f"target_names: {len(self.target_names_)} names are not allowed; expected {self.n_targets_}")
        except (KeyError, ValueError) as error:
            raise RuntimeError(f"{os.fspath(path)}: {error}") from None
        return self

    def _unscaled(self, predictions: np.ndarray) -> np.ndarray:
        return self._shaped(predictions * self.target_scale_ + self.target_mean_)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """n x k values as the targets were given."""
        return values[:, 0] if self.one_axis_ else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _check_counts(y: np.ndarray) -> None:
    wrong = np.argwhere(~(np.isnan(y) | ((y >= 0) & (y == np.floor(y)))))
    if len(wrong):
        place = tuple(wrong[0])
        raise ValueError(f"y[{', '.join(map(str, place))}]: {y[place]} is not allowed; counts are 0, 1, 2, …, or NaN where unknown")
