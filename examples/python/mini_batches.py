#!/usr/bin/env python3
"""Training on parts of a graph that loaders of PyTorch Geometric draw.

NeighborLoader, and METIS for the parts of ClusterLoader, need pyg-lib or torch-sparse, which have no wheels on PyPI. Without
them this program says so. It leaves NeighborLoader out, and cuts the graph for ClusterLoader by itself.
"""

import time

import scipy.sparse.csgraph
import torch
import torch.nn.functional as F
import torch_geometric.typing
from torch_geometric.loader import ClusterData, ClusterLoader, NeighborLoader, RandomNodeLoader
from torch_geometric.utils import to_scipy_sparse_matrix

from graphs import node_graph, options, print_table
from sheafnn.torch import SheafConv


HAS_COMPILED = torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE


class Network(torch.nn.Module):
    def __init__(self, columns, hidden, classes):
        super().__init__()
        self.first, self.second = SheafConv(columns, hidden), SheafConv(hidden, hidden)
        self.last = torch.nn.Linear(hidden, classes)

    def forward(self, x, edge_index):
        return self.last(F.elu(self.second(F.elu(self.first(x, edge_index)), edge_index)))


def full_graph(data, batch_size):
    return [data]


def neighbours(data, batch_size):
    """Batches of seed nodes, which come first, and at most five neighbours of each node, twice.

    A sheaf needs both directions of every edge: subgraph_type="bidirectional". By default the loader leaves those out that
    lead away from the seed nodes.
    """
    return NeighborLoader(data, num_neighbors=[5, 5], batch_size=batch_size, input_nodes=data.train_mask, shuffle=True,
                          subgraph_type="bidirectional")


def random_nodes(data, batch_size):
    """Random parts of all nodes, and the edges within each part."""
    return RandomNodeLoader(data, num_parts=max(1, data.num_nodes // (4 * batch_size)), shuffle=True)


class Bands(ClusterData):
    """Parts of equal size in an order that puts neighbours near to each other, where there is no METIS."""

    def _metis(self, edge_index, num_nodes):
        adjacency = to_scipy_sparse_matrix(edge_index, num_nodes=num_nodes).tocsr()
        order = scipy.sparse.csgraph.reverse_cuthill_mckee(adjacency, symmetric_mode=True)
        part = torch.empty(num_nodes, dtype=torch.int64)
        part[torch.from_numpy(order.copy()).long()] = torch.arange(num_nodes) * self.num_parts // num_nodes
        return part


def clusters(data, batch_size):
    """Some of the parts at a time, and the edges within and between them. Nodes and edges are in the order of the parts."""
    parts = (ClusterData if HAS_COMPILED else Bands)(data, num_parts=max(2, data.num_nodes // batch_size), log=False)
    return ClusterLoader(parts, batch_size=max(1, len(parts) // 3), shuffle=True)


def fit(data, make_loader, batch_size, epochs, seed):
    """Batches of an epoch, their mean number of nodes, milliseconds of an epoch, and the accuracies in percent of the best
    epoch on validation and test nodes.
    """
    torch.manual_seed(seed)
    model = Network(data.num_features, 48, int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    loader = make_loader(data, batch_size)
    batches = nodes = 0
    best, started = [0.0, 0.0], time.perf_counter()
    for _ in range(epochs):
        model.train()
        for batch in loader:
            known = batch.train_mask
            if make_loader is neighbours:  # of the others there are not all neighbours
                known = torch.arange(batch.num_nodes) < batch.batch_size
            if known.any():
                optimizer.zero_grad()
                out = model(batch.x, batch.edge_index)
                F.cross_entropy(out[known], batch.y[known]).backward()
                optimizer.step()
            batches, nodes = batches + 1, nodes + batch.num_nodes
        model.eval()
        with torch.no_grad():
            right = model(data.x, data.edge_index).argmax(dim=-1) == data.y
        accuracies = [100 * float(right[mask].float().mean()) for mask in (data.val_mask, data.test_mask)]
        if accuracies[0] > best[0]:
            best = accuracies
    return batches / epochs, nodes / batches, 1000 * (time.perf_counter() - started) / epochs, best


def main():
    parser = options(__doc__, epochs=30)
    parser.add_argument("--batch-size", type=int, default=64, help="seed nodes of a batch")
    arguments = parser.parse_args()
    data = node_graph(arguments.data, arguments.seed)
    loaders = [("full graph", full_graph), ("RandomNodeLoader", random_nodes), ("ClusterLoader", clusters)]
    if HAS_COMPILED:
        loaders.append(("NeighborLoader", neighbours))
    else:
        print("NeighborLoader is left out, and ClusterLoader does without METIS: neither pyg-lib nor torch-sparse is installed")
    print(f"{data.num_nodes} nodes, {data.num_edges // 2} edges, {int(data.train_mask.sum())} training nodes\n")
    rows = []
    for name, make_loader in loaders:
        batches, nodes, milliseconds, best = fit(data, make_loader, arguments.batch_size, arguments.epochs, arguments.seed)
        rows.append([name, f"{batches:.0f}", f"{nodes:.0f}", f"{milliseconds:.1f}", *(f"{value:.1f}" for value in best)])
    print_table(["loader", "batches", "nodes of one", "epoch, ms", "validation, %", "test, %"], rows)


if __name__ == "__main__":
    main()
