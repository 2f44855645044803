"""Types of nodes and edges: datasets, files, networks with weights and stalks of types, and the programs."""

import os
import pathlib
import pickle
import subprocess

import numpy as np
import pytest

import sheafnn
from sheafnn import Dataset, SheafClassifier, SheafRegressor

folder = os.environ.get("SHEAFNN_PROGRAMS")
needs_programs = pytest.mark.skipif(folder is None, reason="SHEAFNN_PROGRAMS is not set")

N = 30
EDGE_TYPES = ["cites", "reads", "writes"]
NODE_TYPES = ["author", "paper", "venue"]


def library():
    """Arrays of a graph of 30 nodes with three types of nodes and of edges, two classes and a split."""
    random = np.random.default_rng(3)
    pairs = {tuple(sorted(pair)) for pair in random.integers(0, N, (70, 2)).tolist() if pair[0] != pair[1]}
    edges = random.permutation(sorted(pairs))
    edges = np.where(random.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])
    features = np.round(random.normal(size=(N, 3)), 3)
    labels = np.where(features[:, 0] + random.normal(size=N) > 0, "x", "y")
    of_edges = [EDGE_TYPES[(u + v) % 3] for u, v in edges]
    of_nodes = [NODE_TYPES[u % 3] for u in range(N)]
    sets = np.arange(N) % 5
    return {
        "edges": edges, "features": features, "labels": labels, "edge_types": of_edges, "node_types": of_nodes,
        "splits": [(np.flatnonzero(sets < 3), np.flatnonzero(sets == 3), np.flatnonzero(sets == 4))],
    }


@pytest.fixture
def data():
    return Dataset.from_numpy(**library())


def write_folder(path, arrays):
    path.mkdir()
    words = np.empty(N, object)
    for word, nodes in zip(("train", "validation", "test"), arrays["splits"][0]):
        words[nodes] = word
    rows = zip(arrays["node_types"], arrays["labels"], words, arrays["features"])
    lines = [f"n{u},{kind},{label},{word},{','.join(map(repr, map(float, x)))}" for u, (kind, label, word, x) in enumerate(rows)]
    (path / "nodes.csv").write_text("\n".join(["name,type,label,split,a,b,c", *lines]) + "\n")
    lines = [f"n{u},n{v},{kind}" for (u, v), kind in zip(arrays["edges"], arrays["edge_types"])]
    (path / "edges.csv").write_text("\n".join(["source,target,type", *lines]) + "\n")


def write_npz(path, arrays):
    masks = [np.isin(np.arange(N), nodes) for nodes in arrays["splits"][0]]
    np.savez(path, node_features=arrays["features"], node_labels=arrays["labels"], edges=arrays["edges"],
             edge_types=np.array(arrays["edge_types"]), node_types=np.array(arrays["node_types"]),
             **dict(zip(("train_masks", "val_masks", "test_masks"), masks)))


def same_types(one, other):
    assert one.edge_type_names == other.edge_type_names and one.node_type_names == other.node_type_names
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.edge_types, other.edge_types)
    np.testing.assert_array_equal(one.node_types, other.node_types)


def test_a_dataset_has_the_types_of_its_arrays(data):
    arrays = library()
    assert data.edge_type_names == EDGE_TYPES and data.node_type_names == NODE_TYPES
    assert data.node_types.tolist() == arrays["node_types"]
    expected = {tuple(sorted(pair)): kind for pair, kind in zip(arrays["edges"].tolist(), arrays["edge_types"])}
    assert data.edge_types.tolist() == [expected[tuple(pair)] for pair in data.edges.tolist()]
    for other in (data.make_splits(2), data.with_splits(data.splits), pickle.loads(pickle.dumps(data))):
        same_types(other, data)
    plain = Dataset.from_numpy(arrays["edges"], arrays["features"])
    assert plain.edge_types is None and plain.node_types is None
    assert plain.edge_type_names == plain.node_type_names == []


def test_types_are_numbers_where_all_are():
    edges = [[0, 1], [1, 2], [2, 2], [2, 1]]
    data = Dataset.from_numpy(edges, np.eye(3), edge_types=np.array([12, 3, 99, 3], np.int8), node_types=[7, -1, 7])
    assert data.edge_types.tolist() == [12, 3] and data.edge_types.dtype.kind == "i"  # self-loops are dropped
    assert data.node_types.tolist() == [7, -1, 7]
    same_types(pickle.loads(pickle.dumps(data)), data)
    assert Dataset.from_numpy(edges[:2], np.eye(3), edge_types=["1", "01"]).edge_types.tolist() == ["1", "01"]


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("edge_types", ["a"], r"edge_types: 1 types are not allowed; must be one for each of 2 edges"),
        ("node_types", ["a", "b"], r"node_types: 2 types are not allowed; must be one for each of 3 nodes"),
        ("edge_types", ["a", None], r"edge_types\[1\]: None is not allowed; a type is a text or a whole number"),
        ("node_types", [1, 2, 2.5], r"node_types\[2\]: 2.5 is not allowed; a type"),
        ("edge_types", "ab", r"edge_types: 'ab' is not allowed; expected a list or an array, a type for each of the edges"),
        ("node_types", 5, r"node_types: 5 is not allowed; expected a list"),
        ("node_types", [[1, 2], [3, 4], [5, 6]], r"node_types\[0\]: \[1, 2\] is not allowed; a type is a text or a whole number"),
        ("node_types", ["a", "", "b"], r"node_types\[1\]: '' is not allowed"),
        ("node_types", [True, False, True], r"node_types\[0\]: True is not allowed"),
        ("node_types", ["1", 1, 1], r"node_types\[1\]: 1 is not allowed beside '1'"),
        ("node_types", np.ma.array([1, 2, 3], mask=[0, 1, 0]), r"node_types: a masked entry is not allowed"),
        ("node_types", ["a", "b\0", "c"], r"node_types\[1\]: 'b\\x00' is not allowed"),
    ],
)
def test_types_that_are_none_are_refused(name, types, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_numpy([[0, 1], [1, 2]], np.eye(3), **{name: types})


def test_an_edge_has_one_type():
    message = r"edge_types\[2\]: 'b' is not allowed; row 0 is the same edge, and its type is 'a'"
    with pytest.raises(ValueError, match=message):
        Dataset.from_numpy([[0, 1], [1, 2], [1, 0]], np.eye(3), edge_types=["a", "b", "b"])
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match="edge_types: not allowed with an adjacency matrix"):
        Dataset.from_scipy(scipy_sparse.eye(3, k=1), np.eye(3), edge_types=["a", "b"])
    with pytest.raises(ValueError, match="edge_types: not allowed with an adjacency matrix"):
        Dataset.from_numpy(scipy_sparse.eye(3, k=1), np.eye(3), edge_types=["a", "b"])


def test_files_have_types(data, tmp_path):
    arrays = library()
    write_folder(tmp_path / "folder", arrays)
    write_npz(tmp_path / "file.npz", arrays)
    for path in (tmp_path / "folder", tmp_path / "file.npz"):
        read = sheafnn.load_dataset(path, edge_types=True, node_types=True)
        same_types(read, data)
        for labels in (True, False):
            nodes = sheafnn.load_dataset(path, labels=labels, edge_types=True, node_types=True)
            same_types(nodes, data)
        with pytest.raises(RuntimeError, match="edge_types=True gives each type weights"):
            sheafnn.load_dataset(path, node_types=True)
    assert sheafnn.load_dataset(tmp_path / "file.npz", edge_types=True).node_types is None
    with pytest.raises(RuntimeError, match="column 'type': 'author' is not a finite number; node_types=True reads"):
        sheafnn.load_dataset(tmp_path / "folder", edge_types=True)
    for keyword in ("edge_types", "node_types"):
        with pytest.raises(RuntimeError, match="karate: has no types of"):
            sheafnn.load_dataset("karate", **{keyword: True})


def test_tables_and_graphs_have_types(data):
    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    arrays = library()
    nodes = pandas.DataFrame(arrays["features"], columns=["a", "b", "c"]).assign(kind=arrays["node_types"], label=arrays["labels"])
    edges = pandas.DataFrame(arrays["edges"], columns=["from", "to"]).assign(kind=arrays["edge_types"])
    table = Dataset.from_pandas(nodes, edges, edge_types="kind", node_types="kind")
    same_types(table, data)
    assert table.feature_names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="edge_types: edges has no column 'type'"):
        Dataset.from_pandas(nodes, edges, edge_types="type", node_types="kind")
    graph = networkx.Graph()
    for u in range(N):
        graph.add_node(u, features=arrays["features"][u], kind=arrays["node_types"][u])
    for (u, v), kind in zip(arrays["edges"].tolist(), arrays["edge_types"]):
        graph.add_edge(u, v, kind=kind)
    same_types(Dataset.from_networkx(graph, labels=None, edge_types="kind", node_types="kind"), data)
    with pytest.raises(ValueError, match=r"edge_types\[0\]: None is not allowed"):
        Dataset.from_networkx(graph, labels=None, edge_types="type")


def test_pyg_data_have_types(data):
    torch = pytest.importorskip("torch")
    geometric = pytest.importorskip("torch_geometric.data")
    converted = data.to_pyg()
    assert converted.edge_type.dtype == converted.node_type.dtype == torch.int64
    assert [NODE_TYPES[i] for i in converted.node_type] == data.node_types.tolist()
    back = Dataset.from_pyg(converted)
    assert [EDGE_TYPES[i] for i in back.edge_types] == data.edge_types.tolist()
    assert [NODE_TYPES[i] for i in back.node_types] == data.node_types.tolist()
    again = Dataset.from_pyg(back.to_pyg())
    same_types(again, back)
    assert Dataset.from_pyg(converted, edge_types=None).edge_types is None
    assert Dataset.from_pyg(converted, edge_types=None).node_type_names == ["0", "1", "2"]
    converted.edge_type[0] += 1
    with pytest.raises(ValueError, match=r"edge_types\[\d+\]: '\d' is not allowed; row 0 is the same edge"):
        Dataset.from_pyg(converted)
    hetero = geometric.HeteroData()
    hetero["author"].x, hetero["paper"].x = torch.eye(3), torch.ones(2, 3)
    hetero["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 1]])
    hetero["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
    with pytest.raises(TypeError, match="HeteroData is not allowed; .*to_homogeneous"):
        Dataset.from_pyg(hetero)
    one = Dataset.from_pyg(hetero.to_homogeneous())
    assert one.node_types.tolist() == [0, 0, 0, 1, 1]
    assert one.edges.tolist() == [[0, 3], [1, 4], [2, 4], [3, 4]]
    assert one.edge_types.tolist() == [0, 0, 0, 1]


def network(kind=SheafClassifier, model="nsd", **more):
    options = {"epochs": 20, "random_state": 5, "edge_types": True, "stalks": {"author": 1}, "edge_stalks": {"cites": 1}}
    return kind(model, "general-linear", 2, **{**options, **more})


@pytest.mark.parametrize("model", ["nsd", "bsnn"])
def test_networks_have_weights_and_stalks_of_types(data, tmp_path, model):
    own = network(model=model).fit(data)
    names = own.model_.tensors().keys()
    assert any(".type2." in name for name in names) and not any(".type3." in name for name in names)
    metadata = own.model_.metadata
    assert metadata["edge_types"] == "cites,reads,writes" and metadata["node_types"] == "author,paper,venue"
    assert metadata["stalks"] == "1,2,2" and metadata["edge_stalks"] == "1,2,2"
    own.save(tmp_path / "m.safetensors")
    loaded = SheafClassifier.load(tmp_path / "m.safetensors", random_state=5)
    assert (loaded.predict_proba(data) == own.predict_proba(data)).all()
    assert (loaded.learned_sheaf(data).maps == own.learned_sheaf(data).maps).all()
    # Maps are zero outside of d_e x d_v.
    authors = data.node_types[data.arcs[:, 0]] == "author"
    maps = own.learned_sheaf(data).maps.reshape(-1, 2, 2)
    assert (maps[authors][:, :, 1] == 0).all() and (maps[~authors][:, 0, 1] != 0).all()
    ignored = SheafClassifier(model, "general-linear", 2, epochs=20, random_state=5)
    plain = Dataset.from_numpy(**{**library(), "edge_types": None, "node_types": None})
    assert (ignored.fit(data).predict_proba(data) == ignored.fit(plain).predict_proba(plain)).all()


def test_several_trainings_have_types(data):
    own = network().fit(data)
    many = sheafnn.fit_many(data, network())
    assert (many[0].predict_proba(data) == own.predict_proba(data)).all()
    best = sheafnn.grid_search(data, {"stalks": [None, {"author": 1}]}, network(epochs=2))
    assert best.best_params["stalks"] in (None, {"author": 1})


def test_a_prediction_knows_types_by_their_names(data):
    own = network().fit(data)
    arrays = library()
    # Without venues, which lie between the others, the numbers of types are others.
    fewer = {**arrays, "edge_types": [{"cites": "writes", "reads": "writes"}.get(t, t) for t in arrays["edge_types"]],
             "node_types": [{"author": "paper"}.get(t, t) for t in arrays["node_types"]]}
    small = Dataset.from_numpy(**fewer)
    assert small.edge_type_names == ["writes"] and small.node_type_names == ["paper", "venue"]
    # The same types under the numbers of the training: of edges far away from some node that keep the other names.
    shift = lambda pairs: np.asarray(pairs) + N  # noqa: E731
    whole = Dataset.from_numpy(
        np.concatenate([fewer["edges"], shift(arrays["edges"])]), np.concatenate([arrays["features"]] * 2),
        edge_types=fewer["edge_types"] + arrays["edge_types"], node_types=fewer["node_types"] + arrays["node_types"],
    )
    np.testing.assert_allclose(own.predict_proba(small), own.predict_proba(whole)[:N], rtol=1e-5)
    assert small.edge_type_names == ["writes"]  # the data stay as they are
    foreign = Dataset.from_numpy(**{**arrays, "edge_types": ["hinders", *arrays["edge_types"][1:]]})
    message = "edge type: hinders is not allowed; the model knows cites, reads, writes"
    for call in (own.predict, own.learned_sheaf):
        with pytest.raises(ValueError, match=message):
            call(foreign)
    with pytest.raises(ValueError, match="node type: editor is not allowed; the model knows author, paper, venue"):
        own.predict(Dataset.from_numpy(**{**arrays, "node_types": ["editor", *arrays["node_types"][1:]]}))
    with pytest.raises(ValueError, match="edge types of the graph: 0 is not allowed"):
        own.predict(Dataset.from_numpy(**{**arrays, "edge_types": None}))
    with pytest.raises(ValueError, match="node types of the graph: 0 is not allowed"):
        own.predict(Dataset.from_numpy(**{**arrays, "node_types": None}))


def test_numbers_are_learned_with_types(data, tmp_path):
    y = data.features.toarray()[:, :2] * 3 + 1
    own = network(SheafRegressor, loss="gaussian", model="bsnn").fit(data, y)
    assert own.model_.metadata["stalks"] == "1,2,2"
    own.save(tmp_path / "m.safetensors")
    loaded = SheafRegressor.load(tmp_path / "m.safetensors", random_state=5)
    assert (loaded.predict(data) == own.predict(data)).all()
    foreign = Dataset.from_numpy(**{**library(), "node_types": ["editor"] * N})
    for call in (loaded.predict, lambda X: loaded.predict_interval(X, method="posterior")):
        with pytest.raises(ValueError, match="node type: editor is not allowed"):
            call(foreign)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stalks": {"editor": 1}}, r"stalks\['editor'\]: 1 is not allowed; the data have no such type of nodes; they have author, paper"),
        ({"stalks": {"author": 3}}, r"stalks\['author'\]: 3 is not allowed; must be between 1 and 2"),
        ({"stalks": {"author": 1.5}}, r"stalks\['author'\]: 1.5 is not allowed; must be a whole number"),
        ({"edge_stalks": {"author": 1}}, r"edge_stalks\['author'\]: 1 is not allowed; the data have no such type of edges"),
        ({"edge_types": "yes"}, "edge_types: 'yes' is not allowed; must be True or False"),
        ({"edge_types": False}, r"edge_stalks: \{'cites': 1\} is not allowed without edge_types=True"),
        ({"network": {"stalks": 1}}, r"network\['stalks'\]: 1 is not allowed; it is the parameter stalks"),
        ({"network": {"node_types": "a"}}, "network: node_types is not allowed; the data decide it"),
        ({"maps": "special-orthogonal"}, "stalks: a dimension below the stalk dimension is not allowed"),
        ({"network": {"layer_norm": True}}, "stalks: .*layer_norm would count absent coordinates"),
        ({"network": {"normalisation": "block"}}, "stalks: .*use normalisation augmented"),
        ({"model": "csnn"}, "edge_types: given is not allowed; the model csnn has no types"),
        ({"search": 1.0, "model": "bsnn"}, r"search: 1.0 is not allowed; it has no networks with edge_types or stalks"),
    ],
)
def test_what_networks_with_types_do_not_have_is_refused(data, options, message):
    with pytest.raises(ValueError) as refused:
        network().set_params(**options).fit(data)
    if "built without that model" in str(refused.value):
        pytest.skip(f"the package has no {options}")
    refused.match(message)


def test_types_are_needed_for_their_options(karate):
    with pytest.raises(ValueError, match="edge_types: true is not allowed; the data have no types of edges"):
        SheafClassifier("nsd", "diagonal", 2, edge_types=True).fit(karate)
    with pytest.raises(ValueError, match=r"stalks\['a'\]: 1 is not allowed; the data have no such type of nodes; they have none"):
        SheafClassifier("nsd", "diagonal", 2, stalks={"a": 1}).fit(karate)
    with pytest.raises(ValueError, match="stalks: .* is not allowed; the data have no types of nodes"):
        SheafClassifier("nsd", "diagonal", 2, stalks={}).fit(karate)
    with pytest.raises(TypeError, match="stalks: list is not allowed; expected a mapping"):
        SheafClassifier("nsd", "diagonal", 2, stalks=[1]).fit(karate)


@needs_programs
@pytest.mark.parametrize("model", ["nsd", "bsnn"])
@pytest.mark.parametrize("form", ["folder", "file.npz"])
def test_training_is_the_same(data, tmp_path, model, form):
    write = write_npz if form.endswith(".npz") else write_folder
    write(tmp_path / form, library())
    saved, table = tmp_path / "m.safetensors", tmp_path / "p.csv"
    subprocess.run(
        [pathlib.Path(folder) / "train", "--dataset", tmp_path / form, "--model", model, "--maps", "general-linear", "--stalk-dim", "2",
         "--epochs", "20", "--seed", "5", "--edge-types", "--stalks", "author=1", "--edge-stalks", "cites=1", "--save", saved],
        check=True, stdout=subprocess.DEVNULL,
    )
    read = sheafnn.load_dataset(tmp_path / form, edge_types=True, node_types=True)
    own = network(model=model).fit(read)
    theirs = SheafClassifier.load(saved, random_state=5)
    a, b = own.model_.tensors(), theirs.model_.tensors()
    assert a.keys() == b.keys()
    for name in a:
        assert (a[name] == b[name]).all(), name
    assert (own.predict_proba(data) == theirs.predict_proba(read)).all()
    own.save(saved)
    subprocess.run(
        [pathlib.Path(folder) / "predict", "--model", saved, "--dataset", tmp_path / form, "--samples", "20", "--output", table],
        check=True, stdout=subprocess.DEVNULL,
    )
    rows = np.genfromtxt(table, delimiter=",", names=True, dtype=None, encoding="utf-8")
    expected = SheafClassifier.load(saved, predict_samples=20, random_state=0).predict_proba(data)
    np.testing.assert_allclose(rows["p_x"], expected[:, 0], rtol=1e-12)


@needs_programs
def test_programs_refuse_options_of_types_without_types(tmp_path):
    def refused(*more):
        done = subprocess.run([pathlib.Path(folder) / "train", "--maps", "diagonal", "--stalk-dim", "2", "--epochs", "1", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode != 0
        return done.stdout

    assert "--edge-types: true is not allowed; belongs to a graph, whose --dataset is of text files or an .npz file" in refused("--dataset", "karate", "--edge-types")
    assert "--stalks: a=1 is not allowed; belongs to" in refused("--dataset", "synthetic", "--stalks", "a=1")
    arrays = library()
    masks = dict(zip(("train_masks", "val_masks"), (np.arange(N) < 20, np.arange(N) >= 20)))
    np.savez(tmp_path / "d.npz", node_features=arrays["features"], node_labels=arrays["labels"], edges=arrays["edges"], **masks)
    path = tmp_path / "d.npz"
    assert "has no key 'edge_types' (or edge_type)" in refused("--dataset", path, "--edge-types")
    assert "has no key 'node_types' (or node_type)" in refused("--dataset", path, "--stalks", "a=1")
