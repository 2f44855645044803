#!/usr/bin/env python3
"""The table "planted sheaves": what do learned sheaves recover, and what are they worth?

usage: planted.py PROGRAM [--tasks NAME,...] [--nodes 500,2000,10000] [--seeds 0-9] [--networks NAME,...]
                  [--baselines mlp,gcn,gat] [--jobs N] [--json FILE] [-- OPTIONS of PROGRAM]

PROGRAM     planted_sheaves (benchmarks/planted.cpp); `PROGRAM --help` lists its options
--tasks     of TASKS below, each with its spread and settings: frames, frames-wide, unreliable, …
--networks  the networks of PROGRAM; expected and predictive belong to unreliable relations only
--baselines networks of PyTorch Geometric (baselines.py), two layers of 64 channels, rate 0.01, no dropout, at most 300
            epochs with patience 100; weight decay 5e-4 or 5e-3 by the validation loss; none: none
--json      all figures; what is in it already is not computed again

Prints a table in Markdown, means over the seeds, where every seed is a task, a split and the initial weights.
The baselines need torch and torch_geometric and are left out without.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

TASKS = {
    "frames": ["--task", "frames", "--spread", "0.5"],
    "frames-wide": ["--task", "frames", "--spread", "1"],
    "unreliable": ["--task", "unreliable", "--spread", "0.5"],
    "unreliable-calibrated": ["--task", "unreliable", "--spread", "0.5", "--sheaf-decays", "0.01",
                              "--predictive-kl-weights", "0.015"],
    "unreliable-wide": ["--task", "unreliable", "--spread", "1"],
    "general-linear": ["--task", "general-linear", "--spread", "0.5", "--sheaf-activation", "exponential"],
    "general-linear-wide": ["--task", "general-linear", "--spread", "1", "--sheaf-activation", "exponential"],
    "diagonal": ["--task", "diagonal", "--spread", "1"],
    "geometric": ["--task", "geometric", "--channels", "64", "--learner-layers", "1", "--learner-width", "64", "--decays", "0.01"],
    "frames-curved": ["--task", "frames", "--spread", "0.5", "--curvature", "1", "--channels", "32", "--learner-layers", "1",
                      "--learner-width", "64", "--decays", "0.01"],
    "frames-drawn": ["--task", "frames", "--spread", "1", "--degree", "2", "--neighbour-share", "1"],
    "signed": ["--task", "signed", "--sheaf-activation", "residual", "--learner-layers", "1"],
}
BASELINES = {"--lr": 0.01, "--epochs": 300, "--patience": 100, "--stop-on": "loss", "--channels": 64, "--layers": 2,
             "--input-dropout": 0.0, "--dropout": 0.0, "--layer-norm": False, "--jk": None, "--v2": False, "--heads": 1,
             "--no-normalise-features": True}
DECAYS = (5e-4, 5e-3)
OF_UNRELIABLE = ("expected", "predictive")  # networks that other tasks are not given to
# Columns: title, key of the report, format, factor.
COLUMNS = [("accuracy", "accuracy", "{:.1f}", 100), ("of given", "share_of_given", "{:.0f} %", 100),
           ("NLL", "nll", "{:.3f}", 1), ("transports", "transport_error", "{:.1f}°", 1),
           ("cycles", "holonomy_error", "{:.1f}°", 1), ("signs", "right_signs", "{:.1f} %", 100),
           ("rank", "rank_correlation", "{:.2f}", 1), ("coverage", "coverage", "{:.0f} %", 100),
           ("permuted", "permuted_rise", "{:.2f}", 1)]


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def baseline_rows(program, options, networks, seeds):
    """One row per network and seed, as planted_sheaves has them."""
    import baselines
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            path = str(pathlib.Path(folder) / f"{seed}.npz")
            subprocess.run([program, *options, "--networks", "none", "--seeds", str(seed), "--export", path], check=True)
            for network in networks:
                runs = [baselines.train({**BASELINES, "--dataset": path, "--model": network, "--weight-decay": decay}, 0,
                                        seed)[0] for decay in DECAYS]
                best = min(runs, key=lambda run: run["validation_loss"])
                rows.append({"network": network, "seed": seed, "accuracy": best["test_accuracy"], "nll": best["nll"]})
    return rows


def rows_of(arguments, name, nodes, networks):
    """Of one task and size."""
    options = [*TASKS[name], "--nodes", str(nodes), *arguments.options]
    rows = []
    if networks:
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            subprocess.run([arguments.program, *options, "--networks", ",".join(networks), "--seeds", arguments.seeds,
                            "--threads", str(arguments.jobs), "--report", str(report)], check=True,
                           stdout=subprocess.DEVNULL)
            rows += json.loads(report.read_text())["runs"]
    if arguments.baselines:
        rows += baseline_rows(arguments.program, options, arguments.baselines, seeds_of(arguments.seeds))
    given = {row["seed"]: row["accuracy"] for row in rows if row["network"] == "given"}
    for row in rows:
        if row["seed"] in given:
            row["share_of_given"] = row["accuracy"] / given[row["seed"]]
    return rows


def cell(rows, key, form, factor):
    values = [factor * row[key] for row in rows if row.get(key) is not None and math.isfinite(row[key])]
    return form.format(statistics.fmean(values)) if values else ""


def print_table(results):
    titles = ["task", "nodes", "network", *(title for title, *_ in COLUMNS)]
    print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    for (name, nodes), rows in results.items():
        for network in dict.fromkeys(row["network"] for row in rows):
            own = [row for row in rows if row["network"] == network]
            print("| " + " | ".join([name, str(nodes), network, *(cell(own, *column) for _, *column in COLUMNS)]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], add_help=True)
    words = lambda text: [] if text == "none" else text.split(",")
    parser.add_argument("program")
    parser.add_argument("--tasks", type=words, default=list(TASKS))
    parser.add_argument("--nodes", type=lambda text: [int(n) for n in text.split(",")], default=[500, 2000, 10000])
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--networks", type=words,
                        default=["given", "expected", "nsd", "bsnn", "predictive", "identity", "csnn"])
    parser.add_argument("--baselines", type=words, default=["mlp", "gcn", "gat"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json")
    arguments, arguments.options = parser.parse_known_args()
    arguments.options = [option for option in arguments.options if option != "--"]
    for name in arguments.tasks:
        if name not in TASKS:
            parser.error(f"--tasks: no task {name}; choose from {', '.join(TASKS)}")
    if arguments.baselines:
        try:
            import torch_geometric  # noqa: F401
        except ImportError:
            print("planted.py: without torch_geometric there are no baselines", file=sys.stderr)
            arguments.baselines = []
    store = pathlib.Path(arguments.json) if arguments.json else None
    known = json.loads(store.read_text()) if store and store.exists() else {}
    results = {}
    for name in arguments.tasks:
        for nodes in arguments.nodes:
            networks = [n for n in arguments.networks if n not in OF_UNRELIABLE or name.startswith("unreliable")]
            key = " ".join([name, str(nodes), arguments.seeds, *networks, *arguments.baselines, *arguments.options])
            if key not in known:
                known[key] = rows_of(arguments, name, nodes, networks)
                if store:
                    store.write_text(json.dumps(known, indent=1))
            results[name, nodes] = known[key]
    print_table(results)


if __name__ == "__main__":
    main()
