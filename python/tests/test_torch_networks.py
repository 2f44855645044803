"""sheafnn.torch: convolutions of every equation, complete networks under torch.compile, and what they refuse."""

import copy

import numpy
import pandas
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import sheafnn  # noqa: E402
from sheafnn.torch import (  # noqa: E402
    BayesianBunn,
    BayesianSheafConv,
    BayesianSheafFlow,
    BconnNsd,
    Bsnn,
    BsnnAround,
    Bunn,
    ConnNsd,
    Graph,
    Nsd,
    SheafConv,
    SheafFlow,
    Snn,
)
from test_torch import LAYERS, check_gradient, edges, features, moved, network, over, refused, some_directions  # noqa: E402

PLAIN = [options for options in LAYERS if not any(name.startswith("random") for name in options)]


def width(options):
    """The numbers of a node of three channels and stalk dimension 2."""
    return 12 if options["layer"] == "directed" else 6


@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_gradients_of_convolutions_of_every_equation(options):
    e = some_directions(edges(), options)
    conv = moved(SheafConv(3, width(options), "diagonal", 2, act="elu", seed=1, dtype=torch.float64, dropout=0.3, **options), 0.1)
    check_gradient(conv, features(7, 3), lambda x: conv(x, e))


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_gradients_of_bayesian_convolutions_of_every_equation(options):
    e = some_directions(edges(), options)
    conv = moved(BayesianSheafConv(3, width(options), "diagonal", 2, seed=1, dtype=torch.float64, **options), 0.1)

    def call(x):
        output = conv(x, e)
        return output, conv.kl()

    check_gradient(conv, features(7, 3), call)
    check_gradient(conv, features(7, 3), lambda x: conv(x, e).sum() - 2 * conv.kl())
    (alone,) = torch.autograd.grad(call(features(7, 3))[1], [conv.lin1.weight])
    assert alone.abs().max() > 0


@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_a_convolution_is_a_layer_of_the_network(options):
    e, x = some_directions(edges(30, 60), options), features(30, 4, grad=False)
    net = moved(Nsd(4, 6, "diagonal", 2, channels=3, layers=1, activation=False, seed=7, dtype=torch.float64,
                    feature_treatment="none", **options), 0.1).eval()
    conv = SheafConv(4, width(options), "diagonal", 2, activation=False, dtype=torch.float64, **options).eval()
    state = net.state_dict()
    conv.load_state_dict({name: value for name, value in state.items() if name in conv.state_dict()})
    outputs = torch.nn.functional.linear(conv(x, e), state["lin2.weight"], state["lin2.bias"])
    torch.testing.assert_close(outputs, net(x, e), rtol=0, atol=1e-12)


COMPILED = [
    (Nsd, "diagonal", 2, {"layer": "attention", "random_attention": True}),
    (Bsnn, "diagonal", 2, {"layer": "directed"}),
    (SheafFlow, "diagonal", 2, {}),
    (BayesianSheafFlow, "diagonal", 2, {"method": "euler"}),
    (ConnNsd, None, 2, {}),
    (BconnNsd, None, 2, {}),
    (Bunn, None, 2, {"bundles": 2}),
    (BayesianBunn, None, 2, {"bundles": 2}),
    (Snn, "special-orthogonal", 2, {}),
    (BsnnAround, "diagonal", 2, {"label_count": 3}),
]


@pytest.mark.filterwarnings("ignore::sheafnn.UnusedSheaf")
def test_saved_again_features_and_outputs_keep_their_meaning(karate, tmp_path):
    """Of networks that estimators have saved: names of classes and features, the order of classes, scales of targets."""
    first, again = tmp_path / "first.safetensors", tmp_path / "again.safetensors"
    features, names = pandas.DataFrame(karate.features.toarray()).add_prefix("c"), numpy.array(["ant", "bee"])[karate.codes]
    degrees = numpy.asarray(karate.adjacency.sum(axis=1)).ravel() + 100
    options = dict(model="nsd", maps="diagonal", stalk_dim=2, epochs=3)
    trained = [
        sheafnn.SheafClassifier(**options).fit(features, names, edges=karate.edges),
        sheafnn.SheafClassifier(**options, loss="ordinal").fit(features, degrees.astype(int) % 3, edges=karate.edges),
        sheafnn.SheafClassifier(**options).fit(features, numpy.eye(2, dtype=int)[karate.codes], edges=karate.edges),
        sheafnn.SheafRegressor(**options, loss="gaussian").fit(features, degrees, edges=karate.edges),
    ]
    for model in trained:
        model.save(first)
        copy.deepcopy(Nsd.load(first)).save(again)
        loaded = type(model).load(again)
        assert (loaded.predict(features, edges=karate.edges) == model.predict(features, edges=karate.edges)).all()
        assert loaded.feature_names_in_.tolist() == list(features.columns)
        assert loaded.model_.metadata.get("targets") == type(model).load(first).model_.metadata.get("targets")


def test_parameters_that_are_not_finite_do_not_replace_a_file(tmp_path):
    net, path = Nsd(4, 2, "diagonal", 2, seed=1), tmp_path / "model.safetensors"
    net.save(path)
    before = path.read_bytes()
    with torch.no_grad():
        net.get_parameter("lin1.weight")[1, 2] = float("nan")
    refused(r"lin1.weight\[1, 2\]: nan is not allowed; must be finite", lambda: net.save(path))
    assert path.read_bytes() == before


def test_real_and_imaginary_parts():
    """A directed convolution over the sheaf 0 gives its features before the layer, (1 + i) H."""
    conv = SheafConv(4, 12, "diagonal", 2, layer="directed", seed=1, dtype=torch.float64)
    with torch.no_grad():
        conv.get_parameter("sheaf.0.weight").zero_()
    x = features(7, 4).detach()
    h = torch.nn.functional.linear(x, conv.get_parameter("lin1.weight"), conv.get_parameter("lin1.bias"))
    parts = conv(x, edges()).view(7, 2, 2, 3)
    for part in (0, 1):
        torch.testing.assert_close(parts[:, :, part].reshape(7, 6), h)


@pytest.mark.parametrize("kind, maps, d, options", COMPILED)
def test_compiled_networks(kind, maps, d, options):
    """The same numbers, drawn by seed and step, and the same derivatives."""
    torch.compiler.reset()  # a function may be compiled a few times only, and every case compiles it
    net = network(kind, maps, d, options, torch.float32, dropout=0.2)
    e, x = over(net, edges()), features(7, 4, grad=False).float()

    def loss(x):
        return net(x, e).square().sum() + net.kl()

    def run(function):
        net.step = 0
        values = []
        for _ in range(2):
            value = function(x)
            values += [value.detach(), *torch.autograd.grad(value, list(net.parameters()))]
        assert net.step == 2
        return values

    expected = run(loss)
    assert not torch.equal(expected[0], expected[len(expected) // 2])
    for ours, theirs in zip(run(torch.compile(loss, fullgraph=True, backend="aot_eager")), expected):
        assert torch.equal(ours, theirs)


def test_what_networks_refuse():
    e, x = edges(), torch.zeros(7, 4)
    one_way = torch.tensor([[0, 1], [1, 2]])
    refused(r"it has no \(1, 0\)", lambda: Nsd(4, 3, "diagonal", 2, layer="wave")(x, one_way))
    directed = Nsd(4, 3, "diagonal", 2, layer="directed", seed=1)
    graph = Graph(one_way, 7, directed=True)
    assert torch.equal(directed(x, one_way), directed(x, graph))
    assert not torch.equal(directed(x + 1, one_way), directed(x + 1, one_way.flip(0)))
    refused("the layer wave has no filter", lambda: Nsd(4, 3, "diagonal", 2, layer="wave", filter="chebyshev"))
    refused("layer: wrong is not allowed; choose diffusion, ", lambda: Nsd(4, 3, "diagonal", 2, layer="wrong"))
    refused("out_channels: 6 is not allowed; must be a multiple of 4", lambda: SheafConv(4, 6, "diagonal", 2, layer="directed"))
    refused("random_attention: True is not allowed; it has a KL term",
            lambda: SheafConv(4, 6, "diagonal", 2, layer="attention", random_attention=True))
    refused("layers.*has no such option", lambda: SheafFlow(4, 3, "diagonal", 2, layers=2))
    refused("time: .*must be", lambda: SheafFlow(4, 3, "diagonal", 2, time=-1))
    refused("maps, stalk_dim: special-orthogonal, 5 is not allowed; of flow this build has .*diagonal 2",
            lambda: SheafFlow(4, 3, "special-orthogonal", 5))
    refused("maps, stalk_dim: bundle, 1 is not allowed; of bunn this build has bundle 2", lambda: Bunn(4, 3, 1))
    refused("features", lambda: ConnNsd(1, 3, 2)(torch.zeros(7, 1), e))
    refused("x: a tensor with gradient is not allowed", lambda: Bunn(4, 3, 2)(x.clone().requires_grad_(), e))
    refused("kl.. needs a forward pass before it", BayesianBunn(4, 3, 2).kl, RuntimeError)
