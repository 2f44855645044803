"""What all estimators share: parameters, graphs and features as they are given, files."""

from __future__ import annotations

import os
import sys
import warnings
from numbers import Integral, Real
from typing import Any, Callable, Mapping, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core
from ._masks import node_numbers
from ._types import stalk_text
from .dataset import Dataset, NodeData
from .sheaf import BundleMaps, LearnedSheaf, NodeMaps, read_learned

E = TypeVar("E", bound="SheafEstimator")

#: What a network learns of targets: loss, number of targets, base rates of counts, number of ordered classes.
TargetKind = tuple[str, int, list[float], int]


class Interrupted(UserWarning):
    """Warns that Ctrl-C ended a training with ``on_interrupt="keep"``; the model has the parameters of the best epoch so far."""


class _Unsaid:
    def __repr__(self) -> str:
        return "<the graph of a Dataset>"


_UNSAID: Any = _Unsaid()


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


def option_text(name: str, value: Any) -> str:
    """The same; of the list ``projection``, its numbers."""
    if name != "projection" or isinstance(value, str):
        return _text(name, value)
    return ",".join(_text(name, number) for number in value)


def option_texts(
    name: str, more: Mapping[str, Any] | None, renamed: Mapping[str, str] = {}, **own: Any
) -> dict[str, str]:
    """Options as texts: parameters of the estimator, and options in its mapping ``name``.

    :param renamed: parameters that are called otherwise than their options
    """
    if more is not None and not isinstance(more, Mapping):
        raise TypeError(f"{name}: {type(more).__name__} is not allowed; expected a mapping from names to values")
    for key, value in (more or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"{name}: the key {key!r} is not allowed; expected the name of an option")
        if key in own:
            parameter = renamed.get(key, key)
            raise ValueError(f"{name}[{key!r}]: {value!r} is not allowed; it is the parameter {parameter} of the estimator")
    options = {**own, **(more or {})}
    return {key: option_text(key, value) for key, value in options.items() if value is not None}


def _predict_samples(estimator: Any) -> int:
    return _checks.whole("predict_samples", estimator.predict_samples, 1, 32768)


def check_sizes(estimator: Any, *names: str) -> None:
    """Checks predict_samples, and that texts are not given where C++ would read numbers from them.

    :param names: parameters that are numbers or None
    :raises ValueError: a parameter is not allowed; the message names it and its value
    """
    for name in names:
        value = getattr(estimator, name)
        if isinstance(value, (str, bytes)):
            raise ValueError(f"{name}: {value!r} is not allowed; must be a number")
    _predict_samples(estimator)


def sampling(estimator: Any) -> tuple[int, int, int]:
    """Samples, seed and threads of the predictions of an estimator with these parameters.

    :raises ValueError: a parameter is not allowed; the message names the parameter, its value and the limit
    """
    samples = _predict_samples(estimator)
    seed = _checks.seed(estimator.random_state, "random_state")
    return samples, seed, _checks.whole("threads", estimator.threads, 0, 1_000_000)


def check_loaded(parameters: Mapping[str, Any], *more: str) -> None:
    """Refuses parameters of ``load`` that do not belong to predictions.

    :param more: names that are allowed besides predict_samples, random_state and threads
    """
    check_names(parameters, ("predict_samples", "random_state", "threads", *more))


def check_names(arguments: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    """:raises ValueError: an argument of another name"""
    for name, value in arguments.items():
        if name not in allowed:
            raise ValueError(f"{name}: {value!r} is not allowed; choose {', '.join(allowed)}")


def check_kind(path: str | os.PathLike[str], model: Any, of: type, targets: tuple[str, ...]) -> str:
    """What the network of a file was trained on.

    :param targets: what an estimator of the class ``of`` may be trained on
    :raises RuntimeError: anything else
    """
    kind = model.metadata.get("targets", "classes")
    if kind not in targets:
        raise RuntimeError(f"{os.fspath(path)}: targets: {kind!r} are not the targets of a {of.__name__}, {' or '.join(targets)}")
    return kind


class SheafEstimator(BaseEstimator):
    """Parameters and methods of SheafClassifier and SheafRegressor."""

    def __init__(
        self,
        model: str = "bsnn",
        maps: str = "special-orthogonal",
        stalk_dim: int = 3,
        *,
        loss: str | None = None,
        preset: str = "auto",
        channels: int | None = None,
        layers: int | None = None,
        feature_treatment: str | None = None,
        edge_types: bool = False,
        stalks: Mapping[Any, int] | None = None,
        edge_stalks: Mapping[Any, int] | None = None,
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
        device: str = "cpu",
        on_interrupt: str = "raise",
        progress: bool = False,
        callback: Callable[[Any], Any] | None = None,
    ):
        self.model = model
        self.maps = maps
        self.stalk_dim = stalk_dim
        self.loss = loss
        self.preset = preset
        self.channels = channels
        self.layers = layers
        self.feature_treatment = feature_treatment
        self.edge_types = edge_types
        self.stalks = stalks
        self.edge_stalks = edge_stalks
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
        self.device = device
        self.on_interrupt = on_interrupt
        self.progress = progress
        self.callback = callback

    def learned_sheaf(self, X: Any, edges: Any = _UNSAID, layer: int = 0) -> LearnedSheaf | NodeMaps | BundleMaps:
        """The sheaf that the network learned for a graph; a Bayesian network gives the mean of its posterior.

        :param X: a Dataset; or features, with ``edges`` as for ``predict_proba``
        :param layer: number of the layer whose sheaf is returned, for deterministic networks and for bcsnn with learners per
            layer
        :return: maps per incident pair; cooperative networks give maps per node, bundle networks rotations per node and bundle
        """
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        content = self.model_.learned(data._core, *self._sampling(), _checks.whole("layer", layer, 0, 63))
        return read_learned(content, data)

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
        return _predict_samples(self), self._seed(), 0, _checks.whole("threads", self.threads, 0, 1_000_000)

    def _check_options(self) -> None:
        _checks.choice("model", self.model, _core.model_names)
        _checks.choice("maps", self.maps, _core.maps_names)
        _checks.whole("stalk_dim", self.stalk_dim, _core.least_stalk_dim(self.model), 5)
        _checks.choice("preset", self.preset, ("auto", "none", *_core.preset_names))
        _checks.number("validation_fraction", self.validation_fraction, 0, 1)
        if self.feature_treatment is not None:
            _checks.choice("feature_treatment", self.feature_treatment, _core.feature_treatment_names)
        _checks.whole("threads", self.threads, 0, 1_000_000)
        _checks.choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        if self.search is not None and _checks.number("search", self.search, 0, 1e300) == 0:
            raise ValueError(f"search: {self.search!r} is not allowed; must be above 0 seconds")
        check_sizes(
            self, "channels", "layers", "epochs", "patience", "learning_rate", "weight_decay", "dropout", "input_dropout", "samples"
        )
        Progress(self.progress, self.callback)  # checks them
        if self.kl_weight is not None:
            _checks.number("kl_weight", self.kl_weight, 0, 1e300)

    def _hold_out(self, nodes: np.ndarray, codes: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Cuts off a share of the nodes of each class, rounded.

        :param level: of the user's call in the stack, for warnings; so of other functions
        """
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
                f"validation_fraction: {fraction} of {len(nodes)} nodes is none: the last epoch is kept", UserWarning, stacklevel=level
            )
        return left, chosen

    def _graph_data(self, X: Any, edges: Any) -> Dataset:
        """A Dataset without labels, from what predict() and the like were given."""
        if isinstance(X, Dataset):
            if edges is not None and edges is not _UNSAID:
                raise ValueError("edges: not allowed with a Dataset, which has its own edges")
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
                    "edges: missing; the network was trained with edges. Pass the graph of these nodes, in a "
                    "Pipeline as pipeline.predict(X, edges=edges), or edges=None for nodes without neighbours"
                )
            if trained_with is None:
                warnings.warn(
                    "edges: missing, and the file does not say whether the network was trained with some; the nodes have no "
                    "neighbours (edges=None says so)", UserWarning, stacklevel=4
                )
        return Dataset.from_numpy(edges, features)

    def _training_data(
        self, X: Any, edges: Any, train: Any, validation: Any, split: int, known: np.ndarray, level: int
    ) -> tuple[Dataset, int]:
        """A Dataset and the number of its split, for targets.

        :param X: a Dataset; or features, as fit() has checked them
        :param known: which nodes have targets
        """
        if isinstance(X, Dataset):
            _checks.no_parts_of_dataset(edges=edges, train=train, validation=validation)
            return X, number_of_split(X, split)
        if split != 0:
            raise ValueError(f"split: {split!r} is not allowed; only a Dataset has splits")
        count = X.shape[0]
        seen = np.flatnonzero(known) if train is None else node_numbers(train, count, "train")
        if validation is not None:
            held = node_numbers(validation, count, "validation")
            seen = seen if train is not None else np.setdiff1d(seen, held)
        else:
            seen, held = self._hold_out(seen, np.zeros(count, int), level + 1)
        own = getattr(self, "feature_names_in_", ())
        no_labels = np.empty(0, np.int32), np.empty(0, int)
        return Dataset._of_codes(edges, X, *no_labels, [(seen, held, [])], "training data", (), own), 0

    def _fit_targets(
        self, data: Dataset, split: int | None, number: int, targets: np.ndarray, kind: TargetKind, level: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Trains on targets, n x k with NaN where unknown. Returns the predictions of all nodes as ``_predict_targets``.

        :param split: what ``split_`` becomes
        """
        if self.search is not None:
            raise ValueError(f"search: {self.search!r} is not allowed; the settings of a search are compared by classes")
        if device_number(self.device) >= 0:
            raise ValueError(f"device: {self.device!r} is not allowed; only classes are trained on CUDA devices")
        with Progress(self.progress, self.callback) as report:
            model, result, history, predictions = _core.train_targets(
                data._core, number, np.ascontiguousarray(targets), kind, self.model, self.maps, self.stalk_dim, self.preset,
                *self._network_and_training(data), self._seed(), report, self.on_interrupt == "keep",
            )
        self.n_features_in_ = data.feature_count
        self.trained_with_edges_ = data.edge_count > 0
        self.split_ = split
        self._set_names(data.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.sheaf_use_ = model.sheaf_use
        self.result_ = result
        self.history_ = history
        self.n_iter_ = result["epochs"]
        self.n_targets_ = targets.shape[1]
        if result["stop_reason"] == "interrupted":
            warnings.warn(interruption(result), Interrupted, stacklevel=level)
        return predictions

    def _predict_targets(self, X: Any, edges: Any, kind: TargetKind) -> tuple[np.ndarray, np.ndarray | None]:
        """Expected numbers or probabilities, n x k (of K ordered classes n x K), and standard deviations where the loss has them."""
        check_is_fitted(self)
        data = self._graph_data(X, edges)
        return self.model_.predict_targets(data._core, kind, *self._sampling())

    def _network_and_training(self, data: Dataset) -> tuple[dict[str, str], dict[str, str]]:
        """All options as texts.

        :param data: whose types the network knows
        """
        if not isinstance(self.edge_types, (bool, np.bool_)):
            raise ValueError(f"edge_types: {self.edge_types!r} is not allowed; must be True or False")
        if self.edge_stalks is not None and not self.edge_types:
            raise ValueError(f"edge_stalks: {self.edge_stalks!r} is not allowed without edge_types=True")
        network = option_texts(
            "network", self.network, channels=self.channels, layers=self.layers, feature_treatment=self.feature_treatment,
            edge_types=True if self.edge_types else None,
            stalks=stalk_text("stalks", self.stalks, data.node_type_names, "nodes", int(self.stalk_dim)),
            edge_stalks=stalk_text("edge_stalks", self.edge_stalks, data.edge_type_names, "edges", int(self.stalk_dim)),
        )
        training = option_texts(
            "training",
            self.training,
            {"kl_maximum": "kl_weight"},
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
        return network, training

    def _save(self, path: str | os.PathLike[str], more: dict[str, str]) -> None:
        """Writes the network with what files keep of all estimators, and more."""
        for key, name in (("trained_with_edges", "trained_with_edges"), ("split", "trained_split")):
            value = getattr(self, f"{key}_", None)
            if value is not None:
                more[name] = str(int(value))
        self.model_.save(os.fspath(path), more)

    @classmethod
    def _loaded(cls: type[E], path: str | os.PathLike[str], parameters: Mapping[str, Any], targets: tuple[str, ...]) -> E:
        """An estimator with the network of a file.

        :param targets: what it may be trained on
        """
        model = _core.Model.load(os.fspath(path))
        check_loaded(parameters)
        kind = check_kind(path, model, cls, targets)
        self = cls(model=model.kind, maps=model.maps, stalk_dim=model.stalk_dimension, **parameters)
        if "trained_with_edges" in model.metadata:
            self.trained_with_edges_ = model.metadata["trained_with_edges"] == "1"
        elif "class_kind" not in model.metadata:
            self.trained_with_edges_ = True  # programs train on graphs
        if "trained_split" in model.metadata:
            self.split_ = int(model.metadata["trained_split"])
        self.n_features_in_ = model.given_columns or int(model.metadata["features"])
        if kind != "classes":
            self.n_targets_ = int(model.metadata["classes"])
        self._set_names(model.feature_names)
        self.feature_treatment_ = model.feature_treatment
        self.model_ = model
        self.sheaf_use_ = model.sheaf_use
        return self


def interruption(result: Mapping[str, Any]) -> str:
    return f"interrupted after {result['epochs']} epochs; the model has the parameters of epoch {result['best_epoch']}"


def number_of_split(data: NodeData, split: Any) -> int:
    count = len(data.splits)
    if count == 0:
        raise ValueError("split: the dataset has no splits; make some with make_splits() or with_splits()")
    return _checks.whole("split", split, 0, count - 1)


def scored_nodes(estimator: Any, data: NodeData) -> np.ndarray:
    """The nodes that say how good the network of an estimator is, which was trained on the split ``split_``."""
    splits = data.splits
    if not splits:
        return np.arange(data.node_count)
    number = 0 if len(splits) == 1 else getattr(estimator, "split_", None)
    if number is None or number >= len(splits):
        raise ValueError(
            f"nodes: None is not allowed; it is not known which of the {len(splits)} splits the network was trained on: name "
            "the nodes, e.g. nodes=data.splits[0].test"
        )
    split = splits[number]
    return split.test if len(split.test) else np.setdiff1d(np.arange(data.node_count), np.concatenate(split))


def target_array(y: Any, count: int, name: str = "y", of: str = "nodes") -> np.ndarray:
    """Targets of n nodes, n or n x k, NaN where unknown."""
    array = _checks.real(name, y)
    if array.ndim not in (1, 2) or array.shape[0] != count or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(f"{name}: shape {array.shape} is not allowed; expected a number, or k numbers, for each of {count} {of}")
    infinite = np.argwhere(np.isinf(array))
    if len(infinite):
        place = tuple(infinite[0])
        raise ValueError(f"{name}[{', '.join(map(str, place))}]: {array[place]} is not allowed; must be finite, or NaN where unknown")
    return array


def check_known(targets: np.ndarray, train: np.ndarray) -> None:
    """Refuses a target, n x k in all, that no node to train on has.

    :raises ValueError: a target is not known; the message names the target
    """
    without = np.flatnonzero(np.isnan(targets[train]).all(axis=0))
    if without.size:
        raise ValueError(f"y: target {without[0]} is not known of any node to train on")


#: what messages say where a device is asked for
WITHOUT_CUDA = (
    "this package was built without CUDA, where nvcc is "
    "'pip install . --config-settings=cmake.define.SHEAFNN_CUDA=ON' builds it with CUDA"
)


def device_number(device: Any) -> int:
    """The number of a CUDA device, -1: the CPU."""
    if device == "cpu":
        return -1
    number = "0" if device == "cuda" else device.removeprefix("cuda:") if isinstance(device, str) else ""
    if not (number.isascii() and number.isdigit() and int(number) < 2**31):
        raise ValueError(f"device: {device!r} is not allowed; choose cpu, cuda or cuda:NUMBER")
    if not _core.has_device_models:
        raise ValueError(f"device: {device!r} is not allowed; {WITHOUT_CUDA}")
    return int(number)


def node_weights(weights: Any, count: int, chosen: np.ndarray, of: str = "nodes") -> np.ndarray:
    """Weights of the chosen nodes, at most 1: their sum is finite.

    :param of: what has weights, in messages
    """
    own = _checks.real("sample_weight", weights)
    if own.shape != (count,):
        raise ValueError(f"sample_weight: shape {own.shape} is not allowed; expected one number for each of {count} {of}")
    bad = np.flatnonzero(~(np.isfinite(own) & (own >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}]: {own[bad[0]]} is not allowed; must be finite and at least 0")
    largest = own[chosen].max()
    if largest == 0:
        raise ValueError(f"sample_weight: 0 is not allowed for all of the {of} that are scored")
    return own[chosen] / largest


def in_cross_validation() -> bool:
    """Whether scikit-learn fits on a part of the rows."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("_fit_and_score", "_fit_and_predict") and frame.f_globals.get("__name__", "").startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Progress:
    """A progress bar and the user's callback as one function of an epoch; None where there is nothing to call.

    :raises ValueError: a callback that cannot be called, or another value than True and False
    """

    def __init__(self, shown: bool, callback: Callable[[Any], Any] | None):
        if not isinstance(shown, (bool, np.bool_)):
            raise ValueError(f"progress: {shown!r} is not allowed; must be True or False")
        if callback is not None and not callable(callback):
            raise ValueError(f"callback: {callback!r} is not allowed; expected a function of an epoch's report, or None")
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
