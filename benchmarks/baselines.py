#!/usr/bin/env python3
"""The networks that PyTorch Geometric ships, searched and trained by the protocol of tune.py on the same splits.

usage: baselines.py search FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--trials N] [--jobs N]
       baselines.py final FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--seeds 0-2] [--jobs N]

FOLDER, DATA, --spaces, --seed  as in tune.py, whose `table` shows the networks of both programs
--networks  mlp, gcn, gat, sage, pairnorm, gcnii, fagcn, mixhop, gprgnn, h2gcn; baseline_networks.py says what they are
--jobs N    processes, each with one thread

A setting is judged, given up, chosen and trained again as tune.py does it, with the same sampler, number of trials,
epochs and patience; the search spaces are in the same file. Trainings do as train does: features scaled to row sum 1,
the mean negative log-likelihood of the training nodes, Adam with an L2 term, and after every step an evaluation, which
chooses the best epoch by the validation nodes. Seconds per epoch are processor time of a step and its evaluation on
one thread, without the time in which other programs have the processor.

Of networks that are often compared, Geom-GCN, GGCN and WRGAT are not in PyTorch Geometric and cannot be built from a few of its layers, and are not
included.

Needs torch, torch_geometric, optuna and scipy from PyPI.
"""
import concurrent.futures
import functools
import math
import multiprocessing
import os
import shlex
import statistics
import sys
import time

import tune
from metrics import accuracy, expected_calibration_error, negative_log_likelihood, roc_auc
from tune import Diverged


@functools.lru_cache(maxsize=2)
def graph_of(path, normalise_features):
    from baseline_networks import Graph
    return Graph(path, normalise_features)


class Clock:
    """Processor seconds of the parts of a training."""

    def __init__(self):
        self.train = self.evaluate = 0.0
        self.last = self.first = time.process_time()

    def stop(self, part):
        now = time.process_time()
        setattr(self, part, getattr(self, part) + now - self.last)
        self.last = now


def train(options, split, seed):
    """Trains a setting on one split: its row of a report, with the seconds per epoch, and the class probabilities."""
    import torch
    import torch.nn.functional as F
    from baseline_networks import network_of
    torch.set_num_threads(1)
    graph = graph_of(options["--dataset"], not options.get("--no-normalise-features", False))
    torch.manual_seed(seed)
    network = network_of(graph, options)
    free = network.without_decay()
    decayed = [p for p in network.parameters() if all(p is not other for other in free)]
    groups = [{"params": decayed, "weight_decay": options["--weight-decay"]}]
    if free:
        groups.append({"params": free, "weight_decay": 0})
    adam = torch.optim.Adam(groups, lr=options["--lr"], fused=True)
    labels = torch.from_numpy(graph.labels)
    training, validation = (torch.from_numpy(nodes[split]) for nodes in (graph.train, graph.validation))
    rule = options["--stop-on"]
    best, best_score, best_predictions = None, (math.inf, math.inf), None
    clock = Clock()
    for epoch in range(options["--epochs"]):
        network.train()
        adam.zero_grad()
        logits = network(graph.input(options["--input-dropout"], True))
        loss = F.cross_entropy(logits[training], labels[training])
        if not math.isfinite(loss.item()):
            raise Diverged
        loss.backward()
        adam.step()
        clock.stop("train")
        network.eval()
        with torch.inference_mode():
            logits = network(graph.input(0, False))
            probabilities = logits.softmax(1).numpy()
            validation_loss = F.cross_entropy(logits[validation], labels[validation]).item()
        if not math.isfinite(validation_loss):
            raise Diverged
        nodes = graph.validation[split]
        one = {"best_epoch": epoch, "validation_loss": validation_loss,
               "validation_accuracy": accuracy(probabilities, graph.labels, nodes)}
        if rule == "roc-auc":
            one["validation_metric"] = roc_auc(probabilities, graph.labels, nodes)
        score = {"loss": validation_loss, "accuracy": -one["validation_accuracy"],
                 "roc-auc": -one.get("validation_metric", 0)}[rule], validation_loss
        if score < best_score:
            best, best_score, best_predictions = one, score, probabilities
        clock.stop("evaluate")
        if epoch - best["best_epoch"] >= options["--patience"]:
            break
    nodes = graph.test[split]
    epochs = epoch + 1
    figures = {name: figure(best_predictions, graph.labels, nodes)
               for name, figure in (("test_accuracy", accuracy), ("nll", negative_log_likelihood),
                                    ("ece", expected_calibration_error), ("roc_auc", roc_auc))}
    return {"split": split, **best, "epochs": epochs, **figures, "seed": seed,
            "parameters": sum(p.numel() for p in network.parameters()),
            "seconds_per_epoch": {"all": (clock.last - clock.first) / epochs, "train": clock.train / epochs,
                                  "evaluate": clock.evaluate / epochs}}, best_predictions


def summary(values):
    return {"mean": statistics.fmean(values), "std": statistics.pstdev(values), "per_split": values}


def report_of(dataset, options, rows, seconds, started):
    """What `table` reads, under the names of train's reports."""
    import torch
    import torch_geometric

    def of(key):
        return [row[key] for row in rows]

    report = {"dataset": dataset, "model": options["--model"], "maps": None,
              "run": {"command": shlex.join(sys.argv), "torch": torch.__version__,
                      "torch_geometric": torch_geometric.__version__, "started": started, "seconds": seconds},
              "options": {key.removeprefix("--").replace("-", "_"): value for key, value in options.items()
                          if key not in ("--dataset", "--model")}}
    for key in ("test_accuracy", "validation_accuracy", "roc_auc"):
        report[key] = summary(of(key))
    if "validation_metric" in rows[0]:
        report["validation_metric"] = summary(of("validation_metric"))
    for key in ("ece", "nll"):
        report[key] = statistics.fmean(of(key))
    report["seconds_per_epoch"] = {part: statistics.fmean(row["seconds_per_epoch"][part] for row in rows)
                                   for part in ("all", "train", "evaluate")}
    report["parameters"] = rows[0]["parameters"]
    report["splits"] = [{key: value for key, value in row.items() if key not in ("parameters", "seconds_per_epoch")}
                        for row in rows]
    return report


def final(arguments, spaces, dataset, network, run, seeds):
    """Trains the chosen setting on all splits with every seed, once for each rule that says which epoch is the best.

    \\param run  run(function, arguments, ...): the results for every tuple of arguments
    """
    study = tune.open_study(arguments, dataset, network, create=False)
    best = tune.best_trial(study) if study else None
    if best is None:
        print(f"{dataset:12} {network:24} not searched", flush=True)
        return
    fixed = spaces.fixed(dataset, network)
    for rule in tune.stopping_rules(arguments, fixed):
        options = {"--dataset": os.path.join(arguments.data, dataset + ".npz"), **fixed, **best.params,
                   "--stop-on": rule}
        started, start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
        try:
            rows = [row for row, _ in run([(options, split, seed) for split in range(tune.SPLITS) for seed in seeds])]
        except Diverged:
            sys.exit(f"{tune.PROGRAM}: {dataset} {network}: the chosen setting diverges with one of the seeds")
        report = report_of(dataset, options, rows, time.monotonic() - start, started)
        tune.write_json(os.path.join(arguments.folder, f"{dataset}-{network}-{rule}.json"), report, indent=1)
        tune.print_final(dataset, network, rule, report)


def main():
    arguments = tune.parser_of(__doc__, ["search", "final"]).parse_args()
    spaces = tune.Spaces(arguments.spaces, "baselines")
    datasets, networks = tune.datasets_and_networks(arguments, spaces)
    seeds = tune.numbers_of("--seeds", arguments.seeds)
    try:
        from baseline_networks import NETWORKS
    except ImportError as error:
        sys.exit(f"{tune.PROGRAM}: {error}; torch, torch_geometric and scipy are needed")
    for network in networks:
        if spaces.network(network)["fixed"]["--model"] not in NETWORKS:
            sys.exit(f"{tune.PROGRAM}: --spaces: {network}: --model must be one of {', '.join(NETWORKS)}")
    for dataset in datasets:
        try:
            graph = graph_of(os.path.join(arguments.data, dataset + ".npz"), True)
        except ValueError as error:
            sys.exit(f"{tune.PROGRAM}: {error}")
        if graph.splits < tune.SPLITS:
            sys.exit(f"{tune.PROGRAM}: --datasets: {dataset} has {graph.splits} splits, not {tune.SPLITS}")
    graph_of.cache_clear()
    os.makedirs(arguments.folder, exist_ok=True)
    pool = concurrent.futures.ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) \
        if arguments.jobs > 1 else None

    def run(calls):
        return [future.result() for future in [pool.submit(train, *call) for call in calls]] if pool else \
            [train(*call) for call in calls]

    for dataset in datasets:
        for network in networks:
            if arguments.what == "search":
                tune.search(arguments, spaces, dataset, network,
                            lambda _, options, split: run([(options, split, 0)])[0])
            else:
                final(arguments, spaces, dataset, network, run, seeds)


if __name__ == "__main__":
    main()
