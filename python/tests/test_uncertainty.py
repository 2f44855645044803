"""sheafnn.uncertainty against scikit-learn, NumPy and definitions; its drawings; bad input."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics

import sheafnn
from sheafnn import plot, uncertainty


@pytest.fixture
def task(random):
    """200 nodes of 4 classes: logits that know something, labels of which 20 are unknown."""
    logits = random.normal(size=(200, 4)) * 2
    labels = np.array([random.choice(4, p=row) for row in uncertainty.apply_temperature(logits, 1.5)])
    labels[::10] = -1
    return logits, labels, uncertainty.apply_temperature(logits, 1)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_metrics_are_scikit_learns(task):
    _, labels, p = task
    known = labels >= 0
    y, q = labels[known], p[known]
    assert uncertainty.accuracy(p, labels) == pytest.approx(metrics.accuracy_score(y, q.argmax(axis=1)), rel=1e-14)
    assert uncertainty.negative_log_likelihood(p, labels) == pytest.approx(metrics.log_loss(y, q), rel=1e-12)
    assert uncertainty.brier_score(p, labels) == pytest.approx(((q - np.eye(4)[y]) ** 2).sum(axis=1).mean(), rel=1e-12)
    assert uncertainty.roc_auc(p, labels) == pytest.approx(metrics.roc_auc_score(y, q, multi_class="ovr"), rel=1e-12)
    assert uncertainty.average_precision(p, labels) == pytest.approx(
        metrics.average_precision_score(np.eye(4)[y], q), rel=1e-12
    )
    assert uncertainty.macro_f1(p, labels) == pytest.approx(metrics.f1_score(y, q.argmax(axis=1), average="macro"), rel=1e-12)
    assert (uncertainty.confusion_matrix(p, labels) == metrics.confusion_matrix(y, q.argmax(axis=1))).all()


def test_nodes_that_count(task):
    _, labels, p = task
    mask = np.zeros(200, bool)
    mask[1:6] = True
    numbers = [1, 2, 3, 4, 5]
    alone = uncertainty.brier_score(p[1:6], labels[1:6])
    assert uncertainty.brier_score(p, labels, mask) == uncertainty.brier_score(p.tolist(), labels, numbers) == alone


def test_calibration(task):
    _, labels, p = task
    known = labels >= 0
    confidence, right = p[known].max(axis=1), p[known].argmax(axis=1) == labels[known]
    place = np.minimum(np.ceil(confidence * 10).astype(int) - 1, 9)
    by_hand = sum(abs((right - confidence)[place == k].sum()) for k in range(10)) / known.sum()
    error = uncertainty.calibration_error(p, labels, bins=10)
    assert error.error == pytest.approx(by_hand, rel=1e-12)
    assert error.debiased == error.error - error.expected and error.deviation > 0
    diagram = uncertainty.reliability_diagram(p, labels, bins=10)
    assert (diagram.count == np.bincount(place, minlength=10)).all()
    assert diagram.count @ np.abs(diagram.accuracy - diagram.confidence) / known.sum() == pytest.approx(error.error, rel=1e-12)
    adaptive = uncertainty.reliability_diagram(p, labels, bins=10, binning="equal-mass")
    assert (adaptive.count == 18).all()
    assert uncertainty.calibration_error(p, labels, bins=10, binning="equal-mass").error == pytest.approx(
        adaptive.count @ np.abs(adaptive.accuracy - adaptive.confidence) / known.sum(), rel=1e-12
    )
    by_class = uncertainty.calibration_error(p, labels, class_wise=True)
    assert 0 < by_class.error < 1 and np.isnan(by_class.deviation)


def test_temperature(task):
    logits, labels, _ = task
    temperature = uncertainty.fit_temperature(logits, labels)
    assert np.abs(uncertainty.apply_temperature(logits, temperature) - softmax(logits / temperature)).max() < 1e-15
    at = lambda t: uncertainty.negative_log_likelihood(softmax(logits / t), labels)  # noqa: E731
    assert at(temperature) < min(at(temperature * 1.01), at(temperature / 1.01))
    assert 1.1 < temperature < 2  # drawn with 1.5


def test_graph_temperature(random):
    data = sheafnn.synthetic(nodes=200, classes=4, degree=6, homophily=0.8, seed=1)
    logits = random.normal(size=(200, 4)) + 2 * np.eye(4)[data.codes]
    p = softmax(logits)
    agreement = uncertainty.neighbour_agreement(data, p)
    adjacency = data.adjacency.toarray()
    degree = adjacency.sum(axis=1)
    by_hand = (adjacency * (p @ p.T)).sum(axis=1) / np.maximum(degree, 1)
    assert np.abs(agreement - by_hand)[degree > 0].max() < 1e-14
    for graph in (data.edges, data.adjacency):
        assert (uncertainty.neighbour_agreement(graph, p) == agreement).all()
    fitted = uncertainty.fit_graph_temperature(logits, agreement, data.codes)
    own = uncertainty.apply_graph_temperature(logits, agreement, fitted)
    beta = (1 - agreement) / fitted.disagreeing + agreement / fitted.agreeing
    assert np.abs(own - softmax(logits * beta[:, None])).max() < 1e-14
    plain = uncertainty.apply_temperature(logits, uncertainty.fit_temperature(logits, data.codes))
    nll = uncertainty.negative_log_likelihood
    assert nll(own, data.codes) <= nll(plain, data.codes)


def test_conformal_sets(task):
    _, labels, p = task
    scores = uncertainty.adaptive_scores(p)
    order = np.argsort(-p, axis=1)
    by_hand = np.empty_like(p)
    np.put_along_axis(by_hand, order, np.cumsum(np.take_along_axis(p, order, axis=1), axis=1), axis=1)
    assert np.abs(scores - by_hand).max() < 1e-15
    random_scores = uncertainty.adaptive_scores(p, seed=3)
    assert (random_scores <= scores + 1e-15).all() and (random_scores == uncertainty.adaptive_scores(p, seed=3)).all()
    known = np.flatnonzero(labels >= 0)
    calibration, rest = known[:90], known[90:]
    threshold = uncertainty.conformal_threshold(scores, labels, calibration, alpha=0.2)
    assert threshold == np.sort(scores[calibration, labels[calibration]])[72]  # the ceil(91 * 0.8)-th
    sets = uncertainty.conformal_sets(scores, threshold)
    assert sets.dtype == bool and (sets == (scores <= threshold)).all()
    figures = uncertainty.evaluate_sets(scores, labels, rest, threshold=threshold)
    assert figures.coverage == sets[rest, labels[rest]].mean()
    assert figures.mean_size == pytest.approx(sets[rest].sum(axis=1).mean(), rel=1e-14)
    assert (figures.of_size == np.bincount(sets[rest].sum(axis=1), minlength=5)).all()
    assert uncertainty.conformal_threshold(scores, labels, calibration[:3], alpha=0.1) == np.inf


def test_scores_of_neighbours(random):
    data = sheafnn.karate_club()
    scores = random.random((34, 2))
    mean = data.adjacency @ scores / data.adjacency.sum(axis=1)
    assert np.abs(uncertainty.average_over_neighbours(data, scores, 0.3) - (0.7 * scores + 0.3 * mean)).max() < 1e-15


def test_samples(random):
    samples = softmax(random.normal(size=(5 * 30, 3))).reshape(5, 30, 3)
    mean = samples.mean(axis=0)
    entropy = lambda p: -(p * np.log(p)).sum(axis=-1)  # noqa: E731
    r = uncertainty.combine_samples(samples)
    assert np.abs(r.probabilities - mean).max() < 1e-15
    assert np.abs(r.entropy - entropy(mean)).max() < 1e-14
    assert np.abs(r.mutual_information - (entropy(mean) - entropy(samples).mean(axis=0))).max() < 1e-14
    assert np.abs(r.epistemic_variance - samples.var(axis=0).mean(axis=1)).max() < 1e-15
    assert (uncertainty.entropy(r.probabilities) == r.entropy).all()
    both = uncertainty.combine_members([uncertainty.combine_samples(half) for half in (samples[:2], samples[2:4])])
    assert np.abs(both.mutual_information - uncertainty.combine_samples(samples[:4]).mutual_information).max() < 1e-14


def test_rejection_and_detection(task):
    _, labels, p = task
    measure, predicted = uncertainty.entropy(p), p.argmax(axis=1)
    known = np.flatnonzero(labels >= 0)
    curve = uncertainty.rejection_curve(measure, labels, predicted)
    order = known[np.argsort(-measure[known])]
    by_hand = [(labels[order[k:]] == predicted[order[k:]]).mean() for k in range(len(order))]
    assert np.abs(curve.accuracy - by_hand).max() < 1e-14
    assert curve.area == pytest.approx(np.mean(by_hand), rel=1e-13) and curve.area < curve.best_area < 1
    found = uncertainty.error_detection(measure, labels, predicted)
    wrong = labels[known] != predicted[known]
    false_rate, true_rate, _ = metrics.roc_curve(wrong, measure[known], drop_intermediate=False)
    assert np.abs(found.true_positive_rate - true_rate[1:]).max() < 1e-14
    assert np.abs(found.false_positive_rate - false_rate[1:]).max() < 1e-14
    assert found.roc_auc == pytest.approx(metrics.roc_auc_score(wrong, measure[known]), rel=1e-13)
    assert found.average_precision == pytest.approx(metrics.average_precision_score(wrong, measure[known]), rel=1e-13)
    precision, _, threshold = metrics.precision_recall_curve(wrong, measure[known])
    assert (found.threshold == threshold[::-1]).all() and np.abs(found.precision - precision[-2::-1]).max() < 1e-14
    same = uncertainty.detection_curve(measure, known[wrong], known[~wrong])
    assert same.roc_auc == found.roc_auc


def test_tensors(task):
    torch = pytest.importorskip("torch")
    logits, labels, p = task
    own = torch.tensor(logits, requires_grad=True)
    assert (uncertainty.apply_temperature(own, 1) == p).all()
    half = torch.tensor(p).bfloat16()
    assert (uncertainty.apply_temperature(half, 1) == uncertainty.apply_temperature(half.double().numpy(), 1)).all()
    assert uncertainty.accuracy(torch.tensor(p), torch.tensor(labels)) == uncertainty.accuracy(p, labels)
    single = uncertainty.accuracy(torch.tensor(p, dtype=torch.float32), torch.tensor(labels), torch.tensor(labels) >= 0)
    assert single == uncertainty.accuracy(p.astype(np.float32), labels)


def test_torch_is_not_imported():
    code = "import sys, sheafnn; assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_drawings(task, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    _, labels, p = task
    ax = plot.reliability(uncertainty.reliability_diagram(p, labels))
    assert ax.get_xlabel() == "confidence" and len(ax.lines) == 2
    curve = uncertainty.rejection_curve(uncertainty.entropy(p), labels, p.argmax(axis=1))
    axes = plot.rejection({"entropy": curve, "again": curve}, ax=matplotlib.pyplot.figure().add_subplot())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{name}, area {curve.area:.3f}" for name in ("entropy", "again")]
    assert (axes.lines[0].get_ydata() == curve.accuracy).all()
    ax.figure.savefig(tmp_path / "reliability.png")
    with pytest.raises(TypeError, match="curves: int is not allowed"):
        plot.rejection(3)
    with pytest.raises(ValueError, match="curves: an empty mapping is not allowed"):
        plot.rejection({})


def test_drawings_without_matplotlib(task, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    _, labels, p = task
    with pytest.raises(ImportError, match="drawings need matplotlib: pip install matplotlib"):
        plot.reliability(uncertainty.reliability_diagram(p, labels))


@pytest.mark.parametrize("model", ["bsnn", "csnn"])
def test_drawing_of_a_sheaf(karate, model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    classifier = sheafnn.SheafClassifier(model, "diagonal", 2, epochs=20).fit(karate)
    ax = plot.sheaf(classifier, karate)
    lines = ax.collections[0]
    assert len(lines.get_segments()) == 78 and sum(len(c.get_offsets()) for c in ax.collections[1:]) == 34
    if model == "bsnn":
        learned = classifier.learned_sheaf(karate)
        maps = {tuple(arc): f for arc, f in zip(learned.arcs.tolist(), learned.dense_maps())}
        by_hand = [np.linalg.norm(maps[u, v] - maps[v, u]) for u, v in learned.edges.tolist()]
        assert np.abs(lines.get_array() - by_hand).max() < 1e-12
    else:
        assert lines.get_array() is None
    again = plot.sheaf(classifier, karate)
    assert all((a.get_offsets() == b.get_offsets()).all() for a, b in zip(ax.collections[1:], again.collections[1:]))
    own = plot.sheaf(classifier, karate, positions=np.arange(68).reshape(34, 2))
    assert {tuple(place) for c in own.collections[1:] for place in c.get_offsets().tolist()} == {(2 * u, 2 * u + 1) for u in range(34)}
    matplotlib.pyplot.close("all")
    with pytest.raises(ValueError, match=r"positions: shape \(3, 2\) is not allowed; expected 34 x 2 finite numbers"):
        plot.sheaf(classifier, karate, positions=np.zeros((3, 2)))
    with pytest.raises(TypeError, match="model: int is not allowed"):
        plot.sheaf(3, karate)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uncertainty.accuracy([0.5, 0.5], [0, 1]), r"probabilities: shape \(2,\) .*of two classes numpy.stack"),
        (lambda: uncertainty.accuracy([[0.5, 1.5]], [0]), r"probabilities\[0, 1\]: 1.5 is not allowed; a probability must be between 0 and 1"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [0, 1]), r"labels: shape \(2,\) is not allowed; expected one class number for each of 1 nodes"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [2]), r"labels\[0\]: 2 is not allowed; must be between 0 and 1, or -1"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [0.5]), r"labels: float64 is not allowed; expected class numbers"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], ["a"]), r"labels: <U1 is not allowed; expected class numbers"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [-1]), r"nodes: 0 is not allowed; at least one node is needed"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [-1], [0]), r"labels\[0\]: -1 is not allowed; must be between 0 and 1"),
        (lambda: uncertainty.accuracy([[0.5, 0.5]], [0], [3]), r"nodes: node 3: must be between 0 and 0"),
        (lambda: uncertainty.accuracy([["a", "b"]], [0]), r"probabilities: could not convert"),
        (lambda: uncertainty.calibration_error([[1, 0]], [0], bins=0), r"bins: 0 is not allowed; must be between 1 and 1000000"),
        (lambda: uncertainty.calibration_error([[1, 0]], [0], binning="wide"), r"binning: 'wide' is not allowed; choose equal-width, equal-mass"),
        (lambda: uncertainty.fit_temperature([[np.inf, 0]], [0]), r"logits\[0, 0\]: inf is not allowed; must be finite"),
        (lambda: uncertainty.apply_temperature([[1, 0], [0, np.nan]], 1), r"logits\[1, 1\]: nan is not allowed; must be finite"),
        (lambda: uncertainty.entropy([[0.5, 0.5], [np.nan, 1]]), r"probabilities\[1, 0\]: nan is not allowed; a probability must be"),
        (lambda: uncertainty.entropy([[-0.5, 1.5]]), r"probabilities\[0, 0\]: -0.5 is not allowed; a probability must be"),
        (lambda: uncertainty.entropy([[0, np.inf]]), r"probabilities\[0, 1\]: inf is not allowed; a probability must be"),
        (lambda: uncertainty.apply_temperature([[1, 0]], 0), r"temperature: 0 is not allowed; must be positive and finite"),
        (lambda: uncertainty.neighbour_agreement([[0, 2]], [[1, 0], [0, 1]]), r"edges\[0, 1\]: 2 is not allowed; a node number"),
        (lambda: uncertainty.neighbour_agreement(sheafnn.karate_club(), [[1, 0]]), r"graph: 34 nodes are not allowed; there are rows of 1 nodes"),
        (lambda: uncertainty.fit_graph_temperature([[1, 0]], [2], [0]), r"agreement\[0\]: 2 is not allowed; must be between 0 and 1"),
        (lambda: uncertainty.fit_graph_temperature([[1, 0]], [0, 1], [0]), r"agreement: shape \(2,\) is not allowed; expected one number for each of 1 nodes"),
        (lambda: uncertainty.average_over_neighbours([[0, 1]], [[1, 0], [1, 0]], 2), r"weight: 2 is not allowed; must be a number between 0 and 1"),
        (lambda: uncertainty.conformal_threshold([[1, 0]], [0], alpha=1), r"alpha: 1 is not allowed; must be above 0 and below 1"),
        (lambda: uncertainty.conformal_sets([[1, 0]], np.nan), r"threshold: nan is not allowed; must be a number"),
        (lambda: uncertainty.adaptive_scores([[1, 0]], seed=-1), r"seed: -1 is not allowed"),
        (lambda: uncertainty.combine_samples([[1, 0]]), r"samples: shape \(1, 2\) is not allowed; expected samples x nodes x classes"),
        (lambda: uncertainty.combine_samples(np.empty((0, 2, 2))), r"samples: shape \(0, 2, 2\) is not allowed"),
        (lambda: uncertainty.combine_members([]), r"members: 0 is not allowed; at least one is needed"),
        (lambda: uncertainty.rejection_curve([np.nan], [0], [0]), r"uncertainty\[0\]: nan is not allowed; must be a number"),
        (lambda: uncertainty.rejection_curve([1], [0], [0, 1]), r"predicted: shape \(2,\) is not allowed"),
        (lambda: uncertainty.detection_curve([1, 2, 3], [0, 1], [1, 2]), "negatives: node 1 is not allowed; it is among the positives"),
        (lambda: uncertainty.detection_curve([1, 2], [0], []), r"negatives: 0 is not allowed; at least one node is needed"),
        (lambda: uncertainty.detection_curve([[1, 2]], [0], [1]), r"measure: shape \(1, 2\) is not allowed; expected one number for each node"),
        (lambda: uncertainty.rejection_curve([1, 2], [0, 1], [0, -1]), r"predicted\[1\]: -1 is not allowed; must be a class number"),
        (lambda: uncertainty.error_detection([1, 2], [0, 1], [-1, 1]), r"predicted\[0\]: -1 is not allowed; must be a class number"),
        (lambda: uncertainty.calibration_error([[1, 0]], [0], class_wise="no"), "class_wise: 'no' is not allowed; must be True or False"),
        (lambda: uncertainty.accuracy(scipy.sparse.eye(2).tocsr(), [0, 1]), "probabilities: a sparse matrix is not allowed; expected an array"),
        (lambda: uncertainty.apply_graph_temperature([[0, 1]], [0.5], uncertainty.GraphTemperature("a", 1)),
         "temperature.disagreeing: 'a' is not allowed; must be a number"),
        (lambda: uncertainty.error_detection([1, 2], [0, 0], [0, 0]), r"predicted: 0 wrong and 2 right predictions are not allowed"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda p: uncertainty.accuracy(p, [0, 1]),
        lambda p: uncertainty.roc_auc(p, [0, 1]),
        lambda p: uncertainty.confusion_matrix(p, [0, 1]),
        lambda p: uncertainty.combine_samples([p]),
        lambda p: uncertainty.negative_log_likelihood(p, [0, 1]),
        lambda p: uncertainty.brier_score(p, [0, 1]),
        lambda p: uncertainty.calibration_error(p, [0, 1]),
        lambda p: uncertainty.reliability_diagram(p, [0, 1]),
        lambda p: uncertainty.neighbour_agreement([[0, 1]], p),
        uncertainty.adaptive_scores,
        uncertainty.entropy,
    ],
)
def test_probabilities_sum_to_one(call):
    call([[0.5, 0.5], [0.3, 0.7009]])  # within 0.001
    with pytest.raises(ValueError, match=r"probabilities\[1\]: the sum 0.998 is not allowed; probabilities of a node must sum to 1"):
        call([[0.5, 0.5], [0.3, 0.698]])


def test_masked_entries():
    p = [[0.9, 0.1], [0.9, 0.1]]
    assert uncertainty.accuracy(p, np.ma.array([0, 1], mask=[False, True])) == 1
    with pytest.raises(ValueError, match=r"probabilities\[0, 1\]: nan is not allowed"):
        uncertainty.entropy(np.ma.array(p, mask=[[False, True], [False, False]]))


def test_members_from_a_generator():
    one = uncertainty.combine_samples([[[0.9, 0.1]]])
    assert (uncertainty.combine_members(one for _ in range(2)).probabilities == one.probabilities).all()
    with pytest.raises(TypeError, match="members: Uncertainty is not allowed; expected a list of them"):
        uncertainty.combine_members(one)


def test_rows_that_do_not_count_need_no_sum():
    assert uncertainty.brier_score([[1, 0], [0.1, 0.1]], [0, -1]) == 0
