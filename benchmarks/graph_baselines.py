#!/usr/bin/env python3
"""Networks of sets of graphs beside GIN and GCN of PyTorch Geometric, with equal budgets.

usage: graph_baselines.py accuracy FIGURES.json FILE.npz... [--networks NAME,...] [--folds N] [--epochs N] [--patience N]
       graph_baselines.py speed FIGURES.json FILE.npz... [--networks NAME,...] [--epochs N] [--runs N]
       graph_baselines.py check FIGURES.json FILE.npz... [--networks NAME,...]

FIGURES.json   the file that the figures are added to (docs/results/figures/graphs.json); check leaves it alone
FILE.npz       sets of graphs with published folds (docs/data.md, "Sets of graphs")
--networks     gin, gcn, nsd-identity, nsd-diagonal, nsd-special-orthogonal, bsnn-diagonal, bsnn-special-orthogonal; and, except of
               accuracy, torch-nsd-diagonal, …: the same networks in plain PyTorch (graph_network.py), with the same equations
check          compares test predictions of graph_network.py with the program's, for the same weights: exactly without a posterior, and
               within the chance of 200 samples with one
--program PATH the program graphs (default: build/release/examples/graphs)
--folds N      number of folds, from the first
--epochs, --patience, --batch-size, --layers, --lr   of every network

All networks have the same training, validation and test graphs (GraphSet.fold_split), layers, width (48 numbers per node: of sheaf networks
16 channels of stalk dimension 3), sum pooling, two layers of readout, learning rate, batch size, epochs and patience, and neither dropout nor
weight decay. GIN has batch norm, and sheaf networks have layer norm. The epoch with the least validation loss is tested. Networks of sheafnn
are trained by the program graphs.

Seconds of an epoch are processor time on one thread: training, and the evaluation of validation and test graphs. Of the program they
are the time of a training of many epochs, less the time of one epoch. Batches of PyTorch Geometric come from its DataLoader; "without
batching" leaves out the time in which it puts graphs together. All validation and test graphs are one batch, put together once. The
optimiser of PyTorch is fused.

Needs the package sheafnn, and torch and torch_geometric from PyPI.
"""
import argparse
import csv
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import sheafnn

WIDTH = 48
SHEAVES = ["nsd-diagonal", "nsd-special-orthogonal", "bsnn-diagonal", "bsnn-special-orthogonal", "nsd-identity"]
BASELINES = ["gin", "gcn"]
PROGRAM_TIMES = 10  # how many times as many epochs the program trains for, whose time is known to some milliseconds
TORCH = {f"torch-{name}": name for name in SHEAVES if name != "nsd-identity"}


def command_of(name, path, options, epochs):
    """The program graphs with a network."""
    model, maps = name.split("-", 1)
    return [
        options.program, path, "--model", model, "--maps", maps, "--stalk-dim", "3", "--channels", WIDTH // 3, "--pooling", "sum",
        "--layers", options.layers, "--epochs", epochs, "--patience", options.patience, "--batch-size", options.batch_size, "--lr",
        options.lr, "--layer-norm", "--readout-layers", 2, "--dropout", 0, "--weight-decay", 0, "--sheaf-decay", 0, "--threads", 1,
        "--seed", 0,
    ]


def run(command):
    """What a command prints."""
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout


def train_sheaf(name, path, options, folds, epochs):
    """Trains a network by the program graphs: test accuracy and best epoch of each fold, and processor seconds."""
    rows, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for fold in folds:
        fields = run([*command_of(name, path, options, epochs), "--fold", fold]).splitlines()[2].split()
        rows.append((float(fields[3]) / 100, int(fields[1])))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rows, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def network_of(name, features, classes, layers):
    import torch
    import torch_geometric.nn as pyg

    if name in TORCH:
        import graph_network
        model, maps = TORCH[name].split("-", 1)
        return graph_network.Network(model == "bsnn", maps, features, classes, layers)

    class Network(torch.nn.Module):
        kl = 0.0

        def __init__(self):
            super().__init__()
            make, norm = {"gin": (pyg.GIN, "batch_norm"), "gcn": (pyg.GCN, None)}[name]
            self.layers = make(features, WIDTH, layers, norm=norm)
            self.readout = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, classes))

        def forward(self, batch):
            hidden = self.layers(batch.x, batch.edge_index)
            return self.readout(pyg.global_add_pool(hidden, batch.batch, batch.num_graphs))

    return Network()


def data_of(graphs, name):
    """The graphs as Data of PyTorch Geometric, for a network."""
    import torch
    from torch_geometric.data import Data
    if name in TORCH:
        from graph_network import Pairs

    indicator, edges, features = graphs.graph_indicator, graphs.edges, graphs.features.toarray().astype(np.float32)
    first = np.searchsorted(indicator, np.arange(graphs.graph_count + 1))
    own = np.searchsorted(indicator[edges[:, 0]], np.arange(graphs.graph_count + 1))
    result = []
    for g in range(graphs.graph_count):
        pairs = edges[own[g]:own[g + 1]].astype(np.int64) - first[g]
        both = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
        arrays = {"x": torch.from_numpy(features[first[g]:first[g + 1]]), "edge_index": torch.from_numpy(both),
                  "y": torch.tensor([int(graphs.codes[g])])}
        if name in TORCH:
            result.append(Pairs(**arrays, reverse=torch.arange(len(both[0])).roll(len(pairs))))
        else:
            result.append(Data(**arrays))
    return result


def train_baseline(name, graphs, fold, options):
    """Test accuracy, best epoch, processor seconds of each epoch, and the same without the time of batching."""
    import anchor_network
    import torch
    import torch.nn.functional as F
    from torch_geometric.data import Batch
    from torch_geometric.loader import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = data_of(graphs, name)
    split = graphs.fold_split(fold, seed=0)
    training = DataLoader([data[g] for g in split.train], options.batch_size, shuffle=True)
    held = Batch.from_data_list([data[g] for part in (split.validation, split.test) for g in part])
    count = len(split.validation)
    network = network_of(name, graphs.feature_count, graphs.class_count, options.layers)
    adam = torch.optim.Adam(network.parameters(), lr=options.lr, fused=True)
    best, best_loss, accuracy, seconds, without = 0, np.inf, 0.0, [], []
    for epoch in range(options.epochs):
        start = before = time.process_time()
        batching = 0.0
        network.train()
        for batch in training:
            batching += time.process_time() - before
            adam.zero_grad()
            (F.cross_entropy(network(batch), batch.y) + 0.003 * anchor_network.kl_weight(epoch) * network.kl).backward()
            adam.step()
            before = time.process_time()
        network.eval()
        with torch.no_grad():
            outputs = network(held)
            loss = F.cross_entropy(outputs[:count], held.y[:count]).item()
            correct = (outputs[count:].argmax(1) == held.y[count:]).float().mean().item()
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
    if name in BASELINES or name in TORCH:
        *_, seconds, without = train_baseline(name, graphs, 0, options)
        return statistics.median(seconds), statistics.median(without)
    used = [train_sheaf(name, path, options, [0], epochs)[1] for epochs in (1, PROGRAM_TIMES * options.epochs)]
    return ((used[1] - used[0]) / (PROGRAM_TIMES * options.epochs - 1),) * 2


def speed(options, figures):
    """Medians over some runs, in turn for all networks."""
    options.patience = PROGRAM_TIMES * options.epochs
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


def tensors_of(path):
    """The arrays of a .safetensors file of float numbers."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    of_name = {name: of for name, of in json.loads(content[8:begin]).items() if name != "__metadata__"}
    return {name: np.frombuffer(content, np.float32, int(np.prod(of["shape"])), begin + of["data_offsets"][0]).reshape(of["shape"])
            for name, of in of_name.items()}


def check(options, figures):
    """Fails where a network of graph_network.py has other predictions than the program."""
    import torch
    from torch_geometric.data import Batch

    failed = False
    for path in options.files:
        graphs = sheafnn.load_graphs(path)
        test = graphs.fold_split(0, seed=0).test
        for name in (name for name in options.networks if name in TORCH):
            network = network_of(name, graphs.feature_count, graphs.class_count, options.layers).eval()
            samples = network.samples = 200 if network.setting.bayesian else 1
            with tempfile.TemporaryDirectory() as folder:
                tensors, table = (pathlib.Path(folder) / file for file in ("network.safetensors", "predictions.csv"))
                run([*command_of(TORCH[name], path, options, 3), "--fold", 0, "--feature-treatment", "none", "--samples", samples, "--save",
                     tensors, "--predictions", table])
                network.load(tensors_of(tensors))
                with table.open(encoding="utf-8") as file:
                    rows = list(csv.DictReader(file))
            batch = Batch.from_data_list([graph for g, graph in enumerate(data_of(graphs, name)) if g in set(test)])
            with torch.no_grad():
                probability = network(batch).exp().max(1).values.numpy()
            difference = np.abs(probability - [float(row["probability"]) for row in rows]).max()
            good = difference < (0.01 if network.setting.bayesian else 1e-4)
            failed |= not good
            print(f"{graphs.name} {name}: probabilities differ by at most {difference:.1e}{'' if good else '  WRONG'}", flush=True)
    sys.exit(int(failed))


def write(options, figures):
    options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "speed", "check"])
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--networks", type=lambda text: text.split(","))
    for name, value in (("folds", 10), ("epochs", 100), ("patience", 30), ("batch-size", 32), ("layers", 4), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=0.005)
    parser.add_argument("--program", default="build/release/examples/graphs")
    options = parser.parse_args()
    allowed = BASELINES + SHEAVES + ([] if options.what == "accuracy" else list(TORCH))
    options.networks = options.networks or allowed
    unknown = [name for name in options.networks if name not in allowed]
    if unknown:
        sys.exit(f"--networks: {unknown[0]} is not allowed; choose of {', '.join(allowed)}")
    warnings.filterwarnings("ignore", category=FutureWarning)  # torch_geometric's use of torch.jit
    figures = json.loads(options.figures.read_text(encoding="utf-8")) if options.figures.exists() else {}
    {"accuracy": accuracy, "speed": speed, "check": check}[options.what](options, figures)


if __name__ == "__main__":
    main()
