#!/usr/bin/env python3
"""Compares what the uncertainty of Bayesian and of deterministic sheaf networks is worth; prints tables in Markdown.

usage: uncertainty_study.py compare FOLDER --data DATA [--datasets NAME,...] [--maps NAME,...] [--seeds 0-4]
       uncertainty_study.py sensitivity FOLDER --data DATA [--datasets NAME,...] [--settings N]
       uncertainty_study.py table FOLDER [--datasets NAME,...]

DATA    folder of NAME.npz files with ten splits
FOLDER  of the results: compare-NAME.json and sensitivity-NAME.csv. What is in them is not trained again, so that a
        study that was interrupted goes on; `table` prints the tables of what there is
--train PROGRAM   default: build/release/examples/train
--samples K       of the posterior, in compare (default: 3)
--leave-out C     class of compare that networks never see (default: the one of median size)
--grid FILE       of sensitivity; default: uncertainty_grid.json beside this program
--settings N      of sensitivity: only the first N of the grid's settings, shuffled with a fixed seed

compare      trains BSNN and NSD with the options of the preset, on every split with every seed. Single models are
             averaged over the seeds. The ensemble of NSD has all seeds as its members, the ensemble of BSNN as many as
             the processor time of NSD's buys. Both are trained once more without a class, whose test nodes are to be
             detected.
sensitivity  trains both with the same options on a grid, with exchanged masks: 32 % of the nodes to train, 20 % to
             validate, 48 % to test. A setting's figures are means over the splits; its pair of models is one
             observation.

p-values are of Wilcoxon's signed-rank test: of compare over the splits, which share nodes, so that they are too small;
of sensitivity over the settings. All figures are of test nodes, computed here from the class probabilities of
`train --predictions`. Accuracy, NLL, ECE and Brier score are checked against the report of train: a difference above
1e-5 ends the program.

Needs numpy, and scipy for the p-values.
"""
import argparse
import csv
import io
import itertools
import json
import os
import random
import sys
import tempfile

import numpy

from metrics import accuracy, auroc, bins_of, brier_score, negative_log_likelihood, read_arrays
import tune
from tune import Diverged, Failed, command_line, read_json, train_timed

FOLDER_OF_THIS = os.path.dirname(os.path.abspath(__file__))
ALPHA = 0.1
MEASURES = ["entropy", "epistemic_variance", "mutual_information"]
FAMILIES = ["diagonal", "special-orthogonal", "general-linear"]
PREDICTORS = ["nsd", "bsnn", "nsd_ensemble", "bsnn_ensemble"]
TITLES = {"nsd": "NSD", "bsnn": "BSNN", "nsd_ensemble": "NSD ensemble", "bsnn_ensemble": "BSNN ensemble"}
# Key, heading, factor, digits, and whether more (1) or less (-1) is better.
COLUMNS = [("accuracy", "accuracy", 100, 1, 1), ("nll", "NLL", 1, 3, -1), ("brier", "Brier", 1, 3, -1),
           ("ece", "ECE", 1, 3, -1), ("expected_ece", "calibrated", 1, 3, 0), ("debiased_ece", "debiased", 1, 3, -1),
           ("rejection", "rejection", 1, 3, 1), ("error_entropy", "wrong", 1, 3, 1),
           ("unseen_entropy", "unseen", 1, 3, 1), ("coverage", "coverage", 100, 1, 0),
           ("set_size", "set size", 1, 2, -1)]
SENSITIVITY = ["accuracy", "nll", "brier", "ece", "expected_ece", "debiased_ece", "rejection", "error_entropy"]


# --- Predictions ------------------------------------------------------------------------------------------------------

class Prediction:
    """Class probabilities (n × C) of a training and their uncertainty (n each), the roles of the nodes, the labels."""

    def __init__(self, split, probabilities, measures, role, labels):
        self.split, self.probabilities, self.measures, self.role, self.labels = \
            split, probabilities, measures, role, labels


def entropy(probabilities):
    p = numpy.maximum(probabilities, numpy.finfo(float).tiny)
    return -(p * numpy.log(p)).sum(-1)


def ensemble(members):
    """What the members say together; their samples are as many."""
    p = numpy.mean([m.probabilities for m in members], 0)
    h = entropy(p)
    within = numpy.mean([m.measures["entropy"] - m.measures["mutual_information"] for m in members], 0)
    between = numpy.var([m.probabilities for m in members], 0).mean(-1)
    measures = {"entropy": h, "mutual_information": numpy.maximum(h - within, 0),
                "epistemic_variance": between + numpy.mean([m.measures["epistemic_variance"] for m in members], 0)}
    return Prediction(members[0].split, p, measures, members[0].role, members[0].labels)


# --- Figures ----------------------------------------------------------------------------------------------------------

def absolute_deviation(p):
    """E|X − E X| of the number X of successes, whose probabilities are p."""
    mass = numpy.ones(1)
    for q in p:
        mass = numpy.append(mass * (1 - q), 0) + numpy.append(0, mass * q)
    return (mass * abs(numpy.arange(len(mass)) - p.sum())).sum()


def calibration(confidence, right):
    """ECE with bins (lo, hi] of equal width, and its mean for a calibrated model with these confidences."""
    bins = bins_of(confidence)
    error = expected = 0
    for b in numpy.unique(bins):
        of = bins == b
        error += abs((right[of] - confidence[of]).sum())
        expected += absolute_deviation(numpy.minimum(confidence[of], 1))
    return error / len(right), expected / len(right)


def rejection(uncertainty, right):
    """Area under the accuracy–rejection curve, ties averaged over their orders."""
    values, group = numpy.unique(-uncertainty, return_inverse=True)
    share = numpy.bincount(group, weights=right) / numpy.bincount(group)
    sorted_right = numpy.sort(group)
    rejected = share[sorted_right]  # of the k-th node to be rejected, in the mean
    left = len(right) - numpy.arange(len(right))
    return ((rejected.sum() - numpy.cumsum(rejected) + rejected) / left).mean()


def set_figures(prediction, validation, test):
    """Coverage and size of randomised adaptive sets, calibrated on the validation nodes."""
    p, labels = prediction.probabilities, prediction.labels
    share = numpy.random.default_rng(prediction.split).uniform(size=len(p))
    order = numpy.argsort(-p, axis=1, kind="stable")
    ranked = numpy.take_along_axis(p, order, 1)
    scores = numpy.empty_like(p)
    numpy.put_along_axis(scores, order, ranked.cumsum(1) - ranked + share[:, None] * ranked, 1)
    own = numpy.sort(scores[validation, labels[validation]])
    rank = int(numpy.ceil((len(own) + 1) * (1 - ALPHA) * (1 - 1e-14)))
    threshold = own[rank - 1] if rank <= len(own) else numpy.inf
    return (scores[test, labels[test]] <= threshold).mean(), (scores[test] <= threshold).sum(1).mean()


def figures(prediction):
    """Everything that is measured of a prediction, by name."""
    known = prediction.labels >= 0
    validation, test = ((prediction.role == role) & known for role in (2, 3))
    p, labels = prediction.probabilities[test], prediction.labels[test]
    right = (p.argmax(1) == labels).astype(float)
    r = {name: metric(prediction.probabilities, prediction.labels, test)
         for name, metric in (("accuracy", accuracy), ("nll", negative_log_likelihood), ("brier", brier_score))}
    r["ece"], r["expected_ece"] = calibration(p.max(1), right)
    r["debiased_ece"] = r["ece"] - r["expected_ece"]
    r["rejection"] = rejection(entropy(p), right)
    for name in MEASURES:
        values = prediction.measures[name][test]
        r["error_" + name] = auroc(values[right == 0], values[right == 1])
        r["right_" + name], r["wrong_" + name] = (values[right == k].mean() if (right == k).any() else None
                                                  for k in (1, 0))
    r["coverage"], r["set_size"] = set_figures(prediction, validation, test)
    return r


# --- Training ---------------------------------------------------------------------------------------------------------

class Trainings:
    """Trains and reads what was predicted: predictions, and the processor seconds of all trainings together."""

    def __init__(self, program, words):
        with tempfile.TemporaryDirectory() as folder:
            report, predictions = (os.path.join(folder, name) for name in ("report.json", "predictions.npz"))
            self.report, self.seconds = train_timed(program, [*words, "--threads", "1", "--predictions", predictions],
                                                    report)
            with numpy.load(predictions) as file:
                content = {key: file[key] for key in file.files}
        self.predictions = [Prediction(int(content["split"][i]), content["probabilities"][i],
                                       {name: content[name][i] for name in MEASURES}, content["role"][i],
                                       content["labels"]) for i in range(len(content["split"]))]
        self.figures = [figures(p) for p in self.predictions]
        for own, told in zip(self.figures, self.report["splits"]):
            for key, name in (("accuracy", "test_accuracy"), ("nll", "nll"), ("ece", "ece"), ("brier", "brier")):
                assert abs(own[key] - told[name]) < 1e-5, f"split {told['split']}: {name} {told[name]}, here {own[key]}"


def rounded(values):
    return [None if value is None else round(float(value), 6) for value in values]


def without_class(path, left_out, target):
    """Writes a dataset in which a class has no labels and no place in the splits. \\returns its test nodes, by split"""
    with numpy.load(path) as file:
        content = {key: file[key] for key in file.files}
    of_class = content["node_labels"] == left_out
    unseen = content["test_masks"].astype(bool) & of_class
    for key in ("train_masks", "val_masks", "test_masks"):
        content[key] = content[key].astype(bool) & ~of_class
    labels = content["node_labels"].astype(numpy.int64)
    content["node_labels"] = numpy.where(of_class, -1, labels - (labels > left_out))
    numpy.savez(target, **content)
    return unseen


def median_class(labels):
    counts = numpy.bincount(labels)
    return int(numpy.argsort(counts, kind="stable")[len(counts) // 2])


# --- compare ----------------------------------------------------------------------------------------------------------

def by_split(predictions):
    splits = {}
    for prediction in predictions:
        splits.setdefault(prediction.split, []).append(prediction)
    return [members for _, members in sorted(splits.items())]


def over_splits(groups, members, of):
    """of(prediction) → {name: number}, one per split: the mean over the seeds, or the figures of an ensemble."""
    rows = []
    for group in groups:
        each = [of(p) for p in group] if members is None else [of(ensemble(group[:members]))]
        rows.append({key: numpy.mean([e[key] for e in each if e[key] is not None])
                     if any(e[key] is not None for e in each) else None for key in each[0]})
    return {key: rounded([row[key] for row in rows]) for key in rows[0]}


def compare_family(arguments, dataset, maps, left_out):
    data = os.path.join(arguments.data, dataset + ".npz")
    common = ["--maps", maps, "--stalk-dim", "3", "--samples", str(arguments.samples), "--seeds", arguments.seeds]
    runs = {m: Trainings(arguments.train, ["--dataset", data, "--model", m, *common]) for m in ("nsd", "bsnn")}
    groups = {m: by_split(run.predictions) for m, run in runs.items()}
    count = len(groups["nsd"][0])
    affordable = max(1, min(count, int(count * runs["nsd"].seconds / runs["bsnn"].seconds)))
    members = {"nsd": None, "bsnn": None, "nsd_ensemble": count, "bsnn_ensemble": affordable}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, dataset + ".npz")
        unseen = without_class(data, left_out, path)
        blind = {m: by_split(Trainings(arguments.train, ["--dataset", path, "--model", m, *common]).predictions)
                 for m in ("nsd", "bsnn")}
    options = runs["bsnn"].report["options"]
    r = {"preset": runs["bsnn"].report["preset"],
         "options": {key: options[key] for key in ("stalk_dim", "channels", "layers", "epochs", "patience", "lr",
                                                   "weight_decay", "input_dropout", "dropout", "kl_weight", "samples")},
         "seeds": arguments.seeds, "left_out": left_out,
         "machine": runs["bsnn"].report["run"]["machine"], "commit": runs["bsnn"].report["run"]["commit"],
         "cpu_seconds": {m: round(run.seconds, 2) for m, run in runs.items()}, "predictors": {}}

    def detect(p):
        tested = (p.role == 3) & (p.labels >= 0)
        return {"unseen_" + name: auroc(p.measures[name][unseen[p.split]], p.measures[name][tested])
                for name in MEASURES}

    for name, size in members.items():
        model = name.split("_")[0]
        r["predictors"][name] = {"members": size or 1, **over_splits(groups[model], size, figures),
                                 **over_splits(blind[model], size, detect)}
    return r


def compare(arguments, dataset):
    path = os.path.join(arguments.folder, f"compare-{dataset}.json")
    content = read_json(path) if os.path.exists(path) else {}
    left_out = arguments.leave_out
    try:
        labels = read_arrays(os.path.join(arguments.data, dataset + ".npz"),
                             ("node_labels", "train_masks", "val_masks", "test_masks"))["node_labels"]
    except ValueError as error:
        sys.exit(f"uncertainty_study.py: {error}")
    labels = labels[labels >= 0]
    if left_out is None:
        left_out = median_class(labels)
    elif left_out not in labels:
        sys.exit(f"uncertainty_study.py: --leave-out: {dataset} has no node of class {left_out}")
    for maps in arguments.maps.split(","):
        if maps in content:
            wanted = {"seeds": arguments.seeds, "left_out": left_out, "samples": arguments.samples}
            stored = {"seeds": content[maps]["seeds"], "left_out": content[maps]["left_out"],
                      "samples": content[maps]["options"]["samples"]}
            for key, value in wanted.items():
                if str(stored[key]) != str(value):
                    sys.exit(f"uncertainty_study.py: {path}: {maps} was trained with {key} {stored[key]}, not {value}: "
                             "choose another folder")
        else:
            content[maps] = compare_family(arguments, dataset, maps, left_out)
            write(path, json.dumps(content, indent=1).replace("\n    ", " ") + "\n")
            print(f"{dataset} {maps}: {content[maps]['cpu_seconds']} s", file=sys.stderr, flush=True)


def p_value(one, other):
    """Of splits that both have; none where they do not differ."""
    known = [(a, b) for a, b in zip(one, other) if a is not None and b is not None]
    return None if all(round(a - b, 9) == 0 for a, b in known) else tune.p_value(*zip(*known))


def mean_and_deviation(values, factor, digits):
    known = [factor * v for v in values if v is not None]
    return f"{numpy.mean(known):.{digits}f} ± {numpy.std(known):.{digits}f}" if known else "–"


def print_compare(path, dataset):
    content = read_json(path)
    any_family = next(iter(content.values()))
    print(f"\n### {dataset}\n\nPreset {any_family['preset']}, class {any_family['left_out']} left out for the column "
          "unseen.\n")
    print("| maps | prediction | members | " + " | ".join(c[1] for c in COLUMNS) + " |\n"
          + "| --- " * (len(COLUMNS) + 3) + "|")
    for maps, family in content.items():
        for name in PREDICTORS:
            row = family["predictors"][name]
            cells = [mean_and_deviation(row[key], factor, digits) for key, _, factor, digits, _ in COLUMNS]
            print(f"| {maps} | {TITLES[name]} | {row['members']} | " + " | ".join(cells) + " |")
    print("\nMean difference BSNN − NSD and p; bold where BSNN is better, italic where it is worse, with p < 0.05:\n")
    judged = [c for c in COLUMNS if c[4]]
    print("| maps | who | " + " | ".join(c[1] for c in judged) + " |\n" + "| --- " * (len(judged) + 2) + "|")
    for maps, family in content.items():
        for who, mine, other in (("single", "bsnn", "nsd"), ("ensembles, equal cost", "bsnn_ensemble", "nsd_ensemble")):
            cells = [difference(family["predictors"][mine][key], family["predictors"][other][key], factor, digits, sign)
                     for key, _, factor, digits, sign in judged]
            print(f"| {maps} | {who} | " + " | ".join(cells) + " |")
    print("\nDetection of wrong predictions and of the unseen class, AUROC by measure:\n")
    print("| maps | prediction | " + " | ".join(f"{what}: {m.replace('_', ' ')}" for what in ("wrong", "unseen")
                                              for m in MEASURES) + " |\n" + "| --- " * 8 + "|")
    for maps, family in content.items():
        for name in PREDICTORS:
            row = family["predictors"][name]
            keys = [f"{what}_{m}" for what in ("error", "unseen") for m in MEASURES]
            cells = ["–" if name == "nsd" and not key.endswith("_entropy") else mean_and_deviation(row[key], 1, 3)
                     for key in keys]
            print(f"| {maps} | {TITLES[name]} | " + " | ".join(cells) + " |")


def difference(mine, other, factor, digits, sign):
    """The mean of the differences and its p-value, marked by who is better."""
    known = [factor * (a - b) for a, b in zip(mine, other) if a is not None and b is not None]
    p = p_value(mine, other)
    if p is None:
        return "0" if known else "–"
    text = f"{numpy.mean(known):+.{digits}f}, {p:.3f}" if p >= 0.001 else f"{numpy.mean(known):+.{digits}f}, {p:.0e}"
    if p >= 0.05:
        return text
    return f"**{text}**" if sign * numpy.mean(known) > 0 else f"*{text}*"


# --- sensitivity ------------------------------------------------------------------------------------------------------

def settings_of(grid):
    """All combinations, in an order that does not depend on how many of them are trained."""
    names = list(grid)
    all_settings = [dict(zip(names, values)) for values in itertools.product(*grid.values())]
    random.Random(0).shuffle(all_settings)
    return all_settings


def sensitivity(arguments, dataset):
    content = read_json(arguments.grid)
    path = os.path.join(arguments.folder, f"sensitivity-{dataset}.csv")
    names = list(content["grid"])
    settings = settings_of(content["grid"])[:arguments.settings]
    rows = read_csv(path) if os.path.exists(path) else []
    done = {tuple(row[name[2:]] for name in names) + (row["model"],) for row in rows}
    columns = [name[2:] for name in names] + ["model", "cpu_seconds"] + SENSITIVITY
    for setting in settings:
        for model in ("nsd", "bsnn"):
            key = tuple(str(v) for v in setting.values()) + (model,)
            if key in done:
                continue
            words = command_line({**content["fixed"], **setting, "--model": model})
            run = Trainings(arguments.train, ["--dataset", os.path.join(arguments.data, dataset + ".npz"), *words])
            means = [numpy.mean([f[name] for f in run.figures if f[name] is not None]) for name in SENSITIVITY]
            rows.append(dict(zip(columns, [*key, f"{run.seconds:.2f}", *(f"{m:.5f}" for m in means)])))
            write_csv(path, columns, rows)


def print_sensitivity(path, dataset):
    rows = read_csv(path)
    if not rows:
        return
    names = list(rows[0])[:list(rows[0]).index("model")]
    pairs = {}
    for row in rows:
        pairs.setdefault(tuple(row[name] for name in names), {})[row["model"]] = row
    pairs = [pair for pair in pairs.values() if len(pair) == 2]
    print(f"\n### {dataset}, limited data\n\n{len(pairs)} settings of the grid.\n")
    columns = [c for c in COLUMNS if c[0] in SENSITIVITY]
    print("| maps | model | settings | " + " | ".join(c[1] for c in columns) + " |\n"
          + "| --- " * (len(columns) + 3) + "|")
    for maps in ["all", *FAMILIES]:
        of = [pair for pair in pairs if maps in ("all", pair["nsd"]["maps"])]
        if maps != "all" and len(of) < 6:  # no p-value could be below 0.05
            continue
        values = {m: {c[0]: [float(pair[m][c[0]]) for pair in of] for c in columns} for m in ("nsd", "bsnn")}
        for m in ("nsd", "bsnn"):
            print(f"| {maps} | {TITLES[m]} | {len(of)} | "
                  + " | ".join(mean_and_deviation(values[m][key], factor, digits)
                               for key, _, factor, digits, _ in columns) + " |")
        print(f"| {maps} | difference, p | {len(of)} | "
              + " | ".join(difference(values["bsnn"][key], values["nsd"][key], factor, digits, sign) if sign else ""
                           for key, _, factor, digits, sign in columns) + " |")


# --- Files and the command line ---------------------------------------------------------------------------------------

def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            sys.exit(f"uncertainty_study.py: {path}: line {number} has not as many columns as the first")
    return rows


def write_csv(path, columns, rows):
    text = io.StringIO(newline="")
    out = csv.DictWriter(text, columns)
    out.writeheader()
    out.writerows(rows)
    write(path, text.getvalue())


def write(path, text):
    with open(path + ".tmp", "w", newline="", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser(usage=__doc__[__doc__.index("usage:") + 7:], add_help=True)
    parser.add_argument("what", choices=["compare", "sensitivity", "table"])
    parser.add_argument("folder")
    parser.add_argument("--data")
    parser.add_argument("--datasets", default="texas,wisconsin,cora")
    parser.add_argument("--maps", default=",".join(FAMILIES))
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--leave-out", type=int)
    parser.add_argument("--settings", type=int)
    parser.add_argument("--train", default=os.path.join(FOLDER_OF_THIS, "..", "build", "release", "examples", "train"))
    parser.add_argument("--grid", default=os.path.join(FOLDER_OF_THIS, "uncertainty_grid.json"))
    arguments = parser.parse_args()
    datasets = arguments.datasets.split(",")
    if arguments.what == "table" and not os.path.isdir(arguments.folder):
        sys.exit(f"uncertainty_study.py: {arguments.folder} is not a folder")
    if arguments.what == "sensitivity" and not os.path.exists(arguments.grid):
        sys.exit(f"uncertainty_study.py: --grid: {arguments.grid} does not exist")
    if arguments.what != "table":
        if arguments.data is None:
            sys.exit("uncertainty_study.py: --data is missing: the folder of the .npz files")
        if not os.access(arguments.train, os.X_OK):
            sys.exit(f"uncertainty_study.py: --train: {arguments.train} is not an executable file")
        for dataset in datasets:
            path = os.path.join(arguments.data, dataset + ".npz")
            if not os.path.exists(path):
                sys.exit(f"uncertainty_study.py: --datasets: {path} does not exist")
        os.makedirs(arguments.folder, exist_ok=True)
        for dataset in datasets:
            try:
                (compare if arguments.what == "compare" else sensitivity)(arguments, dataset)
            except (Failed, Diverged) as error:
                sys.exit(f"uncertainty_study.py: {error}")
    for kind, print_table, suffix in (("compare", print_compare, "json"), ("sensitivity", print_sensitivity, "csv")):
        for dataset in datasets:
            path = os.path.join(arguments.folder, f"{kind}-{dataset}.{suffix}")
            if arguments.what in (kind, "table") and os.path.exists(path):
                print_table(path, dataset)


if __name__ == "__main__":
    main()
