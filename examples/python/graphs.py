"""What the examples share: graphs, options of the command line, and tables."""

import argparse

import torch
from torch_geometric.data import Data

import sheafnn


def options(description, epochs, data=True):
    """The options that all examples have."""
    parser = argparse.ArgumentParser(description=description)
    if data:
        parser.add_argument("--data", help="a graph as sheafnn.load_dataset reads it; without: a generated one")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def node_graph(path, seed):
    """The graph of a file, or a generated one of 600 nodes, most of whose edges join different classes."""
    if path is not None:
        return sheafnn.load_dataset(path).to_pyg()
    graph = sheafnn.synthetic(
        nodes=600, classes=4, features=64, words=6, degree=8, homophily=0.2, class_cycle=0.5, seed=seed
    )
    return graph.to_pyg()


def ring(kind, generator, dtype=torch.float32):
    """A ring of 12 to 20 nodes, each with a sign and as much noise.

    Neighbours mostly have the same sign in kind 0, and different signs in kind 1. Both kinds have as many signs of
    either sort.
    """
    half = int(torch.randint(6, 11, (), generator=generator))
    node = torch.arange(2 * half)
    sign = 1.0 - 2 * ((node % 2) if kind == 1 else (node // half)).to(dtype)
    noise = torch.randn(2 * half, 2, generator=generator, dtype=dtype)
    x = torch.stack([sign + noise[:, 0], noise[:, 1]], 1)
    after = (node + 1) % (2 * half)
    edge_index = torch.stack([torch.cat([node, after]), torch.cat([after, node])])
    return Data(x=x, edge_index=edge_index, y=torch.tensor([kind]))


def rings(count, seed, dtype=torch.float32):
    """As many rings of both kinds."""
    generator = torch.Generator().manual_seed(seed)
    return [ring(i % 2, generator, dtype) for i in range(count)]


def print_table(head, rows):
    """A table with columns of equal width."""
    lines = [head, *rows]
    widths = [max(len(str(line[k])) for line in lines) for k in range(len(head))]
    for line in lines:
        print("  ".join(str(word).ljust(width) if k == 0 else str(word).rjust(width)
                        for k, (word, width) in enumerate(zip(line, widths))))
