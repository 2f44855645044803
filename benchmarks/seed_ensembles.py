#!/usr/bin/env python3
"""Test accuracy of single trainings and of their ensembles over the seeds.

usage: seed_ensembles.py FILE.npz...

FILE  the predictions file of `train --splits 0-9 --seeds 0-4 --predictions FILE.npz`: one setting, several splits and seeds

An ensemble predicts with the mean of its members' class probabilities. Mean ± standard deviation over the splits, in percent;
of single trainings the mean over the seeds is taken first. The row "all" has the members of all files. The last row bounds what
choosing could gain: of all combinations of files (3 to 16 of them) that whose ensemble is the best on the test nodes, which nobody may
choose. Needs numpy.
"""
import itertools
import os
import sys

import numpy

from metrics import accuracy, read_arrays

MOST_FILES = 16  # of which all combinations are tried


def load(path):
    """Of a file: probabilities, splits × seeds × nodes × classes; labels; of every split the test nodes with a label."""
    try:
        file = read_arrays(path, ("split", "probabilities", "labels", "role"))
    except ValueError as error:
        sys.exit(f"seed_ensembles.py: {error}")
    splits = sorted(set(file["split"]))
    of = [numpy.flatnonzero(file["split"] == split) for split in splits]
    if len({len(runs) for runs in of}) != 1:
        sys.exit(f"seed_ensembles.py: {path}: splits differ in their number of seeds")
    known = file["labels"] >= 0
    return file["probabilities"][numpy.stack(of)], file["labels"], [(file["role"][runs[0]] == 3) & known for runs in of]


def accuracies(probabilities, labels, test):
    """Of splits × nodes × classes, one per split, in percent."""
    return numpy.array([100 * accuracy(p, labels, nodes) for p, nodes in zip(probabilities, test)])


def text(values):
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" if len(values) > 1 else f"{values.mean():.2f}"


def best_combination(members, labels, test):
    """Accuracies of the combination of files whose ensemble is the best on the test nodes, and the numbers of its files."""
    sums = [[of.sum(axis=0, dtype=float)[nodes] for of, nodes in zip(one, test)] for one in members]  # of files, splits
    truths = [labels[nodes] for nodes in test]
    best, best_chosen, best_mean = None, (), -1
    for count in range(1, len(members) + 1):
        for chosen in itertools.combinations(range(len(members)), count):
            predicted = [sum(sums[i][split] for i in chosen).argmax(-1) for split in range(len(test))]
            values = numpy.array([100 * (one == truth).mean() for one, truth in zip(predicted, truths)])
            if values.mean() > best_mean:
                best, best_chosen, best_mean = values, chosen, values.mean()
    return best, best_chosen


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    members, before = [], None
    names = [os.path.basename(path) for path in sys.argv[1:]]
    print("| predictions | members | single | ensemble |\n| --- | --- | --- | --- |")
    for path, name in zip(sys.argv[1:], names):
        probabilities, labels, test = load(path)
        if members and members[0].shape[0] != probabilities.shape[0]:
            sys.exit(f"seed_ensembles.py: {path}: {probabilities.shape[0]} splits; the files before have {members[0].shape[0]}")
        if members and not (numpy.array_equal(labels, before[0]) and numpy.array_equal(test, before[1])):
            sys.exit(f"seed_ensembles.py: {path}: another graph or other splits than those of {sys.argv[1]}")
        before = labels, test
        members.append(probabilities)
        single = numpy.mean([accuracies(probabilities[:, s], labels, test) for s in range(probabilities.shape[1])], axis=0)
        print(f"| {name} | {probabilities.shape[1]} | {text(single)} | "
              f"{text(accuracies(probabilities.mean(1), labels, test))} |")
    if len(members) > 1:
        joined = numpy.concatenate(members, axis=1)
        print(f"| all | {joined.shape[1]} | | {text(accuracies(joined.mean(1), labels, test))} |")
    if 2 < len(members) <= MOST_FILES:
        values, chosen = best_combination(members, labels, test)
        print(f"| best on the test nodes: {', '.join(names[i] for i in chosen)} | {sum(members[i].shape[1] for i in chosen)} | | "
              f"{text(values)} |")


if __name__ == "__main__":
    main()
