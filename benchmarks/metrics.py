"""Figures of predicted class probabilities (n × C), as train reports them."""
import numpy


def accuracy(probabilities, labels, nodes):
    """Share of the nodes whose most probable class, the first of several, is their label."""
    return float(numpy.mean(probabilities[nodes].argmax(1) == labels[nodes]))


def roc_auc(probabilities, labels, nodes):
    """Area under the ROC curve, equal probabilities counting half: of class 1 where there are two, else the mean over
    the classes, one against the rest, without those that no node or all nodes have.
    """
    import scipy.stats
    scores, labels = probabilities[nodes], labels[nodes]
    areas = []
    for c in [1] if scores.shape[1] == 2 else range(scores.shape[1]):
        of_class = labels == c
        positive = int(of_class.sum())
        negative = len(labels) - positive
        if positive and negative:
            ranks = scipy.stats.rankdata(scores[:, c])
            areas.append((ranks[of_class].sum() - positive * (positive + 1) / 2) / (positive * negative))
    return float(numpy.mean(areas)) if areas else float("nan")


def negative_log_likelihood(probabilities, labels, nodes):
    """Mean of −log p(label), in nats."""
    of_label = probabilities[nodes, labels[nodes]].astype(numpy.float64)
    return float(-numpy.log(numpy.maximum(of_label, numpy.finfo(numpy.float64).tiny)).mean())


def expected_calibration_error(probabilities, labels, nodes, bins=15):
    """Mean over the nodes of |accuracy − confidence| in their bin, one of equal bins (lower, upper] of the largest
    probability.
    """
    confidence = probabilities[nodes].max(1).astype(numpy.float64)
    correct = probabilities[nodes].argmax(1) == labels[nodes]
    bin_of = numpy.clip(numpy.ceil(confidence * bins) - 1, 0, bins - 1).astype(int)
    gaps = numpy.bincount(bin_of, confidence - correct, bins)
    return float(numpy.abs(gaps).sum() / len(confidence))


def test_figure(rule, probabilities, labels, nodes):
    """What a table shows of a network whose best epoch is chosen by this rule: the ROC AUC, or else the accuracy."""
    return (roc_auc if rule == "roc-auc" else accuracy)(probabilities, labels, nodes)
