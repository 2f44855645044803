"""A search over a grid of parameters on the splits of one graph."""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any, Mapping, Sequence

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from . import _checks
from .classifier import Interrupted, SheafClassifier
from .dataset import Dataset

_SCORES = ("validation_accuracy", "validation_metric", "validation_loss")


@dataclasses.dataclass(frozen=True, eq=False)
class GridSearch:
    """The result of :func:`grid_search`."""

    best_classifier: SheafClassifier  #: classifier with the best parameters, fitted to the first of the splits
    best_params: dict[str, Any]
    best_score: float  #: mean score over the splits
    best_index: int  #: number of the best candidate in ``results``
    #: an array for each quantity, with an entry for each candidate, under the names of scikit-learn's ``cv_results_``: params,
    #: param_NAME, split0_test_score, …, mean_test_score, std_test_score, rank_test_score, mean_fit_time. "test" is
    #: scikit-learn's word; the scores come from the validation nodes
    results: dict[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class _Run:
    classifier: SheafClassifier | None  #: of the first split
    result: Mapping[str, Any]
    seconds: float


def _fit(classifier: SheafClassifier, data: Dataset, split: int) -> _Run:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Interrupted)  # the search says it
        classifier.fit(data, split=split)
    return _Run(classifier if split == 0 else None, classifier.result_, time.perf_counter() - start)


def grid_search(
    data: Dataset,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    classifier: SheafClassifier | None = None,
    *,
    splits: Sequence[int] | None = None,
    scoring: str = "validation_accuracy",
    n_jobs: int | None = None,
) -> GridSearch:
    """Trains a classifier with every combination of parameters on the splits of a graph. Selects the combination with the best
    mean score of the validation nodes. The search never reads the test nodes.

    :param grid: values to try for parameters of the classifier, or several such mappings, as scikit-learn's ``ParameterGrid``
    :param classifier: classifier with all other parameters; None: the defaults of ``SheafClassifier()``
    :param splits: indices of the splits; None: all
    :param scoring: ``"validation_accuracy"``; ``"validation_metric"``, which the training's ``stop_on`` names; or
        ``"validation_loss"``, where the smallest is the best
    :param n_jobs: number of processes, as joblib counts them; None: this process alone
    :raises ValueError: an argument is not allowed, the data have no splits, or a split has no validation nodes. The message names
        the argument, its value and the limit
    :raises KeyboardInterrupt: Ctrl-C was pressed. With ``on_interrupt="keep"`` the search ends with the best finished candidate
        instead, if there is one, and warns

    >>> import sheafnn
    >>> data = sheafnn.karate_club()
    >>> found = grid_search(data, {"channels": [2, 4]}, SheafClassifier(stalk_dim=2, epochs=20), splits=[0, 1])
    >>> len(found.results["mean_test_score"]), found.best_classifier.predict(data).shape
    (2, (34,))
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset")
    _checks.choice("scoring", scoring, _SCORES)
    base = SheafClassifier() if classifier is None else classifier
    if not isinstance(base, SheafClassifier):
        raise TypeError(f"classifier: {type(base).__name__} is not allowed; expected a SheafClassifier")
    own = data.splits
    if len(data.codes) == 0:
        raise ValueError(f"data: {data!r} is not allowed; a search needs labels")
    if not own:
        raise ValueError("data: it has no splits; make some with make_splits() or with_splits()")
    numbers = [_checks.whole("splits", s, 0, len(own) - 1) for s in _checks.listed("splits", splits, range(len(own)))]
    for s in numbers:
        if not (data.codes[own[s].validation] >= 0).any():
            raise ValueError(f"splits: split {s} has no validation nodes with a label, which select the best candidate")
    seen = data.with_splits([(own[s].train, own[s].validation, []) for s in numbers])
    candidates = list(ParameterGrid(grid))  # type: ignore[arg-type]
    if not candidates:
        raise ValueError(f"grid: {grid!r} is not allowed; it has no combination of parameters")
    for candidate in candidates:
        clone(base).set_params(**candidate)
    runs = [(c, s) for c in range(len(candidates)) for s in range(len(numbers))]
    done: dict[tuple[int, int], _Run] = {}
    keep = base.on_interrupt == "keep"
    interrupted = False
    jobs = (delayed(_fit)(clone(base).set_params(**candidates[c]), seen, s) for c, s in runs)
    if n_jobs is None or n_jobs == 1:
        outcomes: Any = (call(*arguments, **named) for call, arguments, named in jobs)
    else:
        outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    try:
        for run, outcome in zip(runs, outcomes):
            if outcome.result["stop_reason"] == "interrupted":
                interrupted = True
                break
            done[run] = outcome
    except KeyboardInterrupt:
        if not keep:
            raise
        interrupted = True
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    complete = [c for c in range(len(candidates)) if all((c, s) in done for s in range(len(numbers)))]
    if interrupted:
        if not complete:
            raise KeyboardInterrupt
        warnings.warn(
            f"interrupted after {len(complete)} of {len(candidates)} candidates; the best of these is kept", Interrupted, stacklevel=2
        )
    scores = np.array([[done[c, s].result[scoring] for s in range(len(numbers))] for c in complete], float)
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        more = "; training={'stop_on': …} names the metric" if scoring == "validation_metric" else ""
        raise ValueError(f"scoring: {scoring!r} is not allowed; no candidate has one on all splits{more}")
    order = means if scoring == "validation_loss" else -means
    order = np.where(np.isnan(order), np.inf, order)
    best = int(order.argmin())
    params = [candidates[c] for c in complete]
    results: dict[str, Any] = {"params": params}
    for name in sorted({name for candidate in params for name in candidate}):
        column = np.empty(len(params), object)
        column[:] = [candidate.get(name) for candidate in params]
        results[f"param_{name}"] = column
    results |= {f"split{s}_test_score": scores[:, i] for i, s in enumerate(numbers)}
    results["mean_test_score"], results["std_test_score"] = means, scores.std(axis=1)
    results["rank_test_score"] = 1 + np.array([(order < own_order).sum() for own_order in order])
    results["mean_fit_time"] = np.array([np.mean([done[c, s].seconds for s in range(len(numbers))]) for c in complete])
    chosen = done[complete[best], 0].classifier
    assert chosen is not None
    chosen.split_ = numbers[0]  # of the data that were given
    return GridSearch(chosen, dict(params[best]), float(means[best]), best, results)
