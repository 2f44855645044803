#!/usr/bin/env python3
"""Epochs of the field's networks beside the same networks in plain PyTorch (field_network.py), in turn on one machine.

usage: field.py DATA [--networks TEXT,...] [--graphs NAME,...] [--threads N] [--rounds R] [--epochs E] [--out FILE]
       field.py --check

DATA            folder with texas.npz, cora.npz
--networks      only networks whose name contains one of the texts
--graphs        default texas,cora; hypergraphs are synthetic, of the sizes of cora's co-citations
--rounds        turns of each side (default 3), of --epochs epochs (default 20); figures are medians of the rounds
--out           default build/field.json: figures, machine, date and versions
--check         compares the networks of field_network.py with outputs, losses and gradients of tests/golden3

An epoch is a training step and an evaluation, three samples for Bayesian networks. The library's time is `epoch_seconds` of its
classifiers. Needs the package sheafnn, NumPy and PyTorch in one interpreter; the package with Diagonal_2, SpecialOrthogonal_3,
Connection_2, Bundle_2 and GivenNsdDiagonal_2.
"""
from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

import anchor_network
import anchor_torch
import field_network
from anchor_network import FAMILIES, Graph, Setting
from anchors import GivenDraws, quaternions
from epoch_runs import ROOT, machine
from field_network import Bundles, Hypergraphs, pair_parameters

SHAPE = {"channels": 16, "layers": 4}
TRAINING = {"input_dropout": 0.5, "dropout": 0.3}
STEPS = {"wave": field_network.wave_step, "attention": field_network.attention_step, "copresheaf": field_network.copresheaf_step,
         "convolution": field_network.convolution_step, "directed": field_network.directed_step(field_network.complex_relu)}


class Draws(anchor_torch.Draws):
    """With rotations of the plane."""

    @staticmethod
    def around_one(_, kappa):
        angle = 2 * torch.pi * torch.rand(kappa.shape)
        u = torch.complex(torch.cos(angle), torch.sin(angle))
        z = (u + kappa) / (1 + kappa * u)
        return torch.stack([z.real, -z.imag, z.imag, z.real], -1).reshape(-1, 2, 2)


def with_incidence(ops, incidence, hyperedges, dtype):
    """Operations on incident pairs, sorted by node."""
    node, hyperedge = (torch.from_numpy(np.ascontiguousarray(column)) for column in incidence.T.astype(np.int64))

    def sums(index, count):
        sparse = torch.sparse_coo_tensor(torch.stack([index, torch.arange(len(index))]), torch.ones(len(index), dtype=dtype),
                                         (count, len(index))).to_sparse_csr()
        return lambda x: (sparse @ x.reshape(len(index), -1)).reshape(count, *x.shape[1:])

    to_nodes, to_hyperedges = sums(node, ops.nodes), sums(hyperedge, hyperedges)
    ops.to_nodes = anchor_torch.linear(to_nodes, lambda bar: bar[node])
    ops.from_node = anchor_torch.linear(lambda x: x[node], to_nodes)
    ops.to_hyperedges = anchor_torch.linear(to_hyperedges, lambda bar: bar[hyperedge])
    ops.from_hyperedge = anchor_torch.linear(lambda x: x[hyperedge], to_hyperedges)
    ops.sizes = torch.bincount(hyperedge, minlength=hyperedges).to(dtype)[:, None].clamp(min=1)
    ops.node_degree = torch.bincount(node, minlength=ops.nodes).to(dtype)[:, None, None]


def with_directions(ops, direction, edges, graph, q, dtype):
    """Phases of arcs, from a direction of each edge."""
    sign = {}
    for (u, v), way in zip(edges.tolist(), direction.tolist()):
        sign[u, v], sign[v, u] = way, -way
    angle = torch.tensor([sign[pair] for pair in zip(graph.source.tolist(), graph.target.tolist())], dtype=dtype) * (2 * np.pi * q)
    ops.cosine, ops.sine = torch.cos(angle)[:, None, None], torch.sin(angle)[:, None, None]


def given_maps(transport, edges, graph):
    """F = I at the smaller end of an edge and the transport at the other."""
    number = {pair: e for e, pair in enumerate(map(tuple, edges.tolist()))}
    d = transport.shape[-1]
    return np.stack([np.eye(d) if u < v else transport[number[v, u]] for u, v in zip(graph.source.tolist(), graph.target.tolist())])


def check_case(path):
    """Differences of outputs and gradients; None for files of options that field_network.py lacks."""
    arrays = np.load(path)
    kind, config = int(arrays["model"]), arrays["config"].tolist()
    hyper = kind == 6
    edges = np.zeros((0, 2), np.int64) if hyper else arrays["edges"]
    graph = Graph.of(edges, arrays["features"], arrays["labels"], [arrays["train_mask"]] * 3)
    ops = anchor_torch.Operations(graph, torch.float64, False)
    classes = arrays["log_probabilities"].shape[1]
    parameters = {name[6:]: arrays[name] for name in arrays.files if name.startswith("param.")}
    noise = {name: arrays[name] for name in arrays.files if name.startswith("noise.")}
    if kind == 5:
        d, bundles, f, layers, bayesian, _, orth, normalisation, loops, expansion, terms, mix, norm, residual, act = config
        if bayesian or normalisation or expansion > 1 or act not in (1, 2):
            return None
        network = Bundles(False, classes, d, bundles, f, layers, orth == 1, expansion == 1, terms, mix == 1, norm == 1, residual == 1,
                          loops == 1, torch.relu if act == 1 else torch.nn.functional.gelu)
        forward = functools.partial(network.forward, ops)
    elif hyper:
        d, f, layers, bayesian, separate, family, learner, laplacian, _, _, update, static, bias = config
        if learner or laplacian or update or static or not bias or family == 1:
            return None
        incidence = arrays["incidence"]
        with_incidence(ops, incidence, int(incidence[:, 1].max()) + 1, torch.float64)
        forward = functools.partial(Hypergraphs(bool(bayesian), classes, FAMILIES[family], d, f, layers).forward, ops)
    else:
        more = {}
        if kind == 3:
            d, f, layers, low, high, bayesian, _, update, given, family, _, _ = config
            more = {"filters": (1,) * low + (-1,) * high, "step": field_network.wave_step if update else None}
            if given:
                ops.given_maps = torch.from_numpy(given_maps(arrays["transport"], edges, graph))
        elif kind == 4:
            d, f, layers, bayesian, _, family, norm, residual, _, transported, random, _ = config
            if norm or residual or transported or random:
                return None
            more = {"step": field_network.attention_step}
        elif kind == 7:
            d, f, layers, bayesian, _, family, act, _, copied = config
            with_directions(ops, arrays["direction"], edges, graph, float(arrays["q"]), torch.float64)
            if act:
                ops.elu = torch.relu  # of the encoder
            more = {"step": field_network.directed_step(field_network.complex_relu if act else field_network.both_elu),
                    "start": field_network.complex_start(copied), "read": field_network.read_complex_pair}
        elif kind == 8:
            d, f, layers, bayesian, _, family = config
            more = {"step": field_network.copresheaf_step}
        else:
            return None
        if family == 1 and bayesian:
            noise = {name: quaternions(value) for name, value in noise.items()}
        setting = Setting(bool(bayesian), FAMILIES[family], classes, d, f, layers, **more)
        forward = functools.partial(anchor_network.forward, ops, setting)
    output, kl, loss, gradient = anchor_torch.check_of(graph, forward, parameters, GivenDraws(noise), float(arrays["kl_weight"]))
    outputs = max(np.abs(output - arrays["log_probabilities"]).max(), abs(kl - float(arrays["kl"])), abs(loss - float(arrays["loss"])))
    gradients = max(np.abs(gradient[key] - arrays[f"grad.{key}"]).max() / max(1, np.abs(arrays[f"grad.{key}"]).max()) for key in parameters)
    return outputs, gradients


def check() -> int:
    """Exit status 1 where numbers differ from the numbers of a golden file."""
    failed, compared = False, 0
    for path in sorted((ROOT / "tests/golden3").glob("*.npz")):
        differences = check_case(path)
        if differences is None:
            print(f"{path.stem:24} has other options")
            continue
        good = differences[0] < 1e-10 and differences[1] < 1e-8
        failed |= not good
        compared += 1
        print(f"{path.stem:24} outputs {differences[0]:.1e}, gradients {differences[1]:.1e}{'' if good else '  WRONG'}")
    return int(failed or compared < 8)


def pair_case(graph, bayesian, maps, stalk, step, options, maps_given=None, start=None, read=None, encoder=None):
    """Operations and a network of layers of pairs with initial parameters."""
    ops = anchor_torch.Operations(graph, torch.float32, False)
    if encoder is not None:
        ops.elu = encoder
    if maps_given is not None:
        ops.given_maps = torch.from_numpy(maps_given).float()
    setting = Setting(bayesian, maps, int(graph.labels.max()) + 1, stalk, **SHAPE, **TRAINING, step=step, start=start, read=read)
    numbers = pair_parameters(setting, graph.features.shape[1], given=maps_given is not None, **options)
    return ops, functools.partial(anchor_network.forward, ops, setting), numbers


def rotations_of(angles):
    """2 × 2 matrices."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([c, -s, s, c], -1).reshape(-1, 2, 2)


def networks(graph):
    """By name: of a graph, (bayesian) → the PyTorch side; and what SheafClassifier is called with."""
    rng = np.random.default_rng(0)
    arcs = len(graph.source)
    signs = np.where(graph.source < graph.target, 1.0, rng.choice([-1.0, 1.0], arcs))[:, None] * np.ones(2)
    angles = rotations_of(np.where(graph.source < graph.target, 0, rng.uniform(-3, 3, arcs)))
    pairs = {"edge_weights": False, "parametrisation": "householder"}
    own_encoder = {"separate_encoder": False}
    rotations = ("special-orthogonal", 3)
    r = {}
    for name, options in (("convolution", {"biases": True}), ("wave", {}), ("attention", {"attention": 8}), ("copresheaf", {"biases": True}),
                          ("directed", {"complex_numbers": True})):
        more = {}
        if name == "directed":
            more = {"start": field_network.complex_start(True), "read": field_network.read_complex_pair, "encoder": torch.relu}
        r[name] = (functools.partial(pair_case, graph, maps=rotations[0], stalk=3, step=STEPS[name], options=options, **more),
                   ("nsd", "bsnn"), rotations, pairs | {"layer": name}, own_encoder)
    r["on a connection"] = (functools.partial(pair_case, graph, maps="special-orthogonal", stalk=2, step=None, options={}, maps_given=angles),
                            ("conn-nsd", "bconn-nsd"), ("special-orthogonal", 2), {}, own_encoder)
    r["with a given sheaf"] = (functools.partial(pair_case, graph, maps="diagonal", stalk=2, step=None, options={}, maps_given=signs),
                               ("nsd-given", "bsnn-around"), ("diagonal", 2), {}, {})
    r["convolutions on a given sheaf"] = (
        functools.partial(pair_case, graph, maps="diagonal", stalk=2, step=STEPS["convolution"], options={"biases": True},
                          maps_given=signs, encoder=torch.relu), ("snn", "bsnn-given"), ("diagonal", 2), {}, {})

    def bundles(bayesian):
        ops = anchor_torch.Operations(graph, torch.float32, False)
        network = Bundles(bayesian, int(graph.labels.max()) + 1, layers=SHAPE["layers"], **TRAINING)
        return ops, functools.partial(network.forward, ops), network.initial_parameters(graph.features.shape[1])

    r["bundles"] = bundles, ("bunn", "bbunn"), ("special-orthogonal", 2), {"bundles": 12}, {}
    return r, signs


def measure(name, bayesian, torch_epoch, own_epochs, options):
    """The figures of a cell: turns of both sides."""
    for number in range(3):
        torch_epoch(number)
    own_epochs(3)
    rounds = {"sheafnn": [], "pytorch": []}
    for _ in range(options.rounds):
        rounds["sheafnn"].append(1000 * own_epochs(options.epochs))
        times = []
        for number in range(options.epochs):
            start = time.perf_counter()
            figures = torch_epoch(number)
            times.append(time.perf_counter() - start)
        assert all(np.isfinite(figures)), (name, figures)
        rounds["pytorch"].append(1000 * statistics.median(times))
    ms = {side: statistics.median(values) for side, values in rounds.items()}
    print(f"{name}{', Bayesian' if bayesian else ''}: {ms['sheafnn']:.3g} ms, PyTorch {ms['pytorch']:.3g} ms, "
          f"{ms['pytorch'] / ms['sheafnn']:.1f} times", flush=True)
    return {"sheafnn_ms": ms["sheafnn"], "pytorch_ms": ms["pytorch"], "rounds_ms": rounds, "load_average": os.getloadavg()[0]}


def main() -> None:
    import sheafnn

    parser = argparse.ArgumentParser(usage="see the top of the file")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=[""])
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=["texas", "cora"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/field.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    cells = []

    def wanted(name):
        return any(text in name for text in options.networks)

    def torch_side(graph, ops, forward, numbers, bayesian):
        return anchor_torch.epochs_of(graph, ops, forward, numbers, Draws, 3 if bayesian else 1, False)

    def fitted(classifier, data, epochs, **more):
        model = classifier(epochs=epochs, patience=epochs, samples=3, threads=options.threads, **SHAPE | more)
        return model.fit(data, split=0).result_["epoch_seconds"]

    for graph_name in options.graphs:
        path = options.data / f"{graph_name}.npz"
        graph, data = anchor_network.load(path), sheafnn.load_dataset(path)
        rows, signs = networks(graph)
        given = data.with_sheaf(sheafnn.CellularSheaf(data, signs, family="diagonal"))
        for name, (torch_case, models, (maps, stalk), network, only_bayesian) in rows.items():
            for bayesian, model in enumerate(models) if wanted(name) else ():
                ops, forward, numbers = torch_case(bayesian=bool(bayesian))
                if name == "directed":
                    with_directions(ops, np.zeros(arcs := len(graph.source)), np.stack([graph.source, graph.target], 1)[:arcs], graph, 0.25,
                                    torch.float32)
                own = functools.partial(
                    fitted, functools.partial(sheafnn.SheafClassifier, model, maps, stalk, preset="none", feature_treatment="rows",
                                              **TRAINING),
                    given if "given" in name else data, network=network | (only_bayesian if bayesian else {}),
                    **{"channels": 2} if name == "bundles" else {})
                figures = measure(f"{graph_name}, {name}", bayesian, torch_side(graph, ops, forward, numbers, bayesian), own, options)
                cells.append({"graph": graph_name, "network": name, "model": model, **figures})
    if wanted("hypergraph"):
        shape = sheafnn.synthetic_hypergraph(nodes=2708, classes=7, features=7, words=1, hyperedges=1579, least_size=2, largest_size=4)
        rng = np.random.default_rng(0)
        words = np.zeros((shape.node_count, 1433))
        np.put_along_axis(words, rng.integers(0, 1433, (shape.node_count, 18)), 1 / 18, 1)
        part = rng.choice(3, shape.node_count, p=[0.48, 0.32, 0.2])
        masks = [part == k for k in range(3)]
        data = sheafnn.Hypergraph.from_numpy(shape.incidence, words, shape.codes, hyperedge_count=shape.hyperedge_count, splits=[masks])
        graph = Graph.of(np.zeros((0, 2), np.int64), words, shape.codes, masks)
        for bayesian, model in enumerate(("shgnn", "bshgnn")):
            ops = anchor_torch.Operations(graph, torch.float32, False)
            with_incidence(ops, data.incidence, data.hyperedge_count, torch.float32)
            net = Hypergraphs(bool(bayesian), 7, "special-orthogonal", 3, **SHAPE, **TRAINING)
            own = functools.partial(fitted, functools.partial(sheafnn.HypergraphClassifier, model, "special-orthogonal", 3), data,
                                    network={"parametrisation": "householder"}, training=TRAINING)
            side = torch_side(graph, ops, functools.partial(net.forward, ops), net.initial_parameters(1433), bayesian)
            cells.append({"graph": "synthetic", "network": "hypergraph", "model": model, **measure("hypergraph", bayesian, side, own, options)})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({
        **machine(), "date": datetime.date.today().isoformat(), "threads": options.threads,
        "versions": f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}", "cells": cells}, indent=1) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    main()
