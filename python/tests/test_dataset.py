"""Datasets from arrays, sparse matrices, networkx and PyTorch Geometric, and back."""

import pickle
import types

import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse

import sheafnn


def test_arrays_come_back(random):
    edges = np.array([[0, 1], [2, 1], [3, 0]])
    features = random.normal(size=(4, 3)) * (random.random((4, 3)) < 0.7)
    data = sheafnn.Dataset.from_numpy(edges, features, [2, 0, -1, 2])
    assert data.edges.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert (data.features.toarray() == features).all()
    assert data.classes.tolist() == [0, 2]
    assert data.codes.tolist() == [1, 0, -1, 1]
    assert data.labels.tolist() == [2, 0, -1, 2]
    assert data.adjacency.toarray().tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]


def test_the_same_graph_in_every_form(random):
    edges = random.integers(0, 20, size=(40, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    features = random.normal(size=(20, 5))
    labels = random.integers(0, 3, size=20)
    expected = sheafnn.Dataset.from_numpy(edges, features, labels)
    adjacency = scipy.sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=(20, 20))
    graph = networkx.Graph()
    graph.add_nodes_from((i, {"features": features[i], "label": labels[i]}) for i in range(20))
    graph.add_edges_from(edges.tolist())
    pyg = types.SimpleNamespace(edge_index=edges.T, x=features, y=labels)
    forms = [
        sheafnn.Dataset.from_numpy(edges.T, features, labels),
        sheafnn.Dataset.from_scipy(adjacency, scipy.sparse.csc_matrix(features), labels),
        sheafnn.Dataset.from_networkx(graph),
        sheafnn.Dataset.from_pyg(pyg),
    ]
    for data in forms:
        assert (data.edges == expected.edges).all()
        assert (data.features != expected.features).nnz == 0
        assert (data.labels == expected.labels).all()


def test_masks_and_numbers_are_the_same_splits(karate):
    train = np.zeros(34, bool)
    train[[1, 5, 7]] = True
    masks = karate.with_splits([(train, [2, 3], [])]).splits[0]
    assert masks.train.tolist() == [1, 5, 7]
    assert masks.validation.tolist() == [2, 3]
    assert masks.test.tolist() == []


def test_pyg_masks(random):
    masks = {f"{part}_mask": np.arange(9).reshape(9, 1) % 3 == k for k, part in enumerate(["train", "val", "test"])}
    pyg = types.SimpleNamespace(
        edge_index=np.array([[0, 1], [1, 2]]), x=random.normal(size=(9, 2)), y=np.arange(9) % 2, **masks
    )
    split = sheafnn.Dataset.from_pyg(pyg).splits[0]
    assert [part.tolist() for part in split] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_sparse_features_of_pyg():
    torch = pytest.importorskip("torch")
    x, edge_index = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), torch.tensor([[0, 1], [1, 0]])
    for own in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()):
        pyg = types.SimpleNamespace(edge_index=edge_index, x=own, y=torch.tensor([0]))
        assert (sheafnn.GraphSet.from_pyg([pyg]).features.toarray() == x.numpy()).all()
        pyg.y = None
        assert (sheafnn.Dataset.from_pyg(pyg).features.toarray() == x.numpy()).all()


def test_to_pyg_and_back(graph):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    for split in (0, 1):
        pyg = graph.to_pyg(split)
        assert pyg.x.dtype == torch.float32 and pyg.edge_index.dtype == pyg.y.dtype == torch.int64
        assert (pyg.edge_index.numpy() == graph.arcs.T).all() and pyg.is_undirected()
        back = sheafnn.Dataset.from_pyg(pyg)
        assert (back.edges == graph.edges).all() and (back.labels == graph.codes).all()
        assert (back.features != graph.features.astype(np.float32)).nnz == 0
        assert all((a == b).all() for a, b in zip(back.splits[0], graph.splits[split]))
    every = graph.to_pyg(None)
    assert every.train_mask.shape == (300, 10)
    assert all((a == b).all() for back, own in zip(sheafnn.Dataset.from_pyg(every).splits, graph.splits) for a, b in zip(back, own))
    with pytest.raises(ValueError, match="split: 10 is not allowed; must be between 0 and 9"):
        graph.to_pyg(10)


def test_to_pyg_without_labels_and_splits():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    numbers = np.arange(8.0).reshape(2, 2, 2)
    pyg = sheafnn.Dataset.from_numpy([[0, 1], [1, 2]], np.eye(4), arc_features=numbers).to_pyg()
    assert pyg.y is None and "train_mask" not in pyg and pyg.num_nodes == 4
    assert torch.equal(pyg.edge_attr, torch.tensor([[0.0, 1], [2, 3], [4, 5], [6, 7]]))
    pyg = sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), ["b", None, "a"]).to_pyg()
    assert pyg.y.tolist() == [1, -1, 0]
    with pytest.raises(ValueError, match="split: 1 is not allowed; must be between 0 and 0"):
        sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3)).to_pyg(1)


def test_texts_and_missing_labels():
    data = sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), ["b", None, "a"])
    assert data.classes.tolist() == ["a", "b"]
    assert data.labels.tolist() == ["b", None, "a"]


def test_seeds_from_generators(graph):
    for make in (np.random.default_rng, np.random.RandomState):
        first, again = (graph.make_splits(2, seed=make(5)).splits for _ in range(2))
        assert all((a == b).all() for one, other in zip(first, again) for a, b in zip(one, other))
        generator = make(5)
        graphs = [sheafnn.synthetic(nodes=50, classes=2, features=8, words=3, seed=generator) for _ in range(2)]
        assert graphs[0].edges.shape != graphs[1].edges.shape or (graphs[0].edges != graphs[1].edges).any()


def test_make_splits_and_synthetic_repeat(graph):
    same = sheafnn.synthetic(nodes=300, classes=3, features=30, words=6, degree=8, homophily=0.2, seed=3)
    assert (same.edges == graph.edges).all() and (same.features != graph.features).nnz == 0
    splits = graph.make_splits(3, seed=5).splits
    again = graph.make_splits(3, seed=5).splits
    assert all((a == b).all() for s, t in zip(splits, again) for a, b in zip(s, t))
    for split in splits:
        assert sorted(np.concatenate(split)) == list(range(300))


def test_files(tmp_path, graph):
    masks = np.zeros((3, 1, 300), bool)
    for mask, nodes in zip(masks, graph.splits[0]):
        mask[0, nodes] = True
    path = tmp_path / "graph.npz"
    np.savez(
        path, node_features=graph.features.toarray(), node_labels=graph.labels, edges=graph.edges,
        train_masks=masks[0], val_masks=masks[1], test_masks=masks[2],
    )
    data = sheafnn.load_dataset(path)
    assert (data.edges == graph.edges).all()
    assert all((a == b).all() for a, b in zip(data.splits[0], graph.splits[0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sheafnn.Dataset.from_numpy([[0, 9]], np.eye(3)), "edges[0, 1]: 9 is not allowed; a node number must be between 0 and 2"),
        (lambda: sheafnn.Dataset.from_numpy([[0.5, 1]], np.eye(3)), "edges: float64 is not allowed; expected whole node numbers"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1, 2]], np.eye(3)), "edges: shape (1, 3)"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], [[1.0, np.inf]]), "features[0, 1]: inf"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], [1.0, 2.0]), "features: 1 axes"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), [0, 1]), "labels: shape (2,)"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), [0, 1, -2]), "labels[2]: label -2"),
        (lambda: sheafnn.karate_club().with_splits([([0], [1])]), "splits[0]: 2 sets"),
        (lambda: sheafnn.karate_club().with_splits([([0], [0], [])]), "splits[0].validation"),
        (lambda: sheafnn.karate_club().with_splits([([40], [], [])]), "splits[0].train: node 40"),
        (lambda: sheafnn.karate_club().with_splits([([True, False], [], [])]), "splits[0].train: a mask of 2"),
        (lambda: sheafnn.synthetic(homophily=2), "homophily"),
        (lambda: sheafnn.Dataset.from_scipy(np.eye(3), np.eye(3)), "adjacency: ndarray"),
        (lambda: sheafnn.Dataset.from_scipy(scipy.sparse.eye(2), np.eye(3)), "must be 3 x 3"),
        (lambda: sheafnn.Dataset.from_numpy(np.array([[0, 2**64 - 1]], np.uint64), np.eye(3)), "18446744073709551615"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), ["a", 1, "b"]), "texts and other values"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), node_names=["a"]), "node_names: 1 names"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3) * 1j), "Complex data not supported"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], [["a"], ["b"]]), "features: could not convert"),
        (lambda: sheafnn.Dataset.from_numpy([[0, 1]], [[1], [2, 3]]), "features: setting an array element"),
        (lambda: sheafnn.Dataset.from_networkx(networkx.path_graph(2)), "node 0 has no attribute 'features'"),
        (lambda: sheafnn.Dataset.from_networkx(_path([[1.0], [2.0, 3.0]])), "node 1 has [2.0, 3.0]"),
        (
            lambda: sheafnn.Dataset.from_networkx(networkx.path_graph(2), np.eye(2)),
            "features: ndarray is not allowed; expected the name of an attribute",
        ),
        (lambda: sheafnn.Dataset.from_networkx(_path([[1.0], [2.0]])), "no node has an attribute 'label'"),
        (lambda: sheafnn.Dataset.from_pyg(types.SimpleNamespace(x=None)), "x: None"),
        (
            lambda: sheafnn.Dataset.from_pyg(types.SimpleNamespace(x=np.eye(3), edge_index=np.zeros((5, 2), int))),
            "edge_index: shape (5, 2)",
        ),
        (
            lambda: sheafnn.Dataset.from_numpy(pandas.DataFrame({"u": [0, 1], "v": [1, 2], "w": [1, 2]}), np.eye(3)),
            "edges: shape (2, 3) is not allowed; expected m x 2 node numbers",
        ),
        (lambda: sheafnn.karate_club().make_splits(1.5), "count: 1.5"),
        (lambda: sheafnn.karate_club().make_splits(0), "count: 0 is not allowed; must be between 1 and 1000"),
        (lambda: sheafnn.karate_club().make_splits(1, seed=-1), "seed: -1"),
        (lambda: sheafnn.synthetic(nodes=10.5), "nodes: 10.5"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert message in str(error.value)


def _path(features):
    graph = networkx.path_graph(len(features))
    for node, row in enumerate(features):
        graph.nodes[node]["features"] = row
    return graph


@pytest.mark.parametrize("unknown", [None, float("nan"), np.nan, pandas.NA, pandas.NaT])
def test_whatever_means_unknown(unknown):
    data = sheafnn.Dataset.from_numpy([[0, 1]], np.eye(4), ["a", unknown, "b", "a"])
    assert data.classes.tolist() == ["a", "b"] and data.codes.tolist() == [0, -1, 1, 0]
    graph = _path([[1.0], [2.0], [3.0]])
    for node, label in enumerate([0, 1, unknown]):
        graph.nodes[node]["label"] = label
    assert sheafnn.Dataset.from_networkx(graph).codes.tolist() == [0, 1, -1]


def test_minus_one_and_missing_labels_of_networkx():
    graph = _path([[1.0], [2.0], [3.0], [4.0]])
    for node, label in ((0, -1), (1, 0), (2, 1)):
        graph.nodes[node]["label"] = label
    data = sheafnn.Dataset.from_networkx(graph)
    assert data.classes.tolist() == [0, 1] and data.codes.tolist() == [-1, 0, 1, -1]


def test_labels_may_all_be_unknown(tmp_path):
    assert sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), [-1, -1, -1]).labels.tolist() == [-1, -1, -1]
    np.savez(tmp_path / "g.npz", node_features=np.eye(3), node_labels=[-1, -1, -1], edges=[[0, 1]])
    assert sheafnn.load_dataset(tmp_path / "g.npz", labels=False).labels.tolist() == [-1, -1, -1]


def test_arcs_are_sorted(karate):
    assert sorted(map(tuple, karate.arcs.tolist())) == list(map(tuple, karate.arcs.tolist()))
    assert len(karate.arcs) == 2 * karate.edge_count


def test_pickle(graph):
    named = sheafnn.Dataset.from_numpy(
        [[0, 1]], np.eye(3), ["a", None, "b"], splits=[([0], [2], [])], node_names=["x", "y", "z"], name="pickled"
    )
    for data in (graph, named):
        same = pickle.loads(pickle.dumps(data))
        assert repr(same) == repr(data)
        assert (same.edges == data.edges).all() and (same.features != data.features).nnz == 0
        assert same.labels.tolist() == data.labels.tolist() and same.node_names == data.node_names
        assert all((a == b).all() for s, t in zip(same.splits, data.splits) for a, b in zip(s, t))


def test_pickle_keeps_directions_and_classes_without_nodes(random):
    labels = random.integers(0, 3, size=40)
    edges = random.integers(0, 40, size=(120, 2))
    data = sheafnn.Dataset.from_numpy(edges, random.normal(size=(40, 4)), labels)
    same = pickle.loads(pickle.dumps(data))
    options = dict(stalk_dim=2, epochs=5, network={"directed": True})
    a, b = (sheafnn.SheafClassifier("csnn", **options).fit(d.make_splits(1)) for d in (data, same))
    assert (a.predict_proba(data) == b.predict_proba(same)).all()
    turned = sheafnn.Dataset.from_numpy(edges[:, ::-1], data.features, labels)
    assert (a.predict_proba(turned) != a.predict_proba(data)).any()


def test_splits_may_be_a_generator():
    splits = (([u], [1 - u], []) for u in range(2))
    assert len(sheafnn.Dataset.from_numpy([[0, 1]], np.eye(3), [0, 1, -1], splits=splits).splits) == 2


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="no_such_file.npz"):
        sheafnn.load_dataset("no_such_file.npz")


def _text_folder(folder, labels):
    rows = "".join(f"n{i},{label},{i}.5\n" for i, label in enumerate(labels))
    (folder / "nodes.csv").write_text("name,label,x\n" + rows)
    (folder / "edges.csv").write_text("n0,n1\nn1,n2\n")
    return folder


@pytest.mark.parametrize("word", ["None", "nan", "NaT", "#N/A", "unknown", "-", "NA"])
def test_words_for_missing_labels_are_refused_or_named(word, tmp_path):
    _text_folder(tmp_path, ["a", word, "b", "a"])
    np.savez(tmp_path / "g.npz", x=np.eye(4), y=["a", word, "b", "a"], edge_index=[[0, 1, 2], [1, 2, 3]])
    for path in (tmp_path, tmp_path / "g.npz"):
        with pytest.raises(RuntimeError, match="usually means a missing value.*missing_labels"):
            sheafnn.load_dataset(path)
        for words in ([word], word, ["other", word]):
            data = sheafnn.load_dataset(path, missing_labels=words)
            assert data.classes.tolist() == ["a", "b"] and data.codes.tolist() == [0, -1, 1, 0]
        assert word in sheafnn.load_dataset(path, missing_labels=[]).classes


def _houses(folder):
    """Two targets, some of them unknown, as text and as arrays."""
    (folder / "nodes.csv").write_text(
        "name,age,label,price,visits,split\na,1,x,2.5,3,train\nb,2,y,,4,train\nc,3,x,NA,-1,val\nd,4,y,1e3,0,test\n"
    )
    (folder / "edges.csv").write_text("a,b\nb,c\nc,d\n")
    price = np.array([2.5, np.nan, np.nan, 1e3], np.float32)
    np.savez(
        folder / "d.npz", x=[[1.0], [2.0], [3.0], [4.0]], y=[0, 1, 0, 1], edge_index=[[0, 1, 2], [1, 2, 3]], price=price,
        visits=np.array([[3], [4], [-1], [0]], np.int16), both=np.stack([price, price + 1], 1), train_mask=[1, 1, 0, 0],
        val_mask=[0, 0, 1, 0], test_mask=[0, 0, 0, 1],
    )
    return [folder, folder / "d.npz"]


def test_targets_of_files(tmp_path):
    expected = [[2.5, 3], [np.nan, 4], [np.nan, -1], [1000, 0]]
    for path in _houses(tmp_path):
        data = sheafnn.load_dataset(path, targets=["price", "visits"])
        assert data.targets.dtype == np.float64
        np.testing.assert_array_equal(data.targets, expected)
        assert data.target_names == ["price", "visits"]
        assert data.feature_count == 1 and len(data.codes) == 0 and data.class_count == 0 and len(data.classes) == 0
        assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2], [3]]
        assert "1 features, 2 targets, 1 splits" in repr(data)
        same = pickle.loads(pickle.dumps(data))
        np.testing.assert_array_equal(same.targets, expected)
        assert same.target_names == data.target_names and same.splits[0].train.tolist() == [0, 1]
        np.testing.assert_array_equal(data.with_splits([([0], [1], [])]).targets, expected)
        one = sheafnn.load_dataset(path, targets="visits")
        assert one.targets.tolist() == [[3], [4], [-1], [0]] and one.target_names == ["visits"]
        # Splits are of the nodes with a known target.
        drawn = sheafnn.load_dataset(path, splits=False, targets=["price"]).make_splits(3, train=0.5, validation=0.5, test=0)
        assert all(sorted(np.concatenate(split).tolist()) == [0, 3] for split in drawn.splits)
        # Without labels, those that the file lacks are unknown.
        lacking = sheafnn.load_dataset(path, labels=False, targets=["prize", "visits"])
        assert np.isnan(lacking.targets[:, 0]).all() and lacking.targets[:, 1].tolist() == [3, 4, -1, 0]
        plain = sheafnn.load_dataset(path, splits=False, labels=False)
        assert plain.targets is None and plain.target_names == []
    columns = sheafnn.load_dataset(tmp_path / "d.npz", targets=["both"])
    assert columns.target_names == ["both_0", "both_1"]
    np.testing.assert_array_equal(columns.targets[:, 1], columns.targets[:, 0] + 1)


def test_a_regressor_learns_the_targets_of_a_file(tmp_path):
    for path in _houses(tmp_path):
        data = sheafnn.load_dataset(path, targets=["price", "visits"])
        model = sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(data, data.targets)
        own = sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(data)  # the same targets
        np.testing.assert_array_equal(own.predict(data), model.predict(data))
        assert model.predict(data).shape == (4, 2)


def test_scores_and_intervals_read_the_targets_of_a_dataset(tmp_path):
    ring, features = np.arange(40), np.random.default_rng(0).normal(size=(40, 3))
    masks = [(ring % 4 < 2), ring % 4 == 2, ring % 4 == 3]
    np.savez(tmp_path / "d.npz", node_features=features, edges=np.stack([ring, (ring + 1) % 40], 1), price=features[:, 0],
             **dict(zip(("train_masks", "val_masks", "test_masks"), masks)))
    data = sheafnn.load_dataset(tmp_path / "d.npz", targets=["price"])
    model = sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(data)
    assert model.score(data) == model.score(data, data.targets)
    for own, given in zip(model.predict_interval(data), model.predict_interval(data, data.targets)):
        np.testing.assert_array_equal(own, given)
    flat = sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(data, data.targets[:, 0])  # as files of the program train
    assert flat.predict(data).shape == (40,) and flat.score(data) == model.score(data)
    for own, given in zip(flat.predict_interval(data), model.predict_interval(data)):
        np.testing.assert_array_equal(own, given[:, 0])
    both = sheafnn.SheafRegressor("nsd", "diagonal", 2, epochs=3).fit(data, np.repeat(data.targets, 2, axis=1))
    for call in (both.score, both.predict_interval):
        with pytest.raises(ValueError, match=r"X: targets of shape \(40, 1\) are not allowed; the network predicts \(40, 2\)"):
            call(data)
    with pytest.raises(ValueError, match="data: .* is not allowed; a search needs labels"):
        sheafnn.grid_search(data, {"channels": [4, 8]})


def test_targets_that_are_refused(tmp_path):
    folder, archive = _houses(tmp_path)
    for path, message in (
        (folder, "nodes.csv:1: no column is called 'prize'"),
        (archive, "d.npz: key 'prize' is missing"),
    ):
        with pytest.raises(RuntimeError, match=message):
            sheafnn.load_dataset(path, targets=["prize"])
        for targets, why in (
            ([], "targets: an empty list is not allowed; at least one name is needed"),
            (["price", "price"], "targets: price is not allowed; it is there twice"),
            (["price", ""], "targets: an empty name is not allowed"),
            ([1], r"targets: \[1\] is not allowed; expected a list of names"),
            (1, "targets: 1 is not allowed; expected a list of names"),
        ):
            with pytest.raises(ValueError, match=why):
                sheafnn.load_dataset(path, targets=targets)
    with pytest.raises(RuntimeError, match="nodes.csv:2: column 'label': 'x' is not a finite number; targets are numbers"):
        sheafnn.load_dataset(folder, targets=["label"])
    with pytest.raises(RuntimeError, match=r"d.npz: edge_index: has shape \(2, 3\); expected numbers of the 4 nodes"):
        sheafnn.load_dataset(archive, targets=["edge_index"])
    with pytest.raises(RuntimeError, match="the target 'both_1' is there twice"):
        sheafnn.load_dataset(archive, targets=["both", "both_1"])


def test_text_labels_are_encoded_by_one_rule():
    from sheafnn import _core

    codes, names = _core.encode_text_labels(["1", "01", "-1.0", "", "2.0"])
    assert codes.dtype == np.int32 and codes.tolist() == [0, 0, -1, -1, 1] and names == ["1", "2.0"]
    assert _core.encode_text_labels(["b", "NA", "a"], [])[1] == ["NA", "a", "b"]
    assert _core.encode_text_labels(["b", "NA", "a"], ["NA"])[0].tolist() == [1, -1, 0]
    with pytest.raises(ValueError, match=r"labels\[1\]: label 'NA' is not allowed; it usually means a missing value"):
        _core.encode_text_labels(["b", "NA", "a"])
    with pytest.raises(ValueError, match="labels: 40 different numbers, of which 40 are not whole"):
        _core.encode_text_labels([str(k + 0.5) for k in range(40)])


def test_labels_of_archives_are_numbers(tmp_path):
    for labels, classes, codes in (
        ([3, 7, -1, 3], [3, 7], [0, 1, -1, 0]),
        ([0.5, 2.0, 0.5, 2.0], [0.5, 2.0], [0, 1, 0, 1]),
        ([1, 0, 2, -1], [0, 1, 2], [1, 0, 2, -1]),
    ):
        np.savez(tmp_path / "g.npz", x=np.eye(4), y=labels, edge_index=[[0, 1, 2], [1, 2, 3]])
        data = sheafnn.load_dataset(tmp_path / "g.npz")
        assert data.classes.tolist() == classes and data.codes.tolist() == codes and data.labels.tolist() == labels


@pytest.mark.parametrize("shape", ["splits x nodes", "nodes x splits"])
def test_archives_with_keys_of_pytorch_geometric(shape, tmp_path):
    masks = np.zeros((3, 2, 5), bool)
    masks[0, :, :2] = masks[1, 0, 2] = masks[1, 1, 3] = masks[2, :, 4] = True
    arrays = masks if shape == "splits x nodes" else masks.transpose(0, 2, 1)
    np.savez(
        tmp_path / "g.npz", x=np.eye(5), y=[0, 1, 0, 1, 1], edge_index=[[0, 1, 2], [1, 2, 3]],
        train_mask=arrays[0], val_mask=arrays[1], test_mask=arrays[2],
    )
    splits = sheafnn.load_dataset(tmp_path / "g.npz").splits
    assert [[part.tolist() for part in split] for split in splits] == [[[0, 1], [2], [4]], [[0, 1], [3], [4]]]


@pytest.mark.parametrize("form", [scipy.sparse.coo_matrix, scipy.sparse.csr_array])
def test_duplicates_of_small_types_do_not_overflow(form):
    values = np.array([200, 100], np.uint8)
    if form is scipy.sparse.coo_matrix:
        features = form((values, ([0, 0], [0, 0])), shape=(2, 2))
    else:
        features = form((values, np.array([0, 0]), np.array([0, 2, 2])), shape=(2, 2))
    assert sheafnn.Dataset.from_numpy(None, features).features.toarray().tolist() == [[300, 0], [0, 0]]
    assert features.dtype == np.uint8 and features.nnz == 2  # as they were given
    model = sheafnn.SheafClassifier("nsd", "identity", 1, epochs=2, validation_fraction=0)
    added = np.array([[300.0, 0], [0, 0]])
    assert (model.fit(features, [0, 1]).predict_proba(features) == model.fit(added, [0, 1]).predict_proba(added)).all()


@pytest.mark.parametrize("name", ["a\0", "a\0b", "\ud800"])
def test_names_that_files_cannot_hold_are_refused(name):
    frame = pandas.DataFrame(np.eye(2), columns=["x", name])
    for make, argument in (
        (lambda: sheafnn.Dataset.from_numpy(None, np.eye(2), node_names=["x", name]), "node_names"),
        (lambda: sheafnn.Dataset.from_numpy(None, np.eye(2), feature_names=["x", name]), "feature_names"),
        (lambda: sheafnn.Dataset.from_numpy(None, frame), "feature_names"),
        (lambda: sheafnn.Dataset.from_pandas(frame, None, label=None), "feature_names"),
        (lambda: sheafnn.SheafClassifier(validation_fraction=0).fit(frame, [0, 1]), "feature_names"),
    ):
        with pytest.raises(ValueError) as error:
            make()
        assert f"{argument}[1]: {name!r} is not allowed" in str(error.value)


TIMES = np.array(["2020", "2021"], "M8[s]")


@pytest.mark.parametrize("times", [TIMES, TIMES - TIMES[0]])
def test_times_are_no_features(times):
    frame = pandas.DataFrame({"x": [1.0, 2.0], "when": times})
    mixed = np.array([[1.0, times[0]], [2.0, times[1]]], object)
    for given, message in (
        (times[:, None], f": {times.dtype} is not allowed"), (frame, ": column 'when' holds"), (frame[["when"]], ": column 'when' holds"),
        (mixed, "[0, 1]: np."), (times[:, None].tolist(), ""),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            sheafnn.Dataset.from_numpy(None, given)
        assert f"features{message}" in str(error.value)
        if given is not mixed:
            with pytest.raises((TypeError, ValueError)):
                sheafnn.SheafClassifier("nsd", "identity", 1, epochs=2, validation_fraction=0).fit(given, [0, 1])
    with pytest.raises(ValueError, match="arc_features: "):
        sheafnn.Dataset.from_numpy([[0, 1]], np.eye(2), arc_features=times[:1])
    with pytest.raises(ValueError, match="column 'when'"):
        sheafnn.Dataset.from_pandas(frame, None, label=None)


def test_masked_rows_of_a_list():
    rows = [np.ma.masked_array([1.0, 2.0], [0, 1]), [3.0, 4.0]]
    features = sheafnn.Dataset.from_numpy(None, rows).features.toarray()
    assert np.array_equal(features, [[1, np.nan], [3, 4]], equal_nan=True)
    with pytest.raises(ValueError, match="features: "):
        sheafnn.Dataset.from_numpy(None, [np.ma.masked_array([1.0, 2.0], [0, 1]), [3.0]])


def test_columns_of_tables_are_chosen_and_left_out_as_in_programs(tmp_path):
    folder = tmp_path / "crm"
    folder.mkdir()
    (folder / "nodes.csv").write_text("name,kind,joined,age,split\nada,a,2024-05-01,31,train\nbob,b,,40,validation\ncyd,a,,29,test\n")
    (folder / "edges.csv").write_text("source,target,since\nada,bob,2020\nbob,cyd,2021\n")
    with pytest.raises(RuntimeError, match=r"nodes.csv:2: column 'kind': 'a' .*; no column is called 'label' \(label names the column"):
        sheafnn.load_dataset(folder)
    with pytest.raises(RuntimeError, match=r"nodes.csv:2: column 'joined': '2024-05-01' .*leave the column out \(ignore_columns\)$"):
        sheafnn.load_dataset(folder, label="kind")
    message = r"edges.csv:3: column 'since' is .*remove the column \(ignore_edge_columns\), or learn it \(edge_labels or edge_target\)$"
    with pytest.raises(RuntimeError, match=message):
        sheafnn.load_dataset(folder, label="kind", ignore_columns=["joined"])
    data = sheafnn.load_dataset(folder, label="kind", ignore_columns=["joined"], ignore_edge_columns="since")
    assert data.feature_names == ["age"] and data.classes.tolist() == ["a", "b"] and data.edge_count == 2
    one_hot = sheafnn.load_dataset(folder, label="kind", ignore_columns="joined", ignore_edge_columns="since", identity_features=True)
    assert (one_hot.features.toarray() == np.eye(3)).all()
    for wrong in ({"ignore_columns": [1]}, {"ignore_edge_columns": [""]}, {"label": ""}, {"label": None}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: .* is not allowed"):
            sheafnn.load_dataset(folder, **wrong)
    with pytest.raises(RuntimeError, match=r"karate: is no folder of tables, to which the option ignore_columns \(joined\) belongs"):
        sheafnn.load_dataset("karate", ignore_columns=["joined"])


def test_tables_of_hypergraphs_leave_columns_out_too(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,kind,joined,age\nada,a,2024-05-01,31\nbob,?,,40\ncyd,b,,29\n")
    (tmp_path / "hyperedges.csv").write_text("ada,bob,cyd\n")
    with pytest.raises(RuntimeError, match=r"'kind': 'a' .*; no column is called 'label' \(label names"):
        sheafnn.load_hypergraph(tmp_path)
    data = sheafnn.load_hypergraph(tmp_path, label="kind", ignore_columns=["joined"], missing_labels=["?"])
    assert data.feature_names == ["age"] and data.classes.tolist() == ["a", "b"] and data.labels.tolist() == ["a", None, "b"]


@pytest.mark.parametrize("kind, maker", [(sheafnn.Dataset, "Dataset.from_numpy"), (sheafnn.Hypergraph, "Hypergraph.from_numpy"),
                                         (sheafnn.GraphSet, "GraphSet.from_arrays")])
def test_a_class_of_data_called_with_arrays_names_what_makes_one(kind, maker):
    for arguments in [(), ([[0, 1]], np.eye(2)), ([[0, 1]], np.eye(2), [0, 1])]:
        with pytest.raises(TypeError, match=f"^{kind.__name__}: these arguments are not allowed; make one with {maker}"):
            kind(*arguments)
    with pytest.raises(TypeError, match=maker):
        kind(edges=[[0, 1]], features=np.eye(2))
