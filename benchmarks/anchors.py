#!/usr/bin/env python3
"""The epochs of epochs.cpp beside the same networks in JAX, in PyTorch and in PyTorch with torch.compile, in turn on one machine.

usage: anchors.py [--data DATA] [--epochs PROGRAM] [--threads N] [--rounds R] [--seconds S] [--cells TEXT,...]
                  [--frameworks NAME,...] [--out FILE]
       anchors.py --check [--frameworks NAME,...]

--data DATA     folder with texas.npz, cora.npz, film.npz; without: synthetic graphs of the same sizes
--epochs FILE   default build/release/benchmarks/epochs (cmake --preset release -DSHEAFNN_BUILD_BENCHMARKS=ON, target epochs)
--cells TEXTS   only cells GRAPH/MODEL/MAPS whose name contains one of the texts
--frameworks    default: jax,torch,compile; compile is PyTorch with torch.compile
--out FILE      default build/anchors.json: figures, machine, date, commit, versions and load average
--check         compares both frameworks with outputs, losses and gradients of tests/golden, which the library's tests read too

An epoch is a training step and an evaluation, three samples for BSNN, whose losses and accuracies the caller reads. Of every
cell the four programs take turns for R rounds (default 3) of S seconds (default 2), at least five epochs and in JAX and PyTorch at
most 200: in single precision the loss of these networks may become NaN after a thousand. Figures are medians of the rounds' medians.
Compilation comes before, and is listed apart.

The networks are written once (anchor_network.py), for whole arrays: no loop over edges; sums over sorted arcs, forward and
backward; products with the non-zero features; matrix roots by arithmetic of whole arrays. In JAX an epoch is one compiled
function, whose state is donated.

Needs numpy, jax and torch from PyPI in one interpreter, and for torch.compile a C++ compiler.
"""
import argparse
import datetime
import json
import math
import multiprocessing
import os
import pathlib
import platform
import statistics
import sys
import time
from typing import Any

import numpy as np

import anchor_network
from anchor_network import FAMILIES, Graph, Setting
from epoch_runs import ROOT, machine, run_epochs

GRAPHS = ["texas", "cora", "film"]
FRAMEWORKS = {"jax": "JAX", "torch": "PyTorch", "compile": "torch.compile"}


class GivenDraws:
    """The noise of a golden file, without dropout."""
    training = False

    def __init__(self, arrays: Any):
        self.arrays = arrays

    @staticmethod
    def keep(shape: tuple[int, ...], rate: float) -> None:
        return None

    def normal(self, layer: int, shape: tuple[int, ...]) -> Any:
        return self.arrays[f"noise.{layer}"]

    def quaternion(self, layer: int, arcs: int) -> Any:
        return self.arrays[f"noise.{layer}"]


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """Of rotations, n × 3 × 3: eigenvectors of the matrix whose largest eigenvalue belongs to the quaternion."""
    r = rotations
    k = np.empty((len(r), 4, 4))
    off = r - r.swapaxes(1, 2)
    k[:, 0, 0] = np.trace(r, axis1=1, axis2=2)
    k[:, 0, 1:] = k[:, 1:, 0] = np.stack([off[:, 2, 1], off[:, 0, 2], off[:, 1, 0]], 1)
    k[:, 1:, 1:] = r + r.swapaxes(1, 2) - k[:, 0, 0, None, None] * np.eye(3)
    return np.linalg.eigh(k)[1][:, :, 3]


def check(frameworks: list[str]) -> int:
    """Exit status 1 where the numbers of a framework differ from the numbers of a golden file."""
    failed = False
    for path in sorted((ROOT / "tests/golden").glob("*.npz")):
        arrays = np.load(path)
        d, channels, layers, low, high, bayesian, _, _, family = (int(number) for number in arrays["config"])
        if family == 1 and d != 3:
            continue  # quaternions are rotations of three dimensions
        setting = Setting(bool(bayesian), FAMILIES[family], arrays["log_probabilities"].shape[1], d, channels, layers,
                          (1,) * low + (-1,) * high)
        graph = Graph.of(arrays["edges"], arrays["features"], arrays["labels"], [arrays["train_mask"]] * 3)
        noise = {f"noise.{layer}": arrays[f"noise.{layer}"] for layer in range(layers) if bayesian}
        if family == 1:
            noise = {name: quaternions(value) for name, value in noise.items()}
        parameters = {name[6:]: arrays[name] for name in arrays.files if name.startswith("param.")}
        weight = float(arrays["kl_weight"])
        for name in frameworks:
            if name == "jax":
                import anchor_jax
                output, kl, loss, gradient = anchor_jax.check(graph, setting, parameters, GivenDraws(noise), weight)
            else:
                import anchor_torch
                output, kl, loss, gradient = anchor_torch.check(graph, setting, parameters, GivenDraws(noise), weight, name == "compile")
            outputs = max(np.abs(output - arrays["log_probabilities"]).max(), abs(kl - float(arrays["kl"])),
                          abs(loss - float(arrays["loss"])))
            gradients = max(np.abs(gradient[key] - arrays[f"grad.{key}"]).max() / max(1, np.abs(arrays[f"grad.{key}"]).max())
                            for key in parameters)
            good = outputs < 1e-10 and gradients < 1e-8
            failed |= not good
            print(f"{path.stem:14} {FRAMEWORKS[name]:14} outputs {outputs:.1e}, gradients {gradients:.1e}{'' if good else '  WRONG'}", flush=True)
    return int(failed)


def work(pipe: Any, framework: str, data: str | None, cell: str, threads: int) -> None:
    """A process with one framework and one cell: sends the seconds of the first epoch, then for every number of seconds that it
    receives the seconds of epochs."""
    name, model, maps = cell.split("/")
    graph = anchor_network.load(pathlib.Path(data) / f"{name}.npz") if data else anchor_network.twin(name)
    setting = Setting(model == "bsnn", maps, int(graph.labels.max()) + 1)
    samples = 3 if setting.bayesian else 1
    start = time.perf_counter()
    if framework == "jax":
        import anchor_jax
        run = anchor_jax.epochs(graph, setting, samples)
    else:
        import anchor_torch
        import torch
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        run = anchor_torch.epochs(graph, setting, samples, framework == "compile")
    run(0)
    pipe.send(time.perf_counter() - start)
    number = 1
    for _ in range(3):
        run(number)
        number += 1
    while (seconds := pipe.recv()) is not None:
        times: list[float] = []
        while len(times) < 5 or (sum(times) < seconds and len(times) < 200):
            before = time.perf_counter()
            figures = run(number)
            times.append(time.perf_counter() - before)
            number += 1
        if not math.isfinite(figures[0]):
            raise ArithmeticError(f"{cell} in {framework}: the loss is {figures[0]} after {number} epochs")
        pipe.send(times)


def measure(cell: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a cell."""
    context = multiprocessing.get_context("spawn")
    workers = {}
    preparation = {}
    for framework in options.frameworks:
        pipe, other = context.Pipe()
        process = context.Process(target=work, args=(other, framework, options.data, cell, options.threads), daemon=True)
        process.start()
        other.close()
        workers[framework] = process, pipe
        try:
            preparation[framework] = pipe.recv()
        except EOFError:
            sys.exit(f"anchors.py: {cell} in {FRAMEWORKS[framework]} failed, see above")
    rounds: dict[str, list[float]] = {name: [] for name in ["sheafnn", *workers]}
    for _ in range(options.rounds):
        rounds["sheafnn"].append(run_epochs(options.epochs, cell, options.data, options.threads, options.seconds)[cell])
        for framework, (_, pipe) in workers.items():
            try:
                pipe.send(options.seconds)
                rounds[framework].append(1000 * statistics.median(pipe.recv()))
            except (EOFError, BrokenPipeError):
                sys.exit(f"anchors.py: {cell} in {FRAMEWORKS[framework]} failed, see above")
    for process, pipe in workers.values():
        pipe.send(None)
        process.join()
    return {"cell": cell, "ms": {name: statistics.median(values) for name, values in rounds.items()}, "rounds_ms": rounds,
            "first_epoch_s": preparation, "load_average": os.getloadavg()[0]}


def version(module: str) -> str:
    from importlib import metadata
    return metadata.version(module)


def row(result: dict[str, Any], frameworks: list[str]) -> str:
    own = result["ms"]["sheafnn"]
    cells = [result["cell"].replace("/", " | "), f"{own:.3g}"]
    cells += [f"{result['ms'][name]:.3g} ({result['ms'][name] / own:.3g}×)" for name in frameworks]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--data")
    parser.add_argument("--epochs", type=pathlib.Path, default=ROOT / "build/release/benchmarks/epochs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cells", default="")
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/anchors.json")
    options = parser.parse_args()
    # XLA and OpenMP take as many threads as there are processors for the process.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    options.frameworks = options.frameworks.split(",")
    for name in options.frameworks:
        if name not in FRAMEWORKS:
            parser.error(f"--frameworks: {name}: must be {', '.join(FRAMEWORKS)}")
    if options.check:
        return check(options.frameworks)
    if not options.epochs.exists():
        sys.exit(f"anchors.py: --epochs: {options.epochs} does not exist")
    options.data = options.data and os.path.abspath(options.data)
    cells = [f"{graph}/{model}/{maps}" for graph in GRAPHS for model in ("nsd", "bsnn") for maps in FAMILIES]
    cells = [cell for cell in cells if any(text in cell for text in options.cells.split(","))]
    if not cells:
        parser.error(f"--cells: no cell GRAPH/MODEL/MAPS contains {options.cells}")
    report: dict[str, Any] = {
        **machine(), "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("numpy", "jax", "torch")}},
        "graphs": "public" if options.data else "synthetic", "threads": options.threads, "rounds": options.rounds,
        "seconds": options.seconds, "load_average_before": os.getloadavg()[0], "cells": []}
    print("| graph | network | maps | sheafnn, ms | " + ", ms | ".join(FRAMEWORKS[name] for name in options.frameworks) + ", ms |")
    print("| --- | --- | --- " + "| ---: " * (1 + len(options.frameworks)) + "|", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for cell in cells:
        result = measure(cell, options)
        report["cells"].append(result)
        print(row(result, options.frameworks), flush=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print()
    for name in options.frameworks:
        ratios = [result["ms"][name] / result["ms"]["sheafnn"] for result in report["cells"]]
        first = [result["first_epoch_s"][name] for result in report["cells"]]
        print(f"{FRAMEWORKS[name]}: sheafnn is {statistics.geometric_mean(ratios):.3g} times as fast in the geometric mean, "
              f"{min(ratios):.3g} at least; the first epoch took {min(first):.3g} to {max(first):.3g} s.")
    loads = [result["load_average"] for result in report["cells"]]
    print(f"Load average {report['load_average_before']:.2f} before, {min(loads):.2f} to {max(loads):.2f} during the run.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
