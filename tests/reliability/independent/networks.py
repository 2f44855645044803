"""The networks of docs/math.md in PyTorch: double precision, dense blocks for every arc, gradients by automatic
differentiation. Written from the page, without the library's code.

evaluate() takes a case as cases.py describes it. Functions name the sections of the page whose equations they are.

Shapes: n nodes, 2m arcs sorted by (source, target), D the stalk dimension, d' = D + fixed filters, f channels, h = d' f
hidden features, q = D, D(D-1)/2 or D^2 numbers of a diagonal map, a rotation or a general map.
"""
import math
import types

import numpy
import torch
from torch.nn import functional

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

SHEAF = ("d f L lp hp bayes separate_encoder edge_weights family basis K mixing skip published learner sheaf_act "
         "linear edge_feature_count").split()
COOPERATIVE = ("d f L bayes learner depth act conformal norm mixing_left mixing_right residual separate_encoder heads "
               "directed").split()
DIAGONAL, ROTATION, GENERAL = range(3)
CHEBYSHEV, SECOND, THIRD, FOURTH, INTERPOLATION, LEGENDRE, GEGENBAUER, JACOBI = range(8)
CONCATENATION, SUMMED, SUMMED_PUBLISHED, ATTENTION = range(4)
MLP, SAGE, SAGE_PROJECTED = range(3)


def config_of(case):
    """The integers of a case by name. Integers that nine leave out describe a plain layer: 0, but mixing."""
    names = COOPERATIVE if int(case.get("model", 0)) == 1 else SHEAF
    given = [int(x) for x in case["config"]]
    plain = dict.fromkeys(names[len(given):], 0) | ({"mixing": 1} if len(given) == 9 else {})
    return types.SimpleNamespace(**dict(zip(names, given)), **plain)


def arcs_of(edges):
    """math: "Graph, incident pairs, arcs". Sources, targets and reverse arcs of the 2m arcs of m x 2 edges."""
    arcs = sorted((int(a), int(b)) for u, v in edges for a, b in ((u, v), (v, u)))
    number = {arc: i for i, arc in enumerate(arcs)}
    columns = [u for u, _ in arcs], [v for _, v in arcs], [number[v, u] for u, v in arcs]
    return [torch.tensor(column, dtype=torch.long) for column in columns]


def sum_by(index, values, n):
    """n x ...: the sums of the rows of `values` with the same index."""
    return torch.zeros(n, *values.shape[1:]).index_add(0, index, values)


def affine(parameters, name, x):
    """x W^T + b; no b where the layer has none."""
    y = x @ parameters[name + ".weight"].T
    return y + parameters[name + ".bias"] if name + ".bias" in parameters else y


class InverseRoot(torch.autograd.Function):
    """math: "SPD inverse square root". S = P^(-1/2), n x D x D. With R = P^(1/2) the derivative X of the loss by P
    solves R X + X R = -S G S, where G is that by S."""

    @staticmethod
    def forward(context, p):
        values, vectors = torch.linalg.eigh(p)
        root = (vectors * values.sqrt().unsqueeze(-2)) @ vectors.mT
        inverse = (vectors * values.rsqrt().unsqueeze(-2)) @ vectors.mT
        context.save_for_backward(inverse, root)
        return inverse

    @staticmethod
    def backward(context, g):
        inverse, root = context.saved_tensors
        d = root.shape[-1]
        one = torch.eye(d)
        system = torch.einsum("nij,kl->nikjl", root, one) + torch.einsum("ij,nkl->nikjl", one, root)
        right = -(inverse @ ((g + g.mT) / 2) @ inverse)
        return torch.linalg.solve(system.reshape(-1, d * d, d * d), right.reshape(-1, d * d, 1)).reshape(g.shape)


def householder(phi, d):
    """math: "Rotations", Householder. Rotations k x D x D of k x D(D-1)/2 numbers."""
    lower = torch.zeros(len(phi), d, d)
    rows, columns = numpy.tril_indices(d, -1)
    if d > 1:
        lower = lower.index_put((torch.arange(len(phi))[:, None], torch.tensor(rows), torch.tensor(columns)), phi)
    a = lower + torch.eye(d)
    q = torch.eye(d).expand(len(phi), d, d)
    for j in range(d):
        column = a[:, :, j]
        outer = column[:, :, None] * column[:, None, :]
        q = q @ (torch.eye(d) - 2 * outer / (column ** 2).sum(1)[:, None, None])
    return -q if d % 2 else q


def cayley_sample(mean, kappa, uniform):
    """math: "Sampling without the singularity" (2.7). Samples k x D x D of C(mean, kappa) from uniform rotations."""
    one, kappa = torch.eye(mean.shape[-1]), kappa[:, None, None]
    return torch.linalg.solve(one + kappa * uniform, uniform + kappa * one) @ mean


def cayley_divergence(kappa, d):
    """math: "KL to the uniform distribution" (2.12), of SO(D), for every kappa."""
    k = d // 2
    exponents = [2 * i for i in range(1, k)] if d % 2 == 0 else [2 * i - 1 for i in range(1, k + 1)]
    removed = sum((kappa ** i / i for i in exponents), torch.zeros_like(kappa))
    return (d * (d - 1) / 2 * (torch.log1p(kappa) - torch.log1p(-kappa))
            - (d - 1) * (2 * k * torch.log1p(kappa) + removed))


def concentration(raw):
    """math: "Posteriors" (3.11). kappa."""
    inverse_scale = 0.95 * torch.sigmoid(raw) + 0.025
    return (1 - inverse_scale) / (1 + inverse_scale)


def normal_divergence(mean, log_deviation):
    """math: "Posteriors", the table: KL to N(0, 1), number by number."""
    return 0.5 * (mean ** 2 + torch.exp(2 * log_deviation) - 1) - log_deviation


def recurrence(basis, degree, basis_parameters, published):
    """math: "Polynomial filters" (3.22). A_k, B_k, C_k, 3 x K; C_0 is 0. `published`: as in its authors' code."""
    alpha, beta, gegenbauer = (float(x) for x in basis_parameters[:3])
    s = alpha + beta
    first = {CHEBYSHEV: (1, 0, 0), INTERPOLATION: (1, 0, 0), SECOND: (2, 0, 0), THIRD: (2, -1, 0), FOURTH: (2, 1, 0),
             LEGENDRE: (1, 0, 0), GEGENBAUER: (2 * gegenbauer, 0, 0),
             JACOBI: ((s + 2) / 2, (alpha - beta) / (s + 2 if published else 2), 0)}
    steps = [first[basis]]
    for k in range(1, degree):
        t, r = 2 * k + s, 2 * (k + 1) * (k + s + 1)
        product = 2 * (k + alpha) * (k + beta)
        if basis == LEGENDRE:
            steps.append(((2 * k + 1) / (k + 1), 0, k / (k + 1)))
        elif basis == GEGENBAUER:
            steps.append((2 * (k + gegenbauer) / (k + 1), 0, (k + 2 * gegenbauer - 1) / (k + 1)))
        elif basis == JACOBI and published:
            steps.append((r / ((t + 1) * (t + 2) + 1e-8), (beta ** 2 - alpha ** 2) / (t * (t + 2) + 1e-8),
                          product / (t * (t + 1) + 1e-8)))
        elif basis == JACOBI:
            steps.append(((t + 1) * (t + 2) / r, (alpha ** 2 - beta ** 2) * (t + 1) / (r * t),
                          product * (t + 2) / (r * t)))
        else:
            steps.append((2, 0, 1))
    return numpy.array(steps[:degree], float).reshape(degree, 3).T


def coefficients(basis, degree, theta, published):
    """math: "Polynomial filters" (3.21), for interpolation (3.23). The K + 1 numbers w_k of K + 1 numbers theta."""
    if basis != INTERPOLATION:
        return torch.softmax(theta, 0)
    k = torch.arange(degree + 1)
    angles = (k + 0.5) * math.pi / (degree + 1)
    factor = torch.full((degree + 1,), 2 / (degree + 1))
    factor[0] *= 1 if published else 0.5
    return factor * (torch.cos(k[:, None] * angles) @ theta)


class Laplacian:
    """math: "Coboundary and Laplacian" (1.2), (1.3), augmented, and "Fixed filters": low-pass first, then high-pass.
    Of maps F, 2m x D x D; acts on n x d' x f."""

    def __init__(self, n, arcs, maps, fixed):
        self.source, self.target, reverse = arcs
        self.d, self.fixed = maps.shape[-1], fixed
        squares = sum_by(self.source, maps.mT @ maps, n)
        scale = InverseRoot.apply(squares + torch.eye(self.d))
        self.diagonal = scale @ squares @ scale
        self.transport = -scale[self.source] @ maps.mT @ maps[reverse] @ scale[self.target]
        degree = sum_by(self.source, torch.ones(len(maps)), n)
        self.fixed_diagonal = degree / (degree + 1)
        self.fixed_transport = ((degree[self.source] + 1) * (degree[self.target] + 1)) ** -0.5

    def __call__(self, x):
        n, learned = len(x), x[:, :self.d]
        parts = [self.diagonal @ learned + sum_by(self.source, self.transport @ learned[self.target], n)]
        for i, sign in enumerate(self.fixed):
            y = x[:, self.d + i]
            neighbours = sum_by(self.source, self.fixed_transport[:, None] * y[self.target], n)
            parts.append((self.fixed_diagonal[:, None] * y + sign * neighbours)[:, None])
        return torch.cat(parts, 1)


class SheafLearner:
    """math: "Sheaf learner". Reads z, n x h, and tells of every arc what its map is made of."""

    def __init__(self, case, config, arcs, parameters):
        self.config, self.parameters = config, parameters
        self.source, self.target, self.reverse = arcs
        self.edge_features = torch.tensor(case["edge_features"]) if config.edge_feature_count else None

    def pairs(self, z):
        return torch.cat([z[self.source], z[self.target]], 1)

    def raw(self, name, z):
        """2m x (rows of the weights)."""
        c, d = self.config, self.config.d + self.config.lp + self.config.hp
        if c.learner == SUMMED:
            read = self.pairs(z.reshape(len(z), d, c.f).sum(1))
        elif c.learner == SUMMED_PUBLISHED:
            read = self.pairs(z).reshape(len(self.source), d, 2 * c.f).sum(1)
        else:
            read = self.pairs(z)
        if self.edge_features is not None:
            read = torch.cat([read, self.edge_features], 1)
        return affine(self.parameters, name, read)

    def activation(self, raw):
        return [torch.tanh, lambda x: x, functional.elu][self.config.sheaf_act](raw)

    def edge_weights(self, name, z):
        """Equation (3.8). 2m x 1 x 1, 1 without edge weights."""
        if not self.config.edge_weights:
            return torch.ones(len(self.source), 1, 1)
        half = torch.sigmoid(affine(self.parameters, name, self.pairs(z)))[:, :, None]
        return half * half[self.reverse]

    def maps(self, numbers):
        """2m x D x D of the q numbers of diagonal or general maps, row by row."""
        d = self.config.d
        return torch.diag_embed(numbers) if self.config.family == DIAGONAL else numbers.reshape(-1, d, d)

    def point(self, l, z):
        """The maps of layer l of a deterministic network: "The model"."""
        c, raw = self.config, self.raw(f"sheaf.{l}", z)
        if c.learner == ATTENTION:
            return torch.eye(c.d) - torch.softmax(raw.reshape(-1, c.d, c.d), -1)
        if c.family == ROTATION:
            return self.edge_weights(f"edge.{l}", z) * householder(self.activation(raw), c.d)
        return self.maps(self.activation(raw))

    def posterior(self, z):
        """math: "Posteriors" (3.10), (3.11). Maps as a function of a layer's noise, and the mean KL over the pairs."""
        c, mean, spread = self.config, self.activation(self.raw("sheaf.mean", z)), self.raw("sheaf.var", z)
        if c.family == ROTATION:
            rotation, kappa, weight = householder(mean, c.d), concentration(spread[:, 0]), self.edge_weights("edge", z)
            divergence = cayley_divergence(kappa, c.d)

            def draw(noise):
                return weight * cayley_sample(rotation, kappa, noise)
        else:
            log_deviation = -functional.elu(-spread)
            divergence = normal_divergence(mean, log_deviation).sum(1)

            def draw(noise):
                return self.maps(mean + torch.exp(log_deviation) * noise.reshape(mean.shape))
        return draw, divergence.sum() / max(1, len(divergence))


def filtered(case, config, parameters, laplacian, x, y):
    """math: "Polynomial filters" (3.20)-(3.22). p(L) Y and the high-pass term, n x d' x f."""
    steps = recurrence(config.basis, config.K, case["basis_parameters"], config.published)
    weights = coefficients(config.basis, config.K, parameters["poly.logits"], config.published)
    largest = float(case["basis_parameters"][3])
    before, term = torch.zeros_like(y), y
    z = weights[0] * y
    for k in range(config.K):
        a, b, c = steps[:, k]
        before, term = term, a * (2 / largest * laplacian(term) - term) + b * term - c * before
        z = z + weights[k + 1] * term
    return z + parameters["poly.skip"] * ((y if config.skip else x) - laplacian(y) / largest)


def mixed(parameters, l, x):
    """math: "The model" (3.5). Y, n x d' x f, with A and B where the model has them."""
    if f"left.{l}" in parameters:
        x = parameters[f"left.{l}"] @ x
    return x @ parameters[f"right.{l}"].T if f"right.{l}" in parameters else x


def sheaf_network(case, parameters):
    """math: "The model" (3.1)-(3.7), with "Polynomial filters" where there are 18 integers.

    Returns the log-probabilities, n x C, KL and the features before every layer and after the last, n x d' x f.
    """
    c, n, features = config_of(case), int(case["n_nodes"]), torch.tensor(case["features"])
    arcs = arcs_of(case["edges"])
    learner = SheafLearner(case, c, arcs, parameters)
    x = functional.elu(affine(parameters, "lin1", features))
    divergence = torch.zeros(())
    if c.bayes:
        draw, divergence = learner.posterior(
            functional.elu(affine(parameters, "lin_maps", features)) if c.separate_encoder else x)
    x = x.reshape(n, c.d + c.lp + c.hp, c.f)
    hidden = [x]
    for l in range(c.L):
        if l == 0 or not c.linear:
            maps = draw(torch.tensor(case[f"noise.{l}"])) if c.bayes else learner.point(l, x.reshape(n, -1))
            laplacian = Laplacian(n, arcs, maps, [1] * c.lp + [-1] * c.hp)
        y = mixed(parameters, l, x)
        z = filtered(case, c, parameters, laplacian, x, y) if "poly.logits" in parameters else laplacian(y)
        x = (1 + torch.tanh(parameters[f"eps.{l}"])) * x - functional.elu(z)
        hidden.append(x)
    return torch.log_softmax(affine(parameters, "lin2", x.reshape(n, -1)), 1), divergence, hidden


def node_learner(config, parameters, name, x, source, target):
    """math: "Learners of node maps". Numbers of every node, n x (q + ...), from x, n x h."""
    if config.learner == MLP:
        return affine(parameters, name + ".output", torch.relu(affine(parameters, name + ".hidden", x)))
    n = len(x)
    entering = sum_by(target, torch.ones(len(target)), n).clamp(min=1)[:, None]
    for k in range(config.depth):
        part = name if config.depth == 1 else f"{name}.{k}"
        sent = torch.relu(affine(parameters, part + ".projection", x)) if config.learner == SAGE_PROJECTED else x
        mean = sum_by(target, sent[source], n) / entering
        x = affine(parameters, part + ".neighbour", mean) + affine(parameters, part + ".self", x)
        if k + 1 < config.depth and config.learner == SAGE:
            centred = x - x.mean()
            normalised = centred / ((centred ** 2).mean().sqrt() + 1e-5)
            x = torch.relu(normalised * parameters[part + ".norm.weight"] + parameters[part + ".norm.bias"])
        elif k + 1 < config.depth:
            x = functional.gelu(x)
    return x


def cooperative_network(case, parameters):
    """math: "Cooperative sheaves" (4.1)-(4.3), "Learners of node maps" (4.6), "Bayesian cooperative sheaves" (4.11),
    (4.12). Returns what sheaf_network() does."""
    c, n, features = config_of(case), int(case["n_nodes"]), torch.tensor(case["features"])
    source, target = torch.tensor(case["edges"]).reshape(-1, 2).T if c.directed else arcs_of(case["edges"])[:2]
    leaving, entering = (sum_by(ends, torch.ones(len(ends)), n) for ends in (source, target))
    act = [functional.gelu, functional.elu, torch.relu, torch.tanh, torch.sigmoid, lambda x: x][c.act]
    q, ones = c.d * (c.d - 1) // 2, torch.ones(n)

    def rotations(numbers):
        return householder(torch.tanh(numbers[:, :q]), c.d)

    def scales(logarithms):
        return torch.exp(logarithms.clamp(max=math.log(10)))

    def posterior(side, z):
        numbers = node_learner(c, parameters, side, z, source, target)
        mean, kappa = rotations(numbers), concentration(numbers[:, q])
        divergence = cayley_divergence(kappa, c.d)
        if c.conformal:
            mu, log_deviation = numbers[:, q + 1], -functional.elu(-numbers[:, q + 2])
            divergence = divergence + normal_divergence(mu, log_deviation)

        def draw(l):
            rotation, scale = (torch.tensor(case[f"noise.{l}.{side}.{part}"]) for part in ("rotation", "scale"))
            size = scales(mu + torch.exp(log_deviation) * scale) if c.conformal else ones
            return cayley_sample(mean, kappa, rotation), size
        return draw, divergence

    def point(side, l, x):
        numbers = node_learner(c, parameters, f"{side}.{l}", x.reshape(n, -1), source, target)
        return rotations(numbers), scales(numbers[:, q]) if c.conformal else ones

    x = act(affine(parameters, "lin1", features))
    divergence = torch.zeros(())
    if c.bayes:
        z = act(affine(parameters, "lin_maps", features)) if c.separate_encoder else x
        (draw_out, of_out), (draw_in, of_in) = posterior("out", z), posterior("in", z)
        divergence = (of_out + of_in).sum() / (2 * n)
    x = x.reshape(n, c.d, c.f)
    hidden = [x]
    for l in range(c.L):
        (p, tau), (r, sigma) = (draw_out(l), draw_in(l)) if c.bayes else (point("out", l, x), point("in", l, x))
        tau, sigma = tau[:, None, None], sigma[:, None, None]
        t, s = tau * p, sigma * r
        plus, minus = leaving[:, None, None], entering[:, None, None]

        def operator(y, scale, diagonal):
            """(4.2), with a or b for `scale`."""
            return diagonal * y - scale * (t.mT @ sum_by(source, (scale * (s @ y))[target], n))

        a, b = (plus * tau ** 2 + 1) ** -0.5, (minus * sigma ** 2 + 1) ** -0.5
        y = operator(mixed(parameters, l, x), a, a ** 2 * plus * tau ** 2)
        z = operator(y, b, b ** 2 * plus * sigma ** 2)
        x = (1 + torch.tanh(parameters[f"eps.{l}"])) * x - act(z) if c.residual else act(z)
        if c.norm:
            rows, axis = x.reshape(n, -1), 1 if c.norm == 1 else 0
            variance, mean = torch.var_mean(rows, axis, correction=0, keepdim=True)
            normalised = (rows - mean) / torch.sqrt(variance + 1e-5)
            x = (normalised * parameters[f"norm.{l}.weight"] + parameters[f"norm.{l}.bias"]).reshape(n, c.d, c.f)
        hidden.append(x)
    rows = x.reshape(n, -1)
    for i in range(c.heads - 1):
        rows = functional.gelu(affine(parameters, f"head.{i}", rows))
    return torch.log_softmax(affine(parameters, "lin2", rows), 1), divergence, hidden


def evaluate(case):
    """math: "Loss" (3.35), one sample. The outputs and the gradients of a case by their keys."""
    parameters = {key.removeprefix("param."): torch.tensor(case[key], dtype=torch.float64, requires_grad=True)
                  for key in case if key.startswith("param.")}
    network = cooperative_network if int(case.get("model", 0)) == 1 else sheaf_network
    log_probabilities, divergence, hidden = network(case, parameters)
    nodes = torch.tensor(numpy.flatnonzero(case["train_mask"]))
    labels = torch.tensor(case["labels"], dtype=torch.long)
    loss = -log_probabilities[nodes, labels[nodes]].mean() + float(case["kl_weight"]) * divergence
    loss.backward()
    r = {"log_probabilities": log_probabilities, "kl": divergence, "loss": loss}
    r |= {f"hidden.{l}": x for l, x in enumerate(hidden)}
    r |= {"grad." + name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in parameters.items()}
    return {key: value.detach().numpy() for key, value in r.items()}
