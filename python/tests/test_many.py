"""Many trainings side by side: results of single fits, the table, Ctrl-C, bad input."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import sheafnn
from sheafnn import HypergraphClassifier, SheafClassifier, fit_many


@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
@pytest.mark.parametrize("model", ["bsnn", "nsd", "csnn"])
def test_results_are_those_of_single_fits(graph, model):
    base = SheafClassifier(model, "diagonal", 2, epochs=8)
    many = fit_many(graph, base, splits=[2, 0], seeds=[5, 1], threads=3)
    assert many.table["split"].tolist() == [2, 2, 0, 0] and many.table["seed"].tolist() == [5, 1, 5, 1]
    for own, split, seed in zip(many, many.table["split"], many.table["seed"]):
        single = SheafClassifier(model, "diagonal", 2, epochs=8, random_state=int(seed)).fit(graph, split=int(split))
        assert own.split_ == split and own.random_state == seed
        tensors, others = own.model_.tensors(), single.model_.tensors()
        assert tensors.keys() == others.keys() and all((tensors[name] == others[name]).all() for name in others)
        assert (own.predict_proba(graph) == single.predict_proba(graph)).all()
        assert (own.history_["loss"] == single.history_["loss"]).all()
        assert own.score(graph) == single.score(graph)
    assert many.table["test_accuracy"].tolist() == [own.result_["test_accuracy"] for own in many]
    assert len(many) == 4 and many[3] is many.classifiers[3]


@pytest.fixture(scope="module")
def hypergraph():
    return sheafnn.synthetic_hypergraph(nodes=100, classes=3, features=20, words=6, hyperedges=120, homophily=0.9, splits=3)


@pytest.mark.parametrize("model", ["shgnn", "bshgnn"])
def test_results_on_hypergraphs_are_those_of_single_fits(hypergraph, model):
    base = HypergraphClassifier(model, channels=4, epochs=8, threads=2)
    many = fit_many(hypergraph, base, splits=[2, 0], seeds=[5, 1], device="cpu", threads=3)
    assert many.table["split"].tolist() == [2, 2, 0, 0] and many.table["seed"].tolist() == [5, 1, 5, 1]
    for own, split, seed in zip(many, many.table["split"], many.table["seed"]):
        single = HypergraphClassifier(model, channels=4, epochs=8, random_state=int(seed)).fit(hypergraph, split=int(split))
        assert own.split_ == split and own.random_state == seed and own.threads == 2
        tensors, others = own.model_.tensors(), single.model_.tensors()
        assert tensors.keys() == others.keys() and all((tensors[name] == others[name]).all() for name in others)
        assert (own.predict_proba(hypergraph) == single.predict_proba(hypergraph)).all()
        assert own.score(hypergraph) == single.score(hypergraph)
    assert many.table["test_accuracy"].tolist() == [own.result_["test_accuracy"] for own in many]
    assert len(fit_many(hypergraph, HypergraphClassifier(epochs=1))) == 3
    with pytest.raises(RuntimeError, match="split 1, seed 4: .*diverged in epoch"):
        fit_many(hypergraph, HypergraphClassifier(model, epochs=20, learning_rate=1e30), splits=[1], seeds=[4])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"classifier": SheafClassifier()}, TypeError, "classifier: SheafClassifier is not allowed; expected a HypergraphClassifier"),
        ({"classifier": HypergraphClassifier(callback=print)}, ValueError, "classifier: callback=.* belongs to single fits"),
        ({"device": "cuda"}, ValueError, "device: 'cuda' is not allowed; choose cpu"),
        ({"splits": [3]}, ValueError, "splits: 3 is not allowed; must be between 0 and 2"),
        ({"classifier": HypergraphClassifier(epochs=-1)}, ValueError, "epochs: -1 is not allowed"),
    ],
)
def test_bad_input_on_hypergraphs(hypergraph, arguments, error, message):
    with pytest.raises(error, match=message):
        fit_many(hypergraph, **arguments)


def test_hypergraphs_without_splits(hypergraph):
    with pytest.raises(ValueError, match=r"data: it has no splits; make some with with_splits\(\)"):
        fit_many(hypergraph.with_splits([]))


@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
def test_defaults_and_table(karate):
    base = SheafClassifier(stalk_dim=2, epochs=5, random_state=3)
    many = fit_many(karate, base)
    assert many.table["split"].tolist() == list(range(len(karate.splits))) and set(many.table["seed"]) == {3}
    assert not hasattr(base, "model_")
    mean = many.table["test_accuracy"].mean()
    assert f"test_accuracy: {mean:.4f} +- " in repr(many)
    assert {"best_epoch", "stop_reason", "test_nll", "epoch_seconds"} <= many.table.keys()


def test_unused_sheaves_are_one_warning():
    data = sheafnn.synthetic(nodes=200, classes=2, features=20, words=8, degree=4, homophily=0.5, seed=2)
    with pytest.warns(sheafnn.UnusedSheaf, match="[0-9] of 2 trainings: ") as caught:
        fit_many(data, SheafClassifier("nsd", "diagonal", 2, epochs=30), splits=[0, 1])
    assert len(caught) == 1


def test_a_diverged_training_says_which(karate):
    base = SheafClassifier(stalk_dim=2, epochs=20, learning_rate=1e30)
    with pytest.raises(RuntimeError, match="split 1, seed 4: .*diverged in epoch"):
        fit_many(karate, base, splits=[1], seeds=[4])


INTERRUPTED = """
    import os, signal, sys, threading, time, warnings, sheafnn
    data = sheafnn.synthetic(nodes=300)
    base = sheafnn.SheafClassifier(stalk_dim=2, epochs=10**6, patience=10**6, on_interrupt=sys.argv[1])
    threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            many = sheafnn.fit_many(data, base, splits=[0, 1, 2], threads=2)
        print(len(many), [str(w.message) for w in caught if w.category is sheafnn.Interrupted], set(many.table["stop_reason"].tolist()))
    except KeyboardInterrupt:
        print("interrupted")
"""


# A shell's background jobs ignore SIGINT.
HANDLER = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run(program, *arguments):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(sheafnn.__file__)), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", HANDLER + textwrap.dedent(program), *arguments], text=True, capture_output=True, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_interrupted():
    assert run(INTERRUPTED, "raise").stdout == "interrupted\n"
    kept = run(INTERRUPTED, "keep").stdout
    assert kept == "2 ['interrupted; 3 of 3 trainings are not complete'] {'interrupted'}\n"


def test_interrupted_between_the_trainings_starts():
    program = """
        import concurrent.futures, sheafnn
        submit, begun = concurrent.futures.ThreadPoolExecutor.submit, []
        def once(pool, *arguments):
            if begun:
                raise KeyboardInterrupt
            begun.append(submit(pool, *arguments))
            return begun[0]
        concurrent.futures.ThreadPoolExecutor.submit = once
        try:
            base = sheafnn.SheafClassifier(stalk_dim=2, epochs=10**6, patience=10**6)
            sheafnn.fit_many(sheafnn.synthetic(nodes=300), base, splits=[0, 1], threads=2)
        except KeyboardInterrupt:
            print(len(begun), begun[0].done())
    """
    assert run(program).stdout == "1 True\n"


def test_interrupted_while_another_thread_receives_the_signal():
    program = """
        import signal, threading, sheafnn
        threading.Timer(1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
        try:
            base = sheafnn.SheafClassifier(stalk_dim=2, epochs=10**6, patience=10**6)
            sheafnn.fit_many(sheafnn.synthetic(nodes=300), base, splits=[0, 1], threads=2)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert run(program).stdout == "interrupted\n"


def test_devices(karate):
    if sheafnn._core.has_device_models:
        pytest.skip("built with CUDA")
    message = "device: 'cuda' is not allowed; this package was built without CUDA, where nvcc is 'pip install"
    with pytest.raises(ValueError, match=message):
        fit_many(karate, device="cuda")
    with pytest.raises(ValueError, match=message):
        SheafClassifier(device="cuda").fit(karate)
    with pytest.raises(ValueError, match="device: 'gpu' is not allowed; choose cpu, cuda or cuda:NUMBER"):
        SheafClassifier(device="gpu").fit(karate)
    with pytest.raises(ValueError, match="device: 'cuda:-1' is not allowed; choose cpu, cuda or cuda:NUMBER"):
        fit_many(karate, device="cuda:-1")


def fit_on_device(*arguments, **more):
    """fit_many(device="cuda"); skips the test where this build is without the model for devices."""
    try:
        return fit_many(*arguments, device="cuda", **more)
    except ValueError as error:
        if "SHEAFNN_DEVICE_MODELS" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.skipif(not sheafnn._core.has_device_models, reason="built without CUDA")
@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
def test_device_trainings_are_those_of_the_cpu(graph):
    """Close: a device sums in another order."""
    base = SheafClassifier("bsnn", "special-orthogonal", 2, epochs=5)
    own, cpu = fit_on_device(graph, base, splits=[0, 1], seeds=[0, 1]), fit_many(graph, base, splits=[0, 1], seeds=[0, 1])
    for one, other in zip(own, cpu):
        assert np.abs(one.history_["loss"] - other.history_["loss"]).max() < 1e-3
        assert np.abs(one.predict_proba(graph) - other.predict_proba(graph)).max() < 1e-2
    single = SheafClassifier("bsnn", "special-orthogonal", 2, epochs=5, device="cuda", random_state=1).fit(graph, split=1)
    assert (single.history_["loss"] == own[3].history_["loss"]).all()
    for method in ("euler", "dormand-prince"):
        flow = SheafClassifier("flow", "diagonal", 2, epochs=5, method=method)
        for one, other in zip(fit_on_device(graph, flow, seeds=[0, 1]), fit_many(graph, flow, seeds=[0, 1])):
            assert np.abs(one.history_["loss"] - other.history_["loss"]).max() < 1e-3


@pytest.mark.skipif(not sheafnn._core.has_device_models, reason="built without CUDA")
@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
@pytest.mark.parametrize("model", ["csnn", "bcsnn", "conn-nsd", "bconn-nsd"])
def test_trainings_of_other_networks_on_a_device_are_those_of_the_cpu(graph, model):
    base = SheafClassifier(model, stalk_dim=2, epochs=5)
    own, cpu = (fit(graph, base, splits=[0, 1], seeds=[0, 1]) for fit in (fit_on_device, fit_many))
    for one, other in zip(own, cpu):
        assert np.abs(one.history_["loss"] - other.history_["loss"]).max() < 1e-3
    if "conn" in model:
        return
    with pytest.raises(ValueError, match="learner_layers: 2 is not allowed; the batch engine has one layer of the learner sage"):
        SheafClassifier(model, stalk_dim=2, device="cuda", network={"learner": "sage", "learner_layers": 2}).fit(graph)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("model", ["snn", "bsnn-given"])
def test_convolutions_on_a_given_sheaf(graph, model, device):
    """Equal to single fits, on a device close to them."""
    if device == "cuda" and not sheafnn._core.has_device_models:
        pytest.skip("built without CUDA")
    maps = np.random.default_rng(0).normal(size=(2 * graph.edge_count, 2))
    sheaf = sheafnn.CellularSheaf(graph, maps, family="diagonal")
    given = graph.with_sheaf(sheaf, edge_labels=np.arange(graph.edge_count) % 3)
    fit = fit_on_device if device == "cuda" else fit_many
    many = fit(given, SheafClassifier(model, "diagonal", 2, epochs=5), splits=[0, 1], seeds=[0, 1])
    for one, split, seed in zip(many, many.table["split"], many.table["seed"]):
        single = SheafClassifier(model, "diagonal", 2, epochs=5, random_state=int(seed)).fit(given, split=int(split))
        difference = np.abs(one.history_["loss"] - single.history_["loss"]).max()
        assert difference == 0 if device == "cpu" else difference < 1e-3
        assert np.abs(one.predict_proba(given) - single.predict_proba(given)).max() < 1e-2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"data": 3}, TypeError, "data: int is not allowed; expected a Dataset or a Hypergraph"),
        ({"classifier": 3}, TypeError, "classifier: int is not allowed; expected a SheafClassifier"),
        ({"classifier": HypergraphClassifier()}, TypeError, "classifier: HypergraphClassifier is not allowed; expected a SheafClassifier"),
        ({"classifier": SheafClassifier(search=3)}, ValueError, "classifier: search=3 is not allowed; search belongs to single fits"),
        ({"classifier": SheafClassifier(progress=True)}, ValueError, "classifier: progress=True is not allowed"),
        ({"splits": [99]}, ValueError, "splits: 99 is not allowed; must be between 0 and"),
        ({"splits": 1}, ValueError, "splits: 1 is not allowed; expected a list of whole numbers"),
        ({"splits": []}, ValueError, "splits: an empty list is not allowed; name at least one"),
        ({"seeds": [1, 1]}, ValueError, "seeds: 1 is not allowed twice"),
        ({"seeds": [np.random.default_rng(0), np.random.default_rng(0)]}, ValueError, "seeds: [0-9]+ is not allowed twice"),
        ({"seeds": [-1]}, ValueError, "seeds: -1 is not allowed; must be between 0 and"),
        ({"threads": -1}, ValueError, "threads: -1 is not allowed; must be between 0 and 4096"),
        ({"classifier": SheafClassifier(stalk_dim=9)}, ValueError, "stalk_dim: 9 is not allowed"),
    ],
)
def test_bad_input(karate, arguments, error, message):
    with pytest.raises(error, match=message):
        fit_many(**{"data": karate, **arguments})


def test_data_without_splits(karate):
    with pytest.raises(ValueError, match="data: it has no splits"):
        fit_many(karate.with_splits([]))
