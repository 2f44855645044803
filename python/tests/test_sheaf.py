"""The learned sheaf and Laplacians, against formulas in NumPy."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.transform import Rotation

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
        (dict(maps=np.ones((156, 2, 2)), family="symmetric"), "family: symmetric"),
        (dict(maps=np.full((156, 2), np.nan), family="diagonal"), "maps[0]"),
        (dict(maps=np.eye(2)[None].repeat(156, 0), family="special-orthogonal", edge_weights=np.ones(3)), "edge_weights: 3"),
        (dict(maps=np.eye(2)[None].repeat(156, 0), family="special-orthogonal", edge_weights=-np.ones(78)), "edge_weights"),
        (dict(maps=np.ones((156, 2, 2)), normalisation="row"), "normalisation"),
        (dict(maps=np.ones((156, 2, 2)), edge_weights=np.ones(78)), "edge_weights"),
        (dict(maps=np.ones((156, 2, 2)), family="diagonal"), "not diagonal"),
        (dict(maps=np.ones((156, 6, 6))), "stalk_dim"),
        (dict(maps=np.ones(156)), "1 axes"),
        (dict(maps=np.ones((2, 156, 2))), "maps: shape (2, 156, 2) is not allowed; must be 156 x d x d"),
        (dict(maps=np.ones((156, 2))), 'a map for each arc, or 156 x d with family="diagonal"'),
        (dict(maps=np.ones((156, 3, 2)), family="diagonal"), "maps: shape (156, 3, 2)"),
    ],
)
def test_bad_input_is_named(karate, arguments, message):
    for use in (sheafnn.sheaf_laplacian, sheafnn.CellularSheaf):
        with pytest.raises(ValueError) as error:
            use(karate, **arguments)
        assert message in str(error.value)


def test_a_sheaf_has_maps_of_its_own(karate):
    maps, weights = np.eye(2)[None].repeat(156, 0), np.ones(78)
    sheaf = sheafnn.CellularSheaf(karate, maps, weights, family="special-orthogonal")
    maps[:], weights[:] = 7, 7
    assert (sheaf.maps == np.eye(2)).all() and (sheaf.edge_weights == 1).all()
    for own in (sheaf.maps, sheaf.edge_weights):
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 9


def test_sheaves_are_copied_and_pickled(karate):
    maps, weights = sheafnn.rotations.haar(156, 3, seed=1), np.arange(1.0, 79)
    for sheaf in (
        sheafnn.CellularSheaf(karate, maps, weights, family="special-orthogonal", normalisation="block"),
        sheafnn.CellularSheaf(karate, maps[:, 0], family="diagonal"),
        sheafnn.CellularSheaf(karate, np.empty((156, 0)), family="identity"),
    ):
        for same in (pickle.loads(pickle.dumps(sheaf)), copy.deepcopy(sheaf)):
            assert repr(same) == repr(sheaf) and (same.laplacian() != sheaf.laplacian()).nnz == 0


def test_rotations_of_less_precision(karate):
    maps = sheafnn.rotations.haar(156, 3, seed=1)
    exact = sheafnn.CellularSheaf(karate, maps, family="special-orthogonal")
    assert (exact.maps == maps).all()
    single = sheafnn.CellularSheaf(karate, maps.astype(np.float32), family="special-orthogonal")
    assert np.abs(single.maps - maps).max() < 1e-6
    assert np.abs(single.maps @ single.maps.transpose(0, 2, 1) - np.eye(3)).max() < 1e-14
    objects = sheafnn.CellularSheaf(karate, Rotation.from_matrix(maps), family="special-orthogonal")
    assert np.abs(objects.maps - maps).max() < 1e-14
    with pytest.raises(ValueError, match="maps.*is not allowed"):
        sheafnn.CellularSheaf(karate, maps + 1e-6, family="special-orthogonal")  # of doubles


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


@pytest.fixture
def given(karate, random):
    maps = random.normal(size=(156, 2, 2))
    return sheafnn.CellularSheaf(karate, maps)


def test_eigenpairs(given):
    dense = given.laplacian().toarray()
    values, vectors = np.linalg.eigh(dense)
    pairs = given.eigenpairs(5)
    assert pairs.vectors.shape == (34, 2, 5)
    assert np.abs(pairs.values - values[:5]).max() < 1e-10 * values[-1]
    flat = pairs.vectors.reshape(68, 5)
    assert np.abs(dense @ flat - flat * pairs.values).max() < 1e-10 * values[-1]
    assert np.abs(flat.T @ flat - np.eye(5)).max() < 1e-12
    large = sheafnn.CellularSheaf(sheafnn.synthetic(nodes=600, degree=4, seed=1), np.empty((0, 0)), family="identity")
    some = large.eigenpairs(3, seed=4)  # by iteration
    exact = np.linalg.eigvalsh(large.laplacian().toarray())
    assert np.abs(some.values - exact[:3]).max() < 1e-9 * exact[-1]


def test_approximate_sections(given):
    found = given.approximate_sections(4)
    x = found.sections.reshape(68, 4)
    dense = given.laplacian().toarray()
    assert np.abs(np.diag(x.T @ dense @ x) - found.disagreement).max() < 1e-10
    scaled = sheafnn.CellularSheaf(given.data, given.maps, normalisation="block")
    found = scaled.approximate_sections(4)
    x = found.sections.reshape(68, 4)  # measured by the Laplacian without normalisation
    assert np.abs(np.diag(x.T @ dense @ x) - found.disagreement).max() < 1e-10


def test_harmonic_space(karate):
    r = sheafnn.rotations.haar(34, 2, seed=3)
    maps = r[karate.arcs[:, 0]].transpose(0, 2, 1)  # sections are x_u = R_u h
    basis = sheafnn.CellularSheaf(karate, maps, family="special-orthogonal").harmonic_space()
    assert basis.shape == (34, 2, 2)
    own = np.einsum("uji,ujk->uik", r, basis)
    assert np.abs(own - own[0]).max() < 1e-12
    assert np.abs(np.einsum("uik,uil->kl", basis, basis) - np.eye(2)).max() < 1e-12


def test_harmonic_extension(given):
    fixed = [3, 0, 20]
    values = np.arange(12.0).reshape(3, 2, 2)
    whole = given.harmonic_extension(fixed, values)
    assert (whole[fixed] == values).all()
    free = np.setdiff1d(np.arange(34), fixed)
    residual = (given.laplacian() @ whole.reshape(68, 2)).reshape(34, 2, 2)[free]
    assert np.abs(residual).max() < 1e-9 * np.abs(whole).max()
    assert (given.harmonic_extension(fixed, values[:, :, 0]) == whole[:, :, 0]).all()


def test_synchronisation(random):
    truth = sheafnn.rotations.haar(40, 3, seed=1)
    edges = np.array([[u, v] for u in range(40) for v in range(40) if u != v and (u < v) == (random.random() < 0.5)])
    edges = edges[np.unique(np.sort(edges, axis=1), axis=0, return_index=True)[1]]
    random.shuffle(edges)
    exact = truth[edges[:, 0]] @ truth[edges[:, 1]].transpose(0, 2, 1)
    found = sheafnn.synchronise(edges, exact)
    assert np.abs(found.rotations @ found.rotations[0].T - truth @ truth[0].T).max() < 1e-10
    assert abs(found.disagreement) < 1e-10 and np.abs(np.linalg.det(found.rotations) - 1).max() < 1e-10
    noise = sheafnn.rotations.Cayley(np.eye(3), 0.95).sample(len(edges), seed=2)
    weights = random.uniform(0.5, 2, len(edges))
    noisy = sheafnn.synchronise(edges, noise @ exact, weights)
    x = noisy.rotations
    by_hand = (weights**2 * ((x[edges[:, 0]] - noise @ exact @ x[edges[:, 1]]) ** 2).sum(axis=(1, 2))).sum()
    assert noisy.disagreement == pytest.approx(by_hand, rel=1e-9) and noisy.bound < noisy.disagreement
    of_truth = (weights**2 * ((truth[edges[:, 0]] - noise @ exact @ truth[edges[:, 1]]) ** 2).sum(axis=(1, 2))).sum()
    assert noisy.disagreement < of_truth


def test_the_learned_sheaf_has_them(karate, trained):
    sheaf = trained.learned_sheaf(karate).sheaf()
    assert (sheaf.laplacian() != trained.learned_sheaf(karate).laplacian()).nnz == 0
    assert sheaf.eigenpairs(3).values.shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sheaf: sheaf.eigenpairs(0), "count: 0 is not allowed; must be between 1 and 68"),
        (lambda sheaf: sheaf.eigenpairs(69), "count: 69 is not allowed; must be between 1 and 68"),
        (lambda sheaf: sheaf.eigenpairs(2, tolerance=-1), "tolerance: -1 is not allowed"),
        (lambda sheaf: sheaf.harmonic_space(tolerance=2), r"tolerance: 2 is not allowed; must be in \[0, 1\)"),
        (lambda sheaf: sheaf.harmonic_extension([0, 0], np.ones((2, 2))), "nodes: 0 is not allowed; a node may appear only once"),
        (lambda sheaf: sheaf.harmonic_extension([0], np.ones((2, 2))), r"values: shape \(2, 2\) is not allowed; expected 1 x 2, or 1 x 2 x f"),
        (lambda sheaf: sheaf.harmonic_extension([0], [[1, np.nan]]), r"values\(0, 1\)|values\(1, 0\)"),
        (lambda sheaf: sheaf.nearest_section(), "family: general-linear is not allowed; only rotations are synchronised"),
        (lambda sheaf: sheafnn.synchronise([[0, 1]], np.ones((1, 3, 3))), r"rotations\[0\]"),
        (lambda sheaf: sheafnn.synchronise([[0, 1], [1, 0]], np.eye(3)[None].repeat(2, 0)), "edges: 2 are not allowed where 1 are different"),
        (lambda sheaf: sheafnn.synchronise([[0, 1]], np.eye(3)[None].repeat(2, 0)), "rotations: 2 are not allowed; expected one for each of 1 edges"),
        (lambda sheaf: sheafnn.synchronise([[0, 1], [2, 3]], np.eye(3)[None].repeat(2, 0)), "connected components of the graph: 2 is not allowed"),
        (lambda sheaf: sheafnn.synchronise([[0, 1]], np.eye(3)[None], [1, 2]), r"weights: shape \(2,\) is not allowed"),
    ],
)
def test_bad_input_of_given_sheaves(given, call, message):
    with pytest.raises(ValueError, match=message):
        call(given)


def frame_by_hand(features, neighbours, u, d):
    """The first left singular vectors of the differences to the neighbours, each with its largest entry positive."""
    vectors = np.linalg.svd((features[neighbours] - features[u]).T, full_matrices=False)[0][:, :d]
    return vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(d)])


@pytest.mark.parametrize("special", [False, True])
def test_connection(random, special):
    features = random.normal(size=(8, 5))
    edges = [(u, v) for u in range(8) for v in range(u + 1, 8) if (u + v) % 3]
    data = sheafnn.Dataset.from_numpy(edges, features)
    sheaf = sheafnn.connection_sheaf(data, 2, special=special)
    laplacian = laplacian_blocks(sheaf)
    neighbours = [[v for e in edges for v in e if u in e and v != u] for u in range(8)]
    frames = [frame_by_hand(features, neighbours[u], u, 2) for u in range(8)]
    for u, v in edges:
        left, _, right = np.linalg.svd(frames[u].T @ frames[v])
        sign = np.sign(np.linalg.det(left @ right)) if special else 1
        expected = left @ np.diag([1, sign]) @ right
        assert np.abs(-laplacian[u, :, v] - expected).max() < 1e-12
    assert np.linalg.eigvalsh(sheaf.laplacian().toarray())[0] > -1e-12
    with pytest.raises(ValueError, match="at least as many"):
        sheafnn.connection_sheaf(sheafnn.Dataset.from_numpy(edges, features[:, :1]), 2)


def laplacian_blocks(sheaf):
    """Blocks of the Laplacian without normalisation."""
    plain = sheafnn.CellularSheaf(sheaf.data, sheaf.maps, family=sheaf.family)
    n, d = sheaf.data.node_count, sheaf.stalk_dim
    return plain.laplacian().toarray().reshape(n, d, n, d)


def test_networks_on_connections(karate, tmp_path):
    for model in ("conn-nsd", "bconn-nsd"):
        classifier = SheafClassifier(model, stalk_dim=2, epochs=10, network={"gauge": "pivots"}).fit(karate)
        classifier.save(tmp_path / "model.safetensors")
        loaded = SheafClassifier.load(tmp_path / "model.safetensors")
        assert (loaded.predict_proba(karate) == classifier.predict_proba(karate)).all()
