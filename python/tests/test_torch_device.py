"""sheafnn.torch on CUDA devices: a build without them refuses their tensors. In a build with SHEAFNN_TORCH_STAND_IN the same
passes run on the host and are compared with the CPU's passes."""

import copy
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from sheafnn import _torch  # noqa: E402
from sheafnn._estimator import WITHOUT_CUDA  # noqa: E402
from sheafnn.torch import (  # noqa: E402
    BayesianBunn,
    BayesianCooperativeSheafConv,
    BayesianSheafConv,
    BayesianSheafFlow,
    BayesianSheafHypergraphConv,
    BconnNsd,
    Bcsnn,
    Bsnn,
    BsnnAround,
    BsnnGiven,
    Bunn,
    CooperativeSheafConv,
    Csnn,
    Graph,
    Hypergraph,
    Nsd,
    NsdGiven,
    PolynomialSheafConv,
    SheafConv,
    SheafDiffusion,
    SheafHyperGnn,
    SheafLearner,
    Snn,
    _graphs,
    rotations,
)

stand_in = pytest.mark.skipif(_torch.device_kind != "host", reason="built without SHEAFNN_TORCH_STAND_IN")
BOUND = {torch.float32: 1e-5, torch.float64: 1e-11}


@pytest.fixture
def device(monkeypatch):
    """From then on, CPU tensors take the passes of devices."""
    return lambda: monkeypatch.setattr(_graphs, "stand_in", True)


def ring(nodes=12):
    """A ring with chords, and an isolated node."""
    pairs = [(u, (u + k) % nodes) for u in range(nodes) for k in (1, 4)]
    return torch.tensor([pair for u, v in pairs for pair in ((u, v), (v, u))]).T.contiguous(), nodes + 1


def features(nodes, columns, dtype, seed=0):
    return torch.randn(nodes, columns, generator=torch.Generator().manual_seed(seed)).to(dtype)


def numbers(module, x, edge_index, kl_weight=0.7):
    """Output, KL term, and all gradients of a call."""
    output = module(x, edge_index)
    weights = features(*output.shape, output.dtype, seed=1)
    loss = (output * weights).sum()
    kl = module.kl() if hasattr(module, "kl") else None
    if kl is not None and kl.requires_grad:
        loss = loss + kl_weight * kl
    inputs = [*module.parameters(), *([x] if x.requires_grad else [])]
    gradients = torch.autograd.grad(loss, inputs)
    return [output.detach(), *([] if kl is None else [kl.detach()]), *gradients]


def agree(own, expected, dtype):
    largest = max(float(one.abs().max()) for one in expected[-2:])
    for one, other in zip(own, expected, strict=True):
        assert one.dtype == other.dtype == dtype and one.shape == other.shape
        scale = max(float(other.abs().max()), 1e-3 * largest)
        assert float((one - other).abs().max()) <= BOUND[dtype] * scale


NETWORKS = {
    "nsd": lambda dtype: Nsd(5, 3, "special-orthogonal", 2, channels=4, layers=2, dropout=0.3, input_dropout=0.2, seed=1, dtype=dtype),
    "bsnn": lambda dtype: Bsnn(5, 3, "special-orthogonal", 2, channels=4, layers=2, dropout=0.3, seed=1, dtype=dtype),
    "many classes": lambda dtype: Nsd(5, 11, "special-orthogonal", 2, channels=3, layers=3, second_linear=True, seed=2, dtype=dtype),
    "attention": lambda dtype: Nsd(
        5, 3, "special-orthogonal", 2, channels=3, layers=2, layer="attention", random_attention=True, seed=2, dtype=dtype
    ),
    "continuous time": lambda dtype: BayesianSheafFlow(
        5, 3, "diagonal", 2, channels=3, method="runge-kutta", fixed_steps=2, dropout=0.3, seed=2, dtype=dtype
    ),
    "connection": lambda dtype: BconnNsd(5, 3, 2, channels=3, layers=2, seed=2, dtype=dtype),
    "hypergraph": lambda dtype: SheafHyperGnn(5, 3, "diagonal", 2, channels=3, layers=2, dropout=0.3, seed=2, dtype=dtype),
    "cooperative": lambda dtype: Csnn(5, 3, 2, channels=3, layers=2, dropout=0.3, input_dropout=0.2, readout_layers=2, seed=2, dtype=dtype),
    "learner dropout": lambda dtype: Csnn(
        5, 3, 2, channels=3, layers=2, learner="sage-projected", learner_layers=3, learner_dropout=0.4, seed=2, dtype=dtype
    ),
    "Bayesian cooperative": lambda dtype: Bcsnn(
        5, 3, 2, channels=3, layers=2, learner="sage-projected", learner_layers=2, learner_dropout=0.4, dropout=0.3, seed=2, dtype=dtype
    ),
    "bundles": lambda dtype: Bunn(5, 3, 2, channels=2, bundles=2, layers=2, dropout=0.3, input_dropout=0.2, seed=2, dtype=dtype),
    "Bayesian bundles": lambda dtype: BayesianBunn(5, 3, 2, channels=2, bundles=2, layers=2, dropout=0.3, seed=2, dtype=dtype),
    "given convolutions": lambda dtype: Snn(5, 3, "diagonal", 2, channels=3, layers=2, dropout=0.3, seed=2, dtype=dtype),
    "given maps": lambda dtype: NsdGiven(5, 3, "diagonal", 2, channels=3, layers=2, dropout=0.3, seed=2, dtype=dtype),
    "convolutions around given maps": lambda dtype: BsnnGiven(5, 3, "diagonal", 2, channels=3, layers=2, dropout=0.3, seed=2, dtype=dtype),
    "around labelled maps": lambda dtype: BsnnAround(
        5, 3, "diagonal", 2, channels=3, layers=2, label_count=3, dropout=0.3, seed=2, dtype=dtype
    ),
}
LAYERS = {
    "convolution": lambda dtype: SheafConv(5, 8, "special-orthogonal", 2, act="elu", dropout=0.3, seed=1, dtype=dtype),
    "Bayesian": lambda dtype: BayesianSheafConv(5, 8, "special-orthogonal", 2, act="gelu", seed=1, dtype=dtype),
    "polynomial": lambda dtype: PolynomialSheafConv(5, 8, "special-orthogonal", 2, filter_degree=3, seed=1, dtype=dtype),
    "directed": lambda dtype: SheafConv(5, 8, "special-orthogonal", 2, layer="directed", seed=1, dtype=dtype),
    "cooperative convolution": lambda dtype: CooperativeSheafConv(5, 6, 2, act="elu", dropout=0.3, seed=1, dtype=dtype),
    "Bayesian cooperative convolution": lambda dtype: BayesianCooperativeSheafConv(5, 6, 2, act="gelu", dropout=0.3, seed=1, dtype=dtype),
    "hypergraph convolution": lambda dtype: BayesianSheafHypergraphConv(5, 8, "diagonal", 2, act="elu", seed=1, dtype=dtype),
}


def relations(name, edge_index, nodes):
    """What the module goes over."""
    if "given" in name or "labelled" in name:
        count = edge_index.shape[1]
        labels = torch.arange(count // 2) % 3 if "labelled" in name else None
        return Graph(edge_index, nodes, sheaf=1 + 0.3 * features(count, 2, torch.float64, seed=5), edge_labels=labels)
    if not name.startswith("hypergraph"):
        return Graph(edge_index, nodes, directed=name == "directed")
    return Hypergraph(torch.unique(torch.stack([edge_index[0], edge_index[1] // 3]), dim=1), nodes)


@stand_in
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", [*NETWORKS, *LAYERS])
def test_devices_give_the_numbers_of_the_cpu(name, training, dtype, device):
    edge_index, nodes = ring()
    module = {**NETWORKS, **LAYERS}[name](dtype).train(training)
    if module._architecture.kind not in _torch.device_networks:
        pytest.skip("SHEAFNN_TORCH_DEVICE_MODELS leaves its network out")
    other = copy.deepcopy(module)
    x = features(nodes, 5, dtype).requires_grad_(name in LAYERS)
    graph = relations(name, edge_index, nodes)
    expected = [numbers(module, x, graph) for _ in range(2)]
    device()
    for one in expected:  # of one step after another
        agree(numbers(other, x, graph), one, dtype)
    assert other.step == module.step
    columns = _graphs.columns_of(graph, module._architecture.relations)
    entry = _graphs.entry_of(columns, nodes, module._architecture.relations)
    if module._architecture.given_sheaf:
        entry = _graphs._with_sheaf(entry, graph._sheaf, False)
    assert {number for _, _, number in entry.plans} == {-1, 0}


@stand_in
def test_a_loss_of_the_kl_term_alone_and_a_second_backward_pass(device):
    edge_index, nodes = ring()
    x = features(nodes, 5, torch.float64)
    model = Bsnn(5, 3, "special-orthogonal", 2, channels=4, seed=1, dtype=torch.float64)
    other = copy.deepcopy(model)
    graph = Graph(edge_index, nodes)

    def gradients(of):
        of(x, graph)
        loss = -2 * of.kl()
        first = torch.autograd.grad(loss, list(of.parameters()), retain_graph=True)
        second = torch.autograd.grad(loss, list(of.parameters()))
        for one, same in zip(first, second):
            assert torch.equal(one, same)
        return first

    expected = gradients(model)
    device()
    agree(gradients(other), expected, torch.float64)


@stand_in
def test_plans_of_devices_are_their_own(device):
    edge_index, nodes = ring()
    conv = SheafConv(5, 8, "special-orthogonal", 2, seed=1, dtype=torch.float64)
    x = features(nodes, 5, torch.float64)
    graph = Graph(edge_index, nodes)
    expected = conv(x, graph)
    device()
    with torch.no_grad():
        own = [conv(x, graph) for _ in range(3)]
    assert torch.equal(own[0], own[1]) and torch.equal(own[1], own[2])
    assert torch.allclose(own[0], expected, rtol=0, atol=1e-12)


@stand_in
def test_the_operators_of_compilers_run_on_devices(device):
    edge_index, nodes = ring()
    conv = BayesianSheafConv(5, 8, "special-orthogonal", 2, seed=1, dtype=torch.float64)
    other = copy.deepcopy(conv)
    x = features(nodes, 5, torch.float64).requires_grad_()
    expected = numbers(conv, x, edge_index_of(edge_index, nodes))
    device()
    compiled = torch.compile(other, backend="aot_eager")
    output = compiled(x, edge_index_of(edge_index, nodes))
    loss = (output * features(*output.shape, output.dtype, seed=1)).sum() + 0.7 * other.kl()
    own = [output.detach(), other.kl().detach(), *torch.autograd.grad(loss, [*other.parameters(), x])]
    agree(own, expected, torch.float64)


def edge_index_of(edge_index, nodes):
    """All nodes have an edge, so that the columns alone say how many there are."""
    return torch.cat([edge_index, torch.tensor([[0, nodes - 1], [nodes - 1, 0]])], 1)


@stand_in
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("layers", [0, 1], ids=["linear", "hidden layer"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_learners_and_diffusion_over_their_maps(training, layers, dtype, device):
    edge_index, nodes = ring()
    learner = SheafLearner(8, "special-orthogonal", 2, edge_weights=True, learner_layers=layers, learner_width=5, seed=1, dtype=dtype)
    diffusion = SheafDiffusion(4, "special-orthogonal", 2, dropout=0.3, seed=2, dtype=dtype).train(training)
    others = copy.deepcopy((learner, diffusion))
    order = torch.randperm(edge_index.shape[1], generator=torch.Generator().manual_seed(3))

    def outcome(of, by, columns):
        x = features(nodes, 8, dtype).requires_grad_()
        maps, weights = of(x, columns)
        out = by(x, columns, maps, weights)
        weight = features(*out.shape, dtype, seed=1)
        gradients = torch.autograd.grad((out * weight).sum() + maps[:3].sum(), [x, *of.parameters(), *by.parameters()])
        return [maps.detach(), weights.detach(), *gradients, out.detach()]

    columns = edge_index[:, order]
    expected = [outcome(learner, diffusion, columns) for _ in range(2)]
    device()
    for one in expected:
        agree(outcome(*others, columns), one, dtype)
    assert others[1].step == diffusion.step


@stand_in
def test_what_devices_do_not_compute_is_refused_by_name(device, monkeypatch):
    edge_index, nodes = ring()
    x = features(nodes, 4, torch.float32)
    conv = SheafConv(4, 8, "special-orthogonal", 2)
    device()
    monkeypatch.setattr(_torch, "device_networks", ["csnn"])
    with pytest.raises(ValueError, match="x: a tensor on cpu is not allowed; this build computes nsd on the CPU: call .cpu"):
        conv(x, edge_index)


@pytest.mark.skipif(_torch.device_kind == "cuda", reason="this build takes CUDA tensors")
def test_a_build_without_cuda_says_how_to_get_it():
    edge_index, _ = ring()
    with torch._subclasses.FakeTensorMode():
        x, e = torch.empty(13, 5, device="cuda"), torch.empty(2, 3, dtype=torch.int64, device="cuda")
    message = f"a tensor on cuda:0 is not allowed; {re.escape(WITHOUT_CUDA)}, and .cpu\\(\\) moves the tensor"
    conv = SheafConv(5, 8, "special-orthogonal", 2)
    with pytest.raises(ValueError, match=f"^x: {message}$"):
        conv(x, edge_index)
    with pytest.raises(ValueError, match=f"^x: {message}$"):
        Nsd(5, 3, "special-orthogonal", 2)(x, edge_index)
    with pytest.raises(ValueError, match=f"^edge_index: {message}$"):
        Graph(e)


def test_rotations_are_refused_on_devices():
    with torch._subclasses.FakeTensorMode():
        location = torch.empty(3, 3, device="cuda")
    with pytest.raises(ValueError, match=r"location: a tensor on cuda:0 is not allowed; must be on the CPU: call .cpu\(\)"):
        rotations.Cayley(location, torch.tensor(0.5))


def test_seed_and_step_stay_on_the_cpu():
    conv = SheafConv(5, 8, "special-orthogonal", 2, dropout=0.5, seed=3).to("meta")
    assert conv._noise.is_cpu and conv.step == 0 and next(conv.parameters()).is_meta
