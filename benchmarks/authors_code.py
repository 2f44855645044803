#!/usr/bin/env python3
"""Milliseconds of an epoch of the authors' PyTorch code, in the setting of epochs.cpp, for every cell of its table.

usage: authors_code.py NSD BSNN DATA [--threads N] [--device DEVICE] [--ours FILE] [--seconds S]
                       [--models TEXT]

NSD    checkout of github.com/twitter-research/neural-sheaf-diffusion
BSNN   checkout of github.com/patrick-gillespie/bsnn
DATA   folder with texas.npz, cora.npz, film.npz (see README.md)
--ours FILE  epochs.json of epochs.cpp (benchmarks/run.sh writes build/release/benchmarks/epochs.json): adds the ratios
--models TEXT  only those whose name contains the text
--device cuda  on the GPU; FILE is then results/epochs.json of run_gpu.sh

Runs in an interpreter that has what those checkouts import: PyTorch, torch_geometric, torch_sparse, torch_scatter,
torch_householder, torchdiffeq, GitPython; without the compiled ones of these, see provide_missing(). An epoch is their
own train() and test() of exp/run.py, the latter with three posterior samples for BSNN; the median of at least ten
epochs, and of S seconds (default 10), after three to warm up. One process per cell, measured one after another.
"""
import argparse
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
import types

GRAPHS = ["texas", "cora", "film"]
# Name of epochs.cpp, --model of exp/run.py, class.
MODELS = [("nsd/diagonal", "DiagSheaf", "DiscreteDiagSheafDiffusion"),
          ("nsd/special-orthogonal", "BundleSheaf", "DiscreteBundleSheafDiffusion"),
          ("nsd/general-linear", "GeneralSheaf", "DiscreteGeneralSheafDiffusion"),
          ("bsnn/diagonal", "BayesDiagSheaf", "BayesDiagSheafDiffusion"),
          ("bsnn/special-orthogonal", "BayesBundleSheaf", "BayesBundleSheafDiffusion"),
          ("bsnn/general-linear", "BayesGeneralSheaf", "BayesGeneralSheafDiffusion")]


def load(file, device, scale_rows=True):
    """The features, edges and first split of an .npz file, as the authors' loaders prepare them: rows with sum 1."""
    import numpy as np
    import torch
    import torch_geometric.transforms as transforms
    from torch_geometric.data import Data
    from torch_geometric.utils import coalesce, remove_self_loops, to_undirected
    z = np.load(file)
    x = torch.tensor(z["node_features"], dtype=torch.float32)
    edges = to_undirected(torch.tensor(z["edges"], dtype=torch.long).t().contiguous(), num_nodes=x.size(0))
    edges = coalesce(remove_self_loops(edges)[0], num_nodes=x.size(0))
    data = Data(x=x, edge_index=edges, y=torch.tensor(z["node_labels"], dtype=torch.long))
    for part in ("train", "val", "test"):
        data[part + "_mask"] = torch.tensor(z[part + "_masks"][0], dtype=torch.bool)
    return (transforms.NormalizeFeatures()(data) if scale_rows else data).to(device)


def provide_missing():
    """Stand-ins for compiled packages that a new PyTorch does not have yet: the functions that the authors call.

    torch_scatter and torch_sparse write scatter_add and spmm in PyTorch too; torch_householder's one function is
    torch.linalg.householder_product with tau = 2 / |v|^2, which on a GPU takes one matrix after another: there a product
    of reflections.
    """
    import importlib.util
    import torch
    import torch_geometric  # noqa: F401  (first: it looks for torch_sparse itself, and does without)

    def scatter_add(src, index, dim=-1, dim_size=None):
        dim %= src.dim()
        if index.dim() == 1:
            index = index.view([-1 if i == dim else 1 for i in range(src.dim())])
        index = index.expand(src.size())
        size = [dim_size if i == dim else n for i, n in enumerate(src.size())]
        return torch.zeros(size, dtype=src.dtype, device=src.device).scatter_add_(dim, index, src)

    def spmm(index, value, rows, _columns, matrix):
        products = matrix.index_select(-2, index[1]) * value.unsqueeze(-1)
        return scatter_add(products, index[0], dim=-2, dim_size=rows)

    def torch_householder_orgqr(vectors):
        vectors = vectors.tril(-1)
        tau = 2 / (1 + (vectors * vectors).sum(-2))
        if not vectors.is_cuda:
            return torch.linalg.householder_product(vectors, tau)
        identity = torch.eye(*vectors.shape[-2:], dtype=vectors.dtype, device=vectors.device)
        vectors, product = vectors + identity, identity
        for k in reversed(range(vectors.size(-1))):
            v = vectors[..., k:k + 1]
            product = product - tau[..., k, None, None] * v * (v * product).sum(-2, keepdim=True)
        return product

    for name, functions in [("torch_scatter", {"scatter_add": scatter_add}),
                            # SparseTensor, coalesce: imported by the authors, not used.
                            ("torch_sparse", {"spmm": spmm, "SparseTensor": type("SparseTensor", (), {}),
                                              "coalesce": None}),
                            ("torch_householder", {"torch_householder_orgqr": torch_householder_orgqr})]:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            module = types.ModuleType(name)
            vars(module).update(functions)
            sys.modules[name] = module
            print(f"authors_code.py: no {name}; its functions in PyTorch instead", file=sys.stderr)


def measure(options, graph, model, begin):
    """Seconds of every epoch of one cell, in this process; begin() is called when all is prepared."""
    import torch
    torch.set_num_threads(options.threads)
    provide_missing()
    name, argument, network = next(m for m in MODELS if m[0] == model)
    bayesian = name.startswith("bsnn")
    data = load(os.path.join(os.path.abspath(options.data), graph + ".npz"), options.device)
    folder = os.path.abspath(options.bsnn if bayesian else options.nsd)
    sys.path.insert(0, folder)
    os.chdir(folder)
    sys.modules["wandb"] = types.ModuleType("wandb")  # logging, not used by train() and test()
    sys.argv = ["run.py"]
    import exp.run as run
    settings = ["--model", argument, "--dataset", graph, "--d", "3", "--layers", "4", "--hidden_channels", "16",
                "--input_dropout", "0.5", "--dropout", "0.3", "--add_lp", "False", "--add_hp", "False",
                "--second_linear", "False", "--normalised", "True", "--deg_normalised", "False",
                "--orth", "householder", "--sheaf_act", "tanh", "--edge_weights", "True", "--left_weights", "True",
                "--right_weights", "True", "--use_act", "True", "--linear", "False", "--sparse_learner", "False"]
    if bayesian:
        settings += ["--use_kl", "True", "--num_ensemble", "3", "--sheaf_use_deg", "False"]
    args = vars(run.get_parser().parse_args(settings))
    args.update(bayes_model=bayesian, graph_size=data.x.size(0), input_dim=data.x.size(1),
                output_dim=int(data.y.max()) + 1, device=torch.device(options.device), sheaf_decay=args["weight_decay"])
    torch.manual_seed(args["seed"])
    net = getattr(run, network)(data.edge_index, args).to(options.device)
    sheaf, other = net.grouped_parameters()
    adam = torch.optim.Adam([{"params": sheaf, "weight_decay": args["sheaf_decay"]},
                             {"params": other, "weight_decay": args["weight_decay"]}], lr=args["lr"])
    begin()
    seconds, started, epoch = [], None, 0
    while len(seconds) < 10 or now(options.device) - started < options.seconds:
        start = now(options.device)
        run.train(net, adam, data, *((args, epoch) if bayesian else ()))
        run.test(net, data, *((args,) if bayesian else ()))
        epoch += 1
        if epoch <= 3:
            started = now(options.device)
        else:
            seconds.append(now(options.device) - start)
    return seconds


def own_milliseconds(file):
    """The median milliseconds of this library, by GRAPH/MODEL: of Google Benchmark's files or of run_gpu.sh's."""
    with open(file, encoding="utf-8") as stream:
        report = json.load(stream)
    if "benchmarks" in report:
        return {row["name"].removesuffix("/manual_time"): row["median_ms"] for row in report["benchmarks"]}
    filters = report["section"] == "filters"
    return {row["name"].replace("nsd/", "polynomial/") if filters else row["name"]: row["median_us"] / 1000
            for row in report["measurements"]}


def now(device):
    """Seconds, when the device has done its work."""
    import torch
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def send_median(pipe, measure, options, graph, model):
    """The work of a process: the median seconds of a cell's epochs, measured when the other end says so."""
    def begin():
        pipe.send(None)  # prepared
        pipe.recv()  # its turn

    pipe.send(statistics.median(measure(options, graph, model, begin)))


def received(pipe):
    """What a process sends; NaN when it has ended without."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return math.nan


def all_cells(measure, options, cells):
    """Median milliseconds of the cells, in their order; NaN where one fails.

    On the CPU processes are forked one after another from this one, which has imported PyTorch. With CUDA, which does not
    survive a fork, they import it themselves, side by side, and are measured when all of a group are prepared.
    """
    context = multiprocessing.get_context("fork" if options.device == "cpu" else "spawn")
    together = 1 if options.device == "cpu" else 9
    for first in range(0, len(cells), together):
        group = cells[first:first + together]
        processes = []
        for cell in group:
            pipe, other = context.Pipe()
            process = context.Process(target=send_median, args=(other, measure, options, *cell))
            process.start()
            other.close()
            processes.append((process, pipe))
        prepared = [received(pipe) is None for _, pipe in processes]
        for (graph, model), (process, pipe), good in zip(group, processes, prepared):
            if good:
                pipe.send(None)
            seconds = received(pipe) if good else math.nan
            if math.isnan(seconds):
                print(f"{graph}, {model}: failed, see above", file=sys.stderr)
            process.join()
            yield 1000 * seconds


def run(description, checkouts, models, measure):
    """The command line of a script: prints the table of all cells.

    checkouts: names of the positional arguments before DATA; measure(options, graph, model, begin): seconds of every
    epoch.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in [*checkouts, "data"]:
        parser.add_argument(name)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ours")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", default="")
    options = parser.parse_args()
    models = [model for model in models if options.models in model]
    ours = own_milliseconds(options.ours) if options.ours else {}
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    import torch_geometric  # noqa: F401  (once, for the processes that are forked)
    print("|  | " + " | ".join(models) + " |")
    print("| --- " * (len(models) + 1) + "|", flush=True)
    ratios, failed = [], False
    results = all_cells(measure, options, [(graph, model) for graph in GRAPHS for model in models])
    for graph in GRAPHS:
        texts = []
        for model in models:
            milliseconds = next(results)
            failed = failed or math.isnan(milliseconds)
            texts.append(f"{milliseconds:.3g}")
            own = ours.get(f"{graph}/{model}")
            if own and not math.isnan(milliseconds):
                ratios.append(milliseconds / own)
                texts[-1] += f" → {own:.3g} ({ratios[-1]:.3g}×)"
        print(f"| {graph} | " + " | ".join(texts) + " |", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
        print(f"\nGeometric mean of the ratios {mean:.3g}, smallest {min(ratios):.3g} ({len(ratios)} cells).")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    run(__doc__, ["nsd", "bsnn"], [m[0] for m in MODELS], measure)
