"""The network of epochs.cpp in plain array code, for both frameworks of anchors.py: docs/math/model.md, sections 3.1 to 3.9.

The functions take `ops`, the operations of a framework (anchor_jax.py, anchor_torch.py):

    tanh, exp, log1p, sqrt, sigmoid, where, concatenate, stack, kron, log_softmax, elu  of arrays
    from_source(x), from_target(x)  rows of nodes for every arc: 2m × …
    reversed(x)                     rows of the opposite arcs
    sum_arcs(x)                     for every node the sum over its arcs: n × …
    products(a, b)                  a b for every row of … × i × k and … × k × j
    inverse_root(p)                 P^(−1/2) of n × d × d; inverse_root() and its derivative below
    eye(d, like), transposed(x)     of d × d
    input_product(keep, weight)     X Wᵀ, X the features; `keep` multiplies their non-zero entries, None keeps them

and `draws`, what a pass draws: keep(shape, rate) gives factors 0 and 1 / (1 − rate), or None for rate 0;
normal(layer, shape), and quaternion(layer, arcs), whose rows have the direction of a uniform unit quaternion.

Parameters are named as in tests/golden/README.md, weights out × in. Arcs are sorted by source, then target.
"""
import dataclasses
import math
import pathlib
import re
from typing import Any

import numpy as np

Arrays = dict[str, Any]
# Of both frameworks' Adam. With 0.01, as in epochs.cpp, roots of nearly singular matrices became NaN within a hundred epochs. Times do not
# depend on it.
LEARNING_RATE = 0.001
FAMILIES = ["diagonal", "special-orthogonal", "general-linear"]  # in the order of tests/golden/README.md


@dataclasses.dataclass(frozen=True)
class Setting:
    """The architecture, with the defaults of epochs.cpp."""
    bayesian: bool
    maps: str
    classes: int
    stalk: int = 3
    channels: int = 16
    layers: int = 4
    filters: tuple[int, ...] = ()  # fixed stalk coordinates: 1 low-pass, -1 high-pass
    input_dropout: float = 0.5
    dropout: float = 0.3
    # What a network has in place of diffusion_step(), of the encoder's output as X_1, of read_pair(), of outputs_of(), and of
    # householder() of tanh.
    step: Any = None
    start: Any = None
    read: Any = None
    output: Any = None
    rotation: Any = None
    spread: tuple[float, float] = (0.0, 0.025)  # of the posterior: what is taken from its raw numbers, and ε of equation (3.11)

    @property
    def rotations(self) -> bool:
        return self.maps == "special-orthogonal"

    @property
    def coordinates(self) -> int:
        """d', all stalk coordinates."""
        return self.stalk + len(self.filters)

    @property
    def hidden(self) -> int:
        return self.coordinates * self.channels

    @property
    def map_numbers(self) -> int:
        """Numbers of the learner for one map."""
        d = self.stalk
        return {"diagonal": d, "special-orthogonal": d * (d - 1) // 2, "general-linear": d * d}[self.maps]


@dataclasses.dataclass(frozen=True)
class Graph:
    """Arcs and features, as NumPy arrays: what the frameworks prepare their operations from."""
    nodes: int
    source: np.ndarray
    target: np.ndarray
    reverse: np.ndarray
    offsets: np.ndarray  # n + 1: a node's arcs
    features: np.ndarray  # n × p
    labels: np.ndarray
    train: np.ndarray  # numbers of nodes
    validation: np.ndarray
    test: np.ndarray

    @staticmethod
    def of(edges: np.ndarray, features: np.ndarray, labels: np.ndarray, masks: list[np.ndarray]) -> "Graph":
        """From undirected edges, m × 2, in any order and direction; loops and repetitions are left out."""
        n = len(labels)
        edges = edges[edges[:, 0] != edges[:, 1]].astype(np.int64)
        keys = np.unique(np.concatenate([edges[:, 0] * n + edges[:, 1], edges[:, 1] * n + edges[:, 0]]))
        source, target = keys // n, keys % n
        offsets = np.searchsorted(source, np.arange(n + 1))
        reverse = np.searchsorted(keys, target * n + source)
        return Graph(n, source, target, reverse, offsets, features, labels.astype(np.int64),
                     *(np.flatnonzero(mask) for mask in masks))


def load(path: pathlib.Path) -> Graph:
    """A public graph with its first split; rows of features have sum 1."""
    arrays = np.load(path)
    features = arrays["node_features"].astype(np.float64)
    sums = np.abs(features).sum(1, keepdims=True)
    features /= np.where(sums > 0, sums, 1)
    return Graph.of(arrays["edges"], features, arrays["node_labels"],
                    [arrays[part + "_masks"][0].astype(bool) for part in ("train", "val", "test")])


def twin(name: str) -> Graph:
    """A random graph with the sizes that support/epoch_graphs.hpp has of a graph."""
    text = (pathlib.Path(__file__).parent / "support/epoch_graphs.hpp").read_text(encoding="utf-8")
    found = re.search(rf'{{"{name}", ((?:\d+, )+)', text)
    if found is None:
        raise ValueError(f"support/epoch_graphs.hpp has no graph {name}")
    n, m, columns, entries, classes, hub = (int(number) for number in found[1].split(", ")[:6])
    rng = np.random.default_rng(0)
    pairs = {(0, v) for v in range(1, hub + 1)}
    while len(pairs) < m:
        u, v = sorted(rng.integers(1, n, 2).tolist())
        if u != v:
            pairs.add((u, v))
    features = np.zeros((n, columns))
    for u in range(n):
        count = entries * (u + 1) // n - entries * u // n
        features[u, rng.choice(columns, count, replace=False)] = 1 / max(count, 1)
    part = rng.choice(3, n, p=[0.48, 0.32, 0.2])
    return Graph.of(np.array(sorted(pairs)), features, rng.integers(0, classes, n), [part == k for k in range(3)])


def initial_parameters(setting: Setting, columns: int) -> Arrays:
    """Section 3.14."""
    rng = np.random.default_rng(0)
    h, q = setting.hidden, setting.map_numbers

    def uniform(rows: int, inputs: int, *shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, (rows, *shape)) / math.sqrt(inputs)

    r: Arrays = {"lin1.weight": uniform(h, columns, columns), "lin1.bias": uniform(h, columns),
                 "lin2.weight": uniform(setting.classes, h, h), "lin2.bias": uniform(setting.classes, h)}
    if setting.bayesian:
        if setting.rotations:
            r |= {"lin_maps.weight": uniform(h, columns, columns), "lin_maps.bias": uniform(h, columns)}
        r |= {"sheaf.mean.weight": uniform(q, 2 * h, 2 * h),
              "sheaf.var.weight": uniform(1 if setting.rotations else q, 2 * h, 2 * h)}
    for name in ([""] if setting.bayesian else [f"{layer}." for layer in range(setting.layers)]):
        if not setting.bayesian:
            r[f"sheaf.{name}weight"] = uniform(q, 2 * h, 2 * h)
        if setting.rotations:
            r[f"edge.{name}weight"] = uniform(1, 2 * h, 2 * h)
    for layer in range(setting.layers):
        r[f"left.{layer}"] = np.eye(setting.coordinates)
        r[f"right.{layer}"] = np.linalg.qr(rng.normal(size=(setting.channels, setting.channels)))[0]
        r[f"eps.{layer}"] = np.zeros((setting.coordinates, 1))
    return r


def eigen(ops: Any, p: Any) -> tuple[Any, Any]:
    """Eigenvalues, n × d, and eigenvectors, n × d × d, of symmetric matrices by five sweeps of Jacobi's rotations: arithmetic
    of whole arrays, which is faster for small matrices than one call of LAPACK for each."""
    d = p.shape[-1]
    a = [[p[:, i, j] for j in range(d)] for i in range(d)]
    q = [[p[:, 0, 0] * 0 + float(i == j) for j in range(d)] for i in range(d)]
    for k, l in [(k, l) for k in range(d) for l in range(k + 1, d)] * (5 if d > 2 else 1):
        gap, off = a[l][l] - a[k][k], 2 * a[k][l]
        length = ops.sqrt(gap * gap + off * off)
        size = ops.where(gap >= 0, gap + length, gap - length)
        t = ops.where(off == 0, 0 * off, off / ops.where(off == 0, 1 + 0 * off, size))
        c = 1 / ops.sqrt(t * t + 1)
        s = t * c
        a[k][k], a[l][l] = a[k][k] - t * a[k][l], a[l][l] + t * a[k][l]
        a[k][l] = a[l][k] = 0 * off
        for i in range(d):
            if i not in (k, l):
                a[i][k], a[i][l] = c * a[i][k] - s * a[i][l], s * a[i][k] + c * a[i][l]
                a[k][i], a[l][i] = a[i][k], a[i][l]
            q[i][k], q[i][l] = c * q[i][k] - s * q[i][l], s * q[i][k] + c * q[i][l]
    return ops.stack([a[i][i] for i in range(d)], 1), ops.stack([ops.stack(row, 1) for row in q], 1)


def inverse_root(ops: Any, p: Any) -> tuple[Any, Any, Any]:
    """P^(−1/2) of symmetric positive definite matrices, the roots of their eigenvalues, and their eigenvectors."""
    values, q = eigen(ops, p)
    roots = ops.sqrt(values)
    return ops.products(q / roots[:, None, :], ops.transposed(q)), roots, q


def inverse_root_derivative(ops: Any, roots: Any, q: Any, bar: Any) -> Any:
    """The derivative in P for the derivative in P^(−1/2): section 1.3, finite where eigenvalues are equal."""
    inside = ops.products(ops.products(ops.transposed(q), 0.5 * (bar + ops.transposed(bar))), q)
    a, b = roots[:, :, None], roots[:, None, :]
    return ops.products(ops.products(q, -inside / (a * b * (a + b))), ops.transposed(q))


def read_pair(ops: Any, z: Any, weight: Any) -> Any:
    """W [Z_u ‖ Z_v] for every arc, by equation (3.9): 2m × q."""
    h = z.shape[1]
    return ops.from_source(z @ weight[:, :h].T) + ops.from_target(z @ weight[:, h:].T)


def householder(ops: Any, phi: Any, d: int) -> Any:
    """Rotations H_1 … H_d of reflections, negated for odd d; phi fills the strictly lower triangle row by row."""
    one = phi[:, 0] * 0 + 1
    rotation = [[one if i == j else 0 * one for j in range(d)] for i in range(d)]
    for j in range(d - 1):  # H_d changes the sign of the last column
        a = [one] + [phi[:, i * (i - 1) // 2 + j] for i in range(j + 1, d)]
        twice = 2 / sum(x * x for x in a)
        for row in rotation:
            inner = twice * sum(x * y for x, y in zip(row[j:], a))
            row[j:] = [x - inner * y for x, y in zip(row[j:], a)]
    for row in rotation:
        row[d - 1] = -row[d - 1]
    entries = [-x if d % 2 else x for row in rotation for x in row]
    return ops.stack(entries, 1).reshape(-1, d, d)


def quaternion_rotation(ops: Any, w: Any, x: Any, y: Any, z: Any) -> Any:
    """Rotations of quaternions of any length but 0: 2m × 3 × 3."""
    s = 2 / (w * w + x * x + y * y + z * z)
    rows = [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
            s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x),
            s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)]
    return ops.stack(rows, 1).reshape(-1, 3, 3)


class Posterior:
    """Distributions of the maps, formed of the learner's numbers, equations (3.10) and (3.11)."""

    def __init__(self, ops: Any, setting: Setting, mean: Any, spread: Any):
        self.ops, self.setting = ops, setting
        self.given = mean.shape[1] == 0  # is the distribution around given maps?
        self.mean = ops.tanh(mean)
        if setting.rotations:
            self.rotation = (ops.given_maps if self.given else setting.rotation(ops, mean) if setting.rotation
                             else householder(ops, self.mean, setting.stalk))
        if spread is None:
            return
        shift, least = setting.spread
        spread = spread - shift if shift else spread
        if setting.rotations:
            gamma = (1 - 2 * least) * ops.sigmoid(spread[:, 0]) + least
            self.kappa = (1 - gamma) / (1 + gamma)
        else:
            self.log_sigma = -ops.elu(-spread)
            self.sigma = ops.exp(self.log_sigma)

    def shaped(self, numbers: Any) -> Any:
        d = self.setting.stalk
        return numbers if self.setting.maps == "diagonal" else numbers.reshape(-1, d, d)

    def means(self) -> Any:
        return self.rotation if self.setting.rotations else self.shaped(self.mean)

    def sample(self, draws: Any, layer: int) -> Any:
        if not self.setting.rotations:
            noise = self.sigma * draws.normal(layer, tuple(self.sigma.shape))
            return self.ops.given_maps + self.shaped(noise) if self.given else self.shaped(self.mean + noise)
        if self.setting.stalk == 2:
            return self.ops.products(draws.around_one(layer, self.kappa), self.rotation)
        q = draws.quaternion(layer, self.mean.shape[0])
        # The matrix Möbius map for n = 3: a uniform quaternion with its real part scaled.
        around_one = quaternion_rotation(self.ops, q[:, 0] * ((1 + self.kappa) / (1 - self.kappa)), q[:, 1], q[:, 2], q[:, 3])
        return self.ops.products(around_one, self.rotation)

    def kl(self) -> Any:
        """The mean over the arcs."""
        ops = self.ops
        if self.setting.rotations:
            k = self.kappa
            if self.setting.stalk == 2:
                return -ops.log1p(-k * k).mean()
            return (-ops.log1p(-k * k) - 2 * ops.log1p(-k) - 2 * k).mean()
        squares = 0 if self.given else self.mean * self.mean
        return (0.5 * (squares + self.sigma * self.sigma - 1) - self.log_sigma).sum(1).mean()


def diffusion(ops: Any, setting: Setting, maps: Any, weights: Any) -> Any:
    """The function Y ↦ Δ Y of n × d' × f, in the three steps of (3.15); `weights` of edges for rotations."""
    d = setting.stalk
    if setting.maps == "diagonal":
        squares = ops.sum_arcs(maps * maps)[:, :, None]
        scale = 1 / ops.sqrt(squares + 1)
        block = (maps * ops.reversed(maps))[:, :, None]

        def normalised(y: Any) -> Any:
            w = scale * y
            return scale * (squares * w - ops.sum_arcs(block * ops.from_target(w)))
    elif setting.rotations:
        squares = ops.degree if weights is None else ops.sum_arcs(weights * weights)[:, :, None]
        scale = 1 / ops.sqrt(squares + 1)
        block = ops.products(ops.transposed(maps), ops.reversed(maps))
        if weights is not None:
            block = (weights * weights)[:, :, None] * block

        def normalised(y: Any) -> Any:
            w = scale * y
            return scale * (squares * w - ops.sum_arcs(ops.products(block, ops.from_target(w))))
    else:
        transposed = ops.transposed(maps)
        squares = ops.sum_arcs(ops.products(transposed, maps))
        scale = ops.inverse_root(squares + ops.eye(d, maps))
        block = ops.products(transposed, ops.reversed(maps))

        def normalised(y: Any) -> Any:
            w = ops.products(scale, y)
            return ops.products(scale, ops.products(squares, w) - ops.sum_arcs(ops.products(block, ops.from_target(w))))

    if not setting.filters:
        return normalised

    def filtered(y: Any) -> Any:
        rows = [normalised(y[:, :d])]
        root = 1 / ops.sqrt(ops.degree + 1)
        for k, sign in enumerate(setting.filters):
            w = root * y[:, d + k:d + k + 1]
            rows.append(root * (ops.degree * w + sign * ops.sum_arcs(ops.from_target(w))))
        return ops.concatenate(rows, 1)

    return filtered


def edge_weights(ops: Any, z: Any, weight: Any) -> Any:
    """Equation (3.8): 2m × 1."""
    one_way = ops.sigmoid(read_pair(ops, z, weight))
    return one_way * ops.reversed(one_way)


def dropped(x: Any, keep: Any) -> Any:
    return x if keep is None else x * keep


def mixed(ops: Any, setting: Setting, parameters: Arrays, layer: int, x: Any) -> Any:
    """(I ⊗ A) X Bᵀ, n × d' × f."""
    mixing = ops.kron(parameters[f"left.{layer}"], parameters[f"right.{layer}"])
    return (x @ mixing.T).reshape(x.shape[0], setting.coordinates, setting.channels)


def diffusion_step(ops: Any, setting: Setting, parameters: Arrays, layer: int, x: Any, _: Any, kept: Any, maps: Any, weights: Any) -> Any:
    """Equation (3.6): X' from X, its dropout `kept`, the maps and the edges' weights. The other argument is X of the layer before."""
    y = mixed(ops, setting, parameters, layer, kept)
    z = diffusion(ops, setting, maps, weights)(y)
    stretch = 1 + ops.tanh(parameters[f"eps.{layer}"])
    return (stretch * x.reshape(y.shape) - ops.elu(z)).reshape(x.shape)


def outputs_of(ops: Any, parameters: Arrays, x: Any) -> Any:
    """Equation (3.7)."""
    return ops.log_softmax(x @ parameters["lin2.weight"].T + parameters["lin2.bias"])


def forward(ops: Any, setting: Setting, parameters: Arrays, passes: list[Any]) -> tuple[list[Any], Any]:
    """Log-probabilities, n × C, of as many passes as there are elements of draws; they share the posterior. And KL,
    0 for deterministic networks."""
    first = passes[0]
    n, h = ops.nodes, setting.hidden
    rate = setting.dropout if first.training else 0
    entries = first.keep((ops.entries,), setting.input_dropout) if first.training else None
    embedded = ops.elu(ops.input_product(entries, parameters["lin1.weight"]) + parameters["lin1.bias"])
    embedded = dropped(embedded, first.keep((n, h), rate))
    posterior, weights, kl = None, None, 0.0
    if setting.bayesian:
        z = embedded
        if "lin_maps.weight" in parameters:
            z = ops.elu(ops.input_product(None, parameters["lin_maps.weight"]) + parameters["lin_maps.bias"])
        if "edge.weight" in parameters:
            weights = edge_weights(ops, z, parameters["edge.weight"])
        learner = [parameters[name] for name in ("sheaf.mean.weight", "sheaf.var.weight") if name in parameters]
        raw = read_pair(ops, z, ops.concatenate(learner, 0))
        rows = raw.shape[1] - learner[-1].shape[0]
        posterior = Posterior(ops, setting, raw[:, :rows], raw[:, rows:])
        kl = posterior.kl()
    outputs = []
    for draws in passes:
        x = before = embedded if setting.start is None else setting.start(setting, embedded)
        for layer in range(setting.layers):
            keep = draws.keep(tuple(x.shape), rate)
            z = x if layer == 0 else dropped(x, keep)
            if posterior is not None:
                maps = posterior.sample(draws, layer)
            elif f"sheaf.{layer}.weight" in parameters:
                weight = parameters[f"sheaf.{layer}.weight"]
                raw = read_pair(ops, z, weight) if setting.read is None else setting.read(ops, setting, z, weight)
                maps = Posterior(ops, setting, raw, None).means()
                name = f"edge.{layer}.weight"
                weights = edge_weights(ops, z, parameters[name]) if name in parameters else None
            else:
                maps = ops.given_maps
            x, before = (setting.step or diffusion_step)(ops, setting, parameters, layer, x, before, dropped(x, keep), maps, weights), x
        outputs.append((setting.output or outputs_of)(ops, parameters, x))
    return outputs, kl


def mean_loss(log_probabilities: Any, labels: Any, nodes: Any) -> Any:
    """Mean NLL of some nodes."""
    return -log_probabilities[nodes, labels[nodes]].mean()


def kl_weight(epoch: int) -> float:
    """Equation (3.36)."""
    return 1 / (1 + math.exp(10 - (epoch % 40) / 2))
