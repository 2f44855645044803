#!/usr/bin/env python3
"""Test accuracy of single trainings and of their ensembles over the seeds.

usage: seed_ensembles.py FILE.npz...

FILE  the predictions file of `train --splits 0-9 --seeds 0-4 --predictions FILE.npz`: one setting, several splits and seeds

An ensemble predicts with the mean of its members' class probabilities. Mean ± standard deviation over the splits, in percent;
of single trainings the mean over the seeds is taken first. The last row has the members of all files. Needs numpy.
"""
import os
import sys

import numpy

from metrics import accuracy


def load(path):
    """Probabilities of a file, splits × seeds × nodes × classes; labels; test nodes of every split."""
    with numpy.load(path) as file:
        splits = sorted(set(file["split"]))
        of = [numpy.flatnonzero(file["split"] == split) for split in splits]
        if len({len(runs) for runs in of}) != 1:
            sys.exit(f"seed_ensembles.py: {path}: splits differ in their number of seeds")
        return file["probabilities"][numpy.stack(of)], file["labels"], [file["role"][runs[0]] == 3 for runs in of]


def accuracies(probabilities, labels, test):
    """Of splits × nodes × classes, one per split, in percent."""
    return numpy.array([100 * accuracy(p, labels, nodes) for p, nodes in zip(probabilities, test)])


def text(values):
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    members = []
    print("| predictions | members | single | ensemble |\n| --- | --- | --- | --- |")
    for path in sys.argv[1:]:
        probabilities, labels, test = load(path)
        if members and members[0].shape[0] != probabilities.shape[0]:
            sys.exit(f"seed_ensembles.py: {path}: {probabilities.shape[0]} splits; the files before have {members[0].shape[0]}")
        members.append(probabilities)
        single = numpy.mean([accuracies(probabilities[:, s], labels, test) for s in range(probabilities.shape[1])], axis=0)
        print(f"| {os.path.basename(path)} | {probabilities.shape[1]} | {text(single)} | "
              f"{text(accuracies(probabilities.mean(1), labels, test))} |")
    if len(members) > 1:
        joined = numpy.concatenate(members, axis=1)
        print(f"| all | {joined.shape[1]} | | {text(accuracies(joined.mean(1), labels, test))} |")


if __name__ == "__main__":
    main()
