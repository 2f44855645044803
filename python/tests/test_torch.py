"""sheafnn.torch: gradients against finite differences, numbers of the C++ networks to the bit, torch.compile, leaks,
threads,
processes, and refused arguments."""

import contextlib
import copy
import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import sheafnn  # noqa: E402
from sheafnn.torch import (  # noqa: E402
    BayesianBunn,
    BayesianCooperativeSheafConv,
    BayesianSheafConv,
    BayesianSheafFlow,
    BconnNsd,
    Bcsnn,
    Bsnn,
    BsnnAround,
    BsnnGiven,
    Bunn,
    ConnNsd,
    CooperativeSheafConv,
    Csnn,
    Graph,
    Nsd,
    NsdGiven,
    PolynomialSheafConv,
    SheafConv,
    SheafDiffusion,
    SheafFlow,
    SheafLearner,
    Snn,
    _graphs,
)

FAMILIES = [("special-orthogonal", 3), ("special-orthogonal", 2), ("diagonal", 2), ("general-linear", 2), ("identity", 1)]
LEARNED = FAMILIES[:-1]


def edges(nodes=7, count=11, seed=0):
    """A random edge_index with both directions, sorted."""
    pairs = np.random.default_rng(seed).integers(nodes, size=(4 * count, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], 1), axis=0)[:count]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return torch.tensor(both.T.copy())


def moved(module, size=0.3):
    """The module with parameters away from their initial values, which are 0 or the identity."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += size * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return module


def check_gradient(module, x, call=None, more=()):
    """Derivatives of a module in x, in its parameters and in more tensors, along every coordinate."""
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]
    call = call or (lambda x, *more: module(x, *more))

    def function(*numbers):
        module.step = 0
        inputs, own = numbers[: 1 + len(more)], dict(zip(names, numbers[1 + len(more) :]))
        return torch.func.functional_call(_Caller(module, call), {f"module.{name}": v for name, v in own.items()}, inputs)

    assert torch.autograd.gradcheck(function, (x, *more, *values), eps=1e-6, atol=1e-6, rtol=1e-5)


class _Caller(torch.nn.Module):
    def __init__(self, module, call):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *inputs):
        return self.call(*inputs)


def features(nodes, columns, seed=1, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, columns, dtype=torch.float64, generator=generator).requires_grad_(grad)


OPTIONS = [
    {},
    {"add_lp": True, "normalisation": "block"},
    {"add_hp": True, "left_weights": False, "normalisation": "degree"},
    {"right_weights": False, "activation": False, "learner_layers": 1},
    {"layer_norm": True, "dropout": 0.4},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maps, d", FAMILIES)
def test_gradients_of_convolutions(maps, d, options):
    if maps == "identity" and "learner_layers" in options:
        options = {**options, "learner_layers": 0}
    width = 2 * (d + ("add_lp" in options) + ("add_hp" in options))
    e = edges()
    conv = moved(SheafConv(3, width, maps, d, seed=1, dtype=torch.float64, **options))
    check_gradient(conv, features(7, 3), lambda x: conv(x, e))
    check_gradient(conv, features(7, 3, grad=False), lambda x: conv(x, e))


@pytest.mark.parametrize("maps, d", LEARNED)
def test_gradients_of_bayesian_convolutions(maps, d):
    e = edges()
    conv = moved(BayesianSheafConv(3, 2 * d, maps, d, seed=1, dtype=torch.float64))

    def call(x):
        output = conv(x, e)
        return output, conv.kl()

    check_gradient(conv, features(7, 3), call)


@pytest.mark.parametrize("basis", ["chebyshev", "legendre", "jacobi"])
@pytest.mark.parametrize("maps, d", LEARNED[:3])
def test_gradients_of_polynomial_convolutions(maps, d, basis):
    e = edges()
    conv = moved(PolynomialSheafConv(3, 2 * d, maps, d, filter=basis, filter_degree=3, seed=1, dtype=torch.float64), 0.1)
    check_gradient(conv, features(7, 3), lambda x: conv(x, e))


COOPERATIVE = [
    {},
    {"conformal": False, "activation": "tanh"},
    {"learner": "sage", "learner_width": 5, "learner_layers": 2, "norm": "layer"},
    {"learner": "sage-projected", "learner_width": 4, "learner_layers": 2, "learner_dropout": 0.3},
    {"norm": "batch", "left_weights": False, "activation": "elu"},
    {"right_weights": False, "residual": False, "act": "sigmoid"},
    {"residual": False, "negate_diffused": True, "dropout": 0.4},
    {"directed": True},
    {"directed": True, "in_degree_diagonal": True, "learner": "sage"},
]


@pytest.mark.parametrize("options", COOPERATIVE, ids=str)
def test_gradients_of_cooperative_convolutions(options):
    e = edges()
    if "directed" in options:
        e = e[:, e[0] + e[1] * 3 % 5 > 3]  # some edges in one direction, some in both
    conv = moved(CooperativeSheafConv(3, 6, 2, seed=1, dtype=torch.float64, **options), 0.2)
    check_gradient(conv, features(7, 3), lambda x: conv(x, e))
    check_gradient(conv, features(7, 3, grad=False), lambda x: conv(x, e))


@pytest.mark.parametrize("options", [*COOPERATIVE, {"layer_learners": True, "dropout": 0.3}], ids=str)
def test_gradients_of_bayesian_cooperative_convolutions(options):
    e = edges()
    conv = moved(BayesianCooperativeSheafConv(3, 6, 2, seed=1, dtype=torch.float64, **options), 0.2)

    def call(x):
        output = conv(x, e)
        return output, conv.kl()

    check_gradient(conv, features(7, 3), call)


@pytest.mark.parametrize("act", ["elu", "gelu", "relu", "tanh", "sigmoid", "identity"])
def test_activations_of_convolutions(act):
    e = edges()
    apply = {"gelu": torch.nn.functional.gelu, "elu": torch.nn.functional.elu}.get(act, getattr(torch, act, lambda x: x))
    convs = [(kind, moved(kind(3, 6, stalk_dim=2, act=act, seed=1, dtype=torch.float64, **more)))
             for kind, more in [(SheafConv, {"maps": "diagonal"}), (CooperativeSheafConv, {})]]
    for kind, conv in convs:
        check_gradient(conv, features(7, 3), lambda x: conv(x, e))
        more = {"maps": "diagonal"} if kind is SheafConv else {}
        plain = kind(3, 6, stalk_dim=2, seed=1, dtype=torch.float64, **more)
        plain.load_state_dict(conv.state_dict())
        x = features(7, 3)
        torch.testing.assert_close(conv(x, e), apply(plain(x, e)), rtol=0, atol=1e-14)
    negative = moved(BayesianSheafConv(3, 6, "diagonal", 2, act=act, seed=1, dtype=torch.float64))
    check_gradient(negative, features(7, 3), lambda x: negative(x, e).sum() - 2 * negative.kl())


def test_a_cooperative_convolution_is_a_layer_of_the_network():
    """X_2 of a network of one layer, from X_1."""
    e = edges(30, 60)
    for kind, conv_kind in [(Csnn, CooperativeSheafConv), (Bcsnn, BayesianCooperativeSheafConv)]:
        net = moved(kind(4, 6, 2, channels=3, layers=1, activation="identity", seed=7, dtype=torch.float64,
                         feature_treatment="none"), 0.1).eval()
        conv = conv_kind(4, 6, 2, activation="identity", seed=7, dtype=torch.float64).eval()
        state = net.state_dict()
        conv.load_state_dict({name: value for name, value in state.items() if name in conv.state_dict()})
        x = features(30, 4, grad=False)
        outputs = torch.nn.functional.linear(conv(x, e), state["lin2.weight"], state["lin2.bias"])
        torch.testing.assert_close(outputs, net(x, e), rtol=0, atol=1e-12)


def test_the_noise_of_a_learner_is_new_in_every_call():
    """Where the learner's own dropout is all that is random."""
    e, x = edges(), features(7, 4, grad=False).float()
    options = {"learner": "sage-projected", "learner_width": 8, "learner_layers": 2, "learner_dropout": 0.5}
    conv = CooperativeSheafConv(4, 6, 2, seed=1, **options)
    net = Csnn(4, 3, 2, channels=3, layers=1, seed=1, **options)
    for module in (conv, net):
        assert not torch.equal(module(x, e), module(x, e))
        assert torch.equal(module.eval()(x, e), module(x, e))


@contextlib.contextmanager
def as_many_threads(number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def random_maps(maps, d, columns, seed=5):
    generator = torch.Generator().manual_seed(seed)
    if maps == "diagonal":
        return torch.randn(columns, d, dtype=torch.float64, generator=generator)
    skew = torch.randn(columns, d, d, dtype=torch.float64, generator=generator)
    return torch.linalg.matrix_exp(skew - skew.mT) if maps == "special-orthogonal" else skew


@pytest.mark.parametrize("options", [{}, {"add_lp": True, "activation": False}, {"left_weights": False, "add_hp": True}])
@pytest.mark.parametrize("maps, d", FAMILIES)
def test_gradients_of_diffusion(maps, d, options):
    e = edges()
    e = e[:, torch.randperm(e.shape[1], generator=torch.Generator().manual_seed(8))]  # columns in any order
    layer = moved(SheafDiffusion(2, maps, d, seed=1, dtype=torch.float64, **options))
    x = features(7, 2 * (d + ("add_lp" in options) + ("add_hp" in options)))
    if maps == "identity":
        return check_gradient(layer, x, lambda x: layer(x, e))
    own = random_maps(maps, d, e.shape[1]).requires_grad_()
    weights = (0.5 + torch.rand(e.shape[1] // 2, dtype=torch.float64)).requires_grad_()
    if maps != "special-orthogonal":  # entries of rotations are no free matrices: the degree is taken as the identity
        check_gradient(layer, x, lambda x, maps, w: layer(x, e, maps, w), (own, weights))
        return check_gradient(layer, x, lambda x, maps: layer(x, e, maps), (own,))
    skew = torch.randn(e.shape[1], d, d, dtype=torch.float64).requires_grad_()

    def call(x, skew, w):
        return layer(x, e, torch.linalg.matrix_exp(skew - skew.mT), w)

    check_gradient(layer, x, call, (skew, weights))


@pytest.mark.parametrize("maps, d", LEARNED)
@pytest.mark.parametrize("options", [{}, {"learner_layers": 2}])
def test_gradients_of_learners(maps, d, options):
    e = edges()
    learner = moved(SheafLearner(2 * d, maps, d, seed=1, dtype=torch.float64, **options))

    def call(x):
        own, weights = learner(x, e)
        return own if weights is None else (own, weights)

    check_gradient(learner, features(7, 2 * d), call)


@pytest.mark.parametrize("maps, d", LEARNED)
def test_a_convolution_is_learner_and_diffusion(maps, d):
    e, x = edges(), features(7, 2 * d, grad=False)
    conv = moved(SheafConv(4, 2 * d, maps, d, seed=1, dtype=torch.float64))
    learner = SheafLearner(2 * d, maps, d, dtype=torch.float64)
    diffusion = SheafDiffusion(2, maps, d, dtype=torch.float64)
    state = conv.state_dict()
    learner.load_state_dict({name: state[name] for name in learner.state_dict()})
    diffusion.load_state_dict({name.removesuffix(".0"): state[name + ".0"] for name in diffusion.state_dict()})
    z = features(7, 4, grad=False)
    h = torch.nn.functional.linear(z, state["lin1.weight"], state["lin1.bias"])
    own, weights = learner(h, e)
    assert own.shape == ((e.shape[1], d) if maps == "diagonal" else (e.shape[1], d, d))
    torch.testing.assert_close(diffusion(h, e, own, weights), conv(z, e), rtol=0, atol=1e-14)


@pytest.mark.parametrize("columns", [5, 129])  # the library's products, and PyTorch's
def test_the_linear_layer_of_a_convolution_has_the_gradients_of_pytorchs(columns):
    e, x = edges(), features(7, columns)
    conv = moved(SheafConv(columns, 4, "diagonal", 2, seed=1, dtype=torch.float64))
    learner = SheafLearner(4, "diagonal", 2, dtype=torch.float64)
    diffusion = SheafDiffusion(2, "diagonal", 2, dtype=torch.float64)
    state = conv.state_dict()
    learner.load_state_dict({name: state[name] for name in learner.state_dict()})
    diffusion.load_state_dict({name.removesuffix(".0"): state[name + ".0"] for name in diffusion.state_dict()})
    linear = torch.nn.Linear(columns, 4, dtype=torch.float64)
    linear.load_state_dict({name: state["lin1." + name] for name in ("weight", "bias")})
    of = [x, conv.lin1.weight, conv.lin1.bias]
    bars = torch.autograd.grad((conv(x, e) ** 2).sum(), of)
    h = linear(x)
    expected = torch.autograd.grad((diffusion(h, e, *learner(h, e)) ** 2).sum(), [x, linear.weight, linear.bias])
    for bar, other in zip(bars, expected):
        torch.testing.assert_close(bar, other, rtol=1e-12, atol=1e-13)
    by_threads = []
    for threads in (1, 2):
        with as_many_threads(threads):
            by_threads.append(torch.autograd.grad((conv(x.mT.contiguous().mT, e) ** 2).sum(), of))
    for one, two in zip(*by_threads):
        assert torch.equal(one, two)
    del x


NETWORKS = [
    (Nsd, "special-orthogonal", 3, {}),
    (Nsd, "diagonal", 2, {"filter": "chebyshev", "filter_degree": 3}),
    (Nsd, "general-linear", 2, {"residual_form": "initial", "layer_norm": True}),
    (Nsd, "identity", 1, {"readout_layers": 2}),
    (Bsnn, "special-orthogonal", 3, {}),
    (Bsnn, "special-orthogonal", 2, {"separate_encoder": False, "add_lp": True}),
    (Bsnn, "diagonal", 2, {"second_linear": True, "linear": True}),
    (Bsnn, "general-linear", 2, {}),
    (Csnn, None, 2, {}),
    (Bcsnn, None, 2, {}),
]


#: of layers by their equations, what each has besides
LAYERS = [
    {"layer": "convolution"},
    {"layer": "wave"},
    {"layer": "attention", "attention_heads": 2},
    {"layer": "attention", "random_attention": True},
    {"layer": "copresheaf"},
    {"layer": "directed"},
    {"layer": "directed", "random_phases": True},
]
NETWORKS += [(kind, "diagonal", 2, options) for kind in (Nsd, Bsnn) for options in LAYERS]
NETWORKS += [
    (SheafFlow, "diagonal", 2, {"method": "runge-kutta", "fixed_steps": 3}),
    (BayesianSheafFlow, "diagonal", 2, {"method": "runge-kutta", "fixed_steps": 3}),
    (ConnNsd, None, 2, {}),
    (BconnNsd, None, 2, {}),
    (Bunn, None, 2, {"bundles": 2, "terms": 3}),
    (BayesianBunn, None, 2, {"bundles": 2, "terms": 3}),
    (Snn, "diagonal", 2, {}),
    (Snn, "special-orthogonal", 2, {"activation": "gelu", "bias": False}),
    (BsnnGiven, "diagonal", 2, {"deviation": "arcs-and-means"}),
    (BsnnGiven, "special-orthogonal", 2, {"label_count": 3}),
    (NsdGiven, "diagonal", 2, {"add_lp": True}),
    (NsdGiven, "diagonal", 2, {"layer": "directed"}),
    (BsnnAround, "diagonal", 2, {"layer": "wave"}),
    (BsnnAround, "diagonal", 2, {"label_count": 3}),
]


def network(kind, maps, d, options, dtype=torch.float64, features=4, classes=3, **more):
    place = {"stalk_dim": d} if maps is None else {"maps": maps, "stalk_dim": d}
    sizes = {"channels": 3} if kind in (SheafFlow, BayesianSheafFlow) else {"channels": 3, "layers": 2}
    return kind(features, classes, **place, **sizes, **{"seed": 1, "dtype": dtype, **options, **more})


def with_maps(net, data):
    """The data with a sheaf whose maps are a network's, and labels of its edges if it has spreads of labels."""
    of = net._architecture
    sheaf = sheafnn.CellularSheaf(data, random_maps(of.maps, of.stalk_dim, 2 * data.edge_count), family=of.maps)
    labels = np.arange(data.edge_count) % 3 if getattr(net, "label_count", 0) else None
    return data.with_sheaf(sheaf, edge_labels=labels)


def over(net, e, data=None):
    """What a network goes over: a graph with a sheaf where its maps are given, else the columns."""
    if not net._architecture.given_sheaf:
        return e
    if data is None:
        data = with_maps(net, sheafnn.Dataset.from_numpy(e.T.numpy(), np.zeros((int(e.max()) + 1, 1))))
    return Graph(e, directed=net._architecture.relations == "directed", sheaf=data)


def some_directions(e, options):
    """With directed layers, some edges in one direction and some in both."""
    return e[:, e[0] + e[1] * 3 % 5 > 3] if options.get("layer") == "directed" else e


@pytest.mark.parametrize("kind, maps, d, options", NETWORKS)
@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_networks(kind, maps, d, options, training):
    e, x = some_directions(edges(), options), features(7, 4, grad=False)
    net = moved(network(kind, maps, d, options, dropout=0.2, input_dropout=0.2), 0.1).train(training)
    e = over(net, e)

    def call(x):
        output = net(x, e)
        return (output, net.kl()) if net._architecture.draws else output

    check_gradient(net, x, call)


@pytest.mark.parametrize("kind, maps, d, options", NETWORKS)
def test_checkpoints_to_the_bit(kind, maps, d, options, tmp_path):
    net = moved(network(kind, maps, d, options, torch.float32), 0.1).eval()
    net.save(tmp_path / "model.safetensors")
    other = kind.load(tmp_path / "model.safetensors", seed=1).eval()
    assert list(other.state_dict()) == list(net.state_dict())
    for name, value in net.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    e, x = over(net, edges()), features(7, 4, grad=False).float()
    assert torch.equal(net(x, e), other(x, e))
    other.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="holds the network"):
        (Bsnn if kind is Nsd else Nsd).load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("kind, maps, d, options", NETWORKS)
def test_predictions_of_the_library(kind, maps, d, options, tmp_path):
    """The outputs of the library's prediction to the bit, and its probabilities, computed from them as it does."""
    drawn = sheafnn.planted_frames(nodes=60, stalk_dim=2, seed=2).data
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
    pairs = np.asarray(drawn.edges)
    pairs = np.where(pairs.sum(1, keepdims=True) % 2 == 0, pairs, pairs[:, ::-1])
    data = sheafnn.Dataset.from_numpy(pairs, x.numpy(), drawn.labels)
    columns = pairs if options.get("layer") == "directed" else np.asarray(data.arcs)
    e = torch.tensor(columns.T.copy(), dtype=torch.int64)
    net = network(kind, maps, d, options, torch.float32, x.shape[1], data.class_count, seed=7).eval()
    moved(net, 0.1)
    net.step = 0
    if net._architecture.given_sheaf:
        data = with_maps(net, data)
    e = over(net, e, data)
    model = net.to_model()
    theirs = model.predict(data._core, 1, 7, 0, 1)["probabilities"]
    with torch.no_grad():
        outputs = net(x, e).double()
    np.testing.assert_array_equal(outputs, model.predict_targets(data._core, ("squared", data.class_count, [], 2), 1, 7, 0, 1)[0])
    net.step = 0
    torch.testing.assert_close(net(x, e).double(), outputs, rtol=1e-5, atol=1e-5)  # a backward pass may follow
    # The library's softmax is one of floats.
    rounding = 4 * 2**-24 * (1 + float(outputs.abs().max()))
    np.testing.assert_allclose(torch.softmax(outputs, 1).numpy(), theirs, rtol=0, atol=rounding)


def test_features_of_the_library_to_the_bit():
    """X_1 and X_2 of a network of one layer: a convolution computes X_2 from X_1."""
    data = sheafnn.planted_frames(nodes=60, stalk_dim=2, seed=2).data
    e = torch.tensor(np.asarray(data.arcs).T.copy(), dtype=torch.int64)
    from sheafnn.sheaf import read_learned

    for kind, conv_kind, maps, d in [
        (Nsd, SheafConv, "special-orthogonal", 3),
        (Nsd, SheafConv, "general-linear", 2),
        (Bsnn, BayesianSheafConv, "diagonal", 2),
    ]:
        net = moved(kind(data.feature_count, data.class_count, maps, d, channels=3, layers=1, seed=7), 0.1)
        embeddings = read_learned(net.to_model().learned(data._core, 1, 7, 0, 1, 0), data).layer_embeddings
        conv = conv_kind(3 * d, 3 * d, maps, d, seed=7).eval()
        state = {name: value for name, value in net.state_dict().items() if not name.startswith("lin")}
        state |= {"lin1.weight": torch.eye(3 * d), "lin1.bias": torch.zeros(3 * d)}
        conv.load_state_dict(state)
        h = torch.from_numpy(np.ascontiguousarray(embeddings[0], np.float32))
        assert torch.equal(conv(h, e), torch.from_numpy(np.ascontiguousarray(embeddings[1], np.float32)))


def test_noise():
    e, x = edges(), features(7, 4, grad=False).float()
    conv = BayesianSheafConv(4, 6, seed=5)
    first, second = conv(x, e), conv(x, e)
    assert not torch.equal(first, second)
    assert conv.step == 2
    conv.step = 0
    assert torch.equal(conv(x, e), first)
    assert not torch.equal(conv.eval()(x, e), second)  # other draws than in training
    free = BayesianSheafConv(4, 6)
    torch.manual_seed(3)
    first = free(x, e)
    torch.manual_seed(3)
    assert torch.equal(free(x, e), first)
    assert not torch.equal(free(x, e), first)
    torch.manual_seed(4)
    one = SheafConv(4, 6).state_dict()
    torch.manual_seed(4)
    assert all(torch.equal(value, one[name]) for name, value in SheafConv(4, 6).state_dict().items())


def test_numbers_do_not_depend_on_threads():
    e, x = edges(400, 1500), features(400, 4, grad=False).float()
    results = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        conv = BayesianSheafConv(4, 6, seed=5, dropout=0.3)
        h = torch.ones(400, 6).requires_grad_()
        conv.load_state_dict(BayesianSheafConv(4, 6, seed=5).state_dict())
        output, kl = conv._run(h, e, dropout=0.3)
        (output.square().sum() + kl).backward()
        results.append([output.detach(), h.grad, conv.left._parameters["0"].grad, kl.detach()])
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(backend):
    if backend == "inductor" and os.environ.get("SHEAFNN_TORCH_INDUCTOR", "1") == "0":
        pytest.skip("SHEAFNN_TORCH_INDUCTOR=0")
    e, x = edges(), features(7, 4, grad=False).float()
    conv, second = BayesianSheafConv(4, 6, seed=5), SheafConv(6, 6, seed=6)
    linear, third = torch.nn.Linear(6, 2), BayesianCooperativeSheafConv(6, 6, 2, act="elu", seed=7)

    def loss(x):
        return linear(third(second(conv(x, e), e), e)).square().sum() + conv.kl() + third.kl()

    def run(function):
        conv.step = third.step = 0
        values = []
        for _ in range(3):
            value = function(x)
            grads = torch.autograd.grad(value, [*conv.parameters(), *second.parameters(), *third.parameters()])
            values += [value.detach(), *grads]
        return values

    expected = run(loss)
    compiled = run(torch.compile(loss, fullgraph=True, backend=backend))
    for ours, theirs in zip(compiled, expected):
        if backend == "aot_eager":
            assert torch.equal(ours, theirs)
        else:
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("error")
def test_a_compiler_does_not_warn():
    torch._dynamo.reset()
    conv = SheafConv(5, 6, "diagonal", 2)
    x, edge_index = torch.randn(7, 5), edges()
    compiled = torch.compile(conv, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, edge_index), conv(x, edge_index))


def test_without_fork():
    """Windows has no register_at_fork."""
    code = "import os, torch, sheafnn; del os.register_at_fork; import sheafnn.torch"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiled_before_any_call():
    e, x = edges(), features(7, 4).detach().float()
    conv = SheafConv(4, 21, seed=1)  # an architecture that no other test has
    compiled = torch.compile(conv, backend="eager", fullgraph=True)(x, e)
    torch.testing.assert_close(compiled, conv(x, e))
    with torch.autocast("cpu", torch.bfloat16):
        again = torch.compile(conv, backend="eager", fullgraph=True)(x.bfloat16(), e)
        torch.testing.assert_close(again, conv(x.bfloat16(), e))


def test_exported():
    e, x = edges(), features(7, 4, grad=False).float()
    conv = SheafConv(4, 6, seed=5)
    assert torch.equal(torch.export.export(conv, (x, e)).module()(x, e), conv(x, e))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("make", [
    lambda: SheafConv(4, 6, seed=1, act="elu"), lambda: PolynomialSheafConv(4, 6, seed=1), lambda: CooperativeSheafConv(4, 6, 2, seed=1),
    lambda: Nsd(4, 2, seed=1), lambda: Csnn(4, 2, 2, seed=1), lambda: _Pair(),
], ids=["conv", "polynomial", "cooperative", "nsd", "csnn", "learner"])
@pytest.mark.parametrize("grad", [True, False])
def test_recorded_by_torch_jit(make, grad):
    """Other tensors than the recorded ones, and another graph."""
    module, e, x = make(), edges(), features(7, 4, grad=False).float()
    with torch.set_grad_enabled(grad):
        recorded = torch.jit.trace(module, (x, e))
    for other, graph in ((x + 1, e), (features(9, 4, seed=2, grad=False).float(), edges(9, 14, seed=2))):
        expected, found = module(other, graph), recorded(other, graph)
        assert torch.equal(found, expected)
        parameters = list(module.parameters())
        for a, b in zip(*(torch.autograd.grad(output.pow(2).sum(), parameters) for output in (expected, found))):
            assert torch.equal(a, b)


class _Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.learner, self.diffusion = SheafLearner(4, "diagonal", 2, seed=1), SheafDiffusion(2, "diagonal", 2, seed=2)

    def forward(self, x, e):
        return self.diffusion(x, e, self.learner(x, e)[0])


def test_operators():
    """What PyTorch asks of operators."""
    e, h = edges(), features(7, 6)
    conv = SheafConv(4, 6, seed=5, dtype=torch.float64)
    of = conv._architecture
    parameters = [conv._named(name) for name in of.names]
    torch.library.opcheck(
        torch.ops.sheafnn.forward.default,
        (of.text, e, h, parameters, torch.tensor([1, 0]), 0.0, 0.0, True, True, 1),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


def test_a_second_backward_pass():
    e, x = edges(), features(7, 4)
    conv = BayesianSheafConv(4, 6, seed=5, dtype=torch.float64)
    loss = conv(x, e).sum() - 2 * conv.kl()
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, second)


@pytest.mark.parametrize("make", [lambda: BayesianSheafConv(4, 6, seed=5, act="elu"),
                                  lambda: BayesianCooperativeSheafConv(4, 6, 2, seed=5)], ids=["pairs", "nodes"])
def test_no_leak(make):
    """10⁴ passes, half of them without a backward pass, do not need more memory than the first ones."""
    e, x = edges(40, 100), features(40, 4, grad=False).float()

    conv = make()

    def passes(count):
        for i in range(count):
            loss = conv(x, e).sum() + conv.kl()
            if i % 2 == 0:
                loss.backward()
        gc.collect()
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

    passes(1000)
    before = passes(10)
    after = passes(10_000)
    assert after - before < 4 << 20


def test_graphs_are_built_once():
    from sheafnn.torch import _graphs

    e, x = edges(), features(7, 4, grad=False).float()
    conv = SheafConv(4, 6)
    conv(x, e)
    entry = _graphs.entry_of(e, 7)
    conv(x, e)
    assert _graphs.entry_of(e, 7) is entry
    gc.collect()
    count = len(_graphs._graphs)
    e[:, :] = e.flip(0)  # changed in place
    assert _graphs.entry_of(e, 7) is not entry
    assert len(_graphs._graphs) == count
    del e, entry
    gc.collect()
    assert len(_graphs._graphs) == count - 1


def test_a_graph_in_the_place_of_edge_index():
    e, x = edges(), features(7, 4, grad=False).float()
    conv = SheafConv(4, 6)
    graph = Graph(e)
    assert (graph.num_nodes, graph.num_edges) == (7, 11)
    with pytest.raises(ValueError, match="directed: 'no' is not allowed; must be True or False"):
        Graph(edges(), directed="no")
    assert torch.equal(conv(x, graph), conv(x, e))
    assert torch.equal(conv(x, graph), conv(x, torch.cat([e, e[:, :3], torch.tensor([[2], [2]])], 1)))
    with pytest.raises(ValueError, match="8 rows are not allowed; the graph has 7 nodes"):
        conv(torch.zeros(8, 4), graph)


def test_copies_and_pickle():
    e, x = edges(), features(7, 4, grad=False).float()
    conv = BayesianSheafConv(4, 6, seed=5)
    conv(x, e)
    nodes = BayesianCooperativeSheafConv(4, 6, 2, seed=5)
    nodes(x, e)
    for own in (conv, nodes):
        for twin in (copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
            a, b = own(x, e), twin(x, e)
            assert torch.equal(a, b)
            own.step = twin.step = 1
    assert conv.double()(x.double(), e).dtype == torch.float64


@pytest.mark.parametrize("make", [lambda: SheafConv(4, 6, seed=5), lambda: CooperativeSheafConv(4, 6, 2, seed=5)],
                         ids=["pairs", "nodes"])
def test_threads(make):
    e, x = edges(100, 300), features(100, 4, grad=False).float()
    conv = make()
    names = dict(conv.named_parameters())

    def gradient():
        return torch.autograd.grad(conv(x, e).square().sum(), list(names.values()))

    expected = gradient()
    wrong = []

    def work():
        for _ in range(20):
            if not all(torch.equal(a, b) for a, b in zip(gradient(), expected)):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class _CalledInBetween(SheafDiffusion):
    """Is called without weights between the checks and the pass of a call, as another thread may call it."""

    between = None

    def _run(self, *arguments, **more):
        if self.between is not None:
            call, self.between = self.between, None
            call(self)
        return super()._run(*arguments, **more)


@pytest.mark.parametrize(("maps", "d"), FAMILIES)
def test_a_graph_without_edges(maps, d):
    """As nodes without edges in a graph that has some."""
    none, some = torch.empty((2, 0), dtype=torch.long), torch.tensor([[5, 6], [6, 5]])
    diffusion = SheafDiffusion(4, maps, d, dtype=torch.float64)
    shape = {"identity": None, "diagonal": (d,)}.get(maps, (d, d))
    own = lambda count: None if shape is None else torch.rand(count, *shape, dtype=torch.float64)  # noqa: E731
    x = torch.randn(7, 4 * d, dtype=torch.float64)
    features = x[:5].clone().requires_grad_()
    output = diffusion(features, none, own(0))
    assert torch.equal(output, diffusion(x, some, own(2))[:5])
    assert torch.autograd.gradcheck(lambda y: diffusion(y, none, own(0)), (features,))
    if maps != "identity":
        learned, _ = SheafLearner(4 * d, maps, d, dtype=torch.float64)(features, none)
        assert torch.equal(diffusion(features, none, learned), output)


def test_calls_with_and_without_edge_weights_at_the_same_time():
    e, x = edges(), features(7, 4, grad=False)
    learner = SheafLearner(4, "special-orthogonal", 2, seed=1, dtype=torch.float64)
    maps, weights = learner(x, e)
    diffusion = _CalledInBetween(2, "special-orthogonal", 2, seed=1, dtype=torch.float64)
    plain, weighted = diffusion(x, e, maps), diffusion(x, e, maps, weights)
    assert not torch.equal(plain, weighted)
    diffusion.between = lambda module: module(x, e, maps)
    assert torch.equal(diffusion(x, e, maps, weights), weighted)
    diffusion.between = lambda module: module(x, e, maps, weights)
    assert torch.equal(diffusion(x, e, maps), plain)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_builds_a_graph():
    conv, x, begun = SheafConv(4, 6, seed=5), features(7, 4, grad=False).float(), threading.Event()

    def build():
        with _graphs._lock:
            begun.set()
            time.sleep(0.3)

    thread = threading.Thread(target=build)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends the child where it waits for a thread that it does not have
        conv(x, edges())
        os._exit(0)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


class _Outputs(torch.utils.data.Dataset):
    def __init__(self, conv, x, e):
        self.conv, self.x, self.e = conv, x, e

    def __len__(self):
        return 4

    def __getitem__(self, i):
        with torch.no_grad():
            return self.conv(self.x + i, self.e)


def test_workers_of_a_data_loader():
    e, x = edges(), features(7, 4, grad=False).float()
    for conv in (SheafConv(4, 6, seed=5), CooperativeSheafConv(4, 6, 2, seed=5)):
        data = _Outputs(conv, x, e)
        expected = [data[i] for i in range(4)]
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork")
        assert all(torch.equal(a, b) for a, b in zip(loader, expected))


def test_sparse_features_give_the_same():
    generator = torch.Generator().manual_seed(1)
    x = (torch.rand(50, 200, generator=generator, dtype=torch.float64) < 0.02).double()
    e = edges(50, 100)
    conv = moved(SheafConv(200, 6, seed=5, dtype=torch.float64))
    weights = dict(conv.named_parameters())
    sparse = torch.autograd.grad(conv(x, e).square().sum(), list(weights.values()))
    dense = torch.autograd.grad(conv(x.requires_grad_(), e).square().sum(), list(weights.values()))
    for a, b in zip(sparse, dense):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_sparse_products_follow_the_parameters():
    """An evaluation and the training step after it share the product; any change of a parameter ends that."""
    generator = torch.Generator().manual_seed(1)
    x = (torch.rand(50, 200, generator=generator, dtype=torch.float64) < 0.02).double()
    e, conv = edges(50, 100), moved(SheafConv(200, 6, seed=5, dtype=torch.float64))
    for change in (lambda w: None, lambda w: w.data.mul_(2), lambda w: w.detach()[3, 5:7].add_(1)):
        change(conv.lin1.weight)
        dense = conv(x.clone().requires_grad_(), e)
        with torch.no_grad():
            torch.testing.assert_close(conv(x, e), dense, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(conv(x, e), dense, rtol=1e-12, atol=1e-12)


def test_a_convolution_of_a_changed_input_is_refused_backwards():
    e, x = edges(), features(7, 4)
    h = x * 1
    output = SheafConv(4, 6, seed=5, dtype=torch.float64)(h, e).sum()
    with torch.no_grad():
        h += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.backward()


def refused(match, call, kind=ValueError):
    with pytest.raises(kind, match=match):
        call()


def test_options_that_are_texts():
    """As checkpoints hold them."""
    x, e = torch.ones(7, 4), edges()
    for value, width in ((False, 6), ("false", 6), (True, 9), ("true", 9)):
        conv = SheafConv(4, width, "diagonal", 2, add_lp=value)
        assert conv(x, e).shape == (7, width) and conv.get_parameter("right.0").shape == (3, 3)


def test_refused_arguments():
    e, x = edges(), torch.zeros(7, 4)
    conv = SheafConv(4, 6)
    refused(r"x: shape \(7, 3\) is not allowed; must be n x 4", lambda: conv(torch.zeros(7, 3), e))
    refused("x: torch.float64 is not allowed; the module's parameters are torch.float32", lambda: conv(x.double(), e))
    refused("x: list is not allowed", lambda: conv([[1.0]], e), TypeError)
    refused(r"edge_index: shape \(3,\) is not allowed; must be 2 x m", lambda: conv(x, torch.zeros(3, dtype=torch.int64)))
    refused("edge_index: torch.float32 is not allowed; must be torch.int64", lambda: conv(x, torch.zeros(2, 3)))
    refused("edge_index: list is not allowed", lambda: conv(x, [[0], [1]]), TypeError)
    refused("x: a dictionary of types, as HeteroData has it, is not allowed", lambda: conv({"paper": x}, e), TypeError)
    refused("edge_index: a dictionary of types, as HeteroData", lambda: conv(x, {("paper", "to", "paper"): e}), TypeError)
    refused(r"edge_index\[0, 1\]: 7 is not allowed; a node number must be between 0 and 6",
            lambda: conv(x, torch.tensor([[0, 7], [1, 0]])))
    refused(r"edge_index: \(0, 1\) is not allowed; it has no \(1, 0\): edges must be there in both directions",
            lambda: conv(x, torch.tensor([[0], [1]])))
    refused("out_channels: 7 is not allowed; must be a multiple of 3", lambda: SheafConv(4, 7))
    refused("in_channels: 0 is not allowed", lambda: SheafConv(0, 6))
    refused("stalk_dim: 9 is not allowed; must be between 1 and 5", lambda: SheafConv(4, 9, stalk_dim=9))
    refused("dropout: 1 is not allowed; must be at least 0 and below 1", lambda: SheafConv(4, 6, dropout=1))
    refused("dtype: torch.float16 is not allowed", lambda: SheafConv(4, 6, dtype=torch.float16))
    refused("options.'wrong'.*has no such option; it has ", lambda: SheafConv(4, 6, wrong=1))
    refused("channels: 4 is not allowed; out_channels decides it", lambda: SheafConv(4, 6, channels=4))
    refused("layers: 2 is not allowed; it is an option of whole networks", lambda: SheafConv(4, 6, layers=2))
    refused("normalisation: .*", lambda: SheafConv(4, 6, normalisation="wrong"))
    refused("act: 'swish' is not allowed; choose from gelu, elu", lambda: SheafConv(4, 6, act="swish"))
    refused("out_channels: 7 is not allowed; must be a multiple of 2", lambda: CooperativeSheafConv(4, 7, 2))
    refused("readout_layers: 2 is not allowed; it is an option", lambda: CooperativeSheafConv(4, 6, readout_layers=2))
    refused("layer_learners.*an option of Bayesian models", lambda: CooperativeSheafConv(4, 6, 2, layer_learners=True))
    refused("in_degree_diagonal.*needs directed", lambda: CooperativeSheafConv(4, 6, 2, in_degree_diagonal=True))
    refused("kl.. needs a forward pass before it", BayesianCooperativeSheafConv(4, 6, 2).kl, RuntimeError)
    refused(r"it has no \(1, 0\)", lambda: CooperativeSheafConv(4, 6, 2)(x, torch.tensor([[0], [1]])))
    refused("maps, stalk_dim: wrong, 3 is not allowed; of nsd this build has ", lambda: SheafConv(4, 6, maps="wrong"))
    refused("kl.. needs a forward pass before it", BayesianSheafConv(4, 6).kl, RuntimeError)
    refused("x: a tensor with gradient is not allowed", lambda: Nsd(4, 3)(x.clone().requires_grad_(), e))
    layer, own = SheafDiffusion(2), torch.eye(3).expand(e.shape[1], 3, 3)
    z = torch.zeros(7, 6)
    refused("maps: NoneType is not allowed", lambda: layer(z, e), TypeError)
    refused(r"maps: shape \(5, 3, 3\) is not allowed; must be 22 x 3 x 3", lambda: layer(z, e, own[:5]))
    refused("maps: torch.float64 is not allowed; x is torch.float32", lambda: layer(z, e, own.double()))
    refused(r"edge_weights: shape \(22,\) is not allowed; must be 11", lambda: layer(z, e, own, torch.ones(22)))
    refused("edge_index: list is not allowed", lambda: layer(z, [[0], [1]], own), TypeError)
    refused(r"edge_index: shape \(\) is not allowed; must be 2 x m", lambda: layer(z, torch.tensor(3), own))
    refused("edge_index: list is not allowed", lambda: SheafLearner(6)(z, [[0], [1]]), TypeError)
    doubled = torch.cat([e, e], 1)
    refused("no loops and no repeated columns are allowed", lambda: layer(z, doubled, torch.cat([own, own])))
    if torch.cuda.is_available():
        refused("x: a tensor on cuda:0 is not allowed", lambda: conv(x.cuda(), e))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("module", "width"),
    [(SheafConv(4, 6), 4), (BayesianSheafConv(4, 6), 4), (SheafLearner(6), 6), (Nsd(4, 2), 4)],
    ids=lambda value: type(value).__name__,
)
def test_half_precision_is_refused(module, width, dtype):
    x, message = torch.zeros(7, width), f"the module's parameters: {dtype} is not allowed; must be torch.float32 or torch.float64"
    half = copy.deepcopy(module).to(dtype)
    refused(message, lambda: half(x.to(dtype), edges()))
    refused(f"x: {dtype} is not allowed", lambda: module(x.to(dtype), edges()))
    if isinstance(half, Nsd):
        refused(message, half.to_model)


def test_autocast_does_not_change_the_precision():
    e, x = edges(), features(7, 4).detach().float()
    sparse = x * (torch.arange(4) == 1) * (torch.arange(7) == 2)[:, None]
    conv, learner, layer = SheafConv(4, 6, seed=1), SheafLearner(6, seed=2), SheafDiffusion(2, seed=3)

    def outputs(x):
        h = conv(x, e)
        maps, weights = learner(h, e)
        return layer(h, e, maps, weights)

    for z in (x, sparse, x.clone().requires_grad_()):
        plain = outputs(z)
        gradients = torch.autograd.grad(plain.sum(), conv.parameters())
        with torch.autocast("cpu", torch.bfloat16):
            own = outputs(z)
            before = torch.nn.Linear(4, 4)(x)  # bfloat16
            assert before.dtype == torch.bfloat16
            assert torch.equal(conv(before, e), conv(before.float(), e))
            assert torch.equal(layer(plain.bfloat16(), e, learner(plain, e)[0].bfloat16()),
                               layer(plain.bfloat16().float(), e, learner(plain, e)[0].bfloat16().float()))
        assert own.dtype == torch.float32 and torch.equal(own, plain)
        for a, b in zip(gradients, torch.autograd.grad(own.sum(), conv.parameters())):
            assert torch.equal(a, b)


def test_tensors_without_numbers_are_refused():
    e, x, conv = edges(), torch.zeros(7, 4), SheafConv(4, 6)
    meta = torch.device("meta")
    refused("x: a tensor on meta is not allowed", lambda: conv(x.to(meta), e))
    refused("edge_index: a tensor on meta is not allowed", lambda: conv(x, e.to(meta)))
    refused("x: a tensor on meta is not allowed", lambda: Nsd(4, 2).to(meta)(x.to(meta), e))
    refused("lin1.weight: a tensor on meta is not allowed", lambda: copy.deepcopy(conv).to(meta)(x, e))
    refused("lin1.weight: a tensor on meta is not allowed", lambda: Nsd(4, 2).to(meta)(x, e))
    refused("x: a tensor of layout torch.sparse_coo is not allowed; call .to_dense", lambda: conv(x.to_sparse(), e))
    refused("edge_index: a tensor of layout torch.sparse_coo is not allowed", lambda: conv(x, e.to_sparse()))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("eps.0", torch.zeros(1), r"eps.0: shape \(1,\) is not allowed; must be 3 x 1"),
        ("sheaf.0.weight", torch.zeros(3, 12, dtype=torch.float64), "sheaf.0.weight: torch.float64 is not allowed; all parameters"),
        ("lin1.bias", torch.zeros(1), r"lin1.bias: shape \(1,\) is not allowed; must be 6"),
        ("lin1.weight", torch.zeros(6, 3), r"lin1.weight: shape \(6, 3\) is not allowed; must be 6 x 4"),
    ],
)
def test_parameters_of_another_shape_are_refused(name, value, message, grad):
    conv = SheafConv(4, 6)
    conv.get_parameter(name).data = value
    for x in (torch.ones(7, 4), torch.zeros(7, 4)):  # dense and sparse
        refused(message, lambda: conv(x.requires_grad_(grad), edges()))


def test_parameters_that_are_computed():
    from torch.nn.utils import prune

    e, x = edges(), features(7, 4).detach()
    conv = SheafConv(4, 6, seed=1, dtype=torch.float64)
    expected = conv(x, e).detach()
    torch.nn.utils.parametrizations.weight_norm(conv.get_submodule("lin1"))
    torch.testing.assert_close(conv(x, e), expected, rtol=1e-12, atol=1e-12)
    conv(x, e).sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in conv.get_submodule("lin1").parameters())
    net = Nsd(4, 2, seed=1)
    weight = net.get_parameter("lin1.weight").detach().clone()
    prune.l1_unstructured(net.get_submodule("lin1"), "weight", 0.5)
    tensors = {name: np.frombuffer(data, np.float32) for name, _, _, data in net.to_model().__getstate__()[1]}
    kept = tensors["lin1.weight"] != 0
    assert kept.sum() == kept.size // 2 and (tensors["lin1.weight"][kept] == weight.numpy().ravel()[kept]).all()


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("tool", ["spectral_norm", "weight_norm", "prune"])
def test_parameters_that_are_computed_before_calls(tool):
    """PyTorch computes them when it calls the holder of a parameter, which modules here never do."""
    from torch.nn.utils import prune

    model, reference = (SheafConv(5, 6, "diagonal", 2) for _ in range(2))
    if tool == "prune":
        prune.random_unstructured(model.lin1, "weight", 0.4)
    else:
        getattr(torch.nn.utils, tool)(model.lin1, "weight")
    x, edge_index = torch.randn(7, 5), edges()
    descent = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        descent.zero_grad()
        before = model.lin1.weight.detach().clone()
        model(x, edge_index).pow(2).sum().backward()
        assert all(value.grad is not None and value.grad.abs().max() > 0 for value in model.parameters())
        descent.step()
    model.eval()
    output = model(x, edge_index)
    assert not torch.equal(model.lin1.weight, before)
    for name, value in reference.named_parameters():
        holder, _, last = name.rpartition(".")
        value.data = getattr(model.get_submodule(holder), last).detach().clone()
    assert torch.equal(output, reference(x, edge_index))


def test_a_parameter_that_is_missing_is_refused():
    conv = SheafConv(5, 6, "diagonal", 2)
    conv.lin1.bias = None
    with pytest.raises(ValueError, match="lin1.bias: None is not allowed; expected a parameter"):
        conv(torch.ones(7, 5), edges())


def test_modules_without_values_keep_their_seed():
    """As loaders of large models use them: shapes first, then memory without values, then the values."""
    model = SheafConv(5, 6, "diagonal", 2, dropout=0.5, seed=3)
    with torch.device("meta"):
        empty = SheafConv(5, 6, "diagonal", 2, dropout=0.5, seed=3)
    empty.to_empty(device="cpu").load_state_dict(model.state_dict())
    x, edge_index = torch.randn(7, 5), edges()
    assert torch.equal(empty(x, edge_index), model(x, edge_index)) and empty.step == 1


@pytest.mark.parametrize("make", [
    lambda seed: SheafConv(6, 6, "diagonal", 2, dropout=0.5, seed=seed),
    lambda seed: BayesianSheafConv(6, 6, "special-orthogonal", 3, seed=seed),
    lambda seed: CooperativeSheafConv(6, 6, 2, seed=seed),
    lambda seed: Bsnn(6, 3, "diagonal", 2, channels=3, layers=2, seed=seed),
    lambda seed: SheafLearner(6, "special-orthogonal", 3, seed=seed),
])
def test_parameters_are_reset(make):
    """With a seed to the same values and noise; without one, to what PyTorch's generator gives a new module."""
    x, edge_index = torch.randn(7, 6), edges()
    model = make(2**63 + 3)
    own = [id(parameter) for parameter in model.parameters()]
    values = {name: value.clone() for name, value in model.state_dict().items()}
    first = model(x, edge_index)
    moved(model).reset_parameters()
    assert own == [id(parameter) for parameter in model.parameters()] and model.step == 0
    assert all(torch.equal(value, values[name]) for name, value in model.state_dict().items())
    again = model(x, edge_index)
    for a, b in zip(first if isinstance(first, tuple) else [first], again if isinstance(again, tuple) else [again]):
        assert torch.equal(a, b)
    model = make(None)
    torch.manual_seed(4)
    model.reset_parameters()
    torch.manual_seed(4)
    new = make(None).state_dict()
    assert all(torch.equal(value, new[name]) for name, value in model.state_dict().items())
    torch.manual_seed(5)
    model.reset_parameters()
    assert any(not torch.equal(value, new[name]) for name, value in model.state_dict().items())


def test_computed_parameters_are_not_reset():
    conv = SheafConv(5, 6, "diagonal", 2)
    torch.nn.utils.parametrize.register_parametrization(conv.right, "0", torch.nn.Identity())
    values = {name: value.clone() for name, value in moved(conv).state_dict().items()}
    with pytest.raises(ValueError, match="right.0: a computed parameter is not allowed"):
        conv.reset_parameters()
    assert all(torch.equal(value, values[name]) for name, value in conv.state_dict().items())


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_of_activations(reentrant):
    """Without a seed the gradients are the same; with one they would be of other numbers."""
    from torch.utils.checkpoint import checkpoint

    x, edge_index = torch.randn(7, 5), edges()

    def gradient(seed, kept, training=True):
        conv = SheafConv(5, 6, "diagonal", 2, dropout=0.5, seed=seed).train(training)
        for value in conv.parameters():
            value.data.fill_(0.3)
        torch.manual_seed(4)
        own = x.clone().requires_grad_()
        run = lambda y: torch.relu(conv(y, edge_index))  # noqa: E731
        (run(own) if kept else checkpoint(run, own, use_reentrant=reentrant)).sum().backward()
        return own.grad

    assert torch.equal(gradient(None, True), gradient(None, False))
    assert torch.equal(gradient(1, True, False), gradient(1, False, False))
    with pytest.raises(RuntimeError, match="seed: .* leave the seed out"):
        gradient(1, False)


def test_derivatives_of_derivatives_are_refused():
    e, x = edges(), features(7, 4)
    conv, net = SheafConv(4, 6, seed=1, dtype=torch.float64), Nsd(4, 2, seed=1, dtype=torch.float64)
    for module, own in ((conv, x), (net, net.get_parameter("lin1.weight"))):
        output = module(x if module is conv else x.detach(), e)
        gradient = torch.autograd.grad(output.pow(2).sum(), own, create_graph=True)[0]
        message = "derivatives of derivatives of sheafnn.torch are not available"
        penalty = gradient.pow(2).sum()
        refused(message, lambda: (output.sum() + penalty).backward(retain_graph=True), RuntimeError)
        refused(message, lambda: torch.autograd.grad(penalty, list(module.parameters()), allow_unused=True), RuntimeError)
        once = torch.autograd.grad(module(x if module is conv else x.detach(), e).pow(2).sum(), own)[0]
        assert torch.equal(once, gradient.detach())


def test_functions_that_differentiate_twice_are_refused():
    e, x = edges(), features(7, 4).detach()
    conv, net = SheafConv(4, 6, seed=1, dtype=torch.float64), Nsd(4, 2, seed=1, dtype=torch.float64)
    diffusion = SheafDiffusion(2, "diagonal", 2, seed=1, dtype=torch.float64)
    weight, maps, h = net.get_parameter("lin1.weight").detach(), features(e.shape[1], 2).detach(), features(7, 4).detach()
    functions = [
        (lambda x: conv(x, e), x),
        (lambda maps: diffusion(h, e, maps), maps),
        (lambda weight: torch.func.functional_call(net, {"lin1.weight": weight}, (x, e)), weight),
    ]
    functional = torch.autograd.functional
    message = "derivatives of derivatives of sheafnn.torch are not available"
    for function, own in functions:
        total = lambda own: function(own).pow(2).sum()  # noqa: B023, E731
        refused(message, lambda: functional.hessian(total, own), RuntimeError)  # noqa: B023
        refused(message, lambda: functional.hvp(total, own, own), RuntimeError)  # noqa: B023
        refused(message, lambda: functional.vhp(total, own, own), RuntimeError)  # noqa: B023
        refused(message, lambda: functional.jvp(function, own, own), RuntimeError)  # noqa: B023
        once = functional.vjp(total, own)[1]
        assert torch.equal(once, functional.jacobian(total, own)) and once.any()


@pytest.mark.parametrize("make", [lambda: SheafConv(4, 6, seed=1), lambda: Bsnn(4, 2, seed=1)], ids=["layer", "network"])
def test_batches_of_derivatives_are_refused(make):
    module, e, x = make(), edges(), features(7, 4, grad=False).float()
    output, message = module(x, e), "batches of derivatives of sheafnn.torch are not available"
    weight, bars = module.get_parameter("lin1.weight"), torch.ones(2, *output.shape)
    one = lambda bar: torch.autograd.grad(output, weight, bar, retain_graph=True)  # noqa: E731
    refused(message, lambda: torch.autograd.grad(output, weight, bars, is_grads_batched=True, retain_graph=True), NotImplementedError)
    refused(message, lambda: torch.vmap(one)(bars), NotImplementedError)
    assert one(bars[0])[0].any()


def test_transforms_are_refused():
    e, x, conv = edges(), features(7, 4).detach(), SheafConv(4, 6, seed=1, dtype=torch.float64)
    total = lambda x: conv(x, e).sum()  # noqa: E731
    forward_mode = "derivatives of sheafnn.torch in forward mode are not available; use torch.autograd.grad"
    refused(forward_mode, lambda: torch.func.jvp(total, (x,), (x,)), NotImplementedError)
    refused(forward_mode, lambda: torch.func.jacfwd(total)(x), NotImplementedError)
    refused("by torch.func are not available", lambda: torch.func.grad(total)(x), NotImplementedError)
    refused("torch.vmap of sheafnn.torch is not available", lambda: torch.vmap(total)(x[None]), NotImplementedError)
    with torch.no_grad(), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        refused(forward_mode, lambda: conv(dual, e), NotImplementedError)
        assert torch.equal(conv(x, e), conv(x.clone(), e))  # others are not affected


def test_graphs_and_features_of_replaced_data():
    e, other = edges(), edges(seed=5)
    x, y = features(7, 4).detach(), features(7, 4, seed=2).detach()
    net = Nsd(4, 2, seed=1, dtype=torch.float64)
    first, second = net(x, e), net(y, other)
    assert other.shape == e.shape and not torch.equal(first, second)
    a, b = x.clone(), e.clone()
    assert torch.equal(net(a, b), first)
    a.data, b.data = y.clone(), other.clone()
    assert torch.equal(net(a, b), second)


def test_missing_values():
    e, x = edges(), features(7, 4).detach()
    x[3, 2] = torch.nan
    refused(r"x\[3, 2\]: nan is not allowed; the network has no treatment of missing values",
            lambda: Nsd(4, 2, dtype=torch.float64)(x, e))
    sparse = torch.zeros(200, 4)
    sparse[3, 2] = torch.nan
    output = SheafConv(4, 6)(sparse, torch.tensor([[0, 1], [1, 0]]))  # NaN as of dense features
    assert torch.isnan(output[3]).all() and not torch.isnan(output[4]).any()


@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
def test_networks_that_know_missing_values(karate, tmp_path):
    features = np.random.default_rng(0).normal(size=(34, 3))
    features[5, 1] = features[7, 1] = np.nan
    model = sheafnn.SheafClassifier("nsd", "diagonal", 2, epochs=5).fit(features, karate.codes, edges=karate.edges)
    model.save(tmp_path / "model.safetensors")
    net = Nsd.load(tmp_path / "model.safetensors").eval()
    assert net.in_channels == 4  # with the indicator
    edge_index = torch.tensor(karate.arcs.T.copy()).long()
    for rows in (features, np.nan_to_num(features), np.where(np.arange(3) == 2, np.nan, features)):
        own = net(torch.tensor(rows, dtype=net.dtype), edge_index).softmax(1).detach().numpy()
        assert np.abs(own - model.predict_proba(rows, edges=karate.edges)).max() < 1e-6
    refused(r"x: shape \(34, 4\) is not allowed; must be n x 3", lambda: net(torch.zeros(34, 4, dtype=net.dtype), edge_index))


def test_a_loss_of_the_divergence_alone():
    e, x = edges(), features(7, 4)
    conv = moved(BayesianSheafConv(4, 6, seed=5, dtype=torch.float64))
    gradients = []
    for weight in (None, 0.0):  # without the output, and with a derivative of 0 for it
        conv.step = 0
        output = conv(x, e)
        loss = conv.kl() if weight is None else conv.kl() + weight * output.sum()
        gradients.append(torch.autograd.grad(loss, [x, *conv.parameters()], allow_unused=True))
    assert any(a is not None and a.abs().max() > 0 for a in gradients[0])
    for a, b in zip(*gradients):
        torch.testing.assert_close(torch.zeros_like(b) if a is None else a, b, rtol=0, atol=0)


def test_training_and_evaluation_of_all_parts():
    conv = SheafConv(4, 6, dropout=0.5)
    for mode in (False, True):
        assert conv.train(mode) is conv and all(part.training is mode for part in conv.modules())
    assert not any(part.training for part in torch.nn.Sequential(conv).eval().modules())
    refused("mode: 1 is not allowed", lambda: conv.train(1))


def test_graphs_of_several_types_are_refused():
    data = pytest.importorskip("torch_geometric.data")
    graph = data.HeteroData()
    graph["paper"].x, graph["paper", "cites", "paper"].edge_index = torch.zeros(7, 4), edges()
    conv = SheafConv(4, 6, seed=1)
    refused("x: HeteroData is not allowed; .*data.to_homogeneous()", lambda: conv(graph, edges()), TypeError)
    refused("edge_index: HeteroData is not allowed", lambda: conv(torch.zeros(7, 4), graph), TypeError)
    refused("x: HeteroData is not allowed", lambda: conv(data.Batch.from_data_list([graph]), edges()), TypeError)
    refused("x: a dictionary of types, as HeteroData", lambda: conv(graph.x_dict, graph.edge_index_dict), TypeError)
    refused("data: HeteroData is not allowed", lambda: sheafnn.Dataset.from_pyg(graph), TypeError)
    same = graph.to_homogeneous()
    assert torch.equal(conv(same.x, same.edge_index), conv(torch.zeros(7, 4), edges()))


def test_sparse_adjacencies_are_refused():
    geometric = pytest.importorskip("torch_geometric")
    data = geometric.data.Data(x=torch.zeros(7, 4), edge_index=edges())
    conv = SheafConv(4, 6, seed=1)
    expected = conv(data.x, data.edge_index)
    sparse = [geometric.transforms.ToSparseTensor(layout=layout)(data.clone()) for layout in (torch.sparse_csr, torch.sparse_coo)]
    sparse += [geometric.data.Data(x=data.x, adj_t=type("SparseTensor", (), {})())]  # as torch_sparse names it
    if geometric.typing.WITH_TORCH_SPARSE:
        sparse += [geometric.transforms.ToSparseTensor()(data.clone())]
    for one in sparse:
        message = r"a sparse matrix, as adj_t, is not allowed; give node numbers: torch_geometric.utils.to_edge_index\(adj_t\)\[0\]"
        refused(f"edge_index: {message}", lambda: conv(one.x, one.adj_t), TypeError)
        refused(f"edge_index: {message}", lambda: Graph(one.adj_t), TypeError)
        refused(f"adj_t: {message}", lambda: sheafnn.Dataset.from_pyg(one), TypeError)
    same = geometric.utils.to_edge_index(sparse[0].adj_t)[0]
    assert torch.equal(conv(data.x, same), expected)
    assert len(sheafnn.Dataset.from_pyg(data).edges) == len(same.T) // 2


class Parts:
    """Mixed into ClusterData, in the place of METIS."""

    def _metis(self, edge_index, num_nodes):
        return torch.arange(num_nodes) * 3 % self.num_parts


def test_batches_of_clusters():
    loader = pytest.importorskip("torch_geometric.loader")
    geometric = pytest.importorskip("torch_geometric")
    e = torch.tensor(sheafnn.karate_club().arcs.T.copy()).long()
    data = geometric.data.Data(x=torch.randn(34, 4, generator=torch.Generator().manual_seed(2)), edge_index=e, node=torch.arange(34))
    clusters = type("Clusters", (Parts, loader.ClusterData), {})(data, num_parts=5, log=False)
    conv = SheafConv(4, 6, seed=1, dtype=torch.float64)
    seen = []
    for batch in loader.ClusterLoader(clusters, batch_size=2):
        assert not torch.equal(batch.node, batch.node.sort().values)  # nodes are permuted
        part = geometric.utils.subgraph(batch.node.sort().values, e, relabel_nodes=True, num_nodes=34)[0]
        expected = conv(data.x[batch.node.sort().values].double(), part)
        own = conv(batch.x.double(), batch.edge_index)
        assert torch.allclose(own, expected[batch.node.argsort().argsort()], rtol=0, atol=1e-12)
        seen += batch.node.tolist()
    assert sorted(seen) == list(range(34))


def test_without_torch():
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import sheafnn\n"
        "try:\n    import sheafnn.torch\n"
        "except ImportError as error:\n    print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "sheafnn.torch needs PyTorch 2.4 or later: pip install torch\n"
