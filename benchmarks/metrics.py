"""Figures of predicted class probabilities (n × C), as train reports them."""
import zipfile
import zlib

import numpy


def read_arrays(path, names):
    """Arrays of an .npz file by name. A ValueError names a file that is none, or an array that it lacks."""
    try:
        with numpy.load(path) as file:
            missing = [name for name in names if name not in file]
            if not missing:
                return {name: file[name] for name in names}
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: {error}") from error
    raise ValueError(f"{path}: no array '{missing[0]}'")


def accuracy(probabilities, labels, nodes):
    """Share of the nodes whose most probable class, the first of several, is their label."""
    return float(numpy.mean(probabilities[nodes].argmax(1) == labels[nodes]))


def brier_score(probabilities, labels, nodes):
    """Mean squared distance to the label's distribution, a sum over the classes."""
    of_nodes = probabilities[nodes].astype(numpy.float64)
    return float(((of_nodes - numpy.eye(of_nodes.shape[1])[labels[nodes]]) ** 2).sum(1).mean())


def auroc(positives, negatives):
    """The probability that a positive has more than a negative, ties counting half; None without one or the other."""
    if not len(positives) or not len(negatives):
        return None
    below = numpy.sort(negatives)
    less, not_more = (numpy.searchsorted(below, positives, side) for side in ("left", "right"))
    return float((less + not_more).sum() / (2 * len(positives) * len(negatives)))


def roc_auc(probabilities, labels, nodes):
    """Area under the ROC curve, equal probabilities counting half: of class 1 where there are two, else the mean over
    the classes, one against the rest, without those that no node or all nodes have.
    """
    scores, labels = probabilities[nodes], labels[nodes]
    classes = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    areas = [auroc(scores[labels == c, c], scores[labels != c, c]) for c in classes]
    areas = [area for area in areas if area is not None]
    return float(numpy.mean(areas)) if areas else float("nan")


def negative_log_likelihood(probabilities, labels, nodes):
    """Mean of −log p(label), in nats."""
    of_label = numpy.take_along_axis(probabilities[nodes], labels[nodes][:, None], 1).astype(numpy.float64)
    return float(-numpy.log(numpy.maximum(of_label, numpy.finfo(numpy.float64).tiny)).mean())


def bins_of(confidence, bins=15):
    """The number of every confidence's bin (lower, upper] of equal width."""
    return numpy.clip(numpy.searchsorted(numpy.arange(1, bins) / bins, confidence, side="left"), 0, bins - 1)


def expected_calibration_error(probabilities, labels, nodes, bins=15):
    """Mean over the nodes of |accuracy − confidence| in their bin of the largest probability."""
    confidence = probabilities[nodes].max(1).astype(numpy.float64)
    correct = probabilities[nodes].argmax(1) == labels[nodes]
    gaps = numpy.bincount(bins_of(confidence, bins), confidence - correct, bins)
    return float(numpy.abs(gaps).sum() / len(confidence))


def test_figure(rule, probabilities, labels, nodes):
    """What a table shows of a network whose best epoch is chosen by this rule: the ROC AUC, or else the accuracy."""
    return (roc_auc if rule == "roc-auc" else accuracy)(probabilities, labels, nodes)
