"""Hypergraphs and the classifier of their nodes."""

import copy
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import sheafnn
from sheafnn import Hypergraph, HypergraphClassifier


def task(**more):
    options = dict(nodes=120, classes=3, features=30, words=6, hyperedges=150, homophily=0.9, splits=2)
    return sheafnn.synthetic_hypergraph(**{**options, **more})


def test_arrays_and_lists():
    features, labels = np.eye(4), ["a", "b", None, "b"]
    data = Hypergraph.from_lists([[2, 0], [], [3, 1, 0]], features, labels, splits=[([0, 1], [3], [])])
    assert (data.node_count, data.hyperedge_count, data.feature_count) == (4, 3, 4)
    assert_array_equal(data.incidence, [[0, 0], [0, 2], [1, 2], [2, 0], [3, 2]])
    assert_array_equal(data.codes, [0, 1, -1, 1])
    assert_array_equal(data.splits[0].validation, [3])
    assert_array_equal(data.features.toarray(), features)
    same = Hypergraph.from_numpy(data.incidence, features, labels)
    assert_array_equal(same.incidence, data.incidence)
    assert Hypergraph.from_numpy([], features).hyperedge_count == 0


@pytest.mark.parametrize(
    ("incidence", "more", "text"),
    [
        ([[0, 0], [0, 0]], {}, "node 0 twice in hyperedge 0"),
        ([[4, 0]], {}, r"incidence\[0, 0\]: 4 is not allowed; must be between 0 and 3"),
        ([[0, -1]], {}, r"incidence\[0, 1\]: -1"),
        ([[0, 2]], {"hyperedge_count": 2}, r"incidence\[0, 1\]: 2"),
        ([[0.5, 0]], {}, "must be whole numbers"),
        ([0, 1], {}, "must be nnz x 2"),
        (np.ma.masked_equal([[0, 0], [1, 0]], 1), {}, "incidence: a masked entry is not allowed"),
    ],
)
def test_refused(incidence, more, text):
    with pytest.raises(ValueError, match=text):
        Hypergraph.from_numpy(incidence, np.eye(4), **more)


@pytest.mark.parametrize(
    ("model", "maps", "stalk_dim", "network"),
    [
        ("shgnn", "diagonal", 2, {}),
        ("bshgnn", "special-orthogonal", 3, {"laplacian": "nonlinear", "mediators": True, "projection": [0.1, 0.5, 0.9, 0.2]}),
        ("shgnn", "general-linear", 2, {"update": "residual", "learner": "averaged", "static_sheaf": True}),
    ],
)
def test_classifier(tmp_path, model, maps, stalk_dim, network):
    data = task()
    classifier = HypergraphClassifier(model, maps, stalk_dim, channels=4, epochs=60, learning_rate=0.02, network=network)
    classifier.fit(data, split=1)
    assert classifier.score(data) > 0.75
    assert classifier.result_["test_accuracy"] > 0.75
    uncertainty = classifier.uncertainty(data)
    assert uncertainty.probabilities.shape == (120, 3)
    np.testing.assert_allclose(uncertainty.probabilities.sum(axis=1), 1, atol=1e-6)
    assert (uncertainty.mutual_information.max() > 1e-6) == (model == "bshgnn")
    classifier.save(tmp_path / "model.safetensors")
    loaded = HypergraphClassifier.load(tmp_path / "model.safetensors", split=1)
    assert_array_equal(loaded.predict(data), classifier.predict(data))


def test_loading_refuses(tmp_path):
    data = task()
    HypergraphClassifier(epochs=2).fit(data).save(tmp_path / "model.safetensors")
    for split in ("x", -1, 0.5):
        with pytest.raises(ValueError, match=f"split: {split!r} is not allowed"):
            HypergraphClassifier.load(tmp_path / "model.safetensors", split=split)
    with pytest.raises(ValueError, match="split: 2 is not allowed; must be between 0 and 1"):
        HypergraphClassifier.load(tmp_path / "model.safetensors", split=2).score(data)
    with pytest.raises(ValueError, match="layers: 3 is not allowed; choose predict_samples, random_state, threads"):
        HypergraphClassifier.load(tmp_path / "model.safetensors", layers=3)


def test_training_refuses():
    data = task()
    for method in ("predict", "predict_proba", "score", "uncertainty"):
        with pytest.raises(NotFittedError):
            getattr(HypergraphClassifier(), method)(data)
    with pytest.raises(ValueError, match="callback: 3 is not allowed"):
        HypergraphClassifier(callback=3).fit(data)
    with pytest.raises(ValueError, match="predict_samples: 0 is not allowed"):
        HypergraphClassifier(predict_samples=0).fit(data)
    with pytest.raises(ValueError, match="epochs: '2' is not allowed; must be a number"):
        HypergraphClassifier(epochs="2").fit(data)
    with pytest.raises(ValueError, match="mediators: true is not allowed"):
        HypergraphClassifier(network={"mediators": True}).fit(data)
    with pytest.raises(ValueError, match="shgnn has no such option"):
        HypergraphClassifier(network={"add_lp": True}).fit(data)
    with pytest.raises(ValueError, match="model: bsnn is not allowed; must be shgnn or bshgnn"):
        HypergraphClassifier("bsnn").fit(data)
    with pytest.raises(ValueError, match="split: the hypergraph has no splits"):
        HypergraphClassifier().fit(Hypergraph.from_numpy([[0, 0]], np.eye(2), [0, 1]))
    with pytest.raises(TypeError, match="expected a Hypergraph"):
        HypergraphClassifier().fit(sheafnn.karate_club())


def test_callback_ends_a_training():
    epochs = []
    classifier = HypergraphClassifier(epochs=50, callback=lambda epoch: epochs.append(epoch.epoch) or epoch.epoch < 4)
    assert classifier.fit(task()).result_["epochs"] == len(epochs) == 5


def test_files(tmp_path):
    (tmp_path / "nodes.csv").write_text("node,label,a\nx,cat,1\ny,dog,2\nz,cat,3\n")
    (tmp_path / "hyperedges.csv").write_text("x,y\ny,z,x\n")
    data = sheafnn.load_hypergraph(tmp_path)
    assert_array_equal(data.incidence, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]])
    assert data.classes.tolist() == ["cat", "dog"]
    np.savez(tmp_path / "h.npz", incidence=data.incidence, features=np.eye(3), labels=[0, 1, 0])
    assert_array_equal(sheafnn.load_hypergraph(tmp_path / "h.npz").incidence, data.incidence)
    with pytest.raises(FileNotFoundError, match="no such hypergraph"):
        sheafnn.load_hypergraph(tmp_path / "nothing")


def test_parameters_are_options():
    data = task()
    first = HypergraphClassifier(epochs=40, patience=3, learning_rate=0.05, samples=2).fit(data)
    assert first.result_["epochs"] == first.result_["best_epoch"] + 4 < 40
    slower = HypergraphClassifier(epochs=40, patience=3, learning_rate=0.001).fit(data)
    assert not np.allclose(slower.predict_proba(data), first.predict_proba(data))
    with pytest.raises(ValueError, match="it is the parameter patience of the estimator"):
        HypergraphClassifier(training={"patience": 3}).fit(data)
    with pytest.raises(ValueError, match="learning_rate"):
        HypergraphClassifier(learning_rate=-1, epochs=1).fit(data)
    with pytest.raises(ValueError, match="patience: '3' is not allowed; must be a number"):
        HypergraphClassifier(patience="3").fit(data)


@pytest.mark.parametrize("number", [-1, 2**31 - 1, 2**40])
def test_hyperedge_numbers_out_of_range(number):
    message = rf"incidence\[1, 1\]: {number} is not allowed; must be between 0 and 2147483646"
    with pytest.raises(ValueError, match=message):
        sheafnn.Hypergraph.from_numpy([[0, 0], [1, number]], np.eye(3))


def test_pickle_and_copies():
    data = task()
    features = data.features.toarray()
    features[3, 1] = np.nan
    labels = [None if i == 2 else int(code) * 2 for i, code in enumerate(data.codes)]
    own = Hypergraph.from_numpy(
        data.incidence, features, labels, hyperedge_count=data.hyperedge_count + 1, splits=data.splits, name="own",
        feature_names=[f"f{j}" for j in range(30)],
    )
    model = HypergraphClassifier(epochs=2).fit(own)
    for same in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert (same.name, same.hyperedge_count, same.feature_names) == (own.name, own.hyperedge_count, own.feature_names)
        assert_array_equal(same.incidence, own.incidence)
        assert_array_equal(same.features.toarray(), features)
        assert_array_equal(same.labels, own.labels)
        for split, others in zip(same.splits, own.splits, strict=True):
            for part, other in zip(split, others):
                assert_array_equal(part, other)
        assert_array_equal(model.predict_proba(same), model.predict_proba(own))


@pytest.mark.parametrize("name", [lambda code: 2 * code, lambda code: code > 0, float, lambda code: "abc"[code]])
def test_files_keep_the_type_of_classes(tmp_path, name):
    data = task()
    own = Hypergraph.from_numpy(data.incidence, data.features, [name(int(code)) for code in data.codes], splits=data.splits)
    model = HypergraphClassifier(epochs=5).fit(own)
    model.save(tmp_path / "model.safetensors")
    loaded = HypergraphClassifier.load(tmp_path / "model.safetensors")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert_array_equal(loaded.predict(own), model.predict(own))
    assert loaded.score(own) == model.score(own) > 0


def test_files_of_other_networks(tmp_path, karate):
    path = str(tmp_path / "model.safetensors")
    sheafnn.SheafClassifier("nsd", "diagonal", 2, epochs=1, preset="none").fit(karate).save(path)
    for other, message in (
        (HypergraphClassifier, "model: nsd is not allowed; works on graphs"),
        (sheafnn.GraphClassifier, "model: nsd is not allowed; its outputs are of nodes"),
    ):
        with pytest.raises(RuntimeError, match=re.escape(f"{path}: {message}")):
            other.load(path)
    HypergraphClassifier(epochs=1).fit(task()).save(path)
    for estimator in (sheafnn.SheafClassifier, sheafnn.SampledClassifier):
        with pytest.raises(RuntimeError, match=re.escape(f"{path}: model: shgnn is not allowed")):
            estimator.load(path)


def test_hypergraphs_are_not_cut_into_rows():
    with pytest.raises(TypeError, match="a Hypergraph is not an array.*fit_many"):
        cross_val_score(HypergraphClassifier(epochs=1), task(), task().codes)
