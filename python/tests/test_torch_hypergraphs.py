"""sheafnn.torch on hypergraphs: gradients, numbers of the C++ networks to the bit, checkpoints, torch.compile, and what is refused."""

import copy
import gc
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import sheafnn  # noqa: E402
from sheafnn.torch import (  # noqa: E402
    BayesianSheafHyperGnn,
    BayesianSheafHypergraphConv,
    Graph,
    Hypergraph,
    Nsd,
    SheafHyperGnn,
    SheafHypergraphConv,
)
from test_torch import check_gradient, features, moved, network, refused  # noqa: E402

FAMILIES = [("diagonal", 2), ("special-orthogonal", 2)]
PLAIN = ("diagonal", 2)
NETWORKS = (SheafHyperGnn, BayesianSheafHyperGnn)
OPTIONS = [
    {},
    {"update": "residual", "learner": "averaged", "left_weights": False},
    {"laplacian": "published", "right_weights": False, "bias": False},
    {"laplacian": "nonlinear", "mediators": True, "projection": [0.3, 0.8, -0.5]},
]


def members():
    """Hyperedges of 1 to 5 of seven nodes, one of them without members; node 6 is in none. Columns in no order."""
    lists = [[1, 4, 0], [2], [5, 3], [], [0, 2, 3, 5], [0, 1, 2, 4, 5]]
    columns = torch.tensor([(node, number) for number, nodes in enumerate(lists) for node in nodes]).T
    return columns[:, torch.randperm(columns.shape[1], generator=torch.Generator().manual_seed(2))]


def task(nodes=60):
    """A dataset of the library, its features and its hyperedge_index."""
    data = sheafnn.synthetic_hypergraph(nodes=nodes, classes=3, features=8, words=5, hyperedges=70, splits=1)
    x = torch.from_numpy(data.features.toarray().astype(np.float32))
    return data, x, torch.tensor(data.incidence.T.copy(), dtype=torch.int64)


def with_kl(module, e):
    def call(x):
        output = module(x, e)
        return (output, module.kl()) if module._architecture.draws else output

    return call


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maps, d", FAMILIES)
@pytest.mark.parametrize("kind", [SheafHypergraphConv, BayesianSheafHypergraphConv])
def test_gradients_of_convolutions(kind, maps, d, options):
    conv = moved(kind(3, 3 * d, maps, d, act="elu", dropout=0.3, seed=1, dtype=torch.float64, **options), 0.2)
    call = with_kl(conv, members())
    check_gradient(conv, features(7, 3), call)
    check_gradient(conv, features(7, 3, grad=False), call)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maps, d", FAMILIES)
@pytest.mark.parametrize("kind", NETWORKS)
def test_gradients_of_networks(kind, maps, d, options):
    net = moved(network(kind, maps, d, options, dropout=0.2, input_dropout=0.2), 0.1)
    check_gradient(net, features(7, 4, grad=False), with_kl(net, members()))


def test_the_weight_of_the_divergence_may_be_negative():
    conv = moved(BayesianSheafHypergraphConv(3, 4, *PLAIN, seed=1, dtype=torch.float64), 0.2)
    check_gradient(conv, features(7, 3), lambda x: conv(x, members()).sum() - 2 * conv.kl())


@pytest.mark.parametrize("update", ["plain", "residual"])
@pytest.mark.parametrize("maps, d", FAMILIES)
@pytest.mark.parametrize("kind, conv_kind", list(zip(NETWORKS, (SheafHypergraphConv, BayesianSheafHypergraphConv))))
def test_a_convolution_is_a_layer_of_the_network(kind, conv_kind, maps, d, update):
    """X_2 of a network of one layer, from X_1, with the same draws."""
    e, x = members(), features(7, 4, grad=False)
    options = {"update": update, "layers": 1, "feature_treatment": "none", **({"separate_encoder": False} if kind is BayesianSheafHyperGnn else {})}
    net = moved(kind(4, 3, maps, d, channels=3, seed=1, dtype=torch.float64, **options), 0.1)
    conv = conv_kind(3 * d, 3 * d, maps, d, seed=1, dtype=torch.float64, update=update)
    state = net.state_dict()
    own = {name: value for name, value in state.items() if not name.startswith("lin")}
    conv.load_state_dict({**own, "lin1.weight": torch.eye(3 * d), "lin1.bias": torch.zeros(3 * d)})
    h = torch.nn.functional.elu(torch.nn.functional.linear(x, state["lin1.weight"], state["lin1.bias"]))
    outputs = torch.nn.functional.linear(conv(h, e), state["lin2.weight"], state["lin2.bias"])
    torch.testing.assert_close(outputs, net(x, e), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", NETWORKS)
def test_checkpoints_to_the_bit(kind, options, dtype, tmp_path):
    net = moved(network(kind, "diagonal", 2, options, dtype), 0.1).eval()
    net.save(tmp_path / "model.safetensors")
    other = kind.load(tmp_path / "model.safetensors", seed=1).eval()
    assert list(other.state_dict()) == list(net.state_dict()) and other.dtype == dtype
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in net.state_dict().items())
    e, x = members(), features(7, 4, grad=False).to(dtype)
    assert torch.equal(net(x, e), other(x, e))
    other.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    refused("holds the network", lambda: NETWORKS[kind is SheafHyperGnn].load(tmp_path / "model.safetensors"))
    with pytest.raises(RuntimeError, match="model.safetensors: .* it works on a hypergraph"):
        Nsd.load(tmp_path / "model.safetensors")
    refused("dtype: torch.float64 is not allowed; choose dropout, input_dropout, seed",
            lambda: kind.load(tmp_path / "model.safetensors", dtype=torch.float64))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maps, d", FAMILIES)
@pytest.mark.parametrize("kind", NETWORKS)
def test_outputs_of_the_library_to_the_bit(kind, maps, d, options, tmp_path):
    data, x, e = task()
    net = moved(network(kind, maps, d, options, torch.float32, x.shape[1], seed=7), 0.1).eval()
    expected = torch.from_numpy(net.to_model().outputs(data._core, 7))
    for keep in (False, True):
        net.step = 0
        with torch.set_grad_enabled(keep):
            assert torch.equal(net(x, e).double(), expected)
    # The library's softmax is one of floats.
    net.save(tmp_path / "model.safetensors")
    classifier = sheafnn.HypergraphClassifier.load(tmp_path / "model.safetensors", predict_samples=1, random_state=7)
    rounding = 4 * 2**-24 * (1 + float(expected.abs().max()))
    np.testing.assert_allclose(torch.softmax(expected, 1), classifier.predict_proba(data), rtol=0, atol=rounding)


def test_trained_networks(tmp_path):
    """Of the library's training, with its treatment of features; and a training here is one that the library can use."""
    data, x, e = task(120)
    classifier = sheafnn.HypergraphClassifier("bshgnn", channels=4, epochs=5).fit(data)
    classifier.save(tmp_path / "model.safetensors")
    net = BayesianSheafHyperGnn.load(tmp_path / "model.safetensors", seed=0).eval()
    with torch.no_grad():
        assert torch.equal(net(x, e).double(), torch.from_numpy(classifier.model_.outputs(data._core, 0)))
    train, y = torch.from_numpy(data.splits[0].train).long(), torch.from_numpy(data.codes).long()
    net = SheafHyperGnn(x.shape[1], 3, *PLAIN, channels=4, seed=1)
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(net(x, e)[train], y[train])
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert float(loss.detach()) < 0.3 and float(net.kl().detach()) == 0


@pytest.mark.parametrize("maps, d", FAMILIES)
def test_compiled(maps, d):
    """The same numbers, drawn by seed and step, and the same derivatives."""
    e, x = members(), features(7, 4, grad=False).float()
    first = BayesianSheafHypergraphConv(4, 6, maps, d, act="elu", dropout=0.2, seed=5)
    second, net = SheafHypergraphConv(6, 6, maps, d, seed=6), network(BayesianSheafHyperGnn, maps, d, {}, torch.float32, dropout=0.2)
    parameters = [*first.parameters(), *second.parameters(), *net.parameters()]

    def loss(x):
        return second(first(x, e), e).square().sum() + first.kl() + net(x, e).square().sum() + net.kl()

    def run(function):
        first.step = net.step = 0
        values = []
        for _ in range(2):
            value = function(x)
            values += [value.detach(), *torch.autograd.grad(value, parameters)]
        assert first.step == net.step == 2
        return values

    expected = run(loss)
    assert not torch.equal(expected[0], expected[len(expected) // 2])
    for ours, theirs in zip(run(torch.compile(loss, fullgraph=True, backend="aot_eager")), expected):
        assert torch.equal(ours, theirs)


def test_exported():
    e, x = members(), features(7, 4, grad=False).float()
    conv = SheafHypergraphConv(4, 6, *PLAIN, seed=5)
    assert torch.equal(torch.export.export(conv, (x, e)).module()(x, e), conv(x, e))


def test_operators():
    conv = BayesianSheafHypergraphConv(4, 6, *PLAIN, seed=5, dtype=torch.float64)
    of = conv._architecture
    torch.library.opcheck(
        torch.ops.sheafnn.forward.default,
        (of.text, members(), features(7, 6), [conv._named(name) for name in of.names], torch.tensor([1, 0]), 0.0, 0.0, True, True, 1),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


def test_hypergraphs_are_built_once():
    from sheafnn.torch import _graphs

    e, x = members(), features(7, 4, grad=False).float()
    conv, net = SheafHypergraphConv(4, 6, *PLAIN), SheafHyperGnn(4, 3, *PLAIN)
    first = conv(x, e)
    entry = _graphs.entry_of(e, 7, "hypergraph")
    conv(x, e), net(x, e)
    assert _graphs.entry_of(e, 7, "hypergraph") is entry and len(entry.plans) == 2
    hypergraph = Hypergraph(e, 7)
    assert (hypergraph.num_nodes, hypergraph.num_hyperedges) == (7, 6) and Hypergraph(e).num_nodes == 6
    assert repr(hypergraph) == "Hypergraph(num_nodes=7, num_hyperedges=6)"
    assert torch.equal(conv(x, hypergraph), first)
    assert torch.equal(conv(x, e[:, torch.arange(e.shape[1] - 1, -1, -1)]), first)  # the order of columns does not matter
    del hypergraph
    gc.collect()
    count = len(_graphs._hypergraphs)
    e[:, 0] = torch.tensor([6, 1])  # changed in place
    assert _graphs.entry_of(e, 7, "hypergraph") is not entry
    assert not torch.equal(conv(x, e), first)
    del e, entry
    gc.collect()
    assert len(_graphs._hypergraphs) == count - 1


def test_noise_threads_and_copies():
    e, x = members(), features(7, 4, grad=False).float()
    conv = BayesianSheafHypergraphConv(4, 6, *PLAIN, seed=5)
    first, second = conv(x, e), conv(x, e)
    assert not torch.equal(first, second) and conv.step == 2
    conv.step = 0
    assert torch.equal(conv(x, e), first)
    for twin in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(twin(x, e), second)
    free = BayesianSheafHypergraphConv(4, 6, *PLAIN)
    torch.manual_seed(3)
    drawn = free(x, e)
    torch.manual_seed(3)
    assert torch.equal(free(x, e), drawn) and not torch.equal(free(x, e), drawn)
    _, x, e = task(400)
    results = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        net = BayesianSheafHyperGnn(x.shape[1], 3, *PLAIN, dropout=0.3, seed=5)
        (net(x, e).square().sum() + net.kl()).backward()
        results.append([net.kl().detach(), *(parameter.grad for parameter in net.parameters())])
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_in_the_place_of_pytorch_geometric():
    nn = pytest.importorskip("torch_geometric.nn")
    e, x = members(), features(7, 4, grad=False).float()
    for conv in (nn.HypergraphConv(4, 6), SheafHypergraphConv(4, 6, *PLAIN), BayesianSheafHypergraphConv(4, 6, *PLAIN)):
        assert conv(x, e).shape == conv(x=x, hyperedge_index=e).shape == (7, 6)
        model = nn.Sequential("x, hyperedge_index", [(conv, "x, hyperedge_index -> x"), torch.nn.Linear(6, 2)])
        model(x, e).sum().backward()
        assert all(parameter.grad is not None for parameter in conv.parameters())


def test_what_is_refused():
    e, x = members(), torch.zeros(7, 4)
    conv, net = SheafHypergraphConv(4, 6, *PLAIN), SheafHyperGnn(4, 3, *PLAIN)
    for call in (conv, net, BayesianSheafHypergraphConv(4, 6, *PLAIN)):
        refused(r"hyperedge_index\[0, 1\]: 7 is not allowed; a node number must be between 0 and 6",
                lambda: call(x, torch.tensor([[0, 7], [1, 0]])))
        refused(r"hyperedge_index\[1, 0\]: -1 is not allowed; a hyperedge number must be between 0 and 2147483646",
                lambda: call(x, torch.tensor([[0], [-1]])))
        refused("hyperedge_index: node 2 twice in hyperedge 1 is not allowed; a node may belong to a hyperedge only once",
                lambda: call(x, torch.tensor([[2, 2], [1, 1]])))
        refused(r"hyperedge_index: shape \(3,\) is not allowed; must be 2 x nnz", lambda: call(x, torch.zeros(3, dtype=torch.int64)))
        refused("hyperedge_index: torch.float32 is not allowed; must be torch.int64", lambda: call(x, torch.zeros(2, 3)))
        refused("hyperedge_index: Graph is not allowed; expected a tensor or a sheafnn.torch.Hypergraph",
                lambda: call(x, Graph(torch.tensor([[0, 1], [1, 0]]), 7)), TypeError)
        refused("x: 8 rows are not allowed; the hypergraph has 7 nodes", lambda: call(torch.zeros(8, 4), Hypergraph(e, 7)))
        refused(r"x: shape \(7, 3\) is not allowed; must be n x 4", lambda: call(torch.zeros(7, 3), e))
    refused("edge_index: Hypergraph is not allowed; expected a tensor or a sheafnn.torch.Graph",
            lambda: Nsd(4, 3, "diagonal", 2)(x, Hypergraph(e, 7)), TypeError)
    refused("num_nodes: -1 is not allowed", lambda: Hypergraph(e, -1))
    refused("features of networks are data, use SheafHypergraphConv", lambda: net(x.clone().requires_grad_(), e))
    refused("out_channels: 7 is not allowed; must be a multiple of 2", lambda: SheafHypergraphConv(4, 7, *PLAIN))
    refused("layers: 2 is not allowed; it is an option of whole networks", lambda: SheafHypergraphConv(4, 6, *PLAIN, layers=2))
    refused("static_sheaf: True is not allowed; it is an option of whole networks", lambda: SheafHypergraphConv(4, 6, *PLAIN, static_sheaf=True))
    refused("mediators: true is not allowed; an option of the nonlinear Laplacian", lambda: SheafHypergraphConv(4, 6, *PLAIN, mediators=True))
    refused("projection: 2 numbers is not allowed; must be one for each of the 3 channels",
            lambda: SheafHypergraphConv(4, 6, *PLAIN, laplacian="nonlinear", projection=[1, 2]))
    refused("options.'add_lp'.*has no such option; it has ", lambda: SheafHyperGnn(4, 3, *PLAIN, add_lp=True))
    refused("edge_types: True is not allowed; hyperedge_index carries no types", lambda: SheafHyperGnn(4, 3, *PLAIN, edge_types=True))
    refused("maps, stalk_dim: identity, 2 is not allowed; of shgnn this build has .*diagonal 2", lambda: SheafHyperGnn(4, 3, "identity", 2))
    refused("maps, stalk_dim: diagonal, 5 is not allowed; of shgnn this build has ", lambda: SheafHypergraphConv(4, 10, "diagonal", 5))
    refused("relations: a graph is not allowed; the network works on hypergraphs", lambda: _with_graph(net, x))
    refused("kl.. needs a forward pass before it", BayesianSheafHypergraphConv(4, 6, *PLAIN).kl, RuntimeError)


def _with_graph(net, x):
    """A plan that no module makes."""
    from sheafnn import _torch
    from sheafnn.torch import _graphs

    graph = _graphs.entry_of(torch.tensor([[0, 1], [1, 0]]), 7).graph
    plan = _torch.plan(net._architecture.core(False), graph, _graphs.features_of(x)[0])
    _torch.forward(plan, 0, 0, 0.0, 0.0, False, False, 1, 0, False, [], 0, torch.empty(7, 3).data_ptr(), 0, 0)
