#!/usr/bin/env python3
"""Outputs and gradients of the published code of neural sheaf diffusion, and of sheafnn.torch.Nsd with the same weights.

usage: nsd_outputs.py NSD

NSD    checkout of github.com/twitter-research/neural-sheaf-diffusion

Every row builds a published network in double precision on a random graph, moves its weights away from their initial
values, translates options and weights as docs/from_nsd_code.md says, and compares the log-probabilities of all nodes and the
gradients of the loss, without dropout. Exit code 1: a difference exceeds 1e-10.
"""
import os
import sys
import types

import numpy as np
import torch
import torch.nn.functional as F

from authors_code import provide_missing
from sheafnn.torch import Nsd

CLASSES = {"diagonal": "DiscreteDiagSheafDiffusion", "special-orthogonal": "DiscreteBundleSheafDiffusion",
           "general-linear": "DiscreteGeneralSheafDiffusion"}
PUBLISHED = dict(d=2, layers=2, hidden_channels=4, normalised=True, deg_normalised=False, linear=False, input_dropout=0.0,
                 dropout=0.0, left_weights=True, right_weights=True, add_lp=False, add_hp=False, use_act=True,
                 second_linear=False, orth="householder", sheaf_act="tanh", edge_weights=True, sparse_learner=False, max_t=1.0)
ACTIVATIONS = {"tanh": "tanh", "id": "identity", "elu": "elu"}
ROTATIONS = {"householder": "householder", "matrix_exp": "exponential", "cayley": "cayley", "euler": "euler"}


def options_of(maps, args):
    """The arguments of Nsd that match a published network's."""
    r = dict(stalk_dim=args["d"], channels=args["hidden_channels"], activation=args["use_act"],
             sheaf_activation=ACTIVATIONS[args["sheaf_act"]], feature_treatment="none",
             normalisation="augmented" if args["normalised"] else "degree" if args["deg_normalised"] else "none",
             learner="summed-published" if args["sparse_learner"] else "concatenation")
    for name in ("layers", "linear", "dropout", "input_dropout", "left_weights", "right_weights", "add_lp", "add_hp",
                 "second_linear"):
        r[name] = args[name]
    if maps == "special-orthogonal":
        r.update(edge_weights=args["edge_weights"], parametrisation=ROTATIONS[args["orth"]])
    return r


def name_of(name):
    """The name of a weight in Nsd's state_dict."""
    part, *rest = name.split(".")
    new = {"lin_left_weights": "left", "lin_right_weights": "right", "epsilons": "eps", "sheaf_learners": "sheaf",
           "weight_learners": "edge"}.get(part)
    if new is None:
        return name
    return f"{new}.{rest[0]}.weight" if part.endswith("learners") else f"{new}.{rest[0]}"


def weights_of(net, orth, d):
    """Weights of a published network as Nsd has them."""
    r = {}
    for name, value in net.items():
        if name.startswith("sheaf_learners") and orth in ("cayley", "matrix_exp"):
            rows, columns = np.tril_indices(d)
            value = value[torch.from_numpy(rows != columns)]  # numbers of the diagonal have no effect
            value = value / 2 if orth == "cayley" else value
        r[name_of(name)] = value
    return r


def differences(module, maps, change):
    """The largest difference of log-probabilities, and of a gradient."""
    torch.manual_seed(1)
    nodes, classes = 12, 3
    pairs = torch.triu(torch.rand(nodes, nodes) < 0.3, 1).nonzero().t()
    edge_index = torch.cat([pairs, pairs.flip(0)], 1)
    edge_index = edge_index[:, np.lexsort((edge_index[1], edge_index[0]))]
    x, y = torch.randn(nodes, 5), torch.randint(classes, (nodes,))
    args = {**PUBLISHED, **change, "graph_size": nodes, "input_dim": 5, "output_dim": classes, "device": torch.device("cpu")}
    theirs = getattr(module, CLASSES[maps])(edge_index, args).eval()
    for name in ("lin_left_weights", "lin_right_weights"):  # two of the classes read these lists also where they are empty
        if len(getattr(theirs, name)) == 0:
            setattr(theirs, name, torch.nn.ModuleList(torch.nn.Identity() for _ in range(args["layers"])))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    ours = Nsd(5, classes, maps, dtype=torch.float64, **options_of(maps, args)).eval()
    orth = args["orth"] if maps == "special-orthogonal" else ""
    ours.load_state_dict(weights_of(theirs.state_dict(), orth, args["d"]))
    a, b = theirs(x), F.log_softmax(ours(x, edge_index), 1)
    F.nll_loss(a, y).backward()
    F.nll_loss(b, y).backward()
    own = dict(ours.named_parameters())
    gradients = weights_of({name: p.grad for name, p in theirs.named_parameters()}, "", args["d"])
    if orth in ("cayley", "matrix_exp"):  # a derivative in halved weights is twice as large
        rows, columns = np.tril_indices(args["d"])
        for name in gradients:
            if name.startswith("sheaf."):
                gradients[name] = gradients[name][torch.from_numpy(rows != columns)] * (2 if orth == "cayley" else 1)
    worst = max(float((own[name].grad - value).abs().max()) for name, value in gradients.items())
    return float((a - b).detach().abs().max()), worst


def main():
    provide_missing()
    folder = os.path.abspath(sys.argv[1])
    sys.path.insert(0, folder)
    import models.disc_models as module
    torch.set_default_dtype(torch.float64)
    common = [{}, {"add_lp": True}, {"add_hp": True}, {"linear": True}, {"left_weights": False}, {"right_weights": False},
              {"use_act": False}, {"second_linear": True}, {"sheaf_act": "id"}, {"sheaf_act": "elu"}, {"sparse_learner": True},
              {"layers": 4}]
    degrees = [{"normalised": False, "deg_normalised": True}, {"normalised": False}]
    own = {"diagonal": degrees + [{"d": 1}], "general-linear": degrees,
           "special-orthogonal": [{"edge_weights": False}, {"orth": "cayley", "sheaf_act": "id"}, {"orth": "matrix_exp"}]}
    print("| maps | options | log-probabilities | gradients |\n| --- | --- | --- | --- |")
    worst = 0.0
    for maps in CLASSES:
        for d in (2, 3):
            for change in common + own[maps]:
                try:
                    found = differences(module, maps, {"d": d, **change})
                except ValueError as error:
                    if "this build has" not in str(error):
                        raise
                    print(f"nsd_outputs.py: {error}", file=sys.stderr)
                    continue
                worst = max(worst, *found)
                text = ", ".join(f"{key}={value}" for key, value in {"d": d, **change}.items())
                print(f"| {maps} | {text} | {found[0]:.1e} | {found[1]:.1e} |", flush=True)
    return 0 if worst <= 1e-10 else 1


if __name__ == "__main__":
    sys.modules["wandb"] = types.ModuleType("wandb")
    sys.exit(main())
