#!/usr/bin/env python3
"""Networks of sets of graphs beside GIN and GCN of PyTorch Geometric, with equal budgets.

usage: graph_baselines.py accuracy FIGURES.json FILE.npz... [--networks NAME,...] [--folds N] [--epochs N] [--patience N]
       graph_baselines.py speed FIGURES.json FILE.npz... [--networks NAME,...] [--epochs N] [--runs N]

FIGURES.json   the file that the figures are added to (docs/results/figures/graphs.json)
FILE.npz       sets of graphs with published folds (docs/data.md, "Sets of graphs")
--networks     gin, gcn, nsd-identity, nsd-diagonal, nsd-special-orthogonal, bsnn-diagonal, bsnn-special-orthogonal
--folds N      number of folds, from the first
--epochs, --patience, --batch-size, --layers, --lr   of every network

All networks have the same training, validation and test graphs (GraphSet.fold_split), layers, width (48 numbers per node: of sheaf networks
16 channels of stalk dimension 3), sum pooling, a linear readout, learning rate, weight decay, dropout, batch size, epochs and patience. The
epoch with the least validation loss is tested. Networks of sheafnn are of GraphClassifier, which has the bits of the program graphs.

Seconds of an epoch are processor time on one thread: training, and the evaluation of validation and test graphs. PyTorch Geometric's
batches come from its DataLoader; "seconds without batching" leaves out the time in which it puts graphs together.

Needs torch and torch_geometric from PyPI.
"""
import argparse
import copy
import json
import pathlib
import statistics
import sys
import time
import warnings

import numpy as np

import sheafnn

WIDTH, DROPOUT, DECAY = 48, 0.1, 5e-4
SHEAVES = ["nsd-diagonal", "nsd-special-orthogonal", "bsnn-diagonal", "bsnn-special-orthogonal", "nsd-identity"]
BASELINES = ["gin", "gcn"]


def train_sheaf(name, graphs, fold, options, report=None):
    """Trains a network of sheafnn: test accuracy, best epoch, number of epochs, parameters, and processor seconds of each epoch."""
    model, maps = name.split("-", 1)
    times = [time.process_time()]

    def count(_):
        times.append(time.process_time())
        return True

    classifier = sheafnn.GraphClassifier(
        model, maps, 3, channels=WIDTH // 3, layers=options.layers, epochs=options.epochs, patience=options.patience,
        batch_size=options.batch_size, learning_rate=options.lr, pooling="sum", threads=1, callback=count,
        training={"dropout": DROPOUT, "weight_decay": DECAY, "sheaf_decay": DECAY}, random_state=0,
    ).fit(graphs, fold=fold)
    result = classifier.result_
    epochs = np.diff(times)[1:].tolist()  # the first one includes the making of buffers
    return result["test_accuracy"], result["best_epoch"], classifier.n_iter_, result["parameters"], epochs, epochs


def network_of(name, features, classes, layers):
    import torch
    import torch_geometric.nn as pyg

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            make, norm = {"gin": (pyg.GIN, "batch_norm"), "gcn": (pyg.GCN, None)}[name]
            self.layers = make(features, WIDTH, layers, dropout=DROPOUT, norm=norm)
            self.readout = torch.nn.Linear(WIDTH, classes)

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
    """The same of a network of PyTorch Geometric; the last list is without the time of batching."""
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
    adam = torch.optim.Adam(network.parameters(), lr=options.lr, weight_decay=DECAY)
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
    parameters = sum(p.numel() for p in network.parameters())
    return accuracy, best, epoch + 1, parameters, seconds[1:], without[1:]


def train(name, *arguments):
    return (train_baseline if name in BASELINES else train_sheaf)(name, *arguments)


def accuracy(options, figures):
    for path in options.files:
        graphs = sheafnn.load_graphs(path)
        for name in options.networks:
            row = {"folds": [], "accuracy": [], "best_epoch": [], "epochs": []}
            started = time.process_time()
            for fold in range(min(options.folds, len(graphs.folds))):
                test, best, epochs, row["parameters"], *_ = train(name, graphs, fold, options)
                for key, value in (("folds", fold), ("accuracy", test), ("best_epoch", best), ("epochs", epochs)):
                    row[key].append(value)
                row["seconds"] = round(time.process_time() - started, 1)
                figures.setdefault("accuracy", {}).setdefault(graphs.name, {})[name] = copy.deepcopy(row)
                write(options, figures)
            print(f"{graphs.name} {name}: {100 * np.mean(row['accuracy']):.1f} ± {100 * np.std(row['accuracy']):.1f} over "
                  f"{len(row['folds'])} folds, {row['parameters']} parameters, {row['seconds']} s", flush=True)
        of = figures["accuracy"][graphs.name]
        of["setting"] = {key: getattr(options, key) for key in ("epochs", "patience", "batch_size", "layers", "lr")}
        write(options, figures)


def speed(options, figures):
    """Medians over the epochs of some runs, in turn for all networks."""
    for path in options.files:
        graphs = sheafnn.load_graphs(path)
        times = {name: ([], []) for name in options.networks}
        for _ in range(options.runs):
            for name in options.networks:
                *_, seconds, without = train(name, graphs, 0, options)
                times[name][0].extend(seconds)
                times[name][1].extend(without)
        of = figures.setdefault("speed", {}).setdefault(graphs.name, {})
        for name, (seconds, without) in times.items():
            of[name] = {"seconds": statistics.median(seconds), "seconds without batching": statistics.median(without),
                        "epochs": len(seconds)}
            print(f"{graphs.name} {name}: {1e3 * of[name]['seconds']:.2f} ms per epoch, without batching "
                  f"{1e3 * of[name]['seconds without batching']:.2f} ms", flush=True)
        of["setting"] = {key: getattr(options, key) for key in ("batch_size", "layers")}
        write(options, figures)


def write(options, figures):
    options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "speed"])
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=BASELINES + SHEAVES)
    for name, value in (("folds", 10), ("epochs", 200), ("patience", 100), ("batch-size", 32), ("layers", 4), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=0.01)
    options = parser.parse_args()
    unknown = [name for name in options.networks if name not in BASELINES + SHEAVES]
    if unknown:
        sys.exit(f"--networks: {unknown[0]} is not allowed; choose of {', '.join(BASELINES + SHEAVES)}")
    warnings.filterwarnings("ignore", category=FutureWarning)  # torch_geometric's use of torch.jit
    figures = json.loads(options.figures.read_text(encoding="utf-8")) if options.figures.exists() else {}
    {"accuracy": accuracy, "speed": speed}[options.what](options, figures)


if __name__ == "__main__":
    main()
