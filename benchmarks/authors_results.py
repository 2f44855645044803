#!/usr/bin/env python3
"""Test accuracies of the authors' PyTorch code with the settings of its own scripts, beside this library's with the same.

usage: authors_results.py NSD BSNN POLYNSD CSNN DATA OUTPUT [--train PROGRAM] [--only NAME,...] [--folds 0-9]
                          [--seeds 0-2] [--protocol [--jobs N]] [--device DEVICE]

NSD, BSNN, POLYNSD, CSNN  checkouts, see authors_code.py and authors_networks.py
DATA    folder of NAME.npz files with ten splits
OUTPUT  a JSON file; what it has already is not trained again
--train PROGRAM  default: build/release/examples/train
--protocol  trains both as this library's tables are made: every seed, with both stopping rules
--jobs N  trainings side by side (default 1)
--device DEVICE  theirs only: cpu (default) or cuda

Theirs: run_exp() of exp/run.py, unchanged, their seed, on the splits of the .npz file; of POLYNSD, whose run_exp() wants
further packages, its classes in the loop of NSD's run_exp() with its rate of the maps. What it reports is the test
accuracy in the epoch with the best validation figure. Of CSNN the loop of its example.ipynb, which reports ROC AUC, with
the network compiled by torch.compile on the CPU, and seed 0. Ours: `train` with the same options and several seeds.

With --protocol their loops go on until both rules of `train` have stopped: the smallest validation loss, and the
largest validation accuracy (ROC AUC), among equals with the smallest loss. Every training begins with its own seed.
In the output `protocol` has [split, seed, epochs, test figure by their rule, by loss, by accuracy] of every training of
theirs, `ours_by` the reports of `train` with either rule.

The authors of BSNN publish the grid of a study and a script for cora, which is not among the rows; these have the settings of
NSD's scripts, and what those scripts lack from the grid: the KL term, three samples. CSNN has the setting of its release script for
minesweeper; beside it
its first 900 epochs.

The interpreter needs what authors_code.py needs, scipy for p, and scikit-learn for CSNN.
"""
import argparse
import contextlib
import functools
import io
import json
import multiprocessing
import os
import subprocess
import sys
import time
import types

from authors_code import load, provide_missing
from tune import numbers_of, p_value, write_json

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
MINESWEEPER = {"epochs": 2000, "early_stopping": 2000, "lr": 0.002, "weight_decay": 1e-7, "hidden_channels": 32, "layers": 5,
               "stop_strategy": "acc",
               "network": {"stalk_dimension": 3, "input_dropout": 0.2, "dropout": 0.2, "norm": "LayerNorm",
                           "left_weights": False, "gnn_layers": 5, "gnn_hidden": 64, "gnn_default": 2}}
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
    "csnn minesweeper": ("csnn", "minesweeper", "CSNN", "CSNN", MINESWEEPER),
    "csnn minesweeper 900": ("csnn", "minesweeper", "CSNN", "CSNN", {**MINESWEEPER, "epochs": 900, "early_stopping": 900}),
}
DEFAULTS = {"epochs": 1500, "early_stopping": 200, "stop_strategy": "loss", "add_lp": False, "add_hp": False, "seed": 43,
            "second_linear": False, "sparse_learner": False}


class Finished(Exception):
    """Every rule has stopped the training."""


class Trace:
    """The epochs of a training, watched by several stopping rules at once."""

    def __init__(self, own, patience):
        loss = lambda figure, loss: (loss,)
        # What a rule compares, the smallest first; own: "loss" or "acc", the rule of their program.
        self.rules = {"reported": loss if own == "loss" else lambda figure, loss: (-figure,), "loss": loss,
                      "accuracy": lambda figure, loss: (-figure, loss)}
        self.patience = patience
        self.best = {}  # rule: what it compares, epoch, test figure
        self.epochs = 0

    def add(self, figure, loss, test):
        """An epoch's validation figure and loss, and its test figure. Throws Finished after the last one."""
        for rule, compared in self.rules.items():
            key = compared(figure, loss)
            if rule not in self.best or (self.running(rule) and key < self.best[rule][0]):
                self.best[rule] = (key, self.epochs, test)
        self.epochs += 1
        if not any(self.running(rule) for rule in self.rules):
            raise Finished

    def running(self, rule):
        return self.epochs - self.best[rule][1] <= self.patience

    def row(self):
        return [self.epochs, *(self.best[rule][2] for rule in self.rules)]


def own_rule(cell):
    """The stopping rule of a cell's setting, by its name in train."""
    return "accuracy" if {**DEFAULTS, **CELLS[cell][4]}["stop_strategy"] == "acc" else "loss"


def our_options(checkout, model, options, rule):
    """The options of train that mean the same, with a stopping rule."""
    if checkout == "csnn":
        return ["--model", "csnn", "--preset", "large", "--epochs", str(options["epochs"]), "--patience",
                str(options["early_stopping"]), "--stop-on", "loss" if rule == "loss" else "roc-auc", "--sheaf-lr", "0"]
    o = {**DEFAULTS, **options}
    maps = "diagonal" if "Diag" in model else "special-orthogonal" if "Bundle" in model else "general-linear"
    words = ["--preset", "none", "--model", "bsnn" if checkout == "bsnn" else "nsd", "--maps", maps, "--stalk-dim", o["d"],
             "--layers", o["layers"], "--channels", o["hidden_channels"], "--lr", o["lr"], "--weight-decay", o["weight_decay"],
             "--sheaf-decay", o.get("sheaf_decay", o["weight_decay"]), "--input-dropout", o["input_dropout"],
             "--dropout", o["dropout"], "--epochs", o["epochs"], "--patience", o["early_stopping"],
             "--stop-on", rule, "--sheaf-lr", o.get("maps_lr", 0)]
    if maps == "special-orthogonal":
        words += ["--parametrisation", "householder", "--sheaf-activation", "tanh"]
    for theirs, ours in (("add_lp", "--add-lp"), ("add_hp", "--add-hp"), ("second_linear", "--second-linear")):
        if o[theirs]:
            words.append(ours)
    if checkout == "bsnn":
        words += ["--spread", "published", "--kl-weight", 1]
    if o["sparse_learner"]:
        words += ["--learner", "summed-published"]
    if "polynomial_type" in o:
        words += ["--filter", "chebyshev", "--degree", o["poly_layers_K"]]
    return [str(word) for word in words]


def their_arguments(run, cell, data, device):
    checkout, graph, model, _, options = CELLS[cell]
    words = ["--model", model.removesuffix("Polynomial"), "--dataset", graph]
    known = {action.dest for action in run.get_parser()._actions}  # NSD's parser lacks options of POLYNSD
    for key, value in options.items():
        if key in known:
            words += ["--" + key, str(value)]
    import torch
    arguments = vars(run.get_parser().parse_args(words))
    arguments.update({key: value for key, value in options.items() if key not in known})
    arguments.update(bayes_model=checkout == "bsnn", graph_size=data.x.size(0), input_dim=data.x.size(1),
                     output_dim=int(data.y.max()) + 1, device=torch.device(device), permute_masks=False, use_epsilons=True)
    if arguments["sheaf_decay"] is None:
        arguments["sheaf_decay"] = arguments["weight_decay"]
    return arguments


def data_of(options, cell, **how):
    """The graph of a cell, and a function that sets the masks of a split in it. PyTorch has one thread from here on."""
    import numpy
    import torch
    torch.set_num_threads(1)
    provide_missing()
    path = os.path.join(os.path.abspath(options.data), CELLS[cell][1] + ".npz")
    with numpy.load(path) as file:
        masks = {part + "_mask": torch.tensor(file[part + "_masks"], dtype=torch.bool, device=options.device)
                 for part in ("train", "val", "test")}

    def set_split(graph_data, fold):
        for name, of_splits in masks.items():
            graph_data[name] = of_splits[fold]
        return graph_data

    return load(path, options.device, **how), set_split


def prepare(options, cell):
    """exp/run.py, its arguments, the data and the class of a cell, in this process."""
    import torch
    checkout, _, _, network, _ = CELLS[cell]
    data, set_split = data_of(options, cell)
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
    arguments = their_arguments(run, cell, data, options.device)
    run.get_fixed_splits = lambda graph_data, _name, fold, *_: set_split(graph_data, fold)
    if "maps_lr" in arguments:  # two rates: the maps are the first group of parameters
        adam = torch.optim.Adam

        def with_rate(groups, lr):
            groups[0]["lr"] = arguments["maps_lr"]
            return adam(groups, lr=lr)

        run.torch = types.SimpleNamespace(**{**vars(torch), "optim": types.SimpleNamespace(Adam=with_rate)})
        arguments["model"] = "ODE"  # leaves out the printing of weights that the filters do not have
    return run, arguments, data, model_class


def seed_all(seed):
    import random
    import numpy
    import torch
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)


def train_theirs(options, cell, folds):
    """Test accuracy of every fold as run_exp() reports it, in this process."""
    if CELLS[cell][0] == "csnn":
        return [cooperative_training(options, cell, fold, 0)[1] for fold in folds]
    run, arguments, data, model_class = prepare(options, cell)
    seed_all(arguments["seed"])
    return [run.run_exp(arguments, [data], model_class, fold)[0] for fold in folds]


def watched_training(options, cell, fold, seed):
    """Row of the trace of a training that goes on until every rule has stopped."""
    if CELLS[cell][0] == "csnn":
        return cooperative_training(options, cell, fold, seed)
    run, arguments, data, model_class = prepare(options, cell)
    trace = Trace(arguments["stop_strategy"], arguments["early_stopping"])
    arguments["early_stopping"] = arguments["epochs"]
    test = run.test

    def watched(*words):
        result = test(*words)
        trace.add(result[0][1], float(result[2][1]), result[0][2])
        return result

    run.test = watched
    seed_all(seed)
    try:
        run.run_exp(arguments, [data], model_class, fold)
    except Finished:
        pass
    return trace.row()


def cooperative_training(options, cell, fold, seed):
    """The row of a training of CSNN by train_one_split() of its example.ipynb."""
    import torch
    import torch._inductor.decomposition
    import torch.nn.functional as functional
    from sklearn.metrics import roc_auc_score
    settings = CELLS[cell][4]
    data, set_split = data_of(options, cell, scale_rows=False)
    set_split(data, fold)
    folder = os.path.abspath(options.csnn)
    sys.path.insert(0, folder)
    from model import CSNN
    with open(os.path.join(folder, "example.ipynb"), encoding="utf-8") as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"]]
    names = {"roc_auc_score": roc_auc_score}
    exec(next(text for text in cells if "def train_one_split" in text), names)

    def product(left, right):
        """A product of batches of matrices, as a sum that the compiler fuses with its neighbours; of small ones only."""
        if left.shape[2] > 3:
            return NotImplemented
        return sum(left[:, :, k:k + 1] * right[:, k:k + 1, :] for k in range(left.shape[2]))

    torch._inductor.decomposition.decompositions[torch.ops.aten.bmm.default] = product
    seed_all(seed)
    network = CSNN(data.x.size(1), settings["hidden_channels"], settings["layers"], 1, **settings["network"])
    trace = Trace(settings["stop_strategy"], settings["early_stopping"])
    labels, valid, test = data.y.cpu(), data.val_mask.cpu(), data.test_mask.cpu()

    class Watched(torch.nn.Module):
        """The network, whose predictions in evaluation the trace sees."""

        def __init__(self):
            super().__init__()
            self.network = network
            compiled = torch.compile(network, dynamic=False) if options.device == "cpu" else network
            self.compiled = [compiled]  # a list: not a second module

        def forward(self, *arguments):
            outputs = self.compiled[0](*arguments)
            if not self.training:
                one = outputs.sigmoid().squeeze(1).cpu()
                loss = functional.binary_cross_entropy(one[valid], labels[valid].float())
                trace.add(roc_auc_score(labels[valid], one[valid]), float(loss), roc_auc_score(labels[test], one[test]))
                if trace.epochs % 50 == 0:
                    print(f"{cell}: split {fold}, seed {seed}: {trace.row()}", file=sys.stderr)
            return outputs

    try:
        names["train_one_split"](Watched(), data, epochs=settings["epochs"], lr=settings["lr"], weight_decay=settings["weight_decay"],
                                 patience=settings["early_stopping"], device=options.device)
    except Finished:
        pass
    return trace.row()


def train_ours(options, cell, rule):
    """Test figures of `train` with a stopping rule, "loss" or "accuracy"."""
    checkout, graph, model, _, settings = CELLS[cell]
    report = options.output + ".report"
    command = [options.train, "--dataset", os.path.join(options.data, graph + ".npz"), *our_options(checkout, model, settings, rule),
               "--splits", options.folds, "--seeds", options.seeds, "--parallel", "splits", "--report", report]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"authors_results.py: {' '.join(command)}: {done.stderr}")
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    os.remove(report)
    figure = "roc_auc" if checkout == "csnn" else "test_accuracy"
    return {"command": " ".join(["train", "--dataset", graph + ".npz", *command[3:-2]]),
            "test": [[s["split"], s["seed"], s[figure]] for s in result["splits"]],
            "seconds": result["run"]["seconds"]}


def timed(function, options, cell, *arguments):
    """What the function returns, and its seconds. What it prints is not shown."""
    start = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        result = function(options, cell, *arguments)
    return result, time.monotonic() - start


def processes(jobs, device):
    """A pool whose every task has a process of its own: forked from this one, which has imported PyTorch; new for CUDA."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if device == "cpu":
        import torch  # noqa: F401
        import torch_geometric  # noqa: F401
    return multiprocessing.get_context("fork" if device == "cpu" else "spawn").Pool(jobs, maxtasksperchild=1)


def mean_and_deviation(values):
    import statistics
    deviation = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.fmean(values):.1f}{deviation}"


def p_of_splits(trainings, column, report):
    """p_value() of the two programs' means of each split that both have; none for a few."""
    import statistics

    def by_split(rows, figure):
        return {row[0]: statistics.fmean(one[figure] for one in rows if one[0] == row[0]) for row in rows}

    theirs, ours = by_split(trainings, column), by_split(report["test"], 2)
    both = [split for split in theirs if split in ours]
    return f"{p_value([ours[s] for s in both], [theirs[s] for s in both]):.2f}" if len(both) > 5 else ""


def train_by_protocol(options, results, cells):
    """Adds the trainings that `protocol` of the cells lacks."""
    wanted = [(cell, fold, seed) for cell in cells for seed in numbers_of("--seeds", options.seeds) for fold in numbers_of("--folds", options.folds)
              if [fold, seed] not in [row[:2] for row in results.get(cell, {}).get("protocol", {}).get("trainings", [])]]
    with processes(options.jobs, options.device) as pool:
        for (cell, fold, seed), (row, seconds) in pool.imap_unordered(functools.partial(watched, options), wanted, chunksize=1):
            entry = results.setdefault(cell, {}).setdefault("protocol", {"trainings": [], "seconds": 0.0})
            entry["trainings"] = sorted([*entry["trainings"], [fold, seed, *row]])
            entry["seconds"] += seconds
            write_json(options.output, results, indent=1)
    for cell in cells:
        ours = results.setdefault(cell, {}).setdefault("ours_by", {})
        for rule in ("loss", "accuracy"):
            if rule not in ours:
                own = results[cell].get("ours") if rule == own_rule(cell) else None
                ours[rule] = own or train_ours(options, cell, rule)
                write_json(options.output, results, indent=1)


def watched(options, training):
    return training, timed(watched_training, options, *training)


def print_tables(results):
    def ours(report):
        return mean_and_deviation([figure for _, _, figure in report["test"]])

    print("| setting | the authors' code | this library | seconds, theirs (one seed) | ours |\n| --- | --- | --- | --- | --- |")
    for cell, result in results.items():
        if "theirs" in result:
            seeds = len({seed for _, seed, _ in result["ours"]["test"]})
            print(f"| {cell} | {mean_and_deviation(result['theirs']['test'])} | {ours(result['ours'])} | "
                  f"{result['theirs']['seconds']:.0f} | {result['ours']['seconds']:.0f} ({seeds} seeds) |")
    print("\n| setting | trainings | theirs, as their program reports | by loss | by accuracy | ours, by loss | by accuracy "
          "| p, by loss | by accuracy | seconds, theirs | ours |" + "\n" + "| --- " * 11 + "|")
    for cell, result in results.items():
        if "protocol" in result:
            trainings = result["protocol"]["trainings"]
            columns = [mean_and_deviation([row[column] for row in trainings]) for column in (3, 4, 5)]
            reports = [result.get("ours_by", {}).get(rule) for rule in ("loss", "accuracy")]
            columns += [ours(report) if report else "" for report in reports]
            columns += [p_of_splits(trainings, column, report) if report else "" for column, report in zip((4, 5), reports)]
            seconds = sum(report["seconds"] for report in reports if report)
            print(f"| {cell} | {len(trainings)} | {' | '.join(columns)} | {result['protocol']['seconds']:.0f} | {seconds:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("nsd", "bsnn", "polynsd", "csnn", "data", "output"):
        parser.add_argument(name)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--train", default=os.path.join(here, "..", "build", "release", "examples", "train"))
    parser.add_argument("--only", default=",".join(CELLS))
    parser.add_argument("--folds", default="0-9")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--protocol", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    results = {}
    if os.path.exists(options.output):
        with open(options.output, encoding="utf-8") as file:
            results = json.load(file)
    cells = [cell for cell in options.only.split(",") if cell]
    for cell in cells:
        if cell not in CELLS:
            sys.exit(f"authors_results.py: --only: no cell '{cell}'; choose {', '.join(CELLS)}")
    if options.protocol:
        train_by_protocol(options, results, cells)
    else:
        for cell in cells:
            if "theirs" not in results.get(cell, {}):
                with processes(1, options.device) as pool:
                    test, seconds = pool.apply(timed, (train_theirs, options, cell, numbers_of("--folds", options.folds)))
                results.setdefault(cell, {}).update(theirs={"test": test, "seconds": seconds},
                                                    ours=train_ours(options, cell, own_rule(cell)))
                write_json(options.output, results, indent=1)
    print_tables(results)


if __name__ == "__main__":
    main()
