"""Networks of the field beside NSD and BSNN in plain PyTorch, with whole arrays, for field.py: docs/math.md, sections 3.19 to
3.23 and 7 to 9.

Layers of pairs are steps of anchor_network.forward(). Bundles and hypergraphs have functions of their own. All take `ops`, the
operations of anchor_torch.py, and parameters named as in the files of tests/golden3.
"""
from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import anchor_network
from anchor_network import Arrays, Setting, dropped, householder, mixed, quaternion_rotation


def transports(ops: Any, setting: Setting, maps: Any) -> Any:
    """F_aᵀ F_rev a, as factors of the rows of arcs."""
    if setting.maps == "diagonal":
        block = (maps * ops.reversed(maps))[:, :, None]
        return lambda rows: block * rows
    block = ops.products(ops.transposed(maps), ops.reversed(maps))
    return lambda rows: ops.products(block, rows)


def convolution_step(ops, setting, parameters, layer, x, _, kept, maps, weights):
    """Equation (3.43)."""
    y = mixed(ops, setting, parameters, layer, kept)
    z = anchor_network.diffusion(ops, setting, maps, weights)(y)
    return ops.elu(y - z + parameters[f"bias.{layer}"]).reshape(x.shape)


def wave_step(ops, setting, parameters, layer, x, before, kept, maps, weights):
    """Equation (3.44)."""
    y = mixed(ops, setting, parameters, layer, kept)
    return 2 * x - before - ops.elu(anchor_network.diffusion(ops, setting, maps, weights)(y)).reshape(x.shape)


def attention_step(ops, setting, parameters, layer, x, _, kept, maps, weights):
    """Equations (3.46) and (3.47), with transports as they are."""
    y = mixed(ops, setting, parameters, layer, kept)
    vector = parameters[f"attention.{layer}.vector"]
    heads, width = vector.shape[0], vector.shape[1] // 2
    matrices = parameters[f"attention.{layer}.weight"].reshape(heads, width, -1)
    own, other = (torch.einsum("kg,kgh->hk", half, matrices) for half in (vector[:, :width], vector[:, width:]))
    z = x if layer == 0 else kept
    s, t = z @ own, z @ other
    e = F.leaky_relu(ops.from_source(s) + ops.from_target(t), 0.2)
    e_own = F.leaky_relu(s + t, 0.2)
    index = ops.source[:, None].expand_as(e)
    largest = e_own.detach().scatter_reduce(0, index, e.detach(), "amax")
    weight, own_weight = torch.exp(e - ops.from_source(largest)), torch.exp(e_own - largest)
    total = ops.sum_arcs(weight) + own_weight
    weight = (weight / ops.from_source(total)).mean(1)[:, None, None]
    own_weight = (own_weight / total).mean(1)[:, None, None]
    m = own_weight * y + ops.sum_arcs(weight * transports(ops, setting, maps)(ops.from_target(y)))
    return ops.elu(m).reshape(x.shape)


def copresheaf_step(ops, setting, parameters, layer, x, _, kept, maps, weights):
    """Equation (3.50)."""
    rows = ops.from_target(kept.reshape(-1, setting.coordinates, setting.channels))
    moved = maps[:, :, None] * rows if setting.maps == "diagonal" else ops.products(maps, rows)
    m = ops.sum_arcs(moved) / ops.degree.clamp(min=1)
    y = mixed(ops, setting, parameters, layer, m.reshape(x.shape))
    return x + ops.elu(y + parameters[f"bias.{layer}"]).reshape(x.shape)


def complex_relu(a, b):
    """The first half of (3.55)."""
    positive = (a >= 0).to(a.dtype)
    return a * positive, b * positive


def both_elu(a, b):
    """The second half of (3.55)."""
    return F.elu(a), F.elu(b)


def directed_step(act):
    """Equations (3.52) and (3.54). Features are n × d × 2f, real numbers before imaginary ones."""

    def step(ops, setting, parameters, layer, x, _, kept, maps, weights):
        f = setting.channels
        shape = (-1, setting.coordinates, 2 * f)
        parts = kept.reshape(shape)
        imaginary = {name: parameters.get(f"imag_{name}.{layer}", parameters[f"{name}.{layer}"]) for name in ("left", "right")}
        y = torch.cat([parameters[f"left.{layer}"] @ parts[:, :, :f] @ parameters[f"right.{layer}"].T,
                       imaginary["left"] @ parts[:, :, f:] @ imaginary["right"].T], 2)

        def turned(rows):
            a, b = rows[:, :, :f], rows[:, :, f:]
            return torch.cat([ops.cosine * a - ops.sine * b, ops.sine * a + ops.cosine * b], 2)

        if setting.maps == "diagonal":
            squares = ops.sum_arcs(maps * maps)[:, :, None]
        elif setting.rotations:
            squares = ops.degree
        else:
            squares = ops.sum_arcs(ops.products(ops.transposed(maps), maps))
        if setting.maps == "general-linear":
            scale = ops.inverse_root(squares + ops.eye(setting.stalk, maps))
            scaled, own = (lambda z: ops.products(scale, z)), (lambda z: ops.products(squares, z))
        else:
            scale = 1 / ops.sqrt(squares + 1)
            scaled, own = (lambda z: scale * z), (lambda z: squares * z)
        w = scaled(y)
        z = scaled(own(w) - ops.sum_arcs(turned(transports(ops, setting, maps)(ops.from_target(w)))))
        a, b = act(z[:, :, :f], z[:, :, f:])
        stretch = 1 + ops.tanh(parameters[f"eps.{layer}"])
        return (stretch * x.reshape(shape) - torch.cat([a, b], 2)).reshape(x.shape)

    return step


def complex_start(copied):
    """Equation (3.53): X_1 of the encoder's output."""

    def start(setting, h):
        rows = h.reshape(-1, setting.coordinates, setting.channels)
        return torch.cat([rows, rows if copied else 0 * rows], 2).reshape(len(h), -1)

    return start


def read_complex_pair(ops, setting, z, weight):
    """Equation (3.53): the learner's numbers."""
    rows, h = z.reshape(-1, setting.coordinates, 2, setting.channels), setting.hidden
    return (anchor_network.read_pair(ops, rows[:, :, 0].reshape(-1, h), weight[:, :2 * h])
            + anchor_network.read_pair(ops, rows[:, :, 1].reshape(-1, h), weight[:, 2 * h:]))


def pair_parameters(setting: Setting, columns: int, *, biases: bool = False, attention: int = 0, complex_numbers: bool = False,
                    given: bool = False) -> Arrays:
    """Initial parameters of layers of pairs; without edge weights and encoders of the sheaf."""
    r = anchor_network.initial_parameters(setting, columns)
    rng = np.random.default_rng(1)
    h = setting.hidden
    for name in [name for name in r if name.startswith(("lin_maps", "edge")) or (given and name.startswith("sheaf"))]:
        del r[name]
    if given and setting.bayesian:
        spreads = 1 if setting.rotations else setting.map_numbers
        r["sheaf.var.weight"] = rng.uniform(-1, 1, (spreads, 2 * h)) / math.sqrt(2 * h)
    for layer in range(setting.layers):
        if biases:
            r[f"bias.{layer}"] = np.zeros(setting.channels)
        if biases or attention:
            del r[f"eps.{layer}"]
        if attention:
            r[f"attention.{layer}.weight"] = rng.uniform(-1, 1, (attention, h)) / math.sqrt(h)
            r[f"attention.{layer}.vector"] = rng.uniform(-1, 1, (1, 2 * attention)) / math.sqrt(2 * attention)
    if complex_numbers:
        r["lin2.weight"] = np.concatenate([r["lin2.weight"]] * 2, 1) / 2
        for layer in [] if setting.bayesian else range(setting.layers):
            r[f"sheaf.{layer}.weight"] = np.concatenate([r[f"sheaf.{layer}.weight"]] * 2, 1) / 2
    return r


def concentration(raw):
    """Equation (3.11)."""
    gamma = 0.95 * torch.sigmoid(raw) + 0.025
    return (1 - gamma) / (1 + gamma)


def rotation_kl(kappa):
    """Divergence of the Cayley distribution on SO(3) from the uniform one; on SO(2) it is −log(1 − κ²)."""
    return -torch.log1p(-kappa * kappa) - 2 * torch.log1p(-kappa) - 2 * kappa


@dataclasses.dataclass(frozen=True)
class Bundles:
    """A bundle network of planar bundles or bundles of dimension 3: docs/math/other_networks.md, section 9."""
    bayesian: bool
    classes: int
    dimension: int = 2
    bundles: int = 12
    channels: int = 2
    layers: int = 4
    planar: bool = True  # rotations by angles 2π φ; otherwise Householder's
    shifted: bool = True
    terms: int = 8
    feed_forward: bool = True
    norm: bool = True
    residual: bool = True
    loops: bool = False
    act: Any = torch.relu  # of layers without a feed-forward network
    input_dropout: float = 0.5
    dropout: float = 0.3

    def initial_parameters(self, columns: int) -> Arrays:
        rng = np.random.default_rng(0)
        h = self.bundles * self.dimension * self.channels
        q = self.bundles * (self.dimension * (self.dimension - 1) // 2)

        def uniform(rows, inputs):
            return rng.uniform(-1, 1, (rows, inputs)) / math.sqrt(inputs)

        r = {"lin1.weight": uniform(h, columns), "lin1.bias": np.zeros(h), "lin2.weight": uniform(self.classes, h),
             "lin2.bias": np.zeros(self.classes), "norm.out.weight": np.ones(h), "norm.out.bias": np.zeros(h)}
        for layer in range(self.layers):
            maps = "maps" if self.bayesian else f"maps.{layer}"
            outputs = q + (self.bundles if self.bayesian else 0)
            r |= {f"{maps}.neighbour.weight": uniform(outputs, h), f"{maps}.neighbour.bias": np.zeros(outputs),
                  f"{maps}.self.weight": uniform(outputs, h), f"time.{layer}": np.ones(self.bundles),
                  f"mix.{layer}.hidden.weight": uniform(h, 2 * h), f"mix.{layer}.hidden.bias": np.zeros(h),
                  f"mix.{layer}.output.weight": uniform(h, h), f"mix.{layer}.output.bias": np.zeros(h),
                  f"norm.{layer}.weight": np.ones(h), f"norm.{layer}.bias": np.zeros(h)}
        return r

    def learned(self, ops, parameters, name, x):
        if f"{name}.hidden.weight" in parameters:
            hidden = F.gelu(x @ parameters[f"{name}.hidden.weight"].T + parameters[f"{name}.hidden.bias"])
            return hidden @ parameters[f"{name}.output.weight"].T + parameters[f"{name}.output.bias"]
        mean = ops.sum_arcs(ops.from_target(x)) / ops.degree[:, :, 0].clamp(min=1)
        return (mean @ parameters[f"{name}.neighbour.weight"].T + parameters[f"{name}.neighbour.bias"]
                + x @ parameters[f"{name}.self.weight"].T)

    def rotations(self, ops, raw):
        """n B × d × d."""
        if self.planar:
            c, s = torch.cos(2 * math.pi * raw), torch.sin(2 * math.pi * raw)
            return torch.stack([c, -s, s, c], -1).reshape(-1, 2, 2)
        q = self.dimension * (self.dimension - 1) // 2
        return householder(ops, raw.reshape(-1, q), self.dimension)

    def diffused(self, ops, time, y):
        """p(𝓛) Y by equation (9.4), with D^(−1/2) A D^(−1/2), of A or A + I."""
        shape = y.shape
        y = y.reshape(len(y), self.bundles, -1)
        t = torch.relu(time)[None, :, None]
        degree = ops.degree + 1 if self.loops else ops.degree
        root = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, 0 * degree)
        term = total = y
        for k in range(1, self.terms + 1):
            scaled = root * term
            moved = ops.sum_arcs(ops.from_target(scaled.reshape(shape))).reshape(y.shape)
            moved = root * (moved + scaled if self.loops else moved)
            term = t / k * (moved if self.shifted else moved - term)
            total = total + term
        return ((torch.exp(-t) if self.shifted else 1) * total).reshape(shape)

    def forward(self, ops, parameters, passes):
        first, n = passes[0], ops.nodes
        rate = self.dropout if first.training else 0
        entries = first.keep((ops.entries,), self.input_dropout) if first.training else None
        start = F.gelu(ops.input_product(entries, parameters["lin1.weight"]) + parameters["lin1.bias"])
        h = start.shape[1]
        start = dropped(start, first.keep((n, h), rate))
        kl, outputs = 0.0, []
        if self.bayesian:
            raw = self.learned(ops, parameters, "maps", start).reshape(n, self.bundles, -1)
            mean, kappa = self.rotations(ops, raw[:, :, :-1]), concentration(raw[:, :, -1] - 4)
            kl = (-torch.log1p(-kappa * kappa) if self.dimension == 2 else rotation_kl(kappa)).mean()
        for draws in passes:
            x = start
            for layer in range(self.layers):
                if self.bayesian:
                    turned = draws.around_one(layer, kappa.reshape(-1))
                    o = ops.products(turned, mean)
                else:
                    o = self.rotations(ops, self.learned(ops, parameters, f"maps.{layer}", x))
                z = F.layer_norm(x, (h,), parameters[f"norm.{layer}.weight"], parameters[f"norm.{layer}.bias"]) if self.norm else x
                shape = (-1, self.dimension, self.channels)
                r = ops.products(o, z.reshape(shape)).reshape(n, h)
                time = parameters[f"time.{layer}"]
                if self.feed_forward:
                    hidden = F.gelu(torch.cat([z, self.diffused(ops, time, r)], 1) @ parameters[f"mix.{layer}.hidden.weight"].T
                                    + parameters[f"mix.{layer}.hidden.bias"])
                    hidden = dropped(hidden, draws.keep((n, h), rate))
                    v = hidden @ parameters[f"mix.{layer}.output.weight"].T + parameters[f"mix.{layer}.output.bias"]
                else:
                    v = self.diffused(ops, time, r @ parameters[f"mix.{layer}.weight"].T) + parameters[f"mix.{layer}.bias"]
                v = dropped(v, draws.keep((n, h), rate))
                back = ops.products(ops.transposed(o), v.reshape(shape)).reshape(n, h)
                back = back if self.feed_forward else self.act(back)
                x = x + back if self.residual else back
            if self.norm:
                x = F.layer_norm(x, (h,), parameters["norm.out.weight"], parameters["norm.out.bias"])
            outputs.append(ops.log_softmax(x @ parameters["lin2.weight"].T + parameters["lin2.bias"]))
        return outputs, kl


@dataclasses.dataclass(frozen=True)
class Hypergraphs:
    """A sheaf hypergraph network with the linear Laplacian: docs/math/other_networks.md, section 7. ops.from_node, ops.to_nodes,
    ops.from_hyperedge and ops.to_hyperedges move rows of incident pairs."""
    bayesian: bool
    classes: int
    maps: str
    stalk: int = 2
    channels: int = 16
    layers: int = 2
    input_dropout: float = 0.5
    dropout: float = 0.3

    @property
    def pairs(self) -> Setting:
        """The same maps on pairs of nodes."""
        return Setting(self.bayesian, self.maps, self.classes, self.stalk, self.channels, self.layers)

    def initial_parameters(self, columns: int) -> Arrays:
        r = pair_parameters(self.pairs, columns, biases=True)
        if self.bayesian and self.maps == "special-orthogonal":
            r |= {"lin_maps.weight": r["lin1.weight"].copy(), "lin_maps.bias": r["lin1.bias"].copy()}
        return r

    def forward(self, ops, parameters, passes):
        first, n, setting = passes[0], ops.nodes, self.pairs
        h, f, d = setting.hidden, self.channels, self.stalk
        rate = self.dropout if first.training else 0
        entries = first.keep((ops.entries,), self.input_dropout) if first.training else None
        start = F.elu(ops.input_product(entries, parameters["lin1.weight"]) + parameters["lin1.bias"])
        start = dropped(start, first.keep((n, h), rate))

        def read(z, weight):
            mean = ops.to_hyperedges(ops.from_node(z)) / ops.sizes
            return ops.from_node(z @ weight[:, :h].T) + ops.from_hyperedge(mean @ weight[:, h:].T)

        posterior, kl, outputs = None, 0.0, []
        if self.bayesian:
            z = start
            if "lin_maps.weight" in parameters:
                z = F.elu(ops.input_product(None, parameters["lin_maps.weight"]) + parameters["lin_maps.bias"])
            posterior = anchor_network.Posterior(ops, setting, read(z, parameters["sheaf.mean.weight"]),
                                                 read(z, parameters["sheaf.var.weight"]))
            kl = posterior.kl()
        for draws in passes:
            x = start
            for layer in range(self.layers):
                keep = draws.keep((n, h), rate)
                kept = dropped(x, keep)
                if posterior is not None:
                    maps = posterior.sample(draws, layer)
                else:
                    z = x if layer == 0 else kept
                    maps = anchor_network.Posterior(ops, setting, read(z, parameters[f"sheaf.{layer}.weight"]), None).means()
                y = mixed(ops, setting, parameters, layer, kept)
                if self.maps == "diagonal":
                    moved, back = (lambda w: maps[:, :, None] * w), (lambda w: maps[:, :, None] * w)
                    squares = ops.to_nodes(maps * maps)[:, :, None]
                else:
                    transposed = ops.transposed(maps)
                    moved, back = (lambda w: ops.products(maps, w)), (lambda w: ops.products(transposed, w))
                    squares = (ops.node_degree if setting.rotations else ops.to_nodes(ops.products(transposed, maps)))
                if self.maps == "general-linear":
                    scale = ops.inverse_root(squares + ops.eye(d, maps))
                    scaled, own = (lambda w: ops.products(scale, w)), (lambda w: ops.products(squares, w))
                else:
                    scale = 1 / torch.sqrt(squares + 1)
                    scaled, own = (lambda w: scale * w), (lambda w: squares * w)
                w = scaled(y)
                mean = ops.to_hyperedges(moved(ops.from_node(w)).reshape(-1, d * f)) / ops.sizes
                z = scaled(own(w) - ops.to_nodes(back(ops.from_hyperedge(mean).reshape(-1, d, f))))
                x = y - z + parameters[f"bias.{layer}"]
                x = (F.elu(x) if layer + 1 < self.layers else x).reshape(n, h)
            outputs.append(ops.log_softmax(x @ parameters["lin2.weight"].T + parameters["lin2.bias"]))
        return outputs, kl
