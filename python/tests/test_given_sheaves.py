"""Networks whose maps are given with the data."""

import pickle

import numpy as np
import pytest

import sheafnn
from sheafnn import CellularSheaf, SheafClassifier


def signs_of(data):
    """-1 at the larger node of edges between different classes; both stalk coordinates are alike."""
    arcs, codes = data.arcs, data.codes
    return np.where((codes[arcs[:, 0]] != codes[arcs[:, 1]]) & (arcs[:, 0] > arcs[:, 1]), -1.0, 1.0)[:, None] * np.ones(2)


@pytest.fixture(scope="module")
def signed(graph):
    """A graph without homophily, with the signs of its edges."""
    return graph.with_sheaf(CellularSheaf(graph, signs_of(graph), family="diagonal"))


def write_sheaf(path, data, **more):
    np.savez(path, maps=signs_of(data), edges=data.edges.astype(np.int64), **more)


@pytest.mark.parametrize("model", ["snn", "bsnn-given", "nsd-given", "bsnn-around"])
def test_files_and_arrays_are_the_same(graph, signed, tmp_path, model):
    write_sheaf(tmp_path / "sheaf.npz", graph)
    read = graph.with_sheaf(tmp_path / "sheaf.npz")
    network = SheafClassifier(model, "diagonal", 2, epochs=5).fit(signed, split=0)
    again = SheafClassifier(model, "diagonal", 2, epochs=5).fit(read, split=0)
    expected = network.predict_proba(signed)
    np.testing.assert_array_equal(again.predict_proba(read), expected)
    network.save(tmp_path / "model.safetensors")
    loaded = SheafClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(signed), expected)
    np.testing.assert_array_equal(loaded.predict_proba(pickle.loads(pickle.dumps(signed))), expected)
    trivial = graph.with_sheaf(CellularSheaf(graph, np.ones((2 * graph.edge_count, 2)), family="diagonal"))
    assert (loaded.predict_proba(trivial) != expected).any()


def test_signs_help():
    """Features are noise; a node's class is known from its neighbours' by the signs alone."""
    data = sheafnn.synthetic(nodes=300, classes=2, features=30, words=6, degree=8, homophily=0.5, seed=3)
    signed = data.with_sheaf(CellularSheaf(data, signs_of(data), family="diagonal"))
    trivial = data.with_sheaf(CellularSheaf(data, np.ones((2 * data.edge_count, 2)), family="diagonal"))

    def accuracy(task):
        return SheafClassifier("snn", "diagonal", 2, epochs=100).fit(task, split=0).score(task)

    assert accuracy(signed) > accuracy(trivial) + 0.1


def test_one_spread_for_each_label(graph):
    labels = np.arange(graph.edge_count) % 7
    data = graph.with_sheaf(CellularSheaf(graph, signs_of(graph), family="diagonal"), edge_labels=labels)
    by_label = SheafClassifier("bsnn-given", "diagonal", 2, epochs=3).fit(data, split=0)
    by_arc = SheafClassifier("bsnn-given", "diagonal", 2, epochs=3, network={"deviation": "arcs"}).fit(data, split=0)
    assert any(7 in v.shape for v in by_label.model_.tensors().values())
    assert not any(7 in v.shape for v in by_arc.model_.tensors().values())
    copy = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(by_label.predict_proba(copy), by_label.predict_proba(data))


def test_tables_of_the_types_of_edges(tmp_path):
    path = tmp_path / "relations.npz"
    table = np.array([[[1.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]], [[8.0, 9.0], [10.0, 11.0]]])
    data = sheafnn.Dataset.from_numpy([[0, 1], [1, 2]], np.eye(3), [0, 1, 0], edge_types=["knows", "helps"])
    np.savez(path, table=table[:2])  # of helps and knows: names are sorted
    given = data.with_sheaf(path).given_sheaf
    np.testing.assert_array_equal(given.edge_labels, [1, 0])
    np.testing.assert_array_equal(given.maps, [table[1, 0], table[1, 1], table[0, 0], table[0, 1]])
    np.savez(path, table=table, types=["knows", "hates", "helps"])
    given = data.with_sheaf(path).given_sheaf
    np.testing.assert_array_equal(given.edge_labels, [0, 2])
    np.testing.assert_array_equal(given.maps, [table[0, 0], table[0, 1], table[2, 0], table[2, 1]])
    with pytest.raises(RuntimeError, match="relations.npz: table: needs edge_labels, or a graph whose edges have types"):
        sheafnn.Dataset.from_numpy([[0, 1], [1, 2]], np.eye(3)).with_sheaf(path)
    np.savez(path, table=table[:2], types=["knows", "hates"])
    with pytest.raises(RuntimeError, match="relations.npz: types: the graph's edges have a type 'helps', and no row is of it"):
        data.with_sheaf(path)


def test_a_dataset_gives_its_sheaf_back(graph):
    labels = np.arange(graph.edge_count) % 7
    sheaf = CellularSheaf(graph, signs_of(graph), family="diagonal")
    given = graph.with_sheaf(sheaf, edge_labels=labels).make_splits(1).given_sheaf
    np.testing.assert_array_equal(given.maps, signs_of(graph))
    np.testing.assert_array_equal(given.edge_weights, np.ones(graph.edge_count))
    np.testing.assert_array_equal(given.edge_labels, labels)
    assert graph.with_sheaf(sheaf).given_sheaf.edge_labels is None
    assert graph.given_sheaf is None


def test_sheaves_go_with_copies(graph, signed):
    split = graph.splits[1]
    network = SheafClassifier("snn", "diagonal", 2, epochs=3).fit(signed, split=1)
    other = SheafClassifier("snn", "diagonal", 2, epochs=3).fit(signed.with_splits([split]), split=0)
    np.testing.assert_array_equal(network.predict_proba(signed), other.predict_proba(signed))


def test_what_is_refused(graph, karate, signed, tmp_path):
    sheaf = CellularSheaf(graph, signs_of(graph), family="diagonal")
    network = SheafClassifier("snn", "diagonal", 2, epochs=3)
    with pytest.raises(ValueError, match="given sheaf: none is not allowed"):
        network.fit(graph, split=0)
    m = graph.edge_count
    with pytest.raises(ValueError, match=rf"maps: {6 * m} is not allowed; expected {2 * m} arcs \* 2 numbers per diagonal map"):
        other = CellularSheaf(graph, np.ones((2 * m, 3)), family="diagonal")
        network.fit(graph.with_sheaf(other), split=0)
    with pytest.raises(ValueError, match="sheaf: it is on another graph"):
        karate.with_sheaf(sheaf)
    with pytest.raises(TypeError, match="sheaf: list is not allowed"):
        graph.with_sheaf([1, 2])
    with pytest.raises(ValueError, match=rf"edge_labels: shape \(3,\) is not allowed; must be \({m},\)"):
        graph.with_sheaf(sheaf, edge_labels=[0, 1, 2])
    for value, message in ((-1, "must be between 0 and 1048575"), (0.5, "must be a whole number"), (np.nan, "must be a whole number")):
        with pytest.raises(ValueError, match=rf"edge_labels\[2\]: {value} is not allowed; {message}"):
            graph.with_sheaf(sheaf, edge_labels=np.where(np.arange(m) == 2, value, 0))
    write_sheaf(tmp_path / "sheaf.npz", graph, edge_labels=np.full(m, -1))
    with pytest.raises(RuntimeError, match=r"sheaf.npz: edge_labels\[0\]: -1 is not allowed"):
        graph.with_sheaf(tmp_path / "sheaf.npz")
    with pytest.raises(RuntimeError, match="sheaf.npz: maps: expected a row for each of 156 arcs"):
        np.savez(tmp_path / "sheaf.npz", maps=signs_of(graph))
        karate.with_sheaf(tmp_path / "sheaf.npz")
    with pytest.raises(ValueError, match="edge_labels: not allowed with a file"):
        graph.with_sheaf(tmp_path / "sheaf.npz", edge_labels=np.zeros(m))
