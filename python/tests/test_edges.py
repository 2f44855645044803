"""Edges by number and by name, adjacency matrices, weights, features of arcs, pandas' tables."""

import pickle
import types

import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import sheafnn
from sheafnn import Dataset, SheafClassifier


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_matrix])
def test_entries_that_are_not_finite_are_named(form):
    for value in (np.nan, np.inf):
        matrix = form(np.array([[0, 1.0, 0], [value, 0, 0], [0, 0, 0]]))
        with pytest.raises(ValueError, match=rf"adjacency\[1, 0\]: {value}"):
            Dataset.from_scipy(matrix, np.eye(3))
        with pytest.raises(ValueError, match=rf"edges\[1, 0\]: {value}"):
            Dataset.from_numpy(matrix, np.eye(3))
        with pytest.raises(ValueError, match=rf"edges\[1, 0\]: {value}"):
            SheafClassifier(validation_fraction=0).fit(np.eye(3), [0, 1, 0], edges=matrix)


def test_entries_of_one_place_are_added():
    rows, columns = [0, 0, 1, 1, 2], [1, 1, 2, 2, 0]
    matrix = sp.coo_array(([1.0, -1.0, 1.0, 1.0, 2.0], (rows, columns)), shape=(3, 3))
    assert Dataset.from_scipy(matrix, np.eye(3)).edges.tolist() == [[0, 2], [1, 2]]
    raw = sp.csr_array((np.array([1.0, -1.0, 1.0]), np.array([1, 1, 2]), np.array([0, 3, 3, 3])), shape=(3, 3))
    assert Dataset.from_numpy(raw, np.eye(3)).edges.tolist() == [[0, 2]]
    assert raw.nnz == 3  # as it was given
    zero = sp.coo_array(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert Dataset.from_scipy(zero, np.eye(3)).edges.tolist() == [[1, 2]]
    repeated = sp.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    assert Dataset.from_scipy(repeated, np.eye(3)).edges.tolist() == [[0, 1], [1, 2]]


def test_weights_of_a_matrix():
    matrix = sp.csr_array(np.array([[5, 2.0, 0], [2.0, 0, 3.0], [0, 3.0, 0]]))
    with pytest.raises(ValueError, match=r"adjacency: weights .* 2 at row 0, column 1 and 3 at row 1, column 2; .*weights='ignore'"):
        Dataset.from_scipy(matrix, np.eye(3))
    with pytest.raises(ValueError, match="edges: weights .*A != 0"):
        SheafClassifier(validation_fraction=0).fit(np.eye(3), [0, 1, 0], edges=matrix)
    for data in (
        Dataset.from_scipy(matrix, np.eye(3), weights="ignore"),
        Dataset.from_numpy(matrix, np.eye(3), weights="ignore"),
        Dataset.from_scipy(matrix != 0, np.eye(3)),
        Dataset.from_scipy(sp.csr_array(np.diag([1.0, 1.0], 1) * 0.5 + np.diag([7.0, 8, 9])), np.eye(3)),
    ):
        assert data.edges.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(ValueError, match="weights: 'drop'"):
        Dataset.from_scipy(matrix, np.eye(3), weights="drop")
    with pytest.raises(ValueError, match="adjacency: complex128"):
        Dataset.from_scipy(matrix * 1j, np.eye(3))


def path(weights, kind=networkx.Graph):
    graph = kind()
    for node in range(len(weights) + 1):
        graph.add_node(node, features=[float(node)], label=node % 2)
    for node, weight in enumerate(weights):
        graph.add_edge(node, node + 1, **({} if weight is None else {"weight": weight}))
    return graph


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph])
def test_weights_of_networkx(kind):
    for weights, message in (
        ([1, 2], "graph: weights that differ .* 1 at edge 0 – 1 and 2 at edge 1 – 2; .*weights='ignore'"),
        ([None, 2], "graph: weights that differ"),
        ([1.0, np.nan], "graph: weight of edge 1 – 2: nan is not allowed"),
        (["1", 1], "edge 0 – 1 has the weight '1'"),
    ):
        with pytest.raises(ValueError, match=message):
            Dataset.from_networkx(path(weights, kind))
        assert Dataset.from_networkx(path(weights, kind), weights="ignore").edge_count == 2
    assert Dataset.from_networkx(path([3, 3], kind)).edge_count == 2
    assert Dataset.from_networkx(path([1, None], kind)).edge_count == 2


def pyg(**more):
    return types.SimpleNamespace(x=np.eye(3), edge_index=np.array([[0, 1], [1, 2]]), **more)


def test_weights_of_pyg():
    for data, message in (
        (pyg(edge_weight=np.array([1, 2])), "edge_weight: weights that differ .* edge 0 .* edge 1"),
        (pyg(edge_weight=np.array([1, np.nan])), r"edge_weight\[1\]: nan"),
        (pyg(edge_attr=np.array([[1.0, 2], [1, 3]])), "edge_attr: weights that differ.*arc_features='edge_attr'"),
        (pyg(edge_weight=np.array([1, 2, 3])), "edge_weight: 3 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            Dataset.from_pyg(data)
        assert Dataset.from_pyg(data, weights="ignore").edge_count == 2
    assert Dataset.from_pyg(pyg(edge_weight=np.ones(2), edge_attr=None)).edge_count == 2
    data = Dataset.from_pyg(pyg(edge_attr=np.array([[1.0, 2], [1, 3]])), arc_features="edge_attr")
    assert data.arc_features.tolist() == [[1, 2], [1, 2], [1, 3], [1, 3]]
    with pytest.raises(ValueError, match="edge_weight: weights that differ"):
        Dataset.from_pyg(pyg(edge_attr=np.ones((2, 1)), edge_weight=np.array([1, 2])), arc_features="edge_attr")
    data = Dataset.from_pyg(pyg(edge_weight=np.array([1, 2])), arc_features="edge_weight")
    assert data.arc_features.tolist() == [[1], [1], [2], [2]]
    with pytest.raises(ValueError, match="arc_features: the data have no attribute 'edge_attr'"):
        Dataset.from_pyg(pyg(), arc_features="edge_attr")
    with pytest.raises(ValueError, match="edge_index: None"):
        Dataset.from_pyg(types.SimpleNamespace(x=np.eye(3)))


def test_features_of_arcs():
    edges = [[1, 0], [1, 2], [2, 1], [2, 2]]
    data = Dataset.from_numpy(edges, np.eye(3), arc_features=[[1.0], [2.0], [3.0], [9.0]])
    assert data.arcs.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.arc_features.tolist() == [[1], [1], [2], [3]]
    assert Dataset.from_numpy(edges, np.eye(3), arc_features=[1, 2, 3, 9]).arc_features.tolist() == [[1], [1], [2], [3]]
    both = Dataset.from_numpy(edges[:2], np.eye(3), arc_features=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert both.arc_features.tolist() == [[3, 4], [1, 2], [5, 6], [7, 8]]
    for same in (pickle.loads(pickle.dumps(both)), both.with_splits([([0], [1], [])])):
        assert (same.arc_features == both.arc_features).all()
    assert Dataset.from_numpy(edges, np.eye(3)).arc_features is None
    graph = path([1, 2])
    found = Dataset.from_networkx(graph, arc_features="weight")
    assert found.arc_features.tolist() == [[1], [1], [2], [2]]
    for features, message in (
        ([[1.0]], r"arc_features: shape \(1, 1\) is not allowed; must be 4 x k"),
        ([1, 2, np.nan, 4], r"arc_features\[2, 0\]: nan"),
        (np.ones((4, 3, 2)), r"arc_features: shape \(4, 3, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Dataset.from_numpy(edges, np.eye(3), arc_features=features)
    with pytest.raises(ValueError, match=r"arc_features\[1\]: the arc from node 0 to node 1 has other features in row 0"):
        Dataset.from_numpy([[0, 1], [0, 1]], np.eye(3), arc_features=[1, 2])
    with pytest.raises(ValueError, match="arc_features: not allowed with an adjacency matrix"):
        Dataset.from_numpy(sp.eye(3), np.eye(3), arc_features=[1, 2, 3])


def test_networks_read_features_of_arcs(graph, random):
    """The features of the arcs say which edges join nodes of one class."""
    same = graph.codes[graph.edges[:, 0]] == graph.codes[graph.edges[:, 1]]
    data = Dataset.from_numpy(graph.edges, graph.features, graph.labels, splits=graph.splits, arc_features=same)
    options = dict(stalk_dim=2, epochs=20)
    without, own, said = (
        SheafClassifier("nsd", **options, network=network).fit(of) for of, network in ((graph, None), (data, None), (data, {"edge_features": 1}))
    )
    assert (own.predict_proba(data) == said.predict_proba(data)).all()
    assert own.result_["parameters"] > without.result_["parameters"]
    none = SheafClassifier("nsd", **options, network={"edge_features": 0}).fit(data)
    assert (none.predict_proba(data) == without.predict_proba(graph)).all()
    with pytest.raises(ValueError, match="arc features|edge_features"):
        own.predict(graph)
    assert SheafClassifier("nsd", "identity", 1, epochs=2).fit(data).n_iter_ == 2


def test_edges_by_name():
    names = ["ada", "bob", "cyd"]
    for edges in ([("cyd", "ada"), ("ada", "bob")], np.array([["cyd", "ada"], ["ada", "bob"]]), pandas.DataFrame({"u": ["cyd", "ada"], "v": ["ada", "bob"]})):
        data = Dataset.from_numpy(edges, np.eye(3), node_names=names)
        assert data.edges.tolist() == [[0, 1], [0, 2]] and data.node_names == names
    assert Dataset.from_numpy(zip(["cyd", "ada"], ["ada", "bob"]), np.eye(3), node_names=names).edge_count == 2
    with pytest.raises(ValueError, match=r"edges\[1, 0\]: 'eve' is not allowed; no node has this name"):
        Dataset.from_numpy([("cyd", "ada"), ("eve", "bob")], np.eye(3), node_names=names)
    with pytest.raises(ValueError, match="not allowed without node_names"):
        Dataset.from_numpy([("cyd", "ada")], np.eye(3))
    with pytest.raises(ValueError, match="names and other values"):
        Dataset.from_numpy([("cyd", 0)], np.eye(3), node_names=names)


def test_names_that_print_alike_are_refused():
    graph = networkx.Graph()
    graph.add_node(1, features=[1.0])
    graph.add_node("1", features=[2.0])
    graph.add_edge(1, "1")
    with pytest.raises(ValueError, match="node_names: nodes 0 and 1 are both called '1', as 1 and '1'"):
        Dataset.from_networkx(graph, labels=None)
    assert Dataset.from_networkx(graph, labels=None, node_names=["int", "text"]).node_names == ["int", "text"]
    with pytest.raises(ValueError, match="node_names: nodes 0 and 2"):
        Dataset.from_numpy([[0, 1]], np.eye(3), node_names=["a", "b", "a"])


def test_empty_graphs():
    with pytest.raises(ValueError, match="graph: it has no nodes"):
        Dataset.from_networkx(networkx.Graph())
    graph = networkx.Graph()
    graph.add_node("x", features=[1.0])
    assert Dataset.from_networkx(graph, labels=None).edge_count == 0


def test_masked_features_and_edges():
    masked = np.ma.masked_array(np.eye(3), [[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert np.isnan(Dataset.from_numpy([[0, 1]], masked).features.toarray()[1, 2])
    assert np.isnan(Dataset.from_numpy([[0, 1]], masked.astype(int)).features.toarray()[1, 2])
    assert Dataset.from_numpy([[0, 1]], np.ma.masked_array(np.eye(3))).feature_count == 3
    with pytest.raises(ValueError, match="edges: a masked entry"):
        Dataset.from_numpy(np.ma.masked_array([[0, 1]], [[0, 1]]), np.eye(3))


@pytest.fixture
def people():
    nodes = pandas.DataFrame(
        {"age": [31, 40, 29, 52], "label": ["a", "b", None, "a"], "height": [1.7, 1.8, 1.6, 1.9],
         "split_0": ["train", "val", None, "test"], "split_1": ["validation", "train", "", None]},
        index=["ada", "bob", "cyd", "dan"],
    )
    return nodes, pandas.DataFrame({"from": ["ada", "bob"], "to": ["bob", "dan"]})


@pytest.mark.parametrize("column", ["train", "is_test", "valMask", "set", "fold", "partition", "train_idx"])
def test_columns_called_like_sets_are_no_features(column):
    nodes = pandas.DataFrame({"label": ["a", "b"], "x": [1.0, 2.0], column: [0, 1]}, index=["ada", "bob"])
    edges = pandas.DataFrame({"from": ["ada"], "to": ["bob"]})
    with pytest.raises(ValueError, match=f"nodes: column '{column}' looks like a part of a split, not like a feature"):
        Dataset.from_pandas(nodes, edges)
    assert Dataset.from_pandas(nodes, edges, features=["x", column]).feature_names == ["x", column]
    assert Dataset.from_pandas(nodes, edges, label=column, features=["x"]).feature_names == ["x"]
    assert Dataset.from_pandas(nodes.rename(columns={column: "test_score"}), edges).feature_names == ["x", "test_score"]


def test_tables(people):
    nodes, edges = people
    data = Dataset.from_pandas(nodes, edges)
    assert data.edges.tolist() == [[0, 1], [1, 3]]
    assert data.feature_names == ["age", "height"] and data.features.toarray().tolist() == nodes[["age", "height"]].values.tolist()
    assert data.node_names == list(nodes.index) and data.codes.tolist() == [0, 1, -1, 0]
    assert [[part.tolist() for part in split] for split in data.splits] == [[[0], [1], [3]], [[1], [0], []]]
    assert data.with_splits([([0], [1], [])]).feature_names == pickle.loads(pickle.dumps(data)).feature_names == ["age", "height"]
    named = nodes.reset_index(names="who").rename(columns={"label": "job"})
    turned = edges.assign(w=1)[["w", "to", "from"]]
    same = Dataset.from_pandas(named, turned, names="who", label="job", features=["height"], splits="split_1", source="from", target=1)
    assert same.edges.tolist() == data.edges.tolist() and same.feature_names == ["height"] and len(same.splits) == 1
    arcs = Dataset.from_pandas(nodes, edges.assign(years=[3, 4]), arc_features=["years"])
    assert arcs.arc_features.tolist() == [[3], [3], [4], [4]]
    numbers = Dataset.from_pandas(pandas.DataFrame({"x": [1.0, 2.0]}, index=[7, 9]), pandas.DataFrame([[9, 7]]), label=None)
    assert numbers.edges.tolist() == [[0, 1]] and numbers.node_names == ["7", "9"]
    assert Dataset.from_pandas(nodes, None).edge_count == 0
    assert Dataset.from_pandas(nodes, edges.assign(w=[1, 2]), weights="ignore").edge_count == 2


def test_what_is_wrong_with_a_table_is_named(people):
    nodes, edges = people
    for change, message in (
        (lambda: Dataset.from_pandas(nodes, edges.assign(w=[1, 2])), "edges: column 'w': weights that differ .* row 0 and 2 at row 1"),
        (lambda: Dataset.from_pandas(nodes, edges.assign(w=[1, np.nan])), "edges: row 1, column 'w': nan"),
        (lambda: Dataset.from_pandas(nodes, edges.assign(w=["x", "y"])), "edges: column 'w' is neither source nor target"),
        (lambda: Dataset.from_pandas(nodes, edges.replace("dan", "eve")), "edges: row 1, column 'to': 'eve' is not allowed"),
        (lambda: Dataset.from_pandas(nodes, edges.replace("dan", None)), "edges: row 1, column 'to': (None|nan)"),
        (lambda: Dataset.from_pandas(nodes, pandas.DataFrame([[0, 1]])), r"edges: row 0, column 0: 0 \(int\)"),
        (lambda: Dataset.from_pandas(nodes, edges, label="job"), "label: nodes has no column 'job'"),
        (lambda: Dataset.from_pandas(nodes, edges, features=["weight"]), "features: nodes has no column 'weight'; it has 'age'"),
        (lambda: Dataset.from_pandas(nodes, edges, features=["label"]), "features: column 'label'"),
        (lambda: Dataset.from_pandas(nodes.assign(town="x"), edges), "nodes: column 'town' holds .* not numbers"),
        (lambda: Dataset.from_pandas(nodes.replace("val", "dev"), edges), "nodes: column 'split_0', row 1: 'dev'"),
        (lambda: Dataset.from_pandas(nodes, edges, source=5), "source: 5 is not allowed; edges has 2 columns"),
        (lambda: Dataset.from_pandas(nodes, edges, target="from"), "target: column 'from' is the source"),
        (lambda: Dataset.from_pandas(nodes.set_index(pandas.Index(["a", "b", "c", "a"])), None), "node_names: nodes 0 and 3"),
        (lambda: Dataset.from_pandas(nodes.assign(age=[1, 2, np.inf, 3]), edges), r"features\[2, 0\]: inf"),
        (lambda: Dataset.from_pandas(nodes.to_numpy(), edges), "nodes: ndarray is not allowed; expected a pandas.DataFrame"),
        (lambda: Dataset.from_pandas(nodes, edges.to_numpy()), "edges: ndarray"),
    ):
        with pytest.raises(ValueError, match=message):
            change()


def test_feature_names_are_as_many_as_features():
    assert Dataset.from_numpy([[0, 1]], np.eye(2), feature_names=["x", "y"]).feature_names == ["x", "y"]
    frame = pandas.DataFrame(np.eye(2), columns=["x", "y"])
    assert Dataset.from_numpy([[0, 1]], frame).feature_names == ["x", "y"]
    with pytest.raises(ValueError, match="feature_names: 1 names"):
        Dataset.from_numpy([[0, 1]], np.eye(2), feature_names=["x"])


def test_missing_features_of_tables_are_nan(people):
    nodes, edges = people
    data = Dataset.from_pandas(nodes.assign(age=pandas.array([31, None, 29, 52], "Int64")), edges)
    assert np.isnan(data.features.toarray()[1, 0]) and data.feature_names == ["age", "height"]


def test_weights_of_self_loops_do_not_count():
    edges = pandas.DataFrame({"u": [2, 0, 1], "v": [2, 1, 2], "w": [7.0, 1, 1], "kind": ["b", "a", "a"]})
    nodes = pandas.DataFrame({"x": [1.0, 2, 3]})
    graph = path([1, 1])
    graph.add_edge(0, 0, weight=7)
    loops = types.SimpleNamespace(x=np.eye(3), edge_index=np.array([[2, 0, 1], [2, 1, 2]]), edge_weight=np.array([7, 1, 1]))
    for data in (Dataset.from_pandas(nodes, edges, label=None), Dataset.from_networkx(graph), Dataset.from_pyg(loops)):
        assert data.edges.tolist() == [[0, 1], [1, 2]]
    edges.loc[2, "w"], loops.edge_weight[2] = 3, 3
    graph.edges[1, 2]["weight"] = 3
    for make, message in (
        (lambda: Dataset.from_pandas(nodes, edges, label=None), "1 at row 1 and 3 at row 2"),
        (lambda: Dataset.from_networkx(graph), "1 at edge 0 – 1 and 3 at edge 1 – 2"),
        (lambda: Dataset.from_pyg(loops), "1 at edge 1 and 3 at edge 2"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_what_is_no_edge_is_named():
    nodes = pandas.DataFrame({"x": [1.0, 2, 3]})
    graph = path([])
    for make, message in (
        (lambda: Dataset.from_networkx(graph, arc_features="w"), "arc_features: 'w' is not allowed; the graph has no edges"),
        (
            lambda: Dataset.from_pandas(nodes, pandas.DataFrame({"u": [0, [0]], "v": [1, 2]}), label=None),
            r"edges: row 1, column 'u': \[0\] \(list\) is not allowed",
        ),
        (
            lambda: Dataset.from_pandas(nodes, pandas.DataFrame({"u": [0, 1], "v": [1, 2], "w": [[1], [1]]}), label=None),
            "edges: column 'w' is neither source nor target",
        ),
        (
            lambda: Dataset.from_pandas(pandas.DataFrame({"x": [1.0, 2], "name": ["a", ["b"]]}), None, names="name", label=None),
            r"nodes: row 1: the name \['b'\] is not allowed",
        ),
        (lambda: Dataset.from_numpy(np.array([[0, 1]], "m8[s]"), np.eye(3)), r"edges: timedelta64\[s\] is not allowed"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize("use", [lambda m: Dataset.from_scipy(m, np.eye(4)), lambda m: Dataset.from_numpy(m, np.eye(4))])
def test_broken_matrices_are_refused(use):
    beyond = sp.csr_matrix(np.eye(4))
    beyond.indptr = np.array([0, 1, 2, 3, 10**6], np.int32)
    backwards = sp.csc_matrix(np.eye(4))
    backwards.indptr = np.array([0, 3, 2, 3, 4], np.int32)
    outside = sp.coo_matrix(np.eye(4))
    outside.row = np.array([0, 1, 2, 999], np.int32)
    for matrix, message in ((beyond, "index pointer"), (backwards, "(indptr|index pointer)"), (outside, "the rows of its entries")):
        with pytest.raises(ValueError, match=f"(adjacency|edges): .*{message}"):
            use(matrix)
