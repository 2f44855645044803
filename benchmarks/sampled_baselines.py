#!/usr/bin/env python3
"""Training on drawn neighbours beside PyTorch Geometric's NeighborLoader: processor time of a step on one thread.

usage: sampled_baselines.py FIGURES.json FOLDER [--fan-outs N,...] [--batch-size N] [--steps N] [--rounds N] [--program PATH]

FIGURES.json   the file that the figures are written to (docs/results/figures/sampled.json)
FOLDER         a graph as a folder of .npy arrays with dense features, from graph_folder generate (docs/large_graphs.md)
--program PATH the program large_graph (default: build/release/examples/large_graph)

A step draws the neighbours of a batch of training nodes, reads their features, and takes a step of Adam. Networks have two layers
of 48 numbers per node: sage and gcn are GraphSAGE and GCN of PyTorch Geometric; nsd and bsnn have 16 channels and maps in SO(3), which
every layer learns, or draws once. PyTorch Geometric has the whole graph in memory. large_graph reads the arrays of the folder, which the
system keeps in memory after the first round. Seconds are the time of many steps, less the time of one. Networks take turns.

Needs torch, torch_geometric, and torch-sparse or pyg-lib.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import time
import warnings

import numpy as np

WIDTH = 48
BASELINES = ["sage", "gcn"]
SHEAVES = ["nsd", "bsnn"]


def load(folder):
    """The graph as Data of PyTorch Geometric."""
    import torch
    from torch_geometric.data import Data

    offsets, targets = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
    sources = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return Data(x=torch.from_numpy(np.load(folder / "features.npy").astype(np.float32)),
                edge_index=torch.from_numpy(np.stack([sources, targets]).astype(np.int64)),
                y=torch.from_numpy(np.load(folder / "labels.npy").astype(np.int64)),
                train_mask=torch.from_numpy(np.load(folder / "train_mask.npy").astype(bool)))


class Baseline:
    """A network of PyTorch Geometric, its loader and its optimiser."""

    def __init__(self, name, data, options):
        import torch
        import torch_geometric.nn as pyg
        from torch_geometric.loader import NeighborLoader

        make = {"sage": pyg.GraphSAGE, "gcn": pyg.GCN}[name]
        self.network = make(data.num_features, WIDTH, 2, out_channels=int(data.y.max()) + 1, dropout=0.2)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=0.01)
        self.loader = NeighborLoader(data, num_neighbors=options.fan_outs, batch_size=options.batch_size,
                                     input_nodes=data.train_mask, shuffle=True)
        self.batches = iter(self.loader)

    def seconds(self, steps):
        """Processor seconds of a step, after one that is not counted."""
        import torch.nn.functional as F

        self.network.train()
        start = 0.0
        for step in range(steps + 1):
            if step == 1:
                start = time.process_time()
            batch = next(self.batches, None)
            if batch is None:
                self.batches = iter(self.loader)
                batch = next(self.batches)
            self.adam.zero_grad()
            outputs = self.network(batch.x, batch.edge_index)[:batch.batch_size]
            F.cross_entropy(outputs, batch.y[:batch.batch_size]).backward()
            self.adam.step()
        return (time.process_time() - start) / steps


def seconds_of_sheaf(name, options):
    """Processor seconds of a step of large_graph."""
    used = []
    for steps in (1, options.steps + 1):
        command = [options.program, options.folder, "--model", name, "--fan-outs", ",".join(map(str, options.fan_outs)),
                   "--batch-size", options.batch_size, "--steps", steps, "--evaluated", options.batch_size, "--epochs", 1,
                   "--threads", 1, "--channels", WIDTH // 3, "--layers", 2, "--dropout", 0.2, "--lr", 0.01]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (used[1] - used[0]) / options.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fan-outs", type=lambda text: [int(word) for word in text.split(",")], default=[10, 5])
    for name, value in (("batch-size", 512), ("steps", 40), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--program", default="build/release/examples/large_graph")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # of torch_geometric: torch.jit and sparse tensors
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = load(options.folder)
    baselines = {name: Baseline(name, data, options) for name in BASELINES}
    times = {name: [] for name in BASELINES + SHEAVES}
    for _ in range(options.rounds):
        for name in times:
            used = baselines[name].seconds(options.steps) if name in baselines else seconds_of_sheaf(name, options)
            times[name].append(used)
    figures = {"nodes": data.num_nodes, "edges": data.num_edges // 2, "features": data.num_features,
               "setting": {key: getattr(options, key) for key in ("fan_outs", "batch_size", "steps", "rounds")},
               "ms": {name: [round(1e3 * used, 2) for used in rows] for name, rows in times.items()}}
    options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for name, rows in times.items():
        ratios = " ".join(f"{statistics.median(a / b for a, b in zip(times[of], rows)):.2f} times of {of}" for of in BASELINES)
        print(f"{name}: {1e3 * statistics.median(rows):.1f} ms a step; {ratios}")


if __name__ == "__main__":
    main()
