#!/usr/bin/env python3
"""Posteriors that the BSNN authors' PyTorch code learns, beside this library's, and what the maps are worth.

usage: authors_posterior.py BSNN DATA OUTPUT [--train PROGRAM] [--graphs NAME,...] [--maps NAME,...] [--rows NAME,...]
                            [--settings OPTIONS] [--epochs N] [--every N] [--fold K] [--samples S]

BSNN    checkout of github.com/patrick-gillespie/bsnn
DATA    folder of NAME.npz files with splits
OUTPUT  a JSON file; what it has already is not trained again
--train PROGRAM  default: build/release/examples/train; with the models SpecialOrthogonal_3, GeneralLinear_3, Diagonal_3
--graphs         default: texas,wisconsin,cornell,cora,citeseer,film
--maps           default: special-orthogonal,general-linear,diagonal
--rows           of theirs, theirs-no-kl, ours, ours-no-kl, default; all by default
--settings       NAME=VALUE,... of the options of their exp/run.py, d apart; the default is in the grid of their
                 config/webkb_small: d=3, two layers, 8 channels, dropout 0.3, rate 0.01, both fixed filters, KL term,
                 three samples
--epochs N       default: 160, four cycles of their annealing; early stopping after as many, so that none stops early
--every N        epochs between two evaluations of theirs (default: 5)
--fold K         split of the file (default: 0)
--samples S      samples of the posterior for the losses of theirs (default: 20)

Theirs: run_exp() of exp/run.py with their seed; between the evaluations it sees the last one. theirs-no-kl: without
--use_kl. ours and ours-no-kl: `train` with the same options, the published range of spread, and KL weights 1 and 0.
default: `train` without options of training. Figures belong to the epoch with the smallest validation loss, as
`train` reports them. For theirs the output also has the figures of the last epoch, without losses.

A forward pre-hook of their laplacian_builder reads the parameters that it draws maps from. For the sheaf score the hook
gives it other parameters: another edge's (both ends, a new permutation for every layer and sample), the prior,
or the identity. The noise is the same each time. Figures mean what `train` means by them
(sheafnn/bsnn/sheaf_use_figures.hpp). "Differ by" is the standard deviation over the incident pairs, root mean square
over the entries.

The interpreter needs what authors_code.py needs, and scipy.
"""
import argparse
import copy
import itertools
import json
import math
import os
import subprocess
import sys

from authors_results import CELLS, our_options, prepare, processes, seed_all, timed
from tune import write_json

# Maps of train, --model of exp/run.py, class.
FAMILIES = {"special-orthogonal": ("BayesBundleSheaf", "BayesBundleSheafDiffusion"),
            "general-linear": ("BayesGeneralSheaf", "BayesGeneralSheafDiffusion"),
            "diagonal": ("BayesDiagSheaf", "BayesDiagSheafDiffusion")}
GRID = {"d": 3, "layers": 2, "hidden_channels": 8, "dropout": 0.3, "input_dropout": 0.0, "lr": 0.01,
        "weight_decay": 5e-4, "add_hp": True, "add_lp": True, "num_ensemble": 3}
ROWS = {"theirs": "the authors' code", "theirs-no-kl": "without KL term", "ours": "this library, same settings",
        "ours-no-kl": "without KL term", "default": "this library, defaults"}


def quantiles(values):
    """As detail::sheaf_quantiles() of the library."""
    import numpy
    low, median, high = numpy.quantile(values, [0.05, 0.5, 0.95])
    return {"5%": float(low), "50%": float(median), "95%": float(high), "std": float(numpy.std(values))}


def deviation_between_rows(array):
    """The root mean square over the columns of their standard deviations."""
    import numpy
    array = numpy.asarray(array, dtype=float)
    return float(numpy.sqrt(array.reshape(len(array), -1).var(axis=0).mean()))


def reverse_arcs(arcs):
    """The row of the arc (v, u) for every row (u, v); each edge has both."""
    import numpy
    n = arcs.max() + 1
    order = numpy.argsort(arcs[:, 0] * n + arcs[:, 1])
    back = numpy.argsort(arcs[:, 1] * n + arcs[:, 0])
    reverse = numpy.empty(len(arcs), dtype=numpy.int64)
    reverse[back] = order
    return reverse


def transport_figures(arcs, maps):
    """Angles or signs of F_u^T F_v of the mean maps; maps: one per arc, matrices or diagonals."""
    import numpy
    maps = numpy.asarray(maps, dtype=float)
    forward = arcs[:, 0] < arcs[:, 1]
    from_maps, to_maps = maps[forward], maps[reverse_arcs(arcs)[forward]]
    figures = {"maps": deviation_between_rows(maps)}
    if maps.ndim == 2:
        figures["negative_share"] = float((from_maps * to_maps < 0).mean())
        return figures
    u, _, vt = numpy.linalg.svd(from_maps.transpose(0, 2, 1) @ to_maps)
    u[:, :, -1] *= numpy.sign(numpy.linalg.det(u @ vt))[:, None]
    cosine = (numpy.trace(u @ vt, axis1=1, axis2=2) - 1) / 2  # of R^3
    figures["turn_degrees"] = quantiles(numpy.degrees(numpy.arccos(numpy.clip(cosine, -1, 1))))
    return figures


class Reading:
    """The parameters that a network of theirs draws its maps from, and its outputs with others in their place."""

    def __init__(self, network, arcs):
        import torch
        self.network, self.rotations = network, "Bundle" in type(network).__name__
        self.reverse = torch.from_numpy(reverse_arcs(arcs))
        self.forward = torch.from_numpy(arcs[:, 0] < arcs[:, 1]).nonzero().squeeze(1)
        self.permutations = torch.Generator()
        self.change = lambda mean, spread: (mean, spread)
        network.laplacian_builder.register_forward_pre_hook(self.hook)

    def hook(self, _, arguments):
        self.mean, self.spread = arguments[0], arguments[1]
        return (*self.change(self.mean, self.spread), *arguments[2:])

    def permuted(self, mean, spread):
        import torch
        other = self.forward[torch.randperm(len(self.forward), generator=self.permutations)]
        source = torch.empty_like(self.reverse)
        source[self.forward], source[self.reverse[self.forward]] = other, self.reverse[other]
        return mean[source], spread[source]

    def prior(self, mean, spread):
        """gamma = 1: the uniform distribution; or the standard normal one."""
        return mean * 0, spread * 0 + 1

    def identity(self, mean, spread):
        """The same map everywhere: for rotations any one has the transports of the identity."""
        import torch
        if self.rotations or mean.size(1) == self.network.d:
            return mean * 0 + (0 if self.rotations else 1), spread * 0
        return torch.eye(self.network.d).flatten().expand_as(mean).contiguous(), spread * 0

    def loss(self, data, samples, change):
        """-log p(label) of every validation node, of probabilities averaged over samples; the same noise each time."""
        import torch
        seed_all(0)
        self.permutations.manual_seed(0)
        self.change = change
        self.network.eval()
        with torch.no_grad():
            outputs = torch.stack([self.network(data.x)[0].exp() for _ in range(samples)]).mean(0)
        self.change = lambda mean, spread: (mean, spread)
        true = outputs[data.val_mask].gather(1, data.y[data.val_mask, None]).squeeze(1)
        return -true.clamp_min(1e-30).double().log().numpy()

    def figures(self, data, arcs):
        """Of the parameters and the mean maps."""
        import torch
        self.network.eval()
        with torch.no_grad():
            kl = self.network(data.x)[1]
            name, spread, maps, d = "sigma", self.spread, self.mean, self.network.d
            if self.rotations:
                maps = self.network.laplacian_builder.orth_transform(self.mean)
                name, spread = "kappa", (1 - self.spread) / (1 + self.spread)
            elif maps.size(1) > d:
                maps = maps.view(-1, d, d)
        return {"kl_per_pair": float(kl), "spread": {name: quantiles(spread.numpy().ravel())},
                "parameters": deviation_between_rows(self.mean.numpy()), **transport_figures(arcs, maps.numpy())}

    def score(self, data, samples):
        """The loss with the learned maps, and its rise with others."""
        own = self.loss(data, samples, self.change)
        result = {"nodes": len(own), "loss": float(own.mean())}
        for name in ("permuted", "prior", "identity"):
            rise = self.loss(data, samples, getattr(self, name)) - own
            result[name] = {"rise": float(rise.mean()),
                            "standard_error": float(rise.std(ddof=1) / math.sqrt(len(rise)))}
        return result


def read_theirs(options, cell, fold, samples):
    """Figures of the epoch with the smallest validation loss, and of the last one, in this process."""
    run, arguments, data, model_class = prepare(options, cell)
    networks, best = [], {"loss": math.inf}

    def build(*words):
        networks.append(model_class(*words))
        return networks[-1]

    test = run.test

    def watched(*words):
        best["epoch"] = epoch = best.get("epoch", -1) + 1
        if epoch == 0 or (epoch + 1) % options.every == 0:
            best["result"] = result = test(*words)
            if (loss := float(result[2][1])) < best["loss"]:
                best.update(loss=loss, at=epoch, state=copy.deepcopy(words[0].state_dict()), test=result[0][2])
        return best["result"]

    run.test = watched
    seed_all(arguments["seed"])
    run.run_exp(arguments, [data], build, fold)
    arcs = data.edge_index.t().numpy()
    reading = Reading(networks[0], arcs)
    last = {"epoch": best["epoch"], "test_accuracy": best["result"][0][2], **reading.figures(data, arcs)}
    networks[0].load_state_dict(best["state"])
    return {"epoch": best["at"], "test_accuracy": best["test"], **reading.figures(data, arcs),
            **reading.score(data, samples), "last": last}


def read_ours(options, cell, row):
    """The figures that `train` reports, and figures of the sheaf that it writes."""
    import numpy
    _, graph, model, _, settings = CELLS[cell]
    maps = next(name for name, (argument, _) in FAMILIES.items() if argument == model)
    words = ["--model", "bsnn", "--maps", maps, "--stalk-dim", "3"]
    if row != "default":
        words = our_options("bsnn", model, settings, "loss")
        if row == "ours-no-kl":
            words[words.index("--kl-weight") + 1] = "0"
    report, sheaf = options.output + ".report", options.output + ".npz"
    command = [options.train, "--dataset", os.path.join(options.data, graph + ".npz"), *words,
               "--splits", str(options.fold), "--threads", "1"]
    done = subprocess.run([*command, "--report", report, "--sheaf", sheaf], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"authors_posterior.py: {' '.join(command)}: {done.stderr}")
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    with numpy.load(sheaf) as file:
        transports = transport_figures(file["arcs"], file["maps"])
    os.remove(report)
    os.remove(sheaf)
    one = result["splits"][0]
    return {"command": " ".join(["train", "--dataset", graph + ".npz", *command[3:]]),
            "test_accuracy": one["test_accuracy"], **one["sheaf"], "maps": transports["maps"],
            "turn_degrees": transports.get("turn_degrees"), "seconds": result["run"]["seconds"]}


def read(options, graph, maps, row):
    argument, network = FAMILIES[maps]
    cell = f"{row} {graph} {maps}"
    settings = {**GRID, **options.settings, "epochs": options.epochs, "early_stopping": options.epochs,
                "use_kl": row != "theirs-no-kl"}
    CELLS[cell] = ("bsnn", graph, argument, network, settings)
    if row.startswith("theirs"):
        with processes(1, "cpu") as pool:
            result, seconds = pool.apply(timed, (read_theirs, options, cell, options.fold, options.samples))
        result["seconds"] = seconds
    else:
        result = read_ours(options, cell, row)
    return {"epochs": options.epochs if row != "default" else None, "fold": options.fold, **result}


def print_tables(results, graphs, families, rows):
    def three(figures, form):
        return "/".join(format(figures[level], form) for level in ("5%", "50%", "95%"))

    def spread(result):
        return "; ".join(three(values, ".3f") for values in result["spread"].values())

    def turn(result):
        if figures := result.get("turn_degrees"):
            return three(figures, ".2f" if figures["95%"] < 10 else ".0f") + "°"
        return f"{100 * result['negative_share']:.0f} % negative"

    def rise(result, name):
        return f"{result[name]['rise']:+.3f} ± {result[name]['standard_error']:.3f}"

    def print_row(*cells):
        print("| " + " | ".join(cells) + " |")

    lines = [(graph, maps, {row: results.get(f"{row} {graph} {maps}") for row in rows})
             for graph in graphs for maps in families]
    print("κ of rotations, σ of other maps, at 5/50/95 % of the incident pairs:\n")
    print_row("graph", "maps", *(ROWS[row] for row in rows))
    print_row(*["---"] * (2 + len(rows)))
    for graph, maps, of in lines:
        print_row(graph, maps, *(spread(of[row]) if of[row] else "–" for row in rows))
    for row in rows:
        print(f"\nMean maps, and the rise of the validation loss, {ROWS[row]}:\n")
        print_row("graph", "maps", "parameters differ by", "maps differ by", "transports turn by", "test accuracy",
                  "permuted", "prior", "identity")
        print_row(*["---"] * 9)
        for graph, maps, of in lines:
            if result := of[row]:
                print_row(graph, maps, f"{result['parameters']:.4f}" if "parameters" in result else "–",
                          f"{result['maps']:.4f}", turn(result), f"{100 * result['test_accuracy']:.1f}",
                          *(rise(result, name) for name in ("permuted", "prior", "identity")))


def settings_of(text):
    """NAME=VALUE,… as numbers and truth values."""
    values = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        known = [*GRID, "sheaf_decay", "second_linear"][1:]
        if not equals or name not in known:
            sys.exit(f"authors_posterior.py: --settings: '{part}'; write NAME=VALUE with one of {', '.join(known)}")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bsnn", "data", "output"):
        parser.add_argument(name)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--train", default=os.path.join(here, "..", "build", "release", "examples", "train"))
    parser.add_argument("--graphs", default="texas,wisconsin,cornell,cora,citeseer,film")
    parser.add_argument("--maps", default=",".join(FAMILIES))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--settings", default="", type=settings_of)
    parser.add_argument("--epochs", type=int, default=160)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    options.device = "cpu"
    for name, text, known in (("--maps", options.maps, FAMILIES), ("--rows", options.rows, ROWS)):
        for one in text.split(","):
            if one not in known:
                sys.exit(f"authors_posterior.py: {name}: '{one}'; choose {', '.join(known)}")
    if "theirs" in options.rows:  # once, for the processes that are forked
        import networkx, pandas, scipy.stats, torchdiffeq  # noqa: E401, F401
    for name, least in (("epochs", 1), ("every", 1), ("fold", 0), ("samples", 1)):
        if getattr(options, name) < least:
            sys.exit(f"authors_posterior.py: --{name}: {getattr(options, name)}; must be at least {least}")
    results = {}
    if os.path.exists(options.output):
        with open(options.output, encoding="utf-8") as file:
            results = json.load(file)
    graphs, families, rows = (text.split(",") for text in (options.graphs, options.maps, options.rows))
    for graph, maps, row in itertools.product(graphs, families, rows):
        key = f"{row} {graph} {maps}"
        if key not in results:
            results[key] = read(options, graph, maps, row)
            write_json(options.output, results, indent=1)
            print(f"{key}: {results[key]['seconds']:.0f} s", file=sys.stderr)
    print_tables(results, graphs, families, rows)


if __name__ == "__main__":
    main()
