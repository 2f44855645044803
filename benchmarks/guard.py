#!/usr/bin/env python3
"""Are epochs of the working tree as fast as of another revision? Runs both programs `epochs` in turn on this machine.

usage: guard.py REVISION [CELLS] [--data DATA] [--threads N] [--rounds R] [--seconds S] [--new PROGRAM] [--old PROGRAM]

REVISION  of git, e.g. the last release; its epochs are built in build/guard/REVISION, a few minutes the first time
CELLS     GRAPH/MODEL/MAPS, separated by commas; default: ten
--data    folder with texas.npz, cora.npz, film.npz; without: synthetic graphs
--new     default: target epochs of preset release, built first
--old     another program instead of the revision's

A ratio is old time / new time, so that more than 1 is faster. Of every cell the programs take turns for R rounds (default 8) of S
seconds (default 1), and the order within a round alternates. Printed: medians, the median of the rounds' ratios, and its spread,
half the distance between their quartiles. Exit status 1 where a median ratio plus its spread is below 0.97.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

from epoch_runs import ROOT, git, run_epochs

CELLS = ("texas/nsd/diagonal,texas/nsd/special-orthogonal,texas/bsnn/diagonal,texas/bsnn/general-linear,"
         "cora/nsd/diagonal,cora/nsd/general-linear,cora/bsnn/special-orthogonal,"
         "film/nsd/special-orthogonal,film/bsnn/diagonal,film/bsnn/general-linear")
LIMIT = 0.97


def build(folder: pathlib.Path) -> pathlib.Path:
    """Target epochs of preset release of a source folder."""
    print(f"building epochs in {folder} ...", file=sys.stderr, flush=True)
    for command in (["cmake", "--preset", "release", "-DSHEAFNN_BUILD_BENCHMARKS=ON"],
                    ["cmake", "--build", "--preset", "release", "--target", "epochs"]):
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}\nguard.py: {' '.join(command)} failed in {folder}")
    return folder / "build/release/benchmarks/epochs"


def build_revision(revision: str) -> pathlib.Path:
    """The program of a revision, in a worktree below build/ that later calls use again."""
    try:
        commit = git("rev-parse", "--verify", "--short", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError:
        sys.exit(f"guard.py: REVISION: git knows no commit '{revision}'")
    folder = ROOT / "build/guard" / commit
    if not folder.exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", str(folder), commit)
    return build(folder)


def quartile_spread(values: list[float]) -> float:
    """Half the distance between the quartiles."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("cells", nargs="?", default=CELLS)
    parser.add_argument("--data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--new", type=pathlib.Path)
    parser.add_argument("--old", type=pathlib.Path)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: must be at least 2")
    data = options.data and os.path.abspath(options.data)
    programs = {"old": options.old or build_revision(options.revision), "new": options.new or build(ROOT)}
    for name, program in programs.items():
        if not program.exists():
            sys.exit(f"guard.py: --{name}: {program} does not exist")
    cells = options.cells.split(",")
    print("| cell | old, ms | new, ms | old / new | spread |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    medians, slower = [], []
    for cell in cells:
        times: dict[str, list[float]] = {name: [] for name in programs}
        for number in range(options.rounds):
            for name in sorted(programs, reverse=number % 2 == 1):
                found = run_epochs(programs[name], cell, data, options.threads, options.seconds)
                if cell not in found:
                    sys.exit(f"guard.py: CELLS: the {name} program has no cell '{cell}'")
                times[name].append(found[cell])
        ratios = [old / new for old, new in zip(times["old"], times["new"])]
        ratio, spread = statistics.median(ratios), quartile_spread(ratios)
        medians.append(ratio)
        if ratio + spread < LIMIT:
            slower.append(cell)
        print(f"| {cell} | {statistics.median(times['old']):.3g} | {statistics.median(times['new']):.3g} | {ratio:.3f} | "
              f"{spread:.3f} |", flush=True)
    print(f"\nGeometric mean {statistics.geometric_mean(medians):.3f}, smallest {min(medians):.3f} ({len(cells)} cells); load average "
          f"{os.getloadavg()[0]:.2f}.")
    if slower:
        print(f"Slower than {LIMIT} by more than the spread: {', '.join(slower)}.")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
