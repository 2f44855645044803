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
import datetime
import os
import re
import sys
import tempfile

import tune


class OutOfRange(ValueError):
    pass


def parameters(spaces, dataset, network, row):
    """What Spaces.suggest() drew for a row of an export, and the distributions of today's ranges."""
    import optuna
    given = {}  # option: its words in the row
    for word in row["options"].split(" "):
        if word.startswith("--"):
            option = word
        given[option] = f"{given[option]} {word}" if option in given else word
    searched = spaces.searched(dataset, network)
    unknown = [option for option in given if option not in searched]
    if unknown:
        raise OutOfRange(f"{unknown[0]} is not searched")
    values = {}
    for option, space in searched.items():
        if isinstance(space, list):
            written = {" ".join(tune.command_line({option: value})): value for value in reversed(space)}
            if given.get(option, "") not in written:
                raise OutOfRange(f"{given.get(option, 'no ' + option)} is not one of {', '.join(map(str, space))}")
            values[option] = written[given.get(option, "")]
        elif option in given:
            text = given[option].removeprefix(option + " ")
            values[option] = int(text) if re.fullmatch("-?[0-9]+", text) and isinstance(space["from"], int) else float(text)
            if not space["from"] <= values[option] <= space["to"]:
                raise OutOfRange(f"{given[option]} is not from {space['from']} to {space['to']}")
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
    import numpy
    folder = tune.predictions_folder(arguments, dataset, network)
    os.makedirs(folder, exist_ok=True)
    numbered = [(number, row) for number, row in enumerate(tune.exported_trials(arguments.export, dataset, network))
                if row["state"] == "complete" and not os.path.exists(os.path.join(folder, f"{number}.npz"))]

    diverged = 0
    for number, row in numbered:
        command = tune.exported_command(spaces, dataset, network, row)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            predicted, kept = (os.path.join(temporary, name) for name in ("predictions.npz", "kept.npz"))
            try:
                tune.train_with_seeds(arguments, command.split(" "), spaces.fixed(dataset, network)["--stop-on"],
                                      os.path.join(temporary, "report.json"), "--predictions", predicted)
            except tune.Diverged:
                diverged += 1
                continue
            with numpy.load(predicted) as file:
                split, every = file["split"], file["probabilities"]
            probabilities = numpy.stack([every[split == s].mean(0) for s in range(tune.SPLITS)]).astype(numpy.float32)
            numpy.savez_compressed(kept, probabilities=probabilities)
            os.replace(kept, os.path.join(folder, f"{number}.npz"))
    print(f"{dataset:12} {network:24} {len(numbered):4} trials trained again, {diverged} diverged", flush=True)


def main():
    parser = tune.parser_of(__doc__, ["trials", "predictions"])
    parser.set_defaults(seeds="0")
    parser.add_argument("--export", required=True)
    parser.add_argument("--train", default=os.path.join(tune.FOLDER_OF_THIS, "..", "build", "release", "examples", "train"))
    arguments = parser.parse_args()
    if not os.path.isdir(arguments.export):
        sys.exit(f"{tune.PROGRAM}: --export: {arguments.export} is not a folder")
    tune.numbers_of("--seeds", arguments.seeds)
    both = [tune.Spaces(arguments.spaces), tune.Spaces(arguments.spaces, "baselines")]
    if arguments.what == "predictions":
        both = both[:1]
        if not os.access(arguments.train, os.X_OK):
            sys.exit(f"{tune.PROGRAM}: --train: {arguments.train} is not an executable file")
    os.makedirs(arguments.folder, exist_ok=True)
    if arguments.networks is None:
        arguments.networks = ",".join(name for spaces in both for name in spaces.names())
    of_train = [name for name in arguments.networks.split(",") if name not in both[-1].names() or len(both) == 1]
    datasets, _ = tune.datasets_and_networks(arguments, both[0], of_train)
    for dataset in datasets:
        for network in arguments.networks.split(","):
            spaces = both[0] if network in of_train else both[1]
            try:
                (trials if arguments.what == "trials" else predictions)(arguments, spaces, dataset, network)
            except tune.Failed as error:
                sys.exit(f"{tune.PROGRAM}: {error}")


if __name__ == "__main__":
    main()
