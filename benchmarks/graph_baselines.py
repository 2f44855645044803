#!/usr/bin/env python3
"""Networks of sets of graphs beside GIN and GCN of PyTorch Geometric, with equal budgets.

usage: graph_baselines.py accuracy FIGURES.json FILE.npz... [--networks NAME,...] [--folds N] [--epochs N] [--patience N]
       graph_baselines.py speed FIGURES.json FILE.npz... [--networks NAME,...] [--epochs N] [--runs N]

FIGURES.json   the file that the figures are added to (docs/results/figures/graphs.json)
FILE.npz       sets of graphs with published folds (docs/data.md, "Sets of graphs")
--networks     gin, gcn, nsd-identity, nsd-diagonal, nsd-special-orthogonal, bsnn-diagonal, bsnn-special-orthogonal
--program PATH the program graphs (default: build/release/examples/graphs)
--folds N      number of folds, from the first
--epochs, --patience, --batch-size, --layers, --lr   of every network

All networks have the same training, validation and test graphs (GraphSet.fold_split), layers, width (48 numbers per node: of sheaf networks
16 channels of stalk dimension 3), sum pooling, two layers of readout, learning rate, batch size, epochs and patience, and neither dropout nor
weight decay. GIN has batch norm, and sheaf networks have layer norm. The epoch with the least validation loss is tested. Networks of sheafnn
are trained by the program graphs.

Seconds of an epoch are processor time on one thread: training, and the evaluation of validation and test graphs. Of the program they
are the time of a training of many epochs, less the time of one epoch. Batches of PyTorch Geometric come from its DataLoader; "without
batching" leaves out the time in which it puts graphs together.

Needs the package sheafnn, and torch and torch_geometric from PyPI.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np

import sheafnn

WIDTH = 48
SHEAVES = ["nsd-diagonal", "nsd-special-orthogonal", "bsnn-diagonal", "bsnn-special-orthogonal", "nsd-identity"]
BASELINES = ["gin", "gcn"]


def train_sheaf(name, path, options, folds, epochs):
    """Trains a network by the program graphs: test accuracy and best epoch of each fold, and processor seconds."""
    model, maps = name.split("-", 1)
    command = [
        options.program, path, "--model", model, "--maps", maps, "--stalk-dim", "3", "--channels", WIDTH // 3, "--pooling", "sum",
        "--layers", options.layers, "--epochs", epochs, "--patience", options.patience, "--batch-size", options.batch_size, "--lr",
        options.lr, "--layer-norm", "--readout-layers", 2, "--dropout", 0, "--weight-decay", 0, "--sheaf-decay", 0, "--threads", 1,
        "--seed", 0,
    ]
    rows, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for fold in folds:
        done = subprocess.run([str(word) for word in (*command, "--fold", fold)], check=True, text=True, stdout=subprocess.PIPE)
        fields = done.stdout.splitlines()[2].split()
        rows.append((float(fields[3]) / 100, int(fields[1])))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rows, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def network_of(name, features, classes, layers):
    import torch
    import torch_geometric.nn as pyg

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            make, norm = {"gin": (pyg.GIN, "batch_norm"), "gcn": (pyg.GCN, None)}[name]
            self.layers = make(features, WIDTH, layers, norm=norm)
            self.readout = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, classes))

        def forward(self, batch):
            hidden = self.layers(batch.x, batch.edge_index)
            return self.readout(pyg.global_add_pool(hidden, batch.batch, batch.num_graphs))

    return Network()


def data_of(graphs):
    """The graphs as Data of PyTorch Geometric."""
    import torch
    from torch_geometric.data import Data

    indicator, edges, features = graphs.graph_indicator, graphs.edges, graphs.features.toarray().astype(np.float32)
    first = np.searchsorted(indicator, np.arange(graphs.graph_count + 1))
    own = np.searchsorted(indicator[edges[:, 0]], np.arange(graphs.graph_count + 1))
    result = []
    for g in range(graphs.graph_count):
        pairs = edges[own[g]:own[g + 1]].astype(np.int64) - first[g]
        both = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
        result.append(Data(x=torch.from_numpy(features[first[g]:first[g + 1]]), edge_index=torch.from_numpy(both),
                           y=torch.tensor([int(graphs.codes[g])])))
    return result


def train_baseline(name, graphs, fold, options):
    """Test accuracy, best epoch, processor seconds of each epoch, and the same without the time of batching."""
    import torch
    import torch.nn.functional as F
    from torch_geometric.loader import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = data_of(graphs)
    split = graphs.fold_split(fold, seed=0)
    parts = [[data[g] for g in part] for part in (split.train, split.validation, split.test)]
    training = DataLoader(parts[0], options.batch_size, shuffle=True)
    held = [next(iter(DataLoader(part, len(part)))) for part in parts[1:]]  # put together once
    network = network_of(name, graphs.feature_count, graphs.class_count, options.layers)
    adam = torch.optim.Adam(network.parameters(), lr=options.lr)
    best, best_loss, accuracy, seconds, without = 0, np.inf, 0.0, [], []
    for epoch in range(options.epochs):
        start = before = time.process_time()
        batching = 0.0
        network.train()
        for batch in training:
            batching += time.process_time() - before
            adam.zero_grad()
            F.cross_entropy(network(batch), batch.y).backward()
            adam.step()
            before = time.process_time()
        network.eval()
        with torch.no_grad():
            outputs = [network(batch) for batch in held]
            loss = F.cross_entropy(outputs[0], held[0].y).item()
            correct = (outputs[1].argmax(1) == held[1].y).float().mean().item()
        seconds.append(time.process_time() - start)
        without.append(seconds[-1] - batching)
        if loss < best_loss:
            best, best_loss, accuracy = epoch, loss, correct
        elif epoch - best >= options.patience:
            break
    return accuracy, best, seconds, without


def accuracy(options, figures):
    for path in options.files:
        graphs = sheafnn.load_graphs(path)
        of = figures.setdefault("accuracy", {}).setdefault(graphs.name, {})
        of["setting"] = {key: getattr(options, key) for key in ("epochs", "patience", "batch_size", "layers", "lr")}
        for name in options.networks:
            rows, seconds = [], 0.0
            for fold in range(min(options.folds, len(graphs.folds))):
                if name in BASELINES:
                    *row, times, _ = train_baseline(name, graphs, fold, options)
                    rows, used = rows + [row], sum(times)
                else:
                    row, used = train_sheaf(name, path, options, [fold], options.epochs)
                    rows += row
                seconds += used
                of[name] = {"accuracy": [round(row[0], 6) for row in rows], "best_epoch": [row[1] for row in rows],
                            "seconds": round(seconds, 1)}
                write(options, figures)
            values = of[name]["accuracy"]
            print(f"{graphs.name} {name}: {100 * np.mean(values):.1f} ± {100 * np.std(values):.1f} over {len(values)} folds, "
                  f"{seconds:.1f} s", flush=True)


def seconds_of_epoch(name, path, graphs, options):
    """Processor seconds of an epoch, and without the time in which PyTorch Geometric puts batches together."""
    if name in BASELINES:
        *_, seconds, without = train_baseline(name, graphs, 0, options)
        return statistics.median(seconds), statistics.median(without)
    used = [train_sheaf(name, path, options, [0], epochs)[1] for epochs in (1, options.epochs)]
    return ((used[1] - used[0]) / (options.epochs - 1),) * 2


def speed(options, figures):
    """Medians over some runs, in turn for all networks."""
    options.patience = options.epochs
    for path in options.files:
        graphs = sheafnn.load_graphs(path)
        times = {name: [] for name in options.networks}
        for _ in range(options.runs):
            for name in options.networks:
                times[name].append(seconds_of_epoch(name, path, graphs, options))
        of = figures.setdefault("speed", {}).setdefault(graphs.name, {})
        of["setting"] = {key: getattr(options, key) for key in ("batch_size", "layers", "epochs", "runs")}
        for name, rows in times.items():
            whole, without = (1e3 * statistics.median(row[k] for row in rows) for k in (0, 1))
            of[name] = {"ms": round(whole, 3), "ms without batching": round(without, 3)}
            print(f"{graphs.name} {name}: {whole:.2f} ms per epoch, without batching {without:.2f} ms", flush=True)
        write(options, figures)


def write(options, figures):
    options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "speed"])
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=BASELINES + SHEAVES)
    for name, value in (("folds", 10), ("epochs", 100), ("patience", 30), ("batch-size", 32), ("layers", 4), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=0.005)
    parser.add_argument("--program", default="build/release/examples/graphs")
    options = parser.parse_args()
    unknown = [name for name in options.networks if name not in BASELINES + SHEAVES]
    if unknown:
        sys.exit(f"--networks: {unknown[0]} is not allowed; choose of {', '.join(BASELINES + SHEAVES)}")
    warnings.filterwarnings("ignore", category=FutureWarning)  # torch_geometric's use of torch.jit
    figures = json.loads(options.figures.read_text(encoding="utf-8")) if options.figures.exists() else {}
    {"accuracy": accuracy, "speed": speed}[options.what](options, figures)


if __name__ == "__main__":
    main()
