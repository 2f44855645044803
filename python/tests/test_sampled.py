"""Training on drawn neighbours of a folder. SHEAFNN_PROGRAMS names the folder of the program large_graph."""

import os
import pathlib
import pickle
import signal
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import sheafnn
from sheafnn import LargeGraph, SampledClassifier

programs = os.environ.get("SHEAFNN_PROGRAMS")
N = 600


def write(folder, **arrays):
    """A folder of a circle with chords, whose classes are arcs of the circle; `arrays` replace its files, None: there is no such file."""
    random = np.random.default_rng(0)
    labels = np.arange(N) * 3 // N
    pairs = np.array([(u, (u + d) % N) for u in range(N) for d in (1, 2, 5)])
    arcs = np.concatenate([pairs, pairs[:, ::-1]])
    arcs = arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))]
    part = random.integers(0, 3, N)
    files = {
        "indptr": np.concatenate([[0], np.cumsum(np.bincount(arcs[:, 0], minlength=N))]),
        "indices": arcs[:, 1].astype(np.int32),
        "features": (random.normal(size=(N, 6)) + 2 * np.eye(6)[labels]).astype(np.float32),
        "labels": labels,
        "train_mask": part == 0,
        "val_mask": part == 1,
        "test_mask": part == 2,
        **arrays,
    }
    folder.mkdir(exist_ok=True)
    for name, values in files.items():
        if values is not None:
            np.save(folder / f"{name}.npy", values)
    return folder


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    return write(tmp_path_factory.mktemp("sampled") / "disk")


@pytest.fixture(scope="module")
def graph(disk):
    return LargeGraph(disk)


@pytest.fixture(scope="module")
def dataset(disk):
    """The same in memory."""
    arrays = {path.stem: np.load(path) for path in disk.glob("*.npy")}
    edges = np.stack([np.repeat(np.arange(N), np.diff(arrays["indptr"])), arrays["indices"]], axis=1)
    split = [arrays[f"{name}_mask"] for name in ("train", "val", "test")]
    return sheafnn.Dataset.from_numpy(edges, arrays["features"], arrays["labels"], splits=[split], name="disk")


def quick(model="nsd", **more):
    options = dict(fan_outs=(4, 3), batch_size=64, epochs=5, learning_rate=0.02, random_state=3)
    return SampledClassifier(model, **{**options, **more})


@pytest.fixture(scope="module")
def trained(graph):
    return quick(epochs=8).fit(graph)


def test_graph(disk, graph):
    assert repr(graph).startswith("<LargeGraph disk: 600 nodes, 1800 edges, 6 features, 3 classes; 1")
    assert (graph.node_count, graph.edge_count, graph.feature_count, graph.class_count) == (N, 1800, 6, 3)
    assert graph.name == "disk" and graph.folder == str(disk) and graph.feature_names == []
    assert_array_equal(graph.labels, np.arange(N) * 3 // N)
    assert_array_equal(graph.classes, [0, 1, 2])
    with pytest.raises(ValueError, match="read-only"):
        graph.codes[0] = 1
    (split,) = graph.splits
    for nodes, name in zip(split, ("train", "val", "test")):
        assert_array_equal(nodes, np.flatnonzero(np.load(disk / f"{name}_mask.npy")))
    other = graph.with_splits([([5, 3], [7], []), (np.arange(N) < 9, [], [10])])
    assert [part.tolist() for part in other.splits[0]] == [[3, 5], [7], []]
    assert len(graph.splits) == 1 and len(other.splits) == 2
    again = pickle.loads(pickle.dumps(other))
    assert again.folder == graph.folder and again.splits[1].train.tolist() == list(range(9))
    with pytest.raises(ValueError, match="node 600"):
        graph.with_splits([([600], [], [])])


def test_classifier(graph, trained):
    assert trained.n_iter_ == 8 and trained.n_features_in_ == 6 and trained.split_ == 0
    assert trained.history_["loss"].shape == (8,) and trained.feature_treatment_
    test = graph.splits[0].test
    accuracy = trained.score(graph)
    assert accuracy > 0.9
    assert accuracy == np.mean(trained.predict(graph, test) == graph.labels[test])
    assert accuracy == trained.score(graph, nodes=test[::-1])
    nodes = [7, 3, 599, 3]
    probabilities = trained.predict_proba(graph, nodes)
    assert probabilities.shape == (4, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert_array_equal(probabilities[1], probabilities[3])
    assert_array_equal(probabilities[[1, 0, 2]], trained.predict_proba(graph, [3, 7, 599]))  # in the order that was asked for
    mask = np.zeros(N, bool)
    mask[[3, 7]] = True
    assert trained.predict_proba(graph, mask).shape == (2, 3)
    assert trained.predict_proba(graph).shape == (N, 3)
    assert trained.predict_proba(graph, []).shape == (0, 3)
    assert not trained.uncertainty(graph, nodes).mutual_information.any()
    copy = clone(trained)
    assert copy.get_params()["fan_outs"] == (4, 3) and not hasattr(copy, "model_")
    assert_array_equal(pickle.loads(pickle.dumps(trained)).predict_proba(graph, nodes), probabilities)


def test_uncertainty(graph):
    model = quick("bsnn", epochs=3, predict_samples=5).fit(graph)
    found = model.uncertainty(graph, [7, 3, 599])
    assert (found.mutual_information > 0).all() and (found.epistemic_variance > 0).all()
    assert_array_equal(found.probabilities, model.predict_proba(graph, [7, 3, 599]))
    assert found.entropy.shape == (3,)


def test_folder_and_dataset_are_the_same(graph, dataset, trained, tmp_path):
    of_memory = quick(epochs=8).fit(dataset)
    for name, values in trained.model_.tensors().items():
        assert_array_equal(of_memory.model_.tensors()[name], values)
    assert_array_equal(of_memory.predict_proba(dataset, [1, 2]), trained.predict_proba(graph, [1, 2]))
    assert of_memory.score(dataset) == trained.score(dataset)


def test_all_neighbours_are_the_whole_graph(graph, dataset, trained, tmp_path):
    """Two fan-outs of 0 for each of two layers."""
    trained.save(tmp_path / "m.safetensors")
    whole = sheafnn.SheafClassifier.load(tmp_path / "m.safetensors").predict_proba(dataset)
    np.testing.assert_allclose(trained.predict_proba(graph, [5, 300], fan_outs=[0] * 4), whole[[5, 300]], atol=1e-5)
    assert np.abs(trained.predict_proba(graph, [5, 300], fan_outs=[1]) - whole[[5, 300]]).max() > 1e-4


def test_names_of_classes(dataset, tmp_path):
    names = np.array(["tea", "milk", "rum"])
    data = sheafnn.Dataset.from_numpy(dataset.edges, dataset.features, names[dataset.labels], splits=dataset.splits)
    model = quick().fit(data)
    assert set(model.predict(data, [0, 300, 599])) <= set(names)
    model.save(tmp_path / "m.safetensors")
    again = SampledClassifier.load(tmp_path / "m.safetensors", fan_outs=(4, 3), random_state=3)
    assert_array_equal(again.classes_, model.classes_)
    assert again.score(data) == model.score(data)


def test_unknown_labels(tmp_path, graph):
    labels = np.array(graph.labels)
    labels[::2] = -1
    some = LargeGraph(write(tmp_path / "disk", labels=labels))
    model = quick().fit(some)
    assert (some.labels[::2] == -1).all() and some.class_count == 3
    test = some.splits[0].test
    known = test[labels[test] >= 0]
    assert model.score(some) == model.score(some, nodes=known)
    with pytest.raises(ValueError, match="nodes: none of them has a known label"):
        model.score(some, nodes=[0, 2])
    assert_array_equal(
        quick().fit(graph.with_splits([[part[part % 2 == 1] for part in graph.splits[0]]])).predict_proba(graph, [0, 1]),
        model.predict_proba(graph, [0, 1]),
    )


def test_files(graph, trained, tmp_path):
    path = tmp_path / "m.safetensors"
    trained.save(path)
    again = SampledClassifier.load(path, fan_outs=(4, 3), random_state=3)
    assert (again.model, again.maps, again.stalk_dim) == ("nsd", "special-orthogonal", 3)
    assert_array_equal(again.predict_proba(graph, [1, 9]), trained.predict_proba(graph, [1, 9]))
    assert again.score(graph) == trained.score(graph)
    other = tmp_path / "again.safetensors"
    again.save(other)
    assert other.read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="epochs: 3 is not allowed; choose predict_samples, random_state, threads, fan_outs"):
        SampledClassifier.load(path, epochs=3)
    regressor = sheafnn.SheafRegressor("nsd", stalk_dim=3, epochs=2).fit(np.eye(8), np.arange(8.0))
    regressor.save(other)
    with pytest.raises(RuntimeError, match="targets: .* are not the targets of a SampledClassifier"):
        SampledClassifier.load(other)


@pytest.mark.skipif(programs is None, reason="SHEAFNN_PROGRAMS is not set")
@pytest.mark.parametrize("model", ["nsd", "bsnn"])
def test_training_is_the_same(disk, graph, tmp_path, model):
    saved, own = tmp_path / "theirs.safetensors", tmp_path / "own.safetensors"
    subprocess.run(
        [pathlib.Path(programs) / "large_graph", disk, "--model", model, "--fan-outs", "4,3", "--batch-size", "64", "--steps", "2",
         "--evaluated", "50", "--epochs", "4", "--seed", "5", "--save", saved],
        check=True, stdout=subprocess.DEVNULL,
    )
    options = dict(fan_outs=(4, 3), batch_size=64, steps=2, evaluated=50, epochs=4, random_state=5)
    SampledClassifier(model, **options).fit(graph).save(own)
    assert own.read_bytes() == saved.read_bytes()


def test_every_option_has_an_effect(graph):
    def tensors(**more):
        return np.concatenate([values.ravel() for values in quick(epochs=1, **more).fit(graph).model_.tensors().values()])

    base = tensors()
    assert_array_equal(base, tensors(threads=2))
    for more in (
        {"fan_outs": (3, 4)}, {"batch_size": 32}, {"steps": 1}, {"channels": 4}, {"layers": 1}, {"learning_rate": 0.1},
        {"training": {"dropout": 0.5}}, {"network": {"layer_norm": True}}, {"random_state": 4},
    ):
        own = tensors(**more)
        assert own.shape != base.shape or (own != base).any(), more
    short = quick(evaluated=1).fit(graph).result_["validation_accuracy"]
    assert short in (0, 1)


def test_stopping(graph):
    seen = []

    def stop(epoch):
        seen.append(epoch.epoch)
        return epoch.epoch < 1

    assert quick(callback=stop).fit(graph).n_iter_ == 2 and seen == [0, 1]


def test_interrupts(graph):
    """Ctrl-C that comes while no Python code runs."""
    handler = signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, signal.default_int_handler)

    def interrupt(epoch):
        if epoch.epoch == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.1)

    long = dict(epochs=1_000_000, callback=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            quick(**long).fit(graph)
        with pytest.warns(sheafnn.Interrupted, match="interrupted after"):
            model = quick(on_interrupt="keep", **long).fit(graph)
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            while True:
                model.predict_proba(graph, fan_outs=[0] * 4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert 2 <= model.n_iter_ < 1_000_000 and model.result_["stop_reason"] == "interrupted"


def test_edges_in_one_direction(tmp_path):
    pairs = np.array([(u, u + 1) for u in range(N - 1)])
    arcs = {"indptr": np.append(np.arange(N), N - 1), "indices": pairs[:, 1].astype(np.int32)}
    with pytest.raises(RuntimeError, match="indices.npy: node 0 has the neighbour 1, and node 1 lacks the neighbour 0; every edge"):
        LargeGraph(write(tmp_path / "disk", **arcs))


def test_missing_files(disk, tmp_path):
    with pytest.raises(FileNotFoundError, match="none/indptr.npy: cannot be opened"):
        LargeGraph(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="train_mask.npy: cannot be opened"):
        LargeGraph(write(tmp_path / "disk", train_mask=None))
    for load in (SampledClassifier.load, sheafnn.SheafClassifier.load, sheafnn.load_dataset, sheafnn.load_graphs, sheafnn.load_hypergraph):
        with pytest.raises(FileNotFoundError, match="none.npz: no such"):
            load(tmp_path / "none.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(RuntimeError):
        sheafnn.load_dataset(tmp_path / "empty.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": np.zeros(N, bool)}, "labels.npy: holds truth values; whole numbers are needed"),
        ({"labels": np.zeros(N)}, "labels.npy: has no whole numbers"),
        ({"labels": np.zeros(N - 1, int)}, "labels.npy: 599 entries; must be 600"),
        ({"labels": np.full(N, -2)}, "labels.npy: entry 0 is -2; a label is -1 or a number of a class"),
        ({"indices": np.zeros(3600, bool)}, "indices.npy: holds truth values; whole numbers are needed"),
        ({"val_mask": np.ones(N, bool)}, "val_mask.npy: node [0-9]+ is in another mask, too"),
        ({"train_mask": np.full(N, 2)}, "train_mask.npy: entry 0 is 2; must be 0 or 1"),
        ({"features": np.zeros((N, 6), np.float16)}, "features.npy: has element type float16; save it as float32"),
        ({"features": np.zeros((N - 1, 6))}, "features.npy: 599 rows; must be 600"),
    ],
)
def test_wrong_folders(tmp_path, arrays, message):
    with pytest.raises(RuntimeError, match=message):
        LargeGraph(write(tmp_path / "disk", **arrays))


def test_wrong_rows(tmp_path):
    features = np.zeros((N, 6))
    features[599, 2] = np.nan
    with pytest.raises(RuntimeError, match="features.npy: node 599 has the value nan in column 2; features are finite"):
        quick().fit(LargeGraph(write(tmp_path / "disk", features=features)))
    loops = np.load(write(tmp_path / "disk") / "indices.npy")
    loops[0] = 0
    with pytest.raises(RuntimeError, match="indices.npy: node 0 has a self-loop"):
        quick(fan_outs=[0]).fit(LargeGraph(write(tmp_path / "disk", indices=loops)).with_splits([([0], [1], [])]))


def test_refused(graph, dataset, trained, karate):
    def fit(data=graph, **more):
        return quick(**more).fit(data)

    with pytest.raises(TypeError, match="X: list is not allowed; expected a LargeGraph or a Dataset"):
        fit([[1.0]])
    with pytest.raises(ValueError, match="y: not allowed"):
        quick().fit(graph, graph.labels)
    with pytest.raises(ValueError, match="split: 1 is not allowed; must be between 0 and 0"):
        quick().fit(graph, split=1)
    with pytest.raises(ValueError, match="the dataset has no splits"):
        fit(sheafnn.Dataset.from_numpy([[0, 1]], np.eye(2), [0, 1]))
    with pytest.raises(ValueError, match="a training needs labels"):
        fit(sheafnn.Dataset.from_numpy([[0, 1]], np.eye(2)))
    with pytest.raises(ValueError, match="model: 'gcn' is not allowed; choose"):
        fit(model="gcn")
    with pytest.raises(ValueError, match="maps: 'any' is not allowed; choose"):
        fit(maps="any")
    with pytest.raises(ValueError, match="stalk_dim: 6 is not allowed; must be between 1 and 5"):
        fit(stalk_dim=6)
    with pytest.raises(ValueError, match=r"fan_outs\[1\]: -1 is not allowed; must be between 0 and 4095"):
        fit(fan_outs=[3, -1])
    with pytest.raises(ValueError, match=r"fan_outs\[0\]: 2.5 is not allowed; must be a whole number"):
        fit(fan_outs=[2.5])
    with pytest.raises(ValueError, match="fan_outs: 3 is not allowed; expected a list of whole numbers"):
        fit(fan_outs=3)
    with pytest.raises(ValueError, match="fan_outs: 0 is not allowed; must be between 1 and 64"):
        fit(fan_outs=[])
    with pytest.raises(ValueError, match="steps: -1 is not allowed; must be between 0 and 2147483647"):
        fit(steps=-1)
    with pytest.raises(ValueError, match="evaluated: 1.5"):
        fit(evaluated=1.5)
    with pytest.raises(ValueError, match="batch_size: '64' is not allowed; must be a number"):
        fit(batch_size="64")
    with pytest.raises(ValueError, match=r"training\['batch_size'\]: 3 is not allowed; it is the parameter batch_size"):
        fit(training={"batch_size": 3})
    with pytest.raises(ValueError, match="edge_types: true is not allowed; the data have no types of edges"):
        fit(network={"edge_types": True})
    with pytest.raises(ValueError, match=r"network\['filter_degree'\]: 3 is not allowed; belongs to filter"):
        fit(network={"filter_degree": 3})
    with pytest.raises(ValueError, match="a training on subgraphs chooses the best epoch by loss or accuracy"):
        fit(training={"stop_on": "roc-auc"})
    with pytest.raises(ValueError, match="predict_samples: 0 is not allowed"):
        fit(predict_samples=0)
    with pytest.raises(ValueError, match="nodes: node 600: must be between 0 and 599"):
        trained.predict(graph, [600])
    with pytest.raises(ValueError, match="nodes: node -1: must be between 0 and 599"):
        trained.score(graph, nodes=[-1])
    with pytest.raises(ValueError, match="X has .* features, but the network has 6"):
        trained.predict(karate, [0])
    with pytest.raises(TypeError, match="X: ndarray is not allowed"):
        trained.predict(np.eye(6))
    with pytest.raises(ValueError, match="not fitted"):
        SampledClassifier().predict(graph)
