#!/usr/bin/env python3
"""Errors of the library's functions against mpmath at 60 digits.

usage: accuracy.py [--only WORD] [--worst] [--update FILE.json]
  --only    rows whose function contains the word
  --worst   prints where the largest error is
  --update  writes the figures that docs/results/tables.py makes the tables of docs/accuracy.md from
Needs mpmath (Debian: python3-mpmath) and g++; run.sh installs both. Takes a few minutes.

An error is measured in ulp, the distance of two neighbouring numbers of the type at the exact value, or, where a value is
accurate beside something else, in units of ε times that: what it is stands in the table. Arguments are numbers of the
type, so that only the function's own errors count. Where rounding of the arguments alone would move the value by more, the
unit is ε times the condition of the problem, sum |argument · derivative|.
"""
import argparse
import datetime
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import mpmath as mp

mp.mp.dps = 60
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EPSILON = {"float": mp.mpf(2) ** -23, "double": mp.mpf(2) ** -52}
LEAST = {"float": mp.mpf(2) ** -126, "double": mp.mpf(2) ** -1022}
ALL = ("float", "double", "float-pack", "double-pack")
SCALARS = ("float", "double")
PACKS = ("float-pack", "double-pack")
DOUBLE = ("double",)
rng = random.Random(20)


def rounded(x, kind):
    """The number of the type nearest to x."""
    x = float(x)
    if kind == "double" or x == 0:
        return x
    return struct.unpack("f", struct.pack("f", x))[0]


def ulp(x, kind):
    """Distance of neighbouring numbers of the type at |x|; subnormal numbers are as far apart as the least normal ones."""
    size = max(abs(x), LEAST[kind])
    return mp.mpf(2) ** (mp.floor(mp.log(size, 2) + mp.mpf(10) ** -40)) * EPSILON[kind]


def between(low, high, count):
    return [rng.uniform(low, high) for _ in range(count)]


def powers(low, high, count):
    """From 10^low to 10^high, evenly in the exponent."""
    return [10 ** (low + (high - low) * (i + rng.random()) / count) for i in range(count)]


def signed(values):
    return [v if i % 2 == 0 else -v for i, v in enumerate(values)]


# Rows of the tables: (section, name to show, range, function, types, points(kind) -> argument lists,
# exact(arguments) -> values, unit text, scale(arguments, values) -> sizes or None for ulps, which values to take).
ROWS = []


def row(section, show, range_text, function, types, points, exact, unit="ulp", scale=None, take=None):
    ROWS.append(dict(section=section, show=show, range=range_text, function=function, types=types, points=points,
                     exact=exact, unit=unit, scale=scale, take=take))


# --- matrices of mpmath -------------------------------------------------------------------------------------------------

def matrix(numbers, n):
    m = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            m[i, j] = mp.mpf(numbers[i * n + j])
    return m


def flat(m):
    return [m[i, j] for i in range(m.rows) for j in range(m.cols)]


def skew(phi, n):
    x = mp.matrix(n, n)
    k = 0
    for j in range(n):
        for i in range(j + 1, n):
            x[i, j], x[j, i] = mp.mpf(phi[k]), -mp.mpf(phi[k])
            k += 1
    return x


def parameters(x):
    return [(x[i, j] - x[j, i]) / 2 for j in range(x.rows) for i in range(j + 1, x.rows)]


def frobenius(m):
    return mp.sqrt(sum(v * v for v in m))


def cayley(x):
    one = mp.eye(x.rows)
    return (one - x) ** -1 * (one + x)


def polar(a):
    """The nearest rotation of a matrix next to one (Newton)."""
    for _ in range(7):
        a = (a + (a ** -1).T) / 2
    return a


def normal_phi(n, size):
    phi = [rng.gauss(0, 1) for _ in range(n * (n - 1) // 2)]
    length = math.sqrt(sum(p * p for p in phi))
    return [size * p / length for p in phi]


def random_rotation(n):
    return mp.expm(skew([rng.gauss(0, 2) for _ in range(n * (n - 1) // 2)], n))


def rotation_with(angles, n):
    """A rotation with given angles in random planes."""
    d = mp.eye(n)
    for k, angle in enumerate(angles):
        c, s = mp.cos(angle), mp.sin(angle)
        d[2 * k, 2 * k], d[2 * k, 2 * k + 1], d[2 * k + 1, 2 * k], d[2 * k + 1, 2 * k + 1] = c, -s, s, c
    q = random_rotation(n)
    return q * d * q.T


def entries(m, kind):
    return [rounded(v, kind) for v in flat(m)]


# --- elementary functions -----------------------------------------------------------------------------------------------

def elementary(section, name, exact, low, high, types, unit="ulp", scale=None, points=None, range_text=None, show=None):
    row(section, show or "`%s`" % name, range_text or "[%g, %g]" % (low, high), name, types,
        points or (lambda kind: [[rounded(x, kind)] for x in between(low, high, 2000)]),
        lambda x: [exact(mp.mpf(x[0]))], unit, scale)


def at_powers(low, high, count=1000, both=True):
    return lambda kind: [[rounded(x, kind)] for x in (signed(powers(low, high, count)) if both
                                                       else powers(low, high, count))]


PACK = "Packs: elementary functions"
elementary(PACK, "sqrt", mp.sqrt, 0, 0, PACKS, points=at_powers(-37, 37, both=False), range_text="[1e-37, 1e37]")
elementary(PACK, "exp", mp.exp, -87, 88, PACKS)
elementary(PACK, "log", mp.log, 0, 0, PACKS, points=at_powers(-37, 37, both=False), range_text="[1e-37, 1e37]")
elementary(PACK, "expm1", mp.expm1, 0, 0, PACKS, points=at_powers(-30, 1.9), range_text="±[1e-30, 80]")
elementary(PACK, "log1p", mp.log1p, 0, 0, PACKS,
           points=lambda kind: [[rounded(x, kind)] for x in powers(-30, 30, 500) + between(-0.999, 0, 500)],
           range_text="(−1, 0], [1e-30, 1e30]")
elementary(PACK, "tanh", mp.tanh, 0, 0, PACKS, points=at_powers(-30, 2), range_text="±[1e-30, 100]")
elementary(PACK, "sin", mp.sin, -math.pi, math.pi, PACKS, "ε", lambda x, v: [1])
elementary(PACK, "cos", mp.cos, -math.pi, math.pi, PACKS, "ε", lambda x, v: [1])

DRAWN = "Random numbers"
elementary(DRAWN, "unit_log", mp.log, 0, 0, ALL, "ε·\\|value\\|",
           lambda x, v: [abs(v[0])], lambda kind: [[rounded(x, kind)] for x in powers(-9, -0.001, 500) + between(0.5, 0.9999, 500)],
           "[1e-9, 1)")
row(DRAWN, "`sin_cos_of_word`: sin, cos of 2π·word/2³²", "all words", "sin_cos_of_word", ALL,
    lambda kind: [[float(rng.randrange(2 ** 32))] for _ in range(1000)] + [[float(w)] for w in range(0, 2 ** 32, 2 ** 29)],
    lambda x: [mp.sinpi(2 * mp.mpf(x[0]) / 2 ** 32), mp.cospi(2 * mp.mpf(x[0]) / 2 ** 32)], "ε", lambda x, v: [1, 1])

NETWORK = "Parts of networks"


def gelu(x):
    return x * mp.ncdf(x)


def wide(kind):
    return [[rounded(x, kind)] for x in between(-8, 8, 700) + signed(powers(-30, 30, 300))]


def at_least_one(x, v):
    return [max(1, abs(value)) for value in v]


elementary(NETWORK, "error_function", mp.erf, 0, 0, ALL, "ε", lambda x, v: [1], wide, "[−8, 8], ±[1e-30, 1e30]")
elementary(NETWORK, "normal_cdf", mp.ncdf, 0, 0, ALL, "ε", lambda x, v: [1], wide, "[−8, 8], ±[1e-30, 1e30]")
elementary(NETWORK, "gelu", gelu, 0, 0, ALL, "ε·max(1, \\|x\\|)", lambda x, v: [max(1, abs(x[0]))], wide,
           "[−8, 8], ±[1e-30, 1e30]")
elementary(NETWORK, "gelu_derivative", lambda x: mp.ncdf(x) + x * mp.npdf(x), 0, 0, ALL, "ε", lambda x, v: [1], wide,
           "[−8, 8], ±[1e-30, 1e30]")
elementary(NETWORK, "elu", lambda x: x if x > 0 else mp.expm1(x), 0, 0, ALL, "ε·max(1, \\|value\\|)", at_least_one, wide,
           "[−8, 8], ±[1e-30, 1e30]")
elementary(NETWORK, "sigmoid", lambda x: 1 / (1 + mp.exp(-x)), 0, 0, ALL, "ulp", None,
           lambda kind: [[rounded(x, kind)] for x in between(-80, 80, 800) + powers(-30, 30, 200)], "[−80, 80], [1e-30, 1e30]")


def log_softmax(x):
    largest = max(x)
    shift = mp.log(sum(mp.exp(mp.mpf(v) - largest) for v in x)) + largest
    return [v - shift for v in x]


def logits(kind):
    lists = []
    for size in (1e-30, 1e-3, 1, 30, 1e4, 1e30):
        lists += [[rounded(rng.gauss(0, size), kind) for _ in range(7)] for _ in range(40)]
        lists += [[rounded(size, kind)] * 7]
    return lists


for name in ("log_softmax", "log_softmax_block"):
    row(NETWORK, "log-softmax of 7 numbers" + (", side by side" if name.endswith("block") else ""), "sizes 1e-30 … 1e30",
        name, SCALARS, logits, log_softmax, "ε·max(1, largest \\|x\\|)",
        lambda x, v: [max([1] + [abs(a) for a in x])] * len(v))


def layer_norm(x):
    n = len(x)
    mean = sum(mp.mpf(v) for v in x) / n
    variance = sum((v - mean) ** 2 for v in x) / n
    root = mp.sqrt(variance + mp.mpf("1e-5"))
    return [(v - mean) / root for v in x]


def layer_norm_scale(x, v):
    """Rounding of the mean moves everything by ε·|mean|/deviation."""
    n = len(x)
    mean = sum(mp.mpf(a) for a in x) / n
    root = mp.sqrt(sum((a - mean) ** 2 for a in x) / n + mp.mpf("1e-5"))
    return [1 + abs(mean) / root + abs(value) for value in v]


row(NETWORK, "layer norm of rows of 19", "sizes 1e-30 … 1e15, means up to 1e3 deviations", "layer_norm", SCALARS,
    lambda kind: [[rounded(size * (mean + rng.gauss(0, 1)), kind) for _ in range(19)]
                  for size in (1e-30, 1e-3, 1, 1e3, 1e15) for mean in (0, 1, 1e3) for _ in range(15)],
    layer_norm, "ε·(1 + \\|mean\\|/deviation + \\|value\\|)", layer_norm_scale)
row(NETWORK, "layer norm of constant rows", "0.1·10^k, k = −30 … 30", "layer_norm", SCALARS,
    lambda kind: [[rounded(0.1 * 10.0 ** k, kind)] * width for k in range(-30, 31) for width in (5, 19, 48)],
    layer_norm, "ε", lambda x, v: [1] * len(v))


def normal_posterior(x):
    mean, raw, noise = (mp.mpf(v) for v in x)
    mu = mp.tanh(mean)
    log_sigma = -(-raw if -raw > 0 else mp.expm1(-raw))
    sigma = mp.exp(log_sigma)
    kl = (mu ** 2 + sigma ** 2 - 1) / 2 - log_sigma
    z = mu + sigma * noise
    return [sigma, kl, (z * z - noise * noise) / 2 - log_sigma]


row(NETWORK, "normal posterior: σ", "raw outputs in [−80, 80]", "normal_posterior", ALL,
    lambda kind: [[rounded(rng.gauss(0, 1), kind), rounded(x, kind), rounded(rng.gauss(0, 1), kind)]
                  for x in between(-80, 80, 300)], normal_posterior, "ε·(1 + \\|log σ\\|)·σ",
    lambda x, v: [v[0] * (1 + abs(mp.log(v[0])))] * 3, take=[0])
row(NETWORK, "normal posterior: KL", "raw outputs ±[1e-30, 1e30]", "normal_posterior", ALL,
    lambda kind: [[rounded(rng.gauss(0, 1), kind), rounded(x, kind), rounded(rng.gauss(0, 1), kind)]
                  for x in signed(powers(-30, 30, 300))],
    normal_posterior, "ε·(1 + \\|value\\|)", lambda x, v: [1 + abs(value) for value in v], take=[1])
row(NETWORK, "normal posterior: log ratio of a draw", "raw outputs ±[1e-30, 1e30]", "normal_posterior", ALL,
    lambda kind: [[rounded(rng.gauss(0, 1), kind), rounded(x, kind), rounded(rng.gauss(0, 1), kind)]
                  for x in signed(powers(-30, 30, 300))],
    normal_posterior, "ε·(1 + \\|value\\| + ε²μ/σ), at most ½ε² + ε", None, take=[2])
POSTERIOR_LOG_RATIO = ROWS[-1]


def log_ratio_scale(kind):
    def scale(x, v):
        sigma, noise = v[0], abs(mp.mpf(x[2]))
        mu = abs(mp.tanh(mp.mpf(x[0])))
        e = EPSILON[kind.split("-")[0]]
        # ε is recovered from the map, z = μ + σε, of which rounding leaves |μ| ε_machine/σ at most.
        lost = min(noise * noise / 2 / e, noise * (mu / sigma if sigma > 0 else mp.inf) + (mu / sigma) ** 2 * e) \
            if sigma > 0 else noise * noise / 2 / e
        return [1, 1, 1 + abs(v[2]) + noise ** 2 + lost]
    return scale


POSTERIOR_LOG_RATIO["scale_of_kind"] = log_ratio_scale
POSTERIOR_LOG_RATIO["unit"] = "ε·(1 + \\|value\\| + what rounding of μ + σε leaves of ε)"


# --- normalisation of the Laplacian -------------------------------------------------------------------------------------

def scaling(n, shift):
    def exact(x):
        values, vectors = mp.eigsy(matrix(x, n) + shift * mp.eye(n))
        s = mp.diag([1 / mp.sqrt(v) for v in values])
        return flat(vectors * s * vectors.T)
    return exact


def scaling_condition(n, shift):
    def scale(x, v):
        values, _ = mp.eigsy(matrix(x, n) + shift * mp.eye(n))
        return [1 / mp.sqrt(min(values)) * max(values) / min(values)] * (n * n)
    return scale


def gram(n, eigenvalues, kind):
    q = random_rotation(n)
    m = q * mp.diag(eigenvalues) * q.T
    numbers = entries(m, kind)
    for i in range(n):
        for j in range(i):
            numbers[j * n + i] = numbers[i * n + j]
    return numbers


for n in (2, 3):
    row("Normalised Laplacian: S of a node", "block, (Σ FᵀF)^{−1/2}, %d × %d" % (n, n), "eigenvalues 1e-3 … 1e6, also equal",
        "block_scaling_%d" % n, ALL,
        lambda kind, n=n: [gram(n, [10 ** rng.uniform(-3, 0), 1, 1][:n], kind) for _ in range(50)] +
        [gram(n, [d] * n, kind) for d in (1e-6, 1, 1e6)] +
        [gram(n, [1e6 * (1 + 1e-7), 1e6, 1e6][:n], kind) for _ in range(10)],
        scaling(n, 0), "ε·‖S‖·λ₁/λₙ", scaling_condition(n, 0))
    row("Normalised Laplacian: S of a node", "augmented, (Σ FᵀF + I)^{−1/2}, %d × %d" % (n, n),
        "eigenvalues 0 … 1e6, also equal", "augmented_scaling_%d" % n, ALL,
        lambda kind, n=n: [gram(n, [10 ** rng.uniform(-8, 3), 1, 0][:n], kind) for _ in range(50)] +
        [gram(n, [d] * n, kind) for d in (0, 1, 1e6)] + [gram(n, [10 ** rng.uniform(3, 6), 0, 0][:n], kind) for _ in range(20)],
        scaling(n, 1), "ε·‖S‖·(λ₁ + 1)/(λₙ + 1)", scaling_condition(n, 1))
row("Normalised Laplacian: S of a node", "block, diagonal maps", "[1e-30, 1e30]", "block_scaling_diagonal", ALL,
    at_powers(-30, 30, 300, False), lambda x: [1 / mp.sqrt(mp.mpf(x[0]))])
row("Normalised Laplacian: S of a node", "augmented, diagonal maps", "0, [1e-30, 1e30]", "augmented_scaling_diagonal", ALL,
    lambda kind: [[0.0]] + at_powers(-30, 30, 300, False)(kind), lambda x: [1 / mp.sqrt(mp.mpf(x[0]) + 1)])

# --- rotations from parameters ------------------------------------------------------------------------------------------

PARAMETERS = "Rotations from parameters, and back"
for n in (2, 3, 4, 5):
    row(PARAMETERS, "exponential, SO(%d)" % n, "‖φ‖ in [1e-20, 100]", "exponential_rotation_%d" % n, ALL,
        lambda kind, n=n: [[rounded(p, kind) for p in normal_phi(n, size)] for size in powers(-20, 2, 60)],
        lambda x, n=n: flat(mp.expm(skew(x, n))), "ε·(1 + ‖φ‖)",
        lambda x, v: [1 + mp.norm(mp.matrix(x))] * len(v))
    row(PARAMETERS, "exponential, SO(%d): entries off the diagonal" % n, "‖φ‖ in [1e-20, 1e-3]",
        "exponential_rotation_%d" % n, ALL,
        lambda kind, n=n: [[rounded(p, kind) for p in normal_phi(n, size)] for size in powers(-20, -3, 40)],
        lambda x, n=n: flat(mp.expm(skew(x, n))), "ε·‖φ‖", lambda x, v: [mp.norm(mp.matrix(x))] * len(v),
        take=[i * n + j for i in range(n) for j in range(n) if i != j])
    row(PARAMETERS, "exponential, SO(%d)" % n, "‖φ‖ in [100, 1e6]", "exponential_rotation_%d" % n, ALL,
        lambda kind, n=n: [[rounded(p, kind) for p in normal_phi(n, size)] for size in powers(2, 6, 60)],
        lambda x, n=n: flat(mp.expm(skew(x, n))), "ε" if n <= 3 else "ε·(1 + ‖φ‖)",
        (lambda x, v: [1] * len(v)) if n <= 3 else (lambda x, v: [1 + mp.norm(mp.matrix(x))] * len(v)))
    for low, high in ((-20, 0), (0, 3), (3, 6), (6, 37)):
        row(PARAMETERS, "Cayley transform, SO(%d)" % n, "‖φ‖ in [1e%d, 1e%d]" % (low, high), "cayley_rotation_%d" % n, ALL,
            lambda kind, n=n, low=low, high=high: [[rounded(p, kind) for p in normal_phi(n, size)]
                                                   for size in powers(low, high, 60)],
            lambda x, n=n: flat(cayley(skew(x, n))), "ε", lambda x, v: [1] * len(v))


def householder(phi, n):
    q = mp.eye(n)
    k = lambda i, j: i * (i - 1) // 2 + j
    for j in range(n):
        a = mp.matrix(n, 1)
        a[j] = 1
        for i in range(j + 1, n):
            a[i] = mp.mpf(phi[k(i, j)])
        q = q * (mp.eye(n) - 2 * a * a.T / (a.T * a)[0])
    return -q if n % 2 else q


for n in (3, 4):
    row(PARAMETERS, "Householder, SO(%d)" % n, "‖φ‖ in [1e-20, 1e15]", "householder_rotation_%d" % n, ALL,
        lambda kind, n=n: [[rounded(p, kind) for p in normal_phi(n, size)] for size in powers(-20, 15, 60)],
        lambda x, n=n: flat(householder(x, n)), "ε", lambda x, v: [1] * len(v))


def half_turns(n):
    """Angles near 0, near π, equal, and far from all."""
    sets = []
    for tiny in (1e-12, 1e-8, 1e-4, 1e-2):
        sets += [[tiny * rng.uniform(1, 2)] * (n // 2), [tiny] + [tiny * 1e3] * (n // 2 - 1),
                 [math.pi - tiny * 2] + [rng.uniform(0.3, 2)] * (n // 2 - 1), [tiny] + [1.0] * (n // 2 - 1)]
    return sets + [[rng.uniform(0.1, 3) for _ in range(n // 2)] for _ in range(10)]


def inverse_cayley_condition(x, v):
    n = math.isqrt(len(x))
    size = frobenius((polar(matrix(x, n)) + mp.eye(n)) ** -1)
    return [size * size + size] * len(v)


for n in (2, 3, 4):
    row(PARAMETERS, "inverse Cayley transform, SO(%d)" % n, "angles 1e-12 … π − 1e-5", "inverse_cayley_transform_%d" % n,
        SCALARS,
        lambda kind, n=n: [entries(rotation_with(angles, n), kind) for angles in half_turns(n)
                           if max(angles) < math.pi - (1e-2 if kind == "float" else 1e-5)],
        lambda x, n=n: flat((matrix(x, n) - mp.eye(n)) * (matrix(x, n) + mp.eye(n)) ** -1),
        "ε·(‖(P + I)⁻¹‖ + ‖(P + I)⁻¹‖²)", inverse_cayley_condition)


def log_angles(x, n):
    """The skew part times θ/sin θ as a function of the symmetric part, whose eigenvalues are cos θ."""
    r = polar(matrix(x, n))
    values, q = mp.eigsy((r + r.T) / 2)
    ratio = []
    for c in values:
        theta = mp.acos(min(c, mp.mpf(1)))
        ratio.append(theta / mp.sin(theta) if theta > mp.mpf(10) ** -25 else mp.mpf(1))
    return parameters((r - r.T) / 2 * q * mp.diag(ratio) * q.T)


def log_condition(x, v):
    return [mp.norm(mp.matrix(v))] * len(v)


for n in (2, 3, 4, 5):
    row(PARAMETERS, "logarithm, SO(%d), near I" % n, "angles 1e-12 … 1e-2", "rotation_log_%d" % n, SCALARS,
        lambda kind, n=n: [entries(rotation_with([10 ** rng.uniform(-12, -2)] * (n // 2), n), kind) for _ in range(25)],
        lambda x, n=n: log_angles(x, n), "ε·‖φ‖", log_condition)
    row(PARAMETERS, "logarithm, SO(%d)" % n, "angles 1e-12 … π − 1e-2", "rotation_log_%d" % n, SCALARS,
        lambda kind, n=n: [entries(rotation_with(angles, n), kind) for angles in half_turns(n)
                           if max(angles) < math.pi - 1e-2],
        lambda x, n=n: log_angles(x, n), "ε·π", lambda x, v: [mp.pi] * len(v))
row(PARAMETERS, "logarithm, SO(3), near π", "angles π − 1e-2 … π − 1e-12", "rotation_log_3", DOUBLE,
    lambda kind: [entries(rotation_with([mp.pi - 10 ** rng.uniform(-12, -2)], 3), kind) for _ in range(40)],
    lambda x: log_angles(x, 3), "ε·π", lambda x, v: [mp.pi] * len(v))


def pair_angles(x, n):
    phi = skew(x, n)
    squares = sorted(mp.eigsy(phi.T * phi, eigvals_only=True))
    theta = [mp.sqrt(abs(squares[n % 2 + 2 * k])) for k in range(n // 2)]
    return [a for a in ([abs(theta[i] - theta[j]) for i in range(n // 2) for j in range(i)] +
                        [theta[i] + theta[j] for i in range(n // 2) for j in range(i)] + (theta if n % 2 else []))]


def log_jacobian(x, n):
    return [sum((2 * mp.log(2 * abs(mp.sin(a / 2)) / a) for a in pair_angles(x, n) if a > 0), mp.mpf(0))]


def log_jacobian_scale(n):
    def scale(x, v):
        condition = 1 + abs(v[0]) + sum(abs(a * mp.cot(a / 2)) for a in pair_angles(x, n) if a > mp.mpf("1e-25"))
        return [condition * (1 + (mp.norm(mp.matrix(x)) if n > 4 else 0))]
    return scale


for n in (3, 4, 5):
    row(PARAMETERS, "log\\|det d exp\\|, SO(%d)" % n, "‖φ‖ in [1e-20, 12]", "exponential_log_jacobian_%d" % n, ALL,
        lambda kind, n=n: [[rounded(p, kind) for p in normal_phi(n, size)]
                           for size in powers(-20, 0, 40) + between(1, 12, 60)],
        lambda x, n=n: log_jacobian(x, n), "ε·(1 + Σ\\|α cot(α/2)\\| + \\|value\\|)" + (" (1 + ‖φ‖)" if n > 4 else ""), log_jacobian_scale(n))

# --- nearest rotation ---------------------------------------------------------------------------------------------------


def nearest(x, n):
    a = matrix(x, n)
    squares, v = mp.eigsy(a.T * a)
    u = a * v * mp.diag([1 / mp.sqrt(s) for s in squares])
    if mp.det(a) < 0:  # the direction of the least singular value
        least = min(range(n), key=lambda k: squares[k])
        for i in range(n):
            u[i, least] = -u[i, least]
    return flat(u * v.T)


def nearest_condition(x, v):
    n = math.isqrt(len(x))
    s = sorted(mp.sqrt(abs(a)) for a in mp.eigsy(matrix(x, n).T * matrix(x, n), eigvals_only=True))
    sign = mp.sign(mp.det(matrix(x, n)))
    return [s[-1] / (s[1] + sign * s[0])] * len(v)


for n in (2, 3, 4):
    row("Nearest rotation", "SO(%d)" % n, "singular values 1e-3 … 1, equal, det A < 0, det A ≈ 0", "nearest_rotation_%d" % n,
        SCALARS,
        lambda kind, n=n: [entries(random_rotation(n) * mp.diag(s) * random_rotation(n), kind) for s in (
            [[1] * n] * 10 + [[1e20] * n] * 3 + [[1e-20] * n] * 3 +
            [[1] * (n - 1) + [10 ** rng.uniform(-12, -1)] for _ in range(10)] +
            [[1] * (n - 1) + [-10 ** rng.uniform(-12, -0.1)] for _ in range(10)] +
            [[1] * (n - 1) + [-0.999]] * 3 + [[10 ** rng.uniform(-3, 0) for _ in range(n)] for _ in range(20)])],
        lambda x, n=n: nearest(x, n), "ε·σ₁/(σₙ₋₁ ± σₙ)", nearest_condition)

# --- Cayley distributions -----------------------------------------------------------------------------------------------

CAYLEY = "Cayley and wrapped Cauchy distributions"


def kappas(kind, count=150):
    e = EPSILON[kind.split("-")[0]]
    least_rest = math.log10(float(e))
    values = powers(-30, -0.3, count) + between(0.01, 0.99, count) + [1 - r for r in powers(least_rest, -1, count)]
    values = [rounded(v, kind) for v in values]
    return [v for v in values if v < 1]


def cayley_kl(n):
    def exact(x):
        k = mp.mpf(x[0])
        tail = k ** n * mp.hyp2f1(1, mp.mpf(n) / 2, mp.mpf(n) / 2 + 1, k * k) / n
        return [(n - 1) * (-mp.mpf(n - 1) / 2 * mp.log1p(-k * k) + tail)]
    return exact


def kind_of(kind):
    return kind.split("-")[0]


for n in (2, 3, 4, 8):
    row(CAYLEY, "KL to uniform, SO(%d)" % n, "κ in [1e-15, 1 − ε]", "cayley_kl_%d" % n, ALL,
        lambda kind: [[k] for k in kappas(kind_of(kind)) if k > 1e-15], cayley_kl(n))
    row(CAYLEY, "derivative of it, SO(%d)" % n, "κ in [1e-30, 1 − ε]", "cayley_kl_derivative_%d" % n, ALL,
        lambda kind: [[k] for k in kappas(kind_of(kind))],
        lambda x, n=n: [(n - 1) * mp.mpf(x[0]) * (n - 1 + mp.mpf(x[0]) ** (n - 2)) / (1 - mp.mpf(x[0]) ** 2)])


def half_deficit(v):
    root = mp.sqrt(v)
    return 1 - mp.atan(root) / root if v > 0 else mp.mpf(0)


def prior_kl(n):
    def exact(x):
        k, k0, s2 = (mp.mpf(a) for a in x)
        rho = (k - k0) / (1 - k * k0)
        v = 4 * k * k0 * s2 / (1 - k * k0) ** 2
        if n == 2:
            return [-mp.log1p(-rho * rho) + mp.log1p(v)]
        with mp.workdps(120):
            return [-3 * mp.log(1 - rho) - mp.log(1 + rho) - 2 * rho + 2 * mp.log1p(v) - 2 * (1 - rho) * half_deficit(v)]
    return exact


for n in (2, 3):
    row(CAYLEY, "KL to a Cayley prior, SO(%d)" % n, "κ in [1e-10, 1 − ε], κ₀ ≤ 0.98, sin²(θ/2) in [1e-20, 1]",
        "cayley_prior_kl_%d" % n, ALL,
        lambda kind: [[k, rounded(rng.uniform(0, 0.98), kind_of(kind)), rounded(10 ** rng.uniform(-20, 0), kind_of(kind))]
                      for k in kappas(kind_of(kind)) if k > 1e-10], prior_kl(n))


def cayley_points(n):
    def points(kind):
        kind = kind_of(kind)
        lists = []
        for k in kappas(kind, 8):
            rest = 1 - k
            for angles in ([rng.uniform(0.1, 3) for _ in range(n // 2)], [rest * rng.uniform(0.1, 10)] * (n // 2),
                           [math.pi - 1e-5] * (n // 2)):
                lists.append(entries(rotation_with(angles, n), kind) + [k])
        return lists
    return points


def cayley_logpdf(n):
    def exact(x):
        y, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
        return [(n - 1) * (mp.mpf(n) / 2 * mp.log(1 - k * k) - mp.log(mp.det(mp.eye(n) - k * y)))]
    return exact


def cayley_condition(n):
    def scale(x, v):
        y, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
        w = frobenius((mp.eye(n) - k * y) ** -1)
        return [(n - 1) * (n * (1 + abs(mp.log(1 - k))) + k * n * w)]
    return scale


def turned(p_bar, p):
    """A derivative along SO(N), from the one in the entries of P."""
    return [2 * v for v in parameters(p_bar * p.T)]


def cayley_gradient(n):
    """∂/∂κ, the score, and the derivative in M = I."""
    def exact(x):
        y, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
        w = (mp.eye(n) - k * y) ** -1
        u = w * (y - k * mp.eye(n))
        score = turned((n - 1) * k * w.T, y)
        return [(n - 1) / (1 - k * k) * sum(u[i, i] for i in range(n))] + score + [-v for v in score]
    return exact


def cayley_gradient_condition(n):
    def scale(x, v):
        y, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
        w = frobenius((mp.eye(n) - k * y) ** -1)
        size = (n - 1) / (1 - k * k) * n * (1 + w)
        return [size] + [k * size] * (len(v) - 1)
    return scale


def scores(n):
    """Which values are scores in P and in M, behind others."""
    return list(range(-n * (n - 1), 0))


for n in (2, 3, 4, 8):
    row(CAYLEY, "log density, SO(%d)" % n, "κ in [1e-30, 1 − ε], angles around 1 − κ, up to π − 1e-5",
        "cayley_logpdf_%d" % n, ALL, cayley_points(n), cayley_logpdf(n),
        "ε·(N − 1)N(1 + \\|log(1 − κ)\\| + κ‖(I − κY)⁻¹‖)", cayley_condition(n))
    row(CAYLEY, "∂ log density/∂κ, SO(%d)" % n, "the same", "cayley_logpdf_gradient_%d" % n, ALL, cayley_points(n),
        cayley_gradient(n), "ε·(N − 1)N/(1 − κ²)·(1 + ‖(I − κY)⁻¹‖)", cayley_gradient_condition(n), take=[0])
    row(CAYLEY, "scores in P and M, SO(%d)" % n, "the same", "cayley_logpdf_gradient_%d" % n, ALL, cayley_points(n),
        cayley_gradient(n), "κ times the unit above", cayley_gradient_condition(n), take=scores(n))


def cauchy_points(kind):
    kind = kind_of(kind)
    return [[rounded(angle, kind), k] for k in kappas(kind, 60)
            for angle in (rng.uniform(-3.14, 3.14), (1 - k) * rng.gauss(0, 3), 10 ** rng.uniform(-20, 0))]


def cauchy(x):
    t, k = mp.mpf(x[0]), mp.mpf(x[1])
    return [mp.log((1 - k * k) / (1 + k * k - 2 * k * mp.cos(t)))]


def cauchy_gradient(x):
    t, k = mp.mpf(x[0]), mp.mpf(x[1])
    square = 1 + k * k - 2 * k * mp.cos(t)
    return [-2 * k / (1 - k * k) + 2 * (mp.cos(t) - k) / square, -2 * k * mp.sin(t) / square]


row(CAYLEY, "log density of wrapped Cauchy", "κ in [1e-30, 1 − ε], all angles", "wrapped_cauchy_logpdf", ALL, cauchy_points,
    cauchy, "ε·(1 + \\|value\\| + \\|log(1 − κ)\\|)",
    lambda x, v: [1 + abs(v[0]) + abs(mp.log(1 - mp.mpf(x[1])))])
row(CAYLEY, "its derivatives in κ and the angle", "the same", "wrapped_cauchy_gradient", SCALARS, cauchy_points,
    cauchy_gradient, "ε/(1 − κ); ε·\\|value\\|", lambda x, v: [2 / (1 - mp.mpf(x[1])), abs(v[1])])


def haar_cdf(u):
    return (u - mp.sin(u)) / mp.pi


def cayley_angle(x):
    k, r, p = (mp.mpf(a) for a in x)
    u = 2 * mp.atan2((1 + k) * mp.sin(r / 2), (1 - k) * mp.cos(r / 2))
    if p > 0:
        start = mp.cbrt(6 * mp.pi * p) if p < 0.3 else mp.mpf(2)
        w = mp.findroot(lambda a: a - mp.sin(a) - mp.pi * p, start, tol=mp.mpf(10) ** -100 if p > 1e-20 else None,
                        verify=False, maxsteps=200)
    else:
        w = mp.mpf(0)
    return [haar_cdf(u), 2 * mp.atan2((1 - k) * mp.sin(w / 2), (1 + k) * mp.cos(w / 2))]


row(CAYLEY, "distribution function of the angle, SO(3)", "κ in [0, 1 − ε], angles around 1 − κ", "cayley_angle_3", DOUBLE,
    lambda kind: [[k, min(3.14, (1 - k) * 10 ** rng.uniform(-6, 2)), rng.uniform(0.001, 0.999)] for k in kappas(kind, 60)],
    cayley_angle, "ulp", take=[0])
row(CAYLEY, "its quantiles", "κ in [0, 1 − ε], p in [0.001, 0.999]", "cayley_angle_3", DOUBLE,
    lambda kind: [[k, 1.0, rng.uniform(0.001, 0.999)] for k in kappas(kind, 60)], cayley_angle, "ε·value/(1 − p)",
    lambda x, v: [1, v[1] / (1 - mp.mpf(x[2]))], take=[1])

# --- Bessel functions, matrix Fisher ------------------------------------------------------------------------------------

FISHER = "Matrix Fisher distributions"


def bessel(x):
    x = mp.mpf(x[0])
    with mp.workdps(80):
        i0, i1 = mp.besseli(0, x), mp.besseli(1, x)
        a = i1 / i0
        slope = 1 - a / x - a * a if x > 0 else mp.mpf("0.5")
        return [i0 * mp.exp(-x), 1 - a, slope]


def bessel_points(low, high, count):
    return lambda kind: [[x] for x in powers(low, high, count)]


for index, text in enumerate(("e^{−x}I₀(x)", "1 − I₁(x)/I₀(x)", "(I₁/I₀)′(x)")):
    row(FISHER, text, "[1e-20, 32]", "scaled_bessel", DOUBLE, bessel_points(-20, 1.505, 600), bessel, take=[index])
    row(FISHER, text, "[32, 1e5]", "scaled_bessel", DOUBLE, bessel_points(1.506, 5, 200), bessel, take=[index])

NODES = []


def gauss_nodes():
    """Gauss–Legendre, 40 nodes on [0, 1]."""
    if not NODES:
        count = 40
        for i in range(count):
            x = mp.cos(mp.pi * (i + mp.mpf("0.75")) / (count + mp.mpf("0.5")))
            for _ in range(12):
                p, q = mp.mpf(1), mp.mpf(0)
                for k in range(count):
                    p, q = ((2 * k + 1) * x * p - k * q) / (k + 1), p
                slope = count * (x * p - q) / (x * x - 1)
                x -= p / slope
            NODES.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return NODES


def fisher(s):
    """log c − Σs, 1 − ∂ log c/∂s, second derivatives (lower triangle), from the integral in another order of s than the
    library's: c = ∫₀¹ I₀((s₂ − s₃)v) I₀((s₂ + s₃)(1 − v)) e^{s₁(1 − 2v)} dv."""
    s = [mp.mpf(a) for a in s]
    with mp.workdps(50):
        fast = 2 * max(abs(a) for a in s) + 1
        borders = [mp.mpf(0)] + [mp.mpf(3) ** -k for k in range(int(mp.ceil(mp.log(fast, 3))) + 1, -1, -1)]
        total, first, second = mp.mpf(0), [mp.mpf(0)] * 3, [[mp.mpf(0)] * 3 for _ in range(3)]
        for low, high in zip(borders, borders[1:]):
            for node, weight in gauss_nodes():
                v = low + (high - low) * node
                w = 1 - v
                x, y = (s[1] - s[2]) * v, (s[1] + s[2]) * w
                power = abs(x) + abs(y) + s[0] * (1 - 2 * v) - sum(s)
                if power < -300:
                    continue
                i0x, i0y = mp.besseli(0, x), mp.besseli(0, y)
                a, b = mp.besseli(1, x) / i0x, mp.besseli(1, y) / i0y
                da = 1 - a / x - a * a if x != 0 else mp.mpf("0.5")
                db = 1 - b / y - b * b if y != 0 else mp.mpf("0.5")
                density = weight * (high - low) * i0x * i0y * mp.exp(s[0] * (1 - 2 * v) - sum(s))
                g = [1 - 2 * v, v * a + w * b, -v * a + w * b]
                h = [[0, 0, 0], [0, v * v * da + w * w * db, -v * v * da + w * w * db],
                     [0, -v * v * da + w * w * db, v * v * da + w * w * db]]
                total += density
                for i in range(3):
                    first[i] += density * g[i]
                    for j in range(3):
                        second[i][j] += density * (h[i][j] + g[i] * g[j])
        first = [f / total for f in first]
        return ([mp.log(total)] + [1 - f for f in first] +
                [second[i][j] / total - first[i] * first[j] for i in range(3) for j in range(i + 1)])


FISHER_CACHE = {}


def fisher_cached(x):
    key = tuple(x)
    if key not in FISHER_CACHE:
        FISHER_CACHE[key] = fisher(x)
    return FISHER_CACHE[key]


def fisher_points(kind):
    lists = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 0.0, 0.0], [3.0, 3.0, 0.0], [5.0, 2.0, -2.0],
             [100.0, 100.0, 100.0], [100.0, 100.0, -100.0], [1000.0, 0.0, 0.0], [1000.0, 1.0, -1.0],
             [1e4, 1e4, -1e4], [1e4, 1e4, 1e4], [1e5, 1e-5, -1e-6]]
    for size in (1e-8, 1e-3, 0.1, 1, 10, 100, 1000):
        for _ in range(3):
            s = sorted((size * rng.random() for _ in range(3)), reverse=True)
            lists.append([s[0], s[1], s[2] * rng.choice((-1, 1))])
    return lists


row(FISHER, "log normaliser − Σs", "s = 0, coinciding, s₃ < 0, s₂ + s₃ = 0; up to 1e5", "matrix_fisher_normaliser", DOUBLE,
    fisher_points, fisher_cached, "ε·(1 + \\|value\\|)", lambda x, v: [1 + abs(a) for a in v], take=[0])
row(FISHER, "1 − E[P]", "the same", "matrix_fisher_normaliser", DOUBLE, fisher_points, fisher_cached, take=[1, 2, 3])
row(FISHER, "second derivatives", "the same", "matrix_fisher_normaliser", DOUBLE, fisher_points, fisher_cached,
    "ε·largest second derivative", lambda x, v: [1] * 4 + [max(abs(a) for a in v[4:])] * 6, take=[4, 5, 6, 7, 8, 9])


def von_mises_kl(x):
    x = 2 * mp.mpf(x[0])
    with mp.workdps(100):
        i0, i1 = mp.besseli(0, x), mp.besseli(1, x)
        return [x * i1 / i0 - mp.log(i0)]


row(FISHER, "KL to uniform, SO(2)", "κ in [1e-10, 1e4]", "matrix_fisher_kl_2", DOUBLE,
    lambda kind: [[x] for x in powers(-10, 4, 150)], von_mises_kl)


def fisher_kl(x):
    with mp.workdps(80):
        size = max(abs(a) for a in x)
        if size < 1e-2:
            return [fisher_kl_small(x)]
    values = fisher_cached(x)
    return [-sum(mp.mpf(a) * r for a, r in zip(x, values[1:4])) - values[0]]


def fisher_kl_small(x):
    """Σ s_i ∂ log c/∂s_i − log c, whose digits cancel, by the integral at more of them."""
    s = [mp.mpf(a) for a in x]
    total, slope = mp.mpf(0), [mp.mpf(0)] * 3
    for node, weight in gauss_nodes():
        v, w = node, 1 - node
        xx, y = (s[1] - s[2]) * v, (s[1] + s[2]) * w
        i0x, i0y, i1x, i1y = mp.besseli(0, xx), mp.besseli(0, y), mp.besseli(1, xx), mp.besseli(1, y)
        e = weight * mp.exp(s[0] * (1 - 2 * v))
        total += e * i0x * i0y
        slope[0] += e * (1 - 2 * v) * i0x * i0y
        slope[1] += e * (v * i1x * i0y + w * i0x * i1y)
        slope[2] += e * (-v * i1x * i0y + w * i0x * i1y)
    return sum(a * b for a, b in zip(s, slope)) / total - mp.log(total)


row(FISHER, "KL to uniform, SO(3)", "s from 1e-8 to 1e5", "matrix_fisher_kl_3", DOUBLE,
    lambda kind: [s for s in fisher_points(kind) if s[0] > 0] +
    [[10 ** -k, 10 ** -k, 0.5 * 10 ** -k] for k in (1, 2, 3, 4, 5, 6, 8)], fisher_kl)


def concentrated(n, ks):
    def points(kind):
        kind = kind_of(kind)
        lists = []
        for k in ks:
            for _ in range(6):
                angle = min(3.0, abs(rng.gauss(0, 2)) / math.sqrt(1 + k))
                lists.append(entries(rotation_with([angle] * (n // 2), n), kind) + [rounded(k, kind)])
        return lists
    return points


def angle_condition(x, v):
    """log f moves by k θ ε where rounding turns P by ε."""
    n = math.isqrt(len(x) - 1)
    k = mp.mpf(x[-1])
    theta = frobenius(polar(matrix(x[:-1], n)) - mp.eye(n))
    return [1 + abs(v[0]) + k * theta]


FISHER_LOG = {}


def fisher_logpdf(x):
    r, k = polar(matrix(x[:-1], 3)), mp.mpf(x[-1])
    if k not in FISHER_LOG:
        with mp.workdps(50):
            # F = kI: c = e^{k}(I0(2k) − I1(2k))
            FISHER_LOG[k] = k + mp.log(mp.besseli(0, 2 * k) - mp.besseli(1, 2 * k)) if k < 2000 else None
        if FISHER_LOG[k] is None:
            with mp.workdps(80):
                z = 2 * k
                a = [mp.mpf(1)]
                b = [mp.mpf(1)]
                for j in range(1, 40):
                    a.append(a[-1] * (2 * j - 1) ** 2 / (8 * z * j))
                    b.append(b[-1] * ((2 * j - 1) ** 2 - 4) / (8 * z * j))
                FISHER_LOG[k] = k + z + mp.log(sum(p - q for p, q in zip(a, b))) - mp.log(2 * mp.pi * z) / 2
    return [k * sum(r[i, i] for i in range(3)) - FISHER_LOG[k]]


row(FISHER, "log density, SO(3), F = κM", "κ from 1e-3 to 1e12, angles up to some κ^{−1/2}", "matrix_fisher_logpdf_3",
    SCALARS, concentrated(3, [1e-3, 0.1, 1, 10, 100, 1e4, 1e6, 1e8, 1e10, 1e12]), fisher_logpdf,
    "ε·(1 + \\|value\\| + κ‖P − M‖)", angle_condition)


def fisher_law(f):
    """Of a matrix F: proper U, s, V, and fisher(s)."""
    n = f.rows
    if n == 2:
        a, b = (f[0, 0] + f[1, 1]) / 2, (f[1, 0] - f[0, 1]) / 2
        size = mp.sqrt(a * a + b * b)
        u = mp.matrix([[a, -b], [b, a]]) / size if size else mp.eye(2)
        bessel_values = bessel([2 * size])
        rest, slope = bessel_values[1], 2 * bessel_values[2]
        return u, [size, size], mp.eye(2), [mp.log(bessel_values[0]), rest, rest, slope, slope, slope]
    u, s, v = mp.svd_r(f, full_matrices=True)
    s, v = list(s), v.T
    for q in (u, v):
        if mp.det(q) < 0:
            s[2] = -s[2]
            for i in range(3):
                q[i, 2] = -q[i, 2]
    return u, s, v, fisher_cached(s)


FISHER_LAWS = {}


def fisher_density(f, p):
    """log f, the score, P − E[P], and the largest variance of P along one direction."""
    key = tuple(f)
    if key not in FISHER_LAWS:
        FISHER_LAWS[key] = fisher_law(f)
    u, s, v, z = FISHER_LAWS[key]
    n, p = f.rows, polar(p)
    d = [1 - r for r in z[1:n + 1]]
    if n == 2:
        f = u * mp.diag(s)
    variance = [abs(h) for h in z[n + 1:]]
    for i in range(n):
        for j in range(i):
            variance += [abs((d[i] + o * d[j]) / (s[i] + o * s[j])) for o in (1, -1) if abs(s[i] + o * s[j]) > mp.mpf(10) ** -20]
    log = sum(a * b for a, b in zip(f, p)) - sum(s) - z[0]
    return [log] + turned(f, p) + flat(p - u * mp.diag(d) * v.T), max(variance)


def fisher_general(n):
    return lambda x: fisher_density(matrix(x[:n * n], n), matrix(x[n * n:], n))[0]


def density_scales(size, score_numbers, values, variance):
    """Of a log density, its score and the derivative in its parameter."""
    score, parameter = values[1:1 + score_numbers], values[1 + score_numbers:]
    log = 1 + abs(values[0]) + size * frobenius(mp.matrix(parameter)) + frobenius(mp.matrix(score))
    return [log] + [size] * score_numbers + [1 + size * variance] * len(parameter)


def fisher_scales(n):
    def scale(x, v):
        f = matrix(x[:n * n], n)
        return density_scales(frobenius(f), n * (n - 1) // 2, v, fisher_density(f, matrix(x[n * n:], n))[1])
    return scale


def fisher_values():
    return [[1e-3, 5e-4, -2e-4], [1, 1, 1], [1, 1, -1], [3, 1.5, -1], [20, 0, 0], [200, 20, 0], [1e3, 1, -1],
            [1e3, 1e3, -999], [1e4, 1e-3, 0], [1e4, 1e4, 5e3]]


def near_modes(mode, size):
    """Rotations: one anywhere, one a standard deviation or two from the mode."""
    return [mp.expm(skew([rng.gauss(0, 1) * angle for _ in range(mode.rows * (mode.rows - 1) // 2)], mode.rows)) * mode
            for angle in (3, 1 / mp.sqrt(1 + size))]


def fisher_matrices(n):
    def points(kind):
        lists = []
        for s in fisher_values():
            u, v = random_rotation(n), random_rotation(n)
            f = entries(u * mp.diag(s[:n]) * v.T, kind)
            mode = u * v.T if n == 3 else fisher_law(matrix(f, 2))[0]
            lists += [f + entries(p, kind) for p in near_modes(mode, s[0])]
        return lists
    return points


FISHER_UNIT = "ε·(1 + \\|value\\| + ‖%s‖‖∂/∂%s‖ + ‖score‖)"
for n in (2, 3):
    for show, unit, take in (("log density, SO(%d)", FISHER_UNIT % ("F", "F"), [0]),
                             ("score, SO(%d)", "ε·‖F‖", list(range(1, 1 + n * (n - 1) // 2))),
                             ("∂ log density/∂F, SO(%d)", "ε·(1 + ‖F‖·largest variance)", list(range(-n * n, 0)))):
        row(FISHER, show % n, "any F: s as above, up to 1e4, anywhere and near modes" if take == [0] else "the same",
            "matrix_fisher_density_%d" % n, SCALARS, fisher_matrices(n), fisher_general(n), unit, fisher_scales(n), take)


def fisher_angle(x):
    k, r = mp.mpf(x[0]), mp.mpf(x[1])
    with mp.workdps(30):
        # density (1 − cos r)/π · exp(2k cos r)/(I0(2k) − I1(2k))
        scale = (mp.besseli(0, 2 * k) - mp.besseli(1, 2 * k)) * mp.exp(-2 * k)
        width = 1 / mp.sqrt(1 + k)
        borders = [mp.mpf(0)] + [b for b in (width * j for j in range(1, 12)) if b < r] + [r]
        return [mp.quad(lambda a: 2 * mp.sin(a / 2) ** 2 / mp.pi * mp.exp(-4 * k * mp.sin(a / 2) ** 2), borders) / scale]


row(FISHER, "distribution function of the angle, SO(3), F = κM", "κ from 1e-3 to 1e3", "matrix_fisher_angle_3", DOUBLE,
    lambda kind: [[k, min(3.1, rng.uniform(0.2, 4) / math.sqrt(1 + k))] for k in powers(-3, 3, 20)], fisher_angle, "ε",
    lambda x, v: [1])

def quaternion_form(f):
    """T(F): tr FᵀR = qᵀ T(F) q at the rotation R of q."""
    x, y, z = f[0, 0], f[1, 1], f[2, 2]
    a, b, c = f[2, 1] - f[1, 2], f[0, 2] - f[2, 0], f[1, 0] - f[0, 1]
    d, e, g = f[1, 0] + f[0, 1], f[0, 2] + f[2, 0], f[2, 1] + f[1, 2]
    return mp.matrix([[x + y + z, a, b, c], [a, x - y - z, d, e], [b, d, y - x - z, g], [c, e, g, z - x - y]])


def form_matrix(a):
    """The F with T(F) = A − tr A/4 · I; T is orthogonal up to a factor, and its adjoint is 4F."""
    basis = [mp.matrix(3, 3) for _ in range(9)]
    for k in range(9):
        basis[k][k // 3, k % 3] = 1
    of = [sum(v * w for v, w in zip(quaternion_form(e), a)) / 4 for e in basis]
    return mp.matrix([of[0:3], of[3:6], of[6:9]])


def bingham_density(x):
    values, variance = fisher_density(form_matrix(matrix(x[:16], 4)), matrix(x[16:], 3))
    return values[:4] + [v / 4 for v in flat(quaternion_form(matrix(values[4:], 3)))], variance


def bingham_points(kind):
    lists = []
    for s in fisher_values():
        u, v = random_rotation(3), random_rotation(3)
        a = quaternion_form(u * mp.diag(s) * v.T) + rng.gauss(0, 1) * s[0] * mp.eye(4)
        a = matrix(entries(a, kind), 4)
        a = flat((a + a.T) / 2)  # numbers of the type: both are equal
        lists += [[rounded(e, kind) for e in a] + entries(p, kind) for p in near_modes(u * v.T, s[0])]
    return lists


for show, unit, take in (("log density of Bingham, quaternions", FISHER_UNIT % ("A", "A"), [0]), ("its score", "ε·‖A‖", [1, 2, 3]),
                         ("∂ log density/∂A", "ε·(1 + ‖A‖·largest variance)", list(range(-16, 0)))):
    row(FISHER, show, "any A: the same s, any trace" if take == [0] else "the same", "bingham_density", SCALARS, bingham_points,
        lambda x: bingham_density(x)[0], unit,
        lambda x, v: density_scales(frobenius(matrix(x[:16], 4)), 3, v, bingham_density(x)[1]), take)

# --- Isotropic Gaussian -------------------------------------------------------------------------------------------------

HEAT = "Isotropic Gaussian distributions on SO(3)"


def heat_kernel(x):
    """log f, its derivatives in the trace and in t: characters for t >= 1, images below."""
    with mp.workdps(110):
        sine, cosine, t = (mp.mpf(a) for a in x)
        sine, cosine = max(sine, mp.mpf(10) ** -25), max(cosine, mp.mpf(10) ** -25)  # 0/0
        w = 2 * mp.atan2(sine, cosine)
        f = slope = time = mp.mpf(0)
        if t >= 1:
            y, before, character, slope_before, derivative = 2 * mp.cos(w), mp.mpf(-1), mp.mpf(1), mp.mpf(0), mp.mpf(0)
            for l in range(int(mp.sqrt(600 / t)) + 4):
                weight = (2 * l + 1) * mp.exp(-l * (l + 1) * t / 2)
                f, slope, time = f + weight * character, slope + weight * derivative, time - weight * l * (l + 1) * character / 2
                before, character, slope_before, derivative = (character, y * character - before, derivative,
                                                               character + y * derivative - slope_before)
            return [mp.log1p(f - 1) if t > 20 else mp.log(f), slope / f, time / f]
        for k in range(-6, 7):
            image = w + 2 * mp.pi * k
            part = (-1) ** k * mp.exp((w * w - image * image) / (2 * t))
            f, slope, time = f + part * image, slope + part * (1 - image * image / t), time + part * image ** 3 / (2 * t * t)
        log = mp.log(2 * mp.pi) / 2 + t / 8 - 3 * mp.log(t) / 2 - w * w / (2 * t) + mp.log(f / mp.sin(w / 2))
        g = slope / f - mp.cot(w / 2) / 2
        return [log, -g / (2 * mp.sin(w)), mp.mpf(1) / 8 - 3 / (2 * t) + time / f]


def heat_points(kind):
    kind = kind_of(kind)
    lists = []
    for t in powers(-8, 1.4, 40) + [1.99, 2.0, 100.0, 1000.0]:
        t = rounded(t, kind)
        if kind == "float" and t > 80:
            continue  # e^{−t} is no normal float
        angles = [rng.uniform(0, math.pi), min(3.0, math.sqrt(t) * abs(rng.gauss(0, 2))), 10 ** rng.uniform(-6, 0), 0.0]
        rests = [min(3.0, t * rng.uniform(0, 3)), 10 ** rng.uniform(-6, 0), 0.0]
        lists += [[rounded(math.sin(a / 2), kind), rounded(math.cos(a / 2), kind), t] for a in angles]
        lists += [[rounded(math.cos(a / 2), kind), rounded(math.sin(a / 2), kind), t] for a in rests]
    return lists


def heat_time_condition(x, v):
    """For t < 2 the terms 3/2t and ω²/2t² cancel, beyond the characters."""
    t, w = mp.mpf(x[2]), 2 * mp.atan2(mp.mpf(x[0]), mp.mpf(x[1]))
    return [1 / t + (w / t) ** 2 if t < 2 else mp.exp(-t)]


row(HEAT, "log density", "t from 1e-8 to 1e3, all angles", "heat_kernel", ALL, heat_points, heat_kernel,
    "ε·(min(1, e^{−t+2}) + \\|value\\|)", lambda x, v: [min(1, mp.exp(2 - mp.mpf(x[2]))) + abs(v[0])] , take=[0])
row(HEAT, "score: derivative in tr PMᵀ", "the same", "heat_kernel", ALL, heat_points, heat_kernel,
    "ε·\\|value\\|", lambda x, v: [0, abs(v[1])], take=[1])
row(HEAT, "derivative in t", "the same", "heat_kernel", ALL, heat_points, heat_kernel,
    "ε·(1/t + ω²/t²), ε·e^{−t} for t ≥ 2", lambda x, v: [0, 0] + heat_time_condition(x, v), take=[2])


def heat_divergence(x):
    with mp.workdps(30):
        t = mp.mpf(x[0])
        end = min(mp.pi, 14 * mp.sqrt(t))
        def part(w):
            log = heat_kernel([mp.sin(w / 2), mp.cos(w / 2), t])[0]
            return 2 * mp.sin(w / 2) ** 2 / mp.pi * (mp.exp(log) * log - (mp.expm1(log) if t > 1 else 0))
        return [mp.quad(part, [end * k / 8 for k in range(9)])]


row(HEAT, "KL to uniform", "t from 1e-8 to 8", "heat_averages", DOUBLE, lambda kind: [[t] for t in powers(-8, 0.9, 6)],
    heat_divergence, "ε·\\|value\\|", lambda x, v: [abs(v[0])])

# --- matrix Bingham -----------------------------------------------------------------------------------------------------

BINGHAM = "Matrix Bingham distributions"


def layered_nodes(lower, upper, decay):
    """The library's rule for ∫₀¹ f(t) e^{−decay·t} dt/√(t(1 − t)), with a smaller step."""
    step, nodes, s = mp.mpf("0.18"), [], lower - 2 - mp.mpf(5)
    while s < upper + 7:
        right, left = mp.exp(s - upper - 2), mp.exp(lower - 2 - s)
        x = s + right - left
        e = mp.exp(-abs(x))
        t, rest = (e / (1 + e), 1 / (1 + e)) if x < 0 else (1 / (1 + e), e / (1 + e))
        nodes.append((t, rest, step * (1 + right + left) * mp.exp(-abs(x) / 2) / (1 + e) * mp.exp(-decay * t)))
        s += step
    least = max(node[2] for node in nodes) * mp.mpf(10) ** -26
    return [node for node in nodes if node[2] > least]


def matrix_bingham(x):
    """log E e^{−H} and KL to uniform of gaps of A and of B, from the library's integral with A and B exchanged."""
    with mp.workdps(28):
        (g1, g2), (e1, e2) = [mp.mpf(v) for v in x[:2]], [mp.mpf(v) for v in x[2:4]]
        width = g1 + g2
        d1, d2, p, q = g1 / width, g2 / width, e1 * g1, (e1 + e2) * g2
        deep = max(mp.log1p((e1 + e2) * g1), mp.log1p(d1 / d2) if d2 else 0)
        total = cost = mp.mpf(0)
        second = layered_nodes(-mp.log1p(q), mp.log1p(d2 / d1) if d1 else 0, q)
        for u, _, first_weight in layered_nodes(-deep, 0, p):
            for v, rest, weight in second:
                length = d1 * u + d2 * rest
                y = e2 * width * length / 2
                i0 = mp.besseli(0, y)
                part = first_weight * weight * length / mp.sqrt((d1 * u + d2) * (d1 + d2 * rest)) * i0 * mp.exp(-y)
                total += part
                cost += part * (p * u + q * v + y * (1 - mp.besseli(1, y) / i0))
        log = mp.log(total / (2 * mp.pi))
        return [log, -cost / total - log]


BINGHAM_CACHE = {}


def matrix_bingham_cached(x):
    key = tuple(x[:4])
    if key not in BINGHAM_CACHE:
        BINGHAM_CACHE[key] = matrix_bingham(x)
    return BINGHAM_CACHE[key]


def matrix_bingham_points(kind):
    gaps = [[1.0, 1.0, 1.0, 1.0], [0.0, 5.0, 3.0, 1.0], [5.0, 0.0, 1.0, 3.0], [1.0, 0.125, 1e3, 1.0], [1e3, 1e3, 1.0, 0.125]]
    random = [rng.randrange(1, 64) / 64 for _ in range(24)]  # the same as floats
    gaps += [[size * a, size * b, c, d] for size, a, b, c, d in zip((1, 4, 16, 64, 256, 4096), *[iter(random)] * 4)]
    return gaps


def matrix_bingham_costs(x):
    e1, e2, g1, g2 = [mp.mpf(v) for v in x[:4]]
    low, high, both = (e1 * g1) / 2, (e2 * g2) / 2, (e1 * g1 + e2 * g2) / 2
    return mp.matrix([[0, low, both + e1 * g2], [low, 0, high], [both + e2 * g1, high, 0]])


def matrix_bingham_density(x):
    cost, s = matrix_bingham_costs(x), polar(matrix(x[4:], 3))
    log = -sum(cost[i, j] * s[i, j] ** 2 for i in range(3) for j in range(3)) - matrix_bingham_cached(x)[0]
    return [log] + turned(mp.matrix([[-2 * cost[i, j] * s[i, j] for j in range(3)] for i in range(3)]), s)


def matrix_bingham_rotations(kind):
    lists = []
    for gaps in matrix_bingham_points(kind):
        size = max(matrix_bingham_costs(gaps))
        for angle in (3, 1 / mp.sqrt(1 + size)):
            turned = mp.expm(skew([rng.gauss(0, 1) * angle for _ in range(3)], 3))
            lists.append(gaps + entries(turned, kind))
    return lists


def circle_bingham(x):
    """SO(2): log E e^{−H}, KL to uniform, and E[S₁₁²] − E[S₁₂²], of H = c sin²θ."""
    half = mp.mpf(x[0]) * mp.mpf(x[1]) / 2
    with mp.workdps(100):
        scaled, rest, _ = bessel([half])
        log = mp.log(scaled)
        return [log, -half * rest - log, 1 - rest]


def circle_bingham_density(x):
    """log f, the score, and the derivatives in A and B."""
    a, b, s = mp.mpf(x[0]), mp.mpf(x[1]), polar(matrix(x[2:], 2))
    log, _, mean = circle_bingham(x)
    outer, inner = mp.diag([a / 2, -a / 2]), mp.diag([b / 2, -b / 2])
    return ([-a * b * s[1, 0] ** 2 - log] + turned(2 * outer * s * inner, s) +
            flat(s * inner * s.T - mean * inner) + flat(s.T * outer * s - mean * outer))


def circle_bingham_points(kind):
    lists = []
    for size in (1e-6, 0.01, 1, 4, 64, 1e3, 1e6, 1e10):
        gaps = [rounded(size * rng.uniform(0.5, 2), kind), rounded(rng.uniform(0.5, 2), kind)]
        lists += [gaps + entries(p, kind) for p in near_modes(mp.eye(2), gaps[0] * gaps[1])]
    return lists


def circle_bingham_scales(x, v):
    a, b = mp.mpf(x[0]), mp.mpf(x[1])
    return [1 + abs(v[0]) + abs(v[1]), a * b] + [b] * 4 + [a] * 4


row(BINGHAM, "log normaliser less its value at the mode, SO(2)", "products of gaps 1e-6 … 1e10", "matrix_bingham_2", DOUBLE,
    lambda kind: [x[:2] for x in circle_bingham_points(kind)], circle_bingham, "ε·(1 + \\|value\\|)",
    lambda x, v: [1 + abs(e) for e in v], take=[0])
row(BINGHAM, "KL to uniform, SO(2)", "the same", "matrix_bingham_2", DOUBLE, lambda kind: [x[:2] for x in circle_bingham_points(kind)],
    circle_bingham, "ε·\\|value\\|", lambda x, v: [abs(e) for e in v], take=[1])
for show, unit, take in (("log density, SO(2)", "ε·(1 + \\|value\\| + \\|score\\|)", [0]), ("score, SO(2)", "ε·C₁₂", [1]),
                         ("∂ log density/∂A and ∂B, SO(2)", "ε·gap of B or A", list(range(2, 10)))):
    row(BINGHAM, show, "the same, anywhere and near modes", "matrix_bingham_density_2", SCALARS, circle_bingham_points,
        circle_bingham_density, unit, circle_bingham_scales, take)
row(BINGHAM, "log normaliser less its value at the mode, SO(3)", "products of gaps 0 … 1e4", "matrix_bingham_3", DOUBLE,
    matrix_bingham_points, matrix_bingham_cached, "ε·(1 + \\|value\\|)", lambda x, v: [1 + abs(a) for a in v], take=[0])
row(BINGHAM, "KL to uniform, SO(3)", "the same", "matrix_bingham_3", DOUBLE, matrix_bingham_points, matrix_bingham_cached,
    "ε·(1 + \\|value\\|)", lambda x, v: [1 + abs(a) for a in v], take=[1])
row(BINGHAM, "log density, SO(3)", "the same, anywhere and near modes", "matrix_bingham_density_3", SCALARS, matrix_bingham_rotations,
    matrix_bingham_density, "ε·(1 + \\|value\\| + Σ C\\|S\\|)",
    lambda x, v: [1 + abs(v[0]) + sum(abs(a * b) for a, b in zip(matrix_bingham_costs(x), matrix(x[4:], 3)))] * 4, take=[0])
row(BINGHAM, "score, SO(3)", "the same, anywhere and near modes", "matrix_bingham_density_3", SCALARS, matrix_bingham_rotations,
    matrix_bingham_density, "ε·largest C", lambda x, v: [max(matrix_bingham_costs(x))] * 4, take=[1, 2, 3])

# --- León ---------------------------------------------------------------------------------------------------------------

LEON = "León's distributions, angular central Gaussian distributions, angles of uniform rotations"


def leon(n):
    def exact(x):
        k = mp.mpf(x[0])
        with mp.workdps(90):
            log = slope = curvature = mp.mpf(0)
            for j in range(1, n):
                h = mp.mpf(j) / 2
                log += mp.loggamma(h + k) - mp.loggamma(h) + mp.loggamma(j) - mp.loggamma(j + k)
                slope += mp.psi(0, h + k) - mp.psi(0, j + k)
                curvature += mp.psi(1, h + k) - mp.psi(1, j + k)
            return [log, slope, curvature, k * slope - log]
    return exact


for n in (2, 3, 8):
    points = lambda kind: [[x] for x in powers(-12, 12, 200)]
    row(LEON, "log Z, SO(%d)" % n, "k in [1e-12, 1e12]", "leon_normaliser_%d" % n, DOUBLE, points,
        lambda x, n=n: leon(n)(x)[:3], "ε·(1 + \\|value\\|)", lambda x, v: [1 + abs(a) for a in v], take=[0])
    row(LEON, "(log Z)′, SO(%d)" % n, "k in [1e-12, 1e12]", "leon_normaliser_%d" % n, DOUBLE, points,
        lambda x, n=n: leon(n)(x)[:3], take=[1])
    row(LEON, "(log Z)″, SO(%d)" % n, "k in [1e-12, 1e12]", "leon_normaliser_%d" % n, DOUBLE, points,
        lambda x, n=n: leon(n)(x)[:3], take=[2])
    row(LEON, "KL to uniform, SO(%d)" % n, "k in [1e-12, 1e12]", "leon_kl_%d" % n, DOUBLE, points,
        lambda x, n=n: leon(n)(x)[3:])


def leon_logpdf(x):
    """log f, ∂/∂k, the score, and the derivative in M = I."""
    n = math.isqrt(len(x) - 1)
    r, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
    log, slope = leon(n)([k])[:2]
    power = mp.log(mp.det((mp.eye(n) + r) / 2))
    score = turned(k * (mp.eye(n) + r).T ** -1, r)
    return [k * power - log, power - slope] + score + [-v for v in score]


def leon_scales(x, v):
    n = math.isqrt(len(x) - 1)
    r, k = polar(matrix(x[:-1], n)), mp.mpf(x[-1])
    slope, inverse = leon(n)([k])[1], frobenius((mp.eye(n) + r) ** -1)
    return (angle_condition(x, v) + [abs(v[1] + slope) + abs(slope) + inverse * frobenius(r - mp.eye(n))] +
            [k * inverse * (1 + inverse)] * (len(v) - 2))


for n in (3, 8):
    for show, unit, take in (("log density of León, SO(%d)", "ε·(1 + \\|value\\| + k‖P − M‖)", [0]),
                             ("∂ log density of León/∂k, SO(%d)", "ε·(\\|log det\\| + \\|(log Z)′\\| + ‖(I + Y)⁻¹‖‖P − M‖)", [1]),
                             ("scores of León in P and M, SO(%d)", "ε·k‖(I + Y)⁻¹‖(1 + ‖(I + Y)⁻¹‖)", scores(n))):
        row(LEON, show % n, "k from 1e-3 to 1e12, angles up to some k^{−1/2}" if take == [0] else "the same", "leon_logpdf_%d" % n,
            SCALARS, concentrated(n, [1e-3, 0.1, 1, 10, 100, 1e4, 1e6, 1e8, 1e10, 1e12]), leon_logpdf, unit, leon_scales, take)
row(LEON, "distribution function of the angle of León, SO(3)", "k from 1e-3 to 1e6", "leon_angle_3", DOUBLE,
    lambda kind: [[k, min(3.1, rng.uniform(0.05, 4) / math.sqrt(1 + k))] for k in powers(-3, 6, 100)],
    lambda x: [mp.betainc(mp.mpf("1.5"), mp.mpf(x[0]) + mp.mpf("0.5"), 0, mp.sin(mp.mpf(x[1]) / 2) ** 2, regularized=True)],
    "ε·(1 + κθ²)·value", lambda x, v: [abs(v[0]) * (4 + x[0] * x[1] ** 2)])


def central_gaussian(x):
    y, factor = mp.matrix([mp.mpf(a) for a in x[:4]]), matrix(x[4:], 4)
    z = mp.lu_solve(factor, y)
    log_det = sum(mp.log(factor[i, i]) for i in range(4))
    return [-log_det - 2 * mp.log(sum(a * a for a in z))]


def central_gaussian_points(kind):
    kind = kind_of(kind)
    lists = []
    for spread in (0, 1, 3, 6, 10, 15):
        for _ in range(10):
            factor = [[0.0] * 4 for _ in range(4)]
            for i in range(4):
                factor[i][i] = rounded(10 ** (rng.uniform(-0.5, 0.5) * spread), kind)
                for j in range(i):
                    factor[i][j] = rounded(rng.gauss(0, 0.5) * min(factor[i][i], factor[j][j]), kind)
            y = [rng.gauss(0, 1) for _ in range(4)]
            size = math.sqrt(sum(a * a for a in y))
            lists.append([rounded(a / size, kind) for a in y] + [a for line in factor for a in line])
    return lists


def central_gaussian_condition(x, v):
    factor = matrix(x[4:], 4)
    inverse = factor ** -1
    z = inverse * mp.matrix([mp.mpf(a) for a in x[:4]])
    absolute = mp.matrix([sum(abs(inverse[i, j]) * sum(abs(factor[j, l]) * abs(z[l]) for l in range(4)) for j in range(4))
                          for i in range(4)])
    return [1 + sum(abs(mp.log(factor[i, i])) for i in range(4)) +
            4 * sum(abs(z[i]) * absolute[i] for i in range(4)) / sum(a * a for a in z)]


row(LEON, "log density of angular central Gaussian, S³", "deviations that differ by up to 1e15",
    "angular_central_gaussian_logpdf", ALL, central_gaussian_points, central_gaussian,
    "ε·(1 + Σ\\|log L_ii\\| + condition of L⁻¹x)", central_gaussian_condition)


def central_gaussian_covariances(kind):
    lists = []
    for x in central_gaussian_points(kind):
        factor = matrix(x[4:], 4)
        lists.append(x[:4] + entries(factor * factor.T, kind))
    return lists


def central_gaussian_gradient(x):
    """x̄ = −4y/q with y = Λ⁻¹x and q = xᵀy, and the derivative in Λ."""
    a, inverse = mp.matrix([mp.mpf(v) for v in x[:4]]), matrix(x[4:], 4) ** -1
    y = inverse * a
    q = (a.T * y)[0]
    return [-4 * v / q for v in y] + flat((4 / q * y * y.T - inverse) / 2)


def central_gaussian_gradient_condition(x, v):
    """Rounding of Λ and of the factorisation: of sizes √(Λᵢᵢ Λⱼⱼ)."""
    size = [mp.sqrt(mp.mpf(x[4 + 5 * i])) for i in range(4)]
    a, inverse = mp.matrix([mp.mpf(e) for e in x[:4]]), matrix(x[4:], 4) ** -1
    y = inverse * a
    q = (a.T * y)[0]
    weight = [sum(abs(inverse[i, j]) * size[j] for j in range(4)) for i in range(4)]  # |Λ⁻¹| √diag Λ
    along = sum(size[j] * abs(y[j]) for j in range(4))
    moved = [weight[i] * along for i in range(4)]
    argument = [4 * (moved[i] + abs(y[i]) * along ** 2 / q) / q for i in range(4)]
    return argument + [(4 / q * (moved[i] * abs(y[j]) + abs(y[i]) * moved[j] + abs(y[i] * y[j]) * along ** 2 / q) +
                        weight[i] * weight[j]) / 2 for i in range(4) for j in range(4)]


for show, take in (("its score in x", list(range(4))), ("its derivative in Λ", list(range(4, 20)))):
    row(LEON, show, "the same", "angular_central_gaussian_gradient", SCALARS, central_gaussian_covariances,
        central_gaussian_gradient, "ε·condition", central_gaussian_gradient_condition, take)
row(LEON, "distribution function of the uniform angle, SO(3)", "[1e-15, π]", "haar_angle_3", DOUBLE,
    lambda kind: [[r, 0.5] for r in powers(-15, 0.497, 300)], lambda x: [haar_cdf(mp.mpf(x[0])), mp.mpf(0)], take=[0])
row(LEON, "its quantiles", "p in [1e-30, 1 − 1e-6]", "haar_angle_3", DOUBLE,
    lambda kind: [[1.0, p] for p in powers(-30, -0.01, 150) + [1 - q for q in powers(-6, -1, 30)]],
    lambda x: [mp.mpf(0), haar_quantile(mp.mpf(x[1]))], "ε·\\|value\\|/(1 − p)^{1/2}",
    lambda x, v: [1, abs(v[1]) / mp.sqrt(1 - mp.mpf(x[1]))], take=[1])


def haar_quantile(p):
    """u with u − sin u = πp, by Newton's method at many digits."""
    with mp.workdps(110):
        u = mp.cbrt(6 * mp.pi * p) if p < 0.3 else mp.mpf(2)
        for _ in range(60):
            step = (u - mp.sin(u) - mp.pi * p) / (1 - mp.cos(u))
            u -= step
            if abs(step) < mp.mpf(10) ** -70 * u:
                break
        return u


# --- mixtures -----------------------------------------------------------------------------------------------------------

MIXTURE = "Mixtures of two distributions"


def cayley_component(y, k):
    """log f and P̄ at M = I, and what both are accurate beside."""
    w = (mp.eye(3) - k * y) ** -1
    log = cayley_logpdf(3)(flat(y) + [k])[0]
    return (log, 2 * k * w.T, cayley_condition(3)(flat(y) + [k], None)[0],
            k * cayley_gradient_condition(3)(flat(y) + [k], [0])[0])


def heat_component(y, sigma):
    t = sigma * sigma
    sine = frobenius(mp.matrix(parameters(y)))
    w = mp.atan2(sine, (y[0, 0] + y[1, 1] + y[2, 2] - 1) / 2)
    log, slope, _ = heat_kernel([mp.sin(w / 2), mp.cos(w / 2), t])
    return (log, slope * mp.eye(3), 1 + abs(log) + w / t + abs(mp.log(t)), (1 / t + (w / t) ** 2) * min(1, mp.exp(2 - t)))


def mixture(component):
    """log f, the score and the shares, and what each is accurate beside."""
    def both(x):
        p, parts = polar(matrix(x[22:], 3)), []
        total = mp.mpf(x[0]) + mp.mpf(x[11])
        for own in (x[:11], x[11:22]):
            m = polar(matrix(own[2:], 3))
            log, p_bar, log_size, score_size = component(p * m.T, mp.mpf(own[1]))
            parts.append((mp.mpf(own[0]) / total * mp.exp(log), turned(p_bar * m, p), log_size, score_size))
        density = sum(part[0] for part in parts)
        shares = [part[0] / density for part in parts]
        score = [sum(r * part[1][i] for r, part in zip(shares, parts)) for i in range(3)]
        log = mp.log(density)
        log_size = sum(r * part[2] for r, part in zip(shares, parts))
        score_size = sum(r * (part[3] + frobenius(mp.matrix(part[1])) * (part[2] + log_size)) for r, part in zip(shares, parts))
        return ([log] + score + shares,
                [1 + abs(log) + log_size] + [score_size] * 3 + [r * (1 + part[2] + log_size) for r, part in zip(shares, parts)])
    return both


def mixture_points(values, width):
    """Far from both locations, and near each of them."""
    def points(kind):
        lists = []
        for value in values:
            means = [random_rotation(3), random_rotation(3)]
            numbers = []
            for m, part in zip(means, (value, value * 0.7)):
                numbers += [rounded(rng.uniform(0.1, 1), kind), rounded(part, kind)] + entries(m, kind)
            for m in means:
                for angle in (3, width(value)):
                    p = mp.expm(skew([rng.gauss(0, 1) * angle for _ in range(3)], 3)) * m
                    lists.append(numbers + entries(p, kind))
        return lists
    return points


for law, function, range_text, points, component in (
        ("Cayley", "cayley_mixture", "κ from 1e-3 to 1 − 1e-6",
         mixture_points([1e-3, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6], lambda k: 1 - k), cayley_component),
        ("isotropic Gaussian", "isotropic_gaussian_mixture", "σ from 0.01 to 3",
         mixture_points([0.01, 0.03, 0.1, 0.3, 1, 1.4, 3], lambda sigma: sigma), heat_component)):
    for show, take in (("log density, %s, SO(3)", [0]), ("score, %s, SO(3)", [1, 2, 3]), ("responsibilities, %s, SO(3)", [4, 5])):
        row(MIXTURE, show % law, range_text if take == [0] else "the same", function, SCALARS, points,
            lambda x, both=mixture(component): both(x)[0], "ε·condition", lambda x, v, both=mixture(component): both(x)[1], take)

# --- measuring ----------------------------------------------------------------------------------------------------------

def measure(program, rows, show_worst):
    jobs = []
    for r in rows:
        points = {}  # the same for numbers and packs
        for kind in r["types"]:
            base = kind_of(kind)
            if base not in points:
                rng.seed(r["show"] + r["range"])  # of a row, whichever rows are measured
                points[base] = r["points"](base)
            jobs += [(r, kind, point) for point in points[base]]
    text = "".join("%s %s %s\n" % (r["function"], kind, " ".join(float(x).hex() for x in point))
                   for r, kind, point in jobs)
    answer = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answer) == len(jobs), (len(answer), len(jobs))
    exact_cache, scale_cache = {}, {}
    for (r, kind, point), line in zip(jobs, answer):
        results = r.setdefault("results", {}).setdefault(kind, dict(largest=mp.mpf(0), sum=mp.mpf(0), count=0, worst=None,
                                                                    bad=0))
        if line.startswith("!"):
            results["bad"] += 1
            if show_worst:
                print("   threw:", r["show"], kind, point, line)
            continue
        values = [float.fromhex(v) for v in line.split()]
        key = (id(r), tuple(point))
        if key not in exact_cache:
            exact_cache[key] = r["exact"](point)
        exact = exact_cache[key]
        base = kind_of(kind)
        scale = r["scale"]
        if "scale_of_kind" in r:
            scale = r["scale_of_kind"](kind)
        if scale is None:
            units = [ulp(e, base) for e in exact]
        else:
            scale_key = key + ((kind,) if "scale_of_kind" in r else ())
            if scale_key not in scale_cache:
                scale_cache[scale_key] = scale(point, exact)
            units = [s * EPSILON[base] for s in scale_cache[scale_key]]
        least = LEAST[base] * EPSILON[base]
        for index in (r["take"] if r["take"] is not None else range(len(exact))):
            value = values[index]
            if not math.isfinite(value):
                results["bad"] += 1
                if show_worst:
                    print("   not finite:", r["show"], kind, point, values, [mp.nstr(e, 20) for e in exact])
                continue
            error = abs(mp.mpf(value) - exact[index]) / max(units[index], least)
            results["sum"] += error
            results["count"] += 1
            if error > results["largest"]:
                results["largest"], results["worst"] = error, (point, value, exact[index])
    return rows


def figure(x):
    x = float(x)
    if x >= 1e5:
        return "%.1e" % x
    return "%.0f" % x if x >= 100 else "%.2g" % x


def tables(rows):
    lines = []
    section = None
    for r in rows:
        if r["section"] != section:
            section = r["section"]
            lines += ["", "### " + section, "", "| function | range | type | largest | mean | points | unit |",
                      "| --- | --- | --- | ---: | ---: | ---: | --- |"]
        for kind, result in r["results"].items():
            mean = result["sum"] / result["count"] if result["count"] else 0
            bad = ", %d not finite" % result["bad"] if result["bad"] else ""
            kind_text = kind.replace("-pack", ", pack")
            lines.append("| %s | %s | %s | %s%s | %s | %d | %s |" % (
                r["show"], r["range"], kind_text, figure(result["largest"]), bad, figure(mean), result["count"], r["unit"]))
    return "\n".join(lines[1:]) + "\n"


def stored(rows):
    """JSON, a function a line: of every type the largest error, the mean, the number of points and, if any, of values not finite."""
    groups = {}
    for r in rows:
        errors = {}
        for kind, of in r["results"].items():
            mean = of["sum"] / max(1, of["count"])
            errors[kind] = [float(figure(of["largest"])), float(figure(mean)), of["count"], *([of["bad"]] if of["bad"] else [])]
        line = {"function": r["show"], "range": r["range"], "unit": r["unit"]}
        line = {key: text.replace("\\|", "|") for key, text in line.items()} | {"errors": errors}
        groups.setdefault(r["section"], []).append("  " + json.dumps(line, ensure_ascii=False))
    texts = [f' {json.dumps(name, ensure_ascii=False)}: [\n' + ",\n".join(lines) + "\n ]" for name, lines in groups.items()]
    return f'{{\n "date": "{datetime.date.today()}",\n' + ",\n".join(texts) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--worst", action="store_true")
    parser.add_argument("--update", metavar="FILE")
    parser.add_argument("--program", help="values.cpp, compiled; default: compiles it")
    options = parser.parse_args()
    if options.only and options.update:
        parser.error("--update needs all rows: leave out --only")
    with tempfile.TemporaryDirectory() as folder:
        program = options.program
        if not program:
            program = os.path.join(folder, "values")
            flags = os.environ.get("CPPFLAGS", "-isystem /usr/include/eigen3").split()
            subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-march=native", "-I", ROOT + "/include", *flags,
                            ROOT + "/benchmarks/accuracy/values.cpp", "-o", program], check=True)
        rows = measure(program, [r for r in ROWS if options.only in r["show"] + r["section"] + r["function"]], options.worst)
    text = tables(rows)
    print(text)
    if options.worst:
        for r in rows:
            for kind, result in r["results"].items():
                if result["worst"] and result["largest"] > 8:
                    point, value, exact = result["worst"]
                    print("worst of %s, %s (%s): %s at %s: %r, exactly %s" % (
                        r["show"], kind, r["range"], figure(result["largest"]), point, value, mp.nstr(exact, 20)))
    if options.update:
        with open(options.update, "w", encoding="utf-8") as file:
            file.write(stored(rows))


if __name__ == "__main__":
    sys.exit(main())
