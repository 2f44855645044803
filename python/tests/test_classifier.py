"""SheafClassifier: fitting, predicting, uncertainty, files, interruptions."""

import _thread
import copy
import pathlib
import pickle
import signal
import tempfile
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import sheafnn
from sheafnn import SheafClassifier


def split_arrays(data):
    """Features, labels, edges and nodes of the first split."""
    return data.features, data.labels, data.edges, data.splits[0]


@pytest.mark.parametrize(
    ("model", "maps", "stalk_dim"),
    [
        ("bsnn", "special-orthogonal", 3), ("nsd", "special-orthogonal", 2), ("bsnn", "diagonal", 2),
        ("nsd", "general-linear", 2), ("nsd", "identity", 1), ("csnn", "special-orthogonal", 2),
        ("bcsnn", "special-orthogonal", 2), ("flow", "diagonal", 2), ("bflow", "diagonal", 2),
    ],
)
def test_every_network_learns(graph, model, maps, stalk_dim):
    classifier = SheafClassifier(model, maps, stalk_dim, epochs=150).fit(graph)
    test = graph.splits[0].test
    largest = np.bincount(graph.codes[test]).max() / len(test)
    assert classifier.score(graph, nodes=test) > largest + 0.2
    u = classifier.uncertainty(graph)
    assert u.probabilities.shape == (300, 3)
    assert np.allclose(u.probabilities.sum(axis=1), 1)
    assert (u.entropy <= np.log(3) + 1e-12).all()
    assert (u.mutual_information <= u.entropy + 1e-12).all()
    bayesian = model in ("bsnn", "bcsnn", "bflow") and maps != "identity"
    assert (u.mutual_information.max() > 0) == bayesian


def test_arrays_and_datasets_give_the_same_network(graph):
    features, labels, edges, split = split_arrays(graph)
    options = dict(stalk_dim=2, epochs=40, preset="small")
    of_dataset = SheafClassifier(**options).fit(graph, split=0)
    of_arrays = SheafClassifier(**options).fit(
        features, labels, edges=edges, train=split.train, validation=split.validation
    )
    assert (of_dataset.predict_proba(graph) == of_arrays.predict_proba(features, edges)).all()
    adjacency = scipy.sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=(300, 300))
    assert (of_arrays.predict(features, adjacency) == of_dataset.predict(graph)).all()


def test_the_same_seed_gives_the_same_bits_for_any_threads(graph):
    one, two = (SheafClassifier(stalk_dim=2, epochs=30, threads=t).fit(graph) for t in (1, 2))
    assert (one.predict_proba(graph) == two.predict_proba(graph)).all()
    assert (one.history_["loss"] == two.history_["loss"]).all()
    other = SheafClassifier(stalk_dim=2, epochs=30, random_state=1).fit(graph)
    assert (one.predict_proba(graph) != other.predict_proba(graph)).any()


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_seeds_from_generators(graph, make):
    one, two = (SheafClassifier(stalk_dim=2, epochs=3, random_state=make(4)).fit(graph) for _ in range(2))
    assert (one.history_["loss"] == two.history_["loss"]).all()
    other = SheafClassifier(stalk_dim=2, epochs=3, random_state=make(5)).fit(graph)
    assert (one.history_["loss"] != other.history_["loss"]).any()


def test_unknown_labels_are_not_trained_on(graph):
    features, labels, edges, split = split_arrays(graph)
    known = np.array([f"class {c}" for c in labels], object)
    known[split.test] = None
    model = SheafClassifier(stalk_dim=2, epochs=40, preset="small").fit(
        features, known, edges=edges, validation=split.validation
    )
    assert model.classes_.tolist() == ["class 0", "class 1", "class 2"]
    assert model.transduction_.shape == (300,)
    # The other labels say the same.
    truth = SheafClassifier(stalk_dim=2, epochs=40, preset="small").fit(graph)
    assert (truth.predict_proba(graph) == model.predict_proba(features, edges)).all()


def test_prediction_on_another_graph(trained, karate):
    part = sheafnn.Dataset.from_numpy([[0, 1]], karate.features[:5])
    assert trained.predict(part).shape == (5,)
    with pytest.raises(ValueError, match="3 features"):
        trained.predict(np.ones((4, 3)))


def test_files_and_copies(tmp_path, trained, karate):
    expected = trained.predict_proba(karate)
    path = tmp_path / "model.safetensors"
    trained.save(path)
    loaded = SheafClassifier.load(path)
    assert (loaded.predict_proba(karate) == expected).all()
    assert loaded.classes_.tolist() == [0, 1]
    for same in (pickle.loads(pickle.dumps(trained)), copy.deepcopy(trained)):
        assert (same.predict_proba(karate) == expected).all()
    with pytest.raises(RuntimeError, match="model.txt"):
        (tmp_path / "model.txt").write_text("nothing")
        SheafClassifier.load(tmp_path / "model.txt")


def test_files_keep_names_of_classes(tmp_path, graph):
    features, labels, edges, split = split_arrays(graph)
    for classes in (np.array(["x", "y", "z,w"]), np.array([5, 9, 70]), np.array([1.0, 2.0, 4.0])):
        model = SheafClassifier(stalk_dim=2, epochs=5).fit(features, classes[labels], edges=edges)
        model.save(tmp_path / "m.safetensors")
        loaded = SheafClassifier.load(tmp_path / "m.safetensors")
        assert loaded.classes_.tolist() == classes.tolist()
        assert loaded.predict(features, edges).dtype.kind == classes.dtype.kind


def test_callback_may_end_the_training(karate):
    seen = []
    model = SheafClassifier(stalk_dim=2, epochs=500, callback=lambda epoch: seen.append(epoch.loss) or len(seen) < 7)
    model.fit(karate)
    assert len(seen) == 7
    assert model.n_iter_ == 7
    assert model.result_["stop_reason"] == "callback"
    assert model.history_["loss"].tolist() == seen


def test_an_exception_in_the_callback_comes_out(karate):
    def fail(epoch):
        raise KeyError(f"epoch {epoch.epoch}")

    with pytest.raises(KeyError, match="epoch 0"):
        SheafClassifier(stalk_dim=2, callback=fail).fit(karate)


@pytest.mark.parametrize("more", [{}, {"progress": True}, {"callback": lambda epoch: None}], ids=["alone", "progress", "callback"])
@pytest.mark.parametrize("action", ["raise", "keep"])
def test_ctrl_c_ends_a_training(graph, more, action):
    model = SheafClassifier(stalk_dim=2, epochs=10**8, patience=10**8, on_interrupt=action, **more)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    try:
        if action == "raise":
            with pytest.raises(KeyboardInterrupt):
                model.fit(graph)
        else:
            with pytest.warns(sheafnn.Interrupted, match="interrupted after"):
                model.fit(graph)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 30
    if action == "raise":
        assert not hasattr(model, "model_")
        return
    assert model.result_["stop_reason"] == "interrupted"
    assert model.n_iter_ > 0
    assert np.isfinite(model.predict_proba(graph)).all()


def test_other_threads_run_during_a_training(graph):
    """The interpreter's lock is free: a thread counts while another one trains."""
    count = 0
    done = threading.Event()

    def train():
        SheafClassifier(stalk_dim=2, epochs=2000, patience=2000, threads=1).fit(graph)
        done.set()

    thread = threading.Thread(target=train)
    thread.start()
    while not done.wait(0.001):
        count += 1
    thread.join()
    assert count > 10


def test_progress_bar(graph, capsys):
    SheafClassifier(stalk_dim=2, epochs=20, progress=True).fit(graph)
    assert "20/20" in capsys.readouterr().err


def test_grid_search_over_datasets_of_isolated_nodes(random):
    """scikit-learn's own tools work where nodes have no edges."""
    labels = random.integers(0, 2, size=120)
    features = random.normal(size=(120, 4)) + 3 * labels[:, None]
    search = GridSearchCV(
        SheafClassifier("nsd", "identity", 1, epochs=100),
        {"channels": [4, 8]}, cv=3, error_score="raise",
    ).fit(features, labels)
    assert search.best_score_ > 0.9


def test_parameters_are_those_of_the_constructor():
    model = SheafClassifier(maps="diagonal", stalk_dim=2, network={"add_hp": True}, kl_weight=0.5)
    same = clone(model)
    assert same.get_params() == model.get_params()
    assert same.set_params(stalk_dim=4).stalk_dim == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gcn"}, "gcn"),
        ({"maps": "orthogonal"}, "orthogonal"),
        ({"stalk_dim": 9}, "9"),
        ({"preset": "tiny"}, "preset"),
        ({"dropout": 1.5}, "dropout"),
        ({"epochs": 0}, "epochs"),
        ({"network": {"chanels": 3}}, "chanels"),
        ({"network": {"features": 3}}, "features"),
        ({"network": {"filter": "fourier"}}, "fourier"),
        ({"training": {"kl_schedule": "sometimes"}}, "sometimes"),
        ({"training": {"lr": 0.1}}, "lr"),
        ({"channels": 10**6}, "channels"),
        ({"model": "flow", "maps": "diagonal", "stalk_dim": 2, "layers": 3}, "layers"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"validation_fraction": "x"}, "validation_fraction"),
        ({"random_state": -1}, "random_state: -1"),
        ({"random_state": 2**64}, "random_state"),
        ({"stalk_dim": 2.9}, "stalk_dim: 2.9"),
        ({"stalk_dim": True}, "stalk_dim: True"),
        ({"model": "csnn", "stalk_dim": 1}, "between 2 and 5"),
        ({"preset": None}, "preset: None"),
        ({"threads": None}, "threads: None"),
        ({"on_interrupt": "stop"}, "on_interrupt: 'stop'"),
        ({"kl_weight": -1}, "kl_weight: -1"),
        ({"network": {"channels": 5}}, "it is the parameter channels"),
        ({"training": {"kl_maximum": 5}}, "it is the parameter kl_weight"),
        ({"callback": 3}, "callback: 3 is not allowed; expected a function"),
        ({"progress": "x"}, "progress: 'x' is not allowed; must be True or False"),
        ({"predict_samples": 0}, "predict_samples: 0 is not allowed"),
        ({"learning_rate": "0.1"}, "learning_rate: '0.1' is not allowed; must be a number"),
        ({"epochs": "2"}, "epochs: '2' is not allowed; must be a number"),
    ],
)
def test_bad_options_are_named(graph, options, message):
    with pytest.raises(ValueError) as error:
        if "validation_fraction" in options:
            SheafClassifier(**options).fit(graph.features, graph.labels)
        else:
            SheafClassifier(**options).fit(graph)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": {"filter_degree": 9}}, "network['filter_degree']: 9 is not allowed; belongs to filter"),
        ({"network": {"filter": "chebyshev", "filter_jacobi_alpha": 1}}, "network['filter_jacobi_alpha']: 1 is not allowed; belongs to filter jacobi"),
        ({"network": {"attention_heads": 3}}, "network['attention_heads']: 3 is not allowed; belongs to layer attention"),
        ({"network": {"charge": 0.2}}, "network['charge']: 0.2 is not allowed; belongs to layer directed"),
        ({"network": {"random_phases": True}}, "network['random_phases']: true is not allowed; belongs to layer directed"),
        ({"network": {"residual_alpha": 0.2}}, "network['residual_alpha']: 0.2 is not allowed; belongs to residual_form initial"),
        ({"kl_weight": 3}, "kl_weight: 3 is not allowed; belongs to model bsnn, bcsnn, bflow and bbunn, random_attention and random_phases"),
        ({"training": {"training_samples": 2}}, "training['training_samples']: 2 is not allowed; belongs to model bsnn"),
        ({"model": "bsnn", "kl_weight": 3, "training": {"kl_schedule": "off"}}, "kl_weight: 3 is not allowed; belongs to kl_schedule"),
    ],
)
def test_options_without_effect_are_refused(karate, options, message):
    with pytest.raises(ValueError) as error:
        SheafClassifier(**{"model": "nsd", "maps": "diagonal", "stalk_dim": 2, "epochs": 2, **options}).fit(karate)
    assert str(error.value).startswith(message)


def test_options_with_an_effect_are_taken(karate):
    options = {"filter": "chebyshev", "filter_degree": 2}
    assert SheafClassifier("nsd", "diagonal", 2, epochs=2, network=options).fit(karate).n_iter_ == 2
    assert SheafClassifier("bsnn", "diagonal", 2, epochs=2, kl_weight=0.5).fit(karate).n_iter_ == 2


def test_bad_arguments_of_fit_are_named(graph):
    features, labels, edges, _ = split_arrays(graph)
    with pytest.raises(TypeError, match="network: the key 1 is not allowed; expected the name of an option"):
        SheafClassifier(network={1: 2}).fit(graph)
    with pytest.raises(ValueError, match="split: 77"):
        SheafClassifier().fit(graph, split=77)
    with pytest.raises(ValueError, match="a Dataset has its own"):
        SheafClassifier().fit(graph, labels)
    with pytest.raises(ValueError, match="train: node 300"):
        SheafClassifier().fit(features, labels, edges=edges, train=[300])
    with pytest.raises(TypeError, match="channels"):
        SheafClassifier(channels=[3]).fit(graph)
    with pytest.raises(TypeError, match="network: str"):
        SheafClassifier(network="x").fit(graph)
    with pytest.raises(ValueError, match="split: 0.5"):
        SheafClassifier().fit(graph, split=0.5)
    with pytest.raises(ValueError, match="split: 1 is not allowed; only a Dataset has splits"):
        SheafClassifier().fit(features, labels, edges=edges, split=1)
    with pytest.raises(ValueError, match="make_splits"):
        SheafClassifier().fit(graph.with_splits([]))
    with pytest.raises(ValueError, match="needs labels"):
        SheafClassifier().fit(sheafnn.Dataset.from_numpy(edges, features))
    with pytest.warns(UserWarning, match="the last epoch is kept"):
        SheafClassifier(stalk_dim=2, epochs=3).fit(features[:4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="none is left"):
        SheafClassifier(validation_fraction=0.999).fit(features[:4], [0, 0, 1, 1])


def test_score_looks_at_its_arguments(trained, karate):
    features, labels = karate.features, karate.labels
    assert trained.score(features, labels, karate.edges) == trained.score(karate, nodes=np.arange(34))
    assert trained.score(features, labels[:, None], karate.edges) == trained.score(features, labels, karate.edges)
    for y in (labels[:5], 0, np.zeros((34, 2))):
        with pytest.raises(ValueError, match="y: shape"):
            trained.score(features, y)
    with pytest.raises(ValueError, match="y to be passed"):
        trained.score(features)
    with pytest.raises(ValueError, match="its own labels"):
        trained.score(karate, labels)
    with pytest.raises(ValueError, match="a score needs labels"):
        trained.score(sheafnn.Dataset.from_numpy(karate.edges, features), nodes=[3])
    with pytest.raises(ValueError, match="predict_samples"):
        clone_of = copy.deepcopy(trained).set_params(predict_samples=0)
        clone_of.predict(karate)
    with pytest.raises(ValueError, match="stalk_dim: 4 is not allowed"):
        _load_with(trained, stalk_dim=4)


def test_score_looks_at_test_nodes(graph):
    model = SheafClassifier("nsd", stalk_dim=2, epochs=30).fit(graph, split=1)
    split = graph.splits[1]
    assert model.score(graph) == model.result_["test_accuracy"] == model.score(graph, nodes=split.test)
    assert model.score(graph, nodes=split.train) > model.score(graph)
    untested = graph.with_splits([(split.train, split.validation, [])])
    rest = np.setdiff1d(np.arange(300), np.concatenate([split.train, split.validation]))
    assert model.score(untested) == model.score(graph, nodes=rest)
    assert model.score(graph.with_splits([])) == model.score(graph, nodes=np.arange(300))
    with pytest.raises(ValueError, match="nodes: none .* the split has no test nodes, name others with nodes="):
        model.score(graph.with_splits([(split.train, rest.tolist() + split.validation.tolist(), [])]))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m.safetensors")
        assert SheafClassifier.load(f"{folder}/m.safetensors").score(graph) == model.score(graph)
        model.model_.save(f"{folder}/m.safetensors", {})
        older = SheafClassifier.load(f"{folder}/m.safetensors")
    with pytest.raises(ValueError, match="which of the 10 splits"):
        older.score(graph)
    assert older.score(graph.with_splits([split])) == model.score(graph)
    assert older.score(graph, nodes=split.test) == model.score(graph)


def test_score_of_other_classes(graph):
    """Numbers that are written otherwise are the same class, other classes are never right."""
    names = np.array(["0", "1", "2"])
    model = SheafClassifier(stalk_dim=2, epochs=10).fit(sheafnn.Dataset.from_numpy(graph.edges, graph.features, names[graph.codes], splits=graph.splits))
    longer = np.array(["0.0", "1.0", "2"])[graph.codes]
    assert model.score(graph.features, longer, graph.edges) == model.score(graph.features, names[graph.codes], graph.edges) > 0
    others = sheafnn.Dataset.from_numpy(graph.edges, graph.features, longer, splits=graph.splits)
    assert model.score(others) == model.score(graph.features, longer, graph.edges, nodes=graph.splits[0].test)
    strangers = sheafnn.Dataset.from_numpy(graph.edges, graph.features, graph.codes)
    with pytest.raises(ValueError, match=r"none of its classes \[0, 1, 2\] is one of the network's, \['0', '1', '2'\]"):
        model.score(strangers)
    assert model.score(graph.features, np.array(["x", "y", "1"])[graph.codes], graph.edges) <= np.mean(graph.codes == 2)


def test_a_network_of_a_graph_asks_for_the_graph(graph, tmp_path):
    features, labels, edges, split = split_arrays(graph)
    model = SheafClassifier(stalk_dim=2, epochs=5).fit(features, labels, edges=edges)
    model.save(tmp_path / "m.safetensors")
    loaded = SheafClassifier.load(tmp_path / "m.safetensors")
    pipeline = make_pipeline(MaxAbsScaler(), SheafClassifier(stalk_dim=2, epochs=5))
    pipeline.fit(features, labels, sheafclassifier__edges=edges)
    of_program = copy.deepcopy(model)
    of_program.model_.save(str(tmp_path / "p.safetensors"), {})
    for asked in (model, loaded, pipeline, pickle.loads(pickle.dumps(model)), SheafClassifier.load(tmp_path / "p.safetensors")):
        for call in ("predict", "predict_proba"):
            with pytest.raises(ValueError, match="edges: missing; the network was trained with edges"):
                getattr(asked, call)(features)
            assert len(getattr(asked, call)(features, edges=edges)) == 300
            alone = getattr(asked, call)(features, edges=None)
            assert (getattr(asked, call)(features, edges=[]) == alone).all()
    for call in (model.uncertainty, model.learned_sheaf, lambda X: model.score(X, labels)):
        with pytest.raises(ValueError, match="edges: missing"):
            call(features)
    rows = SheafClassifier("nsd", "diagonal", 2, epochs=5).fit(features, labels)
    assert (rows.predict(features) == rows.predict(features, edges=None)).all()


def test_edges_without_edges_are_none(graph):
    rows = SheafClassifier("nsd", "diagonal", 2, epochs=5).fit(graph.features, graph.labels, edges=[])
    assert len(rows.predict(graph.features)) == 300


def _load_with(model, **parameters):
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m.safetensors")
        return SheafClassifier.load(f"{folder}/m.safetensors", **parameters)


def test_nan_among_texts_is_unknown(graph):
    features, labels, edges, _ = split_arrays(graph)
    known = [f"class {c}" for c in labels]
    known[3] = float("nan")
    model = SheafClassifier(stalk_dim=2, epochs=3).fit(features, known, edges=edges)
    assert model.classes_.tolist() == ["class 0", "class 1", "class 2"]


def test_numpy_false_ends_a_training(karate):
    model = SheafClassifier(stalk_dim=2, callback=lambda epoch: np.bool_(False)).fit(karate)
    assert model.n_iter_ == 1


def test_learned_sheaf_is_short_to_print_and_pickles(trained, karate):
    sheaf = trained.learned_sheaf(karate)
    assert repr(sheaf) == "<LearnedSheaf: special-orthogonal maps of 156 arcs, stalk dimension 2>"
    same = pickle.loads(pickle.dumps(sheaf))
    assert (same.maps == sheaf.maps).all() and (same.arcs == karate.arcs).all()


def test_networks_without_edges_judge_rows_alone(random):
    labels = random.integers(0, 2, size=60)
    features = random.normal(size=(60, 3)) + 2 * labels[:, None]
    model = SheafClassifier("nsd", "diagonal", 2, epochs=30).fit(features, labels)
    all_rows = model.predict_proba(features)
    some = model.predict_proba(features[10:20])
    assert np.abs(all_rows[10:20] - some).max() < 1e-6


def test_no_warnings(karate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sheafnn.UnusedSheaf)
        SheafClassifier(stalk_dim=2, epochs=5).fit(karate).predict(karate)


def test_old_files_without_residual_predict_what_they_did(karate, tmp_path):
    # Written by 0.1.0, whose layers without residual had the opposite sign.
    folder = pathlib.Path(__file__).parents[2] / "tests" / "files" / "1"
    expected = np.load(folder / "karate.npy")
    old = SheafClassifier.load(folder / "karate.safetensors")
    assert old.sheaf_use_ is None
    assert np.abs(old.predict_proba(karate) - expected).max() < 1e-5  # single precision
    old.save(tmp_path / "new.safetensors")
    new = SheafClassifier.load(tmp_path / "new.safetensors")
    assert (new.predict_proba(karate) == old.predict_proba(karate)).all()


def test_scores_with_weights(graph):
    model = sheafnn.SheafClassifier("nsd", "identity", 1, epochs=2).fit(graph)
    features, labels, edges = graph.features, graph.labels, graph.edges
    weights = np.arange(300.0)
    right = model.predict(graph) == labels
    assert 0 < right.sum() < 300
    error = 300 * np.finfo(float).eps
    assert abs(model.score(features, labels, edges=edges, sample_weight=weights) - weights[right].sum() / weights.sum()) < error
    assert abs(model.score(features, labels, edges=edges, sample_weight=np.ones(300)) - model.score(features, labels, edges=edges)) < error
    test = graph.splits[0].test
    assert abs(model.score(graph, sample_weight=weights) - (weights * right)[test].sum() / weights[test].sum()) < error
    for wrong, message in (
        ([1.0], r"sample_weight: shape \(1,\) is not allowed; expected one number for each of 300"),
        (np.where(weights == 3, -1, weights), r"sample_weight\[3\]: -1.0 is not allowed"),
        (np.where(weights == 3, np.nan, weights), r"sample_weight\[3\]: nan is not allowed"),
        (np.zeros(300), "sample_weight: 0 is not allowed for all"),
    ):
        with pytest.raises(ValueError, match=message):
            model.score(graph, sample_weight=wrong)


def test_scores_of_a_pipeline_with_edges(graph):
    features, labels, edges = graph.features.toarray(), graph.labels, graph.edges
    steps = make_pipeline(StandardScaler(), sheafnn.SheafClassifier("nsd", "identity", 1, epochs=2))
    steps.fit(features, labels, sheafclassifier__edges=edges)
    expected = np.mean(steps.predict(features, edges=edges) == labels)
    assert steps[-1].score(steps[:-1].transform(features), labels, edges=edges) == expected
