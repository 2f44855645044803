#!/usr/bin/env python3
"""One table of all networks on all graphs, and one of what a learned sheaf gains, from exports of tune.py.

usage: overview.py FOLDER [--datasets NAME,...] [--spaces FILE] [--chosen]

FOLDER      an OUTPUT of `tune.py export` or `tune.py budget`, with NAME.json of every dataset
--datasets  default: texas,wisconsin,film,citeseer,cora
--spaces    default: search_spaces.json beside this program; says which networks learn a sheaf, which have the identity sheaf, and
            which belong to baselines.py
--chosen    prints another table alone: what the validation nodes choose

The first table has the validation accuracy of the chosen setting and the test accuracy for both rules that say which epoch is the
best: per cent, mean ± standard deviation over splits and seeds (divided by their number minus one). Its rows are in the order of
the mean over the graphs of the difference to the graph's best mean (rule "loss"); networks that lack figures for a graph come
last, after those that lack fewer.

In the second a row is a graph: of the networks that learn a sheaf, the one that the validation nodes choose, and its test accuracy minus
the accuracy of others, best epoch by loss, then by accuracy, with p of Wilcoxon's signed-rank test over the splits,
means over the seeds.
"Other, chosen" is the network of baselines.py that the validation nodes choose.

With --chosen a row is a graph too: of the networks that learn a sheaf, of the networks with identity maps, and of the networks of
baselines.py, the one that the validation nodes choose, and its test accuracy, best epoch by loss.

Needs scipy from PyPI.
"""
import argparse
import os
import statistics
import sys

from tune import RULES, Spaces, means_of_splits, p_value, rank, read_export


def percent(final_of):
    """Mean ± standard deviation of the test figures."""
    values = [100 * value for _, _, value in final_of["test"]]
    return f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"


def test_mean(of):
    return statistics.fmean(means_of_splits(of["final"]["loss"]))


def print_figures(graphs):
    """graphs: of every dataset the networks of an export."""
    best = {dataset: max(test_mean(of) for of in networks.values()) for dataset, networks in graphs.items()}

    def behind(name):
        differences = [best[dataset] - test_mean(networks[name]) for dataset, networks in graphs.items() if name in networks]
        return len(graphs) - len(differences), statistics.fmean(differences)

    names = sorted({name for networks in graphs.values() for name in networks}, key=behind)
    print("| network | " + " | ".join(f"{dataset}, validation | test, by loss | by accuracy" for dataset in graphs) + " |")
    print("| --- " * (1 + 3 * len(graphs)) + "|")
    for name in names:
        cells = []
        for networks in graphs.values():
            of = networks.get(name)
            cells += [f"{100 * of['validation']:.1f}", *(percent(of["final"][rule]) for rule in RULES)] if of else [""] * 3
        print(f"| {name} | " + " | ".join(cells) + " |")


def difference(of, other):
    """Test figures of one network minus the figures of another, for both rules, and p."""
    cells = []
    for rule in RULES:
        a, b = means_of_splits(of["final"][rule]), means_of_splits(other["final"][rule])
        cells.append(f"{statistics.fmean(a) - statistics.fmean(b):+.1f} ({p_value(a, b):.2g})")
    return ", ".join(cells)


def chosen_of(networks, names):
    """The network with the best validation figure; None if there is none."""
    there = [name for name in names if name in networks]
    return max(there, key=lambda name: rank(networks[name]["validation"], networks[name]["validation_loss"]), default=None)


def kinds_of(spaces):
    """Names of the networks that learn a sheaf, of the networks with identity maps, and of the networks in baselines.py."""
    maps = {name: of["fixed"].get("--maps") for name, of in spaces.content["networks"].items()}
    identity = [name for name in maps if maps[name] == "identity"]
    return [name for name in maps if name not in identity], identity, list(spaces.content["baselines"])


def print_chosen(graphs, spaces):
    kinds = kinds_of(spaces)
    print("| graph | learned sheaf | test | identity sheaf | test | without maps | test |")
    print("| --- " * 7 + "|")
    for dataset, networks in graphs.items():
        cells = []
        for names in kinds:
            name = chosen_of(networks, names)
            cells += ["", ""] if name is None else [name, percent(networks[name]["final"]["loss"])]
        print(f"| {dataset} | " + " | ".join(cells) + " |")


def print_differences(graphs, spaces):
    learned, identity, baselines = kinds_of(spaces)
    print("\n| graph | learned sheaf, chosen | " + " | ".join(identity) + " | other, chosen |")
    print("| --- " * (3 + len(identity)) + "|")
    for dataset, networks in graphs.items():
        name = chosen_of(networks, learned)
        if name is None:
            continue
        cells = [difference(networks[name], networks[other]) if other in networks else "" for other in identity]
        other = chosen_of(networks, baselines)
        cells.append("" if other is None else f"{other}: {difference(networks[name], networks[other])}")
        print(f"| {dataset} | {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(usage=__doc__[__doc__.index("usage:") + 7:])
    parser.add_argument("folder")
    parser.add_argument("--datasets", default="texas,wisconsin,film,citeseer,cora")
    parser.add_argument("--spaces", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "search_spaces.json"))
    parser.add_argument("--chosen", action="store_true")
    arguments = parser.parse_args()
    graphs = {}
    for dataset in arguments.datasets.split(","):
        graphs[dataset] = read_export(arguments.folder, dataset)
        if graphs[dataset] is None:
            sys.exit(f"overview.py: --datasets: {os.path.join(arguments.folder, dataset + '.json')} does not exist")
        for name, of in graphs[dataset].items():
            missing = [rule for rule in RULES if rule not in of["final"]]
            if missing:
                sys.exit(f"overview.py: {dataset}.json: {name} has no figures for '{missing[0]}'")
    spaces = Spaces(arguments.spaces)
    if arguments.chosen:
        print_chosen(graphs, spaces)
        return
    print_figures(graphs)
    print_differences(graphs, spaces)


if __name__ == "__main__":
    main()
