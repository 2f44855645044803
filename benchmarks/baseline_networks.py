"""The networks of baselines.py: models and layers of PyTorch Geometric, on one graph.

| name     | network                                                | of PyTorch Geometric                          |
| -------- | ------------------------------------------------------ | --------------------------------------------- |
| mlp      | dense layers, which see no graph                       | MLP                                           |
| gcn      | Kipf, Welling 2017                                     | GCN                                           |
| gat      | Veličković et al. 2018; Brody et al. 2022 (--v2)       | GAT                                           |
| sage     | Hamilton et al. 2017, after a linear layer             | GraphSAGE                                     |
| pairnorm | Zhao, Akoglu 2020                                      | GCN with the layer PairNorm                   |
| gcnii    | Chen et al. 2020                                       | layers GCN2Conv between two linear layers     |
| fagcn    | Bo et al. 2021                                         | layers FAConv between two linear layers       |
| mixhop   | Abu-El-Haija et al. 2019                               | layers MixHopConv between two linear layers   |
| gprgnn   | Chien et al. 2021                                      | not shipped; MLP and steps of APPNP           |
| h2gcn    | Zhu et al. 2020                                        | not shipped; linear layers and SimpleConv     |

sage and mixhop have a linear layer first because theirs would add up all features of the neighbours in every epoch;
fagcn and gcnii have one in their papers. What layers read is in the fastest form that they take: features a sparse
matrix, which makes an epoch on cora several times as fast as a dense one (SparseLinear); the graph a sparse matrix,
too, with weights that were normalised beforehand, whose symmetry the backward pass uses (SymmetricProduct), but a list
of edges for GAT and FAConv.
"""
import warnings

import numpy
import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore", category=FutureWarning)  # torch_geometric's use of torch.jit
warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks are)")

import torch_geometric.nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, to_torch_csr_tensor

from metrics import read_arrays


class SparseProduct(torch.autograd.Function):
    """X W for a sparse X; PyTorch's own backward pass sorts X anew."""

    @staticmethod
    def forward(ctx, features, transposed, weight):
        ctx.transposed = transposed
        return features @ weight

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.transposed @ gradient


class SymmetricProduct(torch.autograd.Function):
    """M X for a symmetric sparse M; PyTorch's own backward pass transposes M anew, which takes up to forty times as
    long as the product (film, neighbours at distance two)."""

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.matrix = matrix
        return matrix @ x

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.matrix @ gradient


def use_symmetry(network):
    """Lets layers that add up neighbours, with weights of a symmetric matrix, use SymmetricProduct."""
    def aggregate(matrix, x):
        return SymmetricProduct.apply(matrix, x[0] if isinstance(x, tuple) else x)

    for layer in network.modules():
        if isinstance(layer, (pyg.GCNConv, pyg.GCN2Conv, pyg.APPNP, pyg.SimpleConv)):
            layer.message_and_aggregate = aggregate


class SparseLinear(nn.Module):
    """A linear layer with its first weights, which takes Graph.input()."""

    def __init__(self, linear):
        super().__init__()
        self.weight = nn.Parameter(linear.weight.detach().t().contiguous())
        self.bias = linear.bias

    def forward(self, x):
        product = SparseProduct.apply(x, x.transposed, self.weight)
        return product if self.bias is None else product + self.bias


class Graph:
    """Features, labels, splits and what the networks read of the edges of an .npz file.

    Edges are undirected, each once, without loops. Â is (D + 1)^−½ (A + 1) (D + 1)^−½.
    """

    def __init__(self, path, normalise_features):
        arrays = read_arrays(path, ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks"))
        features = arrays["node_features"].astype(numpy.float64)
        labels, edges = arrays["node_labels"].astype(numpy.int64), arrays["edges"].astype(numpy.int64)
        masks = [arrays[part + "_masks"].astype(bool) for part in ("train", "val", "test")]
        nodes = len(labels)
        if features.ndim != 2 or len(features) != nodes:
            raise ValueError(f"{path}: node_features has shape {features.shape}; expected {nodes} rows, one per label")
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.size and not 0 <= edges.min() <= edges.max() < nodes:
            raise ValueError(f"{path}: edges must be pairs of nodes between 0 and {nodes - 1}")
        for part, mask in zip(("train", "val", "test"), masks):
            if mask.ndim != 2 or mask.shape[1] != nodes or not mask.any(1).all():
                raise ValueError(f"{path}: {part}_masks has shape {mask.shape}; expected splits × {nodes}, none empty")
        if labels.min() < 0:
            raise ValueError(f"{path}: nodes without a label")
        if normalise_features:
            sums = numpy.abs(features).sum(1, keepdims=True)
            features /= numpy.where(sums > 0, sums, 1)
        self.labels = labels
        self.train, self.validation, self.test = ([numpy.flatnonzero(row) for row in mask] for mask in masks)
        self.splits = min(len(mask) for mask in masks)
        self.nodes, self.features = features.shape
        self.classes = int(labels.max()) + 1
        self.sparse = torch.tensor(features, dtype=torch.float32).to_sparse_csr()
        rows, columns = features.nonzero()
        self.columns_first = torch.tensor(numpy.lexsort((rows, columns)))
        self.transposed_rows = torch.tensor(numpy.bincount(columns, minlength=self.features).cumsum())
        self.transposed_rows = F.pad(self.transposed_rows, (1, 0))
        self.transposed_columns = torch.tensor(rows)[self.columns_first]
        self.whole_input = self._input(self.sparse.values())
        edges = edges[edges[:, 0] != edges[:, 1]]
        both = numpy.unique(numpy.concatenate([edges, edges[:, ::-1]]), axis=0).T
        self.edges = torch.tensor(numpy.ascontiguousarray(both))
        self.edges_and_loops = add_self_loops(self.edges, num_nodes=nodes)[0]
        self.weighted = gcn_norm(self.edges, None, nodes, add_self_loops=True, dtype=torch.float32)
        self.adjacency = self._matrix(self.edges)
        self.normalised = self._matrix(*self.weighted)
        self._hops = None

    def _matrix(self, edges, weights=None):
        return to_torch_csr_tensor(edges, weights, size=(self.nodes, self.nodes))

    def hops(self):
        """D_k^−½ A_k D_k^−½ for the neighbours at distance exactly k = 1, 2."""
        if self._hops is None:
            import scipy.sparse
            ones = numpy.ones(self.edges.shape[1])
            one = scipy.sparse.csr_matrix((ones, self.edges.numpy()), (self.nodes, self.nodes))
            reached = scipy.sparse.coo_matrix(one @ one)
            new = (reached.row != reached.col) & (numpy.asarray(one[reached.row, reached.col]).ravel() == 0)
            two = torch.tensor(numpy.stack([reached.row[new], reached.col[new]]).astype(numpy.int64))
            self._hops = [self._matrix(*gcn_norm(edges, None, self.nodes, add_self_loops=False, dtype=torch.float32))
                          for edges in (self.edges, two)]
        return self._hops

    def _input(self, values):
        x = torch.sparse_csr_tensor(self.sparse.crow_indices(), self.sparse.col_indices(), values, self.sparse.shape)
        x.transposed = torch.sparse_csr_tensor(self.transposed_rows, self.transposed_columns,
                                               values[self.columns_first], (self.features, self.nodes))
        return x

    def input(self, dropout, training):
        """The features, some of them dropped, for a SparseLinear."""
        if not training or dropout == 0:
            return self.whole_input
        values = self.sparse.values()
        return self._input(values * (torch.rand_like(values) >= dropout) / (1 - dropout))


class Network(nn.Module):
    """What all networks have: forward(x) maps features, dropped by the caller, to n × C logits."""

    def __init__(self, graph, options):
        super().__init__()
        self.graph = graph
        self.channels, self.layers = options["--channels"], options["--layers"]
        self.dropout = options["--dropout"]

    def dropped(self, x):
        return F.dropout(x, self.dropout, self.training)

    def without_decay(self):
        """Parameters that weight decay leaves alone."""
        return []


def norm_of(options):
    """Arguments of PyTorch Geometric's models."""
    return {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}} if options["--layer-norm"] else {"norm": None}


class Mlp(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.model = pyg.MLP(in_channels=graph.features, hidden_channels=self.channels, out_channels=graph.classes,
                             num_layers=self.layers, dropout=self.dropout, **norm_of(options))
        self.model.lins[0] = SparseLinear(self.model.lins[0])

    def forward(self, x):
        return self.model(x)


class Gcn(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.model = pyg.GCN(graph.features, self.channels, self.layers, graph.classes, dropout=self.dropout,
                             jk=options["--jk"], normalize=False, **self.norm(options))
        self.model.convs[0].lin = SparseLinear(self.model.convs[0].lin)

    @staticmethod
    def norm(options):
        return norm_of(options)

    def forward(self, x):
        return self.model(x, self.graph.normalised)


class PairNorm(Gcn):
    @staticmethod
    def norm(options):
        return {"norm": pyg.PairNorm(options["--scale"], options["--scale-individually"])}


class Gat(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.model = pyg.GAT(graph.features, self.channels, self.layers, graph.classes, dropout=self.dropout,
                             jk=options["--jk"], v2=options["--v2"], heads=options["--heads"], add_self_loops=False,
                             **norm_of(options))
        first = self.model.convs[0]
        for name in ("lin_l", "lin_r") if options["--v2"] else ("lin",):
            setattr(first, name, SparseLinear(getattr(first, name)))

    def forward(self, x):
        return self.model(x, self.graph.edges_and_loops)


class Sage(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.encoder = SparseLinear(nn.Linear(graph.features, self.channels))
        self.model = pyg.GraphSAGE(self.channels, self.channels, self.layers, graph.classes, dropout=self.dropout,
                                   jk=options["--jk"], aggr=options["--aggregation"], **norm_of(options))

    def forward(self, x):
        return self.model(self.dropped(F.relu(self.encoder(x))), self.graph.adjacency)


class Gcnii(Network):
    """As PyTorch Geometric's example gcn2_cora.py."""

    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.encoder = SparseLinear(nn.Linear(graph.features, self.channels))
        self.convolutions = nn.ModuleList(
            pyg.GCN2Conv(self.channels, options["--alpha"], options["--theta"], layer,
                         shared_weights=options["--shared-weights"], normalize=False)
            for layer in range(1, self.layers + 1))
        self.readout = nn.Linear(self.channels, graph.classes)

    def forward(self, x):
        x = first = F.relu(self.encoder(x))
        for convolution in self.convolutions:
            x = F.relu(convolution(self.dropped(x), first, self.graph.normalised))
        return self.readout(self.dropped(x))


class Fagcn(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.encoder = SparseLinear(nn.Linear(graph.features, self.channels))
        self.convolutions = nn.ModuleList(pyg.FAConv(self.channels, options["--epsilon"], self.dropout, normalize=False)
                                          for _ in range(self.layers))
        self.readout = nn.Linear(self.channels, graph.classes)

    def forward(self, x):
        x = first = self.dropped(F.relu(self.encoder(x)))
        for convolution in self.convolutions:
            x = convolution(x, first, *self.graph.weighted)
        return self.readout(x)


class MixHopConv(pyg.MixHopConv):
    """The layer of PyTorch Geometric, which normalises the graph in every pass, with a graph that is normalised."""

    def forward(self, x, normalised):
        outputs = [self.lins[0](x)]
        for linear in self.lins[1:]:
            x = SymmetricProduct.apply(normalised, x)
            outputs.append(linear(x))
        return torch.cat(outputs, dim=-1) + self.bias


class MixHop(Network):
    def __init__(self, graph, options):
        super().__init__(graph, options)
        powers = list(range(options["--hops"] + 1))
        wide = len(powers) * self.channels
        self.encoder = SparseLinear(nn.Linear(graph.features, self.channels))
        self.convolutions = nn.ModuleList(MixHopConv(wide if layer else self.channels, self.channels, powers)
                                          for layer in range(self.layers))
        self.readout = nn.Linear(wide, graph.classes)

    def forward(self, x):
        x = F.relu(self.encoder(x))
        for convolution in self.convolutions:
            x = F.relu(convolution(self.dropped(x), self.graph.normalised))
        return self.readout(self.dropped(x))


class Gprgnn(Network):
    """Σ_k γ_k Âᵏ MLP(x), k = 0 … K; γ learned, at first the coefficients of personalised PageRank."""

    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.model = pyg.MLP(in_channels=graph.features, hidden_channels=self.channels, out_channels=graph.classes,
                             num_layers=self.layers, dropout=self.dropout, norm=None)
        self.model.lins[0] = SparseLinear(self.model.lins[0])
        self.hop_dropout = options["--hop-dropout"]
        self.step = pyg.APPNP(K=1, alpha=0, normalize=False)
        alpha, hops = options["--alpha"], options["--hops"]
        self.gamma = nn.Parameter(torch.tensor([alpha * (1 - alpha) ** k for k in range(hops)] + [(1 - alpha) ** hops]))

    def forward(self, x):
        x = F.dropout(self.model(x), self.hop_dropout, self.training)
        sum_of_hops = self.gamma[0] * x
        for gamma in self.gamma[1:]:
            x = self.step(x, self.graph.normalised)
            sum_of_hops = sum_of_hops + gamma * x
        return sum_of_hops

    def without_decay(self):
        return [self.gamma]


class H2gcn(Network):
    """h_0 = ReLU(W x); h_k = (A_1 h_{k−1}, A_2 h_{k−1}) with neighbours at distance 1 and 2, not the node itself;
    logits of (h_0, …, h_L).
    """

    def __init__(self, graph, options):
        super().__init__(graph, options)
        self.encoder = SparseLinear(nn.Linear(graph.features, self.channels))
        self.sum = pyg.SimpleConv(aggr="sum")
        self.readout = nn.Linear((2 ** (self.layers + 1) - 1) * self.channels, graph.classes)

    def forward(self, x):
        rounds = [F.relu(self.encoder(x))]
        for _ in range(self.layers):
            rounds.append(torch.cat([self.sum(rounds[-1], matrix) for matrix in self.graph.hops()], dim=1))
        return self.readout(self.dropped(torch.cat(rounds, dim=1)))


NETWORKS = {"mlp": Mlp, "gcn": Gcn, "gat": Gat, "sage": Sage, "pairnorm": PairNorm, "gcnii": Gcnii, "fagcn": Fagcn,
            "mixhop": MixHop, "gprgnn": Gprgnn, "h2gcn": H2gcn}


def network_of(graph, options):
    """The network that --model of the options names."""
    network = NETWORKS[options["--model"]](graph, options)
    use_symmetry(network)
    return network
