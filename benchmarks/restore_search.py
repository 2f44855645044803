#!/usr/bin/env python3
"""Makes the studies of a search of tune.py again from what its export holds, so that a search goes on, or its ensembles are
chosen, without the machine that it ran on.

usage: restore_search.py trials FOLDER --export EXPORT [--datasets NAME,...] [--networks NAME,...]
       restore_search.py predictions FOLDER --export EXPORT --data DATA [--datasets NAME,...] [--networks NAME,...] [--seeds 0] [--jobs N]

EXPORT  of tune.py export: NAME-trials.csv with every trial
FOLDER  as tune.py and ensembles.py read it
DATA    folder of NAME.npz files with ten splits
--train PROGRAM   default: build/release/examples/train, for `predictions`
--spaces FILE     default: search_spaces.json beside this program

trials makes FOLDER/NAME-NETWORK.db, with the settings, validation figures and times of the export, networks of baselines.py too.
`tune.py search FOLDER` (or baselines.py) then goes on with it: its sampler has seen all trials, its pruner compares new trials
with new ones only, for an export has no figures of single splits. Studies that are there stay as they are.

predictions trains every completed trial again, and writes FOLDER/predictions/NAME-NETWORK/TRIAL.npz, which ensembles.py needs;
files that are there stay. The search has seed 0; with several seeds the class probabilities are their mean, so that a member of an
ensemble is itself one of seeds. On another machine, or after changes of the library, trainings differ by rounding, and their figures
as with another seed. Networks of train only, default: all.

Trials are numbered in the order of the export.
Needs numpy and optuna from PyPI.
"""
import concurrent.futures
import datetime
import os
import sys
import tempfile

import tune


class OutOfRange(ValueError):
    pass


def parameters(spaces, dataset, network, row):
    """What Spaces.suggest() drew for a row of an export, and the distributions of today's ranges."""
    import optuna
    words, given = row["options"].split(" "), {}
    for i, word in enumerate(words):
        if word.startswith("--"):
            alone = i + 1 == len(words) or words[i + 1].startswith("--")
            given[word] = True if alone else words[i + 1]
    searched = spaces.searched(dataset, network)
    unknown = [option for option in given if option not in searched]
    if unknown:
        raise OutOfRange(f"{unknown[0]} is not searched")
    values = {}
    for option, space in searched.items():
        if isinstance(space, list):
            as_text = {True: "True", False: "None", None: "None"}
            written = {str(as_text.get(v, v) if isinstance(v, bool) or v is None else v): v for v in reversed(space)}
            text = str(given.get(option))
            if text not in written:
                raise OutOfRange(f"{option} {text} is not one of {', '.join(map(str, space))}")
            values[option] = written[text]
        elif option in given:
            whole = isinstance(space["from"], int) and isinstance(space["to"], int) and "step" not in space
            values[option] = (int if whole else float)(given[option])
            if not space["from"] <= values[option] <= space["to"]:
                raise OutOfRange(f"{option} {given[option]} is not from {space['from']} to {space['to']}")
    trial = optuna.trial.FixedTrial(values)
    try:
        spaces.suggest(trial, dataset, network)
    except ValueError as error:
        raise OutOfRange(str(error)) from error
    return trial.params, trial.distributions


def restored_trial(spaces, dataset, network, row):
    import optuna
    params, distributions = parameters(spaces, dataset, network, row)
    state = optuna.trial.TrialState[row["state"].upper()]
    complete = state == optuna.trial.TrialState.COMPLETE
    attributes = {"command": tune.exported_command(spaces, dataset, network, row)}
    if complete:
        attributes["validation_loss"] = float(row["validation_loss"])
    trial = optuna.trial.create_trial(state=state, value=float(row["validation"]) if complete else None, params=params,
                                      distributions=distributions, user_attrs=attributes)
    trial.datetime_start = trial.datetime_complete - datetime.timedelta(seconds=float(row["seconds"]))
    return trial


def trials(arguments, spaces, dataset, network):
    if tune.open_study(arguments, dataset, network, create=False) is not None:
        print(f"{dataset:12} {network:24} there already", flush=True)
        return
    rows = tune.exported_trials(arguments.export, dataset, network)
    restored = []
    for number, row in enumerate(rows):
        try:
            restored.append(restored_trial(spaces, dataset, network, row))
        except OutOfRange as error:
            sys.exit(f"{tune.PROGRAM}: {os.path.join(arguments.export, dataset + '-trials.csv')}: {network}: "
                     f"trial {number}: {error} in {arguments.spaces}")
    if restored:
        tune.open_study(arguments, dataset, network, create=True).add_trials(restored)
    print(f"{dataset:12} {network:24} {len(restored):4} trials", flush=True)


def predictions(arguments, spaces, dataset, network):
    folder = tune.predictions_folder(arguments, dataset, network)
    os.makedirs(folder, exist_ok=True)
    numbered = [(number, row) for number, row in enumerate(tune.exported_trials(arguments.export, dataset, network))
                if row["state"] == "complete" and not os.path.exists(os.path.join(folder, f"{number}.npz"))]

    def train_again(number, row):
        import numpy
        words = tune.exported_command(spaces, dataset, network, row).split(" ")
        words[words.index("--dataset") + 1] = os.path.join(arguments.data, dataset + ".npz")
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            predicted = os.path.join(temporary, "predictions.npz")
            try:
                tune.train(arguments.train, [*words, "--splits", f"0-{tune.SPLITS - 1}", "--seeds", arguments.seeds,
                                             "--predictions", predicted], os.path.join(temporary, "report.json"))
            except tune.Diverged:
                return 0
            with numpy.load(predicted) as file:
                split, every = file["split"], file["probabilities"]
            probabilities = numpy.stack([every[split == s].mean(0) for s in range(tune.SPLITS)]).astype(numpy.float32)
            kept = os.path.join(temporary, "kept.npz")
            numpy.savez_compressed(kept, probabilities=probabilities)
            os.replace(kept, os.path.join(folder, f"{number}.npz"))
        return 1

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        trained = [pool.submit(train_again, *one) for one in numbered]
        count = sum(future.result() for future in trained)
    print(f"{dataset:12} {network:24} {len(numbered):4} trials trained again, {len(numbered) - count} diverged", flush=True)


def main():
    parser = tune.parser_of(__doc__, ["trials", "predictions"])
    parser.set_defaults(seeds="0")
    parser.add_argument("--export", required=True)
    parser.add_argument("--train", default=os.path.join(tune.FOLDER_OF_THIS, "..", "build", "release", "examples", "train"))
    arguments = parser.parse_args()
    if not os.path.isdir(arguments.export):
        sys.exit(f"{tune.PROGRAM}: --export: {arguments.export} is not a folder")
    if arguments.what == "predictions" and (arguments.data is None or not os.access(arguments.train, os.X_OK)):
        sys.exit(f"{tune.PROGRAM}: " + ("--data is missing: the folder of the .npz files" if arguments.data is None else
                                        f"--train: {arguments.train} is not an executable file"))
    both = [tune.Spaces(arguments.spaces)]
    if arguments.what == "trials":
        both.append(tune.Spaces(arguments.spaces, "baselines"))
    tune.numbers_of("--seeds", arguments.seeds)
    os.makedirs(arguments.folder, exist_ok=True)
    names = [name for spaces in both for name in spaces.names()]
    networks = arguments.networks.split(",") if arguments.networks else names
    for dataset in arguments.datasets.split(","):
        for network in networks:
            spaces = next((one for one in both if network in one.names()), both[0])
            spaces.network(network)
            try:
                (trials if arguments.what == "trials" else predictions)(arguments, spaces, dataset, network)
            except tune.Failed as error:
                sys.exit(f"{tune.PROGRAM}: {error}")


if __name__ == "__main__":
    main()
