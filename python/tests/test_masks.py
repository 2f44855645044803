"""Masks and node numbers, wherever sets of nodes are taken."""

import types

import numpy as np
import pandas
import pytest

import sheafnn

TRAIN = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]], bool)
VALIDATION = np.array([[0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]], bool)
TEST = ~(TRAIN | VALIDATION)


def pyg(count=6, **more):
    return types.SimpleNamespace(x=np.eye(count), y=np.arange(count) % 2, edge_index=np.array([[0, 1], [1, 2]]), **more)


def sets(data):
    return [[part.tolist() for part in split] for split in data.splits]


EXPECTED = [[[0, 1], [2, 3], [4, 5]], [[4, 5], [0, 1], [2, 3]]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, object])
@pytest.mark.parametrize("transposed", [False, True])
def test_masks_of_several_splits(dtype, transposed):
    masks = [(m.T if transposed else m).astype(dtype) for m in (TRAIN, VALIDATION, TEST)]
    data = sheafnn.Dataset.from_pyg(pyg(train_mask=masks[0], val_mask=masks[1], test_mask=masks[2]))
    assert sets(data) == EXPECTED
    assert sets(sheafnn.Dataset.from_numpy([[0, 1]], np.eye(6), np.arange(6) % 2, splits=[masks])) == EXPECTED


def test_a_mask_of_one_split_belongs_to_all():
    data = sheafnn.Dataset.from_pyg(pyg(train_mask=TRAIN[:, :] & (np.arange(6) < 5), test_mask=np.arange(6) == 5))
    assert [split[2] for split in sets(data)] == [[5], [5]]
    assert [split[1] for split in sets(data)] == [[], []]
    data = sheafnn.Dataset.from_pyg(pyg(train_mask=TRAIN[:1], val_mask=VALIDATION[0], test_mask=TEST[0][:, None]))
    assert sets(data) == EXPECTED[:1]


@pytest.mark.parametrize("names", [("train_idx", "val_idx", "test_idx"), ("train_mask", "valid_idx", "test_index")])
def test_node_numbers_of_pyg(names):
    parts = dict(zip(names, ([3, 1], np.array([0]), np.array([5, 4], np.uint8))))
    assert sets(sheafnn.Dataset.from_pyg(pyg(**parts))) == [[[1, 3], [0], [4, 5]]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.float64])
def test_masks_of_numbers(dtype):
    mask = np.array([1, 0, 0, 1, 0, 0])
    data = sheafnn.Dataset.from_numpy([[0, 1]], np.eye(6), np.arange(6) % 2, splits=[(mask.astype(dtype), [1], [])])
    assert sets(data) == [[[0, 3], [1], []]]
    assert sets(data.with_splits([(pandas.Series(mask.astype(dtype)), [1], [])])) == [[[0, 3], [1], []]]
    assert sets(data.with_splits([(mask.astype(dtype).tolist(), [1], [])])) == [[[0, 3], [1], []]]


def test_two_numbers_of_two_nodes_are_node_numbers():
    data = sheafnn.Dataset.from_numpy([[0, 1]], np.eye(2), [0, 1])
    assert sets(data.with_splits([([0, 1], [], [])])) == [[[0, 1], [], []]]
    assert sets(data.with_splits([([1, 1], [], [])])) == [[[0, 1], [], []]]
    assert sets(data.with_splits([([False, True], [], [])])) == [[[1], [], []]]


def test_mappings_are_splits(karate):
    split = karate.with_splits([{"train": [1, 2], "valid": [3], "test": [4]}]).splits[0]
    assert [part.tolist() for part in split] == [[1, 2], [3], [4]]
    with pytest.raises(ValueError, match=r"splits\[0\]: key 'tset'"):
        karate.with_splits([{"train": [1, 2], "tset": [3]}])


def test_masks_in_a_training(graph):
    options = dict(stalk_dim=2, epochs=5)
    split = graph.splits[0]
    masks = [np.isin(np.arange(300), nodes).astype(float) for nodes in split[:2]]
    a, b = (
        sheafnn.SheafClassifier(**options).fit(graph.features, graph.labels, edges=graph.edges, train=t, validation=v)
        for t, v in (split[:2], masks)
    )
    assert (a.predict_proba(graph) == b.predict_proba(graph)).all()
    test = np.isin(np.arange(300), split.test)
    assert a.score(graph, nodes=test) == a.score(graph, nodes=test.astype(int)) == a.score(graph, nodes=split.test)


def _from_pyg(**more):
    return lambda: sheafnn.Dataset.from_pyg(pyg(**more))


def _with_splits(train):
    return lambda: sheafnn.Dataset.from_numpy([[0, 1]], np.eye(6), np.arange(6) % 2, splits=[(train, [], [])])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_from_pyg(train_mask=np.where(TRAIN, np.nan, 0)), "train_mask: split 0, node 0: nan is not allowed; a mask holds"),
        (_from_pyg(train_mask=np.where(TRAIN, np.nan, 0).T), "train_mask: split 0, node 0: nan"),
        (_from_pyg(train_mask=np.array([0, 1, np.nan, 0, 0, 0])), "train_mask: node 2: nan is not allowed"),
        (_from_pyg(train_mask=TRAIN * 2), "several splits are masks, of 0 and 1"),
        (_from_pyg(train_mask=TRAIN, val_mask=TEST * 0.5), "val_mask: split 0, node 4: 0.5"),
        (_from_pyg(train_mask=TRAIN, val_mask=-1 * TEST), "val_mask: split 0, node 4: -1"),
        (_from_pyg(train_mask=np.ones((2, 5), bool)), "train_mask: shape (2, 5) is not allowed; masks of several splits are 6 x splits"),
        (_from_pyg(train_mask=np.eye(6, dtype=bool)), "train_mask: shape (6, 6) is not allowed; as many splits as nodes"),
        (_from_pyg(train_mask=np.ones((2, 3, 6), bool)), "train_mask: 3 axes"),
        (_from_pyg(train_mask=TRAIN, test_mask=np.ones((6, 3), bool)), "test_mask: 3 splits are not allowed; another set has 2"),
        (_from_pyg(test_mask=TRAIN[0]), "train_mask: None is not allowed; the data have test_mask"),
        (_from_pyg(train_mask=TRAIN[0], train_idx=[0]), "train_idx: the data also have train_mask"),
        (_from_pyg(train_mask=["yes"] * 6), "train_mask: <U3"),
        (_with_splits([True, None, False, False, False, False]), "splits[0].train: entry 1: None is not allowed"),
        (_with_splits([1, 0, 2, 0, 1, 0]), "splits[0].train: node 2: 2 is not allowed; a mask holds 0 and 1, and node numbers do not repeat"),
        (_with_splits([-1, 1, 1, 1, -1, 1]), "splits[0].train: node 0: -1 is not allowed; a mask holds 0 and 1"),
        (_with_splits([0.0, 1.0, 2.0, 0, 0, 0]), "splits[0].train: node 2: 2.0"),
        (_with_splits([0.0, 1.0]), "splits[0].train: float64"),
        (_with_splits([9]), "splits[0].train: node 9"),
        (_with_splits(None), "splits[0].train: None is not allowed; write [] where there are no nodes"),
        (_with_splits({0, 1}), "splits[0].train: set is not allowed; expected a list or an array"),
        (_with_splits(np.ma.masked_array(TRAIN[0], TRAIN[0])), "splits[0].train: entry 0 is masked"),
        (_with_splits([[0, 1], [2]]), "splits[0].train: "),
        (_with_splits(TRAIN[0][:4]), "splits[0].train: a mask of 4: the graph has 6 nodes"),
    ],
)
def test_what_is_no_set_is_named(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert message in str(error.value)


def test_other_places_name_their_masks(karate, trained):
    mask = np.full(34, np.nan)
    for call, name in (
        (lambda: trained.score(karate, nodes=mask), "nodes: node 0: nan"),
        (lambda: sheafnn.SheafClassifier().fit(karate.features, karate.labels, train=mask), "train: node 0: nan"),
        (lambda: sheafnn.SheafClassifier().fit(karate.features, karate.labels, validation=mask), "validation: node 0: nan"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


@pytest.mark.parametrize("estimator", [sheafnn.SheafClassifier, sheafnn.SheafRegressor])
def test_a_node_is_in_a_set_once(estimator):
    numbers = np.arange(8) % 2
    for sets in ({"train": [0, 1, 2, 3, 2]}, {"train": [0, 1], "validation": [2, 4, 2]}):
        with pytest.raises(ValueError, match=f"{list(sets)[-1]}: 2 is not allowed; a node may appear only once"):
            estimator("nsd", "diagonal", 2, epochs=1).fit(np.eye(8), numbers, **sets)
