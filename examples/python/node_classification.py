#!/usr/bin/env python3
"""Classes of nodes: SheafConv in the place of a graph convolution, in the training loop of PyTorch Geometric's examples.

The epoch with the best accuracy on validation nodes is chosen, and its accuracy on test nodes is printed.
"""

import time

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

from graphs import node_graph, options, print_table
from sheafnn.torch import BayesianSheafConv, SheafConv


class Network(torch.nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, conv, columns, hidden, classes):
        super().__init__()
        self.first, self.second = conv(columns, hidden), conv(hidden, hidden)
        self.last = torch.nn.Linear(hidden, classes)

    def forward(self, x, edge_index):
        x = F.elu(self.first(F.dropout(x, 0.3, self.training), edge_index))
        x = F.elu(self.second(F.dropout(x, 0.3, self.training), edge_index))
        return self.last(x)

    def kl(self):
        """The divergence of drawn sheaves from the prior; 0 where no sheaf is drawn."""
        return sum(conv.kl() for conv in (self.first, self.second) if isinstance(conv, BayesianSheafConv))


def fit(data, conv, hidden, epochs, seed):
    """Milliseconds of an epoch, and the accuracies in percent of the best epoch: training, validation, test."""
    torch.manual_seed(seed)
    model = Network(conv, data.num_features, hidden, int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def train():
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + 1e-3 * model.kl()
        loss.backward()
        optimizer.step()

    @torch.no_grad()
    def test():
        model.eval()
        right = model(data.x, data.edge_index).argmax(dim=-1) == data.y
        return [100 * float(right[mask].float().mean()) for mask in (data.train_mask, data.val_mask, data.test_mask)]

    best, started = [0.0, 0.0, 0.0], time.perf_counter()
    for _ in range(epochs):
        train()
        accuracies = test()
        if accuracies[1] > best[1]:
            best = accuracies
    return 1000 * (time.perf_counter() - started) / epochs, best


def main():
    parser = options(__doc__, epochs=100)
    parser.add_argument("--hidden", type=int, default=48, help="a multiple of 3, the stalk dimension")
    arguments = parser.parse_args()
    data = node_graph(arguments.data, arguments.seed)
    print(f"{data.num_nodes} nodes, {data.num_edges // 2} edges, {data.num_features} features\n")
    rows = []
    for conv in (GCNConv, SheafConv, BayesianSheafConv):
        milliseconds, best = fit(data, conv, arguments.hidden, arguments.epochs, arguments.seed)
        rows.append([conv.__name__, *(f"{value:.1f}" for value in best), f"{milliseconds:.1f}"])
    print_table(["convolution", "training, %", "validation, %", "test, %", "epoch, ms"], rows)


if __name__ == "__main__":
    main()
