"""Quality, calibration and uncertainty of class probabilities, from this library or any other.

All functions take arrays. ``probabilities`` are n x C; some functions take logits or scores instead. ``labels`` are n class
numbers, -1 where unknown or masked (``data.codes`` of a Dataset). ``nodes`` is a mask or the numbers of the rows that count; None:
the rows with a known label. Arrays may be NumPy arrays, nested lists or PyTorch tensors. Rows of probabilities that count must sum
to 1, up to 0.001.

The equations are the equations of the C++ library (``sheafnn/uncertainty``); see docs/uncertainty.md and docs/math.md.

>>> import numpy, sheafnn
>>> from sheafnn import uncertainty
>>> probabilities = numpy.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
>>> labels = [0, 0, 1, 1]
>>> uncertainty.accuracy(probabilities, labels)
0.75
>>> scores = uncertainty.adaptive_scores(probabilities)
>>> threshold = uncertainty.conformal_threshold(scores, labels, alpha=0.4)
>>> uncertainty.conformal_sets(scores, threshold).tolist()
[[True, False], [True, False], [False, True], [True, False]]
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from . import _checks, _core
from ._masks import node_numbers, plain
from .classifier import Uncertainty
from .dataset import Dataset

__all__ = [
    "CalibrationError",
    "DetectionCurve",
    "GraphTemperature",
    "RejectionCurve",
    "ReliabilityDiagram",
    "SetFigures",
    "accuracy",
    "adaptive_scores",
    "apply_graph_temperature",
    "apply_temperature",
    "average_over_neighbours",
    "average_precision",
    "brier_score",
    "calibration_error",
    "combine_members",
    "combine_samples",
    "conformal_sets",
    "conformal_threshold",
    "confusion_matrix",
    "detection_curve",
    "entropy",
    "error_detection",
    "evaluate_sets",
    "fit_graph_temperature",
    "fit_temperature",
    "macro_f1",
    "negative_log_likelihood",
    "neighbour_agreement",
    "rejection_curve",
    "reliability_diagram",
    "roc_auc",
]

_BINNINGS = ("equal-width", "equal-mass")


@dataclasses.dataclass(frozen=True)
class CalibrationError:
    """A calibration error, and what is known about it."""

    error: float  #: the ECE, in [0, 1]
    expected: float  #: mean ECE of a calibrated model with these confidences
    deviation: float  #: its standard deviation for such a model; NaN for class-wise errors
    squared: float  #: debiased squared error of the bins; NaN without a bin of two nodes
    debiased: float  #: the error minus a calibrated model's mean error, which may be negative


@dataclasses.dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """Confidence and accuracy in bins of the largest probability; :func:`sheafnn.plot.reliability` draws it."""

    lower: np.ndarray  #: lower end of each bin (lower, upper]; with bins of equal mass, the ends are the least and the largest confidence
    upper: np.ndarray
    count: np.ndarray  #: number of nodes
    confidence: np.ndarray  #: mean largest probability; 0 in an empty bin
    accuracy: np.ndarray  #: share of nodes predicted correctly; 0 in an empty bin


@dataclasses.dataclass(frozen=True)
class GraphTemperature:
    """Two temperatures: one for nodes with agreement 0, and one for nodes with agreement 1."""

    disagreeing: float
    agreeing: float


@dataclasses.dataclass(frozen=True, eq=False)
class SetFigures:
    """Coverage and sizes of sets of classes."""

    coverage: float  #: share of the nodes whose label is in their set
    mean_size: float  #: mean number of classes in a set
    of_size: np.ndarray  #: C + 1: how many sets have 0, 1, …, C classes


@dataclasses.dataclass(frozen=True, eq=False)
class RejectionCurve:
    """Accuracy of the remaining nodes when uncertain nodes are rejected; :func:`sheafnn.plot.rejection` draws it."""

    accuracy: np.ndarray  #: N accuracies, without the k most uncertain nodes, k = 0, …, N - 1
    area: float  #: mean of the accuracies
    best_area: float  #: largest possible area, where all errors are rejected first


@dataclasses.dataclass(frozen=True, eq=False)
class DetectionCurve:
    """Detections at every threshold: "at least ``threshold`` of the measure"."""

    threshold: np.ndarray  #: the distinct values of the measure, decreasing
    true_positive_rate: np.ndarray  #: the recall
    false_positive_rate: np.ndarray
    precision: np.ndarray
    roc_auc: float  #: area under the ROC curve (AUROC)
    average_precision: float  #: area under the precision-recall curve (AUPR), by steps


def _rows(name: str, value: Any) -> np.ndarray:
    """n x C values."""
    array = _checks.real(name, value)
    if array.ndim != 2 or array.shape[1] == 0:
        more = "; of two classes numpy.stack([1 - p, p], axis=1)" if array.ndim == 1 else ""
        raise ValueError(f"{name}: shape {array.shape} is not allowed; expected a row for each node, a column for each class{more}")
    return array


def _numbers(name: str, value: Any, count: int) -> np.ndarray:
    """A number for each of n nodes."""
    array = _checks.real(name, value)
    if array.shape != (count,):
        raise ValueError(f"{name}: shape {array.shape} is not allowed; expected one number for each of {count} nodes")
    return array


def _classes(name: str, value: Any, count: int | None = None, classes: int = 2**31 - 1) -> NDArray[np.int32]:
    """A class number for each of n nodes, -1 where unknown."""
    value = plain(value)
    array = np.asarray(np.ma.filled(value, -1) if np.ma.isMaskedArray(value) else value)
    if array.ndim != 1 or (count is not None and array.size != count):
        expected = "each node" if count is None else f"each of {count} nodes"
        raise ValueError(f"{name}: shape {array.shape} is not allowed; expected one class number for {expected}")
    if array.dtype.kind not in "biu" and array.size > 0:
        raise ValueError(
            f"{name}: {array.dtype} is not allowed; expected class numbers from 0 on, or -1 where unknown, such as data.codes"
        )
    wrong = np.flatnonzero((array < -1) | (array >= classes)) if array.dtype.kind != "b" else np.empty(0, int)
    if wrong.size:
        raise ValueError(f"{name}[{wrong[0]}]: {array[wrong[0]]} is not allowed; must be between 0 and {classes - 1}, or -1 where unknown")
    return np.ascontiguousarray(array, np.int32)


def _chosen(nodes: Any, labels: np.ndarray) -> NDArray[np.int32]:
    if nodes is None:
        return np.flatnonzero(labels >= 0).astype(np.int32)
    return node_numbers(nodes, len(labels), "nodes", distinct=False)


def _predictions(name: str, values: Any, labels: Any, nodes: Any) -> tuple[np.ndarray, NDArray[np.int32], NDArray[np.int32]]:
    """Values, labels and nodes of a metric."""
    rows = _rows(name, values)
    codes = _classes("labels", labels, len(rows), rows.shape[1])
    return rows, codes, _chosen(nodes, codes)


def _guesses(name: str, values: Any, labels: Any, predicted: Any, nodes: Any) -> tuple[np.ndarray, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """A number, a label and a predicted class for each node, and the nodes that count."""
    codes = _classes("labels", labels)
    own, guessed, chosen = _numbers(name, values, len(codes)), _classes("predicted", predicted, len(codes)), _chosen(nodes, codes)
    unknown = chosen[guessed[chosen] < 0]
    if unknown.size:
        raise ValueError(f"predicted[{unknown[0]}]: {guessed[unknown[0]]} is not allowed; must be a class number from 0 on")
    return own, codes, guessed, chosen


def _graph(graph: Any, count: int) -> Any:
    """A graph of n nodes as the library has it."""
    if not isinstance(graph, Dataset):
        graph = Dataset.from_numpy(graph, scipy.sparse.csr_matrix((count, 1)))
    if graph.node_count != count:
        raise ValueError(f"graph: {graph.node_count} nodes are not allowed; there are rows of {count} nodes")
    return graph._core


def accuracy(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """Share of the nodes whose most probable class is their label.

    :raises ValueError: an argument is not allowed, or no node counts; the message names the argument, its value and the limit.
        All functions of this module raise it
    """
    return _core.accuracy(*_predictions("probabilities", probabilities, labels, nodes))


def negative_log_likelihood(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """The mean of -log p(label), in nats; a probability of 0 counts as 2.2e-308."""
    return _core.negative_log_likelihood(*_predictions("probabilities", probabilities, labels, nodes))


def brier_score(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """The mean over the nodes of the sum of (p(c) - [label = c])² over the classes, in [0, 2]."""
    return _core.brier_score(*_predictions("probabilities", probabilities, labels, nodes))


def roc_auc(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """Area under the ROC curve: of class 1 for two classes, and the mean of each class against the rest for several. NaN for one
    class."""
    return _core.roc_auc(*_predictions("probabilities", probabilities, labels, nodes))


def average_precision(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """Area under the precision-recall curve by steps, for the classes of :func:`roc_auc`."""
    return _core.average_precision(*_predictions("probabilities", probabilities, labels, nodes))


def macro_f1(probabilities: Any, labels: Any, nodes: Any = None) -> float:
    """The mean F1 of the classes that occur among labels or predictions."""
    return _core.macro_f1(*_predictions("probabilities", probabilities, labels, nodes))


def confusion_matrix(probabilities: Any, labels: Any, nodes: Any = None) -> np.ndarray:
    """C x C: how many of the nodes have label a (rows) and most probable class b (columns)."""
    return _core.confusion_matrix(*_predictions("probabilities", probabilities, labels, nodes))


def calibration_error(
    probabilities: Any,
    labels: Any,
    nodes: Any = None,
    *,
    bins: int = _core.default_bins,
    binning: str = "equal-width",
    class_wise: bool = False,
) -> CalibrationError:
    """The expected calibration error (ECE), and what a calibrated model with the same confidences would score.

    :param bins: number of bins, 1 to 10⁶
    :param binning: ``"equal-width"``, or ``"equal-mass"`` for the adaptive error
    :param class_wise: average the error of "the label is c" over the classes c, instead of taking the most probable class alone
    """
    rows = _predictions("probabilities", probabilities, labels, nodes)
    equal_mass = _checks.choice("binning", binning, _BINNINGS) == "equal-mass"
    own = _checks.flag("class_wise", class_wise)
    return CalibrationError(**_core.calibration_error(*rows, _checks.whole("bins", bins, 1, 1_000_000), equal_mass, own))


def reliability_diagram(
    probabilities: Any, labels: Any, nodes: Any = None, *, bins: int = _core.default_bins, binning: str = "equal-width"
) -> ReliabilityDiagram:
    """Accuracy and confidence in bins of the largest probability.

    :param bins: number of bins, 1 to 10⁶; bins of equal mass may be fewer
    :param binning: ``"equal-width"`` or ``"equal-mass"``
    """
    rows = _predictions("probabilities", probabilities, labels, nodes)
    equal_mass = _checks.choice("binning", binning, _BINNINGS) == "equal-mass"
    return ReliabilityDiagram(**_core.reliability_diagram(*rows, _checks.whole("bins", bins, 1, 1_000_000), equal_mass))


def fit_temperature(logits: Any, labels: Any, nodes: Any = None) -> float:
    """The temperature T in [0.01, 100] of softmax(logits / T) with the least mean NLL of the nodes.

    :param logits: n x C; log-probabilities serve as logits
    :param nodes: nodes to fit, usually the validation nodes
    """
    return _core.fit_temperature(*_predictions("logits", logits, labels, nodes))


def apply_temperature(logits: Any, temperature: float) -> np.ndarray:
    """softmax(logits / T), n x C.

    :param temperature: temperature T, above 0
    """
    return _core.apply_temperature(_rows("logits", logits), _checks.any_number("temperature", temperature))


def neighbour_agreement(graph: Any, probabilities: Any) -> np.ndarray:
    """How far each node's prediction agrees with its neighbours', n values in [0, 1].

    :param graph: a Dataset, or edges: m x 2 node numbers, or a scipy sparse adjacency matrix
    """
    rows = _rows("probabilities", probabilities)
    return _core.neighbour_agreement(_graph(graph, len(rows)), rows)


def fit_graph_temperature(logits: Any, agreement: Any, labels: Any, nodes: Any = None) -> GraphTemperature:
    """Two temperatures with the least mean NLL of the nodes: 1/T = (1 - g)/disagreeing + g/agreeing, where g is the agreement of
    a node.

    :param logits: n x C; log-probabilities serve as logits
    :param agreement: n values in [0, 1], e.g. from :func:`neighbour_agreement`
    """
    rows, codes, chosen = _predictions("logits", logits, labels, nodes)
    return GraphTemperature(*_core.fit_graph_temperature(rows, _numbers("agreement", agreement, len(rows)), codes, chosen))


def apply_graph_temperature(logits: Any, agreement: Any, temperature: GraphTemperature) -> np.ndarray:
    """softmax(logits / T), n x C, with the temperature of each node's agreement."""
    rows = _rows("logits", logits)
    own = _numbers("agreement", agreement, len(rows))
    if not isinstance(temperature, GraphTemperature):
        raise TypeError(f"temperature: {type(temperature).__name__} is not allowed; expected a GraphTemperature")
    numbers = (_checks.any_number(f"temperature.{side}", getattr(temperature, side)) for side in ("disagreeing", "agreeing"))
    return _core.apply_graph_temperature(rows, own, *numbers)


def adaptive_scores(probabilities: Any, seed: Any = None) -> np.ndarray:
    """Scores of all classes of all nodes for conformal sets, n x C. A score sums the probabilities of the classes ranked above,
    and a share of the class's own probability.

    :param seed: seed of the shares, uniform in (0, 1), one for each node; None: all shares are 1, and the sets are larger and not
        random
    """
    return _core.adaptive_scores(_rows("probabilities", probabilities), None if seed is None else _checks.seed(seed))


def average_over_neighbours(graph: Any, scores: Any, weight: float) -> np.ndarray:
    """Scores averaged with the neighbours' scores, n x C, for graph-aware conformal sets.

    :param graph: as for :func:`neighbour_agreement`
    :param weight: weight of the neighbours' mean, 0 to 1
    """
    rows = _rows("scores", scores)
    return _core.average_over_neighbours(_graph(graph, len(rows)), rows, _checks.number("weight", weight, 0, 1))


def conformal_threshold(scores: Any, labels: Any, nodes: Any = None, *, alpha: float) -> float:
    """The threshold of scores with which sets hold the label with a probability of at least 1 - alpha.

    :param nodes: calibration nodes, which must be exchangeable with the nodes that the sets are for; neither training nor
        selection may have seen them
    :param alpha: share of the labels that sets may miss, above 0 and below 1
    :return: the threshold; infinity where there are too few nodes, so that every set holds all classes
    """
    return _core.conformal_threshold(*_predictions("scores", scores, labels, nodes), _checks.any_number("alpha", alpha))


def conformal_sets(scores: Any, threshold: float) -> np.ndarray:
    """n x C booleans: the classes with a score of at most the threshold."""
    return _core.conformal_sets(_rows("scores", scores), _checks.any_number("threshold", threshold)).astype(bool)


def evaluate_sets(scores: Any, labels: Any, nodes: Any = None, *, threshold: float) -> SetFigures:
    """Coverage and sizes of the nodes' sets."""
    rows = _predictions("scores", scores, labels, nodes)
    return SetFigures(**_core.evaluate_sets(*rows, _checks.any_number("threshold", threshold)))


def entropy(probabilities: Any) -> np.ndarray:
    """The entropy of each row in nats, n values."""
    return _core.entropy(_rows("probabilities", probabilities))


def combine_samples(samples: Any) -> Uncertainty:
    """Mean, entropy, mutual information and epistemic variance of samples of the probabilities.

    :param samples: K x n x C probabilities, from a posterior, an ensemble, or dropout at prediction
    """
    array = _checks.real("samples", samples)
    if array.ndim != 3 or 0 in (array.shape[0], array.shape[2]):
        raise ValueError(f"samples: shape {array.shape} is not allowed; expected samples x nodes x classes")
    return Uncertainty(**_core.combine_samples(array))


def combine_members(members: Sequence[Uncertainty]) -> Uncertainty:
    """One prediction of an ensemble, from the samples of all members. Every member has the same number of samples.

    :param members: results of ``SheafClassifier.uncertainty`` or :func:`combine_samples`, for the same nodes
    """
    if isinstance(members, Uncertainty):
        raise TypeError("members: Uncertainty is not allowed; expected a list of them")
    members = list(members)
    for k, member in enumerate(members):
        if not isinstance(member, Uncertainty):
            raise TypeError(f"members[{k}]: {type(member).__name__} is not allowed; expected an Uncertainty")
    fields = ("entropy", "epistemic_variance", "mutual_information")
    probabilities = [_rows(f"members[{k}].probabilities", member.probabilities) for k, member in enumerate(members)]
    columns = [
        [_numbers(f"members[{k}].{field}", getattr(member, field), len(probabilities[k])) for k, member in enumerate(members)]
        for field in fields
    ]
    return Uncertainty(**_core.combine_members(probabilities, *columns))


def rejection_curve(uncertainty: Any, labels: Any, predicted: Any, nodes: Any = None) -> RejectionCurve:
    """Accuracy of the nodes that are left when the most uncertain nodes are rejected; ties in every order.

    :param uncertainty: n values, one for each node, e.g. the entropies
    :param predicted: n class numbers, e.g. ``probabilities.argmax(axis=1)``
    """
    return RejectionCurve(**_core.rejection_curve(*_guesses("uncertainty", uncertainty, labels, predicted, nodes)))


def detection_curve(measure: Any, positives: Any, negatives: Any) -> DetectionCurve:
    """How well a measure separates some nodes from others, at every threshold, with the areas AUROC and AUPR.

    :param measure: n values, one for each node
    :param positives: mask or indices of the nodes to detect, e.g. the nodes of a class that was left out of the training
    :param negatives: mask or indices of other nodes, none of them among the positives
    """
    own = _checks.real("measure", measure)
    if own.ndim != 1:
        raise ValueError(f"measure: shape {own.shape} is not allowed; expected one number for each node")
    sets = [node_numbers(nodes, len(own), name, distinct=False) for nodes, name in ((positives, "positives"), (negatives, "negatives"))]
    both = np.intersect1d(sets[0], sets[1])
    if both.size:
        raise ValueError(f"negatives: node {both[0]} is not allowed; it is among the positives")
    return DetectionCurve(**_core.detection_curve(own, *sets))


def error_detection(measure: Any, labels: Any, predicted: Any, nodes: Any = None) -> DetectionCurve:
    """How well an uncertainty detects wrong predictions: the :func:`detection_curve` of wrong predictions among right ones."""
    own, codes, guessed, chosen = _guesses("measure", measure, labels, predicted, nodes)
    wrong, right = _core.find_errors(codes, guessed, chosen)
    if len(wrong) == 0 or len(right) == 0:
        raise ValueError(f"predicted: {len(wrong)} wrong and {len(right)} right predictions are not allowed; at least one of each is needed")
    return DetectionCurve(**_core.detection_curve(own, wrong, right))
