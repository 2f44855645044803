#!/usr/bin/env python3
"""What learned sheaves are worth on public graphs: trains networks with default options, and prints a table in Markdown.

usage: public_sheaves.py FILE.json --data DATA [--datasets NAME,...] [--networks NAME,...] [--splits 0-9] [--seed 0]

FILE.json  the results; what is in it is not trained again, so that a study that was interrupted resumes
DATA       folder of NAME.npz files with splits
--train PROGRAM   default: build/release/examples/train
--networks NAME   MODEL-MAPS, as in bsnn-special-orthogonal (default: bsnn and nsd with maps of every family, identity maps)

All figures but "unused", "permuted" and "identity" are of test nodes. The last two are the rise of the validation loss, in nats,
with the learned maps permuted between edges and with identity maps in their place; "points" is what permuting costs in
percent of the validation nodes. "Unused" counts the trainings whose loss permuting does not raise by 0.01 nats and two standard
errors.

Needs numpy.
"""
import argparse
import os
import sys

import numpy

import tune
from uncertainty_study import FAMILIES, Trainings

GRAPHS = ["texas", "wisconsin", "cornell", "film", "cora", "citeseer", "minesweeper"]
NETWORKS = [f"{model}-{maps}" for maps in FAMILIES for model in ("bsnn", "nsd")] + ["nsd-identity"]
HEADINGS = ["graph", "network", "test", "validation", "NLL", "debiased ECE", "permuted", "points", "identity", "unused"]


def trained(program, path, network, splits, seed):
    """Figures of all splits, by name."""
    model, _, maps = network.partition("-")
    words = ["--dataset", path, "--model", model, "--maps", maps, "--splits", splits, "--seed", str(seed)]
    trainings = Trainings(program, words)
    report = trainings.report
    r = {key: [f[key] for f in trainings.figures] for key in ("accuracy", "nll", "debiased_ece")}
    r["validation"] = [split["validation_accuracy"] for split in report["splits"]]
    each = [split["sheaf"] for split in report["splits"] if "sheaf" in split]
    if each and each[0]["loss"] is not None:
        r["unused"] = report["sheaf"]["unused"]
        for key in ("permuted", "identity"):
            r[key] = [one[key]["rise"] for one in each]
        r["permuted_points"] = [100 * (one["accuracy"] - one["permuted"]["accuracy"]) for one in each]
    r["seconds"] = trainings.seconds
    return r


def mean(values, form, factor=1):
    return "" if values is None else form.format(factor * numpy.mean(values))


def row(graph, network, r):
    accuracy = 100 * numpy.array(r["accuracy"])
    deviation = f" ± {accuracy.std(ddof=1):.1f}" if len(accuracy) > 1 else ""
    return [graph, network, f"{accuracy.mean():.1f}{deviation}", mean(r["validation"], "{:.1f}", 100),
            mean(r["nll"], "{:.3f}"), mean(r["debiased_ece"], "{:+.3f}"), mean(r.get("permuted"), "{:+.3f}"),
            mean(r.get("permuted_points"), "{:+.1f}"), mean(r.get("identity"), "{:+.3f}"),
            f"{r['unused']} of {len(accuracy)}" if "unused" in r else ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--data", required=True)
    parser.add_argument("--datasets", default=",".join(GRAPHS))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--splits", default="0-9")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", default="build/release/examples/train")
    arguments = parser.parse_args()
    results = tune.read_json(arguments.file) if os.path.exists(arguments.file) else {}
    print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS))
    for graph in arguments.datasets.split(","):
        for network in arguments.networks.split(","):
            key = f"{graph} {network} {arguments.splits} {arguments.seed}"
            if key not in results:
                path = os.path.join(arguments.data, graph + ".npz")
                results[key] = trained(arguments.train, path, network, arguments.splits, arguments.seed)
                tune.write_json(arguments.file, results)
            print("| " + " | ".join(row(graph, network, results[key])) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
