#!/usr/bin/env python3
"""Test accuracies of the authors' PyTorch code with the settings of its own scripts, beside this library's with the same.

usage: authors_results.py NSD BSNN POLYNSD DATA OUTPUT [--train PROGRAM] [--only NAME,...] [--folds N] [--seeds 0-2]

NSD, BSNN, POLYNSD  checkouts, see authors_code.py and authors_networks.py
DATA    folder of NAME.npz files with ten splits
OUTPUT  a JSON file; cells that it has already are not trained again
--train PROGRAM  default: build/release/examples/train

Theirs: run_exp() of exp/run.py, unchanged, their seed, on the splits of the .npz file; of POLYNSD, whose run_exp() wants
further packages, its classes in the loop of NSD's run_exp() with its rate of the maps. What it reports is the test
accuracy in the epoch with the best validation figure. Ours: `train` with the same options and several seeds.

No setting of the BSNN paper is published but the grid of its study; its rows have the settings of NSD's scripts, and of
that grid what those lack: the KL term, three samples.

The interpreter needs what authors_code.py needs.
"""
import argparse
import json
import os
import subprocess
import sys
import time
import types

from authors_code import load, provide_missing

# Options of exp/run.py in the scripts of the checkouts (exp/scripts/run_NAME.sh).
TEXAS = {"d": 3, "layers": 4, "hidden_channels": 20, "lr": 0.02, "weight_decay": 5e-3, "input_dropout": 0.0, "dropout": 0.7,
         "sparse_learner": True}
WISCONSIN = {"add_hp": True, "add_lp": True, "d": 3, "dropout": 0.7276458263736642, "early_stopping": 200, "epochs": 500,
             "hidden_channels": 32, "input_dropout": 0.0, "layers": 2, "lr": 0.02, "weight_decay": 0.0006685729356079199}
CORNELL = {"add_lp": True, "d": 4, "dropout": 0.7, "early_stopping": 200, "epochs": 500, "hidden_channels": 16,
           "input_dropout": 0.2, "layers": 2, "lr": 0.02, "sheaf_decay": 0.00031764232712732976,
           "weight_decay": 0.0006914841722570725}
CITATION = {"add_lp": True, "d": 4, "dropout": 0.0, "early_stopping": 100, "epochs": 1000, "hidden_channels": 32,
            "input_dropout": 0.7, "layers": 5, "lr": 0.01, "second_linear": True, "sheaf_decay": 0.0012638885974822734,
            "weight_decay": 0.0002969905682317406, "stop_strategy": "acc"}
BAYESIAN = {"use_kl": True, "num_ensemble": 3}
POLYNOMIAL = {"polynomial_type": "ChebyshevType1", "poly_layers_K": 3, "maps_lr": 0.005}
# name: checkout, graph, --model of exp/run.py, class, options
CELLS = {
    "nsd texas": ("nsd", "texas", "BundleSheaf", "DiscreteBundleSheafDiffusion", TEXAS),
    "nsd wisconsin": ("nsd", "wisconsin", "BundleSheaf", "DiscreteBundleSheafDiffusion", WISCONSIN),
    "nsd cornell": ("nsd", "cornell", "DiagSheaf", "DiscreteDiagSheafDiffusion", CORNELL),
    "bsnn texas": ("bsnn", "texas", "BayesBundleSheaf", "BayesBundleSheafDiffusion", {**TEXAS, **BAYESIAN}),
    "bsnn wisconsin": ("bsnn", "wisconsin", "BayesBundleSheaf", "BayesBundleSheafDiffusion", {**WISCONSIN, **BAYESIAN}),
    "bsnn cornell": ("bsnn", "cornell", "BayesDiagSheaf", "BayesDiagSheafDiffusion", {**CORNELL, **BAYESIAN}),
    "polynsd texas": ("polynsd", "texas", "DiagSheafPolynomial", "DiscreteDiagSheafDiffusionPolynomial",
                      {**TEXAS, **POLYNOMIAL}),
    "nsd cora": ("nsd", "cora", "BundleSheaf", "DiscreteBundleSheafDiffusion", CITATION),
    "nsd citeseer": ("nsd", "citeseer", "DiagSheaf", "DiscreteDiagSheafDiffusion", CITATION),
}
DEFAULTS = {"epochs": 1500, "early_stopping": 200, "stop_strategy": "loss", "add_lp": False, "add_hp": False, "seed": 43,
            "second_linear": False, "sparse_learner": False}


def our_options(checkout, model, options):
    """The options of train that mean the same."""
    o = {**DEFAULTS, **options}
    maps = "diagonal" if "Diag" in model else "special-orthogonal" if "Bundle" in model else "general-linear"
    words = ["--preset", "none", "--model", "bsnn" if checkout == "bsnn" else "nsd", "--maps", maps, "--stalk-dim", o["d"],
             "--layers", o["layers"], "--channels", o["hidden_channels"], "--lr", o["lr"], "--weight-decay", o["weight_decay"],
             "--sheaf-decay", o.get("sheaf_decay", o["weight_decay"]), "--input-dropout", o["input_dropout"],
             "--dropout", o["dropout"], "--epochs", o["epochs"], "--patience", o["early_stopping"],
             "--stop-on", "accuracy" if o["stop_strategy"] == "acc" else "loss"]
    for theirs, ours in (("add_lp", "--add-lp"), ("add_hp", "--add-hp"), ("second_linear", "--second-linear")):
        if o[theirs]:
            words.append(ours)
    if o["sparse_learner"]:
        words += ["--learner", "summed-published"]
    if "polynomial_type" in o:
        words += ["--filter", "chebyshev", "--degree", o["poly_layers_K"], "--sheaf-lr", o["maps_lr"]]
    return [str(word) for word in words]


def their_arguments(run, cell, data):
    checkout, graph, model, _, options = CELLS[cell]
    words = ["--model", model.removesuffix("Polynomial"), "--dataset", graph]
    known = {action.dest for action in run.get_parser()._actions}  # those of POLYNSD are not in NSD's parser
    for key, value in options.items():
        if key in known:
            words += ["--" + key, str(value)]
    import torch
    arguments = vars(run.get_parser().parse_args(words))
    arguments.update({key: value for key, value in options.items() if key not in known})
    arguments.update(bayes_model=checkout == "bsnn", graph_size=data.x.size(0), input_dim=data.x.size(1),
                     output_dim=int(data.y.max()) + 1, device=torch.device("cpu"), permute_masks=False, use_epsilons=True)
    if arguments["sheaf_decay"] is None:
        arguments["sheaf_decay"] = arguments["weight_decay"]
    return arguments


def train_theirs(options, cell, folds):
    """[test, validation] accuracy of every fold, in this process."""
    import random
    import numpy
    import torch
    torch.set_num_threads(1)
    provide_missing()
    checkout, graph, _, network, _ = CELLS[cell]
    path = os.path.join(os.path.abspath(options.data), graph + ".npz")
    data = load(path)
    masks = numpy.load(path)
    # The loop of exp/run.py belongs to NSD where the networks are POLYNSD's.
    folder = os.path.abspath(getattr(options, "nsd" if checkout == "polynsd" else checkout))
    wandb = types.ModuleType("wandb")
    wandb.log = lambda *_, **__: None
    sys.modules["wandb"] = wandb
    sys.argv = ["run.py"]
    if checkout == "polynsd":
        polynomial = os.path.abspath(options.polynsd)
        sys.path.insert(0, polynomial)
        os.chdir(polynomial)
        import models.disc_models as networks
        model_class = getattr(networks, network)
        for name in [name for name in sys.modules if name.split(".")[0] in ("models", "lib", "exp", "utils", "definitions")]:
            del sys.modules[name]
        sys.path.remove(polynomial)
    sys.path.insert(0, folder)
    os.chdir(folder)
    import exp.run as run
    if checkout != "polynsd":
        model_class = getattr(run, network)
    arguments = their_arguments(run, cell, data)

    def fixed_splits(graph_data, _name, fold, *_):
        for part in ("train", "val", "test"):
            graph_data[part + "_mask"] = torch.tensor(masks[part + "_masks"][fold], dtype=torch.bool)
        return graph_data

    run.get_fixed_splits = fixed_splits
    if "maps_lr" in arguments:  # two rates: the maps are the first group of parameters
        adam = torch.optim.Adam

        def with_rate(groups, lr):
            groups[0]["lr"] = arguments["maps_lr"]
            return adam(groups, lr=lr)

        run.torch = types.SimpleNamespace(**{**vars(torch), "optim": types.SimpleNamespace(Adam=with_rate)})
        arguments["model"] = "ODE"  # leaves out the printing of weights that the filters do not have
    torch.manual_seed(arguments["seed"])
    numpy.random.seed(arguments["seed"])
    random.seed(arguments["seed"])
    return [list(run.run_exp(arguments, [data], model_class, fold)[:2]) for fold in folds]


def train_ours(options, cell):
    checkout, graph, model, _, settings = CELLS[cell]
    report = options.output + ".report"
    command = [options.train, "--dataset", os.path.join(options.data, graph + ".npz"), *our_options(checkout, model, settings),
               "--splits", f"0-{options.folds - 1}", "--seeds", options.seeds, "--parallel", "splits", "--report", report]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"authors_results.py: {' '.join(command)}: {done.stderr}")
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    os.remove(report)
    return {"command": " ".join(["train", "--dataset", graph + ".npz", *command[3:-2]]),
            "test": [[s["split"], s["seed"], s["test_accuracy"]] for s in result["splits"]],
            "seconds": result["run"]["seconds"]}


def their_cell(options, cell):
    """train_theirs() in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), options.nsd, options.bsnn, options.polynsd, options.data,
               options.output, "--folds", str(options.folds), "--cell", cell]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"))
    if done.returncode != 0:
        sys.exit(f"authors_results.py: {cell}:\n{done.stderr[-2000:]}")
    return {"test": [pair[0] for pair in json.loads(done.stdout.splitlines()[-1])], "seconds": time.monotonic() - start}


def mean_and_deviation(values):
    import statistics
    return f"{100 * statistics.fmean(values):.1f} ± {100 * statistics.stdev(values):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("nsd", "bsnn", "polynsd", "data", "output"):
        parser.add_argument(name)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--train", default=os.path.join(here, "..", "build", "release", "examples", "train"))
    parser.add_argument("--only", default=",".join(CELLS))
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(train_theirs(options, options.cell, range(options.folds))))
        return
    results = {}
    if os.path.exists(options.output):
        with open(options.output, encoding="utf-8") as file:
            results = json.load(file)
    for cell in options.only.split(","):
        if cell not in CELLS:
            sys.exit(f"authors_results.py: --only: no cell '{cell}'; choose {', '.join(CELLS)}")
        if cell not in results:
            results[cell] = {"theirs": their_cell(options, cell), "ours": train_ours(options, cell)}
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
                file.write("\n")
    print("| setting of | the authors' code | this library | seconds, theirs (one seed) | ours |\n| --- | --- | --- | --- | --- |")
    for cell, result in results.items():
        seeds = len({seed for _, seed, _ in result["ours"]["test"]})
        print(f"| {cell} | {mean_and_deviation(result['theirs']['test'])} | "
              f"{mean_and_deviation([value for _, _, value in result['ours']['test']])} | "
              f"{result['theirs']['seconds']:.0f} | {result['ours']['seconds']:.0f} ({seeds} seeds) |")


if __name__ == "__main__":
    main()
