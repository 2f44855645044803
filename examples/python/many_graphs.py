#!/usr/bin/env python3
"""Classes of whole graphs: batches of many small graphs, as the DataLoader of PyTorch Geometric makes them.

A batch is one graph without edges between its parts, so SheafConv takes it as it is. The graphs are rings: in one kind
neighbours have the same sign, in the other one different signs. The best epoch on validation graphs is chosen.
"""

import time

import torch
import torch.nn.functional as F
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_mean_pool

from graphs import options, print_table, rings
from sheafnn.torch import SheafConv


class Network(torch.nn.Module):
    """Two convolutions, the mean over the nodes of each graph, and a linear layer."""

    def __init__(self, columns, hidden, classes, **more):
        super().__init__()
        self.first, self.second = SheafConv(columns, hidden, **more), SheafConv(hidden, hidden, **more)
        self.last = torch.nn.Linear(hidden, classes, dtype=self.first.dtype)

    def forward(self, data):
        x = F.elu(self.first(data.x, data.edge_index))
        x = F.elu(self.second(x, data.edge_index))
        return self.last(global_mean_pool(x, data.batch))


@torch.no_grad()
def accuracy(model, loader):
    """In percent."""
    model.eval()
    right = torch.cat([model(batch).argmax(dim=-1) == batch.y for batch in loader])
    return 100 * float(right.float().mean())


def main():
    parser = options(__doc__, epochs=15, data=False)
    parser.add_argument("--graphs", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    graphs = rings(arguments.graphs, arguments.seed)
    size = len(graphs) // 4
    train_loader = DataLoader(graphs[: 2 * size], arguments.batch_size, shuffle=True)
    validation_loader = DataLoader(graphs[2 * size : 3 * size], 256)
    test_loader = DataLoader(graphs[3 * size :], 256)
    model = Network(2, 24, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rows, best = [], (-1.0, 0.0, 0)
    for epoch in range(1, arguments.epochs + 1):
        model.train()
        total, started = 0.0, time.perf_counter()
        for batch in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), batch.y)
            loss.backward()
            optimizer.step()
            total += float(loss) * batch.num_graphs
        milliseconds = 1000 * (time.perf_counter() - started)
        validation = accuracy(model, validation_loader)
        if validation > best[0]:
            best = (validation, accuracy(model, test_loader), epoch)
        if epoch % max(1, arguments.epochs // 5) == 0:
            rows.append([epoch, f"{total / len(train_loader.dataset):.3f}", f"{validation:.1f}", f"{milliseconds:.0f}"])
    print_table(["epoch", "loss", "validation, %", "training, ms"], rows)
    print(f"\ntest accuracy of epoch {best[2]}: {best[1]:.1f} %")


if __name__ == "__main__":
    main()
