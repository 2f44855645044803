#!/usr/bin/env python3
"""Plain `train` against networks that see no graph: what a user gets who takes the defaults.

usage: defaults.py TRAIN [--data DATA] [--graphs NAME,...] [--splits 0-4] [--threads N] [--json FILE]

TRAIN      the program train, with the models SpecialOrthogonal_3 and Identity_1
--data     folder of texas.npz and the like (default: none of these)
--graphs   of the names below; default: all
--splits   as train takes them
--json     writes the figures of all trainings there as well

For every graph: train without options but the data; an identity sheaf (`--model nsd --maps identity --stalk-dim 1`); and
an MLP: the same network with --no-edges, one hidden layer of 64, the best of eight settings (decay, dropout, features as
they are or treated) by the mean validation accuracy of the splits. Test accuracy is printed in percent, mean and standard
deviation over the splits, with the validation accuracy by which alone anything may be chosen.

Needs nothing but the standard library.
"""
import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

PUBLIC = ["texas", "wisconsin", "cornell", "film", "cora", "citeseer", "minesweeper", "planted/frames_2000_wide",
          "planted/frames_5000"]
IDENTITY = ["--model", "nsd", "--maps", "identity", "--stalk-dim", "1"]
RAW = ["--feature-treatment", "columns"]


def synthetic(nodes, homophily, degree=6, **more):
    options = {"nodes": nodes, "homophily": homophily, "degree": degree, "seed": 1, **more}
    return ["--dataset", "synthetic"] + [text for key, value in options.items()
                                         for text in (f"--synthetic-{key.replace('_', '-')}", str(value))]


def write_folder(folder, names, rows, labels, edges):
    """Writes the files of a folder, features as texts, and returns the options of train."""
    with open(os.path.join(folder, "nodes.csv"), "w") as file:
        file.write("id," + ",".join(names) + ",label\n")
        for u, (row, label) in enumerate(zip(rows, labels)):
            file.write(f"{u}," + ",".join(row) + f",c{label}\n")
    with open(os.path.join(folder, "edges.csv"), "w") as file:
        file.write("source,target\n" + "".join(f"{u},{v}\n" for u, v in sorted(edges)))
    return ["--dataset", folder, "--make-splits", "48/32/20"]


def distinct_edges(count, draw):
    """Edges (u, v) with u < v, drawn until there are so many."""
    edges = set()
    while len(edges) < count:
        u, v = draw()
        if u != v:
            edges.add((min(u, v), max(u, v)))
    return edges


def tabular(folder, nodes, homophily, degree=6, classes=4, columns=8, seed=1):
    """A folder with real columns: class means and noise in units of very different sizes, one of them lognormal."""
    r = random.Random(seed)
    means = [[r.gauss(0, 0.8) for _ in range(columns)] for _ in range(classes)]
    units = [math.exp(r.gauss(0, 3)) for _ in range(columns)]
    shifts = [unit * r.gauss(0, 5) for unit in units]
    labels = [r.randrange(classes) for _ in range(nodes)]
    members = [[u for u in range(nodes) if labels[u] == c] for c in range(classes)]
    rows = []
    for label in labels:
        row = [r.gauss(mean, 1.2) for mean in means[label]]
        row = [unit * x + shift for unit, x, shift in zip(units, row, shifts)][:-1] + [math.exp(row[-1])]
        rows.append([f"{x:.6g}" for x in row])

    def draw():
        u = r.randrange(nodes)
        c = labels[u] if r.random() < homophily else (labels[u] + r.randrange(1, classes)) % classes
        return u, r.choice(members[c])

    edges = distinct_edges(nodes * degree // 2, draw)
    return write_folder(folder, [f"x{j}" for j in range(columns)], rows, labels, edges)


def wiki(folder, nodes, degree, topics=25, classes=5, vocabulary=2000, seed=1):
    """A folder of pages with words: hidden topics make words and links, classes are fifths of a number that topics tell
    a little of. Dense, heterophilous, and hard: neither words nor links say much."""
    r = random.Random(seed)
    topic = [r.randrange(topics) for _ in range(nodes)]
    worth = [r.gauss(0, 2.5) for _ in range(topics)]
    value = [worth[t] + r.gauss(0, 1.5) for t in topic]
    order = sorted(range(nodes), key=value.__getitem__)
    labels = [0] * nodes
    for rank, u in enumerate(order):
        labels[u] = rank * classes // nodes
    base = [1 / (k + 1) ** 0.9 for k in range(vocabulary)]
    r.shuffle(base)
    words = [[b * r.gammavariate(0.1, 1) for b in base] for _ in range(topics)]
    weight = [math.exp(r.gauss(0, 1)) for _ in range(nodes)]
    members = [[u for u in range(nodes) if topic[u] == t] for t in range(topics)]
    rows = []
    for u in range(nodes):
        count = 1 + int(r.gammavariate(2, 15))
        typical = sum(r.random() < 0.5 for _ in range(count))
        own = set(r.choices(range(vocabulary), words[topic[u]], k=typical))
        own |= set(r.choices(range(vocabulary), base, k=count - typical))
        rows.append(["1" if j in own else "0" for j in range(vocabulary)])
    everybody = range(nodes)

    def draw():
        u = r.choices(everybody, weight)[0]
        return u, r.choice(members[topic[u]] if r.random() < 0.6 else everybody)

    edges = distinct_edges(nodes * degree // 2, draw)
    return write_folder(folder, [f"w{j}" for j in range(vocabulary)], rows, labels, edges)


def generated():
    """Name -> function of a folder, which returns the options of train."""
    graphs = {}
    for h in (0.1, 0.3, 0.5, 0.7, 0.9):
        graphs[f"words-1000-{h}"] = lambda folder, h=h: synthetic(1000, h, feature_noise=0.7)
    for nodes, h in itertools.product((200, 5000), (0.1, 0.5, 0.9)):
        graphs[f"words-{nodes}-{h}"] = lambda folder, nodes=nodes, h=h: synthetic(nodes, h, feature_noise=0.7)
    for h in (0.1, 0.5, 0.9):
        graphs[f"words-20000-{h}"] = lambda folder, h=h: synthetic(20000, h, feature_noise=0.7)
    for seed in (1, 2):
        graphs[f"dense-890-0.2-seed-{seed}"] = lambda folder, seed=seed: synthetic(
            890, 0.2, 20, features=2325, words=20, feature_noise=0.85, seed=seed)
        graphs[f"wiki-890-seed-{seed}"] = lambda folder, seed=seed: wiki(folder, 890, 20, seed=seed)
    graphs["wiki-2200-seed-3"] = lambda folder: wiki(folder, 2200, 42, seed=3)
    for nodes, h in itertools.product((200, 1000), (0.1, 0.3, 0.5, 0.7, 0.9)):
        graphs[f"tabular-{nodes}-{h}"] = lambda folder, nodes=nodes, h=h: tabular(folder, nodes, h)
    graphs["tabular-20000-0.3"] = lambda folder: tabular(folder, 20000, 0.3)
    return graphs


class Trainer:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.log = arguments, folder, []

    def run(self, graph, what, options):
        """The report of a training."""
        report = os.path.join(self.folder, "report.json")
        command = [self.arguments.train, *options, "--splits", self.arguments.splits, "--threads",
                   str(self.arguments.threads), "--report", report]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"defaults.py: {graph}: {' '.join(command)}: {done.stderr.strip()}")
        with open(report) as file:
            r = json.load(file)
        figures = {key: r[key] for key in ("test_accuracy", "validation_accuracy", "roc_auc", "nll", "preset")}
        self.log.append({"graph": graph, "network": what, "options": options, "seconds": r["run"]["seconds"], **figures})
        return figures


def mlp(trainer, graph, data):
    best = None
    settings = itertools.product(("5e-4", "5e-3"), (("0", "0.5"), ("0.5", "0.5")), ([], RAW))
    for decay, (input_dropout, dropout), features in settings:
        options = [*data, *IDENTITY, "--no-edges", "--preset", "none", "--layers", "1", "--channels", "64",
                   "--epochs", "300", "--patience", "60", "--lr", "0.01", "--weight-decay", decay,
                   "--input-dropout", input_dropout, "--dropout", dropout, "--stop-on", "accuracy", *features]
        figures = trainer.run(graph, "mlp", options)
        if best is None or figures["validation_accuracy"]["mean"] > best["validation_accuracy"]["mean"]:
            best = figures
    return best


def cell(figures):
    test, validation = figures["test_accuracy"], figures["validation_accuracy"]
    deviation = f" ± {100 * test['std']:.1f}" if test["std"] is not None else ""
    return f"{100 * test['mean']:.1f}{deviation} ({100 * validation['mean']:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("--data")
    parser.add_argument("--graphs", default="")
    parser.add_argument("--splits", default="0-4")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    graphs = {}
    if arguments.data:
        for name in PUBLIC:
            graphs[name] = lambda folder, name=name: ["--dataset", os.path.join(arguments.data, name + ".npz")]
    graphs.update(generated())
    names = [name for name in arguments.graphs.split(",") if name] or list(graphs)
    for name in names:
        if name not in graphs:
            sys.exit(f"defaults.py: --graphs: {name}: choose from {', '.join(graphs)}")
    print("| graph | preset | default | MLP | identity sheaf |\n| --- | --- | --- | --- | --- |", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            trainer_folder = os.path.join(folder, "reports")
            os.mkdir(trainer_folder)
            trainer = Trainer(arguments, trainer_folder)
            data = graphs[name](folder)
            default = trainer.run(name, "default", data)
            rows = [default, mlp(trainer, name, data), trainer.run(name, "identity", [*data, *IDENTITY])]
            print(f"| {name} | {default['preset']} | " + " | ".join(cell(row) for row in rows) + " |", flush=True)
            if arguments.json:
                with open(arguments.json, "a") as file:
                    file.writelines(json.dumps(entry) + "\n" for entry in trainer.log)


if __name__ == "__main__":
    main()
