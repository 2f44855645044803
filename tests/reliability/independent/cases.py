#!/usr/bin/env python3
"""Writes random cases with the outputs and gradients of networks.py, for check.cpp.

usage: cases.py FOLDER [--count N] [--seed S]   default: 100 of each of three kinds, seed 1

FOLDER/sheaf_I.npz, polynomial_I.npz, cooperative_I.npz, I = 0 ... N - 1, deterministic and Bayesian ones in turn. Keys
of sheaf_I are the keys of tests/golden/README.md. The others have `model` (0 polynomial, 1 cooperative) and these:

hidden.l, l = 0 ... L   n x d' x f   features before layer l; with l = L, features after the last one
polynomial, `config` of 18 integers: d, f, L, lp, hp, bayes, separate_encoder, edge_weights, family, and
  basis           0 ... 3 Chebyshev T, U, V, W; 4 Chebyshev interpolation; 5 Legendre; 6 Gegenbauer; 7 Jacobi
  K               degree
  mixing          1: layers have left.l and right.l
  skip            high-pass term of 0: X - Delta Y / lambda_max; 1: Y - Delta Y / lambda_max
  published       1: published recurrence (Jacobi) or coefficients (interpolation)
  learner         0 concatenation; 1 coordinates summed; 2 summed as published; 3 attention (general maps)
  sheaf_act       0 tanh, 1 identity, 2 ELU
  linear          1: the first layer's sheaf for all; then sheaf.0 and edge.0 only
  edge_feature_count
basis_parameters        4        Jacobi alpha, beta, Gegenbauer lambda, lambda_max
edge_features           2m x edge_feature_count   appended to what the learner reads, with every learner
param.poly.logits       K + 1    theta; node values of an interpolation
param.poly.skip         scalar   alpha
param.sheaf...weight    q x (2h, or 2f with learner 1, 2, + edge_feature_count)
cooperative, `config` of 15 integers: d, f, L, bayes, and
  learner         0 MLP, 1 GraphSAGE, 2 GraphSAGE with projected neighbours
  depth           convolutions of the learners
  act             0 GELU, 1 ELU, 2 ReLU, 3 tanh, 4 sigmoid, 5 identity
  conformal       0: scales are 1
  norm            0 none, 1 LayerNorm, 2 BatchNorm
  mixing_left, mixing_right, residual   1: layers have left.l; right.l; eps.l
  separate_encoder
  heads           readout layers; head.i.weight, head.i.bias (h x h) before lin2
  directed        1: `edges` are the arcs u -> v, sorted
noise.l.SIDE.rotation   n x d x d   SIDE: out, in; uniform rotations
noise.l.SIDE.scale      n           standard normals
param.NAME...           learners, NAME = out.l, in.l (deterministic) or out, in (Bayesian), g hidden numbers:
                        NAME.hidden, NAME.output (MLP); NAME.neighbour, NAME.self (weight only), NAME.projection; where
                        depth > 1, NAME.k.neighbour ..., NAME.k.norm (GraphSAGE). Outputs: q = d(d-1)/2 numbers of the
                        rotation, then log scale, or raw kappa, mean and raw log sigma of the log scale

Graphs have 6 to 12 nodes, every tenth 20 to 59: random ones, with nodes without edges, stars, complete, without any
edge. Every tenth sheaf network has 4 to 7 layers, others up to 4. Needs torch and numpy.
"""
import argparse
import os

import numpy

import networks
from networks import ATTENTION, CONCATENATION, GENERAL, INTERPOLATION, JACOBI, MLP, ROTATION, SAGE, SAGE_PROJECTED


def random_edges(r, n, directed):
    """Edges u < v, or arcs: two thirds of the edges in one direction, the others in both."""
    kind = r.choice(["all", "isolated", "star", "complete", "empty"], p=[.47, .3, .1, .1, .03])
    nodes = range(n) if kind in ("all", "complete") else sorted(r.choice(n, n - r.integers(1, 3), replace=False))
    pairs = [(u, v) for u in nodes for v in nodes if u < v]
    if kind == "star":
        centre = r.choice(nodes)
        pairs = [pair for pair in pairs if centre in pair]
    elif kind != "complete":
        share = 0 if kind == "empty" else r.uniform(.2, .6)
        pairs = [pair for pair in pairs if r.random() < share]
    if directed:
        pairs = [arc for u, v in pairs for arc in [[(u, v)], [(v, u)], [(u, v), (v, u)]][r.integers(3)]]
    return numpy.array(sorted(pairs), numpy.int64).reshape(-1, 2)


def random_rotations(r, count, d):
    q, triangle = numpy.linalg.qr(r.normal(size=(count, d, d)))
    q = q * numpy.sign(numpy.einsum("nii->ni", triangle))[:, None]
    q[numpy.linalg.det(q) < 0, :, 0] *= -1
    return q


class Case:
    """What all kinds have; `arrays` is the file."""

    def __init__(self, r, large, directed=False):
        self.r = r
        self.n = int(r.integers(20, 60) if large else r.integers(6, 13))
        self.inputs, self.classes = int(r.integers(1, 9)), int(r.integers(2, 6))
        nodes = r.random(self.n) < r.choice([0, .5, .8])
        nodes[r.integers(self.n)] = True
        features = r.normal(size=(self.n, self.inputs)) * (r.random((self.n, self.inputs)) < .8)
        self.arrays = {"n_nodes": self.n, "edges": random_edges(r, self.n, directed), "features": features,
                       "labels": r.integers(self.classes, size=self.n), "train_mask": nodes,
                       "kl_weight": r.choice([.03, .1, .5, 1])}

    def parameter(self, name, values):
        self.arrays["param." + name] = numpy.array(values)

    def layer(self, name, rows, columns, scale=1., bias=.3):
        """An affine layer; without a bias where `bias` is 0."""
        self.parameter(name + ".weight", self.r.normal(size=(rows, columns)) * scale / columns ** .5)
        if bias:
            self.parameter(name + ".bias", self.r.normal(size=rows) * bias)

    def scale_and_shift(self, name, size):
        self.parameter(name + ".weight", 1 + .3 * self.r.normal(size=size))
        self.parameter(name + ".bias", .3 * self.r.normal(size=size))

    def ends(self, hidden, separate_encoder):
        self.layer("lin1", hidden, self.inputs)
        self.layer("lin2", self.classes, hidden)
        if separate_encoder:
            self.layer("lin_maps", hidden, self.inputs)

    def mixing(self, l, d, f, left=True, right=True, residual=True):
        if left:
            self.parameter(f"left.{l}", numpy.eye(d) + .3 * self.r.normal(size=(d, d)))
        if right:
            orthogonal = numpy.linalg.qr(self.r.normal(size=(f, f)))[0]
            self.parameter(f"right.{l}", orthogonal + .1 * self.r.normal(size=(f, f)))
        if residual:
            self.parameter(f"eps.{l}", .3 * self.r.normal(size=(d, 1)))

    def finished(self, config):
        self.arrays["config"] = numpy.array(config, numpy.int64)
        results = networks.evaluate(self.arrays)
        if "model" not in self.arrays:
            results = {key: value for key, value in results.items() if not key.startswith("hidden.")}
        return self.arrays | results


def sheaf_case(r, i, polynomial):
    case = Case(r, large=i % 10 == 4)
    bayes, family = i % 2, int(r.integers(3))
    d, layers = int(r.integers(2 if family == ROTATION else 1, 5)), int(r.integers(*(4, 8) if i % 10 == 7 else (1, 5)))
    f, lp, hp = (int(x) for x in r.integers([1, 0, 0], [6, 2, 2]))
    separate_encoder, edge_weights = int(bayes and r.integers(2)), int(family == ROTATION and r.integers(2))
    coordinates = d + lp + hp
    h, q, arcs = coordinates * f, [d, d * (d - 1) // 2, d * d][family], 2 * len(case.arrays["edges"])
    config = [d, f, layers, lp, hp, bayes, separate_encoder, edge_weights, family]
    learner, mixing, linear, extra = CONCATENATION, 1, 0, 0
    if polynomial:
        basis, degree = int(r.integers(8)), int(r.integers(7))
        mixing, skip, linear, sheaf_act = (int(x) for x in r.integers([2, 2, 2, 3]))
        published = int(basis in (INTERPOLATION, JACOBI) and r.integers(2))
        learner = int(r.integers(4 if family == GENERAL and not bayes and d > 1 else 3))
        sheaf_act *= learner != ATTENTION
        extra = int(r.choice([0, 0, 1, 2, 3]))
        config += [basis, degree, mixing, skip, published, learner, sheaf_act, linear, extra]
        parameters = [*(r.choice([-.5, 0, .5, 1, r.uniform(-.9, 2)]) for _ in range(2)),
                      r.choice([.5, 1, r.uniform(.05, 2)]), r.choice([2, r.uniform(2, 3)])]
        case.parameter("poly.logits", r.normal(size=degree + 1))
        case.parameter("poly.skip", .5 * r.normal())
        case.arrays |= {"model": 0, "basis_parameters": parameters}
        if extra:
            case.arrays["edge_features"] = r.normal(size=(arcs, extra))
    case.ends(h, separate_encoder)
    width, scale = (2 * h if learner in (CONCATENATION, ATTENTION) else 2 * f) + extra, r.choice([.3, 1.5, 4])
    for l in range(layers):
        case.mixing(l, coordinates, f, left=mixing, right=mixing)
        if bayes:
            case.arrays[f"noise.{l}"] = random_rotations(r, arcs, d) if family == ROTATION else r.normal(size=(arcs, q))
        elif l == 0 or not linear:
            case.layer(f"sheaf.{l}", q, width, scale, bias=0)
            if edge_weights:
                case.layer(f"edge.{l}", 1, 2 * h, 1.5, bias=0)
    if bayes:
        case.layer("sheaf.mean", q, width, scale, bias=0)
        case.layer("sheaf.var", 1 if family == ROTATION else q, width, scale, bias=0)
        if edge_weights:
            case.layer("edge", 1, 2 * h, 1.5, bias=0)
    return case.finished(config)


def cooperative_case(r, i):
    directed, bayes = int(r.integers(2)), i % 2
    case = Case(r, i % 10 == 4, directed)
    d, f, layers, learner = (int(x) for x in r.integers([1, 1, 1, 0], [5, 6, 4, 3]))
    depth = 1 if learner == MLP else int(r.choice([1, 2, 3, r.integers(4, 9)]))
    act, norm, heads = (int(x) for x in r.integers([0, 0, 1], [6, 3, 4]))
    conformal, left, right, residual = (int(x) for x in r.random(4) < .7)
    conformal |= d == 1  # else there is nothing to learn, which is refused
    separate_encoder = int(bayes and r.integers(2))
    config = [d, f, layers, bayes, learner, depth, act, conformal, norm, left, right, residual, separate_encoder, heads,
              directed]
    h, g, bias = d * f, int(r.integers(1, 8)), r.choice([.3, 2, 5])  # a large bias: scales at their limit, 10
    outputs = d * (d - 1) // 2 + (1 + 2 * conformal if bayes else conformal)

    def add_learner(name):
        if learner == MLP:
            case.layer(name + ".hidden", g, h, 1.5)
            case.layer(name + ".output", outputs, g, 1.2, bias)
            return
        for k in range(depth):
            part, last = (name if depth == 1 else f"{name}.{k}"), k + 1 == depth
            columns, rows = (g if k else h), (outputs if last else g)
            case.layer(part + ".neighbour", rows, columns, bias=bias if last else .3)
            case.layer(part + ".self", rows, columns, bias=0)
            if learner == SAGE_PROJECTED:
                case.layer(part + ".projection", columns, columns)
            if learner == SAGE and not last:
                case.scale_and_shift(part + ".norm", g)

    case.arrays["model"] = 1
    case.ends(h, separate_encoder)
    for l in range(layers):
        case.mixing(l, d, f, left, right, residual)
        if norm:
            case.scale_and_shift(f"norm.{l}", h)
        for side in ("out", "in"):
            if bayes:
                case.arrays[f"noise.{l}.{side}.rotation"] = random_rotations(r, case.n, d)
                case.arrays[f"noise.{l}.{side}.scale"] = r.normal(size=case.n)
            else:
                add_learner(f"{side}.{l}")
    if bayes:
        add_learner("out")
        add_learner("in")
    for k in range(heads - 1):
        case.layer(f"head.{k}", h, h)
    return case.finished(config)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    kinds = {"sheaf": lambda r, i: sheaf_case(r, i, False), "polynomial": lambda r, i: sheaf_case(r, i, True),
             "cooperative": cooperative_case}
    for number, (kind, make) in enumerate(kinds.items()):
        for i in range(arguments.count):
            case = make(numpy.random.default_rng([arguments.seed, number, i]), i)
            numpy.savez(os.path.join(arguments.folder, f"{kind}_{i}.npz"), **case)
    print(f"{arguments.count} cases of each of {len(kinds)} kinds: {', '.join(kinds)}")


if __name__ == "__main__":
    main()
