"""Planted tasks: sizes, seeds, and labels that follow from the truth and from nothing less."""

import functools

import numpy as np
import pytest
import sklearn.linear_model

import sheafnn

TASKS = [
    (sheafnn.planted_frames, "special-orthogonal", 3, 3),
    (functools.partial(sheafnn.planted_frames, curvature=1), "special-orthogonal", 3, 3),
    (sheafnn.planted_unreliable, "special-orthogonal", 3, 4),
    (sheafnn.planted_general_linear, "general-linear", 3, 6),
    (sheafnn.planted_diagonal, "diagonal", 3, 3),
    (sheafnn.planted_signed, "diagonal", 1, 3),
    (sheafnn.planted_geometric, "special-orthogonal", 2, 6),
]


def sums(task, values, transports=None):
    """Of the neighbours' rows of values, as they are or transported."""
    arcs = task.data.arcs
    rows = values[arcs[:, 1]]
    if transports is not None:
        rows = np.einsum("aij,aj->ai", transports, rows)
    result = np.zeros_like(values)
    np.add.at(result, arcs[:, 0], rows)
    return result


@pytest.mark.parametrize("make, family, d, readable", TASKS)
def test_labels_follow_from_the_truth_alone(make, family, d, readable):
    task = make(nodes=2000, seed=1)
    data = task.data
    size = 5 if make is sheafnn.planted_signed else d  # of a node's vector
    assert (task.family, task.stalk_dim, data.feature_count, data.class_count) == (family, d, readable + size, size + 1)
    assert task.maps.shape == ((2 * data.edge_count, d) if family == "diagonal" else (2 * data.edge_count, d, d))
    assert (task.concentration is not None) == (make is sheafnn.planted_unreliable)
    features = data.features.toarray()
    known = np.flatnonzero(data.codes >= 0)
    train, test = known[:1000], known[1000:]

    def accuracy(inputs):
        model = sklearn.linear_model.LogisticRegression(C=100, max_iter=1000).fit(inputs[train], data.codes[train])
        return model.score(inputs[test], data.codes[test])

    # 1000 test nodes or a little less: the standard error is at most 0.016.
    transports = task.transports * np.eye(size) if size > d else task.transports
    assert accuracy(np.hstack([features, sums(task, features[:, -size:], transports)])) > 0.95
    # Of signs, -1/3 on average, raw sums tell something.
    assert accuracy(np.hstack([features, sums(task, features)])) < 1 / (size + 1) + (0.2 if size > d else 0.1)


@pytest.mark.parametrize("make", [task[0] for task in TASKS])
def test_same_seed_same_task(make):
    options = {"nodes": 100, "noise": 0.2, "hidden_columns": 5, "splits": 2}
    first, same, other = make(**options, seed=5), make(**options, seed=5), make(**options, seed=6)
    assert (first.data.edges == same.data.edges).all()
    assert (first.data.features != same.data.features).nnz == 0
    assert (first.data.codes == same.data.codes).all()
    assert (first.maps == same.maps).all()
    assert len(first.data.splits) == 2
    assert (first.data.codes != other.data.codes).any()


def test_transports_are_orthogonal_and_inverse_to_each_other():
    task = sheafnn.planted_unreliable(stalk_dim=4, nodes=60, least_concentration=0, most_concentration=0.5)
    arcs, transports = task.data.arcs, task.transports
    of = {tuple(arc): transport for arc, transport in zip(arcs.tolist(), transports)}
    bound = 256 * np.finfo(float).eps
    for (u, v), transport in of.items():
        assert np.abs(transport @ of[v, u] - np.eye(4)).max() < bound
    assert task.concentration.min() >= 0 and task.concentration.max() <= 0.5
    # The Laplacian of the true sheaf has the transports as its blocks.
    laplacian = sheafnn.sheaf_laplacian(task.data, task.maps, family=task.family).toarray()
    u, v = arcs[0]
    assert np.abs(laplacian[4 * u : 4 * u + 4, 4 * v : 4 * v + 4] + transports[0]).max() < bound


def test_with_a_neighbour_share_of_1_pairs_show_each_others_class():
    task = sheafnn.planted_frames(stalk_dim=2, nodes=90, degree=1, neighbour_share=1)
    vectors, arcs, classes = task.data.features.toarray()[:, -2:], task.data.arcs, task.data.codes
    shown = np.einsum("aij,aj->ai", task.transports, vectors[arcs[:, 1]])
    angles = 2 * np.pi / 3 * classes[arcs[:, 0]]
    assert len(arcs) == 90
    assert np.abs(shown - np.stack([np.cos(angles), np.sin(angles)], 1)).max() < 64 * np.finfo(float).eps


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: sheafnn.planted_frames(stalk_dim=6), "stalk_dim: 6 is not allowed; must be between 2 and 5"),
        (lambda: sheafnn.planted_frames(nodes=11), "nodes: 11 is not allowed; must be between 12"),
        (lambda: sheafnn.planted_frames(degree=600), "degree: 600 is not allowed; must be between 1 and a quarter"),
        (lambda: sheafnn.planted_frames(spread=-1), "spread: -1 is not allowed; must be between 0 and 4"),
        (lambda: sheafnn.planted_frames(curvature=5), "curvature: 5 is not allowed; must be between 0 and 4"),
        (lambda: sheafnn.planted_frames(neighbour_share=2), "neighbour_share: 2 is not allowed; must be between 0 and 1"),
        (lambda: sheafnn.planted_frames(noise="much"), "noise: 'much' is not allowed; must be a number"),
        (lambda: sheafnn.planted_geometric(classes=1), "classes: 1 is not allowed; must be between 2 and 100"),
        (lambda: sheafnn.planted_unreliable(least_concentration=1), "least_concentration: 1 is not allowed; must be between 0 and 0.99"),
        (lambda: sheafnn.planted_unreliable(most_concentration=1), r"most_concentration: 1 is not allowed; must be in \[0, 1\)"),
    ],
)
def test_errors_name_the_option(make, message):
    with pytest.raises(ValueError, match=message):
        make()
