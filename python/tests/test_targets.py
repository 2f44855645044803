"""Real targets and several labels of each node."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, r2_score

import sheafnn
from sheafnn import SheafClassifier, SheafRegressor


@pytest.fixture(scope="module")
def task():
    """Numbers that neighbours decide: 300 nodes, two targets, some unknown."""
    data = sheafnn.synthetic(nodes=300, classes=2, features=12, words=5, degree=6, homophily=0.5, seed=4)
    features = data.features.toarray()
    adjacency = data.adjacency.toarray()
    means = adjacency @ features / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    y = np.stack([100 + 30 * (features[:, 0] + 2 * means[:, 1]), 0.01 * (means[:, 2] - features[:, 3])], axis=1)
    y[::25, 0] = np.nan
    return data, y


def test_names_of_targets_go_with_files(task, tmp_path):
    data, y = task
    names = ['price, "net"', "size"]
    np.savez(tmp_path / "d.npz", node_features=data.features.toarray(), edges=data.edges, train_masks=np.ones(300, bool),
             **dict(zip(names, y.T)))
    named = sheafnn.load_dataset(tmp_path / "d.npz", targets=names)
    own = SheafRegressor("nsd", "diagonal", 2, epochs=2).fit(named)
    assert own.target_names_ == names
    own.save(tmp_path / "m.safetensors")
    assert SheafRegressor.load(tmp_path / "m.safetensors").target_names_ == names
    own.fit(data, y)
    assert own.target_names_ == []
    own.save(tmp_path / "m.safetensors")
    assert SheafRegressor.load(tmp_path / "m.safetensors").target_names_ == []


@pytest.mark.parametrize("model", ["nsd", "bsnn", "csnn", "flow"])
def test_regression(task, model):
    data, y = task
    regressor = SheafRegressor(model, "diagonal", 2, epochs=150, patience=150, learning_rate=0.02, dropout=0.0, input_dropout=0.0)
    regressor.fit(data, y, split=1)
    predicted = regressor.predict(data)
    assert predicted.shape == (300, 2) and regressor.n_targets_ == 2 and regressor.split_ == 1
    test = data.splits[1].test
    known = test[~np.isnan(y[test]).any(axis=1)]
    assert regressor.score(data, y) == r2_score(y[known], predicted[known])
    assert regressor.score(data, y, nodes=data.splits[1].train) > 0.5
    assert len(regressor.history_["loss"]) == regressor.n_iter_ and regressor.history_["loss"][-1] < regressor.history_["loss"][0]
    again = clone(regressor).fit(data, y, split=1)
    assert (again.predict(data) == predicted).all()


def test_scale_and_shift_of_targets(task):
    data, y = task
    base = SheafRegressor("nsd", "diagonal", 2, epochs=10)
    predicted = base.fit(data, y[:, 1]).predict(data)
    assert predicted.shape == (300,)
    shifted = clone(base).fit(data, 1024 * y[:, 1]).predict(data)
    assert np.abs(shifted / 1024 - predicted).max() < 1e-9
    train = data.splits[0].train
    assert base.target_mean_ == pytest.approx(np.nanmean(y[train, 1])) and base.target_scale_ == pytest.approx(np.nanstd(y[train, 1]))


def test_features_and_edges(task):
    data, y = task
    features = data.features.toarray()
    regressor = SheafRegressor("nsd", "diagonal", 2, epochs=20)
    regressor.fit(features, y[:, 0], edges=data.edges, train=np.arange(200), validation=np.arange(200, 250))
    assert regressor.predict(features, edges=data.edges).shape == (300,)
    assert regressor.score(features, y[:, 0], edges=data.edges, nodes=np.arange(250, 300)) < 1
    hidden = np.ma.masked_invalid(y[:, 0])
    masked = clone(regressor).fit(features, hidden, edges=data.edges, train=np.arange(200), validation=np.arange(200, 250))
    assert (masked.transduction_ == regressor.transduction_).all()
    with pytest.raises(ValueError, match="edges: missing; the network was trained with edges"):
        regressor.predict(features)


def test_targets_of_other_nodes_are_not_seen(task):
    data, y = task
    other = y.copy()
    other[data.splits[0].test] = 1e6
    base = SheafRegressor("nsd", "diagonal", 2, epochs=10)
    assert (clone(base).fit(data, y).predict(data) == clone(base).fit(data, other).predict(data)).all()


@pytest.mark.parametrize("model", ["nsd", "bsnn"])
def test_several_labels(task, model):
    data, y = task
    labels = (np.nan_to_num(y, nan=100.0) > np.nanmedian(y, axis=0)).astype(float)
    labels[3, 0], labels[5] = np.nan, -1
    classifier = SheafClassifier(model, "diagonal", 2, epochs=150, patience=150, learning_rate=0.02, dropout=0.0, input_dropout=0.0)
    classifier.fit(data, labels, split=0)
    p = classifier.predict_proba(data)
    assert p.shape == (300, 2) and ((0 < p) & (p < 1)).all() and classifier.classes_.tolist() == [0, 1]
    assert (classifier.predict(data) == (p > 0.5)).all()
    train = np.setdiff1d(data.splits[0].train, [3, 5])
    assert classifier.score(data, labels, nodes=train) == accuracy_score(labels[train].astype(int), classifier.predict(data)[train])
    assert classifier.score(data, labels, nodes=train) > 0.6
    with pytest.raises(ValueError, match="uncertainty: not available for networks with several labels"):
        classifier.uncertainty(data)
    one = classifier.fit(data, split=0)  # one label of each node again
    assert one.predict(data).ndim == 1 and one.uncertainty(data).entropy.shape == (300,)


@pytest.mark.parametrize("kind", ["numbers", "one axis", "labels"])
def test_files_and_pickles(task, tmp_path, kind):
    data, y = task
    if kind == "labels":
        own = SheafClassifier("bsnn", "diagonal", 2, epochs=5).fit(data, (np.nan_to_num(y) > 0).astype(int))
        read = own.predict_proba
    else:
        own = SheafRegressor("bsnn", "diagonal", 2, epochs=5).fit(data, y if kind == "numbers" else y[:, 1])
        read = own.predict
    path = tmp_path / "model.safetensors"
    own.save(path)
    loaded = type(own).load(path)
    assert (getattr(loaded, read.__name__)(data) == read(data)).all()
    assert loaded.split_ == 0 and loaded.trained_with_edges_
    same = pickle.loads(pickle.dumps(own))
    assert (getattr(same, read.__name__)(data) == read(data)).all()
    other = SheafRegressor if kind == "labels" else SheafClassifier
    with pytest.raises(RuntimeError, match="model.safetensors: targets: '(numbers|multilabel)' are not the targets of a Sheaf"):
        other.load(path)


def test_a_classifier_is_no_regressor(karate, trained, tmp_path):
    trained.save(tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match="targets: 'classes' are not the targets of a SheafRegressor, numbers"):
        SheafRegressor.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({}, {}, "requires y to be passed"),
        ({}, {"y": np.zeros(3)}, r"y: shape \(3,\) is not allowed; expected a number, or k numbers, for each of 34 nodes"),
        ({}, {"y": np.full(34, np.inf)}, r"y\[0\]: inf is not allowed; must be finite, or NaN where unknown"),
        ({}, {"y": np.full(34, np.nan)}, "y: target 0 is not known of any node to train on"),
        ({}, {"y": ["a"] * 34}, "y: could not convert"),
        ({}, {"y": np.zeros(34), "split": 99}, "split: 99 is not allowed"),
        ({}, {"y": np.zeros(34), "edges": []}, "edges: a Dataset has its own"),
        ({"search": 3}, {"y": np.zeros(34)}, "search: 3 is not allowed; the settings of a search are compared by classes"),
        ({"training": {"stop_on": "roc_auc"}}, {"y": np.zeros(34)}, "stop_on"),
        ({"stalk_dim": 7}, {"y": np.zeros(34)}, "stalk_dim: 7 is not allowed"),
    ],
)
def test_bad_targets(karate, parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        SheafRegressor("nsd", "diagonal", **{"stalk_dim": 2, "epochs": 3, **parameters}).fit(karate, **arguments)


@pytest.mark.filterwarnings("error")
def test_targets_that_are_all_unknown():
    for estimator, targets in ((SheafRegressor, np.full(5, np.nan)), (SheafClassifier, np.full((5, 2), np.nan))):
        with pytest.raises(ValueError, match="y: target 0 is not known of any node to train on"):
            estimator().fit(np.eye(5), targets)


def test_the_score_of_one_node_is_not_defined(karate):
    y = np.asarray(karate.adjacency.sum(axis=1)).ravel()
    with pytest.warns(UndefinedMetricWarning, match="less than two samples"):
        assert np.isnan(SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(karate, y).score(karate, y, nodes=[3]))


def test_bad_labels(karate):
    with pytest.raises(ValueError, match="y: target 1 is not known of any node to train on"):
        SheafClassifier("nsd", "diagonal", 2).fit(karate, np.stack([karate.codes, np.full(34, np.nan)], axis=1))
    with pytest.raises(ValueError, match=r"y\[4, 1\]: 2.0 is not allowed; several labels of a node are 0 and 1, and NaN or -1"):
        labels = np.zeros((34, 2))
        labels[4, 1] = 2
        SheafClassifier("nsd", "diagonal", 2).fit(karate, labels)
    with pytest.raises(ValueError, match="missing_labels: .* is not allowed; several labels are 0, 1"):
        SheafClassifier("nsd", "diagonal", 2).fit(karate, np.zeros((34, 2)), missing_labels=["NA"])


@pytest.fixture(scope="module")
def two_kinds():
    """600 nodes of two kinds on a ring each, which features name: a normal number of each kind's deviation, and a count."""
    random = np.random.default_rng(5)
    kind = np.arange(600) % 2
    edges = np.stack([np.arange(600), (np.arange(600) + 2) % 600], axis=1)
    numbers = 50 + 10 * np.where(kind == 0, 1 + 0.2 * random.normal(size=600), -1 + 0.9 * random.normal(size=600))
    counts = random.poisson(np.where(kind == 0, 2.0, 9.0)).astype(float)
    order = random.permutation(600)
    parts = order[:360], order[360:480], order[480:]  # training, calibration, test
    return np.eye(2)[kind], edges, kind, numbers, counts, parts


def fitted(task, loss, y):
    features, edges, _, _, _, (train, _, _) = task
    model = SheafRegressor(
        "bsnn", "diagonal", 2, loss=loss, epochs=200, preset="none", channels=4, layers=1, learning_rate=0.02, weight_decay=0.0, dropout=0.0,
        input_dropout=0.0, kl_weight=0.0, feature_treatment="none",
    )
    return model.fit(features, y, edges=edges, train=train, validation=[])


def test_learned_deviations_and_intervals(two_kinds):
    features, edges, kind, y, _, (_, held, test) = two_kinds
    model = fitted(two_kinds, "gaussian", y)
    assert model.loss_ == "gaussian" and model.n_targets_ == 1
    mean, std = model.predict(features, edges=edges, return_std=True)
    assert (mean == model.predict(features, edges=edges)).all() and mean.shape == std.shape == (600,)
    for own, m, sigma in (0, 60, 2), (1, 40, 9):
        assert np.abs(mean[kind == own] - m).max() < 2
        assert np.abs(std[kind == own] / sigma - 1).max() < 0.25
    widths = {}
    for method in "conformal", "normalised", "posterior":
        lower, upper = model.predict_interval(features, y, edges=edges, nodes=held, coverage=0.9, method=method)
        covered = (lower <= y) & (y <= upper)
        assert abs(covered[test].mean() - 0.9) < 0.11, method  # 4 deviations of 120 nodes
        widths[method] = [np.median((upper - lower)[kind == own]) for own in (0, 1)]
    assert widths["conformal"][0] == pytest.approx(widths["conformal"][1])
    for method in "normalised", "posterior":
        assert widths[method][1] / widths[method][0] == pytest.approx(4.5, rel=0.35)
    z = 1.6448536
    assert widths["posterior"][1] == pytest.approx(2 * z * np.median(std[kind == 1]), rel=0.02)
    lower, upper = model.predict_interval(features, y, edges=edges, nodes=held[:3])
    assert (lower == -np.inf).all() and (upper == np.inf).all()


def test_counts(two_kinds):
    features, edges, kind, _, y, (_, held, test) = two_kinds
    model = fitted(two_kinds, "poisson", np.where(np.arange(600) % 9 == 0, np.nan, y))
    rates, std = model.predict(features, edges=edges, return_std=True)
    for own, rate in (0, 2), (1, 9):
        assert np.abs(rates[kind == own] / rate - 1).max() < 0.2
    assert std == pytest.approx(np.sqrt(rates))
    assert model.base_rates_.shape == (1,) and model.target_scale_.tolist() == [1]
    for method in "conformal", "normalised", "posterior":
        lower, upper = model.predict_interval(features, y, edges=edges, nodes=held, method=method)
        assert (lower == np.floor(lower)).all() and (upper == np.floor(upper)).all() and lower.min() >= 0
        assert ((lower <= y) & (y <= upper))[test].mean() > 0.79


@pytest.mark.parametrize("loss", ["gaussian", "poisson"])
def test_files_of_other_losses(task, tmp_path, loss):
    data, y = task
    if loss == "poisson":
        y = np.round(np.abs(y))
    model = SheafRegressor("bsnn", "diagonal", 2, loss=loss, epochs=5).fit(data, y)
    model.save(tmp_path / "model.safetensors")
    loaded = SheafRegressor.load(tmp_path / "model.safetensors")
    assert loaded.loss_ == loss and loaded.n_targets_ == 2 and loaded.loss == loss
    for a, b in zip(model.predict(data, return_std=True), loaded.predict(data, return_std=True)):
        assert a.shape == (300, 2) and (a == b).all()
    for method in "conformal", "posterior":
        for a, b in zip(model.predict_interval(data, y, method=method), loaded.predict_interval(data, y, method=method)):
            assert (a == b).all()


def test_ordered_classes(two_kinds, tmp_path):
    features, edges, kind, _, _, (train, _, test) = two_kinds
    random = np.random.default_rng(6)
    stars = np.array([1, 3, 7])[[random.choice(3, p=((0.7, 0.2, 0.1), (0.1, 0.3, 0.6))[k]) for k in kind]]
    model = SheafClassifier("nsd", "diagonal", 2, loss="ordinal", epochs=150, learning_rate=0.02, dropout=0.0, input_dropout=0.0, feature_treatment="none")
    model.fit(features, stars, edges=edges, train=train, validation=[])
    p = model.predict_proba(features, edges=edges)
    assert model.classes_.tolist() == [1, 3, 7] and model.ordinal_ and p.shape == (600, 3)
    assert p.sum(axis=1) == pytest.approx(1) and p.min() >= 0
    for own, truth in (0, (0.7, 0.2, 0.1)), (1, (0.1, 0.3, 0.6)):
        assert np.abs(p[kind == own] - truth).max() < 0.15
    assert (model.predict(features, edges=edges) == model.classes_[p.argmax(axis=1)]).all()
    assert model.score(features, stars, edges=edges, nodes=test) > 0.5
    model.save(tmp_path / "model.safetensors")
    loaded = SheafClassifier.load(tmp_path / "model.safetensors")
    assert loaded.ordinal_ and loaded.classes_.tolist() == [1, 3, 7]
    assert (loaded.predict_proba(features, edges=edges) == p).all()
    with pytest.raises(ValueError, match="uncertainty: not available for networks with ordered classes"):
        model.uncertainty(features, edges=edges)
    with pytest.raises(ValueError, match="loss: 'ordinal' is not allowed; the order of the classes .* is not known"):
        clone(model).fit(features, np.where(kind == 0, "low", "high"), edges=edges)


def test_bad_losses(karate):
    y = np.arange(34.0)
    with pytest.raises(ValueError, match="loss"):
        SheafRegressor("nsd", "diagonal", 2, loss="ordinal").fit(karate, y)
    with pytest.raises(ValueError, match="loss"):
        SheafClassifier("nsd", "diagonal", 2, loss="gaussian").fit(karate)
    with pytest.raises(ValueError, match=r"y\[3\]: 3.5 is not allowed; counts are 0, 1, 2"):
        SheafRegressor("nsd", "diagonal", 2, loss="poisson").fit(karate, np.where(y == 3, 3.5, y))
    squared = SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(karate, y)
    lower, upper = squared.predict_interval(karate, y, coverage=0.5)
    assert lower.shape == (34,) and (lower < upper).all()
    for call, message in [
        (lambda: squared.predict(karate, return_std=True), "return_std: True is not allowed; the loss 'squared' learns no deviations"),
        (lambda: squared.predict_interval(karate, y, method="posterior"), "method: 'posterior' is not allowed; the loss 'squared' learns"),
        (lambda: squared.predict_interval(karate), "y: None is not allowed; method 'conformal' needs known targets"),
        (lambda: squared.predict_interval(karate, y, coverage=1), "coverage: 1 is not allowed; must be above 0 and below 1"),
        (lambda: squared.predict_interval(karate, y[:3]), r"y: shape \(3,\) is not allowed"),
        (lambda: squared.predict_interval(karate.features, y, edges=karate.edges), "nodes: None is not allowed; name nodes"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("labels", ["numbers", "one", "several"])
def test_warnings_name_the_users_line(random, labels):
    x = random.normal(size=(20, 3))
    y = {"numbers": x[:, 0], "one": (x[:, 0] > 0).astype(int), "several": (x[:, :2] > 0).astype(int)}[labels]
    estimator = (SheafRegressor if labels == "numbers" else SheafClassifier)("nsd", "diagonal", 2, epochs=2, validation_fraction=0.001)
    with pytest.warns(UserWarning, match="validation_fraction: 0.001 of 20 nodes is none") as caught:
        estimator.fit(x, y)
    assert [w.filename for w in caught if "validation_fraction" in str(w.message)] == [__file__]


def test_threads_callbacks_and_progress(task, capsys):
    data, y = task
    one, two = (SheafRegressor("bsnn", "diagonal", 2, epochs=5, threads=threads).fit(data, y) for threads in (1, 2))
    assert (one.predict(data) == two.predict(data)).all()
    seen = []
    stopped = SheafRegressor("nsd", "diagonal", 2, progress=True, callback=lambda epoch: seen.append(epoch.epoch) or len(seen) < 3)
    stopped.fit(data, y)
    assert seen == [0, 1, 2] and stopped.n_iter_ == 3 and stopped.result_["stop_reason"] == "callback"
    assert "training" in capsys.readouterr().err
