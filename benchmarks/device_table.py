#!/usr/bin/env python3
"""Accuracies of trainings on a GPU beside accuracies on the CPU, from the reports of docs/results/run.sh.

usage: device_table.py DEVICE CPU

DEVICE  folder of the reports that DEVICE=cuda SEEDS=0-9 docs/results/run.sh has written
CPU     folder of the reports of the CPU, of seed 0 (docs/results)

Per graph and family: test accuracy on the GPU, mean and standard deviation over splits and seeds; means over the splits
of seed 0 on the GPU and on the CPU, which draw the same numbers; the seconds of all trainings, reading the graph and
writing the report included; and the microseconds of an epoch, by the number of trainings.
"""
import json
import pathlib
import statistics
import sys

FAMILIES = ["diagonal", "special-orthogonal", "general-linear"]


def percent(values):
    return f"{100 * statistics.fmean(values):.1f}" if values else "–"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    device, cpu = map(pathlib.Path, sys.argv[1:])
    graphs = list(dict.fromkeys(file.name.split("-")[0] for file in sorted(device.glob("*-*.json"))))
    if not graphs:
        sys.exit(f"device_table.py: {device} has no reports")
    print("| graph | maps | trainings | GPU | GPU, seed 0 | CPU, seed 0 | seconds | µs per epoch and "
          "training |\n" + "| --- " * 8 + "|")
    seconds = 0
    for graph in graphs:
        for family in FAMILIES:
            file = device / f"{graph}-{family}.json"
            if not file.exists():
                continue
            report = json.loads(file.read_text())
            runs = report["splits"]
            accuracies = [run["test_accuracy"] for run in runs]
            first = [run["test_accuracy"] for run in runs if run.get("seed", 0) == 0]
            there = cpu / file.name
            mean = [json.loads(there.read_text())["test_accuracy"]["mean"]] if there.exists() else []
            seconds += report["run"]["seconds"]
            print(f"| {graph} | {family} | {len(runs)} | {percent(accuracies)} ± "
                  f"{100 * statistics.pstdev(accuracies):.1f} | {percent(first)} | {percent(mean)} | "
                  f"{report['run']['seconds']:.1f} | {1e6 * report['seconds_per_epoch']['all']:.3g} |")
    print(f"\nSeconds of all: {seconds:.0f}.")


if __name__ == "__main__":
    main()
