#!/usr/bin/env python3
"""Ensembles of what a search of tune.py has trained, chosen greedily by the validation likelihood.

usage: ensembles.py FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--rounds N] [--report FILE]

FOLDER  of tune.py search: predictions/NAME-NETWORK/TRIAL.npz of every completed trial
DATA    folder of NAME.npz files with ten splits
--networks  whose trials may be members; default: all that were searched
--rounds    members drawn, with replacement; default 25

A member is a trial: one setting, trained on every split. An ensemble predicts with the mean of its members' class
probabilities. It begins with the best member and takes in, one after another, that which leaves the largest mean log
likelihood of the validation nodes; a member may be taken in again, which gives it a greater weight (Caruana et al.,
Ensemble selection from libraries of models, ICML 2004). Of the ensembles on the way the most likely is kept.

"The most likely" are as many members as there are rounds, with equal weights: a baseline without the greedy choice.

Three ways of choosing the members of a split's ensemble:
  per split   by the validation nodes of that split alone
  not tested  by the validation nodes of every split, each predicted by the members of its own split, without the test nodes
              of the split that is chosen for: no label of a test node counts in the choice that is tested on it. What
              remains is that networks of the other splits were trained with some of these labels, and that the search,
              which drew and gave up the settings to choose from, went by all splits.
  all splits  by the validation nodes of every split, one choice for all splits, as a single setting is chosen. The
              validation nodes of one split are test nodes of others: more choice means more optimism.
One temperature per choice, fitted on the same nodes, scales log probabilities.

Test accuracy, NLL and Brier score (sum of squares over the classes) are means over the splits ± their standard deviation.
Needs numpy and scipy from PyPI.
"""
import argparse
import json
import os
import sys

import numpy
import scipy.optimize

from metrics import accuracy, brier_score, read_arrays


class Graph:
    """Labels and splits of an .npz file, of validation and test nodes those with a label."""

    def __init__(self, path):
        if not os.path.exists(path):
            sys.exit(f"ensembles.py: --data: {path} does not exist")
        arrays = read_arrays(path, ("node_labels", "val_masks", "test_masks"))
        self.labels = arrays["node_labels"].astype(int)
        self.validation, self.test = ([numpy.flatnonzero(mask.astype(bool) & (self.labels >= 0)) for mask in arrays[key]]
                                      for key in ("val_masks", "test_masks"))


class Library:
    """The completed trials of some networks: probabilities, members × splits × nodes × classes."""

    def __init__(self, folder, dataset, networks):
        self.names, probabilities = [], []
        for network in networks:
            trials = os.path.join(folder, "predictions", f"{dataset}-{network}")
            files = [name for name in os.listdir(trials) if name.endswith(".npz")]
            for file in sorted(files, key=lambda name: int(name.removesuffix(".npz"))):
                probabilities.append(read_arrays(os.path.join(trials, file), ["probabilities"])["probabilities"])
                self.names.append(f"{network}/{file.removesuffix('.npz')}")
        if not self.names:
            sys.exit(f"ensembles.py: {dataset}: no predictions of a completed trial in {folder}")
        self.probabilities = numpy.stack(probabilities)

    def of(self, split, nodes):
        """members × nodes × classes"""
        return self.probabilities[:, split, nodes].astype(float)


def log_likelihood(probabilities, labels):
    """Mean over the nodes, the last axis but one."""
    chosen = numpy.take_along_axis(probabilities, labels[..., None], axis=-1)[..., 0]
    return numpy.log(numpy.maximum(chosen, 1e-12)).mean(-1)


def greedy(true_class, rounds):
    """Weights of the members.

    true_class: members × parts × nodes, probabilities of the true classes (padded with 1 where a part has fewer nodes);
    the objective is the mean over the parts of the mean log likelihood.
    """
    members = true_class.shape[0]
    counted = (true_class[0] != 1).sum(-1)
    weights = numpy.zeros(members, int)
    total = numpy.zeros(true_class.shape[1:])
    best, best_value = None, -numpy.inf
    for drawn in range(1, rounds + 1):
        means = numpy.maximum((total + true_class) / drawn, 1e-12)
        values = (numpy.log(means).sum(-1) / counted).mean(-1)
        member = int(values.argmax())
        weights[member] += 1
        total += true_class[member]
        if values[member] > best_value:
            best, best_value = weights.copy(), values[member]
    return best / best.sum()


def true_class_probabilities(library, graph, parts):
    """members × parts × nodes, padded with 1. parts: (split, nodes)"""
    r = numpy.ones((len(library.names), len(parts), max(len(nodes) for _, nodes in parts)))
    for i, (split, nodes) in enumerate(parts):
        values = library.of(split, nodes)[:, numpy.arange(len(nodes)), graph.labels[nodes]]
        r[:, i, :len(nodes)] = numpy.minimum(values, 1 - 1e-12)
    return r


def tempered(probabilities, temperature):
    logs = numpy.log(numpy.maximum(probabilities, 1e-12)) / temperature
    logs -= logs.max(-1, keepdims=True)
    scaled = numpy.exp(logs)
    return scaled / scaled.sum(-1, keepdims=True)


def fit_temperature(parts):
    """parts: (probabilities, labels) of validation nodes."""
    def loss(log_temperature):
        return -sum(log_likelihood(tempered(p, numpy.exp(log_temperature)), y) for p, y in parts)
    return float(numpy.exp(scipy.optimize.minimize_scalar(loss, bounds=(-2.5, 2.5), method="bounded").x))


def figures(predict, graph, splits):
    """predict(split, nodes): probabilities. Per split: accuracy, NLL, Brier score of the test nodes."""
    rows = []
    for s in splits:
        nodes = graph.test[s]
        p, y = predict(s, nodes), graph.labels[nodes]
        everyone = slice(None)
        rows.append([accuracy(p, y, everyone), -float(log_likelihood(p, y)), brier_score(p, y, everyone)])
    return numpy.array(rows)


def evaluate(library, graph, choice):
    """Figures without and with the temperatures, one for each split, and these."""
    def predict(weights, s, nodes):
        chosen = numpy.flatnonzero(weights)
        p = library.probabilities[chosen][:, s, nodes].astype(float)
        return numpy.tensordot(weights[chosen], p, 1)

    splits = list(range(len(graph.test)))
    temperatures = []
    for weights, parts in choice:
        shared = temperatures and weights is choice[0][0]
        temperatures.append(temperatures[0] if shared else fit_temperature(
            [(predict(weights, s, nodes), graph.labels[nodes]) for s, nodes in parts]))
    return (figures(lambda s, nodes: predict(choice[s][0], s, nodes), graph, splits),
            figures(lambda s, nodes: tempered(predict(choice[s][0], s, nodes), temperatures[s]), graph, splits), temperatures)


def nodes_to_choose_by(graph):
    """Way of choosing: for every split, the parts (split, nodes) that its members are chosen by; see above."""
    splits = range(len(graph.test))
    everywhere = [(s, graph.validation[s]) for s in splits]

    def not_tested(split):
        parts = [(s, numpy.setdiff1d(graph.validation[s], graph.test[split])) for s in splits]
        return [(s, nodes) for s, nodes in parts if len(nodes)]

    return {"all splits": [everywhere for _ in splits],
            "not tested": [not_tested(split) for split in splits],
            "per split": [[everywhere[split]] for split in splits]}


def chosen_by(library, graph, parts, rounds):
    """Rule: weights of the members."""
    true_class = true_class_probabilities(library, graph, parts)
    counted = (true_class[0] != 1).sum(-1)
    likelihood = (numpy.log(true_class).sum(-1) / counted).mean(-1)  # of every member, the mean over the parts
    validated = numpy.array([numpy.mean([accuracy(member[s], graph.labels, nodes) for s, nodes in parts])
                             for member in library.probabilities])
    unit = numpy.eye(len(library.names))
    # Ties of the accuracy by the likelihood.
    by_accuracy = max(range(len(unit)), key=lambda m: (round(validated[m], 9), likelihood[m]))
    likely = numpy.argsort(-likelihood, kind="stable")[:rounds]
    return {"single, accuracy": unit[by_accuracy],
            "single, likelihood": unit[int(likelihood.argmax())],
            "ensemble": greedy(true_class, rounds),
            "the most likely, equal weights": unit[likely].sum(0) / len(likely)}


def choices(library, graph, rounds):
    """Name: for every split the weights of its members, and the parts that they were chosen by."""
    named = {}
    for way, parts_of in nodes_to_choose_by(graph).items():
        weights_of = []
        for split, parts in enumerate(parts_of):
            same = split > 0 and parts is parts_of[0]
            weights_of.append(weights_of[0] if same else chosen_by(library, graph, parts, rounds))
        for rule in weights_of[0]:
            named[f"{rule}, {way}"] = [(weights[rule], parts) for weights, parts in zip(weights_of, parts_of)]
    return named


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--data", required=True)
    parser.add_argument("--datasets", default="texas,wisconsin,film,citeseer,cora")
    parser.add_argument("--networks")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--report")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit(f"ensembles.py: --rounds: {arguments.rounds} must be at least 1")
    kept = os.path.join(arguments.folder, "predictions")
    if not os.path.isdir(kept):
        sys.exit(f"ensembles.py: {kept} does not exist: tune.py search makes it")
    report = {}
    for dataset in arguments.datasets.split(","):
        searched = [name.removeprefix(dataset + "-") for name in sorted(os.listdir(kept)) if name.startswith(dataset + "-")]
        networks = arguments.networks.split(",") if arguments.networks else searched
        unknown = [network for network in networks if network not in searched]
        if unknown or not networks:
            sys.exit(f"ensembles.py: {dataset}: " + (f"{', '.join(unknown)} was not searched" if unknown else
                                                     f"{kept} has predictions of no network"))
        try:
            graph = Graph(os.path.join(arguments.data, dataset + ".npz"))
            library = Library(arguments.folder, dataset, networks)
        except ValueError as error:
            sys.exit(f"ensembles.py: {error}")
        print(f"\n## {dataset}: {len(library.names)} trials of {len(networks)} networks\n\n| chosen | members | accuracy | NLL | "
              "with temperature | Brier | with temperature |\n| --- | --- | --- | --- | --- | --- | --- |")
        report[dataset] = {"networks": networks, "trials": len(library.names), "choices": {}}
        for name, choice in choices(library, graph, arguments.rounds).items():
            plain, scaled, temperatures = evaluate(library, graph, choice)
            members = numpy.mean([(weights > 0).sum() for weights, _ in choice])

            def text(rows, column, factor=1, digits=3):
                values = factor * rows[:, column]
                return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"

            print(f"| {name} | {members:.3g} | {text(plain, 0, 100, 1)} | {text(plain, 1)} | {text(scaled, 1)} | {text(plain, 2)} | "
                  f"{text(scaled, 2)} |", flush=True)
            report[dataset]["choices"][name] = {
                "members": [{library.names[m]: round(float(weights[m]), 4) for m in numpy.flatnonzero(weights)}
                            for weights, _ in (choice[:1] if "all splits" in name else choice)],
                "temperature": [round(one, 4) for one in temperatures],
                "accuracy": plain[:, 0].tolist(), "nll": plain[:, 1].tolist(), "brier": plain[:, 2].tolist(),
                "nll_with_temperature": scaled[:, 1].tolist(), "brier_with_temperature": scaled[:, 2].tolist()}
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
