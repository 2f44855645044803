"""Sets of graphs, and the networks with outputs per graph. SHEAFNN_PROGRAMS names the folder of the program graphs."""

import os
import pathlib
import pickle
import subprocess
import types

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import cross_val_score

import sheafnn
from sheafnn import GraphClassifier, GraphRegressor, GraphSet

folder = os.environ.get("SHEAFNN_PROGRAMS")
small = dict(channels=4, layers=2, epochs=40)


def rings(count=40):
    """Chains of one to six nodes; every second one with more than two nodes is closed. The arrays of a set."""
    edges, indicator, labels = [], [], []
    for g in range(count):
        first, size = len(indicator), 1 + (g * 7) % 6
        indicator += [g] * size
        edges += [[first + i, first + i + 1] for i in range(size - 1)]
        closed = size > 2 and g % 2 == 0
        edges += [[first + size - 1, first]] if closed else []
        labels.append(1 if closed else -1)
    return np.array(edges), np.array(indicator), np.array(labels)


def classes(**more):
    edges, indicator, labels = rings()
    return GraphSet.from_arrays(edges, indicator, labels=labels, **more)


def sizes(**more):
    edges, indicator, _ = rings()
    return GraphSet.from_arrays(edges, indicator, targets=np.bincount(indicator).astype(float), **more)


def test_arrays():
    graphs = GraphSet.from_arrays([[0, 1], [1, 2], [4, 5]], [0, 0, 0, 1, 2, 2], labels=["a", None, "b"], node_tags=[7, 2, 2, 7, 7, 3])
    assert (len(graphs), graphs.node_count, graphs.edge_count, graphs.feature_count) == (3, 6, 3, 3)
    assert_array_equal(graphs.codes, [0, -1, 1])
    assert_array_equal(graphs.features.toarray()[0], [0, 0, 1])
    assert_array_equal(graphs.graph_indicator, [0, 0, 0, 1, 2, 2])
    folds = graphs.with_folds([[2], [0]])
    assert [fold.tolist() for fold in folds.folds] == [[2], [0]]
    both = GraphSet.from_arrays([[0, 1]], [0, 0, 1], np.eye(3), targets=[[1, np.nan], [2, 3]], node_tags=[5, 5, 6])
    assert both.feature_count == 5
    assert_array_equal(both.targets, [[1, np.nan], [2, 3]])
    assert_array_equal(classes().classes, [-1, 1])
    again = pickle.loads(pickle.dumps(folds))
    assert_array_equal(again.codes, folds.codes)
    assert_array_equal(again.features.toarray(), folds.features.toarray())
    assert_array_equal(again.folds[0], [2])
    features = [[1, np.nan], [np.nan, 2], [np.nan, np.nan]]
    missing = GraphSet.from_arrays([[0, 1]], [0, 0, 1], features)
    assert_array_equal(pickle.loads(pickle.dumps(missing)).features.toarray(), features)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"graph_indicator": [0, 0, 2]}, r"graph_indicator\[2\]: belongs to graph 2 after graph 0"),
        ({"graph_indicator": [1, 1, 1]}, "the first node belongs to graph 0"),
        ({"graph_indicator": [0, 0.5, 1]}, "graph_indicator: float64 is not allowed; expected whole numbers"),
        ({"graph_indicator": []}, "at least one graph of one node"),
        ({"edges": [[0, 2]]}, "graph"),
        ({"edges": [[0, 3]]}, r"edges\[0, 1\]: 3 is not allowed"),
        ({"features": np.eye(2)}, "features: 2 rows are not allowed; must be one for each of 3 nodes"),
        ({"features": [[1.0], [np.inf], [0]]}, "inf is not allowed"),
        ({"node_tags": [1, 2]}, "node_tags: 2 is not allowed"),
        ({"labels": [0, 1, 0]}, r"labels: shape \(3,\) is not allowed; expected one label for each of 2 graphs"),
        ({"labels": [0, 1], "targets": [0, 1]}, "targets: labels are given as well"),
        ({"targets": [0, np.inf]}, r"targets\[1\]: inf is not allowed"),
        ({"folds": [[0], [0]]}, "folds"),
        ({"folds": [[2, 0, 1]]}, r"folds\[0\]: graph 2"),
    ],
)
def test_refused(more, text):
    with pytest.raises(ValueError, match=text):
        GraphSet.from_arrays(**{"edges": [[0, 1]], "graph_indicator": [0, 0, 1], **more})


def data(**more):
    return types.SimpleNamespace(**more)


def test_names_of_features():
    edges, indicator, labels = rings()
    columns = np.column_stack([indicator % 3, indicator % 5]).astype(float)
    def named(names, values=columns, **more):
        return GraphSet.from_arrays(edges, indicator, values, labels, feature_names=names, **more)
    graphs = named(["charge", "mass"])
    assert graphs.feature_names == pickle.loads(pickle.dumps(graphs)).feature_names == ["charge", "mass"]
    assert classes().feature_names == ["degree"] and named(None).feature_names == []
    assert named(None, node_tags=indicator % 2).feature_names == ["tag=0", "tag=1", "", ""]
    assert named(["charge", "mass"], node_tags=indicator % 2).feature_names == ["tag=0", "tag=1", "charge", "mass"]
    model = GraphClassifier(**small).fit(graphs)
    assert_array_equal(model.predict(named(None)), model.predict(graphs))
    with pytest.raises(ValueError, match="feature column 0: 'mass' is not allowed; .*; the same columns in another order"):
        model.predict(named(["mass", "charge"], columns[:, ::-1]))
    targets = GraphSet.from_arrays(edges, indicator, columns, targets=labels.astype(float), feature_names=["charge", "mass"])
    with pytest.raises(ValueError, match="feature column 1: 'weight' is not allowed"):
        GraphRegressor(**small).fit(targets).predict(named(["charge", "weight"]))
    with pytest.raises(ValueError, match="feature_names: 1 names are not allowed"):
        named(["charge"])
    with pytest.raises(ValueError, match="feature_names: names without features"):
        GraphSet.from_arrays(edges, indicator, labels=labels, feature_names=["charge"])


def test_pyg():
    """A list of what PyTorch Geometric calls Data, and a Batch of it."""
    members = [
        data(edge_index=np.array([[0, 1], [1, 0]]), x=np.array([[1.0], [2.0]]), y=np.array([1]), edge_attr=np.ones((2, 1))),
        data(edge_index=np.empty((2, 0), int), x=np.array([[3.0]]), y=np.array([0]), edge_attr=np.ones((0, 1))),
    ]
    graphs = GraphSet.from_pyg(members)
    assert_array_equal(graphs.graph_indicator, [0, 0, 1])
    assert_array_equal(graphs.codes, [1, 0])
    batch = data(
        edge_index=members[0].edge_index, x=np.array([[1.0], [2.0], [3.0]]), y=np.array([1, 0]), batch=np.array([0, 0, 1])
    )
    same = GraphSet.from_pyg(batch)
    assert_array_equal(same.edges, graphs.edges)
    assert_array_equal(same.features.toarray(), graphs.features.toarray())
    assert_array_equal(same.codes, graphs.codes)
    for one in members:
        one.y = np.array([[0.5, np.nan]])
    assert GraphSet.from_pyg(members).targets.shape == (2, 2)
    members[0].edge_attr = np.array([[1.0], [2.0]])
    with pytest.raises(ValueError, match="edge_attr: weights that differ are not allowed"):
        GraphSet.from_pyg(members)
    assert GraphSet.from_pyg(members, arc_features="edge_attr")._core.arc_features.shape == (2, 1)
    members[1].edge_index = np.array([[0], [1]])
    with pytest.raises(ValueError, match=r"data\[1\].edge_index: 1 is not allowed; must be between 0 and 0"):
        GraphSet.from_pyg(members, weights="ignore")
    with pytest.raises(ValueError, match="one Data is not allowed"):
        GraphSet.from_pyg(data(edge_index=members[0].edge_index))


@pytest.mark.parametrize("model", ["nsd", "bsnn"])
def test_classifier(tmp_path, model):
    graphs = classes().with_folds(5, seed=1)
    classifier = GraphClassifier(model, random_state=1, learning_rate=0.02, training={"dropout": 0}, **small)
    classifier.fit(graphs, fold=2)
    assert_array_equal(classifier.split_.test, graphs.folds[2])
    assert sorted(np.concatenate(classifier.split_)) == list(range(40))
    assert classifier.score(graphs, numbers=classifier.split_.train) > 0.7
    assert classifier.score(graphs) == pytest.approx(classifier.score(graphs, numbers=graphs.folds[2]))
    uncertainty = classifier.uncertainty(graphs)
    assert uncertainty.probabilities.shape == (40, 2)
    assert uncertainty.entropy.shape == uncertainty.mutual_information.shape == (40,)
    assert (uncertainty.mutual_information.max() > 1e-9) == (model == "bsnn")
    classifier.save(tmp_path / "m.safetensors")
    loaded = GraphClassifier.load(tmp_path / "m.safetensors", random_state=1)
    assert_array_equal(loaded.predict_proba(graphs), classifier.predict_proba(graphs))
    assert_array_equal(loaded.predict(graphs), classifier.predict(graphs))
    assert loaded.score(graphs) == classifier.score(graphs)
    assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict(graphs), classifier.predict(graphs))
    with pytest.raises(RuntimeError, match="one of a GraphClassifier, not of a GraphRegressor"):
        GraphRegressor.load(tmp_path / "m.safetensors")
    with pytest.raises(RuntimeError, match="m.safetensors: .* outputs per graph"):
        sheafnn.SheafClassifier.load(tmp_path / "m.safetensors")


def test_own_lists_of_graphs():
    graphs = classes()
    first = GraphClassifier(threads=1, **small).fit(graphs, train=np.arange(30), validation=[30, 31, 32])
    assert_array_equal(first.split_.validation, [30, 31, 32])
    second = GraphClassifier(threads=2, **small).fit(graphs, train=np.arange(40) < 30, validation=[32, 30, 31])
    assert_array_equal(first.predict_proba(graphs), second.predict_proba(graphs))
    assert first.history_["loss"].shape == (first.n_iter_,)
    held = GraphClassifier(**small).fit(graphs, validation=[0, 1, 2])
    assert_array_equal(held.split_.train, np.arange(3, 40))
    names = np.where(graphs.codes == 1, "ring", "chain")
    assert set(GraphClassifier(**small).fit(graphs, names).predict(graphs)) <= {"ring", "chain"}


def test_arc_features():
    edges, indicator, labels = rings()
    graphs = GraphSet.from_arrays(edges, indicator, labels=labels, arc_features=np.arange(len(edges)) / len(edges))
    classifier = GraphClassifier(**small).fit(graphs)
    assert classifier.model_.metadata["edge_features"] == "1"
    assert classifier.predict_proba(graphs).shape == (40, 2)


def test_regressor(tmp_path):
    graphs = sizes()
    targets = graphs.targets.copy()
    targets[::5] = np.nan
    regressor = GraphRegressor(channels=4, layers=2, epochs=150, learning_rate=0.02)
    regressor.fit(graphs, targets)
    known = np.flatnonzero(~np.isnan(targets[:, 0]))
    assert set(np.concatenate(regressor.split_)) <= set(known)
    assert regressor.score(graphs, numbers=np.arange(0, 40, 5)) > 0.8  # graphs that it saw no number of
    assert regressor.predict(graphs).shape == (40,)
    regressor.save(tmp_path / "m.safetensors")
    loaded = GraphRegressor.load(tmp_path / "m.safetensors")
    assert_array_equal(loaded.predict(graphs), regressor.predict(graphs))
    with pytest.raises(RuntimeError, match="one of a GraphRegressor, not of a GraphClassifier"):
        GraphClassifier.load(tmp_path / "m.safetensors")
    two = GraphRegressor(**small).fit(graphs, np.column_stack([targets, -targets]))
    assert two.predict(graphs).shape == (40, 2)


def test_folds_and_deviations_of_a_regression():
    graphs = sizes().with_folds(5, seed=1)
    assert sorted(np.concatenate(graphs.folds)) == list(range(40)) and {len(fold) for fold in graphs.folds} == {8}
    regressor = GraphRegressor("bsnn", predict_samples=7, **small).fit(graphs, fold=2)
    assert_array_equal(regressor.split_.test, graphs.folds[2])
    means, deviations = regressor.predict(graphs, return_std=True)
    assert_array_equal(means, regressor.predict(graphs))
    assert deviations.shape == (40,)
    assert_array_equal(deviations > 0, graphs.targets[:, 0] > 1)  # one node has no edge, and so no sheaf
    samples = regressor.model_.sample_numbers(graphs._core, 7, 0, 0)
    assert samples.shape == (7, 40, 1)
    np.testing.assert_allclose(deviations, samples[:, :, 0].std(axis=0) * regressor.target_scale_[0], rtol=1e-12)
    with pytest.raises(ValueError, match="return_std: True is not allowed; the model 'nsd' has no posterior"):
        GraphRegressor(**small).fit(graphs, fold=0).predict(graphs, return_std=True)
    edges, indicator, _ = rings()
    with pytest.raises(ValueError, match="folds need classes or targets of the graphs"):
        GraphSet.from_arrays(edges, indicator).with_folds(5)


def test_training_refuses():
    graphs = classes()
    with pytest.raises(ValueError, match=r"fold: 0 is not allowed; the set has no folds"):
        GraphClassifier().fit(graphs, fold=0)
    with pytest.raises(ValueError, match="fold: 5 is not allowed; must be between 0 and 4"):
        GraphClassifier().fit(graphs.with_folds(5), fold=5)
    with pytest.raises(ValueError, match="train: not allowed with fold"):
        GraphClassifier().fit(graphs.with_folds(5), fold=0, train=[1])
    with pytest.raises(ValueError, match="train: graph 40: must be between 0 and 39"):
        GraphClassifier().fit(graphs, train=[40])
    with pytest.raises(ValueError, match="validation_fraction: 0"):
        GraphClassifier(validation_fraction=0).fit(graphs)
    for options, message in (
        ({"callback": 3}, "callback: 3 is not allowed"),
        ({"predict_samples": 0}, "predict_samples: 0 is not allowed"),
        ({"batch_size": "8"}, "batch_size: '8' is not allowed; must be a number"),
        ({"network": {"attention_heads": 2}}, r"network\['attention_heads'\]: 2 is not allowed; belongs to layer attention"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphClassifier("nsd", **options).fit(graphs)
    with pytest.raises(ValueError, match="nsd has no such option"):
        GraphClassifier(network={"depth": 2}).fit(graphs)
    with pytest.raises(ValueError, match=r"network\['layers'\]: 2 is not allowed; it is the parameter layers"):
        GraphClassifier(network={"layers": 2}).fit(graphs)
    with pytest.raises(ValueError, match="model: shgnn is not allowed; must be nsd or bsnn"):
        GraphClassifier("shgnn").fit(graphs)
    with pytest.raises(ValueError, match="diagonal of stalk dimension 5 is not allowed; this build has .*diagonal 3"):
        GraphClassifier(stalk_dim=5).fit(graphs)
    with pytest.raises(ValueError, match="pooling"):
        GraphClassifier(pooling="median").fit(graphs)
    with pytest.raises(ValueError, match="needs at least two classes"):
        GraphClassifier().fit(sizes())
    with pytest.raises(ValueError, match="a regression needs targets"):
        GraphRegressor().fit(graphs)
    with pytest.raises(TypeError, match="graphs: Dataset is not allowed; expected a GraphSet"):
        GraphClassifier().fit(sheafnn.karate_club())
    fitted = GraphClassifier(**small).fit(graphs)
    with pytest.raises(ValueError, match="graphs: 3 features are not allowed; the network has 1"):
        fitted.predict(GraphSet.from_arrays([], [0], [[1.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="numbers: none of these graphs has a known label"):
        fitted.score(GraphSet.from_arrays([], [0]))
    for weights, message in (([1.0], "one number for each of 40 graphs"), (np.zeros(40), "0 is not allowed for all of the graphs")):
        with pytest.raises(ValueError, match=f"sample_weight: .*{message}"):
            fitted.score(graphs, sample_weight=weights)


def test_sets_are_not_cut_into_rows():
    with pytest.raises(TypeError, match="a GraphSet is not an array.*with_folds"):
        cross_val_score(GraphClassifier(**small), classes(), classes().codes)


def test_words_that_are_labels():
    """A word that usually means a missing value is a class where the caller says so."""
    parts = [[0, 1], [2, 3]], [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="label '-' is not allowed.*missing_labels"):
        GraphSet.from_arrays(*parts, labels=["-", "+", "?"])
    assert GraphSet.from_arrays(*parts, labels=["-", "+", "?"], missing_labels=["?"]).codes.tolist() == [1, 0, -1]
    graphs = classes()
    signs = np.where(graphs.codes == 0, "-", "+")
    with pytest.raises(ValueError, match="missing_labels: .* is not allowed without y"):
        GraphClassifier(**small).fit(graphs, missing_labels=[])
    model = GraphClassifier(**small).fit(graphs, signs, missing_labels=[])
    assert model.classes_.tolist() == ["+", "-"] and model.score(graphs, signs) == np.mean(model.predict(graphs) == signs)


def write(path, **more):
    edges, indicator, labels = rings()
    np.savez(path, edges=edges, graph_indicator=indicator, **({"graph_labels": labels} | more))


def test_files(tmp_path):
    masks = np.zeros((2, 40), int)
    masks[0, :20], masks[1, 20:] = 1, 1
    write(tmp_path / "rings.npz", test_folds=masks)
    graphs = sheafnn.load_graphs(tmp_path / "rings.npz")
    assert_array_equal(graphs.codes, classes().codes)
    assert_array_equal(graphs.classes, [-1, 1])
    assert_array_equal(graphs.folds[1], np.arange(20, 40))
    tu = tmp_path / "T"
    tu.mkdir()
    (tu / "T_A.txt").write_text("1, 2\n2, 1\n")
    (tu / "T_graph_indicator.txt").write_text("1\n1\n2\n")
    (tu / "T_graph_attributes.txt").write_text("0.5\n1.5\n")
    assert_array_equal(sheafnn.load_graphs(tu).targets, [[0.5], [1.5]])
    with pytest.raises(FileNotFoundError, match="nothing"):
        sheafnn.load_graphs(tmp_path / "nothing")


def test_tables(tmp_path):
    edges, indicator, labels = rings()
    chosen = np.array(["train", "validation", "test", "train", ""])[np.arange(40) % 5]
    lines = {
        "graphs.csv": ["name,label,split"] + [f"g{g},{'ring' if label == 1 else 'chain'},{chosen[g]}" for g, label in enumerate(labels)],
        "nodes.csv": ["graph,mass"] + [f"g{g},{'' if u == 3 else u % 7}" for u, g in enumerate(indicator)],
        "edges.csv": ["source,target,length"] + [f"{u},{v},{0.5 * (u % 3)}" for u, v in edges],
    }
    for name, rows in lines.items():
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    graphs = sheafnn.load_graphs(tmp_path)
    assert graphs.classes.tolist() == ["chain", "ring"]
    assert_array_equal(graphs.graph_indicator, indicator)
    assert_array_equal(graphs.splits[0].test, np.arange(2, 40, 5))
    assert np.isnan(graphs.features.toarray()[3, 0]) and graphs.feature_count == 1
    again = pickle.loads(pickle.dumps(graphs))
    assert_array_equal(again.splits[0].train, graphs.splits[0].train)
    assert graphs.with_folds(4).splits == []
    classifier = GraphClassifier(**small).fit(graphs, fold=0)
    assert classifier.model_.metadata["edge_features"] == "1"
    assert_array_equal(classifier.split_.validation, np.arange(1, 40, 5))
    assert classifier.score(graphs) == classifier.score(graphs, numbers=graphs.splits[0].test)
    assert_array_equal(GraphClassifier(**small).fit(again, fold=0).predict_proba(again), classifier.predict_proba(graphs))
    classifier.save(tmp_path / "m.safetensors")
    assert_array_equal(GraphClassifier.load(tmp_path / "m.safetensors").predict(graphs), classifier.predict(graphs))
    assert set(classifier.predict(graphs)) <= {"chain", "ring"}
    with pytest.raises(ValueError, match="fold: 1 is not allowed"):
        classifier.fit(graphs, fold=1)
    assert graphs.feature_names == again.feature_names == ["mass"]
    own = GraphClassifier.load(tmp_path / "m.safetensors")
    for model in (classifier, own, GraphClassifier(**small).fit(again, fold=0)):
        for name, word, text in (("nodes.csv", "mass", "feature column 0: 'weight'"), ("edges.csv", "length", "edge feature column 0: 'weight'")):
            kept = (tmp_path / name).read_text()
            (tmp_path / name).write_text(kept.replace(word, "weight"))
            with pytest.raises(ValueError, match=f"^{text} is not allowed; the model was trained with '{word}' there"):
                model.predict(sheafnn.load_graphs(tmp_path))
            (tmp_path / name).write_text(kept)
    (tmp_path / "edges.csv").write_text("source,target\n0,999\n")
    with pytest.raises(RuntimeError, match=r"edges\.csv:2: '999' is not a node; the nodes of .*nodes\.csv are numbered 0 to "):
        sheafnn.load_graphs(tmp_path)


@pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")
@pytest.mark.parametrize("model", ["nsd", "bsnn"])
def test_the_program_does_the_same(tmp_path, model):
    program = pathlib.Path(folder) / "graphs"
    write(tmp_path / "rings.npz")
    saved, tested, everything = (tmp_path / name for name in ("m.safetensors", "fold.csv", "all.csv"))

    def run(*arguments):
        return subprocess.run([program, tmp_path / "rings.npz", *arguments], text=True, capture_output=True, check=True).stdout

    shown = run(
        "--model", model, "--channels", "4", "--epochs", "30", "--batch-size", "16", "--folds", "5", "--fold", "3", "--seed", "7",
        "--save", saved, "--predictions", tested,
    )
    graphs = sheafnn.load_graphs(tmp_path / "rings.npz").with_folds(5, seed=7)
    own = GraphClassifier(model, channels=4, epochs=30, batch_size=16, random_state=7).fit(graphs, fold=3)
    theirs = GraphClassifier.load(saved, random_state=7)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    for name in a:
        assert_array_equal(a[name], b[name], name)
    assert_array_equal(own.predict_proba(graphs), theirs.predict_proba(graphs))
    assert_array_equal(own.predict(graphs), theirs.predict(graphs))
    assert int(shown.splitlines()[2].split()[1]) == own.result_["best_epoch"]
    assert np.genfromtxt(tested, delimiter=",", names=True)["graph"].tolist() == own.split_.test.tolist()
    # The other way round: the program predicts with Python's file.
    own.save(tmp_path / "own.safetensors")
    run("--load", tmp_path / "own.safetensors", "--samples", "20", "--seed", "7", "--predictions", everything)
    rows = np.genfromtxt(everything, delimiter=",", names=True)
    uncertainty = own.uncertainty(graphs)
    assert_array_equal(rows["predicted"], own.predict(graphs))
    assert_array_equal(rows["probability"], uncertainty.probabilities.max(axis=1))
    assert_array_equal(rows["entropy"], uncertainty.entropy)
    assert_array_equal(rows["mutual_information"], uncertainty.mutual_information)


@pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")
def test_the_program_trains_a_regression(tmp_path):
    edges, indicator, _ = rings()
    sizes = np.bincount(indicator).astype(float)
    targets = np.column_stack([sizes, 100 - 3 * sizes])
    np.savez(tmp_path / "sizes.npz", edges=edges, graph_indicator=indicator, graph_targets=targets)
    graphs = sheafnn.load_graphs(tmp_path / "sizes.npz").with_folds(5, seed=7)

    def run(*arguments):
        command = [pathlib.Path(folder) / "graphs", tmp_path / "sizes.npz", *arguments]
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout

    shown = run(
        "--model", "bsnn", "--channels", "4", "--epochs", "100", "--lr", "0.02", "--folds", "5", "--fold", "3", "--seed", "7",
        "--save", tmp_path / "m.safetensors", "--predictions", tmp_path / "tested.csv",
    )
    assert float(shown.splitlines()[2].split()[3]) > 0.9
    rows = np.genfromtxt(tmp_path / "tested.csv", delimiter=",", names=True)
    assert rows["graph"].tolist() == graphs.folds[3].tolist()
    loaded = GraphRegressor.load(tmp_path / "m.safetensors", random_state=7)
    assert loaded.score(graphs) > 0.9
    # Either reads the other's file, and both predict the same.
    loaded.save(tmp_path / "again.safetensors")
    for name in ("m", "again"):
        run("--load", tmp_path / f"{name}.safetensors", "--samples", "20", "--seed", "7", "--predictions", tmp_path / "all.csv")
        rows = np.genfromtxt(tmp_path / "all.csv", delimiter=",", names=True)
        assert_array_equal(np.column_stack([rows["target_0"], rows["target_1"]]), targets)
        np.testing.assert_allclose(np.column_stack([rows["predicted_0"], rows["predicted_1"]]), loaded.predict(graphs), rtol=1e-12)


@pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")
def test_the_program_refuses_a_regression(tmp_path):
    write(tmp_path / "rings.npz")
    GraphRegressor(**small).fit(sizes()).save(tmp_path / "m.safetensors")
    done = subprocess.run(
        [pathlib.Path(folder) / "graphs", tmp_path / "rings.npz", "--load", tmp_path / "m.safetensors"], text=True, capture_output=True
    )
    assert done.returncode != 0 and "holds a network of a regression, and rings has classes" in done.stderr
