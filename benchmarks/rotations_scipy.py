"""Rotations per second: this library beside scipy, in one run on one core.

usage: rotations_scipy.py PROGRAM      PROGRAM: build/release/benchmarks/rotation_rates

Runs scipy.stats.special_ortho_group.rvs and scipy.spatial.transform.Rotation.random before and after the program, takes the
faster of the two, and prints rates and ratios. Needs numpy and scipy.
"""
import json
import os
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import special_ortho_group


def rate(draw, count, seconds=1.0):
    """Best rate of repeated draws of `count` rotations."""
    draw(count)
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        draw(count)
        best = max(best, count / (time.perf_counter() - start))
    return best


def one_by_one(dimension, rng):
    def draw(count):
        for _ in range(count):
            special_ortho_group.rvs(dimension, random_state=rng)

    return draw


def scipy_rates():
    rng = np.random.default_rng(0)
    return {
        "special_ortho_group.rvs(3)": rate(lambda n: special_ortho_group.rvs(3, size=n, random_state=rng), 2000),
        "special_ortho_group.rvs(3) one by one": rate(one_by_one(3, rng), 300),
        "special_ortho_group.rvs(8) one by one": rate(one_by_one(8, rng), 300),
        "special_ortho_group.rvs(8)": rate(lambda n: special_ortho_group.rvs(8, size=n, random_state=rng), 1000),
        "Rotation.random as matrices": rate(lambda n: Rotation.random(n, random_state=rng).as_matrix(), 100000),
    }


def main(program):
    before = scipy_rates()
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.2", "--benchmark_repetitions=3"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = scipy_rates()
    scipy = {name: max(before[name], after[name]) for name in before}
    own = {}
    for run in report["benchmarks"]:
        if run.get("run_type") == "iteration":
            own[run["run_name"]] = max(own.get(run["run_name"], 0.0), run["items_per_second"])
    print("million rotations per second, best of three")
    for name, value in scipy.items():
        print("  scipy %-38s %10.4f" % (name, value / 1e6))
    for name, value in own.items():
        print("  sheafnn %-36s %10.4f" % (name, value / 1e6))
    print("ratios")
    for n, goal in ((3, 100), (8, 20)):
        theirs = scipy["special_ortho_group.rvs(%d)" % n]
        for name in ("uniform<%d, float>" % n, "uniform<%d, double>" % n, "uniform_matrices<%d, double>" % n, "cayley<%d, double>" % n):
            print("  %-30s / special_ortho_group.rvs(%d)  %8.1f   (goal %d; one by one %.0f)"
                  % (name, n, own[name] / theirs, goal, own[name] / scipy["special_ortho_group.rvs(%d) one by one" % n]))
    for name in ("uniform<3, float>", "uniform<3, double>", "uniform_matrices<3, double>"):
        print("  %-30s / Rotation.random             %8.1f" % (name, own[name] / scipy["Rotation.random as matrices"]))
    for scalar in ("float", "double"):
        for name in ("uniform<3, %s>" % scalar, "cayley<3, %s>" % scalar):
            share = own[name] / own["normals<%s, 4>" % scalar]
            print("  %-30s / four normal numbers         %8.2f   (goal 0.5)" % (name, share))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
