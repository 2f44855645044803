"""The learned sheaf and Laplacians, against formulas in NumPy."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse

import sheafnn
from sheafnn import SheafClassifier


def laplacian_by_hand(sheaf):
    """Σ over edges of δᵀδ, block by block."""
    d, n = sheaf.stalk_dim, sheaf.data.node_count
    weight = {tuple(edge): w for edge, w in zip(sheaf.edges.tolist(), sheaf.edge_weights)}
    maps = {
        tuple(arc): f * weight[tuple(sorted(arc))] for arc, f in zip(sheaf.arcs.tolist(), sheaf.dense_maps())
    }
    blocks = np.zeros((n, d, n, d))
    for u, v in sheaf.arcs.tolist():
        blocks[u, :, u, :] += maps[u, v].T @ maps[u, v]
        blocks[u, :, v, :] -= maps[u, v].T @ maps[v, u]
    return blocks.reshape(n * d, n * d)


@pytest.mark.parametrize(
    ("model", "maps", "d"),
    [("bsnn", "special-orthogonal", 3), ("nsd", "general-linear", 2), ("bsnn", "diagonal", 2), ("nsd", "identity", 1),
     ("nsd", "special-orthogonal", 2)],
)
def test_learned_sheaf(karate, model, maps, d):
    classifier = SheafClassifier(model, maps, d, epochs=20).fit(karate)
    sheaf = classifier.learned_sheaf(karate)
    assert sheaf.family == maps and sheaf.stalk_dim == d
    assert sheaf.arcs.shape == (156, 2) and sheaf.edges.shape == (78, 2)
    assert (sheaf.probabilities == classifier.predict_proba(karate)).all()
    laplacian = sheaf.laplacian("none")
    assert scipy.sparse.issparse(laplacian) and laplacian.shape == (34 * d, 34 * d)
    expected = laplacian_by_hand(sheaf)
    assert np.abs(laplacian.toarray() - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.linalg.eigvalsh(sheaf.laplacian().toarray())[0] > -1e-10
    if maps == "special-orthogonal":
        assert np.abs(sheaf.maps @ sheaf.maps.transpose(0, 2, 1) - np.eye(d)).max() < 1e-12
    assert bool(sheaf.spread) == (model == "bsnn")


def test_learned_node_maps(karate):
    classifier = SheafClassifier("bcsnn", stalk_dim=2, epochs=20).fit(karate)
    maps = classifier.learned_sheaf(karate)
    assert isinstance(maps, sheafnn.NodeMaps)
    assert maps.out_rotations.shape == (34, 2, 2) and maps.in_scales.shape == (34,)
    assert np.abs(np.linalg.det(maps.out_rotations) - 1).max() < 1e-5
    assert (maps.out_scales > 0).all()
    assert {"out_kappa", "in_kappa"} <= maps.spread.keys()


def test_laplacians_of_given_maps(karate, random):
    maps = random.normal(size=(156, 3, 3))
    for normalisation in ("none", "augmented", "block", "degree"):
        matrix = sheafnn.sheaf_laplacian(karate, maps, normalisation=normalisation)
        assert abs(matrix - matrix.T).max() < 1e-12
    diagonal = random.normal(size=(156, 2))
    of_rows = sheafnn.sheaf_laplacian(karate, diagonal, family="diagonal")
    of_matrices = sheafnn.sheaf_laplacian(karate, diagonal[:, :, None] * np.eye(2), family="diagonal")
    dense = sheafnn.sheaf_laplacian(karate, diagonal[:, :, None] * np.eye(2))
    assert abs(of_rows - of_matrices).max() == 0
    assert abs(of_rows - dense).max() < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(maps=np.ones((3, 1, 1))), "maps"),
        (dict(maps=np.ones((156, 2, 2)), family="special-orthogonal"), "map"),
        (dict(maps=np.ones((156, 2, 2)), family="symmetric"), "symmetric"),
        (dict(maps=np.ones((156, 2, 2)), normalisation="row"), "normalisation"),
        (dict(maps=np.ones((156, 2, 2)), edge_weights=np.ones(78)), "edge_weights"),
        (dict(maps=np.ones((156, 2, 2)), family="diagonal"), "not diagonal"),
        (dict(maps=np.ones((156, 6, 6))), "stalk_dim"),
        (dict(maps=np.ones(156)), "1 axes"),
        (dict(maps=np.ones((2, 156, 2))), "maps: shape (2, 156, 2) is not allowed; must be 156 x d x d"),
        (dict(maps=np.ones((156, 3, 2)), family="diagonal"), "maps: shape (156, 3, 2)"),
    ],
)
def test_bad_input_is_named(karate, arguments, message):
    with pytest.raises(ValueError) as error:
        sheafnn.sheaf_laplacian(karate, **arguments)
    assert message in str(error.value)


def test_whether_the_sheaf_is_used(tmp_path):
    data = sheafnn.planted_frames(nodes=500, stalk_dim=2).data
    options = {"maps": "special-orthogonal", "stalk_dim": 2, "preset": "none", "dropout": 0, "input_dropout": 0, "weight_decay": 5e-3, "layers": 1, "channels": 8, "epochs": 200}
    with warnings.catch_warnings():
        warnings.simplefilter("error", sheafnn.UnusedSheaf)
        learned = SheafClassifier(**options, training={"sheaf_decay": 0}).fit(data, split=0)
    sheaf = learned.result_["sheaf"]
    assert sheaf["warning"] is None and sheaf["permuted"]["rise"] > 0.3 and sheaf["identity"]["rise"] > 0.3
    assert 0.5 < sheaf["spread"]["kappa"]["50%"] < 1 and sheaf["turn_degrees"]["95%"] > 60 and sheaf["kl_per_pair"] > 1
    frozen = SheafClassifier(**options, training={"sheaf_decay": 0, "sheaf_learning_rate": 1e-12})
    with pytest.warns(sheafnn.UnusedSheaf, match="the sheaf is not used"):
        frozen.fit(data, split=0)
    assert "not used" in frozen.result_["sheaf"]["warning"] and "KL weight" in frozen.result_["sheaf"]["warning"]
    # Files keep the figures. A network that is trained anew has new figures in their place.
    for classifier in (learned, frozen):
        classifier.save(tmp_path / "model.safetensors")
        loaded = SheafClassifier.load(tmp_path / "model.safetensors")
        assert loaded.sheaf_use_ == classifier.sheaf_use_ == classifier.result_["sheaf"]
        assert pickle.loads(pickle.dumps(loaded)).sheaf_use_ == loaded.sheaf_use_
        loaded.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    assert "sheaf_use" not in learned.learned_sheaf(data).spread


@pytest.mark.parametrize(("model", "maps"), [("nsd", "diagonal"), ("csnn", "special-orthogonal"), ("bcsnn", "special-orthogonal")])
def test_one_warning_that_fits_the_network(karate, model, maps):
    classifier = SheafClassifier(model, maps, 2, epochs=2, training={"sheaf_learning_rate": 1e-12})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(karate, split=0)
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, sheafnn.UnusedSheaf)]
    assert texts == [classifier.result_["sheaf"]["warning"]]
    assert ("KL weight" in texts[0]) == (model == "bcsnn")
    assert ("identity maps" in texts[0]) == (model == "nsd")
    assert f"permuted between {'edges' if model == 'nsd' else 'nodes'}" in texts[0]


def test_maps_that_are_fixed_have_no_score(karate):
    classifier = SheafClassifier("nsd", "identity", 1, epochs=5).fit(karate)
    assert classifier.sheaf_use_ is None
    sheaf = classifier.result_["sheaf"]
    assert sheaf["warning"] is None and sheaf["permuted"]["rise"] is None and sheaf["nodes"] == 0
