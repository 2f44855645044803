#!/usr/bin/env python3
"""Scores of links beside each other: trainings of the program links with every score, dataset and seed; scores also with residual maps
(I plus what the sheaf learner says) and with features whose columns are scaled.

usage: link_scores.py FIGURES.json [--data FOLDER] [--epochs N] [--seeds N] [--program PATH]

FIGURES.json    the file that the figures are written to (docs/results/figures/links.json)
--data FOLDER   folder with texas.npz, cora.npz, … (docs/data.md, "Public graphs"); without: generated graphs alone
--program PATH  the program links (default: build/release/examples/links)

Of every training the file has the validation loss of its best epoch and the test ROC AUC.
"""
import argparse
import json
import pathlib
import re
import subprocess

SCORES = {"energy": [], "energy, residual maps": ["--sheaf-activation", "residual"],
          "energy, residual maps, columns": ["--sheaf-activation", "residual", "--feature-treatment", "columns"],
          "dot": [], "dot, columns": ["--feature-treatment", "columns"],
          "bilinear": [], "bilinear, columns": ["--feature-treatment", "columns"]}
GENERATED = ["planted-geometric", "planted-frames", "planted-diagonal", "planted-signed", "synthetic --synthetic-homophily 0.9",
             "synthetic --synthetic-homophily 0 --synthetic-class-cycle 1"]
PUBLIC = ["texas", "wisconsin", "cora", "citeseer"]


def train(options, dataset, score, seed):
    command = [options.program, "--dataset", *dataset, "--score", score.split(",")[0], *SCORES[score], "--epochs", options.epochs, "--seed",
               seed, "--threads", 1]
    done = subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout
    return [float(re.search(text + r" (\S+?),?\s", done)[1]) for text in ("validation loss", "ROC AUC")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--program", default="build/release/examples/links")
    options = parser.parse_args()
    figures = {"setting": {"epochs": options.epochs, "seeds": options.seeds}, "datasets": {}}
    datasets = {name: name.split() for name in GENERATED}
    if options.data:
        datasets |= {name: [options.data / f"{name}.npz"] for name in PUBLIC}
    for name, dataset in datasets.items():
        figures["datasets"][name] = of = {}
        for score in SCORES:
            rows = [train(options, dataset, score, seed) for seed in range(options.seeds)]
            of[score] = {key: [row[k] for row in rows] for k, key in enumerate(("validation_loss", "test_roc_auc"))}
            print(f"{name} {score}: {of[score]}", flush=True)
        options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
