#!/usr/bin/env python3
"""Milliseconds of processor time of an epoch of a two-layer model: SheafConv in PyTorch's loop, with PyTorch's ELU
between the layers or with the layer's own (act), this library's own training, and the authors' PyTorch layers, in turn
on the same machine with one thread.

usage: torch_epochs.py DATA [--authors FOLDER] [--graphs NAME,...] [--maps NAME,...] [--rounds R] [--seconds S]

DATA     folder with cora.npz, film.npz (see README.md)
FOLDER   checkout of github.com/patrick-gillespie/bsnn, which has the layers of neural sheaf diffusion too; without:
they are left out

An epoch is a training step and an evaluation of all nodes: d = 3, 16 channels, two layers, dropout 0.3. They
take turns for R rounds of S seconds each; the figures are medians of the rounds' medians, with the smallest and largest ratio of a
round.
"""
import argparse
import os
import statistics
import sys
import time
import types

import numpy as np
import torch

import sheafnn
from authors_code import load, provide_missing
from sheafnn.torch import Nsd, SheafConv

MODELS = {"diagonal": ("DiagSheaf", "DiscreteDiagSheafDiffusion"),
          "special-orthogonal": ("BundleSheaf", "DiscreteBundleSheafDiffusion"),
          "general-linear": ("GeneralSheaf", "DiscreteGeneralSheafDiffusion")}


class Convolutions(torch.nn.Module):
    """Two SheafConv and a linear layer, for a loop of PyTorch. Its ELU is PyTorch's, or one of the convolution's call."""

    def __init__(self, columns, classes, maps, own_activation):
        super().__init__()
        self.own_activation = own_activation
        self.first = SheafConv(columns, 48, maps, 3, act="elu" if own_activation else "identity", dropout=0.3, seed=1)
        self.second = SheafConv(48, 48, maps, 3, dropout=0.3, seed=2)
        self.last = torch.nn.Linear(48, classes)

    def forward(self, x, edge_index):
        x = self.first(x, edge_index)
        x = x if self.own_activation else torch.nn.functional.elu(x)
        return self.last(self.second(x, edge_index))


def torch_epoch(data, model, target):
    """A function that runs one epoch of a module."""
    adam = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def epoch():
        model.train()
        adam.zero_grad()
        outputs = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(outputs[data.train_mask], target).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            model(data.x, data.edge_index).argmax(1)

    return epoch


def library_epochs(options, graph, maps):
    """A function that trains for some epochs and gives the seconds of one, without the time of beginning and end."""
    data = sheafnn.load_dataset(os.path.join(options.data, graph + ".npz"))

    def fit(count):
        model = sheafnn.SheafClassifier("nsd", maps, 3, preset="none", channels=16, layers=2, dropout=0.3, epochs=count,
                                        patience=count, learning_rate=0.01, weight_decay=5e-4, threads=1)
        before = time.process_time()
        model.fit(data, split=0)
        return time.process_time() - before

    def epochs(count):
        return (fit(count + 5) - fit(5)) / count

    return epochs


def authors_epoch(options, data, maps):
    """One epoch of the authors' train() and test()."""
    provide_missing()
    folder = os.path.abspath(options.authors)
    sys.path.insert(0, folder)
    os.chdir(folder)
    sys.modules["wandb"] = types.ModuleType("wandb")
    sys.argv = ["run.py"]
    import exp.run as run
    argument, network = MODELS[maps]
    settings = ["--model", argument, "--d", "3", "--layers", "2", "--hidden_channels", "16", "--input_dropout", "0.0",
                "--dropout", "0.3", "--add_lp", "False", "--add_hp", "False", "--second_linear", "False",
                "--normalised", "True", "--deg_normalised", "False", "--orth", "householder", "--sheaf_act", "tanh",
                "--edge_weights", "True", "--left_weights", "True", "--right_weights", "True", "--use_act", "True",
                "--linear", "False", "--sparse_learner", "False"]
    args = vars(run.get_parser().parse_args(settings))
    args.update(bayes_model=False, graph_size=data.x.size(0), input_dim=data.x.size(1),
                output_dim=int(data.y.max()) + 1, device=torch.device("cpu"), sheaf_decay=args["weight_decay"])
    net = getattr(run, network)(data.edge_index, args)
    adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def epoch():
        run.train(net, adam, data, args, 0)
        run.test(net, data, args)

    return epoch


def median_seconds(epoch, seconds):
    """Median over the epochs of so many seconds, at least five."""
    times, started = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - started < seconds:
        before = time.process_time()
        epoch()
        times.append(time.process_time() - before)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--authors")
    parser.add_argument("--graphs", default="cora")
    parser.add_argument("--maps", default="special-orthogonal")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.data = os.path.abspath(options.data)
    print("| graph | maps | SheafConv, ms | with act, ms | Nsd module, ms | library, ms | authors, ms | SheafConv / library "
          "| with act / library | authors / SheafConv |")
    print("|" + " --- |" * 10)
    for graph in options.graphs.split(","):
        for maps in options.maps.split(","):
            data = load(os.path.join(options.data, graph + ".npz"), "cpu")
            classes, target = int(data.y.max()) + 1, data.y[data.train_mask]
            layers = torch_epoch(data, Convolutions(data.x.shape[1], classes, maps, False), target)
            fused = torch_epoch(data, Convolutions(data.x.shape[1], classes, maps, True), target)
            whole = torch_epoch(data, Nsd(data.x.shape[1], classes, maps, 3, channels=16, layers=2, dropout=0.3, seed=1), target)
            own = library_epochs(options, graph, maps)
            theirs = authors_epoch(options, data, maps) if options.authors else None
            rounds = []
            for number in range(options.rounds + 1):
                row = [median_seconds(epoch, options.seconds) for epoch in (layers, fused, whole)]
                row.append(own(max(20, int(options.seconds / row[0]))))
                row.append(median_seconds(theirs, options.seconds) if theirs else float("nan"))
                if number > 0:  # the first one warms up
                    rounds.append([1000 * value for value in row])
            table = np.array(rounds)
            ms = np.median(table, axis=0)

            def ratio(a, b):
                of_rounds = table[:, a] / table[:, b]
                return f"{np.median(of_rounds):.2f} ({of_rounds.min():.2f} to {of_rounds.max():.2f})"

            print(f"| {graph} | {maps} | " + " | ".join(f"{value:.2f}" for value in ms) +
                  f" | {ratio(0, 3)} | {ratio(1, 3)} | {ratio(4, 0)} |", flush=True)


if __name__ == "__main__":
    main()
