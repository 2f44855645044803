"""sheafnn.torch on given sheaves: where the maps come from, several graphs, trained models of the library, and what is refused."""

import copy
import gc
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import sheafnn  # noqa: E402
from sheafnn import CellularSheaf, Dataset, SheafClassifier  # noqa: E402
from sheafnn.torch import BsnnAround, BsnnGiven, Graph, Nsd, NsdGiven, SheafDiffusion, Snn  # noqa: E402
from test_torch import edges, features, moved, network, random_maps, refused, with_maps  # noqa: E402

KINDS = [Snn, BsnnGiven, NsdGiven, BsnnAround]


def graph_data(nodes=7):
    return Dataset.from_numpy(edges(nodes).T.numpy(), np.zeros((nodes, 1)))


def shuffled(e, seed=4):
    return e[:, torch.randperm(e.shape[1], generator=torch.Generator().manual_seed(seed))]


def column_maps(sheaf, e):
    """The maps of a CellularSheaf, one for each column."""
    place = {tuple(arc): i for i, arc in enumerate(sheaf.data.arcs.tolist())}
    return sheaf.maps[[place[tuple(column)] for column in e.T.tolist()]]


@pytest.mark.parametrize("maps", ["diagonal", "special-orthogonal"])
@pytest.mark.parametrize("kind", [Snn, BsnnGiven])
def test_every_form_of_a_sheaf_is_the_same(kind, maps, tmp_path):
    data, e, x = graph_data(), shuffled(edges()), features(7, 4, grad=False)
    weights = np.linspace(0.5, 1.5, data.edge_count) if maps == "special-orthogonal" else None
    labels = np.arange(data.edge_count) % 3
    sheaf = CellularSheaf(data, random_maps(maps, 2, 2 * data.edge_count), weights, family=maps)
    net = moved(network(kind, maps, 2, {"label_count": 3} if kind is BsnnGiven else {})).eval()
    own = column_maps(sheaf, e)
    more = {} if weights is None else {"edge_weights": weights}
    forms = [
        Graph(e, sheaf=sheaf, edge_labels=labels),
        Graph(e, sheaf=data.with_sheaf(sheaf, edge_labels=labels)),
        Graph(e, sheaf=own, edge_labels=labels, **more),
        Graph(e, sheaf=torch.tensor(own), edge_labels=torch.tensor(labels), **{k: torch.tensor(v) for k, v in more.items()}),
        Graph(e.int(), sheaf=own.tolist(), edge_labels=labels.tolist(), **more),
    ]
    forms += [copy.deepcopy(forms[0]), pickle.loads(pickle.dumps(forms[0]))]

    def outputs(graph):
        net.step = 0
        return net(x, graph)

    expected = outputs(forms[0])
    assert all(torch.equal(outputs(graph), expected) for graph in forms)
    other = CellularSheaf(data, np.roll(sheaf.maps, 1, 0), weights, family=maps)
    assert not torch.equal(outputs(Graph(e, sheaf=other, edge_labels=labels)), expected)
    if weights is not None:
        assert not torch.equal(outputs(Graph(e, sheaf=own, edge_labels=labels)), expected)
    learned = Nsd(4, 3, "diagonal", 2)  # a network that learns its maps ignores the sheaf
    assert torch.equal(learned(x.float(), forms[0]), learned(x.float(), e))


def test_a_layer_is_the_diffusion_of_its_maps():
    """X_2 of a network of one layer, from X_1."""
    e, x = shuffled(edges()), features(7, 4, grad=False)
    maps = random_maps("diagonal", 2, e.shape[1])
    net = moved(NsdGiven(4, 6, "diagonal", 2, channels=3, layers=1, activation=False, dtype=torch.float64, feature_treatment="none")).eval()
    state = net.state_dict()
    diffusion = SheafDiffusion(3, "diagonal", 2, activation=False, dtype=torch.float64)
    diffusion.load_state_dict({name: state[name + ".0"] for name in diffusion.state_dict()})
    h = torch.nn.functional.linear(x, state["lin1.weight"], state["lin1.bias"])
    outputs = torch.nn.functional.linear(diffusion(h, e, maps), state["lin2.weight"], state["lin2.bias"])
    torch.testing.assert_close(net(x, Graph(e, sheaf=maps)), outputs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_one_network_on_several_graphs(kind, tmp_path):
    """A further graph has a sheaf of its own, as in the library: a checkpoint has no maps."""
    net = moved(network(kind, "diagonal", 2, {}, torch.float32)).eval()
    net.save(tmp_path / "model.safetensors")
    loaded = kind.load(tmp_path / "model.safetensors", seed=1).eval()
    for nodes in (7, 12):
        x, data = features(nodes, 4, grad=False).float(), with_maps(net, graph_data(nodes))
        graph = Graph(torch.tensor(data.arcs.T.copy()).long(), sheaf=data)
        one = Dataset.from_numpy(data.edges, x.numpy(), np.arange(nodes) % 3)
        one = one.with_sheaf(CellularSheaf(one, data.given_sheaf.maps, family="diagonal"))
        net.step = loaded.step = 0
        outputs = net(x, graph)
        assert torch.equal(loaded(x, graph), outputs)
        theirs = net.to_model().predict_targets(one._core, ("squared", 3, [], 2), 1, 1, 0, 1)[0]
        np.testing.assert_array_equal(outputs.detach().double(), theirs)


@pytest.mark.parametrize("kind, model, deviation", [
    (Snn, "snn", None), (NsdGiven, "nsd-given", None), (BsnnAround, "bsnn-around", None),
    (BsnnGiven, "bsnn-given", None), (BsnnGiven, "bsnn-given", "arcs"),
])
@pytest.mark.parametrize("labelled", [False, True])
def test_models_that_the_library_has_trained(kind, model, deviation, labelled, tmp_path):
    data = sheafnn.synthetic(nodes=60, classes=3, features=8, words=4, degree=4, homophily=0.2, seed=3)
    sheaf = CellularSheaf(data, random_maps("diagonal", 2, 2 * data.edge_count), family="diagonal")
    given = data.with_sheaf(sheaf, edge_labels=np.arange(data.edge_count) % 4 if labelled else None)
    options = {} if deviation is None else {"network": {"deviation": deviation}}
    trained = SheafClassifier(model, "diagonal", 2, epochs=3, **options).fit(given, split=0)
    trained.save(tmp_path / "model.safetensors")
    net = kind.load(tmp_path / "model.safetensors", seed=0).eval()
    if kind in (BsnnGiven, BsnnAround):
        assert net.label_count == (4 if labelled and deviation is None else 0)
    x = torch.from_numpy(data.features.toarray().astype(np.float32))
    outputs = net(x, Graph(torch.tensor(data.arcs.T.copy()).long(), sheaf=given))
    theirs = trained.model_.predict_targets(given._core, ("squared", 3, [], 2), 1, 0, 0, 1)[0]
    np.testing.assert_array_equal(outputs.detach().double(), theirs)
    assert (net.kl() > 0) == (kind in (BsnnGiven, BsnnAround))


def test_rounded_rotations_are_the_nearest_ones():
    e, x = edges(), features(7, 4, grad=False)
    maps = random_maps("special-orthogonal", 2, e.shape[1])
    net = Snn(4, 3, "special-orthogonal", 2, seed=1, dtype=torch.float64)
    outputs = net(x, Graph(e, sheaf=maps))
    for rounded in (maps.float(), maps.float().numpy()):
        torch.testing.assert_close(net(x, Graph(e, sheaf=rounded)), outputs, rtol=0, atol=1e-6)
    refused(r"maps\[0\]|rotation", lambda: net(x, Graph(e, sheaf=maps.float().double())))


def test_a_sheaf_is_built_once():
    from sheafnn.torch import _graphs

    e, x = edges(), features(7, 4, grad=False).float()
    net, other = (Snn(4, 3, "diagonal", 2, seed=seed) for seed in (1, 2))
    graph = Graph(e, sheaf=random_maps("diagonal", 2, e.shape[1]))
    net(x, graph)
    (table,) = (table for rotations, table in _graphs._sheaves.items() if not rotations)
    entry, count = table.get(graph._sheaf[0])[2], len(table)
    other(x, graph)
    net(x, graph)
    assert table.get(graph._sheaf[0])[2] is entry
    del graph, entry, net, other
    gc.collect()
    assert len(table) == count - 1


def test_changes_of_the_tensors_that_a_graph_was_made_from():
    e, x, data = edges(), features(7, 4, grad=False).float(), graph_data()
    maps = random_maps("diagonal", 2, e.shape[1])
    net = Snn(4, 3, "diagonal", 2, seed=1)
    graph = Graph(e, sheaf=maps)
    with torch.no_grad():
        before = net(x, graph)
        other = Graph(e, sheaf=CellularSheaf(data, maps, family="diagonal"))
        e[:, :] = e.flip(1)
        maps *= 2
        assert torch.equal(net(x, graph), before)
        assert torch.equal(net(x, other), before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_lowers_the_loss(kind):
    data = sheafnn.karate_club()
    given = Graph(torch.tensor(data.arcs.T.copy()).long(), sheaf=CellularSheaf(data, np.ones((156, 2)), family="diagonal"))
    net = kind(34, 2, "diagonal", 2, channels=4, layers=2, seed=1)
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(net(torch.eye(34), given), torch.tensor(data.labels).long()) + 1e-3 * net.kl()
        adam.zero_grad(), loss.backward(), adam.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_what_is_refused():
    e, x, data = edges(), torch.zeros(7, 4), graph_data()
    maps = random_maps("diagonal", 2, e.shape[1])
    sheaf = CellularSheaf(data, maps, family="diagonal")
    net = Snn(4, 3, "diagonal", 2)
    refused("edge_index: a Tensor is not allowed; the maps of snn are given: sheafnn.torch.Graph", lambda: net(x, e))
    refused("edge_index: a Graph without a sheaf is not allowed; the maps of snn", lambda: net(x, Graph(e)))
    refused("sheaf: it is on another graph, of 7 nodes; must be 8", lambda: Graph(e, 8, sheaf=sheaf))
    refused("sheaf: it is on another graph, of 11 edges; must be 10", lambda: Graph(edges(count=10), 7, sheaf=sheaf))
    refused("sheaf: it is on another graph, whose edge 0 is . – .; must be . – .", lambda: Graph(edges(seed=5), 7, sheaf=sheaf))
    refused("sheaf: a Dataset without a sheaf is not allowed", lambda: Graph(e, sheaf=data))
    given = data.with_sheaf(sheaf)
    refused("edge_labels: not allowed with a Dataset", lambda: Graph(e, sheaf=given, edge_labels=np.zeros(11)))
    refused("edge_weights: not allowed with a CellularSheaf", lambda: Graph(e, sheaf=sheaf, edge_weights=np.ones(11)))
    refused("edge_labels: not allowed without a sheaf", lambda: Graph(e, edge_labels=np.zeros(11)))
    refused(r"sheaf: shape \(21, 2\) is not allowed; must be 22 x d x d, a map for each column", lambda: Graph(e, sheaf=maps[1:]))
    refused(r"sheaf: shape \(22, 2, 3\) is not allowed", lambda: Graph(e, sheaf=torch.ones(22, 2, 3)))
    refused(r"sheaf\[21, 1\]: nan is not allowed; must be finite", lambda: Graph(e, sheaf=np.append(maps[:-1], [[1, np.nan]], axis=0)))
    refused("sheaf: a tensor with gradient is not allowed; .* use SheafDiffusion", lambda: Graph(e, sheaf=maps.clone().requires_grad_()))
    refused("edge_index: 23 is not allowed; columns of 22 different arcs",
            lambda: Graph(torch.cat([e, e[:, :1]], 1), sheaf=torch.ones(23, 2)))
    refused(r"edge_weights: shape \(22,\) is not allowed; must be \(11,\)", lambda: Graph(e, sheaf=maps, edge_weights=np.ones(22)))
    refused(r"edge_labels: shape \(3,\) is not allowed; must be \(11,\)", lambda: Graph(e, sheaf=maps, edge_labels=[0, 1, 2]))
    refused(r"edge_labels\[1\]: 0.5 is not allowed", lambda: Graph(e, sheaf=maps, edge_labels=[0, 0.5] + [0] * 9))
    refused(r"edge_labels\[0\]: -1 is not allowed", lambda: net(x, Graph(e, sheaf=maps, edge_labels=[-1] * 11)))
    refused("maps: 88 is not allowed; expected 22 arcs \\* 2 numbers per diagonal map",
            lambda: net(x, Graph(e, sheaf=torch.ones(22, 2, 2))))
    refused("edge_weights: 11 is not allowed; diagonal maps have no edge weights",
            lambda: net(x, Graph(e, sheaf=maps, edge_weights=np.ones(11))))
    refused("maps, stalk_dim: identity, 2 is not allowed; of snn this build has diagonal 2", lambda: Snn(4, 3, "identity", 2))
    refused(r"label_count.*snn has no such option", lambda: Snn(4, 3, "diagonal", 2, label_count=2))
    refused("label_count: -1 is not allowed; must be between 0 and 1048576", lambda: BsnnGiven(4, 3, "diagonal", 2, label_count=-1))
    labelled = BsnnGiven(4, 3, "diagonal", 2, label_count=3)
    refused("labels: 0 is not allowed; expected one for each of 11 edges", lambda: labelled(x, Graph(e, sheaf=maps)))
    refused(r"labels\[2\]: 3 is not allowed; must be between 0 and 2",
            lambda: labelled(x, Graph(e, sheaf=maps, edge_labels=[0, 1, 3] + [0] * 8)))
    refused("label_count: 0 is not allowed; the graph has edge_labels: give the network label_count=1, or leave them out",
            lambda: BsnnAround(4, 3, "diagonal", 2)(x, Graph(e, sheaf=maps, edge_labels=[0] * 11)))
    refused("x: 8 rows are not allowed; the graph has 7 nodes", lambda: net(torch.zeros(8, 4), Graph(e, sheaf=maps)))
    refused("edge_weights: .* given sheaves have edge weights of their own", lambda: NsdGiven(4, 3, "diagonal", 2, edge_weights=True))
