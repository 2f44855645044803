#!/usr/bin/env python3
"""Searches settings of the program train with Optuna, trains the chosen ones again, and prints the table of all networks.

usage: tune.py search FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--trials N] [--jobs N]
       tune.py final FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--seeds 0-2] [--jobs N]
       tune.py judge FOLDER --data DATA [--datasets NAME,...] [--networks NAME,...] [--candidates 5] [--seeds 0-2] [--jobs N]
       tune.py budget FOLDER --data DATA --output OUTPUT --trials N [--datasets NAME,...] [--networks NAME,...] [--seeds 0-2] [--jobs N]
       tune.py predict FOLDER --data DATA --output OUTPUT [--datasets NAME,...] [--networks NAME,...] [--seeds 0-2] [--jobs N]
       tune.py table FOLDER [--data DATA] [--datasets NAME,...]
       tune.py compare FOLDER --networks NAME,NAME,... [--datasets NAME,...]
       tune.py export FOLDER --data DATA --output OUTPUT [--datasets NAME,...]

DATA    folder of NAME.npz files with ten splits
FOLDER  of the results: NAME-NETWORK.db (the study, SQLite; a search that was interrupted goes on), NAME-NETWORK.csv (its
        trials), and for the chosen setting NAME-NETWORK-loss.json and -accuracy.json (reports of train, one for each rule
        that says which epoch is the best)
--train PROGRAM   default: build/release/examples/train
--spaces FILE     default: search_spaces.json beside this program
--kind NAME       which networks of that file, by default "networks"; "one budget": every network, from ranges of equal size, with
                  one stalk dimension and no start. Its datasets are files as well as "generated" ones of that file; planted-frames
                  needs the two files of given sheaves in DATA
--rules NAME,...  which epoch of a training `final` takes as the best: by loss, accuracy (the default is both)
--seed N          of Optuna's sampler

export writes what the table needs to OUTPUT/NAME.json, and every trial to OUTPUT/NAME-trials.csv, where networks that FOLDER has
no study of stay as they are; `tune.py table OUTPUT` then prints the same table without the studies, and `tune.py final OUTPUT`
trains the settings in NAME.json again and replaces their figures there.

judge chooses with more than one seed: of every network the settings with the best validation figures of a search (FOLDER: of studies,
or an OUTPUT of export), as many as --candidates says, are trained with every seed, and the one with the best mean over splits and
seeds is chosen. FOLDER/NAME-judged.json has them all, and `table` prints a second table from it. Networks that it has already are
left as they are.

budget makes networks comparable whose searches had different numbers of settings. FOLDER is an OUTPUT of export; what the first N
settings of its searches alone would have chosen is trained with every seed, and written to another OUTPUT as export does.
Settings are drawn and given up by those before them, so that the first N are what a search of N settings is. Figures are copied
where the whole search has chosen the same setting, and of searches of N settings, the figures of baselines.py as well.
Shorter ones are left out.

predict trains the chosen settings again, the best epochs by validation loss (or ROC AUC), and writes the class probabilities of
every training to OUTPUT/NAME-NETWORK.npz, for seed_ensembles.py; files that are there already stay.

compare prints, for every two of --networks, networks of baselines.py too, the difference of their test figures and p as
in the table, for both rules that say which epoch is the best; of judged networks as well.

Defaults: --datasets texas,wisconsin,film,citeseer,cora; --networks all of the file of search spaces that a dataset can
have; --trials 200 of every network; --jobs as many as there are processors.

"validation" is what the setting was chosen by: the mean over the ten splits, with one seed, in the epoch with the
least validation loss. "std" is the standard deviation over all trainings (divided by their number minus one), "ECE"
has 15 bins. "ms per epoch" is processor time of a step and an evaluation, on one thread. The table holds the networks
of baselines.py too, where FOLDER has their results; the rows are in the order of their test figures, and below the
table stands the network that the validation nodes choose. In the table of `judge`, "validation" is the mean over the
seeds as well, and "trials, hours" counts the candidates and their trainings. "p": Wilcoxon's signed-rank test of the
splits' test figures, means over the seeds, against the figures of the first row. "std of choosing" needs DATA: the
standard deviation of the chosen trial's test figure (one seed) when the completed trials are drawn anew with
replacement and the best of the draw is chosen by the validation nodes; it says how much of a figure is the
luck of the search.

Protocol. A setting is judged by the mean validation accuracy of the ten splits (of graphs that stop on ROC AUC: by
that), among equals by the mean validation loss. Splits are trained in order, and a setting whose mean so far is below
the median of the others at that split is given up (Optuna's MedianPruner), as is one that diverges. Test figures do not
enter; they are read after `final`, which trains the chosen setting on all splits with every seed, and for "std of choosing". The
validation nodes of one split are test nodes of others, so that a setting chosen by all splits has seen most of them.

Needs optuna and scipy from PyPI.
"""
import argparse
import csv
import itertools
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from metrics import test_figure

SPLITS = 10
RULES = ("loss", "accuracy")
HYPERGRAPH = "hypergraph"  # the dataset of the networks on hypergraphs
PROGRAM = os.path.basename(sys.argv[0])
FOLDER_OF_THIS = os.path.dirname(os.path.abspath(__file__))


class Spaces:
    """The file of search spaces, of one kind of networks: the networks of train ("networks", "one budget") or "baselines"."""

    def __init__(self, path, kind="networks"):
        try:
            with open(path, encoding="utf-8") as file:
                self.content = json.load(file)
        except (OSError, ValueError) as error:
            sys.exit(f"{PROGRAM}: --spaces: {path}: {error}")
        self.kind = kind
        missing = [key for key in (kind, f"fixed of {kind}", "fixed", "fixed of a dataset", "ranges of a dataset", "starts")
                   if key not in self.content]
        if missing:
            sys.exit(f"{PROGRAM}: --spaces: {path}: no '{missing[0]}'")

    def names(self):
        return list(self.content[self.kind])

    def network(self, name):
        try:
            return self.content[self.kind][name]
        except KeyError:
            sys.exit(f"{PROGRAM}: no network '{name}'; choose {', '.join(self.names())}")

    def fixed(self, dataset, network):
        of_kind = self.content[f"fixed of {self.kind}"]
        return {**of_kind, **self.content["fixed"], **self.content["fixed of a dataset"].get(dataset, {}), **of_kind,
                **self.network(network)["fixed"]}

    def trains_on(self, dataset, network):
        """Whether the network belongs to this dataset: some belong to a few, and those without such a list to graphs."""
        datasets = self.network(network).get("datasets")
        return dataset in datasets if datasets else dataset != HYPERGRAPH

    def generated(self, dataset):
        """Options that make a dataset which is no file; None of a file."""
        return self.content.get("generated", {}).get(dataset)

    def data(self, dataset):
        """Options that say which data."""
        return self.generated(dataset) or {"--dataset": dataset + ".npz"}

    def searched(self, dataset, network):
        of = self.network(network)
        ranges = {}
        for group in of["search"]:
            ranges.update(self.content[group])
        ranges.update(of.get("more", {}))
        instead = {**self.content["ranges of a dataset"].get(dataset, {}), **self.content.get(f"ranges of {self.kind}", {})}
        if self.kind == "baselines":
            instead = {}
        return {option: instead.get(option, space) for option, space in ranges.items()} | of.get("own", {})

    def starts(self, dataset, network):
        """Settings to try first, without values that the ranges of the network do not have. Of the kind "networks" alone."""
        if self.kind != "networks":
            return []
        groups = self.network(network)["search"]
        own, searched = self.network(network).get("own", {}), self.searched(dataset, network)
        return [{option: value for option, value in start["setting"].items()
                 if option in searched and value in own.get(option, [value])}
                for start in self.content["starts"]
                if dataset in start["datasets"] and all(group in groups for group in start["networks that search"])]

    def suggest(self, trial, dataset, network):
        """Draws a value for every option of a network."""
        chosen = {}
        for option, space in self.searched(dataset, network).items():
            if isinstance(space, list):
                chosen[option] = trial.suggest_categorical(option, space)
                continue
            condition = space.get("only", {})
            if any(chosen.get(other) not in values for other, values in condition.items()):
                continue
            draw = trial.suggest_int if all(isinstance(space[k], int) for k in ("from", "to")) and "step" not in space \
                else trial.suggest_float
            more = {"log": True} if space.get("log") else {"step": space["step"]} if "step" in space else {}
            chosen[option] = draw(option, space["from"], space["to"], **more)
        return chosen


def located(value, folder):
    """The name of an .npz file in this folder; other values as they are."""
    return os.path.join(folder, os.path.basename(value)) if isinstance(value, str) and value.endswith(".npz") else value


def command_line(options):
    words = []
    for option, value in options.items():
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words += [option, f"{value:.6g}" if isinstance(value, float) else str(value)]
    return words


class Failed(RuntimeError):
    pass


class Diverged(RuntimeError):
    pass


def train(program, arguments, report):
    run = subprocess.run([program, *arguments, "--report", report], capture_output=True, text=True, check=False)
    if "training diverged" in run.stderr:
        raise Diverged(f"{' '.join([program, *arguments])}: training diverged")
    if run.returncode != 0:
        raise Failed(f"{' '.join([program, *arguments])}: {run.stderr.strip() or run.returncode}")
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def train_timed(program, arguments, report):
    """The report, and the processor seconds of the program, while no other child of this one runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    content = train(program, arguments, report)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return content, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def metric_of(options):
    """What a split of a report is judged by on the validation nodes."""
    return "validation_metric" if options["--stop-on"] not in RULES else "validation_accuracy"


def open_study(arguments, dataset, network, create):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    path = os.path.join(arguments.folder, f"{dataset}-{network}.db")
    if not create and not os.path.exists(path):
        return None
    # n_min_trials: trials that restore_search.py brought have no figures of single splits.
    pruner = optuna.pruners.MedianPruner(n_startup_trials=10, n_warmup_steps=2, n_min_trials=5)
    study = optuna.create_study(study_name=f"{dataset}-{network}", storage=f"sqlite:///{path}", load_if_exists=True,
                                direction="maximize", pruner=pruner)
    # A search that goes on draws other settings than it has drawn already.
    study.sampler = optuna.samplers.TPESampler(seed=arguments.seed + len(study.get_trials(deepcopy=False)), multivariate=True,
                                               group=True, constant_liar=True)
    return study


def rank(validation, loss):
    """What is chosen has the largest of these: the best validation figure, and among equals the smallest validation loss."""
    return round(validation, 9), -loss


def counts(trial):
    """Whether a trial is one of the settings of a search: not if it was interrupted, or its training failed."""
    return trial.state.name in ("COMPLETE", "PRUNED")


def preference(trial):
    """rank() of a completed trial."""
    return rank(trial.value, trial.user_attrs["validation_loss"])


def best_trial(study):
    """Of the trials that were not given up."""
    import optuna
    done = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return max(done, key=preference, default=None)


def predictions_folder(arguments, dataset, network):
    """Where a search keeps TRIAL.npz of every completed trial: probabilities, splits × nodes × classes."""
    return os.path.join(arguments.folder, "predictions", f"{dataset}-{network}")


def train_split(arguments, options, split):
    """Trains a setting on one split: its row of the report, and the class probabilities of all nodes."""
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        predicted = os.path.join(folder, "predictions.npz")
        report = train(arguments.train, [*command_line(options), "--threads", "1", "--splits", str(split),
                                         "--predictions", predicted], os.path.join(folder, "report.json"))
        with numpy.load(predicted) as file:
            return report["splits"][0], file["probabilities"][0].astype(numpy.float32)


def search(arguments, spaces, dataset, network, train_one=train_split):
    """\param train_one  trains one split, as train_split() does"""
    import numpy
    import optuna
    study = open_study(arguments, dataset, network, create=True)
    fixed = spaces.fixed(dataset, network)
    metric = metric_of(fixed)
    kept = predictions_folder(arguments, dataset, network)
    os.makedirs(kept, exist_ok=True)

    def objective(trial):
        options = {**spaces.data(dataset), **fixed, **spaces.suggest(trial, dataset, network)}
        options = {option: located(value, arguments.data) for option, value in options.items()}
        trial.set_user_attr("command", " ".join([*command_line(options), "--threads", "1"]))
        values, losses, probabilities = [], [], []
        for split in range(SPLITS):
            try:
                one, predicted = train_one(arguments, options, split)
            except Diverged as error:
                raise optuna.TrialPruned() from error
            if one[metric] is None:
                raise Failed(f"{dataset}: split {split} has no validation nodes")
            if not math.isfinite(one[metric]) or not math.isfinite(one["validation_loss"]):
                raise optuna.TrialPruned()
            probabilities.append(predicted)
            values.append(one[metric])
            losses.append(one["validation_loss"])
            trial.report(sum(values) / len(values), split)
            if split + 1 < SPLITS and trial.should_prune():
                raise optuna.TrialPruned()
        trial.set_user_attr("validation_loss", sum(losses) / SPLITS)
        path = os.path.join(kept, f"{trial.number}.npz")
        with open(path + ".new", "wb") as file:
            numpy.savez_compressed(file, probabilities=numpy.stack(probabilities))
        os.replace(path + ".new", path)
        return sum(values) / SPLITS

    # Optuna's skip_if_exists enqueues a start again once it has another option, even one that the network lacks.
    # Trials that restore_search.py brought were not enqueued, but have the start's values.
    begun = [values for t in study.get_trials(deepcopy=False) if counts(t) or t.state == optuna.trial.TrialState.WAITING
             for values in (t.system_attrs.get("fixed_params", {}), t.params)]
    for setting in spaces.starts(dataset, network):
        if not any(setting.items() <= fixed.items() for fixed in begun):
            study.enqueue_trial(setting)
    missing = arguments.trials - sum(map(counts, study.get_trials(deepcopy=False)))
    start = time.monotonic()
    waiting = len(study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.WAITING,)))
    # One after another: two threads may take the same trial that waits.
    for count, jobs in ((min(missing, waiting), 1), (missing - waiting, arguments.jobs)):
        if count > 0:
            study.optimize(objective, n_trials=count, n_jobs=jobs, catch=(Failed,))
    trials = study.get_trials(deepcopy=False)
    write_trials(os.path.join(arguments.folder, f"{dataset}-{network}.csv"), trials)
    failures = [t for t in trials if t.state == optuna.trial.TrialState.FAIL]
    best = best_trial(study)
    print(f"{dataset:12} {network:24} {len(trials):4} trials, {len(failures)} failed, {max(missing, 0):4} of them now, "
          f"{time.monotonic() - start:7.1f} s, best validation "
          + (f"{100 * best.value:.2f}" if best else "none"), flush=True)
    if best is None:
        sys.exit(f"{PROGRAM}: {dataset} {network}: no trial was completed")


def write_trials(path, trials):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["trial", "state", "seconds", "splits", "validation", "validation_loss", "command"])
        for t in trials:
            seconds = t.duration.total_seconds() if t.duration else 0
            out.writerow([t.number, t.state.name.lower(), f"{seconds:.2f}", len(t.intermediate_values),
                          "" if t.value is None else f"{t.value:.6f}", t.user_attrs.get("validation_loss", ""),
                          shortened(t.user_attrs.get("command", ""))])


def shortened(command):
    """The command without the folder of the data."""
    return " ".join(os.path.basename(word) if word.endswith(".npz") else word for word in command.split(" "))


def stopping_rules(arguments, fixed):
    """The rules that say which epoch is the best, each with a report of its own."""
    return arguments.rules.split(",") if fixed["--stop-on"] in RULES else [fixed["--stop-on"]]


def chosen_command(arguments, exported, dataset, network):
    """The command line of the chosen setting, from an export or, without one, a study; None, with a note, if there is none."""
    if exported is not None:
        command = exported.get(network, {}).get("command")
    else:
        study = open_study(arguments, dataset, network, create=False)
        best = best_trial(study) if study else None
        command = best.user_attrs["command"] if best else None
    if command is None:
        print(f"{dataset:12} {network:24} not searched", flush=True)
    return command


def final(arguments, spaces, dataset, network):
    exported = read_export(arguments.folder, dataset)
    command = chosen_command(arguments, exported, dataset, network)
    if command is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        reports = train_chosen(arguments, spaces, dataset, network, command.split(" "),
                               arguments.folder if exported is None else folder)
    if exported is not None:
        of = exported[network]["final"]
        for rule, report in reports.items():
            before = of.get(rule, {}).get("std_of_choosing")
            of[rule] = final_figures(rule, report, math.nan if before is None else before)
        write_export(arguments.folder, dataset, exported)


def predict(arguments, spaces, dataset, network):
    """Class probabilities of the chosen setting with every seed."""
    path = os.path.join(arguments.output, f"{dataset}-{network}.npz")
    if os.path.exists(path):
        return
    command = chosen_command(arguments, read_export(arguments.folder, dataset), dataset, network)
    if command is None:
        return
    rule = stopping_rules(arguments, spaces.fixed(dataset, network))[0]
    with tempfile.TemporaryDirectory(dir=arguments.output) as folder:
        predictions = os.path.join(folder, "predictions.npz")  # an interrupted training writes what it has
        report = train_with_seeds(arguments, command.split(" "), rule, os.path.join(folder, "report.json"),
                                  "--predictions", predictions)
        os.replace(predictions, path)
    print_final(dataset, network, rule, report)


def train_with_seeds(arguments, words, rule, path, *more):
    """Trains the setting of a command line on all splits with every seed, the best epoch chosen by `rule`: the report, which is
    written to `path` too. more: further options of the program"""
    words = [located(word, arguments.data) for word in words[:words.index("--threads")]]
    words[words.index("--stop-on") + 1] = rule
    # Processor time, as in baselines.py: other programs on the machine hardly change it.
    report, seconds = train_timed(arguments.train, [*words, "--seeds", arguments.seeds, "--parallel", "splits",
                                                    "--threads", str(arguments.jobs), *more], path + ".new")
    report["seconds_per_epoch"]["processor"] = seconds / sum(one["epochs"] for one in report["splits"])
    write_json(path, report, indent=1)
    return report


def train_chosen(arguments, spaces, dataset, network, words, folder):
    """Trains a setting with every seed, and writes a report for each stopping rule; the reports by rule."""
    reports = {}
    for rule in stopping_rules(arguments, spaces.fixed(dataset, network)):
        path = os.path.join(folder, f"{dataset}-{network}-{rule}.json")
        reports[rule] = train_with_seeds(arguments, words, rule, path)
        print_final(dataset, network, rule, reports[rule])
    return reports


def settings_of(arguments, spaces, dataset, network, first_trials=None):
    """The completed trials of a search, or of the first trials of an exported one, each setting once, best first: validation figure,
    validation loss, command line."""
    settings = []
    if read_export(arguments.folder, dataset) is not None:
        settings = [(float(row["validation"]), float(row["validation_loss"]), exported_command(spaces, dataset, network, row))
                    for row in exported_trials(arguments.folder, dataset, network)[:first_trials] if row["state"] == "complete"]
    else:
        study = open_study(arguments, dataset, network, create=False)
        settings = [(t.value, t.user_attrs["validation_loss"], shortened(t.user_attrs["command"]))
                    for t in (study.get_trials(deepcopy=False) if study else []) if t.state.name == "COMPLETE"]
    settings.sort(key=lambda one: rank(one[0], one[1]), reverse=True)
    first = {}
    for one in settings:
        first.setdefault(one[2], one)
    return list(first.values())


def budget(arguments, spaces, dataset, network):
    """What a search of the first --trials settings would have chosen."""
    exported, there = (read_export(folder, dataset) for folder in (arguments.folder, arguments.output))
    if exported is None:
        print(f"{dataset:12} {network:24} left out: {os.path.join(arguments.folder, dataset + '.json')} does not exist", flush=True)
        return
    there = there or {}
    searched = exported.get(network, {}).get("trials", 0)
    if network in there or searched < arguments.trials or (searched > arguments.trials and network not in spaces.names()):
        print(f"{dataset:12} {network:24} left out: " +
              ("there already" if network in there else f"has {searched} trials"), flush=True)
        return
    rows = exported_trials(arguments.folder, dataset, network)[:arguments.trials]
    of = exported[network]
    if searched > arguments.trials:
        settings = settings_of(arguments, spaces, dataset, network, arguments.trials)
        if not settings:
            print(f"{dataset:12} {network:24} no trial was completed", flush=True)
            return
        validation, loss, command = settings[0]
        if command == of["command"]:  # chosen of all trials as well, and trained with every seed
            figures = {rule: {**final_of, "std_of_choosing": None} for rule, final_of in of["final"].items()}
        else:
            with tempfile.TemporaryDirectory() as folder:
                reports = train_chosen(arguments, spaces, dataset, network, command.split(" "), folder)
            figures = {rule: final_figures(rule, report, math.nan) for rule, report in reports.items()}
        of = {"trials": len(rows), "hours": round(sum(float(row["seconds"]) for row in rows) / 3600, 3),
              "validation": validation, "validation_loss": loss, "command": command, "final": figures}
    write_trials_export(arguments.output, dataset, {network: [list(row.values())[1:] for row in rows]})
    write_export(arguments.output, dataset, {**there, network: of})


def judge(arguments, spaces, dataset, network):
    """Chooses among the best settings of a search by the mean over splits and seeds."""
    judged = read_export(arguments.folder, dataset + "-judged") or {}
    if network in judged:
        before = judged[network]
        print(f"{dataset:12} {network:24} judged before, {len(before['candidates'])} candidates with seeds {before['seeds']}",
              flush=True)
        return
    candidates = settings_of(arguments, spaces, dataset, network)[:arguments.candidates]
    if not candidates:
        print(f"{dataset:12} {network:24} not searched", flush=True)
        return
    fixed = spaces.fixed(dataset, network)
    rule, metric = fixed["--stop-on"], metric_of(fixed)
    start, best, tried = time.monotonic(), None, []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        for validation, _, command in candidates:
            try:
                report = train_with_seeds(arguments, command.split(" "), rule, path)
            except Diverged:
                continue
            mean = sum(one[metric] for one in report["splits"]) / len(report["splits"])
            loss = sum(one["validation_loss"] for one in report["splits"]) / len(report["splits"])
            tried.append({"searched": validation, "validation": mean, "validation_loss": loss, "command": command})
            if math.isfinite(loss) and (best is None or rank(mean, loss) > best[0]):
                best = rank(mean, loss), tried[-1], {rule: report}
        if best is None:
            print(f"{dataset:12} {network:24} all candidates diverge", flush=True)
            return
        _, chosen, reports = best
        hours = (time.monotonic() - start) / 3600
        for other in stopping_rules(arguments, fixed):
            if other not in reports:
                reports[other] = train_with_seeds(arguments, chosen["command"].split(" "), other, path)
            print_final(dataset, network, other, reports[other])
    judged[network] = {"trials": len(tried), "hours": round(hours, 3), **chosen, "seeds": arguments.seeds, "candidates": tried,
                       "final": {of: final_figures(of, report, math.nan) for of, report in reports.items()}}
    write_export(arguments.folder, dataset + "-judged", judged)


def print_final(dataset, network, rule, report):
    test = report["test_accuracy"]
    print(f"{dataset:12} {network:24} best epoch by {rule:9} test {100 * test['mean']:.1f} ± {100 * test['std']:.1f}",
          flush=True)


def figure_key(rule):
    """What a split of a report is judged by on the test nodes."""
    return "test_accuracy" if rule in ("loss", "accuracy") else rule.replace("-", "_")


def spread_of_choosing(arguments, dataset, network, trials, rule):
    """See "std of choosing" above; exact, not drawn: of n trials, ordered by what they are chosen by, the i-th (from 0) is the
    best of a draw with probability ((n − i) / n)ⁿ − ((n − i − 1) / n)ⁿ. NaN without DATA or with predictions missing.
    """
    import numpy
    import optuna
    ranked = sorted((t for t in trials if t.state == optuna.trial.TrialState.COMPLETE), key=preference, reverse=True)
    kept = predictions_folder(arguments, dataset, network)
    paths = [os.path.join(kept, f"{t.number}.npz") for t in ranked]
    data = os.path.join(arguments.data or "", dataset + ".npz")
    if not paths or not all(map(os.path.exists, [data, *paths])):
        return math.nan
    with numpy.load(data) as file:
        labels = file["node_labels"]
        masks = file["test_masks"].astype(bool) & (labels >= 0)
    figures = []
    for path in paths:
        with numpy.load(path) as file:
            figures.append(numpy.mean([test_figure(rule, p, labels, mask)
                                       for p, mask in zip(file["probabilities"], masks)]))
    n, figures = len(figures), numpy.array(figures)
    tail = (1 - numpy.arange(n + 1) / n) ** n
    weights = tail[:-1] - tail[1:]
    mean = weights @ figures
    return 100 * math.sqrt(weights @ (figures - mean) ** 2)


def final_figures(rule, report, std_of_choosing):
    """What the table has of a report."""
    seconds = report["seconds_per_epoch"]
    return {"test": [[one["split"], one["seed"], one[figure_key(rule)]] for one in report["splits"]],
            "nll": report["nll"], "ece": report["ece"], "parameters": report["parameters"],
            "ms_per_epoch": round(1000 * seconds.get("processor", seconds["all"]), 4),
            "std_of_choosing": None if math.isnan(std_of_choosing) else std_of_choosing}


def read_export(folder, name):
    """NAME.json of `export`, or NAME-judged.json of `judge`; None where there is no such file."""
    path = os.path.join(folder, f"{name}.json")
    return read_json(path) if os.path.exists(path) else None


def write_export(folder, dataset, networks):
    write_json(os.path.join(folder, f"{dataset}.json"), networks)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            sys.exit(f"{PROGRAM}: {path}: {error}")


def write_json(path, content, indent=None):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=indent)
        file.write("\n")
    os.replace(path + ".new", path)


def summary_of(arguments, spaces, dataset):
    """The networks of the table: what was searched, and the figures of the chosen settings."""
    exported = read_export(arguments.folder, dataset)
    if exported is not None:
        return exported
    networks = {}
    for network in [*spaces.names(), *spaces.content.get("baselines", {})]:
        study = open_study(arguments, dataset, network, create=False)
        best = best_trial(study) if study else None
        if best is None:
            continue
        trials = study.get_trials(deepcopy=False)
        final_of = {}
        for rule in (*RULES, "roc-auc"):
            path = os.path.join(arguments.folder, f"{dataset}-{network}-{rule}.json")
            if not os.path.exists(path):
                continue
            report = read_json(path)
            if report.get("interrupted") or len({one["split"] for one in report.get("splits", [])}) < SPLITS:
                print(f"{PROGRAM}: {path} was interrupted, and is left out", file=sys.stderr)
                continue
            final_of[rule] = final_figures(rule, report, spread_of_choosing(arguments, dataset, network, trials, rule))
        networks[network] = {"trials": sum(map(counts, trials)),
                             "hours": round(sum(t.duration.total_seconds() for t in trials if t.duration) / 3600, 3),
                             "validation": best.value, "validation_loss": best.user_attrs["validation_loss"],
                             "command": shortened(best.user_attrs["command"]), "final": final_of}
    return networks


def table(arguments, spaces, datasets):
    for dataset in datasets:
        print_table(dataset, summary_of(arguments, spaces, dataset))
        judged = read_export(arguments.folder, dataset + "-judged")
        if judged:
            print_table(title_of_judged(dataset, judged), judged)


def means_of_splits(final_of):
    """Test figures in per cent, of every split (they are 0 to SPLITS - 1) the mean over its seeds."""
    by_split = {split: [] for split in range(SPLITS)}
    for split, _, value in final_of["test"]:
        by_split[split].append(100 * value)
    return [statistics.fmean(by_split[split]) for split in range(SPLITS)]


def numbers_of(option, text):
    """0-2 or 0,1,2: every number once."""
    numbers = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            sys.exit(f"{PROGRAM}: {option}: '{text}' is no list of numbers and ranges such as 0-2")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    if len(set(numbers)) < len(numbers):
        sys.exit(f"{PROGRAM}: {option}: '{text}' has a number twice")
    return numbers


def p_value(a, b):
    """Of Wilcoxon's signed-rank test. Differences are rounded: equal ones, of a node or two, would otherwise be ranked by
    rounding errors."""
    import scipy.stats
    differences = [round(x - y, 9) for x, y in zip(a, b)]
    return scipy.stats.wilcoxon(differences).pvalue if any(differences) else 1.0


def compare(arguments, spaces, datasets):
    names = arguments.networks.split(",") if arguments.networks else []
    if len(names) < 2:
        sys.exit(f"{PROGRAM}: --networks: {arguments.networks}; must name two or more")
    for dataset in datasets:
        networks = summary_of(arguments, spaces, dataset)
        missing = [name for name in names if name not in networks]
        if missing:
            sys.exit(f"{PROGRAM}: --networks: {missing[0]} has no results for {dataset} in {arguments.folder}")
        print_comparisons(dataset, networks, names)
        judged = read_export(arguments.folder, dataset + "-judged") or {}
        if all(name in judged for name in names):
            print_comparisons(title_of_judged(dataset, judged), judged, names)


def print_comparisons(title, networks, names):
    print(f"\n## {title}\n\n| network | against | best epoch by | test | against | difference | p |\n" + "| --- " * 7 + "|")
    for first, second in itertools.combinations(names, 2):
        for rule in [rule for rule in networks[first]["final"] if rule in networks[second]["final"]]:
            a, b = (means_of_splits(networks[name]["final"][rule]) for name in (first, second))
            print(f"| {first} | {second} | {rule} | {statistics.fmean(a):.2f} | {statistics.fmean(b):.2f} | "
                  f"{statistics.fmean(a) - statistics.fmean(b):+.2f} | {p_value(a, b):.3f} |")


def title_of_judged(dataset, judged):
    return f"{dataset}, judged with seeds {', '.join(sorted({of['seeds'] for of in judged.values()}))}"


def print_table(title, networks):
    rows = [(network, rule, of, final_of, means_of_splits(final_of))
            for network, of in networks.items() for rule, final_of in of["final"].items()]
    if not rows:
        return
    rows.sort(key=lambda row: -sum(row[4]))
    first = rows[0][4]
    print(f"\n## {title}\n\n| network | best epoch by | validation | test | std over splits and seeds "
          "| p against the first | std of choosing | NLL | ECE | ms per epoch | trials, hours |\n" + "| --- " * 11 + "|")
    for network, rule, of, final_of, values in rows:
        p = "" if values == first else f"{p_value(values, first):.3f}"
        std = 100 * statistics.stdev(value for _, _, value in final_of["test"])
        choosing = final_of["std_of_choosing"]
        print(f"| {network} | {rule} | {100 * of['validation']:.2f} | {statistics.fmean(values):.2f} | {std:.2f} | {p} | "
              f"{'' if choosing is None else f'{choosing:.2f}'} | {final_of['nll']:.3f} | {final_of['ece']:.3f} | "
              f"{final_of['ms_per_epoch']:.3g} | {of['trials']}, {of['hours']:.2f} |")
    chosen = max(rows, key=lambda row: rank(row[2]["validation"], row[2]["validation_loss"]))
    tests = ", ".join(f"{statistics.fmean(values):.2f} ({rule})" for network, rule, _, _, values in rows
                      if network == chosen[0])
    print(f"\nThe validation nodes choose {chosen[0]}: {100 * chosen[2]['validation']:.2f} there, test {tests}.")


def exported_trials(folder, dataset, network):
    """The rows of NAME-trials.csv of `export` that belong to a network, in the order of the trials."""
    path = os.path.join(folder, f"{dataset}-trials.csv")
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["network"] == network]


def exported_command(spaces, dataset, network, row):
    """The command line of a row."""
    fixed = " ".join(command_line({**spaces.data(dataset), **spaces.fixed(dataset, network)}))
    return f"{fixed} {row['options']} --threads 1"


def write_trials_export(folder, dataset, rows):
    """Adds rows, lists by network, to NAME-trials.csv, in place of those that it has of these networks."""
    path = os.path.join(folder, f"{dataset}-trials.csv")
    others = []
    if os.path.exists(path):
        with open(path, newline="", encoding="utf-8") as file:
            others = [row for row in csv.reader(file) if row[0] not in rows][1:]
    with open(path + ".new", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["network", "trial", "state", "seconds", "splits", "validation", "validation_loss", "options"])
        out.writerows(others)
        out.writerows([network, *row] for network, of in rows.items() for row in of)
    os.replace(path + ".new", path)


def export(arguments, spaces, datasets):
    """Writes what a reader needs of FOLDER: the figures as NAME.json, and every trial of the searches as NAME-trials.csv."""
    for dataset in datasets:
        if read_export(arguments.folder, dataset) is not None:
            sys.exit(f"{PROGRAM}: {os.path.join(arguments.folder, dataset + '.json')} is an export already; "
                     "FOLDER must have the studies")
        networks = summary_of(arguments, spaces, dataset)
        if not networks:
            continue
        before = read_export(arguments.output, dataset) or {}
        others = {name: of for name, of in before.items() if name not in networks}
        rows = {}
        for network in networks:
            trials = open_study(arguments, dataset, network, create=False).get_trials(deepcopy=False)
            rows[network] = []
            for t in trials:
                if not counts(t):
                    continue
                seconds = t.duration.total_seconds() if t.duration else 0
                loss = t.user_attrs.get("validation_loss")
                rows[network].append([t.number, t.state.name.lower(), f"{seconds:.2f}", len(t.intermediate_values),
                                      "" if t.value is None else f"{t.value:.5f}", "" if loss is None else f"{loss:.5f}",
                                      " ".join(command_line(t.params))])
        write_trials_export(arguments.output, dataset, rows)
        write_export(arguments.output, dataset, {**others, **networks})


def parser_of(usage, commands):
    """The command line of a program of this folder, whose doc string has the usage."""
    parser = argparse.ArgumentParser(usage=usage[usage.index("usage:") + 7:])
    parser.add_argument("what", choices=commands)
    parser.add_argument("folder")
    parser.add_argument("--data")
    parser.add_argument("--datasets", default="texas,wisconsin,film,citeseer,cora")
    parser.add_argument("--networks")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spaces", default=os.path.join(FOLDER_OF_THIS, "search_spaces.json"))
    parser.add_argument("--rules", default=",".join(RULES))
    return parser


def datasets_and_networks(arguments, spaces, networks=None):
    """The lists that the command line asks for, but for `networks`; ends the program where one has a wrong name, or no data."""
    datasets = arguments.datasets.split(",")
    if networks is None:
        networks = arguments.networks.split(",") if arguments.networks else spaces.names()
    for network in networks if arguments.what != "compare" else []:
        spaces.network(network)
    for rule in arguments.rules.split(","):
        if rule not in RULES:
            sys.exit(f"{PROGRAM}: --rules: '{rule}'; choose {', '.join(RULES)}")
    for option in ("trials", "jobs", "candidates"):
        if getattr(arguments, option, 1) < 1:
            sys.exit(f"{PROGRAM}: --{option}: {getattr(arguments, option)}; must be at least 1")
    if arguments.what != "search" and not os.path.isdir(arguments.folder):
        sys.exit(f"{PROGRAM}: {arguments.folder} is not a folder")
    if arguments.data is None and arguments.what not in ("table", "compare", "trials"):
        sys.exit(f"{PROGRAM}: --data is missing: the folder of the .npz files")
    for dataset in datasets if arguments.data is not None else []:
        if spaces.generated(dataset) is None and not os.path.exists(os.path.join(arguments.data, dataset + ".npz")):
            sys.exit(f"{PROGRAM}: --datasets: {os.path.join(arguments.data, dataset + '.npz')} does not exist")
    return datasets, networks


def main():
    parser = parser_of(__doc__, ["search", "final", "judge", "budget", "predict", "table", "compare", "export"])
    parser.add_argument("--output")
    parser.add_argument("--kind", default="networks")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--train", default=os.path.join(FOLDER_OF_THIS, "..", "build", "release", "examples", "train"))
    arguments = parser.parse_args()
    spaces = Spaces(arguments.spaces, arguments.kind)
    datasets, networks = datasets_and_networks(arguments, spaces)
    if arguments.what in ("table", "compare"):
        (table if arguments.what == "table" else compare)(arguments, spaces, datasets)
        return
    if arguments.what in ("export", "budget", "predict"):
        if arguments.output is None:
            sys.exit(f"{PROGRAM}: --output is missing: the folder to write to")
        os.makedirs(arguments.output, exist_ok=True)
    if arguments.what == "export":
        export(arguments, spaces, datasets)
        return
    if not os.access(arguments.train, os.X_OK):
        sys.exit(f"tune.py: --train: {arguments.train} is not an executable file")
    os.makedirs(arguments.folder, exist_ok=True)
    run = {"search": search, "final": final, "judge": judge, "budget": budget, "predict": predict}[arguments.what]
    if run is budget and arguments.networks is None:
        networks += spaces.content.get("baselines", {})
    for dataset in datasets:
        for network in networks:
            if arguments.networks is None and not spaces.trains_on(dataset, network):
                continue
            try:
                run(arguments, spaces, dataset, network)
            except (Failed, Diverged) as error:
                sys.exit(f"{PROGRAM}: {error}")


if __name__ == "__main__":
    main()
