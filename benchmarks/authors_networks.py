#!/usr/bin/env python3
"""Milliseconds of an epoch of the polynomial, the cooperative and the continuous-time networks in their authors' PyTorch
code, in the setting of networks.cpp, for every cell of its table.

usage: authors_networks.py POLYNSD CSNN NSD DATA [--threads N] [--device DEVICE] [--ours FILE] [--seconds S]
                           [--models TEXT]

POLYNSD  checkout of github.com/JLloyd22/L65-Mini-Project---Polynomial-Neural-Sheaf-Diffusion
CSNN     checkout of github.com/andrerg02/Cooperative-Sheaf-NN
NSD      checkout of github.com/twitter-research/neural-sheaf-diffusion, for the continuous-time networks
DATA and the options are as in authors_code.py; FILE is networks.json of networks.cpp, or
         results/filters.json of run_gpu.sh

An epoch is one step of Adam on the training nodes and one evaluation of the three sets of nodes, as in the train() and
test() of the checkouts: the network is called once for each. The other conventions come from authors_code.py, whose
stand-ins for missing packages it uses.
"""
import os
import sys

from authors_code import load, now, provide_missing, run

POLYNOMIAL = {"polynomial/diagonal": "DiscreteDiagSheafDiffusionPolynomial",
              "polynomial/special-orthogonal": "DiscreteBundleSheafDiffusionPolynomial",
              "polynomial/general-linear": "DiscreteGeneralSheafDiffusionPolynomial"}
# gnn_layers and gnn_default of the map learner.
COOPERATIVE = {"cooperative/mlp": (0, 0), "cooperative/sage": (2, 1), "cooperative/sage-projected": (2, 2)}
FLOW = {"flow/diagonal": "DiagSheafDiffusion", "flow/special-orthogonal": "BundleSheafDiffusion",
        "flow/general-linear": "GeneralSheafDiffusion"}
MODELS = [*POLYNOMIAL, *COOPERATIVE, *FLOW]


def common_settings(data, classes):
    """The settings of authors_code.py."""
    return {"d": 3, "layers": 4, "hidden_channels": 16, "input_dropout": 0.5, "dropout": 0.3, "add_lp": False,
            "add_hp": False, "second_linear": False, "normalised": True, "deg_normalised": False, "linear": False,
            "orth": "householder", "sheaf_act": "tanh", "edge_weights": True, "left_weights": True,
            "right_weights": True, "use_act": True, "sparse_learner": False, "use_epsilons": True,
            "graph_size": data.x.size(0), "input_dim": data.x.size(1), "output_dim": classes, "device": data.x.device}


def polynomial_network(folder, model, data, classes):
    """Degree 8, Chebyshev; otherwise the setting of authors_code.py."""
    sys.path.insert(0, folder)
    import models.disc_models as networks
    settings = common_settings(data, classes) | {"polynomial_type": "ChebyshevType1", "poly_layers_K": 8}
    network = getattr(networks, POLYNOMIAL[model])(data.edge_index, settings)
    return network, lambda: network(data.x)


def flow_network(folder, model, data, classes):
    """One sheaf, four steps of rk4 to time 1; otherwise the setting of authors_code.py."""
    sys.path.insert(0, folder)
    import models.cont_models as networks
    settings = common_settings(data, classes) | {"linear": True, "max_t": 1.0, "int_method": "rk4", "step_size": 0.25,
                                                 "max_iters": None, "adjoint": False, "tol_scale": 1}
    network = getattr(networks, FLOW[model])(data.edge_index, settings)
    return network, lambda: network(data.x)


def cooperative_network(folder, model, data, classes):
    """Learners of width 32, LayerNorm; otherwise the setting of authors_code.py."""
    import torch.nn.functional as F
    sys.path.insert(0, folder)
    from model import CSNN
    layers, default = COOPERATIVE[model]
    network = CSNN(data.x.size(1), 16, 4, classes, stalk_dimension=3, input_dropout=0.5, dropout=0.3, norm="LayerNorm",
                   gnn_layers=layers, gnn_hidden=32, gnn_default=default)
    return network, lambda: F.log_softmax(network(data.x, data.edge_index), dim=1)


def measure(options, graph, model, begin):
    """Seconds of every epoch of one cell, in this process; begin() is called when all is prepared."""
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(options.threads)
    provide_missing()
    data = load(os.path.join(os.path.abspath(options.data), graph + ".npz"), options.device)
    classes = int(data.y.max()) + 1
    torch.manual_seed(0)
    if model in POLYNOMIAL:
        network, outputs = polynomial_network(os.path.abspath(options.polynsd), model, data, classes)
    elif model in FLOW:
        network, outputs = flow_network(os.path.abspath(options.nsd), model, data, classes)
    else:
        network, outputs = cooperative_network(os.path.abspath(options.csnn), model, data, classes)
    network.to(options.device)
    adam = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    begin()
    seconds, started, epoch = [], None, 0
    while len(seconds) < 10 or now(options.device) - started < options.seconds:
        start = now(options.device)
        network.train()
        adam.zero_grad()
        F.nll_loss(outputs()[data.train_mask], data.y[data.train_mask]).backward()
        adam.step()
        network.eval()
        with torch.no_grad():
            predicted = outputs()
            for mask in (data.train_mask, data.val_mask, data.test_mask):
                float(F.nll_loss(predicted[mask], data.y[mask]))
                float((predicted[mask].argmax(1) == data.y[mask]).float().mean())
        epoch += 1
        if epoch <= 3:
            started = now(options.device)
        else:
            seconds.append(now(options.device) - start)
    return seconds


if __name__ == "__main__":
    run(__doc__, ["polynsd", "csnn", "nsd"], MODELS, measure)
