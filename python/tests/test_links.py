"""Link prediction. SHEAFNN_PROGRAMS names the folder of the program links."""

import os
import pathlib
import pickle
import re
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sheafnn
from sheafnn import LinkPredictor

folder = os.environ.get("SHEAFNN_PROGRAMS")


@pytest.mark.parametrize(("model", "pair_score"), [("bsnn", "energy"), ("nsd", "dot"), ("nsd", "bilinear")])
def test_predictor(tmp_path, graph, model, pair_score):
    predictor = LinkPredictor(model, pair_score=pair_score, channels=4, epochs=15, hits=[1, 10], random_state=3).fit(graph)
    figures = predictor.score()
    assert set(figures) == {"roc_auc", "average_precision", "loss", "mrr", "hits@1", "hits@10"}
    assert 0 <= figures["hits@1"] <= figures["hits@10"] <= 1 and figures["hits@1"] <= figures["mrr"] <= 1
    whole = {tuple(edge) for edge in graph.edges}
    seen = {tuple(edge) for edge in predictor.seen_.edges}
    linked = {tuple(pair) for pair, label in zip(predictor.test_pairs_, predictor.test_labels_) if label == 1}
    others = {tuple(sorted(pair)) for pair, label in zip(predictor.test_pairs_, predictor.test_labels_) if label == 0}
    assert len(linked) == len(others) == round(0.1 * len(whole))
    assert seen < whole and linked < whole and not linked & seen and not others & whole
    pairs = predictor.test_pairs_
    probabilities = predictor.predict_proba(pairs)
    assert probabilities.shape == (len(pairs), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(predictor.predict_proba(pairs[:, ::-1]), probabilities, atol=1e-5)
    assert_array_equal(predictor.predict(pairs), probabilities[:, 1] > 0.5)
    assert predictor.uncertainty(pairs).mutual_information.shape == (len(pairs),)
    own = predictor.score(pairs, predictor.test_labels_)
    if model == "nsd":  # nothing is random
        assert own == pytest.approx(figures, abs=1e-6)
    predictor.save(tmp_path / "m.safetensors")
    loaded = LinkPredictor.load(tmp_path / "m.safetensors", random_state=3)
    assert loaded.get_params()["pair_score"] == pair_score
    assert_array_equal(loaded.predict_proba(pairs, predictor.seen_), probabilities)
    assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict_proba(pairs), probabilities)
    with pytest.raises(ValueError, match="X: None is not allowed; files keep no graph"):
        loaded.predict_proba(pairs)
    with pytest.raises(RuntimeError, match="targets: 'links' are not the targets of a SheafClassifier"):
        sheafnn.SheafClassifier.load(tmp_path / "m.safetensors")


def test_features_and_edges(graph):
    options = dict(model="nsd", pair_score="dot", channels=4, epochs=5)
    of_dataset = LinkPredictor(**options).fit(graph)
    of_arrays = LinkPredictor(**options).fit(graph.features, edges=graph.edges)
    assert_array_equal(of_arrays.test_pairs_, of_dataset.test_pairs_)
    pairs = [[0, 1], [2, 3]]
    assert_array_equal(of_arrays.predict_proba(pairs), of_dataset.predict_proba(pairs))
    whole = of_arrays.predict_proba(pairs, graph.features, edges=graph.edges)
    assert_array_equal(whole, of_dataset.predict_proba(pairs, graph))


def test_learns():
    data = sheafnn.synthetic(nodes=200, classes=3, features=30, words=8, homophily=0.95, feature_noise=0.2, seed=2)
    predictor = LinkPredictor("nsd", pair_score="dot", channels=4, epochs=80).fit(data)
    assert predictor.score()["roc_auc"] > 0.7


def test_refused(karate):
    def fit(data=karate, **more):
        return LinkPredictor(**{"epochs": 2, **more}).fit(data)

    with pytest.raises(ValueError, match="edges: None is not allowed"):
        LinkPredictor().fit(np.eye(4))
    with pytest.raises(ValueError, match="edges: a Dataset has its own"):
        LinkPredictor().fit(karate, edges=[[0, 1]])
    with pytest.raises(ValueError, match="y: not allowed"):
        LinkPredictor().fit(karate, karate.labels)
    with pytest.raises(ValueError, match="pair_score: cosine is not allowed; choose dot, bilinear, energy"):
        fit(pair_score="cosine")
    with pytest.raises(ValueError, match="outputs: 15 is not allowed; the energy needs a multiple of the stalk dimension, 2"):
        fit(pair_score="energy", outputs=15)
    with pytest.raises(ValueError, match="message_share: 2 is not allowed; must be between 0 and 1"):
        fit(split={"message_share": 2})
    with pytest.raises(ValueError, match=r"network\['filter_degree'\]: 3 is not allowed; belongs to filter"):
        fit(network={"filter_degree": 3})
    with pytest.raises(ValueError, match="callback: 3 is not allowed"):
        fit(callback=3)
    with pytest.raises(ValueError, match="predict_samples: 0 is not allowed"):
        fit(predict_samples=0)
    with pytest.raises(ValueError, match="learning_rate: '0.1' is not allowed; must be a number"):
        fit(learning_rate="0.1")
    with pytest.raises(ValueError, match="shares must sum to 1"):
        fit(split={"train_share": 0.5})
    with pytest.raises(ValueError, match=r"split\['share'\].*a split of edges has no such option; it has message_share"):
        fit(split={"share": 0.5})
    with pytest.raises(ValueError, match="negatives.*: 0 is not allowed"):
        fit(split={"negatives": 0})
    with pytest.raises(ValueError, match="model: csnn is not allowed; must be nsd or bsnn"):
        fit(model="csnn")
    with pytest.raises(ValueError, match="hits: 0 is not allowed"):
        fit(hits=0)
    predictor = fit()
    with pytest.raises(ValueError, match=r"pairs\[0, 1\]: 34 is not allowed; a node number must be between 0 and 33"):
        predictor.predict_proba([[0, 34]])
    with pytest.raises(ValueError, match="pairs"):
        predictor.predict_proba([[3, 3]])
    with pytest.raises(ValueError, match="pairs: float64 is not allowed; expected whole node numbers"):
        predictor.predict_proba([[0.5, 1]])
    with pytest.raises(ValueError, match=r"pairs: shape \(2,\) is not allowed"):
        predictor.predict_proba([0, 1])
    with pytest.raises(ValueError, match="labels: .* is not allowed; expected 1 or 0 for each of 2 pairs, and both"):
        predictor.score([[0, 1], [1, 2]], [1, 1])
    with pytest.raises(ValueError, match="X has 2 features, but the network has 34"):
        predictor.predict_proba([[0, 1]], np.eye(2), edges=[])


def people():
    """Features, listed edges and two things that follow from the people: signs and numbers of the edges."""
    u = np.arange(120)
    features = np.stack([u % 2 + 0.25 * (u % 3), (u % 2 == 1) - 0.5], axis=1)
    edges = np.array([(v, v - k) for v in u for k in range(1, 13) if v >= k and v * k % 7 < 3])
    same = (edges[:, 0] - edges[:, 1]) % 2 == 0
    return features, edges, np.where(same, 1, -1), 100.0 + 10 * (edges % 2).sum(axis=1)


@pytest.mark.parametrize("model", ["bsnn", "nsd"])
def test_signs(tmp_path, model):
    features, edges, signs, _ = people()
    labels = [None if e % 9 == 0 else int(sign) for e, sign in enumerate(signs)]
    predictor = LinkPredictor(model, targets="classes", epochs=100).fit(features, labels, edges=edges)
    assert predictor.classes_.tolist() == [-1, 1]
    figures = predictor.score()
    assert set(figures) == {"accuracy", "loss", "roc_auc", "average_precision"} and figures["accuracy"] > 0.9
    truth = {tuple(sorted(edge)): sign for edge, sign in zip(edges.tolist(), signs.tolist())}
    tested = [truth[tuple(sorted(pair))] for pair in predictor.test_pairs_.tolist()]
    assert_array_equal(predictor.test_labels_, tested)
    known = {tuple(sorted(edge)) for edge, label in zip(edges.tolist(), labels) if label is not None}
    assert {tuple(pair) for pair in predictor.test_pairs_.tolist()} < known
    unknown = edges[::9]
    assert (predictor.predict(unknown) == signs[::9]).mean() > 0.9
    probabilities = predictor.predict_proba(unknown)
    assert probabilities.shape == (len(unknown), 2)
    assert_array_equal(predictor.classes_[probabilities.argmax(axis=1)], predictor.predict(unknown))
    if model == "nsd":
        own = predictor.score(predictor.test_pairs_, predictor.test_labels_)
        assert own == pytest.approx({key: figures[key] for key in own}, abs=1e-6)
    predictor.save(tmp_path / "m.safetensors")
    loaded = LinkPredictor.load(tmp_path / "m.safetensors")
    assert loaded.targets == "classes" and loaded.classes_.dtype == predictor.classes_.dtype
    assert_array_equal(loaded.predict(unknown, predictor.seen_), predictor.predict(unknown))
    assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict(unknown), predictor.predict(unknown))
    # A Dataset numbers its edges otherwise.
    data = sheafnn.Dataset.from_numpy(edges, features)
    again = LinkPredictor(model, targets="classes", epochs=5).fit(data, [str(truth[tuple(edge)]) for edge in data.edges.tolist()])
    assert again.classes_.tolist() == ["-1", "1"]
    # Labels may be numbers of classes.
    numbered = LinkPredictor(model, targets="classes", epochs=5).fit(features, (signs + 1) // 2, edges=edges)
    assert numbered.classes_.tolist() == [0, 1]
    numbered.save(tmp_path / "numbered.safetensors")
    assert LinkPredictor.load(tmp_path / "numbered.safetensors").classes_.tolist() == [0, 1]


def test_numbers(tmp_path):
    features, edges, _, hours = people()
    own = hours.copy()
    own[::9] = np.nan
    predictor = LinkPredictor("nsd", targets="numbers", epochs=100).fit(features, own, edges=edges)
    figures = predictor.score()
    assert set(figures) == {"r2", "mean_absolute_error", "root_mean_square_error"} and figures["r2"] > 0.7
    means, deviations = predictor.predict(edges[::9], return_std=True)
    assert abs(means - hours[::9]).mean() < 5 and deviations.shape == means.shape and (deviations == 0).all()
    again = predictor.score(predictor.test_pairs_, predictor.test_labels_)
    assert again == pytest.approx(figures, abs=1e-4)
    with pytest.raises(ValueError, match=r"labels\[1\]: nan is not allowed; a score needs known numbers"):
        predictor.score(edges[:2], [1.0, np.nan])
    predictor.save(tmp_path / "m.safetensors")
    loaded = LinkPredictor.load(tmp_path / "m.safetensors")
    assert_array_equal(loaded.predict(edges[::9], predictor.seen_), means)
    with pytest.raises(ValueError, match="'numbers' have no probabilities"):
        loaded.predict_proba(edges[::9], predictor.seen_)


def test_refused_labels():
    features, edges, signs, hours = people()

    def fit(y, targets="classes", edges=edges, **more):
        return LinkPredictor(targets=targets, epochs=2, **more).fit(features, y, edges=edges)

    with pytest.raises(ValueError, match="targets: 'signs' is not allowed; choose links, classes, numbers"):
        fit(signs, "signs")
    with pytest.raises(ValueError, match="y: None is not allowed; expected one of the classes for each edge"):
        fit(None)
    with pytest.raises(ValueError, match=r"expected one label for each of \d+ edges"):
        fit(signs[1:])
    with pytest.raises(ValueError, match=r"y: \[1\] is not allowed; at least two different labels are needed"):
        fit(np.ones_like(signs))
    with pytest.raises(ValueError, match=r"y\[2\]: the edge of nodes 0 and 1 has another value in row 0"):
        fit([1, 1, -1], edges=[[0, 1], [1, 2], [1, 0]])
    with pytest.raises(ValueError, match=r"split\['negatives'\]: 2 is not allowed; belongs to links"):
        fit(signs, split={"negatives": 2})
    with pytest.raises(ValueError, match=r"y: shape .* is not allowed; expected a number"):
        fit(hours[1:], "numbers")
    with pytest.raises(ValueError, match=r"y: shape .* is not allowed; expected one number for each"):
        fit(np.stack([hours, hours], axis=1), "numbers")
    with pytest.raises(ValueError, match="return_std: True is not allowed; classes are no numbers"):
        fit(signs).predict([[0, 1]], return_std=True)


@pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")
def test_the_program_does_the_same(tmp_path, karate):
    saved, ranking = tmp_path / "m.safetensors", tmp_path / "r.csv"
    shown = subprocess.run(
        [pathlib.Path(folder) / "links", "--dataset", "karate", "--epochs", "30", "--seed", "4", "--save", saved, "--ranking", ranking],
        text=True, capture_output=True, check=True,
    ).stdout
    own = LinkPredictor(epochs=30, random_state=4).fit(karate)
    theirs = LinkPredictor.load(saved, random_state=4)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys() and any(name.startswith("loss.bilinear") for name in a)
    for name in a:
        assert_array_equal(a[name], b[name], name)
    rows = np.genfromtxt(ranking, delimiter=",", names=True)
    ranked = {tuple(sorted(pair)) for pair in zip(rows["source"].astype(int), rows["target"].astype(int))}
    assert ranked == {tuple(sorted(pair)) for pair in own.test_pairs_.tolist()}
    figures = own.score()
    auc, precision = (float(x) for x in re.search(r"ROC AUC ([0-9.]+), average precision ([0-9.]+)", shown).groups())
    hits, mrr = (float(x) for x in re.search(r"Hits@10 ([0-9.]+), MRR ([0-9.]+)", shown).groups())
    assert (auc, precision, hits, mrr) == tuple(round(figures[key], 3) for key in ("roc_auc", "average_precision", "hits@10", "mrr"))


@pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_program_learns_the_same_of_edges(tmp_path, kind):
    features, edges, signs, hours = people()
    values = signs if kind == "classes" else hours
    (tmp_path / "nodes.csv").write_text("name,a,b\n" + "".join(f"{u},{a},{b}\n" for u, (a, b) in enumerate(features.tolist())))
    (tmp_path / "edges.csv").write_text("source,target,what\n" + "".join(f"{u},{v},{x}\n" for (u, v), x in zip(edges, values)))
    saved, table = tmp_path / "m.safetensors", tmp_path / "p.csv"
    option = "--edge-labels" if kind == "classes" else "--edge-target"
    subprocess.run(
        [pathlib.Path(folder) / "links", "--dataset", tmp_path, option, "what", "--epochs", "20", "--seed", "4", "--save", saved,
         "--predictions", table],
        text=True, capture_output=True, check=True,
    )
    own = LinkPredictor(targets=kind, epochs=20, random_state=4).fit(features, values, edges=edges)
    theirs = LinkPredictor.load(saved, random_state=4)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    for name in a:
        assert_array_equal(a[name], b[name], name)
    rows = np.genfromtxt(table, delimiter=",", names=True)
    assert len(rows) == len(own.test_pairs_)
    assert theirs.targets == kind and (kind == "numbers" or theirs.classes_.tolist() == ["-1", "1"])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_edges_of_files(tmp_path, kind):
    features, edges, signs, hours = people()
    values = np.asarray(signs if kind == "classes" else hours, float)
    values[3] = np.nan
    argument = {"edge_labels" if kind == "classes" else "edge_target": "what"}
    (tmp_path / "nodes.csv").write_text("name,a,b\n" + "".join(f"{u},{a},{b}\n" for u, (a, b) in enumerate(features.tolist())))
    texts = ["" if np.isnan(x) else f"{x:.17g}" for x in values]
    (tmp_path / "edges.csv").write_text("source,target,what\n" + "".join(f"{u},{v},{x}\n" for (u, v), x in zip(edges, texts)))
    order = np.random.default_rng(0).permutation(len(edges))
    np.savez(tmp_path / "d.npz", features=features, edges=np.asarray(edges)[order], what=values[order], short=values[1:])
    given = LinkPredictor("nsd", targets=kind, epochs=3).fit(features, values, edges=edges)
    for path in (tmp_path, tmp_path / "d.npz"):
        data = sheafnn.load_dataset(path, labels=False, **argument)
        known, other = data.edge_labels, data.edge_targets
        if kind == "numbers":
            known, other = other, known
        assert other is None and len(known) == data.edge_count
        assert sum(x is None or np.isnan(x) for x in known) == 1
        of_pair = {tuple(sorted(edge)): x for edge, x in zip(np.asarray(edges).tolist(), values) if not np.isnan(x)}
        for edge, x in zip(data.edges.tolist(), known):
            assert tuple(edge) not in of_pair or of_pair[tuple(edge)] == x
        again = pickle.loads(pickle.dumps(data))
        assert_array_equal(again.edge_labels if kind == "classes" else again.edge_targets, known)
        own = LinkPredictor("nsd", targets=kind, epochs=3).fit(data)
        a, b = own.model_.tensors(), given.model_.tensors()
        for name in a:
            assert_array_equal(a[name], b[name], name)
    name = next(iter(argument))
    with pytest.raises(RuntimeError, match=r"d\.npz: short: has shape .*; expected one (label|number) for each of the \d+ edges"):
        sheafnn.load_dataset(tmp_path / "d.npz", labels=False, **{name: "short"})
    with pytest.raises(ValueError, match=f"{name}: none is not allowed; the edges have no such column, or key of an .npz file"):
        sheafnn.load_dataset(tmp_path / "d.npz", labels=False, **{name: "none"})
    with pytest.raises(ValueError, match=f"{name}: '' is not allowed; expected the name of a column or key"):
        sheafnn.load_dataset(tmp_path / "d.npz", labels=False, **{name: ""})
    assert sheafnn.load_dataset(tmp_path / "d.npz", labels=False).edge_labels is None


def test_signs_of_edges(graph):
    """A word that usually means a missing value is a class where the caller says so."""
    signs = np.where(np.arange(graph.edge_count) % 2 == 0, "-", "+")
    predictor = LinkPredictor("nsd", targets="classes", outputs=4, epochs=2)
    with pytest.raises(ValueError, match="label '-' is not allowed.*missing_labels"):
        predictor.fit(graph, signs)
    assert predictor.fit(graph, signs, missing_labels=[]).classes_.tolist() == ["+", "-"]
    with pytest.raises(ValueError, match="missing_labels: .* is not allowed; links are no labels"):
        LinkPredictor().fit(graph, missing_labels=[])
    with pytest.raises(ValueError, match="labels: not allowed without pairs"):
        predictor.score(labels=[1, 0])
